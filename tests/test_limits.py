import contextlib
import statistics
from dataclasses import replace
from functools import partial

import pytest

from clustergate.benchmarks.formats import parse as parse_any
from clustergate.benchmarks.hpcc import output as hpcc
from clustergate.benchmarks.hpccg.output import parse_hpccg
from clustergate.benchmarks.hpl.output import parse_hpl
from clustergate.benchmarks.imb import output as imb_text
from clustergate.benchmarks.lammps.output import parse_lammps
from clustergate.benchmarks.limits import Measurement
from clustergate.benchmarks.npb.output import parse_npb
from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.figures import reported, samples_of
from clustergate.core.model import (
    METRICS,
    Better,
    ConditionValue,
    Estimate,
    NodeFacts,
    OutputError,
    Reference,
    Row,
    Verdict,
)
from clustergate.judge.judging import judge
from clustergate.judge.node_peaks import relations
from clustergate.machine.kernels.peaks import parse_peaks
from clustergate.machine.peaks import nearest_ns, peaks_of
from tests import builders

MEBIBYTE = 1 << 20
# Two cores: FMA peak 60 alone and 100 together, DGEMM 50 and 90, triad 20 and 30.
RATES = {
    ("fma_peak", "0"): 60.0,
    ("fma_peak", "1"): 60.0,
    ("fma_peak", "0,1"): 100.0,
    ("dgemm", "0"): 50.0,
    ("dgemm", "1"): 50.0,
    ("dgemm", "0,1"): 90.0,
    ("triad", "0"): 20.0,
    ("triad", "1"): 20.0,
    ("triad", "0,1"): 30.0,
}
ONE_NODE = {"nodes": 1, "ranks_per_node": 2, "cores_per_rank": 1}
FACTS = NodeFacts(cache_bytes=32 * MEBIBYTE, link_mb_s=1000.0)


def rows(changed=None, k=192):
    """Return three trials of each peak: 1 % slower than its rate, as fast, 1 % faster."""
    found = []
    for (kind, core_ids), rate in {**RATES, **(changed or {})}.items():
        metric = "bandwidth_gb_s" if kind == "triad" else "performance_gflops"
        conditions: dict[str, ConditionValue] = {
            "cores": len(core_ids.split(",")),
            "core_ids": core_ids,
        }
        if kind == "dgemm":
            conditions["k"] = k
        for trial, factor in enumerate((0.99, 1.0, 1.01)):
            values = {metric: factor * rate}
            found.append(Row("node-peaks", kind, {**conditions, "trial": trial}, values))
    return found


PEAKS = peaks_of(rows())
# The fastest trial is 1 % above the median, and so the limit 2 % above that.
UPPER = 1.03


def limits_of(check, conditions, measured, peaks, node):
    return descriptor_of(check).limits(Measurement(check, conditions, measured, peaks, node))


def at_most(name, conditions=ONE_NODE, peaks=PEAKS, node=FACTS, check="HpccCheck", **own):
    """Return the limits by what was measured or stated, none of any processor's."""
    limits = limits_of(check, conditions, sample(name, **own), peaks, node)
    return [
        pytest.approx(limit.at_most)
        for limit in limits
        if limit.at_most and "no processor" not in limit.reason
    ]


def sample(name, value=1.0, **conditions):
    benchmark, _, metric = name.partition(".")
    return builders.sample(benchmark, metric or benchmark, value, **conditions)


def verdict(name, value, check="ImbMpi1Check", **own):
    measured = sample(name, value, **own)
    limits = limits_of(check, ONE_NODE, measured, PEAKS, FACTS)
    return judge(builders.estimate(value), measured.better, measured.unit, None, limits).verdict


# ------------------------------------------------------------------------------- intervals


def test_the_interval_of_a_peak_is_wider_than_its_trials():
    values = [100.0, 90.0, 101.0, 100.0, 99.0]
    conditions: dict[str, ConditionValue] = {"cores": 1, "core_ids": "3"}
    measured = [
        Row("node-peaks", "fma_peak", conditions, {"performance_gflops": v}) for v in values
    ]
    (peak,) = peaks_of(measured)
    assert peak.median == statistics.median(values)
    assert (peak.cores, peak.trials) == ((3,), 5)
    # Ten below the median again, and 2 % of the median, which is more than one above it.
    assert (peak.low, peak.high) == (80.0, 103.0)


def test_a_peak_of_fewer_than_three_trials_bounds_nothing():
    few = [row for row in rows() if row.conditions["trial"] < 2]
    assert peaks_of(few) == ()
    assert at_most("HPL.performance_gflops", peaks=peaks_of(few), nb=192) == []


def test_rows_from_before_and_after_a_benchmark_are_one_peak():
    slowed = rows({key: rate / 2 for key, rate in RATES.items()})
    both = peaks_of([*slowed, *rows()])
    assert [(p.kind, p.cores) for p in both] == [(p.kind, p.cores) for p in PEAKS]
    assert all(p.high >= alone.high for p, alone in zip(both, PEAKS, strict=True))
    assert relations(both) == ()


# --------------------------------------------------------------------------------- computing


def test_hpl_is_at_most_dgemm_and_the_fma_peak_of_all_cores():
    assert at_most("HPL.performance_gflops", nb=192) == [90 * UPPER, 100 * UPPER]
    assert at_most("HPL_Tflops", nb=192) == [0.09 * UPPER, 0.1 * UPPER]


def test_the_limits_of_hpl_hold_in_a_comparison_of_two_stacks():
    found = at_most("HPL.performance_gflops", check="AbHplCheck", nb=192)
    assert found == [90 * UPPER, 100 * UPPER]


def test_the_limits_of_hpl_grow_with_the_nodes():
    conditions = {**ONE_NODE, "nodes": 4}
    assert at_most("HPL.performance_gflops", conditions, nb=192) == [360 * UPPER, 400 * UPPER]


@pytest.mark.parametrize(("nb", "limits"), [(128, 2), (192, 2), (256, 1)])
def test_dgemm_bounds_hpl_with_no_larger_blocks_than_its_own(nb, limits):
    assert len(at_most("HPL.performance_gflops", nb=nb)) == limits


def test_the_dgemm_with_the_nearest_k_bounds_hpl():
    faster = {key: 1.1 * rate for key, rate in RATES.items() if key[0] == "dgemm"}
    larger = [row for row in rows(faster, k=384) if row.conditions.get("k")]
    peaks = peaks_of([*larger, *rows()])
    assert at_most("HPL.performance_gflops", peaks=peaks, nb=128)[0] == 90 * UPPER
    assert at_most("HPL.performance_gflops", peaks=peaks, nb=256)[0] == 99 * UPPER


def test_fewer_cores_may_run_at_higher_clocks():
    conditions = {**ONE_NODE, "ranks_per_node": 1}
    assert at_most("HPL.performance_gflops", conditions, nb=192) == [50 * UPPER, 60 * UPPER]
    threads = {**conditions, "cores_per_rank": 2}
    assert at_most("HPL.performance_gflops", threads, nb=192) == [90 * UPPER, 100 * UPPER]


def test_more_ranks_than_cores_are_no_faster():
    conditions = {**ONE_NODE, "ranks_per_node": 4}
    assert at_most("HPL.performance_gflops", conditions, nb=192) == [90 * UPPER, 100 * UPPER]


def test_a_disturbed_measurement_of_all_cores_is_no_limit():
    peaks = peaks_of(rows({("fma_peak", "0,1"): 50.0, ("dgemm", "0,1"): 40.0}))
    for ranks in (2, 4):
        conditions = {**ONE_NODE, "ranks_per_node": ranks}
        limits = at_most("HPL.performance_gflops", conditions, peaks, nb=192)
        assert limits == [100 * UPPER, 120 * UPPER]


def test_hpccs_dgemm_is_at_most_the_fma_peak_of_its_cores():
    assert at_most("StarDGEMM_Gflops") == [50 * UPPER]
    assert at_most("SingleDGEMM_Gflops") == [60 * UPPER]


@pytest.mark.parametrize(
    ("value", "expected"), [(92.6, Verdict.NO_REFERENCE), (92.8, Verdict.IMPOSSIBLE)]
)
def test_beyond_a_limit_means_beyond_its_interval(value, expected):
    assert verdict("HPL.performance_gflops", value, "HplCheck", nb=192) is expected


def test_impossible_value_within_a_one_sided_tolerance():
    reference = Reference(85.0, -0.1, None, "Gflop/s", "measured")
    measured = sample("HPL.performance_gflops", 170.0, nb=192)
    limits = limits_of("HplCheck", ONE_NODE, measured, PEAKS, FACTS)
    estimate = Estimate(170.0, None, None, confidence=0.0, samples=1)
    found = judge(estimate, Better.HIGHER, "Gflop/s", reference, limits)
    assert found.verdict is Verdict.IMPOSSIBLE
    assert "DGEMM with k=192 of 2 cores, 87.3 to 92.7 Gflop/s" in found.sentence


# ----------------------------------------------------------------------------------- memory


def test_stream_is_at_most_what_the_triad_moves():
    # Of arrays of 256 MiB over both processes, 32 MiB of two may stay in the caches.
    size = 16 * MEBIBYTE
    star = 1.5 * 30 * UPPER * (4 / 3) / (1 - 1 / 16) / 2
    # Two cores alone would move 40 GB/s, which is less than 1.5 times what they move together.
    by_cores = 2 * 20 * UPPER * (4 / 3) / (1 - 1 / 16) / 2
    assert at_most("StarSTREAM_Triad", vector_size=size) == [min(star, by_cores)]
    single = 20 * UPPER * (4 / 3) / (1 - 1 / 8)
    assert at_most("SingleSTREAM_Copy", vector_size=size) == [single]


def test_on_a_node_of_many_cores_memory_bounds_stream():
    conditions = {**ONE_NODE, "ranks_per_node": 64}
    size = MEBIBYTE
    expected = 1.5 * 30 * UPPER * (4 / 3) / (1 - 1 / 32) / 64
    assert at_most("StarSTREAM_Add", conditions, vector_size=size) == [expected]


def test_arrays_that_stay_in_the_caches_have_no_limit():
    below = 8 * MEBIBYTE - 1
    assert at_most("StarSTREAM_Triad", vector_size=below) == []
    assert len(at_most("StarSTREAM_Triad", vector_size=below + 1)) == 1
    assert at_most("SingleSTREAM_Triad", vector_size=below + 1) == []


def imb(benchmark, size, processes=2, node=FACTS, **conditions):
    return at_most(
        f"{benchmark}.bandwidth_mb_s",
        {**ONE_NODE, **conditions},
        node=node,
        check="ImbMpi1Check",
        bytes=size,
        processes=processes,
    )


@pytest.mark.parametrize(
    ("benchmark", "processes", "size", "moved"),
    [
        ("PingPong", 2, 32, 2),
        ("PingPongAnySource", 2, 32, 2),
        ("PingPingSpecificSource", 2, 32, 4),
        ("Sendrecv", 2, 32, 2),
        ("Exchange", 8, 8, 8),
        ("Uniband", 2, 64, 2),
        ("Biband", 2, 32, 2),
    ],
)
def test_messages_that_leave_the_caches_are_bounded_by_memory(benchmark, processes, size, moved):
    expected = 30e3 * UPPER * (4 / 3) / (1 - 1 / 4) / moved
    ranks = max(2, processes)
    found = imb(benchmark, size * MEBIBYTE, processes, ranks_per_node=ranks)
    assert found == [expected]
    assert imb(benchmark, size * MEBIBYTE - 1, processes, ranks_per_node=ranks) == []


def test_a_message_in_the_caches_may_be_faster_than_memory():
    assert verdict("PingPong.bandwidth_mb_s", 5e5, bytes=MEBIBYTE, processes=2) is (
        Verdict.NO_REFERENCE
    )
    assert verdict("PingPong.bandwidth_mb_s", 5e5, bytes=256 * MEBIBYTE, processes=2) is (
        Verdict.IMPOSSIBLE
    )


@pytest.mark.parametrize("node", [NodeFacts(), NodeFacts(cache_bytes=0)])
def test_without_the_size_of_the_caches_memory_bounds_nothing(node):
    assert imb("PingPong", 256 * MEBIBYTE, node=node) == []
    assert at_most("SingleSTREAM_Triad", node=node, vector_size=1 << 30) == []


@pytest.mark.parametrize(
    ("benchmark", "processes", "ranks_per_node", "links"),
    [
        ("PingPong", 2, 1, 1),
        ("PingPing", 2, 1, 1),
        ("Sendrecv", 2, 1, 2),
        ("Sendrecv", 8, 2, 2),
        ("Exchange", 8, 2, 2),
        ("Uniband", 4, 1, 2),
        ("Uniband", 8, 2, 2),
        ("Biband", 8, 2, 4),
    ],
)
def test_between_nodes_the_link_bounds_every_size(benchmark, processes, ranks_per_node, links):
    conditions = {"nodes": 4, "ranks_per_node": ranks_per_node}
    assert imb(benchmark, 8, processes, **conditions) == [1000.0 * links]
    assert imb(benchmark, 8, processes, NodeFacts(cache_bytes=1), **conditions) == []


def test_pairs_that_may_share_a_node_are_not_bounded_by_the_link():
    assert imb("Uniband", 8, 6, nodes=3, ranks_per_node=2) == []
    assert imb("Uniband", 8, 7, nodes=4, ranks_per_node=2) == []


def test_ping_pong_within_a_node_not_bounded_by_the_link():
    """Ping pong within the first of several nodes is not bounded by the link."""
    assert imb("PingPong", 8, nodes=4, ranks_per_node=2) == []


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("PingPong.latency_us", "ImbMpi1Check"),
        ("Unirandom.bandwidth_mb_s", "ImbMpi1Check"),
        # The same name counts another way in IMB-P2P.
        ("PingPong.bandwidth_mb_s", "ImbP2pCheck"),
        ("PTRANS_GBs", "HpccCheck"),
    ],
)
def test_other_figures_are_not_limited_by_peaks(name, check):
    assert at_most(name, check=check, bytes=1 << 30, processes=2) == []


# ------------------------------------------------------------------------ the node itself


def contradictions(changed):
    return {
        (figure.benchmark, figure.conditions["core_ids"]): figure.judgement
        for figure in relations(peaks_of(rows(changed)))
    }


def test_a_sound_node_does_not_contradict_itself(data):
    lines = (data / "peaks" / "node_peaks.txt").read_text(encoding="utf-8").splitlines()
    lines += (data / "peaks" / "dgemm.txt").read_text(encoding="utf-8").splitlines()
    peaks = peaks_of(parse_peaks(lines))
    assert {p.kind for p in peaks} == {"fma_peak", "triad", "dgemm"}
    assert relations(peaks) == ()
    assert relations(PEAKS) == ()


def test_dgemm_above_the_fma_peak_is_impossible():
    found = contradictions({("dgemm", "0,1"): 110.0})
    assert list(found) == [("dgemm", "0,1")]
    assert found["dgemm", "0,1"].verdict is Verdict.IMPOSSIBLE
    assert "nothing computes faster than the FMA peak of 2 cores" in found["dgemm", "0,1"].sentence


def test_dgemm_with_the_kernels_of_another_processor_is_noticed():
    # Measured: OpenBLAS with Haswell kernels reached 62 of 138 Gflop/s.
    slow = 60 * 62 / 138
    found = contradictions({("dgemm", "0"): slow, ("dgemm", "1"): slow})
    assert list(found) == [("dgemm", "0"), ("dgemm", "1")]
    assert "OPENBLAS_CORETYPE" in found["dgemm", "0"].sentence
    assert "clocks" not in found["dgemm", "0"].sentence
    # Beside others that disturbed every launch a slow one tells of them, a fast one of itself.
    busy = rows({("dgemm", "0"): slow, ("dgemm", "1"): 110.0})
    (fast,) = relations(peaks_of(busy), disturbed=True)
    assert fast.conditions["core_ids"] == "1"


@pytest.mark.parametrize(("kind", "share"), [("fma_peak", 0.8), ("triad", 0.7)])
def test_a_core_slower_than_its_kind_is_named(kind, share):
    rate = RATES[kind, "0"]
    clearly = {(kind, "1"): 0.9 * share * rate, ("dgemm", "1"): 40.0}
    found = contradictions(clearly)
    assert list(found) == [(kind, "1")]
    assert found[kind, "1"].verdict is Verdict.IMPOSSIBLE
    assert "core 1 is throttled" in found[kind, "1"].sentence
    assert contradictions({**clearly, (kind, "1"): 0.95 * share * rate}) == {}


@pytest.mark.parametrize(
    ("changed", "contradicted"),
    [
        # As measured beside a busy guest: DGEMM of one core at 31 of 81 Gflop/s.
        ({("dgemm", "1"): 60 * 31 / 81}, []),
        ({("dgemm", "0"): 27.0, ("dgemm", "1"): 27.0}, []),
        (
            {("dgemm", "0"): 27.0, ("dgemm", "1"): 27.0, ("dgemm", "0,1"): 45.0},
            ["0", "1", "0,1"],
        ),
        ({("triad", "1"): 10.0, ("fma_peak", "1"): 42.0}, []),
        ({("triad", "1"): 6.0}, ["1"]),
        ({("fma_peak", "1"): 34.0, ("dgemm", "1"): 30.0}, ["1"]),
    ],
)
def test_what_others_on_the_host_take_contradicts_nothing(changed, contradicted):
    guest = [replace(row, conditions={**row.conditions, "virtual": 1}) for row in rows(changed)]
    assert [f.conditions["core_ids"] for f in relations(peaks_of(guest))] == contradicted
    # On bare metal nobody else slows an undisturbed core down.
    assert contradictions(changed)


def test_most_cores_of_a_node_may_be_the_slow_ones():
    changed = {("fma_peak", str(core)): 30.0 for core in range(2, 6)}
    assert set(contradictions(changed)) == {("fma_peak", str(core)) for core in range(2, 6)}


def test_a_doubtful_contradiction_is_none():
    # The trials of the slow core reach up to what it should do.
    noisy = [
        Row("node-peaks", "fma_peak", {"cores": 1, "core_ids": "1"}, {"performance_gflops": value})
        for value in (20.0, 30.0, 45.0)
    ]
    others = [row for row in rows() if row.conditions["core_ids"] != "1"]
    assert relations(peaks_of([*others, *noisy])) == ()


def test_a_contradiction_is_a_judged_figure():
    (figure,) = relations(peaks_of(rows({("dgemm", "0,1"): 110.0})))
    assert figure.conditions == {"cores": 2, "core_ids": "0,1", "k": 192}
    assert (figure.metric, figure.unit) == ("performance_gflops", "Gflop/s")
    assert figure.estimate is not None
    assert figure.estimate.value == 110.0
    assert figure.estimate.samples == 3
    assert figure.estimate.confidence == 0.75


def test_stream_of_a_node_moves_no_more_than_the_triad():
    elements = 4 * 32 * MEBIBYTE // 8 // 2
    triad = builders.sample("STREAM", "bandwidth_gb_s", elements=elements)
    (limit,) = limits_of("StreamCheck", ONE_NODE, triad, PEAKS, FACTS)
    # Two cores reach 40 alone, and one and a half times the 30 that they reach together is 45.
    from_memory = 1 - 1 / 8
    assert limit.at_most == pytest.approx(UPPER * 40 * 4 / 3 / from_memory, rel=1e-3)
    slow = builders.sample("STREAM", "p95_time_us", elements=elements)
    limits = limits_of("StreamCheck", ONE_NODE, slow, PEAKS, FACTS)
    assert {limit.at_most for limit in limits} == {None}
    in_cache = builders.sample("STREAM", "bandwidth_gb_s", elements=elements - 1)
    (limit,) = limits_of("StreamCheck", ONE_NODE, in_cache, PEAKS, FACTS)
    assert limit.reason == "no processor does more in a second on 2 cores"


def test_a_stream_of_messages_is_limited_like_a_biband_of_imb():
    own = {"processes": 2, "bytes": 64 * MEBIBYTE}
    ours = builders.sample("bidirectional_stream", "bandwidth_mb_s", **own)
    (limit,) = limits_of("BidirectionalStreamCheck", ONE_NODE, ours, PEAKS, FACTS)
    assert [limit.at_most] == at_most("Biband.bandwidth_mb_s", check="ImbMpi1Check", **own)
    apart = {"nodes": 2, "ranks_per_node": 1, "cores_per_rank": 1}
    (limit,) = limits_of("BidirectionalStreamCheck", apart, ours, PEAKS, FACTS)
    assert FACTS.link_mb_s is not None
    assert limit.at_most == 2 * FACTS.link_mb_s


def test_ping_pong_through_the_network_bounded_by_its_link():
    two_nodes = {"nodes": 2, "ranks_per_node": 2, "cores_per_rank": 1}

    def found(peer, metric="time_us", benchmark="ping_pong"):
        own = {"peer": peer, "bytes": 1_000_000}
        trial = builders.sample(benchmark, metric, **own)
        return [
            (x.at_least, x.at_most)
            for x in limits_of("MpiTrialsCheck", two_nodes, trial, PEAKS, FACTS)
            if "the network carries" in x.reason
        ]

    assert found(2) == [(1000.0, None)]
    assert found(2, "p95_time_us") == found(2)
    assert found(1) == found(2, benchmark="scan") == []


def test_hpccg_computes_no_faster_than_the_fma_peak():
    rate = builders.sample("HPCCG", "performance_mflops")
    (limit,) = limits_of("HpccgCheck", {**ONE_NODE, "nodes": 2}, rate, PEAKS, FACTS)
    assert limit.at_most == pytest.approx(2 * 1000 * 100 * UPPER)


def test_availability_exceeds_all_of_its_time_by_noise_alone():
    share = builders.sample("host_overhead", "availability_percent", bytes=8)
    (limit,) = limits_of("HostOverheadCheck", ONE_NODE, share, PEAKS, FACTS)
    assert limit.at_most == 200


# ------------------------------------------------------------------------- beside other programs


def told_rows(slowed=1.0, undisturbed=None, vector="avx512", flops_per_cycle=16, **facts):
    """Return what today's kernels print, in trials that others slowed to that part."""
    found = []
    for (kind, core_ids), rate in RATES.items():
        metric, unit = "performance_gflops", "undisturbed_gflops"
        if kind == "triad":
            metric, unit = "bandwidth_gb_s", "undisturbed_gb_s"
        conditions: dict[str, ConditionValue] = {
            "cores": len(core_ids.split(",")),
            "core_ids": core_ids,
        }
        values = {metric: slowed * rate, unit: (undisturbed or {}).get((kind, core_ids), rate)}
        if kind == "dgemm":
            conditions["k"] = 192
        if kind == "fma_peak":
            named = {name: facts[name] for name in ("max_ghz",) if name in facts}
            values |= {"clock_ghz": facts.get("clock_ghz", 3.75), **named}
            conditions |= {"vector": vector, "flops_per_cycle": flops_per_cycle}
            conditions["virtual"] = facts.get("virtual", 0)
        found += [Row("node-peaks", kind, {**conditions, "trial": t}, values) for t in range(3)]
    return found


def test_slowed_trials_count_as_what_the_cores_did():
    """Trials that others slowed count as what the cores did while they were had."""
    quiet, beside = peaks_of(told_rows()), peaks_of(told_rows(slowed=0.2))
    assert quiet == beside
    limits = at_most("HPL.performance_gflops", peaks=beside, nb=192)
    assert limits == [90 * 1.02, 100 * 1.02]


def test_one_slow_trial_widens_a_limit_and_takes_none_away():
    slow = [row for row in told_rows() if row.conditions["trial"] == 0]
    for row in slow:
        row.values.update({k: v / 10 for k, v in row.values.items() if k.startswith("und")})
    others = [row for row in told_rows() if row.conditions["trial"] > 0]
    peaks = peaks_of([*slow, *others])
    assert not any(peak.steady for peak in peaks)
    limits = at_most("HPL.performance_gflops", peaks=peaks, nb=192)
    assert len(limits) == 2
    assert 100 <= limits[1].expected <= 150


def test_slowed_trials_of_older_kernels_leave_the_ceiling():
    """Of them it is not known how fast the fastest would have been."""
    unsteady = rows({key: rate / 3 for key, rate in RATES.items()})
    for row in unsteady:
        if row.benchmark == "fma_peak":
            row.conditions["vector"] = "avx2"
        if row.conditions["trial"] == 2:
            row.values.update({k: 2 * v for k, v in row.values.items()})
    limits = at_most("HPL.performance_gflops", peaks=peaks_of(unsteady), nb=192)
    assert limits == [2 * 16 * 6.5]


@pytest.mark.parametrize(
    ("vector", "flops_per_cycle", "clock_ghz", "of_a_core"),
    [
        ("avx2", 16, 3.8, 16 * 6.5),
        ("avx512", 32, 3.0, 32 * 6.5),
        ("neon", 24, 2.6, 24 * 6.5),
        ("sve", 32, 2.0, 32 * 6.5),
        # A processor of tomorrow that does 60 in a cycle of 1 GHz, where 16 are known.
        ("avx2", 16, 1.0, 60 * 6.5),
    ],
)
def test_no_noise_touches_the_ceiling_of_a_node(vector, flops_per_cycle, clock_ghz, of_a_core):
    peaks = peaks_of(told_rows(vector=vector, flops_per_cycle=flops_per_cycle, clock_ghz=clock_ghz))
    ceilings = {p.cores: p.ceiling for p in peaks if p.kind == "fma_peak"}
    assert ceilings[0,] == pytest.approx(of_a_core)
    assert relations(peaks) == ()


def test_clock_named_with_turbo_is_the_highest():
    peaks = peaks_of(told_rows(max_ghz=3.8))
    ceilings = [p.ceiling for p in peaks if p.kind == "fma_peak" and p.cores == (0,)]
    assert ceilings == [pytest.approx(1.25 * 3.8 * 16)]


def test_a_node_whose_timer_runs_slow_is_impossible():
    """With a clock at a seventh of its speed everything is seven times as fast, the peaks too."""
    seven = {key: 7 * rate for key, rate in RATES.items()}
    peaks = peaks_of(told_rows(slowed=7.0, undisturbed=seven, clock_ghz=7 * 3.75))
    found = [f.judgement for f in relations(peaks) if f.benchmark == "fma_peak"]
    assert [judgement.verdict for judgement in found] == [Verdict.IMPOSSIBLE] * 3
    assert all("the clock that timed them runs slow" in told.sentence for told in found)


# ----------------------------------------------------------------------------- virtual machines


def virtual_limits(**changed):
    peaks = peaks_of(told_rows(virtual=1, **changed))
    return at_most("HPL.performance_gflops", peaks=peaks, nb=192)


def test_dgemm_on_a_virtual_machine_bounds_nothing():
    assert virtual_limits() == [1.25 * 2 * 16 * 3.75]


def test_second_threads_of_the_host_make_nothing_impossible():
    """It takes half of the units in every trial, and then leaves: HPL doubles."""
    half = {key: rate / 2 for key, rate in RATES.items()}
    (limit,) = virtual_limits(undisturbed=half)
    assert limit.expected > 100


def test_memory_that_neighbours_share_may_be_twice_as_fast_later():
    size = 16 * MEBIBYTE
    (bare,) = at_most("StarSTREAM_Triad", peaks=peaks_of(told_rows()), vector_size=size)
    (virtual,) = at_most("StarSTREAM_Triad", peaks=peaks_of(told_rows(virtual=1)), vector_size=size)
    assert virtual.expected == pytest.approx(2 * bare.expected)


# -------------------------------------------------------------------- whatever nobody measured


@pytest.mark.parametrize(
    ("check", "name", "own", "cores"),
    [
        ("HplCheck", "HPL.performance_gflops", {"nb": 192}, 2),
        ("HpccCheck", "HPL_Tflops", {"nb": 192}, 2),
        ("HpccCheck", "StarDGEMM_Gflops", {}, 1),
        ("HpccCheck", "SingleFFT_Gflops", {}, 1),
        ("HpccCheck", "MPIFFT_Gflops", {}, 2),
        ("HpccCheck", "PTRANS_GBs", {}, 2),
        ("HpccCheck", "MPIRandomAccess_GUPs", {}, 2),
        ("HpccCheck", "StarSTREAM_Triad", {"vector_size": 1 << 30}, 1),
        ("HpccCheck", "MaxPingPongBandwidth_GBytes", {}, 2),
        ("ImbMpi1Check", "PingPong.bandwidth_mb_s", {"bytes": 8, "processes": 2}, 2),
        ("ImbP2pCheck", "Birandom.message_rate_per_s", {"bytes": 8, "processes": 2}, 2),
        ("StreamCheck", "STREAM.bandwidth_gb_s", {"elements": 1 << 30}, 2),
        ("NpbCheck", "NPB-CG.total_mop_per_s", {}, 2),
        ("LammpsCheck", "LAMMPS-lj-strong.atom_steps_per_s", {}, 2),
        ("HpccgCheck", "HPCCG.performance_mflops", {}, 2),
    ],
)
def test_without_any_peak_there_is_what_no_processor_does(check, name, own, cores):
    printed = sample(name, 9.999e89, **own)
    limits = limits_of(check, ONE_NODE, printed, (), NodeFacts())
    reasons = [limit.reason for limit in limits if limit.at_most]
    told = "one core" if cores == 1 else f"{cores} cores"
    assert reasons == [f"no processor does more in a second on {told}"]
    estimate = Estimate(printed.value, None, None, confidence=0.0, samples=1)
    assert judge(estimate, Better.HIGHER, printed.unit, None, limits).verdict is Verdict.IMPOSSIBLE


# ----------------------------------------------------------------------------------- times


def least_us(name, check="ImbMpi1Check", conditions=ONE_NODE, node=FACTS, **own):
    limits = limits_of(check, {**conditions}, sample(name, **own), (), node)
    return max((limit.at_least for limit in limits if limit.at_least is not None), default=None)


@pytest.mark.parametrize(
    ("name", "check", "own", "least"),
    [
        ("PingPong.latency_us", "ImbMpi1Check", {"bytes": 0}, 0.005),
        ("Barrier.t_avg_us", "ImbMpi1Check", {}, 0.005),
        ("Allreduce.t_avg_us", "ImbMpi1Check", {"bytes": 4}, 0.005),
        # Captured: 0.01 us, which is from 5 to 15 ns, in a call that returns at once.
        ("Reduce.t_avg_us", "ImbMpi1Check", {"bytes": 0}, 0.0),
        ("Unidir_put.latency_us", "ImbRmaCheck", {"bytes": 8}, 0.0),
        ("Bcast.t_avg_us", "ImbMpi1Check", {"bytes": 8, "processes": 1}, None),
        ("host_overhead.overhead_us", "HostOverheadCheck", {"bytes": 8}, None),
        ("MinPingPongLatency_usec", "HpccCheck", {}, 0.005),
        # 1 MiB at 128 bytes a cycle on each of two cores of 6.5 GHz, and the last digit.
        ("Allreduce.t_avg_us", "ImbMpi1Check", {"bytes": MEBIBYTE}, MEBIBYTE / 1664e3 - 0.005),
        ("Unidir_put.latency_us", "ImbRmaCheck", {"bytes": MEBIBYTE}, MEBIBYTE / 1664e3 - 0.005),
    ],
)
def test_times_have_lower_limits(name, check, own, least):
    assert least_us(name, check, **{"processes": 2, **own}) == (least and pytest.approx(least))


@pytest.mark.parametrize(("printed", "expected"), [(0.00, "impossible"), (0.01, "no reference")])
def test_a_time_that_rounds_to_nothing_cannot_be(printed, expected):
    latency = sample("PingPong.latency_us", printed, bytes=8, processes=2)
    limits = limits_of("ImbMpi1Check", ONE_NODE, latency, (), FACTS)
    estimate = Estimate(printed, None, None, confidence=0.0, samples=1)
    found = judge(estimate, Better.LOWER, "us", None, limits)
    assert found.verdict.value == expected


BOUND = {**ONE_NODE, "bound": True}
NEAR = NodeFacts(nearest_ns=100.0)


def test_no_message_overtakes_a_cache_line():
    """Of the 50 ns of one way half: the pair that was measured need not be the nearest."""
    own = {"bytes": 0, "processes": 2}
    for name in ("PingPong.latency_us", "PingPingSpecificSource.latency_us"):
        assert least_us(name, conditions=BOUND, node=NEAR, **own) == pytest.approx(0.025)
    across = {**BOUND, "nodes": 2, "ranks_per_node": 1}
    assert least_us("PingPong.latency_us", conditions=across, node=NEAR, **own) == 0.025
    assert least_us("MinPingPongLatency_usec", "HpccCheck", BOUND, NEAR) == 0.025
    # Two threads of one core are nearer to each other than two cores.
    loose = {**BOUND, "bound": False}
    assert least_us("PingPong.latency_us", conditions=loose, node=NEAR, **own) == 0.005
    # A rank that only sends does not wait for an answer.
    assert least_us("Bcast.t_avg_us", conditions=BOUND, node=NEAR, **{**own, "bytes": 8}) == 0.005


def distance(ns, virtual):
    told: dict[str, ConditionValue] = {"cores": 2, "core_ids": "0,1", "trial": 0}
    row = Row("node-peaks", "core_distance", told, {"round_trip_ns": ns})
    alone = Row("node-peaks", "core_distance", {**told, "core_ids": "0"}, {})
    return [alone, row, *told_rows(virtual=virtual)]


def test_nearest_of_all_cores_bounds_bound_ranks():
    assert nearest_ns([*distance(48.0, 0), *distance(310.0, 0)]) == 48.0
    assert nearest_ns(distance(48.0, 1)) is None
    assert nearest_ns(rows()) is None
    assert {p.kind for p in peaks_of(distance(48.0, 0) * 3)} == {"fma_peak", "triad", "dgemm"}


def test_a_time_of_hpcc_is_limited_as_its_rate_is():
    solved = sample("HPL_time", nb=192, n=1000)
    times = [x.at_least for x in limits_of("HpccCheck", ONE_NODE, solved, PEAKS, FACTS)]
    flops = (2 / 3 * 1000 + 1.5) * 1000**2
    assert times == [pytest.approx(flops / (rate * UPPER) / 1e9) for rate in (90, 100)]
    transposed = sample("PTRANS_time", nb=192, n=1000)
    (limit,) = limits_of("HpccCheck", ONE_NODE, transposed, PEAKS, FACTS)
    assert limit.at_least == pytest.approx(8e6 / (2 * 384 * 6.5e9))


# ------------------------------------------------------------------------- honest outputs


IMB_CHECKS = {
    "mpi1": "ImbMpi1Check",
    "rma": "ImbRmaCheck",
    "nbc": "ImbNbcCheck",
    "p2p": "ImbP2pCheck",
    "mt": "ImbMtCheck",
}


def captured(data):
    """Yield what honest programs printed, with the check and the ranks of each."""
    for path in sorted(data.glob("imb/*.txt")):
        check = next((c for k, c in IMB_CHECKS.items() if f"-{k}" in path.name), "ImbMpi1Check")
        yield path, check, METRICS, imb_text.parse_imb
    for path in sorted(data.glob("hpcc/*.txt")):
        yield path, "HpccCheck", {**METRICS, **hpcc.METRICS}, hpcc.parse_hpcc
    for path in sorted(data.glob("hpl/*.txt")):
        yield path, "HplCheck", METRICS, parse_hpl
    for path in sorted(data.glob("npb/*.txt")):
        yield path, "NpbCheck", METRICS, parse_npb
    for path in sorted(data.glob("lammps/*.txt")):
        yield path, "LammpsCheck", METRICS, parse_lammps
    for path in sorted(data.glob("hpccg/*.txt")):
        yield path, "HpccgCheck", METRICS, parse_hpccg
    for path in sorted(data.glob("mpi-kernels/*.txt")):
        words = "".join(word.title() for word in path.stem.split("_"))
        yield path, f"{words}Check", METRICS, partial(parse_any, source=path.name)


def test_no_captured_output_is_impossible(data):
    """The peaks and what was captured are of one kind of machine."""
    lines = (data / "peaks" / "node_peaks.txt").read_text(encoding="utf-8").splitlines()
    lines += (data / "peaks" / "dgemm.txt").read_text(encoding="utf-8").splitlines()
    judged, files = 0, 0
    for path, check, metrics, parse in captured(data):
        measured = []
        with path.open(encoding="utf-8") as text, contextlib.suppress(OutputError):
            for row in parse(text):
                measured += reported(samples_of([row], metrics))
        files += bool(measured)
        for one in measured:
            own = one.conditions
            ranks = int(own.get("processes", own.get("ranks", 2))) * int(own.get("groups", 1))
            if one.benchmark == "HPL":
                ranks = int(own["p"]) * int(own["q"])
            threads = int(own.get("threads", 1))
            conditions = {"nodes": 1, "ranks_per_node": ranks, "cores_per_rank": threads}
            estimate = Estimate(one.value, None, None, confidence=0.0, samples=1)
            for peaks in ((), tuple(peaks_of(parse_peaks(lines)))):
                limits = limits_of(check, {**conditions, "bound": True}, one, peaks, FACTS)
                found = judge(estimate, one.better, one.unit, None, limits)
                assert found.verdict is Verdict.NO_REFERENCE, (path.name, one, found.sentence)
                judged += 1
    assert files > 60
    assert judged > 10_000
