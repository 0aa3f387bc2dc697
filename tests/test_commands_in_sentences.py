"""A command that a sentence names goes on with this call when it is typed in the same shell."""

from __future__ import annotations

import argparse

import pytest

from clustergate import cli
from clustergate.golden.builds import GOLDEN_NOT_WHOLE
from clustergate.wording import commands
from clustergate.wording.commands import begin, completed


def call(line: str) -> None:
    """Parse a command line, as `main` does."""
    words = line.split()
    begin([words[:1]])
    cli.build_parser(words).parse_args(words)


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


def parser_of(name: str) -> argparse.ArgumentParser:
    first, *part = name.split()
    found = cli.build_parser([first])
    for word in (first, *(() if part == ["hpl"] else part)):
        (below,) = (a for a in found._actions if isinstance(a, argparse._SubParsersAction))
        found = below.choices[word]
    return found


@pytest.mark.parametrize("name", commands.TAKEN)
def test_a_command_takes_the_options_that_are_added_to_it(name: str) -> None:
    assert {*commands.TAKEN[name]} - {"--"} <= options_of(parser_of(name))


@pytest.mark.parametrize("name", [name for name in cli.COMMANDS if name != "golden"])
def test_every_command_that_takes_a_site_is_given_it(name: str) -> None:
    of_one = options_of(parser_of(name))
    # Their sentences are of every system, unless one is named.
    others = {"activate", "history", "list"}
    assert ("--site" in of_one) == (name in commands.TAKEN or name in others), name
    assert ("--nodes" in of_one and "--exclude" in of_one) == (
        "--nodes" in commands.TAKEN.get(name, ())
    )


@pytest.mark.parametrize(
    ("line", "sentence", "told"),
    [
        ("check", "`clustergate check --mode smoke` measures again", None),
        # How long this call waits is nothing to repeat.
        ("check --wait 0s", "`clustergate check --mode smoke` measures again", None),
        # The same command is told all that it was given, but for what the sentence speaks of.
        (
            "check --mode smoke --stack a --stack=b --site x --strict -- -S n=1 --nodes",
            "`clustergate check --mode smoke` measures again",
            "`clustergate check --mode smoke --stack a --stack b --site x --strict -- -S n=1 "
            "--nodes` measures again",
        ),
        (
            "check --check A --check B --sit x",
            "`clustergate check --mode smoke --check A --stack a`",
            "`clustergate check --mode smoke --check A --stack a --site x`",
        ),
        # A run that is resumed keeps its own.
        ("check --site x --nodes n[1-4]", "`clustergate check --resume r1`", None),
        (
            "screen --nodes n[1-4] --partition p --budget 5m",
            "`clustergate screen --resume r1` finishes it",
            None,
        ),
        # Others are told what they take.
        (
            "gate --site x --budget 5m --nodes n1 --copy-to d",
            "`clustergate check --check A`; `clustergate history`; `clustergate setup`",
            "`clustergate check --check A --site x --nodes n1`; `clustergate history`; "
            "`clustergate setup --site x`",
        ),
        (
            "gate --site x --budget 5m",
            "give `clustergate gate` a larger --budget",
            "give `clustergate gate --site x` a larger --budget",
        ),
        ("gate --site x", "`clustergate golden pin a`", "`clustergate golden pin a --site x`"),
        ("gate --site x", "`clustergate golden unpin a`", None),
        ("ab --stored r1 --json --csv f", "`clustergate ab --a x --b y`", None),
        ("prune --keep 3 --yes", "`clustergate prune --yes`", "`clustergate prune --yes --keep 3`"),
    ],
)  # fmt: skip
def test_it_has_the_options_of_the_call(line: str, sentence: str, told: str | None) -> None:
    call(line)
    once = completed(sentence)
    assert once == (told or sentence)
    assert completed(once) == once


def test_what_a_reason_tells_to_do_is_told_for_this_call() -> None:
    call("check --site x")
    why = GOLDEN_NOT_WHOLE(stack="mpich", path="bin/mpirun")
    assert why.remedy == "run `clustergate setup --site x`"
    assert str(why).endswith("run `clustergate setup --site x`")


def test_the_program_is_named_as_this_shell_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begin([["check"]], ".venv/bin/clustergate")
    assert completed("`clustergate show last`") == "`.venv/bin/clustergate show last`"
    # What is resumed was called another time.
    begin([["check"], ["--site", "x"]])
    assert completed("`clustergate setup`") == "`.venv/bin/clustergate setup --site x`"


def test_no_options_of_an_earlier_call_are_left(capsys: pytest.CaptureFixture[str]) -> None:
    call("check --site x")
    assert cli.main(["compare", "nothing", "last"]) == 1
    assert "nothing" in capsys.readouterr().err
    assert completed("`clustergate setup`") == "`clustergate setup`"
