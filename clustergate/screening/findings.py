"""What a screening found, in words: who is to blame, on what evidence, how surely. Pure.

And in the forms in which it is needed next: lines for ``scontrol``, exclusions for a hostfile, the
text of a ticket. Names are checked and quoted there: they become words of commands.
"""

from __future__ import annotations

import datetime
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from clustergate.history.trends import told_nodes
from clustergate.launching.hostfiles import fold
from clustergate.model import Better, ClustergateError
from clustergate.screening.localisation import (
    FAMILY_ERROR,
    Blame,
    Located,
    Unit,
    locate,
    locate_alone,
)
from clustergate.screening.measures import ALONE, MEASURES, PAIRS, Measure, Result
from clustergate.wording.notation import listed, number

# What a hostfile allows in the reason of an exclusion, and how long it may be.
_NOT_IN_A_REASON = re.compile(r"[^A-Za-z0-9 .,:/#+_@-]+")
_LONGEST_REASON = 200
_NAMED = 8
FEWEST = 3
"""Nodes from which on they tell which of them is slow."""
_ADVICE: Mapping[Unit, str] = {
    Unit.NODE: "drain it and open a ticket; look at its clocks, memory, other processes, adapter "
    "and cable",
    Unit.PART_OF_NODE: "drain it; look at its adapter's ports and rails, and at the routes to "
    "those partners",
    Unit.LINK: "look at the cable and the route between the two, and at the error counters of the "
    "ports on the way",
    Unit.SWITCH: "look at the switch and its uplinks before its nodes: they are alike",
    Unit.INSIDE_SWITCH: "look at the switch itself: its nodes reach others as they should",
    Unit.BETWEEN_SWITCHES: "look at the cables and the routing between the two switches",
}
_ALONE_ADVICE = "drain it and open a ticket; look at its clocks, its memory and what else runs"
# Of these the nodes themselves are to be kept out.
_KEEPS_OUT = (Unit.NODE, Unit.PART_OF_NODE, Unit.SWITCH)


class ScreeningError(ClustergateError):
    """There is nothing that could be screened, or judged."""


@dataclass(frozen=True)
class Finding:
    """One node, link or switch that is to blame.

    ``evidence`` are sentences, one per measure. ``confidence`` is how sure it is at least that
    this is no chance, with all that was looked at. ``failed`` says that it does not work at all.
    """

    unit: Unit
    nodes: tuple[str, ...]
    switches: tuple[str, ...]
    evidence: tuple[str, ...]
    confidence: float
    failed: bool
    advice: str

    @property
    def who(self) -> str:
        """Name the culprit."""
        if self.unit is Unit.NODE:
            return f"node {self.nodes[0]}"
        if self.unit is Unit.PART_OF_NODE:
            return f"part of the links of node {self.nodes[0]}"
        if self.unit is Unit.LINK:
            return f"link {self.nodes[0]} - {self.nodes[1]}"
        if self.unit is Unit.BETWEEN_SWITCHES:
            return f"links between switches {self.switches[0]} and {self.switches[1]}"
        if self.unit is Unit.INSIDE_SWITCH:
            return f"links inside switch {self.switches[0]}"
        return f"switch {self.switches[0]} ({told_nodes(self.nodes)})"

    @property
    def sentence(self) -> str:
        """Say all of it."""
        return f"{self.who}: {'; '.join(self.evidence)}; {told_confidence(self.confidence)}"

    @property
    def keeps_out(self) -> tuple[str, ...]:
        """Return the nodes that no job should get before this is mended."""
        return self.nodes if self.unit in _KEEPS_OUT else ()


@dataclass(frozen=True)
class Screening:
    """What a screening says.

    ``names`` are the nodes (or cores, as ``what`` says), ``located`` what each measure says by its
    key, ``switch_of`` the switch of each node where all are known. ``doubts`` are sentences about
    what was slow and not often enough to accuse anybody, ``notes`` what else is to be known.
    """

    names: tuple[str, ...]
    switches: tuple[str, ...]
    located: Mapping[str, Located]
    findings: tuple[Finding, ...]
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    what: str = "node"
    switch_of: Mapping[str, str] = field(default_factory=dict)

    @property
    def keeps_out(self) -> tuple[str, ...]:
        """Return the nodes that no job should get, each once, in the order of ``names``."""
        out = {name for finding in self.findings for name in finding.keeps_out}
        return tuple(name for name in self.names if name in out)

    def centre(self, key: str) -> float | None:
        """Return the value of a measure that is usual among the sound, None where none is."""
        centres = self.located[key].centres if key in self.located else {}
        usual = centres.get("all", centres.get("other"))
        return None if usual is None else MEASURES[key].value(usual)


def analyse(
    names: Sequence[str],
    results: Sequence[Result],
    switches: Mapping[str, str] | None = None,
    what: str = "node",
) -> Screening:
    """Return what all results of a screening say together.

    ``names`` are all that should have taken part, ``switches`` name the switch of each where it is
    known. The chance of any wrong accusation is that of all measures together. Raises
    :class:`ScreeningError` for a result of somebody who is not among the names.
    """
    index = {name: k for k, name in enumerate(names)}
    if strangers := [n for result in results for n in result.nodes if n not in index]:
        raise ScreeningError(f"there is a result of {strangers[0]}, which was not to be screened")
    switch_names = sorted(set(switches.values())) if switches else []
    numbers = [switch_names.index(switches[n]) for n in names] if switches else None
    located: dict[str, Located] = {}
    measured = [m for m in MEASURES.values() if any(_is_about(m, r) for r in results)]
    for measure in measured or list(PAIRS):
        relevant = [r for r in results if _is_about(measure, r)]
        nodes = np.array([[index[n] for n in r.nodes] for r in relevant], dtype=np.int64)
        levels = [measure.level(r.values[measure.key]) if r.values else math.inf for r in relevant]
        options = _Options(
            tolerated=math.log(measure.tolerated),
            error=FAMILY_ERROR / len(measured or PAIRS),
            turns=[r.turn for r in relevant],
        )
        if measure in ALONE:
            located[measure.key] = locate_alone(len(names), nodes.ravel(), levels, **options)
        else:
            located[measure.key] = locate(len(names), nodes, levels, numbers, **options)
    failures: dict[tuple[str, ...], str] = {}
    for result in results:
        if result.failed:
            failures.setdefault(tuple(sorted(result.nodes)), result.failed)
    told = _Teller(tuple(names), tuple(switch_names), located, failures, what)
    return Screening(
        names=tuple(names),
        switches=tuple(switch_names),
        located=located,
        findings=tuple(told.findings()),
        doubts=tuple(told.doubts()),
        notes=tuple(told.notes()),
        what=what,
        switch_of=switches or {},
    )


class _Options(TypedDict):
    tolerated: float
    error: float
    turns: list[int]


def _is_about(measure: Measure, result: Result) -> bool:
    """Tell whether a result has the figure, or has failed to have it."""
    return result.kind == measure.kind and (bool(result.failed) or measure.key in result.values)


def told_confidence(confidence: float) -> str:
    """Return a confidence for a reader; nothing is sure beyond 99.99 %."""
    if confidence >= 0.9999:
        return "confidence above 99.99 %"
    return f"confidence {math.floor(10000 * confidence) / 100:g} %"


@dataclass(frozen=True)
class _Teller:
    names: tuple[str, ...]
    switches: tuple[str, ...]
    located: Mapping[str, Located]
    failures: Mapping[tuple[str, ...], str]
    what: str

    def findings(self) -> Iterator[Finding]:
        """Yield what is to blame, what several measures say of one unit together."""
        together: dict[tuple[Unit, tuple[int, ...]], list[tuple[Measure, Blame]]] = {}
        for key, located in self.located.items():
            for blame in located.blames:
                who = (blame.unit, blame.switches or blame.nodes)
                together.setdefault(who, []).append((MEASURES[key], blame))
        for (unit, _), told in together.items():
            blames = [blame for _, blame in told]
            alone = all(measure in ALONE for measure, _ in told)
            yield Finding(
                unit=unit,
                nodes=self._named({n for blame in blames for n in blame.nodes}),
                switches=tuple(self.switches[s] for s in blames[0].switches),
                evidence=tuple(dict.fromkeys(self._evidence(m, blame) for m, blame in told)),
                # Each measure stands for itself: the surest of them counts.
                confidence=1.0 - min(blame.chance for blame in blames),
                failed=all(blame.failed for blame in blames),
                advice=_ALONE_ADVICE if alone else _ADVICE[unit],
            )

    def _named(self, numbers: set[int]) -> tuple[str, ...]:
        return tuple(self.names[n] for n in sorted(numbers))

    def _evidence(self, measure: Measure, blame: Blame) -> str:
        alone = measure in ALONE
        where = _where(blame, alone)
        if blame.failed:
            first = self._first_failure(blame, alone)
            return f"failed {where}{f', first with: {first}' if first else ''}"
        located = self.located[measure.key]
        usual = located.centres.get("all", located.centres.get("other", 0.0))
        word = "longer" if measure.better is Better.LOWER else "lower"
        value = measure.value(usual + math.log(blame.factor))
        partners = ""
        if blame.partners:
            partners = f", with {listed(self._named(set(blame.partners)), _NAMED)}"
        return (
            f"{measure.title} {number(blame.factor)} times {word} (about {number(value)} "
            f"{measure.unit}, usual {number(measure.value(usual))}) {where}{partners}"
        )

    def _first_failure(self, blame: Blame, alone: bool) -> str:
        for nodes, sentence in self.failures.items():
            concerned = {self.names[n] for n in blame.nodes}
            of_pair = len(nodes) == 2
            if alone != of_pair and (
                concerned.issuperset(nodes)
                if blame.unit is Unit.LINK
                else concerned.intersection(nodes)
            ):
                return sentence
        return ""

    def doubts(self) -> Iterator[str]:
        """Yield what was slow or failed, and cannot be pinned on anybody yet."""
        for key, located in self.located.items():
            title = MEASURES[key].title
            if not located.centres:
                first = next(iter(self.failures.values()), "")
                yield f"{title}: no launch worked{f'; the first said: {first}' if first else ''}"
                continue
            if located.too_noisy and len(self.names) >= FEWEST:
                times = number(math.exp(located.threshold))
                yield (
                    f"{title}: too noisy: only what is {times} times worse would have been seen; "
                    "screen again when nothing else runs"
                )
            if located.doubts:
                told = [" - ".join(self.names[n] for n in unit) for unit in located.doubts]
                named = listed(told, _NAMED)
                yield f"{title}: slow, but not often enough to accuse anybody: {named}"
            if located.suspects:
                named = listed(self._named(set(located.suspects)), _NAMED)
                yield f"{title}: slow with most partners, but of too few to be sure: {named}"

    def notes(self) -> Iterator[str]:
        """Yield what is usual, and what could not have been seen."""
        for key, located in self.located.items():
            if not located.centres:
                continue
            measure = MEASURES[key]
            usual = ", ".join(
                f"{number(measure.value(level))} {measure.unit}"
                + ("" if name == "all" else f" ({_CLASSES[name]})")
                for name, level in located.centres.items()
            )
            seen = 100 * math.expm1(located.threshold)
            yield f"{measure.title}: usually {usual}; what is {seen:.0f} % worse is called slow"
            if located.unmeasured:
                missing = listed(self._named(set(located.unmeasured)), _NAMED)
                yield f"{measure.title}: never measured: {missing}"
            if located.faster:
                pairs = [" - ".join(self.names[n] for n in pair) for pair in located.faster]
                yield (
                    f"{measure.title}: much better than what is usual here: "
                    f"{listed(pairs, _NAMED)}; if the others should be as good, most are slow"
                )
        if len(self.names) < FEWEST:
            yield (
                f"with {len(self.names)} {self.what}{'s' if len(self.names) > 1 else ''} there is "
                "nobody to tell by who of them is slow; compare the figures with earlier ones"
            )


_CLASSES = {"same switch": "on one switch", "other": "between switches"}


def _where(blame: Blame, alone: bool) -> str:
    launches = f"{blame.observations} launches"
    if alone:
        return f"by itself in {blame.slow} of {launches}"
    if blame.unit is Unit.LINK:
        return f"in {blame.slow} of {launches}"
    if blame.unit in (Unit.NODE, Unit.PART_OF_NODE):
        return f"with {blame.slow} of {blame.links} partners ({launches})"
    return f"on {blame.slow} of {blame.links} links ({launches})"


# --- forms ------------------------------------------------------------------------------------


def scontrol_lines(found: Screening, today: datetime.date) -> list[str]:
    """Return the commands that take the bad nodes out of Slurm, those of one reason together.

    Raises :class:`~clustergate.launching.hostfiles.HostfileError` for a name that is no node's.
    """
    reasons: dict[str, list[str]] = {}
    for name, reason in _reasons(found).items():
        reasons.setdefault(f"clustergate {today.isoformat()}: {reason}", []).append(name)
    return [
        shlex.join(
            ["scontrol", "update", f"NodeName={fold(names)}", "State=DRAIN", f"Reason={reason}"]
        )
        for reason, names in reasons.items()
    ]


def hostfile_lines(found: Screening, today: datetime.date) -> list[str]:
    """Return the lines that exclude the bad nodes in a hostfile of the suite.

    Raises :class:`~clustergate.launching.hostfiles.HostfileError` for a name that is no node's.
    """
    reasons: dict[str, list[str]] = {}
    for name, reason in _reasons(found).items():
        reasons.setdefault(reason, []).append(name)
    return [
        f"exclude {fold(names)} {today.isoformat()} {reason}" for reason, names in reasons.items()
    ]


def ticket(found: Screening, system: str, when: datetime.datetime) -> str:
    """Return the text of a ticket: what was found, on what evidence, and what to look at."""
    count = len(found.findings)
    lines = [
        f"{system}: {count} finding{'' if count == 1 else 's'} of the screening of "
        f"{when.isoformat(timespec='minutes')}, {len(found.names)} {found.what}s",
        "",
    ]
    for finding in found.findings:
        lines.append(f"- {finding.who} ({told_confidence(finding.confidence)})")
        lines += [f"  {sentence}" for sentence in finding.evidence]
        lines.append(f"  to do: {finding.advice}")
    lines += [f"- not settled: {doubt}" for doubt in found.doubts]
    lines += ["", *found.notes]
    return "\n".join(lines) + "\n"


def _reasons(found: Screening) -> dict[str, str]:
    """Return for each node that is to be kept out why, in the few characters that are allowed."""
    reasons: dict[str, str] = {}
    for finding in found.findings:
        short = "failed" if finding.failed else "slow"
        who = {
            Unit.NODE: f"{short} in screening",
            Unit.PART_OF_NODE: f"{short} with some partners in screening",
            Unit.SWITCH: f"switch {' '.join(finding.switches)} {short} in screening",
        }.get(finding.unit)
        if who is None:
            continue
        for name in finding.keeps_out:
            told = who if finding.unit is Unit.SWITCH else f"{who}, {finding.evidence[0]}"
            text = " ".join(_NOT_IN_A_REASON.sub(" ", told).split())
            reasons.setdefault(name, text[:_LONGEST_REASON].strip())
    return reasons
