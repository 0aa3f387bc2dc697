"""What the page of all systems costs: ``clustergate open --all`` over the runs of a long time."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from clustergate.core import store
from clustergate.core.files.stored import encode
from clustergate.core.model import CaseRecord, Run
from clustergate.core.paths import checkout
from clustergate.judge.assembly import Outcome, assemble
from clustergate.judge.history.listing import ENDED, VERDICTS
from clustergate.judge.history.stored_runs import ASKED
from clustergate.report import index
from clustergate.report.verdicts import as_json
from tools.bench.spread import Aim, Figure
from tools.bench.workspace import BenchError, Workspace

SECTION = "site page"
RUNS, SYSTEMS, FIGURES = 1000, 4, 600
# The trends are of so many newest runs, and only theirs have records here.
_RECORDED = 60
_CAPTURED = checkout() / "tests" / "data" / "runs" / "smoke"
_FIRST = datetime.datetime(2025, 1, 1, 8, tzinfo=datetime.timezone.utc)


def write_home(home: Path, runs: int) -> int:
    """Write so many runs of four systems, of captured figures that scatter by 1 %.

    Return how many figures each has.
    """
    captured = [_captured(path) for path in sorted(_CAPTURED.glob("*.json"))]
    outcomes = [Outcome(one.name, one.check, one.stack, "pass") for one in captured]
    cases = tuple(assemble({}, outcomes, captured))
    answer = as_json(Run("RUN", "SYSTEM", "smoke", _FIRST.isoformat(), 60.0, cases))
    figures = [one for case in answer["cases"] for one in case["figures"]]
    most = FIGURES - len(figures)
    # As many as a run of more sizes has.
    for k in range(max(0, most)):
        like = figures[k % len(figures)]
        answer["cases"][k % len(cases)]["figures"].append({**like, "name": f"{k} {like['name']}"})
    figures = [one for case in answer["cases"] for one in case["figures"]]
    values = [one["value"] for one in figures]
    noise = np.random.default_rng(1)
    for number in range(runs):
        started = _FIRST + datetime.timedelta(hours=12 * number)
        run, system = f"{started:%Y%m%dT%H%M%SZ}-r{number + 1}", f"system{number % SYSTEMS}"
        folder = store.run_folder(run, home)
        (folder / "cases").mkdir(parents=True)
        for one, value, factor in zip(
            figures, values, np.exp(noise.normal(0, 0.01, len(values))), strict=True
        ):
            one["value"] = None if value is None else value * factor
        answer |= {"run": run, "system": system, "started": started.isoformat()}
        (folder / VERDICTS).write_text(json.dumps(answer, indent=1), encoding="utf-8")
        ended = {"missing_cases": 0, "verdict": "no reference", "system": system}
        (folder / ENDED).write_text(json.dumps(ended), encoding="utf-8")
        asked = {"mode": "smoke", "site": f"{system}.py", "by": "operator"}
        (folder / ASKED).write_text(json.dumps(asked), encoding="utf-8")
        for record in captured if number >= runs - _RECORDED else ():
            _write(folder, record, system, started, float(np.exp(noise.normal(0, 0.01))))
        for path in (*folder.rglob("*"), folder):
            os.utime(path, (started.timestamp(), started.timestamp()))
    return len(figures)


def _captured(path: Path) -> CaseRecord:
    return store.parse_case(path.read_bytes(), path)


def _write(
    folder: Path, record: CaseRecord, system: str, started: datetime.datetime, factor: float
) -> None:
    began = min((one.started for one in record.launches), default=0.0)
    moved = dataclasses.replace(
        record,
        partition=f"{system}:{record.partition.partition(':')[2]}",
        samples=[dataclasses.replace(s, value=s.value * factor) for s in record.samples],
        launches=[
            dataclasses.replace(one, started=one.started - began + started.timestamp())
            for one in record.launches
        ],
    )
    content = {"schema": store.SCHEMA, **encode(moved)}
    path = folder / "cases" / f"{record.name}.json"
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def measure(
    room: Workspace, *, runs: int, rounds: Iterable[int], say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield what `clustergate open --all` takes; raises BenchError where it writes no page."""
    home = room.home / "site-page"
    figures = write_home(home, runs)
    say(f"site page: {runs} runs of {figures} figures")
    page = store.runs_folder(home) / index.FILE
    times = []
    for _ in rounds:
        page.unlink(missing_ok=True)
        variables = {"CLUSTERGATE_HOME": str(home), "DISPLAY": "", "BROWSER": ""}
        times.append(
            room.timed([sys.executable, "-m", "clustergate", "open", "--all"], variables=variables)
        )
        if not page.is_file():
            raise BenchError(f"no page was written: {room.output()[-500:]}")
    subject = f"{runs} runs of {figures} figures, {SYSTEMS} systems"
    what = f"clustergate open --all; records of the newest {_RECORDED} runs alone"
    aim = Aim(10.0)
    yield Figure(SECTION, subject, "processor time", "s", [t.cpu_seconds for t in times], what, aim)
    size = page.stat().st_size / 1e6
    yield Figure(SECTION, subject, "page", "MB", [size], what, Aim(3.0))
