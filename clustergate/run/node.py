"""One node, asked where it stands: its state and its raw kernels beside its kind and its past.

It says and measures what a screening has each node say and measure: by the same script, the same
kernels and the same reading. It writes nothing, starts no job, and asks no scheduler.
"""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from clustergate.core import store
from clustergate.core.model import ClustergateError, OutputError
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Reason, Words
from clustergate.judge.history.node_states import (
    good_runs,
    last_good_run,
    of_the_node_alone,
    strays,
)
from clustergate.machine.changes import describe_one
from clustergate.machine.fingerprint import Fingerprint, parse_state, read_node_state
from clustergate.machine.fleet import product_of
from clustergate.machine.kernels.peaks import parse_peaks
from clustergate.machine.load import disturbing_cores
from clustergate.machine.other_processes import OtherLoad, jobs_beside, people_in, sample_other_load
from clustergate.machine.processes import capture, terminated_with_parent
from clustergate.stacks.manifest import read_manifest_file
from clustergate.studies.screen.measures import MEASURES, peak_values
from clustergate.studies.screen.one_node import Behind, Rates, behind, each_time, rates_of
from clustergate.studies.screen.orders import PEAK_EFFORT
from clustergate.studies.screen.plan import is_screening, read_screened

SOUND, FAULT, UNKNOWN = 0, 1, 2
WORDS = {SOUND: "SOUND", FAULT: "FAULT", UNKNOWN: "NOT KNOWN"}
_TIMES = 3
"""Launches in each of which a node must be slow: as often as a case is launched."""
_LOOK_S = 0.5
# What an update changes on one node after the other, and no fault does.
_OF_AN_UPDATE = (
    *("kernel.release", "kernel.version", "kernel.command_line", "kernel.mitigations"),
    *("software.", "hardware.microcode", "hardware.bios_"),
)
_OF_FIRMWARE = (".fw_ver", ".firmware", ".driver_version")

STRAY = Words(
    "node.stray",
    "it {why}, run {run}: {changes:names}",
    remedy="repair it; or accept it by a `clustergate check` on it that ends well",
)
SLOWER = Words(
    "node.slower",
    (
        "{measure} {now:number} {unit}, {by:whole_percent} worse than {beside}, in each of "
        "{times} launches"
    ),
    remedy="look for leftover processes, clocks, temperature and memory; drain it if it stays so",
)
MAYBE_SLOWER = Words(
    "node.maybe-slower",
    "{measure} {now:number} {unit}, {by:whole_percent} worse than {beside}; {times} of 3 launches",
    remedy="`clustergate node` again with a larger --budget",
)
NEVER_SEEN = Words(
    "node.never-seen",
    "no run that ended well has it, or three of its kind",
    remedy="`clustergate screen` makes one",
)
SAYS_NOTHING = Words(
    "node.says-nothing",
    "it does not say what it is like",
    remedy="see whether /proc and /sys are mounted, and sh, awk and grep on PATH",
)
KERNELS_FAILED = Words(
    "node.kernels-failed",
    "its kernels failed: {why}",
    remedy="run the command again, and see the node's log (dmesg)",
)
NOT_COMPARED = Words(
    "node.not-compared",
    "no good screening has its kernels",
    remedy="`clustergate screen` measures them",
)
NOT_MEASURED = Words("node.not-measured", "its kernels were not measured: {why}")


@dataclass(frozen=True)
class NodeVerdict:
    """What is known of a node: ``faults``, ``doubts``, and ``notes`` on what was not looked at.

    ``values`` are what its kernels reached, by measure; ``run`` is the run that it was compared
    with, and ``kind`` how many others of its kind that has. ``of_updates`` are differences that an
    update explains: no fault to drain a node for.
    """

    node: str
    run: str = ""
    kind: int = 0
    faults: Sequence[Reason] = ()
    of_updates: Sequence[Reason] = ()
    doubts: Sequence[Reason] = ()
    notes: Sequence[Reason] = ()
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """Return 1 for a fault, 2 where it cannot be said, else 0."""
        if self.faults or self.of_updates:
            return FAULT
        return UNKNOWN if self.doubts else SOUND

    @property
    def hook_status(self) -> int:
        """Return the status for a scheduler's hook, which drains a node for anything but 0.

        What keeps all nodes from being judged, or an update of one after the other, drains none.
        """
        return FAULT if self.faults else SOUND

    @property
    def reasons(self) -> list[Reason]:
        """What it follows from, the worst first."""
        return [*self.faults, *self.of_updates, *self.doubts, *self.notes]


# --- the state ------------------------------------------------------------------------------------


def judged_state(
    node: str, said: Fingerprint, known: tuple[str, Mapping[str, Fingerprint]]
) -> NodeVerdict:
    """Return what the state that a node says is beside that of a run, and of its kind there. Pure.

    ``known`` are that run and the states of its nodes.
    """
    if not said:
        return NodeVerdict(node, doubts=(SAYS_NOTHING(),))
    run, states = known
    own = of_the_node_alone(said)
    then = {name: of_the_node_alone(state) for name, state in states.items()}
    before = {node: then[node]} if node in then else {}
    others = _of_its_kind(own, {name: state for name, state in then.items() if name != node})
    if not before and len(others) + 1 < _FEWEST:
        return NodeVerdict(node, run, len(others), doubts=(NEVER_SEEN(),))
    whys: dict[tuple[str, bool], list[str]] = {}
    for why, change, nodes in strays({**others, node: own}, before, first_too=True):
        if nodes == [node]:
            update = change.name.startswith(_OF_AN_UPDATE) or change.name.endswith(_OF_FIRMWARE)
            whys.setdefault((why, update), []).append(describe_one(change))
    faults, of_updates = (
        tuple(
            STRAY(why=why, run=run, changes=changes)
            for (why, of_update), changes in whys.items()
            if of_update is wanted
        )
        for wanted in (False, True)
    )
    return NodeVerdict(node, run, len(others), faults, of_updates)


_FEWEST = 3


def _of_its_kind(own: Fingerprint, states: Mapping[str, Fingerprint]) -> dict[str, Fingerprint]:
    """Return the states of nodes with the processor and product of one; its memory may differ."""
    mine = product_of(own)
    return {node: state for node, state in states.items() if product_of(state) == mine}


# --- the kernels ----------------------------------------------------------------------------------


def judged_kernels(
    node: str, launch: Callable[[], Mapping[str, float]], past: Rates, *, virtual: bool
) -> NodeVerdict:
    """Launch a node's kernels, three times where they look slow, and return what that says.

    ``launch`` returns values by measure; where there is no more time for it, it raises TimeoutError
    and for an output that is no result ValueError.
    """
    looks: list[list[Behind]] = []
    values: Mapping[str, float] = {}
    try:
        while len(looks) < _TIMES and (not looks or each_time(looks)):
            now = launch()
            looks.append(behind(now, node, past, virtual=virtual))
            values = values or now
    except TimeoutError:
        if not looks:
            return NodeVerdict(node, notes=(NOT_MEASURED(why="no time was left"),))
    except ValueError as error:
        return NodeVerdict(node, doubts=(KERNELS_FAILED(why=error),), values=values)
    slow = each_time(looks)
    code = SLOWER if len(looks) == _TIMES else MAYBE_SLOWER
    reasons = tuple(
        code(
            measure=one.measure.title,
            now=one.measure.value(one.usual + one.by),
            unit=one.measure.unit,
            by=1 - math.exp(-one.by),
            beside=f"{one.nodes} of its kind" if one.kind else "it was",
            times=len(looks),
        )
        for one in slow
    )
    if len(looks) == _TIMES:
        return NodeVerdict(node, faults=reasons, values=values)
    return NodeVerdict(node, doubts=reasons, values=values)


def past_rates(node: str, kind: Collection[str]) -> dict[str, dict[str, list[float]]]:
    """Return what the kernels of nodes of a ``kind`` reached in the last good screening of one.

    Nothing where no good run screened the node.
    """
    for run in good_runs():
        rates: dict[str, dict[str, list[float]]] = {}
        for folder in sorted(filter(is_screening, store.run_folder(run).glob("**/screening"))):
            with contextlib.suppress(ClustergateError):
                _, log = read_screened(folder)
                rates |= rates_of(log.results)
        if node in rates:
            return {name: of for name, of in rates.items() if name in kind}
    return {}


def kernel_here(state: Path) -> list[str]:
    """Return the command of the raw kernels of the first stack that is set up, else nothing."""
    for path in sorted((state / "manifests").glob("*.json")):
        with contextlib.suppress(ClustergateError):
            if command := read_manifest_file(path).command("node_peaks"):
                return [*command, *PEAK_EFFORT]
    return []


def as_owner(home: Path) -> dict[str, Any]:
    """Return how to start a program of the suite's home: by its owner, where this is root.

    Hooks run as root, and what lies there is another account's.
    """
    with contextlib.suppress(OSError):
        of = home.stat()
        if os.geteuid() == 0 and of.st_uid:
            return {"user": of.st_uid, "group": of.st_gid, "extra_groups": []}
    return {}


def launched(command: Sequence[str], until: float) -> dict[str, float]:
    """Run the kernels here and return their values, by measure.

    Raises TimeoutError where they are not done ``until`` then (by the monotonic clock), and
    ValueError for an output that is no result.
    """
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    try:
        by = {"preexec_fn": terminated_with_parent, **as_owner(state_dir())}
        ended = capture(command, timeout=left_s, **by)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    except OSError as error:
        raise ValueError(f"{command[0]}: {error.strerror}") from None
    if ended.returncode:
        raise ValueError(f"{command[0]} ended with exit status {ended.returncode}")
    try:
        return peak_values(list(parse_peaks(ended.stdout.splitlines())))
    except OutputError as error:
        raise ValueError(error) from None


def why_in_use(jobs: Sequence[str], seen: OtherLoad) -> str:
    """Return who else works on this node, empty where nobody does: jobs, or people's processes."""
    if jobs:
        return f"job {jobs[0]} runs here"
    people = people_in(seen)
    if people.cores > disturbing_cores(psutil.cpu_count()):
        return f"users use {people.cores:.1f} cores"
    return ""


# --- the whole ------------------------------------------------------------------------------------


def judge_here(budget_s: float, *, measure: bool) -> NodeVerdict:
    """Return what is known of the node that this runs on, within so many seconds.

    Its kernels run if it is to ``measure``, unless users' jobs run here.
    """
    until = time.monotonic() + budget_s
    node = os.uname().nodename
    said = parse_state(read_node_state())
    try:
        known = last_good_run(node)
    except ClustergateError as error:
        return NodeVerdict(node, doubts=(error.reason,))
    state = judged_state(node, said, known)
    if not measure or (state.doubts and not state.run):
        return state
    jobs = jobs_beside(os.environ.get("SLURM_JOB_ID", ""))
    if why := why_in_use(jobs, sample_other_load(_LOOK_S)):
        return replace(state, notes=(NOT_MEASURED(why=why),))
    if not (command := kernel_here(state_dir())):
        why = f"no stack is set up in {state_dir()} (`clustergate setup`)"
        return replace(state, notes=(NOT_MEASURED(why=why),))
    _, states = known
    past = past_rates(node, {*_of_its_kind(said, states), node})
    hardware = said.get("hardware", {})
    virtual = bool(hardware.get("virtual_machine"))
    kernels = judged_kernels(node, lambda: launched(command, until), past, virtual=virtual)
    return replace(
        state,
        faults=(*state.faults, *kernels.faults),
        doubts=(*state.doubts, *kernels.doubts),
        notes=(*state.notes, *kernels.notes, *(() if past else (NOT_COMPARED(),))),
        values=kernels.values,
    )


def sentence(verdict: NodeVerdict, status: int) -> str:
    """Return a verdict in a line: the node, a word, and why; as a scheduler notes a reason."""
    words = "; ".join(one.without_remedy for one in verdict.reasons)
    if verdict.status == SOUND:
        others = f" and {verdict.kind} of its kind" if verdict.kind else ""
        figures = ", ".join(
            f"{MEASURES[key].title} {value:.4g} {MEASURES[key].unit}"
            for key, value in verdict.values.items()
        )
        words = "; ".join(filter(None, [f"as in run {verdict.run}{others}", figures, words]))
    return f"{verdict.node}: {WORDS[status]}: {words}"
