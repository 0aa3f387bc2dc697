"""How a check runs HPL: by hand, as the site config says, or by default."""

from __future__ import annotations

import dataclasses
from typing import Any

import jsonschema
import pytest

from clustergate import cli
from clustergate.benchmarks.hpl.settings import (
    HplPlan,
    HplRequest,
    HplSettings,
    grid_of,
    plan_hpl,
    settings_schema,
    site_line,
    trial,
)
from clustergate.benchmarks.hpl.sizing import HplInput, SizingError
from clustergate.core.model import ClustergateError
from clustergate.judge.references.lookup import effort_key, layout_key
from clustergate.sites import configuration, stack
from clustergate.sites.description import Stack

SAID: dict[str, Any] = {
    **{"nb": 384, "ranks_per_node": 2, "grid": "2x1", "pfact": 2, "bcast": 3},
    "environment": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
}
ASKED = HplRequest(cores_per_node=8)


def asked(**fields: Any) -> HplRequest:
    return dataclasses.replace(ASKED, **fields)


def test_what_is_left_open_is_as_the_site_config_says() -> None:
    plan = plan_hpl(ASKED, SAID)
    assert (plan.nb, plan.cores_per_rank, plan.grid(2)) == (384, 4, (2, 1))
    assert plan.environment == {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    hpl_input = plan.hpl_input(5000, 2)
    assert (hpl_input.pfacts, hpl_input.bcasts, hpl_input.n_values) == ((2,), (3,), (5000,))
    assert (hpl_input.p_values, hpl_input.q_values) == ((2,), (1,))
    assert plan.note == "HPL ran as the site config says (NB=384, 4 cores per rank)"


def test_where_it_says_nothing_everything_is_hpls_default() -> None:
    plan = plan_hpl(ASKED)
    assert (plan.nb, plan.cores_per_rank, plan.grid(8)) == (192, 1, (2, 4))
    assert (plan.environment, plan.changed(8), plan.note) == ({}, {}, "")
    default = HplInput(n_values=(5000,), p_values=(2,), q_values=(4,))
    assert plan.hpl_input(5000, 8) == HplSettings().hpl_input(5000, (2, 4)) == default


def test_ranks_on_several_nodes_are_in_a_square_grid() -> None:
    assert plan_hpl(ASKED, SAID).grid(8) == (2, 4)


def test_settings_by_hand_win_and_the_rest_stays() -> None:
    plan = plan_hpl(asked(nb=192), SAID)
    assert (plan.nb, plan.cores_per_rank) == (192, 4)
    assert plan.hpl_input(5000, 2).nb_values == (192,)
    assert plan.hpl_input(5000, 2).pfacts == (2,)
    assert "by hand" in plan.note


@pytest.mark.parametrize(
    ("by_hand", "cores_per_rank", "grid"),
    [
        ({"ranks": 2}, 1, (1, 2)),
        ({"cores_per_rank": 2}, 2, (1, 2)),
        ({"ranks": 2, "cores_per_rank": 4}, 4, (2, 1)),
        ({"grid": "1x2"}, 4, (1, 2)),
    ],
)
def test_a_layout_by_hand_is_taken_whole(
    by_hand: dict[str, Any], cores_per_rank: int, grid: tuple[int, int]
) -> None:
    plan = plan_hpl(asked(**by_hand), SAID)
    assert (plan.cores_per_rank, plan.grid(2)) == (cores_per_rank, grid)
    assert plan.nb == 384


@pytest.mark.parametrize("grid", ["2", "2x", "0x2", "2x-1", "2 x 1", "x"])
def test_what_is_no_grid_is_refused(grid: str) -> None:
    with pytest.raises(SizingError, match="such as 1x2"):
        grid_of(grid, 2)


def test_a_grid_of_other_ranks_is_refused() -> None:
    with pytest.raises(SizingError, match=r"2x2 grid needs 4 ranks, and 2 are launched.*-S ranks"):
        plan_hpl(asked(grid="2x2")).grid(2)


@pytest.mark.parametrize("ranks", [3, 16])
def test_ranks_that_do_not_share_out_the_cores_are_refused(ranks: int) -> None:
    with pytest.raises(SizingError, match=f"{ranks} ranks for the 8 cores"):
        plan_hpl(ASKED, {"ranks_per_node": ranks})


def test_a_benchmark_with_a_layout_of_its_own_takes_what_fits_that() -> None:
    plan = plan_hpl(asked(layout_is_fixed=True), SAID)
    assert (plan.nb, plan.cores_per_rank, plan.changed(8)) == (192, 1, {})
    assert "HPL ran untuned: the site config has 4 cores per rank" in plan.note
    plan = plan_hpl(asked(layout_is_fixed=True), {"nb": 384, "grid": "4x2"})
    assert (plan.nb, plan.cores_per_rank, plan.grid(8)) == (384, 1, (4, 2))
    assert plan.changed(8) == {"tuned": "yes"}


def keys(plan: HplPlan, ranks: int) -> tuple[str, str]:
    settings = ",".join(f"{name}={value}" for name, value in plan.changed(ranks).items())
    conditions: dict[str, Any] = {
        "mode": "smoke",
        "settings": settings,
        "ranks": ranks,
        "placement": "packed",
    }
    conditions["cores_per_rank"] = plan.cores_per_rank
    return layout_key(conditions), effort_key(conditions)


def test_references_of_settings_are_kept_apart() -> None:
    alike = {"nb": 192, "grid": "4x2"}
    default, tuned = plan_hpl(ASKED), plan_hpl(ASKED, alike)
    assert keys(default, 8) == ("8-ranks-packed", "smoke")
    # As references of a tuning have always been called.
    assert keys(tuned, 8) == ("8-ranks-packed", "smoke+tuned=yes")
    assert keys(plan_hpl(ASKED, SAID), 2) == ("2-ranks-packed-4-cores-each", "smoke+tuned=yes")
    # The default by hand is the default, and what the site config says by hand is as that says.
    assert keys(plan_hpl(asked(nb=192, grid="2x4")), 8) == keys(default, 8)
    assert keys(plan_hpl(asked(nb=192, grid="4x2"), alike), 8) == keys(tuned, 8)
    assert keys(plan_hpl(asked(nb=256)), 8)[1] == "smoke+nb=256"
    assert keys(plan_hpl(asked(grid="8x1")), 8)[1] == "smoke+grid=8x1"
    assert keys(plan_hpl(asked(nb=256), alike), 8)[1] == "smoke+tuned=yes,nb=256"
    assert keys(plan_hpl(asked(grid="2x4"), alike), 8)[1] == "smoke+tuned=yes,grid=2x4"


# --- where it is said -------------------------------------------------------------------------


def test_a_site_config_says_it_of_a_stack() -> None:
    said = stack("mpich", hpl={"nb": 192, "ranks_per_node": 1, "grid": "1x1"}, env_vars=[])
    known = Stack.of(said)
    assert known.benchmarks == {"hpl": {"nb": 192, "ranks_per_node": 1, "grid": "1x1"}}
    assert "benchmarks" not in stack("mpich")["extras"]


PARTITION = {
    **{"name": "node", "scheduler": "local", "launcher": "clustergate"},
    "extras": {
        **{"cores_per_node": 2, "memory_bytes_per_node": 1 << 30, "nominal_gflops_per_core": 1.0}
    },
}


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"NB": 192}, "NB"),
        ({"nb": "192"}, "nb"),
        ({"nb": 0}, "nb"),
        ({"bcast": 6}, "bcast"),
        ({"grid": "1 x 2"}, "grid"),
        ({"grid": 2}, "grid"),
        ({"ranks_per_node": 0}, "ranks_per_node"),
        ({"equilibration": 1}, "equilibration"),
        ({"environment": {"A": 1}}, "A"),
    ],
)
def test_what_it_says_wrongly_is_refused(
    said: dict[str, Any], complaint: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    system = {"name": "alpha", "descr": "x", "hostnames": ["x"], "partitions": [PARTITION]}
    configuration([system], [stack("mpich", hpl={"nb": 192})])
    with pytest.raises(ClustergateError, match=complaint):
        configuration([system], [stack("mpich", hpl=said)])


def test_every_setting_has_a_schema_that_takes_its_default() -> None:
    default = dataclasses.asdict(HplSettings(ranks_per_node=1, grid="1x1"))
    schema = settings_schema()
    assert set(schema["properties"]) == set(default)
    jsonschema.validate(default, schema)


# --- what earlier versions left ---------------------------------------------------------------

# As `clustergate tune hpl` wrote it.
ENTRY: dict[str, Any] = {
    **{"date": "2026-11-21", "build_key": "b1", "node_model": "Simulated CPU", "cores": 8},
    **{"ranks": 2, "cores_per_rank": 4, "p": 2, "q": 1, "nb": 384, "n": 30000, "gflops": 500.0},
    **{"dgemm_gflops": None, "fma_peak_gflops": None, "environment": {}, "depth": 1, "bcast": 1},
    **{"pfact": 1, "nbmin": 4, "ndiv": 2, "rfact": 2, "swap": 2, "swapping_threshold": 64},
    **{"l1_transposed": True, "u_transposed": True, "equilibration": True},
}


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({}, 'hpl={"nb": 384, "ranks_per_node": 2, "grid": "2x1"}'),
        (
            {"bcast": 3, "l1_transposed": False, "environment": {"A": "b=1"}},
            'hpl={"nb": 384, "ranks_per_node": 2, "grid": "2x1", "bcast": 3, '
            '"l1_transposed": False, "environment": {"A": "b=1"}}',
        ),
    ],
)
def test_an_entry_of_a_tuning_file_is_a_line_of_the_site_config(
    changed: dict[str, Any], line: str
) -> None:
    said = site_line({**ENTRY, **changed})
    assert said == line
    config = Stack.of(eval(f"stack('mpich', {said})", {"stack": stack}))
    plan = plan_hpl(ASKED, config.benchmarks["hpl"])
    assert (plan.nb, plan.cores_per_rank, plan.grid(2)) == (384, 4, (2, 1))
    assert plan.changed(2) == {"tuned": "yes"}


@pytest.mark.parametrize("wrong", [{"nb": 0}, {"nb": "forty"}, {"p": 0}, {"ranks": None}])
def test_a_damaged_entry_is_no_line(wrong: dict[str, Any]) -> None:
    with pytest.raises((ClustergateError, TypeError, ValueError)):
        site_line({**ENTRY, **wrong})


@pytest.mark.parametrize("words", [["hpl"], ["hpl", "--budget", "10m"], ["--help"], []])
def test_the_old_command_is_one_sentence_that_names_the_page(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tune", *words]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "docs/hpl-tuning.md" in sentence


def test_a_trial_asks_for_what_its_output_is_read_by() -> None:
    one = trial(2)
    assert set(one.inputs) == {"HPL.dat", "hpccinf.txt"}
    with pytest.raises(ClustergateError):
        list(one.parse(["no HPL"], "output"))
