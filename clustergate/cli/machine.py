"""``clustergate machine``: the state of this node, and what changed between two runs."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from clustergate.cli.passing_on import option
from clustergate.cli.selection import RUN_NO_SUCH, abbreviated, near_runs, recent
from clustergate.core.commands import Invocation
from clustergate.core.files.whole import read_json
from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.reasons import Words
from clustergate.core.store import names_run, run_folder, runs_folder
from clustergate.core.words import COMPARE_ITSELF, FILE_UNREADABLE
from clustergate.judge.history.node_states import (
    HERE,
    NODE_STATE,
    cut_off,
    describe_changes,
    folded,
    read_states,
)
from clustergate.judge.history.stored_runs import RECENT
from clustergate.machine.changes import changes_of_nodes, label, shown
from clustergate.machine.fingerprint import (
    Fingerprint,
    Value,
    from_record,
    read_fingerprint,
    to_record,
)
from clustergate.machine.load import load_between, read_load

DESCRIPTION = """\
Print the state of this node: hardware, kernel, limits, network, software, and its current load.
What cannot be read is "absent". Nothing in it identifies the node or its users.
With --diff, print what changed from A to B on the nodes of both, the likeliest cause of a slowdown
first. A and B are runs (their ids or folders), "last" and "previous" for the newest run and the one
before it, "now" for this node, or files that --json wrote, which are compared with every node.
Exit status of --diff: 0: nothing changed; 1: something did; 2: it could not be compared."""

JUDGES = True
NOW = "now"
WIDTH = 100


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--diff", nargs=2, metavar=("A", "B"), help="what changed from A to B")
    option(parser, "--json", "print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the state of this node; or the differences, and 1 if there are some."""
    if arguments.diff is not None:
        before, after = arguments.diff
        return _print_differences(before, after, arguments.invocation, as_json=arguments.json)
    if arguments.json:
        print(json.dumps({**to_record(read_fingerprint()), "load": read_load()}, indent=1))
    else:
        fingerprint, load = read_fingerprint(), read_load()
        since_boot: dict[str, Value] = {**load_between(dict.fromkeys(load, 0), load)}
        print("\n".join(_lines({**fingerprint, "load since boot": since_boot})))
    return 0


NO_COMMON_NODE = Words(
    "machine.no-common-node",
    "no node is in both {before} and {after}",
    remedy="`clustergate fleet` compares nodes of one run with each other",
)


def _print_differences(before: str, after: str, invocation: Invocation, *, as_json: bool) -> int:
    """Print what changed on which nodes; the state of one node is compared with each of a run.

    Return 1 where something did, 2 where nothing did of what could be read.
    """
    places = [one if one == NOW else _locate(one)[1].resolve() for one in (before, after)]
    if places[0] == places[1]:
        raise BadRequest(COMPARE_ITSELF(name=before))
    sides = _named_states(before), _named_states(after)
    old, new = _beside(*sides), _beside(*reversed(sides))
    common = old.keys() & new.keys()
    for sentence in dict.fromkeys([*sides[0].missing, *sides[1].missing]):
        print(invocation.completed(sentence), file=sys.stderr)
    if common <= {HERE} and (not common or min(len(old), len(new)) > 1):
        raise ClustergateError(NO_COMMON_NODE(before=before, after=after))
    changes = changes_of_nodes(old, new)
    status = 1 if changes else 2 if sides[0].missing or sides[1].missing else 0
    if as_json:
        changed = [
            {**dataclasses.asdict(change), "nodes": [node for node in nodes if node != HERE]}
            for change, nodes in changes
        ]
        print(json.dumps(changed, indent=1))
        return status
    since, lines = sides[0].name, describe_changes(old, new)
    if len(lines) < 2:
        print(f"since {since}: {(lines or ['no recorded state of a node changed'])[0]}")
    else:
        print(f"since {since}, likeliest cause of a slowdown first:")
        print("\n".join(f"  {line}" for line in lines))
    unlike = (old.keys() ^ new.keys()) - {HERE}
    if unlike and all(side.alone is None for side in sides):
        print(f"not compared, as only one of both has them: {folded(sorted(unlike))}")
    return status


# --- input ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Named:
    """What the user named, and the states of its nodes; ``alone`` is one node's, whichever it is.

    ``node`` is its name where it is known, ``missing`` says which states cannot be read.
    """

    name: str
    states: Mapping[str, Fingerprint]
    alone: Fingerprint | None = None
    node: str = ""
    missing: Sequence[str] = ()


def _beside(one: _Named, other: _Named) -> Mapping[str, Fingerprint]:
    """Return states of one side by the nodes of the other that they are to be compared with."""
    if one.alone is None or (one.node and one.node not in other.states):
        return one.states
    nodes = [one.node] if one.node else [*other.states]
    return {**one.states, **dict.fromkeys(nodes, one.alone)}


def _named_states(named: str) -> _Named:
    if named == NOW:
        state = read_fingerprint()
        return _Named(named, {HERE: state}, state, os.uname().nodename)
    name, path = _locate(named)
    try:
        content = read_json(path)
    except ValueError:
        # Not JSON, or not even text.
        content = None
    except OSError as error:
        raise ClustergateError(FILE_UNREADABLE(path=path, why=error)) from None
    state = from_record(content, source=str(path))
    if path.name != NODE_STATE:
        return _Named(name, {HERE: state}, state)
    states, why = read_states(path.parent), cut_off(path.parent)
    missing = [str(why)] if why else []
    if len(states) > 1:
        return _Named(name, states, missing=missing)
    return _Named(name, {HERE: state}, state, missing=missing)


MACHINE_UNRECORDED = Words(
    "machine.unrecorded",
    "{folder} has no {file}",
    cause="this run did not record the state of its nodes",
)


def _locate(named: str) -> tuple[str, Path]:
    if named in RECENT:
        named = recent(named, NODE_STATE).name
    runs = [run_folder(abbreviated(named))] if names_run(named) else []
    for path in (Path(named), *runs):
        if os.path.isdir(path):
            if not os.path.exists(path / NODE_STATE):
                raise ClustergateError(MACHINE_UNRECORDED(folder=path, file=NODE_STATE))
            return named, path / NODE_STATE
        if os.path.exists(path):
            return named, path
    raise ClustergateError(RUN_NO_SUCH(name=named, near=near_runs(named), folder=runs_folder()))


# --- output -----------------------------------------------------------------------------------


def _lines(groups: Fingerprint) -> Iterator[str]:
    names = [label(f"{group}.{name}") for group, values in groups.items() for name in values]
    column = max(map(len, names)) + 4
    for group, values in groups.items():
        yield group
        for name, value in values.items():
            dotted = f"{group}.{name}"
            left = f"  {label(dotted)}".ljust(column)
            for text in _texts(dotted, value):
                yield textwrap.fill(
                    text,
                    WIDTH,
                    initial_indent=left,
                    subsequent_indent=" " * column,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
                left = " " * column


def _texts(name: str, value: Value) -> list[str]:
    # Sentences, such as those about mitigations, get a line of their own each.
    if isinstance(value, list) and any(" " in item for item in value):
        return value
    return [shown(name, value)]
