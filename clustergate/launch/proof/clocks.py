"""Whether the clocks that a program times itself with run as the kernel's own does. Pure.

The reference is CLOCK_MONOTONIC_RAW, asked of the kernel without a library in between: no time
service moves it (clock_gettime(2)), and no preloaded library stands before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# Time services correct the rate of a clock by 500 ppm at most while they hold it (ntp_adjtime(2));
# what is more than this shows in a figure. The rest is what two readings cannot be told apart by.
TOLERANCE = 0.005
SLACK_S = 0.002
_PROGRAMS = {
    "MPI_Wtime": "wtime_s",
    "clock_gettime": "monotonic_s",
    "gettimeofday": "time_of_day_s",
}


@dataclass(frozen=True)
class Clocks:
    """What a process's clocks showed at one moment, in seconds, each from a zero of its own.

    ``raw_s`` is CLOCK_MONOTONIC_RAW, of which ``apart_s`` passed while the others were read.
    ``wtime_s`` is MPI_Wtime, ``monotonic_s`` and ``time_of_day_s`` are the C library's
    clock_gettime(CLOCK_MONOTONIC) and gettimeofday, as the program gets them;
    ``kernel_time_of_day_s`` is CLOCK_REALTIME as the kernel has it.
    """

    raw_s: float
    apart_s: float
    wtime_s: float
    monotonic_s: float
    time_of_day_s: float
    kernel_time_of_day_s: float


@dataclass(frozen=True)
class ClockIntervals:
    """What passed between two moments of a process."""

    before: Clocks
    after: Clocks

    @property
    def seconds(self) -> float:
        """What passed by the kernel's clock."""
        return self.after.raw_s - self.before.raw_s

    @property
    def set_by_s(self) -> float:
        """By how much the time of day was set, or drawn out, beyond what passed; else 0."""
        moved = self._beyond("kernel_time_of_day_s")
        return 0.0 if self._is_small(moved) else moved

    def misled(self) -> Iterator[tuple[str, float]]:
        """Yield the clocks of the program that neither the kernel nor who sets the time explains.

        Each with its speed, 1 being right.
        """
        for called, name in _PROGRAMS.items():
            beyond = self._beyond(name)
            if not self._is_small(beyond) and not self._is_small(beyond - self.set_by_s):
                yield called, 1 + beyond / self.seconds

    @property
    def mistimed(self) -> float | None:
        """The speed of MPI_Wtime where that alone is wrong, None elsewhere.

        Nobody who intercepts the clocks of the C library leaves those right; but a library that
        counts the processor's cycles, and found out how many there are in a second while its core
        was busy, is wrong for as long as it runs.
        """
        misled = dict(self.misled())
        return misled.get("MPI_Wtime") if len(misled) == 1 else None

    def follows_the_time_of_day(self) -> list[str]:
        """Return which clocks went along when the time of day was set, gettimeofday aside.

        No benchmark here times itself by gettimeofday but through MPI_Wtime.
        """
        if not self.set_by_s:
            return []
        return [
            called
            for called, name in _PROGRAMS.items()
            if called != "gettimeofday" and not self._is_small(self._beyond(name))
        ]

    def _beyond(self, name: str) -> float:
        shown: float = getattr(self.after, name) - getattr(self.before, name)
        return shown - self.seconds

    def _is_small(self, seconds: float) -> bool:
        unsure = SLACK_S + self.before.apart_s + self.after.apart_s
        return abs(seconds) <= TOLERANCE * self.seconds + unsure
