"""The first expectations of a machine: its headline figures in one run, for a person to edit. Pure.

Each is what the stack did that is worst at it, as long as all are within the tolerance of its kind;
else stacks have a line each. So they are met as written, and a slower run misses them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.descriptor import Headline
from clustergate.benchmarks.naming import meaning_of
from clustergate.benchmarks.registry import descriptor_of, every_headline
from clustergate.core.model import COMPUTE, MEMORY, Better, CaseRecord, Sample
from clustergate.core.notation import number
from clustergate.judge.references.expectations import EXPECT
from clustergate.judge.references.tolerances import TEMPLATE, TOLERANCES
from clustergate.judge.runs import kind_in
from clustergate.launch.estimation import sampled_figures

MOST_LINES = 12
"""Where stacks differ, those of one figure of each kind may be more."""
_SHARE = "%"
_DIGITS = 4
_WIDTH = max(map(len, TEMPLATE)) + len(": 20 %")


@dataclass(frozen=True)
class _Seen:
    """A figure of a headline in a case, in the unit of that."""

    record: CaseRecord
    sample: Sample
    value: float

    @property
    def stack(self) -> str:
        return self.record.stack

    @property
    def kind(self) -> str:
        size = self.sample.conditions.get("bytes")
        return kind_in(self.record.check, self.sample.benchmark, self.sample.metric, size)

    @property
    def size(self) -> tuple[int, int]:
        """The nodes and ranks that it was measured on."""
        conditions = self.record.conditions
        return int(conditions.get("nodes", 1)), int(conditions.get("ranks", 1))


def first_expectations(records: Sequence[CaseRecord], origin: str) -> str:
    """Return the text of ``expect``, empty where no headline was measured without disturbance.

    ``origin`` says which run they are of.
    """
    by_kind: dict[str, list[tuple[int, list[str]]]] = {}
    # Of messages that is surest which times nothing else.
    known = sorted(
        enumerate(every_headline()), key=lambda one: not descriptor_of(one[1].check).repeated
    )
    for place, headline in known:
        if headline.unit != _SHARE and (seen := list(_seen(headline, records))):
            entries = _entries(headline, seen, _stacks(headline, records))
            of_kind = by_kind.setdefault(seen[0].kind, [])
            of_kind.append((place, _lines(headline, entries)))
    for kind in (COMPUTE, MEMORY):
        by_kind.get(kind, []).sort()
    # The first of each kind, and others for which there is room.
    chosen = [some.pop(0) for some in by_kind.values()]
    for one in sorted(itertools.chain.from_iterable(by_kind.values())):
        if sum(len(lines) for _, lines in [*chosen, one]) <= MOST_LINES:
            chosen.append(one)
    ordered = [line for _, lines in sorted(chosen) for line in lines]
    head = [f"# By clustergate expect, of {origin}; edit it: must the machine reach this?"]
    return "\n".join([*head, f"{EXPECT}:", *ordered, ""]) if ordered else ""


def first_tolerances() -> str:
    """Return the text of ``tolerances:``, with what operators use."""
    lines = [
        f"  {f'{kind}: {percent} %':{_WIDTH}}  # {what}"
        for kind, (percent, what) in TEMPLATE.items()
    ]
    head = "# How much worse figures of a kind may be before they are launched again"
    return "\n".join([head, f"{TOLERANCES}:", *lines, ""])


def _seen(headline: Headline, records: Sequence[CaseRecord]) -> Iterator[_Seen]:
    """Yield the figures of a headline: those of the most nodes, and there of the most ranks."""
    meaning = meaning_of(headline.title, headline.check)
    measured = [
        record
        for record in records
        if record.check == headline.check
        and record.samples
        and not (record.complaints or record.unavailable or record.conditions.get("settings"))
    ]
    most: list[_Seen] = []
    for record in measured if meaning else ():
        assert meaning is not None
        sampled = sampled_figures(
            record.samples, record.launches, record.launches_needed, record.check
        )
        values = [one.estimate.value for one in sampled]
        place = meaning.of([one.sample for one in sampled], values)
        if place is None or sampled[place].excuse or not values[place] > 0:
            continue
        sample = sampled[place].sample
        if descriptor_of(record.check).doubt(sample, values[place]) is None:
            most.append(_Seen(record, sample, values[place] * headline.scale))
    largest = max((one.size for one in most), default=None)
    yield from (one for one in most if one.size == largest)


def _stacks(headline: Headline, records: Sequence[CaseRecord]) -> set[str]:
    return {one.stack for one in records if one.check == headline.check}


def _lines(headline: Headline, entries: Sequence[str]) -> list[str]:
    if len(entries) == 1:
        return [f"  {headline.title}: {entries[0]}"]
    return [f"  {headline.title}:", *(f"    - {one}" for one in entries)]


def _entries(headline: Headline, seen: Sequence[_Seen], stacks: Collection[str]) -> list[str]:
    """Return what is expected, each with its scope; ``stacks`` are all that may have the figure."""
    higher = seen[0].sample.better is Better.HIGHER
    worst = min if higher else max
    by_stack: dict[str, list[float]] = {}
    for one in seen:
        by_stack.setdefault(one.stack, []).append(one.value)
    of_stacks = {stack: worst(values) for stack, values in by_stack.items()}
    nodes, ranks = seen[0].size
    keys = [f"nodes: {nodes}", f"ranks: {ranks}"]
    if not descriptor_of(headline.check).repeated:
        # Its problem is as large as the mode has it.
        keys.append(f"modes: {seen[0].record.conditions['mode']}")
    apart = max(of_stacks.values()) / min(of_stacks.values()) - 1
    alike = apart * 100 <= TEMPLATE[seen[0].kind][0]
    each = {", ".join(of_stacks): worst(of_stacks.values())} if alike else of_stacks
    return [
        _entry(headline, value, [*_of_stacks(names, stacks), *keys], higher=higher)
        for names, value in each.items()
    ]


def _of_stacks(names: str, stacks: Collection[str]) -> list[str]:
    if {*names.split(", ")} == {*stacks}:
        return []
    return [f"stacks: [{names}]" if "," in names else f"stacks: {names}"]


def _entry(headline: Headline, value: float, keys: Sequence[str], *, higher: bool) -> str:
    # Rounded so that it is met.
    step = 10.0 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    rounded = (math.floor if higher else math.ceil)(value / step) * step
    way = ">=" if higher else "<="
    return f'{{value: "{way} {number(rounded)} {headline.unit}", {", ".join(keys)}}}'
