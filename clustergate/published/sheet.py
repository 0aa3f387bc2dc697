"""A report of a paper: printed values beside measured ones, conclusions, figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clustergate.derived import DerivedError, balance, scaling
from clustergate.published.evidence import Subject
from clustergate.published.facts import Paper, PaperFigure, Predicate, PrintedValue
from clustergate.published.predicates import Cast, Decision, Outcome, decide

PRINTED_OUTCOMES = {
    "held": "held in the paper",
    "contradicted": "contradicted in the paper",
    "not checkable": "not checkable in the paper",
}
HPCC_CHECK = "HpccCheck"
_UPDATES = "HPCC.updates_per_flop"
# The HPCC of the one paper that has results of it.
_PRINTED_RANDOM_ACCESS = "1.0"


@dataclass(frozen=True)
class BesideRow:
    """A printed value, and what each subject measured of it in the printed unit, or why nothing.

    ``launches`` tell for each subject how it was launched.
    """

    value: PrintedValue
    measured: Mapping[str, float]
    launches: Mapping[str, str]
    why_not: str = ""


def beside(paper: Paper, subjects: Sequence[Subject]) -> list[BesideRow]:
    """Return the printed values with what was measured here of the same."""
    return [_row(value, subjects) for value in paper.values.values()]


def _row(value: PrintedValue, subjects: Sequence[Subject]) -> BesideRow:
    suite = value.suite
    if suite is None:
        return BesideRow(value, {}, {}, "no figure of this suite is the same quantity")
    measured, launches, mixed = {}, {}, []
    for subject in subjects:
        found = subject.named(suite.figure, suite.layout)
        if found is None:
            continue
        if suite.figure == _UPDATES and not _is_same_random_access(subject):
            mixed.append(subject.name)
            continue
        measured[subject.name] = found.value / suite.factor
        launches[subject.name] = found.layout
    if mixed:
        return BesideRow(value, {}, {}, f"RandomAccess of another HPCC: {', '.join(mixed)}")
    return BesideRow(value, measured, launches, "" if measured else "not measured in this run")


def _is_same_random_access(subject: Subject) -> bool:
    try:
        measured = balance.random_access_of(subject.version_of.get(HPCC_CHECK, ""))
    except DerivedError:
        return False
    return measured == balance.random_access_of(_PRINTED_RANDOM_ACCESS)


@dataclass(frozen=True)
class Conclusion:
    """A conclusion of the paper with its outcomes: in the paper, and for each subject here."""

    predicate: Predicate
    in_print: str
    here: Sequence[Decision]

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
    """One line of a figure: values by place on the x axis."""

    name: str
    points: Mapping[float, float]


@dataclass(frozen=True)
class Drawing:
    """A figure of the paper with what was measured here, in the paper's units.

    ``why_not`` says why nothing is drawn. ``ratios`` are the columns of a Kiviat diagram, each
    divided by its largest value, with these values in ``maxima``.
    """

    figure: PaperFigure
    lines: Sequence[Line] = ()
    ratios: Mapping[str, Mapping[str, float]] | None = None
    maxima: Mapping[str, float] | None = None
    why_not: str = ""


def drawings(paper: Paper, subjects: Sequence[Subject]) -> list[Drawing]:
    """Return all figures of the paper in their order."""
    return [_drawing(figure, subjects) for figure in paper.figures]


def _drawing(figure: PaperFigure, subjects: Sequence[Subject]) -> Drawing:
    draw = figure.draw
    if draw is None:
        return Drawing(figure, why_not=figure.why_not)
    if draw["metric"] == "ratios":
        return _kiviat(figure, subjects)
    lines = [line for subject in subjects for line in _lines(draw, subject, len(subjects) > 1)]
    if not lines:
        return Drawing(figure, why_not=f"{draw['benchmark']} was not measured so in this run")
    return Drawing(figure, lines)


def _lines(draw: Mapping[str, Any], subject: Subject, several: bool) -> list[Line]:
    of = {key: draw[key] for key in ("benchmark", "metric", "bytes") if key in draw}
    limited = {key: draw[key] for key in ("ranks", "placement") if key in draw}
    split = draw.get("series")
    found = subject.values(of, **limited)
    parts = sorted({figure.conditions.get(split) for figure in found}, key=str) if split else [None]
    lines = []
    for part in parts:
        chosen = {**limited, split: part} if split else limited
        values = subject.series(of, draw["along"], **chosen)
        if draw.get("over"):
            values = scaling.scaled(values, draw["over"])
        points = {
            float(at): value * draw.get("factor", 1.0)
            for at, value in values.items()
            if isinstance(at, int | float)
        }
        words = [subject.name] if several or not split else []
        if split:
            words.append(f"{part} {split}" if isinstance(part, int) else str(part))
        if points:
            lines.append(Line(", ".join(words), points))
    return lines


def _kiviat(figure: PaperFigure, subjects: Sequence[Subject]) -> Drawing:
    """Return the ratios of the largest run of each subject, without a threshold of HPL.

    The paper leaves out what is below 1 Tflop/s, since it compares machines of different sizes; the
    subjects here are of one.
    """
    rows, versions = {}, {}
    for subject in subjects:
        row = {}
        for column in balance.COLUMNS:
            series = subject.series({"benchmark": _home_of(column), "metric": column}, "ranks")
            if series:
                row[column] = series[max(series)]
        if "HPL_Tflops" in row:
            rows[subject.name] = row
            versions[subject.name] = subject.version_of.get(HPCC_CHECK, "")
    if not rows:
        return Drawing(figure, why_not="HPCC was not measured in a published mode in this run")
    try:
        table = balance.ratio_table(rows, versions, threshold_tflops=0.0)
    except DerivedError as error:
        return Drawing(figure, why_not=str(error))
    return Drawing(figure, ratios=table.parts, maxima=table.maxima)


def _home_of(column: str) -> str:
    return column if column == "HPL_Tflops" else "HPCC"
