"""The first accepted baseline and those after it: what crept away, and what only scatters."""

import dataclasses
import datetime
import math

import numpy as np
import pytest

from clustergate.core.model import Anchor, BaselineRuns, Better, Reference, Verdict
from clustergate.judge.changes import slower
from clustergate.judge.creeping import Accepted, accepted_after, crept, slower_than_before
from clustergate.judge.rules import Compared, Comparison, judgements, sets
from clustergate.judge.runs import median, with_common_runs
from clustergate.judge.scatter import trend
from tests.test_judge import MACHINE, STACKS, places

WEEK = datetime.timedelta(weeks=1)


def week(number, lot, slower_by):
    """Return the five runs of a week of each figure, so much slower as a logarithm."""
    first = datetime.date(2026, 6, 1) + number * WEEK
    days = tuple(str(first + datetime.timedelta(days=k)) for k in range(5))
    shared, own = lot.normal(0, 0.005, (5, 1)), lot.normal(0, 0.01, (5, len(MACHINE)))
    values = np.exp(shared + own + slower_by)
    runs = tuple(f"run-{day}" for day in days)
    return [BaselineRuns(runs, days, tuple(values[:, k]), 1) for k in range(len(MACHINE))]


def history(weeks, rate, at, seed=1):
    """Return the anchors of figures and their newest baselines after some weeks, all accepted."""
    lot, hit = np.random.default_rng(seed), np.isin(np.arange(len(MACHINE)), at)
    first, *later = (week(k, lot, k * math.log1p(rate) * hit) for k in range(weeks))
    anchors = [Anchor(one) for one in first]
    for known in later[:-1]:
        anchors = [accepted_after(a, one) for a, one in zip(anchors, known, strict=True)]
    return anchors, later[-1]


def crept_after(weeks, rate, at, seed=1):
    figures = [
        Accepted(figure, Better.LOWER, anchor, anchor.baseline, newest)
        for figure, anchor, newest in zip(MACHINE, *history(weeks, rate, at, seed), strict=True)
    ]
    return crept(figures, exclusive=True)


@pytest.mark.parametrize("at", [places(kind="compute"), range(len(MACHINE))])
def test_what_loses_one_percent_a_week_is_found_by_its_baselines(at):
    said = crept_after(7, 0.01, at)
    assert said
    for one in said:
        assert set(one.hypothesis.places) <= set(at)
        assert one.by == pytest.approx(0.06, abs=0.02)
        assert one.since in ("2026-06-01", "2026-06-05")


@pytest.mark.parametrize(("count", "most"), [(6, 10.0), (24, 22.0)])
def test_trend_is_the_line_of_least_squares_with_its_error(count, most):
    """What rose over the days, its standard error, and the degrees of freedom that are left."""
    lot = np.random.default_rng(3)
    days = 7 * np.arange(count) + 100
    values = 0.002 * days[:, None] + lot.normal(0, 0.01, (count, 8))
    missing = np.where(np.arange(count) == 2, np.nan, values[:, 0])
    series = np.column_stack([values, missing])
    families = [("figure", "compute")] * 9

    alone = trend(series, days, families, np.zeros(9, dtype=bool))
    line, (residual, *_) = np.polyfit(days, values, 1), np.polyfit(days, values, 1, full=True)[1:]
    span = days[-1] - days[0]
    error = np.sqrt(residual / (count - 2) / ((days - days.mean()) ** 2).sum())
    assert alone.mean[:8] == pytest.approx(line[0] * span)
    assert alone.spread[:8] == pytest.approx(error * span)
    assert alone.freedom.tolist() == [count - 2.0] * 8 + [0.0]

    # Those that scatter alike lend each other what they know, up to a limit.
    together = trend(series, days, families, np.ones(9, dtype=bool))
    assert together.freedom.tolist() == [most] * 8 + [0.0]
    assert np.ptp(together.spread[:8]) < 0.7 * np.ptp(alone.spread[:8])


def test_baselines_of_steady_and_faster_machines_do_not_creep():
    """Baselines of a steady machine do not creep nor those of one that became faster."""
    for seed in range(8):
        assert not crept_after(12, 0.0, [], seed)
        assert not crept_after(8, -0.01, range(len(MACHINE)), seed)


def test_line_through_baselines_finds_hidden_creeping():
    """A line through baselines finds what the first one scatters too much to show."""
    anchors, newest = history(12, 0.006, places(kind="compute"))
    noisy = np.array([0.5, 1.1, 0.8, 1.3, 1.4])
    noisy /= np.median(noisy)

    def figures(later):
        for figure, anchor, known in zip(MACHINE, anchors, newest, strict=True):
            first = dataclasses.replace(anchor.baseline, values=tuple(noisy))
            of_first = Anchor(first, anchor.later if later else ())
            yield Accepted(figure, Better.LOWER, of_first, first, known)

    said = crept([*figures(later=True)], exclusive=True)
    assert {one.since for one in said} == {"2026-06-05"}
    assert {x for one in said for x in one.hypothesis.places} == set(places(kind="compute"))
    assert not crept([*figures(later=False)], exclusive=True)


@pytest.mark.parametrize("exclusive", [True, False])
def test_baseline_slower_than_the_last_beyond_chance(exclusive):
    """A baseline is slower than the one before by more than chance alone."""
    for by in (0.0, 0.1):
        before, newest = (week(k, np.random.default_rng(k), by * k) for k in (0, 1))
        figures = [
            Accepted(figure, Better.LOWER, Anchor(first), first, later)
            for figure, first, later in zip(MACHINE, before, newest, strict=True)
        ]
        slow, unjudged = slower_than_before(figures, exclusive=exclusive)
        assert not unjudged
        assert {x for one in slow for x in one.hypothesis.places} == (
            set(range(len(MACHINE))) if by else set()
        )
    # A single new run tells nothing, nor do the runs that were there already.
    for known in (before, [one_more(*both) for both in zip(before, newest, strict=True)]):
        same = [dataclasses.replace(x, newest=y) for x, y in zip(figures, known, strict=True)]
        slow, unjudged = slower_than_before(same, exclusive=exclusive)
        assert not slow
        assert unjudged == set(range(len(MACHINE)))


def one_more(before, newest):
    """Return a baseline with a run of the next one."""
    return BaselineRuns(
        (*before.runs, newest.runs[0]),
        (*before.days, newest.days[0]),
        (*before.values, newest.values[0]),
        launches=1,
    )


def test_of_a_later_baseline_counts_what_is_new():
    lot = np.random.default_rng(1)
    (first, *_), (second, *_) = week(0, lot, 0.0), week(1, lot, 0.1)
    both = BaselineRuns(
        (*first.runs, *second.runs), (*first.days, *second.days), (*first.values, *second.values), 1
    )
    anchor = accepted_after(Anchor(first), both)
    ((day, value),) = anchor.later
    assert day == "2026-06-12"
    assert value == pytest.approx(median(second), rel=1e-4)
    # Fewer than a baseline needs wait for more.
    few = BaselineRuns(second.runs[:4], second.days[:4], second.values[:4], 1)
    assert accepted_after(Anchor(first), few) == Anchor(first)
    assert accepted_after(anchor, both) == anchor


def test_baselines_with_common_runs_were_made_together():
    runs = [("a", "b"), ("c",), ("b", "d"), ("d",)]
    known = [BaselineRuns(some, some, tuple(1.0 for _ in some), 1) for some in runs]
    assert sorted(map(sorted, with_common_runs(known))) == [[0, 2, 3], [1]]


# ------------------------------------------------------------------------------ a run against both


def compared(anchors, newest, now, moved=()):
    """Return a run against its newest baseline; figures of ``moved`` places have it as anchor."""
    of = [
        Compared(
            figure,
            math.exp(now[place]),
            Better.LOWER,
            Reference(
                min(newest[place].values), None, 0.5, "us", "measured",
                anchor=None if place in moved else anchors[place],
            ),
            newest[place],
        )
        for place, figure in enumerate(MACHINE)
    ]  # fmt: skip
    return Comparison(of, exclusive=True)


def test_run_slower_than_the_first_baseline_after_creeping():
    at = places(kind="compute")
    anchors, newest = history(6, 0.01, at)
    now = np.where(np.isin(np.arange(len(MACHINE)), at), 0.06, 0.0)
    of = compared(anchors, newest, now)
    assert not slower(of.changes)
    (change,) = of.slower
    assert set(change.hypothesis.places) == set(at)
    verdicts = list(judgements(of))
    told = [verdicts[place].verdict for place in at]
    assert set(told) <= {Verdict.REGRESSION, Verdict.INCONCLUSIVE}
    assert [one.name for one in sets(of) if one.is_slower] == ["HPL, since 2026-06-01"]
    assert Verdict.REGRESSION not in {verdicts[place].verdict for place in places(kind="latency")}
    # A person accepted what one stack has: it is judged by that, and the other one by its anchor.
    theirs = compared(anchors, newest, now, moved=places(stack=STACKS[0], kind="compute"))
    assert {place for one in theirs.slower for place in one.hypothesis.places} == set(
        places(stack=STACKS[1], kind="compute")
    )


def test_a_run_as_it_always_was_is_not_slower_than_its_anchor():
    for seed in range(8):
        anchors, newest = history(12, 0.0, [], seed)
        assert not compared(anchors, newest, np.zeros(len(MACHINE))).slower
