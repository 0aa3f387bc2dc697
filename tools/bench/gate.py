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
from clustergate.core.model import CaseId, CaseRecord
from clustergate.core.paths import state_dir
from clustergate.core.texts import clock
from clustergate.judge import confirmation
from clustergate.run.gate.contract import items_of, items_of_wholes, with_gains
from clustergate.run.gate.decision import CLOSED, OPEN, UNJUDGED, decide, of_cases, of_coverage
from clustergate.run.judge import unconfirmed
from tools.bench.judge import Judge, Judged, judge_run, make_judge, regressions
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


def answered(judge: Judge, run: SimulatedRun) -> tuple[int, Judged]:
    """Return the exit status of a gate by references alone, and what is said of its run."""
    turns: collections.Counter[CaseId] = collections.Counter()

    def again(key: CaseId) -> CaseRecord:
        turns[key] += 1
        return run.again(key, turns[key]).record

    judged = judge_run(judge, run.records, again, promises=True)
    passed = with_gains(map(confirmation.with_passes, judged.cases), judged.wholes)
    required = [case.identity for case in judged.cases]
    items = [*items_of(judge.mode, required, passed, {}), *items_of_wholes(judged.wholes)]
    evidence = [*of_cases(passed, items), *of_coverage(items), *unconfirmed(judged.cases)]
    return decide(evidence).status, judged


def counted(cell: Cell, basis: int, runs: int, first: int = SEED) -> Mapping[str, int]:
    """Return how a gate answered some later runs of a machine, by one baseline of its own.

    ``named`` are those that closed for something that the fault affects. All that is drawn follows
    from the ``first`` number of the seed.
    """
    machine, days, change = machine_of(cell[0]), cell[1], cell[2]
    form = form_of(SETTING)
    seed = [first, zlib.crc32(f"{machine.name} {days}".encode()), basis]
    made = baseline_runs(form, machine, BASELINES[days], [*seed, 0])
    partition = form.setting.partition(exclusive=machine.exclusive)
    expected = [case.key for case in form.cases]
    judge = make_judge(past_runs(made), form.setting.mode, expected, partition)
    counts: collections.Counter[str] = collections.Counter()
    for k in range(runs):
        run = later_run(form, machine, [*seed, 1, k])
        affected = affected_by(change, form, np.random.default_rng([*seed, 2, k]))
        run = run.with_change(change, affected)
        status, judged = answered(judge, run)
        hit = {
            (case.key.check, case.key.stack, name)
            for case in form.cases
            for name, place in zip(case.names, case.places, strict=True)
            if affected[place]
        }
        named = status == CLOSED and any(
            not hit.isdisjoint(one) for one in regressions(judged.cases)
        )
        counts.update({_WORDS[status]: 1, "named": int(named), "again": judged.again, "runs": 1})
    return counts


def main() -> int:
    """Count, print a table, keep what was counted: called again it goes on."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.gate", description=__doc__)
    parser.add_argument("--bases", type=int, default=4, help="baselines of each cell (default: 4)")
    parser.add_argument("--runs", type=int, default=25, help="gates by each (default: 25)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"(default: {SEED})")
    parser.add_argument("--quick", action="store_true", help="one baseline and two gates of a cell")
    arguments = parser.parse_args()
    bases, runs = (1, 2) if arguments.quick else (arguments.bases, arguments.runs)
    cells: list[Cell] = [(BARE_METAL, days, NOTHING) for days in DAYS]
    cells += [(machine, "5 days", NOTHING) for machine in (HEAVY, NOISY)]
    cells += [(BARE_METAL, "5 days", fault) for fault in FAULTS]
    path = state_dir() / "bench" / f"gate-{arguments.seed}-{runs}.json"
    known: dict[str, dict[str, int]] = read_json(path) if path.is_file() else {}
    begun, done = datetime.datetime.now(), 0
    with Progress() as say:
        # Each cell in turn, so that what was counted when it is interrupted tells of all.
        for basis in range(bases):
            for cell in cells:
                name = f"{cell[0].name} | {cell[1]} | {cell[2]} | {basis}"
                if name not in known:
                    known[name] = {**counted(cell, basis, runs, arguments.seed)}
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
