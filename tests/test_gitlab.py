"""The GitLab pipelines: what can be told of them without a GitLab."""

import datetime
import http.server
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks.registry import every_check
from clustergate.cli import main
from clustergate.core import store
from clustergate.core.paths import checkout
from clustergate.judge.references.lookup import load_references
from clustergate.sites import configs as sites
from tests.builders import built, ping, record
from tests.pipelines import (
    EXAMPLE,
    GITLAB,
    JOB,
    PIPELINES,
    commit,
    extended,
    fetch_suite,
    git,
    included,
    jobs,
    make_project,
    merged,
    run_script,
)


def systems_and_stacks(pipeline: dict[str, Any]) -> set[tuple[str, str]]:
    def as_list(value: str | list[str]) -> list[str]:
        return [value] if isinstance(value, str) else value

    return {
        (system, stack)
        for entry in pipeline[".clustergate-systems"]["parallel"]["matrix"]
        for system in as_list(entry["CLUSTERGATE_SYSTEM"])
        for stack in as_list(entry["CLUSTERGATE_STACK"])
    }


def lint(*files: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.gitlab-ci"]
    command += ["--data-transform", "gitlab-ci", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_pipeline_holds_to_the_schema_of_gitlab():
    ended = lint(*PIPELINES)
    assert ended.returncode == 0, ended.stdout


def test_the_schema_refuses_what_is_no_pipeline(tmp_path):
    text = (GITLAB / "smoke.yml").read_text()
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(text.replace("  script:", "  scripts:"))
    assert lint(wrong).returncode == 1


def test_one_file_includes_all_others():
    found: set[Path] = set()
    waiting = [GITLAB / "clustergate.yml"]
    while waiting:
        path = waiting.pop()
        assert path.is_file()
        if path not in found:
            found.add(path)
            waiting += included(path)
    assert found == set(GITLAB.glob("*.yml"))
    assert included(EXAMPLE) == [GITLAB / "clustergate.yml"]


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: str(path.relative_to(GITLAB)))
def test_each_file_is_whole_by_itself(path):
    """Jobs extend what there is, in stages that there are, with variables that are declared."""
    pipeline = merged(path)
    for name in jobs(pipeline):
        job = extended(pipeline, name)
        if name.startswith("."):
            continue
        assert job["stage"] in pipeline["stages"]
        assert job["rules"], f"{name} would run in every pipeline"
        known = {*pipeline["variables"], *job.get("variables", {})}
        for entry in job.get("parallel", {}).get("matrix", []):
            known |= set(entry)
        words = [rule["if"] for rule in job["rules"]] + job.get("tags", [])
        words += [job.get("resource_group", ""), str(job["cache"])]
        for variable in re.findall(r"\$(\w+)", " ".join(words)):
            assert variable in known or variable.startswith("CI_"), f"{name}: {variable}"


def test_what_measures_has_its_system_to_itself_and_is_kept():
    pipeline = merged(GITLAB / "clustergate.yml")
    for name in ("clustergate smoke", "clustergate maintenance", "clustergate ab"):
        job = extended(pipeline, name)
        assert re.fullmatch(r"clustergate-\$CLUSTERGATE_(SYSTEM|RUN_ON)", job["resource_group"])
        assert job["tags"]
        assert job["artifacts"]["when"] == "always"
        assert job["artifacts"]["reports"]["junit"] == "clustergate-results/**/junit.xml"


def test_no_merge_request_from_a_fork_runs_on_a_cluster():
    pipeline = merged(GITLAB / "clustergate.yml")
    for name in jobs(pipeline):
        job = extended(pipeline, name)
        if not job.get("tags"):
            continue
        for rule in job.get("rules", []):
            if "merge_request_event" in rule["if"]:
                assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in rule["if"]


def test_scripts_are_there_and_know_what_they_are_asked_for():
    known = subprocess.run([JOB], capture_output=True, text=True, check=False)
    assert known.returncode == 2
    words = known.stderr.split(";")[0].replace("clustergate: job ", "").split(" | ")
    asked = set()
    for name, job in jobs(merged(GITLAB / "clustergate.yml")).items():
        for line in job.get("script", []):
            script, *arguments = shlex.split(line)
            if script == "make":
                continue
            path = Path(script.replace("$suite", str(checkout())))
            assert os.access(path, os.X_OK), f"{name}: {path}"
            asked |= set(arguments)
    assert asked == set(words)


def test_matrices_name_systems_and_stacks_that_there_are():
    for pipeline, folder in ((EXAMPLE, EXAMPLE.parent), (GITLAB / "clustergate.yml", checkout())):
        for system, stack in systems_and_stacks(merged(pipeline)):
            site = sites.load(folder / "site_configs" / f"{system}.py")
            assert site.name == system
            assert stack in [one.name for one in site.stacks]


# --- what the jobs run ------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def test_smoke_runs_every_check_where_there_is_no_merge_request(project):
    ended = run_script(project, "job", "smoke", CLUSTERGATE_REFRAME_OPTIONS="-S n=1000")
    results = project / "clustergate-results"
    assert ended.stdout.splitlines() == [
        "this is no merge request: every check runs",
        f"called: check --strict --site local --mode smoke --copy-to {results} --stack mpich "
        "-- -S n=1000",
    ]


@pytest.mark.parametrize(
    ("changed", "measures"),
    [
        (["README.md", "docs/x.txt"], False),
        (["reframe_checks/hpl.py", "docs/x.md"], True),
        (["site_configs/local.py"], True),
    ],
)
def test_smoke_of_a_merge_request_measures_what_it_may_change(project, changed, measures):
    base = git(project, "rev-parse", "HEAD")
    for name in changed:
        (project / name).parent.mkdir(exist_ok=True)
        with (project / name).open("a") as file:
            file.write("\n")
    commit(project, "change")
    ended = run_script(project, "job", "smoke", CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
    assert ended.returncode == 0, ended.stderr
    called = [line for line in ended.stdout.splitlines() if line.startswith("called: ")]
    assert len(called) == measures
    assert measures or "no check depends on what the merge request changes" in ended.stdout


def test_smoke_measures_where_a_file_was_moved_out_of_the_way(project):
    base = git(project, "rev-parse", "HEAD")
    (project / "docs").mkdir(exist_ok=True)
    git(project, "mv", "site_configs/local.py", "docs/local.txt")
    commit(project, "change")
    ended = run_script(project, "job", "smoke", CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
    assert "called: check --strict" in ended.stdout


def test_smoke_runs_every_check_when_nobody_knows_what_changed(project):
    ended = run_script(project, "job", "smoke", CI_MERGE_REQUEST_DIFF_BASE_SHA="1" * 40)
    assert "what the merge request changes cannot be told: every check runs" in ended.stdout
    assert "called: check --strict --site local --mode smoke" in ended.stdout
    assert "--check" not in ended.stdout.replace("called: check", "")


def test_smoke_of_a_shallow_clone_fetches_the_merge_base(project, tmp_path):
    base = git(project, "rev-parse", "HEAD")
    (project / "README.md").write_text("more\n")
    commit(project, "change")
    git(project, "push", "--quiet", "origin", "main")
    server = (tmp_path / "server.git").as_uri()
    shutil.rmtree(project)
    git(tmp_path, "clone", "--quiet", "--depth=1", server, project)
    ended = run_script(project, "job", "smoke", CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
    assert "no check depends on what the merge request changes" in ended.stdout, ended.stderr


def test_a_job_without_its_system_says_what_to_do(project):
    ended = run_script(project, "job", "maintenance", CLUSTERGATE_SYSTEM="")
    assert ended.returncode == 2
    assert ended.stderr.startswith("clustergate: CLUSTERGATE_SYSTEM is empty; ")


def test_maintenance_is_the_gate_and_another_mode_a_run_of_it(project):
    results = project / "clustergate-results"
    ended = run_script(project, "job", "maintenance", CLUSTERGATE_REFRAME_OPTIONS="-S n=1000")
    assert ended.stdout == (f"called: gate --site local --copy-to {results} -- -S n=1000\n")
    ended = run_script(project, "job", "maintenance", CLUSTERGATE_BUDGET="20m")
    assert ended.stdout == f"called: gate --site local --copy-to {results} --budget 20m\n"
    ended = run_script(project, "job", "maintenance", CLUSTERGATE_MODE="acceptance")
    assert ended.stdout == (
        f"called: check --strict --site local --mode acceptance --copy-to {results} --stack mpich\n"
    )


def test_gate_of_a_system_runs_once_for_all_jobs(project):
    """The gate of a system runs once in a pipeline and is the answer of all its jobs."""

    def job(stack: str, pipeline: str = "7") -> "subprocess.CompletedProcess[str]":
        named = {"CI_JOB_NAME": f"clustergate maintenance: [local, {stack}]"}
        ids = {"CI_PIPELINE_ID": pipeline, "CLUSTERGATE_STACK": stack}
        return run_script(project, "job", "maintenance", **named, **ids)

    fake = project.parent / "suite" / ".venv" / "bin" / "clustergate"
    closed = fake.read_text() + "\nexit 1\n"
    fake.write_text(closed)
    first = job("mpich")
    assert (first.returncode, "called: gate --site local" in first.stdout) == (1, True)
    other = job("openmpi")
    assert (other.returncode, "called" in other.stdout) == (1, False)
    told = 'all stacks of local were judged by the job "clustergate maintenance: [local, mpich]"'
    assert told in other.stdout
    # The job that ran it runs it again when it is retried, and so does another pipeline.
    assert "called: gate --site local" in job("mpich").stdout
    assert "called: gate --site local" in job("openmpi", "8").stdout


@pytest.mark.parametrize("stacks", ["mpich", "mpich openmpi intel-mpi"])
def test_a_comparison_wants_two_stacks(project, stacks):
    ended = run_script(project, "job", "ab", CLUSTERGATE_RUN_STACKS=stacks)
    assert ended.returncode == 2
    assert "CLUSTERGATE_RUN_STACKS names two stacks" in ended.stderr


def test_a_comparison_is_one_call(project):
    given = {"CLUSTERGATE_RUN_STACKS": "mpich openmpi", "CLUSTERGATE_RUN_OPTIONS": "--budget 1m"}
    ended = run_script(project, "job", "ab", **given)
    results = project / "clustergate-results"
    assert ended.stdout == (
        f"called: ab --site local --a mpich --b openmpi --csv {results / 'comparison.csv'} "
        f"--copy-to {results} --budget 1m\n"
    )


def test_lint_reads_the_files_of_a_site(project):
    assert run_script(project, "job", "lint").returncode == 0
    (project / "site_configs" / "alpha.py").write_text("site_configuration = confguration()\n")
    assert run_script(project, "job", "lint").returncode == 1


# --- proposing references ---------------------------------------------------------------------

FIGURE = ("ImbMpi1Check", "local:node", "mpich", "2-ranks-packed", "smoke")
PROPOSED = re.compile("proposed as the branch (clustergate/baseline-local-[0-9]+)")


def store_runs(home: Path, values: tuple[float, ...], day: int = 1) -> None:
    """Store runs, two hours apart, whose only case says that one figure has these values."""
    for number, value in enumerate(values):
        samples = (ping(value * (1 + order / 100), order=order) for order in range(3))
        started = datetime.datetime(2026, 11, day, 2 * number)
        run_id = f"{started:%Y%m%dT%H%M%SZ}-{number}"
        store.write_case(run_id, record(*samples, details=built()), home)


def branches(project: Path) -> list[str]:
    listed = git(project.parent / "server.git", "branch", "--list", "--format=%(refname:short)")
    return listed.splitlines()


def propose(project: Path, job: str = "7", **variables: str) -> "subprocess.CompletedProcess[str]":
    given = {"CLUSTERGATE_PUSH_TO": str(project.parent / "server.git"), "CI_JOB_ID": job}
    return run_script(project, "propose-baseline", **{**given, **variables})


STEADY = (1.003, 0.998, 1.001, 0.997, 1.002, 0.999, 1.0, 1.004)


def test_a_baseline_becomes_a_branch_and_nothing_else_changes(project, tmp_path):
    store_runs(tmp_path / "home", STEADY)
    before = git(project, "rev-parse", "HEAD")
    ended = propose(project)
    assert ended.returncode == 0, ended.stderr
    assert PROPOSED.search(ended.stdout)
    assert branches(project) == ["clustergate/baseline-local-7", "main"]
    server = tmp_path / "server.git"
    assert git(server, "rev-parse", "main") == before
    changed = git(server, "diff", "--name-only", "main", "clustergate/baseline-local-7")
    assert changed == "references/local.yaml"
    assert git(server, "rev-list", "--count", "main..clustergate/baseline-local-7") == "1"
    body = git(server, "log", "-1", "--format=%B", "clustergate/baseline-local-7")
    assert "\nreferences/local.yaml has 1 new reference from 8 runs, " in body
    # The runner's own checkout is as it was, but for the artifact.
    assert git(project, "status", "--porcelain") == "?? clustergate-results/"
    assert git(project, "worktree", "list").count("\n") == 0
    proposed = tmp_path / "local.yaml"
    proposed.write_text(git(server, "show", "clustergate/baseline-local-7:references/local.yaml"))
    found = load_references(proposed, every_check()).at((*FIGURE, "PingPong.2p.8B.latency_us"))
    assert found.value == min(STEADY)


def test_references_that_are_right_are_not_proposed_again(project, tmp_path):
    store_runs(tmp_path / "home", STEADY)
    assert propose(project).returncode == 0
    git(project, "pull", "--quiet", "origin", "clustergate/baseline-local-7")
    ended = propose(project, job="8")
    assert ended.returncode == 0, ended.stderr
    assert "there is nothing to propose" in ended.stdout
    assert branches(project) == ["clustergate/baseline-local-7", "main"]


def test_what_is_refused_is_no_proposal_and_a_warning(project, tmp_path):
    store_runs(tmp_path / "home", STEADY[:3])
    ended = propose(project)
    assert ended.returncode == 1
    assert branches(project) == ["main"]


def test_a_branch_that_cannot_be_pushed_is_kept_as_a_patch(project, tmp_path):
    store_runs(tmp_path / "home", STEADY)
    hook = tmp_path / "server.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho You are not allowed to push code >&2\nexit 1\n")
    hook.chmod(0o755)
    ended = propose(project, CI_JOB_TOKEN="a-secret")
    assert ended.returncode == 2
    assert branches(project) == ["main"]
    assert "You are not allowed to push code" in ended.stderr
    assert "Allow Git push requests to the repository" in ended.stderr
    assert "a-secret" not in ended.stdout + ended.stderr
    (patch,) = (project / "clustergate-results").glob("*.patch")
    git(project, "am", patch)
    assert (project / "references" / "local.yaml").is_file()


@pytest.mark.parametrize(
    "place",
    [
        *("https://evil.example/x.git", "http://gitlab.example/x.git", "--receive-pack=touch x"),
        *("https://gitlab.example.evil.example/x", "https://a:secret@evil.example/x", "x"),
    ],
)
def test_references_are_pushed_nowhere_but_to_this_gitlab(project, tmp_path, place):
    store_runs(tmp_path / "home", STEADY)
    given = {"CI_JOB_TOKEN": "job-token", "CI_SERVER_URL": "https://gitlab.example"}
    ended = propose(project, CLUSTERGATE_PUSH_TO=place, **given)
    assert ended.returncode == 2
    assert "CLUSTERGATE_PUSH_TO" in ended.stderr
    assert "secret" not in ended.stderr
    assert not (project / "clustergate-results").exists()


def test_the_push_token_is_for_this_gitlab_alone(project, tmp_path):
    store_runs(tmp_path / "home", STEADY)
    log = recorded_git(tmp_path)
    given = {"CI_SERVER_URL": "https://gitlab.example:8443/git", "PATH": path_with(log)}
    ended = propose(project, CLUSTERGATE_PUSH_TOKEN="push-token", **given)
    assert ended.returncode == 0, ended.stderr
    assert "push-token" not in log.read_text()
    environment = {**os.environ, "CLUSTERGATE_PUSH_TOKEN": "push-token"}
    assert who_gets("push-token", log, "push", environment) == ["https://gitlab.example:8443"]


def test_a_branch_that_is_there_is_not_overwritten(project, tmp_path):
    store_runs(tmp_path / "home", STEADY)
    git(project, "push", "--quiet", "origin", "HEAD:refs/heads/clustergate/baseline-local-7")
    (project / "README.md").write_text("more\n")
    commit(project, "change")
    git(project, "push", "--quiet", "--force", "origin", "HEAD:clustergate/baseline-local-7")
    kept = git(project, "rev-parse", "HEAD")
    git(project, "reset", "--quiet", "--hard", "origin/main")
    assert propose(project).returncode == 2
    assert git(tmp_path / "server.git", "rev-parse", "clustergate/baseline-local-7") == kept


@pytest.mark.parametrize("system", ["", "../main", "--help", "local;ls", "no-such-system"])
def test_a_system_that_is_none_is_refused(project, system):
    ended = propose(project, CLUSTERGATE_SYSTEM=system)
    assert ended.returncode == 2
    assert ended.stderr.startswith("clustergate: ")
    assert branches(project) == ["main"]


# --- fetching the suite -----------------------------------------------------------------------


def recorded_git(tmp_path: Path) -> Path:
    """Return the log of a git, first on the path, that writes down how it was called."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    program = folder / "git"
    real = shlex.quote(str(shutil.which("git")))
    log = folder / "log"
    log.touch()
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\0" "$@" >>{log}\nprintf "\\n\\0" >>{log}\nexec {real} "$@"\n'
    )
    program.chmod(0o755)
    return log


def path_with(log: Path) -> str:
    return f"{log.parent}:{os.environ['PATH']}"


def who_gets(token: str, log: Path, command: str, environment: dict[str, str]) -> list[str]:
    """Return the servers that git would give a token to, by the options of a recorded call."""
    calls = [call.split("\0")[:-1] for call in log.read_text().split("\n\0")]
    words = next(call for call in calls if command in call)
    options: list[str] = []
    for flag, value in itertools.pairwise(words):
        options += [flag, value] if flag == "-c" else []
    asked = (
        *("https://gitlab.example", "https://gitlab.example:8443", "http://gitlab.example"),
        *(
            "https://evil.example",
            "https://gitlab.example.evil.example",
            "http://gitlab.example:8443",
        ),
    )
    found = []
    for url in asked:
        ended = subprocess.run(
            ["git", *options, "credential", "fill"],
            env={**environment, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "false"},
            input=f"url={url}\n\n",
            capture_output=True,
            text=True,
            check=False,
        )
        found += [url] if f"password={token}" in ended.stdout else []
    return found


@pytest.mark.parametrize("ref", ["main", "v1", "commit"])
def test_the_suite_is_fetched_from_where_a_project_says(project, tmp_path, ref):
    commit_id = git(project, "rev-parse", "HEAD")
    git(project, "push", "--quiet", "origin", "HEAD:refs/tags/v1")
    git(tmp_path / "server.git", "config", "uploadpack.allowAnySHA1InWant", "true")
    place = (tmp_path / "server.git").as_uri()
    given = {"CLUSTERGATE_REF": commit_id if ref == "commit" else ref}
    ended = fetch_suite(tmp_path, CLUSTERGATE_PROJECT=place, **given)
    assert ended.returncode == 0, ended.stderr
    assert git(tmp_path / ".clustergate-suite", "rev-parse", "HEAD") == commit_id


@pytest.mark.parametrize(
    "given",
    [
        {"CLUSTERGATE_REF": "--upload-pack=touch {mark};"},
        {"CLUSTERGATE_REF": "main:refs/heads/x"},
        {"CLUSTERGATE_PROJECT": "--upload-pack=touch {mark};"},
        {"CLUSTERGATE_PROJECT": "ext::touch {mark}"},
        {"CLUSTERGATE_PROJECT": "https://me:secret@evil.example/x.git"},
    ],
)
def test_no_variable_becomes_an_option_or_a_command(project, tmp_path, given):
    mark = tmp_path / "mark"
    words = {"CLUSTERGATE_PROJECT": str(tmp_path / "server.git"), **given}
    ended = fetch_suite(tmp_path, **{k: v.format(mark=mark) for k, v in words.items()})
    assert ended.returncode != 0
    assert not mark.exists()
    assert not (tmp_path / ".clustergate-suite" / "ci").exists()
    assert "secret" not in ended.stdout + ended.stderr
    if "ext::" not in str(given):
        (told,) = (line for line in ended.stderr.splitlines() if line.startswith("clustergate: "))
        assert "(docs/gitlab.md)" in told


@pytest.mark.parametrize(
    ("server", "gets"),
    [
        ("https://gitlab.example", ["https://gitlab.example"]),
        ("https://gitlab.example:8443/git", ["https://gitlab.example:8443"]),
        ("http://gitlab.example", []),
        ("https:///x", []),
        ("", []),
    ],
)
def test_the_job_token_is_for_this_gitlab_alone(project, tmp_path, server, gets):
    log = recorded_git(tmp_path)
    given = {"CI_SERVER_URL": server, "PATH": path_with(log)}
    ended = fetch_suite(tmp_path, CLUSTERGATE_PROJECT=(tmp_path / "server.git").as_uri(), **given)
    assert ended.returncode == 0, ended.stderr
    assert "job-token" not in log.read_text()
    environment = {**os.environ, "CI_JOB_TOKEN": "job-token"}
    assert who_gets("job-token", log, "fetch", environment) == gets


class Asking(http.server.BaseHTTPRequestHandler):
    """A server that asks whoever comes for a password, and keeps what it is told."""

    heard: list[str] = []

    def do_GET(self) -> None:
        if "Authorization" in self.headers:
            self.heard.append(self.headers["Authorization"])
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=x")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("server", ["https://gitlab.example", "http://127.0.0.1:{port}"])
def test_a_server_that_asks_for_a_password_hears_no_token(tmp_path, server):
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    with http.server.HTTPServer(("127.0.0.1", 0), Asking) as asking:
        threading.Thread(target=asking.serve_forever, daemon=True).start()
        Asking.heard.clear()
        place = f"http://127.0.0.1:{asking.server_port}/suite.git"
        given = {"CI_SERVER_URL": server.format(port=asking.server_port), "no_proxy": "127.0.0.1"}
        ended = fetch_suite(tmp_path, CLUSTERGATE_PROJECT=place, **given)
        asking.shutdown()
    assert ended.returncode != 0
    assert Asking.heard == []


@pytest.mark.parametrize("name", ["CLUSTERGATE_SYSTEM", "CLUSTERGATE_STACK"])
@pytest.mark.parametrize("value", ["--help", "../../etc/x", "a b"])
def test_a_job_takes_names_and_no_options_or_paths(project, name, value):
    ended = run_script(project, "job", "build", **{name: value})
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"clustergate: {name} is no name")
    assert "called" not in ended.stdout


# --- what a pipeline lists ------------------------------------------------------------------


def of_pipeline(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Compare a pipeline with the example's site configs; return the status and what is said."""
    file = tmp_path / ".gitlab-ci.yml"
    file.write_text(text)
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(EXAMPLE.parent))
    status = main(["site", "pipeline", str(file)])
    told = capsys.readouterr()
    return status, (told.out + told.err).replace(f"{file}", "FILE")


MATRIX = ".clustergate-systems:\n  parallel:\n    matrix:\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [\n", "FILE is no YAML: "),
        (".clustergate-systems: {parallel: 3}\n", "FILE:1: .clustergate-systems has no list"),
        (f"{MATRIX}    - CLUSTERGATE_SYSTEM: alpha\n", "FILE:4: an entry must name both "),
        (
            f"{MATRIX}    - CLUSTERGATE_SYSTEM: [beta, alpha]\n      CLUSTERGATE_STACK: mpich\n",
            "FILE:5: the site config of beta names no stack 'mpich'; known: spack-mvapich2, ",
        ),
        (
            f"{MATRIX}    - CLUSTERGATE_SYSTEM: bta\n      CLUSTERGATE_STACK: x\n",
            "FILE:5: unknown site config 'bta'; did you mean 'beta'?",
        ),
    ],
)
def test_a_pipeline_that_is_wrong_is_told_with_its_line(tmp_path, monkeypatch, capsys, text, said):
    status, told = of_pipeline(tmp_path, text, monkeypatch, capsys)
    assert status == 2
    assert told.startswith(f"clustergate: {said}")


def test_a_pipeline_may_list_what_only_gitlab_knows(tmp_path, monkeypatch, capsys):
    text = (
        "x: !reference [.a, script]\ninclude: [one.yml, {template: T.yml}, {project: p, file: f}]\n"
    )
    text += f"{MATRIX}    - &it\n      CLUSTERGATE_SYSTEM: $WHICH\n      CLUSTERGATE_STACK: mpich\n"
    text += "    - {CLUSTERGATE_SYSTEM: alpha, CLUSTERGATE_STACK: [mpich, openmpi]}\n    - *it\n"
    status, told = of_pipeline(tmp_path, text, monkeypatch, capsys)
    assert (status, told) == (
        0,
        "no job of FILE is for alpha with intel-mpi, which its site config has\n",
    )
    empty, told = of_pipeline(tmp_path, "stages: [lint]\n", monkeypatch, capsys)
    assert (empty, told) == (0, "FILE lists no system in .clustergate-systems\n")
