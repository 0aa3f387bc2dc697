"""How far the nodes of a case are from each other: what is said of it, recorded and judged."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustergate.core.model import (
    UNKNOWN_DISTANCE,
    BaselineRuns,
    Better,
    CaseRecord,
    Reference,
    Verdict,
)
from clustergate.judge.assembly import Outcome, assemble
from clustergate.judge.distances import rarer, shifts
from clustergate.judge.runs import figure_id, past_of
from clustergate.launch.hostfiles import parse_hostfile
from clustergate.run.judge import of_unknown_distance
from clustergate.sites.schedulers import slurm
from clustergate.studies.screen import switches
from clustergate.studies.screen.switches import distance_between, distance_of, groups_of_slurm
from tests import builders

# Two groups of two leaves under one top, as scontrol prints them.
TOPOLOGY = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[001-002]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[003-004]
SwitchName=leaf3 Level=0 LinkSpeed=1 Nodes=n[005-006]
SwitchName=pod1 Level=1 LinkSpeed=1 Nodes=n[001-004] Switches=leaf[1-2]
SwitchName=pod2 Level=1 LinkSpeed=1 Nodes=n[005-006] Switches=leaf3
SwitchName=top Level=2 LinkSpeed=1 Nodes=n[001-006] Switches=pod[1-2]
"""
SWITCH, GROUP, BEYOND = "same switch", "same group", "another group"


@pytest.mark.parametrize(
    ("hosts", "distance"),
    [
        (["n001"], "same node"),
        (["n001.cluster", "n002"], SWITCH),
        (["n001", "n004"], GROUP),
        (["n001", "n002", "n005"], BEYOND),
        # Of one that nobody places nothing is said.
        (["n001", "x9"], ""),
    ],
)
def test_the_farthest_of_the_nodes_is_the_distance(hosts: list[str], distance: str) -> None:
    switch_of = switches.switches_of_slurm(TOPOLOGY)
    assert distance_between(hosts, switch_of, groups_of_slurm(TOPOLOGY)) == distance


def test_switches_without_groups_are_of_one() -> None:
    assert distance_between(["a", "b"], {"a": "s1", "b": "s2"}, {}) == GROUP


def test_slurm_or_the_hostfile_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "answer_of_slurm", lambda words: TOPOLOGY)
    nowhere = tmp_path / "alpha.ibnetdiscover"
    assert distance_of(["n001", "n005"], "slurm", nowhere) == BEYOND
    assert distance_of(["n001", "n005"], "local", nowhere) == ""
    text = "n001 slots=2 switch=a rack=r1\nn002 slots=2 switch=b rack=r2\n"
    hostfile = parse_hostfile(text, "alpha.txt")
    assert distance_of(["n001", "n002"], "local", nowhere, hostfile=hostfile) == BEYOND


SPREAD = {
    **builders.CONDITIONS,
    **{"mode": "maintenance", "ranks_per_node": 1, "placement": "one-per-node"},
}


def record(value: float, distance: str = "", nodes: int = 2, **details: Any) -> CaseRecord:
    return builders.record(
        *(builders.ping(value * (1 + k / 1000), order=k) for k in range(3)),
        partition="alpha:node",
        conditions={**SPREAD, "nodes": nodes},
        launches=builders.launches(3),
        details={"distance": distance, **details} if distance else details,
    )


def test_what_does_not_say_it_is_of_unknown_distance() -> None:
    assert record(1.0).distance == UNKNOWN_DISTANCE
    assert record(1.0, "somewhere").distance == UNKNOWN_DISTANCE
    assert record(1.0, BEYOND).distance == BEYOND
    assert record(1.0, nodes=1).distance == "same node"
    assert of_unknown_distance([record(1.0, BEYOND), record(1.0, nodes=1)]) == []
    (said,) = of_unknown_distance([record(1.0)])
    assert "of 1 case" in said
    assert "switch= and rack=" in said


# Levels of 1, 1.3 and 1.5 us, on ten days.
WHERE = (SWITCH, GROUP, BEYOND, SWITCH, GROUP, SWITCH, BEYOND, SWITCH, GROUP, SWITCH)
LEVELS = {SWITCH: 1.0, GROUP: 1.3, BEYOND: 1.5}
NOISE = np.random.default_rng(5).normal(0.0, 0.01, 10)


def baseline(distances: tuple[str, ...] = WHERE, days: int = 10) -> BaselineRuns:
    values = [LEVELS[w] * math.exp(x) for w, x in zip(WHERE, NOISE, strict=True)]
    return builders.baseline(values, days, launches=10, distances=distances)


def judged(value: float, distance: str, known: BaselineRuns, tolerated: float = 1.5) -> Verdict:
    one = record(value, distance)
    reference = Reference(1.0, None, tolerated, "us", "measured", known)
    (case,) = assemble((), [builders.passed(one)], [one], lambda *_: reference)
    return case.figures[0].judgement.verdict


@pytest.mark.parametrize(
    ("times", "distance", "verdict"),
    [
        (1.0, SWITCH, Verdict.PASS),
        (1.0, BEYOND, Verdict.PASS),
        (1.25, SWITCH, Verdict.REGRESSION),
        (1.25, BEYOND, Verdict.REGRESSION),
    ],
)
def test_a_run_is_compared_with_those_of_its_distance(
    times: float, distance: str, verdict: Verdict
) -> None:
    assert judged(times * LEVELS[distance], distance, baseline()) is verdict


def test_without_distances_levels_hide_a_slow_down() -> None:
    """Until distances were recorded, 25 % hid between the levels."""
    assert judged(1.25, "", baseline(())) is not Verdict.REGRESSION


def test_a_distance_that_no_run_had_is_not_judged() -> None:
    near = BaselineRuns(
        ("a", "b", "c"), ("1", "2", "3"), (1.0, 1.01, 0.99), 10, distances=(SWITCH,) * 3
    )
    assert judged(1.5, BEYOND, near) is Verdict.INCONCLUSIVE
    assert judged(1.0, SWITCH, near) is Verdict.PASS


def test_of_unknown_distance_few_days_tell_nothing() -> None:
    """One day of near nodes made every later draw of far ones slower."""
    values = (1.0, 1.002, 1.001, 0.999, 1.003)
    one_day = BaselineRuns(tuple("abcde"), ("2026-10-01",) * 5, values, 10)
    assert judged(1.3, "", one_day) is Verdict.INCONCLUSIVE
    assert judged(1.3, SWITCH, one_day) is Verdict.INCONCLUSIVE


def test_of_unknown_distance_all_stacks_are_never_accused_together() -> None:
    """Far nodes made the latency of all stacks slower in a fifth of unchanged runs."""
    many_days = BaselineRuns(
        tuple(f"r{k}" for k in range(5)),
        tuple(f"2026-10-0{k + 1}" for k in range(5)),
        (1.0, 1.002, 1.001, 0.999, 1.003),
        10,
    )
    reference = Reference(1.0, None, 1.5, "us", "measured", many_days)

    records = [record(1.3), dataclasses.replace(record(1.3), **OTHER)]
    outcomes = [
        Outcome(one.name, one.check, one.stack, "pass", partition=one.partition) for one in records
    ]
    cases = assemble((), outcomes, records, lambda *_: reference)
    said = [figure.judgement for case in cases for figure in case.figures]
    said += [group.judgement for case in cases for group in case.groups]
    assert Verdict.REGRESSION not in {one.verdict for one in said}
    assert "far nodes and a slow network look alike" in said[0].sentence


def test_a_bound_of_near_nodes_leaves_room_for_far_ones() -> None:
    days = tuple(f"2026-10-0{k + 1}" for k in range(5))
    near = BaselineRuns(tuple("abcde"), days, (1.0, 1.002, 1.001, 0.999, 1.003), 10)
    assert judged(1.4, "", near, tolerated=0.1) is Verdict.INCONCLUSIVE
    assert judged(1.8, "", near, tolerated=0.1) is Verdict.REGRESSION


OTHER: Any = {"name": "ImbMpi1Check-node-openmpi", "stack": "openmpi"}


def test_each_mean_costs_a_degree_of_freedom() -> None:
    case = ("ImbMpi1Check", "alpha:node", "mpich", "2-ranks-one-per-node", "maintenance")
    latency = figure_id(case, "PingPong.2p.8B.latency_us", "PingPong", "latency_us", 8)
    large = figure_id(case, "PingPong.2p.4194304B.latency_us", "PingPong", "latency_us", 1 << 22)
    past = past_of([(one, baseline(), Better.LOWER) for one in (latency, large)])
    assert past.means is not None
    # Large messages keep what they were.
    assert past.means.tolist() == [3.0, 1.0]
    assert np.std(past.values[:, 0]) < 0.02
    assert np.std(past.values[:, 1]) > 0.15
    assert shifts(baseline(), Better.LOWER)[BEYOND] > 0 > shifts(baseline(), Better.LOWER)[SWITCH]
    # Of two runs at that distance instead of ten.
    assert rarer(baseline(), BEYOND) == pytest.approx(1.5 / 1.1)
