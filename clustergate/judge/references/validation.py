"""What a reference file must be so that no figure passes for want of a comparison.

ReFrame takes a great deal without a word: a key at the wrong level, a number for a key, a bound
that is null, a class that is gone. Pure functions on a document that was read with its lines.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clustergate.benchmarks.registry import descriptor_of, every_metric, not_loaded
from clustergate.core.figures import reported
from clustergate.core.files.marked_yaml import Complaint, Document
from clustergate.core.files.whole import read_json
from clustergate.core.model import (
    METRICS,
    Anchor,
    BaselineRuns,
    Better,
    Reference,
    Sample,
)
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.paths import suite_folder
from clustergate.core.reasons import Reason, Words
from clustergate.core.words import INPUT_UNKNOWN_NAME
from clustergate.judge.references.expectations import EXPECT, complaints_of
from clustergate.judge.references.tolerances import EXPECT_KEY, TOLERANCES
from clustergate.judge.references.tolerances import complaints_of as of_tolerances
from clustergate.sites.modes import every_mode

if TYPE_CHECKING:
    import jsonschema

PROVENANCE = "$provenance"
STATISTICS = "$statistics"
ANCHORS = "$anchors"
INDEX = "$index"
# A check, and the levels that its index names.
_CASE_LEVELS = 5
# The most that a reference may tolerate, as a fraction of its value, unless statistics say how much
# its runs scatter: what loses half of its rate is broken, and passes below such a bound.
WIDEST_TOLERANCE = 0.5
# From here on a bound is percent that was taken for a fraction.
PERCENT = 5.0
# So many times off its reference is no mean, and nothing better, of a baseline.
_FAR_OFF = 100.0
# A key at the top that is rather one of the two beside the checks.
_ALIKE = 0.8


VALUES = "values"
"""What ``$statistics`` have of each figure. Those of before have its scatter, which tells nobody
how figures scattered together: its references are judged by their tolerance, as they stand."""


def compared(paths: Iterable[Sequence[str]], mode: str) -> int:
    """Return how many of some paths to references a run in a mode may take.

    What is for other settings of the same mode counts, too: a run may have both.
    """
    return sum(takes(path[-2], mode) for path in set(map(tuple, paths)))


def mode_of(effort: str) -> str:
    """Return the mode of an effort, which settings may follow."""
    return effort.partition("+")[0]


def takes(effort: str, mode: str) -> bool:
    """Tell whether an effort as a file has it, which may be a pattern, is one of a mode."""
    return mode_of(effort) == mode or re.fullmatch(effort, mode) is not None


def baseline_runs(
    statistics: Mapping[str, Any], check: str, name: str, of: int
) -> BaselineRuns | None:
    """Return what the runs of a baseline said of a figure, None where the file does not say.

    ``statistics`` are those of the figure's case, ``of`` is how many figures a whole run compares.
    """
    values = statistics.get(VALUES, {}).get(name)
    if values is None:
        return None
    slow = statistics.get("slow_percent", {})
    return BaselineRuns(
        runs=tuple(statistics["runs"]),
        days=tuple(map(str, statistics["days"])),
        values=tuple(map(float, values)),
        launches=max(1, statistics["launches"] // len(values)),
        compared=max(of, 1),
        slow=slow.get(name, 0.0) / 100,
        slow_together=slow.get(name.partition(".")[0], 0.0) / 100,
        distances=tuple(statistics.get("distances", ())),
        repeated=descriptor_of(check).repeated,
    )


def figure_metric(name: str) -> tuple[str, str] | None:
    """Return the benchmark and the metric of a figure's name, None when it cannot be a figure.

    See :func:`clustergate.core.figures.name_of`: a metric called as its benchmark is not said
    twice.
    """
    parts = name.split(".")
    if len(parts) > 1 and parts[-1] in every_metric():
        return parts[0], parts[-1]
    is_both = parts[0] in every_metric() and parts[0] not in METRICS
    return (parts[0], parts[0]) if is_both else None


def origin_of(provenance: Mapping[str, Any], path: Sequence[str]) -> str:
    """Return in words where a reference came from; of several that cover it, the closest says.

    Raises KeyError when none does.
    """
    speaking = closest(provenance, path)
    if speaking is None:
        raise KeyError("/".join(path))
    stated = provenance[speaking]
    if stated["origin"] == "published":
        parts = [f"published: {stated['source']}"]
    else:
        first, last = min(stated["dates"]), max(stated["dates"])
        parts = [
            f"measured {first}" if first == last else f"measured {first} to {last}",
            f"{stated['samples']} launch{'es' if stated['samples'] > 1 else ''}",
            f"build {stated['build']}",
            f"on {', '.join(stated['nodes'])}",
            f"rule: {stated['rule']}",
        ]
    blessed = f"blessed by {stated['blessed']}" if stated.get("blessed") else ""
    return ", ".join([*parts, *filter(None, [stated.get("remark"), blessed])])


def closest(prefixes: Container[str], path: Sequence[str]) -> str | None:
    """Return the longest of some paths that leads to a reference, None when none does."""
    paths = ("/".join(path[:end]) for end in range(len(path), 0, -1))
    return next((one for one in paths if one in prefixes), None)


def _path(prefix: str, name: str) -> tuple[str, ...]:
    """Return the path of a figure of what a case's path, or its own, leads to."""
    return (*prefix.split("/")[:_CASE_LEVELS], name)


def is_of_a_case(path: str) -> bool:
    """Tell whether a path of the provenance or the statistics speaks of one case, or of less."""
    return path.count("/") >= _CASE_LEVELS - 1


def _covers(prefix: str, path: Sequence[str]) -> bool:
    parts = prefix.split("/")
    return list(path[: len(parts)]) == parts


def complaints(document: Document, system: str, checks: Collection[str]) -> list[Complaint]:
    """Return all that is wrong with the references of a system; an empty list is a valid file."""
    beside = (EXPECT, TOLERANCES)
    for key in document.data if isinstance(document.data, Mapping) else ():
        if key not in (*beside, *checks) and (near := nearest(str(key), beside, _ALIKE)):
            facts = {"key": str(key), "known": beside, "meant": did_you_mean(near)}
            return [Complaint(document.line([key]), EXPECT_KEY(**facts))]
    violations = [
        Complaint(document.line(list(error.absolute_path)), of_schema(error))
        for error in _validator().iter_errors(document.data)
    ]
    if violations:
        return violations
    return [Complaint(document.line(path), one) for path, one in _own(document, system, checks)]


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    # Slow to load, and most commands read no references.
    import jsonschema

    schema = read_json(suite_folder("references") / "schema.json")
    return jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )


SCHEMA_LACKS = Words("schema.lacks", "{why}")
SCHEMA_KEY = Words("schema.key", "this key is not valid here; expected {expected}")
SCHEMA_VALUE = Words("schema.value", "{value} is not valid here; expected {expected}")


def of_schema(error: jsonschema.ValidationError) -> Reason:
    """Return what a schema refuses; the schema's descriptions say what there must be."""
    place = "/".join(map(str, error.absolute_path)) or "the file"
    expected = error.schema.get("description") if isinstance(error.schema, Mapping) else None
    if error.validator == "required" or expected is None:
        return SCHEMA_LACKS(at=place, why=error.message)
    if error.validator == "not":
        return SCHEMA_KEY(at=place, expected=expected)
    text = str(error.instance)
    shown = text if len(text) <= 60 else text[:57] + "…"
    return SCHEMA_VALUE(at=place, value=shown, expected=expected)


NO_PROVENANCE = Words("references.no-provenance", "no entry of $provenance covers it")
COVERS_NONE = Words(
    "references.covers-none",
    "it covers no reference",
    remedy="write the keys as they stand, with / between them",
)
ANCHORS_OTHER_RUNS = Words(
    "anchors.other-runs",
    "{figure} has {values:value|values} for {days:day|days} and {runs:run|runs}",
    remedy="give each day a value or null, and at least one run a value",
)


def _own(
    document: Document, system: str, checks: Collection[str]
) -> Iterator[tuple[Sequence[str | int], Reason]]:
    yield from complaints_of(document)
    yield from of_tolerances(document)
    # Of a package that does not load: a run tells that, and all else goes on.
    lost = {x for x in _classes(document.data) if x not in checks} if not_loaded() else set()
    provenance, statistics, anchors = (
        {k: v for k, v in document.data.get(of, {}).items() if k.partition("/")[0] not in lost}
        for of in (PROVENANCE, STATISTICS, ANCHORS)
    )
    classes = {k: v for k, v in _classes(document.data).items() if k not in lost}
    for check in classes:
        if check not in checks:
            known = sorted(checks)
            yield [check], INPUT_UNKNOWN_NAME(kind="check", name=check, known=known)
    entries: dict[tuple[str, ...], Sequence[Any]] = {}
    for path, value in _walk(classes, ()):
        place = "/".join(path)
        if isinstance(value, Mapping):
            complaint = _key_complaint(path, system)
        elif INDEX in path:
            continue
        else:
            entries[path] = value
            speaking = closest(statistics, path)
            of_runs = speaking and path[-1] in figures_of(statistics[speaking])
            widest = PERCENT if of_runs else WIDEST_TOLERANCE
            complaint = _entry_complaint(path[-1], value, widest)
            if closest(provenance, path) is None:
                yield path, NO_PROVENANCE(at=place)
        if complaint:
            yield path, complaint.at(place)
    for prefix in provenance:
        if not any(_covers(prefix, path) for path in entries):
            uncovering = COVERS_NONE(at=f"{PROVENANCE}: {prefix}")
            yield [PROVENANCE, prefix], uncovering
    for prefix, entry in statistics.items():
        if complaint := _statistics_complaint(prefix, entry, provenance.get(prefix), entries):
            yield [STATISTICS, prefix], complaint.at(f"{STATISTICS}: {prefix}")
            continue
        for name, row in entry.get(VALUES, {}).items():
            if complaint := unlike(row, entries[_path(prefix, name)], name):
                below = [STATISTICS, prefix, VALUES, name]
                yield below, complaint.at(f"{STATISTICS}: {prefix}")

    for prefix, entry in anchors.items():
        rows = entry.get(VALUES, {})
        for name in (*rows, *(entry.keys() - {VALUES, "runs", "days"})):
            below = [ANCHORS, prefix, *([VALUES] if name in rows else []), name]
            if _path(prefix, name) not in entries:
                yield below, COVERS_NONE(at=f"{ANCHORS}: {prefix}: {name}")
        for name, row in rows.items():
            runs, days = len(entry["runs"]), len(entry["days"])
            if len(row) != days or runs > days or not any(row[:runs]):
                other = ANCHORS_OTHER_RUNS(figure=name, values=len(row), days=days, runs=runs)
                yield [ANCHORS, prefix, VALUES, name], other.at(f"{ANCHORS}: {prefix}")
            elif of := entries.get(_path(prefix, name)):
                own = [one for one in row[:runs] if one is not None]
                if wrong := _far(row, of, name) or unlike(own, of, name):
                    yield [ANCHORS, prefix, VALUES, name], wrong.at(f"{ANCHORS}: {prefix}")


def anchor_of(entry: Mapping[str, Any], check: str, name: str) -> Anchor | None:
    """Return the anchor of a figure, of what ``$anchors`` of a valid file say of its case."""
    row = entry.get(VALUES, {}).get(name)
    if row is None:
        return None
    count, days = len(entry["runs"]), list(map(str, entry["days"]))
    own = [place for place in range(count) if row[place] is not None]
    known = {
        "runs": [entry["runs"][place] for place in own],
        "days": [days[place] for place in own],
        "launches": 0,
        VALUES: {name: [row[place] for place in own]},
    }
    later = zip(days[count:], row[count:], strict=True)
    baseline = baseline_runs(known, check, name, 1)
    assert baseline is not None
    return Anchor(baseline, tuple((day, x) for day, x in later if x is not None))


def within_anchor(known: Reference, anchor: Mapping[str, Any] | None) -> Reference:
    """Return a reference that tolerates no more than an anchor of before does.

    Such a one holds its mean and its bound alone; what crept beyond it by then is told from 5 % on.
    """
    if anchor is None:
        return known
    bound, usual = anchor["bound"] / known.value - 1, anchor["usual"] / known.value
    crept = "drift_percent" in anchor
    if known.lower is not None:
        least = max(bound, usual / 1.05 - 1) if crept else bound
        return dataclasses.replace(known, lower=min(max(known.lower, least), 0.0))
    most = min(bound, usual * 1.05 - 1) if crept else bound
    return dataclasses.replace(known, upper=max(min(known.upper or 0.0, most), 0.0))


STATISTICS_UNMEASURED = Words(
    "statistics.unmeasured",
    "$provenance has no measured entry with this path",
)
STATISTICS_LAUNCHES = Words(
    "statistics.launches",
    "{launches} launches here, but {samples} samples in $provenance",
)
STATISTICS_OTHER_RUNS = Words(
    "statistics.other-runs",
    "{figure} has {values:value|values} of {runs:run|runs} with {days:day|days}",
    remedy="give each run one day and one value",
)
FEW_LAUNCHES = Words("statistics.few-launches", "fewer launches ({launches}) than runs ({runs})")
STATISTICS_PATH = Words("statistics.path", "the path must end at an effort or at a figure")
NO_REFERENCE = Words("statistics.no-reference", "no reference {figure} at this path")
NO_SPREAD = Words("statistics.no-spread", "no figure of {group} has a spread")
ONE_OF_TWO = Words(
    "statistics.one-of-two",
    "{name} must have both spread_percent and usual_percent",
)
NOTHING_SLOW = Words(
    "statistics.nothing-slow",
    "slow_percent: no figure or benchmark {name} at this path",
)
STATISTICS_NOT_FINITE = Words("statistics.not-finite", "statistics must be finite numbers")


def _statistics_complaint(
    prefix: str,
    entry: Mapping[str, Any],
    origin: Mapping[str, Any] | None,
    references: Iterable[Sequence[str]],
) -> Reason | None:
    if origin is None or origin["origin"] != "measured":
        return STATISTICS_UNMEASURED()
    launches = entry["launches"]
    runs = entry["runs"] if isinstance(entry["runs"], int) else len(entry["runs"])
    if origin["samples"] != launches:
        return STATISTICS_LAUNCHES(launches=launches, samples=origin["samples"])
    if launches < runs:
        return FEW_LAUNCHES(launches=launches, runs=runs)
    if not is_of_a_case(prefix):
        return STATISTICS_PATH()
    figures = {path[-1] for path in references if _covers(prefix, path)}
    known = figures_of(entry)
    for figure in known:
        if figure not in figures:
            return NO_REFERENCE(figure=figure)
    for name, values in entry.get(VALUES, {}).items():
        if not len(values) == runs == len(entry["days"]):
            facts = {"values": len(values), "runs": runs, "days": len(entry["days"])}
            return STATISTICS_OTHER_RUNS(figure=name, **facts)
    if "distances" in entry and len(entry["distances"]) != runs:
        facts = {
            "values": len(entry["distances"]),
            "runs": runs,
            "days": len(entry.get("days", ())),
        }
        return STATISTICS_OTHER_RUNS(figure="distances", **facts)
    of_before = (entry.get(of, {}).keys() for of in ("spread_percent", "usual_percent"))
    if lost := sorted(set.symmetric_difference(*map(set, of_before))):
        return ONE_OF_TWO(name=lost[0])
    groups = {kind[0] for kind in map(figure_metric, known) if kind}
    for group in entry.get("group_spread_percent", {}):
        if group not in groups:
            return NO_SPREAD(group=group)
    for name in entry.get("slow_percent", {}):
        if name not in figures | groups:
            return NOTHING_SLOW(name=name)
    numbers = [entry[key].values() for key in entry if key.endswith("_percent")]
    numbers += entry.get(VALUES, {}).values()
    if not all(map(math.isfinite, itertools.chain(*numbers))):
        return STATISTICS_NOT_FINITE()
    return None


BEYOND_BOUND = Words(
    "statistics.beyond-bound",
    "the runs of {figure} were {mean:.4g} {unit} in the mean, beyond its bound {bound:.4g}",
    remedy="restore both, or delete these values and take a new baseline",
)


def unlike(row: Sequence[float], entry: Sequence[Any], name: str) -> Reason | None:
    """Return why what a figure was in its runs cannot be what its reference was made of.

    A reference tolerates more than they were worse in the mean, so that what lies beyond that was
    not written by ``clustergate baseline``, and a slow-down would hide in it.
    """
    value, lower, upper, unit = entry
    side = lower if upper is None else upper
    mean, bound = _mean(row), value * (1 + (side or 0.0))
    if side is not None and (mean < bound if upper is None else mean > bound):
        facts = {"figure": name, "unit": unit, "mean": mean, "bound": bound}
        return BEYOND_BOUND(**facts)
    return _far(row, entry, name)


STATISTICS_FAR = Words(
    "statistics.far",
    "{value:.4g} {unit} of {figure} is more than 100 times off its reference {reference:.4g}",
    remedy="restore it, or take a new baseline",
)


def _far(row: Sequence[float | None], entry: Sequence[Any], name: str) -> Reason | None:
    """Return that the best of some values, or their mean, is not one of its reference's figure."""
    value, _, upper, unit = entry
    known = [one for one in row if one is not None]
    for one in (max(known) if upper is None else min(known), _mean(known)):
        if not abs(math.log(one / value)) <= math.log(_FAR_OFF):  # nan is neither
            facts = {"figure": name, "value": one, "unit": unit, "reference": value}
            return STATISTICS_FAR(**facts)
    return None


def _mean(row: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, row)) / len(row))


def figures_of(statistics: Mapping[str, Any]) -> Collection[str]:
    """Return the names of the figures of which some statistics speak, of today's form or before."""
    known: Mapping[str, Any] = statistics.get(VALUES) or statistics.get("spread_percent", {})
    return known


def _classes(data: Mapping[str, Any]) -> dict[str, Any]:
    beside = (PROVENANCE, STATISTICS, ANCHORS, EXPECT, TOLERANCES)
    return {key: value for key, value in data.items() if key not in beside}


def reference_paths(data: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the keys that lead to each reference of a valid file."""
    return [
        path
        for path, value in _walk(_classes(data), ())
        if INDEX not in path and not isinstance(value, Mapping)
    ]


def _walk(node: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, child in node.items():
        yield (*path, key), child
        if isinstance(child, Mapping):
            yield from _walk(child, (*path, key))


REFERENCES_PATTERN = Words(
    "references.pattern",
    "{key!r} is not a valid regular expression; ReFrame reads keys as such",
    cause="{why}",
)
OTHER_SYSTEM = Words("references.other-system", "this file is read for the system {system} alone")


def _key_complaint(path: Sequence[str], system: str) -> Reason | None:
    key, level = path[-1], len(path) - 1
    try:
        pattern = re.compile(f"^{key}$")
        is_of_this_system = level != 1 or re.fullmatch(key.partition(":")[0], system)
    except re.error as error:
        return REFERENCES_PATTERN(key=key, why=error)
    if not is_of_this_system:
        return OTHER_SYSTEM(system=system)
    if (
        level == 4
        and key.partition("+")[0] not in every_mode()
        and not any(map(pattern.match, every_mode()))
    ):
        return INPUT_UNKNOWN_NAME(kind="mode", name=key, known=[*every_mode()])
    return None


NO_FIGURE = Words(
    "references.no-figure",
    "this is not a figure",
    cause="its name does not end in a metric",
)
NEVER_JUDGED = Words("references.never-judged", "{metric} is recorded but never judged")
REFERENCES_UNIT = Words("references.unit", "the unit must be {expected!r}, not {unit!r}")
REFERENCES_NOT_FINITE = Words("references.not-finite", "the numbers of a reference must be finite")
BETTER_BOUND = Words(
    "references.better-bound",
    "the {bound} bound must be null",
    cause="{better} is better, and it would fail an improvement",
)
NO_BOUND = Words("references.no-bound", "the {bound} bound is null, so nothing could fail")
LOWER_BOUND = Words(
    "references.lower-bound",
    "the lower bound is a fraction between -1 and 0, -0.05 for 5 % less, not {value}",
)
UPPER_BOUND = Words(
    "references.upper-bound",
    "the upper bound is a fraction from 0 on, 0.05 for 5 % more, not {value}",
)
TOO_WIDE = Words(
    "references.too-wide",
    "the {bound} bound {value} tolerates {tolerated:percent}",
    cause="a reference that tolerates more than {widest:whole_percent} passes what is broken",
    remedy="narrow it, or take it out, so that the figure is counted as one without a reference",
)


def _entry_complaint(name: str, entry: Sequence[Any], widest: float) -> Reason | None:
    value, lower, upper, unit = entry
    kind = figure_metric(name)
    if kind is None:
        return NO_FIGURE()
    metric = every_metric()[kind[1]]
    if not reported([Sample(kind[0], metric.name, metric.unit, metric.better, {}, value)]):
        return NEVER_JUDGED(metric=metric.name)
    if unit != metric.unit:
        return REFERENCES_UNIT(expected=metric.unit, unit=unit)
    if not all(math.isfinite(number) for number in (value, lower, upper) if number is not None):
        return REFERENCES_NOT_FINITE()
    higher = metric.better is Better.HIGHER
    worse, better = (lower, upper) if higher else (upper, lower)
    words = ("lower", "upper") if higher else ("upper", "lower")
    if better is not None:
        return BETTER_BOUND(bound=words[1], better=metric.better.value)
    if worse is None:
        return NO_BOUND(bound=words[0])
    if higher and not -1 < worse <= 0:
        return LOWER_BOUND(value=worse)
    if not higher and not 0 <= worse < PERCENT:
        return UPPER_BOUND(value=worse)
    if abs(worse) > widest:
        facts = {"value": worse, "tolerated": abs(worse), "widest": widest}
        return TOO_WIDE(bound=words[0], **facts)
    return None
