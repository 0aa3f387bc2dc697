"""HPCG: conjugate gradients with a multigrid preconditioner, bound by the memory."""

from collections.abc import Mapping, Sequence

from reframe.core.builtins import run_after, variable

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.hpcg.output import HpcgExpectation
from clustergate.benchmarks.hpcg.problem import (
    block_bytes,
    hpcg_dat,
    local_edge,
    unofficial,
)
from clustergate.core.model import Sample
from reframe_checks.application import Application
from reframe_checks.contenders import TwoContenders
from reframe_checks.declaration import check
from reframe_checks.system import partition_of


@check("HpcgCheck")
class HpcgCheck(Application):
    """HPCG's reference code, a process on each core."""

    program = "xhpcg"
    output_file = "HPCG-Benchmark_*.txt"
    settings_that_matter = ("edge", "seconds")
    #: Edge of each rank's block, a multiple of 8; 0 sizes it by caches and memory.
    edge = variable(int, value=0, loggable=True)
    #: Seconds that what is rated takes at least; 0 leaves it to the mode.
    seconds = variable(int, value=0, loggable=True)

    @run_after("setup")
    def size(self) -> None:
        """Size the blocks, or say why they do not fit."""
        said, each = partition_of(self), self.layout.ranks_per_node
        bounds = self.effort.memory_fraction, self.effort.set_seconds, said.nominal_gflops_per_core
        try:
            self.block = local_edge(self.edge, said.memory_bytes_per_node, each, *bounds)
        except CannotRun as error:
            self.not_available(str(error))
        self.filled = block_bytes(self.block) * each / said.memory_bytes_per_node

    def rated_s(self) -> int:
        return int(self.seconds or self.effort.seconds)

    def inputs(self) -> Mapping[str, str]:
        return {"hpcg.dat": hpcg_dat(self.block, self.rated_s())}

    def expected_s(self) -> float:
        """Return what a launch takes: what is not rated takes four sets of iterations as well."""
        return max(super().expected_s(), 2.0 * self.rated_s())

    def expectation(self) -> HpcgExpectation:
        """Return what HPCG's result must hold."""
        return HpcgExpectation(self.ranks, self.block)

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Tell why a rating is not one to be published."""
        shortest = min((s.value for s in samples if s.metric == "time_s"), default=0.0)
        return [*filter(None, [unofficial(shortest, self.filled)])]


@check("AbHpcgCheck")
class AbHpcgCheck(TwoContenders, HpcgCheck):
    """HPCG of A against that of B: blocks of the same size."""

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return nothing: no rating is published."""
        return ()
