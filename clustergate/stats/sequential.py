"""Evidence against a place that is looked at again and again, for weeks. Pure.

Of a sound place a look is slow with a chance of at most ``usual``, whatever the looks before it
were. Who bets on a share ``p`` of slow looks instead has after n looks the capital ::

    M_n = prod_t (p / usual)^x_t * ((1 - p) / (1 - usual))^(1 - x_t),   x_t = 1 if look t is slow,

a supermartingale that begins at 1; so is a weighted mean of the capitals of several ``p``. Hence
P(M_n >= 1 / error at any n) <= error (Ville, Étude critique de la notion de collectif, 1939): the
error holds at every look, whenever one stops or goes on (Ramdas, Grünwald, Vovk and Shafer,
Game-theoretic statistics and safe anytime-valid inference, Statistical Science 38, 2023). ``usual``
may change from look to look, as long as it is known before the look.

A fault may begin on any day, and a capital that many sound looks have spent would be slow to see
it: each day begins one of its own, with an error of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

DAY_S = 86_400.0
_DAYS_OF_A_MONTH = 365.25 / 12
SHARES = (0.9, 0.3)
"""The shares of slow looks that are bet on: a fault that stays, and one that comes and goes."""
_LOG_WEIGHTS = (math.log(0.8), math.log(0.2))
_DAYS = 28


@dataclass(frozen=True)
class Evidence:
    """The logarithms of the capitals that bet against one place.

    ``capitals`` are by the number of the day on which each began, one for each of :data:`SHARES`;
    ``log`` is the largest of all days, 0 before any look.
    """

    capitals: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    log: float = 0.0

    def after(self, slow: bool, usual: float, at_s: float) -> Evidence:
        """Return the evidence with another look, at a time in seconds since the epoch."""
        today = int(at_s // DAY_S)
        kept = {day: c for day, c in self.capitals.items() if today - _DAYS < day <= today}
        kept.setdefault(today, _LOG_WEIGHTS)
        gains = [_gain(slow, usual, share) for share in SHARES]
        capitals = {
            day: tuple(had + gain for had, gain in zip(capital, gains, strict=True))
            for day, capital in kept.items()
        }
        return Evidence(capitals, max(map(_log_sum, capitals.values())))


def _gain(slow: bool, usual: float, share: float) -> float:
    if share <= usual:
        return 0.0
    return math.log(share / usual) if slow else math.log((1 - share) / (1 - usual))


def _log_sum(logs: tuple[float, ...]) -> float:
    largest = max(logs)
    return largest + math.log(sum(math.exp(one - largest) for one in logs))


def log_bound(per_1000_nodes_and_month: float, kinds: int) -> float:
    """Return the logarithm from which on a capital accuses.

    So many of 1000 sound nodes are accused in a month, on average: each node has the same part of
    that for each day on which a capital begins, which its ``kinds`` of looks share. By the union
    bound that holds whatever depends on what.
    """
    daily = per_1000_nodes_and_month / 1000 / _DAYS_OF_A_MONTH
    return math.log(kinds / daily)
