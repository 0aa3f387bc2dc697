"""A report of a paper: printed values beside measured ones, conclusions, figures. Pure."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clustergate.benchmarks.registry import every_metric
from clustergate.core.model import Better
from clustergate.core.notation import number
from clustergate.machine.power import PER_WATT
from evaluations import quantities, relative
from evaluations.derived import DerivedError, balance, ratios, scaling
from evaluations.evidence import HPCC_CHECK, Measured, Subject, Suite
from evaluations.facts import (
    STANDS,
    TO_BASELINE,
    TO_UNFLUSHED,
    Paper,
    PaperFigure,
    Predicate,
    PrintedValue,
)
from evaluations.inference import Outcome
from evaluations.predicates import Decision, decide
from evaluations.sampling import FEWEST, Sampled, sampled_values
from evaluations.series import Cast, place_of
from evaluations.systems import TOLERANCE, no_reference

PRINTED_OUTCOMES = {
    "held": "held in the paper",
    "contradicted": "contradicted in the paper",
    "not checkable": "not checkable in the paper",
}
TRIAL, PER_JOULE = "trial", "per watt"
DISTURBED, OTHER_LAUNCH = "disturbed", "not the printed launch"
_ELSEWHERE = "of another machine"
_UPDATES = "HPCC.updates_per_flop"
_RING = "ring_balance_b_per_kflop"
# The HPCC of the one paper that has results of it.
_PRINTED_RANDOM_ACCESS = "1.0"


@dataclass(frozen=True)
class BesideRow:
    """A printed value, and what each subject measured of it in the printed unit, or why nothing.

    ``launches`` tell for each subject how it was launched, and what is to be kept in mind. Of a
    printed ratio of two machines ``baseline`` is the subject that the others are relative to.
    """

    value: PrintedValue
    measured: Mapping[str, float]
    launches: Mapping[str, str]
    why_not: str = ""
    baseline: str = ""

    @property
    def remarks(self) -> str:
        """Return what is to be known of it."""
        return "; ".join(filter(None, [self.value.remark.rstrip("."), self.why_not]))

    @property
    def no_reference(self) -> str:
        """Return why it is no reference, nothing where it is one or that stands there already."""
        why = no_reference(self.value)
        return "" if why in (self.why_not, self.value.because) else why


def disturbance_notes(subjects: Sequence[Subject]) -> list[str]:
    """Return for each subject how many of its figures decide nothing, and why, if any."""
    told = []
    for subject in subjects:
        in_rounds = [one for one in subject.undisturbed.figures if one.disturbed and one.doubt]
        if in_rounds:
            told.append(
                f"every launch of {len(in_rounds)} of {len(subject.figures)} figures of "
                f"{subject.name} was disturbed: they tell how it stands to stacks of the same "
                "rounds, and not what it reaches; run again on idle nodes"
            )
        doubtful = [figure for figure in subject.figures if figure.doubt]
        if doubtful:
            # What a check would do about it is no remedy here.
            why = doubtful[0].doubt.partition(";")[0]
            told.append(
                f"{len(doubtful)} of {len(subject.figures)} figures of {subject.name} decide and "
                f"draw nothing: {why}"
            )
    return told


def value_rows(paper: Paper, here: Cast) -> list[BesideRow]:
    """Return the printed values with what was measured here of the same."""
    rows = []
    for value in paper.values.values():
        if value.derived:
            rows.append(_derived_row(value, paper, here))
        elif value.suite is None:
            rows.append(BesideRow(value, {}, {}, quantities.why_not(value)))
        elif value.suite.relative == TO_UNFLUSHED:
            rows.append(_flushed_row(value, value.suite, paper, here))
        elif value.suite.relative:
            rows.append(_relative_row(value, value.suite, paper, here))
        else:
            rows.append(_row(value, value.suite, here.subjects))
    return rows


def _derived_row(value: PrintedValue, paper: Paper, here: Cast) -> BesideRow:
    """Return a printed value with what is derived here of several figures, launch by launch."""
    measured, launches, reasons = {}, {}, []
    for subject in quantities.subjects_asked(value.derived, here.subjects, here.roles):
        try:
            asked = quantities.Here(subject, here.roles)
            mean = value.conditions.get("statistic") == "mean"
            found = quantities.sampled(value.derived, asked, mean=mean)
        except DerivedError as reason:
            reasons.append(str(reason))
            continue
        measured[subject.name] = found.value
        asserted = _asserted(value, found, subject, paper, here)
        launches[subject.name] = f"derived, {found.remark}, {asserted}"
    if not (measured or reasons):
        reasons = [f"nothing here stands for {value.derived['of'][0]}"]
    told = "" if measured else "; ".join(dict.fromkeys(reasons))
    return BesideRow(value, measured, launches, told)


def _flushed_row(value: PrintedValue, suite: Suite, paper: Paper, here: Cast) -> BesideRow:
    """Return a printed ratio of a machine to itself, with the caches flushed and not."""
    found = relative.flushed_ratios(suite, here.subjects)
    if not found:
        told = "it takes two runs, one of them with -S MpiTrialsCheck.flush_bytes=0"
        every = [figure for one in here.subjects for figure in one.fitting(suite)]
        if any(one.doubt and one.conditions.get("flush_bytes") == 0 for one in every):
            told = "its launches without flushed caches were disturbed; run again on idle nodes"
        return BesideRow(value, {}, {}, told)
    measured, launches = {}, {}
    for name, (ratio, launch) in found.items():
        is_printed = launch.processes in _processes(value)
        subject = next(one for one in here.subjects if one.name == name)
        measured[name] = ratio.value
        said = _asserted(value, ratio, subject, paper, here) if is_printed else OTHER_LAUNCH
        launches[name] = ", ".join([launch.layout, ratio.remark, said])
    return BesideRow(value, measured, launches)


def _asserted(
    value: PrintedValue, found: Sampled, subject: Subject, paper: Paper, here: Cast
) -> str:
    """Return whether a derived value is as printed, or why that is not asked.

    A stack that makes a variant of any machine is no such machine.
    """
    system = value.derived.get("of", [value.system])[0]
    is_here = subject.system in paper.family(system)
    if here.roles.get(system) != subject or (paper.systems[system].played_by and not is_here):
        return _ELSEWHERE
    if value.standing != STANDS:
        return f"{value.standing} in print"
    if value.not_stated:
        return f"the paper leaves open: {', '.join(value.not_stated)}"
    processes = max((one.shape.processes for one in subject.figures), default=0)
    if processes != max(_processes(value), default=processes):
        return OTHER_LAUNCH
    return compare_with_printed(value, found)


def compare_with_printed(value: PrintedValue, here: Sampled) -> str:
    """Return whether what was measured is as printed, within what the print and chance leave open.

    To be asked of who plays the printed system, and of the printed launch.
    """
    if here.without:
        return "not in every launch"
    if here.low is None or here.high is None or here.launches < FEWEST:
        return "too few launches to tell whether as printed"
    ends = (value.low, value.high) if value.value is None else (value.value, value.value)
    assert ends[0] is not None
    assert ends[1] is not None
    part = TOLERANCE[value.qualifier]
    least, most = ends[0] - part * abs(ends[0]), ends[1] + part * abs(ends[1])
    if value.qualifier in ("above", "at least"):
        most = math.inf
    if value.qualifier == "below":
        least = -math.inf
    if least <= here.low and here.high <= most:
        return "as printed"
    if here.low <= most and here.high >= least:
        return "more launches would tell whether as printed"
    if value.better is Better.NEITHER:
        return "not as printed"
    is_higher = here.low > most
    return (
        "better than printed"
        if is_higher is (value.better is Better.HIGHER)
        else "worse than printed"
    )


def _processes(value: PrintedValue) -> list[int]:
    """Return the numbers of processes that were printed, or up to which one."""
    return [int(count) for count in re.findall(r"\d+", str(value.conditions.get("processes", "")))]


def _relative_row(value: PrintedValue, suite: Suite, paper: Paper, here: Cast) -> BesideRow:
    """Return a printed ratio of two machines with that of each subject to the baseline.

    That is who stands for the printed one, else the first subject.
    """
    printed = str(value.conditions.get("baseline"))
    standing = [one for name, one in here.roles.items() if printed in paper.family(name)]
    try:
        found = relative.ratios(suite, here.subjects, [*standing, *here.subjects][0])
    except DerivedError as error:
        return BesideRow(value, {}, {}, str(error))
    launch = found.launch
    processes = value.conditions.get("processes")
    is_other = isinstance(processes, int) and processes != launch.processes
    launches = {}
    subjects = {one.name: one for one in [*here.subjects, *standing]}
    for name, ratio in found.values.items():
        told = [f"{found.baseline} over this"]
        if suite.relative == TO_BASELINE:
            told = [f"relative to {found.baseline}"]
        if name == found.baseline:
            told = ["the baseline"]
        # IMB measures fewer processes than were launched, too.
        is_part = not launch.layout.startswith(f"{launch.processes}-ranks-")
        told += [f"{launch.processes} processes of {launch.layout}" if is_part else launch.layout]
        told += [launch.settings]
        if name in found.doubtful:
            told += [DISTURBED]
        elif name != found.baseline:
            told += [ratio.remark]
        if is_other:
            told += [OTHER_LAUNCH]
        elif name not in (found.baseline, *found.doubtful):
            asserted = _asserted(value, ratio, subjects[name], paper, here)
            told += [asserted if standing else _ELSEWHERE]
        launches[name] = ", ".join(filter(None, told))
    measured = {name: ratio.value for name, ratio in found.values.items()}
    return BesideRow(value, measured, launches, baseline=found.baseline)


def _row(value: PrintedValue, suite: Suite, subjects: Sequence[Subject]) -> BesideRow:
    measured, launches, mixed = {}, {}, []
    for subject in subjects:
        found = subject.undisturbed.named(suite)
        if found is None:
            continue
        if suite.figure == _UPDATES and not _is_same_random_access(subject):
            mixed.append(subject.name)
            continue
        launched = found.of_launches or [*found.rounds.values()] or [found.value]
        of_launches = sampled_values([one / suite.factor for one in launched])
        measured[subject.name] = of_launches.value
        told = [found.layout, *_cautions(value, found)]
        told += [] if found.doubt else [of_launches.remark]
        launches[subject.name] = ", ".join(told)
    if mixed:
        return BesideRow(value, {}, {}, f"RandomAccess of another HPCC: {', '.join(mixed)}")
    return BesideRow(value, measured, launches, "" if measured else "not measured in this run")


def _cautions(value: PrintedValue, found: Measured) -> list[str]:
    """Return what tells a measured value from the printed one beside it."""
    told = [DISTURBED] if found.doubt else []
    if value.suite and value.suite.layout not in ("", found.layout):
        told.append(OTHER_LAUNCH)
    nodes = int(found.conditions.get("nodes", 1))
    if found.metric == _RING and not ratios.is_of_the_network(nodes):
        told.append("a ring on fewer than 8 nodes says little of the network")
    return told


def _is_same_random_access(subject: Subject) -> bool:
    try:
        measured = ratios.random_access_of(subject.version_of.get(HPCC_CHECK, ""))
    except DerivedError:
        return False
    return measured == ratios.random_access_of(_PRINTED_RANDOM_ACCESS)


@dataclass(frozen=True)
class Conclusion:
    """A conclusion of the paper with its outcomes: in the paper, and for each subject here."""

    predicate: Predicate
    in_print: str
    here: Sequence[Decision]

    @property
    def told(self) -> dict[tuple[str, str], str]:
        """Return the subjects of each outcome and its sentence, which several may have alike."""
        found: dict[tuple[str, str], list[str]] = {}
        for one in self.here:
            found.setdefault((one.outcome.value, one.sentence), []).append(one.subject)
        return {said: ", ".join(filter(None, names)) for said, names in found.items()}

    @property
    def summary(self) -> str:
        """Return the outcome here in one word for a table: the outcomes of all subjects."""
        outcomes = list(dict.fromkeys(decision.outcome for decision in self.here))
        if len(outcomes) == 1:
            return outcomes[0].value
        told = [
            f"{outcome.value} for {sum(d.outcome is outcome for d in self.here)}"
            for outcome in Outcome
            if outcome in outcomes
        ]
        return ", ".join(told)


def conclusions(paper: Paper, here: Cast) -> list[Conclusion]:
    """Return every conclusion of the paper with what the measurements say of it."""
    return [
        Conclusion(predicate, PRINTED_OUTCOMES[predicate.paper], decide(predicate, here))
        for predicate in paper.predicates.values()
    ]


@dataclass(frozen=True)
class Line:
    """One line of a figure: values by place on the x axis, with their least and most if drawn."""

    name: str
    points: Mapping[float, float]
    bars: Mapping[float, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Drawing:
    """A figure of the paper with what was measured here, in the paper's units.

    ``why_not`` says why nothing is drawn. ``ratios`` are the columns of a Kiviat diagram, each
    divided by its largest value, with these values in ``maxima``. ``bars`` are values of each
    subject by what was measured, each group to its own scale where ``units_differ``. ``printed``
    are the points that the paper has numbers of.
    """

    figure: PaperFigure
    lines: Sequence[Line] = ()
    printed: Sequence[Line] = ()
    ratios: Mapping[str, Mapping[str, float]] | None = None
    maxima: Mapping[str, float] | None = None
    bars: Mapping[str, Mapping[str, float]] | None = None
    units_differ: bool = False
    why_not: str = ""


def drawings(paper: Paper, subjects: Sequence[Subject]) -> list[Drawing]:
    """Return all figures of the paper in their order."""
    return [_drawing(figure, paper, subjects) for figure in paper.figures]


def _drawing(figure: PaperFigure, paper: Paper, subjects: Sequence[Subject]) -> Drawing:
    draw = figure.draw
    if draw is None:
        return Drawing(figure, why_not=figure.why_not)
    if draw["metric"] == "ratios":
        return _kiviat(figure, subjects)
    benchmarks = draw.get("benchmarks") or [draw["benchmark"]]
    asked = [{**_only(draw, _FIGURE), "benchmark": name} for name in benchmarks]
    missing = f"{', '.join(benchmarks)}: not measured so in this run"
    if any(subject.is_disturbed(of) for subject in subjects for of in asked):
        missing = f"{', '.join(benchmarks)}: its launches were disturbed; run again on idle nodes"
    if draw["metric"] == PER_JOULE:
        return _per_watt(figure, benchmarks, subjects)
    if figure.kind == "bar":
        bars = {
            title: found
            for of in asked
            for title, one in _groups(of, draw.get("series"), subjects)
            if (found := _bars(one, subjects))
        }
        return _of_bars(figure, bars, missing)
    lines = [
        replace(line, name=_cautioned(*telling, line.name, caution))
        for subject in subjects
        for of in asked
        for telling in [_telling(subject, of, subjects, asked)]
        for who, caution in [(subject, "") if draw["along"] == TRIAL else _drawn(subject, of)]
        for line in _lines(of, draw, who)
    ]
    printed = _printed_lines(paper, draw, asked)
    if any(len(line.points) > 1 for line in lines):
        return Drawing(figure, lines, printed)
    if lines:
        missing = f"{', '.join(benchmarks)}: one {place_of(draw['along'])} is no line"
    # A single point is drawn beside a printed one alone.
    return Drawing(figure, lines if printed else [], printed, why_not=missing)


FIGURE_NAME = re.compile(r"([^.]+)(?:\.(\d+|\*)p)?(?:\.[a-z]+)?(?:\.(\d+|\*)B)?\.(\w+)")
"""The names of figures that printed values have: benchmark, processes, message size, metric."""


def _printed_lines(
    paper: Paper, draw: Mapping[str, Any], asked: Sequence[Mapping[str, Any]]
) -> list[Line]:
    """Return the printed values that have a place on the axes of a figure, in its unit."""
    by_system: dict[str, dict[float, float]] = {}
    for value in paper.values.values():
        suite = value.suite
        match = FIGURE_NAME.fullmatch(suite.figure) if suite else None
        if suite is None or suite.relative or match is None or value.value is None:
            continue
        benchmark, processes, size, metric = match.groups()
        place = {"processes": processes, "bytes": size}.get(draw["along"])
        if not (place or "").isdigit() or metric != draw["metric"]:
            continue
        of = {"benchmark": benchmark, **({"bytes": int(size)} if "bytes" in draw and size else {})}
        if any(all(one.get(key) == wanted for key, wanted in of.items()) for one in asked):
            drawn = value.value * suite.factor * draw.get("factor", 1.0)
            doubt = "" if value.standing == STANDS else f" ({value.standing})"
            by_system.setdefault(value.system + doubt, {})[float(place or 0)] = drawn
    return [Line(f"printed: {name}", points) for name, points in by_system.items()]


# What of a drawing's settings are conditions: of the figures themselves, and of what is chosen.
_FIGURE = ("metric", "bytes", "problem_class")
_CHOICE = ("ranks", "nodes", "placement")


def _only(draw: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: draw[name] for name in names if name in draw}


def _telling(
    subject: Subject,
    of: Mapping[str, Any],
    subjects: Sequence[Subject],
    asked: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Return what tells a line from others: who measured it, and what, where there are several."""
    told = [subject.name] if len(subjects) > 1 or len(asked) == 1 else []
    return told + ([str(of["benchmark"])] if len(asked) > 1 else [])


def _groups(
    of: Mapping[str, Any], split: str | None, subjects: Sequence[Subject]
) -> list[tuple[str, dict[str, Any]]]:
    """Return the groups of bars by their titles: one, or one for each value of ``split``."""
    if split is None:
        return [(str(of["benchmark"]), dict(of))]
    parts = {one.conditions.get(split) for subject in subjects for one in subject.values(of)}
    return [
        (f"{of['benchmark']}, {split.replace('_', ' ')} {part}", {**of, split: part})
        for part in sorted(parts, key=str)
    ]


def _drawn(subject: Subject, of: Mapping[str, Any]) -> tuple[Subject, str]:
    """Return whose launches are drawn: undisturbed ones, else those of disturbed rounds, so called.

    What is drawn is what verdicts on one stack rest on.
    """
    calm = subject.undisturbed
    return (calm, "") if calm.values(of) or not subject.values(of) else (subject, DISTURBED)


def _cautioned(*told: str) -> str:
    return ", ".join(filter(None, told))


def _bars(of: Mapping[str, Any], subjects: Sequence[Subject]) -> dict[str, float]:
    bars = {}
    for subject in subjects:
        who, caution = _drawn(subject, of)
        if found := who.values(of):
            best = min if found[0].better is Better.LOWER else max
            bars[_cautioned(subject.name, caution)] = best(figure.value for figure in found)
    return bars


def _lines(of: Mapping[str, Any], draw: Mapping[str, Any], subject: Subject) -> list[Line]:
    """Return the lines of a subject: one, or one for each value of what tells series apart."""
    if draw["along"] == TRIAL:
        return _trial_lines(of, draw, subject)
    limited = _only(draw, _CHOICE)
    split = draw.get("series")
    bars: dict[float, tuple[float, float]] = {}
    if draw.get("mean"):
        # The mean of the launches, and bars from the least to the most of them.
        if not draw.get("over"):
            least, most = (
                subject.by(end).series(of, draw["along"], **limited) for end in (min, max)
            )
            bars = {float(at): (least[at], most[at]) for at in least}
        subject = subject.by(statistics.fmean)
    parts = [None]
    if split:
        found = {f.conditions.get(split) for f in subject.values(of, **limited)}
        drawn = found & set(draw.get("only", found))
        parts = sorted(drawn, key=lambda part: (part is None, isinstance(part, str), part or 0))
    lines = []
    for part in parts:
        chosen = {**limited, split: part} if split else limited
        values = subject.series(of, draw["along"], **chosen)
        if draw.get("over"):
            try:
                values = scaling.scaled(values, draw["over"])
            except DerivedError:
                continue
        points = {float(at): value * draw.get("factor", 1.0) for at, value in values.items()}
        name = f"{part} {split}" if isinstance(part, int) else str(part or "")
        if points:
            lines.append(Line(name, points, bars))
    return lines


def _per_watt(
    figure: PaperFigure, benchmarks: Sequence[str], subjects: Sequence[Subject]
) -> Drawing:
    """Return the rates per watt of the most processes, which have units of their own."""
    bars = {}
    for benchmark in benchmarks:
        for metric in PER_WATT.values():
            of = {"benchmark": benchmark, "metric": metric}
            every = {subject.name: subject.series(of, "processes") for subject in subjects}
            if found := {name: series[max(series)] for name, series in every.items() if series}:
                bars[f"{benchmark} [{every_metric()[metric].unit}]"] = found
    told = f"{', '.join(benchmarks)}: no watts are known of a run, so that nothing is per watt"
    return replace(_of_bars(figure, bars, told), units_differ=True)


def _of_bars(figure: PaperFigure, bars: Mapping[str, Mapping[str, float]], missing: str) -> Drawing:
    """Return a figure with bars, of which one alone is beside nothing."""
    if sum(map(len, bars.values())) > 1:
        return Drawing(figure, bars=bars)
    alone = f"{next(iter(bars), '')}: one bar is no comparison; run two stacks or more"
    return Drawing(figure, why_not=alone if bars else missing)


def _trial_lines(of: Mapping[str, Any], draw: Mapping[str, Any], subject: Subject) -> list[Line]:
    """Return the single trials of the most processes, with and without a flushed cache.

    They are as many as the figure has; where it does not say, of the run with the most of them.
    Those of a disturbed launch are drawn where there are no others, and called so.
    """
    fitting = [
        one
        for one in subject.trials
        if all(one[k] == of[k] for k in ("benchmark", "bytes"))
        and draw.get("trials") in (None, len(one["times_us"]))
    ]
    fitting.sort(key=lambda one: (not one["disturbed"], len(one["times_us"])))
    factor = draw.get("factor", 1.0)
    most = max((one["processes"] for one in fitting), default=0)
    lines = {
        flushed: Line(
            (f"{number(flushed / 1e6)} MB flushed by each rank" if flushed else "not flushed")
            + (", disturbed" if one["disturbed"] else ""),
            {float(k): factor * time for k, time in enumerate(one["times_us"], 1)},
        )
        for one in fitting
        if one["processes"] == most
        for flushed in [one["flush_bytes"]]
    }
    return list(lines.values())


def _kiviat(figure: PaperFigure, subjects: Sequence[Subject]) -> Drawing:
    """Return the ratios of the largest run of each subject, without a threshold of HPL.

    The paper leaves out what is below 1 Tflop/s, since it compares machines of different sizes; the
    subjects here are of one.
    """
    rows, versions = {}, {}
    for one in subjects:
        subject, caution = _drawn(one, {"benchmark": "HPL_Tflops", "metric": "HPL_Tflops"})
        row = {}
        for column in balance.COLUMNS:
            series = subject.series({"benchmark": _home_of(column), "metric": column}, "ranks")
            if series:
                row[column] = series[max(series)]
        if "HPL_Tflops" in row:
            name = _cautioned(subject.name, caution)
            rows[name] = row
            versions[name] = subject.version_of.get(HPCC_CHECK, "")
    if not rows:
        return Drawing(figure, why_not="HPCC was not measured in a published mode in this run")
    if len(rows) == 1:
        told = f"{next(iter(rows))} alone is the best of every column; it takes two or more"
        return Drawing(figure, why_not=told)
    try:
        table = ratios.ratio_table(rows, versions, threshold_tflops=0.0)
    except DerivedError as error:
        return Drawing(figure, why_not=str(error))
    parts = {name: _labelled(row) for name, row in table.parts.items()}
    return Drawing(figure, ratios=parts, maxima=_labelled(table.maxima))


def _labelled(row: Mapping[str, float]) -> dict[str, float]:
    return {balance.COLUMNS[column]: value for column, value in row.items()}


def _home_of(column: str) -> str:
    return column if column == "HPL_Tflops" else "HPCC"
