"""What is known of nodes in the forms that dashboards read: by whom, when, how sure. Pure.

The names and labels are those of ``docs/exporting.md``, as with :mod:`clustergate.report.export`.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clustergate.report.export import SCHEMA, Gauge, Row

if TYPE_CHECKING:
    from clustergate.run.node import NodeVerdict
    from clustergate.studies.roll.state import State
    from clustergate.studies.screen.findings import Screening

ROLL, SCREENING, NODE = "roll", "screening", "node"
"""Who says it: ``clustergate roll``, the screening of a run, ``clustergate node``."""
GOOD, SUSPECT, BAD, UNKNOWN = STATES = ("good", "suspect", "bad", "unknown")
_SHOWN = {GOOD: 1.0, BAD: 0.0}
_UNDONE = ("refused", "undone")


@dataclass(frozen=True)
class NodeState:
    """What is known of a node; times are seconds since 1970, ``looked_at`` 0 where nobody looked.

    ``good_at`` is when it was last good in each kind of look that it had. ``log_evidence`` is the
    natural logarithm of that against it, None where a source weighs none. ``actions`` are what was
    done about its accusation and how that ended.
    """

    system: str
    source: str
    node: str
    state: str
    looked_at: float = 0.0
    good_at: Mapping[str, float] = field(default_factory=dict)
    log_evidence: float | None = None
    reason: str = ""
    accusation: str = ""
    actions: Sequence[tuple[str, str]] = ()


def rolled(system: str, state: State) -> list[NodeState]:
    """Return what a ledger says of each node that it has."""
    return [*_rolled(system, state)]


def _rolled(system: str, state: State) -> Iterator[NodeState]:
    for name, node in sorted(state.nodes.items()):
        accusation = state.accusations.get(node.accused)
        slow = ", ".join(node.slow.values())
        known = GOOD if node.good_alone_and_paired else UNKNOWN
        done = () if accusation is None else state.actions.values()
        yield NodeState(
            *(system, ROLL, name),
            BAD if accusation else SUSPECT if slow else known,
            max(node.looked_at.values(), default=0.0),
            {kind: node.good_at[kind] for kind in node.looked_at if kind in node.good_at},
            node.log_evidence,
            accusation.why if accusation else slow,
            node.accused,
            [
                (one.kind, one.outcome)
                for one in done
                if one.of == node.accused and one.outcome not in _UNDONE
            ],
        )


def screened(system: str, screening: Screening, at: float, *, decided: bool) -> list[NodeState]:
    """Return what a screening says of each node.

    Unless it is ``decided``, by which nothing is in doubt, it calls no node good.
    """
    whys = {name: one.sentence for one in screening.findings for name in one.keeps_out}
    unmeasured = {n for located in screening.located.values() for n in located.unmeasured}
    return [
        NodeState(
            *(system, SCREENING, name),
            BAD if name in whys else GOOD if decided and n not in unmeasured else UNKNOWN,
            at,
            {SCREENING: at} if decided and n not in unmeasured and name not in whys else {},
            reason=whys.get(name, ""),
        )
        for n, name in enumerate(screening.names)
    ]


def asked(system: str, verdict: NodeVerdict, at: float) -> NodeState:
    """Return what a node says of itself."""
    state = BAD if verdict.status == 1 else UNKNOWN if verdict.status else GOOD
    good_at = {NODE: at} if state == GOOD else {}
    reason = "; ".join(map(str, verdict.reasons))
    return NodeState(system, NODE, verdict.node, state, at, good_at, reason=reason)


def gauges_of_nodes(states: Sequence[NodeState]) -> list[Gauge]:
    """Return the states of nodes in numbers."""
    sources = sorted({(one.system, one.source) for one in states})
    counts = Counter((one.system, one.source, one.state) for one in states)
    return [
        Gauge(
            "clustergate_schema_version",
            "Of these names and labels.",
            # Not the series of a run: two files of one node_exporter may not have the same.
            [({"system": system, "source": source}, float(SCHEMA)) for system, source in sources],
        ),
        Gauge(
            "clustergate_nodes",
            "Nodes by what is known of them.",
            [
                (
                    {"system": system, "source": source, "state": state},
                    float(counts[system, source, state]),
                )
                for system, source in sources
                for state in STATES
            ],
        ),
        Gauge(
            "clustergate_node_ok",
            "1 good, 0 bad; no value where that is not decided.",
            [(_labels(one), _SHOWN[one.state]) for one in states if one.state in _SHOWN],
        ),
        Gauge(
            "clustergate_node_looked_at_timestamp_seconds",
            "When somebody last looked at the node, in seconds since 1970.",
            [(_labels(one), one.looked_at) for one in states if one.looked_at],
        ),
        Gauge(
            "clustergate_node_good_timestamp_seconds",
            "When a look last found the node good, in seconds since 1970.",
            [
                ({**_labels(one), "look": look}, at)
                for one in states
                for look, at in sorted(one.good_at.items())
            ],
        ),
        Gauge(
            "clustergate_node_log_evidence",
            "Natural logarithm of the evidence against the node.",
            [(_labels(one), one.log_evidence) for one in states if one.log_evidence is not None],
        ),
        Gauge(
            "clustergate_node_action",
            "1 for each action about the node that is not undone.",
            [
                (
                    {
                        **_labels(one),
                        "accusation": one.accusation,
                        "action": action,
                        "outcome": outcome,
                    },
                    1.0,
                )
                for one in states
                for action, outcome in one.actions
            ],
        ),
    ]


def _labels(one: NodeState) -> dict[str, str]:
    return {"system": one.system, "source": one.source, "node": one.node}


def rows_of_nodes(states: Iterable[NodeState]) -> list[Row]:
    """Return the states of nodes, a row each; times in ISO 8601, empty for never."""
    return [
        {
            **_labels(one),
            "state": one.state,
            "looked_at": _iso(one.looked_at),
            "last_good": _iso(min(one.good_at.values(), default=0.0)),
            "log_evidence": one.log_evidence,
            "accusation": one.accusation,
            "actions": ", ".join(f"{action} {outcome}" for action, outcome in one.actions),
            "reason": one.reason,
        }
        for one in states
    ]


def _iso(at: float) -> str:
    if not at:
        return ""
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat()
