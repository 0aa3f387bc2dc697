"""Whether jobs have their nodes for themselves: as stated, else as seen, and where it is told."""

from collections.abc import Sequence
from typing import Any

import pytest

from clustergate.core.model import (
    BaselineRuns,
    CaseRecord,
    Conditions,
    Launch,
    NodeFacts,
    Reference,
    Row,
    Run,
    Sample,
)
from clustergate.judge.assembly import compared, found_at_80_percent
from clustergate.judge.sharing import in_words, sharing_of
from clustergate.report.terminal import render
from clustergate.report.verdicts import as_json
from tests import builders


def launches(*others: float | None) -> list[Launch]:
    """Return launches of ranks that used 100 cores, and others so many of them besides."""
    return [Launch(k, 0.0, 10.0, lost_cores=lost, own_cores=100.0) for k, lost in enumerate(others)]


def record(made: Sequence[Launch], rates: Sequence[float], *, virtual: bool = False) -> CaseRecord:
    conditions: dict[str, Any] = {"core_ids": "0,1", **({"virtual": 1} if virtual else {})}
    peaks = [
        Row("node_peaks", "fma_peak", conditions, {"performance_gflops": rate}) for rate in rates
    ]
    return builders.record(partition="alpha:node", conditions={}, launches=made, peaks=peaks)


QUIET = record(launches(*[0.1] * 20), [100.0, 100.5, 101.0])


@pytest.mark.parametrize(
    ("of", "exclusive", "words"),
    [
        (QUIET, True, "others used less than 2 % in 20 launches on alpha:node"),
        (record(launches(*[0.1] * 20), [100.0] * 3, virtual=True), False, "is virtual"),
        (record(launches(*[0.1] * 18, 9.0, 9.0), [100.0] * 3), False, "2 % in 2 of 20 launches"),
        (
            record(launches(*[0.1] * 20), [100.0, 80.0, 101.0]),
            False,
            "kernels of alpha:node differ",
        ),
        (record(launches(None, None, 0.1, 0.1), [100.0] * 3), False, "too little was seen"),
        (record(launches(*[0.1] * 20), []), False, "too little was seen"),
    ],
)
def test_what_nobody_says_is_seen(of: CaseRecord, exclusive: bool, words: str) -> None:
    sharing = sharing_of("alpha:node", None, [of])
    assert sharing.exclusive is exclusive
    assert words in str(sharing.why)


def test_one_launch_of_many_makes_no_machine_shared() -> None:
    assert sharing_of("a:b", None, [record(launches(*[0.1] * 29, 9.0), [100.0] * 3)]).exclusive


def test_what_somebody_says_goes_before_what_is_seen() -> None:
    busy = record(launches(*[9.0] * 20), [100.0, 50.0, 70.0])
    assert sharing_of("a:b", True, [busy]).exclusive
    assert not sharing_of("a:b", False, [QUIET]).exclusive


def run(**of: Any) -> Run:
    return builders.run(system="alpha", **of)


def test_the_first_line_says_it_in_two_words() -> None:
    alone, shared = (sharing_of("a:b", stated, []) for stated in (True, False))
    assert in_words([alone, alone]) == "exclusive nodes"
    assert in_words([alone, shared]) == "exclusive nodes and shared ones"
    line = render(run(sharing="exclusive nodes"), width=100).splitlines()[1]
    assert line.startswith("clustergate   alpha   exclusive nodes   mode smoke   ")
    assert "nodes" not in render(run(), width=100).splitlines()[1]


def test_what_a_run_finds_told_for_programs() -> None:
    finds = {"kind": float("inf"), "stack": 0.0392, "figure": 0.322}
    assert found_at_80_percent(finds) == [
        "4 of 5 such runs find, if slower: a stack 4 %, one size 38 %, nothing of all compute or "
        "all messages, until the baseline has more days"
    ]
    assert found_at_80_percent({}) == []
    said = as_json(run(finds=finds))["finds_percent"]
    assert said["kind"] is None
    assert round(said["figure"]) == 38


def test_of_several_partitions_that_counts_which_finds_least() -> None:
    """What a run finds on its quiet nodes says nothing of those that scatter."""
    days = tuple(f"2026-11-{day:02}" for day in range(1, 11))

    def expected(check: str, partition: str, stack: str, of: Conditions, one: Sample) -> Reference:
        by = 0.002 if partition == "alpha:quiet" else 0.05
        values = tuple(100.0 * (1.0 + by * (k % 3)) for k in range(10))
        known = BaselineRuns(days, days, values, 1, repeated=False)
        return Reference(110.0, -0.3, None, "Gflop/s", "measured", baseline=known)

    both = [
        builders.record(builders.hpl(104.0), partition=partition)
        for partition in ("alpha:wild", "alpha:quiet")
    ]
    alone = {one.partition: NodeFacts(exclusive=True) for one in both}
    wild, quiet = (compared([one], expected, alone).detectable["kind"] for one in both)
    assert wild > 2 * quiet
    for records in (both, both[::-1]):
        assert compared(records, expected, alone).detectable["kind"] == wild
