"""The first screen of nodes beside each other. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clustergate.core.notation import counted
from clustergate.core.reasons import Words
from clustergate.core.texts import shortened
from clustergate.judge.history.node_states import folded
from clustergate.machine.changes import describe_one
from clustergate.machine.fleet import Deviation, Kind
from clustergate.report import terminal
from clustergate.report.summary import Cause, FirstScreen
from clustergate.report.terminal import Numbers

FLEET_SILENT = Words(
    "fleet.silent",
    "{nodes} took part and did not report their state",
    remedy="see nodes.err in the folder of their job; changes on these nodes go unnoticed",
)
_MEANINGS = {
    0: "all nodes are alike",
    1: "some nodes are unlike the rest",
    2: "nothing to compare with, or some did not report their state",
}
_KINDS_SHOWN, _NAMES, _CHANGE = 3, 30, 44


@dataclass(frozen=True)
class Fleet:
    """Nodes by their kinds: what is odd of them, which are ``silent``, which ``alone``."""

    kinds: Sequence[Kind]
    odd: Sequence[Deviation]
    silent: Sequence[str]
    alone: Sequence[str]

    @property
    def nodes(self) -> int:
        return sum(len(kind.nodes) for kind in self.kinds)


def render(run_id: str, of: Fleet, status: int, *, whole: bool, **how: Any) -> str:
    """Return the first screen of the nodes of a run, ``whole`` where every line is wanted.

    ``how`` it is written is what :func:`~clustergate.report.terminal.render_first` takes.
    """
    head = f"clustergate fleet   run {run_id}   {counted(of.nodes, 'node')}"
    return terminal.render_first(
        f"{head}, {counted(len(of.kinds), 'kind')}",
        first_screen(of, status, whole=whole),
        _numbers(of, whole=whole),
        rest="(--all)",
        whole=whole,
        **how,
    )


def first_screen(of: Fleet, status: int, *, whole: bool = False) -> FirstScreen:
    """Return what is said first: which nodes are unlike the rest, and which nobody compared."""
    odd, silent, alone, count = of.odd, of.silent, of.alone, counted(of.nodes, "node")
    unlike = sorted({node for one in odd for node in one.nodes})
    causes = []
    if silent:
        unseen = FLEET_SILENT(nodes=folded(silent))
        causes.append(Cause("inconclusive", "not seen", "", str(unseen), unseen.without_remedy))
    if alone:
        why = f"{folded(alone)}: nothing to compare with, the only one of its kind"
        causes.append(Cause("inconclusive", "not compared", "", why, why))
    again = "`clustergate screen --quick` asks every node again"
    if odd:
        are = "is" if len(unlike) == 1 else "are"
        look, word = "regression", "UNLIKE THE REST"
        said = f"{len(unlike)} of {count} {are}: {folded(unlike)}"
        steps = [f"mend what differs, or exclude those nodes in the hostfile; then {again}"]
    elif silent or len(alone) == of.nodes:
        look, word = "inconclusive", "NOT ALL COMPARED"
        said = "all others are like the rest" if len(alone) < of.nodes else "each is alone"
        steps = [f"nodes.err in the folder of their job says why they are silent; {again}"]
        if not silent:
            steps = ["`clustergate fleet --golden FILE` compares with a node that is right"]
    else:
        look, word = "pass", "ALIKE"
        said = "all others" if alone else f"all {count}"
        said += " are like the rest of their kind"
        steps = ["`clustergate fleet --golden NODE` finds what all of them have wrong"]
    exits = [("clustergate fleet", status, _MEANINGS[status])]
    return FirstScreen(look, word, said, causes, steps, exits, _kinds(of.kinds, whole=whole))


def _kinds(kinds: Sequence[Kind], *, whole: bool) -> list[str]:
    """Return which kinds of nodes there are, the largest first."""
    shown = kinds if whole else kinds[:_KINDS_SHOWN]
    lines = [
        f"kind {letter}: {counted(len(kind.nodes), 'node')}, {kind.title}: "
        f"{_names(kind.nodes, whole=whole)}"
        for letter, kind in zip(_letters(kinds), shown, strict=False)
    ]
    more = len(kinds) - len(shown)
    return [*lines, *[f"{counted(more, 'more kind')} (--all)"] * bool(more)]


def _letters(kinds: Sequence[Kind]) -> list[str]:
    return [chr(ord("A") + number) if number < 26 else str(number) for number in range(len(kinds))]


def _names(nodes: Sequence[str], *, whole: bool) -> str:
    return folded(nodes) if whole else shortened(folded(nodes), _NAMES)


def _numbers(of: Fleet, *, whole: bool) -> Numbers:
    letter_of = dict(zip(map(id, of.kinds), _letters(of.kinds), strict=True))
    rows = [
        (
            f"{_names(one.nodes, whole=whole)} ({len(one.nodes)})",
            describe_one(one.change) if whole else shortened(describe_one(one.change), _CHANGE),
            "the golden node" if one.share is None else f"{int(one.share * 100)} % of its kind",
            letter_of[id(one.kind)],
        )
        for one in of.odd
    ]
    return Numbers(["nodes", "should be -> is", "should be so as on", "kind"], rows, (), (3, 2))
