"""Damaged files and empty options end in a sentence, and never in a traceback."""

import json
from pathlib import Path

import pytest

from clustergate import cli, store
from clustergate.history import listing
from clustergate.history.node_states import NODES, read_states
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
    "name", [listing.VERDICTS, listing.GATE, listing.SUMMARY, listing.ASKED, listing.ENDED, NODES]
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
