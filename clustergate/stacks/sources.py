"""How upstream sources get here.

A source is taken, in this order, from the cache, from a folder in ``CLUSTERGATE_SOURCES``, from its
upstream address, and, where Debian carries the very same archive, from Debian's source package
(without root). Whatever arrives with another checksum is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path

from clustergate.benchmarks.build import Source
from clustergate.core.files.shared import locked
from clustergate.core.files.whole import scratch_beside
from clustergate.core.interrupts import raise_if_ending
from clustergate.core.model import ClustergateError, Say
from clustergate.core.reasons import Words
from clustergate.core.texts import Step
from clustergate.machine.processes import capture

CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60
_LOOK_AGAIN_S = 0.2


class SourceUnavailable(ClustergateError):
    """A source could be had from nowhere; the sentence lists what was tried."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


FOLDER_MISSING = Words(
    "folder.missing",
    "{variable} names {folder}, which is not a folder",
    remedy="correct it, or unset it",
)


def named_folders(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the folders of ``CLUSTERGATE_SOURCES``.

    Raises :class:`SourceUnavailable` for one that is not there: its archives are missed later.
    """
    folders = [Path(f) for f in environ.get("CLUSTERGATE_SOURCES", "").split(os.pathsep) if f]
    for folder in folders:
        if not folder.is_dir():
            facts = {"variable": "CLUSTERGATE_SOURCES", "folder": str(folder)}
            raise SourceUnavailable(FOLDER_MISSING(**facts))
    return folders


OTHER_COPY = Words(
    "source.other-copy",
    "{origin} has the checksum {actual}… where {pinned}… is pinned, so it is refused",
    remedy="remove it, or put upstream's own archive there",
)


def local_copy(source: Source, cache: Path, folders: Sequence[Path] = ()) -> Path | None:
    """Return the archive if it is on this machine already, in the cache or a named folder.

    A damaged file in the cache is removed. What a folder holds is kept in the cache: a later call
    that does not name the folder shall build the same. Raises :class:`SourceUnavailable` when a
    named folder holds it with another checksum.
    """
    cached = cache / source.file_name
    if cached.is_file():
        if sha256_of(cached) == source.sha256:
            return cached
        cached.unlink()
    for folder in folders:
        candidate = folder / source.file_name
        if candidate.is_file():
            _verify(source, candidate, str(candidate), OTHER_COPY)
            return _kept(source, candidate, cache)
    return None


def _kept(source: Source, archive: Path, cache: Path) -> Path:
    """Return a copy of an archive in the cache, or itself where there is no room for one."""
    kept = cache / source.file_name
    with contextlib.suppress(OSError), locked(cache / f".{source.file_name}.lock"):
        with scratch_beside(kept) as scratch:
            os.replace(shutil.copyfile(archive, scratch / source.file_name), kept)
        _note_of(source, cache).unlink(missing_ok=True)
        return kept
    return archive


SOURCE_KNOWN_UNAVAILABLE = Words("source.known-unavailable", "{sentence}")


def obtain(
    source: Source,
    cache: Path,
    folders: Sequence[Path] = (),
    *,
    say: Say = lambda sentence: None,
) -> Path:
    """Return the path of the archive, fetched if need be.

    Raises :class:`SourceUnavailable`, which names each origin tried and how it failed.
    """
    note, asked = _note_of(source, cache), time.monotonic()
    if there := local_copy(source, cache, folders):
        return there
    with locked(cache / f".{source.file_name}.lock", say=say):
        # Another run may have brought it meanwhile.
        if there := local_copy(source, cache):
            return there
        if _failed_at.get(note, -math.inf) >= asked:
            # Another stack has just waited for what does not come.
            raise SourceUnavailable(SOURCE_KNOWN_UNAVAILABLE(sentence=last_failure(source, cache)))
        note.unlink(missing_ok=True)
        try:
            return _fetch(source, cache, say)
        except SourceUnavailable as failure:
            note.write_text(str(failure), encoding="utf-8")
            _failed_at[note] = time.monotonic()
            raise


# When this process could not fetch an archive the last time.
_failed_at: dict[Path, float] = {}


def last_failure(source: Source, cache: Path) -> str:
    """Return why an archive could not be fetched the last time, empty where nobody tried."""
    note = _note_of(source, cache)
    return note.read_text(encoding="utf-8") if note.is_file() else ""


def _note_of(source: Source, cache: Path) -> Path:
    return cache / f"{source.file_name}.unavailable"


SOURCE_UNAVAILABLE = Words(
    "source.unavailable",
    "{source} could not be fetched ({failures})",
    remedy="put {file_name} (sha256 {pinned}…) in a folder and name it in CLUSTERGATE_SOURCES",
)


def _fetch(source: Source, cache: Path, say: Say) -> Path:
    origins: list[tuple[str, Callable[[Source, Path], None]]] = [(source.url, _from_upstream)]
    if source.debian:
        origins.append((f"Debian's source package {source.debian}", _from_debian))
    failures = []
    for origin, fetch in origins:
        say(Step(f"fetching {source.name} {source.version} from {origin}"))
        with scratch_beside(cache / source.file_name) as scratch:
            arrived = scratch / source.file_name
            try:
                fetch(source, arrived)
                _verify(source, arrived, origin)
            except SourceUnavailable as failure:
                failures.append(f"{origin}: {failure}")
                continue
            os.replace(arrived, cache / source.file_name)
            return cache / source.file_name
    raise SourceUnavailable(
        SOURCE_UNAVAILABLE(
            source=f"{source.name} {source.version}",
            failures="; ".join(failures),
            file_name=source.file_name,
            pinned=source.sha256[:12],
        )
    )


OTHER_CHECKSUM = Words(
    "source.other-checksum",
    "{origin} has the checksum {actual}… where {pinned}… is pinned, so it is refused",
)


def _verify(source: Source, path: Path, origin: str, words: Words[...] = OTHER_CHECKSUM) -> None:
    actual = sha256_of(path)
    if actual != source.sha256:
        pinned = source.sha256[:12]
        raise SourceUnavailable(words(origin=origin, actual=actual[:12], pinned=pinned))


def _from_upstream(source: Source, target: Path) -> None:
    # A server that stalls is waited for in a thread of its own, which holds no interrupt.
    outcome: Future[None] = Future()
    threading.Thread(target=_download, args=(source.url, target, outcome), daemon=True).start()
    while not wait([outcome], _LOOK_AGAIN_S).done:
        raise_if_ending()
    outcome.result()


def _download(url: str, target: Path, outcome: Future[None]) -> None:
    try:
        _write_answer(url, target)
    except BaseException as error:
        outcome.set_exception(error)
    else:
        outcome.set_result(None)


SOURCE_ANSWERS = Words("source.answers", "answers {status}")
SOURCE_TIMED_OUT = Words("source.timed-out", "timed out")
SOURCE_UNREACHABLE = Words("source.unreachable", "cannot be reached")


def _write_answer(url: str, target: Path) -> None:
    # Most commands download nothing.
    import requests

    try:
        with requests.get(url, stream=True, timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S)) as answer:
            if not answer.ok:
                raise SourceUnavailable(SOURCE_ANSWERS(status=answer.status_code))
            with target.open("wb") as file:
                for block in answer.iter_content(1 << 16):
                    raise_if_ending()
                    file.write(block)
    except requests.Timeout:
        raise SourceUnavailable(SOURCE_TIMED_OUT()) from None
    except requests.RequestException:
        raise SourceUnavailable(SOURCE_UNREACHABLE()) from None


NO_SOURCE = Words("apt.no-source", "/etc/apt configures no package source")
APT_FAILED = Words("apt.failed", "{why}")


def _from_debian(source: Source, target: Path) -> None:
    """Download an archive from the pools of APT's repositories, as APT is told to reach them.

    Nothing of the system's is written, so no root is needed; the pinned checksum stands in for
    APT's signatures, which the package lists would be needed for.
    """
    listed = _apt("apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT)")
    pools = dict.fromkeys(line for line in listed.splitlines() if len(line.split()) == 2)
    if not pools:
        raise SourceUnavailable(NO_SOURCE())
    for uri, component in map(str.split, pools):
        name = source.debian
        place = f"pool/{component}/{name[0]}/{name}/{name}_{source.version}.orig.tar.gz"
        address = f"{uri.rstrip('/')}/{place}"
        why = _apt(APT_HELPER, *_UNSANDBOXED, "download-file", address, str(target))
        if target.is_file():
            return
    last = [line for line in why.splitlines() if line.startswith("E:")][-1:]
    raise SourceUnavailable(APT_FAILED(why=last[0][2:].strip() if last else "no reason given"))


APT_HELPER = "/usr/lib/apt/apt-helper"
# Its own user may not write into our folder.
_UNSANDBOXED = ("-o", "APT::Sandbox::User=")


APT_MISSING = Words("apt.missing", "this machine has no apt-get")
APT_TIMED_OUT = Words("apt.timed-out", "apt-get took more than ten minutes")


def _apt(*command: str) -> str:
    try:
        ended = capture(command, timeout=600)
    except FileNotFoundError:
        raise SourceUnavailable(APT_MISSING()) from None
    except subprocess.TimeoutExpired:
        raise SourceUnavailable(APT_TIMED_OUT()) from None
    return ended.stdout + ended.stderr
