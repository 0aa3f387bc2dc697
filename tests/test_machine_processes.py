import os
import subprocess
import sys
import uuid

from clustergate.machine.processes import end_processes_with


def test_only_the_processes_of_the_run_are_ended():
    mark = uuid.uuid4().hex
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print(1, flush=True); time.sleep(86400)"
    )
    ours = subprocess.Popen(
        [sys.executable, "-c", stubborn],
        env={**os.environ, "A_RUN": mark},
        stdout=subprocess.PIPE,
    )
    other = subprocess.Popen(["sleep", "infinity"], env={**os.environ, "A_RUN": "another"})
    elsewhere = subprocess.Popen(
        ["sleep", "infinity"], env={**os.environ, "A_RUN": mark, "A_HOME": "/elsewhere"}
    )
    assert ours.stdout is not None
    try:
        assert ours.stdout.readline() == b"1\n"
        assert len(end_processes_with("A_RUN", mark, beside={"A_HOME": "/home"})) == 1
        assert ours.poll() is not None
        assert other.poll() is None
        assert elsewhere.poll() is None
    finally:
        ours.kill()
        ours.stdout.close()
        ours.wait()
        for one in (other, elsewhere):
            one.kill()
            one.wait()


def test_nothing_to_end_is_no_error():
    assert end_processes_with("A_RUN", uuid.uuid4().hex) == []
