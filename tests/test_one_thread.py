"""NumPy and SciPy start no threads, and what is launched hears nothing of it."""

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import os, subprocess
from clustergate.stats.one_thread import one_thread, scipy
with one_thread():
    import numpy
assert scipy.special.ndtr(0.0) == 0.5
print(len(os.listdir("/proc/self/task")), flush=True)
subprocess.run(["sh", "-c", "echo ${OPENBLAS_NUM_THREADS-unset}"], check=True)
"""


@pytest.mark.parametrize("asked", ["unset", "7"])
def test_nothing_but_what_is_loaded_has_one_thread(asked: str) -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": asked}
    if asked == "unset":
        del environment["OPENBLAS_NUM_THREADS"]
    said = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["1", asked]
