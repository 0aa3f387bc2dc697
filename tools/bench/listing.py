"""How long ReFrame lists many cases of the checks, beside as many empty ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from clustergate.benchmarks.descriptor import Sweep
from clustergate.benchmarks.registry import every_check
from clustergate.paths import checkout
from clustergate.session import reframe
from clustergate.sites import configs as sites
from clustergate.sites import modes
from tools.bench.spread import Figure
from tools.bench.workspace import BenchError, Timed, Workspace

SECTION = "listing"

EMPTY = """\
import reframe as rfm
from reframe.core.builtins import fixture, parameter, sanity_function


class Empty(rfm.RunOnlyRegressionTest):
    executable = "true"

    @sanity_function
    def accept(self):
        return True


@rfm.simple_test
class EmptyCheck(Empty):
    {body}number = parameter(range({count}))
    valid_systems = ["*"]
    valid_prog_environs = ["+mpi-stack"]
"""
WITH_FIXTURE = 'build = fixture(Empty, scope="environment")\n    '


def measure(
    room: Workspace, *, cases: int, rounds: int, say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield the time to list ``cases`` cases or a few more, and what empty ones take.

    They take turns. A case is a check with a stack, as ReFrame counts; every check of the suite is
    listed, so that none is loaded for nothing.
    """
    site = sites.load(sites.find("local"))
    stacks = len(site.stacks)
    sweeping = [check for check in every_check().values() if check.sweep is Sweep.LAYOUTS]
    counts = -(-cases // (stacks * len(sweeping)))
    named = ",".join(str(count) for count in range(1, counts + 1))
    expected = modes.expected_cases(
        [*every_check(), modes.SCREEN_CHECK],
        site.partitions,
        modes.mode_named("smoke"),
        named,
    )
    checks = len(expected) // stacks
    folders = {
        "empty": _empty_checks(room.home / "empty", checks, ""),
        "empty, with a build fixture": _empty_checks(room.home / "fixture", checks, WITH_FIXTURE),
        "the suite's": checkout() / "reframe_checks",
    }
    times: dict[str, list[Timed]] = {name: [] for name in folders}
    for order in range(rounds):
        for name, folder in folders.items():
            say(f"listing: {checks} checks, {name}, {order + 1} of {rounds}")
            times[name].append(_list(room, folder, named, checks))
    clock = {name: [t.seconds for t in found] for name, found in times.items()}
    processor = {name: [t.cpu_seconds for t in found] for name, found in times.items()}
    listed = f"reframe --list of {checks} checks with {stacks} stacks"
    for name in folders:
        subject = f"{checks * stacks} cases, {name}"
        for quantity, values in (("time", clock), ("processor", processor)):
            yield Figure(SECTION, subject, quantity, "s", values[name], listed)
            beyond = [
                100.0 * (here / empty - 1.0)
                for here, empty in zip(values[name], values["empty"], strict=True)
            ]
            if name != "empty":
                what = f"{quantity} beyond that of the empty ones in the same round"
                yield Figure(SECTION, subject, f"{quantity} beyond", "%", beyond, what)


def _empty_checks(folder: Path, checks: int, fixture: str) -> Path:
    folder.mkdir()
    (folder / "empty.py").write_text(EMPTY.format(body=fixture, count=checks), encoding="utf-8")
    return folder


def _list(room: Workspace, folder: Path, counts: str, checks: int) -> Timed:
    timed = room.timed(
        reframe.command([], checks=folder, action="--list"),
        variables={reframe.PROCESS_COUNTS: counts},
    )
    found = reframe.listed_checks(room.output())
    if found != checks:
        raise BenchError(
            f"ReFrame listed {found or 'no'} checks, not {checks}; its output: "
            f"{room.output()[-500:]}"
        )
    return timed
