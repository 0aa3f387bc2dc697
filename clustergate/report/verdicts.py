"""The verdicts of a run for programs: one JSON document, each with its reasons as data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.files.stored import encode
from clustergate.core.model import Case, Figure, Group, Judgement, Run
from clustergate.core.reasons import Reason, reason_as_json
from clustergate.core.texts import figure_name, group_name
from clustergate.report.summary import status_of

FILE = "verdicts.json"
"""In the folder of a run."""


def as_json(run: Run, invocation: Invocation = NO_CALL) -> dict[str, Any]:
    """Return a run with the verdicts and reasons of all its cases; what is not finite is null."""
    document = {
        "run": run.run_id,
        "system": run.system,
        "mode": run.mode,
        "started": run.started,
        "cases": list(map(_case, run.cases)),
        "unjudged": _reasons(run.unjudged),
        "expectations": encode(run.expectations),
        "evidence": encode(run.evidence),
        "sharing": run.sharing,
        "trial": run.trial,
        "finds_percent": {name: 100 * math.expm1(by) for name, by in run.finds.items()},
        "exit_status": status_of(run),
    }
    return {key: _finite(invocation.in_json(value)) for key, value in document.items()}


def _case(case: Case) -> dict[str, Any]:
    return {
        "check": case.check,
        "stack": case.stack,
        "partition": case.partition,
        "parameters": dict(case.parameters),
        "state": case.state.value,
        "reasons": _reasons(case.reasons),
        "figures": list(map(_figure, case.figures)),
        "groups": list(map(_group, case.groups)),
    }


def _figure(figure: Figure) -> dict[str, Any]:
    value = figure.estimate.value if figure.estimate else None
    described = {"name": figure_name(figure), "value": value, "unit": figure.unit}
    doubt = reason_as_json(figure.doubt) if figure.doubt else None
    return {**described, **_judgement(figure.judgement), "doubt": doubt}


def _group(group: Group) -> dict[str, Any]:
    return {"name": group_name(group), **_judgement(group.judgement)}


def _judgement(judgement: Judgement) -> dict[str, Any]:
    return {"verdict": judgement.verdict.value, "reasons": _reasons(judgement.reasons)}


def _reasons(reasons: Iterable[Reason]) -> list[dict[str, Any]]:
    return list(map(reason_as_json, reasons))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return list(map(_finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value
