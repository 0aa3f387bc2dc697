"""References: what a system should reach, from ``references/<system>.yaml``.

The files have the external form that ReFrame reads by ``$ref``, and keys match here as they match
there. :mod:`clustergate.judge.references.validation` refuses what ReFrame passes in silence.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from clustergate.benchmarks.naming import with_bytes
from clustergate.benchmarks.registry import descriptor_of, every_check
from clustergate.core.figures import name_of, reported
from clustergate.core.files.marked_yaml import Document, read_document
from clustergate.core.model import (
    OF_MORE_RANKS,
    Anchor,
    BadRequest,
    BaselineRuns,
    Case,
    CaseId,
    CaseRecord,
    ClustergateError,
    Conditions,
    Figure,
    Reference,
    Sample,
    require_name,
)
from clustergate.core.paths import site_file
from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.judge.references.expectations import Expect, expectations_in
from clustergate.judge.references.tolerances import tolerances_in, tolerated
from clustergate.judge.references.validation import (
    ANCHORS,
    INDEX,
    PROVENANCE,
    STATISTICS,
    anchor_of,
    baseline_runs,
    closest,
    compared,
    complaints,
    figure_metric,
    is_of_a_case,
    mode_of,
    origin_of,
    reference_paths,
    takes,
    within_anchor,
)

Keys = tuple[str, ...]
"""Check, partition, stack, layout, effort and figure, as the file has them."""
_Ran = TypeVar("_Ran", Case, CaseRecord)
# So large a part of the ranks may be gone: HPL of a few less has nearly as much for each.
_FEW_MORE = 1 / 8
# Among statistics of version 0.1.
_EARLIER = "tail_percent"


def reference_file(system: str) -> Path:
    """Return the file of one of the site's systems, whether it is there or not.

    Raises :class:`BadRequest` for what is no name.
    """
    return site_file("references", f"{require_name('system', system)}.yaml")


def layout_key(conditions: Conditions) -> str:
    """Return the key of a launch, such as ``2-ranks-packed`` or ``8-ranks-packed-4-cores-each``.

    It is text, because ReFrame never matches a number with a key that is text. Raises
    :class:`ClustergateError` when the conditions name no ranks or no placement.
    """
    placement = str(_stated(conditions, "placement"))
    parts = [f"{_stated(conditions, 'ranks')}-ranks", *filter(None, [placement])]
    if conditions.get("cores_per_rank", 1) != 1:
        parts.append(f"{conditions['cores_per_rank']}-cores-each")
    if not conditions.get("bound", True):
        parts.append("unbound")
    return "-".join(parts)


def effort_key(conditions: Conditions) -> str:
    """Return the key of an effort: the mode, and what was set otherwise than the mode sets it.

    ``conditions["settings"]`` is that as text, such as ``nb=384``: a changed problem has no
    reference, rather than that of another problem. Raises :class:`ClustergateError` when the
    conditions name no mode.
    """
    settings = conditions.get("settings", "")
    return f"{_stated(conditions, 'mode')}" + (f"+{settings}" if settings else "")


NO_CONDITION = Words(
    "references.no-condition",
    "a case without the condition {name!r} cannot have references",
)


def _stated(conditions: Conditions, name: str) -> object:
    try:
        return conditions[name]
    except KeyError:
        raise ClustergateError(NO_CONDITION(name=name)) from None


REFERENCES_UNSIZED = Words(
    "references.unsized",
    "it is not known for what size and processor the references of {cases:names} hold",
    cause=(
        "their $provenance lacks {keys:and}; on fewer nodes, with a larger matrix or on a faster "
        "processor they would hide a slow-down"
    ),
    remedy="add it to the entry of each case, or take a baseline",
)
REFERENCES_EARLIER = Words(
    "references.earlier",
    "{source} was made by an earlier version",
    cause="its references are judged by their tolerances alone",
    remedy="`clustergate baseline` makes new ones",
)


@dataclass(frozen=True)
class References:
    """The references of one system, as its file holds them; see :func:`load_references`."""

    source: Path
    document: Document = field(default_factory=Document)
    earlier: bool = False
    """Whether it holds statistics of an earlier version, which nobody can read any more."""

    @property
    def notes(self) -> list[str]:
        """Return what is to be known of the whole file."""
        return [str(REFERENCES_EARLIER(source=self.source))] if self.earlier else []

    def find(
        self, check: str, partition: str, stack: str, conditions: Conditions, sample: Sample
    ) -> Reference | None:
        """Return what to expect of a figure, None when nobody has said.

        ``partition`` is ReFrame's full name, such as ``local:node``; ``conditions`` are those of
        the case. Raises :class:`ClustergateError` when they are incomplete.
        """
        entries = self._entries(check, partition, stack, conditions)
        if entries is None:
            return self._of_more_ranks(check, partition, stack, conditions, sample)
        if name_of(sample) not in entries[1]:
            return None
        path = (*entries[0], name_of(sample))
        where = f"{self.source}:{self.document.line(path)}"
        speaking = closest(self._section(PROVENANCE), path) or ""
        reference = dataclasses.replace(self.at(path), where=where)
        if entry := self._section(STATISTICS).get(speaking):
            mode = mode_of(effort_key(conditions))
            if mode not in self._compared:
                self._compared[mode] = compared(self.paths(), mode)
            known = baseline_runs(entry, check, path[-1], self._compared[mode])
            reference = dataclasses.replace(reference, baseline=known)
        return tolerated(reference, self.tolerances, check, sample)

    def _of_more_ranks(
        self, check: str, partition: str, stack: str, conditions: Conditions, sample: Sample
    ) -> Reference | None:
        """Return what follows of a figure from references of a few ranks more, laid out alike.

        So a node that is drained leaves the others with references, where the benchmark says how.
        """
        if (more := self._ranks_beyond(check, partition, stack, conditions)) is None:
            return None
        there = {**conditions, "ranks": more}
        ranks = int(conditions["ranks"])
        factor = descriptor_of(check).of_fewer_ranks(sample.metric, ranks, more)
        known = self.find(check, partition, stack, there, sample) if factor else None
        if known is None or factor is None or known.baseline is None or not known.nodes:
            return None
        nodes = int(conditions.get("nodes", 1))
        if ranks * known.nodes != more * nodes:
            # What is gone is not nodes alone: fewer ranks on each have more memory to themselves.
            return None
        origin = f"{known.origin}, {OF_MORE_RANKS.format(ranks=more)}"
        scaled_down = scaled(known, factor)
        return dataclasses.replace(scaled_down, origin=origin, nodes=nodes, more_ranks=more)

    def _ranks_beyond(
        self, check: str, partition: str, stack: str, conditions: Conditions
    ) -> int | None:
        """Return how many ranks more, but few, have references, None where none have."""
        path = self.chosen(check, partition, stack)
        if len(path) < 3:
            return None
        ranks, rest = layout_key(conditions).split("-", 1)
        alike = (
            int(count)
            for count, _, of in (one.partition("-") for one in self._at(path))
            if of == rest and count.isdecimal()
        )
        return min((n for n in alike if 0 < n - int(ranks) <= _FEW_MORE * n), default=None)

    def nearest_ns(
        self, check: str, partition: str, stack: str, conditions: Conditions
    ) -> float | None:
        """Return how far two cores were from each other when a case got its references.

        It is the shortest round trip of all of them in ns, None where the file is silent. Raises
        :class:`ClustergateError` as :meth:`find` does.
        """
        keys = (partition, stack, layout_key(conditions), effort_key(conditions))
        path = self.chosen(check, *keys)
        distances_ns = [
            entry["core_distance_ns"]
            for prefix, entry in self._section(STATISTICS).items()
            if prefix.split("/")[: len(keys) + 1] == [*path] and "core_distance_ns" in entry
        ]
        return min(distances_ns, default=None)

    @property
    def accepted(self) -> list[tuple[str, str]]:
        """Who made references and when, with what was said of them; each once."""
        origins = self._section(PROVENANCE).values()
        blessed = (one for one in origins if one.get("blessed"))
        remarks = ((str(one["blessed"]), str(one.get("remark", ""))) for one in blessed)
        return [*dict.fromkeys(remarks)]

    @property
    def blessed(self) -> str:
        """Who made the newest references and when; of those that were printed that they are."""
        origins = self._section(PROVENANCE).values()
        known = [one["blessed"] for one in origins if one.get("blessed")]
        if known:
            return str(max(known, key=lambda one: one.rpartition(" ")[2]))
        days = [day for one in origins for day in one.get("dates", ())]
        return max(days, default="published" if origins else "")

    def days_measured(self) -> set[datetime.date]:
        """Return the days on which the runs of the references began."""
        origins = self._section(PROVENANCE).values()
        days = (day for one in origins for day in one.get("dates", ()))
        return set(map(datetime.date.fromisoformat, days))

    @cached_property
    def expects(self) -> tuple[Expect, ...]:
        """What people expect, in the order of the file."""
        return tuple(expectations_in(self.document, str(self.source), self.tolerances))

    @cached_property
    def tolerances(self) -> Mapping[str, float]:
        """How much worse figures may be by kind, as fractions, where people wrote it."""
        return tolerances_in(self.document)

    @cached_property
    def by_hand(self) -> tuple[Keys, ...]:
        """The keys of each reference that a person wrote, and that no run measured."""
        origins = {one.get("origin") for one in self._section(PROVENANCE).values()}
        if "published" not in origins:
            return ()
        return tuple(path for path in self.paths() if self.at(path).by_hand)

    @cached_property
    def _compared(self) -> dict[str, int]:
        """How many figures a run of a mode compares, once somebody asked."""
        return {}

    def paths(self) -> list[tuple[str, ...]]:
        return reference_paths(self.document.data or {})

    def at(self, path: Sequence[str]) -> Reference:
        """Return the reference that stands at the end of these keys; raises KeyError for none."""
        origins = self._section(PROVENANCE)
        speaking = closest(origins, path) or ""
        provenance = origins.get(speaking, {})
        value, lower, upper, unit = self._at(path)
        of_path = Reference(float(value), lower, upper, unit, origin_of(origins, path))
        of_path = within_anchor(of_path, self.anchors_at(path[:-1]).get(path[-1]))
        return dataclasses.replace(
            of_path,
            processors=tuple(provenance.get("processors", ())),
            # What covers several cases names the nodes of all of them.
            nodes=len(provenance.get("nodes", ())) if is_of_a_case(speaking) else 0,
            order=provenance.get("n", 0),
            method=provenance.get("method", ""),
            anchor=anchor_of(self.anchors_at(path[:-1]), path[0], path[-1]),
            by_hand=provenance.get("origin") == "published",
        )

    def anchors_at(self, case: Sequence[str]) -> Mapping[str, Any]:
        """Return what the file says of the first accepted baselines of a case."""
        of_case: Mapping[str, Any] = self._section(ANCHORS).get("/".join(case), {})
        return of_case

    def runs_of(self, path: Sequence[str]) -> BaselineRuns | None:
        """Return the runs that a reference was made from, None where the file does not have them.

        Raises KeyError where there is no such reference.
        """
        speaking = closest(self._section(PROVENANCE), path) or ""
        known = self._section(STATISTICS).get(speaking, {})
        return baseline_runs(known, path[0], path[-1], 1)

    def chosen(self, check: str, *keys: str) -> tuple[str, ...]:
        """Return the check and the keys of the file that ReFrame takes for these, level by level.

        It ends where the file has none.
        """
        path = [check]
        level = self._check(check)
        for key in keys:
            if (chosen := _chosen(level, key)) is None:
                break
            path.append(chosen)
            level = level[chosen]
        return tuple(path)

    def _entries(
        self, check: str, partition: str, stack: str, conditions: Conditions
    ) -> tuple[tuple[str, ...], Mapping[str, Any]] | None:
        keys = (partition, stack, layout_key(conditions), effort_key(conditions))
        path = self.chosen(check, *keys)
        return (path, self._at(path)) if len(path) > len(keys) else None

    def _at(self, path: Sequence[str]) -> Any:
        level: Any = self.document.data
        for key in path:
            level = level[key]
        return level

    def unmet_layouts(
        self, check: str, partition: str, stack: str, ran: Sequence[Conditions], mode: str
    ) -> list[str]:
        """Return the layouts that the file foresees and that none of the cases which ran had.

        Only layouts of an effort count that one of the cases made, or where none ``ran`` one of the
        mode. Raises :class:`ClustergateError` for conditions that are incomplete.
        """
        path = self.chosen(check, partition, stack)
        if len(path) < 3:
            return []
        layouts = self._check(check)[path[1]][path[2]]
        efforts = {effort_key(conditions) for conditions in ran}
        met = {_chosen(layouts, layout_key(conditions)) for conditions in ran}
        return [
            layout
            for layout, by_effort in layouts.items()
            if layout not in met
            and (
                any(_chosen(by_effort, effort) for effort in efforts)
                if ran
                else any(takes(effort, mode) for effort in by_effort)
            )
        ]

    def efforts(
        self, check: str, partition: str, stack: str, made: Collection[str]
    ) -> dict[str, str]:
        """Return the efforts that the file foresees of some modes, with file and line of each.

        ``made`` are efforts such as "smoke": another one of the same mode counts too, and so does
        a pattern that matches one of them.
        """
        path = self.chosen(check, partition, stack)
        if len(path) < 3:
            return {}
        places: dict[str, str] = {}
        for layout, by_effort in self._check(check)[path[1]][path[2]].items():
            for effort in by_effort:
                if any(mode_of(effort) == mode_of(e) or matches(effort, e) for e in made):
                    line = self.document.line((*path, layout, effort))
                    places.setdefault(effort, f"{self.source}:{line}")
        return places

    def foreseen(self, mode: str) -> list[Keys]:
        """Return check, partition and stack of all that the file expects of a mode."""
        return list(dict.fromkeys(path[:3] for path in self.paths() if takes(path[4], mode)))

    def unmeasured(self, cases: Iterable[Case]) -> Iterator[tuple[Keys, list[str]]]:
        """Yield the keys of an effort and those of its figures that no case yielded which made it.

        Raises :class:`ClustergateError` as :meth:`find` does.
        """
        for path, ran in self._by_entries(cases):
            conditions = [case.conditions for case in ran]
            if lost := self._lost(path, conditions, [f for case in ran for f in case.figures]):
                yield path, lost

    def _by_entries(self, ran: Iterable[_Ran]) -> Iterator[tuple[Keys, list[_Ran]]]:
        """Yield the keys of each effort that some cases made, with those cases."""
        of_entries: dict[Keys, list[_Ran]] = {}
        for one in ran:
            if entries := self._entries(one.check, one.partition, one.stack, one.conditions):
                of_entries.setdefault(entries[0], []).append(one)
        yield from of_entries.items()

    def _lost(
        self, path: Keys, ran: Iterable[Conditions], measured: Sequence[Sample | Figure]
    ) -> list[str]:
        """Return the figures of an effort that were not ``measured`` by what ``ran`` for it.

        Under a pattern of efforts, which may hold the figures of several modes, it must be that no
        figure of this benchmark and metric was measured at all.
        """
        names = set(map(name_of, measured))
        kinds = {(one.benchmark, one.metric) for one in measured}
        is_pattern = all(effort_key(conditions) != path[-1] for conditions in ran)
        return [
            name
            for name in self._at(path)
            if name not in names and not (is_pattern and figure_metric(name) in kinds)
        ]

    def without(self, cases: Iterable[CaseId], mode: str) -> list[CaseId]:
        """Return the cases of whose check the file has nothing in a mode.

        It has it for the partition and the stack of the case, whatever its layout.
        """
        return [
            one for one in cases if not self.efforts(one.check, one.partition, one.stack, [mode])
        ]

    def figures_of(
        self, check: str, partition: str, stack: str, conditions: Conditions
    ) -> tuple[str, Collection[str]] | None:
        """Return the figures that the file has for a case, behind file and line.

        None where it has nothing for such a case.
        """
        entries = self._entries(check, partition, stack, conditions)
        if entries is None:
            return None
        return f"{self.source}:{self.document.line(entries[0])}", list(entries[1])

    def matrix_order_of(
        self, check: str, partition: str, stack: str, conditions: Conditions
    ) -> int | None:
        """Return the order of the matrix of which a case's references are, None where nobody says.

        Raises :class:`ClustergateError` as :meth:`find` does.
        """
        entries = self._entries(check, partition, stack, conditions)
        if entries is None:
            return None
        stated = self._section(PROVENANCE).get(
            closest(self._section(PROVENANCE), entries[0]) or "", {}
        )
        order: int | None = stated.get("n")
        return order

    def line_of(self, *keys: str) -> str:
        """Return file and line of what the file has for a check and some keys below it."""
        return f"{self.source}:{self.document.line(self.chosen(*keys))}"

    def unused(self, records: Iterable[CaseRecord], *, whole: bool = True) -> list[str]:
        """Return a sentence for each part of the file that a run should have used and did not.

        A check that did not run says nothing, nor does a case that left no figures, nor an effort
        that the run did not make; :meth:`unmet_layouts` speaks of layouts. What remains is a
        partition or a stack that no case of its check has, where the ``whole`` site config ran, and
        a figure that a case of the very effort did not yield. Of what people wrote by hand
        :func:`clustergate.judge.standings.of_references` speaks.
        """
        by_check: dict[str, list[CaseRecord]] = {}
        for record in records:
            by_check.setdefault(record.check, []).append(record)
        return [
            f"{self.source}:{self.document.line(path)}: {'/'.join(path)} was not used by this run: "
            f"{why}; rename or remove it"
            for check, own in by_check.items()
            for path, why in (self._unused(check, own) if whole else self._unmeasured(own))
            if not all(one in self.by_hand for one in self.paths() if one[: len(path)] == path)
        ]

    def unsized(self, records: Iterable[CaseRecord]) -> list[str]:
        """Return of which cases references were written that do not say for what they hold.

        Those that `clustergate baseline` makes say it.
        """
        by_lack: dict[Keys, dict[str, Keys]] = {}
        for record in records:
            # It names no ranks.
            if record.unavailable or record.complaints:
                continue
            case = (record.check, record.partition, record.stack)
            if entries := self._entries(*case, record.conditions):
                known = [self.at((*entries[0], name)) for name in entries[1]]
                stated: dict[str, list[object]] = {
                    "nodes": [one.nodes for one in known],
                    "processors": [one.processors for one in known],
                    "n": [one.order or not descriptor_of(record.check).matrix for one in known],
                }
                lacks = [key for key, values in stated.items() if not all(values)]
                where = f"{record.check} with {record.stack}"
                by_lack.setdefault(tuple(lacks), {}).setdefault(where, entries[0])
        return [
            str(
                REFERENCES_UNSIZED(cases=list(cases), keys=lacks).at(
                    f"{self.source}:{self.document.line(next(iter(cases.values())))}"
                )
            )
            for lacks, cases in by_lack.items()
            if lacks
        ]

    def _unused(self, check: str, own: Sequence[CaseRecord]) -> Iterator[tuple[Keys, str]]:
        partitions = self._check(check)
        for partition, stacks in partitions.items():
            here = [r for r in own if _chosen(partitions, r.partition) == partition]
            if not here:
                known = ", ".join(sorted({r.partition for r in own}))
                yield (check, partition), f"no case of it has this partition; the run has {known}"
                continue
            known = ", ".join(sorted({r.stack for r in here}))
            for stack in stacks:
                if not any(_chosen(stacks, r.stack) == stack for r in here):
                    lost = (check, partition, stack)
                    yield lost, f"no case of it has this stack; the run has {known}"
        yield from self._unmeasured(own)

    def _unmeasured(self, own: Sequence[CaseRecord]) -> Iterator[tuple[Keys, str]]:
        """Yield the first figure that no case had which took its place in the file."""
        ended = (one for one in own if not (one.unavailable or one.complaints))
        for path, ran in self._by_entries(ended):
            samples = [sample for record in ran for sample in reported(record.samples)]
            if lost := self._lost(path, [record.conditions for record in ran], samples):
                others = f", nor {len(lost) - 1} other references here" if len(lost) > 1 else ""
                yield (*path, lost[0]), f"the case has no such figure{others}"

    def _check(self, name: str) -> Mapping[str, Any]:
        return {key: value for key, value in self._section(name).items() if key != INDEX}

    def _section(self, name: str) -> Mapping[str, Any]:
        section: Mapping[str, Any] = (self.document.data or {}).get(name, {})
        return section


def scaled(reference: Reference, factor: float) -> Reference:
    """Return a reference of which each value, that of each run too, is so many times as large."""

    def of_runs(known: BaselineRuns) -> BaselineRuns:
        return dataclasses.replace(known, values=tuple(factor * one for one in known.values))

    baseline, anchor = reference.baseline, reference.anchor
    if anchor is not None:
        later = tuple((day, factor * value) for day, value in anchor.later)
        anchor = Anchor(of_runs(anchor.baseline), later)
    return dataclasses.replace(
        reference,
        value=factor * reference.value,
        baseline=baseline and of_runs(baseline),
        anchor=anchor,
    )


REFERENCES_DANGLING = Words(
    "references.dangling",
    "{path} is a link to {to}, which is not there",
    remedy="mend the link, or remove it to judge by physical limits alone",
)
REFERENCES_TWIN = Words(
    "references.twin",
    "nothing reads this file beside {name}",
    remedy="move what it says to {name}, and remove it",
)
REFERENCES_MISNAMED = Words(
    "references.misnamed",
    "nothing reads this file",
    remedy="rename it to {name}",
)


def load_references(path: Path, checks: Collection[str]) -> References:
    """Read and validate the references of a system; without the file there are none.

    ``checks`` are the names of the check classes that exist. Raises :class:`BadRequest`.
    """
    alike = sorted(p for p in path.parent.glob("*") if _is_alike(p, path) and p.name != path.name)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if path.is_symlink():
            raise BadRequest(REFERENCES_DANGLING(path=path, to=os.readlink(path))) from None
        if alike:
            raise BadRequest(REFERENCES_MISNAMED(at=f"{alike[0]}:1", name=path.name)) from None
        return References(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(FILE_UNREADABLE(path=path, why=error)) from None
    if alike:
        raise BadRequest(REFERENCES_TWIN(at=f"{alike[0]}:1", name=path.name))
    return parse_references(text, path, checks)


def references_of(system: str) -> References:
    """Return the references of one of the site's systems, none when it has no file yet."""
    return load_references(reference_file(system), every_check())


@functools.lru_cache(maxsize=1)
def load_references_once(path: Path) -> References:
    """Return what :func:`load_references` does of every check, read once by each process."""
    return load_references(path, every_check())


REFERENCES_INVALID = Words("references.invalid", "{complaints}")
REFERENCES_EMPTY = Words(
    "references.empty",
    "{path} holds no reference",
    remedy="restore it, or remove it to judge by physical limits alone",
)


def parse_references(text: str, path: Path, checks: Collection[str]) -> References:
    """Validate the text of the references of a system, which is or will be the file ``path``.

    Raises :class:`BadRequest`.
    """
    document = read_document(with_bytes(text))
    if not document.data and not document.complaints:
        raise BadRequest(REFERENCES_EMPTY(path=path))
    earlier = _drop_earlier_statistics(document)
    complaints_found = document.complaints or complaints(document, path.stem, checks)
    if complaints_found:
        lines = sorted({(complaint.line, str(complaint.reason)) for complaint in complaints_found})
        each = "\n".join(f"{path}:{line}: {words}" for line, words in lines)
        raise BadRequest(REFERENCES_INVALID(complaints=each))
    return References(path, document, earlier)


def _drop_earlier_statistics(document: Document) -> bool:
    """Take statistics of version 0.1 out of a file; tell whether there were any.

    What they belong to goes on being judged, by its tolerance alone: an upgrade of the suite takes
    no baseline away.
    """
    statistics = document.data.get(STATISTICS) if isinstance(document.data, dict) else None
    if not isinstance(statistics, dict):
        return False
    earlier = [path for path, entry in statistics.items() if _EARLIER in (entry or ())]
    for path in earlier:
        del statistics[path]
    return bool(earlier)


def _is_alike(candidate: Path, path: Path) -> bool:
    return candidate.suffix.lower() in (".yaml", ".yml", ".json") and (
        candidate.stem.lower() == path.stem.lower()
    )


def _chosen(keys: Iterable[str], wanted: str) -> str | None:
    """Return the key that ReFrame takes: the same one, else the first pattern that matches."""
    keys = list(keys)
    if wanted in keys:
        return wanted
    return next((key for key in keys if matches(key, wanted)), None)


def matches(key: str, wanted: str) -> bool:
    """Tell whether ReFrame would take a key for what is wanted, where no other one is closer."""
    # As a whole: of ``a|b`` ReFrame's ``^a|b$`` takes all that begins with a.
    return key == wanted or re.fullmatch(key, wanted) is not None
