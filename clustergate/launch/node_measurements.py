"""What a job measures beside its launches: the peaks of its node, once while they are the same.

Peaks take seconds, on nodes of many cores minutes. So the jobs of a run share them, on each node by
itself: they hold for one boot, one setting of clocks, one cpuset and one limit of a container. A
glance before the launches and one after them tell whether the node still is as it was; whatever
they show to be otherwise is measured again. The glance with which a job ended is that before the
launches of a job which follows at once. What glances measured as the peaks are counts with them, as
the node at that time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clustergate.core.files.stored import decode
from clustergate.core.files.whole import read_json, write_whole
from clustergate.core.model import ClustergateError, Row
from clustergate.launch.disturbance import nearest_of
from clustergate.launch.plan import NODES, Aside, Plan
from clustergate.machine.kernel_files import text as file_text
from clustergate.machine.node import boot_and_settings

if TYPE_CHECKING:
    from clustergate.stacks.manifest import Manifest

CORE_DISTANCE = "core_distance"
# They bound figures, with an interval from their trials; they are no benchmark of their own.
_WHOLE_EFFORT = ("--seconds", "0.05", "--trials", "3")
_GLANCE_EFFORT = ("--seconds", "0.02", "--trials", "3", "--glance", "1")
# Of each pair of cores a few ms, of which the best trial counts.
DISTANCE_EFFORT = ("--from-first", "1", "--trials", "20")
_FOLLOWS_AT_ONCE_S = 5.0

Run = Callable[[Sequence[str], str], str]
"""Runs a command with the name of a file for what it says, and returns that."""


def planned_measurements(
    manifest: Manifest, kernels: Mapping[str, Sequence[str]], ranks: Sequence[str]
) -> list[Aside]:
    """Return what measures the node's peaks beside the launches, in the same job.

    ``kernels`` of a stack have their options; one that it lacks is left out. ``ranks`` are the
    words that give them the ranks' variables, as what bounds ranks must compute as they do.
    """
    asides = []
    for name, options in kernels.items():
        kernel = manifest.command(name)
        whole = [*ranks, *kernel, *_WHOLE_EFFORT, *options]
        if kernel and name == CORE_DISTANCE:
            asides.append(Aside(name, whole))
        elif kernel:
            # All stacks have the same kernel, but each its BLAS; what is ours changes no kernel.
            own = [word for word in ranks[1:] if not word.startswith("CLUSTERGATE_")]
            depends_on = " ".join([*own, *options, *(kernel if name == "dgemm" else ())])
            glance = [*ranks, *kernel, *_GLANCE_EFFORT, *options]
            asides.append(Aside(name, whole, glance, depends_on))
    return asides


class _Known(NamedTuple):
    """What an aside said of this node: in whole, at a glance taken with that, at the last glance.

    ``at_s`` is when that one was taken, in seconds since the node was booted.
    """

    whole: str
    glance: str
    last: str
    at_s: float


class NodeMeasurements:
    """What is beside the launches of a plan, in the folder of its job.

    Raises what ``run`` raises, and OSError when that folder cannot be written.
    """

    def __init__(self, plan: Plan, job: Path, run: Run) -> None:
        self._plan = plan
        self._job = job
        self._run = run
        self._kept = [aside for aside in plan.asides if aside.glance]
        self._known: dict[str, _Known] = {}
        self._distances: Path | None = None

    def before(self) -> None:
        """Measure what is not known of this node, or is not so any more."""
        self._measure_each("before")
        node = self._node() if self._kept and self._plan.kept_in else None
        self._files = {aside.name: self._file(node, aside) for aside in self._kept}
        self._distances = self._file(node)
        read = {aside.name: self._read(aside) for aside in self._kept}
        self._known = {name: known for name, known in read.items() if known}
        recent = {name: x.last for name, x in self._known.items() if _is_recent(x.at_s)}
        looked = {**self._look("before", but=recent), **recent}
        if not self._is_as_it_was(looked):
            self._known.clear()
        self._measure([aside for aside in self._kept if aside.name not in self._known], "before")
        for aside in self._kept:
            self._count(aside, "before", self._known[aside.name].whole + looked.get(aside.name, ""))

    def after(self) -> None:
        """Look once more, and measure again what is not so any more."""
        self._measure_each("after")
        looked = self._look("after")
        changed = not self._is_as_it_was(looked)
        if changed:
            self._measure(self._kept, "after")
        for aside in self._kept:
            known = self._known[aside.name]
            if not changed:
                self._keep(aside, known.whole, known.glance, looked[aside.name])
            self._count(aside, "after", looked[aside.name] + (known.whole if changed else ""))

    @property
    def near_ns(self) -> float | None:
        """The shortest usual round trip between two cores that earlier jobs saw on this node."""
        return nearest_of(self._distances_ns())

    def keep_distances(self, distances_ns: Iterable[float]) -> None:
        """Keep for later jobs of the run how far two cores were from each other."""
        if self._distances and (later := [*distances_ns]):
            _keep(self._distances, [*self._distances_ns(), *later])

    def _distances_ns(self) -> list[float]:
        with contextlib.suppress(OSError, ValueError, TypeError, ClustergateError):
            if self._distances:
                return decode(read_json(self._distances), list[float])
        return []

    def _measure_each(self, when: str) -> None:
        for aside in self._plan.asides:
            if not aside.glance:
                self._run(aside.command, aside.output(when))

    def _measure(self, asides: Sequence[Aside], when: str) -> None:
        for aside in asides:
            whole = self._run(aside.command, f"{aside.name}-{when}-whole")
            glance = self._run(aside.glance, f"{aside.name}-{when}-with-it")
            self._keep(aside, whole, glance, glance)

    def _keep(self, aside: Aside, whole: str, glance: str, last: str) -> None:
        known = self._known[aside.name] = _Known(whole, glance, last, _uptime_s())
        if path := self._files[aside.name]:
            _keep(path, known)

    def _look(self, when: str, but: Container[str] = ()) -> dict[str, str]:
        names = self._known.keys()
        asides = [aside for aside in self._kept if aside.name in names and aside.name not in but]
        return {x.name: self._run(x.glance, f"{x.name}-{when}-glance") for x in asides}

    def _is_as_it_was(self, looked: dict[str, str]) -> bool:
        """Tell whether glances say of the node what those said that were taken with its peaks."""
        # Only here: it takes long to load.
        from clustergate.machine.peaks import is_unchanged

        try:
            known = [row for one in self._known.values() for row in _rows(one.glance)]
            return is_unchanged(known, [row for text in looked.values() for row in _rows(text)])
        except ClustergateError:
            # Whoever judges the peaks says what is wrong with them.
            return False

    def _count(self, aside: Aside, when: str, text: str) -> None:
        (self._job / aside.output(when)).write_text(text, encoding="utf-8")

    def _node(self) -> list[str] | None:
        """Return what the peaks of this node depend on, None where it does not show that."""
        said = file_text(self._job / NODES / platform.node())
        if self._plan.on_each_node:
            # A process of the launcher's said that, which may have less of the node.
            from clustergate.machine.fingerprint import read_node_state

            said = read_node_state()
        settings = boot_and_settings(said or "")
        return [platform.node(), settings] if settings else None

    def _file(self, node: Sequence[str] | None, aside: Aside | None = None) -> Path | None:
        """Return where it is kept what an aside said of a node, or how far its cores were."""
        if node is None:
            return None
        key = json.dumps([*node, *([aside.name, aside.depends_on] if aside else [CORE_DISTANCE])])
        name = hashlib.sha256(key.encode(errors="replace")).hexdigest()
        return Path(self._plan.kept_in) / f"{name}.json"

    def _read(self, aside: Aside) -> _Known | None:
        """Return what another job measured, None where it cannot be read."""
        path = self._files[aside.name]
        with contextlib.suppress(OSError, ValueError, TypeError, ClustergateError):
            known = decode(read_json(path), _Known) if path else None
            if known and all(map(_rows, known[:3])):
                return known
        return None


def _keep(path: Path, content: object) -> None:
    # A disk that is full keeps nothing; the next job measures for itself.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(content))


def _uptime_s() -> float:
    """Return the seconds since this node was booted, those in which it slept among them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _is_recent(at_s: float) -> bool:
    return 0 <= _uptime_s() - at_s < _FOLLOWS_AT_ONCE_S


def _rows(text: str) -> list[Row]:
    from clustergate.machine.kernels.peaks import parse_peaks

    return list(parse_peaks(text.splitlines()))
