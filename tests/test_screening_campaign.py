"""The course of a screening: what is launched, what is noted, how it goes on after a stop."""

import dataclasses
import datetime
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustergate.benchmarks.budget import Budget
from clustergate.core.model import Evidence, Launch, Verdict
from clustergate.launch.plan import (
    LOG,
    Contender,
    Launched,
    PlanError,
    read_log,
    read_plan,
    whole_lines,
    write_plan,
)
from clustergate.launch.proof.ranks import ProofExpectation
from clustergate.machine.fingerprint import to_record
from clustergate.report.screening import first_screen
from clustergate.run.gate.decision import OPEN, UNJUDGED, decide, screening_evidence
from clustergate.studies.screen.campaign import Campaign, Task
from clustergate.studies.screen.findings import Screening, analyse, ticket
from clustergate.studies.screen.folder import fault_sentences, read_screening
from clustergate.studies.screen.measures import Result
from clustergate.studies.screen.plan import (
    EACH,
    TWO,
    Plan,
    result_of,
)
from clustergate.studies.screen.wording import exit_status
from tools.bench.simulated_clusters import Cluster, observe, recorded, screen

NAMES = [f"n{k}" for k in range(8)]
USUAL = {
    "hpl": {"hpl_gflops": 200.0},
    "peaks": {"fma_peak_gflops": 270.0, "triad_gb_s": 20.0},
    "pingpong": {"pingpong_bandwidth_mb_s": 12000.0},
}


def plan_of(kinds: Sequence[str] = ("peaks", "hpl", "pingpong"), **what: Any) -> Plan:
    settled: dict[str, Any] = {
        "nonce": "abc",
        "system": "test",
        "nodes": NAMES,
        "contenders": [
            Contender(kind, [], ["true"], "", on=TWO if kind == "pingpong" else EACH)
            for kind in kinds
        ],
        "seed": 5,
        "budget": Budget(seconds=what.pop("seconds", 1e9)),
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
        kind = task.contender.name
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
) -> tuple[Screening, list[str]]:
    noted: list[str] = []
    campaign = Campaign(
        plan,
        NAMES,
        before,
        machine.run,
        noted.append,
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
    # Until four launches of most pairs say that eight would not be enough.
    assert 3 * 7 < rounds_of(hopeless) <= 4 * 7
    assert any("too noisy" in doubt for doubt in found[2].doubts)
    # Where the nodes alone are quiet, only the pairs are measured again.
    assert all(len(one.batches) == rounds_of(one) + 2 for one in (quiet, noisy, hopeless))


def test_more_launches_of_kernels_and_pairs_made() -> None:
    """More launches of raw kernels and pairs are made where they are asked for."""
    usual, more, late = (Machine(Cluster(8, noise=0.03)) for _ in range(3))
    screened(plan_of(), usual)
    screened(plan_of(launches=14), more)
    kinds = [[batch[0].contender.name for batch in one.batches] for one in (usual, more)]
    few, many = ([k.count(kind) for kind in ("peaks", "hpl", "pingpong")] for k in kinds)
    assert few == [1, 1, 7]
    assert many[:2] == [14, 1]
    # Until most of the pairs were launched twice.
    assert 11 <= many[2] <= 14
    # Not beyond its time, and not once somebody is accused.
    screened(plan_of(launches=14, seconds=200.0), late)
    assert late.seconds <= 200.0
    bad = Machine(Cluster(8, noise=0.03), alone={"n3": 2.0})
    assert screened(plan_of(launches=14), bad)[0].findings
    assert len(bad.batches) < len(more.batches)


# As a screening of four virtual nodes recorded them while other programs ran: the link of n3 was
# held to 100 Mbit/s.
RECORDED = Path(__file__).parent / "data" / "screening" / "one-node-100mbit-under-load.jsonl"


class Replayed(Machine):
    """Launches that were recorded: those of each node and pair in their order, again and again."""

    def __init__(self) -> None:
        super().__init__(Cluster(4))
        self.launching_s = 0.0
        self.recorded: dict[tuple[str, ...], Iterator[Result]] = {}
        results = recorded(RECORDED)[1]
        for key in {(r.kind, *sorted(r.nodes)) for r in results}:
            same = [r for r in results if (r.kind, *sorted(r.nodes)) == key]
            self.recorded[key] = itertools.cycle(same)

    def run(self, tasks: Sequence[Task]) -> Iterator[Result]:
        results = list(super().run(tasks))
        self.launching_s += max(result.seconds for result in results)
        yield from results

    def result(self, task: Task) -> Result:
        key = (task.contender.name, *sorted(task.nodes))
        found = next(self.recorded[key])
        return dataclasses.replace(found, nodes=task.nodes, turn=task.turn)


@pytest.mark.parametrize("seed", range(5))
def test_a_plain_fault_under_load_is_named_and_ends_the_screening(seed: int) -> None:
    machine, names = Replayed(), ["n1", "n2", "n3", "n4"]
    plan = plan_of(["peaks", "pingpong"], nodes=names, seed=seed)
    campaign = Campaign(plan, names, [], machine.run, print, lambda: machine.seconds)
    (finding,) = campaign.run().findings
    assert finding.sentence.startswith("node n3: bandwidth at 4 MiB ")
    assert "about 12" in finding.sentence
    assert "with 3 of 3 partners" in finding.sentence
    assert rounds_of(machine) == 7
    # What these very launches took, two pairs at a time.
    assert machine.launching_s < 60.0


def test_plain_fault_named_before_measuring_again() -> None:
    machine, names = Machine(Cluster(4, bad_nodes={2: 40.0}), alone={"n0": 1.3}), NAMES[:4]
    campaign = Campaign(
        plan_of(["peaks", "pingpong"], nodes=names), names, [], machine.run, print, lambda: 0.0
    )
    assert [finding.suspect for finding in campaign.run().findings] == ["node n2"]
    kinds = [batch[0].contender.name for batch in machine.batches]
    # Seven rounds are the fewest that ranks can accuse one of four nodes by.
    assert kinds == ["peaks", *["pingpong"] * 7]


def test_node_slow_at_times_launched_until_named() -> None:
    machine, names = Machine(Cluster(4, bad_nodes={1: 5.0}, acts=1 / 3)), NAMES[:4]
    plan = plan_of(["peaks", "pingpong"], nodes=names)
    found = Campaign(plan, names, [], machine.run, print, lambda: 0.0).run()
    assert [finding.suspect for finding in found.findings] == ["node n1"]
    assert "the worst third of" in found.findings[0].sentence


@pytest.mark.parametrize("seed", range(6))
def test_a_link_that_was_slow_at_times_leaves_no_clean_screening(seed: int) -> None:
    machine, names = Machine(Cluster(4, links={(0, 2): 5.0}, acts=1 / 3)), NAMES[:4]
    machine.random = np.random.default_rng(seed)
    plan = plan_of(["peaks", "pingpong"], nodes=names)
    campaign = Campaign(plan, names, [], machine.run, print, lambda: 0.0)
    found = campaign.run()
    slow = [r for r in campaign.results if r.values.get("pingpong_bandwidth_mb_s", 1e9) < 5000]
    assert {frozenset(r.nodes) for r in slow} <= {frozenset(("n0", "n2"))}
    assert [f.suspect for f in found.findings] == ["link n0 - n2"] or found.doubts or not slow


def test_two_bad_nodes_of_four_are_no_clean_screening() -> None:
    machine, names = Machine(Cluster(4, bad_nodes={1: 3.0, 3: 3.0})), NAMES[:4]
    plan = plan_of(["peaks", "pingpong"], nodes=names)
    found = Campaign(plan, names, [], machine.run, print, lambda: 0.0).run()
    assert found.findings == ()
    (doubt,) = found.doubts
    assert "much better than all others: n0 - n2; so either most are slow (n1, n3)" in doubt


def test_the_recorded_fault_is_named_from_what_was_recorded() -> None:
    (finding,) = analyse(*recorded(RECORDED)).findings
    assert finding.sentence.startswith(
        "node n3: bandwidth at 4 MiB 28 times lower (about 12.2 MB/s, typically 342) with 3 of 3 "
        "partners (18 launches): 12.1 to 12.3 MB/s, elsewhere 222 to 419;"
    )


def test_noise_takes_no_time_that_is_kept_for_doubts() -> None:
    machine = Machine(Cluster(8, noise=2.0))
    screened(plan_of(most_further=0, seconds=150.0), machine)
    assert machine.seconds == 120.0


def test_batches_of_disjoint_nodes_cover_every_pair() -> None:
    machine = Machine(Cluster(8))
    found, _ = screened(plan_of(), machine)
    assert found.findings == ()
    for batch in machine.batches:
        nodes = [name for task in batch for name in task.nodes]
        assert len(nodes) == len(set(nodes)) == 8
    assert [b[0].contender.name for b in machine.batches][:3] == ["peaks", "hpl", "pingpong"]
    pairs = {frozenset(t.nodes) for b in machine.batches for t in b if len(t.nodes) == 2}
    assert len(pairs) == 28
    numbers = [task.number for batch in machine.batches for task in batch]
    assert len(numbers) == len(set(numbers))


def test_a_dead_node_is_a_finding_and_not_the_end() -> None:
    machine = Machine(Cluster(8, lost=frozenset({3})))
    found, _ = screened(plan_of(), machine)
    assert [f.suspect for f in found.findings] == ["node n3"]
    assert found.findings[0].failed
    assert sum("n3" in task.nodes for batch in machine.batches for task in batch) >= 9


def test_where_nothing_works_nothing_is_launched_again() -> None:
    machine, names = Machine(Cluster(4, lost=frozenset(range(4)))), NAMES[:4]
    plan = plan_of(["peaks", "pingpong"], nodes=names)
    found = Campaign(plan, names, [], machine.run, print, lambda: 0.0).run()
    assert rounds_of(machine) == 3
    assert all("every launch failed" in doubt for doubt in found.doubts)


def test_a_few_of_many_pairs_are_launched_again_rather_than_all() -> None:
    """The noise of one launch would hide a link that is twice as slow, of the worst of them not."""
    cluster = Cluster(32, noise=0.17, links={(2, 6): 3.0})
    outcome = screen(cluster, None, np.random.default_rng(1))
    assert [finding.suspect for finding in outcome.screening.findings] == ["link 2 - 6"]
    assert outcome.screening.doubts == ()
    assert outcome.rounds == 31
    assert outcome.further < 31


def test_pairs_repeated_where_more_rounds_are_asked() -> None:
    """Pairs are launched again and again where more rounds are asked for."""
    outcome = screen(Cluster(8), 18, np.random.default_rng(1))
    launched = Counter(frozenset(r.nodes) for r in outcome.results if len(r.nodes) == 2)
    assert outcome.rounds == 18
    # Twice seven rounds of all pairs, and four of some.
    assert set(launched.values()) == {2, 3}


@pytest.mark.parametrize("seed", [3, 7, 9])
def test_link_slow_at_times_named_after_many_launches(
    seed: int,
) -> None:
    """A link of many that is slow at times is named once it was launched often."""
    cluster = Cluster(14, links={(0, 2): 5.0}, acts=1 / 3)
    random = np.random.default_rng(seed)
    outcome = screen(cluster, 7 * 13, random)
    assert [finding.suspect for finding in outcome.screening.findings] == ["link 0 - 2"]


def test_what_is_in_doubt_is_measured_again_until_it_is_settled() -> None:
    machine = Machine(Cluster(8, links={(2, 6): 3.0}), alone={"n5": 1.5})
    found, _ = screened(plan_of(), machine)
    assert {f.suspect for f in found.findings} == {"link n2 - n6", "node n5"}
    assert found.doubts == ()
    again = [t.nodes for b in machine.batches for t in b if set(t.nodes) == {"n2", "n6"}]
    assert len(again) > 2
    assert len(machine.batches) < 40


def test_the_time_ends_the_rounds_and_it_is_told() -> None:
    machine = Machine(Cluster(8))
    _, notes = screened(plan_of(seconds=70.0), machine)
    assert notes == [
        "the time budget ran out after 3 of 7 rounds; 43 % of all pairs were measured",
    ]
    assert len(machine.batches) == 5


def noted(order: int, result: Result) -> str:
    launch = Launch(order, 0.0, result.seconds)
    launched = Launched(
        *(result.kind, result.turn, 0, launch),
        nodes=result.nodes,
        values=result.values,
        failed=result.failed,
    )
    return json.dumps(dataclasses.asdict(launched)) + "\n"


def test_a_stopped_screening_goes_on_where_it_was(tmp_path: Path) -> None:
    machine = Machine(Cluster(8, bad_nodes={1: 2.0}), alone={"n1": 2.0})
    machine.stop_after = 23
    orders = itertools.count()
    with (tmp_path / LOG).open("a") as file:

        def run(tasks: Sequence[Task]) -> Iterator[Result]:
            for result in machine.run(tasks):
                file.write(noted(next(orders), result))
                yield result

        campaign = Campaign(plan_of(), NAMES, [], run, print, lambda: 0.0)
        with pytest.raises(KeyboardInterrupt):
            campaign.run()
        file.write('{"contender": "hpl", "nodes": ["n0", "n')
    whole_lines(tmp_path)
    before = list(map(result_of, read_log(tmp_path).launches))
    assert len(before) == 23
    machine.stop_after = math.inf
    machine.batches.clear()
    found, _ = screened(plan_of(), machine, before)
    done = {(r.turn, frozenset(r.nodes)) for r in before}
    assert not done & {(t.turn, frozenset(t.nodes)) for b in machine.batches for t in b}
    assert [f.suspect for f in found.findings] == ["node n1"]


def kept(folder: Path, plan: Plan, machine: Machine, seconds: Callable[[], float]) -> Path:
    """Screen a machine to its end, and return the folder with the plan and the log of that."""
    orders = itertools.count()
    where = folder / "screening"
    where.mkdir()
    write_plan(where, plan)
    with (where / LOG).open("a") as file:
        file.write(json.dumps({"names": NAMES}) + "\n")

        def run(tasks: Sequence[Task]) -> Iterator[Result]:
            for result in machine.run(tasks):
                file.write(noted(next(orders), result))
                yield result

        Campaign(plan, NAMES, [], run, print, seconds).run()
        file.write('{"ended": true}\n')
    return where


def test_a_quick_one_launches_once_on_each_and_doubts_nothing(tmp_path: Path) -> None:
    machine = Machine(Cluster(8), alone={"n1": 1.3})
    where = kept(tmp_path, plan_of(("peaks",), quick=True), machine, lambda: 0.0)
    assert [len(batch) for batch in machine.batches] == [8]
    _, log, found = read_screening(where)
    assert (found.quick, found.doubts, exit_status(log, found)) == (True, (), 0)
    # A node that is neither as the others nor as before is no good answer.
    astray = dataclasses.replace(found, astray=("n4 is unlike the rest of its kind: mounts",))
    assert exit_status(log, astray) == 1
    lines = first_screen(log, astray, "r1").lines()
    assert lines[0] == " ✗ FAULTS FOUND: n4 is unlike the rest of its kind: mounts"
    evidence = screening_evidence(astray, ended=True)
    assert [one.verdict for one in evidence] == [Verdict.INCONCLUSIVE]


def test_a_node_without_its_folder_is_told_by_a_quick_one(tmp_path: Path) -> None:
    why = "it ended with exit status 127; it said: sh: /apps: No such file or directory"
    results = [
        Result((name,), "peaks", 0, {}, why)
        if name == "n4"
        else Result((name,), "peaks", 0, USUAL["peaks"])
        for name in NAMES
    ]
    write_plan(tmp_path, plan_of(("peaks",), quick=True))
    lines = [json.dumps({"names": NAMES}) + "\n", *map(noted, itertools.count(), results)]
    (tmp_path / LOG).write_text("".join([*lines, '{"ended": true}\n']))
    _, log, found = read_screening(tmp_path)
    assert exit_status(log, found) == 1
    assert f"n4 failed: {why}" in "\n".join(first_screen(log, found, "r1").lines())


TCP = "network", "tcp_rmem"
USUAL_TCP, CHANGED_TCP = "4096 131072 6291456", "4096 4096 4096"


def test_what_differs_on_an_accused_node_stands_in_the_accusation(tmp_path: Path) -> None:
    """It said to check clocks, memory, adapter and cable, and held the states of all nodes."""
    machine = Machine(Cluster(8, bad_nodes={1: 8.0}))
    where = kept(tmp_path, plan_of(), machine, lambda: machine.seconds)
    (before,) = read_screening(where)[2].findings
    assert (before.suspect, "unlike" in before.advice) == ("node n1", False)
    group, name = TCP
    lines = [
        {"digest": value, "nodes": nodes, **to_record({group: {name: value}})}
        for value, nodes in (
            (USUAL_TCP, ["n0", *NAMES[2:]]),
            # By its longer name; and what another node has that nobody accuses.
            (CHANGED_TCP, ["n1.cluster"]),
        )
    ]
    (tmp_path / "nodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, log, found = read_screening(where)
    (finding,) = found.findings
    assert finding.advice.startswith("n1 is unlike the rest: ")
    assert f"{USUAL_TCP} -> {CHANGED_TCP}; put that right and screen again, or " in finding.advice
    assert finding.advice.endswith("adapter and cable")
    assert f"   {finding.unlike}" in first_screen(log, found, "r1").lines()
    # The gate says it, too.
    assert "; n1 is unlike the rest: " in finding.sentence
    assert finding.advice in ticket(found, "alpha", datetime.datetime(2026, 12, 3))


def test_a_single_one_is_measured_alone() -> None:
    machine = Machine(Cluster(8))
    Campaign(plan_of(nodes=["n0"]), ["n0"], [], machine.run, print, lambda: 0.0).run()
    assert [[task.nodes for task in batch] for batch in machine.batches] == [[("n0",)]] * 2


def test_a_plan_comes_back_as_it_was_written(tmp_path: Path) -> None:
    expected = ProofExpectation("", 2, "/lib", "MPICH", by_srun=True)
    pair = Contender("pingpong", ["srun"], ["x"], "/proof.so", expected=expected, on=TWO)
    plan = plan_of(contenders=[pair], switches={"n0": "leaf1"})
    write_plan(tmp_path, plan)
    written = (tmp_path / "plan.json").read_text()
    back = read_plan(tmp_path / "plan.json", Plan)
    assert (back.pair, back.switches, back.budget) == (pair, plan.switches, plan.budget)
    write_plan(tmp_path, back)
    assert (tmp_path / "plan.json").read_text() == written
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(PlanError, match="not a plan of this version"):
        read_plan(tmp_path / "plan.json", Plan)
    with pytest.raises(PlanError, match="cannot be read"):
        read_plan(tmp_path / "missing.json", Plan)


def test_a_damaged_line_is_named_and_a_torn_last_one_left_out(tmp_path: Path) -> None:
    good = Result(("n0",), "hpl", 0, {"hpl_gflops": 1.0}, "", 2.0)
    assert not read_log(tmp_path).launches
    (tmp_path / LOG).write_text('{"names": ["n0"]}\n' + noted(0, good) + '{"resul')
    assert list(map(result_of, read_log(tmp_path).launches)) == [good]
    (tmp_path / LOG).write_text(noted(0, good) + 'nonsense\n{"ended": true}\n')
    with pytest.raises(PlanError, match=rf"{LOG}:2: not an entry"):
        read_log(tmp_path)


def test_unmeasured_pairs_are_in_doubt(tmp_path: Path) -> None:
    plan = plan_of()
    write_plan(tmp_path, plan)
    machine = Machine(Cluster(8))
    alone = [
        machine.result(Task(contender, (name,), turn, 0))
        for turn, contender in enumerate(plan.launched(EACH))
        for name in NAMES
    ]
    lines = [json.dumps({"names": NAMES}) + "\n", *map(noted, itertools.count(), alone)]
    (tmp_path / LOG).write_text("".join([*lines, '{"ended": true}\n']))
    _, log, found = read_screening(tmp_path)
    assert log.ended
    assert found.doubts == ("no pair of nodes was measured; give the screening more time",)
    errors = tmp_path / "rfm_job.err"
    assert fault_sentences(tmp_path, 0, errors) == list(found.doubts)
    lines[0] = json.dumps({"names": [*NAMES, "n99"]}) + "\n"
    (tmp_path / LOG).write_text("".join([*lines, '{"ended": true}\n']))
    assert any(line.endswith("not measured: n99") for line in fault_sentences(tmp_path, 0, errors))
    two = [line for line in lines[1:] if json.loads(line)["nodes"][0] in NAMES[:2]]
    names = json.dumps({"names": NAMES[:2]}) + "\n"
    (tmp_path / LOG).write_text("".join([names, *two, '{"ended": true}\n']))
    assert "it takes 3 nodes to judge each other" in fault_sentences(tmp_path, 0, errors)
    ended = "the screening job ended with exit status"
    assert fault_sentences(tmp_path, 137, errors) == [f"{ended} 137"]
    errors.write_text("clustergate: none of the nodes to screen is in the allocation (n[1-4])\n")
    assert fault_sentences(tmp_path, 2, errors) == [
        f"{ended} 2; its last words: clustergate: none of the nodes to screen is in the allocation "
        "(n[1-4])"
    ]


@pytest.mark.parametrize(
    ("nodes", "listed", "status"), [(8, 0, UNJUDGED), (8, 8, OPEN), (3, 0, OPEN)]
)
def test_unknown_switches_open_no_gate_where_they_could_be_slow(
    tmp_path: Path, nodes: int, listed: int, status: int
) -> None:
    """Without Slurm's answer on switches no gate opens where they could be slow."""
    names = NAMES[:nodes]
    switches = dict.fromkeys(names[:listed], "s1")
    plan = plan_of(no_topology="Slurm did not tell", switches=switches, nodes=names)
    write_plan(tmp_path, plan)
    machine = Machine(Cluster(8))
    made = [
        machine.result(Task(contender, where, turn, 0))
        for turn, contender in enumerate(plan.contenders)
        for where in ([(names[0], names[1])] if contender.on == TWO else [(n,) for n in names])
    ]
    lines = [json.dumps({"names": names}) + "\n", *map(noted, itertools.count(), made)]
    (tmp_path / LOG).write_text("".join([*lines, '{"ended": true}\n']))
    _, log, found = read_screening(tmp_path)
    told = [*found.doubts, *log.notes]
    assert ("Slurm did not tell" in told) is (listed == 0)
    doubts = [one for one in screening_evidence(found, ended=True) if "Slurm" in str(one.sentence)]
    assert decide(doubts or [Evidence("screening", Verdict.PASS, ())]).status == status
