"""Attacks on pipelines: answers that are not of now, and failures that nobody is told."""

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines import (
    GITLAB,
    commit,
    extended,
    fetch_suite,
    git,
    jobs,
    make_project,
    merged,
    run_script,
    selected,
)
from tests.test_gitlab import STEADY, branches, propose, store_runs

OPEN, CLOSED, NOT_JUDGED = range(3)
MEASURED = "called: gate --site local"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def stand_in(project: Path) -> Path:
    return project.parent / "suite" / ".venv" / "bin" / "clustergate"


def gate_ends(project: Path, line: str) -> None:
    """Let the stand-in of the gate say that it was called, and then do this."""
    said = '"called: $*" ;;'
    text = re.sub(
        r'"called: \$\*" ;;|"called: \$\*"; if .*fi ;;', said, stand_in(project).read_text()
    )
    then = f'"called: $*"; if [ "$1" = gate ]; then {line}; fi ;;'
    stand_in(project).write_text(text.replace(said, then))


def job(project: Path, stack: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the maintenance job of a stack in the pipeline 7."""
    given = {
        "CI_PIPELINE_ID": "7",
        "CI_COMMIT_SHA": "a" * 40,
        "CI_JOB_NAME": f"clustergate maintenance: [local, {stack}]",
        "CLUSTERGATE_STACK": stack,
    }
    return run_script(project, "job", "maintenance", **{**given, **variables})


def with_program(folder: Path, name: str, script: str) -> str:
    """Return a PATH on which a program is another one; `$real` is the one that it replaces."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    real = shlex.quote(str(shutil.which(name)))
    program.write_text(f"#!/bin/bash\nreal={real}\n{script}\n")
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


# --- a stale answer ---------------------------------------------------------------------------


def test_the_answer_of_a_gate_says_when_it_was_measured(project):
    gate_ends(project, f"exit {CLOSED}")
    assert job(project, "mpich").returncode == CLOSED
    other = job(project, "openmpi")
    assert (other.returncode, MEASURED in other.stdout) == (CLOSED, False)
    day = time.strftime("%Y-%m-%d", time.gmtime())
    assert f"measured until {day} " in other.stdout
    assert "STAY CLOSED" in other.stdout


@pytest.mark.parametrize("witness", ["the clock", "the file's date", "a clock that went back"])
def test_a_job_that_starts_nine_days_later_measures(project, tmp_path, witness):
    assert job(project, "mpich").returncode == OPEN
    gate_ends(project, f"exit {CLOSED}")
    days, given = 9 * 86400, {}
    if witness == "the file's date":
        for path in (tmp_path / "home").rglob("*"):
            os.utime(path, (time.time() - days, time.time() - days))
    else:
        sign = "-" if "back" in witness else "+"
        script = f'exec "$real" --date "{sign}9 days" "$@"'
        given["PATH"] = with_program(tmp_path / "later", "date", script)
    late = job(project, "openmpi", **given)
    assert (late.returncode, MEASURED in late.stdout) == (CLOSED, True), late.stderr


def test_a_gate_that_was_killed_leaves_no_answer_of_an_earlier_one(project):
    assert job(project, "mpich").returncode == OPEN
    gate_ends(project, "kill -9 $PPID $$")
    assert job(project, "mpich").returncode < 0
    gate_ends(project, f"exit {CLOSED}")
    after = job(project, "openmpi")
    assert (after.returncode, MEASURED in after.stdout) == (CLOSED, True)


def test_a_retry_after_a_repair_measures(project):
    gate_ends(project, f"exit {CLOSED}")
    assert job(project, "mpich").returncode == CLOSED
    assert MEASURED not in job(project, "openmpi").stdout
    gate_ends(project, f"exit {OPEN}")
    retried = job(project, "openmpi")
    assert (retried.returncode, MEASURED in retried.stdout) == (OPEN, True)
    # And is the answer of whoever has none of it yet.
    assert MEASURED not in job(project, "mpich").stdout


def test_whoever_clicks_on_a_job_gets_a_measurement(project):
    assert MEASURED in job(project, "mpich").stdout
    assert MEASURED in job(project, "openmpi", CI_JOB_MANUAL="true").stdout


@pytest.mark.parametrize(
    "changed",
    [
        {"CI_COMMIT_SHA": "b" * 40},
        {"CI_PIPELINE_ID": "8"},
        {"CI_PROJECT_PATH": "hpc/other"},
        {"CLUSTERGATE_REFRAME_OPTIONS": "-S n=1000"},
        {"CLUSTERGATE_BUDGET": "20m"},
        {"CLUSTERGATE_PROCESS_COUNTS": "2"},
        {"SBATCH_RESERVATION": "window"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_gate_that_was_asked_otherwise_is_no_answer(project, changed):
    assert MEASURED in job(project, "mpich").stdout
    assert MEASURED in job(project, "openmpi", **changed).stdout


@pytest.mark.parametrize("of", ["project", "suite", "stacks"])
def test_a_gate_of_another_version_is_no_answer(project, tmp_path, of):
    suite = tmp_path / "suite"
    git(suite, "init", "--quiet")
    commit(suite, "begin")
    assert MEASURED in job(project, "mpich").stdout
    if of == "stacks":
        path = project / "site_configs" / "local.py"
        path.write_text(path.read_text().replace('stack("intel-mpi"),', ""))
        assert "intel-mpi" not in path.read_text().partition("stacks=")[2]
    else:
        (tmp_path / of / "more").touch()
        commit(tmp_path / of, "more")
    assert MEASURED in job(project, "openmpi").stdout


def test_what_a_gate_was_refused_for_is_told_by_each_job(project):
    """By the real gate, which measures nothing with such a budget."""
    stand_in(project).write_text(stand_in(project).read_text().replace("check | gate", "check"))
    for stack in ("mpich", "openmpi"):
        refused = job(project, stack, CLUSTERGATE_BUDGET="abc")
        assert refused.returncode == NOT_JUDGED
        assert "'abc'" in refused.stderr
        assert "were judged" not in refused.stdout


@pytest.mark.parametrize(("answered", "shared"), [("2", True), ("null", False), ("0", False)])
def test_could_not_judge_is_an_answer_and_no_answer_is_none(project, answered, shared):
    wrote = f'mkdir "$5/r1" && echo "{{\\"status\\": {answered}}}" >"$5/r1/gate.json"; exit 2'
    gate_ends(project, wrote)
    assert job(project, "mpich").returncode == NOT_JUDGED
    shutil.rmtree(project / "clustergate-results")
    other = job(project, "openmpi")
    assert other.returncode == NOT_JUDGED
    assert (MEASURED in other.stdout) is not shared
    assert ("COULD NOT JUDGE" in other.stdout) is shared


# --- options ----------------------------------------------------------------------------------

LINES = "-S n=1000\n  -S nb=64\n"


@pytest.mark.parametrize("name", ["smoke", "maintenance", "ab"])
def test_options_on_a_second_line_count(project, name):
    given = {"CLUSTERGATE_REFRAME_OPTIONS": LINES, "CLUSTERGATE_RUN_STACKS": "mpich\nopenmpi\n"}
    given |= {"CLUSTERGATE_RUN_OPTIONS": "--budget 1m\n--sizes 8"}
    ended = run_script(project, "job", name, **given)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.rstrip().endswith(" -- -S n=1000 -S nb=64")
    if name == "ab":
        assert " --a mpich --b openmpi " in ended.stdout
        assert " --budget 1m --sizes 8 -- " in ended.stdout


def test_options_of_a_baseline_on_a_second_line_count(project, tmp_path):
    store_runs(tmp_path / "home", STEADY)
    ended = propose(project, CLUSTERGATE_RUN_OPTIONS="--mode smoke\n--min-runs 9")
    assert ended.returncode == 1
    assert "a baseline needs 9" in ended.stdout


# --- a full disk ------------------------------------------------------------------------------


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk without room."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=8k,nr_inodes=2", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        with (folder / "filling").open("wb", buffering=0) as file:
            for _ in range(8):
                try:
                    file.write(bytes(4096))
                except OSError:
                    break
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("status", [OPEN, CLOSED, NOT_JUDGED])
def test_a_job_ends_as_its_gate_did_where_the_disk_is_full(project, full_disk, status):
    gate_ends(project, f"exit {status}")
    ended = job(project, "mpich", CLUSTERGATE_HOME=str(full_disk))
    assert ended.returncode == status, ended.stderr
    # Nothing is left by which the next job would end.
    assert MEASURED in job(project, "openmpi", CLUSTERGATE_HOME=str(full_disk)).stdout


@pytest.mark.parametrize("status", [OPEN, CLOSED, NOT_JUDGED])
def test_a_job_ends_as_its_gate_did_where_nothing_can_be_noted(project, tmp_path, status):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "gates").touch()
    gate_ends(project, f"exit {status}")
    assert job(project, "mpich").returncode == status


@pytest.mark.parametrize("name", ["build", "smoke", "maintenance", "ab"])
def test_a_job_without_room_for_its_artifacts_is_no_verdict(project, full_disk, name):
    ended = run_script(project, "job", name, CI_PROJECT_DIR=str(full_disk))
    assert ended.returncode == 2
    (told,) = ended.stderr.splitlines()
    assert told.startswith("clustergate: ")
    assert "disk" in told
    assert "called" not in ended.stdout


def test_what_cannot_be_copied_of_a_build_is_no_verdict(project, tmp_path):
    ended = run_script(project, "job", "build")
    assert ended.returncode == 2
    assert "clustergate: the job failed at `cp " in ended.stderr


def test_merge_request_measured_where_full_disk_hides_changes(project, full_disk):
    """Bash puts a long list into a file in TMPDIR."""
    base = git(project, "rev-parse", "HEAD")
    for number in range(700):
        path = project / "reframe_checks" / ("long" * 30) / f"check_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    commit(project, "change")
    given = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "TMPDIR": str(full_disk)}
    ended = run_script(project, "job", "smoke", **given)
    assert "called: check --strict" in ended.stdout, ended.stderr


def test_a_baseline_without_room_is_no_warning(project, tmp_path, full_disk):
    store_runs(tmp_path / "home", STEADY)
    ended = propose(project, TMPDIR=str(full_disk))
    assert ended.returncode == 2
    assert "full" in ended.stderr
    assert branches(project) == ["main"]


def test_a_suite_without_room_is_no_verdict(project, tmp_path, full_disk):
    given = {"CLUSTERGATE_PROJECT": (tmp_path / "server.git").as_uri()}
    ended = fetch_suite(tmp_path, CI_PROJECT_DIR=str(full_disk), **given)
    assert ended.returncode == 2
    assert "clustergate: git could not make" in ended.stderr


# --- what selects nothing ---------------------------------------------------------------------


@pytest.mark.parametrize("source", ["schedule", "web", "api"])
@pytest.mark.parametrize("asked", ["maintenence", "Maintenance", "maintenance ", "gate", "smoke"])
def test_a_misspelt_run_fails_and_names_what_there_is(project, source, asked):
    named = {"CI_PIPELINE_SOURCE": source, "CLUSTERGATE_RUN": asked}
    assert selected(merged(GITLAB / "clustergate.yml"), named) == ["clustergate request"]
    ended = run_script(project, "job", "request", **named)
    assert ended.returncode == 2
    assert f"CLUSTERGATE_RUN={asked} selects nothing" in ended.stderr
    assert "maintenance, ab, baseline" in ended.stderr


def test_a_baseline_of_another_branch_fails_and_says_so(project):
    named = {"CI_PIPELINE_SOURCE": "web", "CLUSTERGATE_RUN": "baseline", "CI_COMMIT_BRANCH": "x"}
    assert selected(merged(GITLAB / "clustergate.yml"), named) == ["clustergate request"]
    ended = run_script(project, "job", "request", **named)
    assert ended.returncode == 2
    assert "default branch" in ended.stderr


@pytest.mark.parametrize("asked", ["", "maintenance", "ab", "baseline"])
def test_what_there_is_to_run_is_not_refused(asked):
    named = {"CI_PIPELINE_SOURCE": "schedule", "CLUSTERGATE_RUN": asked}
    found = selected(merged(GITLAB / "clustergate.yml"), named)
    assert found
    assert "clustergate request" not in found


@pytest.mark.parametrize("name", ["lint", "dry-run", "maintenance", "build"])
def test_a_misspelt_stack_fails_in_each_job(project, name):
    pipeline = project / ".gitlab-ci.yml"
    text = pipeline.read_text()
    line = 1 + text[: text.index("openmpi]")].count("\n")
    pipeline.write_text(text.replace("openmpi]", "opnmpi]", 1))
    # The set-up that a build calls says so itself.
    stand_in(project).write_text(stand_in(project).read_text().replace("| setup |", "|"))
    given = {"CLUSTERGATE_SYSTEM": "alpha", "CLUSTERGATE_STACK": "opnmpi"}
    ended = run_script(project, "job", name, **given)
    assert ended.returncode == 2, ended.stdout
    assert "opnmpi" in ended.stderr
    assert "intel-mpi, mpich, openmpi" in ended.stderr
    if name in ("lint", "dry-run"):
        assert f"{pipeline}:{line}: " in ended.stderr
    assert "called" not in ended.stdout


@pytest.mark.parametrize("name", ["lint", "dry-run", "maintenance"])
def test_a_misspelt_system_fails_in_each_job(project, name):
    pipeline = project / ".gitlab-ci.yml"
    pipeline.write_text(pipeline.read_text().replace("SYSTEM: alpha", "SYSTEM: alhpa"))
    ended = run_script(project, "job", name, CLUSTERGATE_SYSTEM="alhpa")
    assert ended.returncode == 2, ended.stdout
    assert "alhpa" in ended.stderr
    assert "called" not in ended.stdout


def test_a_misspelt_stack_in_an_included_file_fails(project):
    pipeline = project / ".gitlab-ci.yml"
    text = pipeline.read_text()
    place = text.index("# A runner with the tag")
    (project / "systems.yml").write_text(text[place:].replace("openmpi]", "opnmpi]", 1))
    pipeline.write_text(text[:place].replace("include:\n", "include:\n  - local: /systems.yml\n"))
    ended = run_script(project, "job", "lint")
    assert ended.returncode == 2
    assert f"{project / 'systems.yml'}:" in ended.stderr


# --- side by side -----------------------------------------------------------------------------


def test_nothing_runs_beside_a_gate_on_its_system():
    pipeline = merged(GITLAB / "clustergate.yml")
    groups = set()
    for name in jobs(pipeline):
        job = extended(pipeline, name)
        if not name.startswith(".") and job.get("tags"):
            on = {"$CLUSTERGATE_SYSTEM": "alpha", "$CLUSTERGATE_RUN_ON": "alpha"}
            group = job["resource_group"]
            for variable, system in on.items():
                group = group.replace(variable, system)
            groups.add(group)
    assert groups == {"clustergate-alpha"}


# --- what is fetched and pushed ---------------------------------------------------------------


@pytest.mark.parametrize("ref", ["nosuch", "abc1234", "f" * 40])
def test_a_wrong_ref_is_named_with_its_variable(project, tmp_path, ref):
    given = {"CLUSTERGATE_PROJECT": (tmp_path / "server.git").as_uri(), "CLUSTERGATE_REF": ref}
    ended = fetch_suite(tmp_path, **given)
    assert ended.returncode == 2
    (told,) = (line for line in ended.stderr.splitlines() if line.startswith("clustergate: "))
    assert f"CLUSTERGATE_REF={ref}" in told


def test_a_suite_that_is_not_there_is_named_with_its_variable(tmp_path):
    address = f"file://token@{tmp_path}/none.git"
    ended = fetch_suite(tmp_path, CLUSTERGATE_PROJECT=address)
    assert ended.returncode == 2
    assert "clustergate: the suite could not be fetched from the project" in ended.stderr
    assert "CLUSTERGATE_PROJECT" in ended.stderr
    assert "token@" not in ended.stderr


def test_second_baseline_before_merge_keeps_one_branch(project, tmp_path):
    store_runs(tmp_path / "home", STEADY)
    assert propose(project).returncode == 0
    same = propose(project, job="8")
    assert same.returncode == 0, same.stderr
    assert "as the branch clustergate/baseline-local-7" in same.stdout
    # Better runs since: still one branch, and the first stays as it is under review.
    kept = git(tmp_path / "server.git", "rev-parse", "clustergate/baseline-local-7")
    store_runs(tmp_path / "home", tuple(0.9 * value for value in STEADY), day=3)
    other = propose(project, job="9")
    assert other.returncode == 2
    assert "merge it, or delete it" in other.stderr
    assert branches(project) == ["clustergate/baseline-local-7", "main"]
    assert git(tmp_path / "server.git", "rev-parse", "clustergate/baseline-local-7") == kept
    assert (project / "clustergate-results" / "baseline-local-9.patch").is_file()


@pytest.mark.parametrize("how", ["--ff-only", "--squash"])
def test_a_baseline_that_was_merged_makes_room_for_the_next(project, tmp_path, how):
    store_runs(tmp_path / "home", STEADY)
    assert propose(project).returncode == 0
    git(project, "fetch", "--quiet", "origin", "clustergate/baseline-local-7")
    git(project, "merge", "--quiet", how, "FETCH_HEAD")
    if how == "--squash":
        commit(project, "merged")
    store_runs(tmp_path / "home", tuple(0.9 * value for value in STEADY), day=3)
    ended = propose(project, job="9")
    assert ended.returncode == 0, ended.stderr
    assert "clustergate/baseline-local-9" in branches(project)


def test_proposals_of_another_system_are_in_nobodys_way(project, tmp_path):
    store_runs(tmp_path / "home", STEADY)
    for name in ("local-gpu-7", "local-7-8", "loca-7"):
        (project / "references").mkdir(exist_ok=True)
        (project / "references" / "local.yaml").write_text(f"# {name}\n")
        commit(project, "another")
        git(project, "push", "--quiet", "origin", f"HEAD:refs/heads/clustergate/baseline-{name}")
        git(project, "reset", "--quiet", "--hard", "origin/main")
    assert propose(project, job="9").returncode == 0
    assert "clustergate/baseline-local-9" in branches(project)


def test_a_gitlab_over_http_gets_no_token_and_keeps_a_patch(project, tmp_path):
    store_runs(tmp_path / "home", STEADY)
    given = {"CI_SERVER_URL": "http://gitlab.example", "CI_JOB_TOKEN": "a-secret"}
    given["CI_PROJECT_URL"] = "http://gitlab.example/hpc/site"
    ended = propose(project, CLUSTERGATE_PUSH_TO="", **given)
    assert ended.returncode == 2
    assert "https" in ended.stderr
    assert "a-secret" not in ended.stdout + ended.stderr
    (patch,) = (project / "clustergate-results").glob("*.patch")
    git(project, "am", patch)
    assert (project / "references" / "local.yaml").is_file()


@pytest.mark.parametrize("options", ["", "--mode smok --json", "--no-such-option"])
def test_a_baseline_without_a_run_fails(project, tmp_path, options):
    ended = propose(project, CLUSTERGATE_RUN_OPTIONS=options)
    assert ended.returncode == 2
    assert "clustergate" in ended.stderr
    assert "nothing to propose" not in ended.stdout
