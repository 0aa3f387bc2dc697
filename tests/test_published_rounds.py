"""Stacks launched in turn: a disturbance widens what is said of them, and turns nothing."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from clustergate.model import Better
from clustergate.sites.shape import Shape
from evaluations import study
from evaluations.evidence import Measured, Subject, merged
from evaluations.facts import load_paper
from evaluations.inference import Claim, Clause, Finding, Outcome, findings
from evaluations.plan import Part, parts_of, stacks_of, undecidable
from evaluations.predicates import Decision, cast, decide
from evaluations.sheet import Conclusion

NT, LINUX = "ncsa-nt-myrinet", "ahpcc-linux-myrinet"
# By paper 004 NT is ahead but in these.
LINUX_IS_AHEAD = {"bcast", "allgather", "alltoall"}


def rounds_of(
    ratio: float, busy: bool, seed: int, count: int = 12
) -> tuple[list[float], list[float]]:
    """Return what both took in each round; some are busy in whole, some a single launch."""
    lot = random.Random(seed)
    sides: tuple[list[float], list[float]] = ([], [])
    for k in range(count):
        of_round = 1 + (k // 3 % 2) * 2.0 if busy else 1.0
        for side, factor in zip(sides, (1.0, ratio), strict=True):
            own = 1 + (lot.random() < 0.5) * lot.expovariate(2.0) if busy else 1.0
            side.append(10 * factor * of_round * own * math.exp(lot.gauss(0, 0.01)))
    return sides


def asked(lower: Sequence[float], upper: Sequence[float], low: float = 1.0) -> Finding:
    [found] = findings([Clause([Claim(upper, lower, "b over a", low, in_turn=True)])])
    return found


def test_busy_rounds_say_the_same_as_quiet_ones_or_nothing():
    """A difference of half is found on a quiet node always, on a busy one often, turned never."""
    outcomes = {busy: Counter(asked(*rounds_of(1.5, busy, k, 16)).outcome for k in range(8))
                for busy in (False, True)}  # fmt: skip
    assert outcomes[False] == {Outcome.HOLDS: 8}
    assert outcomes[True][Outcome.HOLDS] > 2
    assert not outcomes[True][Outcome.DOES_NOT]


def test_nothing_is_called_better_where_nothing_differs():
    outcomes = Counter(asked(*rounds_of(1.0, True, seed)).outcome for seed in range(12))
    assert not outcomes[Outcome.HOLDS]


def test_a_busy_spell_is_the_same_for_both():
    """Launched one after the other, the spell of one would have been a difference."""
    spell = [level * (1 + k % 3 / 500) for level in (10.0, 30.0) for k in range(6)]
    later = [value * (1.0005 if k % 2 else 0.9995) for k, value in enumerate(spell)]
    assert asked(spell, later).outcome is Outcome.DOES_NOT
    assert asked(later, spell).outcome is Outcome.DOES_NOT


@pytest.mark.parametrize(
    ("low", "high", "ratio", "said"),
    [
        (2.0, math.inf, 3.0, Outcome.HOLDS),
        (2.0, math.inf, 1.5, Outcome.DOES_NOT),
        (2.0, math.inf, 2.0, Outcome.INCONCLUSIVE),
        (0.9, 1.1, 1.0, Outcome.HOLDS),
        (0.9, 1.1, 1.3, Outcome.DOES_NOT),
        (0.9, 1.1, 0.7, Outcome.DOES_NOT),
        (0.9, 1.1, 1.1, Outcome.INCONCLUSIVE),
    ],
)
def test_a_ratio_is_held_to_its_bounds(low, high, ratio, said):
    lower, upper = rounds_of(ratio, False, 1)
    [found] = findings([Clause([Claim(upper, lower, "b over a", low, high, in_turn=True)])])
    assert found.outcome is said


def test_too_few_rounds_say_how_many_more():
    lower, upper = rounds_of(1.5, False, 1)
    found = asked(lower[:4], upper[:4])
    assert (found.outcome, found.further) == (Outcome.INCONCLUSIVE, 6)


def system(stack: str, factor: Mapping[str, float], doubt: str = "") -> list[Subject]:
    """Return what a stack measured in each of twelve runs of one launch; some were disturbed."""
    tests = ["barrier", "bcast", "reduce", "allreduce", "scan", "scatter", "gather"]
    tests += ["allgather", "alltoall"]
    found = []
    for k in range(12):
        run = f"r{k:02}"
        figures = []
        for test in tests:
            for size in [None] if test == "barrier" else [8, 10_000, 1_000_000]:
                value = 10 * factor.get(test, 1.0) * (1 + k % 5 * 0.3) * (1 + k % 3 / 500)
                at = {"processes": 2, "ranks": 2, **({"bytes": size} if size else {})}
                name = f"{test}.{size}"
                figures.append(
                    Measured(test, "time_us", "us", Better.LOWER, value, at, name, "",
                             doubt if k % 2 else "", [] if doubt and k % 2 else [value],
                             {run: value}, frozenset({run} if doubt and k % 2 else ()))
                )  # fmt: skip
        found.append(Subject(f"{run}:{stack}", stack, "local", figures, runs=frozenset({run})))
    return found


def decided(doubt: str, linux: Mapping[str, float], missing: int | None = None) -> Outcome:
    subjects = [*system("a", {}, doubt), *system("b", linux, doubt)]
    if missing is not None:
        del subjects[missing]
    here = {one.stack: one for one in merged(subjects)}
    paper = load_paper("004")
    players = cast(paper, list(here.values()), {NT: here["a"], LINUX: here["b"]})
    [found] = decide(paper.predicates["p018"], players)
    return found.outcome


@pytest.mark.parametrize("doubt", ["", "others used a core"])
def test_a_conclusion_on_two_stacks_is_decided_by_all_rounds(doubt):
    slower = dict.fromkeys(["barrier", "reduce", "allreduce", "scan", "scatter", "gather"], 1.5)
    ahead = dict.fromkeys(LINUX_IS_AHEAD, 0.7)
    assert decided(doubt, {**slower, **ahead}) is Outcome.HOLDS
    assert decided(doubt, {**slower, **ahead, "bcast": 1.4}) is Outcome.DOES_NOT
    # A round that one of them lacks counts for neither.
    assert decided(doubt, {**slower, **ahead}, missing=14) is Outcome.HOLDS


def test_what_can_be_contradicted_alone_is_launched_again_where_it_looks_like_that():
    """Of five systems two are here; the T3E, said to be the best in scatter, is slower, or not."""
    paper = load_paper("004")
    for factor, said in ((1.5, True), (0.7, False)):
        runs = [*system("a", {})[:8], *system("b", {"scatter": factor})[:8]]
        here = {one.stack: one for one in merged(runs)}
        players = cast(paper, list(here.values()), {NT: here["a"], "cray-t3e600": here["b"]})
        [found] = decide(paper.predicates["p007"], players)
        assert found.outcome is Outcome.NOT_CHECKABLE
        assert bool(found.further) is said
        again = [study.Step(Part(("MpiTrialsCheck",), {"launches": 1}, is_round=True))] * 8
        check_of = {"scatter": "MpiTrialsCheck"}
        conclusion = Conclusion(paper.predicates["p007"], "", [found])
        assert bool(study.more_rounds(again, [conclusion], check_of)) is said


def gathered(disturbed: int, counts: Sequence[int] = (2, 4)) -> Decision:
    """Decide of 8 bytes that T/(p-1) is not constant, where it is; some rounds were disturbed."""
    runs = []
    for k in range(12):
        run, figures = f"r{k:02}", []
        for p in counts:
            is_busy = p == 4 and k < disturbed
            value = 10.0 * (p - 1) * (1 + k % 3 / 500) * (5 if is_busy else 1)
            figures.append(
                Measured("gather", "time_us", "us", Better.LOWER, value,
                         {"processes": p, "ranks": p, "bytes": 8}, f"gather.{p}p", "",
                         "others used a core" if is_busy else "", [] if is_busy else [value],
                         {run: value}, frozenset({run} if is_busy else ()))
            )  # fmt: skip
        runs.append(Subject(f"{run}:a", "a", "local", figures, runs=frozenset({run})))
    [found] = decide(
        load_paper("004").predicates["p023"], cast(load_paper("004"), merged(runs), {})
    )
    return found


def test_a_conclusion_on_one_stack_is_decided_by_undisturbed_rounds_alone():
    """What slows all its launches with four processes down is no trait of the stack."""
    assert gathered(0).outcome is Outcome.DOES_NOT
    assert gathered(6).outcome is Outcome.DOES_NOT
    assert gathered(12).outcome is Outcome.NOT_CHECKABLE
    assert "elsewhere its launches were disturbed, so run again" in gathered(12).sentence
    assert "run again" not in gathered(12, counts=(4,)).sentence
    assert "measured at 1 process count, and it takes 2" in gathered(12, counts=(4,)).sentence


def test_a_third_stack_takes_no_time_from_two_that_are_compared():
    known = ("mpich", "intel-mpi", "openmpi")
    for paper, roles, run in (
        ("001", {"westmere-m610-qdr-mvapich2": "mpich"}, ("mpich", "intel-mpi")),
        ("001", {}, known),
        ("004", {NT: "openmpi", LINUX: "mpich"}, ("mpich", "openmpi")),
        ("000", {"nec-sx8": "mpich"}, known),
    ):
        assert stacks_of(load_paper(paper), known, roles) == run


def test_a_plan_has_all_stacks_in_each_round():
    shape = Shape(2, 1)
    steps = study.steps_of(parts_of(load_paper("001"), shape, full=False))
    gate, *rounds = steps
    assert gate.part.gates
    assert [one.part.checks for one in rounds[:3]] == [
        ("ImbMpi1Check",), ("HplCheck",), ("HplCheck",),
    ]  # fmt: skip
    assert all(one.part.is_round and one.part.settings["launches"] == 1 for one in rounds)
    assert len(rounds) == 30


def test_a_plan_tells_what_can_only_be_contradicted_from_what_cannot_be_asked():
    """Two stacks on one node: an order of five systems may fail with two, and not hold."""
    paper = load_paper("004")
    roles = {NT: "a", LINUX: "b"}
    refused = undecidable(paper, Shape(2, 1), ["a", "b"], roles, full=False)
    assert paper.predicates.keys() - refused.keys() == {"p018"}
    assert {name for name, one in refused.items() if one.can_fail} == {
        "p002", "p009", "p012", "p015", "p022",
    }  # fmt: skip
    assert "stands for cray-t3e600" in refused["p020"].why


def test_only_what_is_inconclusive_is_launched_again():
    paper = load_paper("001")
    steps = [study.Step(Part(("ImbMpi1Check",), {"launches": 1}, is_round=True))] * 10
    steps += [study.Step(Part(("HplCheck",), {}, "published-001-tilings", is_round=True))]
    check_of = {"PingPong": "ImbMpi1Check", "HPL": "HplCheck"}
    paper_says = paper.predicates

    def conclusion(name: str, further: int | None) -> Conclusion:
        outcome = Outcome.INCONCLUSIVE if further else Outcome.HOLDS
        return Conclusion(paper_says[name], "", [Decision(outcome, "", "", further)])

    again = study.more_rounds(steps, [conclusion("p004", 3), conclusion("p013", None)], check_of)
    assert again == [steps[0]] * 3
    again = study.more_rounds(steps, [conclusion("p004", None), conclusion("p013", 90)], check_of)
    assert again == [steps[-1]] * 5
    assert study.more_rounds(steps, [conclusion("p004", None)], check_of) == []
