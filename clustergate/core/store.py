"""Results on disk: one folder per run, one record per case, beside ReFrame's own storage.

ReFrame keeps one value per metric in its SQLite storage; the raw samples with their conditions,
the proof and the command line of each case are here, linked by the case's unique name.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import getpass
import json
import math
import os
import pwd
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from clustergate.core.files.shared import locked
from clustergate.core.files.stored import UnknownKey, decode, encode
from clustergate.core.files.whole import is_full, parse_json, write_whole
from clustergate.core.model import (
    INPUT_NO_NAME,
    METRICS,
    BadRequest,
    CaseRecord,
    ClustergateError,
    is_name,
    number_of_run,
)
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Words

SCHEMA = 1
# Conditions of a node's peaks that are computed with.
_OF_PEAKS = ("k", "flops_per_cycle")
RUN_ID = "CLUSTERGATE_RUN_ID"
# Before a plain ReFrame call names its own.
_OF_SESSION = bool(os.environ.get(RUN_ID))


class StoreError(ClustergateError):
    """A stored result cannot be written or read."""


def new_run_id(now: datetime.datetime) -> str:
    """Return the name of a run that starts now: the time in UTC, and its number in this home.

    Raises :class:`StoreError` when the home cannot be written.
    """
    newest = runs_folder().parent / "newest-run"
    make_folder(newest.parent)
    try:
        with locked(f"{newest}.lock"):
            # Runs may have been copied from elsewhere, and the file lost.
            known = [number_of_run(path.name) for path in runs_folder().glob("*")]
            with contextlib.suppress(FileNotFoundError, ValueError):
                known.append(int(newest.read_text(encoding="ascii")))
            number = max(known, default=0) + 1
            write_whole(newest, f"{number}\n")
    except OSError as error:
        raise unwritable(newest, error) from None
    return f"{now.astimezone(datetime.timezone.utc):%Y%m%dT%H%M%SZ}-r{number}"


def is_of_session() -> bool:
    """Tell whether ``clustergate check`` or a command like it called this process, and judges."""
    return _OF_SESSION


def current_run_id() -> str:
    """Return the run that this process belongs to.

    ``clustergate check`` names it in ``CLUSTERGATE_RUN_ID``; a plain ReFrame call is a run of its
    own, named once per process.
    """
    return os.environ.get(RUN_ID) or _own_run_id()


@functools.cache
def _own_run_id() -> str:
    return new_run_id(datetime.datetime.now(datetime.timezone.utc))


def user_name() -> str:
    """Return who this is: of several who share a home, one blesses a baseline."""
    with contextlib.suppress(OSError, KeyError):
        return getpass.getuser()
    return f"uid {os.getuid()}"


HOME_PERCENT = Words(
    "home.percent",
    "the path of the home holds a %, which schedulers read as a field: {folder}",
    remedy="name another folder in CLUSTERGATE_HOME",
)
HOME_BYTES = Words(
    "home.bytes",
    "the path of the home is no UTF-8: {folder}",
    remedy="name another folder in CLUSTERGATE_HOME",
)
OPEN_TO_ALL = Words(
    "home.open-to-all",
    "all users may write to the home {folder}, and could replace what is measured",
    remedy="close it: chmod o-w {folder}",
)
OF_ANOTHER = Words(
    "home.of-another",
    "the home {folder} belongs to {owner}, who does not share it with a group of yours",
    remedy=(
        "name a folder of your own in CLUSTERGATE_HOME, or have it shared (docs/housekeeping.md)"
    ),
)


def require_home(home: Path | None = None) -> None:
    """Raise :class:`ClustergateError` for a home from which nothing is to be launched.

    Its path goes into job scripts and JSON; and whoever can write there can put another program in
    the place of a measured one.
    """
    folder = home or state_dir()
    facts = {"folder": os.fsencode(folder).decode(errors="backslashreplace")}
    if "%" in facts["folder"]:
        raise ClustergateError(HOME_PERCENT(**facts))
    if any("\ud800" <= letter <= "\udfff" for letter in str(folder)):
        raise ClustergateError(HOME_BYTES(**facts))
    try:
        status = folder.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(folder, error) from None
    if status.st_mode & stat.S_IWOTH:
        raise ClustergateError(OPEN_TO_ALL(**facts))
    shared = status.st_mode & stat.S_IWGRP and status.st_gid in {os.getegid(), *os.getgroups()}
    if status.st_uid != os.geteuid() and not shared:
        raise ClustergateError(OF_ANOTHER(owner=_name_of(status.st_uid), **facts))


def _name_of(uid: int) -> str:
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"uid {uid}"


def runs_folder(state: Path | None = None) -> Path:
    return (state or state_dir()) / "results" / "runs"


def stage_folder(run_id: str, state: Path | None = None) -> Path:
    """Return where the jobs of a run work; without a run, those of a plain ReFrame call."""
    return (state or state_dir()) / "stage" / run_id


def run_folder(run_id: str, state: Path | None = None) -> Path:
    """Return the folder of a run, or of what it measured in one of its own: ``RUN/golden-mpich``.

    Raises :class:`BadRequest` for what is no name.
    """
    if not names_run(run_id):
        raise BadRequest(INPUT_NO_NAME(kind="run", name=run_id))
    return runs_folder(state) / run_id


def names_run(text: str) -> bool:
    """Tell whether a text can name a run, or what it measured in a folder of its own."""
    return all(map(is_name, text.split("/", 1)))


def make_folder(path: Path) -> None:
    """Make a folder with its parents; raises :class:`StoreError` when that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None


FILE_UNWRITABLE = Words(
    "file.unwritable",
    "{path} cannot be written",
    cause="{why}",
    remedy="write elsewhere, or have it opened to you",
)
FULL_DISK = Words(
    "run.full-disk",
    "{path} cannot be written",
    cause="{why}",
    remedy="free some space and run again; earlier results are intact",
)
RUN_UNWRITABLE = Words(
    "run.unwritable",
    "{path} cannot be written",
    cause="{why}",
    remedy="name another folder in CLUSTERGATE_HOME and run again; earlier results are intact",
)


def unwritable(path: Path, error: OSError) -> StoreError:
    """Return that the disk is full, or what else keeps a file from being written."""
    if is_full(error):
        return StoreError(FULL_DISK(path=path, why=error))
    words = RUN_UNWRITABLE if path.is_relative_to(state_dir()) else FILE_UNWRITABLE
    return StoreError(words(path=path, why=error))


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never half of one.

    Raises :class:`StoreError` when the disk is full or the folder cannot be written.
    """
    make_folder(path.parent)
    try:
        write_whole(path, text)
    except OSError as error:
        raise unwritable(path, error) from None


def write_json(path: Path, content: Any) -> None:
    """Write JSON as :func:`write_text` writes text; a NaN is a ValueError, and never stored."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


NOT_COPIED = Words(
    "run.not-copied",
    "the run cannot be copied to {folder}",
    cause="{why}",
    remedy="it is in {kept}",
)


def copy_run(run_id: str, folder: Path, state: Path | None = None) -> None:
    """Copy what there is of a run into a folder, under the run's name, also of a run that failed.

    Raises :class:`StoreError` when the disk is full or the folder cannot be written.
    """
    kept = run_folder(run_id, state)
    if not kept.is_dir():
        return
    try:
        shutil.copytree(kept, folder / run_id)
    except OSError as error:
        raise StoreError(NOT_COPIED(folder=folder, why=error, kept=kept)) from None


def case_name(test: str, partition: str, stack: str) -> str:
    """Return the name of a case, unique in its run, from ReFrame's unique name of the test."""
    return f"{test}-{partition}-{stack}"


def case_file(run_id: str, name: str, state: Path | None = None) -> Path:
    return run_folder(run_id, state) / "cases" / f"{name}.json"


def case_names(run_id: str, state: Path | None = None) -> list[str]:
    """Return the names of the cases of a run, without reading them."""
    return sorted(path.stem for path in (run_folder(run_id, state) / "cases").glob("*.json"))


def write_case(run_id: str, record: CaseRecord, state: Path | None = None) -> Path:
    """Store what a case left behind and return the file."""
    path = case_file(run_id, record.name, state)
    write_json(path, {"schema": SCHEMA, **encode(record)})
    return path


OTHER_VERSION = Words(
    "run.other-version",
    "{path}: another version of clustergate wrote it",
    remedy="use that version, or move the run out of this home",
)
RUN_DAMAGED_CASE = Words(
    "run.damaged-case",
    "{path} is damaged ({why})",
    remedy="remove it and run again",
)


def read_cases(run_id: str, state: Path | None = None, *, samples: bool = True) -> list[CaseRecord]:
    """Return the cases of a run, in the order of their names.

    Without their samples, to read which takes longer than all else, where nobody asks for them.
    Raises :class:`StoreError` that names the file when one is damaged.
    """
    names = case_names(run_id, state)
    return [read_case(run_id, name, state, samples=samples) for name in names]


def read_case(
    run_id: str, name: str, state: Path | None = None, *, samples: bool = True
) -> CaseRecord:
    """Return a case of a run; raises :class:`StoreError` that names its file if it is damaged."""
    path = case_file(run_id, name, state)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(RUN_DAMAGED_CASE(path=path, why=error)) from None
    return parse_case(content, path, samples=samples)


def parse_case(text: bytes, path: Path | str, *, samples: bool = True) -> CaseRecord:
    """Return what a case's file holds; raises :class:`StoreError` that names it if damaged."""
    try:
        content = parse_json(text.decode())
        if content.pop("schema") != SCHEMA:
            raise StoreError(OTHER_VERSION(path=path))
        if not samples:
            content["samples"] = []
        return _checked(decode(content, CaseRecord, always=_ALWAYS))
    except UnknownKey:
        # What a later version adds is no damage, and must not be removed.
        raise StoreError(OTHER_VERSION(path=path)) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(RUN_DAMAGED_CASE(path=path, why=error)) from None


def _checked(record: CaseRecord) -> CaseRecord:
    """Return a record in which figures are numbers, and each of a launch stands once.

    Raises ValueError for one edited otherwise.
    """
    for name in _COUNTS.intersection(record.conditions):
        _require(name, record.conditions[name], int)
    for sample in record.samples:
        for name in _COUNTS_OF_SAMPLES.intersection(sample.conditions):
            _require(f"{name} of a sample", sample.conditions[name], int)
    known = {name: (metric.unit, metric.better) for name, metric in METRICS.items()}
    samples = set()
    for sample in record.samples:
        name = f"{sample.benchmark} {sample.metric}"
        said = sample.unit, sample.better
        if said != known.setdefault(sample.metric, said):
            raise ValueError(f"{name} is in {sample.unit!r}, {sample.better.value} is better")
        what = (sample.order, name, *sample.conditions.items())
        if what in samples:
            raise ValueError(f"launch {sample.order} has {name} twice")
        samples.add(what)
    for row in record.peaks:
        numbers = [*row.values.values(), *(row.conditions.get(key, 1) for key in _OF_PEAKS)]
        if not all(_is_number(value) and value > 0 for value in numbers):
            raise ValueError(f"a figure of {row.benchmark} is none: {numbers}")
        if not re.fullmatch(r"\d+(,\d+)*", str(row.conditions.get("core_ids"))):
            raise ValueError(f"the cores of {row.benchmark} are {row.conditions.get('core_ids')!r}")
    for name, kind in _DETAILS.items():
        if name in record.details:
            _require(name, record.details[name], kind)
    proof = record.details.get("proof")
    if isinstance(proof, dict) and (hosts := proof.get("hosts")):
        _require("hosts", hosts, Sequence[str])
    # What has a code that nobody knows, or lacks a fact, has no sentence.
    for why in (*record.complaints, *(one.disturbed for one in record.launches)):
        str(why)
    return record


# Of a record without its complaints all figures would count.
_ALWAYS = ("samples", "unmeasured", "peaks", "complaints")
# What a record's details hold, of that which is read again.
_DETAILS: Mapping[str, Any] = {
    **dict.fromkeys(("launch_s", "peaks_s", "waited_s"), float),
    **dict.fromkeys(("node_states", "mapped", "blocks"), Mapping[str, object]),
    **dict.fromkeys(("kept_out", "site_files"), Sequence[Mapping[str, object]]),
    "processors": Sequence[str],
    "proof": Mapping[str, object],
    "core_distance_ns": float | None,
    "method": str,
}
_COUNTS = {"ranks", "ranks_per_node", "nodes", "cores_per_rank"}
# Conditions that are computed with.
_COUNTS_OF_SAMPLES = {"bytes", "n", "processes", "vector_size", "elements", "peer"}


def _require(name: str, value: object, form: Any) -> None:
    if type(value) is form is int:
        # Of a run there are thousands.
        return
    try:
        decode(value, form)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _is_number(value: object) -> TypeGuard[float]:
    # True is one for Python, and a NaN is never stored.
    return isinstance(value, int | float) and value is not True and math.isfinite(value)
