"""What the summary of a run says of groups."""

import dataclasses
import re
from typing import Any

import pytest

from clustergate.benchmarks.descriptor import Headline
from clustergate.benchmarks.registry import benchmark_of, title_of
from clustergate.core.figures import name_of
from clustergate.core.model import (
    Better,
    Case,
    CaseState,
    Estimate,
    ExpectationStanding,
    Figure,
    Group,
    Judgement,
    Standing,
    Verdict,
)
from clustergate.core.notation import rounded
from clustergate.core.reasons import in_words, reason_as_json, reason_from_json
from clustergate.core.texts import DISTURBED, UNEXCUSED, doubts
from clustergate.core.texts import figure_name as sentence_name
from clustergate.judge.assembly import verdicts
from clustergate.judge.history.series import key_of
from clustergate.judge.judging import FIGURE_NOTHING
from clustergate.judge.rules import FIGURE_AS_EXPECTED
from clustergate.report.answer import briefly
from clustergate.report.html import NO_HISTORY, render_html
from clustergate.report.junit import render_junit
from clustergate.report.publishing import write_reports
from clustergate.report.summary import (
    CAUSES_SHOWN,
    RUN_BEFORE,
    WHAT_COUNTS,
    first_screen,
    measured,
    picked,
    status_of,
)
from clustergate.report.terminal import render, render_briefly
from tests import builders


def figure(size, verdict=Verdict.PASS, benchmark="PingPong"):
    said, value = f"the sentence of {size}", builders.estimate(1.5, 1.5, 1.6)
    return builders.figure(
        benchmark, verdict=verdict, sentence=said, estimate=value, conditions={"bytes": size}
    )


def group(verdict, worse_by=0.12, threshold=0.05, benchmark="PingPong"):
    judgement = builders.judgement(verdict, f"the sentence of all {benchmark}")
    return Group(benchmark, 14, worse_by, threshold, judgement)


def run(figures, groups):
    parts: dict[str, Any] = {"figures": tuple(figures), "groups": tuple(groups)}
    return builders.run(
        builders.case("ImbMpi1Check", conditions={"ranks": 2}, **parts),
        run_id="r1",
        duration_s=10.0,
    )


def summary(figures, groups):
    return render(run(figures, groups), width=100)


def test_a_slower_group_is_named_and_speaks_for_its_figures():
    figures = [figure(8, Verdict.REGRESSION), figure(64, Verdict.INCONCLUSIVE)]
    other = figure(512, Verdict.REGRESSION, "Sendrecv")
    told = summary([*figures, other], [group(Verdict.REGRESSION)])
    assert told.splitlines()[2] == (
        " ✗ SLOWER: 2 of 3 results. all 14 figures of PingPong, IMB with mpich, 2 ranks: "
        "the sentence of all PingPong"
    )
    assert "the sentence of 8" not in told
    assert told.splitlines()[-1].startswith("clustergate check: exit status 1")


def test_unchanged_run_is_one_line():
    """A run like the one before is a line with its verdict and its report."""
    notes = ("others", "report: /runs/r1/report.html")
    line = render_briefly(dataclasses.replace(run([figure(8)], []), notes=notes))
    assert line == "✓ AS BEFORE. 1 of 1 result as before. 10 s; report: /runs/r1/report.html\n"


def test_a_group_alone_makes_the_run_a_regression():
    finished = run([figure(8)], [group(Verdict.REGRESSION)])
    assert verdicts(finished.cases) == [Verdict.PASS, Verdict.REGRESSION]
    assert '<failure type="regression" message="all 14 figures of PingPong: ' in render_junit(
        finished
    )
    page = render_html(finished)
    assert "all 14 figures of PingPong" in page.partition("What is wrong")[2]
    assert "1 result and 1 group measured: 1 pass, 1 regression" in page.replace("\n", " ")


def test_five_causes_stand_at_the_top_and_the_others_are_counted():
    cases = run([figure(8)], [group(Verdict.INCONCLUSIVE), group(Verdict.INCONCLUSIVE)]).cases
    many = tuple(dataclasses.replace(cases[0], stack=f"stack{k}") for k in range(CAUSES_SHOWN + 2))
    told = render(dataclasses.replace(run([], []), cases=many), width=100)
    lines = [line for line in told.splitlines() if line.startswith(" ! inconclusive: ")]
    assert lines[0] == (
        " ! inconclusive: IMB with stack0, 2 ranks: all 14 figures of PingPong: "
        "the sentence of all PingPong; and 1 group more"
    )
    assert len(lines) == CAUSES_SHOWN
    assert " ! 2 more on the page" in told.splitlines()


@pytest.mark.parametrize("groups", [[], [group(Verdict.PASS, 0.0)]])
def test_where_nothing_is_wrong_nothing_is_named(groups):
    told = summary([figure(8)], groups)
    assert "the sentence" not in told
    assert told.splitlines()[2] == " ✓ AS BEFORE. 1 of 1 result as before."


SUCH = "IMB with mpich: PingPong 8 bytes latency_us"
DOUBT = "6 of 6 launches were disturbed (others used 0.30 cores of vm); take more launches"


def doubtful(size):
    judgement = Judgement(
        Verdict.NO_REFERENCE,
        (in_words("no reference; checked against physical limits only"),),
    )
    return dataclasses.replace(figure(size), judgement=judgement, doubt=in_words(DOUBT))


def test_a_busy_machine_has_bounds_and_a_command_that_works_there():
    """Of 795 doubtful figures of 795 it was said NO REFERENCE, and that it be done again."""
    noisy = run([], [])
    case = disturbed_case("ImbMpi1Check", "mpich", 4, 9, 36)
    noisy = dataclasses.replace(noisy, cases=(dataclasses.replace(case, conditions={"ranks": 2}),))
    beside = ("Others used 1.4 of 2 cores: python 0.7",)
    other = dataclasses.replace(noisy.cases[0], stack="openmpi")
    noisy = dataclasses.replace(noisy, beside=beside, cases=(*noisy.cases, other))
    told = render(noisy, width=100).splitlines()
    assert told[2] == (f" ~ TOO BUSY TO JUDGE. {beside[0]}. The machine is at least this fast:")
    assert row("\n".join(told), "PingPong 8 B")[-4:] == ["<=", "1.5", "<=", "1.5"]
    (step,) = [line for line in told if line.startswith(" Next")]
    assert step.endswith("clustergate ab mpich openmpi --benchmarks PingPong --budget 2m")
    moved = render(dataclasses.replace(noisy, beside=()), width=100).splitlines()[2:4]
    assert " ".join(map(str.strip, moved)).startswith(
        "~ TOO BUSY TO JUDGE. Most results were disturbed, though no other program was seen."
    )
    assert DOUBT not in "\n".join(told)
    assert "4 launches were disturbed" in render_html(noisy)


def test_doubt_about_some_figures_has_its_cause():
    figures = [doubtful(8), figure(64, Verdict.NO_REFERENCE)]
    told = summary(figures, []).splitlines()
    assert told[2].startswith(" ✓ NOTHING WRONG FOUND. ")
    assert f" ! doubtful (*): 1 of 2 figures, {SUCH}: {DOUBT}" in told
    assert any(line.startswith(" Next") and "clustergate expect" in line for line in told)
    page = render_html(run(figures, []))
    assert page.index("NOTHING WRONG FOUND") < page.index(DOUBT) < page.index("<h2>")
    assert '<td class="number">1.500*</td>' in page
    assert '<td class="number">1.500</td>' in page
    log = render_junit(run(figures, []))
    assert 'failures="0" errors="0"' in log
    assert f"doubtful (*): 1 of 2 figures, {SUCH.replace('IMB', 'ImbMpi1Check')}: {DOUBT}" in log
    assert "PingPong 8 bytes latency_us = 1.500* us: no reference" in log
    assert "PingPong 64 bytes latency_us = 1.500 us: no reference" in log


def test_reasons_for_doubt_told_once_by_frequency():
    reasons = [*"aaaabbbccdef"]
    figures = [
        dataclasses.replace(doubtful(k), doubt=in_words(f"reason {reason}"))
        for k, reason in enumerate(reasons)
    ]
    clear = [figure(1000 + k) for k in range(len(figures))]
    told = summary([*figures, *clear], [])
    lines = [line for line in told.splitlines() if "doubtful" in line]
    assert [line.rpartition(": ")[2] for line in lines[:-1]] == [f"reason {x}" for x in "abef"]
    assert lines[0].startswith(" ! doubtful (*): 4 of 24 figures, such as IMB with mpich: ")
    assert lines[-1] == " ! doubtful (*): 3 more"
    assert "doubtful" not in summary([figure(8)], [])


def disturbed_case(check, stack, disturbed, launches, setting):
    doubt = DISTURBED(
        **{"disturbed": disturbed, "launches": 4, "left": 4 - disturbed, "needed": 3},
        setting=f"{check}.launches={setting}",
        worst=f"cores {disturbed} times as far",
        by_programs=int(disturbed > 3),
    )
    figures = tuple(dataclasses.replace(doubtful(k), doubt=doubt) for k in range(launches))
    return Case(check, stack, CaseState.RAN, figures=figures)


def test_first_line_says_what_disturbed_launches_left_open():
    """HPL was 76 % below its reference, and what disturbed it stood below five other causes."""
    (found,) = disturbed_case("HplCheck", "mpich", 1, 1, 3).figures
    excused = FIGURE_NOTHING(value=1.0, unit="us", reference=4.2, origin="measured")
    unexcused = UNEXCUSED(cause="others used 1 core", explained=2.9, times=4.2)
    for verdict, why, told in (
        (Verdict.INCONCLUSIVE, found.doubt, "; 1 of 4 launches was disturbed"),
        (
            Verdict.REGRESSION,
            unexcused,
            "; launches were disturbed, which explains only part of it",
        ),
        (Verdict.NO_REFERENCE, found.doubt, " 1 result measured: 1 no reference"),
    ):
        judged = dataclasses.replace(found, judgement=Judgement(verdict, (excused, why)))
        made = run([judged], [])
        assert first_screen(made).beside[0].endswith(told)
        shorts = [cause.short for cause in first_screen(made).causes]
        assert (verdict is Verdict.REGRESSION) == any("at most 2.9 x" in one for one in shorts)


def test_disturbed_cases_are_one_reason_with_one_remedy():
    cases = (
        disturbed_case("ImbMpi1Check", "mpich", 4, 5, 36),
        disturbed_case("ImbMpi1Check", "intel-mpi", 2, 5, 7),
        disturbed_case("HpccCheck", "mpich", 3, 1, 12),
    )
    (doubt,) = doubts(cases, title_of)
    told = str(doubt)
    assert reason_from_json(reason_as_json(doubt)) == doubt
    assert told.startswith(
        "11 of 11 figures, IMB with mpich, intel-mpi; HPCC with mpich: "
        "9 of 12 launches were disturbed (at worst cores 4 times as far), so that too few are left"
    )
    assert "(with -- -S ImbMpi1Check.launches=36 -S HpccCheck.launches=12)" in told
    assert "; measure when nothing else runs there, take more" in told
    (one,) = map(str, doubts(cases[:1], title_of))
    assert "-S ImbMpi1Check.launches=36" in one
    assert "such as IMB with mpich: PingPong" in one


@pytest.mark.parametrize("peak", ["dgemm", "fma peak", "nominal"])
def test_a_sentence_names_a_share_as_the_table_does(peak):
    share = Figure(
        "HPL", "efficiency_percent", "%", Better.HIGHER, {"against": peak}, None,
        figure(8).judgement,
    )  # fmt: skip
    titles = [one.title for one in benchmark_of("HplCheck").headlines]
    assert sentence_name(share) in titles


def headline_case(stack, latency_us=1.5, percent=84.0, doubt=None, peak="dgemm", **changes):
    against = {"against": peak}
    figures = (
        dataclasses.replace(figure(8), estimate=Estimate(latency_us, None, None, 0, 1)),
        Figure(
            *("HPL", "efficiency_percent", "%", Better.HIGHER, against),
            *(Estimate(percent, None, None, 0, 1), figure(8).judgement),
            doubt=doubt,
        ),
        Figure(
            *("StarSTREAM_Triad", "StarSTREAM_Triad", "GB/s", Better.HIGHER, {}),
            *(Estimate(10.0, None, None, 0, 1), figure(8).judgement),
        ),
    )
    checks = ("ImbMpi1Check", "HplCheck", "HpccCheck")
    facts: dict[str, Any] = {
        "conditions": {"ranks_per_node": 2, "nodes": 1},
        "partition": "local:node",
    }
    facts |= {"peaks": {"fma_peak": 118.0, "triad": 40.0, "core_distance": 60.0}} | changes
    return [
        Case(check, stack, CaseState.RAN, figures=(one,), **facts)
        for check, one in zip(checks, figures, strict=True)
    ]


def told_of(*cases, width=100, wraps=False):
    whole = dataclasses.replace(run([], []), cases=tuple(one for some in cases for one in some))
    return render(whole, width=width, wraps=wraps)


def row(told, title):
    (line,) = [line for line in told.splitlines() if line.strip().startswith(title)]
    return line.split()


def test_figures_stand_against_what_the_node_can_do():
    told = told_of(headline_case("mpich"))
    assert "40 by triad: 50 %" in told
    assert "0.06 core to core" in told
    page = render_html(dataclasses.replace(run([], []), cases=tuple(headline_case("mpich"))))
    assert "core-to-core trips" in page


def test_no_share_is_above_the_whole():
    slow_triad = told_of(headline_case("mpich", peaks={"triad": 15.0}))
    assert "15 by triad: 100 %" in slow_triad
    above = headline_case("mpich", percent=126.5, doubt=in_words("DGEMM was slowed"))
    page = render_html(dataclasses.replace(run([], []), cases=tuple(above)))
    assert "&gt; 100*: more than the node" in page
    assert "126.5" not in page.partition("<h2>")[0]


def test_more_than_the_nominal_peak_is_explained():
    why = "HPL of nominal peak above 100 %: the cores ran faster than their nominal clock"
    above, below = (headline_case("mpich", percent=x, peak="nominal") for x in (112.8, 99.0))
    assert why in measured(dataclasses.replace(run([], []), cases=tuple(above))).notes
    assert why not in measured(dataclasses.replace(run([], []), cases=tuple(below))).notes


def test_several_partitions_tell_lacks_and_best_headlines():
    """Of several partitions it is said which lacks what and that headlines are the best."""
    big, small = (headline_case("mpich", partition=f"alpha:{name}") for name in ("big", "small"))
    why = in_words("it needs 3 nodes")
    lacks = Case("HplCheck", "mpich", CaseState.NOT_AVAILABLE, (why,), partition="alpha:big")
    told = told_of(big, small, [lacks])
    assert " ! HPL with mpich on alpha:big was not run: it needs 3 nodes. " in told
    notes = measured(dataclasses.replace(run([], []), cases=(*big, *small, lacks))).notes
    assert any("each headline figure is the best of alpha:big, alpha:small; " in x for x in notes)
    assert " ! HPL with mpich was not run: it needs 3 nodes. " in told_of(big, [lacks])


def test_a_doubtful_figure_is_not_compared_with_the_run_before():
    sound = compared_run()
    in_doubt = [
        dataclasses.replace(
            case,
            figures=tuple(
                dataclasses.replace(one, doubt=in_words("the node was busy"))
                for one in case.figures
            ),
        )
        for case in sound.cases[:1]
    ]
    both = measured(dataclasses.replace(sound, cases=(*in_doubt, *sound.cases[1:])))
    (cells,) = [row.cells for row in both.rows if row.title == "PingPong 8 B"]
    assert [bool(cell.gains) for cell in cells.values()] == [False, True, True]


def test_a_long_reason_leaves_brackets_and_its_remedy_to_doctor():
    """It said "could not be fetched in a folder and name it in CLUSTERGATE_SOURCES"."""
    url = "https://x/IMB.tar.gz: cannot be reached"
    put = "put IMB.tar.gz (sha256 acee02cc719a…) in a folder and name it in CLUSTERGATE_SOURCES"
    assert briefly(f"imb could not be fetched ({url}); {put}") == "imb could not be fetched"
    assert briefly("it needs 3 nodes (of 2); wait") == "it needs 3 nodes (of 2); wait"


def test_what_failed_is_told_before_what_did_not_run():
    lost = [
        Case("HplCheck", f"stack{n}", CaseState.MISSING, (in_words("it should have run"),))
        for n in range(CAUSES_SHOWN)
    ]
    broken = Case("HplCheck", "mpich", CaseState.FAILED, (in_words("rank 0 was killed"),))
    answer = " ✗ FAILED: 6 of 6 benchmarks. HPL with mpich: rank 0 was killed"
    assert told_of([*lost, broken]).splitlines()[2] == answer


def test_cases_of_several_partitions_do_not_look_alike():
    killed, hung = (in_words(f"rank 0 {what}") for what in ("was killed", "hangs"))
    gpu, cpu, mem = (
        Case("HplCheck", "mpich", CaseState.FAILED, (why,), {"ranks": 2}, partition=f"alpha:{name}")
        for name, why in (("gpu", killed), ("cpu", hung), ("mem", hung))
    )
    told = told_of([gpu, cpu, mem])
    assert "3 of 3 benchmarks. HPL with mpich on alpha:gpu, 2 ranks: rank 0 was killed" in told
    assert "HPL (2 times) with mpich on alpha:cpu, alpha:mem: failed: rank 0 hangs" in told
    assert "1 of 1 benchmark. HPL with mpich, 2 ranks: rank 0 was killed" in told_of([gpu])


@pytest.mark.parametrize("width", [80, 60])
def test_a_first_screen_fits_a_terminal_in_twenty_lines(width):
    stacks = [f"spack-a-library-of-mpi-{k}" for k in range(5)]
    doubt = in_words("this sentence is longer than a terminal is wide, so that it is wrapped " * 9)
    told = told_of(*(headline_case(s, doubt=doubt) for s in stacks), width=width, wraps=True)
    assert max(map(len, told.splitlines())) <= width
    assert len(told.splitlines()) <= 21
    assert re.search(r"^   \d more columns on the page$", told, re.MULTILINE)


def test_the_next_command_follows_from_the_verdict():
    slower = summary([figure(8, Verdict.REGRESSION)], [])
    assert re.search(
        r"^ Next .*clustergate history --check ImbMpi1Check --stack mpich$", slower, re.M
    )
    lost = Case("HplCheck", "mpich", CaseState.MISSING, (in_words("it should have run"),))
    assert "clustergate check --resume r1" in told_of([lost])
    assert " Next" not in summary([figure(8)], [])
    assert " Page  clustergate open r1" in summary([figure(8)], []).splitlines()


def test_a_run_without_headlines_has_no_empty_table():
    told = summary([figure(8, benchmark="Scan")], [])
    assert "figure" not in told.splitlines()
    assert "─" not in told


def test_strict_fails_a_run_with_a_disturbed_case():
    noisy = run([doubtful(8), doubtful(64)], [])
    strict = dataclasses.replace(noisy, strict=True)
    assert [status_of(one) for one in (noisy, strict)] == [0, 2]
    partly = run([doubtful(8), figure(64, Verdict.NO_REFERENCE)], [])
    assert status_of(dataclasses.replace(partly, strict=True)) == 0
    slow = run([figure(8, Verdict.REGRESSION)], [])
    assert status_of(dataclasses.replace(slow, strict=True)) == 1
    told = render(strict, width=100).splitlines()[-1]
    assert told == (
        "clustergate check: exit status 2: no result of a benchmark could be judged, and --strict "
        "was given"
    )


def test_who_worked_beside_a_disturbed_run_is_named_with_the_doubt():
    beside = ("other programs used 0.90 of 2 cores: make 0.90",)
    noisy = dataclasses.replace(run([], []), beside=beside)
    noisy = dataclasses.replace(noisy, cases=(disturbed_case("ImbMpi1Check", "mpich", 4, 9, 36),))
    assert beside[0][1:] in render(noisy, width=100).splitlines()[2]
    assert "busy" not in {one.what for one in first_screen(noisy).causes}
    partly = dataclasses.replace(noisy, cases=run([doubtful(8), figure(64)], []).cases)
    lines = render(partly, width=100).splitlines()
    assert lines[lines.index(f" ! busy: {beside[0]}") - 1].startswith(" ! doubtful (*): ")
    assert "busy" in {one.what for one in first_screen(partly).causes}
    calm = dataclasses.replace(noisy, cases=run([figure(8)], []).cases)
    assert "other programs used" not in render(calm, width=100)


def test_notes_fill_the_screen_and_a_log_has_them_all():
    many = dataclasses.replace(run([], []), notes=tuple(f"{k} {'word ' * 30}" for k in range(40)))
    for wraps in (True, False):
        lines = render(many, width=80, wraps=wraps).splitlines()
        assert len(lines) + sum(len(line) > 80 for line in lines) in (20, 21)
    lines = render(many, width=80, log=True).splitlines()
    assert sum(line.endswith("word word") for line in lines) == 40


LAYOUT = {"ranks": 2, "placement": "packed", "mode": "smoke"}


def compared_run(**parts):
    """Return a run of three stacks that was faster, slower and as fast before."""
    cases = tuple(
        dataclasses.replace(
            run([figure(8)], []).cases[0], stack=stack, library=library, conditions=LAYOUT
        )
        for stack, library in (
            ("intel-mpi", "Intel(R) MPI Library 2021.18.1 for Linux* OS"),
            ("mpich", "MPICH 5.0.2"),
            ("openmpi", "Open MPI v5.0.11"),
        )
    )
    name = name_of(cases[0].figures[0])
    values = zip(cases, (1.0, 2.0, 1.5), strict=True)
    before = {(key_of(case), name): value for case, value in values}
    return dataclasses.replace(run([], []), cases=cases, before=before, **parts)


def test_machine_and_stacks_named_and_headlines_compared():
    hardware = {"processor": "Intel(R) Xeon(R) Processor", "cores": 2, "virtual_machine": True}
    compared = compared_run(machine={"fingerprint": {"hardware": hardware}})
    head = render(compared, width=80).splitlines()[1]
    assert head.startswith(
        "clustergate   local: Intel Xeon Processor, 2 cores, virtual   mode smoke   "
    )
    of = measured(compared)
    assert of.machine == "Intel Xeon Processor, 2 cores, virtual"
    assert of.stacks == {
        "intel-mpi": "Intel MPI 2021.18.1", "mpich": "MPICH 5.0.2", "openmpi": "Open MPI v5.0.11",
    }  # fmt: skip
    (shown,) = [one for one in of.rows if one.title == "PingPong 8 B"]
    gains = [cell.gains[RUN_BEFORE].percent for cell in shown.cells.values()]
    assert gains == pytest.approx([-50.0, 25.0, 0.0])
    assert WHAT_COUNTS in of.notes


def test_a_figure_stands_beside_how_far_it_is_from_its_reference():
    def judged(ratio):
        why = FIGURE_AS_EXPECTED(
            value=1.5, unit="us", reference=1.5 / ratio, ratio=ratio, origin="5 runs"
        )
        return dataclasses.replace(figure(8), judgement=Judgement(Verdict.PASS, (why,)))

    assert row(summary([judged(1.0)], []), "PingPong 8 B")[-1] == "1.5"
    for ratio, beside in ((1.02, "-2.0%"), (0.8, "+20%"), (3.0, "-3.0x")):
        assert row(summary([judged(ratio)], []), "PingPong 8 B")[-2:] == ["1.5", beside]


def test_columns_that_do_not_fit_are_counted():
    both, alone = headline_case("intel-mpi"), headline_case("openmpi")[:1]
    told = told_of(both, headline_case("mpich"), alone, width=44)
    assert "   2 more columns on the page" in told.splitlines()
    assert "openmpi" not in told.partition("results:")[0]


def test_wrapped_for_a_terminal_no_line_exceeds_80_columns():
    many = dataclasses.replace(compared_run(), notes=("a sentence of many words " * 9,))
    assert max(map(len, render(many, width=80, wraps=True).splitlines())) <= 80


def test_a_stored_summary_has_no_table_wider_than_80_columns(tmp_path):
    write_reports(compared_run(), tmp_path, NO_HISTORY)
    text = (tmp_path / "summary.txt").read_text(encoding="utf-8")
    tables = [line for line in text.splitlines() if line.startswith(("─", "PingPong"))]
    assert len(tables) >= 2
    assert max(map(len, tables)) <= 80


def test_headline_is_least_of_times_largest_of_rates() -> None:
    """A table of latencies was told by that of its largest message."""
    line = Headline("own", "us", "ImbMpi1Check", "PingPong", "latency_us")
    case = run([figure(8), figure(64), figure(512)], []).cases[0]
    values = [1.0, 2.0, 300.0]
    figures = tuple(
        dataclasses.replace(one, estimate=Estimate(value, value, value, 0.1, 5))
        for one, value in zip(case.figures, values, strict=True)
    )
    for better, expected in ((Better.LOWER, 1.0), (Better.HIGHER, 300.0)):
        of = tuple(dataclasses.replace(one, better=better) for one in figures)
        found = picked(line, "mpich", [dataclasses.replace(case, figures=of)])
        assert found is not None
        assert found[2] == expected


@pytest.mark.parametrize("doubtful", [True, False])
def test_why_nothing_stands_beside_the_figures_is_true(doubtful: bool) -> None:
    """That no earlier run had these figures stood beside one that had them, disturbed."""
    layout = {"ranks": 2, "ranks_per_node": 2, "nodes": 1, "placement": "packed", "mode": "smoke"}
    doubt = in_words("disturbed") if doubtful else None
    _, case, _ = headline_case("mpich", doubt=doubt, conditions=layout)
    before = {(key_of(case), name_of(one)): 1.0 for one in case.figures if doubtful}
    told = render_html(dataclasses.replace(run([], []), cases=(case,), before=before))
    sentence = (
        "Doubtful results (*) are not compared with those of an earlier run."
        if doubtful
        else "No earlier run has results without a doubt to compare these with."
    )
    assert sentence in told
    assert "No earlier run has these figures" not in told


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.34, "0.34"),
        (11.0, "11"),
        (26308.0, "26300"),
        (0.08014, "0.0801"),
        (9.999e89, "1e+90"),
        (1e-7, "1e-07"),
        (0.0, "0"),
        (float("nan"), "nan"),
    ],
)
def test_a_number_has_three_digits_at_most(value: float, text: str) -> None:
    assert rounded(value) == text


def test_a_value_above_a_peak_is_no_bound() -> None:
    """That a machine reaches at least what a wrong clock shows is not so."""
    above = headline_case("mpich")[2]
    doubt = in_words("faster than the triad measured right before and after it")
    case = dataclasses.replace(above, figures=(dataclasses.replace(above.figures[0], doubt=doubt),))
    told = told_of([case])
    assert row(told, "memory / core")[4] == "10*"
    assert "TOO BUSY" not in told
    assert str(doubt) in told


def test_no_tick_where_it_ends_with_a_status() -> None:
    """It began with a tick, as what somebody expects was met, and ended with 2 for --strict."""
    noisy = disturbed_case("HplCheck", "mpich", 4, 1, 3)
    calm = run([figure(8), figure(64)], []).cases[0]
    met = ExpectationStanding("PingPong 8 B", Standing.MET, in_words("1.5 us"))
    partly = dataclasses.replace(run([], []), cases=(noisy, calm), expectations=(met,))
    assert render(partly, width=100).splitlines()[2].startswith(" ✓ MET. ")
    strict = dataclasses.replace(partly, strict=True)
    assert status_of(strict) == 2
    assert render(strict, width=100).splitlines()[2].startswith(" ~ NOT JUDGED. HPL ")


def test_a_path_stays_whole_where_a_sentence_is_cut() -> None:
    """A blank stood in the middle of what is to be copied."""
    path = "/scratch/" + "a" * 90
    said = render(dataclasses.replace(run([], []), changes=(f"{path} is gone",)), width=80)
    assert path in said
    wrapped = render(
        dataclasses.replace(run([], []), changes=(f"{path} is gone",)), width=80, wraps=True
    )
    assert path in wrapped
