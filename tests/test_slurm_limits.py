"""What a partition allows, as Slurm 22.05 prints it."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from clustergate.core.model import ClustergateError
from clustergate.sites.schedulers.scheduler import Limits
from clustergate.sites.schedulers.slurm import limits as slurm_limits
from clustergate.sites.schedulers.slurm.limits import (
    limits_in,
    limits_of,
    note_words,
    within_qos,
    within_reservation,
)

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


def test_the_partition_that_is_meant_of_several() -> None:
    """Where a site config names none, Slurm takes the default one."""
    usual = SAID.format(nodes="2", time="UNLIMITED")
    main = usual.replace("PartitionName=main", "PartitionName=main2")
    debug = SAID.format(nodes="UNLIMITED", time="00:30:00").replace("=main", "=debug")
    debug = debug.replace("Default=YES", "Default=NO")
    every = f"{debug}\n{main}\n"
    assert limits_in(every) == limits_in(every, "main2") == Limits(None, 2)
    assert limits_in(every, "debug") == Limits(1800.0)
    assert limits_in(every, "main") == limits_in(debug) == Limits()


def test_what_does_not_answer_limits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    limits_of.cache_clear()
    assert limits_of("main") == limits_of("") == limits_in("slurm_load_partitions: x") == Limits()
    limits_of.cache_clear()


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Let scontrol say something, as Slurm 22.05 did."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv(slurm_limits._RESERVATION, "")

    def says(text: str, status: int) -> None:
        (tmp_path / "said").write_text(text)
        program = tmp_path / "scontrol"
        program.write_text(f"#!/bin/sh\ncat {tmp_path}/said\nexit {status}\n")
        program.chmod(0o755)

    return says


RESERVATION = """\
ReservationName=window StartTime=1764168500 EndTime=1764172100 Duration=01:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=2 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
"""


def test_no_job_may_last_longer_than_its_reservation(scontrol: Callable[[str, int], None]) -> None:
    scontrol(RESERVATION, 0)
    note_words(["account=x", "reservation=window"])
    own, end = Limits(1800.0, 4), 1764172100
    assert within_reservation(own, end - 3600) == own
    left = within_reservation(own, end - 1259)
    assert left == Limits(1200.0, 4, end)
    assert re.match(r"the reservation window ends at \d\d:\d\d; extend it by `scon", str(left.why))
    assert within_reservation(Limits(), end + 5).seconds == 0.0


def test_a_reservation_that_is_not_there_is_refused(scontrol: Callable[[str, int], None]) -> None:
    scontrol("Reservation windw not found\n", 1)
    with pytest.raises(ClustergateError, match="Slurm has no reservation windw"):
        note_words(["reservation=windw"])
    # Slurm itself does not answer.
    scontrol("", 1)
    note_words(["reservation=window"])
    assert within_reservation(Limits()) == Limits()


# `scontrol --oneliner show assoc_mgr flags=qos` of the virtual cluster, cut.
QOS = """\
Current Association Manager state
QOS Records
QOS=normal(1) UsageRaw=0.000000 GrpWall=N(0.00) MaxWallPJ= MaxTRESPJ= MaxTRESPN= Priority=0
QOS=night(2) GrpTRES=cpu=N(0),node=N(0) MaxWallPJ=30 MaxTRESPJ=cpu=6,node=3 X=1
"""


def test_a_qos_limits_its_jobs() -> None:
    """A job that asked for more was cancelled, as it would have waited for ever."""
    assert within_qos(Limits(), "normal", QOS) == within_qos(Limits(), "nigh", QOS) == Limits()
    within = within_qos(Limits(), "night", QOS)
    assert within == Limits(1800.0, 3)
    assert str(within.why).startswith("the QOS night limits jobs to 1800 s; raise its MaxW")
    assert within_qos(Limits(600.0, 2), "night", QOS) == Limits(600.0, 2)


SLURM = """\
#!/bin/sh
case "$*" in
*partition*) cat {folder}/partition;;
*config*) echo "AccountingStorageEnforce = {enforced}";;
*assoc_mgr*) cat {folder}/qos;;
esac
"""


@pytest.mark.parametrize(
    ("of_partition", "in_access", "wished", "enforced", "seconds"),
    [
        ("N/A", "", "", "associations,limits,qos", None),
        ("N/A", "night", "", "associations,limits,qos", 1800.0),
        ("N/A", "night", "normal", "associations,limits,qos", None),
        ("N/A", "", "night", "safe", 1800.0),
        ("night", "", "normal", "limits", 1800.0),
        # Slurm does not hold to what it knows.
        ("night", "night", "night", "associations,qos", None),
    ],
)
def test_the_qos_that_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    of_partition: str,
    in_access: str,
    wished: str,
    enforced: str,
    seconds: float | None,
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv(slurm_limits._QOS, "")
    said = SAID.format(nodes="UNLIMITED", time="UNLIMITED")
    (tmp_path / "partition").write_text(said.replace("QoS=N/A", f"QoS={of_partition}"))
    (tmp_path / "qos").write_text(QOS)
    (tmp_path / "scontrol").write_text(SLURM.format(folder=tmp_path, enforced=enforced))
    (tmp_path / "scontrol").chmod(0o755)
    note_words([f"qos={wished}"] if wished else [])
    limits_of.cache_clear()
    assert limits_of("main", in_access).seconds == seconds
    limits_of.cache_clear()
