"""What two processes send each other: its cost to the processor, and a stream of it both ways."""

from collections.abc import Sequence

import reframe as rfm
from reframe.core.builtins import variable

from clustergate.benchmarks import bidirectional_stream, host_overhead
from clustergate.benchmarks.host_overhead import CALLS
from clustergate.benchmarks.mpi_kernel import KernelExpectation, arguments, doubling_bytes
from reframe_checks.mpi_kernel import MpiKernel
from reframe_checks.sweeps import OverPlacements
from reframe_checks.system import used_shape


class PairKernel(OverPlacements, MpiKernel):
    """Base of the kernels that two processes run, on one node or on two."""

    settings_that_matter = ("trials", "largest_bytes", "seconds")
    ranks = 2
    #: The largest message; the sizes are 1, 2, 4, … bytes.
    largest_bytes = variable(int, value=8 << 20, loggable=True)
    #: Seconds that each measurement takes, about.
    seconds = variable(float, value=0.0, loggable=True)

    def settle(self) -> None:
        if not used_shape(self).holds(2, "packed"):
            self.not_available("two processes take two cores, and there is one")


@rfm.simple_test
class HostOverheadCheck(PairKernel):
    """What MPI_Isend and MPI_Irecv cost the processor, and what they leave it for work."""

    descriptor = host_overhead.BENCHMARK
    program = "host_overhead"
    trials = 5
    seconds = 0.02

    def question(self) -> tuple[Sequence[str], KernelExpectation]:
        """Ask for both calls and every size."""
        sizes = doubling_bytes(self.largest_bytes)
        asked = {"largest_bytes": sizes[-1], "trials": self.trials, "seconds": self.seconds}
        measured = frozenset((call, size) for call in CALLS for size in sizes)
        expected = KernelExpectation(self.ranks, self.trials, measured=measured)
        return arguments(asked), expected


@rfm.simple_test
class BidirectionalStreamCheck(PairKernel):
    """Messages both ways without a pause, for one second per size."""

    descriptor = bidirectional_stream.BENCHMARK
    program = "bidirectional_stream"
    largest_bytes = 16 << 20
    seconds = 1.0

    def question(self) -> tuple[Sequence[str], KernelExpectation]:
        sizes = doubling_bytes(self.largest_bytes)
        asked = {"largest_bytes": sizes[-1], "seconds": self.seconds}
        measured = frozenset((self.program, size) for size in sizes)
        expected = KernelExpectation(self.ranks, measured=measured)
        return arguments(asked), expected
