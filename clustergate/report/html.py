"""One HTML file that says everything of a run and opens without a network.

Pure: a :class:`~clustergate.core.model.Run` goes in, the text of the page comes out, the same for
the same run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from clustergate.benchmarks.registry import descriptor_of, every_headline
from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.model import (
    Better,
    Case,
    CaseState,
    ComparedSet,
    Conditions,
    Figure,
    Group,
    Judgement,
    Run,
    Verdict,
    worst,
)
from clustergate.core.notation import counted, number
from clustergate.core.texts import DOUBTFUL, condition_text, doubt_lines, group_name, layout, shape
from clustergate.judge.assembly import verdicts
from clustergate.judge.rules import FIGURE_AS_EXPECTED, FIGURE_EXCUSED, FIGURE_IMPROVEMENT
from clustergate.report import answer, page, plots, summary
from clustergate.report.page import BETTER, LOGARITHMIC, Plot, Sketch
from clustergate.report.summary import CAUSES_SHOWN
from clustergate.report.trends import COLUMNS as TREND_COLUMNS
from clustergate.report.trends import SMALLEST_HEIGHT, History
from clustergate.report.trends import cells as trend_cells
from clustergate.report.trends import name as trend_name

# A page of more plots takes a browser too long to open; what is left out stands in the tables.
PLOTS_AT_MOST = 160
TRENDS_AT_MOST = 60
# Cases, and figures of one of them, that stand unfolded where it says what is wrong.
CASES_SHOWN, FIGURES_SHOWN = 12, 4
# From how many figures of a case on a sentence that they share stands above them, once.
_SHARED_FROM = 3
_ORIGINS_SHOWN = 3

NO_HISTORY = History()

# Reasons that say how a figure stands to its reference, which has columns of its own.
_IN_COLUMNS = frozenset({FIGURE_AS_EXPECTED.code, FIGURE_IMPROVEMENT.code, FIGURE_EXCUSED.code})
# Of the conditions of a figure, what changes along a curve.
_ALONG_A_CURVE = frozenset({"bytes", "repetitions"})
_WAYS = {Better.LOWER: "↓", Better.HIGHER: "↑"}
_SECTIONS = {"us": "Time", "MB/s": "Bandwidth", "1/s": "Messages per second", "%": "Overlap"}


def render_html(run: Run, history: History = NO_HISTORY, invocation: Invocation = NO_CALL) -> str:
    """Return the report of a run, and of what came before, as one self-contained HTML page."""
    stacks = _stacks(run.cases)
    styles = dict(zip(stacks, plots.styles(len(stacks)), strict=True))
    first = summary.first_screen(run)
    anchors: dict[int, str] = {}
    for index, case in enumerate(run.cases, 1):
        anchors.setdefault(id(case), f"case-{index}")
    troubles = answer.troubles(run.cases)
    return page.render(
        "report.html.j2",
        scripted=True,
        invocation=invocation,
        beside="",
        run=run,
        first=first,
        more="wrong" if troubles else "causes",
        causes_untold=[
            cause
            for index, cause in enumerate(first.causes)
            # What is wrong has its section; of what stands on the first screen whole, no word more.
            if index >= len(troubles) and (index >= CAUSES_SHOWN or cause.short != cause.sentence)
        ],
        measured=summary.measured(run),
        troubles=troubles,
        cases_shown=CASES_SHOWN,
        figures_shown=FIGURES_SHOWN,
        counts=_counts(run.cases),
        states=Counter(case.state for case in run.cases),
        stacks=stacks,
        overview=_overview(run.cases, stacks, anchors),
        anchor=lambda case: anchors[id(case)],
        history=history_rows(history),
        sets=list(map(_set_row, run.sets)),
        shifted=any(trend.shifts for trend in history.trends),
        changes=[*run.changes, *history.changes],
        trend_columns=TREND_COLUMNS,
        trends_left_out=max(0, len(history.trends) - TRENDS_AT_MOST),
        curve=_curve_that_matters(run.cases, troubles, styles),
        curves=_curve_groups(run.cases, styles),
        bars=_bars(run.cases, styles),
        cases=[_case_view(f"case-{index}", case) for index, case in enumerate(run.cases, 1)],
        several=len({case.partition for case in run.cases}) > 1,
    )


# --- verdicts ---------------------------------------------------------------------------------


def _counts(cases: Iterable[Case]) -> list[tuple[Verdict, int]]:
    """Return how many figures have each verdict, the worst verdict first."""
    counts = Counter(figure.judgement.verdict for case in cases for figure in case.figures)
    return [(verdict, counts[verdict]) for verdict in reversed(Verdict) if counts[verdict]]


def _overview(
    cases: Sequence[Case], stacks: Sequence[str], anchors: Mapping[int, str]
) -> list[tuple[str, list[dict[str, Any] | None]]]:
    """Return by check and stack the worst verdict, None where nothing ran, and where to read on."""
    by_pair: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        by_pair.setdefault((case.check, case.stack), []).append(case)
    rows: dict[str, list[dict[str, Any] | None]] = {}
    for check in dict.fromkeys(case.check for case in cases):
        of_check = (by_pair.get((check, stack), []) for stack in stacks)
        rows[check] = [_cell(alike, anchors) if alike else None for alike in of_check]
    return list(rows.items())


def _cell(alike: Sequence[Case], anchors: Mapping[int, str]) -> dict[str, Any]:
    states = Counter(case.state for case in alike)
    lines = [f"{verdict.value}: {count}" for verdict, count in _counts(alike)]
    lines += [
        f"{state.value}: {counted(count, 'case')}"
        for state, count in states.items()
        if state is not CaseState.RAN
    ]
    absent = set(states) == {CaseState.NOT_AVAILABLE}
    verdict = None if absent else worst(verdicts(alike))
    return {"verdict": verdict, "lines": lines, "anchor": anchors[id(alike[0])]}


# --- curves -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Panel:
    """What one plot of curves shows: a metric of a benchmark under conditions."""

    benchmark: str
    metric: str
    unit: str
    better: Better
    conditions: frozenset[tuple[str, str]]


def _curve_groups(cases: Sequence[Case], styles: Mapping[str, plots.Style]) -> list[dict[str, Any]]:
    """Return the curves over message sizes, one group for each check and layout of ranks.

    Of each group ``left_out`` counts the plots that were not drawn, ``opened`` tells whether it
    starts unfolded.
    """
    grouped = [
        (key, alike, panels)
        for key, alike in _comparable(cases).items()
        if (panels := _panels(alike))
    ]
    # The largest layout of every check comes first: it opens, and the last ones are left out.
    places: Counter[str] = Counter()
    ordered = []
    for (check, *_), alike, panels in sorted(grouped, key=lambda entry: -_ranks(entry[1][0])):
        ordered.append((places[check], check, alike, panels))
        places[check] += 1
    ordered.sort(key=lambda entry: entry[:2])
    groups = []
    drawn = 0
    for place, check, alike, panels in ordered:
        remarks = _remarks(panels)
        shown = list(panels.items())[: PLOTS_AT_MOST - drawn]
        sketches = [_sketch(*pair, remarks[pair[0]], styles) for pair in shown]
        sections: dict[str, list[Plot]] = {}
        for (panel, _), plot in zip(shown, page.drawn(sketches), strict=True):
            sections.setdefault(_section(panel), []).append(plot)
        drawn += len(shown)
        groups.append(
            {
                "title": ": ".join(filter(None, [check, shape(alike[0])])),
                "details": _conditions(layout(alike[0])),
                "legend": [(stack, plots.legend(styles[stack])) for stack in _stacks(alike)],
                "opened": place == 0,
                "sections": sections,
                "left_out": len(panels) - len(shown),
            }
        )
    return groups


def _curve_that_matters(
    cases: Sequence[Case], troubles: Sequence[answer.Trouble], styles: Mapping[str, plots.Style]
) -> dict[str, Any] | None:
    """Return the curve for the first screen: of what is wrong, else the first headline's that is.

    None where there is no curve at all.
    """
    wrong = {
        (trouble.case.check, figure.benchmark, figure.metric)
        for trouble in troubles[:1]
        for figure in trouble.case.figures
        if figure.judgement.verdict is trouble.verdict
    }
    headlines = [(line.check, line.benchmark, line.metric) for line in every_headline()]
    drawable = [
        (alike, panel, lines)
        for alike in _comparable(cases).values()
        for panel, lines in _panels(alike).items()
    ]

    def place(entry: tuple[list[Case], _Panel, Any]) -> tuple[bool, int, float]:
        (case, *_), panel, _ = entry
        key = (case.check, panel.benchmark, panel.metric)
        at = headlines.index(key) if key in headlines else len(headlines)
        return key not in wrong, at, -_ranks(case)

    if not drawable:
        return None
    alike, panel, lines = min(drawable, key=place)
    sketch = _sketch(panel, lines, shape(alike[0]), styles)
    return {
        "plot": page.drawn([sketch])[0],
        "section": _section(panel),
        "legend": [(stack, plots.legend(styles[stack])) for stack in _stacks(alike)],
    }


def _section(panel: _Panel) -> str:
    title = _SECTIONS.get(panel.unit, panel.metric)
    better = BETTER.get(panel.better, "no better or worse")
    return f"{title} over message size, in {panel.unit}; {better}"


def _sketch(
    panel: _Panel,
    lines: Sequence[tuple[str, Sequence[plots.Point]]],
    remark: str,
    styles: Mapping[str, plots.Style],
) -> Sketch:
    return Sketch(
        panel.benchmark,
        remark,
        f"{panel.benchmark}, {remark}: {_section(panel)}",
        panel.unit,
        [plots.Curve(stack, styles[stack], points) for stack, points in lines],
        panel.unit in LOGARITHMIC,
    )


def _comparable(cases: Sequence[Case]) -> dict[tuple[str, str], list[Case]]:
    """Return the cases with figures, by check and layout: those whose stacks can be compared."""
    comparable: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        if case.figures:
            comparable.setdefault((case.check, _conditions(layout(case))), []).append(case)
    return comparable


def _ranks(case: Case) -> float:
    ranks = case.conditions.get("ranks", 0)
    return ranks if isinstance(ranks, int | float) else 0


def _stacks(cases: Iterable[Case]) -> list[str]:
    return sorted({case.stack for case in cases})


def _panels(cases: Sequence[Case]) -> dict[_Panel, list[tuple[str, list[plots.Point]]]]:
    """Return the curves of each panel as (stack, points); a panel has two sizes at least.

    Each case has a line of its own, also where two of one stack have the same layout.
    """
    by_panel: dict[_Panel, list[tuple[str, list[plots.Point]]]] = {}
    for case in cases:
        lines: dict[_Panel, list[plots.Point]] = {}
        for figure in case.figures:
            size = figure.conditions.get("bytes")
            if figure.estimate is None or type(size) is not int or size < 0:
                continue
            panel = _Panel(
                figure.benchmark,
                figure.metric,
                figure.unit,
                figure.better,
                frozenset(
                    (key, str(value))
                    for key, value in figure.conditions.items()
                    if key not in _ALONG_A_CURVE
                ),
            )
            estimate = figure.estimate
            point = plots.Point(
                size, estimate.value, estimate.low, estimate.high, doubtful=figure.doubt is not None
            )
            lines.setdefault(panel, []).append(point)
        for panel, points in lines.items():
            points.sort(key=lambda point: point.size)
            by_panel.setdefault(panel, []).append((case.stack, points))
    units = list(_SECTIONS)
    kept = [
        panel
        for panel, curves in by_panel.items()
        if len({point.size for _, points in curves for point in points}) > 1
    ]
    kept.sort(key=lambda panel: units.index(panel.unit) if panel.unit in units else len(units))
    return {panel: by_panel[panel] for panel in kept}


def _remarks(panels: Iterable[_Panel]) -> dict[_Panel, str]:
    """Return the metric of each panel with the conditions by which it differs from others."""
    panels = list(panels)
    shared = frozenset.intersection(*(panel.conditions for panel in panels))
    return {
        panel: ", ".join(
            [
                panel.metric,
                *(f"{key} {value}" for key, value in sorted(panel.conditions - shared)),
            ]
        )
        for panel in panels
    }


# --- history --------------------------------------------------------------------------------


def history_rows(history: History) -> list[tuple[str, list[tuple[str, Markup, Sequence[str]]]]]:
    """Return by case each trend: its name, its line, and its numbers."""
    by_case: dict[str, list[tuple[str, Markup, Sequence[str]]]] = {}
    for trend in history.trends[:TRENDS_AT_MOST]:
        started = [moment.started for moment in trend.moments]
        drawn = plots.trend(
            [-moment.level for moment in trend.moments],
            [started.index(shift.since.started) for shift in trend.shifts],
            least=SMALLEST_HEIGHT,
            description=f"{trend_name(trend)} over {len(started)} runs, higher is faster",
        )
        row = (trend_name(trend), drawn, trend_cells(trend))
        by_case.setdefault(condition_text(trend.case), []).append(row)
    return list(by_case.items())


# --- bars -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BarCell:
    """A value and its bar, ``part`` of the longest; the ``best`` of its row is told apart.

    The bar of one that is ``doubtful`` is hollow, as such points are.
    """

    text: str
    part: float
    colour: int
    best: bool = False
    doubtful: bool = False


@dataclass(frozen=True)
class BarTable:
    """Figures to compare, a row each: its title, its unit, and a cell for each column it has."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, str, Mapping[str, BarCell]]]


def _bars(cases: Sequence[Case], styles: Mapping[str, plots.Style]) -> list[dict[str, Any]]:
    of_each: dict[str, dict[str, Any]] = {}
    for alike in _comparable(cases).values():
        benchmark = descriptor_of(alike[0].check)
        tables = [
            BarTable(family, _stacks(alike), [_bar_row(*row, styles) for row in rows.items()])
            for family, rows in _families(benchmark.families, alike).items()
            if family and rows
        ]
        if tables:
            drawn = of_each.setdefault(benchmark.name, {"benchmark": benchmark, "groups": []})
            drawn["groups"].append((shape(alike[0]), tables))
    return list(of_each.values())


_Compared = tuple[str, str, Better]
"""What is compared between stacks: its title, its unit, and which way is better."""
_Values = dict[str, tuple[float, bool]]


def _families(
    families: Mapping[str, Sequence[str]], alike: Sequence[Case]
) -> dict[str, dict[_Compared, _Values]]:
    """Return by family, figure and stack the best value, and whether it is doubtful."""
    by_family: dict[str, dict[_Compared, _Values]] = {family: {} for family in families}
    for figure, stack in ((f, case.stack) for case in alike for f in case.figures):
        estimate, better = figure.estimate, figure.better
        if not families or estimate is None or better is Better.NEITHER:
            continue
        if not math.isfinite(estimate.value):
            continue
        family = _family(figure.metric, families)
        title = " ".join(dict.fromkeys([figure.benchmark, figure.metric]))
        values = by_family[family].setdefault((title, figure.unit, better), {})
        best = min if better is Better.LOWER else max
        value = (estimate.value, figure.doubt is not None)
        values[stack] = best(values.get(stack, value), value)
    return by_family


def _family(metric: str, families: Mapping[str, Sequence[str]]) -> str:
    fitting = (name for name, parts in families.items() if any(part in metric for part in parts))
    return next(fitting, next(name for name, parts in families.items() if not parts))


def _bar_row(
    what: _Compared, values: _Values, styles: Mapping[str, plots.Style]
) -> tuple[str, str, Mapping[str, BarCell]]:
    """Return a row whose bars are as long as the values are large, whichever way is better."""
    title, unit, better = what
    numbers = [value for value, _ in values.values()]
    trusted = [value for value, doubtful in values.values() if not doubtful]
    best = (min if better is Better.LOWER else max)(trusted, default=None)
    cells = {
        stack: BarCell(
            number(value) + (DOUBTFUL if doubtful else ""),
            part_of(value, max(numbers)),
            styles[stack].colour,
            best=value == best and not doubtful and len(numbers) > 1,
            doubtful=doubtful,
        )
        for stack, (value, doubtful) in values.items()
    }
    return title, f"{unit} {_WAYS.get(better, '')}", cells


def part_of(value: float, longest: float) -> float:
    """Return how long the bar of a value is beside the longest, none below zero."""
    return round(max(0.0, value) / longest, 4) if longest > 0 else 0.0


# --- tables -----------------------------------------------------------------------------------


def _case_view(anchor: str, case: Case) -> dict[str, Any]:
    shared = _shared(case.figures)
    counts = Counter(one for figure in case.figures for one in _sentences(figure))
    repeated = {sentence: n for sentence, n in counts.items() if n >= _SHARED_FROM}
    origins = dict.fromkeys(
        str(origin) for figure in case.figures if (origin := _fact(figure, "origin"))
    )
    rows = [_row(figure, shared, repeated) for figure in case.figures]
    return {
        "case": case,
        "anchor": anchor,
        "verdict": None if case.state is CaseState.NOT_AVAILABLE else worst(verdicts([case])),
        "counts": _counts([case]),
        "conditions": _conditions(case.conditions),
        "shared": _conditions(shared),
        "rows": rows,
        "has": {name for row in rows for name, value in row.items() if value},
        "repeated": [
            *(
                ("all figures" if n == len(rows) else f"{n} of {len(rows)} figures", sentence)
                for sentence, n in repeated.items()
            ),
            *(("references", origin) for origin in list(origins)[:_ORIGINS_SHOWN]),
        ],
        "groups": list(map(_group_row, case.groups)),
        "doubts": doubt_lines([case]),
    }


def _set_row(one: ComparedSet) -> tuple[str, str, int, str, str, str, bool]:
    """Return level, name and number of figures, change, interval and bound, and whether slower."""
    by, low, high, bound = (
        f"{100 * math.expm1(x):+.1f} %" for x in (one.by, one.at_least, one.at_most, one.bound)
    )
    return one.level, one.name, one.figures, by, f"{low} to {high}", bound, one.is_slower


def _group_row(group: Group) -> tuple[str, str, str, Judgement]:
    """Return the name of a group, by how much it is slower, beyond what it is worse, judgement."""
    slower = "" if group.worse_by is None else f"{100 * math.expm1(group.worse_by):+.1f} %"
    bound = "" if math.isinf(group.threshold) else f"{100 * math.expm1(group.threshold):.1f} %"
    return group_name(group), slower, bound, group.judgement


def _shared(figures: Sequence[Figure]) -> Conditions:
    if not figures:
        return {}
    first = figures[0].conditions
    return {
        key: value
        for key, value in first.items()
        if all(key in f.conditions and f.conditions[key] == value for f in figures)
    }


def _row(figure: Figure, shared: Conditions, repeated: Collection[str]) -> dict[str, Any]:
    own = {key: value for key, value in figure.conditions.items() if key not in shared}
    size = str(own.pop("bytes", ""))
    reference, estimate = _fact(figure, "reference"), figure.estimate
    row = {
        "figure": figure,
        "size": size,
        "conditions": _conditions(own),
        "sentence": "; ".join(one for one in _sentences(figure) if one not in repeated),
        "codes": summary.codes_of(figure.judgement.reasons),
    }
    if isinstance(reference, float | int):
        row["reference"] = number(reference)
        if estimate and reference:
            row["against"] = summary.compared(estimate.value, reference, figure.better)
    if estimate and estimate.low is not None and estimate.high is not None:
        row["interval"] = f"{number(estimate.low)} to {number(estimate.high)}"
        row["launches"] = f"{estimate.confidence:.0%}, launches: {estimate.samples}"
    return row


def _fact(figure: Figure, name: str) -> object:
    facts = (reason.facts.get(name) for reason in figure.judgement.reasons)
    return next((fact for fact in facts if fact is not None), None)


def _sentences(figure: Figure) -> list[str]:
    reasons = figure.judgement.reasons
    sentences = (one.remedy if one.code in _IN_COLUMNS else str(one) for one in reasons)
    return [sentence for sentence in sentences if sentence]


def _conditions(conditions: Conditions) -> str:
    words = {True: "yes", False: "no"}
    return ", ".join(
        f"{key} {words[value] if isinstance(value, bool) else condition_text(value)}"
        for key, value in conditions.items()
        if value != ""
    )
