"""Whether a text is what the ranks of a launch printed: by its word, its dates and its times.

The records of the ranks (:mod:`clustergate.launch.proof.ranks`) show that a program ran, not that
the text with the figures is its own: a wrapper may run it and print a stored file. So three things
are compared.

- The preloaded proof library writes a line of its own to rank 0's standard output: :data:`MARK` and
  the word of the launch. An output with another word, or none, is of another launch.
- Dates that a benchmark prints lie between MPI_Init and MPI_Finalize of rank 0, by the clock and in
  the time zone of that very process.
- What was measured one after the other took no longer in all than the ranks ran.

All of it holds however slow or busy a machine is. Pure functions.
"""

from __future__ import annotations

import functools
import re
import time
from calendar import timegm
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from clustergate.benchmarks.registry import every_benchmark
from clustergate.core.model import Row
from clustergate.core.reasons import Facts, Reason, Words
from clustergate.launch.proof.ranks import RankProof

MARK = "clustergate-launch"
"""What stands in front of the word of a launch, as proof.c prints it."""

# time() counts whole seconds, and may be a tick behind the clock of the record.
_SECOND_S = 2.0
# Of clocks that are not the record's: one that is calibrated badly is a matter of its own.
_CLOCKS_APART = 1.05
_CLOCKS_APART_S = 0.1

# Of one repetition. With and without work beside it, it is measured one after the other.
_TIMES_US = ("t_avg_us", "latency_us", "t_pure_us", "t_overlapped_us")
# Half a unit of the second decimal.
_ROUNDED = 0.005


@dataclass(frozen=True)
class Span:
    """When the ranks of a launch ran, from MPI_Init to MPI_Finalize.

    ``seconds`` is the longest time of a rank. ``began_s`` and ``ended_s`` are those of rank 0, in
    seconds since 1970 by its own clock, which was set by ``set_by_s`` meanwhile; ``utc_offsets_s``
    are the offsets of its time zone, none where it did not tell.
    """

    seconds: float
    began_s: float
    ended_s: float
    set_by_s: float = 0.0
    utc_offsets_s: frozenset[int] = frozenset()


def span_of(proofs: Sequence[RankProof]) -> Span | None:
    """Return when the ranks of a launch ran; None unless each of them came to its end."""
    moments = [
        (proof.at_init, proof.at_finalize)
        for proof in sorted(proofs, key=lambda proof: proof.rank)
        if proof.at_init is not None and proof.at_finalize is not None
    ]
    if not moments or len(moments) < len(proofs):
        return None
    begin, end = moments[0]
    lasted = end.monotonic_s - begin.monotonic_s
    set_by = abs(end.realtime_s - begin.realtime_s - lasted)
    offsets = {moment.utc_offset_s for moment in (begin, end)}
    return Span(
        seconds=max(last.monotonic_s - first.monotonic_s for first, last in moments),
        began_s=begin.realtime_s,
        ended_s=end.realtime_s,
        set_by_s=set_by,
        utc_offsets_s=frozenset(offset for offset in offsets if offset is not None),
    )


def complaints(
    proofs: Iterable[RankProof],
    word: str,
    rows: Sequence[Row],
    lines: Iterable[str],
    *,
    source: str = "output",
    is_stdout: bool = True,
) -> Iterator[Reason]:
    """Yield what speaks against a text being what the ranks of a launch printed.

    ``word`` is that of the launch, by which its records are known as well; ``rows`` are the figures
    in the text, in its order.
    """
    numbered = list(enumerate(lines, start=1))
    if is_stdout:
        yield from _wrong_word(numbered, word, source)
    span = span_of([proof for proof in proofs if proof.nonce == word])
    if span is not None:
        yield from _wrong_dates(numbered, span, source)
        stamped = {one.title for one in every_benchmark().values() if one.clocks.stamped}
        solves = [row for row in rows if row.suite in stamped]
        yield from _wrong_stamps(numbered, solves, span, source)
        yield from _wrong_times(measured_s(rows) + _stopwatch_s(numbered), span, source)


OUTPUT_WITHOUT_WORD = Words(
    "proof.output-without-word",
    "{source}: rank 0 wrote '{mark} {word}' to its standard output, and that is not here",
    cause="this is the output of another launch, or standard output went elsewhere",
    remedy="check whether the program is a wrapper that prints a stored file",
)
OUTPUT_OF_ANOTHER = Words(
    "proof.output-of-another",
    "{source}:{line}: launch {found} printed this, not {word}",
    cause="this is the output of another launch",
    remedy="check whether the program is a wrapper that prints a stored file",
)


def _wrong_word(lines: Sequence[tuple[int, str]], word: str, source: str) -> Iterator[Reason]:
    marked = [(number, line.partition(MARK)[2].strip()) for number, line in lines if MARK in line]
    if not marked:
        yield OUTPUT_WITHOUT_WORD(source=source, mark=MARK, word=word)
    for number, launch in marked:
        if launch != word:
            where: Facts = {"source": source, "line": number}
            yield OUTPUT_OF_ANOTHER(**where, found=launch, word=word)
            return


NO_DATE = Words(
    "proof.no-date",
    "{source}:{line}: {date!r} is no date",
    cause="the text is damaged",
)
WRONG_DATE = Words(
    "proof.wrong-date",
    "{source}:{line}: dated {date}, and the ranks ran from {began} to {ended}",
    cause="this is the output of another launch",
    remedy=(
        "check whether the program is a wrapper that prints a stored file, and for what changes "
        "the clock of the ranks"
    ),
)


def _wrong_dates(lines: Sequence[tuple[int, str]], span: Span, source: str) -> Iterator[Reason]:
    """Yield a sentence for the first date that is not within the launch."""
    slack_s = _SECOND_S + span.set_by_s
    for number, line in lines:
        moments: list[float] = []
        if fields := fields_of("dated", line):
            moments = [float(fields[0])]
        elif fields := fields_of("dated_here", line):
            if (local := _seconds(fields[0])) is None:
                yield NO_DATE(source=source, line=number, date=fields[0])
                return
            moments = [local - offset for offset in span.utc_offsets_s]
        if moments and not any(
            span.began_s - slack_s <= moment <= span.ended_s + slack_s for moment in moments
        ):
            offset = max(span.utc_offsets_s, default=0)
            stamp, began, ended = (
                time.asctime(time.gmtime(moment + offset))
                for moment in (moments[0], span.began_s, span.ended_s)
            )
            yield WRONG_DATE(source=source, line=number, date=stamp, began=began, ended=ended)
            return


def _seconds(ctime: str) -> float | None:
    """Return what ctime() printed as seconds since 1970, as if it were in UTC; None if no date."""
    try:
        return timegm(time.strptime(ctime, "%a %b %d %H:%M:%S %Y"))
    except ValueError:
        return None


SLOW_TIMER = Words(
    "proof.slow-timer",
    (
        "{source}:{line}: the program took {passed_s:.0f} s by the dates it prints, and "
        "{told_s:.2f} s by its timer"
    ),
    cause="the clock of the timer runs slow, or the text was changed",
    remedy="look at what is preloaded, and whether the program is a wrapper",
)


def _wrong_stamps(
    lines: Sequence[tuple[int, str]], solves: Sequence[Row], span: Span, source: str
) -> Iterator[Reason]:
    """Yield a sentence for the first solve of HPL 2.1 or later that its own stamps contradict.

    HPL_pdtest.c takes one before it starts its timer and one after it stopped it.
    """
    if len(span.utc_offsets_s) > 1:
        # Summer time began or ended: an hour between them is none.
        return
    stamps = [
        (number, fields[0], fields[1])
        for number, line in lines
        if (fields := fields_of("stamped", line))
    ]
    ends = [
        (number, ended - began)
        for (_, first, begin), (number, second, end) in pairwise(stamps)
        if (first, second) == ("start", "end")
        # What is no date has been told of.
        and (began := _seconds(begin)) is not None
        and (ended := _seconds(end)) is not None
    ]
    if len(ends) != len(solves):
        return
    for (number, passed), solve in zip(ends, solves, strict=True):
        timer_s = solve.values["time_s"]
        if passed > timer_s * _CLOCKS_APART + _SECOND_S + span.set_by_s:
            yield SLOW_TIMER(source=source, line=number, passed_s=passed, told_s=timer_s)
            return


TOO_LONG = Words(
    "proof.too-long",
    (
        "{source}: what was measured took {reported_s:.1f} s in all by its own account, and the "
        "ranks ran for {seconds:.1f} s from MPI_Init to MPI_Finalize"
    ),
    cause="this is the output of another launch",
    remedy=(
        "check whether the program is a wrapper that prints a stored file, and for a clock that "
        "runs fast"
    ),
)


def _wrong_times(reported_s: float, span: Span, source: str) -> Iterator[Reason]:
    if reported_s > span.seconds * _CLOCKS_APART + _CLOCKS_APART_S:
        yield TOO_LONG(source=source, reported_s=reported_s, seconds=span.seconds)


def measured_s(rows: Iterable[Row]) -> float:
    """Return how many seconds these rows took to measure, one after the other, at least.

    IMB's times are means over repetitions, and over processes where these differ; a half of a round
    trip counts as one. Its times and those of HPL are rounded to the second decimal.
    """
    return sum(map(_seconds_of, rows))


def _seconds_of(row: Row) -> float:
    values, repetitions = row.values, int(row.conditions.get("repetitions", 0))
    # Groups measure at the same time. A row may repeat the best of those before it.
    if row.conditions.get("group", 0) or row.benchmark in _repeated():
        return 0.0
    if repetitions:
        times_us = [values[name] for name in _TIMES_US if name in values]
        return repetitions * sum(max(each - _ROUNDED, 0.0) for each in times_us) * 1e-6
    if row.benchmark in values and row.benchmark.partition("_time")[1]:
        return values[row.benchmark]
    return max(values.get("time_s", 0.0) - _ROUNDED, 0.0)


def _stopwatch_s(lines: Sequence[tuple[int, str]]) -> float:
    """Return the seconds of those parts of a benchmark that its figures do not tell."""
    return sum(float(seconds) for _, line in lines for seconds in fields_of("lasted", line))


def fields_of(kind: str, line: str) -> tuple[str, ...]:
    """Return what a line tells that is of a kind of :class:`Clocks`, nothing of any other line."""
    match = _pattern(kind).fullmatch(line)
    return tuple(filter(None, match.groups())) if match else ()


@functools.cache
def _pattern(kind: str) -> re.Pattern[str]:
    """Return the pattern of a kind of line, in whatever benchmark's text it stands."""
    patterns = (str(getattr(one.clocks, kind)) for one in every_benchmark().values())
    return re.compile("|".join(filter(None, patterns)))


@functools.cache
def _repeated() -> frozenset[str]:
    return frozenset().union(*(one.clocks.repeated for one in every_benchmark().values()))
