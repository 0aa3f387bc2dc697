import dataclasses
import json
import math

import pytest

from clustergate.benchmarks.budget import ONE_LAUNCH, TWO_LAUNCHES, Budget
from clustergate.benchmarks.registry import every_benchmark
from clustergate.core.files.stored import encode
from clustergate.core.model import Better, ClustergateError, Estimate, Launch, Sample
from clustergate.core.reasons import Reason, in_words
from clustergate.launch.disturbance import (
    NodeLoad,
    most_disturbed,
    node_loads,
    without_moved_cores,
    worst_load,
)
from clustergate.launch.estimation import doubt_of, sampled_figures, widest_interval
from clustergate.launch.plan import (
    LOG,
    Aside,
    Contender,
    Launched,
    Plan,
    PlanError,
    read_log,
    read_plan,
    write_plan,
)
from clustergate.launch.proof.ranks import RankProof, by_launch, read_proofs
from clustergate.launch.stopping import (
    fit_to_time_limit,
    fixed_launches,
    is_enough,
    undisturbed_needed,
)
from clustergate.machine.load import DISTURBING_CORES
from clustergate.sites.modes import effort_of, mode_named
from clustergate.stats.modality import Modes


def never() -> float:
    raise AssertionError("the widest interval costs time and must not be asked for")


# --- stopping ---


@pytest.mark.parametrize(
    ("made", "undisturbed", "expected"),
    [(0, 0, False), (2, 2, False), (3, 3, True), (3, 2, False), (5, 2, False), (6, 2, True)],
)
def test_disturbed_launches_are_made_up_for_while_the_budget_lasts(made, undisturbed, expected):
    budget = Budget(at_least=3, at_most=6, seconds=100.0)
    assert is_enough(budget, [1.0] * made, undisturbed, never) is expected


def test_a_budget_is_spent_before_the_job_ends():
    budget = Budget(at_most=99, seconds=3600.0, spend_all=True, worth_half_more=9)
    assert fit_to_time_limit(budget, 24 * 3600) == budget
    short = fit_to_time_limit(budget, 600)
    # Up to half more is spent, and the last launch is then to end.
    assert is_enough(short, [100.0] * 4, 4, never)
    assert 1.5 * short.seconds < 600


@pytest.mark.parametrize(
    ("made", "undisturbed", "expected"), [(0, 0, False), (1, 1, False), (4, 0, True), (2, 2, True)]
)
def test_a_budget_that_is_spent_asks_for_seconds_alone(made, undisturbed, expected):
    budget = Budget(at_most=4, seconds=2.5, spend_all=True)
    assert is_enough(budget, [1.0] * made, undisturbed, never) is expected
    assert is_enough(budget, [10.0], 1, never)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [([15.0] * 6, False), ([15.0] * 8, False), ([15.0] * 9, True), ([18.0] * 5, True)],
)
def test_half_more_spent_where_it_decides(seconds, expected):
    budget = Budget(at_most=30, seconds=100.0, spend_all=True, worth_half_more=9)
    assert is_enough(budget, seconds, 0, never) is expected


def test_the_next_launch_must_end_within_the_seconds():
    budget = Budget(at_least=2, at_most=10, seconds=10.0)
    assert not is_enough(budget, [1.0, 4.0], 0, never)
    assert is_enough(budget, [1.0, 5.0], 0, never)


def test_what_a_verdict_needs_is_launched_whatever_it_costs():
    budget = Budget(at_least=3, at_most=10, seconds=1.0)
    assert not is_enough(budget, [5.0, 5.0], 2, never)
    assert is_enough(budget, [5.0, 5.0, 5.0], 0, never)


@pytest.mark.parametrize(("width", "expected"), [(0.01, True), (0.03, False), (None, False)])
def test_wide_intervals_ask_for_more(width, expected):
    budget = Budget(at_least=2, at_most=10, seconds=100.0, precision=0.02)
    assert is_enough(budget, [1.0, 1.0], 2, lambda: width) is expected
    assert is_enough(budget, [1.0] * 10, 10, never)


def test_one_launch_is_one_launch():
    assert not is_enough(ONE_LAUNCH, [], 0, never)
    assert is_enough(ONE_LAUNCH, [1.0], 0, never)


# --- what disturbed a launch ---


def test_launch_alone_on_its_node_told_from_one_beside_others(data):
    (alone,) = node_loads(read_proofs(data / "proof" / "alone"))
    (beside,) = node_loads(read_proofs(data / "proof" / "beside-others"))
    assert not alone.disturbed
    assert alone.lost_cores < DISTURBING_CORES
    assert beside.disturbed
    assert 0.6 < beside.lost_cores < 0.75
    assert str(beside.why) == "others used 0.68 of 2 cores of vm"


def later(proof: RankProof, seconds: float, own_s: float, ticks: dict[str, int]) -> RankProof:
    """Return the record as if the rank had ended so much after it began."""
    begun = proof.at_init
    assert begun is not None
    assert begun.cpu_times is not None
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    before = [int(word) for word in begun.cpu_times.split()[1:9]]
    after = [old + ticks.get(name, 0) for name, old in zip(names, before, strict=True)]
    ended = dataclasses.replace(
        begun,
        monotonic_s=begun.monotonic_s + seconds,
        realtime_s=begun.realtime_s + seconds,
        user_s=begun.user_s + own_s,
        cpu_times="cpu  " + " ".join(map(str, after)) + " 0 0",
    )
    return dataclasses.replace(proof, at_finalize=ended)


def alone_ranks(data, **changes):
    ranks = read_proofs(data / "proof" / "mpich-imb")
    first = ranks[0].at_init
    return [later(dataclasses.replace(rank, at_init=first), **changes) for rank in ranks]


def test_what_the_ranks_did_not_do_others_did(data):
    ranks = alone_ranks(data, seconds=10.0, own_s=9.0, ticks={"user": 1700, "system": 300})
    (load,) = node_loads(ranks)
    assert load.others_cores == pytest.approx(0.2)
    assert load.stolen_cores == 0.0
    assert load.disturbed


def test_stolen_time_is_told_by_itself_and_interrupts_are_nobodys(data):
    ticks = {"user": 2000, "softirq": 500, "irq": 50, "steal": 100}
    (load,) = node_loads(alone_ranks(data, seconds=10.0, own_s=10.0, ticks=ticks))
    assert load.others_cores == 0.0
    assert load.stolen_cores == pytest.approx(0.1)
    stolen = "others used 0.10 of 2 cores of vm, 0.10 of them stolen by the hypervisor"
    assert str(load.why) == stolen


def test_counters_of_whole_ticks_cannot_accuse_anyone_of_two(data):
    (load,) = node_loads(alone_ranks(data, seconds=0.1, own_s=0.09, ticks={"user": 20}))
    assert load.lost_cores == pytest.approx(0.2)
    assert not load.disturbed


def test_ranks_that_begin_one_after_the_other_are_no_disturbance(data):
    first, second = alone_ranks(data, seconds=1.0, own_s=1.0, ticks={"user": 200})
    assert second.at_init is not None
    # It has worked for 0.4 s before it says so.
    late = dataclasses.replace(
        second.at_init, monotonic_s=second.at_init.monotonic_s + 0.4, user_s=0.4
    )
    assert second.at_finalize is not None
    ended = dataclasses.replace(second.at_finalize, user_s=1.0)
    second = dataclasses.replace(second, at_init=late, at_finalize=ended)
    (load,) = node_loads([first, second])
    assert load.others_cores == pytest.approx(0.0, abs=0.01)


def test_how_long_a_rank_can_have_been_kept_off_its_core(data):
    (beside,) = node_loads(read_proofs(data / "proof" / "beside-others"))
    assert beside.cores == 2
    assert 0.3 < beside.kept_off <= beside.lost_cores
    assert beside.all_on <= 1 - beside.kept_off
    (alone,) = node_loads(read_proofs(data / "proof" / "alone"))
    assert alone.kept_off < DISTURBING_CORES


@pytest.mark.parametrize(
    ("own_s", "ticks", "kept_off", "all_on"),
    [
        # A neighbour took half of both cores, or no rank lost anything.
        ((5.0, 5.0), {"user": 2000}, 0.5, 0.25),
        ((10.0, 10.0), {"user": 2000}, 0.0, 1.0),
        # One rank lost most of its core.
        ((1.0, 10.0), {"user": 2000}, 0.9, 0.1),
        # Ranks that sleep were kept off for no longer than others worked.
        ((2.0, 10.0), {"user": 1300}, 0.1, 0.9),
        # What was stolen may have been stolen from any of them.
        ((10.0, 10.0), {"user": 2000, "steal": 200}, 0.2, 0.64),
        # Others beside the ranks share with them what cores share: one of three who work.
        ((10.0, 10.0), {"user": 3000}, 1 / 3, 2 / 3),
    ],
)
def test_rank_kept_off_when_others_computed(data, own_s, ticks, kept_off, all_on):
    first = read_proofs(data / "proof" / "mpich-imb")[0].at_init
    ranks = [
        later(dataclasses.replace(rank, at_init=first), 10.0, own, ticks)
        for rank, own in zip(read_proofs(data / "proof" / "mpich-imb"), own_s, strict=True)
    ]
    (load,) = node_loads(ranks)
    assert (load.kept_off, load.all_on) == pytest.approx((kept_off, all_on))


def on_a_large_node(data, others_s, first_rank_s=10.0):
    """Return the load of 128 ranks that work for 10 s each, all but the first without a pause."""
    one = read_proofs(data / "proof" / "mpich-imb")[0]
    ranks = [dataclasses.replace(one, rank=rank) for rank in range(128)]
    own_s = [first_rank_s, *[10.0] * 127]
    ticks = {"user": round(100 * (sum(own_s) + others_s))}
    (load,) = node_loads(
        [later(rank, 10.0, own, ticks) for rank, own in zip(ranks, own_s, strict=True)]
    )
    return load


def test_the_daemons_of_a_large_node_disturb_nobody(data):
    daemons = on_a_large_node(data, others_s=5.0)
    assert daemons.lost_cores == pytest.approx(0.5)
    assert not daemons.disturbed
    # All that they can have taken is what of all work was theirs.
    assert daemons.kept_off == pytest.approx(0.5 / 128.5)
    assert on_a_large_node(data, others_s=27.0).disturbed


def test_one_rank_of_many_that_lost_its_core_is_a_disturbance(data):
    held_up = on_a_large_node(data, others_s=5.0, first_rank_s=5.0)
    assert held_up.lost_cores == pytest.approx(0.5)
    assert held_up.disturbed
    assert held_up.kept_off == pytest.approx(0.5)


def test_nodes_that_share_a_kernel_are_one(data):
    loads = node_loads(read_proofs(data / "proof" / "two-nodes"))
    assert [load.host for load in loads] == ["node1"]
    # The same ranks, had one of them another kernel: it booted at another moment.
    one, other = read_proofs(data / "proof" / "two-nodes")
    assert other.at_init is not None
    elsewhere = dataclasses.replace(other.at_init, realtime_s=other.at_init.realtime_s + 60.0)
    loads = node_loads([one, dataclasses.replace(other, at_init=elsewhere)])
    assert [load.host for load in loads] == ["node1", "node2"]


def test_of_a_killed_rank_nothing_is_known(data):
    assert node_loads(read_proofs(data / "proof" / "killed")) == []
    assert worst_load([]) is None


def test_the_worst_node_counts():
    quiet = NodeLoad("n1", 10.0, 0.0, 0.0)
    busy = NodeLoad("n2", 10.0, 0.0, 1.2)
    assert worst_load([quiet, busy]) is busy


OTHERS = in_words("others used a core")


def launch(
    order: int,
    distance: float | None = None,
    disturbed: Reason | None = None,
    lost: float = 0.0,
):
    return Launch(order, 0.0, 1.0, "vm", lost, 0.0, distance, disturbed)


def test_launches_on_distant_cores_marked():
    made = [launch(0, 310.0), launch(1, 52.0), launch(2, 70.0), launch(3, None)]
    marked = without_moved_cores(made, 52.0)
    assert [bool(found.disturbed) for found in marked] == [True, False, False, False]
    assert [found.far for found in marked] == [pytest.approx(310 / 52), 1.0, 1.0, 1.0]
    (crowded,) = without_moved_cores([launch(0, 310.0, in_words("others"), 0.5)], 52.0, 50.0)
    assert str(crowded.disturbed) == "others"
    assert crowded.far == pytest.approx(6.2)
    assert str(marked[0].disturbed).startswith("core-to-core latency was 6.0 x")


def test_all_distant_launches_marked_by_the_baselines_distance():
    """Launches that are all far are marked by the distance of the baseline."""
    made = [launch(0, 310.0), launch(1, 312.0), launch(2, None)]
    assert not any(found.disturbed for found in without_moved_cores(made, 310.0))
    assert not any(found.disturbed for found in without_moved_cores(made, 310.0, 300.0))
    marked = without_moved_cores(made, 310.0, 50.0)
    assert [bool(found.disturbed) for found in marked] == [True, True, False]
    assert "6.2 x the baseline's" in str(marked[0].disturbed)
    # Cores that are nearer than ever are no disturbance.
    near = without_moved_cores([launch(0, 50.0), launch(1, 310.0)], 50.0, 300.0)
    assert [bool(found.disturbed) for found in near] == [False, True]


def test_without_distances_nothing_is_moved():
    made = [launch(0), launch(1)]
    assert without_moved_cores(made, None) == made
    assert without_moved_cores([], None) == []


# --- what the launches say together ---
def test_most_disturbed_launch_beside_others_before_distance():
    """The most disturbed launch is that beside others else that on the furthest cores."""
    apart = [launch(0, 81.0, None, 0.03), launch(1, 310.0, None, 0.01), launch(2, 52.0, None, 0.09)]
    marked = without_moved_cores(apart, 52.0)
    assert str(most_disturbed(marked)).startswith("core-to-core latency was 6.0 x")
    loads = [NodeLoad("n17", 10.0, others_cores=lost, stolen_cores=0.0) for lost in (0.4, 0.7)]
    beside = [launch(3 + at, 52.0, load.why, load.lost_cores) for at, load in enumerate(loads)]
    assert str(most_disturbed([*marked, *beside])).startswith("others used 0.70")
    assert most_disturbed([launch(0, 52.0)]) is None


def sample(value: float, order: int, better: Better = Better.LOWER, bytes_: int = 8) -> Sample:
    return Sample("PingPong", "latency_us", "us", better, {"bytes": bytes_}, value, order)


def test_the_best_of_the_undisturbed_launches_is_the_estimate():
    samples = [sample(value, order) for order, value in enumerate((0.8, 0.9, 0.3, 0.7))]
    (found,) = sampled_figures(
        samples, [launch(0), launch(1), launch(2, None, OTHERS), launch(3)], 3
    )
    assert found.estimate == Estimate(0.7, 0.7, 0.8, (1 - 1 / 3) ** 2, 3)
    assert found.excuse is None


def test_where_more_is_better_the_best_is_the_most():
    samples = [sample(value, order, Better.HIGHER) for order, value in enumerate((80.0, 90.0))]
    (found,) = sampled_figures(samples, [launch(0), launch(1)], 2)
    assert found.estimate.value == 90.0


def test_the_two_best_launches_are_the_ends_of_the_interval():
    samples = [sample(value, order) for order, value in enumerate((3.0, 1.0, 9.0, 1.1))]
    (found,) = sampled_figures(samples, [launch(order) for order in range(4)], 3)
    assert (found.estimate.value, found.estimate.low, found.estimate.high) == (1.0, 1.0, 1.1)
    assert math.isclose(found.estimate.confidence, 0.75**3)
    samples = [sample(v, o, Better.HIGHER) for o, v in enumerate((80.0, 90.0, 10.0))]
    (found,) = sampled_figures(samples, [launch(order) for order in range(3)], 3)
    assert (found.estimate.value, found.estimate.low, found.estimate.high) == (90.0, 80.0, 90.0)


def test_one_launch_has_no_interval():
    (found,) = sampled_figures([sample(0.8, 0)], [launch(0)], 1)
    assert found.estimate == Estimate(0.8, None, None, 0.0, 1)


def test_sizes_are_figures_of_their_own():
    samples = [sample(order + size, order, bytes_=size) for order in (0, 1) for size in (8, 64)]
    found = sampled_figures(samples, [launch(0), launch(1)], 2)
    assert [(f.sample.conditions["bytes"], f.estimate.value) for f in found] == [(8, 8), (64, 64)]


def test_too_few_undisturbed_launches_name_the_worst():
    launches = [
        launch(0),
        launch(1, None, in_words("others used 0.30 cores of n17"), 0.3),
        launch(2, None, in_words("others used 1.00 cores of n18"), 1.0),
    ]
    (found,) = sampled_figures([sample(0.8, 0)], launches, 3)
    assert found.excuse is not None
    assert str(found.excuse.doubt) == (
        "2 of 3 launches were disturbed (at worst others used 1.00 cores of n18), so that 1 is "
        "left where 3 are needed; take more launches (with -- -S launches=14), compare stacks with "
        "`clustergate ab`, pin a virtual machine's cores, or wait until nothing else runs there"
    )
    assert doubt_of(launches, 1) is None


@pytest.mark.parametrize(("stolen_cores", "by_programs"), [(0.0, True), (0.1, True), (0.9, False)])
def test_programs_on_the_node_are_the_first_remedy(stolen_cores: float, by_programs: bool) -> None:
    """Where programs of the node disturbed launches their end is the first remedy."""
    load = NodeLoad("n17", 10.0, others_cores=1.0 - stolen_cores, stolen_cores=stolen_cores)
    doubt = doubt_of([launch(0, None, load.why, load.lost_cores)], 1)
    assert doubt is not None
    assert doubt.remedy.startswith("measure when nothing else runs there") == by_programs
    assert ("pin a virtual machine's cores" in doubt.remedy) != by_programs
    assert "more launches (with -- -S launches=" in doubt.remedy


@pytest.mark.parametrize(
    ("made", "left", "needed", "wanted"),
    [(6, 2, 3, 14), (1, 0, 1, 3), (6, 0, 3, 50), (9, 8, 9, 16)],
)
def test_a_doubt_asks_for_as_many_launches_as_would_probably_do(made, left, needed, wanted):
    launches = [launch(k, None, None if k < left else OTHERS) for k in range(made)]
    assert f"(with -- -S HplCheck.launches={wanted})" in str(doubt_of(launches, needed, "HplCheck"))


def test_value_shown_when_every_launch_was_disturbed():
    (found,) = sampled_figures([sample(0.8, 0)], [launch(0, None, OTHERS)], 1)
    assert found.estimate.value == 0.8
    assert found.excuse


def test_a_record_without_launches_counts_as_it_did():
    (found,) = sampled_figures([sample(0.8, 0)], [], 1)
    assert found.excuse is None


def test_the_widest_interval_is_that_of_the_worst_benchmark():
    samples = [sample(v, o) for o, v in enumerate((1.0, 1.02))]
    others = [sample(v, o, bytes_=64) for o, v in enumerate((2.0, 2.4))]
    samples += [dataclasses.replace(one, benchmark="Bcast") for one in others]
    width = widest_interval(samples, [launch(0), launch(1)])
    assert width is not None
    assert math.isclose(width, 0.1)


def test_a_figure_of_one_launch_leaves_the_width_open():
    samples = [sample(1.0, 0), sample(1.0, 1), sample(3.0, 0, bytes_=64)]
    assert widest_interval(samples, [launch(0), launch(1)]) is None


def test_the_figures_of_a_benchmark_share_their_launches():
    # 8 bytes differ by 20 %, 64 and 512 bytes by nothing: all three by 3.3 % on average.
    samples = [sample(1.0, 0), sample(1.2, 1)]
    samples += [sample(2.0, order, bytes_=size) for order in (0, 1) for size in (64, 512)]
    assert widest_interval(samples, [launch(0), launch(1)]) == pytest.approx(0.1 / 3)


def test_two_modes_of_undisturbed_launches_are_seen():
    values = (1.0, 1.5, 1.01, 1.51, 1.0, 1.5)
    samples = [sample(value, order) for order, value in enumerate(values)]
    (found,) = sampled_figures(samples, [launch(order) for order in range(6)], 3)
    assert found.modes == Modes(1.0, 1.5, 3, 3)
    disturbed = [launch(order, None, OTHERS if order == 1 else None) for order in range(6)]
    (found,) = sampled_figures(samples, disturbed, 3)
    assert found.modes is None


# --- the words of complaints, the files ---


def test_what_is_wrong_is_said_of_the_launches_it_was_wrong_in():
    two, cut = in_words("2 singletons"), in_words("cut off")
    told = by_launch({0: [], 1: [two], 2: [two, cut], 3: []})
    assert [*map(str, told)] == ["launches 1-2 of 4: 2 singletons", "launch 2 of 4: cut off"]


def test_a_parser_that_refuses_each_output_is_told_once_and_where():
    refused = {n: [in_words("no rate").at(f"launch-{n:03d}/stdout:3")] for n in range(3)}
    (told,) = by_launch(refused, "/stage")
    assert str(told) == "in all 3 launches: /stage/launch-000/stdout:3: no rate"
    refused[1] = [in_words("no rate").at("launch-001/stdout:4")]
    assert len(by_launch(refused, "/stage")) == 2


def test_a_single_launch_needs_no_name():
    assert by_launch({0: [OTHERS]}) == [OTHERS]
    assert by_launch({0: [], 1: []}) == []


PLAN_OF_TWO = Plan(
    nonce="word",
    contenders=[
        Contender("a", ["mpirun"], ["xhpl"], "libproof.so", {"PATH": "/a"}, {"HPL.dat": "x\n"}),
        Contender("b", ["mpirun"], ["hpcc"], "libproof.so", output="hpccoutf.txt"),
    ],
    budget=Budget(3, 6, 10.0, 0.02),
    seed=7,
    asides=[Aside("peaks", ["true"], ["true"], "all")],
    kept_in="/shared",
    core_distance=["core_distance"],
    reader="clustergate.benchmarks.imb.output:parse_imb",
    on_each_node=["srun", "--overlap"],
)


def test_a_plan_comes_back_as_it_was_written(tmp_path):
    write_plan(tmp_path, PLAN_OF_TWO)
    assert read_plan(tmp_path / "plan.json", Plan) == PLAN_OF_TWO


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nonce": "x"}'])
def test_a_damaged_plan_is_named(tmp_path, text):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(PlanError, match=r"plan\.json is not a plan"):
        read_plan(path, Plan)


def test_a_damaged_log_is_named_with_its_line(tmp_path):
    (tmp_path / LOG).write_text('{"aside_s": 1.5}\n{"contender": "a"}\n')
    with pytest.raises(PlanError, match=r"launches\.jsonl:2"):
        read_log(tmp_path)


def test_a_log_that_was_written_twice_is_damaged(tmp_path):
    """Its launches counted twice, and a screening was twice as sure."""
    text = "".join(
        json.dumps(encode(Launched("a", 0, 0, Launch(order, 0.0, 1.0)))) + "\n"
        for order in range(2)
    )
    (tmp_path / LOG).write_text(text)
    assert len(read_log(tmp_path).launches) == 2
    (tmp_path / LOG).write_text(2 * text)
    with pytest.raises(PlanError, match=r"launches\.jsonl:3.*launch 0 stands twice"):
        read_log(tmp_path)


def test_a_job_that_never_began_noted_nothing(tmp_path):
    assert list(read_log(tmp_path).launches) == []


@pytest.mark.parametrize(("asked", "needed"), [(1, 1), (3, 3), (12, 3)])
def test_more_launches_than_usual_make_up_for_disturbed_ones(asked, needed):
    assert undisturbed_needed(fixed_launches(asked), Budget(at_least=3, at_most=6)) == needed


def test_one_of_two_launches_of_minutes_may_be_disturbed():
    assert not is_enough(TWO_LAUNCHES, [900.0], 1, never)
    assert is_enough(TWO_LAUNCHES, [900.0, 900.0], 0, never)
    assert undisturbed_needed(TWO_LAUNCHES, TWO_LAUNCHES) == 1
    assert undisturbed_needed(fixed_launches(5), TWO_LAUNCHES) == 1


@pytest.mark.parametrize("name", ["hpl", "hpcc"])
def test_hpl_and_hpcc_are_launched_twice_in_maintenance(name: str) -> None:
    benchmark = every_benchmark()[name]
    assert effort_of(mode_named("maintenance"), benchmark).budget == TWO_LAUNCHES
    assert not benchmark.repeated


def test_no_launch_is_no_number_of_launches():
    assert fixed_launches(3) == Budget(3, 3)
    for launches in (0, -1):
        with pytest.raises(ClustergateError, match="launches must be at least 1"):
            fixed_launches(launches)
