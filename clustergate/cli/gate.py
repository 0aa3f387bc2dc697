"""``clustergate gate``: after maintenance, may the machine go back to its users?"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import sys
import time
from collections.abc import Iterator

from clustergate import store
from clustergate.cli.answers import add_json, answering, telling
from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress, saying_if_interrupted
from clustergate.cli.selection import (
    add_confirmation,
    add_repeatable,
    add_run_options,
    named_folder,
    taken,
    wished,
)
from clustergate.files.shared import locked
from clustergate.files.whole import read_json
from clustergate.gate import controls
from clustergate.gate import decision as gating
from clustergate.gate.before import last_judged, last_run
from clustergate.gate.contract import Control, contract_of, reasons_of
from clustergate.gate.evidence import Publisher, compare_with, run_benchmarks, screen_partitions
from clustergate.history.listing import GATE, JUNIT, SUMMARY
from clustergate.history.stored_runs import doubted_runs, left_out, seconds_last_time
from clustergate.launching.hostfiles import fold
from clustergate.model import ClustergateError, Evidence, Run, Verdict
from clustergate.references.lookup import references_of
from clustergate.schedulers import NO_ANSWER
from clustergate.session.forecast import beyond_forecast
from clustergate.session.judge import cores_by_node, idle_cores
from clustergate.session.placing import keep_out
from clustergate.session.readiness import nodes_in_the_way, say_in_the_way, without_references
from clustergate.session.request import Request
from clustergate.session.software_evidence import Builds, seconds_to_decide
from clustergate.sites import configs as sites
from clustergate.sites import modes
from clustergate.sites.modes import MAINTENANCE
from clustergate.stacks.set_up import STACK_NOT_PROVIDED
from clustergate.verdicts import coverage
from clustergate.wording.commands import Invocation
from clustergate.wording.quantities import parse_duration
from clustergate.wording.reasons import Reason, Words
from clustergate.wording.texts import Foreseen, clock, duration

DESCRIPTION = """\
Screen the system's nodes and links, run the maintenance mode on the good ones, compare with the
references and with the last such run, and answer on one page. Exit status 0: open; 1: stay closed,
because something is slower than before or than its reference; 2: no verdict. The gate opens only
when every check was judged with every stack in every partition. Under a budget the checks that find
most run first; what is left out counts as not judged. docs/operators.md says what to do next."""

PAGE = "gate.html"
# A later end than was announced is told from this on.
_TOLD_S = 60.0
JUDGES = True


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "--budget TIME", "such as 20m (default: enough for everything)")
    add_repeatable(parser, "--stack", "only this stack (repeatable): finds faults, but never opens")
    option(
        parser,
        "--before RUN",
        "compare with this run (default: the last one that did not keep the gate closed)",
    )
    add_confirmation(parser)
    add_json(parser)
    add_run_options(parser)
    # Whoever interrupted one looks for it.
    option(parser, "--resume RUN", argparse.SUPPRESS, nargs="?", const="last")


NOT_RESUMED = Words(
    "gate.not-resumed",
    "a gate is not resumed",
    cause="what it found would be of another moment",
    remedy="`clustergate gate` measures anew",
)


def run(arguments: argparse.Namespace) -> int:
    """Screen, measure, compare, decide; print the answer and leave its page."""
    started = datetime.datetime.now().astimezone()
    if arguments.resume:
        raise ClustergateError(NOT_RESUMED())
    run_id = store.new_run_id(started)
    anew = "a gate is not resumed: `clustergate gate` measures anew"
    try:
        with (
            answering(run_id, in_json=arguments.json),
            saying_if_interrupted(store.run_folder(run_id) / GATE, anew, arguments.invocation),
        ):
            return _gate(arguments, started, run_id)
    finally:
        if arguments.copy_to is not None:
            store.copy_run(run_id, arguments.copy_to)


def _unfinished(system: str) -> tuple[str, str]:
    """Return the newest gate of a system that has no answer yet, and who began it."""
    for path in sorted(store.runs_folder().glob(f"*/{GATE}"), reverse=True):
        with contextlib.suppress(OSError, ValueError):
            begun = read_json(path)
            if (begun.get("system"), begun.get("status")) == (system, None):
                return path.parent.name, str(begun.get("by"))
    return "last", "somebody"


GATE_ANOTHER = Words(
    "gate.another",
    "the gate {run} of {system} is still running (by {by})",
    cause="two at once take the nodes from each other, and neither could judge",
    remedy=(
        "wait until it has ended, and see its answer by `clustergate show {run}`; or interrupt "
        "it, and run this one again"
    ),
)


@contextlib.contextmanager
def _alone(system: str) -> Iterator[None]:
    """Hold the lock of a system's gates; raises :class:`ClustergateError` that names who does."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(store.runs_folder().parent / f"gate-{system}", wait=False))
        except TimeoutError:
            run, by = _unfinished(system)
            raise ClustergateError(GATE_ANOTHER(system=system, run=run, by=by)) from None
        yield


def _gate(arguments: argparse.Namespace, started: datetime.datetime, run_id: str) -> int:
    chosen = taken(arguments.site)
    with _alone(sites.load(chosen.path).name):
        return _gate_alone(arguments, chosen, started, run_id)


GONE_SINCE = Words(
    "gate.gone-since",
    "the site config lacks {cases:names}, which the gate judged in run {run}",
    remedy=(
        "bring it back, waive it in the site config with the reason, or accept it for good by "
        "`clustergate gate --before {this}`"
    ),
)
SMALL_BUDGET = Words(
    "gate.small-budget",
    "the budget is too small for any of them",
    remedy="give it more",
)


def _gate_alone(
    arguments: argparse.Namespace, chosen: sites.Choice, started: datetime.datetime, run_id: str
) -> int:
    # SciPy takes longer to import than all other commands need.
    from clustergate.report import console
    from clustergate.report.gate import first_screen, render_gate
    from clustergate.report.junit import render_junit
    from clustergate.report.publishing import publish
    from clustergate.report.screening import write_forms
    from clustergate.session.software import against_golden, builds_of

    invocation: Invocation = arguments.invocation
    begun = time.monotonic()
    site = chosen.path
    wishes = wished(arguments, site)
    described = sites.load(site)
    system = described.name
    if arguments.before:
        arguments.before = named_folder(arguments.before).name
    # Whether it opened or not: only how long it took counts here.
    took_before = seconds_last_time(system, MAINTENANCE, arguments.reframe_options)
    named = [one.name for one in described.stacks_named(arguments.stack)]
    builds, golden_s, given = builds_of(described, named)
    contract = contract_of(
        described, arguments.stack, arguments.budget, took_before, builds, golden_s
    )
    too_short = contract.seconds < contract.needed_s
    if too_short:
        # To do the same again would not open it.
        invocation = invocation.with_value("--budget", f"{contract.needed_s / 60:.0f}m")
    arguments.invocation = invocation
    publisher = Publisher(
        functools.partial(publish, invocation=invocation),
        functools.partial(write_forms, invocation=invocation),
    )
    by_hand, excluded = sites.nodes_out(system)
    unfit = ""
    remedy = "run `clustergate gate` without --nodes and --exclude, or exclude them in the hostfile"
    if chosen.fallback:
        unfit = f"the site config is a guess: {chosen.why}"
        remedy = f"if it describes this machine, run `clustergate gate --site {system}`"
    elif chosen.disputed:
        unfit, remedy = f"the site config is {chosen.why}", "run `clustergate gate` on its machines"
    elif by_hand:
        unfit = f"{fold(by_hand)} left out by --nodes or --exclude"
    elif laid_out := coverage.LAYOUT & coverage.settings_by_hand(arguments.reframe_options):
        # Where no reference tells that it should have been more, nothing else would.
        unfit = f"{', '.join(sorted(laid_out))} set by -S, instead of all cores and nodes"
        remedy = "run the gate without that setting"
    if unfit:
        contract = contract.with_nothing_judged(unfit, remedy)
    with Progress(invocation) as say:
        in_the_way = say_in_the_way(say, site, contract.stacks, software=True)
        begins = datetime.datetime.now()
        due = begins + datetime.timedelta(seconds=contract.seconds)
        say(
            f"done by about {clock(begins, contract.seconds)} ({duration(contract.seconds)})"
            + beyond_forecast(described, contract.stacks)
        )
        for limits in (partition.limits for partition in described.partitions):
            if limits.reservation and (limits.seconds or 0) < contract.seconds:
                say(str(limits.why))
                break
        for note in given:
            say(note)
        known = references_of(system)
        of_nodes = [
            one.says for one in in_the_way if one.is_of_nodes and isinstance(one.says, Reason)
        ]
        for why in (
            *reasons_of(contract.judged_by(())),
            *coverage.lacking(known, modes.mode_named(MAINTENANCE), described.partitions, ()),
            *(one for one in of_nodes if one.code != NO_ANSWER.code),
        ):
            say(f"the gate will not open, whatever the results: {why}")
        referenced = bool(known.paths())
        unreferenced = without_references(system, known)
        if not referenced:
            say(str(unreferenced))
        # Until it is decided, no later run may be compared with it.
        what = {"system": system, "mode": MAINTENANCE, "by": store.user_name()}
        undecided = {"status": None, **what, "called": invocation.call}
        store.write_json(store.run_folder(run_id) / GATE, undecided)
        evidence, without, nodes = screen_partitions(
            *(site, run_id, described, contract, arguments.before, say, wishes),
            publisher=publisher,
            called=invocation.call,
        )
        if not contract.allotted.checks:
            if any(one.reasons[0].code == STACK_NOT_PROVIDED.code for one in evidence):
                # More time would not help.
                doctor = "see what `clustergate doctor` says of it"
                contract = contract.with_nothing_judged("its stack could not be set up", doctor)
            else:
                small = Evidence("benchmarks", Verdict.INVALID, (SMALL_BUDGET(),))
                evidence.append(small)
        now, after_s = datetime.datetime.now(), contract.left_after_screening_s()
        if abs((now - due).total_seconds() + after_s) > _TOLD_S:
            say(f"now done by about {clock(now, after_s)}, not {clock(begins, contract.seconds)}")
        keep_out(without)
        until = None
        if arguments.budget:
            until = time.time() + parse_duration(arguments.budget) - (time.monotonic() - begun)
        request = Request(
            modes.mode_named(MAINTENANCE),
            site,
            contract.allotted.stacks,
            contract.allotted.checks,
            (*arguments.reframe_options, *wishes),
            site_told=str(chosen),
            fallback=chosen.fallback,
            confirm=not arguments.no_confirm,
            confirm_wait_s=parse_duration(arguments.confirm_wait),
            confirm_until=until,
        )

        def say_with_golden(sentence: str) -> None:
            if isinstance(sentence, Foreseen):
                sentence = sentence.followed_by(contract.golden_s)
            say(sentence)

        results, ran = run_benchmarks(request, run_id, started, say_with_golden, publisher)
        used_s, left_s = time.monotonic() - begun, None
        if arguments.budget:
            budget_s = parse_duration(arguments.budget)
            left_s = budget_s - used_s
        of_software, unpinned = against_golden(
            site, run_id, described, contract.stacks, left_s, wishes, say, invocation.call
        )
        # What a node is when all has been measured counts, too.
        left_s = None if left_s is None else budget_s - (time.monotonic() - begun)
        of_nodes_now = nodes_in_the_way(described, left_s, say)
    software_s = seconds_to_decide(of_software)
    if software_s:
        # One budget for all that is open, whatever leaves it open.
        contract = contract.deciding_software(software_s, used_s)
        software_s = contract.needed_s
        invocation = invocation.with_value("--budget", f"{software_s / 60:.0f}m")
    if too_short and builds is Builds.UNPINNED and not referenced:
        # More time alone would not open it.
        evidence.append(Evidence("references", Verdict.NO_REFERENCE, (unreferenced,)))
    today = started.astimezone(datetime.timezone.utc).date().isoformat()

    def control_of(stack: str) -> Control:
        return controls.both(controls.of_software(stack, of_software, today), nodes)

    cases = ran.cases if ran else ()
    items = contract.judged_by(cases, control_of)
    results += [] if ran is None else gating.of_cases(cases, control_of)
    evidence += [*results, *of_software]
    asked = arguments.before is not None
    measured = store.read_cases(run_id)
    before = arguments.before or (last_run(system, measured) if measured else None)
    evidence += [*gating.of_coverage(items), *compare_with(before, run_id, asked=asked)]
    mode = modes.mode_named(MAINTENANCE)
    lost = coverage.lacking(known, mode, described.partitions, cases)
    evidence += [Evidence("references", Verdict.INCONCLUSIVE, (why,)) for why in lost]
    waived = {(check, one.name) for one in described.stacks for check in one.waivers}
    since, then = last_judged(system, arguments.before)
    if gone := coverage.gone_since(then, mode, described.partitions, waived):
        why = GONE_SINCE(cases=gone, run=since, this=run_id)
        evidence.append(Evidence("what must be judged", Verdict.INCONCLUSIVE, (why,)))
    of_nodes_now += idle_cores(measured, cores_by_node(run_id), described.partitions)
    # What they are is the commonest cause of what was not measured.
    evidence[:0] = gating.of_nodes(of_nodes, of_nodes_now)
    decision = gating.decide(evidence)
    # Who reads the answer is to know what it does not speak of.
    doubted = left_out(doubted_runs().values())
    notes = [str(chosen), *contract.notes, *excluded, *given, *unpinned, *doubted]
    page = store.run_folder(run_id) / PAGE
    judged = Run(
        *(run_id, system, MAINTENANCE, started.isoformat(timespec="seconds")),
        *(time.monotonic() - begun, tuple(cases)),
        evidence=tuple(evidence),
        machine=ran.machine if ran else {},
        before=ran.before if ran else {},
        expectations=ran.expectations if ran else (),
    )
    store.write_text(page.parent / JUNIT, render_junit(judged, invocation))
    first = first_screen(decision, run_id, cases, software_s)
    text = render_gate(first, judged, page.parent, notes, items, invocation)
    store.write_text(page, text)
    answer = [
        *first.lines(),
        *(f"{one.part}: {one.sentence}" for one in evidence if one.verdict is Verdict.PASS),
        *notes,
    ]
    # In the place of that of the benchmarks, which may be a pass where the gate stays closed.
    answer = [*map(invocation.completed, answer)]
    store.write_text(page.parent / SUMMARY, "\n".join(answer) + "\n")
    ended = f"clustergate gate: exit status {decision.status}: {decision.sentence}"
    # The verdict comes last: who reads it finds all that carries it.
    decided = {
        **what,
        "status": decision.status,
        "word": decision.word,
        "because": decision.because,
        "evidence": [one.plain() for one in evidence],
        "must_be_judged": [
            {"what": one.what, "judged": one.judged, "by": one.by, "why_not": one.why}
            for one in items
        ],
        "waived": contract.notes,
        "excluded": excluded,
        "site": str(chosen),
    }
    store.write_json(store.run_folder(run_id) / GATE, invocation.in_json(decided))
    with telling(run_id):
        console.print_lines(["", *answer, f"page: {page}", ended], invocation)
        sys.stdout.flush()
    return decision.status
