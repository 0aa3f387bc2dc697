import pytest

from clustergate.machine.nominal import amd_family, clock_ghz, flops_per_cycle


@pytest.mark.parametrize(
    ("name", "features", "family", "flops"),
    [
        ("x86_64_v4", {"avx512f", "fma"}, 25, 16),
        ("zen5", {"avx512f", "fma"}, 26, 32),
        ("icelake", {"avx512f", "fma"}, None, 32),
        ("haswell", {"fma", "avx"}, None, 16),
        ("neoverse_n1", {"asimd"}, None, 8),
        ("riscv64", set(), None, None),
    ],
)
def test_operations_per_cycle(name, features, family, flops):
    assert flops_per_cycle(name, features, family) == flops


def machine(root, cpuinfo, max_khz=None):
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(cpuinfo)
    if max_khz is not None:
        folder = root / "sys/devices/system/cpu/cpu0/cpufreq"
        folder.mkdir(parents=True)
        (folder / "cpuinfo_max_freq").write_text(f"{max_khz}\n")
    return root


EPYC = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\ncpu MHz\t\t: 2596.138\n"


def test_the_kernels_highest_clock_comes_first(tmp_path):
    assert clock_ghz(machine(tmp_path, EPYC, 3700000)) == 3.7


def test_a_virtual_machine_tells_only_its_current_clock(tmp_path):
    root = machine(tmp_path, EPYC)
    assert clock_ghz(root) == pytest.approx(2.596138)
    assert amd_family(root) == 25


def test_a_machine_that_tells_nothing_gives_none(tmp_path):
    assert clock_ghz(tmp_path) is None
    assert amd_family(tmp_path) is None
