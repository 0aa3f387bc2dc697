"""``python -m tools.bench.verdicts``: how often verdicts are wrong, on recorded launches.

Unchanged launches that were recorded at different hours are replayed through what a check does: a
baseline of some recordings becomes a reference file, and runs of another are judged by it. How
often is a run called a regression in which nothing changed, and how often is a slow-down found that
was put into it? Beside it stands what the field's rules say of the same launches. Then launches are
slowed down for real on this machine, in ways that a cluster knows. A simulated cluster has what no
recording has: HPL and HPCC, several nodes, and many days (:mod:`tools.bench.metal`).
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import itertools
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from clustergate.cli.progress import Progress
from clustergate.core import store
from clustergate.core.model import Case, CaseId, CaseRecord, ClustergateError
from clustergate.core.paths import state_dir
from clustergate.judge.baselines.proposals import Rule
from clustergate.report.console import width
from clustergate.sites.modes import MODES, Mode
from clustergate.stacks.manifest import Manifest
from tools.bench import (
    aims,
    field,
    metal,
    metal_aims,
    otava,
    pairs,
    realdata,
    record,
    runs,
    simulated_creeping,
    simulated_nodes,
)
from tools.bench.launches import Launch, RecordingError, read_launches, recordings
from tools.bench.runs import ANSWERS, FOUND, INCONCLUSIVE, PASSED, Judge, Run, Slowed, judge_of
from tools.bench.slowdowns import BENCHMARK, NOTHING, SIZE, STACK, Change
from tools.bench.spread import Share
from tools.bench.workspace import file_for

# Those that are in every recording.
STACKS = ("intel-mpi", "mpich")
SLOWER = (1.03, 1.05, 1.10, 1.20)
INTERMITTENT = 5.0
BASELINE_RUNS = 20
# Runs of a recording that one baseline judges, and those of them that Otava sees.
JUDGED_RUNS, OTAVA_RUNS = 10, 2
# A baseline of one recording: none of them lasts the hour that the rule asks for.
SESSION = datetime.timedelta(hours=0.3)
OURS, OTAVA = "clustergate", "E-divisive"
# Of how many recordings a baseline is, by what it is called; the last is asked of quiet hosts.
ONE, MANY, SEVEN = "one session", "many sessions", "7 sessions, quiet hosts"
SESSIONS = {ONE: 1, MANY: 99, SEVEN: 7}
# How often what looks slow is launched again.
_AGAIN = 2
DELAYS_NS = (20, 100)
# Rounds of a comparison of a stack with itself, by who asks, and how many of each. The gate has
# ten minutes, and all seven benchmarks were launched in turn 46 times a minute.
AB_ROUNDS = {
    **dict.fromkeys(pairs.RULES, 300),
    "ab": 60,
    **dict.fromkeys(field.RULES, 20),
}
AB_TIMES = 4
# It is told what is decided within so many of them.
_WITHIN = (25, 50, 100, 150, 200, 300)
# On this machine, for launches that are slowed down for real: the runs of the baseline, and how
# many launches are taken for a slowed one.
_FRESH_RUNS = 10
_SLOWED_LAUNCHES = 15
# Of ten rounds; a run takes two at most.
_MOST_JOBS = 4 * _FRESH_RUNS
_PARTS = ("judge", "metal", "nodes", "creeping", "replay", "ab", "aims", "provoked")


CHANGES = (
    NOTHING,
    *(Change(where, by) for where in (SIZE, BENCHMARK, STACK) for by in SLOWER),
    *(Change(STACK, INTERMITTENT, k) for k in (10, 3)),
)


_T = TypeVar("_T")
Put = tuple[Mapping[str, Sequence[str]], Slowed]
"""What a change affects, by stack and figure, and how much slower each launch is."""


def put_in(change: Change, run: Run, lot: np.random.Generator) -> Put:
    """Return what a change affects, by stack and figure, and how much slower each launch is."""
    names = {stack: sorted(some[0].microseconds) for stack, some in run.launches.items()}
    if change == NOTHING:
        return names, {}
    stack = str(lot.choice(sorted(names)))
    hit = str(lot.choice(names[stack]))
    affected = change.figures(names[stack], hit)
    launches = len(run.launches[stack])
    first = int(lot.integers(0, min(change.every, launches)))
    slow = range(first, launches, change.every)
    return {stack: affected}, {(name, k): change.factor for name in affected for k in slow}


# --- the replay ---------------------------------------------------------------------------------

Answers = Counter[tuple[str, Change, str, str]]
"""How often a rule said something of a change, by rule, change, recording and answer."""

Series = list[tuple[list[float], int]]
"""Figures over launches, each with the place of the first launch of a run."""

Asked = tuple[tuple[str, Change, str], Series]
"""What Otava is asked of a run, behind the rule, the change and the recording."""


@dataclass(frozen=True)
class Replayed:
    """What is said of the runs of a mode, by baselines of one kind.

    ``node_seconds`` are those of a judged run, by rule; ``references`` the share of the replayed
    figures that got one, ``decided`` the share of those of unchanged runs that passed or regressed;
    ``figures`` are those of a run of the mode, recorded or not.
    """

    mode: str
    baseline: str
    recordings: Sequence[str]
    runs: int
    launches: float
    figures: int
    references: float
    decided: float
    node_seconds: Mapping[str, float]
    answers: Answers
    no_otava: str = ""

    def share(self, rule: str, change: Change, answer: str) -> Share:
        """Return how often a rule gave an answer, by recording."""
        told = [
            {a: self.answers[rule, change, recording, a] for a in ANSWERS}
            for recording in self.recordings
        ]
        return Share([(one[answer], sum(one.values())) for one in told])

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Replayed:
        """Return what was kept as JSON."""
        changes = {str(change): change for change in CHANGES}
        answers = {
            (one["rule"], changes[one["change"]], one["recording"], one["answer"]): one["runs"]
            for one in kept["answers"]
        }
        return cls(**{**kept, "answers": Counter(answers)})

    @property
    def rules(self) -> list[str]:
        """The rules that said anything, the suite's own first."""
        return list(dict.fromkeys(rule for rule, *_ in self.answers))


def replayed(
    recorded: Mapping[str, Sequence[Launch]],
    mode: Mode,
    *,
    baseline: str,
    otava_python: Path | None = None,
    judged_runs: int = JUDGED_RUNS,
    changes: Sequence[Change],
) -> Replayed | None:
    """Return what is said of each recording by baselines of the others of its processor.

    That is a ``baseline`` of :data:`SESSIONS`; one of a single recording lasts for :data:`SESSION`.
    None where nothing makes a baseline.
    """
    of = {
        name: runs.runs_of(name, some, STACKS, runs.effort(mode).budget)
        for name, some in recorded.items()
        if baseline != SEVEN or aims.is_quiet(some)
    }
    answers: Answers = Counter()
    seconds = dict.fromkeys((OURS, *field.RULES, OTAVA), 0.0)
    asked: list[Asked] = []
    judged, launches, figures = 0, 0, 0
    references, decided = [], []
    for basis, others in baselines(of, baseline):
        span = Rule(shortest=SESSION) if baseline == ONE else Rule()
        judge = judge_of(basis, mode, STACKS, span)
        figures = len(judge.references.paths()) + judge.refused
        references.append(judge.replayed_figures())
        known = {
            stack: field.Known([times_of_run(one, stack) for one in basis], figures)
            for stack in STACKS
        }
        for other, k in itertools.product(others, range(judged_runs)):
            # What looks slow can be launched again.
            picked = spread_out(of[other][:-_AGAIN], judged_runs)[k:]
            if not picked:
                continue
            run = picked[0]
            judged += 1
            launches += sum(map(len, run.launches.values()))
            for rule in seconds:
                seconds[rule] += _first(run) if rule == "one run, 10 %" else run.seconds
            place_of_run = next(k for k, one in enumerate(of[other]) if one is run)
            in_turn = of[other][place_of_run : place_of_run + 1 + _AGAIN]
            plain = [{stack: judge.record(one, stack) for stack in STACKS} for one in in_turn]
            for place, change in enumerate(changes):
                put = [
                    put_in(change, one, np.random.default_rng([judged, place])) for one in in_turn
                ]
                affected, slowed = put[0]
                said, again_s, cases = _answer_of_check(judge, in_turn, plain, put)
                answers[OURS, change, other, said] += 1
                if change == NOTHING:
                    seconds[OURS] += again_s
                    decided.append(runs.decided(cases))
                for rule, told in _field(known, run, affected, slowed).items():
                    answers[rule, change, other, told] += 1
                if otava_python and k % (judged_runs // OTAVA_RUNS or 1) == 0:
                    series = _series(known, run, affected, slowed)
                    asked.append(((OTAVA, change, other), series))
    if not judged:
        return None
    missing = _ask(asked, otava_python, answers) if otava_python else "Otava was not asked"
    return Replayed(
        mode.name,
        baseline,
        [name for name in of if of[name]],
        judged,
        launches / judged / len(STACKS),
        figures,
        float(np.mean(references)),
        float(np.mean(decided)),
        {rule: total / judged for rule, total in seconds.items()},
        answers,
        missing,
    )


def baselines(
    of: Mapping[str, Sequence[Run]], baseline: str
) -> Iterator[tuple[Sequence[Run], Sequence[str]]]:
    """Yield the runs of each baseline, and the recordings that it judges, of its processor."""
    known = {name: processor_of(some[0]) for name, some in of.items() if some}
    for name in of:
        others = [one for one in known if one != name and known[one] == known.get(name)]
        sources = [name] if baseline == ONE else spread_out(others, SESSIONS[baseline])
        if baseline == SEVEN and len(sources) < SESSIONS[SEVEN]:
            continue
        each = math.ceil(BASELINE_RUNS / max(len(sources), 1))
        basis = [run for source in sources for run in spread_out(of[source], each)]
        long = basis and max(x.started for x in basis) - min(x.started for x in basis) >= SESSION
        if long and len(basis) >= Rule().fewest_runs:
            yield basis, others if baseline == ONE else [name]


def processor_of(run: Run) -> str:
    """Return what processor a run is of; tools/bench/recorded/README.md tells it of the first."""
    (launch, *_), *_ = run.launches.values()
    return launch.window.processor or "AMD EPYC"


def spread_out(some: Sequence[_T], count: int) -> list[_T]:
    """Return so many of some, as far from each other as there are: first and last among them."""
    if len(some) <= count:
        return list(some)
    return [some[round(k * (len(some) - 1) / max(count - 1, 1))] for k in range(count)]


def times_of_run(run: Run, stack: str) -> field.Times:
    """Return the times of all figures of a stack, in the order of their names."""
    names = sorted(run.launches[stack][0].microseconds)
    return np.array([[x.microseconds[n] for n in names] for x in run.launches[stack]])


def _first(run: Run) -> float:
    return sum(some[0].noted.seconds for some in run.launches.values())


def _answer_of_check(
    judge: Judge,
    in_turn: Sequence[Run],
    plain: Sequence[Mapping[str, CaseRecord]],
    put: Sequence[Put],
) -> tuple[str, float, Sequence[Case]]:
    """Return what a check says: found is what makes it exit with 1.

    The first of some runs is judged, and where a case is launched again the launches of the next
    ones are taken; ``plain`` are their records without the change. Behind it: the seconds of what
    was launched again, and the cases.
    """
    turns: Counter[str] = Counter()
    seconds = 0.0

    def record(turn: int, stack: str) -> CaseRecord:
        affected, slowed = put[turn]
        if not slowed or stack not in affected:
            return plain[turn][stack]
        return judge.record(in_turn[turn], stack, slowed)

    def again(key: CaseId) -> CaseRecord | None:
        nonlocal seconds
        turns[key.stack] += 1
        if turns[key.stack] >= len(in_turn):
            return None
        seconds += sum(x.noted.seconds for x in in_turn[turns[key.stack]].launches[key.stack])
        return record(turns[key.stack], key.stack)

    said = judge.judged([record(0, stack) for stack in plain[0]], again)
    affected, slowed = put[0]
    told = runs.answer(said.cases, affected)
    if said.status == 1 and not slowed:
        told = FOUND
    elif said.status == 2 and told != FOUND:
        told = INCONCLUSIVE
    return told, seconds, said.cases


def slowed_times(
    run: Run, stack: str, affected: Sequence[str], slowed: Slowed
) -> tuple[field.Times, list[int]]:
    """Return the times of some figures of a run, and their columns among all."""
    names = sorted(run.launches[stack][0].microseconds)
    columns = [names.index(name) for name in affected]
    times = times_of_run(run, stack)[:, columns]
    factors = [[slowed.get((name, k), 1.0) for name in affected] for k in range(len(times))]
    return times * np.array(factors), columns


def _narrowed(known: field.Known, columns: Sequence[int]) -> field.Known:
    found = field.Known([one[:, columns] for one in known.runs], known.figures)
    found.__dict__["resampled"] = known.resampled[:, columns]  # drawn once for all changes
    return found


def _field(
    known: Mapping[str, field.Known],
    run: Run,
    affected: Mapping[str, Sequence[str]],
    slowed: Slowed,
) -> dict[str, str]:
    found = dict.fromkeys(field.RULES, PASSED)
    for stack, names in affected.items():
        times, columns = slowed_times(run, stack, names, slowed)
        mine = _narrowed(known[stack], columns)
        found |= {name: FOUND for name, says in field.RULES.items() if says(mine, times).any()}
    return found


def _series(
    known: Mapping[str, field.Known],
    run: Run,
    affected: Mapping[str, Sequence[str]],
    slowed: Slowed,
) -> Series:
    found: Series = []
    for stack, names in affected.items():
        times, columns = slowed_times(run, stack, names, slowed)
        found += field.series(_narrowed(known[stack], columns), times)
    return found


def _ask(asked: Sequence[Asked], python: Path, answers: Answers) -> str:
    """Count what Otava says; return why it says nothing."""
    try:
        said = iter(otava.slower(python, [one for _, some in asked for one in some]))
    except otava.NoOtava as error:
        return str(error)
    for (rule, change, recording), some in asked:
        told = FOUND if any(list(itertools.islice(said, len(some)))) else PASSED
        answers[rule, change, recording, told] += 1
    return ""


# --- A against A --------------------------------------------------------------------------------


def launched_in_turn(
    recorded: Mapping[str, Sequence[Launch]], say: Callable[[str], None]
) -> Iterator[tuple[str, list[pairs.Found]]]:
    """Yield what comparisons of each stack with itself come to, by who asks."""
    for how, most in AB_ROUNDS.items():
        say(f"each stack against itself: {how}")
        yield how, list(pairs.replayed(recorded, most, AB_TIMES, how))
    try:
        python = otava.environment(state_dir() / "bench" / "otava")
        yield OTAVA, list(pairs.by_e_divisive(recorded, AB_ROUNDS["t test"], AB_TIMES, python))
    except otava.NoOtava as error:
        say(f"{OTAVA}: {error}")


# --- slowed down for real -----------------------------------------------------------------------


@dataclass(frozen=True)
class Provoked:
    """What a check says of a benchmark whose launches were slowed down for real.

    ``incomplete`` of the ``launches`` ran out of their time for a size. ``slower_percent`` is the
    change of the benchmark as a whole, ``seen_percent`` the smallest that would have been found;
    both are None where nothing can be said.
    """

    provocation: str
    stack: str
    benchmark: str
    launches: int
    incomplete: int
    slower_percent: float | None
    seen_percent: float | None
    verdict: str


def provoke(manifests: Sequence[Manifest], say: Callable[[str], None]) -> Iterator[Provoked]:
    """Slow launches down on this machine, and yield what a check says of each benchmark.

    First come unchanged launches once more, of which nothing is to be found. Raises
    :class:`~tools.bench.record.LaunchFailed` when a launch ends badly.
    """
    mode = MODES["maintenance"]
    stacks = [manifest.stack for manifest in manifests]
    with tempfile.TemporaryDirectory(prefix="clustergate-bench-") as name:
        folder = Path(name)
        recorder = record.Recorder(manifests, folder)
        unchanged: list[Launch] = []
        basis: Sequence[Run] = ()
        jobs = 0
        while len(basis) < _FRESH_RUNS:
            jobs += 1
            if jobs > _MOST_JOBS:
                raise record.LaunchFailed(
                    f"{_MOST_JOBS * record.ROUNDS} rounds left {len(basis)} runs with all figures, "
                    f"and a baseline is made of {_FRESH_RUNS}; run again when the node is idle"
                )
            unchanged += filter(record.is_whole, recorder.rounds(record.ROUNDS))
            basis = runs.runs_of("unchanged", unchanged, stacks, runs.effort(mode).budget)
            say(f"{len(unchanged)} unchanged launches, {len(basis)} runs of a baseline")
        delays = {m.stack: record.delay_library(m, folder) for m in manifests}
        judge = judge_of(basis, mode, stacks, Rule(shortest=datetime.timedelta(0)))
        for provocation in [record.UNCHANGED, *record.provocations(delays, DELAYS_NS)]:
            if provocation.stacks and not set(stacks) & set(provocation.stacks):
                continue
            say(f"{provocation.name or 'nothing'} {', '.join(provocation.stacks)}".strip())
            slowed = list(recorder.rounds(_SLOWED_LAUNCHES, provocation))
            yield from judged(provocation.name or "nothing", judge, slowed)


def judged(provocation: str, judge: Judge, slowed: Sequence[Launch]) -> Iterator[Provoked]:
    """Yield what a check says of each benchmark of some launches: those of a stack are one run."""
    for stack in sorted({launch.stack for launch in slowed}):
        mine = [launch for launch in slowed if launch.stack == stack]
        whole = [launch for launch in mine if record.is_whole(launch)]
        counts = (len(mine), len(mine) - len(whole))
        case = judge.case(Run("slowed", {stack: whole}), stack) if whole else None
        groups = {x: g for g in case.groups for x in runs.benchmarks_of(g)} if case else {}
        for benchmark in record.BENCHMARKS:
            group = groups.get(benchmark)
            affected = {stack: [f"{benchmark}/{size}" for size in record.SIZES_BYTES]}
            if case is None or group is None:
                verdict = runs.answer([case], affected) if case else INCONCLUSIVE
                yield Provoked(provocation, stack, benchmark, *counts, None, None, verdict)
                continue
            yield Provoked(
                provocation,
                stack,
                benchmark,
                *counts,
                None if group.worse_by is None else 100 * math.expm1(group.worse_by),
                None if math.isinf(group.threshold) else 100 * math.expm1(group.threshold),
                runs.answer([case], affected),
            )


# --- tables -------------------------------------------------------------------------------------


Sheet = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A table: its title, its heads and its rows."""


def table_of(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table as the terminal shows it."""
    table = Table(box=box.MARKDOWN, title=title, title_justify="left", show_edge=True)
    for k, name in enumerate(columns):
        table.add_column(name, justify="right" if k else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def told_of_recordings(recorded: Mapping[str, Sequence[Launch]]) -> str:
    """Return in a sentence of how many recordings, hours, days and processors the figures are."""
    began = [
        datetime.datetime.fromtimestamp(some[0].time_s, datetime.timezone.utc)
        for some in recorded.values()
    ]
    hours = sum(some[-1].time_s - some[0].time_s for some in recorded.values()) / 3600
    days = len({day.date() for day in began})
    told = [some[0].window.processor for some in recorded.values()]
    known = sorted({processor for processor in told if processor is not None})
    unknown = told.count(None)
    return (
        f"{len(recorded)} recordings of {hours:.1f} hours together, begun in "
        f"{len({(d.date(), d.hour) for d in began})} different hours of {days} days; processors: "
        f"{', '.join(known) or 'none noted'}" + (f" ({unknown} noted none)" if unknown else "")
    )


def sheets_of(one: Replayed) -> Iterator[Sheet]:
    """Yield what was said of the runs of a mode, and what it costs."""
    title = (
        f"{one.mode}, baselines of {one.baseline}: {one.runs} runs of {one.launches:.1f} launches; "
        f"{one.figures} figures a run, of the replayed ones {100 * one.references:.0f} % have a "
        f"reference, and {100 * one.decided:.0f} % of those of unchanged runs are decided. In "
        "percent, with bounds of 95 % over recordings"
    )
    others = [rule for rule in one.rules if rule != OURS]
    rows = []
    for change in dict.fromkeys(change for _, change, *_ in one.answers):
        ours = [str(one.share(OURS, change, answer)) for answer in ANSWERS]
        rows.append([str(change), *ours, *(str(one.share(r, change, FOUND)) for r in others)])
    yield title, ["slower", *ANSWERS, *others], rows
    costs = []
    for rule in one.rules:
        decided = sum(one.share(rule, NOTHING, answer).share for answer in (FOUND, PASSED))
        seconds = one.node_seconds[rule]
        per_decision = f"{seconds / decided:.1f}" if decided else "nothing decided"
        costs.append([rule, f"{seconds:.1f}", f"{100 * decided:.0f} %", per_decision])
    each_s = one.node_seconds[OURS] / max(one.decided * len(STACKS) * record.FIGURES, 1)
    share = f"{100 * one.decided:.0f} %"
    costs.insert(1, [f"{OURS}, of each figure", costs[0][1], share, f"{each_s:.1f}"])
    heads = ("", "node-seconds a run", "decided", "node-seconds per decision")
    yield f"What that costs, of unchanged runs: {one.mode}, {one.baseline}", heads, costs


def _in_turn_table(how: str, found: Sequence[pairs.Found]) -> Table:
    answers = list(dict.fromkeys(one.answer for *_, one in found))
    rows = []
    for put in dict.fromkeys(put for _, put, _ in found):
        of = {name: [x for n, p, x in found if n == name and p == put] for name, *_ in found}
        shares = [
            Share([(sum(x.answer == a for x in some), len(some)) for some in of.values()])
            for a in answers
        ]
        _, rounds, seconds = pairs.counted(found, put)
        rows.append([str(put), *map(str, shares), f"{rounds:.0f}", f"{seconds:.1f}"])
    title = f"A against A, {how}, {AB_TIMES} a stack and recording"
    costs = ("mean rounds of the decided", "node-seconds per decision")
    return table_of(title, ("put into B", *answers, *costs), rows)


def _within_table(found: Sequence[pairs.Found]) -> Table:
    """Tell of each recording how many comparisons are decided within some budgets, in rounds."""
    rows = []
    for put in (NOTHING, Change(SIZE, 1.20)):
        for name in dict.fromkeys(name for name, *_ in found):
            mine = [x for of, p, x in found if (of, p) == (name, put)]
            ends = [x.rounds for x in mine if x.answer != pairs.UNDECIDED]
            counts = [sum(one <= rounds for one in ends) for rounds in _WITHIN]
            rows.append([str(put), name, *map(str, (len(mine), *counts))])
    heads = ("put into B", "recording", "comparisons", *(f"within {n}" for n in _WITHIN))
    return table_of("Decided at the gate within so many rounds", heads, rows)


def _provoked_table(rows: Sequence[Provoked]) -> Table:
    def percent(value: float | None) -> str:
        return "" if value is None else f"{value:.1f} %"

    return table_of(
        "Slowed down for real (found: the benchmark in all its sizes, or one of them)",
        ("what", "stack", "benchmark", "launches", "ran out of time", "slower by",
         "found in all sizes from", "verdict"),
        [
            [x.provocation, x.stack, x.benchmark, str(x.launches), str(x.incomplete),
             percent(x.slower_percent), percent(x.seen_percent), x.verdict]
            for x in rows
        ],
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, provoke, print and keep; 2 when something could not be measured."""
    asked = _asked(arguments)
    say = Progress()
    console = Console(width=max(width(), 240), highlight=False, markup=False)
    started = datetime.datetime.now().astimezone()
    results: dict[str, object] = {"schema": 3, "started": started.isoformat(timespec="seconds")}
    failure = ""
    parts = [asked.only] if asked.only else _PARTS
    try:
        for part in metal.PARTS:
            if part in parts:
                results[part] = _metal(part, asked, console, say)
        if "nodes" in parts:
            nodes = simulated_nodes.measured()
            title = "Simulated: nodes against nodes on the first run"
            console.print(table_of(title, simulated_nodes.HEADS, simulated_nodes.rows(nodes)))
            results["nodes"] = simulated_nodes.plain(nodes)
        if "creeping" in parts:
            crept = simulated_creeping.measured(
                asked.runs or simulated_creeping.HALF_YEARS,
                asked.kept or metal.kept_in("creeping"),
                say,
            )
            title = "Simulated: half-years with weekly baselines"
            console.print(table_of(title, simulated_creeping.HEADS, simulated_creeping.rows(crept)))
            results["creeping"] = simulated_creeping.plain(crept)
        if asked.data:
            told = list(_of_real_machines(asked.data, say))
            console.print(table_of("Results of real machines", realdata.HEADS, realdata.rows(told)))
            results["realdata"] = [asdict(one) for one in told]
        others = [part for part in parts if part not in (*metal.PARTS, "nodes", "creeping")]
        recorded = _recorded(asked.recorded or recordings()) if others else {}
        if "replay" in parts:
            results["recordings"] = told_of_recordings(recorded)
            console.print(results["recordings"], soft_wrap=True)
            results["replay"] = _replay(recorded, asked, console, say)
        if "ab" in parts:
            for how, found in launched_in_turn(recorded, say):
                console.print(_in_turn_table(how, found))
                if how == "gate":
                    console.print(_within_table(found))
                results[f"in_turn_{how}"] = [
                    {"recording": name, "put": str(put), **asdict(one)} for name, put, one in found
                ]
        if "aims" in parts:
            answered = list(aims.answered(recorded, say))
            openings = list(aims.openings(recorded, say))
            for rows in (
                *(made(answered) for made in aims.TABLES.values()),
                aims.rows_of_openings(openings),
            ):
                heads, *others = rows
                console.print(table_of("Beside a golden build", heads, others))
            results["aims"] = [one.plain() for one in answered]
            results["openings"] = [asdict(one) for one in openings]
        if "provoked" in parts:
            provoked = list(provoke(record.manifests_of(asked.stacks), say))
            console.print(_provoked_table(provoked))
            results["provoked"] = [asdict(row) for row in provoked]
    except ClustergateError as error:
        failure = str(error)
    kept = file_for(started, "verdicts-")
    store.write_json(kept, {**results, "failure": failure})
    console.print(f"Kept in {kept}", soft_wrap=True)
    if failure:
        console.print(f"not measured to its end: {failure}", soft_wrap=True)
    return 2 if failure else 0


def _metal(
    part: str, asked: argparse.Namespace, console: Console, say: Callable[[str], None]
) -> Mapping[str, Any]:
    """Judge runs of the simulated cluster, print what comes out, and return it for JSON."""
    kept = metal.measured(
        part,
        asked.kept or metal.kept_in(part),
        lambda name: all(text in name for text in asked.cells),
        asked.runs or metal.PARTS[part],
        asked.baselines,
        say,
    )
    for title, rows in metal.tables(kept):
        console.print(table_of(f"Simulated: {title}", metal.HEADS, rows))
    for of_aims, heads in metal_aims.HEADS.items():
        console.print(table_of("Simulated: what was aimed at", heads, of_aims(kept)))
    return metal.plain(kept)


def _of_real_machines(folder: Path, say: Callable[[str], None]) -> Iterator[realdata.Told]:
    for system in realdata.systems(realdata.read_values(folder)):
        say(f"{system.dataset}: {system.machine}, {system.benchmark}, {len(system.days)} days")
        yield from realdata.told_of(system)


def _recorded(files: Sequence[Path]) -> dict[str, Sequence[Launch]]:
    found: dict[str, Sequence[Launch]] = {
        path.name.partition(".")[0]: list(read_launches(path)) for path in files
    }
    if empty := [name for name, launches in found.items() if not launches]:
        raise RecordingError(f"{empty[0]} holds no launches")
    return found


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
    parser.add_argument(
        "--modes", type=lambda text: text.split(","), default=list(MODES), metavar="MODE,…",
        help=f"replay runs of these modes (default: {','.join(MODES)})",
    )  # fmt: skip
    parser.add_argument(
        "--runs", type=int, metavar="N",
        help=f"judge so many runs of a recording by each baseline (default: {JUDGED_RUNS}), and so "
        "many unchanged ones of a simulated cell (others half as many; default: "
        f"{metal.PARTS[metal.JUDGE]} by the judge alone, {metal.PARTS[metal.CHECK]} by a check)",
    )  # fmt: skip
    parser.add_argument(
        "--cells", action="append", default=[], metavar="TEXT",
        help="simulate the cells alone whose names hold this, such as '| 5 days | HPL'",
    )  # fmt: skip
    parser.add_argument(
        "--baselines", type=int, default=metal.BASES, metavar="N",
        help=f"simulate so many baselines of each kind (default: {metal.BASES})",
    )  # fmt: skip
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER",
        help="judge the results of real machines in this folder as well (*.csv.gz)",
    )  # fmt: skip
    parser.add_argument(
        "--kept", type=Path, metavar="FILE",
        help="go on with what was counted into this file (default: that of this very judge)",
    )  # fmt: skip
    parser.add_argument("--only", choices=_PARTS, help="this part alone")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.modes if name not in MODES]:
        parser.error(f"--modes {unknown[0]}: the modes are {', '.join(MODES)}")
    return asked


def _replay(
    recorded: Mapping[str, Sequence[Launch]],
    asked: argparse.Namespace,
    console: Console,
    say: Callable[[str], None],
) -> list[dict[str, object]]:
    """Replay recordings, print what comes out, and return it for JSON."""
    python, missing = None, ""
    try:
        python = otava.environment(state_dir() / "bench" / "otava")
    except otava.NoOtava as error:
        missing = str(error)
    found: list[dict[str, object]] = []
    for name in asked.modes:
        for baseline in SESSIONS:
            say(f"replaying {name} by baselines of {baseline}")
            one = replayed(
                recorded,
                MODES[name],
                baseline=baseline,
                otava_python=python,
                judged_runs=asked.runs or JUDGED_RUNS,
                changes=CHANGES,
            )
            if one is None:
                continue
            one = dataclasses.replace(one, no_otava=missing or one.no_otava)
            for sheet in sheets_of(one):
                console.print(table_of(*sheet))
            if one.no_otava:
                console.print(f"{OTAVA}: {one.no_otava}", soft_wrap=True)
            found.append(
                {
                    **asdict(dataclasses.replace(one, answers=Counter())),
                    "answers": [
                        {
                            "rule": rule,
                            "change": str(change),
                            "recording": on,
                            "answer": a,
                            "runs": n,
                        }
                        for (rule, change, on, a), n in one.answers.items()
                    ],
                }
            )
    return found


if __name__ == "__main__":
    sys.exit(main())
