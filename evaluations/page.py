"""A published evaluation beside a run, as one HTML file that opens without a network. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from clustergate.report import plots
from clustergate.report.html import page_environment
from clustergate.wording.notation import number
from evaluations import tables
from evaluations.facts import STANDS
from evaluations.sheet import TRIAL, Drawing, Line
from evaluations.text import Findings

_LOGARITHMIC_UNITS = ("us", "ms", "s")


@dataclass(frozen=True)
class _Plot:
    """A figure of the paper as it is drawn: ``lines`` are its legend, ``why_not`` says why not."""

    number: int
    title: str
    axes: str
    svg: Markup
    lines: Sequence[tuple[str, Markup]]
    why_not: str
    maxima: Mapping[str, float]


def render_page(found: Findings) -> str:
    """Return the page of a paper beside what was measured; the same for the same findings."""
    environment = page_environment("evaluations")
    return environment.get_template("published.html.j2").render(
        found=found,
        names=[subject.name for subject in found.subjects],
        stands=STANDS,
        style=Markup(environment.get_template("report.css").render()),
        tables=tables.tables(found.rows, [subject.name for subject in found.subjects]),
        systems=tables.systems_table(found.paper),
        plots=[_plot(drawing, f"plot{k}") for k, drawing in enumerate(found.drawings)],
    )


def _plot(drawing: Drawing, name: str) -> _Plot:
    figure = drawing.figure
    shown = [*drawing.lines, *drawing.printed]
    if drawing.ratios:
        shown = [Line(key, {}) for key in drawing.ratios]
    looks = plots.styles(len(shown))
    svg = ""
    if drawing.ratios:
        shapes = [(look, parts) for look, parts in zip(looks, drawing.ratios.values(), strict=True)]
        svg = plots.kiviat(shapes, name=name, description=figure.title)
    elif drawing.bars:
        svg = _bars(drawing, name)
    elif shown:
        unit = figure.y.rpartition("[")[2].rstrip("]")
        svg = plots.curves(
            [_curve(line, look) for line, look in zip(shown, looks, strict=True)],
            unit=figure.y,
            logarithmic=unit in _LOGARITHMIC_UNITS,
            axis="" if "bytes" in figure.x else figure.x,
            linear=figure.x == TRIAL,
            name=name,
            description=figure.title,
        )
    return _Plot(
        number=figure.number,
        title=figure.title,
        axes=f"{figure.y} over {figure.x}" if figure.x else "",
        svg=Markup(svg),
        lines=[
            (line.name, Markup(plots.legend(look, name=f"{name}line{k}")))
            for k, (line, look) in enumerate(zip(shown, looks, strict=True))
        ],
        why_not=drawing.why_not,
        maxima=drawing.maxima or {},
    )


def _bars(drawing: Drawing, name: str) -> str:
    """Draw a group of bars for each thing measured, the longest of all, or of a group, being 1."""
    groups = drawing.bars or {}
    largest = {title: max(bars.values()) for title, bars in groups.items()}
    if not drawing.units_differ:
        largest = dict.fromkeys(groups, max(largest.values()))
    names = sorted({who for bars in groups.values() for who in bars})
    looks = dict(zip(names, plots.styles(len(names)), strict=True))
    return plots.bars(
        [
            plots.BarGroup(
                title,
                [
                    plots.Bar(
                        who.rpartition(":")[2], value / largest[title], number(value), looks[who]
                    )
                    for who, value in bars.items()
                ],
            )
            for title, bars in groups.items()
        ],
        name=name,
        description=drawing.figure.title,
    )


def _curve(line: Line, look: plots.Style) -> plots.Curve:
    return plots.Curve(
        look,
        [
            plots.Point(at, value, *line.bars.get(at, (None, None)))
            for at, value in line.points.items()
        ],
    )
