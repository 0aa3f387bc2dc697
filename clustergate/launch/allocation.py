"""Which nodes the scheduler gave to the job, as it tells the job's first node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.launch.hostfiles import HostNode, expand, render


def _of_slurm(environ: Mapping[str, str]) -> list[str]:
    return expand(nodes) if (nodes := environ.get("SLURM_JOB_NODELIST", "")) else []


def _of_pbs(environ: Mapping[str, str]) -> list[str]:
    """Return the nodes in the file PBS_NODEFILE of PBS and Torque: one line for each rank."""
    path = environ.get("PBS_NODEFILE", "")
    try:
        return Path(path).read_text(encoding="utf-8").split() if path else []
    except OSError as error:
        raise ClustergateError(FILE_UNREADABLE(path=f"PBS_NODEFILE {path}", why=error)) from None


def _of_lsf(environ: Mapping[str, str]) -> list[str]:
    return environ.get("LSB_MCPU_HOSTS", "").split()[::2]


_BY_JOB: dict[str, Callable[[Mapping[str, str]], list[str]] | None] = {
    "SLURM_JOB_ID": _of_slurm,
    "PBS_JOBID": _of_pbs,
    "LSB_JOBID": _of_lsf,
    "FLUX_JOB_ID": None,
    # Cobalt, OAR, Fujitsu's, LoadLeveler and SGE.
    **dict.fromkeys(("COBALT_JOBID", "OAR_JOB_ID", "PJM_JOBID", "LOADL_STEP_ID", "SGE_TASK_ID")),
}
"""How a job learns its nodes, by the variable that tells that it is one: a line a scheduler.

It is not told by the classes in :mod:`clustergate.sites.schedulers`: a job's driver, which asks
here, stands below them, and starts without reading a site config.
"""
BATCH_JOB = tuple(_BY_JOB)


def allocated_hosts(environ: Mapping[str, str]) -> list[str] | None:
    """Return the nodes of the job, each once, in the scheduler's order; None where none is told.

    Raises an error for what is no list of nodes.
    """
    of_each = (hosts(environ) for hosts in _BY_JOB.values() if hosts)
    return next((list(dict.fromkeys(hosts)) for hosts in of_each if hosts), None)


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
