"""The action for GitHub and the Jenkinsfile, run as far as can be without either."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from clustergate.core.paths import checkout
from clustergate.report.verdicts import as_json
from tests.builders import case, figure, run

ACTION = checkout() / "ci" / "github" / "action.yml"
JENKINSFILE = checkout() / "ci" / "jenkins" / "Jenkinsfile"
RUN = "20261122T212341Z-r1"
# It says how it was called, leaves a run where that is to be copied, and ends as it is told.
STAND_IN = """\
#!/bin/bash
echo "$*" >>{log}
[ "$1" != export ] || {{ echo "said of $2"; exit 0; }}
while [ $# -gt 0 ]; do
    if [ "$1" = --copy-to ]; then mkdir -p "$2/{run}" && cp {verdicts} "$2/{run}/"; fi
    shift
done
exit ${{ENDS:-0}}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return a suite that calls a stand-in, which writes to ``calls`` beside it."""
    folder = tmp_path / "suite"
    shutil.copytree(checkout() / "ci" / "github", folder / "ci" / "github")
    (folder / "Makefile").write_text(".venv/ready:\n\t@echo set up\n")
    verdicts = tmp_path / "verdicts.json"
    verdicts.write_text(json.dumps(as_json(run(case(figures=(figure(),)), run_id=RUN))))
    command = folder / ".venv" / "bin" / "clustergate"
    command.parent.mkdir(parents=True)
    command.write_text(STAND_IN.format(log=tmp_path / "calls", run=RUN, verdicts=verdicts))
    command.chmod(0o755)
    return folder


def calls(suite: Path) -> list[str]:
    return (suite.parent / "calls").read_text().splitlines()


def run_action(
    suite: Path, ends: int = 0, **given: str
) -> tuple[list[subprocess.CompletedProcess[str]], Path]:
    """Run the steps of the action as a runner does, until one fails; return them and the folder."""
    action = yaml.safe_load(ACTION.read_text())
    inputs = {name: one["default"] for name, one in action["inputs"].items()} | given
    work = suite.parent / "work"
    work.mkdir(exist_ok=True)
    ended = []
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "what a workflow gives would be a part of the script"
        own = {
            name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]
            for name, value in step.get("env", {}).items()
        }
        environment = {
            **os.environ,
            "GITHUB_ACTION_PATH": str(suite / "ci" / "github"),
            "GITHUB_WORKSPACE": str(work),
            "GITHUB_OUTPUT": str(work / "output"),
            "GITHUB_STEP_SUMMARY": str(work / "summary"),
            "ENDS": str(ends),
            **own,
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        one = subprocess.run(
            command, cwd=work, env=environment, text=True, capture_output=True, check=False
        )
        ended.append(one)
        if one.returncode:
            break
    return ended, work


def test_the_action_holds_to_the_schema_of_github(tmp_path):
    def lint(file: Path) -> int:
        command = [sys.executable, "-m", "check_jsonschema"]
        command += ["--builtin-schema", "vendor.github-actions", str(file)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert lint(ACTION) == 0
    wrong = tmp_path / "action.yml"
    wrong.write_text(ACTION.read_text().replace("using: composite", "uses: composite"))
    assert lint(wrong) == 1


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_step_ends_as_the_command_does_and_its_page_says_why(suite, status):
    ended, work = run_action(suite, status, command="gate", arguments="--site alpha --budget 20m")
    assert [one.returncode for one in ended] == [0, status], ended[-1].stderr
    assert calls(suite) == [
        "gate --site alpha --budget 20m --copy-to clustergate-results",
        f"export {RUN} --format markdown",
    ]
    assert (work / "output").read_text() == f"exit-status={status}\n"
    assert (work / "summary").read_text() == f"said of {RUN}\n"
    # A later step of the job does not say it of an earlier run again.
    run_action(suite, status)
    assert len(calls(suite)) == 3


def test_what_a_workflow_gives_is_no_command(suite):
    ended, work = run_action(suite, arguments="; touch caught $(touch caught) *")
    assert ended[-1].returncode == 0
    assert not (work / "caught").exists()
    assert calls(suite)[0] == "check ; touch caught $(touch caught) * --copy-to clustergate-results"
    ended, _ = run_action(suite, command="prune --yes")
    assert ended[-1].returncode == 2
    assert "command is check, gate, screen, node or judge" in ended[-1].stdout
    assert len(calls(suite)) == 2


# What a Jenkinsfile calls, each as far as it goes without a Jenkins: `sh` really runs, as it does
# there, with the parameters and the environment as variables. A later stage runs if none failed.
JENKINS = """\
status = 0
params = [:]
said = []
where = null
void agent(Closure body) { where = body }
void label(Object name) { said << "label $name" }
void options(Closure body) { body() }
void disableConcurrentBuilds() {}
void timeout(Map by) {}
void parameters(Closure body) { body(); where() }
void string(Map of) { params[of.name] = System.getenv("GIVEN_$of.name") ?: of.defaultValue }
void choice(Map of) { params[of.name] = System.getenv("GIVEN_$of.name") ?: of.choices[0] }
void environment(Closure body) { body() }
void stages(Closure body) { body() }
void stage(String name, Closure body) { if (status == 0) body() }
void steps(Closure body) { body() }
void post(Closure body) { body() }
void always(Closure body) { body() }
void junit(Map of) { said << "junit $of.testResults" }
void archiveArtifacts(Map of) { said << "archive $of.artifacts" }
void pipeline(Closure body) { body() }
void sh(String text) {
    def process = new ProcessBuilder('sh', '-e', '-c', text).inheritIO()
    params.each { name, value -> process.environment()[name] = value }
    process.environment()['RESULTS'] = RESULTS
    status = process.start().waitFor()
}
"""


def run_jenkinsfile(suite: Path, ends: int = 0, **given: str) -> tuple[int, str]:
    """Run the Jenkinsfile; return how it ended, and what it had kept."""
    java = shutil.which("java")
    if java is None or shutil.which("groovy") is None:
        pytest.skip("groovy or java is not installed: apt-get install groovy default-jre-headless")
    work = suite.parent / "work"
    work.mkdir(exist_ok=True)
    script = suite.parent / "run.groovy"
    end = '\nprintln(said.join("\\n"))\nSystem.exit(status)\n'
    script.write_text(JENKINS + JENKINSFILE.read_text() + end)
    own: Mapping[str, Any] = {f"GIVEN_{name}": value for name, value in given.items()}
    environment = {**os.environ, "ENDS": str(ends), "GIVEN_SUITE": str(suite), **own}
    environment["JAVA_HOME"] = str(Path(java).resolve().parents[1])
    ended = subprocess.run(
        ["groovy", str(script)],
        cwd=work,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_jenkins_job_ends_as_the_gate_does_and_keeps_its_results(suite, status):
    ended, said = run_jenkinsfile(suite, status, SYSTEM="alpha", ARGUMENTS="--budget 20m *")
    assert ended == status, said
    assert calls(suite) == ["gate --site alpha --copy-to clustergate-results --budget 20m *"]
    assert said.splitlines()[-3:] == [
        "label alpha",
        "junit clustergate-results/**/junit.xml",
        "archive clustergate-results/**",
    ]


def test_a_jenkins_job_without_a_system_takes_the_one_that_fits(suite):
    ended, said = run_jenkinsfile(suite, COMMAND="check")
    assert ended == 0, said
    assert calls(suite) == ["check --copy-to clustergate-results"]
    assert "label clustergate" in said
