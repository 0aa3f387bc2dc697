"""What the gate compares with: the last runs and screenings after which it did not stay shut."""

from __future__ import annotations

import contextlib
import datetime
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from clustergate.core import store
from clustergate.core.model import CaseRecord, Verdict
from clustergate.judge.assembly import beyond_limits
from clustergate.judge.history.listing import ENDED, GATE, MADE
from clustergate.judge.history.node_states import HERE, read_states
from clustergate.judge.history.stored_runs import ASKED, doubted_runs, in_order, noted, started_of
from clustergate.launch.plan import PLAN, PlanError, read_plan
from clustergate.machine.fingerprint import processor_of
from clustergate.run.gate.decision import CLOSED, OPEN
from clustergate.sites.modes import MAINTENANCE
from clustergate.studies.screen import folder
from clustergate.studies.screen.findings import Screening
from clustergate.studies.screen.plan import Plan, is_screening

_A_DAY = datetime.timedelta(days=1)


def last_run(system: str, measured: Sequence[CaseRecord] = ()) -> str | None:
    """Return the newest run of the maintenance mode on a system, None where there is none.

    It is the newest of those that have figures of most of the cases that were ``measured`` now, on
    the same processors and on one of the nodes at least, from a launch that nothing disturbed. Runs
    of a gate that did not open, and
    those that found a regression or did not come to their end, are passed over: what was wrong then
    is not what is usual, and the gate, called twice, shall not open the second time. So are those
    of the day after a gate that stayed closed, until one opened: they are of the same machine.
    """
    names = {record.name: record.processors for record in measured}
    nodes = _nodes(measured)
    best, most = None, 0
    for run_id in _runs(system):
        # To read a run takes long.
        if not names or len(names.keys() & {*store.case_names(run_id)}) > most:
            with contextlib.suppress(store.StoreError):
                records = store.read_cases(run_id)
                then = _nodes(records)
                held = {
                    record.name
                    for record in records
                    if not (nodes and then and nodes.isdisjoint(then))
                    and _has_figures(record)
                    and record.partition.startswith(f"{system}:")
                    and record.conditions.get("mode") == MAINTENANCE
                    and (not names or _is_alike(record.processors, names.get(record.name)))
                }
                if len(held) > most:
                    best, most = run_id, len(held)
        if best and most >= len(names):
            break
    return best


def last_judged(system: str, before: str | None = None) -> tuple[str, list[CaseRecord]]:
    """Return the newest gate of a system that opened, or the run ``before``, with its cases.

    One that cannot be read, or that is not there, has none.
    """
    for run_id in [before] if before else _runs(system):
        decided = noted(store.run_folder(run_id) / GATE)
        if before or (decided.get("status"), decided.get("system")) == (OPEN, system):
            with contextlib.suppress(store.StoreError):
                return run_id, store.read_cases(run_id)
    return "", []


def _nodes(records: Iterable[CaseRecord]) -> set[str]:
    return {node for record in records for node in record.hosts}


def _has_figures(record: CaseRecord) -> bool:
    disturbed = {launch.order for launch in record.launches if launch.disturbed}
    if record.complaints or beyond_limits(record):
        return False
    return any(sample.order not in disturbed for sample in record.samples)


def _is_alike(then: Sequence[str], now: Sequence[str] | None) -> bool:
    # Results of another machine may have been copied here. Earlier versions noted no processors.
    return now is not None and (then == now or not (then and now))


def earlier_screenings(
    system: str, by: str, what: str, without: str, before: str | None = None, below: str = ""
) -> Iterator[tuple[str, datetime.datetime, Screening]]:
    """Yield the finished screenings of a system's nodes (or cores) but that of the run ``without``.

    The newest comes first, each with its run and the start of that. They are ``by`` the same
    partition and stack, and a node of theirs was in that run, too, with the same processors:
    another machine may go by the same name. Runs are passed over as in :func:`last_run`; ``before``
    names the only one to look at, ``below`` where in the runs' folders the screening of a further
    partition lies that a gate made: `clustergate screen` makes a single one. They are
    :func:`clustergate.studies.screen.folder.comparable_screening` now.
    """
    nonces, now = set(), _processors(without)
    here = folder.screening_folder(without + below)
    today = read_plan(here / PLAN, Plan) if is_screening(here) else None
    runs = [before] if before else _runs(system)
    for run_id, of in itertools.product(runs, dict.fromkeys((below, ""))):
        where = folder.screening_folder(run_id + of)
        if run_id == without or not is_screening(where):
            continue
        try:
            plan, log, screening = folder.read_screening(where)
        except PlanError:
            # It is another version's, or damaged: an older one will do.
            continue
        # A copy that somebody made of a run is no further day.
        is_new = plan.nonce not in nonces
        nonces.add(plan.nonce)
        if (plan.system, plan.by, screening.what) != (system, by, what):
            continue
        if log.ended and is_new and _share_a_node(_processors(run_id, screening.names), now):
            alike = (
                screening if today is None else folder.comparable_screening(screening, plan, today)
            )
            yield run_id, started_of(store.run_folder(run_id)), alike


def _processors(run_id: str, names: Sequence[str] = ()) -> dict[str, str]:
    """Return the processors of a run's nodes, of those named where their states know the names."""
    states = read_states(store.run_folder(run_id))
    known = {node: processor_of(state) for node, state in states.items() if node != HERE}
    return {node: known[node] for node in names if node in known} or known


def _share_a_node(then: Mapping[str, str], now: Mapping[str, str]) -> bool:
    # Earlier versions noted no nodes.
    return not (then and now) or not then.items().isdisjoint(now.items())


def _runs(system: str) -> Iterator[str]:
    runs, doubted = in_order(), doubted_runs()
    closed = _closed(runs, system)
    for started, path in reversed(runs):
        if path.name in doubted:
            continue
        if not (any(since < started < until for since, until in closed) or _shut(path)):
            yield path.name


def _closed(
    runs: Iterable[tuple[datetime.datetime, Path]], system: str
) -> list[tuple[datetime.datetime, datetime.datetime]]:
    """Return since when and until when a gate of a system kept it closed: for a day at most."""
    closed: list[tuple[datetime.datetime, datetime.datetime]] = []
    for started, path in runs:
        decided = noted(path / GATE)
        if decided.get("system", system) != system:
            continue
        if decided.get("status") == OPEN:
            closed = [(since, min(until, started)) for since, until in closed]
        elif decided.get("status") == CLOSED:
            closed.append((started, started + _A_DAY))
    return closed


def _shut(folder: Path) -> bool:
    """Tell whether a run found something slower, or is of a gate that did not open or decide."""
    if (folder / GATE).exists():
        return noted(folder / GATE).get("status") != OPEN
    # What a check or a screening found that was interrupted, or goes on, nobody knows.
    asked = (folder / ASKED).exists() or (folder / MADE).exists()
    begun = {"verdict": Verdict.REGRESSION.value} if asked else {}
    ended = noted(folder / ENDED) or begun
    return bool(ended.get("verdict") == Verdict.REGRESSION.value)
