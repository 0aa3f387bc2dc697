"""Reading what the kernel says in small files: bounded, and None for what it does not say.

A file can be missing, forbidden, refuse to be read (as switched-off pressure files and links that
are down do) or hold something else than its name promises: all of these are "absent".
"""

from __future__ import annotations

import re
from pathlib import Path

# An attribute of sysfs fits a page, and so does a kernel's command line.
_LONGEST_WORD = 4096
# /proc/cpuinfo is the largest by far: up to 2 kB for each logical CPU.
_LONGEST_TEXT = 8 * 2**20


def text(path: Path) -> str | None:
    """Return the first 8 MiB of a file, None where there is nothing to read.

    Not for ``/proc/sys``, where the kernel refuses to read so much at once: see :func:`word`.
    """
    return _read(path, _LONGEST_TEXT)


def word(path: Path) -> str | None:
    """Return the one printable line that a file holds, None where it holds anything else."""
    content = _read(path, _LONGEST_WORD + 1)
    if content is None or len(content) > _LONGEST_WORD:
        return None
    # Settings of several numbers, such as tcp_rmem, are divided by tabs.
    return printable(content.replace("\t", " "))


def integer(path: Path) -> int | None:
    """Return the whole number that a file holds, None where it holds anything else."""
    content = word(path)
    return None if content is None or not re.fullmatch("-?[0-9]{1,20}", content) else int(content)


def printable(content: str | None) -> str | None:
    """Return a line that a terminal can show, None for anything else."""
    if not content or not content.isprintable() or "\N{REPLACEMENT CHARACTER}" in content:
        return None
    return content


def _read(path: Path, at_most: int) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(at_most).decode("utf-8", errors="replace").strip() or None
    except OSError:
        return None
