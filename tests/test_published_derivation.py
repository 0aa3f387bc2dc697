"""What follows from measurements by the papers' formulas, on made ones."""

from dataclasses import replace

import pytest

from clustergate.core.model import METRICS
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
    found = quantities(*subjects)
    return {quantity[:6]: told for quantity, told in found.items() if quantity.startswith("NPB")}


def test_a_benchmark_follows_the_component_that_was_changed():
    # A third more memory bandwidth: 16.7 % more are half of it (Pase, section 7).
    before = subject("a", npb("CG", 300.0), npb("EP", 50.0), triad=18.0)
    after = subject("b", npb("CG", 350.0), npb("EP", 50.0), triad=24.0)
    component, percent = changed_component(before, after) or ("", 0.0)
    assert component == "memory"
    assert percent == pytest.approx(100 / 3)
    assert sensitivities(before, after) == {
        "NPB-CG": {"b": "0.5000 (memory +33 %)"},
        "NPB-EP": {"b": "0 (memory +33 %)"},
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
    assert row.values == {"outside": "77.50 % of 4000 MB/s; one launch, no interval"}
    assert not [r for r in derived_rows([outside], {}) if "link" in r.quantity]


def quantities(*subjects):
    """Return what is told of single launches, without the remark that they are."""
    return {
        row.quantity: {name: told.partition("; one launch")[0] for name, told in row.values.items()}
        for row in derived_rows(subjects)
    }


def by_processes(benchmark, metric, values, **conditions):
    return [
        figure(benchmark, metric, value, ranks=p, processes=p, **conditions)
        for p, value in values.items()
    ]


def test_the_efficiency_of_hpl_changes_with_the_processes():
    # The Opteron cluster of paper 000: 20 % less from 4 to 64.
    rates = by_processes("HPL_Tflops", "HPL_Tflops", {4: 0.4, 64: 5.12})
    found = quantities(subject("a", *rates))["efficiency of HPL in HPCC, relative change"]
    assert found == {"a": "-20.00 % from 4 to 64 processes"}


def test_applications_are_related_to_one_process():
    weak = by_processes("HPCCG", "performance_mflops", {1: 100.0, 2: 190.0, 4: 352.0})
    strong = by_processes("LAMMPS-lj-strong", "time_s", {1: 100.0, 2: 50.0, 4: 40.0})
    found = quantities(subject("a", *weak, *strong))
    assert found["HPCCG: weak efficiency, most processes"] == {"a": "88 % with 4 processes"}
    key = "LAMMPS-lj-strong: strong efficiency, "
    assert found[f"{key}most processes"] == {"a": "62.50 % with 4 processes"}
    assert found[f"{key}least"] == {"a": "62.50 % with 4 processes"}


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
    assert found[key] == {"a": "1.100 from 2 to 8 processes"}
    key = "gather of 10000 bytes, T/(p-1): largest over smallest"
    assert found[key] == {"a": "2 from 2 to 4 processes"}
    key = "gather of 10000 bytes, T over p: growth exponent"
    assert found[key] == {"a": "2.585 from 2 to 4 processes"}
    key = "ping-pong of 8 bytes with each rank: largest over smallest"
    assert found[key] == {"a": "1.200 over 3 partners"}


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
    assert found["Bcast time relative to intel"] == {"mvapich": "1.200 with 16777216 bytes"}


def test_npb_correlates_with_what_tells_of_a_component():
    found = quantities(
        subject("a", npb("MG", 100.0), gflops=300.0, triad=10.0),
        subject("b", npb("MG", 200.0), gflops=200.0, triad=20.0),
        subject("c", npb("MG", 300.0), gflops=100.0, triad=30.0),
    )
    told = found["NPB-MG: correlation with HPL over 3 configurations"]
    assert told == {"a": "-1"}
    assert "NPB-MG: correlation with STREAM triad over 3 configurations" in found


def scattered(one, launches, by=0.001):
    """Return a figure with launches that scatter by a part of it."""
    values = [one.value * (1 + by * (7 * k % 10 - 5)) for k in range(launches)]
    return replace(one, of_launches=values)


@pytest.mark.parametrize(
    ("launches", "told"),
    [
        (1, "one launch, no interval"),
        (5, "median of 5, no interval below 6"),
        (10, "median of 10, 212.3 to 213.8"),
    ],
)
def test_what_follows_from_launches_has_an_interval_or_says_why_not(launches, told):
    values = {64: 2.0, 1024: 6.0, 1 << 20: 5244.88}
    times = [scattered(one, launches) for one in curve("PingPong", "latency_us", values, 2)]
    rows = {row.quantity: row.values["a"] for row in derived_rows([subject("a", *times)])}
    found = rows["PingPong 1/beta, bandwidth of the fitted line"]
    assert found.partition("; ")[2] == told


def test_no_row_is_without_its_launches():
    """Whatever is derived tells of how many launches it is."""
    pair = [
        subject(
            name,
            *(scattered(one, 10) for of, metric, lower in BOTH
              for one in curve(of, metric, {8: lower, 1024: 2 * lower, 1 << 20: 300 * lower}, 2)),
            scattered(npb("CG", 300.0), 10), scattered(npb("MG", 30.0 + triad), 10),
            triad=triad,
        )
        for name, triad in (("a", 10.0), ("b", 20.0), ("c", 20.3))
    ]  # fmt: skip
    rows = derived_rows(pair)
    assert len({row.source for row in rows}) > 5
    for row in rows:
        for told in row.values.values():
            assert told == "1" or "of 10" in told or "one launch" in told, (row, told)


BOTH = [
    *((name, "bandwidth_mb_s", 1.0) for name in ("PingPong", "Exchange")),
    *((name, "time_us", 9.0) for name in ("bcast", "scatter")),
    *(("PingPong", "latency_us", 1.0), ("Bcast", "t_avg_us", 7.0)),
]


def test_words_say_in_how_many_launches_they_hold():
    """A dip that three of ten launches do not have, and a lead that turns in four."""
    dip = [40.0] * 7 + [99.0] * 3
    values = {64: [60.0] * 10, 1024: dip, 4096: [120.0] * 10}
    curves = [
        replace(one, of_launches=values[one.conditions["bytes"]])
        for one in curve("PingPong", "bandwidth_mb_s", {64: 60.0, 1024: 99.0, 4096: 120.0}, 2)
    ]
    flat = curve("PingPong", "bandwidth_mb_s", {64: 50.0, 1024: 50.0, 4096: 50.0}, 2)
    first = subject("a", *(scattered(one, 10, by=0.0) for one in flat))
    rows = {row.quantity: row.values for row in derived_rows([first, subject("b", *curves)])}
    assert rows["PingPong sizes at which the bandwidth dips"] == {
        "a": "none; so in 10 of 10 launches", "b": "1024; so in 7 of 10 launches",
    }  # fmt: skip
    lead = rows["PingPong beside a, up to the largest size"]["b"]
    assert lead == "ahead from 4096 bytes; median of 10, 64 to 4096"


def test_of_several_changed_components_the_one_that_matters_most_is_named():
    found = quantities(
        subject("a", npb("CG", 100.0), gflops=100.0, triad=20.0),
        subject("b", npb("CG", 105.0), gflops=120.0, triad=20.0),
        subject("c", npb("CG", 118.0), gflops=100.0, triad=24.0),
    )
    assert found["NPB-CG: most sensitive to"] == {"a": "the memory, of processor, memory"}
