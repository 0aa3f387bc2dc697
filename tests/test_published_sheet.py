"""Printed values and figures beside measured ones, on made measurements."""

import math
import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from clustergate.benchmarks.registry import every_metric
from clustergate.core.figures import name_of
from clustergate.core.model import Better, Sample
from clustergate.core.paths import checkout
from evaluations import page, quantities, sheet
from evaluations.derivation import derived_rows
from evaluations.evidence import Measured, Subject
from evaluations.facts import WHY_NOT, Paper, load_paper, load_papers
from evaluations.forms import DRAWN_OF_A_RUN
from evaluations.page import render_page
from evaluations.predicates import cast
from evaluations.recomputed import recompute
from evaluations.sampling import sampled_values
from evaluations.systems import is_assertable
from evaluations.text import Findings, report

ONCE = "one launch, no interval"


def figure(benchmark, metric, value, *, ranks=2, settings="", doubt="", **conditions):
    of = every_metric()[metric]
    sample = Sample(benchmark, metric, of.unit, of.better, conditions, value)
    told = {"ranks": ranks, "nodes": 1, "settings": settings, **conditions}
    layout = f"{ranks}-ranks-packed"
    return Measured(
        benchmark, metric, of.unit, of.better, value, told, name_of(sample), layout, doubt
    )


def subject(name, *figures):
    return Subject(name, name, "local", figures)


def bcast(value, processes=2, size=8, **more):
    return figure(
        *("bcast", "time_us", value), ranks=processes, processes=processes, bytes=size, **more
    )


def row(paper, value, *subjects, **roles):
    facts = load_paper(paper)
    rows = sheet.value_rows(facts, cast(facts, subjects, roles))
    return {row.value.id: row for row in rows}[value]


def drawing(paper, number, *subjects):
    found = {drawn.figure.number: drawn for drawn in sheet.drawings(load_paper(paper), subjects)}
    return found[number]


def test_bars_of_npb_tell_the_class_that_was_run():
    rates = [
        figure("NPB-BT", "total_mop_per_s", 300.0, processes=1, problem_class="A"),
        figure("NPB-BT", "total_mop_per_s", 500.0, processes=1, problem_class="C"),
    ]
    slower = figure("NPB-BT", "total_mop_per_s", 200.0, processes=1, problem_class="A")
    assert drawing("003", 22, subject("a", *rates), subject("b", slower)).bars == {
        "NPB-BT, problem class A": {"a": 300.0, "b": 200.0},
        "NPB-BT, problem class C": {"a": 500.0},
    }


def test_a_figure_of_two_sizes_has_no_line_of_a_third():
    sizes = (1_000_000, 10_000, 8)
    found = [bcast(float(size + p), p, size) for size in sizes for p in (2, 4)]
    lines = drawing("004", 9, subject("a", *found)).lines
    assert [line.name for line in lines] == ["a, 8 bytes", "a, 1000000 bytes"]


def test_lines_of_one_node_are_not_of_two():
    found = [
        figure("Sendrecv", "bandwidth_mb_s", 900.0 - p, ranks=p, processes=p, bytes=size,
               placement="packed", nodes=nodes)
        for p, nodes in ((2, 1), (4, 2))
        for size in (8, 1024)
    ]  # fmt: skip
    lines = drawing("002", 4, subject("a", *found)).lines
    assert [line.name for line in lines] == ["a, 2 processes"]


def test_lines_of_lammps_tell_the_size_that_was_run():
    found = [
        figure("LAMMPS-lj-strong", "time_s", 9.0 / p, processes=p, atoms=atoms)
        for p in (1, 2)
        for atoms in (32000, 4194304)
    ]
    lines = drawing("002", 15, subject("a", *found)).lines
    assert [line.name for line in lines] == ["a, 32000 atoms", "a, 4194304 atoms"]


def test_bars_of_stream_are_one_for_each_loop():
    loops = [
        figure("STREAM", "bandwidth_gb_s", value, processes=2, kernel=kernel)
        for kernel, value in (("copy", 20.0), ("triad", 30.0))
    ]
    assert drawing("003", 11, subject("a", *loops)).bars == {
        "STREAM, kernel copy": {"a": 20.0},
        "STREAM, kernel triad": {"a": 30.0},
    }


def test_calls_are_lines_of_their_own_with_the_printed_point():
    part = [
        figure("host_overhead", "availability_percent", value, processes=2, call=call, bytes=8)
        for call, value in (("isend", 90.0), ("irecv", 10.0))
    ]
    drawn = drawing("002", 7, subject("a", *part))
    assert {line.name: line.points for line in drawn.lines} == {
        "a, isend": {8.0: 90.0},
        "a, irecv": {8.0: 10.0},
    }
    assert [line.points for line in drawn.printed] == [{524288.0: 94.4}]


# r005 is the Origin 2000's bcast of 8 bytes over that of the T3E, on 128 processes.
def test_a_printed_ratio_has_that_of_each_stack_to_the_first_beside_it():
    first = subject("a", bcast(10.0), bcast(8.0, size=1_000_000))
    found = row("004", "r005", first, subject("b", bcast(25.0)), subject("c", bcast(5.0)))
    assert found.measured == {"a": 1.0, "b": 2.5, "c": 0.5}
    assert found.baseline == "a"
    assert found.launches == {
        "a": "the baseline, 2-ranks-packed, not the printed launch",
        "b": f"relative to a, 2-ranks-packed, {ONCE}, not the printed launch",
        "c": f"relative to a, 2-ranks-packed, {ONCE}, not the printed launch",
    }


def test_ratios_are_of_the_most_processes_that_all_had():
    both = subject("a", bcast(10.0), bcast(20.0, 128), bcast(1.0, 256))
    other = subject("b", bcast(11.0), bcast(60.0, 128))
    found = row("004", "r005", both, other)
    assert found.measured == {"a": 1.0, "b": 3.0}
    assert found.launches["b"] == f"relative to a, 128-ranks-packed, {ONCE}, of another machine"


def test_a_launch_is_never_compared_with_one_of_other_settings():
    unflushed = bcast(1.0, settings="flush_bytes=0")
    found = row("004", "r005", subject("a", bcast(10.0), unflushed), subject("b", bcast(20.0)))
    assert found.measured["b"] == 2.0
    found = row("004", "r005", subject("a", bcast(10.0)), subject("b", unflushed))
    assert not found.measured
    assert found.why_not == "a and b measured it, but in no launch that is alike"
    found = row("004", "r005", subject("a", unflushed), subject("b", unflushed))
    assert "flush_bytes=0" in found.launches["b"]


def test_ratios_of_disturbed_launches_say_so():
    a, b = subject("a", bcast(10.0)), subject("b", bcast(20.0, doubt="a neighbour computed"))
    found = row("004", "r005", a, b)
    assert (sheet.DISTURBED in found.launches["a"], sheet.DISTURBED in found.launches["b"]) == (
        False,
        True,
    )
    found = row("004", "r005", b, a)
    assert sheet.DISTURBED in found.launches["a"]
    calm = subject("b", *b.figures, bcast(30.0))
    assert row("004", "r005", a, calm).measured["b"] == 3.0


@pytest.mark.parametrize(
    ("subjects", "told"),
    [
        ([subject("a", bcast(10.0))], "one stack alone has nothing to be relative to"),
        ([subject("a", bcast(10.0)), subject("b")], "a alone measured it"),
        ([subject("a"), subject("b", bcast(10.0))], "a, which the others are relative to, did not"),
        ([subject("a"), subject("b")], "not measured in this run"),
    ],
)
def test_why_there_is_no_ratio_is_told(subjects, told):
    found = row("004", "r005", *subjects)
    assert not found.measured
    assert told in found.why_not


def test_the_printed_baseline_is_who_stands_for_it():
    a, b = subject("a", bcast(10.0)), subject("b", bcast(25.0))
    found = row("004", "r005", a, b, **{"cray-t3e600": b})
    assert found.measured == {"a": 0.4, "b": 1.0}
    assert found.baseline == "b"


def test_flushed_caches_are_told_from_what_lay_in_them():
    def trials(flushed, cached, processes=2):
        return [
            bcast(flushed, processes, flush_bytes=1000),
            bcast(cached, processes, flush_bytes=0, settings="flush_bytes=0"),
        ]

    a, b = (
        subject("a", *trials(30.0, 3.0), *trials(40.0, 5.0, 4)),
        subject("b", trials(9.0, 1.0)[0]),
    )
    found = row("004", "r065", a, b)
    assert found.measured == {"a": 8.0}
    assert found.launches == {"a": f"4-ranks-packed, {ONCE}, not the printed launch"}
    assert "flush_bytes=0" in row("004", "r065", b).why_not
    disturbed = subject("a", *(replace(one, doubt="a neighbour") for one in trials(30.0, 3.0)))
    assert "were disturbed" in row("004", "r065", disturbed).why_not
    # Times are drawn with flushed caches, although others are shorter.
    assert drawing("004", 8, a).lines[0].points == {2.0: 0.03, 4.0: 0.04}


def test_each_peer_is_related_to_its_like():
    def map_of(*values):
        return [
            figure("ping_pong", "time_us", value, processes=4, peer=peer, bytes=8)
            for peer, value in enumerate(values, 1)
        ]

    found = row(
        "004", "r068", subject("a", *map_of(1.0, 10.0, 10.0)), subject("b", *map_of(2, 50, 30))
    )
    assert found.measured == {"a": 1.0, "b": 3.0}


def test_message_size_and_processes_tell_printed_values_apart():
    values = load_paper("004").values
    assert values["r005"].place == "8 bytes, 128 processes"
    assert values["r006"].place == "1000000 bytes, 128 processes"
    assert load_paper("003").values["r114"].place == ""


def test_fewer_processes_than_were_launched_are_told():
    a, b = (
        subject(name, figure("Allgather", "t_avg_us", 1.0, ranks=4, processes=2, bytes=1048576))
        for name in ("a", "b")
    )
    assert row("000", "r032", a, b).launches["a"] == "the baseline, 2 processes of 4-ranks-packed"


def test_some_printed_ratios_are_of_the_baseline():
    a, b = (
        subject(name, figure("Allgather", "t_avg_us", value, processes=2, bytes=1048576))
        for name, value in (("a", 100.0), ("b", 10.0))
    )
    found = row("000", "r032", a, b)
    assert found.measured == {"a": 1.0, "b": 10.0}
    assert found.launches["b"].startswith("a over this")


def test_a_ratio_is_drawn_nowhere_and_no_reference():
    value = load_paper("004").values["r005"]
    assert value.suite is not None
    named = replace(value.suite, figure="bcast.128p.8B.time_us", layout="128-ranks-packed")
    assert not is_assertable(replace(value, suite=named))
    assert is_assertable(replace(value, suite=replace(named, relative="")))
    over_sizes = replace(
        load_paper("004").figures[7],
        draw={"benchmark": "bcast", "metric": "time_us", "along": "bytes"},
    )
    for suite, drawn in ((named, 0), (replace(named, relative=""), 1)):
        values = {"r005": replace(value, suite=suite)}
        paper = replace(load_paper("004"), values=values, figures=[over_sizes])
        (drawing_of,) = sheet.drawings(paper, [subject("a", bcast(10.0))])
        assert len(drawing_of.printed) == drawn


def test_hpccg_is_the_mean_of_its_launches_with_the_least_and_the_most():
    launches = {1: (90.0, 100.0, 110.0), 2: (170.0, 180.0, 190.0)}
    a = subject(
        "a",
        *(
            replace(
                figure("HPCCG", "performance_mflops", max(rates), processes=p), of_launches=rates
            )
            for p, rates in launches.items()
        ),
    )
    (line,) = drawing("002", 9, a).lines
    assert (line.points, line.bars) == (
        {1.0: 100.0, 2.0: 180.0},
        {1.0: (90.0, 110.0), 2.0: (170.0, 190.0)},
    )
    (line,) = drawing("002", 10, a).lines
    assert line.points == pytest.approx({1.0: 100.0, 2.0: 90.0})


def test_a_figure_of_disturbed_launches_says_why_it_is_not_drawn():
    found = drawing("004", 8, subject("a", bcast(10.0, doubt="a neighbour computed")))
    assert found.why_not == "bcast: its launches were disturbed; run again on idle nodes"


def test_printed_derivations_have_those_of_several_figures_beside_them():
    rates = [
        figure("HPCCG", "performance_mflops", rate, processes=p)
        for p, rate in {1: 100.0, 2: 194.0}.items()
    ]
    strong = [
        figure("LAMMPS-lj-strong", "time_s", time, processes=p)
        for p, time in {1: 100.0, 2: 80.0}.items()
    ]
    a = subject("a", *rates, *strong)
    assert row("002", "r030", a).measured == {"a": pytest.approx(97.0)}
    assert row("002", "r032", a).measured == {"a": pytest.approx(62.5)}
    assert "is no power of two" not in row("002", "r022", a).why_not
    assert "between two powers of two" in row("002", "r022", a).why_not
    largest = launched("a", figure("PingPong-curve", "max_bandwidth_mb_s", 900.0, processes=2))
    found = row("003", "r034", largest)
    assert found.measured == {"a": pytest.approx(900.405)}
    assert found.launches["a"].endswith("median of 10, 900.1 to 900.7")


def launched(name, *figures, launches=10, scatter=1e-4):
    """Return a subject of which launches scatter by a part of what they measured."""
    factors = [1 + 7 * k % 10 * scatter for k in range(launches)]
    return subject(
        name, *(replace(one, of_launches=[one.value * by for by in factors]) for one in figures)
    )


# r030 of paper 002 is the part of its rate on one process that HPCCG keeps on 72 of them, 88 %.
@pytest.mark.parametrize(
    ("rate", "scatter", "launches", "told"),
    [
        (88.0, 1e-4, 10, "as printed"),
        (80.0, 1e-4, 10, "worse than printed"),
        (110.0, 1e-4, 10, "better than printed"),
        (90.0, 1e-2, 10, "more launches would tell whether as printed"),
        (88.0, 1e-4, 5, "too few launches to tell whether as printed"),
    ],
)
def test_a_derived_value_of_the_printed_system_is_held_to_the_print(rate, scatter, launches, told):
    one = figure("HPCCG", "performance_mflops", 100.0, processes=1, ranks=1)
    many = figure("HPCCG", "performance_mflops", 72 * rate, processes=72, ranks=72)
    many = launched("a", many, launches=launches, scatter=scatter).figures
    a = replace(subject("a", replace(one, of_launches=[100.0] * launches), *many),
                system="opteron-myri10g")  # fmt: skip
    assert row("002", "r030", a).launches["a"].endswith(f", {told}")
    other = replace(a, system="local")
    assert row("002", "r030", other).launches["a"].endswith(", of another machine")
    fewer = [replace(f, conditions={**f.conditions, "processes": 64}) for f in many]
    fewer = replace(a, figures=[a.figures[0], *fewer])
    assert row("002", "r030", fewer).launches["a"].endswith(", not the printed launch")


@pytest.mark.parametrize(
    ("ratio", "told"), [(1.512, "as printed"), (2.0, "worse than"), (1.0, "better than")]
)
def test_a_ratio_of_two_machines_is_held_to_the_print(ratio, told):
    """Slower is worse: r005 is what the Origin 2000 takes beside the T3E."""
    printed = load_paper("004").values["r005"].value or math.nan
    system = load_paper("004").values["r005"].system
    t3e, origin = (
        launched(name, bcast(value, 128))
        for name, value in (("a", 10.0), ("b", 10.0 * printed * ratio / 1.512))
    )
    roles = {"cray-t3e600": t3e, system: origin}
    assert told in row("004", "r005", t3e, origin, **roles).launches["b"]
    # Nothing is said of disturbed launches.
    busy = replace(origin, figures=[replace(one, doubt="a neighbour") for one in origin.figures])
    disturbed = row("004", "r005", t3e, busy, **{**roles, system: busy}).launches["b"]
    assert "disturbed" in disturbed
    assert "printed" not in disturbed
    # Without the printed baseline it is another ratio.
    del roles["cray-t3e600"]
    found = row("004", "r005", t3e, origin, **roles).launches["b"]
    assert found.endswith("of another machine")


@pytest.mark.parametrize(
    ("qualifier", "value", "told"),
    [
        ("above", 90.0, "as printed"),
        ("above", 110.0, "worse than printed"),
        ("at least", 99.0, "as printed"),
        ("below", 110.0, "as printed"),
        ("below", 90.0, "better than printed"),
        ("about", 92.0, "as printed"),
        ("", 92.0, "better than printed"),
        ("up to", 103.0, "as printed"),
    ],
)
def test_bounds_are_held_as_they_are_qualified(qualifier, value, told):
    printed = load_paper("002").values["r030"]
    printed = replace(printed, qualifier=qualifier, value=value, better=Better.HIGHER)
    assert sheet.compare_with_printed(printed, sampled_values([100.0] * 6)) == told
    lower = sheet.compare_with_printed(
        replace(printed, better=Better.LOWER), sampled_values([100.0] * 6)
    )
    turned = {
        "better than printed": "worse than printed",
        "worse than printed": "better than printed",
    }
    assert lower == turned.get(told, told)
    neither = sheet.compare_with_printed(
        replace(printed, better=Better.NEITHER), sampled_values([100.0] * 6)
    )
    assert neither == ("not as printed" if told in turned else told)


def test_every_value_has_a_figure_beside_it_or_the_reason_why_not():
    lacking, every = [], 0
    for paper in load_papers():
        for value in paper.values.values():
            if value.derived:
                assert value.derived["kind"] in quantities.KINDS, value.id
            elif value.suite is None:
                assert quantities.why_not(value), (paper.id, value.id)
                lacking.append((paper.id, value.id, quantities.why_not(value)))
            every += 1
    again = {(one.paper, one.id) for one in recompute()}
    nominal = sum(why == WHY_NOT["theoretical"] for _, _, why in lacking)
    recomputed = sum((paper, name) in again for paper, name, _ in lacking)
    page = (checkout() / "references" / "published" / "README.md").read_text(encoding="utf-8")
    assert f"of the {every} values" in page
    assert f"| {every - len(lacking)} | have a measured" in page
    assert f"| {len(lacking)} | have none" in page
    assert f"{nominal} are nominal" in page
    assert f"{recomputed} of the {len(lacking)} are recomputed" in page


def test_a_derived_quantity_is_sampled_and_has_an_interval():
    rates = {p: figure("HPCCG", "performance_mflops", r, processes=p) for p, r in
             {1: 100.0, 2: 194.0}.items()}  # fmt: skip
    [told] = row("002", "r032", launched("a", *rates.values())).launches.values()
    assert told == "derived, median of 10, 97.00 to 97.00, of another machine"
    [told] = row("002", "r032", subject("a", *rates.values())).launches.values()
    assert told == f"derived, {ONCE}, of another machine"


def test_what_was_printed_as_a_mean_has_a_mean_beside_it():
    one = figure("HPCCG", "performance_mflops", 100.0, processes=1)
    two = figure("HPCCG", "performance_mflops", 198.0, processes=2)
    launches = ((one, [100.0] * 3), (two, [180.0, 182.0, 196.0]))
    a = subject("a", *(replace(each, of_launches=values) for each, values in launches))
    found = row("002", "r030", a)
    assert found.measured == {"a": pytest.approx(93.0)}
    assert found.launches == {"a": "derived, mean of 3, 90 to 98, of another machine"}


def test_gains_and_losses_are_of_those_who_play_the_systems():
    fast, slow = (
        launched(name, figure("NPB-IS", "total_mop_per_s", rate, ranks=8, problem_class="C"))
        for name, rate in (("a", 116.7), ("b", 100.0))
    )
    roles = {"e326-24-400-133": fast, "e326-24-400-100": slow}
    assert row("003", "r127", fast, slow, **roles).measured == {"a": pytest.approx(16.7)}
    assert row("003", "r127", fast).why_not == "nothing here stands for e326-24-400-133"
    times = {"x336-34-400-pcie": 75.0, "x336-34-400-133": 100.0}
    players = {
        name: launched(name, figure("Barrier", "t_avg_us", time, processes=8))
        for name, time in times.items()
    }
    found = row("003", "r111", *players.values(), **players)
    assert found.measured == {"x336-34-400-pcie": pytest.approx(25.0)}
    # Of the best of some over the worst of others.
    times = {"nec-sx8": 9, "cray-x1-msp": 10, "altix-bx2-numalink4": 110, "dell-xeon": 100}
    players = {
        name: launched(name, figure("Reduce", "t_avg_us", time, processes=64, bytes=1 << 20))
        for name, time in {**times, "cray-opteron": 200}.items()
    }
    found = row("000", "r030", *players.values(), **players)
    assert found.measured == {"nec-sx8": pytest.approx(10.0)}


def test_crossovers_and_dips_are_sizes_beside_the_printed_ones():
    def bandwidth(name, *rates, benchmark="PingPong"):
        sizes = (16384, 65536, 131072, 262144, 524288)
        return launched(
            name,
            *(
                figure(benchmark, "bandwidth_mb_s", rate, processes=2, bytes=size)
                for size, rate in zip(sizes, rates, strict=True)
            ),
        )

    def roles(benchmark):
        intel = bandwidth("intel", 10.0, 5.0, 15.0, 30.0, 40.0, benchmark=benchmark)
        mvapich = bandwidth("mvapich", 20.0, 25.0, 28.0, 30.0, 40.0, benchmark=benchmark)
        return {"westmere-m610-qdr-intelmpi": intel, "westmere-m610-qdr-mvapich2": mvapich}

    played = roles("PingPong")
    assert row("001", "r030", *played.values(), **played).measured == {"intel": 262144.0}
    assert row("001", "r031", *played.values(), **played).measured == {"intel": 65536.0}
    played = roles("Sendrecv")
    assert row("001", "r032", *played.values(), **played).measured == {"mvapich": 16384.0}
    assert row("001", "r033", *played.values(), **played).measured == {"mvapich": 131072.0}


def test_the_efficiency_of_a_slot_is_of_its_directions():
    percent = launched("a", figure("Exchange-curve", "link_percent", 43.5, processes=4))
    assert row("003", "r074", percent).measured == {"a": pytest.approx(43.5, rel=1e-3)}
    # A half-duplex slot has one direction at a time.
    assert row("003", "r044", percent).measured == {"a": pytest.approx(87.0, rel=1e-3)}
    assert row("003", "r074", subject("b")).why_not == "not measured in this run"


def test_a_row_says_why_its_value_is_no_reference():
    assert not row("003", "r034", subject("a")).no_reference
    exchange = row("003", "r043", subject("a"))
    assert exchange.no_reference == "the paper leaves open: processes"
    nominal = row("003", "r001", subject("a"))
    assert ("nominal" in nominal.remarks, nominal.no_reference) == (True, "")


def test_one_point_is_not_drawn_as_a_line():
    one = figure("barrier", "time_us", 5.0, processes=2)
    two = figure("barrier", "time_us", 9.0, ranks=4, processes=4)
    assert "one process count is no line" in drawing("004", 7, subject("a", one)).why_not
    assert not drawing("004", 7, subject("a", one, two)).why_not


def test_one_bar_is_not_drawn():
    rate = figure("NPB-BT", "total_mop_per_s", 300.0, processes=1, problem_class="A")
    assert drawing("003", 22, subject("a", rate)).why_not == (
        "NPB-BT, problem class A: one bar is no comparison; run two stacks or more"
    )
    assert not drawing("003", 22, subject("a", rate), subject("b", rate)).why_not


def in_rounds(disturbed, value=900.0, times=3.0):
    """Return who measured a largest bandwidth in twelve rounds, of which so many were slowed."""
    runs = {f"r{k:02}": value / (times if k < disturbed else 1) for k in range(12)}
    one = figure("PingPong-curve", "max_bandwidth_mb_s", value, processes=2)
    busy = frozenset(list(runs)[:disturbed])
    return subject("a", replace(one, of_launches=[*runs.values()], rounds=runs, disturbed=busy))


def test_disturbed_rounds_are_not_what_a_stack_reaches():
    found = row("003", "r034", in_rounds(8))
    assert found.measured == {"a": 900.0}
    assert sheet.DISTURBED not in found.launches["a"]
    assert not sheet.disturbance_notes([in_rounds(8)])
    found = row("003", "r034", in_rounds(12))
    assert found.measured == {"a": 300.0}
    assert sheet.DISTURBED in found.launches["a"]
    [told] = sheet.disturbance_notes([in_rounds(12)])
    assert told.startswith("every launch of 1 of 1 figures of a was disturbed")


@pytest.mark.parametrize(
    ("disturbed", "drawn", "name"), [(4, 10.0, "a, 8 bytes"), (12, 5.0, "a, 8 bytes, disturbed")]
)
def test_lines_are_of_undisturbed_rounds_or_say_that_they_are_not(disturbed, drawn, name):
    def bcast_in_rounds(processes):
        runs = {f"r{k:02}": 5.0 if k < disturbed else 10.0 for k in range(12)}
        busy = frozenset([*runs][:disturbed])
        one = bcast(5.0, processes)
        return replace(one, of_launches=[*runs.values()], rounds=runs, disturbed=busy)

    [line] = drawing("004", 8, subject("a", bcast_in_rounds(2), bcast_in_rounds(4))).lines
    assert (line.name, {*line.points.values()}) == (name, {drawn / 1000})


def test_what_is_derived_of_two_systems_is_of_as_many_processes():
    def barrier(name, times):
        told = [figure("Barrier", "t_avg_us", t, ranks=p, processes=p) for p, t in times.items()]
        return launched(name, *told)

    def beside(other):
        roles = {"x336-34-400-pcie": barrier("a", {8: 75.0}), "x336-34-400-133": other}
        return row("003", "r111", *roles.values(), **roles)

    more = beside(barrier("b", {8: 100.0, 16: 900.0}))
    assert more.measured == {"a": pytest.approx(25.0)}
    assert "no number of processes" in beside(barrier("b", {16: 900.0})).why_not
    assert "Barrier of each system" in beside(barrier("b", {8: 0.0})).why_not


def test_what_never_falls_has_no_plunge():
    def isend(*values):
        told = {"call": "isend", "processes": 2}
        return subject("a", *(
            figure("host_overhead", "availability_percent", value, bytes=8 << k, **told)
            for k, value in enumerate(values)
        ))  # fmt: skip

    [name] = [v.id for v in load_paper("002").values.values()
              if v.derived.get("kind") == "plunge size"]  # fmt: skip
    assert row("002", name, isend(90.0, 91.0, 40.0)).measured == {"a": 32.0}
    assert row("002", name, isend(40.0, 90.0, 91.0)).why_not == "host_overhead never falls"


def test_axes_are_linear_where_those_of_the_paper_are():
    linear = [f.number for f in load_paper("004").figures if (f.draw or {}).get("linear")]
    assert linear == [9, 23, 24]
    eights = [figure("bcast", "time_us", 1e6 * p, processes=p, bytes=8) for p in (2, 4, 8)]
    assert value_labels("004", 8, *eights) == ["2000", "3000", "5000", "7000"]
    assert value_labels("004", 9, *eights) == ["0", "2000", "4000", "6000", "8000"]
    # Partners are counted: that of rank 0 is as far from the next as any other.
    peers = [figure("ping_pong", "time_us", 5.0, peer=k, bytes=8) for k in range(1, 6)]
    grid = re.findall(r"M([\d.]+) [\d.]+V", svg_of("004", 3, *peers))
    first, second, third, *_ = map(float, grid)
    assert third - second == pytest.approx(second - first, abs=0.2)


def svg_of(paper: str, number: int, *figures: Measured) -> str:
    found = drawing(paper, number, subject("a", *figures))
    assert not found.why_not
    return str(page._figure(found).drawn.svg)


def value_labels(paper: str, number: int, *figures: Measured) -> list[str]:
    return re.findall(r'text-anchor="end">([^<]+)<', svg_of(paper, number, *figures))


def drawn_figures(paper: Paper, chance: random.Random) -> Iterator[Measured]:
    """Yield made figures of what a paper draws and prints, of which some lack a condition."""
    asked = [
        (name, one.draw["metric"], one.draw)
        for one in paper.figures
        if one.draw and one.draw["metric"] not in DRAWN_OF_A_RUN
        for name in one.draw.get("benchmarks") or [one.draw["benchmark"]]
    ]
    asked += [
        (name, of["metric"], of)
        for value in paper.values.values()
        if (of := value.derived) and "metric" in of
        for name in [of["benchmark"]]
    ]
    for benchmark, metric, of in asked:
        along = of.get("along", "bytes")
        for at in (1, 2, 8, 1024, *([0] if along == "bytes" else [])):
            conditions = {
                **{"ranks": 2, "processes": 2, "nodes": 1, "placement": "packed", "bytes": 8},
                **{"call": "isend", "kernel": "triad", "problem_class": "A", "n": 100},
                along: at,
            }
            for name in list(conditions):
                if chance.random() < 0.2:
                    del conditions[name]
            value = chance.choice((0.0, 1e-9, 1.0, 1.0, 7.0, 1e15))
            known = every_metric().get(metric)
            better = known.better if known else Better.HIGHER
            doubt = chance.choice(("", "", "disturbed"))
            launches = [value * (1 + k % 3) for k in range(chance.choice((0, 1, 7)))]
            name = f"{benchmark}.{metric}.{sorted(conditions.items())}"
            yield Measured(
                benchmark, metric, "", better, value, conditions, name, "", doubt, launches
            )


@pytest.mark.parametrize("paper", load_papers(), ids=lambda paper: paper.id)
def test_no_table_of_figures_crashes_a_page(paper):
    chance = random.Random(3)
    for _ in range(3):
        subjects = [Subject(n, n, "here", list(drawn_figures(paper, chance))) for n in "ab"]
        roles = dict(zip(paper.systems, subjects, strict=False))
        here = cast(paper, subjects, roles)
        found = Findings(
            paper,
            subjects,
            sheet.value_rows(paper, here),
            sheet.conclusions(paper, here),
            sheet.drawings(paper, subjects),
            derived_rows(subjects, {"here": 100.0}),
            sheet.disturbance_notes(subjects),
        )
        assert len(found.rows) == len(paper.values)
        assert render_page(found).startswith("<!DOCTYPE html>")
        assert report(found, width=100)
