"""The options of sbatch: what they ask for, and what Slurm says of them."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterable

from clustergate.machine.processes import capture
from clustergate.sites.schedulers.scheduler import SECONDS
from clustergate.sites.schedulers.slurm.commands import said_by_slurm

_REFUSAL = re.compile(
    r"(?i)[^:\n]*\b(?:account|accounting|qos|permission|denied)\b.*$", re.MULTILINE
)


def refused_by_slurm(access: Iterable[str], words: Iterable[str]) -> str:
    """Return why Slurm gives this user no job with such options, empty where it does or is silent.

    ``access`` is that of a partition, ``words`` are :meth:`Scheduler.words`.
    """
    options = [*shlex.split(" ".join(access)), *(f"--{word}" for word in words)]
    try:
        ended = capture(["sbatch", "--test-only", *options, "--wrap=true"], timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    # That there is no room now is another matter.
    said = _REFUSAL.findall(ended.stderr) if ended.returncode else []
    return str(said[-1]).strip() if said else ""


_CHOOSING = re.compile(
    r"(?:^|\0)(?:-J\0?|--job-option[=\0])(?:#\w+ +)?(-{0,2}(?:exclude|x|nodelist|w|partition|p))"
    r"(?=[ =\0]|$)"
)


def chooses_nodes(options: Iterable[str]) -> str:
    """Return which option of sbatch among those for ReFrame chooses nodes, empty where none does.

    It would stand last and replace what the site config says, and what is kept out.
    """
    chosen = _CHOOSING.search("\0".join(options))
    return chosen[1] if chosen else ""


# Which of these there may be depends on the user.
_OF_THE_USER = ("account", "qos", "reservation", "wckey")


def overriding(environ: Iterable[str], words: Iterable[str]) -> list[str]:
    """Return the variables by which sbatch passes over what job scripts ask for, sbatch(1).

    Account, QOS and the like stay the user's, but for those that ``words`` name.
    """
    named = {word.partition("=")[0] for word in words}
    kept = {f"SBATCH_{name.upper()}" for name in _OF_THE_USER if name not in named}
    return sorted(name for name in environ if name.startswith("SBATCH_") and name not in kept)


def partition_of_access(access: Iterable[str]) -> str:
    """Return the partition that options of sbatch name, empty where they leave it to Slurm."""
    return last_in(access, "partition", "p").partition(",")[0]


def qos_of_access(access: Iterable[str]) -> str:
    """Return the QOS that options of sbatch name, empty where they leave it to Slurm."""
    return last_in(access, "qos", "q")


def last_in(access: Iterable[str], long: str, short: str) -> str:
    """Return what the last of them says, which counts, empty where there is none."""
    return ["", *values_in(access, long, short)][-1]


def values_in(access: Iterable[str], long: str, short: str) -> list[str]:
    """Return all that one option of sbatch says, by either of its names."""
    option = rf"(?:^|\s)(?:--{long}[= ]|-{short} *)[\"']?([^\s\"']+)"
    return list(map(str, re.findall(option, " ".join(access))))


def nodes_of_slurm(
    partition: str = "", allows: Callable[[str, str], bool] | None = None
) -> list[str]:
    """Return the nodes that Slurm knows, or those of a partition; none where it does not say.

    ``allows`` takes those that count, by their names and features.
    """
    of = [f"--partition={partition}"] if partition else []
    # Hidden partitions, too.
    command = ["sinfo", "--all", "--noheader", "--Node", "--format=%N|%f", *of]
    lines = (line.partition("|") for line in said_by_slurm(command).split())
    return list(dict.fromkeys(n for n, _, having in lines if not allows or allows(n, having)))
