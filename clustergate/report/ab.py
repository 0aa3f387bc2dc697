"""The first screen of A against B, and one HTML file that opens offline. Pure.

At most 20 lines; a sentence takes two at most. The rest is on the page.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.model import Better, CaseRecord, Verdict
from clustergate.core.notation import counted, interval, rounded
from clustergate.core.texts import duration
from clustergate.judge.assembly import removed_variables
from clustergate.report import console, page, plots
from clustergate.report.answer import BAD, GOOD, OPEN, Answer, briefly
from clustergate.report.page import BETTER, LOGARITHMIC, Sketch
from clustergate.report.summary import BUSY, Cause, FirstScreen
from clustergate.stats.comparison import Comparison, Relation
from clustergate.studies.ab import advice
from clustergate.studies.ab.advice import Advice, bound_of, factor
from clustergate.studies.ab.results import (
    Compared,
    Contested,
    Curve,
    Result,
    Standings,
    absences,
    ranked,
)

# The classes of the report's style sheet: colours for both winners, for doubt, and for neither.
_CLASSES = {
    Relation.A_BETTER: "a_better",
    Relation.B_BETTER: "b_better",
    Relation.EQUIVALENT: "equal",
    Relation.INCONCLUSIVE: "inconclusive",
}
_LOOKS = {GOOD: "pass", OPEN: "inconclusive", BAD: "invalid"}
_ROWS_SHOWN, _CURVES_SHOWN, _LINES = 6, 3, 20
# Of a curve these message sizes stand for the others, in bytes: the first and the last where few
# rows are for it.
_SIZES_SHOWN = (8, 16 << 10, 1 << 20)
EXIT_MEANINGS = {
    0: "the contenders were compared",
    2: "failed, not proven, or nothing decided",
}


def exit_status(of: Standings, failures: Sequence[str] = ()) -> int:
    """Return the exit status of a comparison; ``failures`` say what of it does not count."""
    undecided = of.count(Relation.INCONCLUSIVE) == len(of.figures)
    return 2 if failures or undecided else 0


def answer_of(of: Standings, said: Advice, failures: Sequence[str] = ()) -> Answer:
    """Return the answer of a comparison: ``GOOD`` only if its exit status is 0."""
    if failures:
        return Answer(BAD, "NOT ALL COMPARED", f"{briefly(failures[0])}.", Verdict.INVALID)
    decided = said.word in (advice.DECIDED, advice.DEPENDS, advice.EQUAL)
    mark = GOOD if decided and not exit_status(of) else OPEN
    return Answer(mark, said.word, said.sentence, Verdict.INCONCLUSIVE)


def render(
    of: Standings,
    said: Advice,
    run_id: str,
    failures: Sequence[str] = (),
    *,
    width: int,
    wraps: bool = False,
    colour: bool = False,
    invocation: Invocation = NO_CALL,
) -> str:
    """Return the first screen as text; a sentence stays on one line, for grep, unless it wraps."""
    stream = io.StringIO()
    out = console.new_console(width, stream, colour=colour)

    def write(lines: Sequence[str], at_most: int | None = 2) -> None:
        console.write_lines(out, map(invocation.completed, lines), wraps=wraps, at_most=at_most)

    write(["", _head(of), f" {answer_of(of, said, failures)}"])
    several = len({one.layout for one in of.contested}) > 1
    if rows := [_cells(of, one, several=several) for one in _shown(of.curves)]:
        columns, contenders = ["", "", *of.names, "faster"], range(2, 2 + len(of.names))
        # Who is faster stays, and the first.
        spare = contenders[:0:-1]
        table, left_out = console.table_within(width, columns, rows, contenders, spare)
        out.print(table)
        write([f"   {counted(left_out, 'more column')} on the page"] * bool(left_out))
    causes = [f" ! {cause}" for cause in _causes(of, failures[1:2])]
    causes += [f" ! {len(failures) - 2} more on the page"] * (len(failures) > 2)
    status, steps = exit_status(of, failures), [*said.next_steps, ""]
    why, _, command = invocation.completed(steps[0]).partition("`")
    below = [
        *[f" Next  {why}{'  ' * bool(command)}{command.strip('`')}"] * bool(why),
        f" Page  {invocation.completed(f'`clustergate open {run_id}`').strip('`')}",
        f"clustergate ab: exit status {status}: {EXIT_MEANINGS[status]}",
    ]
    lines = [f"   {line}" for line in [*[said.sentence] * bool(failures), *said.lines]]
    taken = stream.getvalue().count("\n") + len(causes) + len(below) + 2
    room = taken + sum(1 + (len(line) > width) for line in lines) <= _LINES
    write(lines, 2 if room else 1)
    write(causes)
    write(below, None)
    return re.sub(r" +(?=\n)", "", stream.getvalue())


def _head(of: Standings) -> str:
    results = list(of.pairs.values())
    rounds = sorted({n for one in results for n in one.rounds})
    range_of_rounds = " to ".join(map(str, dict.fromkeys((rounds or [0])[k] for k in (0, -1))))
    seconds = sum(one.round_s * sum(one.rounds) for one in results[:1]) * len(of.names) / 2
    layouts = list(dict.fromkeys(one.layout for one in of.contested))
    where = layouts[0] if len(layouts) == 1 else counted(len(layouts), "layout")
    made = f"{range_of_rounds} round{'s' * (rounds != [1])} in {duration(seconds)}"
    return "   ".join(["clustergate ab", " against ".join(of.names), where, made])


def _causes(of: Standings, failures: Sequence[str] = ()) -> list[Cause]:
    causes = [Cause("invalid", "does not count", "", each, each) for each in failures]
    one = max(of.pairs.values(), key=lambda one: sum(one.disturbed), default=None)
    if one and (disturbed := sum(one.disturbed)):
        rounds = f"{disturbed} of {counted(sum(one.rounds), 'round')} ({one.disturbance})"
        more = "; they count, but idle nodes need fewer"
        causes.append(Cause("inconclusive", BUSY, "", rounds + more, rounds))
    return causes


def _shown(every: Sequence[list[Contested]]) -> list[Contested]:
    """Return the results that stand on the first screen: of few curves, at few sizes each."""
    count = min(len(every), _CURVES_SHOWN)
    shown = []
    for k in range(count):
        curve = every[k * (len(every) - 1) // max(count - 1, 1)]
        room = _ROWS_SHOWN // count
        if len(curve) > room:
            wanted = _SIZES_SHOWN if room >= len(_SIZES_SHOWN) else _SIZES_SHOWN[::2]
            near = (min(curve, key=partial(_distance, at)) for at in wanted)
            curve = list({id(one): one for one in near}.values())
        shown += curve
    return shown


def _distance(at: int, one: Contested) -> int:
    return abs((one.size or 0) - at)


def _cells(of: Standings, one: Contested, *, several: bool) -> list[str]:
    layout = one.layout.replace(" processes", "p").replace(" on 1 node", "")
    name = _title(one) + (f", {layout}" if several else "")
    levels = [one.level(k) for k in range(len(of.names))]
    values = [rounded(level.value) if level else "-" for level in levels]
    return [name, one.metric.unit, *values, faster(of, one)]


def _title(one: Contested) -> str:
    return one.benchmark if one.size is None else f"{one.benchmark} {advice.size(one.size)}"


def faster(of: Standings, one: Contested) -> str:
    """Return which library is faster in a result, how many times, and with what interval."""
    groups = ranked(len(of.names), one.beats)
    first = groups[0]
    if len(of.names) > 2:
        names = " or ".join(of.names[k] for k in first)
        if len(groups) > 1:
            _, gain, _ = one.lead(range(len(of.names)))
            return names if gain is None else f"{names}, {factor(gain)} x the next"
    c = [x.comparison for x in one.pairs.values()]
    if {x.verdict for x in c} == {Relation.EQUIVALENT}:
        return f"equal within {100 * of.margin:g} %"
    if len(first) == 1:
        ratio = c[0].ratio or 1.0
        ends = (c[0].low, c[0].high) if ratio > 1.0 else _inverse(c[0])
        # Of an end at 1 the verdict tells as much.
        low, high = (factor(end) if end and factor(end) != "1.00" else "" for end in ends)
        span = f" ({low} to {high})" if low and high else f" (at least {low})" if low else ""
        return f"{of.names[first[0]]} {factor(max(ratio, 1 / ratio))} x{span}"
    bounds = [bound_of(x) for x in c]
    known = [bound for bound in bounds if bound is not None]
    return f"undecided: < {factor(max(known))} x" if len(known) == len(c) else "undecided"


def _inverse(c: Comparison) -> tuple[float | None, float | None]:
    low, high = (1.0 / end if end else None for end in (c.high, c.low))
    return low, high


# --- HTML -------------------------------------------------------------------------------------


def render_html(
    of: Standings,
    said: Advice,
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
    answer, status = answer_of(of, said, failures), exit_status(of, failures)
    first = FirstScreen(
        _LOOKS[answer.mark],
        answer.word,
        answer.sentence,
        _causes(of, failures[1:]),
        said.next_steps,
        [("clustergate ab", status, EXIT_MEANINGS[status])],
        said.lines,
    )
    styles = plots.styles(len(of.names))
    return page.render(
        "ab.html.j2",
        scripted=True,
        beside="",
        invocation=invocation,
        of=of,
        title=title,
        first=first,
        who=who,
        crossovers=[line for one in of.pairs.values() for line in advice.crossover_lines(one)],
        dips=list(dict.fromkeys(x for one in of.pairs.values() for x in advice.dip_lines(one))),
        legend_of_all=list(zip(of.names, map(plots.legend, styles), strict=True)),
        layouts=_layouts(of, styles),
        tables=[(one, [_line(figure, one) for figure in one.figures]) for one in of.pairs.values()],
        notes=[*notes, _promise(of)],
        commands=commands,
    )


def _promise(of: Standings) -> str:
    """Return how often the verdicts may be wrong."""
    pairs = f", over all {len(of.pairs)} pairs" if len(of.pairs) > 1 else ""
    chance = f"at most {100 * of.family_error:g} %{pairs}"
    return f'every round counts, disturbed ones too; chance of any false "faster": {chance}'


def _layouts(of: Standings, styles: Sequence[plots.Style]) -> list[dict[str, Any]]:
    """Return of each layout which library is faster at which size, the curves, and their ratios."""
    layouts = []
    for layout in dict.fromkeys(one.layout for one in of.contested):
        curves = [curve for curve in of.curves if curve[0].layout == layout]
        sizes = sorted({x.size for c in curves for x in c}, key=lambda n: (n is None, n or 0))
        grid = [
            (
                "-" if size is None else advice.size(size),
                [next((faster(of, x) for x in c if x.size == size), "") for c in curves],
            )
            for size in sizes
        ]
        drawn = [_all(of, c, styles) for c in curves if len(c) > 1]
        # Of more contenders the table says what is decided.
        (only, *others) = of.pairs.values()
        ratios = [c for c in only.curves if c.layout == layout and len(c.figures) > 1]
        layouts.append(
            {
                "name": layout,
                "benchmarks": [c[0].benchmark for c in curves],
                "grid": grid,
                "curves": page.drawn(drawn),
                "ratios": page.drawn([] if others else [_ratio(c, only) for c in ratios]),
            }
        )
    return layouts


def _all(of: Standings, curve: Sequence[Contested], styles: Sequence[plots.Style]) -> Sketch:
    first = curve[0]
    remark = f"{first.metric.name}, {BETTER.get(first.metric.better, '')}"
    lines = [
        plots.Curve(name, style, _points(curve, k), band=True)
        for k, (name, style) in enumerate(zip(of.names, styles, strict=True))
    ]
    described = f"{first.benchmark}, {first.layout}, {remark}"
    logarithmic = first.metric.unit in LOGARITHMIC
    return Sketch(first.benchmark, remark, described, first.metric.unit, lines, logarithmic)


def _points(curve: Sequence[Contested], k: int) -> list[plots.Point]:
    return [
        plots.Point(one.size, level.value, level.low, level.high)
        for one in curve
        if (level := one.level(k)) is not None and one.size is not None
    ]


def _ratio(curve: Curve, of: Result) -> Sketch:
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
    ratio = f"{of.b} / {of.a}"
    lines = [
        plots.Curve(ratio, plots.styles(2)[1], points, band=True),
        plots.Curve("1", plots.LEVEL, one),
    ]
    where = {Better.LOWER: "below", Better.HIGHER: "above"}.get(curve.metric.better)
    remark = curve.metric.name + (f"; {of.b} is better {where} 1" if where else "")
    described = f"{curve.benchmark}, {curve.layout}: ratio {ratio}"
    return Sketch(curve.benchmark, remark, described, ratio, lines, logarithmic=True)


def _line(figure: Compared, of: Result) -> dict[str, Any]:
    c = figure.comparison
    words = {Relation.A_BETTER: f"{of.a} faster", Relation.B_BETTER: f"{of.b} faster"}
    more = f"{c.further_launches} more rounds" if c.further_launches else ""
    names = {"A": of.a, "B": of.b}
    remark = re.sub(r"\b([AB])(?= has no value)", lambda side: names[side[1]], c.remark)
    ends = interval(c.low, c.high, between=" … ")
    return {
        "figure": figure,
        "css": _CLASSES[c.verdict],
        "verdict": words.get(c.verdict, c.verdict.value),
        "interval": f"{ends} ({100 * c.confidence:.4g} %)" if ends else "",
        "more": "; ".join(filter(None, [more, remark])),
    }


def contenders_of(records: Sequence[CaseRecord]) -> list[str]:
    """Return who took part: stack, MPI library, build and nodes of each contender."""
    identities = {}
    for record in records:
        mpi, key = record.details.get("mpi"), record.details.get("build_key")
        proven: Any = record.details.get("proof") or {}
        hosts = ", ".join(proven.get("hosts", ())) or "no node"
        side = str(record.details.get("contender"))
        identities[side] = f"{record.stack}: {mpi}, build {key}, on {hosts}"
    return [identities[side] for side in sorted(identities)]


def notes_of(records: Sequence[CaseRecord]) -> list[str]:
    """Return what is to be known of a comparison: what was left out, and how it was launched."""
    noted = [note for record in records for note in record.notes]
    return [*absences(records), *dict.fromkeys([*removed_variables(records), *noted])]


def commands_of(records: Sequence[CaseRecord]) -> dict[str, str]:
    """Return the lines that repeat each contender's figures by hand, by their titles."""
    commands: dict[str, str] = {}
    for r in records:
        if r.command:
            ranks = r.conditions.get("ranks")
            commands.setdefault(f"{r.stack}, {r.check}, {ranks} ranks", r.command)
    return commands
