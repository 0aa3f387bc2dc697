"""HPCCG: conjugate gradients on a block of 64 x 64 x 64 for each process."""

from collections.abc import Sequence

from clustergate.benchmarks.hpccg import HPCCG_EDGE, hpccg_arguments
from clustergate.benchmarks.hpccg.output import HpccgExpectation
from reframe_checks.application import Application
from reframe_checks.declaration import check


@check("HpccgCheck")
class HpccgCheck(Application):
    """HPCCG, which always grows with the processes."""

    program = "test_HPCCG"

    def arguments(self) -> Sequence[str]:
        """Return the edges of each process's block."""
        return hpccg_arguments()

    def expectation(self) -> HpccgExpectation:
        """Return what HPCCG's text must hold."""
        return HpccgExpectation(self.ranks, HPCCG_EDGE)
