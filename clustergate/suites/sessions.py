"""What a session of ReFrame left, whatever file it stands in. Pure."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clustergate.core.files.stored import decode, encode
from clustergate.core.files.whole import parse_json
from clustergate.core.model import BadRequest, Launch
from clustergate.core.reasons import Reason, Words

PROOF = "clustergate_proof"
"""The variable of a test in which its report keeps what its ranks proved."""
KEPT = "rank-proof/kept"
"""Of a test's stage and output folders, for what is kept of its ranks and its nodes."""

SUITE_UNREADABLE = Words(
    "suite.unreadable",
    "{path} cannot be read as {form} of ReFrame: {why}",
    remedy="see that ReFrame ended and wrote it; what is damaged for good, move away",
)
SUITE_VERSION = Words(
    "suite.version",
    "{path} is of version {found} of {form}, and known are {known}",
    remedy="read report files of ReFrame 4.6 to 4.10, or update clustergate",
)


class SuiteError(BadRequest):
    """A file of a suite that cannot be read, or holds nothing to be judged."""


class NoReport(SuiteError):
    """A file that is whole, and of some other program."""


@dataclass(frozen=True)
class Value:
    """A performance variable of a test, as it was logged.

    ``lower`` and ``upper`` are the bounds of the test's own reference, as fractions, None for none.
    """

    name: str
    value: float
    unit: str
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Proven:
    """What the launches of a test proved, as ReFrame's report keeps it.

    ``launches`` tell what disturbed them, ``values`` the variables of each where there are several,
    by name. ``unproven`` is why nothing is claimed, ``complaints`` and ``details`` are those of a
    :class:`~clustergate.core.model.CaseRecord`.
    """

    launches: tuple[Launch, ...] = ()
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    unproven: tuple[Reason, ...] = ()
    complaints: tuple[Reason, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_proven(self) -> bool:
        """Whether all that was asked for was seen."""
        return bool(self.launches) and not (self.unproven or self.complaints)


def as_text(proven: Proven) -> str:
    """Return what a report keeps, in a line without what divides the columns of a log."""
    return json.dumps(encode(proven)).replace("|", "\\u007c")


def from_text(text: str) -> Proven | None:
    """Return what :func:`as_text` wrote, None for nothing; raises ValueError for what it is not."""
    return decode(parse_json(text), Proven) if text else None


@dataclass(frozen=True)
class Result:
    """A test that ended in a session, on one partition with one environment.

    ``parameters`` are those of its name, as text. ``attempt`` counts ReFrame's retries from 0,
    ``repeat`` its repetitions. ``node`` is the one that ``--distribute`` pinned it to.
    ``completed`` and ``seconds`` are of its job, in seconds; the first since the epoch. ``proof``
    is what its ranks proved, None where nobody asked them.
    """

    test: str
    parameters: str
    system: str
    partition: str
    environ: str
    result: str
    values: tuple[Value, ...] = ()
    nodes: tuple[str, ...] = ()
    tasks: int = 1
    attempt: int = 0
    repeat: int = 0
    node: str = ""
    phase: str = ""
    reason: str = ""
    hash: str = ""
    file: str = ""
    exclusive: bool = False
    completed: float = 0.0
    seconds: float = 0.0
    proof: Proven | None = None


@dataclass(frozen=True)
class Session:
    """A session of ReFrame: ``started`` has a zone, ``configs`` are its configuration files."""

    session_id: str
    started: datetime.datetime
    results: Sequence[Result]
    ended: datetime.datetime | None = None
    configs: tuple[str, ...] = ()
    source: str = field(default="", compare=False)


@dataclass(frozen=True)
class Kept:
    """A session that is stored and not read yet; ``started`` is in seconds since the epoch.

    ``read`` raises :class:`SuiteError`.
    """

    session_id: str
    started: float
    read: Callable[[], Session]

    @classmethod
    def of(cls, session: Session) -> Kept:
        """Return one that is read already."""
        return cls(session.session_id, session.started.timestamp(), lambda: session)


_PARAMETER = re.compile(r" %(?=[\w.$]+=)")
# What ReFrame adds to a test by itself: --repeat, and --distribute.
_REPEAT, _NODE, _PART = (".repeat_no", "$repeat_no"), (".nid", "$nid"), (".part", "$part")


def named(name: str) -> tuple[str, str, int, str]:
    """Return test, parameters, repetition and pinned node of a test's name.

    ReFrame writes ``stream %threads=4 %.repeat_no=1``.
    """
    test, *pairs = _PARAMETER.split(name)
    repeat, node, own = 0, "", []
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key in _REPEAT and value.isdigit():
            repeat = int(value)
        elif key in _NODE:
            node = re.sub(r"[\[\]'\" ]", "", value)
        elif key not in _PART:
            own.append(pair)
    return test, " ".join(own), repeat, node
