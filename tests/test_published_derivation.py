"""What follows from measurements by the papers' formulas, on made ones."""

import pytest

from clustergate.model import METRICS
from evaluations.derivation import changed_component, derived_rows
from evaluations.derived import DerivedError
from evaluations.evidence import Measured, Subject


def figure(benchmark, metric, value, **conditions):
    of = METRICS.get(metric, METRICS["performance_gflops"])
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
    component, percent = changed_component(before, after) or ("", 0.0)
    assert component == "memory"
    assert percent == pytest.approx(100 / 3)
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


def quantities(*subjects):
    return {row.quantity: row.values for row in derived_rows(subjects)}


def by_processes(benchmark, metric, values, **conditions):
    return [
        figure(benchmark, metric, value, ranks=p, processes=p, **conditions)
        for p, value in values.items()
    ]


def test_the_efficiency_of_hpl_changes_with_the_processes():
    # The Opteron cluster of paper 000: 20 % less from 4 to 64.
    rates = by_processes("HPL_Tflops", "HPL_Tflops", {4: 0.4, 64: 5.12})
    found = quantities(subject("a", *rates))["efficiency of HPL in HPCC, relative change"]
    assert found == {"a": "-20.0 % from 4 to 64 processes"}


def test_applications_are_related_to_one_process():
    weak = by_processes("HPCCG", "performance_mflops", {1: 100.0, 2: 190.0, 4: 352.0})
    strong = by_processes("LAMMPS-lj-strong", "time_s", {1: 100.0, 2: 50.0, 4: 40.0})
    found = quantities(subject("a", *weak, *strong))
    assert found["HPCCG: weak efficiency"] == {
        "a": "88.0 % with 4 processes; least 88.0 % with 4",
    }
    assert found["LAMMPS-lj-strong: strong efficiency"] == {
        "a": "62.5 % with 4 processes, speed-up 2.5; least 62.5 % with 4"
    }


def test_fewer_processes_that_are_no_power_of_two_cost_what_was_printed():
    # Paper 002, section 6.3: 17 ms of 16 MB.
    times = {32: 90_000.0, 40: 117_000.0, 64: 100_000.0}
    allreduce = by_processes("Allreduce", "t_avg_us", times, bytes=1 << 24)
    small = by_processes("Allreduce", "t_avg_us", {40: 1.0, 64: 9.0}, bytes=8)
    found = quantities(subject("a", *allreduce, *small))["Allreduce, penalty of no power of two"]
    assert found == {"a": "17000 us: 40 beside 64 processes, 16777216 bytes"}


def test_how_constant_the_models_of_collectives_make_their_times():
    bcast = by_processes("bcast", "time_us", {2: 10.0, 4: 20.0, 8: 33.0}, bytes=8)
    gather = by_processes("gather", "time_us", {2: 10.0, 4: 60.0}, bytes=10_000)
    peers = [
        figure("ping_pong", "time_us", time, processes=4, peer=k, bytes=8)
        for k, time in enumerate((5.0, 5.0, 6.0), 1)
    ]
    found = quantities(subject("a", *bcast, *gather, *peers))
    key = "bcast of 8 bytes, T/(log2 p): largest over smallest"
    assert found[key] == {"a": "1.1 from 2 to 8 processes"}
    key = "gather of 10000 bytes, T/(p-1): largest over smallest"
    assert found[key] == {"a": "2 from 2 to 4 processes"}
    key = "ping-pong of 8 bytes with each rank: largest over smallest"
    assert found[key] == {"a": "1.2 over 3 partners"}


def curve(benchmark, metric, values, processes=64):
    return [
        figure(benchmark, metric, value, ranks=processes, processes=processes, bytes=size)
        for size, value in values.items()
    ]


def test_where_two_libraries_cross_and_how_far_they_are_apart():
    first = subject(
        "intel",
        *curve("Bcast", "t_avg_us", {1024: 5.0, 16777216: 15000.0}),
        *curve("Exchange", "bandwidth_mb_s", {1024: 100.0, 65536: 1000.0, 1 << 20: 1500.0}),
        # What only one of them measured tells nothing.
        *curve("Bcast", "t_avg_us", {16777216: 1.0}, processes=128),
    )
    second = subject(
        "mvapich",
        *curve("Bcast", "t_avg_us", {1024: 4.0, 16777216: 18000.0}),
        *curve("Exchange", "bandwidth_mb_s", {1024: 90.0, 65536: 1200.0, 1 << 20: 1490.0}),
    )
    found = quantities(first, second)
    told = found["Exchange beside intel, up to the largest size"]
    assert told == {"mvapich": "alike from 1048576 bytes"}
    told = found["Bcast beside intel, up to the largest size"]
    assert told == {"mvapich": "behind from 16777216 bytes"}
    # Paper 001: 18 of 15 ms.
    assert found["Bcast time relative to intel"] == {"mvapich": "1.2 with 16777216 bytes"}


def test_npb_correlates_with_what_tells_of_a_component():
    found = quantities(
        subject("a", npb("MG", 100.0), gflops=300.0, triad=10.0),
        subject("b", npb("MG", 200.0), gflops=200.0, triad=20.0),
        subject("c", npb("MG", 300.0), gflops=100.0, triad=30.0),
    )
    told = found["NPB-MG: correlation over 3 configurations"]
    assert told == {"a": "-1.00 with HPL, 1.00 with STREAM triad"}


def test_of_several_changed_components_the_one_that_matters_most_is_named():
    found = quantities(
        subject("a", npb("CG", 100.0), gflops=100.0, triad=20.0),
        subject("b", npb("CG", 105.0), gflops=120.0, triad=20.0),
        subject("c", npb("CG", 118.0), gflops=100.0, triad=24.0),
    )
    assert found["NPB-CG: most sensitive to"] == {"a": "the memory, of processor, memory"}
