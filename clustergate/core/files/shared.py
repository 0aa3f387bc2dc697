"""Files that several nodes share: whether locks hold there, and what comes into sight late."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from clustergate.core.interrupts import raise_if_ending
from clustergate.core.model import ClustergateError, Say
from clustergate.core.reasons import Words

# How long what is in a folder is looked for afresh. By itself a client of NFS asks again within a
# minute: acdirmax of nfs(5).
LATEST_S = 10.0
_ASKED_EVERY_S = 1.0
_MOUNTS = Path("/proc/self/mountinfo")
# Mount point, its options, kind of file system, and its options: proc_pid_mountinfo(5).
_MOUNTED = re.compile(r"\S+ \S+ \S+ \S+ (\S+) (\S+) (?:\S+ )*?- (\S+) \S+ (\S+)")
_SHARED = re.compile(r"nfs4?|lustre|gpfs|beegfs|ceph|cifs|smb3|glusterfs|orangefs|9p|fuse(\..*)?")
# By their options, or by default, locks of these hold on the node alone: nfs(5), mount.lustre(8),
# tuneUseGlobalFileLocks of BeeGFS. What a FUSE file system does, it does not say here.
_LOCAL_OPTION = re.compile(r"nolock|local_lock=(all|flock)|localflock")
_LOCAL = re.compile(r"beegfs|fuse(\..*)?")
_REFUSED = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


class Mount(NamedTuple):
    """The file system of a folder: its kind, and the options that it is mounted with."""

    kind: str
    options: tuple[str, ...] = ()

    @property
    def is_shared(self) -> bool:
        """Tell whether other nodes may write there."""
        return bool(_SHARED.fullmatch(self.kind))

    @property
    def locks_locally(self) -> bool:
        """Tell whether two nodes may hold one lock at the same time."""
        return bool(_LOCAL.fullmatch(self.kind)) or any(map(_LOCAL_OPTION.fullmatch, self.options))


def mount_of(path: Path, mountinfo: str | None = None) -> Mount:
    """Return what a path lies on; a kind without a name where nothing tells."""
    with suppress(OSError):
        text = _MOUNTS.read_text(errors="replace") if mountinfo is None else mountinfo
        wanted, best, depth = path.resolve(), Mount(""), -1
        for line in map(_MOUNTED.match, text.splitlines()):
            if not line:
                continue
            place = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line[1]))
            # Of two on one folder the later hides the earlier.
            if wanted.is_relative_to(place) and len(place.parts) >= depth:
                depth = len(place.parts)
                best = Mount(line[3], (*line[2].split(","), *line[4].split(",")))
        return best
    return Mount("")


# By threads of this process, for which nobody is told to wait.
_held: set[str] = set()


@contextmanager
def locked(
    path: Path | str, *, wait: bool = True, say: Say = lambda sentence: None
) -> Iterator[None]:
    """Hold the lock of this file, in a folder that is made; ``say`` is told of a wait for another.

    Raises filelock.Timeout where it is held and not to ``wait``, ClustergateError where the file
    system has no locks, and another OSError as it is.
    """
    # Most who look at shared files lock none, and this takes long to load.
    import filelock

    lock = filelock.FileLock(path)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lock.acquire(timeout=0)
    except filelock.Timeout:
        if not wait:
            raise
        if str(path) not in _held:
            say(f"waiting until another process releases {path}")
        while not lock.is_locked:
            raise_if_ending()
            with suppress(filelock.Timeout):
                lock.acquire(timeout=_ASKED_EVERY_S)
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in _REFUSED:
            raise
        raise _no_locks(path) from None
    try:
        # Of a marker that a killed process left nobody knows whether it still holds.
        if not isinstance(lock, filelock.UnixFileLock):
            raise _no_locks(path)
        _held.add(str(path))
        yield
    finally:
        _held.discard(str(path))
        lock.release()


NO_LOCKS = Words(
    "file.no-locks",
    "{path} cannot be locked",
    cause="its file system ({kind}) has no locks",
    remedy=(
        "name a folder of another one in CLUSTERGATE_HOME, or mount it with locks (Lustre: flock)"
    ),
)


def _no_locks(path: Path | str) -> ClustergateError:
    kind = mount_of(Path(path).parent).kind
    return ClustergateError(NO_LOCKS(path=str(path), kind=kind))


def refresh_listing(folder: Path) -> None:
    """Let the next look into a folder show what other nodes wrote until now.

    What this node itself changes there, its client of NFS asks the server about again.
    """
    with suppress(OSError):
        descriptor, made = tempfile.mkstemp(dir=folder, prefix=".look-")
        os.close(descriptor)
        os.unlink(made)
