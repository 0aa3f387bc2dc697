"""What a gate promises of benchmarks, stacks and kinds, and what keeps it."""

import dataclasses
import math

import pytest

from clustergate.core.model import Case, CaseState, Conditions, Promise
from clustergate.judge.changes import HIDDEN
from clustergate.judge.promises import (
    LARGEST,
    foreseen,
    limit_of,
    of_cases,
    of_wholes,
    to_launch_again,
    why_open,
    with_kept,
)
from clustergate.judge.rules import Comparison
from tests.test_judge import STACKS, comparison, places


def of_all(of: Comparison) -> list[Promise]:
    return [*(promise for _, promise in of_cases(of)), *of_wholes(of)]


def test_unchanged_machine_keeps_all() -> None:
    promises = of_all(comparison())
    # HPL and two benchmarks, each by its name and that with its metric, and stacks and kinds.
    assert len(promises) == 2 * 2 * 3 + 4
    assert all(one.kept for one in promises)
    assert {why_open(one) for one in promises} == {None}


@pytest.mark.parametrize("by", [0.25, 0.5])
@pytest.mark.parametrize("seed", range(1, 6))
def test_slower_benchmark_breaks_its_own(by: float, seed: int) -> None:
    at = places(stack="mpich", benchmark="PingPong")
    broken = [one for one in of_all(comparison((at, by), seed=seed)) if not one.kept]
    assert {("PingPong", ("mpich",))} <= {(one.name, one.of) for one in broken}
    assert not any(one.of == ("intel-mpi",) for one in broken)


def test_limit_is_known_before_the_run() -> None:
    first, second = (comparison(change) for change in ((), (places(stack="mpich"), 0.3)))
    assert [limit_of(one) for one in first.changes] == [limit_of(one) for one in second.changes]
    assert all(limit_of(one) >= HIDDEN for one in first.changes)


def test_limit_of_what_nobody_knows() -> None:
    unknown = dataclasses.replace(comparison().changes[0], freedom=0.0)
    assert limit_of(unknown) == math.inf


@pytest.mark.parametrize(
    ("limit", "at_most", "code"),
    [
        (math.inf, math.inf, "promise.unknown"),
        (LARGEST + 0.01, 0.01, "promise.too-short"),
        (0.10, 0.12, "promise.broken"),
    ],
)
def test_why_a_promise_is_open(limit: float, at_most: float, code: str) -> None:
    why = why_open(Promise("benchmark", "PingPong", ("mpich",), limit, at_most, kept=False))
    assert why is not None
    assert why.code == code
    assert "PingPong" in why.without_remedy


def test_limits_are_told_before_the_run() -> None:
    of = "benchmark", "Barrier.t_avg_us", ("mpich",)
    promises = [
        Promise("stack", "mpich", ("mpich",), math.log(1.10), 0.0, kept=True),
        Promise("benchmark", "PingPong", ("mpich",), math.log(1.12), 0.0, kept=True),
        Promise("benchmark", "Bcast", ("mpich",), math.log(1.19), 0.5, kept=False),
        Promise(*of, math.log(1.204), 0.0, kept=False),
        Promise("kind", "latency", ("mpich",), math.inf, math.inf, kept=False),
    ]
    cannot, hides = foreseen(promises)
    assert cannot.without_remedy == (
        "this baseline promises nothing of Barrier with mpich (20%), latency"
    )
    assert "golden build" in cannot.remedy
    assert str(hides) == "a slow-down may hide below 19% of a benchmark, 10% of a stack"
    assert foreseen([]) == []
    assert [one.code for one in foreseen(promises[:1])] == ["promise.hides"]


def case(*promises: Promise, stack: str = "mpich") -> Case:
    return Case("ImbMpi1Check", stack, CaseState.RAN, partition="a:b", promises=promises)


KEPT = Promise("benchmark", "PingPong", ("mpich",), 0.10, 0.02, kept=True)
BROKEN = dataclasses.replace(KEPT, at_most=0.14, kept=False)


def test_what_is_launched_again_for_a_promise() -> None:
    short = dataclasses.replace(BROKEN, limit=LARGEST + 0.01)
    assert to_launch_again([case(KEPT), case(short)], {}) == {}
    launched = to_launch_again([case(BROKEN), case(KEPT, stack="openmpi")], {})
    assert [(key.stack, said) for key, said in launched.items()] == [
        ("mpich", "PingPong may be 15% slower")
    ]
    whole = dataclasses.replace(BROKEN, level="stack", name="mpich")
    both = [case(KEPT), case(KEPT, stack="openmpi")]
    assert {key.stack for key in to_launch_again(both, {"a:b": (whole,)})} == {"mpich"}
    assert to_launch_again(both, {"a:other": (whole,)}) == {}


@pytest.mark.parametrize("stack", STACKS)
def test_broken_promise_of_a_kind_names_the_stack_that_broke_it(stack: str) -> None:
    """All stacks hold a kind, and one that is as it was can neither keep nor break it."""
    broken = [
        one
        for one in of_wholes(comparison((places(stack=stack), 0.6)))
        if one.level == "kind" and not one.kept
    ]
    assert broken
    assert all(len(one.of) == len(STACKS) for one in broken)
    assert {key[2] for one in broken for key in one.slow_in} == {stack}


def test_only_what_broke_a_promise_is_launched_again() -> None:
    conditions: Conditions = {"mode": "maintenance", "ranks": 16, "placement": "packed"}
    cases = [
        dataclasses.replace(case(KEPT, stack=stack), conditions=conditions)
        for stack in ("mpich", "openmpi")
    ]
    slow = ("ImbMpi1Check", "a:b", "openmpi", "16-ranks-packed", "maintenance")
    kind = dataclasses.replace(
        BROKEN, level="kind", name="latency", of=("mpich", "openmpi"), slow_in=(slow,)
    )
    assert [key.stack for key in to_launch_again(cases, {"a:b": (kind,)})] == ["openmpi"]
    # Where nothing of it became slower by itself, all of it is launched again.
    untold = dataclasses.replace(kind, slow_in=())
    assert len(to_launch_again(cases, {"a:b": (untold,)})) == 2


def test_kept_once_is_kept() -> None:
    other = dataclasses.replace(BROKEN, name="Allreduce")
    assert with_kept([BROKEN, other], [KEPT]) == (KEPT, other)
    assert with_kept([KEPT], [BROKEN]) == (KEPT,)


def test_every_stack_is_promised() -> None:
    wholes = of_wholes(comparison())
    assert {one.of for one in wholes if one.level == "stack"} == {(one,) for one in STACKS}
    assert {one.name for one in wholes if one.level == "kind"} == {"HPL", "latency"}
