"""``clustergate airgap``: carry the suite and all it needs to a machine without a network."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clustergate.airgap.pack import Wanted, pack
from clustergate.airgap.unpack import unpack
from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress
from clustergate.cli.selection import add_repeatable, taken
from clustergate.paths import state_dir
from clustergate.sites import configs as sites
from clustergate.stacks.sources import named_folders

DESCRIPTION = (
    "Pack a folder where there is a network, unpack it where there is none. "
    "Call it as ci/airgap, which needs no Python environment."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True)
    packing = actions.add_parser(
        "pack",
        help="put everything into one folder",
        description="Put the suite, its Python packages, the MPI stacks' wheels, Spack, its "
        "packages and the sources of the stacks into one folder. Run again to resume.",
    )
    packing.add_argument("folder", metavar="DIR", type=Path)
    option(packing, "--site NAME", "site config of the isolated machine")
    add_repeatable(
        packing, "--stack", "only this Spack stack (repeatable; default: those of the site config)"
    )
    option(packing, "--without-spack", "pack only the stacks from wheels")
    packing.set_defaults(run=run_pack)
    unpacking = actions.add_parser(
        "unpack",
        help="install from a packed folder, without a network",
        description="Install from a folder that `ci/airgap pack` made, and nothing else.",
    )
    unpacking.add_argument("folder", metavar="DIR", type=Path)
    unpacking.set_defaults(run=run_unpack)


def run_pack(arguments: argparse.Namespace) -> int:
    """Pack a folder; what is unavailable is listed, and is no error."""
    stacks = {} if arguments.without_spack else _spack_stacks(arguments.site, arguments.stack)
    wanted = Wanted(stacks, tuple(named_folders()))
    folder = arguments.folder.absolute()
    with Progress() as say:
        contents = pack(folder, wanted, state_dir(), say=say)
    for sentence in contents.absent:
        print(f"not packed: {sentence}")
    size = sum((folder / name).stat().st_size for name in contents.files)
    print(
        f"packed {folder} ({len(contents.files)} files, {size / 1e9:.1f} GB); copy it to the "
        "isolated machine and follow its README"
    )
    return 0


def run_unpack(arguments: argparse.Namespace) -> int:
    """Unpack a folder and say what to run next."""
    with Progress() as say:
        contents = unpack(arguments.folder.absolute(), state_dir(), say=say)
    for sentence in contents.absent:
        print(f"not in the folder: {sentence}")
    more = ", `make check PROVIDER=spack` those from Spack" if contents.stacks else ""
    print(f"unpacked; without a network, `make check` measures the stacks from wheels{more}")
    return 0


def _spack_stacks(site: str | None, names: list[str]) -> dict[str, Mapping[str, Any]]:
    """Return the stacks that Spack builds for a site, or the named ones, with their settings."""
    # Site configs that leave the provider open are asked for Spack's stacks.
    os.environ["CLUSTERGATE_PROVIDER"] = "spack"
    stacks = sites.load(taken(site, sys.stderr).path).stacks
    known = {stack.name: stack.settings for stack in stacks if stack.provider == "spack"}
    # A stack that no site config names is built with the default settings.
    return {name: known.get(name, {}) for name in names} if names else known
