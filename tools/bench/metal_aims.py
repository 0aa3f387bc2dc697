"""What the judge is to reach on the simulated cluster, and what of it was measured. Pure."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tools.bench.metal import CELLS, LARGER, SEED, Cell, Counted, percent, shares, widened
from tools.bench.simulated_noise import BARE_METAL, HEAVY, MACHINES, NOISY
from tools.bench.simulated_rules import Beside
from tools.bench.simulated_runs import BASELINES, affected_by, baseline_runs, form_of
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
from tools.bench.spread import CONFIDENCE

FOUND, ALARMS, PASSED = "found", "alarms", "unchanged figures passed"
_OF: dict[str, Callable[[Counted], tuple[int, int]]] = {
    FOUND: lambda one: (one.found, one.runs),
    ALARMS: lambda one: (one.accused, one.runs),
    PASSED: lambda one: (one.figures_passed, one.figures),
}
_WIDE = "smoke, three stacks, two nodes"
_LOTS, _DRAWN = 24, 1000
_HIDDEN, _SLOWER = 1.10, (SIZE, WINDOW, BENCHMARK, STACK, HPL, ALL_COMPUTE)
# What happened never or always is taken for so rare.
_LEAST = 0.002


@dataclass(frozen=True)
class Aim:
    """A share that a cell is to reach, or of alarms not to exceed."""

    cell: Cell
    what: str
    share: float

    def is_met(self, low: float, high: float) -> bool:
        """Tell whether it is met, from a measured interval: what this holds counts for it."""
        return low <= self.share if self.what == ALARMS else high >= self.share


def _bare(baseline: str, change: Change, share: float, what: str = FOUND) -> Aim:
    return Aim(Cell("smoke", BARE_METAL.name, baseline, change), what, share)


def _alarms() -> Iterator[Aim]:
    for cell in CELLS:
        if cell.change == NOTHING:
            yield Aim(cell, ALARMS, 0.01)
        elif cell.change.where in (UPGRADED, UPGRADED_LATENCY):
            small = cell.change.where == UPGRADED_LATENCY and cell.setting == _WIDE
            share = 0.09 if cell.machine == NOISY.name else 0.03 if small else 0.01
            yield Aim(cell, ALARMS, share)


AIMS = (
    *_alarms(),
    _bare("1 day", Change(HPL, 1.10), 0.95),
    _bare("1 day", Change(STACK, 1.05), 0.90),
    _bare("1 day", Change(BENCHMARK, 1.20), 0.90),
    _bare("5 days", Change(HPL, 1.05), 0.90),
    _bare("5 days", Change(ALL_COMPUTE, 1.05), 0.75),
    _bare("5 days", Change(BENCHMARK, 1.10), 0.75),
    _bare("5 days", Change(STACK, 1.05), 0.95),
    _bare("5 days", Change(SIZE, 1.40), 0.78),
    Aim(Cell("smoke", HEAVY.name, "5 days", Change(HPL, 1.05)), FOUND, 0.80),
    *(_bare("20 days", Change(where, 1.05), 0.99) for where in (HPL, ALL_COMPUTE, STACK)),
    _bare("20 days", Change(BENCHMARK, 1.10), 0.95),
    _bare("20 days", Change(SIZE, 1.20), 0.60),
    _bare("5 days", NOTHING, 0.70, PASSED),
    _bare("20 days", NOTHING, 0.78, PASSED),
    *(
        _bare(f"{days} days, one of them bad", Change(where, 1.20), 0.95)
        for days in (5, 20)
        for where in (HPL, STACK)
    ),
)
# What is found in 80 % is at most so many times what the likelihood ratio finds.
TIMES_OPTIMUM = {"1 day": 2.7, "5 days": 2.2, "20 days": 1.8}


def aim_rows(kept: Iterable[Counted]) -> list[tuple[str, ...]]:
    """Return a row for each aim that was measured: the aim, the share, whether it is met."""
    return _rows_of([aim for aim in AIMS if aim.what != PASSED], kept)


def passed_rows(kept: Iterable[Counted]) -> list[tuple[str, ...]]:
    """Return such rows of the figures that are to pass, of which the judge alone says nothing."""
    return _rows_of([aim for aim in AIMS if aim.what == PASSED], kept)


def hidden_rows(kept: Iterable[Counted]) -> list[tuple[str, ...]]:
    """Return in how many runs all passes that is slower by just what must not hide: 10 %."""
    rows: list[tuple[str, ...]] = []
    for name, of_cell in _by_cell(kept).items():
        change, title = Cell.named(name).change, Cell.named(name).title
        if (change.factor, change.every) == (_HIDDEN, 1) and change.where in _SLOWER:
            runs = str(sum(one.runs for one in of_cell))
            rows.append((title, runs, percent([(one.passed, one.runs) for one in of_cell])))
    return rows


def _rows_of(aims: Sequence[Aim], kept: Iterable[Counted]) -> list[tuple[str, ...]]:
    by_cell = _by_cell(kept)
    rows: list[tuple[str, ...]] = []
    for aim in aims:
        of_cell = by_cell.get(str(aim.cell), [])
        counts = [_OF[aim.what](one) for one in of_cell]
        if any(of for _, of in counts):
            low, high = shares(counts)
            happened, of = map(sum, zip(*counts, strict=True))
            best = _best(aim.what, of_cell)
            bound = "at most" if aim.what == ALARMS else "in"
            rows.append((
                f"{aim.cell.title}: {aim.what} {bound} {100 * aim.share:g} %",
                f"{100 * happened / of:.1f} ({100 * low:.1f}-{100 * high:.1f})",
                best,
                "met" if aim.is_met(low, high) else "missed",
            ))  # fmt: skip
    return rows


def _best(what: str, of_cell: Sequence[Counted]) -> str:
    """Return the share that the likelihood ratio reaches, in percent, empty where none is known."""
    if what == PASSED and (ruled_out := sum(one.figures_ruled_out for one in of_cell)):
        return f"{100 * ruled_out / sum(one.figures for one in of_cell):.1f}"
    if what != FOUND:
        return ""
    found = sum(one.likelihood_ratio for one in of_cell) / sum(one.runs for one in of_cell)
    return f"{100 * found:.0f}"


def by_hand_rows(kept: Iterable[Counted]) -> list[tuple[str, ...]]:
    """Return where tolerances by hand find more at 1 % of alarms, beyond the interval.

    Of each such cell: what is found, by the judge and by hand, the interval of the difference,
    drawn by baselines, and what the likelihood ratio finds.
    """
    by_cell = _by_cell(kept)
    rows: list[tuple[str, ...]] = []
    for name, of_cell in by_cell.items():
        cell = Cell.named(name)
        unchanged = by_cell.get(str(dataclasses.replace(cell, change=NOTHING)))
        if cell.change == NOTHING or not unchanged:
            continue
        times = widened(unchanged)
        ours = np.array([one.found for one in of_cell])
        by_hand = np.array([sum(run[0] > times for run in one.by_hand) for one in of_cell])
        runs = np.array([one.runs for one in of_cell])
        lot = np.random.default_rng(1).integers(0, len(runs), (4000, len(runs)))
        less = (ours - by_hand)[lot].sum(axis=1) / runs[lot].sum(axis=1)
        low, high = (100 * float(np.quantile(less, q)) for q in (0.025, 0.975))
        if high < 0:
            shown = [f"{100 * some.sum() / runs.sum():.0f}" for some in (ours, by_hand)]
            best = _best(FOUND, of_cell)
            rows.append((cell.title, *shown, f"{low:.0f} to {high:.0f}", best))
    return rows


def optimum_rows(kept: Iterable[Counted]) -> list[tuple[str, ...]]:
    """Return what the judge finds in 80 % and what the likelihood ratio does, on bare metal.

    Behind how many times that is stands the interval that 95 % of baselines hold which are drawn
    with replacement, and whether the aim is not below all of it.
    """
    by_cell = _by_cell(kept)
    rows: list[tuple[str, ...]] = []
    for baseline, where in itertools.product(TIMES_OPTIMUM, (HPL, ALL_COMPUTE, BENCHMARK, SIZE)):
        measured = [
            (math.log(cell.change.factor), by_cell[str(cell)])
            for cell in CELLS
            if (cell.setting, cell.machine, cell.baseline) == ("smoke", BARE_METAL.name, baseline)
            and cell.change.where == where
            and cell.change.every == 1
            and str(cell) in by_cell
        ]
        if measured:
            best, aim = _optimum(baseline, where), TIMES_OPTIMUM[baseline]
            ours = found_in([(by, _share(some)) for by, some in measured], 0.8)
            low, high = (end / best for end in _drawn(measured))
            times = "" if math.isinf(ours) else f"{ours / best:.1f} "
            rows.append((
                baseline, where, "more than measured" if math.isinf(ours) else f"{100 * ours:.1f}",
                f"{100 * best:.1f}", f"{times}({low:.1f}-{high:.1f})", f"{aim:g}",
                "met" if low <= aim else "missed",
            ))  # fmt: skip
    return rows


def _drawn(measured: Sequence[tuple[float, Sequence[Counted]]]) -> tuple[float, float]:
    """Return the 95 % interval of what is found in 80 %, with baselines drawn."""
    bases = [{one.basis: one for one in some} for _, some in measured]
    known = sorted(set.intersection(*(set(of) for of in bases)))
    lots = np.random.default_rng(1).choice(known, (_DRAWN, len(known))).tolist()
    factors = [by for by, _ in measured]
    shares = [[_share([of[k] for k in lot]) for of in bases] for lot in lots]
    ends = sorted(found_in([*zip(factors, some, strict=True)], 0.8) for some in shares)
    tail = int((1.0 - CONFIDENCE) / 2 * _DRAWN)
    return ends[tail], ends[-1 - tail]


_TRUSTED = (
    *(Change(HPL, by) for by in (1.03, 1.05, 1.10)),
    Change(ALL_COMPUTE, 1.05),
    Change(STACK, 1.05),
    *(Change(BENCHMARK, by) for by in (1.10, 1.20)),
    *(Change(SIZE, by) for by in (1.20, 1.40)),
)


def trust_rows(kept: Iterable[Counted]) -> list[tuple[str, ...]]:
    """Return, of bare metal, what of each hundred runs is found and accused, by baselines."""
    by_cell = _by_cell(kept)
    rows: list[tuple[str, ...]] = []
    for machine, baseline in itertools.product((BARE_METAL.name, HEAVY.name), TIMES_OPTIMUM):
        cell = functools.partial(Cell, "smoke", machine, baseline)
        unchanged = by_cell.get(str(cell(NOTHING)))
        if not unchanged:
            continue
        upgraded = by_cell.get(str(cell(Change(UPGRADED, 1.10))), [])
        accused = [[(one.accused, one.runs) for one in some] for some in (unchanged, upgraded)]
        rows.append((
            f"{machine}, {baseline}",
            *(percent(counts) if counts else "" for counts in accused),
            *(
                f"{100 * _share(by_cell[str(cell(change))]):.0f}"
                if str(cell(change)) in by_cell
                else ""
                for change in _TRUSTED
            ),
        ))  # fmt: skip
    return rows


def found_in(measured: Sequence[tuple[float, float]], share: float) -> float:
    """Return the slowdown that is found in such a share, from shares by logarithms of slowdowns.

    Between two of them the quantiles of the normal distribution are interpolated; infinite where
    none reaches it.
    """
    points = [(0.0, _LEAST), *sorted(measured)]
    normal = NormalDist()
    for (before, low), (after, high) in itertools.pairwise(points):
        if high >= share:
            inner = (min(max(p, _LEAST), 1.0 - _LEAST) for p in (low, share, high))
            below, at, above = map(normal.inv_cdf, inner)
            part = (at - below) / (above - below) if above > below else 1.0
            return math.expm1(before + min(max(part, 0.0), 1.0) * (after - before))
    return math.inf


@functools.lru_cache(maxsize=64)
def _optimum(baseline: str, where: str) -> float:
    form, machine = form_of("smoke"), MACHINES[BARE_METAL.name]
    beside = Beside(form, machine, baseline_runs(form, machine, BASELINES[baseline], [SEED]))
    lots = (np.random.default_rng([SEED, k]) for k in range(_LOTS))
    found = [beside.found_in_80(affected_by(Change(where), form, lot)) for lot in lots]
    return float(np.median(found))


def _share(of_cell: Sequence[Counted]) -> float:
    return sum(one.found for one in of_cell) / sum(one.runs for one in of_cell)


def larger_rows(kept: Iterable[Counted]) -> list[tuple[str, ...]]:
    """Return what is found and accused in maintenance and on 64 nodes."""
    rows: list[tuple[str, ...]] = []
    for name, of_cell in _by_cell(kept).items():
        cell = Cell.named(name)
        if cell.setting not in LARGER:
            continue
        changed = cell.change.where not in (NOTHING.where, UPGRADED, UPGRADED_LATENCY)
        rows.append((
            f"{cell.setting}, {cell.baseline}",
            str(cell.change),
            str(sum(one.runs for one in of_cell)),
            percent([(one.found, one.runs) for one in of_cell]) if changed else "",
            percent([(one.accused, one.runs) for one in of_cell]),
            _best(FOUND, of_cell) if changed else "",
        ))  # fmt: skip
    return rows


def _by_cell(kept: Iterable[Counted]) -> dict[str, list[Counted]]:
    by_cell: dict[str, list[Counted]] = {}
    for one in kept:
        by_cell.setdefault(one.cell, []).append(one)
    return by_cell


HEADS: Mapping[Callable[[Iterable[Counted]], list[tuple[str, ...]]], Sequence[str]] = {
    aim_rows: ("aim", "measured", "likelihood ratio", ""),
    passed_rows: ("aim", "measured", "likelihood ratio", ""),
    hidden_rows: ("slower", "runs", "all of it passed"),
    optimum_rows: (
        "baseline", "slower", "found in 80 %: from %", "the likelihood ratio", "times", "aim", "",
    ),
    trust_rows: (
        "baseline of", "false alarms", "accused for an upgraded stack", *map(str, _TRUSTED),
    ),
    larger_rows: (
        "baseline", "slower", "runs", "found", "others accused", "likelihood ratio: found",
    ),
    by_hand_rows: ("cell", "found", "by hand, widened", "difference", "likelihood ratio"),
}  # fmt: skip
