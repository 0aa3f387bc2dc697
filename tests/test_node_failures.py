"""Which node is to blame; the texts are those of real failures on the virtual cluster."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clustergate.benchmarks.budget import Budget
from clustergate.core.files.stored import encode
from clustergate.core.model import Launch
from clustergate.launch.crashes import crash_of, last_line
from clustergate.launch.dialects import Layout
from clustergate.launch.node_failures import cause_of, ended_by_scheduler, first_node_failure
from clustergate.launch.plan import LOG, Launched, launch_folder
from clustergate.launch.reading import ending_of
from clustergate.run.case import Job

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


# Node n4 without the folder that holds the stack, the program, and the job, on a virtual cluster.
WITHOUT_STACK = """\
bash: line 1: /apps/mpich/bin/hydra_pmi_proxy: No such file or directory
[mpiexec@n1] ui_cmd_cb (/mpich-5.0.2/src/pm/hydra/mpiexec/pmiserv_pmci.c:51): Launch proxy failed.
[mpiexec@n1] HYDT_dmxu_poll_wait_for_event (/mpich-5.0.2/demux_poll.c:76): callback returned error
[mpiexec@n1] main (/mpich-5.0.2/src/pm/hydra/mpiexec/mpiexec.c:270): process manager error waiting
"""
WITHOUT_PROGRAM = """\
env: '/apps/prog': No such file or directory
srun: error: n4: task 1: Exited with exit code 127
"""


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (WITHOUT_STACK, "bash: line 1: /apps/mpich/bin/hydra_pmi_proxy: "),
        (WITHOUT_PROGRAM, "/apps/prog"),
        ("/apps/prog: error while loading shared libraries: libm.so: cannot open shared object "
         "file: No such file or directory\nsrun: error: n4: task 0: Exited with exit code 127\n",
         "libm.so"),
    ],
)  # fmt: skip
def test_lack_of_a_node_told_instead_of_the_launchers_words(
    text: str, path: str, tmp_path: Path
) -> None:
    said = tmp_path / "launch.err"
    said.write_text(text)
    told = ending_of(127, [said], ["n1", "n4"])
    assert told.startswith("it ended with exit status 127; it said: ")
    assert path in told
    assert "waiting" not in told
    assert "Exited" not in told


def test_where_a_host_is_named_with_its_trouble_that_is_the_cause(tmp_path: Path) -> None:
    said = tmp_path / "launch.err"
    said.write_text("cat: x: No such file or directory\n" + HYDRA)
    assert ending_of(1, [said], ["n1", "n2"]).endswith(f"it said: {HYDRA.splitlines()[0]}")
    said.write_text("root@n2: Permission denied (publickey).\n")
    assert "it said: root@n2: Permission denied" in ending_of(255, [said], ["n2"])
    said.write_text("srun: error: n2: task 0: Killed\n")
    assert ending_of(1, [said], ["n2"]).endswith("it said: srun: error: n2: task 0: Killed")


def test_job_ended_by_the_scheduler_told_despite_exit_status():
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


def test_job_ended_during_peaks_launched_nothing(
    tmp_path: Path,
) -> None:
    """A job that was ended while it measured the peaks says that it launched nothing."""
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


# Of MPICH 5.0.2, Intel MPI 2021.18.1, Open MPI 5 and srun of Slurm 22.05, of which a rank ended.
INTEL = """\
hello 1

=====================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 1 PID 9911 RUNNING AT n2
=   KILLED BY SIGNAL: 11 (Segmentation fault)
=====================================================
"""
PRTE = """\
--------------------------------------------------------------------------
prterun noticed that process rank 1 with PID 9986 on node n2 exited on
signal 11 (Segmentation fault).
--------------------------------------------------------------------------
"""
PRTE_STATUS = """\
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-9988@1,1]
   Exit code:    3
"""
ABORTED = "application called MPI_Abort(MPI_COMM_WORLD, 7) - process 1"


@pytest.mark.parametrize(
    ("status", "text", "how", "who"),
    [
        (255, INTEL, "signal 11, Segmentation fault", " on rank 1 on n2"),
        (139, PRTE, "signal 11, Segmentation fault", " on rank 1 on n2"),
        (3, PRTE_STATUS, "exit status 3", " on rank 1"),
        (139, "srun: error: n2: task 1: Segmentation fault (core dumped)", "signal 11,", "1 on n2"),
        (
            3,
            "srun: error: n2: task 1: Exited with exit code 3",
            "exit status 3",
            " on rank 1 on n2",
        ),
        (7, ABORTED, "exit status 7", " on rank 1"),
        (137, "", "signal 9, Killed", ""),
        (-6, "", "signal 6, Aborted", ""),
        (3, "hello", "exit status 3", ""),
    ],
)
def test_how_a_program_ended_is_told_with_its_rank(
    status: int, text: str, how: str, who: str
) -> None:
    crash = crash_of(status, text.splitlines())
    assert crash.how.startswith(how)
    assert crash.who.endswith(who)
    assert bool(crash.who) is bool(who)


def test_the_last_line_is_the_programs_own() -> None:
    assert last_line(INTEL.splitlines()) == "hello 1"
    assert last_line(PRTE.splitlines()) == ""


def test_a_program_that_crashed_is_not_told_as_measuring_the_peaks(tmp_path: Path) -> None:
    """Its log had the launch, and no folder of a next one: "raise the time limit"."""
    made = Launched("xhpl", 0, 139, Launch(0, 0.0, 1.0))
    plan: Any = SimpleNamespace(contenders=[SimpleNamespace(program=["/bin/xhpl"])])
    folder = launch_folder(tmp_path, 0)
    folder.mkdir()
    (folder / "stdout").write_text(INTEL)
    (folder / "stderr").write_text("")
    (tmp_path / "errors").write_text("x\n----\n")
    (tmp_path / LOG).write_text(json.dumps(encode(made)) + "\n", encoding="utf-8")
    of_job = Layout(2, 1), plan, ("n1", "n2"), None, "FAILED", 139, "errors"
    first, *others = Job(tmp_path, plan, *of_job).complaints(1, ("n1", "n2"))
    assert str(first).startswith(
        "xhpl ended with signal 11, Segmentation fault on rank 1 on n2, in launch 1: the last line "
        f"of its output: hello 1; the rest is in {folder}"
    )
    codes = [one.code for one in others]
    assert codes[0] == "job.exit-status"
    assert "job.in-the-peaks" not in codes


def test_what_came_of_the_end_of_a_launch_is_no_cause_of_it() -> None:
    end = "srun: error: n2: task 1: Exited with exit code 7"
    lacks = "slurmstepd-n2: error: execve(): /opt/bin/xhpl: No such file or directory"
    assert cause_of([end], ["n1", "n2"]) == end
    assert cause_of([end], ["n1", "n2"], was_ended=True) == ""
    assert cause_of([end, lacks], ["n1", "n2"], was_ended=True) == lacks


def test_job_cancelled_in_its_queue_says_so(
    tmp_path: Path,
) -> None:
    """A job that was cancelled in its queue says so and not that a file is missing."""
    unread: Any = None
    of_job = Layout(1, 1), unread, None, None, "CANCELLED", 0, "rfm_job.err"
    (complaint,) = Job(tmp_path, unread, *of_job).complaints(0, None)
    assert str(complaint).startswith("the scheduler ended the job (CANCELLED)")


def test_launcher_waiting_for_a_node_told_with_its_lack(tmp_path: Path) -> None:
    """Hydra goes on beside the other node; this is what srun said on the virtual cluster."""
    unread: Any = None
    (tmp_path / "nodes.err").write_text(
        "srun: error: n2: task 1: Exited with exit code 2\n"
        "slurmstepd-n2: error: execve(): /opt/bin/hydra_pmi_proxy: No such file or directory\n"
    )
    (tmp_path / "errors").write_text("clustergate: 1 of 2 nodes started no process within 60 s\n")
    of_job = Layout(2, 1), unread, ("n1", "n2"), None, "FAILED", 1, "errors"
    told = [str(one) for one in Job(tmp_path, unread, *of_job).complaints(0, ("n1", "n2"))]
    assert any("n2: error: execve(): /opt/bin/hydra_pmi_proxy: No such file" in one for one in told)


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
