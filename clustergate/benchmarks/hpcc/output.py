"""Read the text of HPCC 1.4 and 1.5 (hpccoutf.txt) into rows.

    Begin of StarDGEMM section.
    Scaled residual: 0.0103885
    Node(s) with error 0
    Average Gflop/s 42.594817
    End of StarDGEMM section.
    Begin of Summary section.
    VersionMajor=1
    StarDGEMM_Gflops=42.5948

HPCC prints sixteen sections, each between "Begin of … section." and "End of … section.", then a
summary of ``name=value`` lines. The rows are the performance figures of that summary, under
HPCC's own names, and the results of the HPL that HPCC embeds. Every other line of the summary is
a circumstance: what a figure depends on becomes a condition of its row, the rest is only checked.

A figure counts only if its section ran, passed its own check (residual, error count, maximum
error, validation) and printed the same value as the summary. HPCC marks what did not run in
several ways (-1, -1000, 0, or a value it never set), so that a section ran is concluded from the
section. A section without results is an error unless the expectation allows it. HPCC itself leaves
out the latencies and bandwidths of a run of one process.

What cannot be noticed:

- a changed digit within the rounding of the other place where the same figure stands: latencies
  beyond 1e-3 us, bandwidths of pairs beyond 1 kB/s, updates beyond 1e-6 GUP/s, ``PTRANS_GBs`` and
  ``MPIFFT_Gflops`` beyond their third decimal, ``PTRANS_time`` beyond 0.01 s; the phases
  ``MPIFFT_time0`` to ``MPIFFT_time6`` stand nowhere else;
- changes of circumstances that no row holds (``sizeof_…``, ``HPL_dMACH_…``, dates, the versions of
  the parts), and anything lost after "End of HPC Challenge tests.";
- two conditions or residuals that changed places within what their checks allow;
- a complete text of another run: only an expectation tells it from the one that was asked for.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from clustergate.benchmarks.hpl.output import (
    INTEGER,
    NUMBER,
    OUTPUT_NOT_CHECKED,
    THRESHOLD_HALF_UNIT,
    HplExpectation,
    Parameters,
    Text,
    compare_with_expectation,
    half_unit,
    hpl_flops,
    read_counts,
    read_hpl,
    read_parameters,
)
from clustergate.core.model import (
    BANDWIDTH,
    COMPUTE,
    LATENCY,
    MEMORY,
    Better,
    ConditionValue,
    Metric,
    OutputError,
    Row,
)
from clustergate.core.outputs import (
    OUTPUT_BAD_VALUE,
    OUTPUT_CONTRADICTION,
    OUTPUT_FAILURE,
    OUTPUT_LACKS,
    OUTPUT_MISPLACED,
    OUTPUT_NOT_RUN,
    OUTPUT_STRAY,
    OUTPUT_TWICE,
    OUTPUT_UNKNOWN,
    OUTPUT_WRONG_RESULT,
)
from clustergate.core.reasons import Reason

_BANNER = "This is the DARPA/DOE HPC Challenge Benchmark version"
TITLE = re.compile(_BANNER)
_LAST_LINE = "End of HPC Challenge tests."
_RANDOM_ACCESS = ("MPIRandomAccess", "StarRandomAccess", "SingleRandomAccess")
# In the order in which HPCC runs them.
SECTIONS = (
    *_RANDOM_ACCESS,
    *(f"{name}_LCG" for name in _RANDOM_ACCESS),
    "PTRANS",
    "StarDGEMM",
    "SingleDGEMM",
    "StarSTREAM",
    "SingleSTREAM",
    "MPIFFT",
    "StarFFT",
    "SingleFFT",
    "LatencyBandwidth",
    "HPL",
)
_STREAM_KERNELS = ("Copy", "Scale", "Add", "Triad")


@dataclass(frozen=True)
class _Figure:
    """A performance figure of the summary: its unit, which way is better, where it was measured.

    ``conditions`` are the summary's names of what it depends on, by the name of the condition.
    """

    unit: str
    better: Better
    section: str
    conditions: Mapping[str, str] = field(default_factory=dict)


# What the sections measure, for whoever compares figures of a kind; all else computes.
_KINDS = {
    "MPIRandomAccess": LATENCY,
    "StarRandomAccess": MEMORY,
    "SingleRandomAccess": MEMORY,
    "StarSTREAM": MEMORY,
    "SingleSTREAM": MEMORY,
    "PTRANS": BANDWIDTH,
    "MPIFFT": BANDWIDTH,
}


def kind_of_figure(name: str, section: str) -> str:
    """Return what a figure of the summary measures: one of :data:`clustergate.core.model.KINDS`."""
    if section == "LatencyBandwidth":
        return LATENCY if name.endswith("_usec") else BANDWIDTH
    return _KINDS.get(section.removesuffix("_LCG"), COMPUTE)


def _figures() -> dict[str, _Figure]:
    higher, lower = Better.HIGHER, Better.LOWER
    hpl = {"n": "HPL_N", "nb": "HPL_NB", "p": "HPL_nprow", "q": "HPL_npcol"}
    ptrans = {name: key.replace("HPL", "PTRANS") for name, key in hpl.items()}
    ptrans.update(n="PTRANS_n", nb="PTRANS_nb")
    stream = {"vector_size": "STREAM_VectorSize"}
    fft = {"n": "FFT_N"}
    mpi_fft = {"n": "MPIFFT_N", "fft_ranks": "MPIFFT_Procs"}
    figures = {
        "HPL_Tflops": _Figure("Tflop/s", higher, "HPL", hpl),
        "HPL_time": _Figure("s", lower, "HPL", hpl),
        "PTRANS_GBs": _Figure("GB/s", higher, "PTRANS", ptrans),
        "PTRANS_time": _Figure("s", lower, "PTRANS", ptrans),
        "StarFFT_Gflops": _Figure("Gflop/s", higher, "StarFFT", fft),
        "SingleFFT_Gflops": _Figure("Gflop/s", higher, "SingleFFT", fft),
        "MPIFFT_Gflops": _Figure("Gflop/s", higher, "MPIFFT", mpi_fft),
    }
    for phase in range(7):
        figures[f"MPIFFT_time{phase}"] = _Figure("s", lower, "MPIFFT", mpi_fft)
    for who in ("Star", "Single"):
        figures[f"{who}DGEMM_Gflops"] = _Figure("Gflop/s", higher, f"{who}DGEMM", {"n": "DGEMM_N"})
        for kernel in _STREAM_KERNELS:
            figures[f"{who}STREAM_{kernel}"] = _Figure("GB/s", higher, f"{who}STREAM", stream)
    for section in SECTIONS:
        if "RandomAccess" in section:
            words = section.removeprefix("Star").removeprefix("Single")
            # Defined anew in HPCC 1.0: what the versions before measured is another benchmark.
            table = {"table_words": f"{words}_N", "hpcc_major_version": "VersionMajor"}
            figures[f"{section}_GUPs"] = _Figure("GUP/s", higher, section, table)
    for which in ("Min", "Avg", "Max"):
        figures[f"{which}PingPongLatency_usec"] = _Figure("us", lower, "LatencyBandwidth")
        figures[f"{which}PingPongBandwidth_GBytes"] = _Figure("GB/s", higher, "LatencyBandwidth")
    for which in ("Naturally", "Randomly"):
        figures[f"{which}OrderedRingLatency_usec"] = _Figure("us", lower, "LatencyBandwidth")
        figures[f"{which}OrderedRingBandwidth_GBytes"] = _Figure("GB/s", higher, "LatencyBandwidth")
    return figures


_FIGURES = _figures()
KINDS = {name: kind_of_figure(name, figure.section) for name, figure in _FIGURES.items()}
"""What each figure of the summary measures."""

# What else the summary holds, by unit. MPIRandomAccess stops at a time bound, so its times say
# little: only the updates per second compare.
_CIRCUMSTANCES: Mapping[str, str] = {
    "s": """
        MPI_Wtick MPIRandomAccess_time MPIRandomAccess_CheckTime MPIRandomAccess_TimeBound
        MPIRandomAccess_LCG_time MPIRandomAccess_LCG_CheckTime MPIRandomAccess_LCG_TimeBound
        """,
    "B": """
        sizeof_char sizeof_short sizeof_int sizeof_long sizeof_void_ptr sizeof_size_t sizeof_float
        sizeof_double sizeof_s64Int sizeof_u64Int sizeof_struct_double_double
        """,
    "MiB": "MemProc MemVal",
    "": """
        VersionMajor VersionMinor VersionMicro VersionRelease LANG Success CommWorldProcs
        HPL_eps HPL_RnormI HPL_Anorm1 HPL_AnormI HPL_Xnorm1 HPL_XnormI HPL_BnormI
        HPL_N HPL_NB HPL_nprow HPL_npcol HPL_depth HPL_nbdiv HPL_nbmin
        HPL_cpfact HPL_crfact HPL_ctop HPL_order
        HPL_dMACH_EPS HPL_dMACH_SFMIN HPL_dMACH_BASE HPL_dMACH_PREC HPL_dMACH_MLEN HPL_dMACH_RND
        HPL_dMACH_EMIN HPL_dMACH_RMIN HPL_dMACH_EMAX HPL_dMACH_RMAX
        HPL_sMACH_EPS HPL_sMACH_SFMIN HPL_sMACH_BASE HPL_sMACH_PREC HPL_sMACH_MLEN HPL_sMACH_RND
        HPL_sMACH_EMIN HPL_sMACH_RMIN HPL_sMACH_EMAX HPL_sMACH_RMAX
        dweps sweps HPLMaxProcs HPLMinProcs DGEMM_N
        PTRANS_residual PTRANS_n PTRANS_nb PTRANS_nprow PTRANS_npcol
        MPIRandomAccess_LCG_N MPIRandomAccess_LCG_Errors MPIRandomAccess_LCG_ErrorsFraction
        MPIRandomAccess_LCG_ExeUpdates MPIRandomAccess_LCG_Algorithm
        MPIRandomAccess_N MPIRandomAccess_Errors MPIRandomAccess_ErrorsFraction
        MPIRandomAccess_ExeUpdates MPIRandomAccess_Algorithm
        RandomAccess_LCG_N RandomAccess_N STREAM_VectorSize STREAM_Threads
        FFT_N MPIFFT_N MPIFFT_maxErr MPIFFT_Procs FFTEnblk FFTEnp FFTEl2size
        M_OPENMP omp_get_num_threads omp_get_max_threads omp_get_num_procs MemSpec
        CPS_HPCC_FFT_235 CPS_HPCC_FFTW_ESTIMATE CPS_HPCC_MEMALLCTR CPS_HPL_USE_GETPROCESSTIMES
        CPS_RA_SANDIA_NOPT CPS_RA_SANDIA_OPT2 CPS_USING_FFTW FFT_API
        """,
}
# The sources since the release of 1.5.0 say which FFT they were built with.
_NOT_IN_EVERY_VERSION = frozenset(("FFT_API",))

METRICS: Mapping[str, Metric] = {
    **{name: Metric(name, figure.unit, figure.better) for name, figure in _FIGURES.items()},
    **{
        name: Metric(name, unit, Better.NEITHER)
        for unit, names in _CIRCUMSTANCES.items()
        for name in names.split()
    },
}


@dataclass(frozen=True)
class HpccExpectation:
    """What a run was asked for; None where nothing was asked.

    ``hpl`` is what the first lines of hpccinf.txt ask for; its other lines ask for no sizes of
    PTRANS besides. ``skipped`` are the sections that may be without results because the program was
    built or told to leave them out.
    """

    ranks: int | None = None
    hpl: HplExpectation | None = None
    skipped: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        unknown = self.skipped.difference(SECTIONS)
        if unknown:
            raise ValueError(f"HPCC has no section named {', '.join(sorted(unknown))}")


def parse_hpcc(
    lines: Iterable[str], *, source: str = "output", expect: HpccExpectation | None = None
) -> Iterator[Row]:
    """Yield a row per HPL result and a row per performance figure of the summary.

    A summary row's benchmark is HPCC's name of the figure, which is also the name of its only
    value: its unit and better direction are in :data:`METRICS`. Its conditions are ``ranks``,
    ``threads`` (of OpenMP in each process) and the size of its own benchmark. The rows of HPL,
    whose benchmark is ``HPL``, are those of
    :func:`clustergate.benchmarks.hpl.output.parse_hpl`.

    Of several runs in one file, as HPCC appends them, all rows are yielded where nothing else is
    expected. The lines are read once and not kept. Raises :class:`OutputError` as soon as the text
    is incomplete, inconsistent, failed or not the run expected: rows that came before do not count
    then.
    """
    if expect is not None:
        yield from _Run(lines, source, expect).rows()
        return
    # HPCC appends to an hpccoutf.txt that is there.
    remaining, next_banner, number = iter(lines), list[str](), 0
    while True:
        run = _Run(_one_run(remaining, next_banner), source, HpccExpectation(), number)
        yield from run.rows()
        number = run.number
        if not next_banner:
            return


def _one_run(lines: Iterator[str], next_banner: list[str]) -> Iterator[str]:
    """Yield the lines of a run that came to its end, and keep the banner of the next one."""
    if next_banner:
        yield next_banner.pop()
    ended = False
    for line in lines:
        if ended and line.startswith(_BANNER):
            next_banner.append(line)
            return
        ended = ended or line.startswith(_LAST_LINE)
        yield line


@dataclass(frozen=True)
class _Line:
    """A line that a section prints when it ran, and what the numbers in it are.

    ``keys`` name the lines of the summary that repeat the numbers, each with the factor that turns
    the printed unit into that of the summary; ``last`` says that the line comes several times and
    the last one counts.
    """

    what: str
    pattern: re.Pattern[str]
    keys: tuple[tuple[str, float], ...]
    optional: bool
    last: bool


def _line(
    pattern: str,
    *keys: str,
    what: str = "",
    factors: Sequence[float] | None = None,
    optional: bool = False,
    last: bool = False,
) -> _Line:
    """Make a :class:`_Line`: every ``#`` in the pattern is a number, with spaces before it."""
    return _Line(
        what or " and ".join(keys),
        re.compile(pattern.replace("#", rf"\s*({NUMBER})")),
        tuple(zip(keys, factors or [1.0] * len(keys), strict=True)),
        optional,
        last,
    )


_RESIDUAL = _line(r"Scaled residual:#", what="the scaled residual")
_NODES = _line(r"Node\(s\) with error 0", what="the number of nodes with errors")
_VALIDATES = _line(
    r"Solution Validates(?:: avg error less than# on all three arrays)?", what="the validation"
)
_PING_PONGS = ("Min", "Avg", "Max")


_ERRORS, _MAXIMUM_ERROR = "the number of errors", "the maximum error"


def _maximum_error(*keys: str) -> _Line:
    return _line(r"max\(\|x-x0\|\):#", *keys, what=_MAXIMUM_ERROR)


def _errors(*keys: str) -> _Line:
    return _line(r"Found# errors in# locations \(passed\)\.", *keys, what=_ERRORS)


@functools.cache
def _section_lines() -> dict[str, tuple[_Line, ...]]:
    """Return the lines of each section; to compile them takes a tenth of the start of a command."""
    # The one process of a Single… section prints more if it is the first one.
    if_first = functools.partial(replace, optional=True)
    lines = {
        "StarDGEMM": (
            _RESIDUAL,
            _NODES,
            _line(r"Average Gflop/s#", "StarDGEMM_Gflops"),
        ),
        "SingleDGEMM": (
            if_first(_RESIDUAL),
            _NODES,
            _line(r"Single DGEMM Gflop/s#", "SingleDGEMM_Gflops"),
        ),
        "StarSTREAM": (
            _line(r"Array size =#, Offset = \d+", "STREAM_VectorSize"),
            _line(r"Number of Threads requested =#", "STREAM_Threads", optional=True),
            _VALIDATES,
            _NODES,
            *(_line(rf"Average {name} GB/s#", f"StarSTREAM_{name}") for name in _STREAM_KERNELS),
        ),
        "SingleSTREAM": (
            if_first(_VALIDATES),
            _NODES,
            *(
                _line(rf"Single STREAM {name} GB/s#", f"SingleSTREAM_{name}")
                for name in _STREAM_KERNELS
            ),
        ),
        "MPIFFT": (
            _line(r"Number of nodes:#", "MPIFFT_Procs"),
            _line(r"Vector size:#", "MPIFFT_N"),
            _maximum_error("MPIFFT_maxErr"),
            _line(r"Gflop/s:#", "MPIFFT_Gflops"),
        ),
        "StarFFT": (
            _line(r"Vector size:#", "FFT_N"),
            _maximum_error(),
            _NODES,
            _line(r"Average Gflop/s#", "StarFFT_Gflops"),
        ),
        "SingleFFT": (
            if_first(_line(r"Vector size:#", "FFT_N")),
            if_first(_maximum_error()),
            _NODES,
            _line(r"Single FFT Gflop/s#", "SingleFFT_Gflops"),
        ),
        "LatencyBandwidth": (
            _line(
                r"Latency   min / avg / max:# /# /# msecs",
                *(f"{which}PingPongLatency_usec" for which in _PING_PONGS),
                factors=(1e3, 1e3, 1e3),
                last=True,
            ),
            _line(
                r"Bandwidth min / avg / max:# /# /# MByte/s",
                *(f"{which}PingPongBandwidth_GBytes" for which in _PING_PONGS),
                factors=(1e-3, 1e-3, 1e-3),
                last=True,
            ),
            *(
                _line(
                    rf"On {order.lower()} +ordered ring: latency=# msec, bandwidth=# MB/s",
                    f"{order}OrderedRingLatency_usec",
                    f"{order}OrderedRingBandwidth_GBytes",
                    factors=(1e3, 1e-3),
                )
                for order in ("Naturally", "Randomly")
            ),
            _line(
                r" The ring communication was done in both directions on# processes",
                "CommWorldProcs",
            ),
        ),
    }
    for suffix in ("", "_LCG"):
        name = f"MPIRandomAccess{suffix}"
        lines[name] = (
            _line(r"Running on# processors(?: \(PowerofTwo\))?", "CommWorldProcs"),
            _line(r"Real time used =# seconds", f"{name}_time"),
            _line(r"# Billion\(10\^9\) Updates    per second \[GUP/s\]", f"{name}_GUPs"),
            _line(r"Verification:  Real time used =# seconds", f"{name}_CheckTime"),
            _errors(f"{name}_Errors", f"{name}_N"),
        )
        table = r"Main table size   = 2\^\d+ =# words"
        lines[f"StarRandomAccess{suffix}"] = (
            _line(table, f"RandomAccess{suffix}_N"),
            _errors(),
            _NODES,
            _line(r"Average GUP/s#", f"StarRandomAccess{suffix}_GUPs"),
        )
        lines[f"SingleRandomAccess{suffix}"] = (
            if_first(_line(table, f"RandomAccess{suffix}_N")),
            if_first(_errors()),
            _NODES,
            _line(r"Single GUP/s#", f"SingleRandomAccess{suffix}_GUPs"),
        )
    return lines


_VERSION = re.compile(rf"{_BANNER} (\d+)\.(\d+)\.(\d+)\b.*")
# What stands above the sections.
_PREAMBLE = "above"
_MARK = re.compile(r"(Begin|End) of (\w+) section\.")
_PAIR = re.compile(r"(\w+)=(.*)")
_SIGNED_NUMBER = re.compile(rf"-?{NUMBER}")
_INTEGER_ONLY = re.compile(INTEGER)
# Words by which HPCC says that something went wrong, whatever the section.
_COMPLAINTS = (
    *("HPL ERROR", "Failed to allocate ", "Failed Validation ", "(failed)", "Node(s) with error"),
    *("Cannot open output file", "Error in line ", "ILLEGAL "),
)
_LINE_NOT_READ = re.compile(r"Error in line (\d{1,3}) of the input file\.")
# Those of hpccinf.txt before what it adds for PTRANS.
_LINES_OF_HPL = 32
_PTRANS_ROW = re.compile(
    rf"(WALL|CPU ) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +({NUMBER}) (\w+) +({NUMBER}) +\S+"
)
_PTRANS_REPETITIONS = 5
# The summary's %g keeps six significant digits, so a quotient of two is off by 1e-5 at most.
_HALF_UNIT_OF_G = 5.001e-6
_QUOTIENT_SLACK = 1.001e-5
_ERRORS_ALLOWED = 0.01
# HPCC_LocalVectorSize keeps sizes within a power of two that an int holds.
_LARGEST_VECTOR = 1 << 30


def _power_of_two(most: int) -> int:
    """Return the largest power of two up to a number, 1 for none."""
    return 1 << max(most.bit_length() - 1, 0)


class _Printed(NamedTuple):
    """A figure as a section printed it, in the summary's unit, with its rounding and line."""

    value: float
    slack: float
    line: int


class _Result(NamedTuple):
    """A result of HPL or PTRANS: the rate in the summary's unit, with its rounding."""

    sizes: tuple[int, ...]
    time_s: float
    rate: float
    slack: float
    line: int


class _Text(Text):
    """A text of which one section is read at a time: its ``end`` is that of the lines."""

    def refuse_figures(self) -> None:
        line = self.line
        if _MARK.fullmatch(line):
            if self.end == _PREAMBLE:
                raise self.error(OUTPUT_NOT_CHECKED())
            within = self.end.removeprefix("End of ").removesuffix(" section.")
            raise self.error(OUTPUT_MISPLACED(what=f'"{line}"', due=f"the end of {within}"))
        if _NODES.pattern.fullmatch(line):
            raise self.error(OUTPUT_STRAY(what=f'"{line}"'))
        super().refuse_figures()
        match = _LINE_NOT_READ.fullmatch(line)
        if match and not self.end.startswith("End of") and int(match[1]) > _LINES_OF_HPL:
            # HPCC then runs PTRANS with the sizes of HPL, which are held to those printed.
            return
        if any(complaint in line for complaint in _COMPLAINTS):
            raise self.error(OUTPUT_FAILURE(program="HPCC", words=line.strip()))


class _Run:
    """One pass over the text of one run."""

    def __init__(
        self, lines: Iterable[str], source: str, expect: HpccExpectation, number: int = 0
    ) -> None:
        self._text = _Text(lines, source)
        self._text.number = number
        self._source = source
        self._expect = expect
        self._banner_seen = False
        self._parameters = Parameters()
        self._ended: dict[str, int] = {}
        self._without_results: dict[str, int] = {}
        self._printed: dict[str, list[_Printed]] = {}
        self._best: dict[str, list[_Result]] = {"HPL": [], "PTRANS": []}
        self._summary: dict[str, tuple[str, int]] = {}

    @property
    def number(self) -> int:
        """The line that was read last."""
        return self._text.number

    def rows(self) -> Iterator[Row]:
        text = self._text
        finished = False
        for line in text:
            if line.startswith(_BANNER) and not self._banner_seen:
                self._banner_seen = True
                self._read_preamble()
            elif match := _MARK.fullmatch(line):
                yield from self._section(*match.groups())
            elif line == _LAST_LINE and "Summary" in self._ended:
                finished = True
            elif self._banner_seen:
                text.refuse_figures()
        if not self._banner_seen and text.number:
            raise OutputError(OUTPUT_UNKNOWN(titles="HPCC"), source=self._source)
        if not finished:
            raise text.cut_off(f'"{_LAST_LINE}"')

    def _read_preamble(self) -> None:
        """Take the version, and the sizes and the limits of the checks that HPL prints after it."""
        if match := _VERSION.fullmatch(self._text.line):
            for part, token in zip(("Major", "Minor", "Micro"), match.groups(), strict=True):
                self._printed[f"Version{part}"] = [_Printed(float(token), 0.0, self._text.number)]
        self._text.end = _PREAMBLE
        self._parameters = read_parameters(self._text)
        self._text.end = _Text.end
        if not self._parameters.epsilon > 0:
            raise self._text.error(OUTPUT_LACKS(missing="the machine precision above this line"))
        compare_with_expectation(self._parameters, self._expect.hpl, self._source)

    def _section(self, mark: str, name: str) -> Iterator[Row]:
        text = self._text
        if mark == "End":
            raise text.error(OUTPUT_STRAY(what=f"the end of section {name}"))
        if name in self._ended:
            raise text.error(OUTPUT_TWICE(what=f"section {name}"))
        if not self._banner_seen:
            raise text.error(OUTPUT_STRAY(what=f"section {name}"))
        if name == "Summary":
            yield from self._read_summary()
        elif name == "HPL":
            yield from self._read_hpl()
        elif name == "PTRANS":
            self._read_ptrans()
        elif name in _section_lines():
            self._read_section(name)
        else:
            raise text.damaged("a section", "HPCC")

    def _body(self, name: str) -> Iterator[str]:
        """Yield the lines of a section up to its end."""
        self._text.end = f"End of {name} section."
        yield from self._text
        self._close(name)

    def _close(self, name: str) -> None:
        text = self._text
        if text.line != text.end:
            raise text.cut_off(f'"{text.end}"')
        text.end = _Text.end
        self._ended[name] = text.number

    def _read_section(self, name: str) -> None:
        forms = _section_lines()[name]
        seen: set[_Line] = set()
        for line in self._body(name):
            matches = ((form, form.pattern.fullmatch(line)) for form in forms)
            form, match = next((both for both in matches if both[1]), (None, None))
            if form is None or match is None:
                self._text.refuse_figures()
                continue
            if form in seen and not form.last:
                raise self._text.error(OUTPUT_TWICE(what=f'"{line.strip()}"'))
            seen.add(form)
            self._check_limit(name, form, match.groups())
            self._take(form, match.groups())
        if not seen:
            self._without_results[name] = self._text.number
            return
        for form in forms:
            if form not in seen and not form.optional:
                raise self._lacks(f"{form.what} of section {name}")

    def _take(self, form: _Line, tokens: Sequence[str]) -> None:
        for (key, factor), token in zip(form.keys, tokens, strict=False):
            # A count is exact, and the summary repeats it by %d.
            slack = 0.0 if _INTEGER_ONLY.fullmatch(token) else half_unit(token) * factor
            printed = _Printed(float(token) * factor, slack, self._text.number)
            if form.last:
                self._printed[key] = [printed]
            else:
                self._printed.setdefault(key, []).append(printed)

    def _check_limit(self, name: str, form: _Line, tokens: Sequence[str]) -> None:
        """Hold the proof of a section to the limit that HPCC itself holds it to."""
        if form.what == _RESIDUAL.what:
            self._check_threshold("the scaled residual", float(tokens[0]))
        elif form.what == _ERRORS:
            errors, locations = float(tokens[0]), float(tokens[1])
            if errors > _ERRORS_ALLOWED * locations:
                wanted = f"{_ERRORS_ALLOWED:.0%} of {locations:g} at most"
                raise self._wrong_result("the number of errors", errors, wanted)
        elif form.what == _MAXIMUM_ERROR:
            sizes = self._printed.get("MPIFFT_N" if name == "MPIFFT" else "FFT_N")
            if sizes is None or sizes[-1].value <= 1:
                raise self._lacks(f"the vector size of section {name} above its error")
            scaled = float(tokens[0]) / math.log(sizes[-1].value) / self._parameters.epsilon
            self._check_threshold("the scaled maximum error", scaled)

    def _check_threshold(self, what: str, value: float) -> None:
        if not value <= self._parameters.threshold + THRESHOLD_HALF_UNIT:
            raise self._wrong_result(what, value, f"{self._parameters.threshold:g} at most")

    def _wrong_result(self, what: str, value: float, wanted: str) -> OutputError:
        facts = {"what": what, "value": f"{value:g}", "wanted": wanted}
        return self._text.error(OUTPUT_WRONG_RESULT(**facts))

    def _lacks(self, missing: str) -> OutputError:
        return self._text.error(OUTPUT_LACKS(missing=missing))

    def _read_hpl(self) -> Iterator[Row]:
        """Pass on the rows of the embedded HPL and keep the best, which the summary repeats."""
        for line in self._body("HPL"):
            if line.startswith("HPLinpack"):
                break
            self._text.refuse_figures()
        else:
            self._without_results["HPL"] = self._text.number
            return
        self._text.back()
        for row in read_hpl(self._text, suite="HPCC", expect=self._expect.hpl):
            n, nb, p, q = (int(row.conditions[name]) for name in ("n", "nb", "p", "q"))
            rate = row.values["performance_gflops"] / 1e3
            # Printed by %.3e.
            result = _Result((n, nb, p, q), row.values["time_s"], rate, 0.0005001 * rate, row.line)
            self._keep_best("HPL", result)
            yield row
        self._close("HPL")

    def _read_ptrans(self) -> None:
        """Read the table of PTRANS; the figure is the best of the worst of five repetitions."""
        text = self._text
        rows = 0
        counted = False
        for line in self._body("PTRANS"):
            if line.startswith(("WALL", "CPU ")):
                result = self._transposition(line)
                rows += line.startswith("WALL")
                # The rate of the fifth repetition is the lowest of its five.
                if line.startswith("WALL") and rows % _PTRANS_REPETITIONS == 0:
                    self._keep_best("PTRANS", result)
            elif line.startswith("Finished ") and not counted:
                text.back()
                read_counts(text, "PTRANS", rows)
                counted = True
            else:
                text.refuse_figures()
        if rows == 0 and not counted:
            self._without_results["PTRANS"] = text.number
        elif not self._best["PTRANS"] or not counted:
            raise self._lacks("the results of section PTRANS or their count")

    def _transposition(self, line: str) -> _Result:
        match = _PTRANS_ROW.fullmatch(line)
        if match is None:
            raise self._text.damaged("a row of PTRANS", "HPCC")
        _, m, n, mb, nb, p, q, time, verdict, rate = match.groups()
        if verdict != "PASSED":
            facts = {"what": "PTRANS's residual check", "value": verdict, "wanted": "PASSED"}
            raise self._text.error(OUTPUT_WRONG_RESULT(**facts))
        if (m, mb) != (n, nb):
            raise self._text.damaged("a square matrix of PTRANS", "HPCC")
        sizes = (int(n), int(nb), int(p), int(q))
        # Printed by %.3f.
        return _Result(sizes, float(time), float(rate), 0.0005, self._text.number)

    def _keep_best(self, part: str, result: _Result) -> None:
        best = self._best[part]
        if best and result.rate > best[0].rate:
            best.clear()
        if not best or result.rate == best[0].rate:
            best.append(result)

    def _read_summary(self) -> Iterator[Row]:
        text = self._text
        for line in self._body("Summary"):
            match = _PAIR.fullmatch(line)
            if match is None:
                text.refuse_figures()
                continue
            name, token = match.groups()
            if name not in METRICS:
                raise text.damaged("a line of the summary", "HPCC")
            if name in self._summary:
                raise text.error(OUTPUT_TWICE(what=name))
            if name == "Success" and token != "1":
                facts = {"what": name, "value": token, "wanted": "1"}
                raise text.error(OUTPUT_WRONG_RESULT(**facts))
            self._summary[name] = (token, text.number)
        for name in METRICS:
            if name not in self._summary and name not in _NOT_IN_EVERY_VERSION:
                raise self._lacks(f"{name} of the summary")
        self._check_sections()
        ranks = self._expect.ranks
        if ranks is not None and self._value("CommWorldProcs") != ranks:
            raise self._wrong("CommWorldProcs", f"{ranks} requested ranks")
        if self._expect.hpl is not None:
            self._check_sizes()
        self._check_printed()
        self._check_formulas()
        yield from self._summary_rows()

    def _check_sections(self) -> None:
        for name in SECTIONS:
            if name not in self._ended:
                raise self._lacks(f"section {name}")
        for name, line in self._without_results.items():
            alone = name == "LatencyBandwidth" and self._value("CommWorldProcs") == 1
            if not alone and name not in self._expect.skipped:
                why = "its section is without results"
                facts = {"name": name, "why": why}
                raise OutputError(OUTPUT_NOT_RUN(**facts), line=line, source=self._source)

    def _check_sizes(self) -> None:
        """Hold the sizes of the other parts to those that HPCC makes of HPL's N, NB, P and Q."""
        integers, ranks = self._parameters.integers, int(self._value("CommWorldProcs"))
        # Bytes of a process, as in HPCC_Init in io.c.
        memory = 8 * max(integers["N"]) ** 2 // min(p * q for p, q in self._parameters.grids())
        expected = {
            "PTRANS_n": {n // 2 for n in integers["N"]},
            "PTRANS_nb": set(integers["NB"]),
            "STREAM_VectorSize": {min(memory // 24, _LARGEST_VECTOR)},
        }
        for suffix in ("", "_LCG"):
            expected[f"RandomAccess{suffix}_N"] = {_power_of_two(memory // 8)}
            expected[f"MPIRandomAccess{suffix}_N"] = {_power_of_two(memory * ranks // 8)}
        if self._value("CPS_HPCC_FFT_235") == 0:
            computing = _power_of_two(ranks)
            each = min(_power_of_two(memory // (64 * computing)), _LARGEST_VECTOR)
            expected["FFT_N"] = {min(_power_of_two(memory // 32), _LARGEST_VECTOR)}
            expected["MPIFFT_N"] = {each * computing**2}
        measured = {
            name
            for figure in _FIGURES.values()
            if figure.section not in self._without_results
            for name in figure.conditions.values()
        }
        for name, sizes in expected.items():
            if name in measured and self._value(name) not in sizes:
                follows = " or ".join(map(str, sorted(sizes)))
                raise self._wrong(
                    name, f"{follows}, which follows from the N, NB, P and Q asked for"
                )

    def _check_printed(self) -> None:
        """Hold the summary to what the sections printed."""
        for name, places in self._printed.items():
            value = self._value(name)
            for place in places:
                slack = place.slack and place.slack + _HALF_UNIT_OF_G * abs(value)
                if abs(value - place.value) > slack:
                    raise self._wrong(name, f"{place.value:.6g} in line {place.line}")

    def _check_formulas(self) -> None:
        """Hold the figures to the quotients that HPCC makes them from."""
        if "HPL" not in self._without_results:
            rate = hpl_flops(self._count("HPL_N")) / self._positive("HPL_time") / 1e12
            self._check_quotient("HPL_Tflops", rate, "HPL_N and HPL_time")
            self._check_best("HPL", "HPL_Tflops", ("HPL_N", "HPL_NB", "HPL_nprow", "HPL_npcol"))
        for name in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
            if name in self._without_results:
                continue
            updates, time = self._value(f"{name}_ExeUpdates"), self._positive(f"{name}_time")
            self._check_quotient(f"{name}_GUPs", 1e-9 * updates / time, f"{name}_ExeUpdates")
            fraction = self._value(f"{name}_Errors") / self._positive(f"{name}_N")
            self._check_quotient(f"{name}_ErrorsFraction", fraction, f"{name}_Errors")
        if "PTRANS" not in self._without_results:
            self._check_best_ptrans()
        if not {"StarDGEMM", "SingleDGEMM"} <= self._without_results.keys():
            self._check_dgemm_order()
        if not {"StarSTREAM", "SingleSTREAM"} <= self._without_results.keys():
            openmp = self._value("M_OPENMP") > 0
            threads = self._value("omp_get_num_threads") if openmp else 1
            if self._value("STREAM_Threads") != threads:
                raise self._wrong("STREAM_Threads", f"{threads:g} threads of OpenMP")

    def _check_dgemm_order(self) -> None:
        """Hold DGEMM_N to HPL's largest order on the smallest grid (the sum in tstdgemm.c)."""
        ranks = min(p * q for p, q in self._parameters.grids())
        memory = 8 * max(self._parameters.integers["N"]) ** 2 // ranks
        expected = int(math.sqrt(memory // 8 // 3 + 0.25) - 0.5)
        if self._value("DGEMM_N") != expected:
            raise self._wrong("DGEMM_N", f"{expected}, which follows from HPL's N, P and Q")

    def _check_best_ptrans(self) -> None:
        """Hold the summary to PTRANS's best result: its rate is that of the slowest of five."""
        rate, time = self._value("PTRANS_GBs"), self._positive("PTRANS_time")
        residual, n = self._value("PTRANS_residual"), self._value("PTRANS_n")
        if not 0 <= residual <= self._parameters.threshold + THRESHOLD_HALF_UNIT:
            most = f"{self._parameters.threshold:g} at most"
            raise self._wrong_result("PTRANS_residual", residual, most)
        if rate > 8e-9 * n * n / time * (1 + _QUOTIENT_SLACK):
            raise self._wrong("PTRANS_GBs", "PTRANS_n and PTRANS_time, which allow less")
        sizes = ("PTRANS_n", "PTRANS_nb", "PTRANS_nprow", "PTRANS_npcol")
        self._check_best("PTRANS", "PTRANS_GBs", sizes)

    def _check_best(self, part: str, figure: str, sizes: tuple[str, ...]) -> None:
        """Find the summary's result among the best of a part (their digits may be the same)."""
        rate, time = self._value(figure), self._value(f"{part}_time")
        wanted = tuple(map(self._value, sizes))
        best = self._best[part]
        if not any(
            result.sizes == wanted
            and abs(rate - result.rate) <= result.slack + _HALF_UNIT_OF_G * rate
            # Printed by %.2f.
            and abs(time - result.time_s) <= 0.005 + _HALF_UNIT_OF_G * time
            for result in best
        ):
            raise self._wrong(figure, f"{part}'s best result in line {best[0].line}")

    def _check_quotient(self, name: str, expected: float, origin: str) -> None:
        if abs(self._value(name) - expected) > _QUOTIENT_SLACK * expected:
            raise self._wrong(name, f"{expected:.6g}, which follows from {origin}")

    def _value(self, name: str) -> float:
        """Return a number of the summary that its section must have set."""
        token, _ = self._summary[name]
        if not _SIGNED_NUMBER.fullmatch(token) or math.isinf(value := float(token)):
            raise self._not_as(name, "a number")
        return value

    def _count(self, name: str) -> int:
        token, _ = self._summary[name]
        if not _INTEGER_ONLY.fullmatch(token) or not (count := int(token)):
            raise self._not_as(name, "a positive integer")
        return count

    def _positive(self, name: str) -> float:
        value = self._value(name)
        if value <= 0:
            raise self._not_as(name, "positive, since its section ran")
        return value

    def _wrong(self, name: str, other: str) -> OutputError:
        one = f"{name}={self._summary[name][0]}"
        return self._about(name, OUTPUT_CONTRADICTION(one=one, other=other))

    def _not_as(self, name: str, wanted: str) -> OutputError:
        value = self._summary[name][0]
        return self._about(name, OUTPUT_BAD_VALUE(name=name, wanted=wanted, value=value))

    def _about(self, key: str, problem: Reason) -> OutputError:
        return OutputError(problem, line=self._summary[key][1], source=self._source)

    def _summary_rows(self) -> Iterator[Row]:
        shared: dict[str, ConditionValue] = {
            "ranks": self._count("CommWorldProcs"),
            "threads": self._count("STREAM_Threads"),
        }
        for name, figure in _FIGURES.items():
            if figure.section in self._without_results:
                continue
            if name.startswith("MPIFFT_time"):
                # Only HPCC's own FFT takes these times; a phase may be shorter than the clock's.
                if self._value("CPS_USING_FFTW") == 1:
                    continue
                value = self._value(name)
                if value < 0:
                    raise self._not_as(name, "0 or more")
            else:
                value = self._positive(name)
            own = {key: self._count(of) for key, of in figure.conditions.items()}
            line = self._summary[name][1]
            yield Row("HPCC", name, {**shared, **own}, {name: value}, line=line)
