"""Which library to take, where another is better, and what would settle the rest. Pure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.registry import every_benchmark
from clustergate.core.model import Better
from clustergate.core.notation import counted, rounded
from clustergate.stats.comparison import Comparison, Relation
from clustergate.stats.rounds import FEWEST
from clustergate.studies.ab.curves import Dip, Lead, SizeVerdict, leads, widest_lead
from clustergate.studies.ab.results import Contested, Result, Standings, beating, ranked

_KIBI = 1024
# Who is better in so many times as many results as another is to be preferred, with exceptions.
_CLEAR = 2.0
# Longer than that nobody is asked to measure, in minutes.
_WORTH_MIN = 15
_RANGES_SHOWN = 3
# In a sentence.
_NAMED = 2
DECIDED, DEPENDS, EQUAL = "DECIDED", "IT DEPENDS", "EQUAL"
SIMILAR, UNDECIDED, NOTHING = "NO DIFFERENCE FOUND", "UNDECIDED", "NOTHING MEASURED"


@dataclass(frozen=True)
class Advice:
    """What to do: a ``word`` in capitals, a ``sentence``, and ``lines`` of where which is better.

    ``next_steps`` are sentences, with a command where it is worth the time.
    """

    word: str
    sentence: str
    lines: Sequence[str] = ()
    next_steps: Sequence[str] = ()

    @property
    def paragraph(self) -> str:
        return " ".join([self.sentence, *self.lines])


def size(count: int) -> str:
    """Return a size in bytes as people say it, such as ``128 KiB``."""
    for unit in ("B", "KiB", "MiB"):
        if count < _KIBI or count % _KIBI:
            return f"{count} {unit}"
        count //= _KIBI
    return f"{count} GiB"


def advice_of(standings: Standings) -> Advice:
    """Return what a person acts on."""
    contested = standings.contested
    if not contested:
        return Advice(
            NOTHING, "Nothing was measured by both.", (), _next_steps(standings, UNDECIDED)
        )
    groups = ranked(len(standings.names), lambda x, y: _is_preferred(standings, x, y))
    word, sentence = _of_first(standings, groups[0])
    several = len(standings.names) > 2 and len(groups) > 1
    ranking = [f"Ranking: {'; '.join(_ranks(standings, groups))}."] if several else []
    # That all are equal is told already.
    of_rest = [] if word == EQUAL else _rest(standings, word)
    lines = [*ranking, *_where_better(standings, contested), *of_rest]
    return Advice(word, sentence, lines, _next_steps(standings, word))


def _is_preferred(of: Standings, x: int, y: int) -> bool:
    wins, losses = _wins(of, x, y), _wins(of, y, x)
    return wins > 0 and wins >= _CLEAR * losses


def _wins(of: Standings, x: int, y: int) -> int:
    """Return in how many results one is better than another."""
    pair, wins = beating(x, y)
    figures = of.pairs[pair].figures if pair in of.pairs else ()
    return sum(one.comparison.verdict is wins for one in figures)


def _of_first(of: Standings, group: Sequence[int]) -> tuple[str, str]:
    """Return the word and the sentence of those that stand before all others."""
    # Of one that stands alone, all of its comparisons, else those within the group.
    pairs = [x for x in of.pairs if (set(x) <= {*group} if len(group) > 1 else group[0] in x)]
    verdicts = [figure.comparison.verdict for x in pairs for figure in of.pairs[x].figures]
    same, open_ = map(verdicts.count, (Relation.EQUIVALENT, Relation.INCONCLUSIVE))
    among = sorted({k for pair in pairs for k in pair})
    won = {k: sum(_wins(of, k, other) for other in among) for k in group}
    results, within = counted(len(verdicts), "result"), f"within {100 * of.margin:g} %"
    wins = f"{', '.join(f'{of.names[k]} in {n}' for k, n in won.items())} of {results}"
    if 2 * open_ > len(verdicts):
        # In a quarter, against few, one is to be preferred, though not for good.
        if len(group) == 1 and 4 * won[group[0]] >= len(verdicts):
            better, lost = of.names[group[0]], sum(_wins(of, k, group[0]) for k in among)
            tally = f"faster in {won[group[0]]} of {results}, slower in {lost or 'none'}"
            return UNDECIDED, f"Take {better} for now: {tally}; {open_} are undecided."
        if any(won.values()):
            return UNDECIDED, f"So far faster: {wins}; {open_} are undecided."
        apart = f"So far nothing tells {_and(of, group)} apart"
        how = f": {same} of {results} equal {within}" if same else f" in any of {results}"
        return UNDECIDED, f"{apart}{how}."
    if len(group) == 1:
        return DECIDED, f"Take {of.names[group[0]]}{_exception(of, group[0], among)}."
    either = _and(of, group, "or")
    if same == len(verdicts):
        return EQUAL, f"Take {either}: equal {within} in all {results}."
    if not any(won.values()):
        likely = f"no difference found, equal {within} in {same} of {results}"
        return SIMILAR, f"Take {either}: {likely}."
    best = max(group, key=lambda k: won[k])
    if exception := _exception(of, best, group, most=True):
        return DEPENDS, f"Take {of.names[best]}{exception}."
    return DEPENDS, f"No library is better overall: {wins}."


def _and(of: Standings, group: Sequence[int], word: str = "and") -> str:
    return _joined([of.names[k] for k in group], f" {word} ")


def _joined(names: Sequence[str], last: str) -> str:
    return last.join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _exception(of: Standings, best: int, among: Iterable[int], *, most: bool = False) -> str:
    """Return for which programs another library is better, with what introduces it, or nothing.

    That is a layout or a range of sizes in which it is in more results than not, and in most of
    those that are lost. Else these are benchmarks, or a range of sizes in each; with ``most``, if
    they hold most of what is lost.
    """
    others = [k for k in among if k != best]
    tally: list[tuple[Contested, int]] = []
    for one in of.contested:
        lost = any(one.beats(k, best) for k in others)
        tally.append((one, -1 if lost else int(any(one.beats(best, k) for k in others))))
    layouts = list(dict.fromkeys(one.layout for one, _ in tally))
    regions = [
        (f"run as {layout}", [score for one, score in tally if one.layout == layout])
        for layout in (layouts if len(layouts) > 1 else [])
    ]
    sizes = sorted({one.size for one, _ in tally if one.size is not None})
    by_size = [[score for one, score in tally if one.size == each] for each in sizes]
    ends = [
        *((f"of {size(each)} and more", by_size[k:]) for k, each in enumerate(sizes) if k),
        *((f"up to {size(each)}", by_size[k::-1]) for k, each in enumerate(sizes[:-1])),
    ]
    regions += [
        (f"exchange messages {which}", [score for at in kept for score in at])
        for which, kept in ends
        # At its inner end, and nowhere else the other way round.
        if sum(kept[0]) < 0 and all(sum(at) <= 0 for at in kept)
    ]
    where, scores = max(regions, key=lambda one: _lost(one[1]), default=("", []))
    of_all = _lost([score for _, score in tally], most=False)
    if 2 * _lost(scores) > of_all:
        return f", unless your programs mostly {where}"
    by_benchmark: dict[str, list[tuple[int | None, int]]] = {}
    for one, score in tally:
        by_benchmark.setdefault(one.benchmark, []).append((one.size, score))
    slow = {benchmark: _lost_within(results) for benchmark, results in by_benchmark.items()}
    if most and 2 * sum(count for count, _ in slow.values()) <= of_all:
        return ""
    ranges: dict[str, list[str]] = {}
    for benchmark, (count, where) in sorted(slow.items(), key=lambda one: -one[1][0]):
        if count:
            ranges.setdefault(where, []).append(benchmark)
    calls = [f"{_either(names)} {where}".rstrip() for where, names in ranges.items()]
    return f", unless your programs mostly do {_either(calls, ', or ')}" if calls else ""


def _lost(scores: Sequence[int], *, most: bool = True) -> int:
    """Return how many are lost; 0 where ``most`` must be, and are not."""
    return 0 if most and sum(scores) >= 0 else scores.count(-1)


def _lost_within(results: Sequence[tuple[int | None, int]]) -> tuple[int, str]:
    """Return how many results of a benchmark are lost, by their sizes, and in which range of them.

    The range is empty for the whole benchmark. The results of a size, of several layouts, are lost
    if each is.
    """
    sizes = {size for size, _ in results if size is not None}
    said = [
        SizeVerdict(
            each,
            Relation.B_BETTER
            if all(score < 0 for size, score in results if size == each)
            else Relation.INCONCLUSIVE,
        )
        for each in sizes
    ]
    lead, lost = widest_lead(said, Relation.B_BETTER), _lost([score for _, score in results])
    if lead is None:
        return lost, ""
    within = sum(lead.from_bytes <= (size or 0) <= lead.to_bytes for size, _ in results)
    whole = lead.sizes == len(sizes) or 2 * within <= lost
    return (lost, "") if whole else (within, _range([*sizes], lead))


def _either(names: Sequence[str], between: str = " or ") -> str:
    """Return names of which each will do, two of them and how many more."""
    shown = [*names[:_NAMED], *[f"{len(names) - _NAMED} more"] * (len(names) > _NAMED)]
    return _joined(shown, between)


def _ranks(of: Standings, groups: Sequence[Sequence[int]]) -> list[str]:
    return [
        f"{k}. {_and(of, group)}{' (a tie)' * (len(group) > 1)}"
        for k, group in enumerate(groups, 1)
    ]


def _where_better(of: Standings, contested: Sequence[Contested]) -> list[str]:
    """Return for each contender where it is better than all others, and by how much."""
    everybody = range(len(of.names))
    verdicts = [one.lead(everybody) for one in contested]
    lines = []
    for k, name in enumerate(of.names):
        wins = sum(verdict is Relation.A_BETTER and who == k for verdict, _, who in verdicts)
        if not wins:
            continue
        parts: dict[tuple[str, str], list[tuple[str, Lead, list[Contested]]]] = {}
        for curve in of.curves:
            # Who else is ahead ends a lead, as equals do.
            said = [
                SizeVerdict(
                    one.size or 0,
                    Relation.B_BETTER if verdict is Relation.A_BETTER and who != k else verdict,
                    gain,
                )
                for one, (verdict, gain, who) in ((x, x.lead(everybody)) for x in curve)
            ]
            first = curve[0]
            for lead in leads(said):
                if lead.verdict is Relation.A_BETTER:
                    key = (_range([x.size for x in curve], lead), first.layout)
                    within = [x for x in curve if lead.from_bytes <= (x.size or 0) <= lead.to_bytes]
                    parts.setdefault(key, []).append((first.benchmark, lead, within))
        # What holds for most results comes first.
        widest = sorted(parts.items(), key=lambda part: -sum(len(x) for *_, x in part[1]))
        several = len({one.layout for one in contested}) > 1
        everywhere = {x.benchmark for x in contested if x.size is not None}
        ranges = [
            " ".join(
                filter(
                    None,
                    [
                        _named([benchmark for benchmark, *_ in alike], everywhere),
                        where,
                        f"with {layout}" if several else "",
                        f"({_times([lead for _, lead, _ in alike])}{_amount(alike, k)})",
                    ],
                )
            )
            for (where, layout), alike in widest
        ]
        shown = "; ".join(ranges[:_RANGES_SHOWN])
        more = f"; and {len(ranges) - _RANGES_SHOWN} more" if len(ranges) > _RANGES_SHOWN else ""
        best = "fastest" if len(of.names) > 2 else "faster"
        lines.append(f"{name} is {best} in {wins} of {len(contested)}: {shown}{more}.")
    return lines


def _range(sizes: Sequence[int | None], lead: Lead) -> str:
    known = [one for one in sizes if one is not None]
    if not known:
        return ""
    from_start, to_end = lead.from_bytes == min(known), lead.to_bytes == max(known)
    if from_start and to_end:
        return "at all sizes"
    if lead.from_bytes == lead.to_bytes:
        return f"at {size(lead.from_bytes)}"
    if from_start:
        return f"up to {size(lead.to_bytes)}"
    if to_end:
        return f"of {size(lead.from_bytes)} and more"
    return f"from {size(lead.from_bytes)} to {size(lead.to_bytes)}"


def _named(benchmarks: Iterable[str], everywhere: Iterable[str]) -> str:
    here = list(dict.fromkeys(benchmarks))
    checks = (one.ab for one in every_benchmark().values() if one.ab)
    known = tuple(name for check in checks for name in check.point_to_point)
    pairs = [one for one in everywhere if one.startswith(known)]
    if len(pairs) > 1 and set(pairs) <= set(here):
        here = ["point-to-point", *(one for one in here if one not in pairs)]
    return _joined(here, " and ")


def _times(of: Sequence[Lead]) -> str:
    low, high = min(x.least_gain for x in of), max(x.most_gain for x in of)
    return (
        f"{factor(low)} x" if factor(low) == factor(high) else f"{factor(low)} to {factor(high)} x"
    )


def _ahead(one: Contested, k: int) -> tuple[str, float]:
    """Return by how much a contender is better than the next one, with the unit of that."""
    levels = [one.level(other) for pair in one.pairs for other in pair if other != k]
    mine, others = one.level(k), [level.value for level in levels if level]
    if mine is None or not others:
        return one.metric.unit, math.nan
    best = min(others) if one.metric.better is Better.LOWER else max(others)
    return one.metric.unit, abs(best - mine.value)


def _amount(alike: Sequence[tuple[str, Lead, Sequence[Contested]]], k: int) -> str:
    """Return by how much a contender is better over several sizes, nothing where units differ."""
    of = [_ahead(one, k) for *_, within in alike for one in within]
    units = {unit for unit, _ in of}
    low, high = (rounded(float(f"{end(ahead for _, ahead in of):.2g}")) for end in (min, max))
    if len(units) > 1 or not units or "nan" in (low, high):
        return ""
    return f", {low if low == high else f'{low} to {high}'} {units.pop()}"


def factor(times: float) -> str:
    """Return how many times as good something is, without digits that nobody needs."""
    return f"{times:.2f}" if times < _CLEAR else rounded(float(f"{times:.2g}"))


def bound_of(comparison: Comparison) -> float | None:
    """Return by less than how many times two differ, None where rounds do not tell."""
    if comparison.low is None or comparison.high is None or comparison.low <= 0.0:
        return None
    return max(comparison.high, 1.0 / comparison.low)


def _rest(of: Standings, word: str) -> list[str]:
    """Return how many results are equal or undecided, and by how much these differ at most."""
    same, open_ = of.count(Relation.EQUIVALENT), of.count(Relation.INCONCLUSIVE)
    parts = [f"{same} equal within {100 * of.margin:g} %"] if same else []
    undecided = (f.comparison for f in of.figures if f.comparison.verdict is Relation.INCONCLUSIVE)
    bounds = (bound_of(one) for one in undecided)
    # That two differ by less than 29 times helps nobody.
    known = [bound for bound in bounds if bound is not None and bound <= _CLEAR]
    which = "they" if len(known) == open_ else f"{len(known)} of them"
    less = f", {which} differ by less than {factor(max(known))} x" if known else ""
    # That nothing is decided is told already.
    parts += [f"{open_} undecided{less}"] if open_ and (less or word != UNDECIDED) else []
    pairs = "Of pairs: " if len(of.pairs) > 1 else ""
    return [f"{pairs}{'; '.join(parts)}."] if parts else []


def crossover_lines(result: Result) -> list[str]:
    """Return a line per crossover."""
    return [
        f"{curve.benchmark}, {curve.layout}: {_winner(result, one.before)} is ahead up to "
        f"{size(one.above_bytes)}, {_winner(result, one.after)} from {size(one.below_bytes)}"
        for curve in result.curves
        for one in curve.crossovers
    ]


def _winner(result: Result, who: Relation) -> str:
    return result.a if who is Relation.A_BETTER else result.b


def dip_lines(result: Result) -> list[str]:
    """Return a line per dip of either contender."""
    return [
        f"{curve.benchmark}, {curve.layout}: {name} dips {_where(dip)}: "
        f"{100 * dip.depth:.0f} % less per second than on either side"
        for curve in result.curves
        for name, held in ((result.a, curve.dips_a), (result.b, curve.dips_b))
        for dip in held
    ]


def _where(dip: Dip) -> str:
    if dip.from_bytes == dip.to_bytes:
        return f"at {size(dip.from_bytes)}"
    return f"from {size(dip.from_bytes)} to {size(dip.to_bytes)}"


def _next_steps(of: Standings, word: str) -> list[str]:
    """Return what would tell more, with the command where that is worth its time."""
    again = f"clustergate ab {shlex.join(of.texts)}"
    slowest = max(of.pairs.values(), key=lambda one: one.round_s, default=None)
    fewest = min((n for one in of.pairs.values() for n in one.rounds), default=0)
    # Each round launches all contenders, a pair's are those of two.
    jobs = len(slowest.rounds) if slowest else 0
    round_min = (slowest.round_s if slowest else 0.0) * jobs * len(of.names) / 2 / 60
    if fewest < FEWEST:
        budget = (
            f" --rounds {FEWEST} --budget {math.ceil(FEWEST * round_min)}m" if round_min else ""
        )
        return [
            f"nothing is called better before {FEWEST} rounds, and {counted(fewest, 'round')} ran: "
            f"`{again}{budget}`"
        ]
    open_ = of.count(Relation.INCONCLUSIVE)
    needs = sorted(filter(None, (figure.comparison.further_launches for figure in of.figures)))
    if not open_:
        return []
    settled = word in (DECIDED, DEPENDS, SIMILAR)
    if not needs:
        much = "settling the rest would take impractically many rounds"
        return [f"enough for a decision; {much}" if settled else much]

    def minutes(further: int) -> int:
        return math.ceil((fewest + further) * round_min) or 1

    worth = [one for one in needs if minutes(one) <= _WORTH_MIN] or needs[:1]
    command = f"`{again} --rounds {fewest + worth[-1]} --budget {minutes(worth[-1])}m`"
    if settled:
        all_ = len(needs) == open_
        rest = "the rest" if all_ else f"{len(needs)} of the {open_} undecided"
        step = f"enough for a decision; {minutes(needs[-1])} min would settle {rest}"
        return [step if worth != needs else f"{step}: {command}"]
    which = f"{len(worth)} of the {open_} undecided results"
    return [f"{minutes(worth[-1])} min would probably decide {which}: {command}"]
