"""Launches of a run share no cores: jobs wait for each other, and what overlapped is disturbed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from clustergate.core.model import CaseRecord, Launch
from clustergate.launch.disturbance import overlapping
from clustergate.launch.driver import cores_held
from clustergate.run.collect import without_overlaps

HOLD = """\
import sys
from clustergate.launch.driver import cores_held

with cores_held(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
print("left", flush=True)
"""


def launch(started: float, seconds: float, host: str = "n1", order: int = 0) -> Launch:
    return Launch(order, started, seconds, host)


def marked(**launches: list[Launch]) -> dict[str, list[str]]:
    return {
        name: [str(one.disturbed or "") for one in of_case]
        for name, of_case in overlapping(launches).items()
    }


def test_overlapping_launches_of_two_cases_disturb_each_other() -> None:
    told = marked(
        HplCheck=[launch(0.0, 10.0), launch(10.0, 5.0, order=1)],
        ImbCheck=[launch(3.0, 1.0), launch(6.0, 2.0, order=1), launch(20.0, 1.0, order=2)],
    )
    assert "ImbCheck was launched on n1 at the same time" in told["HplCheck"][0]
    assert "`max_jobs`" in told["HplCheck"][0]
    assert told["HplCheck"][1] == ""
    assert [bool(text) for text in told["ImbCheck"]] == [True, True, False]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (launch(0.0, 10.0), launch(10.0, 1.0)),
        (launch(0.0, 10.0), launch(3.0, 1.0, host="n2")),
        (launch(0.0, 10.0, host=""), launch(3.0, 1.0, host="")),
    ],
    ids=["one after the other", "other nodes", "nobody knows where"],
)
def test_others_did_not(one: Launch, other: Launch) -> None:
    assert marked(A=[one], B=[other]) == {"A": [""], "B": [""]}
    assert marked(A=[one, other]) == {"A": ["", ""]}


def test_a_run_is_judged_without_them() -> None:
    records = [
        CaseRecord(name, "Check", "mpich", "", {}, launches=(launch(started, 4.0),))
        for name, started in (("a", 0.0), ("b", 2.0))
    ]
    assert all(one.launches[0].disturbed for one in without_overlaps(records))


def test_a_job_waits_until_another_of_its_run_has_launched(tmp_path: Path) -> None:
    """Where ReFrame runs several at once, HPL had a quarter of its rate."""
    peaks = str(tmp_path / "peaks")
    command = [sys.executable, "-c", HOLD, peaks]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as first:  # type: ignore[call-overload]
        assert first.stdout.readline() == "held\n"
        (lock,) = tmp_path.glob("cores-of-*.lock")
        probe = (
            "import fcntl, sys\n"
            "try:\n    fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
            "except BlockingIOError:\n    print('waits')\n"
        )
        asked = [sys.executable, "-c", probe, str(lock)]
        assert subprocess.run(asked, capture_output=True, text=True).stdout == "waits\n"
        # Another run, and a job that shares nothing, do not.
        with cores_held(str(tmp_path / "other" / "peaks")), cores_held(""):
            pass
        first.communicate()
    with cores_held(peaks):
        pass
