"""How a check runs HPL: by hand, as tuned, or by default."""

import dataclasses
from pathlib import Path

import pytest

from clustergate.model import BadRequest
from clustergate.references.lookup import effort_key, layout_key
from clustergate.tuning.file import HplTuning, write_tunings
from clustergate.tuning.plan import HplRequest, find_tuning, plan_hpl

TUNING = HplTuning(
    date="2026-11-21",
    build_key="b1",
    node_model="Simulated CPU",
    cores=8,
    ranks=2,
    cores_per_rank=4,
    p=2,
    q=1,
    nb=384,
    n=30000,
    gflops=500.0,
    pfact=2,
    bcast=3,
    environment={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
)
FOUND = (TUNING, Path("site.hpl.yaml"))
ASKED = HplRequest("b1", "Simulated CPU", 8)


def asked(**fields):
    return dataclasses.replace(ASKED, **fields)


def test_what_is_left_open_is_as_tuned():
    plan = plan_hpl(ASKED, FOUND)
    assert (plan.nb, plan.cores_per_rank, plan.grid(2)) == (384, 4, (2, 1))
    assert plan.environment == {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    hpl_input = plan.hpl_input(5000, 2)
    assert hpl_input == TUNING.hpl_input(5000, 2)
    assert (hpl_input.pfacts, hpl_input.bcasts, hpl_input.n_values) == ((2,), (3,), (5000,))
    assert "as tuned on 2026-11-21" in plan.note
    assert "site.hpl.yaml" in plan.note


def test_without_a_tuning_everything_is_hpls_default():
    plan = plan_hpl(ASKED)
    assert (plan.nb, plan.cores_per_rank, plan.grid(8)) == (192, 1, (2, 4))
    assert (plan.environment, plan.settings, plan.note) == ({}, {}, "")
    assert plan.hpl_input(5000, 8).nb_values == (192,)


def test_ranks_on_several_nodes_are_in_a_square_grid():
    assert plan_hpl(ASKED, FOUND).grid(8) == (2, 4)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"build_key": "b2"}, "another build (b1, now b2)"),
        ({"node_model": "Other CPU"}, "another node (Simulated CPU, not Other CPU)"),
        ({"cores_per_node": 16}, "tuned on 8 cores, not 16"),
    ],
)
def test_a_tuning_for_something_else_is_not_used_and_the_note_says_what_to_do(other, told):
    plan = plan_hpl(asked(**other), FOUND)
    default = plan_hpl(asked(**other))
    assert dataclasses.replace(plan, note="") == default
    assert "untuned" in plan.note
    assert told in plan.note
    assert "run `clustergate tune hpl` again" in plan.note


def test_a_node_of_unknown_model_is_trusted_to_be_the_one():
    assert plan_hpl(asked(node_model=None), FOUND).tuning is TUNING


def test_settings_by_hand_win_and_the_rest_stays_tuned():
    plan = plan_hpl(asked(nb=192), FOUND)
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
    ],
)
def test_a_layout_by_hand_is_taken_whole(by_hand, cores_per_rank, grid):
    plan = plan_hpl(asked(**by_hand), FOUND)
    assert (plan.cores_per_rank, plan.grid(2)) == (cores_per_rank, grid)
    assert plan.nb == 384


def test_a_benchmark_with_a_layout_of_its_own_takes_what_was_tuned_for_it():
    plan = plan_hpl(asked(layout_is_fixed=True), FOUND)
    assert (plan.nb, plan.cores_per_rank, plan.settings) == (192, 1, {})
    assert "tuned with 4 cores per rank" in plan.note
    alike = dataclasses.replace(TUNING, ranks=8, cores_per_rank=1, p=4, q=2)
    plan = plan_hpl(asked(layout_is_fixed=True), (alike, FOUND[1]))
    assert (plan.nb, plan.cores_per_rank, plan.grid(8)) == (384, 1, (4, 2))
    assert plan.settings == {"tuned": "yes"}


def reference_keys(plan, ranks):
    settings = ",".join(f"{name}={value}" for name, value in plan.settings.items())
    conditions = {"mode": "smoke", "settings": settings, "ranks": ranks, "placement": "packed"}
    conditions["cores_per_rank"] = plan.cores_per_rank
    return layout_key(conditions), effort_key(conditions)


def test_references_of_tuned_and_of_other_runs_are_kept_apart():
    alike = (dataclasses.replace(TUNING, ranks=8, cores_per_rank=1, p=2, q=4, nb=192), FOUND[1])
    default, tuned = plan_hpl(ASKED), plan_hpl(ASKED, alike)
    assert reference_keys(default, 8) == ("8-ranks-packed", "smoke")
    assert reference_keys(tuned, 8) == ("8-ranks-packed", "smoke+tuned=yes")
    # The default by hand is the default, and what was tuned by hand is as tuned.
    assert reference_keys(plan_hpl(asked(nb=192)), 8) == reference_keys(default, 8)
    assert reference_keys(plan_hpl(asked(nb=192), alike), 8) == reference_keys(tuned, 8)
    assert reference_keys(plan_hpl(asked(nb=256)), 8)[1] == "smoke+nb=256"
    assert reference_keys(plan_hpl(asked(nb=256), alike), 8)[1] == "smoke+tuned=yes,nb=256"


def test_another_tuning_keeps_its_references():
    later = (dataclasses.replace(TUNING, date="2027-01-01", nb=256, pfact=0), FOUND[1])
    assert reference_keys(plan_hpl(ASKED, later), 2) == reference_keys(plan_hpl(ASKED, FOUND), 2)


# --- where it is found ------------------------------------------------------------------------


def test_the_tuning_lies_beside_the_site_config_and_the_last_one_wins(tmp_path):
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    assert find_tuning([first, second], "mpich") is None
    write_tunings(tmp_path / "first.hpl.yaml", {"mpich": TUNING})
    assert find_tuning([first, second], "mpich") == (TUNING, tmp_path / "first.hpl.yaml")
    assert find_tuning([first, second], "openmpi") is None
    other = dataclasses.replace(TUNING, nb=64)
    write_tunings(tmp_path / "second.hpl.yaml", {"mpich": other})
    assert find_tuning([first, second], "mpich") == (other, tmp_path / "second.hpl.yaml")


def test_a_damaged_file_is_an_error_with_its_line(tmp_path):
    (tmp_path / "first.hpl.yaml").write_text("schema: 1\nstacks: []\n")
    with pytest.raises(BadRequest, match=r"first\.hpl\.yaml:2: "):
        find_tuning([tmp_path / "first.py"], "mpich")
