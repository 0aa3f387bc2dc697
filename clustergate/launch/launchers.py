"""The launchers that ReFrame uses for every stack: each speaks whatever dialect the stack does.

A site config names one per partition. The job itself runs the driver of
:mod:`clustergate.launch` once, on its first node, and the driver says the words of
:meth:`StackLauncher.launch` as often as it takes.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from reframe.core.backends import register_launcher
from reframe.core.launchers import JobLauncher
from reframe.core.schedulers.local import LocalJobScheduler

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.launch.dialects import (
    LaunchRoute,
    Layout,
    hostfile_dialect,
    launch_options,
    launcher_environment,
    srun_environment,
    srun_options,
)
from clustergate.launch.hostfiles import Hostfile, render
from clustergate.stacks.manifest import Manifest

_FIRST_NODE = "on-first-node.sh"

# As long as ReFrame sleeps by itself (poll_rate_min in sites/configs.py); it notices nothing else.
_LONGEST_WAIT_S = 2.0

_submit, _poll = LocalJobScheduler.submit, LocalJobScheduler.poll


def submit_whole_path(scheduler: Any, job: Any) -> None:
    """Start a job's script by ReFrame, whatever its folder is called.

    ReFrame 4.10.4 takes the path apart at its spaces, as it would a command line.
    """
    name = job.script_filename
    job._script_filename = re.sub(r"([^\w/.+-])", r"\\\1", os.path.abspath(name), flags=re.ASCII)
    try:
        _submit(scheduler, job)
    finally:
        job._script_filename = name


def poll_when_it_ends(scheduler: Any, *jobs: Any) -> None:
    """Wait a while for the end of a job on this node, then ask as ReFrame does.

    By itself it sleeps between two questions: a case takes longer by what is left of that, and each
    question takes time of the cores that are measured.
    """
    if len(jobs) == 1 and jobs[0] and jobs[0].jobid:
        # Linux before 5.3 tells of no end, nor does a job that was asked about before.
        with contextlib.suppress(OSError), open(os.pidfd_open(int(jobs[0].jobid)), "rb") as end:
            select.select([end], [], [], _LONGEST_WAIT_S)
    _poll(scheduler, *jobs)


LocalJobScheduler.submit = submit_whole_path
LocalJobScheduler.poll = poll_when_it_ends


@register_launcher("clustergate")
class StackLauncher(JobLauncher):  # type: ignore[misc]
    """The stack's own launcher, on this node or on the nodes of the scheduler's allocation."""

    #: Whether srun starts the ranks, and no launcher of an MPI library.
    by_srun = False

    def __init__(self) -> None:
        self.options: list[str] = []
        self.manifest: Manifest | None = None
        self.layout: Layout | None = None
        self.folder = Path()
        self.pmi = ""
        #: Files beside the job's own that the launch needs: names and texts.
        self.files: dict[str, str] = {}
        #: The nodes that the job runs on, None where the scheduler chooses them.
        self.hosts: tuple[str, ...] | None = None

    def configure(
        self,
        manifest: Manifest,
        layout: Layout,
        folder: Path,
        nodes: Hostfile | None = None,
        pmi: str = "",
    ) -> None:
        """Say which stack launches what in which folder.

        ``nodes`` are those of the system, where it has a hostfile; ``pmi`` is the site's word for
        what srun is to offer the ranks. Raises a
        :class:`~clustergate.core.model.ClustergateError` for a launch that cannot be.
        """
        self.manifest = manifest
        self.layout = layout
        self.folder = folder
        self.pmi = pmi
        self.find_hosts(nodes)

    def find_hosts(self, nodes: Hostfile | None) -> None:
        """Choose the nodes of the job; here the scheduler does."""

    @property
    def configured(self) -> tuple[Manifest, Layout]:
        """The stack and the layout given to :meth:`configure`."""
        if self.manifest is None or self.layout is None:
            raise ValueError("a launch was requested before its stack and its layout were set")
        return self.manifest, self.layout

    def launch(self, exports: Mapping[str, str]) -> list[str]:
        """Return the words that start the ranks, for the driver that the job runs.

        ``exports`` are the variables that the job exports for the ranks.
        """
        manifest, layout = self.configured
        return [manifest.launcher, *launch_options(manifest.dialect, layout)]

    def on_each_node(self, exports: Mapping[str, str]) -> list[str]:
        """Return the words that start a process on each node, none where there is but one."""
        layout = self.configured[1]
        if layout.nodes == 1:
            return []
        # All that the ranks of a node may use.
        cores = layout.ranks_per_node * layout.cores_per_rank
        try:
            self.layout = Layout(layout.nodes, 1, cores, bind=False)
            return self.launch(exports)
        finally:
            self.layout = layout

    def exports(self, threads: int) -> dict[str, str]:
        """Return the variables that a job exports before it launches; see :func:`exports`."""
        return exports(self.configured[0], threads)

    def hostfile(self, dialect: str) -> Path:
        """Return the path of a hostfile in the folder of the job: each dialect has its own."""
        return self.folder / f"hostfile-{dialect}"

    def hostfile_of_allocation(self) -> str:
        """Return how the driver is to write the nodes that it finds, empty when it need not."""
        return ""

    def job_command(self, driver: Sequence[str], preparation: Sequence[str]) -> list[str]:
        """Return the words of the job's script that run the driver on the job's first node.

        ``preparation`` are the lines of shell that come before it in the script.
        """
        return list(map(shlex.quote, driver))

    def command(self, job: Any) -> list[str]:
        """Return nothing: the job runs the driver once, on its first node."""
        return []


@register_launcher("clustergate-srun")
class SrunLauncher(StackLauncher):
    """Slurm's srun, with the process manager interface that the stack understands."""

    by_srun = True

    def launch(self, exports: Mapping[str, str]) -> list[str]:
        """Return the words that start the ranks in Slurm's allocation."""
        manifest, layout = self.configured
        return ["srun", *srun_options(manifest.dialect, layout, self.pmi)]

    def exports(self, threads: int) -> dict[str, str]:
        """Return the variables of the stack, and those by which it leaves the binding to srun."""
        return super().exports(threads) | srun_environment(self.configured[0].dialect)


MVAPICH_ONLY = Words(
    "layout.mvapich-only",
    "mpirun_rsh starts MVAPICH2 only, not {mpi}",
    remedy="give this stack another partition, by the partition's environs",
)


@register_launcher("clustergate-mpirun-rsh")
class RshLauncher(StackLauncher):
    """MVAPICH2's mpirun_rsh, which starts ranks over ssh wherever they are."""

    def launch(self, exports: Mapping[str, str]) -> list[str]:
        """Return the words that start the ranks on the nodes that the driver finds."""
        manifest, layout = self.configured
        if manifest.dialect != "mvapich2":
            raise ClustergateError(MVAPICH_ONLY(mpi=manifest.mpi_name))
        way = LaunchRoute(str(self.hostfile(self.hostfile_of_allocation())), exports)
        program = PurePath(manifest.launcher).with_name("mpirun_rsh")
        return [str(program), *launch_options("mpirun_rsh", layout, way)]

    def on_each_node(self, exports: Mapping[str, str]) -> list[str]:
        """Return the words that start all ranks: it fills the nodes of its hostfile in turn."""
        return self.launch(exports) if self.configured[1].nodes > 1 else []

    def hostfile_of_allocation(self) -> str:
        return "mpirun_rsh"


NO_HOSTFILE = Words("layout.no-hostfile", "a launch over ssh needs the hostfile of the system")


@register_launcher("clustergate-ssh")
class SshLauncher(StackLauncher):
    """The stack's own launcher over ssh, on the first nodes of the system's hostfile.

    For systems without a scheduler, whose partition has ReFrame's ``local`` one: the job starts
    here and runs the driver on the first of those nodes, as a scheduler would.
    """

    def find_hosts(self, nodes: Hostfile | None) -> None:
        """Take the first nodes of the hostfile that are usable."""
        if nodes is None:
            raise ClustergateError(NO_HOSTFILE())
        manifest, layout = self.configured
        chosen = nodes.first(layout.nodes, layout.ranks_per_node * layout.cores_per_rank)
        self.hosts = tuple(node.name for node in chosen)
        dialect = hostfile_dialect(manifest.dialect)
        path = self.hostfile(dialect)
        self.files = {path.name: render(chosen, dialect)}
        path.write_text(self.files[path.name], encoding="utf-8")

    def launch(self, exports: Mapping[str, str]) -> list[str]:
        """Return the words that start the ranks on the nodes of the hostfile."""
        manifest, layout = self.configured
        way = LaunchRoute(str(self.hostfile(hostfile_dialect(manifest.dialect))), exports)
        return [manifest.launcher, *launch_options(manifest.dialect, layout, way)]

    def job_command(self, driver: Sequence[str], preparation: Sequence[str]) -> list[str]:
        """Return the words that run a script with all of it on the first node."""
        assert self.hosts is not None
        script = self.folder / _FIRST_NODE
        script.write_text(first_node_script(self.folder, driver, preparation), encoding="utf-8")
        # Standard input stays open as long as this script lives, and the other end looks at it.
        open_end = "< <(exec tail -f /dev/null --pid=$$ 2>/dev/null)"
        return ["ssh", self.hosts[0], shlex.quote(f"bash {shlex.quote(str(script))}"), open_end]


def first_node_script(folder: Path, driver: Sequence[str], preparation: Sequence[str]) -> str:
    """Return the script that ssh runs on the first node, in the folder of the job.

    What is killed at this end of ssh would go on at the other: the script ends the driver when its
    standard input ends.
    """
    lines = [
        f"cd {shlex.quote(str(folder))} || exit",
        *preparation,
        "exec 3<&0",
        f"{shlex.join(driver)} </dev/null 3<&- &",
        "driver=$!",
        '{ cat <&3; kill -TERM "$driver"; } >/dev/null 2>&1 &',
        "exec 3<&-",
        "status=0",
        'wait "$driver" || status=$?',
        'exit "$status"',
    ]
    return "\n".join(lines) + "\n"


def exports(manifest: Manifest, threads: int) -> dict[str, str]:
    """Return the variables that a job exports before it launches this stack.

    ``PATH`` and ``LD_LIBRARY_PATH`` go in front of what the node has; ``{threads}`` in a value of
    the BLAS stands for the threads of each rank.
    """
    variables = dict(manifest.environment)
    if manifest.blas is not None:
        variables |= {k: v.format(threads=threads) for k, v in manifest.blas.environment.items()}
    variables |= launcher_environment(manifest.dialect, as_root=os.geteuid() == 0)
    return variables
