"""``clustergate bootstrap``: bring the pinned Spack and its packages to this machine."""

from __future__ import annotations

import argparse

from clustergate.cli.selection import add_places, places_of
from clustergate.cli.streams import progress
from clustergate.paths import state_dir
from clustergate.stacks.spack import bootstrap


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "bootstrap",
        help="bring the pinned Spack and its packages to this machine",
        description="Bring the Spack and the spack-packages that spack-repo/pins.yaml pins. What "
        "is there already costs nothing; an interrupted run leaves nothing half-made.",
    )
    add_places(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Bring both releases."""
    pins = bootstrap.read_pins()
    bootstrap.bring(state_dir(), pins=pins, places=places_of(arguments), say=progress())
    for part in bootstrap.parts(pins, state_dir()):
        print(f"{part.pin} is in {part.folder}")
    return 0
