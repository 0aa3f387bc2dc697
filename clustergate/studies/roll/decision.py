"""From what a job measured to looks, and from looks to accusations. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from clustergate.judge.nodes import FEWEST_NODES, beside_median
from clustergate.stats.sequential import log_bound
from clustergate.studies.roll.ledger import Event
from clustergate.studies.roll.state import ALONE, APART_S, KINDS, PAIR, State
from clustergate.studies.screen.measures import MEASURES, PAIRS, Result
from clustergate.studies.screen.one_node import behind

# Of a reason `sinfo -R` shows 20 letters.
_SHORT = {
    "hpl_gflops": "HPL",
    "fma_peak_gflops": "FMA",
    "triad_gb_s": "mem",
    "pingpong_latency_us": "lat",
    "pingpong_bandwidth_mb_s": "bw",
}
_FAILED = "fails"


def looks(
    state: State,
    job: str,
    results: Iterable[Result],
    at: float,
    hardware: Mapping[str, str] | None = None,
    distance: str = "",
    virtual: bool = False,
    apart_s: float = APART_S,
) -> Iterator[Event]:
    """Yield the looks of one job, each with what is slow; ``state`` is that before all of them.

    ``hardware`` is what each node is, by which it finds its like. They count where the last that
    did is ``apart_s`` ago.
    """
    by_nodes: dict[tuple[str, ...], list[Result]] = {}
    for one in results:
        by_nodes.setdefault(one.nodes, []).append(one)
    for nodes, of_nodes in sorted(by_nodes.items(), key=lambda item: len(item[0])):
        values = _best(of_nodes)
        failed = "" if values else of_nodes[-1].failed or "it measured nothing"
        kind = PAIR if len(nodes) > 1 else ALONE
        own = (hardware or {}).get(nodes[0], "")
        if kind == ALONE:
            slow = _slow_node(state, nodes[0], own, values, at, virtual=virtual)
        else:
            slow = _slow_pair(state, nodes, distance, values, at)
        event: dict[str, Any] = {
            "event": "look",
            "at": at,
            "job": job,
            "kind": kind,
            "nodes": [*nodes],
            "values": values,
            "slow": [_FAILED] if failed else [*slow],
            "short": _FAILED if failed else next(iter(slow.values()), ""),
            "usual": state.usual(kind, nodes),
            "counts": state.counts_for(kind, nodes, at, apart_s),
        }
        extra = {"hardware": own} if kind == ALONE else {"distance": distance}
        yield event | extra | ({"failed": failed} if failed else {})


def _best(results: Sequence[Result]) -> dict[str, float]:
    best: dict[str, float] = {}
    for key, value in (item for one in results for item in one.values.items()):
        level = MEASURES[key].level
        if key not in best or level(value) < level(best[key]):
            best[key] = value
    return best


def _slow_node(
    state: State, node: str, hardware: str, values: Mapping[str, float], at: float, *, virtual: bool
) -> dict[str, str]:
    """Return what of a node is behind its like, or its own past, in the words of a few letters."""
    past = state.levels_of_kind(node, hardware, at)
    return {
        one.measure.key: _short(one.measure.key, one.by)
        for one in behind(values, node, past, virtual=virtual)
    }


def _slow_pair(
    state: State, pair: tuple[str, ...], distance: str, values: Mapping[str, float], at: float
) -> dict[str, str]:
    """Return what of a pair is behind the median of other pairs of its distance."""
    others = state.pair_values(pair, distance, at)
    slow = {}
    for measure in PAIRS:
        costs = {str(k): measure.level(o[measure.key]) for k, o in enumerate(others) if o}
        if measure.key not in values or len(costs) < FEWEST_NODES - 1:
            continue
        costs["own"] = measure.level(values[measure.key])
        beside = beside_median(costs, math.log(measure.tolerated))
        if beside and "own" in beside.slow:
            slow[measure.key] = _short(measure.key, beside.slower_by["own"])
    return slow


def _short(key: str, by: float) -> str:
    # As a rate falls and a latency rises.
    sign = -1 if MEASURES[key].level(2.0) < 0 else 1
    return f"{_SHORT[key]} {100 * math.expm1(sign * by):+.0f}%"


def _in_full(short: str) -> str:
    name, _, by = short.partition(" ")
    titles = {letters: MEASURES[key].title for key, letters in _SHORT.items()}
    return f"{titles[name]} {by}" if name in titles else short


def accusations(state: State, at: float, per_1000_nodes_and_month: float) -> Iterator[Event]:
    """Yield whom the evidence accuses now, and whose accusation no longer holds.

    No more than so many sound nodes of 1000 are accused in a month, on average.
    """
    bound = log_bound(per_1000_nodes_and_month, len(KINDS))
    number = len(state.accusations)
    for name, node in sorted(state.nodes.items()):
        worst = max(node.evidence, key=lambda kind: node.evidence[kind].log, default="")
        if node.accused or not worst or (log := node.evidence[worst].log) < bound:
            continue
        number += 1
        short = node.slow.get(worst, "slow")
        yield {
            "event": "accused",
            "at": at,
            "name": f"a{number}",
            "node": name,
            "kind": worst,
            "log_evidence": log,
            "log_bound": bound,
            "short": short,
            "why": f"{_in_full(short)} ({'with other nodes' if worst == PAIR else 'by itself'}); "
            f"a sound node shows that with a chance of {math.exp(-log):.0e} at most",
        }
    for one in state.sound_again():
        yield {"event": "closed", "at": at, "name": one.name, "why": "good again, three times"}
