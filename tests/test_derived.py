import math

import pytest

from clustergate.core.model import Better, Sample
from clustergate.machine.power import Power
from evaluations.derived import (
    DerivedError,
    balance,
    comparisons,
    curves,
    links,
    power,
    ratios,
    scaling,
)

# A run of HPCC on two processes, in round numbers.
SUMMARY = {
    "HPL_Tflops": 2.0,
    "StarDGEMM_Gflops": 1500.0,
    "MPIFFT_Gflops": 40.0,
    "PTRANS_GBs": 78.0,
    "StarSTREAM_Copy": 2800.0,
    "RandomlyOrderedRingBandwidth_GBytes": 94.0,
    "RandomlyOrderedRingLatency_usec": 5.0,
    "MPIRandomAccess_GUPs": 0.1,
    "SingleDGEMM_Gflops": 9999.0,
}


class TestBalance:
    def test_a_row_uses_the_figures_of_all_processes_at_work(self):
        row = balance.ratio_row(SUMMARY, processes=2)
        assert row == {
            "HPL_Tflops": 2.0,
            "hpl_over_hpl": 1.0,
            "dgemm_over_hpl": 1.5,
            "fft_over_hpl": 0.02,
            "ptrans_balance_b_per_flop": 0.039,
            "stream_balance_b_per_flop": 2.8,
            "ring_balance_b_per_kflop": 94.0,
            "inverse_ring_latency_per_us": 0.2,
            "updates_per_flop": 5e-5,
        }

    def test_what_did_not_run_has_no_column(self):
        row = balance.ratio_row({"HPL_Tflops": 1.0, "PTRANS_GBs": 3.0}, processes=4)
        assert list(row) == ["HPL_Tflops", "hpl_over_hpl", "ptrans_balance_b_per_flop"]

    def test_without_hpl_there_is_no_row(self):
        with pytest.raises(DerivedError, match="there is no HPL_Tflops"):
            balance.ratio_row({"PTRANS_GBs": 3.0}, processes=4)
        with pytest.raises(DerivedError, match="must be greater than 0"):
            balance.ratio_row({"HPL_Tflops": 0.0}, processes=4)

    def test_balance_is_told_per_flop(self):
        ring = balance.accumulated_gb_s(0.1, 512)
        assert ring == pytest.approx(51.2)
        assert ratios.balance_b_per_flop(ring, 2.0) == pytest.approx(0.0256)

    def test_the_best_of_each_column_is_one_and_small_systems_are_left_out(self):
        rows = {
            "a": {"HPL_Tflops": 2.0, "ptrans_balance_b_per_flop": 0.5},
            "b": {"HPL_Tflops": 4.0, "ptrans_balance_b_per_flop": 0.25},
            "small": {"HPL_Tflops": 1.0, "ptrans_balance_b_per_flop": 9.0},
        }
        table = ratios.ratio_table(rows)
        assert table.left_out == ["small"]
        assert table.maxima == {"HPL_Tflops": 4.0, "ptrans_balance_b_per_flop": 0.5}
        assert table.parts["b"] == {"HPL_Tflops": 1.0, "ptrans_balance_b_per_flop": 0.5}
        assert "small" in ratios.ratio_table(rows, threshold_tflops=0.5).parts

    def test_versions_whose_random_access_differs_are_never_mixed(self):
        rows = {"a": {"HPL_Tflops": 2.0}, "b": {"HPL_Tflops": 4.0}}
        ratios.ratio_table(rows, {"a": "1.0", "b": "1.5.0"})
        with pytest.raises(DerivedError, match=r"a \(0\.8\), b \(1\.0\)"):
            ratios.ratio_table(rows, {"a": "0.8", "b": "1.0"})
        with pytest.raises(DerivedError, match="no version"):
            ratios.random_access_of("new")

    def test_each_launch_of_hpcc_has_its_ratios(self):
        samples = [
            Sample(name, name, "", Better.HIGHER, {}, factor * value, order)
            for order, factor in enumerate((1.0, 2.0))
            for name, value in SUMMARY.items()
        ]
        found = balance.balance_samples(samples, processes=2)
        ring = [s.value for s in found if s.metric == "ring_accumulated_gb_s"]
        assert ring == [188.0, 376.0]
        assert {s.order for s in found} == {0, 1}
        assert {s.benchmark for s in found} == {"HPCC"}
        assert balance.balance_samples(samples[1:2], processes=2) == ()

    def test_a_ring_on_few_nodes_is_not_of_the_network(self):
        assert ratios.is_of_the_network(8)
        assert not ratios.is_of_the_network(7)


class TestFiguresOfCurves:
    RATES = {0: 0.0, 1024: 200.0, 4096: 500.0, 65536: 990.0, 1 << 20: 1000.0}

    def samples(self, benchmark="PingPong", processes=2, order=0, factor=1.0, rates=RATES):
        return [
            Sample(benchmark, "bandwidth_mb_s", "MB/s", Better.HIGHER,
                   {"processes": processes, "bytes": size}, factor * rate, order)
            for size, rate in rates.items()
        ]  # fmt: skip

    def found(self, samples, ranks=2, nodes=2, link_mb_s=1250.0):
        made = curves.curve_samples(samples, ranks, nodes, link_mb_s)
        return {(one.benchmark, one.metric, one.order): one.value for one in made}

    def test_each_launch_has_its_own(self):
        both = self.samples() + self.samples(order=1, factor=1.1)
        found = self.found(both)
        assert found == {
            ("PingPong-curve", "max_bandwidth_mb_s", 0): 1000.0,
            ("PingPong-curve", "size_of_max_bytes", 0): 65536.0,
            ("PingPong-curve", "size_of_half_bytes", 0): 4096.0,
            ("PingPong-curve", "link_percent", 0): 80.0,
            ("PingPong-curve", "max_bandwidth_mb_s", 1): pytest.approx(1100.0),
            ("PingPong-curve", "size_of_max_bytes", 1): 65536.0,
            ("PingPong-curve", "size_of_half_bytes", 1): pytest.approx(4096.0),
            ("PingPong-curve", "link_percent", 1): pytest.approx(88.0),
        }

    def test_messages_both_ways_have_the_link_twice(self):
        found = self.found(self.samples("Exchange", processes=4), ranks=4)
        assert found["Exchange-curve", "link_percent", 0] == 40.0

    @pytest.mark.parametrize("of", [{"nodes": 1}, {"link_mb_s": None}, {"ranks": 4}])
    def test_a_part_of_a_link_takes_a_link_between_all(self, of):
        metrics = {metric for _, metric, _ in self.found(self.samples(), **of)}
        assert metrics == {"max_bandwidth_mb_s", "size_of_max_bytes", "size_of_half_bytes"}

    def test_without_a_curve_there_is_nothing(self):
        assert self.found(self.samples(rates={0: 0.0, 8: 1.0})) == {}
        assert self.found(self.samples(rates={0: 0.0, 8: 0.0, 16: 0.0})) == {}
        assert self.found(self.samples("Uniband")) == {}

    def test_beyond_half_from_the_start_there_is_no_size_of_half(self):
        rates = {8: 900.0, 16: 950.0, 32: 1000.0}
        assert "size_of_half_bytes" not in {m for _, m, _ in self.found(self.samples(rates=rates))}


class TestLinks:
    def test_rates_of_links(self):
        assert links.infiniband_gbit_s("QDR", 4) == 32
        assert links.mb_s_of_gbit_s(32) == 4000
        with pytest.raises(DerivedError, match="no 8x QDR"):
            links.infiniband_gbit_s("QDR", 8)

    def test_efficiency_of_a_link(self):
        assert links.efficiency_percent(3100, 4000) == pytest.approx(77.5)

    def test_a_full_duplex_slot_has_its_peak_in_each_direction(self):
        assert links.slot_peak_mb_s(1000, both_ways=True, full_duplex=True) == 2000
        assert links.slot_peak_mb_s(1000, both_ways=False, full_duplex=True) == 1000
        assert links.slot_peak_mb_s(1067, both_ways=True, full_duplex=False) == 1067

    @pytest.mark.parametrize(
        ("one_way", "both", "expected"),
        [(914, 1737, "full"), (739, 789, "half"), (541, 628, "half"), (100, 1000, "neither")],
    )
    def test_duplex(self, one_way, both, expected):
        assert links.duplex_of(one_way, both) == expected

    def test_switches(self):
        assert [links.switch_latency_ns(ports) for ports in (24, 96, 288)] == [432, 720, 1008]
        with pytest.raises(DerivedError, match="36 ports"):
            links.switch_latency_ns(36)


class TestCurves:
    LINE = {size: 2.0 + size / 1000 for size in (0, 8, 1024, 65536, 1048576)}

    def test_alpha_and_beta_of_a_perfect_line(self):
        fit = curves.latency_bandwidth(self.LINE)
        assert fit.alpha_us == pytest.approx(2.0)
        assert fit.beta_us_per_byte == pytest.approx(1e-3)
        assert fit.bandwidth_mb_s == pytest.approx(1000)
        assert fit.r_squared == pytest.approx(1)

    def test_a_fit_takes_two_sizes(self):
        with pytest.raises(DerivedError, match="two message sizes"):
            curves.latency_bandwidth({8: 1.0})

    def test_a_time_that_does_not_grow_has_no_bandwidth(self):
        assert curves.latency_bandwidth({8: 1.0, 16: 1.0}).bandwidth_mb_s > 1e9
        assert math.isinf(curves.LatencyBandwidth(1.0, 0.0, 1.0).bandwidth_mb_s)

    def test_a_curve_is_told_from_a_line(self):
        assert curves.line_r_squared(self.LINE) == pytest.approx(1)
        assert curves.line_r_squared({1: 1.0, 2: 9.0, 3: 1.0, 4: 9.0}) < 0.5

    def test_half_the_bandwidth(self):
        curve = {1024: 100.0, 2048: 400.0, 8192: 600.0, 65536: 990.0, 1048576: 1000.0}
        assert curves.size_of_most(curve) == 65536
        assert curves.size_of_half(curve) == pytest.approx(2048 * 4**0.5)
        with pytest.raises(DerivedError, match="exceeds half the bandwidth"):
            curves.size_of_half({1024: 900.0, 2048: 1000.0})

    def test_where_one_is_ahead_from(self):
        mine = {1: 9.0, 2: 3.0, 4: 5.0, 8: 5.0}
        other = {1: 10.0, 2: 2.0, 4: 6.0, 8: 7.0}
        assert curves.from_where_ahead(mine, other, lower_is_better=True) == 4
        assert curves.from_where_ahead(mine, other, lower_is_better=False) is None

    def test_where_two_are_alike_from(self):
        assert curves.from_where_alike({1: 1.0, 2: 99.0}, {1: 2.0, 2: 100.0}, 0.05) == 2
        assert curves.from_where_alike({1: 1.0, 2: 9.0}, {1: 1.0, 2: 5.0}, 0.05) is None

    def test_dips(self):
        assert curves.dips({1: 10, 2: 20, 4: 15, 8: 30, 16: 29.5, 32: 40}) == [4]

    def test_a_protocol_switch_is_a_jump_off_the_line(self):
        times = {256: 1.0, 512: 1.2, 1024: 4.0, 2048: 5.0, 4096: 7.0}
        assert curves.switch_points(times) == [1024]
        assert curves.switch_points(self.LINE) == []


class TestScaling:
    TIMES = {1: 100.0, 2: 50.0, 4: 30.0}

    def test_strong_scaling(self):
        assert scaling.normalised_time(self.TIMES) == {1: 1.0, 2: 0.5, 4: 0.3}
        assert scaling.speed_up(self.TIMES)[4] == pytest.approx(10 / 3)
        assert scaling.strong_efficiency_percent(self.TIMES)[4] == pytest.approx(100 / 1.2)

    def test_weak_scaling_of_rates_and_of_times(self):
        assert scaling.weak_efficiency_percent({1: 10.0, 8: 76.0}) == {1: 100.0, 8: 95.0}
        assert scaling.weak_efficiency_of_times_percent({1: 8.0, 8: 10.0})[8] == 80

    def test_scaling_is_relative_to_one_process(self):
        with pytest.raises(DerivedError, match="one process"):
            scaling.speed_up({2: 1.0, 4: 2.0})

    def test_a_number_of_processes_that_is_no_power_of_two_costs(self):
        assert scaling.penalty_of(40, 64, {40: 50000.0, 64: 33000.0}) == 17000
        with pytest.raises(DerivedError, match="40 processes"):
            scaling.penalty_of(40, 64, {64: 1.0})

    def test_models_show_constants(self):
        sizes = (2, 4, 8, 64)
        bcast = {p: math.log2(p) * (3.0 + 1000 * 0.01) for p in sizes}
        assert scaling.spread(list(scaling.scaled(bcast, "log2 p").values())) == pytest.approx(1)
        gathered = {p: (p - 1) * (3.0 + 1000 * 0.01) for p in sizes}
        assert scaling.spread(list(scaling.scaled(gathered, "p-1").values())) == pytest.approx(1)
        small = {p: 3.0 * math.log2(p) + (p - 1) * 0.01 for p in sizes}
        large = {p: 3.0 * math.log2(p) + (p - 1) * 1e5 for p in sizes}
        assert scaling.spread(list(scaling.scaled(small, "p-1").values())) > 5
        assert scaling.spread(list(scaling.scaled(large, "p-1").values())) < 1.01
        with pytest.raises(DerivedError, match=r"unknown model 'p\+1'"):
            scaling.scaled(bcast, "p+1")

    def test_one_process_has_no_steps(self):
        assert scaling.scaled({1: 5.0, 2: 6.0}, "log2 p") == {2: 6.0}

    def test_the_exponent_of_growth_is_that_of_the_law(self):
        assert scaling.growth_exponent({2: 10.0, 4: 40.0, 8: 160.0}) == pytest.approx(2)
        assert scaling.growth_exponent({2: 7.0, 96: 7.0}) == pytest.approx(0, abs=1e-9)
        for nothing in ({4: 10.0}, {2: 1.0, 4: 0.0}):
            with pytest.raises(DerivedError):
                scaling.growth_exponent(nothing)

    def test_slower_and_faster_have_other_percentages(self):
        assert scaling.relative_change_percent(10171, 8153) == pytest.approx(-19.8, abs=0.05)
        assert scaling.relative_change_percent(8153, 10171) == pytest.approx(24.75, abs=0.05)

    def test_peak(self):
        peak = scaling.rpeak_gflops(2.93, 6144, 4)
        assert peak == pytest.approx(72007.68)


class TestPower:
    def test_sockets_of_a_run_and_performance_per_watt(self):
        assert (power.sockets(64, 6), power.sockets(64, 1), power.sockets(66, 6)) == (11, 64, 11)
        assert power.per_watt(330.0, Power(165, "11 sockets of 15 W")) == 2


class TestComparisons:
    def test_elasticity(self):
        assert comparisons.elasticity(16.7, 33) == pytest.approx(0.506, abs=1e-3)
        with pytest.raises(DerivedError, match="same in both"):
            comparisons.elasticity(1, 0)

    def test_the_largest_sensitivity_counts(self):
        assert comparisons.most_sensitive_to({"memory": 0.2, "network": 0.5}) == "network"

    def test_correlations(self):
        assert comparisons.correlation([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
        assert comparisons.rank_correlation([1, 2, 30], [9, 8, 1]) == pytest.approx(-1)
        with pytest.raises(DerivedError, match="three pairs"):
            comparisons.correlation([1, 2], [1, 2])
        with pytest.raises(DerivedError, match="constant"):
            comparisons.rank_correlation([1, 1, 1], [1, 2, 3])
