"""``clustergate export``: stored runs in the forms that dashboards and analyses read."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clustergate import version
from clustergate.cli.answers import answer_of
from clustergate.cli.passing_on import option
from clustergate.cli.selection import named_folder
from clustergate.cli.tables import Columns, as_csv, as_parquet, print_blocks
from clustergate.core import store, web
from clustergate.core.files.whole import write_whole
from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.notation import counted
from clustergate.core.reasons import Words
from clustergate.judge.history.listing import SUMMARY
from clustergate.judge.history.stored_runs import refuse_trial
from clustergate.report import export

DESCRIPTION = (
    "Print the figures, verdicts and expectations of stored runs as Prometheus, OpenTelemetry, "
    "OpenSearch, a merge request or a table reads them. docs/exporting.md lists their names."
)
_MOST_PAGES = 100
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
    kinds = f"{', '.join([*_FORMS][:-1])} or {[*_FORMS][-1]}; default: openmetrics"
    option(parser, "--format FORMAT", kinds, choices=[*_FORMS], default="openmetrics")
    option(parser, "--output FILE", "write it there, whole or not at all, as textfiles need it")
    option(
        parser,
        "--push URL",
        "send it to a Pushgateway, VictoriaMetrics, an OpenTelemetry collector, OpenSearch, or the "
        "notes of a merge request on GitLab",
    )
    option(parser, "--index NAME", "of --format bulk; default: clustergate", default="clustergate")


EXPORT_NO_FIGURES = Words(
    "export.no-figures",
    "{run} has no figures of a check or a gate",
    remedy="`clustergate show {run} --json` prints what it has",
)
EXPORT_SEVERAL = Words(
    "export.several",
    "{format} is of one run, and {count} were named",
    remedy="name one run, or take jsonl, csv, parquet or bulk",
)
EXPORT_REFUSED = Words(
    "export.refused",
    "{url} did not take it",
    cause="{why}",
    remedy="send it again: what arrived is replaced, not doubled",
)
EXPORT_BINARY = Words("export.binary", "Parquet cannot be pushed", remedy="take --output FILE")


def run(arguments: argparse.Namespace) -> int:
    """Print or send what the runs have; raises :class:`ClustergateError` where nobody took it."""
    named = arguments.names or ["last"]
    url = arguments.push
    if url:
        web.require_http(url)
    if arguments.format in _OF_ONE and len(named) > 1:
        raise BadRequest(EXPORT_SEVERAL(format=arguments.format, count=len(named)))
    answers = []
    for name in named:
        folder = named_folder(name)
        refuse_trial(folder)
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
    if url and arguments.format == "markdown":
        print(_comment(content.decode(), answers[0], url), file=sys.stderr)
    elif url:
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


def _markdown(answers: Sequence[Answer], _: str) -> Iterator[bytes]:
    path = store.run_folder(answers[0]["run"]) / SUMMARY
    screen = path.read_text(encoding="utf-8") if path.is_file() else ""
    yield export.comment(answers[0], screen).encode()


def _rows(answers: Iterable[Answer]) -> Iterator[export.Row]:
    return (row for answer in answers for row in export.rows_of(answer))


def _cells(answers: Iterable[Answer]) -> Iterator[list[Any]]:
    return ([row[name] for name in _COLUMNS] for row in _rows(answers))


def _send(content: bytes, url: str, kind: str) -> None:
    """Send something once; raises :class:`ClustergateError` unless the server says it has it.

    A Pushgateway is given what replaces its group; others are posted to.
    """
    method = "PUT" if "/metrics/job/" in url else "POST"
    with _taken(url):
        said = web.send(url, content, {"Content-Type": kind}, method)
    if kind == _TYPES["bulk"] and (failed := _refused_of(said)):
        raise ClustergateError(EXPORT_REFUSED(url=url, why=failed))


@contextlib.contextmanager
def _taken(url: str) -> Iterator[None]:
    """Say as :class:`ClustergateError` why a server did not take something."""
    try:
        yield
    except (web.NotTaken, web.Unsure) as error:
        raise ClustergateError(EXPORT_REFUSED(url=url, why=str(error))) from None


def _comment(text: str, answer: Answer, url: str) -> str:
    """Say something in a merge request of GitLab, in the place of what was said of such a run.

    Where nothing was said and nothing is to be said, it is silent. Returns what it did. ``url`` is
    that of the merge request's notes. Raises :class:`ClustergateError`.
    """
    with _taken(url):
        if (before := _note_like(export.marker_of(answer), url)) is not None:
            web.ask_gitlab("PUT", f"{url}/{before}", {"body": text})
            return f"{url} says it in the place of what it said"
        if not (export.changes_in(answer) or answer.get("exit_status")):
            return "nothing is not as before: no comment"
        web.ask_gitlab("POST", url, {"body": text})
        return f"{url} says it"


def _note_like(marker: str, url: str) -> int | None:
    """Return the number of the note that begins with a marker, None where there is none."""
    for page in range(1, _MOST_PAGES):
        said = web.ask_gitlab("GET", f"{url}?per_page=100&page={page}")
        try:
            notes = [(str(note["body"]), int(note["id"])) for note in said]
        except (ValueError, KeyError, TypeError):
            raise web.Unsure("its answer is not that of GitLab") from None
        for text, number in notes:
            if text.startswith(marker):
                return number
        if not notes:
            break
    return None


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


_OF_ONE = ("openmetrics", "otlp", "markdown")
_FORMS: Mapping[str, Callable[[Sequence[Answer], str], Iterator[bytes]]] = {
    "openmetrics": _openmetrics,
    "otlp": _otlp,
    "jsonl": _jsonl,
    "csv": _csv,
    "bulk": _bulk,
    "markdown": _markdown,
    "parquet": _parquet,
}
_TYPES = {
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "bulk": "application/x-ndjson",
    "csv": "text/csv",
}
