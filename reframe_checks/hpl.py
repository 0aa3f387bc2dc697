"""HPL: the rate at which the machine solves a dense linear system.

The problem is sized from the memory and the cores of the partition, for the time or the fraction
of memory that the mode grants; or it is that of a file.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reframe.core.builtins import variable

from clustergate.benchmarks.hpl import dat_file, efficiency, sizing
from clustergate.benchmarks.hpl.output import HplExpectation
from clustergate.benchmarks.hpl.sizing import SizingError
from clustergate.core.model import Row, Sample
from clustergate.core.reasons import Words
from clustergate.machine import power
from reframe_checks.contenders import TwoContenders
from reframe_checks.declaration import check
from reframe_checks.linpack import LinpackBenchmark
from reframe_checks.system import partition_of

HPL_DAT_SETTINGS = Words(
    "hpl-dat.settings",
    "-S input and {names} contradict each other",
    cause="the file says them already",
    remedy="leave one out",
)


@check("HplCheck")
class HplCheck(LinpackBenchmark):
    """HPL on every core that the mode uses."""

    program = "xhpl"
    needs_near_cores = False
    #: An HPL.dat to run as it stands.
    input = variable(str, value="", loggable=True)

    def settle(self) -> None:
        """Take ranks and block size from the file, where one is named."""
        self.file: dat_file.DatFile | None = None
        if not self.input:
            super().settle()
            return
        said = ("n", "seconds", "nb", "grid", "ranks")
        if by_hand := [name for name in said if getattr(self, name)]:
            raise SizingError(HPL_DAT_SETTINGS(names=by_hand))
        self.file = dat_file.read_file(Path(self.input))
        self.as_site_says = False
        self.ranks, self.nb = self.file.ranks, self.file.input.nb_values[0]
        super().settle()

    def asked(self) -> sizing.HplInput:
        """Return the problem of the file, or one as large as the mode allows."""
        if self.file is None:
            return self.problem(self.effort.seconds, self.effort.memory_fraction)
        asked = dat_file.input_for_check(self.file)
        memory = partition_of(self).memory_bytes_per_node * self.layout.nodes
        sizing.require_memory(max(asked.n_values), memory)
        return asked

    def changed_settings(self) -> dict[str, Any]:
        """Return which file it is, by its content: that says all of it."""
        if self.file is None:
            return super().changed_settings()
        return {"input": self.file.digest}

    def inputs(self) -> Mapping[str, str]:
        """Return HPL.dat, and the same lines under the name that HPCC's copy of HPL reads."""
        text = sizing.render_hpl_dat(self.asked())
        return {"HPL.dat": text, "hpccinf.txt": text}

    def expectation(self) -> HplExpectation:
        """Return what HPL must repeat of the problem asked for."""
        return sizing.hpl_expectation(self.asked())

    def rank_environment(self) -> Mapping[str, str]:
        return self.hpl_plan.environment

    def derived_samples(
        self, samples: Sequence[Sample], peaks: Sequence[Row]
    ) -> tuple[Sample, ...]:
        """Tell HPL's rate against the three peaks of the nodes it ran on."""
        nominal = partition_of(self).nominal_gflops_per_core
        per_node = efficiency.node_peaks_gflops(
            peaks, self.hpl_plan.nb, self.layout.ranks_per_node * self.cores_per_rank, nominal
        )
        return (
            *efficiency.efficiencies(samples, per_node, self.layout.nodes),
            *power.performance_per_watt(samples, self.ended.powers()),
        )

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Tell how long HPL took beside what was predicted, and of a grid that costs rate."""
        grids = {(int(s.conditions["p"]), int(s.conditions["q"])) for s in samples}
        remarks = [sizing.grid_remark(p, q) for p, q in sorted(grids)]
        which = f"HPL {self.found.version}, {self.found.origin}"
        odd = [f"{self.input}: {one}" for one in self.file.odd] if self.file else []
        asked = self.asked_mode.as_published and not self.ended.powers()
        unpowered = [power.NOT_AVAILABLE] if asked else []
        times = sizing.times_remarks(samples, self.expected_gflops())
        told = [one for one in remarks if one and not self.file]
        return [which, *odd, *unpowered, *super().notes(samples), *told, *times]


@check("AbHplCheck")
class AbHplCheck(TwoContenders, HplCheck):
    """HPL of A against that of B: the same problem, as both run it by default."""

    as_site_says = False
    #: What a launch takes, at the rate that the suite expects, in seconds.
    launch_seconds = variable(float, value=3.0, loggable=True)

    def asked(self) -> sizing.HplInput:
        return self.problem(self.launch_seconds, 0.5)

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return nothing: what differs is said by the comparison."""
        return ()
