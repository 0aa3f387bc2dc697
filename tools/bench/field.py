"""What other tools would say of the same launches: the field's rules. Pure.

Each takes all launches of a run, disturbed or not, in the order of their time, and tells of each
figure whether it became slower. Times are in microseconds, of the shape (launches, figures).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Times = NDArray[np.float64]
SLOWER = 1.10
# With a test beside it.
SLOWER_TESTED = 1.05
_LEVEL = 0.01
_RESAMPLED = 500
# Otava's window; what lies before it does not count.
_WINDOW = 50


@dataclass(frozen=True)
class Known:
    """The runs of a baseline; the chance of error is divided among the ``figures`` of a run."""

    runs: Sequence[Times]
    figures: int

    @functools.cached_property
    def launches(self) -> Times:
        """All launches of all runs."""
        return np.concatenate(self.runs)

    @functools.cached_property
    def median(self) -> Times:
        """Of each figure, over all launches."""
        return np.asarray(np.median(self.launches, axis=0))

    @functools.cached_property
    def resampled(self) -> Times:
        """Medians of launches that are drawn with replacement: (draws, figures)."""
        return _medians_drawn(self.launches, 1)


def _medians_drawn(launches: Times, seed: int) -> Times:
    drawn = np.random.default_rng(seed).integers(0, len(launches), (_RESAMPLED, len(launches)))
    return np.asarray(np.median(launches[drawn], axis=1))


def one_run(known: Known, run: Times) -> NDArray[np.bool_]:
    """A single launch against the median: more than 10 % slower."""
    return np.asarray(run[0] > SLOWER * known.median)


def median_of_k(known: Known, run: Times) -> NDArray[np.bool_]:
    """The median of the launches against the median: more than 10 % slower."""
    return np.asarray(np.median(run, axis=0) > SLOWER * known.median)


def mann_whitney(known: Known, run: Times) -> NDArray[np.bool_]:
    """Ranks at 1 % for all figures together (Bonferroni), and medians more than 5 % apart."""
    p = stats.mannwhitneyu(run, known.launches, alternative="greater", axis=0, method="asymptotic")
    apart = np.median(run, axis=0) > SLOWER_TESTED * known.median
    return np.asarray((p.pvalue < _LEVEL / known.figures) & apart)


def bootstrap(known: Known, run: Times) -> NDArray[np.bool_]:
    """The 99 % interval of the ratio of medians lies above 1, and the ratio above 1.05."""
    ratios = _medians_drawn(run, 2) / known.resampled
    low = np.quantile(ratios, _LEVEL / 2, axis=0)
    return np.asarray((low > 1.0) & (np.median(run, axis=0) > SLOWER_TESTED * known.median))


def t_test(known: Known, run: Times) -> NDArray[np.bool_]:
    """The mean lies above the 99 % boundary of Student's t of the runs before, as Bencher's."""
    means = np.array([of_run.mean(axis=0) for of_run in known.runs])
    boundary = float(stats.t.ppf(1.0 - _LEVEL, len(means) - 1))
    return np.asarray(run.mean(axis=0) > means.mean(axis=0) + boundary * means.std(axis=0, ddof=1))


Rule = Callable[[Known, Times], NDArray[np.bool_]]

RULES: Mapping[str, Rule] = {
    "one run, 10 %": one_run,
    "median, 10 %": median_of_k,
    "Mann-Whitney": mann_whitney,
    "bootstrap": bootstrap,
    "t test": t_test,
}


def series(known: Known, run: Times) -> list[tuple[list[float], int]]:
    """Return of each figure the launches among which a change point is looked for.

    The second is where those of the run begin.
    """
    before = known.launches[len(known.launches) - max(_WINDOW - len(run), _WINDOW // 2) :]
    both = np.concatenate([before, run])
    return [(column.tolist(), len(before)) for column in both.T]
