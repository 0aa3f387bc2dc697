"""Nodes against nodes on the first run, simulated: the smallest part of the bench."""

from tools.bench.simulated_nodes import counted, rows
from tools.bench.simulated_noise import BARE_METAL


def test_a_slow_node_of_the_first_run_is_named_and_nobody_else() -> None:
    one = counted(BARE_METAL, 0.003, 25)
    assert one.named >= 22
    assert one.accused == 0
    ((machine, apart, runs, named, *_),) = rows([one])
    assert (machine, apart, runs) == ("bare metal", "0.3", "25")
    assert float(named) >= 88
