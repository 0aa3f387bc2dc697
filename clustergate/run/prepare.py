"""Before a run: its stacks on disk, its folder, and the call of ReFrame that makes it."""

from __future__ import annotations

import datetime
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from clustergate.core import store
from clustergate.core.commands import settings_given, sweeps_given
from clustergate.core.model import BadRequest, CaseId, ClustergateError, Say
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Reason, Words
from clustergate.judge.assembly import Outcome
from clustergate.judge.baselines.of_before import judging_references
from clustergate.judge.history.node_states import NODE_STATE, changed_here
from clustergate.judge.history.stored_runs import Taken, last_time
from clustergate.judge.references.lookup import References
from clustergate.machine.fingerprint import read_fingerprint, to_record
from clustergate.machine.processes import capture
from clustergate.run import resuming
from clustergate.run.forecast import absent_stacks, plan_of, seconds_of, usual_seconds
from clustergate.run.reframe import (
    ON_FEW_NODES,
    ON_MANY_NODES,
    STOPPED,
    Call,
    call_for,
    command,
    environment_for,
    how_it_ended,
    last_error,
    read_log,
    require_partitions,
    unknown_variable,
    with_stacks,
    with_tag,
)
from clustergate.run.request import Request, launched_otherwise, write_request
from clustergate.run.timetable import Job, jobs_of
from clustergate.sites import configs as sites
from clustergate.sites import modes
from clustergate.sites.description import Partition, Site
from clustergate.sites.schedulers import scheduler_of
from clustergate.sites.schedulers.job_options import words_in
from clustergate.stacks import StackRequest
from clustergate.stacks.golden.contents import software_of
from clustergate.stacks.manifest import read_manifest
from clustergate.stacks.set_up import NotSetUp, error_of, provide_each


@dataclass(frozen=True)
class Prepared:
    """All that a run needs, and what it is to be judged by.

    ``site`` is what the site config says, ``expected`` are the cases that should run,
    ``jobs`` are these, each with how long it takes, ``call_alone`` runs before ``call`` what must
    not run beside others, None where nothing may,
    ``not_set_up`` says why stacks cannot, ``restriction`` what keeps this process from cores or
    memory of the node, ``earlier`` are the outcomes that a run that is resumed has already,
    ``measures`` tells whether any case is left to run, and ``notes`` are sentences about the run.
    ``begun`` is by :func:`time.monotonic`.
    """

    request: Request
    run_id: str
    started: datetime.datetime
    begun: float
    site: Site
    references: References
    partitions: Sequence[Partition]
    expected: Sequence[CaseId]
    jobs: Sequence[Job]
    not_set_up: Mapping[str, Reason]
    call: Call
    call_alone: Call | None
    fingerprint: dict[str, Any]
    restriction: str
    earlier: Mapping[str, Outcome]
    measures: bool
    notes: Sequence[str]


LAUNCHED_OTHERWISE = Words(
    "resume.launched-otherwise",
    "the site config changed how {stacks:list} is launched since the run began",
    cause="its cases are measured again",
    remedy="to keep the old settings, restore the site config and start a new run",
)
NODE_CHANGED = Words(
    "resume.node-changed",
    "since the run began, this node changed: {changes:list}",
    remedy="its cases are measured again",
)
SLURM_VARIABLES = Words(
    "slurm.variables",
    "{names:and} would override the job options for {scheduler}",
    cause="unset for this run",
    remedy="put options that all jobs need into `access` of the partition",
)


def prepare(
    request: Request,
    run_id: str,
    started: datetime.datetime,
    say: Say,
    *,
    beside: Sequence[str] = (),
    resumes: bool = False,
) -> Prepared:
    """Set up what a run needs and keep what it is asked for.

    ``beside`` tells of other runs; ``resumes`` goes on with a run that is there. Raises
    what sites, references and stacks raise.
    """
    begun = time.monotonic()
    site = sites.load(request.site)
    request = replace(request, mode=modes.mode_named(request.mode.name, site.checks))
    require_partitions(request.options, site)
    stacks = site.stacks_named(request.stacks)
    wanted = [stack.request for stack in stacks]
    known = judging_references(site.name, {one.fullname: one.facts for one in site.partitions})
    partitions = site.partitions_with(stacks)
    # A gate asked before it screened, which takes seconds.
    if not (resumes or request.promises):
        chosen = modes.reframe_options(request.mode, request.checks)
        require_options(request.site, site, chosen, request.options)
    expected, taken_s, plan = foresee(request, site, known)
    launched = {stack.name: sites.launch_settings(site, stack.name) for stack in stacks}
    if not resumes:
        say(plan)
        # Before anything can fail: what is there of the run says what it was to be.
        write_request(request, run_id, launched)
    absent = absent_stacks(one.stack for one in wanted)
    not_set_up = _set_up(wanted, say)
    # What an earlier set-up left of a stack that failed now must not be measured instead.
    run_with = [one.stack for one in wanted if one.stack not in not_set_up]
    if absent and not resumes:
        say(foresee(replace(request, stacks=tuple(run_with)), site, known)[2])
    fingerprint = state_here(run_with)
    options = modes.reframe_options(request.mode, request.checks)
    options += with_stacks(run_with) if request.stacks or not_set_up else []
    options += request.options
    counts = request.process_counts
    called = partial(call_for, run_id, request.site, process_counts=counts, set_up=run_with)
    call, call_alone = called(options), None
    jobs = _jobs(request, expected, taken_s, partitions)
    if any(not one.alone for one in jobs):
        call_alone = called([*options, *with_tag(ON_MANY_NODES)])
        call = called([*options, *with_tag(ON_FEW_NODES)], side_by_side=True)
    earlier: Mapping[str, Outcome] = {}
    measures = True
    notes = [*filter(None, [request.site_told]), *beside]
    for scheduler in site.schedulers:
        if names := scheduler.overriding(os.environ, words_in(options)):
            notes.append(str(SLURM_VARIABLES(names=names, scheduler=scheduler.name)))
    if not (state := call.report.with_name(NODE_STATE)).exists():
        store.write_json(state, fingerprint)
    if resumes:
        otherwise = launched_otherwise(run_id, launched)
        here = sites.partitions_here(site)
        changed = changed_here(run_id, fingerprint["fingerprint"]) if here else []
        earlier = resuming.restart(run_id, call, here, otherwise, changed=bool(changed))
        whys = [LAUNCHED_OTHERWISE(stacks=otherwise)] if otherwise else []
        if changed:
            whys.append(NODE_CHANGED(changes=changed))
            store.write_json(state, fingerprint)
        for why in whys:
            notes.append(str(why))
            say(notes[-1])
        noun = "case was" if len(earlier) == 1 else "cases were"
        notes.append(f"resumed: {len(earlier)} {noun} completed before")
        side_by_side = [one.case for one in jobs if not one.alone]
        measures = not resuming.is_all_kept(read_log(call.log), earlier, run_with, side_by_side)
        say(notes[-1] + ("" if measures else ", none is left to measure"))
    return Prepared(
        request=request,
        run_id=run_id,
        started=started,
        begun=begun,
        site=site,
        references=known,
        partitions=partitions,
        expected=expected,
        jobs=jobs,
        not_set_up=not_set_up,
        call=call,
        call_alone=call_alone,
        fingerprint=fingerprint,
        restriction=sites.restriction_of(site),
        earlier=earlier,
        measures=measures,
        notes=notes,
    )


def _jobs(
    request: Request, cases: Sequence[CaseId], taken_s: Taken, partitions: Sequence[Partition]
) -> list[Job]:
    """Return the jobs of cases; none takes any time where not all of them are known to."""
    known = usual_seconds if takes_as_usual(request) else seconds_of
    seconds = known(cases, taken_s) or [0.0] * len(cases)
    by_hand = settings_given(request.options) or sweeps_given(request.options)
    return jobs_of(request.mode, cases, seconds, () if by_hand else partitions)


def takes_as_usual(request: Request) -> bool:
    """Tell whether what a case usually takes is known: in the gate's mode, as it is."""
    return request.mode.name == modes.MAINTENANCE and not settings_given(request.options)


SWEEP_UNKNOWN = Words("sweep.unknown", "{why}", remedy="`reframe --describe` lists them")
CHECK_REFUSED = Words("check.refused", "{why}", remedy="correct what follows `--`")
NO_LIST = Words(
    "check.no-list",
    "ReFrame {ended} while it listed the checks",
    remedy="run it again",
)


# What --nodes, --qos and the like become; ReFrame takes any.
_OF_JOBS = "--job-option="
_BESIDE_A_LIST = re.compile(r"argument -l/--list: not allowed with argument (\S+)")
_BY_REFRAME = re.compile(r"^reframe:? error: ")


def require_options(path: Path, site: Site, chosen: Sequence[str], options: Sequence[str]) -> None:
    """Refuse now what ReFrame would refuse behind ``--`` once stacks are there and a node quiet.

    ``options`` are those, ``chosen`` the options by which checks of the site at ``path`` are.
    """
    if all(one.startswith(_OF_JOBS) for one in options):
        return
    environment = {**environment_for(path, site), sites.LOG_LEVEL: "info"}
    ended = capture(command([*chosen, *options], action="--list"), env=environment)
    if ended.returncode < 0:
        raise ClustergateError(NO_LIST(ended=how_it_ended(ended.returncode)))
    if unknown := unknown_variable(ended.stdout + ended.stderr):
        raise BadRequest(SWEEP_UNKNOWN(why=unknown))
    if ended.returncode:
        why = last_error((ended.stdout + ended.stderr).splitlines())
        why = _BY_REFRAME.sub("", why.rpartition(f"{STOPPED}: ")[2])
        why = _BESIDE_A_LIST.sub(r"\1 runs no check", why)
        raise BadRequest(CHECK_REFUSED(why=why))


def state_here(stacks: Iterable[str]) -> dict[str, Any]:
    """Return what is stored of where a run is started, and of the stacks that it launches."""
    here = read_fingerprint()
    for stack in stacks:
        here["software"].update(software_of(read_manifest(state_dir(), stack)))
    return to_record(here)


def foresee(request: Request, site: Site, known: References) -> tuple[Sequence[CaseId], Taken, str]:
    """Return the cases that there should be, how long they took before, and the plan in a line."""
    stacks, mode = site.stacks_named(request.stacks), request.mode
    partitions = site.partitions_with(stacks)
    checks = request.checks or mode.checks
    sweeps = sweeps_given(request.options)
    modes.require_sweeps(sweeps, checks)
    expected = modes.expected_cases(checks, partitions, mode, request.process_counts, sweeps)
    taken_s, disturbed = last_time(site.name, mode.name, request.options)
    absent = absent_stacks(stack.name for stack in stacks)
    now, without = datetime.datetime.now(), known.without(expected, mode.name)
    plan = plan_of(
        *(mode, expected, taken_s, now, absent),
        referenced=len(without) < len(expected),
        expectations=len(known.expects),
        disturbed=disturbed,
        wait_s=request.wait_s if are_here(partitions) else 0.0,
        settings=settings_given(request.options),
        partitions=() if settings_given(request.options) or sweeps else partitions,
    )
    return expected, taken_s, plan


def are_here(partitions: Sequence[Partition]) -> bool:
    """Tell whether this node is what is measured.

    Elsewhere a scheduler chooses the nodes, and keeps others off them.
    """
    return not any(scheduler_of(one.scheduler).is_batch for one in partitions)


def _set_up(wanted: Sequence[StackRequest], say: Say) -> dict[str, Reason]:
    """Put the stacks on disk and return why some of them cannot be, unless none can."""
    failed = [one for one in provide_each(wanted, say=say) if isinstance(one, NotSetUp)]
    if failed and len(failed) == len(wanted):
        raise error_of(failed)
    return {one.stack: one.reason for one in failed}
