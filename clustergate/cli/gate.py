"""``clustergate gate``: after maintenance, may the machine go back to its users?"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustergate import store
from clustergate.ab.sample_sets import compared, from_run
from clustergate.benchmarks.sizing import parse_duration
from clustergate.cli.selection import taken
from clustergate.cli.streams import progress
from clustergate.gate import decision as gating
from clustergate.gate.decision import Changed, Decision, Evidence
from clustergate.history.stored_runs import started_of
from clustergate.history.trends import told_day
from clustergate.launching.hostfiles import fold
from clustergate.model import (
    Case,
    CaseId,
    CaseRecord,
    ClustergateError,
    Verdict,
    order_of_run,
)
from clustergate.screening import folder, planning
from clustergate.screening.findings import Screening
from clustergate.screening.plan import PLAN, PlanError
from clustergate.session.request import Request
from clustergate.session.run import run_session
from clustergate.session.screening import screen
from clustergate.sites import configs as sites
from clustergate.sites import modes
from clustergate.sites.configs import WITHOUT_NODES
from clustergate.verdicts import coverage
from clustergate.wording.texts import duration

DESCRIPTION = """\
Screen the system's nodes and links, run the maintenance mode on the good ones, compare with the
references and with the last such run, and answer on one page. Exit status 0: open; 1: stay closed,
because something is slower than it was or should be; 2: it could not be judged. It opens only when
every check was judged with every stack in every partition. A budget chooses what is run, what finds
most first; what is left out was not judged. docs/operators.md tells what to do with each answer."""

MODE = "maintenance"
PAGE, DECISION = "gate.html", "gate.json"
# What a case of this mode takes, in seconds, where its check never ran here.
USUAL_S = {"HplCheck": 150.0, "ImbMpi1Check": 200.0, "HpccCheck": 150.0}
_LAUNCHING_S = 5.0
_TOLERATED = 0.05


class GateError(ClustergateError):
    """The gate was asked for something that is not there."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "gate",
        help="after maintenance: may the machine go back to its users?",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("system", help="the name of a site config, or its file")
    parser.add_argument(
        "--budget", metavar="TIME", help="such as 20m (default: what leaves nothing out)"
    )
    parser.add_argument(
        "--stack",
        action="append",
        default=[],
        metavar="NAME",
        help="only these: it tells what is wrong with them, and opens nothing",
    )
    parser.add_argument(
        "--before",
        metavar="RUN",
        help="compare with this run (default: the last one after which the gate did not stay shut)",
    )
    parser.add_argument(
        "--copy-to", type=Path, metavar="FOLDER", help="copy the run's folder into this one, too"
    )
    parser.add_argument(
        "reframe_options",
        nargs="*",
        default=[],
        metavar="-- OPTION",
        help="further options for ReFrame, for the benchmarks",
    )
    parser.set_defaults(run=run, judges=True)


def run(arguments: argparse.Namespace) -> int:
    """Screen, measure, compare, decide; print the answer and leave its page."""
    started = datetime.datetime.now().astimezone()
    run_id = store.new_run_id(started)
    try:
        return _gate(arguments, started, run_id)
    finally:
        if arguments.copy_to is not None:
            store.copy_run(run_id, arguments.copy_to)


def _gate(arguments: argparse.Namespace, started: datetime.datetime, run_id: str) -> int:
    chosen = taken(arguments.system)
    site = chosen.path
    configured = sites.load(site)
    system = configured["systems"][0]["name"]
    before = arguments.before or last_run(system)
    if arguments.before and not store.run_folder(arguments.before).is_dir():
        raise GateError(f"there is no run {arguments.before} in {store.runs_folder()}")
    # Whether it opened or not: how long it took is all that counts here.
    newest = last_run(system, opened=False)
    took_before = took(store.read_cases(newest)) if newest else {}
    contract = contract_of(configured, arguments.stack, arguments.budget, took_before)
    if chosen.fallback:
        guessed = (f"by a guess: {chosen.why}", "name the system by its site config")
        pairs = {(key.check, key.stack) for key in contract.required}
        contract = dataclasses.replace(contract, left_out=dict.fromkeys(pairs, guessed))
    say = progress()
    say(f"this takes about {duration(contract.seconds)}")
    for sentence in coverage.sentences(contract.judged_by(())):
        say(f"it will not open, whatever is found: {sentence}")
    # Until it is decided, it is no run that a later one may be compared with.
    store.write_json(store.run_folder(run_id) / DECISION, {"status": None})
    evidence, without = _screened(site, run_id, configured, contract, arguments.before)
    told, cases = _benchmarks(
        Request(
            modes.mode_named(MODE),
            site,
            contract.allotted.stacks,
            contract.allotted.checks,
            tuple(arguments.reframe_options),
            site_told=str(chosen),
            fallback=chosen.fallback,
        ),
        run_id,
        started,
        without,
        sites.hostfile_of(system) is not None,
    )
    items = contract.judged_by(cases)
    evidence += [*told, *gating.of_coverage(items), *_compared(before, run_id)]
    decision = gating.decide(evidence)
    store.write_json(
        store.run_folder(run_id) / DECISION,
        {
            "status": decision.status,
            "word": decision.word,
            "because": decision.because,
            "must_be_judged": [
                {"what": one.what, "judged": one.judged, "by": one.by, "why_not": one.why}
                for one in items
            ],
            "waived": contract.notes,
            "site": str(chosen),
        },
    )
    notes = [str(chosen), *contract.notes]
    page = store.run_folder(run_id) / PAGE
    store.write_text(page, _page(decision, evidence, items, notes, system, started, run_id))
    print("\n".join(told_lines(decision, evidence, notes, page)))
    return decision.status


# --- what must be judged ----------------------------------------------------------------------


@dataclass(frozen=True)
class Contract:
    """What must be judged before the gate opens, and what of it is run.

    ``stacks`` are those of which something may be run. ``left_out`` says of a check and a stack why
    it is not run, and what would run it; ``seconds`` is about how long the rest takes.
    """

    required: Sequence[CaseId]
    stacks: Sequence[str]
    left_out: Mapping[tuple[str, str], tuple[str, str]]
    allotted: gating.Allotment
    seconds: float
    notes: Sequence[str]

    def judged_by(self, cases: Sequence[Case]) -> list[coverage.Item]:
        """Return what became of all that must be judged."""
        return coverage.items(modes.mode_named(MODE), self.required, cases, self.left_out)


_NOT_NAMED = ("left out by --stack", "run the gate without --stack")


def contract_of(
    configured: Mapping[str, Any],
    named: Sequence[str],
    budget: str | None,
    took_before: Mapping[tuple[str, str], float],
) -> Contract:
    """Return what must be judged: every case of the mode that the site config does not waive.

    ``named`` stacks alone are run, where there are some, and what fits into a ``budget``. Raises
    :class:`GateError` where nothing of it must be judged.
    """
    mode = modes.mode_named(MODE)
    checks = mode.checks
    waived = sites.waived_of(configured)
    required = [
        key
        for key in modes.expected_cases(checks, sites.partitions_of(configured), mode)
        if (key.check, key.stack) not in waived
    ]
    stacks = [
        order.stack
        for order in sites.orders_named(configured, named)
        if any(key.stack == order.stack for key in required)
    ]
    if not stacks:
        raise GateError("the site config waives all that there is: nothing can be judged")
    seconds_of = expected_seconds(required, took_before)
    pairs = {pair: seconds_of.get(pair, 0.0) for pair in itertools.product(checks, stacks)}
    nodes = max(shape.nodes for shape in sites.shapes_of(configured))
    needed_s = gating.budget_for(pairs.values(), nodes)
    budget_s = parse_duration(budget) if budget else needed_s
    allotted = gating.allot(budget_s, nodes, checks, stacks, pairs)
    too_little = (
        f"left out, because the budget is {budget}",
        f"a budget of {needed_s / 60:.0f}m leaves none of that out",
    )
    left_out = {
        **{(key.check, key.stack): _NOT_NAMED for key in required if key.stack not in stacks},
        **dict.fromkeys(allotted.left_out, too_little),
    }
    notes = [
        f"waived by the site config: {check} with {stack}: {reason}"
        for (check, stack), reason in waived.items()
        if check in checks
    ]
    return Contract(required, stacks, left_out, allotted, min(budget_s, needed_s), notes)


def expected_seconds(
    required: Iterable[CaseId], took_before: Mapping[tuple[str, str], float]
) -> dict[tuple[str, str], float]:
    """Return what each check takes with each stack: as before, else what its cases usually take."""
    counts = Counter((key.check, key.stack) for key in required)
    return {pair: took_before.get(pair, USUAL_S[pair[0]] * n) for pair, n in counts.items()}


# --- what is measured -------------------------------------------------------------------------


def _screened(
    site: Path,
    run_id: str,
    configured: Mapping[str, Any],
    contract: Contract,
    before: str | None,
) -> tuple[list[Evidence], list[str]]:
    """Return what screening the nodes says, and those that the benchmarks are to leave out.

    Partitions with nodes of their own share the time, each with a folder of its own.
    """
    from clustergate.report.screening import write_forms

    system = configured["systems"][0]["name"]
    partitions = sites.with_nodes_of_their_own(configured)
    evidence: list[Evidence] = []
    without: list[str] = []
    share_s, hpl_s = contract.allotted.screening_s / len(partitions), contract.allotted.hpl_s
    for place, partition in enumerate(partitions):
        below = f"/{partition.name.partition(':')[2]}" if place else ""
        stack = next((s for s in contract.stacks if s in partition.stacks), partition.stacks[0])
        asked = planning.Asked(
            seconds=share_s,
            hpl_seconds=hpl_s if share_s >= 4 * hpl_s else 0.0,
            partition=partition.name.partition(":")[2],
        )
        part = f"screening of {partition.name}" if len(partitions) > 1 else "screening"
        try:
            log, found = screen(site, run_id + below, asked, stack, progress())
            write_forms(log, found, system, folder.screening_folder(run_id + below))
        except ClustergateError as error:
            evidence.append(Evidence(part, Verdict.INVALID, str(error)))
            continue
        told = gating.of_screening(found, ended=log.ended)
        told += [
            Evidence(part, Verdict.INVALID, f"{r.nodes[0]} by itself: {r.failed}")
            for r in log.whole
            if r.failed
        ]
        if earlier := last_screening(system, found.what, run_id, before, below):
            when = told_day(folder.started(earlier[0]).astimezone(datetime.timezone.utc))
            told += gating.against_screening(found, earlier[1], when)
        evidence += [
            dataclasses.replace(one, part=one.part.replace("screening", part, 1)) for one in told
        ]
        without += found.keeps_out if found.what == "node" else ()
    return evidence, without


def _benchmarks(
    request: Request,
    run_id: str,
    started: datetime.datetime,
    without: Sequence[str],
    has_hostfile: bool,
) -> tuple[list[Evidence], Sequence[Case]]:
    if not request.checks:
        sentence = "the budget is too small for any of them; give it more"
        return [Evidence("benchmarks", Verdict.INVALID, sentence)], ()
    if without:
        # ReFrame and the checks are processes of their own, and read it there.
        os.environ[WITHOUT_NODES] = fold(without)
        # A hostfile keeps them out by itself.
        if not has_hostfile:
            kept_out = f"--job-option=exclude={fold(without)}"
            request = dataclasses.replace(request, options=(*request.options, kept_out))
    try:
        found = run_session(request, run_id, started, progress())
        dead = [Evidence("references", Verdict.CANNOT_TELL, told) for told in found.unjudged]
        return [*gating.of_cases(found.cases), *dead], found.cases
    except ClustergateError as error:
        return [Evidence("benchmarks", Verdict.INVALID, str(error))], ()


def _compared(before: str | None, run_id: str) -> list[Evidence]:
    """Return what is surely worse than in the last run: where even the near end of it is."""
    if before is None:
        return []
    try:
        keys, found = compared(from_run(before), from_run(run_id), _TOLERATED)
    except ClustergateError as error:
        sentence = f"it cannot be compared: {error}"
        return [Evidence(f"against the run {before}", Verdict.PASS, sentence)]
    from clustergate.benchmarks.formats import metric
    from clustergate.statistics.comparison import Relation

    changed = []
    for key, one in zip(keys, found, strict=True):
        if one.verdict is Relation.A_BETTER and one.low and one.high:
            lower = metric(key["metric"]).better.value == "lower"
            nearest = one.low - 1 if lower else 1 / one.high - 1
            name = ", ".join(key[k] for k in ("check", "stack", "benchmark", "metric") if k in key)
            told = f"{name} ({key['bytes']} bytes)" if "bytes" in key else name
            changed.append(Changed(told, nearest))
    comparable = sum(one.ratio is not None for one in found)
    return gating.against_run(changed, comparable, before, _TOLERATED)


# --- what was before --------------------------------------------------------------------------


def last_run(system: str, *, opened: bool = True) -> str | None:
    """Return the newest run of the maintenance mode on a system, None where there is none.

    Where it must have ``opened``, runs of a gate that did not open are passed over: what was wrong
    then is not what is usual, and the gate, called twice, shall not open the second time.
    """
    for run_id in _runs(opened=opened):
        for record in store.read_cases(run_id):
            if record.partition.startswith(f"{system}:") and record.conditions["mode"] == MODE:
                return run_id
    return None


def took(records: Sequence[CaseRecord]) -> dict[tuple[str, str], float]:
    """Return the seconds that each check took with each stack: its launches, with their start."""
    found: dict[tuple[str, str], float] = {}
    for record in records:
        seconds = sum(launch.seconds for launch in record.launches) + _LAUNCHING_S
        key = (record.check, record.stack)
        found[key] = found.get(key, 0.0) + seconds
    return found


def last_screening(
    system: str, what: str, without: str, before: str | None = None, below: str = ""
) -> tuple[Path, Screening] | None:
    """Return the newest finished screening of a system's nodes (or cores) but the one named.

    Those of a gate that did not open are passed over; ``before`` names the only run to look at,
    ``below`` where in the runs' folders the screening of a further partition lies.
    """
    for run_id in [before] if before else _runs():
        where = folder.screening_folder(run_id + below)
        if run_id == without or not (where / PLAN).is_file():
            continue
        try:
            plan, log, found = folder.read_screening(where)
        except PlanError:
            # It is another version's, or damaged: an older one will do.
            continue
        if plan.system == system and log.ended and found.what == what:
            return where, found
    return None


def _runs(*, opened: bool = True) -> Iterator[str]:
    """Yield the stored runs, the newest first, without those of a gate that did not open."""
    runs = [path for path in store.runs_folder().glob("*") if path.is_dir()]
    for path in sorted(runs, key=_in_order, reverse=True):
        if not (opened and _shut(path)):
            yield path.name


def _in_order(folder: Path) -> tuple[int, datetime.datetime, str]:
    return order_of_run(folder.name, started_of(folder))


def _shut(folder: Path) -> bool:
    """Tell whether a run is one of a gate that did not open, or never came to a decision."""
    try:
        decided = json.loads((folder / DECISION).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return not isinstance(decided, dict) or decided.get("status") != gating.OPEN


# --- the answer -------------------------------------------------------------------------------


def told_lines(
    decision: Decision, evidence: Sequence[Evidence], notes: Sequence[str], page: Path
) -> list[str]:
    """Return what is printed."""
    return [
        "",
        decision.word,
        *(f"  {sentence}" for sentence in decision.because),
        *(f"{one.part}: {one.sentence}" for one in evidence if one.verdict is Verdict.PASS),
        *notes,
        f"page: {page}",
        f"clustergate gate: exit status {decision.status}: {decision.sentence}",
    ]


def _page(
    decision: Decision,
    evidence: Sequence[Evidence],
    items: Sequence[coverage.Item],
    notes: Sequence[str],
    system: str,
    started: datetime.datetime,
    run_id: str,
) -> str:
    from clustergate.report.gate import render_gate

    here = store.run_folder(run_id)
    pages = [("the screening, with its heat map", here / "screening" / "screening.html")]
    pages += [
        (f"the screening of {path.parents[1].name}", path)
        for path in sorted(here.glob("*/screening/screening.html"))
    ]
    pages.append(("the benchmarks", here / "report.html"))
    links = [(title, str(path.relative_to(here))) for title, path in pages if path.is_file()]
    when = started.isoformat(timespec="seconds")
    return render_gate(decision, evidence, system, when, notes, links, items)
