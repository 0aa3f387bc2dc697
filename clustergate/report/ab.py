"""A against B for the terminal and as one HTML file that opens offline. Pure."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.model import Better, CaseRecord
from clustergate.core.notation import counted, interval
from clustergate.judge.assembly import removed_variables
from clustergate.report import console, page, plots
from clustergate.report.page import BETTER, LOGARITHMIC, Plot, Sketch
from clustergate.report.summary import Cause, FirstScreen
from clustergate.stats.comparison import Comparison, Relation
from clustergate.studies.ab import wording
from clustergate.studies.ab.comparisons import count_verdicts
from clustergate.studies.ab.results import (
    Compared,
    Curve,
    Level,
    Result,
    absences,
    ahead_so_far,
    gain_of,
)

_SIGNS = {
    Relation.A_BETTER: "A",
    Relation.B_BETTER: "B",
    Relation.EQUIVALENT: "=",
    Relation.INCONCLUSIVE: "?",
}
# The classes of the report's style sheet: colours for both winners, for doubt, and for neither.
_CLASSES = {
    Relation.A_BETTER: "a_better",
    Relation.B_BETTER: "b_better",
    Relation.EQUIVALENT: "equal",
    Relation.INCONCLUSIVE: "inconclusive",
}
# A banner in the colour of the winner's curves.
_LOOKS = {"A IS AHEAD": "a_better", "B IS AHEAD": "b_better"}
_STYLES = {Relation.A_BETTER: "cyan", Relation.B_BETTER: "yellow", Relation.INCONCLUSIVE: "dim"}


def legend(result: Result) -> str:
    """Return what the signs of the tables mean."""
    return (
        f"A: {result.a}; B: {result.b}. A or B: better by that factor; =: equivalent within "
        f"{100 * result.margin:g} %; ?: inconclusive, so far better by that factor"
    )


def promise(result: Result) -> str:
    """Return how often the verdicts may be wrong."""
    return (
        f'chance of any false "better" in this comparison: at most {100 * result.family_error:g} %'
    )


EXIT_MEANINGS = {
    0: "both were compared",
    2: "a launch failed or was not proven, or every figure is inconclusive",
}


def exit_status(result: Result, failures: Sequence[str] = ()) -> int:
    """Return the exit status of a comparison; ``failures`` say what of it does not count."""
    undecided = result.count(Relation.INCONCLUSIVE) == len(result.figures)
    return 2 if failures or undecided else 0


def first_screen(result: Result, failures: Sequence[str] = ()) -> FirstScreen:
    status, word = exit_status(result, failures), wording.word(result)
    causes = [Cause("invalid", "does not count", "", each, each) for each in failures]
    if disturbed := sum(result.disturbed):
        disturbed_rounds = (
            f"{disturbed} of {counted(sum(result.rounds), 'round')} ({result.disturbance})"
        )
        more = "; they count, but idle nodes would need fewer rounds"
        causes.append(
            Cause("inconclusive", "disturbed", "", disturbed_rounds + more, disturbed_rounds)
        )
    return FirstScreen(
        "inconclusive" if status else _LOOKS.get(word, "no_reference"),
        word,
        wording.paragraph(result),
        causes,
        wording.next_steps(result),
        [("clustergate ab", status, EXIT_MEANINGS[status])],
    )


def render(
    result: Result,
    notes: Sequence[str],
    failures: Sequence[str] = (),
    *,
    width: int,
    on_terminal: bool = False,
    invocation: Invocation = NO_CALL,
) -> str:
    """Return the comparison as text: what is said first, then a table for each layout.

    On a terminal it has colours, and its sentences wrap; elsewhere each is one line, for grep.
    """
    stream = io.StringIO()
    out = console.new_console(width, stream, colour=on_terminal)
    first = first_screen(result, failures).lines()
    console.write_lines(out, map(invocation.completed, ["", *first]), wraps=on_terminal)
    for layout in dict.fromkeys(curve.layout for curve in result.curves):
        out.print()
        out.print(Text(layout))
        for table in _tables([c for c in result.curves if c.layout == layout], width):
            out.print(table)
    for title, lines in (
        ("Crossovers:", wording.crossover_lines(result)),
        ("Dips:", wording.dip_lines(result)),
    ):
        if lines:
            out.print(Text(title))
            for line in lines:
                out.print(Text(f"  {line}"), soft_wrap=True)
    if result.figures:
        out.print(Text(legend(result)), soft_wrap=True)
    for line in [*notes, _rounds(result), promise(result)]:
        out.print(Text(invocation.completed(line)), soft_wrap=True)
    summary = count_verdicts([figure.comparison.verdict.value for figure in result.figures])
    out.print(Text(f"clustergate ab: {summary or 'nothing was measured by both'}"))
    return stream.getvalue()


def _rounds(result: Result) -> str:
    rounds = ", ".join(map(str, dict.fromkeys(result.rounds))) or "0"
    return f"rounds: {rounds}, all counted, disturbed ones too"


def _tables(curves: Sequence[Curve], width: int) -> Iterator[Table]:
    """Yield tables of sizes and benchmarks, as many columns at a time as there is room for."""
    cell, first = 12, 10
    fitting = max(1, (width - first) // cell)
    for start in range(0, len(curves), fitting):
        part = curves[start : start + fitting]
        sizes = sorted(
            {f.size for curve in part for f in curve.figures}, key=lambda s: (s is None, s or 0)
        )
        rows: list[list[str | Text]] = [
            ["-" if size is None else wording.size(size), *(_cell(curve, size) for curve in part)]
            for size in sizes
        ]
        columns = ["size", *(curve.benchmark for curve in part)]
        yield console.table(columns, rows, range(len(columns)))


def _cell(curve: Curve, size: int | None) -> Text:
    for figure in curve.figures:
        if figure.size == size:
            verdict = figure.comparison.verdict
            return Text(_short(figure), style=_STYLES.get(verdict, ""))
    return Text("")


def _short(figure: Compared) -> str:
    sign, gain = _SIGNS[figure.comparison.verdict], gain_of(figure)
    if gain is None:
        return sign
    # Who is ahead of whom by nothing is not said.
    ahead = "" if sign in "AB" or f"{gain:.2f}" == "1.00" else ahead_so_far(figure)
    return " ".join(filter(None, [sign, ahead, f"{gain:.2f}"]))


# --- HTML -------------------------------------------------------------------------------------


def render_html(
    result: Result,
    *,
    title: str,
    notes: Sequence[str],
    commands: Mapping[str, str],
    who: Sequence[str] = (),
    failures: Sequence[str] = (),
    invocation: Invocation = NO_CALL,
) -> str:
    """Return the comparison as one self-contained page; ``commands`` repeat it by hand.

    ``who`` took part is said on the first screen.
    """
    names = (f"A: {result.a}", f"B: {result.b}")
    styles = dict(zip(names, plots.styles(2), strict=True))
    return page.render(
        "ab.html.j2",
        scripted=True,
        invocation=invocation,
        result=result,
        title=title,
        first=first_screen(result, failures),
        who=who,
        crossovers=wording.crossover_lines(result),
        dips=wording.dip_lines(result),
        lines_of_both=[(name, plots.legend(style)) for name, style in styles.items()],
        layouts=_layouts(result, styles),
        lines=[_line(figure) for figure in result.figures],
        notes=[*notes, _rounds(result), promise(result)],
        commands=commands,
    )


def _layouts(
    result: Result, styles: Mapping[str, plots.Style]
) -> list[tuple[str, list[Plot], list[Plot]]]:
    """Return for each layout its title, the curves of both, and their ratios."""
    layouts = []
    for layout in dict.fromkeys(curve.layout for curve in result.curves):
        shown = [c for c in result.curves if c.layout == layout and len(c.figures) > 1]
        if shown:
            both = page.drawn([_both(curve, styles) for curve in shown])
            layouts.append((layout, both, page.drawn(list(map(_ratio, shown)))))
    return layouts


def _both(curve: Curve, styles: Mapping[str, plots.Style]) -> Sketch:
    metric = curve.metric
    remark = f"{metric.name}, {BETTER.get(metric.better, '')}"
    lines = [
        plots.Curve(name, style, _points(curve, side), band=True)
        for (name, style), side in zip(styles.items(), "ab", strict=True)
    ]
    described = f"{curve.benchmark}, {curve.layout}, {remark}"
    logarithmic = metric.unit in LOGARITHMIC
    return Sketch(curve.benchmark, remark, described, metric.unit, lines, logarithmic)


def _points(curve: Curve, side: str) -> list[plots.Point]:
    points = []
    for figure in curve.figures:
        level: Level | None = getattr(figure, side)
        if level is not None and figure.size is not None:
            points.append(plots.Point(figure.size, level.value, level.low, level.high))
    return points


def _ratio(curve: Curve) -> Sketch:
    points = [
        # What is not decided is hollow.
        plots.Point(
            figure.size, c.ratio, c.low, c.high, doubtful=c.verdict is Relation.INCONCLUSIVE
        )
        for figure in curve.figures
        for c in [figure.comparison]
        if c.ratio is not None and figure.size is not None
    ]
    one = [plots.Point(point.size, 1.0) for point in points]
    lines = [
        plots.Curve("B/A", plots.styles(2)[1], points, band=True),
        plots.Curve("1", plots.LEVEL, one),
    ]
    where = {Better.LOWER: "; B is better below 1", Better.HIGHER: "; B is better above 1"}
    remark = f"{curve.metric.name}{where.get(curve.metric.better, '')}"
    described = f"{curve.benchmark}, {curve.layout}: ratio B/A"
    return Sketch(curve.benchmark, remark, described, "B/A", lines, logarithmic=True)


def _line(figure: Compared) -> dict[str, Any]:
    c = figure.comparison
    more = f"{c.further_launches} more rounds" if c.further_launches else ""
    return {
        "figure": figure,
        "css": _CLASSES[c.verdict],
        "interval": _interval(c),
        "more": "; ".join(filter(None, [more, c.remark])),
    }


def _interval(c: Comparison) -> str:
    """Return the interval of a ratio with its confidence."""
    ends = interval(c.low, c.high, between=" … ")
    return f"{ends} ({100 * c.confidence:.4g} %)" if ends else ""


def contenders_of(records: Sequence[CaseRecord]) -> list[str]:
    """Return who took part: stack, MPI library, build and nodes of each contender."""
    identities = {}
    for record in records:
        side = str(record.details.get("contender"))
        mpi, key = record.details.get("mpi"), record.details.get("build_key")
        proven: Any = record.details.get("proof") or {}
        hosts = ", ".join(proven.get("hosts", ())) or "no node"
        identities[side] = f"{side}: {record.stack}, {mpi}, build {key}, on {hosts}"
    return [identities[side] for side in sorted(identities)]


def notes_of(records: Sequence[CaseRecord]) -> list[str]:
    """Return what is to be known of a comparison: what was left out, and how it was launched."""
    noted = [note for record in records for note in record.notes]
    return [*absences(records), *dict.fromkeys([*removed_variables(records), *noted])]


def commands_of(records: Sequence[CaseRecord]) -> dict[str, str]:
    """Return the lines that repeat each contender's figures by hand, by their titles."""
    commands = {}
    for r in records:
        if r.command:
            ranks = r.conditions.get("ranks")
            commands[f"{r.details['contender']}: {r.stack}, {r.check}, {ranks} ranks"] = r.command
    return commands
