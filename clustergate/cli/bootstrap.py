"""``clustergate bootstrap``: install the pinned Spack and its packages."""

from __future__ import annotations

import argparse

from clustergate.cli.streams import progress
from clustergate.paths import state_dir
from clustergate.stacks.spack import bootstrap

DESCRIPTION = (
    "Install the Spack and the spack-packages pinned in spack-repo/pins.yaml. What "
    "is installed already is kept; an interrupted run leaves nothing half done."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    for name, title in (("spack", "Spack"), ("packages", "spack-packages")):
        parser.add_argument(
            f"--{name}-from",
            metavar="PLACE",
            default="",
            help=f"a copy of {title}: git repository, bundle, archive, unpacked release or address "
            f"(default: $CLUSTERGATE_{name.upper()}_FROM, else upstream)",
        )


def run(arguments: argparse.Namespace) -> int:
    """Install both releases."""
    pins = bootstrap.read_pins()
    places = {"spack": arguments.spack_from, "packages": arguments.packages_from}
    bootstrap.bring(state_dir(), pins=pins, places=places, say=progress())
    for pin in pins:
        print(f"{pin} is in {pin.folder(state_dir())}")
    return 0
