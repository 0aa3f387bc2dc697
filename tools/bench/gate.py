"""How often a gate opens: unchanged machines, and machines with a fault. ``make bench-gate``.

Runs of a simulated cluster of 16 nodes with three stacks are stored, become a baseline and its
reference file; a later run is judged by it, launched again where it looks slow or keeps no promise,
and decided on as a gate does, from the records of its jobs to the exit status: by its references
alone, and with what a gate has beside them, a golden build that equals today's and screenings of as
many days. Screenings have a day of their own; golden builds in turn and the scheduler are not part
of it.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import datetime
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from clustergate.benchmarks.budget import Budget
from clustergate.cli.progress import Progress
from clustergate.core import store
from clustergate.core.files.whole import read_json
from clustergate.core.model import CaseId, CaseRecord, Evidence
from clustergate.core.paths import state_dir
from clustergate.core.texts import clock
from clustergate.judge import confirmation
from clustergate.launch.plan import Contender
from clustergate.run.gate import controls
from clustergate.run.gate.contract import (
    ControlOf,
    accept_gains,
    case_requirements,
    no_control,
    promise_requirements,
)
from clustergate.run.gate.decision import (
    CLOSED,
    OPEN,
    UNJUDGED,
    benchmark_evidence,
    coverage_evidence,
    decide,
    evidence_against_screenings,
    screening_evidence,
)
from clustergate.run.judge import unconfirmed
from clustergate.run.software_evidence import same_build
from clustergate.studies.screen.campaign import Campaign, Task
from clustergate.studies.screen.findings import Screening
from clustergate.studies.screen.measures import MEASURES, Result
from clustergate.studies.screen.plan import EACH, TWO, Plan
from tools.bench.judge import Judge, Judged, judge_run, make_judge, regressions
from tools.bench.simulated_noise import (
    BANDWIDTH,
    BARE_METAL,
    COMPUTE,
    HEAVY,
    KINDS,
    LATENCY,
    MEMORY,
    NOISY,
    Machine,
    day_of,
    launches_of,
)
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
_BESIDE = " with controls"
_WORDS = {OPEN: "open", CLOSED: "closed", UNJUDGED: "unjudged"}
Cell = tuple[Machine, str, Change]


def machine_of(machine: Machine) -> Machine:
    """Return a machine whose nodes a gate takes all: they are as far from each other each time."""
    return dataclasses.replace(machine, levels=machine.levels[-1:])


_MEASURED = {
    "hpl": (("hpl_gflops", COMPUTE),),
    "peaks": (("fma_peak_gflops", COMPUTE), ("triad_gb_s", MEMORY)),
    "pingpong": (("pingpong_latency_us", LATENCY), ("pingpong_bandwidth_mb_s", BANDWIDTH)),
}
# What a gate with equal golden builds launches at least, how long a round takes, and all of it.
_LAUNCHES, _ROUND_S, _SCREENING_S = 14, 5.0, 1200.0


def screened(machine: Machine, nodes: int, lot: np.random.Generator) -> Screening:
    """Return a screening of sound nodes on a day of its own, as long as a gate's is."""
    day = dict(zip(KINDS, day_of(machine, KINDS, lot).tolist(), strict=True))

    def values(measures: Sequence[tuple[str, str]]) -> dict[str, float]:
        kinds = [kind for _, kind in measures]
        ((*drawn,), *_), _ = launches_of(machine, kinds, 1, lot)
        return {
            key: MEASURES[key].value(by + day[kind])
            for (key, kind), by in zip(measures, drawn, strict=True)
        }

    took_s = [0.0]

    def launched(tasks: Sequence[Task]) -> Iterator[Result]:
        took_s[0] += _ROUND_S
        for one in tasks:
            kind = one.contender.name
            yield Result(one.nodes, kind, one.turn, values(_MEASURED[kind]), "", _ROUND_S)

    plan = Plan(
        nonce="",
        contenders=[
            *(Contender(kind, [], [""], "", on=EACH) for kind in ("hpl", "peaks")),
            Contender("pingpong", [], [""], "", on=TWO),
        ],
        seed=int(lot.integers(2**31)),
        budget=Budget(seconds=_SCREENING_S),
        launches=_LAUNCHES,
    )
    names = [f"n{k + 1}" for k in range(nodes)]
    return Campaign(plan, names, [], launched, lambda _: None, lambda: took_s[0]).run()


Memory = Sequence[tuple[str, datetime.date, Screening]]


def beside_references(
    memory: Memory, now: Screening, machine: Machine, stacks: Sequence[str]
) -> tuple[list[Evidence], ControlOf]:
    """Return what a gate's screening says, and what stands for references where these ``stacks``
    equal their golden builds.
    """
    worse, nodes = controls.nodes_control(now, memory, exclusive=machine.exclusive)
    said = [
        *screening_evidence(now, ended=True),
        *evidence_against_screenings(now, [("r", "", memory[-1][2])]),
    ]
    all_nodes = controls.all_nodes_control([nodes], [*said, *worse])
    golden = {one: same_build(one, "golden", [], f"{memory[0][1]}") for one in stacks}
    today = datetime.date.max.isoformat()
    return [*said, *worse], lambda stack: controls.joint_control(
        controls.software_control(stack, golden.get(stack, []), today), all_nodes
    )


def answered(
    judge: Judge, run: SimulatedRun, beside: tuple[Sequence[Evidence], ControlOf]
) -> tuple[int, int, Judged]:
    """Return the exit status of a gate by references alone, that with what it has ``beside``, and
    what is said of its run.
    """
    turns: collections.Counter[CaseId] = collections.Counter()

    def again(key: CaseId) -> CaseRecord:
        turns[key] += 1
        return run.again(key, turns[key]).record

    judged = judge_run(judge, run.records, again, promises=True)
    passed = accept_gains(map(confirmation.with_passes, judged.cases), judged.wholes)
    required = [case.identity for case in judged.cases]
    statuses = []
    for more, control_of in (([], no_control), beside):
        items = case_requirements(judge.mode, required, passed, {}, control_of)
        items += promise_requirements(judged.wholes, control_of)
        of_items = [*benchmark_evidence(passed, items), *coverage_evidence(items)]
        statuses.append(decide([*more, *of_items, *unconfirmed(judged.cases)]).status)
    alone, with_controls = statuses
    return alone, with_controls, judged


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
    lot = np.random.default_rng([*seed, 3])
    nodes = form.setting.nodes
    memory = [
        (f"r{k}", run.started.date() + datetime.timedelta(days=k), screened(machine, nodes, lot))
        for k, run in enumerate(made[: BASELINES[days].days])
    ]
    counts: collections.Counter[str] = collections.Counter()
    for k in range(runs):
        run = later_run(form, machine, [*seed, 1, k])
        affected = affected_by(change, form, np.random.default_rng([*seed, 2, k]))
        run = run.with_change(change, affected)
        now = screened(machine, nodes, lot)
        changed = {
            case.key.stack
            for case in form.cases
            if change.where == UPGRADED and affected[case.places].any()
        }
        equal = [one for one in form.setting.stacks if one not in changed]
        beside = beside_references(memory, now, machine, equal)
        status, with_controls, judged = answered(judge, run, beside)
        hit = {
            (case.key.check, case.key.stack, name)
            for case in form.cases
            for name, place in zip(case.names, case.places, strict=True)
            if affected[place]
        }
        named = status == CLOSED and any(
            not hit.isdisjoint(one) for one in regressions(judged.cases)
        )
        counts[f"{_WORDS[with_controls]}{_BESIDE}"] += 1
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
    heads = ["machine, baseline", "fault", "OPEN", "STAY CLOSED", "COULD NOT JUDGE"]
    heads += ["OPEN, controls too", "CLOSED, controls too", "named", "again"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    asked = [*_WORDS.values(), f"{_WORDS[OPEN]}{_BESIDE}", f"{_WORDS[CLOSED]}{_BESIDE}"]
    for machine, days, change in cells:
        names = [f"{machine.name} | {days} | {change} | {basis}" for basis in range(bases)]
        of_each = [known[name] for name in names if name in known]
        shares = [
            str(Share([(one.get(word, 0), one[whole]) for one in of_each if one.get(whole)]))
            for word, whole in (*((word, "runs") for word in asked), ("named", "closed"))
        ]
        again = sum(one["again"] for one in of_each) / max(sum(one["runs"] for one in of_each), 1)
        cells_of_row = [f"{machine.name}, {days}", str(change), *shares, f"{again:.1f}"]
        lines.append(f"| {' | '.join(cells_of_row)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
