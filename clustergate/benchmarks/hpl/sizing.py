"""HPL.dat, computed and not typed.

Pure functions of a node's cores and memory and of a time budget. Sources of the rules:

- "HPL guide": the TUNING file and the FAQ (www/faqs.html) in HPL's distribution.
- "linear rule": N as a fraction of sqrt(memory / 8), rounded down to a multiple of NB * lcm(P, Q),
  as in the published evaluation of a Westmere cluster whose HPL.dat has N=1179648, P=64, Q=96.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import NamedTuple

from clustergate.benchmarks.hpl.output import (
    BROADCASTS,
    FACTORISATIONS,
    THRESHOLD,
    HplExpectation,
    hpl_flops,
)
from clustergate.core.model import ClustergateError, Sample
from clustergate.core.reasons import Words
from clustergate.core.words import INPUT_NOT_POSITIVE, INPUT_NOT_TAKEN, INPUT_TOO_SMALL

BYTES_PER_ELEMENT = 8
"""HPL and HPCC compute in double precision."""

DEFAULT_MEMORY_FRACTION = 0.80
"""Of the bytes available. The HPL guide's rule of thumb: the rest is for HPL's panels, for the MPI
library's buffers and for the operating system; beyond it the node swaps or kills the run."""

DEFAULT_NB = 192
"""Small multiple of the kernel blocking of today's BLAS libraries, inside the HPL guide's interval
of 32 to 256; a site that knows better says so."""

# On grids that are that square HPL has nearly as much for each process.
_SQUARE = 2
FLATTEST_GOOD_GRID = 3
"""Largest Q/P that the HPL guide calls good on a switched network."""

HPL_MAX_VALUES = 20
"""HPL_MAX_PARAM in HPL and HPCC: values that one line may hold."""

HPL_MAX_CHARACTERS = 252
"""Longest line that HPL reads whole: it reads 253 characters with the end of the line."""

LABELLED_CHARACTERS = 80
"""A line with its label, which a reader of terminals and HPCC's second reading take whole."""

LARGEST_INT = 2**31 - 1


class SizingError(ClustergateError):
    """What was asked for has no sensible input file: the sentence says why."""


# --- process grids ---------------------------------------------------------------------------


def process_grid(ranks: int) -> tuple[int, int]:
    """Return P and Q with P * Q = ranks, P <= Q, as square as possible (6144 -> 64 x 96)."""
    require_positive("the number of processes", ranks)
    p = next(p for p in range(math.isqrt(ranks), 0, -1) if ranks % p == 0)
    return p, ranks // p


def grid_remark(p: int, q: int) -> str | None:
    """Return a sentence about a P x Q grid that HPL handles badly, None about a good one.

    Good is, by the HPL guide, P <= Q <= 3 P.
    """
    ranks = p * q
    best_p, best_q = process_grid(ranks)
    if _is_good_grid(p, q):
        return None
    if _is_good_grid(best_p, best_q):
        return (
            f"a {p} x {q} grid is outside HPL's recommended shape "
            f"(P <= Q <= {FLATTEST_GOOD_GRID} P): {ranks} processes also make {best_p} x {best_q}"
        )
    fewer = next(count for count in range(ranks - 1, 0, -1) if _is_good_grid(*process_grid(count)))
    fewer_p, fewer_q = process_grid(fewer)
    flat = f"the flat grid {p} x {q}, on which HPL performs poorly"
    cause = (
        f"{ranks} is a prime number and leaves only {flat}"
        if best_p == 1
        else f"{ranks} processes make {flat}"
    )
    return f"{cause}; {fewer} processes make {fewer_p} x {fewer_q}"


def rate_of_fewer_ranks(fewer: int, more: int) -> float | None:
    """Return the share of HPL's rate that a few ranks less have: as much for each.

    None where their grids are not as square, so that HPL is slower for each of them.
    """
    grids = [process_grid(ranks) for ranks in (fewer, more)]
    return fewer / more if all(q <= _SQUARE * p for p, q in grids) else None


def _is_good_grid(p: int, q: int) -> bool:
    return p <= q <= FLATTEST_GOOD_GRID * p


# --- HPL's problem size -----------------------------------------------------------------------


def predict_hpl_seconds(n: int, gflops: float) -> float:
    """Return the time of one solve of order N at a rate in Gflop/s."""
    require_positive("the rate in Gflop/s", gflops)
    return hpl_flops(n) / (gflops * 1e9)


def times_remarks(samples: Iterable[Sample], gflops: float) -> list[str]:
    """Return for each order N how long its solves took, beside what a rate in Gflop/s predicts."""
    seconds: dict[int, list[float]] = {}
    for sample in samples:
        if sample.metric == "time_s":
            seconds.setdefault(int(sample.conditions["n"]), []).append(sample.value)
    return [
        f"HPL of N={n} took {_range_of(of)}, {predict_hpl_seconds(n, gflops):.1f} s were predicted"
        for n, of in seconds.items()
    ]


def _range_of(seconds: Sequence[float]) -> str:
    shortest, longest = min(seconds), max(seconds)
    several = f"{shortest:.1f} to {longest:.1f} s in {len(seconds)} solves"
    return several if len(seconds) > 1 else f"{longest:.1f} s"


def matrix_bytes(n: int) -> int:
    """Return the bytes of HPL's matrix of order N over all processes, without its workspace."""
    return BYTES_PER_ELEMENT * n * n


def rounding_unit(nb: int, p: int, q: int, rounding: str) -> int:
    """Return what N is to be a multiple of: NB (``nb``) or NB * lcm(P, Q) (``nb-lcm``).

    With ``nb-lcm`` every process holds exactly as much of the matrix as every other.
    """
    if rounding == "nb":
        return nb
    if rounding == "nb-lcm":
        return nb * math.lcm(p, q)
    facts = {"name": "the rounding of N", "wanted": "'nb' or 'nb-lcm'"}
    raise SizingError(INPUT_NOT_TAKEN(value=rounding, **facts))


def hpl_problem_size(memory_bytes: int, fraction: float, multiple_of: int) -> int:
    """Return the largest N, a multiple, whose matrix takes at most this fraction of the bytes.

    ``memory_bytes`` counts all nodes. Raises SizingError where not even one block fits.
    """
    _require_fraction("the fraction of memory", fraction)
    return _largest_order(memory_bytes, _exactly(fraction), multiple_of)


def hpl_problem_size_linear(memory_bytes: int, n_fraction: float, multiple_of: int) -> int:
    """Return the largest multiple within ``n_fraction`` of the N whose matrix fills all memory.

    The linear rule: 0.92 of N is 0.92^2 = 84.6 % of the bytes. Raises SizingError as
    hpl_problem_size does.
    """
    _require_fraction("the fraction of N", n_fraction)
    return _largest_order(memory_bytes, _exactly(n_fraction) ** 2, multiple_of)


TOO_SHORT = Words(
    "sizing.too-short",
    "{seconds:g} s at {gflops:g} Gflop/s are too short for N={n}, the smallest problem",
    remedy="allow more time",
)


def hpl_problem_size_for_time(
    seconds: float, gflops: float, multiple_of: int, at_most: int | None = None
) -> int:
    """Return the largest N, a multiple, that one solve at ``gflops`` ends within ``seconds``.

    ``at_most`` is what memory allows. Raises SizingError where not even one block ends in time.
    """
    require_positive("the time budget in seconds", seconds)
    require_positive("the rate in Gflop/s", gflops)
    require_positive("the number that N is a multiple of", multiple_of)
    # Without its quadratic term the operation count gives an N that is too large by less than 1.
    beyond = int((1.5 * seconds * gflops * 1e9) ** (1 / 3)) + multiple_of
    n = beyond // multiple_of * multiple_of
    while n > 0 and predict_hpl_seconds(n, gflops) > seconds:
        n -= multiple_of
    if n == 0:
        raise SizingError(TOO_SHORT(seconds=seconds, gflops=gflops, n=multiple_of))
    return n if at_most is None else min(n, at_most)


NO_RATE = Words("sizing.no-rate", "a time budget needs the rate to expect, in Gflop/s")


def choose_problem_size(
    memory_bytes: int,
    p: int,
    q: int,
    *,
    nb: int = DEFAULT_NB,
    memory_fraction: float = DEFAULT_MEMORY_FRACTION,
    n_fraction: float | None = None,
    rounding: str = "nb",
    seconds: float | None = None,
    gflops: float | None = None,
) -> int:
    """Return N for a P x Q grid of processes that have ``memory_bytes`` together.

    N is what memory allows by ``memory_fraction`` (of bytes) or, if given, by ``n_fraction`` (the
    linear rule); ``seconds`` is a budget for one solve at ``gflops`` that may lower it. Raises
    SizingError where no N gives every process work.
    """
    unit = rounding_unit(nb, p, q, rounding)
    if n_fraction is None:
        n = hpl_problem_size(memory_bytes, memory_fraction, unit)
    else:
        n = hpl_problem_size_linear(memory_bytes, n_fraction, unit)
    if seconds is not None:
        if gflops is None:
            raise SizingError(NO_RATE())
        n = hpl_problem_size_for_time(seconds, gflops, unit, at_most=n)
    require_work_for_every_process(n, nb, p, q)
    return n


SIZING_MEMORY = Words(
    "sizing.memory",
    "N={n} needs {needed} bytes for its matrix, and {available} are available",
    remedy="if the nodes have more, give --nodes and --memory-per-node",
)


def require_memory(n: int, memory_bytes: int) -> None:
    """Raise SizingError if the matrix of order N does not fit into the bytes."""
    needed = matrix_bytes(n)
    if needed > memory_bytes:
        raise SizingError(SIZING_MEMORY(n=n, needed=needed, available=memory_bytes))


IDLE_PROCESSES = Words(
    "sizing.idle-processes",
    "N={n} is too small for a {p} x {q} grid with NB={nb}",
    cause="below N={smallest} some processes have nothing to do",
    remedy="allow more memory or time, fewer processes or a smaller NB",
)


def require_work_for_every_process(n: int, nb: int, p: int, q: int) -> None:
    """Raise SizingError if some process of a P x Q grid would hold no block of the matrix."""
    smallest = nb * max(p, q)
    if n < smallest:
        raise SizingError(IDLE_PROCESSES(n=n, p=p, q=q, nb=nb, smallest=smallest))


LITTLE_MEMORY = Words(
    "sizing.little-memory",
    "{memory} bytes of memory are too few for N={n}, the smallest matrix, at {share:.3g} of them",
    remedy="allow more memory or a smaller NB",
)


def _largest_order(memory_bytes: int, share: Fraction, multiple_of: int) -> int:
    require_positive("the memory in bytes", memory_bytes)
    require_positive("the number that N is a multiple of", multiple_of)
    elements = share * memory_bytes / BYTES_PER_ELEMENT
    n = math.isqrt(int(elements / multiple_of**2)) * multiple_of
    if n == 0:
        facts = {"memory": memory_bytes, "n": multiple_of}
        raise SizingError(LITTLE_MEMORY(**facts, share=float(share)))
    return n


def _exactly(decimal: float) -> Fraction:
    """Return the decimal number that was typed, not the binary number nearest to it."""
    return Fraction(str(decimal))


def require_positive(name: str, value: float) -> None:
    """Raise SizingError that names what is not above 0."""
    if not (value > 0 and math.isfinite(value)):
        raise SizingError(INPUT_NOT_POSITIVE(name=name, value=value))


NO_SHARE = Words("input.no-share", "{name} must be above 0 and at most 1, not {value}")


def _require_fraction(what: str, value: float) -> None:
    if not 0 < value <= 1:
        raise SizingError(NO_SHARE(name=what, value=value))


# --- HPL.dat ----------------------------------------------------------------------------------


class _Line(NamedTuple):
    """How a field of HplInput stands in the file, and the integers that it may hold."""

    label: str
    count_label: str = ""
    smallest: int = 0
    largest: int = LARGEST_INT


_LINES = {
    "output_device": _Line("device out (6=stdout,7=stderr,file)"),
    "n_values": _Line("Ns", "# of problems sizes (N)", smallest=1),
    "nb_values": _Line("NBs", "# of NBs", smallest=1),
    "process_mapping": _Line("PMAP process mapping (0=Row-,1=Column-major)", largest=1),
    "p_values": _Line("Ps", "# of process grids (P x Q)", smallest=1),
    "q_values": _Line("Qs", smallest=1),
    "pfacts": _Line("PFACTs (0=left, 1=Crout, 2=Right)", "# of panel fact", largest=2),
    "nbmins": _Line("NBMINs (>= 1)", "# of recursive stopping criterium", smallest=1),
    "ndivs": _Line("NDIVs", "# of panels in recursion", smallest=2),
    "rfacts": _Line("RFACTs (0=left, 1=Crout, 2=Right)", "# of recursive panel fact.", largest=2),
    "bcasts": _Line("BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)", "# of broadcast", largest=5),
    "depths": _Line("DEPTHs (>=0)", "# of lookahead depth"),
    "swap": _Line("SWAP (0=bin-exch,1=long,2=mix)", largest=2),
    "swapping_threshold": _Line("swapping threshold"),
    "l1_transposed": _Line("L1 in (0=transposed,1=no-transposed) form", largest=1),
    "u_transposed": _Line("U  in (0=transposed,1=no-transposed) form", largest=1),
    "equilibration": _Line("Equilibration (0=no,1=yes)", largest=1),
    "alignment": _Line("memory alignment in double (> 0)", smallest=1),
}


INPUT_TOO_MANY = Words("input.too-many", "{program} takes {least} to {most} {name}, not {count}")
SIZING_UNPAIRED = Words("sizing.unpaired", "an input needs as many values of P as of Q")
SIZING_UNCHECKED = Words(
    "sizing.unchecked",
    "with the residual threshold {threshold} {program} checks no result",
    remedy="it must be positive",
)


@dataclass(frozen=True)
class HplInput:
    """All that an HPL.dat says, with HPL's own code numbers.

    HPL runs every combination of the tuples; ``p_values`` and ``q_values`` go in pairs. The
    defaults are those of the HPL guide. Raises SizingError for values that HPL refuses or, worse,
    silently replaces.
    """

    n_values: tuple[int, ...]
    p_values: tuple[int, ...]
    q_values: tuple[int, ...]
    nb_values: tuple[int, ...] = (DEFAULT_NB,)
    # Consecutive ranks, which share a node, then lie in one process row: "recommended" for nodes
    # with several processes.
    process_mapping: int = 0
    # "Will cover most cases". Never zero or less: HPL then fails every run, or checks none.
    threshold: float = 16.0
    # Crout with NBMIN 4 inside right-looking halves: the guide's starting point.
    pfacts: tuple[int, ...] = (1,)
    nbmins: tuple[int, ...] = (4,)
    ndivs: tuple[int, ...] = (2,)
    rfacts: tuple[int, ...] = (2,)
    # Increasing ring, modified: the next panel's owner gets its part first.
    bcasts: tuple[int, ...] = (1,)
    # Factorise the next panel before the update ends: "use 1, if you do not know better".
    depths: tuple[int, ...] = (1,)
    # Binary exchange for few columns, spread-roll above the threshold.
    swap: int = 2
    swapping_threshold: int = 64
    l1_transposed: bool = True
    # "No doubt" the better form of the two.
    u_transposed: bool = True
    equilibration: bool = True
    # 8 doubles: a cache line, and a register of the widest vector units.
    alignment: int = 8
    output_file: str = "HPL.out"
    output_device: int = 6

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in _LINES:
                self._require_legal(field.name, getattr(self, field.name))
        if len(self.p_values) != len(self.q_values):
            raise SizingError(SIZING_UNPAIRED())
        if not (self.threshold > 0 and math.isfinite(self.threshold)):
            raise SizingError(SIZING_UNCHECKED(threshold=self.threshold, program="HPL"))
        if len(self.output_file.split()) != 1:
            facts = {"name": "the output file", "wanted": "one word"}
            raise SizingError(INPUT_NOT_TAKEN(value=self.output_file, **facts))

    @staticmethod
    def _require_legal(name: str, value: int | tuple[int, ...]) -> None:
        values = value if isinstance(value, tuple) else (value,)
        if not 1 <= len(values) <= HPL_MAX_VALUES:
            facts = {"least": 1, "most": HPL_MAX_VALUES, "count": len(values)}
            name = f"values of {name}"
            raise SizingError(INPUT_TOO_MANY(program="HPL", name=name, **facts))
        for number in values:
            _require_within(name, number)

    @property
    def solves_per_n(self) -> int:
        """How many runs HPL makes of each problem size: all combinations of the other values."""
        lists = [len(getattr(self, name)) for name, line in _LINES.items() if line.count_label]
        return math.prod(lists) // len(self.n_values)


def limits_of(name: str) -> tuple[int, int]:
    """Return the smallest and the largest value that a field of HplInput may hold."""
    return _LINES[name].smallest, _LINES[name].largest


TOO_LARGE = Words("input.too-large", "{name} must be at most {most}, not {value}")


def _require_within(name: str, value: int) -> None:
    smallest, largest = limits_of(name)
    if value < smallest:
        raise SizingError(INPUT_TOO_SMALL(name=name, least=smallest, value=value))
    if value > largest:
        raise SizingError(TOO_LARGE(name=name, most=largest, value=value))


def predict_hpl_input_seconds(hpl_input: HplInput, gflops: float) -> float:
    """Return the time of all solves in the file at one rate in Gflop/s, without their set-up."""
    once = sum(predict_hpl_seconds(n, gflops) for n in hpl_input.n_values)
    return once * hpl_input.solves_per_n


def render_hpl_dat(hpl_input: HplInput) -> str:
    """Return the text of an HPL.dat for HPL 2.x; raises SizingError for a line HPL cannot read."""
    return joined(rendered_lines(hpl_input), HPL_MAX_CHARACTERS, "HPL")


# HPL_pdinfo.c repeats its input in these words, by its code numbers.
_SWAPS = ("Binary-exchange", "Spread-roll (long)", "Mix (threshold = {})")
_FORMS = ("no-transposed form", "transposed form")


def hpl_expectation(asked: HplInput) -> HplExpectation:
    """Return what HPL 2.x must repeat of this input above its results."""
    mapping = ("Row-major", "Column-major")[asked.process_mapping]
    echo = {
        "N": spaced(asked.n_values),
        "NB": spaced(asked.nb_values),
        "PMAP": f"{mapping} process mapping",
        "P": spaced(asked.p_values),
        "Q": spaced(asked.q_values),
        "PFACT": " ".join(tuple(FACTORISATIONS)[code] for code in asked.pfacts),
        "NBMIN": spaced(asked.nbmins),
        "NDIV": spaced(asked.ndivs),
        "RFACT": " ".join(tuple(FACTORISATIONS)[code] for code in asked.rfacts),
        "BCAST": " ".join(tuple(BROADCASTS)[code] for code in asked.bcasts),
        "DEPTH": spaced(asked.depths),
        "SWAP": _SWAPS[asked.swap].format(asked.swapping_threshold),
        "L1": _FORMS[asked.l1_transposed],
        "U": _FORMS[asked.u_transposed],
        "EQUIL": "yes" if asked.equilibration else "no",
        "ALIGN": f"{asked.alignment} double precision words",
        THRESHOLD: f"{asked.threshold:.1f}",
    }
    return HplExpectation({name: words.split() for name, words in echo.items()})


def rendered_lines(hpl_input: HplInput) -> Iterator[str]:
    """Yield the lines of an HPL.dat."""
    yield "HPLinpack benchmark input file"
    yield "written by clustergate"
    yield input_line(hpl_input.output_file, "output file name (if any)")
    for name, line in _LINES.items():
        value = getattr(hpl_input, name)
        if name.endswith("_transposed"):
            value = not value
        if line.count_label:
            yield input_line(len(value), line.count_label)
        yield input_line(spaced(value) if isinstance(value, tuple) else int(value), line.label)
        if name == "q_values":
            yield input_line(hpl_input.threshold, "threshold")


def file_fields() -> Iterator[tuple[str, bool]]:
    """Yield what each line of an HPL.dat from the third on holds, and whether that is a list.

    It is a field of HplInput, or the ``count`` of the values on the next line.
    """
    yield "output_file", False
    for name, line in _LINES.items():
        if line.count_label:
            yield "count", False
        yield name, bool(line.count_label) or name == "q_values"
        if name == "q_values":
            yield "threshold", False


def spaced(values: Sequence[int]) -> str:
    """Return values with exactly one blank between.

    HPL finds the next one by the length of the last one plus 1.
    """
    return " ".join(str(value) for value in values)


def input_line(value: object, label: str) -> str:
    """Return a line of an input; the label gives way where the values need the room."""
    line = f"{value!s:<12} {label}"
    return line if len(line) <= LABELLED_CHARACTERS else str(value)


INPUT_LINE_TOO_LONG = Words(
    "input.line-too-long",
    "line {number} of the input has {characters} characters, and {program} reads {most}",
    remedy="give fewer values",
)


def joined(lines: Iterator[str] | list[str], longest: int, program: str) -> str:
    """Return the text of an input; SizingError for a line that the program cannot read."""
    rendered = list(lines)
    for number, line in enumerate(rendered, 1):
        if len(line) > longest:
            facts = {"number": number, "characters": len(line), "most": longest}
            raise SizingError(INPUT_LINE_TOO_LONG(program=program, **facts))
    return "\n".join(rendered) + "\n"
