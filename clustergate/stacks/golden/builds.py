"""Pin, read and unpin golden builds: ``golden/STACK/`` in the suite's own folder.

``manifest.json`` is written last: without it there is no golden build, whatever else lies there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from clustergate import version
from clustergate.core import store
from clustergate.core.files.shared import locked, mount_of
from clustergate.core.files.stored import decode, encode
from clustergate.core.files.whole import read_json, write_whole
from clustergate.core.model import BadRequest, Say, require_name
from clustergate.core.notation import listed
from clustergate.core.reasons import Words
from clustergate.machine.configuration import is_beside, is_of_system, site_files
from clustergate.stacks import PROVIDERS
from clustergate.stacks.golden import contents
from clustergate.stacks.manifest import (
    Manifest,
    ManifestError,
    as_text,
    read_manifest,
    read_manifest_file,
    write_manifest_file,
)

Prove = Callable[[Manifest, Iterable[Path], Iterable[Path]], set[str]]
"""Launches two ranks of a stack and returns the files they had mapped, and those that the loader
gives its programs and shared objects, which come last; raises for a run that did not prove itself,
and where one of them needs a file of the folders, which come first."""

_SCHEMA = 1
_MANIFEST, _CONTENTS = "manifest.json", "contents.json"
_CONFIGURATION = "configuration files of the MPI libraries"
_NOT_OURS = (errno.EACCES, errno.EROFS)
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class Golden:
    """A golden build.

    ``tree`` are the pinned files by their names in the folder, ``held`` those that stay where they
    are, ``system`` those of the operating system that its ranks mapped, or that the loader gave its
    programs and shared objects; each with its SHA-256.
    ``linked`` tells whether the files of the tree are hard links. ``pinned`` is a time in UTC,
    ``size`` in bytes. ``settings`` are the digests of what the site's launches were set by,
    ``manifest`` that of the manifest, empty where an earlier version pinned it.
    """

    stack: str
    pinned: str
    by: str
    suite: str
    note: str
    lock: str
    size: int
    linked: bool
    roots: list[str] = field(default_factory=list)
    tree: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    system: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    manifest: str = ""


def folder_of(state: Path, stack: str) -> Path:
    """Return where the golden build of a stack lies; raises :class:`BadRequest` for no name."""
    return state / "golden" / require_name("stack", stack)


def pinned_stacks(state: Path) -> list[str]:
    """Return the stacks that have a golden build; raises OSError where that cannot be seen."""
    home = state / "golden"
    folders = home.iterdir() if home.exists() else ()
    return sorted(one.name for one in folders if (one / _MANIFEST).exists())


def unseen_by_others(state: Path, nodes: int) -> str:
    """Return what keeps other nodes from launching golden builds, as far as this one can tell."""
    folder = state / "golden"
    mount = mount_of(folder)
    if nodes == 1 or mount.is_shared or not mount.kind:
        return ""
    return (
        f"{folder} is on {mount.kind}, a file system of this node: golden builds are launched on "
        f"{nodes} nodes, all of which must see it by that name"
    )


GOLDEN_UNAVAILABLE = Words("golden.unavailable", "{stack} is unavailable here", cause="{why}")
GOLDEN_EXISTS = Words(
    "golden.exists",
    "{stack} has a golden build, of {by} on {pinned}{note}",
    remedy="`clustergate golden unpin {stack}` removes it",
)
NOT_PINNED = Words(
    "golden.not-pinned",
    "{stack} cannot be pinned",
    cause="{why} ({path})",
    remedy="no partial copy is left",
)


def pin(
    state: Path,
    stack: str,
    note: str,
    say: Say,
    prove: Prove,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Golden:
    """Keep a stack as it is: as a copy, or by hashes in place, as its provider says.

    ``settings`` are what the site config sets of its launches, by name.

    Raises :class:`BadRequest` where there is a golden build already, the stack is unavailable, it
    cannot be kept, or what is kept does not prove that it runs without the rest.
    """
    manifest = read_manifest(state, stack)
    if manifest.unavailable:
        raise BadRequest(GOLDEN_UNAVAILABLE(stack=stack, why=manifest.unavailable))
    home = folder_of(state, stack)
    try:
        with locked(home.parent / f".{stack}.lock"):
            if (home / _MANIFEST).exists():
                kept = read(state, stack)
                note = f" ({kept.note})" if kept.note else ""
                facts = {"by": kept.by, "pinned": kept.pinned.partition("T")[0], "note": note}
                raise BadRequest(GOLDEN_EXISTS(stack=stack, **facts))
            # What an interrupted one left.
            _remove(home)
            try:
                return _pinned(manifest, state, note, say, prove, settings)
            except BaseException:
                _remove(home)
                raise
    except OSError as error:
        if error.errno in _NOT_OURS and error.filename:
            # Whoever calls says how a home is shared.
            raise
        path = error.filename or home
        raise BadRequest(NOT_PINNED(stack=stack, why=error, path=path)) from None


NO_ROOM = Words(
    "golden.no-room",
    "{stack} takes {size_mb:.0f} MB, and {folder} has {free_mb:.0f} MB",
    remedy=(
        "nothing was copied: free some space, or link that folder to a larger file system that "
        "all nodes see"
    ),
)
GOLDEN_NOT_WHOLE = Words(
    "golden.not-whole",
    "{stack} is incomplete: {path} is missing",
    remedy="run `clustergate setup`",
)


def _pinned(
    manifest: Manifest,
    state: Path,
    note: str,
    say: Say,
    prove: Prove,
    settings: Mapping[str, str],
) -> Golden:
    stack, home = manifest.stack, folder_of(state, manifest.stack)
    provider = PROVIDERS.get(manifest.provider)
    roots = contents.roots_of(manifest, state) if provider and provider.copied else []
    files = list(contents.tree(state, roots))
    size = sum(path.lstat().st_size for path in files)
    home.mkdir()
    linked = bool(roots) and all(_can_link(state / root, home) for root in roots)
    free = shutil.disk_usage(home).free
    if not linked and size > free:
        facts = {"size_mb": size / 1e6, "free_mb": free / 1e6}
        raise BadRequest(NO_ROOM(stack=stack, folder=home.parent, **facts))
    amount = f"{len(files)} files, {size / 1e6:.0f} MB"
    if not roots:
        say(f"{stack} stays where {manifest.provider} put it, and is held by the files' SHA-256")
    else:
        how = "hard links, no further space" if linked else f"copied, as {home.parent} "
        how += "" if linked else "lies on another file system, or takes no links"
        say(f"pinning {stack}: {amount}, {how}")
    for path in files:
        _keep(path, home / path.relative_to(state), linked)
    golden = manifest
    if roots:
        golden = contents.relocated(manifest, state, str(home.relative_to(state)))
    named = contents.files_of(golden)
    if missing := [path for path in named if not Path(path).is_file()]:
        raise BadRequest(GOLDEN_NOT_WHOLE(stack=stack, path=missing[0]))
    # Of a link only where it leads would be kept.
    mapped = {*map(os.path.realpath, prove(golden, *to_prove(state, stack, roots)))}
    outside = _outside({*named, *mapped}, (), home)
    # A file is held where the manifest names it, the operating system's own or not; of an MPI that
    # the operating system has, the files of its package are the software, too.
    package: set[str] = set()
    if is_of_system(golden.mpi_library):
        package = contents.package_files(os.path.realpath(golden.mpi_library))
    held = [
        path
        for path in outside
        if path in named or not is_of_system(path) or os.path.realpath(path) in package
    ]
    result = Golden(
        stack,
        f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        store.user_name(),
        version(),
        note,
        manifest.lock,
        size,
        linked,
        roots,
        _tree_of(home, roots),
        contents.hashes(map(Path, held)),
        contents.hashes(Path(path) for path in outside if path not in held),
        _digests(settings, (one.digest for one in site_files([golden.launcher, *mapped]))),
        contents.digest(as_text(golden)),
    )
    record = {"schema": _SCHEMA, **encode(result)}
    write_whole(home / _CONTENTS, json.dumps(record, indent=1) + "\n")
    write_manifest_file(home / _MANIFEST, golden)
    return result


def to_prove(state: Path, stack: str, roots: Iterable[str]) -> tuple[list[Path], list[Path]]:
    """Return what proves a golden build beside its manifest.

    That is the folders of which its ranks must have nothing, and its shared objects.
    """
    objects = contents.shared_objects(folder_of(state, stack), roots)
    return [state / root for root in roots], objects


GOLDEN_NONE = Words(
    "golden.none",
    "{stack} has no golden build",
    remedy="`clustergate golden pin {stack}` makes one",
)
OTHER_VERSION = Words("golden.other-version", "{path}: another version wrote it", remedy="{again}")
GOLDEN_DAMAGED = Words("golden.damaged", "{path} is damaged ({why})", remedy="{again}")


def read(state: Path, stack: str) -> Golden:
    """Read what is known of a golden build; raises :class:`BadRequest` where there is none."""
    path = folder_of(state, stack) / _CONTENTS
    if not path.with_name(_MANIFEST).exists():
        raise BadRequest(GOLDEN_NONE(stack=stack))
    try:
        record: dict[str, Any] = read_json(path)
        if record.pop("schema") != _SCHEMA:
            raise BadRequest(OTHER_VERSION(path=path, again=_again(stack)))
        golden = decode(record, Golden)
        datetime.datetime.strptime(golden.pinned, "%Y-%m-%dT%H:%M:%S%z")
        return golden
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRequest(GOLDEN_DAMAGED(path=path, why=error, again=_again(stack))) from None


GOLDEN_CHANGED = Words(
    "golden.changed",
    "the golden build of {stack} was changed",
    cause="{changes}",
    remedy="{again}",
)


def require_unchanged(state: Path, stack: str) -> Golden:
    """Return a golden build whose files are what was pinned, every byte of them.

    Raises :class:`BadRequest` that names those which are not.
    """
    golden = read(state, stack)
    now = _tree_of(folder_of(state, stack), golden.roots)
    held = contents.hashes(map(Path, golden.held))
    changed = contents.changes(golden.tree, now) + contents.changes(golden.held, held)
    # Its manifest must name no file that is not kept, such as today's program.
    path = folder_of(state, stack) / _MANIFEST
    manifest = read_manifest_file(path)
    changed += _outside(contents.files_of(manifest), golden.held, folder_of(state, stack))
    if golden.manifest not in ("", contents.digest(as_text(manifest))):
        changed.append(str(path))
    if changed:
        changes = listed(changed, contents.NAMED)
        # Whoever pins anew accepts what is there now.
        again = f"put it back; or accept what is there now: {_again(stack)}"
        raise BadRequest(GOLDEN_CHANGED(stack=stack, changes=changes, again=again))
    return golden


def _outside(paths: Iterable[str], held: Collection[str], home: Path) -> list[str]:
    kept = (home, home.resolve())
    others = (path for path in sorted(paths) if path not in held)
    return [path for path in others if not any(Path(path).is_relative_to(one) for one in kept)]


def launchable(state: Path, stack: str) -> Manifest:
    """Return the manifest by which an unchanged golden build is launched.

    It is watched by the proof library of today's stack, as today's build is, where both are of one
    family: this version reads no other's records for sure.
    """
    require_unchanged(state, stack)
    manifest = read_manifest_file(folder_of(state, stack) / _MANIFEST)
    with contextlib.suppress(ManifestError):
        today = read_manifest(state, stack)
        if today.proof_library and _family(today) == _family(manifest):
            return dataclasses.replace(manifest, proof_library=today.proof_library)
    return manifest


def differences(state: Path, stack: str) -> list[str]:
    """Return the files and settings in which today's build differs from an unchanged golden one.

    The suite's own proof library and kernels count, too; programs that were not there to be pinned
    do not. Raises :class:`ManifestError` where there
    is no build today, :class:`BadRequest` where the golden one was changed.
    """
    golden, today = require_unchanged(state, stack), read_manifest(state, stack)
    then = read_manifest_file(folder_of(state, stack) / _MANIFEST)
    home = folder_of(state, stack)
    # A benchmark that was installed since changes nothing of what was pinned.
    added = {one.path for name, one in today.programs.items() if name not in then.programs}
    programs = {name: one for name, one in today.programs.items() if name in then.programs}
    today = dataclasses.replace(today, programs=programs)
    roots = contents.roots_of(today, state) if golden.roots else []
    known = {}
    for name, sha256 in golden.tree.items():
        status = (home / name).lstat()
        known[status.st_dev, status.st_ino] = sha256
    files = (path for path in contents.tree(state, roots) if str(path) not in added)
    hashes = contents.hashes(files, known)
    now = {str(Path(name).relative_to(state)): sha256 for name, sha256 in hashes.items()}
    moved = contents.relocated(today, state, str(home.relative_to(state))) if roots else today
    then_files = golden.tree
    if not golden.roots:
        # What stays in place is otherwise where its programs were compiled anew.
        then_files = {name: golden.held.get(name, "") for name in contents.files_of(then)}
        now = contents.hashes(map(Path, contents.files_of(today)))
    pairs = (
        (contents.hashes_by_role(then_files), contents.hashes_by_role(now)),
        (contents.settings_of(then), contents.settings_of(moved)),
    )
    return [name for before, after in pairs for name in contents.changes(before, after)]


def system_changes(golden: Golden) -> list[str]:
    """Return the operating system's files that are otherwise: golden and today's run on them."""
    return contents.changes(golden.system, contents.hashes(map(Path, golden.system)))


def mapped_otherwise(state: Path, stack: str, mapped: Iterable[tuple[str, str]]) -> list[str]:
    """Return the files that ranks of today's build mapped and that the golden one's would not.

    ``mapped`` are the items of :func:`clustergate.machine.configuration.mapped_files` in all jobs.
    """
    golden, today = read(state, stack), read_manifest(state, stack)
    kept = {**golden.system, **golden.held}.items()
    then = {os.path.realpath(path): x for path, x in kept if not x.startswith(contents.LINK)}
    # What differs in these, :func:`differences` says.
    named = {*map(os.path.realpath, contents.files_of(today))}
    own = [os.path.realpath(state / root) for root in contents.roots_of(today, state)]
    otherwise = {
        path
        for path, sha256 in mapped
        if not is_beside(path)
        and not any(Path(path).is_relative_to(one) for one in own)
        and (path not in named if path not in then else sha256 not in ("", then[path]))
    }
    return sorted(otherwise)


def setting_changes(
    golden: Golden, settings: Mapping[str, str], configuration: Iterable[str]
) -> list[str]:
    """Return by what the site launches it otherwise than when it was pinned.

    ``configuration`` are the digests of the configuration files that launches see today. What an
    earlier version pinned does not say: then it is all.
    """
    return contents.changes(golden.settings, _digests(settings, configuration))


def _digests(settings: Mapping[str, str], configuration: Iterable[str]) -> dict[str, str]:
    files = " ".join(sorted({*configuration}))
    named = {**settings, _CONFIGURATION: files}
    return {name: contents.digest(text) for name, text in named.items()}


def digest(golden: Golden) -> str:
    """Return one SHA-256 for all of its files, shortened."""
    text = json.dumps([sorted(golden.tree.items()), sorted(golden.held.items())])
    return contents.digest(text)


NOT_THERE = Words(
    "golden.not-there",
    "{stack} has no golden build, so there is none to remove",
    remedy="`clustergate golden list` lists them",
)


def require_folder(state: Path, stack: str) -> Path:
    """Return the folder of a golden build, whatever is in it; raises BadRequest for none."""
    home = folder_of(state, stack)
    if not home.is_dir():
        raise BadRequest(NOT_THERE(stack=stack))
    return home


def unpin(state: Path, stack: str) -> None:
    """Remove a golden build, also one that was changed or only in part written.

    Raises :class:`BadRequest` where there is none.
    """
    home = require_folder(state, stack)
    with locked(home.parent / f".{stack}.lock"):
        (home / _MANIFEST).unlink(missing_ok=True)
        _remove(home)


def _again(stack: str) -> str:
    return f"`clustergate golden unpin {stack}`, and pin it again"


def _family(manifest: Manifest) -> tuple[str, str]:
    return manifest.mpi_name, Path(manifest.mpi_library).name


def _tree_of(home: Path, roots: Iterable[str]) -> dict[str, str]:
    hashes = contents.hashes(contents.tree(home, roots))
    return {str(Path(name).relative_to(home)): sha256 for name, sha256 in hashes.items()}


def _can_link(root: Path, home: Path) -> bool:
    # Each may lie on a disk of its own.
    files = (path for path in contents.tree(root, [""]) if not path.is_symlink())
    trial = home / ".link"
    try:
        os.link(next(files), trial)
    except (OSError, StopIteration):
        return False
    trial.unlink()
    return True


def _keep(path: Path, copy: Path, linked: bool) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        copy.symlink_to(os.readlink(path))
        return
    if linked:
        os.link(path, copy)
    else:
        shutil.copy2(path, copy)
    with contextlib.suppress(PermissionError):
        copy.chmod(stat.S_IMODE(copy.stat().st_mode) & ~_WRITABLE)


def _remove(home: Path) -> None:
    if home.is_dir():
        shutil.rmtree(home)
