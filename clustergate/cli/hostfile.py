"""``clustergate hostfile``: check a hostfile, or print it for a launcher or for Slurm."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from clustergate.cli.passing_on import option
from clustergate.launching import hostfiles
from clustergate.model import is_name
from clustergate.paths import site_folder, suite_folder
from clustergate.sites.configs import site_files
from clustergate.wording.notation import did_you_mean, nearest

DESCRIPTION = (
    "Check and summarize a hostfile, or print its usable nodes in the format that "
    "a launcher reads. hostfiles/template.txt explains the format."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "file", "a file, or the name of a system in hostfiles/")
    option(
        parser,
        "--for",
        "Open MPI's mpirun, MPICH's or Intel MPI's Hydra, MVAPICH2's mpirun_rsh, Slurm",
        dest="dialect",
        choices=hostfiles.DIALECTS,
    )


def run(arguments: argparse.Namespace) -> int:
    path = Path(arguments.file)
    if is_name(arguments.file):
        named = hostfiles.hostfile_path(arguments.file)
        path = named if os.path.lexists(named) else path
    if not os.path.lexists(path):
        template = suite_folder("hostfiles") / "template.txt"
        if arguments.file in {path.stem for path in site_files()}:
            facts = {"path": hostfiles.hostfile_path(arguments.file), "template": template}
            raise hostfiles.HostfileError("hostfile.none", name=arguments.file, **facts)
        folder = site_folder() / "hostfiles"
        raise hostfiles.HostfileError(
            "hostfile.unknown",
            folder=folder,
            name=arguments.file,
            meant=did_you_mean(nearest(arguments.file, [f.stem for f in folder.glob("*.txt")])),
            template=template,
        )
    hostfile = hostfiles.read_hostfile(path)
    names = [node.name for node in hostfile.usable]
    if arguments.dialect == "slurm":
        print(
            "\n".join([f"--nodelist={hostfiles.fold(names)}", *hostfiles.slurm_options(hostfile)])
        )
    elif arguments.dialect:
        print(hostfiles.render(hostfile.usable, arguments.dialect), end="")
    else:
        print(f"{len(names)} of {len(hostfile.nodes)} nodes usable: {hostfiles.fold(names)}")
        for reason in dict.fromkeys(hostfile.excluded.values()):
            out = [name for name, why in hostfile.excluded.items() if why == reason]
            print(f"excluded {hostfiles.fold(out)} {reason}")
    return 0
