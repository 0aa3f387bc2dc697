import re
from pathlib import Path

import pytest

from clustergate.benchmarks import formats as outputs
from clustergate.benchmarks.lammps.output import LammpsExpectation, parse_lammps
from clustergate.benchmarks.lammps.problem import LJ_ENERGY, RHODO_ENERGY
from clustergate.core.model import OutputError


def text_of(data: Path, name: str) -> str:
    return (data / "lammps" / f"{name}.2.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "energy"), [("lj", LJ_ENERGY), ("rhodo", RHODO_ENERGY)])
def test_real_outputs_of_both_models(data: Path, name: str, energy: float) -> None:
    lines = text_of(data, name).splitlines()
    (row,) = parse_lammps(lines, expect=LammpsExpectation(name, 2, 32000, 100, energy))
    assert (row.suite, row.benchmark) == ("LAMMPS", name)
    assert row.conditions == {"processes": 2, "atoms": 32000, "steps": 100}
    assert row.values["atom_steps_per_s"] == pytest.approx(3.2e6 / row.values["time_s"])
    assert [r.values for r in outputs.parse(lines, source="x")] == [row.values]


@pytest.mark.parametrize(
    ("pattern", "changed", "complaint"),
    [
        ("(Loop time)", r"ERROR: Lost atoms\n\1", "LAMMPS reports a failure: ERROR: Lost atoms"),
        ("(Loop time.*)", r"\1\n\1", "another run begins here"),
        (r"(?m)^( +0 +1.44 +\S+ +\S+ +)\S+", r"\1nan", "'TotEng' must be a number, not 'nan'"),
        (r"(?m)^( +100 +\S+ +\S+ +\S+ +)-4", r"\1-5", "the result is wrong"),
        ("Loop time of [0-9.]+", "Loop time of 0.0", "not a loop as LAMMPS prints it"),
        (" TotEng ", " Nothing ", "thermo output has no total energy, so nothing shows"),
    ],
)
def test_a_wrong_or_damaged_run_is_refused(
    data: Path, pattern: str, changed: str, complaint: str
) -> None:
    text, count = re.subn(pattern, changed, text_of(data, "lj"))
    assert count == 1
    with pytest.raises(OutputError, match=re.escape(complaint)):
        list(parse_lammps(text.splitlines()))


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        (LammpsExpectation(processes=4), "another run: processes 2, but 4"),
        (LammpsExpectation(atoms=4194304), "another run: atoms 32000, but 4194304"),
        (LammpsExpectation(steps=10), "another run: steps 100, but 10"),
        (
            LammpsExpectation(energy=-5.0),
            "the result is wrong: the first total energy is .* and must be -5",
        ),
    ],
)
def test_another_run_is_refused(data: Path, expected: LammpsExpectation, complaint: str) -> None:
    with pytest.raises(OutputError, match=complaint):
        list(parse_lammps(text_of(data, "lj").splitlines(), expect=expected))
