"""``python -m tools.bench``: measure, print tables, keep the measurements as JSON."""

from __future__ import annotations

import argparse
import datetime
import math
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console

from clustergate import version
from clustergate.cli.progress import Progress
from clustergate.core import store
from clustergate.core.model import ClustergateError
from clustergate.machine.fingerprint import processor_of, read_fingerprint, to_record
from clustergate.machine.node import node_record
from clustergate.report.console import width
from tools.bench import (
    answers,
    earlier,
    harness,
    listing,
    parsers,
    samples,
    scale,
    setting_up,
    sites,
    starting,
)
from tools.bench.spread import Figure, as_record, table
from tools.bench.workspace import Workspace, file_for, turns, used_by_others_s, workspace

SCHEMA = 1


def sections(
    room: Workspace, quick: bool, say: Callable[[str], None]
) -> dict[str, Iterator[Figure]]:
    """Return what is measured, by its name; quick, each takes the seconds it has here at most."""

    def rounds(most: int, quick_s: float) -> Iterator[int]:
        return turns(most, quick_s if quick else math.inf)

    return {
        starting.SECTION: starting.measure(room, rounds=rounds(11, 20), say=say),
        setting_up.SECTION: setting_up.measure(room, rounds=rounds(11, 10), say=say),
        harness.SECTION: harness.measure(
            room,
            rounds=9,
            seconds=50 if quick else math.inf,
            stacks=1 if quick else None,
            say=say,
        ),
        answers.SECTION: answers.measure(room, rounds=rounds(5, 60), say=say),
        parsers.SECTION: parsers.measure(
            room,
            large=parsers.LARGE_WHEN_QUICK if quick else parsers.LARGE,
            say=say,
        ),
        listing.SECTION: listing.measure(
            room, cases=300 if quick else 10000, rounds=rounds(9, 50), say=say
        ),
        scale.SECTION: scale.measure(room, rounds=rounds(9, 25), say=say),
        sites.SECTION: sites.measure(
            room, runs=100 if quick else sites.RUNS, rounds=rounds(5, 30), say=say
        ),
        samples.SECTION: samples.measure(room, samples=1_000_000, rounds=rounds(9, 40), say=say),
    }


def main() -> int:
    """Measure, print the tables, compare with the recorded commit, keep the JSON.

    Return 2 if something could not be measured.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench", description="What the suite itself costs."
    )
    parser.add_argument("--quick", action="store_true", help="less of everything, in five minutes")
    parser.add_argument(
        "--record", action="store_true", help="keep this run as that of this commit"
    )
    arguments = parser.parse_args()
    quick = arguments.quick
    started = datetime.datetime.now().astimezone()
    begun = time.monotonic()
    others_s = used_by_others_s()
    figures: list[Figure] = []
    failures: dict[str, str] = {}
    with workspace() as room:
        for name, measured in sections(room, quick, Progress()).items():
            try:
                for figure in measured:
                    figures.append(figure)
            except ClustergateError as error:
                failures[name] = str(error)
    console = Console(width=max(width(), 130), highlight=False, markup=False)
    for name in dict.fromkeys(figure.section for figure in figures):
        console.print(table(name, [figure for figure in figures if figure.section == name]))
        console.print()
    duration_s = time.monotonic() - begun
    path = file_for(started)
    node, machine = node_record(), read_fingerprint()
    run = {
        "schema": SCHEMA,
        "version": f"clustergate {version()}",
        "started": started.isoformat(timespec="seconds"),
        "duration_s": duration_s,
        "quick": quick,
        "processor": processor_of(machine) or "unknown processor",
        "cores": node["cores"],
        "others_cores": (used_by_others_s() - others_s) / duration_s,
        "figures": [as_record(figure) for figure in figures],
        "failures": failures,
    }
    store.write_json(path, {**run, "machine": to_record(machine)})
    kept = earlier.file_for(run["processor"], run["cores"])
    if arguments.record:
        store.write_json(kept, run)
        page = earlier.with_table(earlier.PAGE.read_text(encoding="utf-8"), earlier.recorded_runs())
        earlier.PAGE.write_text(page, encoding="utf-8")
    elif kept.is_file():
        console.print(earlier.table_against(figures, earlier.read(kept), busy=earlier.is_busy(run)))
    else:
        console.print(
            "Nothing is better or worse: no run of an earlier commit is recorded on "
            f"{run['processor']} with {run['cores']} cores. `make bench RECORD=1` on that commit "
            "records one.",
            soft_wrap=True,
        )
    for name, sentence in failures.items():
        console.print(f"{name}: not measured to its end: {sentence}", soft_wrap=True)
    console.print(
        "Medians; below them the interval that holds the median with 95 %, or the smallest and the "
        f"largest of fewer than six. The measurements and what each means: {path}",
        soft_wrap=True,
    )
    return 2 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
