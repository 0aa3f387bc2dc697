"""``clustergate ab``: A against B, launched in turn on the same nodes, in one job."""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clustergate import store
from clustergate.ab.contenders import SYNTAX, Named, parse_contender
from clustergate.benchmarks.descriptor import AbCheck
from clustergate.benchmarks.registry import every_benchmark
from clustergate.cli.selection import named_run, taken
from clustergate.cli.streams import coloured, progress
from clustergate.model import CaseRecord, ClustergateError
from clustergate.report import terminal
from clustergate.session.contest import Contest, measure_contest
from clustergate.wording.quantities import parse_duration

if TYPE_CHECKING:
    from clustergate.ab.results import Result

DESCRIPTION = f"""\
Compare two MPI stacks, two builds or two settings of one: both are launched in turn, in random
order in each round, on the same nodes in one job, each launch proven. Says of each benchmark,
message size and process count whether A or B is better, by how much and how surely, where the lead
changes, and what to do about it.

A and B are written as {SYNTAX}:
  --a mpich --b intel-mpi
  --a mpich --b mpich:UCX_TLS=self,sm
  --a intel-mpi:I_MPI_FABRICS=shm:ofi:I_MPI_ADJUST_ALLREDUCE=2 --b intel-mpi
  --a /elsewhere/.clustergate/manifests/mpich.json --b mpich
  --a golden:mpich --b mpich
Two BLAS are two stacks of the site config. The same name twice shows what chance does.

Exit status 0: compared, whatever was found; 1: what was asked for cannot be; 2: a launch failed,
did not prove itself, or not one figure could be decided. docs/comparing.md says how to read it."""

ROUNDS = 30
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"(\d+)\s*([KMG]?)(?:i?B)?", re.IGNORECASE)


class AbError(ClustergateError):
    """A comparison cannot be made as it was asked for."""

    exit_status = 1


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "ab",
        help="compare two MPI stacks, builds or settings on this machine, launched in turn",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--a", metavar="CONTENDER", help="who is A")
    add("--b", metavar="CONTENDER", help="who is B")
    add("--benchmarks", default="", metavar="NAME,…", help="of IMB-MPI1, and HPL; default: seven")
    add("--sizes", default="", metavar="BYTES,…", help="message sizes such as 0,8,4K,1M")
    add("--processes", default="", metavar="N,…", help="process counts; default: 2, 4, … all cores")
    add(
        "--budget",
        default="5m",
        metavar="TIME",
        help="for all launches, half more where nine rounds take it; default: %(default)s",
    )
    add("--max-seconds", type=float, metavar="S", help="the budget in seconds")
    add("--rounds", type=int, default=ROUNDS, help="of each job, at most; default: %(default)s")
    add("--margin", type=float, default=5.0, metavar="PERCENT", help="of equivalence; default: 5")
    add("--site", metavar="NAME", help="site config (default: the one that fits)")
    add("--stored", metavar="RUN", help="judge such a run again (its id, or last)")
    add("--json", action="store_true", help="print an object per figure, as compare --json does")
    add("--csv", type=Path, metavar="FILE", help="write a row per figure, as compare --csv does")
    add("--copy-to", type=Path, metavar="FOLDER", help="copy the run's folder into this one, too")
    add(
        "reframe_options",
        nargs="*",
        default=[],
        metavar="-- OPTION",
        help="further options for ReFrame",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, or read what was measured, and print the comparison."""
    if not 0.0 < arguments.margin < 100.0:
        raise AbError(f"--margin {arguments.margin:g}: a margin lies between 0 and 100 %")
    if arguments.stored:
        run_id = named_run(
            arguments.stored, [one.ab.name for one in every_benchmark().values() if one.ab]
        )
    else:
        run_id = store.new_run_id(datetime.datetime.now().astimezone())
    try:
        failures = [] if arguments.stored else _measured(arguments, run_id)
        return _judge_and_tell(arguments, run_id, failures)
    finally:
        if arguments.copy_to is not None:
            store.copy_run(run_id, arguments.copy_to)


def _judge_and_tell(arguments: argparse.Namespace, run_id: str, failures: list[str]) -> int:
    # SciPy takes longer to import than all other commands need.
    from clustergate.ab.gathering import complaints_of
    from clustergate.ab.results import judged
    from clustergate.statistics.comparison import Relation

    records = store.read_cases(run_id)
    failures = list(dict.fromkeys([*complaints_of(records), *failures]))
    result = judged(records, arguments.margin / 100, run_id, failures)
    _tell(result, records, run_id, failures, arguments)
    undecided = result.count(Relation.INCONCLUSIVE) == len(result.figures)
    return 2 if failures or undecided else 0


def _tell(
    result: Result,
    records: Sequence[CaseRecord],
    run_id: str,
    failures: Sequence[str],
    arguments: argparse.Namespace,
) -> None:
    from clustergate.ab import comparisons, results, wording
    from clustergate.report import ab

    folder = store.run_folder(run_id)
    found = results.records_of(result)
    content = results.as_record(result, wording.paragraph(result))
    store.write_json(folder / "ab.json", {**content, "failures": list(failures)})
    notes = [*(f"does not count: {sentence}" for sentence in failures), *ab.notes_of(records)]
    page = ab.render_html(
        result, title=f"run {run_id}", notes=notes, commands=ab.commands_of(records)
    )
    store.write_text(folder / "report.html", page)
    if arguments.csv is not None:
        store.write_text(arguments.csv, comparisons.as_csv(found))
    if arguments.json:
        sys.stdout.write("".join(json.dumps(record) + "\n" for record in found))
        return
    notes.append(f"report: {folder / 'report.html'}")
    coloured(ab.render(result, notes, width=terminal.width(), colour=sys.stdout.isatty()))


# --- what is asked ----------------------------------------------------------------------------


def _measured(arguments: argparse.Namespace, run_id: str) -> list[str]:
    """Let both be launched in turn, and return what failed."""
    contest = _contest(arguments)
    return measure_contest(contest, taken(arguments.site).path, run_id, progress())


def _checks() -> dict[str, AbCheck]:
    """Return the checks by the names of what they measure, as they can be chosen."""
    benchmarks = every_benchmark().values()
    return {name: one.ab for one in benchmarks if one.ab for name in (one.ab.parts or (one.title,))}


def _contest(arguments: argparse.Namespace) -> Contest:
    a, b = (_named(option, getattr(arguments, option)) for option in ("a", "b"))
    checks = _checks()
    known = {name.lower(): name for name in checks}
    names = [name.strip() for name in arguments.benchmarks.split(",") if name.strip()]
    for name in names:
        if name.lower() not in known:
            raise AbError(f"there is no benchmark {name!r}; known: {', '.join(known.values())}")
    chosen = list(dict.fromkeys(known[name.lower()] for name in names))
    seconds = arguments.max_seconds or parse_duration(arguments.budget)
    if seconds <= 0 or arguments.rounds < 1:
        raise AbError("the budget and the rounds must be more than nothing")
    return Contest(
        a,
        b,
        checks=list(dict.fromkeys(map(checks.__getitem__, chosen)))
        or [check for check in dict.fromkeys(checks.values()) if check.parts],
        parts=chosen,
        sizes=sizes_of(arguments.sizes),
        seconds=seconds,
        rounds=arguments.rounds,
        processes=arguments.processes,
        options=arguments.reframe_options,
    )


def _named(option: str, text: str | None) -> Named:
    if not text:
        raise AbError(f"say who is compared: --{option} CONTENDER is missing")
    named = parse_contender(text)
    if not named.is_path:
        return named
    # ReFrame runs elsewhere.
    path = str(Path(named.stack).expanduser().resolve())
    return Named(path + named.text[len(named.stack) :], path, named.variables)


def sizes_of(text: str) -> list[int]:
    """Return message sizes in bytes from a list such as ``0,8,4K,1M`` (K: 1024), in order.

    Raises :class:`AbError` for what is none.
    """
    found = set()
    for word in filter(None, (part.strip() for part in text.split(","))):
        match = _SIZE.fullmatch(word)
        if match is None:
            raise AbError(f"{word!r} is no message size; write bytes such as 0,8,4K,1M")
        found.add(int(match[1]) * _FACTORS[match[2].upper()])
    return sorted(found)
