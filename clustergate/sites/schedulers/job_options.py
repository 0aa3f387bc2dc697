"""What a user wants of the scheduler, beside what the site config says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,@+:=-]{0,199}")

NO_WORD = Words("wish.no-word", "{option} takes a single name, not {value!r}")


@dataclass(frozen=True)
class JobOptions:
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
                raise ClustergateError(NO_WORD(option=f"--{name}", value=value))

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self) if getattr(self, field.name))


def words_in(options: Iterable[str]) -> list[str]:
    """Return the words in the options for ReFrame that :meth:`Scheduler.words` gave."""
    option = "--job-option="
    return [one.removeprefix(option) for one in options if one.startswith(option)]
