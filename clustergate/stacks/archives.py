"""Unpack archives: no member of one writes, or leads, outside of the folder it is meant for.

Python's own filter for that (``tarfile.data_filter``) is missing from releases that are still in
use, such as Debian 12's 3.11.2; so it is a second line here, and these rules are the first.
"""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tarfile import TarFile, TarInfo

from clustergate.model import ClustergateError

Parts = tuple[str, ...]
Members = Mapping[Parts, TarInfo]
# Links to links that a path may go through, as in Linux.
MOST_LINKS = 40


class ArchiveError(ClustergateError):
    """An archive is damaged, or a member of it would leave the folder it is unpacked into."""


@contextmanager
def open_archive(archive: Path, without: Collection[str] = ()) -> Iterator[tuple[TarFile, Members]]:
    """Open an archive and give its members by their paths, of which each may be written.

    Whatever has one of the names in ``without`` on its path is left out. Raises
    :class:`ArchiveError` in one sentence, before anything was written.
    """
    try:
        with tarfile.open(archive) as tar:
            members = check_members(tar)
            yield tar, {p: m for p, m in members.items() if not set(without).intersection(p)}
    except ArchiveError as error:
        raise error.at(str(archive)) from None
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ArchiveError("archive.damaged", path=archive, why=error) from None


def unpack(archive: Path, folder: Path, without: Collection[str] = ()) -> Path:
    """Unpack a source archive into ``folder``, which is empty, and return its only top folder.

    Raises as :func:`open_archive` does.
    """
    with open_archive(archive, without) as (tar, members):
        for member in members.values():
            executable = member.isdir() or member.mode & 0o100
            member.mode = 0o755 if executable else 0o644
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, list(members.values()), filter="data")
        else:
            tar.extractall(folder, list(members.values()))
        return folder / top_of(members)


def top_of(members: Members) -> str:
    """Return the name of the one folder that holds all others."""
    tops = sorted({path[0] for path, member in members.items() if path[1:] or member.isdir()})
    if len(tops) != 1:
        named = ", ".join(tops[:3]) or "none"
        raise ArchiveError("archive.tops", named=named)
    return tops[0]


def check_members(tar: TarFile) -> dict[Parts, TarInfo]:
    """Return the members of an archive by their paths, in its order.

    A file that comes twice is taken as it comes last, as tar does. Raises :class:`ArchiveError`
    for the first member that would leave the folder, overwrite another, or is no file, folder or
    link.
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
        before = members.pop(path, None)
        if before is not None and not _alike(before, member):
            raise _refusal(member, "comes twice, as different things or as a link")
        if member.islnk():
            target = members.get(_parts(member.linkname))
            if target is None or not target.isreg():
                raise _refusal(member, f"is a link to {member.linkname}, which is not a file in it")
            member.linkname = target.name
        member.name = "/".join(path)
        # As root, tar would give files to those who packed them.
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        members[path] = member
    for path, member in members.items():
        above = (members.get(path[:depth]) for depth in range(1, len(path)))
        if any(parent is not None and not parent.isdir() for parent in above):
            raise _refusal(member, "lies below something that is not a folder")
        if member.issym() and _leads_out(path, members):
            raise _refusal(member, f"is a link that leads out of the archive, to {member.linkname}")
    return members


def _parts(name: str) -> Parts:
    return tuple(part for part in name.split("/") if part not in ("", "."))


def _alike(one: TarInfo, other: TarInfo) -> bool:
    return (one.isreg() and other.isreg()) or (one.isdir() and other.isdir())


def _refusal(member: TarInfo, does: str) -> ArchiveError:
    return ArchiveError("archive.refused", member=ascii(member.name), does=does)


def _leads_out(link: Parts, members: Members) -> bool:
    """Follow a link as the system would, through other links too.

    It has to stay below the archive's top folder, which later gets another name and place.
    """
    here = list(link[:-1])
    rest = members[link].linkname.split("/")[::-1]
    if members[link].linkname.startswith("/") or not here:
        return True
    links = 0
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            here.pop()
            if not here:
                return True
            continue
        met = members.get((*here, part))
        if met is None or not met.issym():
            here.append(part)
            continue
        links += 1
        if met.linkname.startswith("/") or links > MOST_LINKS:
            return True
        rest += met.linkname.split("/")[::-1]
    return False
