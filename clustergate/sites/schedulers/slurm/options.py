"""The options of sbatch: what they ask for, which nodes they allow, and what Slurm says of them."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence

from clustergate.launch.hostfiles import HostfileError, expand
from clustergate.machine.processes import capture
from clustergate.sites.schedulers.scheduler import SECONDS

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


CHOOSING = re.compile(
    r"(?:^|\0)(?:-J\0?|--job-option[=\0])(?:#\w+ +)?(-{0,2}(?:exclude|x|nodelist|w|partition|p))"
    r"(?=[ =\0]|$)"
)
# Which of these there may be depends on the user.
OF_THE_USER = ("account", "qos", "reservation", "wckey")
Allows = Callable[[str, str], bool]
"""Tells of a node, by its name and its features as sinfo lists them, whether a job may get it."""
# Features that a node has all of, or one of: what sbatch(1) allows beside that, Slurm alone tells.
_FEATURE = r"[\w.:+-]+"
_CONSTRAINT = re.compile(rf"({_FEATURE}(&{_FEATURE})*|{_FEATURE}(\|{_FEATURE})*)?")
NARROWING = (("constraint", "C"), ("nodelist", "w"), ("exclude", "x"))


def node_filter(access: Sequence[str]) -> Allows | None:
    """Return which nodes some options of sbatch allow, None where Slurm alone can tell."""
    constraint, only = (last_value(access, *option) for option in NARROWING[:2])
    out = ",".join(values_in(access, *NARROWING[2]))
    try:
        wanted, unwanted = (set(expand(names)) if names else set() for names in (only, out))
    except HostfileError:
        return None
    if not _CONSTRAINT.fullmatch(constraint):
        return None
    sets = [{*filter(None, one.split("&"))} for one in constraint.split("|")]

    def allows(name: str, features: str) -> bool:
        has = features.split(",")
        named = (not wanted or name in wanted) and name not in unwanted
        return named and any(one.issubset(has) for one in sets)

    return allows


def partition_of_access(access: Iterable[str]) -> str:
    """Return the partition that options of sbatch name, empty where they leave it to Slurm."""
    return last_value(access, "partition", "p").partition(",")[0]


def last_value(access: Iterable[str], long: str, short: str) -> str:
    """Return what the last of them says, which counts, empty where there is none."""
    return ["", *values_in(access, long, short)][-1]


def values_in(access: Iterable[str], long: str, short: str) -> list[str]:
    """Return all that one option of sbatch says, by either of its names."""
    option = rf"(?:^|\s)(?:--{long}[= ]|-{short} *)[\"']?([^\s\"']+)"
    return list(map(str, re.findall(option, " ".join(access))))
