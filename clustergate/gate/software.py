"""What a golden build, launched in turn with today's, says for and against opening. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clustergate.ab.wholes import Cost
from clustergate.gate.decision import Evidence
from clustergate.model import Verdict
from clustergate.statistics.comparison import Relation
from clustergate.statistics.rounds import FEWEST
from clustergate.wording.reasons import Reason, reason

_NAMED = 6


def part_of(stack: str) -> str:
    """Return what the part of the gate is called in which a stack's software is judged."""
    return f"software: {stack}"


def same_build(stack: str, digest: str, system_files: Sequence[str]) -> list[Evidence]:
    """Return that today's build is the golden one; ``system_files`` beside it are otherwise."""
    found = [Evidence(part_of(stack), Verdict.PASS, (reason("software.same", sha256=digest),))]
    if system_files:
        why = reason("software.system-changed", files=system_files)
        found.append(Evidence(part_of(stack), Verdict.PASS, (why,)))
    return found


def not_compared(stack: str, why: Reason, verdict: Verdict = Verdict.INVALID) -> Evidence:
    """Return that a golden build was not launched against today's, or that it does not count."""
    return Evidence(part_of(stack), verdict, (why,))


def of_contest(
    stack: str, found: Sequence[Cost], margin: float, absent: Sequence[str] = ()
) -> list[Evidence]:
    """Return what the launches of both say; ``margin`` is a fraction of the time.

    A benchmark as a whole must be shown to be as fast within the margin, or faster. A single size
    accuses where it is surely slower; where it is undecided, its whole speaks for it. ``absent``
    are sentences of what neither could be compared in.
    """
    part = part_of(stack)
    slower = [one for one in found if one.comparison.verdict is Relation.A_BETTER]
    beyond = [one for one in slower if (one.comparison.low or 0.0) > 1.0 + margin]
    told = [
        Evidence(part, Verdict.REGRESSION, (_slower("software.slower", one, margin),))
        for one in _worst(beyond)[:_NAMED]
    ]
    if len(beyond) > _NAMED:
        more = reason("gate.more-worse", figures=len(beyond) - _NAMED)
        told.append(Evidence(part, Verdict.REGRESSION, (more,)))
    somewhat = [one for one in slower if one not in beyond]
    told += [
        Evidence(part, Verdict.INCONCLUSIVE, (_slower("software.somewhat-slower", one, margin),))
        for one in _worst(somewhat)[:_NAMED]
    ]
    wholes = [one for one in found if one.whole]
    undecided = [
        one
        for one in found
        if one.comparison.verdict is Relation.INCONCLUSIVE
        and (one.whole or one.comparison.ratio is None)
    ]
    told += [Evidence(part, Verdict.INCONCLUSIVE, (why,)) for why in _undecided(undecided, margin)]
    if not wholes:
        told.append(not_compared(stack, reason("software.nothing-compared")))
    if not told:
        singles = [one for one in found if not one.whole]
        why = reason(
            "software.as-golden",
            wholes=len(wholes),
            margin=margin,
            sizes=len(singles),
            undecided=sum(o.comparison.verdict is Relation.INCONCLUSIVE for o in singles),
            absent="".join(f"; {sentence}" for sentence in absent),
        )
        told.append(Evidence(part, Verdict.PASS, (why,)))
    return told


def _worst(found: Sequence[Cost]) -> list[Cost]:
    return sorted(found, key=lambda one: (not one.whole, -(one.comparison.ratio or 0.0)))


def _slower(code: str, one: Cost, margin: float) -> Reason:
    held = one.comparison
    return reason(
        code,
        figure=one.name,
        ratio=held.ratio,
        low=held.low or 1.0,
        high=f"{held.high:.2f}" if held.high else "more",
        margin=margin,
    )


def _undecided(found: Sequence[Cost], margin: float) -> Iterator[Reason]:
    untold: dict[str, list[str]] = {}
    for one in found:
        held, further = one.comparison, one.comparison.further_launches
        if held.low is None or held.high is None:
            few = f"{held.samples_a} of the {FEWEST} rounds that it takes"
            untold.setdefault(held.remark or few, []).append(one.name)
            continue
        yield reason(
            "software.undecided",
            figure=one.name,
            low=held.low,
            high=held.high,
            margin=margin,
            needs=f"about {further} more rounds" if further else held.remark or "more rounds",
        )
    for why, names in untold.items():
        yield reason("software.untold", figures=names, why=why)
