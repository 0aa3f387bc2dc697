"""Make the site's reference pages of the code itself; `make docs` calls it, no page is kept."""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from clustergate import cli
from clustergate.benchmarks.descriptor import BENCHMARK_TAG
from clustergate.benchmarks.registry import every_check, every_metric
from clustergate.core.model import Better
from clustergate.core.paths import checkout

_SETTING = re.compile(r"^    (\w+) = variable\((.*), value=(.*?)(?:, loggable=True)?\)$")
_REMARK = "    #: "


class Setting(NamedTuple):
    """A variable of a check's class: its default as Python writes it, and what it means."""

    name: str
    default: str
    meaning: str


def settings(text: str) -> dict[str, list[Setting]]:
    """Return the variables of the classes of a file that have a remark, by the classes' names."""
    lines = text.splitlines()
    found: dict[str, list[Setting]] = {}
    for one in (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)):
        body = lines[one.lineno : one.end_lineno]
        of_class = found.setdefault(one.name, [])
        meaning = ""
        for number, line in enumerate(body):
            if setting := _SETTING.match(line):
                of_class.append(Setting(setting.group(1), setting.group(3), meaning))
            elif line.startswith(_REMARK):
                remark = takewhile(lambda line: line.startswith(_REMARK), body[number:])
                if not body[number - 1].startswith(_REMARK):
                    meaning = " ".join(line.removeprefix(_REMARK) for line in remark)
            else:
                meaning = ""
    return found


def _classes(folder: Path) -> dict[str, tuple[list[str], list[Setting]]]:
    """Return of each class of the folder's files the names of its bases and its settings."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        of_file = settings(text)
        for one in (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)):
            bases = [base.id for base in one.bases if isinstance(base, ast.Name)]
            found[one.name] = (bases, of_file[one.name])
    return found


def settings_of(check: str, folder: Path) -> Iterator[Setting]:
    """Yield what `-S` sets of a check: its own settings, and those of what it inherits."""
    classes = _classes(folder)

    def walk(name: str) -> Iterator[Setting]:
        bases, own = classes.get(name, ([], []))
        yield from own
        for base in bases:
            yield from walk(base)

    # The nearest to the check wins; the keys of references are worked out, not set.
    nearest = {one.name: one for one in reversed([*walk(check)])}
    yield from (one for name, one in nearest.items() if not name.startswith("reference_"))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def checks_page() -> str:
    """Return the page of checks, their settings and the metrics of figures."""
    lines = ["# Checks, settings, figures\n", "## Checks\n"]
    lines += ["| check | measures | one case for each | tags |", "|---|---|---|---|"]
    for name, check in every_check().items():
        sweep = ", ".join([check.sweep.value, *check.parameters]).removeprefix("nothing, ")
        tags = ", ".join(f"`{tag}`" for tag in sorted(check.tags))
        lines.append(_row(f"`{name}`", check.description, sweep.replace("nothing", "-"), tags))
    folder = checkout() / "reframe_checks"
    every = {name: list(settings_of(name, folder)) for name in every_check()}
    lines += [
        "\nEvery mode runs those with the tag `benchmark`; `clustergate check --check NAME` and",
        "`reframe -t TAG` run the others.\n",
        "## Settings\n",
        "`clustergate check … -- -S NAME=VALUE` sets it in every check that has it, `-S "
        "CHECK.NAME=VALUE` in one.",
        "A figure measured with another setting than the mode's has no reference of the mode's.\n",
        "| setting | default | meaning | checks |",
        "|---|---|---|---|",
    ]
    for setting in sorted({one for of_check in every.values() for one in of_check if one.meaning}):
        having = [name for name, of_check in every.items() if setting in of_check]
        whose = "all" if len(having) == len(every) else ", ".join(f"`{name}`" for name in having)
        meaning = setting.meaning.replace("``", "`")
        lines.append(_row(f"`{setting.name}`", f"`{setting.default}`", meaning, whose))
    lines += [
        "\n## Metrics\n",
        "A figure's name ends in its metric, such as `PingPong.2p.8B.latency_us`.\n",
        "| metric | unit | better |",
        "|---|---|---|",
    ]
    for metric in every_metric().values():
        if metric.better is not Better.NEITHER:
            lines.append(_row(f"`{metric.name}`", metric.unit, metric.better.value))
    return "\n".join([*lines, ""])


def checks_by_tag() -> str:
    """Return the README's table of checks: those of every mode first."""
    named: dict[str, list[str]] = {BENCHMARK_TAG: []}
    for name, check in every_check().items():
        # A paper's checks have its number as a tag of their own.
        tag = min(check.tags, key=len)
        named.setdefault(tag, []).append(f"`{name}`")
    lines = ["| tag | checks |", "|---|---|"]
    lines += [_row(f"`{tag}`", ", ".join(names)) for tag, names in named.items()]
    return "\n".join([*lines, ""])


def commands_page() -> str:
    """Return what every command says of itself when it is asked for help, 80 columns wide."""
    with mock.patch.dict(os.environ, {"COLUMNS": "80"}):
        lines = ["# Commands\n"]
        for parser in _with_parts(cli.build_parser()):
            lines += [f"## {parser.prog}\n", "```text", parser.format_help().rstrip(), "```\n"]
    return "\n".join(lines)


def _with_parts(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in dict.fromkeys(action.choices.values()):
                yield from _with_parts(part)


PAGES = {"checks.md": checks_page, "commands.md": commands_page}


def write(folder: Path) -> None:
    """Write the pages into a folder, those alone that changed."""
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        path, text = folder / name, page()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
