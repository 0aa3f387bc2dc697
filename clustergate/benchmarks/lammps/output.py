"""Read what LAMMPS prints of a run into a row.

    LAMMPS (22 Jul 2025 - Update 4)
       Step          Temp          E_pair         E_mol          TotEng         Press
             0   1.44          -6.7733681      0             -4.6134356     -5.0197073
    TotEng   =    -25356.2057 KinEng   =     21444.8313 Temp     =       299.0397
    Loop time of 2.27299 on 2 procs for 100 steps with 32000 atoms
    Total wall time: 0:00:02

``benchmark`` is ``LAMMPS`` or as the expectation says; conditions are ``processes``, ``atoms`` and
``steps``; values are ``time_s`` (the loop's) and ``atom_steps_per_s``, which follows from it.
LAMMPS verifies nothing by itself: its total energies (TotEng, or PotEng and KinEng) before the
first and after the last step are compared with each other, and may drift by a hundredth of their
size, which an integrator that works stays far below; the first one is compared with that of the
model, where the expectation names it.

What cannot be noticed: a changed digit of the loop's time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.text import Fields, NumberedText
from clustergate.core.model import OutputError, Row
from clustergate.core.outputs import (
    OUTPUT_BAD_VALUE,
    OUTPUT_DAMAGED,
    OUTPUT_FAILURE,
    OUTPUT_LACKS,
    OUTPUT_SECOND_RUN,
    OUTPUT_WRONG_RESULT,
)
from clustergate.core.reasons import Words

LARGEST_DRIFT = 0.01
# Between builds, numbers of processes and of replicas; long-range forces are good to 1e-4.
ENERGY_TOLERANCE = 1e-3
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
TITLE = re.compile(r"LAMMPS \(.*\)\s*$")
_LOOP = re.compile(rf"Loop time of ({_NUMBER}) on (\d+) procs for (\d+) steps with (\d+) atoms\s*")
_ENERGY = re.compile(r"TotEng +=\s+(\S+)")
_TABLE = re.compile(r"\s+Step\s.*\s*")
_WALL = re.compile(r"Total wall time: \d+:\d\d:\d\d\s*")


@dataclass(frozen=True)
class LammpsExpectation:
    """What a run was asked for; None where nothing was asked.

    ``energy`` is the total energy of the model before the first step, in its own unit. ``name`` is
    what the row is to be called.
    """

    name: str = "LAMMPS"
    processes: int | None = None
    atoms: int | None = None
    steps: int | None = None
    energy: float | None = None


NO_ENERGY = Words(
    "output.no-energy",
    "its thermo output has no total energy, so nothing shows that the run is right",
    remedy="add `etotal` to its `thermo_style custom`",
)


def parse_lammps(
    lines: Iterable[str], *, source: str = "output", expect: LammpsExpectation | None = None
) -> Iterator[Row]:
    """Yield the row of a run.

    Raises :class:`OutputError` for a text that is cut off, that tells of an error or of an energy
    that drifts, or that is not of the run expected.
    """
    text = NumberedText(lines, source)
    energies: list[float] = []
    columns: list[int] = []
    tables = 0
    loop: tuple[int, re.Match[str]] | None = None
    ended = False
    for line in text:
        if line.startswith("ERROR"):
            raise text.error(OUTPUT_FAILURE(program="LAMMPS", words=line))
        if match := _LOOP.fullmatch(line):
            if loop is not None:
                raise text.error(OUTPUT_SECOND_RUN())
            loop, columns = (text.number, match), []
        elif match := _ENERGY.match(line):
            energies.append(_finite(match.group(1), text))
        elif _TABLE.fullmatch(line):
            columns, tables = _energy_columns(line.split()), tables + 1
        elif columns and len(words := line.split()) > max(columns):
            energies.append(sum(_finite(words[column], text) for column in columns))
        ended = ended or _WALL.fullmatch(line) is not None
    if loop is None or not ended:
        lost = "Loop time" if loop is None else "Total wall time"
        raise OutputError(OUTPUT_LACKS(missing=f"the line '{lost}'"), source=source)
    if tables and not energies:
        raise OutputError(NO_ENERGY(), line=loop[0], source=source)
    yield _row(loop, energies, expect or LammpsExpectation(), source)


def _energy_columns(names: Sequence[str]) -> list[int]:
    """Return the columns whose sum is the total energy, none where these are not printed."""
    for wanted in (("TotEng",), ("PotEng", "KinEng")):
        if {*wanted} <= {*names}:
            return [names.index(name) for name in wanted]
    return []


def _finite(word: str, text: NumberedText) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        facts = {"name": "TotEng", "wanted": "a number", "value": repr(word)}
        raise text.error(OUTPUT_BAD_VALUE(**facts))
    return value


def _row(
    loop: tuple[int, re.Match[str]],
    energies: Sequence[float],
    expect: LammpsExpectation,
    source: str,
) -> Row:
    line, match = loop
    seconds = float(match.group(1))
    processes, steps, atoms = (int(match.group(k)) for k in (2, 3, 4))
    fields = Fields(source)
    fields.values["loop"] = match.group(), line
    fields.compare(
        "loop",
        ("processes", expect.processes, processes),
        ("atoms", expect.atoms, atoms),
        ("steps", expect.steps, steps),
    )
    if not seconds > 0 or not steps or not atoms or not processes:
        facts = {"what": "a loop", "program": "LAMMPS", "printed": match.group().strip()}
        raise fields.error(OUTPUT_DAMAGED(**facts), "loop")
    if len(energies) < 2:
        raise fields.error(OUTPUT_LACKS(missing="the total energy before or after the run"))
    if expect.energy is not None and not math.isclose(
        energies[0], expect.energy, rel_tol=ENERGY_TOLERANCE
    ):
        facts = {"what": "the first total energy", "value": f"{energies[0]:g}"}
        raise fields.error(OUTPUT_WRONG_RESULT(wanted=f"{expect.energy:g}", **facts))
    drift = abs(energies[-1] - energies[0]) / max(abs(energies[0]), abs(energies[-1]))
    if not drift <= LARGEST_DRIFT:
        facts = {"what": "the last total energy", "value": f"{energies[-1]:g}"}
        wanted = f"within {LARGEST_DRIFT:.0%} of the first, {energies[0]:g}"
        raise fields.error(OUTPUT_WRONG_RESULT(wanted=wanted, **facts))
    conditions = {"processes": processes, "atoms": atoms, "steps": steps}
    values = {"time_s": seconds, "atom_steps_per_s": atoms * steps / seconds}
    return Row("LAMMPS", expect.name, conditions, values, line=line)
