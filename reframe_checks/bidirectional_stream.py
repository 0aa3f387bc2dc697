"""A stream of messages of two processes, both ways at once."""

from collections.abc import Sequence

from clustergate.benchmarks.mpi_kernel import KernelExpectation, arguments, doubling_bytes
from reframe_checks.declaration import check
from reframe_checks.mpi_kernel import PairKernel


@check("BidirectionalStreamCheck")
class BidirectionalStreamCheck(PairKernel):
    """Messages both ways without a pause, for one second per size."""

    program = "bidirectional_stream"
    largest_bytes = 16 << 20
    seconds = 1.0

    def question(self) -> tuple[Sequence[str], KernelExpectation]:
        sizes = doubling_bytes(self.largest_bytes)
        asked = {"largest_bytes": sizes[-1], "seconds": self.seconds}
        measured = frozenset((self.program, size) for size in sizes)
        expected = KernelExpectation(self.ranks, measured=measured)
        return arguments(asked), expected
