"""``clustergate expect``: first expectations and tolerances, from what a run reached."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from clustergate.benchmarks.registry import every_check
from clustergate.cli.passing_on import option
from clustergate.cli.selection import add_site, choose_site, named_run
from clustergate.core import store
from clustergate.core.model import BadRequest, CaseRecord
from clustergate.core.reasons import Words
from clustergate.core.words import BASELINE_NO_FIGURE
from clustergate.judge.history.stored_runs import in_order
from clustergate.judge.references import lookup as references
from clustergate.judge.references.expectations import EXPECT
from clustergate.judge.references.tolerances import TOLERANCES
from clustergate.sites import configs as sites

DESCRIPTION = """\
Write a first `expect:` and `tolerances:` into references/SYSTEM.yaml: the headline figures of the
newest stored run of the system, for a person to edit. The next check is judged by them. What the
file holds stays; of what it has already nothing is written. docs/expectations.md explains both."""


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "run_named RUN", "its id or number (default: the newest)", nargs="?")
    add_site(parser)
    option(parser, "--dry-run", "print it, write nothing")


NO_HEADLINE = Words(
    "expect.no-headline",
    "the run {run} has no headline figure of {system} that was measured undisturbed",
    remedy="measure with `clustergate check`, when nothing else runs on the nodes",
)
EXPECT_THERE = Words(
    "expect.there",
    "{path} has expectations and tolerances already, and nothing was written",
    remedy="edit them there, or remove one of the two and try again",
)


def run(arguments: argparse.Namespace) -> int:
    """Write what is not there yet, and print it; raises :class:`BadRequest` where nothing is."""
    from clustergate.judge.baselines.first import first_expectations, first_tolerances

    system = sites.load(choose_site(arguments.site, sys.stderr).path).name
    known = references.references_of(system)
    there = known.document.data or {}
    run_id, records = _newest(system, arguments.run_named)
    mode = next((str(one.conditions["mode"]) for one in records if one.samples), "")
    of_mode = [one for one in records if one.conditions.get("mode") == mode]
    parts = {
        EXPECT: first_expectations(of_mode, f"the run {run_id} in mode {mode}"),
        TOLERANCES: first_tolerances(),
    }
    if not parts[EXPECT]:
        raise BadRequest(NO_HEADLINE(run=run_id, system=system))
    new = {name: text for name, text in parts.items() if name not in there}
    if not new:
        raise BadRequest(EXPECT_THERE(path=known.source))
    before = known.source.read_text(encoding="utf-8") if known.source.exists() else ""
    after = "\n".join(filter(None, [before, *new.values()]))
    references.parse_references(after, known.source, every_check())
    print("\n".join(new.values()), end="")
    if kept := [name for name in parts if name in there]:
        print(f"{known.source} has {kept[0]} already, which stays as it is", file=sys.stderr)
    if not arguments.dry_run:
        store.write_text(known.source, after)
        print(f"written to {known.source}: edit it before you rely on it", file=sys.stderr)
    return 0


def _newest(system: str, name: str | None) -> tuple[str, Sequence[CaseRecord]]:
    """Return a run by its name, else the newest that has figures of the system."""
    runs = [named_run(name)] if name else [folder.name for _, folder in in_order("cases")][::-1]
    for run_id in runs:
        records = [
            one
            for one in store.read_cases(run_id)
            if one.samples and one.partition.partition(":")[0] == system
        ]
        if records:
            return run_id, records
    raise BadRequest(BASELINE_NO_FIGURE(system=system, folder=store.runs_folder()))
