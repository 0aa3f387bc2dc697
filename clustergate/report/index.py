"""All systems and runs of a home: how each stands, over time, and who changed what and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from clustergate.benchmarks.registry import every_headline
from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.model import Verdict
from clustergate.core.notation import counted
from clustergate.judge.history.by_system import Overview
from clustergate.judge.history.listing import StoredRun
from clustergate.judge.history.trends import Trend
from clustergate.report import html, page, plots
from clustergate.report.trends import COLUMNS, SMALLEST_HEIGHT, History, worth_showing
from clustergate.run.gate.decision import WORDS
from clustergate.stacks.golden.builds import Golden

FILE = "index.html"
"""In the folder of all runs."""
_DRAWN = 60
_LOOKS = {
    **{verdict.value: verdict.name.lower() for verdict in Verdict},
    **dict.fromkeys(("no faults found", "decided", "equal", "it depends"), "pass"),
    **dict.fromkeys(("faults found", "failed"), "regression"),
    **dict(
        zip(map(str.lower, WORDS.values()), ("pass", "regression", "inconclusive"), strict=True)
    ),
}


@dataclass(frozen=True)
class Accepted:
    """What somebody pinned or accepted: what it is, who did so and when, and why."""

    what: str
    by: str
    why: str


@dataclass(frozen=True)
class Listed:
    """A run and its page, relative to the index, empty where it has none."""

    run: StoredRun
    page: str

    @property
    def look(self) -> str:
        """The class of the style sheet that its verdict has."""
        return _LOOKS.get(self.run.verdict.lower(), "inconclusive" if self.run.verdict else "")


def pinned(builds: Iterable[Golden]) -> list[Accepted]:
    """Return who pinned which golden builds."""
    return [
        Accepted(f"golden build of {one.stack}", f"{one.by} {one.pinned[:10]}", one.note)
        for one in builds
    ]


def accepted(system: str, remarks: Iterable[tuple[str, str]]) -> list[Accepted]:
    """Return who made which baselines of a system, and what they accepted as it was.

    The ``remarks`` are those of :attr:`clustergate.judge.references.lookup.References.accepted`.
    """
    return [Accepted(f"baseline of {system}", by, remark) for by, remark in remarks]


def merged(marks: Iterable[Mapping[str, Any]]) -> list[Accepted]:
    """Return who brought runs from elsewhere; ``marks`` are those of the runs."""
    brought = Counter(
        (str(one.get("from")), f"{one.get('by')} {str(one.get('at'))[:10]}") for one in marks
    )
    return [
        Accepted(f"{counted(runs, 'run')} merged", by, f"from {source}")
        for (source, by), runs in brought.items()
    ]


def _line(levels: Sequence[float]) -> Markup:
    """Draw a benchmark's last runs; more than these are no wider than a dot apart."""
    last = levels[-_DRAWN:]
    description = f"{counted(len(last), 'run')}, higher is faster"
    return plots.trend(last, [], least=SMALLEST_HEIGHT, description=description)


def render(
    runs: Sequence[Listed],
    trends: Sequence[Trend],
    accepted: Sequence[Accepted],
    folder: Path,
    systems: Overview,
    invocation: Invocation = NO_CALL,
) -> str:
    """Return the page: ``runs`` as they come, ``trends`` of the headlines alone.

    ``accepted`` is who changed what, ``systems`` how each stands.
    """
    first = {(one.check, one.benchmark, one.metric) for one in every_headline() if one.first}
    shown = [
        one
        for one in worth_showing(one for one in trends if len(one.moments) > 1)
        if one.shifts or (one.case.check, one.benchmark, one.metric) in first
    ]
    return page.render(
        "index.html.j2",
        scripted=True,
        invocation=invocation,
        beside="",
        runs=runs,
        systems=systems,
        pages={one.run.run: one.page for one in runs},
        line=_line,
        history=html.history_rows(History(shown)),
        trends_left_out=max(0, len(shown) - html.TRENDS_AT_MOST),
        trend_columns=COLUMNS,
        shifted=any(one.shifts for one in shown),
        accepted=accepted,
        folder=folder,
    )
