import re

import pytest

from clustergate.modes import (
    EVERY_MODE,
    BadCount,
    Shape,
    UnknownCheck,
    UnknownMode,
    checks_named,
    expected_cases,
    mode_named,
    modes_table,
    reframe_modes,
    reframe_options,
)
from clustergate.state import checkout


def test_an_unknown_mode_lists_the_known_ones():
    with pytest.raises(UnknownMode, match="smoke, maintenance, acceptance"):
        mode_named("quick")


def test_process_counts_go_up_to_every_core():
    assert Shape(cores_per_node=12, nodes=1).rank_counts() == (2, 4, 8, 12)
    assert Shape(cores_per_node=2, nodes=4).rank_counts() == (2, 4, 8)


def test_odd_counts_are_measured_on_request():
    assert Shape(8, 1).rank_counts("5,3,3") == (3, 5)


@pytest.mark.parametrize("named", ["3;5", "0", "two", "3,", "-1"])
def test_a_bad_list_of_counts_is_refused(named):
    with pytest.raises(BadCount, match="list such as"):
        Shape(8, 1).rank_counts(named)


def test_placement_is_a_question_only_where_there_are_nodes():
    assert Shape(8, 1).placements() == ("packed",)
    assert Shape(8, 2).placements() == ("packed", "one-per-node")


def test_cases_are_counted_from_the_site_alone():
    expected = expected_cases(mode_named("smoke").checks, ["mpich"], [Shape(4, 2)])
    assert expected == {
        ("HplCheck", "mpich"): 1,
        ("HpccCheck", "mpich"): 1,
        ("ImbMpi1Check", "mpich"): 3 * 2,
    }
    kernels = ("MpiTrialsCheck", "HostOverheadCheck", "StreamCheck")
    assert list(expected_cases(kernels, ["mpich"], [Shape(4, 2)]).values()) == [2 * 3, 2, 1]
    applications = expected_cases(("LammpsCheck", "NpbCheck"), ["mpich"], [Shape(4, 1)])
    # On 1, 2 and 4 processes; one case for each of NPB's benchmarks.
    assert list(applications.values()) == [2 * 2 * 3, 8]


def test_each_mode_is_a_reframe_mode_that_selects_by_tag():
    names = {mode["name"]: mode["options"] for mode in reframe_modes()}
    assert set(names) == {*EVERY_MODE, "screen"}
    assert names["screen"] == ["--tag=^screen$", "--setvar=mode=screen"]
    assert "--setvar=mode=maintenance" in names["maintenance"]


def test_named_checks_replace_those_of_the_mode():
    options = reframe_options(mode_named("smoke"), ["HplCheck", "ImbRmaCheck"])
    assert options == [r"--name=^HplCheck\b", r"--name=^ImbRmaCheck\b", "--setvar=mode=smoke"]


def test_checks_are_known_by_their_names():
    assert checks_named(["ImbRmaCheck", "HplCheck", "ImbRmaCheck"]) == ("ImbRmaCheck", "HplCheck")
    with pytest.raises(UnknownCheck, match=r"no check 'Hpl'; the checks are HplCheck, "):
        checks_named(["HplCheck", "Hpl"])


def test_the_readme_has_this_table():
    readme = (checkout() / "README.md").read_text(encoding="utf-8")
    match = re.search(r"<!-- modes -->\n(.*?)<!-- /modes -->", readme, re.DOTALL)
    assert match is not None
    assert match.group(1) == modes_table()
