"""A published evaluation beside a run, as one HTML file that opens without a network. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from clustergate.core.notation import number
from clustergate.report import page, plots
from clustergate.report.html import BarCell, BarTable, part_of
from clustergate.report.page import LOGARITHMIC, Plot
from clustergate.report.summary import Cause, FirstScreen
from evaluations import tables
from evaluations.facts import STANDS, Paper
from evaluations.inference import Outcome
from evaluations.recomputed import Recomputed, recompute
from evaluations.sheet import OTHER_LAUNCH, TRIAL, Drawing, Line
from evaluations.text import Findings, more_launches

# Along these, one place is as far from the next as any other.
_COUNTED = (TRIAL, "peer")


@dataclass(frozen=True)
class _Figure:
    """A figure of the paper as it is drawn: ``lines`` are its legend, ``why_not`` says why not."""

    drawn: Plot
    lines: Sequence[tuple[str, Markup]]
    bars: BarTable | None
    why_not: str
    maxima: Mapping[str, float]


def render_page(found: Findings) -> str:
    """Return the page of a paper beside what was measured; the same for the same findings."""
    return page.render(
        "published.html.j2",
        "evaluations",
        scripted=True,
        found=found,
        recomputed=_recomputed(found.paper),
        title=found.paper.called[:1].upper() + found.paper.called[1:],
        first=first_screen(found),
        names=[subject.name for subject in found.subjects],
        stands=STANDS,
        other_launch=OTHER_LAUNCH,
        tables=tables.tables(found.rows, [subject.name for subject in found.subjects]),
        systems=tables.systems_table(found.paper, found.machine),
        plots=[_figure(one) for one in found.drawings if one.printed or not one.why_not],
        undrawn=_undrawn(found.drawings),
        no_reference=Counter(filter(None, (row.no_reference for row in found.rows))).most_common(),
    )


def _recomputed(paper: Paper) -> dict[str, Recomputed]:
    """Return what follows of a paper's values from its other numbers, none of another study."""
    if paper.is_study:
        return {}
    return {one.id: one for one in recompute() if one.paper == paper.id}


def word(counts: Mapping[str, int]) -> str:
    """Return how many conclusions hold of those that were decided: the others say nothing."""
    holding, failing = (counts.get(one.value, 0) for one in (Outcome.HOLDS, Outcome.DOES_NOT))
    if not holding + failing:
        return "NO CONCLUSION WAS DECIDED HERE"
    return f"{holding} OF {holding + failing} DECIDED CONCLUSIONS HOLD HERE"


def first_screen(found: Findings) -> FirstScreen:
    """Return what is said first: how many of those decided hold here, and what would tell more."""
    asked = [row for row in found.rows if row.value.suite or row.value.derived]
    lacking = sum(not row.measured for row in asked)
    others = [f"{what}: {n}" for what, n in found.counts.items() if what != Outcome.HOLDS.value]
    told = f"measured with {found.measured_with}"
    steps = []
    if soon := found.soon_decided:
        steps.append(
            f"`{more_launches(found)}` launches again what would probably decide {', '.join(soon)}"
        )
    elif lacking and not found.paper.is_study:
        steps.append(
            f"`clustergate evaluation run {found.paper.id} --full` measures what it can of the "
            f"{lacking} of {len(asked)} printed values that could have something beside them"
        )
    if lone := found.unplayed:
        name = found.paper.source.name if found.paper.is_study else found.paper.id
        steps.append(
            f"`clustergate evaluation run {name} --as SYSTEM=STACK` lets a stack stand for a "
            f"system that {', '.join(lone)} ask for"
        )
    return FirstScreen(
        "no_reference",
        word(found.counts),
        "; ".join([told, *others]),
        [Cause("inconclusive", "note", "", note, note) for note in found.notes],
        steps,
    )


def _undrawn(drawings: Sequence[Drawing]) -> dict[str, list[str]]:
    """Return the numbers of the figures that are not drawn, by the reason."""
    found: dict[str, list[str]] = {}
    for one in drawings:
        if one.why_not and not one.printed:
            found.setdefault(one.why_not, []).append(str(one.figure.number))
    return found


def _figure(drawing: Drawing) -> _Figure:
    figure = drawing.figure
    shown = [*drawing.lines, *drawing.printed]
    if drawing.ratios:
        shown = [Line(key, {}) for key in drawing.ratios]
    looks = plots.styles(len(shown))
    svg = Markup("")
    if drawing.ratios:
        shapes = list(zip(looks, drawing.ratios.values(), strict=True))
        svg = plots.radar(shapes, description=figure.title)
    elif shown and not drawing.bars:
        lines = [_curve(line, look) for line, look in zip(shown, looks, strict=True)]
        # As the paper has them, where that is known.
        linear = bool((figure.draw or {}).get("linear"))
        axes = plots.axes_of(
            lines,
            unit=figure.y,
            logarithmic=not linear and figure.y.rpartition("[")[2].rstrip("]") in LOGARITHMIC,
            along="" if "bytes" in figure.x else figure.x,
            linear=linear or (figure.draw or {}).get("along") in _COUNTED,
        )
        svg = plots.curves(lines, axes, description=figure.title)
    axes_told = f"{figure.y} over {figure.x}" if figure.x else ""
    return _Figure(
        drawn=Plot(f"Figure {figure.number}: {figure.title}", svg, axes_told),
        lines=[(line.name, plots.legend(look)) for line, look in zip(shown, looks, strict=True)],
        bars=_bars(drawing) if drawing.bars and not drawing.ratios else None,
        why_not=drawing.why_not,
        maxima=drawing.maxima or {},
    )


def _bars(drawing: Drawing) -> BarTable:
    """Return a row of bars for each thing measured, the longest of all, or of a row, being 1."""
    groups = drawing.bars or {}
    largest = {title: max(bars.values()) for title, bars in groups.items()}
    if not drawing.units_differ:
        largest = dict.fromkeys(groups, max(largest.values()))
    names = sorted({who for bars in groups.values() for who in bars})
    rows = [
        (
            title,
            "",
            {
                who: BarCell(number(value), part_of(value, largest[title]), names.index(who) % 7)
                for who, value in bars.items()
            },
        )
        for title, bars in groups.items()
    ]
    return BarTable(drawing.figure.y, names, rows)


def _curve(line: Line, look: plots.Style) -> plots.Curve:
    points = [
        plots.Point(at, value, *line.bars.get(at, (None, None)))
        for at, value in line.points.items()
    ]
    return plots.Curve(line.name, look, points)
