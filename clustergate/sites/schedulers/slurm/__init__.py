"""Slurm: by scontrol, sinfo, squeue, sacct and ``sbatch --test-only``."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from clustergate.core.model import ClustergateError, Launch
from clustergate.core.reasons import Reason, Words
from clustergate.core.store import user_name
from clustergate.launch.hostfiles import expand, fold
from clustergate.machine.power import Power
from clustergate.sites.schedulers.job_options import JobOptions
from clustergate.sites.schedulers.scanned import Scanned
from clustergate.sites.schedulers.scheduler import (
    SECONDS,
    Limits,
    NodeState,
    PinnedJob,
    Queue,
    QueuedJob,
    Queues,
    Scheduler,
)
from clustergate.sites.schedulers.slurm import jobs
from clustergate.sites.schedulers.slurm.commands import (
    NO_ANSWER,
    answer_of_slurm,
    output_of_slurm,
    waits_for,
)
from clustergate.sites.schedulers.slurm.energy import boundary_of, powers_of_launches, steps_of
from clustergate.sites.schedulers.slurm.limits import (
    is_in_reservation,
    limits_of,
    note_words,
    within_reservation,
)
from clustergate.sites.schedulers.slurm.nodes import FORMAT, NOT_USED, RESERVED, nodes_in
from clustergate.sites.schedulers.slurm.options import (
    CHOOSING,
    NARROWING,
    OF_THE_USER,
    last_value,
    node_filter,
    partition_of_access,
    refused_by_slurm,
    values_in,
)
from clustergate.sites.schedulers.slurm.scontrol import (
    has_reserved_cores,
    nodes_of,
    partitions_of,
)

# Why Slurm lets a job wait until somebody mends something; ReFrame knows the first only.
NEVER_STARTS = (
    *("ReqNodeNotAvail", "Nodes required for job are DOWN", "PartitionDown", "NodeDown"),
    *("PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints", "InvalidAccount", "InvalidQOS"),
    *("QOSMaxNodePerJobLimit", "QOSMaxWallDurationPerJobLimit", "AssocMaxNodePerJobLimit"),
    *("AssocMaxWallDurationPerJobLimit", "ReservationDeleted"),
)
# What scontrol prints of a topology is of switches or blocks.
_RECORD = re.compile(r"^[ \t]*\w+Name=", re.MULTILINE)

WISH_REFUSED = Words(
    "wish.refused",
    "Slurm refuses jobs in the partition {name} with {options:and}",
    cause="{why}",
    remedy=(
        "`sacctmgr show associations user=$USER format=account,qos%60` lists what you may name, "
        "and without the option your default applies"
    ),
)
RESERVATION_REFUSED = Words(
    "wish.reservation-refused",
    "Slurm gives you no job in the reservation {name}",
    cause="{why}",
    remedy=(
        "`scontrol show reservation {name}` lists its Users and Accounts; an operator adds you "
        "by `scontrol update ReservationName={name} users+=$USER`"
    ),
)


class Slurm(Scheduler):
    """Slurm by itself, or by ``squeue`` where accounting is not to be asked."""

    reframe_names = ("slurm", "squeue")
    command = "sinfo"
    no_system = "Could not establish a configuration source"
    scans = (("scontrol", "show", "node"), ("scontrol", "show", "partition"))
    lists_nodes = pins_jobs = True
    hold_is_gone = "reservation is invalid"
    drain_file = "scontrol.sh"
    takes_free_nodes = True
    no_answer = NO_ANSWER
    queue_word = "partition"
    lists_sizes = (
        "`sinfo --exact --format='%P %D %X %Y'` tells nodes, sockets, and cores of a socket"
    )
    lists_names = "`sinfo -N` lists the names"
    lists_unused = "sinfo -R"
    most_nodes = "MaxNodes"
    narrows = "name them by --nodelist, --exclude, or a --constraint of features joined by & or |"
    job_options = frozenset(JobOptions.__dataclass_fields__)
    # Else Slurm is free to put ranks that should lie apart on one node.
    reframe_options = {"use_nodes_option": True, "slurm_job_cancel_reasons": [*NEVER_STARTS]}

    def limits(self, access: Sequence[str]) -> Limits:
        names = partition_of_access(access), last_value(access, "qos", "q")
        return within_reservation(limits_of(*names))

    def queues(self, seconds: float = SECONDS) -> Queues:
        command = ["sinfo", "--noheader", "--all", "--exact", f"--format={FORMAT}"]
        return nodes_in(answer_of_slurm(command, seconds), reserved=is_in_reservation())

    def not_used(self, nodes: str, causes: str) -> Reason:
        remedy = RESERVED if causes.startswith("maint") else self.repaired(nodes)
        return NOT_USED(nodes=nodes, causes=causes, remedy=remedy)

    def powers(self, job: str, launches: Sequence[Launch]) -> dict[int, Power]:
        boundary = boundary_of(output_of_slurm(["scontrol", "show", "config"]))
        if not boundary:
            return {}
        fields = "--format=JobIDRaw,Start,End,ConsumedEnergyRaw"
        text = output_of_slurm(["sacct", f"--jobs={job}", "--noheader", "--parsable2", fields])
        return powers_of_launches(launches, list(steps_of(text)), boundary)

    def waits_for(self, folder: Path) -> str | None:
        said = output_of_slurm(["squeue", "--me", "--noheader", "--format=%T|%r|%Z"])
        return waits_for(said, folder)

    def topology(self) -> str:
        text = answer_of_slurm(["scontrol", "show", "topology"])
        if text.strip() and not _RECORD.search(text):
            raise ClustergateError(NO_ANSWER(why=f"scontrol printed {text.strip()[:80]!r}"))
        return text

    def submit(self, job: PinnedJob, access: Sequence[str], words: Iterable[str]) -> str:
        named = [*words]
        return jobs.submit(job, access, named, self.overriding(os.environ, named))

    def queued_jobs(self) -> list[QueuedJob]:
        return jobs.queued_jobs()

    def cancel(self, numbers: Sequence[str]) -> None:
        jobs.cancel(numbers)

    def node_states(self) -> dict[str, NodeState]:
        return jobs.node_states()

    def hold_lines(self, name: str, node: str, number: str, seconds: float) -> list[list[str]]:
        return jobs.hold_lines(name, node, number, user_name(), seconds)

    def release_line(self, name: str) -> list[str]:
        return jobs.release_line(name)

    def scanned(self, nodes: str, queues: str) -> Scanned:
        return nodes_of(nodes), partitions_of(queues)

    def says_more(self, command: Sequence[str]) -> str:
        # Of partitions the text says more: which is the default one, and which are hidden.
        as_json = output_of_slurm([*command, "--json"]) if command == self.scans[0] else ""
        return as_json if has_reserved_cores(as_json) else ""

    def choosing(self, features: Sequence[str], others: Sequence[str]) -> str:
        return f"--constraint={'&'.join(features)}" if features else f"--exclude={fold(others)}"

    def access_to(self, queue: str, choosing: str) -> list[str]:
        return [f"--partition={queue}", *filter(None, [choosing]), "--exclusive"]

    def drain_line(self, nodes: Sequence[str], reason: str) -> str:
        words = [f"NodeName={fold(nodes)}", "State=DRAIN", f"Reason={reason}"]
        return shlex.join(["scontrol", "update", *words])

    def resume_line(self, nodes: str) -> str:
        return f"scontrol update nodename={nodes} state=resume"

    def queue_in(self, access: Iterable[str]) -> str:
        return partition_of_access(access)

    def allowed_in(self, queue: Queue, access: Sequence[str]) -> Queue | None:
        if not any(last_value(access, *option) for option in NARROWING):
            return queue
        allows = node_filter(access)
        if allows is None:
            return None
        groups = []
        for group in queue.groups:
            if names := [name for name in expand(group.names) if allows(name, group.features)]:
                groups.append(group._replace(nodes=len(names), names=fold(names)))
        return Queue(groups)

    def given_twice(self, access: Sequence[str]) -> str:
        # Of --exclude there may be several: excluding() joins them.
        options = NARROWING[:2]
        return next((one[0] for one in options if len({*values_in(access, *one)}) > 1), "")

    def completed(self, access: Sequence[str]) -> list[str]:
        # A job that Slurm started again would find the folder of its first start.
        return [*access, "--no-requeue"]

    def excluding(self, access: Sequence[str], names: Iterable[str]) -> list[str]:
        out = {*names}
        if not out and len(values_in(access, "exclude", "x")) < 2:
            return [*access]
        # sbatch takes the last one alone.
        return [*access, f"--exclude={fold(out | self.excluded_by(access))}"]

    def excluded_by(self, access: Sequence[str]) -> set[str]:
        return set().union(*map(expand, values_in(access, "exclude", "x")))

    def words(self, options: JobOptions) -> list[str]:
        named = ((name, getattr(options, name)) for name in ("reservation", "qos", "account"))
        return [f"{name}={value}" for name, value in named if value]

    def require_permitted(self, partition: str, access: Sequence[str], options: JobOptions) -> None:
        words = self.words(options)
        if not words or not (why := refused_by_slurm(access, words)):
            return
        if options.reservation and "reservation" in why:
            raise ClustergateError(RESERVATION_REFUSED(name=options.reservation, why=why))
        refused = [f"--{word}" for word in words]
        raise ClustergateError(WISH_REFUSED(options=refused, name=partition, why=why))

    def note_words(self, words: Iterable[str]) -> None:
        note_words(words)

    def chooses_nodes(self, options: Iterable[str]) -> str:
        # It would stand last and replace what the site config says, and what is kept out.
        chosen = CHOOSING.search("\0".join(options))
        return chosen[1] if chosen else ""

    def overriding(self, environ: Iterable[str], words: Iterable[str]) -> list[str]:
        # By these sbatch passes over what job scripts ask for. Account, QOS and the like stay the
        # user's, but for those that ``words`` name.
        named = {word.partition("=")[0] for word in words}
        kept = {f"SBATCH_{name.upper()}" for name in OF_THE_USER if name not in named}
        return sorted(name for name in environ if name.startswith("SBATCH_") and name not in kept)
