"""New references put into the text of a reference file, which else stays as it is. Pure.

Comments, order and quotation marks are kept (ruamel.yaml's round trip), so that the difference to
the file before shows what is new and nothing else.
"""

from __future__ import annotations

import copy
import datetime
import functools
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString
from ruamel.yaml.tokens import CommentToken
from ruamel.yaml.util import load_yaml_guess_indent

from clustergate.benchmarks.naming import with_bytes
from clustergate.core.model import Anchor
from clustergate.judge.history.series import CaseKey
from clustergate.judge.references.validation import (
    ANCHORS,
    INDEX,
    PROVENANCE,
    STATISTICS,
    VALUES,
    anchor_of,
    closest,
    figures_of,
    reference_paths,
)

HEADER = "# What this system should reach; references/README.md explains it.\n"
LEVELS = ("$partition", "$environ", "reference_layout", "reference_effort")
_UNWRAPPED = 1 << 16
# Where ruamel.yaml keeps what follows a value: in a mapping, in a sequence.
_AFTER_VALUE, _AFTER_ITEM = 2, 0

Anchors = Mapping[CaseKey, Mapping[str, Anchor | None]]
"""The anchors of figures by their cases; None for a figure whose reference is its own."""
NO_ANCHORS: Anchors = {}
Entry = tuple[float, float | None, float | None, str]
"""A reference as it stands in the file: value, lower and upper bound as fractions, unit."""


@dataclass(frozen=True)
class Measured:
    """New references of one case that come from the same runs, with what is said of them.

    ``launches`` are those of all ``runs`` together, ``matrix_order`` is that of the newest.
    ``values`` is what a figure was in each run, of which ``days`` tells the day; ``slow_percent``
    the share of launches of a figure, or of a benchmark's means, that were far worse, where there
    were any. ``core_distance_ns`` is the shortest round trip between two cores that was seen, None
    where none was measured. ``blessed`` is who made them, when, and ``distances`` how far the nodes
    of each run were from each other, where that is known.
    """

    case: CaseKey
    entries: Mapping[str, Entry]
    runs: Sequence[str]
    days: Sequence[datetime.date]
    launches: int
    rule: str
    build: str
    nodes: Sequence[str]
    values: Mapping[str, Sequence[float]]
    slow_percent: Mapping[str, float] = field(default_factory=dict)
    core_distance_ns: float | None = None
    remark: str = ""
    processors: Sequence[str] = ()
    method: str = ""
    matrix_order: int | None = None
    blessed: str = ""
    distances: Sequence[str] = ()


def updated(text: str, measured: Sequence[Measured], anchors: Anchors = NO_ANCHORS) -> str:
    """Return the text of a valid reference file with new references in it.

    An empty text becomes a new file. A figure that has no new reference keeps the one it had, and
    what is said of where that came from.
    """
    text = with_bytes(text)
    document = _dialect(text)
    root = document.load(text) if text else CommentedMap()
    update(root, measured, anchors)
    stream = io.StringIO()
    document.dump(root, stream)
    return stream.getvalue() if text else HEADER + stream.getvalue()


def update(root: CommentedMap, measured: Sequence[Measured], anchors: Anchors = NO_ANCHORS) -> None:
    """Put new references into a file that was read, as :func:`updated` does into its text."""
    spoke = _speaking(root)
    by_case: dict[CaseKey, list[Measured]] = {}
    for batch in measured:
        by_case.setdefault(batch.case, []).append(batch)
    for case, batches in by_case.items():
        provenance = root.get(PROVENANCE, CommentedMap())
        statistics = root.get(STATISTICS, CommentedMap())
        _tell_origins(provenance, statistics, case, _figures(root, case), batches)
        if PROVENANCE not in root:
            _insert(root, 0, PROVENANCE, provenance)
        if STATISTICS not in root:
            _insert(root, list(root).index(PROVENANCE) + 1, STATISTICS, statistics)
        if case.check not in root:
            _append(root, case.check, CommentedMap({INDEX: _flow(LEVELS)}))
        for batch in batches:
            for name, entry in batch.entries.items():
                _set_reference(root, (*case.parts, name), entry)
    for path in spoke - _speaking(root):
        _remove(root[PROVENANCE], path)
        _remove(root[STATISTICS], path)
    _set_anchors(root, anchors)


# --- where references came from ---------------------------------------------------------------


def _tell_origins(
    provenance: CommentedMap,
    statistics: CommentedMap,
    case: CaseKey,
    figures: Iterable[str],
    batches: Sequence[Measured],
) -> None:
    """Say of every figure of a case where it comes from: the many by its path, the few by theirs.

    What was said of figures that stay as they are goes on being said of them.
    """
    new = {name for batch in batches for name in batch.entries}
    kept = {
        name: holder
        for name in figures
        if name not in new
        and (holder := closest(provenance, (*case.parts, name)))
        and holder != case.path(name)
    }
    largest = max(batches, key=lambda batch: len(batch.entries))
    if len(kept) > len(largest.entries):
        if case.path() in statistics:
            _forget(statistics, case.path(), new)
    else:
        for name, holder in kept.items():
            _put(provenance, case.path(name), copy.deepcopy(provenance[holder]))
            if name in figures_of(statistics.get(holder, {})):
                _put(statistics, case.path(name), _narrowed(statistics[holder], name))
        for name in largest.entries:
            _remove(provenance, case.path(name))
            _remove(statistics, case.path(name))
        _put(provenance, case.path(), _origin(largest))
        _put(statistics, case.path(), _statistics(largest))
        batches = [batch for batch in batches if batch is not largest]
    for batch in batches:
        for name in batch.entries:
            _put(provenance, case.path(name), _origin(batch))
            _put(statistics, case.path(name), _narrowed(_statistics(batch), name))


def _set_anchors(root: CommentedMap, anchors: Anchors) -> None:
    """Put anchors into the file, and take away those of figures that are their own."""
    for case, by_name in anchors.items():
        known = root.get(ANCHORS, CommentedMap())
        before = known.get(case.path(), CommentedMap())
        whole = {n: anchor_of(before, case.check, n) for n in before.get(VALUES, {})} | {**by_name}
        entry = _anchors({name: anchor for name, anchor in whole.items() if anchor})
        # One of before, of which there are no runs, stays as it is.
        gone = {*_OF_ANCHORS, *(name for name, anchor in by_name.items() if anchor is None)}
        entry.update((name, of) for name, of in before.items() if name not in gone)
        if entry:
            _put(known, case.path(), entry)
        else:
            _remove(known, case.path())
        if known and ANCHORS not in root:
            below = STATISTICS if STATISTICS in root else PROVENANCE
            _insert(root, list(root).index(below) + 1, ANCHORS, known)
        elif not known:
            _remove(root, ANCHORS)


_OF_ANCHORS = ("runs", "days", VALUES)


def _anchors(anchors: Mapping[str, Anchor]) -> CommentedMap:
    """Return the anchors of a case: a row for each figure, first runs and later medians."""
    if not anchors:
        return CommentedMap()
    days = {
        run: day
        for one in anchors.values()
        for run, day in zip(one.baseline.runs, one.baseline.days, strict=True)
    }
    runs = sorted(days, key=lambda run: (days[run], run))
    later = sorted({day for one in anchors.values() for day, _ in one.later})
    rows = {}
    for name, one in anchors.items():
        first = dict(zip(one.baseline.runs, one.baseline.values, strict=True))
        medians = dict(one.later)
        rows[name] = _flow([*map(first.get, runs), *map(medians.get, later)])
    dates = map(datetime.date.fromisoformat, [*(days[run] for run in runs), *later])
    of_runs = _flow([_text(run) for run in runs])
    return CommentedMap(runs=of_runs, days=_flow([*dates]), values=_by_name(rows))


def _speaking(root: CommentedMap) -> set[str]:
    """Return the paths of the provenance that say of a reference where it comes from."""
    provenance = root.get(PROVENANCE, {})
    prefixes = {closest(provenance, path) for path in reference_paths(root)}
    return {path for path in prefixes if path is not None}


def _figures(root: CommentedMap, case: CaseKey) -> Mapping[str, Any]:
    level: Any = root
    for key in case.parts:
        level = level.get(key, {})
    figures: Mapping[str, Any] = level
    return figures


def _origin(batch: Measured) -> CommentedMap:
    entry = CommentedMap(
        origin="measured",
        dates=_flow(sorted(set(batch.days))),
        samples=batch.launches,
        rule=_text(batch.rule),
        build=_text(batch.build),
        nodes=_flow([_text(node) for node in batch.nodes]),
    )
    if batch.processors:
        entry["processors"] = _flow([_text(processor) for processor in batch.processors])
    if batch.method:
        entry["method"] = _text(batch.method)
    if batch.matrix_order:
        entry["n"] = batch.matrix_order
    if batch.remark:
        entry["remark"] = _text(batch.remark)
    if batch.blessed:
        entry["blessed"] = _text(batch.blessed)
    return entry


def _statistics(batch: Measured) -> CommentedMap:
    entry = CommentedMap(launches=batch.launches)
    if batch.core_distance_ns is not None:
        entry["core_distance_ns"] = batch.core_distance_ns
    entry["runs"] = _flow([_text(run) for run in batch.runs])
    entry["days"] = _flow(batch.days)
    if batch.distances:
        entry["distances"] = _flow(batch.distances)
    entry[VALUES] = _by_name({name: _flow(values) for name, values in batch.values.items()})
    if batch.slow_percent:
        entry["slow_percent"] = _by_name(batch.slow_percent)
    return entry


_BY_NAME = (VALUES, "slow_percent", "usual_percent", "spread_percent", "group_spread_percent")
"""What statistics say of each figure, or of each benchmark; the last three before values did."""


def _by_name(values: Mapping[str, Any]) -> CommentedMap:
    return CommentedMap({_text(name): value for name, value in values.items()})


def _narrowed(entry: CommentedMap, name: str) -> CommentedMap:
    """Return what statistics say of one figure alone."""
    shared = ("launches", "core_distance_ns", "runs", "days", "distances")
    narrowed = CommentedMap({key: entry[key] for key in shared if key in entry})
    for of in _BY_NAME:
        if name in entry.get(of, {}):
            narrowed[of] = _by_name({name: entry[of][name]})
    return narrowed


def _forget(statistics: CommentedMap, path: str, names: set[str]) -> None:
    """Take figures out of statistics, and with them what is said of their benchmarks."""
    entry = statistics[path]
    lost = names | {name.partition(".")[0] for name in names}
    for of in _BY_NAME:
        for name in lost if of in entry else ():
            _remove(entry[of], name)
        if of in entry and not entry[of]:
            _remove(entry, of)
    if not {VALUES, "spread_percent"} & entry.keys():
        _remove(statistics, path)


# --- YAML that keeps its comments -------------------------------------------------------------


class _Representer(RoundTripRepresenter):
    """Writes what PyYAML, by which ReFrame reads, takes for the same value."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write a value as often as it stands there: a day of several figures is no alias."""
        return True


def _represent_float(representer: Any, value: float) -> Any:
    # YAML 1.1 takes 1e-07 for text.
    mantissa, e, exponent = repr(value).partition("e")
    text = f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"
    return representer.represent_scalar("tag:yaml.org,2002:float", text)


def _represent_none(representer: Any, value: None) -> Any:
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")


_Representer.add_representer(float, _represent_float)
_Representer.add_representer(type(None), _represent_none)


def _dialect(text: str) -> YAML:
    """Return a reader and writer that indents as the text does."""
    document = YAML()
    document.Representer = _Representer
    document.preserve_quotes = True
    document.width = _UNWRAPPED
    if text:
        _, indent, offset = load_yaml_guess_indent(text)
        if indent:
            document.indent(mapping=indent, sequence=(offset or 0) + 2, offset=offset or 0)
    return document


@functools.lru_cache(maxsize=1 << 12)
def _text(text: str) -> str:
    """Return a text in quotation marks where PyYAML would take it for something else."""
    try:
        is_plain = yaml.safe_load(text) == text
    except (yaml.YAMLError, ValueError):
        is_plain = False
    return text if is_plain else DoubleQuotedScalarString(text)


def _flow(items: Sequence[Any]) -> CommentedSeq:
    sequence = CommentedSeq(items)
    sequence.fa.set_flow_style()
    return sequence


def _set_reference(root: CommentedMap, path: Sequence[str], entry: Entry) -> None:
    """Put a reference where its keys lead, in the place of the one that stands there."""
    node: Any = root
    for depth, key in enumerate(path):
        if key not in node:
            value: Any = _flow(entry)
            for missing in reversed(path[depth + 1 :]):
                value = CommentedMap({_text(missing): value})
            _append(node, _text(key), value)
            return
        node = node[key]
    for index, value in enumerate(entry):
        if node[index] != value:
            node[index] = value


def _put(mapping: CommentedMap, key: str, value: CommentedMap) -> None:
    """Let a key have a value, in its place and with its comments where it stands already."""
    if key not in mapping:
        _append(mapping, key, value)
        return
    old = mapping[key]
    for name in [name for name in old if name not in value]:
        _remove(old, name)
    for name, part in value.items():
        if name not in old:
            _append(old, name, part)
        elif isinstance(part, CommentedMap):
            comments = _take_comments(old, name)
            old[name] = part
            _give_comments(old, name, *comments)
        elif old[name] != part:
            old[name] = part


def _append(mapping: CommentedMap, key: str, value: Any) -> None:
    _insert(mapping, len(mapping), key, value)


def _insert(mapping: CommentedMap, position: int, key: str, value: Any) -> None:
    """Put a key into a mapping; a comment below the key before it goes on standing below all."""
    before = list(mapping)[position - 1] if position else None
    beside, below = _take_comments(mapping, before) if before is not None else (None, "")
    mapping.insert(position, _text(key), value)
    if before is not None:
        _give_comments(mapping, before, beside, "")
        _give_comments(mapping, key, None, below)


def _remove(mapping: CommentedMap, key: str) -> None:
    """Take a key out of a mapping; a comment below it stays, unless it was the first one."""
    if key not in mapping:
        return
    keys = list(mapping)
    position = keys.index(key)
    _, below = _take_comments(mapping, key)
    del mapping[key]
    if position:
        before = keys[position - 1]
        beside, above = _take_comments(mapping, before)
        _give_comments(mapping, before, beside, above + below)


def _last(container: Any, key: Any) -> tuple[Any, Any]:
    """Return where ruamel.yaml keeps the comments behind a value: at the last value in it."""
    value = container[key]
    while isinstance(value, CommentedMap | CommentedSeq) and value and not value.fa.flow_style():
        container = value
        key = list(value)[-1] if isinstance(value, CommentedMap) else len(value) - 1
        value = container[key]
    return container, key


def _take_comments(container: Any, key: Any) -> tuple[CommentToken | None, str]:
    """Take away and return the comment on the last line of a value, and the text of those below."""
    container, key = _last(container, key)
    slots = container.ca.items.get(key)
    place = _AFTER_VALUE if isinstance(container, CommentedMap) else _AFTER_ITEM
    token = slots[place] if slots else None
    if token is None:
        return None, ""
    slots[place] = None
    if hasattr(container[key], "ca"):
        container[key].ca.comment = None
    beside, _, below = token.value.partition("\n")
    return (CommentToken(beside, token.start_mark) if beside else None), below


def _give_comments(container: Any, key: Any, beside: CommentToken | None, below: str) -> None:
    if beside is None and not below:
        return
    container, key = _last(container, key)
    place = _AFTER_VALUE if isinstance(container, CommentedMap) else _AFTER_ITEM
    slots = container.ca.items.setdefault(key, [None] * 4)
    mark = beside.start_mark if beside else CommentMark(0)
    slots[place] = CommentToken(f"{beside.value if beside else ''}\n{below}", mark)
