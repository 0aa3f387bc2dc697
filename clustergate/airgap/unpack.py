"""Unpack, on a machine without a network, what was packed where there is one."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import yaml

from clustergate.airgap.folder import (
    Contents,
    Layout,
    PackedStack,
    differing,
    failure,
    objection,
    read_contents,
    releases_of,
    require_clone,
    require_whole,
    unlisted,
)
from clustergate.airgap.pack import requirements_of
from clustergate.files.shared import locked
from clustergate.files.whole import write_whole
from clustergate.model import ClustergateError, Say
from clustergate.paths import checkout
from clustergate.stacks import prefixes
from clustergate.stacks.spack import bootstrap, locks

SCOPE = Path("spack") / "scopes" / "airgap"
MIRROR = Path("spack") / "mirror"


def unpack(folder: Path, state: Path, *, say: Say) -> Contents:
    """Install from a folder into the clone's state and return what was in the folder.

    The folder is not needed afterwards. What is there already is left alone.
    """
    require_clone()
    layout = Layout(folder)
    contents = read_contents(layout)
    _require_fitting(layout, contents)
    try:
        say("comparing checksums")
        require_whole(layout, contents)
        if more := unlisted(layout, contents):
            shown = ", ".join(f"{name!a}" for name in more[:3]) + (", …" if more[3:] else "")
            say(f"ignored, since {layout.description} does not list them: {shown}")
        state.mkdir(parents=True, exist_ok=True)
        with locked(state / "airgap.lock"):
            _install(layout, contents, state, say)
    except OSError as error:
        larger = "name a larger disk in CLUSTERGATE_HOME"
        raise failure(f"unpacking {folder}", error, larger) from None
    return contents


def _require_fitting(layout: Layout, contents: Contents) -> None:
    here = platform.machine()
    if contents.machine != here:
        facts = {"packed": contents.machine, "here": here}
        raise ClustergateError("airgap.other-machine", folder=layout.folder, **facts)
    if others := differing(layout.clone, checkout()):
        facts = {"folder": str(layout.folder), "clone": str(layout.clone)}
        suite = contents.suite
        raise ClustergateError("airgap.other-suite", suite=suite, differing=[*others], **facts)


def _install(layout: Layout, contents: Contents, state: Path, say: Say) -> None:
    for requirements in requirements_of(contents.machine):
        prefixes.install_prefix(requirements, state, say, layout.stack_wheels)
    _place_all(layout.sources, contents, state / "cache" / "sources")
    if not contents.stacks:
        return
    pins = bootstrap.read_pins()
    bootstrap.bring(state, pins=pins, places=releases_of(layout, pins), say=say)
    say("copying the sources of Spack's stacks")
    _place_all(layout.mirror, contents, state / MIRROR)
    here = locks.host()
    for stack in contents.stacks:
        if reason := objection(stack, here):
            say(f"{stack.name}: {reason}: Spack concretizes anew here and builds from source")
            continue
        _place_lock(layout, stack, state, say)
    scope = state / SCOPE
    scope.mkdir(parents=True, exist_ok=True)
    # Spack takes from the unpacked folder.
    mirror = {"url": (state / MIRROR).as_uri(), "source": True, "binary": False}
    write_whole(scope / "mirrors.yaml", yaml.safe_dump({"mirrors": {"airgap": mirror}}))


def _place_lock(layout: Layout, stack: PackedStack, state: Path, say: Say) -> None:
    """Keep a lock as if it had been made here, if all that it names outside the store is here."""
    if not stack.lock:
        return
    text = (layout.locks / stack.lock).read_text(encoding="utf-8")
    lock = locks.parse_lock(text, stack.lock)
    absent = [file for file in lock.needed_files() if not Path(file).exists()]
    if absent:
        say(f"{stack.name}: its lock names {absent[0]}, which is not here: Spack concretizes anew")
        return
    target = state / "spack" / "locks" / stack.lock
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text)


def _place_all(source: Path, contents: Contents, target: Path) -> None:
    """Copy the files of a folder that were compared with their checksums, and no others.

    A reader sees each of them whole, or not at all.
    """
    for name in contents.files:
        top, *below = Path(name).parts
        if top == source.name:
            place = target.joinpath(*below)
            place.parent.mkdir(parents=True, exist_ok=True)
            unfinished = place.with_name(f".{place.name}.part")
            shutil.copyfile(source.joinpath(*below), unfinished)
            os.replace(unfinished, place)
