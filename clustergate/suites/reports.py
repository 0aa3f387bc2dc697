"""Report files of ReFrame 4.6 (data version 3) and of 4.7 to 4.10 (data version 4)."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from clustergate.launch.hostfiles import HostfileError, expand
from clustergate.suites.sessions import (
    PROOF,
    SUITE_UNREADABLE,
    SUITE_VERSION,
    Kept,
    NoReport,
    Result,
    Session,
    SuiteError,
    Value,
    from_text,
    named,
)

FORM = "a report file"
_KNOWN = ("3", "4")
# ReFrame writes first what it is to say of the session.
_HEAD = 65_536
_TOLD = re.compile(r'"(data_version|hostname|uuid|time_start)": *"([^"\\]*)"')
_TIMES = ("%Y%m%dT%H%M%S%z", "%Y-%m-%dT%H:%M:%S%z")
# ReFrame 4.6 has its own words.
_RESULTS = {"success": "pass", "failure": "fail", "skipped": "skip", "aborted": "abort"}


def kept_in(path: Path) -> Kept:
    """Return the session of a report file, which is read later where its beginning names it.

    Raises :class:`SuiteError` for what is none.
    """
    with contextlib.suppress(OSError, ValueError):
        with path.open("rb") as file:
            head = file.read(_HEAD).decode("utf-8", "replace")
        of_session = dict(_TOLD.findall(head.partition('"runs"')[0]))
        if "data_version" in of_session and "time_start" in of_session:
            started = _moment(of_session, "time_start")
            known = of_session.get("uuid") or _id_of(started, of_session["hostname"])
            return Kept(known, started.timestamp(), partial(read_report, path))
    return Kept.of(read_report(path))


def _id_of(started: datetime.datetime, hostname: str) -> str:
    # ReFrame 4.6 has no UUIDs.
    return f"{started:%Y%m%dT%H%M%S}-{hostname}"


def read_report(path: Path) -> Session:
    """Return the session of a report file; raises :class:`SuiteError` for what is none."""
    try:
        text = path.read_text(encoding="utf-8")
        report = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise SuiteError(SUITE_UNREADABLE(path=path, form=FORM, why=error)) from None
    return session_of(report, str(path))


def session_of(report: Any, source: str) -> Session:
    """Return the session of a report; ``source`` is where it stands, for sentences."""
    if not isinstance(report, dict) or "session_info" not in report:
        why = "it has no session_info"
        raise NoReport(SUITE_UNREADABLE(path=source, form=FORM, why=why))
    try:
        info = report["session_info"]
        version = str(info["data_version"])
        if version.partition(".")[0] not in _KNOWN:
            facts = {"path": source, "form": FORM, "found": version}
            raise SuiteError(SUITE_VERSION(known="3.x and 4.x", **facts))
        started = _moment(info, "time_start")
        of_file = info.get("uuid") or _id_of(started, info["hostname"])
        configs = tuple(x for x in map(str, info.get("config_files", ())) if not x.startswith("<"))
        results = tuple(_results(report["runs"]))
        return Session(of_file, started, results, _moment(info, "time_end"), configs, source)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"{type(error).__name__} {error}"
        raise SuiteError(SUITE_UNREADABLE(path=source, form=FORM, why=why)) from None


def _moment(info: Mapping[str, Any], key: str) -> datetime.datetime:
    for form in _TIMES:
        try:
            return datetime.datetime.strptime(str(info[key]), form)
        except ValueError:
            continue
    raise ValueError(f"{key} is {info[key]!r}")


def _results(runs: Any) -> Iterator[Result]:
    for attempt, run in enumerate(runs):
        for case in run["testcases"]:
            values = tuple(_values(case))
            if values or not case.get("fixture"):
                yield _result(case, attempt, values)


def _result(case: Mapping[str, Any], attempt: int, values: tuple[Value, ...]) -> Result:
    test, parameters, repeat, node = named(str(case["name"]))
    # From 4.7 on, what ReFrame adds by itself stands in the longer name alone.
    *_, shown_repeat, shown_node = named(str(case.get("display_name") or ""))
    variables = case.get("check_vars", case)
    is_old = "check_vars" in case
    system, _, partition = str(case["system"]).partition(":")
    word = str(case["result"])
    nodes = case.get("nodelist" if is_old else "job_nodelist") or ()
    return Result(
        test=test,
        parameters=parameters,
        system=system,
        partition=partition or str(case["partition"]),
        environ=str(case["environment" if is_old else "environ"]),
        result=_RESULTS.get(word, word),
        values=values,
        nodes=nodes_of(nodes),
        tasks=_count(variables.get("num_tasks")),
        attempt=attempt,
        repeat=repeat or shown_repeat,
        node=node or shown_node,
        phase=str(case.get("fail_phase") or ""),
        reason=" ".join(str(case.get("fail_reason") or "").split()),
        hash=str(case.get("hash" if is_old else "hashcode") or ""),
        file=str(case.get("filename") or ""),
        exclusive=bool(variables.get("exclusive_access")),
        completed=_number(case.get("job_completion_time_unix")) or 0.0,
        seconds=_number(case.get("time_run")) or 0.0,
        proof=from_text(str(variables.get(PROOF) or "")),
    )


def nodes_of(nodes: object) -> tuple[str, ...]:
    """Return the nodes of a job, which ReFrame writes as a list, or as text such as ``n[1-3]``."""
    if not isinstance(nodes, str):
        return tuple(sorted({*map(str, nodes)})) if isinstance(nodes, list) else ()
    try:
        return tuple(sorted({*expand(nodes)})) if nodes else ()
    except HostfileError:
        return (nodes,)


def _values(case: Mapping[str, Any]) -> Iterator[Value]:
    for one in case.get("perfvars") or ():
        yield from value_of(
            one["name"], one["value"], one["unit"], one["thres_lower"], one["thres_upper"]
        )
    yield from values_of(case.get("perfvalues") or {})


def values_of(perfvalues: Mapping[str, Any]) -> Iterator[Value]:
    """Yield the performance variables of a test, as ReFrame keeps them by where they are of."""
    for key, (value, _, lower, upper, unit, *_) in perfvalues.items():
        yield from value_of(str(key).rpartition(":")[2], value, unit, lower, upper)


def value_of(name: object, value: object, unit: object, *bounds: object) -> Iterator[Value]:
    """Yield a value, or none for what is no finite number."""
    figure = _number(value)
    if figure is not None:
        lower, upper = map(_number, bounds)
        yield Value(str(name), figure, "" if unit is None else str(unit), lower, upper)


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or value is True:
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        # An integer of a report may be larger than any float.
        return None


def _count(tasks: object) -> int:
    return tasks if isinstance(tasks, int) and tasks > 0 else 1
