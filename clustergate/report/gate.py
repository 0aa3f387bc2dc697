"""The page of the gate: the answer, why, and where to read more. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from clustergate.gate.decision import CLOSED, OPEN, UNJUDGED, Decision, Evidence
from clustergate.report.html import page_environment
from clustergate.verdicts.coverage import Item

_LOOKS = {OPEN: "pass", CLOSED: "regression", UNJUDGED: "cannot_tell"}


def render_gate(
    decision: Decision,
    evidence: Sequence[Evidence],
    system: str,
    started: str,
    notes: Sequence[str] = (),
    links: Sequence[tuple[str, str]] = (),
    items: Sequence[Item] = (),
) -> str:
    """Return the page; ``links`` are titles and files beside it, ``items`` what must be judged."""
    templates = page_environment()
    parts: dict[str, list[Evidence]] = {}
    for one in evidence:
        parts.setdefault(one.part, []).append(one)
    return templates.get_template("gate.html.j2").render(
        decision=decision,
        look=_LOOKS[decision.status],
        parts=parts,
        system=system,
        started=started,
        notes=notes,
        links=links,
        items=items,
        style=Markup(templates.get_template("report.css").render()),
    )
