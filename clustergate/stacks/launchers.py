"""The launcher that ReFrame uses for every stack: it speaks whatever dialect the stack does."""

from __future__ import annotations

import os
from typing import Any

from reframe.core.backends import register_launcher
from reframe.core.launchers import JobLauncher

from clustergate.stacks.dialects import Layout, LayoutError, launch_options, launcher_environment
from clustergate.stacks.manifest import Manifest


@register_launcher("clustergate")
class StackLauncher(JobLauncher):  # type: ignore[misc]
    """Know the launcher of the stack that a manifest describes; the driver starts it."""

    def __init__(self) -> None:
        self.options: list[str] = []
        self.manifest: Manifest | None = None
        self.layout: Layout | None = None

    def configure(self, manifest: Manifest, layout: Layout) -> None:
        """Say which stack launches, and what."""
        self.manifest = manifest
        self.layout = layout

    def launch(self) -> list[str]:
        """Return the words that start the ranks, for the driver that the job runs."""
        if self.manifest is None or self.layout is None:
            raise LayoutError("a launch was asked for before its stack and its layout were known")
        return [self.manifest.launcher, *launch_options(self.manifest.dialect, self.layout)]

    def command(self, job: Any) -> list[str]:
        """Return nothing: the job runs the driver once, on its first node."""
        return []


def exports(manifest: Manifest, threads: int) -> dict[str, str]:
    """Return the variables that a job exports before it launches this stack.

    ``PATH`` and ``LD_LIBRARY_PATH`` go in front of what the node has; ``{threads}`` in a value of
    the BLAS stands for the threads of each rank.
    """
    variables = dict(manifest.environment)
    if manifest.blas is not None:
        variables |= {k: v.format(threads=threads) for k, v in manifest.blas.environment.items()}
    variables |= launcher_environment(manifest.dialect, as_root=os.geteuid() == 0)
    return variables
