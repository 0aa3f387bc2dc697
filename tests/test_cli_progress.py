"""What a command tells while it works: on a terminal, and in a pipe."""

import datetime
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clustergate.cli import progress
from clustergate.core.texts import ProgressLine, ResultLine, Step, clock

SCRIPT = """
import datetime, sys, time
from clustergate.cli import progress
from clustergate.cli.streams import printable_streams
from clustergate.core.texts import ResultLine, ProgressLine
progress._SILENT_AT_MOST_S = 0.05
progress._REDRAWN_HZ = 20
with printable_streams():
    with progress.Progress() as say:
        named = "running HPL \x1b[31m with mpich"
        say(ProgressLine(named, datetime.datetime.now(), done=1, cases=2))
        time.sleep(1.0)
        say(ResultLine("HPL with mpich: 123 Gflop/s (1 s; 2 of 2)"))
        say("stack openmpi lacks IMB, and nobody can download its source from here today")
    time.sleep(0.3)
    print("the table")
"""
AT = re.compile(r"^\[ +\d+ s\] ")


def test_progress_in_a_pipe_said_once_it_lasts() -> None:
    """In a pipe what goes on is said once it lasts and what a case came to."""
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "the table\n")
    lines = [AT.sub("", line) for line in ended.stderr.splitlines()]
    still = re.compile(r"  still running HPL ␛\[31m with mpich: 1 of 2 done \(\d s\)")
    assert any(map(still.fullmatch, lines))
    # At most one further line, of the moment between that end and the session's.
    assert "HPL with mpich: 123 Gflop/s (1 s; 2 of 2)" in lines[-3:]
    assert "\x1b" not in ended.stderr


def test_a_log_has_a_line_a_minute_at_most_and_none_of_a_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress.Progress() as say:
        say("the plan")
        say(Step("MPICH 5.0.2: compiling HPL (2 of 7)"))
        say(ProgressLine("running HPL with mpich", datetime.datetime.now(), done=1, cases=2))
        say(ResultLine("HPL with mpich: 123 Gflop/s (1 s; 2 of 2)"))
        time.sleep(0.1)
    said = [AT.sub("", line) for line in capsys.readouterr().err.splitlines()]
    assert said == ["the plan", "HPL with mpich: 123 Gflop/s (1 s; 2 of 2)"]
    assert progress._SILENT_AT_MOST_S == 60.0


def test_what_repeats_nothing_tells_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    progress.Progress()(Step("MPICH 5.0.2: compiling HPL (2 of 7)"))
    assert capsys.readouterr().err.endswith("compiling HPL (2 of 7)\n")


@pytest.mark.parametrize(
    ("sentence", "goes_on"),
    [
        (Step("MPICH 5.0.2: downloading mpich"), "MPICH 5.0.2: downloading mpich"),
        ("openmpi could not be set up: missing compiler", "at work"),
        ("done by about 05:49 (1 min 0 s)", "at work"),
        ("the stacks need no Spack", "at work"),
        ("this node is busy; measuring anyway, which takes longer than announced", "at work"),
        (
            "waiting up to 30 s for this node to be idle: others use 2.02 cores, "
            "reframe of root 1.03, python of root 0.54 and 4 more",
            "waiting up to 30 s for this node to be idle",
        ),
    ],
)
def test_a_sentence_that_tells_no_activity_is_not_said_to_go_on(
    sentence: str, goes_on: str, capsys: pytest.CaptureFixture[str]
) -> None:
    say = progress.Progress()
    say(sentence)
    assert say.going_on(time.monotonic()).startswith(f"{goes_on} (")


def test_when_all_is_done_is_told_anew_once_a_case_is_late(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = datetime.datetime.now()
    begun = now - datetime.timedelta(minutes=30)
    foreseen = ProgressLine("running HPL with mpich", begun, 600.0, 1500.0, (), 2, 4)
    by = clock(begun, 1500.0)
    assert str(foreseen) == f"running HPL with mpich: 2 of 4 done, all done by about {by}"
    assert foreseen.at(begun + datetime.timedelta(seconds=599)) == str(foreseen)
    # Its case should have ended 20 minutes ago, and 15 minutes of others come after it.
    late = f"running HPL with mpich, 20 min 0 s late, all done after {clock(now, 900.0)}"
    assert foreseen.at(now) == late
    assert foreseen.in_place(now, 80).endswith(f"20 min 0 s late, after {clock(now, 900.0)}")
    say = progress.Progress()
    say(foreseen)
    assert capsys.readouterr().err.endswith(f"all done by about {by}\n")
    assert "min 0 s late, all done after " in say.going_on(time.monotonic())


def test_progress_line_has_bar_case_end_and_results() -> None:
    """A line of a terminal has bar case end and the last results that fit."""
    begun = datetime.datetime(2026, 11, 30, 2, 0)
    results = ("HPL with mpich: 123 Gflop/s", "IMB (2 processes, packed) with mpich: A 1 us, B 2 s")
    what = "running IMB (2 processes, packed) with intel-mpi"
    foreseen = ProgressLine(what, begun, 60.0, 150.0, results, 2, 6)
    assert foreseen.in_place(begun, 30) == "2/6 IMB intel-mpi, by 02:02"
    assert foreseen.in_place(begun, 56) == ("━━──── 2/6 IMB intel-mpi, by 02:02 | IMB mpich A 1 us")
    assert foreseen.in_place(begun, 90) == (
        "━━──── 2/6 IMB intel-mpi, by 02:02 | IMB mpich A 1 us, B 2 s | HPL mpich 123 Gflop/s"
    )
    for room in range(20, 100):
        assert len(foreseen.in_place(begun, room)) <= room


def test_what_comes_after_all_cases_puts_off_the_end() -> None:
    begun = datetime.datetime.now()
    foreseen = ProgressLine("running HPL with mpich", begun, own_s=600.0, all_s=1500.0)
    later = foreseen.followed_by(7200.0)
    assert later.endswith(f"all done by about {clock(begun, 8700.0)}")
    assert "min 0 s late" in later.at(begun + datetime.timedelta(seconds=720))
    unknown = ProgressLine("running HPL with mpich", begun)
    assert unknown.followed_by(7200.0) == "running HPL with mpich"


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_on_a_terminal_a_line_lives_below_what_was_said(kind: str) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": kind, "COLUMNS": "40", "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, stderr=slave
    ) as process:
        os.close(slave)
        told = b""
        while select.select([master], [], [], 30)[0]:
            try:
                told += os.read(master, 4096)
            except OSError:
                break
        os.close(master)
        assert process.communicate()[0] == b"the table\n"
    screen = told.decode()
    assert "␛[31m" in screen
    assert ("still" in screen) == ("(1 s; 2 of 2)" in screen) == (kind == "dumb")
    if kind == "xterm":
        # No word is broken.
        assert "s] stack openmpi lacks IMB, and\r\n          nobody can download" in screen
        # Drawn again in its place, no longer than the terminal is wide, and taken away at the end.
        drawn = re.split(r"\r|\n|\x1b\[\??\d*[A-Khl]", screen)
        lived = [line for line in drawn if "1/2 HPL ␛[31m mpich" in line]
        assert len(lived) >= 2
        assert max(len(line) for line in lived) <= 40
        assert screen.rstrip().endswith("\x1b[2K")


def test_who_interrupts_is_told_by_which_command_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = tmp_path / "plan.json"
    for there in (False, True):
        if there:
            begun.touch()
        with (
            pytest.raises(KeyboardInterrupt),
            progress.saying_if_interrupted(begun, "`clustergate screen --resume r1` goes on"),
        ):
            raise KeyboardInterrupt
        assert capsys.readouterr().err == "`clustergate screen --resume r1` goes on\n" * there
