"""What a golden build, launched in turn with today's, says for and against opening. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

from clustergate.core.model import Evidence, Verdict
from clustergate.core.reasons import Reason, Words
from clustergate.stats.comparison import Relation
from clustergate.stats.rounds import FEWEST, RATHER_SLOWER, SLOW_LAUNCHES
from clustergate.studies.ab.wholes import RULED_OUT, TOLERATED, Cost, Fault, is_slower

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


SOFTWARE_SAME = Words(
    "software.same",
    "the same build as the golden one of {pinned} (sha256 {sha256}), in every file and setting",
)
SYSTEM_CHANGED = Words(
    "software.system-changed",
    (
        "system libraries that its ranks map have changed since the golden build was pinned: "
        "{files:names}"
    ),
    remedy="a golden build cannot show the effect; the references judge it",
)
MAPPED_OTHERWISE = Words(
    "software.mapped-otherwise",
    (
        "on the nodes, its ranks map files that the golden build did not map, or that differed "
        "where it was pinned: {files:names}"
    ),
    cause="no golden build shows what that does; the references judge it",
    remedy="if they are as accepted, `clustergate golden unpin {stack}` and pin it on a node",
)
SETTINGS_CHANGED = Words(
    "software.settings-changed",
    "the site's launch settings have changed since the golden build was pinned: {settings:list}",
    remedy="a golden build cannot show the effect; the references judge it",
)


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
    same = SOFTWARE_SAME(sha256=digest, pinned=pinned)
    evidence = [Evidence(part_of(stack), Verdict.PASS, (same,))]
    if system_files:
        why = SYSTEM_CHANGED(files=system_files)
        evidence.append(Evidence(part_of(stack), Verdict.PASS, (why,)))
    if on_nodes:
        why = MAPPED_OTHERWISE(files=on_nodes, stack=stack)
        evidence.append(Evidence(part_of(stack), Verdict.PASS, (why,)))
    if settings:
        why = SETTINGS_CHANGED(settings=settings)
        evidence.append(Evidence(part_of(stack), Verdict.PASS, (why,)))
    return evidence


def not_compared(stack: str, why: Reason, verdict: Verdict = Verdict.INVALID) -> Evidence:
    """Return that a golden build was not launched against today's, or that it does not count."""
    return Evidence(part_of(stack), verdict, (why,))


SOFTWARE_SLOWER = Words(
    "software.slower",
    (
        "{figure} takes {ratio:.2f} x as long as with the golden build ({confidence:percent} "
        "interval: {low:.2f} to {high} x), by {rounds} rounds in turn "
        "({node_seconds:.0f} node-seconds)"
    ),
    cause="what differs between both builds: `clustergate golden list` names it",
    remedy="go back to the golden build, or pin the new one when it is meant to be slower",
)
SOMEWHAT_SLOWER = Words(
    "software.somewhat-slower",
    (
        "{figure} is surely slower than with the golden build ({confidence:percent} interval: "
        "{low:.2f} to {high} x), probably by less than {margin:whole_percent}"
    ),
    cause="that is decided, and too little to keep the gate closed; more rounds would not open it",
    remedy=(
        "go back to the golden build or accept it: `clustergate golden unpin {stack}`, then `pin`"
    ),
)
NOW_AND_THEN = Words(
    "software.now-and-then",
    (
        "{name}: {slow_b} of {rounds} launches took more than 3.5 x as long as usual, and "
        "{slow_a} of the golden build's"
    ),
    cause="today's build is slow, always or intermittently",
    remedy="go back to the golden build; the samples of the gate's run name the launches",
)
NOTHING_COMPARED = Words(
    "software.nothing-compared",
    "nothing of the golden build and today's could be compared",
    remedy="see that both have a benchmark that `clustergate ab` knows",
)
AS_GOLDEN = Words(
    "software.as-golden",
    (
        "no slowdown by {ruled_out:whole_percent} against the golden build: "
        "{wholes:benchmark|benchmarks} and {sizes:single size|single sizes} in {rounds} rounds in "
        "turn ({node_seconds:.0f} node-seconds){absent}"
    ),
)


def evidence_from_contest(
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
    worst = [_slower(SOFTWARE_SLOWER, stack, one) for one in _worst(beyond)]
    evidence = [*more_worse(part, worst)]
    evidence += [
        Evidence(part, Verdict.REGRESSION, (NOW_AND_THEN(**vars(one)),)) for one in faults[:_NAMED]
    ]
    if evidence:
        # The launches ended with that.
        return evidence
    open_ = [_slower(SOMEWHAT_SLOWER, stack, one) for one in _worst(slower)[:_NAMED]]
    shown = (Relation.EQUIVALENT, Relation.A_BETTER)
    open_ += _undecided([x for x in costs if x.comparison.verdict not in shown])
    evidence += [Evidence(part, Verdict.INCONCLUSIVE, (why,)) for why in open_]
    wholes = [one for one in costs if one.whole]
    if not wholes:
        evidence.append(not_compared(stack, NOTHING_COMPARED()))
    if not evidence:
        sizes = [one for one in costs if not one.whole]
        why = AS_GOLDEN(
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


def _slower(words: Words[...], stack: str, one: Cost) -> Reason:
    held = one.comparison
    return words(
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


SOFTWARE_UNDECIDED = Words(
    "software.undecided",
    (
        "{figure} takes {low:.2f} to {high:.2f} x as long as with the golden build "
        "({confidence:percent} interval): a slowdown by {margin:whole_percent} is possible"
    ),
    remedy="{needs}",
)
MAYBE_FAULTS = Words(
    "software.maybe-faults",
    (
        "{figure} mostly takes as long as with the golden build ({ratio:.2f} x), but a third of"
        " today's launches may be slow"
    ),
    cause=(
        "some of them took longer, half as long again where rounds scatter, or they are too few"
    ),
    remedy="{needs}",
)
MORE_UNDECIDED = Words(
    "software.more-undecided",
    "a slowdown of {figures:further figure|further figures} is not ruled out either",
    remedy="the same rounds would probably decide them",
)
SOFTWARE_UNTOLD = Words(
    "software.untold",
    "{figures:names} could not be compared with the golden build",
    cause="{why}",
    remedy="{remedy}",
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
            yield MAYBE_FAULTS(
                figure=one.name,
                ratio=held.ratio or 1.0,
                needs=needs,
                needed_s=one.needed_s,
            )
            continue
        yield SOFTWARE_UNDECIDED(
            figure=one.name,
            low=held.low or 1.0,
            high=held.high or 1.0,
            confidence=held.confidence,
            margin=TOLERATED if held.remark == RATHER_SLOWER else RULED_OUT,
            needs=needs,
            needed_s=one.needed_s,
        )
    if len(open_) > _NAMED:
        yield MORE_UNDECIDED(figures=len(open_) - _NAMED)
    for (said, remedy), names in untold.items():
        yield SOFTWARE_UNTOLD(figures=names, why=said, remedy=remedy)


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


MORE_WORSE = Words("gate.more-worse", "{figures:more is|more are} worse")


def more_worse(part: str, worse: Sequence[Reason]) -> Iterator[Evidence]:
    """Yield regressions, the worst of them first, and how many more there are."""
    for why in worse[:_WORSE_NAMED]:
        yield Evidence(part, Verdict.REGRESSION, (why,))
    if len(worse) > _WORSE_NAMED:
        more = MORE_WORSE(figures=len(worse) - _WORSE_NAMED)
        yield Evidence(part, Verdict.REGRESSION, (more,))
