"""A test of somebody's that asks the judge in its performance stage, run by ReFrame."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate.suites.judged_test import slower
from tests.conftest import PATIENCE_S
from tests.test_suite_judging import result, session

REFRAME = Path(sys.executable).parent / "reframe"
TEST = """\
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, sanity_function

import clustergate


@rfm.simple_test
class my_test(clustergate.Judged, rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo"
    executable_opts = ["rate", os.environ["RATE"]]
    exclusive_access = True

    @sanity_function
    def ran(self):
        return sn.assert_found("rate", self.stdout)

    @performance_function("GB/s")
    def rate(self):
        return sn.extractsingle(r"rate (\\S+)", self.stdout, 1, float)
"""


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """Return how to run the test, which tells a rate; here it is no measurement."""
    home = tmp_path_factory.mktemp("mixin")
    (home / "my_test.py").write_text(TEST)
    own = {k: v for k, v in os.environ.items() if not k.startswith(("RFM_", "CLUSTERGATE"))}

    def run(rate, *options):
        ended = subprocess.run(
            [REFRAME, f"--prefix={home}/out", "-c", "my_test.py", *options, "-r"],
            cwd=home,
            env={**own, "HOME": str(home), "RATE": f"{rate}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        newest = json.loads((home / ".reframe" / "reports" / "latest.json").read_text())
        return ended.returncode, ended.stdout, newest["runs"]

    return run


def test_a_test_fails_by_the_judge_and_all_its_attempts_stay_in_the_report(typed):
    for rate in (100.0, 100.4, 99.7, 100.2, 99.9, 100.1):
        status, printed, _ = typed(rate)
        assert status == 0, printed
    status, printed, runs = typed(70.0, "--max-retries", "2")
    assert status == 1
    assert "slower than in its baseline" in printed
    values = [one["testcases"][0]["perfvalues"] for one in runs]
    assert [next(iter(of.values()))[0] for of in values] == [70.0, 70.0, 70.0]
    assert [one["testcases"][0]["fail_phase"] for one in runs] == ["performance"] * 3


def test_only_what_is_slower_fails():
    before = [
        session(day, [result("t", [("rate", 100 + day % 3, "GB/s")], day)]) for day in range(9)
    ]
    own = {"exclusive": True}
    assert slower(result("t", [("rate", 101.0, "GB/s")], 10, **own), before[::-1]) == ""
    assert slower(result("t", [("rate", 130.0, "GB/s")], 10, **own), before[::-1]) == ""
    assert "slower" in slower(result("t", [("rate", 60.0, "GB/s")], 10, **own), before[::-1])
    # Nothing to compare with.
    assert slower(result("t", [("rate", 60.0, "GB/s")], 10, **own), before[:3]) == ""
    assert slower(result("other", [("rate", 60.0, "GB/s")], 10, **own), before[::-1]) == ""
