"""What the events of a ledger amount to: nodes, jobs, accusations, actions. Pure.

Looks of one node count as evidence where they lie hours apart (:data:`APART_S`): what disturbs a
node for an hour is one look, however often it is seen. How many looks are usually slow is learned
from the other nodes, so that an update, or a file system, that slows all of them accuses nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clustergate.stats.sequential import DAY_S, Evidence
from clustergate.studies.roll.ledger import Event, Ledger
from clustergate.studies.screen.measures import MEASURES

ALONE, PAIR = KINDS = ("alone", "pair")
"""Of what a look is: of a node by itself, of a node with a partner."""
APART_S = 6 * 3600.0
USUAL = 0.02
"""So many looks of sound nodes are slow at least: 2 of 96 jobs were on exclusive bare metal."""
# Looks of others that tell how many are slow now, and the fewest that do.
_RECENT, _FEWEST = 100, 20
_SOUND_AGAIN = 3
_LOOKS = 3
_FRESH_S = 7 * DAY_S


@dataclass
class Node:
    """A node: its latest looks of each kind, and the evidence against it.

    ``levels`` are those of the last looks alone, with their times; ``counted_at`` is when a look
    last counted, ``accused`` the accusation that stands.
    """

    looked_at: dict[str, float] = field(default_factory=dict)
    good_at: dict[str, float] = field(default_factory=dict)
    counted_at: dict[str, float] = field(default_factory=dict)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    slow: dict[str, str] = field(default_factory=dict)
    levels: list[tuple[float, Mapping[str, float]]] = field(default_factory=list)
    hardware: str = ""
    accused: str = ""
    good_in_a_row: int = 0
    met: dict[str, float] = field(default_factory=dict)
    lost: int = 0

    @property
    def good_alone_and_paired(self) -> float:
        """When it was last seen good in all kinds of looks that it had, 0 for never."""
        return min((self.good_at.get(kind, 0.0) for kind in self.looked_at), default=0.0)

    @property
    def log_evidence(self) -> float:
        """The logarithm of the strongest evidence against it."""
        return max((one.log for one in self.evidence.values()), default=0.0)


@dataclass
class Job:
    """A job of the ledger's own that has not ended; ``number`` is the scheduler's, once known.

    One that ``waits`` was submitted for a busy node.
    """

    key: str
    nodes: tuple[str, ...]
    at: float
    waits: bool = False
    number: str = ""


@dataclass
class Accusation:
    """Who was accused when, of what kind of look, by which evidence, in words.

    ``closed`` is why it no longer stands, empty while it does.
    """

    name: str
    node: str
    kind: str
    at: float
    log_evidence: float
    log_bound: float
    why: str
    short: str
    closed: str = ""


@dataclass
class Action:
    """What was done about an accusation: the last word on it and how often it was tried.

    ``outcome`` is ``intent``, ``done``, ``refused`` (nothing happened), ``unsure`` or ``undone``.
    """

    of: str
    kind: str
    outcome: str
    at: float
    begun_at: float
    tries: int = 0
    said: str = ""
    node: str = ""
    target: str = ""


@dataclass
class State:
    """All of a ledger. ``identity`` is a word that no other ledger has."""

    identity: str = ""
    nodes: dict[str, Node] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    accusations: dict[str, Accusation] = field(default_factory=dict)
    actions: dict[tuple[str, str], Action] = field(default_factory=dict)
    pairs: dict[tuple[str, str], tuple[float, str, Mapping[str, float]]] = field(
        default_factory=dict
    )
    recent: dict[str, deque[tuple[tuple[str, ...], bool]]] = field(
        default_factory=lambda: {kind: deque(maxlen=_RECENT) for kind in KINDS}
    )
    jobs_planned: int = 0
    node_seconds: float = 0.0
    last_at: float = 0.0

    def of(self, node: str) -> Node:
        """Return what is known of a node, which may be nothing."""
        return self.nodes.setdefault(node, Node())

    def usual(self, kind: str, nodes: Iterable[str]) -> float:
        """Return the share of looks that are slow on nodes other than these, doubled for safety."""
        without = {*nodes, *(name for name, node in self.nodes.items() if node.accused)}
        others = [slow for who, slow in self.recent[kind] if without.isdisjoint(who)]
        share = 2 * sum(others) / len(others) if len(others) >= _FEWEST else 0.0
        return min(max(USUAL, share), 1.0)

    def counts_for(self, kind: str, nodes: tuple[str, ...], at: float, apart_s: float) -> list[str]:
        """Return for whom a look at these nodes will count, whatever it shows.

        A slow pair tells nothing of a node whose partner was not good with others before.
        """
        counting = []
        for node in nodes:
            partners = [self.of(one) for one in nodes if one != node]
            good = all(one.good_at.get(PAIR) and not one.slow.get(PAIR) for one in partners)
            apart = at - self.of(node).counted_at.get(kind, float("-inf")) >= apart_s
            if good and apart:
                counting.append(node)
        return counting

    def apply(self, event: Event) -> None:
        """Take one more event; what a later version adds is passed over."""
        self.last_at = max(self.last_at, event["at"])
        take = getattr(self, f"_take_{event['event']}", None)
        if take is not None:
            take(event)

    # --- what events do ---------------------------------------------------------------------------

    def _take_begun(self, event: Event) -> None:
        self.identity = self.identity or event["ledger"]

    def _take_planned(self, event: Event) -> None:
        self.jobs_planned += 1
        nodes = tuple(event["nodes"])
        self.jobs[event["job"]] = Job(event["job"], nodes, event["at"], event["waits"])

    def _take_submitted(self, event: Event) -> None:
        if job := self.jobs.get(event["job"]):
            job.number = event["number"]

    def _take_ended(self, event: Event) -> None:
        job = self.jobs.pop(event["job"], None)
        self.node_seconds += event["node_seconds"]
        for node in map(self.of, job.nodes if job else ()):
            if event["measured"] or event["lost"]:
                node.lost = 0 if event["measured"] else node.lost + 1

    def _take_look(self, event: Event) -> None:
        kind, nodes, at = event["kind"], tuple(event["nodes"]), event["at"]
        slow = bool(event["slow"])
        self.recent[kind].append((nodes, slow))
        if kind == PAIR:
            self.pairs[min(nodes), max(nodes)] = at, event.get("distance", ""), event["values"]
        for name in nodes:
            node = self.of(name)
            node.looked_at[kind] = at
            node.met.update({other: at for other in nodes if other != name})
            if kind == ALONE and event["values"]:
                levels = {
                    key: MEASURES[key].level(value)
                    for key, value in event["values"].items()
                    if key in MEASURES
                }
                node.levels = [*node.levels, (at, levels)][-_LOOKS:]
                node.hardware = event.get("hardware", node.hardware)
            counts = name in event["counts"]
            if not slow:
                node.good_at[kind] = at
                node.slow.pop(kind, None)
                node.good_in_a_row += counts
            elif counts:
                # Of a pair whose partner is the suspect nothing is said of this one.
                node.slow[kind] = event["short"]
                node.good_in_a_row = 0
            elif kind == ALONE or not node.good_at.get(PAIR):
                node.slow.setdefault(kind, event["short"])
            if counts:
                node.counted_at[kind] = at
                before = node.evidence.get(kind, Evidence())
                node.evidence[kind] = before.after(slow, event["usual"], at)

    def _take_accused(self, event: Event) -> None:
        fields = {k: event[k] for k in ("node", "kind", "at", "log_evidence", "log_bound")}
        name = event["name"]
        self.accusations[name] = Accusation(name, why=event["why"], short=event["short"], **fields)
        node = self.of(event["node"])
        node.accused, node.good_in_a_row = name, 0
        node.evidence.clear()

    def _take_closed(self, event: Event) -> None:
        accusation = self.accusations[event["name"]]
        accusation.closed = event["why"]
        node = self.of(accusation.node)
        if node.accused == accusation.name:
            node.accused = ""
            node.evidence.clear()

    def _take_acted(self, event: Event) -> None:
        key = event["of"], event["kind"]
        known = self.actions.get(key)
        begun = known.begun_at if known else event["at"]
        tries = (known.tries if known else 0) + (event["outcome"] == "intent")
        words = event["said"], event["node"], event["target"]
        self.actions[key] = Action(*key, event["outcome"], event["at"], begun, tries, *words)

    # --- what follows from them -------------------------------------------------------------------

    def sound_again(self) -> list[Accusation]:
        """Return accusations of nodes that were good several times since."""
        return [
            self.accusations[node.accused]
            for node in self.nodes.values()
            if node.accused and node.good_in_a_row >= _SOUND_AGAIN
        ]

    def levels_of_kind(
        self, node: str, hardware: str, at: float
    ) -> dict[str, dict[str, list[float]]]:
        """Return the levels of the last looks at nodes with this hardware, within a week."""
        levels: dict[str, dict[str, list[float]]] = {}
        for name, one in self.nodes.items():
            if one.hardware != hardware or (one.accused and name != node):
                continue
            of_node = levels[name] = {}
            for seen, of_look in one.levels:
                if at - _FRESH_S <= seen <= at:
                    for key, level in of_look.items():
                        of_node.setdefault(key, []).append(level)
        return levels

    def pair_values(self, nodes: tuple[str, ...], distance: str, at: float) -> list[Any]:
        """Return the values of other pairs that are as far from each other, within a week."""
        pair = min(nodes), max(nodes)
        return [
            values
            for key, (seen, far, values) in self.pairs.items()
            if at - _FRESH_S <= seen <= at
            and key != pair
            and far == distance
            and not any(self.of(one).accused for one in key)
        ]


class Book:
    """A ledger and what its events amount to, those of other writers included."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.state = State()
        self.catch_up()

    def catch_up(self) -> None:
        """Take in what was appended since; raises StoreError for what is no event."""
        events, from_start = self.ledger.read_new()
        if from_start:
            self.state = State()
        for place, event in enumerate(events):
            try:
                self.state.apply(event)
            except (KeyError, TypeError, AttributeError, ValueError):
                raise self.ledger.damaged(place) from None

    def note(self, *events: Event) -> None:
        """Append events, all or none of them; raises StoreError where that cannot be."""
        self.ledger.append(*events)
        self.catch_up()
