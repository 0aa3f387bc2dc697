"""What verdicts, reports and comparisons know of single benchmarks stands in their folders."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustergate.benchmarks.descriptor import Benchmark
from clustergate.benchmarks.registry import every_benchmark
from clustergate.core.paths import checkout

PACKAGE = checkout() / "clustergate"
# Those that name one, and why they do for good. A room that is clean leaves the list.
OF_ONE_BENCHMARK = {
    "cli": "`hpl-input` is a command for one benchmark; help has examples of names",
    "machine": "DGEMM is the suite's own kernel here, one of the node's peaks",
    "judge": "DGEMM is such a peak there, too",
    "studies": "a screening goes by two measures, one of nodes and one of links",
}
ROOMS = sorted(
    path.name
    for path in PACKAGE.iterdir()
    if path.name != "benchmarks" and (path.suffix == ".py" or (path / "__init__.py").is_file())
)


def names() -> frozenset[str]:
    """Return what benchmarks, their checks and the parts of them are called."""
    known = {"STREAM", "DGEMM"}
    for one in every_benchmark().values():
        known |= {one.title, *one.metrics, *(check.name for check in one.checks)}
        if one.ab is not None:
            known |= {one.ab.name, *one.ab.parts}
    # HPCC's summary repeats this variable of the environment.
    return frozenset(known - {"LANG"})


def words_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the names and the texts of a program, without comments and docstrings."""
    tree = ast.parse(source)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from ((node.lineno, word) for word in re.findall(r"\w+", node.value))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            tuple(f"clustergate.benchmarks.{name.replace('-', '_')}" for name in every_benchmark())
        ):
            yield node.lineno, node.module or ""


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_names_no_benchmark(room: str) -> None:
    known = names()
    place = PACKAGE / room
    paths = [place] if place.suffix else sorted(place.rglob("*.py"))
    assert paths
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {word}"
        for path in paths
        for line, word in words_of(path.read_text(encoding="utf-8"))
        if word in known or word.startswith("clustergate.")
    ]
    assert bool(found) == (room in OF_ONE_BENCHMARK), found


def test_no_variable_has_a_name_that_says_nothing() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.arg | ast.Name)
        and (name := node.arg if isinstance(node, ast.arg) else node.id) in {"found", "told"}
    ]
    assert found == []


def test_a_name_in_a_text_and_an_import_are_seen(tmp_path: Path) -> None:
    """Docstrings may have them, as examples."""
    source = '"""HPL."""\n# HPL\nfrom clustergate.benchmarks.hpl import limits\nx = f"a {1} HPL"\n'
    found = [word for _, word in words_of(source)]
    assert found == ["clustergate.benchmarks.hpl", "a", "HPL"]


@pytest.mark.parametrize("one", every_benchmark().values(), ids=lambda one: one.name)
def test_benchmark_has_its_checks_in_the_file_of_its_name(one: Benchmark) -> None:
    """As docs/adding-a-benchmark.md teaches it: a folder, a class, a recipe."""
    text = (checkout() / "reframe_checks" / f"{one.name}.py").read_text(encoding="utf-8")
    declared = re.findall(r'^@check\("(\w+)"\)\nclass \1\(', text, re.MULTILINE)
    assert declared == [check.name for check in one.checks]
    assert (PACKAGE / "benchmarks" / one.name / "output.py").is_file()
    assert one.build is not None
