"""No test ends by a time that a busy machine exceeds, and `make test` runs both of its parts."""

import ast
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustergate.core.paths import checkout

TESTS = sorted(Path(__file__).parent.glob("*.py"))
WAITS = {"wait", "communicate", "join", "result", "acquire", "get", "recv", "poll"}
CLOCKS = ("time.monotonic()", "time.time()")


def limits(text: str) -> Iterator[ast.expr]:
    """Return what says in a test how long something may take: after it the test fails.

    Whoever stops waiting before the end of what goes on, to see that it does go on, says so with
    less than a second.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            yield from (word.value for word in node.keywords if word.arg == "timeout")
            yield from node.args[:1] if called in WAITS else ()
        elif isinstance(node, ast.BinOp) and ast.unparse(node.left) in CLOCKS:
            yield node.right


def given_up(text: str) -> list[str]:
    """Return the limits that are numbers of a test's own."""
    return [
        f"{limit.lineno}: {limit.value}"
        for limit in limits(text)
        if isinstance(limit, ast.Constant) and isinstance(limit.value, int | float)
        if limit.value >= 1
    ]


def test_no_test_ends_by_a_time_of_its_own() -> None:
    found = {path.name: given_up(path.read_text(encoding="utf-8")) for path in TESTS}
    assert {name: told for name, told in found.items() if told} == {}


def test_a_time_of_its_own_is_seen() -> None:
    assert given_up("end = time.monotonic() + 60") == ["1: 60"]
    assert given_up("process.wait(60); run(timeout=9.5); waiting.join(0.3)") == ["1: 60", "1: 9.5"]


def make(tmp_path: Path, target: str, first: int, second: int) -> tuple[int, list[str], list[str]]:
    """Let a stand-in for pytest end its two calls so; return make's status, those calls, lines."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    (log := tmp_path / "log").write_text("")
    program = tmp_path / "bin" / "pytest"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\n'
        f'case "$*" in *"not mpi"*) exit {first};; *) exit {second};; esac\n'
    )
    program.chmod(0o755)
    # Newer than all that it is made of.
    (tmp_path / "ready-dev").touch()
    os.utime(tmp_path / "ready-dev", (2**32, 2**32))
    ended = subprocess.run(
        ["make", "--no-print-directory", target, f"VENV={tmp_path}"],
        cwd=checkout(),
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
    )
    return ended.returncode, log.read_text().splitlines(), ended.stdout.splitlines()


@pytest.mark.parametrize("target", ["test", "test-all"])
@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 1), (1, 3), (5, 0)])
def test_both_parts_run_and_the_worse_counts(
    tmp_path: Path, target: str, first: int, second: int
) -> None:
    """A failure of the first kept the tests with MPI from running."""
    status, calls, lines = make(tmp_path, target, first, second)
    assert [("not mpi" in call, "-rs" in call) for call in calls] == [(True, True), (False, True)]
    assert {"not long" in call for call in calls} == {target == "test"}
    assert (status != 0) is (max(first, second) > 0)
    assert lines[-1] == f"{target}: exit status {first} without MPI, {second} with MPI"


def test_an_interrupt_ends_both_parts(tmp_path: Path) -> None:
    status, calls, _ = make(tmp_path, "test", 2, 0)
    assert (status != 0, len(calls)) == (True, 1)
