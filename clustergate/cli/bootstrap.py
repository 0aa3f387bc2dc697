"""``clustergate bootstrap``: install the pinned Spack and its packages."""

from __future__ import annotations

import argparse

from clustergate.cli.progress import Progress
from clustergate.core.paths import state_dir
from clustergate.stacks.spack import bootstrap

DESCRIPTION = (
    "Install the Spack and the spack-packages pinned in spack-repo/pins.yaml. What "
    "is installed already is kept; an interrupted run leaves nothing half done. "
    "CLUSTERGATE_SPACK_FROM and CLUSTERGATE_PACKAGES_FROM may name the git repositories to fetch "
    "them from: folders or addresses."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes: nothing."""


def run(arguments: argparse.Namespace) -> int:
    """Install both releases."""
    pins = bootstrap.read_pins()
    with Progress(arguments.invocation) as say:
        bootstrap.bring(state_dir(), pins=pins, say=say)
    for pin in pins:
        print(f"{pin} is in {pin.folder(state_dir())}")
    return 0
