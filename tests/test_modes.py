import re
from collections.abc import Sequence

import pytest

from clustergate.model import CaseId
from clustergate.paths import checkout
from clustergate.sites.modes import (
    EVERY_MODE,
    BadCount,
    Partition,
    Shape,
    UnknownCheck,
    UnknownMode,
    checks_named,
    expected_cases,
    mode_named,
    modes_table,
    parameters_of,
    reframe_modes,
    reframe_options,
)


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


def partition(shape: Shape, name: str = "x:a") -> Partition:
    return Partition(name, ("mpich",), shape)


def expected(checks: Sequence[str], *shapes: Shape, named: str = "") -> list[CaseId]:
    partitions = [partition(shape, f"x:{name}") for name, shape in zip("ab", shapes, strict=False)]
    return expected_cases(checks, partitions, named)


def swept(keys: list[CaseId], where: str = "x:a") -> list[tuple[str, str]]:
    found = [dict(key.parameters) for key in keys if key.partition == where]
    return [(one["process_count"], one.get("node_usage", "")) for one in found]


def test_cases_follow_from_the_site_alone():
    found = expected(mode_named("smoke").checks, Shape(4, 2))
    assert found[:2] == [CaseId("HplCheck", "x:a", "mpich"), CaseId("HpccCheck", "x:a", "mpich")]
    # Eight ranks do not lie on eight of two nodes.
    packed = [(count, "packed") for count in ("2", "4", "8")]
    assert sorted(swept(found[2:])) == sorted([*packed, ("2", "one-per-node")])
    kernels = [
        len(expected([check], Shape(4, 2))) for check in ("HostOverheadCheck", "StreamCheck")
    ]
    assert kernels == [2, 1]
    applications = [len(expected([check], Shape(4, 1))) for check in ("LammpsCheck", "NpbCheck")]
    # On 1, 2 and 4 processes; one case for each of NPB's benchmarks.
    assert applications == [2 * 2 * 3, 8]


def test_each_partition_has_the_process_counts_of_its_own_size():
    found = expected(["ImbMpi1Check"], Shape(12, 1), Shape(16, 1))
    assert [count for count, _ in swept(found)] == ["2", "4", "8", "12"]
    assert [count for count, _ in swept(found, "x:b")] == ["2", "4", "8", "16"]


def test_each_partition_has_its_own_stacks():
    partitions = [
        Partition("x:a", ("mpich",), Shape(2, 1)),
        Partition("x:b", ("mpich", "openmpi"), Shape(2, 1)),
    ]
    found = expected_cases(["HplCheck"], partitions)
    assert [(key.partition, key.stack) for key in found] == [
        *(("x:a", "mpich"), ("x:b", "mpich"), ("x:b", "openmpi"))
    ]


def test_a_named_count_is_measured_where_it_fits_and_fails_where_it_fits_nowhere():
    shapes = (Shape(4, 1), Shape(16, 1))
    found = expected(["ImbMpi1Check"], *shapes, named="3,8")
    assert [count for count, _ in swept(found)] == ["3"]
    assert [count for count, _ in swept(found, "x:b")] == ["3", "8"]
    found = expected(["ImbMpi1Check"], *shapes, named="64")
    assert {key.partition for key in found} == {"x:a", "x:b"}


def test_a_count_that_the_site_states_stays_though_the_partition_shrank():
    found = expected(["ImbMpi1Check"], Shape(4, 1, counts=(2, 8)))
    assert [count for count, _ in swept(found)] == ["2", "8"]


def test_what_tells_cases_apart_is_read_from_reframes_name():
    name = "ImbMpi1Check %process_count=2 %node_usage=packed %$REPEAT_COUNT=1 %trials=3"
    assert parameters_of(name) == (("node_usage", "packed"), ("process_count", "2"))
    assert parameters_of("HplCheck") == ()


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
