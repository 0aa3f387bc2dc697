"""``python -m clustergate.bench.verdicts``: how often verdicts are wrong, on recorded launches.

Unchanged launches that were recorded over hours are replayed: how often is a run called a
regression in which nothing changed, and how often is a slow-down found that was put into a group
of figures? Beside it stands what a single run with a fixed tolerance says of the same launches.
Then launches are slowed down for real on this machine, in ways that a cluster knows.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from clustergate import sites, store
from clustergate.bench import pairs, record, replay
from clustergate.bench.launches import Launch, read_launches, write_launches
from clustergate.cli.setup import progress
from clustergate.model import ClustergateError
from clustergate.report.terminal import width
from clustergate.stacks.manifest import Manifest, ManifestError, read_manifest
from clustergate.state import state_dir

RECORDED = Path(__file__).with_name("recorded")
COSTS = (1, 3, 5, 10)
SLOW_DOWNS = (0.03, 0.05, 0.10, 0.20)
SINGLE_RUN_RULES = (0.05, 0.10, 0.20)
BASELINE_RUNS = 20
SINGLE_BASELINE = 10
DELAYS_NS = (20, 100)
# Rounds of a comparison of a stack with itself, and how many comparisons are made of them.
AB_ROUNDS = (10, 15, 30)
AB_TIMES = 1002
AB_SLOWED_TIMES = 20
# On this machine, for launches that are slowed down for real.
_FRESH_RUNS = 8
_LAUNCHES = 5


@dataclass(frozen=True)
class Replayed:
    """What the gate says at a cost of so many undisturbed launches a run."""

    launches: int
    mean_cost: float
    runs: int
    false_alarms: int
    false_alarm_bound: float
    told: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Provoked:
    """What the gate says of launches that were slowed down for real.

    ``slower_percent`` is the change of the group's mean, ``disturbed`` counts the launches that
    were set aside because others used the node or its cores were moved.
    """

    provocation: str
    stack: str
    benchmark: str
    launches: int
    disturbed: int
    slower_percent: float | None
    verdict: str


def replayed(launches: Sequence[Launch], per_run: int) -> Replayed | None:
    """Return what the gate says of runs of so many launches, None when there are too few."""
    stacks = sorted({launch.stack for launch in launches})
    runs = [replay.runs_of(launches, stack, per_run) for stack in stacks]
    if min(len(one.best) for one in runs) <= BASELINE_RUNS:
        return None
    alarms = replay.false_alarms(runs, BASELINE_RUNS)
    told = {}
    for slow_down in SLOW_DOWNS:
        found = replay.detections(runs, slow_down, BASELINE_RUNS).values()
        told[f"{100 * slow_down:g} %"] = {
            verdict: sum(counts[verdict] for counts in found)
            for verdict in ("found", "cannot tell", "passed")
        }
    cost = float(np.mean(np.concatenate([one.cost for one in runs])))
    return Replayed(per_run, cost, alarms.of, alarms.happened, alarms.upper_bound, told)


def single_run(launches: Sequence[Launch]) -> dict[str, replay.Share]:
    """Return the false alarms of single launches by tolerance."""
    stacks = sorted({launch.stack for launch in launches})
    runs = [replay.runs_of(launches, stack, 1) for stack in stacks]
    return {
        f"{100 * tolerance:g} %": replay.single_run_alarms(runs, tolerance, SINGLE_BASELINE)
        for tolerance in SINGLE_RUN_RULES
    }


def together(rows: Sequence[Replayed]) -> dict[int, replay.Share]:
    """Return the false alarms of all recordings by the launches of a run."""
    return {
        cost: replay.Share(
            sum(row.false_alarms for row in rows if row.launches == cost),
            sum(row.runs for row in rows if row.launches == cost),
        )
        for cost in sorted({row.launches for row in rows})
    }


@dataclass(frozen=True)
class Against:
    """What comparisons of so many rounds say of a stack against itself.

    ``told_apart`` of ``comparisons`` call anything better; ``bound`` is the upper bound of their
    share (95 %). ``slowed`` are the answers where B's launches of one benchmark are 10 % slower.
    """

    rounds: int
    comparisons: int
    told_apart: int
    bound: float
    slowed: Mapping[str, int]


def against_itself(launches: Sequence[Launch], rounds: int) -> Against | None:
    """Return what comparisons of each stack with itself say, None for too few launches."""
    stacks = sorted({launch.stack for launch in launches})
    recorded = [pairs.recorded_rounds(launches, stack) for stack in stacks]
    if min(map(len, recorded)) < rounds:
        return None
    apart = pairs.told_apart(recorded, rounds, AB_TIMES)
    slowed = pairs.slowed(launches, stacks, rounds, AB_SLOWED_TIMES, 1.10)
    return Against(rounds, apart.of, apart.happened, apart.upper_bound, slowed)


def provoke(say: Callable[[str], None]) -> Iterator[Provoked]:
    """Slow launches down on this machine, and yield what the gate says of each group.

    Raises :class:`~clustergate.bench.record.LaunchFailed` when a launch ends badly.
    """
    manifests = list(_manifests())
    if not manifests:
        raise ManifestError("no MPI stack with IMB is set up; run `make setup`")
    with tempfile.TemporaryDirectory(prefix="clustergate-bench-") as name:
        folder = Path(name)
        recorder = record.Recorder(manifests, folder)
        say("unchanged launches for a baseline")
        unchanged: list[Launch] = []
        while not _enough(unchanged, [m.stack for m in manifests]):
            unchanged += recorder.round()
        delays = {m.stack: record.delay_library(m, folder) for m in manifests}
        for provocation in record.provocations(delays, DELAYS_NS):
            say(f"{provocation.name} {', '.join(provocation.stacks)}".strip())
            slowed: list[Launch] = []
            for _ in range(2 * _LAUNCHES):
                slowed += recorder.round(provocation)
            yield from judged(provocation.name, unchanged, slowed)


def _manifests() -> Iterator[Manifest]:
    for name, _ in sites.stacks_of(sites.load(sites.find("local"))):
        try:
            manifest = read_manifest(state_dir(), name)
        except ManifestError:
            continue
        needed = ("IMB-MPI1", "core_distance")
        if not any(manifest.program(program).unavailable for program in needed):
            yield manifest


def _enough(launches: Sequence[Launch], stacks: Sequence[str]) -> bool:
    held = {launch.stack for launch in launches}
    if set(stacks) - held:
        return False
    # A machine that is never left alone would be recorded for ever.
    if len(launches) > 4 * _FRESH_RUNS * _LAUNCHES * len(stacks):
        raise record.LaunchFailed(
            "other processes used the node in most launches, so there is no baseline; run again "
            "when it is idle"
        )
    return all(
        len(replay.runs_of(launches, stack, _LAUNCHES).best) >= _FRESH_RUNS for stack in stacks
    )


def judged(
    provocation: str, unchanged: Sequence[Launch], slowed: Sequence[Launch]
) -> Iterator[Provoked]:
    """Yield what the gate says of each group of slowed launches against the unchanged ones."""
    stacks = sorted({launch.stack for launch in unchanged})
    baselines = {stack: replay.runs_of(unchanged, stack, _LAUNCHES) for stack in stacks}
    groups = replay.groups_of(baselines.values())
    for stack in sorted({launch.stack for launch in slowed}):
        mine = [launch for launch in slowed if launch.stack == stack]
        nearest = min(launch.core_distance_ns for launch in unchanged)
        disturbed = sum(replay.is_disturbed(launch, nearest) for launch in mine)
        runs = replay.runs_of(mine, stack, _LAUNCHES, nearest)
        gate = replay.gate_of(baselines[stack], np.arange(len(baselines[stack].best)), groups)
        for group in groups:
            if group.stack != stack:
                continue
            change, verdict = None, "cannot tell"
            if len(runs.best):
                verdict = str(gate.group_verdicts(runs.best[:1], group)[0])
                change = 100.0 * float(np.expm1(gate.pooled(runs.best[:1], group)[0]))
            yield Provoked(
                provocation, stack, group.benchmark, len(mine), disturbed, change, verdict
            )


def _replay_table(rows: Sequence[Replayed]) -> Table:
    table = Table(box=box.SIMPLE, title="Replayed launches", title_justify="left")
    table.add_column("launches a run,\ntaken on average", justify="right")
    table.add_column("unchanged runs", justify="right")
    table.add_column("false alarms\n(95 % bound)", justify="right")
    for slow_down in SLOW_DOWNS:
        title = f"slower by {100 * slow_down:g} %:\nfound / cannot tell / passed"
        table.add_column(title, justify="right")
    for row in rows:
        told = [
            " / ".join(f"{100 * n / max(sum(counts.values()), 1):.1f} %" for n in counts.values())
            for counts in row.told.values()
        ]
        alarms = f"{row.false_alarms}\n(below {100 * row.false_alarm_bound:.1f} %)"
        cost = f"{row.launches}\n{row.mean_cost:.1f}"
        table.add_row(cost, str(row.runs), alarms, *told)
    return table


def _single_table(shares: Mapping[str, replay.Share]) -> Table:
    table = Table(
        box=box.SIMPLE,
        title="A single run with a fixed tolerance, same launches",
        title_justify="left",
    )
    for name in ("tolerance", "unchanged runs", "false alarms"):
        table.add_column(name, justify="right")
    for tolerance, share in shares.items():
        table.add_row(tolerance, str(share.of), f"{share.happened} ({100 * share.share:.0f} %)")
    return table


def _against_table(rows: Sequence[Against]) -> Table:
    table = Table(box=box.SIMPLE, title="A against A", title_justify="left")
    for name in (
        *("rounds", "comparisons", "told apart\n(95 % bound)"),
        "B 10 % slower in one benchmark:\nfound / cannot tell / missed / wrong",
    ):
        table.add_column(name, justify="right")
    for row in rows:
        share = f"{row.told_apart}\n(below {100 * row.bound:.1f} %)"
        of = sum(row.slowed.values())
        told = " / ".join(f"{100 * n / of:.1f} %" for n in row.slowed.values())
        table.add_row(str(row.rounds), str(row.comparisons), share, told)
    return table


def _provoked_table(rows: Sequence[Provoked]) -> Table:
    table = Table(box=box.SIMPLE, title="Slowed down for real", title_justify="left")
    for name in ("what", "stack", "benchmark", "launches", "set aside", "slower by", "verdict"):
        table.add_column(
            name, justify="left" if name in ("what", "stack", "benchmark") else "right"
        )
    for row in rows:
        slower = "" if row.slower_percent is None else f"{row.slower_percent:.1f} %"
        cells = (row.provocation, row.stack, row.benchmark, str(row.launches), str(row.disturbed))
        table.add_row(*cells, slower, row.verdict)
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, provoke, print and keep; 2 when something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m clustergate.bench.verdicts",
        description="How often verdicts are wrong: on recorded launches, and on this machine.",
    )
    parser.add_argument("--recorded", type=Path, action="append", help="files to replay")
    parser.add_argument(
        "--record", type=float, metavar="MINUTES", help="first record launches here"
    )
    parser.add_argument("--no-provoke", action="store_true", help="only replay")
    asked = parser.parse_args(arguments)
    say = progress()
    console = Console(width=max(width(), 130), highlight=False, markup=False)
    started = datetime.datetime.now().astimezone()
    results: dict[str, object] = {"schema": 1, "started": started.isoformat(timespec="seconds")}
    failure = ""
    try:
        files = list(asked.recorded or sorted(RECORDED.glob("*.csv.gz")))
        everything: list[Replayed] = []
        if asked.record:
            files = [_record(asked.record, say)]
        for path in files:
            launches = list(read_launches(path))
            rows = [row for cost in COSTS if (row := replayed(launches, cost)) is not None]
            everything += rows
            singles = single_run(launches)
            hours = (launches[-1].time_s - launches[0].time_s) / 3600
            console.print(f"{path.name}: {len(launches)} launches over {hours:.1f} hours")
            console.print(_replay_table(rows))
            console.print(_single_table(singles))
            say("each stack against itself")
            against = [one for n in AB_ROUNDS if (one := against_itself(launches, n)) is not None]
            console.print(_against_table(against))
            results[path.name] = {
                "hours": hours,
                "replayed": [asdict(row) for row in rows],
                "single_run": {name: asdict(share) for name, share in singles.items()},
                "against_itself": [asdict(one) for one in against],
            }
        if len(files) > 1:
            for cost, share in together(everything).items():
                console.print(
                    f"all recordings, {cost} launches a run: {share.happened} false alarms in "
                    f"{share.of} unchanged runs (below {100 * share.upper_bound:.1f} %)"
                )
        if not asked.no_provoke:
            provoked = list(provoke(say))
            console.print(_provoked_table(provoked))
            results["provoked"] = [asdict(row) for row in provoked]
    except ClustergateError as error:
        failure = str(error)
    kept = state_dir() / "bench" / f"verdicts-{started:%Y%m%dT%H%M%S}.json"
    store.write_json(kept, {**results, "failure": failure})
    console.print(f"Kept in {kept}", soft_wrap=True)
    if failure:
        console.print(f"not measured to its end: {failure}", soft_wrap=True)
    return 2 if failure else 0


def _record(minutes: float, say: Callable[[str], None]) -> Path:
    folder = state_dir() / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"launches-{datetime.datetime.now():%Y%m%dT%H%M%S}.csv.gz"
    manifests = list(_manifests())
    if not manifests:
        raise ManifestError("no MPI stack with IMB is set up; run `make setup`")
    end = time.monotonic() + 60.0 * minutes
    taken: list[Launch] = []
    with tempfile.TemporaryDirectory(prefix="clustergate-bench-") as name:
        recorder = record.Recorder(manifests, Path(name))
        while time.monotonic() < end:
            taken += recorder.round()
            if len(taken) % 100 < len(manifests):
                say(f"{len(taken)} launches, {(end - time.monotonic()) / 60:.0f} minutes to go")
                write_launches(path, taken)
    write_launches(path, taken)
    return path


if __name__ == "__main__":
    sys.exit(main())
