"""The suite on several nodes with a real Slurm: every way to launch, and faults of a cluster.

The nodes share one machine, so no figure is judged by its size, but for faults much larger than
the noise. MVAPICH2 does not run here: it needs InfiniBand, or a build with fabrics=nemesis that no
provider of these tests makes. IMB does not run under Open MPI where its source cannot be fetched;
HPCC stands in for it.
"""

import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from reframe.core.runtime import runtime, temp_runtime

from clustergate.core.paths import checkout
from clustergate.judge.history import node_states
from clustergate.launch.dialects import Layout, srun_options
from clustergate.launch.hostfiles import expand
from clustergate.sites.layouts import layout_on_partition
from clustergate.sites.shape import Shape
from tests import test_job_scripts
from tests.conftest import PATIENCE_S, until
from tests.described_partitions import described

pytestmark = [pytest.mark.cluster, pytest.mark.mpi]

PROGRAM = str(checkout() / "ci" / "virtual-cluster")
SITE = checkout() / "ci" / "virtual_cluster.py"
CLUSTERGATE = str(Path(sys.executable).parent / "clustergate")
# Two ranks, each on a node of its own, and little to compute.
ACROSS = ("-S", "ranks=2", "-S", "placement=one-per-node", "-S", "launches=1")
PARTITIONS = ("srun", "mpirun", "ssh")


def virtual_cluster(*words, which="s"):
    """Run the program for the cluster of these tests; its failure fails the test."""
    ended = subprocess.run(
        [PROGRAM, *words],
        env=named(which=which),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 0, ended.stderr
    return ended


def named(environment=os.environ, which="s"):
    """Return an environment with the name of the cluster of these tests."""
    return {**environment, "VIRTUAL_CLUSTER": f"{which}{os.getpid() % 100000}"}


@pytest.fixture(scope="module")
def cluster():
    """Bring a cluster up for these tests, and remove it."""
    lacking = subprocess.run([PROGRAM, "missing"], capture_output=True, text=True)
    if lacking.returncode:
        pytest.skip(lacking.stderr.strip())
    virtual_cluster("up", "--hours", "1")
    yield
    virtual_cluster("down")


@pytest.fixture
def fault(cluster):
    """Break something until the test ends: call it with a kind and a node."""
    broken = []

    def inflict(kind, node, *value):
        broken.append(node)
        virtual_cluster("fault", kind, node, *value)

    yield inflict
    for node in dict.fromkeys(broken):
        virtual_cluster("fault", "mend", node)


class OnCluster:
    """The suite on the head of the cluster, for some of the partitions and stacks."""

    site = SITE
    check, stack, partition = "HplCheck", "mpich", "srun"
    wishes: Sequence[str] = ()
    under: Sequence[str] = ()

    def __init__(self, suite):
        self.home = suite.home
        self.suite = suite
        self.variables = {}

    def call(self, *words):
        """Run another command of the suite on the head to its end."""
        environment = named(self.suite.environment())
        return subprocess.run(
            [PROGRAM, "run", "head", CLUSTERGATE, *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def command(self, *options):
        """Return the command line of ``clustergate check`` on the head."""
        chosen = ["--site", str(self.site), "--check", self.check, "--stack", self.stack]
        chosen += self.wishes
        system = [f"--system=virtual-cluster:{self.partition}"] if self.partition else []
        here = [PROGRAM, "run", "head", *self.under]
        return [*here, CLUSTERGATE, "check", *chosen, "--", *system, *options]

    def start(self, *options, **variables):
        """Start it."""
        return subprocess.Popen(
            self.command(*options),
            env={**named(self.suite.environment(**variables)), **self.variables},
            cwd=self.home,
            stdout=subprocess.PIPE,
            text=True,
            # Who runs the tests under nohup has it ignored, and so has nsenter.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )

    def resume(self, run_id):
        """Go on with a run that was stopped; return what was said."""
        command = [*self.command()[:5], "--resume", run_id]
        environment = named(self.suite.environment())
        ended = subprocess.run(
            command,
            env=environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        return ended.stdout

    def run(self, *options, **variables):
        """Run it to its end; return its exit status and what it said of what did run."""
        with self.start(*options, **variables) as running:
            said, _ = running.communicate(timeout=PATIENCE_S)
        return running.returncode, without_missing(said)

    def hpl(self, **choice):
        """Run HPL across two nodes; return what its cases left behind, and what was said."""
        for name, value in choice.items():
            setattr(self, name, value)
        _, said = self.run(*ACROSS, "-S", "n=500")
        return self.suite.records(), said

    def hpl_with(self, script, broken):
        """Run HPL whose ranks run a script first; call ``broken`` once they have begun."""
        begun = f'touch {self.home}/begun-"$(hostname)"'
        self.suite.replace_program("mpich", "xhpl", f'{begun}\n{script}\nexec "$real"')
        with self.start(*ACROSS, "-S", "n=500") as running:
            while len(list(self.home.glob("begun-*"))) < 2:
                assert running.poll() is None
                time.sleep(0.1)
            broken()
            said, _ = running.communicate(timeout=PATIENCE_S)
        return self.suite.records(), without_missing(said)


@pytest.fixture
def on_cluster(cluster, suite):
    """Return the suite on the cluster, with a state folder of its own."""
    return OnCluster(suite)


def test_a_node_within_a_reservation_is_mended(cluster):
    """It was waited for until it was idle, which it never is there."""
    reserve = "scontrol", "create", "reservation", "ReservationName=of-it", "Users=root"
    when = "StartTime=now", "Duration=60", "Flags=maint,ignore_jobs", "Nodes=n2"
    virtual_cluster("run", "head", *reserve, *when)
    try:
        virtual_cluster("fault", "drain", "n2")
        virtual_cluster("fault", "mend", "n2")
    finally:
        virtual_cluster("run", "head", "scontrol", "delete", "ReservationName=of-it")


def without_missing(said):
    """Leave the cases of the other partitions out of a summary."""
    return "\n".join(line for line in said.splitlines() if "missing: it should" not in line)


def failure(said):
    """Return what the summary says is wrong with the case of HPL."""
    of = re.compile(r" (✗ FAILED: [^.]*\. |! invalid: )HplCheck with")
    return "\n".join(line for line in said.splitlines() if of.match(line))


@pytest.mark.parametrize("stack", ["mpich", "intel-mpi"])
def test_pingpong_crosses_nodes_with_every_launcher(on_cluster, stack):
    on_cluster.check, on_cluster.stack, on_cluster.partition = "ImbMpi1Check", stack, ""
    options = ("-S", "benchmarks=PingPong", "-S", "launches=1")
    status, said = on_cluster.run(*options, CLUSTERGATE_PROCESS_COUNTS="2")
    assert status == 0, said
    found = {
        (record["partition"], record["conditions"]["nodes"]): record
        for record in on_cluster.suite.records()
    }
    assert set(found) == {(f"virtual-cluster:{name}", n) for name in PARTITIONS for n in (1, 2)}
    for (_, nodes), record in found.items():
        proof = record["details"]["proof"]
        assert record["complaints"] == []
        assert len(proof["hosts"]) == nodes
        assert set(proof["hosts"]) < {"n1", "n2", "n3", "n4"}
        assert len(proof["ranks"]) == 2
        assert "Intel" in proof["library_version"] or stack == "mpich"


def test_open_mpi_crosses_nodes_with_every_launcher(on_cluster):
    records, said = on_cluster.hpl(stack="openmpi", partition="")
    assert {record["partition"].partition(":")[2] for record in records} == set(PARTITIONS)
    for record in records:
        assert record["complaints"] == [], said
        assert len(record["details"]["proof"]["hosts"]) == 2
        assert record["details"]["proof"]["library_version"].startswith("Open MPI v5")


def test_ranks_that_do_not_divide_get_the_nodes_that_they_need(on_cluster):
    _, said = on_cluster.run("-S", "ranks=3", "-S", "n=500", "-S", "launches=1")
    (record,) = on_cluster.suite.records()
    assert record["complaints"] == [], said
    assert [rank["host"] for rank in record["details"]["proof"]["ranks"]] == ["n1", "n1", "n2"]


@pytest.mark.parametrize("stack", ["mpich", "intel-mpi", "openmpi"])
def test_hpcc_runs_whole_across_nodes(on_cluster, stack):
    """With its RandomAccess, of which receives from any source hang where UCX carries MPICH's."""
    on_cluster.check, on_cluster.stack = "HpccCheck", stack
    on_cluster.wishes = ["--mode", "maintenance"]
    _, said = on_cluster.run(*ACROSS, "-S", "n=1000")
    (record,) = on_cluster.suite.records()
    assert record["complaints"] == [], said
    assert record["details"]["proof"]["hosts"] == ["n1", "n2"]
    assert "MPIRandomAccess_GUPs" in {sample["metric"] for sample in record["samples"]}
    (told,) = [note for note in record["notes"] if note.startswith("transport between nodes: ")]
    carried = {"mpich": "MPIR_CVAR_CH4_NETMOD=ofi", "intel-mpi": "FI_PROVIDER=tcp"}
    assert carried.get(stack, "the MPI library's own choice") in told
    assert re.search(r"; the first node sent [1-9][\d.]* MB through eth0$", told)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_changed_node_named_among_all(on_cluster, fault, partition):
    records, said = on_cluster.hpl(partition=partition)
    (record,) = records
    assert record["complaints"] == [], said
    hosts = record["details"]["proof"]["hosts"]
    assert sorted(record["details"]["node_states"]) == hosts
    (run,) = on_cluster.suite.run_folders()
    states = node_states.read_states(run)
    assert set(states) == {node_states.HERE, *hosts}
    usual = states[hosts[0]]["network"]["tcp_receive_buffer"]
    fault("sysctl", hosts[1], "net.ipv4.tcp_rmem=4096 65536 1048576")
    _, said = on_cluster.hpl()
    assert f" {usual} -> 4096 65536 1048576 on {hosts[1]}" in said
    compared = on_cluster.call("fleet")
    assert compared.returncode == 1, compared.stdout + compared.stderr
    assert "4096 65536 1048576" in compared.stdout


def test_slurm_gives_every_layout_the_nodes_that_it_needs(cluster, tmp_path):
    site = tmp_path / "site.py"
    site.write_text(test_job_scripts.SITE)
    shape, told = Shape(2, 4), {}
    with temp_runtime(str(site), "s"):
        slurm = next(one.scheduler for one in runtime().system.partitions if one.name == "slurm")
        for ranks, how, cores in itertools.product(range(1, 9), shape.placements(), (1, 2)):
            if shape.holds(ranks, how, cores):
                layout = layout_on_partition(ranks, how, cores, described("s:p", shape))
                text = test_job_scripts.script_of(slurm, layout, layout.tasks_to_ask_for)
                told[ranks, how, cores] = (layout, re.findall(r"^#SBATCH (.*)", text, re.MULTILINE))
    assert len(told) > 15
    for case, (layout, lines) in told.items():
        words = [word for word in lines if word.startswith(("--nodes", "--ntasks", "--cpus-per"))]
        ask = ["run", "head", "sbatch", "--test-only", "--exclusive", *words, "--wrap", "true"]
        said = virtual_cluster(*ask)
        (nodes,) = re.findall(r"on nodes (\S+)", said.stderr + said.stdout)
        assert len(expand(nodes)) == layout.nodes, (case, words, said)


@pytest.fixture
def two_threads_a_core(cluster):
    """Bring another cluster up, whose nodes have two cores of two hardware threads."""
    virtual_cluster("up", "--cpus", "4", "--threads", "2", "--hours", "0.5", which="t")
    yield
    virtual_cluster("down", which="t")


@pytest.mark.parametrize("layout", [Layout(4, 2), Layout(2, 1, 2), Layout(3, 2), Layout(1, 1)])
def test_srun_gives_every_rank_whole_cores_of_two_threads(two_threads_a_core, tmp_path, layout):
    words = shlex.join([*srun_options("hydra", layout), "sh", "-c", "hostname; sleep 3"])
    script = tmp_path / "job"
    script.write_text(
        f"#!/bin/sh\nsrun {words} & sleep 1\nscontrol show step $SLURM_JOB_ID; wait\n"
    )
    asked = ["--exclusive", f"--nodes={layout.nodes}", f"--ntasks={layout.tasks_to_ask_for}"]
    asked += [f"--ntasks-per-node={layout.ranks_per_node}", "--wait", f"--output={tmp_path}/out"]
    virtual_cluster("run", "head", "sbatch", *asked, str(script), which="t")
    said = (tmp_path / "out").read_text()
    (threads,) = re.findall(r"TRES=cpu=(\d+)", said)
    assert int(threads) == 2 * layout.ranks * layout.cores_per_rank, said
    hosts = Counter(re.findall(r"^n\d$", said, re.MULTILINE))
    assert sorted(hosts.values()) == sorted(layout.ranks_on(["n1", "n2"]).values()), said


def test_a_scan_counts_cores_and_not_hardware_threads(two_threads_a_core, tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    virtual_cluster("run", "head", CLUSTERGATE, "site", "scan", "alpha", which="t")
    assert '"cores_per_node": 2,' in (tmp_path / "site_configs" / "alpha.py").read_text()


def test_jobs_within_wishes_and_limits(on_cluster):
    update = ["run", "head", "scontrol", "update", "PartitionName=main"]
    virtual_cluster(*update, "MaxTime=00:05:00", "MaxNodes=2")
    try:
        on_cluster.wishes = ["--nodes", "n[2-4]", "--exclude", "n3"]
        (record,), said = on_cluster.hpl()
    finally:
        virtual_cluster(*update, "MaxTime=UNLIMITED", "MaxNodes=UNLIMITED")
    assert record["complaints"] == [], said
    assert record["details"]["proof"]["hosts"] == ["n2", "n4"]
    assert "its jobs request 300 s instead of 600 s" in said


def test_jobs_keep_to_their_qos(on_cluster):
    """Jobs keep to their qos and one that is not theirs is refused at once."""

    def manage(*words):
        virtual_cluster("run", "head", "sacctmgr", "--immediate", *words)

    manage("add", "qos", "short,others")
    manage("modify", "qos", "short", "set", "MaxWall=00:05:00")
    manage("modify", "user", "root", "set", "qos=normal,short")
    on_cluster.wishes = ["--qos", "short"]
    (record,), said = on_cluster.hpl()
    assert record["complaints"] == [], said
    assert "its jobs request 300 s instead of 600 s" in said
    assert "limits jobs to 300 s" in said
    refused = on_cluster.call("screen", "--site", str(SITE), "--qos", "others")
    assert refused.returncode == 2
    why = "Slurm refuses jobs in the partition srun with --qos=others: Invalid qos"
    assert why in refused.stderr


def test_where_few_jobs_are_allowed_all_cases_are_steps_of_one(on_cluster):
    text = SITE.read_text()
    assert text.count('"launcher": "clustergate-ssh"') == 1
    on_cluster.site = on_cluster.home / "site.py"
    on_cluster.site.write_text(text.replace("clustergate-ssh", "clustergate-srun"))
    on_cluster.under = ["salloc", "--nodes=4", "--exclusive"]
    on_cluster.wishes = ["--check", "ImbMpi1Check"]
    of_hpl = ("ranks=2", "placement=one-per-node", "n=500")
    settings = [*(f"HplCheck.{one}" for one in of_hpl), "ImbMpi1Check.benchmarks=PingPong"]
    options = itertools.chain.from_iterable(("-S", one) for one in (*settings, "launches=1"))
    before = accounted()
    on_cluster.partition = "ssh"
    _, said = on_cluster.run(*options, CLUSTERGATE_PROCESS_COUNTS="2")
    records = on_cluster.suite.records()
    assert sorted(record["conditions"]["nodes"] for record in records) == [1, 2, 2], said
    assert [record["complaints"] for record in records] == [[]] * 3, said
    (job,) = {one.partition(".")[0] for one in accounted() - before}
    # Slurm tells of the last step a little later.
    steps = rf"{job}\.\d+"
    until(lambda: sum(bool(re.fullmatch(steps, one)) for one in accounted()) >= 3, accounted)


def accounted():
    """Return the jobs and steps that Slurm accounts for, by their numbers."""
    ask = ["sacct", "--allusers", "--noheader", "--parsable2", "--format=JobID"]
    return set(virtual_cluster("run", "head", *ask).stdout.split())


@pytest.mark.parametrize("partition", ["srun", "ssh"])
def test_an_excluded_node_takes_no_part(on_cluster, tmp_path, monkeypatch, partition):
    (tmp_path / "hostfiles").mkdir()
    text = "n[1-4] slots=2\nexclude n1 2026-11-20 broken fan\n"
    (tmp_path / "hostfiles" / "virtual-cluster.txt").write_text(text)
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    (record,), said = on_cluster.hpl(partition=partition)
    assert record["complaints"] == [], said
    assert record["details"]["proof"]["hosts"] == ["n2", "n3"]


def test_a_controller_that_restarts_in_the_middle_loses_nothing(on_cluster, fault):
    (record,), said = on_cluster.hpl_with("sleep 8", lambda: fault("restart-slurmctld", "head"))
    assert record["complaints"] == [], said
    assert failure(said) == ""


def test_a_session_that_was_killed_goes_on_and_nothing_is_lost(on_cluster, fault):
    on_cluster.partition = ""
    goes_on = on_cluster.home / "goes-on"
    waits = f'[ -e "{goes_on}" ] || sleep infinity'
    slow = f'case "$SLURM_JOB_ID" in "") {waits};; esac\nexec "$real"'
    on_cluster.suite.replace_program("mpich", "xhpl", slow)
    with on_cluster.start(*ACROSS, "-S", "n=500") as running:
        while not list(on_cluster.home.glob("stage/*/virtual-cluster/ssh/mpich/HplCheck/launch-*")):
            assert running.poll() is None
            time.sleep(0.1)
        running.kill()
        running.communicate()
    before = on_cluster.suite.records()
    assert {record["partition"].partition(":")[2] for record in before} <= set(PARTITIONS) - {"ssh"}
    goes_on.touch()
    (run,) = on_cluster.suite.run_folders()
    said = on_cluster.resume(run.name)
    assert f"resumed: {len(before)} cases " in said
    after = on_cluster.suite.records()
    assert {record["partition"].partition(":")[2] for record in after} == set(PARTITIONS)
    assert [record for record in after if record in before] == before
    assert [record["complaints"] for record in after] == [[], [], []], said
    assert failure(said) == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=str)
def test_the_batch_jobs_of_a_run_end_with_it(on_cluster, number):
    on_cluster.suite.replace_program("mpich", "xhpl", 'sleep infinity; exec "$real"')
    with on_cluster.start(*ACROSS, "-S", "n=500") as running:
        until(lambda: running.poll() is not None or jobs("RUNNING"))
        assert running.poll() is None
        running.send_signal(number)
        running.communicate()
    # The program that enters the head's namespaces ends by the signal itself.
    assert running.returncode in (-number, 128 + number)
    until(lambda: not jobs(), jobs)


def jobs(*states):
    """Return the jobs that Slurm has, of these states alone if any are named."""
    said = virtual_cluster("run", "head", "squeue", "--noheader", "--format=%i %T").stdout
    return [line for line in said.splitlines() if not states or line.endswith(states)]


def test_an_answer_of_sacct_about_an_older_job_is_no_pass(on_cluster, tmp_path, monkeypatch):
    # After the controller lost its state, a job of this number may be one of last year.
    sacct = tmp_path / "bin" / "sacct"
    sacct.parent.mkdir()
    sacct.write_text(
        '#!/bin/bash\nwhile [ "$1" != -j ]; do shift; done\n'
        'echo "JobID|State|ExitCode|End|NodeList"; echo "$2|COMPLETED|0:0|1700000000|n1"\n'
    )
    sacct.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sacct.parent}:{os.environ['PATH']}")
    on_cluster.suite.replace_program("mpich", "xhpl", 'sleep 20; exec "$real"')
    _, said = on_cluster.hpl()
    assert failure(said)
    assert on_cluster.suite.facts("job.few-launches")["launches"] == 0
    virtual_cluster("run", "head", "scancel", "--user=root")


def test_a_slow_link_shows_in_the_figures_of_its_pair(on_cluster, fault):
    on_cluster.check, on_cluster.partition = "ImbMpi1Check", "ssh"
    options = ("-S", "benchmarks=PingPong", "-S", "launches=1")

    def largest_mb_s():
        on_cluster.run(*options, CLUSTERGATE_PROCESS_COUNTS="2")
        (newest,) = sorted(on_cluster.home.glob("results/runs/*"))[-1:]
        records = [json.loads(path.read_text()) for path in newest.glob("cases/*.json")]
        (across,) = [r for r in records if r["conditions"]["nodes"] == 2]
        rates = [s for s in across["samples"] if s["metric"] == "bandwidth_mb_s"]
        return max((s["conditions"]["bytes"], s["value"]) for s in rates)[1]

    healthy = largest_mb_s()
    fault("slow-link", "n2", "100mbit")
    # 100 Mbit/s are 12.5 MB/s, but for the bucket that lets the first 128 KB through.
    assert largest_mb_s() < 20 < healthy
