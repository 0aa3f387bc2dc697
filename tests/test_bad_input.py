"""Damaged files and empty options end in a sentence, and never in a traceback."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.core import store
from clustergate.judge.history import listing, stored_runs
from clustergate.judge.history.node_states import NODES, read_states
from clustergate.stacks.manifest import ManifestError, manifest_path, read_manifest

RUN = "20261101T000000Z-r1"
DAMAGED = {
    "not UTF-8": b"\xf5\x01\xff" * 50,
    "nested deeply": b"[" * 100_000,
    "cut off": b'{"schema": 1, "cases": [',
    "a list": b'[1, {"a": 2}]',
    "other types": b'{"digest": [1], "nodes": 3, "schema": "x", "cases": {}, "programs": 7}\n',
    "nothing": b"",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    store.make_folder(store.run_folder(RUN) / "cases")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    status = cli.main([*words])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert "internal error" not in out + err
    assert not status or err.startswith("clustergate: ")
    assert len(err.splitlines()) <= 1
    return err


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize(
    "name",
    [listing.VERDICTS, listing.GATE, listing.SUMMARY, stored_runs.ASKED, listing.ENDED, NODES],
)
def test_a_damaged_file_of_a_run_ends_in_a_sentence(home, capsys, name, content):
    folder = store.run_folder(RUN)
    store.write_json(folder / listing.VERDICTS, {"cases": []})
    store.write_text(folder / listing.SUMMARY, "the summary\n")
    (folder / name).write_bytes(content)
    said(capsys, "list", "runs")
    said(capsys, "show", RUN)
    said(capsys, "fleet", RUN)
    told = said(capsys, "show", RUN, "--json")
    if name in (listing.VERDICTS, listing.GATE) and not content.startswith(b'{"digest'):
        assert str(folder / name) in told or (name == listing.GATE and content.startswith(b"[1"))


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_manifest_is_told_with_the_remedy(home, content):
    path = manifest_path(home, "mpich")
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(ManifestError) as told:
        read_manifest(home, "mpich")
    assert str(path) in str(told.value)


def test_what_comes_behind_a_damaged_line_of_nodes_is_left_out(home):
    good = {"digest": "d1", "nodes": ["n1"], "fingerprint": {}}
    lines = [good, {"digest": ["d1"], "nodes": ["n2"]}, {**good, "nodes": ["n3"]}]
    path = store.run_folder(RUN) / NODES
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert not {"n2", "n3"} & read_states(path.parent).keys()


@pytest.mark.parametrize(
    "words", [["check", "--resume", ""], ["setup", "--stack", " "], ["dry-run", "--site", ""]]
)
def test_an_empty_value_is_that_of_an_unset_variable(words, capsys):
    """It used to stand for the default: another run began, and every stack was set up."""
    with pytest.raises(SystemExit) as refused:
        cli.main(words)
    assert refused.value.code == 2
    assert f"argument {words[1]}: its value is empty" in capsys.readouterr().err


@pytest.mark.parametrize("is_loop", [True, False])
def test_a_home_that_spack_cannot_use_is_told_in_a_sentence(tmp_path, monkeypatch, capsys, is_loop):
    """A home that is a file, or a link to itself, ended in a traceback."""
    home = tmp_path / "home"
    home.symlink_to("home") if is_loop else home.touch()
    monkeypatch.setenv("CLUSTERGATE_HOME", str(home))
    err = said(capsys, "setup", "--provider", "spack", "--stack", "mpich")
    assert "home cannot be written: " in err
    assert "CLUSTERGATE_HOME" in err


def test_files_that_cannot_grow_end_a_dry_run_in_a_sentence(tmp_path):
    """ReFrame says so thousands of times, once for each line of its log."""

    def allow_small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    ended = subprocess.run(
        [sys.executable, "-m", "clustergate", "dry-run", "--site", "westmere-m610-qdr"],
        env={**os.environ, "CLUSTERGATE_HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        preexec_fn=allow_small_files_only,
        check=False,
    )
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("clustergate: ")
    why = "OSError: [Errno 27] File too large"
    assert last.endswith(f"ReFrame's dry run ended with exit status 1: {why}")
    assert len(ended.stderr) < 2000


@pytest.mark.parametrize("words", [("check",), ("gate",), ("screen",), ("dry-run",), ("setup",)])
def test_a_site_config_that_exits_ends_no_command_as_passed(tmp_path, capsys, home, words):
    """Its exit status was that of the command: a gate opened that had measured nothing."""
    config = tmp_path / "leaving.py"
    config.write_text("import sys\n\nsys.exit(0)\n")
    assert cli.main([*words, "--site", str(config)]) == 2
    assert f"clustergate: {config}:3: SystemExit: 0" in capsys.readouterr().err


def test_site_config_in_utf_16_told_with_remedy(tmp_path, capsys, home):
    site = tmp_path / "alpha.py"
    site.write_text("site_configuration = {}\n", encoding="utf-16-le")
    assert cli.main(["baseline", "--site", str(site)]) == 2
    told = capsys.readouterr().err
    assert f"clustergate: {site}:1: " in told
    assert "save it as UTF-8" in told


@pytest.mark.parametrize("is_link", [True, False])
def test_a_hostfile_that_is_none_is_not_passed_over(tmp_path, monkeypatch, capsys, home, is_link):
    """A folder, or a link to what is not mounted: nodes that it excludes were used again."""
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    hostfile = tmp_path / "hostfiles" / "local.txt"
    hostfile.parent.mkdir()
    hostfile.symlink_to("elsewhere") if is_link else hostfile.mkdir()
    site = ["--site", "local"]
    for words in (["check", *site], ["doctor", *site], ["hostfile", "local"]):
        # With 1 it would have read a hostfile, and found something slower.
        assert cli.main(words) == 2
        told = "".join(capsys.readouterr())
        assert "Traceback" not in told
        assert f"{hostfile} cannot be read" in told
