"""What the suite costs beside the recorded run of an earlier commit on the same processor.

A recorded run is what ``make bench`` measured, of each figure all measurements. It says nothing of
another processor, where the same work takes another time.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from clustergate.core.notation import interval
from clustergate.core.paths import checkout
from tools.bench.spread import Figure, cell

RECORDED = Path(__file__).with_name("recorded") / "commits"
PAGE = checkout() / "docs" / "costs.md"
_TABLE = ("<!-- costs -->\n", "<!-- /costs -->\n")
_HIGHER = ("MB/s",)
# Processor times of unchanged runs of two hours differed by up to 1.2, of two days by 1.5, with
# others at work.
SHIFT, BUSY_SHIFT = math.log(1.3), math.log(2.0)
# Fewer measurements say nothing.
_FEWEST = 5
# On a quiet virtual machine of two cores the kernel and the hypervisor alone take up to 0.1.
_OTHERS_CORES = 0.25

Key = tuple[str, str, str, str]


def recorded_runs() -> list[Mapping[str, Any]]:
    """Return the recorded runs, one of each processor, in the order of their files' names."""
    return [read(path) for path in sorted(RECORDED.glob("*.json"))]


def read(path: Path) -> Mapping[str, Any]:
    """Return a recorded run."""
    content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def file_for(processor: str, cores: int) -> Path:
    """Return the file that holds the recorded run of a processor."""
    words = re.sub(r"\W+", "-", re.sub(r"\(.*?\)", "", processor).lower()).strip("-")
    return RECORDED / f"{words}-{cores}-cores.json"


def _key(entry: Mapping[str, Any]) -> Key:
    return entry["section"], entry["subject"], entry["quantity"], entry["unit"]


@dataclass(frozen=True)
class Beside:
    """The ratio of a figure's median to the recorded one, with the reach of both's measurements."""

    ratio: float | None
    low: float | None
    high: float | None


def against(
    figures: Sequence[Figure], recorded: Mapping[str, Any], *, busy: bool = False
) -> Iterator[tuple[Figure, Beside, str]]:
    """Yield each figure that was recorded as well, how it compares, and the word for it.

    The ratio is today's to the recorded one. What differs by less than unchanged runs did, or where
    not all measurements agree, is ``inconclusive``, and so is what the clock says where others
    worked on the machine: ``busy`` today, or when the other run was recorded.
    """
    busy = busy or is_busy(recorded)
    before = {_key(entry): entry["values"] for entry in recorded["figures"]}
    shift = math.exp(BUSY_SHIFT if busy else SHIFT)
    for one in figures:
        then = before.get((one.section, one.subject, one.quantity, one.unit))
        if then is None:
            continue
        told = Beside(None, None, None)
        if min(len(then), len(one.values)) >= _FEWEST and min(*then, *one.values) > 0:
            ratio = statistics.median(one.values) / statistics.median(then)
            told = Beside(ratio, min(one.values) / max(then), max(one.values) / min(then))
        word = _word(one, told, shift)
        if busy and is_wall_time(one.quantity, one.unit):
            word = "inconclusive: others worked meanwhile"
        yield one, told, word


def _word(one: Figure, told: Beside, shift: float) -> str:
    if told.ratio is None or told.low is None or told.high is None:
        return "inconclusive"
    more = told.ratio > shift and told.low > 1.0
    less = told.ratio < 1 / shift and told.high < 1.0
    if more or less:
        return "worse" if more != (one.unit in _HIGHER) else "better"
    return "inconclusive"


def is_wall_time(quantity: str, unit: str) -> bool:
    """Return whether a figure is by the clock, which runs while others have the processor."""
    return unit == "s" and not quantity.startswith("processor time")


def is_busy(run: Mapping[str, Any]) -> bool:
    """Return whether others used more than a quarter of a core while a run was measured."""
    return bool(run["others_cores"] > _OTHERS_CORES)


def commit_of(run: Mapping[str, Any]) -> str:
    """Return the commit that a run was recorded of, its version where that names none."""
    found = re.search(r"\+g([0-9a-f]+)", run["version"])
    return f"commit {found[1]}" if found else str(run["version"])


def table_against(figures: Sequence[Figure], recorded: Mapping[str, Any], *, busy: bool) -> Table:
    """Return the figures beside those of the recorded run."""
    drawn = Table(
        title=f"Beside {commit_of(recorded)}, recorded {recorded['started']}",
        title_justify="left",
        box=box.SIMPLE,
        show_edge=False,
    )
    for name in ("", "", "now", "ratio to then", "interval", ""):
        drawn.add_column(name, justify="right" if name else "left", overflow="fold")
    for one, told, word in against(figures, recorded, busy=busy):
        ratio = "" if told.ratio is None else f"{told.ratio:.2f}"
        ends = interval(told.low, told.high, ".2f")
        now = f"{cell(one).splitlines()[0]} {one.unit}"
        drawn.add_row(one.subject, one.quantity, now, ratio, ends, word)
    return drawn


def with_table(page: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a page with its table of what recorded runs cost, a column for each machine.

    Wall times of a busy machine are left out: they say nothing of the suite.
    """
    entries = {_key(entry): entry for run in runs for entry in run["figures"]}
    machines = [
        f"{run['processor']}, {run['cores']} cores, {commit_of(run)}, {run['started'][:10]}, "
        f"{'others at work' if is_busy(run) else 'quiet'}"
        for run in runs
    ]
    lines = [f"| what | aim | {' | '.join(machines)} |", "|---|---|" + "---|" * len(machines)]
    for key, entry in entries.items():
        if any(cells := [_cell(run, key) for run in runs]):
            name = f"{entry['subject']}: {entry['quantity']}".replace("|", "/")
            lines.append(f"| {name} | {entry['aim']} | {' | '.join(cells)} |")
    before, _, rest = page.partition(_TABLE[0])
    _, _, after = rest.partition(_TABLE[1])
    return f"{before}{_TABLE[0]}{chr(10).join(lines)}\n{_TABLE[1]}{after}"


def _cell(run: Mapping[str, Any], key: Key) -> str:
    entry = next((one for one in run["figures"] if _key(one) == key), None)
    if entry is None or (is_busy(run) and is_wall_time(entry["quantity"], entry["unit"])):
        return ""
    missed = f", {entry['verdict']}" if entry["verdict"] not in ("", "met") else ""
    return f"{entry['value']:.3g} {entry['unit']}{missed}"
