"""How upstream sources get here.

A source is taken, in this order, from the cache, from a folder in ``CLUSTERGATE_SOURCES``, from its
upstream address, and, where Debian carries the very same archive, from Debian's source package
(without root). Whatever arrives with another checksum is refused.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import requests
from filelock import FileLock

from clustergate.benchmarks.build import Source
from clustergate.files.whole import scratch_beside
from clustergate.model import ClustergateError, Say
from clustergate.stacks.compilation import capture

CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60
COULD_NOT = "could not be fetched"


class SourceUnavailable(ClustergateError):
    """A source could be had from nowhere; the sentence lists what was tried."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def named_folders(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the folders of ``CLUSTERGATE_SOURCES``.

    Raises :class:`SourceUnavailable` for one that is not there: its archives are missed later.
    """
    folders = [Path(f) for f in environ.get("CLUSTERGATE_SOURCES", "").split(os.pathsep) if f]
    for folder in folders:
        if not folder.is_dir():
            facts = {"variable": "CLUSTERGATE_SOURCES", "folder": str(folder)}
            raise SourceUnavailable("folder.missing", **facts)
    return folders


def local_copy(source: Source, cache: Path, folders: Sequence[Path] = ()) -> Path | None:
    """Return the archive if it is on this machine already, in the cache or a named folder.

    A damaged file in the cache is removed. Raises :class:`SourceUnavailable` when a named folder
    holds it with another checksum.
    """
    cached = cache / source.file_name
    if cached.is_file():
        if sha256_of(cached) == source.sha256:
            return cached
        cached.unlink()
    for folder in folders:
        candidate = folder / source.file_name
        if candidate.is_file():
            _verify(source, candidate, str(candidate), "source.other-copy")
            return candidate
    return None


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
    if there := local_copy(source, cache, folders):
        return there
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f".{source.file_name}.lock"):
        # Another run may have brought it meanwhile.
        return local_copy(source, cache) or _fetch(source, cache, say)


def _fetch(source: Source, cache: Path, say: Say) -> Path:
    origins: list[tuple[str, Callable[[Source, Path], None]]] = [(source.url, _from_upstream)]
    if source.debian:
        origins.append((f"Debian's source package {source.debian}", _from_debian))
    failures = []
    for origin, fetch in origins:
        say(f"fetching {source.name} {source.version} from {origin}")
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
        "source.unavailable",
        source=f"{source.name} {source.version}",
        failures="; ".join(failures),
        file_name=source.file_name,
        pinned=source.sha256[:12],
    )


def _verify(source: Source, path: Path, origin: str, code: str = "source.other-checksum") -> None:
    actual = sha256_of(path)
    if actual != source.sha256:
        facts = {"actual": actual[:12], "pinned": source.sha256[:12]}
        raise SourceUnavailable(code, origin=origin, **facts)


def _from_upstream(source: Source, target: Path) -> None:
    try:
        with requests.get(
            source.url, stream=True, timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
        ) as answer:
            if not answer.ok:
                raise SourceUnavailable("source.answers", status=answer.status_code)
            with target.open("wb") as file:
                for block in answer.iter_content(1 << 16):
                    file.write(block)
    except requests.Timeout:
        raise SourceUnavailable("source.timed-out") from None
    except requests.RequestException:
        raise SourceUnavailable("source.unreachable") from None


def deb_src_entries(listings: Sequence[str]) -> str:
    """Turn the texts of APT's source lists into one-line ``deb-src`` entries.

    Both of APT's forms are read: one-line (``deb [options] URI suite components``) and deb822
    stanzas. Disabled stanzas and comments are left out.
    """
    entries = []
    for text in listings:
        for line in text.splitlines():
            if match := re.match(r"deb\s+((?:\[[^\]]*\]\s+)?\S+\s+\S+.*)$", line):
                entries.append(f"deb-src {match.group(1)}")
        for stanza in re.split(r"\n\s*\n", text):
            entries.extend(_stanza_entries(stanza))
    return "".join(f"{entry}\n" for entry in dict.fromkeys(entries))


def _stanza_entries(stanza: str) -> list[str]:
    lines = [line for line in stanza.splitlines() if not line.startswith("#")]
    fields = {
        name.strip().lower(): value.strip()
        for name, separator, value in (line.partition(":") for line in lines)
        if separator and not name.startswith((" ", "\t"))
    }
    if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes") == "no":
        return []
    key = fields.get("signed-by", "")
    options = f"[signed-by={key}] " if key.startswith("/") else ""
    return [
        f"deb-src {options}{uri} {suite} {fields.get('components', '')}".rstrip()
        for uri in fields.get("uris", "").split()
        for suite in fields.get("suites", "").split()
    ]


def _from_debian(source: Source, target: Path) -> None:
    if shutil.which("apt-get") is None:
        raise SourceUnavailable("apt.missing")
    system = Path("/etc/apt")
    lists = [system / "sources.list", *sorted((system / "sources.list.d").glob("*.list"))]
    lists += sorted((system / "sources.list.d").glob("*.sources"))
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in lists if path.is_file()]
    entries = deb_src_entries(texts)
    if not entries:
        raise SourceUnavailable("apt.no-source")
    scratch = target.parent
    own = scratch / "sources.list"
    own.write_text(entries, encoding="utf-8")
    for folder in ("lists/partial", "archives/partial"):
        (scratch / folder).mkdir(parents=True)
    # Private folders: nothing of the system's is read or written, so no root is needed.
    command = ["apt-get", "-q", "-o", f"Dir::State::Lists={scratch}/lists"]
    command += ["-o", f"Dir::Etc::SourceList={own}", "-o", "Dir::Etc::SourceParts=/dev/null"]
    command += ["-o", f"Dir::Cache={scratch}", "-o", "Dir::Cache::archives=archives"]
    command += ["-o", "Debug::NoLocking=true", "-o", "APT::Sandbox::User="]
    _run_apt([*command, "update"], scratch)
    # Without them apt-get asks for deb-src entries, which it has.
    if not any((scratch / "lists").glob("*_Sources*")):
        raise SourceUnavailable("apt.no-lists")
    # The archive arrives even where the packaging beside it is missing, so only the file counts.
    log = _run_apt([*command, "source", "--download-only", source.debian], scratch)
    arrived = sorted(scratch.glob(f"{source.debian}_{source.version}*.orig.tar.gz"))
    if not arrived:
        last = [line for line in log.splitlines() if line.startswith("E:")][-1:]
        why = last[0][2:].strip() if last else "the archive did not arrive"
        raise SourceUnavailable("apt.failed", why=why)
    os.replace(arrived[0], target)


def _run_apt(command: Sequence[str], folder: Path) -> str:
    try:
        ended = capture(command, cwd=folder, timeout=600)
    except subprocess.TimeoutExpired:
        raise SourceUnavailable("apt.timed-out") from None
    return ended.stdout + ended.stderr
