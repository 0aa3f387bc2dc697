"""What verdicts, reports and comparisons know of single benchmarks stands in their folders."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustergate.benchmarks.descriptor import Benchmark
from clustergate.benchmarks.registry import builds_on_request, every_benchmark
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
    assert declared == [check.name for check in one.tests_declared]
    assert (PACKAGE / "benchmarks" / one.name / "output.py").is_file()
    assert one.build is not None


# Their simulated machines and public records are of single benchmarks.
NOT_OF_THE_SUITE = ("tools/bench/",)
FOLDERS = ("clustergate", "reframe_checks", "site_configs", "spack-repo", "references", "bin")


def others_that_name(one: Benchmark, top: Path) -> list[str]:
    """Return the programs below a checkout that name a benchmark, beside its folder and class."""
    assert one.build is not None
    words = {f"benchmarks.{one.name}", f"benchmarks/{one.name}", f"reframe_checks.{one.name}"}
    words |= {check.name for check in one.tests_declared} | {*one.build.programs}
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(words)))})(?![\w-])")
    own = (f"clustergate/benchmarks/{one.name}/", f"reframe_checks/{one.name}.py")
    paths = [
        path
        for folder in ("clustergate", "reframe_checks", "tools", "ci", "bin", "spack-repo")
        for path in (top / folder).rglob("*")
        if path.is_file() and path.suffix in ("", ".py", ".sh", ".yml", ".toml", ".j2")
    ]
    named = {path: path.relative_to(top).as_posix() for path in paths}
    return sorted(
        name
        for path, name in named.items()
        if not name.startswith((*own, *NOT_OF_THE_SUITE))
        and pattern.search(path.read_text(encoding="utf-8", errors="replace"))
    )


@pytest.mark.parametrize("name", builds_on_request())
def test_no_other_file_names_a_published_benchmark(name: str) -> None:
    """It is its folder, its class and Spack's recipe: whoever takes these away takes it away."""
    assert others_that_name(every_benchmark()[name], checkout()) == []


def test_a_file_that_names_a_benchmark_is_seen(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    for name, text in (("a.py", 'x = "xhpcg"'), ("b.py", "x = 'hpcg'"), ("c.py", "HpcgCheck")):
        (tmp_path / "tools" / name).write_text(text)
    assert others_that_name(every_benchmark()["hpcg"], tmp_path) == ["tools/a.py", "tools/c.py"]


def test_a_folder_a_class_and_a_recipe_are_a_benchmark(tmp_path: Path) -> None:
    """The example that a site adds as a package, as one of the suite's own."""
    for folder in FOLDERS:
        shutil.copytree(checkout() / folder, tmp_path / folder)
    example = checkout() / "docs" / "examples" / "token_ring" / "token_ring"
    own = tmp_path / "clustergate" / "benchmarks" / "token_ring"
    own.mkdir()
    shutil.copy(example / "token_ring.c", own)
    here = (("from token_ring.", "from clustergate.benchmarks.token_ring."),)
    for file, target, changes in (
        ("output.py", own / "output.py", here),
        ("check.py", tmp_path / "reframe_checks" / "token_ring.py", here),
        ("__init__.py", own / "__init__.py", (*here, ('    tests=str(HERE / "check.py"),\n', ""))),
    ):
        text = (example / file).read_text()
        for old, new in changes:
            text = text.replace(old, new)
        target.write_text(text)
    recipe = tmp_path / "spack-repo" / "applications" / "token_ring.yaml"
    recipe.write_text("spack:\n  specs:\n  - token-ring\n")

    def call(*words: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        environment["CLUSTERGATE_HOME"] = str(tmp_path / "state")
        ended = subprocess.run(
            [sys.executable, "-m", "clustergate", *words],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    (row,) = [line for line in call("list", "checks").splitlines() if "TokenRingCheck" in line]
    assert "quick, smoke, maintenance" in row
    assert "local.py: " in call("dry-run", "--site", "local")
