"""Attacks on ``clustergate node`` as a scheduler's hooks call it: none drains a cluster."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from clustergate import cli
from clustergate.cli import node
from clustergate.core import store
from clustergate.judge.history.node_states import NODES
from clustergate.machine.fingerprint import read_node_state
from clustergate.machine.node import SCRIPT
from clustergate.stacks.manifest import Manifest, Program, write_manifest
from tests.conftest import PATIENCE_S
from tests.test_node import RUN, keep_run
from tests.test_screening_driver import PEAKS

NOBODY = 65534
# As if no user's job ran beside the tests.
_ALONE = """\
import sys
from clustergate import cli
from clustergate.run import node
node.why_in_use = lambda *_: ""
sys.exit(cli.main(sys.argv[1:]))
"""
# As if no user's job ran beside the tests.
_ALONE = """\
import sys
from clustergate import cli
from clustergate.run import node
node.why_in_use = lambda *_: ""
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a home that others may read, with a good run of this node."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        home = Path(folder) / "home"
        monkeypatch.setenv("CLUSTERGATE_HOME", str(home))
        keep_run(Path(folder) / "said", read_node_state())
        yield home


def set_up(home: Path, more: str = "") -> None:
    """Set up a stack whose kernels are a script."""
    kernel = home / "node_peaks"
    kernel.write_text(f"#!/bin/sh\n{more}cat <<'END'\n{PEAKS.read_text()}END\n")
    kernel.chmod(0o755)
    program = Program(str(kernel))
    write_manifest(home, Manifest("mpich", "wheels", programs={"node_peaks": program}))


def called(*words: str, path: str = "", uid: int | None = None) -> subprocess.Popen[str]:
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}" if path else os.defpath}
    environment.pop("SLURM_JOB_ID", None)
    command = [sys.executable, "-c", _ALONE, "node", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, env=environment, text=True, user=uid, **pipes)  # type: ignore[call-overload,no-any-return]


def said_by(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said


@pytest.mark.parametrize(("hook", "status"), [([], 2), (["--hook"], 0)])
@pytest.mark.parametrize("damage", ["cut", "binary", "no-store"])
def test_store_that_cannot_be_read_drains_nothing(
    home: Path, hook: list[str], status: int, damage: str
) -> None:
    states = store.run_folder(RUN) / NODES
    if damage == "no-store":
        shutil.rmtree(home)
    else:
        whole = states.read_bytes()
        states.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"\xff\x00\n")
    found, said = said_by(called("--state", *hook))
    assert found == status, said
    assert "NOT KNOWN" in said
    assert f"{states}:1" in said or damage == "no-store"


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, as hooks have")
def test_root_runs_no_kernel_of_another_account(home: Path) -> None:
    set_up(home, more=f"id -u > {home}/ran-as\n")
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    found, said = said_by(called("--budget", "20s"))
    assert found in (0, 2), said
    assert (home / "ran-as").read_text().strip() == str(NOBODY), said


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to become somebody else")
def test_wrong_user_drains_nothing(home: Path) -> None:
    os.chmod(home, 0o700)
    with contextlib.suppress(PermissionError):
        found, said = said_by(called("--state", "--hook", uid=NOBODY))
        # A Python that this account cannot read says so, and no verdict.
        assert "FAULT" not in said
        assert found == 0 or "Error" in said, said


def test_error_of_the_suite_drains_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(node, "judge_here", fails)
    assert cli.main(["node", "--hook"]) == 0
    assert "NOT KNOWN: RuntimeError: a bug" in capsys.readouterr().out
    assert cli.main(["node"]) == 2


def can_unshare() -> bool:
    tried = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True)
    return tried.returncode == 0


@pytest.mark.skipif(
    not shutil.which("unshare") or not can_unshare(), reason="takes mount namespaces"
)
def test_read_only_file_system_is_no_fault(home: Path) -> None:
    set_up(home)
    script = f'mount --bind {home} {home} && mount -o remount,ro,bind {home} && exec "$@"'

    def within(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["unshare", "-m", "sh", "-c", script, "sh", *words]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )

    # That is another mount.
    keep_run(home.parent / "said", within("sh", str(SCRIPT), "/").stdout)
    ended = within(sys.executable, "-m", "clustergate", "node")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "SOUND" in ended.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_leaves_no_kernel_behind(home: Path, number: signal.Signals) -> None:
    set_up(home, more=f"echo $$ > {home}/pid\nexec sleep 60\n")
    process = called("--budget", "30s")
    pid, until = home / "pid", time.monotonic() + PATIENCE_S
    while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(number)
    found, said = said_by(process)
    assert found == (128 + number if number == signal.SIGTERM else -number), said
    until = time.monotonic() + PATIENCE_S
    while psutil.pid_exists(int(pid.read_text())) and time.monotonic() < until:
        time.sleep(0.1)
    assert not psutil.pid_exists(int(pid.read_text()))


def test_scheduler_is_asked_nothing(home: Path, tmp_path: Path) -> None:
    set_up(home)
    asked = tmp_path / "asked"
    for name in ("sinfo", "scontrol", "squeue", "sacct", "srun", "qstat", "pbsnodes", "bhosts"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {asked}\n')
        program.chmod(0o755)
    for words in ((), ("--state",), ("--hook",)):
        assert said_by(called(*words, path=str(tmp_path)))[0] == 0
    assert not asked.exists()
