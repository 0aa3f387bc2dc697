import dataclasses
import datetime
import json
import math
import random
import statistics
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import yaml
from reframe.utility.sanity import reference_bounds

from clustergate.benchmarks.registry import every_benchmark
from clustergate.core.figures import samples_of
from clustergate.core.model import (
    BadRequest,
    Better,
    Estimate,
    Launch,
    Sample,
    Verdict,
    derived_sample,
)
from clustergate.core.reasons import in_words
from clustergate.judge.assembly import assemble, reframe_figures
from clustergate.judge.baselines import proposals
from clustergate.judge.baselines.of_before import completed
from clustergate.judge.baselines.proposals import Acceptance, Rule, make_baseline
from clustergate.judge.baselines.writer import updated
from clustergate.judge.case import measure_case
from clustergate.judge.changes import Judge
from clustergate.judge.history.series import collect
from clustergate.judge.history.stored_runs import PastRun
from clustergate.judge.judging import judge, reframe_reference
from clustergate.judge.references.lookup import References, parse_references
from clustergate.judge.scatter import widest_between
from tests import builders
from tests.builders import CONDITIONS, START, built, hpl, past_runs, ping

CHECKS = ("HplCheck", "HpccCheck", "ImbMpi1Check")
PATH = Path("alpha.yaml")
NONE = References(PATH)
STEADY = (100.3, 99.8, 100.1, 99.7, 100.2, 99.9, 100.0, 100.4)


def record(*samples, build="b1", nodes=("n1",), **changes):
    hpl_alone = samples and samples[0].benchmark == "HPL"
    fields = {"check": "HplCheck" if hpl_alone else "HpccCheck", "details": built(build, nodes)}
    return builders.record(*samples, partition="alpha:node", **{**fields, **changes})


def series_of(records, hours=2.0):
    return collect(past_runs(records, hours))


def series_of_hpl(values=STEADY, **changes):
    return series_of([record(hpl(value), **changes) for value in values])


def baseline(series, known=NONE, rule=None, **acceptance):
    return make_baseline(series, known, rule or Rule(), Acceptance(**acceptance))


def refusal(made):
    (found,) = made.refusals
    return str(found)


def known_by(*measured):
    return parse_references(updated("", measured), PATH, CHECKS)


def hpl_before(value, lower=-0.05):
    text = (
        "$provenance: {HplCheck: {origin: published, source: a paper}}\n"
        "HplCheck:\n"
        "  $index: [$partition, $environ, reference_layout, reference_effort]\n"
        "  alpha:node: {mpich: {2-ranks-packed: {smoke: "
        f"{{HPL.performance_gflops: [{value}, {lower}, null, Gflop/s]}}}}}}}}\n"
    )
    return parse_references(text, PATH, CHECKS)


# ---------------------------------------------------------------------------- what it is made of


def test_the_value_is_the_best_of_the_runs_with_its_provenance():
    (batch,) = baseline(series_of_hpl()).measured
    assert batch.entries == {"HPL.performance_gflops": (100.4, -0.191, None, "Gflop/s")}
    assert set(batch.days) == {datetime.date(2026, 11, 1)}
    assert batch.runs == tuple(f"run{i:02}" for i in range(8))
    assert (batch.launches, batch.build, batch.nodes) == (8, "b1", ("n1",))
    assert batch.rule.startswith("best of 8 runs over 14.0 h; tolerated is what unchanged runs ")
    assert batch.values == {"HPL.performance_gflops": STEADY}


def test_tolerance_follows_spread_once_days_are_known():
    values = [value + 4 * (value - 100) for value in STEADY]
    (batch,) = baseline(series_of([record(hpl(value)) for value in values], hours=24)).measured
    usual = statistics.fmean(math.log(max(values) / value) for value in values)
    spread = statistics.stdev(map(math.log, values)) * math.sqrt(1 + 1 / 8)
    # Once in 200 unchanged runs by Student's t, of the days alone.
    margin = usual + scipy.stats.t.ppf(1 - 0.005, 7) * spread
    value, lower, *_ = batch.entries["HPL.performance_gflops"]
    assert value == pytest.approx(max(values), rel=1e-4)
    assert lower == pytest.approx(-math.expm1(margin) / math.exp(margin), abs=0.001)
    # On one day the machine may do what any machine does from hour to hour.
    (one_day,) = baseline(series_of([record(hpl(value)) for value in STEADY])).measured
    widest = math.expm1(-widest_between(0.005, "compute"))
    assert one_day.entries["HPL.performance_gflops"][1] == pytest.approx(widest, abs=0.001)


def test_few_scattered_days_leave_references():
    levels = [100.0, 80.0, 120.0]
    records = [record(ping(level + value - 100.0)) for level in levels for value in STEADY[:2]]
    (batch,) = baseline(series_of(records, hours=12)).measured
    assert len(set(batch.days)) == 3
    # By Student's t, of two degrees of freedom, it would be more than six times, and none.
    ((_, _, upper, _),) = batch.entries.values()
    assert 1.0 <= upper <= 2.0


def test_where_less_is_better_the_bound_is_above():
    series = series_of([record(ping(value)) for value in STEADY])
    (batch,) = baseline(series).measured
    assert batch.entries == {"PingPong.2p.8B.latency_us": (99.7, None, 0.766, "us")}


def test_launches_that_are_slow_now_and_then_are_counted():
    def launches(slow):
        return [
            record(
                *(ping(v * factor, size, i) for size in (8, 64) for i, factor in enumerate(slow)),
                launches=builders.launches(4),
            )
            for v in STEADY
        ]

    (near,) = baseline(series_of(launches((1.0, 1.01, 1.02, 2.0)))).measured
    (far,) = baseline(series_of(launches((1.0, 1.01, 1.02, 4.0)))).measured
    assert near.entries == far.entries
    assert near.slow_percent == {}
    assert far.slow_percent == dict.fromkeys(
        ("PingPong", "PingPong.2p.8B.latency_us", "PingPong.2p.64B.latency_us"), 25.0
    )
    references = parse_references(updated("", [far]), PATH, CHECKS)
    found = references.find("HpccCheck", "alpha:node", "mpich", CONDITIONS, ping(1.0))
    assert found is not None
    assert found.baseline is not None
    assert (found.baseline.slow, found.baseline.slow_together) == (0.25, 0.25)


def test_runs_of_the_newest_build_and_nodes_count_alone():
    old = [record(hpl(50.0), build="b0")] * 5 + [record(hpl(60.0), nodes=("n2",))] * 5
    made = baseline(series_of(old + [record(hpl(value)) for value in STEADY]))
    (batch,) = made.measured
    assert (len(batch.runs), batch.build, batch.nodes) == (8, "b1", ("n1",))
    assert batch.entries["HPL.performance_gflops"][0] == 100.4
    assert made.runs == tuple(f"run{i}" for i in range(10, 18))


def test_runs_on_other_nodes_count_where_distance_is_known():
    """On a cluster that gives each job other nodes no baseline of two nodes came about."""
    drawn = [("n1", "n2"), ("n1", "n9"), ("n3", "n4"), ("n5", "n6"), ("n2", "n8"), ("n7", "n8")]
    far = [set(nodes) in ({"n1", "n9"}, {"n2", "n8"}) for nodes in drawn]

    def run(nodes, is_far, **details):
        where = built("b1", nodes, **details)
        samples = [ping(1.5 if is_far else 1.0, order=k) for k in range(3)]
        return record(*samples, nodes=nodes, conditions={**CONDITIONS, "nodes": 2}, details=where)

    named = [
        run(nodes, one, distance="another group" if one else "same switch")
        for nodes, one in zip(drawn, far, strict=True)
    ]
    (batch,) = baseline(series_of(named)).measured
    assert len(batch.runs) == 6
    known = known_by(batch)
    (sample, *_), conditions = named[0].samples, named[0].conditions
    reference = known.find("HpccCheck", "alpha:node", "mpich", conditions, sample)
    assert [one == "another group" for one in reference.baseline.distances] == far
    # Where nobody says it, each pair of nodes is a machine of its own.
    assert baseline(series_of([run(*one) for one in zip(drawn, far, strict=True)])).measured == []


def test_statistics_with_distances_of_other_runs_are_refused():
    details = built("b1", ["n1", "n2"], distance="same switch")
    of = {"conditions": {**CONDITIONS, "nodes": 2}, "details": details}
    (batch,) = baseline(series_of([record(hpl(value), **of) for value in STEADY])).measured
    text = updated("", [batch])
    parse_references(text, PATH, CHECKS)
    with pytest.raises(BadRequest, match="distances has 7 values of 8 runs"):
        parse_references(text.replace("[same switch, same", "[same"), PATH, CHECKS)


def test_a_day_on_which_the_machine_was_slow_is_left_out_and_named():
    runs = [imb_run(seed, factor=1.3 if seed == 2 else 1.0) for seed in range(6)]
    made = baseline(series_of(runs, hours=24))
    (batch,) = made.measured
    assert datetime.date(2026, 11, 3) not in batch.days
    assert len(batch.days) == len(batch.runs) == 5
    ((case, left_out),) = made.left_out.items()
    assert case == batch.case
    assert left_out["2026-11-03"] == "PingPong 29.9 % slower than on the other days"
    assert batch.remark == f"2026-11-03 left out: {left_out['2026-11-03']}"
    # So a run as slow is found.
    slower = imb_run(99, 1.3)
    (judged,) = assemble({}, [builders.passed(slower)], [slower], known_by(batch).find)
    assert Verdict.REGRESSION in {one.judgement.verdict for one in judged.groups}


def test_the_newest_runs_count_up_to_the_number_asked_for():
    values = [50.0] * 10 + [100.0, 100.2, 100.1, 100.3, 100.0]
    (batch,) = baseline(series_of_hpl(values), rule=Rule(most_runs=5)).measured
    assert (len(batch.runs), batch.entries["HPL.performance_gflops"][0]) == (5, 100.3)


def test_more_comparisons_tolerate_more():
    values = [value + 40 * (value - 100) for value in STEADY]
    one, many = (
        baseline(
            series_of(
                [record(*(ping(v, 8 << i) for i in range(figures))) for v in values], hours=24
            )
        )
        for figures in (1, 12)
    )
    name = "PingPong.2p.8B.latency_us"
    assert many.measured[0].entries[name][2] > one.measured[0].entries[name][2]


def test_what_a_benchmark_rounds_is_tolerated():
    launches = [ping(0.15, order=order) for order in range(3)]
    imb = [record(*launches, check="ImbMpi1Check") for _ in range(8)]
    (batch,) = baseline(series_of(imb, hours=24)).measured
    value, _, upper, _ = batch.entries["PingPong.2p.8B.latency_us"]
    assert value == 0.15
    assert 0.16 <= value * (1 + upper) < 0.17


def test_runs_with_moved_cores_are_left_out_and_told():
    def run(value, nearest_ns):
        return record(hpl(value), details=built(core_distance_ns=nearest_ns))

    near = [run(value, 50.0 + i) for i, value in enumerate(STEADY)]
    (batch,) = baseline(series_of([run(50.0, 310.0), *near, run(50.0, 160.0)])).measured
    assert (len(batch.runs), batch.core_distance_ns) == (8, 50.0)
    # Both cores were on one for a moment, which no other run confirms.
    (batch,) = baseline(series_of([*near, run(STEADY[0], 17.0)])).measured
    assert (len(batch.runs), batch.core_distance_ns) == (9, 50.0)
    told = refusal(baseline(series_of([*near[:3], run(50.0, 310.0), run(50.0, 311.0)])))
    assert "3 runs of build b1" in told
    assert "2 more had a longer core-to-core latency" in told


def test_short_benchmark_with_fewer_than_three_launches_refused():
    records = [record(ping(1.0), ping(1.1, order=1), check="ImbMpi1Check") for _ in range(8)]
    told = refusal(baseline(series_of(records)))
    assert "a run of it has 2 launches, and a baseline needs 3 in each" in told


@pytest.mark.parametrize(("tolerated", "written"), [(4.9, 4.9), (4.9985, 4.999), (4.9995, None)])
def test_tolerance_that_would_be_written_as_too_wide(monkeypatch, tolerated, written):
    """It was rounded up to what nobody reads again: the whole file was refused."""
    monkeypatch.setattr(Judge, "tolerances", lambda judge, _: [math.inf])
    monkeypatch.setattr(proposals, "_like_others", lambda *_: math.log1p(tolerated))
    records = [record(*(ping(1.0, order=k) for k in range(3)), check="ImbMpi1Check")] * 8
    made = baseline(series_of(records))
    if written is None:
        assert "nothing below 6 x would be seen" in refusal(made)
    else:
        (entry,) = [entry for one in made.measured for entry in one.entries.values()]
        assert entry[2] == pytest.approx(written)


def test_runs_whose_launches_were_all_disturbed_make_no_baseline():
    def run(disturbed):
        return record(
            *(ping(1.0 + i / 100, order=i) for i in range(4)),
            check="ImbMpi1Check",
            launches=builders.launches(4, disturbed=in_words("busy") if disturbed else None),
            launches_needed=3,
        )

    told = refusal(baseline(series_of([run(True)] * 8)))
    assert "it has no usable run; 8 had too few undisturbed launches" in told
    (batch,) = baseline(series_of([run(i < 3) for i in range(8)])).measured
    assert (len(batch.runs), batch.launches) == (5, 20)


def test_figure_always_zero_is_skipped():
    made = baseline(series_of([record(ping(1.0 + i / 1000), ping(0.0, 0)) for i in range(6)]))
    assert made.refusals == []
    assert made.silent == 1
    assert list(made.measured[0].entries) == ["PingPong.2p.8B.latency_us"]


def test_one_measurement_makes_one_reference():
    def rate(value):
        return ping(value, metric="bandwidth_mb_s")

    records = [record(ping(v / 100), rate(800 / v), ping(v / 50, 0)) for v in STEADY]
    made = baseline(series_of(records))
    assert made.refusals == []
    assert list(made.measured[0].entries) == [
        "PingPong.2p.8B.bandwidth_mb_s",
        "PingPong.2p.0B.latency_us",
    ]


def test_the_slowest_rank_of_a_collective_makes_the_reference():
    def times(value):
        return [
            ping(value * by, benchmark="Bcast", metric=metric)
            for metric, by in (("t_avg_us", 1.0), ("t_max_us", 1.2))
        ]

    made = baseline(series_of([record(*times(v / 100)) for v in STEADY]))
    assert made.refusals == []
    assert list(made.measured[0].entries) == ["Bcast.2p.8B.t_max_us"]


def test_figures_of_other_runs_are_told_apart():
    odd = [hpl(100.0), ping(2.0)]
    records = [record(*odd[: 1 + (i != 3)], check="HpccCheck") for i in range(8)]
    made = baseline(series_of(records))
    assert {len(batch.runs): list(batch.entries) for batch in made.measured} == {
        8: ["HPL.performance_gflops"],
        7: ["PingPong.2p.8B.latency_us"],
    }


# ------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("runs", [1, 2, 4])
def test_too_few_runs_are_refused_with_what_to_do(runs):
    made = baseline(series_of_hpl(STEADY[:runs]))
    assert made.measured == []
    assert "HPL.performance_gflops: " in refusal(made)
    assert f"{runs} run" in refusal(made)
    assert f"--mode smoke --check HplCheck --stack mpich` {5 - runs} more time" in refusal(made)


def test_runs_that_do_not_count_are_told():
    records = [record(hpl(100.0))] * 3 + [record(hpl(100.0), build="b0")]
    killed = record(check="HplCheck", complaints=[in_words("killed")])
    records = [record(hpl(1.0), nodes=("n9",)), killed, *records[::-1]]
    told = refusal(baseline(series_of([record(hpl(5.0), build="b0"), *records])))
    assert "3 runs of build b1 on n1" in told
    assert "1 more did not count: killed (run02)" in told
    assert "3 more had another build, other nodes or processors, or were measured another" in told
    assert " and 2 before it); run `" in told


def test_runs_that_were_wholly_disturbed_are_no_runs_of_a_baseline():
    told = in_words("others used a core")
    launches = [Launch(k, 0.0, 9.0, disturbed=told) for k in range(3)]
    busy = record(*(hpl(90.0, k) for k in range(3)), launches=launches)
    said = refusal(baseline(series_of([record(hpl(100.0))] * 3 + [busy] * 2)))
    assert "3 runs of build b1 on n1" in said
    assert "; 2 more had too few undisturbed launches: " in said
    assert "`clustergate check --mode smoke --check HplCheck --stack mpich` 2 more times" in said
    said = refusal(baseline(series_of([busy] * 5)))
    assert said.startswith("HplCheck")
    assert "it has no usable run; 5 had too few undisturbed launches" in said


def test_runs_of_one_moment_are_refused():
    made = baseline(series_of([record(hpl(v)) for v in STEADY], hours=0.1))
    assert made.measured == []
    assert "8 runs span 0.7 h, and a baseline needs 1.0 h" in refusal(made)


def test_runs_that_differ_too_much_are_refused_by_figure():
    wild = (50.0, 400.0, 52.0, 70.0, 930.0, 90.0)
    records = [record(ping(v), ping(1.0 + i / 1000, 64)) for i, v in enumerate(wild)]
    made = baseline(series_of(records))
    told = refusal(made)
    assert "PingPong.2p.8B.latency_us: its 6 runs spread by " in told
    assert "from 50 to 930 us; with what figures like it spread by, nothing below 6 x" in told
    assert list(made.measured[0].entries) == ["PingPong.2p.64B.latency_us"]


def test_a_wide_reference_is_kept_with_its_width():
    wide = (50.0, 100.0, 51.0, 70.0, 62.0, 90.0)
    (batch,) = baseline(
        series_of([record(*(ping(v, 8 << i) for i in range(4))) for v in wide])
    ).measured
    assert {entry[0] for entry in batch.entries.values()} == {50.0}
    assert all(1.5 < entry[2] < 5.0 for entry in batch.entries.values())


def test_hours_that_differ_are_one_baseline_of_the_better():
    values = [v * (1.3 if i >= 8 else 1.0) for i, v in enumerate(2 * STEADY)]
    (batch,) = baseline(series_of([record(ping(v), ping(v, 64)) for v in values])).measured
    assert {entry[0] for entry in batch.entries.values()} == {99.7}
    assert set(batch.days) == {datetime.date(2026, 11, 1), datetime.date(2026, 11, 2)}


def test_a_figure_with_too_few_values_is_refused():
    records = [record(hpl(100.0 + i), *([ping(1.0)] if i < 4 else [])) for i in range(6)]
    told = refusal(baseline(series_of([*records[::-1]])))
    assert "PingPong.2p.8B.latency_us: 4 of 6 runs have a value that counts" in told


def test_a_figure_that_is_sometimes_zero_is_refused():
    records = [record(ping(1.0), ping(float(i > 2), 64)) for i in range(6)]
    told = refusal(baseline(series_of(records)))
    assert "PingPong.2p.64B.latency_us: 3 of 6 runs have a value that counts" in told
    assert "0 us is below the physical limit" in told
    # A call of nothing may return at once.
    records = [record(ping(1.0), ping(float(i > 2), 0, benchmark="Reduce")) for i in range(6)]
    told = refusal(baseline(series_of(records)))
    assert "Reduce.2p.0B.latency_us: it must be positive" in told


def test_records_that_do_not_name_build_and_nodes_are_refused():
    made = baseline(series_of_hpl(build="", nodes=()))
    assert "record neither build nor nodes" in refusal(made)


def test_references_under_a_pattern_are_not_hidden():
    text = updated("", baseline(series_of_hpl()).measured).replace("    mpich:", "    mpi.*:")
    text = text.replace("alpha:node/mpich/", "alpha:node/mpi.*/")
    known = parse_references(text, PATH, CHECKS)
    made = baseline(series_of_hpl(), known)
    line = 1 + text.splitlines().index("    mpi.*:")
    assert made.measured == []
    assert f"alpha.yaml:{line}: their references stand under the pattern 'mpi.*'" in refusal(made)
    assert "which the key 'mpich' would hide" in refusal(made)


# --------------------------------------------------------- a regression is not quietly accepted


def test_a_figure_that_became_worse_keeps_its_reference():
    made = baseline(series_of_hpl(), hpl_before(110.0))
    assert made.measured == []
    told = refusal(made)
    assert "HPL.performance_gflops: 9.6 % worse than the reference 110 Gflop/s" in told
    assert "--accept-worse 'HPL.performance_gflops' --because" in told
    (drift,) = made.drifts
    assert drift.refused
    assert drift.worse_by == pytest.approx(math.log(110 / 100.4))


def test_regressions_make_no_tolerant_reference():
    """Runs that were regressions do not make a reference that tolerates them."""
    good = [record(hpl(value)) for value in STEADY]
    known = known_by(*baseline(series_of(good, hours=24)).measured)
    slower = [record(hpl(value / 1.5)) for value in STEADY]
    later = series_of([*good, *slower], hours=24)
    said = "HPL is 50.0 % slower than in its last accepted baseline, since 2026-11-01"
    assert said in refusal(baseline(later, known))
    accepted = baseline(later, known, accepts=lambda name: True, because="another limit of power")
    assert not accepted.refusals
    # One of them may be a false alarm.
    assert not baseline(series_of([*good, slower[0]], hours=24), known).refusals


def test_worse_is_accepted_with_its_reason_alone():
    reason = "the kernel update of November, which nobody will undo"
    made = baseline(series_of_hpl(), hpl_before(110.0), accepts=lambda n: True, because=reason)
    assert made.refusals == []
    (batch,) = made.measured
    assert batch.remark == (f"accepted as 9.6 % worse than the reference 110 Gflop/s: {reason}")
    text = updated("", made.measured)
    found = parse_references(text, PATH, CHECKS).at((*batch.case.parts, "HPL.performance_gflops"))
    assert found.origin.endswith(reason)


def test_a_loose_reference_is_no_licence_to_get_worse():
    made = baseline(series_of_hpl(), hpl_before(110.0, lower=-0.4))
    assert "9.6 % worse" in refusal(made)


@pytest.mark.parametrize("before", [102.0, 100.0, 90.0, 20.0])
def test_as_good_or_better_is_accepted_and_told(before):
    made = baseline(series_of_hpl(), hpl_before(before))
    assert made.refusals == []
    (drift,) = made.drifts
    assert drift.before.value == before
    assert not drift.refused


def sizes(factor, benchmark="PingPong", jitter=0.02):
    return [
        record(
            *(
                ping(factor * (1 + jitter * ((i * k) % 5 - 2) / 2), size, benchmark=benchmark)
                for k, size in enumerate((8, 64, 512, 4096), 1)
            )
        )
        for i in range(8)
    ]


def test_tolerant_reference_does_not_let_the_best_get_worse():
    known = known_by(*baseline(series_of(sizes(1.0))).measured)
    made = baseline(series_of(sizes(1.07)), known)
    assert made.measured == []
    assert "7.0 % worse than the reference 0.98 us" in str(made.refusals[0])
    assert baseline(series_of(sizes(1.03)), known).refusals == []


def test_baselines_made_one_after_another_cannot_creep():
    """Each is 3 % slower than the one before, which one alone may be."""
    first = baseline(series_of(sizes(1.0)))
    second = baseline(series_of(sizes(1.03)), known_by(*first.measured))
    assert not second.refusals
    assert {batch.remark for batch in second.measured} == {
        "value of an earlier baseline, not reached by these runs"
    }
    aims = [
        {name: entry[0] for b in made.measured for name, entry in b.entries.items()}
        for made in (first, second)
    ]
    assert aims[0] == aims[1]
    third = baseline(series_of(sizes(1.06)), known_by(*second.measured))
    assert third.measured == []
    accepted = baseline(
        series_of(sizes(1.06)),
        known_by(*second.measured),
        accepts=lambda name: True,
        because="the new firmware",
    )
    (batch,) = accepted.measured
    assert min(entry[0] for entry in batch.entries.values()) > 1.03


@pytest.mark.parametrize(("processor", "kept"), [("A", True), ("B", False)])
def test_another_processor_gets_a_level_of_its_own(processor, kept):
    first = baseline(series_of([imb_run(seed) for seed in range(6)], hours=24))
    slower = [imb_run(seed, factor=1.03, processors=[processor]) for seed in range(6)]
    second = baseline(series_of(slower, hours=24), known_by(*first.measured))
    assert not second.refusals
    assert all(batch.remark.startswith("value of an earlier") is kept for batch in second.measured)


# --------------------------------------------------------------------- what becomes of the file


def test_the_result_is_a_valid_file_that_the_judge_uses():
    made = baseline(series_of_hpl())
    references = parse_references(updated("", made.measured), PATH, CHECKS)

    def verdict(value):
        found = references.find("HplCheck", "alpha:node", "mpich", CONDITIONS, hpl(value))
        estimate = Estimate(value, None, None, confidence=0.0, samples=1)
        return judge(estimate, Better.HIGHER, "Gflop/s", found).verdict

    assert verdict(99.0) is Verdict.PASS
    assert verdict(60.0) is Verdict.REGRESSION
    # ReFrame reads the file by PyYAML, and takes its bounds for those of the judge.
    node = yaml.safe_load(updated("", made.measured))
    for key in (*made.measured[0].case.parts, "HPL.performance_gflops"):
        node = node[key]
    found = references.find("HplCheck", "alpha:node", "mpich", CONDITIONS, hpl(1.0))
    assert found is not None
    assert found.baseline is not None
    assert tuple(node) == reframe_reference(found, Better.HIGHER)
    assert (len(found.baseline.runs), found.baseline.launches) == (8, 1)


@pytest.mark.parametrize(("order", "verdict"), [(9600, "pass"), (9900, "inconclusive")])
def test_a_larger_matrix_passes_by_no_reference_of_a_smaller_one(order: int, verdict: str) -> None:
    """Its rate is higher by itself, by as much as a slow-down may be."""
    references = parse_references(updated("", baseline(series_of_hpl()).measured), PATH, CHECKS)
    (sample,) = (dataclasses.replace(hpl(99.0), conditions={"n": order, "nb": 192}),)
    ended = builders.outcome("HplCheck", partition="alpha:node")
    (case,) = assemble({}, [ended], [record(sample)], references.find)
    (figure,) = case.figures
    assert figure.judgement.verdict.value == verdict
    codes = {one.code for one in figure.judgement.reasons}
    assert ("reference.smaller-matrix" in codes) == (verdict == "inconclusive")


def test_a_refused_figure_stays_in_the_file_beside_the_new_ones():
    first = baseline(series_of([record(ping(1.0), ping(2.0, 64)) for _ in range(6)]))
    text = updated("", first.measured)
    known = parse_references(text, PATH, CHECKS)
    later = [record(ping(1.5), ping(1.9, 64)) for _ in range(7)]
    made = baseline(series_of(later), known)
    after = updated(text, made.measured)
    figures = yaml.safe_load(after)["HpccCheck"]["alpha:node"]["mpich"]["2-ranks-packed"]["smoke"]
    assert {name: entry[0] for name, entry in figures.items()} == {
        "PingPong.2p.8B.latency_us": 1.0,
        "PingPong.2p.64B.latency_us": 1.9,
    }
    references = parse_references(after, PATH, CHECKS)
    case = made.measured[0].case
    assert "6 launches" in references.at((*case.parts, "PingPong.2p.8B.latency_us")).origin
    assert "7 launches" in references.at((*case.parts, "PingPong.2p.64B.latency_us")).origin


def imb_run(
    seed, factor=1.0, launches=12, every_second=1.0, processors=("A",), method="m1", nodes=1
):
    """Return a case of PingPong in four sizes whose launches are up to 4 % slower than the best."""
    noise = random.Random(seed)
    samples = [
        ping(slow * factor * size * (1 + 0.04 * noise.random()), size, order)
        for order in range(launches)
        for slow in [every_second if order % 2 else 1.0]
        for size in (8, 64, 512, 4096)
    ]
    return record(
        *samples,
        check="ImbMpi1Check",
        conditions={**CONDITIONS, "nodes": nodes},
        launches=builders.launches(launches, 0.3),
        launches_needed=3,
        details=built(core_distance_ns=50.0, processors=list(processors), method=method),
    )


def test_runs_on_another_processor_make_no_baseline_together():
    on = [["A"]] * 3 + [["B"]] * 3
    made = baseline(series_of([imb_run(i, processors=one) for i, one in enumerate(on)], hours=24))
    assert not made.measured
    assert "3 runs of build b1 on n1" in refusal(made)
    assert "3 more had another build, other nodes or processors, or were" in refusal(made)


def test_runs_measured_another_way_make_no_baseline_together():
    of = ["m1"] * 3 + ["m2"] * 3
    made = baseline(series_of([imb_run(i, method=one) for i, one in enumerate(of)], hours=24))
    assert not made.measured
    assert "3 runs of build b1 on n1" in refusal(made)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, Verdict.PASS),
        ({"factor": 1.12}, Verdict.REGRESSION),
        ({"factor": 1.03}, Verdict.PASS),
        ({"factor": 0.8}, Verdict.IMPROVEMENT),
        ({"launches": 2, "factor": 1.5}, Verdict.INCONCLUSIVE),
        ({"every_second": 5.0}, Verdict.REGRESSION),
        # A faster processor hides a slow-down, and a slower one must not go unseen.
        ({"processors": ["B"]}, Verdict.INCONCLUSIVE),
        ({"processors": ["B"], "factor": 0.8}, Verdict.INCONCLUSIVE),
        ({"processors": ["B"], "factor": 1.12}, Verdict.REGRESSION),
        ({"processors": ["A", "B"]}, Verdict.INCONCLUSIVE),
        ({"processors": []}, Verdict.INCONCLUSIVE),
        ({"method": "m2"}, Verdict.INCONCLUSIVE),
        ({"method": "m2", "factor": 0.8}, Verdict.INCONCLUSIVE),
        ({"method": "m2", "factor": 1.12}, Verdict.REGRESSION),
        # Nodes with more cores than the site config once said hold as many ranks on fewer.
        ({"nodes": 2}, Verdict.INCONCLUSIVE),
        ({"nodes": 2, "factor": 0.8}, Verdict.INCONCLUSIVE),
        ({"nodes": 2, "factor": 1.12}, Verdict.REGRESSION),
    ],
)
def test_a_later_run_is_judged_by_the_baseline_as_a_group(changes, verdict):
    made = baseline(series_of([imb_run(seed) for seed in range(20)], hours=24))
    references = parse_references(updated("", made.measured), PATH, CHECKS)
    later = imb_run(99, **changes)
    failed = {"result": "fail", "phase": "performance", "reason": "reference"}
    ended = builders.passed(later, **failed if verdict is Verdict.REGRESSION else {})
    (case,) = assemble({}, [ended], [later], references.find)
    judgements = [*(x.judgement for x in case.groups), *(x.judgement for x in case.figures)]
    worst = max(judgements, key=lambda one: one.verdict.severity)
    assert worst.verdict is verdict
    if (processors := changes.get("processors")) is not None:
        assert not {figure.judgement.verdict for figure in case.figures} & {
            Verdict.PASS,
            Verdict.IMPROVEMENT,
        }
        kind = "other" if processors else "unknown"
        for judgement in judgements:
            assert f"reference.{kind}-processor" in {one.code for one in judgement.reasons}
    # ReFrame sees each figure by itself, and fails nothing that passes.
    told = reframe_figures(measure_case(later, references.find))
    fails = False
    for _, value, _, bounds in told:
        low, high = reference_bounds(*bounds[:3]) if bounds else (value, value)
        fails = fails or not low <= value <= high
    assert not fails or verdict is Verdict.REGRESSION
    assert references.nearest_ns("ImbMpi1Check", "alpha:node", "mpich", CONDITIONS) == 50.0


def bcast_line(times):
    told = {"measurement": "trials", "test": "bcast", "bytes": 8, "flush_bytes": 0}
    return [told | {"first_flushed": 0.0, "times_us": times}]


def triad_line(times):
    told = {"measurement": "stream", "kernel": "triad", "elements": 1000, "bytes": 48000}
    return [told | {"times_us": times}]


def isend_lines(times):
    """Return five trials; the kernel tells a median of each, and what one of twenty exceeds."""
    told = []
    for trial in range(5):
        own = sorted(times[1 + trial :: 5])
        base = statistics.median(own)
        told.append({"measurement": "host_overhead", "call": "isend", "bytes": 8, "trial": trial})
        told[-1] |= {"iterations": len(own), "base_us": base, "p95_us": own[-1 - len(own) // 20]}
        told[-1] |= {"work_us": 3 * base, "iteration_us": 3.5 * base}
    return told


# Its check, the calls of a launch beside the first, and the lines that a launch prints.
KERNELS = {
    "mpi_trials": ("MpiTrialsCheck", 50, bcast_line),
    "stream": ("StreamCheck", 9, triad_line),
    "host_overhead": ("HostOverheadCheck", 500, isend_lines),
}


def kernel_run(program, seed, slow_share=0.0, every_tenth=False, launches=10):
    """Return a case of a kernel whose calls now and then take ten times as long, as calls do."""
    lot = np.random.default_rng(seed)
    check, calls, lines = KERNELS[program]
    parse = every_benchmark()[program].format.parse
    samples: list[Sample] = []
    for order in range(launches):
        times = 10.0 * np.exp(lot.normal(0.0, 0.02, calls + 1))
        times[lot.random(calls + 1) < 0.01] *= 10.0
        times[lot.random(calls + 1) < slow_share] *= 5.0
        if every_tenth:
            times[9::10] *= 5.0
        begin = {"measurement": "begin", "program": program, "processes": 2}
        told = lines(times.tolist())
        told = [begin, *told, {"measurement": "end", "count": len(told)}]
        rows = parse([json.dumps(one) for one in told], source="x")
        samples += samples_of(rows, order=order)
    return record(
        *samples,
        check=check,
        launches=builders.launches(launches, 0.3),
        launches_needed=3,
    )


@pytest.mark.parametrize("hours", [1, 24])
@pytest.mark.parametrize("program", KERNELS)
def test_trial_slow_once_in_ten_never_passes(program, hours):
    """A trial that is slow once in ten never passes and unchanged ones do."""
    check = KERNELS[program][0]
    made = baseline(series_of([kernel_run(program, seed) for seed in range(20)], hours=hours))
    text = updated("", made.measured)
    references = parse_references(text, PATH, (check,))
    ended = builders.outcome(check, partition="alpha:node")

    def told(**changes):
        runs = (kernel_run(program, seed, **changes) for seed in range(1000, 1100))
        cases = [assemble({}, [ended], [run], references.find)[0] for run in runs]
        return [{f.metric: f.judgement.verdict for f in case.figures} for case in cases]

    unchanged = told()
    assert not any(Verdict.REGRESSION in one.values() for one in unchanged)
    passed = sum(one["p95_time_us"] is Verdict.PASS for one in unchanged)
    assert passed >= 95
    assert {one["p95_time_us"] for one in told(every_tenth=True)} == {Verdict.REGRESSION}
    now_and_then = {one["p95_time_us"] for one in told(slow_share=0.1)}
    assert not now_and_then & {Verdict.PASS, Verdict.IMPROVEMENT}
    # A baseline knows launches of STREAM with a slow trial, since each has but nine.
    if program != "stream":
        assert now_and_then == {Verdict.REGRESSION}
    # Three launches, as in smoke, say less, and pass only where the fault was in none of them.
    for seed in range(1000, 1100):
        run = kernel_run(program, seed, slow_share=0.1, launches=3)
        (case,) = assemble({}, [ended], [run], references.find)
        (figure,) = (f for f in case.figures if f.metric == "p95_time_us")
        # 10 us as a rule, and 50 or more with the fault.
        if max(s.value for s in run.samples if s.metric == "p95_time_us") > 40.0:
            assert figure.judgement.verdict not in (Verdict.PASS, Verdict.IMPROVEMENT)


def test_size_does_not_pass_by_reference_its_neighbours_beat():
    """The baseline is of a slow hour: a size that became 10 % slower is as good as in it."""
    sizes = (8, 64, 512, 4096, 32768)
    slow_hour = [record(*(ping(1.06 * size, size) for size in sizes)) for _ in range(20)]
    made = baseline(series_of(slow_hour))
    references = parse_references(updated("", made.measured), PATH, CHECKS)

    def judged(factor):
        kept = record(*(ping(size * (factor if size == 512 else 1.0), size) for size in sizes))
        ended = builders.outcome("HpccCheck", partition="alpha:node")
        (case,) = assemble({}, [ended], [kept], references.find)
        return {f.conditions["bytes"]: f.judgement for f in case.figures}

    slower = judged(1.10)
    assert slower[512].verdict is Verdict.INCONCLUSIVE
    assert slower[512].reasons[0].code == "figure.outdone"
    assert slower[512].reasons[0].facts["by"] == pytest.approx(0.10, rel=1e-3)
    assert {slower[size].verdict for size in sizes if size != 512} == {Verdict.PASS}
    assert {one.verdict for one in judged(1.0).values()} == {Verdict.PASS}
    # Neighbours that improved by more than hours differ show nothing of the hour.
    improved = [record(*(ping(1.3 * size, size) for size in sizes)) for _ in range(20)]
    references = parse_references(updated("", baseline(series_of(improved)).measured), PATH, CHECKS)
    verdicts = {size: one.verdict for size, one in judged(1.28).items()}
    assert verdicts.pop(512) is Verdict.PASS
    assert set(verdicts.values()) == {Verdict.IMPROVEMENT}


@pytest.mark.parametrize("fma_peak", [110.0, 101.0])
def test_rate_against_a_low_peak_says_nothing_of_the_hour(fma_peak):
    """HPL is nearly as ever; only the multiply-adds around it were measured low."""

    def run(rate, fma_peak=110.0):
        peaks = {"fma peak": fma_peak, "dgemm": 105.0, "nominal": 120.0}
        percent = {name: 100 * rate / peak for name, peak in peaks.items()}
        shares = (
            derived_sample(hpl(rate), "efficiency_percent", value, against=name)
            for name, value in percent.items()
        )
        return record(hpl(rate), *shares)

    made = baseline(series_of([run(value) for value in STEADY]))
    references = parse_references(updated("", made.measured), PATH, CHECKS)
    ended = builders.outcome("HplCheck", partition="alpha:node")
    (case,) = assemble({}, [ended], [run(97.0, fma_peak)], references.find)
    verdicts = {f.conditions.get("against"): f.judgement.verdict for f in case.figures}
    assert verdicts == dict.fromkeys((None, "fma peak", "dgemm", "nominal"), Verdict.PASS)
    # A rate that is slower is so against each of them, and is told once.
    (case,) = assemble({}, [ended], [run(60.0, fma_peak)], references.find)
    by = {f.conditions.get("against"): f.judgement for f in case.figures}
    assert {one.verdict for one in by.values()} == {Verdict.REGRESSION}
    assert by.pop(None).reasons[0].code == "figure.regression"
    assert {one.reasons[0].code for one in by.values()} == {"figure.same-measurement"}


# ----------------------------------------------------------------------------- references of before


def as_before(text):
    """Return a reference file in the form that held how figures scatter, and no values."""
    data = yaml.safe_load(text)
    for path, entry in data["$statistics"].items():
        values, days = entry.pop("values"), entry.pop("days")
        level = data
        for key in path.split("/"):
            level = level[key]
        entry["runs"] = len(days)
        entry["usual_percent"] = {
            name: round(100 * statistics.fmean(math.log(x / level[name][0]) for x in some), 2)
            for name, some in values.items()
        }
        entry["spread_percent"] = dict.fromkeys(values, 1.0)
    return yaml.safe_dump(data, sort_keys=False)


def past_of_imb(count, factor=1.0, first=0, start=START):
    runs = past_runs([imb_run(seed, factor) for seed in range(first, first + count)], 24, start)
    return [dataclasses.replace(run, run_id=f"run{first + k:02}") for k, run in enumerate(runs)]


def worst(known, run):
    (case,) = assemble({}, [builders.passed(run)], [run], known.find)
    given = [one.judgement.verdict for one in case.figures]
    given += [one.judgement.verdict for one in case.groups]
    return max(given, key=lambda verdict: verdict.severity)


def test_old_references_judged_with_their_stored_runs():
    stored = past_of_imb(8)
    new = known_by(*baseline(collect(stored)).measured)
    old = parse_references(as_before(updated("", baseline(collect(stored)).measured)), PATH, CHECKS)
    keys = ("ImbMpi1Check", "alpha:node", "mpich", "2-ranks-packed", "smoke")
    path = (*keys, "PingPong.2p.8B.latency_us")
    assert old.runs_of(path) is None
    # A run that came later on the last day is none of them.
    later = [*stored, *past_of_imb(1, 1.02, 8, stored[-1].started + datetime.timedelta(hours=1))]
    whole = completed(old, lambda since: later)
    assert whole.runs_of(path) == new.runs_of(path)
    assert worst(whole, imb_run(99, 1.3)) is worst(new, imb_run(99, 1.3)) is Verdict.REGRESSION
    assert worst(whole, imb_run(98)) is worst(new, imb_run(98)) is Verdict.PASS


def test_old_references_without_their_runs_stay_as_written():
    stored = past_of_imb(8)
    old = parse_references(as_before(updated("", baseline(collect(stored)).measured)), PATH, CHECKS)
    assert completed(old, lambda since: stored) is not old
    others: list[list[PastRun]] = [[], stored[1:], past_of_imb(8, 1.02), past_of_imb(8, first=20)]
    for left in others:
        assert completed(old, lambda since: left).document.data == old.document.data  # noqa: B023
