"""What the job of a screening does, as the check writes it down for the driver, and its results."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clustergate.model import ClustergateError
from clustergate.screening.measures import Result

PLAN = "screening.json"
RESULTS = "results.jsonl"

HOSTFILE, NODES, CPUS = "{hostfile}", "{nodes}", "{cpus}"
"""What stands in a command for the hostfile, the nodes (comma between) and the CPUs of a launch."""


class PlanError(ClustergateError):
    """A plan, or what was noted of its launches, cannot be read."""


@dataclass(frozen=True)
class Order:
    """One program to launch on a node, or on a pair.

    ``kind`` says how its output is read: ``peaks``, ``hpl`` or ``pingpong``. ``launcher`` are the
    words that start it, ``program`` those that each rank runs; :data:`HOSTFILE`, :data:`NODES` and
    :data:`CPUS` in them are replaced. ``inputs`` are names and texts of files that it finds in its
    folder. It is ended after ``seconds``. ``ranks`` are MPI processes in all, 0 for a program
    without MPI, which proves itself by the name of its host in its first line. ``bound`` says
    whether each rank must be bound to its cores.
    """

    kind: str
    launcher: Sequence[str]
    program: Sequence[str]
    seconds: float
    ranks: int = 0
    cores_per_rank: int = 1
    bound: bool = True
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Identity:
    """What a launch must prove of its MPI library (:mod:`clustergate.proof.ranks`)."""

    mpi_library: str
    library_pattern: str
    proof_library: str


AT_ONCE = 256
"""Launches at a time, where nobody says otherwise: each is a process of the job's first node."""


@dataclass(frozen=True)
class Plan:
    """All that the job of a screening does.

    ``system`` is screened. ``nodes`` are names; of a ``scheduled`` job only those that were given
    to it, all of them where none are named. ``expected`` is how many nodes there should be.
    ``slots`` is how many ranks a node takes, ``switches`` the switch of each node where all are
    known, ``excluded`` why others take no part. ``what`` says what is screened: nodes, or the cores
    of one. ``alone`` runs on every one of them, ``pair`` on two; ``whole`` on the node whose cores
    are screened. ``rounds`` None stands for all pairs. ``seconds`` is what all of it may take, and
    ``most_further`` how often doubts may be measured again. ``at_once`` bounds the launches at a
    time. ``by_srun`` says that srun starts the ranks. ``hostfile_dialect`` is that of
    :func:`clustergate.launching.hostfiles.render`.
    """

    nonce: str
    system: str
    nodes: Sequence[str]
    slots: int
    identity: Identity
    alone: Sequence[Order]
    pair: Order | None
    seed: int
    seconds: float
    what: str = "node"
    whole: Sequence[Order] = ()
    scheduled: bool = False
    expected: int = 0
    rounds: int | None = None
    most_further: int = 24
    at_once: int = AT_ONCE
    by_srun: bool = False
    hostfile_dialect: str = "hydra"
    switches: Mapping[str, str] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def write_plan(job: Path, plan: Plan) -> None:
    """Write a plan into the folder of a job."""
    (job / PLAN).write_text(json.dumps(dataclasses.asdict(plan), indent=1), encoding="utf-8")


def read_plan(path: Path) -> Plan:
    """Read a plan; raises :class:`PlanError` when it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        for orders in ("alone", "whole"):
            content[orders] = [Order(**entry) for entry in content[orders]]
        content["pair"] = Order(**content["pair"]) if content["pair"] else None
        content["identity"] = Identity(**content["identity"])
        return Plan(**content)
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise PlanError(f"{path} is no plan of this version ({error!r}); screen again") from None


@dataclass(frozen=True)
class Log:
    """What was noted so far: who was screened, what each launch left behind, how it went.

    ``notes`` are sentences, such as why not all rounds were done; ``ended`` tells that the driver
    came to its end.
    """

    names: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    whole: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()
    ended: bool = False


def read_log(path: Path) -> Log:
    """Return what is noted in a file of results; nothing when there is none.

    A last line that was cut off when the job was killed is left out. Raises :class:`PlanError`
    that names the line when another one is damaged.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Log()
    except (OSError, ValueError) as error:
        raise PlanError(f"{path} cannot be read: {error}") from None
    names: tuple[str, ...] = ()
    found: dict[str, list[Result]] = {"result": [], "whole": []}
    notes: list[str] = []
    ended = False
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        try:
            ((kind, entry),) = json.loads(line).items()
            if kind == "names":
                names = tuple(map(str, entry))
            elif kind == "note":
                notes.append(str(entry))
            elif kind == "ended":
                ended = bool(entry)
            else:
                found[kind].append(Result(**{**entry, "nodes": tuple(entry["nodes"])}))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PlanError(f"{path}:{number}: no result is noted here ({error!r})") from None
    return Log(names, tuple(found["result"]), tuple(found["whole"]), tuple(notes), ended)


def whole_lines(path: Path) -> None:
    """Cut a last line off that was not written to its end, so that more can be appended."""
    if path.exists():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with path.open("r+b") as file:
                file.truncate(whole)


def line_of(kind: str, entry: object) -> str:
    """Return a line of the file of results."""
    content = dataclasses.asdict(entry) if isinstance(entry, Result) else entry
    return json.dumps({kind: content}, allow_nan=False) + "\n"
