"""The published evaluations on the terminal. Pure: facts and findings in, text out."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.table import Table

from clustergate.core.notation import number
from clustergate.report import console
from evaluations import tables
from evaluations.evidence import Subject
from evaluations.facts import STANDS, Paper
from evaluations.inference import Outcome
from evaluations.recomputed import recompute
from evaluations.rows import DerivedRow
from evaluations.sheet import BesideRow, Conclusion, Drawing

_OF_VALUE = ("id", "system", "benchmark", "metric", "unit", "value", "low", "high", "standing")


@dataclass(frozen=True)
class Findings:
    """A paper beside what was measured: all that a report says.

    ``machine`` are the facts of the one at hand, as those of systems are named; ``roles`` are the
    subjects that stand for systems.
    """

    paper: Paper
    subjects: Sequence[Subject]
    rows: Sequence[BesideRow]
    conclusions: Sequence[Conclusion]
    drawings: Sequence[Drawing]
    derived: Sequence[DerivedRow]
    notes: Sequence[str]
    machine: Mapping[str, Any] = field(default_factory=dict)
    roles: Mapping[str, Subject] = field(default_factory=dict)

    @property
    def measured_with(self) -> str:
        """Return the names of the subjects, with the systems of the paper that each stands for."""
        told = []
        for one in self.subjects:
            played = [name for name, who in self.roles.items() if who is one and name != one.name]
            told.append(f"{one.name} (for {', '.join(played)})" if played else one.name)
        return ", ".join(told)

    @property
    def counts(self) -> dict[str, int]:
        """Return how many conclusions have which summary, the commonest first."""
        return dict(Counter(one.summary for one in self.conclusions).most_common())

    @property
    def soon_decided(self) -> list[str]:
        """Return the conclusions that more launches would probably decide, or contradict."""
        return [
            one.predicate.id for one in self.conclusions if any(here.further for here in one.here)
        ]

    @property
    def unplayed(self) -> list[str]:
        """Return the conclusions that lack who stands for a system."""
        return [
            one.predicate.id
            for one in self.conclusions
            if any("stands for" in here.sentence for here in one.here)
        ]

    def plain(self) -> dict[str, Any]:
        """Return what a script is told: values and conclusions, by the subjects' names."""
        return {
            "paper": self.paper.id,
            "subjects": [one.name for one in self.subjects],
            "roles": {name: one.name for name, one in self.roles.items()},
            "values": [
                {
                    **{name: getattr(row.value, name) for name in _OF_VALUE},
                    "measured": dict(row.measured),
                    "why_not": row.why_not,
                }
                for row in self.rows
            ],
            "conclusions": [
                {
                    "id": one.predicate.id,
                    "statement": one.predicate.statement,
                    "in_print": one.in_print,
                    "here": [
                        {"subject": at.subject, "outcome": at.outcome.value, "why": at.sentence}
                        for at in one.here
                    ],
                }
                for one in self.conclusions
            ],
            "notes": list(self.notes),
        }


def papers(found: Iterable[Paper], *, width: int) -> str:
    """Return the table of the papers."""
    table = _table(
        "paper", "about", "values", "conclusions", "held in it", "contradicted", "figures"
    )
    for paper in found:
        outcomes = Counter(predicate.paper for predicate in paper.predicates.values())
        table.add_row(
            paper.id,
            paper.about,
            str(len(paper.values)),
            str(len(paper.predicates)),
            str(outcomes["held"]),
            str(outcomes["contradicted"]),
            str(len(paper.figures)),
        )
    return _printed([table], width)


def paper(summary: Paper, *, width: int) -> str:
    """Return all that is kept of a paper: systems, values, contradictions, conclusions."""
    told: list[Table | str] = [f"{summary.called}: {summary.about}", "\nSystems"]
    table = _table("system", "name", "site config", "source")
    for system in summary.systems.values():
        table.add_row(system.id, system.name, "yes" if system.site else "", system.source)
    told += [table, "\nPrinted values"]
    table = _table("id", "system", "benchmark", "metric", "printed", "source", "standing")
    for value in summary.values.values():
        standing = "" if value.standing == STANDS else f"{value.standing}: {value.because}"
        table.add_row(
            value.id,
            value.system,
            value.benchmark,
            value.metric,
            value.text_with_unit,
            value.source,
            standing,
        )
    told += [table]
    if not summary.is_study:
        table = _table("id", "printed", "computed", "from")
        for found in recompute():
            if found.paper == summary.id and not found.agrees:
                computed = f"{number(found.computed)} {found.unit}"
                table.add_row(found.id, f"{found.printed} {found.unit}", computed, found.how)
        told += ["\nRecomputed from its own numbers, and contradicted"]
        told += [table if table.row_count else "nothing"]
    told += ["\nConclusions"]
    table = _table(
        "id", "conclusion", *([] if summary.is_study else ["in the paper"]), "decided here by"
    )
    for predicate in summary.predicates.values():
        how = predicate.here.kind if predicate.here else f"not: {predicate.not_here}"
        printed = [] if summary.is_study else [predicate.paper]
        table.add_row(predicate.id, predicate.statement, *printed, str(how))
    return _printed([*told, table], width)


def more_launches(found: Findings) -> str:
    """Return the command that launches again what is undecided."""
    paper = found.paper
    return f"clustergate evaluation run {paper.source if paper.is_study else paper.id} --resume"


def report(found: Findings, *, width: int) -> str:
    """Return a paper beside what was measured: values, conclusions, what is missing."""
    names = [subject.name for subject in found.subjects]
    told: list[Table | str] = [f"{found.paper.called}: {found.paper.about}"]
    told += [f"measured with {found.measured_with}"]
    table = _table("id", "system", "quantity", "printed", *names)
    for row in found.rows:
        if row.measured:
            value = row.value
            doubt = "" if value.standing == STANDS else f" ({value.standing})"
            table.add_row(
                value.id,
                value.system,
                ", ".join(filter(None, [f"{value.benchmark} {value.metric}", value.place])),
                f"{value.text_with_unit}{doubt}",
                *(tables.cell(row, name) for name in names),
            )
    beside = f"{len(found.rows) - table.row_count} of {len(found.rows)} have nothing beside them"
    # A study of one's own may have printed nothing.
    if found.rows:
        told += ["\nPrinted and measured"]
        told += [table if table.row_count else "nothing of the paper was measured", beside]
        told += ["* launched otherwise than what was printed; ? the launches were disturbed"]
    if baselines := dict.fromkeys(row.baseline for row in found.rows if row.baseline):
        whom = " or ".join(baselines)
        told += [f"a ratio [x] of two machines is that to the one which has 1: {whom}"]
    if found.derived:
        table = _table("derived by the papers' formulas", "source", *names)
        for one in found.derived:
            table.add_row(one.quantity, one.source, *(one.values.get(n, "-") for n in names))
        told += ["", table]
    told += ["\nConclusions"]
    in_print = [] if found.paper.is_study else ["in the paper"]
    table = _table("id", "conclusion", *in_print, "here", "because")
    for told_of in found.conclusions:
        predicate = told_of.predicate
        printed = [predicate.paper] if in_print else []
        table.add_row(
            predicate.id, predicate.statement, *printed, told_of.summary, _because(told_of)
        )
    told += [table, "; ".join(f"{what}: {count}" for what, count in found.counts.items())]
    # One with an axis for each of two quantities is drawn as two.
    numbers = {drawing.figure.number for drawing in found.drawings}
    drawn = {drawing.figure.number for drawing in found.drawings if not drawing.why_not}
    told += [f"{len(drawn)} of {len(numbers)} figures are drawn with measured values"]
    if found.unplayed:
        told += ["--as SYSTEM=RUN:STACK lets a stack of a run stand for one of the paper's systems"]
    return _printed([*told, *found.notes], width)


def _because(one: Conclusion) -> str:
    decided = [d for d in one.here if d.outcome is not Outcome.NOT_CHECKABLE] or one.here
    told = dict.fromkeys(d.sentence for d in decided)
    if len(told) == 1:
        return next(iter(told))
    return "; ".join(f"{d.subject.rpartition(':')[2]}: {d.sentence}" for d in decided)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _printed(parts: Iterable[Table | str], width: int) -> str:
    stream = io.StringIO()
    out = console.new_console(width, stream)
    for part in parts:
        out.print(part)
    return stream.getvalue()
