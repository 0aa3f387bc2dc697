"""From the text a benchmark printed to rows, or to an error that names the line."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from clustergate import model
from clustergate.benchmarks.hpcc import output as hpcc
from clustergate.benchmarks.hpcc.output import is_hpcc, parse_hpcc
from clustergate.benchmarks.hpccg.output import is_hpccg, parse_hpccg
from clustergate.benchmarks.hpl.output import is_hpl, parse_hpl
from clustergate.benchmarks.imb.output import is_imb, parse_imb
from clustergate.benchmarks.lammps.output import is_lammps, parse_lammps
from clustergate.benchmarks.npb.output import is_npb, parse_npb
from clustergate.kernels.outputs import is_mpi_kernel, parse_mpi_kernel
from clustergate.model import Metric, OutputError, Row

# Launchers and MPI libraries print their own lines first: some for each rank, or each second.
LINES_TO_RECOGNISE = 100_000


class Parser(Protocol):
    """What every format offers; each takes an expectation of its own kind besides."""

    def __call__(self, lines: Iterable[str], *, source: str) -> Iterator[Row]:
        """Yield the rows of the text, or raise :class:`OutputError`."""


class Format(NamedTuple):
    """A program's text: how to recognise it by a line of its title, and how to read it."""

    recognise: Callable[[Sequence[str]], bool]
    parse: Parser


# HPCC before HPL, because it repeats the first lines of HPL below its own.
FORMATS: Mapping[str, Format] = {
    "hpcc": Format(is_hpcc, parse_hpcc),
    "hpl": Format(is_hpl, parse_hpl),
    "imb": Format(is_imb, parse_imb),
    "mpi-kernel": Format(is_mpi_kernel, parse_mpi_kernel),
    "npb": Format(is_npb, parse_npb),
    "hpccg": Format(is_hpccg, parse_hpccg),
    "lammps": Format(is_lammps, parse_lammps),
}


def parse(lines: Iterable[str], *, source: str, suite: str | None = None) -> Iterator[Row]:
    """Yield the rows of a text of any format, recognised by its title.

    ``suite`` is a key of :data:`FORMATS` and spares the recognition. Raises
    :class:`OutputError` for a text that is empty, of no known format, or as its parser does: rows
    that came before do not count then.
    """
    remaining = iter(lines)
    if suite is None:
        first: list[str] = []
        suite = _recognise(remaining, first, source)
        remaining = itertools.chain(first, remaining)
    yield from FORMATS[suite].parse(remaining, source=source)


def _recognise(lines: Iterator[str], read: list[str], source: str) -> str:
    """Return the format of the first title, and add the lines up to it to ``read``."""
    for line in itertools.islice(lines, LINES_TO_RECOGNISE):
        read.append(line)
        for name, known in FORMATS.items():
            if known.recognise((line,)):
                return name
    if not any(line.strip() for line in read):
        raise OutputError("the text is empty", source=source)
    raise OutputError(
        "this is no output of HPL, HPCC, IMB, NPB, HPCCG, LAMMPS or a kernel of the suite, or its "
        "first lines are lost",
        line=1,
        source=source,
    )


def metric(name: str) -> Metric:
    """Return the metric of a value's name in any row of any format; KeyError if there is none."""
    for metrics in (model.METRICS, hpcc.METRICS):
        if name in metrics:
            return metrics[name]
    raise KeyError(name)
