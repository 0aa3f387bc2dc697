"""Read what token_ring prints: a title, the token, the time of a round, and an end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clustergate.core.model import OutputError, Row

TITLE = re.compile(r"# token_ring: ([1-9]\d*) processes, ([1-9]\d*) rounds")
_FORMS = (r"token (\d+)", r"round_us (\d+\.\d{4})", r"# (end)")


@dataclass(frozen=True)
class RingExpectation:
    """What a run was asked for."""

    processes: int
    rounds: int


def parse_token_ring(
    lines: Iterable[str], *, source: str = "output", expect: RingExpectation | None = None
) -> Iterator[Row]:
    """Yield the one row; raises OutputError for a text that is cut off, damaged or of another run.

    What launchers and MPI libraries print before the title and behind the end is not looked at.
    """
    numbered = enumerate(lines, 1)
    title = next((found for _, line in numbered if (found := TITLE.match(line))), None)
    if title is None:
        raise OutputError("this is no output of token_ring: no title", source=source)
    processes, rounds = int(title[1]), int(title[2])
    if expect and (expect.processes, expect.rounds) != (processes, rounds):
        raise OutputError(
            f"{processes} processes passed {rounds} rounds where {expect.processes} and "
            f"{expect.rounds} were asked for",
            source=source,
        )
    values = []
    number = 0
    for form in _FORMS:
        number, line = next(numbered, (0, ""))
        if not number:
            raise OutputError("the output is cut off", source=source)
        if not (found := re.fullmatch(form, line.strip())):
            told = f"{line.strip()!r} is not of the form {form}"
            raise OutputError(told, line=number, source=source)
        values.append(found[1])
    if int(values[0]) != processes * rounds:
        raise OutputError(f"the token skipped ranks: {values[0]}", line=number - 2, source=source)
    if any(TITLE.match(line) for _, line in numbered):
        raise OutputError("another output begins below the end of the first", source=source)
    yield Row(
        "token_ring",
        "TokenRing",
        {"processes": processes, "bytes": 8},
        {"round_us": float(values[1])},
        line=number - 1,
    )
