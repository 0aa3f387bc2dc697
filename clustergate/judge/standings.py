"""What became of each expectation in a run: met, missed, not decided, not compared, or not its own.

What a run had to compare and did not is never passed over: a name that no check has, a stack that
the site does not know, a figure that its case lacks. What is of another mode, stack or number of
nodes is counted, and leaves the status alone. The same holds for references that people wrote by
hand, in ReFrame's form. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.naming import Meaning, meaning_of, suggested_name
from clustergate.benchmarks.registry import benchmark_of, every_check
from clustergate.core.figures import name_of
from clustergate.core.model import (
    EXPECTATIONS,
    REFERENCES,
    Case,
    CaseState,
    Evidence,
    ExpectationStanding,
    Expected,
    Figure,
    Standing,
    Verdict,
)
from clustergate.core.notation import did_you_mean, listed, nearest
from clustergate.core.reasons import Facts, Reason, Words
from clustergate.core.texts import shape
from clustergate.judge.judging import FAR_OFF
from clustergate.judge.references.expectations import Expect
from clustergate.judge.references.lookup import Keys, References, effort_key, layout_key, matches
from clustergate.judge.references.validation import mode_of
from clustergate.sites.description import Partition
from clustergate.sites.modes import Mode, effort_of, every_mode, mode_named

_STANDINGS = {
    Verdict.PASS: Standing.MET,
    Verdict.REGRESSION: Standing.MISSED,
    Verdict.INCONCLUSIVE: Standing.UNDECIDED,
}
# Of what a gate runs everything: whatever is of others has been judged by nobody.
_ALL_IN_A_GATE = ("stack", "layout")
# Settings that a mode makes by itself.
_OWN_SETTINGS = ("", "tuned=yes")


@dataclass(frozen=True)
class _Compared:
    case: Case
    figure: Figure
    expected: Expected


def standings(
    expects: Iterable[Expect],
    cases: Sequence[Case],
    mode: Mode,
    stacks: Collection[str],
) -> tuple[ExpectationStanding, ...]:
    """Return what became of each expectation in a run of a mode.

    ``stacks`` are those of the site, whether they ran or not.
    """
    return tuple(_standing(one, cases, mode, stacks) for one in expects)


NO_FIGURE = Words(
    "expectation.no-figure",
    "no check measures {name!r}{meant}",
    remedy="names are those of the table, or a benchmark and a size; correct {where}",
)
NO_STACK = Words(
    "expectation.no-stack",
    "{name} is of the stack {stack!r}{meant}",
    cause="the site config has {known:names}",
    remedy="correct {where}",
)


def impossible(one: Expect, stacks: Collection[str]) -> Reason | None:
    """Return why no run can ever compare an expectation, None where one can."""
    name, where = one.expectation.name, one.expectation.where
    if one.meaning is None:
        question = did_you_mean(suggested_name(name))
        return NO_FIGURE(name=name, meant=question, where=where)
    if strange := [str(x) for x in one.only.get("stacks", ()) if x not in stacks]:
        question = did_you_mean(nearest(strange[0], stacks))
        facts: Facts = {
            "name": name,
            "stack": strange[0],
            "known": sorted(stacks),
            "meant": question,
        }
        return NO_STACK(**facts, where=where)
    return None


def _for_operators(mode: Mode) -> list[Mode]:
    """Return the modes that repeat no published study, of the site of one that ran."""
    return [mode_named(x, mode.chosen) for x, one in every_mode().items() if not one.as_published]


def is_measured(meaning: Meaning, mode: Mode) -> bool:
    """Tell whether a mode measures a figure, where nothing is set by hand."""
    of_mode = meaning.check in mode.checks
    return of_mode and meaning.is_measured(effort_of(mode, benchmark_of(meaning.check)))


BY_SETTINGS = Words(
    "expectation.by-settings",
    "no mode measures {name}",
    remedy="{check} does, with -- {options}",
)


def elsewhere(one: Expect, mode: Mode) -> Reason | None:
    """Return why an expectation is of another mode, None where it is of this one."""
    if one.meaning is None or (one.is_of_mode(mode.name) and is_measured(one.meaning, mode)):
        return None
    named = map(str, one.only.get("modes", ()))
    own = [mode_named(x, mode.chosen) for x in named] or _for_operators(mode)
    if modes := [x.name for x in own if is_measured(one.meaning, x)]:
        return _of_another(one, "mode", modes)
    if not one.meaning.options:
        return _of_another(one, "settings", [f"of {one.meaning.check}, by -S"])
    facts = {"check": one.meaning.check, "options": one.meaning.options, "by": "settings"}
    return BY_SETTINGS(name=one.expectation.name, **facts)


def _standing(
    one: Expect, cases: Sequence[Case], mode: Mode, stacks: Collection[str]
) -> ExpectationStanding:
    name = one.expectation.name
    compared = [
        _Compared(case, figure, stated)
        for case in cases
        for figure in case.figures
        for stated in figure.expected
        if stated.expectation == one.expectation
    ]
    if not compared and (why := impossible(one, stacks)):
        return ExpectationStanding(name, Standing.NOT_COMPARED, why)
    if not compared and (why := elsewhere(one, mode)):
        return ExpectationStanding(name, Standing.ELSEWHERE, why)
    assert one.meaning is not None
    ours = [case for case in cases if case.check == one.meaning.check]
    if not ours:
        why = _of_another(one, "check", [one.meaning.check])
        return ExpectationStanding(name, Standing.ELSEWHERE, why)
    ours = [case for case in ours if one.is_of_stack(case.stack, case.partition)]
    if not ours:
        of = [*one.only.get("stacks", ()), *one.only.get("partitions", ())]
        why = _of_another(one, "stack", list(map(str, of)))
        return ExpectationStanding(name, Standing.ELSEWHERE, why)
    alike = [case for case in ours if one.is_of_launch(case.conditions)]
    # Of what never ran nobody knows how it would have lain.
    if not alike and all(case.state is CaseState.RAN for case in ours):
        why = _of_another(one, "layout", _layout_of(one))
        return ExpectationStanding(name, Standing.ELSEWHERE, why)
    if lacking := _lacking(alike or ours, compared):
        return _lacked(one, lacking)
    return _of_compared(one, compared)


def _lacking(ours: Sequence[Case], compared: Sequence[_Compared]) -> list[Case]:
    """Return the cases of those stacks and partitions of which nothing was compared.

    A stack that is not available here lacks nothing, as long as another one is.
    """
    met = {(one.case.partition, one.case.stack) for one in compared}
    lacking = [case for case in ours if (case.partition, case.stack) not in met]
    absent = all(case.state is CaseState.NOT_AVAILABLE for case in lacking)
    return [] if compared and absent else lacking


EXPECTATION_NOT_COMPARED = Words(
    "expectation.not-compared",
    "{name} was not compared for {check} with {stacks:and}",
    cause="{why}",
    remedy="see why, or narrow {where}",
)


_MEANT = (CaseState.RAN, CaseState.NOT_LAUNCHED)


def _lacked(one: Expect, lacking: Sequence[Case]) -> ExpectationStanding:
    name = one.expectation.name
    by_hand = [str(case.conditions.get("settings", "")) for case in lacking]
    if all(text not in _OWN_SETTINGS for text in by_hand):
        why = _of_another(one, "settings", [f"not {listed(by_hand)}"])
        return ExpectationStanding(name, Standing.ELSEWHERE, why)
    # What is wrong is told before what was not launched, that before what is not here.
    case = max(lacking, key=lambda case: (case.state.broken, case.state in _MEANT))
    stacks = list(dict.fromkeys(case.stack for case in lacking))
    cause = "it left no such figure" if case.state is CaseState.RAN else case.reason
    facts: Facts = {"name": name, "check": case.check, "stacks": stacks, "why": cause}
    why = EXPECTATION_NOT_COMPARED(**facts, where=one.expectation.where)
    is_open = case.state is CaseState.NOT_LAUNCHED
    return ExpectationStanding(name, Standing.UNDECIDED if is_open else Standing.NOT_COMPARED, why)


EXPECTATION_FAR_OFF = Words(
    "expectation.far-off",
    "every {name} beats {expected:number} {unit} by {times:.0f} times or more",
    cause="a unit or decimal point is wrong, or it applies to other launches",
    remedy="correct {where}, or restrict it there, such as nodes: 2",
)


def _of_compared(one: Expect, compared: Sequence[_Compared]) -> ExpectationStanding:
    name = one.expectation.name
    worst = min(
        compared,
        key=lambda x: (-x.expected.judgement.verdict.severity, x.expected.better_by),
    )
    judgement = worst.expected.judgement
    of = ", ".join(filter(None, [worst.case.stack, shape(worst.case)]))
    standing = _STANDINGS.get(judgement.verdict, Standing.NOT_COMPARED)
    why = judgement.reasons[0]
    # Where the network is meant, memory is no answer; where a unit or a point slipped, nothing is.
    least = min(x.expected.better_by for x in compared)
    if standing is Standing.MET and least >= math.log(FAR_OFF):
        standing = Standing.NOT_COMPARED
        of_all: Facts = {
            "name": name,
            "times": math.exp(least),
            "expected": one.expectation.value,
        }
        where: Facts = {"unit": one.expectation.unit, "where": one.expectation.where}
        why = EXPECTATION_FAR_OFF(**of_all, **where)
    elif standing is Standing.NOT_COMPARED:
        why = why.at(name)
    return ExpectationStanding(name, standing, why, of)


def _layout_of(one: Expect) -> list[str]:
    words = {"nodes": "nodes: {}", "ranks": "ranks: {}", "placement": "placement: {}"}
    return [
        text.format(" or ".join(map(str, one.only[key])))
        for key, text in words.items()
        if key in one.only
    ]


EXPECTATION_ELSEWHERE = Words(
    "expectation.elsewhere", "{name} applies to another {by}: {what:names}"
)


def _of_another(one: Expect, by: str, what: Sequence[str]) -> Reason:
    return EXPECTATION_ELSEWHERE(name=one.expectation.name, by=by, what=list(what))


def not_compared(all_of: Iterable[ExpectationStanding], *, in_gate: bool = False) -> list[Evidence]:
    """Return what was to be compared and was not, as evidence against a run, or against a gate.

    That one judges all of its stacks and layouts: what is of another one has been judged by nobody.
    """
    return [
        Evidence(EXPECTATIONS, Verdict.INVALID, (one.reason,))
        for one in all_of
        if one.standing is Standing.NOT_COMPARED
        or (in_gate and one.reason.facts.get("by") in _ALL_IN_A_GATE)
    ]


# --- references that people wrote by hand ------------------------------------------------------

# Figures have similar names, and of a small size another one is not meant.
_ALIKE = 0.8


def never_compared(known: References, partitions: Sequence[Partition]) -> dict[Keys, Reason]:
    """Return which references, written by hand, no run can ever compare, each with the reason.

    ``partitions`` are all of the site. Those of a published study are of figures that it derives.
    """
    whys: dict[Keys, Reason] = {}
    chosen = partitions[0].checks if partitions else {}
    for keys in known.by_hand:
        name = mode_of(keys[4])
        mode = mode_named(name, chosen) if name in every_mode() else None
        if not (mode and mode.as_published) and (why := _never(keys, mode, partitions)):
            whys[keys] = _uncompared(known, [keys], why)
    return whys


def _never(keys: Keys, mode: Mode | None, partitions: Sequence[Partition]) -> str:
    check, partition, stack, _, effort, name = keys
    here = [one for one in partitions if matches(partition, one.fullname)]
    if not here:
        names = [one.fullname for one in partitions]
        return f"the site config has no such partition{did_you_mean(nearest(partition, names))}"
    if any(one.waived for one in here):
        return ""
    stacks = [name for one in here for name in one.stacks]
    # Whose nodes are all left out has none.
    if stacks and not any(matches(stack, one) for one in stacks):
        return f"no stack of {partition} is called so{did_you_mean(nearest(stack, stacks))}"
    meaning = meaning_of(name, check)
    if meaning is None:
        question = did_you_mean(suggested_name(name))
        # Of some checks it is not known of what their rows are.
        known = every_check().get(check)
        return f"no settings of {check} measure it{question}" if known and known.rows else ""
    if mode is None or effort != mode.name or is_measured(meaning, mode):
        return ""
    others = [x.name for x in _for_operators(mode) if is_measured(meaning, x)]
    instead = (
        f"unlike {listed(others)}"
        if others
        else (f"nor does any mode; by {meaning.options or '-S'} its key is {effort}+…")
    )
    return f"{effort} does not measure it, {instead}"


REFERENCES_ELSEWHERE = Words(
    "references.elsewhere",
    "{count:reference|references} written by hand for other cases than this run's",
    cause="another mode, stack or layout, such as {first}",
)


def of_references(
    known: References, cases: Sequence[Case], mode: Mode, partitions: Sequence[Partition]
) -> tuple[list[Evidence], list[Reason]]:
    """Return which references that people wrote by hand a run had to compare and did not.

    The evidence is against the run. Beside it stands, in one sentence, how many are of another
    mode, stack or layout. A published study is run as large as the machine allows.
    """
    if mode.as_published or not known.by_hand:
        return [], []
    never = never_compared(known, partitions)
    ran = [case for case in cases if case.state is CaseState.RAN]
    whys, lost = list(never.values()), set(never)
    measured = [name_of(figure) for case in ran for figure in case.figures]
    for path, names in known.unmeasured(ran):
        keys = [(*path, name) for name in names]
        if own := [one for one in keys if one in known.by_hand and one not in never]:
            question = did_you_mean(nearest(own[0][-1], measured, _ALIKE))
            whys.append(_uncompared(known, own, f"the run left no such figure{question}"))
            lost.update(own)
    others = [x for x in known.by_hand if x not in lost and not any(_is_of(x, c) for c in cases)]
    counted_ones = [
        REFERENCES_ELSEWHERE(count=len(others), first=_named(known, others[0])) for _ in others[:1]
    ]
    return [Evidence(REFERENCES, Verdict.INVALID, (why,)) for why in whys], counted_ones


# Of one case alone they would say what only a run can.
_OF_A_RUN = (EXPECTATION_FAR_OFF.code,)


def left_out(
    known: References, case: Case, mode: Mode, partitions: Sequence[Partition]
) -> list[Reason]:
    """Return what people wrote that a case had to be compared with and was not.

    For who has no run that would tell it: a plain call of ReFrame.
    """
    stacks = dict.fromkeys(name for one in partitions for name in one.stacks)
    account = standings(known.expects, [case], mode, stacks)
    evidence, _ = of_references(known, [case], mode, partitions)
    whys = [why for one in (*not_compared(account), *evidence) for why in one.reasons]
    return [why for why in whys if why.code not in _OF_A_RUN]


def _is_of(keys: Keys, case: Case) -> bool:
    """Tell whether a reference is of a case that ran, or of one that is missing or failed."""
    check, partition, stack, layout, effort, _ = keys
    if check != case.check or not (
        matches(partition, case.partition) and matches(stack, case.stack)
    ):
        return False
    if case.state is not CaseState.RAN:
        return case.state is not CaseState.NOT_AVAILABLE
    conditions = case.conditions
    return matches(layout, layout_key(conditions)) and matches(effort, effort_key(conditions))


REFERENCES_NOT_COMPARED = Words(
    "references.not-compared",
    "{name} of {check} with {stack} was not compared",
    cause="{why}",
    remedy="correct {where}",
)


def _uncompared(known: References, keys: Sequence[Keys], why: str) -> Reason:
    more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
    facts: Facts = {"name": keys[0][-1] + more, "check": keys[0][0], "stack": keys[0][2]}
    return REFERENCES_NOT_COMPARED(**facts, why=why, where=known.line_of(*keys[0]))


def _named(known: References, keys: Keys) -> str:
    return f"{keys[-1]} of {keys[0]} with {keys[2]}, {keys[3]}, {keys[4]} ({known.line_of(*keys)})"
