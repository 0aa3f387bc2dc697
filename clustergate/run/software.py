"""A golden build launched in turn with today's: the gate's control of a stack's software."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clustergate.benchmarks.descriptor import AbCheck
from clustergate.benchmarks.registry import every_benchmark
from clustergate.core import store
from clustergate.core.model import ClustergateError, Evidence, Say, Verdict
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Words
from clustergate.run import software_evidence as software
from clustergate.run.contest import Contest, measure_contest, number_of_jobs
from clustergate.run.software_evidence import Builds
from clustergate.sites.configs import launch_settings
from clustergate.sites.description import Site
from clustergate.sites.modes import MAINTENANCE, mode_named
from clustergate.stacks.golden import builds as golden
from clustergate.studies.ab.contenders import GOLDEN, parse_contender
from clustergate.studies.ab.gathering import complaints_of, jobs_of
from clustergate.studies.ab.results import absences
from clustergate.studies.ab.wholes import costs_and_faults

# For the launches of both in each job, without a budget: they end as soon as it is decided. A
# quarter of it is the least that may decide.
_JOB_S = 600.0
# Those of the recordings from which error rates are told: with all powers of two a round takes so
# long that few are made.
_SIZES = (8, 64, 512, 4096, 32768, 262144, 1048576)
_ROUNDS = 1000


def builds_of(site: Site, stacks: Sequence[str]) -> tuple[Builds, float, list[str]]:
    """Return what the builds of stacks are to their golden ones, and a note where they are equal.

    Between them stands how many seconds launching golden builds takes at most. It is for the plan
    alone: what a set-up changes later is seen when golden builds are compared.
    """
    state = state_dir()
    pinned = [stack for stack in stacks if stack in golden.pinned_stacks(state)]
    if not pinned:
        return Builds.UNPINNED, 0.0, []
    differing, broken = [], False
    for stack in pinned:
        try:
            differing += [stack] if golden.differences(state, stack) else []
        except ClustergateError:
            broken = True
    if differing or broken:
        return Builds.OTHER, sum(_most_s(site, differing).values()), []
    note = (
        f"software: {', '.join(pinned)} as pinned, so what launching golden builds would take goes "
        "to nodes, links and raw kernels"
    )
    return Builds.EQUAL, 0.0, [note]


def _checks(site: Site) -> list[AbCheck]:
    """Return how the benchmarks that the gate runs are launched in turn."""
    run = mode_named(MAINTENANCE, site.checks).checks
    benchmarks = every_benchmark().values()
    return [one.ab for one in benchmarks if one.ab and any(c.name in run for c in one.checks)]


def _most_s(site: Site, stacks: Sequence[str]) -> dict[str, float]:
    """Return how many seconds each stack's golden build is launched for at most."""
    checks = _checks(site)
    return {x: _JOB_S * number_of_jobs(site.partitions, checks, "", x) for x in stacks}


NO_TIME = Words(
    "software.no-time",
    (
        "today's build is not the golden one ({differing:names}), and {left_s:.0f} s of the "
        "budget are too little to launch both in turn"
    ),
    cause="it takes up to {wanted_s:.0f} s",
    remedy="give the gate more budget",
)


def against_golden(
    path: Path,
    run_id: str,
    site: Site,
    stacks: Sequence[str],
    left_s: float | None,
    options: Sequence[str],
    say: Say,
    called: Sequence[Sequence[str]] = (),
) -> tuple[list[Evidence], list[str]]:
    """Return what golden builds say of today's software, and a note on stacks without one.

    Each is launched in turn with today's build where that is another. ``left_s`` are the seconds
    that the budget has for all of them, None without a budget; ``called`` is the call of the
    command.
    """
    state = state_dir()
    pinned = [stack for stack in stacks if stack in golden.pinned_stacks(state)]
    evidence: list[Evidence] = []
    differing: dict[str, list[str]] = {}
    configuration: dict[str, list[str]] = {}
    mapped: dict[str, set[tuple[str, str]]] = {}
    for record in store.read_cases(run_id, samples=False):
        files: Any = record.details.get("site_files") or ()
        configuration.setdefault(record.stack, []).extend(str(one["digest"]) for one in files)
        of_ranks: Any = record.details.get("mapped") or {}
        # Jobs are on other nodes than each other, where a file may be another.
        mapped.setdefault(record.stack, set()).update(of_ranks.items())
    for stack in pinned:
        try:
            if changed := golden.differences(state, stack):
                differing[stack] = changed
                continue
            kept = golden.read(state, stack)
            system_files = golden.system_changes(kept)
            day, _, _ = kept.pinned.partition("T")
            settings = launch_settings(site, stack)
            otherwise = golden.setting_changes(kept, settings, configuration.get(stack, ()))
            digest = golden.digest(kept)
            on_nodes = golden.mapped_otherwise(state, stack, mapped.get(stack, ()))
            evidence += software.same_build(stack, digest, system_files, day, otherwise, on_nodes)
        except ClustergateError as error:
            evidence.append(software.not_compared(stack, error.reason))
    wanted = _most_s(site, list(differing))
    for place, (stack, files) in enumerate(differing.items()):
        begun = time.monotonic()
        share_s = None if left_s is None else max(left_s, 0.0) / (len(differing) - place)
        if share_s is not None and share_s < wanted[stack] / 4:
            more_s = sum(wanted.values())
            why = NO_TIME(differing=files, left_s=share_s, wanted_s=more_s)
            evidence.append(software.not_compared(stack, why, Verdict.INCONCLUSIVE))
            continue
        contest = Contest(
            (parse_contender(f"{GOLDEN}{stack}"), parse_contender(stack)),
            checks=_checks(site),
            parts=(),
            sizes=_SIZES,
            seconds=wanted[stack] if share_s is None else share_s,
            rounds=_ROUNDS,
            options=options,
            margin_percent=0.0,
            family=len(differing),
            called=called,
        )
        where = f"{run_id}/golden-{stack}"
        evidence += launched_in_turn(contest, path, where, say)
        left_s = None if left_s is None else left_s - (time.monotonic() - begun)
    without = [stack for stack in stacks if stack not in pinned]
    note = (
        f"software: no golden build of {', '.join(without)} to compare with; `clustergate golden "
        f"pin {' '.join(without)}` keeps today's, once it is accepted"
    )
    return evidence, [note] if without else []


def launched_in_turn(contest: Contest, path: Path, run_id: str, say: Say) -> list[Evidence]:
    """Return what a golden build (A) and today's (B) say, launched in turn."""
    stack = contest.contenders[-1].stack
    # What an interrupted run left.
    shutil.rmtree(store.run_folder(run_id), ignore_errors=True)
    try:
        failures = measure_contest(contest, path, run_id, say)
        records = store.read_cases(run_id)
    except ClustergateError as error:
        return [software.not_compared(stack, error.reason)]
    failed = dict.fromkeys([*complaints_of(records), *failures])
    compared = costs_and_faults(jobs_of(records), contest.family)
    evidence = [software.not_compared(stack, why) for why in failed]
    return evidence + software.evidence_from_contest(stack, *compared, absences(records))
