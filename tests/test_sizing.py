from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergate.benchmarks.hpcc.input import render_hpccinf
from clustergate.benchmarks.hpl import dat_file
from clustergate.benchmarks.hpl.output import hpl_flops
from clustergate.benchmarks.hpl.sizing import (
    HplInput,
    SizingError,
    choose_problem_size,
    grid_remark,
    hpl_problem_size,
    hpl_problem_size_for_time,
    hpl_problem_size_linear,
    matrix_bytes,
    predict_hpl_input_seconds,
    predict_hpl_seconds,
    process_grid,
    render_hpl_dat,
    rounding_unit,
    times_remarks,
)
from clustergate.core.model import Better, ClustergateError, Sample
from clustergate.core.quantities import parse_bytes, parse_duration
from clustergate.sites.shape import process_counts

GIB = 2**30
WESTMERE_BYTES = 512 * 24 * GIB

# The 512-node file of the published Westmere evaluation (facts s001-c001 to s001-c020).
WESTMERE = HplInput(
    n_values=(1179648,),
    nb_values=(192,),
    process_mapping=0,
    p_values=(64,),
    q_values=(96,),
    threshold=16.0,
    pfacts=(1,),
    nbmins=(8,),
    ndivs=(2,),
    rfacts=(1,),
    bcasts=(1,),
    depths=(0,),
    swap=2,
    swapping_threshold=64,
    l1_transposed=True,
    u_transposed=True,
    equilibration=False,
    alignment=8,
)
WESTMERE_LINES = """\
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
1179648      Ns
1            # of NBs
192          NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
64           Ps
96           Qs
16.0         threshold
1            # of panel fact
1            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
8            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
0            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
0            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""

# HPL 2.3's example file with every other field moved off its default as well.
EVERY_FIELD_DIFFERENT = HplInput(
    n_values=(29, 30, 34, 35),
    nb_values=(1, 2, 3, 4),
    process_mapping=1,
    p_values=(2, 1, 4),
    q_values=(2, 4, 1),
    threshold=15.5,
    pfacts=(0, 1, 2),
    nbmins=(2, 4),
    ndivs=(2, 3),
    rfacts=(2, 1, 0),
    bcasts=(0, 5),
    depths=(0, 1),
    swap=1,
    swapping_threshold=60,
    l1_transposed=False,
    u_transposed=False,
    equilibration=False,
    alignment=4,
    output_file="results.txt",
    output_device=8,
)


def changed_line(text: str, number: int, line: str) -> str:
    lines = text.splitlines()
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


class TestQuantities:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("24GiB", 24 * 2**30),
            ("24GB", 24 * 10**9),
            ("1.5 TiB", 3 * 2**39),
            ("512MiB", 2**29),
            ("64kB", 64000),
            ("25769803776", 25769803776),
            ("0.1GB", 10**8),
        ],
    )
    def test_bytes(self, text, expected):
        assert parse_bytes(text) == expected

    def test_a_bare_prefix_is_refused_because_it_has_two_meanings(self):
        with pytest.raises(ClustergateError, match=r"24G.*two ways.*GiB.*1024.*GB.*1000"):
            parse_bytes("24G")

    @pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "24XB", "24,5GB", "nan"])
    def test_no_amount_of_memory(self, text):
        with pytest.raises(ClustergateError):
            parse_bytes(text)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [("0", 0), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("1h30m", 5400), ("1h1s", 3601)],
    )
    def test_duration(self, text, expected):
        assert parse_duration(text) == expected

    @pytest.mark.parametrize("text", ["5", "600", "1.5", " 20 "])
    def test_a_duration_without_a_unit_is_asked_back(self, text):
        with pytest.raises(ClustergateError, match=rf"has no unit; is it {text.strip()}s or .*m\?"):
            parse_duration(text)

    @pytest.mark.parametrize("text", ["", " ", "ten", "10d", "-5s", "5s10m", "1h30"])
    def test_no_duration(self, text):
        with pytest.raises(ClustergateError, match="not a length of time"):
            parse_duration(text)


class TestGrids:
    @pytest.mark.parametrize(
        ("ranks", "grid"),
        [(1, (1, 1)), (2, (1, 2)), (7, (1, 7)), (12, (3, 4)), (13, (1, 13)), (6144, (64, 96))],
    )
    def test_grid(self, ranks, grid):
        assert process_grid(ranks) == grid

    @given(st.integers(1, 100_000))
    def test_grid_uses_all_processes_and_is_as_square_as_possible(self, ranks):
        p, q = process_grid(ranks)
        assert p * q == ranks
        assert p <= q
        assert not any(ranks % closer == 0 for closer in range(p + 1, q))

    @pytest.mark.parametrize("ranks", [0, -4])
    def test_no_processes(self, ranks):
        with pytest.raises(SizingError, match="processes must be positive"):
            process_grid(ranks)

    @pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8, 12, 6144])
    def test_no_remark_about_good_grids(self, ranks):
        assert grid_remark(*process_grid(ranks)) is None

    @pytest.mark.parametrize(
        ("ranks", "better"), [(7, "6 processes make 2 x 3"), (13, "12 processes make 3 x 4")]
    )
    def test_a_prime_is_named_with_a_count_that_does_better(self, ranks, better):
        remark = grid_remark(1, ranks) or ""
        assert f"{ranks} is a prime number" in remark
        assert better in remark

    def test_a_flat_grid_of_a_count_that_is_not_prime(self):
        assert (grid_remark(2, 11) or "").startswith("22 processes make the flat grid 2 x 11")

    def test_the_times_of_many_tilings_are_one_line(self):
        def solved(*seconds, n=1000):
            return [
                Sample("HPL", "time_s", "s", Better.LOWER, {"n": n, "nb": 8 * k}, time)
                for k, time in enumerate(seconds)
            ]

        rate = Sample("HPL", "performance_gflops", "Gflop/s", Better.HIGHER, {"n": 1000}, 1.0)
        assert times_remarks([rate, *solved(0.5)], 1.0) == [
            "HPL of N=1000 took 0.5 s, 0.7 s were predicted"
        ]
        assert times_remarks([*solved(0.5, 0.9, 0.7), *solved(4.0, n=2000)], 1.0) == [
            "HPL of N=1000 took 0.5 to 0.9 s in 3 solves, 0.7 s were predicted",
            "HPL of N=2000 took 4.0 s, 5.3 s were predicted",
        ]

    @pytest.mark.parametrize(("p", "q"), [(1, 64), (16, 4)])
    def test_a_chosen_grid_is_compared_with_the_best_one(self, p, q):
        assert "64 processes also make 8 x 8" in (grid_remark(p, q) or "")

    @pytest.mark.parametrize(
        ("maximum", "counts"),
        [(1, (1,)), (2, (2,)), (3, (2, 3)), (8, (2, 4, 8)), (12, (2, 4, 8, 12))],
    )
    def test_process_counts_end_with_all_cores(self, maximum, counts):
        assert process_counts(maximum) == counts


class TestProblemSize:
    def test_westmere_by_the_linear_rule(self):
        # s001-c001; in bytes the paper's 92 % are 84.4 %.
        unit = rounding_unit(192, 64, 96, "nb-lcm")
        n = hpl_problem_size_linear(WESTMERE_BYTES, 0.92, unit)
        assert n == 1179648
        assert matrix_bytes(n) / WESTMERE_BYTES == pytest.approx(0.844, abs=5e-4)

    def test_westmere_rounded_by_nb_alone(self):
        assert hpl_problem_size_linear(WESTMERE_BYTES, 0.92, 192) == 1181376

    def test_fraction_counts_bytes(self):
        # 0.8 * 16 GiB / 8 = 1717986918.4 elements; its root is 41448.6.
        assert hpl_problem_size(16 * GIB, 0.8, 1) == 41448

    def test_the_fraction_is_the_decimal_that_was_typed(self):
        # 0.1 * 80 bytes hold exactly one element; 0.1 in binary is a little more than a tenth,
        # 0.7 a little less.
        assert hpl_problem_size(8 * 1000, 0.1, 10) == 10
        assert hpl_problem_size(8 * 7000, 0.7, 70) == 70

    @given(
        memory_bytes=st.integers(10**6, 10**16),
        fraction=st.floats(0.01, 1.0),
        multiple_of=st.integers(1, 30),
    )
    def test_n_is_the_largest_multiple_that_fits(self, memory_bytes, fraction, multiple_of):
        n = hpl_problem_size(memory_bytes, fraction, multiple_of)
        allowed = Fraction(str(fraction)) * memory_bytes
        assert n % multiple_of == 0
        assert matrix_bytes(n) <= allowed < matrix_bytes(n + multiple_of)

    @given(
        memory_bytes=st.integers(10**6, 10**16),
        n_fraction=st.floats(0.1, 1.0),
        nb=st.integers(1, 4),
        ranks=st.integers(1, 8),
    )
    def test_linear_n_is_the_largest_multiple_that_fits(self, memory_bytes, n_fraction, nb, ranks):
        p, q = process_grid(ranks)
        unit = rounding_unit(nb, p, q, "nb-lcm")
        n = hpl_problem_size_linear(memory_bytes, n_fraction, unit)
        allowed = Fraction(str(n_fraction)) ** 2 * memory_bytes
        assert n % (nb * p) == n % (nb * q) == 0
        assert matrix_bytes(n) <= allowed < matrix_bytes(n + unit)

    @pytest.mark.parametrize("size", [hpl_problem_size, hpl_problem_size_linear])
    def test_n_of_zero_is_refused(self, size):
        with pytest.raises(SizingError, match="1000 bytes of memory are too few for N=192"):
            size(1000, 0.8, 192)

    @pytest.mark.parametrize("fraction", [0, -0.1, 1.01, float("nan")])
    def test_fractions_that_are_none(self, fraction):
        with pytest.raises(SizingError, match="above 0 and at most 1"):
            hpl_problem_size(GIB, fraction, 192)
        with pytest.raises(SizingError, match="above 0 and at most 1"):
            hpl_problem_size_linear(GIB, fraction, 192)

    @pytest.mark.parametrize("memory_bytes", [0, -1])
    def test_memory_that_is_none(self, memory_bytes):
        with pytest.raises(SizingError, match="memory in bytes must be positive"):
            hpl_problem_size(memory_bytes, 0.8, 192)

    def test_unknown_rounding(self):
        with pytest.raises(SizingError, match="must be 'nb' or 'nb-lcm', not 'up'"):
            rounding_unit(192, 2, 4, "up")


class TestTime:
    def test_operations_are_those_that_hpl_counts(self):
        # HPL 2.3 printed N=7488, 8.16 s, 3.4315e+01 Gflop/s (two ranks, x86-64, 2026-11-21).
        assert hpl_flops(7488) / 8.16 / 1e9 == pytest.approx(34.315, rel=1e-3)

    def test_prediction(self):
        assert predict_hpl_seconds(40000, 240.0) == pytest.approx(177.8, abs=0.1)

    @given(
        seconds=st.floats(0.1, 1e6),
        gflops=st.floats(1.0, 1e9),
        multiple_of=st.integers(1, 400),
    )
    def test_n_is_the_largest_multiple_that_ends_in_time(self, seconds, gflops, multiple_of):
        n = hpl_problem_size_for_time(seconds, gflops, multiple_of)
        assert n % multiple_of == 0
        assert predict_hpl_seconds(n, gflops) <= seconds
        assert predict_hpl_seconds(n + multiple_of, gflops) > seconds

    def test_memory_caps_n(self):
        assert hpl_problem_size_for_time(3600, 200, 192, at_most=19200) == 19200

    def test_too_little_time(self):
        with pytest.raises(SizingError, match="too short for N=192"):
            hpl_problem_size_for_time(1e-6, 1, 192)

    @pytest.mark.parametrize("number", [0, -1, float("inf"), float("nan")])
    def test_time_and_rate_must_be_numbers_above_zero(self, number):
        with pytest.raises(SizingError, match="time budget in seconds must be positive"):
            hpl_problem_size_for_time(number, 100, 192)
        with pytest.raises(SizingError, match="rate in Gflop/s must be positive"):
            hpl_problem_size_for_time(100, number, 192)

    def test_a_file_of_several_solves_takes_the_sum(self):
        sweep = HplInput(
            n_values=(1000, 2000), nb_values=(64, 128), p_values=(1,), q_values=(2,), depths=(0, 1)
        )
        once = predict_hpl_seconds(1000, 10) + predict_hpl_seconds(2000, 10)
        assert predict_hpl_input_seconds(sweep, 10) == pytest.approx(4 * once)


class TestChoice:
    def test_memory_decides_without_a_time_budget(self):
        assert choose_problem_size(16 * GIB, 1, 2) == hpl_problem_size(16 * GIB, 0.80, 192)

    def test_the_linear_rule_replaces_the_fraction_of_bytes(self):
        chosen = choose_problem_size(WESTMERE_BYTES, 64, 96, n_fraction=0.92, rounding="nb-lcm")
        assert chosen == 1179648

    def test_time_lowers_n_and_never_raises_it(self):
        by_memory = choose_problem_size(16 * GIB, 1, 2)
        assert choose_problem_size(16 * GIB, 1, 2, seconds=10, gflops=200) < by_memory
        assert choose_problem_size(16 * GIB, 1, 2, seconds=1e6, gflops=200) == by_memory

    def test_a_time_budget_needs_a_rate(self):
        with pytest.raises(SizingError, match="rate to expect"):
            choose_problem_size(16 * GIB, 1, 2, seconds=10)

    def test_every_process_gets_a_block(self):
        # 0.8 of 1 MiB hold N=323: one block of 192 for 13 processes.
        with pytest.raises(SizingError, match=r"N=192 .* 1 x 13 grid .* below N=2496"):
            choose_problem_size(2**20, 1, 13)
        assert choose_problem_size(2**20, 1, 1) == 192


class TestRendering:
    def test_the_published_file(self):
        assert render_hpl_dat(WESTMERE).splitlines()[2:] == WESTMERE_LINES.splitlines()

    def test_several_values(self):
        lines = render_hpl_dat(EVERY_FIELD_DIFFERENT).splitlines()
        assert lines[2] == "results.txt  output file name (if any)"
        assert lines[4:6] == ["4            # of problems sizes (N)", "29 30 34 35  Ns"]
        assert lines[9:12] == [
            "3            # of process grids (P x Q)",
            "2 1 4        Ps",
            "2 4 1        Qs",
        ]
        assert [line.split()[0] for line in lines[25:31]] == ["1", "60", "1", "1", "0", "4"]

    def test_hpccinf_ends_with_the_lines_for_ptrans(self):
        lines = render_hpccinf(replace(WESTMERE, n_values=(1000,))).splitlines()
        assert lines[:31] == render_hpl_dat(replace(WESTMERE, n_values=(1000,))).splitlines()
        assert len(lines) == 36
        assert [line.split()[:2] for line in lines[32:]] == [
            ["0", "Number"],
            ["values", "of"],
            ["0", "number"],
            ["values", "of"],
        ]

    def test_lines_stay_as_short_as_the_programs_read_them(self):
        # 20 numbers of 7 digits: 159 characters. HPL reads them; for HPCC's second look at the
        # file such a line is two, and PTRANS takes its numbers from the wrong ones.
        many = replace(WESTMERE, n_values=tuple(range(1000000, 1000020)))
        assert max(len(line) for line in render_hpl_dat(many).splitlines()) == 159
        with pytest.raises(SizingError, match=r"line 6 .* 159 characters, and HPCC reads 80"):
            render_hpccinf(many)
        # 20 numbers of 3 digits: 79 characters, and no room for the label.
        some = replace(WESTMERE, nb_values=tuple(range(100, 120)))
        assert render_hpccinf(some).splitlines()[7].split() == [str(nb) for nb in range(100, 120)]

    def test_a_line_too_long_for_hpl(self):
        with pytest.raises(SizingError, match=r"line 3 .* HPL reads 252"):
            render_hpl_dat(replace(WESTMERE, output_file="x" * 253))


class TestIllegalValues:
    @pytest.mark.parametrize(
        ("change", "complaint"),
        [
            ({"n_values": (0,)}, "n_values must be at least 1, not 0"),
            ({"n_values": ()}, "1 to 20 values of n_values, not 0"),
            ({"n_values": (2**31,)}, "n_values must be at most 2147483647"),
            ({"nb_values": tuple(range(1, 22))}, "1 to 20 values of nb_values, not 21"),
            ({"p_values": (1, 2)}, "as many values of P as of Q"),
            ({"process_mapping": 2}, "process_mapping must be at most 1"),
            ({"pfacts": (3,)}, "pfacts must be at most 2"),
            ({"ndivs": (1,)}, "ndivs must be at least 2"),
            ({"bcasts": (6,)}, "bcasts must be at most 5"),
            ({"depths": (-1,)}, "depths must be at least 0"),
            ({"swap": 3}, "swap must be at most 2"),
            ({"alignment": 0}, "alignment must be at least 1"),
            ({"threshold": 0.0}, "checks no result"),
            ({"threshold": -16.0}, "checks no result"),
            ({"threshold": float("nan")}, "checks no result"),
            ({"output_file": "two words"}, "one word"),
        ],
    )
    def test_what_hpl_refuses_or_replaces(self, change, complaint):
        with pytest.raises(SizingError, match=complaint):
            replace(WESTMERE, **change)


class TestReading:
    @pytest.mark.parametrize("hpl_input", [WESTMERE, EVERY_FIELD_DIFFERENT])
    def test_round_trip(self, hpl_input):
        assert dat_file.parse(render_hpl_dat(hpl_input)).input == hpl_input

    def test_an_hpccinf_is_read_up_to_line_31(self):
        assert dat_file.parse(render_hpccinf(WESTMERE)).input == WESTMERE

    def test_values_beyond_the_count_are_ignored(self):
        # The paper's file has a second N that its count of 1 leaves unused (s001-c002).
        text = changed_line(render_hpl_dat(WESTMERE), 6, "1179648 1179148 Ns")
        assert dat_file.parse(text).input.n_values == (1179648,)

    @given(
        n_values=st.lists(st.integers(1, 2**31 - 1), min_size=1, max_size=20).map(tuple),
        grids=st.lists(
            st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)), min_size=1, max_size=20
        ),
        threshold=st.floats(1e-300, 1e300),
    )
    def test_round_trip_of_any_numbers(self, n_values, grids, threshold):
        p_values, q_values = zip(*grids, strict=True)
        hpl_input = replace(
            WESTMERE, n_values=n_values, p_values=p_values, q_values=q_values, threshold=threshold
        )
        assert dat_file.parse(render_hpl_dat(hpl_input)).input == hpl_input
