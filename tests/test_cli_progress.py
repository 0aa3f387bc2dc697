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
from clustergate.core.texts import Foreseen, clock

SCRIPT = """
import sys, time
from clustergate.cli import progress
from clustergate.cli.streams import printable_streams
progress._SILENT_AT_MOST_S = 0.05
progress._REDRAWN_HZ = 20
with printable_streams():
    with progress.Progress() as say:
        say("running HplCheck \x1b[31m with mpich: 0 of 2 done")
        time.sleep(1.0)
        say("  ran after 1 s")
    time.sleep(0.3)
    print("the table")
"""
AT = re.compile(r"^\[ +\d+ s\] ")


def test_in_a_pipe_what_goes_on_is_said_again_until_it_has_ended() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "the table\n")
    said, *lines = (AT.sub("", line) for line in ended.stderr.splitlines())
    assert said == "running HplCheck ␛[31m with mpich: 0 of 2 done"
    assert len(lines) >= 2
    assert re.fullmatch(r"  still running HplCheck .* 0 of 2 done \(\d s\)", lines[0])
    # At most one further line, of the moment between that end and the session's.
    assert "  ran after 1 s" in lines[-2:]
    assert "\x1b" not in ended.stderr


@pytest.mark.parametrize(
    ("sentence", "goes_on"),
    [
        ("MPICH 5.0.2: downloading mpich", "MPICH 5.0.2: downloading mpich"),
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
    what = "running HplCheck with mpich: 2 of 4 done"
    foreseen = Foreseen(what, begun, own_s=600.0, all_s=1500.0)
    by = clock(begun, 1500.0)
    assert str(foreseen) == f"{what}, all done by about {by}"
    soon = begun + datetime.timedelta(seconds=599)
    assert foreseen.at(soon, len(foreseen)) == str(foreseen)
    assert foreseen.at(soon, 60) == f"running HplCheck with mpich, all done by about {by}"
    # Its case should have ended 20 minutes ago, and 15 minutes of others come after it.
    late = f"running HplCheck with mpich, 20 min 0 s late, all done after {clock(now, 900.0)}"
    assert foreseen.at(now, 100) == late
    say = progress.Progress()
    say(foreseen)
    assert capsys.readouterr().err.endswith(f"all done by about {by}\n")
    going_on = say.going_on(time.monotonic())
    assert "min 0 s late, all done after " in going_on
    assert by not in going_on


def test_a_line_of_a_narrow_terminal_keeps_when_all_is_done_and_since_when_it_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun = datetime.datetime.now()
    what = "running ImbMpi1Check (2 processes, packed) with intel-mpi: 3 of 9 done"
    say = progress.Progress()
    say(Foreseen(what, begun, own_s=600.0, all_s=1500.0))
    line = say.going_on(time.monotonic(), 70)
    assert len(line) == 70
    assert line.startswith("running ImbMpi1Check (2 ")
    assert line.endswith(f", all done by about {clock(begun, 1500.0)} (0 s)")


def test_what_comes_after_all_cases_puts_off_the_end() -> None:
    begun = datetime.datetime.now()
    foreseen = Foreseen("running HplCheck with mpich", begun, own_s=600.0, all_s=1500.0)
    later = foreseen.followed_by(7200.0)
    assert later.endswith(f"all done by about {clock(begun, 8700.0)}")
    assert "min 0 s late" in later.at(begun + datetime.timedelta(seconds=720), 100)


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
    assert ("still" in screen) == (kind == "dumb")
    if kind == "xterm":
        # No word is broken.
        assert "[    0 s] running HplCheck ␛[31m with\r\n          mpich: 0 of 2 done" in screen
        # Drawn again in its place, no longer than the terminal is wide, and taken away at the end.
        drawn = re.split(r"\r|\n|\x1b\[\??\d*[A-Khl]", screen)
        lived = [line for line in drawn if line.endswith("s)")]
        assert len(lived) >= 2
        assert max(len(line) for line in lived) == 40
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
