"""Which nodes of its partition `access` of a site config allows jobs, as far as that tells it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from clustergate.launch.hostfiles import HostfileError, expand, fold
from clustergate.sites.schedulers.scheduler import Queue
from clustergate.sites.schedulers.slurm.options import last_in, values_in

Allows = Callable[[str, str], bool]
"""Tells of a node, by its name and its features as sinfo lists them, whether a job may get it."""
# Features that a node has all of, or one of: what sbatch(1) allows beside that, Slurm alone tells.
_FEATURE = r"[\w.:+-]+"
_CONSTRAINT = re.compile(rf"({_FEATURE}(&{_FEATURE})*|{_FEATURE}(\|{_FEATURE})*)?")
_NARROWING = (("constraint", "C"), ("nodelist", "w"), ("exclude", "x"))


def allowing(access: Sequence[str]) -> Allows | None:
    """Return which nodes some options of sbatch allow, None where Slurm alone can tell."""
    constraint, only = (last_in(access, *option) for option in _NARROWING[:2])
    out = ",".join(values_in(access, *_NARROWING[2]))
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


def allowed_in(partition: Queue, access: Sequence[str]) -> Queue | None:
    """Return what Slurm has of a partition for such jobs, None where it alone can tell."""
    if not any(last_in(access, *option) for option in _NARROWING):
        return partition
    allows = allowing(access)
    if allows is None:
        return None
    lines = []
    for line in partition.groups:
        names = [name for name in expand(line.names) if allows(name, line.features)]
        if names:
            lines.append(line._replace(nodes=len(names), names=fold(names)))
    return Queue(lines)


def excluding(access: Sequence[str], names: Iterable[str]) -> list[str]:
    """Return options of sbatch that keep nodes out beside those that they keep out already.

    It takes the last ``--exclude`` alone. Raises :class:`HostfileError` where one names a file.
    """
    out = {*names}
    if not out and len(values_in(access, "exclude", "x")) < 2:
        return [*access]
    return [*access, f"--exclude={fold(out | excluded_by(access))}"]


def excluded_by(access: Sequence[str]) -> set[str]:
    """Return the nodes that options of sbatch exclude; raises as :func:`excluding` does."""
    return set().union(*map(expand, values_in(access, "exclude", "x")))


def given_twice(access: Sequence[str]) -> str:
    """Return the option that narrows the nodes and stands there with two values, of which sbatch
    takes the last; empty where there is none, as of ``--exclude``, which :func:`excluding` merges.
    """
    twice = (long for long, short in _NARROWING[:2] if len({*values_in(access, long, short)}) > 1)
    return next(twice, "")
