"""Sites: their systems, partitions and stacks, and the modes in which they are measured.

What a site config needs it imports from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clustergate.sites.configs import (
        configuration,
        requested_provider,
        stack,
    )
    from clustergate.sites.description import Partition, Site, Stack

__all__ = [
    "Partition",
    "Site",
    "Stack",
    "configuration",
    "requested_provider",
    "stack",
]


def __getattr__(name: str) -> Any:
    # Late: they load the stacks, which not everybody who asks for a mode needs.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from clustergate.sites import configs, description

    return getattr(description if hasattr(description, name) else configs, name)
