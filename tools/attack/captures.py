"""The captured outputs, each with what its run was asked for, read as a check reads a launch."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clustergate.benchmarks.hpcc import output as hpcc
from clustergate.benchmarks.hpcc.output import HpccExpectation, parse_hpcc
from clustergate.benchmarks.hpccg.output import HpccgExpectation, parse_hpccg
from clustergate.benchmarks.hpcg.output import HpcgExpectation, parse_hpcg
from clustergate.benchmarks.hpl.output import HplExpectation, Text, parse_hpl, read_parameters
from clustergate.benchmarks.imb.header import Text as ImbText
from clustergate.benchmarks.imb.header import read_header
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.benchmarks.imb.plan import ImbExpectation
from clustergate.benchmarks.lammps.output import LammpsExpectation, parse_lammps
from clustergate.benchmarks.lammps.problem import LJ_ENERGY, RHODO_ENERGY
from clustergate.benchmarks.limits import Measurement
from clustergate.benchmarks.mpi_kernel import KernelExpectation, doubling_bytes
from clustergate.benchmarks.mpi_trials.input import trials_measured
from clustergate.benchmarks.mpi_trials.output import TEST_BYTES
from clustergate.benchmarks.npb.output import NpbExpectation, parse_npb
from clustergate.benchmarks.osu.output import OsuExpectation, parse_osu
from clustergate.benchmarks.registry import descriptor_of, every_benchmark
from clustergate.benchmarks.stream.input import stream_measured
from clustergate.benchmarks.stream5.output import Stream5Expectation, parse_stream5
from clustergate.core.figures import reported, samples_of
from clustergate.core.model import METRICS, Estimate, NodeFacts, OutputError, Row, Verdict
from clustergate.core.paths import checkout
from clustergate.judge.judging import judge
from clustergate.launch.proof import provenance
from clustergate.launch.proof.ranks import RankProof, read_proofs
from clustergate.machine.kernels import peaks
from clustergate.machine.kernels.peaks import parse_peaks

DATA = checkout() / "tests" / "data"
WORD = "attacked-0"
_ALL_METRICS = {**METRICS, **hpcc.METRICS, **peaks.METRICS}
# What a figure can be on any machine of this shape; the captures ran on no more.
_CASE = {"nodes": 1, "ranks_per_node": 4, "cores_per_rank": 1}
_CHECKS = {
    "HPL": "HplCheck",
    "HPCC": "HpccCheck",
    "LAMMPS": "LammpsCheck",
    "NPB": "NpbCheck",
    "HPCCG": "HpccgCheck",
    "mpi_trials": "MpiTrialsCheck",
    "host_overhead": "HostOverheadCheck",
    "bidirectional_stream": "BidirectionalStreamCheck",
    "stream": "StreamCheck",
    "IMB-RMA": "ImbRmaCheck",
    "OSU": "OsuPt2PtCheck",
    "HPCG": "HpcgCheck",
    "stream5": "Stream5Check",
}
# Results in a file of their own, and peaks are no launch.
_NOT_STDOUT = ("hpcc", "hpcg", "peaks")


class Refused(Exception):
    """The suite did not take the text for the result of the run."""


@dataclass(frozen=True)
class Capture:
    """A captured output: ``family`` is its folder, ``asked`` the expectation of its run.

    ``echo`` matches the lines that repeat what was asked for.
    """

    name: str
    text: str
    asked: Any
    read: Callable[..., Iterator[Row]]
    echo: re.Pattern[str]

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
        if self.family in _NOT_STDOUT:
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
        lines, is_stdout = _lines(text), self.family not in _NOT_STDOUT
        for found in provenance.complaints(self.proofs, WORD, rows, lines, is_stdout=is_stdout):
            raise Refused(str(found))
        for told in self._impossible(rows):
            raise Refused(told)
        return rows

    def _rows(self, text: str) -> list[Row]:
        return list(self.read(_lines(text), **({"expect": self.asked} if self.asked else {})))

    def _impossible(self, rows: Sequence[Row]) -> Iterator[str]:
        check = _CHECKS.get(rows[0].suite, "ImbMpi1Check") if rows else ""
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


def _hpl(text: str) -> HplExpectation:
    lines = _lines(text)
    return HplExpectation(read_parameters(Text(lines, "x")).declared)


def _hpcc(text: str) -> HpccExpectation:
    found = re.search(r"^CommWorldProcs=(\d+)$", text, re.M)
    assert found
    return HpccExpectation(int(found.group(1)), _hpl(text[text.index("HPLinpack") :]))


def _imb(text: str) -> ImbExpectation:
    information, rows = read_header(ImbText(_lines(text), "output")), list(parse_imb(_lines(text)))
    threaded = information.suite == "IMB-MT"
    # One line below the other: the first table.
    sized = [row for row in rows if "bytes" in row.conditions]
    first = [row for k, row in enumerate(sized) if row.line == sized[0].line + k]
    counts = {int(r.conditions["processes"]) * int(r.conditions.get("groups", 1)) for r in rows}
    return ImbExpectation(
        suite=information.suite,
        benchmarks=tuple(dict.fromkeys(row.benchmark for row in rows if row.status != "invalid")),
        processes=tuple(sorted(counts)) if threaded else (),
        bytes=tuple(int(row.conditions["bytes"]) for row in first if threaded or "-msglen" in text),
        arguments=None if threaded else information.command[1:],
        repetitions=int(rows[0].conditions["repetitions"]) if threaded else None,
        threads=int(rows[0].conditions.get("threads", 1)) if threaded else None,
        ranks=max(counts),
    )


@dataclass(frozen=True)
class _Kernel(KernelExpectation):
    program: str = ""


def _parse_kernel(
    lines: Iterable[str], *, source: str = "output", expect: _Kernel
) -> Iterator[Row]:
    parse = every_benchmark()[expect.program].format.parse
    return parse(lines, source=source, expect=expect)


def _kernel(text: str) -> _Kernel:
    program = re.search(r'"program":"(\w+)"', text)
    assert program
    trials = {"mpi_trials": 51, "host_overhead": 3, "stream": 10}.get(program.group(1))
    settings = {"mpi_trials": {"flush_bytes": 35651584}, "stream": {"elements": 8912896}}
    measured = {
        "mpi_trials": trials_measured(list(TEST_BYTES)),
        "stream": stream_measured(),
        "bidirectional_stream": frozenset(
            ("bidirectional_stream", n) for n in doubling_bytes(1 << 24)
        ),
        "host_overhead": frozenset(
            (call, n) for call in ("isend", "irecv") for n in doubling_bytes(1 << 16)
        ),
    }
    name = program.group(1)
    kernel = _Kernel(2, trials, settings.get(name), measured[name], program=name)
    begun = json.loads(text[text.index('{"measurement":"begin"') :].partition("\n")[0])
    # Builds of before did not repeat them.
    asked = tuple(begun["arguments"]) if "arguments" in begun else None
    return dataclasses.replace(kernel, arguments=asked)


def _npb(text: str) -> NpbExpectation:
    name = re.search(r"(\w\w) Benchmark$", text, re.M)
    return NpbExpectation(name and name.group(1), "S", 2)


def _lammps(text: str) -> LammpsExpectation:
    name, energy = ("lj", LJ_ENERGY) if "lj/cut, perpetual" in text else ("rhodo", RHODO_ENERGY)
    return LammpsExpectation(name, 2, 32000, 100, energy)


def _osu(text: str) -> OsuExpectation:
    rows = list(parse_osu(_lines(text)))
    sizes = [int(row.conditions["bytes"]) for row in rows if "bytes" in row.conditions]
    processes = int(rows[0].conditions.get("processes", 4))
    least, most = (sizes[0], sizes[-1]) if sizes else (None, None)
    return OsuExpectation(rows[0].benchmark, processes, least, most, window=64)


def _hpcg(text: str) -> HpcgExpectation:
    (row,) = parse_hpcg(_lines(text))
    return HpcgExpectation(int(row.conditions["processes"]), int(row.conditions["nx"]))


def _stream5(text: str) -> Stream5Expectation:
    (row, *_) = parse_stream5(_lines(text))
    return Stream5Expectation(1, int(row.conditions["threads"]), int(row.conditions["elements"]))


_HPL_ECHO = r"(?:N|NB|PMAP|P|Q|PFACT|NBMIN|NDIV|RFACT|BCAST|DEPTH|SWAP|L1|U|EQUIL|ALIGN) +: +"
# Per folder: who reads it, what was asked of a run that printed this, which lines repeat it.
_FAMILIES: dict[str, tuple[Callable[..., Iterator[Row]], Callable[[str], Any], str]] = {
    "hpl": (parse_hpl, _hpl, rf"{_HPL_ECHO}|W[RC]\d|- Computational tests pass if"),
    "hpcc": (
        parse_hpcc,
        _hpcc,
        rf"{_HPL_ECHO}|W[RC]\d|- Computational tests pass if|CommWorldProcs|HPL_(?:N|NB|nprow)=",
    ),
    "imb": (parse_imb, _imb, r"# IMB-|# #processes|# Benchmarking"),
    "npb": (parse_npb, _npb, r" (?:Class|Total processes) "),
    "lammps": (parse_lammps, _lammps, r"Loop time of"),
    "hpccg": (
        parse_hpccg,
        lambda text: HpccgExpectation(2, 16),
        r"  (?:Number of MPI ranks|n[xyz]):",
    ),
    "osu": (parse_osu, _osu, r"# \[ pairs"),
    "hpcg": (parse_hpcg, _hpcg, r"Machine Summary::Dist|Local Domain Dimensions::n"),
    "stream5": (parse_stream5, _stream5, r"Array size|Number of Threads counted"),
    "mpi-kernels": (_parse_kernel, _kernel, r'\{"measurement":"begin"'),
    "peaks": (parse_peaks, lambda text: None, r"(?!)"),
}


def capture(name: str) -> Capture:
    """Return the output of this name below tests/data, ``hpl/hpl-2.3-mpich-grids.txt``."""
    return of_text(name, (DATA / name).read_text(encoding="utf-8"))


def of_text(name: str, text: str) -> Capture:
    """Return an output with what was asked of its run, by itself; the name begins with the family.

    Raises :class:`OutputError` for a text that does not say what it was asked for.
    """
    read, asked, echo = _FAMILIES[name.partition("/")[0]]
    return Capture(name, text, asked(text), read, re.compile(echo))


@functools.cache
def captures() -> tuple[tuple[Capture, ...], tuple[tuple[str, str], ...]]:
    """Return the outputs that are results, and the names and texts of those that are none."""
    results, others = [], []
    for family in _FAMILIES:
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
