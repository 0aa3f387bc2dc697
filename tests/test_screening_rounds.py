"""Rounds of disjoint pairs: they cover what they should, once."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergate.studies.screen.rounds import number_of_rounds, rounds, rounds_of


def as_sets(plan: list[np.ndarray]) -> list[frozenset[int]]:
    return [frozenset(pair) for members in plan for pair in members.tolist()]


@given(nodes=st.integers(0, 60), seed=st.none() | st.integers(0, 9))
def test_all_rounds_hold_every_pair_once(nodes: int, seed: int | None) -> None:
    plan = list(rounds(nodes, seed=seed))
    assert len(plan) == number_of_rounds(nodes)
    met = as_sets(plan)
    assert len(met) == len(set(met))
    assert set(met) == {frozenset(p) for p in itertools.combinations(range(nodes), 2)}


@given(nodes=st.integers(2, 60), number=st.integers(0, 70), seed=st.integers(0, 9))
def test_a_round_is_of_disjoint_pairs_and_one_node_rests_at_most(
    nodes: int, number: int, seed: int
) -> None:
    plan = list(rounds(nodes, number, seed))
    assert len(plan) == min(number, number_of_rounds(nodes))
    assert len(as_sets(plan)) == len(set(as_sets(plan)))
    for members in plan:
        assert len(np.unique(members)) == members.size == nodes - nodes % 2


@pytest.mark.parametrize(("nodes", "expected"), [(0, 0), (1, 0), (2, 1), (3, 3), (4, 3), (7, 7)])
def test_number_of_rounds(nodes: int, expected: int) -> None:
    assert number_of_rounds(nodes) == expected


def test_known_rounds_of_six_nodes() -> None:
    # The schedule for six teams as it stands in every book on tournaments.
    first, second = (sorted(map(sorted, m.tolist())) for m in itertools.islice(rounds(6), 2))
    assert first == [[0, 5], [1, 4], [2, 3]]
    assert second == [[0, 2], [1, 5], [3, 4]]


def test_a_seed_gives_the_same_plan_again_and_another_seed_another() -> None:
    plans = [[m.tolist() for m in rounds(10, 3, seed)] for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_no_negative_numbers() -> None:
    with pytest.raises(ValueError, match="no -1 nodes"):
        number_of_rounds(-1)
    with pytest.raises(ValueError, match="no -1 rounds"):
        next(rounds(4, -1))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(10, 19)), max_size=60))
def test_named_pairs_become_few_rounds_of_disjoint_pairs(pairs: list[tuple[int, int]]) -> None:
    found = rounds_of(pairs)
    assert sorted(p for members in found for p in members) == sorted(pairs)
    most = 0
    for members in found:
        nodes = [node for pair in members for node in pair]
        assert len(nodes) == len(set(nodes))
    for node in range(20):
        most = max(most, sum(node in pair for pair in pairs))
    assert len(found) < max(2 * most, 1)
