"""What a job is to launch, as the check writes it down for the driver: ``plan.json``."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, TypeVar

from clustergate.benchmarks.budget import Budget
from clustergate.core.files.stored import decode, encode
from clustergate.core.files.whole import parse_json, read_json
from clustergate.core.model import ClustergateError, Launch
from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.launch.proof.ranks import ProofExpectation
from clustergate.launch.watchdog import Patience
from clustergate.machine.configuration import ConfigurationFile

PLAN = "plan.json"
# What the driver notes of each launch, a line of JSON each.
LOG = "launches.jsonl"
OUTPUT, ERRORS = "stdout", "stderr"
# Variables of a stack that go in front of what the node has.
# Where nodes say of themselves what should stay the same.
NODES = "nodes"
# Where they say what files they have that the ranks of the first node had mapped.
HASHES = "hashes"
IN_FRONT = ("PATH", "LD_LIBRARY_PATH")
_PROOFS = "proof"


class PlanError(ClustergateError):
    """A plan, or what the driver noted of its launches, cannot be read."""


@dataclass(frozen=True)
class Contender:
    """One program with one MPI stack, launched again and again.

    ``launcher`` are the words that start ranks, ``program`` those that each rank runs,
    ``environment`` what the launcher's shell would export (``PATH`` and ``LD_LIBRARY_PATH`` go in
    front of what is there), ``inputs`` the names and texts of files that the program finds in its
    folder. The figures are in ``output``, a file or a pattern of it, or on standard output where
    that is empty. ``proof_library`` is preloaded into the ranks; what ``proves`` nothing is no MPI
    program. It is ended after ``seconds``, where they are given, and where it hangs longer than the
    ``patience`` with it. ``expected`` is what a launch must prove, but for its nonce and its nodes,
    where the study that planned it says so; ``on`` is where it is launched, in the words of that
    study. ``without`` are words left out of the program's: parts of it that are decided.
    """

    name: str
    launcher: Sequence[str]
    program: Sequence[str]
    proof_library: str
    environment: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    output: str = ""
    proves: bool = True
    seconds: float | None = None
    expected: ProofExpectation | None = None
    on: str = ""
    without: tuple[str, ...] = ()
    patience: Patience | None = None


@dataclass(frozen=True)
class Aside:
    """A command that runs before and after all launches, and what it says.

    That is in the files ``NAME-before.jsonl`` and ``NAME-after.jsonl``. Where a ``glance`` tells
    whether it would say the same again, it is run once for all jobs in which ``depends_on`` and the
    node are the same.
    """

    name: str
    command: Sequence[str]
    glance: Sequence[str] = ()
    depends_on: str = ""

    def output(self, when: str) -> str:
        """Return the name of the file with what it said before or after the launches."""
        return f"{self.name}-{when}.jsonl"


@dataclass(frozen=True)
class Plan:
    """All that a job does.

    Each round launches every contender once, in an order that ``seed`` decides. ``reader`` names
    the function that turns the text of an output into rows (``module:function``), for the intervals
    that ``budget.precision`` asks for. What ``asides`` say is ``kept_in`` a folder of the run,
    empty where jobs share nothing. ``core_distance`` is the command that measures how far two
    cores are from each other, between launches. ``nonce`` is a word that no other job has.
    ``on_each_node`` are the words that start a process on each node, none where there is one.
    Where a launcher wants a hostfile and only the scheduler knows the nodes, ``hostfile`` names its
    path, ``hostfile_dialect`` its form and ``ranks_per_node`` its slots. ``decider`` names the
    class (``module:class``), made with the arguments ``deciding``, that says after each round what
    is decided: those of the program's ``parts`` are launched no more.
    """

    nonce: str
    contenders: Sequence[Contender]
    budget: Budget
    seed: int
    asides: Sequence[Aside] = ()
    kept_in: str = ""
    core_distance: Sequence[str] = ()
    on_each_node: Sequence[str] = ()
    reader: str = ""
    hostfile: str = ""
    hostfile_dialect: str = ""
    ranks_per_node: int = 1
    decider: str = ""
    deciding: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[str, ...] = ()


Form = TypeVar("Form", bound=Plan)
"""The plan of a check, or that of a study which says more."""


@dataclass(frozen=True)
class Launched:
    """What was noted of one launch.

    ``turn`` counts the rounds from 0, ``status`` is the exit status of the launcher (negative:
    ended by that signal). ``distances_ns`` are the two round trips between cores, before and after,
    ``waited_s`` is how long it was put off until cores were near. A study of several nodes notes on
    which ``nodes`` it was, and with each launch what it read: the ``values``, or the sentence why
    it ``failed``. ``without`` are the parts that it left out.
    """

    contender: str
    turn: int
    status: int
    launch: Launch
    distances_ns: Sequence[float] = ()
    nodes: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    failed: str = ""
    without: tuple[str, ...] = ()
    waited_s: float = 0.0


def _launched(entry: Mapping[str, Any]) -> Launched:
    # Earlier versions noted a node's boot and processor with each launch.
    launched = decode({k: v for k, v in entry.items() if k != "machine"}, Launched)
    if len(set(launched.nodes)) < len(launched.nodes):
        raise ValueError(f"it names {max(launched.nodes, key=launched.nodes.count)} twice")
    for key, value in launched.values.items():
        if not 0.0 < value < math.inf:
            raise ValueError(f"{key} is {value}")
    return launched


@dataclass(frozen=True)
class Round:
    """What the job's first node went through while the launches of a round ran at once.

    ``distances_ns`` are the round trips between two of its cores, before and after.
    """

    turn: int
    node: Mapping[str, object] = field(default_factory=dict)
    distances_ns: Sequence[float] = ()


@dataclass(frozen=True)
class JobLog:
    """What was noted: the launches in their order, the seconds of what was aside.

    ``hosts`` are the nodes that the scheduler gave to the job, None where none told. ``kept_out``
    are the user's configuration files that no launch saw, ``site_files`` those of the site that the
    launches of each contender could see, by its name, ``mapped`` the files that its ranks had
    mapped (:func:`clustergate.machine.configuration.mapped_files`), ``unlike`` those of them that
    are others on a node, by the name of each that told. ``machine`` is what the first
    node is (:func:`clustergate.machine.node.node_record`), ``rounds`` what it went through where
    launches ran at once. ``names`` are the nodes (or cores) that a study is about, ``notes``
    sentences of its course; ``ended`` tells that it came to its end. ``near_ns`` is the shortest
    usual round trip between two cores that earlier jobs of the run saw on the first node; ``hung``
    has the facts of a launch that was ended because it showed no progress. The job's driver
    ``began`` then, in seconds since the epoch; 0 where earlier versions did not note it.
    """

    launches: Sequence[Launched] = ()
    aside_s: float = 0.0
    hosts: tuple[str, ...] | None = None
    kept_out: tuple[ConfigurationFile, ...] = ()
    site_files: Mapping[str, tuple[ConfigurationFile, ...]] = field(default_factory=dict)
    mapped: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unlike: Mapping[str, Sequence[str]] = field(default_factory=dict)
    machine: Mapping[str, object] = field(default_factory=dict)
    rounds: tuple[Round, ...] = ()
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ended: bool = False
    near_ns: float | None = None
    hung: Mapping[str, Any] = field(default_factory=dict)
    began: float = 0.0

    @property
    def all_site_files(self) -> list[ConfigurationFile]:
        return list(dict.fromkeys(one for files in self.site_files.values() for one in files))

    @property
    def nearest_ns(self) -> float | None:
        """The shortest round trip between two cores, None where none was measured."""
        return min((ns for made in self.launches for ns in made.distances_ns), default=None)

    @property
    def nearest_of_run_ns(self) -> float | None:
        """The same, or what earlier jobs of the run saw on the first node where that is shorter."""
        return min(filter(None, (self.nearest_ns, self.near_ns)), default=None)


def launch_folder(job: Path, order: int) -> Path:
    """Return the folder in which a launch runs and leaves its output."""
    return job / f"launch-{order:03d}"


def output_in(folder: Path, output: str) -> Path:
    """Return what a launch has its figures in: standard output where ``output`` is empty.

    It may be a pattern, such as ``Result_*.txt``, where the program puts the date in.
    """
    written = sorted(folder.glob(output)) if "*" in output else []
    return written[0] if len(written) == 1 else folder / (output or OUTPUT)


def proof_folder(job: Path, order: int) -> Path:
    """Return the folder for the records of a launch's ranks."""
    return job / _PROOFS / f"launch-{order:03d}"


def launch_nonce(plan_nonce: str, order: int) -> str:
    """Return the word by which the ranks of a launch are known."""
    return f"{plan_nonce}-{order}"


def environment_with(
    declared: Mapping[str, str], inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return what is inherited (None: from this process) with what a stack declares."""
    environment = dict(os.environ if inherited is None else inherited)
    for name, value in declared.items():
        behind = environment.get(name, "") if name in IN_FRONT else ""
        environment[name] = f"{value}:{behind}" if behind else value
    return environment


def preloading(proof_library: str, environment: Mapping[str, str]) -> list[str]:
    """Return the words that preload the library which proves a launch, for env(1).

    What the site preloads (``environment`` is that of the launcher) stays, behind it. The second
    word tells the library what was asked for: whatever else it finds preloaded is not.
    """
    # The loader takes spaces for separators here, and finds a bare name by LD_LIBRARY_PATH.
    whole = not re.search(r"\s", proof_library)
    named = proof_library if whole else PurePath(proof_library).name
    asked = ":".join(filter(None, (named, environment.get("LD_PRELOAD"))))
    return [f"LD_PRELOAD={asked}", f"CLUSTERGATE_PRELOAD={asked}"]


def proving(
    job: Path, order: int, nonce: str, proof_library: str, environment: Mapping[str, str]
) -> list[str]:
    """Return the words, for env(1), by which each rank of a launch proves itself.

    ``nonce`` is that of the plan; ``environment`` is that of the launcher.
    """
    return [
        *preloading(proof_library, environment),
        f"CLUSTERGATE_PROOF_DIR={proof_folder(job, order)}",
        f"CLUSTERGATE_PROOF_NONCE={launch_nonce(nonce, order)}",
    ]


def write_plan(job: Path, plan: Plan) -> None:
    (job / PLAN).write_text(json.dumps(encode(plan), indent=1), encoding="utf-8")


OTHER_VERSION = Words(
    "plan.other-version",
    "{path} is not a plan of this version ({why})",
    remedy="run again",
)


def read_plan(path: Path, form: type[Form]) -> Form:
    """Read a plan of that form; raises :class:`PlanError` when it cannot be read."""
    try:
        return decode(read_json(path), form, always=("asides",))
    except OSError as error:
        raise PlanError(FILE_UNREADABLE(path=path, why=error)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise PlanError(OTHER_VERSION(path=path, why=error)) from None


def _files(entries: object) -> tuple[ConfigurationFile, ...]:
    return decode(entries, tuple[ConfigurationFile, ...])


PLAN_DAMAGED_LOG = Words("plan.damaged-log", "not an entry of a launch log ({why})")


def read_log(job: Path) -> JobLog:
    """Return what was noted in the folder of a job; nothing when it never began.

    A last line that was cut off when the job was killed is left out. Raises :class:`PlanError`
    that names the line when another one is damaged.
    """
    path = job / LOG
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return JobLog()
    except (OSError, ValueError) as error:
        raise PlanError(FILE_UNREADABLE(path=path, why=error)) from None
    launches: list[Launched] = []
    orders: set[int] = set()
    rounds: list[Round] = []
    notes: list[str] = []
    aside_s = 0.0
    single: dict[str, Any] = {"site_files": {}, "mapped": {}, "unlike": {}}
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        try:
            entry = parse_json(line)
            if "launch" in entry:
                launches.append(made := _launched(entry))
                if made.launch.order in orders:
                    raise ValueError(f"launch {made.launch.order} stands twice")
                orders.add(made.launch.order)
            elif "aside_s" in entry:
                aside_s += float(entry["aside_s"])
            elif "note" in entry:
                notes.append(str(entry["note"]))
            elif "site_files" in entry:
                single["site_files"][str(entry["contender"])] = _files(entry["site_files"])
                # Earlier versions noted none.
                single["mapped"][str(entry["contender"])] = dict(entry.get("mapped", {}))
                for node, others in entry.get("unlike", {}).items():
                    known = single["unlike"].get(node, ())
                    single["unlike"][str(node)] = tuple(dict.fromkeys([*known, *others]))
            elif "turn" in entry:
                rounds.append(decode(entry, Round))
            else:
                ((kind, content),) = entry.items()
                single[kind] = _SINGLE[kind](content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PlanError(PLAN_DAMAGED_LOG(at=f"{path}:{number}", why=error)) from None
    return JobLog(tuple(launches), aside_s, rounds=tuple(rounds), notes=tuple(notes), **single)


def _names(entries: Iterable[object]) -> tuple[str, ...]:
    return tuple(map(str, entries))


# What is noted once, and how it is read.
_SINGLE: Mapping[str, Callable[[Any], object]] = {
    "hosts": _names,
    "kept_out": _files,
    "machine": dict,
    "names": _names,
    "ended": bool,
    "near_ns": float,
    "hung": dict,
    "began": float,
}


def whole_lines(job: Path) -> None:
    """Cut a last line off the log that was not written to its end, so that more can follow."""
    path = job / LOG
    if path.exists():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with path.open("r+b") as file:
                file.truncate(whole)
