"""``clustergate history``: trends over the stored runs, and when figures changed."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys

from clustergate.cli import selection
from clustergate.cli.passing_on import option
from clustergate.cli.streams import print_coloured
from clustergate.cli.suite_options import add_suite, past_named
from clustergate.core import store
from clustergate.core.model import BadRequest
from clustergate.core.notation import counted
from clustergate.core.reasons import Words
from clustergate.judge.history import series
from clustergate.judge.history.stored_runs import left_out
from clustergate.judge.sharing import exclusive_partitions
from clustergate.report import console
from clustergate.sites import choice, configs

DESCRIPTION = """\
Show the trend of each stack's figures over the stored runs, and since which run they have changed:
by how much, on which nodes, and what else changed then. All sizes of a benchmark are one trend,
unless --figure names figures. Each run is judged by those before it: what is slower in three in a
row is a regression."""


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "--figure PATTERN", "figures by their names, such as 'PingPong.*.8B.*'")
    option(parser, "--site NAME", "only runs of the system of this site config (default: of all)")
    selection.add_options(parser)
    add_suite(parser)
    option(parser, "--all", "also trends without a change")
    option(parser, "--json", "print an object per trend")


NONE_SELECTED = Words(
    "run.none-selected",
    "no stored run has a figure of this selection",
    cause="the runs are in {folder}",
    remedy="`clustergate list checks` and `list stacks` tell the names, --figure takes patterns",
)


NO_TREND = Words(
    "suite.no-trend",
    "no session in {path} has a figure of this selection",
    remedy="--figure takes patterns, such as 'stream.*'",
)


def run(arguments: argparse.Namespace) -> int:
    """Print trends and changes; 0 even if there are changes."""
    # SciPy takes longer to import than all other commands need.
    from clustergate.judge.history import judged
    from clustergate.judge.history import trends as history
    from clustergate.report import terminal, trends

    suite = past_named(arguments, {arguments.session}) if arguments.reframe else None
    runs = [*(suite.runs if suite else selection.named_runs(arguments))]
    wanted = selection.named_cases(arguments)
    for line in left_out(run.doubt for run in runs if not suite):
        print(arguments.invocation.completed(line), file=sys.stderr)
    pattern = arguments.figure
    system = configs.load(choice.find(arguments.site)).name if arguments.site else "*"
    every = [
        one
        for one in series.collect(runs, wanted=wanted)
        if fnmatch.fnmatchcase(one.case.partition, f"{system}:*")
    ]
    figures = [one for one in every if fnmatch.fnmatchcase(one.name, pattern or "*")]
    found_trends = history.trends(figures, by_figure=pattern is not None)
    if not found_trends and suite:
        raise BadRequest(NO_TREND(path=arguments.reframe))
    if not found_trends:
        selection.require_run()
        raise BadRequest(NONE_SELECTED(folder=store.runs_folder()))
    if arguments.json:
        for trend in found_trends:
            print(json.dumps(arguments.invocation.in_json(history.as_record(trend))))
        return 0
    everything = arguments.all or pattern
    # What was measured once has no trend.
    several = [trend for trend in found_trends if everything or len(trend.moments) > 1]
    shown = several if everything else trends.worth_showing(several)
    once, left = len(found_trends) - len(several), len(several) - len(shown)
    out = [f"{counted(once, 'trend')} of a single run left out (--all)"] * bool(once)
    out += [f"{left} more {'trend shows' if left == 1 else 'trends show'} no change (--all)"] * (
        left > 0
    )
    # What is measured beside a figure tells of it as well.
    nodes = suite.nodes if suite else configs.nodes_of(one.case.partition for one in every)
    exclusive = exclusive_partitions((one for run in runs for one in run.records), nodes)
    reasons = judged.told_of(
        judged.judged_runs(every, exclusive),
        lambda name: fnmatch.fnmatchcase(name, pattern or "*"),
    )
    happened = history.events(found_trends)
    on_terminal = sys.stdout.isatty()
    screen = terminal.render_first(
        trends.head(found_trends),
        trends.first_screen(found_trends, reasons, out),
        trends.table(shown),
        rest="(--all)",
        below=trends.event_sentences(happened) if everything and happened else (),
        whole=bool(everything),
        width=console.width(),
        wraps=on_terminal,
        colour=on_terminal,
        invocation=arguments.invocation,
    )
    print_coloured(screen)
    return 0
