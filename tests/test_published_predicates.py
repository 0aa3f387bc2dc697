"""Conclusions decided by made measurements, and by the papers' own numbers."""

import math
import sys
from collections import Counter
from dataclasses import replace

import pytest

from clustergate.core.model import METRICS, Better, CaseRecord, Sample
from evaluations import criteria
from evaluations.criteria import Criterion
from evaluations.evidence import Subject, merged, subjects_in_run
from evaluations.facts import TO_BASELINE, Paper, Predicate, load_paper, load_papers
from evaluations.inference import Outcome
from evaluations.predicates import Decision, cast, decide
from evaluations.printed import Printed
from evaluations.series import Cast, Figure
from evaluations.sheet import FIGURE_NAME

BCAST = Figure("Bcast", "t_avg_us")
PINGPONG = Figure("PingPong", "bandwidth_mb_s", "bytes")
HPL = Figure("HPL", "efficiency_percent", "n", {"against": "nominal"})
LAUNCHES = 10


def subject(name: str, *series: tuple[Figure, dict[int, float]]) -> Subject:
    """Return who measured values of a figure along its axis."""
    samples = []
    for of, values in series:
        metric = METRICS.get(of.metric)
        for at, value in values.items():
            samples += [
                Sample(
                    of.benchmark,
                    of.metric,
                    metric.unit if metric else "",
                    metric.better if metric else Better.HIGHER,
                    {**of.conditions, of.along: at},
                    value * (1 + k % 4 / 2000),
                    k,
                )
                for k in range(LAUNCHES)
            ]
    record = CaseRecord(
        name="case",
        check="ImbMpi1Check",
        stack=name,
        partition="local:node",
        conditions={"ranks": 2, "placement": "packed", "mode": "published-000"},
        samples=samples,
    )
    [found] = subjects_in_run("run", [record])
    return found


def decided(test: Criterion, *subjects: Subject, **roles: Subject) -> list[Decision]:
    return decide(Predicate("p001", "made up", "nowhere", here=test), Cast(subjects, roles))


def outcome(test: Criterion, *subjects: Subject, **roles: Subject) -> Decision:
    [decision] = decided(test, *subjects, **roles)
    return decision


def bcast(name: str = "mpich", **values: float) -> Subject:
    return subject(name, (BCAST, {int(k[1:]): v for k, v in values.items()}))


def test_a_trend_holds_when_no_step_goes_against_it():
    rises = criteria.trend(BCAST, "rises")
    assert outcome(rises, bcast(p2=1.0, p4=2.0, p8=3.0)).outcome is Outcome.HOLDS
    assert outcome(rises, bcast(p2=1.0, p4=2.0, p8=2.0)).outcome is Outcome.HOLDS
    decision = outcome(rises, bcast(p2=1.0, p4=2.0, p8=1.8))
    assert decision.outcome is Outcome.DOES_NOT
    assert "8 over 4 processes: 0.9" in decision.sentence
    assert outcome(rises, bcast(p2=1.0, p4=1.01, p8=1.0)).outcome is Outcome.DOES_NOT


def test_what_was_not_measured_is_said():
    rises = criteria.trend(BCAST, "rises")
    decision = outcome(rises, bcast(p2=1.0))
    assert decision.outcome is Outcome.NOT_CHECKABLE
    assert "measured at 1 process count, and it takes 2" in decision.sentence


def test_without_subjects_nothing_can_be_said():
    [decision] = decided(criteria.trend(BCAST, "rises"))
    assert decision.outcome is Outcome.NOT_CHECKABLE


def test_each_subject_is_decided_by_itself():
    rises = criteria.trend(BCAST, "rises")
    one, other = bcast("a", p2=1.0, p4=2.0), bcast("b", p2=2.0, p4=1.0)
    found = {d.subject: d.outcome for d in decided(rises, one, other)}
    assert found == {"run:a": Outcome.HOLDS, "run:b": Outcome.DOES_NOT}


def test_steady_times_over_a_model():
    steady = criteria.steady(BCAST.per("log2 p"), within=1.1)
    assert outcome(steady, bcast(p2=10.0, p4=20.0, p8=31.0)).outcome is Outcome.HOLDS
    assert outcome(steady, bcast(p2=10.0, p4=40.0)).outcome is Outcome.DOES_NOT


def test_a_step_compares_two_places():
    step = criteria.step(BCAST, 64, 40)
    assert outcome(step, bcast(p40=50.0, p64=33.0)).outcome is Outcome.HOLDS
    assert outcome(step, bcast(p40=33.0, p64=50.0)).outcome is Outcome.DOES_NOT
    decision = outcome(step, bcast(p64=50.0))
    assert decision.outcome is Outcome.NOT_CHECKABLE
    assert "not measured at 40" in decision.sentence


def test_the_best_place_and_the_dip():
    curve = subject("a", (PINGPONG, {1: 10.0, 2: 30.0, 4: 20.0, 8: 40.0}))
    best = criteria.best_at(PINGPONG, 8)
    assert outcome(best, curve).outcome is Outcome.HOLDS
    dip = criteria.dip(PINGPONG, 4)
    assert outcome(dip, curve).outcome is Outcome.HOLDS
    assert outcome(criteria.dip(PINGPONG, 2), curve).outcome is Outcome.DOES_NOT


def test_a_line_and_a_gain_beyond_a_place():
    sizes = replace(BCAST, along="bytes")
    line = subject("a", (sizes, {1: 2.0, 2: 3.0, 4: 5.0, 8: 9.0}))
    linear = criteria.linear(sizes, r_squared=0.99)
    assert outcome(linear, line).outcome is Outcome.HOLDS
    beyond = criteria.gains_beyond(PINGPONG, 2)
    curve = subject("a", (PINGPONG, {1: 1.0, 2: 2.0, 4: 9.0}))
    assert outcome(beyond, curve).outcome is Outcome.HOLDS


def test_systems_need_somebody_who_plays_them():
    order = criteria.order(BCAST, "x", "y", at="largest")
    fast, slow = bcast("a", p2=1.0, p4=2.0), bcast("b", p2=9.0, p4=3.0)
    assert outcome(order, fast, slow, x=fast, y=slow).outcome is Outcome.HOLDS
    assert outcome(order, fast, slow, x=slow, y=fast).outcome is Outcome.DOES_NOT
    decision = outcome(order, fast, slow, x=fast)
    assert decision.outcome is Outcome.NOT_CHECKABLE
    assert "nothing here stands for y" in decision.sentence


def test_the_first_of_an_order_must_beat_each_other():
    order = criteria.order(BCAST.between(None, 3), "x", ["y"])
    fast, slow = bcast("a", p2=1.0, p4=9.0), bcast("b", p2=2.0, p4=3.0)
    assert outcome(order, fast, x=fast, y=slow).outcome is Outcome.HOLDS
    everywhere = criteria.order(BCAST, "x", ["y"])
    assert outcome(everywhere, fast, x=fast, y=slow).outcome is Outcome.DOES_NOT


def test_one_of_two_is_ahead_or_they_are_level():
    mine = subject("a", (PINGPONG, {1: 10.0, 2: 30.0, 4: 41.0}))
    other = subject("b", (PINGPONG, {1: 9.0, 2: 20.0, 4: 40.0}))
    roles = {"x": mine, "y": other}
    ahead = criteria.ahead("x", "y", PINGPONG)
    assert outcome(ahead, mine, **roles).outcome is Outcome.HOLDS
    growing = criteria.ahead("x", "y", PINGPONG, growing=True)
    assert outcome(growing, mine, **roles).outcome is Outcome.DOES_NOT
    level = criteria.level("x", "y", figure=PINGPONG, within=0.05)
    assert outcome(level, mine, **roles).outcome is Outcome.DOES_NOT
    level = criteria.level("x", "y", figure=PINGPONG.between(4), within=0.05)
    assert outcome(level, mine, **roles).outcome is Outcome.HOLDS


def test_a_tie_is_not_behind_and_most_sizes_decide():
    """At 0 bytes no bandwidth is ahead of another, and at the others it may be."""
    mine = subject("a", (PINGPONG, {0: 0.0, 1: 9.0, 2: 12.0, 4: 33.0, 8: 50.0}))
    other = subject("b", (PINGPONG, {0: 0.0, 1: 9.0, 2: 9.0, 4: 20.0, 8: 40.0}))
    ahead = criteria.ahead("x", "y", PINGPONG)
    decision = outcome(ahead, mine, x=mine, y=other)
    assert decision.outcome is Outcome.HOLDS
    assert "3 of 4 hold" in decision.sentence
    assert outcome(ahead, mine, x=other, y=mine).outcome is Outcome.DOES_NOT
    assert outcome(ahead, mine, x=mine, y=mine).outcome is Outcome.DOES_NOT


def test_too_few_launches_say_how_many_more_would_decide(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "LAUNCHES", 2)
    fast, slow = bcast("a", p2=1.0), bcast("b", p2=1.2)
    order = criteria.order(BCAST, "x", "y")
    decision = outcome(order, fast, x=fast, y=slow)
    assert decision.outcome is Outcome.INCONCLUSIVE
    assert decision.further
    assert (
        f"about {decision.further} more launches of each would probably decide" in decision.sentence
    )
    monkeypatch.setattr(sys.modules[__name__], "LAUNCHES", 2 + decision.further)
    fast, slow = bcast("a", p2=1.0), bcast("b", p2=1.2)
    assert outcome(order, fast, x=fast, y=slow).outcome is Outcome.HOLDS


def test_launches_of_several_runs_count_together_and_other_hours_decide_less():
    def run(name: str, time_us: float, run_id: str) -> Subject:
        found, runs = bcast(name, p2=time_us), frozenset({run_id})
        figures = [replace(one, runs=runs) for one in found.figures]
        return replace(found, name=f"{run_id}:{name}", runs=runs, figures=figures)

    [pooled] = merged([run("mpich", 1.0, "first"), run("mpich", 1.1, "second")])
    [figure] = pooled.figures
    assert len(figure.of_launches) == 2 * LAUNCHES
    order = criteria.order(BCAST, "x", "y")
    fast, slow = run("a", 1.0, "first"), run("b", 1.2, "first")
    assert outcome(order, fast, x=fast, y=slow).outcome is Outcome.HOLDS
    decision = outcome(order, fast, x=fast, y=run("b", 1.2, "second"))
    assert decision.outcome is Outcome.INCONCLUSIVE
    assert "measure both in one run" in decision.sentence
    assert outcome(order, fast, x=fast, y=run("b", 4.0, "second")).outcome is Outcome.HOLDS


def test_most_of_several_experiments_can_hold():
    def count(times: dict[int, float]) -> Outcome:
        parts = [criteria.order(BCAST.between(p, p), "x", "y") for p in (2, 4, 8)]
        x, y = bcast("a", p2=1.0, p4=1.0, p8=1.0), subject("b", (BCAST, times))
        return outcome(criteria.count_at_least(2, *parts), x, x=x, y=y).outcome

    assert count({2: 2.0, 4: 2.0, 8: 0.5}) is Outcome.HOLDS
    assert count({2: 2.0, 4: 0.5, 8: 0.5}) is Outcome.DOES_NOT
    assert count({2: 2.0, 4: 2.0}) is Outcome.NOT_CHECKABLE


def test_a_part_is_asked_of_each_message_size():
    """Of 8 bytes it rises; of 16 it falls, which the smallest time of all sizes does not show."""
    each = criteria.each("bytes", BCAST, lambda one: criteria.trend(one, "rises"))

    def bcast_of(last: float) -> Subject:
        sizes = {8: {2: 1.0, 4: 2.0}, 16: {2: 5.0, 4: last}}
        return subject("a", *((BCAST.where(bytes=size), times) for size, times in sizes.items()))

    assert outcome(each, bcast_of(9.0)).outcome is Outcome.HOLDS
    falls = outcome(each, bcast_of(3.0))
    assert falls.outcome is Outcome.DOES_NOT
    assert "bytes 16: " in falls.sentence
    # Without a size it is open which is meant.
    decision = outcome(criteria.trend(BCAST, "rises"), bcast_of(9.0))
    assert decision.outcome is Outcome.NOT_CHECKABLE
    assert "measured with 2 message sizes; name one in the test" in decision.sentence


def test_a_lead_in_bandwidth_is_that_of_the_larger_one():
    one, two = (replace(PINGPONG, along="ranks").where(bytes=size) for size in (8, 16))
    test = criteria.smaller_lead(one, two, "x", ["y"], factor=2)
    x = subject("a", (one, {2: 12.0}), (two, {2: 40.0}))
    y = subject("b", (one, {2: 10.0}), (two, {2: 10.0}))
    assert outcome(test, x, x=x, y=y).outcome is Outcome.HOLDS
    assert outcome(test, x, x=y, y=x).outcome is Outcome.DOES_NOT


def test_a_fall_is_from_the_first_value_on():
    """An efficiency that rises before it falls never was below a part of the first one."""
    keeps = criteria.keeps(BCAST, 0.87)
    assert outcome(keeps, bcast(p1=100.0, p2=110.0, p4=90.0)).outcome is Outcome.HOLDS
    assert outcome(keeps, bcast(p1=100.0, p2=80.0, p4=99.0)).outcome is Outcome.DOES_NOT


def test_sizes_that_are_far_from_what_is_asked_decide_nothing():
    """The sizes of the shortest mode have no neighbours, and do not reach the ends of others."""
    few = {8: 1.0, 1024: 90.0, 8192: 400.0, 65536: 900.0, 1048576: 5000.0}
    x, y = subject("a", (PINGPONG, few)), subject("b", (PINGPONG, few))
    for test, told in (
        (criteria.dip(PINGPONG, 65536), "no sizes from half to double of 65536"),
        (criteria.gains_beyond(PINGPONG, 65536), "not measured at 32768 bytes"),
        (criteria.trend(PINGPONG.between(1), "rises"), "from 1 bytes, and what is here from"),
        (criteria.ahead("x", "y", PINGPONG.between(None, 524288)), "here to 65536"),
    ):
        decision = outcome(test, x, x=x, y=y)
        assert decision.outcome is Outcome.NOT_CHECKABLE
        assert told in decision.sentence


def test_parts_that_are_missing_leave_a_conclusion_open_unless_another_fails():
    rises = criteria.trend(BCAST, "rises")
    both = criteria.every(rises, criteria.trend(Figure("Scan", "t_avg_us"), "rises"))
    assert outcome(both, bcast(p2=1.0, p4=2.0)).outcome is Outcome.NOT_CHECKABLE
    assert outcome(both, bcast(p2=2.0, p4=1.0)).outcome is Outcome.DOES_NOT


def test_parts_about_several_benchmarks_say_which_they_are_about():
    rises = criteria.trend(BCAST, "rises")
    measured = subject("a", (BCAST, {2: 2.0, 4: 1.0}), (PINGPONG, {1: 9.0, 2: 1.0}))
    both = outcome(criteria.every(rises, criteria.trend(PINGPONG, "rises")), measured)
    assert "Bcast: " in both.sentence
    assert "PingPong: " in both.sentence
    assert "Bcast: " not in outcome(criteria.every(rises, rises), measured).sentence


def test_bounds_of_values_and_of_ratios():
    at_least = criteria.at_least(HPL, 87)
    assert outcome(at_least, subject("a", (HPL, {1000: 90.0}))).outcome is Outcome.HOLDS
    assert outcome(at_least, subject("a", (HPL, {1000: 80.0}))).outcome is Outcome.DOES_NOT
    exchange = replace(PINGPONG, benchmark="Exchange")
    half = criteria.at_most(PINGPONG, 0.6, exchange)
    measured = subject("a", (PINGPONG, {1: 914.0}), (exchange, {1: 1737.0}))
    assert outcome(half, measured).outcome is Outcome.HOLDS


def test_the_best_is_not_taken_from_launches_that_lack_it():
    """HPL of a small matrix was launched again alone, as the best block size was not decided.

    Percent of the nominal peak, Intel MPI on two cores: eleven launches of N=10752, all above 87,
    and the best block size of N=3456 in twenty.
    """
    large = [113.2, 113.4, 112.3, 112.6, 113.7, 113.3, 112.8, 110.9, 111.7, 110.8, 112.3]
    small = [97.2, 98.5, 100.7, 101.4, 100.6, 101.1, 102.5, 98.1, 102.6, 101.6]
    small += [101.0, 101.5, 101.6, 98.8, 102.1, 98.2, 104.2, 102.0, 102.4, 104.1]
    measured = subject("intel-mpi", (HPL, {10752: 1.0, 3456: 1.0}))
    figures = [
        replace(one, value=max(of), of_launches=of)
        for one, of in zip(measured.figures, (large, small), strict=True)
    ]
    at_least = criteria.at_least(HPL, 87)
    decision = outcome(at_least, replace(measured, figures=figures))
    assert decision.outcome is Outcome.HOLDS
    assert "over 87: 1.29 (1.27 to 1.31)" in decision.sentence


def test_a_number_is_refused_by_launches_on_its_other_side_and_by_few_of_them_never():
    """So it is where launches drift: of two sets that do, the level of neither would be known."""
    [one] = subject("a", (HPL, {1000: 1.0})).figures
    at_least = criteria.at_least(HPL, 87)
    for launches, said in (
        ([82.0 - k / 5 for k in range(10)], Outcome.DOES_NOT),
        ([92.0 - k / 5 for k in range(10)], Outcome.HOLDS),
        ([88.0 - k / 5 for k in range(10)], Outcome.INCONCLUSIVE),
        ([82.0 - k / 5 for k in range(5)], Outcome.INCONCLUSIVE),
    ):
        figure = replace(one, value=max(launches), of_launches=launches)
        measured = replace(subject("a", (HPL, {1000: 1.0})), figures=[figure])
        assert outcome(at_least, measured).outcome is said


@pytest.mark.parametrize("bounded", [criteria.at_least, criteria.at_most])
def test_launches_that_are_just_the_number_reach_it_and_are_not_beyond_it(bounded):
    measured = subject("a", (HPL, {1000: 1.0}))
    figures = [replace(one, value=87.0, of_launches=[87.0] * 10) for one in measured.figures]
    assert outcome(bounded(HPL, 87), replace(measured, figures=figures)).outcome is Outcome.HOLDS


def test_orders_of_two_benchmarks_correlate():
    name = "RandomlyOrderedRingBandwidth_GBytes"
    ring = Figure(name, name, "ranks")
    test = criteria.ranks_alike(BCAST, ring, ["x", "y", "z"])
    players = {
        name: subject(name, (BCAST, {2: time}), (ring, {2: rate}))
        for name, time, rate in (("x", 1.0, 9.0), ("y", 2.0, 5.0), ("z", 3.0, 1.0))
    }
    assert outcome(test, players["x"], **players).outcome is Outcome.HOLDS


def test_a_stack_plays_the_variant_that_the_facts_name_for_it():
    paper = load_paper("001")
    intel, mvapich = bcast("intel-mpi", p2=1.0), bcast("spack-mvapich2", p2=2.0)
    roles = cast(paper, [intel, mvapich], {}).roles
    assert roles["westmere-m610-qdr-intelmpi"] is intel
    assert roles["westmere-m610-qdr-mvapich2"] is mvapich
    assert (
        cast(paper, [intel], {"westmere-m610-qdr-intelmpi": mvapich}).roles[
            "westmere-m610-qdr-intelmpi"
        ]
        is mvapich
    )


def test_what_the_papers_say_of_themselves_is_what_their_numbers_say():
    found = {paper.id: paper.predicates.values() for paper in load_papers()}
    said = Counter(one.paper for of in found.values() for one in of)
    assert said == {"not checkable": 73, "held": 21, "contradicted": 7}
    contradicted = [(paper, one.id) for paper, of in found.items() for one in of
                    if one.paper == "contradicted"]  # fmt: skip
    assert contradicted == [
        ("000", "p017"), ("000", "p018"), ("003", "p017"),
        *(("004", name) for name in ("p012", "p015", "p018", "p019")),
    ]  # fmt: skip


def as_printed(paper: Paper) -> Cast:
    """Return the paper's systems with the figures that it printed of them, as if measured here."""
    series: dict[str, dict[str, tuple[Figure, dict[int, float]]]] = {}
    for value in paper.values.values():
        match = FIGURE_NAME.fullmatch(value.suite.figure) if value.suite else None
        if match is None or value.suite is None or value.value is None:
            continue
        benchmark, processes, size, metric = match.groups()
        if benchmark.endswith("-curve"):
            # The largest bandwidth is that of the largest message.
            benchmark, metric = benchmark.removesuffix("-curve"), metric.removeprefix("max_")
            size = str(4 << 20)
        of = Figure(benchmark, metric, conditions=value.suite.conditions)
        of = of.where(bytes=int(size)) if (size or "").isdigit() else of
        told = (processes, value.suite.layout.partition("-")[0], value.conditions.get("processes"))
        at = next((int(count) for count in map(str, told) if count.isdigit()), 2)
        printed = {value.system: value.value * value.suite.factor}
        if value.suite.relative == TO_BASELINE:
            printed[value.conditions["baseline"]] = 1.0
        for who, number in printed.items():
            series.setdefault(who, {})[value.suite.figure] = (of, {at: number})
    players = {name: subject(name, *of.values()) for name, of in series.items()}
    return Cast(list(players.values()), players)


# Not those of which the print has a part: PingPong's latency at one size (001 p002, 003 p002 and
# p003), 16 of the 20 tests of 004 p020, of which the T3E is best in 8.
DECIDED_BY_PRINT = {
    "002": {"p008"},
    "003": {"p001", "p004", "p005", "p007"},
    "004": {f"p{n:03}" for n in (4, 6, 7, 11, 12, 14, 15, 16, 18, 19, 22)},
}


@pytest.mark.parametrize("paper", load_papers(), ids=lambda paper: paper.id)
def test_what_was_printed_decides_as_the_paper_says(paper):
    """No test of measurements is so strict, or so lax, that the paper's own numbers turn it."""
    decided = set()
    for predicate in paper.predicates.values():
        outcomes = {one.outcome for one in decide(predicate, as_printed(paper))}
        if predicate.paper == "held":
            assert Outcome.DOES_NOT not in outcomes, predicate.id
        elif predicate.paper == "contradicted":
            assert Outcome.HOLDS not in outcomes, predicate.id
        if outcomes & {Outcome.HOLDS, Outcome.DOES_NOT}:
            decided.add(predicate.id)
    assert decided == DECIDED_BY_PRINT.get(paper.id, set())


def test_every_conclusion_can_be_asked_of_any_measurements():
    empty = subject("mpich", (PINGPONG, {8: 1.0}))
    for paper in load_papers():
        for predicate in paper.predicates.values():
            decisions = decide(predicate, cast(paper, [empty], {}))
            assert decisions, predicate.id
            assert all(decision.sentence for decision in decisions)


def test_printed_numbers_decide():
    values = load_paper("003").values.items()
    printed = Printed({name: one.value for name, one in values if one.value is not None})
    assert printed.ascending("r033", "r018")
    assert not printed.ascending("r018", "r033 r027")
    assert printed.near("r022 r025", within=0.01)
    assert not printed.near("r018 r027", within=0.01)
    assert printed.ratio("r034", "r073") < 0.6


def test_one_over_another_is_held_to_its_bounds_at_each_place():
    x = subject("a", (PINGPONG, {1: 10.0, 2: 30.0, 4: 41.0}))
    y = subject("b", (PINGPONG, {1: 10.0, 2: 20.0, 4: 40.0}))
    for low, high, said in (
        (0.95, 1.6, Outcome.HOLDS),
        (0.95, math.inf, Outcome.HOLDS),
        (0.0, 1.4, Outcome.DOES_NOT),
        (1.3, 1.6, Outcome.DOES_NOT),
    ):
        asked = criteria.ratio("x", "y", PINGPONG, low=low, high=high)
        assert outcome(asked, x, x=x, y=y).outcome is said
