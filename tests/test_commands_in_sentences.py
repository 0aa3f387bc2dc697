"""A command that a sentence names goes on with this call when it is typed in the same shell."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.core import commands
from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.reasons import reason_as_json
from clustergate.report.page import render
from clustergate.run.gate.contract import LEFT_OUT
from clustergate.stacks.golden.builds import GOLDEN_NOT_WHOLE


def call(line: str) -> Invocation:
    """Parse a command line, as `main` does."""
    words = line.split()
    given = cli.build_parser(words).parse_args(words).options_given
    return NO_CALL.of((words[:1], *given))


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
    invocation = call(line)
    once = invocation.completed(sentence)
    assert once == (told or sentence)
    assert invocation.completed(once) == once


@pytest.mark.parametrize("site", ["x", "y"])
def test_a_page_has_the_options_of_its_own_call(site: str) -> None:
    """Pages of several calls share the code of their template."""
    called = call(f"check --site {site}")
    told = "`clustergate setup`"
    text = render("explained.html.j2", invocation=called, title=told, content="", others={})
    assert f"`clustergate setup --site {site}`" in text


def test_a_reason_knows_of_no_call_and_whoever_renders_it_does() -> None:
    why = GOLDEN_NOT_WHOLE(stack="mpich", path="bin/mpirun")
    assert why.remedy == "run `clustergate setup`"
    told = call("check --site x").completed(why)
    assert told.endswith("run `clustergate setup --site x`")
    assert NO_CALL.completed(why) == str(why)


def test_sentences_in_json_go_on_with_the_call_and_facts_stay_data() -> None:
    remedy = "run `clustergate gate`"
    why = LEFT_OUT(cases="HplCheck with mpich", why="of the budget", remedy=remedy)
    (made,), count, nothing = call("gate --site x").in_json(((reason_as_json(why),), 3, None))
    assert made["sentence"].endswith("run `clustergate gate --site x`")
    assert made["facts"]["remedy"] == remedy
    assert (made["code"], count, nothing) == ("gate.left-out", 3, None)


def test_an_option_may_get_another_value_and_a_call_be_another() -> None:
    invocation = call("gate --site x --budget 5m")
    longer = invocation.with_value("--budget", "27m")
    assert longer.completed("`clustergate gate`") == "`clustergate gate --site x --budget 27m`"
    assert invocation.completed("`clustergate gate`") == "`clustergate gate --site x --budget 5m`"
    # Without a budget it takes as long as it takes.
    assert call("gate --site x").with_value("--budget", "27m") == call("gate --site x")


def test_the_program_is_named_as_this_shell_finds_it() -> None:
    here = Invocation((("check",),), ".venv/bin/clustergate")
    assert here.completed("`clustergate show last`") == "`.venv/bin/clustergate show last`"
    # What is resumed was called another time.
    resumed = here.of([["check"], ["--site", "x"]])
    assert resumed.completed("`clustergate setup`") == "`.venv/bin/clustergate setup --site x`"
    assert hash(resumed)


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        (
            "report: /builds/x/.clustergate/results/runs/R1/report.html",
            "report: kept/R1/report.html",
        ),
        ("`clustergate open R1`", "kept/R1/report.html of this job's artifacts"),
        ("a budget covers it (`clustergate gate --budget 37m`)", "it (`CLUSTERGATE_BUDGET=37m`)"),
        ("give `clustergate gate` a larger `--budget`", "a larger CLUSTERGATE_BUDGET"),
    ],
)
def test_a_pipeline_is_told_its_artifact_and_its_variable(sentence: str, told: str) -> None:
    call = (("gate",), ("--site", "alpha"), ("--copy-to", "kept"))
    assert Invocation(call, artifacts="kept").completed(sentence).endswith(told)
    # Whoever sits at the machine opens the page there.
    assert "artifact" not in Invocation(call).completed(sentence)


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"GITLAB_CI": "true", "CI_PROJECT_DIR": "/builds/x"}, "kept"),
        ({"GITLAB_CI": "true", "CI_PROJECT_DIR": "/builds/y"}, ""),
        ({"CI_PROJECT_DIR": "/builds/x"}, ""),
        ({"GITLAB_CI": "true"}, ""),
    ],
)
def test_a_job_of_gitlab_is_known_by_its_variables(
    variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITLAB_CI", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    given = argparse.Namespace(copy_to=Path("/builds/x/kept"))
    assert cli._artifacts(given) == folder
    assert cli._artifacts(argparse.Namespace()) == ""
