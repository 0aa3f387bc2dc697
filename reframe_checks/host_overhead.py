"""What two processes' messages cost the processor."""

from collections.abc import Sequence

from clustergate.benchmarks.host_overhead.output import CALLS
from clustergate.benchmarks.mpi_kernel import KernelExpectation, arguments, doubling_bytes
from reframe_checks.declaration import check
from reframe_checks.mpi_kernel import PairKernel


@check("HostOverheadCheck")
class HostOverheadCheck(PairKernel):
    """What MPI_Isend and MPI_Irecv cost the processor, and what they leave it for work."""

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
