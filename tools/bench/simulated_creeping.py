"""Half-years of a simulated machine with weekly baselines, which creeps or does not. Pure.

Each week has a run a day, of which a baseline is made that is to follow the one before, as
`clustergate baseline` makes it; then a run is judged as by a check. A half-year ends where either
tells that something became slower.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml.comments import CommentedMap

from clustergate.core.files.marked_yaml import Document
from clustergate.judge.baselines.proposals import Rule, make_baseline
from clustergate.judge.baselines.writer import update
from clustergate.judge.history.series import collect
from clustergate.judge.references.lookup import References
from tools.bench.judge import Judge, judge_run
from tools.bench.simulated_noise import BARE_METAL, MACHINES
from tools.bench.simulated_runs import (
    SYSTEM,
    Form,
    SimulatedRun,
    affected_by,
    baseline_runs,
    form_of,
    past_runs,
)
from tools.bench.simulated_runs import Baseline as Days
from tools.bench.slowdowns import HPL, NOTHING, Change

SEED, WEEKS = 60071, 26
HALF_YEARS = 70
_DAYS = 5
CREEPING = (0.0, 0.01, 0.03)


@dataclass(frozen=True)
class Told:
    """Of a half-year in which HPL lost ``percent`` a week: in which week it was told, None never.

    The first week is 1; then nothing has crept. ``by`` is "baseline" or "check".
    """

    percent: float
    seed: int
    week: int | None = None
    by: str = ""


def half_year(rate: float, seed: int, weeks: int = WEEKS) -> Told:
    """Return what is told in a half-year in which HPL loses such a fraction a week."""
    form, machine = form_of("smoke"), MACHINES[BARE_METAL.name]
    partition = form.setting.partition(exclusive=machine.exclusive)
    nodes = {partition.fullname: partition.facts}
    expected = [case.key for case in form.cases]
    source, root = Path(f"{SYSTEM}.yaml"), CommentedMap()
    known = References(source)
    at = affected_by(Change(HPL if rate else NOTHING.where), form, np.random.default_rng(seed))
    for week in range(weeks):
        slower = week * math.log1p(rate) * at.astype(float)
        runs = list(_week(form, week, slower, seed))
        made = make_baseline(collect(past_runs(runs[:_DAYS]), nodes), known, Rule(), nodes=nodes)
        if any(one.refused for one in made.drifts):
            return Told(100 * rate, seed, week + 1, "baseline")
        # As it is written and read again, which takes three times as long as all the rest.
        update(root, made.measured, made.anchors)
        known = References(source, Document(as_read(root)))
        judge = Judge(form.setting.mode, expected, partition, known)
        if _is_slower(judge, runs[_DAYS]):
            return Told(100 * rate, seed, week + 1, "check")
    return Told(100 * rate, seed)


def as_read(written: Any) -> Any:
    """Return part of a reference file as what reads it has it: plain, with days as text."""
    if isinstance(written, Mapping):
        return {str(key): as_read(value) for key, value in written.items()}
    if isinstance(written, list):
        return [as_read(one) for one in written]
    if isinstance(written, datetime.date):
        return written.isoformat()
    return str(written) if isinstance(written, str) else written


def _week(form: Form, week: int, slower: Any, seed: int) -> Iterator[SimulatedRun]:
    of_week = baseline_runs(form, BARE_METAL, Days("a week", _DAYS + 1), [SEED, seed, week])
    for run in of_week:
        yield replace(run, started=run.started + week * datetime.timedelta(weeks=1), slower=slower)


def _is_slower(judge: Judge, run: SimulatedRun) -> bool:
    turns: dict[Any, int] = {}

    def again(key: Any) -> Any:
        turns[key] = turns.get(key, 0) + 1
        return run.again(key, turns[key]).record

    return judge_run(judge, run.records, again).status == 1


def measured(half_years: int, path: Path, say: Callable[[str], None]) -> list[Told]:
    """Return what is told in so many half-years of each kind, and keep each as soon as it ended.

    What is kept there already is not simulated again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [Told(**json.loads(line)) for line in lines if line.endswith("}")]
    known = {(one.percent, one.seed): one for one in kept}
    for seed, rate in itertools.product(range(half_years), CREEPING):
        if (100 * rate, seed) not in known:
            say(f"half-year {seed + 1} of {half_years} that loses {100 * rate:g} % a week")
            known[100 * rate, seed] = told = half_year(rate, seed)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(told)) + "\n")
    return [known[100 * rate, seed] for rate in CREEPING for seed in range(half_years)]


HEADS = ("HPL loses a week", "half-years", "told", "by week six", "the last in week", "by a check")


def rows(told: Iterable[Told]) -> list[tuple[str, ...]]:
    """Return a row for each rate."""
    by_rate: dict[float, list[Told]] = {}
    for one in told:
        by_rate.setdefault(one.percent, []).append(one)
    return [
        (
            f"{percent:g} %",
            str(len(some)),
            str(len(weeks)),
            str(sum(week <= 6 for week in weeks)) if percent else "",
            str(max(weeks, default="")),
            str(sum(one.by == "check" for one in some)),
        )
        for percent, some in by_rate.items()
        for weeks in [[one.week for one in some if one.week is not None]]
    ]


def plain(told: Sequence[Told]) -> Mapping[str, Any]:
    """Return it as JSON holds it."""
    return {"seed": SEED, "told": [asdict(one) for one in told]}
