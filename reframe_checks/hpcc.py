"""HPC Challenge: HPL, DGEMM, PTRANS, RandomAccess, STREAM, FFT and the rings, in one run."""

from collections.abc import Mapping

from clustergate.benchmarks.hpcc import output as hpcc
from clustergate.benchmarks.hpcc.input import render_hpccinf
from clustergate.benchmarks.hpl import sizing
from reframe_checks.declaration import check
from reframe_checks.linpack import LinpackBenchmark

RANDOM_ACCESS = frozenset(name for name in hpcc.SECTIONS if "RandomAccess" in name)


@check("HpccCheck")
class HpccCheck(LinpackBenchmark):
    """HPCC on every core that the mode uses, with every figure of its summary."""

    program = "hpcc"
    output_file = "hpccoutf.txt"
    # Its other parts are measured with a rank on each core.
    layout_is_fixed = True

    def asked(self) -> sizing.HplInput:
        """Return HPL's problem, as large as the mode allows and the memory holds."""
        return self.problem(self.effort.seconds, self.effort.memory_fraction)

    def inputs(self) -> Mapping[str, str]:
        return {"hpccinf.txt": render_hpccinf(self.asked())}

    def rank_environment(self) -> Mapping[str, str]:
        """Leave the time-bounded parts out where the mode says so."""
        if self.effort.random_access:
            return {}
        return {"CLUSTERGATE_HPCC_WITHOUT": "RandomAccess"}

    def expectation(self) -> hpcc.HpccExpectation:
        """Return what HPCC's own output file must hold of the problem asked for."""
        left_out = frozenset() if self.effort.random_access else RANDOM_ACCESS
        return hpcc.HpccExpectation(
            self.layout.ranks, sizing.hpl_expectation(self.asked()), left_out
        )
