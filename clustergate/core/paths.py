"""Where the suite finds its own files, a site's and what packages add, and keeps what it makes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_PACKAGE = Path(__file__).resolve().parents[1]
# Where the installed package has the folders that lie at the top of the clone (setup.py).
_INSTALLED = _PACKAGE / "suite"

HOME = "CLUSTERGATE_HOME"
"""The variable that names the folder of all that is kept."""


def is_clone() -> bool:
    """Tell whether this is a clone, with all that belongs to the project, or the package alone."""
    return not _INSTALLED.is_dir()


def checkout() -> Path:
    """Return the folder of the clone; of the installed package, the one that it lies in."""
    return _PACKAGE.parent


def suite_folder(name: str) -> Path:
    """Return a folder of the suite: ``reframe_checks/``, ``site_configs/``, ``references/``, …"""
    inside = _INSTALLED / name
    return inside if inside.is_dir() else checkout() / name


def _named(variable: str, environ: Mapping[str, str]) -> Path | None:
    said = environ.get(variable, "")
    return Path(said).expanduser().absolute() if said else None


def _of_user(variable: str, default: str, environ: Mapping[str, str]) -> Path:
    """Return the user's folder for the installed package, by the XDG Base Directory rules.

    A relative path is none: the rules say so.
    """
    said = Path(environ.get(variable, ""))
    return (said if said.is_absolute() else Path.home() / default) / "clustergate"


def site_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``$CLUSTERGATE_SITE_FOLDER``, by default the clone, as an absolute path.

    Where there is no clone it is ``~/.config/clustergate``. It holds what is a site's own:
    site_configs/, references/ and hostfiles/.
    """
    default = checkout() if is_clone() else _of_user("XDG_CONFIG_HOME", ".config", environ)
    return _named("CLUSTERGATE_SITE_FOLDER", environ) or default


def is_site_folder_named() -> bool:
    """Tell whether ``CLUSTERGATE_SITE_FOLDER`` says where a site keeps its own files."""
    return bool(os.environ.get("CLUSTERGATE_SITE_FOLDER"))


def site_file(folder: str, name: str) -> Path:
    """Return a file in ``site_configs/``, ``references/`` or ``hostfiles/``, there or not.

    What comes with the suite is used where the site has none of that name, and named no folder.
    """
    own, suites = site_folder() / folder / name, suite_folder(folder) / name
    return (
        own
        if own.exists() or own.is_symlink() or is_site_folder_named() or not suites.is_file()
        else suites
    )


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``$CLUSTERGATE_HOME``, by default ``.clustergate`` in the clone, as an absolute path.

    Where there is no clone it is ``~/.local/state/clustergate``. On a cluster it must lie on a file
    system that the compute nodes share.
    """
    if named := _named(HOME, environ):
        return named
    if is_clone():
        return checkout() / ".clustergate"
    return _of_user("XDG_STATE_HOME", ".local/state", environ)


def entry_points(group: str) -> list[EntryPoint]:
    """Return what packages beside this one add by entry points of a group, by their names."""
    if not _may_be_declared(group):
        return []
    # A fifth of the start of every command.
    import importlib.metadata

    return sorted(importlib.metadata.entry_points(group=group), key=lambda one: one.name)


def _may_be_declared(group: str) -> bool:
    """Tell whether a package that is installed has the name of a group among its entry points."""
    for folder in map(Path, sys.path):
        if folder.is_file():
            # An archive, which is read by importlib.metadata alone.
            return True
        for file in folder.glob("*-[Ii][Nn][Ff][Oo]/entry_points.txt"):
            with contextlib.suppress(OSError):
                if group.encode() in file.read_bytes():
                    return True
    return False
