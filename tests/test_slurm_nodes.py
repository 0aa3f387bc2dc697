"""What is made of sinfo's answers; the texts are those of Slurm 22.05 on the virtual cluster."""

import pytest

from clustergate.core.model import Case, CaseState
from clustergate.run.judge import notes_on_failure
from clustergate.run.reframe import stopped_early
from clustergate.sites.description import Partition, Site
from clustergate.sites.schedulers import scheduler_of, slurm
from clustergate.sites.schedulers.slurm.nodes import nodes_in

SLURM = scheduler_of("slurm")
TEXT = """\
cpu*|3|2|32|n[2-4]|(null)|drained|broken fan
cpu*|1|2|32|n1|(null)|idle|none
cpu*|1|2|32|n5|(null)|down*|Not responding
cpu*|1|2|32|n6|(null)|mixed~|none
cpu*|1|2|32|n7|(null)|idle*|none
gpu|1|2|32|n5|(null)|down*|Not responding
gpu|1|2|64|n8|(null)|drained|broken fan
"""


@pytest.fixture
def sinfo(tmp_path, monkeypatch):
    """Let sinfo be a script."""

    def script(text):
        program = tmp_path / "sinfo"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return script


def test_each_reason_is_a_sentence_and_nodes_in_use_are_none(sinfo):
    sinfo(f"cat <<'EOF'\n{TEXT}EOF")
    assert [one.partition(";")[0] for one in SLURM.unused_notes()] == [
        "Slurm does not use n[2-4,8]: drained, broken fan",
        "Slurm does not use n5: down, does not respond, Not responding",
        "Slurm does not use n7: idle, does not respond",
    ]
    assert SLURM.node_names() == [f"n{k}" for k in (2, 3, 4, 1, 5, 6, 7, 8)]


@pytest.mark.parametrize(
    ("script", "sentences"),
    [
        ("echo 'cpu|1|1|1|n1|(null)|idle|none'", []),
        (
            'for i in 1 2 3 4 5 6 7; do echo "cpu|1|1|1|n$i|(null)|down|r$i"; done',
            ["and 2 more reasons: see sinfo -R"],
        ),
        ("echo 'cannot contact the controller' >&2; exit 1", ["cannot contact the controller"]),
    ],
)
def test_slurm_is_asked(sinfo, script, sentences):
    sinfo(script)
    told = SLURM.unused_notes()
    assert bool(told) == bool(sentences)
    for sentence in sentences:
        assert sentence in told[-1]


def test_without_slurm_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (told,) = SLURM.unused_notes()
    assert told.startswith("Slurm could not be asked for its nodes")


# ReFrame 4.10.4, with slurmdbd stopped while a job ran.
STOPPED = """\
[  PASSED  ] Ran 1/2 test case(s) from 2 check(s) (0 failure(s), 0 expected failure(s), 0 skipped)
[==========] Finished on Sat Nov 21 19:34:28 2026+0000
ERROR: run session stopped: spawned process error: command 'sacct -S 2026-11-21 -P -j 5' failed:
--- stdout ---
--- stdout ---
--- stderr ---
sacct: error: Sending PersistInit msg: Connection refused
sacct: error: Problem talking to the database: Connection refused

--- stderr ---
Log file(s) saved in '/reframe.log'
"""


def test_session_stopped_by_reframe_says_why():
    assert stopped_early(STOPPED.splitlines()) == [
        "ReFrame stopped early, run session stopped: spawned process error: command 'sacct -S "
        "2026-11-21 -P -j 5' failed: sacct: error: Problem talking to the database: Connection "
        "refused"
    ]
    assert stopped_early(["[  PASSED  ] Ran 2/2 test case(s)"]) == []


def site(*schedulers: str) -> Site:
    partitions = [Partition(name=name, scheduler=name) for name in schedulers]
    return Site(name="alpha", hostnames=[], partitions=partitions)


def test_slurm_asked_only_after_a_failure(monkeypatch):
    monkeypatch.setattr(slurm.Slurm, "unused_notes", lambda self: ["asked"])
    ran, failed = (Case("HplCheck", "mpich", state) for state in (CaseState.RAN, CaseState.FAILED))
    assert notes_on_failure(site(*["local", "squeue"]), [ran, failed]) == ["asked"]
    assert notes_on_failure(site(*["squeue"]), [ran]) == []
    assert notes_on_failure(site(*["local"]), [failed]) == []


def test_nodes_in_a_maintenance_reservation_named_with_option():
    ((nodes, causes),) = nodes_in("cpu*|4|2|32|n[1-4]|(null)|maint|none\n")["cpu"].unused.items()
    assert str(SLURM.not_used(nodes, causes)).startswith(
        "Slurm does not use n[1-4]: maint; `--reservation NAME`"
    )


def test_nodes_of_a_reservation_are_used_by_jobs_that_are_in_it():
    states = (("n[1,3-4]", 3, "maint|none"), ("n2", 1, "drained|slow"), ("n5", 1, "maint*|none"))
    text = "".join(f"cpu*|{count}|2|32|{names}|(null)|{why}\n" for names, count, why in states)
    assert nodes_in(text, reserved=True)["cpu"].unused == {
        "n2": "drained, slow",
        "n5": "maint, does not respond",
    }
