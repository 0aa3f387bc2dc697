"""Whether the job of a case runs or waits in Slurm's queue, from lines of squeue."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustergate.sites.schedulers.slurm.commands import waits_for

STAGE = Path("/home/user/.clustergate/stage/20261101T000000Z-1")
OTHERS = "PENDING|Dependency|/home/user/elsewhere\nRUNNING|None|/home/user\n"


# Lines of Slurm 22.05.
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("PENDING|Resources|{}/alpha/node/mpich/HplCheck", "Resources"),
        ("PENDING|(null)|{}/alpha/node/mpich/HplCheck", "(null)"),
        ("CONFIGURING|None|{}/alpha/node/mpich/HplCheck", "CONFIGURING"),
        ("RUNNING|None|{}/alpha/node/mpich/HplCheck", ""),
        ("COMPLETING|None|{}/alpha/node/mpich/HplCheck", ""),
        ("PENDING|Resources|{}-2/alpha/node/mpich/HplCheck", None),
        ("", None),
    ],
)
def test_a_job_of_a_run_waits_or_runs(line: str, why: str | None) -> None:
    assert waits_for(OTHERS + line.format(STAGE) + "\n", STAGE) == why
