"""``clustergate gate``: after maintenance, may the machine go back to its users?"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from clustergate import gating, modes, sites, store
from clustergate.cli.check import Wanted, measured
from clustergate.cli.compare import compared
from clustergate.cli.screen import screen, write_forms
from clustergate.cli.setup import progress
from clustergate.cli.site import taken
from clustergate.gating import Changed, Decision, Evidence
from clustergate.history import told_day
from clustergate.hostfiles import fold
from clustergate.model import CaseRecord, ClustergateError, Verdict
from clustergate.screening import folder, planning
from clustergate.screening.findings import Screening
from clustergate.screening.plan import PLAN, PlanError
from clustergate.sites import WITHOUT_NODES
from clustergate.sizing import parse_duration
from clustergate.stored_runs import started_of

DESCRIPTION = """\
Screen the system's nodes and links, run the maintenance mode on the good ones, compare with the
references and with the last such run, and answer on one page. Exit status 0: open; 1: stay closed,
because something is slower than it was or should be; 2: it could not be judged. The budget chooses
what is run, what finds most first; docs/operators.md tells what to do with each answer."""

MODE = "maintenance"
PAGE, DECISION = "gate.html", "gate.json"
# What a check of this mode takes with one stack, where it never ran here.
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
    parser.add_argument("--budget", default="20m", metavar="TIME", help="default: 20m")
    parser.add_argument("--stack", action="append", default=[], metavar="NAME", help="only these")
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
    budget_s = parse_duration(arguments.budget)
    chosen = taken(arguments.system)
    site = chosen.path
    configured = sites.load(site)
    system = configured["systems"][0]["name"]
    stacks = [order.stack for order in sites.orders_named(configured, arguments.stack)]
    before = arguments.before or last_run(system)
    if arguments.before and not store.run_folder(arguments.before).is_dir():
        raise GateError(f"there is no run {arguments.before} in {store.runs_folder()}")
    allotted = gating.allot(
        budget_s,
        sum(shape.nodes for shape in sites.shapes_of(configured)),
        modes.mode_named(MODE).checks,
        stacks,
        took(store.read_cases(before)) if before else {},
        USUAL_S,
    )
    notes = [str(chosen)]
    notes += [
        f"left out, because the budget is {arguments.budget}: {check} with {stack}"
        for check, stack in allotted.left_out
    ]
    partitions = [partition["name"] for partition in configured["systems"][0]["partitions"]]
    if len(partitions) > 1:
        notes.append(
            f"only the nodes of the partition {partitions[0]} were screened; for the others: "
            f"clustergate screen --site {arguments.system} --partition {partitions[1]}"
        )
    # Until it is decided, it is no run that a later one may be compared with.
    store.write_json(store.run_folder(run_id) / DECISION, {"status": None})
    evidence, without = _screened(site, run_id, stacks[0], allotted, system, arguments.before)
    evidence += _benchmarks(
        Wanted(
            modes.mode_named(MODE),
            site,
            allotted.stacks,
            allotted.checks,
            tuple(arguments.reframe_options),
        ),
        run_id,
        started,
        without,
        sites.hostfile_of(system) is not None,
        ran_before(before),
    )
    evidence += _compared(before, run_id)
    decision = gating.decide(evidence)
    store.write_json(
        store.run_folder(run_id) / DECISION,
        {"status": decision.status, "word": decision.word, "because": decision.because},
    )
    page = store.run_folder(run_id) / PAGE
    store.write_text(page, _page(decision, evidence, notes, system, started, run_id))
    print("\n".join(told(decision, evidence, notes, page)))
    return decision.status


def _screened(
    site: Path,
    run_id: str,
    stack: str,
    allotted: gating.Allotment,
    system: str,
    before: str | None,
) -> tuple[list[Evidence], Sequence[str]]:
    """Return what the screening says, and the nodes that the benchmarks are to leave out."""
    asked = planning.Asked(seconds=allotted.screening_s, hpl_seconds=allotted.hpl_s)
    try:
        log, found = screen(site, run_id, asked, stack, progress())
        where = folder.screening_folder(run_id)
        write_forms(log, found, system, where)
    except ClustergateError as error:
        return [Evidence("screening", Verdict.INVALID, str(error))], ()
    evidence = gating.of_screening(found, ended=log.ended)
    evidence += [
        Evidence("screening", Verdict.INVALID, f"{r.nodes[0]} by itself: {r.failed}")
        for r in log.whole
        if r.failed
    ]
    if earlier := last_screening(system, found.what, run_id, before):
        when = told_day(folder.started(earlier[0]).astimezone(datetime.timezone.utc))
        evidence += gating.against_screening(found, earlier[1], when)
    return evidence, found.keeps_out if found.what == "node" else ()


def _benchmarks(
    wanted: Wanted,
    run_id: str,
    started: datetime.datetime,
    without: Sequence[str],
    has_hostfile: bool,
    before: Collection[tuple[str, str]],
) -> list[Evidence]:
    if not wanted.checks:
        sentence = "the budget is too small for any of them; give it more"
        return [Evidence("benchmarks", Verdict.INVALID, sentence)]
    if without:
        # ReFrame and the checks are processes of their own, and read it there.
        os.environ[WITHOUT_NODES] = fold(without)
        # A hostfile keeps them out by itself.
        if not has_hostfile:
            kept_out = f"--job-option=exclude={fold(without)}"
            wanted = dataclasses.replace(wanted, options=(*wanted.options, kept_out))
    try:
        return gating.of_cases(measured(wanted, run_id, started).cases, before)
    except ClustergateError as error:
        return [Evidence("benchmarks", Verdict.INVALID, str(error))]


def _compared(before: str | None, run_id: str) -> list[Evidence]:
    """Return what is surely worse than in the last run: where even the near end of it is."""
    if before is None:
        return []
    try:
        keys, found = compared(before, run_id, _TOLERATED)
    except ClustergateError as error:
        sentence = f"it cannot be compared: {error}"
        return [Evidence(f"against the run {before}", Verdict.PASS, sentence)]
    from clustergate.outputs import metric
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


def last_run(system: str) -> str | None:
    """Return the newest run of the maintenance mode on a system, None where there is none.

    Runs of a gate that did not open are passed over: what was wrong then is not what is usual, and
    the gate, called twice, shall not open the second time.
    """
    for run_id in _runs():
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


def ran_before(run_id: str | None) -> set[tuple[str, str]]:
    """Return the checks with the stacks that left figures in a run, none where there is no run."""
    records = store.read_cases(run_id) if run_id else []
    return {(record.check, record.stack) for record in records if record.samples}


def last_screening(
    system: str, what: str, without: str, before: str | None = None
) -> tuple[Path, Screening] | None:
    """Return the newest finished screening of a system's nodes (or cores) but the one named.

    Those of a gate that did not open are passed over; ``before`` names the only run to look at.
    """
    for run_id in [before] if before else _runs():
        where = folder.screening_folder(run_id)
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


def _runs() -> Iterator[str]:
    """Yield the stored runs, the newest first, without those of a gate that did not open."""
    runs = [path for path in store.runs_folder().glob("*") if path.is_dir() and not _shut(path)]
    yield from (path.name for path in sorted(runs, key=started_of, reverse=True))


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


def told(
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
    notes: Sequence[str],
    system: str,
    started: datetime.datetime,
    run_id: str,
) -> str:
    from clustergate.report.gate import render_gate

    here = store.run_folder(run_id)
    links = [
        (title, name)
        for title, name in (
            ("the screening, with its heat map", "screening/screening.html"),
            ("the benchmarks", "report.html"),
        )
        if (here / name).is_file()
    ]
    return render_gate(
        decision, evidence, system, started.isoformat(timespec="seconds"), notes, links
    )
