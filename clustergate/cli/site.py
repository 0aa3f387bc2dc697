"""``clustergate site``: write a site config from what is here; hold a pipeline against them."""

from __future__ import annotations

import argparse
import contextlib
import grp
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress
from clustergate.cli.selection import add_repeatable
from clustergate.core import store
from clustergate.core.model import ClustergateError
from clustergate.core.paths import site_folder
from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.launch.hostfiles import fold
from clustergate.machine.processes import capture
from clustergate.sites import pipelines
from clustergate.sites import writer as site_writer
from clustergate.sites.kinds import node_kinds
from clustergate.sites.schedulers import SCHEDULERS, installed
from clustergate.sites.schedulers.scheduler import Scheduler
from clustergate.sites.schema import site_schema
from clustergate.stacks import DEFAULT, PROVIDERS, StackRequest, planned

DESCRIPTION = (
    "Write a new site config, convert an old one, print the schema of all, or compare a GitLab "
    "pipeline with them."
)
_SCAN = """\
Write site_configs/NAME.py from what Slurm or PBS and `lscpu` say on this machine, or from files
with their output (of scontrol also as --json), and with the MPI libraries of its modules and of the
Spack in SPACK_ROOT or on PATH. Each kind of node becomes a partition. An existing file is never
overwritten. What could not be determined is marked by a comment."""

_PIPELINE = """\
Compare the systems and stacks that a GitLab pipeline lists in .clustergate-systems with the site
configs. Exit status 0: there are all of them; 2: at least one is not."""

_CONVERT = """\
Print a site config that uses the classes Site, Partition and Stack in ReFrame's form. It is run,
as whenever it is loaded, and what it computed is printed as values. Its comments stand in front,
for you to put where they belong; what else it does, such as launchers of its own, you copy."""

_TIME_LIMIT_S = 60


def add_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True)
    scan = actions.add_parser(
        "scan",
        help="write a site config from partitions, modules and an existing Spack",
        description=_SCAN,
    )
    option(scan, "name", "of the system, and of the file")
    scans = zip(*(one.scans for one in SCHEDULERS if one.scans), strict=True)
    for name, commands in zip(("nodes", "partitions"), scans, strict=True):
        printed = " or ".join(f"`{' '.join(command)}`" for command in commands)
        option(scan, f"--{name} FILE", f"output of {printed}", type=Path)
    option(scan, "--lscpu FILE", "output of `lscpu`", type=Path)
    add_repeatable(scan, "--stack", f"of the {DEFAULT}, instead of what is found (repeatable)")
    scan.set_defaults(run=run)
    convert = actions.add_parser(
        "convert",
        help="print a site config that uses classes in ReFrame's form",
        description=_CONVERT,
    )
    option(convert, "file", "the site config", type=Path)
    convert.set_defaults(run=convert_classes)
    schema = actions.add_parser(
        "schema",
        help="print the JSON schema of site configs",
        description="Print the JSON schema of site configs, in ReFrame's format.",
    )
    schema.set_defaults(run=print_schema)
    pipeline = actions.add_parser(
        "pipeline", help="compare a GitLab pipeline with the site configs", description=_PIPELINE
    )
    option(pipeline, "file", "the pipeline's .gitlab-ci.yml", type=Path)
    pipeline.set_defaults(run=check_pipeline)


LEFT_OUT = Words(
    "site-scan.left-out",
    "no partition has {names}: {why}",
    remedy="nothing runs there; add what the scheduler lacks, or a partition by hand",
)


def run(arguments: argparse.Namespace) -> int:
    """Write the file and say what to do next."""
    scheduler = _scanned_scheduler(arguments.nodes or arguments.partitions)
    nodes, partitions = (
        _read(file, command, scheduler)
        for file, command in zip(
            (arguments.nodes, arguments.partitions), scheduler.scans, strict=True
        )
    )
    lscpu = _read(arguments.lscpu, ["lscpu"], scheduler)
    groups = None if arguments.partitions else _own_groups()
    kinds, left_out = node_kinds(*scheduler.scanned(nodes, partitions), scheduler, groups)
    for name in arguments.stack:
        # It raises for one that there is not.
        planned(StackRequest(name, DEFAULT))
    rdma, lines_of = site_writer.rdma_devices(), PROVIDERS[DEFAULT].site_lines
    stacks = [line for name in arguments.stack for line in lines_of(name, rdma)]
    if not stacks:
        with Progress(arguments.invocation) as say:
            say("looking for MPI libraries among modules and in Spack")
            here = [one.lines_here() for one in PROVIDERS.values()]
        stacks = [f"# {remark}" for _, remarks in here for remark in remarks]
        stacks += [line for lines, _ in here for line in lines] or lines_of("mpich", rdma)
    text = site_writer.site_config(
        arguments.name,
        kinds,
        scheduler,
        site_writer.processor_of(lscpu),
        "" if arguments.nodes else socket.gethostname(),
        stacks,
        left_out,
        None if arguments.nodes else psutil.boot_time(),
    )
    path = site_folder() / "site_configs" / f"{arguments.name}.py"
    _write_new(path, text)
    print(f"wrote {path} with these stacks:")
    for line in stacks:
        print(f"  {line.removesuffix(',')}")
    for why, names in left_out.items():
        left = LEFT_OUT(names=fold(names), why=why)
        print(arguments.invocation.completed(left))
    again = f"`clustergate dry-run --site {arguments.name}`"
    following = f"next: review it, fill in what it asks for, then try {again}"
    print(arguments.invocation.completed(following))
    return 0


def convert_classes(arguments: argparse.Namespace) -> int:
    """Print a site config that uses classes in ReFrame's form."""
    # Late: it loads what reads site configs.
    from clustergate.sites.convert import converted

    print(converted(arguments.file), end="")
    return 0


def print_schema(arguments: argparse.Namespace) -> int:
    """Print the schema of site configs, for editors and tools."""
    print(json.dumps(site_schema(), indent=2))
    return 0


def _own_groups() -> list[str] | None:
    """Return the groups of the user; None for root, to whom no queue is closed."""
    if not os.geteuid():
        return None
    names = []
    for number in {os.getegid(), *os.getgroups()}:
        with contextlib.suppress(KeyError):
            names.append(grp.getgrgid(number).gr_name)
    return names


def check_pipeline(arguments: argparse.Namespace) -> int:
    """Say which systems and stacks of a pipeline no site config has, and which it leaves out."""
    listed = pipelines.listed_in(arguments.file)
    faults = pipelines.faults(listed)
    for fault in faults:
        print(f"clustergate: {arguments.invocation.completed(fault)}", file=sys.stderr)
    if faults:
        return 2
    if not listed:
        print(f"{arguments.file} lists no system in {pipelines.JOBS}")
    for system, stack in pipelines.without_job(listed):
        print(f"no job of {arguments.file} is for {system} with {stack}, which its site config has")
    return 0


NO_COMMAND = Words(
    "site-scan.no-command",
    "{command} not found",
    remedy=(
        "run this on a login node, or pass its output as files (--nodes, --partitions, --lscpu); "
        "without Slurm and PBS, copy site_configs/template.py"
    ),
)
NO_ANSWER = Words(
    "site-scan.no-answer",
    "{command} did not answer in {seconds} s",
    remedy=(
        "run this on a login node, or pass its output as files (--nodes, --partitions, --lscpu); "
        "without Slurm and PBS, copy site_configs/template.py"
    ),
)
SITE_SCAN_FAILED = Words(
    "site-scan.failed",
    "{command} failed",
    cause="{why}",
    remedy=(
        "run this on a login node, or pass its output as files (--nodes, --partitions, --lscpu); "
        "without Slurm and PBS, copy site_configs/template.py"
    ),
)


def _scanned_scheduler(file: Path | None) -> Scheduler:
    """Return the scheduler that printed a file, or the one that is here."""
    known = [one for one in SCHEDULERS if one.scans]
    if file:
        text = _text_of(file)
        return next((one for one in known if one.has_printed(text)), known[0])
    here = [one for one in installed() if one.scans]
    if len(here) > 1:
        # Clients of another one are often installed beside it.
        here = [*filter(_answers, here), *here]
    return [*here, *known][0]


def _answers(scheduler: Scheduler) -> bool:
    with contextlib.suppress(ClustergateError):
        return bool(scheduler.queues())
    return False


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ClustergateError(FILE_UNREADABLE(path=file, why=error)) from None


def _read(file: Path | None, command: Sequence[str], scheduler: Scheduler) -> str:
    if text := _text_of(file) if file else scheduler.says_more(command):
        return text
    try:
        ended = capture(command, env={**os.environ, "LC_ALL": "C"}, timeout=_TIME_LIMIT_S)
    except FileNotFoundError:
        raise ClustergateError(NO_COMMAND(command=command[0])) from None
    except subprocess.TimeoutExpired:
        doing = " ".join(command)
        raise ClustergateError(NO_ANSWER(command=doing, seconds=_TIME_LIMIT_S)) from None
    if ended.returncode:
        why = (ended.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ClustergateError(SITE_SCAN_FAILED(command=" ".join(command), why=why))
    return ended.stdout


SITE_SCAN_EXISTS = Words(
    "site-scan.exists",
    "{path} exists already",
    remedy="remove it first, or choose another name",
)


def _write_new(path: Path, text: str) -> None:
    if path.exists():
        raise ClustergateError(SITE_SCAN_EXISTS(path=path))
    store.write_text(path, text)
