"""``python -m tools.bench.measured FILE…``: write what the bench kept into the pages of the docs.

Each FILE is the JSON of a run of ``tools.bench.verdicts`` or ``tools.bench.screening``. A table
stands between two remarks that name it; what none of the files holds stays as it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clustergate.core.paths import checkout
from tools.bench import (
    aims,
    metal,
    metal_aims,
    realdata,
    screening,
    simulated_creeping,
    simulated_nodes,
)
from tools.bench.runs import FOUND, PASSED
from tools.bench.slowdowns import BENCHMARK, NOTHING, SIZE, STACK, Change
from tools.bench.verdicts import INTERMITTENT, OURS, Replayed, sheets_of

DOCS = checkout() / "docs"
# What the summary has of the changes.
_CHANGES = (
    NOTHING,
    *(Change(SIZE, by) for by in (1.10, 1.20)),
    Change(BENCHMARK, 1.20),
    Change(STACK, 1.20),
    *(Change(STACK, INTERMITTENT, k) for k in (10, 3)),
)
_BESIDE = ("median, 10 %", "Mann-Whitney", "t test")


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as a page holds it."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def put_between(page: str, name: str, text: str) -> str:
    """Return a page with a text between the remarks of a name; without them it stays as it is.

    Raises ValueError where the second is missing, as the rest of the page would be lost.
    """
    opening, closing = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, there, rest = page.partition(opening)
    if not there:
        return page
    return f"{before}{there}{text}\n{rest[rest.index(closing) :]}"


def summary(replays: Sequence[Replayed]) -> str:
    """Return what checks say of some changes, by modes and baselines, and beside it the field."""
    heads = ["slower"]
    for one in replays:
        heads += [f"{one.mode}, {one.baseline}: found", "passed"]
    last = replays[-1]
    heads += [f"{rule}, {last.mode}: found" for rule in _BESIDE]
    rows = []
    for change in _CHANGES:
        ours = [str(one.share(OURS, change, says)) for one in replays for says in (FOUND, PASSED)]
        field = [str(last.share(rule, change, FOUND)) for rule in _BESIDE]
        rows.append([str(change), *ours, *field])
    return markdown(heads, rows)


def texts(kept: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the name of each text that runs of the bench make, and the text."""
    replays = [Replayed.read(one) for run in kept for one in run.get("replay", ())]
    if replays:
        yield (
            "recordings",
            "\n".join(dict.fromkeys(r["recordings"] for r in kept if "recordings" in r)),
        )
        yield "summary", summary(replays)
        yield (
            "replay",
            "\n\n".join(
                f"{title}.\n\n{markdown(heads, rows)}"
                for one in replays
                for title, heads, rows in sheets_of(one)
            ),
        )
    for part in metal.PARTS:
        simulated = [one for run in kept if part in run for one in metal.read(run[part])]
        if not simulated:
            continue
        days = ", ".join(dict.fromkeys(run["started"][:10] for run in kept if run.get(part)))
        bases = len({one.basis for one in simulated})
        seeds = ", ".join(dict.fromkeys(str(run[part]["seed"]) for run in kept if run.get(part)))
        counted = f"Counted on {days}: seed {seeds}, {bases} baselines of each kind."
        sheets = [
            f"{title}:\n\n{markdown(metal.HEADS, rows)}" for title, rows in metal.tables(simulated)
        ]
        yield part, "\n\n".join([counted, *sheets])
        for of_aims, columns in metal_aims.HEADS.items():
            name = of_aims.__name__.removesuffix("_rows").replace("_", "-")
            yield f"{part}-{name}", markdown(columns, of_aims(simulated))
    if nodes := [one for run in kept for one in run.get("nodes", ())]:
        beside = [simulated_nodes.Counted(**one) for one in nodes]
        yield "nodes", markdown(simulated_nodes.HEADS, simulated_nodes.rows(beside))
    half_years = [one for run in kept for one in run.get("creeping", {}).get("told", ())]
    if half_years:
        read = [simulated_creeping.Told(**one) for one in half_years]
        yield "creeping", markdown(simulated_creeping.HEADS, simulated_creeping.rows(read))
    if told := [realdata.Told(**one) for run in kept for one in run.get("realdata", ())]:
        yield "realdata", markdown(realdata.HEADS, realdata.rows(told))
    answered = [aims.Answered.read(one) for run in kept for one in run.get("aims", ())]
    if answered:
        for name, made in aims.TABLES.items():
            heads, *others = made(answered)
            yield name, markdown(heads, others)
    if openings := [aims.Openings.read(one) for run in kept for one in run.get("openings", ())]:
        heads, *others = aims.rows_of_openings(openings)
        yield "openings", markdown(heads, others)
    screened = [screening.Found(**one) for run in kept for one in run.get("found", ())]
    if screened:
        names = dict.fromkeys(one.noise for one in screened if "replay" not in one.fault)
        yield "screened", markdown(screening.columns(list(names)), screening.rows(screened))


def main(arguments: Sequence[str]) -> int:
    """Write the pages."""
    kept = [json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments]
    made = dict(texts(kept))
    for path in sorted(DOCS.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        after = page
        for name, text in made.items():
            after = put_between(after, name, text)
        if after != page:
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(DOCS.parent))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
