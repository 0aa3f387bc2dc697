"""Ask a paper's conclusions of what was measured here. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustergate.core.notation import counted
from evaluations.criteria import Criterion, clauses_of
from evaluations.evidence import Subject
from evaluations.facts import Paper, Predicate
from evaluations.inference import Outcome, findings
from evaluations.series import Cast


@dataclass(frozen=True)
class Decision:
    """The outcome for one subject, or for all together, with the sentence why.

    ``lacking`` is what is missing here, so that it can be contradicted at most. So many ``further``
    launches would probably decide it, or contradict it.
    """

    outcome: Outcome
    subject: str
    sentence: str
    further: int | None = None
    lacking: str = ""


def cast(paper: Paper, subjects: Sequence[Subject], given: Mapping[str, Subject]) -> Cast:
    """Return who plays whom: whoever was ``given``, a system itself, the stack of a variant.

    Whoever was given a role plays no other one, so that nobody is compared with himself.
    """
    roles = dict(given)
    for system in paper.systems.values():
        for subject in subjects:
            if subject in given.values():
                continue
            if subject.system == system.id or subject.stack in system.played_by:
                roles.setdefault(system.id, subject)
    return Cast(subjects, roles)


def decide(predicate: Predicate, here: Cast) -> list[Decision]:
    """Return what the measurements say of a conclusion, for each subject or for all together."""
    criterion = predicate.here
    if criterion is None:
        return [Decision(Outcome.NOT_CHECKABLE, "", predicate.not_here)]
    if not here.subjects:
        return [Decision(Outcome.NOT_CHECKABLE, "", "nothing was measured")]
    if criterion.is_of_systems:
        return [_decided("", criterion, here, here.subjects[0])]
    return [_decided(subject.name, criterion, here, subject) for subject in here.subjects]


def _decided(name: str, criterion: Criterion, here: Cast, subject: Subject) -> Decision:
    """Return the outcome of all clauses: one that fails decides, one that is missing forbids."""
    missing: list[str] = []
    clauses = clauses_of(criterion, here, subject, missing)
    found = findings(clauses)
    several = len({clause.about for clause in clauses}) > 1
    told = [
        f"{clause.about}: {one.sentence}" if several and clause.about else one.sentence
        for clause, one in zip(clauses, found, strict=True)
    ]
    outcomes, further = [one.outcome for one in found], None
    if Outcome.DOES_NOT in outcomes:
        outcome = Outcome.DOES_NOT
        told = [t for t, one in zip(told, found, strict=True) if one.outcome is outcome]
    elif missing or not found:
        outcome, told = Outcome.NOT_CHECKABLE, [*missing, *told]
        # What cannot hold here may still be contradicted.
        further = min((one.against for one in found if one.against), default=None)
        if further:
            launches = counted(further, "more launch")
            told.append(f"about {launches} of each would probably contradict it")
    elif Outcome.INCONCLUSIVE in outcomes:
        outcome = Outcome.INCONCLUSIVE
        told = [t for t, one in zip(told, found, strict=True) if one.outcome is outcome]
        undecided = [one for one in found if one.outcome is outcome]
        further = max((one.further or 0 for one in undecided), default=0) or None
        told.append(max(undecided, key=lambda one: one.further or math.inf).remedy)
    else:
        outcome = Outcome.HOLDS
    lacking = missing[0] if missing and found else ""
    return Decision(outcome, name, "; ".join(dict.fromkeys(told)), further, lacking)
