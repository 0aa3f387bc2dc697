"""Jobs on named nodes that the suite submits to Slurm by itself, and nodes that it keeps for them.

Manual pages: sbatch(1), squeue(1), scancel(1), and of scontrol(1) "create reservation".
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

from clustergate.launch.hostfiles import fold
from clustergate.machine.environment import reaches_slurm
from clustergate.sites.schedulers.scheduler import NodeState, PinnedJob, QueuedJob, answer
from clustergate.sites.schedulers.slurm.commands import NO_ANSWER, answer_of_slurm

# What is planned for a job that cannot begin yet has none, and short jobs begin there.
_IDLE = frozenset({"idle", "planned"})
_BUSY = frozenset({"allocated", "mixed", "completing"})
_DRAINED = ("drain", "drng")


def submit(
    job: PinnedJob, access: Sequence[str], words: Iterable[str], overriding: Collection[str]
) -> str:
    """Submit a job and return its number; raises ClustergateError where Slurm refuses it.

    ``overriding`` are variables that sbatch does not get.
    """
    options = [*access, *(f"--{word}" for word in words)]
    own = [
        *("--parsable", f"--job-name={job.name}", f"--chdir={job.folder}", f"--nice={job.nice}"),
        *(f"--nodes={len(job.nodes)}", f"--nodelist={fold(job.nodes)}", "--exclusive"),
        *(f"--ntasks-per-node={job.tasks_per_node}", f"--time={-(-job.seconds // 60):.0f}"),
        *(f"--output={job.folder}/job.out", f"--error={job.folder}/job.err", "--no-requeue"),
    ]
    # What a surrounding job says of itself is not meant for this one.
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in overriding and (not name.startswith("SLURM_") or reaches_slurm(name))
    }
    said = answer(["sbatch", *options, *own, str(job.script)], NO_ANSWER, env=env)
    return said.strip().partition(";")[0]


def queued(text: str) -> list[QueuedJob]:
    """Return the jobs in lines of squeue (``%i|%j|%T|%r``)."""
    lines = (line.strip().split("|", 3) for line in text.splitlines())
    return [
        QueuedJob(number, name, "" if state not in ("PENDING", "CONFIGURING") else why or state)
        for number, name, state, why in (line for line in lines if len(line) == 4)
    ]


def queued_jobs() -> list[QueuedJob]:
    """Return this user's jobs; raises ClustergateError where Slurm does not answer."""
    return queued(answer_of_slurm(["squeue", "--me", "--noheader", "--format=%i|%j|%T|%r"]))


def cancel(numbers: Iterable[str]) -> None:
    """Cancel jobs by their numbers; raises ClustergateError where Slurm does not answer."""
    answer_of_slurm(["scancel", "--quiet", *numbers])


def states_in(text: str) -> dict[str, NodeState]:
    """Return the state of each node in lines of ``sinfo -N`` (``%N|%T|%E``)."""
    states: dict[str, NodeState] = {}
    for line in text.splitlines():
        name, *rest = line.strip().split("|", 2)
        if len(rest) == 2:
            why = "" if rest[1] == "none" else rest[1]
            state = rest[0]
            drained = state.startswith(_DRAINED)
            states[name] = NodeState(state in _IDLE, state in _BUSY, drained, why)
    return states


def node_states() -> dict[str, NodeState]:
    """Return the state of each node; raises ClustergateError where Slurm does not answer."""
    return states_in(answer_of_slurm(["sinfo", "--all", "-N", "--noheader", "--format=%N|%T|%E"]))


def hold_lines(name: str, node: str, number: str, user: str, seconds: float) -> list[list[str]]:
    """Return the commands that keep a node for a job: nobody else's begins there any more.

    The jobs that run there go on. The reservation ends by itself after so many seconds.
    """
    own = [f"reservationname={name}", f"nodes={node}", f"users={user}", "starttime=now"]
    own += [f"duration={-(-seconds // 60):.0f}", "flags=ignore_jobs"]
    return [
        ["scontrol", "create", "reservation", *own],
        ["scontrol", "update", f"jobid={number}", f"reservationname={name}"],
    ]


def release_line(name: str) -> list[str]:
    """Return the command that gives such a node back."""
    return ["scontrol", "delete", f"reservationname={name}"]
