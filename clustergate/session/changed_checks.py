"""Which checks a change concerns, by the names of the changed files alone.

A file that cannot change a figure concerns none, a check file its own checks, what belongs to
another system none of this one; whatever else changed concerns every check. Pure.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

CHECK_FOLDER = "reframe_checks"
# Of a site config, a reference or a hostfile, the name begins with that of its system.
SITE_FOLDERS = ("site_configs", "references", "hostfiles")
# What is read or tried, and never runs in a job.
NO_FIGURES_IN = ("docs", "tests", "tools")
NO_FIGURES_SUFFIXES = (".md",)


@dataclass(frozen=True)
class Concern:
    """What one changed file means: the checks to run, and why those."""

    path: str
    checks: tuple[str, ...]
    reason: str


def checks_in(text: str, source: str) -> tuple[str, ...]:
    """Return the names of the checks that a check file defines, in its order.

    They are the classes with ReFrame's decorator ``simple_test``. Raises SyntaxError.
    """
    return tuple(
        node.name
        for node in ast.parse(text, source).body
        if isinstance(node, ast.ClassDef) and any(map(_makes_a_test, node.decorator_list))
    )


def _makes_a_test(decorator: ast.expr) -> bool:
    named = decorator.attr if isinstance(decorator, ast.Attribute) else decorator
    return (named.id if isinstance(named, ast.Name) else named) == "simple_test"


def concerns(
    changed: Sequence[str],
    checks_of: Mapping[str, Sequence[str]],
    every: Sequence[str],
    system: str,
    systems: Sequence[str],
) -> list[Concern]:
    """Return what each changed file means for one of the systems of a site.

    ``checks_of`` has the checks of each check file by the file's name; ``every`` are the checks to
    run when all are concerned. Paths are those of ``git diff --name-only``.
    """
    others = [name for name in systems if name != system]
    return [_concern(path, checks_of, every, others) for path in dict.fromkeys(changed)]


def _concern(
    path: str, checks_of: Mapping[str, Sequence[str]], every: Sequence[str], others: Sequence[str]
) -> Concern:
    parts = PurePosixPath(path).parts
    folder, name = parts[0] if len(parts) > 1 else "", PurePosixPath(path).name
    if path.endswith(NO_FIGURES_SUFFIXES) or folder in NO_FIGURES_IN:
        return Concern(path, (), "no figure depends on it")
    if folder == CHECK_FOLDER and len(parts) == 2 and checks_of.get(name):
        return Concern(path, tuple(checks_of[name]), "its own checks")
    if folder in SITE_FOLDERS and name.split(".")[0] in others:
        return Concern(path, (), "it belongs to another system")
    return Concern(path, tuple(every), "any check may depend on it")


def selected(concerns: Sequence[Concern]) -> tuple[str, ...]:
    """Return the checks that the changed files concern together, each once."""
    return tuple(dict.fromkeys(check for concern in concerns for check in concern.checks))
