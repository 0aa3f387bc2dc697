"""The gate on a virtual cluster, to its end: it opens, it stays closed, it cannot judge.

The nodes share one machine, so the faults are far larger than its noise; where others use the
machine meanwhile nothing can be told, and the test says so instead of failing.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clustergate.core.paths import checkout
from tests.conftest import NOISE, VirtualCluster

pytestmark = [pytest.mark.cluster, pytest.mark.mpi]

CLUSTERGATE = str(Path(sys.executable).parent / "clustergate")
OFI = [["MPIR_CVAR_CH4_NETMOD", "ofi"]]
# HPL fills the memory of four nodes, the least a site may have, with a matrix of 5000.
BYTES_PER_NODE = 1 << 26
WAIVED = {"HpccCheck": "it takes too long here", "ImbMpi1Check": "it takes too long here"}
MOST_TRIES = 4


@pytest.fixture(scope="module", params=["slurm", "pbs"])
def virtual(request: pytest.FixtureRequest) -> Iterator[VirtualCluster]:
    """Bring a cluster up with each scheduler."""
    cluster = VirtualCluster()
    cluster.bring_up(request.param, "--hours", "2")
    yield cluster
    cluster("down")


@pytest.fixture
def site(virtual: VirtualCluster, tmp_path: Path) -> Path:
    """Return a folder of site files: the virtual cluster with one partition and a core a node.

    HPL with one stack is all that must be judged, and it is small as the memory is.
    """
    folder = tmp_path / "site"
    (folder / "site_configs").mkdir(parents=True)
    lines = (checkout() / "ci" / "virtual_cluster.py").read_text().splitlines(keepends=True)
    others = '"name": "srun"', '"name": "ssh"'
    kept = [line for line in lines if not any(other in line for other in others)]
    assert len(kept) == len(lines) - len(others)
    one = '"cores_per_node": 1, "reserved_cores_per_node": 1'
    text = "".join(kept).replace('"cores_per_node": 2', one)
    (stacks,) = re.findall(r"stacks=\[.*\]", text, re.DOTALL)
    for old, new in (
        ("2**30", str(BYTES_PER_NODE)),
        (stacks, f'stacks=[stack("mpich", env_vars={OFI!r}, waived={WAIVED!r})]'),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "site_configs" / "virtual-cluster.py").write_text(text)
    return folder


def called(virtual: Any, suite: Any, site: Path, *words: str) -> tuple[int, str]:
    """Run a command of the suite on the head; return its exit status and what it said."""
    ended = virtual(
        *("run", "head", CLUSTERGATE, *words),
        CLUSTERGATE_HOME=str(suite.home),
        CLUSTERGATE_SITE_FOLDER=str(site),
    )
    return ended.returncode, ended.stdout + ended.stderr


def gate(virtual: Any, suite: Any, site: Path) -> tuple[int, str]:
    """Run the gate with a budget for a screening and HPL; return its exit status and words."""
    return called(virtual, suite, site, "gate", "--site", "virtual-cluster", "--budget", "5m")


def test_it_opens_stays_closed_and_cannot_judge(virtual: Any, suite: Any, site: Path) -> None:
    # Without references nobody knows what to expect.
    status, said = gate(virtual, suite, site)
    assert status == 2, said
    assert suite.decision()["word"] == "COULD NOT JUDGE", said
    # Where others use the machine, its figures are too noisy before anybody compares them.
    assert suite.decision()["code"] == "nothing-to-compare" or NOISE & suite.evidence(), said
    suite.write_references(site / "references")

    assert virtual("fault", "slow-link", "n3", "100mbit").returncode == 0
    status, said = gate(virtual, suite, site)
    assert virtual("fault", "mend", "n3").returncode == 0
    if status == 2 and suite.too_busy_to_judge():
        pytest.skip(f"the machine is too busy to find a fault on it: {suite.decision()}")
    assert status == 1, said
    assert suite.decision()["word"] == "STAY CLOSED"
    assert any("node n3: " in reason for reason in suite.decision()["because"]), said

    for _ in range(MOST_TRIES):
        status, said = gate(virtual, suite, site)
        if status != 2 or not suite.too_busy_to_judge():
            break
    if status == 2 and suite.too_busy_to_judge():
        pytest.skip(f"the machine is too busy to open anything on it: {suite.decision()}")
    assert status == 0, said
    assert [one["judged"] for one in suite.decision()["must_be_judged"]] == [True]
    assert sum("waived by the site" in one for one in suite.decision()["waived"]) == 2
    assert "\nclustergate gate: exit status 0: OPEN\n" in f"\n{said}"
    decisions = list((suite.home / "results" / "runs").glob("*/gate.json"))
    pages = list((suite.home / "results" / "runs").glob("*/gate.html"))
    assert len(pages) == len(decisions) >= 3
