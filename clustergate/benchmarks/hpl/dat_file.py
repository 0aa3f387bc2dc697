"""An HPL.dat that somebody wrote: what HPL makes of it, and what is odd in it.

HPL reads 31 lines by their place (HPL_pdinfo.c): of a list as many words as the line before says,
the next one by the length of the last one plus 1, whatever stands there. Lines look like this:

    1            # of problems sizes (N)
    29184        Ns
    2            # of NBs
    192 256      NBs
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clustergate.benchmarks.hpl import sizing
from clustergate.benchmarks.hpl.sizing import (
    INPUT_LINE_TOO_LONG,
    INPUT_TOO_MANY,
    HplInput,
    SizingError,
    file_fields,
)
from clustergate.core.notation import counted
from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE

_SMALLEST_NB = 32
# The file that lies in HPL's archive tests an installation.
_SHIPPED_N = (29, 30, 34, 35)
_STDOUT = 6
_LINES = 31


@dataclass(frozen=True)
class DatFile:
    """What HPL makes of a file; ``wrong`` says where that is not what stands in it.

    The ``digest`` tells it from others by its content.
    """

    input: HplInput
    digest: str = ""
    wrong: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """How many processes its largest grid needs."""
        grids = zip(self.input.p_values, self.input.q_values, strict=True)
        return max(p * q for p, q in grids)


def read_file(path: Path) -> DatFile:
    """Read an HPL.dat, or an hpccinf.txt, which begins like one.

    Raises :class:`SizingError` for a file that cannot be read, and what :func:`parse` raises.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SizingError(FILE_UNREADABLE(path=path, why=str(error.strerror))) from None
    digest = hashlib.sha256(content).hexdigest()[:12]
    return replace(parse(content.decode("utf-8", "replace"), path.name), digest=digest)


HPL_DAT_ENDS = Words(
    "hpl-dat.ends",
    "{source} ends after line {lines}",
    remedy="{program} reads {needed}",
)


def parse(text: str, source: str = "HPL.dat") -> DatFile:
    """Return what HPL makes of a text.

    Raises :class:`SizingError` for what HPL refuses or replaces, and where it would find no number.
    """
    lines = text.splitlines()
    values: dict[str, Any] = {}
    wrong: list[str] = []
    odd: list[str] = []
    count = 1
    for place, (name, is_list) in enumerate(file_fields(), start=3):
        if place > len(lines):
            raise SizingError(
                HPL_DAT_ENDS(source=source, lines=len(lines), program="HPL", needed=_LINES)
            )
        line, at = lines[place - 1], f"{source}:{place}"
        if len(line) > sizing.HPL_MAX_CHARACTERS:
            too_long = {"characters": len(line), "most": sizing.HPL_MAX_CHARACTERS}
            raise SizingError(INPUT_LINE_TOO_LONG(program="HPL", number=place, **too_long))
        if name == "output_file":
            values[name] = next(iter(line.split()), "HPL.out")
        elif name == "threshold":
            values[name] = _threshold(line, at)
        elif name == "count":
            count = _numbers(line, 1, at, name)[0]
            if not 1 <= count <= sizing.HPL_MAX_VALUES:
                facts = {"least": 1, "most": sizing.HPL_MAX_VALUES, "count": count}
                raise SizingError(INPUT_TOO_MANY(program="HPL", name=f"values ({at})", **facts))
        else:
            wanted = count if is_list else 1
            as_hpl, stated = _numbers(line, wanted, at, name), _stated(line)
            values[name] = tuple(as_hpl) if is_list else as_hpl[0]
            if as_hpl != stated[:wanted]:
                wrong.append(
                    f"{at}: HPL reads {_listed(as_hpl)} where {_listed(stated)} stands: begin the "
                    "line with the first value, and put one blank between two"
                )
            elif is_list and len(stated) > wanted:
                odd.append(f"{at}: of {_listed(stated)} HPL runs {_listed(as_hpl)} alone")
    for name in ("l1_transposed", "u_transposed"):
        values[name] = not values[name]
    values["equilibration"] = bool(values["equilibration"])
    if values["threshold"] <= 0:
        wrong.append(f"{source}: with the threshold {values['threshold']:g} HPL checks nothing")
        values["threshold"] = HplInput.threshold
    if (device := values["output_device"]) != _STDOUT:
        odd.append(f"{source}: its results go to device {device}, not to standard output (6)")
    try:
        read = HplInput(**values)
    except SizingError as error:
        raise SizingError(error.reason.at(source)) from None
    return DatFile(read, wrong=tuple(wrong), odd=(*odd, *_oddities(read)))


def _threshold(line: str, at: str) -> float:
    try:
        return float(line.split()[0])
    except (IndexError, ValueError):
        raise _no_number(line, at, "threshold") from None


NO_NUMBER = Words(
    "hpl-dat.no-number",
    "{program} finds no {wanted} in `{line}`",
    remedy="see that no line is missing above, and that all values of the count are there",
)


def _no_number(line: str, at: str, wanted: str) -> SizingError:
    facts = {"program": "HPL", "wanted": wanted, "line": line.strip()}
    return SizingError(NO_NUMBER(at=at, **facts))


def _numbers(line: str, count: int, at: str, name: str) -> list[int]:
    """Return what HPL reads of a line: atoi() of words, each sought behind the last one."""
    numbers: list[int] = []
    begin = 0
    for _ in range(count):
        word = re.match(r"\s*(\S+)", line[begin:])
        digits = re.match(r"[+-]?\d+", word[1]) if word else None
        if word is None or digits is None:
            wanted = f"value {len(numbers) + 1} of {name}" if count > 1 else name
            raise _no_number(line, at, wanted)
        numbers.append(int(digits[0]))
        begin += len(word[1]) + 1
    return numbers


def _stated(line: str) -> list[int]:
    """Return the numbers with which a line begins, as its reader sees them."""
    stated = []
    for word in line.split():
        if not re.fullmatch(r"[+-]?\d+", word):
            break
        stated.append(int(word))
    return stated


def _listed(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def _oddities(asked: HplInput) -> Iterator[str]:
    """Yield what HPL takes as it stands, and whoever wrote it may not have meant."""
    if set(asked.n_values) <= set(_SHIPPED_N):
        yield "N is that of the file in HPL's archive, which tests an installation"
    for p, q in dict.fromkeys(zip(asked.p_values, asked.q_values, strict=True)):
        if remark := sizing.grid_remark(p, q):
            yield remark
        for n in asked.n_values:
            for nb in asked.nb_values:
                if n < nb * max(p, q):
                    yield f"with N={n}, NB={nb} and {p} x {q} some processes hold no part of it"
    if small := [nb for nb in asked.nb_values if nb < _SMALLEST_NB]:
        yield f"NB={_listed(small)} is below {_SMALLEST_NB}, where the HPL guide's interval begins"
    for nb in asked.nb_values:
        if uneven := [n for n in asked.n_values if n % nb]:
            yield f"N={_listed(uneven)} is not a multiple of NB={nb}"


HPL_DAT_WRONG = Words(
    "hpl-dat.wrong",
    "this input would not run as written",
    cause="{why}",
    remedy="correct it; `clustergate hpl-input FILE` lists all its faults",
)


def input_for_check(file: DatFile) -> HplInput:
    """Return the input of a check that runs a file; raises :class:`SizingError` for a wrong one."""
    if file.wrong:
        raise SizingError(HPL_DAT_WRONG(why=file.wrong[0]))
    return replace(file.input, output_file="HPL.out", output_device=_STDOUT)


def count_solves(asked: HplInput) -> str:
    """Return how many solves an input asks for."""
    return counted(len(asked.n_values) * asked.solves_per_n, "solve")
