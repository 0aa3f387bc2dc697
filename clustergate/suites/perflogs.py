"""Performance logs of ReFrame 4.6 to 4.10: a line for each test, below a line of its columns.

They do not tell sessions. What ended before the same test ends again is taken for one.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from clustergate.core.reasons import Words
from clustergate.suites.reports import nodes_of, value_of
from clustergate.suites.sessions import (
    PROOF,
    SUITE_UNREADABLE,
    Result,
    Session,
    SuiteError,
    Value,
    from_text,
    named,
)

FORM = "a performance log"
SUITE_COLUMNS = Words(
    "suite.columns",
    "{path} lacks the columns {lacking:names}",
    remedy="log at least %(check_job_completion_time)s|%(check_#ALL)s, as ReFrame does by default",
)
SUITE_FIELDS = Words(
    "suite.fields",
    "line {line} of {path} has {fields} fields below {columns} columns",
    cause="it is damaged, or a value has {separator!r} in it",
    remedy="read report files instead, or mend the line; as separator, log what no value has",
)
SUITE_DATE = Words(
    "suite.date",
    "line {line} of {path} has no date of ISO 8601 but {date!r}",
    remedy="leave `datefmt` out, or log %(check_job_completion_time_unix)s",
)
# Nothing of a suite ends so long after the test before it.
_PAUSE_S = 6 * 3600.0
_NEEDED = ("name", "system", "partition", "environ")
_TIMES = ("job_completion_time_unix", "job_completion_time")


def sessions_in(paths: Iterable[Path]) -> list[Session]:
    """Return the sessions that some logs tell of; raises :class:`SuiteError`."""
    results = [one for path in paths for one in results_in(path)]
    return list(_sessions(sorted(results, key=lambda one: one.completed)))


def results_in(path: Path) -> Iterator[Result]:
    """Yield what each line of a log says; raises :class:`SuiteError`.

    A last line that is cut off is left out: ReFrame may be writing it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SuiteError(SUITE_UNREADABLE(path=path, form=FORM, why=error)) from None
    head, *lines = text.split("\n")
    separator = next(iter(re.findall(r"[^\w#.]+", head)), "|")
    bare = separator.rstrip()
    columns = head.split(separator)
    lacking = [name for name in _NEEDED if name not in columns]
    lacking += [_TIMES[1]] if not {*_TIMES} & {*columns} else []
    if lacking:
        raise SuiteError(SUITE_COLUMNS(path=path, lacking=lacking))
    for number, line in enumerate(lines, 2):
        # ReFrame leaves out spaces at the end of a line, also those of a separator.
        fields = (line.removesuffix(bare) if bare != separator else line).split(separator)
        # A format may end with a separator.
        if len(fields) == len(columns) or (len(fields) == len(columns) + 1 and not fields[-1]):
            yield _result(dict(zip(columns, fields, strict=False)), path, number)
        elif line and number <= len(lines):
            counts = {"fields": len(fields), "columns": len(columns), "separator": separator}
            raise SuiteError(SUITE_FIELDS(path=path, line=number, **counts))


def _result(line: Mapping[str, str], path: Path, number: int) -> Result:
    test, parameters, repeat, node = named(line["name"])
    tasks = line.get("num_tasks", "")
    try:
        completed = _completed(line)
    except ValueError:
        date = next(line[name] for name in _TIMES if name in line)
        raise SuiteError(SUITE_DATE(path=path, line=number, date=date)) from None
    try:
        proof = from_text(line.get(PROOF, ""))
    except ValueError as error:
        why = f"line {number}: {error}"
        raise SuiteError(SUITE_UNREADABLE(path=path, form=FORM, why=why)) from None
    return Result(
        test=test,
        parameters=parameters,
        system=line["system"],
        partition=line["partition"],
        environ=line["environ"],
        result=line.get("result", "pass"),
        values=tuple(_values(line)),
        nodes=nodes_of(line.get("job_nodelist", "")),
        tasks=int(tasks) if tasks.isdigit() and int(tasks) else 1,
        repeat=repeat,
        node=node,
        hash=line.get("hashcode", ""),
        exclusive=line.get("exclusive_access") == "true",
        completed=completed,
        proof=proof,
    )


def _completed(line: Mapping[str, str]) -> float:
    if _TIMES[0] in line:
        return float(line[_TIMES[0]])
    moment = datetime.datetime.fromisoformat(line[_TIMES[1]])
    return moment.astimezone().timestamp()


def _values(line: Mapping[str, str]) -> Iterator[Value]:
    if "perf_var" in line:
        # One line for each variable, as a format of one's own may have it.
        names = {line["perf_var"]: "perf"}
    else:
        names = {one.removesuffix("_value"): "" for one in line if one.endswith("_value")}
    for name, column in names.items():
        of = column or name
        bounds = (_number(line.get(f"{of}_{side}_thres")) for side in ("lower", "upper"))
        value = _number(line.get(f"{of}_value"))
        yield from value_of(name, value, line.get(f"{of}_unit", ""), *bounds)


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _sessions(results: Iterable[Result]) -> Iterator[Session]:
    ended: dict[object, Result] = {}
    last = 0.0
    for one in results:
        where = (one.system, one.partition, one.environ, one.node)
        names = tuple(value.name for value in one.values)
        key = (one.test, one.parameters, one.repeat, where, names)
        if ended and (key in ended or one.completed - last > _PAUSE_S):
            yield _session(ended.values())
            ended = {}
        ended[key] = one
        last = one.completed
    if ended:
        yield _session(ended.values())


def _session(results: Iterable[Result]) -> Session:
    every = tuple(results)
    first, last = (
        datetime.datetime.fromtimestamp(end, datetime.timezone.utc).astimezone()
        for end in (every[0].completed, every[-1].completed)
    )
    return Session(f"log-{first:%Y%m%dT%H%M%S}", first, every, last)
