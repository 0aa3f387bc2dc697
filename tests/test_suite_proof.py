"""Somebody's MPI test that proves its ranks, run by ReFrame's own launcher, and what is claimed."""

import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clustergate.core.model import Launch, Verdict
from clustergate.judge.history.node_states import digest_of, keep_states
from clustergate.launch.disturbance import NODE_SHARED
from clustergate.launch.proof.ranks import PROOF_NO_RECORD, check_proofs, read_proofs
from clustergate.report.summary import status_of
from clustergate.stacks.manifest import read_manifest
from clustergate.suites import reports
from clustergate.suites.proving import asked_of
from clustergate.suites.sessions import Proven, as_text, from_text
from tests.conftest import PATIENCE_S
from tests.test_proof_library import compile_
from tests.test_suite_judging import figure, judged, result, session, sessions

REFRAME = Path(sys.executable).parent / "reframe"
# It measures a message to and fro, 0 to 1, and what that takes in microseconds.
PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, trips = 20000;
    char byte = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double begun = MPI_Wtime();
    for (int i = 0; size > 1 && rank < 2 && i < trips; i++) {
        if (rank == 0) {
            MPI_Send(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
    }
    if (rank == 0)
        printf("round trip %.4f us\\n", 1e6 * (MPI_Wtime() - begun) / trips);
    return MPI_Finalize();
}
"""
TEST = """\
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, sanity_function

import clustergate


@rfm.simple_test
class round_trip(clustergate.Judged, rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = os.environ["PROGRAM"]
    num_tasks = 2
    prove_ranks = True
    job_launches = int(os.environ.get("LAUNCHES", "1"))

    @sanity_function
    def ran(self):
        return sn.assert_found("round trip", self.stdout)

    @performance_function("us")
    def latency(self):
        return sn.extractsingle(r"round trip (\\S+) us", self.stdout, 1, float)
"""
SITE = """\
site_configuration = {
    "systems": [
        {
            "name": "here",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "cpu",
                    "scheduler": "local",
                    "launcher": LAUNCHER,
                    "environs": ["mpi"],
                }
            ],
        }
    ],
    "environments": [{"name": "mpi", "cc": "mpicc"}],
}
"""


@pytest.fixture(scope="module")
def desk(stacks, tmp_path_factory):
    """Return a folder with the test and its program, and how to run it with a launcher."""
    home = tmp_path_factory.mktemp("proof")
    manifest = read_manifest(stacks, "mpich")
    (home / "round_trip.c").write_text(PROGRAM)
    (home / "round_trip.py").write_text(TEST)
    compile_(f"{manifest.mpi_prefix}/bin/mpicc", home / "round_trip.c", "-o", home / "round_trip")
    own = {k: v for k, v in os.environ.items() if not k.startswith(("RFM_", "CLUSTERGATE"))}

    def run(program=home / "round_trip", launcher="mpirun", **variables):
        (home / "site.py").write_text(SITE.replace("LAUNCHER", repr(launcher)))
        ended = subprocess.run(
            [REFRAME, "-C", "site.py", f"--prefix={home}/out", "-c", "round_trip.py", "-r"],
            cwd=home,
            env={
                **own,
                "HOME": str(home),
                "PROGRAM": str(program),
                "PATH": f"{manifest.mpi_prefix}/bin:{own['PATH']}",
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        newest = home / ".reframe" / "reports" / "latest.json"
        (result,) = reports.read_report(newest).results
        return result, ended.stdout

    return home, run


@pytest.mark.mpi
def test_ranks_prove_their_library_nodes_and_cores(desk):
    home, run = desk
    result, printed = run()
    assert result.result == "pass", printed
    proven = result.proof
    assert proven is not None
    assert proven.unproven == ()
    proof = proven.details["proof"]
    assert "MPICH" in proof["library_version"]
    assert proof["hosts"] == [os.uname().nodename]
    (launch,) = proven.launches
    assert launch.seconds > 0
    assert launch.lost_cores is not None
    assert proven.details["node_states"]
    whole = json.loads((next(home.rglob("out/output/**/kept")) / "proof.json").read_text())
    assert [one["rank"] for one in whole["ranks"]] == [0, 1]
    assert all(one["cores"] for one in whole["ranks"])


@pytest.mark.mpi
def test_each_launch_of_a_job_is_proven_and_measured(desk):
    _, run = desk
    result, printed = run(LAUNCHES="3")
    assert result.result == "pass", printed
    assert [one.order for one in result.proof.launches] == [0, 1, 2]
    values = result.proof.values["latency"]
    assert len(set(values)) == 3
    assert result.values[0].value == values[0]


@pytest.mark.mpi
def test_ranks_that_each_run_alone_fail_the_test(desk, stacks):
    home, run = desk
    # As the launcher of another MPI does it.
    shim = home / "alone" / "mpirun"
    shim.parent.mkdir()
    shim.write_text('#!/bin/sh\nshift 2\n"$@" &\n"$@"\nwait\n')
    shim.chmod(0o755)
    mpich = read_manifest(stacks, "mpich").mpi_prefix
    result, printed = run(PATH=f"{shim.parent}:{mpich}/bin:{os.environ['PATH']}")
    assert (result.result, result.phase) == ("fail", "sanity"), printed
    assert "2 processes each believe they are rank 0 of 1, not one of 2" in result.reason
    assert result.proof.details["node_states"]
    assert [one.code for one in result.proof.complaints] == ["proof.singletons"]
    assert not result.proof.is_proven


@pytest.mark.mpi
@pytest.mark.parametrize("kind", ["static", "no MPI"])
def test_what_cannot_be_proven_passes_and_claims_nothing(desk, kind):
    home, run = desk
    source, program = home / "plain.c", home / "plain"
    source.write_text(
        '#include <stdio.h>\nint main(void) { return puts("round trip 1.5 us") < 0; }\n'
    )
    compile_("cc", *(["-static"] if kind == "static" else []), source, "-o", program)
    result, printed = run(program)
    assert result.result == "pass", printed
    proven = result.proof
    assert [one.code for one in proven.unproven] == ["proof.no-record"]
    assert proven.launches == ()
    assert proven.details["proof"] == {}


@pytest.mark.mpi
def test_a_job_without_mpicc_claims_nothing(desk, tmp_path):
    """Also on a machine that has one: all programs but that are in a folder of links."""
    _, run = desk
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            link = tmp_path / program.name
            if not program.name.startswith("mpicc") and not os.path.lexists(link):
                link.symlink_to(program)
    result, printed = run("echo round trip 1.5 us", "local", PATH=str(tmp_path))
    assert result.result == "pass", printed
    assert result.proof.unproven[0].code == "suite.unproven-mpicc"


# ------------------------------------------------------------------------------------- plain data


def proved(rate, day, **of):
    """Return a result whose ranks were asked: what they proved, by fields of Proven."""
    return result("test3", [("rate", rate, "GB/s")], day, proof=Proven(**of))


def with_newest(*results, count=20):
    newest, *before = sessions(count=count)
    others = [one for one in newest.results if one.test != "test3"]
    return [session(count - 1, [*others, *results]), *before]


def launch(order, *, disturbed=False):
    why = NODE_SHARED(host="n1", lost_cores=0.5, cores=2) if disturbed else None
    return Launch(order, 1.7e9 + order, 10.0, "n1", 0.5 if disturbed else 0.0, 0.0, disturbed=why)


def test_what_a_report_keeps_is_read_again_and_divides_no_column():
    why = PROOF_NO_RECORD()
    launches = (launch(0, disturbed=True),)
    details = {"proof": {"x": "|"}}
    of = Proven(launches, {"a|b": (1.5, 2.5)}, (why,), (why,), details)
    text = as_text(of)
    assert "|" not in text
    assert "\n" not in text
    assert from_text(text) == of
    assert from_text("") is None


def test_a_disturbed_launch_is_slow_for_no_reason_of_the_test():
    slow = judged(with_newest(proved(80.0, 19, launches=(launch(0),))))
    assert status_of(slow) == 2
    assert "1 of 1 test proved library, nodes and cores" in slow.session
    run = judged(with_newest(proved(80.0, 19, launches=(launch(0, disturbed=True),))))
    assert figure(run).judgement.verdict is Verdict.INCONCLUSIVE
    assert not run.evidence
    assert any("was disturbed and is not counted" in note for note in run.notes)


def test_of_several_launches_the_best_undisturbed_one_counts():
    values = {"rate": (80.0, 100.0, 130.0)}
    launches = (launch(0), launch(1), launch(2, disturbed=True))
    run = judged(with_newest(proved(80.0, 19, launches=launches, values=values)))
    assert figure(run).estimate.value == 100.0
    assert figure(run).judgement.verdict is Verdict.PASS


def test_launches_that_nobody_proves_are_launches():
    values = {"rate": (80.0, 100.0)}
    repeated = [
        dataclasses.replace(proved(80.0, 19, values=values), repeat=k, nodes=("n1",))
        for k in range(2)
    ]
    run = judged(with_newest(*repeated))
    assert figure(run).estimate.value == 100.0
    assert figure(run).judgement.verdict is Verdict.PASS
    assert "proved" not in run.session


def test_what_is_not_proven_is_judged_and_told_once():
    run = judged(with_newest(proved(99.9, 19, unproven=(PROOF_NO_RECORD(),))))
    assert status_of(run) == 0
    assert figure(run).judgement.verdict is Verdict.PASS
    assert "0 of 1 test proved" in run.session
    (note,) = [one for one in run.notes if "proved nothing of their ranks: test3" in one]
    assert "linked statically" in note
    # Nobody asked the others.
    assert "proved" not in judged(sessions()).session


def test_what_a_test_does_not_ask_is_not_held_against_it(data):
    ranks = read_proofs(data / "proof" / "mpich-dgemm")

    def complaints(**asks: Any) -> list[str]:
        of: dict[str, Any] = {
            **{"ranks": len(ranks), "ranks_per_node": None, "cores_per_rank": None},
            **{"hosts": (), "own_cores": True, "by_srun": False},
            **asks,
        }
        asked = replace(asked_of(**of), nonce=str(ranks[0].nonce))
        return [one.code for one in check_proofs(ranks, asked)]

    assert complaints() == []
    assert complaints(ranks=len(ranks) + 1) == ["proof.other-size"]
    assert complaints(ranks_per_node=1) == ["proof.one-node"]
    assert complaints(hosts=("n99",)) == ["proof.strange-hosts"]
    assert complaints(cores_per_rank=64) == ["proof.few-cores"]


def test_what_contradicts_the_proof_is_no_proof_and_no_figure():
    why = PROOF_NO_RECORD()
    run = judged(with_newest(proved(99.9, 19, launches=(launch(0),), complaints=(why,))))
    assert "0 of 1 test proved" in run.session
    (case,) = [one for one in run.cases if one.check == "test3"]
    assert case.reasons == (why,)
    assert status_of(run) == 2


def test_a_node_that_changed_is_told_with_what_changed(tmp_path):
    digests = []
    for value in ("5.14.0", "5.14.1"):
        said = tmp_path / "said"
        said.mkdir(exist_ok=True)
        (said / "n1").write_text(f"kernel.release\t{value}\n")
        digests.append(digest_of(keep_states(said, tmp_path)["n1"]))

    def told(digest):
        return {"details": {"node_states": {"n1": digest}}, "launches": (launch(0),)}

    before = with_newest(proved(100.0, 19, **told(digests[0])))
    newest = session(20, [proved(100.0, 20, **told(digests[1]))])
    run = judged([newest, *before], place=str(tmp_path))
    assert len(run.changes) == 1
    assert "5.14.0" in run.changes[0]
    assert "5.14.1" in run.changes[0]
    (gone,) = judged([newest, *before], place=str(tmp_path / "elsewhere" / "results.db")).changes
    assert "n1" in gone
    same = session(20, [proved(100.0, 20, **told(digests[0]))])
    assert judged([same, *before], place=str(tmp_path)).changes == ()
