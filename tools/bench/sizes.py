"""``python -m tools.bench.sizes``: which statistic sees a single size, or a fault now and then.

Each candidate turns the launches of a run into a score of each figure, in units of what it scatters
by between the runs of a baseline: the variance of a figure and the median one of its stack, half
and half. From which score on a run is called slower is chosen on the other recordings, so that of
their unchanged runs at most 1 % are; with fewer than 100 of them, none.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray
from rich.console import Console

from clustergate.cli.progress import Progress
from clustergate.judge.baselines.proposals import Rule
from clustergate.sites.modes import MODES, Mode
from tools.bench import pairs, record, runs
from tools.bench.field import Times
from tools.bench.launches import read_launches, recordings
from tools.bench.runs import Run, effort, judge_of, runs_of
from tools.bench.slowdowns import NOTHING, SIZE, STACK, Change
from tools.bench.spread import Share
from tools.bench.verdicts import (
    BASELINE_RUNS,
    INTERMITTENT,
    JUDGED_RUNS,
    MANY,
    STACKS,
    baselines,
    processor_of,
    put_in,
    slowed_times,
    spread_out,
    table_of,
    times_of_run,
    told_of_recordings,
)

CHANGES = (
    NOTHING,
    *(Change(SIZE, by) for by in (1.05, 1.10, 1.20)),
    *(Change(STACK, INTERMITTENT, k) for k in (10, 3)),
)
# A launch is slow from so many times the baseline's median on.
_SLOW = 2.0
_ALARMS = 0.01
_FEWEST = 5

Basis = Sequence[Times]


def best(basis: Basis, run: Times) -> NDArray[np.float64]:
    """The best of the launches, against the median of the runs' bests."""
    return np.asarray(np.log(run.min(axis=0)) - np.median(_logs(basis, 0.0), axis=0))


def low_quantile(basis: Basis, run: Times) -> NDArray[np.float64]:
    """The lower quartile of the launches, against the median of the runs' quartiles."""
    return np.asarray(
        np.log(np.quantile(run, 0.25, axis=0)) - np.median(_logs(basis, 0.25), axis=0)
    )


def _logs(basis: Basis, share: float) -> NDArray[np.float64]:
    return np.log([np.quantile(one, share, axis=0) for one in basis])


def slow_share(basis: Basis, run: Times) -> NDArray[np.float64]:
    """The share of launches at twice the baseline's median, against that of the baseline."""
    known = np.concatenate(basis)
    slow = _SLOW * np.median(known, axis=0)
    return np.asarray((run > slow).mean(axis=0) - (known > slow).mean(axis=0))


def ranks(basis: Basis, run: Times) -> NDArray[np.float64]:
    """Mann and Whitney's U of the launches, as a normal deviate of independent ones."""
    known = np.sort(np.concatenate(basis), axis=0)
    below = [
        (np.searchsorted(a, b, "left") + np.searchsorted(a, b, "right")).sum() / 2
        for a, b in zip(known.T, run.T, strict=True)
    ]
    n, m = len(run), len(known)
    return np.asarray((np.array(below) - n * m / 2) / np.sqrt(n * m * (n + m + 1) / 12))


CANDIDATES: Mapping[str, Callable[[Basis, Times], NDArray[np.float64]]] = {
    "best of n": best,
    "lower quartile": low_quantile,
    "share of slow launches": slow_share,
    "Mann-Whitney": ranks,
}


class Scores:
    """What a candidate makes of runs, against a baseline of one stack."""

    def __init__(self, candidate: str, basis: Basis) -> None:
        self._score = CANDIDATES[candidate]
        self._basis = basis
        without = [[*basis[:k], *basis[k + 1 :]] for k in range(len(basis))]
        each = np.array([self._score(w, one) for w, one in zip(without, basis, strict=True)])
        self._centre = np.median(each, axis=0)
        variance = each.var(axis=0, ddof=1)
        # Where nothing scattered, a launch in a hundred might have.
        self._spread = np.sqrt(np.maximum((variance + np.median(variance)) / 2, 1e-4))

    def of(self, run: Times) -> NDArray[np.float64]:
        """Return the score of each figure; the higher, the slower."""
        return np.asarray((self._score(self._basis, run) - self._centre) / self._spread)


def highest(
    scores: Mapping[str, Scores], run: Run, change: Change, lot: np.random.Generator
) -> float:
    """Return the highest score of what a change affects."""
    affected, slowed = put_in(change, run, lot)
    found = []
    for stack, names in affected.items():
        columns, times = slowed_times(run, stack, names, slowed)[1], times_of_run(run, stack)
        times[:, columns] = slowed_times(run, stack, names, slowed)[0]
        found.append(float(scores[stack].of(times)[columns].max()))
    return max(found)


BASELINES = ("every second run", "the first half", "the other recordings")
"""Of what baselines are made: runs between the judged ones, before them, or of other hours."""


def _divided(of: Mapping[str, Sequence[Run]], name: str, by: str) -> tuple[list[Run], list[Run]]:
    """Return the runs of a baseline, and those of a recording that it judges."""
    mine = list(of[name])
    if by == BASELINES[0]:
        return mine[::2], mine[1::2]
    half = len(mine) // 2
    if by == BASELINES[1]:
        return mine[:half], mine[half:]
    others = [some for other, some in of.items() if other != name]
    each = -(-BASELINE_RUNS // max(len(others), 1))
    return [run for some in others for run in spread_out(some, each)], mine[half:]


def shares(of: Mapping[str, Sequence[Run]], candidate: str, by: str) -> dict[Change, Share]:
    """Return how often runs are called slower, by the change that was put into them."""
    by_recording: dict[str, dict[Change, list[float]]] = {}
    for place, name in enumerate(of):
        basis, judged = _divided(of, name, by)
        if len(basis) >= _FEWEST and judged:
            scores = {s: Scores(candidate, [times_of_run(r, s) for r in basis]) for s in STACKS}
            by_recording[name] = {
                change: [
                    highest(scores, run, change, np.random.default_rng([k, n, place]))
                    for k, run in enumerate(judged)
                ]
                for n, change in enumerate(CHANGES)
            }
    found = {}
    for change in CHANGES:
        counts = []
        for name, told in by_recording.items():
            usual = [
                x for other, some in by_recording.items() if other != name for x in some[NOTHING]
            ]
            if usual:
                threshold = np.quantile(usual, 1.0 - _ALARMS, method="higher")
                counts.append((int(np.sum(np.array(told[change]) > threshold)), len(told[change])))
        found[change] = Share(counts)
    return found


# --- the best that memory can do ---------------------------------------------------------------

SLOWDOWNS = (0.10, 0.20, 0.50, 1.0, 2.0)
_ERROR = 0.01
"""Of the test of a figure alone, and of one beside all that a run of maintenance compares."""


def optimum(
    of: Mapping[str, Sequence[Run]], slower: float, figures: int, *, own_hour: bool
) -> Mapping[str, Share]:
    """Return how often the best test of all decides of a single figure, by what it says.

    It is the likelihood ratio of the launches of a run (Neyman and Pearson, 1933), which knows how
    those of each hour are distributed and takes each hour for as likely: of all other recordings,
    or of the run's own, too. So it knows which figure may be slower and by how much, and more of
    the noise than any baseline. From which ratio on it decides is chosen on these very runs, so
    that 1 % of its answers to the other question are wrong. Beside so many ``figures`` an alarm
    has its part of the error, by the bound that holds for any distribution (Wald, 1945).
    """
    noise = {
        (name, stack): pairs.Noise(np.log(np.concatenate([times_of_run(r, stack) for r in some])))
        for name, some in of.items()
        for stack in STACKS
    }
    ratios = {
        name: np.array(
            [
                _ratios(
                    [noise[hour, stack] for hour in of if own_hour or hour != name],
                    np.log(times_of_run(run, stack)),
                    slower,
                )
                for run, stack in itertools.product(some, STACKS)
            ]
        )
        for name, some in of.items()
    }
    # Of all runs: unchanged first, then slower.
    unchanged, slowed = np.concatenate(list(ratios.values())).swapaxes(0, 1)
    within, beyond = np.quantile(slowed, _ERROR), np.quantile(unchanged, 1.0 - _ERROR)
    said = {
        "unchanged: shown not to be slower": (0, -np.inf, within),
        "slower: found alone": (1, beyond, np.inf),
        f"slower: found among {figures}": (1, math.log(figures / _ERROR), np.inf),
    }
    return {
        told: Share(
            [
                (int(((low <= x[:, row]) & (x[:, row] <= high)).sum()), x[:, row].size)
                for x in ratios.values()
            ]
        )
        for told, (row, low, high) in said.items()
    }


def _ratios(
    hours: Sequence[pairs.Noise], logs: NDArray[np.float64], slower: float
) -> NDArray[np.float64]:
    """Return the ratio of likelihoods of each figure, as it is and slower by a fraction."""
    by = math.log1p(slower)
    slow, same, fast = (
        scipy.special.logsumexp(
            [
                [hour.heights(k, column + moved).sum() for k, column in enumerate(logs.T)]
                for hour in hours
            ],
            axis=0,
        )
        for moved in (by, 0.0, -by)
    )
    return np.array([fast - same, same - slow])


def decided(of: Mapping[str, Sequence[Run]], mode: Mode) -> Share:
    """Return how many figures of unchanged runs a check decides, by a baseline of other hours."""
    counts = []
    for basis, (name,) in baselines(of, MANY):
        judge = judge_of(basis, mode, STACKS, Rule())
        shares = [runs.decided([judge.case(run, stack) for stack in STACKS]) for run in of[name]]
        counts.append((round(sum(shares) * record.FIGURES), len(shares) * record.FIGURES))
    return Share(counts)


def main() -> int:
    """Print what each candidate finds on the recordings that may be read, by processor."""
    say = Progress()
    recorded = {path.name.partition(".")[0]: list(read_launches(path)) for path in recordings()}
    console = Console(width=160, highlight=False, markup=False)
    console.print(told_of_recordings(recorded), soft_wrap=True)
    for mode in (MODES["maintenance"], MODES["smoke"]):
        every = {
            name: runs_of(name, some, STACKS, effort(mode).budget)
            for name, some in recorded.items()
        }
        every = {name: some for name, some in every.items() if some}
        for processor in dict.fromkeys(processor_of(some[0]) for some in every.values()):
            of = {n: some for n, some in every.items() if processor_of(some[0]) == processor}
            where = f"{mode.name}, {len(of)} recordings of {processor}"
            say(where)
            few = {name: spread_out(some, JUDGED_RUNS) for name, some in of.items()}
            console.print(f"{where}: a check decides {decided(few, mode)} % of the figures")
            _print_optimum(console, few, mode, where)
            if mode.name == "maintenance":
                _print_candidates(console, of, where)
    return 0


def _print_optimum(
    console: Console, of: Mapping[str, Sequence[Run]], mode: Mode, where: str
) -> None:
    of_stack = len(runs.figures_of_mode(mode)) + runs.OF_HPL_AND_HPCC[mode.name]
    figures = len(STACKS) * of_stack
    for own_hour in (False, True):
        found = {by: optimum(of, by, figures, own_hour=own_hour) for by in SLOWDOWNS}
        rows = [[f"{100 * by:.0f} %", *map(str, one.values())] for by, one in found.items()]
        hours = "with the run's own hour" if own_hour else "of the other hours"
        title = f"Likelihood ratios of a figure, true distributions {hours}: {where}"
        console.print(table_of(title, ["by", *found[SLOWDOWNS[0]]], rows))


def _print_candidates(console: Console, of: Mapping[str, Sequence[Run]], where: str) -> None:
    for by in BASELINES:
        rows = [[name, *map(str, shares(of, name, by).values())] for name in CANDIDATES]
        console.print(table_of(f"Baselines of {by}: {where}", ["found", *map(str, CHANGES)], rows))


if __name__ == "__main__":
    sys.exit(main())
