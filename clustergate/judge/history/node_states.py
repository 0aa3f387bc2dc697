"""The states of nodes that each stored run recorded, and what changed on them between two runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clustergate.core import store
from clustergate.core.files.whole import parse_json, read_json
from clustergate.core.model import ClustergateError, Verdict
from clustergate.core.notation import listed
from clustergate.core.reasons import Reason, Words
from clustergate.judge.history.listing import verdict_of
from clustergate.judge.history.stored_runs import in_order
from clustergate.launch.hostfiles import HostfileError, fold
from clustergate.machine.changes import Difference, changes_of_nodes, describe_one
from clustergate.machine.fingerprint import Fingerprint, from_record, parse_state
from clustergate.machine.fleet import FEWEST_OF_A_KIND, Deviation, deviations, kinds_of

NODE_STATE = "machine.json"
"""In the folder of a run: what the suite runs with, and what its nodes are like."""
NODES = "nodes.jsonl"
"""In the folder of a run: the states of the nodes that its jobs ran on, each when it was new."""
HERE = ""
"""Where a run was started, among its nodes."""
States = Mapping[str, Fingerprint]
# How a check, a gate or a screening ends that says nothing against the nodes.
_GOOD = {
    *(Verdict.PASS.value, Verdict.IMPROVEMENT.value, Verdict.NO_REFERENCE.value),
    *(Verdict.INCONCLUSIVE.value, "OPEN", "no faults found"),
}
_DIGITS = 12
# Earlier runs, for a node that none of them may have had.
_LOOKED_AT = 200
# Of what a node is unlike others in, so many are told.
_MOST = 4


# --- what is stored ---------------------------------------------------------------------------


def keep_states(said: Path, run: Path) -> dict[str, Fingerprint]:
    """Keep with a run what nodes said of themselves in the folder of a job.

    Return the state of each node. What they said is removed, for it is not yet hidden what
    identifies them. Raises OSError when it cannot be kept.
    """
    states = {}
    for path in sorted(said.glob("[!.]*")):
        if state := parse_state(path.read_text(encoding="utf-8", errors="replace")):
            states[path.name] = state
        path.unlink()
    digests = {node: digest_of(state) for node, state in states.items()}
    lines = _lines(run)
    last = {node: line["digest"] for line in lines for node in line["nodes"]}
    known = {line["digest"] for line in lines}
    new: dict[str, dict[str, Any]] = {}
    for node, digest in digests.items():
        if last.get(node) != digest:
            content = {} if digest in known else {"fingerprint": states[node]}
            new.setdefault(digest, {"digest": digest, "nodes": [], **content})["nodes"].append(node)
    if new:
        store.make_folder(run)
        with (run / NODES).open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(line) + "\n" for line in new.values()))
    return states


def read_states(run: Path) -> dict[str, Fingerprint]:
    """Return the newest state of each node of a run, and of :data:`HERE`; equal ones are the same.

    Where the nodes told their own, there is only the suite's own software of the latter.
    """
    nodes = _states_of(_lines(run))
    here = _recorded(run)
    if here and nodes:
        of_nodes = set().union(*(state.get("software", ()) for state in nodes.values()))
        own = {name: v for name, v in here.get("software", {}).items() if name not in of_nodes}
        here = {"software": own}
    return {**({HERE: here} if here else {}), **nodes}


CUT_OFF = Words(
    "machine.cut-off",
    "this line cannot be read, so states of nodes are missing from here on",
    cause="the disk was full, or the file was changed",
    remedy="compare with another run",
)


def cut_off(run: Path) -> Reason | None:
    """Return from which line on the states of nodes cannot be read, None where all can."""
    with contextlib.suppress(OSError):
        read, path = len(_lines(run)), run / NODES
        if read < len(path.read_bytes().splitlines()):
            return CUT_OFF().at(f"{path}:{read + 1}")
    return None


def typical_state(run: Path) -> Fingerprint:
    """Return the state that most nodes of a run have, nothing where none told."""
    nodes = _states_of(_lines(run)).values()
    counts = Counter(map(id, nodes)).most_common(1)
    return next((state for state in nodes if id(state) == counts[0][0]), {})


def recorded_runs() -> list[str]:
    """Return the runs that recorded their nodes, the oldest first."""
    return [folder.name for _, folder in in_order(NODE_STATE)]


def digest_of(state: Fingerprint) -> str:
    """Return the digest by which a run knows the state of a node."""
    text = json.dumps(state, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _lines(run: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's nodes; one that was cut off, and all after it, are left out."""
    lines: list[dict[str, Any]] = []
    with contextlib.suppress(OSError, ValueError):
        for text in (run / NODES).read_text(encoding="utf-8").splitlines():
            line = parse_json(text)
            nodes = line.get("nodes") if isinstance(line, dict) else None
            names = [line.get("digest"), *nodes] if isinstance(nodes, list) else [None]
            if not all(isinstance(name, str) for name in names):
                break
            lines.append(line)
    return lines


def _states_of(lines: Sequence[Mapping[str, Any]]) -> dict[str, Fingerprint]:
    known = _by_digest(lines)
    last = {node: line["digest"] for line in lines for node in line["nodes"]}
    return {node: known[digest] for node, digest in last.items() if digest in known}


def _by_digest(lines: Iterable[Mapping[str, Any]]) -> dict[str, Fingerprint]:
    known: dict[str, Fingerprint] = {}
    for line in lines:
        with contextlib.suppress(ClustergateError):
            if "fingerprint" in line:
                known[line["digest"]] = from_record(line, NODES)
    return known


def states_by_digest(folder: Path) -> dict[str, Fingerprint]:
    """Return all states that :func:`keep_states` kept in a folder, by their digests."""
    return _by_digest(_lines(folder))


def _recorded(run: Path) -> Fingerprint | None:
    path = run / NODE_STATE
    try:
        return from_record(read_json(path), str(path))
    except (OSError, ValueError, ClustergateError):
        return None


# --- what changed -----------------------------------------------------------------------------


def changed_between(before: str, after: str) -> list[str]:
    """Return what changed between two runs on the nodes of both, the likeliest cause first."""
    return describe_changes(*(read_states(store.run_folder(run)) for run in (before, after)))


def changed_meanwhile(run_id: str, since: States) -> list[str]:
    """Return in sentences what changed on the nodes of a run while it went on.

    ``since`` are states that it began with, or was resumed with.
    """
    lines = _lines(store.run_folder(run_id))
    first = {**_states_of(_first_last(lines)), **since}
    changed = describe_changes(first, read_states(store.run_folder(run_id)))
    return [f"since the run began: {', '.join(changed)}"] if changed else []


def changed_here(run_id: str, now: Fingerprint) -> list[str]:
    """Return what changed on this node since it was recorded with a run.

    That is without what is of a stack or of the suite. What a shell allows its processes is another
    from one login to the next, and says nothing.
    """
    before = _recorded(store.run_folder(run_id)) or {}
    was, is_now = ({HERE: _of_the_node(state)} for state in (before, now))
    return describe_changes(was, is_now)


# Slurm may give a job its own.
_OF_A_JOB = ("/tmp", "/var/tmp", "/dev/shm")
_OF_THE_SUITE = ("python", "reframe", "clustergate", "clustergate_checkout")


def _of_the_node(state: Fingerprint) -> Fingerprint:
    return {
        group: {k: v for k, v in values.items() if "_of_" not in k and k not in _OF_THE_SUITE}
        for group, values in state.items()
        if "limits" not in group
    }


def _first_last(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    known = [line for line in lines if "fingerprint" in line]
    return [*({**line, "nodes": []} for line in known), *reversed(lines)]


def changed_since_the_last_good_run(run_id: str) -> list[str]:
    """Return in sentences what changed on the nodes of a run since a good run had them.

    Of each node the newest good earlier run counts; where none was, the newest.
    """
    states = read_states(store.run_folder(run_id))
    runs = recorded_runs()
    earlier = runs[: runs.index(run_id)] if run_id in runs else runs
    sentences = []
    for run in sorted(earlier[: -_LOOKED_AT - 1 : -1], key=_was_good, reverse=True):
        if not states:
            break
        before = read_states(store.run_folder(run))
        shared = {node: states.pop(node) for node in before if node in states}
        if changed := describe_changes(before, shared):
            good = ", the last good one" if _was_good(run) else ""
            sentences.append(f"since the run {run}{good}: {', '.join(changed)}")
    return sentences


def astray_nodes(run: Path, *, first_too: bool) -> list[str]:
    """Return in sentences which nodes of a run are not as most of their kind, and were before.

    Of nodes that were in no good run nothing is told, unless ``first_too``; see :func:`strays`.
    """
    states = {node: state for node, state in read_states(run).items() if node != HERE}
    before = last_good_states(states, until=run.name)
    by_nodes: dict[tuple[str, str], list[str]] = {}
    for why, change, nodes in strays(states, before, first_too=first_too):
        if len(nodes) < len(states):
            by_nodes.setdefault((folded(nodes), why), []).append(describe_one(change))
    return [f"{nodes} {why}: {listed(what, _MOST)}" for (nodes, why), what in by_nodes.items()]


def strays(
    states: States, before: States, *, first_too: bool
) -> Iterator[tuple[str, Difference, list[str]]]:
    """Yield what nodes are unlike the rest of their kind in, or unlike their past: why, what, who.

    What made it unlike them in its last good run is accepted. What all nodes have anew, as after an
    update, is as on the others; a node that went without it is told. Of a kind with too few nodes
    to tell, all that changed counts. ``before`` are the last good states, and of nodes without one
    nothing is told, unless ``first_too``.
    """
    for kind in kinds_of(states):
        own = {node: states[node] for node in kind.nodes}
        changes = changes_of_nodes({n: before[n] for n in own if n in before}, own)
        if len(own) < FEWEST_OF_A_KIND:
            yield from (("is not as in its last good run", *change) for change in changes)
            continue
        changed = {(node, change.name) for change, nodes in changes for node in nodes}
        for one in deviations([kind], own):
            nodes = [
                node
                for node in one.nodes
                if (first_too and node not in before)
                or (node, one.change.name) in changed
                or _did_most_change(one, changed, before)
            ]
            if nodes:
                yield "is unlike the rest of its kind", one.change, nodes


def _did_most_change(odd: Deviation, changed: Container[tuple[str, str]], before: States) -> bool:
    """Tell whether the others of a kind have something anew that the odd ones went without."""
    others = [n for n in odd.kind.nodes if n not in odd.nodes and n in before]
    return 2 * sum((node, odd.change.name) in changed for node in others) > len(others)


def last_good_states(states: States, until: str = "") -> dict[str, Fingerprint]:
    """Return the state of each node in the newest good run before ``until`` that had it."""
    runs = recorded_runs()
    earlier = runs[: runs.index(until)] if until in runs else runs
    known: dict[str, Fingerprint] = {}
    for run in earlier[: -_LOOKED_AT - 1 : -1]:
        if states.keys() <= known.keys():
            break
        if _was_good(run):
            of_run = read_states(store.run_folder(run))
            known = {**{n: x for n, x in of_run.items() if n in states}, **known}
    return known


def good_runs() -> Iterator[str]:
    """Yield the runs that recorded their nodes and ended well, the newest first."""
    yield from filter(_was_good, recorded_runs()[: -_LOOKED_AT - 1 : -1])


def last_good_run(node: str) -> tuple[str, dict[str, Fingerprint]]:
    """Return the newest good run that had a node, else the newest that had any, and their states.

    Nothing where there is none. Raises :class:`ClustergateError` where the states of the newest are
    damaged, so that the node may have been among them.
    """
    any_nodes: tuple[str, dict[str, Fingerprint]] = ("", {})
    for run in good_runs():
        states = {n: x for n, x in read_states(store.run_folder(run)).items() if n != HERE}
        if node in states:
            return run, states
        if why := cut_off(store.run_folder(run)):
            raise ClustergateError(why)
        if states and not any_nodes[0]:
            any_nodes = run, states
    return any_nodes


def of_the_node_alone(state: Fingerprint) -> Fingerprint:
    """Return a state without what is another in a job than beside it: limits, a job's own folders.

    Nor is there what is of a stack or of the suite.
    """
    own = _of_the_node(state)
    if isinstance(mounts := own.get("kernel", {}).get("mounts"), list):
        lasting = [one for one in mounts if one.partition(" ")[0] not in _OF_A_JOB]
        own["kernel"] = {**own["kernel"], "mounts": lasting}
    return own


def _was_good(run: str) -> bool:
    return verdict_of(store.run_folder(run)) in _GOOD


def describe_changes(before: States, after: States) -> list[str]:
    """Return what changed on which nodes; nodes are named where there are several."""
    several = len(before.keys() & after.keys() - {HERE}) > 1
    return [
        f"{describe_one(change)}{f' on {folded(nodes)}' if several and nodes != [HERE] else ''}"
        for change, nodes in changes_of_nodes(before, after)
    ]


def folded(nodes: Iterable[str]) -> str:
    names = [node for node in nodes if node != HERE]
    try:
        return fold(names)
    except HostfileError:
        return ",".join(names)
