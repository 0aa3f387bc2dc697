"""Unpack archives: no member of one is written outside of the folder it is meant for.

What an archive holds is pinned: by its SHA-256, or by git's checksum of what came out of it. So a
link may lead wherever the pinned content lets it; here no member is written through one. (Python's
own filter is missing from releases that are still in use.)
"""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from tarfile import TarFile, TarInfo
from typing import Any

from clustergate.model import ClustergateError

Parts = tuple[str, ...]
Members = Mapping[Parts, TarInfo]


class ArchiveError(ClustergateError):
    """An archive is damaged, or a member of it would leave the folder it is unpacked into."""


def unpack(archive: Path, folder: Path, without: Collection[str] = ()) -> Path:
    """Unpack a source archive into ``folder``, which is empty, and return its only top folder.

    Whatever has one of the names in ``without`` on its path is left out. Raises
    :class:`ArchiveError` in one sentence, for a member that may not be written before any is.
    """
    # Each member is held to its form: one way for Pythons with filters and without.
    trusted: dict[str, Any] = {}
    if hasattr(tarfile, "fully_trusted_filter"):
        trusted = {"filter": "fully_trusted"}
    try:
        with tarfile.open(archive) as tar:
            members = check_members(tar)
            wanted = {p: m for p, m in members.items() if not set(without).intersection(p)}
            tar.extractall(folder, list(wanted.values()), **trusted)
            return folder / top_of(wanted)
    except ArchiveError as error:
        raise error.at(str(archive)) from None
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ArchiveError("archive.damaged", path=archive, why=error) from None


def top_of(members: Members) -> str:
    """Return the name of the one folder that holds all others."""
    tops = sorted({path[0] for path, member in members.items() if path[1:] or member.isdir()})
    if len(tops) != 1:
        named = ", ".join(tops[:3]) or "none"
        raise ArchiveError("archive.tops", named=named)
    return tops[0]


def check_members(tar: TarFile) -> dict[Parts, TarInfo]:
    """Return the members of an archive by their paths, in its order, as they are to be written.

    A file that comes twice is taken as it comes last, as tar does. Raises :class:`ArchiveError`
    for the first member that would leave the folder, by its name or through a link, or is no file,
    folder or link.
    """
    members: dict[Parts, TarInfo] = {}
    for member in tar:
        path = _parts(member.name)
        if member.name.startswith("/") or ".." in path:
            raise _refusal(member, "leads out of the folder it is unpacked into")
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise _refusal(member, "is neither a file nor a folder nor a link")
        if not path:  # the folder itself, as "./"
            continue
        if member.islnk():
            target = members.get(_parts(member.linkname))
            if target is None or not target.isreg():
                raise _refusal(member, f"is a link to {member.linkname}, which is not a file in it")
            member.linkname = target.name
        member.name = "/".join(path)
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        # As root, tar would give files to those who packed them.
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        members.pop(path, None)
        members[path] = member
    for path, member in members.items():
        above = (members.get(path[:depth]) for depth in range(1, len(path)))
        if any(parent is not None and not parent.isdir() for parent in above):
            raise _refusal(member, "lies below something that is not a folder")
    return members


def _parts(name: str) -> Parts:
    return tuple(part for part in name.split("/") if part not in ("", "."))


def _refusal(member: TarInfo, does: str) -> ArchiveError:
    return ArchiveError("archive.refused", member=ascii(member.name), does=does)
