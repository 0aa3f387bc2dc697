"""The pages that are made of the code name all that there is."""

from __future__ import annotations

import re

from clustergate.benchmarks.registry import every_check
from clustergate.cli import COMMANDS
from clustergate.paths import checkout
from tools.reference import checks_page, commands_page, settings, settings_of

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


def test_every_check_and_every_command_has_its_place():
    page = checks_page()
    assert [name for name in every_check() if f"| `{name}` |" not in page] == []
    titles = set(re.findall(r"^## (.*)$", commands_page(), re.MULTILINE))
    assert {f"clustergate {name}" for name in COMMANDS} < titles
    assert "clustergate golden pin" in titles
