"""What a partition allows, as Slurm 22.05 prints it."""

from pathlib import Path

import pytest

from clustergate.schedulers.slurm_limits import Limits, limits_in, limits_of

# `scontrol show partition` of the virtual cluster, cut; MaxTime and MaxNodes are put in.
SAID = """\
PartitionName=main
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes={nodes} MaxTime={time} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=n[1-4]
   State=UP TotalCPUs=8 TotalNodes=4 SelectTypeParameters=NONE
"""


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("00:30:00", 1800.0),
        ("1-00:00:10", 86410.0),
        ("12-06:00:00", 1058400.0),
        ("UNLIMITED", None),
    ],
)
def test_the_longest_time(time: str, seconds: float | None) -> None:
    assert limits_in(SAID.format(nodes="UNLIMITED", time=time)) == Limits(seconds)


def test_the_most_nodes() -> None:
    assert limits_in(SAID.format(nodes="2", time="UNLIMITED")) == Limits(None, 2)


def test_what_does_not_answer_limits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    limits_of.cache_clear()
    assert limits_of("main") == limits_of("") == limits_in("slurm_load_partitions: x") == Limits()
    limits_of.cache_clear()
