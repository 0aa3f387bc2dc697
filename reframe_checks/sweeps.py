"""What makes a test one case for each process count or placement that its descriptor sweeps over.

The partitions of a system differ in size: a case is left out of those to which it does not belong.
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from clustergate.benchmarks.descriptor import Sweep
from reframe_checks.system import (
    domain_counts,
    partitions_that_measure,
    partitions_that_place,
    partitions_that_scale_to,
    partitions_with_domains,
    placements,
    rank_counts,
)


class OverLayouts(rfm.RegressionTestPlugin):
    """A case for each process count and placement (``Sweep.LAYOUTS``)."""

    process_count = parameter(rank_counts(), loggable=True)
    node_usage = parameter(placements(), loggable=True)

    @run_after("init")
    def take_layout(self) -> None:
        """Let the parameters of this case decide ranks and placement."""
        self.ranks, self.placement = self.process_count, self.node_usage
        self.only_in(partitions_that_measure(self, self.ranks, self.placement))


class OverPlacements(rfm.RegressionTestPlugin):
    """A case for each placement (``Sweep.PLACEMENTS``)."""

    node_usage = parameter(placements(), loggable=True)

    @run_after("init")
    def take_placement(self) -> None:
        """Let the parameter of this case decide the placement."""
        self.placement = self.node_usage
        self.only_in(partitions_that_place(self, self.placement))


class OverProcessCounts(rfm.RegressionTestPlugin):
    """A case for each process count, one process too (``Sweep.PROCESS_COUNTS``)."""

    process_count = parameter(sorted({1, *rank_counts()}), loggable=True)

    @run_after("init")
    def take_ranks(self) -> None:
        """Let the parameter of this case decide the ranks."""
        self.ranks = self.process_count
        self.only_in(partitions_that_scale_to(self, self.ranks))


class OverDomains(rfm.RegressionTestPlugin):
    """A case for one process, and for one in each NUMA domain of a node (``Sweep.DOMAINS``)."""

    process_count = parameter(domain_counts(), loggable=True)

    @run_after("init")
    def take_ranks(self) -> None:
        """Let the parameter of this case decide the ranks."""
        self.ranks = self.process_count
        self.only_in(partitions_with_domains(self.ranks))


BASES = {
    Sweep.LAYOUTS: OverLayouts,
    Sweep.PLACEMENTS: OverPlacements,
    Sweep.PROCESS_COUNTS: OverProcessCounts,
    Sweep.DOMAINS: OverDomains,
}
