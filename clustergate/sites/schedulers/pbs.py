"""PBS Professional and OpenPBS. Torque is another one, and has no ``place``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from clustergate.sites.schedulers.scheduler import Scheduler

# -l place=excl, or place=scatter:exclhost, alone or beside other resources.
_EXCLUSIVE = re.compile(r"(?:^|[\s,])place=(?:\w+:)?excl(?:host)?\b")


class Pbs(Scheduler):
    """PBS, by ReFrame's two backends for it."""

    reframe_names = ("pbs", "pbspro")

    def is_exclusive(self, access: Iterable[str]) -> bool:
        return _EXCLUSIVE.search(" ".join(access)) is not None

    def completed(self, access: Sequence[str]) -> list[str]:
        # Else PBS puts what should lie on several nodes on one.
        placed = any("place=" in option for option in access)
        return [*access] if placed else [*access, "-l place=scatter"]
