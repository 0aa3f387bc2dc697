from pathlib import Path

import pytest

from clustergate.machine.power import energy_between, longest_s, read_energy

RANGE_UJ = 65_532_610_987


def plant(root: Path, zone: str, name: str, energy_uj: int | str) -> None:
    folder = root / "sys/class/powercap" / zone
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    (folder / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")


def two_sockets(root: Path, *energies_uj: int) -> None:
    zones = [
        ("intel-rapl:0", "package-0"),
        ("intel-rapl:1", "package-1"),
        ("intel-rapl:0:0", "dram"),
        ("intel-rapl:0:1", "core"),
        ("intel-rapl-mmio:0", "package-0"),
    ]
    for (zone, name), energy in zip(zones, energies_uj, strict=True):
        plant(root, zone, name, energy)


def test_packages_and_memory_are_summed_up_and_parts_counted_once(tmp_path: Path) -> None:
    two_sockets(tmp_path, 1_000_000, 5_000_000, 100, 7, 9)
    before = read_energy(tmp_path)
    assert list(before) == ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1"]
    two_sockets(tmp_path, 31_000_000, 25_000_000, 4_000_100, 999_999_999, 999_999_999)
    between = energy_between(before, read_energy(tmp_path))
    assert between == {"package_energy_j": 50.0, "memory_energy_j": 4.0}


def test_a_counter_that_began_anew_is_no_negative_energy(tmp_path: Path) -> None:
    plant(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 2_000_000)
    before = read_energy(tmp_path)
    plant(tmp_path, "intel-rapl:0", "package-0", 999_999)
    assert energy_between(before, read_energy(tmp_path)) == {"package_energy_j": 3.0}


def test_how_long_a_reading_is_good_for(tmp_path: Path) -> None:
    plant(tmp_path, "intel-rapl:0", "package-0", 0)
    assert longest_s(read_energy(tmp_path)) == pytest.approx(131.07, abs=0.01)
    assert longest_s({}) == 0


@pytest.mark.parametrize("energy", ["", "-5x", "not a number"])
def test_what_cannot_be_read_is_absent(tmp_path: Path, energy: str) -> None:
    assert read_energy(tmp_path) == {}
    plant(tmp_path, "intel-rapl:0", "package-0", energy)
    assert read_energy(tmp_path) == {}


def test_a_zone_that_came_in_between_makes_the_sum_unknown(tmp_path: Path) -> None:
    plant(tmp_path, "intel-rapl:0", "package-0", 5)
    before = read_energy(tmp_path)
    plant(tmp_path, "intel-rapl:1", "package-1", 5)
    assert energy_between(before, read_energy(tmp_path)) == {}
