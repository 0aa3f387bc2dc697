import pytest

from clustergate.core.figures import name_of
from clustergate.core.model import Launch
from clustergate.machine.power import Power, measured_power, performance_per_watt, stated_power
from tests.builders import sample


def launch(order=0, seconds=10.0, **node):
    return Launch(order=order, started=0.0, seconds=seconds, node=node)


def rate(gflops, order=0, metric="performance_gflops"):
    return sample("HPL", metric, gflops, order, n=1000)


def test_measured_power_names_what_was_counted():
    packages = measured_power(launch(package_energy_j=1500.0), 1)
    assert packages == Power(150.0, "processor packages by RAPL")
    both = measured_power(launch(package_energy_j=1500.0, memory_energy_j=500.0), 1)
    assert both == Power(200.0, "processor packages and memory by RAPL")
    four = measured_power(launch(package_energy_j=1500.0), 4)
    assert four == Power(600.0, "processor packages by RAPL of one node times 4")


@pytest.mark.parametrize(
    "found",
    [
        launch(),
        launch(memory_energy_j=5.0),
        launch(package_energy_j=0.0),
        launch(package_energy_j="12"),
        launch(seconds=0.0, package_energy_j=5.0),
    ],
)
def test_without_a_counter_nothing_is_measured(found):
    assert measured_power(found, 1) is None


@pytest.mark.parametrize(
    ("watts_per_socket", "cores_per_socket", "cores", "nodes", "watts"),
    [
        # Martin et al., section 8: 64 cores take 11 SiCortex nodes of 6 cores and 15 W, or 64
        # sockets of one Opteron core each and 115 W.
        (15, 6, 64, 1, 165.0),
        (115, 1, 1, 64, 7360.0),
        (200, 32, 48, 2, 800.0),
    ],
)
def test_stated_power_counts_the_sockets_that_are_used(
    watts_per_socket, cores_per_socket, cores, nodes, watts
):
    used = (watts_per_socket, cores_per_socket, cores, nodes)
    assert stated_power(*used) == Power(watts, "socket as stated")
    named = stated_power(*used, power_of="socket with memory")
    assert named == Power(watts, "socket with memory as stated")


@pytest.mark.parametrize("said", [(None, None), (15, None), (None, 6)])
def test_what_is_not_stated_is_not_guessed(said):
    watts_per_socket, cores_per_socket = said
    assert stated_power(watts_per_socket, cores_per_socket, 6, 1) is None


def test_a_rate_is_divided_by_the_power_of_its_own_launch():
    powers = {0: Power(100.0, "x"), 1: Power(200.0, "x")}
    samples = [rate(50.0), rate(50.0, 1), rate(50.0, 2), rate(90.0, metric="efficiency_percent")]
    found = performance_per_watt(samples, powers)
    assert [(s.value, s.order, s.unit) for s in found] == [
        (0.5, 0, "Gflop/s/W"),
        (0.25, 1, "Gflop/s/W"),
    ]
    assert name_of(found[0]) == "HPL.power_of_x.gflops_per_w"


def test_each_rate_has_its_own_name_per_watt():
    samples = [rate(500.0, metric="performance_mflops"), rate(5e6, metric="atom_steps_per_s")]
    found = performance_per_watt(samples, {0: Power(100.0, "x")})
    assert [(s.metric, s.value, s.unit) for s in found] == [
        ("mflops_per_w", 5.0, "Mflop/s/W"),
        ("atom_steps_per_j", 5e4, "1/J"),
    ]
