import dataclasses
import datetime
import json
import math
import re
from dataclasses import replace

import pytest

from clustergate.benchmarks.registry import every_headline
from clustergate.core.model import DISTANCES
from clustergate.core.notation import printable
from clustergate.judge.history.judged import NONE_SLOWER, judged_runs, told_of
from clustergate.judge.history.series import collect
from clustergate.judge.history.stored_runs import PastRun
from clustergate.judge.history.trends import as_record, events, node_names, sentence, trends
from clustergate.report.terminal import render_first
from clustergate.report.trends import first_screen, head, name, sparkline, table, worth_showing
from tests.builders import built, ping, record

START = datetime.datetime(2026, 5, 1, 8, tzinfo=datetime.timezone.utc)
# Not drawn at random: a test must say the same each time. Its standard deviation is 1.
NOISE = (0.3, -1.2, 0.8, 1.5, -0.4, -1.6, 0.9, -0.2, 1.1, -0.7, 0.1, -1.0, 1.3, -0.5, 0.6, -0.9)
SIZES = (8, 64, 512)


def bandwidth(value):
    return ping(value, 1 << 20, benchmark="Exchange", metric="bandwidth_mb_s")


def run(number, *samples, stack="mpich", **of):
    kept = record(
        *samples, partition="alpha:node", check="ImbMpi1Check", stack=stack, details=built(**of)
    )
    return PastRun(f"run{number:02}", START + datetime.timedelta(days=number), [kept])


def level(number, noise=0.01, slow_since=None, by=0.07):
    factor = 1 + by if slow_since is not None and number >= slow_since else 1.0
    return factor * math.exp(noise * NOISE[number % len(NOISE)])


def pings(slow_since=None, count=30, **changes):
    return [
        run(i, *(ping(k * level(i, slow_since=slow_since), k) for k in SIZES), **changes)
        for i in range(count)
    ]


# --------------------------------------------------------------------------------------- trends


def test_all_sizes_of_a_metric_are_one_trend():
    (trend,) = trends(collect(pings()))
    assert trend.title == "PingPong latency_us"
    assert trend.figures == tuple(f"PingPong.2p.{size}B.latency_us" for size in SIZES)
    assert len(trend.moments) == 30
    assert all(moment.value is None for moment in trend.moments)
    assert trend.shifts == ()


def test_runs_of_one_hour_are_one_value():
    # Each hour has a level of its own, which its ten runs share.
    hours = [math.exp(0.1 * NOISE[hour]) for hour in range(8)]
    close = datetime.timedelta(minutes=3)
    runs = []
    for hour, usual in enumerate(hours):
        for k in range(10):
            one = run(10 * hour + k, ping(usual * level(k)))
            runs.append(replace(one, started=START + datetime.timedelta(days=hour) + k * close))
    (trend,) = trends(collect(runs))
    assert len(trend.moments) == 80
    assert trend.shifts == ()


def test_a_shift_begins_with_the_first_run_of_its_hour():
    runs = [
        replace(one, started=one.started + datetime.timedelta(minutes=minutes))
        for minutes in (0, 10)
        for one in pings(slow_since=18)
    ]
    runs = [replace(one, run_id=f"{one.started:%d-%H%M}") for one in runs]
    (trend,) = trends(collect(sorted(runs, key=lambda one: one.started)))
    (shift,) = trend.shifts
    assert shift.since.started == START + datetime.timedelta(days=18)
    assert shift.before.started == START + datetime.timedelta(days=17, minutes=10)


def test_figures_are_trends_of_their_own_when_asked_for():
    found = trends(collect(pings(count=8)), by_figure=True)
    assert [trend.title for trend in found] == [f"PingPong.2p.{s}B.latency_us" for s in SIZES]
    assert found[1].moments[0].value == pytest.approx(64 * level(0))


def test_a_level_is_positive_where_worse():
    rising = [run(i, ping(1.0 + i / 10), bandwidth(1.0 + i / 10)) for i in range(5)]
    exchange, pingpong = sorted(trends(collect(rising)), key=lambda trend: trend.benchmark)
    assert pingpong.moments[-1].level == pytest.approx(math.log(1.4 / 1.2))
    assert exchange.moments[-1].level == pytest.approx(-math.log(1.4 / 1.2))


def test_a_figure_that_is_zero_has_no_trend():
    runs = [run(i, ping(1.0), bandwidth(float(i))) for i in range(3)]
    (trend,) = trends(collect(runs))
    assert trend.figures == ("PingPong.2p.8B.latency_us",)


def test_a_time_that_cannot_be_is_left_out_of_a_trend():
    runs = [run(i, ping(float(i), 64)) for i in range(3)]
    (trend,) = trends(collect(runs))
    assert [moment.value for moment in trend.moments] == [1.0, 2.0]


def test_slowdown_found_with_run_size_and_interval():
    (trend,) = trends(collect(pings(slow_since=18)))
    (shift,) = trend.shifts
    assert shift.since.run_id == "run18"
    assert shift.before.run_id == "run17"
    assert shift.low is not None
    assert shift.high is not None
    assert shift.low < math.log(1.07) < shift.high
    assert shift.worse_by == pytest.approx(math.log(1.07), abs=0.01)


def test_a_recovery_is_another_change():
    runs = [
        run(i, *(ping(k * level(i, by=0.1, slow_since=20 if i < 40 else None), k) for k in SIZES))
        for i in range(60)
    ]
    (trend,) = trends(collect(runs))
    assert [shift.since.run_id for shift in trend.shifts] == ["run20", "run40"]
    assert [shift.worse_by > 0 for shift in trend.shifts] == [True, False]


def test_less_of_a_bandwidth_is_worse():
    runs = [run(i, bandwidth(1 / level(i, slow_since=18))) for i in range(30)]
    (shift,) = trends(collect(runs))[0].shifts
    assert shift.worse_by == pytest.approx(math.log(1.07), abs=0.01)


def test_nodes_that_often_served_have_trends_of_their_own():
    others = [f"n{i}" for i in range(17, 33)]
    runs = [
        run(i, ping(level(i, slow_since=since, by=0.2)), nodes=nodes)
        for j in range(20)
        for i, since, nodes in ((2 * j, 20, others), (2 * j + 1, None, ["n1"]))
    ]
    one, other = sorted(trends(collect(runs)), key=lambda trend: len(trend.nodes))
    assert one.nodes == ("n1",)
    assert one.shifts == ()
    (shift,) = other.shifts
    assert shift.since.run_id == "run20"
    assert name(other) == "PingPong.2p.8B.latency_us on nodes n17 to n32"


# ---------------------------------------------------------------------------------- in sentences


def test_a_sentence_names_the_day_the_size_and_the_nodes():
    nodes = [f"n{i}" for i in range(17, 33)]
    (event,) = events(trends(collect(pings(slow_since=18, nodes=nodes))))
    told = sentence(event)
    assert told.startswith(
        "ImbMpi1Check with mpich (alpha:node, 2-ranks-packed, smoke): since the run of "
        "19 May 2026 08:00 UTC, PingPong latency_us "
    )
    assert "% slower (99 % interval: " in told
    assert told.endswith("on nodes n17 to n32")


def test_a_sentence_says_what_else_changed_then():
    before = pings(count=18)
    after = pings(count=30, slow_since=18, nodes=("n2",), build="b2")[18:]
    (event,) = events(trends(collect([*before, *after])))
    asked = []

    def explain(*runs):
        asked.append(runs)
        return "kernel release 6.1 -> 6.2"

    told = sentence(event, explain)
    assert asked == [("run17", "run18")]
    assert "on node n2; the runs before it were on node n1; build b2 instead of b1; kernel" in told


def test_what_changed_with_one_run_is_told_together_the_most_first():
    runs = [
        run(
            i,
            *(ping(k * level(i, slow_since=18), k) for k in SIZES),
            bandwidth(1 / level(i, slow_since=18, by=0.2)),
        )
        for i in range(30)
    ]
    (event,) = events(trends(collect(runs)))
    assert [trend.benchmark for trend, _ in event.shifts] == ["Exchange", "PingPong"]
    assert "Exchange.2p.1048576B.bandwidth_mb_s 2" in sentence(event)


def test_stacks_are_told_apart():
    runs = [*pings(slow_since=18, stack="openmpi"), *pings()]
    (event,) = events(trends(collect(runs)))
    assert event.case.stack == "openmpi"


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ([], "unknown nodes"),
        (["n1"], "node n1"),
        (["n17", "n18", "n19"], "nodes n17 to n19"),
        (["n017-ib", "n018-ib"], "nodes n017-ib to n018-ib"),
        (["n1", "n2", "n5"], "nodes n[1-2,5]"),
        (["a1", "b1"], "nodes a1,b1"),
        (["a[", "b["], "nodes a[, b["),
    ],
)
def test_nodes_are_folded(nodes, told):
    assert node_names(nodes) == told


def test_a_record_is_json_with_shares_in_percent():
    (trend,) = trends(collect(pings(slow_since=18)))
    record = json.loads(json.dumps(as_record(trend)))
    assert record["stack"] == "mpich"
    assert record["effort"] == "smoke"
    assert len(record["runs"]) == 30
    (change,) = record["changes"]
    assert change["since"] == "run18"
    assert change["low_percent"] < 7.0 < change["high_percent"]


# --------------------------------------------------------------------------------- for a reader


def test_a_line_is_high_where_the_machine_was_fast():
    assert sparkline([0.0, 0.0, 0.5, 0.5]) == "██▁▁"
    assert sparkline([]) == ""
    assert len(sparkline([0.0] * 1000, columns=20)) == 20


def test_a_line_does_not_blow_up_what_is_next_to_nothing():
    assert len(set(sparkline([0.001, -0.001, 0.0, 0.002]))) == 1


def test_what_stands_for_the_rest_and_what_changed_is_worth_a_line():
    steady = [run(i, ping(level(i)), bandwidth(1.0)) for i in range(30)]
    assert [t.benchmark for t in worth_showing(trends(collect(steady)))] == ["PingPong", "Exchange"]

    def bcast(since):
        values = [level(i, slow_since=since, by=0.2) for i in range(30)]
        return [
            run(i, ping(value, benchmark="Bcast", metric="t_avg_us"))
            for i, value in enumerate(values)
        ]

    (first, *_) = trends(collect(steady))
    of_each = [
        dataclasses.replace(
            first,
            case=dataclasses.replace(first.case, check=line.check),
            benchmark=line.benchmark,
            metric=line.metric,
        )
        for line in every_headline()
    ]
    assert len(worth_showing(of_each)) == len(of_each)

    quiet, changed = trends(collect(bcast(None))), trends(collect(bcast(18)))
    assert worth_showing(quiet) == []
    assert worth_showing(changed) == changed


def screen(runs, told=(), width=100, **how):
    found = trends(collect(runs))
    return render_first(
        head(found), first_screen(found, told), table(found), width=width, rest="(--all)", **how
    )


def test_the_table_has_a_line_for_each_trend_and_its_library():
    text = screen([*pings(count=6), *pings(count=6, stack="openmpi")])
    lines = [line.split() for line in text.splitlines() if line.startswith("PingPong")]
    assert [line[2] for line in lines] == ["mpich", "openmpi"]
    assert lines[0][4] == "6"
    assert printable(text) == text


def test_the_first_screen_says_since_when_and_what_tells_more():
    text = screen(pings(slow_since=20, build="b2"))
    (answer,) = [line for line in text.splitlines() if line.startswith(" ✗")]
    assert answer.startswith(" ✗ SLOWER: mpich: PingPong latency_us 6.")
    assert answer.endswith(" %), since 21 May 2026 08:00 UTC")
    assert " Next  `clustergate machine --diff run19 run20` shows" in text


def test_of_an_unchanged_machine_the_first_screen_says_so():
    text = screen(pings(count=6), [NONE_SLOWER(runs=5)])
    assert " ✓ AS BEFORE: nothing is slower in 5 runs, each compared" in text
    assert "Next" not in text


def test_the_first_screen_of_many_trends_has_twenty_lines():
    runs = [one for k in range(30) for one in pings(count=6, stack=f"library-{k}")]
    for width in (100, 80):
        text = screen(runs, width=width, wraps=True)
        assert len(text.splitlines()) <= 21
        assert max(map(len, text.splitlines())) <= width
        assert re.search(r"^   \d+ more lines( and \d more columns?)? \(--all\)$", text, re.M)
    assert screen(runs, whole=True).count("library-") == 30


# ---------------------------------------------------------------------- each by those before it


def stored(slow_from, slow_to=99, by=0.1, count=12, stacks=("intel-mpi", "mpich")):
    """Return runs of two stacks, of which mpich's messages are slower in some."""
    runs = []
    for number in range(count):
        records = []
        for at, stack in enumerate(stacks):
            slow = stack == "mpich" and slow_from <= number < slow_to
            factor = 1 + by if slow else 1.0
            samples = [
                ping(k * factor * level(7 * number + 3 * at + place), k)
                for place, k in enumerate((*SIZES, 4096))
            ]
            records += run(number, *samples, stack=stack).records
        runs.append(replace(run(number), records=records))
    return collect(runs)


def of_runs(*runs, **what):
    return judged_runs(stored(*runs, **what), {"alpha:node"})


def said(*of):
    return list(map(str, told_of(*of)))


def test_slow_in_three_runs_is_a_regression_from_the_first():
    """Only a change point told it, and only of seven runs or more."""
    (slow,) = of_runs(9).slow
    assert slow.is_regression
    assert slow.goes_on
    assert [one.run_id for one in slow.times] == ["run09", "run10", "run11"]
    assert slow.times[0].by == pytest.approx(0.1, abs=0.03)
    (line,) = said(of_runs(9))
    assert line.startswith(f"{slow.name}: ")
    assert "slower in the last 3 runs, since run09" in line
    assert all("mpich" in one.name for one in of_runs(9).slow)


def test_what_is_slow_in_the_last_run_alone_is_not_confirmed():
    (line,) = said(of_runs(11))
    assert "slower in the run run11" in line
    assert "not confirmed; 2 more runs tell" in line


def test_what_was_slow_once_is_counted_and_longer_ago_is_told():
    assert said(of_runs(8, 9)) == [
        "1 set of figures was slower than before, and not in the next runs"
    ]
    (line,) = said(of_runs(6, 10))
    assert "slower in 4 runs, from run06 to run09" in line


def test_figures_that_are_named_are_told_alone():
    assert not any("slower in the last" in one for one in said(of_runs(9), lambda _: False))


def test_of_an_unchanged_machine_nothing_is_slow():
    assert said(of_runs(99)) == ["nothing is slower in 11 runs, each compared with those before it"]


def test_runs_of_few_days_not_judged_on_shared_nodes():
    few = judged_runs(stored(1, count=2), ())
    assert few.runs == 0
    assert said(few)[0].startswith("no run could be compared with earlier ones")
    # Beside neighbours three days tell, as everywhere.
    assert judged_runs(stored(9), ()).slow


@pytest.mark.parametrize("recorded", [True, False])
def test_nodes_that_are_farther_apart_are_no_slower_run(recorded):
    """Every other run, on nodes of another group, was slower than those before it."""
    far = {f"run{k:02}" for k in (7, 8, 9, 10, 11)} | {"run01", "run04"}
    placed = []
    for one in stored(99):
        points = []
        for point in one.points:
            by = 1.3 if point.run_id in far else 1.0
            value = replace(point.estimate, value=by * point.estimate.value)
            distance = DISTANCES[3 if point.run_id in far else 1]
            points.append(
                replace(point, estimate=value, distance=distance if recorded else DISTANCES[0])
            )
        placed.append(replace(one, points=tuple(points)))
    assert bool(judged_runs(placed, {"alpha:node"}).slow) is not recorded
