"""States of nodes that runs keep, and what is told of them when they changed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clustergate import cli
from clustergate.cli import machine
from clustergate.core import store
from clustergate.core.model import CaseRecord
from clustergate.judge.history.node_states import (
    HERE,
    NODE_STATE,
    NODES,
    astray_nodes,
    changed_meanwhile,
    changed_since_the_last_good_run,
    digest_of,
    keep_states,
    read_states,
    typical_state,
)
from clustergate.machine import changes
from clustergate.machine.fingerprint import to_record
from clustergate.run.judge import nodes_not_seen

RUNS = [f"2026110{day}T080000Z-1" for day in range(1, 6)]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def say(folder: Path, **releases: str) -> Path:
    """Let nodes say their kernel's release, and an operating system."""
    folder.mkdir(exist_ok=True)
    for node, release in releases.items():
        text = f"kernel.release\t{release}\nkernel.command_line\tro token=hush\n"
        (folder / node).write_text(f"{text}software.operating_system\tDebian\n")
    return folder


def run_of(run_id: str, tmp_path: Path, verdict: str = "pass", **releases: str) -> Path:
    run = store.run_folder(run_id)
    here: dict[str, Any] = {"software": {"python": "3.11", "operating_system": "Debian"}}
    store.write_json(run / NODE_STATE, to_record(here))
    store.write_json(run / "ended.json", {"verdict": verdict})
    keep_states(say(tmp_path / "said", **releases), run)
    return run


def test_equal_states_are_kept_once_and_raw_ones_not_at_all(tmp_path: Path) -> None:
    run, said = store.run_folder(RUNS[0]), say(tmp_path / "said", n1="6.1", n2="6.1", n3="6.2")
    (said / ".n4.77").write_text("kernel.release\t6.1\n")
    states = keep_states(said, run)
    assert digest_of(states["n1"]) == digest_of(states["n2"]) != digest_of(states["n3"])
    assert [path.name for path in said.iterdir()] == [".n4.77"]
    text = (run / NODES).read_text()
    assert text.count("6.1") == text.count("6.2") == 1
    assert "hush" not in text
    # The same again in the next job of the run is no news.
    assert keep_states(say(said, n1="6.1", n2="6.1"), run) == {
        node: states[node] for node in ("n1", "n2")
    }
    assert (run / NODES).read_text() == text
    assert typical_state(run)["kernel"]["release"] == "6.1"
    assert [state["kernel"]["release"] for state in read_states(run).values()] == [
        "6.1",
        "6.1",
        "6.2",
    ]


def test_an_empty_file_is_a_node_that_said_nothing(tmp_path: Path) -> None:
    said = say(tmp_path / "said", n1="6.1")
    (said / "n2").touch()
    assert set(keep_states(said, store.run_folder(RUNS[0]))) == {"n1"}


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path: Path) -> None:
    run = run_of(RUNS[0], tmp_path, n1="6.1")
    with (run / NODES).open("a") as file:
        file.write('{"digest": "00", "nod')
    assert set(read_states(run)) == {HERE, "n1"}


def test_what_changed_is_told_with_the_nodes_that_have_it(tmp_path: Path) -> None:
    run_of(RUNS[0], tmp_path, n1="6.1", n2="6.1", n3="6.1")
    run_of(RUNS[1], tmp_path, n1="6.2", n2="6.1", n3="6.2")
    told = changed_since_the_last_good_run(RUNS[1])
    assert told == [
        f"since the run {RUNS[0]}, the last good one: kernel release 6.1 -> 6.2 on n[1,3]"
    ]


def test_bad_run_is_no_measure_of_nodes(tmp_path: Path) -> None:
    run_of(RUNS[0], tmp_path, n1="6.0", n2="6.0")
    run_of(RUNS[1], tmp_path, n2="6.1")
    run_of(RUNS[2], tmp_path, verdict="regression", n1="6.2", n2="6.2")
    run_of(RUNS[3], tmp_path, n1="6.2", n2="6.2", n9="6.2")
    told = changed_since_the_last_good_run(RUNS[3])
    assert told == [
        f"since the run {RUNS[1]}, the last good one: kernel release 6.1 -> 6.2",
        f"since the run {RUNS[0]}, the last good one: kernel release 6.0 -> 6.2",
    ]


@pytest.mark.parametrize("gate", [{"word": "STAY CLOSED"}, {"word": "COULD NOT JUDGE"}, {}])
def test_gate_that_did_not_open_is_no_good_run(gate: dict[str, str], tmp_path: Path) -> None:
    """A gate that did not open is no good run whatever its benchmarks say."""
    run_of(RUNS[0], tmp_path, n1="6.0")
    store.write_json(run_of(RUNS[1], tmp_path, n1="6.1") / "gate.json", gate)
    run_of(RUNS[2], tmp_path, n1="6.2")
    told = changed_since_the_last_good_run(RUNS[2])
    assert told == [f"since the run {RUNS[0]}, the last good one: kernel release 6.0 -> 6.2"]


def test_a_run_that_did_not_end_is_not_called_good(tmp_path: Path) -> None:
    (run_of(RUNS[0], tmp_path, n1="6.0") / "ended.json").unlink()
    run_of(RUNS[1], tmp_path, n1="6.1")
    told = changed_since_the_last_good_run(RUNS[1])
    assert told == [f"since the run {RUNS[0]}: kernel release 6.0 -> 6.1"]


def test_newest_bad_run_counts_where_all_were_bad(tmp_path: Path) -> None:
    run_of(RUNS[0], tmp_path, verdict="invalid", n1="6.0")
    run_of(RUNS[1], tmp_path, verdict="invalid", n1="6.1")
    run_of(RUNS[2], tmp_path, n1="6.2")
    (told,) = changed_since_the_last_good_run(RUNS[2])
    assert told == f"since the run {RUNS[1]}: kernel release 6.1 -> 6.2"


def test_what_changes_while_a_run_goes_on_is_told(tmp_path: Path) -> None:
    run = run_of(RUNS[0], tmp_path, n1="6.1", n2="6.1")
    assert changed_meanwhile(RUNS[0], {}) == []
    keep_states(say(tmp_path / "said", n2="6.2"), run)
    assert changed_meanwhile(RUNS[0], {}) == [
        "since the run began: kernel release 6.1 -> 6.2 on n2"
    ]


def test_thousands_of_nodes_compared_once_per_pair_of_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real = changes.differences

    def counted(before: Any, after: Any) -> Any:
        calls.append(1)
        return real(before, after)

    monkeypatch.setattr(changes, "differences", counted)
    nodes = {f"n{i:04d}": "6.1" for i in range(3000)}
    run_of(RUNS[0], tmp_path, **nodes)
    run_of(RUNS[1], tmp_path, **{**nodes, "n0007": "6.2"})
    (told,) = changed_since_the_last_good_run(RUNS[1])
    assert told.endswith("kernel release 6.1 -> 6.2 on n0007")
    # Two pairs of states, and the suite's own software.
    assert len(calls) <= 3


# --- which nodes are not back -------------------------------------------------------------------


def astray(run_id: str, *, first_too: bool = True) -> list[str]:
    return astray_nodes(store.run_folder(run_id), first_too=first_too)


def test_a_node_that_is_neither_as_the_rest_nor_as_before_is_told(tmp_path: Path) -> None:
    same = {"n1": "6.1", "n2": "6.1", "n3": "6.1"}
    run_of(RUNS[0], tmp_path, **same, n4="6.1")
    run_of(RUNS[1], tmp_path, **same, n4="6.0")
    told = ["n4 is unlike the rest of its kind: kernel release 6.1 -> 6.0"]
    assert astray(RUNS[1]) == astray(RUNS[1], first_too=False) == told
    # It was a good run all the same: then it is accepted.
    run_of(RUNS[2], tmp_path, **same, n4="6.0")
    assert astray(RUNS[2]) == []


def test_an_update_of_all_nodes_accuses_none(tmp_path: Path) -> None:
    run_of(RUNS[0], tmp_path, n1="6.1", n2="6.1", n3="6.1")
    run_of(RUNS[1], tmp_path, n1="6.2", n2="6.2", n3="6.2")
    assert astray(RUNS[1]) == []
    run_of(RUNS[2], tmp_path, n1="6.3", n2="6.3", n3="6.2")
    # It is as in its last good run, and went without the next update.
    assert astray(RUNS[2]) == ["n3 is unlike the rest of its kind: kernel release 6.3 -> 6.2"]


def test_nodes_without_a_good_run_held_to_their_kind(
    tmp_path: Path,
) -> None:
    """Nodes of which no good run is known are held to their kind if asked."""
    run_of(RUNS[0], tmp_path, n1="6.1", n2="6.1", n3="6.1", n4="6.0")
    assert astray(RUNS[0], first_too=False) == []
    assert astray(RUNS[0]) == ["n4 is unlike the rest of its kind: kernel release 6.1 -> 6.0"]


def test_two_nodes_are_held_to_what_they_were(tmp_path: Path) -> None:
    run_of(RUNS[0], tmp_path, n1="6.1", n2="6.1")
    run_of(RUNS[1], tmp_path, n1="6.1", n2="6.0")
    assert astray(RUNS[1]) == ["n2 is not as in its last good run: kernel release 6.1 -> 6.0"]
    # Not to what they were in a bad one.
    run_of(RUNS[1], tmp_path, "regression", n2="6.0")
    run_of(RUNS[2], tmp_path, n1="6.1", n2="6.1")
    assert astray(RUNS[2]) == []


def test_a_run_names_the_nodes_that_it_says_nothing_of() -> None:
    """A smoke test on n1 alone was "no fault found", and n4 had lost a mount."""

    def of(*hosts: str) -> CaseRecord:
        return CaseRecord("c", "HplCheck", "mpich", "a:b", {}, details={"proof": {"hosts": hosts}})

    four = ["n1", "n2", "n3", "n4"]
    (sentence,) = nodes_not_seen([of("n1"), of("n1.cluster")], four)
    assert sentence.startswith("this run did not test n[2-4]: its ranks were on ")
    assert "screen --quick" in sentence
    assert nodes_not_seen([of("n1", "n2"), of("n3", "n4")], four) == []
    # Nobody knows which nodes there are, or where the ranks were.
    assert nodes_not_seen([of("n1")], []) == nodes_not_seen([of()], four) == []


# --- clustergate machine --diff ---------------------------------------------------------------


def diff(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = cli.main(["machine", *words])
    said = capsys.readouterr()
    return status, said.out + said.err


def test_compute_nodes_of_two_runs_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_of(RUNS[0], tmp_path, n1="6.1", n2="6.1", n3="6.1")
    run_of(RUNS[1], tmp_path, n1="6.2", n2="6.1", n4="6.0")
    status, said = diff(capsys, "--diff", "previous", "last")
    # Of the two others nothing was said.
    alone = "not compared, as only one of both has them: n[3-4]\n"
    assert (status, said) == (1, f"since {RUNS[0]}: kernel release 6.1 -> 6.2 on n1\n{alone}")
    _, said = diff(capsys, "--json", "--diff", *RUNS[:2])
    assert json.loads(said) == [
        {"name": "kernel.release", "before": "6.1", "after": "6.2", "nodes": ["n1"]}
    ]


def test_a_file_is_compared_with_every_node_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_of(RUNS[0], tmp_path, n1="6.1", n2="6.2")
    golden = tmp_path / "golden.json"
    golden.write_text(json.dumps(to_record({"kernel": {"release": "6.1"}})))
    _, said = diff(capsys, "--diff", str(golden), RUNS[0])
    assert said == f"since {golden}: kernel release 6.1 -> 6.2 on n2\n"


def test_this_node_is_compared_with_itself_in_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(RUNS[0], tmp_path, n1="6.1", n2="6.1")
    monkeypatch.setattr(machine, "read_fingerprint", lambda: {"kernel": {"release": "6.2"}})
    monkeypatch.setattr(os, "uname", lambda: type("U", (), {"nodename": "n2"}))
    _, said = diff(capsys, "--diff", RUNS[0], "now")
    assert said == f"since {RUNS[0]}: kernel release 6.1 -> 6.2\n"


def test_runs_without_a_common_node_are_not_called_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_of(RUNS[0], tmp_path, n1="6.1")
    run_of(RUNS[1], tmp_path, n2="6.2")
    status, said = diff(capsys, "--diff", *RUNS[:2])
    assert status == 2
    assert f"no node is in both {RUNS[0]} and {RUNS[1]}" in said
