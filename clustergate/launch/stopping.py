"""When a job has launched often enough. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from clustergate.benchmarks.budget import TWO_LAUNCHES, Budget
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words

TOO_FEW_LAUNCHES = Words(
    "job.too-few-launches",
    "launches must be at least 1, not {launches}",
    remedy="0 leaves it to the mode",
)


def fixed_launches(launches: int) -> Budget:
    """Return the budget of so many launches; raises :class:`ClustergateError` for less than one."""
    if launches < 1:
        raise ClustergateError(TOO_FEW_LAUNCHES(launches=launches))
    return Budget(launches, launches)


def fit_to_time_limit(budget: Budget, limit_s: float) -> Budget:
    """Return a budget for a job of so many seconds."""
    return replace(budget, seconds=launches_s(budget.seconds, limit_s))


def launches_s(asked_s: float, limit_s: float) -> float:
    """Return how many seconds of a job's limit launches may take.

    That is half of them: half as much again is allowed to some, and the last one needs time to end.
    """
    return min(asked_s, limit_s / 2)


def undisturbed_needed(asked: Budget, usual: Budget) -> int:
    """Return how many undisturbed launches a verdict needs.

    Whoever asks for more launches than usual does so to make up for disturbed ones.
    """
    return 1 if usual == TWO_LAUNCHES else min(asked.at_least, usual.at_least)


def is_hopeless(budget: Budget, seconds: Sequence[float], undisturbed: int) -> bool:
    """Tell whether fewer launches than a verdict needs have spent the time, and none counts."""
    spent_s = sum(seconds) + max(seconds, default=0.0)
    return bool(seconds) and not undisturbed and 0.0 < budget.seconds < spent_s


def is_enough(
    budget: Budget,
    seconds: Sequence[float],
    undisturbed: int,
    widest: Callable[[], float | None],
) -> bool:
    """Tell whether the launches that took ``seconds`` each are enough.

    ``undisturbed`` counts those that nothing disturbed; of several programs launched in turn it
    counts rounds, and each of ``seconds`` is that of a round. ``widest`` yields half
    of the widest interval as a fraction of its value, None where some figure has no interval; it is
    costly and is called only when the answer depends on it.
    """
    made = len(seconds)
    longest = max(seconds, default=0.0)
    if budget.spend_all:
        spent = sum(seconds) + longest > budget.seconds
        if spent and made < budget.worth_half_more:
            needed = sum(seconds) + (budget.worth_half_more - made) * longest
            spent = needed > 1.5 * budget.seconds
        return bool(made) and (made >= budget.at_most or spent)
    if made < budget.at_least:
        return is_hopeless(budget, seconds, undisturbed)
    if made >= budget.at_most or sum(seconds) + longest > budget.seconds:
        return True
    if undisturbed < budget.at_least:
        return False
    if budget.precision is None:
        return True
    width = widest()
    return width is not None and width <= budget.precision
