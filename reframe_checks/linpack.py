"""What HPL and HPCC share: a dense linear system sized for the machine."""

from collections.abc import Mapping, Sequence

from reframe.core.builtins import variable

from clustergate import sizing
from reframe_checks.base import MpiBenchmark

# Of the nominal peak: what the problem is sized for before the machine has been measured.
EXPECTED_EFFICIENCY = 0.7


class LinpackBenchmark(MpiBenchmark):
    """Base of the checks whose input is that of HPL."""

    uses_blas = True
    settings_that_matter = ("nb", "n")
    #: Block size.
    nb = variable(int, value=192, loggable=True)
    #: Order of the matrix; 0 sizes it by the mode.
    n = variable(int, value=0, loggable=True)

    def problem(self, seconds: float | None, memory_fraction: float) -> sizing.HplInput:
        """Return the problem for a time, capped by a fraction of the memory."""
        extras = self.current_partition.extras
        p, q = sizing.process_grid(self.ranks)
        n = self.n or sizing.choose_problem_size(
            int(extras["memory_bytes_per_node"]) * self.layout.nodes,
            p,
            q,
            nb=self.nb,
            memory_fraction=memory_fraction,
            seconds=seconds,
            gflops=self.expected_gflops(),
        )
        return sizing.HplInput(n_values=(n,), nb_values=(self.nb,), p_values=(p,), q_values=(q,))

    def peak_programs(self) -> Mapping[str, Sequence[str]]:
        """Return the kernels: HPL can be no faster than DGEMM with its block size."""
        return {**super().peak_programs(), "dgemm": ["--k", str(self.nb)]}

    def expected_gflops(self) -> float:
        """Return the rate of HPL to expect of these ranks, before it has been measured."""
        nominal = float(self.current_partition.extras["nominal_gflops_per_core"])
        cores: int = self.layout.ranks * self.layout.cores_per_rank
        return nominal * cores * EXPECTED_EFFICIENCY
