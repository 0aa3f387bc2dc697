"""What is read from ReFrame and its report, in the form that ReFrame 4.10.4 writes."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from clustergate.core.model import ClustergateError
from clustergate.run.execute import execute
from clustergate.run.reframe import Call, read_outcomes
from tests.test_slurm_nodes import STOPPED

REFUSED = "NPB3.4.3.tar.gz has the checksum 2e30 where a97c is pinned, so it is refused"


def case(name: str, result: str, *needs: str, fixture: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "unique_name": name,
        "fixture": fixture,
        "result": result,
        "system": "local",
        "partition": "node",
        "environ": "mpich",
        "hashcode": "1",
        "fail_reason": None,
        "fail_phase": None,
        "time_total": 1.0,
        "dependencies_actual": [[one, "local:node", "mpich"] for one in needs],
        "stagedir": None,
        "build_stderr": None,
        **more,
    }


def outcomes(tmp_path: Path, *cases: dict[str, Any]) -> dict[str, str]:
    report = tmp_path / "reframe.json"
    report.write_text(json.dumps({"runs": [{"testcases": cases}]}))
    return {one.check: one.reason for one in read_outcomes(report, 1)}


def failed_build(tmp_path: Path, text: str) -> dict[str, Any]:
    (tmp_path / "rfm_build.err").write_text(text)
    return case(
        "NpbBuild",
        "fail",
        fixture=True,
        fail_reason="build error: build job failed with exit code: 2",
        stagedir=str(tmp_path),
        build_stderr="rfm_build.err",
    )


def test_a_case_says_what_its_build_said_last(tmp_path):
    build = failed_build(tmp_path, f"[ 1 s] fetching\nclustergate: {REFUSED}\n")
    found = outcomes(tmp_path, build, case("NpbCheck", "fail_deps", "NpbBuild"))
    assert found == {"NpbCheck": f"its program could not be set up: {REFUSED}"}


def test_a_build_that_said_nothing_is_told_as_reframe_does(tmp_path):
    build = failed_build(tmp_path, "Killed\n")
    found = outcomes(tmp_path, build, case("NpbCheck", "fail_deps", "NpbBuild"))
    assert found["NpbCheck"].endswith("build job failed with exit code: 2")
    (tmp_path / "rfm_build.err").unlink()
    again = outcomes(tmp_path, {**build}, case("NpbCheck", "fail_deps", "NpbBuild"))
    assert again == found


def test_failed_build_is_no_reason_of_an_independent_case(tmp_path):
    sanity = case("HplCheck", "fail", "StackBuild", fail_reason="sanity error: residual")
    stack = case("StackBuild", "pass", fixture=True)
    found = outcomes(
        tmp_path,
        *(failed_build(tmp_path, f"clustergate: {REFUSED}\n"), stack, sanity),
        case("StreamCheck", "pass", "StackBuild"),
    )
    assert found == {"HplCheck": "sanity error: residual", "StreamCheck": ""}


def test_a_hang_says_where_to_look_and_what_to_do(tmp_path):
    told = "job error: [jobid=1] job timed out (31.4s > 30.0s)"
    hung = case("HplCheck", "fail", fail_reason=told, stagedir="/stage/HplCheck")
    found = outcomes(tmp_path, hung)["HplCheck"]
    assert found.startswith(f"{told}; a rank hangs")
    assert "output in /stage/HplCheck, and raise the limit by -- -S time_limit=1h" in found


def test_what_slurm_never_starts_is_one_cause_for_all(tmp_path):
    told = "job blocked error: [jobid={}] job cancelled because it was blocked due to reason: {}"
    why = "QOSMaxWallDurationPerJobLimit"
    cases = [case(f"{n}Check", "fail", fail_reason=told.format(n, why)) for n in range(2)]
    (found,) = {*outcomes(tmp_path, *cases).values()}
    assert found.startswith(f"Slurm would never start its job: {why}; `sinfo -R` lists")


def test_a_full_disk_is_told_where_the_job_itself_could_not(tmp_path, monkeypatch):
    build = failed_build(tmp_path, "")
    failed = case("HplCheck", "fail", fail_reason="job error: 1", stagedir=str(tmp_path))
    cases = (build, failed, case("NpbCheck", "fail_deps", "NpbBuild"), case("ImbCheck", "pass"))
    assert not any("No space" in reason for reason in outcomes(tmp_path, *cases).values())
    full = shutil.disk_usage(tmp_path)._replace(free=4096)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: full)
    told = outcomes(tmp_path, *cases)
    found = read_outcomes(tmp_path / "reframe.json", 1)
    assert {one.check: one.full_disk for one in found} == {
        "HplCheck": str(tmp_path),
        "NpbCheck": "",
        "ImbCheck": "",
    }
    assert "exit code: 2; No space left on device for " in told["NpbCheck"]
    assert told["ImbCheck"] == ""


def test_a_case_that_ran_when_reframe_stopped_says_why_it_stopped(tmp_path):
    (tmp_path / "reframe.out").write_text(STOPPED)
    told = outcomes(tmp_path, case("HplCheck", "<unknown>"), case("ImbCheck", "pass"))
    assert told["ImbCheck"] == ""
    assert told["HplCheck"].startswith("ReFrame stopped early, run session stopped: ")
    assert told["HplCheck"].endswith("Problem talking to the database: Connection refused")


@pytest.mark.parametrize(
    ("status", "how"),
    [(3, "ended with exit status 3"), (-9, "was killed by SIGKILL"), (-99, "was killed by signal")],
)
def test_how_reframe_ended_without_a_report_is_told(tmp_path, status, how):
    with pytest.raises(ClustergateError, match=f"ReFrame {how}.* and left no report"):
        read_outcomes(tmp_path / "reframe.json", status)


def call(folder: Path, *command: str) -> Call:
    environment = {**os.environ, "CLUSTERGATE_RUN_ID": "x"}
    return Call("x", command, environment, folder / "reframe.json")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_with_the_file_that_it_could_not_take(tmp_path):
    (tmp_path / "reframe.out").symlink_to("/dev/full")
    said = [sys.executable, "-c", "print('[ RUN      ] HplCheck /1 @local:node+mpich')"]
    with pytest.raises(
        ClustergateError, match=r"reframe.out cannot be written: No space left on device;"
    ):
        execute(call(tmp_path, *said), print)


def test_a_log_that_cannot_be_opened_is_told(tmp_path):
    with pytest.raises(
        ClustergateError, match=r"absent/reframe.out cannot be written: No such file"
    ):
        execute(call(tmp_path / "absent", sys.executable, "-c", ""), print)
