"""The course of a screening: what is launched, what is noted, how it goes on after a stop."""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustergate.screening.campaign import Campaign, Task
from clustergate.screening.findings import Screening, analyse
from clustergate.screening.folder import read_screening, troubles
from clustergate.screening.measures import Result
from clustergate.screening.plan import (
    Identity,
    Order,
    Plan,
    PlanError,
    line_of,
    read_log,
    read_plan,
    whole_lines,
    write_plan,
)
from clustergate.screening.simulation import Cluster, observe

NAMES = [f"n{k}" for k in range(8)]
USUAL = {
    "hpl": {"hpl_gflops": 200.0},
    "peaks": {"fma_peak_gflops": 270.0, "triad_gb_s": 20.0},
    "pingpong": {"pingpong_bandwidth_mb_s": 12000.0},
}


def plan_of(**what: Any) -> Plan:
    orders = {k: Order(kind=k, launcher=[], program=["true"], seconds=60.0) for k in USUAL}
    settled: dict[str, Any] = {
        "nonce": "abc",
        "system": "test",
        "nodes": NAMES,
        "slots": 2,
        "identity": Identity("/lib", "MPICH", "/proof.so"),
        "alone": [orders["peaks"], orders["hpl"]],
        "pair": orders["pingpong"],
        "seed": 5,
        "seconds": 1e9,
    }
    return Plan(**{**settled, **what})


class Machine:
    """Launches that were never made: they say what a cluster with known faults would."""

    def __init__(self, cluster: Cluster, alone: dict[str, float] | None = None) -> None:
        self.cluster = cluster
        self.alone = alone or {}
        self.random = np.random.default_rng(1)
        self.batches: list[list[Task]] = []
        self.seconds = 0.0
        self.stop_after = math.inf

    def run(self, tasks: Sequence[Task]) -> Iterator[Result]:
        self.batches.append(list(tasks))
        self.seconds += 10.0
        for task in tasks:
            if not self.stop_after:
                raise KeyboardInterrupt
            self.stop_after -= 1
            yield self.result(task)

    def result(self, task: Task) -> Result:
        kind = task.order.kind
        if len(task.nodes) == 1:
            level = math.log(self.alone.get(task.nodes[0], 1.0)) + self.random.normal(0, 0.01)
        else:
            pair = [NAMES.index(name) for name in task.nodes]
            level = float(observe(self.cluster, [pair], self.random)[0])
        if math.isinf(level):
            return Result(task.nodes, kind, task.turn, {}, "it took longer than 60 s")
        values = {key: value / math.exp(level) for key, value in USUAL[kind].items()}
        return Result(task.nodes, kind, task.turn, values)


def screened(
    plan: Plan, machine: Machine, before: Sequence[Result] = ()
) -> tuple[Screening, list[tuple[str, object]]]:
    noted: list[tuple[str, object]] = []
    campaign = Campaign(
        plan,
        NAMES,
        before,
        machine.run,
        lambda kind, entry: noted.append((kind, entry)),
        lambda: machine.seconds,
    )
    return campaign.run(), noted


def rounds_of(machine: Machine) -> int:
    return sum(len(batch[0].nodes) == 2 for batch in machine.batches)


def test_what_is_too_noisy_is_measured_again_a_few_times() -> None:
    quiet, noisy, hopeless = (Machine(Cluster(8, noise=n)) for n in (0.03, 0.35, 2.0))
    found = [screened(plan_of(most_further=0), one)[0] for one in (quiet, noisy, hopeless)]
    assert rounds_of(quiet) == 7
    assert rounds_of(noisy) > 7
    assert not any("too noisy" in doubt for doubt in found[1].doubts)
    # Until five launches of each say that eight would not be enough.
    assert 4 * 7 < rounds_of(hopeless) <= 5 * 7
    assert any("too noisy" in doubt for doubt in found[2].doubts)
    # Where the nodes alone are quiet, only the pairs are measured again.
    assert all(len(one.batches) == rounds_of(one) + 2 for one in (quiet, noisy, hopeless))


# As a screening of four virtual nodes recorded them while other programs ran: the link of n3 was
# held to 100 Mbit/s.
RECORDED = Path(__file__).parent / "data" / "screening" / "one-node-100mbit-under-load.jsonl"


class Replayed(Machine):
    """Launches that were recorded: those of each node and pair in their order, again and again."""

    def __init__(self) -> None:
        super().__init__(Cluster(4))
        self.recorded: dict[tuple[str, ...], Iterator[Result]] = {}
        results = read_log(RECORDED).results
        for key in {(r.kind, *sorted(r.nodes)) for r in results}:
            same = [r for r in results if (r.kind, *sorted(r.nodes)) == key]
            self.recorded[key] = itertools.cycle(same)

    def result(self, task: Task) -> Result:
        found = next(self.recorded[(task.order.kind, *sorted(task.nodes))])
        return dataclasses.replace(found, nodes=task.nodes, turn=task.turn)


@pytest.mark.parametrize("seed", range(5))
def test_a_plain_fault_under_load_is_named_and_ends_the_screening(seed: int) -> None:
    machine, names = Replayed(), ["n1", "n2", "n3", "n4"]
    orders = {o.kind: o for o in (plan_of().alone[0], plan_of().pair)}
    plan = plan_of(nodes=names, seed=seed, alone=[orders["peaks"]], pair=orders["pingpong"])
    campaign = Campaign(
        plan, names, [], machine.run, lambda kind, entry: None, lambda: machine.seconds
    )
    (finding,) = campaign.run().findings
    assert finding.sentence.startswith("node n3: bandwidth at 4 MiB ")
    assert "about 12" in finding.sentence
    assert "with 3 of 3 partners" in finding.sentence
    # Fewer than the 40 batches that were recorded, after which nobody could tell.
    assert rounds_of(machine) < 40


def test_the_recorded_fault_is_named_from_what_was_recorded() -> None:
    log = read_log(RECORDED)
    (finding,) = analyse(log.names, log.results).findings
    assert finding.sentence.startswith(
        "node n3: bandwidth at 4 MiB 28.04 times lower (about 12.21 MB/s, usual 342.5) with 3 of 3 "
        "partners (18 launches)"
    )


def test_noise_takes_no_time_that_is_kept_for_doubts() -> None:
    machine = Machine(Cluster(8, noise=2.0))
    screened(plan_of(most_further=0, seconds=150.0), machine)
    assert machine.seconds == 120.0


def test_each_batch_is_of_disjoint_nodes_and_every_pair_is_measured() -> None:
    machine = Machine(Cluster(8))
    found, noted = screened(plan_of(), machine)
    assert found.findings == ()
    for batch in machine.batches:
        nodes = [name for task in batch for name in task.nodes]
        assert len(nodes) == len(set(nodes)) == 8
    assert [b[0].order.kind for b in machine.batches][:3] == ["peaks", "hpl", "pingpong"]
    pairs = {frozenset(t.nodes) for b in machine.batches for t in b if len(t.nodes) == 2}
    assert len(pairs) == 28
    numbers = [task.number for batch in machine.batches for task in batch]
    assert len(numbers) == len(set(numbers)) == len(noted)


def test_a_dead_node_is_a_finding_and_not_the_end() -> None:
    found, noted = screened(plan_of(), Machine(Cluster(8, lost=frozenset({3}))))
    assert [f.who for f in found.findings] == ["node n3"]
    assert found.findings[0].failed
    assert sum(isinstance(e, Result) and bool(e.failed) for _, e in noted) >= 7


def test_what_is_in_doubt_is_measured_again_until_it_is_settled() -> None:
    machine = Machine(Cluster(8, links={(2, 6): 2.0}), alone={"n5": 1.5})
    found, _ = screened(plan_of(), machine)
    assert {f.who for f in found.findings} == {"link n2 - n6", "node n5"}
    assert found.doubts == ()
    again = [t.nodes for b in machine.batches for t in b if set(t.nodes) == {"n2", "n6"}]
    assert len(again) > 2
    assert len(machine.batches) < 40


def test_the_time_ends_the_rounds_and_it_is_told() -> None:
    machine = Machine(Cluster(8))
    _, noted = screened(plan_of(seconds=70.0), machine)
    notes = [entry for kind, entry in noted if kind == "note"]
    assert notes == [
        "the time was over after 3 of 7 rounds; 43 % of all pairs were measured",
    ]
    assert len(machine.batches) == 5


def test_a_stopped_screening_goes_on_where_it_was(tmp_path: Path) -> None:
    machine = Machine(Cluster(8, bad_nodes={1: 2.0}), alone={"n1": 2.0})
    machine.stop_after = 23
    path = tmp_path / "results.jsonl"
    with path.open("a") as file:
        campaign = Campaign(
            plan_of(),
            NAMES,
            [],
            machine.run,
            lambda kind, entry: (file.write(line_of(kind, entry)), None)[1],
            lambda: 0.0,
        )
        with pytest.raises(KeyboardInterrupt):
            campaign.run()
        file.write('{"result": {"nodes": ["n0", "n')
    whole_lines(path)
    before = read_log(path).results
    assert len(before) == 23
    machine.stop_after = math.inf
    machine.batches.clear()
    found, _ = screened(plan_of(), machine, before)
    done = {(r.turn, frozenset(r.nodes)) for r in before}
    assert not done & {(t.turn, frozenset(t.nodes)) for b in machine.batches for t in b}
    assert [f.who for f in found.findings] == ["node n1"]


def test_a_single_one_is_measured_alone() -> None:
    machine = Machine(Cluster(8))
    noted: list[object] = []
    plan = plan_of(nodes=["n0"])
    Campaign(plan, ["n0"], [], machine.run, lambda k, e: noted.append(e), lambda: 0.0).run()
    assert len(noted) == 2


def test_a_plan_comes_back_as_it_was_written(tmp_path: Path) -> None:
    plan = plan_of(switches={"n0": "leaf1"}, pair=None, whole=[])
    write_plan(tmp_path, plan)
    assert read_plan(tmp_path / "screening.json") == plan
    (tmp_path / "screening.json").write_text("{}")
    with pytest.raises(PlanError, match="no plan of this version"):
        read_plan(tmp_path / "screening.json")
    with pytest.raises(PlanError, match="cannot be read"):
        read_plan(tmp_path / "missing.json")


def test_a_damaged_line_is_named_and_a_torn_last_one_left_out(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    good = Result(("n0",), "hpl", 0, {"hpl_gflops": 1.0}, "", 2.0)
    path.write_text(line_of("names", ["n0"]) + line_of("result", good) + '{"resul')
    log = read_log(path)
    assert (log.names, log.results, log.ended) == (("n0",), (good,), False)
    path.write_text(line_of("result", good) + "nonsense\n" + line_of("ended", True))
    with pytest.raises(PlanError, match=r"results\.jsonl:2: no result"):
        read_log(path)
    assert read_log(tmp_path / "missing.jsonl").results == ()


def test_pairs_that_were_never_measured_are_in_doubt_and_not_forgotten(tmp_path: Path) -> None:
    plan = plan_of()
    write_plan(tmp_path, plan)
    machine = Machine(Cluster(8))
    alone = [
        machine.result(Task(order, (name,), turn, 0))
        for turn, order in enumerate(plan.alone)
        for name in NAMES
    ]
    lines = [line_of("names", NAMES), *(line_of("result", one) for one in alone)]
    (tmp_path / "results.jsonl").write_text("".join([*lines, line_of("ended", True)]))
    _, log, found = read_screening(tmp_path)
    assert log.ended
    assert found.doubts == ("no pair of nodes was measured; give the screening more time",)
    assert troubles(tmp_path, 0) == list(found.doubts)
    assert troubles(tmp_path, 137) == ["the job of the screening ended with exit status 137"]
