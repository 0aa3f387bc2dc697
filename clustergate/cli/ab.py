"""``clustergate ab``: A against B, launched in turn on the same nodes, in one job."""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustergate import store
from clustergate.ab.contenders import SYNTAX, Named, manifest_of, parse_contender, require_known
from clustergate.benchmarks.imb.command import MPI1_BENCHMARKS
from clustergate.benchmarks.sizing import parse_duration
from clustergate.cli.selection import named_run, taken
from clustergate.cli.streams import coloured, progress
from clustergate.history.node_states import NODE_STATE
from clustergate.machine.environment import describe_removed
from clustergate.machine.fingerprint import read_fingerprint, to_record
from clustergate.model import CaseRecord, ClustergateError
from clustergate.paths import state_dir
from clustergate.report import terminal
from clustergate.session.execute import measure
from clustergate.session.reframe import call_for
from clustergate.sites import configs as sites
from clustergate.sites import modes
from clustergate.stacks.set_up import provide_all

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
Two BLAS are two stacks of the site config. The same name twice shows what chance does.

Exit status 0: compared, whatever was found; 1: what was asked for cannot be; 2: a launch failed,
did not prove itself, or not one figure could be decided. docs/comparing.md says how to read it."""

HPL = "HPL"
IMB_CHECK, HPL_CHECK = "AbImbCheck", "AbHplCheck"
ROUNDS = 30
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"(\d+)\s*([KMG]?)(?:i?B)?", re.IGNORECASE)


class AbError(ClustergateError):
    """A comparison cannot be made as it was asked for."""

    exit_status = 1


class NotMeasured(ClustergateError):
    """Nothing was measured that could be compared."""


@dataclass(frozen=True)
class _Asked:
    """What is to be measured: ``benchmarks`` of IMB, empty for the check's own."""

    checks: Sequence[str]
    benchmarks: Sequence[str]
    sizes: Sequence[int]


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
        run_id = named_run(arguments.stored, (IMB_CHECK, HPL_CHECK))
    else:
        run_id = store.new_run_id(datetime.datetime.now().astimezone())
    try:
        failures = [] if arguments.stored else _measure(arguments, run_id)
        return _judge_and_tell(arguments, run_id, failures)
    finally:
        if arguments.copy_to is not None:
            store.copy_run(run_id, arguments.copy_to)


def _judge_and_tell(arguments: argparse.Namespace, run_id: str, failures: list[str]) -> int:
    from clustergate.ab.gathering import complaints_of
    from clustergate.statistics.comparison import Relation

    records = store.read_cases(run_id)
    failures = list(dict.fromkeys([*complaints_of(records), *failures]))
    result = _judged(records, arguments.margin / 100, run_id, failures)
    _tell(result, records, run_id, failures, arguments)
    undecided = result.count(Relation.CANNOT_TELL) == len(result.figures)
    return 2 if failures or undecided else 0


# --- measuring --------------------------------------------------------------------------------


def _measure(arguments: argparse.Namespace, run_id: str) -> list[str]:
    """Let ReFrame run the checks, and return what failed."""
    named = [_named(option, getattr(arguments, option)) for option in ("a", "b")]
    asked = _asked(arguments)
    seconds = arguments.max_seconds or parse_duration(arguments.budget)
    if seconds <= 0 or arguments.rounds < 1:
        raise AbError("the budget and the rounds must be more than nothing")
    site = taken(arguments.site).path
    configured = sites.load(site)
    orders = sites.orders_of(configured)
    for one in named:
        require_known(one, [order.stack for order in orders])
    say = progress()
    wanted = {one.stack for one in named}
    provide_all([order for order in orders if order.stack in wanted], say=say)
    for one in named:
        if missing := manifest_of(one, state_dir()).unavailable:
            raise NotMeasured(f"{one.text} is not available here: {missing}")
    jobs = number_of_jobs(configured, asked.checks, arguments.processes)
    folder = store.run_folder(run_id)
    store.make_folder(folder)
    store.write_json(folder / NODE_STATE, to_record(read_fingerprint()))
    options = [f"--name=^{check}" for check in asked.checks]
    options += _settings(named, asked, seconds / jobs, arguments.rounds)
    options += arguments.reframe_options
    call = call_for(run_id, site, options, process_counts=arguments.processes or None)
    each = f"{jobs} jobs of {seconds / jobs:.0f} s" if jobs > 1 else f"{seconds:.0f} s"
    say(f"{named[0].text} against {named[1].text}: {each} of launches")
    outcomes = measure(call, say)
    failures = [f"{x.name}: {x.reason}" for x in outcomes if x.result not in ("pass", "skip")]
    told = {record.name.rpartition("-")[0] for record in store.read_cases(run_id)}
    # What a record says itself, it says with the contender's name.
    failures = [sentence for sentence in failures if not any(sentence.startswith(t) for t in told)]
    if len(outcomes) < jobs:
        failures.append(
            f"{jobs - len(outcomes)} of {jobs} jobs did not run; ReFrame's output is in {call.log}"
        )
    return failures


def _named(option: str, text: str | None) -> Named:
    if not text:
        raise AbError(f"say who is compared: --{option} CONTENDER is missing")
    named = parse_contender(text)
    if not named.is_path:
        return named
    # ReFrame runs elsewhere.
    path = str(Path(named.stack).expanduser().resolve())
    return Named(path + named.text[len(named.stack) :], path, named.variables)


def _asked(arguments: argparse.Namespace) -> _Asked:
    known = {name.lower(): name for name in (*MPI1_BENCHMARKS, HPL)}
    names = [name.strip() for name in arguments.benchmarks.split(",") if name.strip()]
    for name in names:
        if name.lower() not in known:
            raise AbError(f"there is no benchmark {name!r}; known: {', '.join(known.values())}")
    chosen = list(dict.fromkeys(known[name.lower()] for name in names))
    checks = [IMB_CHECK] if not chosen or chosen != [HPL] else []
    checks += [HPL_CHECK] if HPL in chosen else []
    benchmarks = [name for name in chosen if name != HPL]
    return _Asked(checks, benchmarks, sizes_of(arguments.sizes))


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


def number_of_jobs(configured: Any, checks: Sequence[str], processes: str) -> int:
    """Return how many jobs there will be: the budget is divided among them."""
    shapes = sites.shapes_of(configured)
    count = 0
    for shape in shapes:
        swept = len(modes.sweep(shape, shapes, processes))
        count += sum(swept if check == IMB_CHECK else 1 for check in checks)
    return max(count, 1)


def _settings(named: Sequence[Named], asked: _Asked, seconds: float, rounds: int) -> list[str]:
    settings = {
        "a": named[0].text,
        "b": named[1].text,
        "max_seconds": f"{seconds:g}",
        "rounds": str(rounds),
    }
    if asked.benchmarks:
        settings[f"{IMB_CHECK}.benchmarks"] = ",".join(asked.benchmarks)
    if asked.sizes:
        settings[f"{IMB_CHECK}.sizes"] = ",".join(map(str, asked.sizes))
    return [f"--setvar={name}={value}" for name, value in settings.items()]


# --- telling ----------------------------------------------------------------------------------


def _judged(
    records: Sequence[CaseRecord], margin: float, run_id: str, failures: Sequence[str]
) -> Result:
    from clustergate.ab.gathering import A, B, jobs_of
    from clustergate.ab.results import judge_jobs

    names = {str(r.details.get("contender")): str(r.details.get("named")) for r in records}
    jobs = jobs_of(records)
    if not jobs or A not in names or B not in names:
        reasons = [*failures, *_absences(records)]
        told = "; ".join(reasons) or "it compared no two contenders; `clustergate ab` makes such"
        raise NotMeasured(f"the run {run_id} holds no comparison: {told}")
    return judge_jobs(names[A], names[B], jobs, margin=margin)


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
    notes = [f"does not count: {sentence}" for sentence in failures]
    notes += [*_absences(records), *_identities(records), *_circumstances(records)]
    page = ab.render_html(
        result,
        title=f"run {run_id}",
        notes=notes,
        commands={
            f"{r.details['contender']}: {r.stack}, {r.check}, {r.conditions.get('ranks')} ranks":
            r.command
            for r in records
            if r.command
        },
    )  # fmt: skip
    store.write_text(folder / "report.html", page)
    if arguments.csv is not None:
        store.write_text(arguments.csv, comparisons.as_csv(found))
    if arguments.json:
        sys.stdout.write("".join(json.dumps(record) + "\n" for record in found))
        return
    notes.append(f"report: {folder / 'report.html'}")
    coloured(ab.render(result, notes, width=terminal.width(), colour=sys.stdout.isatty()))


def _absences(records: Sequence[CaseRecord]) -> list[str]:
    """Return what could not be compared because one of them cannot run it."""
    absent = [f"not compared: {r.check}: {r.unavailable}" for r in records if r.unavailable]
    return list(dict.fromkeys(absent))


def _circumstances(records: Sequence[CaseRecord]) -> list[str]:
    """Return what was taken away from the environment, and what else is to be known."""
    removed = {k: v for record in records for k, v in record.removed_environment.items()}
    noted = [note for record in records for note in record.notes]
    return list(dict.fromkeys([*describe_removed(removed), *noted]))


def _identities(records: Sequence[CaseRecord]) -> list[str]:
    """Return what each contender is: its MPI and the key of its build."""
    told = {}
    for record in records:
        side = str(record.details.get("contender"))
        mpi, key = record.details.get("mpi"), record.details.get("build_key")
        proven: Any = record.details.get("proof") or {}
        hosts = ", ".join(proven.get("hosts", ())) or "no node"
        told[side] = f"{side}: {record.stack}, {mpi}, build {key}, on {hosts}"
    return [told[side] for side in sorted(told)]
