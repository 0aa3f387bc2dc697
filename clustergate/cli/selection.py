"""What a command is about: a site, stored runs, their cases; the options that name them."""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from clustergate.cli.passing_on import option
from clustergate.core import store
from clustergate.core.model import BadRequest, CaseRecord, ClustergateError
from clustergate.core.notation import did_you_mean, nearest, printable
from clustergate.core.reasons import Words
from clustergate.judge.history.stored_runs import (
    RECENT,
    PastRun,
    in_order,
    point_in_time,
    stored_runs,
)

if TYPE_CHECKING:
    from clustergate.sites.choice import Choice


def choose_site(name: str | None, file: IO[str] | None = None) -> Choice:
    """Choose the site config for a command, and say so in the first line that it prints.

    ``file`` is standard output by default, else where what others read is not disturbed.
    """
    from clustergate.sites.choice import choose

    chosen = choose(name)
    print(printable(str(chosen)), file=file, flush=True)
    return chosen


RUN_NONE = Words(
    "run.none",
    "there is no run in {folder} yet",
    remedy="measure first: `clustergate check`",
)
NO_RECENT = Words(
    "run.no-recent",
    "no {name} run{of} in {folder}",
    remedy="`clustergate list runs` lists them",
)


def require_run() -> None:
    """Raise :class:`BadRequest` where nothing was measured yet."""
    if not in_order(trials=True):
        raise BadRequest(RUN_NONE(folder=store.runs_folder()))


def recent(name: str, holding: str = "", checks: Sequence[str] = ()) -> Path:
    """Return the folder of the last or the previous run that holds a file of this name.

    It is one of the ``checks``, if any are named. Raises :class:`BadRequest` when there is none.
    """
    runs = [
        run
        for _, run in in_order(holding, trials=True)
        if not checks or any(any(run.glob(f"cases/{check}*.json")) for check in checks)
    ]
    if not checks:
        require_run()
    if len(runs) < RECENT[name]:
        of = f" of {' or '.join(checks)}" if checks else ""
        raise BadRequest(NO_RECENT(name=name, of=of, folder=store.runs_folder()))
    return runs[-RECENT[name]]


RUN_NO_SUCH = Words(
    "run.no-such",
    "no run and no file is named {name}{near}",
    remedy="`clustergate list runs` lists the runs, which are in {folder}",
)


def named_run(name: str, checks: Sequence[str] = ()) -> str:
    """Return the id of a stored run: an id, a session of ReFrame, or "last" or "previous".

    The last is that of one of the ``checks``, if any are named. Raises :class:`BadRequest` when
    there is none.
    """
    folder = store.runs_folder()
    if name in RECENT:
        return recent(name, "cases", checks).name
    if store.names_run(name) and (folder / name / "cases").is_dir():
        return name
    if (short := abbreviated(name)) != name:
        return short
    # Few name a session, and what knows ReFrame is slow to load.
    from clustergate.run.reframe import run_of_session

    if run_id := run_of_session(name):
        return run_id
    raise BadRequest(RUN_NO_SUCH(name=name, near=near_runs(name), folder=folder))


RUN_SEVERAL = Words(
    "run.several",
    "{name} is the beginning of {runs:names}",
    remedy="name one of them, by its id or its number as in r8",
)


def abbreviated(name: str) -> str:
    """Return the id of the run that begins so, or whose number is this: ``r8`` and ``8``.

    What no run is named so stays as it is. Raises :class:`BadRequest` where several are.
    """
    runs = [folder.name for _, folder in in_order(trials=True)]
    if not name or name in runs:
        return name
    number = name.removeprefix("r")
    numbered = [run for run in runs if run.rpartition("-")[2].removeprefix("r") == number]
    alike = numbered or [run for run in runs if run.startswith(name)]
    if len(alike) > 1:
        raise BadRequest(RUN_SEVERAL(name=name, runs=alike[::-1]))
    return alike[0] if alike else name


def near_runs(name: str) -> str:
    """Return the question which run was meant, empty where none has a name like it."""
    known = [folder.name for _, folder in in_order(trials=True)]
    return did_you_mean(nearest(name, known))


def named_folder(name: str) -> Path:
    """Return the folder of a run as :func:`named_run` names it, whatever is in it."""
    if name in RECENT:
        return recent(name)
    named = abbreviated(name)
    if store.names_run(named) and (folder := store.run_folder(named)).is_dir():
        return folder
    return store.run_folder(named_run(name))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name some of the stored cases."""
    option(parser, "--check PATTERN", "only these checks", default="*")
    option(parser, "--stack PATTERN", "only these stacks", default="*")
    option(
        parser, "--since WHEN", "only runs since 2026-11-03, since a run, or of the last 12h or 7d"
    )


def named_cases(arguments: argparse.Namespace) -> Callable[[CaseRecord], bool]:
    """Return which cases the options of :func:`add_options` name."""

    def wanted(record: CaseRecord) -> bool:
        return fnmatch.fnmatchcase(record.check, arguments.check) and fnmatch.fnmatchcase(
            record.stack, arguments.stack
        )

    return wanted


def named_runs(arguments: argparse.Namespace) -> Iterator[PastRun]:
    """Yield the stored runs that ``--since`` names, all of them without it; tell of trials."""
    since = moment(arguments.since) if arguments.since else None
    return stored_runs(since, tell=lambda note: print(note, file=sys.stderr))


def moment(named: str) -> datetime.datetime:
    """Return what ``--since`` means, where a run may be named in any way; raises BadRequest."""
    if named in RECENT:
        named = recent(named).name
    elif named.startswith("r"):
        named = abbreviated(named)
    return point_in_time(named, datetime.datetime.now().astimezone())


def add_site(parser: argparse.ArgumentParser) -> None:
    """Add the one way to name a system, which :func:`choose_site` takes."""
    option(parser, "--site NAME", "site config (default: the one that fits)")


def add_repeatable(parser: argparse.ArgumentParser, named: str, means: str) -> None:
    """Add an option that may be given several times, each time with a name."""
    option(parser, f"{named} NAME", means, action="append", default=[])


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for what the scheduler is to be asked for."""
    group = parser.add_argument_group("what all jobs ask the scheduler for")
    option(group, "--nodes LIST", "only these, such as n[001-064]", default="")
    option(group, "--exclude LIST", "none of these nodes", default="")
    for name, takers in (("reservation", "Slurm"), ("qos", "Slurm"), ("account", "Slurm or PBS")):
        option(group, f"--{name} NAME", f"of {takers}", default="")


JOB_OPTION = Words(
    "wish.job-option",
    "-J {option} after `--` would override the site config's choice of nodes",
    remedy="use --nodes or --exclude, or change `access` of the partition",
)


def reframe_job_options(arguments: argparse.Namespace, site: Path) -> list[str]:
    """Return ReFrame's options for the jobs of a site, from those of :func:`add_job_options`."""
    from clustergate.run.placing import options_for
    from clustergate.sites.configs import load
    from clustergate.sites.schedulers import chooses_nodes
    from clustergate.sites.schedulers.job_options import JobOptions

    if chosen := chooses_nodes(getattr(arguments, "reframe_options", ())):
        raise ClustergateError(JOB_OPTION(option=chosen))
    job_options = JobOptions(
        **{name: getattr(arguments, name) for name in JobOptions.__dataclass_fields__}
    )
    return options_for(job_options, load(site)) if any(job_options) else []


def add_confirmation(parser: argparse.ArgumentParser) -> None:
    """Add the options for launching again what looks slow."""
    option(
        parser,
        "--confirm-wait TIME",
        "what looks slow is launched again twice; so long, at most, such a job waits in a queue "
        "(default: %(default)s)",
        default="10m",
    )
    option(parser, "--no-confirm", "launch nothing again: what looks slow is not confirmed")


def add_trial(parser: argparse.ArgumentParser) -> None:
    """Add the option that marks a run, see :func:`stored_runs.is_trial`."""
    option(parser, "--trial", "mark it as a trial: no baseline, trend, reference or export uses it")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of what measures: on which system, by what jobs, where to copy the run."""
    add_site(parser)
    add_job_options(parser)
    option(parser, "--copy-to FOLDER", "also copy the run's folder to this one", type=Path)
    option(
        parser, "reframe_options -- OPTION", "further options for ReFrame", nargs="*", default=[]
    )
