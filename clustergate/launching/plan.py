"""What a job is to launch, as the check writes it down for the driver: ``plan.json``."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from clustergate.benchmarks.descriptor import Budget
from clustergate.machine.configuration import ConfigurationFile, keep_personal_files_out
from clustergate.model import ClustergateError, Launch

PLAN = "plan.json"
# What the driver notes of each launch, a line of JSON each.
LOG = "launches.jsonl"
OUTPUT, ERRORS = "stdout", "stderr"
# Variables of a stack that go in front of what the node has.
IN_FRONT = ("PATH", "LD_LIBRARY_PATH")
_PROOFS = "proof"
_HOME = "home"


class PlanError(ClustergateError):
    """A plan, or what the driver noted of its launches, cannot be read."""


@dataclass(frozen=True)
class Contender:
    """One program with one MPI stack, launched again and again.

    ``launcher`` are the words that start ranks, ``program`` those that each rank runs,
    ``environment`` what the launcher's shell would export (``PATH`` and ``LD_LIBRARY_PATH`` go in
    front of what is there), ``inputs`` the names and texts of files that the program finds in its
    folder. The figures are in ``output``, or on standard output where that is empty.
    ``proof_library`` is preloaded into the ranks; what ``proves`` nothing is no MPI program. It is
    ended after ``seconds``, where they are given.
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


@dataclass(frozen=True)
class Aside:
    """A command that runs before or after all launches; ``output`` is the file for what it says."""

    command: Sequence[str]
    output: str


@dataclass(frozen=True)
class Plan:
    """All that a job does.

    Each round launches every contender once, in an order that ``seed`` decides. ``reader`` names
    the function that turns the text of an output into rows (``module:function``), for the intervals
    that ``budget.precision`` asks for. ``core_distance`` is the command that measures how far two
    cores are from each other, between launches. ``nonce`` is a word that no other job has.
    Where a launcher wants a hostfile and only the scheduler knows the nodes, ``hostfile`` names its
    path, ``hostfile_dialect`` its form and ``ranks_per_node`` its slots.
    """

    nonce: str
    contenders: Sequence[Contender]
    budget: Budget
    seed: int
    before: Sequence[Aside] = ()
    after: Sequence[Aside] = ()
    core_distance: Sequence[str] = ()
    reader: str = ""
    hostfile: str = ""
    hostfile_dialect: str = ""
    ranks_per_node: int = 1


@dataclass(frozen=True)
class Launched:
    """What the driver noted of one launch.

    ``turn`` counts the rounds from 0, ``status`` is the exit status of the launcher (negative:
    ended by that signal). ``distances_ns`` are the two round trips between cores, before and after.
    """

    contender: str
    turn: int
    status: int
    launch: Launch
    distances_ns: Sequence[float] = ()


@dataclass(frozen=True)
class JobLog:
    """What the driver noted: its launches in their order, the seconds of what was aside.

    ``hosts`` are the nodes that the scheduler gave to the job, None where none told. ``kept_out``
    are the user's configuration files that no launch saw, ``site_files`` those of the site that
    the launches of each contender could see, by its name.
    """

    launches: Sequence[Launched] = ()
    aside_s: float = 0.0
    hosts: tuple[str, ...] | None = None
    kept_out: tuple[ConfigurationFile, ...] = ()
    site_files: Mapping[str, tuple[ConfigurationFile, ...]] = field(default_factory=dict)

    @property
    def all_site_files(self) -> list[ConfigurationFile]:
        """The site's files that any launch could see."""
        return list(dict.fromkeys(one for files in self.site_files.values() for one in files))

    @property
    def nearest_ns(self) -> float | None:
        """The shortest round trip between two cores, None where none was measured."""
        return min((ns for made in self.launches for ns in made.distances_ns), default=None)


def launch_folder(job: Path, order: int) -> Path:
    """Return the folder in which a launch runs and leaves its output."""
    return job / f"launch-{order:03d}"


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
    """Return the words that preload the library which proves a launch, for ``env``.

    What the site preloads (``environment`` is that of the launcher) stays, behind it. The second
    word tells the library what was asked for: whatever else it finds preloaded is not.
    """
    # The loader takes spaces for separators here, and finds a bare name by LD_LIBRARY_PATH.
    whole = not re.search(r"\s", proof_library)
    named = proof_library if whole else PurePath(proof_library).name
    asked = ":".join(filter(None, (named, environment.get("LD_PRELOAD"))))
    return [f"LD_PRELOAD={asked}", f"CLUSTERGATE_PRELOAD={asked}"]


def empty_home(
    job: Path, environ: MutableMapping[str, str]
) -> tuple[list[str], tuple[ConfigurationFile, ...]]:
    """Keep the user's configuration files out of what is launched with ``environ``; return them.

    The words before them are for ``env`` in front of each rank: on other nodes the home folder is
    whatever the login there says. None where there are no such files.
    """
    found = keep_personal_files_out(environ, job / _HOME)
    return ([f"HOME={job / _HOME}"] if found else []), found


def write_plan(job: Path, plan: Plan) -> None:
    """Write a plan into the folder of a job."""
    (job / PLAN).write_text(json.dumps(dataclasses.asdict(plan), indent=1), encoding="utf-8")


def read_plan(path: Path) -> Plan:
    """Read a plan; raises :class:`PlanError` when it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        content["contenders"] = [Contender(**entry) for entry in content["contenders"]]
        content["budget"] = Budget(**content["budget"])
        for when in ("before", "after"):
            content[when] = [Aside(**entry) for entry in content[when]]
        return Plan(**content)
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise PlanError(f"{path} is no plan of this version ({error!r}); run again") from None


def _files(entries: Sequence[Mapping[str, Any]]) -> tuple[ConfigurationFile, ...]:
    return tuple(map(ConfigurationFile.of, entries))


def read_log(job: Path) -> JobLog:
    """Return what the driver noted; nothing when it never began.

    Raises :class:`PlanError` that names the line when it is damaged.
    """
    path = job / LOG
    launches, aside_s, hosts = [], 0.0, None
    kept_out: tuple[ConfigurationFile, ...] = ()
    site_files: dict[str, tuple[ConfigurationFile, ...]] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return JobLog()
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            if "aside_s" in entry:
                aside_s += float(entry["aside_s"])
            elif "hosts" in entry:
                hosts = tuple(map(str, entry["hosts"]))
            elif "kept_out" in entry:
                kept_out = _files(entry["kept_out"])
            elif "site_files" in entry:
                site_files[str(entry["contender"])] = _files(entry["site_files"])
            else:
                launches.append(Launched(**{**entry, "launch": Launch(**entry["launch"])}))
        except (ValueError, KeyError, TypeError) as error:
            raise PlanError(f"{path}:{number}: no launch is noted here ({error})") from None
    return JobLog(tuple(launches), aside_s, hosts, kept_out, site_files)
