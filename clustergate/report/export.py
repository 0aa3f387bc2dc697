"""A stored run in the forms that dashboards read. Pure.

The names and labels are those of ``docs/exporting.md``; what is said of them there holds as long as
:data:`SCHEMA` is the same.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clustergate.core.model import Standing, Verdict

SCHEMA = 1
"""Of names and labels: another number where one is renamed, removed, or means something else."""
_GOOD = (Verdict.PASS.value, Verdict.IMPROVEMENT.value)
_WRONG = (Verdict.REGRESSION.value, Verdict.IMPOSSIBLE.value, Verdict.INVALID.value)
_DECIDED = (Standing.MET.value, Standing.MISSED.value)
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_NS_PER_S = 1_000_000_000
_MOST_ROWS = 20
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Gauge:
    """A metric and its values, each by its labels."""

    name: str
    help: str
    values: Sequence[tuple[Mapping[str, str], float]]


def rows_of(answer: Mapping[str, Any]) -> list[Row]:
    """Return a run's figures, a row each, as its JSON has them.

    A run that is no check and no gate has none.
    """
    run = {key: answer.get(key, "") for key in ("run", "system", "mode", "started")}
    rows: list[Row] = []
    for case in answer.get("cases", ()):
        layout = ", ".join(f"{k}={v}" for k, v in case.get("parameters", {}).items())
        of_case = {key: case.get(key, "") for key in ("partition", "stack", "check")}
        for figure in case.get("figures", ()):
            doubt = figure.get("doubt")
            rows.append(
                {
                    **run,
                    **of_case,
                    "layout": layout,
                    "figure": figure["name"],
                    "value": figure["value"],
                    "unit": figure["unit"],
                    "verdict": figure["verdict"],
                    # Disturbed, it is a bound: noise makes a launch slower, never faster.
                    "undisturbed": not doubt,
                    "reason": "; ".join(one["sentence"] for one in figure.get("reasons", ())),
                }
            )
    return rows


def began_s(answer: Mapping[str, Any]) -> float:
    """Return when a run began, in seconds since 1970; raises ValueError for a time that is none."""
    return datetime.datetime.fromisoformat(answer["started"]).timestamp()


def gauges_of(answer: Mapping[str, Any]) -> list[Gauge]:
    """Return what a run says in numbers; raises ValueError for a time that is none."""
    rows = rows_of(answer)
    of_run = {key: str(answer.get(key, "")) for key in ("system", "mode")}
    started_s = began_s(answer)
    verdicts = Counter(row["verdict"] for row in rows)
    states = Counter(str(case.get("state")) for case in answer.get("cases", ()))
    judged = [row for row in rows if row["verdict"] in {*_GOOD, *_WRONG}]
    met = [one for one in answer.get("expectations", ()) if one["standing"] in _DECIDED]
    return [
        Gauge("clustergate_schema_version", "Of these names and labels.", [({}, float(SCHEMA))]),
        Gauge(
            "clustergate_run_started_timestamp_seconds",
            "When the run began, in seconds since 1970.",
            [({**of_run, "run": str(answer.get("run", ""))}, started_s)],
        ),
        Gauge(
            "clustergate_run_exit_status",
            "0 no fault found, 1 slower or missed, 2 failed, not proven or not judged.",
            [(of_run, float(answer.get("exit_status") or 0))],
        ),
        Gauge(
            "clustergate_gate_open",
            "1 where a gate opened, 0 where it did not.",
            [
                ({**of_run, "code": gate["code"]}, float(gate["code"] == "open"))
                for gate in [answer.get("gate", {})]
                if gate.get("code")
            ],
        ),
        Gauge(
            "clustergate_run_cases",
            "Cases of the run by what became of them.",
            [({**of_run, "state": state}, float(n)) for state, n in sorted(states.items())],
        ),
        Gauge(
            "clustergate_run_figures",
            "Figures of the run by verdict.",
            # One that no figure has any more is 0, and not what it was.
            [({**of_run, "verdict": v.value}, float(verdicts[v.value])) for v in Verdict],
        ),
        Gauge(
            "clustergate_figure",
            "A figure in its own unit; a bound where undisturbed is false.",
            [
                (_labels(row, "unit", "undisturbed"), float(row["value"]))
                for row in rows
                if row["value"] is not None
            ],
        ),
        Gauge(
            "clustergate_figure_ok",
            "1 pass or improvement, 0 regression, impossible or invalid; no value where undecided.",
            [(_labels(row), float(row["verdict"] in _GOOD)) for row in judged],
        ),
        Gauge(
            "clustergate_expectation_met",
            "1 where what the site expects was met, 0 where it was missed.",
            [
                (
                    {**of_run, "expectation": one["name"], "of": one.get("of") or ""},
                    float(one["standing"] == Standing.MET.value),
                )
                for one in met
            ],
        ),
    ]


def _labels(row: Row, *more: str) -> dict[str, str]:
    keys = ("system", "mode", "partition", "stack", "check", "layout", "figure", *more)
    return {key: str(row[key]).lower() if row[key] in (True, False) else row[key] for key in keys}


def openmetrics(gauges: Iterable[Gauge]) -> str:
    """Return the text that Prometheus scrapes, and its node_exporter reads from files.

    Without times, which node_exporter refuses. Of the format: OpenMetrics 1.0, RFC draft, 2020.
    """
    lines = []
    for one in gauges:
        lines += [f"# HELP {one.name} {one.help}", f"# TYPE {one.name} gauge"]
        for labels, value in one.values:
            written = ",".join(f'{k}="{v.translate(_ESCAPED)}"' for k, v in labels.items())
            lines.append(
                f"{one.name}{{{written}}} {value!r}" if written else f"{one.name} {value!r}"
            )
    return "\n".join([*lines, "# EOF", ""])


def otlp(gauges: Iterable[Gauge], at_s: float, run: str, version: str) -> dict[str, Any]:
    """Return an ``ExportMetricsServiceRequest`` of OpenTelemetry in its JSON form, one resource.

    ``at_s`` is since when its values hold, in seconds since 1970; ``run`` names its resource.
    """
    at = str(int(at_s) * _NS_PER_S)
    metrics = [
        {
            "name": one.name,
            "description": one.help,
            "gauge": {
                "dataPoints": [
                    {"attributes": _attributes(labels), "timeUnixNano": at, "asDouble": value}
                    for labels, value in one.values
                ]
            },
        }
        for one in gauges
        if one.values
    ]
    resource = {"service.name": "clustergate", "clustergate.run": run}
    scope = {"name": "clustergate", "version": version}
    return {
        "resourceMetrics": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeMetrics": [{"scope": scope, "metrics": metrics}],
            }
        ]
    }


def _attributes(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in labels.items()]


def bulk(rows: Iterable[Row], index: str, keys: Sequence[str], at: str) -> Iterator[str]:
    """Yield the lines of OpenSearch's bulk form: what is sent twice is there once, by its id.

    That is made of the columns ``keys``; the column ``at`` has the time, or nothing.
    """
    for row in rows:
        its = hashlib.sha256("\0".join(str(row[k]) for k in keys).encode()).hexdigest()[:32]
        yield json.dumps({"index": {"_index": index, "_id": its}})
        yield json.dumps(({"@timestamp": row[at]} if row[at] else {}) | {**row})


def changes_in(answer: Mapping[str, Any]) -> list[Row]:
    """Return the figures of a run that are not as before, the wrong ones first."""
    changed = (*_WRONG, Verdict.IMPROVEMENT.value)
    rows = [row for row in rows_of(answer) if row["verdict"] in changed]
    return sorted(rows, key=lambda row: changed.index(row["verdict"]))


def marker_of(answer: Mapping[str, Any]) -> str:
    """Return the first line of a run's comment, by which a later one of its kind replaces it."""
    stacks = sorted({str(case.get("stack")) for case in answer.get("cases", ())})
    named = " ".join([str(answer.get("system")), str(answer.get("mode")), *stacks])
    return f"<!-- clustergate {named.replace('--', '')} -->"


def comment(answer: Mapping[str, Any], screen: str) -> str:
    """Return a run as Markdown for a merge request: its ``screen``, and what is not as before."""
    rows = changes_in(answer)
    lines = [marker_of(answer), "```text", *screen.replace("`" * 3, "").strip().splitlines(), "```"]
    if rows:
        lines += ["", "| result | stack | value | verdict | why |", "|---|---|---|---|---|"]
        lines += [
            "| " + " | ".join(map(_in_a_cell, cells)) + " |"
            for cells in (
                (row["figure"], row["stack"], _value(row), row["verdict"], row["reason"])
                for row in rows[:_MOST_ROWS]
            )
        ]
    if more := rows[_MOST_ROWS:]:
        lines += ["", f"{len(more)} more are in report.html among the artifacts."]
    return "\n".join([*lines, ""])


def _value(row: Row) -> str:
    return "-" if row["value"] is None else f"{row['value']:.4g} {row['unit']}"


def _in_a_cell(text: str) -> str:
    """Return a text that neither ends its cell nor is anything but text."""
    plain = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\|`*_<>[]#@!" else c for c in plain)
