"""Put a run together: what should have run, what ReFrame says, what the cases left behind.

Pure: everything comes in as data. The result is a :class:`~clustergate.core.model.Run` in which
each case that should have been there is there, with a verdict for each of its figures.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from clustergate.core.figures import (
    name_of,
    name_of_unmeasured,
    same_measurement,
)
from clustergate.core.model import (
    UNKNOWN_DISTANCE,
    BaselineRuns,
    Better,
    Case,
    CaseId,
    CaseRecord,
    CaseState,
    ComparedSet,
    Conditions,
    ConditionValue,
    Figure,
    Group,
    Judgement,
    Promise,
    Reference,
    Row,
    Verdict,
)
from clustergate.core.notation import counted, listed, number
from clustergate.core.reasons import Reason, Words
from clustergate.core.texts import VARIANT, figure_name, group_name
from clustergate.judge import promises, rules
from clustergate.judge.case import NO_NODES, MeasuredFigure, Nodes, ReferenceOf, measure_case
from clustergate.judge.confirmation import FIGURE_SAME_MEASUREMENT
from clustergate.judge.distances import distances, is_covariate, rarer, shifts
from clustergate.judge.judging import (
    COMPARED,
    NO_REFERENCE,
    WRONG,
    ReframeReference,
    as_judged,
    impossible,
    is_too_few,
    judge_figure,
    reframe_expected,
    reframe_reference,
    slow_against,
    slow_share,
    slow_together,
)
from clustergate.judge.kinds import FigureId
from clustergate.judge.node_peaks import relations
from clustergate.judge.references.expectations import Expect
from clustergate.judge.references.lookup import effort_key, layout_key
from clustergate.judge.runs import days, figure_id
from clustergate.judge.scatter import FEWEST_DAYS
from clustergate.launch.disturbance import most_disturbed
from clustergate.launch.proof.ranks import library_title
from clustergate.machine.environment import describe_removed
from clustergate.machine.peaks import of_all_cores, peaks_of
from clustergate.sites.modes import NODE_USAGE, PROCESS_COUNT, variant_of
from clustergate.stats.modality import Modes

PERFORMANCE_PHASE = "performance"
CASE_NO_FIGURES = Words(
    "case.no-figures",
    "it ran and left no figure",
    remedy="look at its settings, its script and its output",
)
NO_FIGURES = CASE_NO_FIGURES()
# Whatever is doubtful about its figure.
_BEYOND_DOUBT = (Verdict.NO_REFERENCE, Verdict.IMPOSSIBLE, Verdict.INVALID)
_LAUNCHES = "launches"
OUT_OF_MEMORY = Words(
    "figure.out-of-memory",
    "the benchmark printed {word!r} instead of a result",
    remedy="allow more with -- -S memory_gb=…, or leave the size out with -- -S largest_bytes=…",
)
TIMED_OUT = Words(
    "figure.timed-out",
    "the benchmark printed {word!r} instead of a result",
    remedy=(
        "give each size more time with -- -S time=…, or leave this one out with -- -S "
        "largest_bytes=…"
    ),
)
INTEGER_OVERFLOW = Words(
    "figure.integer-overflow",
    "the benchmark printed {word!r} instead of a result",
    remedy="leave the size out with -- -S largest_bytes=…",
)
# A word that stands where figures should, and the code of its remedy.
_UNMEASURED = {
    "out-of-mem": OUT_OF_MEMORY,
    "time-out": TIMED_OUT,
    "int-overflow": INTEGER_OVERFLOW,
}


@dataclass(frozen=True)
class Outcome:
    """What ReFrame says of one case: ``result`` is pass, fail, skip or abort.

    ``partition`` and ``parameters`` are those of :class:`~clustergate.core.model.CaseId`. ``key``
    names it in ReFrame's output, see :func:`clustergate.run.resuming.case_key`. ``full_disk`` is
    the folder of a failed job whose disk is full, else empty.
    """

    name: str
    check: str
    stack: str
    result: str
    phase: str = ""
    reason: str = ""
    full_disk: str = ""
    duration_s: float = 0.0
    key: str = ""
    partition: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def identity(self) -> CaseId:
        """What tells it from the other cases of the run."""
        return CaseId(self.check, self.partition, self.stack, self.parameters)


def assemble(
    expected: Iterable[CaseId],
    outcomes: Sequence[Outcome],
    records: Sequence[CaseRecord],
    reference_of: ReferenceOf = lambda check, partition, stack, conditions, sample: None,
    nodes: Nodes = NO_NODES,
    mode: str = "",
    not_set_up: Mapping[str, Reason] = MappingProxyType({}),
    not_loaded: Mapping[str, Reason] = MappingProxyType({}),
    expects: Sequence[Expect] = (),
    beside: Beside | None = None,
) -> tuple[Case, ...]:
    """Return every case of a run, with those that are missing.

    ``not_set_up`` says of stacks why there is nothing of them to be run, ``not_loaded`` of checks;
    ``expects`` is what people wrote that figures must reach. ``beside`` is what :func:`compared`
    says of the records, where it was asked already; then no reference is looked up.

    A case counts as run only when it left a record without complaints and ReFrame passed it, and
    when it ran with the effort of the ``mode`` that was asked for, where one is named.
    """
    by_name = {record.name: record for record in records}
    beside = beside or compared(records, reference_of, nodes, expects)
    cases = [_case(outcome, by_name.get(outcome.name), mode, beside) for outcome in outcomes]
    seen = {outcome.identity for outcome in outcomes}
    missing = [key for key in expected if key not in seen]
    cases += [_missing(k, not_set_up.get(k.stack) or not_loaded.get(k.check)) for k in missing]
    return tuple(sorted(cases, key=lambda case: (case.check, case.stack)))


CASE_MISSING = Words(
    "case.missing",
    "it should have run on {where} and did not",
    remedy=(
        "see that the check files load, that the stack is in the site config, and that no option "
        "deselects it"
    ),
)


def _missing(key: CaseId, why: Reason | None) -> Case:
    return Case(
        check=key.check,
        stack=key.stack,
        partition=key.partition,
        parameters=key.parameters,
        state=CaseState.MISSING,
        conditions=conditions_of(key),
        reasons=(why or CASE_MISSING(where=key.where),),
    )


def conditions_of(key: CaseId) -> Conditions:
    """Return what is known of the launch of a case that nobody saw."""
    known = dict(key.parameters)
    conditions: dict[str, ConditionValue] = {}
    if PROCESS_COUNT in known:
        conditions["ranks"] = int(known[PROCESS_COUNT])
    if NODE_USAGE in known:
        conditions["placement"] = known[NODE_USAGE]
    if variant := variant_of(key.check, key.parameters):
        conditions[VARIANT] = variant
    return conditions


def unexpected(expected: Iterable[CaseId], outcomes: Sequence[Outcome]) -> list[str]:
    """Return a sentence for each case that ran and should not have been there."""
    known = set(expected)
    strangers = dict.fromkeys(
        outcome.identity for outcome in outcomes if outcome.identity not in known
    )
    return [
        f"{key.check} with {key.stack} on {key.where} ran and was not "
        "to be expected of what was asked for: see which option selected it"
        for key in strangers
    ]


OTHER_MODE = Words(
    "case.other-mode",
    "it ran with the effort of the mode {ran}, and {asked} was asked for",
    remedy="name the mode by --mode alone, not by -- -S mode=…",
)
CASE_UNAVAILABLE = Words("case.unavailable", "{why}")
CASE_FAILED = Words("case.failed", "{why}")
FAILED_IN_PHASE = Words("case.failed-in-phase", "{why} (in ReFrame's phase {phase})")
CASE_FULL_DISK = Words(
    "case.full-disk",
    "No space left on device for {folder}",
    cause="the job could not write its output or its proof",
    remedy="free some space and run again",
)
NOTHING_JUDGED = Words(
    "case.nothing-judged",
    "nothing of what it measured is judged ({names:names})",
    remedy="give its rows a rate or a time by another name, with a direction",
)


def _case(outcome: Outcome, record: CaseRecord | None, mode: str, beside: Beside) -> Case:
    left = record or CaseRecord(outcome.name, outcome.check, outcome.stack, "", {})
    proof: Any = left.details.get("proof") or {}
    library = library_title(str(proof.get("library_version", "")))
    shared: dict[str, Any] = {
        "check": outcome.check,
        "stack": outcome.stack,
        "partition": outcome.partition or left.partition,
        "parameters": outcome.parameters,
        "conditions": left.conditions,
        "duration_s": outcome.duration_s,
        "command": left.command,
        "notes": tuple(left.notes),
        "peaks": of_all_cores(left.peaks),
        "library": library.replace(" Version:", ""),
    }
    if left.not_launched:
        return Case(state=CaseState.NOT_LAUNCHED, reasons=(left.not_launched,), **shared)
    if left.unavailable:
        why_not = CASE_UNAVAILABLE(why=left.unavailable)
        return Case(state=CaseState.NOT_AVAILABLE, reasons=(why_not,), **shared)
    full = [CASE_FULL_DISK(folder=outcome.full_disk)] if outcome.full_disk else []
    if left.complaints:
        return Case(state=CaseState.FAILED, reasons=(*full, *left.complaints), **shared)
    effort = left.conditions.get("mode", mode)
    if mode and effort != mode:
        other = OTHER_MODE(ran=str(effort), asked=mode)
        return Case(state=CaseState.FAILED, reasons=(other,), **shared)
    figures: tuple[Figure, ...] = ()
    groups: tuple[Group, ...] = ()
    if record is not None:
        figures, groups = _judged(record, beside)
    # ReFrame fails a case in this phase for a figure beyond its bound, and always for what has no
    # figure. The judge sees them all together, and has the last word.
    failed = any(figure.judgement.verdict in WRONG for figure in figures)
    failed |= left.name in beside.beyond
    judged_alike = outcome.phase == PERFORMANCE_PHASE and (failed or bool(left.unmeasured))
    if record is None or (outcome.result != "pass" and not judged_alike):
        why = outcome.reason or f"ReFrame reports {outcome.result!r} and gives no reason"
        code = FAILED_IN_PHASE if outcome.phase else CASE_FAILED
        failed_in = code(why=why, phase=outcome.phase)
        return Case(state=CaseState.FAILED, reasons=(failed_in, *full), **shared)
    if not figures:
        only = sorted({sample.metric for sample in record.samples})
        nothing = NOTHING_JUDGED(names=only) if only else NO_FIGURES
        return Case(state=CaseState.FAILED, reasons=(nothing,), **shared)
    shared["promises"] = tuple(beside.promises.get(left.name, ()))
    return Case(state=CaseState.RAN, figures=figures, groups=groups, **shared)


def _judged(record: CaseRecord, beside: Beside) -> tuple[tuple[Figure, ...], tuple[Group, ...]]:
    measured = beside.measured[record.name] if record.samples else ()
    slow = {group.benchmark: group for group in _slow_together(measured)}
    groups = [slow.pop(one.benchmark, one) for one in beside.groups.get(record.name, ())]
    said = _said_beside(record.name, measured, beside)
    judged = [figure_of(one, said.get(place)) for place, one in enumerate(measured)]
    # Once, though several launches may say it.
    words = {name_of_unmeasured(row): row for row in record.unmeasured}
    disturbed = bool(record.launches) and all(one.disturbed for one in record.launches)
    return (
        *_measured_once([one.name for one in measured], judged),
        *map(_unmeasured, words.values()),
        *relations(peaks_of(record.peaks), disturbed=disturbed),
    ), (*groups, *slow.values())


@dataclass
class Beside:
    """What the figures of a run are called beside each other, and what they are as a whole.

    ``judgements`` are by the names of cases and the places of their figures, ``groups`` by cases.
    ``beyond`` are the cases that ReFrame fails by the bound of a figure alone. ``detectable`` is
    what change of each level is found in 80 % of runs, as a logarithm, of the partition that finds
    least. ``suspected`` are the sets that are slower, ``sets`` what was compared as a whole.
    ``promises`` are by cases, ``wholes`` those of stacks and kinds by partitions. ``measured`` are
    the figures of the cases that left some, by their names.
    """

    judgements: dict[tuple[str, int], Judgement] = field(default_factory=dict)
    groups: dict[str, list[Group]] = field(default_factory=dict)
    beyond: set[str] = field(default_factory=set)
    detectable: dict[str, float] = field(default_factory=dict)
    suspected: frozenset[frozenset[FigureId]] = frozenset()
    sets: tuple[ComparedSet, ...] = ()
    promises: dict[str, list[Promise]] = field(default_factory=dict)
    wholes: dict[str, list[Promise]] = field(default_factory=dict)
    measured: dict[str, list[MeasuredFigure]] = field(default_factory=dict)


def compared(
    records: Sequence[CaseRecord],
    reference_of: ReferenceOf,
    nodes: Nodes = NO_NODES,
    expects: Sequence[Expect] = (),
    watched: Collection[frozenset[FigureId]] = (),
    exclusive: Collection[str] | None = None,
) -> Beside:
    """Return what the figures of a run are called that have a baseline, those of each partition.

    ``watched`` are sets, see :class:`clustergate.judge.rules.Comparison`. ``exclusive`` are the
    partitions whose jobs have their nodes for themselves, where more is known than ``nodes`` state.
    """
    said = Beside()
    by_partition: dict[str, list[tuple[str, int, rules.Compared]]] = {}
    if exclusive is None:
        exclusive = [partition for partition, facts in nodes.items() if facts.exclusive]
    for record in records:
        if not record.samples or record.unavailable or record.complaints:
            continue
        measured = measure_case(record, reference_of, nodes, expects)
        said.measured[record.name] = measured
        for place, one in _with_baseline(record, measured):
            if why := _never_so_far(one, record.distance):
                said.judgements[record.name, place] = Judgement(Verdict.INCONCLUSIVE, (why,))
            else:
                by_partition.setdefault(record.partition, []).append((record.name, place, one))
            if one.is_beyond_bound:
                said.beyond.add(record.name)
    for partition, some in by_partition.items():
        comparison = rules.Comparison([one for *_, one in some], partition in exclusive, watched)
        for (name, place, _), judgement in zip(some, rules.judgements(comparison), strict=True):
            said.judgements[name, place] = judgement
        names = {one.figure.case: name for name, _, one in some}
        for case, group in rules.groups(comparison):
            said.groups.setdefault(names[case], []).append(group)
        for case, promise in promises.of_cases(comparison):
            said.promises.setdefault(names[case], []).append(promise)
        said.wholes[partition] = promises.of_wholes(comparison)
        for level, change in comparison.judge.detectable().items():
            said.detectable[level] = max(change, said.detectable.get(level, 0.0))
        said.suspected |= comparison.suspected
        said.sets += tuple(rules.sets(comparison))
    return said


def _with_baseline(
    record: CaseRecord, measured: Sequence[MeasuredFigure]
) -> Iterator[tuple[int, rules.Compared]]:
    """Yield the figures of a case that are judged beside others, each with its place."""
    for place, one in enumerate(measured):
        sample, value, reference = one.sample, one.estimate.value, one.reference
        if reference is None or reference.baseline is None or reference.doubt or one.excuse:
            continue
        if sample.better is Better.NEITHER or sample.unit != reference.unit:
            continue
        if "against" in sample.conditions:
            continue
        if one.doubt or not (math.isfinite(value) and min(value, reference.value) > 0):
            continue
        if is_too_few(reference, one.estimate.samples):
            continue
        layout, effort = layout_key(record.conditions), effort_key(record.conditions)
        own = (record.check, record.partition, record.stack, layout, effort)
        of = (sample.benchmark, sample.metric, sample.conditions.get("bytes"))
        figure = figure_id(own, one.name, *of)
        known, better, where = reference.baseline, sample.better, record.distance
        shift, rare = 0.0, 1.0
        if is_covariate(figure.kind, int(record.conditions.get("nodes", 1))):
            apart = shifts(known, better)
            if where in apart and UNKNOWN_DISTANCE not in apart:
                shift, rare = apart[where], rarer(known, where)
            else:
                figure = dataclasses.replace(figure, unplaced=True)
                if UNKNOWN_DISTANCE in (where, *apart) and days(known) < FEWEST_DAYS:
                    # Near one day and far the next, few of them tell nothing.
                    continue
        yield place, rules.Compared(figure, value, better, reference, known, shift, rare)


DISTANCE_UNSEEN = Words(
    "distance.unseen",
    "its nodes are of {distance}, those of the baseline of {known:names}",
    cause="the distance between nodes dominates small-message latency",
    remedy="take a baseline of runs on such nodes, too",
)


def _never_so_far(one: rules.Compared, where: str) -> Reason | None:
    """Return why a figure is not judged that no run measured at its distance, None where it is."""
    known = dict.fromkeys(distances(one.baseline))
    if not one.figure.unplaced or UNKNOWN_DISTANCE in (where, *known):
        return None
    return DISTANCE_UNSEEN(distance=where, known=[*known])


def _said_beside(
    case: str, measured: Sequence[MeasuredFigure], beside: Beside
) -> dict[int, Judgement]:
    """Return what figures of a case are called beside the others, by their places.

    A rate against a peak is that rate once more, and what is said of it holds for both.
    """
    said = {
        place: beside.judgements[case, place]
        for place in range(len(measured))
        if (case, place) in beside.judgements
    }
    rates = {measured[place].sample.benchmark: place for place in reversed(said)}
    for place, one in enumerate(measured):
        rate = rates.get(one.sample.benchmark)
        with_runs = one.reference is not None and one.reference.baseline and not one.excuse
        if rate is not None and with_runs and "against" in one.sample.conditions:
            same = FIGURE_SAME_MEASUREMENT(other=measured[rate].name)
            said[place] = Judgement(said[rate].verdict, (same,))
    return said


AVERAGE_ALONE = Words(
    "figure.average-alone",
    "the only reference is that of {other}, the average over the ranks",
    cause="one slow rank of many hardly moves the average",
    remedy="take a new baseline: it has the slowest rank's time",
)


def _measured_once(names: Sequence[str], figures: Sequence[Figure]) -> Iterator[Figure]:
    """Yield figures; one without a reference has the verdict of the same measurement."""
    by_name = dict(zip(names, figures, strict=True))
    for name, figure in zip(names, figures, strict=True):
        # Older references are of the ranks' average.
        alike = [*same_measurement(name), name.replace(".t_max_us", ".t_avg_us")]
        stand_ins = [
            (alias, other)
            for alias in alike
            # An expectation is of one figure alone.
            if (other := by_name.get(alias)) and not other.expected
            if other.judgement.verdict in COMPARED
        ]
        if stand_ins and figure.judgement.reasons == (NO_REFERENCE,):
            alias, other = stand_ins[0]
            verdict, code = other.judgement.verdict, FIGURE_SAME_MEASUREMENT
            if other.metric == "t_avg_us" and verdict is not Verdict.REGRESSION:
                # One slow rank of many hardly moves the average.
                verdict, code = Verdict.INCONCLUSIVE, AVERAGE_ALONE
            judgement = Judgement(verdict, (code(other=alias),))
            yield dataclasses.replace(figure, judgement=judgement, doubt=other.doubt)
        else:
            yield figure


_TOLD_LEVELS = {
    "kind": "all compute or all messages",
    "stack": "a stack",
    "benchmark of a case": "a benchmark",
    "figure": "one size",
}


def found_at_80_percent(detectable: Mapping[str, float]) -> list[str]:
    """Return in one sentence what a run would have found in four of five cases.

    ``detectable`` is that by level, as a logarithm; without a baseline there is none.
    """
    levels = {level: what for level, what in _TOLD_LEVELS.items() if level in detectable}
    parts = [
        f"{what} {100 * math.expm1(detectable[level]):.0f} %"
        for level, what in levels.items()
        if math.isfinite(detectable[level])
    ]
    unknown = [what for level, what in levels.items() if math.isinf(detectable[level])]
    if unknown:
        parts.append(f"nothing of {' or '.join(unknown)}, until the baseline has more days")
    return [f"4 of 5 such runs find, if slower: {', '.join(parts)}"] if parts else []


def beyond_limits(record: CaseRecord) -> list[Reason]:
    """Return which figures of a case cannot be, and why, whatever they are compared with."""
    return [
        why.at(f"{one.name}: {judgement.verdict.value}")
        for one in measure_case(record)
        if (judgement := impossible(one))
        for why in judgement.reasons
    ]


def _slow_together(measured: Sequence[MeasuredFigure]) -> Iterator[Group]:
    """Yield the benchmarks of a case of which whole launches are far worse than references."""
    by_benchmark: dict[str, list[tuple[MeasuredFigure, Reference, BaselineRuns]]] = {}
    for one in measured:
        reference = one.reference
        if reference is not None and reference.baseline is not None and reference.value > 0:
            member = (one, reference, reference.baseline)
            by_benchmark.setdefault(one.sample.benchmark, []).append(member)
    for benchmark, members in by_benchmark.items():
        if len(members) < 2:
            continue
        orders = set.intersection(*(set(one.launches) for one, *_ in members))
        means = [
            statistics.fmean(
                one.sample.better.worse_by(one.launches[order], reference.value)
                for one, reference, _ in members
            )
            for order in sorted(orders)
            if all(one.launches[order] > 0 for one, *_ in members)
        ]
        slow = slow_together(means, members[0][2], members[0][0].excuse)
        if slow is not None:
            names = tuple(one.name for one, *_ in members)
            yield Group(benchmark, len(members), None, math.inf, slow, names)


def reframe_figures(
    measured: Sequence[MeasuredFigure], unmeasured: Sequence[Row] = ()
) -> list[tuple[str, float, str, ReframeReference | None]]:
    """Return what ReFrame is told of the figures of a case: name, value, unit, reference.

    It fails what is wrong with one figure alone, and nothing else. Of what is ``unmeasured`` it is
    told in how many launches, of which there may be none.
    """
    rows: list[tuple[str, float, str, ReframeReference | None]] = []
    for one in measured:
        better, unit, value = one.sample.better, one.sample.unit, one.estimate.value
        bounds = None
        if one.reference is not None:
            bounds = reframe_reference(one.reference, better, one.excuse)
        judgement, stated = judge_figure(one)
        missed = [x for x in stated if x.judgement.verdict is Verdict.REGRESSION]
        for expected_one in missed or (stated if bounds is None else []):
            bounds = reframe_expected(expected_one, better, unit)
        rows.append((one.name, value, unit, as_judged(judgement, value, unit, bounds)))
    for name, launches in Counter(map(name_of_unmeasured, unmeasured)).items():
        rows.append((name, float(launches), _LAUNCHES, (0.0, None, 0.0, _LAUNCHES)))
    return rows


def figure_of(measured: MeasuredFigure, beside: Judgement | None = None) -> Figure:
    """Return a figure judged, by itself unless it is known what it is called ``beside`` others."""
    sample, doubt, reference = measured.sample, measured.doubt, measured.reference
    judgement, expected = judge_figure(measured, beside)
    if doubt and judgement.verdict not in _BEYOND_DOUBT:
        judgement = Judgement(Verdict.INCONCLUSIVE, (doubt,))
        expected = [dataclasses.replace(one, judgement=judgement) for one in expected]
    reasons = [doubt]
    if judgement.verdict is Verdict.INCONCLUSIVE and reference is not None:
        reasons.append(reference.doubt)
        slow = slow_share(list(measured.launches.values()), sample.better, reference)
        reasons += slow.reasons if slow else ()
    if judgement.verdict is Verdict.INCONCLUSIVE:
        for one in measured.expectations:
            slow = slow_against(one, sample.better, list(measured.launches.values()))
            reasons += slow.reasons if slow else ()
    if measured.excuse is not None:
        reasons.append(measured.excuse.doubt)
    open_question = judgement.verdict in (Verdict.NO_REFERENCE, Verdict.INCONCLUSIVE)
    return Figure(
        benchmark=sample.benchmark,
        metric=sample.metric,
        unit=sample.unit,
        better=sample.better,
        conditions=sample.conditions,
        estimate=measured.estimate,
        judgement=judgement,
        remark=_modes_remark(measured.modes, sample.unit) if measured.modes else "",
        doubt=next(filter(None, reasons), None) if open_question else None,
        loosely_limited=any(limit.loose for limit in measured.limits),
        expected=tuple(expected),
    )


def _modes_remark(modes: Modes, unit: str) -> str:
    return (
        f"two modes: {number(modes.low)} {unit} in {modes.launches_low} launches and "
        f"{number(modes.high)} {unit} in {modes.launches_high} launches, nothing between"
    )


def modes_seen(cases: Sequence[Case]) -> list[str]:
    """Return in one sentence how many figures have two modes, and what to do about them."""
    remarked = [(case, figure) for case in cases for figure in case.figures if figure.remark]
    if not remarked:
        return []
    case, figure = max(
        remarked, key=lambda pair: pair[1].estimate.samples if pair[1].estimate else 0
    )
    count = "1 figure has" if len(remarked) == 1 else f"{len(remarked)} figures have"
    return [
        f"{count} two modes, each judged by its faster one, such as {case.check} with "
        f"{case.stack}: {figure.benchmark} {figure.metric} of {figure.conditions.get('bytes', '-')}"
        f" bytes: {figure.remark}; see that ranks are bound to cores and memory, that the protocol "
        "does not change at this size, and that the node's other settings stay"
    ]


def removed_variables(records: Sequence[CaseRecord]) -> list[str]:
    """Return in sentences which variables of the shell could have changed a figure of a run."""
    removed = {k: v for record in records for k, v in record.removed_environment.items()}
    proofs: list[Any] = [record.details.get("proof") for record in records if record.samples]
    mapped = [(proof.get("blas") or {}).get("library") for proof in proofs if proof]
    known = len(mapped) == len(proofs) > 0
    libraries = {str(proof.get("library_version", "")) for proof in proofs if proof}
    all_known = known and "" not in libraries
    blas = list(filter(None, mapped)) if known else None
    return describe_removed(removed, blas, libraries if all_known else None)


def disturbances(records: Sequence[CaseRecord]) -> list[str]:
    """Return what was disturbed, in how many cases and launches: peaks, and launches."""
    return [*_disturbed_peaks(records), *_disturbed_launches(records)]


def wide_limits(records: Sequence[CaseRecord]) -> list[str]:
    """Return where physical limits are wider than what the node was measured to do, and why."""
    measured = [record for record in records if record.samples]
    peaks = [peaks_of(record.peaks) for record in measured]
    lines = []
    if without := peaks.count(()):
        lines.append(
            f"in {without} of {len(measured)} cases no peak of the node was measured, so only "
            "what no processor does limits figures there; see `clustergate setup`"
        )
    if any(peak.virtual for of_partition in peaks for peak in of_partition):
        lines.append(
            "a virtual machine shows neither its highest clock nor what others on its host use, so "
            "a figure is impossible here beyond 1.25 times the FMA peak, or twice the triad's"
        )
    return lines


def loosely_limited(cases: Sequence[Case]) -> list[str]:
    """Return in one sentence which rates no peak of their node limits, though it has some."""
    names: dict[str, list[str]] = {}
    for case in cases:
        for figure in case.figures if case.peaks else ():
            if figure.loosely_limited:
                names.setdefault(case.check, []).append(figure.benchmark)
    if not names:
        return []
    which = "; ".join(f"{check}: {listed(sorted(set(of)), 3)}" for check, of in names.items())
    return [
        f"no peak of the node bounds {counted(sum(map(len, names.values())), 'rate')} ({which}), "
        "only what no processor reaches: their data may stay in the caches, or no peak applies"
    ]


def _disturbed_peaks(records: Sequence[CaseRecord]) -> Iterator[str]:
    cases = [r for r in records if any(not (p.steady or p.undisturbed) for p in peaks_of(r.peaks))]
    if cases:
        yield (
            f"in {len(cases)} of {len(records)} cases the node's peaks moved by more than a "
            "quarter while they were measured, so only what no such cores reach limits figures "
            "there"
        )


def _disturbed_launches(records: Sequence[CaseRecord]) -> Iterator[str]:
    launches = [launch for record in records for launch in record.launches]
    disturbed = [launch for launch in launches if launch.disturbed]
    if disturbed:
        was, of_them = "were disturbed and are", "the worst of them"
        if len(disturbed) == 1:
            was, of_them = "was disturbed and is", "it"
        yield (
            f"{len(disturbed)} of {counted(len(launches), 'launch')} {was} not counted; in "
            f"{of_them} {most_disturbed(disturbed)}"
        )


FIGURE_UNMEASURED = Words("figure.unmeasured", "the benchmark printed {word!r} instead of a result")


def _unmeasured(row: Row) -> Figure:
    return Figure(
        benchmark=row.benchmark,
        metric="",
        unit="",
        better=Better.NEITHER,
        conditions=row.conditions,
        estimate=None,
        judgement=Judgement(
            Verdict.INVALID,
            (_UNMEASURED.get(row.status, FIGURE_UNMEASURED)(word=row.status),),
        ),
    )


def is_undecided(case: Case) -> bool:
    """Tell whether a case was so disturbed that none of its figures, if any, can be judged."""
    if case.state is CaseState.NOT_LAUNCHED:
        return True
    return bool(case.figures) and all(
        figure.doubt is not None or figure.judgement.verdict is Verdict.INCONCLUSIVE
        for figure in case.figures
    )


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """Return the verdicts that a run's exit status follows from: of figures and of groups.

    A case that failed or is missing is one invalid verdict. A run in which nothing was measured
    is invalid as a whole.
    """
    given = [figure.judgement.verdict for case in cases for figure in case.figures]
    given += [group.judgement.verdict for case in cases for group in case.groups]
    given += [Verdict.INVALID for case in cases if case.state.broken]
    given += [Verdict.INCONCLUSIVE for case in cases if case.state is CaseState.NOT_LAUNCHED]
    return given or [Verdict.INVALID]


def wrong_in(case: Case) -> list[tuple[str, Judgement]]:
    """Return what is wrong with a case, by its name: groups first, then figures.

    Of figures that are slower, and whose group is slower as a whole, the group speaks.
    """
    slow = [group for group in case.groups if group.judgement.verdict is Verdict.REGRESSION]
    slower = {name for group in slow for name in group.names}
    whole = {group.benchmark for group in slow if not group.names}
    groups = [(group_name(group), group.judgement) for group in case.groups]
    figures = [
        (figure_name(figure), figure.judgement)
        for figure in case.figures
        if figure.judgement.verdict is not Verdict.REGRESSION
        or (figure.benchmark not in whole and name_of(figure) not in slower)
    ]
    return [
        (called, judgement) for called, judgement in groups + figures if judgement.verdict in WRONG
    ]
