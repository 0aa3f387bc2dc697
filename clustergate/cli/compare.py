"""``clustergate compare``: is B as fast as A, by their samples."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustergate.benchmarks.formats import parse
from clustergate.benchmarks.registry import every_metric
from clustergate.cli.passing_on import option
from clustergate.cli.selection import named_run, recent
from clustergate.cli.suite_options import add_suite, past_named
from clustergate.core import store
from clustergate.core.model import BadRequest, Better, CaseRecord, OutputError
from clustergate.core.notation import counted, listed
from clustergate.core.outputs import OUTPUT_UNREADABLE_HERE
from clustergate.core.reasons import Words
from clustergate.core.words import COMPARE_ITSELF, OPTION_RANGE
from clustergate.judge.history.listing import kind_of
from clustergate.judge.history.packages import is_package, open_package
from clustergate.judge.history.stored_runs import RECENT, in_order, trial_note
from clustergate.judge.nodes import FEWEST_NODES
from clustergate.report import console
from clustergate.stats.one_thread import one_thread
from clustergate.studies.ab import by_node, comparisons, sample_sets
from clustergate.studies.ab.comparisons import METRIC
from clustergate.suites.places import place_of
from clustergate.suites.settings import BETTER_FORM

if TYPE_CHECKING:
    import polars as pl

    from clustergate.judge.two_runs import TwoRuns


DESCRIPTION = """\
Compare two sets of samples, metric by metric, under equal conditions: ratio B/A with an interval,
and "A better", "B better", "equivalent" or "inconclusive". A and B are CSV files (columns metric
and value, any others are conditions; rows in the order of launching), what `clustergate parse`
writes of outputs in any of its formats, or stored runs: their ids,
the UUIDs of ReFrame's sessions, "last", or "previous", the one before it that the same command
made; RUN:STACK for one stack of a run.
The table shows what differs; --all shows the rest. docs/comparing.md explains the verdicts.
With --by node, compare the nodes with each other: A, B and more are outputs of benchmarks, one of
each node or several, with its name in theirs."""


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "a A", "a file of samples, or a stored run")
    option(parser, "b B", "what to compare with A")
    option(parser, "more FILE", "with --by: further outputs", nargs="*")
    option(parser, "--by", "compare nodes with their median, by outputs", choices=("node",))
    option(
        parser,
        "--better WAY",
        "lower or higher, for metrics that clustergate does not know; of suites NAME=lower "
        "(repeatable)",
        action="append",
        default=[],
        dest="better_ways",
    )
    option(parser, "--margin PERCENT", "equivalence margin; default: 5", type=float, default=5.0)
    option(parser, "--ignore COLUMN,…", "columns of a file that are not conditions", default="")
    option(parser, "--all", "also figures of which none is better")
    add_suite(parser, two=True)
    form = parser.add_mutually_exclusive_group()
    option(form, "--json", "an object per metric and conditions")
    option(form, "--csv", "a row per metric and conditions")


COMPARE_TWO = Words(
    "compare.two",
    "compare takes two sets, and {more:and} is beyond them",
    remedy="`clustergate compare --by node FILE…` compares the nodes of several outputs",
)
COMPARE_FILES = Words(
    "compare.files",
    "files state neither day nor node, so the largest usual variation of machines is assumed",
    remedy="`clustergate ab` alternates launches of both, and finds 10 %",
)
COMPARE_COPIES = Words(
    "compare.copies",
    "A and B hold the same values in the same order",
    cause="one is a copy of the other, so that equal figures show nothing",
    remedy="see where both come from",
)


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison; 0 whatever it says."""
    # SciPy keeps the number of threads with which it is loaded.
    _family_error()
    if not 0.0 < arguments.margin < 100.0:
        facts = {"option": "--margin", "value": arguments.margin, "unit": "%"}
        raise BadRequest(OPTION_RANGE(low=0, high=100, **facts))
    if arguments.by:
        return _nodes([arguments.a, arguments.b, *arguments.more], arguments.margin / 100)
    if arguments.more:
        raise BadRequest(COMPARE_TWO(more=arguments.more))
    if arguments.reframe:
        return _sessions(arguments)
    ignored = [name for name in arguments.ignore.split(",") if name]
    better = next(iter(arguments.better_ways), None)
    if better not in (None, Better.LOWER.value, Better.HIGHER.value):
        raise BadRequest(BETTER_FORM(text=better))
    names = [_named(name) for name in (arguments.a, arguments.b)]
    if len({*map(os.path.realpath, names)}) < 2:
        raise BadRequest(COMPARE_ITSELF(name=names[0]))
    held = [_held(name) for name in names]
    a, b = (_samples(name, one, ignored) for name, one in zip(names, held, strict=True))
    copied = [str(COMPARE_COPIES())] if sample_sets.are_copies(a, b) else []
    keys, both = sample_sets.compare_sets(a, b, arguments.margin / 100, better)
    records = _plain(keys, both)
    otherwise = copied + [str(why) for why in comparisons.other_methods(keys)]
    runs = [one[1] for one in held if one]
    if len(runs) == len(names):
        otherwise += map(str, comparisons.other_processors(*runs) or comparisons.other_nodes(*runs))
    for name in (name for name in names if not Path(name).is_file()):
        otherwise += trial_note(store.run_folder(name.partition(":")[0]))
    if not runs:
        otherwise += comparisons.suspect_columns(records)
        otherwise.append(str(COMPARE_FILES()))
    return _told(arguments, names, records, both, otherwise)


def _sessions(arguments: argparse.Namespace) -> int:
    """Print the comparison of two sessions of a suite; 0 whatever it says."""
    past = past_named(arguments, {arguments.a, arguments.b})
    newest = past.runs[::-1]
    ids = [one.run_id for one in newest]
    chosen = [newest[place_of(one, ids, arguments.reframe)] for one in (arguments.a, arguments.b)]
    names = [one.run_id for one in chosen]
    if len({*names}) < 2:
        raise BadRequest(COMPARE_ITSELF(name=names[0]))
    a, b = (sample_sets.of_records(one.run_id, one.records) for one in chosen)
    keys, both = sample_sets.compare_sets(
        a,
        b,
        arguments.margin / 100,
        suite=[one.records for one in chosen],
        exclusive=past.exclusive,
    )
    return _told(arguments, names, _plain(keys, both), both, [])


def _plain(keys: Sequence[Mapping[str, str]], both: TwoRuns) -> list[dict[str, Any]]:
    metrics = [key[METRIC] for key in keys]
    of = [{name: value for name, value in key.items() if name != METRIC} for key in keys]
    return list(map(comparisons.record_of, metrics, of, both.comparisons))


def _told(
    arguments: argparse.Namespace,
    names: Sequence[str],
    records: Sequence[Mapping[str, Any]],
    both: TwoRuns,
    otherwise: Sequence[str],
) -> int:
    """Print what a comparison says in the form that is asked for."""
    if arguments.json or arguments.csv:
        notes = map(arguments.invocation.completed, otherwise)
        print("".join(f"{line}\n" for line in notes), end="", file=sys.stderr)
    if arguments.json:
        plain = arguments.invocation.in_json(records)
        sys.stdout.write("".join(json.dumps(record) + "\n" for record in plain))
    elif arguments.csv:
        print(comparisons.as_csv(records), end="")
    else:
        shown = records if arguments.all else comparisons.decided_records(records)
        console.print_lines([comparisons.count_verdicts([one["verdict"] for one in records])])
        lines = [*comparisons.why_nothing_common(records), *otherwise]
        console.print_lines(lines, arguments.invocation)
        console.print_lines([one.sentence for one in both.moved], arguments.invocation)
        for case, table in comparisons.tables_of(shown):
            console.print_lines([case])
            console.print_table(table)
            print()
        console.print_lines(comparisons.remarks(shown), arguments.invocation)
        console.print_lines([] if arguments.all else comparisons.undecided_lines(records))
        console.print_lines(
            [
                f"A: {names[0]}; B: {names[1]}",
                "ratio: B/A, of the best launches; covers: how surely the interval holds it; "
                f"equivalent: within {arguments.margin:g} %; probability of any false better: at "
                f"most {100 * _family_error():g} %",
            ]
        )
    return 0


def _family_error() -> float:
    with one_thread():
        from clustergate.stats.comparison import FAMILY_ERROR
    return FAMILY_ERROR


FEW_NODES = Words(
    "compare.few-nodes",
    "these file names contain {nodes} node names, and a comparison needs {fewest}",
    cause="a node name is letters with a number, such as n017, in a file's name or folder",
    remedy="name the outputs of each node after it, such as hpl-n017.out",
)


def _nodes(paths: Sequence[str], tolerance: float) -> int:
    """Print which nodes are slower than most, by outputs of each; 0 whatever they say."""
    node_of = by_node.nodes_in(paths)
    if len({*node_of.values()}) < FEWEST_NODES:
        few = {"nodes": len({*node_of.values()}), "fewest": FEWEST_NODES}
        raise BadRequest(FEW_NODES(**few))
    metrics = every_metric()
    measured = []
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                rows = [*parse(file, source=path)]
        except OSError as error:
            raise OutputError(OUTPUT_UNREADABLE_HERE(why=error), source=path) from None
        for row in rows:
            same = " ".join(f"{k}={v}" for k, v in sorted(row.conditions.items()))
            for metric, value in row.values.items():
                better = metrics[metric].better if metric in metrics else Better.NEITHER
                if better is not Better.NEITHER and value > 0:
                    key = row.benchmark, metric, same
                    measured.append(by_node.Measured(node_of[path], key, value, better))
    standing_out, figures, nodes = by_node.apart(measured, tolerance)
    compared = f"{counted(figures, 'figure')} of {counted(nodes, 'node')}"
    if not standing_out:
        console.print_lines([f"no node stands out: {compared}, {counted(len(paths), 'output')}"])
        return 0
    rows_to_print = [
        (
            one.node,
            " ".join(filter(None, one.key)),
            ", ".join(f"{100 * by:+.1f} %" for by in one.slower_by),
            f"{100 * one.bound:.1f} %",
            f"the slowest of {one.nodes} each time" if one.always_last else "",
        )
        for one in standing_out
    ]
    columns = ["node", "figure", "slower than the median", "beyond", ""]
    console.print_table(console.table(columns, rows_to_print, (2, 3)))
    by_count = Counter(one.node for one in standing_out).most_common()
    verb = "stands" if len(by_count) == 1 else "stand"
    named = listed([f"{node} in {count}" for node, count in by_count])
    outputs = counted(len(paths), "output")
    console.print_lines([
        f"{counted(len(by_count), 'node')} {verb} out: {named} of {compared}, {outputs}"
    ])  # fmt: skip
    return 0


NO_PREVIOUS = Words(
    "compare.no-previous",
    "no run before {last} was made by `clustergate {kind}` in {folder}",
    cause="`previous` is the one before the last of the same command",
    remedy="`clustergate list runs` lists them: name two of one kind",
)


def _named(name: str) -> str:
    """Return a file, or a run's id with the stack that is named behind it.

    The previous run is one of the command that made the last.
    """
    if Path(name).is_file():
        return name
    run, colon, stack = name.partition(":")
    if run == "previous":
        last = recent("last", "cases")
        kind = kind_of(last)
        of_kind = [f for _, f in in_order("cases", trials=True) if kind_of(f) == kind]
        if len(of_kind) < RECENT[run]:
            facts = {"last": last.name, "kind": kind or "check"}
            raise BadRequest(NO_PREVIOUS(folder=store.runs_folder(), **facts))
        return f"{of_kind[-RECENT[run]].name}{colon}{stack}"
    return f"{named_run(run)}{colon}{stack}"


def _held(name: str) -> tuple[str, list[CaseRecord]] | None:
    """Return the id and the cases of a run or of a package, None of a file of samples."""
    if not Path(name).is_file():
        run = name.partition(":")[0]
        return run, store.read_cases(run)
    if not is_package(name):
        return None
    package = open_package(Path(name))
    return package.run, package.records(name)


def _samples(
    name: str, held: tuple[str, list[CaseRecord]] | None, ignored: Sequence[str]
) -> pl.DataFrame:
    if held is None:
        return sample_sets.from_csv(name, ignored)
    stack = "" if Path(name).is_file() else name.partition(":")[2]
    return sample_sets.of_records(*held, stack)
