"""What the checks of published applications share."""

from collections.abc import Sequence

from clustergate.core.model import Row, Sample
from clustergate.machine import power
from reframe_checks.base import MpiBenchmark


class Application(MpiBenchmark):
    """Base of the applications' checks."""

    needs_near_cores = False

    def derived_samples(
        self, samples: Sequence[Sample], peaks: Sequence[Row]
    ) -> tuple[Sample, ...]:
        """Tell the rate per watt, where the watts are known."""
        return power.performance_per_watt(samples, self.ended.powers())
