"""What people wrote that figures must reach: its form, how it is judged, and what was compared."""

import dataclasses
import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks.naming import meaning_of, suggested_name, unit_factor, with_bytes
from clustergate.benchmarks.registry import every_check, every_headline
from clustergate.core.figures import samples_of
from clustergate.core.model import (
    BadRequest,
    Case,
    CaseRecord,
    CaseState,
    Launch,
    Row,
    Run,
    Standing,
    Verdict,
)
from clustergate.core.paths import checkout
from clustergate.core.reasons import in_words
from clustergate.judge.assembly import (
    Outcome,
    assemble,
    reframe_figures,
)
from clustergate.judge.baselines.writer import updated
from clustergate.judge.case import measure_case
from clustergate.judge.judging import exit_status
from clustergate.judge.references.lookup import References, parse_references
from clustergate.judge.standings import left_out, not_compared, standings
from clustergate.judge.standings import of_references as of_references_by_hand
from clustergate.report.html import render_html
from clustergate.report.summary import exit_meaning, first_screen, status_of
from clustergate.report.terminal import render
from clustergate.report.verdicts import as_json
from clustergate.run.gate.decision import benchmark_evidence, expectation_evidence
from clustergate.run.readiness import FAIL, OK, check_references
from clustergate.sites.description import Partition
from clustergate.sites.modes import mode_named
from tests import builders
from tests.builders import passed

IMB, HPL = "ImbMpi1Check", "HplCheck"
STACKS = ("mpich", "openmpi")


def read(text: str) -> References:
    return parse_references("expect:\n" + text, Path("alpha.yaml"), every_check())


def record(
    check: str = IMB,
    stack: str = "mpich",
    best: Sequence[float] = (3200.0, 3190.0, 3150.0),
    size: int = 4194304,
    nodes: int = 1,
    settings: str = "",
    mode: str = "smoke",
) -> CaseRecord:
    """Return a case of HPL with its share of nominal peak, or of PingPong with its bandwidth."""
    of = {"mode": mode, "settings": settings, "ranks_per_node": 2 // nodes, "nodes": nodes}
    of["placement"] = "packed" if nodes == 1 else "one-per-node"
    samples = [
        builders.sample("HPL", "efficiency_percent", value, order, against="nominal")
        if check == HPL
        else builders.ping(value, size, order, metric="bandwidth_mb_s")
        for order, value in enumerate(best)
    ]
    return builders.record(
        *samples,
        check=check,
        stack=stack,
        partition="alpha:node",
        name=f"{check}-{stack}-{nodes}",
        conditions={**builders.CONDITIONS, **of},
        launches=builders.launches(len(best)),
    )


def judged(text: str, *records: CaseRecord, mode: str = "smoke") -> Run:
    """Return a run with expectations, as `clustergate check` judges it."""
    known = read(text)
    outcomes = list(map(passed, records))
    cases = assemble(
        [one.identity for one in outcomes], outcomes, records, known.find, expects=known.expects
    )
    account = standings(known.expects, cases, mode_named(mode), STACKS)
    beside = {"evidence": tuple(not_compared(account)), "expectations": account}
    return builders.run(*cases, system="alpha", mode=mode, **beside)


def first_line(run: Run) -> str:
    return first_screen(run).lines()[0].lstrip(" ✓✗~")


# --- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "check", "benchmark", "conditions"),
    [
        ("HPL of nominal peak", HPL, "HPL", {"against": "nominal"}),
        ("PingPong 8 B", IMB, "PingPong", {"bytes": 8}),
        ("pingpong  16MiB", IMB, "PingPong", {"bytes": 1 << 24}),
        ("PingPong 4194304", IMB, "PingPong", {"bytes": 1 << 22}),
        ("PingPong 4194304 bytes", IMB, "PingPong", {"bytes": 1 << 22}),
        ("Allreduce 1 MB", IMB, "Allreduce", {"bytes": 1 << 20}),
        ("PingPong.2p.4MiB.bandwidth_mb_s", IMB, "PingPong", {"bytes": 1 << 22}),
        ("Unidir_put 1 MiB", "ImbRmaCheck", "Unidir_put", {"bytes": 1 << 20}),
        ("HPCC PTRANS", "HpccCheck", "PTRANS_GBs", {}),
    ],
)
def test_a_name_means_what_it_does_in_the_table(name, check, benchmark, conditions):
    meaning = meaning_of(name)
    assert meaning is not None
    line = meaning.lines[0]
    assert (line.check, line.benchmark, dict(line.conditions)) == (check, benchmark, conditions)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("PingPng 8 B", "PingPong 8 B"),
        ("PingPong 4 MB", "PingPong 4 MiB"),
        ("PingPong 4M", "PingPong 4 MiB"),
        ("PingPong 16777217B", "PingPong 16 MiB"),
        ("Alreduce 64 KB", "Allreduce 64 KiB"),
        ("HPL of nominl peak", "HPL of nominal peak"),
        ("PingPong", "PingPong 8 B"),
        ("PingPong.2p.4MiB.bandwith_mb_s", "PingPong.2p.4MiB.bandwidth_mb_s"),
    ],
)
def test_a_name_that_no_check_has_is_asked_for(name, near):
    assert meaning_of(name) is None
    assert suggested_name(name) == near


@pytest.mark.parametrize("line", every_headline(), ids=lambda line: line.title)
def test_each_row_of_the_table_is_named_as_it_is_there(line):
    meaning = meaning_of(line.title)
    assert meaning is not None
    assert meaning.lines[0] == line


def test_units_are_turned_into_each_other_but_bits_are_no_bytes():
    assert unit_factor("ns", "us") == pytest.approx(1e-3)
    assert unit_factor("Tflop/s", "Gflop/s") == pytest.approx(1e3)
    assert unit_factor("GB/s", "MB/s") == pytest.approx(1e3)
    assert unit_factor("Mb/s", "MB/s") is None
    assert unit_factor("%", "us") is None


PAGE = (checkout() / "docs" / "expectations.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_every_example_of_the_page_is_taken_word_for_word():
    files = [parse_references(text, Path("alpha.yaml"), every_check()) for text in BLOCKS]
    assert len(files) == 3
    assert all(one.meaning for known in files for one in known.expects)
    names = PAGE[PAGE.index("\n- a line of the table") : PAGE.index("Sizes are in bytes")]
    named = [
        name for name in re.findall(r"`([^`]+)`", names) if name[0].isupper() and name != "MB/s"
    ]
    assert len(named) >= 8
    assert [name for name in named if meaning_of(name) is None] == []


def test_headline_of_the_page_is_its_examples():
    known = parse_references(BLOCKS[0], Path("alpha.yaml"), every_check())
    hpl = record(HPL, "mvapich2", best=(92.9,), mode="maintenance", nodes=2)
    imb = record(IMB, "mvapich2", best=(2900.0, 2890.0), mode="maintenance", nodes=2)
    row = Row("IMB-MPI1", "PingPong", {"processes": 2, "bytes": 8}, {"latency_us": 1.1})
    imb = dataclasses.replace(imb, samples=[*imb.samples, *samples_of([row], order=0)])
    outcomes = [
        Outcome(r.name, r.check, r.stack, "pass", partition=r.partition) for r in (hpl, imb)
    ]
    keys = [one.identity for one in outcomes]
    cases = assemble(keys, outcomes, [hpl, imb], known.find, expects=known.expects)
    account = standings(known.expects, cases, mode_named("maintenance"), ["mvapich2"])
    run = Run("one", "alpha", "maintenance", "", 1.0, cases, expectations=account)
    assert first_line(run) in PAGE


@pytest.mark.parametrize("name", ["PingPong 16 MiB", "PingPong.2p.16MiB.bandwidth_mb_s"])
def test_size_of_no_mode_told_with_its_command(name):
    """It was "of another mode" of published studies, or "by -S: no mode measures it"."""
    run = judged(f'  {name}: ">= 3100 MB/s"\n', record())
    (one,) = run.expectations
    assert (one.standing, status_of(run)) == (Standing.ELSEWHERE, 0)
    assert str(one.reason) == (
        f"no mode measures {with_bytes(name)}; ImbMpi1Check does, with -- -S "
        "ImbMpi1Check.benchmarks=PingPong -S ImbMpi1Check.largest_bytes=16777216"
    )
    by_hand_settings = "benchmarks=['PingPong'],largest_bytes=16777216"
    measured = record(size=1 << 24, settings=by_hand_settings)
    assert [x.standing for x in judged(f'  {name}: ">= 3100 MB/s"\n', measured).expectations] == [
        Standing.MET
    ]


# --- the form ---------------------------------------------------------------------------------


def test_a_file_that_holds_expectations_alone_is_complete():
    known = read(
        '  HPL of nominal peak: ">= 87 %"\n  PingPong 8 B: "<= 200 ns"\n'
        '  PingPong 16 MiB: {value: ">= 3.1 GB/s", source: "table 2", stacks: [mpich], nodes: 2}\n'
    )
    hpl, latency, bandwidth = known.expects
    assert (hpl.expectation.floor, hpl.expectation.where) == (87.0, "alpha.yaml:2")
    assert latency.expectation.floor == pytest.approx(0.2)
    assert bandwidth.expectation.floor == pytest.approx(3100.0)
    assert dict(bandwidth.only) == {"stacks": ("mpich",), "nodes": (2,)}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('HPL: ">= 87 %"', "HPL is in Gflop/s, not in '%'"),
        ('HPL: "<= 87 Gflop/s"', "write >="),
        ('PingPong 8 B: "1.2 us"', "neither a floor nor a ceiling"),
        ('PingPong best: ">= 3100 Mb/s"', "not in 'Mb/s'"),
        ('HPL: ">= 0 Gflop/s"', "neither a floor nor a ceiling"),
        ('PingPong best: {value: ">= 3 GB/s", stack: mpich}', "did you mean 'stacks'?"),
        ('PingPong best: {value: ">= 3 GB/s", modes: smok}', "unknown mode 'smok'"),
        ('PingPong best: {value: ">= 3 GB/s", nodes: 0}', "a number from 1 on"),
        ("PingPong best: {nodes: 2}", "'value' is a required property"),
        ("PingPong best: 3100", "in quotation marks"),
        ("PingPong best: >= 3100 MB/s", "needs quotation marks"),
    ],
)
def test_what_is_no_expectation_is_refused_with_its_line(line, words):
    with pytest.raises(BadRequest, match=r"alpha\.yaml:2: ") as raised:
        read(f"  {line}\n")
    assert words in str(raised.value)


def test_a_baseline_keeps_expectations_as_they_stand():
    text = '# ours\nexpect:\n  HPL of nominal peak: ">= 87 %"  # table 1\n'
    assert updated(text, []) == text


# --- met, missed, not decided -----------------------------------------------------------------


def test_expectation_met_by_the_best_of_noisy_launches():
    run = judged('  PingPong best: ">= 3100 MB/s"\n', record(best=(6838.0, 3800.0, 3500.0)))
    assert [x.standing for x in run.expectations] == [Standing.MET]
    assert status_of(run) == 0
    assert first_line(run) == "MET: 1 expectation: PingPong best. 1 of 1 result as before."
    assert run.cases[0].figures[0].judgement.verdict is Verdict.PASS


def test_most_launches_far_slower_stay_a_finding_of_their_own():
    run = judged('  PingPong best: ">= 3100 MB/s"\n', record(best=(3200.0, 900.0, 800.0)))
    assert [x.standing for x in run.expectations] == [Standing.MET]
    figure = run.cases[0].figures[0]
    assert figure.judgement.verdict is Verdict.INCONCLUSIVE
    assert "launches.slow-share" in [one.code for one in figure.judgement.reasons]
    assert (status_of(run), exit_status([figure.judgement.verdict], "gate")) == (0, 2)


def test_what_misses_by_more_than_its_interval_is_missed():
    line = '  PingPong best: {value: ">= 3100 MB/s", source: "contract, table 2"}\n'
    run = judged(
        '  HPL of nominal peak: ">= 87 %"\n' + line,
        record(HPL, best=(92.9,)), record(best=(2900.0, 2890.0, 2880.0)),
    )  # fmt: skip
    assert status_of(run) == 1
    assert first_line(run).startswith(
        "MISSED: 1 of 2 expectations. PingPong best 2900 MB/s is 6.5 % below 3100 (contract, table "
    )
    (against,) = [e for e in benchmark_evidence(run.cases) if e.verdict is Verdict.REGRESSION]
    assert "6.5 % below 3100" in against.sentence


def test_between_nothing_is_decided_and_more_launches_would_decide():
    run = judged('  PingPong best: ">= 3100 MB/s"\n', record(best=(3090.0, 2900.0, 2800.0)))
    assert [x.standing for x in run.expectations] == [Standing.UNDECIDED]
    assert "-S ImbMpi1Check.launches=6" in str(run.expectations[0].reason)
    assert status_of(run) == 0
    assert exit_status([e.verdict for e in expectation_evidence(run.expectations)], "gate") == 2


def test_reframe_fails_what_is_missed_and_nothing_else():
    known = read('  PingPong best: ">= 3100 MB/s"\n')
    for best, fails in (
        ((6838.0, 3800.0, 3500.0), False),
        ((2900.0, 2890.0, 2880.0), True),
        ((3090.0, 2900.0, 2800.0), False),
    ):
        one = record(best=best)
        ((_, value, _, bounds),) = reframe_figures(measure_case(one, expects=known.expects))
        below = bounds is not None and bounds[1] is not None and value < bounds[0] * (1 + bounds[1])
        assert below is fails


def test_reference_by_hand_beaten_by_the_best_of_noisy_launches():
    text = (
        "$provenance:\n  ImbMpi1Check:\n    origin: published\n    source: contract\n"
        "ImbMpi1Check:\n  $index: [$partition, $environ, reference_layout, reference_effort]\n"
        "  alpha:node:\n    mpich:\n      2-ranks-packed:\n        smoke:\n"
        "          PingPong.2p.4MiB.bandwidth_mb_s: [3100.0, -0.05, null, MB/s]\n"
    )
    known = parse_references(text, Path("alpha.yaml"), every_check())
    one = record(best=(6838.0, 2500.0, 2400.0))
    outcome = Outcome(one.name, IMB, "mpich", "pass", partition="alpha:node")
    (case,) = assemble([outcome.identity], [outcome], [one], known.find)
    assert case.figures[0].judgement.verdict is Verdict.PASS


def with_reference(values: str, expect: str = "") -> References:
    """Return a reference in ReFrame's form of PingPong's bandwidth, beside an expectation."""
    lines = "" if not expect else f'expect: {{PingPong best: "{expect}"}}\n'
    return parse_references(lines + TUPLE.format(values=values), Path("alpha.yaml"), every_check())


TUPLE = (
    "$provenance: {{ImbMpi1Check: {{origin: published, source: contract}}}}\n"
    "ImbMpi1Check:\n  $index: [$partition, $environ, reference_layout, reference_effort]\n"
    "  alpha:node: {{mpich: {{2-ranks-packed: {{smoke: {{\n"
    "    PingPong.2p.4MiB.bandwidth_mb_s: {values}}}}}}}}}\n"
)


def by_both(known: References, one: CaseRecord) -> tuple[Verdict, bool]:
    """Return the verdict of the one figure of a case, and whether ReFrame fails it."""
    outcome = passed(one)
    keys, expects = [outcome.identity], known.expects
    (case,) = assemble(keys, [outcome], [one], known.find, expects=expects)
    measured = measure_case(one, known.find, expects=expects)
    ((_, value, _, bounds),) = reframe_figures(measured)
    fails = bounds is not None and bounds[1] is not None and value < bounds[0] * (1 + bounds[1])
    return case.figures[0].judgement.verdict, fails


@pytest.mark.parametrize(
    ("expect", "values", "verdict"),
    [
        # 2900 MB/s, and 2890 in the other launches.
        (">= 2800 MB/s", "[3000.0, -0.05, null, MB/s]", Verdict.PASS),
        (">= 3100 MB/s", "[3000.0, -0.05, null, MB/s]", Verdict.REGRESSION),
        (">= 2800 MB/s", "[4000.0, -0.05, null, MB/s]", Verdict.REGRESSION),
        (">= 2905 MB/s", "[3000.0, -0.05, null, MB/s]", Verdict.INCONCLUSIVE),
        (">= 2905 MB/s", "[4000.0, -0.05, null, MB/s]", Verdict.REGRESSION),
        (">= 2800 MB/s", "[3058.0, -0.05, null, MB/s]", Verdict.INCONCLUSIVE),
        (">= 2800 MB/s", "[200.0, -0.05, null, MB/s]", Verdict.INVALID),
        # A status of 1 stands above one of 2.
        (">= 3100 MB/s", "[200.0, -0.05, null, MB/s]", Verdict.REGRESSION),
    ],
)
def test_worst_of_reference_and_expectation_is_the_verdict(expect, values, verdict):
    known, one = with_reference(values, expect), record(best=(2900.0, 2890.0, 2890.0))
    assert by_both(known, one) == (verdict, verdict in (Verdict.REGRESSION, Verdict.INVALID))


@pytest.mark.parametrize(
    ("best", "verdict", "statuses"),
    [
        ((2950.0, 2000.0, 1900.0), Verdict.PASS, (0, 0)),
        ((2930.0, 2900.0, 2890.0), Verdict.INCONCLUSIVE, (0, 2)),
        ((2900.0, 2890.0, 2880.0), Verdict.REGRESSION, (1, 1)),
    ],
)
def test_tuple_by_hand_met_missed_or_undecided(best, verdict, statuses):
    """Its bound, 2945 MB/s, is the floor."""
    known = with_reference("[3100.0, -0.05, null, MB/s]")
    assert by_both(known, record(best=best)) == (verdict, verdict is Verdict.REGRESSION)
    assert (exit_status([verdict]), exit_status([verdict], "gate")) == statuses


@pytest.mark.parametrize(("best", "standing"), [(60.0, Standing.UNDECIDED), (5.0, Standing.MISSED)])
def test_too_few_undisturbed_launches_miss_beyond_disturbance(best, standing):
    """Others kept each rank off its core in 30 % of a launch of 12 s, 10 of which were HPL's."""
    one = record(HPL, best=(best,))
    time = Row("HPL", "HPL", {"against": "nominal"}, {"time_s": 10.0})
    beside = Launch(
        *(0, 0.0, 12.0, "n1", 0.9),
        disturbed=in_words("beside others"), kept_off=0.3, any_kept_off=0.3,
    )  # fmt: skip
    samples = [*one.samples, *samples_of([time], order=0)]
    one = dataclasses.replace(one, samples=samples, launches=[beside], launches_needed=1)
    run = judged('  HPL of nominal peak: ">= 87 %"\n', one)
    (account,) = run.expectations
    assert account.standing is standing
    figure = next(figure for figure in run.cases[0].figures if figure.expected)
    assert "beside others" in "; ".join(map(str, figure.judgement.reasons))
    evidence = [*benchmark_evidence(run.cases), *expectation_evidence(run.expectations)]
    statuses = (status_of(run), exit_status([e.verdict for e in evidence], "gate"))
    assert statuses == ((1, 1) if standing is Standing.MISSED else (0, 2))


# --- what was not compared --------------------------------------------------------------------


def test_a_misspelt_name_ends_with_2_and_is_asked_for():
    run = judged('  PingPng 8 B: "<= 1.2 us"\n', record())
    assert status_of(run) == 2
    assert "did you mean 'PingPong 8 B'?" in render(run, width=200)
    assert first_line(run).startswith("NOT COMPARED: ")


def test_a_figure_that_its_case_lacks_ends_with_2():
    run = judged('  PingPong 8 B: "<= 1.2 us"\n', record())
    assert [x.standing for x in run.expectations] == [Standing.NOT_COMPARED]
    assert status_of(run) == 2


def test_a_stack_that_the_site_lacks_ends_with_2():
    run = judged('  PingPong best: {value: ">= 1 GB/s", stacks: opnmpi}\n', record())
    assert status_of(run) == 2
    assert "did you mean 'openmpi'?" in str(run.expectations[0].reason)


def test_each_stack_must_be_compared():
    other = record(stack="openmpi", size=8192)
    run = judged('  PingPong 4 MiB: ">= 1 GB/s"\n', record(), other)
    assert status_of(run) == 2
    assert "openmpi" in str(run.expectations[0].reason)


@pytest.mark.parametrize(
    "line",
    [
        'PingPong 2 MiB: ">= 1 GB/s"',
        'PingPong best: {value: ">= 1 GB/s", modes: [acceptance]}',
        'HPCC PTRANS: ">= 1 GB/s"',
        'PingPong best: {value: ">= 1 GB/s", stacks: [openmpi]}',
        'PingPong best: {value: ">= 1 GB/s", nodes: 2}',
    ],
)
def test_expectations_of_another_run_counted_without_status(line):
    run = judged(f"  {line}\n", record())
    assert [x.standing for x in run.expectations] == [Standing.ELSEWHERE]
    assert status_of(run) == 0
    in_gate = [e.verdict for e in expectation_evidence(run.expectations)]
    assert exit_status(in_gate, "gate") == (2 if "stacks" in line or "nodes" in line else 0)


def test_what_is_counted_stands_below_the_headline():
    run = judged(
        '  PingPong best: ">= 3 GB/s"\n  PingPong 2 MiB: ">= 1 GB/s"\n',
        record(), record(HPL, best=(90.0,)),
    )  # fmt: skip
    text = render(run, width=300)
    assert (
        "1 expectation not of this run: PingPong 2 MiB applies to another mode: maintenance" in text
    )
    assert "1 result without an expectation or a reference" in "\n".join(first_screen(run).beside)


def test_the_page_says_beside_the_headline_what_the_terminal_does():
    """The page said neither how many figures nobody expects anything of, nor of which run."""
    run = judged(
        '  PingPong best: ">= 3100 MB/s"\n  PingPong 16 MiB: ">= 1 GB/s"\n',
        record(best=(3090.0, 2900.0, 2800.0)), record(HPL, best=(90.0,)),
    )  # fmt: skip
    page = re.sub(r"<[^>]+>", "", unescape(render_html(run)))
    assert "1 expectation not of this run: no mode measures PingPong 16 MiB" in page
    assert "1 result without an expectation or a reference" in page
    assert render(run, width=300).splitlines()[2].startswith(" ~ NOT DECIDED. 0 of ")


def test_expectation_beaten_tenfold_is_of_another_unit():
    """An expectation that everything beats tenfold is of another unit or launch."""
    run = judged('  PingPong best: ">= 310 MB/s"\n', record(best=(3200.0, 3190.0, 3180.0)))
    assert status_of(run) == 2
    assert "decimal point" in str(run.expectations[0].reason)


def test_a_case_that_failed_or_is_not_there_is_told():
    known = read('  PingPong best: ">= 3 GB/s"\n')
    case = Case(IMB, "mpich", CaseState.MISSING, partition="alpha:node")
    (one,) = standings(known.expects, [case], mode_named("smoke"), STACKS)
    assert one.standing is Standing.NOT_COMPARED


# --- references that were written by hand -----------------------------------------------------

NODE = Partition(
    system="alpha", name="node", environs=STACKS, scheduler="local", launcher="clustergate"
)
LATENCY = "[1.0, null, 0.1, us]"


def by_hand(
    name: str,
    mode: str = "smoke",
    stack: str = "mpich",
    partition: str = "alpha:node",
    values: str = "[3100.0, -0.05, null, MB/s]",
) -> References:
    """Return a reference in ReFrame's form, of a contract."""
    text = (
        "$provenance: {ImbMpi1Check: {origin: published, source: contract}}\n"
        "ImbMpi1Check:\n  $index: [$partition, $environ, reference_layout, reference_effort]\n"
        f"  {partition}:\n    {stack}:\n      2-ranks-packed:\n        {mode}:\n"
        f"          {name}: {values}\n"
    )
    return parse_references(text, Path("alpha.yaml"), every_check())


def held_against(known: References, *records: CaseRecord) -> Run:
    """Return a smoke run with references written by hand, as `clustergate check` judges it."""
    outcomes = list(map(passed, records))
    cases = assemble([one.identity for one in outcomes], outcomes, records, known.find)
    uncompared, beside = of_references_by_hand(known, cases, mode_named("smoke"), [NODE])
    told = {"evidence": tuple(uncompared), "notes": tuple(map(str, beside))}
    return builders.run(*cases, system="alpha", **told)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (by_hand("PingPong.2p.16777216B.bandwidth_mb_s"), "smoke does not measure it"),
        (by_hand("PingPong.4p.4MiB.bandwidth_mb_s"), "mean 'PingPong.2p.4194304B.bandwidth_mb_s'?"),
        (by_hand("PingPng.2p.4MiB.bandwidth_mb_s"), "mean 'PingPong.2p.4194304B.bandwidth_mb_s'?"),
        (by_hand("PingPng.2p.4MiB.bandwidth_mb_s", "maintenance"), "did you mean 'PingPong.2p"),
        (by_hand("PingPong.2p.8B.latency_us", values=LATENCY), "the run left no such figure"),
        (by_hand("PingPong.2p.8B.latency_us", stack="mpch", values=LATENCY), "mean 'mpich'?"),
        (
            by_hand("PingPong.2p.8B.latency_us", partition="alpha:nod", values=LATENCY),
            "did you mean 'alpha:node'?",
        ),
    ],
)
def test_reference_by_hand_not_compared_ends_with_2(known, words):
    """It was a note, with exit status 0."""
    run = held_against(known, record())
    assert status_of(run) == 2
    text = render(run, width=400)
    assert words in text
    assert "correct alpha.yaml:" in text
    assert "a reference was not compared" in exit_meaning(run)


@pytest.mark.parametrize(
    "known",
    [
        by_hand("PingPong.2p.4MiB.bandwidth_mb_s", "maintenance"),
        by_hand("PingPong.2p.16MiB.bandwidth_mb_s", "smoke+largest_bytes=16777216"),
        by_hand("PingPong.2p.4MiB.bandwidth_mb_s", stack="openmpi"),
    ],
)
def test_a_reference_of_another_run_is_counted_in_one_line(known):
    run = held_against(known, record())
    assert status_of(run) == 0
    (line,) = [one for one in run.notes if "1 reference written by hand for other cases" in one]
    assert "alpha.yaml:8" in line


def test_a_reference_that_was_compared_is_told_of_nowhere():
    run = held_against(by_hand("PingPong.2p.4MiB.bandwidth_mb_s"), record())
    assert (status_of(run), run.evidence, run.notes) == (0, (), ())


def test_doctor_fails_for_a_reference_that_no_run_can_compare():
    """It counted it as present."""
    good, bad = (by_hand(f"PingPong.2p.{of}.bandwidth_mb_s") for of in ("4MiB", "16777216B"))
    of = ((), "smoke", STACKS, [NODE])
    assert check_references("alpha", good, *of).status == OK
    assert check_references("alpha", bad, *of).status == FAIL


@pytest.mark.mpi
def test_plain_reframe_fails_for_what_nobody_compared(suite: Any, tmp_path: Path):
    """It passed, and nobody was told of a misspelt name."""
    (tmp_path / "references").mkdir()
    (tmp_path / "references" / "local.yaml").write_text('expect: {PingPng 8 B: "<= 1.2 us"}\n')
    ended = suite.reframe(
        *("-n", "HplCheck", "-S", "HplCheck.n=500", "--system=local:node", "-p", "mpich", "-r"),
        CLUSTERGATE_SITE_FOLDER=str(tmp_path),
    )
    assert ended.returncode == 1, ended.stdout
    assert "Failing phase: performance" in ended.stdout
    assert "did you mean 'PingPong 8 B'?" in ended.stdout


def test_plain_reframe_is_told_by_each_case_what_it_had_to_compare():
    one = record()
    outcome = Outcome(one.name, IMB, "mpich", "pass", partition="alpha:node")

    def whys(known: References) -> str:
        expects = known.expects
        (case,) = assemble((), [outcome], [one], known.find, expects=expects)
        return "; ".join(map(str, left_out(known, case, mode_named("smoke"), [NODE])))

    assert whys(read('  PingPong best: ">= 1 MB/s"\n  HPL: ">= 1 Gflop/s"\n')) == ""
    assert "left no such figure" in whys(read('  PingPong 8 B: "<= 1 us"\n'))
    assert "did you mean 'openmpi'?" in whys(
        read('  PingPong best: {value: ">= 1 MB/s", stacks: opnmpi}\n')
    )
    assert "no such figure" in whys(by_hand("PingPong.2p.8B.latency_us", values=LATENCY))


def test_doctor_tells_what_can_never_be_compared():
    smoke = mode_named("smoke")
    good = check_references("alpha", read('  PingPong best: ">= 3 GB/s"\n'), (), smoke.name, STACKS)
    bad = check_references("alpha", read('  PingPng 8 B: "<= 3 us"\n'), (), smoke.name, STACKS)
    assert (good.status, bad.status) == (OK, FAIL)


def test_programs_read_what_became_of_each():
    run = judged('  PingPong best: ">= 3 GB/s"\n', record())
    (one,) = as_json(run)["expectations"]
    assert (one["name"], one["standing"]) == ("PingPong best", "met")
