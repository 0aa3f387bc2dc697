"""A screening as one HTML page with heat maps, and in the forms that are needed next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from markupsafe import Markup

from clustergate import store
from clustergate.report import page as frame
from clustergate.report.heat_map import CLASSES, classes, heat_map
from clustergate.screening import folder, wording
from clustergate.screening.findings import (
    Screening,
    confidence_text,
    hostfile_lines,
    scontrol_lines,
    ticket,
)
from clustergate.screening.measures import PAIRS, Measure, Result
from clustergate.screening.plan import Log
from clustergate.wording.notation import printable

TICKET, SCONTROL, HOSTFILE, PAGE = "ticket.txt", "scontrol.sh", "hostfile.txt", "screening.html"
_LOOKS = {0: "pass", 1: "regression", 2: "inconclusive"}


@dataclass(frozen=True)
class Page:
    """What a page says beside the findings: ``status`` is that of ``clustergate screen``.

    ``forms`` are titled texts to copy, ``notes`` sentences.
    """

    system: str
    started: str
    word: str
    sentence: str
    status: int
    forms: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def render_screening(page: Page, screening: Screening, results: Sequence[Result]) -> str:
    """Return the page of a screening."""
    return frame.render(
        "screening.html.j2",
        system=page.system,
        started=page.started,
        word=page.word,
        sentence=page.sentence,
        look=_LOOKS[page.status],
        screening=screening,
        confidence=confidence_text,
        forms=page.forms,
        maps=[
            (measure.title, map_of(measure, screening, results)) for measure in _mapped(screening)
        ],
        classes=CLASSES,
        notes=[*page.notes, *screening.notes],
    )


def _mapped(screening: Screening) -> list[Measure]:
    return [m for m in PAIRS if m.key in screening.located and screening.located[m.key].centres]


def map_of(measure: Measure, screening: Screening, results: Sequence[Result]) -> Markup:
    """Return the heat map of a measure of pairs; ``results`` are those of the screening."""
    index = {name: k for k, name in enumerate(screening.names)}
    located = screening.located[measure.key]
    relevant = [r for r in results if r.kind == measure.kind and len(r.nodes) == 2]
    pairs = np.array([[index[n] for n in r.nodes] for r in relevant], dtype=np.int64)
    levels = np.array(
        [measure.level(r.values[measure.key]) if r.values else math.inf for r in relevant]
    )
    usual = np.full(len(levels), next(iter(located.centres.values())))
    if "other" in located.centres and screening.switch_of:
        switch_of = screening.switch_of
        same = [switch_of[a] == switch_of[b] for a, b in (r.nodes for r in relevant)]
        usual = np.where(same, located.centres["same switch"], located.centres["other"])
    grid = classes(len(screening.names), pairs, levels - usual, located.threshold)
    slow = int((grid > 0).sum())
    drawn = heat_map(
        grid,
        screening.names,
        name=f"map-{measure.key}",
        description=f"{measure.title} between {len(screening.names)} {screening.what}s: {slow} of "
        f"{grid.size} cells are slow or failed",
    )
    return Markup(drawn)


def write_forms(log: Log, screening: Screening, system: str, where: Path) -> None:
    """Write the ticket and, of nodes, what Slurm and the hostfile want, and the page."""
    when = folder.started(where)
    status = wording.exit_status(log, screening)
    texts = {TICKET: ticket(screening, system, when)}
    if screening.what == "node":
        texts[SCONTROL] = _text(scontrol_lines(screening, when.date()))
        texts[HOSTFILE] = _text(hostfile_lines(screening, when.date()))
    page = Page(
        system=system,
        started=when.isoformat(timespec="seconds"),
        word=wording.word_for(status, screening),
        sentence=f"clustergate screen: exit status {status}: {wording.MEANINGS[status]}.",
        status=status,
        forms=[(_FORMS[name], text) for name, text in texts.items() if text and screening.findings],
        notes=[*wording.whole_notes(log), *log.notes],
    )
    texts[PAGE] = render_screening(page, screening, log.results)
    for name, text in texts.items():
        store.write_text(where / name, printable(text))


_FORMS = {TICKET: "For a ticket", SCONTROL: "For Slurm", HOSTFILE: "For the hostfile"}


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
