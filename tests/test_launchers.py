"""The launchers as ReFrame sees them: what each says, and where the job's driver runs."""

import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from reframe.core.backends import getlauncher
from reframe.core.launchers.local import LocalLauncher
from reframe.core.schedulers import Job
from reframe.core.schedulers.local import LocalJobScheduler

from clustergate.core.model import ClustergateError
from clustergate.core.paths import checkout
from clustergate.launch import launchers
from clustergate.launch.dialects import Layout
from clustergate.launch.hostfiles import HostfileError, parse_hostfile
from clustergate.launch.launchers import first_node_script
from clustergate.sites import configs as sites
from clustergate.sites import exclusions
from clustergate.sites.description import Partition
from clustergate.sites.shape import Shape
from clustergate.stacks.manifest import Manifest

NODES = parse_hostfile("n[1-4] slots=2\nexclude n2 2026-11-20 broken\n", "hosts")


def configured(name, dialect, layout, folder, nodes=None, pmi=""):
    """Return a launcher by its name in a site config, told what to launch."""
    manifest = Manifest("a", "wheels", launcher="/mpi/bin/mpirun", dialect=dialect, mpi_name="A")
    launcher = getlauncher(name)()
    launcher.configure(manifest, layout, folder, nodes, pmi)
    return launcher


def test_the_stacks_own_launcher_is_called_by_its_path(tmp_path):
    launcher = configured("clustergate", "hydra", Layout(2, 2, bind=False), tmp_path)
    assert launcher.launch({"A": "1"}) == ["/mpi/bin/mpirun", "-n", "2", "-ppn", "2"]
    assert launcher.job_command(["python", "a b"], []) == ["python", "'a b'"]
    assert launcher.hosts is None


def test_srun_takes_the_sites_pmi(tmp_path):
    launcher = configured("clustergate-srun", "intel-hydra", Layout(2, 1), tmp_path, pmi="pmix")
    assert launcher.launch({})[:2] == ["srun", "--mpi=pmix"]
    assert launcher.exports(1)["I_MPI_PIN"] == "0"


def test_mpirun_rsh_of_the_stacks_launcher(tmp_path):
    """mpirun_rsh lies beside the stacks launcher and starts no other stack."""
    launcher = configured("clustergate-mpirun-rsh", "mvapich2", Layout(2, 1), tmp_path)
    words = launcher.launch({"A": "1"})
    assert words[0] == "/mpi/bin/mpirun_rsh"
    assert words[words.index("-hostfile") + 1] == str(tmp_path / "hostfile-mpirun_rsh")
    assert "A=1" in words
    assert launcher.hostfile_of_allocation() == "mpirun_rsh"
    other = configured("clustergate-mpirun-rsh", "openmpi", Layout(2, 1), tmp_path)
    with pytest.raises(ClustergateError, match="mpirun_rsh starts MVAPICH2 only, not A"):
        other.launch({})


@pytest.mark.parametrize(
    ("dialect", "text"),
    [("hydra", "n1:2\nn3:2\n"), ("openmpi", "n1 slots=2\nn3 slots=2\n")],
)
def test_over_ssh_the_first_usable_nodes_are_taken(tmp_path, dialect, text):
    launcher = configured("clustergate-ssh", dialect, Layout(4, 2), tmp_path, NODES)
    assert launcher.hosts == ("n1", "n3")
    assert launcher.hostfile(dialect).read_text() == text
    assert list(launcher.files.values()) == [text]
    assert str(launcher.hostfile(dialect)) in launcher.launch({})
    assert launcher.job_command(["python"], [])[:2] == ["ssh", "n1"]


def test_over_ssh_there_must_be_enough_nodes(tmp_path):
    with pytest.raises(HostfileError, match="4 nodes with 1 slot each requested, but only 3 of 4"):
        configured("clustergate-ssh", "hydra", Layout(4, 1), tmp_path, NODES)
    with pytest.raises(ClustergateError, match="needs the hostfile of the system"):
        configured("clustergate-ssh", "hydra", Layout(4, 1), tmp_path)


def run_script(folder: Path, script: str, *preparation: str) -> "subprocess.Popen[str]":
    path = folder / "script.sh"
    path.write_text(first_node_script(folder, ["bash", "-c", script], preparation))
    return subprocess.Popen(
        ["bash", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_first_node_runs_the_driver_in_the_jobs_folder(tmp_path):
    """The first node runs the driver in the jobs folder and tells how it ended."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    with run_script(folder, 'echo "$MARK"; pwd; exit 7', "set -e", "export MARK=prepared") as one:
        assert one.stdout is not None
        said = one.stdout.read()
        assert one.wait() == 7
    assert said == f"prepared\n{folder}\n"


def test_first_node_ends_the_driver_when_cut_off(tmp_path):
    script = "trap 'echo ended; exit 3' TERM; echo begun; sleep infinity & wait"
    with run_script(tmp_path, script) as one:
        assert one.stdin is not None
        assert one.stdout is not None
        assert one.stdout.readline() == "begun\n"
        one.stdin.close()
        assert one.wait() == 3
        assert one.stdout.readline() == "ended\n"


def test_a_preparation_that_fails_ends_it(tmp_path):
    with run_script(tmp_path, "echo ran", "set -e", "false") as one:
        assert one.stdout is not None
        assert one.stdout.read() == ""
        assert one.wait() == 1


NODE = {"memory_bytes_per_node": 2**30, "nominal_gflops_per_core": 1.0}


def site(scheduler, launcher, extras=NODE, **further):
    partition = {"name": "p", "scheduler": scheduler, "launcher": launcher, **further}
    partition["extras"] = {**NODE, **extras}
    system = {"name": "machine", "hostnames": ["x"], "partitions": [partition]}
    return sites.configuration([system], [])["systems"][0]["partitions"][0]


@pytest.fixture
def site_folder(tmp_path, monkeypatch):
    """Return a site's own folder, with a hostfile of the system ``machine``."""
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    (tmp_path / "hostfiles").mkdir()
    text = "n[1-4] slots=2\nexclude n2 2026-11-20 broken\n"
    (tmp_path / "hostfiles" / "machine.txt").write_text(text)
    return tmp_path


def test_pbs_puts_on_several_nodes_what_is_asked_to_lie_on_them(site_folder):
    """OpenPBS put four ranks, one per node, on two nodes of two cores."""
    assert site("pbs", "clustergate", access=["-q main"])["access"] == [
        *("-q main", "-l place=scatter", "-r n"),
    ]
    own = ["-l place=scatter:excl"]
    assert site("pbspro", "clustergate", access=own)["access"] == [*own, "-r n"]


@pytest.mark.parametrize("scheduler", ["slurm", "squeue"])
def test_slurm_keeps_out_what_the_hostfile_excludes(site_folder, scheduler):
    found = site(scheduler, "clustergate-srun", access=["-p main"], extras={"nodes": 4})
    assert found["access"] == ["-p main", "--no-requeue", "--exclude=n2"]
    assert found["sched_options"]["use_nodes_option"] is True
    mine = site(scheduler, "clustergate", sched_options={"use_nodes_option": False})
    assert mine["sched_options"]["use_nodes_option"] is False
    assert found["extras"] == {**NODE, "nodes": 3, "cores_per_node": 2, "excluded_nodes": 1}


def test_nodes_that_are_left_out_are_taken_away_once(site_folder, monkeypatch):
    monkeypatch.setenv(exclusions.WITHOUT_NODES, "n[2-3]")
    # n2 is excluded as it is.
    assert site("local", "clustergate", extras={"nodes": 4})["extras"]["nodes"] == 2
    found = Partition.of(site("slurm", "clustergate", extras={"nodes": 4}))
    assert (found.nodes, found.excluded_nodes) == (2, 2)
    (site_folder / "hostfiles" / "machine.txt").unlink()
    without = {"nodes": 4, "cores_per_node": 2}
    assert site("slurm", "clustergate", extras=without)["extras"]["nodes"] == 2


def test_hostfile_with_fewer_nodes_than_stated_refused(site_folder):
    with pytest.raises(sites.SiteError, match=r"states 5 nodes of the partition p, .* lists 4"):
        site("slurm", "clustergate", extras={"nodes": 5})


def test_partitions_lose_nodes_of_their_own_kind(site_folder):
    text = "n[1-4] slots=8\nm[1-2] slots=64\nexclude m1 2026-11-20 broken\n"
    path = site_folder / "hostfiles" / "machine.txt"
    path.write_text(text)
    thin, fat = {"nodes": 4, "cores_per_node": 8}, {"nodes": 2, "cores_per_node": 64}
    assert site("slurm", "clustergate", extras=thin)["extras"]["nodes"] == 4
    assert site("slurm", "clustergate", extras=fat)["extras"]["nodes"] == 1
    # Slots may count hardware threads, or not be stated.
    assert (
        site("slurm", "clustergate", extras={**fat, "cores_per_node": 32})["extras"]["nodes"] == 1
    )
    assert (
        site("slurm", "clustergate", extras={**fat, "cores_per_node": 96})["extras"]["nodes"] == 2
    )
    path.write_text(f"{text}exclude m2 2026-11-20 broken\n")
    assert site("slurm", "clustergate", extras=thin)["extras"]["nodes"] == 4
    with pytest.raises(sites.SiteError, match="excludes every node like those of p"):
        site("slurm", "clustergate", extras=fat)


def test_a_partition_without_a_hostfile_stays_as_it_is(site_folder):
    (site_folder / "hostfiles" / "machine.txt").unlink()
    extras = {**NODE, "nodes": 4, "cores_per_node": 8}
    assert site("local", "clustergate", extras=extras)["extras"] == extras
    with pytest.raises(sites.SiteError, match="the partition p launches over ssh"):
        site("local", "clustergate-ssh", extras=extras)


def test_a_hostile_hostfile_stops_the_site_config(site_folder):
    (site_folder / "hostfiles" / "machine.txt").write_text("n1 slots=2\nn2;id slots=2\n")
    with pytest.raises(HostfileError, match=r"machine\.txt:2: 'n2;id' is not a node name"):
        site("slurm", "clustergate")


def test_the_command_over_ssh_survives_a_folder_with_spaces(tmp_path):
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    launcher = configured("clustergate-ssh", "hydra", Layout(2, 2), folder, NODES)
    command = " ".join(launcher.job_command([sys.executable, "-c", "print('here')"], []))
    ssh, end = command.split("< <(")
    # What ssh would hand to the shell of the other node.
    remote = shlex.join(["bash", "-c", shlex.split(ssh)[2]])
    ended = subprocess.run(["bash", "-c", f"{remote} < <({end}"], capture_output=True, text=True)
    assert ended.stdout == "here\n"


def test_site_config_of_the_virtual_cluster_fits_its_hostfile():
    """The site config of the virtual cluster loads and fits its hostfile."""
    partitions = sites.load(checkout() / "ci" / "virtual_cluster.py").partitions
    named = [partition.launcher for partition in partitions]
    assert named == ["clustergate-srun", "clustergate", "clustergate-ssh"]
    assert {partition.shape for partition in partitions} == {Shape(cores_per_node=2, nodes=4)}


def test_reframe_starts_a_job_in_any_folder(tmp_path, monkeypatch):
    folder = tmp_path / "it's a spacé & more"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(LocalJobScheduler, "get_option", lambda scheduler, name: False)
    script = folder / "rfm_job.sh"
    script.write_text("#!/bin/sh\nexit 7\n")
    script.chmod(0o755)
    job = Job.create(LocalJobScheduler(), LocalLauncher(), "rfm_job", script_filename=script.name)
    job.scheduler.submit(job)
    assert job._proc.wait() == 7
    job._f_stdout.close()
    job._f_stderr.close()
    assert job.script_filename == "rfm_job.sh"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this Python knows no pidfd")
def test_the_end_of_a_job_here_is_noticed_when_it_comes(tmp_path, monkeypatch):
    # As long as it takes: ReFrame asks once, and is told.
    monkeypatch.setattr(launchers, "_LONGEST_WAIT_S", 300.0)
    monkeypatch.setattr(LocalJobScheduler, "get_option", lambda scheduler, name: False)
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "rfm_job.sh"
    script.write_text("#!/bin/sh\nsleep 0.2\nexit 7\n")
    script.chmod(0o755)
    job = Job.create(LocalJobScheduler(), LocalLauncher(), "rfm_job", script_filename=script.name)
    job.scheduler.submit(job)
    job.scheduler.poll(job)
    assert job.exitcode == 7
    # Who asks again is not kept waiting, nor who has no job.
    job.scheduler.poll(job)
    job.scheduler.poll(None)


def test_local_job_polled_where_the_kernel_tells_no_end(monkeypatch):
    def refused(process):
        raise OSError(errno.ENOSYS, "Function not implemented")

    asked = []
    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    monkeypatch.setattr(launchers, "_poll", lambda scheduler, *jobs: asked.extend(jobs))
    job = SimpleNamespace(jobid=1)
    LocalJobScheduler.poll(None, job)
    assert asked == [job]
