"""Archives that are on this machine already, as a source mirror that Spack finds by checksum."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from clustergate.stacks.sources import sha256_of

# The endings that Spack keeps in the name of a mirrored archive, the longest first. Of a patch it
# keeps none, whatever a download was called.
_ENDINGS = ("tar.gz", "tar.bz2", "tar.xz", "tar.zst", "tgz", "tbz2", "txz", "tar", "zip", "gz")
_PATCHES = (".patch", ".diff", ".patch?full_index=1")


def mirror_of(state: Path, folders: Sequence[Path]) -> Path | None:
    """Make a source mirror of links to archives and patches, and return it; None without any.

    ``folders`` are those of ``CLUSTERGATE_SOURCES``; what the embedded provider has fetched is
    taken too. A recipe still compares the checksum of what it takes.
    """
    mirror = state / "spack" / "sources"
    any_there = False
    for folder in (*folders, state / "cache" / "sources"):
        for path in sorted(folder.glob("*")) if folder.is_dir() else []:
            ending = archive_ending(path.name)
            if (ending or path.name.endswith(_PATCHES)) and path.is_file():
                _place(mirror, path.absolute(), ending)
                any_there = True
    return mirror if any_there else None


def archive_ending(name: str) -> str:
    """Return the ending of an archive's name as Spack writes it, empty for another file."""
    return next((ending for ending in _ENDINGS if name.endswith(f".{ending}")), "")


def mirrored_name(sha256: str, ending: str) -> Path:
    """Return where a mirror keeps an archive: by its checksum, whatever it is called."""
    name = f"{sha256}.{ending}" if ending else sha256
    return Path("_source-cache") / "archive" / sha256[:2] / name


def _place(mirror: Path, archive: Path, ending: str) -> None:
    link = mirror / mirrored_name(sha256_of(archive), ending)
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_file():
        # Two stacks may be doing this at once, and a link may lead to what is no longer there.
        temporary = link.with_name(f".{link.name}.{os.getpid()}-{id(link)}")
        temporary.symlink_to(archive)
        os.replace(temporary, link)
