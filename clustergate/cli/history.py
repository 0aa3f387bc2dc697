"""``clustergate history``: how figures went over the stored runs, and since when."""

from __future__ import annotations

import argparse
import fnmatch
import json

from clustergate import store
from clustergate.cli import selection
from clustergate.history import series
from clustergate.model import ClustergateError
from clustergate.report import terminal

DESCRIPTION = """\
Show how the figures of each stack went over the stored runs, and since which run they are
otherwise: by how much, on which nodes, and what else changed then. All sizes of a benchmark are one
trend, unless --figure names figures."""


class HistoryError(ClustergateError):
    """There is no history of what was named."""

    exit_status = 1


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "history",
        help="show trends over the stored runs, and since when figures are otherwise",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--figure", metavar="PATTERN", help="figures by their names, such as 'PingPong.*.8B.*'"
    )
    selection.add_options(parser)
    parser.add_argument("--all", action="store_true", help="also trends without a change")
    parser.add_argument("--json", action="store_true", help="print an object per trend")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print trends and changes; 0 also when there are some."""
    # SciPy takes longer to import than all other commands need.
    from clustergate.history import trends as history
    from clustergate.report import trends

    found = series.collect(selection.named_runs(arguments), wanted=selection.named_cases(arguments))
    pattern = arguments.figure
    if pattern:
        found = [one for one in found if fnmatch.fnmatchcase(one.name, pattern)]
    made = history.trends(found, by_figure=pattern is not None)
    if not made:
        raise HistoryError(folder=str(store.runs_folder()))
    if arguments.json:
        for trend in made:
            print(json.dumps(history.as_record(trend)))
        return 0
    shown = made if arguments.all or pattern else trends.worth_showing(made)
    if shown:
        print(trends.render(shown, width=terminal.width()), end="")
    if left := len(made) - len(shown):
        print(f"{left} more trends show no change (--all)")
    for line in trends.told_events(history.events(made)):
        print(line)
    return 0
