"""A pipeline of each kind, by gitlab-ci-local, in a site's project beside one of the suite.

`make test-all` brings gitlab-ci-local where npm reaches a registry.
"""

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clustergate.core.paths import checkout
from tests.conftest import Suite
from tests.pipelines import GITLAB, commit, git
from tests.test_gitlab import STEADY, store_runs

pytestmark = [pytest.mark.mpi, pytest.mark.long]

# Where `make` puts it; Node comes with it, and must be the one that is found.
BROUGHT = checkout() / ".clustergate" / "npm" / "node_modules" / ".bin"
PATH = f"{BROUGHT}:{os.environ['PATH']}"
PIPELINE = """\
include: [{{local: ci/gitlab/clustergate.yml}}]
variables:
  CLUSTERGATE_PROJECT: {suite}
  CLUSTERGATE_HOME: {home}
  CLUSTERGATE_PUSH_TO: {server}
.clustergate-systems:
  parallel:
    matrix:
      - CLUSTERGATE_SYSTEM: local
        CLUSTERGATE_STACK: [mpich]
"""
# A value of a job, and what became of it.
ENDED = re.compile(
    r"^(clustergate [^\n>]*?) +finished in [^\n]*?(?:(FAIL|WARN) +(\d+))? *$", re.MULTILINE
)
PRE = "CI_PROJECT_DIR,CI_PIPELINE_SOURCE,CI_PROJECT_ID"


class Pipelines:
    """A site's project, whose pipelines run here."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home, self.server = folder / "project", home, folder / "server.git"
        suite = folder / "suite"
        listed = ["git", "-C", str(checkout()), "ls-files", "-co", "--exclude-standard", "-z"]
        ended = subprocess.run(listed, capture_output=True, text=True, check=False)
        if ended.returncode:
            pytest.skip("the suite is no clone")
        for name in filter(None, ended.stdout.split("\0")):
            if (checkout() / name).is_file():
                (suite / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(checkout() / name, suite / name)
        git(suite, "init", "--quiet", "--initial-branch=main")
        commit(suite, "the suite")
        # The Python environment that is here, as if it were newer than whatever is fetched.
        of_suite = self.folder / ".clustergate-suite" / ".venv"
        of_suite.mkdir(parents=True)
        (of_suite / "bin").symlink_to(Path(sys.executable).parent)
        tomorrow = time.time() + datetime.timedelta(days=1).total_seconds()
        for name in ("ready", "ready-dev"):
            (of_suite / name).touch()
            os.utime(of_suite / name, (tomorrow, tomorrow))
        shutil.copytree(GITLAB, self.folder / "ci" / "gitlab")
        (self.folder / "site_configs").mkdir()
        of_site = (checkout() / "site_configs" / "local.py").read_text()
        of_stacks = "stacks=STACKS[requested_provider(STACKS)]"
        assert of_stacks in of_site
        of_site = of_site.replace(of_stacks, 'stacks=[stack("mpich"), stack("openmpi")]')
        of_site = of_site.replace("requested_provider, ", "")
        (self.folder / "site_configs" / "local.py").write_text(of_site)
        of_project = {"suite": suite, "home": home, "server": self.server}
        (self.folder / ".gitlab-ci.yml").write_text(PIPELINE.format(**of_project))
        (self.folder / ".gitignore").write_text("/.*\n!/.gitlab-ci.yml\n/clustergate-results/\n")
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "server.git")
        git(self.folder, "init", "--quiet", "--initial-branch=main")
        git(self.folder, "remote", "add", "origin", "git@gitlab.example:hpc/site.git")
        self.commit = commit(self.folder, "a site")
        git(self.folder, "push", "--quiet", self.server, "main")
        self.told = ""

    def run(self, *jobs: str, **variables: str) -> dict[str, int]:
        """Run a pipeline to its end, or jobs of it; return the exit status of each job."""
        given = {"CI_PROJECT_DIR": str(self.folder), **variables}
        command = ["gitlab-ci-local", "--concurrency", "1"]
        command += ["--shell-executor-no-image", "--force-shell-executor"]
        command += ["--ignore-predefined-vars", PRE]
        for name, value in given.items():
            command += ["--variable", f"{name}={value}"]
        named = {k: v for k, v in os.environ.items() if not k.startswith(("CI_", "CLUSTERGATE_"))}
        ended = subprocess.run(
            [*command, *jobs],
            cwd=self.folder,
            env={**named, "PATH": PATH, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        self.told = ended.stdout + ended.stderr
        return {name: int(status or 0) for name, _, status in ENDED.findall(self.told)}

    def status_of(self, file: str) -> int:
        """Return the exit status that a run's own record tells, of the artifacts."""
        (found,) = (self.folder / "clustergate-results").glob(f"*/{file}")
        content = json.loads(found.read_text())
        status = content.get("exit_status", content.get("status"))
        assert isinstance(status, int)
        return status


@pytest.fixture
def pipelines(suite: Suite, tmp_path: Path) -> Pipelines:
    if shutil.which("gitlab-ci-local", path=PATH) is None:
        pytest.skip("there is no gitlab-ci-local (npm install gitlab-ci-local node@22)")
    (tmp_path / "pipelines").mkdir()
    return Pipelines(tmp_path / "pipelines", suite.home)


BUILD, SMOKE, GATE = (
    f"clustergate {job}: [local,mpich]" for job in ("build", "smoke", "maintenance")
)


def test_a_push_is_linted_and_dry_run(pipelines):
    assert pipelines.run() == {"clustergate lint": 0, "clustergate dry run": 0}, pipelines.told
    path = pipelines.folder / ".gitlab-ci.yml"
    path.write_text(path.read_text().replace("[mpich]", "[mpihc]"))
    assert pipelines.run()["clustergate lint"] == 2, pipelines.told
    assert "did you mean 'mpich'?" in pipelines.told


def test_a_schedule_builds_and_asks_the_gate_once(pipelines):
    path = pipelines.folder / ".gitlab-ci.yml"
    path.write_text(path.read_text().replace("[mpich]", "[mpich, openmpi]"))
    ended = pipelines.run(CI_PIPELINE_SOURCE="schedule", CLUSTERGATE_BUDGET="1m")
    other = GATE.replace("mpich", "openmpi")
    assert [*ended] == [BUILD, BUILD.replace("mpich", "openmpi"), GATE, other]
    assert ended[BUILD] == 0, pipelines.told
    # So short a time is too short for its benchmarks.
    assert ended[GATE] == ended[other] == pipelines.status_of("gate.json") != 0, pipelines.told
    assert f", exit status {ended[GATE]}, measured until " in pipelines.told
    assert list((pipelines.folder / "clustergate-results").glob("*/junit.xml"))


def test_a_merge_request_builds_and_measures(pipelines):
    of_merge_request = {
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": pipelines.commit,
    }
    (pipelines.folder / "README.md").write_text("more\n")
    commit(pipelines.folder, "documentation")
    assert pipelines.run(SMOKE, **of_merge_request) == {SMOKE: 0}, pipelines.told
    assert "nothing is measured" in pipelines.told
    path = pipelines.folder / "site_configs" / "local.py"
    path.write_text(path.read_text() + "\n")
    commit(pipelines.folder, "a change")
    ended = pipelines.run(
        **of_merge_request, CLUSTERGATE_REFRAME_OPTIONS="-S n=1000\n-S HplCheck.nb=64"
    )
    assert [*ended] == ["clustergate lint", "clustergate dry run", BUILD, SMOKE]
    # What is disturbed too much fails it, and this machine may be a busy one.
    assert ended[SMOKE] == pipelines.status_of("verdicts.json"), pipelines.told


def test_a_comparison_is_made(pipelines):
    of = {"CLUSTERGATE_RUN": "ab", "CLUSTERGATE_RUN_ON": "local"}
    of |= {"CLUSTERGATE_RUN_STACKS": "mpich mpich:UCX_TLS=self,sm"}
    of |= {"CLUSTERGATE_RUN_OPTIONS": "--benchmarks PingPong --sizes 8\n--budget 10s"}
    ended = pipelines.run(**of)
    # So few rounds may decide nothing.
    assert ended["clustergate ab"] in (0, 2), pipelines.told
    assert (pipelines.folder / "clustergate-results" / "comparison.csv").is_file(), pipelines.told


def test_a_baseline_is_proposed_once(pipelines):
    of = {"CLUSTERGATE_RUN": "baseline", "CLUSTERGATE_RUN_ON": "local"}
    assert pipelines.run(**of)["clustergate baseline"] == 2, pipelines.told
    store_runs(pipelines.home, STEADY)
    for said in ("proposed as the branch", "proposed already"):
        assert pipelines.run(**of)["clustergate baseline"] == 0, pipelines.told
        assert said in pipelines.told
    assert git(pipelines.server, "branch", "--list", "clustergate/*").count("baseline-local-") == 1


def test_a_misspelt_run_is_told(pipelines):
    ended = pipelines.run(CI_PIPELINE_SOURCE="schedule", CLUSTERGATE_RUN="maintenence")
    assert ended == {"clustergate request": 2}, pipelines.told
    assert "CLUSTERGATE_RUN=maintenence" in pipelines.told
