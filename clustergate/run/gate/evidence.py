"""What the gate measures: a screening, the benchmarks on the good nodes, the run before."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clustergate.core import store
from clustergate.core.model import (
    LAUNCHED_AGAIN,
    Better,
    ClustergateError,
    Evidence,
    Run,
    Say,
    Verdict,
)
from clustergate.core.reasons import Reason, Words
from clustergate.judge import confirmation
from clustergate.judge.history.trends import day_and_time
from clustergate.run.gate import controls
from clustergate.run.gate import decision as gating
from clustergate.run.gate.before import earlier_screenings
from clustergate.run.gate.contract import Contract, Control
from clustergate.run.gate.decision import Slowdown
from clustergate.run.request import Request
from clustergate.run.run import run_session
from clustergate.run.screening import screen
from clustergate.sites import configs as sites
from clustergate.sites.description import Partition, Site
from clustergate.studies.ab.comparisons import METHOD, other_methods, other_processors
from clustergate.studies.ab.sample_sets import compare_sets, from_run
from clustergate.studies.screen import folder, planning
from clustergate.studies.screen.findings import Screening
from clustergate.studies.screen.plan import Log, named_by

if TYPE_CHECKING:
    from clustergate.judge.two_runs import TwoRuns
    from clustergate.stats.comparison import Comparison

_TOLERATED = 0.05


@dataclass(frozen=True)
class Publisher:
    """What writes the reports of what a gate measured, as soon as that has ended.

    ``run`` returns a run as it was published; ``screening`` is given the log, the findings, the
    system and the folder. Both raise :class:`ClustergateError`.
    """

    run: Callable[[Run], Run]
    screening: Callable[[Log, Screening, str, Path], None]


def screen_partitions(
    path: Path,
    run_id: str,
    site: Site,
    contract: Contract,
    before: str | None,
    say: Say,
    options: Sequence[str] = (),
    *,
    publisher: Publisher,
    called: Sequence[Sequence[str]] = (),
) -> tuple[list[Evidence], list[str], Control]:
    """Screen the nodes; return the evidence, the nodes that the benchmarks are to leave out, and
    whether the others are as they were.

    Partitions with nodes of their own share the time, each with a folder of its own. ``options``
    are further ones for ReFrame, ``called`` is the call of the command.
    """
    partitions = sites.partitions_with_own_nodes(site)
    evidence: list[Evidence] = []
    without: list[str] = []
    as_before: list[Control] = []
    for place, partition in enumerate(partitions):
        below = f"/{partition.name}" if place else ""
        stack = next((s for s in contract.stacks if s in partition.stacks), partition.stacks[0])
        asked = _share_of(contract, partition, len(partitions))
        part = f"screening of {partition.fullname}" if len(partitions) > 1 else "screening"
        try:
            log, screening = screen(path, run_id + below, asked, stack, say, options, called)
            publisher.screening(log, screening, site.name, folder.screening_folder(run_id + below))
        except ClustergateError as error:
            evidence.append(Evidence(part, Verdict.INVALID, (error.reason,)))
            continue
        by = named_by(partition.name, stack)
        earlier = list(earlier_screenings(site.name, by, screening.what, run_id, before, below))
        exclusive = bool(partition.has_nodes_for_itself)
        against_earlier, control = _against(earlier, screening, exclusive=exclusive)
        as_before.append(control)
        evidence += [
            dataclasses.replace(one, part=one.part.replace("screening", part, 1))
            for one in (*gating.screening_evidence(screening, ended=log.ended), *against_earlier)
        ]
        without += screening.keeps_out if screening.what == "node" else ()
    return evidence, without, controls.all_nodes_control(as_before, evidence)


def _share_of(contract: Contract, partition: Partition, partitions: int) -> planning.ScreenRequest:
    """Return what to screen of one of so many partitions, which share the time."""
    share_s, hpl_s = contract.allotted.screening_s / partitions, contract.allotted.hpl_s
    return planning.ScreenRequest(
        seconds=share_s,
        hpl_seconds=hpl_s if share_s >= 4 * hpl_s else 0.0,
        partition=partition.name,
        launches=contract.allotted.launches,
    )


def _against(
    earlier: Sequence[tuple[str, datetime.datetime, Screening]],
    now: Screening,
    *,
    exclusive: bool,
) -> tuple[list[Evidence], Control]:
    """Return what is worse than in earlier screenings, and whether the nodes are as they were.

    Those of today are compared with, and are no other day.
    """
    today = datetime.datetime.now(datetime.timezone.utc).date()
    worse = gating.evidence_against_screenings(
        now, [(of, day_and_time(at), one) for of, at, one in earlier]
    )
    memory = [(of, at.date(), one) for of, at, one in earlier if at.date() < today]
    than_ever, control = controls.nodes_control(now, memory, exclusive=exclusive)
    return [*worse, *than_ever], control


SLOW_ONCE = Words(
    "gate.slow-once",
    "{count:figure was|figures were} slow once, and not when launched again",
)


def run_benchmarks(
    request: Request,
    run_id: str,
    started: datetime.datetime,
    say: Say,
    publisher: Publisher,
) -> tuple[list[Evidence], Run | None]:
    """Run the benchmarks, those for which there is time; return the run, None where none ran.

    The evidence is of what is no case.
    """
    if not request.checks:
        return [], None
    try:
        run = publisher.run(run_session(request, run_id, started, say))
        dead = [Evidence("references", Verdict.INCONCLUSIVE, (one,)) for one in run.unjudged]
        beside = [one for one in run.evidence if one.part == LAUNCHED_AGAIN]
        # Whoever passes when launched again keeps what the gate promises.
        cases = tuple(map(confirmation.with_passes, run.cases))
        if once := sum(map(confirmation.not_again, run.cases)):
            why = SLOW_ONCE(count=once)
            beside.append(Evidence("benchmarks", Verdict.PASS, (why,)))
        evidence = [*dead, *beside, *gating.expectation_evidence(run.expectations)]
        return evidence, dataclasses.replace(run, cases=cases)
    except ClustergateError as error:
        return [Evidence("benchmarks", Verdict.INVALID, (error.reason,))], None


NONE_IN_BOTH = Words(
    "gate.none-in-both",
    "both runs have no figure in common; the references judge alone",
    cause="the run measured other figures than this gate",
    remedy="name a run of the maintenance mode with `--before`, or leave it out for the last one",
)
BEFORE_LACKS = Words(
    "gate.before-lacks",
    "it has no figure of {cases:names}, so these were not compared with it",
    remedy="`clustergate check --mode maintenance` makes a run that has everything",
)
LACKS_OF_BEFORE = Words(
    "gate.lacks-of-before",
    "it has {cases:names}, of which this run has nothing",
    cause="a stack, a partition or a check is gone since",
    remedy="restore it, or make sure that it was removed on purpose",
)
LAST_UNJUDGED = Words(
    "gate.last-unjudged",
    "{figures:figure|figures} not judged",
    cause="two runs on shared nodes do not show variation between days",
    remedy="`clustergate baseline` makes references of five runs, which do",
)
GATE_INCOMPARABLE = Words(
    "gate.incomparable",
    "it cannot be compared: {why}",
    remedy="name another run with `--before`, or leave it out for the last one",
)


Held = Collection[tuple[str, str, str]]
"""Checks with stacks and benchmarks that references judge: what one run leaves open they do not."""


def compare_with(
    before: str | None, run_id: str, held: Held = (), *, asked: bool = False
) -> list[Evidence]:
    """Return what is worse than in an earlier run even at the near end of its interval.

    Where the operator ``asked`` for that run, not to know is no reason to open.
    """
    if before is None:
        return []
    part, unknown = f"against the run {before}", Verdict.INCONCLUSIVE if asked else Verdict.PASS
    try:
        then, now = (store.read_cases(run, samples=False) for run in (before, run_id))
        for why in other_processors(then, now):
            return [Evidence(part, unknown, (why,))]
        keys, both = compare_sets(from_run(before), from_run(run_id), _TOLERATED)
    except ClustergateError as error:
        return [Evidence(part, unknown, (GATE_INCOMPARABLE(why=str(error)),))]
    otherwise = [Evidence(part, unknown, (why,)) for why in other_methods(keys)]
    if all(one.ratio is None for one in both.comparisons):
        return otherwise or [Evidence(part, unknown, (NONE_IN_BOTH(),))]
    absent = [Evidence(part, unknown, (why,)) for why in _absent(keys, both.comparisons)]
    return [*otherwise, *_slower(before, keys, both, held), *absent]


def _slower(
    before: str, keys: Sequence[Mapping[str, str]], both: TwoRuns, held: Held
) -> list[Evidence]:
    """Return which sets of figures are slower than in the run ``before``, or may be far slower."""
    from clustergate.stats.comparison import Relation

    part = f"against the run {before}"
    slower = [one for one in both.moved if one.better is Relation.A_BETTER]
    sure = [Slowdown(one.name, one.by, one.usual) for one in slower if one.is_sure]
    judged = sum(one.low is not None for one in both.comparisons)
    far = _undecided(keys, both.comparisons, held)
    evidence = gating.evidence_against_run(sure, judged, before, far)
    unsure = [one.reason_in("this run") for one in slower if not one.is_sure]
    if not judged:
        # It stands for nothing then, and takes nothing from what references say.
        figures = sum(one.ratio is not None for one in both.comparisons)
        unsure.append(LAST_UNJUDGED(figures=figures))
    return evidence + [Evidence(part, Verdict.PASS, (why,)) for why in unsure]


def _undecided(
    keys: Sequence[Mapping[str, str]], results: Sequence[Comparison], held: Held
) -> Iterator[Slowdown]:
    """Yield the figures of which nobody can say whether they are slower, and by how much so far."""
    from clustergate.benchmarks.registry import every_metric
    from clustergate.stats.comparison import Relation

    for key, one in zip(keys, results, strict=True):
        if (key["check"], key["stack"], key["benchmark"]) in held:
            continue
        better = every_metric()[key["metric"]].better
        if one.verdict is Relation.INCONCLUSIVE and one.ratio and better is not Better.NEITHER:
            name = ", ".join(key[k] for k in ("check", "stack", "benchmark", "metric") if k in key)
            name += f" ({key['bytes']} bytes)" if "bytes" in key else ""
            times = one.ratio if better is Better.LOWER else 1 / one.ratio
            yield Slowdown(name, times - 1)


def _absent(keys: Sequence[Mapping[str, str]], results: Sequence[Comparison]) -> Iterator[Reason]:
    """Yield of which cases the run before has nothing, and of which this one."""
    pairs = list(zip(map(_case_of, keys), results, strict=True))
    in_both = {case for case, one in pairs if one.ratio is not None}
    in_both |= {_case_of(key) for key in keys if METHOD in key}
    for words, cases in (
        (BEFORE_LACKS, [case for case, one in pairs if one.samples_b]),
        (LACKS_OF_BEFORE, [case for case, one in pairs if one.samples_a]),
    ):
        if lacks := dict.fromkeys(case for case in cases if case not in in_both):
            yield words(cases=list(lacks))


def _case_of(key: Mapping[str, str]) -> str:
    ranks = f", {key['ranks']} ranks" if "ranks" in key else ""
    return f"{key['check']} with {key['stack']} ({key['partition']}{ranks})"
