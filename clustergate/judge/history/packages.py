"""A run as one file that another site opens, compares and cites: an RO-Crate 1.1 in a zip.

It holds the data of the run and no page: a page could run a script where somebody opens it. Each
file has its checksum, and what is not listed, too large, or no plain file is refused before a byte
of it is used. The format: RO-Crate Metadata Specification 1.1, doi:10.5281/zenodo.4541002; what
stands in CITATION.cff: Citation File Format 1.2.0, doi:10.5281/zenodo.5171937.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import re
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from clustergate.core import store
from clustergate.core.files.whole import parse_json
from clustergate.core.model import BadRequest, CaseRecord
from clustergate.core.reasons import Facts, Words
from clustergate.judge.history.listing import LOCK, VERDICTS, StoredRun
from clustergate.judge.history.stored_runs import MERGED

METADATA, CITATION, SCHEMA = "ro-crate-metadata.json", "CITATION.cff", "outputs.schema.json"
_SPECIFICATION = "https://w3id.org/ro/crate/1.1"
_FOLDER = "run/"
# What is read as data alone; a browser runs what stands in HTML, SVG, and XML by its style sheet.
_TYPES = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".txt": "text/plain",
    ".out": "text/plain",
    ".err": "text/plain",
    ".log": "text/plain",
    ".csv": "text/csv",
}
MOST_FILES, MOST_BYTES = 20_000, 1 << 28
_UTC = datetime.timezone.utc
# Of a zip's entries the permissions, and that it is a plain file, stand in the upper half.
_PLAIN = (stat.S_IFREG | 0o644) << 16
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*|https?://\S+")


@dataclass(frozen=True)
class Package:
    """The data of a run: its files by their paths in its folder, and when each was written."""

    run: str
    files: Mapping[str, bytes]
    written: Mapping[str, datetime.datetime]

    def records(self, where: str) -> list[CaseRecord]:
        """Return its cases, by name; raises :class:`store.StoreError` for a damaged one."""
        cases = sorted(name for name in self.files if re.fullmatch(r"cases/[^/]+\.json", name))
        return [store.parse_case(self.files[name], f"{where}: {name}") for name in cases]

    def answer(self) -> dict[str, Any]:
        """Return its verdicts, empty where it has none; ValueError where they are damaged."""
        return dict(parse_json(self.files.get(VERDICTS, b"{}").decode()))


@dataclass(frozen=True)
class Cited:
    """What somebody says of a package: who measured, and under which licence others may use it."""

    authors: Sequence[str] = ()
    licence: str = ""


def is_data(path: str) -> bool:
    """Tell whether a file of a run, by its path in the run's folder, says what was measured."""
    parts = PurePosixPath(path).parts
    hidden = any(part.startswith(".") for part in parts)
    return PurePosixPath(path).suffix in _TYPES and not hidden and parts[-1] not in (MERGED, LOCK)


RUN_LINK = Words(
    "run.link",
    "{path} is no plain file",
    cause="a link may lead to what is not of the run",
    remedy="put a copy of what it leads to in its place",
)


def files_of(folder: Path) -> list[str]:
    """Return the files of a run but its locks, by their paths in its folder.

    Raises :class:`BadRequest` for a link, a pipe or a device.
    """
    names = []
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if not stat.S_ISDIR(mode):
            if not stat.S_ISREG(mode):
                raise BadRequest(RUN_LINK(path=path))
            if path.name != LOCK:
                names.append(path.relative_to(folder).as_posix())
    return names


def read_run(folder: Path) -> Package:
    """Return the data of a stored run; raises :class:`BadRequest` as :func:`files_of` does."""
    paths = {name: folder / name for name in files_of(folder) if is_data(name)}
    moments = {name: path.stat().st_mtime for name, path in paths.items()}
    written = {name: datetime.datetime.fromtimestamp(at, _UTC) for name, at in moments.items()}
    return Package(folder.name, {name: path.read_bytes() for name, path in paths.items()}, written)


# --- writing ----------------------------------------------------------------------------------


PACKAGE_LICENCE = Words(
    "package.licence",
    "{text!r} is no licence",
    remedy="name it by its SPDX identifier, such as CC-BY-4.0, or its URL",
)
PACKAGE_LARGE = Words(
    "package.large",
    "{run} has {megabytes:.0f} MB in {files:file|files}, and a package has at most {most:.0f} MB",
    remedy="copy its folder instead, and `clustergate merge` takes the folder",
)


def pack(
    package: Package, run: StoredRun, cited: Cited, version: str, schema: bytes, now: str
) -> bytes:
    """Return the zip of a run; ``schema`` is that of its verdicts, ``now`` an ISO 8601 date.

    Raises :class:`BadRequest` for one that is too large, or a licence that is none.
    """
    if cited.licence and not _LICENCE.fullmatch(cited.licence):
        raise BadRequest(PACKAGE_LICENCE(text=cited.licence))
    size = sum(map(len, package.files.values()))
    if size > MOST_BYTES or len(package.files) > MOST_FILES:
        facts: Facts = {"run": run.run, "megabytes": size / 1e6, "files": len(package.files)}
        raise BadRequest(PACKAGE_LARGE(most=MOST_BYTES / 1e6, **facts))
    title = f"Benchmark results of {run.system or 'a system'}, clustergate run {run.run}"
    files = {f"{_FOLDER}{name}": content for name, content in package.files.items()}
    files[SCHEMA] = schema
    if cited.authors:
        files[CITATION] = _citation(title, run.run, cited, now).encode()
    entities = [_entity(name, content, package) for name, content in files.items()]
    crate = _crate(title, run, cited, version, now, entities)
    files = {METADATA: f"{json.dumps(crate, indent=1)}\n".encode(), **files}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr, entry.compress_type = _PLAIN, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return out.getvalue()


def _entity(name: str, content: bytes, package: Package) -> dict[str, Any]:
    at = package.written.get(name.removeprefix(_FOLDER))
    return {
        "@id": name,
        "@type": "File",
        "name": PurePosixPath(name).name,
        "encodingFormat": _TYPES.get(PurePosixPath(name).suffix, "application/yaml"),
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
        **({"dateModified": at.isoformat()} if at else {}),
        **({"conformsTo": {"@id": SCHEMA}} if name == f"{_FOLDER}{VERDICTS}" else {}),
    }


def _crate(
    title: str,
    run: StoredRun,
    cited: Cited,
    version: str,
    now: str,
    files: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    authors = [
        {"@id": f"#author-{k}", "@type": "Person", "name": name}
        for k, name in enumerate(cited.authors, 1)
    ]
    licence = []
    if cited.licence:
        is_url = "://" in cited.licence
        url = cited.licence if is_url else f"https://spdx.org/licenses/{cited.licence}"
        licence = [{"@id": url, "@type": "CreativeWork", "name": cited.licence}]
    software = {
        "@id": "#clustergate",
        "@type": "SoftwareApplication",
        "name": "clustergate",
        "softwareVersion": version,
    }
    measured = {
        "@id": "#measured",
        "@type": "CreateAction",
        "name": f"clustergate {run.kind}",
        "startTime": run.started.isoformat(),
        "instrument": {"@id": software["@id"]},
        "result": {"@id": "./"},
    }
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": title,
        "description": f"{run.kind} in mode {run.mode or '-'}: {run.verdict or 'no verdict'}.",
        "identifier": run.run,
        "datePublished": now,
        "dateCreated": run.started.isoformat(),
        "hasPart": [{"@id": one["@id"]} for one in files],
        "mentions": [{"@id": measured["@id"]}],
        **({"author": _linked(authors)} if authors else {}),
        **({"license": _linked(licence)[0]} if licence else {}),
    }
    about = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _SPECIFICATION},
        "about": {"@id": "./"},
    }
    graph = [about, root, *files, measured, software, *authors, *licence]
    return {"@context": f"{_SPECIFICATION}/context", "@graph": graph}


def _linked(entities: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{"@id": one["@id"]} for one in entities]


def _citation(title: str, run: str, cited: Cited, now: str) -> str:
    # A string of JSON is one of YAML.
    said = {
        "cff-version": "1.2.0",
        "message": "If you use these results, please cite them as below.",
        "type": "dataset",
        "title": title,
        "authors": [{"name": name} for name in cited.authors],
        "date-released": now,
        "identifiers": [{"type": "other", "value": run, "description": "the clustergate run"}],
    }
    if cited.licence:
        said["license-url" if "://" in cited.licence else "license"] = cited.licence
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in said.items())


# --- opening ----------------------------------------------------------------------------------


PACKAGE_REFUSED = Words(
    "package.refused",
    "{path} is not opened",
    cause="{why}",
    remedy="have it sent again, as `clustergate pack RUN --output FILE` writes it",
)


def is_package(path: Path | str) -> bool:
    """Tell whether a file is a zip, by its content."""
    return zipfile.is_zipfile(path)


def open_package(path: Path) -> Package:
    """Return what a package holds; nothing of it is run or written.

    Raises :class:`BadRequest` with the first thing that is wrong with it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if why := _why_refused(entries):
                raise BadRequest(PACKAGE_REFUSED(path=path, why=why))
            # No more is read of an entry than its size says.
            contents = {one.filename: archive.read(one) for one in entries}
        return _checked(contents)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        raise BadRequest(PACKAGE_REFUSED(path=path, why=str(error))) from None
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        why = f"its metadata are damaged ({error})" if not isinstance(error, _Wrong) else str(error)
        raise BadRequest(PACKAGE_REFUSED(path=path, why=why)) from None


class _Wrong(ValueError):
    """What is wrong with a package."""


def _why_refused(entries: Sequence[zipfile.ZipInfo]) -> str:
    """Return what is wrong with the entries of a zip, before any is read; empty for nothing."""
    if len(entries) > MOST_FILES:
        return f"{len(entries):,} files are in it, more than {MOST_FILES:,}"
    if (size := sum(one.file_size for one in entries)) > MOST_BYTES:
        return f"unpacked it is {size / 1e6:,.0f} MB, more than {MOST_BYTES / 1e6:,.0f}"
    names = [one.filename for one in entries]
    for one in entries:
        name = one.filename
        kind = stat.S_IFMT(one.external_attr >> 16)
        parts = name.split("/")
        if "\\" in name or ":" in name or not name.isprintable() or {"", ".", ".."} & {*parts}:
            return f"the path {name!r} could lead out of its folder"
        if kind not in (0, stat.S_IFREG):
            return f"{name} is no plain file"
        if one.flag_bits & 1:
            return f"{name} is encrypted"
        if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return f"{name} is compressed in a way that packages are not"
        if name.startswith(_FOLDER) and not is_data(name.removeprefix(_FOLDER)):
            return f"{name} is none of the data that packages hold"
        if not name.startswith(_FOLDER) and name not in (METADATA, CITATION, SCHEMA):
            return f"no package has the file {name}"
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        return f"{twice[0]} is in it twice"
    return "" if METADATA in names else f"it has no {METADATA}"


def _checked(contents: Mapping[str, bytes]) -> Package:
    """Return a package whose files are those that its metadata list; raises ValueError."""
    graph = {one["@id"]: one for one in parse_json(contents[METADATA].decode())["@graph"]}
    version = graph[METADATA]["conformsTo"]["@id"]
    if version != _SPECIFICATION:
        raise _Wrong(f"it conforms to {version}, not to {_SPECIFICATION}")
    run = graph["./"]["identifier"]
    if not isinstance(run, str) or "/" in run or run.startswith(".") or not store.names_run(run):
        raise _Wrong(f"{run!r} names no run")
    listed = {name: one for name, one in graph.items() if one.get("@type") == "File"}
    files = {name: content for name, content in contents.items() if name != METADATA}
    if odd := sorted(listed.keys() ^ files.keys()):
        raise _Wrong(f"{odd[0]} is {'missing' if odd[0] in listed else 'not listed'}")
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != listed[name]["sha256"]:
            raise _Wrong(f"{name} has another checksum than is listed")
    own = {name: content for name, content in files.items() if name.startswith(_FOLDER)}
    written = {name: datetime.datetime.fromisoformat(listed[name]["dateModified"]) for name in own}
    if not all(moment.tzinfo for moment in written.values()):
        raise _Wrong("the times of its files have no zone")
    bare = {name: name.removeprefix(_FOLDER) for name in own}
    return Package(
        run,
        {bare[name]: content for name, content in own.items()},
        {bare[name]: moment for name, moment in written.items()},
    )
