"""References that are there and do not hold for what ran: told, and a finding without -S."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks.registry import every_check
from clustergate.core.model import (
    Case,
    CaseRecord,
    CaseState,
    Verdict,
)
from clustergate.judge.coverage import dead_references, settings_by_hand
from clustergate.judge.references.lookup import References, parse_references
from clustergate.report import terminal
from clustergate.sites.modes import mode_named
from tests.builders import case, figure, run

SMOKE = mode_named("smoke")
RATE = "HPL.performance_gflops"
ANY = {"HplCheck": {"origin": "published", "source": "a table"}}


def known(
    *efforts: tuple[str, str], figure: str = RATE, provenance: Mapping[str, Any] = ANY
) -> References:
    """Return references of HPL with mpich, by layouts and efforts."""
    layouts: dict[str, dict[str, object]] = {}
    for layout, effort in efforts:
        layouts.setdefault(layout, {})[effort] = {figure: [100.0, -0.05, None, "Gflop/s"]}
    index = ["$partition", "$environ", "reference_layout", "reference_effort"]
    document = {
        "$provenance": provenance,
        "HplCheck": {"$index": index, "alpha:node": {"mpich": layouts}},
    }
    return parse_references(json.dumps(document, indent=1), Path("alpha.yaml"), every_check())


def ran(settings: str = "", ranks: int = 8, cores: int = 1, **changes: Any) -> Case:
    of = {"mode": "smoke", "ranks": ranks, "placement": "packed", "settings": settings}
    rate = figure("HPL", "performance_gflops", 90.0, Verdict.NO_REFERENCE, conditions={})
    fields = {"conditions": {**of, "cores_per_rank": cores}, "figures": (rate,)}
    return case(partition="alpha:node", **{**fields, **changes})


PLAIN = ("8-ranks-packed", "smoke")
TUNED = ("4-ranks-packed-2-cores-each", "smoke+tuned=yes")


def test_what_met_its_references_is_no_finding() -> None:
    for effort in (PLAIN, ("8-ranks-packed", ".*"), ("8-ranks-packed", "smoke.*")):
        assert dead_references([ran()], known(effort), SMOKE) == ([], [])
    assert dead_references([ran("tuned=yes", 4, 2)], known(TUNED, PLAIN), SMOKE) == ([], [])


def test_references_that_hold_for_no_known_size_are_told() -> None:
    """Of a matrix of any order, on however many nodes, HPL passed by what somebody had typed."""
    conditions: dict[str, str | int | float | bool]
    conditions = {"mode": "smoke", "ranks": 8, "placement": "packed", "settings": ""}
    record = CaseRecord("x", "HplCheck", "mpich", "alpha:node", conditions)
    (said,) = known(PLAIN).unsized([record])
    assert said.startswith("alpha.yaml:")
    assert "for what size and processor the references of HplCheck with mpich hold" in said
    assert "lacks nodes and processors and n; " in said
    case = "HplCheck/alpha:node/mpich/8-ranks-packed/smoke"
    stated = {"origin": "published", "source": "a table", "nodes": ["n1"]}
    (said,) = known(PLAIN, provenance={case: stated}).unsized([record])
    assert "lacks processors and n; " in said
    whole = {**stated, "processors": ["EPYC"], "n": 1000}
    assert known(PLAIN, provenance={case: whole}).unsized([record]) == []
    assert known(TUNED).unsized([record]) == []
    absent = dataclasses.replace(record, conditions={"mode": "smoke"}, unavailable="no source")
    assert known(PLAIN).unsized([absent]) == []


def test_a_lost_tuning_switches_no_reference_off() -> None:
    (lost,), notes = dead_references([ran()], known(TUNED), SMOKE)
    assert (lost.state, lost.check, lost.stack) == (CaseState.MISSING, "HplCheck", "mpich")
    assert lost.reason.startswith("alpha.yaml:")
    assert " is for smoke+tuned=yes, but this ran smoke: its tuning is gone" in lost.reason
    assert "docs/hpl-tuning.md" in lost.reason
    assert notes == []


def test_a_lost_tuning_is_told_where_untuned_references_judge() -> None:
    lost, (note,) = dead_references([ran()], known(PLAIN, TUNED), SMOKE)
    assert lost == []
    assert str(note).startswith("HplCheck with mpich: alpha.yaml:")
    assert "is for smoke+tuned=yes, but this ran smoke: its tuning is gone" in str(note)


def test_a_tuning_made_since_switches_no_reference_off() -> None:
    (lost,), _ = dead_references([ran("tuned=yes", 4, 2)], known(PLAIN), SMOKE)
    assert "is for smoke, but this ran smoke+tuned=yes: make references" in lost.reason
    assert lost.reason.endswith("take the tuning out of the site config")


@pytest.mark.parametrize(
    ("case", "by_hand", "effort"),
    [
        (ran("n=20000"), {"n"}, PLAIN),
        (ran("nb=384,tuned=yes", 4, 2), {"nb"}, TUNED),
    ],
)
def test_what_was_asked_for_by_hand_is_a_note(case: Case, by_hand: set[str], effort) -> None:
    lost, (note,) = dead_references([case], known(effort), SMOKE, by_hand)
    assert lost == []
    assert str(note).endswith("as -S asked for")


def test_references_of_another_problem_are_told() -> None:
    lost, (note,) = dead_references([ran()], known(("8-ranks-packed", "smoke+n=20000")), SMOKE)
    assert lost == []
    assert str(note).endswith(" is for smoke+n=20000, but this ran smoke")
    told = terminal.render(run(ran(), unjudged=(note,)), width=99)
    assert f" ! not judged: {note}" in told.splitlines()


def test_another_mode_is_nobodys_business() -> None:
    assert dead_references([ran()], known(("8-ranks-packed", "maintenance")), SMOKE) == ([], [])
    assert dead_references([ran()], References(Path("alpha.yaml")), SMOKE) == ([], [])
    paper = mode_named("published-001")
    assert dead_references([ran()], known(TUNED), paper) == ([], [])


def test_lost_figure_is_a_finding_when_nothing_else_is_compared() -> None:
    gone = known(PLAIN, figure="Linpack.performance_gflops")
    (lost,), _ = dead_references([ran()], gone, SMOKE)
    assert "but the run yielded no such figure" in lost.reason


@pytest.mark.parametrize("state", [CaseState.FAILED, CaseState.MISSING, CaseState.NOT_AVAILABLE])
def test_what_did_not_run_is_told_by_itself(state: CaseState) -> None:
    assert dead_references([ran(state=state)], known(TUNED), SMOKE) == ([], [])


def test_what_is_told_of_other_ranks_is_not_told_twice() -> None:
    other = known(("4-ranks-packed", "smoke"))
    assert dead_references([ran()], other, SMOKE) == ([], [])
    told = {("HplCheck", "alpha:node", "mpich")}
    assert dead_references([ran()], known(TUNED), SMOKE, reported=told) == ([], [])


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["-S", "n=1000", "-n", "HplCheck"], {"n"}),
        (["-SHplCheck.nb=2"], {"nb"}),
        (["--setvar=nb=96", "--setvar", "HpccCheck.ranks=64"], {"nb", "ranks"}),
        (["-P", "HplCheck.nb=96,128", "--parameterize=HplCheck.grid=1x2"], {"nb", "grid"}),
        (["-n", "a=b", "-p", "mpich"], set()),
    ],
)
def test_settings_are_read_from_options(options: list[str], names: set[str]) -> None:
    assert settings_by_hand(options) == names
