"""Read the text of HPL 2.0 to 2.3 (and of 1.0, with its three residuals) into rows.

    ================================================================================
    T/V                N    NB     P     Q               Time                 Gflops
    --------------------------------------------------------------------------------
    WR11C2R4        1000    64     1     2               0.01             5.2409e+01
    HPL_pdgesv() start time Sat Nov 21 05:42:06 2026
    --------------------------------------------------------------------------------
    ||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   4.79465903e-03 ...... PASSED

The builds of vendors are read too: AMD Zen HPL declares a broadcast of its own, and since 2024 how
it stores A and swaps rows, which its variants repeat. HPL-NVIDIA declares what HPL.dat asks for and
says that it ignores most of it: what it prints as the variant of a result stands for what ran, and
N is rounded down to whole blocks. HPL-GPU has a broadcast by MPI and a column for the time of the
processors. A text that must be the run asked for is held to it all the same.

HPL says at the top which tests it will run (``N``, ``NB``, ``P``, ``Q`` …) and runs them in a
fixed order, so every result line is known beforehand but for its time, its Gflops and its
residual. The parser holds the text to that plan: each declared test must follow, in order, with
figures that agree with each other, a residual that PASSED, the closing counts and "End of Tests.".
Lines that are none of HPL's figures (progress, detailed timing, warnings of an MPI library) may
stand anywhere between them.

What cannot be noticed:

- a changed digit of time or Gflops that stays within the printed rounding of the other one (a time
  printed as 0.00 bounds the Gflops from below only);
- a changed residual that stays below the threshold, or two residuals that changed places;
- in a text of HPL-NVIDIA a changed variant, but for its mapping, and a changed declaration of what
  the variant holds;
- changes of what no row holds: SWAP, L1, U, EQUIL, ALIGN (an expectation tells), dates, rules,
  progress and timing lines, and anything lost after "End of Tests.";
- a complete text of another run: only an expectation tells it from the one that was asked for.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clustergate.benchmarks.text import OUTPUT_OTHER_RUN, NumberedText
from clustergate.core.model import OutputError, Row
from clustergate.core.outputs import (
    OUTPUT_CONTRADICTION,
    OUTPUT_DECIMAL_COMMA,
    OUTPUT_FAILURE,
    OUTPUT_LACKS,
    OUTPUT_MISPLACED,
    OUTPUT_SECOND_RUN,
    OUTPUT_STRAY,
    OUTPUT_TWICE,
    OUTPUT_UNKNOWN,
    OUTPUT_WRONG_RESULT,
)
from clustergate.core.reasons import Words

_BANNER = re.compile(r"HPLinpack (\d+)\.\d+\S*  --")
# The first line, or a complaint in its place.
TITLE = re.compile(rf"{_BANNER.pattern}|HPL ERROR")
_PARAMETERS_FOLLOW = "The following parameter values will be used:"
_TITLE = re.compile(
    r"HPLinpack \d|HPC Challenge Benchmark version|"
    r"Intel ?\(R\) MPI Benchmark(?:s| Suite) V?\d[\w. ]*,"
)
_NVIDIA_BANNER = re.compile(r"HPL-NVIDIA \d+\.\d+\S*  --")
_GPU_BANNER = re.compile(r"HPL-GPU \d+\.\d+\S*  --")
_PARAMETER = re.compile(
    r"(N|NB|PMAP|P|Q|PFACT|NBMIN|NDIV|RFACT|BCAST|DEPTH|SWAP|L1|U|A|EQUIL|ALIGN|MXSWP)\s*:\s*(.*)"
)
_INTEGER_LISTS = ("N", "NB", "P", "Q", "NBMIN", "NDIV", "DEPTH")
_MAY_BE_ZERO = ("N", "DEPTH")
FACTORISATIONS = {"Left": "L", "Crout": "C", "Right": "R"}
BROADCASTS = {
    "1ring": "0",
    "1ringM": "1",
    "2ring": "2",
    "2ringM": "3",
    "Blong": "4",
    "BlongM": "5",
    # Of HPL-GPU.
    "MPI": "6",
    # Of AMD Zen HPL: X in 2022, 7 since.
    "HybBcast": "[X7]",
}
_WORD_LISTS: Mapping[str, Mapping[str, str]] = {
    "PFACT": FACTORISATIONS,
    "RFACT": FACTORISATIONS,
    "BCAST": BROADCASTS,
}
_MAPPINGS = {"Row-major process mapping": "R", "Column-major process mapping": "C"}
_ORDERS = {"R": "row", "C": "column"}
# What AMD Zen HPL declares besides since 2024, and what of it stands in the results.
_ZEN_CODES = {
    "A": re.compile(r".*\(([RC])(?:ow|ol)Major\)"),
    "SWAP": re.compile(r"\((\d{3})\) .*"),
    "MXSWP": re.compile(r"\(\S/(\w)\) .*"),
}
_VALUES_PER_LINE = 8
THRESHOLD = "residual threshold"
_EPSILON = re.compile(
    r"- The relative machine precision \(eps\) is taken to be +(\d\.\d+e-\d{2,3})"
)
_THRESHOLD = re.compile(r"- Computational tests pass if scaled residuals are less than\s+(\S+)")
# The threshold is printed by %.1f.
THRESHOLD_HALF_UNIT = 0.05

# What C prints of a number that is neither negative nor infinite nor undefined, and a count that
# Python turns into an integer whatever the damage.
NUMBER = r"\d+(?:\.\d+)?(?:e[+-]\d{2,3})?"
INTEGER = r"\d{1,18}"
# AMD Zen HPL has a letter more on either side and a column for SWAP, HPL-NVIDIA may say no more
# than the mapping and the depth, and gives the rate per GPU, which is per process, in parentheses.
_VARIANT = r"W[RC](?:[RC]?\d+[0-7X][LCR]\d+[LCR]\d+\w?|\d+)"
_RATE = r"\d\.\d+e[+-]\d{2,3}"
_RESULT = re.compile(
    rf"(?P<variant>{_VARIANT})(?: (?P<swap>\d{{3}}))?"
    rf"\s+(?P<n>{INTEGER})\s+(?P<nb>{INTEGER})\s+(?P<p>{INTEGER})\s+(?P<q>{INTEGER})"
    r"\s+(?P<time>\d+\.\d+)(?: +(?P<cpu>\d+\.\d+))?"
    rf"\s+(?P<gflops>{_RATE})(?: \( *(?P<each>{_RATE})\))?"
)
_VARIANT_PARTS = re.compile(
    r"W[RC](?P<depth>\d+)"
    r"(?:(?P<bcast>[0-5])(?P<rfact>[LCR])(?P<ndiv>\d+)(?P<pfact>[LCR])(?P<nbmin>\d+))?"
)
_VARIANT_ANYWHERE = re.compile(r"W[RC]{1,2}\d+X?[LCR]\d+[LCR]\d|^W[RC]\d+\s+\d")
_HEAD = "T/V                N    NB     P     Q               Time                 Gflops"
_RESIDUAL = re.compile(r"\|\|Ax-b\|\|_oo ?/.*= *(\S+) \.{6} (PASSED|FAILED)")
_NUMBER_ONLY = re.compile(NUMBER)
_INTEGER_ONLY = re.compile(INTEGER)
_COUNTS = tuple(
    (words, re.compile(pattern.replace("#", rf" *({INTEGER})")))
    for words, pattern in (
        ("finished", "Finished# tests,? with the following results:"),
        ("that passed", "# tests completed and passed residual checks[,.]"),
        ("that failed", "# tests completed and failed residual checks[,.]"),
        ("skipped for illegal input values", r"# tests skipped because of illegal input values\."),
    )
)
_END = "End of Tests."
_DECIMAL_COMMA = re.compile(r"\d,\d")


@dataclass(frozen=True)
class HplExpectation:
    """The problem that a run was asked for, in the words in which HPL repeats its input.

    ``declared`` holds the words behind ``N``, ``PMAP``, ``BCAST`` and so on, and those of
    :data:`THRESHOLD` (:func:`clustergate.benchmarks.hpl.sizing.hpl_expectation` makes them of an
    HPL.dat); what is not named was not asked for.
    """

    declared: Mapping[str, Sequence[str]] = field(default_factory=dict)


class _Test(NamedTuple):
    """One test as the declared parameters foretell it, or as a result tells of it."""

    variant: str
    n: int
    nb: int
    p: int
    q: int
    swap: str = ""


@dataclass
class Parameters:
    """What HPL prints before its tests.

    ``declared`` holds the words of each parameter as they are printed, ``lines`` where it stands.
    ``overridden`` says that a result's variant and N need not be those declared (HPL-NVIDIA),
    ``cpu_times`` that a result has the time of the processors beside its own (HPL-GPU),
    ``zen`` holds the codes of what AMD Zen HPL alone declares.
    """

    declared: dict[str, list[str]] = field(default_factory=dict)
    residuals_per_test: int = 1
    mapping: str = ""
    integers: dict[str, list[int]] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    epsilon: float = math.nan
    threshold: float = math.nan
    overridden: bool = False
    cpu_times: bool = False
    zen: dict[str, str] = field(default_factory=dict)

    def grids(self) -> list[tuple[int, int]]:
        """Return the pairs of P and Q."""
        return list(zip(self.integers["P"], self.integers["Q"], strict=True))

    def count(self) -> int:
        """Return the number of tests, in which each P has its Q."""
        lists: Mapping[str, Sequence[object]] = {**self.integers, **self.words}
        return math.prod(len(values) for name, values in lists.items() if name != "Q")

    def tests(self) -> Iterator[tuple[_Test, dict[str, str | int]]]:
        """Yield the tests and their conditions in the order of the loops of HPL_pddriver.c."""
        integers, words = self.integers, self.words
        stored, swap, mxswp = (self.zen.get(name, "") for name in _ZEN_CODES)
        order = _ORDERS[self.mapping]
        for (p, q), n, nb, depth, bcast, rfact, pfact, nbmin, ndiv in itertools.product(
            self.grids(),
            integers["N"],
            integers["NB"],
            integers["DEPTH"],
            words["BCAST"],
            words["RFACT"],
            words["PFACT"],
            integers["NBMIN"],
            integers["NDIV"],
        ):
            variant = (
                f"W{self.mapping}{stored}{depth}{BROADCASTS[bcast]}"
                f"{FACTORISATIONS[rfact]}{ndiv}{FACTORISATIONS[pfact]}{nbmin}{mxswp}"
            )
            conditions: dict[str, str | int] = {
                "n": n,
                "nb": nb,
                "p": p,
                "q": q,
                "variant": variant,
                "order": order,
                "depth": depth,
                "bcast": bcast,
                "rfact": rfact,
                "ndiv": ndiv,
                "pfact": pfact,
                "nbmin": nbmin,
            }
            yield _Test(variant, n, nb, p, q, swap), conditions

    def foresee(self, test: _Test, result: _Test) -> bool:
        """Say whether a result is that of a test."""
        if self.overridden:
            return (
                _VARIANT_PARTS.fullmatch(result.variant) is not None
                and result.variant[:2] == test.variant[:2]
                and result.n in (test.n, test.n - test.n % max(test.nb, 1))
                and result[2:] == test[2:]
            )
        return result[1:] == test[1:] and (
            result.variant == test.variant or re.fullmatch(test.variant, result.variant) is not None
        )


def parse_hpl(
    lines: Iterable[str], *, source: str = "output", expect: HplExpectation | None = None
) -> Iterator[Row]:
    """Yield one row per result: ``time_s``, ``performance_gflops`` and ``scaled_residual``.

    The conditions are ``n``, ``nb``, ``p``, ``q``, the ``variant`` as HPL encodes it
    (``WR11C2R4``) and what it means: ``order``, ``depth``, ``bcast``, ``rfact``, ``ndiv``,
    ``pfact``, ``nbmin``. The residual is ||Ax-b|| / (eps (||A|| ||x|| + ||b||) N) with maximum
    norms: it says whether a result counts, not how fast it was. A row's ``line`` is the one with
    the time; the residual follows it.

    The lines are read once and not kept. Raises :class:`OutputError` as soon as the text is
    incomplete, inconsistent, failed or not the run expected: rows that came before do not count
    then.
    """
    yield from read_hpl(Text(lines, source), suite="HPL", expect=expect)


def read_hpl(text: Text, *, suite: str, expect: HplExpectation | None) -> Iterator[Row]:
    """Do what :func:`parse_hpl` does, for the text of HPL that HPCC embeds in its own.

    ``suite`` is whose rows these are.
    """
    parameters = read_parameters(text)
    compare_with_expectation(parameters, expect, text.source)
    # What was asked for is what must have run.
    parameters.overridden = parameters.overridden and not (expect and expect.declared)
    text.idle = text.idle | {_HEAD}
    for done, (test, conditions) in enumerate(parameters.tests()):
        match = _next_result(text, test, done, parameters)
        number = text.number
        conditions |= {"n": int(match["n"]), "variant": match["variant"]}
        n, time, gflops = int(conditions["n"]), match["time"], match["gflops"]
        seconds, rate = check_gflops(n, time, gflops, line=number, source=text.source)
        if parameters.overridden:
            conditions = _as_it_ran(conditions, match["variant"])
        values = {
            "time_s": seconds,
            "performance_gflops": rate,
            "scaled_residual": _read_residuals(text, number, parameters),
        }
        yield Row(suite, "HPL", conditions, values, line=number)
    read_counts(text, "HPL", parameters.count())
    for _line in text:
        text.refuse_figures()


def _as_it_ran(conditions: Mapping[str, str | int], variant: str) -> dict[str, str | int]:
    """Return the conditions with what the printed variant says, and without what it does not."""
    parts = _VARIANT_PARTS.fullmatch(variant)
    encoded = parts.groupdict() if parts else {}
    ran = {name: value for name, value in conditions.items() if name not in encoded}
    for name, code in encoded.items():
        if code is not None:
            words = _WORD_LISTS.get(name.upper(), {})
            ran[name] = {words[word]: word for word in words}.get(code) or int(code)
    return ran


def half_unit(token: str) -> float:
    """Return half a unit of the last digit that C's ``%f`` or ``%e`` printed in ``token``."""
    mantissa, _, exponent = token.partition("e")
    return _half_of_ten_to(int(exponent or 0) - len(mantissa.partition(".")[2]))


@functools.lru_cache(maxsize=64)
def _half_of_ten_to(exponent: int) -> float:
    return 0.5 * float(f"1e{exponent}")


def hpl_flops(n: int) -> float:
    """Return the floating-point operations that HPL counts for order ``n``: 2/3 n³ + 3/2 n².

    This is the formula of HPL_pdtest.c: 2/3 n³ - 1/2 n² for the factorisation, 2 n² for the solve.
    """
    return n * n * (2.0 / 3.0 * n + 1.5)


def check_gflops(n: int, time: str, gflops: str, *, line: int, source: str) -> tuple[float, float]:
    """Return time and Gflops as numbers if these follow from the order and that.

    Raises :class:`OutputError` if they do not.

    Both are rounded in print: the true values lie within half a unit of the last digit.
    """
    seconds, rate = float(time), float(gflops)
    seconds_slack, rate_slack = half_unit(time), half_unit(gflops)
    billions = hpl_flops(n) / 1e9
    # As products, so that a time printed as 0.00 needs no case of its own; 1e-9 is for the
    # rounding of this arithmetic.
    lowest = (rate - rate_slack) * (seconds - seconds_slack)
    highest = (rate + rate_slack) * (seconds + seconds_slack)
    if not (lowest * (1 - 1e-9) <= billions <= highest * (1 + 1e-9)):
        facts = {"one": f"{gflops} Gflops", "other": f"N = {n} in {time} s"}
        raise OutputError(OUTPUT_CONTRADICTION(**facts), line=line, source=source)
    return seconds, rate


class Text(NumberedText):
    """A text of HPL or HPCC."""

    program = "HPL"
    # Most lines between results, which are none of HPL's figures.
    idle = frozenset(("", "=" * 80, "-" * 80))

    def refuse_figures(self) -> None:
        """Raise if the line is one of HPL's figures, a complaint of HPL's or the title of another
        output, which no line that may be skipped is.
        """
        line = self.line
        if "HPL ERROR" in line:
            raise self._complaint()
        # Of HPL, HPCC or IMB; not the first line of HPL.dat and hpccinf.txt, which jobs print too.
        if _TITLE.search(line):
            raise self.error(OUTPUT_SECOND_RUN())
        if _VARIANT_ANYWHERE.search(line):
            raise self._unexpected_result()
        if "......" in line and ("PASSED" in line or "FAILED" in line):
            raise self.error(OUTPUT_MISPLACED(what="a residual", due="the result it belongs to"))
        if "tests " in line and ("Finished" in line or "completed" in line or "skipped" in line):
            raise self.error(OUTPUT_STRAY(what="a count of tests"))

    def _unexpected_result(self) -> OutputError:
        if _DECIMAL_COMMA.search(self.line):
            return self.error(OUTPUT_DECIMAL_COMMA())
        if _RESULT.fullmatch(self.line):
            return self.error(OUTPUT_STRAY(what="a result that no declared parameter foresees"))
        return self.damaged("a result")

    def _complaint(self) -> OutputError:
        """Return the error of which the next line tells."""
        number = self.number
        self.next()
        said = self.line.strip().removeprefix(">>> ").removesuffix(" <<<")
        facts = {"program": "HPL", "words": said}
        return OutputError(OUTPUT_FAILURE(**facts), line=number, source=self.source)


OUTPUT_NOT_CHECKED = Words(
    "output.not-checked",
    "the results were not checked, so none counts",
    cause="the input has a threshold of 0 or less, or lines are lost",
    remedy="set a positive one",
)


def read_parameters(text: Text) -> Parameters:
    """Read what HPL prints before its tests, to the threshold of the residuals."""
    parameters = Parameters()
    _read_banner(text, parameters)
    previous = ""
    for line in text:
        if match := _PARAMETER.fullmatch(line):
            name, values = match.groups()
            if name in parameters.lines:
                raise text.error(OUTPUT_TWICE(what=f"the parameter {name}"))
            parameters.lines[name] = text.number
            parameters.declared[name] = values.split()
            _declare(text, parameters, name, values)
            previous = name
        elif match := _EPSILON.fullmatch(line):
            parameters.epsilon = float(match.group(1))
        elif match := _THRESHOLD.fullmatch(line):
            if not _NUMBER_ONLY.fullmatch(match.group(1)):
                raise text.damaged("a threshold")
            parameters.threshold = float(match.group(1))
            parameters.declared[THRESHOLD] = [match.group(1)]
            parameters.lines[THRESHOLD] = text.number
            _check_complete(text, parameters)
            return parameters
        elif line.startswith("T/V") and ":" not in line:
            raise text.error(OUTPUT_NOT_CHECKED())
        elif not (line.startswith(" ") and _continue_list(parameters, previous, line)):
            text.refuse_figures()
    raise text.cut_off("all parameters of the tests are declared")


def _read_banner(text: Text, parameters: Parameters) -> None:
    banner_seen = False
    for line in text:
        if not banner_seen and _NVIDIA_BANNER.match(line):
            parameters.overridden = True
        elif not banner_seen and _GPU_BANNER.match(line):
            parameters.cpu_times = True
        elif not banner_seen and (match := _BANNER.match(line)):
            banner_seen = True
            # Up to 1.0a every test prints three residuals, each with its own scale.
            parameters.residuals_per_test = 3 if match.group(1) == "1" else 1
        elif banner_seen and line == _PARAMETERS_FOLLOW:
            return
        else:
            text.refuse_figures()
    if banner_seen or text.number == 0:
        raise text.cut_off(f'the line "{_PARAMETERS_FOLLOW}"')
    raise OutputError(OUTPUT_UNKNOWN(titles="HPL"), source=text.source)


def _declare(text: Text, parameters: Parameters, name: str, values: str) -> None:
    if name == "PMAP":
        if values not in _MAPPINGS:
            raise text.damaged("a value of PMAP")
        parameters.mapping = _MAPPINGS[values]
    elif (name in _INTEGER_LISTS or name in _WORD_LISTS) and not _extend_list(
        parameters, name, values.split()
    ):
        raise text.damaged(f"values of {name}")


def _extend_list(parameters: Parameters, name: str, tokens: Sequence[str]) -> bool:
    if name in _INTEGER_LISTS:
        known = all(
            _INTEGER_ONLY.fullmatch(token) and (int(token) > 0 or name in _MAY_BE_ZERO)
            for token in tokens
        )
        if known:
            parameters.integers.setdefault(name, []).extend(int(token) for token in tokens)
    else:
        known = all(token in _WORD_LISTS[name] for token in tokens)
        if known:
            parameters.words.setdefault(name, []).extend(tokens)
    return known and bool(tokens)


def _continue_list(parameters: Parameters, name: str, line: str) -> bool:
    """Take a line of further values: after eight of them HPL goes on below."""
    values = parameters.integers.get(name) or parameters.words.get(name) or ()
    continued = (
        bool(values)
        and len(values) % _VALUES_PER_LINE == 0
        and _extend_list(parameters, name, line.split())
    )
    if continued:
        parameters.declared[name] += line.split()
    return continued


def _check_complete(text: Text, parameters: Parameters) -> None:
    for name in ("N", "NB", "PMAP", "P", "Q", "PFACT", "NBMIN", "NDIV", "RFACT", "BCAST", "DEPTH"):
        if name not in parameters.lines:
            raise text.error(OUTPUT_LACKS(missing=f"the parameter {name}"))
    if "MXSWP" in parameters.lines:
        for name, pattern in _ZEN_CODES.items():
            match = pattern.fullmatch(" ".join(parameters.declared.get(name, ())))
            if match is None:
                raise text.error(OUTPUT_LACKS(missing=f"{name} as AMD Zen HPL prints it"))
            parameters.zen[name] = match.group(1)
    if len(parameters.integers["P"]) != len(parameters.integers["Q"]):
        facts = {"one": "the values of P", "other": "those of Q"}
        line = parameters.lines["Q"]
        raise OutputError(OUTPUT_CONTRADICTION(**facts), line=line, source=text.source)


def compare_with_expectation(
    parameters: Parameters, expect: HplExpectation | None, source: str
) -> None:
    """Raise :class:`OutputError` unless HPL declares the problem that was asked for."""
    asked = expect.declared if expect else {}
    other = [name for name, words in asked.items() if list(words) != parameters.declared.get(name)]
    if other:
        ran = {name: parameters.declared.get(name, ["unknown"]) for name in other}
        facts = {
            "actual": ", ".join(f"{name} = {' '.join(words)}" for name, words in ran.items()),
            "wanted": ", ".join(f"{name} = {' '.join(asked[name])}" for name in other),
        }
        line = parameters.lines.get(other[0])
        raise OutputError(OUTPUT_OTHER_RUN(what="problem", **facts), line=line, source=source)


def _next_result(text: Text, test: _Test, done: int, parameters: Parameters) -> re.Match[str]:
    for line in text:
        if line.startswith("W") and (match := _RESULT.fullmatch(line)):
            n, nb, p, q = map(int, match.group("n", "nb", "p", "q"))
            result = _Test(match["variant"], n, nb, p, q, match["swap"] or "")
            if not parameters.foresee(test, result):
                facts = {"what": f"a result of {_named(result)}", "due": _named(test)}
                raise text.error(OUTPUT_MISPLACED(**facts))
            _check_columns(text, match, parameters)
            return match
        if line.startswith("Finished ") or line.lower() == _END.lower():
            facts = {"what": f"the end of the tests after {done} of {parameters.count()} results"}
            raise text.error(OUTPUT_MISPLACED(due=_named(test), **facts))
        text.refuse_figures()
    raise text.cut_off(f"result {done + 1} of {parameters.count()} ({_named(test)})")


def _check_columns(text: Text, match: re.Match[str], parameters: Parameters) -> None:
    """Raise unless a result has the columns of its build, and the rates of processes add up."""
    each, gflops = match["each"], match["gflops"]
    if (match["cpu"] is not None) != parameters.cpu_times or (each and not parameters.overridden):
        raise text.damaged("a result")
    if each is None:
        return
    processes = int(match["p"]) * int(match["q"])
    slack = half_unit(each) * processes + half_unit(gflops)
    if abs(float(each) * processes - float(gflops)) > slack * (1 + 1e-9):
        one = f"{each} Gflops of each of {processes} processes"
        raise text.error(OUTPUT_CONTRADICTION(one=one, other=f"{gflops} Gflops in all"))


def _named(test: _Test) -> str:
    return f"{test.variant} N={test.n} NB={test.nb} P={test.p} Q={test.q}"


def _read_residuals(text: Text, result_line: int, parameters: Parameters) -> float:
    """Return the scaled residual, of HPL 1.0's three the largest."""
    residuals: list[float] = []
    for line in text:
        if match := _RESIDUAL.fullmatch(line):
            residuals.append(_checked_residual(text, match, parameters.threshold))
            if len(residuals) == parameters.residuals_per_test:
                return max(residuals)
        elif line.startswith("W") and _RESULT.fullmatch(line):
            facts = {"what": "a result", "due": f"the residual of that in line {result_line}"}
            raise text.error(OUTPUT_MISPLACED(**facts))
        else:
            text.refuse_figures()
    raise text.cut_off(f"the residual of the result of line {result_line}")


def _checked_residual(text: Text, match: re.Match[str], threshold: float) -> float:
    value, verdict = match.groups()
    if verdict == "FAILED":
        facts = {"value": f"{value} ({verdict})", "wanted": f"below {threshold}"}
        raise text.error(OUTPUT_WRONG_RESULT(what="the residual", **facts))
    if not _NUMBER_ONLY.fullmatch(value):
        raise text.damaged("a residual")
    if float(value) > threshold + THRESHOLD_HALF_UNIT:
        facts = {"one": f"a residual of {value} that PASSED", "other": f"the threshold {threshold}"}
        raise text.error(OUTPUT_CONTRADICTION(**facts))
    return float(value)


def read_counts(text: Text, program: str, tests: int) -> None:
    """Read from "Finished …" to "End of Tests." and hold the counts to the tests that ran."""
    for (words, counted), wanted in zip(_COUNTS, (tests, tests, 0, 0), strict=True):
        for line in text:
            if match := counted.fullmatch(line):
                break
            text.refuse_figures()
        else:
            raise text.cut_off(f"the count of tests {words}")
        if int(match.group(1)) != wanted:
            one = f"{program}'s count of {match.group(1)} tests {words}"
            raise text.error(OUTPUT_CONTRADICTION(one=one, other=f"the {wanted} before it"))
    for line in text:
        if line.lower() == _END.lower():
            return
        text.refuse_figures()
    raise text.cut_off(f'"{_END}"')
