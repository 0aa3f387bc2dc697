"""The gate's answers on a simulated cluster, from the records of its jobs to the exit status."""

import pytest

from tools.bench.gate import DAYS, counted, machine_of, table
from tools.bench.simulated_noise import BARE_METAL
from tools.bench.slowdowns import NOTHING, STACK, Change


@pytest.mark.parametrize(
    ("change", "word", "named"),
    [
        (NOTHING, "open", 0),
        pytest.param(Change(STACK, 1.2), "closed", 1, marks=pytest.mark.long),
    ],
)
def test_gate_of_simulated_cluster(change: Change, word: str, named: int) -> None:
    counts = counted((BARE_METAL, "5 days", change), 1, 1)
    assert (counts[word], counts["named"], counts["runs"]) == (1, named, 1)


def test_nodes_of_a_gate_are_as_far_each_time() -> None:
    assert machine_of(BARE_METAL).levels == BARE_METAL.levels[-1:]


def test_table_of_what_was_counted() -> None:
    known = {
        f"bare metal | 5 days | nothing | {basis}": {
            "open": 9,
            "unjudged": 1,
            "again": 5,
            "runs": 10,
        }
        for basis in range(2)
    }
    _, _, row = table([(BARE_METAL, DAYS[1], NOTHING)], 2, known)
    assert row.startswith("| bare metal, 5 days | nothing | 90")
    assert row.endswith(" | 0.5 |")
    _, _, empty = table([(BARE_METAL, DAYS[0], NOTHING)], 2, known)
    assert empty.endswith(" | 0.0 |")
