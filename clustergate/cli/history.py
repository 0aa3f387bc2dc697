"""``clustergate history``: how figures went over the stored runs, and since when."""

from __future__ import annotations

import argparse
import fnmatch
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clustergate import store
from clustergate.cli import selection
from clustergate.history import series
from clustergate.history.stored_runs import stored_runs
from clustergate.machine.changes import describe_one
from clustergate.model import CaseRecord, ClustergateError
from clustergate.report import terminal

if TYPE_CHECKING:
    from clustergate.history.trends import Event
    from clustergate.report.trends import History

DESCRIPTION = """\
Show how the figures of each stack went over the stored runs, and since which run they are
otherwise: by how much, on which nodes, and what else changed then. All sizes of a benchmark are one
trend, unless --figure names figures."""
_EVENTS_SHOWN = 12
# Of what changed on a node, the likeliest explanations come first.
_CAUSES_SHOWN = 2
_RUNS_IN_A_REPORT = 60


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
        raise HistoryError(
            f"no stored run has a figure of this selection; the runs are in {store.runs_folder()}"
        )
    if arguments.json:
        for trend in made:
            print(json.dumps(history.as_record(trend)))
        return 0
    shown = made if arguments.all or pattern else trends.worth_showing(made)
    if shown:
        print(trends.render(shown, width=terminal.width()), end="")
    if left := len(made) - len(shown):
        print(f"{left} more trends show no change (--all)")
    for line in told_events(history.events(made)):
        print(line)
    return 0


def history_of(system: str) -> History:
    """Return what the report of a run on a system shows of the runs so far, the newest of them."""
    from clustergate.history import trends as history
    from clustergate.report import trends

    def of_system(record: CaseRecord) -> bool:
        return record.partition.partition(":")[0] == system

    try:
        found = series.collect(stored_runs(newest=_RUNS_IN_A_REPORT), wanted=of_system)
    except store.StoreError as error:
        return trends.History(changes=(f"earlier runs are not shown: {error}",))
    made = [trend for trend in history.trends(found) if len(trend.moments) > 1]
    if not made:
        return trends.History()
    return trends.History(trends.worth_showing(made), told_events(history.events(made)))


def told_events(events: Sequence[Event]) -> list[str]:
    """Return what happened in sentences, the newest first, and how many more there are."""
    from clustergate.history.trends import sentence

    if not events:
        return ["no change over these runs, as far as their noise lets it be seen"]
    told = [sentence(event, what_changed) for event in events[:_EVENTS_SHOWN]]
    if left := len(events) - len(told):
        told.append(f"and {left} earlier changes (--since, --json)")
    return told


def what_changed(before: str, since: str) -> str:
    """Return what changed on the node between two runs, the likeliest explanations alone."""
    changed = selection.changed_between(before, since)
    return "; ".join(map(describe_one, changed[:_CAUSES_SHOWN]))
