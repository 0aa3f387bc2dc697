"""Curves and bars as inline SVG, drawn by matplotlib without a display.

Plain data goes in, the text of one ``<svg>`` element comes out: no scripts, no fonts, no links, the
same bytes for the same data. Texts are never read as markup or mathematics.
"""

from __future__ import annotations

import io
import itertools
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from clustergate.paths import state_dir
from clustergate.wording.notation import printable
from clustergate.wording.texts import shortened

# What the suite makes stays in the clone, and this library reads its variable when it is imported.
os.environ.setdefault("MPLCONFIGDIR", str(state_dir() / "cache" / "matplotlib"))

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

# The colours of Okabe and Ito (Color Universal Design, 2008), without their yellow, which a printer
# loses. Markers and dashes have cycles of other lengths, so that a stack beyond the seventh differs
# from the one whose colour it has.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v")
_DASHES = ("-", "--", "-.", ":")

_CURVE_SIZE = (2.9, 2.1)
_BAR_WIDTH = 3.6
_LINE_SIZE = (1.9, 0.3)
_KIVIAT_SIZE = (3.6, 2.6)
_BAR_ROW, _BAR_TITLE, _BAR_GAP = 0.165, 0.2, 0.09
_LABEL_CHARACTERS = 16
_TITLE_CHARACTERS = 52
# What ticks of sizes may not come nearer to each other than, as a part of the axis.
_TICK_DISTANCE = 0.16
# Longer labels at the ends of an axis stand inside of it.
_CENTRED_CHARACTERS = 5
# Where the size 0 stands on a logarithmic axis: this far left of the smallest other size.
_ZERO_DISTANCE = 0.1
_KIBI = 1024
# From which value on a tick has which prefix: four digits are read as they are.
_PREFIXES = ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
# Nothing that was measured is as large as this, or as small as one part of it.
_ABSURD = 1e100
_STYLE: Any = {
    "svg.fonttype": "none",
    # Without a salt of ours, ids differ from run to run; _inline makes them unique on a page.
    "svg.hashsalt": "clustergate",
    "text.parse_math": False,
    "font.size": 8,
    "font.family": ["sans-serif"],
    "axes.edgecolor": "#777777",
    "axes.linewidth": 0.6,
    "axes.unicode_minus": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.6,
    "path.simplify": False,
}
_GRID: dict[str, Any] = {"colors": "#d4d4d4", "linewidth": 0.5, "zorder": 0, "clip_on": False}
_SVG = "{http://www.w3.org/2000/svg}"
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
_FONT_FAMILY = re.compile(r"font-family:[^;]*;? ?")


@dataclass(frozen=True)
class Style:
    """How a stack looks in every plot: its colour, its marker and its dashes."""

    colour: str
    marker: str
    dashes: str


LEVEL = Style("#777777", "", ":")
"""A level to hold a curve against."""


@dataclass(frozen=True)
class Point:
    """A value at a message size in bytes, or another place, with its interval where it has one."""

    size: float
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Curve:
    """One line of a plot; its intervals make a ``band`` around it, or a bar at each point."""

    style: Style
    points: Sequence[Point]
    band: bool = False


@dataclass(frozen=True)
class Bar:
    """One bar: ``length`` is a part of the full length, ``text`` stands behind it."""

    label: str
    length: float
    text: str
    style: Style


@dataclass(frozen=True)
class BarGroup:
    """Bars to compare with each other, below a title."""

    title: str
    bars: Sequence[Bar]


def styles(count: int) -> list[Style]:
    """Return as many styles as there are stacks; each differs in colour, marker and dashes."""
    cycles = zip(
        itertools.cycle(_COLOURS), itertools.cycle(_MARKERS), itertools.cycle(_DASHES), strict=False
    )
    return [Style(*cycle) for cycle in itertools.islice(cycles, count)]


def curves(
    lines: Sequence[Curve],
    *,
    unit: str,
    logarithmic: bool,
    name: str,
    description: str,
    axis: str = "",
    linear: bool = False,
) -> str:
    """Draw values over message sizes, or over what ``axis`` names, such as ``processes``.

    These are on a logarithmic axis, unless it is to be ``linear``.
    ``name`` is unique on the page, ``description`` is what a screen reader says. A size of 0 stands
    left of all others. A value that the axis cannot show is left out, as is such an interval.
    """
    lowest = 1 / _ABSURD if logarithmic else -_ABSURD
    shown = [Curve(line.style, _showable(line.points, lowest), line.band) for line in lines]
    sizes = sorted({point.size for line in shown for point in line.points})
    with _drawing():
        figure = Figure(figsize=_CURVE_SIZE)
        # On the right there is room for half of a label such as 16 Mi.
        axes = figure.add_axes((0.16, 0.175, 0.79, 0.735))
        # Most of the time goes into matplotlib's own axes, and a page has hundreds of them.
        axes.xaxis.set_visible(False)
        axes.yaxis.set_visible(False)
        positions = {size: size for size in sizes} if linear else _positions(sizes)
        for line in shown:
            _draw_curve(axes, line, positions)
        values = [end for line in shown for p in line.points for end in (p.value, p.low, p.high)]
        _value_axis(axes, [value for value in values if value is not None], unit, logarithmic)
        _size_axis(axes, positions, axis)
        return _inline(figure, name, description)


def kiviat(
    shapes: Sequence[tuple[Style, Mapping[str, float]]], *, name: str, description: str
) -> str:
    """Draw parts of a whole, 0 to 1, on one spoke for each key of the first shape.

    ``name`` is unique on the page, ``description`` is what a screen reader says.
    """
    spokes = list(shapes[0][1]) if shapes else []
    angles = [2 * math.pi * k / max(1, len(spokes)) for k in range(len(spokes))]
    with _drawing():
        figure = Figure(figsize=_KIVIAT_SIZE)
        axes = figure.add_axes((0.24, 0.14, 0.52, 0.72))
        axes.set_xlim(-1, 1)
        axes.set_ylim(-1, 1)
        axes.set_aspect("equal")
        axes.axis("off")
        for radius in (0.5, 1.0):
            rim = [(radius * math.sin(a), radius * math.cos(a)) for a in [*angles, *angles[:1]]]
            axes.plot(*zip(*rim, strict=True), color="#d4d4d4", linewidth=0.5)
        for angle, spoke in zip(angles, spokes, strict=True):
            x, y = math.sin(angle), math.cos(angle)
            axes.plot([0, x], [0, y], color="#d4d4d4", linewidth=0.5)
            side = "left" if x > 0.1 else "right" if x < -0.1 else "center"
            label = printable(shortened(spoke, 2 * _LABEL_CHARACTERS))
            axes.text(1.08 * x, 1.1 * y, label, ha=side, va="center", fontsize=6.5)
        for style, parts in shapes:
            ends = [
                (parts.get(spoke, 0.0) * math.sin(a), parts.get(spoke, 0.0) * math.cos(a))
                for a, spoke in zip(angles, spokes, strict=True)
            ]
            look: dict[str, Any] = {"color": style.colour, "linestyle": style.dashes}
            closed = [*ends, *ends[:1]]
            axes.plot(*zip(*closed, strict=True), marker=style.marker, clip_on=False, **look)
        return _inline(figure, name, description)


def legend(style: Style, *, name: str) -> str:
    """Draw a short piece of a stack's line, to stand before its name."""
    with _drawing():
        figure = Figure(figsize=(0.42, 0.16))
        axes = figure.add_axes((0, 0, 1, 1))
        _draw_curve(axes, Curve(style, [Point(n, 0) for n in (1, 2, 3)]), {1: 1, 2: 2, 3: 3})
        axes.set_xlim(0.9, 3.1)
        axes.axis("off")
        return _inline(figure, name, "")


def line(
    heights: Sequence[float], marks: Sequence[int], *, least: float, name: str, description: str
) -> str:
    """Draw a line without axes, as long as a word or two, with a bar before each marked point.

    It shows a range of ``least`` at least. ``name`` is unique on the page, ``description`` is what
    a screen reader says.
    """
    low, high = min(heights, default=0.0), max(heights, default=0.0)
    height = max(high - low, least)
    with _drawing():
        figure = Figure(figsize=_LINE_SIZE)
        axes = figure.add_axes((0.02, 0.1, 0.96, 0.8))
        axes.axis("off")
        axes.plot(heights, color=_COLOURS[0], marker="o", markersize=1.6, clip_on=False)
        axes.set_ylim((low + high - height) / 2, (low + high + height) / 2)
        for mark in marks:
            axes.axvline(mark - 0.5, color=_COLOURS[1], linewidth=1)
        return _inline(figure, name, description)


def bars(groups: Sequence[BarGroup], *, name: str, description: str, full: float = 1.0) -> str:
    """Draw groups of horizontal bars, ``full`` long at most, with a line at the length 1.

    ``name`` is unique on the page, ``description`` is what a screen reader says.
    """
    rows = sum(len(group.bars) for group in groups)
    height = len(groups) * (_BAR_TITLE + _BAR_GAP) + rows * _BAR_ROW
    with _drawing():
        figure = Figure(figsize=(_BAR_WIDTH, height))
        axes = figure.add_axes((0.27, 0, 0.56, 1))
        axes.set_xlim(0, full)
        axes.set_ylim(height, 0)
        axes.axis("off")
        top = 0.0
        for group in groups:
            top = _draw_group(axes, group, top)
        return _inline(figure, name, description)


@contextmanager
def _drawing() -> Iterator[None]:
    """Draw with matplotlib's own defaults and ours, whatever a matplotlibrc of the user's says."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # The reader's browser has the glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _showable(points: Sequence[Point], above: float) -> list[Point]:
    def shows(value: float | None) -> bool:
        return value is not None and above < value < _ABSURD

    return [
        point if shows(point.low) and shows(point.high) else Point(point.size, point.value)
        for point in points
        if shows(point.value)
    ]


def _positions(sizes: Sequence[float]) -> dict[float, float]:
    """Return where each size stands on the axis."""
    positions = {size: math.log2(size) for size in sizes if size > 0}
    if sizes and sizes[0] == 0:
        smallest, largest = min(positions.values(), default=0), max(positions.values(), default=0)
        positions[0] = smallest - max(1, _ZERO_DISTANCE * (largest - smallest))
    return positions


def _draw_curve(axes: Axes, line: Curve, positions: Mapping[float, float]) -> None:
    look: dict[str, Any] = {"color": line.style.colour, "clip_on": False}
    axes.plot(
        [positions[point.size] for point in line.points],
        [point.value for point in line.points],
        marker=line.style.marker,
        linestyle=line.style.dashes,
        **look,
    )
    known = [
        (positions[point.size], point.low, point.high)
        for point in line.points
        if point.low is not None and point.high is not None
    ]
    if line.band:
        if known:
            places, low, high = zip(*known, strict=True)
            axes.fill_between(places, low, high, color=line.style.colour, alpha=0.22, linewidth=0)
        return
    for place, low_end, high_end in known:
        axes.vlines(place, low_end, high_end, linewidth=1, **look)


def _size_axis(axes: Axes, positions: Mapping[float, float], axis: str) -> None:
    label_of = _tick if axis else _size
    ticks: list[tuple[float, str]] = []
    places = sorted((position, size) for size, position in positions.items())
    if places:
        (first, _), (last, largest) = places[0], places[-1]
        distance = _TICK_DISTANCE * (last - first)
        for place, size in places[:-1]:
            if last - place >= distance and not (ticks and place - ticks[-1][0] < distance):
                ticks.append((place, label_of(size)))
        ticks.append((last, label_of(largest)))
        margin = 0.02 * (last - first) or 1
        axes.set_xlim(first - margin, last + margin)
    across = axes.get_xaxis_transform()
    axes.vlines([place for place, _ in ticks], 0, 1, transform=across, **_GRID)
    for place, label in ticks:
        # A long label at an end of the axis would leave the drawing, or lie on the other axis.
        ends = {ticks[0][0]: "left", ticks[-1][0]: "right"} if len(ticks) > 1 else {}
        side = ends.get(place, "center") if len(label) > _CENTRED_CHARACTERS else "center"
        axes.text(place, -0.025, label, transform=across, ha=side, va="top")
    along = axis or "message size in bytes"
    axes.text(0.5, -0.13, along, transform=axes.transAxes, ha="center", va="top")


def _size(size: float) -> str:
    for prefix in ("", " Ki", " Mi"):
        if size < _KIBI or size % _KIBI:
            return f"{size:.0f}{prefix}"
        size /= _KIBI
    return f"{size:.0f} Gi"


def _value_axis(axes: Axes, values: Sequence[float], unit: str, logarithmic: bool) -> None:
    highest = max(values, default=1.0)
    if logarithmic:
        low, high = min(values, default=1.0) / 1.3, highest * 1.3
        axes.set_yscale("log")
        ticks = _logarithmic_ticks(low, high)
    else:
        low, high = min([0.0, *values]), 1.05 * (max(highest, 0.0) or 1.0)
        ticks = [
            float(tick)
            for tick in MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
            if low <= tick <= high
        ]
    axes.set_ylim(low, high)
    along = axes.get_yaxis_transform()
    axes.hlines(ticks, 0, 1, transform=along, **_GRID)
    for tick in ticks:
        axes.text(-0.015, tick, _tick(tick), transform=along, ha="right", va="center_baseline")
    # Above the axis and not beside it: the numbers have the room, and nobody turns the head.
    label = printable(shortened(unit, _TITLE_CHARACTERS))
    axes.text(0, 1.03, label, transform=axes.transAxes, va="bottom")


def _logarithmic_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten, or also 2 and 5 times them where there would be fewer than two."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        ticks = [
            factor * 10.0**decade
            for decade in decades
            for factor in factors
            if low <= factor * 10.0**decade <= high
        ]
        if len(ticks) > 1:
            return ticks
    # Few digits: the numbers have little room.
    return [float(f"{value:.2g}") for value in (low * 1.3, high / 1.3)]


def _tick(value: float) -> str:
    for threshold, size, prefix in _PREFIXES:
        if abs(value) >= threshold:
            return f"{value / size:.4g} {prefix}"
    return f"{value:.4g}"


def _draw_group(axes: Axes, group: BarGroup, top: float) -> float:
    """Draw a group below ``top``, in inches, and return where the next begins."""
    left = -0.27 / 0.56 * axes.get_xlim()[1]
    title = printable(shortened(group.title, _TITLE_CHARACTERS))
    top += _BAR_TITLE
    axes.text(left, top - 0.05, title, weight="bold")
    bottom = top + len(group.bars) * _BAR_ROW
    axes.vlines(1, top, bottom, colors="#999999", linewidth=0.6, clip_on=False)
    for index, bar in enumerate(group.bars):
        middle = top + (index + 0.5) * _BAR_ROW
        axes.barh(middle, bar.length, 0.78 * _BAR_ROW, color=bar.style.colour, clip_on=False)
        label = printable(shortened(bar.label, _LABEL_CHARACTERS))
        end = axes.get_xlim()[1]
        write: dict[str, Any] = {"va": "center_baseline", "fontsize": 7.5}
        axes.text(left, middle, label, **write)
        axes.text(1.02 * end, middle, printable(shortened(bar.text, _LABEL_CHARACTERS)), **write)
    return bottom + _BAR_GAP


def _inline(figure: Figure, name: str, description: str) -> str:
    """Return a figure as an element that can stand in a page with others of its kind."""
    stream = io.StringIO()
    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(stream, format="svg", metadata=metadata)
    root = ElementTree.fromstring(stream.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            # matplotlib's style element would hold for the whole page; report.css has its rules.
            if child.tag in (f"{_SVG}style", f"{_SVG}metadata"):
                parent.remove(child)
    referenced = set(re.findall(r'(?:href="|url\()#([^")]+)', stream.getvalue()))
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        element.tail = None
        if element.tag not in ("text", "tspan"):
            element.text = None
        for key, value in list(element.attrib.items()):
            del element.attrib[key]
            kept = _attribute(key, value, name, referenced)
            if kept is not None:
                element.set(*kept)
    for size in ("width", "height"):
        root.attrib.pop(size)
    accessible = {"role": "img", "aria-label": printable(description)}
    root.attrib.update(accessible if description else {"aria-hidden": "true"})
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(key: str, value: str, name: str, referenced: set[str]) -> tuple[str, str] | None:
    """Return an attribute as it goes into the page: ids are made unique, numbers short."""
    if key == "id":
        return ("id", f"{name}-{value}") if value in referenced else None
    if key == _XLINK_HREF:
        return "href", f"#{name}-{value.removeprefix('#')}"
    if key == "style":
        return key, _FONT_FAMILY.sub("", value)
    if "url(#" in value:
        return key, value.replace("url(#", f"url(#{name}-")
    if key in ("d", "x", "y", "transform"):
        short = re.sub(r"-?\d+\.\d{3,}", lambda match: f"{float(match[0]):.2f}", value)
        return key, " ".join(short.split())
    return key, value
