"""How often a gate opens: unchanged machines, and machines with a fault. ``make bench-gate``.

Runs of a simulated cluster of 16 nodes with three stacks are stored, become a baseline and its
reference file; a later run is judged by it, launched again where it looks slow or keeps no promise,
and decided on as a gate does, from the records of its jobs to the exit status. Screening, golden
builds and the scheduler are not part of it: references alone must open it.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import datetime
import sys
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from clustergate.cli.progress import Progress
from clustergate.core import store
from clustergate.core.files.whole import read_json
from clustergate.core.model import Case, CaseId, CaseRecord
from clustergate.core.paths import state_dir
from clustergate.core.texts import clock
from clustergate.judge import confirmation
from clustergate.judge.assembly import compared
from clustergate.judge.confirmation import TIMES, Launched
from clustergate.judge.promises import to_launch_again, with_kept
from clustergate.run.gate.contract import items_of, items_of_wholes
from clustergate.run.gate.decision import CLOSED, OPEN, UNJUDGED, decide, of_cases, of_coverage
from clustergate.run.judge import unconfirmed
from tools.bench.judge import Judge, case_of, make_judge, regressions
from tools.bench.simulated_noise import BARE_METAL, HEAVY, NOISY, Machine
from tools.bench.simulated_runs import (
    BASELINES,
    SimulatedRun,
    affected_by,
    baseline_runs,
    form_of,
    later_run,
    past_runs,
)
from tools.bench.slowdowns import BENCHMARK, HPL, NOTHING, SIZE, STACK, UPGRADED, Change
from tools.bench.spread import Share

SEED = 20261130
SETTING = "gate of 16 nodes"
DAYS = ("1 day", "5 days", "20 days")
FAULTS = (
    *(Change(STACK, by) for by in (1.10, 1.20)),
    *(Change(HPL, by) for by in (1.10, 1.20)),
    *(Change(BENCHMARK, by) for by in (1.10, 1.20)),
    Change(SIZE, 1.40),
    Change(STACK, 1.30, 10),
    Change(UPGRADED, 1.10),
)
_WORDS = {OPEN: "open", CLOSED: "closed", UNJUDGED: "unjudged"}
Cell = tuple[Machine, str, Change]


def machine_of(machine: Machine) -> Machine:
    """Return a machine whose nodes a gate takes all: they are as far from each other each time."""
    return dataclasses.replace(machine, levels=machine.levels[-1:])


def answered(judge: Judge, run: SimulatedRun) -> tuple[int, Sequence[Case], int]:
    """Return the exit status of a gate by references alone, its cases, and what it launched again.

    The last is a number of cases.
    """
    find, nodes = judge.references.find, {judge.partition.fullname: judge.partition.facts}
    records = run.records
    beside = compared(records, find, nodes)
    cases = {one.identity: one for one in (case_of(judge, r, beside) for r in records)}
    name_of_case = {r.name: key for r, key in zip(records, cases, strict=True)}
    slow = confirmation.suspicious([*cases.values()])
    first = {key: Launched(case) for key, case in cases.items()}
    looks: dict[CaseId, list[Launched]] = {key: [] for key in cases}
    wholes = {partition: tuple(some) for partition, some in beside.wholes.items()}
    launched = 0
    for turn in range(1, TIMES + 1):
        broken = to_launch_again([*cases.values()], wholes)
        is_open = {key for key in slow if confirmation.is_open(first[key], looks[key])}
        left = [key for key in cases if key in is_open or (key in broken and key not in slow)]
        if not left:
            break
        launched += len(left)
        again: dict[str, CaseRecord] = {
            record.name: record for record in (run.again(key, turn).record for key in left)
        }
        whole = [again.get(record.name, record) for record in records]
        then = compared(whole, find, nodes, watched=beside.suspected)
        for record in again.values():
            key, case = name_of_case[record.name], case_of(judge, record, then)
            looks[key].append(Launched(case))
            kept = with_kept(cases[key].promises, case.promises)
            cases[key] = dataclasses.replace(cases[key], promises=kept)
        wholes = {of: with_kept(some, then.wholes.get(of, ())) for of, some in wholes.items()}
    decided = [
        dataclasses.replace(
            confirmation.decided(first[key], looks[key], judge.mode.name, None),
            promises=case.promises,
        )
        if key in slow
        else case
        for key, case in cases.items()
    ]
    passed = list(map(confirmation.with_passes, decided))
    items = [*items_of(judge.mode, [*cases], passed, {}), *items_of_wholes(wholes)]
    evidence = [*of_cases(passed, items), *of_coverage(items), *unconfirmed(decided)]
    return decide(evidence).status, decided, launched


def counted(cell: Cell, basis: int, runs: int) -> Mapping[str, int]:
    """Return how a gate answered some later runs of a machine, by one baseline of its own.

    ``named`` are those that closed for something that the fault affects.
    """
    machine, days, change = machine_of(cell[0]), cell[1], cell[2]
    form = form_of(SETTING)
    seed = [SEED, zlib.crc32(f"{machine.name} {days}".encode()), basis]
    made = baseline_runs(form, machine, BASELINES[days], [*seed, 0])
    partition = form.setting.partition(exclusive=machine.exclusive)
    expected = [case.key for case in form.cases]
    judge = make_judge(past_runs(made), form.setting.mode, expected, partition)
    counts: collections.Counter[str] = collections.Counter()
    for k in range(runs):
        run = later_run(form, machine, [*seed, 1, k])
        affected = affected_by(change, form, np.random.default_rng([*seed, 2, k]))
        run = run.with_change(change, affected)
        status, cases, launched = answered(judge, run)
        hit = {
            (case.key.check, case.key.stack, name)
            for case in form.cases
            for name, place in zip(case.names, case.places, strict=True)
            if affected[place]
        }
        named = status == CLOSED and any(not hit.isdisjoint(one) for one in regressions(cases))
        counts.update({_WORDS[status]: 1, "named": int(named), "again": launched, "runs": 1})
    return counts


def main() -> int:
    """Count, print a table, keep what was counted: called again it goes on."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.gate", description=__doc__)
    parser.add_argument("--bases", type=int, default=4, help="baselines of each cell (default: 4)")
    parser.add_argument("--runs", type=int, default=25, help="gates by each (default: 25)")
    parser.add_argument("--quick", action="store_true", help="one baseline and two gates of a cell")
    arguments = parser.parse_args()
    bases, runs = (1, 2) if arguments.quick else (arguments.bases, arguments.runs)
    cells: list[Cell] = [(BARE_METAL, days, NOTHING) for days in DAYS]
    cells += [(machine, "5 days", NOTHING) for machine in (HEAVY, NOISY)]
    cells += [(BARE_METAL, "5 days", fault) for fault in FAULTS]
    path = state_dir() / "bench" / f"gate-{SEED}-{runs}.json"
    known: dict[str, dict[str, int]] = read_json(path) if path.is_file() else {}
    begun, done = datetime.datetime.now(), 0
    with Progress() as say:
        for cell in cells:
            for basis in range(bases):
                name = f"{cell[0].name} | {cell[1]} | {cell[2]} | {basis}"
                if name not in known:
                    known[name] = {**counted(cell, basis, runs)}
                    store.write_json(path, known)
                    done += 1
                    each = (datetime.datetime.now() - begun) / done
                    left = bases * len(cells) - len(known)
                    end = clock(datetime.datetime.now(), left * each.total_seconds())
                    say(f"{name}: {known[name]}; done by about {end}")
    for line in table(cells, bases, known):
        print(line)
    return 0


def table(
    cells: Sequence[Cell], bases: int, known: Mapping[str, Mapping[str, int]]
) -> Sequence[str]:
    """Return the lines of a Markdown table: shares with their intervals of 95 %."""
    lines = ["| machine, baseline | fault | OPEN | STAY CLOSED | COULD NOT JUDGE | named | again |"]
    lines.append("|---|---|---|---|---|---|---|")
    for machine, days, change in cells:
        names = [f"{machine.name} | {days} | {change} | {basis}" for basis in range(bases)]
        of_each = [known[name] for name in names if name in known]
        shares = [
            str(Share([(one.get(word, 0), one[whole]) for one in of_each if one.get(whole)]))
            for word, whole in (*((word, "runs") for word in _WORDS.values()), ("named", "closed"))
        ]
        again = sum(one["again"] for one in of_each) / max(sum(one["runs"] for one in of_each), 1)
        cells_of_row = [f"{machine.name}, {days}", str(change), *shares, f"{again:.1f}"]
        lines.append(f"| {' | '.join(cells_of_row)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
