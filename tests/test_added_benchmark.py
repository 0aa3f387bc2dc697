"""The example of a benchmark that a site adds: one package, and no file of the suite knows it."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from clustergate.core.model import CaseId, CaseState
from clustergate.core.paths import checkout
from clustergate.judge.assembly import assemble
from clustergate.run.reframe import left_out

EXAMPLE = checkout() / "docs" / "examples" / "token_ring"
TITLE = "# token_ring: 2 processes, 5 rounds\n"
Ended = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with ReFrame, the suite's wheel and the example."""
    home = tmp_path_factory.mktemp("added")
    venv.create(home / "venv", symlinks=True)
    found = home / "venv" / "bin" / "python"
    there = Path(sysconfig.get_path("purelib", vars={"base": str(home / "venv")}))
    suites = Path(sysconfig.get_path("purelib"))
    # Their dependencies alone are those of the tests: ReFrame loads what is installed beside it
    # otherwise than the checks of a clone.
    (there / "dependencies.pth").write_text(f"import site; site.addsitedir({str(suites)!r})\n")
    for part in ("reframe", f"reframe_hpc-{version('reframe-hpc')}.dist-info"):
        shutil.copytree(suites / part, there / part)
    script = (Path(sys.executable).parent / "reframe").read_text().splitlines(keepends=True)
    (found.parent / "reframe").write_text("".join([f"#!{found}\n", *script[1:]]))
    (found.parent / "reframe").chmod(0o755)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    pip += ["--no-build-isolation", f"--target={there}"]
    for number, source in enumerate((checkout(), EXAMPLE)):
        # A build leaves files beside the sources.
        copy = home / f"source-{number}"
        without = shutil.ignore_patterns(".git", ".venv", ".clustergate", "build", "*.egg-info")
        shutil.copytree(source, copy, ignore=without)
        if (source / ".git").is_dir():
            # The version is its tag's.
            (copy / ".git").write_text(f"gitdir: {source / '.git'}\n")
        elif (source / ".git").is_file():
            shutil.copy(source / ".git", copy)
        subprocess.run([*pip, str(copy)], check=True, capture_output=True)
    return found


@pytest.fixture
def call(python: Path, tmp_path: Path) -> Callable[..., Ended]:
    """Return what calls the suite in that environment."""

    def run(*words: str, text: str = "", **variables: str) -> Ended:
        command = [str(python), "-m", "clustergate", *words]
        environment = {**os.environ, "CLUSTERGATE_HOME": str(tmp_path), **variables}
        return subprocess.run(
            command, input=text, env=environment, cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    return run


def test_its_output_is_read(call: Callable[..., Ended]) -> None:
    ended = call("parse", "-", text=f"{TITLE}token 10\nround_us 1.2500\n# end\n")
    assert json.loads(ended.stdout)["values"] == {"round_us": 1.25}, ended.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"{TITLE}token 10\nround_us 1.2500\n", ": the output is cut off"),
        (f"{TITLE}token 9\nround_us 1.2500\n# end\n", ":2: the token skipped ranks: 9"),
        (f"{TITLE}token 10\nround_us nan\n# end\n", ":3: 'round_us nan' is not of the form"),
        (f"{TITLE}token 10\nround_us 1.2500\n# end\n" * 2, ": another output begins below"),
    ],
)
def test_its_output_is_refused(call: Callable[..., Ended], text: str, complaint: str) -> None:
    ended = call("parse", "-", text=text)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert complaint in ended.stderr


def test_its_check_is_known_by_name_and_no_other(call: Callable[..., Ended]) -> None:
    ended = call("check", "--check", "TokenCheck")
    assert ended.returncode == 2
    assert "unknown check 'TokenCheck'; known: HplCheck" in ended.stderr
    assert "TokenRingCheck" in ended.stderr


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("__init__.py", '"TokenRingCheck",', '"TokenCheck",',
         "check.py defines no TokenCheck; it has TokenRingCheck, AbTokenRingCheck; "),
        ("check.py", '@check("TokenRingCheck")', '@check("RingCheck")',
         r"check.py:\d+: no descriptor of a benchmark declares the check RingCheck; "),
        ("check.py", '    program = "token_ring"\n', "",
         r"check.py:\d+: the check TokenRingCheck lacks program; add it to the class"),
        ("check.py", "def expectation", "def expected",
         r"check.py:\d+: the check TokenRingCheck lacks expectation\(\); "),
    ],
)  # fmt: skip
def test_test_unlike_its_descriptor_told_what_to_do(
    call: Callable[..., Ended], tmp_path: Path, file: str, old: str, new: str, told: str
) -> None:
    package = shutil.copytree(EXAMPLE / "token_ring", tmp_path / "first" / "token_ring") / file
    text = package.read_text()
    assert old in text
    package.write_text(text.replace(old, new, 1))
    path = f"{tmp_path / 'first'}:{os.environ.get('PYTHONPATH', '')}"
    ended = call("dry-run", "--site", "local", PYTHONPATH=path)
    assert ended.returncode != 0
    assert re.search(told, ended.stdout + ended.stderr), ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("def expectation", "def expected", r"TokenRingCheck lacks expectation\(\)"),
        ("from collections.abc", "from nothing", r"check.py:3: this check does not load"),
    ],
)
def test_a_run_goes_on_without_the_checks_that_do_not_load(
    python: Path, tmp_path: Path, old: str, new: str, told: str
) -> None:
    """Not one check was run, HPL neither, where a package of a site's had a mistake."""
    package = shutil.copytree(EXAMPLE / "token_ring", tmp_path / "first" / "token_ring")
    text = (package / "check.py").read_text()
    (package / "check.py").write_text(text.replace(old, new))
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "CLUSTERGATE_RUN_ID": "run"}
    environment |= {"CLUSTERGATE_HOME": str(tmp_path), "RFM_SYSTEM": "local"}
    command = [str(python.parent / "reframe"), "-C", str(checkout() / "site_configs" / "local.py")]
    ended = subprocess.run(
        [*command, "--nocolor", "-t", "^benchmark$", "--list"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "- HplCheck" in ended.stdout
    assert "- TokenRingCheck" not in ended.stdout
    why = left_out((ended.stdout + ended.stderr).splitlines())
    assert why
    assert re.search(told, str(why["TokenRingCheck"]))
    key = CaseId("TokenRingCheck", "local:node", "mpich", ())
    (case,) = assemble([key], [], [], not_loaded=why)
    assert (case.state, case.reasons) == (CaseState.MISSING, (why["TokenRingCheck"],))


EARLIER = """\
import reframe as rfm

from reframe_checks.base import MpiBenchmark
from reframe_checks.contenders import TwoContenders
from reframe_checks.sweeps import OverLayouts
from token_ring import BENCHMARK
from token_ring.output import RingExpectation


@rfm.simple_test
class TokenRingCheck(OverLayouts, MpiBenchmark):
    descriptor = BENCHMARK
    program = "token_ring"

    def arguments(self):
        return [str(self.effort.rounds)]

    def expectation(self):
        return RingExpectation(self.ranks, self.effort.rounds)


@rfm.simple_test
class AbTokenRingCheck(TwoContenders, TokenRingCheck):
    tags = {"ab"}
"""


@pytest.mark.long
def test_package_of_an_earlier_version_has_the_same_cases(
    call: Callable[..., Ended], tmp_path: Path
) -> None:
    told = call("dry-run", "--site", "local").stdout
    package = shutil.copytree(EXAMPLE / "token_ring", tmp_path / "first" / "token_ring")
    (package / "check.py").write_text(EARLIER)
    path = f"{tmp_path / 'first'}:{os.environ.get('PYTHONPATH', '')}"
    earlier = call("dry-run", "--site", "local", PYTHONPATH=path)
    assert (earlier.returncode, earlier.stdout) == (0, told), earlier.stderr


def test_beside_reframe_its_class_and_the_suites_are_the_same_ones(
    call: Callable[..., Ended], python: Path
) -> None:
    """Loaded by force, installed files were two modules each, and no check at all was run."""
    ended = call("dry-run", "--site", "local")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    origin = "import reframe_checks, reframe; print(reframe_checks.__file__, reframe.__file__)"
    where = subprocess.run(
        [python, "-c", origin], cwd=python.parent, capture_output=True, text=True, check=True
    )
    assert where.stdout.count(f"{python.parents[1]}/lib/") == 2


def test_a_mode_for_operators_runs_it(call: Callable[..., Ended], python: Path) -> None:
    ask = "from clustergate.sites.modes import mode_named; print(mode_named('smoke').checks)"
    ended = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    assert "'TokenRingCheck'" in ended.stdout


def test_a_mode_of_its_own_is_added(python: Path) -> None:
    ask = (
        "from clustergate.benchmarks.registry import every_benchmark as every\n"
        "from clustergate.sites.modes import effort_of, mode_named, reframe_modes\n"
        "ring = mode_named('ring')\n"
        "both = [effort_of(ring, every()[name]) for name in ('token_ring', 'imb')]\n"
        "print(ring.checks, *(effort.budget.at_least for effort in both))\n"
        "print([one['options'] for one in reframe_modes({}) if one['name'] == 'ring'])\n"
    )
    ended = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    checks, options = ended.stdout.splitlines()
    assert checks == "('TokenRingCheck',) 10 10"
    assert options == "[['--name=^TokenRingCheck\\\\b', '--setvar=mode=ring']]"


@pytest.mark.long
@pytest.mark.mpi
def test_it_is_built_measured_proven_judged_and_reported(suite, call, tmp_path) -> None:
    words = ("check", "--site=local", "--check=TokenRingCheck", "--stack=mpich")
    first = call(*words)
    assert first.returncode == 0, first.stdout + first.stderr
    (record,) = suite.records()
    assert (record["check"], record["complaints"]) == ("TokenRingCheck", [])
    assert {s["metric"] for s in record["samples"]} == {"round_us"}
    assert re.search("NOTHING WRONG FOUND|TOO BUSY", first.stdout)
    folder = tmp_path / "site"
    folder.mkdir()
    suite.write_references(folder / "references")
    second = call(*words, CLUSTERGATE_SITE_FOLDER=str(folder))
    assert second.returncode == 0, second.stdout + second.stderr
    assert "NOTHING WRONG FOUND" not in second.stdout
    assert re.search(r"token ring +us", second.stdout)
    page = max((tmp_path / "results" / "runs").glob("*/report.html")).read_text()
    # By the name of references where it has a trend, which disturbed launches have not.
    assert re.search(r"TokenRing(\.2p\.8B\.| 8 bytes )round_us", page)


@pytest.mark.mpi
def test_it_is_compared_by_launches_in_turn(suite, call) -> None:
    sides = ("--a=mpich", "--b=mpich", "--benchmarks=token ring", "--budget=10s", "--rounds=4")
    ended = call("ab", "--site=local", *sides, "--json")
    (figure,) = [json.loads(line) for line in ended.stdout.splitlines()]
    assert figure["metric"] == "round_us"
    assert figure["conditions"]["benchmark"] == "TokenRing"
    assert figure["samples_a"] == figure["samples_b"] == 4
