"""A gate from end to end: prepare, screen, run the benchmarks, launch golden builds, decide.

It returns the answer; whoever called it has it published. Until then the run says that it is not
decided.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clustergate.benchmarks.registry import descriptor_of, every_check
from clustergate.core import store
from clustergate.core.commands import Invocation, settings_given
from clustergate.core.files.shared import locked
from clustergate.core.files.stored import encode
from clustergate.core.files.whole import read_json
from clustergate.core.model import (
    Case,
    CaseRecord,
    ClustergateError,
    Evidence,
    Run,
    Say,
    Verdict,
)
from clustergate.core.quantities import parse_duration
from clustergate.core.reasons import Reason, Words
from clustergate.core.texts import ProgressLine, clock, duration
from clustergate.judge import coverage
from clustergate.judge.assembly import compared
from clustergate.judge.history.listing import GATE
from clustergate.judge.history.stored_runs import TRIAL, doubted_runs, last_time, left_out
from clustergate.judge.judging import COMPARED
from clustergate.judge.promises import foreseen
from clustergate.judge.references.lookup import References, references_of
from clustergate.launch.hostfiles import fold
from clustergate.run.forecast import beyond_forecast
from clustergate.run.gate import controls, decision
from clustergate.run.gate.before import last_judged, last_run
from clustergate.run.gate.contract import (
    Contract,
    Control,
    ControlOf,
    Requirement,
    accept_gains,
    make_contract,
    open_reasons,
)
from clustergate.run.gate.decision import Decision
from clustergate.run.gate.evidence import Publisher, compare_with, run_benchmarks, screen_partitions
from clustergate.run.judge import cores_by_node, idle_cores
from clustergate.run.placing import keep_out
from clustergate.run.prepare import require_options
from clustergate.run.readiness import nodes_in_the_way, say_in_the_way, without_references
from clustergate.run.request import Request
from clustergate.run.software_evidence import Builds, seconds_to_decide
from clustergate.sites import choice, exclusions, modes
from clustergate.sites.description import Site
from clustergate.sites.modes import MAINTENANCE, judged_figures
from clustergate.sites.schedulers import NO_ANSWERS
from clustergate.stacks.set_up import STACK_NOT_PROVIDED

# A later end than was announced is told from this on.
_TOLD_S = 60.0

GATE_ANOTHER = Words(
    "gate.another",
    "the gate {run} of {system} is still running (by {by})",
    cause="two at once take the nodes from each other, and neither could judge",
    remedy=(
        "wait until it has ended, and see its answer by `clustergate show {run}`; or interrupt "
        "it, and run this one again"
    ),
)
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


@dataclass(frozen=True)
class GateRequest:
    """What a gate is asked for: of these ``stacks`` alone, or of all where none is named.

    ``site`` is what the ``chosen`` site config says. ``before`` is the run to compare with, None
    for the last that did not keep it closed. ``options`` are further ones for ReFrame,
    ``scheduler_options`` those of them by which jobs ask the scheduler. What looks slow is launched
    again if it is to ``confirm``, a job of that waiting ``confirm_wait_s`` at most. A ``trial`` is
    no standard of any other run.
    """

    site: Site
    chosen: choice.Choice
    invocation: Invocation
    stacks: Sequence[str] = ()
    budget: str | None = None
    before: str | None = None
    options: Sequence[str] = ()
    scheduler_options: Sequence[str] = ()
    confirm: bool = True
    confirm_wait_s: float = 0.0
    trial: bool = False


@dataclass(frozen=True)
class Gate:
    """A gate that is under way: what was asked for, and what must be judged.

    ``began_s`` is by the monotonic clock. ``excluded`` and ``notes`` are sentences for the answer,
    on nodes that the hostfile leaves out and on golden ``builds``. ``invocation`` is the call that
    would open it: with the budget that it takes.
    """

    request: GateRequest
    run_id: str
    started: datetime.datetime
    began_s: float
    site: Site
    references: References
    contract: Contract
    builds: Builds
    excluded: Sequence[str]
    notes: Sequence[str]
    invocation: Invocation

    def named(self) -> dict[str, Any]:
        """Return what its file says of it from its begin."""
        trial = {"trial": True} if self.request.trial else {}
        of = {"system": self.site.name, "mode": MAINTENANCE, "by": store.user_name()}
        return {**of, **trial}

    @property
    def trial_note(self) -> list[str]:
        return [str(TRIAL(run=self.run_id))] if self.request.trial else []

    def used_s(self) -> float:
        """Return how many seconds ago it began."""
        return time.monotonic() - self.began_s

    def left_s(self) -> float | None:
        """Return how much of the budget is left, None without one."""
        budget = self.request.budget
        return parse_duration(budget) - self.used_s() if budget else None

    def with_budget(self, seconds: float) -> Gate:
        """Return it with a call that has this budget, where it has any: the same would not open."""
        invocation = self.invocation.with_value("--budget", f"{seconds / 60:.0f}m")
        return dataclasses.replace(self, invocation=invocation)


@dataclass(frozen=True)
class Measured:
    """What a gate measured: the evidence of each part, and what may stand for references.

    ``run`` is that of the benchmarks, None where none ran; ``nodes`` says whether the nodes are as
    on earlier days. ``before`` and ``after`` are what spoke against the nodes then. ``used_s``
    passed until golden builds were launched, ``notes`` are on stacks without one.
    """

    screening: Sequence[Evidence]
    benchmarks: Sequence[Evidence]
    software: Sequence[Evidence]
    run: Run | None
    nodes: Control
    before: Sequence[Reason]
    after: Sequence[Reason]
    used_s: float
    notes: Sequence[str]


@dataclass(frozen=True)
class Answer:
    """What a gate answers: its decision, and the ``run`` with all evidence that it follows from.

    ``items`` are what must be judged, ``waived`` and ``excluded`` what the site config and the
    hostfile leave out, with ``notes`` all that the answer does not speak of. A budget of
    ``software_s`` would probably decide what golden builds leave open, 0 where nobody can say.
    ``named`` is :meth:`Gate.named`, ``resume`` are the commands by which schedulers give the nodes
    LIST to jobs again.
    """

    named: Mapping[str, Any]
    decision: Decision
    run: Run
    items: Sequence[Requirement]
    waived: Sequence[str]
    excluded: Sequence[str]
    notes: Sequence[str]
    site: str
    software_s: float
    invocation: Invocation
    resume: Sequence[str] = ()

    def plain(self) -> dict[str, Any]:
        """Return it for JSON, as it is kept in the folder of its run."""
        return {
            **self.named,
            "status": self.decision.status,
            "word": self.decision.word,
            "code": self.decision.code,
            "because": self.decision.because,
            "evidence": encode(self.run.evidence),
            "must_be_judged": [
                {"what": one.name, "judged": one.judged, "by": one.by, "why_not": one.why}
                for one in self.items
            ],
            "waived": self.waived,
            "excluded": self.excluded,
            "site": self.site,
        }


@contextlib.contextmanager
def alone(system: str) -> Iterator[None]:
    """Hold the lock of a system's gates; raises :class:`ClustergateError` that names who does."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(store.runs_folder().parent / f"gate-{system}", wait=False))
        except TimeoutError:
            run, by = _unfinished(system)
            raise ClustergateError(GATE_ANOTHER(system=system, run=run, by=by)) from None
        yield


def _unfinished(system: str) -> tuple[str, str]:
    """Return the newest gate of a system that has no answer yet, and who began it."""
    for path in sorted(store.runs_folder().glob(f"*/{GATE}"), reverse=True):
        with contextlib.suppress(OSError, ValueError):
            begun = read_json(path)
            if (begun.get("system"), begun.get("status")) == (system, None):
                return path.parent.name, str(begun.get("by"))
    return "last", "somebody"


# --- prepare --------------------------------------------------------------------------------------


def prepare(request: GateRequest, run_id: str, started: datetime.datetime) -> Gate:
    """Return what must be judged, and what of it fits into the budget; nothing is begun.

    Raises :class:`ClustergateError` and what sites and references raise.
    """
    # SciPy takes longer to import than all other commands need.
    from clustergate.run.software import builds_of

    began_s = time.monotonic()
    site = request.site
    by_hand, excluded = exclusions.nodes_out(site.name)
    unfit = _unfit(request, by_hand)
    chosen = modes.reframe_options(modes.mode_named(MAINTENANCE, site.checks))
    require_options(request.chosen.path, site, chosen, request.options)
    # Whether it opened or not: only how long it took counts here.
    took_before, _ = last_time(site.name, MAINTENANCE, request.options)
    stacks = [one.name for one in site.stacks_named(request.stacks)]
    builds, golden_s, notes = builds_of(site, stacks)
    known = references_of(site.name)
    referenced = {check for check, _, _ in known.foreseen(MAINTENANCE)}
    contract = make_contract(
        *(site, request.stacks, request.budget, took_before, builds, golden_s, referenced)
    )
    if unfit:
        contract = contract.with_nothing_judged(*unfit)
    gate = Gate(
        *(request, run_id, started, began_s, site, known),
        *(contract, builds, excluded, notes, request.invocation),
    )
    return gate.with_budget(contract.needed_s) if contract.is_short_of_time else gate


def _unfit(request: GateRequest, by_hand: Sequence[str]) -> tuple[str, str] | None:
    """Return why a call judges something else than the whole system, and the remedy."""
    chosen = request.chosen
    if chosen.fallback:
        remedy = f"if it describes this machine, run `clustergate gate --site {request.site.name}`"
        return f"the site config is a guess: {chosen.why}", remedy
    if chosen.disputed:
        return f"the site config is {chosen.why}", "run `clustergate gate` on its machines"
    if by_hand:
        remedy = "run `clustergate gate` without --nodes and --exclude, or exclude them in the "
        return f"{fold(by_hand)} left out by --nodes or --exclude", f"{remedy}hostfile"
    if laid_out := coverage.LAYOUT & coverage.settings_by_hand(request.options):
        # Where no reference tells that it should have been more, nothing else would.
        names = ", ".join(sorted(laid_out))
        why = f"{names} set by -S, instead of all cores and nodes"
        return why, "run the gate without that setting"
    if fewer := _fewer_launches(request):
        why = f"{', '.join(fewer)} set by -S, fewer launches than a gate makes"
        return why, "run the gate without that setting"
    return None


def _fewer_launches(request: GateRequest) -> list[str]:
    """Return the settings by which checks are launched less often than the gate's mode does."""
    mode, fewer = modes.mode_named(MAINTENANCE, request.site.checks), []
    for setting in settings_given(request.options):
        name, _, count = setting.partition("=")
        check, _, variable = name.rpartition(".")
        least = [
            modes.effort_of(mode, descriptor_of(one)).budget.at_least
            for one in mode.checks
            if check in ("", one)
        ]
        if variable == "launches" and count.isdigit() and 0 < int(count) < max(least, default=0):
            fewer.append(setting)
    return fewer


# --- measure --------------------------------------------------------------------------------------


def measure(gate: Gate, publisher: Publisher, say: Say) -> tuple[Gate, Measured]:
    """Screen the nodes, run the benchmarks on the good ones, and launch golden builds.

    The gate that is returned is that of what turned out to be runnable.
    """
    from clustergate.run.software import against_golden

    before = _nodes_in_doubt(gate, say)
    begins = datetime.datetime.now()
    _announce(gate, before, begins, say)
    # Until it is decided, no later run may be compared with it.
    undecided = {"status": None, **gate.named(), "called": gate.invocation.call}
    store.write_json(store.run_folder(gate.run_id) / GATE, undecided)
    where, called = (gate.request.chosen.path, gate.run_id, gate.site), gate.invocation.call
    options = gate.request.scheduler_options
    screening, without, nodes = screen_partitions(
        *(*where, gate.contract, gate.request.before, say, options),
        publisher=publisher,
        called=called,
    )
    gate, small = _with_checks(gate, screening)
    _say_if_late(gate, begins, say)
    keep_out(without)
    benchmarks, run = run_benchmarks(
        _benchmarks_of(gate), gate.run_id, gate.started, _foreseeing_golden(gate, say), publisher
    )
    used_s = gate.used_s()
    software, notes = against_golden(
        *where, gate.contract.stacks, gate.left_s(), options, say, called
    )
    # What a node is when all has been measured counts, too.
    after = nodes_in_the_way(gate.site, gate.left_s(), say)
    screening = [*screening, *small]
    of_run = benchmarks, software, run, nodes, before, after
    return gate, Measured(screening, *of_run, used_s, notes)


def _nodes_in_doubt(gate: Gate, say: Say) -> list[Reason]:
    """Say what is in the way, and return what of it speaks against the nodes."""
    in_the_way = say_in_the_way(say, gate.request.chosen.path, gate.contract.stacks, software=True)
    return [x.says for x in in_the_way if x.is_of_nodes and isinstance(x.says, Reason)]


def _announce(gate: Gate, nodes: Sequence[Reason], begins: datetime.datetime, say: Say) -> None:
    """Say when it will be done, and what will keep it closed whatever is measured."""
    contract, known = gate.contract, gate.references
    say(
        f"done by about {clock(begins, contract.seconds)} ({duration(contract.seconds)})"
        + beyond_forecast(gate.site, contract.stacks)
    )
    for limits in (partition.limits for partition in gate.site.partitions):
        if limits.until is not None and (limits.seconds or 0) < contract.seconds:
            say(str(limits.why))
            break
    for note in (*gate.trial_note, *gate.notes):
        say(note)
    for why in (
        *open_reasons(contract.judged_by(())),
        *coverage.lacking(known, _mode_of(gate), gate.site.partitions, ()),
        *(one for one in nodes if one.code not in NO_ANSWERS),
    ):
        say(f"the gate will not open, whatever the results: {why}")
    if not known.paths():
        say(str(without_references(gate.site.name, known)))
    for why in promised_before(gate.site, known):
        say(str(why))


def promised_before(site: Site, known: References) -> list[Reason]:
    """Return what the references can promise, by the last run that they apply to.

    A limit follows from the baseline alone, whatever that run measured.
    """
    mode, nodes = modes.mode_named(MAINTENANCE), {o.fullname: o.facts for o in site.partitions}
    try:
        # Of a package that is gone nothing is judged.
        records = [
            one for one in store.read_cases(last_run(site.name) or "") if one.check in every_check()
        ]
        beside = compared(records, known.find, nodes)
    except ClustergateError:
        # There is none, or it is another version's.
        return []
    judged = {one.name: judged_figures(mode, every_check()[one.check]) for one in records}
    promised = [x for name, some in beside.promises.items() for x in some if x.name in judged[name]]
    return foreseen([*promised, *(one for some in beside.wholes.values() for one in some)])


def _with_checks(gate: Gate, screening: Sequence[Evidence]) -> tuple[Gate, list[Evidence]]:
    """Return the gate with the reason why no check runs where none does, and that as evidence."""
    if gate.contract.allotted.checks:
        return gate, []
    if any(one.reasons[0].code == STACK_NOT_PROVIDED.code for one in screening):
        # More time would not help.
        doctor = "see what `clustergate doctor` says of it"
        contract = gate.contract.with_nothing_judged("its stack could not be set up", doctor)
        return dataclasses.replace(gate, contract=contract), []
    return gate, [Evidence("benchmarks", Verdict.INVALID, (SMALL_BUDGET(),))]


def _say_if_late(gate: Gate, begins: datetime.datetime, say: Say) -> None:
    now, after_s = datetime.datetime.now(), gate.contract.left_after_screening_s()
    foreseen_s = gate.contract.seconds
    if abs((now - begins).total_seconds() + after_s - foreseen_s) > _TOLD_S:
        say(f"now done by about {clock(now, after_s)}, not {clock(begins, foreseen_s)}")


def _foreseeing_golden(gate: Gate, say: Say) -> Say:
    """Return what says of the benchmarks when golden builds behind them will be done as well."""

    def say_with_golden(sentence: str) -> None:
        if isinstance(sentence, ProgressLine):
            sentence = sentence.followed_by(gate.contract.golden_s)
        say(sentence)

    return say_with_golden


def _benchmarks_of(gate: Gate) -> Request:
    """Return the request for the benchmarks for which there is time."""
    asked, allotted, left_s = gate.request, gate.contract.allotted, gate.left_s()
    return Request(
        modes.mode_named(MAINTENANCE),
        asked.chosen.path,
        allotted.stacks,
        allotted.checks,
        (*asked.options, *asked.scheduler_options),
        site_told=str(asked.chosen),
        fallback=asked.chosen.fallback,
        confirm=asked.confirm,
        confirm_wait_s=asked.confirm_wait_s,
        confirm_until=None if left_s is None else time.time() + left_s,
        promises=True,
        trial=asked.trial,
    )


# --- decide ---------------------------------------------------------------------------------------


def decide(gate: Gate, measured: Measured) -> Answer:
    """Return the answer, by what was measured and by the runs and screenings before."""
    software_s = seconds_to_decide(measured.software)
    contract = gate.contract
    if software_s:
        # One budget for all that is open, whatever leaves it open.
        contract = contract.deciding_software(software_s, measured.used_s)
        software_s = contract.needed_s
        gate = gate.with_budget(software_s)
    promises = measured.run.promises if measured.run else {}
    cases = accept_gains(measured.run.cases if measured.run else (), promises)
    items = contract.judged_by(cases, _control_of(gate, measured), promises)
    records = store.read_cases(gate.run_id, samples=False)
    after = idle_cores(records, cores_by_node(gate.run_id), gate.site.partitions)
    evidence = [
        # What the nodes are is the commonest cause of what was not measured.
        *decision.node_evidence(measured.before, [*measured.after, *after]),
        *measured.screening,
        *_unreferenced(gate),
        *measured.benchmarks,
        *(decision.benchmark_evidence(cases, items) if measured.run else ()),
        *measured.software,
        *decision.coverage_evidence(items),
        *_against_before(gate, records, cases),
        *_lost(gate, cases),
    ]
    # Who reads the answer is to know what it does not speak of.
    doubted = left_out(doubted_runs().values())
    more = [*gate.excluded, *gate.notes, *measured.notes, *doubted]
    chosen = str(gate.request.chosen)
    return Answer(
        gate.named(),
        decision.decide(evidence),
        _run_of(gate, measured.run, evidence),
        *(items, contract.notes, gate.excluded, [chosen, *gate.trial_note, *contract.notes, *more]),
        *(chosen, software_s, gate.invocation),
        [line for one in gate.site.schedulers if (line := one.resume_line("LIST"))],
    )


def _control_of(gate: Gate, measured: Measured) -> ControlOf:
    """Return what tells of a stack what stands for references that are not there."""
    today = gate.started.astimezone(datetime.timezone.utc).date().isoformat()
    return lambda stack: controls.joint_control(
        controls.software_control(stack, measured.software, today), measured.nodes
    )


def _unreferenced(gate: Gate) -> list[Evidence]:
    """Return that there are no references, where more time alone would not open the gate."""
    short = gate.contract.is_short_of_time and gate.builds is Builds.UNPINNED
    if not short or gate.references.paths():
        return []
    why = without_references(gate.site.name, gate.references)
    return [Evidence("references", Verdict.NO_REFERENCE, (why,))]


def _against_before(
    gate: Gate, records: Sequence[CaseRecord], cases: Sequence[Case]
) -> list[Evidence]:
    """Return what is worse than in the run before, or in the one that was named."""
    held = {
        (case.check, case.stack, figure.benchmark)
        for case in cases
        for figure in case.figures
        if figure.judgement.verdict in COMPARED
    }
    named = gate.request.before
    before = named or (last_run(gate.site.name, records) if records else None)
    return compare_with(before, gate.run_id, held, asked=named is not None)


def _mode_of(gate: Gate) -> modes.Mode:
    return modes.mode_named(MAINTENANCE, gate.site.checks)


def _lost(gate: Gate, cases: Sequence[Case]) -> list[Evidence]:
    """Return what references foresee and nothing yields, and what the site config has no more."""
    mode, partitions = _mode_of(gate), gate.site.partitions
    lost = coverage.lacking(gate.references, mode, partitions, cases)
    evidence = [Evidence("references", Verdict.INCONCLUSIVE, (why,)) for why in lost]
    waived = {(check, one.name) for one in gate.site.stacks for check in one.waivers}
    since, then = last_judged(gate.site.name, gate.request.before)
    if gone := coverage.gone_since(then, mode, partitions, waived):
        why = GONE_SINCE(cases=gone, run=since, this=gate.run_id)
        evidence.append(Evidence("what must be judged", Verdict.INCONCLUSIVE, (why,)))
    return evidence


def _run_of(gate: Gate, benchmarks: Run | None, evidence: Sequence[Evidence]) -> Run:
    """Return the run of a gate: the cases of its benchmarks, and all evidence."""
    began = gate.started.isoformat(timespec="seconds")
    of_gate = gate.run_id, gate.site.name, MAINTENANCE, began, gate.used_s()
    if benchmarks is None:
        return Run(*of_gate, (), evidence=tuple(evidence))
    return Run(
        *of_gate,
        tuple(benchmarks.cases),
        evidence=tuple(evidence),
        machine=benchmarks.machine,
        before=benchmarks.before,
        expectations=benchmarks.expectations,
    )
