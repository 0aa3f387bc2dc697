"""The judge as the bench asks it: stored runs go in, cases and an exit status come out. Pure.

All that the bench knows of how references are made and runs are judged is here: a baseline of
stored runs, its reference file, what a run is judged by and what it should have had, the status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustergate.benchmarks.registry import every_check
from clustergate.core.figures import name_of, same_measurement
from clustergate.core.model import Case, CaseId, CaseRecord, Promise, Verdict
from clustergate.judge import confirmation, coverage
from clustergate.judge.assembly import Beside, Outcome, assemble, compared, verdicts
from clustergate.judge.baselines.proposals import Rule, make_baseline
from clustergate.judge.baselines.writer import updated
from clustergate.judge.confirmation import TIMES, Confirming, Launched
from clustergate.judge.history.series import collect
from clustergate.judge.history.stored_runs import PastRun
from clustergate.judge.judging import exit_status, worst_status
from clustergate.judge.references.lookup import References, parse_references
from clustergate.sites.description import Partition
from clustergate.sites.modes import Mode

Again = Callable[[CaseId], CaseRecord | None]
"""Launches a case of the judged run again, alone: what that left, None where nothing can be."""
FigureKey = tuple[str, str, str]
"""Check, stack and name of a figure."""


@dataclass(frozen=True)
class Judge:
    """What a baseline made: the references, and how many figures got none.

    ``expected`` are the cases of a run, on a ``partition`` of the site.
    """

    mode: Mode
    expected: Sequence[CaseId]
    partition: Partition
    references: References
    refused: int = 0


@dataclass(frozen=True)
class Judged:
    """What is said of a run: its cases, its exit status, and what stacks and kinds promise.

    So many cases were launched ``again``.
    """

    cases: Sequence[Case]
    status: int
    wholes: Mapping[str, Sequence[Promise]]
    again: int


def make_judge(
    past: Sequence[PastRun],
    mode: Mode,
    expected: Sequence[CaseId],
    partition: Partition,
    rule: Rule | None = None,
    rest: References | None = None,
) -> Judge:
    """Return the judge that a baseline of some runs makes, by way of a reference file.

    ``rest`` are references of what the mode measures besides; its lines are added to the file.
    """
    source = Path(f"{partition.system}.yaml")
    rest = rest or References(source)
    nodes = {partition.fullname: partition.facts}
    made = make_baseline(collect(past, nodes), rest, rule or Rule(), nodes=nodes)
    refused = sum(len(refusal.names) for refusal in made.refusals)
    if not made.measured:
        return Judge(mode, expected, partition, rest, refused)
    references = parse_references(updated("", made.measured), source, every_check())
    _add(references.document.data, rest.document.data or {})
    return Judge(mode, expected, partition, references, refused)


def judge_run(
    judge: Judge, records: Sequence[CaseRecord], again: Again, *, promises: bool = False
) -> Judged:
    """Judge a run of which all records are given, with what looks slow launched ``again``.

    So is what keeps no ``promises`` that it could, as in a gate.
    """
    find, nodes = judge.references.find, {judge.partition.fullname: judge.partition.facts}
    beside = compared(records, find, nodes)
    watched, wholes = beside.suspected, {of: tuple(some) for of, some in beside.wholes.items()}
    run = [Launched(case_of(judge, record, beside), record.hosts) for record in records]
    confirming = Confirming(run, wholes, promises)
    launched = 0
    for _ in range(TIMES):
        left = confirming.left
        further = {one: record for one in left if (record := again(one)) is not None}
        confirming.why |= dict.fromkeys(left.keys() - further.keys())
        if not further:
            break
        launched += len(further)
        by_name = {record.name: record for record in further.values()}
        whole = [by_name.get(record.name, record) for record in records]
        beside = compared(whole, find, nodes, watched=watched)
        confirming.add(
            [Launched(case_of(judge, one, beside), one.hosts) for one in further.values()],
            beside.wholes,
        )
    cases = confirming.decided(judge.mode.name)
    is_open = any(confirmation.unconfirmed(case) for case in cases)
    status = worst_status([status_of(judge, cases), 2 * is_open])
    return Judged(cases, status, confirming.wholes, launched)


def status_of(judge: Judge, cases: Sequence[Case]) -> int:
    """Return the exit status of a check of which these are the cases."""
    of_run = (judge.references, judge.mode)
    lost, _ = coverage.not_as_foreseen(judge.expected, cases, *of_run, [judge.partition])
    dead, _ = coverage.dead_references(cases, *of_run)
    return exit_status(verdicts([*cases, *lost, *dead]))


def case_of(judge: Judge, record: CaseRecord, beside: Beside | None = None) -> Case:
    """Judge one case, alone or ``beside`` the others of its run."""
    (parameters,) = (
        key.parameters
        for key in judge.expected
        if (key.check, key.stack) == (record.check, record.stack)
    )
    outcome = Outcome(
        record.name, record.check, record.stack, "pass",
        partition=record.partition, parameters=parameters,
    )  # fmt: skip
    find, nodes = judge.references.find, {judge.partition.fullname: judge.partition.facts}
    (case,) = assemble([], [outcome], [record], find, nodes, judge.mode.name, beside=beside)
    return case


def nearest_ns(judge: Judge, record: CaseRecord) -> float | None:
    """Return how far two cores were from each other when a case got its references."""
    where = (record.check, record.partition, record.stack)
    return judge.references.nearest_ns(*where, record.conditions)


def regressions(cases: Sequence[Case]) -> list[frozenset[FigureKey]]:
    """Return what is called a regression: a figure, or a benchmark in all its figures."""
    called = []
    for case in cases:
        keys = [(case.check, case.stack, name_of(figure)) for figure in case.figures]
        figures = list(zip(keys, case.figures, strict=True))
        called += [
            frozenset({key})
            for key, figure in figures
            if figure.judgement.verdict is Verdict.REGRESSION
        ]
        called += [
            frozenset(key for key in keys if key[2] in group.names)
            for group in case.groups
            if group.judgement.verdict is Verdict.REGRESSION
        ]
    return called


def of_figures(cases: Sequence[Case]) -> dict[FigureKey, Verdict]:
    """Return the verdict of each figure, of those of one measurement the one that is compared."""
    found = {}
    for case in cases:
        by_name = {name_of(figure): figure.judgement.verdict for figure in case.figures}
        for name, verdict in by_name.items():
            if not any(other in by_name for other in same_measurement(name)):
                found[case.check, case.stack, name] = verdict
    return found


def _add(whole: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and key in whole:
            _add(whole[key], value)
        else:
            whole.setdefault(key, value)
