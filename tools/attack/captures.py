"""The captured outputs, each with what its run was asked for, read as a check reads a launch.

Each folder of tests/data has a module of :mod:`tests.asked`, in which ``asked`` returns what a run
that printed a text was asked for, and ``ECHO`` matches the lines that repeat it. Results in a file
of their own are no ``STDOUT``; ``read`` is the parser, where that is not the benchmark's.
"""

from __future__ import annotations

import functools
import importlib
import io
import math
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clustergate.benchmarks.hpcc import output as hpcc
from clustergate.benchmarks.limits import Measurement
from clustergate.benchmarks.registry import descriptor_of, every_benchmark, every_check
from clustergate.core.figures import reported, samples_of
from clustergate.core.model import METRICS, Estimate, NodeFacts, OutputError, Row, Verdict
from clustergate.core.paths import checkout
from clustergate.judge.judging import judge
from clustergate.launch.proof import provenance
from clustergate.launch.proof.ranks import RankProof, read_proofs
from clustergate.machine.kernels import peaks
from tests import asked

DATA = checkout() / "tests" / "data"
WORD = "attacked-0"
_ALL_METRICS = {**METRICS, **hpcc.METRICS, **peaks.METRICS}
# What a figure can be on any machine of this shape; the captures ran on no more.
_CASE = {"nodes": 1, "ranks_per_node": 4, "cores_per_rank": 1}


class Refused(Exception):
    """The suite did not take the text for the result of the run."""


@dataclass(frozen=True)
class Capture:
    """A captured output: ``family`` is its folder, ``asked`` the expectation of its run.

    ``echo`` matches the lines that repeat what was asked for; ``is_stdout`` tells whether the
    launch prints it, or writes it into a file.
    """

    name: str
    text: str
    asked: Any
    read: Callable[..., Iterator[Row]]
    echo: re.Pattern[str]
    is_stdout: bool

    @property
    def family(self) -> str:
        """The program whose output it is."""
        return self.name.partition("/")[0]

    @functools.cached_property
    def honest(self) -> tuple[Row, ...]:
        """The rows of the text as it was printed."""
        return tuple(self._rows(self.text))

    @functools.cached_property
    def printed(self) -> str:
        """The text as a launch leaves it, with the word that the proof library writes."""
        if not self.is_stdout:
            return self.text
        return f"{provenance.MARK} {WORD}\n{self.text}"

    @functools.cached_property
    def proofs(self) -> tuple[RankProof, ...]:
        """The records of ranks that ran when and as long as the text says, and a second more."""
        dates = sorted(_dates(self.text)) or [0.0]
        seconds = max(dates[-1] - dates[0], provenance.measured_s(self.honest)) + 1.0

        def at(proof: RankProof, passed: float) -> Any:
            assert proof.at_init is not None
            began, real = 100.0 + passed, dates[0] + passed
            return replace(proof.at_init, monotonic_s=began, realtime_s=real, utc_offset_s=0)

        ranks = read_proofs(DATA / "proof" / "mpich-dgemm")
        return tuple(
            replace(p, nonce=WORD, at_init=at(p, 0.0), at_finalize=at(p, seconds)) for p in ranks
        )

    def accepted(self, text: str) -> list[Row]:
        """Return the rows that the suite would judge if this were what the launch printed.

        Raises :class:`Refused` when it would not, for a limit of physics too.
        """
        try:
            rows = self._rows(text)
        except OutputError as error:
            raise Refused(str(error)) from None
        if self.family == "peaks":
            return rows
        of = self.proofs, WORD, rows, _lines(text)
        for found in provenance.complaints(*of, is_stdout=self.is_stdout):
            raise Refused(str(found))
        for told in self._impossible(rows):
            raise Refused(told)
        return rows

    def _rows(self, text: str) -> list[Row]:
        return list(self.read(_lines(text), **({"expect": self.asked} if self.asked else {})))

    def _impossible(self, rows: Sequence[Row]) -> Iterator[str]:
        check = _check_of(rows[0].suite, self.family) if rows else ""
        for sample in reported(samples_of(rows, _ALL_METRICS)):
            limits = descriptor_of(check).limits(Measurement(check, _CASE, sample, (), NodeFacts()))
            estimate = Estimate(sample.value, None, None, confidence=0.0, samples=1)
            found = judge(estimate, sample.better, sample.unit, None, limits)
            if found.verdict in (Verdict.IMPOSSIBLE, Verdict.INVALID):
                yield found.sentence


def _lines(text: str) -> list[str]:
    """Return the lines as a file that is read gives them, which str.splitlines does not."""
    return list(io.StringIO(text, newline=None))


def _dates(text: str) -> Iterator[float]:
    for line in text.splitlines():
        yield from map(float, provenance.fields_of("dated", line))
        for date in provenance.fields_of("dated_here", line):
            yield provenance._seconds(date) or 0.0


def _families() -> list[str]:
    """Return the folders of tests/data that have a module of :mod:`tests.asked`."""
    known = {module.name for module in pkgutil.iter_modules(asked.__path__)}
    return sorted(path.name for path in DATA.iterdir() if path.name.replace("-", "_") in known)


def _asked_of(family: str) -> Any:
    return importlib.import_module(f"{asked.__name__}.{family.replace('-', '_')}")


def _check_of(suite: str, family: str) -> str:
    """Return the check whose name begins as a suite of rows is called, else a family's first."""
    begins = re.sub(r"\W|_", "", suite).lower()
    own = [name for name in every_check() if name.lower().startswith(begins)]
    return min(own, key=len) if own else every_benchmark()[family].checks[0].name


def capture(name: str) -> Capture:
    """Return the output of this name below tests/data, ``hpl/hpl-2.3-mpich-grids.txt``."""
    return of_text(name, (DATA / name).read_text(encoding="utf-8"))


def of_text(name: str, text: str) -> Capture:
    """Return an output with what was asked of its run, by itself; the name begins with the family.

    Raises :class:`OutputError` for a text that does not say what it was asked for.
    """
    of = _asked_of(family := name.partition("/")[0])
    read = getattr(of, "read", None) or every_benchmark()[family].format.parse
    is_stdout = getattr(of, "STDOUT", True)
    return Capture(name, text, of.asked(text), read, re.compile(of.ECHO), is_stdout)


@functools.cache
def captures() -> tuple[tuple[Capture, ...], tuple[tuple[str, str], ...]]:
    """Return the outputs that are results, and the names and texts of those that are none."""
    results, others = [], []
    for family in _families():
        for path in sorted((DATA / family).rglob("*.txt")):
            name = path.relative_to(DATA).as_posix()
            try:
                found = capture(name)
                assert found.accepted(found.printed)
            except (OutputError, Refused):
                others.append((name, path.read_text(encoding="utf-8")))
            else:
                results.append(found)
    return tuple(results), tuple(others)


def is_contradicted(row: Row) -> str:
    """Say by what else in its own line a row's figures cannot be right; empty when nothing does.

    Written anew, so that an error of the parsers is none of the red team's.
    """
    values, conditions = row.values, row.conditions
    if not all(math.isfinite(value) and value >= 0 for name, value in values.items()
               if not name.startswith(("overhead_us", "availability", "overlap"))):  # fmt: skip
        return "no figure of a time or a rate"
    if row.benchmark == "HPL":
        n, time_s, rate = int(conditions["n"]), values["time_s"], values["performance_gflops"]
        work = (2 / 3 * n**3 + 3 / 2 * n**2) * 1e-9
        # The time has two decimals, the rate four digits or more behind its first.
        if not rate * (time_s - 0.0051) <= work * 1.001:
            return f"{rate} Gflop/s in {time_s} s are more work than N={n} has"
        if not rate * (time_s + 0.0051) >= work * 0.999:
            return f"{rate} Gflop/s in {time_s} s are less work than N={n} has"
    if row.benchmark == "HPCCG" and not values["time_s"] * values["performance_mflops"] > 0:
        return "no work was done"
    if {"t_min_us", "t_avg_us", "t_max_us"} <= set(values) and not (
        values["t_min_us"] - 0.01 <= values["t_avg_us"] <= values["t_max_us"] + 0.01
    ):
        return "the average is not between the extremes"
    return ""
