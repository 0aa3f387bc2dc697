"""A simulated cluster: how often a check errs on it and what it finds, beside the field.

Runs are stored, become a baseline and its reference file, and later runs are judged by it, as a
check does (:mod:`tools.bench.judge`). What was counted is kept after each baseline, by its cell: a
setting, a machine, a kind of baseline and a change.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustergate.core.model import CaseId, CaseRecord, Verdict
from clustergate.core.paths import checkout, state_dir
from tools.bench import simulated_rules
from tools.bench.judge import Judge, judge_run, make_judge, of_figures, regressions
from tools.bench.judge_alone import Alone
from tools.bench.simulated_noise import (
    BARE_METAL,
    CLOUD,
    HEAVY,
    LARGE,
    MACHINES,
    NOISY,
    RECURRING,
    SHARED,
)
from tools.bench.simulated_rules import Beside
from tools.bench.simulated_runs import (
    BASELINES,
    SimulatedRun,
    Taken,
    affected_by,
    baseline_runs,
    form_of,
    later_run,
    past_runs,
)
from tools.bench.slowdowns import (
    ALL_COMPUTE,
    BENCHMARK,
    HPL,
    NOTHING,
    SIZE,
    STACK,
    UPGRADED,
    UPGRADED_LATENCY,
    WINDOW,
    Change,
)
from tools.bench.spread import CONFIDENCE, Share

SEED = 60061
LARGER = ("maintenance", "smoke, 64 nodes")
"""Settings that were counted later, and with a seed of their own."""
SEED_OF_LARGER = 60062
JUDGE, CHECK = "judge", "metal"
PARTS = {JUDGE: 400, CHECK: 40}
"""Unchanged runs of a cell, of others half as many: by the judge alone, and as a check does it."""
BASES = 20
"""By how many baselines they are judged."""

CHANGES = (
    NOTHING,
    *(Change(HPL, by) for by in (1.03, 1.05, 1.10, 1.20)),
    *(Change(ALL_COMPUTE, by) for by in (1.05, 1.10)),
    *(Change(SIZE, by) for by in (1.10, 1.20, 1.40)),
    *(Change(WINDOW, by) for by in (1.10, 1.20, 1.40)),
    *(Change(BENCHMARK, by) for by in (1.10, 1.20, 1.40)),
    *(Change(STACK, by) for by in (1.05, 1.10, 1.20, 1.40)),
    *(Change(UPGRADED, by) for by in (1.10, 1.20)),
    Change(UPGRADED_LATENCY, 1.20),
    Change(STACK, 1.30, 10),
)
_FEW = (
    NOTHING,
    *(Change(HPL, by) for by in (1.05, 1.20)),
    Change(SIZE, 1.40),
    *(Change(BENCHMARK, by) for by in (1.10, 1.20)),
    *(Change(STACK, by) for by in (1.05, 1.20)),
    Change(UPGRADED, 1.10),
    Change(UPGRADED_LATENCY, 1.20),
)
_BAD_DAY = (NOTHING, Change(HPL, 1.20), Change(STACK, 1.20))


@dataclass(frozen=True)
class Cell:
    """What is counted together: the names of a setting, a machine and a baseline, and a change."""

    setting: str
    machine: str
    baseline: str
    change: Change

    def __str__(self) -> str:
        return f"{self.setting} | {self.machine} | {self.baseline} | {self.change}"

    @property
    def title(self) -> str:
        """Its name in a table."""
        return str(self).replace(" | ", ", ")

    @property
    def judged_by(self) -> str:
        """What its baselines are made of, whatever the change."""
        return f"{self.setting} | {self.machine} | {self.baseline}"

    @classmethod
    def named(cls, name: str) -> Cell:
        """Return the cell of a name; raises KeyError for none."""
        return {str(cell): cell for cell in CELLS}[name]


_DAYS = ("1 day", "5 days", "20 days")
_BAD = ("5 days, one of them bad", "20 days, one of them bad")


def _cells() -> Iterator[Cell]:
    smoke, wide, (long, large) = "smoke", "smoke, three stacks, two nodes", LARGER
    parts = (
        (smoke, BARE_METAL, _DAYS, CHANGES),
        (smoke, HEAVY, _DAYS, _FEW),
        (smoke, BARE_METAL, _BAD, _BAD_DAY),
        (smoke, NOISY, _DAYS, _FEW),
        (smoke, RECURRING, ("5 days",), (NOTHING, Change(STACK, 1.20))),
        (wide, HEAVY, _DAYS, _FEW),
        (smoke, CLOUD, ("1 day", "5 days"), (NOTHING, Change(HPL, 1.20), Change(STACK, 1.20))),
        (smoke, SHARED, ("1 day", "5 days"), (NOTHING, Change(STACK, 1.20), Change(STACK, 1.40))),
        (long, BARE_METAL, ("5 days",), _FEW),
        (large, LARGE, ("5 days",), _FEW),
    )
    for setting, machine, baselines, changes in parts:
        for baseline in baselines:
            for change in changes:
                yield Cell(setting, machine.name, baseline, change)


CELLS = tuple(_cells())
# Its runs have ten times as many samples.
_FEWER = {"maintenance": 8}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Counted:
    """What was said of the runs of a cell that one baseline judged.

    ``found`` ended with status 1 for a regression that holds a figure which the change affects,
    ``accused`` for one that holds none, as all of an unchanged run do. ``passed`` with status 0 and
    all affected figures passed, ``inconclusive`` is what is neither. ``figures_passed`` are of the
    ``figures`` that are unchanged, ``figures_ruled_out`` those that the best test lets pass.
    ``launches`` and ``node_seconds`` are those of all runs, with what was launched again, which is
    ``again`` too. ``by_hand`` has of each run the worst of affected figures and of others in
    tolerances; ``by_hand_again`` is what was launched again for those.
    """

    cell: str
    basis: int
    runs: int = 0
    found: int = 0
    accused: int = 0
    passed: int = 0
    inconclusive: int = 0
    figures: int = 0
    figures_passed: int = 0
    figures_ruled_out: int = 0
    launches: int = 0
    node_seconds: float = 0.0
    again: int = 0
    mann_whitney: int = 0
    mann_whitney_accused: int = 0
    likelihood_ratio: int = 0
    by_hand_again: int = 0
    by_hand: Sequence[Sequence[float]] = field(default_factory=tuple)


@dataclass(eq=False)
class _Basis:
    """A baseline, and all that judges by it; the ``judge`` by the way of a check, or by itself."""

    judge: Judge | Alone
    beside: Beside


_PASSED = (Verdict.PASS, Verdict.IMPROVEMENT)


def counted(cells: Sequence[Cell], basis: int, runs: int, *, alone: bool = False) -> list[Counted]:
    """Return what is said of the runs of some cells, which have their baseline in common.

    A run is the same in all cells but for the change. The judge is asked by the way of a check, or
    ``alone``, which counts no verdicts of figures.
    """
    first = cells[0]
    form, machine = form_of(first.setting), MACHINES[first.machine]
    seed = [
        SEED_OF_LARGER if first.setting in LARGER else SEED,
        zlib.crc32(first.judged_by.encode()),
        basis,
    ]
    made = baseline_runs(form, machine, BASELINES[first.baseline], [*seed, 0])
    partition = form.setting.partition(exclusive=machine.exclusive)
    expected = [case.key for case in form.cases]
    judge = (
        Alone(form, machine, made)
        if alone
        else make_judge(past_runs(made), form.setting.mode, expected, partition)
    )
    of = _Basis(judge, Beside(form, machine, made))
    sums = {cell: Counted(str(cell), basis) for cell in cells}
    for k in range(runs):
        plain = later_run(form, machine, [*seed, 1, k])
        for cell in cells:
            if k < share_of(cell, runs):
                lot = np.random.default_rng([*seed, 2, k])
                affected = affected_by(cell.change, form, lot)
                run = plain.with_change(cell.change, affected)
                sums[cell] = _with_run(sums[cell], of, run, affected)
    return list(sums.values())


def share_of(cell: Cell, runs: int) -> int:
    """Return how many runs of a baseline a cell has where unchanged ones are so many."""
    return runs if cell.change == NOTHING else math.ceil(runs / 2)


@dataclass(frozen=True)
class _Said:
    """What the judge said of a run: what it found, and of unchanged figures how many passed."""

    found: bool
    accused: bool
    passed: bool
    unchanged: Sequence[Verdict]
    launched: Sequence[Taken]
    again: int


def _said(judge: Judge, run: SimulatedRun, affected: NDArray[np.bool_]) -> _Said:
    turns: dict[CaseId, int] = {}
    launched = list(run.taken.values())

    def again(key: CaseId) -> CaseRecord:
        turns[key] = turns.get(key, 0) + 1
        launched.append(run.again(key, turns[key]))
        return launched[-1].record

    judged = judge_run(judge, run.records, again)
    hit = {
        (case.key.check, case.key.stack, name)
        for case in run.form.cases
        for name, place in zip(case.names, case.places, strict=True)
        if affected[place]
    }
    called = regressions(judged.cases) if judged.status == 1 else []
    verdicts = of_figures(judged.cases)
    slower = bool((run.slower > 0).any())  # what became faster is accused as others are
    return _Said(
        found=slower and any(not hit.isdisjoint(one) for one in called),
        accused=any(hit.isdisjoint(one) or not slower for one in called),
        passed=judged.status == 0 and all(verdicts.get(key) in _PASSED for key in hit or verdicts),
        unchanged=[verdict for key, verdict in verdicts.items() if key not in hit],
        launched=launched,
        again=sum(turns.values()),
    )


def _said_alone(judge: Alone, run: SimulatedRun, affected: NDArray[np.bool_]) -> _Said:
    called = judge.call(run)
    hit = set(np.flatnonzero(affected).tolist())
    slower = bool((run.slower > 0).any())
    return _Said(
        found=slower and any(not hit.isdisjoint(one) for one in called.sets),
        accused=any(hit.isdisjoint(one) or not slower for one in called.sets),
        passed=False,
        unchanged=(),
        launched=list(run.taken.values()),
        again=called.launched_again,
    )


def _with_run(
    so_far: Counted, of: _Basis, run: SimulatedRun, affected: NDArray[np.bool_]
) -> Counted:
    by_hand = of.beside.by_hand(run, affected)
    ranks, ruled_out = (False, False), 0
    if isinstance(of.judge, Alone):
        said = _said_alone(of.judge, run, affected)
    else:
        said = _said(of.judge, run, affected)
        ranks = of.beside.mann_whitney(run, affected)
        ruled_out = of.beside.ruled_out(run, affected)
    return dataclasses.replace(
        so_far,
        runs=so_far.runs + 1,
        found=so_far.found + said.found,
        accused=so_far.accused + said.accused,
        passed=so_far.passed + said.passed,
        inconclusive=so_far.inconclusive + (not (said.found or said.accused or said.passed)),
        figures=so_far.figures + len(said.unchanged),
        figures_passed=so_far.figures_passed + sum(one in _PASSED for one in said.unchanged),
        figures_ruled_out=so_far.figures_ruled_out + ruled_out,
        launches=so_far.launches + sum(one.launches for one in said.launched),
        node_seconds=so_far.node_seconds + sum(one.node_seconds for one in said.launched),
        again=so_far.again + said.again,
        mann_whitney=so_far.mann_whitney + ranks[0],
        mann_whitney_accused=so_far.mann_whitney_accused + ranks[1],
        likelihood_ratio=so_far.likelihood_ratio + of.beside.likelihood_ratio(run, affected),
        by_hand_again=so_far.by_hand_again + by_hand.launches,
        by_hand=[*so_far.by_hand, [round(by_hand.affected, 3), round(by_hand.others, 3)]],
    )


# --- what is kept, and the table ----------------------------------------------------------------


def kept_in(part: str) -> Path:
    """Return the file of what was counted of this very judge, by this simulation."""
    digest = hashlib.sha256()
    judge = ("judge", "stats", "launch")
    files = [path for name in judge for path in (checkout() / "clustergate" / name).rglob("*.py")]
    here = Path(__file__).parent
    files += [*here.glob("simulated_*.py"), here / "judge.py", here / "judge_alone.py"]
    for path in sorted(files):
        digest.update(path.read_bytes())
    return state_dir() / "bench" / f"{part}-{digest.hexdigest()[:8]}.jsonl"


def read_counted(path: Path) -> dict[tuple[str, int], Counted]:
    """Return what was kept by cell and baseline, nothing where there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [Counted(**json.loads(line)) for line in lines if line.endswith("}")]
    return {(one.cell, one.basis): one for one in kept}


def measured(
    part: str, path: Path, wanted: Callable[[str], bool], runs: int, bases: int, say: Say
) -> list[Counted]:
    """Return what is said of the wanted cells, and keep each part of it as soon as it is known.

    ``part`` is one of :data:`PARTS`; ``runs`` are the unchanged ones of a cell. What is kept there
    already is not counted again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    known = read_counted(path)
    cells = [cell for cell in CELLS if wanted(str(cell))]
    for basis in range(bases):
        for name in dict.fromkeys(cell.judged_by for cell in cells):
            mine = [cell for cell in cells if cell.judged_by == name]
            each = math.ceil(runs / bases / _FEWER.get(mine[0].setting, 1))
            lacking = [
                cell
                for cell in mine
                if (one := known.get((str(cell), basis))) is None or one.runs < share_of(cell, each)
            ]
            if not lacking:
                continue
            say(f"{part}, {name}: baseline {basis + 1} of {bases}")
            done = counted(lacking, basis, each, alone=part == JUDGE)
            with path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(one)) + "\n" for one in done)
            known |= {(one.cell, one.basis): one for one in done}
    return [known[str(cell), basis] for cell in cells for basis in range(bases)]


BEFORE = Path(__file__).with_name("metal_before.json")
"""What the rule before this judge said of the same runs, as far as these were counted."""


@dataclass(frozen=True)
class Before:
    """Of a cell, by the rule before: so many runs, with what was found and accused in them."""

    runs: int
    found: int
    accused: int
    figures_passed: float

    def told(self, count: int) -> str:
        """Return a count in percent of the runs."""
        return f"{100 * count / self.runs:.0f}"


def totals(kept: Iterable[Counted]) -> dict[str, Before]:
    """Return what was counted by cell, of all baselines together."""
    by_cell: dict[str, list[Counted]] = {}
    for one in kept:
        by_cell.setdefault(one.cell, []).append(one)
    return {
        cell: Before(
            sum(one.runs for one in some),
            sum(one.found for one in some),
            sum(one.accused for one in some),
            round(sum(x.figures_passed for x in some) / max(sum(x.figures for x in some), 1), 3),
        )
        for cell, some in by_cell.items()
    }


@functools.cache
def before() -> Mapping[str, Before]:
    """Return what was kept of the rule before, by cell."""
    content = json.loads(BEFORE.read_text(encoding="utf-8"))
    return {cell: Before(**one) for cell, one in content["cells"].items()}


HEADS = (
    "baseline", "slower", "runs", "found", "others accused", "passed", "inconclusive",
    "unchanged figures passed", "launches", "node-seconds",
    "the rule before: found", "others", "passed figures",
    "by hand: found", "others", "by hand, widened: found", "others",
    "Mann-Whitney: found", "others", "likelihood ratio: found",
)  # fmt: skip


def tables(kept: Iterable[Counted]) -> Iterator[tuple[str, Sequence[Sequence[str]]]]:
    """Yield of each setting and machine a title and the rows, in percent with 95 % intervals."""
    by_cell: dict[str, list[Counted]] = {}
    for one in kept:
        by_cell.setdefault(one.cell, []).append(one)
    cells = [cell for cell in CELLS if str(cell) in by_cell]
    for title in dict.fromkeys((cell.setting, cell.machine) for cell in cells):
        mine = [cell for cell in cells if (cell.setting, cell.machine) == title]
        rows = []
        for cell in mine:
            unchanged = by_cell.get(str(dataclasses.replace(cell, change=NOTHING)), [])
            rows.append(_row(cell, by_cell[str(cell)], widened(unchanged)))
        yield ", ".join(title), rows


def widened(unchanged: Sequence[Counted]) -> float:
    """Return by how many times tolerances must be wider for 1 % of the unchanged runs to alarm."""
    worst = sorted((max(run) for one in unchanged for run in one.by_hand), reverse=True)
    allowed = int(simulated_rules.ALARMS * len(worst))
    return max(worst[allowed], 1.0) if worst else 1.0


def _row(cell: Cell, bases: Sequence[Counted], times: float) -> Sequence[str]:
    changed = cell.change.where not in (NOTHING.where, UPGRADED, UPGRADED_LATENCY)

    def told(count: Callable[[Counted], float]) -> str:
        return percent([(int(count(one)), one.runs) for one in bases])

    def by_check(text: str) -> str:
        return text if figures else ""  # The judge alone tells nothing of it.

    def by_hand(place: int, factor: float) -> str:
        return told(lambda one: sum(run[place] > factor for run in one.by_hand))

    runs = sum(one.runs for one in bases)
    figures = sum(one.figures for one in bases)
    return (
        cell.baseline,
        str(cell.change),
        str(runs),
        told(lambda one: one.found) if changed else "",
        told(lambda one: one.accused),
        by_check(told(lambda one: one.passed)),
        by_check(told(lambda one: one.inconclusive)),
        by_check(f"{100 * sum(one.figures_passed for one in bases) / max(figures, 1):.0f}"),
        by_check(f"{sum(one.launches for one in bases) / runs:.1f}"),
        by_check(f"{sum(one.node_seconds for one in bases) / runs:.0f}"),
        *_before(cell, changed=changed),
        by_hand(0, 1.0) if changed else "",
        by_hand(1, 1.0),
        f"{times:.1f} x: {by_hand(0, times)}" if changed else f"{times:.1f} x",
        by_hand(1, times),
        by_check(told(lambda one: one.mann_whitney)) if changed else "",
        by_check(told(lambda one: one.mann_whitney_accused)),
        told(lambda one: one.likelihood_ratio) if changed else "",
    )


def _before(cell: Cell, *, changed: bool) -> Sequence[str]:
    known = before().get(str(cell))
    if known is None:
        return "", "", ""
    found = known.told(known.found) if changed else ""
    return found, known.told(known.accused), f"{100 * known.figures_passed:.0f}"


def shares(counts: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return the 95 % interval of a share, from counts by baseline.

    Runs that a baseline judges are alike, so baselines are drawn (:class:`~tools.bench.spread.
    Share`); where it happened never or always that tells nothing, and each run is a trial.
    """
    happened, of = map(sum, zip(*counts, strict=True))
    if happened not in (0, of):
        return Share(counts).bounds
    rare = 1.0 - (1.0 - CONFIDENCE) ** (1.0 / max(of, 1))
    return (0.0, rare) if happened == 0 else (1.0 - rare, 1.0)


def percent(counts: Sequence[tuple[int, int]]) -> str:
    """Return a share in percent with its interval."""
    happened, of = map(sum, zip(*counts, strict=True))
    low, high = (100 * bound for bound in shares(counts))
    if happened in (0, of):
        return f"0 (<{high:.1f})" if happened == 0 else f"100 (>{low:.1f})"
    return f"{100 * happened / of:.0f} ({low:.0f}-{high:.0f})"


def plain(kept: Sequence[Counted]) -> Mapping[str, Any]:
    """Return it as JSON holds it."""
    return {"seed": SEED, "counted": [asdict(one) for one in kept]}


def read(content: Mapping[str, Any]) -> list[Counted]:
    """Return what :func:`plain` made."""
    return [Counted(**one) for one in content["counted"]]
