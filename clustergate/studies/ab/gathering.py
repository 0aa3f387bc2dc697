"""From the records of two contenders to the rounds that are compared. Pure."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.model import (
    METRICS,
    Better,
    CaseRecord,
    Conditions,
    Sample,
)
from clustergate.core.reasons import Reason
from clustergate.judge.assembly import beyond_limits
from clustergate.launch.plan import Launched
from clustergate.stacks.manifest import Manifest
from clustergate.studies.ab.contenders import SIDES

A, B = "A", "B"
_OF = "contender"
# Of several times of one measurement the slowest rank's: one slow rank is what it shows.
_TIMES = ("latency_us", "t_max_us", "t_avg_us")
_BANDWIDTH = "bandwidth_mb_s"
# IMB prints two decimals: a time that follows from a bandwidth is that far from the printed one.
_PRINTED = 0.0051
_NUMBER = re.compile(r"\d[\d.]*")
# Where there is no time: one of these. Beside either, what is another measurement; the time of HPL
# follows from its rate.
_RATES = ("bandwidth_mb_s", "message_rate_per_s")
_OTHERS = ("overlap_percent", "performance_gflops")


@dataclass(frozen=True)
class Job:
    """The rounds of one job: a row per round, a column per figure; NaN where one has no value.

    ``launches`` counts all launches of each contender, ``disturbed`` the rounds in which something
    disturbed a launch: they count as all do, or whoever is disturbed more would be spared.
    ``disturbance`` is a sentence of the most frequent kind. ``node_seconds`` are those of the
    launches of each round.
    """

    check: str
    partition: str
    conditions: Conditions
    figures: Sequence[Sample]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    launches: int
    disturbed: int
    disturbance: str = ""
    node_seconds: Sequence[float] = ()

    @property
    def round_s(self) -> float:
        """How long the launches of a round took on average."""
        nodes = int(self.conditions.get("nodes", 1))
        return sum(self.node_seconds) / nodes / max(len(self.node_seconds), 1)


def side_of(
    side: str,
    text: str,
    manifest: Manifest,
    made: Mapping[int, Launched],
    record: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what one contender's record holds of what a job left behind."""
    mine = {order for order, launched in made.items() if launched.contender == side}
    rounds = {str(order): made[order].turn for order in sorted(mine)}
    part = {**record, "details": {**record.get("details", {})}}
    part.pop("unmeasured", None)
    for name in ("samples", "launches"):
        part[name] = [one for one in record.get(name, ()) if one.order in mine]
    part["details"] |= {
        "contender": side,
        "named": text,
        "rounds": rounds,
        "build_key": manifest.build_key,
        "lock": manifest.lock,
        "mpi": f"{manifest.mpi_name} {manifest.mpi_version}".strip(),
    }
    # That of the job's first launch, whosever that was.
    part["details"].pop("proof", None)
    return part


def unspent_s(earlier: Iterable[CaseRecord], each_s: float) -> float:
    """Return what earlier jobs of a comparison left of the seconds that each of them was given."""
    jobs = {one.name.rpartition("-")[0]: one for one in earlier if is_contender(one)}
    ran = [one for one in jobs.values() if one.launches]
    spent = sum(one.spent_s("launch_s") for one in ran)
    return max(len(ran) * each_s - spent, 0.0)


def is_contender(record: CaseRecord) -> bool:
    """Tell whether a record is of one side of a comparison."""
    return record.details.get(_OF) in tuple(SIDES)


def jobs_of(records: Iterable[CaseRecord], sides: Sequence[str] = (A, B)) -> list[Job]:
    """Return the rounds of two contenders in each job of a run in which both proved themselves."""
    pairs: dict[str, dict[str, CaseRecord]] = {}
    for record in records:
        if record.details.get(_OF) in tuple(sides) and not record.unavailable:
            job = record.name.rpartition("-")[0]
            pairs.setdefault(job, {})[str(record.details[_OF])] = record
    return [
        _job(*map(pair.__getitem__, sides))
        for pair in pairs.values()
        if len(pair) == len(sides) and not complaints_of(pair.values())
    ]


def complaints_of(records: Iterable[CaseRecord]) -> list[Reason]:
    """Return why the jobs of these records do not count, each reason once.

    What is said of a contender whose record is not among them does not speak against them. A
    figure that cannot be makes nobody win.
    """
    contenders = [record for record in records if is_contender(record)]
    named = [(str(x.details[_OF]), str(x.details.get("named", ""))) for x in contenders]
    # Earlier versions told the side, too.
    known = {who for side, text in named for who in (text, f"{side} ({text})")}
    complaints = [
        one
        for record in contenders
        for one in (*record.complaints, *beyond_limits(record))
        if one.facts.get(_OF) is None or one.facts[_OF] in known
    ]
    return list(dict.fromkeys(complaints))


def _job(a: CaseRecord, b: CaseRecord) -> Job:
    rounds = [_rounds(record) for record in (a, b)]
    turns = sorted(set(rounds[0].values()) & set(rounds[1].values()))
    check = descriptor_of(a.check).ab
    counted = check.counted if check else {}
    disturbed: dict[int, str] = {}
    seconds = dict.fromkeys(turns, 0.0)
    for record, turn_of in zip((a, b), rounds, strict=True):
        for launch in record.launches:
            if turn_of[launch.order] in seconds:
                seconds[turn_of[launch.order]] += launch.seconds
        by_turn = {turn_of[x.order]: str(x.disturbed) for x in record.launches if x.disturbed}
        disturbed |= {turn: sentence for turn, sentence in by_turn.items() if turn in turns}
    sides = [(one.samples, turn_of) for one, turn_of in zip((a, b), rounds, strict=True)]
    figures, tables = tables_of(sides, turns, counted)
    nodes = int(a.conditions.get("nodes", 1))
    return Job(
        check=a.check,
        partition=a.partition,
        conditions=a.conditions,
        figures=figures,
        a=tables[0],
        b=tables[1],
        launches=max(len(a.launches), len(b.launches)),
        disturbed=len(disturbed),
        disturbance=_most_frequent(disturbed.values()),
        node_seconds=[nodes * seconds[turn] for turn in turns],
    )


def tables_of(
    sides: Iterable[tuple[Sequence[Sample], Mapping[int, int]]],
    turns: Sequence[int],
    counted: Mapping[str, int],
) -> tuple[list[Sample], list[NDArray[np.float64]]]:
    """Return the figures of both sides, and of each a table: a row per turn, a column per figure.

    A side are its samples, and the turn of each launch by its order.
    """
    figures: dict[object, Sample] = {}
    of_sides = []
    for samples, turn_of in sides:
        values: dict[object, dict[int, float]] = {}
        for sample in comparable_samples(samples, counted):
            key = _key(sample)
            figures.setdefault(key, sample)
            values.setdefault(key, {})[turn_of[sample.order]] = sample.value
        of_sides.append(values)
    tables = [
        np.array(
            [[values.get(key, {}).get(turn, math.nan) for key in figures] for turn in turns],
            dtype=float,
        ).reshape(len(turns), len(figures))
        for values in of_sides
    ]
    return list(figures.values()), tables


def _most_frequent(sentences: Collection[str]) -> str:
    """Return the first sentence of the most frequent kind, kinds being alike but for numbers."""
    kinds = {sentence: _NUMBER.sub("", sentence) for sentence in sentences}
    often = Counter(kinds[sentence] for sentence in sentences).most_common(1)
    return next((cause for cause, kind in kinds.items() if kind == often[0][0]), "")


def _rounds(record: CaseRecord) -> dict[int, int]:
    rounds: Any = record.details.get("rounds", {})
    return {int(order): int(turn) for order, turn in rounds.items()}


def _key(sample: Sample) -> object:
    conditions = {k: v for k, v in sample.conditions.items() if k != "repetitions"}
    return sample.benchmark, sample.metric, tuple(sorted(conditions.items()))


def comparable_samples(samples: Sequence[Sample], counted: Mapping[str, int]) -> Iterator[Sample]:
    """Yield one sample of each figure and launch: times before what follows from them.

    IMB prints 0.01 us, and MB/s beside it: where those are the finer digits, in every launch of a
    figure alike, the time is had from them. ``counted`` is that of
    :class:`clustergate.benchmarks.descriptor.AbCheck`.
    """
    by_figure: dict[object, list[dict[str, Sample]]] = {}
    lines: dict[object, dict[str, Sample]] = {}
    for sample in samples:
        conditions = {k: v for k, v in sample.conditions.items() if k != "repetitions"}
        figure = (sample.benchmark, tuple(sorted(conditions.items())))
        line = lines.setdefault((figure, sample.order), {})
        if not line:
            by_figure.setdefault(figure, []).append(line)
        line[sample.metric] = sample
    for of_launches in by_figure.values():
        finer = all(_bandwidth_is_finer(line, counted) for line in of_launches)
        for line in of_launches:
            yield from _of_line(line, counted, finer=finer)


def _of_line(
    line: Mapping[str, Sample], counted: Mapping[str, int], *, finer: bool
) -> Iterator[Sample]:
    names = [name for name in _TIMES if name in line]
    rates = [name for name in _RATES if name in line and line[name].conditions.get("bytes") != 0]
    if names:
        time = line[names[0]]
        moved = _time_from_bandwidth(line, time, counted) if finer else None
        yield time if moved is None else dataclasses.replace(time, value=moved)
    elif rates or _RATES[1] in line:
        yield line[(rates or _RATES[1:])[0]]
    for name in _OTHERS:
        if name in line:
            yield line[name]
    if not names and not set(line) & {*_RATES, *_OTHERS}:
        for name, sample in line.items():
            if name not in METRICS or (sample.better is not Better.NEITHER and name != "time_s"):
                yield sample


def _bandwidth_is_finer(line: Mapping[str, Sample], counted: Mapping[str, int]) -> bool:
    time = next((line[name] for name in _TIMES if name in line), None)
    if time is None or _BANDWIDTH not in line or line[_BANDWIDTH].value <= time.value:
        return False
    return _time_from_bandwidth(line, time, counted) is not None


def _time_from_bandwidth(
    line: Mapping[str, Sample], time: Sample, counted: Mapping[str, int]
) -> float | None:
    """Return the time that a bandwidth tells, None where that is not the one that was printed."""
    moved = counted.get(time.benchmark)
    if moved is None or _BANDWIDTH not in line or line[_BANDWIDTH].value <= 0.0:
        return None
    time_us = moved * float(time.conditions.get("bytes", 0)) / line[_BANDWIDTH].value
    return time_us if abs(time_us - time.value) <= _PRINTED + 1e-4 * time.value else None
