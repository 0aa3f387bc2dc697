"""Docstrings that name a parameter which is not there: a part of ``make lint``.

Prose names parameters as ``this``. What is neither a parameter nor a name or a word in the code of
its module was renamed, or is gone. ruff's own rule (DOC102) sees sections of parameters alone.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence

from clustergate.core.paths import checkout

FOLDERS = ("clustergate", "evaluations", "reframe_checks", "tools")
NAMED = re.compile(r"``([a-z_][a-z0-9_]*)``")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


def words_of(tree: ast.AST) -> set[str]:
    """Return every name in code, and the words of its texts but for docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, Documented) and ast.get_docstring(node, clean=False)
        if isinstance(node.body[0], ast.Expr)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                found.update(WORD.findall(text))
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                found.update(WORD.findall(name))
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
    return found


def unknown_names(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, function and name where the docstring of a function names what is not there."""
    tree = ast.parse(text)
    known = words_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (told := ast.get_docstring(node)):
            for name in dict.fromkeys(NAMED.findall(told)):
                if name not in known:
                    yield node.lineno, node.name, name


def main(folders: Sequence[str] = FOLDERS) -> int:
    """Print each docstring that names what is not there; return 1 if there is any."""
    found = [
        f"{path.relative_to(checkout())}:{line}: the docstring of {function} names ``{name}``, "
        "which is no parameter and nowhere in its module"
        for folder in folders
        for path in sorted((checkout() / folder).rglob("*.py"))
        for line, function, name in unknown_names(path.read_text(encoding="utf-8"))
    ]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*([sys.argv[1:]] if sys.argv[1:] else [])))
