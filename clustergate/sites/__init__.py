"""Sites: their systems, partitions and stacks, and the modes in which they are measured.

What a site config needs it imports from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clustergate.sites.configs import configuration, requested_provider, stack

__all__ = ["configuration", "requested_provider", "stack"]

# By these, site configs once said what they say in ReFrame's form.
_CLASSES = ("Partition", "Site", "Stack")


def __getattr__(name: str) -> Any:
    if name not in (*__all__, *_CLASSES):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Late: they load the stacks, which not everybody who asks for a mode needs.
    from clustergate.sites import configs

    if name in __all__:
        return getattr(configs, name)
    path = configs.calling_file()
    raise configs.as_reframe_tells(configs.SiteError(configs.SITE_CLASSES(at=path, path=path)))
