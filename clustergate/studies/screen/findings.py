"""What a screening found, in words: who is to blame, on what evidence, how surely. Pure.

And in the forms in which it is needed next: lines for ``scontrol``, exclusions for a hostfile, the
text of a ticket. Names are checked and quoted there: they become words of commands.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from clustergate.core.model import Better, ClustergateError
from clustergate.core.notation import counted, listed, rounded
from clustergate.core.reasons import Words
from clustergate.judge.history.trends import node_names
from clustergate.launch.hostfiles import fold
from clustergate.sites.schedulers.scheduler import Scheduler
from clustergate.studies.screen.localisation import (
    FAMILY_ERROR,
    Blame,
    Located,
    Unit,
    locate,
    locate_alone,
)
from clustergate.studies.screen.measures import ALONE, MEASURES, PAIRS, Measure, Result, shares

# What a hostfile allows in the reason of an exclusion, and how long it may be, so that Slurm's has
# 80 characters with who gave it, and when.
_NOT_IN_A_REASON = re.compile(r"[^A-Za-z0-9 .,:/#+_@-]+")
_LONGEST_REASON = 80 - len(", clustergate 2026-11-21")
_NAMED = 8
# Of what an accused node has that the others have not, the likeliest causes.
_DIFFERENCES = 3
FEWEST = 3
"""Nodes from which on they tell which of them is slow."""
_ADVICE: Mapping[Unit, str] = {
    Unit.NODE: "drain it and open a ticket; check its clocks, memory, other processes, adapter "
    "and cable",
    Unit.PART_OF_NODE: "drain it; check its adapter's ports and rails, and the routes to "
    "those partners",
    Unit.LINK: "check the cable and the route between the two, and the error counters of the ports "
    "on the way",
    Unit.SWITCH: "check the switch and its uplinks before its nodes: most of those are slow",
    Unit.INSIDE_SWITCH: "check the switch itself: its nodes reach other switches at normal speed",
    Unit.BETWEEN_SWITCHES: "check the cables and the routing between the two switches",
}
_SUSPECTS: Mapping[Unit, str] = {
    Unit.NODE: "node {nodes[0]}",
    Unit.PART_OF_NODE: "part of the links of node {nodes[0]}",
    Unit.LINK: "link {nodes[0]} - {nodes[1]}",
    Unit.SWITCH: "switch {} ({every})",
    Unit.INSIDE_SWITCH: "links inside switch {}",
    Unit.BETWEEN_SWITCHES: "links between switches {} and {}",
}
_ALONE_ADVICE = "drain it and open a ticket; check its clocks, its memory and what else runs"
# Of these the nodes themselves are to be kept out.
_KEEPS_OUT = (Unit.NODE, Unit.PART_OF_NODE, Unit.SWITCH)


@dataclass(frozen=True)
class Finding:
    """One node, link or switch that is to blame.

    ``evidence`` are sentences, one per measure, and ``cause`` is the first one in a few words.
    ``confidence`` is how sure it is at least that this is no chance, with all that was looked
    at. ``failed`` says that it does not work at all, ``unlike`` in what the accused are not as most
    of their kind.
    """

    unit: Unit
    nodes: tuple[str, ...]
    switches: tuple[str, ...]
    evidence: tuple[str, ...]
    cause: str
    confidence: float
    failed: bool
    advice: str
    unlike: str = ""

    @property
    def suspect(self) -> str:
        """Name the culprit."""
        every = node_names(self.nodes)
        return _SUSPECTS[self.unit].format(*self.switches, nodes=self.nodes, every=every)

    @property
    def sentence(self) -> str:
        """Say all of it."""
        parts = [*self.evidence, confidence_text(self.confidence), self.unlike]
        return f"{self.suspect}: {'; '.join(filter(None, parts))}"

    @property
    def keeps_out(self) -> tuple[str, ...]:
        """Return the nodes that no job should get before this is mended."""
        return self.nodes if self.unit in _KEEPS_OUT else ()


@dataclass(frozen=True)
class Screening:
    """What a screening says.

    ``names`` are the nodes (or cores, as ``what`` says), ``located`` what each measure says by its
    key, ``switch_of`` the switch of each node where all are known, ``failures`` the first error of
    the launches on some nodes. ``more_doubts`` are sentences about what was not even launched,
    ``absent`` counts the nodes that the job was not given, ``unlike`` says by node what it has that
    most of its kind have not, ``astray`` are sentences about those that were not so before, either.
    A ``quick`` one has a launch on each node: too few for a doubt.
    """

    names: tuple[str, ...]
    switches: tuple[str, ...]
    located: Mapping[str, Located]
    failures: Mapping[tuple[str, ...], str]
    what: str = "node"
    switch_of: Mapping[str, str] = field(default_factory=dict)
    more_doubts: tuple[str, ...] = ()
    absent: int = 0
    unlike: Mapping[str, Sequence[str]] = field(default_factory=dict)
    astray: tuple[str, ...] = ()
    quick: bool = False

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

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is to blame, what several measures say of one unit together."""
        return tuple(self._findings())

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Sentences about what was slow or failed, and cannot be pinned on anybody yet."""
        return (*self._doubts(), *self.more_doubts)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return sentences about who was left out of a measure that others were not left out of."""
        return tuple(
            f"{MEASURES[key].title}: not measured: {listed(self._named({*left_out}), _NAMED)}"
            for key, located in self.located.items()
            if 0 < len(left_out := located.unmeasured) < len(self.names)
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what is typical, and what could not have been seen."""
        return tuple(self._notes())

    def _findings(self) -> Iterator[Finding]:
        together: dict[tuple[Unit, tuple[int, ...]], list[tuple[Measure, Blame]]] = {}
        for key, located in self.located.items():
            for blame in located.blames:
                who = (blame.unit, blame.switches or blame.nodes)
                together.setdefault(who, []).append((MEASURES[key], blame))
        for (unit, _), blamed in together.items():
            blames = [blame for _, blame in blamed]
            alone = all(measure in ALONE for measure, _ in blamed)
            named = self._named({n for blame in blames for n in blame.nodes})
            advice, unlike = _ALONE_ADVICE if alone else _ADVICE[unit], self._unlike(unit, named)
            yield Finding(
                unit=unit,
                nodes=named,
                switches=tuple(self.switches[s] for s in blames[0].switches),
                evidence=tuple(dict.fromkeys(self._evidence(m, blame) for m, blame in blamed)),
                cause=_cause(*blamed[0]),
                # Each measure stands for itself: the surest of them counts.
                confidence=1.0 - min(blame.chance for blame in blames),
                failed=all(blame.failed for blame in blames),
                advice=f"{unlike}; put that right and screen again, or {advice}"
                if unlike
                else advice,
                unlike=unlike,
            )

    def _unlike(self, unit: Unit, nodes: Sequence[str]) -> str:
        """Return what the accused have that most of their kind have not, empty where nothing."""
        unlike = {node: tuple(self.unlike[node]) for node in nodes if node in self.unlike}
        if unit not in (*_KEEPS_OUT, Unit.LINK):
            return ""
        sentences = [
            f"{listed(named, _NAMED)} is unlike the rest: {listed(what, _DIFFERENCES)}"
            for what in dict.fromkeys(unlike.values())
            if (named := [node for node, own in unlike.items() if own == what])
        ]
        return "; ".join(sentences)

    def _named(self, numbers: set[int]) -> tuple[str, ...]:
        return tuple(self.names[n] for n in sorted(numbers))

    def _evidence(self, measure: Measure, blame: Blame) -> str:
        alone = measure in ALONE
        where = _where(blame, alone)
        if blame.failed:
            first = self._first_failure(blame, alone)
            return f"failed {where}{f', first error: {first}' if first else ''}"
        located = self.located[measure.key]
        usual = located.centres.get("all", located.centres.get("other", 0.0))
        value = measure.value(usual + math.log(blame.factor))
        partners = ""
        if blame.partners:
            partners = f", with {listed(self._named(set(blame.partners)), _NAMED)}"
        return (
            f"{measure.title} {rounded(blame.factor)} times {_slower(measure)} "
            f"(about {rounded(value)} {measure.unit}, typically {rounded(measure.value(usual))}) "
            f"{where}{partners}{_ranges(measure, blame)}"
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

    def _doubts(self) -> Iterator[str]:
        for key, located in self.located.items():
            title = MEASURES[key].title
            if len(located.unmeasured) == len(self.names):
                yield f"{title}: nothing was launched"
                continue
            if not located.centres:
                first = next(iter(self.failures.values()), "")
                yield f"{title}: every launch failed{f'; first error: {first}' if first else ''}"
                continue
            if self.quick:
                continue
            if located.too_noisy and len(self.names) >= FEWEST:
                times = f"only a factor of {rounded(math.exp(located.noticed))}"
                seen = "nothing" if math.isinf(located.noticed) else times
                again = "screen again when nothing else runs"
                yield f"{title}: too noisy: {seen} would have been detected; {again}"
            if located.doubts:
                doubts = self._units(located.doubts)
                yield f"{title}: slow, or slow at times, but too few launches to be sure: {doubts}"
            if located.suspects:
                named = listed(self._named(set(located.suspects)), _NAMED)
                yield f"{title}: slow with most partners, but too few of them to be sure: {named}"
            if located.returning and not self.findings:
                named = listed(self._named(set(located.returning)), _NAMED)
                yield (
                    f"{title}: twice as slow as what counts as slow in a launch, and launched too "
                    f"seldom since to show whether that comes again: {named}"
                )
            if located.outnumbering:
                named = listed(self._named(set(located.outnumbering)), _NAMED)
                yield (
                    f"{title}: much better than all others: {self._units(located.faster)}; so "
                    f"either most are slow ({named}), or these are nearer or of another kind: name "
                    "switches in the hostfile, screen one kind at a time"
                )

    def _units(self, units: Sequence[tuple[int, ...]]) -> str:
        return listed([" - ".join(self.names[n] for n in unit) for unit in units], _NAMED)

    def _notes(self) -> Iterator[str]:
        for key, located in self.located.items():
            if not located.centres:
                continue
            measure = MEASURES[key]
            usual = ", ".join(
                f"{rounded(measure.value(level))} {measure.unit}"
                + ("" if name == "all" else f" ({_CLASSES[name]})")
                for name, level in located.centres.items()
            )
            times = math.exp(located.threshold)
            slow = f"{100 * (times - 1):.0f} %" if times < 2 else f"{times:.1f} times"
            yield f"{measure.title}: typically {usual}; {slow} worse counts as slow"
            if located.at_times and not located.too_noisy:
                yield (
                    f"{measure.title}: slow in some launches, and not in most: "
                    f"{self._units(located.at_times)}; screen again if jobs there are slow at times"
                )
            if located.faster and not located.outnumbering:
                units = self._units(located.faster)
                yield f"{measure.title}: much better than typical here: {units}"
        if len(self.names) < FEWEST:
            yield (
                f"{counted(len(self.names), self.what)} cannot show which one is slow: it takes "
                f"{FEWEST}; compare the figures with earlier ones"
            )


SCREENING_STRANGER = Words(
    "screening.stranger",
    "a result names {node}, which is not being screened",
)


def analyse(
    names: Sequence[str],
    results: Sequence[Result],
    switches: Mapping[str, str] | None = None,
    unit_word: str = "node",
) -> Screening:
    """Return what all results of a screening say together.

    ``names`` are all that should have taken part, ``switches`` name the switch of each where it is
    known. The chance of any wrong accusation is that of all measures together. Raises
    :class:`ClustergateError` for a result of somebody who is not among the names.
    """
    index = {name: k for k, name in enumerate(names)}
    if strangers := [n for result in results for n in result.nodes if n not in index]:
        raise ClustergateError(SCREENING_STRANGER(node=strangers[0]))
    switch_names = sorted(set(switches.values())) if switches else []
    numbers = [switch_names.index(switches[n]) for n in names] if switches else None
    located: dict[str, Located] = {}
    measured = [m for m in MEASURES.values() if any(_is_about(m, r) for r in results)]
    share = shares(measured := measured or list(PAIRS))
    for measure in measured:
        relevant = [r for r in results if _is_about(measure, r)]
        nodes = np.array([[index[n] for n in r.nodes] for r in relevant], dtype=np.int64)
        levels = [measure.level(r.values[measure.key]) if r.values else math.inf for r in relevant]
        compare = locate_alone if measure in ALONE else partial(locate, switches=numbers)
        located[measure.key] = compare(
            len(names),
            nodes.ravel() if measure in ALONE else nodes,
            levels,
            turns=[r.turn for r in relevant],
            tolerated=math.log(measure.tolerated),
            error=FAMILY_ERROR * share[measure.key],
        )
    failures: dict[tuple[str, ...], str] = {}
    for result in results:
        if result.failed:
            failures.setdefault(tuple(sorted(result.nodes)), result.failed)
    return Screening(
        tuple(names), tuple(switch_names), located, failures, unit_word, switch_of=switches or {}
    )


def _is_about(measure: Measure, result: Result) -> bool:
    """Tell whether a result has the figure, or has failed to have it."""
    return result.kind == measure.kind and (bool(result.failed) or measure.key in result.values)


def confidence_text(confidence: float) -> str:
    """Return a confidence for a reader; nothing is sure beyond 99.99 %."""
    if confidence >= 0.9999:
        return "confidence above 99.99 %"
    return f"confidence {math.floor(10000 * confidence) / 100:g} %"


_CLASSES = {"same switch": "on one switch", "other": "between switches"}


def _ranges(measure: Measure, blame: Blame) -> str:
    """Return the best and the worst value of a unit, and of all others, where both are known."""
    if any(map(math.isnan, (*blame.seen, *blame.elsewhere))):
        return ""
    own, others = (
        " to ".join(rounded(value) for value in sorted(map(measure.value, levels)))
        for levels in (blame.seen, blame.elsewhere)
    )
    return f": {own} {measure.unit}, elsewhere {others}"


def _slower(measure: Measure) -> str:
    return "longer" if measure.better is Better.LOWER else "lower"


def _cause(measure: Measure, blame: Blame) -> str:
    if blame.failed:
        return "failed"
    return f"{blame.factor:.3g}x {_slower(measure)} {measure.title}"


def _where(blame: Blame, alone: bool) -> str:
    launches = f"{blame.observations} launches"
    share = f"{blame.slow} of {launches}"
    if blame.seldom:
        launches = share = f"the worst third of {launches}"
    if alone:
        return f"by itself in {share}"
    if blame.unit is Unit.LINK:
        return f"in {share}"
    if blame.unit in (Unit.NODE, Unit.PART_OF_NODE):
        return f"with {blame.slow} of {blame.links} partners ({launches})"
    return f"on {blame.slow} of {blame.links} links ({launches})"


# --- forms ------------------------------------------------------------------------------------


def drain_lines(scheduler: Scheduler, screening: Screening, today: datetime.date) -> list[str]:
    """Return the commands that drain the bad nodes, those of one reason together.

    Raises :class:`~clustergate.launch.hostfiles.HostfileError` for a name that is no node's.
    """
    by = f"clustergate {today.isoformat()}"
    return [
        scheduler.drain_line([*names], f"{reason}, {by}")
        for reason, names in _by_reason(screening).items()
    ]


def hostfile_lines(screening: Screening, today: datetime.date) -> list[str]:
    """Return the lines that exclude the bad nodes in a hostfile of the suite.

    Raises :class:`~clustergate.launch.hostfiles.HostfileError` for a name that is no node's.
    """
    return [
        f"exclude {fold(names)} {today.isoformat()} {reason}"
        for reason, names in _by_reason(screening).items()
    ]


def ticket(screening: Screening, system: str, when: datetime.datetime) -> str:
    """Return the text of a ticket: each fault with its evidence and what to check."""
    lines = [
        f"{system}: {counted(len(screening.findings), 'finding')} of the screening of "
        f"{when.isoformat(timespec='minutes')}, {counted(len(screening.names), screening.what)}",
        "",
    ]
    for finding in screening.findings:
        lines.append(f"- {finding.suspect} ({confidence_text(finding.confidence)})")
        lines += [f"  {sentence}" for sentence in finding.evidence]
        lines.append(f"  to do: {finding.advice}")
    lines += [f"- unresolved: {doubt}" for doubt in screening.doubts]
    lines += ["", *screening.notes]
    return "\n".join(lines) + "\n"


def _by_reason(screening: Screening) -> dict[str, list[str]]:
    """Return the nodes to be kept out by the first reason of each, in the characters allowed.

    It begins with the cause: of a reason `sinfo -R` shows 20 characters.
    """
    nodes: dict[str, list[str]] = {}
    seen: set[str] = set()
    for finding in screening.findings:
        if not finding.keeps_out:
            continue
        where = {
            Unit.PART_OF_NODE: " with some partners",
            Unit.SWITCH: f" on switch {' '.join(finding.switches)}",
        }.get(finding.unit, " in screening")
        reason = f"{finding.cause}{where}"
        reason = " ".join(_NOT_IN_A_REASON.sub(" ", reason).split())[:_LONGEST_REASON].strip()
        if names := [name for name in finding.keeps_out if name not in seen]:
            nodes.setdefault(reason, []).extend(names)
            seen.update(names)
    return nodes
