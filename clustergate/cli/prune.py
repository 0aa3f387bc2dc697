"""``clustergate prune``: remove old runs, and never what something rests on."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Iterator, Sequence

from clustergate.cli.passing_on import option
from clustergate.cli.selection import moment
from clustergate.core import store
from clustergate.core.model import BadRequest
from clustergate.core.notation import counted
from clustergate.core.paths import site_folder, state_dir
from clustergate.core.reasons import Words
from clustergate.core.words import OPTION_NEGATIVE
from clustergate.judge.history import listing
from clustergate.judge.history.listing import Kept, StoredRun

DESCRIPTION = """\
Show which runs can be removed, what stays and why, and how much space each part takes; --yes
removes them. Golden builds, runs from the days of a baseline, the last gate that opened and the
newest runs of each system and mode stay, however old. Stacks, caches and folders that are no runs
are not touched."""
_NEWEST, _MB = 10, 1e6
# What is shared with other folders is told from so many bytes on.
_SHARED = 1e5


def add_options(parser: argparse.ArgumentParser) -> None:
    option(
        parser,
        "--older-than WHEN",
        "such as 30d, 12h or 2026-11-03; younger runs stay (default: %(default)s)",
        default="90d",
    )
    option(
        parser,
        "--keep N",
        "newest runs of each system and mode that stay (default: %(default)s)",
        type=int,
        default=_NEWEST,
    )
    option(parser, "--yes", "remove them")
    option(parser, "--json", "print a JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Remove what may go, or tell it; 2 where something could not be removed."""
    if arguments.keep < 0:
        raise BadRequest(OPTION_NEGATIVE(option="--keep", value=arguments.keep))
    listed = listing.listed_runs()
    # Somebody keeps something of his own there.
    runs = [one for one in listed if listing.is_of_the_suite(store.run_folder(one.run))]
    others = [one for one in listed if one not in runs]
    kept = listing.what_stays(
        runs,
        moment(arguments.older_than),
        arguments.keep,
        _days_of_baselines(),
        listing.runs_of_baselines(),
    )
    failed = 0
    if arguments.yes:
        gone = [one if one.why else _removed(one) for one in kept]
        failed = 2 if gone != kept else 0
        kept = gone
    if arguments.json:
        answer = arguments.invocation.in_json(_plain(kept, others, removed=arguments.yes))
        print(json.dumps(answer, indent=1))
    else:
        for line in _lines(kept, others, removed=arguments.yes):
            print(arguments.invocation.completed(line))
    return failed


NOT_REMOVED = Words("prune.not-removed", "could not be removed: {why}")


def _removed(one: Kept) -> Kept:
    try:
        listing.remove(one.run.run)
    except OSError as error:
        print(f"clustergate: {one.run.run} cannot be removed: {error}", file=sys.stderr)
        return Kept(one.run, NOT_REMOVED(why=str(error.strerror)))
    return one


def _days_of_baselines() -> dict[str, set[datetime.date]]:
    """Return on which days the runs of references were made, by system.

    Raises where references cannot be read: nothing is removed then.
    """
    from clustergate.judge.references.lookup import references_of
    from clustergate.sites.choice import site_files
    from clustergate.sites.configs import load

    systems = {load(path).name for path in site_files()}
    # Of a site config that was named by its path, or that went.
    systems |= {path.stem for path in (site_folder() / "references").glob("*.yaml")}
    return {system: references_of(system).days_measured() for system in sorted(systems)}


def _lines(kept: Sequence[Kept], others: Sequence[StoredRun], *, removed: bool) -> Iterator[str]:
    going = [one.run for one in kept if one.why is None]
    by_reason: dict[str, list[int]] = {}
    for one in kept:
        if one.why is not None:
            by_reason.setdefault(str(one.why), []).append(one.run.size_bytes)
    for run in going:
        trial = ", a trial" * run.trial
        yield (
            f"{'removed' if removed else 'may go'}: {run.run}{trial}, {run.size_bytes / _MB:.1f} MB"
        )
    for why, sizes in by_reason.items():
        yield f"kept: {counted(len(sizes), 'run')}, {sum(sizes) / _MB:.1f} MB: {why}"
    for other in others:
        folder = store.run_folder(other.run)
        yield f"not touched: {folder}, {other.size_bytes / _MB:.1f} MB: it is no run"
    for name, (size, freed) in listing.places():
        line = f"not touched: {state_dir() / name}, {size / _MB:.1f} MB"
        if size - freed >= _SHARED:
            line += f", of which {(size - freed) / _MB:.1f} MB are hard links to files elsewhere"
        yield line
    what = f"{counted(len(going), 'run')}, {sum(run.size_bytes for run in going) / _MB:.1f} MB"
    if removed:
        yield f"{what}: removed"
    elif going:
        yield f"{what} may go; `clustergate prune --yes` removes them"
    else:
        yield "no run may go yet"


def _plain(
    kept: Sequence[Kept], others: Sequence[StoredRun], *, removed: bool
) -> dict[str, object]:
    beside = {f"results/runs/{one.run}": one.size_bytes for one in others}
    return {
        "removed": removed,
        "runs": [{**one.run.plain(), "stays": one.why and str(one.why)} for one in kept],
        "not_touched_bytes": {name: size for name, (size, _) in listing.places()} | beside,
    }
