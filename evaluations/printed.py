"""What a paper's own numbers say of its conclusions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Printed:
    """The printed values of a paper by their ids."""

    values: Mapping[str, float]

    def numbers(self, ids: str | float) -> list[float]:
        """Return the values of ids with blanks between them; a number stands for itself."""
        if not isinstance(ids, str):
            return [float(ids)]
        return [float(one) if one.isdecimal() else self.values[one] for one in ids.split()]

    def ascending(self, *groups: str | float) -> bool:
        """Tell whether every value of a group is below every one of the next."""
        found = [self.numbers(group) for group in groups]
        return all(max(low) < min(high) for low, high in pairwise(found))

    def near(self, ids: str, within: float = 0.05) -> bool:
        """Tell whether the least of values is less than the largest by at most a fraction of it."""
        found = self.numbers(ids)
        return max(found) - min(found) <= within * max(found)

    def ratio(self, upper: str, lower: str) -> float:
        """Return one value over another."""
        return self.values[upper] / self.values[lower]
