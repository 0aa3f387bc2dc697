"""How long ReFrame lists many cases of the checks, beside as many empty ones, and a dry run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from clustergate.benchmarks.descriptor import Sweep
from clustergate.benchmarks.registry import every_check
from clustergate.core.paths import checkout
from clustergate.run import reframe
from clustergate.sites import choice, modes
from clustergate.sites import configs as sites
from tools.bench.spread import Aim, Figure
from tools.bench.workspace import BenchError, Timed, Workspace

SECTION = "listing"

EMPTY = """\
import reframe as rfm
from reframe.core.builtins import parameter, sanity_function


@rfm.simple_test
class EmptyCheck(rfm.RunOnlyRegressionTest):
    executable = "true"
    number = parameter(range({count}))
    valid_systems = ["*"]
    valid_prog_environs = ["+mpi-stack"]

    @sanity_function
    def accept(self):
        return True
"""
AIM_BEYOND_S = Aim(at_most=1.0)
AIM_DRY_RUN_S = Aim(at_most=3.0)


def measure(
    room: Workspace, *, cases: int, rounds: Iterable[int], say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield the time to list ``cases`` cases or a few more, and what empty ones take.

    They take turns, and with them the dry run of this machine's cases. A case is a check with a
    stack, as ReFrame counts; every check of the suite is listed, so that none is loaded for
    nothing.
    """
    site = sites.load(choice.find("local"))
    stacks = len(site.stacks)
    sweeping = [check for check in every_check().values() if check.sweep is Sweep.LAYOUTS]
    named = ",".join(str(k + 1) for k in range(-(-cases // (stacks * len(sweeping)))))
    everything = [*every_check(), modes.SCREEN_CHECK]
    smoke = modes.mode_named("smoke")
    checks = len(modes.expected_cases(everything, site.partitions, smoke, named)) // stacks
    written = len(modes.expected_cases(everything, site.partitions, smoke))
    empty = room.home / "empty"
    empty.mkdir()
    (empty / "empty.py").write_text(EMPTY.format(count=checks), encoding="utf-8")
    say(f"listing: {checks} checks with {stacks} stacks; a dry run of {written} cases")
    dry_run = [sys.executable, "-m", "clustergate", "dry-run", "--site=local"]
    works: dict[str, Callable[[], Timed]] = {
        "empty": lambda: _list(room, empty, named, checks),
        "the suite's": lambda: _list(room, checkout() / "reframe_checks", named, checks),
        "dry run": lambda: room.timed(dry_run),
    }
    times = [{name: work() for name, work in works.items()} for _ in rounds]
    used = {name: [one[name].cpu_seconds for one in times] for name in works}
    listed = f"reframe --list of {checks} checks with {stacks} stacks"
    for name in ("empty", "the suite's"):
        yield Figure(
            SECTION, f"{checks * stacks} cases, {name}", "processor time", "s", used[name], listed
        )
    beyond = [mine - bare for mine, bare in zip(used["the suite's"], used["empty"], strict=True)]
    subject = f"{checks * stacks} cases, the suite's"
    what = "processor time beyond that of as many empty ones"
    yield Figure(SECTION, subject, "processor time beyond", "s", beyond, what, AIM_BEYOND_S)
    subject = f"dry run of {written} cases"
    for quantity, values in (
        ("processor time", used["dry run"]),
        ("time", [one["dry run"].seconds for one in times]),
    ):
        yield Figure(SECTION, subject, quantity, "s", values, " ".join(dry_run[1:]), AIM_DRY_RUN_S)


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
