"""``python -m tools.bench``: measure, print tables, keep the measurements as JSON."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console

from clustergate import store
from clustergate.cli.progress import Progress
from clustergate.machine.fingerprint import read_fingerprint, to_record
from clustergate.model import ClustergateError
from clustergate.paths import state_dir
from clustergate.report.console import width
from tools.bench import harness, listing, parsers, samples, starting
from tools.bench.spread import Figure, as_record, table
from tools.bench.workspace import Workspace, workspace

SCHEMA = 1


def sections(
    room: Workspace, quick: bool, say: Callable[[str], None]
) -> dict[str, Iterator[Figure]]:
    """Return what is measured, by its name."""
    return {
        starting.SECTION: starting.measure(room, rounds=6 if quick else 11, say=say),
        harness.SECTION: harness.measure(
            room, rounds=2 if quick else 5, stacks=1 if quick else None, say=say
        ),
        parsers.SECTION: parsers.measure(
            room,
            rounds=5 if quick else 11,
            large=parsers.LARGE_WHEN_QUICK if quick else parsers.LARGE,
            say=say,
        ),
        listing.SECTION: listing.measure(
            room, cases=1000 if quick else 10000, rounds=2 if quick else 3, say=say
        ),
        samples.SECTION: samples.measure(
            room, samples=1_000_000, rounds=2 if quick else 5, say=say
        ),
    }


def main() -> int:
    """Measure, print the tables, keep the JSON; 2 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench", description="What the suite itself costs."
    )
    parser.add_argument("--quick", action="store_true", help="less of everything, in two minutes")
    quick = parser.parse_args().quick
    started = datetime.datetime.now().astimezone()
    begun = time.monotonic()
    load = os.getloadavg()
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
    path = state_dir() / "bench" / f"{started:%Y%m%dT%H%M%S}.json"
    store.write_json(
        path,
        {
            "schema": SCHEMA,
            "started": started.isoformat(timespec="seconds"),
            "duration_s": time.monotonic() - begun,
            "quick": quick,
            "load_before": load,
            "load_after": os.getloadavg(),
            "figures": [as_record(figure) for figure in figures],
            "failures": failures,
            "machine": to_record(read_fingerprint()),
        },
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
