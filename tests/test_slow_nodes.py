"""Nodes of a run beside each other, by their own kernels, from the first run on."""

import dataclasses
import random
from collections.abc import Sequence

import pytest

from clustergate.core.model import CaseRecord, Evidence, Launch, Row, Run, Verdict
from clustergate.judge.slow_nodes import slow_nodes
from clustergate.report.summary import exit_meaning, status_of
from tests import builders

CORES = {"core_ids": "0,1"}


def rows(kernel: str, rate: float, drawn: random.Random) -> list[Row]:
    metric = "performance_gflops" if kernel == "fma_peak" else "bandwidth_gb_s"
    return [
        Row("node-peaks", kernel, CORES, {metric: rate * (1 + drawn.gauss(0, 0.003))})
        for _ in range(3)
    ]


def jobs(
    slow: dict[str, float],
    *,
    nodes: int = 16,
    times: int = 3,
    kernel: str = "fma_peak",
    seed: int = 1,
    processor: str = "one",
) -> list[CaseRecord]:
    """Return the cases of a run, so many on each node, some of which do a share less."""
    drawn = random.Random(seed)
    records = []
    kept: dict[str, list[Row]] = {}
    for k in range(times):
        for name in (f"n{n:02}" for n in range(nodes)):
            rate = 1000.0 * (1 - slow.get(name, 0.0))
            # What the first job measured in whole stands in all of them.
            whole = kept.setdefault(name, rows(kernel, rate, drawn))
            launch = Launch(0, 100.0 * k, 10.0, host=name)
            records.append(
                CaseRecord(
                    *(f"NpbCheck-{name}-{k}", "NpbCheck", "mpich", "alpha:node"),
                    {},
                    launches=[launch],
                    peaks=[*whole, *rows(kernel, rate, drawn)],
                    details={"processors": [processor]},
                )
            )
    return records


def named(records: Sequence[CaseRecord]) -> dict[str, Verdict]:
    return {one.of: one.verdict for one in slow_nodes(records, {})}


@pytest.mark.parametrize("kernel", ["fma_peak", "triad", "triad_glance"])
def test_a_node_that_does_less_each_time_is_named(kernel: str) -> None:
    by = 0.06 if kernel != "fma_peak" else 0.05
    assert named(jobs({"n07": by}, kernel=kernel)) == {"n07": Verdict.REGRESSION}


def test_what_was_measured_in_whole_once_counts_once() -> None:
    """A slow first job stood in the peaks of all later ones."""
    records = jobs({})
    slow = {id(r): r for r in jobs({"n07": 0.10}) if r.name.startswith("NpbCheck-n07")}
    (first, *_) = slow.values()
    whole = first.peaks[:3]
    records = [
        dataclasses.replace(one, peaks=[*whole, *one.peaks[3:]])
        if one.name.startswith("NpbCheck-n07")
        else one
        for one in records
    ]
    assert named(records) == {}


def test_shared_kernel_open_only_without_glances() -> None:
    """The triad is measured in whole once for each node, and its glance in every job."""
    records = []
    for k, one in enumerate(jobs({}, kernel="triad_glance")):
        rate = 0.93 if one.name == "NpbCheck-n07-0" else 1.0
        whole = rows("triad", 100.0 * rate, random.Random(k)) if k < 16 else []
        records.append(dataclasses.replace(one, peaks=[*whole, *one.peaks]))
    assert named(records) == {}


def test_of_fewer_jobs_it_is_not_confirmed() -> None:
    assert named(jobs({"n07": 0.05}, times=2)) == {"n07": Verdict.INCONCLUSIVE}


def test_equal_nodes_are_not_accused() -> None:
    assert not any(named(jobs({}, seed=seed)) for seed in range(30))


def test_nodes_of_another_processor_are_no_neighbours() -> None:
    others = jobs({f"n{k:02}": 0.3 for k in range(3)}, nodes=3, processor="another")
    assert named([*jobs({}, seed=2), *others]) == {}


def test_three_nodes_do_not_tell() -> None:
    assert named(jobs({"n01": 0.3}, nodes=3)) == {}


def test_a_site_tolerates_what_it_wrote() -> None:
    assert list(slow_nodes(jobs({"n07": 0.05}), {"compute": 0.10})) == []


def run(evidence: Sequence[Evidence]) -> Run:
    return builders.run(system="alpha", evidence=tuple(evidence))


def test_slow_node_fails_a_run_suspicion_leaves_it_open() -> None:
    (slow,) = slow_nodes(jobs({"n07": 0.05}), {})
    assert "less FMA peak and DGEMM than the median of 16 nodes, each time" in slow.sentence
    assert "drain n07" in slow.sentence
    assert status_of(run([slow])) == 1
    (looks,) = slow_nodes(jobs({"n07": 0.05}, times=1), {})
    assert "a node looks slow, which is not confirmed" in exit_meaning(run([looks]))
