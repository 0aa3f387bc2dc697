"""One HTML file that says everything of a run and opens without a network.

Pure: a :class:`~clustergate.model.Run` goes in, the text of the page comes out, the same for the
same run. Whatever comes from an output, a host or a setting passes :func:`printable` and the
escaping of Jinja; should either fail, the page's content security policy runs no script but ours.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from clustergate.benchmarks.descriptor import Benchmark
from clustergate.benchmarks.registry import known_of
from clustergate.model import (
    Better,
    Case,
    CaseState,
    Conditions,
    Figure,
    Group,
    Judgement,
    Run,
    Verdict,
)
from clustergate.report import plots
from clustergate.report.terminal import EXIT_MEANINGS, WRONG, wrong_in
from clustergate.report.trends import COLUMNS as TREND_COLUMNS
from clustergate.report.trends import SMALLEST_HEIGHT, History
from clustergate.report.trends import cells as trend_cells
from clustergate.report.trends import name as trend_name
from clustergate.verdicts.assembly import verdicts
from clustergate.verdicts.judging import SEVERITY, exit_status, worst
from clustergate.wording.notation import counted, number, printable
from clustergate.wording.texts import (
    DOUBTFUL,
    doubts,
    duration,
    group_name,
    layout,
    nothing_to_compare_with,
    shape,
)

_EFFICIENCY = "efficiency_percent"
# A page of more plots takes a browser too long to open; what is left out stands in the tables.
PLOTS_AT_MOST = 160
TRENDS_AT_MOST = 60
# Cases, and figures of one of them, that stand unfolded where it says what is wrong.
CASES_SHOWN, FIGURES_SHOWN = 12, 4

NO_HISTORY = History()

_GATE_MEANING = "a figure has no reference, or its comparison is inconclusive"
_BROKEN = (CaseState.FAILED, CaseState.MISSING)
# Of the conditions of a figure, what changes along a curve.
_ALONG_A_CURVE = frozenset({"bytes", "repetitions"})
_SECTIONS = {"us": "Time", "MB/s": "Bandwidth", "1/s": "Messages per second", "%": "Overlap"}
# A bandwidth starts from 0: on a logarithmic axis it would tell what the time tells already.
LOGARITHMIC = ("us", "1/s")
BETTER = {Better.LOWER: "lower is better", Better.HIGHER: "higher is better"}


def render_html(run: Run, history: History = NO_HISTORY) -> str:
    """Return the report of a run, and of what came before, as one self-contained HTML page."""
    stacks = _stacks(run.cases)
    styles = dict(zip(stacks, plots.styles(len(stacks)), strict=True))
    judged = verdicts(run.cases)
    environment = page_environment()
    # Not through include: the policy names the script by its hash, to the last byte.
    script = environment.get_template("report.js").render()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        run=run,
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        style=Markup(environment.get_template("report.css").render()),
        verdict=worst(judged),
        sentence=_sentence(run.cases, judged),
        advice=[*run.unjudged, *nothing_to_compare_with(run.cases), *doubts(run.cases)],
        doubtful=DOUBTFUL,
        exits=_exits(judged),
        troubles=_troubles(run.cases),
        cases_shown=CASES_SHOWN,
        figures_shown=FIGURES_SHOWN,
        absences=_absences(run.cases),
        counts=_counts(run.cases),
        states=Counter(case.state for case in run.cases),
        stacks=stacks,
        overview=_overview(run.cases, stacks),
        history=_history(history),
        changes=history.changes,
        trend_columns=TREND_COLUMNS,
        trends_left_out=max(0, len(history.trends) - TRENDS_AT_MOST),
        curves=_curve_groups(run.cases, styles),
        bars=_bars(run.cases, styles),
        rates=_rates(run.cases, styles),
        cases=[_case_view(index, case) for index, case in enumerate(run.cases)],
    )


def page_environment(*packages: str) -> Environment:
    """Return the templates, with everything escaped and printable that is not markup of ours.

    Packages may have templates of their own beside those of this one.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(p) for p in (*packages, "clustergate.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        # Markup is ours, and printable already.
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, duration=duration, shape=shape)
    return environment


# --- verdicts ---------------------------------------------------------------------------------


def _sentence(cases: Sequence[Case], judged: Sequence[Verdict]) -> str:
    """Return the whole run in one sentence: all that is wrong, else what it is known by."""
    wrong = [verdict for verdict in reversed(SEVERITY) if verdict in WRONG and verdict in judged]
    return "; ".join(
        _verdict_sentence(verdict, cases, judged) for verdict in wrong or [worst(judged)]
    )


def _verdict_sentence(verdict: Verdict, cases: Sequence[Case], judged: Sequence[Verdict]) -> str:
    figures = sum(len(case.figures) for case in cases)
    count = judged.count(verdict)
    if verdict is Verdict.INVALID:
        broken = sum(case.state in _BROKEN for case in cases)
        parts = []
        if broken:
            proven = "was" if broken == 1 else "were"
            parts.append(f"{broken} of {len(cases)} cases did not run or {proven} not proven")
        if figures and count > broken:
            parts.append(f"{_some(count - broken, figures, 'was', 'were')} not measured")
        return "; ".join(parts) or "nothing was measured"
    compared = figures + sum(len(case.groups) for case in cases)
    what = "figures" if compared == figures else "figures and groups of them"
    are = _some(count, compared, "is", "are", what)
    have = _some(count, figures, "has", "have")
    exceed = _some(count, compared, "exceeds", "exceed", what)
    return {
        Verdict.PASS: "all figures are as expected",
        Verdict.IMPROVEMENT: f"nothing is worse than its reference, and {are} better",
        Verdict.NO_REFERENCE: f"no fault found, but {have} no reference",
        Verdict.INCONCLUSIVE: f"no fault found, but {are} too noisy for a verdict",
        Verdict.IMPOSSIBLE: f"{exceed} a physical limit",
        Verdict.REGRESSION: f"{are} worse than the reference",
    }[verdict]


def _some(count: int, figures: int, singular: str, plural: str, what: str = "figures") -> str:
    """Return so many of the figures, with their verb."""
    return f"{count} of {figures} {what} {singular if count == 1 else plural}"


def _exits(judged: Sequence[Verdict]) -> list[tuple[str, int, str]]:
    """Return command, exit status and meaning; of the gate only where it says something else."""
    check, gate = exit_status(judged), exit_status(judged, "gate")
    rows = [("clustergate check", check, EXIT_MEANINGS[check])]
    if gate != check:
        rows.append(("clustergate gate", gate, _GATE_MEANING))
    return rows


@dataclass
class _Trouble:
    """What is wrong with a case: ``reason`` is why it does not count, ``wrong`` its wrong figures.

    ``cases`` counts the cases of which exactly the same is to be said.
    """

    case: Case
    anchor: str
    verdict: Verdict
    reason: str
    wrong: Sequence[tuple[str, Judgement]]
    cases: int = 1


def _troubles(cases: Sequence[Case]) -> list[_Trouble]:
    """Return the cases in which something is wrong, the worst first, each with its figures."""
    troubles: dict[object, _Trouble] = {}
    for index, case in enumerate(cases):
        wrong = sorted(wrong_in(case), key=lambda pair: -SEVERITY.index(pair[1].verdict))
        broken = case.state in _BROKEN
        if not wrong and not broken:
            continue
        alike = index if wrong else (case.check, case.stack, shape(case), case.state, case.reason)
        if alike in troubles:
            troubles[alike].cases += 1
            continue
        verdicts_here = [judgement.verdict for _, judgement in wrong]
        troubles[alike] = _Trouble(
            case=case,
            anchor=_anchor(index),
            verdict=worst(verdicts_here + [Verdict.INVALID] * broken),
            reason=case.reason if broken else "",
            wrong=wrong,
        )
    return sorted(troubles.values(), key=lambda trouble: -SEVERITY.index(trouble.verdict))


def _anchor(index: int) -> str:
    return f"case-{index + 1}"


def _absences(cases: Iterable[Case]) -> list[tuple[str, str, list[str]]]:
    """Return what is not available as (check, reason, stacks)."""
    absent: dict[tuple[str, str], dict[str, None]] = {}
    for case in cases:
        if case.state is CaseState.NOT_AVAILABLE:
            absent.setdefault((case.check, case.reason), {})[case.stack] = None
    return [(check, reason, list(stacks)) for (check, reason), stacks in absent.items()]


def _counts(cases: Iterable[Case]) -> list[tuple[Verdict, int]]:
    """Return how many figures have each verdict, the worst verdict first."""
    counts = Counter(figure.judgement.verdict for case in cases for figure in case.figures)
    return [(verdict, counts[verdict]) for verdict in reversed(SEVERITY) if counts[verdict]]


@dataclass(frozen=True)
class _Cell:
    """A check under a stack: its worst verdict, None where nothing ran, and where to read on."""

    verdict: Verdict | None
    lines: Sequence[str]
    anchor: str


def _overview(cases: Sequence[Case], stacks: Sequence[str]) -> list[tuple[str, list[_Cell | None]]]:
    checks = list(dict.fromkeys(case.check for case in cases))
    return [(check, [_cell(cases, check, stack) for stack in stacks]) for check in checks]


def _cell(cases: Sequence[Case], check: str, stack: str) -> _Cell | None:
    here = [
        (index, case)
        for index, case in enumerate(cases)
        if (case.check, case.stack) == (check, stack)
    ]
    if not here:
        return None
    states = Counter(case.state for _, case in here)
    judged = (
        [] if set(states) == {CaseState.NOT_AVAILABLE} else verdicts([case for _, case in here])
    )
    lines = [f"{verdict.value}: {count}" for verdict, count in _counts(case for _, case in here)]
    lines += [
        f"{state.value}: {counted(count, 'case')}"
        for state, count in states.items()
        if state is not CaseState.RAN
    ]
    return _Cell(worst(judged) if judged else None, lines, _anchor(here[0][0]))


# --- curves -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plot:
    """One drawing and what stands above it, the ``remark`` smaller."""

    caption: str
    svg: Markup
    remark: str = ""


@dataclass
class _PlotGroup:
    """Plots of cases that can be compared with each other, in titled sections.

    ``left_out`` counts the plots that were not drawn, ``opened`` tells whether it starts unfolded.
    """

    title: str
    details: str
    legend: Sequence[tuple[str, Markup]]
    opened: bool = True
    sections: dict[str, list[Plot]] = field(default_factory=dict)
    left_out: int = 0


@dataclass(frozen=True)
class _Panel:
    """What one plot of curves shows: a metric of a benchmark under conditions."""

    benchmark: str
    metric: str
    unit: str
    better: Better
    conditions: frozenset[tuple[str, str]]


def _curve_groups(cases: Sequence[Case], styles: Mapping[str, plots.Style]) -> list[_PlotGroup]:
    """Return the curves over message sizes, one group for each check and layout of ranks."""
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
    groups: list[_PlotGroup] = []
    drawn = 0
    for index, (place, _, alike, panels) in enumerate(ordered):
        legend = _legend(alike, styles, f"curve-line-{index}")
        group = _group_of(alike[0], legend, opened=place == 0)
        remarks = _remarks(panels)
        shown = list(panels.items())[: PLOTS_AT_MOST - drawn]
        for number_on_page, (panel, lines) in enumerate(shown, drawn):
            plot = _curves(panel, lines, remarks[panel], styles, f"curve-{number_on_page}")
            group.sections.setdefault(_section(panel), []).append(plot)
        group.left_out = len(panels) - len(shown)
        drawn += len(shown)
        groups.append(group)
    return groups


def _section(panel: _Panel) -> str:
    title = _SECTIONS.get(panel.unit, panel.metric)
    better = BETTER.get(panel.better, "no better or worse")
    return f"{title} over message size, in {panel.unit}; {better}"


def _curves(
    panel: _Panel,
    lines: Sequence[tuple[str, Sequence[plots.Point]]],
    remark: str,
    styles: Mapping[str, plots.Style],
    name: str,
) -> Plot:
    drawn = plots.curves(
        [plots.Curve(styles[stack], points) for stack, points in lines],
        unit=panel.unit,
        logarithmic=panel.unit in LOGARITHMIC,
        name=name,
        description=f"{panel.benchmark}, {remark}: {_section(panel)}",
    )
    return Plot(panel.benchmark, Markup(drawn), remark)


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


def _group_of(case: Case, legend: Sequence[tuple[str, Markup]], *, opened: bool) -> _PlotGroup:
    title = ": ".join(word for word in (case.check, shape(case)) if word)
    return _PlotGroup(title, _conditions(layout(case)), legend, opened)


def _legend(
    cases: Iterable[Case], styles: Mapping[str, plots.Style], name: str
) -> list[tuple[str, Markup]]:
    """Return the stacks of some cases, each with a piece of its line, named for this one place."""
    return [
        (stack, Markup(plots.legend(styles[stack], name=f"{name}-{index}")))
        for index, stack in enumerate(_stacks(cases))
    ]


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
            point = plots.Point(size, estimate.value, estimate.low, estimate.high)
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


def _history(history: History) -> list[tuple[str, list[tuple[str, Markup, Sequence[str]]]]]:
    """Return the trends of each case as (name, line, numbers)."""
    by_case: dict[str, list[tuple[str, Markup, Sequence[str]]]] = {}
    for index, trend in enumerate(history.trends[:TRENDS_AT_MOST]):
        started = [moment.started for moment in trend.moments]
        drawn = plots.line(
            [-moment.level for moment in trend.moments],
            [started.index(shift.since.started) for shift in trend.shifts],
            least=SMALLEST_HEIGHT,
            name=f"trend-{index}",
            description=f"{trend_name(trend)} over {len(started)} runs, higher is faster",
        )
        row = (trend_name(trend), Markup(drawn), trend_cells(trend))
        by_case.setdefault(str(trend.case), []).append(row)
    return list(by_case.items())


# --- bars -------------------------------------------------------------------------------------


def _by_benchmark(cases: Iterable[Case]) -> dict[str, list[Case]]:
    by_name: dict[str, list[Case]] = {}
    for case in cases:
        by_name.setdefault(known_of(case.check).name, []).append(case)
    return by_name


def _bars(
    cases: Sequence[Case], styles: Mapping[str, plots.Style]
) -> list[tuple[Benchmark, list[_PlotGroup]]]:
    """Return the figures of benchmarks that have families, each in relation to the best stack."""
    of_each = _by_benchmark(case for case in cases if case.figures)
    return [
        (
            one,
            [_families(one, *pair, styles) for pair in enumerate(_comparable(own).values())],
        )
        for name, own in of_each.items()
        if (one := known_of(own[0].check)).families
    ]


def _families(
    benchmark: Benchmark,
    position: int,
    alike: Sequence[Case],
    styles: Mapping[str, plots.Style],
) -> _PlotGroup:
    legend = _legend(alike, styles, f"{benchmark.name}-line-{position}")
    group = _group_of(alike[0], legend, opened=position == 0)
    families: dict[str, list[plots.BarGroup]] = {family: [] for family in benchmark.families}
    compared = _compared((case.stack, case.figures) for case in alike)
    for (name, metric, unit, better), bars in compared.items():
        if better is Better.NEITHER:
            continue
        subject = metric if metric == name else f"{name} {metric}"
        title = f"{subject}, {unit}, {BETTER[better].removesuffix(' is better')}"
        families[_family(metric, benchmark.families)].append(
            plots.BarGroup(title, _relative_bars(bars, better, styles))
        )
    for index, (family, groups) in enumerate(
        (f, groups) for f, groups in families.items() if groups
    ):
        drawn = plots.bars(
            groups,
            name=f"{benchmark.name}-{position}-{index}",
            description=f"{benchmark.title}: {family}",
        )
        group.sections.setdefault("", []).append(Plot(family, Markup(drawn)))
    return group


_Comparison = tuple[str, str, str, Better]


def _compared(
    cases: Iterable[tuple[str, Sequence[Figure]]],
) -> dict[_Comparison, list[tuple[str, float]]]:
    """Return (stack, value) of each figure that is a number, of several in a case the best.

    HPL has several figures of one kind when its input names several sizes or grids.
    """
    compared: dict[_Comparison, list[tuple[str, float]]] = {}
    for stack, figures in cases:
        values: dict[_Comparison, list[float]] = {}
        for figure in figures:
            if figure.estimate is not None and math.isfinite(figure.estimate.value):
                key = (figure.benchmark, figure.metric, figure.unit, figure.better)
                values.setdefault(key, []).append(figure.estimate.value)
        for key, several in values.items():
            best = min(several) if key[-1] is Better.LOWER else max(several)
            compared.setdefault(key, []).append((stack, best))
    return compared


def _family(metric: str, families: Mapping[str, Sequence[str]]) -> str:
    fitting = (name for name, parts in families.items() if any(part in metric for part in parts))
    return next(fitting, next(name for name, parts in families.items() if not parts))


def _relative_bars(
    values: Sequence[tuple[str, float]], better: Better, styles: Mapping[str, plots.Style]
) -> list[plots.Bar]:
    """Return a bar for each value; the best is 1 long, one half as good half of that."""
    positive = [value for _, value in values if value > 0]
    best = min(positive, default=1.0) if better is Better.LOWER else max(positive, default=1.0)
    return [
        plots.Bar(stack, _part_of_best(value, best, better), number(value), styles[stack])
        for stack, value in values
    ]


def _part_of_best(value: float, best: float, better: Better) -> float:
    if value <= 0:
        return 0.0
    return best / value if better is Better.LOWER else value / best


@dataclass(frozen=True)
class _Rate:
    """The plots of a rate, and what of its peaks nobody measured."""

    benchmark: Benchmark
    legend: Sequence[tuple[str, Markup]]
    plots: Sequence[Plot]
    without: Sequence[str]


def _rates(cases: Sequence[Case], styles: Mapping[str, plots.Style]) -> list[_Rate]:
    """Return the rates of benchmarks that have one under each stack, and their efficiencies."""
    drawn = (_rate(known_of(own[0].check), own, styles) for own in _by_benchmark(cases).values())
    return [rate for rate in drawn if rate]


def _rate(
    benchmark: Benchmark, cases: Sequence[Case], styles: Mapping[str, plots.Style]
) -> _Rate | None:
    if benchmark.rate is None:
        return None
    peaks, name, title = benchmark.rate.against, benchmark.name, benchmark.title
    rates, efficiencies = [], []
    measured: set[str] = set()
    for alike in _comparable(cases).values():
        where = shape(alike[0])
        for (_, _, unit, better), values in _compared(
            (case.stack, _of(case, benchmark.rate.metric)) for case in alike
        ).items():
            label = ", ".join(word for word in (title, where, unit) if word)
            rates.append(plots.BarGroup(label, _relative_bars(values, better, styles)))
        for peak, values in _efficiencies(alike, peaks).items():
            measured.add(peak)
            share = f"% of the {peaks.get(peak, peak)}"
            label = ", ".join(word for word in (share, where) if word)
            doubtful = {case.stack for case in alike if _is_doubtful(case, peak)}
            efficiencies.append(plots.BarGroup(label, _percent_bars(values, styles, doubtful)))
    drawings = []
    if rates:
        drawn = plots.bars(rates, name=f"{name}-rate", description=f"{title}: rate of each stack")
        drawings.append(Plot("Rate", Markup(drawn), "the best stack is as long as the line"))
    if efficiencies:
        drawn = plots.bars(
            efficiencies,
            name=f"{name}-efficiency",
            description=f"{title}: efficiency of each stack",
            full=max(1.0, *[bar.length for group in efficiencies for bar in group.bars]),
        )
        drawings.append(Plot("Efficiency", Markup(drawn), "the line is 100 %"))
    without = [label for peak, label in peaks.items() if peak not in measured]
    legend = _legend((case for case in cases if case.figures), styles, f"{name}-line")
    return _Rate(benchmark, legend, drawings, without) if drawings else None


def _of(case: Case, metric: str) -> list[Figure]:
    return [figure for figure in case.figures if figure.metric == metric]


def _efficiencies(
    cases: Sequence[Case], known: Iterable[str]
) -> dict[str, list[tuple[str, float]]]:
    """Return (stack, percent) by the peak that a rate is told against, the known ones first."""
    by_stack = [(case.stack, _of(case, _EFFICIENCY)) for case in cases]
    by_peak: dict[str, list[tuple[str, float]]] = {}
    for peak in dict.fromkeys([*known, *(_peak(f) for _, figures in by_stack for f in figures)]):
        compared = _compared((stack, [f for f in fs if _peak(f) == peak]) for stack, fs in by_stack)
        for values in compared.values():
            by_peak[peak] = values
    return by_peak


def _is_doubtful(case: Case, peak: str) -> bool:
    return any(figure.doubt for figure in _of(case, _EFFICIENCY) if _peak(figure) == peak)


def _peak(figure: Figure) -> str:
    return str(figure.conditions.get("against", "peak"))


def _percent_bars(
    values: Sequence[tuple[str, float]],
    styles: Mapping[str, plots.Style],
    doubtful: Collection[str],
) -> list[plots.Bar]:
    marks = dict.fromkeys(doubtful, DOUBTFUL)
    return [
        plots.Bar(
            stack, max(0.0, value) / 100, f"{number(value)}{marks.get(stack, '')} %", styles[stack]
        )
        for stack, value in values
    ]


# --- tables -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A figure as a row of a table: ``conditions`` are those that its neighbours do not share."""

    figure: Figure
    size: str
    conditions: str
    interval: str
    launches: str


@dataclass(frozen=True)
class _CaseView:
    """A case with everything that the page says of it."""

    case: Case
    anchor: str
    verdict: Verdict | None
    counts: Sequence[tuple[Verdict, int]]
    conditions: str
    shared: str
    sized: bool
    with_intervals: bool
    rows: Sequence[_Row]
    groups: Sequence[tuple[str, str, str, Judgement]]
    doubts: Sequence[str]


def _case_view(index: int, case: Case) -> _CaseView:
    shared = _shared(case.figures)
    rows = [_row(figure, shared) for figure in case.figures]
    return _CaseView(
        case=case,
        anchor=_anchor(index),
        verdict=None if case.state is CaseState.NOT_AVAILABLE else worst(verdicts([case])),
        counts=_counts([case]),
        conditions=_conditions(case.conditions),
        shared=_conditions(shared),
        sized=any(row.size for row in rows),
        with_intervals=any(row.interval for row in rows),
        rows=rows,
        groups=[_group_row(group) for group in case.groups],
        doubts=doubts([case]),
    )


def _group_row(group: Group) -> tuple[str, str, str, Judgement]:
    """Return the name of a group, by how much it is slower, what it could have seen, judgement."""
    slower = "" if group.worse_by is None else f"{100 * math.expm1(group.worse_by):+.1f} %"
    seen = "" if math.isinf(group.threshold) else f"{100 * math.expm1(group.threshold):.1f} %"
    return group_name(group), slower, seen, group.judgement


def _shared(figures: Sequence[Figure]) -> Conditions:
    """Return the conditions that all figures of a case have in common."""
    if not figures:
        return {}
    first = figures[0].conditions
    return {
        key: value
        for key, value in first.items()
        if all(key in f.conditions and f.conditions[key] == value for f in figures)
    }


def _row(figure: Figure, shared: Conditions) -> _Row:
    own = {key: value for key, value in figure.conditions.items() if key not in shared}
    size = own.pop("bytes", "")
    return _Row(figure, str(size), _conditions(own), *_interval(figure))


def _interval(figure: Figure) -> tuple[str, str]:
    """Return the interval of a figure and what it rests on, both empty where it has none."""
    estimate = figure.estimate
    if estimate is None or estimate.low is None or estimate.high is None:
        return "", ""
    interval = f"{number(estimate.low)} to {number(estimate.high)}"
    return interval, f"{estimate.confidence:.0%}, launches: {estimate.samples}"


def _conditions(conditions: Conditions) -> str:
    """Return conditions in one line; an empty one says nothing."""
    words = {True: "yes", False: "no"}
    return ", ".join(
        f"{key} {words[value] if isinstance(value, bool) else value}"
        for key, value in conditions.items()
        if value != ""
    )
