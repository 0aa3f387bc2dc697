"""Flux, from the documented forms of its output: no instance was asked for these texts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from clustergate.core.model import ClustergateError
from clustergate.run import readiness as doctor
from clustergate.run.readiness import OK, WARN
from clustergate.sites.description import Partition
from clustergate.sites.schedulers import NO_ANSWERS, scheduler_of
from clustergate.sites.schedulers.flux import NO_ANSWER, cores_in, limits_in, queues_in, waits_for
from clustergate.sites.schedulers.scheduler import DEFAULT, Limits

FLUX = scheduler_of("flux")
LISTED = "batch*|28800.0|16|y\ndebug|30m|inf|y\nold|inf|inf|n\n"
STATUS = """\
avail|online|n[1-2]|
drained|online|n3|broken fan
avail|offline|n4|
allocated|online|d1|
exclude|online||
"""


def resources(*kinds: tuple[str, str], nodes: list[str]) -> str:
    """Return a set of RFC 20: ranks and cores of each kind."""
    lite = [{"rank": ranks, "children": {"core": cores}} for ranks, cores in kinds]
    return json.dumps({"version": 1, "execution": {"R_lite": lite, "nodelist": nodes}})


SETS = {
    "batch": resources(("0-2", "0-63"), ("3", "0-31,64-95"), nodes=["n[1-4]"]),
    "debug": resources(("7", "0-31"), nodes=["d1"]),
    "old": resources(("8", "0"), nodes=["o1"]),
}


def test_queues_have_their_nodes_and_say_why_some_are_unused() -> None:
    queues = queues_in(LISTED, STATUS, SETS)
    assert queues[DEFAULT] is queues["batch"]
    assert queues["batch"].by_cores == {64: 4}
    assert queues["batch"].unused == {"n3": "drained, broken fan", "n4": "offline"}
    assert queues["debug"].unused == {}
    assert queues["old"].unused == {"o1": "its queue is stopped"}


def test_cores_go_to_nodes_in_the_order_of_ranks() -> None:
    mixed = resources(("4", "0-1"), ("1-2", "0-7"), nodes=["b[1-2]", "a7"])
    assert cores_in(mixed) == {"b1": 8, "b2": 8, "a7": 2}


def test_only_queue_is_the_default_one() -> None:
    for name in ("", "debug"):
        queues = queues_in(f"{name}|inf|inf|y\n", "", {name: SETS["debug"]})
        assert queues[DEFAULT].by_cores == {32: 1}


@pytest.mark.parametrize(
    ("listed", "limits"),
    [
        (LISTED, Limits(28800.0, 16)),
        ("a|30m|2|y\n", Limits(1800.0, 2)),
        ("|1.5h|inf|y\n", Limits(5400.0)),
        ("a|1h|2|y\nb|2h|4|y\n", Limits()),
        ("flux-queue: ERROR", Limits()),
        ("", Limits()),
    ],
)
def test_limits_of_the_default_queue(listed: str, limits: Limits) -> None:
    told = limits_in(listed)
    assert told == limits
    by = "policy.limits.duration"
    assert (by in str(told.why)) is (limits.seconds is not None)


@pytest.mark.parametrize(
    ("listed", "status", "batch"),
    [
        ("", STATUS, SETS["batch"]),
        ("batch*|1h\n", STATUS, SETS["batch"]),
        (LISTED, "flux-resource: ERROR: no", SETS["batch"]),
        (LISTED, STATUS, ""),
        (LISTED, STATUS, SETS["batch"][:-20]),
        (LISTED, STATUS, "{}"),
        (LISTED, STATUS, resources(("0-4", "0-63"), nodes=["n[1-4]"])),
        (LISTED, STATUS, resources(("0-x", "0-63"), nodes=["n[1-4]"])),
    ],
)
def test_damaged_output_is_no_answer(listed: str, status: str, batch: str) -> None:
    with pytest.raises(ClustergateError) as refused:
        queues_in(listed, status, {**SETS, "batch": batch})
    assert refused.value.reason.code == NO_ANSWER.code
    assert NO_ANSWER.code in NO_ANSWERS


def test_flux_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, text in {**SETS, "listed": LISTED, "status": STATUS}.items():
        (tmp_path / name).write_text(text)
    program = tmp_path / "flux"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in\n"queue list"*) cat {tmp_path}/listed;;\n'
        f'"resource status"*) cat {tmp_path}/status;;\n*) cat {tmp_path}/"$6";;\nesac\n'
    )
    program.chmod(0o755)
    assert FLUX.node_names() == ["n1", "n2", "n3", "n4", "d1", "o1"]
    assert FLUX.limits([]) == Limits(28800.0, 16)
    assert [note.partition(";")[0] for note in FLUX.unused_notes()] == [
        "Flux does not use n3: drained, broken fan",
        "Flux does not use n4: offline",
        "Flux does not use o1: its queue is stopped",
    ]
    program.write_text("#!/bin/sh\necho 'ERROR: Unable to connect to Flux' >&2\nexit 1\n")
    assert (FLUX.node_names(), FLUX.limits([])) == ([], Limits())
    (note,) = FLUX.unused_notes()
    assert note.startswith("Flux could not be asked for its nodes: ERROR: Unable to connect to F")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("SCHED|16|||", "queued"),
        ("SCHED|0|||", "held"),
        ("SCHED|16|insufficient resources||", "insufficient resources"),
        ("DEPEND|16||after-ok:f4|", "after-ok:f4"),
        ("PRIORITY|16|||", "its priority"),
        ("RUN|16|||", ""),
        ("CLEANUP|16|||", ""),
        ("flux-jobs: ERROR", None),
    ],
)
def test_job_of_a_run_waits_or_runs(line: str, why: str | None) -> None:
    stage = Path("/home/user/stage/1")
    elsewhere = "SCHED|16|||/home/user/other\n"
    assert waits_for(f"{elsewhere}{line}{stage}/alpha/b/mpich/HplCheck\n", stage) == why
    assert waits_for(elsewhere, stage) is None


def test_doctor_compares_sizes() -> None:
    def status(nodes: int, cores: int) -> str:
        described = Partition(
            name="b", scheduler="flux", cores_per_node=cores, nodes=nodes, environs=("mpich",)
        )
        return doctor.check_nodes(described, queues_in(LISTED, STATUS, SETS)).status

    assert [status(4, 64), status(5, 64), status(4, 32), status(4, 128)] == [OK, WARN, WARN, WARN]


def test_lines_that_drain_and_resume() -> None:
    assert FLUX.drain_line(["n3", "n4"], "slow HPL") == "flux resource drain 'n[3-4]' 'slow HPL'"
    stopped = str(FLUX.not_used("n3", "its queue is stopped"))
    assert stopped.endswith("an operator starts it: `flux queue start QUEUE`")
    assert "`flux resource undrain n3`" in str(FLUX.not_used("n3", "drained"))
