"""What a gate promises: how large a slow-down can hide in no benchmark, stack or kind. Pure.

A single size may stay undecided. Of a benchmark as a whole, a stack or a kind of figures the
baseline tells before the run what it can promise, so that unchanged machines keep nearly all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from clustergate.core.model import Case, CaseId, Promise
from clustergate.core.reasons import Reason, Words
from clustergate.judge.changes import HIDDEN, Change
from clustergate.judge.references.lookup import effort_key, layout_key
from clustergate.judge.rules import Comparison, is_near_the_best

LARGEST = math.log(1.20)
"""A slow-down that is larger must not hide: a baseline with such a limit promises nothing."""
# An unchanged run is worse than that once in 160, before it is launched again.
_SPREADS = 2.5
_WHOLE = ("stack", "kind")
TOO_SHORT = Words(
    "promise.too-short",
    "{name}: its baseline shows no slow-down below {limit:percent}",
    remedy="`clustergate check --mode maintenance` on more days, then `clustergate baseline`",
)
UNKNOWN = Words(
    "promise.unknown",
    "{name}: its baseline does not show variation between days",
    remedy="`clustergate check --mode maintenance` on more days, then `clustergate baseline`",
)
BROKEN = Words(
    "promise.broken",
    "{name} may be {at_most:percent} slower ({limit:percent} would do)",
    remedy="`clustergate gate` again with nothing beside it; more days in the baseline show more",
)


CANNOT = Words(
    "promise.cannot",
    "this baseline promises nothing of {promises:names}",
    remedy=(
        "tonight only a golden build and screenings of three earlier days stand for it; later, "
        "`clustergate check --mode maintenance` on more days"
    ),
)
HIDES = Words("promise.hides", "a slow-down may hide below {limits:names}")


def foreseen(promises: Iterable[Promise]) -> list[Reason]:
    """Return what a baseline tells before a run: what it cannot promise, and what may hide.

    Of stacks, kinds and benchmarks the largest limit counts, of those that are promised.
    """
    cannot: dict[str, None] = {}
    limits: dict[str, float] = {}
    for one in promises:
        if one.limit > LARGEST:
            run = "" if one.level in _WHOLE else f" with {', '.join(one.of)}"
            limit = "" if math.isinf(one.limit) else f" ({math.expm1(one.limit):.0%})"
            cannot[f"{one.name.partition('.')[0]}{run}{limit}"] = None
        else:
            limits[one.level] = max(limits.get(one.level, 0.0), one.limit)
    said = [CANNOT(promises=[*cannot])] if cannot else []
    of_levels = [f"{math.expm1(limits[level]):.0%} of a {level}" for level in sorted(limits)]
    return [*said, HIDES(limits=of_levels)] if of_levels else said


def why_open(promise: Promise) -> Reason | None:
    """Return why it cannot be said that nothing hides there, None where it can."""
    if promise.kept:
        return None
    if math.isinf(promise.limit):
        return UNKNOWN(name=promise.name)
    limit = math.expm1(promise.limit)
    if promise.limit > LARGEST:
        return TOO_SHORT(name=promise.name, limit=limit)
    return BROKEN(name=promise.name, limit=limit, at_most=math.expm1(promise.at_most))


def to_launch_again(
    cases: Sequence[Case], wholes: Mapping[str, Sequence[Promise]]
) -> dict[CaseId, str]:
    """Return the cases in which a promise could be kept and is not, each with that in words.

    Of a stack or a kind that keeps none, as a whole, these are those that made it slow.
    """
    said: dict[CaseId, str] = {}
    for case in cases:
        of_case = [one for one in case.promises if _is_broken(one)]
        of_case += [
            one
            for one in wholes.get(case.partition, ())
            if _is_broken(one) and case.stack in one.of and case.promises and _made(case, one)
        ]
        if of_case:
            worst = max(of_case, key=lambda one: one.at_most - one.limit)
            said[case.identity] = f"{worst.name} may be {math.expm1(worst.at_most):.0%} slower"
    return said


def _made(case: Case, whole: Promise) -> bool:
    if not whole.slow_in:
        return True
    key = (case.check, case.partition, case.stack)
    layout = layout_key(case.conditions), effort_key(case.conditions)
    return (*key, *layout) in whole.slow_in


def _is_broken(one: Promise) -> bool:
    return not one.kept and one.limit <= LARGEST


def with_kept(promises: Sequence[Promise], again: Sequence[Promise]) -> tuple[Promise, ...]:
    """Return promises, of which those are kept, too, that were when they were launched ``again``.

    What chance made slow once, it does not make slow again.
    """
    kept = {(one.level, one.name, one.of): one for one in again if one.kept}
    return tuple(kept.get((one.level, one.name, one.of), one) for one in promises)


def limit_of(change: Change) -> float:
    """Return what a set promises: ``max(10 %, t(0.99) s + 2.5 s)``, a logarithm.

    Here s is its spread from run to run, known with so many degrees of freedom; infinite without.
    """
    if not change.is_judged:
        return math.inf
    return max(HIDDEN, change.at_most - change.by + _SPREADS * change.spread)


def of_cases(run: Comparison) -> Iterator[tuple[tuple[str, ...], Promise]]:
    """Yield the promises of benchmarks and of single metrics, with the keys of their cases."""
    changes = {one.hypothesis.places: one for one in run.changes}
    named: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for place, one in enumerate(run.figures):
        figure = one.figure
        named.setdefault((figure.case, figure.benchmark), []).append(place)
        named.setdefault((figure.case, f"{figure.benchmark}.{figure.metric}"), []).append(place)
    for (case, name), places in named.items():
        if change := changes.get(tuple(places)):
            names = tuple(run.figures[place].figure.name for place in places)
            yield case, replace(_promise(run, change, "benchmark", name), figures=names)


def of_wholes(run: Comparison) -> list[Promise]:
    """Return the promises of stacks, and of kinds of figures in all stacks."""
    own = {x.hypothesis.places[0]: x.own for x in run.changes if len(x.hypothesis.places) == 1}
    promised = [
        (one, _promise(run, one, one.hypothesis.level, one.hypothesis.name))
        for one in run.changes
        if one.hypothesis.level in _WHOLE
    ]
    return [
        replace(x, slow_in=() if x.kept else _slow_in(run, one.hypothesis.places, own, x))
        for one, x in promised
    ]


def _slow_in(
    run: Comparison, places: Sequence[int], own: Mapping[int, float], broken: Promise
) -> tuple[tuple[str, ...], ...]:
    """Return the cases, the slowest first, that a promise is broken by: the rest would keep it."""
    shares: dict[tuple[str, ...], float] = {}
    for place in places:
        case = run.figures[place].figure.case
        shares[case] = shares.get(case, 0.0) + own[place] / len(places)
    slow: list[tuple[str, ...]] = []
    for case in sorted(shares, key=lambda one: -shares[one]):
        rest = broken.at_most - sum(shares[one] for one in slow)
        if not shares[case] > 0 or (slow and rest < broken.limit):
            break
        slow.append(case)
    return tuple(slow)


def _promise(run: Comparison, change: Change, level: str, name: str) -> Promise:
    places, limit = change.hypothesis.places, limit_of(change)
    stacks = dict.fromkeys(run.figures[place].figure.stack for place in places)
    resolved = change.at_most < limit <= LARGEST
    kept = not change.is_slower and (resolved or is_near_the_best(run, places))
    return Promise(level, name, tuple(stacks), limit, change.at_most, kept)
