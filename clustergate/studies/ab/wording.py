"""The comparison in one paragraph, and each crossover and dip in a sentence. Pure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable

from clustergate.benchmarks.registry import every_benchmark
from clustergate.core.notation import counted
from clustergate.stats.comparison import Relation
from clustergate.stats.rounds import FEWEST
from clustergate.studies.ab.curves import Dip, Lead
from clustergate.studies.ab.results import Curve, Result, gain_of

_KIBI = 1024
# From which gain on it is told as a multiple.
_MULTIPLE = 2.0


def size(count: int) -> str:
    """Return a size in bytes as people say it, such as ``128 KiB``."""
    for unit in ("B", "KiB", "MiB"):
        if count < _KIBI or count % _KIBI:
            return f"{count} {unit}"
        count //= _KIBI
    return f"{count} GiB"


def word(result: Result) -> str:
    """Return the comparison in a word or three."""
    a, b, same = map(result.count, (Relation.A_BETTER, Relation.B_BETTER, Relation.EQUIVALENT))
    if a and b:
        return "MIXED"
    if a or b:
        return f"{'A' if a else 'B'} IS AHEAD"
    return "EQUIVALENT" if same == len(result.figures) > 0 else "INCONCLUSIVE"


def paragraph(result: Result) -> str:
    """Return what a person can act on."""
    figures = result.figures
    if not figures:
        return "Nothing was measured by both."
    sentences = [_overall(result)]
    for winner in (Relation.A_BETTER, Relation.B_BETTER):
        if ranges := _stretches(result, winner):
            sentences.append(f"{name(result, winner)} is ahead {'; '.join(ranges)}.")
    alike = _stretches(result, Relation.EQUIVALENT)
    # A list of every stretch helps nobody, and of all figures it is told already.
    if result.count(Relation.EQUIVALENT) < len(figures) and 0 < len(alike) <= 6:
        sentences.append(f"They are equivalent {'; '.join(alike)}.")
    if result.count(Relation.INCONCLUSIVE) and not next_steps(result):
        sentences.append("Deciding the rest would take impractically many rounds.")
    return " ".join(sentences)


def _overall(result: Result) -> str:
    a, b, same, undecided = map(
        result.count,
        (Relation.A_BETTER, Relation.B_BETTER, Relation.EQUIVALENT, Relation.INCONCLUSIVE),
    )
    first, second = name(result, Relation.A_BETTER), name(result, Relation.B_BETTER)
    of, within = counted(len(result.figures), "figure"), f"within {100 * result.margin:g} %"
    if same == len(result.figures):
        return f"{first} and {second} are equivalent {within} in all {of}."
    if a and b:
        won = f"{first} is better in {a} of {of}, {second} in {b}"
    elif a or b:
        ahead, behind = (first, second) if a else (second, first)
        won = f"{ahead} is better in {a or b} of {of}, {behind} in none"
    else:
        won = f"Neither {first} nor {second} is better in any of {of}"
    rest = [f"{same} {_are(same)} equivalent {within}"] if same else []
    open_ = "all" if 1 < undecided == len(result.figures) else undecided
    rest += [f"{open_} {_are(undecided)} undecided"] if undecided else []
    return f"{'; '.join([won, *([', '.join(rest)] if rest else [])])}."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def name(result: Result, winner: Relation) -> str:
    """Return what a winner is called; A and B where both have one name."""
    is_a = winner is Relation.A_BETTER
    if result.a == result.b:
        return f"{'A' if is_a else 'B'} ({result.a})"
    return result.a if is_a else result.b


def _stretches(result: Result, verdict: Relation) -> list[str]:
    """Return where a verdict holds, with the gain there; of equivalence more than single sizes."""
    is_ahead = verdict is not Relation.EQUIVALENT
    parts: dict[tuple[str, str], list[tuple[Curve, float, float]]] = {}
    for curve in result.curves:
        held = [
            (_range(curve, lead), lead.least_gain, lead.most_gain)
            for lead in curve.leads
            if lead.verdict is verdict and (is_ahead or lead.sizes > 1)
        ]
        if not curve.leads and is_ahead:
            own = [figure for figure in curve.figures if figure.comparison.verdict is verdict]
            held = [("", gain, gain) for gain in filter(None, map(gain_of, own))]
        for where, least, most in held:
            key = (where, _layout(result, curve))
            parts.setdefault(key, []).append((curve, least, most))
    ranges = []
    for (where, layout), alike in parts.items():
        benchmarks = _named([curve for curve, _, _ in alike], result)
        gain = _gain(min(low for _, low, _ in alike), max(high for _, _, high in alike))
        words = [f"in {benchmarks}", where, layout, f"({gain})" if is_ahead else ""]
        ranges.append(" ".join(filter(None, words)))
    return ranges


def _layout(result: Result, curve: Curve) -> str:
    several = len({one.layout for one in result.curves}) > 1
    return f"with {curve.layout}" if several else ""


def _range(curve: Curve, lead: Lead) -> str:
    sizes = [figure.size for figure in curve.figures if figure.size is not None]
    from_start, to_end = lead.from_bytes == min(sizes), lead.to_bytes == max(sizes)
    if from_start and to_end:
        return "at all sizes"
    if lead.from_bytes == lead.to_bytes:
        return f"at {size(lead.from_bytes)}"
    if from_start:
        return f"up to {size(lead.to_bytes)}"
    return f"from {size(lead.from_bytes)}" + ("" if to_end else f" to {size(lead.to_bytes)}")


def _named(curves: Iterable[Curve], result: Result) -> str:
    here = list(dict.fromkeys(curve.benchmark for curve in curves))
    everywhere = {curve.benchmark for curve in result.curves if curve.leads}
    checks = (one.ab for one in every_benchmark().values() if one.ab)
    known = tuple(name for check in checks for name in check.point_to_point)
    pairs = [one for one in everywhere if one.startswith(known)]
    if len(pairs) > 1 and set(pairs) <= set(here):
        rest = [one for one in here if one not in pairs]
        here = ["point-to-point", *rest]
    return here[0] if len(here) == 1 else f"{', '.join(here[:-1])} and {here[-1]}"


def _gain(least: float, most: float) -> str:
    if most >= _MULTIPLE:
        # Two digits, and never a power of ten.
        low, high = (f"{float(f'{x:.2g}'):g}" for x in (least, most))
        return f"{high} times as fast" if low == high else f"{low} to {high} times as fast"
    low, high = (f"{100 * (x - 1):.2g}" for x in (least, most))
    return f"by {high} %" if low == high else f"by {low} to {high} %"


def crossover_lines(result: Result) -> list[str]:
    """Return a line per crossover."""
    return [
        f"{curve.benchmark}, {curve.layout}: {name(result, one.before)} is ahead up to "
        f"{size(one.above_bytes)}, {name(result, one.after)} from {size(one.below_bytes)}"
        for curve in result.curves
        for one in curve.crossovers
    ]


def dip_lines(result: Result) -> list[str]:
    """Return a line per dip of either contender."""
    return [
        f"{curve.benchmark}, {curve.layout}: {name(result, side)} dips {_where(dip)}: "
        f"{100 * dip.depth:.0f} % less per second than on either side"
        for curve in result.curves
        for side, held in (
            (Relation.A_BETTER, curve.dips_a),
            (Relation.B_BETTER, curve.dips_b),
        )
        for dip in held
    ]


def _where(dip: Dip) -> str:
    if dip.from_bytes == dip.to_bytes:
        return f"at {size(dip.from_bytes)}"
    return f"from {size(dip.from_bytes)} to {size(dip.to_bytes)}"


def next_steps(result: Result) -> list[str]:
    """Return the command by which the answers that are missing would be had, if there is one."""
    again = f"clustergate ab --a {shlex.quote(result.a)} --b {shlex.quote(result.b)}"
    fewest, open_ = min(result.rounds, default=0), result.count(Relation.INCONCLUSIVE)
    round_min = result.round_s * len(result.rounds) / 60
    if fewest < FEWEST:
        longer = f"`{again}` with a larger --budget"
        if round_min:
            longer = f"`{again} --rounds {FEWEST} --budget {math.ceil(FEWEST * round_min)}m`"
        step = (
            f"{longer}, or fewer benchmarks or sizes: nothing is called better before {FEWEST} "
            f"rounds, and {counted(fewest, 'round')} ran"
        )
        return [step]
    further = [figure.comparison.further_launches for figure in result.figures]
    needs = [more for more in further if more is not None]
    if not needs:
        return []
    needed = fewest + max(needs)
    minutes = math.ceil(needed * round_min) or 1
    which = f"{len(needs)} of the {open_} undecided figures"
    if len(needs) == open_:
        which = "the undecided figure" if open_ == 1 else f"all {open_} undecided figures"
    command = f"`{again} --rounds {needed} --budget {minutes}m`"
    return [f"{command} would probably decide {which}"]
