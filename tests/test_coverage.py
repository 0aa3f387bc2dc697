"""What a run should have judged: layouts that references foresee, from plain data."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from clustergate.coverage import not_as_foreseen
from clustergate.model import Case, CaseKey, CaseState
from clustergate.modes import ALL_CHECKS, Partition, Shape, mode_named
from clustergate.references import References, parse_references

SMOKE = mode_named("smoke")
HPL = CaseKey("HplCheck", "alpha:node", "mpich")
LAUNCH = {"mode": "smoke", "ranks": 8, "placement": "packed"}


def known(efforts: Mapping[str, str]) -> References:
    """Return references of HPL with mpich: an effort for each layout."""
    text = """\
$provenance:
  HplCheck:
    origin: published
    source: a table
HplCheck:
  $index: [$partition, $environ, reference_layout, reference_effort]
  alpha:node:
    mpich:
"""
    for layout, effort in efforts.items():
        entry = "{HPL.performance_gflops: [100.0, -0.05, null, Gflop/s]}"
        text += f"      {layout}:\n        {effort}: {entry}\n"
    return parse_references(text, Path("alpha.yaml"), ALL_CHECKS)


EIGHT_CORES = Shape(8, 1)
FULL = known({"8-ranks-packed": "smoke"})


def ran(state: CaseState = CaseState.RAN, reason: str = "", **conditions: object) -> Case:
    found = {**LAUNCH, **conditions} if state is not CaseState.NOT_AVAILABLE else {"mode": "smoke"}
    return Case("HplCheck", "mpich", state, reason, found, partition="alpha:node")


def judged(
    *cases: Case, references: References = FULL, shape: Shape = EIGHT_CORES, why: str = ""
) -> tuple[list[Case], list[str]]:
    partitions = [Partition("alpha:node", ("mpich",), shape)]
    return not_as_foreseen([HPL], cases, references, SMOKE, partitions, why)


def test_what_ran_as_foreseen_is_no_finding() -> None:
    assert judged(ran()) == ([], [])
    assert judged(ran(), references=References(Path("alpha.yaml"))) == ([], [])


def test_fewer_cores_than_the_references_foresee_are_a_finding() -> None:
    why = "this process may use 1 of the node's 8 cores (CPU affinity)"
    (lost,), notes = judged(ran(ranks=1), shape=Shape(1, 1), why=why)
    assert (lost.state, lost.check, lost.partition) == (
        CaseState.MISSING,
        *("HplCheck", "alpha:node"),
    )
    assert lost.reason.startswith(
        "alpha.yaml:8 foresees 8-ranks-packed, and it ran with 1-ranks-packed: alpha:node has 1 "
        f"core now, as {why}; run it as foreseen, or make references"
    )
    assert notes == []


def test_what_is_foreseen_and_not_available_any_more_is_a_finding() -> None:
    (lost,), _ = judged(ran(CaseState.NOT_AVAILABLE, "the wheel is gone"))
    assert "it did not run, as it is not available here (the wheel is gone)" in lost.reason


@pytest.mark.parametrize("state", [CaseState.FAILED, CaseState.MISSING])
def test_what_failed_before_it_was_laid_out_is_told_once(state: CaseState) -> None:
    assert judged(Case("HplCheck", "mpich", state, partition="alpha:node")) == ([], [])
    assert judged(ran(state)) == ([], [])


def test_a_layout_of_another_effort_is_not_foreseen() -> None:
    both = known({"8-ranks-packed": "smoke", "2-ranks-packed-4-cores-each": "smoke+tuned=yes"})
    assert judged(ran(), references=both) == ([], [])
    tuned = ran(ranks=2, cores_per_rank=4, settings="tuned=yes")
    assert judged(tuned, references=both) == ([], [])
    (lost,), _ = judged(ran(ranks=2), references=both)
    assert "foresees 8-ranks-packed, and it ran with 2-ranks-packed" in lost.reason
    maintenance = known({"8-ranks-packed": "maintenance"})
    assert judged(ran(ranks=2), references=maintenance) == ([], [])
    absent = ran(CaseState.NOT_AVAILABLE, "gone")
    assert judged(absent, references=maintenance) == ([], [])


def test_an_effort_that_is_a_pattern_foresees_its_layout_in_every_mode() -> None:
    (lost,), _ = judged(ran(ranks=2), references=known({"8-ranks-packed": '".*"'}))
    assert "foresees 8-ranks-packed" in lost.reason


def test_every_size_of_a_sweep_is_foreseen() -> None:
    sizes = known({"2-ranks-packed": "smoke", "8-ranks-packed": "smoke"})
    assert judged(ran(ranks=2), ran(), references=sizes) == ([], [])
    (lost,), _ = judged(ran(ranks=2), references=sizes)
    assert "foresees 8-ranks-packed, and it ran with 2-ranks-packed" in lost.reason


def test_nodes_that_are_excluded_with_a_reason_explain_what_they_hold() -> None:
    fewer = Shape(2, 3, excluded=1)
    lost, (note,) = judged(ran(ranks=6), shape=fewer)
    assert lost == []
    assert note == (
        "not judged: HplCheck with mpich: the references foresee 8-ranks-packed, and without the "
        "excluded nodes (1) alpha:node has 3"
    )
    # Six cores hold four ranks, whoever is excluded.
    (found,), _ = judged(ran(ranks=6), references=known({"4-ranks-packed": "smoke"}), shape=fewer)
    assert found.reason.startswith("alpha.yaml:8 foresees 4-ranks-packed")


def test_the_evaluation_of_a_paper_is_run_as_large_as_it_goes() -> None:
    mode = mode_named("published-000")
    partitions = [Partition("alpha:node", ("mpich",), Shape(2, 1))]
    references = known({"8-ranks-packed": '".*"'})
    assert not_as_foreseen([HPL], [ran(ranks=2)], references, mode, partitions) == ([], [])
