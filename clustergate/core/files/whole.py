"""Files that are written whole, or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clustergate.core.reasons import Reason, Words


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never half of one.

    A text is written in UTF-8.

    Others may read it, as they may read what a program writes into a shared folder, and the group
    may write it where it may write into the folder. A pipe or a device such as /dev/null is not
    replaced, nor is a link. Raises OSError, which names the file also where the system does not.
    """
    content = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = Path(os.path.realpath(path))
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            # A node that dies must not leave the new name without the text.
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644 | (path.parent.stat().st_mode & stat.S_IWGRP))
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise


def read_json(path: Path) -> Any:
    """Return what a file of JSON holds; raises OSError, and ValueError where it is damaged."""
    return parse_json(path.read_text(encoding="utf-8"))


def parse_json(text: str) -> Any:
    """Return what JSON says, of anybody's making; raises ValueError for what is none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def share_with_group(home: Path) -> None:
    """Let this process's files be the group's where those of a folder are (setgid, ``g+w``).

    Several operators share such a home, and each needs what the others made, locks among it.
    """
    try:
        mode = home.stat().st_mode
    except OSError:
        return
    if mode & stat.S_ISGID and mode & stat.S_IWGRP:
        os.umask(os.umask(0o077) & ~stat.S_IRWXG)


@contextmanager
def scratch_beside(target: Path) -> Iterator[Path]:
    """Give a folder to make a file or a folder in, on the file system where it is to lie.

    What a killed run left of it is removed first, so whoever calls holds the lock of the target.
    """
    unfinished = f".{target.name}-"
    for abandoned in target.parent.glob(f"{unfinished}*"):
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(
        dir=target.parent, prefix=unfinished, ignore_cleanup_errors=True
    ) as scratch:
        yield Path(scratch)


def is_full(error: OSError) -> bool:
    """Tell whether a disk, or the user's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


DISK_FULL = Words(
    "disk.full",
    "the disk is full {doing}",
    remedy="free some space, or {larger}, and run the command again: completed steps are kept",
)


def full_disk(doing: str, larger: str = "name a larger disk in CLUSTERGATE_HOME") -> Reason:
    """Return that the disk is full; ``larger`` says how to get another one."""
    return DISK_FULL(doing=doing, larger=larger)
