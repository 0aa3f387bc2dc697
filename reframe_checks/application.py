"""What the checks of published applications share."""

from collections.abc import Sequence

from reframe.core.builtins import variable

from clustergate.machine import power
from clustergate.model import Row, Sample
from reframe_checks.base import MpiBenchmark


class Application(MpiBenchmark):
    """Base of the applications' checks."""

    needs_near_cores = False
    settings_that_matter = ("replicated", "problem_class")
    #: LAMMPS: replicas of 32000 atoms along each edge at a fixed size; 0 takes the evaluation's.
    replicated = variable(int, value=0, loggable=True)
    #: NPB: the problem's size, S to C; Pase ran C.
    problem_class = variable(str, value="C", loggable=True)

    def derived_samples(
        self, samples: Sequence[Sample], peaks: Sequence[Row]
    ) -> tuple[Sample, ...]:
        """Tell the rate per watt, where the watts are known."""
        return power.performance_per_watt(samples, self.ended.powers())
