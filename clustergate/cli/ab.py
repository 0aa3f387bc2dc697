"""``clustergate ab``: libraries against each other, launched in turn on the same nodes."""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clustergate.benchmarks.descriptor import AbCheck
from clustergate.benchmarks.registry import every_benchmark
from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress
from clustergate.cli.selection import (
    add_run_options,
    add_trial,
    choose_site,
    named_run,
    reframe_job_options,
)
from clustergate.cli.streams import print_coloured
from clustergate.core import store
from clustergate.core.commands import Invocation
from clustergate.core.model import BadRequest, CaseRecord
from clustergate.core.paths import state_dir
from clustergate.core.quantities import parse_duration
from clustergate.core.reasons import Reason, Words, reason_as_json
from clustergate.core.words import INPUT_UNKNOWN_NAME, OPTION_NOT_POSITIVE, OPTION_RANGE
from clustergate.judge.history.listing import AB, SUMMARY, call_of
from clustergate.judge.history.stored_runs import is_trial, trial_note
from clustergate.report import console
from clustergate.run.contest import Contest, lacks_programs, measure_contest
from clustergate.run.readiness import say_in_the_way
from clustergate.studies.ab.contenders import SIDES, SYNTAX, Named, parse_contender

if TYPE_CHECKING:
    from clustergate.studies.ab.results import Standings

DESCRIPTION = f"""\
Compare MPI stacks, builds, or settings of one stack: two of them, or up to {len(SIDES)}. All are
launched in turn, in random order in each round, on the same nodes in one job; each launch is
proven. The answer says which to take, by how much it is faster with what confidence, for which
messages another is, and what would settle the rest; the page has every benchmark and size.

Contenders are written as {SYNTAX}:
  mpich intel-mpi
  mpich intel-mpi openmpi
  mpich mpich:UCX_TLS=self,sm
  intel-mpi intel-mpi:I_MPI_FABRICS=shm:ofi:I_MPI_ADJUST_ALLREDUCE=2
  --a /elsewhere/.clustergate/manifests/mpich.json --b mpich
  --a golden:mpich --b mpich
To compare two BLAS libraries, define a stack for each in the site config. The same stack twice
shows the noise.

Exit status 0: compared, whatever the result; 1: invalid request; 2: a launch failed or was not
proven, or every result is undecided. docs/comparing.md explains the report."""

ROUNDS = 30
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"(\d+)\s*([KMG]?)(?:i?B)?", re.IGNORECASE)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("contenders", nargs="*", metavar="CONTENDER", help="two or more")
    option(parser, "--a CONTENDER", "the first of two contenders")
    option(parser, "--b CONTENDER", "the second of them")
    checks = _checks()
    default = ", ".join(name for name, check in checks.items() if not check.parts)
    option(
        parser,
        "--benchmarks NAME,…",
        f"of {', '.join(checks)}; default: the usual ones, without {default}",
        default="",
    )
    option(parser, "--sizes BYTES,…", "message sizes such as 0,8,4K,1M", default="")
    option(parser, "--processes N,…", "process counts; default: 2, 4, … all cores", default="")
    option(
        parser,
        "--budget TIME",
        "for all launches, up to half more to finish ten rounds; default: %(default)s",
        default="5m",
    )
    option(parser, "--rounds", "per job, at most; default: %(default)s", type=int, default=ROUNDS)
    option(parser, "--margin PERCENT", "equivalence margin; default: 5", type=float, default=5.0)
    option(parser, "--stored RUN", "report on a stored run (its id, or last)")
    option(parser, "--json", "print a JSON object per figure")
    option(parser, "--csv FILE", "write a CSV row per figure", type=Path)
    add_trial(parser)
    add_run_options(parser)


NOT_TWO = Words(
    "contender.not-two",
    "{count:contender is|contenders are} named, and two to {most} are compared",
    remedy="`clustergate ab A B`, or --a and --b",
)


def named_contenders(arguments: argparse.Namespace) -> list[str]:
    """Return how contenders are named, by themselves or by --a and --b.

    Raises :class:`BadRequest` where they are too few or too many, or named in both ways.
    """
    options = {"--a": arguments.a, "--b": arguments.b}
    names, by_option = arguments.contenders, [one for one in options.values() if one]
    if not names and not arguments.stored:
        for name, text in options.items():
            if not text:
                raise BadRequest(OPTION_MISSING(option=name))
    elif names and (by_option or arguments.stored or not 2 <= len(names) <= len(SIDES)):
        count = len(names) + len(by_option) + bool(arguments.stored)
        raise BadRequest(NOT_TWO(count=count, most=len(SIDES)))
    return names or by_option


def run(arguments: argparse.Namespace) -> int:
    """Measure, or read a stored run, and print the comparison."""
    named = named_contenders(arguments)
    if not 0.0 < arguments.margin < 100.0:
        facts = {"option": "--margin", "value": arguments.margin, "unit": "%"}
        raise BadRequest(OPTION_RANGE(low=0, high=100, **facts))
    if arguments.stored:
        run_id = named_run(
            arguments.stored, [one.ab.name for one in every_benchmark().values() if one.ab]
        )
        called: Invocation = arguments.invocation.of(call_of(run_id))
    else:
        run_id = store.new_run_id(datetime.datetime.now().astimezone())
        called = arguments.invocation
    # Commands in sentences name the contenders themselves.
    call = [group for group in called.call if group[0] not in ("--a", "--b")]
    arguments.invocation = called.of(call)
    try:
        failures = []
        if not arguments.stored:
            site = choose_site(arguments.site, sys.stderr if arguments.json else None).path
            contest = _contest(arguments, named, reframe_job_options(arguments, site))
            with Progress(arguments.invocation) as say:
                # What one of two lacks altogether ends it, once it was tried to be set up.
                if not lacks_programs(contest, state_dir()):
                    say_in_the_way(say, site, [one.stack for one in contest.contenders])
                failures = measure_contest(contest, site, run_id, say)
        return _report(arguments, run_id, failures)
    finally:
        if arguments.copy_to is not None:
            store.copy_run(run_id, arguments.copy_to)


def _report(arguments: argparse.Namespace, run_id: str, failed: list[Reason]) -> int:
    # SciPy takes longer to import than all other commands need.
    from clustergate.report import ab
    from clustergate.studies.ab.gathering import complaints_of
    from clustergate.studies.ab.results import judge_records

    records = store.read_cases(run_id)
    failed = list(dict.fromkeys([*complaints_of(records), *failed]))
    failures = list(map(str, failed))
    result = judge_records(records, arguments.margin / 100, run_id, failures)
    _write(result, records, run_id, failed, arguments)
    return ab.exit_status(result, failures)


def _write(
    of: Standings,
    records: Sequence[CaseRecord],
    run_id: str,
    failed: Sequence[Reason],
    arguments: argparse.Namespace,
) -> None:
    from clustergate.report import ab
    from clustergate.report.publishing import write_explanations
    from clustergate.studies.ab import comparisons, results
    from clustergate.studies.ab.advice import advice_of

    invocation: Invocation = arguments.invocation
    folder = store.run_folder(run_id)
    figures, failures, said = results.records_of(of), list(map(str, failed)), advice_of(of)
    page = ab.render_html(
        of,
        said,
        title=f"run {run_id}",
        notes=[*trial_note(folder), *ab.notes_of(records)],
        commands=ab.commands_of(records),
        who=ab.contenders_of(records),
        failures=failures,
        invocation=invocation,
    )
    write_explanations(folder)
    store.write_text(folder / "report.html", page)
    if arguments.csv is not None:
        store.write_text(arguments.csv, comparisons.as_csv(figures))
    # The answer comes last: who reads it finds the page.
    content = results.as_record(
        of,
        word=ab.answer_of(of, said, failures).word,
        answer=said.sentence,
        paragraph=said.paragraph,
        next=list(said.next_steps),
        **({"trial": True} if is_trial(folder) else {}),
    )
    answer = {**content, "failures": list(map(reason_as_json, failed))}
    store.write_json(folder / AB, invocation.in_json(answer))
    if arguments.json:
        lines = map(json.dumps, invocation.in_json(figures))
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        return
    shown = functools.partial(ab.render, of, said, run_id, failures, invocation=invocation)
    trial = "".join(f"{note}\n" for note in trial_note(folder))
    store.write_text(folder / SUMMARY, shown(width=console.WIDTH_STORED) + trial)
    on_terminal = sys.stdout.isatty()
    print_coloured(shown(width=console.width(), wraps=on_terminal, colour=on_terminal) + trial)


# --- the request ------------------------------------------------------------------------------


def _checks() -> dict[str, AbCheck]:
    benchmarks = every_benchmark().values()
    return {name: one.ab for one in benchmarks if one.ab for name in (one.ab.parts or (one.title,))}


def _contest(
    arguments: argparse.Namespace, named: Sequence[str], job_options: Sequence[str] = ()
) -> Contest:
    checks = _checks()
    known = {name.lower(): name for name in checks}
    names = [name.strip() for name in arguments.benchmarks.split(",") if name.strip()]
    for name in names:
        if name.lower() not in known:
            facts = {"kind": "benchmark", "name": name}
            raise BadRequest(INPUT_UNKNOWN_NAME(known=[*known.values()], **facts))
    chosen = list(dict.fromkeys(known[name.lower()] for name in names))
    seconds = parse_duration(arguments.budget)
    if seconds <= 0 or arguments.rounds < 1:
        raise BadRequest(OPTION_NOT_POSITIVE(options="--budget and --rounds"))
    return Contest(
        [*map(_named, named)],
        checks=list(dict.fromkeys(map(checks.__getitem__, chosen)))
        or [check for check in dict.fromkeys(checks.values()) if check.parts],
        parts=chosen,
        sizes=sizes_of(arguments.sizes),
        seconds=seconds,
        rounds=arguments.rounds,
        processes=arguments.processes,
        options=[*job_options, *arguments.reframe_options],
        margin_percent=arguments.margin,
        called=arguments.invocation.call,
        trial=arguments.trial,
    )


OPTION_MISSING = Words(
    "option.missing",
    "{option} CONTENDER is missing",
    remedy="name what to compare",
)
NO_MANIFEST = Words(
    "contender.no-manifest",
    "{text!r} names no manifest: there is no file {path}",
    remedy="`clustergate setup` writes them, into the folder `manifests`",
)


def _named(text: str) -> Named:
    named = parse_contender(text)
    if not named.is_path:
        return named
    # ReFrame runs elsewhere.
    path = str(Path(named.stack).expanduser().resolve())
    if not Path(path).is_file():
        raise BadRequest(NO_MANIFEST(text=text, path=path))
    return Named(path + named.text[len(named.stack) :], path, named.variables)


OPTION_SIZE = Words(
    "option.size",
    "{word!r} is not a message size",
    remedy="give bytes such as 0,8,4K,1M",
)


def sizes_of(text: str) -> list[int]:
    """Return message sizes in bytes from a list such as ``0,8,4K,1M`` (K: 1024), in order.

    Raises :class:`BadRequest` for what is none.
    """
    sizes = set()
    for word in filter(None, (part.strip() for part in text.split(","))):
        match = _SIZE.fullmatch(word)
        if match is None:
            raise BadRequest(OPTION_SIZE(word=word))
        sizes.add(int(match[1]) * _FACTORS[match[2].upper()])
    return sorted(sizes)
