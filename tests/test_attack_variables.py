"""Attacks by variables of the shell that are options of srun, of ReFrame and of Python."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from clustergate.core.paths import checkout
from clustergate.sites import configs as sites

OPTIONS = {
    "SLURM_CPU_FREQ_REQ": "Low",
    "SLURM_CPU_BIND": "none",
    "SLURM_HINT": "nomultithread",
    "SLURM_DISTRIBUTION": "cyclic",
    "SLURM_THREAD_SPEC": "1",
    "SLURM_EXPORT_ENV": "NONE",
    "SLURM_KILL_BAD_EXIT": "0",
    "SRUN_CPUS_PER_TASK": "7",
}
ALLOCATION = {"SLURM_JOB_ID": "17", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "n[1-2]"}
CLUSTERGATE = str(Path(sys.executable).parent / "clustergate")


def in_job(
    folder: Path, variables: Mapping[str, str], *asked: str, access: Sequence[str] = ()
) -> tuple[dict[str, str], str]:
    """Return what is left in a job of the suite whose script asks for options, and the record.

    With those of ``access`` it was submitted.
    """
    script = folder / "job.sh"
    words = [f"#SBATCH {option}" for option in asked]
    script.write_text("\n".join(["#!/bin/bash", *words, *sites.preparation(access), "exec env -0"]))
    environment = {"PATH": os.environ["PATH"], **variables}
    command = ["bash", str(script)]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    left = dict(entry.split("=", 1) for entry in ended.stdout.split("\0") if entry)
    return left, (folder / sites.REMOVED_ENVIRONMENT).read_text()


def test_no_option_of_sruns_reaches_a_launch_from_the_shell(tmp_path):
    left, record = in_job(tmp_path, {**ALLOCATION, **OPTIONS})
    assert not OPTIONS.keys() & left.keys()
    assert ALLOCATION.items() <= left.items()
    assert [name for name in OPTIONS if name not in record] == []


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--cpu-freq=High", "SLURM_CPU_FREQ_REQ"),
        ("--exclusive --hint=nomultithread", "SLURM_HINT"),
        ("-m cyclic", "SLURM_DISTRIBUTION"),
        ("--thread-spec=1", "SLURM_THREAD_SPEC"),
    ],
)
def test_what_the_site_config_asks_slurm_for_stays(tmp_path, option, name):
    left, _ = in_job(tmp_path, {**ALLOCATION, **OPTIONS}, option)
    assert OPTIONS.keys() & left.keys() == {name}
    left, _ = in_job(tmp_path, {**ALLOCATION, **OPTIONS}, access=[option])
    assert OPTIONS.keys() & left.keys() == {name}


def call(*words: str, home: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "CLUSTERGATE_HOME": str(home), **variables}
    command = [CLUSTERGATE, *words]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True)


def test_another_yaml_on_pythons_path_does_not_matter(tmp_path):
    """It ended as a bug in the suite."""
    added = tmp_path / "added"
    added.mkdir()
    for name in ("yaml", "argparse", "reframe", "numpy"):
        (added / f"{name}.py").write_text("raise RuntimeError('another one')\n")
    ended = call("dry-run", "--site", "local", home=tmp_path, PYTHONPATH=str(added))
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PYTHONHOME", "/nowhere"),
        ("PYTHONPATH", "{}"),
        ("PYTHONIOENCODING", "nonsense"),
        ("PYTHONWARNINGS", "error"),
        ("PYTHONHASHSEED", "x"),
    ],
)
def test_no_variable_of_pythons_keeps_the_command_from_running(tmp_path, name, value):
    """Python ended with 1, before any line of the suite's: slower."""
    for module in ("os", "encodings", "sitecustomize"):
        (tmp_path / f"{module}.py").write_text("raise RuntimeError('another one')\n")
    ended = call("list", "runs", home=tmp_path, **{name: value.format(tmp_path)})
    assert ended.returncode == 0, ended.stdout + ended.stderr


def installed_at(place: Path, *, environment: bool) -> Path:
    """Return the command where pip puts it: into a virtual environment, or below a prefix."""
    site = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    if environment:
        command = [sys.executable, "-m", "venv", "--without-pip", str(place)]
        subprocess.run(command, check=True)
    (site / "clustergate-1.dist-info").mkdir(parents=True)
    (place / "bin").mkdir(exist_ok=True)
    return Path(shutil.copy(checkout() / "bin" / "clustergate", place / "bin"))


@pytest.mark.parametrize("environment", [True, False], ids=["environment", "prefix"])
def test_the_command_finds_its_python_wherever_it_is_installed(tmp_path, environment):
    command = installed_at(tmp_path / "a place", environment=environment)
    link = tmp_path / "clustergate"
    link.symlink_to(command)
    held = [str(checkout()), *(folder for folder in sys.path if folder.endswith("-packages"))]
    plain = {**os.environ, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    for python_path, status in ((held, 0), ([], 2)):
        ended = subprocess.run(
            [link, "list", "runs"],
            env={**plain, "CLUSTERGATE_HOME": str(tmp_path), "PYTHONPATH": ":".join(python_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        told = ended.stdout + ended.stderr
        if environment or status == 0:
            assert ended.returncode == status, told
        if ended.returncode:
            assert re.fullmatch(r"clustergate: .*install clustergate again\n", told), told


def test_a_command_without_python_says_so(tmp_path):
    command = installed_at(tmp_path, environment=False)
    for name in ("sh", "readlink"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    ended = subprocess.run(
        [command, "list"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch("clustergate: there is no Python for .*\n", ended.stderr)


@pytest.mark.parametrize(
    ("name", "value"), [("RFM_MODULE_MAPPINGS", "a"), ("RFM_VERBOSE", "x")],
)  # fmt: skip
def test_no_variable_of_reframes_fails_a_dry_run(tmp_path, name, value):
    ended = call("dry-run", "--site", "local", home=tmp_path, **{name: value})
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.long
def test_options_in_disguise_fail_no_case_and_are_named(suite, tmp_path):
    seen = tmp_path / "seen"
    seen.mkdir()
    suite.replace_program("mpich", "xhpl", f'env > {seen}/$$; exec "$real"')
    hostile = {**OPTIONS, "RFM_TRAP_JOB_ERRORS": "1", "RFM_STAGE_DIR": str(tmp_path / "stage")}
    ended = suite.check("-S", "n=1000", selection=("--check=HplCheck", "--stack=mpich"), **hostile)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (record,) = suite.records()
    for name in hostile:
        assert name in record["removed_environment"]
        assert name in ended.stdout
    environments = [path.read_text() for path in seen.iterdir()]
    assert environments
    assert not [name for name in hostile for text in environments if f"\n{name}=" in text]
