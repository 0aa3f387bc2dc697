"""A screening: one job that measures nodes and pairs of nodes, read when it has ended."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clustergate.core import store
from clustergate.core.files.stored import decode, encode
from clustergate.core.files.whole import read_json
from clustergate.core.model import ClustergateError, Say
from clustergate.core.reasons import Words
from clustergate.core.words import INPUT_UNKNOWN_NAME
from clustergate.judge.history.listing import ENDED, MADE, keep_made
from clustergate.judge.history.node_states import NODE_STATE, astray_nodes, keep_states
from clustergate.launch.plan import NODES, PLAN, read_plan
from clustergate.run.execute import measure
from clustergate.run.placing import WISH_NOTHING_LEFT
from clustergate.run.prepare import state_here
from clustergate.run.reframe import call_for, with_settings, with_stacks
from clustergate.run.request import RUN_OPTIONS_DAMAGED
from clustergate.sites import configs as sites
from clustergate.sites import exclusions, modes
from clustergate.sites.description import Partition, Site
from clustergate.sites.schedulers import scheduler_of
from clustergate.stacks.set_up import NotSetUp, provide_each
from clustergate.studies.screen import folder, planning, wording
from clustergate.studies.screen.findings import Screening
from clustergate.studies.screen.plan import Log, Plan, is_screening


@dataclass(frozen=True)
class ScreenCall:
    """What a screening is called with, kept beside its results so that it can be taken up again.

    ``stack`` None stands for the first, ``options`` are further ones for ReFrame, ``without_nodes``
    are left out, and ``called`` is the call of the command.
    """

    site: Path
    asked: planning.ScreenRequest
    stack: str | None = None
    options: tuple[str, ...] = ()
    without_nodes: str = ""
    called: Sequence[Sequence[str]] = ()


def call_to_resume(run_id: str) -> ScreenCall | None:
    """Return what a screening was called with, None of one of an earlier version.

    Raises :class:`ClustergateError` where that is damaged.
    """
    path = store.run_folder(run_id) / MADE
    try:
        made = read_json(path)
        if "asked" not in made:
            return None
        own = {one.name: made[one.name] for one in dataclasses.fields(ScreenCall)}
        return decode(own, ScreenCall)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClustergateError(RUN_OPTIONS_DAMAGED(path=path, why=error)) from None


def partition_of(asked: planning.ScreenRequest, described: Site) -> Partition:
    """Return the partition to screen; raises :class:`ClustergateError` where there is none."""
    names = [partition.name for partition in described.partitions]
    if asked.partition and asked.partition not in names:
        facts = {"kind": "partition", "name": asked.partition}
        raise ClustergateError(INPUT_UNKNOWN_NAME(known=names, **facts))
    for one in described.partitions:
        if one.stacks and asked.partition in ("", one.name):
            return one
    raise ClustergateError(WISH_NOTHING_LEFT())


ONE_PARTITION = Words(
    "screening.one-partition",
    "the nodes of {names:and} were not screened",
    cause="a screening covers one partition, by default the first",
    remedy="`clustergate screen --partition NAME` screens another",
)


def not_screened(asked: planning.ScreenRequest, described: Site) -> list[str]:
    """Return which nodes take no part because nobody chose a partition, in a sentence or none."""
    others = [] if asked.partition else sites.partitions_with_own_nodes(described)[1:]
    names = [partition.name for partition in others]
    return [str(ONE_PARTITION(names=names))] if names else []


NO_RESULT = Words(
    "screening.no-result",
    "the screening left no result",
    cause="{why}",
    remedy="its output is in {log}",
)
NOTHING_MEASURED = Words(
    "screening.nothing-measured",
    "the screening measured nothing",
    cause="{why}",
    remedy="ReFrame's output is in {log}",
)
SCREENING_CAPPED = Words(
    "screening.capped",
    "the screening is limited to {most_s:g} s instead of {asked_s:g} s",
    cause="{why}",
)


def screen(
    site: Path,
    run_id: str,
    asked: planning.ScreenRequest,
    stack: str | None,
    say: Say,
    options: Sequence[str] = (),
    called: Sequence[Sequence[str]] = (),
) -> tuple[Log, Screening]:
    """Screen by ReFrame, with these further options, and return what was found.

    Raises :class:`ClustergateError` when the screening left nothing.
    """
    described = sites.load(site)
    with_stack = described.stacks_named([stack] if stack else [])[0]
    partition = partition_of(asked, described)
    # Before anything is built for it.
    planning.chosen(asked.nodes, exclusions.hostfile_of(described.name))
    where = folder.screening_folder(run_id)
    resumed = is_screening(where)
    if resumed:
        # It goes on with the plan that it has.
        asked = replace(asked, seconds=read_plan(where / PLAN, Plan).budget.seconds)
    within, limit_s = planning.within_limits(asked, partition)
    if within != asked and not resumed:
        of = {"asked_s": asked.seconds, "most_s": within.seconds}
        say(str(SCREENING_CAPPED(**of, why=str(partition.limits.why))))
    (provided,) = provide_each([with_stack.request], say=say)
    if isinstance(provided, NotSetUp):
        raise ClustergateError(provided.reason)
    store.make_folder(where.parent)
    settings = {
        "screen_stack": with_stack.name,
        "screen_partition": partition.name,
        "screen_nodes": asked.nodes,
        "screen_rounds": asked.rounds,
        "screen_seconds": within.seconds,
        "ScreenCheck.time_limit": f"{math.ceil(limit_s)}s",
        "screen_hpl_seconds": asked.hpl_seconds,
        "screen_launches": asked.launches,
        "screen_quick": int(asked.quick),
    }
    all_options = [
        *modes.SCREEN_OPTIONS,
        *with_stacks([with_stack.name]),
        *with_settings(settings),
        *options,
    ]
    call = call_for(run_id, site, all_options, report="screening-reframe.json")
    scheduler = scheduler_of(partition.scheduler)
    run = store.run_folder(run_id)
    without = os.environ.get(exclusions.WITHOUT_NODES, "")
    of_call = ScreenCall(site, asked, stack, tuple(options), without, called)
    keep_made(run_id, "screen", described.name, **encode(of_call))
    store.write_json(run / NODE_STATE, state_here([with_stack.name]))
    outcomes = measure(call, say, failure=lambda: wording.summarise_folder(where))
    reasons = [outcome.reason for outcome in outcomes if outcome.reason]
    keep_states(where / NODES, run)
    if not is_screening(where):
        why = (reasons or ["ReFrame ran no case"])[0]
        raise ClustergateError(NO_RESULT(why=why, log=call.log))
    plan, log, screening = folder.read_screening(where)
    if plan.what == "node":
        sentences = astray_nodes(run, first_too=asked.quick)
        screening = replace(screening, astray=(*screening.astray, *sentences))
    if screening.absent:
        # They are named, and why they are not used.
        more = (*screening.more_doubts, *scheduler.unused_notes())
        screening = replace(screening, more_doubts=more)
    if not log.results:
        # Of Slurm it takes the nodes that are free: where none is, ReFrame skips it.
        whys = [*(reasons[:1] or ["ReFrame skipped it"]), *scheduler.unused_notes()]
        why = "; ".join(whys)
        raise ClustergateError(NOTHING_MEASURED(why=why, log=call.log))
    return log, screening


def keep_verdict(run_id: str, system: str, log: Log, screening: Screening) -> None:
    """Note how a screening ended: last, when all that carries its verdict is written."""
    word = wording.word_for(wording.exit_status(log, screening), screening).lower()
    store.write_json(store.run_folder(run_id) / ENDED, {"verdict": word, "system": system})
