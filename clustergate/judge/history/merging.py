"""The runs of several homes in one: each run is copied whole or not at all, and none is changed.

No lock is needed: a run is written beside the others under a name that nobody else takes, and gets
its own by a rename, which file systems of several nodes do at once or not at all (rename(2); on NFS
the server does it). Of two writers of one run the second finds it there.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clustergate.core import store
from clustergate.core.model import A_DAY_S, BadRequest
from clustergate.core.reasons import Reason, Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.judge.history.listing import RUNNING, UNFINISHED, is_of_the_suite, stored_run
from clustergate.judge.history.packages import (
    Package,
    files_of,
    is_data,
    is_package,
    open_package,
)
from clustergate.judge.history.stored_runs import MERGED, doubted_runs

NEW, THERE = "new", "there already"


@dataclass(frozen=True)
class Incoming:
    """A run that lies elsewhere: its files by their paths in its folder, each read when asked for.

    ``written`` are their times in seconds since the epoch. With a ``doubt`` it is dated wrongly.
    """

    run: str
    source: str
    files: Mapping[str, Callable[[], bytes]]
    written: Mapping[str, float]
    doubt: Reason | None = None


RUN_OTHER_CONTENT = Words(
    "run.other-content",
    "{run} of {source} is not merged",
    cause="another run of this name is here, and {file} differs",
    remedy="see which of the two is right; neither was changed",
)
RUN_NOT_ENDED = Words(
    "run.not-ended",
    "{run} of {source} is not merged",
    cause="it has not ended",
    remedy="merge again once it has; `clustergate check --resume {run}` there goes on with it",
)
STORE_NONE = Words(
    "store.none",
    "{path} holds no runs",
    cause="it is no home of clustergate, no clone with one, no folder of runs, and no package",
    remedy="name what CLUSTERGATE_HOME is there, or a file that `clustergate pack` wrote",
)


Pages = Callable[[Package], Mapping[str, bytes]]
"""What is written beside the data of a package, by name."""


def runs_in(path: Path, pages: Pages) -> Iterator[Incoming | BadRequest]:
    """Yield the runs of a home, a clone, a folder of runs or a package, by name.

    Where one cannot be taken, it is yielded why. Raises :class:`BadRequest` for none of these.
    """
    if path.is_file() and is_package(path):
        yield incoming(open_package(path), str(path), pages)
        return
    known = (path / "results" / "runs", path / ".clustergate" / "results" / "runs", path)
    folder = next((one for one in known if one.is_dir()), path)
    runs = sorted(one for one in folder.glob("[!.]*") if one.is_dir() and not one.is_symlink())
    if folder == path:
        # Any folder has folders.
        runs = [one for one in runs if is_of_the_suite(one)]
    if not runs:
        raise BadRequest(STORE_NONE(path=path))
    doubted = {} if folder == path else doubted_runs(folder.parents[1])
    for one in runs:
        try:
            yield _in_folder(one, doubted.get(one.name))
        except BadRequest as error:
            yield error
        except OSError as error:
            yield BadRequest(FILE_UNREADABLE(path=error.filename, why=error.strerror))


def incoming(package: Package, source: str, pages: Pages) -> Incoming:
    """Return the run of a package with the pages that are made of its data."""
    contents = {**pages(package), **package.files}
    written = {name: at.timestamp() for name, at in package.written.items()}
    now = time.time()
    files = {name: _held(content) for name, content in contents.items()}
    return Incoming(package.run, source, files, {name: written.get(name, now) for name in files})


def _held(content: bytes) -> Callable[[], bytes]:
    return lambda: content


def _in_folder(folder: Path, doubt: Reason | None) -> Incoming:
    source = str(folder.parent)
    if stored_run(folder).verdict in (RUNNING, UNFINISHED):
        raise BadRequest(RUN_NOT_ENDED(run=folder.name, source=source))
    names = files_of(folder)
    return Incoming(
        folder.name,
        source,
        {name: (folder / name).read_bytes for name in names},
        {name: (folder / name).stat().st_mtime for name in names},
        doubt,
    )


def merge_run(one: Incoming, runs: Path, scratch: Path, by: str, now: datetime.datetime) -> str:
    """Bring a run into a folder of runs, and return whether it is :data:`NEW` or :data:`THERE`.

    It is written below ``scratch``, on the same file system, first. Raises :class:`BadRequest`
    where another run has its name or a file of it cannot be read, and StoreError where the disk is
    full or not to be written: the folder is then as it was.
    """
    target = runs / one.run
    if target.exists():
        return _same(one, target)
    place = scratch / f"{one.run}-{uuid.uuid4().hex}"
    mark = {"from": one.source, "by": by, "at": now.isoformat(timespec="seconds")}
    mark |= {"doubt": str(one.doubt)} if one.doubt else {}
    try:
        for name in one.files:
            _write(place / name, _read(one, name), one.written[name])
        if MERGED not in one.files:
            store.write_json(place / MERGED, mark)
        runs.mkdir(parents=True, exist_ok=True)
        os.rename(place, target)
    except OSError as error:
        if target.exists():
            # Another brought it meanwhile.
            return _same(one, target)
        raise store.unwritable(target, error) from None
    finally:
        shutil.rmtree(place, ignore_errors=True)
        _remove_abandoned(scratch)
    return NEW


def _read(one: Incoming, name: str) -> bytes:
    try:
        return one.files[name]()
    except OSError as error:
        path = f"{one.source}/{one.run}/{name}"
        raise BadRequest(FILE_UNREADABLE(path=path, why=error.strerror)) from None


def _write(path: Path, content: bytes, written_s: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        # A node that dies must not leave the run's name without its content.
        os.fsync(file.fileno())
    os.utime(path, (written_s, written_s))


def _same(one: Incoming, target: Path) -> str:
    """Return that a run is there already; raises :class:`BadRequest` where its data are others."""
    here = {name for name in files_of(target) if is_data(name)}
    for name in sorted(here | {name for name in one.files if is_data(name)}):
        both = name in here and name in one.files
        if not both or (target / name).read_bytes() != _read(one, name):
            facts = {"run": one.run, "source": one.source, "file": name}
            raise BadRequest(RUN_OTHER_CONTENT(**facts))
    return THERE


def _remove_abandoned(folder: Path) -> None:
    """Remove what merges that were killed left a day ago or earlier; none is at work so long."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if time.time() - path.stat().st_mtime > A_DAY_S:
                shutil.rmtree(path, ignore_errors=True)
