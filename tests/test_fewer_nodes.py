"""References for whatever is left: a drained node leaves the others what follows for them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import pytest

from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.figures import name_of
from clustergate.core.model import Better, Case, CaseRecord, Reference, Verdict
from clustergate.judge.judging import COMPARED
from clustergate.run.gate.contract import BY_REFERENCE, Control, Requirement, case_requirements
from tools.bench.gate import SEED, SETTING, machine_of
from tools.bench.judge import Judge, case_of, make_judge
from tools.bench.simulated_noise import BARE_METAL
from tools.bench.simulated_runs import (
    BASELINES,
    HPCC_CHECK,
    HPL_CHECK,
    IMB_CHECK,
    baseline_runs,
    form_of,
    later_run,
    past_runs,
)

RANKS = 32
RATES = ("performance_gflops", "HPL_Tflops")


@functools.cache
def judge() -> Judge:
    """Return what 20 days of 16 nodes make."""
    form = form_of(SETTING)
    made = baseline_runs(form, machine_of(BARE_METAL), BASELINES["20 days"], [SEED, 1])
    expected = [case.key for case in form.cases]
    partition = form.setting.partition(exclusive=True)
    return make_judge(past_runs(made), form.setting.mode, expected, partition)


@functools.cache
def later() -> Mapping[tuple[str, str], CaseRecord]:
    run = later_run(form_of(SETTING), machine_of(BARE_METAL), [SEED, 2])
    return {(one.check, one.stack): one for one in run.records}


def on_fewer(record: CaseRecord, nodes: int, slower: float = 1.0, per_node: int = 2) -> CaseRecord:
    """Return a record as of so many nodes, whose ranks have as much each, or are slower."""
    ranks = nodes * per_node
    conditions = {
        **record.conditions, "ranks": ranks, "nodes": nodes, "ranks_per_node": per_node
    }  # fmt: skip
    share = ranks / RANKS
    samples = []
    for one in record.samples:
        value = one.value * share if one.metric in RATES else one.value
        if one.better is not Better.NEITHER:
            value = value / slower if one.better is Better.HIGHER else value * slower
        samples.append(dataclasses.replace(one, value=value))
    return dataclasses.replace(record, conditions=conditions, samples=tuple(samples))


def found(record: CaseRecord, metric: str) -> Reference | None:
    (sample, *_) = [one for one in record.samples if one.metric == metric]
    of = record.check, record.partition, record.stack, record.conditions, sample
    return judge().references.find(*of)


def items(record: CaseRecord, control: Control) -> list[Requirement]:
    case = case_of(judge(), record)
    return case_requirements(judge().mode, [case.identity], [case], {}, lambda stack: control)


def verdicts_of(case: Case) -> Mapping[str, Verdict]:
    return {name_of(one): one.judgement.verdict for one in case.figures}


HPL = later()[HPL_CHECK, "mpich"]
HPCC = later()[HPCC_CHECK, "mpich"]
IMB = later()[IMB_CHECK, "mpich"]
METRIC = "performance_gflops"


def test_hpl_of_fewer_nodes_is_held_to_as_much_for_each() -> None:
    whole, fewer = found(HPL, METRIC), found(on_fewer(HPL, 15), METRIC)
    assert whole
    assert whole.baseline
    assert fewer
    assert fewer.baseline
    assert fewer.value == pytest.approx(whole.value * 15 / 16)
    assert fewer.baseline.values == pytest.approx([one * 15 / 16 for one in whole.baseline.values])
    assert fewer.origin.endswith("of 32 ranks, for as many as there are")
    assert fewer.doubt is None
    assert fewer.nodes == 15


@pytest.mark.parametrize(("slower", "verdict"), [(1.0, Verdict.PASS), (1.2, Verdict.REGRESSION)])
def test_present_judge_decides_by_it(slower: float, verdict: Verdict) -> None:
    judged = case_of(judge(), on_fewer(HPL, 15, slower))
    assert verdicts_of(judged)["HPL.performance_gflops"] is verdict


def test_answer_says_which_references_judged() -> None:
    (item,) = items(HPL, Control())
    assert item.by == BY_REFERENCE
    (item,) = items(on_fewer(HPL, 15), Control())
    assert item.judged
    assert item.by == f"{BY_REFERENCE} of 32 ranks, for as many as there are"


@pytest.mark.parametrize(
    ("nodes", "per_node"),
    [(13, 2), (8, 2), (17, 2), (15, 1), (16, 1), (31, 1)],
    ids=["too few", "half", "more", "half the cores", "cores", "nodes of one core"],
)
def test_what_does_not_follow_has_no_reference(nodes: int, per_node: int) -> None:
    assert found(on_fewer(HPL, nodes, per_node=per_node), METRIC) is None


def test_grid_that_is_flat_has_no_reference() -> None:
    """HPL of 1 x 31 processes is slower for each."""
    of = descriptor_of(HPL_CHECK).of_fewer_ranks
    assert of(METRIC, 31, 32) is None
    assert of(METRIC, 28, 32) == pytest.approx(28 / 32)
    assert of(METRIC, 29, 30) is None


def test_hpcc_is_judged_in_what_each_rank_has_and_told_what_is_open() -> None:
    record = on_fewer(HPCC, 15)
    for metric in ("HPL_Tflops", "StarDGEMM_Gflops", "SingleSTREAM_Triad",
                   "RandomlyOrderedRingLatency_usec"):  # fmt: skip
        assert found(record, metric) is not None, metric
    for metric in ("PTRANS_GBs", "MPIFFT_Gflops", "MPIRandomAccess_GUPs"):
        assert found(record, metric) is None, metric
    (item,) = items(record, Control())
    assert not item.judged
    # With a golden build that is equal and nodes as they were, the rest is judged by that.
    (item,) = items(record, Control("golden build"))
    assert item.judged
    assert item.by == f"{BY_REFERENCE} of 32 ranks, for as many as there are; golden build"


def test_collectives_of_fewer_nodes_have_no_reference() -> None:
    """Algorithms depend on the count of ranks, so nothing follows for another one."""
    judged = case_of(judge(), on_fewer(IMB, 15, per_node=1))
    assert not any(one.judgement.verdict in COMPARED for one in judged.figures)
    (item,) = items(on_fewer(IMB, 15, per_node=1), Control())
    assert item.unknown
