"""A site's own ReFrame: the configurations of the pages as they stand, and other people's tests."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from clustergate.core.paths import checkout
from clustergate.run.reframe import job_script, reported_cases
from clustergate.sites import configs as sites
from clustergate.stacks.manifest import Manifest, write_manifest

DOCS = checkout() / "docs"
WHOLE = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in sorted(DOCS.glob("*.md"))
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
    if "site_configuration = " in block
]
PAGE = (DOCS / "reframe.md").read_text(encoding="utf-8")
OWN: str
SLURM: str
OWN, SLURM = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
OTHER = re.search(r'`(\{"name": "gnu".*?\})`', PAGE)
STACKS = [
    pytest.param(said, id=f"{page.stem}-{number}")
    for page in sorted(DOCS.glob("*.md"))
    for number, said in enumerate(
        re.findall(r"`(?:``python\n)?(stack\([^`]*\))\n?`", page.read_text(encoding="utf-8"))
    )
    if "…" not in said
]
IMPORTS = "from clustergate.sites import configuration, stack\n"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which a site keeps its ReFrame configuration."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    return tmp_path / "settings.py"


@pytest.mark.parametrize("text", WHOLE)
def test_a_configuration_of_the_pages_is_taken_word_for_word(own: Path, text: str) -> None:
    if ".json" in text:
        said = runpy.run_path(str(checkout() / "site_configs" / "local.py"))["site_configuration"]
        keys = ("name", "hostnames", "descr")
        systems = [{key: one[key] for key in keys} for one in said["systems"]]
        parts = ("name", "scheduler", "launcher", "environs", "extras")
        for system, one in zip(systems, said["systems"], strict=True):
            system["partitions"] = [{key: part[key] for key in parts} for part in one["partitions"]]
        content = json.dumps({"systems": systems, "environments": said["environments"]})
        own.with_suffix(".json").write_text(content)
    own.write_text(text if "import configuration" in text else IMPORTS + text)
    assert sites.load(own).stacks


@pytest.mark.parametrize("said", STACKS)
def test_a_stack_of_the_pages_is_taken_word_for_word(own: Path, said: str) -> None:
    own.write_text(OWN.replace('stack("mpich")', said).replace('"environs": ["mpich"],', ""))
    assert sites.load(own).stacks


def with_others(environs: str = '["mpich", "gnu"]') -> str:
    """Return the page's configuration with the environment of other tests that the page has."""
    assert OTHER
    text = OWN.replace('stacks=[stack("mpich")]', f'stacks=[stack("mpich"), {OTHER[1]}]')
    return text.replace('"environs": ["mpich"]', f'"environs": {environs}')


def test_environments_of_other_tests_stand_beside_the_stacks(own: Path) -> None:
    """It was a KeyError, word for word from the page."""
    own.write_text(with_others())
    site = sites.load(own)
    assert [stack.name for stack in site.stacks] == ["mpich"]
    assert [*site.partitions[0].stacks] == ["mpich"]


def test_the_partition_of_slurm_is_taken_word_for_word(own: Path) -> None:
    partition = textwrap.indent(SLURM, " " * 8)
    own.write_text(
        f"{IMPORTS}site_configuration = configuration(\n"
        f'    [{{"name": "mine", "hostnames": ["x"], "partitions": [\n{partition}    ]}}],\n'
        '    [stack("mpich")],\n)\n'
    )
    assert sites.load(own).partitions[0].nodes == 16


def configured(own: Path) -> dict[str, Any]:
    said: dict[str, Any] = runpy.run_path(str(own))["site_configuration"]
    return said


@pytest.mark.parametrize(
    ("said", "most"), [("", 1), ('"max_jobs": 3,', 3)], ids=["unsaid", "as said"]
)
def test_one_job_at_a_time_unless_the_site_says_otherwise(own: Path, said: str, most: int) -> None:
    """HPL and IMB ran at once on the same two cores, and both passed."""
    own.write_text(OWN.replace('"scheduler": "local",', f'"scheduler": "local", {said}'))
    (partition,) = configured(own)["systems"][0]["partitions"]
    assert partition["max_jobs"] == most


def test_without_a_stack_as_many_jobs_run_as_reframe_lets(own: Path) -> None:
    own.write_text(with_others('["gnu"]'))
    (partition,) = configured(own)["systems"][0]["partitions"]
    assert "max_jobs" not in partition


ORDINARY = """\
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class OrdinaryCheck(rfm.RunOnlyRegressionTest):
    valid_systems, valid_prog_environs, executable = ["*"], ["*"], "true"
    sanity_patterns = sn.assert_true(1)
"""


@pytest.mark.parametrize(("compilers", "ftn"), [(["mpicc", "mpicxx", "mpifc"], "mpifc"), ([], "")])
def test_the_libraries_of_the_stacks_serve_every_test(
    own: Path, compilers: list[str], ftn: str
) -> None:
    """Other tests had no mpicc: MPICH's environment had ReFrame's cc, and nothing on PATH."""
    home = own.with_name("home")
    own.write_text(OWN)
    programs = home / "prefix" / "bin"
    programs.mkdir(parents=True)
    for name in compilers:
        (programs / name).touch()
    manifest = Manifest(
        *("mpich", "wheels", "MPICH", "5.0.2"),
        launcher=str(programs / "mpirun"),
        environment={"PATH": str(programs), "LD_LIBRARY_PATH": "/x", "I_MPI_ROOT": "/root"},
    )
    write_manifest(home, manifest)
    theirs = own.with_name("ordinary.py")
    theirs.write_text(ORDINARY)
    report = own.with_name("report.json")
    command = [str(Path(sys.executable).parent / "reframe"), "-C", str(own), "--system=mine"]
    command += ["-c", str(theirs), "--nocolor", f"--report-file={report}", "--dry-run"]
    ended = subprocess.run(command, cwd=own.parent, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (case,) = reported_cases(report)
    script = job_script(case).read_text(encoding="utf-8")
    assert f"export PATH={programs}:$PATH" in script.replace('"', "")
    assert "export I_MPI_ROOT=/root" in script.replace('"', "")
    assert "LD_LIBRARY_PATH" not in script
    said: dict[str, Any] = configured(own)["environments"][0]
    given = sites.with_library(said, home)
    named = {"cc": "mpicc", "cxx": "mpicxx", "ftn": ftn} if compilers else {}
    assert {key: given[key] for key in ("cc", "cxx", "ftn") if key in given} == named
    assert sites.with_library({**said, "cc": "gcc"}, home)["cc"] == "gcc"
    # What a golden build was launched with, and a run that is resumed, does not hang on them.
    assert not [x for x in sites.launch_settings(sites.load(own), "mpich") if "env_vars" in x]


def test_other_peoples_jobs_and_results_stay_as_they_were(own: Path) -> None:
    own.write_text(with_others().replace('"extras"', '"prepare_cmds": ["echo site"], "extras"'))
    theirs = own.with_name("ordinary.py")
    theirs.write_text(ORDINARY)
    report = own.with_name("report.json")
    command = [str(Path(sys.executable).parent / "reframe"), "-C", str(own), "--system=mine"]
    command += ["-c", str(theirs), "-c", str(checkout() / "reframe_checks"), "--nocolor"]
    command += ["-n", "OrdinaryCheck|HplCheck", f"--report-file={report}", "--dry-run"]
    told = ("RFM_", "CLUSTERGATE_RUN_ID")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(told)}
    ended = subprocess.run(command, env=environment, cwd=own.parent, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    scripts: dict[str, list[str]] = {}
    for case in reported_cases(report):
        if (script := job_script(case)).is_file():
            lines = script.read_text(encoding="utf-8").splitlines()
            scripts.setdefault(case["name"].split()[0], []).append("\n".join(lines[1:]))
    assert len(scripts["OrdinaryCheck"]) == 2
    for text in scripts["OrdinaryCheck"]:
        assert "unset" not in text
        assert "set -e" not in text
    (hpl,) = scripts["HplCheck"]
    assert hpl.startswith("set -e\n: > removed-environment\n")
    assert hpl.index("unset") < hpl.index("echo site")
    said = configured(own)
    assert "storage" not in said
    assert "report_file" not in said["general"][0]
    results = own.with_name("home") / "results"
    variables = sites.reframe_variables(own, sites.load(own))
    assert variables["RFM_SQLITE_DB_FILE"] == str(results / "results.db")
