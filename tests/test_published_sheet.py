"""Printed values and figures beside measured ones, on made measurements."""

from clustergate.figures import name_of
from clustergate.model import METRICS, Sample
from clustergate.published import sheet
from clustergate.published.evidence import Measured, Subject
from clustergate.published.facts import load_paper


def figure(benchmark, metric, value, *, ranks=2, settings="", doubt="", **conditions):
    of = METRICS[metric]
    sample = Sample(benchmark, metric, of.unit, of.better, conditions, value)
    told = {"ranks": ranks, "nodes": 1, "settings": settings, **conditions}
    layout = f"{ranks}-ranks-packed"
    return Measured(
        benchmark, metric, of.unit, of.better, value, told, name_of(sample), layout, doubt
    )


def subject(name, *figures):
    return Subject(name, name, "local", figures)


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
