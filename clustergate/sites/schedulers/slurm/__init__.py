"""Slurm: by scontrol, sinfo, squeue, sacct and ``sbatch --test-only``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from clustergate.core.model import ClustergateError, Launch
from clustergate.core.reasons import Reason, Words
from clustergate.launch.hostfiles import fold
from clustergate.machine.power import Power
from clustergate.sites.schedulers.scanned import ScannedNode, ScannedQueue
from clustergate.sites.schedulers.scheduler import SECONDS, Limits, Queue, Queues, Scheduler
from clustergate.sites.schedulers.slurm.access import (
    allowed_in,
    allowing,
    excluded_by,
    excluding,
    given_twice,
)
from clustergate.sites.schedulers.slurm.commands import NO_ANSWER, answer_of_slurm, said_by_slurm
from clustergate.sites.schedulers.slurm.energy import ask
from clustergate.sites.schedulers.slurm.limits import limits_of, note_words, within_reservation
from clustergate.sites.schedulers.slurm.nodes import (
    nodes_of_partitions,
    not_used,
    notes_of_slurm,
    resume_line,
)
from clustergate.sites.schedulers.slurm.options import (
    chooses_nodes,
    nodes_of_slurm,
    overriding,
    partition_of_access,
    qos_of_access,
    refused_by_slurm,
)
from clustergate.sites.schedulers.slurm.queue import asked_in_slurm
from clustergate.sites.schedulers.slurm.scontrol import (
    has_reserved_cores,
    nodes_of,
    partitions_of,
)
from clustergate.sites.schedulers.wishes import Wishes

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
    lists_nodes = True
    drain_file = "scontrol.sh"
    takes_free_nodes = True
    no_answer = NO_ANSWER
    queue_word = "partition"
    lists_sizes = (
        "`sinfo --exact --format='%P %D %X %Y'` tells nodes, sockets, and cores of a socket"
    )
    lists_names = "`sinfo -N` lists the names"
    most_nodes = "MaxNodes"
    narrows = "name them by --nodelist, --exclude, or a --constraint of features joined by & or |"
    job_options = frozenset(Wishes.__dataclass_fields__)
    # Else Slurm is free to put ranks that should lie apart on one node.
    reframe_options = {"use_nodes_option": True, "slurm_job_cancel_reasons": [*NEVER_STARTS]}

    def limits(self, access: Sequence[str]) -> Limits:
        names = partition_of_access(access), qos_of_access(access)
        return within_reservation(limits_of(*names))

    def queues(self, seconds: float = SECONDS) -> Queues:
        return nodes_of_partitions(seconds)

    def node_names(self, access: Sequence[str] = ()) -> list[str]:
        allows = allowing(access) if access else None
        return nodes_of_slurm(partition_of_access(access), allows)

    def unused_notes(self) -> list[str]:
        return notes_of_slurm()

    def not_used(self, nodes: str, causes: str) -> Reason:
        return not_used(nodes, causes)

    def powers(self, job: str, launches: Sequence[Launch]) -> dict[int, Power]:
        return ask(job, launches)

    def waits_for(self, folder: Path) -> str | None:
        return asked_in_slurm(folder)

    def topology(self) -> str:
        text = answer_of_slurm(["scontrol", "show", "topology"])
        if text.strip() and not _RECORD.search(text):
            raise ClustergateError(NO_ANSWER(why=f"scontrol printed {text.strip()[:80]!r}"))
        return text

    def scanned(
        self, nodes: str, queues: str
    ) -> tuple[Mapping[str, ScannedNode], list[ScannedQueue]]:
        return nodes_of(nodes), partitions_of(queues)

    def says_more(self, command: Sequence[str]) -> str:
        # Of partitions the text says more: which is the default one, and which are hidden.
        as_json = said_by_slurm([*command, "--json"]) if command == self.scans[0] else ""
        return as_json if has_reserved_cores(as_json) else ""

    def choosing(self, features: Sequence[str], others: Sequence[str]) -> str:
        return f"--constraint={'&'.join(features)}" if features else f"--exclude={fold(others)}"

    def access_to(self, queue: str, choosing: str) -> list[str]:
        return [f"--partition={queue}", *filter(None, [choosing]), "--exclusive"]

    def drain_line(self, nodes: Sequence[str], reason: str) -> str:
        words = [f"NodeName={fold(nodes)}", "State=DRAIN", f"Reason={reason}"]
        return shlex.join(["scontrol", "update", *words])

    def resume_line(self, nodes: str) -> str:
        return resume_line(nodes)

    def queue_in(self, access: Iterable[str]) -> str:
        return partition_of_access(access)

    def allowed_in(self, queue: Queue, access: Sequence[str]) -> Queue | None:
        return allowed_in(queue, access)

    def given_twice(self, access: Sequence[str]) -> str:
        return given_twice(access)

    def completed(self, access: Sequence[str]) -> list[str]:
        # A job that Slurm started again would find the folder of its first start.
        return [*access, "--no-requeue"]

    def excluding(self, access: Sequence[str], names: Iterable[str]) -> list[str]:
        return excluding(access, names)

    def excluded_by(self, access: Sequence[str]) -> set[str]:
        return excluded_by(access)

    def words(self, wishes: Wishes) -> list[str]:
        named = ((name, getattr(wishes, name)) for name in ("reservation", "qos", "account"))
        return [f"{name}={value}" for name, value in named if value]

    def require_permitted(self, partition: str, access: Sequence[str], wishes: Wishes) -> None:
        words = self.words(wishes)
        if not words or not (why := refused_by_slurm(access, words)):
            return
        if wishes.reservation and "reservation" in why:
            raise ClustergateError(RESERVATION_REFUSED(name=wishes.reservation, why=why))
        refused = [f"--{word}" for word in words]
        raise ClustergateError(WISH_REFUSED(options=refused, name=partition, why=why))

    def note_words(self, words: Iterable[str]) -> None:
        note_words(words)

    def chooses_nodes(self, options: Iterable[str]) -> str:
        return chooses_nodes(options)

    def overriding(self, environ: Iterable[str], words: Iterable[str]) -> list[str]:
        return overriding(environ, words)
