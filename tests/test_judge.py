"""The judge on simulated runs: what is found, who is not accused, and what is known of it."""

import math

import numpy as np
import pytest

from clustergate.core.model import (
    BANDWIDTH,
    COLLECTIVE,
    LATENCY,
    BaselineRuns,
    Better,
    Reference,
    Verdict,
)
from clustergate.judge.bad_days import bad_days
from clustergate.judge.changes import HIDDEN, Judge, Past, slower
from clustergate.judge.contrasts import contrasts
from clustergate.judge.hypotheses import hypotheses
from clustergate.judge.kinds import FigureId
from clustergate.judge.rules import Compared, Comparison, groups, judgements
from clustergate.judge.runs import figure_id, kind_in
from clustergate.judge.scatter import EXCLUSIVE, components
from clustergate.judge.two_runs import Both, Known, of_two_runs
from clustergate.stats.comparison import Relation

STACKS = ("intel-mpi", "mpich")
SIZES = (8, 64, 512, 4096)


def figure(stack, benchmark="PingPong", size=8, kind="latency"):
    case = ("ImbMpi1Check", "alpha:node", stack, "2-ranks-packed", "smoke")
    return FigureId(case, f"{benchmark}.{size}B", benchmark, "latency_us", kind, size)


def hpl(stack):
    case = ("HplCheck", "alpha:node", stack, "2-ranks-packed", "smoke")
    return FigureId(case, "HPL.performance_gflops", "HPL", "performance_gflops", "compute")


MACHINE = [
    *map(hpl, STACKS),
    *(
        figure(stack, benchmark, size)
        for stack in STACKS
        for benchmark in ("PingPong", "PingPing")
        for size in SIZES
    ),
]


def history(lot, days, runs_a_day=1, noise=0.01, between=0.01):
    """Return the days of runs of an unchanged machine, and their logarithms."""
    of_days = np.repeat(np.arange(days), runs_a_day)
    shared = lot.normal(0.0, between, (days, 1))[of_days]
    return of_days, shared + lot.normal(0.0, noise, (len(of_days), len(MACHINE)))


def places(**wanted):
    return [
        place
        for place, one in enumerate(MACHINE)
        if all(getattr(one, name) == value for name, value in wanted.items())
    ]


def judged(change, days=10, seed=1, **of_history):
    lot = np.random.default_rng(seed)
    of_days, values = history(lot, days, **of_history)
    judge = Judge(Past(MACHINE, of_days, values, exclusive=True))
    _, (now,) = history(lot, 1)
    for at, by in change.items():
        now[list(at)] += math.log1p(by)
    return judge, now


@pytest.mark.parametrize(
    ("check", "benchmark", "metric", "size", "kind"),
    [
        ("HplCheck", "HPL", "performance_gflops", None, "compute"),
        ("HpccCheck", "StarSTREAM_Triad", "StarSTREAM_Triad", None, "memory"),
        ("StreamCheck", "stream", "bandwidth_gb_s", None, "memory"),
        ("ImbMpi1Check", "PingPong", "bandwidth_mb_s", 8, "latency"),
        ("ImbMpi1Check", "PingPong", "bandwidth_mb_s", 1 << 20, "bandwidth"),
        ("ImbMpi1Check", "PingPong", "latency_us", 1 << 20, "bandwidth"),
        ("MpiTrialsCheck", "bcast", "p95_time_us", 1 << 20, "collectives"),
        ("HostOverheadCheck", "send", "overhead_us", 8, "latency"),
        ("StreamCheck", "STREAM", "p95_time_us", None, "memory"),
        ("ImbMpi1Check", "Allreduce", "t_max_us", 1 << 20, "collectives"),
        ("HpccCheck", "NaturallyOrderedRingLatency_usec", "", None, "latency"),
        ("HpccCheck", "PTRANS_GBs", "PTRANS_GBs", None, "bandwidth"),
    ],
)
def test_a_figure_is_of_a_kind(check, benchmark, metric, size, kind):
    case = (check, "alpha:node", "mpich", "2-ranks-packed", "smoke")
    assert figure_id(case, "any", benchmark, metric, size).kind == kind


def test_each_set_of_figures_is_one_hypothesis():
    sets = [one.places for one in hypotheses(MACHINE)]
    assert len(set(sets)) == len(sets)
    assert set(sets) >= {(place,) for place in range(len(MACHINE))}
    assert tuple(places(stack="mpich")) in sets
    assert tuple(places(kind="compute")) in sets
    # Windows of two and three neighbouring sizes of one curve.
    curve = places(stack="mpich", benchmark="PingPong")
    assert {tuple(curve[:2]), tuple(curve[1:4])} <= set(sets)
    assert tuple(curve[::2]) not in sets


def test_a_contrast_is_what_a_set_did_less_its_neighbours():
    sets = hypotheses(MACHINE)
    of = contrasts(MACHINE, sets, np.ones(len(MACHINE)))
    everything = np.full(len(MACHINE), 0.3)
    # What all did shows in no set that has neighbours.
    assert np.allclose((of.less_control @ everything)[of.controlled], 0.0)
    assert np.allclose(of.own @ everything, 0.3)
    # A class in all stacks has none: its past alone judges it.
    alone = {one.places for one, has in zip(sets, of.controlled, strict=True) if not has}
    assert tuple(places(kind="compute")) in alone
    assert tuple(places(stack="mpich", kind="latency")) not in alone


def test_the_variance_has_a_part_within_days_and_one_between():
    lot = np.random.default_rng(3)
    days = np.repeat(np.arange(400), 3)
    series = lot.normal(0.0, 0.02, (400, 1))[days] + lot.normal(0.0, 0.01, (1200, 1))
    series[::7] = np.nan
    of = components(series, days)
    assert math.sqrt(of.within[0]) == pytest.approx(0.01, rel=0.1)
    assert math.sqrt(of.between[0]) == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize(("days", "runs_a_day"), [(1, 5), (5, 1), (20, 1)])
def test_an_unchanged_machine_is_seldom_suspicious(days, runs_a_day):
    suspicious = 0
    for seed in range(40):
        judge, now = judged({}, days, seed, runs_a_day=runs_a_day)
        suspicious += bool(slower(judge.changes(now)))
    # Each of them is launched again before anybody is told.
    assert suspicious <= 6


@pytest.mark.parametrize(
    ("wanted", "by"),
    [
        ({"kind": "compute"}, 0.10),
        ({"stack": "mpich", "kind": "latency"}, 0.08),
        ({"stack": "mpich", "benchmark": "PingPong"}, 0.12),
        ({"stack": "mpich", "benchmark": "PingPong", "size_bytes": 512}, 0.4),
    ],
)
def test_what_is_slower_is_named_and_nobody_else(wanted, by):
    for seed in range(5):
        at = places(**wanted)
        judge, now = judged({tuple(at): by}, 10, seed)
        accused = {place for one in slower(judge.changes(now)) for place in one.hypothesis.places}
        assert accused
        # A stack is told for most of it.
        assert accused <= set(places(stack="mpich") if "stack" in wanted else at)


def test_a_stack_that_became_faster_accuses_no_neighbour():
    for seed in range(10):
        judge, now = judged({tuple(places(stack="mpich")): -0.2}, 10, seed)
        assert not slower(judge.changes(now))
        assert any(one.is_outdone or one.by > one.bound for one in judge.changes(now))


def test_where_nothing_is_known_nothing_is_judged():
    lot = np.random.default_rng(2)
    days, values = history(lot, 1, 5)
    alone = Judge(Past(MACHINE[:1], days, values[:, :1]))
    (change,) = alone.changes(values[0, :1] + 1.0)
    assert not change.is_judged
    assert not change.is_slower
    # On nodes that a job has for itself a kind of figures is known to scatter by so much.
    (change,) = Judge(Past(MACHINE[:1], days, values[:, :1], exclusive=True)).changes(
        values[0, :1] + 1.0
    )
    assert change.is_slower


def test_printed_digits_are_no_change():
    values = np.full((5, 1), math.log(0.15))
    days = np.arange(5)
    coarse = Judge(Past([figure("mpich")], days, values, np.array([0.01 / 0.15])))
    (change,) = coarse.changes(np.log([0.16]))
    assert not change.is_slower
    (change,) = Judge(Past([figure("mpich")], days, values)).changes(np.log([0.16]))
    assert change.is_slower


def test_what_would_be_found_is_told_by_level():
    judge, _ = judged({}, 10)
    detectable = judge.detectable()
    assert set(detectable) >= {"kind", "stack", "benchmark of a case", "sizes", "figure"}
    assert 0.0 < detectable["benchmark of a case"] < detectable["figure"] < 0.5


# ----------------------------------------------------------------------------------- the rules


def comparison(change=(), days=10, seed=1, exclusive=True, runs_a_day=1):
    """Return a run against ten days, in which some figures changed."""
    lot = np.random.default_rng(seed)
    of_days, values = history(lot, days, runs_a_day)
    _, (now,) = history(lot, 1)

    def compared(place, one):
        known = BaselineRuns(
            runs=tuple(f"run{k:02}" for k in range(len(of_days))),
            days=tuple(f"2026-11-{1 + day:02}" for day in of_days),
            values=tuple(np.exp(values[:, place])),
            launches=5,
            compared=len(MACHINE),
        )
        reference = Reference(math.exp(values[:, place].min()), None, 0.5, "us", "measured")
        return Compared(one, math.exp(now[place]), Better.LOWER, reference, known)

    at, by = change or ((), 0.0)
    now[list(at)] += math.log1p(by)
    first = [compared(place, one) for place, one in enumerate(MACHINE)]
    return Comparison(first, exclusive)


def verdicts(of):
    return [judgement.verdict for judgement in judgements(of)]


def test_figures_as_before_pass():
    assert set(verdicts(comparison())) == {Verdict.PASS}


def test_slower_benchmark_is_a_regression_of_its_figures():
    """A benchmark that is slower is a regression of its figures together."""
    at = places(stack="mpich", benchmark="PingPong")
    of = comparison((at, 0.15))
    slow = [group for _, group in groups(of) if group.judgement.verdict is Verdict.REGRESSION]
    assert [group.benchmark for group in slow] == ["PingPong"]
    assert slow[0].judgement.reasons[0].code == "change.slower"
    assert {verdicts(of)[place] for place in at} == {Verdict.INCONCLUSIVE}


def test_what_became_better_is_an_improvement():
    at = places(stack="mpich", benchmark="PingPong")
    found = verdicts(comparison((at, -0.3)))
    assert {found[place] for place in at} == {Verdict.IMPROVEMENT}
    assert Verdict.REGRESSION not in found


def test_nothing_passes_in_which_a_tenth_may_hide():
    of = comparison()
    for holding, judgement, one in zip(of.of_figure, judgements(of), of.figures, strict=True):
        surely = max(change.at_most for change in holding)
        if judgement.verdict is Verdict.PASS and one.worse_than_best > 0.05:
            assert surely < HIDDEN


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [(0.15, Verdict.PASS), (0.09, Verdict.INCONCLUSIVE), (0.0912, Verdict.PASS)],
)
def test_no_figure_passes_whose_last_digit_hides_a_tenth(printed, verdict):
    """A latency printed as 0.09 us may be 0.085 one day and 0.095 the next."""
    days = tuple(f"2026-11-{day:02}" for day in range(1, 6))
    known = BaselineRuns(days, days, (printed,) * 5, 3)
    reference = Reference(printed, None, 0.5, "us", "measured")
    one = Compared(figure("mpich"), printed, Better.LOWER, reference, known)
    assert verdicts(Comparison([one], exclusive=True)) == [verdict]


def test_on_shared_nodes_a_single_day_leaves_what_a_bound_tells():
    alone = Compared(
        MACHINE[0],
        100.0,
        Better.HIGHER,
        Reference(200.0, -0.4, None, "Gflop/s", "measured"),
        BaselineRuns(("a", "b"), ("2026-11-01",) * 2, (200.0, 199.0), 1),
    )
    assert verdicts(Comparison([alone])) == [Verdict.REGRESSION]
    unclear = Compared(alone.figure, 150.0, alone.better, alone.reference, alone.baseline)
    (said,) = judgements(Comparison([unclear]))
    assert said.verdict is Verdict.INCONCLUSIVE
    assert said.reasons[0].code == "baseline.unknown"


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "pass"), (1.4, "inconclusive")])
def test_a_whole_machine_that_is_slower_passes_by_no_neighbour(factor, verdict):
    """By one day of a shared machine nobody knows how its days differ: all of it may be slower."""
    of = comparison((range(len(MACHINE)), factor - 1), days=1, exclusive=False, runs_a_day=6)
    assert {one.value for one in verdicts(of)} == {verdict}
    of = comparison((range(len(MACHINE)), 0.8), days=1, exclusive=False, runs_a_day=6)
    assert set(verdicts(of)) == {Verdict.REGRESSION}


# ------------------------------------------------------------------------ bad days of a baseline


@pytest.mark.parametrize(("days", "runs_a_day"), [(1, 7), (2, 4), (3, 3), (5, 1)])
def test_slower_stack_on_shared_nodes_found_beside_others(days, runs_a_day):
    named, accused = 0, 0
    for seed in range(20):
        lot = np.random.default_rng(seed)
        of_days, values = history(lot, days, runs_a_day, noise=0.02, between=0.03)
        judge = Judge(Past(MACHINE, of_days, values))
        assert judge.detectable()["stack"] < math.log(1.2)
        _, (now,) = history(lot, 1, noise=0.02, between=0.03)
        accused += bool(slower(judge.changes(now)))
        now[places(stack="mpich")] += math.log(1.2)
        slow = {place for one in slower(judge.changes(now)) for place in one.hypothesis.places}
        named += bool(slow) and slow <= {*places(stack="mpich")}
    assert (named >= 16, accused <= 1) == (True, True)


def test_on_shared_nodes_a_slow_day_of_all_is_seldom_suspicious():
    suspicious = 0
    for seed in range(150):
        lot = np.random.default_rng(seed)
        judge = Judge(Past(MACHINE, *history(lot, 5, 3, noise=0.01, between=0.08)))
        # Launched again the same day, it would be as slow.
        _, (now,) = history(lot, 1, noise=0.01, between=0.08)
        suspicious += any(not one.controlled for one in slower(judge.changes(now)))
    assert suspicious <= 2


def with_slow(at, by, days=8, seed=1):
    """Return a baseline of a run a day of which some figures were slower on the fourth."""
    of_days, values = history(np.random.default_rng(seed), days)
    values[3, at] += math.log1p(by)
    return Past(MACHINE, of_days, values, exclusive=True)


@pytest.mark.parametrize("at", [range(len(MACHINE)), places(stack="mpich")])
def test_a_day_that_was_slow_leaves_the_baseline(at):
    past = with_slow(at, 0.3)
    ((day, why),) = bad_days(past)
    assert day == 3
    assert why[0].by == pytest.approx(math.log(1.3), abs=0.05)
    assert any(set(one.hypothesis.places) <= set(at) for one in why)
    # With it, the same in a later run would not have been found.
    of_run = past.values[0].copy()
    of_run[at] += math.log(1.2)
    assert not slower(Judge(past).changes(of_run))
    assert slower(Judge(past).among(past.days != 3).changes(of_run))


def test_no_day_leaves_of_a_steady_or_faster_machine():
    """No day leaves of a steady machine nor one that was faster nor of a slow launch."""
    assert not [bad for seed in range(20) for bad in bad_days(with_slow([], 0.0, seed=seed))]
    assert not bad_days(with_slow(range(len(MACHINE)), -0.3))
    assert not bad_days(with_slow(places(kind="compute")[:1], 0.3))


def test_bad_days_leave_one_at_a_time_and_at_most_a_quarter():
    past = with_slow(range(len(MACHINE)), 0.3, days=20)
    past.values[5] += math.log(1.5)
    assert [day for day, _ in bad_days(past)] == [5, 3]
    three = Past(MACHINE, past.days[2:5], past.values[2:5], exclusive=True)
    assert not bad_days(three)


# ------------------------------------------------------------------------------- two runs


def two_runs(lot, slower=(), by=0.0, noisier=0.7):
    """Return launches of every figure in two runs of two days, of which the later is slower."""
    both = []
    for place, one in enumerate(MACHINE):
        moved = math.log1p(by) if place in slower else 0.0
        levels = lot.normal((0.0, moved), noisier * EXCLUSIVE[one.kind])
        higher = one.kind == "compute"
        a, b = (
            np.exp((-1 if higher else 1) * (level + lot.exponential(0.003, 4))).tolist()
            for level in levels
        )
        both.append(Both(one, a, b, Better.HIGHER if higher else Better.LOWER))
    return both


def test_two_unchanged_runs_seldom_differ():
    """Two unchanged runs are seldom different and say nothing on shared nodes."""
    differ = 0
    for seed in range(40):
        both = two_runs(np.random.default_rng(seed))
        differ += any(x.is_sure for x in of_two_runs(both, 0.05, Known.EXCLUSIVE).moved)
        told = of_two_runs(both, 0.05, Known.SHARED)
        assert not told.moved
        assert {one.verdict for one in told.comparisons} == {Relation.INCONCLUSIVE}
    assert differ <= 2


@pytest.mark.parametrize("by", [0.15, -0.13])
def test_of_two_runs_what_is_slower_in_one_is_named(by):
    slow = places(kind="compute")
    for seed in range(5):
        told = of_two_runs(two_runs(np.random.default_rng(seed), slow, by), 0.05, Known.EXCLUSIVE)
        better = Relation.A_BETTER if by > 0 else Relation.B_BETTER
        assert [(x.name, x.better) for x in told.moved if x.is_sure] == [("HPL", better)]
        assert {p for p, x in enumerate(told.comparisons) if x.verdict is better} == set(slow)
        for place in slow:
            one = told.comparisons[place]
            assert one.low < 1 / (1 + by) < one.high


def test_two_noisier_runs_are_no_more_often_different():
    noisy = [two_runs(np.random.default_rng(seed), noisier=4.0) for seed in range(40)]
    moved = [of_two_runs(one, 0.05, Known.EXCLUSIVE).moved for one in noisy]
    assert sum(any(one.is_sure for one in some) for some in moved) <= 2


def test_pairwise_messages_without_bytes_are_no_collectives() -> None:
    """Messages between pairs of ranks are no collectives even without bytes."""
    kinds = [
        kind_in("ImbMpi1Check", *of)
        for of in (
            ("Sendrecv", "t_max_us", 0),
            ("Exchange", "bandwidth_mb_s", 1 << 20),
            ("Allreduce", "t_max_us", 0),
        )
    ]
    assert kinds == [LATENCY, BANDWIDTH, COLLECTIVE]
