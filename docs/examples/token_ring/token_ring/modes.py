"""A mode of the site's own: the ring alone, for longer."""

from clustergate.benchmarks.descriptor import Budget
from clustergate.sites.modes import Mode
from token_ring import RingEffort

MODES = (
    Mode(
        name="ring",
        purpose="is one node slow to answer?",
        duration="a minute",
        nodes="all of each partition",
        time_limit="10m",
        like="maintenance",
        only=("TokenRingCheck",),
        efforts={"token_ring": RingEffort(budget=Budget(at_least=10, at_most=10), rounds=500_000)},
    ),
)
