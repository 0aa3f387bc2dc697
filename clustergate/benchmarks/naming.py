"""What a person means by the name of a figure: as the table on the screen writes it, or longer.

``HPL of nominal peak`` and ``PingPong best`` are lines of the table (:class:`Headline`);
``PingPong 16 MiB`` and ``PingPong 8 bytes latency_us`` are any row of a benchmark, with its size
and, where its unit does not tell, its metric; ``PingPong.2p.4MiB.bandwidth_mb_s`` is the name of
one figure (:func:`clustergate.core.figures.name_of`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clustergate.benchmarks.descriptor import Check, Effort, Headline
from clustergate.benchmarks.registry import benchmark_of, every_check, every_headline, every_metric
from clustergate.core.figures import name_of, reported
from clustergate.core.model import METRICS, Better, ClustergateError, Figure, Metric, Sample
from clustergate.core.notation import nearest
from clustergate.core.quantities import parse_bytes

_GENERAL = re.compile(
    r"(?P<row>\S+)(?:\s+(?P<size>\d+(?:\.\d+)?\s*(?:B|bytes?|[KMG]iB|[kKMG]B?)?))?"
    r"(?:\s+(?P<metric>[A-Za-z]\w*))?"
)
_FIGURE_NAME = re.compile(r"[^\s.]+(?:\.[^.]+)+")
_SIZE_IN_NAME = re.compile(r"(?<=\.)(\d+[KMG]iB)(?=\.)")
_BYTES_IN_NAME = re.compile(r"\.(\d+)B\.")
# What is written for 2^20 bytes by those who mean it, where nothing is measured of 10^6.
_BINARY = {f"{prefix}{b}": f"{prefix.upper()}iB" for prefix in "kKMG" for b in ("", "B")}

_PREFIXES = {"n": -9, "u": -6, "µ": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_SCALED = re.compile(r"([nuµmkMGTP]?)(s|B/s|flop/s|op/s|UP/s|flop/s/W|op/J)")
_FLOPS = re.compile("(?i)flops?(?:/s)?$")


def unit_factor(written: str, wanted: str) -> float | None:
    """Return what turns a value in one unit into another: 1000 from ms to us; None if nothing does.

    ``Mb/s`` are bits and no ``MB/s``.
    """
    if written == wanted:
        return 1.0
    mine, other = (_SCALED.fullmatch(_FLOPS.sub("flop/s", unit)) for unit in (written, wanted))
    if mine is None or other is None or mine[2] != other[2]:
        return None
    return float(10.0 ** (_PREFIXES[mine[1]] - _PREFIXES[other[1]]))


@dataclass(frozen=True)
class Meaning:
    """The figures of a check that a name means.

    They are those of the first of some ``lines`` that a case has any of, or the one that is called
    ``figure``, of which ``lines`` tell the check, the row and the metric.
    """

    lines: tuple[Headline, ...]
    figure: str = ""

    @property
    def check(self) -> str:
        return self.lines[0].check

    def of(self, figures: Sequence[Figure | Sample], values: Sequence[float]) -> int | None:
        """Return which of a case's figures it is, None where none is; by the values of several."""
        for line in self.lines:
            shown = [
                place
                for place, one in enumerate(figures)
                if (name_of(one) == self.figure if self.figure else line.shows(one))
            ]
            if shown:
                alike = [values[place] for place in shown]
                pick = line.pick or (max if self.better is Better.HIGHER else min)
                return shown[alike.index(pick(alike))]
        return None

    def is_measured(self, effort: Effort | None = None) -> bool:
        """Tell whether an effort measures any of it; without one, whether any settings do."""
        measures = benchmark_of(self.check).measures
        return any(measures(self.check, x.benchmark, x.conditions, effort) for x in self.lines)

    @property
    def options(self) -> str:
        """Options of ReFrame with which its check measures it where no mode does; or empty."""
        line = self.lines[0]
        return benchmark_of(self.check).options(self.check, line.benchmark, line.conditions)

    def in_unit(self, unit: str) -> Meaning | None:
        """Return those of its lines that are told in a unit, or in a multiple of it."""
        lines = tuple(x for x in self.lines if unit_factor(unit, x.unit) is not None)
        return Meaning(lines, self.figure) if lines else None

    @property
    def better(self) -> Better:
        """Which way its first line improves: with one unit, each of them."""
        return every_metric()[self.lines[0].metric].better

    @property
    def units(self) -> list[str]:
        return list(dict.fromkeys(line.unit for line in self.lines))


def meaning_of(name: str, check: str = "") -> Meaning | None:
    """Return what a name means, of a ``check`` where one is named; None where no check has it."""
    name = " ".join(name.split())
    if _FIGURE_NAME.fullmatch(name) and (meaning := _of_figure(with_bytes(name), check)):
        return meaning
    titled = tuple(_titled(name, check))
    # A line of the table has its one unit, unless a size says which row it is of.
    lines = titled if titled and not _is_sized(name) else (*titled, *_general(name, check))
    of_first = tuple(line for line in lines if line.check == lines[0].check)
    meaning = Meaning(of_first)
    return meaning if of_first and meaning.is_measured() else None


def with_bytes(text: str) -> str:
    """Return names of figures with their sizes in bytes: of ``PingPong.2p.4MiB.latency_us`` too."""
    return _SIZE_IN_NAME.sub(lambda match: f"{parse_bytes(match[1])}B", text)


def suggested_name(name: str) -> str:
    """Return the name that was probably meant by one that no check has, empty for none."""
    name = " ".join(name.split())
    for candidate in _candidates(name):
        if candidate != name and meaning_of(candidate):
            return candidate
    return ""


def _candidates(name: str) -> Iterator[str]:
    titles = {line.title.casefold(): line.title for line in every_headline()}
    # Of rows that are called alike those of the first check.
    rows = {x.casefold(): x for check in reversed([*every_check()]) for x in rows_of(check)}
    if _FIGURE_NAME.fullmatch(name):
        row, *parts = name.split(".")
        metric = parts[-1] if parts[-1] in every_metric() else nearest(parts[-1], every_metric())
        if close := nearest(row.casefold(), rows):
            yield ".".join([rows[close], *parts[:-1], metric])
    if match := _GENERAL.fullmatch(name):
        row, size, metric = match.groups()
        if close := nearest(row.casefold(), rows):
            for sized in _sizes_like(size) if size else [""]:
                yield " ".join(filter(None, [rows[close], sized, metric]))
    if close := nearest(name.casefold(), titles):
        yield titles[close]
    if (match := _GENERAL.match(name)) and (close := nearest(match["row"].casefold(), rows)):
        yield from (x.title for x in every_headline() if x.benchmark == rows[close])


def _sizes_like(size: str) -> Iterator[str]:
    """Yield a size as it stands, what is written for it by mistake, the power of two beside it."""
    yield size
    unit = re.sub(r"[\d.\s]", "", size)
    if unit in _BINARY:
        yield f"{size.removesuffix(unit).strip()} {_BINARY[unit]}"
    if bytes_ := _bytes_of(size):
        power = round(math.log2(bytes_))
        thousand = min(power // 10, 3)
        yield f"{1 << power - 10 * thousand} {('B', 'KiB', 'MiB', 'GiB')[thousand]}"


def _bytes_of(size: str) -> int | None:
    """Return a size in bytes, None for one that says it in two ways, such as 4M."""
    try:
        return parse_bytes(re.sub("bytes?$", "B", size))
    except ClustergateError:
        return None


def _is_sized(name: str) -> bool:
    match = _GENERAL.fullmatch(name)
    return match is not None and match["size"] is not None


def rows_of(check: str) -> tuple[str, ...]:
    """Return the rows that figures of a check are called by, as far as they are known."""
    own = (line.benchmark for line in every_headline() if line.check == check)
    return every_check()[check].rows or tuple(dict.fromkeys(own))


def _titled(name: str, check: str) -> Iterator[Headline]:
    for line in every_headline():
        if line.title.casefold() == name.casefold() and check in ("", line.check):
            yield line


def _general(name: str, check: str) -> Iterator[Headline]:
    match = _GENERAL.fullmatch(name)
    if match is None:
        return
    size: Any = _bytes_of(match["size"]) if match["size"] else None
    if match["size"] and size is None:
        return
    for of in _checks_with(match["row"], check):
        row = next(one for one in rows_of(of.name) if one.casefold() == match["row"].casefold())
        for metric in _metrics(row, match["metric"]):
            yield _line(name, of.name, row, metric, {"bytes": size})


def _of_figure(name: str, check: str) -> Meaning | None:
    row, *parts = name.split(".")
    metric = every_metric().get(parts[-1])
    size = _BYTES_IN_NAME.search(name)
    # Of a figure without a size nothing is said of sizes.
    conditions = {"bytes": int(size[1])} if size else {}
    checks = list(_checks_with(row, check))
    if metric is None or not checks or not _is_judged(metric):
        return None
    meaning = Meaning((_line(name, checks[0].name, row, metric, conditions),), name)
    return meaning if meaning.is_measured() else None


def _checks_with(row: str, check: str) -> Iterator[Check]:
    for name, one in every_check().items():
        if check in ("", name) and row.casefold() in map(str.casefold, rows_of(name)):
            yield one


def _metrics(row: str, name: str | None) -> Iterator[Metric]:
    """Yield what may be told of a row: one metric, where that is called as the row is."""
    every = every_metric()
    own = {row: every[row]} if row in every else METRICS
    for metric in own.values():
        if name in (None, metric.name) and _is_judged(metric):
            yield metric


def _is_judged(metric: Metric) -> bool:
    return bool(reported([Sample("", metric.name, metric.unit, metric.better, {}, 1.0)]))


def _line(
    title: str, check: str, row: str, metric: Metric, conditions: Mapping[str, Any]
) -> Headline:
    # Of several figures that are called alike all must reach it.
    pick = min if metric.better is Better.HIGHER else max
    return Headline(title, metric.unit, check, row, metric.name, conditions, pick)
