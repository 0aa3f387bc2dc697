"""What stand-ins print is what their parsers take for the run that was asked for."""

import pytest

from clustergate.benchmarks.hpcc.input import render_hpccinf
from clustergate.benchmarks.hpcc.output import HpccExpectation, parse_hpcc
from clustergate.benchmarks.hpl.output import parse_hpl
from clustergate.benchmarks.hpl.sizing import HplInput, hpl_expectation, render_hpl_dat
from clustergate.benchmarks.imb.command import MPI1_BENCHMARKS, ImbSettings, imb_arguments
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.benchmarks.imb.plan import ImbExpectation
from clustergate.core.model import OutputError
from clustergate.machine.kernels.peaks import parse_peaks
from clustergate.studies.screen.measures import peak_values
from tests.conftest import STACKS
from tests.simulated_machine import Asked, SimulatedMachine
from tools.bench.simulated_noise import BARE_METAL
from tools.bench.slowdowns import HPL, STACK, Change

NODES = [f"n{k}" for k in range(1, 17)]
PROBLEM = HplInput(n_values=(9984,), nb_values=(192,), p_values=(4,), q_values=(4,))
OTHER = HplInput(n_values=(9792,), nb_values=(192,), p_values=(4,), q_values=(4,))


@pytest.fixture
def machine():
    return SimulatedMachine(BARE_METAL, 7)


def hpl(machine, stack="mpich", hosts=NODES, problem=PROBLEM):
    """Return the seconds and the rows of a launch of HPL, which must be of the problem."""
    asked = Asked(stack, "xhpl", (), hosts, (0,), render_hpl_dat(problem))
    seconds, text = machine.answer(asked)
    return seconds, list(parse_hpl(text.splitlines(), expect=hpl_expectation(PROBLEM)))


@pytest.mark.parametrize("stack", STACKS)
def test_hpl_and_hpcc_repeat_their_input(machine, stack):
    seconds, (row,) = hpl(machine, stack)
    assert row.values["time_s"] <= seconds
    asked = Asked(stack, "hpcc", (), NODES, (0,), render_hpccinf(PROBLEM))
    _, text = machine.answer(asked)
    wanted = HpccExpectation(16, hpl_expectation(PROBLEM))
    rows = {row.benchmark: row for row in parse_hpcc(text.splitlines(), expect=wanted)}
    assert rows["StarDGEMM_Gflops"].conditions["n"] == rows["SingleDGEMM_Gflops"].conditions["n"]
    assert len(rows) > 40


def test_another_problem_is_found_out(machine):
    with pytest.raises(OutputError, match="N = 9792"):
        hpl(machine, problem=OTHER)


@pytest.mark.parametrize("ranks", [2, 16])
@pytest.mark.parametrize("stack", STACKS)
def test_imb_repeats_its_command_line(machine, stack, ranks):
    names = ("Sendrecv", *MPI1_BENCHMARKS)
    settings = ImbSettings(names, ranks, repetitions=200, volume_mb=8, seconds=10)
    words = imb_arguments(settings)
    seconds, text = machine.answer(Asked(stack, "IMB-MPI1", words, NODES[:ranks], (0,), ""))
    wanted = ImbExpectation(benchmarks=names[1:], arguments=tuple(words), ranks=ranks, warm_up=True)
    rows = list(parse_imb(text.splitlines(), expect=wanted))
    assert {row.benchmark for row in rows} == {*MPI1_BENCHMARKS}
    repeated = (
        int(row.conditions["repetitions"]) * row.values.get("t_avg_us", 0.0) for row in rows
    )
    assert 0.0 < 1e-6 * sum(repeated) <= seconds


def test_imb_takes_sizes_of_a_file(machine):
    words = ["PingPong", "-npmin", "2", "-msglen", "message-sizes.txt"]
    _, text = machine.answer(Asked("mpich", "IMB-MPI1", words, NODES[:2], (0,), "8\n4194304\n"))
    rows = list(parse_imb(text.splitlines(), expect=ImbExpectation(bytes=(8, 4194304), ranks=2)))
    assert [row.conditions["bytes"] for row in rows] == [8, 4194304]


def peaks(machine, host, *words, program="node_peaks"):
    _, text = machine.answer(Asked("mpich", program, words, [host], (0, 1), "", "Haswell"))
    return list(parse_peaks(text.splitlines()))


def test_kernels_tell_of_the_node(machine):
    machine.slow_nodes["n5"] = 1.5
    sound, slow = (peak_values(peaks(machine, host)) for host in ("n4", "n5"))
    for name, value in sound.items():
        assert 1.4 < value / slow[name] < 1.6
    assert {row.benchmark for row in peaks(machine, "n4", "--glance", "1")} == {
        "fma_peak",
        "triad_glance",
    }
    dgemm = peaks(machine, "n4", "--k", "192", program="dgemm")
    assert {(row.conditions["k"], row.conditions["kernel"]) for row in dgemm} == {(192, "Haswell")}
    (trip,) = peaks(machine, "n4", "--from-first", "1", program="core_distance")
    assert trip.conditions["core_ids"] == "0,1"


def gflops(machine, **asked):
    return hpl(machine, **asked)[1][0].values["performance_gflops"]


def test_changes_are_in_what_they_affect(machine):
    before = {stack: gflops(machine, stack=stack) for stack in STACKS}
    machine.change(Change(HPL, 2.0))
    assert all(1.8 < rate / gflops(machine, stack=stack) < 2.2 for stack, rate in before.items())
    machine.change(Change(STACK, 2.0))
    slower = [rate / gflops(machine, stack=stack) for stack, rate in before.items()]
    assert sorted(map(round, slower)) == [1, 1, 2]
    machine.change()
    assert all(0.9 < rate / gflops(machine, stack=stack) < 1.1 for stack, rate in before.items())


def test_a_launch_is_as_slow_as_its_slowest_node(machine):
    machine.slow_nodes["n5"] = 2.0
    assert 1.8 < gflops(machine, hosts=NODES[:4]) / gflops(machine, hosts=NODES[1:5]) < 2.2


def test_what_is_drawn_does_not_follow_from_the_order():
    one, other = (SimulatedMachine(BARE_METAL, 7) for _ in range(2))
    figures = [gflops(one, stack=stack) for stack in STACKS]
    assert figures == [gflops(other, stack=stack) for stack in reversed(STACKS)][::-1]
