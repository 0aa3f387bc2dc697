"""Run the tests that stand nearest to what changed: ``make test-fast``.

Those of a module are the tests that import it, or else its importers, and so on upwards, or else
the tests of its folder; those of another file name it or its folder. A test that starts a command
is not seen: `make test` runs all.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import PurePosixPath

import grimp
import pytest

from clustergate.core.paths import checkout

PACKAGES = ("clustergate", "evaluations", "reframe_checks", "tools")
# What concerns every test.
SHARED = ("conftest.py", "pyproject.toml", "constraints.txt")


def imported(text: str) -> Iterator[str]:
    """Name all that a Python text imports: modules, and what may be one."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def nearest(
    changed: Collection[str],
    tests: Mapping[str, str],
    importers_of: Callable[[str], Collection[str]],
) -> list[str]:
    """Return the tests, by their paths and texts, that stand nearest to the changed files.

    ``importers_of`` tells which modules import one.
    """
    if any(PurePosixPath(path).name in SHARED for path in changed):
        return sorted(tests)
    imports = {test: set(imported(text)) for test, text in tests.items()}
    found = set(tests) & set(changed)
    for path in map(PurePosixPath, changed):
        if path.suffix == ".py" and path.parts[0] in PACKAGES:
            importing = _importing(_module(path), imports, importers_of)
            # Nobody imports the module of a command, which is loaded by its name.
            found |= importing or _importing_from(path.parent, imports)
        else:
            found |= _naming(path, tests) or _importing_around(path, imports)
    return sorted(found)


def _module(path: PurePosixPath) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _naming(path: PurePosixPath, tests: Mapping[str, str]) -> set[str]:
    named = rf"\b{re.escape(path.name)}\b"
    if folder := path.parent.name:
        # Of the folder's pages other tests name each their own.
        ends = "[\"']" if path.suffix == ".md" else "[\"'/]"
        named += f"|{ends}{re.escape(folder)}{ends}"
    return {test for test, text in tests.items() if re.search(named, text)}


def _importing_around(path: PurePosixPath, imports: Mapping[str, Collection[str]]) -> set[str]:
    """Return the tests of the closest folder that has any."""
    around = (_importing_from(folder, imports) for folder in path.parents[:-1])
    return next(filter(None, around), set())


def _importing_from(folder: PurePosixPath, imports: Mapping[str, Collection[str]]) -> set[str]:
    package = f"{'.'.join(folder.parts)}."
    return {t for t, names in imports.items() if any(package in f"{n}." for n in names)}


def _importing(
    module: str,
    imports: Mapping[str, Collection[str]],
    importers_of: Callable[[str], Collection[str]],
) -> set[str]:
    seen: set[str] = set()
    modules = {module}
    while modules:
        if found := {test for test, names in imports.items() if modules & set(names)}:
            return found
        seen |= modules
        modules = {other for one in modules for other in importers_of(one)} - seen
    return set()


def changed_since(commit: str) -> list[str]:
    """Return the files that differ from where the branch left a commit, also those not added.

    Raises CalledProcessError where Git knows no such commit.
    """
    base = _git("merge-base", "HEAD", commit)[0]
    return _git("diff", "--name-only", base) + _git("ls-files", "--others", "--exclude-standard")


def _git(*words: str) -> list[str]:
    told = subprocess.run(
        ["git", "-C", checkout(), *words], stdout=subprocess.PIPE, text=True, check=True
    )
    return told.stdout.splitlines()


def main(commit: str, *options: str) -> int:
    """Run the tests nearest to what changed since a commit, with options for pytest."""
    try:
        changed = changed_since(commit)
    except subprocess.CalledProcessError:
        print(f"name a commit that is here: make test-fast SINCE=COMMIT, not {commit}")
        return 2
    tests = {f"tests/{path.name}": path.read_text() for path in checkout().glob("tests/test_*.py")}
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)

    def importers_of(module: str) -> Collection[str]:
        return graph.find_modules_that_directly_import(module) if module in graph.modules else ()

    files = nearest(changed, tests, importers_of)
    pages = [PurePosixPath(path).name for path in changed]
    if pages and all(page.endswith(".md") for page in pages):
        # A test of a page has its name; that of another one has nothing to do with these.
        options = (*options, "-k", " or ".join([*pages, "not .md"]))
    print(f"{len(changed)} files changed since {commit}: {len(files)} of {len(tests)} test files")
    return pytest.main([*options, *(str(checkout() / f) for f in files)]) if files else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
