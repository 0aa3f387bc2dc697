"""Who is to blame, on clusters whose truth is known."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import hypergeom

from clustergate.studies.screen.evidence import (
    Launches,
    error_spent,
    expected_by_chance,
    tail_probability,
)
from clustergate.studies.screen.further import further_nodes, further_rounds
from clustergate.studies.screen.localisation import Located, Unit, locate, locate_alone
from clustergate.studies.screen.rounds import rounds
from tools.bench.simulated_clusters import Cluster, observe, screen

FOUR_SWITCHES = [n // 8 for n in range(32)]


def blamed(cluster: Cluster, number: int | None = None, seed: int = 2) -> set[Any]:
    """Return what a screening of a cluster accuses."""
    found = screen(cluster, number, np.random.default_rng(seed)).located
    assert (*found.doubts, *found.suspects) == (), found
    return {(b.unit, b.switches or b.nodes) for b in found.blames}


@pytest.mark.parametrize("nodes", [4, 5, 8, 32, 33])
def test_a_slow_node_is_its_whole_row(nodes: int) -> None:
    assert blamed(Cluster(nodes, bad_nodes={2: 1.5})) == {(Unit.NODE, (2,))}


@pytest.mark.parametrize("nodes", [4, 8, 32])
def test_a_slow_link_is_one_cell(nodes: int) -> None:
    assert blamed(Cluster(nodes, links={(1, 2): 1.5})) == {(Unit.LINK, (1, 2))}


def test_a_link_that_is_slow_one_way_is_found_at_half_its_size() -> None:
    found = screen(Cluster(16, directed={(9, 4): 3.0}), None, np.random.default_rng(1)).located
    assert [(b.unit, b.nodes) for b in found.blames] == [(Unit.LINK, (4, 9))]
    assert found.blames[0].factor == pytest.approx(2.0, rel=0.1)


def test_several_faults_of_several_kinds_and_sizes() -> None:
    cluster = Cluster(
        32,
        bad_nodes={3: 1.3, 7: 8.0},
        links={(1, 2): 2.0, (9, 30): 1.3},
        lost=frozenset({20}),
        cut=frozenset({(4, 11)}),
    )
    assert blamed(cluster) == {
        *((Unit.NODE, (n,)) for n in (3, 7, 20)),
        *((Unit.LINK, pair) for pair in ((1, 2), (9, 30), (4, 11))),
    }


def test_noise_that_hides_every_link_does_not_hide_the_node() -> None:
    # A link is slow beyond four times its noise, which here is more than the fault.
    cluster = Cluster(32, noise=0.4, bad_nodes={3: 3.0})
    found = screen(cluster, None, np.random.default_rng(1)).located
    assert found.threshold > math.log(3.0)
    assert [(b.unit, b.nodes) for b in found.blames] == [(Unit.NODE, (3,))]


def test_a_node_that_is_slow_at_times_is_named_and_called_so() -> None:
    cluster = Cluster(32, bad_nodes={5: 5.0}, acts=1 / 3)
    (blame,) = screen(cluster, None, np.random.default_rng(1)).located.blames
    assert blame.nodes == (5,)
    assert blame.unit in (Unit.NODE, Unit.PART_OF_NODE)
    assert blame.seldom
    assert blame.factor == pytest.approx(5.0, rel=0.1)
    where = np.tile(np.arange(8), 24)
    levels = np.where((where == 6) & (np.arange(192) // 8 % 3 == 0), 1.6, 0.0)
    levels += np.random.default_rng(1).normal(0, 0.02, 192)
    (alone,) = locate_alone(8, where, levels).blames
    assert (alone.nodes, alone.seldom) == ((6,), True)


def test_link_slower_once_in_doubt_until_ten_launches() -> None:
    """A link that was far slower once is in doubt until ten launches call it chance."""
    plan = np.concatenate([pairs for _ in range(10) for pairs in rounds(8)])
    levels = np.random.default_rng(1).normal(0, 0.02, len(plan))
    levels[np.flatnonzero((np.sort(plan, axis=1) == (2, 5)).all(axis=1))[3]] = 1.0
    found = locate(8, plan, levels)
    assert (found.blames, found.doubts, found.at_times) == ((), (), ((2, 5),))
    before = slice(0, 9 * 28)
    found = locate(8, plan[before], levels[before])
    assert (found.blames, found.doubts, found.at_times) == ((), ((2, 5),), ())


def test_link_slow_in_half_its_launches_never_sound() -> None:
    """A link that is far slower in half of its launches is never called sound."""
    # Beside it launches that something else made as slow, so that ranks cannot accuse it yet.
    plan = np.array([(0, 2), (1, 3)] * 9 + [(0, 1), (2, 3), (0, 3), (1, 2)] * 3)
    levels = np.random.default_rng(1).normal(0, 0.02, len(plan))
    levels[[0, 4, 8, 12, 18, 23]] = 1.6
    found = locate(4, plan, levels)
    assert found.blames or (0, 2) in found.doubts


def test_nodes_of_a_slow_launch_launched_until_decided() -> None:
    """Nodes of a slow launch are launched until it shows whether more follow."""
    plan = np.concatenate(list(rounds(64, 3)))
    levels = np.random.default_rng(1).normal(0, 0.02, len(plan))
    a, b = plan[0].tolist()
    levels[0] = 1.6
    found = locate(64, plan, levels)
    assert set(found.returning) == {a, b}
    # The pair itself, and each of its nodes with two that it has not met.
    again = np.concatenate(further_rounds(64, plan, [found], np.random.default_rng(1)))
    assert [(again == node).any(axis=1).sum() for node in (a, b)] == [3, 3]
    sound = [n for n in range(64) if n not in (a, b)]
    more = [(a, b), *zip([a, b] * 3, sound[:6], strict=True)]
    once = locate(64, [*plan.tolist(), *more], [*levels, *[0.0] * 7])
    assert (once.returning, once.doubts) == ((), ())
    twice = locate(64, [*plan.tolist(), *more], [*levels, 0.0, 1.6, *[0.0] * 5])
    assert set(twice.returning) == {a, sound[0]}


def test_two_links_of_a_node_do_not_make_it_bad() -> None:
    links = {(0, 2): 3.0, (2, 6): 3.0}
    assert blamed(Cluster(8, links=links)) == {(Unit.LINK, pair) for pair in links}


def test_the_size_of_a_fault_is_told_and_a_failure_is_no_size() -> None:
    cluster = Cluster(32, bad_nodes={3: 2.0}, lost=frozenset({4}), cut=frozenset({(8, 9)}))
    found = screen(cluster, None, np.random.default_rng(1)).located
    sizes = {b.nodes: b.factor for b in found.blames}
    assert sizes[(3,)] == pytest.approx(2.0, rel=0.05)
    assert sizes[(4,)] == sizes[(8, 9)] == math.inf
    assert all(b.failed == math.isinf(b.factor) for b in found.blames)
    assert all(b.chance < 0.01 for b in found.blames)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"uplinks": {1: 1.6}}, {(Unit.SWITCH, (1,))}),
        ({"inside": {1: 1.6}}, {(Unit.INSIDE_SWITCH, (1,))}),
        ({"between": {(0, 2): 1.6}}, {(Unit.BETWEEN_SWITCHES, (0, 2))}),
        ({"lost": frozenset(range(8, 16))}, {(Unit.SWITCH, (1,))}),
        (
            {"inside": {1: 1.6}, "bad_nodes": {3: 1.6}, "links": {(20, 30): 1.6}},
            {(Unit.INSIDE_SWITCH, (1,)), (Unit.NODE, (3,)), (Unit.LINK, (20, 30))},
        ),
    ],
)
def test_a_slow_switch_is_a_block(fault: dict[str, Any], expected: set[Any]) -> None:
    assert blamed(Cluster(32, FOUR_SWITCHES, crossing=1.3, **fault)) == expected


def test_half_of_the_nodes_of_a_switch_are_nodes() -> None:
    bad = dict.fromkeys(range(8, 12), 2.0)
    assert blamed(Cluster(32, FOUR_SWITCHES, bad_nodes=bad)) == {(Unit.NODE, (n,)) for n in bad}


def test_pairs_on_two_switches_may_take_longer() -> None:
    assert blamed(Cluster(32, FOUR_SWITCHES, crossing=3.0)) == set()


def test_a_node_that_is_slow_with_some_of_its_partners() -> None:
    links = {(5, n): 2.0 for n in (1, 8, 13, 27)}
    found = screen(Cluster(32, links=links), None, np.random.default_rng(1)).located
    assert [(b.unit, b.nodes, b.partners) for b in found.blames] == [
        (Unit.PART_OF_NODE, (5,), (1, 8, 13, 27))
    ]


def test_nobody_is_accused_where_all_are_alike() -> None:
    assert blamed(Cluster(16)) == set()
    assert blamed(Cluster(16, bad_nodes=dict.fromkeys(range(16), 4.0))) == set()


def test_wrong_accusations_are_as_rare_as_promised() -> None:
    # 1 % is promised of each: with 50 sound clusters, more than 3 would be chance of 0.2 %.
    wrong = 0
    for seed in range(50):
        random = np.random.default_rng(seed)
        nodes = int(random.choice([3, 4, 8, 16, 32]))
        switches = [n // 4 for n in range(nodes)] if seed % 2 else None
        share = float(random.choice([0.0, 0.02, 0.1, 0.3]))
        cluster = Cluster(nodes, switches, noise=0.05, disturbed=share, disturbance=1.0)
        found = screen(cluster, None if seed % 3 else 3, random, seconds=100.0).screening
        wrong += bool(found.findings)
    assert wrong <= 3


def test_bad_node_among_a_thousand_takes_one_round() -> None:
    cluster = Cluster(1000, disturbed=0.01, bad_nodes={5: 2.0, 77: 1.3, 500: 2.0})
    outcome = screen(cluster, 1, np.random.default_rng(1))
    assert {b.nodes for b in outcome.located.blames} == {(5,), (77,), (500,)}
    assert outcome.rounds == 1
    assert outcome.further < 12


def test_two_nodes_accuse_nobody() -> None:
    assert blamed(Cluster(2, bad_nodes={0: 2.0})) == set()
    nothing = locate(2, [(0, 1)], [math.inf])
    assert nothing.centres == {}
    assert nothing.blames == ()
    assert locate(3, np.empty((0, 2)), []).unmeasured == (0, 1, 2)


def test_one_slow_observation_is_a_doubt_and_says_what_to_measure() -> None:
    plan = np.concatenate(list(rounds(8)))
    levels = np.where((np.sort(plan, axis=1) == (2, 5)).all(axis=1), 1.0, 0.0)
    found = locate(8, plan, levels)
    assert found.blames == ()
    assert found.doubts == ((2, 5),)
    random = np.random.default_rng(1)
    both = further_rounds(8, plan, [found], random)
    # The pair itself, and sound pairs to compare with, all of them disjoint; then its nodes with
    # any others.
    assert (2, 5) in {tuple(p) for p in both[0].tolist()}
    assert [(len(np.unique(pairs)), pairs.size) for pairs in both] == [(8, 8)] * 2
    assert further_rounds(8, plan, [Located()], random) == []


def test_most_pairs_slow_is_told_by_the_few_that_are_faster() -> None:
    found = screen(Cluster(4, bad_nodes={0: 2.0, 1: 2.0}), None, np.random.default_rng(1)).located
    assert found.blames == ()
    assert found.faster == ((2, 3),)


def test_unmeasured_pairs_change_nothing_and_lost_nodes_told() -> None:
    """Pairs that were not measured change nothing and lost nodes are told."""
    cluster = Cluster(16, bad_nodes={3: 2.0})
    plan = np.concatenate(list(rounds(16)))
    plan = plan[~(plan == 9).any(axis=1)][::2]
    found = locate(16, plan, observe(cluster, plan, np.random.default_rng(1)))
    assert [b.nodes for b in found.blames] == [(3,)]
    assert found.unmeasured == (9,)


@pytest.mark.parametrize(
    ("pairs", "levels", "said"),
    [
        ([(0, 4)], [0.0], "4 nodes"),
        ([(1, 1)], [0.0], "itself"),
        ([(0, 1)], [math.nan], "a level is a number"),
        ([(0, 1)], [0.0, 1.0], "2 levels of 1"),
    ],
)
def test_what_makes_no_sense_is_refused(pairs: Any, levels: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        locate(4, pairs, levels)
    with pytest.raises(ValueError, match="3 switches for 4 nodes"):
        locate(4, [(0, 1)], [0.0], [0, 1, 2])


def test_worst_launches_of_one_place_are_hypergeometric() -> None:
    for among, worst, own, others in ((3, 3, 9, 9), (2, 5, 6, 100), (0, 2, 3, 4), (4, 4, 12, 3)):
        expected = float(hypergeom.sf(among - 1, own + others, own, worst))
        assert tail_probability(among, worst, own, others) == pytest.approx(expected)


def test_all_looks_together_take_no_more_than_the_error() -> None:
    """Of sound nodes, looked at after each of 40 rounds, a fifth may be accused, and fewer are."""
    error, nodes, random = 0.2, 4, np.random.default_rng(1)
    pairs = list(itertools.combinations(range(nodes), 2))
    own = [np.array([node in pair for pair in pairs]) for node in range(nodes)]

    def is_accused(levels: NDArray[np.float64], rounds: int, node: int) -> bool:
        place = np.tile(np.arange(len(pairs)), rounds)
        launches = Launches(levels[:rounds].ravel(), place, len(pairs))
        chance = launches.chance(own[node], ~own[node], 0.0)
        chance = expected_by_chance(chance, nodes, 0.0, 0, nodes - 1)
        return chance <= error_spent(error, 3 * rounds, 3 * rounds, nodes, 3)

    looks = list(itertools.product(range(1, 41), range(nodes)))
    screenings = [random.standard_t(2, (40, len(pairs))) for _ in range(60)]
    accused = [any(is_accused(levels, *look) for look in looks) for levels in screenings]
    assert sum(accused) <= error * len(screenings)
    # Six launches of each are the fewest that can accuse one of four nodes: there most is spent.
    assert error_spent(0.01, 6, 6, 4) == pytest.approx(0.01 * 0.8)
    assert error_spent(0.01, 7, 7, 4) == pytest.approx(0.01 * 0.2 / 6)


# --- nodes alone ------------------------------------------------------------------------------


def test_a_node_that_is_slow_alone_is_accused_once_it_was_so_again() -> None:
    random = np.random.default_rng(1)
    truth = np.zeros(16)
    truth[4] = math.log(1.5)
    where = np.arange(16)
    levels = truth + random.normal(0, 0.02, 16)
    once = locate_alone(16, where, levels)
    assert once.blames == ()
    assert once.doubts == ((4,),)
    for _ in range(3):
        again = further_nodes([locate_alone(16, where, levels)], 16, random)
        where = np.concatenate([where, again])
        levels = np.concatenate([levels, truth[again] + random.normal(0, 0.02, len(again))])
    found = locate_alone(16, where, levels)
    assert [b.nodes for b in found.blames] == [(4,)]
    assert found.blames[0].factor == pytest.approx(1.5, rel=0.05)
    assert further_nodes([found], 16, random) == []


def test_of_two_nodes_that_differ_nobody_says_which_is_wrong() -> None:
    found = locate_alone(2, [0, 1] * 5, [0.0, 1.0] * 5)
    assert found.blames == ()
    assert (*found.doubts, *found.suspects) == ()


def test_a_node_that_does_not_run_is_accused_even_of_two() -> None:
    found = locate_alone(2, [0, 1] * 9, [0.0, math.inf] * 9)
    assert [(b.nodes, b.factor) for b in found.blames] == [((1,), math.inf)]
    assert locate_alone(2, [0, 1], [math.inf, math.inf]).centres == {}
