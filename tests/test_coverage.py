"""What a run should have judged: layouts that references foresee, from plain data."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks.registry import every_check
from clustergate.core.model import (
    Case,
    CaseId,
    CaseRecord,
    CaseState,
    ConditionValue,
    Group,
    Judgement,
    Verdict,
)
from clustergate.core.reasons import Reason, in_words
from clustergate.judge.coverage import not_as_foreseen
from clustergate.judge.references.lookup import References, parse_references
from clustergate.judge.rules import LAUNCHES_SLOW_SHARE
from clustergate.run.gate.contract import case_requirements, open_reasons
from clustergate.run.judge import idle_cores
from clustergate.sites import modes
from clustergate.sites.modes import Mode, mode_named, used_shape
from clustergate.sites.shape import Shape
from tests.builders import case, complete_case, figure
from tests.described_partitions import described

SMOKE, MAINTENANCE = mode_named("smoke"), mode_named("maintenance")
HPL = CaseId("HplCheck", "alpha:node", "mpich")
LAUNCH: dict[str, ConditionValue] = {"mode": "smoke", "ranks": 8, "placement": "packed"}


def known(
    efforts: Mapping[str, str],
    check: str = "HplCheck",
    figure: str = "HPL.performance_gflops: [100.0, -0.05, null, Gflop/s]",
) -> References:
    """Return references of a check with mpich: an effort for each layout."""
    text = f"""\
$provenance:
  {check}:
    origin: published
    source: a table
{check}:
  $index: [$partition, $environ, reference_layout, reference_effort]
  alpha:node:
    mpich:
"""
    for layout, effort in efforts.items():
        text += f"      {layout}:\n        {effort}: {{{figure}}}\n"
    return parse_references(text, Path("alpha.yaml"), every_check())


EIGHT_CORES = Shape(8, 1)
FULL = known({"8-ranks-packed": "smoke"})


def ran(state: CaseState = CaseState.RAN, reason: str = "", **conditions: ConditionValue) -> Case:
    found: dict[str, ConditionValue]
    found = {**LAUNCH, **conditions} if state is not CaseState.NOT_AVAILABLE else {"mode": "smoke"}
    return case(state=state, reason=reason, conditions=found, partition="alpha:node")


def judged(
    *cases: Case,
    references: References = FULL,
    shape: Shape = EIGHT_CORES,
    why: str = "",
    mode: Mode = SMOKE,
) -> tuple[list[Case], list[Reason]]:
    partitions = [described("alpha:node", shape)]
    return not_as_foreseen([HPL], cases, references, mode, partitions, why)


def test_what_ran_as_foreseen_is_no_finding() -> None:
    assert judged(ran()) == ([], [])
    assert judged(ran(), references=References(Path("alpha.yaml"))) == ([], [])


def test_fewer_cores_than_the_references_foresee_are_a_finding() -> None:
    why = "this process may use 1 of the node's 8 cores (CPU affinity)"
    (lost,), notes = judged(ran(ranks=1), shape=Shape(1, 1), why=why)
    assert (lost.state, lost.check, lost.partition) == (
        CaseState.MISSING,
        *("HplCheck", "alpha:node"),
    )
    assert lost.reason.startswith(
        "alpha.yaml:8 expects 8-ranks-packed, and it ran with 1-ranks-packed: alpha:node has 1 "
        f"core now; {why}; run it as the references expect, or make references"
    )
    assert notes == []


def test_what_is_foreseen_and_not_available_any_more_is_a_finding() -> None:
    (lost,), _ = judged(ran(CaseState.NOT_AVAILABLE, "the wheel is gone"))
    assert "it did not run, as it is not available here (the wheel is gone)" in lost.reason


def test_planned_layout_never_run_is_not_foreseen() -> None:
    planned: dict[str, ConditionValue] = {"ranks": 8, "placement": "packed"}
    absent = case(state=CaseState.NOT_AVAILABLE, conditions=planned, partition="alpha:node")
    other = known({"8-ranks-packed": "maintenance"})
    assert judged(absent, references=other) == ([], [])
    assert judged(absent, ran()) == ([], [])
    (lost,), _ = judged(absent)
    assert "8-ranks-packed" in lost.reason


def test_foreseen_layout_beyond_a_jobs_nodes_is_a_finding() -> None:
    """What is foreseen and needs more nodes than a job may have is a finding."""
    why = (in_words("Slurm allows 1 node"),)
    of: dict[str, Any] = {"state": CaseState.NOT_AVAILABLE, "reasons": why, "conditions": LAUNCH}
    absent = case(partition="alpha:node", **of)
    (lost,), _ = judged(absent)
    assert "it did not run, as it is not available here (Slurm allows 1 node)" in lost.reason


@pytest.mark.parametrize("state", [CaseState.FAILED, CaseState.MISSING])
def test_what_failed_before_it_was_laid_out_is_told_once(state: CaseState) -> None:
    assert judged(case(state=state, partition="alpha:node")) == ([], [])
    assert judged(ran(state)) == ([], [])


def test_a_layout_of_another_effort_is_not_foreseen() -> None:
    both = known({"8-ranks-packed": "smoke", "2-ranks-packed-4-cores-each": "smoke+tuned=yes"})
    assert judged(ran(), references=both) == ([], [])
    tuned = ran(ranks=2, cores_per_rank=4, settings="tuned=yes")
    assert judged(tuned, references=both) == ([], [])
    (lost,), _ = judged(ran(ranks=2), references=both)
    assert "expects 8-ranks-packed, and it ran with 2-ranks-packed" in lost.reason
    maintenance = known({"8-ranks-packed": "maintenance"})
    assert judged(ran(ranks=2), references=maintenance) == ([], [])
    absent = ran(CaseState.NOT_AVAILABLE, "gone")
    assert judged(absent, references=maintenance) == ([], [])


def test_effort_pattern_foresees_its_layout_in_every_mode() -> None:
    (lost,), _ = judged(ran(ranks=2), references=known({"8-ranks-packed": '".*"'}))
    assert "expects 8-ranks-packed" in lost.reason


def test_counts_that_were_named_are_not_those_that_are_foreseen() -> None:
    why = "CLUSTERGATE_PROCESS_COUNTS names 3"
    (lost,), _ = judged(ran(ranks=3), why=why)
    assert f"it ran with 3-ranks-packed: alpha:node has 8 cores now; {why}; run it" in lost.reason


def test_every_size_of_a_sweep_is_foreseen() -> None:
    sizes = known({"2-ranks-packed": "smoke", "8-ranks-packed": "smoke"})
    assert judged(ran(ranks=2), ran(), references=sizes) == ([], [])
    (lost,), _ = judged(ran(ranks=2), references=sizes)
    assert "expects 8-ranks-packed, and it ran with 2-ranks-packed" in lost.reason


def test_excluded_nodes_explain_what_they_hold() -> None:
    fewer = Shape(2, 3, excluded=1)
    lost, (note,) = judged(ran(ranks=6), shape=fewer)
    assert lost == []
    assert str(note) == (
        "HplCheck with mpich: the references expect 8-ranks-packed, but alpha:node "
        "has 3 nodes besides 1 excluded one"
    )
    # Two cores hold two ranks, whoever is excluded.
    (found,), _ = judged(ran(ranks=6), references=known({"2-ranks-packed": "smoke"}), shape=fewer)
    assert found.reason.startswith("alpha.yaml:8 expects 2-ranks-packed")


def test_layouts_between_the_ends_are_not_missed() -> None:
    """An earlier version measured them and made references of them."""
    imb, nodes = dataclasses.replace(HPL, check="ImbMpi1Check"), Shape(4, 4)
    every = {
        f"{count}-ranks-{how}": "maintenance"
        for count in (2, 4, 8, 16)
        for how in nodes.placements()
        if nodes.holds(count, how)
    }
    references = known(every, imb.check, "PingPong.latency_us: [1.0, null, 0.1, us]")
    whole = described("alpha:node", nodes)
    cases = [
        dataclasses.replace(ran(ranks=count, placement=how, mode="maintenance"), check=imb.check)
        for count, how in modes.sweep(used_shape("maintenance", imb.check, whole), [nodes])
    ]
    of = references, MAINTENANCE, [whole]
    assert len(cases) < len(every)
    assert not_as_foreseen([imb], cases, *of) == ([], [])
    # What is at an end is missed, and all of HPL is on all cores.
    for place, one in enumerate(cases):
        (lost,), _ = not_as_foreseen([imb], [*cases[:place], *cases[place + 1 :]], *of)
        gone = f"{one.conditions['ranks']}-ranks-{one.conditions['placement']}"
        assert f"expects {gone}, and it ran with" in lost.reason
    (lost,), _ = judged(
        ran(ranks=4, mode="maintenance"),
        mode=MAINTENANCE,
        references=known({"8-ranks-packed": "maintenance"}),
    )
    assert "expects 8-ranks-packed" in lost.reason


def test_references_of_two_sizes_are_used_as_they_fit() -> None:
    both = known({"8-ranks-packed": "smoke", "6-ranks-packed": "smoke"})
    for shape, ranks in ((Shape(2, 4), 8), (Shape(2, 3, excluded=1), 6)):
        assert judged(ran(ranks=ranks), references=both, shape=shape, mode=MAINTENANCE) == ([], [])
    # Nothing but an exclusion explains fewer nodes, and nothing a size between that was not run.
    (lost,), _ = judged(ran(ranks=6), references=both, shape=Shape(2, 3), mode=MAINTENANCE)
    assert "expects 8-ranks-packed, and it ran with 6-ranks-packed" in lost.reason
    (lost,), _ = judged(ran(ranks=4), references=both, shape=Shape(2, 4), mode=MAINTENANCE)
    assert "expects 8-ranks-packed, 6-ranks-packed, and it ran with 4" in lost.reason


def test_the_evaluation_of_a_paper_is_run_as_large_as_it_goes() -> None:
    mode = mode_named("published-000")
    partitions = [described("alpha:node", Shape(2, 1))]
    references = known({"8-ranks-packed": '".*"'})
    assert not_as_foreseen([HPL], [ran(ranks=2)], references, mode, partitions) == ([], [])


SMALL = """\
$provenance:
  HplCheck/alpha:node/mpich/8-ranks-packed/smoke:
    origin: measured
    dates: [2026-11-01]
    samples: 5
    rule: median of 5 runs
    build: 3fa9c2d1
    nodes: [n1]
    n: 20000
HplCheck:
  $index: [$partition, $environ, reference_layout, reference_effort]
  alpha:node:
    mpich:
      8-ranks-packed:
        smoke: {HPL.performance_gflops: [100.0, -0.05, null, Gflop/s]}
"""


def solved(order: int, memory_gib: float) -> list[Case]:
    solved = figure("HPL", "performance_gflops", None, conditions={"n": order})
    ended = dataclasses.replace(ran(), figures=(solved,))
    partition = described("alpha:node", EIGHT_CORES, memory_bytes_per_node=int(memory_gib * 2**30))
    known_ = parse_references(SMALL, Path("alpha.yaml"), every_check())
    lost, notes = not_as_foreseen([HPL], [ended], known_, SMOKE, [partition], "this process may")
    assert notes == []
    return lost


def test_a_smaller_matrix_for_want_of_memory_is_a_finding() -> None:
    # Half of 2 GiB holds N=11585.
    (lost,) = solved(11520, 2.0)
    assert lost.reason.startswith(
        "alpha.yaml:13 is for N=20000, but this run solved N=11520: alpha:node has memory for "
        "N=11585 now; this process may; run it as the references expect"
    )
    # What is free differs from run to run, and a slower clock is no want of memory.
    assert solved(18500, 2.0) == []
    assert solved(11520, 64.0) == []
    assert solved(20000, 64.0) == []


# --- what a mode must see judged ----------------------------------------------------------------

NODE = described("alpha:node", EIGHT_CORES, "mpich", "openmpi")


def test_foreseen_layout_beyond_the_mode_is_a_note() -> None:
    """What references foresee of more nodes than the mode uses is a note."""
    both = known({"8-ranks-packed": "smoke", "80-ranks-packed": "smoke"})
    lost, notes = judged(ran(), references=both, shape=Shape(8, 10))
    assert lost == []
    assert list(map(str, notes)) == [
        "HplCheck with mpich: the references expect 80-ranks-packed, but the mode "
        "smoke runs it on one node of alpha:node; `--mode maintenance` runs it on all of them"
    ]
    # What no longer fits the partition at all is missing as ever.
    lost, notes = judged(ran(), references=both, shape=Shape(8, 9))
    assert "expects 80-ranks-packed" in lost[0].reason


REQUIRED = modes.expected_cases(MAINTENANCE.checks, [NODE], MAINTENANCE)


LeftOut = Mapping[tuple[str, str], tuple[str, str]]


def not_judged(cases: list[Case], left_out: LeftOut | None = None) -> int:
    return sum(
        not item.judged for item in case_requirements(MAINTENANCE, REQUIRED, cases, left_out or {})
    )


def complete(key: CaseId, verdict: Verdict = Verdict.PASS, **conditions: ConditionValue) -> Case:
    return complete_case(key, MAINTENANCE, verdict, **{"ranks": 8, **conditions})


ALL = [complete(key) for key in REQUIRED]


def test_every_case_of_every_stack_and_partition_must_be_judged() -> None:
    # IMB on 2 ranks and on all 8.
    assert len(REQUIRED) == 2 * (2 + 2)
    found = case_requirements(MAINTENANCE, REQUIRED, ALL, {})
    assert {(item.judged, item.by) for item in found} == {(True, "its references")}
    assert open_reasons(found) == []
    assert not_judged(ALL[1:]) == 1
    elsewhere = dataclasses.replace(ALL[0], partition="alpha:other")
    assert not_judged([elsewhere, *ALL[1:]]) == 1
    assert not_judged([]) == len(REQUIRED)


@pytest.mark.parametrize("state", [CaseState.FAILED, CaseState.MISSING, CaseState.NOT_AVAILABLE])
def test_what_did_not_run_was_not_judged(state: CaseState) -> None:
    assert not_judged([dataclasses.replace(ALL[0], state=state, figures=()), *ALL[1:]]) == 1


def test_what_is_not_available_says_what_would_help() -> None:
    lost = dataclasses.replace(
        ALL[0], state=CaseState.NOT_AVAILABLE, reasons=(in_words("no wheel"),)
    )
    (told,) = map(str, open_reasons(case_requirements(MAINTENANCE, REQUIRED, [lost, *ALL[1:]], {})))
    assert told == (
        "HplCheck with mpich: not available here: no wheel; provide what is missing, or let the "
        "site config waive it with the reason"
    )


@pytest.mark.parametrize(
    "verdict", [Verdict.NO_REFERENCE, Verdict.INCONCLUSIVE, Verdict.INVALID, Verdict.IMPOSSIBLE]
)
def test_what_has_no_verdict_was_not_judged(verdict: Verdict) -> None:
    assert not_judged([complete(REQUIRED[0], verdict), *ALL[1:]]) == 1
    assert not_judged([complete(REQUIRED[0], Verdict.REGRESSION), *ALL[1:]]) == 0


def test_benchmark_slow_in_some_launches_was_not_judged() -> None:
    slow = LAUNCHES_SLOW_SHARE(slow=6, launches=8, others=2, times=3.0)
    undecided = complete(REQUIRED[0], Verdict.INCONCLUSIVE)
    group = Group("HPL", 3, None, 0.1, Judgement(Verdict.INCONCLUSIVE, (slow,)))
    assert not_judged([dataclasses.replace(undecided, groups=(group,)), *ALL[1:]]) == 1
    passed = dataclasses.replace(ALL[0], groups=(group,))
    assert not_judged([passed, *ALL[1:]]) == 1


@pytest.mark.parametrize("settings", ["n=1500", "tuned=yes,nb=96", "benchmarks=['PingPong']"])
def test_another_question_is_not_the_one_that_must_be_judged(settings: str) -> None:
    """A pattern of efforts in the reference file may judge it all the same."""
    changed = complete(REQUIRED[0], settings=settings)
    (told,) = map(
        str, open_reasons(case_requirements(MAINTENANCE, REQUIRED, [changed, *ALL[1:]], {}))
    )
    assert told == (
        f"HplCheck with mpich: it ran with {settings}, which the mode maintenance does not set; "
        "run the gate without that setting"
    )
    assert not_judged([complete(REQUIRED[0], settings="tuned=yes"), *ALL[1:]]) == 0


def test_a_figure_that_is_not_there_was_not_judged() -> None:
    place = next(k for k, case in enumerate(ALL) if case.check == "HpccCheck")
    lost = dataclasses.replace(ALL[place], figures=ALL[place].figures[1:])
    cases = [*ALL[:place], lost, *ALL[place + 1 :]]
    (told,) = map(str, open_reasons(case_requirements(MAINTENANCE, REQUIRED, cases, {})))
    assert "HpccCheck with mpich: it left no figure of HPL_Tflops; see which option" in told


def test_one_process_alone_sends_nothing() -> None:
    place = next(k for k, case in enumerate(ALL) if case.check == "HpccCheck")
    kept = [
        f
        for f in ALL[place].figures
        if f.benchmark not in every_check()["HpccCheck"].between_processes
    ]
    alone = dataclasses.replace(complete(REQUIRED[place], ranks=1), figures=tuple(kept))
    assert not_judged([*ALL[:place], alone, *ALL[place + 1 :]]) == 0
    two = dataclasses.replace(alone, conditions={**alone.conditions, "ranks": 2})
    assert not_judged([*ALL[:place], two, *ALL[place + 1 :]]) == 1


def test_what_was_left_out_told_once_per_reason() -> None:
    why = ("left out, because the budget is 200s", "a budget of 40m covers everything")
    left_out = dict.fromkeys((("HpccCheck", "mpich"), ("ImbMpi1Check", "mpich")), why)
    cases = [case for case in ALL if (case.check, case.stack) not in left_out]
    (told,) = map(str, open_reasons(case_requirements(MAINTENANCE, REQUIRED, cases, left_out)))
    assert told == f"HpccCheck, ImbMpi1Check with mpich: {why[0]}; {why[1]}"
    assert not_judged(cases, left_out) == 3


def test_cores_that_a_site_config_leaves_idle_are_told() -> None:
    """Half of each node was measured, and passed, where nobody had corrected the site config."""
    record = CaseRecord(
        "c", "HplCheck", "mpich", "alpha:node", {}, details={"proof": {"hosts": ["n1.alpha", "n2"]}}
    )
    partitions = [described("alpha:node", Shape(4, 2)), described("alpha:fat", Shape(2, 2))]
    assert not list(idle_cores([record], {"n1": 4, "n2": 4, "n3": 64}, partitions))
    (told,) = idle_cores([record], {"n1": 8, "n2": 4}, partitions)
    assert "n1 has 8 cores, and the site config states 4 for each node of alpha:node" in str(told)
    half = dataclasses.replace(partitions[0], reserved_cores_per_node=4)
    assert not list(idle_cores([record], {"n1": 8, "n2": 8}, [half]))
