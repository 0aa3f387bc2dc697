import functools
from typing import Any

import pytest

from clustergate.core.model import Launch, NodeFacts, Row
from clustergate.core.reasons import in_words
from clustergate.judge.history.series import CaseKey, collect
from clustergate.judge.history.stored_runs import PastRun
from clustergate.sites.description import Partition
from tests import builders
from tests.builders import CONDITIONS, built, hpl, past_runs, ping, sample

record = functools.partial(
    builders.record, partition="alpha:node", check="ImbMpi1Check", details=built(nodes=["n2", "n1"])
)


def test_figure_over_runs_is_one_series_in_order():
    (found,) = collect(reversed(past_runs([record(ping(1.0)), record(ping(1.5))])))
    assert found.case == CaseKey("ImbMpi1Check", "alpha:node", "mpich", "2-ranks-packed", "smoke")
    assert found.case.path(found.name) == (
        "ImbMpi1Check/alpha:node/mpich/2-ranks-packed/smoke/PingPong.2p.8B.latency_us"
    )
    assert [point.run_id for point in found.points] == ["run00", "run01"]
    assert [point.estimate.value for point in found.points] == [1.0, 1.5]
    assert found.points[0].nodes == ("n1", "n2")
    assert found.points[0].build == "b1"


@pytest.mark.parametrize(
    ("path", "build"),
    [
        ("/home/state/builds/mpich-triad-0a1b2c/bin/triad", "0a1b2c"),
        ("/opt/spack/hpl-2.3-xyz/bin/xhpl", "b1"),
        ("", "b1"),
    ],
)
def test_a_program_compiled_for_itself_is_a_build_of_its_own(path: str, build: str) -> None:
    details = {"build_key": "b1", "program": {"path": path}, "proof": {"hosts": ["n1"]}}
    (found,) = collect(past_runs([record(ping(1.0), details=details)]))
    assert found.points[0].build == build


def test_the_order_of_the_matrix_is_known_of_hpl_and_hpcc_alone():
    solved = hpl(91.0)
    beside = sample("PTRANS_GBs", "PTRANS_GBs", 3.0, n=4416)
    found = collect(past_runs([record(solved, beside, check="HpccCheck")]))
    assert {series.points[0].matrix_order for series in found} == {8832}
    (single,) = collect(past_runs([record(ping(1.0))]))
    assert single.points[0].matrix_order is None


def test_what_differs_in_stack_layout_or_effort_is_another_series():
    others: list[dict[str, Any]] = [
        {"stack": "openmpi"},
        {"partition": "alpha:gpu"},
        {"conditions": {**CONDITIONS, "ranks": 4}},
        {"conditions": {**CONDITIONS, "mode": "maintenance"}},
        {"conditions": {**CONDITIONS, "settings": "nb=384"}},
    ]
    found = collect(
        past_runs([record(ping(1.0)), *(record(ping(1.0), **other) for other in others)])
    )
    assert len(found) == 1 + len(others)
    assert all(len(series.points) == 1 for series in found)


def test_only_wanted_cases_are_collected():
    two = past_runs([record(ping(1.0)), record(ping(1.0), stack="openmpi")])
    (found,) = collect(two, wanted=lambda record: record.stack == "openmpi")
    assert found.case.stack == "openmpi"


def test_a_case_that_did_not_prove_itself_is_no_value_and_says_why():
    (found,) = collect(
        past_runs([record(ping(1.0)), record(complaints=[in_words("a rank was killed")])])
    )
    assert len(found.points) == 1
    assert found.left_out == {"run01": "a rank was killed"}


def test_unavailable_case_or_without_layout_passed_over():
    assert collect(past_runs([record(unavailable="no such program")])) == []
    assert collect(past_runs([record(ping(1.0), conditions={"mode": "smoke"})])) == []


def test_an_impossible_value_is_none():
    def bandwidth(value):
        two_nodes = {**CONDITIONS, "nodes": 2, "ranks_per_node": 1}
        return record(ping(value, 1 << 26, metric="bandwidth_mb_s"), conditions=two_nodes)

    (found,) = collect(
        past_runs([bandwidth(1e3), bandwidth(1e9)]), {"alpha:node": NodeFacts(link_mb_s=12500.0)}
    )
    assert [point.estimate.value for point in found.points] == [1e3]
    assert "exceeds the physical limit" in found.left_out["run01"]


def test_disturbed_launches_are_no_values():
    launches = [Launch(0, 0.0, 1.0), Launch(1, 1.0, 1.0, disturbed=in_words("others used 1 core"))]
    (found,) = collect(
        past_runs([record(ping(3.0, order=0), ping(1.0, order=1), launches=launches)])
    )
    assert found.points[0].launches == (3.0,)


def test_a_copy_of_a_run_is_no_further_run():
    """A baseline of five runs could be one run and four copies that somebody kept of it."""
    made = [record(ping(1.0), launches=[Launch(0, started, 1.0)]) for started in (1.5, 1.5, 2.5)]
    (found,) = collect(past_runs(made))
    assert [point.run_id for point in found.points] == ["run00", "run02"]
    assert found.left_out == {"run01": "it is a copy of the run run00"}


def test_a_repetition_within_a_run_is_no_further_run():
    run = PastRun("run", builders.START, [record(ping(1.0), name="a"), record(ping(2.0), name="b")])
    (found,) = collect([run])
    assert [point.estimate.value for point in found.points] == [1.0]


@pytest.mark.parametrize("word", ["out-of-mem", "time-out"])
def test_a_figure_that_was_not_measured_is_no_value(word):
    row = Row("IMB-MPI1", "PingPong", {"processes": 2, "bytes": 8}, {}, word)
    found = collect(past_runs([record(ping(1.0)), record(unmeasured=[row])]))
    assert [len(series.points) for series in found] == [1]


def test_who_was_launched_against_another_is_no_case_of_the_suite():
    side = record(ping(9.0), details={"build_key": "b1", "contender": "A"})
    (found,) = collect(past_runs([record(ping(1.0)), side]))
    assert [point.run_id for point in found.points] == ["run00"]


def test_each_partition_has_the_link_that_its_extras_state():
    known = {"link_mb_s": 12500.0, "cache_bytes_per_node": 1 << 25}
    for extras, facts in (
        ({"link_mb_s": 125.0}, NodeFacts(link_mb_s=125.0)),
        (known, NodeFacts(cache_bytes=1 << 25, link_mb_s=12500.0)),
        ({}, NodeFacts()),
    ):
        said = {"name": "p", "scheduler": "slurm", "launcher": "clustergate", "extras": extras}
        assert Partition.of(said, "alpha").facts == facts
        assert Partition.of(said, "alpha").fullname == "alpha:p"
