"""The GitLab pipelines as data, and a site's project with a stand-in of the suite beside it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from clustergate.core.paths import checkout

GITLAB = checkout() / "ci" / "gitlab"
EXAMPLE = GITLAB / "example" / ".gitlab-ci.yml"
PIPELINES = [*sorted(GITLAB.glob("*.yml")), EXAMPLE]
JOB = GITLAB / "job"
KEYWORDS = ("include", "stages", "variables")


class Loader(yaml.SafeLoader):
    """YAML with GitLab's own tag."""


def sequence(loader: Loader, node: yaml.SequenceNode) -> list[Any]:
    return loader.construct_sequence(node)


Loader.add_constructor("!reference", sequence)


def load(path: Path) -> dict[str, Any]:
    found = yaml.load(path.read_text(encoding="utf-8"), Loader)
    assert isinstance(found, dict)
    return found


def included(path: Path) -> list[Path]:
    """Return the files that a pipeline includes, as they lie in the clone."""
    found = []
    for include in load(path).get("include", []):
        names = include.get("local") or include["file"]
        found += [checkout() / name for name in ([names] if isinstance(names, str) else names)]
    return found


def merged(path: Path) -> dict[str, Any]:
    """Return a pipeline with what it includes, its own keys before those of its includes."""
    found: dict[str, Any] = {}
    for file in included(path):
        found |= merged(file)
    own = load(path)
    variables = {**found.get("variables", {}), **own.get("variables", {})}
    return {**found, **own, "variables": variables}


def jobs(pipeline: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: job for name, job in pipeline.items() if name not in KEYWORDS}


def extended(pipeline: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a job with the keys of those that it extends; raises KeyError for one that is none."""
    bases = pipeline[name].get("extends", [])
    found: dict[str, Any] = {}
    for base in [bases] if isinstance(bases, str) else bases:
        found |= extended(pipeline, base)
    return {**found, **pipeline[name]}


def git(folder: Path, *arguments: object) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    command = ["git", "-C", str(folder), *identity, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def make_project(tmp_path: Path) -> Path:
    """Return a site's own project with a server, whose suite is beside it.

    Its `clustergate` is the real one, but for the commands that would measure: those say how they
    were called. What `list` answers of the same site configs is asked once for all tests.
    """
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    suite = tmp_path / "suite"
    (suite / "ci").mkdir(parents=True)
    (suite / ".venv" / "bin").mkdir(parents=True)
    shutil.copytree(GITLAB, suite / "ci" / "gitlab")
    real = Path(sys.executable).parent
    for name in ("ruff", "check-jsonschema"):
        (suite / ".venv" / "bin" / name).symlink_to(real / name)
    command = suite / ".venv" / "bin" / "clustergate"
    command.write_text(
        '#!/bin/bash\ncase $1 in\ncheck | gate | setup | ab) echo "called: $*" ;;\n'
        f"list)\nreal={shlex.quote(str(real / 'clustergate'))}\n"
        f'known={shlex.quote(str(tmp_path.parent))}/$({{ echo "$*"\n'
        'cat "$CLUSTERGATE_SITE_FOLDER"/site_configs/*.py; } | sha256sum | cut -c1-16)\n'
        'if [ ! -f "$known" ]; then\n"$real" "$@" >"$known.$$" || exit $?\n'
        'mv "$known.$$" "$known"\nfi\nexec cat "$known" ;;\n'
        f'*) exec {shlex.quote(str(real / "clustergate"))} "$@" ;;\nesac\n'
    )
    command.chmod(0o755)
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLE.parent, folder)
    (folder / "site_configs" / "local.py").write_bytes(
        (checkout() / "site_configs" / "local.py").read_bytes()
    )
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "server.git")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "remote", "add", "origin", tmp_path / "server.git")
    commit(folder, "begin")
    git(folder, "push", "--quiet", "origin", "main")
    return folder


def commit(folder: Path, message: str) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", f"--message={message}")
    return git(folder, "rev-parse", "HEAD")


def run_script(
    project: Path, name: str, *arguments: str, **variables: str
) -> "subprocess.CompletedProcess[str]":
    own = {k: v for k, v in os.environ.items() if not k.startswith(("CI_", "CLUSTERGATE_", "GIT"))}
    given = {
        "CI_PROJECT_DIR": str(project),
        "CLUSTERGATE_HOME": str(project.parent / "home"),
        "CLUSTERGATE_SYSTEM": "local",
        "CLUSTERGATE_STACK": "mpich",
    }
    return subprocess.run(
        [project.parent / "suite" / "ci" / "gitlab" / name, *arguments],
        env={**own, **given, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def fetch_suite(tmp_path: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run what a job runs before its script, with a project of its own, up to make."""
    (script, made) = load(GITLAB / "base.yml")[".clustergate"]["before_script"]
    assert made.startswith("make ")
    own = {k: v for k, v in os.environ.items() if not k.startswith(("CI_", "CLUSTERGATE_", "GIT"))}
    given = {
        "CI_PROJECT_DIR": str(tmp_path),
        "CI_SERVER_URL": "https://gitlab.example",
        "CI_JOB_TOKEN": "job-token",
        "CLUSTERGATE_REF": "main",
    }
    return subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=tmp_path,
        env={**own, **given, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


_TERM = re.compile(r'\$(\w+)(?: (==|!=) (?:"([^"]*)"|\$(\w+))| (=~|!~) /(.*)/)?$')


def _holds(term: str, variables: Mapping[str, str]) -> bool:
    found = _TERM.match(term.strip())
    assert found, term
    name, how, text, other, matches, pattern = found.groups()
    value = variables.get(name)
    if how:
        is_same = value == (variables.get(other) if other else text)
        return is_same if how == "==" else not is_same
    if matches:
        is_found = re.search(pattern, value or "") is not None
        return is_found if matches == "=~" else not is_found
    return bool(value)


def selected(pipeline: dict[str, Any], given: Mapping[str, str]) -> list[str]:
    """Return the jobs that a pipeline has with these variables, on the default branch, in order."""
    usual = {
        name: value["value"] if isinstance(value, dict) else value
        for name, value in pipeline["variables"].items()
    }
    branch = {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}
    if given.get("CI_PIPELINE_SOURCE") == "merge_request_event":
        del branch["CI_COMMIT_BRANCH"]
    variables = {**usual, **branch, **given}
    found = [
        name
        for name in jobs(pipeline)
        if not name.startswith(".")
        and any(
            all(_holds(term, variables) for term in rule["if"].split("&&"))
            for rule in extended(pipeline, name)["rules"]
        )
    ]
    stages = pipeline["stages"]
    return sorted(found, key=lambda name: stages.index(extended(pipeline, name)["stage"]))
