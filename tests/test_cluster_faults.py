"""Faults by the dozen on a virtual cluster with a real Slurm, and whether the suite names them.

Each row injects one kind, lets the suite run as a site would, and is counted: named rightly, in
doubt with the right suspect, in doubt without one, named wrongly, or passed. The count and the
seconds stand at the end of the output; BUSY=N lets N other programs run meanwhile. The nodes share
one machine, so faults of speed are much larger than its noise.
"""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from clustergate.launch.hostfiles import HostfileError, expand
from clustergate.stacks.manifest import read_manifest
from tests.test_on_virtual_cluster import (
    ACROSS,
    SITE,
    OnCluster,
    cluster,
    failure,
    fault,
    named,
    on_cluster,
    virtual_cluster,
)

__all__ = ["cluster", "fault", "on_cluster"]

Inflict = Callable[..., None]
Run = Callable[[OnCluster, Callable[[], None]], tuple[bool, str]]
"""Runs the suite, calls for the fault when its time has come; whether all was well, and what was
said."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault: the words that inflict it, on whom, how the suite runs, what names it.

    ``suspected`` is what says at least in doubt where it lies. ``share`` is that of a core which is
    left to the node: beside so many others that no node has more, it is like the rest.
    """

    kind: str
    words: Sequence[str] | Callable[[OnCluster], Sequence[str]]
    run: Run
    names: Sequence[str]
    suspected: str = ""
    nodes: str = ""
    share: float = 0.0


def checked(partition: str = "srun", *options: str, **choice: Any) -> Run:
    """Run a small HPL, or what is chosen, across two nodes on a partition."""

    def run(on: OnCluster, begin: Callable[[], None]) -> tuple[bool, str]:
        vars(on).update(choice, partition=partition)
        begin()
        _, said = on.run(*(options or (*ACROSS, "-S", "n=500")))
        return not failure(said), said

    return run


def in_the_middle(on: OnCluster, begin: Callable[[], None]) -> tuple[bool, str]:
    """Break something while the ranks of HPL run, on the two nodes that must be theirs."""
    on.wishes = ["--nodes", "n[1-2]"]
    _, said = on.hpl_with("sleep 60", begin)
    return not failure(said), said


def compared(on: OnCluster, begin: Callable[[], None]) -> tuple[bool, str]:
    """Run HPL on all nodes and compare these."""
    begin()
    _, said = on.run("-S", "ranks=4", *ACROSS[2:], "-S", "n=500")
    found = on.call("fleet")
    return not failure(said) and found.returncode == 0, said + found.stdout + found.stderr


def screened(on: OnCluster, begin: Callable[[], None]) -> tuple[bool, str]:
    """Screen nodes and links, without HPL."""
    begin()
    words = ["--site", str(SITE), "--partition", "ssh", "--stack", "intel-mpi", "--hpl", "0"]
    ended = on.call("screen", *words, "--budget", "5m")
    return ended.returncode == 0, ended.stdout + ended.stderr


def with_script(script: str, run: Run) -> Run:
    """Let the ranks of MPICH's HPL run a script first."""

    def with_it(on: OnCluster, begin: Callable[[], None]) -> tuple[bool, str]:
        on.suite.replace_program("mpich", "xhpl", f'{script}\nexec "$real"')
        return run(on, begin)

    return with_it


def with_site(old: str, new: str, run: Run) -> Run:
    """Let the site config say something else."""

    def with_it(on: OnCluster, begin: Callable[[], None]) -> tuple[bool, str]:
        text = SITE.read_text()
        assert old in text
        on.site = on.home / "site.py"
        on.site.write_text(text.replace(old, new))
        return run(on, begin)

    return with_it


def with_alias(on: OnCluster, begin: Callable[[], None]) -> tuple[bool, str]:
    """Name the first node twice in the hostfile, by its name and by its address."""
    address = virtual_cluster("run", "n1", "getent", "hosts", "n1").stdout.split()[0]
    (on.home / "hostfiles").mkdir()
    listed = f"n1 slots=2\n{address} slots=2\nn[3-4] slots=2\n"
    (on.home / "hostfiles" / "virtual-cluster.txt").write_text(listed)
    on.variables = {"CLUSTERGATE_SITE_FOLDER": str(on.home)}
    return checked("ssh")(on, begin)


def other_mpi(on: OnCluster) -> Sequence[str]:
    """Return how a node gets Intel's library where the others have MPICH's."""
    here, other = (read_manifest(on.home, stack).mpi_library for stack in ("mpich", "intel-mpi"))
    return ["other-file", "n2", f"{here}={other}"]


def with_clock_ahead(on: OnCluster, begin: Callable[[], None]) -> tuple[bool, str]:
    """Let the ranks of one node see a later time of day.

    By a library, since no namespace has a time of day of its own; so that is named as well.
    """
    source, library = on.home / "ahead.c", on.home / "ahead.so"
    source.write_text(AHEAD)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    script = f'case "$(hostname)" in n2) export LD_PRELOAD="{library}:$LD_PRELOAD";; esac'
    return with_script(script, checked())(on, begin)


def spool(node: str) -> str:
    return f"/var/tmp/clustergate-{named()['VIRTUAL_CLUSTER']}/spool/{node}"


# It stops once it has been initialised, in the middle of its work, and as what is stuck in the
# kernel it answers no signal: Slurm sends the one to continue before the one to end.
STILL = """\
case "$(hostname)" in n2)
    (while ! ls "$CLUSTERGATE_PROOF_DIR"/rank-n2-* >/dev/null 2>&1; do sleep 0.05; done
     kill -STOP $$) &
    exec env --block-signal=TERM "$real";;
esac"""
AHEAD = """\
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    int status = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME)
        now->tv_sec += 3600;
    return status;
}
"""
PINGPONG = ("-S", "benchmarks=PingPong", "-S", "launches=1")
SOON = ("-S", "longest_call_s=20")
HUNG = 'case "$(hostname)" in n2) exec sleep 600;; esac'
NO_LINE = "Slurm does not use n2: down"

FAULTS = [
    Fault(
        "slow link",
        ["slow-link", "n3", "100mbit"],
        screened,
        [r"node n3 \(confidence [^)]*\): .*bandwidth"],
    ),
    Fault(
        "slow link, one way",
        ["one-way-link", "n3", "100mbit"],
        screened,
        [r"node n3 \(confidence [^)]*\): .*bandwidth"],
    ),
    Fault(
        "link that loses packets",
        *(["loss", "n3", "20"], screened, [r"node n3 \(confidence [^)]*\): "]),
        # A launch over it takes up to a minute, so that few fit into the budget.
        "slow with most partners, but too few of them to be sure: n3$",
    ),
    Fault(
        "dead link",
        ["link-down", "n2"],
        checked("ssh"),
        ["first node with an error: ssh: connect to host n2 port 22"],
    ),
    Fault(
        "dead link, screened",
        ["link-down", "n4"],
        screened,
        [r"node n4 \(confidence [^)]*\): failed"],
    ),
    Fault("wrong MTU", ["mtu", "n3"], compared, [r"n3 \(1\).*mtu 1500 bytes -> 1280"]),
    Fault(
        "slow node",
        *(["slow-node", "n2", "10"], screened, [r"node n2 \(confidence [^)]*\): .*by itself"]),
        # Its peaks take a minute each time, so that few fit into the budget.
        r"slow, (or slow at times, )?but too few launches to be sure: n2$",
    ),
    Fault(
        "throttled node",
        ["slow-node", "n2", "25"],
        screened,
        [r"node n2 \(confidence [^)]*\): "],
        share=0.25,
    ),
    Fault(
        # The nodes share the machine's counters, so it cannot be told to be on one of them alone.
        "stray processes",
        ["stray", "n1", "4"],
        checked("srun"),
        ["yes"],
        r"others used [\d.]+ of 2 cores of n1",
    ),
    Fault(
        "full disk",
        lambda _: ["full", "n2", spool("n2")],
        checked("srun"),
        ["No space left on device"],
        "n2",
    ),
    Fault(
        "missing mount",
        lambda on: ["missing", "n2", str(on.home)],
        checked("srun"),
        ["n2"],
    ),
    Fault(
        # The launcher waits for it without end: srun goes on beside the other node.
        "node without the stack",
        lambda on: ["missing", "n2", read_manifest(on.home, "mpich").mpi_prefix],
        checked("mpirun"),
        ["n2: error: execve.*No such file", "1 of 2 nodes started no process within 60 s"],
    ),
    Fault(
        "wrong kernel parameter",
        ["sysctl", "n3", "net.ipv4.tcp_rmem=4096 65536 1048576"],
        compared,
        [r"n3 \(1\).*tcp receive buffer"],
    ),
    Fault("wrong library", other_mpi, checked("srun"), ["n2"]),
    Fault(
        "clock that is ahead",
        [],
        with_clock_ahead,
        ["n2.*ahead.so was preloaded", "the time of day on n2 is 3.* s ahead of that on n1"],
        nodes="n2",
    ),
    Fault(
        "sshd that was killed",
        ["kill-sshd", "n2"],
        checked("ssh"),
        ["first node with an error: ssh: connect to host n2 port 22: Connection refused"],
    ),
    Fault(
        "slurmd that was killed",
        ["kill-slurmd", "n2"],
        in_the_middle,
        ["one of its nodes failed", NO_LINE],
    ),
    Fault(
        "accounting that was killed",
        ["accounting-down", "head"],
        checked(),
        [
            r"HPL with mpich\b.*: .*run session stopped: .*sacct: error: ",
            "0 of 3 benchmarks ran",
        ],
    ),
    Fault(
        "drained node",
        ["drain", "n[2-4]", "broken fan"],
        checked(),
        # A node that still ends what ran there is draining.
        ["DRAINED|UnavailableNodes", r"Slurm does not use n\S*: drain(ed|ing), broken fan"],
    ),
    Fault("vanishing node", ["crash", "n2"], in_the_middle, ["one of its nodes failed", NO_LINE]),
    Fault(
        "rank that hangs before MPI_Init",
        [],
        with_script(HUNG, checked("srun", *ACROSS, "-S", "n=500", *SOON)),
        [
            r"no progress for \d+ s: 1 rank on n1 waits in MPI_Init, 1 of 2 ranks told nothing",
            "it waited for ranks that never reached MPI_Init; those that did: 0 of 1 on n2",
        ],
        nodes="n2",
    ),
    Fault(
        "rank that stands still",
        [],
        with_script(STILL, checked("srun", *ACROSS, "-S", "n=8000", *SOON)),
        [r"no progress for \d+ s: (rank 1|1 rank) on n2 is not heard of any more, rank 0 on n1 "],
        nodes="n2",
    ),
    Fault(
        "time limit that is too short",
        [],
        with_script("sleep 300", checked("srun", *ACROSS, "-S", "n=500", "-S", "time_limit=1m")),
        [r"\(TIMEOUT\): its time limit was reached, so .* or the limit is too short"],
    ),
    Fault("node under two names", [], with_alias, ["HplCheck(.|\n)*n1"], nodes="n1"),
    Fault(
        "wrong process manager interface",
        [],
        with_site(
            'stack("openmpi")',
            'stack("openmpi", extras={"pmi": "pmi2"})',
            checked("srun", stack="openmpi"),
        ),
        ["rank 0 of 1, not one of 2", "srun --mpi="],
    ),
    Fault(
        "fabric that is another",
        [],
        with_site(
            '["eth0"]',
            '["mlx5_0"]',
            checked(
                *("srun", *PINGPONG),
                check="ImbMpi1Check",
                variables={"CLUSTERGATE_PROCESS_COUNTS": "2"},
            ),
        ),
        ["0.0 MB through mlx5_0, the fabric of this partition"],
    ),
    # The last: nodes that could not be asked meanwhile do not answer for some time.
    Fault("munge that was killed", ["munge-down", "head"], checked(), ["(?i)munge"]),
]

RIGHT, DOUBT, UNKNOWN = "named rightly", "in doubt, right suspect", "in doubt, no suspect"
WRONG, PASSED = "named wrongly", "passed"
ACCUSATIONS = (
    r"(?:node|part of the links of node) (n[\d,\[\]-]+) \(confidence ",
    r"Slurm does not use (\S+?):",
    r"complains of: .* to host (n\d)\b",
    r"^ *[A-Z] +(n\S+) \(\d+\) ",
)


def verdict(row: Fault, culprits: set[str], is_well: bool, said: str) -> str:
    """Return what the suite made of a fault of these nodes."""
    accused = {name for pattern in ACCUSATIONS for name in re.findall(pattern, said, re.M)}
    if set().union(*map(nodes_of, accused)) - culprits:
        return WRONG
    if all(re.search(pattern, said) for pattern in row.names):
        return RIGHT
    if row.suspected and re.search(row.suspected, said, re.M):
        return DOUBT
    return PASSED if is_well else UNKNOWN


def nodes_of(text: str) -> set[str]:
    try:
        return set(expand(text))
    except HostfileError:
        return {text}


@pytest.fixture(scope="module")
def others() -> Iterator[None]:
    """Let as many other programs run as BUSY says.

    A node's group has the share of one process of niceness 0, whatever that of the tests is.
    """
    busy = [subprocess.Popen(["yes"], stdout=subprocess.DEVNULL) for _ in range(others_wanted())]
    for process in busy:
        os.setpriority(os.PRIO_PROCESS, process.pid, 0)
    yield
    for process in busy:
        process.kill()
        process.wait()


def others_wanted() -> int:
    return int(os.environ.get("BUSY", "0"))


@pytest.mark.cluster
@pytest.mark.mpi
@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row.kind.replace(" ", "-"))
def test_a_fault_is_named(
    on_cluster: OnCluster,
    fault: Inflict,
    others: None,
    row: Fault,
    faults_told: list[tuple[str, str, float]],
) -> None:
    words = row.words(on_cluster) if callable(row.words) else row.words
    of = row.nodes or (words[1] if words else "")
    begun = time.monotonic()
    is_well, said = row.run(on_cluster, lambda: inflict(fault, words))
    print(said)
    told = verdict(row, nodes_of(of), is_well, said)
    faults_told.append((row.kind, told, time.monotonic() - begun))
    if told == UNKNOWN and (os.cpu_count() or 1) / os.getloadavg()[0] < 2 * row.share:
        pytest.skip(f"others leave no node more than {row.share:g} of a core")
    assert told in (RIGHT, DOUBT), said


def inflict(fault: Inflict, words: Sequence[str]) -> None:
    """Inflict a fault on each of its nodes, if it is one of the cluster's."""
    for node in expand(words[1]) if words else ():
        fault(words[0], node, *words[2:])


def test_a_fault_is_counted_as_what_was_said_of_it() -> None:
    row = Fault("slow", ["slow-link", "n3"], screened, [FAULTS[0].names[0]], "n3")
    for said, is_well, told in (
        (" ✗ FAULTS FOUND: node n3 (confidence 99 %): bandwidth 9 times lower", False, RIGHT),
        ("   fault: node n1 (confidence above 99.99 %): bandwidth 9 times lower", False, WRONG),
        (" A     n1 (1)    mtu 1500 -> 1280", False, WRONG),
        ("Slurm does not use n[2-3]: down", False, WRONG),
        ("bandwidth: slow with most partners: n3", False, DOUBT),
        ("it failed", False, UNKNOWN),
        ("", True, PASSED),
    ):
        assert verdict(row, {"n3"}, is_well, said) == told
