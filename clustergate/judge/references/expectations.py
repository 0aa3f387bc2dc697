"""What people expect of a system, as ``expect`` of its references says: floors and ceilings.

.. code-block:: yaml

    expect:
      HPL of nominal peak: ">= 87 %"
      PingPong 8 B: [{value: "<= 0.3 us", nodes: 1}, {value: "<= 1.2 us", nodes: 2}]

A name means what it does in the table on the screen (:mod:`clustergate.benchmarks.naming`), and
holds for every stack, mode and layout unless the expectation says otherwise. Pure.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clustergate.benchmarks.naming import Meaning, meaning_of, unit_factor
from clustergate.benchmarks.registry import every_check
from clustergate.core.files.marked_yaml import Document
from clustergate.core.model import Better, Conditions, ConditionValue, Expectation, Figure, Sample
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.reasons import Reason, Words
from clustergate.core.words import INPUT_UNKNOWN_NAME
from clustergate.judge.references.tolerances import EXPECT_KEY, TOLERANCE_VALUE, read_tolerance
from clustergate.judge.runs import kind_in
from clustergate.sites.modes import every_mode

EXPECT = "expect"
_VALUE = re.compile(r"\s*(>=|<=|≥|≤)\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(\S.*?)\s*")
_HIGHER = {">=": True, "≥": True, "<=": False, "≤": False}
# Of which cases an expectation is, by keys of its own: what a case says of itself.
_OF_CASE = ("stacks", "partitions")
_OF_LAUNCH: Mapping[str, str] = {
    "modes": "mode",
    "nodes": "nodes",
    "ranks": "ranks",
    "placement": "placement",
}
_KEYS = ("value", "tolerance", "source", "check", *_OF_CASE, *_OF_LAUNCH)


@dataclass(frozen=True)
class Expect:
    """An expectation with the figures that its name means, and the cases that it is of.

    ``meaning`` is None where no check has such a figure. ``only`` has what a case must say of
    itself by the keys of the file, such as ``nodes``; what it lacks may be anything. Without a
    tolerance of its own it has that of the kind of its figure in ``tolerances``.
    """

    expectation: Expectation
    meaning: Meaning | None
    only: Mapping[str, tuple[ConditionValue, ...]] = field(default_factory=dict)
    tolerances: Mapping[str, float] = field(default_factory=dict)

    def is_of_stack(self, stack: str, partition: str) -> bool:
        """Tell whether it is of a stack in a partition: its name, or ReFrame's full name of it."""
        names = self.only.get("partitions", ())
        return stack in self.only.get("stacks", (stack,)) and (
            not names or partition in names or partition.rpartition(":")[2] in names
        )

    def is_of_mode(self, mode: str) -> bool:
        return mode in self.only.get("modes", (mode,))

    def is_of_launch(self, conditions: Conditions) -> bool:
        """Tell whether it is of launches like one; of one that never was, if it says nothing."""
        return all(
            conditions.get(name) in self.only[key]
            for key, name in _OF_LAUNCH.items()
            if key in self.only and key != "modes"
        )

    def of(self, figure: Figure | Sample, check: str) -> Expectation:
        """Return what is expected of a figure of a check, with what is tolerated of its kind."""
        size = figure.conditions.get("bytes")
        kind = kind_in(check, figure.benchmark, figure.metric, size)
        tolerance = self.expectation.tolerance
        own = self.tolerances.get(kind) if tolerance is None else tolerance
        return dataclasses.replace(self.expectation, tolerance=own)

    def applies(self, check: str, partition: str, stack: str, conditions: Conditions) -> bool:
        """Tell whether it is of a case."""
        return (
            self.meaning is not None
            and self.meaning.check == check
            and self.is_of_stack(stack, partition)
            and self.is_of_mode(str(conditions.get("mode", "")))
            and self.is_of_launch(conditions)
        )


def expected_of(
    expects: Sequence[Expect],
    case: tuple[str, str, str, Conditions],
    figures: Sequence[Figure | Sample],
    values: Sequence[float],
) -> list[tuple[Expectation, ...]]:
    """Return what is expected of each figure of a case, which is check, partition, stack, launch.

    ``values`` are those of the figures: of several that a name means, as ``PingPong best`` does, it
    is said of the one that the table shows.
    """
    by_figure: list[list[Expectation]] = [[] for _ in figures]
    for one in expects:
        if one.meaning is not None and one.applies(*case):
            place = one.meaning.of(figures, values)
            if place is not None:
                by_figure[place].append(one.of(figures[place], case[0]))
    return list(map(tuple, by_figure))


def expectations_in(
    document: Document, source: str, tolerances: Mapping[str, float]
) -> list[Expect]:
    """Return the expectations of a valid file, ``source``, with the ``tolerances`` of its kinds."""
    return [one for _, one in _each(document, source, tolerances) if isinstance(one, Expect)]


def complaints_of(document: Document) -> list[tuple[Sequence[str | int], Reason]]:
    """Return what is wrong with the expectations of a file that has the form of the schema.

    Not that no check has such a figure: a run says so, with all else that it has to say.
    """
    return [(path, one) for path, one in _each(document, "", {}) if isinstance(one, Reason)]


def _each(
    document: Document, source: str, tolerances: Mapping[str, float]
) -> Iterator[tuple[Sequence[str | int], Expect | Reason]]:
    for name, entry in (document.data or {}).get(EXPECT, {}).items():
        listed = isinstance(entry, list)
        for place, one in enumerate(entry if listed else [entry]):
            path = (EXPECT, name, *([place] if listed else ()))
            where = f"{source}:{document.line(path)}"
            given = {"value": one} if isinstance(one, str) else one
            yield path, _read(name, given, where, tolerances)


EXPECT_VALUE = Words(
    "expect.value",
    "{value!r} is neither a floor nor a ceiling with its unit",
    remedy='write ">= 87 %" for at least, "<= 1.2 us" for at most',
)
EXPECT_UNIT = Words(
    "expect.unit",
    "{name} is in {units:names}, not in {unit!r}",
    remedy="write it in such a unit",
)
EXPECT_DIRECTION = Words(
    "expect.direction",
    "of {name} {better} is better, so {given} would fail what is good",
    remedy="write {wanted}",
)


def _read(
    name: str, entry: Mapping[str, Any], where: str, tolerances: Mapping[str, float]
) -> Expect | Reason:
    at = f"{EXPECT}/{name}"
    if unknown := [key for key in entry if key not in _KEYS]:
        meant = did_you_mean(nearest(unknown[0], _KEYS))
        return EXPECT_KEY(key=unknown[0], known=[*_KEYS], meant=meant).at(at)
    only = {
        key: tuple(value) if isinstance(value, list) else (value,)
        for key, value in entry.items()
        if key in (*_OF_CASE, *_OF_LAUNCH)
    }
    for mode in only.get("modes", ()):
        if mode not in every_mode():
            return INPUT_UNKNOWN_NAME(kind="mode", name=mode, known=[*every_mode()]).at(at)
    if (check := entry.get("check", "")) and check not in every_check():
        return INPUT_UNKNOWN_NAME(kind="check", name=check, known=[*every_check()]).at(at)
    match = _VALUE.fullmatch(entry["value"])
    value = float(match[2]) if match else 0.0
    if match is None or not (math.isfinite(value) and value > 0):
        return EXPECT_VALUE(value=entry["value"]).at(at)
    own = read_tolerance(entry.get("tolerance"))
    if "tolerance" in entry and own is None:
        return TOLERANCE_VALUE(value=str(entry["tolerance"])).at(at)
    unit, source = match[3], entry.get("source", "")
    meaning = meaning_of(name, check)
    if meaning is None:
        return Expect(Expectation(name, value, unit, 1.0, source, where, ""), None, only)
    of_unit = meaning.in_unit(unit)
    if of_unit is None:
        return EXPECT_UNIT(name=name, units=meaning.units, unit=unit).at(at)
    higher = of_unit.better is Better.HIGHER
    if _HIGHER[match[1]] is not higher:
        facts = {"better": of_unit.better.value, "wanted": ">=" if higher else "<="}
        return EXPECT_DIRECTION(name=name, given=match[1], **facts).at(at)
    line = of_unit.lines[0]
    scale = line.scale / (unit_factor(unit, line.unit) or 1.0)
    known = Expectation(name, value, unit, scale, source, where, of_unit.check, own)
    return Expect(known, of_unit, only, tolerances)
