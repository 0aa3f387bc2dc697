"""Tolerances of kinds of figures that people write: their form, and what is judged by them."""

import dataclasses
import math
from pathlib import Path

import pytest

from clustergate.benchmarks.registry import every_check
from clustergate.core.model import (
    BadRequest,
    Better,
    Case,
    CaseRecord,
    Reference,
    Sample,
    Standing,
    Verdict,
)
from clustergate.judge.assembly import (
    assemble,
    reframe_figures,
)
from clustergate.judge.case import measure_case
from clustergate.judge.confirmation import Launched, decided, suspicious, unconfirmed
from clustergate.judge.references.lookup import References, parse_references
from clustergate.judge.references.tolerances import tolerated
from clustergate.judge.rules import Compared, Comparison, groups, judgements
from clustergate.judge.runs import figure_id
from clustergate.judge.standings import standings
from clustergate.sites.modes import mode_named
from tests import builders

FIVE = "tolerances: {compute: 3 %, memory: 5 %, latency: 10 %, bandwidth: 5 %, collectives: 20 %}\n"
HPL_OF_ONE_DAY = """
$provenance:
  HplCheck/alpha:node/mpich/2-ranks-packed/smoke:
    origin: measured
    dates: [2026-11-01]
    samples: 3
    rule: best of 3 runs
    build: 3fa9c2d1
    nodes: [n1]
$statistics:
  HplCheck/alpha:node/mpich/2-ranks-packed/smoke:
    launches: 3
    runs: [a, b, c]
    days: [2026-11-01, 2026-11-01, 2026-11-01]
    values: {HPL.performance_gflops: [100.0, 98.0, 96.0]}
HplCheck:
  $index: [$partition, $environ, reference_layout, reference_effort]
  alpha:node:
    mpich:
      2-ranks-packed:
        smoke:
          HPL.performance_gflops: [100.0, -0.5, null, Gflop/s]
"""


def read(text: str) -> References:
    return parse_references(text, Path("alpha.yaml"), every_check())


def hpl(*best: float) -> CaseRecord:
    samples = [builders.hpl(value, order) for order, value in enumerate(best)]
    made = builders.launches(len(best), 10.0)
    return builders.record(*samples, partition="alpha:node", launches=made)


def judged(known: References, *best: float) -> Case:
    record = hpl(*best)
    (case,) = assemble((), [builders.passed(record)], [record], known.find, expects=known.expects)
    return case


def verdict(known: References, *best: float) -> Verdict:
    (figure,) = judged(known, *best).figures
    return figure.judgement.verdict


# --- the form ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [FIVE, FIVE + 'expect:\n  HPL: ">= 90 Gflop/s"\n', FIVE + HPL_OF_ONE_DAY]
)
def test_a_file_with_tolerances_is_complete(text: str) -> None:
    known = read(text)
    assert (known.tolerances["compute"], known.tolerances["collectives"]) == (0.03, 0.20)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tolerances: {comput: 3 %}\n", "bandwidth, collectives; did you mean 'compute'?"),
        ("tolerances: {collective: 3 %}\n", "did you mean 'collectives'?"),
        ("tolerances: {compute: 3}\n", "'3' is no tolerance; write 3 % for 3 % worse"),
        ("tolerances: {compute: 0.03}\n", "is no tolerance"),
        ("tolerances: {compute: 60 %}\n", "is no tolerance"),
        ("tolerance: {compute: 3 %}\n", "did you mean 'tolerances'?"),
        ("tolerances: {}\n", "is not valid here"),
        ('expect:\n  HPL: {value: ">= 9 Gflop/s", tolerance: 3}\n', "is no tolerance"),
        ('expect:\n  HPL: {value: ">= 9 Gflop/s", toleranc: 3 %}\n', "did you mean 'tolerance'?"),
    ],
)
def test_what_is_no_tolerance_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(BadRequest, match=r"alpha\.yaml:[12]: ") as raised:
        read(text)
    assert words in str(raised.value)


# --- beside expectations ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tolerances", "best", "verdict", "standing"),
    [
        ("", (98.0, 97.9), Verdict.REGRESSION, Standing.MISSED),
        (FIVE, (98.0, 97.9), Verdict.PASS, Standing.MET),
        # Less than its launches differ by: nobody could decide it.
        ("", (98.0, 90.0), Verdict.INCONCLUSIVE, Standing.UNDECIDED),
        (FIVE, (98.0, 90.0), Verdict.PASS, Standing.MET),
        (FIVE, (96.0, 85.0), Verdict.REGRESSION, Standing.MISSED),
    ],
)
def test_what_an_expectation_tolerates_meets_it(
    tolerances: str, best: tuple[float, ...], verdict: Verdict, standing: Standing
) -> None:
    known = read(tolerances + 'expect:\n  HPL: ">= 100 Gflop/s"\n')
    case = judged(known, *best)
    (figure,) = case.figures
    assert figure.judgement.verdict is verdict
    (account,) = standings(known.expects, [case], mode_named("smoke"), ["mpich"])
    assert account.standing is standing


def test_what_is_met_by_its_tolerance_is_told() -> None:
    case = judged(read(FIVE + 'expect:\n  HPL: ">= 100 Gflop/s"\n'), 98.0)
    assert case.figures[0].judgement.sentence == (
        "HPL 98.00 Gflop/s is 2.0 % below 100.0 (alpha.yaml:3), and 3.0 % are tolerated"
    )


def test_an_expectation_may_have_a_tolerance_of_its_own() -> None:
    text = 'expect:\n  HPL: {value: ">= 100 Gflop/s", tolerance: 0 %}\n'
    assert verdict(read(FIVE + text), 99.0, 90.0) is Verdict.REGRESSION
    assert verdict(read(FIVE + text.replace("0 %", "2 %")), 99.0) is Verdict.PASS


@pytest.mark.parametrize(
    ("benchmark", "metric", "size", "tolerance"),
    [
        ("PingPong", "latency_us", 8, 0.10),
        ("PingPong", "bandwidth_mb_s", 1 << 22, 0.05),
        ("Allreduce", "t_max_us", 1 << 16, 0.20),
    ],
)
def test_an_expectation_is_of_the_kind_of_its_figure(
    benchmark: str, metric: str, size: int, tolerance: float
) -> None:
    unit, way = ("MB/s", ">=") if metric == "bandwidth_mb_s" else ("us", "<=")
    (one,) = read(FIVE + f'expect:\n  {benchmark} {size} B: "{way} 1 {unit}"\n').expects
    sample = Sample(benchmark, metric, unit, Better.LOWER, {"bytes": size}, 1.0, 0)
    assert one.of(sample, "ImbMpi1Check").tolerance == tolerance
    # Which of them it is of, is no part of what it is.
    assert one.of(sample, "ImbMpi1Check") == one.expectation


def test_reframe_fails_an_expectation_where_the_judge_does() -> None:
    known = read(FIVE + 'expect:\n  HPL: ">= 100 Gflop/s"\n')
    for value, bound in ((98.0, 97.0), (95.0, 97.0)):
        record = hpl(value)
        measured = measure_case(record, known.find, expects=known.expects)
        ((_, _, _, tuple_),) = reframe_figures(measured)
        assert tuple_ is not None
        assert tuple_[1] is not None
        assert tuple_[0] * (1 + tuple_[1]) == pytest.approx(bound)


def looked(known: References, *values: float) -> Case:
    first, *again = [Launched(judged(known, value)) for value in values]
    return decided(first, again, "smoke", None)


def test_missed_expectation_launched_again_before_told() -> None:
    """What misses an expectation by more is launched again before it is told."""
    known = read(FIVE + 'expect:\n  HPL: ">= 100 Gflop/s"\n')
    assert list(suspicious([judged(known, 90.0)]).values()) == ["HPL 10 % slower"]
    assert suspicious([judged(known, 98.0)]) == {}
    slow = looked(known, 90.0, 91.0, 90.0)
    assert "slow three times in a row" in slow.figures[0].judgement.sentence
    fast = looked(known, 90.0, 99.0)
    assert fast.figures[0].judgement.verdict is Verdict.INCONCLUSIVE
    short = looked(known, 90.0, 91.0)
    assert unconfirmed(short)
    became = [
        standings(known.expects, [case], mode_named("smoke"), ["mpich"])[0].standing
        for case in (slow, fast, short)
    ]
    assert became == [Standing.MISSED, Standing.MET, Standing.UNDECIDED]


def test_without_a_tolerance_the_best_launch_decides_at_once() -> None:
    known = read('expect:\n  HPL: ">= 100 Gflop/s"\n')
    assert verdict(known, 90.0) is Verdict.REGRESSION
    assert suspicious([judged(known, 90.0)]) == {}


# --- beside measured references -----------------------------------------------------------------


def test_the_tolerance_counts_from_the_mean_of_the_runs() -> None:
    known = read(FIVE + HPL_OF_ONE_DAY)
    reference = known.find(
        "HplCheck", "alpha:node", "mpich", builders.CONDITIONS, hpl(1.0).samples[0]
    )
    assert reference
    assert reference.lower is not None
    mean = math.exp(sum(map(math.log, (100.0, 98.0, 96.0))) / 3)
    assert 100.0 * (1 + reference.lower) == pytest.approx(0.97 * mean)


@pytest.mark.parametrize(
    ("best", "before", "now"),
    [
        # Nothing is known of one day on a machine that is shared.
        (95.2, Verdict.INCONCLUSIVE, Verdict.PASS),
        (94.0, Verdict.INCONCLUSIVE, Verdict.REGRESSION),
        (80.0, Verdict.INCONCLUSIVE, Verdict.REGRESSION),
        # Nearer to the best than 4.7 %.
        (96.0, Verdict.PASS, Verdict.PASS),
    ],
)
def test_a_baseline_of_one_day_is_judged_by_tolerances(
    best: float, before: Verdict, now: Verdict
) -> None:
    assert verdict(read(HPL_OF_ONE_DAY), best) is before
    assert verdict(read(FIVE + HPL_OF_ONE_DAY), best) is now


def test_what_exceeds_a_tolerance_is_launched_again() -> None:
    known = read(FIVE + HPL_OF_ONE_DAY)
    assert list(suspicious([judged(known, 90.0)]).values()) == ["HPL 10 % slower"]
    (figure,) = looked(known, 90.0, 91.0, 90.0).figures
    assert "beyond 95.05: 3.0 % are tolerated" in figure.judgement.sentence
    assert "slow three times in a row" in figure.judgement.sentence


def test_what_people_wrote_in_reframes_form_keeps_its_bound() -> None:
    sample = hpl(1.0).samples[0]
    by_hand = Reference(100.0, -0.1, None, "Gflop/s", "published: a sheet", by_hand=True)
    assert tolerated(by_hand, {"compute": 0.03}, "HplCheck", sample) == by_hand


def test_a_benchmark_whose_figures_are_tolerated_passes_as_a_whole() -> None:
    case = ("ImbMpi1Check", "alpha:node", "mpich", "2-ranks-packed", "smoke")
    of = []
    for size in (8, 64):
        name = f"PingPong.2p.{size}B.latency_us"
        figure = figure_id(case, name, "PingPong", "latency_us", size)
        runs = builders.baseline((1.0, 1.02, 1.04), days=1, launches=30, compared=2)
        reference = Reference(1.0, None, 0.5, "us", "measured", runs)
        of.append(Compared(figure, 1.08, Better.LOWER, reference, runs))
    plain = Comparison(of)
    assert {one.verdict for one in judgements(plain)} == {Verdict.INCONCLUSIVE}
    tolerant = dataclasses.replace(of[0].reference, tolerance=0.1, upper=0.122)
    with_tolerance = Comparison([dataclasses.replace(one, reference=tolerant) for one in of])
    assert {one.verdict for one in judgements(with_tolerance)} == {Verdict.PASS}
    assert [group.judgement.verdict for _, group in groups(plain)] == [Verdict.INCONCLUSIVE]
    assert [group.judgement.verdict for _, group in groups(with_tolerance)] == [Verdict.PASS]
