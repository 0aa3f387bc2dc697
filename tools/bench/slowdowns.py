"""The changes that are put into launches, to see which of them are found. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SIZE, BENCHMARK, STACK = "one size", "one benchmark", "one stack"
HPL, ALL_COMPUTE, WINDOW = "HPL", "all compute", "three sizes"
# These became faster.
UPGRADED, UPGRADED_LATENCY = "one stack upgraded", "small messages of a stack upgraded"


@dataclass(frozen=True)
class Change:
    """What is put into launches: ``where``, by how many times, and into each which launch."""

    where: str
    factor: float = 1.0
    every: int = 1

    def __str__(self) -> str:
        if self == NOTHING:
            return self.where
        by = f"{self.factor:g} x" if self.factor >= 2 else f"{100 * (self.factor - 1):.0f} %"
        seldom = f", in 1 launch of {self.every}:" if self.every > 1 else ""
        return f"{self.where}{seldom} {by}"

    def figures(self, names: Sequence[str], hit: str) -> list[str]:
        """Return which of a stack's figures it affects, where chance hits one of them."""
        if self.where == STACK:
            return list(names)
        if self.where == BENCHMARK:
            return [name for name in names if name.partition("/")[0] == hit.partition("/")[0]]
        return [hit] if self.where == SIZE else []


NOTHING = Change("nothing")
