"""The OSU Micro-Benchmarks: latency, bandwidth and message rate of MPI calls."""

from collections.abc import Sequence

from reframe.core.builtins import run_after, variable

from clustergate.benchmarks.osu.output import WITHOUT_SIZES, OsuExpectation
from reframe_checks.base import MpiBenchmark
from reframe_checks.contenders import TwoContenders
from reframe_checks.declaration import check


class OsuBenchmark(MpiBenchmark):
    """Base of the OSU Micro-Benchmarks: each program is a case of its own."""

    settings_that_matter = ("largest_bytes", "repetitions", "window")
    #: Largest message in bytes, a power of two; 0 leaves it to the mode.
    largest_bytes = variable(int, value=0, loggable=True)
    #: Repetitions of each size, or windows of it; 0 leaves them to the mode.
    repetitions = variable(int, value=0, loggable=True)
    #: Messages of a window; 0 leaves it to OSU, which takes 64.
    window = variable(int, value=0, loggable=True)

    @run_after("init")
    def take_program(self) -> None:
        """Let the parameter of this case decide the program."""
        self.program = f"osu_{self.benchmark}"

    def settle(self) -> None:
        """Refuse one process, which has nobody to talk to."""
        if self.ranks == 1:
            self.not_available("OSU measures between processes, and one alone was asked for")

    def arguments(self) -> Sequence[str]:
        """Return the sizes, and how often each is sent."""
        repetitions = self.repetitions or self.effort.repetitions
        words = ["-i", str(repetitions), "-x", str(-(-repetitions // 10))] if repetitions else []
        if self.program not in WITHOUT_SIZES:
            words += ["-m", f"{self.effort.smallest_bytes}:{self.largest()}"]
        return [*words, "-W", str(self.window)] if self.window else words

    def largest(self) -> int:
        return int(self.largest_bytes or self.effort.largest_bytes)

    def expectation(self) -> OsuExpectation:
        """Return what OSU's text must hold."""
        smallest = self.effort.smallest_bytes
        asked = (smallest, self.largest(), self.window or None)
        return OsuExpectation(self.program, self.ranks, *asked)


@check("OsuPt2PtCheck")
class OsuPt2PtCheck(OsuBenchmark):
    """OSU Micro-Benchmarks between two processes, on one node or on two."""

    ranks = 2


@check("OsuMultiPairCheck")
class OsuMultiPairCheck(OsuBenchmark):
    """OSU Micro-Benchmarks of many pairs at once."""

    def settle(self) -> None:
        """Leave out a process that has no partner."""
        super().settle()
        self.ranks -= self.ranks % 2


@check("OsuCollectiveCheck")
class OsuCollectiveCheck(OsuBenchmark):
    """OSU Micro-Benchmarks of collective calls."""


@check("AbOsuCheck")
class AbOsuCheck(TwoContenders, OsuPt2PtCheck):
    """OSU between two processes of A against B."""
