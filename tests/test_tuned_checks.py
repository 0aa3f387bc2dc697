"""HPL and HPCC as the tuning file says, run with real MPI."""

import dataclasses
import re

import pytest

from clustergate.machine.node import read_node
from clustergate.stacks.manifest import read_manifest
from clustergate.tuning.file import HplTuning, model_of, write_tunings

pytestmark = pytest.mark.mpi

HPL = ("-n", "HplCheck", "-p", "mpich", "-S", "HplCheck.n=1000")


@pytest.fixture
def tuning(suite):
    """Return a tuning of this node: one rank with a BLAS thread on each core."""
    node = read_node()
    assert node.usable_cores is not None
    return HplTuning(
        date="2026-11-21",
        build_key=read_manifest(suite.home, "mpich").build_key,
        node_model=model_of(node),
        cores=node.usable_cores,
        ranks=1,
        cores_per_rank=node.usable_cores,
        p=1,
        q=1,
        nb=40,
        n=1000,
        gflops=1.0,
        pfact=2,
        bcast=3,
    )


def write(suite, tuning):
    write_tunings(suite.home / "tuning" / "hpl-local.yaml", {"mpich": tuning})


def only_record(suite):
    (record,) = suite.records()
    assert record["complaints"] == []
    return record


def hpl_conditions(record):
    (sample,) = [s for s in record["samples"] if s["metric"] == "performance_gflops"]
    return {name: sample["conditions"][name] for name in ("nb", "p", "q", "pfact", "bcast")}


def line_of_input(record, label):
    found = re.search(rf"^(\S+) +{label}", record["command"], re.MULTILINE)
    assert found is not None
    return found[1]


def test_hpl_runs_as_tuned_and_proves_it(suite, tuning, old_kernel):
    asked, taken = old_kernel
    variables = {"OPENBLAS_CORETYPE": asked, "GLIBC_TUNABLES": "glibc.malloc.mmap_max=0"}
    write(suite, dataclasses.replace(tuning, environment=variables))
    # What the shell brings along is removed, what the tuning sets stays.
    suite.replace_program(
        "mpich",
        "xhpl",
        '[ "$GLIBC_TUNABLES" = glibc.malloc.mmap_max=0 ] || exit 9; exec "$real"',
    )
    ended = suite.reframe(*HPL, "-r", OPENBLAS_CORETYPE="Prescott", GLIBC_TUNABLES="a=b")
    assert ended.returncode == 0, ended.stdout
    record = only_record(suite)
    assert hpl_conditions(record) == {"nb": 40, "p": 1, "q": 1, "pfact": "Right", "bcast": "2ringM"}
    assert line_of_input(record, "NBs") == "40"
    assert line_of_input(record, "PFACTs") == "2"
    assert record["conditions"]["ranks"] == 1
    assert record["conditions"]["cores_per_rank"] == tuning.cores
    assert record["conditions"]["settings"] == "n=1000,tuned=yes"
    assert f"OPENBLAS_CORETYPE={asked}" in record["command"]
    assert record["details"]["proof"]["blas"]["threads"] == tuning.cores
    # The ranks computed with the tuned kernels, and DGEMM beside them did, too.
    assert record["details"]["proof"]["blas"]["kernel"] == taken
    dgemm = [peak["conditions"] for peak in record["peaks"] if peak["benchmark"] == "dgemm"]
    assert {(peak["kernel"], peak["k"]) for peak in dgemm} == {(taken, 40)}
    assert any("as tuned on 2026-11-21" in note for note in record["notes"])


@pytest.mark.long
def test_what_is_set_by_hand_wins(suite, tuning):
    write(suite, tuning)
    ended = suite.reframe(*HPL, "-S", "nb=56", "-S", "HplCheck.ranks=2", "-r")
    assert ended.returncode == 0, ended.stdout
    record = only_record(suite)
    assert hpl_conditions(record) == {"nb": 56, "p": 1, "q": 2, "pfact": "Right", "bcast": "2ringM"}
    assert (record["conditions"]["ranks"], record["conditions"]["cores_per_rank"]) == (2, 1)
    assert record["conditions"]["settings"] == "n=1000,tuned=yes,nb=56"


@pytest.mark.long
def test_a_tuning_can_be_left_aside(suite, tuning):
    write(suite, tuning)
    ended = suite.reframe(*HPL, "-S", "HplCheck.tuned=no", "-r")
    assert ended.returncode == 0, ended.stdout
    record = only_record(suite)
    assert hpl_conditions(record)["nb"] == 192
    assert record["conditions"]["settings"] == "n=1000"


@pytest.mark.long
def test_a_tuning_of_another_build_is_told_and_not_used(suite, tuning):
    write(suite, dataclasses.replace(tuning, build_key="another"))
    ended = suite.check(*HPL)
    record = only_record(suite)
    assert hpl_conditions(record)["nb"] == 192
    assert record["conditions"]["settings"] == "n=1000"
    (told,) = [line for line in ended.stdout.splitlines() if "hpl-local.yaml" in line]
    assert "clustergate tune hpl" in told


@pytest.mark.long
def test_hpcc_takes_what_was_tuned_for_its_layout(suite, tuning):
    cores = tuning.cores
    alike = dataclasses.replace(tuning, ranks=cores, cores_per_rank=1, p=cores, q=1)
    write(suite, alike)
    hpcc = ("-n", "HpccCheck", "-p", "mpich", "-S", "HpccCheck.n=500", "-r")
    assert suite.reframe(*hpcc).returncode == 0
    record = only_record(suite)
    assert record["conditions"]["settings"] == "n=500,tuned=yes"
    assert line_of_input(record, "NBs") == "40"
    assert line_of_input(record, "Ps") == str(cores)


def test_a_damaged_tuning_file_is_no_silent_default(suite, tuning):
    write(suite, tuning)
    path = suite.home / "tuning" / "hpl-local.yaml"
    path.write_text(path.read_text().replace("nb: 40", "nb: forty"))
    ended = suite.check(*HPL)
    assert ended.returncode == 2
    assert re.search(r"hpl-local\.yaml:\d+: ", suite.facts("case.failed-in-phase")["why"])


@pytest.mark.long
def test_a_changed_setting_is_told(suite):
    options = ("-n", "ImbMpi1Check", "-p", "mpich", "-S", "benchmarks=PingPong", "-r")
    assert suite.reframe(*options).returncode == 0
    assert only_record(suite)["conditions"]["settings"] == "benchmarks=['PingPong']"
