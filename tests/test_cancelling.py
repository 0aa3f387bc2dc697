"""What was submitted is cancelled, whoever ends the run: a real ReFrame, and a PBS of scripts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from reframe.core.backends import getlauncher
from reframe.core.exceptions import JobError
from reframe.core.runtime import runtime, temp_runtime
from reframe.core.schedulers import Job

from clustergate.sites import loader

# A job that runs until it is deleted, which takes a second.
PBS = {
    "qsub": "echo 7.head",
    "qstat": 'echo asked >> asked; [ ! -e deleted ] || exit 153; echo "Job Id: 7.head"\n'
    'echo "    job_state = R"',
    "qdel": "sleep 1; touch deleted",
}
SITE = """\
partition = {"name": "p", "scheduler": "pbs", "launcher": "local", "environs": ["e"]}
site_configuration = {
    "systems": [{"name": "s", "hostnames": [".*"], "partitions": [partition]}],
    "environments": [{"name": "e"}],
}
"""
CHECK = """\
import reframe as rfm
from reframe.utility.sanity import assert_true

@rfm.simple_test
class Waiting(rfm.RunOnlyRegressionTest):
    valid_systems, valid_prog_environs = ["*"], ["*"]
    executable, num_tasks = "true", 1

    @sanity_function
    def ended(self):
        return assert_true(True)
"""
DRIVER = """\
import os, sys
from pathlib import Path
from clustergate.run import execute
from clustergate.run.reframe import Call

# However busy the machine is, ReFrame gets to cancel.
execute.GRACE_S = 300

words = [str(Path(sys.executable).with_name("reframe")), "-C", "site.py", "-c", "check.py"]
words += ["--prefix=state", "--exec-policy=serial", "--run"]
environment = {**os.environ, "CLUSTERGATE_RUN_ID": "x"}
execute.execute(Call("x", words, environment, Path("reframe.json")), print)
"""


def test_an_interrupt_at_the_terminal_cancels_the_job(tmp_path: Path) -> None:
    """It comes to all that the terminal runs; what was about to cancel used to be ended itself."""
    for name, script in PBS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\ncd {tmp_path}\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "site.py").write_text(SITE)
    (tmp_path / "check.py").write_text(CHECK)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    running = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        env={**os.environ, "PATH": path, "CLUSTERGATE_HOME": str(tmp_path / "home")},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    asked = tmp_path / "asked"
    # ReFrame deletes no job of PBS that is younger than three seconds: its fourth question is.
    while not (asked.exists() and len(asked.read_text().splitlines()) > 3):
        assert running.poll() is None
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)
    running.wait()
    assert (tmp_path / "deleted").exists()


@pytest.mark.parametrize("delivered", [True, False])
def test_job_that_pbs_forgot_ends_whether_it_delivered_output_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delivered: bool
) -> None:
    """Of one whose node had died, ReFrame waited for the output for ever."""
    (tmp_path / "qstat").write_text(
        "#!/bin/sh\necho 'qstat: Unknown Job Id 7.head' >&2\nexit 153\n"
    )
    (tmp_path / "qstat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "site.py").write_text(SITE)
    with temp_runtime(str(tmp_path / "site.py"), "s"):
        (partition,) = runtime().system.partitions
        job = Job.create(partition.scheduler, getlauncher("local")(), "job", workdir=str(tmp_path))
        job._jobid = "7.head"
        for name in ("job.out", "job.err") if delivered else ():
            (tmp_path / name).touch()
        partition.scheduler.poll(job)
        assert job.completed is delivered
        monkeypatch.setattr(loader, "DELIVERY_S", 0.0)
        partition.scheduler.poll(None, job)
        if delivered:
            assert job.finished()
        else:
            with pytest.raises(JobError, match="PBS has ended the job and delivered no output"):
                job.finished()
