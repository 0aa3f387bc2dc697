"""A home or a references file of which nothing can come is told before anything is launched."""

import os
import re
from pathlib import Path

import pytest

from clustergate.cli import main
from clustergate.core import store
from clustergate.core.model import ClustergateError

CHECK = ("check", "--site", "local", "--wait", "0s")
BASELINE = "HplCheck: {}\n"


def called(capsys: pytest.CaptureFixture[str], home: Path) -> str:
    """Return the last sentence of a check that ends with 2 before it sets up or launches."""
    assert main(list(CHECK)) == 2
    assert not [*home.glob("manifests"), *home.glob("stage"), *home.glob("results/runs/*/*")]
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("clustergate: ")
    return told


@pytest.mark.parametrize(
    ("name", "word"), [(b"100%j", "holds a %"), (b"\xe9t\xe9", r"is no UTF-8: .*\\xe9t\\xe9")]
)
def test_a_home_whose_path_no_job_can_name_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: bytes,
    word: str,
) -> None:
    home = Path(os.fsdecode(bytes(tmp_path) + b"/" + name))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(home))
    told = called(capsys, home)
    assert re.search(word, told), told
    assert "name another folder in CLUSTERGATE_HOME" in told


def test_a_home_that_all_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anybody could put a wrapper in the place of a program."""
    (home := tmp_path / "home").mkdir()
    home.chmod(0o777)
    monkeypatch.setenv("CLUSTERGATE_HOME", str(home))
    assert f"chmod o-w {home}" in called(capsys, home)
    home.chmod(0o755)
    store.require_home(home)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give folders away")
def test_home_of_another_user_refused_unless_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home := tmp_path / "home").mkdir()
    os.chown(home, 54321, os.getegid())
    monkeypatch.setenv("CLUSTERGATE_HOME", str(home))
    assert "belongs to uid 54321, who does not share it" in called(capsys, home)
    home.chmod(0o2775)
    store.require_home(home)
    os.chown(home, 54321, 54322)
    with pytest.raises(ClustergateError, match="who does not share it"):
        store.require_home(home)


@pytest.fixture
def references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the references of the site `local` of a folder of its own, which are not there."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path / "site"))
    (tmp_path / "site" / "references").mkdir(parents=True)
    return tmp_path / "site" / "references" / "local.yaml"


def test_references_behind_a_dangling_link_are_not_none(
    references: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    references.symlink_to("elsewhere.yaml")
    told = called(capsys, references.parents[2] / "home")
    assert f"{references} is a link to elsewhere.yaml, which is not there; mend the link" in told


@pytest.mark.parametrize("text", ["", "\n", "# restored by hand\n", "{}\n"])
def test_references_that_hold_nothing_are_not_none(
    references: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    references.write_text(text)
    assert f"{references} holds no reference" in called(capsys, references.parents[2] / "home")


def test_a_twin_of_the_references_is_told(
    references: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    references.write_text(BASELINE)
    (twin := references.with_suffix(".yml")).write_text(BASELINE)
    told = called(capsys, references.parents[2] / "home")
    assert f"{twin}:1: nothing reads this file beside local.yaml" in told


def test_doctor_tells_a_mistake_once(references: Path, capsys: pytest.CaptureFixture[str]) -> None:
    references.symlink_to("elsewhere.yaml")
    assert main(["doctor", "--site", "local"]) == 2
    assert capsys.readouterr().out.count("which is not there") == 1
