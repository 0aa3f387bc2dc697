"""The page of the gate: the answer, why, and where to read more."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from clustergate.gate.decision import CLOSED, OPEN, UNJUDGED, Decision, Evidence
from clustergate.report import page
from clustergate.verdicts.coverage import Item

_LOOKS = {OPEN: "pass", CLOSED: "regression", UNJUDGED: "inconclusive"}


def render_gate(
    decision: Decision,
    evidence: Sequence[Evidence],
    system: str,
    started: datetime.datetime,
    folder: Path,
    notes: Sequence[str] = (),
    items: Sequence[Item] = (),
) -> str:
    """Return the page of a gate, with links to those other pages that are in its run's folder.

    ``items`` are what must be judged.
    """
    parts: dict[str, list[Evidence]] = {}
    for one in evidence:
        parts.setdefault(one.part, []).append(one)
    return page.render(
        "gate.html.j2",
        decision=decision,
        look=_LOOKS[decision.status],
        parts=parts,
        system=system,
        started=started.isoformat(timespec="seconds"),
        notes=notes,
        links=_links(folder),
        items=items,
    )


def _links(folder: Path) -> list[tuple[str, str]]:
    """Return titles and files of the pages in the folder of a run."""
    pages = [("the screening, with its heat map", folder / "screening" / "screening.html")]
    pages += [
        (f"the screening of {path.parents[1].name}", path)
        for path in sorted(folder.glob("*/screening/screening.html"))
    ]
    pages.append(("the benchmarks", folder / "report.html"))
    return [(title, str(path.relative_to(folder))) for title, path in pages if path.is_file()]
