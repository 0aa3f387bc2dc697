"""What the gate rests on where no reference holds, and what keeps it from opening by that."""

import dataclasses
import datetime
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from clustergate.core.model import (
    Case,
    CaseId,
    CaseState,
    Evidence,
    Verdict,
)
from clustergate.core.reasons import in_words
from clustergate.run.gate import controls
from clustergate.run.gate.contract import Control, case_requirements
from clustergate.run.gate.decision import (
    CLOSED,
    OPEN,
    UNJUDGED,
    benchmark_evidence,
    coverage_evidence,
    decide,
    screening_evidence,
)
from clustergate.run.software_evidence import AS_GOLDEN, not_compared, same_build
from clustergate.sites.modes import mode_named
from clustergate.studies.screen.findings import Screening, analyse
from clustergate.studies.screen.measures import Result
from clustergate.studies.screen.rounds import rounds
from tests.builders import complete_case

NAMES = [f"n{k}" for k in range(6)]
DAYS = [datetime.date(2026, 11, day) for day in range(1, 8)]
TODAY = "2026-11-10"
USUAL = {
    "hpl_gflops": 100.0,
    "fma_peak_gflops": 120.0,
    "triad_gb_s": 40.0,
    "pingpong_latency_us": 2.0,
    "pingpong_bandwidth_mb_s": 12000.0,
}
KEY = CaseId("HplCheck", "a:b", "mpich", ())
MODE = mode_named("maintenance")


def screened(
    seed: int = 0,
    names: list[str] = NAMES,
    without: str = "",
    spread: float = 0.005,
    slow: str = "",
    what: str = "node",
    **factors: float,
) -> Screening:
    """Return what nodes say that scatter by so much; ``factors`` are put on values, by measure."""
    draw = np.random.default_rng(seed)

    def values(*keys: str) -> dict[str, float]:
        return {
            key: USUAL[key] * factors.get(key, 1.0) * math.exp(draw.normal(0.0, spread))
            for key in keys
        }

    results = []
    for turn in range(3):
        for name in names:
            hpl, peaks = values("hpl_gflops"), values("fma_peak_gflops", "triad_gb_s")
            results += [
                Result((name,), "hpl", turn, hpl),
                Result((name,), "peaks", turn, peaks),
            ]
    for turn, members in enumerate([*rounds(len(names)), *rounds(len(names))]):
        for a, b in members.tolist():
            both = values("pingpong_latency_us", "pingpong_bandwidth_mb_s")
            if slow in (names[a], names[b]):
                both["pingpong_bandwidth_mb_s"] /= 2
            results.append(Result((names[a], names[b]), "pingpong", 3 + turn, both))
    return analyse(names, [one for one in results if one.kind != without], unit_word=what)


def ran(*verdicts: Verdict, **other: Any) -> Case:
    return dataclasses.replace(complete_case(KEY, MODE, *verdicts), **other)


MEMORY = [(f"r{k + 1}", day, screened(seed=k + 1)) for k, day in enumerate(DAYS)]


def answered(
    case: Case,
    now: Screening,
    memory: list[tuple[str, datetime.date, Screening]] = MEMORY,
    software: list[Evidence] | None = None,
) -> tuple[int, str]:
    """Return the gate's answer of a case, a screening and a golden build, and all it says."""
    if software is None:
        software = same_build("mpich", "abc", [], "2026-11-04")
    screening = screening_evidence(now, ended=True)
    worse, control = controls.nodes_control(now, memory, exclusive=False)
    screening += worse
    nodes = controls.all_nodes_control([control], screening)

    def control_of(stack: str) -> Control:
        return controls.joint_control(controls.software_control(stack, software, TODAY), nodes)

    items = case_requirements(MODE, [KEY], [case], {}, control_of)
    evidence = [
        *screening,
        *benchmark_evidence([case], items),
        *software,
        *coverage_evidence(items),
    ]
    said = [*(f"{one.sentence}" for one in evidence), *(one.by for one in items)]
    return decide(evidence).status, "\n".join(said)


def test_gate_opens_without_references_by_controls() -> None:
    """Without any reference it opens by golden build neighbours and earlier days."""
    status, said = answered(ran(Verdict.NO_REFERENCE), screened())
    assert status == OPEN, said
    by = "the golden build of 2026-11-04, 6 nodes as fast as each other and as on 7 earlier days"
    assert said.endswith(by)


def test_controls_stand_for_what_references_leave_undecided() -> None:
    """With references an undecided figure kept the gate closed, and without them it opened."""
    status, said = answered(ran(Verdict.INCONCLUSIVE), screened())
    assert status == OPEN, said
    assert answered(ran(Verdict.INCONCLUSIVE), screened(), memory=[])[0] == UNJUDGED


@pytest.mark.parametrize(
    "case",
    [
        ran(Verdict.NO_REFERENCE, Verdict.INVALID),
        ran(Verdict.NO_REFERENCE, state=CaseState.FAILED, reasons=(in_words("killed"),)),
        ran(Verdict.NO_REFERENCE, state=CaseState.MISSING, reasons=(in_words("gone"),)),
        ran(Verdict.NO_REFERENCE, figures=ran(Verdict.NO_REFERENCE).figures[1:]),
        ran(Verdict.NO_REFERENCE, conditions={"settings": "n=1500", "ranks": 2}),
    ],
)
def test_no_control_stands_for_a_case_that_is_open_in_itself(case: Case) -> None:
    status, said = answered(case, screened())
    assert status == UNJUDGED, said


def test_a_doubt_about_a_figure_stays_one() -> None:
    doubtful = [
        dataclasses.replace(one, doubt=in_words("6 of 8 launches are 3.0 x worse"))
        for one in ran(Verdict.NO_REFERENCE).figures
    ]
    status, said = answered(ran(figures=tuple(doubtful)), screened())
    assert status == UNJUDGED, said


OTHER = AS_GOLDEN(wholes=1, ruled_out=0.1, sizes=1, rounds=9, node_seconds=1.0,
               absent="")  # fmt: skip


@pytest.mark.parametrize(
    ("software", "said"),
    [
        ([], "no golden build of mpich"),
        (same_build("mpich", "abc", [], TODAY), "was pinned today"),
        (same_build("mpich", "abc", [], ""), "was pinned today"),
        (same_build("mpich", "abc", ["/lib/libc.so.6"], "2026-11-04"), "are not the golden ones"),
        (
            same_build("mpich", "abc", [], "2026-11-04", ["env_vars of n"]),
            "of its launches are not",
        ),
        ([not_compared("mpich", OTHER, Verdict.PASS)], "are not the golden ones"),
        (same_build("openmpi", "abc", [], "2026-11-04"), "no golden build of mpich"),
    ],
)
def test_software_unknown_from_an_earlier_day_opens_nothing(
    software: list[Evidence], said: str
) -> None:
    status, text = answered(ran(Verdict.NO_REFERENCE), screened(), software=software)
    assert status == UNJUDGED
    assert said in text
    # A reference opens it all the same.
    assert answered(ran(Verdict.PASS), screened(), software=software)[0] == OPEN


@pytest.mark.parametrize(
    ("now", "memory", "said"),
    [
        (screened, MEMORY[:2], "on 2 earlier days, and it takes 3; `clustergate screen` on 1 more"),
        (
            screened,
            [("r1", DAYS[0], one) for *_, one in MEMORY],
            "on 1 earlier day, and it takes 3",
        ),
        (screened, [], "on 0 earlier days"),
        (lambda: screened(names=NAMES[:2]), MEMORY, "2 nodes cannot be compared"),
        (lambda: screened(what="core"), MEMORY, "6 cores cannot be compared with other nodes"),
        (lambda: screened(without="hpl"), MEMORY, "HPL was not screened"),
    ],
)
def test_nodes_that_are_not_known_to_be_as_they_were_open_nothing(
    now: Callable[[], Screening],
    memory: list[tuple[str, datetime.date, Screening]],
    said: str,
) -> None:
    status, text = answered(ran(Verdict.NO_REFERENCE), now(), memory)
    assert status == UNJUDGED, text
    assert said in text
    assert answered(ran(Verdict.PASS), now(), memory)[0] == OPEN


def test_noise_in_which_a_slow_down_could_hide_opens_nothing() -> None:
    quiet, noisy = (
        controls.nodes_control(screened(spread=s), MEMORY, exclusive=False)[1]
        for s in (0.005, 0.12)
    )
    assert quiet.by
    assert "worse than on earlier days" in noisy.why


@pytest.mark.parametrize("measure", sorted(USUAL))
@pytest.mark.parametrize("factor", [1.08, 2.0])
def test_slowdown_of_all_nodes_since_earlier_days_closes(measure: str, factor: float) -> None:
    """8 % of any measure that varied by 0.2 % was within what nodes may differ by."""
    factors: Any = {measure: factor if measure == "pingpong_latency_us" else 1 / factor}
    status, said = answered(ran(Verdict.NO_REFERENCE), screened(**factors))
    assert status == CLOSED, said
    assert "worse on all nodes alike than on 7 earlier days, usually within" in said


def test_slower_than_one_earlier_day_closes_on_exclusive_nodes() -> None:
    """What is slower than one earlier day closes on exclusive nodes alone."""
    now = screened(fma_peak_gflops=0.8, hpl_gflops=0.8)
    for exclusive in (True, False):
        worse, control = controls.nodes_control(now, MEMORY[:1], exclusive=exclusive)
        assert bool(worse) is exclusive
        assert not control.by


def test_unchanged_nodes_close_nothing_by_earlier_days() -> None:
    for seed in range(20, 40):
        memory = [(f"r{k}", day, screened(seed=100 * seed + k)) for k, day in enumerate(DAYS)]
        for days in (1, 3, 7):
            for exclusive in (True, False):
                now = screened(seed=seed)
                assert not controls.nodes_control(now, memory[:days], exclusive=exclusive)[0]


def test_days_that_differ_by_more_close_nothing_and_open_nothing() -> None:
    memory = [
        (f"r{k}", day, screened(seed=k, triad_gb_s=1.0 if k % 2 else 0.6))
        for k, day in enumerate(DAYS)
    ]
    status, said = answered(ran(Verdict.NO_REFERENCE), screened(triad_gb_s=0.6), memory)
    assert status == UNJUDGED, said
    assert "memory bandwidth may be" in said


def test_a_bad_node_closes_whatever_the_others_are() -> None:
    assert answered(ran(Verdict.NO_REFERENCE), screened(slow="n4"))[0] == CLOSED
    unfinished = screening_evidence(screened(), ended=False)
    control = controls.nodes_control(screened(), MEMORY, exclusive=False)[1]
    assert control.by
    assert not controls.all_nodes_control([control], unfinished).by


def test_every_partition_counts() -> None:
    both = [Control("6 nodes"), Control(why="two nodes")]
    assert controls.all_nodes_control(both, []).why == "two nodes"
    assert controls.all_nodes_control(both[:1], []).by == "6 nodes"


def test_more_knowledge_never_closes() -> None:
    """With references, what they left undecided kept closed what opened without them."""
    golden = same_build("mpich", "abc", [], "2026-11-04")
    known = (Verdict.NO_REFERENCE, Verdict.INCONCLUSIVE, Verdict.PASS)
    opens = {
        (k, bool(software), bool(memory)): answered(ran(of), screened(), memory, software)[0]
        == OPEN
        for k, of in enumerate(known)
        for software in ([], golden)
        for memory in ([], MEMORY)
    }
    assert opens[0, True, True]
    assert opens[2, False, False]
    assert not opens[1, True, False]
    for less, more in itertools.product(opens, repeat=2):
        if all(a <= b for a, b in zip(less, more, strict=True)):
            assert opens[less] <= opens[more], (less, more)
