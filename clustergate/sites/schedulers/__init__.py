"""Schedulers, one file or package each: to add one, write it and name it in :data:`SCHEDULERS`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from clustergate.sites.schedulers.flux import Flux
from clustergate.sites.schedulers.local import Local
from clustergate.sites.schedulers.pbs import Pbs
from clustergate.sites.schedulers.scheduler import Scheduler
from clustergate.sites.schedulers.slurm import Slurm

__all__ = [
    "NO_ANSWERS",
    "SCHEDULERS",
    "Limits",
    "Scheduler",
    "chooses_nodes",
    "installed",
    "note_words",
    "scheduler_of",
]

SCHEDULERS: tuple[Scheduler, ...] = (Slurm("Slurm"), Pbs("PBS"), Flux("Flux"), Local("local"))
"""Those of which the suite knows more than ReFrame does."""
_BY_NAME = {name: one for one in SCHEDULERS for name in one.reframe_names}
NO_ANSWERS = frozenset(one.no_answer.code for one in SCHEDULERS if one.no_answer)
"""The codes of reasons that a scheduler could not be asked."""


def scheduler_of(name: str) -> Scheduler:
    """Return the scheduler that a partition of the site config names."""
    return _BY_NAME.get(name) or Scheduler(name)


def installed() -> list[Scheduler]:
    """Return those whose commands are on PATH."""
    return [one for one in SCHEDULERS if one.command and shutil.which(one.command)]


def chooses_nodes(options: Iterable[str]) -> str:
    """Return which of the options for ReFrame replaces a job's nodes, empty if none does.

    It would stand last and replace what the site config says, and what is kept out.
    """
    given = [*options]
    return next(filter(None, (one.chooses_nodes(given) for one in SCHEDULERS)), "")


def note_words(words: Iterable[str]) -> None:
    """Let all jobs of this process be limited as options of theirs demand.

    Raises :class:`ClustergateError` for a reservation that is not there.
    """
    for scheduler in SCHEDULERS:
        scheduler.note_words(words)
