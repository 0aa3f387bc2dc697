import dataclasses

import numpy as np
import pytest
from reframe.utility.sanity import reference_bounds

from clustergate.core.model import (
    Better,
    Case,
    CaseId,
    CaseState,
    Estimate,
    Launch,
    NodeFacts,
    Reference,
    Row,
    Verdict,
)
from clustergate.core.reasons import in_words
from clustergate.core.texts import doubts
from clustergate.judge import assembly
from clustergate.judge.assembly import (
    assemble,
    disturbances,
    loosely_limited,
    modes_seen,
    reframe_figures,
    unexpected,
    verdicts,
    wide_limits,
)
from clustergate.judge.case import measure_case
from clustergate.judge.judging import exit_status
from clustergate.report.junit import render_junit
from clustergate.stacks.set_up import STACK_NOT_PROVIDED
from tests import builders
from tests.builders import baseline, hpl, outcome, ping

EXPECTED = [CaseId("HplCheck", "local:node", "mpich")]
SAMPLE = hpl()


def record(**changes):
    return builders.record(**{"samples": (SAMPLE,), "check": "HplCheck", **changes})


def disturbed(order):
    return Launch(order, 0.0, 1.0, "n17", 0.5, disturbed=in_words("others used 0.50 cores of n17"))


def test_a_figure_without_a_reference_is_no_pass():
    (case,) = assemble(EXPECTED, [outcome()], [record()])
    assert case.state is CaseState.RAN
    assert [f.judgement.verdict for f in case.figures] == [Verdict.NO_REFERENCE]


@pytest.mark.parametrize("busy", [None, in_words("others used 1.9 of the 2 cores")])
def test_reference_of_another_unit_fails_for_judge_and_reframe(busy):
    """Nothing that others do on the node makes a figure a thousand times better."""
    expected = Reference(0.0914, -0.05, None, "Gflop/s", "published", where="local.yaml:9")
    one = record(launches=[Launch(0, 0.0, 9.0, disturbed=busy)], launches_needed=1)
    ((_, value, _, bounds),) = reframe_figures(measure_case(one, lambda *asked: expected))
    assert bounds is not None
    low, high = reference_bounds(*bounds[:3])
    assert not low <= value <= high
    failed = outcome(result="fail", phase="performance", reason="failed to meet reference")
    (case,) = assemble(EXPECTED, [failed], [one], lambda *asked: expected)
    assert case.state is CaseState.RAN
    assert [figure.judgement.verdict for figure in case.figures] == [Verdict.INVALID]


def test_what_is_recorded_and_never_judged_is_no_pass():
    lasted = dataclasses.replace(SAMPLE, metric="time_s", unit="s", better=Better.LOWER)
    (case,) = assemble(EXPECTED, [outcome()], [record(samples=[lasted])])
    assert case.state is CaseState.FAILED
    assert "nothing of what it measured is judged (time_s)" in case.reason


def test_a_reference_is_judged():
    expected = Reference(100.0, -0.05, None, "Gflop/s", "measured")
    (case,) = assemble(
        EXPECTED,
        [outcome()],
        [record()],
        lambda check, partition, stack, conditions, sample: expected,
    )
    assert verdicts([case]) == [Verdict.REGRESSION]


def test_a_case_that_did_not_run_is_missing_and_invalid():
    (case,) = assemble(EXPECTED, [], [])
    assert case.state is CaseState.MISSING
    assert exit_status(verdicts([case])) == 2


def imb_key(partition, ranks):
    parameters = (("node_usage", "packed"), ("process_count", str(ranks)))
    return CaseId("ImbMpi1Check", partition, "mpich", parameters)


def imb_outcome(partition, ranks):
    parameters = imb_key(partition, ranks).parameters
    name = f"imb-{partition}-{ranks}"
    return outcome("ImbMpi1Check", name=name, partition=partition, parameters=parameters)


def test_every_lost_case_is_named():
    keys = [imb_key("x:a", ranks) for ranks in (2, 4, 8)]
    cases = assemble(keys, [], [])
    assert [case.state for case in cases] == [CaseState.MISSING] * 3
    assert [case.conditions["ranks"] for case in cases] == [2, 4, 8]


def test_36_missing_and_unexpected_case_both_seen():
    """One case missing in one partition and one too many in another are both seen."""
    keys = [imb_key("x:a", 2), imb_key("x:a", 12), imb_key("x:b", 2), imb_key("x:b", 16)]
    ran = [("x:a", 2), ("x:b", 2), ("x:b", 12), ("x:b", 16)]
    outcomes = [imb_outcome(*one) for one in ran]
    kept = [record(name=one.name, check=one.check, partition=one.partition) for one in outcomes]
    cases = assemble(keys, outcomes, kept)
    (missing,) = [case for case in cases if case.state is CaseState.MISSING]
    assert (missing.partition, missing.conditions["ranks"]) == ("x:a", 12)
    assert "on x:a (node_usage=packed, process_count=12) and did not" in missing.reason
    assert exit_status(verdicts(cases)) == 2
    (stranger,) = unexpected(keys, outcomes)
    assert stranger.startswith(
        "ImbMpi1Check with mpich on x:b (node_usage=packed, process_count=12)"
    )
    assert unexpected(keys, outcomes[:2]) == []


def test_another_effort_than_asked_for_is_no_run_of_this_mode():
    (case,) = assemble(EXPECTED, [outcome()], [record()], mode="maintenance")
    assert case.state is CaseState.FAILED
    assert "effort of the mode smoke, and maintenance was asked for" in case.reason
    (case,) = assemble(EXPECTED, [outcome()], [record()], mode="smoke")
    assert case.state is CaseState.RAN


def test_reframes_pass_without_a_record_is_no_pass():
    (case,) = assemble(EXPECTED, [outcome()], [])
    assert case.state is CaseState.FAILED


@pytest.mark.parametrize("result", ["fail", "abort", "skip"])
def test_figures_do_not_count_when_reframe_did_not_pass_the_case(result):
    (case,) = assemble(EXPECTED, [outcome(result=result, reason="time limit")], [record()])
    assert case.state is CaseState.FAILED
    assert "time limit" in case.reason
    assert verdicts([case]) == [Verdict.INVALID]


def test_a_regression_that_reframe_calls_a_failure_is_a_regression():
    expected = Reference(100.0, -0.05, None, "Gflop/s", "measured")
    (case,) = assemble(
        EXPECTED,
        [outcome(result="fail", phase="performance", reason="failed to meet reference")],
        [record()],
        lambda check, partition, stack, conditions, sample: expected,
    )
    assert case.state is CaseState.RAN
    assert exit_status(verdicts([case])) == 1


def test_performance_failure_without_regression_stays_a_failure():
    failed = outcome(result="fail", phase="performance", reason="failed to meet reference")
    (case,) = assemble(EXPECTED, [failed], [record()])
    assert case.state is CaseState.FAILED


def test_more_than_dgemm_of_the_same_job_is_impossible():
    def row(ids, gflops, trial):
        conditions = {"cores": len(ids.split(",")), "core_ids": ids, "trial": trial}
        return Row("node-peaks", "fma_peak", conditions, {"performance_gflops": gflops})

    peaks = [
        row(ids, gflops + trial, trial)
        for ids, gflops in (("0", 30.0), ("1", 30.0), ("0,1", 60.0))
        for trial in range(3)
    ]
    (case,) = assemble(EXPECTED, [outcome()], [record(peaks=peaks)])
    assert [f.judgement.verdict for f in case.figures] == [Verdict.IMPOSSIBLE]
    assert exit_status(verdicts([case])) == 2


def test_disturbed_peaks_bound_little_and_are_told():
    """Peaks that do not tell what disturbed them bound little and are told of."""

    def row(ids, gflops, trial):
        conditions = {"cores": len(ids.split(",")), "core_ids": ids, "trial": trial}
        return Row("node-peaks", "fma_peak", conditions, {"performance_gflops": gflops})

    # Captured while other programs ran: core 0 alone reached 14.8 to 34.1 Gflop/s.
    peaks = [row(ids, g, t) for ids in ("0", "1", "0,1") for t, g in enumerate((14.8, 30, 34.1))]
    kept = record(peaks=peaks)
    (case,) = assemble(EXPECTED, [outcome()], [kept])
    assert [f.judgement.verdict for f in case.figures] == [Verdict.NO_REFERENCE]
    # One core alone was steady, both together were not: one core does not bound two.
    peaks = [row(ids, g, t) for ids in ("0", "1") for t, g in enumerate((54.0, 54.3, 54.6))]
    peaks += [row("0,1", g, t) for t, g in enumerate((60.0, 90.0, 109.0))]
    (case,) = assemble(EXPECTED, [outcome()], [record(peaks=peaks)])
    assert [f.judgement.verdict for f in case.figures] == [Verdict.NO_REFERENCE]
    (sentence,) = disturbances([kept, record()])
    assert sentence.startswith("in 1 of 2 cases")
    assert disturbances([record()]) == []


def noisy_peaks(virtual=0):
    """Return peaks of two cores beside another program: 59 Gflop/s each, less in most trials."""
    seen = {"undisturbed_gflops": 59.0, "cpu_share": 0.3, "clock_ghz": 3.69}
    told = {"flops_per_cycle": 16, "virtual": virtual, "vector": "avx512"}
    return [
        Row(
            "node-peaks",
            "fma_peak",
            {"cores": cores, "core_ids": ids, "trial": trial, **told},
            {**seen, "performance_gflops": gflops, "undisturbed_gflops": 59.0 * cores},
        )
        for ids, cores in (("0", 1), ("1", 1), ("0,1", 2))
        for trial, gflops in enumerate((9.9, 12.9, 57.0))
    ]


@pytest.mark.parametrize("reference", [None, Reference(90.0, -0.05, None, "Gflop/s", "measured")])
@pytest.mark.parametrize("peaks", [(), noisy_peaks(), noisy_peaks(virtual=1)])
def test_25_27_no_noise_lets_a_rate_pass_that_cannot_be(peaks, reference):
    """A printed 9.999e+89 Gflop/s in 0.00 s, where trials of the peaks were slow, or none ran."""
    printed = dataclasses.replace(SAMPLE, value=9.999e89)
    kept = record(samples=[printed], peaks=peaks, launches=[disturbed(0)])
    (case,) = assemble(EXPECTED, [outcome()], [kept], lambda *case: reference)
    assert verdicts([case]) == [Verdict.IMPOSSIBLE]
    assert exit_status(verdicts([case])) == 2


@pytest.mark.parametrize(("gflops", "found"), [(118.0, "no reference"), (123.0, "impossible")])
def test_25_limits_beside_another_program_as_narrow_as_idle(gflops, found):
    kept = record(samples=[dataclasses.replace(SAMPLE, value=gflops)], peaks=noisy_peaks())
    (case,) = assemble(EXPECTED, [outcome()], [kept])
    assert [v.value for v in verdicts([case])] == [found]


def test_26_a_collective_call_in_no_time_is_impossible():
    allreduce = ping(0.0, 1 << 20, benchmark="Allreduce", metric="t_avg_us")
    expected = Reference(280.0, None, 0.1, "us", "measured")
    kept = record(check="ImbMpi1Check", name="imb", samples=[allreduce])
    ran = outcome("ImbMpi1Check", name="imb")
    key = dataclasses.replace(EXPECTED[0], check="ImbMpi1Check")
    (case,) = assemble([key], [ran], [kept], lambda *case: expected)
    assert verdicts([case]) == [Verdict.IMPOSSIBLE]


def test_one_launch_that_cannot_be_is_not_hidden_by_the_others():
    values = (95.0, 96.0, 1e6)
    samples = [dataclasses.replace(SAMPLE, value=v, order=k) for k, v in enumerate(values)]
    kept = record(samples=samples, launches=builders.launches(3), peaks=noisy_peaks())
    (case,) = assemble(EXPECTED, [outcome()], [kept])
    assert verdicts([case]) == [Verdict.IMPOSSIBLE]


@pytest.mark.parametrize(("percent", "found"), [(101.0, ""), (126.5, "HPL was faster than the")])
def test_efficiency_above_its_peak_is_doubtful(percent, found):
    efficiency = dataclasses.replace(
        SAMPLE,
        metric="efficiency_percent",
        unit="%",
        value=percent,
        conditions={**SAMPLE.conditions, "against": "fma peak"},
    )
    expected = Reference(70.0, -0.05, None, "%", "measured")
    kept = record(samples=[efficiency], peaks=noisy_peaks(virtual=1))
    (case,) = assemble(EXPECTED, [outcome()], [kept], lambda *case: expected)
    assert str(case.figures[0].doubt or "").startswith(found)
    assert bool(case.figures[0].doubt) == bool(found)
    wanted = Verdict.INCONCLUSIVE if found else Verdict.IMPROVEMENT
    assert verdicts([case]) == [wanted]


def test_reframe_fails_what_is_impossible_as_the_judge_does():
    """Whatever the reference, and also where there is none."""
    printed = dataclasses.replace(SAMPLE, value=1e6)
    fast = dataclasses.replace(SAMPLE, metric="time_us", unit="us", better=Better.LOWER, value=0.0)
    kept = record(samples=[SAMPLE, printed, fast], peaks=noisy_peaks())
    expected = Reference(90.0, -0.05, None, "Gflop/s", "measured")
    told = [
        row
        for one, known in zip(kept.samples, [expected, None, None], strict=True)
        for row in reframe_figures(
            measure_case(dataclasses.replace(kept, samples=[one]), lambda *_, of=known: of)
        )
    ]
    bounds = [reference for _, _, _, reference in told]
    assert bounds[0] == (90.0, -0.05, None, "Gflop/s")
    for (_, value, _, _), held in zip(told[1:], bounds[1:], strict=True):
        assert held is not None
        low, high = reference_bounds(*held[:3])
        assert not low <= value <= high
    for reported in ("fail", "pass"):
        ended = outcome(result=reported, phase="performance", reason="performance error")
        (case,) = assemble(EXPECTED, [ended], [kept])
        assert case.state is CaseState.RAN
        assert Verdict.IMPOSSIBLE in verdicts([case])


def test_limits_are_those_of_the_partition_that_ran():
    conditions = {**builders.CONDITIONS, "nodes": 2, "ranks_per_node": 1}
    sample = ping(9000.0, 1 << 20, metric="bandwidth_mb_s")
    kept = record(check="ImbMpi1Check", conditions=conditions, samples=[sample])
    nodes = {"local:slow": NodeFacts(link_mb_s=100.0), "local:node": NodeFacts(link_mb_s=12500.0)}
    ran = outcome("ImbMpi1Check")
    key = dataclasses.replace(EXPECTED[0], check="ImbMpi1Check")
    (case,) = assemble([key], [ran], [kept], nodes=nodes)
    assert verdicts([case]) == [Verdict.NO_REFERENCE]


def test_where_limits_are_wide_it_is_said():
    assert wide_limits([record(peaks=noisy_peaks())]) == []
    (told,) = wide_limits([record(), record(peaks=noisy_peaks())])
    assert told.startswith("in 1 of 2 cases no peak of the node was measured")
    (told,) = wide_limits([record(peaks=noisy_peaks(virtual=1))])
    assert "shows neither its highest clock" in told


def test_rates_without_a_peak_told_in_one_line():
    """Their memory would: but no partition is known here that says how large its caches are."""
    peaks = noisy_peaks()
    triad = builders.sample("STREAM", "bandwidth_gb_s", 9000.0, elements=10)
    stream = record(name="s", check="StreamCheck", samples=[triad], peaks=peaks)
    ran = [outcome(), outcome("StreamCheck", name="s")]
    cases = assemble({}, ran, [record(peaks=peaks), stream])
    (told,) = loosely_limited(cases)
    assert told.startswith("no peak of the node bounds 1 rate (StreamCheck: STREAM), only what ")
    assert loosely_limited(cases[:1]) == []


@pytest.mark.parametrize(
    ("expected", "verdict"),
    [
        (Reference(100.0, -0.05, None, "Gflop/s", "measured"), Verdict.INCONCLUSIVE),
        (None, Verdict.NO_REFERENCE),
        # Without a bound there is nothing to compare with either.
        (Reference(100.0, None, None, "Gflop/s", "measured"), Verdict.NO_REFERENCE),
    ],
)
def test_too_few_undisturbed_launches_are_open_with_a_reference(expected, verdict):
    """Too few undisturbed launches are told of and need a reference to leave it open."""
    kept = record(launches=[disturbed(0)])
    (case,) = assemble(EXPECTED, [outcome()], [kept], lambda *_: expected)
    assert verdicts([case]) == [verdict]
    (figure,) = case.figures
    assert "others used 0.50 cores of n17" in str(figure.doubt)
    assert "-S HplCheck.launches=3" in str(figure.doubt)


def test_disturbed_figure_beyond_a_limit_is_impossible():
    rows = [
        Row("node-peaks", "fma_peak", {"cores": 1, "core_ids": core, "trial": trial}, value)
        for core in ("0", "1")
        for trial, value in enumerate([{"performance_gflops": 30.0}] * 3)
    ]
    kept = record(launches=[disturbed(0)], peaks=rows)
    (case,) = assemble(EXPECTED, [outcome()], [kept])
    assert verdicts([case]) == [Verdict.IMPOSSIBLE]


def test_the_best_undisturbed_launch_is_judged():
    samples = [dataclasses.replace(SAMPLE, value=v, order=k) for k, v in enumerate((99, 97, 120))]
    launches = [*builders.launches(2), disturbed(2)]
    kept = record(samples=samples, launches=launches, launches_needed=2)
    (case,) = assemble(EXPECTED, [outcome()], [kept])
    assert case.figures[0].estimate == Estimate(99, 97, 99, 0.5, 2)
    assert case.figures[0].judgement.verdict is Verdict.NO_REFERENCE
    (sentence,) = disturbances([kept, record()])
    assert sentence == (
        "1 of 3 launches was disturbed and is not counted; in it others used 0.50 cores of n17"
    )
    alone = record(launches=[disturbed(0)])
    assert disturbances([alone])[0].startswith("1 of 1 launch was disturbed and is not counted; ")
    (several,) = disturbances([alone, alone])
    assert several.startswith("2 of 2 launches were disturbed and are not counted; in the worst of")


@pytest.mark.parametrize("complaints", [[], [in_words("no process left a record")]])
def test_a_full_disk_is_told_beside_what_came_of_it(complaints):
    failed = outcome(result="fail", phase="sanity", reason="no record", full_disk="/stage/HplCheck")
    (case,) = assemble(EXPECTED, [failed], [record(complaints=complaints)])
    assert case.state is CaseState.FAILED
    assert "No space left on device for /stage/HplCheck: the job could not write" in case.reason
    assert "record" in case.reason


def test_complaints_of_the_run_win_over_reframes_pass():
    (case,) = assemble(EXPECTED, [outcome()], [record(complaints=[in_words("2 singletons")])])
    assert case.state is CaseState.FAILED
    assert case.reason == "2 singletons"


def test_what_cannot_be_had_is_said_and_is_no_failure():
    kept = record(unavailable="no wheel for riscv64", samples=[])
    (case,) = assemble(EXPECTED, [outcome(result="skip")], [kept])
    assert case.state is CaseState.NOT_AVAILABLE
    assert case.reason == "no wheel for riscv64"


def test_a_run_in_which_nothing_was_measured_is_invalid():
    kept = record(unavailable="no wheel for riscv64", samples=[])
    cases = assemble(EXPECTED, [outcome(result="skip")], [kept])
    assert verdicts(cases) == [Verdict.INVALID]


def test_a_row_with_a_word_instead_of_figures_is_invalid():
    row = Row("IMB-MPI1", "Alltoall", {"bytes": 4194304}, {}, status="out-of-mem")
    (case,) = assemble(EXPECTED, [outcome()], [record(unmeasured=[row])])
    assert verdicts([case]) == [Verdict.NO_REFERENCE, Verdict.INVALID]
    sentence = case.figures[1].judgement.sentence
    assert "'out-of-mem' instead of a result; allow more with -- -S memory_gb" in sentence


def test_words_of_several_launches_are_one_failed_figure():
    """Words of several launches are one figure that ReFrame fails and the others count."""
    row = Row("IMB-MPI1", "Alltoall", {"bytes": 4194304}, {}, status="time-out")
    kept = record(unmeasured=[row, row, row])
    told = reframe_figures((), kept.unmeasured)
    assert told == [("Alltoall.4194304B.time-out", 3.0, "launches", (0.0, None, 0.0, "launches"))]
    (case,) = assemble(EXPECTED, [outcome(result="fail", phase="performance")], [kept])
    assert case.state is CaseState.RAN
    assert verdicts([case]) == [Verdict.NO_REFERENCE, Verdict.INVALID]


def test_a_case_that_left_no_figure_has_failed():
    (case,) = assemble(EXPECTED, [outcome()], [record(samples=[])])
    assert case.state is CaseState.FAILED
    assert "left no figure" in case.reason


# ---------------------------------------------------------------------------------------- groups

SIZES = (8, 64, 512)


def imb_record(factor=1.0, launches=5, **changes):
    samples = [
        ping(factor * (1 + order / 1000), size, order)
        for order in range(launches)
        for size in SIZES
    ]
    made = builders.launches(launches, 0.3)
    return record(**{"samples": samples, "launches": made, "launches_needed": 3, **changes})


def grouped(check, partition, stack, conditions, sample):
    known = baseline(NOISE[:, SIZES.index(sample.conditions["bytes"])], compared=9)
    return Reference(1.0, None, 0.35, "us", "measured", known)


# Single figures are noisy, each by itself, so that only all of them together see 10 %.
NOISE = np.exp(np.random.default_rng(5).normal(0.04, 0.03, (20, 3))).round(4)


def judged(kept, **reframe):
    (case,) = assemble({}, [outcome(**reframe)], [kept], grouped)
    return case


def test_a_slow_down_that_no_figure_shows_is_seen_in_all_of_them():
    case = judged(imb_record(1.16))
    (group,) = case.groups
    assert group.judgement.verdict is Verdict.REGRESSION
    assert group.judgement.reasons[0].code == "change.slower-than-before"
    assert {f.judgement.verdict for f in case.figures} == {Verdict.INCONCLUSIVE}
    assert exit_status(verdicts([case])) == 1


def test_figures_near_the_best_pass_beside_their_group():
    case = judged(imb_record(1.0))
    assert [g.judgement.verdict for g in case.groups] == [Verdict.PASS]
    assert {f.judgement.verdict for f in case.figures} == {Verdict.PASS}


def test_a_size_does_not_pass_because_its_group_did():
    kept = imb_record(1.0)
    samples = [
        dataclasses.replace(s, value=1.10 * s.value) if s.conditions["bytes"] == 64 else s
        for s in kept.samples
    ]
    case = judged(dataclasses.replace(kept, samples=samples))
    assert [g.judgement.verdict for g in case.groups] == [Verdict.PASS]
    assert [f.judgement.verdict for f in case.figures] == [
        Verdict.PASS,
        Verdict.INCONCLUSIVE,
        Verdict.PASS,
    ]


def test_launches_slow_at_times_fail_in_reframe_too():
    kept = imb_record(1.0, launches=12)
    samples = [dataclasses.replace(s, value=5.0) if s.order % 2 else s for s in kept.samples]
    kept = dataclasses.replace(kept, samples=samples)
    case = judged(kept, result="fail", phase="performance", reason="reference")
    assert set(verdicts([case])) == {Verdict.REGRESSION}
    told = reframe_figures(measure_case(kept, grouped))
    assert len(told) == 3
    for _, value, _, bounds in told:
        assert bounds is not None
        low, high = reference_bounds(*bounds[:3])
        assert not low <= value <= high


def test_what_has_too_few_launches_is_no_pass():
    assert set(verdicts([judged(imb_record(launches=2))])) == {Verdict.INCONCLUSIVE}


@pytest.mark.parametrize("factor", [1.0, 1.03, 1.5])
def test_failure_of_a_single_figure_in_reframe_is_judged(factor):
    """Its word is that of one figure; the judge has seen them all."""
    failed = judged(imb_record(factor), result="fail", phase="performance", reason="reference")
    assert (failed.state is CaseState.RAN) == (factor > 1.35)


def test_two_modes_are_told_of_their_figure_and_of_the_run():
    values = (1.0, 1.5, 1.01, 1.51, 1.0, 1.5)
    kept = imb_record(6, samples=[ping(value, 8, order) for order, value in enumerate(values)])
    (case,) = assemble({}, [outcome()], [kept], grouped)
    (figure,) = case.figures
    assert figure.remark == (
        "two modes: 1.000 us in 3 launches and 1.500 us in 3 launches, nothing between"
    )
    (told,) = modes_seen([case])
    assert told.startswith("1 figure has two modes, each judged by its faster one, such as ")
    assert figure.remark in told
    assert modes_seen([judged(imb_record())]) == []


HPL_TIME = dataclasses.replace(SAMPLE, metric="time_s", unit="s", better=Better.LOWER)


def beside(value, kept_off, launches=1):
    """HPL of 10 s in launches of 12 s, during which a neighbour used 0.94 of two cores."""
    samples = [
        dataclasses.replace(sample, order=order)
        for order in range(launches)
        for sample in (dataclasses.replace(SAMPLE, value=value), HPL_TIME)
    ]
    samples = [dataclasses.replace(s, value=10.0) if s.metric == "time_s" else s for s in samples]
    told = in_words("others used 0.94 of 2 cores of n17")
    off = {"kept_off": kept_off, "any_kept_off": kept_off}
    busy = {"host": "n17", "lost_cores": 0.94, "disturbed": told}
    return record(samples=samples, launches=builders.launches(launches, 12.0, **busy, **off))


@pytest.mark.parametrize(
    ("value", "kept_off", "verdict"),
    [
        (100 / 8, 0.47, Verdict.REGRESSION),
        # Others can have kept a rank off its core nearly all the time, or nobody knows.
        (100 / 8, 0.94, Verdict.INCONCLUSIVE),
        (100 / 8, None, Verdict.INCONCLUSIVE),
        (100 / 1.9, 0.47, Verdict.INCONCLUSIVE),
        (97.0, 0.47, Verdict.PASS),
    ],
)
@pytest.mark.parametrize("launches", [1, 3])
def test_29_regression_beyond_the_disturbance(value, kept_off, verdict, launches):
    kept = beside(value, kept_off, launches)
    expected = Reference(100.0, -0.05, None, "Gflop/s", "measured")
    (case,) = assemble(EXPECTED, [outcome()], [kept], lambda *_: expected)
    if verdict is Verdict.REGRESSION:
        sentence = case.figures[0].judgement.sentence
        assert "others used 0.94 of 2 cores of n17, which explains at most 2." in sentence
        assert "; this is 8.0 x; " in sentence
        assert '<failure type="regression"' in render_junit(builders.run(case))
    assert verdicts([case]) == [verdict]
    assert exit_status(verdicts([case])) == (1 if verdict is Verdict.REGRESSION else 0)
    ((_, told, _, bounds),) = reframe_figures(measure_case(kept, lambda *_: expected))
    assert bounds is not None
    lowest, _ = reference_bounds(*bounds[:3])
    assert (told < lowest) == (verdict is Verdict.REGRESSION)


def far_apart(factor, launches):
    """IMB in launches during which the cores were six times as far from each other."""
    kept = imb_record(factor, launches)
    moved = [
        dataclasses.replace(x, disturbed=in_words("two cores were far"), far=6.0)
        for x in kept.launches
    ]
    return dataclasses.replace(kept, launches=moved)


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(40.0, Verdict.REGRESSION), (9.0, Verdict.INCONCLUSIVE), (1.0, Verdict.PASS)],
)
def test_29_cores_far_apart_excuse_figures_by_their_distance(factor, verdict):
    kept = far_apart(factor, 6)
    assert set(verdicts([judged(kept)])) == {verdict}
    told = reframe_figures(measure_case(kept, grouped))
    fails = [
        bounds is not None and bounds[2] is not None and v > bounds[0] * (1 + bounds[2])
        for _, v, _, bounds in told
    ]
    assert set(fails) == {verdict is Verdict.REGRESSION}


def test_30_mostly_slow_launches_are_told_at_the_figure():
    values = [32.9] * 6 + [130.0] * 2
    samples = [dataclasses.replace(SAMPLE, value=v, order=k) for k, v in enumerate(values)]
    kept = record(samples=samples, launches=builders.launches(8))
    expected = Reference(100.0, -0.05, None, "Gflop/s", "measured")
    (case,) = assemble(EXPECTED, [outcome()], [kept], lambda *_: expected)
    (figure,) = case.figures
    assert figure.judgement.verdict is Verdict.INCONCLUSIVE
    assert str(figure.doubt).startswith(
        "6 of 8 launches are 3.0 x worse than the reference, and 2 are"
    )
    (told,) = map(str, doubts([case]))
    assert "HplCheck with mpich: HPL performance_gflops: 6 of 8 launches" in told
    # Without a reference both levels stand beside it, and nothing is compared.
    (case,) = assemble(EXPECTED, [outcome()], [kept])
    assert verdicts([case]) == [Verdict.NO_REFERENCE]
    assert case.figures[0].doubt is None


def test_cases_of_a_stack_that_could_not_be_set_up_say_why():
    expected = [*EXPECTED, CaseId("HplCheck", "local:node", "openmpi")]
    why = STACK_NOT_PROVIDED(stack="openmpi", why="the disk is full")
    cases = assemble(expected, [outcome()], [record()], not_set_up={"openmpi": why})
    assert [(case.stack, case.state) for case in cases] == [
        ("mpich", CaseState.RAN),
        ("openmpi", CaseState.MISSING),
    ]
    assert cases[1].reasons == (why,)
    assert exit_status(verdicts(cases)) == 2


def bcast_judged_by(metric: str, **times: float) -> Case:
    """Return the case of a Bcast that took such times, of which one metric has a reference."""
    kept = record(
        samples=[ping(value, benchmark="Bcast", metric=name) for name, value in times.items()]
    )

    def expect(check, partition, stack, conditions, sample):
        wanted = Reference(1.1, None, 0.05, "us", "measured")
        return wanted if sample.metric == metric else None

    (case,) = assemble(EXPECTED, [outcome()], [kept], expect)
    return case


@pytest.mark.parametrize(("judged", "other"), [("t_max_us", "t_avg_us"), ("t_avg_us", "t_max_us")])
def test_a_slow_rank_is_a_regression_of_a_collective(judged: str, other: str):
    # Older references are of the average.
    case = bcast_judged_by(judged, t_avg_us=2.0, t_max_us=5.0)
    assert verdicts([case]) == [Verdict.REGRESSION] * 2
    (told,) = (f.judgement.sentence for f in case.figures if f.metric == other)
    assert f"the same measurement as Bcast.2p.8B.{judged}" in told


def test_average_of_ranks_does_not_speak_for_the_slowest():
    """The average of the ranks passes and does not speak for the slowest."""
    case = bcast_judged_by("t_avg_us", t_avg_us=1.1, t_max_us=7.0)
    judged = {figure.metric: figure.judgement for figure in case.figures}
    assert judged["t_avg_us"].verdict is Verdict.PASS
    assert judged["t_max_us"].verdict is Verdict.INCONCLUSIVE
    assert "take a new baseline" in judged["t_max_us"].sentence


def test_one_measurement_is_compared_once_and_speaks_for_its_time():
    rate = ping(10.0, metric="bandwidth_mb_s")
    kept = record(samples=[ping(0.8), rate, ping(2.0, 64)])

    def expect(check, partition, stack, conditions, sample):
        wanted = Reference(20.0, -0.05, None, "MB/s", "measured")
        return wanted if sample.metric == "bandwidth_mb_s" else None

    (case,) = assemble(EXPECTED, [outcome()], [kept], expect)
    latency, bandwidth, alone = case.figures
    assert bandwidth.judgement.verdict is latency.judgement.verdict is Verdict.REGRESSION
    assert "the same measurement as PingPong.2p.8B.bandwidth_mb_s" in latency.judgement.sentence
    assert alone.judgement.verdict is Verdict.NO_REFERENCE
    # Where both have references both are compared, and without any nothing is.
    both = Reference(1.0, None, 0.05, "us", "measured")

    def expect_both(check, partition, stack, conditions, sample):
        return expect(check, partition, stack, conditions, sample) or both

    (case,) = assemble(EXPECTED, [outcome()], [kept], expect_both)
    assert [f.judgement.verdict for f in case.figures][:2] == [
        Verdict.IMPROVEMENT,
        Verdict.REGRESSION,
    ]
    (case,) = assemble(EXPECTED, [outcome()], [kept])
    assert {f.judgement.verdict for f in case.figures} == {Verdict.NO_REFERENCE}


def test_a_variable_of_a_blas_that_no_rank_mapped_is_not_told():
    removed = {"NVPL_BLAS_DEBUG_CPU_TYPE": "1"}
    of_openblas = {"proof": {"blas": {"library": "/opt/lib/libscipy_openblas64_.so"}}}
    for details, told in ((of_openblas, 0), ({"proof": {"blas": None}}, 0), ({}, 1)):
        one = record(removed_environment=removed, details=details)
        assert len(assembly.removed_variables([one])) == told, details
