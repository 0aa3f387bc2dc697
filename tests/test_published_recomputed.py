"""The papers' own numbers, recomputed from each other: what follows, and what does not."""

import pytest

from evaluations.facts import STANDS, load_paper, load_papers
from evaluations.recomputed import agrees, recompute

CONTRADICTIONS = {
    ("000", "r002"): "a peak per node that is one MSP's",
    ("000", "r005"): "a peak per node that is one CPU's",
    ("001", "c021"): "92 % of N, not of the memory",
    ("002", "r013"): "322 MFLOPS/W",
    ("003", "r006"): "PCI-Express 8x with 1000 MB/s",
    ("003", "r094"): "below 4 us",
    ("003", "r098"): "739 MB/s both ways",
    ("003", "r104"): "one to two microseconds slower",
    ("003", "r123"): "33 % more memory clock",
    ("003", "r125"): "33 % more memory clock",
    ("003", "r130"): "33 % more memory clock",
    ("003", "r131"): "20 % slower for a gain of 20 %",
    ("003", "r139"): "an elasticity of one half",
    ("004", "r066"): "94.7 ms for 10 kB",
    ("004", "r067"): "87.7 ms for 10 kB",
    ("004", "c007"): "8 MiB of cache",
}
FOUND = recompute()
BY_NAME = {(found.paper, found.id): found for found in FOUND}


def test_the_contradictions_are_these():
    assert {(f.paper, f.id) for f in FOUND if not f.agrees} == set(CONTRADICTIONS)


def test_the_facts_carry_each_contradiction_as_one():
    for paper, name in CONTRADICTIONS:
        facts = load_paper(paper)
        if name in facts.values:
            assert facts.values[name].standing != STANDS, (paper, name)
            assert facts.values[name].because
        else:
            assert facts.parameters[name].remark, (paper, name)


def test_nothing_that_stands_is_contradicted():
    for paper in load_papers():
        for value in paper.values.values():
            found = BY_NAME.get((paper.id, value.id))
            if value.standing == STANDS and found:
                assert found.agrees, found


def test_all_24_slot_efficiencies_follow():
    found = [
        BY_NAME["003", value.id]
        for value in load_paper("003").values.values()
        if value.metric == "slot efficiency"
    ]
    assert len(found) == 24
    assert all(f.agrees for f in found)


def test_all_nine_infiniband_rates_follow():
    found = [BY_NAME["001", f"r{k:03}"] for k in range(1, 10)]
    assert [f.computed for f in found] == [2, 4, 8, 8, 16, 32, 24, 48, 96]
    assert all(f.agrees for f in found)


def test_rpeak_and_n_of_the_westmere_cluster_follow():
    assert BY_NAME["001", "r018"].computed == pytest.approx(72007.68)
    assert BY_NAME["001", "c001"].computed == 1179648
    assert (BY_NAME["001", "c006"].computed, BY_NAME["001", "c007"].computed) == (64, 96)


def test_peaks_follow():
    assert BY_NAME["002", "r003"].computed == 72
    assert [BY_NAME["000", f"r00{k}"].agrees for k in (1, 3, 4)] == [True] * 3


def test_digits_and_qualifiers_say_how_near_is_near_enough():
    values = load_paper("003").values
    assert agrees(values["r018"], 5.134)
    assert not agrees(values["r018"], 5.15)
    assert agrees(values["r094"], 3.99)
    assert not agrees(values["r094"], 4.0)
    assert agrees(values["r017"], 30)
    assert not agrees(values["r017"], 51)
