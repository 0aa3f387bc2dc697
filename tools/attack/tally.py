"""Attack, and count what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from clustergate.core.model import Row
from clustergate.machine.kernels.peaks import SUITE
from tools.attack.captures import Capture, Refused, is_contradicted
from tools.attack.mutations import Attack, Kind, variants


@dataclass
class Tally:
    """What came of an attack.

    ``refused`` as it should be; ``harmless``: accepted with every figure as before; ``survived``:
    accepted with another figure that nothing contradicts. ``wrong`` are sentences about what was
    wrongly accepted, ``denied`` about what was wrongly refused.
    """

    name: str
    tried: int = 0
    refused: int = 0
    harmless: int = 0
    survived: int = 0
    wrong: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)


def attacked(attack: Attack, tries: int, seed: int = 0) -> Tally:
    """Let an attack loose on every capture that it can change."""
    tally = Tally(attack.name)
    for capture, text in variants(attack, tries, seed):
        tally.tried += 1
        count(tally, attack.kind, capture, text)
    return tally


def count(tally: Tally, kind: Kind, capture: Capture, text: str) -> None:
    """Add to a tally what the suite makes of a text."""
    honest = kind is Kind.HONEST
    try:
        rows = capture.accepted(text)
    except Refused as refused:
        if honest:
            tally.denied.append(f"{capture.name}: {refused}")
        else:
            tally.refused += 1
        return
    except Exception as error:  # an error of the suite's own is neither
        tally.wrong.append(f"{capture.name}: {type(error).__name__}: {error}")
        return
    changes = list(_changes(capture.honest, rows))
    if kind is Kind.FAULT:
        tally.wrong.append(f"{capture.name}: accepted{': ' if changes else ''}{'; '.join(changes)}")
    elif not changes:
        tally.harmless += 1
    elif kind is Kind.FORGERY and not (told := provably_wrong(capture.honest, rows)):
        tally.survived += 1
    else:
        said = told if kind is Kind.FORGERY else changes[0]
        tally.wrong.append(f"{capture.name}: {said}")


def _key(row: Row) -> tuple[Any, ...]:
    return row.benchmark, row.status, tuple(sorted(row.conditions.items()))


def _figures(row: Row) -> tuple[tuple[str, float], ...]:
    """Return what is judged: a residual is only held to its threshold."""
    return tuple((name, v) for name, v in row.values.items() if name != "scaled_residual")


def _changes(before: Sequence[Row], after: Sequence[Row]) -> Iterator[str]:
    """Yield what is otherwise; lines that say of what they are may change places."""
    old, new = (Counter((_key(row), _figures(row)) for row in rows) for rows in (before, after))
    for gone, come in zip_longest(old - new, new - old):
        yield f"{come} instead of {gone}"


def provably_wrong(before: Sequence[Row], after: Sequence[Row]) -> str:
    """Say why figures cannot be what was measured: other rows than asked, or a contradiction."""
    old, new = (Counter(map(_asked, rows)) for rows in (before, after))
    if old != new:
        return f"{list(new - old)} instead of {list(old - new)}"
    return next(filter(None, map(is_contradicted, after)), "")


# Counted by the program while it ran; nothing was asked of them.
_COUNTED = {"repetitions", "seconds", "iterations", "size", "npb_version", "window_size", "trials"}


def _asked(row: Row) -> tuple[Any, ...]:
    name, _, conditions = _key(row)
    # Which word stands where a benchmark gave up changes no figure, and none of them is a pass.
    status = bool(row.values)
    # The suite's own peaks are limits, and no answer to a question.
    asked = row.suite != SUITE
    return name, status, tuple(pair for pair in conditions if asked and pair[0] not in _COUNTED)


HEAD = ("attack", "tried", "refused", "harmless", "survived", "wrongly accepted", "wrongly refused")


def table(tallies: Iterable[Tally]) -> str:
    """Return the tallies as a table."""
    lines: list[tuple[str, ...]] = [HEAD]
    for t in tallies:
        numbers = (t.tried, t.refused, t.harmless, t.survived, len(t.wrong), len(t.denied))
        lines.append((t.name, *map(str, numbers)))
    wide = max(len(name) for name, *_ in lines)
    columns = list(zip(HEAD, map(len, HEAD), strict=True))[1:]
    return "\n".join(
        name.ljust(wide) + "".join(f"  {x:>{w}}" for x, (_, w) in zip(rest, columns, strict=True))
        for name, *rest in lines
    )
