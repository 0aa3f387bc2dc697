"""What the tests of real runs quote is still said: their words and codes are the suite's own.

Those tests run at night at the earliest, so a sentence that was worded anew would break them long
after. This reads them instead of running them.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from clustergate.core.paths import checkout
from clustergate.core.reasons import registry

TESTS = Path(__file__).parent
REAL = re.compile(r"\bmark\.(mpi|long|cluster)\b")
CODE = re.compile(rf"(?:{'|'.join({code.partition('.')[0] for code in registry()})})\.[a-z-]+")
FILES = re.compile(r".*\.(json|jsonl|xml|html|txt|py|yaml|so|out|err|sh|lock)$")
# Facts stand between the words of a quote: numbers, names of things and of variables, and what a
# pattern has for them.
BETWEEN = re.compile(r"\\.|\w*[\d_A-Z]\w*|[^A-Za-z,'/ -]+|(?<![a-z])'|'(?![a-z])")


def real_parts(module: ast.Module) -> list[ast.AST]:
    """Return what of a module runs with real MPI: all of it, or its marked functions."""
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            return [module]
    return [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef)
        and any(REAL.search(ast.unparse(one)) for one in node.decorator_list)
    ]


def texts(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def quoted(part: ast.AST) -> Iterator[str]:
    """Yield what is looked for in what a run said."""
    for node in ast.walk(part):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            yield from texts(node.left)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("re.search", "re.match", "re.fullmatch"):
                yield from texts(node.args[0])
            elif called == "Fault":
                yield from (text for word in node.args[3:] for text in texts(word))
        elif isinstance(node, ast.FunctionDef):
            yield from parametrized(node)


def parametrized(function: ast.FunctionDef) -> Iterator[str]:
    """Yield those of a function's parameters that it looks for in something."""
    looked_for = {
        node.left.id
        for node in ast.walk(function)
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name)
    }
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
            names = re.findall(r"\w+", " ".join(texts(decorator.args[0])))
            for row in getattr(decorator.args[1], "elts", ()):
                values = row.args if isinstance(row, ast.Call) else getattr(row, "elts", [row])
                for name, value in zip(names, values, strict=False):
                    if name in looked_for:
                        yield from texts(value)


@cache
def said_by_the_suite() -> str:
    """Return all texts of the suite, without the facts that are put into them."""
    found = []
    for folder in ("clustergate", "reframe_checks", "tools"):
        for path in (checkout() / folder).rglob("*.py"):
            for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
                found += pieces(text)
        found += [path.read_text() for path in (checkout() / folder).rglob("*.[ch]")]
    found += [(checkout() / "ci" / "virtual-cluster").read_text(encoding="utf-8")]
    return "\n".join(found)


def pieces(template: str) -> list[str]:
    try:
        return [literal for literal, *_ in string.Formatter().parse(template)]
    except ValueError:
        return [template]


def unsaid(quote: str) -> list[str]:
    """Return those of a quote's parts, of three words or more, that the suite says nowhere."""
    parts = [part.strip(" -,'/") for part in BETWEEN.split(quote)]
    return [part for part in parts if len(part.split()) > 2 and part not in said_by_the_suite()]


MODULES = sorted(path for path in TESTS.glob("test_*.py") if REAL.search(path.read_text("utf-8")))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_codes_of_real_runs_have_words(path: Path) -> None:
    parts = real_parts(ast.parse(path.read_text(encoding="utf-8")))
    named = {text for part in parts for text in texts(part) if CODE.fullmatch(text)}
    assert {code for code in named if not FILES.match(code)} <= set(registry())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_what_is_quoted_of_real_runs_is_still_said(path: Path) -> None:
    parts = real_parts(ast.parse(path.read_text(encoding="utf-8")))
    assert {q: unsaid(q) for part in parts for q in quoted(part) if unsaid(q)} == {}


@pytest.mark.parametrize(
    ("quote", "parts"),
    [
        ("2 of 3 benchmarks ran in 5 s", []),
        ("2 of 3 cases have run in ", ["cases have run in"]),
        (r"others used [\d.]+ of 2 cores of n1", []),
        ("the text ends before 'P Q'", []),
        ("the text ends behind 'P Q'", ["the text ends behind"]),
    ],
)
def test_a_quote_is_held_against_what_is_said(quote: str, parts: list[str]) -> None:
    assert unsaid(quote) == parts
