"""HPL and HPCC as the site config says, swept, and from a file, run with real MPI."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks.hpl import dat_file
from clustergate.benchmarks.hpl.sizing import HplInput, render_hpl_dat

pytestmark = pytest.mark.mpi

CORES = len(os.sched_getaffinity(0))
HPL = ("-n", "HplCheck", "-p", "mpich", "-S", "HplCheck.n=1000")
SITE = """\
import runpy

from clustergate.core.paths import suite_folder
from clustergate.sites import configuration, stack

local = runpy.run_path(str(suite_folder("site_configs") / "local.py"))["site_configuration"]
system = {{key: local["systems"][0][key] for key in ("descr", "hostnames", "partitions")}}
for partition in system["partitions"]:
    partition.pop("environs")
site_configuration = configuration([{{"name": "local", **system}}], [stack("mpich", hpl={said})])
"""


def site(tmp_path: Path, **said: Any) -> str:
    """Return a site config that says of HPL what is given."""
    path = tmp_path / "tuned.py"
    path.write_text(SITE.format(said=repr(said)), encoding="utf-8")
    return str(path)


def only_record(suite: Any) -> dict[str, Any]:
    (record,) = suite.records()
    assert record["complaints"] == []
    return dict(record)


def hpl_conditions(record: dict[str, Any]) -> dict[str, Any]:
    (sample,) = [s for s in record["samples"] if s["metric"] == "performance_gflops"]
    return {name: sample["conditions"][name] for name in ("nb", "p", "q", "pfact", "bcast")}


def line_of_input(record: dict[str, Any], label: str) -> str:
    match = re.search(rf"^(\S+) +{label}", record["command"], re.MULTILINE)
    assert match is not None
    return match[1]


def test_hpl_runs_as_the_site_config_says_and_proves_it(suite, old_kernel, tmp_path):
    asked, chosen = old_kernel
    variables = {"OPENBLAS_CORETYPE": asked, "GLIBC_TUNABLES": "glibc.malloc.mmap_max=0"}
    config = site(
        tmp_path, nb=40, ranks_per_node=1, grid="1x1", pfact=2, bcast=3, environment=variables
    )
    # What the shell brings along is removed, what the site config says stays.
    suite.replace_program(
        "mpich",
        "xhpl",
        '[ "$GLIBC_TUNABLES" = glibc.malloc.mmap_max=0 ] || exit 9; exec "$real"',
    )
    by_shell = {"OPENBLAS_CORETYPE": "Prescott", "GLIBC_TUNABLES": "a=b"}
    ended = suite.reframe(*HPL, "-r", RFM_CONFIG_FILES=config, **by_shell)
    assert ended.returncode == 0, ended.stdout
    record = only_record(suite)
    assert hpl_conditions(record) == {"nb": 40, "p": 1, "q": 1, "pfact": "Right", "bcast": "2ringM"}
    assert line_of_input(record, "NBs") == "40"
    assert line_of_input(record, "PFACTs") == "2"
    assert record["conditions"]["ranks"] == 1
    assert record["conditions"]["cores_per_rank"] == CORES
    assert record["conditions"]["settings"] == "n=1000,tuned=yes"
    assert f"OPENBLAS_CORETYPE={asked}" in record["command"]
    assert record["details"]["proof"]["blas"]["threads"] == CORES
    # The ranks computed with the kernels asked for, and DGEMM beside them did, too.
    assert record["details"]["proof"]["blas"]["kernel"] == chosen
    dgemm = [peak["conditions"] for peak in record["peaks"] if peak["benchmark"] == "dgemm"]
    assert {(peak["kernel"], peak["k"]) for peak in dgemm} == {(chosen, 40)}
    assert any("as the site config says" in note for note in record["notes"])


@pytest.mark.long
def test_what_is_set_by_hand_wins(suite, tmp_path):
    config = site(tmp_path, nb=40, ranks_per_node=1, grid="1x1", pfact=2, bcast=3)
    options = ("-S", "nb=56", "-S", "HplCheck.ranks=2", "-S", "HplCheck.grid=2x1", "-r")
    ended = suite.reframe(*HPL, *options, RFM_CONFIG_FILES=config)
    assert ended.returncode == 0, ended.stdout
    record = only_record(suite)
    assert hpl_conditions(record) == {"nb": 56, "p": 2, "q": 1, "pfact": "Right", "bcast": "2ringM"}
    assert (record["conditions"]["ranks"], record["conditions"]["cores_per_rank"]) == (2, 1)
    assert record["conditions"]["settings"] == "n=1000,tuned=yes,nb=56,grid=2x1"


@pytest.mark.long
def test_hpcc_takes_what_is_of_its_layout(suite, tmp_path):
    config = site(tmp_path, nb=40, ranks_per_node=CORES, grid=f"{CORES}x1")
    hpcc = ("-n", "HpccCheck", "-p", "mpich", "-S", "HpccCheck.n=500", "-r")
    assert suite.reframe(*hpcc, RFM_CONFIG_FILES=config).returncode == 0
    record = only_record(suite)
    assert record["conditions"]["settings"] == "n=500,tuned=yes"
    assert line_of_input(record, "NBs") == "40"
    assert line_of_input(record, "Ps") == str(CORES)


@pytest.mark.long
def test_references_of_a_tuning_hold_for_what_the_site_config_says(suite, tmp_path):
    config = site(tmp_path, nb=40, ranks_per_node=1, grid="1x1")
    folder = tmp_path / "site" / "references"
    folder.mkdir(parents=True)
    selection = ["--site", config, "--check=HplCheck"]
    suite.check("-S", "n=1000", selection=selection)
    suite.write_references(folder)
    assert "smoke+n=1000,tuned=yes" in (folder / "local.yaml").read_text(encoding="utf-8")
    site_folder = {"CLUSTERGATE_SITE_FOLDER": str(tmp_path / "site")}
    ended = suite.check("-S", "n=1000", selection=selection, **site_folder)
    assert "no references yet" not in ended.stdout + ended.stderr
    assert "NOTHING WRONG FOUND" not in ended.stdout


@pytest.mark.long
def test_a_tuning_file_of_earlier_versions_is_printed_as_a_line(suite):
    tuning = suite.home / "tuning" / "hpl-local.yaml"
    tuning.parent.mkdir()
    entry = {"ranks": 1, "p": 1, "q": 1, "nb": 40, "n": 1000, "pfact": 1, "bcast": 3}
    tuning.write_text(json.dumps({"schema": 1, "stacks": {"mpich": entry}}), encoding="utf-8")
    ended = suite.check(*HPL)
    assert hpl_conditions(only_record(suite))["nb"] == 192
    (said,) = [line for line in ended.stdout.splitlines() if "hpl-local.yaml" in line]
    assert 'hpl={"nb": 40, "ranks_per_node": 1, "grid": "1x1", "bcast": 3}' in said


def test_tuned_is_refused(suite):
    ended = suite.check("-S", "HplCheck.tuned=no", selection=["--check=HplCheck", "--stack=mpich"])
    assert ended.returncode == 2
    assert "the setting tuned was removed" in ended.stdout + ended.stderr
    assert suite.records() == []


@pytest.mark.long
def test_a_sweep_is_cases_of_one_run(suite):
    """Also of what `-S` sets beside it, which has no reference of the default."""
    sweep = ("-P", "HplCheck.nb=96,192", "-P", "HplCheck.grid=1x2,2x1")
    selection = ["--check=HplCheck", "--stack=mpich"]
    ended = suite.check("-S", "HplCheck.n=1000", *sweep, selection=selection)
    assert ended.returncode == 0, ended.stdout
    records = {record["conditions"]["variant"]: record for record in suite.records()}
    assert {one: record["conditions"]["settings"] for one, record in records.items()} == {
        "grid=1x2,nb=96": "n=1000,nb=96",
        "grid=2x1,nb=96": "n=1000,nb=96,grid=2x1",
        "grid=1x2,nb=192": "n=1000",
        "grid=2x1,nb=192": "n=1000,grid=2x1",
    }
    for record in records.values():
        told = hpl_conditions(record)
        assert f"grid={told['p']}x{told['q']},nb={told['nb']}" == record["conditions"]["variant"]
        assert f"mpich {record['conditions']['variant']}" in ended.stdout


@pytest.mark.parametrize(
    ("sweep", "said"),
    [("HplCheck.nbb=96,128", "neither a variable nor"), ("nb=96,128", "CHECK.VARIABLE")],
)
def test_a_sweep_over_what_is_not_there_is_refused(suite, sweep, said):
    ended = suite.check("-P", sweep, selection=["--check=HplCheck", "--stack=mpich"])
    assert ended.returncode == 2
    assert said in ended.stdout + ended.stderr


def test_a_file_is_run_as_it_stands(suite, tmp_path):
    asked = HplInput(n_values=(500, 800), nb_values=(48, 64), p_values=(1,), q_values=(2,))
    file = tmp_path / "HPL.dat"
    file.write_text(render_hpl_dat(asked))
    selection = ["--check=HplCheck", "--stack=mpich"]
    ended = suite.check("-S", f"HplCheck.input={file}", selection=selection)
    assert ended.returncode == 0, ended.stdout
    record = only_record(suite)
    solved = {
        (sample["conditions"]["n"], sample["conditions"]["nb"])
        for sample in record["samples"]
        if sample["metric"] == "performance_gflops"
    }
    assert solved == {(500, 48), (500, 64), (800, 48), (800, 64)}
    assert record["conditions"]["settings"] == f"input={dat_file.read_file(file).digest}"
    assert record["conditions"]["ranks"] == 2
    ended = suite.check("-S", f"HplCheck.input={file}", "-S", "nb=64", selection=selection)
    assert ended.returncode == 2
    assert "contradict each other" in str(suite.facts("case.failed-in-phase")["why"])


@pytest.mark.long
def test_a_changed_setting_is_told(suite):
    options = ("-n", "ImbMpi1Check", "-p", "mpich", "-S", "benchmarks=PingPong", "-r")
    assert suite.reframe(*options).returncode == 0
    assert only_record(suite)["conditions"]["settings"] == "benchmarks=['PingPong']"
