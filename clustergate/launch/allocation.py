"""Which nodes the scheduler gave to the job, as it tells the job's first node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.launch.hostfiles import HostNode, expand, render


def allocated_hosts(environ: Mapping[str, str]) -> list[str] | None:
    """Return the nodes of the job, each once, in the scheduler's order; None where none is told.

    Slurm says it in SLURM_JOB_NODELIST, PBS and Torque in the file PBS_NODEFILE, LSF in
    LSB_MCPU_HOSTS. Raises an error for what is no list of nodes.
    """
    if nodes := environ.get("SLURM_JOB_NODELIST", ""):
        return expand(nodes)
    if path := environ.get("PBS_NODEFILE", ""):
        try:
            return list(dict.fromkeys(Path(path).read_text(encoding="utf-8").split()))
        except OSError as error:
            named = f"PBS_NODEFILE {path}"
            raise ClustergateError(FILE_UNREADABLE(path=named, why=error)) from None
    if words := environ.get("LSB_MCPU_HOSTS", "").split():
        return words[::2]
    return None


NO_HOSTFILE = Words(
    "allocation.no-hostfile",
    (
        "the launcher needs a hostfile, but no scheduler names the nodes of this job (Slurm, PBS "
        "and LSF do)"
    ),
    remedy="use the launcher clustergate-ssh and a hostfile of the system",
)


def hostfile_text(hosts: list[str] | None, ranks_per_node: int, dialect: str) -> str:
    """Return the launcher's hostfile for the nodes of the job.

    Raises :class:`ClustergateError` when nobody told which these are.
    """
    if hosts is None:
        raise ClustergateError(NO_HOSTFILE())
    return render([HostNode(host, ranks_per_node) for host in hosts], dialect)
