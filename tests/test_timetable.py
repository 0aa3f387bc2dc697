"""When cases run: side by side where they share no nodes, alone what would be disturbed."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from clustergate.benchmarks.registry import title_of
from clustergate.core.model import CaseId
from clustergate.core.paths import checkout
from clustergate.core.texts import duration
from clustergate.run.forecast import usual_seconds
from clustergate.run.gate.contract import budget_for
from clustergate.run.timetable import (
    FEW_NODES,
    Job,
    Planned,
    Timetable,
    at_once,
    jobs_of,
    timetable,
)
from clustergate.sites.description import Partition
from clustergate.sites.modes import expected_cases, mode_named

MAINTENANCE = mode_named("maintenance")
STACKS = ("a", "b", "c")


def partition(nodes: int, name: str = "cpu", **other: Any) -> Partition:
    plain = Partition(
        name=name, scheduler="slurm", environs=STACKS, cores_per_node=64, nodes=nodes,
        memory_bytes_per_node=256 << 30, nominal_gflops_per_core=50.0, system="alpha",
        exclusive=True, access=[f"-p {name}"],
    )  # fmt: skip
    return dataclasses.replace(plain, **other)


def planned(*partitions: Partition, mode: str = "maintenance") -> Timetable:
    """Return when all cases of a mode run, each as long as such cases usually take."""
    known = mode_named(mode)
    cases = expected_cases(known.checks, partitions, known)
    return timetable(jobs_of(known, cases, usual_seconds(cases, {}), partitions), partitions)


def drawn(seed: int) -> tuple[list[Job], list[Partition]]:
    """Return some jobs of random sizes on up to three partitions of random sizes."""
    lot = random.Random(seed)
    partitions = [
        partition(
            lot.randint(1, 24),
            f"p{k}",
            reframe={"max_jobs": lot.randint(1, 6)},
            access=[f"-p {lot.choice('xy')}"],
        )
        for k in range(lot.randint(1, 3))
    ]
    jobs = []
    for number in range(lot.randint(0, 30)):
        one = lot.choice(partitions)
        nodes = lot.randint(1, one.shape.nodes)
        case = CaseId(f"Check{number}", one.fullname, "a")
        alone = nodes > FEW_NODES or at_once(one) == 1
        jobs.append(Job(case, nodes, lot.choice([0.5, 7.0, 60.0, 200.0]), alone))
    return jobs, partitions


@pytest.mark.parametrize("seed", range(60))
def test_nothing_shares_a_node_or_a_switch_with_what_it_disturbs(seed: int) -> None:
    jobs, partitions = drawn(seed)
    made = timetable(jobs, partitions)
    assert sorted(one.job.case for one in made.planned) == sorted(one.case for one in jobs)
    access = {one.fullname: one.access for one in partitions}
    for one in made.planned:
        assert len(set(one.nodes)) == one.job.nodes
        beside = [
            other
            for other in made.planned
            if other is not one and other.start_s < one.end_s and one.start_s < other.end_s
        ]
        assert not (one.job.alone and beside)
        for other in beside:
            if access[one.job.case.partition] == access[other.job.case.partition]:
                assert set(one.nodes).isdisjoint(other.nodes)
        begun = [o for o in beside if o.start_s <= one.start_s]
        same = [o for o in begun if o.job.case.partition == one.job.case.partition]
        (own,) = (x for x in partitions if x.fullname == one.job.case.partition)
        assert one.job.alone or len(same) < at_once(own)


@pytest.mark.parametrize("seed", range(60))
def test_it_takes_no_less_than_a_chain_and_no_more_than_all_in_turn(seed: int) -> None:
    jobs, partitions = drawn(seed)
    made = timetable(jobs, partitions)
    in_turn = sum(one.seconds for one in jobs)
    alone = sum(one.seconds for one in jobs if one.alone)
    assert made.longest_chain_s <= made.seconds + 1e-9 <= in_turn + 2e-9
    assert made.seconds >= alone - 1e-9
    # Who has no more to run is no later done.
    fewer = timetable([one for one in jobs if one.alone], partitions)
    assert fewer.seconds == pytest.approx(alone)


def test_a_gate_of_three_stacks_takes_little_longer_than_its_longest_chain() -> None:
    for nodes in (16, 100, 1000):
        made = planned(partition(nodes))
        assert made.seconds <= 1.3 * made.longest_chain_s
        assert made.seconds < 0.75 * sum(one.job.seconds for one in made.planned)


def test_pairs_and_nodes_of_all_stacks_run_at_once() -> None:
    made = planned(partition(16))
    few = [one for one in made.planned if not one.job.alone]
    # On a node, between two of them, and on all cores of a node.
    assert len(few) == 3 * len(STACKS)
    (first,) = {one.start_s for one in few[:8]}
    assert {one.job.case.stack for one in few[:8]} == set(STACKS)
    assert first == sum(one.job.seconds for one in made.planned if one.job.alone)


@pytest.mark.parametrize(
    "other",
    [{"exclusive": False}, {"reframe": {"max_jobs": 1}}, {"scheduler": "local"}],
    ids=["nodes are shared", "one job at a time", "here"],
)
def test_jobs_run_in_turn_where_they_might_share_a_node(other: dict[str, Any]) -> None:
    made = planned(partition(16, **other))
    assert all(one.job.alone for one in made.planned)
    assert made.seconds == made.longest_chain_s == sum(one.job.seconds for one in made.planned)


def test_a_partition_whose_nodes_are_shared_lets_nothing_run_beside_others() -> None:
    """ReFrame would submit eight jobs at once to it, too."""
    made = planned(partition(16), partition(16, "shared", exclusive=False))
    assert all(one.job.alone for one in made.planned)
    states_it = partition(16, "shared", exclusive=False, reframe={"max_jobs": 1})
    made = planned(partition(16), states_it)
    assert not all(one.job.alone for one in made.planned)


def test_only_a_gate_and_its_baseline_run_side_by_side() -> None:
    assert all(one.job.alone for one in planned(partition(16), mode="smoke").planned)
    assert all(one.job.alone for one in planned(partition(16), mode="acceptance").planned)


def test_what_runs_alone_in_one_partition_does_so_in_all() -> None:
    """ReFrame chooses tests, and a test has a case in each partition."""
    thin = partition(16, "thin", cores_per_node=16)

    def of_64(*partitions: Partition) -> list[tuple[int, bool]]:
        jobs = (one.job for one in planned(*partitions).planned)
        found = (x for x in jobs if dict(x.case.parameters).get("process_count") == "64")
        return sorted((one.nodes, one.alone) for one in found)

    assert of_64(partition(16), thin) == [(1, False)] * 3
    there = dataclasses.replace(thin, process_counts=(2, 64))
    assert of_64(partition(16), there) == [(1, True)] * 3 + [(4, True)] * 3


def rows(nodes: int) -> Sequence[str]:
    """Return the cells of the page for a partition of so many nodes."""
    made = planned(partition(nodes))
    in_turn = sum(one.job.seconds for one in made.planned)
    every = expected_cases(["ImbMpi1Check"], [partition(nodes)], mode_named("acceptance"))
    of_all = in_turn + 200.0 * (
        len(every) - sum(one.job.case.check == "ImbMpi1Check" for one in made.planned)
    )
    return [duration(budget_for(seconds, nodes)) for seconds in (of_all, in_turn, made.seconds)]


@pytest.mark.parametrize("nodes", [16, 100, 1000])
def test_announced_time_stands_on_the_page(nodes: int) -> None:
    """A gate of 1,000 nodes fits into a window of two hours, with time for what looks slow."""
    assert budget_for(planned(partition(nodes)).seconds, nodes) <= 1.3 * 3600
    row = f"| {nodes:,} | {' | '.join(rows(nodes))} |"
    assert row in (checkout() / "docs" / "operators.md").read_text(), row


_COLUMN_S = 100.0


def drawn_lines(nodes: int, screening_s: float) -> Sequence[str]:
    """Return the timetable of a gate as the page draws it: a line for each kind of case."""
    kinds: dict[str, list[Planned]] = {}
    for one in planned(partition(nodes)).planned:
        check, layout = one.job.case.check, dict(one.job.case.parameters)
        on = f"{one.job.nodes:,} nodes" if one.job.nodes > 1 else "1 node"
        ranks = f"{int(layout['process_count']):,} ranks, " if layout else ""
        kinds.setdefault(f"{title_of(check)}, {ranks}{on}", []).append(one)
    bar = "#" * math.ceil(screening_s / _COLUMN_S)
    lines = [f"0:00  {'screening, all nodes, then pairs':<34}{bar}".rstrip()]
    for name, some in kinds.items():
        first, last = min(one.start_s for one in some), max(one.end_s for one in some)
        begin, end = (screening_s + moment for moment in (first, last))
        minutes = round(begin / 60)
        column, width = round(begin / _COLUMN_S), max(1, round((end - begin) / _COLUMN_S))
        lines.append(f"{minutes // 60}:{minutes % 60:02}  {name:<34}{' ' * column}{'#' * width}")
    done = round((screening_s + planned(partition(nodes)).seconds) / 60)
    return [*lines, f"{done // 60}:{done % 60:02}  done"]


def test_timetable_of_a_thousand_nodes_is_drawn_on_the_page() -> None:
    drawn_there = "\n".join(drawn_lines(1000, 1200.0))
    assert drawn_there in (checkout() / "docs" / "operators.md").read_text(), drawn_there
