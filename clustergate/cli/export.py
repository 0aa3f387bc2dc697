"""``clustergate export``: stored runs in the forms that dashboards and analyses read."""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clustergate import version
from clustergate.cli.answers import answer_of
from clustergate.cli.passing_on import option
from clustergate.cli.selection import named_folder
from clustergate.cli.tables import Columns, as_csv, as_parquet, print_blocks
from clustergate.core.files.whole import write_whole
from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.notation import counted
from clustergate.core.reasons import Words
from clustergate.judge.history.stored_runs import trial_note
from clustergate.report import export

DESCRIPTION = (
    "Print the figures, verdicts and expectations of stored runs as Prometheus, OpenTelemetry, "
    "OpenSearch or a table reads them. docs/exporting.md lists their names."
)
_WAITS_S = 20.0
_COLUMNS: Columns = {
    **dict.fromkeys(
        ("run", "system", "mode", "started", "partition", "stack", "check", "layout", "figure"), str
    ),
    "value": float,
    "unit": str,
    "verdict": str,
    "undisturbed": bool,
    "reason": str,
}
Answer = Mapping[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "names RUN", 'ids or numbers (r8), "last" or "previous"', nargs="*")
    option(parser, "--format", "default: openmetrics", choices=[*_FORMS], default="openmetrics")
    option(parser, "--output FILE", "write it there, whole or not at all, as textfiles need it")
    option(
        parser,
        "--push URL",
        "send it to a Pushgateway, VictoriaMetrics, an OpenTelemetry collector or OpenSearch",
    )
    option(parser, "--index NAME", "of --format bulk; default: clustergate", default="clustergate")


EXPORT_NO_FIGURES = Words(
    "export.no-figures",
    "{run} has no figures of a check or a gate",
    remedy="`clustergate show {run} --json` prints what it has",
)
EXPORT_SEVERAL = Words(
    "export.several",
    "{format} has one value of each figure, and {count} runs were named",
    remedy="name one run, or take jsonl, csv, parquet or bulk",
)
EXPORT_REFUSED = Words(
    "export.refused",
    "{url} did not take it",
    cause="{why}",
    remedy="send it again: what arrived is replaced, not doubled",
)
EXPORT_BAD_URL = Words(
    "export.bad-url", "{url} is no http or https URL", remedy="begin it with http:// or https://"
)
EXPORT_BINARY = Words("export.binary", "Parquet cannot be pushed", remedy="take --output FILE")


def run(arguments: argparse.Namespace) -> int:
    """Print or send what the runs have; raises :class:`ClustergateError` where nobody took it."""
    named = arguments.names or ["last"]
    url = arguments.push
    if url and not url.startswith(("http://", "https://")):
        raise BadRequest(EXPORT_BAD_URL(url=url))
    if arguments.format in _OF_ONE and len(named) > 1:
        raise BadRequest(EXPORT_SEVERAL(format=arguments.format, count=len(named)))
    answers = []
    for name in named:
        folder = named_folder(name)
        if trial := trial_note(folder):
            raise BadRequest(*trial)
        answers.append(answer := answer_of(folder))
        if "started" not in answer:
            raise BadRequest(EXPORT_NO_FIGURES(run=folder.name))
    if arguments.format == "parquet" and url:
        raise BadRequest(EXPORT_BINARY())
    blocks = _FORMS[arguments.format](answers, arguments.index)
    if not (url or arguments.output):
        print_blocks(blocks, sys.stdout.buffer.write)
        return 0
    content = b"".join(blocks)
    if arguments.output:
        write_whole(Path(arguments.output), content)
    if url:
        _send(content, url, _TYPES.get(arguments.format, "application/json"))
        count = counted(sum(1 for _ in _rows(answers)), "figure")
        print(f"{url} took {count}", file=sys.stderr)
    return 0


def _openmetrics(answers: Sequence[Answer], _: str) -> Iterator[bytes]:
    yield export.openmetrics(export.gauges_of(answers[0])).encode()


def _otlp(answers: Sequence[Answer], _: str) -> Iterator[bytes]:
    yield f"{json.dumps(export.otlp(answers[0], version()))}\n".encode()


def _jsonl(answers: Sequence[Answer], _: str) -> Iterator[bytes]:
    return (f"{json.dumps(row)}\n".encode() for row in _rows(answers))


def _csv(answers: Sequence[Answer], _: str) -> Iterator[bytes]:
    return as_csv(_cells(answers), _COLUMNS)


def _parquet(answers: Sequence[Answer], _: str) -> Iterator[bytes]:
    return as_parquet(_cells(answers), _COLUMNS)


def _bulk(answers: Sequence[Answer], index: str) -> Iterator[bytes]:
    return (f"{line}\n".encode() for line in export.bulk(_rows(answers), index))


def _rows(answers: Iterable[Answer]) -> Iterator[export.Row]:
    return (row for answer in answers for row in export.rows_of(answer))


def _cells(answers: Iterable[Answer]) -> Iterator[list[Any]]:
    return ([row[name] for name in _COLUMNS] for row in _rows(answers))


def _send(content: bytes, url: str, kind: str) -> None:
    """Send something once; raises :class:`ClustergateError` unless the server says it has it.

    A Pushgateway is given what replaces its group; others are posted to.
    """
    method = "PUT" if "/metrics/job/" in url else "POST"
    headers = {"Content-Type": kind}
    request = urllib.request.Request(url, content, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=_WAITS_S) as answer:
            said = answer.read()
    except urllib.error.HTTPError as error:
        said = error.read(300).decode(errors="replace").strip()
        raise ClustergateError(EXPORT_REFUSED(url=url, why=f"{error.code} {said}")) from None
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise ClustergateError(EXPORT_REFUSED(url=url, why=str(why))) from None
    if kind == _TYPES["bulk"] and (failed := _refused_of(said)):
        raise ClustergateError(EXPORT_REFUSED(url=url, why=failed))


def _refused_of(said: bytes) -> str:
    """Return how many documents OpenSearch refused, and why the first one; empty for none."""
    try:
        answer = json.loads(said)
        of_each = [one["index"] for one in answer["items"]]
    except (ValueError, KeyError, TypeError):
        return "its answer is not that of OpenSearch"
    failed = [one for one in of_each if not 200 <= one.get("status", 0) < 300]
    if not failed:
        return ""
    why = (failed[0].get("error") or {}).get("reason", "no reason given")
    return f"{len(failed)} of {counted(len(of_each), 'document')} refused: {why}"


_OF_ONE = ("openmetrics", "otlp")
_FORMS: Mapping[str, Callable[[Sequence[Answer], str], Iterator[bytes]]] = {
    "openmetrics": _openmetrics,
    "otlp": _otlp,
    "jsonl": _jsonl,
    "csv": _csv,
    "bulk": _bulk,
    "parquet": _parquet,
}
_TYPES = {
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "bulk": "application/x-ndjson",
    "csv": "text/csv",
}
