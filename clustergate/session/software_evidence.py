"""What a golden build, launched in turn with today's, says for and against opening. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

from clustergate.ab.wholes import RULED_OUT, TOLERATED, Cost, Fault, is_slower
from clustergate.model import Evidence, Verdict
from clustergate.statistics.comparison import Relation
from clustergate.statistics.rounds import FEWEST, RATHER_SLOWER, SLOW_LAUNCHES
from clustergate.wording.reasons import Reason, reason

_NAMED, _WORSE_NAMED = 6, 12
_TOO_MANY = "more than a thousand further rounds would be needed"


class Builds(enum.Enum):
    """What today's builds are to golden ones: some are others, none was pinned, all are equal."""

    OTHER = enum.auto()
    UNPINNED = enum.auto()
    EQUAL = enum.auto()


def part_of(stack: str) -> str:
    """Return what the part of the gate is called in which a stack's software is judged."""
    return f"software: {stack}"


def same_build(
    stack: str,
    digest: str,
    system_files: Sequence[str],
    pinned: str,
    settings: Sequence[str] = (),
    on_nodes: Sequence[str] = (),
) -> list[Evidence]:
    """Return that today's build is the golden one, which was ``pinned`` on a day in UTC.

    ``system_files`` beside it are otherwise, and so are ``settings`` of its launches, and files
    that ranks mapped ``on_nodes``.
    """
    same = reason("software.same", sha256=digest, pinned=pinned)
    evidence = [Evidence(part_of(stack), Verdict.PASS, (same,))]
    if system_files:
        why = reason("software.system-changed", files=system_files)
        evidence.append(Evidence(part_of(stack), Verdict.PASS, (why,)))
    if on_nodes:
        why = reason("software.mapped-otherwise", files=on_nodes, stack=stack)
        evidence.append(Evidence(part_of(stack), Verdict.PASS, (why,)))
    if settings:
        why = reason("software.settings-changed", settings=settings)
        evidence.append(Evidence(part_of(stack), Verdict.PASS, (why,)))
    return evidence


def not_compared(stack: str, why: Reason, verdict: Verdict = Verdict.INVALID) -> Evidence:
    """Return that a golden build was not launched against today's, or that it does not count."""
    return Evidence(part_of(stack), verdict, (why,))


def of_contest(
    stack: str, costs: Sequence[Cost], faults: Sequence[Fault] = (), absent: Sequence[str] = ()
) -> list[Evidence]:
    """Return what the launches of both say.

    Each size, and each benchmark as a whole, must be shown not to be slower by what is to be ruled
    out, and nothing may be surely slower. ``faults`` are intermittently slow launches, ``absent``
    sentences of what neither could be compared in.
    """
    part = part_of(stack)
    slower = [one for one in costs if one.comparison.verdict is Relation.A_BETTER]
    beyond = [one for one in slower if is_slower(one.comparison)]
    worst = [_slower("software.slower", stack, one) for one in _worst(beyond)]
    evidence = [*worse_ones(part, worst)]
    evidence += [
        Evidence(part, Verdict.REGRESSION, (reason("software.now-and-then", **vars(one)),))
        for one in faults[:_NAMED]
    ]
    if evidence:
        # The launches ended with that.
        return evidence
    open_ = [_slower("software.somewhat-slower", stack, one) for one in _worst(slower)[:_NAMED]]
    shown = (Relation.EQUIVALENT, Relation.A_BETTER)
    open_ += _undecided([x for x in costs if x.comparison.verdict not in shown])
    evidence += [Evidence(part, Verdict.INCONCLUSIVE, (why,)) for why in open_]
    wholes = [one for one in costs if one.whole]
    if not wholes:
        evidence.append(not_compared(stack, reason("software.nothing-compared")))
    if not evidence:
        sizes = [one for one in costs if not one.whole]
        why = reason(
            "software.as-golden",
            wholes=len(wholes),
            ruled_out=RULED_OUT,
            sizes=len(sizes),
            rounds=max(one.comparison.samples_a for one in costs),
            node_seconds=max(one.node_seconds for one in costs),
            absent="".join(f"; {sentence}" for sentence in absent),
        )
        evidence.append(Evidence(part, Verdict.PASS, (why,)))
    return evidence


def seconds_to_decide(evidence: Sequence[Evidence]) -> float:
    """Return about how long golden builds must be launched so that what is open is decided.

    That is of all of them together, which share the time equally; 0 where nobody can say.
    """
    facts = [
        (one.part, why.facts)
        for one in evidence
        for why in one.reasons
        if one.verdict is Verdict.INCONCLUSIVE
    ]
    needed = {(part, float(str(of.get("needed_s") or 0.0))) for part, of in facts}
    stacks = {part for part, seconds in needed if seconds}
    for_undecided = len(stacks) * max((seconds for _, seconds in needed), default=0.0)
    return max([for_undecided, *(float(str(of.get("wanted_s", 0.0))) for _, of in facts)])


def _worst(costs: Sequence[Cost]) -> list[Cost]:
    return sorted(costs, key=lambda one: (not one.whole, -(one.comparison.ratio or 0.0)))


def _slower(code: str, stack: str, one: Cost) -> Reason:
    held = one.comparison
    return reason(
        code,
        stack=stack,
        figure=one.name,
        ratio=held.ratio,
        confidence=held.confidence,
        low=held.low or 1.0,
        high=f"{held.high:.2f}" if held.high else "more",
        margin=TOLERATED,
        rounds=held.samples_a,
        node_seconds=one.node_seconds,
    )


def _undecided(costs: Sequence[Cost]) -> Iterator[Reason]:
    """Yield what would decide the figures that need most, and how many are like them."""
    untold: dict[tuple[str, str], list[str]] = {}
    open_: list[Cost] = []
    for one in costs:
        held = one.comparison
        if held.remark != SLOW_LAUNCHES and (held.low is None or held.high is None):
            few = f"{held.samples_a} rounds of the {FEWEST} or more that it takes"
            longer = "give the gate more budget, for more rounds"
            lacking = (
                "see its launches in the gate's run: no further round gives what one side lacks"
            )
            why = (held.remark, lacking) if held.remark else (few, longer)
            untold.setdefault(why, []).append(one.name)
        else:
            open_.append(one)
    open_.sort(key=lambda one: one.comparison.further_launches or 0, reverse=True)
    for one in open_[:_NAMED]:
        held, needs = one.comparison, _needs(one)
        if held.remark == SLOW_LAUNCHES:
            yield reason(
                "software.maybe-faults",
                **{"figure": one.name, "ratio": held.ratio, "needs": needs},
                needed_s=one.needed_s,
            )
            continue
        yield reason(
            "software.undecided",
            figure=one.name,
            low=held.low,
            high=held.high,
            confidence=held.confidence,
            margin=TOLERATED if held.remark == RATHER_SLOWER else RULED_OUT,
            needs=needs,
            needed_s=one.needed_s,
        )
    if len(open_) > _NAMED:
        yield reason("software.more-undecided", figures=len(open_) - _NAMED)
    for (said, remedy), names in untold.items():
        yield reason("software.untold", figures=names, why=said, remedy=remedy)


def _needs(one: Cost) -> str:
    """Return which rounds would probably decide and what to do, or why none would."""
    held, further = one.comparison, one.comparison.further_launches
    if further:
        rounds = "1 more round" if further == 1 else f"about {further} more rounds"
        each_s = one.node_seconds / max(held.samples_a, 1)
        cost = f"({further * each_s:.0f} node-seconds)"
        return f"{rounds} {cost} would probably decide: give the gate more budget"
    why = held.remark if held.remark not in ("", SLOW_LAUNCHES, RATHER_SLOWER) else _TOO_MANY
    return f"{why}: measure when less runs beside it"


def worse_ones(part: str, worse: Sequence[Reason]) -> Iterator[Evidence]:
    """Yield regressions, the worst of them first, and how many more there are."""
    for why in worse[:_WORSE_NAMED]:
        yield Evidence(part, Verdict.REGRESSION, (why,))
    if len(worse) > _WORSE_NAMED:
        more = reason("gate.more-worse", figures=len(worse) - _WORSE_NAMED)
        yield Evidence(part, Verdict.REGRESSION, (more,))
