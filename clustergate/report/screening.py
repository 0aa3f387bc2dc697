"""The page of a screening: one HTML file with its findings and a heat map of each measure. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from clustergate.report.heat_map import CLASSES, classes, heat_map
from clustergate.report.html import page_environment
from clustergate.screening.findings import Screening, told_confidence
from clustergate.screening.measures import PAIRS, Measure, Result

_LOOKS = {0: "pass", 1: "regression", 2: "cannot_tell"}


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


def render_screening(page: Page, found: Screening, results: Sequence[Result]) -> str:
    """Return the page of a screening."""
    templates = page_environment()
    return templates.get_template("screening.html.j2").render(
        system=page.system,
        started=page.started,
        word=page.word,
        sentence=page.sentence,
        look=_LOOKS[page.status],
        found=found,
        confidence=told_confidence,
        forms=page.forms,
        maps=[(measure.title, map_of(measure, found, results)) for measure in _mapped(found)],
        classes=CLASSES,
        notes=[*page.notes, *found.notes],
        style=Markup(templates.get_template("report.css").render()),
    )


def _mapped(found: Screening) -> list[Measure]:
    return [m for m in PAIRS if m.key in found.located and found.located[m.key].centres]


def map_of(measure: Measure, found: Screening, results: Sequence[Result]) -> Markup:
    """Return the heat map of a measure of pairs; ``results`` are those of the screening."""
    index = {name: k for k, name in enumerate(found.names)}
    located = found.located[measure.key]
    relevant = [r for r in results if r.kind == measure.kind and len(r.nodes) == 2]
    pairs = np.array([[index[n] for n in r.nodes] for r in relevant], dtype=np.int64)
    levels = np.array(
        [measure.level(r.values[measure.key]) if r.values else math.inf for r in relevant]
    )
    usual = np.full(len(levels), next(iter(located.centres.values())))
    if "other" in located.centres and found.switch_of:
        same = [found.switch_of[a] == found.switch_of[b] for a, b in (r.nodes for r in relevant)]
        usual = np.where(same, located.centres["same switch"], located.centres["other"])
    grid = classes(len(found.names), pairs, levels - usual, located.threshold)
    slow = int((grid > 0).sum())
    drawn = heat_map(
        grid,
        found.names,
        name=f"map-{measure.key}",
        description=f"{measure.title} of {len(found.names)} {found.what}s with each other: {slow} "
        f"of {grid.size} cells are slow or failed",
    )
    return Markup(drawn)
