"""One node beside its kind and its past: ``clustergate node``."""

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from clustergate import cli
from clustergate.core import store
from clustergate.judge.history.node_states import NODE_STATE, keep_states
from clustergate.machine.fingerprint import Fingerprint, read_node_state, to_record
from clustergate.machine.other_processes import OtherLoad, people_in
from clustergate.run.node import (
    FAULT,
    SOUND,
    UNKNOWN,
    NodeVerdict,
    judged_kernels,
    judged_state,
    sentence,
    why_in_use,
)
from clustergate.studies.screen.measures import Result
from clustergate.studies.screen.one_node import behind, rates_of

RUN = "20261101T080000Z-1"
NOW = {"fma_peak_gflops": 1000.0, "triad_gb_s": 200.0}


def state(memory: float = 512.0, release: str = "6.1", **more: Any) -> Fingerprint:
    hardware = {"processor": "EPYC", "system_product": "R1", "memory_total_gib": memory}
    kernel = {"release": release, "mounts": ["/scratch lustre rw", "/tmp ext4 rw"]}
    return {"hardware": {**hardware, **more}, "kernel": kernel, "limits": {"stack_size_bytes": 1}}


KIND = {f"n{k}": state() for k in range(1, 5)}


# --- the state ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "known", "status", "hook", "told"),
    [
        pytest.param(state(), KIND, SOUND, 0, "", id="as-before"),
        pytest.param(state(448.0), KIND, FAULT, 1, "512.0 GiB -> 448.0 GiB", id="lost-memory"),
        pytest.param(state(release="6.2"), KIND, FAULT, 0, "6.1 -> 6.2", id="updated"),
        pytest.param(state(448.0, "6.2"), KIND, FAULT, 1, "448.0 GiB", id="both"),
        pytest.param(
            *(state(448.0), {**KIND, "n1": state(448.0)}, SOUND, 0, ""), id="accepted-before"
        ),
        pytest.param(
            state(448.0), {"n1": state()}, FAULT, 1, "not as in its last good run", id="no-kind"
        ),
        pytest.param(
            *(state(448.0), {f"n{k}": state() for k in range(2, 6)}, FAULT, 1, "unlike the rest"),
            id="first-seen",
        ),
        pytest.param(state(), {"n2": state()}, UNKNOWN, 0, "no run that ended well", id="unknown"),
        pytest.param(
            *(state(cores=64), {f"n{k}": {} for k in range(2, 9)}, UNKNOWN, 0, "no run"),
            id="no-kind-and-no-past",
        ),
        pytest.param({}, KIND, UNKNOWN, 0, "does not say", id="silent"),
    ],
)
def test_state_of_a_node(
    said: Fingerprint, known: Mapping[str, Fingerprint], status: int, hook: int, told: str
) -> None:
    found = judged_state("n1", said, (RUN, known))
    assert (found.status, found.hook_status) == (status, hook)
    assert told in sentence(found, found.status)


def test_what_a_job_has_otherwise_is_no_fault() -> None:
    in_hook = state()
    in_hook["limits"] = {"stack_size_bytes": 2}
    in_hook["kernel"] = {**in_hook["kernel"], "mounts": ["/scratch lustre rw"]}
    assert judged_state("n1", in_hook, (RUN, KIND)).status == SOUND
    in_hook["kernel"] = {**in_hook["kernel"], "mounts": []}
    assert "/scratch" in sentence(judged_state("n1", in_hook, (RUN, KIND)), FAULT)


# --- the kernels ----------------------------------------------------------------------------------


def past(nodes: int = 4, launches: int = 1, spread: float = 0.01) -> dict[str, dict[str, Any]]:
    """Return rates of nodes that differ a little, as do their launches."""
    return rates_of(
        Result(
            (f"n{node}",), "peaks", turn,
            {key: value * math.exp(spread * ((node * 7 + turn * 3) % 5 - 2) / 2)
             for key, value in NOW.items()},
        )
        for node, turn in itertools.product(range(1, nodes + 1), range(launches))
    )  # fmt: skip


def slowed(by: float) -> dict[str, float]:
    return {**NOW, "triad_gb_s": NOW["triad_gb_s"] / by}


@pytest.mark.parametrize(
    ("now", "rates", "virtual", "kind"),
    [
        pytest.param(NOW, past(), False, [], id="as-the-rest"),
        pytest.param(slowed(1.08), past(), False, [], id="tolerated"),
        pytest.param(slowed(1.2), past(), False, [True], id="behind-its-kind"),
        pytest.param(slowed(1.2), past(), True, [], id="a-host-may-take-it"),
        pytest.param(slowed(3.0), past(), True, [True], id="more-than-a-host-takes"),
        pytest.param(slowed(1.2), past(1), False, [], id="one-launch-shows-no-scatter"),
        pytest.param(slowed(1.2), past(1, 7), False, [False], id="behind-its-past"),
        pytest.param(slowed(1.2), past(1, 7, 0.3), False, [], id="within-its-scatter"),
        pytest.param(slowed(1.2), {}, False, [], id="nothing-known"),
    ],
)
def test_kernels_behind(now: Any, rates: Any, virtual: bool, kind: list[bool]) -> None:
    found = behind(now, "n1", rates, virtual=virtual)
    assert [one.kind for one in found] == kind
    assert all(one.measure.key == "triad_gb_s" and one.by > 0.1 for one in found)


def test_pairs_and_failed_launches_are_no_rates() -> None:
    results = [
        Result(("n1", "n2"), "pingpong", 0, {"pingpong_latency_us": 1.0}),
        Result(("n1",), "peaks", 0, {}, "failed"),
        Result(("n1",), "hpl", 0, {"hpl_gflops": 1.0}),
    ]
    assert rates_of(results) == {}


@pytest.mark.parametrize(
    ("launches", "status", "made"),
    [
        pytest.param([NOW], SOUND, 1, id="sound-at-once"),
        pytest.param([slowed(1.3), NOW], SOUND, 2, id="slow-once"),
        pytest.param([slowed(1.3), slowed(1.2), NOW], SOUND, 3, id="slow-twice"),
        pytest.param([slowed(1.3), slowed(1.2), slowed(1.4)], FAULT, 3, id="slow-each-time"),
        pytest.param([slowed(1.3), TimeoutError()], UNKNOWN, 2, id="no-time-to-confirm"),
        pytest.param([TimeoutError()], SOUND, 1, id="no-time-at-all"),
        pytest.param([ValueError("cut off")], UNKNOWN, 1, id="no-result"),
        pytest.param([slowed(1.3), ValueError("cut off")], UNKNOWN, 2, id="no-result-then"),
    ],
)
def test_slow_three_times_is_a_fault(launches: list[Any], status: int, made: int) -> None:
    left: Iterator[Any] = iter(launches)
    count = 0

    def launch() -> Mapping[str, float]:
        nonlocal count
        count += 1
        one = next(left)
        if isinstance(one, Exception):
            raise one
        return dict(one)

    found = judged_kernels("n1", launch, past(), virtual=False)
    assert (found.status, count) == (status, made)
    assert found.hook_status == (status == FAULT)
    if status == FAULT:
        told = sentence(found, FAULT)
        assert "memory bandwidth 142.9 GB/s, 29 % worse than 3 of its kind" in told
        assert "each of 3 launches" in told


# --- users ----------------------------------------------------------------------------------------


def test_processes_of_people_alone_are_users() -> None:
    seen = OtherLoad(3.0, {"a.out of 1234": 2.0, "kworker of root": 0.5, "x of nobody": 0.5})
    assert people_in(seen).by_name == {"1234's processes": 2.0}
    assert people_in(seen).cores == 2.0
    # With hidepid= nobody sees whose they are.
    assert people_in(OtherLoad(3.0, {"kworker of root": 0.5})).cores == 2.5
    assert why_in_use([], OtherLoad(0.01)) == ""
    assert "2.0 cores" in why_in_use([], seen)
    assert "job 7" in why_in_use(["7"], OtherLoad(0.01))


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with a good run that had this node."""
    home = tmp_path / "home"
    monkeypatch.setenv("CLUSTERGATE_HOME", str(home))
    keep_run(tmp_path / "said", read_node_state())
    return home


def keep_run(said: Path, text: str, verdict: str = "pass") -> None:
    said.mkdir(exist_ok=True)
    (said / os.uname().nodename).write_text(text)
    run = store.run_folder(RUN)
    store.write_json(run / NODE_STATE, to_record({}))
    store.write_json(run / "ended.json", {"verdict": verdict})
    keep_states(said, run)


def test_command_on_this_node(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["node", "--state"]) == 0
    said = capsys.readouterr().out
    assert said == f"{os.uname().nodename}: SOUND: as in run {RUN}\n"
    assert cli.main(["node", "--state", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["run"], answer["reasons"]) == ("sound", RUN, [])
    # No stack is set up in this home.
    assert cli.main(["node"]) == 0
    assert "not measured" in capsys.readouterr().out
    assert cli.main(["node", "--budget", "0s"]) == 2


@pytest.mark.parametrize(
    ("was", "now", "statuses"),
    [
        ("hardware.memory_total_gib\t", "hardware.memory_total_gib\t9999.5\nold\t", (1, 1)),
        ("kernel.release\t", "kernel.release\t2.4.0\nold\t", (1, 0)),
    ],
)
def test_command_on_a_node_that_changed(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    was: str, now: str, statuses: tuple[int, int],
) -> None:  # fmt: skip
    keep_run(tmp_path / "said", read_node_state().replace(was, now))
    assert (cli.main(["node", "--state"]), cli.main(["node", "--state", "--hook"])) == statuses
    said = capsys.readouterr().out
    assert "FAULT" in said
    assert "next: " in said


def test_bad_run_is_no_past(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store.write_json(store.run_folder(RUN) / "ended.json", {"verdict": "regression"})
    assert cli.main(["node", "--state"]) == 2
    assert "NOT KNOWN" in capsys.readouterr().out


def test_worst_reason_first() -> None:
    found = judged_state("n1", state(448.0, "6.2"), (RUN, KIND))
    assert isinstance(found, NodeVerdict)
    assert "GiB" in str(found.reasons[0])
