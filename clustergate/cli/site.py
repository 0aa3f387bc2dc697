"""``clustergate site``: a new site config from scontrol and lscpu, and what one may say."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
from pathlib import Path

from clustergate.model import ClustergateError
from clustergate.paths import site_folder
from clustergate.sites import writer as site_writer
from clustergate.sites.description import site_schema

DESCRIPTION = """\
Write site_configs/NAME.py from what `scontrol show node`, `scontrol show partition` and `lscpu`
print on this machine, or printed into files. A file that is there is never written over. What could
not be found out stands in it as a remark."""

_TIME_LIMIT_S = 60


class SiteNewError(ClustergateError):
    """A site config cannot be written."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("site", help="describe a new system in a site config")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    new = actions.add_parser(
        "new",
        help="write a site config from scontrol and lscpu",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    new.add_argument("name", help="of the system, and of the file")
    for option, command in COMMANDS.items():
        new.add_argument(
            f"--{option}", type=Path, metavar="FILE", help=f"what `{' '.join(command)}` printed"
        )
    new.add_argument(
        "--stack", action="append", default=[], metavar="NAME", help="default: mpich (repeatable)"
    )
    new.set_defaults(run=run)
    schema = actions.add_parser(
        "schema",
        help="print the JSON schema of what a site config says",
        description="Print the JSON schema of what a site config says, in ReFrame's form.",
    )
    schema.set_defaults(run=print_schema)


COMMANDS = {
    "nodes": ["scontrol", "show", "node"],
    "partitions": ["scontrol", "show", "partition"],
    "lscpu": ["lscpu"],
}

_INSTEAD = (
    "run this on a login node of the Slurm system, or name files with what was printed there "
    "(--nodes, --partitions, --lscpu); for a system without Slurm copy site_configs/template.py"
)


def run(arguments: argparse.Namespace) -> int:
    """Write the file and say what to do next."""
    nodes, partitions, lscpu = (
        _read(getattr(arguments, option), command) for option, command in COMMANDS.items()
    )
    known = site_writer.nodes_of(nodes)
    text = site_writer.site_config(
        arguments.name,
        site_writer.partitions_of(partitions, known),
        site_writer.processor_of(lscpu),
        socket.gethostname(),
        tuple(arguments.stack) or ("mpich",),
    )
    path = site_folder() / "site_configs" / f"{arguments.name}.py"
    _write_new(path, text)
    print(f"{path}: read it, fill in what it asks for, and try it:")
    print(f"clustergate dry-run --site {arguments.name}")
    return 0


def print_schema(arguments: argparse.Namespace) -> int:
    """Print what a site config may say, for editors and tools."""
    print(json.dumps(site_schema(), indent=2))
    return 0


def _read(file: Path | None, command: list[str]) -> str:
    """Return what a command prints, or what it printed into a file."""
    if file is not None:
        try:
            return file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise SiteNewError(f"{file} cannot be read: {error.strerror}") from None
    try:
        ended = subprocess.run(
            command,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIME_LIMIT_S,
            check=False,
        )
    except FileNotFoundError:
        raise SiteNewError(f"there is no {command[0]} here: {_INSTEAD}") from None
    except subprocess.TimeoutExpired:
        raise SiteNewError(
            f"{' '.join(command)} did not answer in {_TIME_LIMIT_S} s: {_INSTEAD}"
        ) from None
    if ended.returncode:
        said = (ended.stderr.strip().splitlines() or ["no reason"])[-1]
        raise SiteNewError(f"{' '.join(command)} failed: {said}: {_INSTEAD}")
    return ended.stdout


def _write_new(path: Path, text: str) -> None:
    """Write a file that is not there; all of it, or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                path.unlink()
                raise
    except FileExistsError:
        raise SiteNewError(f"{path} is there already; remove it first, or name another") from None
    except OSError as error:
        raise SiteNewError(f"{path} cannot be written: {error.strerror}") from None
