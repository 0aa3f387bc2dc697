"""What the suite knows of a benchmark, as data that the benchmark's own folder fills in. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clustergate.model import Metric, Row


class Parser(Protocol):
    """What every format offers; each takes an expectation of its own kind besides."""

    def __call__(self, lines: Iterable[str], *, source: str) -> Iterator[Row]:
        """Yield the rows of the text, or raise :class:`clustergate.model.OutputError`."""


@dataclass(frozen=True)
class Format:
    """A program's text: how to recognise it by a line of its title, and how to read it."""

    recognise: Callable[[Sequence[str]], bool]
    parse: Parser


@dataclass(frozen=True)
class Benchmark:
    """All that is known of one benchmark.

    ``name`` is that of its folder and of its format in ``clustergate parse``, ``title`` what people
    call it. ``metrics`` are those of its value names that :data:`clustergate.model.METRICS` lacks.
    """

    name: str
    title: str
    format: Format
    metrics: Mapping[str, Metric] = field(default_factory=dict)
