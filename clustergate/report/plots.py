"""Curves, trends and radar charts as inline SVG. Pure.

Plain data goes in, the text of one ``<svg>`` element comes out: no scripts, no ids, no links, no
colours but those of the page's style sheet, so that a drawing follows it into the dark and onto
paper. The same data give the same bytes. Texts are never read as markup.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup, escape

from clustergate.core.notation import printable
from clustergate.core.texts import DOUBTFUL, shortened

COLOURS = 7
"""The style sheet has so many, ``.s0`` and on."""
# Cycles of other lengths, so that a stack beyond the last colour differs from the one that has it.
_MARKERS = ("o", "s", "^", "D", "v")
_DASHES = ("", "6 2.5", "6 2 1.5 2", "1.5 2")

# In CSS pixels, as wide as a plot is on a page; the frame is inside of its margins.
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 290.0, 195.0, 42.0, 12.0, 18.0, 34.0
_MARKER = 2.8
_TITLE_CHARACTERS = 48
# What ticks of sizes may not come nearer to each other than, as a part of the axis.
_TICK_DISTANCE = 0.16
# Where the size 0 stands on a logarithmic axis: this far left of the smallest other size.
_ZERO_DISTANCE = 0.1
_KIBI = 1024
MESSAGE_SIZE = "message size in bytes"
"""What curves go over, unless they say otherwise."""
# From which value on a tick has which prefix: four digits are read as they are.
_PREFIXES = ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
# Nothing that was measured is as large as this, or as small as one part of it.
_ABSURD = 1e100


@dataclass(frozen=True)
class Style:
    """How a stack looks in every plot: its colour, its marker and its dashes."""

    colour: int
    marker: str
    dashes: str


LEVEL = Style(COLOURS, "", "1.5 2")
"""A level to hold a curve against."""


@dataclass(frozen=True)
class Point:
    """A value at a message size in bytes, or another place, with its interval where it has one.

    One that is not to be trusted is ``doubtful``, and hollow.
    """

    size: float
    value: float
    low: float | None = None
    high: float | None = None
    doubtful: bool = False


@dataclass(frozen=True)
class Curve:
    """One line of a plot; its intervals make a ``band`` around it, or a bar at each point."""

    name: str
    style: Style
    points: Sequence[Point]
    band: bool = False


@dataclass(frozen=True)
class Axes:
    """The axes of one plot, or of several that are compared by eye.

    ``places`` are the sizes, by value, where they stand between ``left`` and ``right``.
    """

    unit: str
    along: str
    logarithmic: bool
    places: Mapping[float, float]
    left: float
    right: float
    low: float
    high: float
    size_ticks: Sequence[tuple[float, str]]
    value_ticks: Sequence[float]


def styles(count: int) -> list[Style]:
    """Return as many styles as there are stacks; each differs in colour, marker and dashes."""
    cycles = zip(
        itertools.cycle(range(COLOURS)),
        itertools.cycle(_MARKERS),
        itertools.cycle(_DASHES),
        strict=False,
    )
    return [Style(*cycle) for cycle in itertools.islice(cycles, count)]


def axes_of(
    lines: Iterable[Curve],
    *,
    unit: str,
    logarithmic: bool,
    along: str = "",
    linear: bool = False,
) -> Axes:
    """Return axes on which all lines fit.

    They go over message sizes, or over what ``along`` names, such as "processes", on a
    logarithmic axis, unless it is to be ``linear``. A size of 0 stands left of all others.
    """
    points = [point for line in lines for point in _showable(line.points, logarithmic)]
    sizes = sorted({point.size for point in points})
    places = {size: size for size in sizes} if linear else _places(sizes)
    first, last = min(places.values(), default=0.0), max(places.values(), default=1.0)
    margin = 0.02 * (last - first) or 1.0
    ends = [end for p in points for end in (p.value, p.low, p.high) if end is not None]
    if logarithmic:
        low, high = min(ends, default=1.0) / 1.15, max(ends, default=1.0) * 1.15
        ticks = _logarithmic_ticks(low, high)
    else:
        low, high = min([0.0, *ends]), 1.05 * (max(0.0, *ends, 0.0) or 1.0)
        ticks = _even_ticks(low, high)
    return Axes(
        unit=unit,
        along=along or MESSAGE_SIZE,
        logarithmic=logarithmic,
        places=places,
        left=first - margin,
        right=last + margin,
        low=low,
        high=high,
        size_ticks=_measured_ticks(sizes)
        if not linear and any(not float(size).is_integer() for size in sizes)
        else _size_ticks(places, tick if along else _size),
        value_ticks=ticks,
    )


def curves(lines: Sequence[Curve], axes: Axes, *, description: str) -> Markup:
    """Draw values over sizes; ``description`` is what a screen reader says.

    A value that the axis cannot show is left out, as is such an interval.
    """
    inner_width, inner_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    scale = math.log if axes.logarithmic else float
    low, high = scale(axes.low), scale(axes.high)

    def x(place: float) -> float:
        return _LEFT + inner_width * (place - axes.left) / (axes.right - axes.left)

    def y(value: float) -> float:
        return _TOP + inner_height * (1 - (scale(value) - low) / (high - low))

    bottom, right = _TOP + inner_height, _LEFT + inner_width
    grid = [f"M{_short(x(place))} {_TOP:g}V{_short(bottom)}" for place, _ in axes.size_ticks]
    grid += [f"M{_LEFT:g} {_short(y(value))}H{_short(right)}" for value in axes.value_ticks]
    parts = [
        f'<path class="grid" d="{"".join(grid)}"/>',
        f'<path class="frame" d="M{_LEFT:g} {_TOP:g}H{right:g}V{bottom:g}H{_LEFT:g}z"/>',
        *(_text(x(at), bottom + 12, label, "middle") for at, label in axes.size_ticks),
        *(_text(_LEFT - 5, y(value) + 3.5, tick(value), "end") for value in axes.value_ticks),
        # Above the axis and not beside it: the numbers have the room, and nobody turns the head.
        _text(2, 11, shortened(axes.unit, _TITLE_CHARACTERS), "start"),
        _text(_LEFT + inner_width / 2, _HEIGHT - 5, shortened(axes.along, _TITLE_CHARACTERS)),
    ]
    for line in lines:
        shown = [
            (x(axes.places[point.size]), y(point.value), point)
            for point in _showable(line.points, axes.logarithmic)
        ]
        spans = [
            None if point.low is None or point.high is None else (at, y(point.low), y(point.high))
            for at, _, point in shown
        ]
        parts.append(f'<g class="s{line.style.colour}">{_intervals(spans, band=line.band)}')
        parts.append(_drawn_line([(at, level) for at, level, _ in shown], line.style))
        for css, doubtful in (("mark", False), ("mark hollow", True)):
            marks = [
                _marker(line.style.marker, at, level)
                for at, level, point in shown
                if point.doubtful is doubtful
            ]
            if any(marks):
                parts.append(f'<path class="{css}" d="{"".join(marks)}"/>')
        parts.append("</g>")
    parts.append(_readings(lines, axes, x))
    return svg(_WIDTH, _HEIGHT, parts, description)


def _readings(lines: Sequence[Curve], axes: Axes, x: Callable[[float], float]) -> str:
    """Draw a strip over each size, in which a mouse reads what all lines have there."""
    label_of = _size if axes.along == MESSAGE_SIZE else tick
    values: dict[float, list[str]] = {}
    for line in lines:
        for point in _showable(line.points, axes.logarithmic) if line.style.marker else ():
            mark = DOUBTFUL if point.doubtful else ""
            values.setdefault(point.size, []).append(f"{line.name}: {tick(point.value)}{mark}")
    sizes = sorted(values)
    at = [x(axes.places[size]) for size in sizes]
    # From half-way to the one before to half-way to the one behind.
    ends = [_LEFT, *map(fmean, itertools.pairwise(at)), _WIDTH - _RIGHT]
    height = _short(_HEIGHT - _TOP - _BOTTOM)
    strips = []
    for size, place, left, right in zip(sizes, at, ends, ends[1:], strict=False):
        texts = [f"{axes.unit} at {label_of(size)} ({axes.along})", *values[size]]
        title = "\n".join(escape(printable(text)) for text in texts)
        strips.append(
            f'<g class="at"><title>{title}</title>'
            f'<path class="guide" d="M{_short(place)} {_TOP:g}v{height}"/>'
            f'<rect x="{_short(left)}" y="{_TOP:g}" width="{_short(right - left)}" '
            f'height="{height}"/></g>'
        )
    return f'<g fill="none" pointer-events="all">{"".join(strips)}</g>'


def legend(style: Style) -> Markup:
    """Draw a short piece of a stack's line, to stand before its name."""
    line = _drawn_line([(2, 7), (38, 7)], style)
    mark = f'<path class="mark" d="{_marker(style.marker, 20, 7)}"/>' if style.marker else ""
    return svg(40, 14, [f'<g class="s{style.colour}">{line}{mark}</g>'], "")


def trend(
    heights: Sequence[float], marks: Sequence[int], *, least: float, description: str
) -> Markup:
    """Draw a line without axes, as long as a word or two, with a bar before each marked point.

    It shows a range of ``least`` at least.
    """
    width, height = 140.0, 24.0
    low, high = min(heights, default=0.0), max(heights, default=0.0)
    span = max(high - low, least)
    floor = (low + high - span) / 2
    step = (width - 8) / max(1, len(heights) - 1)
    points = [
        (4 + step * k, 3 + (height - 6) * (1 - (value - floor) / span))
        for k, value in enumerate(heights)
    ]
    bars = "".join(f"M{_short(4 + step * (mark - 0.5))} 0V{height:g}" for mark in marks)
    dots = "".join(_marker("o", x, y, 1.4) for x, y in points)
    solid = Style(0, "o", "")
    parts = [
        f'<g class="s0">{_drawn_line(points, solid)}<path class="mark" d="{dots}"/></g>',
        f'<g class="s1"><path class="curve" d="{bars}"/></g>' if bars else "",
    ]
    return svg(width, height, parts, description)


def radar(shapes: Sequence[tuple[Style, Mapping[str, float]]], *, description: str) -> Markup:
    """Draw parts of a whole, 0 to 1, on one spoke for each key of the first shape."""
    spokes = list(shapes[0][1]) if shapes else []
    middle_x, middle_y, radius = 205.0, 130.0, 95.0
    turns = [2 * math.pi * k / max(1, len(spokes)) for k in range(len(spokes))]

    def ring(parts: Iterable[float]) -> str:
        ends = [
            f"{_short(middle_x + radius * part * math.sin(a))} "
            f"{_short(middle_y - radius * part * math.cos(a))}"
            for part, a in zip(parts, turns, strict=True)
        ]
        return f"M{'L'.join(ends)}z" if ends else ""

    web = "".join(ring([part] * len(spokes)) for part in (0.5, 1.0))
    drawn = [f'<path class="grid" d="{web}"/>']
    for a, spoke in zip(turns, spokes, strict=True):
        x, y = middle_x + 1.08 * radius * math.sin(a), middle_y - 1.1 * radius * math.cos(a)
        side = "start" if math.sin(a) > 0.1 else "end" if math.sin(a) < -0.1 else "middle"
        drawn.append(_text(x, y + 3, shortened(spoke, 32), side))
    for style, parts in shapes:
        shape = ring([parts.get(spoke, 0.0) for spoke in spokes])
        dashes = f' stroke-dasharray="{style.dashes}"' if style.dashes else ""
        drawn.append(f'<path class="curve s{style.colour}" d="{shape}"{dashes}/>')
    return svg(410, 260, drawn, description)


def tick(value: float) -> str:
    """Return a value as it stands at an axis, in few characters."""
    for threshold, size, prefix in _PREFIXES:
        if abs(value) >= threshold:
            return f"{value / size:.4g} {prefix}"
    return f"{value:.4g}"


# --- axes ---------------------------------------------------------------------------------------


def _showable(points: Sequence[Point], logarithmic: bool) -> list[Point]:
    lowest = 1 / _ABSURD if logarithmic else -_ABSURD

    def shows(value: float | None) -> bool:
        return value is not None and lowest < value < _ABSURD

    return [
        point
        if shows(point.low) and shows(point.high)
        else Point(point.size, point.value, doubtful=point.doubtful)
        for point in points
        if shows(point.value)
    ]


def _places(sizes: Sequence[float]) -> dict[float, float]:
    places = {size: math.log2(size) for size in sizes if size > 0}
    if sizes and sizes[0] == 0:
        smallest, largest = min(places.values(), default=0), max(places.values(), default=0)
        places[0] = smallest - max(1, _ZERO_DISTANCE * (largest - smallest))
    return places


def _size_ticks(
    places: Mapping[float, float], label_of: Callable[[float], str]
) -> list[tuple[float, str]]:
    ordered = sorted((place, size) for size, place in places.items())
    if not ordered:
        return []
    (first, _), (last, largest) = ordered[0], ordered[-1]
    distance = _TICK_DISTANCE * (last - first)
    ticks: list[tuple[float, str]] = []
    for place, size in ordered[:-1]:
        if last - place >= distance and not (ticks and place - ticks[-1][0] < distance):
            ticks.append((place, label_of(size)))
    return [*ticks, (last, label_of(largest))]


def _measured_ticks(sizes: Sequence[float]) -> list[tuple[float, str]]:
    """Return round numbers on a logarithmic axis of what was measured, too."""
    above = [size for size in sizes if size > 0]
    return [(math.log2(at), tick(at)) for at in _logarithmic_ticks(min(above), max(above))]


def _size(size: float) -> str:
    for prefix in ("", " Ki", " Mi"):
        if size < _KIBI or size % _KIBI:
            return f"{size:.0f}{prefix}"
        size /= _KIBI
    return f"{size:.0f} Gi"


def _logarithmic_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten, with round numbers between them where there would be few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)):
        ticks = [
            # A literal, so that 5 times a hundredth is 0.05 and not a little more.
            float(f"{factor}e{decade}")
            for decade in decades
            for factor in factors
            if low <= float(f"{factor}e{decade}") <= high
        ]
        if len(ticks) > 2:
            return ticks[:: math.ceil(len(ticks) / 8)]
    return _even_ticks(low, high)


def _even_ticks(low: float, high: float) -> list[float]:
    """Return about five multiples of 1, 2, 2.5 or 5 times a power of ten."""
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / 4)) if span > 0 else 1.0
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if span / (factor * power) <= 6)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


# --- elements -----------------------------------------------------------------------------------


def svg(
    width: float, height: float, parts: Iterable[str], description: str, scale: float | None = None
) -> Markup:
    """Return a drawing of elements that are escaped; ``description`` is for a screen reader.

    With a ``scale`` it is so many times as wide as its units are pixels, else as wide as its place.
    """
    role = (
        f'role="img" aria-label="{escape(printable(description))}"'
        if description
        else 'aria-hidden="true"'
    )
    box = f"0 0 {width:g} {height:g}"
    size = f' width="{scale * width:g}"' if scale else ""
    return Markup(f'<svg viewBox="{box}"{size} {role}>{"".join(filter(None, parts))}</svg>')


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    shown = escape(printable(text))
    return f'<text x="{_short(x)}" y="{_short(y)}" text-anchor="{anchor}">{shown}</text>'


def _drawn_line(points: Sequence[tuple[float, float]], style: Style) -> str:
    if len(points) < 2:
        return ""
    path = "L".join(f"{_short(x)} {_short(y)}" for x, y in points)
    dashes = f' stroke-dasharray="{style.dashes}"' if style.dashes else ""
    return f'<path class="curve" d="M{path}"{dashes}/>'


def _intervals(spans: Sequence[tuple[float, float, float] | None], *, band: bool) -> str:
    """Draw the intervals of a line's points; a band does not go over one that has none."""
    bands, bars = [], []
    for _, run in itertools.groupby(spans, key=bool):
        known = [span for span in run if span]
        if band and len(known) > 1:
            there = [f"{_short(x)} {_short(low)}" for x, low, _ in known]
            back = [f"{_short(x)} {_short(high)}" for x, _, high in reversed(known)]
            bands.append(f"M{'L'.join([*there, *back])}z")
        else:
            bars += [f"M{_short(x)} {_short(low)}V{_short(high)}" for x, low, high in known]
    drawn = {"band": "".join(bands), "interval": "".join(bars)}
    return "".join(f'<path class="{css}" d="{path}"/>' for css, path in drawn.items() if path)


def _marker(marker: str, x: float, y: float, radius: float = _MARKER) -> str:
    r, d = _short(radius), _short(2 * radius)
    at, left = f"{_short(x)} {_short(y - radius)}", _short(x - radius)
    return {
        "": "",
        "o": f"M{left} {_short(y)}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0-{d} 0z",
        "s": f"M{left} {_short(y - radius)}h{d}v{d}h-{d}z",
        "^": f"M{at}l{r} {d}h-{d}z",
        "D": f"M{at}l{r} {r}l-{r} {r}l-{r}-{r}z",
        "v": f"M{_short(x)} {_short(y + radius)}l{r}-{d}h-{d}z",
    }[marker]


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
