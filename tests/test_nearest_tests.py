"""What `make test-fast` runs."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools import nearest_tests
from tools.nearest_tests import main, nearest

TESTS: Mapping[str, str] = {
    "tests/test_a.py": "from clustergate.benchmarks.imb.output import parse\n",
    "tests/test_b.py": "from clustergate.cli import main\nimport clustergate.core.files.text\n",
    "tests/test_c.py": "from clustergate.report import html\n",
    "tests/test_d.py": 'import yaml\npage = folder / "docs" / "verdicts.md"\n',
}
IMPORTERS: Mapping[str, set[str]] = {
    "clustergate.benchmarks.imb.rows": {"clustergate.benchmarks.imb.output"},
    "clustergate.circle.one": {"clustergate.circle.other"},
    "clustergate.circle.other": {"clustergate.circle.one"},
}


@pytest.mark.parametrize(
    ("changed", "letters"),
    [
        ("clustergate/benchmarks/imb/output.py", "a"),
        ("clustergate/benchmarks/imb/rows.py", "a"),
        ("clustergate/circle/one.py", ""),
        ("clustergate/cli/__init__.py", "b"),
        ("clustergate/cli/site.py", "b"),
        ("clustergate/report/html.py", "c"),
        ("clustergate/report/templates/page.html", "c"),
        ("docs/verdicts.md", "d"),
        ("docs/another.md", "d"),
        ("tests/test_b.py", "b"),
        ("tests/conftest.py", "abcd"),
        ("ci/constraints.txt", "abcd"),
        ("LICENSE", ""),
    ],
)
def test_a_change_has_its_nearest_tests(changed: str, letters: str) -> None:
    found = nearest([changed], TESTS, lambda module: IMPORTERS.get(module, set()))
    assert found == [f"tests/test_{letter}.py" for letter in letters]


def test_of_a_page_only_its_own_tests_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(words: list[str]) -> int:
        asked.extend(words)
        return 0

    monkeypatch.setattr(pytest, "main", run)
    monkeypatch.setattr(nearest_tests, "changed_since", lambda commit: ["docs/parsing.md"])
    assert main("main", "-q") == 0
    assert asked[:3] == ["-q", "-k", "parsing.md or not .md"]
    assert any(word.endswith("tests/test_docs.py") for word in asked)


def test_an_unknown_commit_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("no-such-commit") == 2
    assert "SINCE=COMMIT, not no-such-commit" in capsys.readouterr().out


def test_what_differs_and_what_git_does_not_know_yet_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest_tests, "checkout", lambda: tmp_path)

    def git(*words: str) -> None:
        named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *named, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for name in ("same", "committed", "edited"):
        (tmp_path / name).write_text("before")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("checkout", "-q", "-b", "branch")
    (tmp_path / "committed").write_text("after")
    git("commit", "-q", "-a", "-m", "two")
    (tmp_path / "edited").write_text("after")
    (tmp_path / "new").write_text("")
    assert nearest_tests.changed_since("main") == ["committed", "edited", "new"]
