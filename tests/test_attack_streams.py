"""Streams that cannot be written and disks that are full at the end: status and files agree."""

import dataclasses
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clustergate import cli
from clustergate.cli import running
from clustergate.cli import screen as screen_command
from clustergate.core import store
from clustergate.core.commands import Invocation
from clustergate.core.model import Run
from clustergate.judge.history.listing import ENDED, keep_made
from clustergate.report import console, publishing, terminal
from clustergate.report.html import NO_HISTORY
from clustergate.studies.screen.folder import read_screening, screening_folder
from tests.test_attack_gate import Gate, folder, gate
from tests.test_cli_gate import keep_screening
from tests.test_report_terminal import compared_run

__all__ = ["folder", "gate"]

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
# What a command of a verdict does: it tells something on the way, and has an answer.
JUDGED = """
import sys
from clustergate import cli
from clustergate.cli.passing_on import PassingOnParser
from clustergate.cli.progress import Progress
def run(arguments):
    with Progress() as say:
        say("measuring")
    print("the answer")
    return {status}
def parser(argv):
    found = PassingOnParser()
    found.set_defaults(run=run, judges=True)
    return found
cli.build_parser = parser
sys.exit(cli.main([]))
"""


def in_a_shell(status: int, redirected: str) -> "subprocess.CompletedProcess[str]":
    words = ["sh", "-c", f'"$0" -c "$1" {redirected}', sys.executable, JUDGED.format(status=status)]
    return subprocess.run(words, capture_output=True, text=True)


@pytest.mark.parametrize("status", [0, 1, 2])
@pytest.mark.parametrize("redirected", ["2>&-", pytest.param("2>/dev/full", marks=needs_full)])
def test_standard_error_that_takes_nothing_changes_no_status(status: int, redirected: str) -> None:
    """Python ended with 1, which says that something is slower."""
    ended = in_a_shell(status, redirected)
    assert (ended.returncode, ended.stdout) == (status, "the answer\n")


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_closed_standard_output_changes_no_status(status: int) -> None:
    assert in_a_shell(status, ">&-").returncode == status


@needs_full
@pytest.mark.parametrize("status", [0, 1])
def test_an_answer_that_cannot_be_told_is_no_verdict(status: int) -> None:
    ended = in_a_shell(status, ">/dev/full")
    assert ended.returncode == 2
    assert "the disk is full" in ended.stderr


@pytest.mark.parametrize("words", [["check", "--nonsense"], ["gate", "--site", "nowhere"]])
@pytest.mark.parametrize("redirected", ["2>&-", pytest.param("2>/dev/full", marks=needs_full)])
def test_a_refusal_that_cannot_be_told_is_a_2(
    words: list[str], redirected: str, tmp_path: Path
) -> None:
    program = Path(sys.executable).parent / "clustergate"
    call = ["sh", "-c", f'"$0" "$@" {redirected}', str(program), *words]
    variables = {**os.environ, "CLUSTERGATE_HOME": str(tmp_path)}
    assert subprocess.run(call, env=variables, capture_output=True).returncode == 2


def full_from(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let the disk be full when a file of this name is to be written."""
    written = store.write_text

    def write(path: Path, text: str) -> None:
        if path.name == name:
            raise store.unwritable(path, OSError(errno.ENOSPC, "No space left on device"))
        written(path, text)

    monkeypatch.setattr(store, "write_text", write)


def answer_in(folder: Path) -> object:
    newest = max((folder / "home").glob("results/runs/*/gate.json"))
    return json.loads(newest.read_text())["status"]


@pytest.mark.parametrize("lost", ["gate.html", "junit.xml", "summary.txt"])
def test_a_gate_whose_page_is_lost_has_not_opened(
    lost: str,
    folder: Path,
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert gate()[0] == 0
    full_from(monkeypatch, lost)
    capsys.readouterr()
    # Of what it measures with, the first has put the same in place.
    assert cli.main(["gate", "--site", "alpha"]) == 2
    assert answer_in(folder) is None
    assert "OPEN" not in capsys.readouterr().out


def test_what_a_gate_could_not_print_is_not_in_its_files(
    folder: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It exited with 2, and gate.json said OPEN."""
    assert gate()[0] == 0

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(console, "print_lines", full)
    assert cli.main(["gate", "--site", "alpha"]) == 2
    assert answer_in(folder) is None


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a check end with a run that is measured and judged, and is to be published."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    found: Run = compared_run()

    def publish(run: Run, invocation: Invocation) -> Run:
        folder = store.run_folder(run.run_id)
        publishing.write_reports(run, folder, NO_HISTORY, invocation)
        return run

    def measure(request: object, run_id: str, *rest: object, **more: object) -> Run:
        return dataclasses.replace(found, run_id=run_id)

    monkeypatch.setattr(running, "run_session", measure)
    monkeypatch.setattr(running, "publish", publish)
    return found


@pytest.mark.parametrize("lost", ["report.html", "junit.xml", "summary.txt", "verdicts.json"])
def test_a_check_whose_reports_are_lost_is_a_2_and_shows_its_table(
    lost: str,
    measured: object,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    full_from(monkeypatch, lost)
    assert cli.main(["check", "--site", "local"]) == 2
    said = capsys.readouterr()
    assert "PingPong" in said.out
    assert "No space left on device" in said.err or "the disk is full" in said.err
    assert not list(tmp_path.glob("results/runs/*/verdicts.json"))


def test_what_a_check_could_not_print_is_not_in_its_files(
    measured: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*words: object, **more: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(terminal, "render", full)
    monkeypatch.setattr(publishing, "write_reports", lambda *_: None)
    assert cli.main(["check", "--site", "local"]) == 2
    assert not list(tmp_path.glob("results/runs/*/verdicts.json"))


def test_a_check_that_could_not_note_its_end_has_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It exited with 2, and verdicts.json said pass."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    found = compared_run()
    written = store.write_text

    def write(path: Path, text: str) -> None:
        if path.name == ENDED:
            raise store.unwritable(path, OSError(errno.ENOSPC, "No space left on device"))
        written(path, text)

    monkeypatch.setattr(store, "write_text", write)
    where = store.run_folder(found.run_id)
    where.mkdir(parents=True)
    with pytest.raises(publishing.UnpublishedError):
        publishing.publish(found)
    assert not [name for name in ("verdicts.json", ENDED) if (where / name).exists()]


@pytest.mark.parametrize("lost", ["screening.html", "ticket.txt", "summary.txt", "the terminal"])
def test_a_screening_whose_page_is_lost_has_no_verdict(
    lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It exited with 2, and ended.json said that no faults were found."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))

    def measured(site: object, run_id: str, *rest: object) -> Any:
        keep_screening(run_id)
        keep_made(run_id, "screen", "local")
        return read_screening(screening_folder(run_id))[1:]

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(screen_command, "screen", measured)
    if lost == "the terminal":
        monkeypatch.setattr(screen_command, "print_coloured", full)
    else:
        full_from(monkeypatch, lost)
    assert cli.main(["screen", "--site", "local"]) == 2
    monkeypatch.undo()
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    assert not list(tmp_path.glob("results/runs/*/ended.json"))
    capsys.readouterr()
    assert cli.main(["show", "last", "--json"]) != 0
    assert "exit_status" not in capsys.readouterr().out
