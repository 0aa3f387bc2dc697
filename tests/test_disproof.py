"""A figure that no unchanged machine reaches proves its reference wrong, and opens no gate."""

import dataclasses
import datetime
import json
import math
import statistics
from pathlib import Path

import pytest
from reframe.utility.sanity import reference_bounds

from clustergate.core.model import NodeFacts, Verdict
from clustergate.core.reasons import reason_as_json
from clustergate.judge.assembly import (
    assemble,
    reframe_figures,
    verdicts,
)
from clustergate.judge.baselines.writer import Measured, updated
from clustergate.judge.case import measure_case
from clustergate.judge.history.series import CaseKey
from clustergate.judge.judging import exit_status
from clustergate.judge.references.lookup import parse_references
from tests import builders

PATH = Path("alpha.yaml")
CHECKS = ("HplCheck", "ImbMpi1Check")
SIZES = (8, 1024, 1 << 20)
EXCLUSIVE, SHARED = {"alpha:node": NodeFacts(exclusive=True)}, {"alpha:node": NodeFacts()}


def hpl(value, order=0):
    return builders.hpl(value, order, n=9)


def ping(size, value, order=0, benchmark="PingPong", metric="bandwidth_mb_s"):
    return builders.ping(value, size, order, benchmark, metric)


def record(*samples, launches=1):
    made = builders.launches(launches, 10.0)
    return builders.record(*samples, partition="alpha:node", launches=made)


def by_hand(**values):
    """References that somebody wrote into the file, by figure."""
    check = "HplCheck" if "HPL.performance_gflops" in values else "ImbMpi1Check"
    entries = {name: [value, -0.05, None, _unit(name)] for name, value in values.items()}
    content = {
        "$provenance": {check: {"origin": "published", "source": "a paper"}},
        check: {
            "$index": ["$partition", "$environ", "reference_layout", "reference_effort"],
            "alpha:node": {"mpich": {"2-ranks-packed": {"smoke": entries}}},
        },
    }
    return parse_references(json.dumps(content), PATH, CHECKS)


def _unit(name):
    return {"s": "MB/s", "gflops": "Gflop/s", "us": "us"}[name.rpartition("_")[2]]


def spread_out(value, percent, runs):
    """Return runs whose logarithms have such a standard deviation, in percent."""
    steps = [k - (runs - 1) / 2 for k in range(runs)]
    scale = percent / 100 / statistics.stdev(steps)
    return [value * math.exp(scale * step) for step in steps]


def measured(name, value, percent=0.5, runs=6, **changes):
    """The reference that a baseline of some runs wrote."""
    check = "HplCheck" if name.startswith("HPL") else "ImbMpi1Check"
    bounds = (None, 0.2) if name.endswith("us") else (-0.2, None)
    fields = {
        "case": CaseKey(check, "alpha:node", "mpich", "2-ranks-packed", "smoke"),
        "entries": {name: (value, *bounds, _unit(name))},
        "days": [datetime.date(2026, 11, day + 1) for day in range(runs)],
        "runs": [f"run{day}" for day in range(runs)],
        "launches": 3 * runs,
        "rule": "best of some runs",
        "build": "b1",
        "nodes": ["n1"],
        "values": {name: spread_out(value, percent, runs)},
    } | changes
    return parse_references(updated("", [Measured(**fields)]), PATH, CHECKS)


def judged(one, references, nodes=SHARED):
    """Return the statuses of check and gate, and the codes of what is said of its figures."""
    fails = False
    for _, value, _, bounds in reframe_figures(measure_case(one, references.find, nodes)):
        if bounds:
            low, high = reference_bounds(*bounds[:3])
            fails |= not low <= value <= high
    told = ("fail", "performance") if fails else ("pass", "")
    outcome = builders.passed(one, result=told[0], phase=told[1])
    (case,) = assemble([], [outcome], [one], references.find, nodes)
    found = verdicts([case])
    # ReFrame and the judge agree.
    assert fails == (exit_status(found) != 0)
    codes = {reason_as_json(r)["code"] for f in case.figures for r in f.judgement.reasons}
    return exit_status(found), exit_status(found, "gate"), codes


@pytest.mark.parametrize(
    ("times", "code"),
    [
        (7.6, "reference.bits"),
        (8.0, "reference.bits"),
        (9.7, "reference.slipped-point"),
        (10.4, "reference.slipped-point"),
        (100.0, "reference.slipped-point"),
        (1000.0, "reference.slipped-prefix"),
    ],
)
@pytest.mark.parametrize("whole", ["HPL", "PingPong"])
def test_a_whole_benchmark_that_slipped_is_told_and_opens_nothing(times, code, whole):
    if whole == "HPL":
        one = record(hpl(40.0))
        known = by_hand(**{"HPL.performance_gflops": 40.0 / times})
    else:
        values = dict(zip(SIZES, (9.0, 800.0, 11000.0), strict=True))
        # Not all of them are off by the very same.
        one = record(
            *(ping(s, v * times * (1 + k / 20)) for k, (s, v) in enumerate(values.items()))
        )
        known = by_hand(**{f"PingPong.2p.{s}B.bandwidth_mb_s": v for s, v in values.items()})
    check, gate, codes = judged(one, known)
    assert (check, gate) == (2, 2)
    assert code in codes


def test_one_size_of_many_that_gained_is_no_slip():
    known = by_hand(**{f"PingPong.2p.{size}B.bandwidth_mb_s": 100.0 for size in SIZES})
    one = record(ping(8, 800.0), ping(1024, 101.0), ping(1 << 20, 99.0))
    assert judged(one, known)[:2] == (0, 0)


def test_single_size_that_gained_is_no_slip():
    names = [f"PingPong.2p.{size}B.bandwidth_mb_s" for size in SIZES]
    entry = (100.0, -0.2, None, "MB/s")
    known = measured(
        names[0],
        100.0,
        0.5,
        entries=dict.fromkeys(names, entry),
        values=dict.fromkeys(names, spread_out(100.0, 0.5, 6)),
    )
    launches = [ping(s, v, k) for k in range(3) for s, v in zip(SIZES, (800, 99, 98), strict=True)]
    *_, codes = judged(record(*launches, launches=3), known)
    assert "reference.outgrown" in codes
    assert "reference.bits" not in codes


def test_by_hand_only_ten_times_is_proof():
    """Who writes what is to be reached at least may write little; by ten times it is no figure."""
    name = "HPL.performance_gflops"
    assert judged(record(hpl(13.0)), by_hand(**{name: 4.0}), EXCLUSIVE)[:2] == (0, 0)
    assert judged(record(hpl(4.0 * 31)), by_hand(**{name: 4.0}))[:2] == (2, 2)


@pytest.mark.parametrize(
    ("name", "sample", "nodes", "most"),
    [
        ("HPL.performance_gflops", hpl, EXCLUSIVE, 1.10),
        ("HPL.performance_gflops", hpl, SHARED, 1.5),
        ("PingPong.2p.1048576B.bandwidth_mb_s", lambda v: ping(1 << 20, v), EXCLUSIVE, 1.10),
        (
            "PingPong.2p.1048576B.latency_us",
            lambda v: ping(1 << 20, 1e4 / v, metric="latency_us"),
            EXCLUSIVE,
            1.10,
        ),
        ("PingPong.2p.8B.bandwidth_mb_s", lambda v: ping(8, v), EXCLUSIVE, 1.25),
        ("PingPong.2p.8B.bandwidth_mb_s", lambda v: ping(8, v), SHARED, 1.5),
        (
            "Bcast.2p.1048576B.t_max_us",
            lambda v: ping(1 << 20, 1e4 / v, 0, "Bcast", "t_max_us"),
            EXCLUSIVE,
            1.35,
        ),
    ],
)
def test_value_far_beyond_a_measured_reference_proves_it_wrong(name, sample, nodes, most):
    """What beats a measured reference by more than machines gain proves it wrong."""
    known = measured(name, 100.0)

    def of(value):
        launches = [dataclasses.replace(sample(value), order=k) for k in range(3)]
        return judged(record(*launches, launches=3), known, nodes)

    assert of(100.0 * (most - 0.02))[:2] == (0, 0)
    check, gate, codes = of(100.0 * (most + 0.02))
    assert (check, gate, codes) == (2, 2, {"reference.outgrown"})


def test_the_command_that_accepts_it_is_told():
    known = measured("HPL.performance_gflops", 100.0)
    one = record(hpl(130.0))
    outcome = builders.passed(one, result="fail", phase="performance")
    (case,) = assemble([], [outcome], [one], known.find, EXCLUSIVE)
    (figure,) = case.figures
    assert figure.judgement.verdict is Verdict.INVALID
    assert "--accept-better 'HPL.performance_gflops'" in figure.judgement.sentence


@pytest.mark.parametrize("spread_percent", [12.0, 25.0])
def test_a_gain_within_the_scatter_of_the_baseline_proves_nothing(spread_percent):
    known = measured("HPL.performance_gflops", 100.0, spread_percent)
    assert judged(record(hpl(155.0)), known)[0] == 0
    assert judged(record(hpl(500.0)), known)[0] == 2


def test_a_gain_within_the_scatter_of_the_run_proves_nothing():
    name = "PingPong.2p.8B.bandwidth_mb_s"
    known = measured(name, 100.0)
    wild = record(
        *(ping(8, v, k) for k, v in enumerate((170.0, 168.0, 120.0, 90.0, 60.0))), launches=5
    )
    assert judged(wild, known)[0] == 0
    calm = record(
        *(ping(8, v, k) for k, v in enumerate((170.0, 168.0, 169.0, 167.0, 60.0))), launches=5
    )
    assert judged(calm, known)[0] == 2
    # A single launch that no other comes near to is no level.
    lucky = record(*(ping(8, v, k) for k, v in enumerate((190.0, 101.0, 100.0, 100.0))), launches=4)
    assert judged(lucky, known)[0] == 0


def test_on_another_processor_it_is_no_wonder():
    known = measured("HPL.performance_gflops", 100.0, processors=["EPYC"])
    check, gate, codes = judged(record(hpl(300.0)), known, EXCLUSIVE)
    assert (check, gate) == (0, 2)
    assert "reference.unknown-processor" in codes


def test_what_is_ten_times_slower_stays_a_regression():
    """A link that fell back to a tenth is no slip of a reference."""
    known = by_hand(**{"HPL.performance_gflops": 400.0})
    check, gate, codes = judged(record(hpl(40.0)), known)
    assert (check, gate) == (1, 1)
    # It may be one, of what was written by hand.
    assert "reference.slipped-point" in codes
    check, gate, codes = judged(record(hpl(40.0)), measured("HPL.performance_gflops", 400.0))
    assert (check, gate) == (1, 1)
    assert "reference.slipped-point" not in codes


@pytest.mark.parametrize(("values", "gained"), [((0.03, 0.04), False), ((0.03, 0.06), True)])
def test_gain_of_a_printed_digit(values, gained):
    """A bandwidth of 0.034 MB/s is printed as 0.03, and one of 0.036 as 0.04."""
    before, now = values
    name = "PingPong.2p.2B.bandwidth_mb_s"
    known = measured(name, before, values={name: [before] * 6})
    samples = [ping(2, now, order) for order in range(3)]
    *_, codes = judged(record(*samples, launches=3), known, EXCLUSIVE)
    assert ("reference.outgrown" in codes) is gained
