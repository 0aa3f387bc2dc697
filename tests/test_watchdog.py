"""A launch that hangs is ended and told; one that is silent and healthy is not."""

import dataclasses
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from clustergate.launch.proof.progress import Rank, Report, parse_report
from clustergate.launch.watchdog import Patience, Watch
from clustergate.stacks.manifest import read_manifest
from tests.conftest import Suite
from tests.test_proof_library import compile_

EVERY_S = 10.0
PATIENCE = Patience(90.0, 600.0, ranks=2, several_nodes=True)
N1 = Rank(0, 11, 7, 0, inside=True, call="MPI_Recv", state="R", cpu_s=5.0)
N2 = Rank(1, 12, 9, 0, inside=True, call="MPI_Allreduce", state="R", cpu_s=5.0)
Change = Callable[[int, Rank], Rank]


def still(look: int, rank: Rank) -> Rank:
    return dataclasses.replace(rank, cpu_s=5.0 + EVERY_S * look)


def seen(
    *changes: Change,
    ranks: Sequence[Rank] = (N1, N2),
    patience: Patience = PATIENCE,
    looks: int = 100,
    printed: Callable[[int], object] = lambda look: "",
    sent_bytes: float = 0.0,
    heard: Callable[[int, Rank], bool] = lambda look, rank: True,
    late_s: float = 0.0,
) -> tuple[float, str]:
    """Return after how many seconds the launch is ended and what is said; (0, "") for never.

    Each rank is on a node of its own, n1 and n2, and changes as the function of its place says.
    """
    watch = Watch(patience, 0.0)
    told: dict[str, Report] = {}
    by_rank = [*changes, *[still] * len(ranks)]
    for look in range(1, looks):
        at_s = EVERY_S * look + (late_s if look > 5 else 0.0)
        for place, rank in enumerate(ranks):
            if heard(look, rank):
                host, now = f"n{place + 1}", by_rank[place](look, rank)
                told[host] = Report(host, look, EVERY_S, (now,))
        if why := watch.look(at_s, printed(look), dict(told), sent_bytes):
            return at_s, str(why).partition("; it was ended")[0]
    return 0.0, ""


def test_ranks_that_all_wait_hang():
    assert seen() == (
        100.0,
        "no progress for 90 s: rank 0 on n1 waits in MPI_Recv, rank 1 on n2 waits in MPI_Allreduce",
    )


def test_a_rank_that_calls_is_healthy():
    def calls(look: int, rank: Rank) -> Rank:
        return dataclasses.replace(still(look, rank), calls=look // 5)

    assert seen(calls) == (0.0, "")


def test_a_launch_that_prints_is_healthy():
    assert seen(printed=lambda look: look // 8) == (0.0, "")


def test_a_call_whose_data_leave_the_node_is_healthy():
    assert seen(sent_bytes=1e8) == (0.0, "")
    alone = dataclasses.replace(PATIENCE, several_nodes=False)
    assert seen(patience=alone, sent_bytes=1e8)[0] == 100.0


def test_a_rank_that_computes_is_waited_for_longer():
    """As in HPCC's SingleDGEMM: one computes, the others wait for it."""
    outside = dataclasses.replace(N1, inside=False)
    assert seen(ranks=(outside, N2), looks=60) == (0.0, "")
    ended_s, why = seen(ranks=(outside, N2))
    assert ended_s == 610.0
    assert "rank 0 on n1 is outside of MPI since MPI_Recv, rank 1 on n2 waits in" in why


def test_a_rank_that_does_nothing_outside_of_mpi_is_not_computing():
    def idle(look: int, rank: Rank) -> Rank:
        return rank

    ended_s, why = seen(idle, ranks=(dataclasses.replace(N1, inside=False, state="D"), N2))
    assert ended_s == 100.0
    assert "rank 0 on n1 does nothing since MPI_Recv" in why


@pytest.mark.parametrize(("state", "word"), [("T", "is stopped"), ("-", "has ended")])
def test_a_rank_that_is_no_more_is_named_first(state: str, word: str):
    gone = dataclasses.replace(N2, inside=False, state=state)
    ended_s, why = seen(still, lambda look, rank: rank, ranks=(N1, gone))
    assert ended_s == 100.0
    assert why.startswith(f"no progress for 90 s: rank 1 on n2 {word}, rank 0 on n1 waits")


def test_a_node_that_tells_nothing_any_more_is_named():
    computes = dataclasses.replace(N2, inside=False)
    ended_s, why = seen(ranks=(N1, computes), heard=lambda look, rank: look < 6 or rank is N1)
    assert ended_s == 140.0
    assert "rank 1 on n2 is not heard of any more" in why


def test_who_only_polls_waits_and_who_polls_now_and_then_computes():
    """As HPL looks for the next panel between two parts of its update."""

    def polls(a_second: float) -> Change:
        return lambda look, rank: dataclasses.replace(
            still(look, rank), call="MPI_Iprobe", polls=int(a_second * EVERY_S * look)
        )

    ended_s, why = seen(polls(1e6))
    assert (ended_s, "rank 0 on n1 polls MPI_Iprobe" in why) == (100.0, True)
    assert seen(polls(10))[0] == 610.0


def test_ranks_of_which_nothing_is_known_are_waited_for_longer():
    ended_s, why = seen(ranks=(), looks=200)
    assert (ended_s, why) == (1810.0, "no progress for 1800 s: 2 of 2 ranks told nothing")
    assert seen(ranks=(N1,))[0] == 610.0


def test_ranks_that_never_come_to_mpi_init_are_missed():
    first = dataclasses.replace(N1, rank=-1, calls=1, call="MPI_Init")
    ended_s, why = seen(ranks=(first,))
    assert ended_s == 190.0
    assert why.endswith("1 rank on n1 waits in MPI_Init, 1 of 2 ranks told nothing")


def test_who_was_stopped_itself_has_seen_nothing():
    """The scheduler suspended the job, or the host the machine: the ranks stood as well."""
    assert seen(late_s=3600.0)[0] == 3600.0 + 150.0


def test_many_ranks_are_told_in_few_words():
    nodes = [
        dataclasses.replace(N2, rank=rank, pid=rank, call="MPI_Barrier") for rank in range(128)
    ]
    patience = dataclasses.replace(PATIENCE, ranks=129)
    first = dataclasses.replace(N1, rank=128)
    _, why = seen(ranks=(*nodes, first), patience=patience)
    assert why.endswith(
        "rank 128 on n129 waits in MPI_Recv, ranks 0-127 on n1, n2, n3 and 125 more wait in "
        "MPI_Barrier"
    )


def test_a_report_that_is_being_written_is_not_taken():
    text = "3 10.000 n1\n0 11 7 0 1 MPI_Recv R 5.00\n1 12 9 2 0 MPI_Iprobe ? 0.00\n3\n"
    report = parse_report(text)
    assert report == Report("n1", 3, 10.0, (N1, Rank(1, 12, 9, 2, False, "MPI_Iprobe")))
    for wrong in ("", text[:-2], text.replace("3\n", "4\n", 1), text + "3\n", text[:20]):
        assert parse_report(wrong) is None


# Rank 0 waits for a message that nobody sends; or all are silent for longer than a call may take,
# between calls, and then the program that was to run does.
PROGRAM = r"""
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
    int rank, one = 1, rounds = atoi(words[1]);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < rounds; i++) {
        usleep(500000);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rounds == 0 && rank == 0)
        MPI_Recv(&one, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (rounds == 0)
        MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Finalize();
}
"""


def compiled(suite: Suite, stack: str) -> Path:
    source, program = suite.home / "silent.c", suite.home / "silent"
    source.write_text(PROGRAM)
    compile_(f"{read_manifest(suite.home, stack).mpi_prefix}/bin/mpicc", source, "-o", program)
    return program


def check(suite: Suite, rounds: int) -> "subprocess.CompletedProcess[str]":
    """Run a check whose program hangs, or is silent for so many halves of a second."""
    program = compiled(suite, "mpich")
    suite.replace_program("mpich", "host_overhead", f"exec {program} {rounds}")
    selection = ("--check=HostOverheadCheck", "--stack=mpich")
    return suite.check("-S", "longest_call_s=2", selection=selection)


@pytest.mark.mpi
def test_a_check_that_hangs_ends_and_names_rank_node_and_call(suite: Suite):
    ended = check(suite, rounds=0)
    assert ended.returncode in (1, 2)
    host = os.uname().nodename
    said = [str(why) for why in suite.reasons("HostOverheadCheck")]
    assert any(
        why.startswith("no progress for ")
        and f"rank 0 on {host} waits in MPI_Recv" in why
        and f"rank 1 on {host} waits in MPI_Allreduce" in why
        for why in said
    ), said
    assert "waits in MPI_Allreduce" in ended.stdout
    assert "mpich" in ended.stdout
    assert not suite.processes()


@pytest.mark.mpi
def test_a_check_that_is_silent_and_healthy_is_not_ended(suite: Suite):
    ended = check(suite, rounds=20)
    assert not any("no progress" in str(why) for why in suite.reasons("HostOverheadCheck"))
    assert "no progress" not in ended.stdout
