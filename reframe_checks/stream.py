"""STREAM alone: what the memory of a node moves."""

from collections.abc import Sequence

from reframe.core.builtins import variable

from clustergate.benchmarks.mpi_kernel import KernelExpectation, arguments
from clustergate.benchmarks.stream.input import stream_elements, stream_measured
from reframe_checks.declaration import check
from reframe_checks.mpi_kernel import MpiKernel
from reframe_checks.system import partition_of


class MemoryKernel(MpiKernel):
    """Base of what goes through arrays."""

    #: Elements of each rank's arrays; 0 takes what STREAM demands at least.
    elements = variable(int, value=0, loggable=True)


@check("StreamCheck")
class StreamCheck(MemoryKernel):
    """Memory bandwidth of one node by the four operations of STREAM, a rank on each core."""

    program = "stream"
    settings_that_matter = ("trials", "elements")
    trials = 10

    def settle(self) -> None:
        self.ranks = self.ranks or partition_of(self).cores_per_node

    def question(self) -> tuple[Sequence[str], KernelExpectation]:
        """Ask for arrays that no cache holds."""
        said, per_node = partition_of(self), self.layout.ranks_per_node
        elements = stream_elements(
            self.elements, said.cache_bytes_per_node, said.memory_bytes_per_node, per_node
        )
        asked = {"elements": elements, "trials": self.trials}
        measured = stream_measured()
        return arguments(asked), KernelExpectation(
            self.ranks, self.trials, {"elements": elements}, measured
        )

    def notes(self, samples: Sequence[object]) -> Sequence[str]:
        return ["STREAM's four operations, by the suite's own kernel and not by stream.c"]
