"""No scheduler: jobs run at once, on this node or on those of the hostfile."""

from __future__ import annotations

from clustergate.sites.schedulers.scheduler import Scheduler


class Local(Scheduler):
    """Starts jobs without a queue, and knows of no nodes."""

    reframe_names = ("local",)
    is_batch = False
