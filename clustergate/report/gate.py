"""The page of the gate: the answer, why, and where to read more."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from clustergate.gate.decision import CLOSED, OPEN, UNJUDGED, Decision, Evidence
from clustergate.report.html import page_environment
from clustergate.verdicts.coverage import Item

_LOOKS = {OPEN: "pass", CLOSED: "regression", UNJUDGED: "inconclusive"}


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


def page_of(
    decision: Decision,
    evidence: Sequence[Evidence],
    system: str,
    started: datetime.datetime,
    folder: Path,
    notes: Sequence[str],
    items: Sequence[Item],
) -> str:
    """Return the page of a gate, with links to the other pages in the folder of its run."""
    pages = [("the screening, with its heat map", folder / "screening" / "screening.html")]
    pages += [
        (f"the screening of {path.parents[1].name}", path)
        for path in sorted(folder.glob("*/screening/screening.html"))
    ]
    pages.append(("the benchmarks", folder / "report.html"))
    links = [(title, str(path.relative_to(folder))) for title, path in pages if path.is_file()]
    when = started.isoformat(timespec="seconds")
    return render_gate(decision, evidence, system, when, notes, links, items)
