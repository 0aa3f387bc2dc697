"""``clustergate list``: the runs, stacks, systems, modes and checks that there are."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clustergate.cli.passing_on import option
from clustergate.cli.selection import choose_site
from clustergate.core.notation import counted
from clustergate.judge.history.listing import listed_runs
from clustergate.judge.history.stored_runs import doubted_runs, left_out
from clustergate.report import console

Rows = Sequence[Mapping[str, Any]]
_MB = 1e6

DESCRIPTION = "List what there is; `clustergate show RUN` has the details of a run."


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "what", "what to list", choices=[*_LISTS])
    option(parser, "--site NAME", "of stacks and checks: of this site config")
    option(parser, "--all", "of systems: those used by name alone, too, as --json does")
    option(parser, "--json", "print a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print a table, or JSON."""
    rows = arguments.invocation.in_json(_LISTS[arguments.what](arguments))
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    if not rows:
        print(f"there are no {arguments.what} here yet")
        return 0
    more = ""
    if arguments.what == "systems" and not arguments.all:
        rows, more = _own(rows)
    cells = [[*map(_cell, row.items())] for row in rows]
    numbers = [k for k, value in enumerate(rows[0].values()) if type(value) in (int, float)]
    console.print_table(console.table([*map(_title, rows[0])], cells, numbers))
    if arguments.what == "runs":
        for line in left_out(doubted_runs().values()):
            print(arguments.invocation.completed(line), file=sys.stderr)
    print(more, end="")
    return 0


def _own(rows: Rows) -> tuple[Rows, str]:
    """Return the systems that are not used by name alone, and a line that counts the others."""
    from clustergate.sites.choice import is_by_name_alone, site_files

    by_name = {path.stem for path in site_files() if is_by_name_alone(path)}
    own = [row for row in rows if row["this_machine"] or row["system"] not in by_name]
    others = len(rows) - len(own)
    more = f"left out: {others} that are used by name alone (--all)\n"
    return own or rows, more if own and others else ""


def _title(name: str) -> str:
    return name.replace("size_bytes", "MB").replace("_", " ")


def _cell(of: tuple[str, Any]) -> str:
    name, value = of
    if name == "size_bytes":
        return f"{value / _MB:.1f}"
    if isinstance(value, bool):
        return "yes" if value else ""
    return ", ".join(value) if isinstance(value, list) else str(value)


def _runs(arguments: argparse.Namespace) -> Rows:
    rows = [one.plain() for one in listed_runs()]
    if not arguments.json:
        # Its name tells when a run started; a column of trials is for who has some.
        left = {"started"} | ({"trial"} if not any(row["trial"] for row in rows) else set())
        rows = [{key: row[key] for key in row if key not in left} for row in rows]
    return rows


def _stacks(arguments: argparse.Namespace) -> Rows:
    from clustergate.core.paths import state_dir
    from clustergate.sites import configs
    from clustergate.stacks.golden import builds
    from clustergate.stacks.manifest import ManifestError, read_manifest

    state = state_dir()
    pinned = builds.pinned_stacks(state)
    rows = []
    for stack in configs.load(choose_site(arguments.site, sys.stderr).path).stacks:
        try:
            manifest = read_manifest(state, stack.name)
            here = manifest.unavailable or f"{manifest.mpi_name} {manifest.mpi_version}"
        except ManifestError:
            here = "not set up"
        golden = builds.read(state, stack.name) if stack.name in pinned else None
        build = f"{golden.pinned[:10]} by {golden.by}" if golden else ""
        row = {"stack": stack.name, "provider": stack.request.provider}
        rows.append({**row, "here": here, "golden_build": build})
    return rows


def _systems(arguments: argparse.Namespace) -> Rows:
    from clustergate.core.model import ClustergateError
    from clustergate.judge.references.lookup import references_of
    from clustergate.sites import choice, configs

    try:
        here = choice.choose(arguments.site).path
    except ClustergateError:
        here = None
    rows = []
    for path in choice.site_files():
        try:
            site = configs.load(path)
            known = references_of(site.name)
            expected = counted(len(known.expects), "expectation") if known.expects else ""
            baseline = known.blessed or expected
            row = {"partitions": [one.name for one in site.partitions], "baseline": baseline}
        except ClustergateError as error:
            row = {"partitions": [], "baseline": str(error)}
        rows.append({"system": path.stem, "this_machine": path == here, **row})
    # Those of published evaluations are many.
    return sorted(rows, key=lambda row: not row["this_machine"])


def _modes(arguments: argparse.Namespace) -> Rows:
    from clustergate.sites.modes import every_mode

    return [
        {"mode": one.name, "purpose": one.purpose, "duration": one.duration, "nodes": one.nodes}
        for one in every_mode().values()
    ]


def _checks(arguments: argparse.Namespace) -> Rows:
    from clustergate.benchmarks.registry import every_check
    from clustergate.core.model import ClustergateError
    from clustergate.sites import choice, configs
    from clustergate.sites.modes import every_mode, mode_named

    try:
        chosen = configs.load(choice.choose(arguments.site).path).checks
    except ClustergateError:
        chosen = {}
    modes = [mode_named(name, chosen) for name in every_mode()]
    return [
        {
            "check": one.name,
            "measures": one.description,
            "modes": [mode.name for mode in modes if one.name in mode.checks],
        }
        for one in every_check().values()
    ]


_LISTS: Mapping[str, Callable[[argparse.Namespace], Rows]] = {
    "runs": _runs,
    "stacks": _stacks,
    "systems": _systems,
    "modes": _modes,
    "checks": _checks,
}
