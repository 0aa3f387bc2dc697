"""Which settings of a check differ from what it is given: those have references of their own."""

from reframe.core.builtins import variable

from reframe_checks.base import MpiBenchmark


class Settled(MpiBenchmark):
    settings_that_matter = ("here", "there", "further")
    there = variable(int, value=3)
    further = variable(int, value=4)


class Declaring(Settled):
    """A setting of its own, as a check of an added package has, and another value of one."""

    here = variable(int, value=7)
    there = 5


def test_a_default_is_known_wherever_it_was_declared():
    assert {name: Declaring.defaults[name] for name in Declaring.settings_that_matter} == {
        "here": 7,
        "there": 5,
        "further": 4,
    }


def test_what_is_set_by_hand_replaces_no_default():
    # As ReFrame does it for -S.
    assert Declaring.setvar("there", 6)
    assert Declaring.there == 6
    assert Declaring.defaults["there"] == 5
