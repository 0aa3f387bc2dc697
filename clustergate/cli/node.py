"""``clustergate node``: is this node as it was, and as its kind is?"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from clustergate.cli.passing_on import option
from clustergate.core import store
from clustergate.core.files.whole import write_whole
from clustergate.core.model import BadRequest
from clustergate.core.quantities import parse_duration
from clustergate.core.reasons import reason_as_json
from clustergate.core.words import OPTION_NOT_POSITIVE
from clustergate.judge.history.listing import stored_run
from clustergate.report import node_states
from clustergate.report.export import openmetrics
from clustergate.run.node import SOUND, UNKNOWN, WORDS, NodeVerdict, judge_here, sentence

DESCRIPTION = """\
Say in a line whether this node is sound: its state (processor, memory, links, mounts, clocks,
drivers) and its raw kernels (FMA peak, memory bandwidth), beside its last good run and the nodes of
its kind there. It is what `clustergate screen` has each node say and measure. It writes nothing
but a --textfile, starts no job and asks no scheduler; where users' jobs run it reads the state
alone. Exit status 0: sound; 1: a fault; 2: it cannot be said. docs/node.md puts it into Slurm's
hooks."""

JUDGES = True


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "--state", "read the state alone, and run no kernels")
    option(
        parser,
        "--hook",
        "for a health check, prolog or epilog: exit status 1 for a fault alone, else 0, also where "
        "nothing is known or an update explains the difference",
    )
    option(parser, "--budget TIME", "for all of it (default: 30s)", default="30s")
    option(parser, "--json", "print JSON")
    option(
        parser,
        "--textfile FILE",
        "write it for Prometheus, too: FILE.prom where node_exporter has its textfiles",
    )


def run(arguments: argparse.Namespace) -> int:
    """Look, print a line, and return whether this node is sound."""
    budget_s = parse_duration(arguments.budget)
    if not budget_s:
        raise BadRequest(OPTION_NOT_POSITIVE(options="--budget"))
    try:
        verdict = judge_here(budget_s, measure=not arguments.state)
    except Exception as error:
        # Whatever goes wrong here is no fault of the node, for which hooks would drain them all.
        if not arguments.hook:
            raise
        print(f"{os.uname().nodename}: {WORDS[UNKNOWN]}: {type(error).__name__}: {error}")
        return SOUND
    status = verdict.hook_status if arguments.hook else verdict.status
    if arguments.textfile:
        try:
            _write_textfile(Path(arguments.textfile), verdict)
        except Exception as error:
            if not arguments.hook:
                raise
            print(f"{arguments.textfile} is not written: {error}")
    if arguments.json:
        content = {
            "node": verdict.node,
            "verdict": WORDS[verdict.status].lower(),
            "exit_status": status,
            "run": verdict.run,
            "kind": verdict.kind,
            "values": dict(verdict.values),
            "reasons": [
                arguments.invocation.in_json(reason_as_json(one)) for one in verdict.reasons
            ],
        }
        print(json.dumps(content, indent=1))
        return status
    print(sentence(verdict, verdict.status))
    if verdict.status != SOUND and not arguments.hook:
        for remedy in dict.fromkeys(one.remedy for one in verdict.reasons if one.remedy):
            print(f"  next: {arguments.invocation.completed(remedy)}")
    return status


def _write_textfile(path: Path, verdict: NodeVerdict) -> None:
    """Write a verdict for node_exporter; raises OSError where that cannot be."""
    system = stored_run(store.run_folder(verdict.run)).system if verdict.run else ""
    state = node_states.asked(system, verdict, time.time())
    write_whole(path, openmetrics(node_states.gauges_of_nodes([state])))
