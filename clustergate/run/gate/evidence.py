"""What the gate measures: a screening, the benchmarks on the good nodes, the run before."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from clustergate.core.reasons import Words
from clustergate.judge import confirmation
from clustergate.judge.history.trends import day_and_time
from clustergate.run.gate import controls
from clustergate.run.gate import decision as gating
from clustergate.run.gate.before import earlier_screenings
from clustergate.run.gate.contract import Contract, Control
from clustergate.run.gate.decision import Changed
from clustergate.run.request import Request
from clustergate.run.run import run_session
from clustergate.run.screening import screen
from clustergate.sites import configs as sites
from clustergate.sites.description import Site
from clustergate.studies.ab.comparisons import METHOD, measured_otherwise, other_processors
from clustergate.studies.ab.sample_sets import compare_sets, from_run
from clustergate.studies.screen import folder, planning
from clustergate.studies.screen.findings import Screening
from clustergate.studies.screen.plan import Log, named_by

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
    today = datetime.datetime.now(datetime.timezone.utc).date()
    share_s, hpl_s = contract.allotted.screening_s / len(partitions), contract.allotted.hpl_s
    for place, partition in enumerate(partitions):
        below = f"/{partition.name}" if place else ""
        stack = next((s for s in contract.stacks if s in partition.stacks), partition.stacks[0])
        asked = planning.ScreenRequest(
            seconds=share_s,
            hpl_seconds=hpl_s if share_s >= 4 * hpl_s else 0.0,
            partition=partition.name,
            launches=contract.allotted.launches,
        )
        part = f"screening of {partition.fullname}" if len(partitions) > 1 else "screening"
        try:
            log, screening = screen(path, run_id + below, asked, stack, say, options, called)
            publisher.screening(log, screening, site.name, folder.screening_folder(run_id + below))
        except ClustergateError as error:
            evidence.append(Evidence(part, Verdict.INVALID, (error.reason,)))
            continue
        items = gating.of_screening(screening, ended=log.ended)
        by = named_by(partition.name, stack)
        known = list(earlier_screenings(site.name, by, screening.what, run_id, before, below))
        earlier = [(of, day_and_time(when), one) for of, when, one in known]
        items += gating.against_screening(screening, earlier)
        memory = [(of, when.date(), one) for of, when, one in known if when.date() < today]
        worse, control = controls.of_nodes(
            screening, memory, exclusive=bool(partition.has_nodes_for_itself)
        )
        items += worse
        as_before.append(control)
        evidence += [
            dataclasses.replace(one, part=one.part.replace("screening", part, 1)) for one in items
        ]
        without += screening.keeps_out if screening.what == "node" else ()
    return evidence, without, controls.of_all_nodes(as_before, evidence)


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
        evidence = [*dead, *beside, *gating.of_expectations(run.expectations)]
        return evidence, dataclasses.replace(run, cases=cases)
    except ClustergateError as error:
        return [Evidence("benchmarks", Verdict.INVALID, (error.reason,))], None


NONE_IN_BOTH = Words(
    "gate.none-in-both",
    "no figure is in both; the references judge alone",
    cause="the run measured other figures than this gate",
    remedy="name a run of the maintenance mode with `--before`, or leave it out for the last one",
)
BEFORE_LACKS = Words(
    "gate.before-lacks",
    "it has nothing of {cases:names}, so these were not compared with it",
    remedy="`clustergate check --mode maintenance` makes a run that has everything",
)
LACKS_OF_BEFORE = Words(
    "gate.lacks-of-before",
    "it has {cases:names}, of which this run has nothing",
    cause="a stack, a partition or a check is gone since",
    remedy="bring it back, or see that nobody misses it",
)
LAST_UNJUDGED = Words(
    "gate.last-unjudged",
    "{figures:figure|figures} not judged",
    cause="two runs of nodes that others use, too, do not tell how their days differ",
    remedy="`clustergate baseline` makes references of five runs, which do",
)
GATE_INCOMPARABLE = Words(
    "gate.incomparable",
    "it cannot be compared: {why}",
    remedy="name another run with `--before`, or leave it out for the last one",
)


def compare_with(before: str | None, run_id: str, *, asked: bool = False) -> list[Evidence]:
    """Return what is worse than in an earlier run even at the near end of its interval.

    Where the operator ``asked`` for that run, not to know is no reason to open.
    """
    if before is None:
        return []
    part = f"against the run {before}"
    try:
        for why in other_processors(store.read_cases(before), store.read_cases(run_id)):
            return [Evidence(part, _unknown(asked), (why,))]
        keys, both = compare_sets(from_run(before), from_run(run_id), _TOLERATED)
    except ClustergateError as error:
        why = GATE_INCOMPARABLE(why=str(error))
        return [Evidence(part, _unknown(asked), (why,))]
    from clustergate.benchmarks.registry import every_metric
    from clustergate.stats.comparison import Relation

    results, undecided = both.comparisons, []
    for key, one in zip(keys, results, strict=True):
        better = every_metric()[key["metric"]].better
        if one.verdict is Relation.INCONCLUSIVE and one.ratio and better is not Better.NEITHER:
            name = ", ".join(key[k] for k in ("check", "stack", "benchmark", "metric") if k in key)
            name += f" ({key['bytes']} bytes)" if "bytes" in key else ""
            times = one.ratio if better is Better.LOWER else 1 / one.ratio
            undecided.append(Changed(name, times - 1))
    otherwise = measured_otherwise(keys)
    evidence = [Evidence(part, _unknown(asked), (w,)) for w in otherwise]
    if all(one.ratio is None for one in results):
        why = NONE_IN_BOTH()
        return evidence or [Evidence(part, _unknown(asked), (why,))]
    slower = [
        Changed(one.name, one.by, one.usual)
        for one in both.moved
        if one.better is Relation.A_BETTER and one.is_sure
    ]
    judged = sum(one.low is not None for one in results)
    evidence += gating.against_run(slower, judged, before, undecided)
    evidence += [
        Evidence(part, Verdict.PASS, (one.reason_in("this run"),))
        for one in both.moved
        if one.better is Relation.A_BETTER and not one.is_sure
    ]
    if not judged:
        # It stands for nothing then, and takes nothing from what references say.
        why = LAST_UNJUDGED(figures=sum(one.ratio is not None for one in results))
        evidence.append(Evidence(part, Verdict.PASS, (why,)))
    pairs = list(zip(map(_case_of, keys), results, strict=True))
    in_both = {case for case, one in pairs if one.ratio is not None}
    in_both |= {_case_of(key) for key in keys if METHOD in key}
    for code, absent in (
        (BEFORE_LACKS, [case for case, one in pairs if one.samples_b]),
        (LACKS_OF_BEFORE, [case for case, one in pairs if one.samples_a]),
    ):
        if lacks := dict.fromkeys(case for case in absent if case not in in_both):
            why = code(cases=list(lacks))
            evidence.append(Evidence(part, _unknown(asked), (why,)))
    return evidence


def _case_of(key: Mapping[str, str]) -> str:
    ranks = f", {key['ranks']} ranks" if "ranks" in key else ""
    return f"{key['check']} with {key['stack']} ({key['partition']}{ranks})"


def _unknown(asked: bool) -> Verdict:
    return Verdict.INCONCLUSIVE if asked else Verdict.PASS
