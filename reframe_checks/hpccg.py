"""HPCCG: conjugate gradients on a block of 64 x 64 x 64 for each process."""

from collections.abc import Sequence

import reframe as rfm
from reframe.core.builtins import fixture

from clustergate.benchmarks.hpccg import BENCHMARK as HPCCG
from clustergate.benchmarks.hpccg import HPCCG_EDGE, hpccg_arguments
from clustergate.benchmarks.hpccg.output import HpccgExpectation
from reframe_checks.application import Application
from reframe_checks.build import build_with
from reframe_checks.sweeps import OverProcessCounts


@rfm.simple_test
class HpccgCheck(OverProcessCounts, Application):
    """HPCCG, which always grows with the processes."""

    program = "test_HPCCG"
    descriptor = HPCCG
    build = fixture(build_with("hpccg"), scope="environment")

    def arguments(self) -> Sequence[str]:
        """Return the edges of each process's block."""
        return hpccg_arguments()

    def expectation(self) -> HpccgExpectation:
        """Return what HPCCG's text must hold."""
        return HpccgExpectation(self.ranks, HPCCG_EDGE)
