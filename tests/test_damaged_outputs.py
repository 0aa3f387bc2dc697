"""Damage to what any registered program printed: refused, or every row as it was printed.

``make attack`` makes more of these, with all that a launch tells of itself.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergate.benchmarks.formats import formats
from clustergate.core.model import OutputError, Row
from clustergate.machine.kernels.peaks import parse_peaks
from tests.test_outputs_hpcc import lines_of as lines_of_hpcc
from tests.test_outputs_hpcc import newer, older
from tests.test_outputs_hpl import VENDORS
from tools.attack.captures import Capture, captures, of_text
from tools.attack.mutations import ATTACKS, Attack
from tools.attack.tally import Tally, count

# Versions and builds whose outputs may not be given away: as their sources print them.
WRITTEN = {
    **{f"hpl/{name}": "".join(lines) for name, lines in VENDORS.items()},
    "hpcc/older": "".join(older(lines_of_hpcc("mpich"))),
    "hpcc/newer": "".join(newer(lines_of_hpcc("impi"))),
}
TEXTS = [*captures()[0], *(of_text(name, text) for name, text in WRITTEN.items())]
NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
CHARACTERS = "0123456789 .,-+eEnaifPFWRxX=\n\t\0\x0b\x85²é|:#"
# Of these only what was asked for tells that whole tables, or lines at their end, are lost.
TABLES_UNKNOWN = re.compile(r"-mt(-3)?\.txt|-msglen\.txt|^(peaks|osu)/")
CUT = re.compile(r"cut off|nothing was printed|is empty|first lines are missing|rows are lost")


def titled(name: str, text: str) -> bool:
    return any(map(formats()[name].title.match, text.splitlines()))


def captured(name: str) -> list[Capture]:
    """Return the outputs of a format, without those of another that holds its title."""
    outer = [other for other, of in formats().items() if name in of.holds]
    found = [one for one in TEXTS if titled(name, one.text)]
    return [one for one in found if not any(titled(other, one.text) for other in outer)]


CAPTURED = {
    **{name: captured(name) for name in formats()},
    "peaks": [one for one in TEXTS if one.family == "peaks"],
}
every_format = pytest.mark.parametrize("name", CAPTURED)
chances = st.randoms(use_true_random=False)


def read(name: str, lines: Iterable[str]) -> list[Row] | str:
    """Return rows, or why there are none, as where nobody knows what the run was asked for."""
    parse = formats()[name].parse if name in formats() else parse_peaks
    try:
        return list(parse(lines, source="out"))
    except OutputError as error:
        return str(error)


def changed(text: str, change: str, data: st.DataObject) -> list[str]:
    """Return the lines of a text after a change to them."""
    lines = lines_of(text)
    places = st.integers(0, len(lines) - 1)
    first, second = sorted((data.draw(places), data.draw(places)))
    if change == "lost":
        del lines[first : first + data.draw(st.sampled_from([1, 1, 20]))]
    elif change == "repeated":
        lines.insert(second, lines[first])
    elif change == "swapped":
        lines[first], lines[second] = lines[second], lines[first]
    else:
        place = data.draw(st.integers(0, len(lines[first]) - 1))
        other = data.draw(st.sampled_from(CHARACTERS))
        lines[first] = lines[first][:place] + other + lines[first][place + 1 :]
    return lines_of("".join(lines))


def lines_of(text: str) -> list[str]:
    """Return the lines that a file has, which are fewer than str.splitlines finds."""
    return list(io.StringIO(text, newline=None))


def figures(rows: Iterable[Row]) -> Counter[tuple[object, ...]]:
    """Return rows without their places, and without residuals, which may change theirs."""
    told = [(row, {**row.conditions, **row.values, "scaled_residual": 0.0}) for row in rows]
    return Counter((row.benchmark, row.status, *sorted(of.items())) for row, of in told)


def standing(row: Row, lines: Sequence[str]) -> set[str]:
    """Name the figures and conditions that stand in the line of a row."""
    line = lines[row.line - 1]
    numbers, words = set(map(float, NUMBER.findall(line))), set(line.split())
    told = [*row.values.items(), *row.conditions.items()]
    return {name for name, value in told if value in (words if isinstance(value, str) else numbers)}


def measured(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.status == "ok"]


@every_format
def test_every_format_has_captured_outputs(name: str) -> None:
    assert CAPTURED[name]
    for one in CAPTURED[name]:
        assert isinstance(read(name, lines_of(one.text)), list)


@every_format
@given(data=st.data(), chance=chances)
def test_no_attack_changes_a_row(name: str, data: st.DataObject, chance: Random) -> None:
    """Truncated, lost, repeated, mixed, torn, of another script, no number: as it is launched."""
    one = data.draw(st.sampled_from([x for x in CAPTURED[name] if x.name not in WRITTEN]))
    attack: Attack = data.draw(st.sampled_from(ATTACKS))
    text = attack.mutate(one.printed, chance, one)
    if text is not None:
        tally = Tally(attack.name)
        count(tally, attack.kind, one, text)
        assert (tally.wrong, tally.denied) == ([], [])


@every_format
@given(data=st.data(), change=st.sampled_from(["lost", "repeated", "swapped", "a character"]))
def test_row_of_a_damaged_text_stands_in_it(name: str, data: st.DataObject, change: str) -> None:
    one = data.draw(st.sampled_from(CAPTURED[name]))
    whole, lines = lines_of(one.text), changed(one.text, change, data)
    sound, rows = read(name, whole), read(name, lines)
    assert isinstance(sound, list)
    if isinstance(rows, str):
        return
    shown: dict[str, set[str]] = {}
    for row in measured(sound):
        there = standing(row, whole)
        shown[row.benchmark] = shown.get(row.benchmark, there) & there
    assert all(shown[row.benchmark] <= standing(row, lines) for row in measured(rows))
    if change in ("lost", "repeated") and not TABLES_UNKNOWN.search(one.name):
        assert figures(rows) == figures(sound)


@every_format
@given(data=st.data(), part=st.sampled_from([0.0, 0.0, 0.5, 0.99]))
def test_cut_text_is_refused(name: str, data: st.DataObject, part: float) -> None:
    one = data.draw(st.sampled_from(CAPTURED[name]))
    whole = lines_of(one.text)
    kept = data.draw(st.integers(0, len(whole) - 1))
    torn = whole[kept][: int(part * len(whole[kept]))]
    rows, sound = read(name, [*whole[:kept], *([torn] if torn else [])]), read(name, whole)
    if isinstance(rows, str):
        assert torn or CUT.search(rows)
    else:
        assert rows == (sound[: len(rows)] if TABLES_UNKNOWN.search(one.name) else sound)


@every_format
@given(data=st.data(), change=st.sampled_from(["swapped", "a character"]))
def test_ends_of_lines_change_nothing(name: str, data: st.DataObject, change: str) -> None:
    one = data.draw(st.sampled_from(CAPTURED[name]))
    lines = changed(one.text, change, data)
    without = [line.removesuffix("\n") for line in lines]
    whole, bare = read(name, lines), read(name, without)
    # Whether a line is whole decides which of two faults is named.
    assert whole == bare or (isinstance(whole, str) and isinstance(bare, str))


@every_format
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "cp037"])
def test_other_encoding_is_refused_or_read(name: str, encoding: str) -> None:
    for one in CAPTURED[name]:
        text = one.text.encode(encoding, "replace").decode("utf-8", "replace")
        told = read(name, lines_of(text))
        assert isinstance(told, str) or told == read(name, lines_of(one.text))
