"""The papers' tables with what was measured here."""

import json
from dataclasses import replace
from pathlib import Path

from evaluations import tables
from evaluations.facts import load_paper
from evaluations.sheet import BesideRow


def rows_of(paper: str, **measured: float) -> list[BesideRow]:
    launches = dict.fromkeys(measured, "2-ranks-packed, not the printed launch")
    return [BesideRow(value, measured, launches) for value in load_paper(paper).values.values()]


def test_every_table_that_a_paper_has_values_of_is_drawn():
    numbers = {
        paper: [table.title for table in tables.tables(rows_of(paper), [])]
        for paper in ("000", "001", "002", "003", "004")
    }
    assert numbers == {
        "000": ["Table 1", "Table 2"],
        "001": ["Table 1"],
        "002": ["Table 1"],
        "003": ["Table 1", "Table 2"],
        "004": [f"Table {k}" for k in range(1, 10)],
    }


def test_a_table_of_ratios_has_its_baseline_and_those_measured_here():
    scatter = tables.tables(rows_of("004", mpich=1.512), ["mpich", "other"])[2]
    assert [column.rpartition("x], ")[2] for column in scatter.columns] == [
        "8 bytes, 128 processes",
        "10000 bytes, 128 processes",
    ]
    assert scatter.printed["cray-t3e600"] == ["1", "1"]
    assert scatter.printed["ahpcc-linux-ethernet"] == ["19", "228"]
    assert scatter.measured == {"mpich": ["1.512 *", "1.512 *"], "other": ["-", "-"]}


def test_a_table_of_configurations_has_a_row_for_each():
    pingpong = tables.tables(rows_of("003"), [])[0]
    assert len(pingpong.printed) == 8
    assert pingpong.printed["x336-34-400-pcie"] == ["3.95", "914", "91"]


def test_what_is_stated_of_the_systems_stands_side_by_side():
    systems = tables.systems_table(load_paper("000"))
    assert systems is not None
    clocks = dict(zip(systems.columns, systems.printed["clock [GHz]"], strict=True))
    assert (clocks["nec-sx8"], clocks["dell-xeon"]) == ("2.0", "3.6")
    networks = dict(zip(systems.columns, systems.printed["network"], strict=True))
    assert networks["altix-bx2-numalink3"] == "NUMALINK3"
    assert clocks["altix-bx2-numalink3"] == "1.6"


def test_the_machine_at_hand_has_a_column_beside_the_systems():
    [kept] = (Path(__file__).parent / "data" / "home" / "results" / "runs").glob("*/machine.json")
    facts = tables.machine_facts(json.loads(kept.read_text()), ["mpich", "openmpi"])
    systems = tables.systems_table(load_paper("001"), facts)
    assert systems is not None
    assert systems.columns[0] == "here"
    rows = {fact: cells[0] for fact, cells in systems.printed.items()}
    assert rows["mpi"] == "mpich, openmpi"
    assert rows["memory per node"].endswith(" GiB")
    assert rows["cores per node"].isdigit()
    assert rows["racks"] == "-"


def test_a_study_that_states_nothing_of_its_systems_has_the_machine_at_hand():
    study = replace(load_paper("001"), systems={})
    assert tables.systems_table(study) is None
    systems = tables.systems_table(study, {"processor": "one", "mpi": ["mpich"]})
    assert systems is not None
    assert (systems.columns, systems.printed["mpi"]) == (["here"], ["mpich"])


def test_what_is_stated_is_in_words():
    systems = tables.systems_table(load_paper("001"))
    assert systems is not None
    cells = [cell for row in systems.printed.values() for cell in row]
    assert "SDR: 2.5, DDR: 5.0, QDR: 10" in cells
    assert not [cell for cell in cells if cell[0] in "[{"]


def test_a_doubtful_value_is_marked_where_it_stands():
    peaks = tables.tables(rows_of("000"), [])[0]
    assert peaks.printed["nec-sx8"] == ["16 (doubtful)"]
    assert peaks.printed["dell-xeon"] == ["14.4"]
