"""``clustergate roll``: screen nodes while users work."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock

from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress
from clustergate.cli.selection import add_job_options, add_site, choose_site, reframe_job_options
from clustergate.core.files.shared import locked
from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.paths import site_file, state_dir
from clustergate.core.quantities import parse_duration
from clustergate.core.reasons import Words
from clustergate.core.store import make_folder, user_name
from clustergate.core.texts import duration
from clustergate.core.web import require_http
from clustergate.core.words import OPTION_NOT_POSITIVE, OPTION_RANGE
from clustergate.run import actions
from clustergate.run.actions import Doer, Limits
from clustergate.run.rolling import NICE, Roller, Rolling, Write, plan_writer
from clustergate.run.screening import partition_of
from clustergate.sites import configs as sites
from clustergate.sites.description import Partition, Site
from clustergate.sites.schedulers import Scheduler, scheduler_of
from clustergate.sites.schedulers.job_options import words_in
from clustergate.stacks.set_up import NotSetUp, provide_each
from clustergate.studies.roll.ledger import Ledger, roll_folder
from clustergate.studies.roll.planner import Bounds
from clustergate.studies.roll.state import KINDS, Book, State
from clustergate.studies.screen.planning import ScreenRequest

DESCRIPTION = """\
Screen nodes and pairs of nodes as they become idle, by short jobs that all others go before, for
weeks; keep a ledger; name slow nodes with an error rate that holds at every look. It does nothing
to a node unless --act asks for it. Stopped, it goes on where it was. Exit status of --status and
--once: 0: nobody accused; 1: a node is; 2: it could not look. docs/rolling.md explains it."""

JUDGES = True


def add_options(parser: argparse.ArgumentParser) -> None:
    add_site(parser)
    option(parser, "--stack NAME", "measure with this stack (default: first)")
    option(parser, "--partition NAME", "default: first of the system", default="")
    option(parser, "--once", "look once, submit what is due, and end: for cron")
    option(parser, "--status", "print each node: last seen good, evidence, what was done")
    option(parser, "--undo ID", "take back an accusation (a3) or an action (a3-drain)")
    option(parser, "--wait TIME", "between two looks (default: 30s)", default="30s")
    group = parser.add_argument_group("how much of the machine it takes")
    option(group, "--share PERCENT", "of the nodes (default: 5)", type=float, default=5.0)
    option(group, "--jobs N", "at once (default: 4)", type=int, default=4)
    option(group, "--every TIME", "each node is looked at (default: 24h)", default="24h")
    option(group, "--apart TIME", "looks that count as two (default: 6h)", default="6h")
    option(group, "--nice N", f"of its jobs (default: {NICE})", type=int, default=NICE)
    group = parser.add_argument_group("what is done about accused nodes; without it, it is said")
    option(group, "--act LIST", f"some of {','.join(actions.KINDS)}", default="")
    option(group, "--issue URL", "GitLab's project: https://gitlab.site/api/v4/projects/42")
    option(group, "--webhook URL", "is posted JSON")
    option(group, "--mail ADDRESS", "is written to by sendmail")
    option(group, "--hold-after TIME", "a job waits before hold (default: 12h)", default="12h")
    option(group, "--most PERCENT", "of the nodes (default: 2)", type=float, default=2.0)
    option(group, "--per-hour N", "nodes (default: 1)", type=int, default=1)
    option(
        group,
        "--false-alarms N",
        "of 1000 sound nodes in a month (default: 1)",
        type=float,
        default=1.0,
    )
    add_job_options(parser)


UNKNOWN_ACTION = Words("roll.unknown-act", "--act knows no {name!r}{near}", remedy="known: {known}")
ANOTHER = Words(
    "roll.another",
    "another `clustergate roll` works with the ledger {path}",
    remedy="`clustergate roll --status` shows where it is",
)


def run(arguments: argparse.Namespace) -> int:
    """Roll, or print or undo what was done."""
    site = choose_site(arguments.site).path
    described = sites.load(site)
    ledger = Ledger(roll_folder(described.name))
    book = Book(ledger)
    if arguments.status:
        return _print_status(book)
    partition = partition_of(ScreenRequest(partition=arguments.partition), described)
    scheduler = scheduler_of(partition.scheduler)
    if arguments.undo:

        def doer_of(kind: str, target: str) -> Doer:
            return actions.doer_of(kind, target, scheduler)

        said = actions.undo(book, arguments.undo, doer_of, time.time(), user_name())
        print("\n".join(said))
        return 0
    asked, wait_s = _asked(arguments, scheduler), parse_duration(arguments.wait)
    if not wait_s:
        raise BadRequest(OPTION_NOT_POSITIVE(options="--wait"))
    words = words_in(reframe_job_options(arguments, site))
    # As the options leave out some of its nodes.
    described = sites.load(site)
    partition = partition_of(ScreenRequest(partition=arguments.partition), described)
    make_folder(ledger.path.parent)
    lock = ledger.path.with_suffix(".roller")
    try:
        with locked(lock, wait=False), Progress(arguments.invocation) as say:
            writer = _writer(described, partition, arguments.stack, say)
            fabric = site_file("hostfiles", f"{described.name}.ibnetdiscover")
            of_jobs = book, scheduler, partition, asked, writer, say, words, fabric
            return _roll(Roller(*of_jobs), say, wait_s, once=arguments.once)
    except filelock.Timeout:
        raise ClustergateError(ANOTHER(path=ledger.path)) from None


def _roll(roller: Roller, say: Progress, wait_s: float, *, once: bool) -> int:
    said = ""
    try:
        while True:
            try:
                roller.turn()
            except ClustergateError as error:
                if once or not _comes_back(error):
                    raise
                # What it asked for is asked for again.
                say(str(error))
            if (line := roller.summary()) != said:
                say(said := line)
            if once:
                return int(_has_lemons(roller.state))
            time.sleep(wait_s)
    except KeyboardInterrupt:
        roller.stop()
        say("what waited is cancelled; what runs is taken in by the next `clustergate roll`")
        raise


def _comes_back(error: ClustergateError) -> bool:
    return error.reason.code == "slurm.no-answer"


def _has_lemons(state: State) -> bool:
    return any(not one.closed for one in state.accusations.values())


def _writer(described: Site, partition: Partition, stack: str | None, say: Progress) -> Write:
    named = described.stacks_named([stack] if stack else [partition.stacks[0]])[0]
    (provided,) = provide_each([named.request], say=say)
    if isinstance(provided, NotSetUp):
        raise ClustergateError(provided.reason)
    by_srun = partition.launcher == "clustergate-srun"
    return plan_writer(provided, named, partition, named.pmi if by_srun else None)


def _asked(arguments: argparse.Namespace, scheduler: Scheduler) -> Rolling:
    for name in ("share", "most"):
        if not 0 < (value := getattr(arguments, name)) <= 100:
            of = {"option": f"--{name}", "value": value, "low": 0, "high": 100, "unit": "%"}
            raise BadRequest(OPTION_RANGE(**of))
    positive = ("jobs", "per_hour", "false_alarms", "nice")
    if bad := [name for name in positive if getattr(arguments, name) <= 0]:
        raise BadRequest(OPTION_NOT_POSITIVE(options=f"--{bad[0].replace('_', '-')}"))
    every_s, apart_s = parse_duration(arguments.every), parse_duration(arguments.apart)
    if not every_s or not apart_s:
        raise BadRequest(OPTION_NOT_POSITIVE(options="--every and --apart"))
    kinds = [*_kinds(arguments.act)]
    bounds = Bounds(arguments.share / 100, arguments.jobs, every_s, 3 * every_s, apart_s)
    hold_s = parse_duration(arguments.hold_after) if actions.HOLD in kinds else None
    return Rolling(
        bounds,
        Limits(arguments.most / 100, arguments.per_hour),
        arguments.false_alarms,
        [*_doers(arguments, kinds, scheduler)],
        hold_s,
        arguments.nice,
    )


def _kinds(listed: str) -> Iterator[str]:
    for name in filter(None, listed.split(",")):
        if name not in actions.KINDS:
            known, near = ", ".join(actions.KINDS), did_you_mean(nearest(name, actions.KINDS))
            raise BadRequest(UNKNOWN_ACTION(name=name, near=near, known=known))
        yield name


def _doers(
    arguments: argparse.Namespace, kinds: Sequence[str], scheduler: Scheduler
) -> Iterator[Doer]:
    for kind in kinds:
        target = getattr(arguments, kind, "")
        if kind in (actions.ISSUE, actions.WEBHOOK, actions.MAIL) and not target:
            raise BadRequest(actions.NO_TARGET(kind=kind, option=f"--{kind}"))
        if kind in (actions.ISSUE, actions.WEBHOOK):
            require_http(target)
        if kind != actions.HOLD:
            yield actions.doer_of(kind, target, scheduler)


def _print_status(book: Book) -> int:
    if book.ledger.torn:
        print(book.ledger.torn, file=sys.stderr)
    print("\n".join(status_lines(book.state, time.time(), book.ledger.path)))
    return int(_has_lemons(book.state))


def status_lines(state: State, now: float, path: Path) -> Iterator[str]:
    """Yield what is known of each node, the accused first, and what was done about them."""
    home = state_dir()
    yield f"ledger {path.relative_to(home) if path.is_relative_to(home) else path}"
    yield f"{len(state.nodes)} nodes, {state.node_seconds / 3600:.1f} node-hours of screening"
    width = max([*map(len, state.nodes), 4])
    yield f"{'node':{width}}  {'good alone':>14}  {'good in a pair':>14}  evidence"

    def urgency(name: str) -> tuple[bool, float, str]:
        return not state.of(name).accused, -state.of(name).log_evidence, name

    for name in sorted(state.nodes, key=urgency):
        node = state.of(name)
        ago = [
            f"{duration(max(now - node.good_at[kind], 0))} ago" if kind in node.good_at else "never"
            for kind in KINDS
        ]
        accusation = state.accusations.get(node.accused)
        slow = f"{', '.join(node.slow.values())} (e^{node.log_evidence:.1f})" if node.slow else ""
        said = f"ACCUSED {accusation.name}: {accusation.why}" if accusation else slow
        said = said or (f"lost {node.lost} times" if node.lost else "")
        yield f"{name:{width}}  {ago[0]:>14}  {ago[1]:>14}  {said}".rstrip()
    for one in state.accusations.values():
        closed = f"closed: {one.closed}" if one.closed else "stands"
        yield f"{one.name} {one.node}: {one.short}: {closed}"
    for action in state.actions.values():
        yield f"{action.of}-{action.kind} {action.node}: {action.outcome} {action.said}".rstrip()
