"""What can happen to a text on its way, and what somebody can make of it. Pure functions.

A mutator takes the text, a source of chance and the capture, and returns another text, or None
where it has nothing to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

from clustergate.launch.proof import provenance
from tools.attack.captures import WORD, Capture, captures

Mutator = Callable[[str, Random, Capture], str | None]


class Kind(Enum):
    """When it is wrong to accept the text, or to refuse it."""

    FAULT = "must be refused"
    DAMAGE = "refused, or every figure as before"
    FORGERY = "refused, unless nothing contradicts the figure"
    HONEST = "must be accepted, every figure as before"


@dataclass(frozen=True)
class Attack:
    """A mutator, and what is wrong of the answer to it."""

    name: str
    kind: Kind
    mutate: Mutator


# On lists of lines; tests of the parsers use them too.


def remove(lines: list[str], first: int, second: int) -> None:
    """Lose a line."""
    del lines[first]


def remove_block(lines: list[str], first: int, second: int) -> None:
    """Lose the lines between two."""
    del lines[min(first, second) : max(first, second)]


def repeat(lines: list[str], first: int, second: int) -> None:
    """Print a line a second time, elsewhere."""
    lines.insert(second, lines[first])


def swap(lines: list[str], first: int, second: int) -> None:
    """Let two lines change places."""
    lines[first], lines[second] = lines[second], lines[first]


def repeat_block(lines: list[str], first: int, second: int) -> None:
    """Print the lines between two a second time, below."""
    lines[max(first, second) : max(first, second)] = lines[min(first, second) : max(first, second)]


def _on_lines(change: Callable[[list[str], int, int], None], near: int = 0) -> Mutator:
    def mutate(text: str, chance: Random, capture: Capture) -> str | None:
        lines = text.splitlines(keepends=True)
        first = chance.randrange(len(lines))
        second = chance.randrange(len(lines))
        if near:
            second = min(len(lines) - 1, first + chance.randint(1, near))
        if lines[first] == lines[second] and change is swap:
            return None
        change(lines, first, second)
        return "".join(lines)

    return mutate


def _cut(text: str, chance: Random, capture: Capture) -> str:
    return text[: chance.randrange(len(text))]


def _cut_and_killed(text: str, chance: Random, capture: Capture) -> str:
    return (
        f"{_cut(text, chance, capture)}\n"
        "===================================================================================\n"
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
        "=   EXIT CODE: 9\n"
    )


def _zeros_at_the_end(text: str, chance: Random, capture: Capture) -> str:
    cut = _cut(text, chance, capture)
    return cut + "\0" * (len(text) - len(cut))


def _torn(text: str, chance: Random, capture: Capture) -> str:
    """Let two neighbouring lines run into each other, as of ranks that write at once."""
    lines = text.splitlines(keepends=True)
    k = chance.randrange(len(lines) - 1)
    at = chance.randint(0, len(lines[k]))
    lines[k : k + 2] = [lines[k][:at], lines[k + 1], lines[k][at:]]
    return "".join(lines)


def _damaged_character(text: str, chance: Random, capture: Capture) -> str | None:
    where = chance.randrange(len(text))
    character = chance.choice("0123456789 .,-+eEnaifPFWRxX=\n\t\0\x0b\x85²é|:#")
    if text[where] in "0123456789" and character in "0123456789":
        return None
    return text[:where] + character + text[where + 1 :]


def _twice_line_by_line(text: str, chance: Random, capture: Capture) -> str | None:
    """Let two processes that know nothing of each other print the same."""
    if capture.family == "peaks":
        # Of several programs, one below the other: see below.
        return None
    size = chance.choice((1, 1, 2, 5, 20))
    lines = text.splitlines(keepends=True)
    blocks = [lines[k : k + size] for k in range(0, len(lines), size)]
    return "".join(line for block in blocks for line in [*block, *block])


def _twice(text: str, chance: Random, capture: Capture) -> str | None:
    # Peaks are measured before and after the launches, into one file.
    return None if capture.family == "peaks" else capture.text + text


def _other(chance: Random, capture: Capture, same_family: bool) -> Capture | None:
    """Return an output of another run, of which something else was asked."""
    found = [
        other
        for other in captures()[0]
        if other.asked != capture.asked and (other.family == capture.family) == same_family
    ]
    return chance.choice(found) if found else None


def _swapped(same_family: bool) -> Mutator:
    def mutate(text: str, chance: Random, capture: Capture) -> str | None:
        other = _other(chance, capture, same_family)
        # Its figures, with the word of this launch: a program that ran another input.
        return text.replace(capture.text, other.text) if other else None

    return mutate


def _below_another(text: str, chance: Random, capture: Capture) -> str | None:
    other = _other(chance, capture, same_family=True)
    return other.text + text if other else None


def _above_another(text: str, chance: Random, capture: Capture) -> str | None:
    other = _other(chance, capture, same_family=True)
    return text + other.text if other else None


def _refused_before(text: str, chance: Random, capture: Capture) -> str | None:
    """Put an output that is no result in the place of this one."""
    found = [text for name, text in captures()[1] if name.startswith(capture.family)]
    return text.replace(capture.text, chance.choice(found)) if found else None


_DIGIT = re.compile(r"\d")


def _digits(text: str, chance: Random, spans: Sequence[tuple[int, int]]) -> str | None:
    """Change a digit within one of these stretches."""
    places = [m.start() for a, b in spans for m in _DIGIT.finditer(text, a, b)]
    if not places:
        return None
    where = chance.choice(places)
    other = chance.choice([d for d in "0123456789" if d != text[where]])
    return text[:where] + other + text[where + 1 :]


def _lines_matching(text: str, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        if match := pattern.match(line):
            found.append((at + match.start(), at + len(line)))
        at += len(line)
    return found


# Numbers in an echoing line that are results, or are not echoed: behind the size of the problem.
_RESULTS_IN_ECHO = re.compile(
    r"(?<=\s)\d+\.\d+\s+\d\.\d+e[+-]\d+\s*$|(?<=Loop time of )\S+|(?<=_)\d+(?==)"
    r"|# IMB-\S+|\(\d+ x [\dx ]+\)"
)


def _echoed_digit(text: str, chance: Random, capture: Capture) -> str | None:
    spans: list[tuple[int, int]] = []
    for begin, end in _lines_matching(text, capture.echo):
        at = begin
        for match in _RESULTS_IN_ECHO.finditer(text, begin, end):
            spans.append((at, match.start()))
            at = match.end()
        spans.append((at, end))
    return _digits(text, chance, spans)


def _spans_of_rows(text: str, capture: Capture) -> list[tuple[int, int]]:
    """Return where the lines of the rows stand in the printed text, the last residual included."""
    offset = text.index(capture.text)
    starts, at = [], offset
    for line in capture.text.splitlines(keepends=True):
        starts.append((at, at + len(line)))
        at += len(line)
    return [starts[row.line - 1] for row in capture.honest if row.status == "ok"]


def _result_digit(text: str, chance: Random, capture: Capture) -> str | None:
    return _digits(text, chance, _spans_of_rows(text, capture))


# What mpi_trials sent first is none of its figures.
_FLOAT = re.compile(r"(?<![\w.])(?<!\"first_sent\":)\d+\.\d*(?:[eE][+-]\d+)?")


def _figure(change: Callable[[str, Random], str]) -> Mutator:
    """Change a whole figure of a row."""

    def mutate(text: str, chance: Random, capture: Capture) -> str | None:
        spans = _spans_of_rows(text, capture)
        begin, end = chance.choice(spans)
        found = list(_FLOAT.finditer(text, begin, end))
        if not found:
            return None
        match = chance.choice(found)
        new = change(match.group(), chance)
        # In a table the columns stay where they are.
        width = len(match.group())
        begin, end = match.span()
        room = len(text[:begin]) - len(text[:begin].rstrip(" "))
        grown = min(max(len(new) - width, 0), max(room - 1, 0))
        changed = text[: begin - grown] + new.rjust(width) + text[end:]
        return None if changed == text else changed

    return mutate


def _exponent(number: str, chance: Random) -> str:
    by = chance.choice((-30, -3, -1, 1, 2, 3, 30))
    if "e" in number.lower():
        mantissa, exponent = re.split("[eE]", number)
        return f"{mantissa}e{int(exponent) + by:+03d}"
    moved = float(number) * 10.0**by
    return f"{moved:.{len(number.partition('.')[2])}f}"


def _comma(text: str, chance: Random, capture: Capture) -> str | None:
    """Print with a decimal comma, one figure or all of them."""
    if chance.random() < 0.5:
        return re.sub(r"(?<=\d)\.(?=\d)", ",", text)
    return _figure(lambda number, _: number.replace(".", ","))(text, chance, capture)


def _other_digits(text: str, chance: Random, capture: Capture) -> str:
    """Print the digits of another script, which Python takes for digits too."""
    zero = chance.choice((0x660, 0x966, 0xFF10))
    return text.translate({ord("0") + k: zero + k for k in range(10)})


# Per family: the benchmark's own checks that failed.
_FAILURES: dict[str, tuple[tuple[str, str], ...]] = {
    "hpl": (
        (r"PASSED$", "FAILED"),
        (r"= +\d\.\d+e-\d\d \.\.\.\.\.\. PASSED", "=   1.7e+01 ...... PASSED"),
        (r"= +\S+ (?=\.{6})", "=           nan "),
        (r"^( +)0( tests completed and failed)", r"\g<1>1\2"),
        (r"^( +)0( tests skipped)", r"\g<1>1\2"),
    ),
    "hpcc": (
        (r"PASSED$", "FAILED"),
        (r"^Success=1", "Success=0"),
        (r"\(passed\)", "(failed)"),
        (r"^PTRANS_residual=\S+", "PTRANS_residual=17"),
        (r"^Node\(s\) with error 0", "Node(s) with error 1"),
        (r"^MPIFFT_maxErr=\S+", "MPIFFT_maxErr=0.1"),
        (r"^(\w*RandomAccess\w*_GUPs)=\S+", r"\1=-1"),
    ),
    "npb": (
        (r"SUCCESSFUL$", "UNSUCCESSFUL"),
        (r"(Verification +=).*", r"\1        NOT PERFORMED"),
    ),
    "lammps": (
        (r"^Loop time", "ERROR: Lost atoms: original 32000 current 31999\nLoop time"),
        (r"^( +100 +\S+ +\S+ +\S+ +)\S+", r"\1nan"),
    ),
    "hpccg": ((r"^(Final residual): \S+", r"\1: 1.2"), (r"^(Final residual): \S+", r"\1: nan")),
}


def _failed_check(text: str, chance: Random, capture: Capture) -> str | None:
    known = _FAILURES.get(capture.family, ())
    applying = [
        (match, new) for old, new in known for match in re.finditer(old, text, re.MULTILINE)
    ]
    if not applying:
        return None
    match, new = chance.choice(applying)
    return text[: match.start()] + match.expand(new) + text[match.end() :]


def _no_figure(text: str, chance: Random, capture: Capture) -> str | None:
    no_number = chance.choice(("nan", "-nan", "inf", "-inf", "1e999", "-1.00", "Infinity", "NaN"))
    return _figure(lambda number, _: no_number)(text, chance, capture)


def _zero(text: str, chance: Random, capture: Capture) -> str | None:
    return _figure(lambda number, _: re.sub(r"\d", "0", number))(text, chance, capture)


_STAMPED = re.compile(
    r"# Date +: |HPL_pdgesv\(\) (?:start|end) time|Current time \((?=\d)", re.MULTILINE
)


def _other_day(text: str, chance: Random, capture: Capture) -> str | None:
    """Date the text to another day, as a stored one is."""
    if not _STAMPED.search(text):
        return None
    shifted = re.sub(r"Nov 21", f"Nov {chance.choice((19, 20, 22))}", text)
    if shifted == text:
        return None
    return re.sub(r"\((\d{10})\)", lambda m: f"({int(m.group(1)) + 86400})", shifted)


def _other_word(text: str, chance: Random, capture: Capture) -> str | None:
    mark = f"{provenance.MARK} {WORD}\n"
    new = chance.choice(("", f"{provenance.MARK} stored-0\n", f"{provenance.MARK}\n"))
    return text.replace(mark, new) if mark in text else None


def _longer_than_the_launch(text: str, chance: Random, capture: Capture) -> str | None:
    """Multiply every time that IMB printed, which its bandwidths follow."""
    if capture.family != "imb" or "Mbytes" in text:
        return None

    def slower(match: re.Match[str]) -> str:
        return f"{1e5 * float(match.group()):{len(match.group())}.2f}"

    parts = text.partition("# Benchmarking")
    return parts[0] + parts[1] + re.sub(r" +\d+\.\d\d(?=\s)", slower, parts[2])


# Honest


def _banner_before(text: str, chance: Random, capture: Capture) -> str | None:
    if capture.family == "peaks":
        return None
    lines = [f"[rank {k}] bound to core {k} [B/./././.]\n" for k in range(chance.choice((1, 190)))]
    return (
        "WARNING: There was an error initializing an OpenFabrics device.\n" + "".join(lines) + text
    )


def _banner_behind(text: str, chance: Random, capture: Capture) -> str | None:
    if capture.family == "peaks":
        return None
    end = "" if text.endswith("\n") else "\n"
    return f"{text}{end}[node1:12345] 1 more process has sent help message help-mpi-btl-base.txt\n"


def _spaces_at_line_ends(text: str, chance: Random, capture: Capture) -> str:
    return re.sub(r"(?=\n)", chance.choice((" ", "   ", "\t")), text)


def _blank_lines_behind(text: str, chance: Random, capture: Capture) -> str | None:
    return None if capture.family == "peaks" else text + "\n" * chance.randint(1, 5)


def _dos_line_ends(text: str, chance: Random, capture: Capture) -> str:
    return text.replace("\n", "\r\n")


def _no_last_line_end(text: str, chance: Random, capture: Capture) -> str | None:
    # An empty line may be the end of a table.
    return None if text.endswith("\n\n") else text.removesuffix("\n")


def _as_printed(text: str, chance: Random, capture: Capture) -> str:
    return text


ATTACKS: tuple[Attack, ...] = (
    Attack("cut anywhere", Kind.DAMAGE, _cut),
    Attack("cut by a kill, with the launcher's words", Kind.DAMAGE, _cut_and_killed),
    Attack("zero bytes at the end", Kind.DAMAGE, _zeros_at_the_end),
    Attack("a line lost", Kind.DAMAGE, _on_lines(remove)),
    Attack("a block lost", Kind.DAMAGE, _on_lines(remove_block)),
    Attack("a line repeated elsewhere", Kind.DAMAGE, _on_lines(repeat)),
    Attack("a line repeated nearby", Kind.DAMAGE, _on_lines(repeat, near=4)),
    Attack("a block repeated", Kind.DAMAGE, _on_lines(repeat_block, near=60)),
    Attack("two lines swapped", Kind.FORGERY, _on_lines(swap)),
    Attack("neighbouring lines swapped", Kind.FORGERY, _on_lines(swap, near=3)),
    Attack("two lines torn into each other", Kind.DAMAGE, _torn),
    Attack("a character damaged", Kind.FORGERY, _damaged_character),
    Attack("decimal commas", Kind.DAMAGE, _comma),
    Attack("digits of another script", Kind.DAMAGE, _other_digits),
    Attack("two ranks' lines mixed", Kind.FAULT, _twice_line_by_line),
    Attack("the output twice", Kind.FAULT, _twice),
    Attack("below another run's output", Kind.FAULT, _below_another),
    Attack("above another run's output", Kind.FAULT, _above_another),
    Attack("another input of the same program", Kind.FAULT, _swapped(same_family=True)),
    Attack("another program's output", Kind.FAULT, _swapped(same_family=False)),
    Attack("an output that is no result", Kind.FAULT, _refused_before),
    Attack("a digit of what was asked", Kind.FAULT, _echoed_digit),
    Attack("a failed check of the benchmark", Kind.FAULT, _failed_check),
    Attack("a figure that is no number", Kind.FAULT, _no_figure),
    Attack("dated to another day", Kind.FAULT, _other_day),
    Attack("the word of another launch", Kind.FAULT, _other_word),
    Attack("times that the launch does not hold", Kind.FAULT, _longer_than_the_launch),
    Attack("a digit of a result", Kind.FORGERY, _result_digit),
    Attack("an exponent of a result", Kind.FORGERY, _figure(_exponent)),
    Attack("a result of 0", Kind.FORGERY, _zero),
    Attack("as printed", Kind.HONEST, _as_printed),
    Attack("banners of an MPI library before it", Kind.HONEST, _banner_before),
    Attack("a launcher's words behind it", Kind.HONEST, _banner_behind),
    Attack("white space at line ends", Kind.HONEST, _spaces_at_line_ends),
    Attack("blank lines behind it", Kind.HONEST, _blank_lines_behind),
    Attack("CRLF", Kind.HONEST, _dos_line_ends),
    Attack("no line end at the end", Kind.HONEST, _no_last_line_end),
)


def variants(attack: Attack, tries: int, seed: int = 0) -> Iterator[tuple[Capture, str]]:
    """Yield so many texts of an attack for each capture that it can change, the same each time."""
    for capture in captures()[0]:
        for k in range(tries):
            chance = Random(f"{seed}/{attack.name}/{capture.name}/{k}")
            text = attack.mutate(capture.printed, chance, capture)
            if text is not None:
                yield capture, text
