"""The pages that are made of the code name all that there is."""

from __future__ import annotations

import re

from clustergate.benchmarks.build import Wheel
from clustergate.benchmarks.descriptor import BENCHMARK_TAG
from clustergate.benchmarks.registry import every_benchmark, every_check
from clustergate.cli import COMMANDS
from clustergate.core.paths import checkout
from clustergate.stacks.wheels import STACKS
from tools.reference import checks_by_tag, checks_page, commands_page, settings, settings_of

CHECKS = checkout() / "reframe_checks"
CLASS = """
class Above:
    #: The effort,
    #: by the name of a mode.
    mode = variable(str, value="smoke", loggable=True)
    #: IMB's options.
    sync = variable(str, value="")
    map = variable(str, value="", loggable=True)
    plain = 3
    silent = variable(int, value=0)
"""


def test_a_remark_speaks_of_all_settings_that_follow_it():
    (found,) = settings(CLASS).values()
    assert found == [
        ("mode", '"smoke"', "The effort, by the name of a mode."),
        ("sync", '""', "IMB's options."),
        ("map", '""', "IMB's options."),
        ("silent", "0", ""),
    ]


def test_no_setting_of_the_checks_is_missed():
    files = [path.read_text(encoding="utf-8") for path in CHECKS.glob("*.py")]
    written = sum(len(re.findall(r"= variable\(.*value=", text)) for text in files)
    assert written > 20
    assert sum(len(of_class) for text in files for of_class in settings(text).values()) == written


def test_a_check_has_its_own_settings_and_those_it_inherits():
    found = {one.name: one.default for one in settings_of("HplCheck", CHECKS)}
    assert (found["nb"], found["ranks"], found["mode"]) == ("0", "0", '"smoke"')
    assert "largest_bytes" not in found


def test_an_application_has_no_setting_of_another():
    """ReFrame's listings, and -S, would take one that does nothing."""
    of = {name: {one.name for one in settings_of(name, CHECKS)} for name in every_check()}
    own = {"LammpsCheck": {"replicated"}, "NpbCheck": {"problem_class"}, "HpccgCheck": set()}
    assert {name: of[name] & {"replicated", "problem_class"} for name in own} == own


def test_every_check_and_every_command_has_its_place():
    page = checks_page()
    assert [name for name in every_check() if f"| `{name}` |" not in page] == []
    titles = set(re.findall(r"^## (.*)$", commands_page(), re.MULTILINE))
    assert {f"clustergate {name}" for name in COMMANDS} < titles
    assert "clustergate golden pin" in titles


CHECKING, OF_STACKS = (
    (checkout() / "docs" / name).read_text(encoding="utf-8")
    for name in ("checking.md", "stacks.md")
)


def test_page_names_every_check() -> None:
    match = re.search(r"<!-- checks -->\n(.*?)<!-- /checks -->", CHECKING, re.DOTALL)
    assert match is not None
    assert match.group(1) == checks_by_tag()
    assert all(f"`{name}`" in match.group(1) for name in every_check())


def test_page_tells_wheel_stacks_have_all_benchmarks() -> None:
    """The page tells how every wheel stack has the benchmarks of every mode."""
    head, _, *rows = re.findall(
        r"^\|.*", OF_STACKS[OF_STACKS.index("| provider | stack |") :], re.M
    )
    _, _, *columns, command = (cell.strip() for cell in head.strip("| ").split("|"))
    benchmarks = [
        one
        for one in every_benchmark().values()
        if any(BENCHMARK_TAG in check.tags for check in one.checks)
    ]
    assert (len(columns), command) == (len(benchmarks), "command")
    for column, one in zip(columns, benchmarks, strict=True):
        title, _, version = column.partition(" ")
        assert title == one.title
        assert one.build is not None
        assert version in ("", *(source.version for source in one.build.sources()))
    table = {row.rsplit("`", 2)[-2]: row.strip("| ").split("|") for row in rows if "wheels" in row}
    for name, stack in STACKS.items():
        cells = [cell.strip() for cell in table[f"clustergate check --stack {name}"]][2:-1]
        for cell, one in zip(cells, benchmarks, strict=True):
            assert one.build is not None
            binaries = stack.mpich_abi and isinstance(one.build.recipes[0], Wheel)
            assert binaries == ("binaries" in cell)
