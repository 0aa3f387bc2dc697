"""``python -m tools.bench.verdicts``: how often verdicts are wrong, on recorded launches.

Unchanged launches that were recorded over hours are replayed: how often is a run called a
regression in which nothing changed, and how often is a slow-down found that was put into a group
of figures? Beside it stands what a single run with a fixed tolerance says of the same launches.
Then launches are slowed down for real on this machine, in ways that a cluster knows.
"""

from __future__ import annotations

import argparse
import datetime
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from clustergate import store
from clustergate.cli.streams import progress
from clustergate.model import ClustergateError
from clustergate.paths import state_dir
from clustergate.report.terminal import width
from clustergate.stacks.manifest import Manifest
from tools.bench import pairs, record, replay
from tools.bench.launches import Launch, RecordingError, read_launches, recordings

# Of undisturbed launches: with those set aside, they take about 1, 3, 5, 10 and more times as long
# as a single launch.
COSTS = (1, 2, 3, 5, 7, 10)
SLOW_DOWNS = (0.03, 0.05, 0.10, 0.20)
SINGLE_RUN_RULES = (0.05, 0.10, 0.20)
BASELINE_RUNS = 20
SINGLE_BASELINE = 10
DELAYS_NS = (20, 100)
# Rounds of a comparison of a stack with itself, and how many comparisons are made of them.
AB_ROUNDS = (10, 15, 30)
AB_TIMES = 1002
AB_SLOWED_TIMES = 20
# On this machine, for launches that are slowed down for real: the runs of the baseline, the
# undisturbed launches of a run, and how many are taken for a slowed one.
_FRESH_RUNS = 10
_LAUNCHES = 10
_SLOWED_LAUNCHES = 15
_PARTS = ("replay", "provoked")


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

    ``incomplete`` of the ``launches`` ran out of their time for a size, ``disturbed`` were set
    aside because others used the node or its cores were moved. ``slower_percent`` is the change of
    the group's mean, ``seen_percent`` the smallest that would have been found; both are None where
    nothing can be said.
    """

    provocation: str
    stack: str
    benchmark: str
    launches: int
    incomplete: int
    disturbed: int
    slower_percent: float | None
    seen_percent: float | None
    verdict: str


def replayed(launches: Sequence[Launch], per_run: int) -> Replayed | None:
    """Return what the gate says of runs of so many launches, None when there are too few."""
    stacks = sorted({launch.stack for launch in launches})
    runs = [replay.runs_of(launches, stack, per_run) for stack in stacks]
    if min(len(one.best) for one in runs) <= BASELINE_RUNS:
        return None
    gates = replay.gates_of(runs, BASELINE_RUNS)
    alarms = replay.false_alarms(runs, gates, BASELINE_RUNS)
    told = {}
    for slow_down in SLOW_DOWNS:
        found = replay.detections(runs, gates, slow_down, BASELINE_RUNS).values()
        told[f"{100 * slow_down:g} %"] = {
            verdict: sum(counts[verdict] for counts in found)
            for verdict in ("found", "inconclusive", "passed")
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


def provoke(manifests: Sequence[Manifest], say: Callable[[str], None]) -> Iterator[Provoked]:
    """Slow launches down on this machine, and yield what the gate says of each group.

    First come unchanged launches once more, of which nothing is to be found. Raises
    :class:`~tools.bench.record.LaunchFailed` when a launch ends badly.
    """
    with tempfile.TemporaryDirectory(prefix="clustergate-bench-") as name:
        folder = Path(name)
        recorder = record.Recorder(manifests, folder)
        unchanged: list[Launch] = []
        while not _enough(unchanged, [m.stack for m in manifests]):
            unchanged += filter(record.is_whole, recorder.rounds(record.ROUNDS))
            say(f"{len(unchanged)} unchanged launches for a baseline")
        delays = {m.stack: record.delay_library(m, folder) for m in manifests}
        names = {manifest.stack for manifest in manifests}
        for provocation in [record.UNCHANGED, *record.provocations(delays, DELAYS_NS)]:
            if provocation.stacks and not names & set(provocation.stacks):
                continue
            say(f"{provocation.name or 'nothing'} {', '.join(provocation.stacks)}".strip())
            slowed = list(recorder.rounds(_SLOWED_LAUNCHES, provocation))
            yield from judged(provocation.name or "nothing", unchanged, slowed)


def _enough(launches: Sequence[Launch], stacks: Sequence[str]) -> bool:
    held = {launch.stack for launch in launches}
    # A machine that is never left alone would be recorded for ever.
    if len(launches) > 4 * _FRESH_RUNS * _LAUNCHES * len(stacks):
        raise record.LaunchFailed(
            "other processes used the node in most launches, so there is no baseline; run again "
            "when it is idle"
        )
    return not set(stacks) - held and all(
        len(replay.runs_of(launches, stack, _LAUNCHES).best) >= _FRESH_RUNS for stack in stacks
    )


def judged(
    provocation: str, unchanged: Sequence[Launch], slowed: Sequence[Launch]
) -> Iterator[Provoked]:
    """Yield what the gate says of each group of slowed launches against the unchanged ones.

    All undisturbed launches of a stack make one run, up to as many as a run of the baseline has.
    """
    stacks = sorted({launch.stack for launch in unchanged})
    baselines = {stack: replay.runs_of(unchanged, stack, _LAUNCHES) for stack in stacks}
    groups = replay.groups_of(baselines.values())
    nearest = min(launch.core_distance_ns for launch in unchanged)
    for stack in sorted({launch.stack for launch in slowed}):
        mine = [launch for launch in slowed if launch.stack == stack]
        whole = [
            launch for launch in mine if set(launch.microseconds) == set(baselines[stack].names)
        ]
        disturbed = sum(replay.is_disturbed(launch, nearest) for launch in whole)
        taken = min(len(whole) - disturbed, _LAUNCHES)
        if taken:
            run = replay.runs_of(whole, stack, taken, nearest)
            rows = np.arange(len(baselines[stack].best))
            gate = replay.gate_of(baselines[stack], rows, groups, taken)
        for group in groups:
            if group.stack != stack:
                continue
            change, seen, verdict = None, None, "inconclusive"
            if taken:
                verdict = str(gate.group_verdicts(run.best[:1], run.undisturbed[:1], group)[0])
                change = 100.0 * float(np.expm1(gate.pooled(run.best[:1], group)[0]))
                threshold = float(gate.thresholds(run.undisturbed[:1], group)[0])
                seen = None if math.isinf(threshold) else 100.0 * math.expm1(threshold)
            yield Provoked(
                provocation=provocation,
                stack=stack,
                benchmark=group.benchmark,
                launches=len(mine),
                incomplete=len(mine) - len(whole),
                disturbed=disturbed,
                slower_percent=change,
                seen_percent=seen,
                verdict=verdict,
            )


def _replay_table(rows: Sequence[Replayed]) -> Table:
    table = Table(box=box.SIMPLE, title="Replayed launches", title_justify="left")
    table.add_column("launches a run,\ntaken on average", justify="right")
    table.add_column("unchanged runs", justify="right")
    table.add_column("false alarms\n(95 % bound)", justify="right")
    for slow_down in SLOW_DOWNS:
        title = f"slower by {100 * slow_down:g} %:\nfound / inconclusive / passed"
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
        "B 10 % slower in one benchmark:\nfound / inconclusive / missed / wrong",
    ):
        table.add_column(name, justify="right")
    for row in rows:
        share = f"{row.told_apart}\n(below {100 * row.bound:.1f} %)"
        of = sum(row.slowed.values())
        told = " / ".join(f"{100 * n / of:.1f} %" for n in row.slowed.values())
        table.add_row(str(row.rounds), str(row.comparisons), share, told)
    return table


def _together_table(rows: Sequence[Replayed]) -> Table:
    table = Table(box=box.SIMPLE, title="All recordings together", title_justify="left")
    for name in ("launches a run", "unchanged runs", "false alarms", "95 % bound"):
        table.add_column(name, justify="right")
    for cost, share in together(rows).items():
        bound = f"below {100 * share.upper_bound:.2f} %"
        table.add_row(str(cost), str(share.of), str(share.happened), bound)
    return table


def _provoked_table(rows: Sequence[Provoked]) -> Table:
    title = "Slowed down for real (found: the benchmark in all its sizes, or one of them)"
    table = Table(box=box.SIMPLE, title=title, title_justify="left")
    for name in ("what", "stack", "benchmark"):
        table.add_column(name)
    for name in (
        *("launches", "ran out\nof time", "set aside", "slower by"),
        *("found in all\nsizes from", "verdict"),
    ):
        table.add_column(name, justify="right")
    last = None
    for row in rows:
        if last not in (None, (row.provocation, row.stack)):
            table.add_section()
        last = (row.provocation, row.stack)
        counts = (row.launches, row.incomplete, row.disturbed)
        table.add_row(
            *(row.provocation, row.stack, row.benchmark),
            *map(str, counts),
            *("" if p is None else f"{p:.1f} %" for p in (row.slower_percent, row.seen_percent)),
            row.verdict,
        )
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, provoke, print and keep; 2 when something could not be measured."""
    asked = _asked(arguments)
    say = progress()
    console = Console(width=max(width(), 130), highlight=False, markup=False)
    started = datetime.datetime.now().astimezone()
    results: dict[str, object] = {"schema": 2, "started": started.isoformat(timespec="seconds")}
    failure = ""
    try:
        files = list(asked.recorded or recordings())
        if asked.only in (None, "replay"):
            results["replay"] = _replay(files, console, say)
        if asked.only in (None, "provoked"):
            provoked = list(provoke(record.manifests_of(asked.stacks), say))
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


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.verdicts",
        description="How often verdicts are wrong: on recorded launches, and on this machine.",
    )
    parser.add_argument(
        "--recorded", type=Path, action="append", help="files to replay; may be given several times"
    )
    parser.add_argument(
        "--stacks", type=lambda text: text.split(","), default=(), metavar="STACK,…",
        help="provoke these alone",
    )  # fmt: skip
    parser.add_argument("--only", choices=_PARTS, help="this part alone")
    return parser.parse_args(arguments)


def _replay(
    files: Sequence[Path], console: Console, say: Callable[[str], None]
) -> dict[str, object]:
    """Replay recordings, print what comes out, and return it for JSON."""
    found: dict[str, object] = {}
    everything: list[Replayed] = []
    for path in files:
        launches = list(read_launches(path))
        if not launches:
            raise RecordingError(f"{path} holds no launches")
        say(f"replaying {path.name}")
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
        found[str(path)] = {
            "hours": hours,
            "replayed": [asdict(row) for row in rows],
            "single_run": {name: asdict(share) for name, share in singles.items()},
            "against_itself": [asdict(one) for one in against],
        }
    if len(files) > 1:
        console.print(_together_table(everything))
        found["together"] = {
            cost: {**asdict(share), "upper_bound": share.upper_bound}
            for cost, share in together(everything).items()
        }
    return found


if __name__ == "__main__":
    sys.exit(main())
