import errno
import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from clustergate import cli
from clustergate.cli import machine
from clustergate.core.files.whole import write_whole
from clustergate.core.store import run_folder, write_json
from clustergate.machine.fingerprint import read_fingerprint
from clustergate.machine.load import read_load

GOOD: dict[str, dict[str, Any]] = {
    "hardware": {"cores": 64, "bios_version": None},
    "kernel": {
        "release": "6.1.0-40",
        "transparent_huge_pages": "always",
        "mitigations": ["retbleed: Vulnerable", "spectre_v2: Mitigation: Retpolines"],
    },
}
BAD = {
    "hardware": {"cores": 64, "bios_version": None},
    "kernel": {**GOOD["kernel"], "release": "6.1.0-41", "transparent_huge_pages": "madvise"},
}


@pytest.fixture
def machine_command(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(cli, "COMMANDS", ("machine",))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        status = cli.main(["machine", *map(str, arguments)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def files(tmp_path):
    for name, state in (("A.json", GOOD), ("B.json", BAD)):
        (tmp_path / name).write_text(json.dumps({"schema": 1, "fingerprint": state}))
    return tmp_path


@pytest.fixture
def runs(machine_command):
    """Three runs, of which the last did not record its machine."""
    write_json(run_folder("20261120T120000Z-9") / "machine.json", {"fingerprint": GOOD})
    write_json(run_folder("20261121T120000Z-8") / "machine.json", {"fingerprint": BAD})
    run_folder("20261121T130000Z-7").mkdir()


# --- this node --------------------------------------------------------------------------------


def test_a_full_disk_under_standard_output_is_one_sentence():
    command = [sys.executable, "-m", "clustergate", "machine"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("clustergate: cannot write to standard output: the disk is")
    assert ended.stderr.count("\n") == 1


def test_a_full_disk_under_a_file_names_the_file(monkeypatch, capsys, tmp_path):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(machine, "read_fingerprint", lambda: write_whole(tmp_path / "x", "y"))
    monkeypatch.setattr(os, "chmod", full)
    assert cli.main(["machine"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"clustergate: the disk is full ({tmp_path}/x); free some space")
    assert list(tmp_path.iterdir()) == []


def test_text_is_grouped_and_tells_what_is_absent(machine_command, monkeypatch):
    monkeypatch.setattr(machine, "read_fingerprint", lambda: GOOD)
    status, out, err = machine_command()
    assert (status, err) == (0, "")
    state, _, load = out.partition("load since boot\n")
    assert [line.split() for line in state.splitlines()] == [
        ["hardware"],
        ["cores", "64"],
        ["bios", "version", "absent"],
        ["kernel"],
        ["kernel", "release", "6.1.0-40"],
        ["transparent", "huge", "pages", "always"],
        ["mitigations", "retbleed:", "Vulnerable"],
        ["spectre_v2:", "Mitigation:", "Retpolines"],
    ]
    assert "  load average 1min " in load
    assert "  memory available " in load


def test_text_of_a_node_that_shows_nothing(machine_command, monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "read_fingerprint", lambda: read_fingerprint(tmp_path))
    monkeypatch.setattr(machine, "read_load", lambda: read_load(tmp_path))
    status, out, _ = machine_command()
    assert status == 0
    assert out.endswith("load since boot\n")


def test_text_fits_a_terminal(machine_command):
    _, out, _ = machine_command()
    words = max(map(len, out.split()))
    assert max(map(len, out.splitlines())) <= max(machine.WIDTH, words + 40)
    for group in ("hardware", "kernel", "limits", "network", "software", "load since boot"):
        assert f"\n{group}\n" in f"\n{out}"


def test_json_can_be_compared_with_this_node(machine_command, tmp_path):
    status, out, _ = machine_command("--json")
    assert status == 0
    assert set(json.loads(out)) == {"schema", "fingerprint", "load"}
    (tmp_path / "A.json").write_text(out)
    status, out, _ = machine_command("--diff", "A.json", "now")
    assert (status, out) == (0, "since A.json: no recorded state of a node changed\n")


# --- differences ------------------------------------------------------------------------------


def test_differences_of_two_files(machine_command, files):
    assert machine_command("--diff", "A.json", "B.json") == (
        1,
        "since A.json, likeliest cause of a slowdown first:\n"
        "  kernel release 6.1.0-40 -> 6.1.0-41\n"
        "  transparent huge pages always -> madvise\n",
        "",
    )


def test_differences_as_json(machine_command, files):
    status, out, _ = machine_command("--json", "--diff", "A.json", "B.json")
    assert status == 1
    assert json.loads(out) == [
        {"name": "kernel.release", "before": "6.1.0-40", "after": "6.1.0-41", "nodes": []},
        {
            "name": "kernel.transparent_huge_pages",
            "before": "always",
            "after": "madvise",
            "nodes": [],
        },
    ]


@pytest.mark.parametrize(
    "named",
    [("previous", "last"), ("20261120T120000Z-9", "20261121T120000Z-8"), ("previous", "B.json")],
)
def test_runs_by_words_and_ids(machine_command, runs, files, named):
    _, out, _ = machine_command("--diff", *named)
    assert out.startswith("since 20261120T120000Z-9, ")
    assert "  kernel release 6.1.0-40 -> 6.1.0-41\n" in out


def test_runs_by_folder(machine_command, runs):
    folder = run_folder("20261121T120000Z-8")
    _, out, _ = machine_command("--diff", folder, run_folder("20261120T120000Z-9") / "machine.json")
    assert out.startswith(f"since {folder}, likeliest cause of a slowdown first:\n")


def test_last_is_the_newest_run_that_recorded_its_machine(machine_command, runs, files):
    _, out, _ = machine_command("--diff", "last", "A.json")
    assert out.startswith("since 20261121T120000Z-8, ")


@pytest.mark.parametrize("named", ["last", "r8", "20261121T120000Z-8", "now"])
def test_nothing_is_compared_with_itself_in_silence(machine_command, runs, named):
    """It said that no recorded state of a node changed."""
    before = named if named == "now" else "last"
    status, out, err = machine_command("--diff", before, named)
    assert (status, out) == (2, "")
    assert err.startswith(f"clustergate: A and B are both {before}: ")


def test_states_that_cannot_be_read_are_told(machine_command, runs):
    """It said that no recorded state of a node changed."""
    path = run_folder("20261121T120000Z-8") / "nodes.jsonl"
    for text in (b'{"digest": "00", "nod', b"\xff\xfe"):
        path.write_bytes(text)
        status, _, err = machine_command("--diff", "previous", "last")
        assert status == 1
        assert err.startswith(f"{path}:1: this line cannot be read, so states of nodes are missing")
    path.write_bytes(b"")
    assert machine_command("--diff", "previous", "last")[2] == ""


def test_what_could_not_be_read_is_not_called_unchanged(machine_command, runs, files):
    """A HealthCheckProgram goes by the exit status."""
    same = run_folder("20261122T120000Z-9")
    shutil.copytree(run_folder("20261121T120000Z-8"), same)
    assert machine_command("--diff", "previous", "last")[0] == 0
    (same / "nodes.jsonl").write_bytes(b"{")
    assert machine_command("--diff", "previous", "last")[0] == 2


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"not json", "bad.json does not hold the state of a node; "),
        (b"", "bad.json does not hold the state of a node; "),
        (b"\xff\xfe\x00", "bad.json does not hold the state of a node; "),
        (b"[" * 100000, "bad.json does not hold the state of a node; "),
        (b'{"schema": 2, "fingerprint": {}}', "bad.json has schema 2 and this version of "),
        (b'{"fingerprint": {"kernel": 1}}', "bad.json does not hold the state of a node; "),
    ],
)
def test_bad_data_is_one_sentence(machine_command, files, content, sentence):
    (files / "bad.json").write_bytes(content)
    status, out, err = machine_command("--diff", "A.json", "bad.json")
    assert (status, out) == (2, "")
    assert err.startswith(f"clustergate: {sentence}")
    assert err.count("\n") == 1


def test_no_such_run(machine_command, files):
    status, out, err = machine_command("--diff", "A.json", "20260101T000000Z-1")
    assert (status, out) == (2, "")
    assert err == (
        "clustergate: no run and no file is named 20260101T000000Z-1; "
        f"`clustergate list runs` lists the runs, which are in {files / 'state/results/runs'}\n"
    )


def test_a_name_that_no_file_can_have(machine_command, files):
    status, _, err = machine_command("--diff", "A.json", "a" * 5000)
    assert status == 2
    assert err.startswith("clustergate: no run and no file is named aaa")


@pytest.mark.parametrize("named", ["20261121T130000Z-7", "r7"])
def test_a_run_that_did_not_record_its_machine(machine_command, runs, named):
    status, out, err = machine_command("--diff", "last", named)
    assert (status, out) == (2, "")
    assert err.endswith("has no machine.json: this run did not record the state of its nodes\n")


@pytest.mark.parametrize(
    ("stored", "word", "why"),
    [(0, "last", "there is no run in "), (1, "previous", "no previous run in ")],
)
def test_too_few_runs_for_a_word(machine_command, files, stored, word, why):
    for number in range(stored):
        write_json(run_folder(f"run-{number}") / "machine.json", {"fingerprint": GOOD})
    status, out, err = machine_command("--diff", word, "A.json")
    assert (status, out) == (2, "")
    assert err.startswith(f"clustergate: {why}")
