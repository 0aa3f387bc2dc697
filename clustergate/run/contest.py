"""A against B: the jobs in which contenders are launched in turn, and their failures."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from clustergate.benchmarks.descriptor import AbCheck, Sweep
from clustergate.benchmarks.registry import descriptor_of
from clustergate.core import store
from clustergate.core.model import BadRequest, ClustergateError, Say
from clustergate.core.notation import listed
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Facts, Reason, Words
from clustergate.core.texts import clock
from clustergate.judge.assembly import CASE_FAILED
from clustergate.judge.history.listing import keep_made
from clustergate.judge.history.node_states import NODE_STATE
from clustergate.launch.plan import LOG, read_log
from clustergate.launch.stopping import launches_s
from clustergate.machine.other_processes import Watch
from clustergate.run.execute import UnderWay, measure
from clustergate.run.prepare import are_here, require_options, state_here
from clustergate.run.reframe import call_for, with_checks, with_settings
from clustergate.sites import configs as sites
from clustergate.sites import modes
from clustergate.sites.description import Partition
from clustergate.sites.shape import Shape
from clustergate.stacks.golden import builds as golden
from clustergate.stacks.set_up import NotSetUp, error_of, provide_each
from clustergate.stats.rounds import FEWEST as FEWEST_ROUNDS
from clustergate.studies.ab.contenders import Named, manifest_of, require_known
from clustergate.studies.ab.variables import unknown_to

FEWEST = 2
"""Contenders that a comparison needs."""


@dataclass(frozen=True)
class Contest:
    """The contenders, two or more, and how they are compared: ``parts`` of benchmarks, and sizes.

    These are empty for the checks' own.

    ``seconds`` are for the launches of all jobs, ``rounds`` those of each job at most. Empty
    ``processes`` are those of the environment, ``options`` further ones for ReFrame. Within
    ``margin_percent`` two are equivalent; 0 asks whether B may take the place of A.
    ``family`` counts the contests of which this is one, ``called`` is the call of the command. A
    ``trial`` is no standard of any other run.
    """

    contenders: Sequence[Named]
    checks: Sequence[AbCheck]
    parts: Sequence[str]
    sizes: Sequence[int]
    seconds: float
    rounds: int
    processes: str = ""
    options: Sequence[str] = ()
    margin_percent: float = 5.0
    family: int = 1
    called: Sequence[Sequence[str]] = ()
    trial: bool = False


CONTEST_CAPPED = Words(
    "contest.capped",
    (
        "launches in the partition {partition} are limited to {most_s:g} s per job instead of "
        "{asked_s:g} s"
    ),
    cause="{why}",
)
JOBS_MISSING = Words(
    "contest.jobs-missing",
    "{absent} of {jobs:job|jobs} did not run",
    cause="ReFrame's output is in {log}",
)


def measure_contest(contest: Contest, site: Path, run_id: str, say: Say) -> list[Reason]:
    """Let ReFrame run the jobs, and return what failed.

    Raises :class:`ClustergateError` where a contender is not available here,
    and what sites, stacks and :mod:`clustergate.studies.ab.contenders` raise.
    """
    described = sites.load(site)
    options = with_checks([check.name for check in contest.checks])
    require_options(site, described, options, contest.options)
    requests = [stack.request for stack in described.stacks]
    known = [request.stack for request in requests]
    for one in contest.contenders:
        require_known(one, known)
        if one.golden:
            golden.read(state_dir(), one.stack)
    wanted = {x.stack for x in contest.contenders if not x.golden}.intersection(known)
    provided = provide_each([request for request in requests if request.stack in wanted], say=say)
    broken = {one.stack: one for one in provided if isinstance(one, NotSetUp)}
    here = [x for x in contest.contenders if x.golden or x.stack not in broken]
    if len(here) < FEWEST:
        raise error_of([*broken.values()])
    contest, absent = available(replace(contest, contenders=here), state_dir())
    for reason in absent:
        say(str(reason))
    failures = [*(one.error.reason for one in broken.values()), *absent]
    # The checks run in the environment of the first that the site has.
    stacks = [one.stack for one in contest.contenders]
    first = next((stack for stack in stacks if stack in known), known[0])
    of_each = jobs_by_partition(described.partitions, contest.checks, contest.processes, first)
    jobs = number_of_jobs(described.partitions, contest.checks, contest.processes, first)
    seconds = contest.seconds / jobs
    shortest_s, all_s = seconds, 0.0
    for partition, count in of_each:
        limits = partition.limits
        own_s = seconds if limits.seconds is None else launches_s(seconds, limits.seconds)
        shortest_s, all_s = min(shortest_s, own_s), all_s + count * own_s
        if own_s < seconds:
            name, why = partition.name, str(limits.why)
            facts: Facts = {"asked_s": seconds, "most_s": own_s, "why": why}
            say(str(CONTEST_CAPPED(partition=name, **facts)))
    settings = {"jobs": str(jobs * contest.family), **_settings(contest, seconds)}
    options += [*with_settings(settings), *contest.options]
    call = call_for(run_id, site, options, process_counts=contest.processes or None)
    keep_made(run_id, "ab", described.name, contest.called, trial=contest.trial)
    store.write_json(call.report.with_name(NODE_STATE), state_here(wanted))
    each = f"{jobs} jobs of {seconds:.0f} s" if jobs > 1 else f"{shortest_s:.0f} s"
    if jobs > 1 and shortest_s < seconds:
        each += " or less"
    now = datetime.datetime.now()
    first, last = clock(now, all_s), clock(now, 1.5 * all_s)
    who = " against ".join(one.text for one in contest.contenders)
    said = f"{who}: {each} of launches, done by {first}"
    say(f"{said}, or, to finish ten rounds, by {last}" if last != first else said)
    watch = Watch(say)
    far = partial(_round_under_way, store.stage_folder(run_id), len(contest.contenders), shortest_s)
    outcomes = measure(call, watch.say, under_way=far)
    if are_here(described.partitions):
        for sentence in watch.sentences():
            say(sentence)
    recorded = tuple(record.name.rpartition("-")[0] for record in store.read_cases(run_id))
    failures += [
        CASE_FAILED(why=x.reason).at(x.name)
        for x in outcomes
        # What a record says itself, it says with the contender's name.
        if x.result not in ("pass", "skip") and not x.name.startswith(recorded)
    ]
    if missing := jobs - len(outcomes):
        failures.append(JOBS_MISSING(absent=missing, jobs=jobs, log=call.log))
    return failures


CONTENDER_UNAVAILABLE = Words(
    "contender.unavailable",
    "{what} is not available here",
    cause="{why}",
)


def lacks_programs(contest: Contest, state: Path) -> bool:
    """Tell whether too few contenders that are set up have something of what they would run."""
    try:
        available(contest, state)
    except ClustergateError as error:
        return error.reason.code == CONTENDER_UNAVAILABLE.code
    return False


def available(contest: Contest, state: Path) -> tuple[Contest, list[Reason]]:
    """Return a contest without the contenders that are not here, and why they are not.

    Raises what :func:`require_program` does of the first of them where fewer than two are left.
    """
    left: list[Named] = []
    reasons: list[Reason] = []
    for one in contest.contenders:
        try:
            require_program(contest, one, state)
            left.append(one)
        except BadRequest:
            raise
        except ClustergateError as error:
            if len(contest.contenders) - len(reasons) <= FEWEST:
                raise
            reasons.append(error.reason)
    return replace(contest, contenders=left), reasons


UNKNOWN_VARIABLES = Words(
    "contender.unknown-variables",
    "this {mpi} has no setting {names:names}, so it would have no effect",
    remedy="correct the name, or leave it out",
)


def require_program(contest: Contest, contender: Named, state: Path) -> None:
    """Raise :class:`ClustergateError` where a contender, or all that it would run, is not here.

    Raises :class:`~clustergate.stacks.manifest.ManifestError` for a stack that is not set up, and
    :class:`BadRequest` for a variable that its MPI library does not know.
    """
    manifest = manifest_of(contender, state)
    builds = [descriptor_of(check.name).build for check in contest.checks]
    programs = [manifest.program(name) for build in builds if build for name in build.programs]
    missing, what = manifest.unavailable, "its MPI library"
    if not missing and programs and all(program.unavailable for program in programs):
        missing = programs[0].unavailable
        what = listed([descriptor_of(check.name).title for check in contest.checks])
    if missing:
        of: Facts = {"contender": contender.text, "what": what}
        raise ClustergateError(CONTENDER_UNAVAILABLE(**of, why=missing))
    if unknown := unknown_to(manifest, contender.variables):
        own: Facts = {"contender": contender.text, "names": unknown}
        raise BadRequest(UNKNOWN_VARIABLES(mpi=manifest.mpi_name, **own))


def number_of_jobs(
    partitions: Sequence[Partition], checks: Sequence[AbCheck], processes: str, stack: str
) -> int:
    """Return how many jobs there will be in the partitions that have a stack.

    The budget is divided among them.
    """
    of_each = jobs_by_partition(partitions, checks, processes, stack)
    return max(sum(count for _, count in of_each), 1)


def jobs_by_partition(
    partitions: Sequence[Partition], checks: Sequence[AbCheck], processes: str, stack: str
) -> list[tuple[Partition, int]]:
    """Return the partitions that have a stack, and how many jobs there will be in each."""
    shapes = [partition.shape for partition in partitions]

    def jobs(check: AbCheck, shape: Shape) -> int:
        layouts = {
            Sweep.LAYOUTS: modes.sweep(shape, shapes, processes),
            Sweep.PLACEMENTS: shape.placements(),
        }.get(check.sweep, ("",))
        return len(layouts) * math.prod(map(len, check.parameters.values()))

    return [
        (one, sum(jobs(check, one.shape) for check in checks))
        for one in partitions
        if stack in one.stacks
    ]


def _round_under_way(stage: Path, contenders: int, seconds: float) -> UnderWay:
    """Return which round the job that began last is in, and how long it may still take."""
    began = {path: path.stat().st_mtime for path in stage.rglob(LOG)}
    if not began:
        return UnderWay()
    launches = read_log(max(began, key=began.__getitem__).parent).launches
    spent_s = sum(made.launch.seconds for made in launches)
    whole = len(launches) // contenders
    fewest_s = (FEWEST_ROUNDS - whole) * spent_s / max(whole, 1)
    return UnderWay(f"round {whole + 1}", max(fewest_s, seconds - spent_s, 0.0) * (whole > 0))


def _settings(contest: Contest, seconds: float) -> dict[str, str]:
    a, b, *others = (one.text for one in contest.contenders)
    settings = {
        "a": a,
        "b": b,
        **({"others": json.dumps(others)} if others else {}),
        "max_seconds": f"{seconds:g}",
        "rounds": str(contest.rounds),
        "margin_percent": f"{contest.margin_percent:g}",
    }
    for check in contest.checks:
        if chosen := [part for part in contest.parts if part in check.parts]:
            settings[f"{check.name}.benchmarks"] = ",".join(chosen)
        if contest.sizes and check.parts:
            settings[f"{check.name}.sizes"] = ",".join(map(str, contest.sizes))
    return settings
