"""``clustergate export``: stored runs in the forms that dashboards and analyses read."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from clustergate.judge.history.listing import SUMMARY, stored_run
from clustergate.judge.history.stored_runs import refuse_trial
from clustergate.report import export, node_states
from clustergate.report.node_states import NodeState
from clustergate.studies.roll.ledger import LEDGER, Ledger, roll_folder
from clustergate.studies.roll.state import Book
from clustergate.studies.screen.plan import is_screening

DESCRIPTION = (
    "Print the figures, verdicts and expectations of stored runs, or the states of nodes, as "
    "Prometheus, OpenTelemetry, OpenSearch, a merge request or a table reads them. "
    "docs/exporting.md lists their names."
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
_NODE_COLUMNS: Columns = {
    **dict.fromkeys(("system", "source", "node", "state", "looked_at", "last_good"), str),
    "log_evidence": float,
    **dict.fromkeys(("accusation", "actions", "reason"), str),
}
Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Exported:
    """What is exported: ``rows`` of ``columns``, which ``keys`` tell apart, or ``gauges``.

    ``time`` is the column of a row's time, ``at_s`` when the gauges hold: both are asked for by
    some forms alone. ``answers`` are those of runs; ``counted`` names the rows.
    """

    rows: Sequence[export.Row]
    columns: Columns
    keys: Sequence[str]
    time: str
    gauges: Callable[[], Sequence[export.Gauge]]
    at_s: Callable[[], float]
    counted: str
    answers: Sequence[Answer] = ()


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "names RUN", 'ids or numbers (r8), "last" or "previous"', nargs="*")
    option(
        parser,
        "--nodes",
        "the states of nodes instead: by the screenings of these runs, or as `clustergate roll` "
        "knows those of these systems (default: all)",
    )
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
EXPORT_NO_NODES = Words(
    "export.no-nodes",
    "{run} is no system that is rolled and no run with a screening that ended",
    remedy="`clustergate list runs` lists the runs; `clustergate roll` screens nodes",
)
EXPORT_NOTHING_ROLLED = Words(
    "export.nothing-rolled",
    "`clustergate roll` has looked at no nodes in {folder}",
    remedy="name a run with a screening: `clustergate export --nodes RUN`",
)
EXPORT_SEVERAL = Words(
    "export.several",
    "{format} is of one run, and {count} were named",
    remedy="name one run, or take jsonl, csv, parquet or bulk",
)
EXPORT_OF_RUNS = Words(
    "export.of-runs", "{format} is of runs, and has no nodes", remedy="leave --nodes out"
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
    url = arguments.push
    if url:
        web.require_http(url)
    if arguments.format == "parquet" and url:
        raise BadRequest(EXPORT_BINARY())
    if arguments.nodes and arguments.format == "markdown":
        raise BadRequest(EXPORT_OF_RUNS(format=arguments.format))
    said = (_of_nodes if arguments.nodes else _of_runs)(arguments)
    blocks = _FORMS[arguments.format](said, arguments.index)
    if not (url or arguments.output):
        print_blocks(blocks, sys.stdout.buffer.write)
        return 0
    content = b"".join(blocks)
    if arguments.output:
        write_whole(Path(arguments.output), content)
    if url and arguments.format == "markdown":
        print(_comment(content.decode(), said.answers[0], url), file=sys.stderr)
    elif url:
        _send(content, url, _TYPES.get(arguments.format, "application/json"))
        print(f"{url} took {counted(len(said.rows), said.counted)}", file=sys.stderr)
    return 0


def _of_runs(arguments: argparse.Namespace) -> Exported:
    named = arguments.names or ["last"]
    if arguments.format in _OF_ONE and len(named) > 1:
        raise BadRequest(EXPORT_SEVERAL(format=arguments.format, count=len(named)))
    answers = []
    for name in named:
        folder = named_folder(name)
        refuse_trial(folder)
        answers.append(answer := answer_of(folder))
        if "started" not in answer:
            raise BadRequest(EXPORT_NO_FIGURES(run=folder.name))
    return Exported(
        [row for answer in answers for row in export.rows_of(answer)],
        _COLUMNS,
        ("run", "partition", "stack", "check", "layout", "figure"),
        "started",
        lambda: export.gauges_of(answers[0]),
        lambda: export.began_s(answers[0]),
        "figure",
        answers,
    )


def _of_nodes(arguments: argparse.Namespace) -> Exported:
    rolls = roll_folder("")
    systems = sorted(path.parent.name for path in rolls.glob(f"*/{LEDGER}"))
    named = arguments.names or systems
    if not named:
        raise BadRequest(EXPORT_NOTHING_ROLLED(folder=rolls))
    states = []
    for name in named:
        states += _rolled(name) if name in systems else _screened(name)
    return Exported(
        node_states.rows_of_nodes(states),
        _NODE_COLUMNS,
        ("system", "source", "node", "looked_at"),
        "looked_at",
        lambda: node_states.gauges_of_nodes(states),
        lambda: max((one.looked_at for one in states), default=0.0),
        "node",
    )


def _rolled(system: str) -> list[NodeState]:
    book = Book(Ledger(roll_folder(system)))
    if book.ledger.torn:
        print(book.ledger.torn, file=sys.stderr)
    return node_states.rolled(system, book.state)


def _screened(name: str) -> list[NodeState]:
    # NumPy takes longer to import than all that most exports need.
    from clustergate.studies.screen import wording
    from clustergate.studies.screen.folder import FOLDER, read_screening

    folder = named_folder(name)
    refuse_trial(folder)
    if not is_screening(folder / FOLDER):
        raise BadRequest(EXPORT_NO_NODES(run=name))
    _, log, screening = read_screening(folder / FOLDER)
    if not log.ended:
        raise BadRequest(EXPORT_NO_NODES(run=name))
    good = wording.calls_good(log, screening)
    stored = stored_run(folder)
    return node_states.screened(stored.system, screening, stored.started.timestamp(), decided=good)


def _openmetrics(said: Exported, _: str) -> Iterator[bytes]:
    yield export.openmetrics(said.gauges()).encode()


def _otlp(said: Exported, _: str) -> Iterator[bytes]:
    run = str(said.answers[0].get("run", "")) if said.answers else ""
    yield f"{json.dumps(export.otlp(said.gauges(), said.at_s(), run, version()))}\n".encode()


def _jsonl(said: Exported, _: str) -> Iterator[bytes]:
    return (f"{json.dumps(row)}\n".encode() for row in said.rows)


def _csv(said: Exported, _: str) -> Iterator[bytes]:
    return as_csv(_cells(said), said.columns)


def _parquet(said: Exported, _: str) -> Iterator[bytes]:
    return as_parquet(_cells(said), said.columns)


def _bulk(said: Exported, index: str) -> Iterator[bytes]:
    lines = export.bulk(said.rows, index, said.keys, said.time)
    return (f"{line}\n".encode() for line in lines)


def _markdown(said: Exported, _: str) -> Iterator[bytes]:
    (answer,) = said.answers
    path = store.run_folder(answer["run"]) / SUMMARY
    screen = path.read_text(encoding="utf-8") if path.is_file() else ""
    yield export.comment(answer, screen).encode()


def _cells(said: Exported) -> Iterator[list[Any]]:
    return ([row[name] for name in said.columns] for row in said.rows)


def _send(content: bytes, url: str, kind: str) -> None:
    """Send something once; raises :class:`ClustergateError` unless the server says it has it.

    A Pushgateway is given what replaces its group; others are posted to.
    """
    method = "PUT" if "/metrics/job/" in url else "POST"
    with _taken(url):
        said = web.send(url, content, {"Content-Type": kind}, method)
    refused = _refused_of(said) if kind == _TYPES["bulk"] else _partly_refused(said)
    if refused:
        raise ClustergateError(EXPORT_REFUSED(url=url, why=refused))


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
            raise web.Unsure(web.NOT_GITLAB) from None
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


def _partly_refused(said: bytes) -> str:
    """Return what a collector of OpenTelemetry left out, by its own words; empty for nothing.

    Of the protocol: OTLP 1.0, "Partial Success". The answers of other servers have no such part.
    """
    try:
        part = json.loads(said)["partialSuccess"]
        points = int(part.get("rejectedDataPoints", 0))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    why = part.get("errorMessage") or "no reason given"
    return f"{counted(points, 'point')} refused: {why}" if points else ""


_OF_ONE = ("openmetrics", "otlp", "markdown")
_FORMS: Mapping[str, Callable[[Exported, str], Iterator[bytes]]] = {
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
