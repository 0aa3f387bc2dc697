"""A guarded command ends as by itself, or with whoever started it."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.conftest import until

GUARD = [sys.executable, "-I", "-m", "clustergate.stacks.spack.guard"]
# A command that starts another one and tells its process id, as Spack starts a compiler. What a
# shell starts in the background ignores interrupts, so that it must be terminated.
BUILD = "sleep infinity & echo $! > {told}.new; mv {told}.new {told}; wait"
HEEDING = "echo $$ > {told}.new; mv {told}.new {told}; exec sleep infinity"
# Whoever asks for the build: a process between this test and the guard, which can be killed.
OWNER = """\
import subprocess, sys
subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE).wait()
"""


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -TERM $$", 128 + 15)])
def test_a_guarded_command_keeps_its_status_and_its_output(script: str, status: int) -> None:
    guarded = [*GUARD, "sh", "-c", f"echo built; {script}"]
    with subprocess.Popen(
        guarded, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read() == "built\n"
    assert process.returncode == status


@pytest.mark.parametrize(("number", "build"), [(signal.SIGKILL, BUILD), (signal.SIGTERM, HEEDING)])
def test_a_build_ends_with_its_owner(tmp_path: Path, number: signal.Signals, build: str) -> None:
    told = tmp_path / "pid"
    guarded = [*GUARD, "sh", "-c", build.format(told=told)]
    with subprocess.Popen([sys.executable, "-I", "-c", OWNER, *guarded]) as owner:
        until(told.exists)
        compiler = int(told.read_text())
        assert not is_gone(compiler)
        owner.send_signal(number)
    until(lambda: is_gone(compiler))


def test_an_interrupt_reaches_what_was_started(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    # A shell lets what it starts in the background ignore interrupts.
    script = "import subprocess, sys; subprocess.run(['sh', '-c', sys.argv[1]])"
    guarded = [*GUARD, sys.executable, "-c", script, HEEDING.format(told=told)]
    with subprocess.Popen(guarded, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        until(told.exists)
        process.send_signal(signal.SIGINT)
        assert process.wait() != 0
    until(lambda: is_gone(int(told.read_text())))
