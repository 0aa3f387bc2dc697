"""HPCCG: conjugate gradients on a block of 64 x 64 x 64 for each process."""

from collections.abc import Iterable, Iterator, Sequence

import reframe as rfm
from reframe.core.builtins import fixture, parameter, run_after

from clustergate.benchmarks import application_rules as rules
from clustergate.benchmarks.hpccg import BENCHMARK as HPCCG
from clustergate.benchmarks.hpccg.output import HpccgExpectation, parse_hpccg
from clustergate.model import Row
from reframe_checks.application import Application
from reframe_checks.build import build_with
from reframe_checks.system import partitions_that_scale_to, rank_counts


@rfm.simple_test
class HpccgCheck(Application):
    """HPCCG, which always grows with the processes."""

    program = "test_HPCCG"
    descriptor = HPCCG
    build = fixture(build_with("hpccg"), scope="environment")
    # One process too: what others are told against.
    process_count = parameter(sorted({1, *rank_counts()}), loggable=True)

    @run_after("init")
    def take_parameters(self) -> None:
        """Let the parameter of this case decide the ranks."""
        self.ranks = self.process_count
        self.only_in(partitions_that_scale_to(self, self.ranks))

    def arguments(self) -> Sequence[str]:
        """Return the edges of each process's block."""
        return rules.hpccg_arguments()

    def rows(self, lines: Iterable[str], source: str) -> Iterator[Row]:
        """Read HPCCG's text; its residual must have fallen."""
        expected = HpccgExpectation(self.ranks, rules.HPCCG_EDGE)
        return parse_hpccg(lines, source=source, expect=expected)
