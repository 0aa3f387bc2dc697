"""How commands declare their options, and a parser that passes further ones on to ReFrame."""

from __future__ import annotations

import argparse
import itertools
from typing import Any, NoReturn

from clustergate.cli.overview import ABOUT
from clustergate.core.notation import did_you_mean, nearest, printable


def option(to: argparse._ActionsContainer, spelled: str, means: str, **how: Any) -> None:
    """Add an option as its help spells it: ``--runs N`` takes a value, ``--json`` is a flag.

    Without dashes it is an argument, with or without a name for the reader: ``run RUN``.
    """
    name, _, value = spelled.partition(" ")
    if value:
        how["metavar"] = value
    elif name.startswith("-") and not how:
        how["action"] = "store_true"
    to.add_argument(name, help=means, **how)


class _Paragraphs(argparse.HelpFormatter):
    """Wraps each paragraph of a description; indented and empty lines stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = itertools.groupby(text.splitlines(), lambda line: line[:1].strip() == "")
        return "\n".join(
            "\n".join(lines)
            if kept
            else super(_Paragraphs, self)._fill_text(" ".join(lines), width, indent)
            for kept, lines in parts
        )


class PassingOnParser(argparse.ArgumentParser):
    """A parser that passes on what stands behind ``--``, whatever options stand before it.

    A command takes that by a default of ``reframe_options`` that is a list. argparse alone would
    give such an argument nothing when options follow another positional one. A description of
    several paragraphs keeps them, and the ``appendix`` of the help its lines. Subparsers are of the
    same class.
    """

    def __init__(self, **settings: Any) -> None:
        if "\n" in (settings.get("description") or ""):
            settings.setdefault("formatter_class", _Paragraphs)
        super().__init__(**settings)
        self.appendix = ""
        self._given: list[tuple[str, ...]] = []

    def format_help(self) -> str:
        """Return the help with what stands below it, such as examples, line by line."""
        return super().format_help() + self.appendix

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with an argument, which may hold anything."""
        super().error(printable(message))

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Note an option; refuse what is empty, as an unset variable of a shell leaves it."""
        of_command = isinstance(action, argparse._SubParsersAction)
        if not of_command and not all(map(str.strip, arg_strings)):
            raise argparse.ArgumentError(action, "its value is empty")
        if action.option_strings:
            self._given.append((action.option_strings[-1], *arg_strings))
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is none of the choices, with the one that was meant."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(nearest(str(value), map(str, action.choices or ())))
            raise

    def _with_late_ones(self, namespace: Any, unknown: list[str]) -> tuple[Any, list[str]]:
        """Take arguments behind an option for those that may be many; refuse what is none.

        argparse takes them before the first option alone, and refuses what is left where nobody
        knows any more of which command it was. Its own way, :meth:`parse_intermixed_args`, takes no
        parser with subcommands, and is not asked for that of a subcommand: hence the private names.
        """
        if any(isinstance(action, argparse._SubParsersAction) for action in self._actions):
            return namespace, unknown
        many = [one for one in self._actions if not one.option_strings and one.nargs in ("*", "+")]
        if unknown and many and not any(word.startswith("-") for word in unknown):
            known = getattr(namespace, many[-1].dest)
            late = self._get_values(many[-1], unknown)
            setattr(
                namespace, many[-1].dest, late if known is many[-1].default else [*known, *late]
            )
            unknown = []
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant_by(unknown)}")
        return namespace, unknown

    def _meant_by(self, unknown: list[str]) -> str:
        if (command := unknown[0].removeprefix("--") if unknown else "") in ABOUT:
            return f"; did you mean `clustergate {command}`?"
        options = [one for one in self._option_string_actions if one.startswith("--")]
        return did_you_mean(nearest("".join(unknown[:1]).partition("=")[0], options, 0.7))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, but leave what is behind ``--`` to ReFrame.

        What was given is in ``options_given``: each option by its long name with its values, in
        their order, behind those of the parsers above.
        """
        self._given.clear()
        namespace, unknown = self._parsed(args, namespace)
        namespace.options_given = (*self._given, *getattr(namespace, "options_given", ()))
        return namespace, unknown

    def _parsed(self, args: Any, namespace: Any) -> Any:
        if args is None or self.get_default("reframe_options") is None:
            return self._with_late_ones(*super().parse_known_args(args, namespace))
        at = list(args).index("--") if "--" in args else len(args)
        namespace, unknown = super().parse_known_args(args[:at], namespace)
        if unknown or namespace.reframe_options:
            # ReFrame would complain of it after minutes.
            named = " ".join([*unknown, *namespace.reframe_options])
            hint = "options for ReFrame go after --" if unknown else "a value follows an option"
            self.error(f"unrecognized arguments: {named} ({hint}){self._meant_by(unknown)}")
        namespace.reframe_options = list(args[at + 1 :])
        if namespace.reframe_options:
            self._given.append(tuple(args[at:]))
        return namespace, unknown
