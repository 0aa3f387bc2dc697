"""What a user wants of the scheduler, beside what the site config says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from clustergate.model import ClustergateError
from clustergate.schedulers import said_by_slurm

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,@+:=-]{0,199}")


@dataclass(frozen=True)
class Wishes:
    """Reservation, QOS and account of all jobs; the only nodes that they may use, and those not.

    Nodes are lists such as ``n[001-064]``. Raises ClustergateError for a word that is none.
    """

    reservation: str = ""
    qos: str = ""
    account: str = ""
    nodes: str = ""
    exclude: str = ""

    def __post_init__(self) -> None:
        for name in ("reservation", "qos", "account"):
            value = getattr(self, name)
            if value and not _WORD.fullmatch(value):
                raise ClustergateError("wish.no-word", option=f"--{name}", value=value)

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self) if getattr(self, field.name))

    @property
    def words(self) -> list[str]:
        """The options of sbatch for those that are words."""
        named = ((name, getattr(self, name)) for name in ("reservation", "qos", "account"))
        return [f"{name}={value}" for name, value in named if value]


def reservations_in(options: Iterable[str]) -> list[str]:
    """Return the reservations that options for ReFrame name."""
    named = (re.fullmatch(r"--job-option=reservation=(.+)", option) for option in options)
    return [one[1] for one in named if one]


def partition_of_access(access: Iterable[str]) -> str:
    """Return the partition that options of sbatch name, empty where they leave it to Slurm."""
    text = " ".join(access)
    partitions = re.findall(r"(?:^|\s)(?:--partition[= ]|-p *)([^\s,]+)", text)
    return str(partitions[-1]) if partitions else ""


def nodes_of_slurm(partition: str = "") -> list[str]:
    """Return the nodes that Slurm knows, or those of a partition; none where it does not say."""
    of = [f"--partition={partition}"] if partition else []
    # Hidden partitions, too.
    command = ["sinfo", "--all", "--noheader", "--Node", "--format=%N", *of]
    return list(dict.fromkeys(said_by_slurm(command).split()))
