"""Every job of the example, in each kind of pipeline, with a stand-in for the suite."""

import http.server
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from clustergate.core.model import Verdict
from clustergate.report.verdicts import as_json
from tests.builders import case, figure, run
from tests.conftest import serving
from tests.pipelines import (
    EXAMPLE,
    GITLAB,
    commit,
    extended,
    git,
    jobs,
    make_project,
    merged,
    run_script,
    selected,
)

RUN = "20261122T212341Z-r1"

# What a pipeline is begun by, and the calls of the suite that its jobs come to, in their order.
SCHEDULE = {"CI_PIPELINE_SOURCE": "schedule"}
OF_MERGE_REQUEST = {
    "CI_PIPELINE_SOURCE": "merge_request_event",
    "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "1",
}
STACKS = {"alpha": ["intel-mpi", "mpich", "openmpi"], "beta": ["spack-mvapich2", "spack-openmpi"]}
BUILDS = [
    f"setup --site {system} --stack {stack} --required"
    for system, stacks in STACKS.items()
    for stack in stacks
]
SMOKES = [
    f"check --strict --site {system} --mode smoke --copy-to RESULTS --stack {stack}"
    for system, stacks in STACKS.items()
    for stack in stacks
]
GATES = [f"gate --site {system} --copy-to RESULTS" for system in STACKS]
KINDS: dict[str, tuple[dict[str, str], list[str]]] = {
    "schedule": (SCHEDULE, [*BUILDS, *GATES]),
    "maintenance": ({"CLUSTERGATE_RUN": "maintenance"}, [*BUILDS, *GATES]),
    "clicks": (
        {"CI_PIPELINE_SOURCE": "web", "CI_JOB_MANUAL": "true"},
        [gate for gate, stacks in zip(GATES, STACKS.values(), strict=True) for _ in stacks],
    ),
    "merge request": (OF_MERGE_REQUEST, ["make ready-dev", "dry-run", *BUILDS, *SMOKES]),
    "merge request of a fork": (
        {**OF_MERGE_REQUEST, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "2"},
        ["make ready-dev", "dry-run"],
    ),
    "push": ({"CI_PIPELINE_SOURCE": "push"}, ["make ready-dev", "dry-run"]),
    "ab": (
        {
            "CLUSTERGATE_RUN": "ab",
            "CLUSTERGATE_RUN_ON": "alpha",
            "CLUSTERGATE_RUN_STACKS": "mpich openmpi",
        },
        ["ab --site alpha --a mpich --b openmpi --csv RESULTS/comparison.csv --copy-to RESULTS"],
    ),
    "baseline": (
        {"CLUSTERGATE_RUN": "baseline", "CLUSTERGATE_RUN_ON": "beta"},
        ["baseline --site beta"],
    ),
    "misspelt": ({**SCHEDULE, "CLUSTERGATE_RUN": "maintenence"}, []),
}
ENDS = {"misspelt": 2}

# It writes down what it was called for, and does what leaves something that a job takes up.
STAND_IN = """\
#!/bin/bash
case $1 in
list | site) exec {real} "$@" ;;
setup) mkdir -p "$CLUSTERGATE_HOME/manifests" && echo {{}} >"$CLUSTERGATE_HOME/manifests/$5.json" ;;
baseline) mkdir -p references && echo "# new" >>references/beta.yaml && echo "1 new reference" ;;
esac
echo "$*" >>{log}
"""
# The suite's targets: the stand-in, where the environment would be.
MAKEFILE = """\
.venv/ready:
\t@mkdir -p .venv/bin && cp stand-in .venv/bin/clustergate
\t@cd .venv/bin && ln -s {real}/ruff {real}/check-jsonschema .
\t@touch $@
.venv/ready-dev: .venv/ready
\t@echo make ready-dev >>{log} && touch $@
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project of the example whose suite is to be fetched from a repository beside it."""
    project = make_project(tmp_path)
    suite, log = tmp_path / "suite", tmp_path / "calls"
    shutil.rmtree(suite / ".venv")
    real, log_word = shlex.quote(str(Path(sys.executable).parent)), shlex.quote(str(log))
    (suite / "Makefile").write_text(MAKEFILE.format(real=real, log=log_word))
    (suite / "stand-in").write_text(STAND_IN.format(real=f"{real}/clustergate", log=log_word))
    (suite / "stand-in").chmod(0o755)
    git(suite, "init", "--quiet", "--initial-branch=main")
    commit(suite, "a suite")
    log.touch()
    return project


def expanded(text: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda found: variables.get(found[1], ""), text)


def instances(job: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the variables of each job that a matrix makes of one."""
    for entry in job.get("parallel", {}).get("matrix", [{}]):
        lists = [[one] if isinstance(one, str) else one for one in entry.values()]
        for values in itertools.product(*lists):
            yield dict(zip(entry, values, strict=True))


def run_pipeline(
    project: Path, given: Mapping[str, str]
) -> list["subprocess.CompletedProcess[str]"]:
    """Run the jobs of a pipeline after one another, each as a runner's shell does."""
    pipeline = merged(EXAMPLE)
    top = {
        "CI_PROJECT_DIR": str(project),
        "CI_PROJECT_ID": "1",
        "CI_PIPELINE_ID": "7",
        "CI_JOB_ID": "70",
        "CI_SERVER_URL": "https://gitlab.example",
        "CI_JOB_TOKEN": "job-token",
        "CI_COMMIT_BRANCH": "main",
        "CI_DEFAULT_BRANCH": "main",
        "CLUSTERGATE_PUSH_TO": str(project.parent / "server.git"),
        **given,
        "CLUSTERGATE_PROJECT": (project.parent / "suite").as_uri(),
    }
    own = {k: v for k, v in os.environ.items() if not k.startswith(("CI_", "CLUSTERGATE_", "GIT"))}
    ended = []
    for name in selected(pipeline, {**top, **given}):
        job = extended(pipeline, name)
        for of_matrix in instances(job):
            declared = {
                key: value["value"] if isinstance(value, dict) else value
                for key, value in {**pipeline["variables"], **job.get("variables", {})}.items()
            }
            variables = {**declared, **top, **of_matrix}
            variables = {key: expanded(value, variables) for key, value in variables.items()}
            variables["CLUSTERGATE_HOME"] = str(project.parent / "home")
            variables["CI_JOB_NAME"] = f"{name}: {[*of_matrix.values()]}"
            for key in ("resource_group", "tags"):
                assert "$" not in expanded(str(job.get(key, "")), variables)
            shutil.rmtree(project / "clustergate-results", ignore_errors=True)
            lines = [*job["before_script"], *job["script"]]
            command = ["bash", "-eo", "pipefail", "-c", "\n".join(lines)]
            ended.append(
                subprocess.run(
                    command,
                    cwd=project,
                    env={**own, **variables},
                    capture_output=True,
                    text=True,
                    check=False,
                )
            )
    return ended


@pytest.mark.parametrize("kind", KINDS)
def test_every_job_of_the_example_calls_the_suite(project, tmp_path, kind):
    given, calls = KINDS[kind]
    ended = run_pipeline(project, given)
    assert ended
    for one in ended:
        assert one.returncode == ENDS.get(kind, 0), one.stdout + one.stderr
        assert "job-token" not in one.stdout + one.stderr
    results = str(project / "clustergate-results")
    called = (tmp_path / "calls").read_text().replace(results, "RESULTS").splitlines()
    assert called == calls
    # The jobs of the other stacks end as the gate of their system did, if nobody clicked on them.
    shared = [one for one in ended if "were judged" in one.stdout]
    assert len(shared) == (3 if calls[-2:] == GATES else 0)
    if kind == "baseline":
        assert "clustergate/baseline-beta-70" in git(tmp_path / "server.git", "branch")


def test_no_job_is_of_no_kind():
    pipeline = merged(GITLAB / "clustergate.yml")
    every = [{"CI_PROJECT_ID": "1", **given} for given, _ in KINDS.values()]
    found = {name for given in every for name in selected(pipeline, given)}
    assert found == {name for name in jobs(pipeline) if not name.startswith(".")}


def test_a_merge_request_is_told_what_a_run_says_and_the_job_ends_as_the_run_did(tmp_path):
    project = make_project(tmp_path)
    said: list[tuple[str, str]] = []

    def noted(to: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        said.append((to.path.partition("?")[0], body.decode()))
        to.send_response(200)
        to.end_headers()
        to.wfile.write(b"[]")

    one = case(figures=(figure(verdict=Verdict.REGRESSION, sentence="14 % slower"),))
    verdicts = tmp_path / "verdicts.json"
    verdicts.write_text(json.dumps(as_json(run(one, run_id=RUN))))
    real = shlex.quote(str(Path(sys.executable).parent / "clustergate"))
    command = tmp_path / "suite" / ".venv" / "bin" / "clustergate"
    command.write_text(
        f'#!/bin/bash\n[ "$1" = check ] || exec {real} "$@"\n'
        f"for to in $CLUSTERGATE_HOME/results/runs $CI_PROJECT_DIR/clustergate-results; do\n"
        f"mkdir -p $to/{RUN} && cp {verdicts} $to/{RUN}/\ndone\nexit 1\n"
    )
    given = {"CI_MERGE_REQUEST_IID": "5", "CI_PROJECT_ID": "3"}
    with serving(noted) as url:
        ended = run_script(
            project, "job", "smoke", **given, CI_SERVER_URL=url, CLUSTERGATE_GITLAB_TOKEN="secret"
        )
    assert ended.returncode == 1, ended.stderr
    assert "secret" not in ended.stdout + ended.stderr
    assert {path for path, _ in said} == {"/api/v4/projects/3/merge_requests/5/notes"}
    assert "regression" in json.loads(said[-1][1])["body"]
    results = project / "clustergate-results"
    metrics = (results / "metrics.txt").read_text()
    assert "clustergate_figure_ok{" in metrics
    assert "_timestamp_seconds" not in metrics
    # A GitLab that is down changes no verdict.
    shutil.rmtree(results)
    ended = run_script(
        project, "job", "smoke", **given, CI_SERVER_URL=url, CLUSTERGATE_GITLAB_TOKEN="secret"
    )
    assert ended.returncode == 1
    assert f"{url}/api/v4/projects/3/merge_requests/5/notes" in ended.stderr
    assert "did not take it" in ended.stderr
