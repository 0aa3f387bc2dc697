"""What the summary of a run says of groups."""

import math

import pytest

from clustergate.assembly import verdicts
from clustergate.model import (
    Better,
    Case,
    CaseState,
    Estimate,
    Figure,
    Group,
    Judgement,
    Run,
    Verdict,
)
from clustergate.report.html import render_html
from clustergate.report.junit import render_junit
from clustergate.report.terminal import OPEN_SHOWN_AT_MOST, render


def figure(size, verdict=Verdict.PASS, benchmark="PingPong"):
    return Figure(
        benchmark=benchmark,
        metric="latency_us",
        unit="us",
        better=Better.LOWER,
        conditions={"bytes": size},
        estimate=Estimate(1.5, 1.5, 1.6, 0.4, 5),
        judgement=Judgement(verdict, f"the sentence of {size}"),
    )


def group(verdict, worse_by=0.12, threshold=0.05, benchmark="PingPong"):
    judgement = Judgement(verdict, f"the sentence of all {benchmark}")
    return Group(benchmark, 14, 5, worse_by, threshold, judgement)


def run(figures, groups):
    case = Case(
        "ImbMpi1Check",
        "mpich",
        CaseState.RAN,
        conditions={"ranks": 2},
        figures=tuple(figures),
        groups=tuple(groups),
    )
    return Run("r1", "local", "smoke", "2026-11-21T10:00:00+00:00", 10.0, (case,))


def summary(figures, groups):
    return render(run(figures, groups), width=100)


def test_a_slower_group_is_named_and_speaks_for_its_figures():
    figures = [figure(8, Verdict.REGRESSION), figure(64, Verdict.CANNOT_TELL)]
    other = figure(512, Verdict.REGRESSION, "Sendrecv")
    told = summary([*figures, other], [group(Verdict.REGRESSION)])
    assert told.splitlines()[1].startswith("REGRESSION: ")
    assert (
        "  ImbMpi1Check with mpich, 2 ranks: all 14 figures of PingPong: regression: "
        "the sentence of all PingPong" in told.splitlines()
    )
    assert "the sentence of 8" not in told
    assert "Sendrecv 512 bytes latency_us: regression: the sentence of 512" in told
    assert told.splitlines()[-1].startswith("clustergate check: exit status 1")


def test_a_group_alone_makes_the_run_a_regression():
    finished = run([figure(8)], [group(Verdict.REGRESSION)])
    assert verdicts(finished.cases) == [Verdict.PASS, Verdict.REGRESSION]
    assert '<failure type="regression" message="all 14 figures of PingPong: ' in render_junit(
        finished
    )
    page = render_html(finished)
    assert "all 14 figures of PingPong" in page.partition("What is wrong")[2]
    assert "1 of 2 figures and groups of them is worse than the reference" in page.replace(
        "\n", " "
    )


def test_groups_of_which_nobody_can_tell_are_named_with_what_they_need():
    names = [f"Benchmark{k}" for k in range(OPEN_SHOWN_AT_MOST + 2)]
    told = summary([figure(8)], [group(Verdict.CANNOT_TELL, benchmark=name) for name in names])
    lines = [line for line in told.splitlines() if line.startswith("cannot tell of ")]
    assert lines[0] == (
        "cannot tell of ImbMpi1Check with mpich, 2 ranks, all 14 figures of Benchmark0: "
        "the sentence of all Benchmark0"
    )
    assert len(lines) == OPEN_SHOWN_AT_MOST
    assert "and 2 more groups like these" in told
    assert f"{len(names)} groups: cannot tell" in told.splitlines()[-1]


def test_the_smallest_change_that_could_be_seen_is_told():
    groups = [
        group(Verdict.PASS, 0.0, math.log(1.05), "A"),
        group(Verdict.PASS, 0.0, math.log(1.2), "B"),
        group(Verdict.CANNOT_TELL, 0.0, math.inf, "C"),
        group(Verdict.CANNOT_TELL, None, math.log(1.01), "D"),
    ]
    (line,) = [x for x in summary([], groups).splitlines() if "compared as a whole" in x]
    assert line.startswith("2 groups were compared as a whole; in the quietest a change of 5.0 %")
    assert line.endswith("in the noisiest of 20.0 %")


@pytest.mark.parametrize("groups", [[], [group(Verdict.PASS, 0.0)]])
def test_where_nothing_is_wrong_nothing_is_named(groups):
    told = summary([figure(8)], groups)
    assert "the sentence" not in told
    assert told.splitlines()[1].startswith("PASS: ")


def test_a_run_without_headlines_has_no_empty_table():
    told = summary([figure(8, benchmark="Scan")], [])
    assert "figure" not in told.splitlines()
    assert "─" not in told
