"""A sweep (``-P``): its cases, and how summaries show variants beside each other."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import pytest

from clustergate.core.commands import settings_given, sweeps_given
from clustergate.core.model import (
    Better,
    Case,
    CaseId,
    CaseState,
    ClustergateError,
    Estimate,
    Verdict,
)
from clustergate.core.reasons import in_words
from clustergate.judge.assembly import assemble
from clustergate.report.html import render_html
from clustergate.report.junit import render_junit
from clustergate.report.summary import IN_DOUBT, NOT_TOLD_APART
from clustergate.report.terminal import render
from clustergate.run.execute import _readable
from clustergate.run.reframe import unknown_variable
from clustergate.sites import modes
from clustergate.sites.modes import expected_cases, mode_named, parameters_of, variant_of
from clustergate.sites.shape import Shape
from tests.builders import case, figure, run
from tests.described_partitions import described

SMOKE = mode_named("smoke")
OPTIONS = ("-S", "n=1000", "-P", "HplCheck.nb=128,192", "--parameterize=HplCheck.grid=1x2,2x1")


# --- its cases --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ((), {}),
        (OPTIONS, {"HplCheck.nb": ["128", "192"], "HplCheck.grid": ["1x2", "2x1"]}),
        (("-PHplCheck.nb=96",), {"HplCheck.nb": ["96"]}),
        (("--parameterize", "nb=96"), {"nb": ["96"]}),
        (("-S", "HplCheck.nb=96", "--performance-report"), {}),
    ],
)
def test_sweeps_are_found_among_options(
    options: Sequence[str], values: dict[str, list[str]]
) -> None:
    assert sweeps_given(options) == values


def test_a_sweep_is_a_setting_by_hand() -> None:
    assert settings_given(OPTIONS) == ["n=1000", "HplCheck.nb=128,192", "HplCheck.grid=1x2,2x1"]


def test_each_combination_is_a_case_of_its_check_alone() -> None:
    partitions = [described("x:a", Shape(2, 1))]
    keys = expected_cases(("HplCheck", "HpccCheck"), partitions, SMOKE, "", sweeps_given(OPTIONS))
    assert {dict(key.parameters)["nb"] for key in keys if key.check == "HplCheck"} == {"128", "192"}
    assert len([key for key in keys if key.check == "HplCheck"]) == 4
    assert [key.parameters for key in keys if key.check == "HpccCheck"] == [()]


def test_reframes_variant_is_the_expected_case() -> None:
    (key, *_) = expected_cases(
        ["HplCheck"], [described("x:a", Shape(2, 1))], SMOKE, "", sweeps_given(OPTIONS)
    )
    assert parameters_of("HplCheck %.nb=128 %.grid=1x2") == key.parameters
    assert variant_of("HplCheck", key.parameters) == "grid=1x2,nb=128"


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("HplCheck", ""),
        ("HplCheck %.repeat_no=3 %.nid=n1 %.part=x", ""),
        ("ImbMpi1Check %process_count=4 %node_usage=packed", ""),
        ("ImbMpi1Check %process_count=4 %node_usage=packed %.launches=3", "launches=3"),
        ("NpbCheck %kernel=cg %process_count=4", ""),
    ],
)
def test_what_makes_no_variant(name: str, variant: str) -> None:
    assert variant_of(name.split()[0], parameters_of(name)) == variant


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("nb=128", "CHECK.VARIABLE=VALUE"),
        ("HpccCheck.nb=128", "HplCheck run"),
        ("HplCheck.nb=128,128", "name each once"),
        ("HplCheck.nb=128,", "name each once"),
    ],
)
def test_a_sweep_over_nothing_is_refused(option: str, said: str) -> None:
    with pytest.raises(ClustergateError, match=said):
        modes.require_sweeps(sweeps_given(["-P", option]), ["HplCheck"])
    modes.require_sweeps(sweeps_given(OPTIONS), ["HplCheck"])


def test_variable_unknown_to_reframe_found_in_its_words() -> None:
    # ReFrame 4.10.4 goes on with this.
    said = (
        "WARNING: 'nbb' is neither a variable nor a parameter of test 'HplCheck'; ignoring "
        "parameterization"
    )
    assert unknown_variable(said).startswith("'nbb' is neither")
    assert unknown_variable("Found 3 check(s)") == ""


def test_progress_tells_what_a_variant_is() -> None:
    assert _readable("HplCheck %.nb=128 %.grid=1x2") == "HplCheck (nb=128, grid=1x2)"
    assert _readable("C %process_count=2 %node_usage=packed") == "C (2 processes, packed)"


def test_a_variant_that_is_missing_is_told_apart() -> None:
    key = CaseId("HplCheck", "local:node", "mpich", (("nb", "128"),))
    (lost,) = assemble([key], [], [])
    assert lost.state is CaseState.MISSING
    assert lost.conditions == {"variant": "nb=128"}
    assert "(nb=128)" in lost.reason


# --- how they are shown -----------------------------------------------------------------------


def variant(
    value: float, spread: float | None, name: str, stack: str = "mpich", **more: Any
) -> Case:
    low, high = (value - spread, value + spread) if spread is not None else (None, None)
    of = {"estimate": Estimate(value, low, high, 0.95, 8), "conditions": {}, **more}
    rate = figure("HPL", "performance_gflops", value, Verdict.NO_REFERENCE, **of)
    layout = {"ranks": 2, "placement": "packed", "settings": "" if name == "nb=192" else name}
    conditions = {**layout, **({"variant": name} if name else {})}
    return case(stack=stack, conditions=conditions, figures=(rate,), library="MPICH 5")


THREE = (variant(50, 1, "nb=128"), variant(57, 1, "nb=192"), variant(53, 1.9, "nb=256"))


def test_variants_stand_as_columns_and_the_best_is_marked() -> None:
    said = render(run(*THREE), width=120)
    (head,) = [line for line in said.splitlines() if line.strip().startswith("mpich nb")]
    assert head.split() == ["mpich", "nb=128", "mpich", "nb=192", "mpich", "nb=256"]
    (row,) = [line for line in said.splitlines() if line.startswith("HPL ")]
    assert re.split(r"\s{2,}", row.strip()) == ["HPL", "Gflop/s", "50", "57 (best)", "53"]
    assert NOT_TOLD_APART not in said
    page = render_html(run(*THREE))
    assert page.count("(best)") == 1
    assert all(f"mpich {name}" in page for name in ("nb=128", "nb=192", "nb=256"))


DOUBT: dict[str, Any] = {"doubt": in_words("disturbed")}


@pytest.mark.parametrize(
    "cases",
    [
        (THREE[0], THREE[1], variant(56, 2, "nb=256")),
        (THREE[0], variant(57, None, "nb=192")),
        (THREE[0], variant(57, 1, "nb=192", **DOUBT)),
        (variant(50, 1, "nb=128", **DOUBT), THREE[1]),
        (THREE[1],),
    ],
    ids=["overlapping", "one launch", "doubtful best", "doubtful other", "alone"],
)
def test_none_is_the_best_where_launches_do_not_tell(cases: Sequence[Case]) -> None:
    said = render(run(*cases), width=120)
    assert "(best)" not in said
    doubtful = any(figure.doubt for case in cases for figure in case.figures)
    assert (IN_DOUBT if doubtful else NOT_TOLD_APART) in said


def test_lower_is_better_of_times_and_neither_of_neither() -> None:
    lower = [dataclasses.replace(one, figures=()) for one in THREE]
    for better, best in ((Better.LOWER, "50 (best)"), (Better.NEITHER, "")):
        cases = [
            dataclasses.replace(
                bare, figures=(dataclasses.replace(full.figures[0], better=better),)
            )
            for bare, full in zip(lower, THREE, strict=True)
        ]
        said = render(run(*cases), width=120)
        assert ("(best)" in said) == bool(best)
        assert best in said


def test_each_stack_has_a_best_of_its_own() -> None:
    more = (variant(90, 1, "nb=128", "openmpi"), variant(70, 1, "nb=192", "openmpi"))
    said = render(run(*THREE, *more), width=200)
    assert "57 (best)" in said
    assert "90 (best)" in said


def test_without_a_sweep_a_summary_is_as_ever() -> None:
    said = render(run(variant(57, 1, "")), width=120)
    assert any(line.split() == ["mpich"] for line in said.splitlines())
    assert NOT_TOLD_APART not in said


def test_junit_names_have_the_value_also_of_the_default() -> None:
    names = re.findall(r'<testcase classname="HplCheck" name="([^"]*)"', render_junit(run(*THREE)))
    assert names == [f"2 ranks, packed, nb={nb}" for nb in (128, 192, 256)]
