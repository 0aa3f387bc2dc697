"""``clustergate completion``: tab completion for a shell."""

from __future__ import annotations

import argparse
from typing import Any

from clustergate.cli.overview import ABOUT
from clustergate.cli.passing_on import option

SHELLS = ("bash", "zsh", "fish")

DESCRIPTION = (
    "Print a script that completes commands, options and choices. It is made of "
    "this version's options: keep it in a file, and make it anew with another version."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "shell", "the shell that reads it", choices=SHELLS)


def run(arguments: argparse.Namespace) -> int:
    import shtab

    from clustergate.cli import build_parser

    parser = build_parser()
    # The help tells commands otherwise; a shell is to know them by what they are for.
    commands: Any = next(action for action in parser._actions if action.choices)
    commands.help = None
    for name, about in ABOUT.items():
        commands.choices[name].description = about.purpose
        pseudo = commands._ChoicesPseudoAction(name, [], about.purpose)
        commands._choices_actions.append(pseudo)
    print(shtab.complete(parser, arguments.shell))
    return 0
