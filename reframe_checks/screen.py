"""Screening: which node, which link, which switch is slow. One job for all nodes."""

import secrets
import shlex
import sys
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import fixture, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from clustergate.core import store
from clustergate.core.notation import printable
from clustergate.core.paths import site_file, state_dir
from clustergate.launch import launchers
from clustergate.launch.dialects import srun_environment
from clustergate.launch.plan import PLAN
from clustergate.sites import exclusions, modes
from clustergate.sites.schedulers import scheduler_of
from clustergate.stacks.manifest import read_manifest
from clustergate.studies.screen import folder, planning
from clustergate.studies.screen.switches import known_switches
from reframe_checks.build import StackBuild
from reframe_checks.system import MAINTAINERS, begin_clean, partition_of, stack_of


@rfm.simple_test
class ScreenCheck(rfm.RunOnlyRegressionTest):
    """Every node alone, then pairs in rounds; findings make it fail, with their sentences."""

    build = fixture(StackBuild, scope="environment")
    valid_systems = ["*"]
    valid_prog_environs = ["+mpi-stack"]
    descr = "Screening: every node alone, then pairs of nodes in rounds"
    maintainers = MAINTAINERS
    tags = {"screen"}
    sourcesdir = None
    time_limit = "2h"
    executable = sys.executable
    #: The effort, by the name of a mode: it takes too long to run beside the benchmarks of another.
    mode = variable(str, value="smoke")
    #: The stack that measures; empty for the first of the system.
    screen_stack = variable(str, value="")
    #: The partition whose nodes are screened; empty for the first of the system.
    screen_partition = variable(str, value="")
    #: What :class:`clustergate.studies.screen.planning.ScreenRequest` explains.
    screen_nodes = variable(str, value="")
    screen_rounds = variable(int, value=0)
    screen_seconds = variable(float, value=1200.0)
    screen_hpl_seconds = variable(float, value=60.0)
    screen_launches = variable(int, value=0)
    screen_quick = variable(int, value=0)

    @run_after("setup")
    def choose_the_stack(self) -> None:
        """Screen with one stack: nodes and links are the same for all of them."""
        self.skip_if(self.mode != modes.SCREEN, "screening is a mode of its own: --mode screen")
        first = self.screen_partition or self.current_system.partitions[0].name
        other = self.current_partition.name != first
        self.skip_if(other, f"the screening is of the partition {first}")
        wanted = self.screen_stack or self.current_partition.environs[0].name
        self.skip_if(self.current_environ.name != wanted, f"the screening is with {wanted}")
        shape = partition_of(self).shape
        # All nodes that are free: one that is down would be waited for in vain.
        flexible = scheduler_of(partition_of(self).scheduler).takes_free_nodes
        self.num_tasks = (
            0 if flexible and not self.is_dry_run() else shape.cores_per_node * shape.nodes
        )
        self.num_tasks_per_node = shape.cores_per_node

    @run_before("run")
    def plan(self) -> None:
        """Write down what the job does; its script runs the driver, which reads that."""
        begin_clean(self.job)
        if self.is_dry_run():
            return
        environ = self.current_environ
        manifest = read_manifest(state_dir(), environ.name)
        by_srun = bool(getattr(self.job.launcher, "by_srun", False))
        bound_by_srun = srun_environment(manifest.dialect) if by_srun else {}
        asked = planning.ScreenRequest(
            *(self.screen_nodes, self.screen_rounds, self.screen_seconds, self.screen_hpl_seconds),
            launches=self.screen_launches,
            quick=bool(self.screen_quick),
        )
        switches, no_topology = known_switches(
            partition_of(self).scheduler,
            site_file("hostfiles", f"{self.current_system.name}.ibnetdiscover"),
            partition_of(self).fabric,
        )
        plan = planning.plan_screening(
            manifest,
            partition_of(self),
            asked,
            nonce=secrets.token_hex(8),
            seed=secrets.randbits(31),
            # What the site exports beside the stack must come to all nodes as well.
            environment={**environ.env_vars, **launchers.exports(manifest, 1), **bound_by_srun},
            hostfile=exclusions.hostfile_of(self.current_system.name),
            pmi=stack_of(self).pmi if by_srun else None,
            switches=switches,
            no_topology=no_topology,
        )
        self.where = folder.screening_folder(store.current_run_id())
        folder.start_or_resume(self.where, plan)
        options = ["-I", "-m", "clustergate.studies.screen", str(self.where / PLAN)]
        self.executable_opts = [shlex.quote(word) for word in options]

    @sanity_function
    def nobody_is_to_blame(self) -> bool:
        """Accept the screening when it came to its end and accuses nobody."""
        errors = Path(self.stagedir, self.job.stderr)
        if troubles := folder.fault_sentences(self.where, self.job.exitcode, errors):
            raise SanityError(printable("; ".join(troubles)))
        return True
