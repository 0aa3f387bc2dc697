"""The environment of a command: written in one place, and as before when the command has ended."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.core import environment
from clustergate.core.paths import checkout
from clustergate.run.placing import keep_out
from clustergate.sites.exclusions import WITHOUT_NODES

WRITERS = {"putenv", "unsetenv"}
OF_MAPPING = {"update", "pop", "popitem", "setdefault", "clear", "__setitem__", "__delitem__"}


def writes(tree: ast.AST) -> list[int]:
    """Return the lines that write this process's environment."""
    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Attribute(attr="environ"), ctx=ast.Store() | ast.Del()):
                lines.append(node.lineno)
            case ast.AugAssign(target=ast.Attribute(attr="environ")):
                lines.append(node.lineno)
            case ast.Attribute(value=ast.Attribute(attr="environ"), attr=name) if (
                name in OF_MAPPING
            ):
                lines.append(node.lineno)
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in WRITERS:
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize(
    "text",
    [
        "os.environ['A'] = 'b'",
        "del os.environ['A']",
        "os.environ.update(A='b')",
        "os.environ |= {}",
        "os.putenv('A', 'b')",
    ],
)
def test_a_write_is_recognised(text: str) -> None:
    assert writes(ast.parse(text)) == [1]


def test_one_module_writes_the_environment() -> None:
    root = checkout()
    writers = {
        str(path.relative_to(root))
        for package in ("clustergate", "reframe_checks", "evaluations")
        for path in (root / package).rglob("*.py")
        if writes(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert writers == {"clustergate/core/environment.py"}


def test_a_command_leaves_the_environment_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    monkeypatch.delenv("HOME")
    monkeypatch.delenv(WITHOUT_NODES, raising=False)
    before = dict(os.environ)
    inside: dict[str, str] = {}

    def listed(*_: object) -> int:
        keep_out(["n1"])
        environment.export("CLUSTERGATE_HOME", "/elsewhere")
        inside.update(os.environ)
        raise KeyboardInterrupt

    monkeypatch.setattr("clustergate.cli.list.run", listed)
    assert cli.main(["list", "runs"]) == 130
    assert inside[WITHOUT_NODES] == "n1"
    assert inside["CLUSTERGATE_HOME"] == "/elsewhere"
    assert inside["HOME"]
    assert dict(os.environ) == before
