"""How often a benchmark is launched. Pure, and apart: a job's driver needs it and no benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """How often to launch.

    ``at_least`` undisturbed launches are what a verdict needs, and there are ``at_most`` launches
    in all. Between the two, another one is made while too few are undisturbed, or while the widest
    interval of a benchmark exceeds ``precision`` (half its width as a fraction of the value; None:
    any width will do), as long as it would end within ``seconds``. Who wants to ``spend_all``
    launches ``at_most`` times, or as often as ``seconds`` allow, but once; whether to go on must
    not depend on the figures where a test is made of them. Half as many seconds more are allowed
    where they are enough for ``worth_half_more`` launches: fewer would decide nothing.
    """

    at_least: int = 1
    at_most: int = 1
    seconds: float = 0.0
    precision: float | None = None
    spend_all: bool = False
    worth_half_more: int = 0


ONE_LAUNCH = Budget()
# Of what takes minutes: the better launch counts, and the other may be disturbed.
TWO_LAUNCHES = Budget(at_least=2, at_most=2)
