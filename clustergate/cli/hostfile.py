"""``clustergate hostfile``: check a hostfile, or print it for a launcher or a scheduler."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from clustergate.cli.passing_on import option
from clustergate.core.model import ClustergateError, is_name
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.paths import site_folder, suite_folder
from clustergate.core.reasons import Words
from clustergate.launch import hostfiles
from clustergate.sites.choice import site_files
from clustergate.sites.schedulers import installed
from clustergate.sites.schedulers.scheduler import Queues, Scheduler

DESCRIPTION = (
    "Check and summarize a hostfile, or print its usable nodes in the format that "
    "a launcher reads. Nodes that the scheduler gives to no job are not usable. "
    "hostfiles/template.txt explains the format."
)
_ASKING_S = 5.0


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "file", "a file, or the name of a system in hostfiles/")
    option(
        parser,
        "--for",
        "Open MPI's mpirun, MPICH's or Intel MPI's Hydra, MVAPICH2's mpirun_rsh, Slurm",
        dest="dialect",
        choices=hostfiles.DIALECTS,
    )


HOSTFILE_UNKNOWN = Words(
    "hostfile.unknown",
    "no file and no system with a hostfile in {folder} is named {name}{meant}",
    remedy="{template} explains how to write one",
)
HOSTFILE_NONE = Words(
    "hostfile.none",
    "the system {name} has no hostfile {path}",
    remedy=(
        "with a scheduler it needs one only to exclude nodes ({lists}); "
        "{template} explains how to write it"
    ),
)


def run(arguments: argparse.Namespace) -> int:
    path = Path(arguments.file)
    if is_name(arguments.file):
        named = hostfiles.hostfile_path(arguments.file)
        path = named if os.path.lexists(named) else path
    if not os.path.lexists(path):
        template = suite_folder("hostfiles") / "template.txt"
        if arguments.file in {path.stem for path in site_files()}:
            lists = next((one.lists_names for one in installed()), "it lists their names")
            path = hostfiles.hostfile_path(arguments.file)
            raise hostfiles.HostfileError(
                HOSTFILE_NONE(name=arguments.file, path=path, template=template, lists=lists)
            )
        folder = site_folder() / "hostfiles"
        raise hostfiles.HostfileError(
            HOSTFILE_UNKNOWN(
                folder=folder,
                name=arguments.file,
                meant=did_you_mean(nearest(arguments.file, [f.stem for f in folder.glob("*.txt")])),
                template=template,
            )
        )
    hostfile = hostfiles.read_hostfile(path)
    unused, said = _unused(hostfile)
    usable = [node for node in hostfile.usable if node.name not in unused]
    names = [node.name for node in usable]
    said = [*map(arguments.invocation.completed, said)]
    if arguments.dialect:
        print("\n".join(said), end="\n" * bool(said), file=sys.stderr)
    if arguments.dialect == "slurm":
        print(
            "\n".join([f"--nodelist={hostfiles.fold(names)}", *hostfiles.slurm_options(hostfile)])
        )
    elif arguments.dialect:
        print(hostfiles.render(usable, arguments.dialect), end="")
    else:
        print(f"{len(names)} of {len(hostfile.nodes)} nodes usable: {hostfiles.fold(names)}")
        print("\n".join(said), end="\n" * bool(said))
        for reason in dict.fromkeys(hostfile.excluded.values()):
            out = [name for name, why in hostfile.excluded.items() if why == reason]
            print(f"excluded {hostfiles.fold(out)} {reason}")
    return 0


def _unused(hostfile: hostfiles.Hostfile) -> tuple[set[str], list[str]]:
    """Return the nodes of a hostfile that the scheduler here gives to nobody, and why.

    None where there is no scheduler. Where it uses none at all, as in maintenance, they may all be
    reached by ssh, and are told only.
    """
    silent = []
    for scheduler in installed():
        try:
            return _unused_by(scheduler, scheduler.queues(_ASKING_S), hostfile)
        except ClustergateError as error:
            if not scheduler.no_system or scheduler.no_system not in str(error):
                silent.append(str(error))
    return set(), silent[:1]


def _unused_by(
    scheduler: Scheduler, queues: Queues, hostfile: hostfiles.Hostfile
) -> tuple[set[str], list[str]]:
    causes: dict[str, str] = {}
    for has in queues.values():
        for listed, why in has.unused.items():
            causes |= dict.fromkeys(hostfiles.expand(listed), why)
    # Either may know a node by a longer name.
    of_short = {name.partition(".")[0]: why for name, why in causes.items()}
    unused = {
        node.name: of_short[short]
        for node in hostfile.usable
        if (short := node.name.partition(".")[0]) in of_short
    }
    said = [
        str(scheduler.not_used(hostfiles.fold(name for name in unused if unused[name] == why), why))
        for why in dict.fromkeys(unused.values())
    ]
    return ({*unused} if len(unused) < len(hostfile.usable) else set()), said
