"""Which node is to blame; the texts are those of real failures on the virtual cluster."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clustergate.benchmarks.budget import Budget
from clustergate.launching.dialects import Layout
from clustergate.launching.node_failures import ended_by_scheduler, first_node_failure
from clustergate.launching.plan import LOG, launch_folder
from clustergate.session.case import Job

HYDRA = """\
ssh: connect to host n2 port 22: Connection timed out
[mpiexec@n1] ui_cmd_cb (/mpich-5.0.2/src/pm/hydra/mpiexec/pmiserv_pmci.c:51): Launch proxy failed.
[mpiexec@n1] main (/mpich-5.0.2/src/pm/hydra/mpiexec/mpiexec.c:270): process manager error waiting
"""
SRUN = """\
srun: cluster configuration lacks support for cpu binding
srun: error: Task launch for StepId=5.0 failed on node n2: Communication connection failure
srun: error: Application launch failed: Communication connection failure
srun: Job step aborted: Waiting up to 4 seconds for job step to finish.
slurmstepd-n1: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-11-21T18:54:00 ***
srun: error: n1: task 0: Killed
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (HYDRA, "ssh: connect to host n2 port 22: Connection timed out"),
        (
            SRUN,
            "srun: error: Task launch for StepId=5.0 failed on node n2: Communication connection "
            "failure",
        ),
        (
            "slurmstepd: error: *** JOB 2 ON n1 CANCELLED AT 2026-11-21T19:31:22 DUE TO NODE "
            "FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\nsrun: error: Node failure on n2\n",
            "srun: error: Node failure on n2",
        ),
        ("[mpiexec@n1] main: error\n", ""),
        ("slurmstepd-n1: error: out of luck\n", ""),
        ("error on n10\n", ""),
        ("n2 is fine\n", ""),
        ("", ""),
    ],
)
def test_the_first_trouble_that_names_a_host_is_the_cause(text, line):
    assert first_node_failure(text.splitlines(), ["n1", "n2"]) == line


def test_a_job_that_the_scheduler_ended_is_told_whatever_its_exit_status():
    assert "(NODE_FAIL): one of its nodes failed" in ended_by_scheduler("NODE_FAIL")
    assert "time limit" in ended_by_scheduler("TIMEOUT")
    for state in ("COMPLETED", "FAILED", "SUCCESS", "", None):
        assert ended_by_scheduler(state) == ""


def test_a_host_is_known_as_a_whole_name():
    said = ["cannot reach n2.cluster.example"]
    assert first_node_failure(said, ["n2.cluster.example"]) == said[0]
    assert first_node_failure(["cannot reach an2"], ["n2"]) == ""
    assert first_node_failure(["cannot reach n.2"], ["n+2"]) == ""
    assert first_node_failure(["cannot reach n2"], []) == ""


def test_a_job_that_was_ended_while_it_measured_the_peaks_says_that_it_launched_nothing(
    tmp_path: Path,
) -> None:
    unread: Any = None
    job = Job(tmp_path, unread, Layout(2, 1), unread, ("n1", "n2"), None, "TIMEOUT", 0, "none")
    (tmp_path / "none").touch()
    (tmp_path / LOG).write_text('{"hosts": ["n1", "n2"]}\n', encoding="utf-8")
    said = {one.code: one.facts for one in job.complaints(0, job.hosts)}
    assert said["job.in-the-peaks"] == {"host": "n1", "launches": 0}
    cancelled = dataclasses.replace(job, state="CANCELLED")
    assert [one.code for one in cancelled.complaints(0, job.hosts)] == ["job.ended"]
    launch_folder(tmp_path, 0).mkdir()
    assert "job.in-the-peaks" not in {one.code for one in job.complaints(0, job.hosts)}


def test_a_node_with_another_file_under_the_same_name_is_named(tmp_path: Path) -> None:
    unread: Any = None
    plan: Any = SimpleNamespace(budget=Budget(1, 1))
    noted = {"contender": "a", "site_files": [], "unlike": {"n1": [], "n2": ["/opt/libmpi.so"]}}
    (tmp_path / LOG).write_text(json.dumps(noted) + "\n", encoding="utf-8")
    of_job = Layout(2, 1), unread, ("n1", "n2"), None, "COMPLETED", 0, "none"
    (complaint,) = Job(tmp_path, plan, *of_job).complaints(1, ("n1", "n2"))
    assert str(complaint).startswith(
        "n2 lacks, or has with other contents than the first node, what ranks loaded: "
        "/opt/libmpi.so"
    )
