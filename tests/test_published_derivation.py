"""What follows from measurements by the papers' formulas, on made ones."""

import pytest

from clustergate.derived import DerivedError
from clustergate.model import METRICS
from clustergate.published.derivation import changed_component, derived_rows
from clustergate.published.evidence import Measured, Subject


def figure(benchmark, metric, value, **conditions):
    of = METRICS[metric]
    told = {"ranks": 2, "nodes": 1, **conditions}
    return Measured(benchmark, metric, of.unit, of.better, value, told, benchmark, "2-ranks-packed")


def npb(benchmark, mops, problem_class="A", processes=2):
    conditions = {"processes": processes, "problem_class": problem_class}
    return figure(f"NPB-{benchmark}", "total_mop_per_s", mops, **conditions)


def subject(name, *more, gflops=100.0, triad=20.0):
    own = [
        figure("HPL", "performance_gflops", gflops),
        figure("STREAM", "bandwidth_gb_s", triad, kernel="triad"),
        # What a copy reaches is another matter.
        figure("STREAM", "bandwidth_gb_s", 99.0, kernel="copy"),
    ]
    return Subject(name, name, "local", [*own, *more])


def sensitivities(*subjects):
    rows = derived_rows(subjects)
    return {row.quantity[:6]: row.values for row in rows if row.quantity.startswith("NPB")}


def test_a_benchmark_follows_the_component_that_was_changed():
    # A third more memory bandwidth: 16.7 % more are half of it (Pase, section 7).
    before = subject("a", npb("CG", 300.0), npb("EP", 50.0), triad=18.0)
    after = subject("b", npb("CG", 350.0), npb("EP", 50.0), triad=24.0)
    assert changed_component(before, after) == ("memory", pytest.approx(100 / 3))
    assert sensitivities(before, after) == {
        "NPB-CG": {"b": "0.50 (memory +33 %)"},
        "NPB-EP": {"b": "0.00 (memory +33 %)"},
    }


def test_only_runs_of_the_same_class_and_processes_are_compared():
    before = subject("a", npb("CG", 300.0, "S"), npb("MG", 10.0), triad=18.0)
    after = subject("b", npb("CG", 350.0, "A"), npb("MG", 10.0, processes=4), triad=24.0)
    assert sensitivities(before, after) == {}


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"gflops": 100.0, "triad": 20.5}, "but: none"),
        ({"gflops": 120.0, "triad": 30.0}, "but: processor, memory"),
        ({"gflops": 0.0}, "the processor can do was not measured"),
    ],
)
def test_unless_one_component_alone_is_changed_nothing_is_sensitive(other, told):
    with pytest.raises(DerivedError, match=told):
        changed_component(subject("a"), subject("b", **other))


def test_the_network_counts_once_a_node_was_left():
    def pingpong(mb_s):
        return figure("PingPong", "bandwidth_mb_s", mb_s, nodes=2, bytes=1 << 20)

    with pytest.raises(DerivedError, match="the network can do was not measured"):
        changed_component(subject("a", pingpong(800.0)), subject("b"))
    found = changed_component(subject("a", pingpong(800.0)), subject("b", pingpong(400.0)))
    assert found == ("network", -50.0)


def test_a_link_is_filled_by_messages_between_nodes_alone():
    on_one_node = figure("PingPong", "bandwidth_mb_s", 9000.0, bytes=4194304)
    between = [
        figure("PingPong", "bandwidth_mb_s", mb_s, nodes=2, bytes=size)
        for size, mb_s in ((1024, 500.0), (4194304, 3100.0))
    ]
    inside, outside = subject("inside", on_one_node), subject("outside", on_one_node, *between)
    (row,) = [r for r in derived_rows([inside, outside], {"local": 4000.0}) if "link" in r.quantity]
    # 3100 of 4000 MB/s: paper 001, section V.
    assert row.values == {"outside": "77.50 % of 4000 MB/s"}
    assert not [r for r in derived_rows([outside], {}) if "link" in r.quantity]
