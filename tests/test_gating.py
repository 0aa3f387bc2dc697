"""May the machine go back to its users: one answer from plain data."""

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from clustergate.core.figures import name_of
from clustergate.core.model import (
    Better,
    Case,
    CaseId,
    CaseState,
    Conditions,
    Evidence,
    Judgement,
    Promise,
    Verdict,
)
from clustergate.core.reasons import in_words
from clustergate.judge.disproof import REFERENCE_OUTGROWN
from clustergate.judge.rules import FIGURE_UNCLEAR, LAUNCHES_SLOW_SHARE
from clustergate.run.gate.contract import (
    Control,
    Requirement,
    SecondsFor,
    accept_gains,
    allot,
    budget_for,
    case_requirements,
)
from clustergate.run.gate.decision import (
    CLOSED,
    OPEN,
    UNJUDGED,
    Slowdown,
    benchmark_evidence,
    coverage_evidence,
    decide,
    evidence_against_run,
    evidence_against_screenings,
    screening_evidence,
)
from clustergate.run.software_evidence import Builds
from clustergate.sites.modes import mode_named
from clustergate.studies.screen.findings import Screening, analyse
from clustergate.studies.screen.localisation import Located
from clustergate.studies.screen.measures import Result
from clustergate.studies.screen.rounds import rounds
from tests import builders

NAMES = [f"n{k}" for k in range(12)]
CHECKS = ("HplCheck", "ImbMpi1Check", "HpccCheck")
USUAL = {"HplCheck": 150.0, "ImbMpi1Check": 200.0, "HpccCheck": 100.0}
KEY, HPL = CaseId("HplCheck", "alpha:cpu", "mpich"), ("HPL", "performance_gflops")
SECONDS = {(check, stack): USUAL[check] for check in CHECKS for stack in ("mpich", "openmpi")}


def in_turn(seconds: Mapping[tuple[str, str], float]) -> SecondsFor:
    """Return how long checks take with stacks that run one after the other."""
    return lambda checks, stacks: sum(seconds[one] for one in itertools.product(checks, stacks))


ALL_S = sum(SECONDS.values())


def screening(
    bandwidth: float = 12000.0, slow: str = "", names: list[str] = NAMES, absent: str = ""
) -> Screening:
    random = np.random.default_rng(1)
    results = []
    for turn, members in enumerate(rounds(len(names))):
        for a, b in members.tolist():
            pair = (names[a], names[b])
            value = bandwidth / (2 if slow in pair else 1) * math.exp(random.normal(0, 0.01))
            values = {"pingpong_bandwidth_mb_s": value, "pingpong_latency_us": 2.0}
            if absent not in pair:
                results.append(Result(pair, "pingpong", turn, values))
    return analyse(names, results)


def case(verdict: Verdict | None, state: CaseState = CaseState.RAN) -> Case:
    why = "100, 20 % below the reference"
    rate: dict[str, Any] = {"unit": "Gflop/s", "better": Better.HIGHER, "conditions": {}}
    figures = (builders.figure(*HPL, 1.0, verdict, why, **rate),) if verdict else ()
    conditions: Conditions = {"mode": "maintenance", "ranks": 2, "settings": ""}
    of_case = builders.case(state=state, reason="killed", figures=figures)
    return dataclasses.replace(of_case, partition=KEY.partition, conditions=conditions)


def of_benchmarks(cases: list[Case]) -> list[Evidence]:
    """Return what cases say of which one must be judged, without any control."""
    items = case_requirements(mode_named("maintenance"), [KEY], cases, {})
    return [*benchmark_evidence(cases, items), *coverage_evidence(items)]


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ([], UNJUDGED),
        ([Verdict.PASS, Verdict.IMPROVEMENT], OPEN),
        ([Verdict.PASS, Verdict.NO_REFERENCE], UNJUDGED),
        ([Verdict.PASS, Verdict.INCONCLUSIVE], UNJUDGED),
        ([Verdict.PASS, Verdict.INVALID], UNJUDGED),
        ([Verdict.PASS, Verdict.IMPOSSIBLE], UNJUDGED),
        ([Verdict.PASS, Verdict.REGRESSION], CLOSED),
        ([Verdict.INVALID, Verdict.REGRESSION, Verdict.INCONCLUSIVE], CLOSED),
    ],
)
def test_the_worst_decides_and_a_regression_above_all(verdicts: list[Verdict], status: int) -> None:
    found = decide([Evidence("part", verdict, (in_words(verdict.value),)) for verdict in verdicts])
    assert found.status == status
    assert bool(found.because) == (status != OPEN)


def test_reasons_of_the_answer_come_first() -> None:
    """The reasons of the answer come first and nothing that speaks for it."""
    found = decide(
        [
            Evidence("screening", Verdict.INCONCLUSIVE, (in_words("noisy"),)),
            Evidence("benchmarks", Verdict.PASS, (in_words("fine"),)),
            Evidence("benchmarks", Verdict.REGRESSION, (in_words("slow"),)),
        ]
    )
    assert found.because == ("benchmarks: slow", "screening: noisy")
    assert found.sentence == "STAY CLOSED: benchmarks: slow; and 1 more"


def test_a_bad_node_closes_and_a_clean_screening_does_not() -> None:
    assert decide(screening_evidence(screening(), ended=True)).status == OPEN
    bad = decide(screening_evidence(screening(slow="n4"), ended=True))
    assert bad.status == CLOSED
    assert "node n4" in bad.because[0]


def test_unfinished_or_doubtful_screening_not_judged() -> None:
    assert decide(screening_evidence(screening(), ended=False)).status == UNJUDGED
    doubtful = dataclasses.replace(screening(), more_doubts=("only 3 of 4 nodes",))
    (lacks,) = decide(screening_evidence(doubtful, ended=True)).evidence
    assert (lacks.verdict, lacks.reasons[0].code) == (Verdict.INCONCLUSIVE, "screening.incomplete")
    absent = analyse([*NAMES, "n99"], [])
    assert decide(screening_evidence(absent, ended=True)).status == UNJUDGED


def test_unmeasured_node_not_judged_beside_sound_ones() -> None:
    """A node that was not measured cannot be judged though all others are well."""
    found = screening(absent="n4")
    assert not found.findings
    assert not found.doubts
    assert found.located["pingpong_bandwidth_mb_s"].unmeasured
    decision = decide(screening_evidence(found, ended=True))
    assert decision.status == UNJUDGED
    assert decision.because == ("screening: some nodes were not measured: n4",)


def test_two_nodes_leave_the_answer_to_the_benchmarks() -> None:
    (told,) = screening_evidence(screening(names=NAMES[:2]), ended=True)
    assert told.verdict is Verdict.PASS
    assert "the benchmarks are what counts" in told.sentence


def test_slowdown_of_all_nodes_seen_against_last_screening() -> None:
    """What became slower on all nodes is seen against the last screening."""
    same = evidence_against_screenings(screening(), [("r1", "1 May", screening())])
    assert {e.verdict for e in same} == {Verdict.PASS}
    worse = evidence_against_screenings(screening(bandwidth=6000.0), [("r1", "1 May", screening())])
    (found,) = (e for e in worse if e.verdict is Verdict.REGRESSION)
    assert "on 1 May: 100 % worse on all nodes alike" in found.sentence or "99 %" in found.sentence
    assert found.reasons[0].facts["run"] == "r1"
    better = evidence_against_screenings(
        screening(bandwidth=24000.0), [("r1", "1 May", screening())]
    )
    assert {e.verdict for e in better} == {Verdict.PASS}
    fewer = screening(bandwidth=6000.0, names=NAMES[:-1])
    (found,) = (
        e
        for e in evidence_against_screenings(fewer, [("r1", "1 May", screening())])
        if e.verdict is Verdict.REGRESSION
    )
    then = len(NAMES)
    assert f"on 1 May with other nodes ({then} then, {then - 1} now): " in found.sentence


def test_what_no_earlier_screening_has_is_told() -> None:
    """The first gate of a machine said nothing of what it could not see."""
    (none,) = evidence_against_screenings(screening(), [])
    assert none.verdict is Verdict.PASS
    assert none.sentence.startswith("no earlier screening of these nodes has ")
    names = NAMES[:4]
    short = analyse(names, [Result((n,), "peaks", 0, {"fma_peak_gflops": 200.0}) for n in names])
    with_hpl = analyse(
        names,
        [
            *(Result((n,), "peaks", 0, {"fma_peak_gflops": 200.0}) for n in names),
            *(Result((n,), "hpl", 0, {"hpl_gflops": 100.0}) for n in names),
        ],
    )
    _, lacks = evidence_against_screenings(with_hpl, [("r1", "1 May", short)])
    assert lacks.sentence.startswith("no earlier screening of these nodes has HPL: ")


def test_what_the_last_screening_does_not_tell_an_earlier_one_does() -> None:
    """A short one without HPL, or a noisy one, stood before those that would have shown it."""
    names = NAMES[:4]
    alone = [Result((name,), "hpl", 0, {"hpl_gflops": 100.0}) for name in names]
    slower = [dataclasses.replace(one, values={"hpl_gflops": 60.0}) for one in alone]
    short = analyse(names, [Result((n,), "peaks", 0, {"fma_peak_gflops": 200.0}) for n in names])
    draw = np.random.default_rng(5)
    noisy = analyse(
        names,
        [
            dataclasses.replace(one, turn=turn, values={"hpl_gflops": draw.lognormal(4.2, 0.6)})
            for turn in range(3)
            for one in alone
        ],
    )
    assert noisy.located["hpl_gflops"].too_noisy
    for last in (short, noisy):
        earlier = [("r2", "2 May", last), ("r1", "1 May", analyse(names, alone))]
        (found,) = evidence_against_screenings(analyse(names, slower), earlier)
        assert found.verdict is Verdict.REGRESSION
        assert "on 1 May: 67 % worse on all nodes alike" in found.sentence


def test_what_is_far_slower_on_all_nodes_within_noise_is_no_pass() -> None:
    draw = np.random.default_rng(5)

    def of_two(slower: float) -> Screening:
        results = [
            Result((NAMES[0], NAMES[1]), "pingpong", turn, {"pingpong_latency_us": one})
            for turn, one in enumerate(2.0 * slower * draw.lognormal(0.0, 0.4, 6))
        ]
        return analyse(NAMES[:2], results)

    for slower, worst in ((1.0, {Verdict.PASS}), (5.0, {Verdict.INCONCLUSIVE, Verdict.REGRESSION})):
        (found,) = evidence_against_screenings(of_two(slower), [("r1", "1 May", of_two(1.0))])
        assert found.verdict in worst


@pytest.mark.parametrize(
    ("noise", "slower", "verdict"),
    [
        (0.0, 1.05, Verdict.PASS),
        (0.0, 1.2, Verdict.REGRESSION),
        (0.05, 1.09, Verdict.PASS),
        (0.05, 1.15, Verdict.INCONCLUSIVE),
        (0.05, 1.3, Verdict.REGRESSION),
        (0.17, 1.3, Verdict.PASS),
        (0.17, 1.9, Verdict.INCONCLUSIVE),
        (0.17, 2.1, Verdict.REGRESSION),
        (0.6, 1.9, Verdict.PASS),
        (0.6, 2.1, Verdict.INCONCLUSIVE),
        (0.6, 12.0, Verdict.REGRESSION),
    ],
)
def test_slowdown_of_all_nodes_passes_within_noise(
    noise: float, slower: float, verdict: Verdict
) -> None:
    """At a noise of 17 % all nodes could be 1.9 times slower, and it was a pass."""

    def of_four(level: float) -> Screening:
        located = Located(centres={"all": level}, scale=noise)
        return Screening(("a", "b", "c", "d"), (), {"hpl_gflops": located}, {})

    (found,) = evidence_against_screenings(
        of_four(math.log(slower)), [("r1", "1 May", of_four(0.0))]
    )
    assert found.verdict is verdict
    assert ("with a larger `--budget`" in found.sentence) is (verdict is Verdict.INCONCLUSIVE)


def test_one_launch_of_one_pair_closes_no_gate() -> None:
    """Of two unchanged nodes on a quiet night it did one time in four."""

    def once(latency_us: float) -> Screening:
        launch = Result((NAMES[0], NAMES[1]), "pingpong", 0, {"pingpong_latency_us": latency_us})
        return analyse(NAMES[:2], [launch])

    (found,) = evidence_against_screenings(once(1.5), [("r1", "1 May", once(1.0))])
    assert found.verdict is Verdict.INCONCLUSIVE


UNDECIDED = FIGURE_UNCLEAR(
    value=0.97,
    unit="us",
    reference=1.0,
    ratio=0.97,
    origin="measured",
    where="alpha.yaml:1",
    at_most=0.2,
)


def promised(limit: float, at_most: float, *, kept: bool) -> Case:
    """Return a case whose only figure is undecided by itself, with what is promised of it."""
    one = case(Verdict.INCONCLUSIVE)
    judged = Judgement(Verdict.INCONCLUSIVE, (UNDECIDED,))
    figure = dataclasses.replace(one.figures[0], judgement=judged)
    limits = math.log1p(limit), math.log1p(at_most)
    names = (name_of(figure),)
    promise = Promise("benchmark", ".".join(HPL), ("mpich",), *limits, kept=kept, figures=names)
    return dataclasses.replace(one, figures=(figure,), promises=(promise,))


@pytest.mark.parametrize(
    ("limit", "at_most", "kept", "said"),
    [
        (0.12, 0.08, True, "all 1 that must be judged were, by its references"),
        (0.12, 0.20, False, "HPL.performance_gflops may be 20.0 % slower (12.0 % would do)"),
        (0.25, 0.08, False, "its baseline shows no slow-down below 25.0 %"),
        (math.inf, math.inf, False, "its baseline does not show variation between days"),
    ],
)
def test_undecided_figure_with_promise(limit: float, at_most: float, kept: bool, said: str) -> None:
    evidence = of_benchmarks([promised(limit, at_most, kept=kept)])
    assert decide(evidence).status == (OPEN if kept else UNJUDGED)
    assert any(said in one.sentence for one in evidence)
    told = "1 of 1 figures cannot be told from slower by themselves (HplCheck with mpich: 1)"
    assert sum(told in one.sentence for one in evidence) == 1


def outgrown(ratio: float) -> Case:
    """Return a case whose only figure is better than any unchanged machine becomes."""
    one = promised(0.12, -0.05, kept=True)
    why = REFERENCE_OUTGROWN(
        value=100.0 * ratio, unit="Gflop/s", reference=100.0, ratio=ratio, origin="measured",
        where="alpha.yaml:1", most=1.1, figure="HPL.performance_gflops",
    )  # fmt: skip
    judged = Judgement(Verdict.INVALID, (why,))
    figures = (dataclasses.replace(one.figures[0], judgement=judged),)
    return dataclasses.replace(one, figures=figures)


def stack_of(name: str, *, kept: bool) -> Promise:
    return Promise("stack", name, (name,), 0.1, 0.0, kept=kept)


@pytest.mark.parametrize(
    ("ratio", "wholes", "control", "status"),
    [
        pytest.param(
            1.12, (stack_of("openmpi", kept=True),), "", OPEN, id="another-stack-is-as-it-was"
        ),
        pytest.param(1.12, (stack_of("openmpi", kept=False),), "", UNJUDGED, id="none-is"),
        pytest.param(1.12, (stack_of("mpich", kept=True),), "", UNJUDGED, id="its-own-is-no-other"),
        pytest.param(1.12, (), "the golden build", OPEN, id="controls-stand-for-its-reference"),
        pytest.param(
            *(1.6, (stack_of("openmpi", kept=True),), "the golden build", UNJUDGED),
            id="rather-a-wrong-reference",
        ),
    ],
)
def test_faster_stack_closes_nothing(
    ratio: float, wholes: tuple[Promise, ...], control: str, status: int
) -> None:
    cases = accept_gains([outgrown(ratio)], {KEY.partition: wholes})
    items = case_requirements(
        mode_named("maintenance"), [KEY], cases, {}, lambda _: Control(control)
    )
    evidence = [*benchmark_evidence(cases, items), *coverage_evidence(items)]
    assert decide(evidence).status == status
    if status == OPEN:
        told = "1 figure is faster than unchanged machines become (HplCheck with mpich)"
        assert any(told in one.sentence and "12.0 %" in one.sentence for one in evidence)


def test_slower_benchmark_of_a_faster_stack_still_closes() -> None:
    one = outgrown(1.12)
    slow = dataclasses.replace(case(Verdict.REGRESSION).figures[0], conditions={"bytes": 8})
    both = dataclasses.replace(one, figures=(*one.figures, slow))
    cases = accept_gains([both], {KEY.partition: (stack_of("openmpi", kept=True),)})
    assert decide(of_benchmarks(cases)).status == CLOSED


def test_promise_of_other_figures() -> None:
    one = promised(0.12, 0.08, kept=True)
    other = dataclasses.replace(one.promises[0], figures=("another",))
    found = decide(of_benchmarks([dataclasses.replace(one, promises=(other,))]))
    assert found.status == UNJUDGED
    assert "it may be 20.0 % slower than before" in " ".join(found.because)


@pytest.mark.parametrize(("bare", "status"), [(1, OPEN), (2, UNJUDGED), (3, UNJUDGED)])
def test_kept_promise_beside_sizes_without_reference(bare: int, status: int) -> None:
    one = promised(0.12, 0.08, kept=True)
    nothing = Judgement(Verdict.NO_REFERENCE, (in_words("no reference"),))
    sizes = [
        dataclasses.replace(one.figures[0], conditions={"bytes": 8 << k}) for k in range(3 + bare)
    ]
    without = [dataclasses.replace(size, judgement=nothing) for size in sizes[:bare]]
    names = tuple(map(name_of, sizes[bare:]))
    promise = dataclasses.replace(one.promises[0], figures=names)
    figures = (*without, *sizes[bare:])
    whole = dataclasses.replace(one, figures=figures, promises=(promise,))
    assert decide(of_benchmarks([whole])).status == status


def test_kept_promise_of_figure_slow_at_times() -> None:
    one = promised(0.12, 0.08, kept=True)
    slow = LAUNCHES_SLOW_SHARE(slow=6, launches=8, others=2, times=3.0)
    judged = Judgement(Verdict.INCONCLUSIVE, (UNDECIDED, slow))
    figure = dataclasses.replace(one.figures[0], judgement=judged)
    assert decide(of_benchmarks([dataclasses.replace(one, figures=(figure,))])).status == UNJUDGED


def test_30_why_a_figure_is_doubtful_stands_beside_how_many_are() -> None:
    one = case(Verdict.INCONCLUSIVE)
    slow = "6 of 8 launches are 3.0 x worse than the reference, and 2 are not"
    doubtful = dataclasses.replace(one.figures[0], doubt=in_words(slow))
    decision = decide(of_benchmarks([dataclasses.replace(one, figures=(doubtful,))]))
    assert decision.status == UNJUDGED
    assert any(
        f", HplCheck with mpich: HPL performance_gflops: {slow}" in x for x in decision.because
    )


@pytest.mark.parametrize(
    ("cases", "status", "said"),
    [
        ([case(Verdict.PASS)], OPEN, "as expected"),
        ([case(Verdict.REGRESSION)], CLOSED, "100, 20 % below the reference"),
        ([case(Verdict.NO_REFERENCE)], UNJUDGED, "1 of 1 figures have nothing to compare with"),
        ([case(Verdict.INCONCLUSIVE)], UNJUDGED, "1 of 1 figures cannot be told"),
        ([case(None, CaseState.FAILED)], UNJUDGED, "HplCheck with mpich: killed"),
        ([case(None, CaseState.MISSING)], UNJUDGED, "killed"),
        ([case(None, CaseState.NOT_AVAILABLE)], UNJUDGED, "nothing was measured"),
        ([], UNJUDGED, "nothing was measured"),
    ],
)
def test_benchmarks_say_what_is_wrong_and_not_compared(
    cases: list[Case], status: int, said: str
) -> None:
    evidence = of_benchmarks(cases)
    assert decide(evidence).status == status
    assert any(said in one.sentence for one in evidence)


def test_what_is_surely_worse_than_the_last_run_closes() -> None:
    (told,) = evidence_against_run([Slowdown("HPL", 0.2, 0.01)], 40, "20261120")
    assert (told.verdict, told.sentence.partition(";")[0]) == (
        Verdict.REGRESSION,
        "HPL is 20.0 % slower, usually within 1.0 %",
    )
    assert decide(evidence_against_run([], 40, "x")).status == OPEN
    many = evidence_against_run([Slowdown(f"f{k}", 0.5) for k in range(30)], 40, "x")
    assert many[-1].sentence == "18 more are worse"


def test_the_budget_goes_to_what_finds_most() -> None:
    found = allot(2000.0, 64, CHECKS, ("mpich", "openmpi"), in_turn(SECONDS), golden_s=600.0)
    assert (found.screening_s, found.hpl_s) == (950.0, 60.0)
    assert (found.checks, found.stacks, found.left_out) == (CHECKS, ("mpich", "openmpi"), ())
    less = allot(1200.0, 64, CHECKS, ("mpich", "openmpi"), in_turn(SECONDS))
    assert (less.checks, less.stacks) == (CHECKS, ("mpich",))
    assert less.left_out == tuple((check, "openmpi") for check in CHECKS)


def test_a_small_budget_has_no_hpl_alone_and_says_what_is_left_out() -> None:
    found = allot(300.0, 64, CHECKS, ("mpich",), in_turn(SECONDS))
    assert found.hpl_s == 0.0
    assert (found.checks, found.stacks) == (("HplCheck",), ("mpich",))
    assert found.left_out == (("ImbMpi1Check", "mpich"), ("HpccCheck", "mpich"))
    nothing = allot(10.0, 64, CHECKS, ("mpich",), in_turn(SECONDS))
    assert (nothing.checks, nothing.stacks) == ((), ())
    assert len(nothing.left_out) == 3


def test_what_a_check_took_the_last_time_counts() -> None:
    found = allot(
        300.0, 64, CHECKS, ("mpich",), in_turn({**SECONDS, ("HplCheck", "mpich"): 5000.0})
    )
    assert found.checks == ("HpccCheck",)


def test_what_no_benchmark_needs_is_for_doubts_of_the_screening() -> None:
    found = allot(
        300.0, 4, CHECKS[:1], ("mpich",), in_turn({("HplCheck", "mpich"): 20.0}), golden_s=600.0
    )
    assert (found.screening_s, found.hpl_s) == (200.0, 0.0)
    # With all of them as many seconds may be for HPL on each node, too.
    alone = allot(500.0, 4, CHECKS[:1], ("mpich",), in_turn({("HplCheck", "mpich"): 20.0}))
    assert (alone.screening_s, alone.hpl_s) == (480.0, 60.0)


def test_what_golden_builds_do_not_need_is_for_nodes_and_links() -> None:
    stacks = ("mpich", "openmpi")
    unpinned, equal = (
        allot(2000.0, 64, CHECKS, stacks, in_turn(SECONDS), one)
        for one in (Builds.UNPINNED, Builds.EQUAL)
    )
    other = allot(2000.0, 64, CHECKS, stacks, in_turn(SECONDS), golden_s=600.0)
    assert (other.screening_s, other.launches) == (950.0, 0)
    assert (unpinned.screening_s, unpinned.launches) == (1100.0, 0)
    assert (equal.screening_s, equal.launches) == (1100.0, 14)
    assert other.left_out == unpinned.left_out == equal.left_out == ()
    # Where all fits, golden builds have their whole time, the rest what it would have alone.
    enough = budget_for(ALL_S, 64, 600.0)
    assert enough == budget_for(ALL_S, 64) + 600.0
    found = allot(enough, 64, CHECKS, stacks, in_turn(SECONDS), golden_s=600.0)
    assert found == allot(enough - 600.0, 64, CHECKS, stacks, in_turn(SECONDS))


def test_a_single_node_is_screened_for_two_minutes_at_most() -> None:
    assert allot(3600.0, 1, CHECKS, ("mpich",), in_turn(SECONDS)).screening_s == 120.0


def test_a_budget_is_a_time() -> None:
    with pytest.raises(ValueError, match="above 0"):
        allot(0.0, 4, CHECKS, ("mpich",), in_turn(SECONDS))
    with pytest.raises(ValueError, match="no stack"):
        allot(60.0, 4, CHECKS, (), in_turn(SECONDS))


@pytest.mark.parametrize("nodes", [1, 64])
@pytest.mark.parametrize("seconds", [10.0, 150.0, 3333.0])
def test_the_budget_that_it_asks_for_leaves_nothing_out(nodes: int, seconds: float) -> None:
    stacks = ("mpich", "openmpi")
    seconds_of = dict.fromkeys(SECONDS, seconds)
    enough = budget_for(sum(seconds_of.values()), nodes)
    assert allot(enough, nodes, CHECKS, stacks, in_turn(seconds_of)).left_out == ()
    assert allot(enough / 2, nodes, CHECKS, stacks, in_turn(seconds_of)).left_out


def test_it_opens_only_when_all_was_judged_that_must_be() -> None:
    judged = Requirement("HplCheck", "mpich", "HplCheck with mpich on a:b", by="its references")
    lost = Requirement("HpccCheck", "mpich", "HpccCheck with mpich on a:b", why="it failed")
    late = Requirement(
        "ImbMpi1Check",
        "mpich",
        "ImbMpi1Check with mpich on a:b",
        why="left out",
        remedy="give it 30m",
    )
    passed = [Evidence("benchmarks", Verdict.PASS, (in_words("40 figures are as expected"),))]
    assert decide([*passed, *coverage_evidence([judged])]).status == OPEN
    assert decide([*passed, *coverage_evidence([judged, lost])]).status == UNJUDGED
    partly = dataclasses.replace(judged, by="its references; the golden build of 2026-11-28")
    (all_judged,) = coverage_evidence([judged, partly])
    assert all_judged.sentence.endswith("by its references and the golden build of 2026-11-28")
    found = decide([*passed, *coverage_evidence([judged, lost, late])])
    assert found.because == (
        "what must be judged: ImbMpi1Check with mpich: left out; give it 30m",
        "what must be judged: 2 of 3 that must be judged were not",
    )
    # Nothing at all is not everything.
    assert decide([*passed, *coverage_evidence([])]).status == UNJUDGED
