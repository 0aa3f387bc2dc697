"""A system's nodes, one plain file per system in ``hostfiles/``: which there are, which are out.

The grammar is strict on purpose: names from these files become words of command lines, lines of
job scripts and of the launchers' own hostfiles. What is not a plain node name, date or number is
refused with its line, and never gets that far. Parsing and rendering are pure.

    n[001-256] slots=64 switch=leaf1 rack=a
    exclude n017 2026-11-20 memory errors

Those of launchers are read too: ``c01:4``, ``c01 slots=4 max_slots=8``, and a name a line, as often
as ranks fit there (PBS's nodefile).
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from clustergate.core.model import ClustergateError, require_name
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.paths import site_file
from clustergate.core.reasons import Reason, Words
from clustergate.core.words import FILE_UNREADABLE, INPUT_UNKNOWN_NAME

LARGEST = 1 << 17
"""Nodes that one line may name: n[1-999999999] is a slip, and would fill the memory."""

_RANGE = r"\d+(?:-\d+(?:/\d+)?)?"
_BRACKET = rf"\[{_RANGE}(?:,{_RANGE})*\]"
# One node, or several by ranges in brackets. No other character may occur: ClusterShell would run
# a command for "@group", and a shell would for "$(command)".
_PATTERN = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9._-]|{_BRACKET})*", re.ASCII)
# Open MPI's bound of ranks that it puts there if it is told to oversubscribe: nobody does here.
_MOST = ("max_slots", "max-slots")
_SETTING = re.compile(r"(?P<name>[a-z]+(?:[_-][a-z]+)?)=(?P<value>\S*)")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_REASON = re.compile(r"[A-Za-z0-9 .,:/#+_@-]{1,200}")


class HostfileError(ClustergateError):
    """A hostfile cannot be read, or a line of it is not what it must be."""


@dataclass(frozen=True)
class HostNode:
    """One node: ``slots`` ranks fit on it, ``switch`` and ``rack`` are empty where not told."""

    name: str
    slots: int
    switch: str = ""
    rack: str = ""


@dataclass(frozen=True)
class Exclusion:
    """Why a node takes part in nothing, and since when."""

    since: datetime.date
    reason: str

    def __str__(self) -> str:
        return f"since {self.since.isoformat()}: {self.reason}"


TOO_FEW_NODES = Words(
    "hostfile.too-few-nodes",
    (
        "{count:node|nodes} with {slots:slot|slots} each requested, but only {fitting} of "
        "{nodes} are usable and large enough ({excluded} excluded)"
    ),
)


@dataclass(frozen=True)
class Hostfile:
    """All nodes of a system in the file's order, and those that are excluded, by name."""

    source: str
    nodes: tuple[HostNode, ...]
    excluded: Mapping[str, Exclusion]

    @cached_property
    def usable(self) -> tuple[HostNode, ...]:
        """The nodes that may be used, in the file's order."""
        return tuple(node for node in self.nodes if node.name not in self.excluded)

    def first(self, count: int, slots: int) -> tuple[HostNode, ...]:
        """Return the first ``count`` usable nodes with at least ``slots`` slots each.

        Raises :class:`HostfileError` when there are not as many.
        """
        fitting = [node for node in self.usable if node.slots >= slots]
        if len(fitting) < count:
            raise HostfileError(
                TOO_FEW_NODES(
                    at=self.source,
                    count=count,
                    slots=slots,
                    fitting=len(fitting),
                    nodes=len(self.nodes),
                    excluded=len(self.excluded),
                )
            )
        return tuple(fitting[:count])


def hostfile_path(system: str) -> Path:
    """Return where the hostfile of a system lies, whether it exists or not.

    Raises :class:`BadRequest` for what is no name.
    """
    return site_file("hostfiles", f"{require_name('system', system)}.txt")


NOT_TEXT = Words("file.not-text", "{path} is not a text file", cause="byte {byte} is not UTF-8")


def read_hostfile(path: Path) -> Hostfile:
    """Read a hostfile.

    Raises :class:`HostfileError` that names the line when it cannot be used.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise HostfileError(NOT_TEXT(path=path, byte=error.start)) from None
    except OSError as error:
        raise HostfileError(FILE_UNREADABLE(path=path, why=error)) from None
    return parse_hostfile(text, str(path))


HOSTFILE_EMPTY = Words(
    "hostfile.empty",
    "it lists no node",
    remedy=(
        'a line is "NODES slots=NUMBER [switch=NAME] [rack=NAME]", "exclude NODES YYYY-MM-DD '
        'REASON", or a comment behind #'
    ),
)
EXCLUDED_UNLISTED = Words("hostfile.excluded-unlisted", "{name} is excluded, but no line lists it")
ALL_EXCLUDED = Words("hostfile.all-excluded", "every node is excluded, so none is left to run on")
NO_SLOTS = Words(
    "hostfile.no-slots",
    "nothing says how many ranks fit on {name}",
    remedy="write `{name} slots=CORES`, with the physical cores of the node",
)
TWO_NAMES = Words(
    "hostfile.two-names",
    "{name} is {short} of line {line} by its whole name",
    cause="it would count as two nodes, and be excluded under one name only",
    remedy="list each node once",
)


def parse_hostfile(text: str, source: str) -> Hostfile:
    """Return what a hostfile says; ``source`` names it in messages.

    Raises :class:`HostfileError` that names the line.
    """
    nodes: dict[str, HostNode] = {}
    excluded: dict[str, Exclusion] = {}
    lines: dict[str, int] = {}
    out: dict[str, int] = {}
    bare: dict[str, int] = {}
    # Only a newline ends a line: str.splitlines() knows others, which no editor shows.
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.partition("#")[0].split() if not _is_exclusion(line) else line.split()
        if not words:
            continue
        try:
            if words[0] == "exclude":
                names, exclusion = _exclusion(line, words)
                for name in names:
                    _only_once(name, out, number, "excluded")
                    excluded[name] = exclusion
            else:
                for node in _nodes(words):
                    if not node.slots and (node.name in bare or node.name not in nodes):
                        bare[node.name] = bare.get(node.name, 0) + 1
                        lines.setdefault(node.name, number)
                        nodes[node.name] = node
                        continue
                    _only_once(node.name, lines, number, "listed")
                    nodes[node.name] = node
        except HostfileError as error:
            raise error.at(f"{source}:{number}") from None
    if not nodes:
        raise HostfileError(HOSTFILE_EMPTY(at=source))
    if bare and max(bare.values()) == 1:
        name = next(iter(bare))
        raise HostfileError(NO_SLOTS(name=name)).at(f"{source}:{lines[name]}")
    for name, count in bare.items():
        nodes[name] = HostNode(name, count)
    for name, number in lines.items():
        if (short := name.partition(".")[0]) != name and short in nodes:
            twice = HostfileError(TWO_NAMES(name=name, short=short, line=lines[short]))
            raise twice.at(f"{source}:{number}")
    for name, number in out.items():
        if name not in nodes:
            raise HostfileError(EXCLUDED_UNLISTED(at=f"{source}:{number}", name=name))
    if len(excluded) == len(nodes):
        raise HostfileError(ALL_EXCLUDED(at=source))
    return Hostfile(source, tuple(nodes.values()), excluded)


NODE_NAME = Words(
    "hostfile.node-name",
    "{word} is not a node name",
    cause="use letters, digits, '.', '_' and '-' and ranges n[001-512]",
)
NODE_RANGE = Words("hostfile.node-range", "{word} is not a node name", cause="{why}")
TOO_MANY_NODES = Words("hostfile.too-many-nodes", "{word} names more than {most} nodes")


def expand(nodes: str) -> list[str]:
    """Return the names that a list such as ``n[001-004],login1`` stands for, in its order.

    Raises :class:`HostfileError` for what is not such a list.
    """
    # Only here and below: a driver, which has no list as a rule, would take longer to start.
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    names: list[str] = []
    for pattern in re.split(r",(?![^\[]*\])", nodes):
        if not _PATTERN.fullmatch(pattern):
            raise HostfileError(NODE_NAME(word=_shown(pattern)))
        if _size(pattern) > LARGEST:
            raise HostfileError(TOO_MANY_NODES(word=_shown(pattern), most=LARGEST))
        try:
            names += NodeSet(pattern, resolver=RESOLVER_NOGROUP)
        except NodeSetException as error:
            raise HostfileError(NODE_RANGE(word=_shown(pattern), why=error)) from None
    return names


def fold(names: Iterable[str]) -> str:
    """Return names as ranges, ``n[001-004]``, in the form that Slurm reads as well.

    Raises :class:`HostfileError` for what is no node name.
    """
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    folded = NodeSet.fromlist([_name(name) for name in names], resolver=RESOLVER_NOGROUP)
    # Slurm takes ranges in the last number of a name only.
    folded.fold_axis = (-1,)
    return str(folded)


EXCLUDED_NODE = Words(
    "job.excluded-node",
    "the job was given {host}, which {source} excludes {why}",
    remedy="keep it out by an option of the scheduler",
)


def excluded_among(hostfile: Hostfile, hosts: Iterable[str]) -> list[Reason]:
    """Return a complaint for each host that the hostfile excludes."""
    # The scheduler, or the node itself, may know it by a longer name.
    known = ((host, name) for host in hosts for name in (host, host.partition(".")[0]))
    return [
        EXCLUDED_NODE(
            host=host,
            source=str(hostfile.source),
            why=str(hostfile.excluded[name]),
        )
        for host, name in dict.fromkeys(known)
        if name in hostfile.excluded
    ]


def slurm_options(hostfile: Hostfile) -> list[str]:
    """Return the options by which Slurm keeps out what the hostfile excludes."""
    return [f"--exclude={fold(hostfile.excluded)}"] if hostfile.excluded else []


_DIALECTS = {"openmpi": "{} slots={}\n", "hydra": "{}:{}\n", "mpirun_rsh": "{}:{}\n"}
DIALECTS = (*_DIALECTS, "slurm")


def render(nodes: Sequence[HostNode], dialect: str) -> str:
    """Return the text of a hostfile for a launcher: a line per node, with its slots.

    Raises :class:`HostfileError` for a dialect nobody knows, or a name that is none.
    """
    if dialect not in _DIALECTS:
        known, kind = list(_DIALECTS), "hostfile dialect"
        raise HostfileError(INPUT_UNKNOWN_NAME(kind=kind, name=dialect, known=known))
    return "".join(_DIALECTS[dialect].format(_name(node.name), node.slots) for node in nodes)


def _is_exclusion(line: str) -> bool:
    # A reason may hold a "#": most of them name a ticket.
    return line.split()[:1] == ["exclude"]


NOT_UNDERSTOOD = Words(
    "hostfile.not-understood",
    "{word} is not understood",
    remedy=(
        'a line is "NODES slots=NUMBER [switch=NAME] [rack=NAME]", "exclude NODES YYYY-MM-DD '
        'REASON", or a comment behind #'
    ),
)
HOSTFILE_MISTYPED = Words(
    "hostfile.mistyped",
    "{word} is not understood{meant}",
    remedy=(
        'a line is "NODES slots=NUMBER [switch=NAME] [rack=NAME]", "exclude NODES YYYY-MM-DD '
        'REASON", or a comment behind #'
    ),
)
SETTING_TWICE = Words("hostfile.setting-twice", "{name}= is given twice")
HOSTFILE_SLOTS = Words("hostfile.slots", "slots= must be a number from 1 to 999999, not {word}")
HOSTFILE_LABEL = Words(
    "hostfile.label",
    "{name}= must be a name of letters, digits, '.', '_' and '-', not {word}",
)


def _nodes(words: Sequence[str]) -> list[HostNode]:
    if "=" not in "".join(words) and (meant := nearest(words[0], ["exclude"])):
        raise HostfileError(HOSTFILE_MISTYPED(word=_shown(words[0]), meant=did_you_mean(meant)))
    counted = re.fullmatch(r"([^:]+):([0-9]+)", words[0])
    if counted:
        words = [counted[1], f"slots={counted[2]}", *words[1:]]
    names = expand(words[0])
    settings: dict[str, str] = {}
    for word in words[1:]:
        setting = _SETTING.fullmatch(word)
        if setting is None or setting["name"] not in ("slots", "switch", "rack", *_MOST):
            raise HostfileError(NOT_UNDERSTOOD(word=_shown(word)))
        if setting["name"] in settings:
            raise HostfileError(SETTING_TWICE(name=setting["name"]))
        settings[setting["name"]] = setting["value"]
    for name in _MOST:
        if not re.fullmatch(r"[1-9][0-9]{0,5}", most := settings.pop(name, "1")):
            raise HostfileError(HOSTFILE_SLOTS(word=_shown(most)))
    if len(words) == 1:
        # As often as it stands there.
        return [HostNode(name, 0) for name in names]
    slots = settings.pop("slots", "")
    if not re.fullmatch(r"[1-9][0-9]{0,5}", slots):
        raise HostfileError(HOSTFILE_SLOTS(word=_shown(slots)))
    for name, value in settings.items():
        if not _LABEL.fullmatch(value):
            raise HostfileError(HOSTFILE_LABEL(name=name, word=_shown(value)))
    return [HostNode(name, int(slots), **settings) for name in names]


HOSTFILE_EXCLUSION = Words(
    "hostfile.exclusion",
    "an exclusion needs nodes, a date and a reason",
    remedy=(
        'a line is "NODES slots=NUMBER [switch=NAME] [rack=NAME]", "exclude NODES YYYY-MM-DD '
        'REASON", or a comment behind #'
    ),
)
HOSTFILE_DATE = Words("hostfile.date", "{word} is not a date", remedy="write it as 2026-11-21")
HOSTFILE_REASON = Words(
    "hostfile.reason",
    "the reason {word} may hold letters, digits, spaces and .,:/#+_@- only, at most 200 of them",
)


def _exclusion(line: str, words: Sequence[str]) -> tuple[list[str], Exclusion]:
    if len(words) < 4:
        raise HostfileError(HOSTFILE_EXCLUSION())
    names = expand(words[1])
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", words[2], re.ASCII):
            raise ValueError
        since = datetime.date.fromisoformat(words[2])
    except ValueError:
        raise HostfileError(HOSTFILE_DATE(word=_shown(words[2]))) from None
    reason = " ".join(words[3:])
    if not _REASON.fullmatch(reason):
        raise HostfileError(HOSTFILE_REASON(word=_shown(reason)))
    return names, Exclusion(since, reason)


NODE_TWICE = Words("hostfile.node-twice", "{name} is already {done} in line {line}")


def _only_once(name: str, lines: dict[str, int], number: int, done: str) -> None:
    if name in lines:
        raise HostfileError(NODE_TWICE(name=name, done=done, line=lines[name]))
    lines[name] = number


def _name(name: str) -> str:
    if "[" in name or not _PATTERN.fullmatch(name):
        raise HostfileError(NODE_NAME(word=_shown(name)))
    return name


def _size(pattern: str) -> int:
    """Return an upper bound of the nodes in a pattern, without making them."""
    return math.prod(
        sum(
            int(last or first) - int(first) + 1
            for first, last in re.findall(r"(\d+)(?:-(\d+)(?:/\d+)?)?", bracket)
        )
        for bracket in re.findall(r"\[([^\]]*)\]", pattern)
    )


def _shown(word: str) -> str:
    """Return a word as it may stand in a message: escaped, and not too long."""
    return ascii(word if len(word) <= 60 else word[:57] + "...")
