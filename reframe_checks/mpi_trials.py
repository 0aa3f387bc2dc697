"""The eleven tests of MPI calls of Luecke et al., with their timing template."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import reframe.utility.typecheck as typ
from reframe.core.builtins import variable

from clustergate.benchmarks.mpi_kernel import DOUBLE_BYTES, KernelExpectation
from clustergate.benchmarks.mpi_trials.input import (
    flush_bytes,
    trials_arguments,
    trials_measured,
)
from clustergate.benchmarks.mpi_trials.output import TEST_BYTES, single_trials
from clustergate.core.model import OutputError
from clustergate.launch import plan as planning
from clustergate.launch.reading import lines_of
from reframe_checks.declaration import check
from reframe_checks.mpi_kernel import MpiKernel
from reframe_checks.system import partition_of


class FlushedKernel(MpiKernel):
    """Base of what is timed with other data in the caches than its own."""

    #: Bytes that each rank goes through before a trial: 0 for none, -1 as the site config says.
    flush_bytes = variable(int, value=-1, loggable=True)


@check("MpiTrialsCheck")
class MpiTrialsCheck(FlushedKernel):
    """The eleven tests of Luecke et al., with their timing template; one job per process count."""

    program = "mpi_trials"
    settings_that_matter = ("trials", "flush_bytes")
    trials = 51
    tests = variable(typ.List[str], value=list(TEST_BYTES))

    def question(self) -> tuple[Sequence[str], KernelExpectation]:
        """Ask for the tests with the caches flushed, or not, before each trial."""
        said = partition_of(self)
        stated, cache = said.flush_bytes, said.cache_bytes_per_node
        per_node = self.layout.ranks_per_node
        flushed = flush_bytes(self.flush_bytes, stated, cache, per_node)
        words = trials_arguments(self.tests, self.trials, flushed)
        measured = trials_measured(self.tests)
        whole = flushed - flushed % DOUBLE_BYTES
        settings = {"flush_bytes": whole}
        return words, KernelExpectation(
            self.ranks, self.trials, settings=settings, measured=measured
        )

    def details(self) -> dict[str, Any]:
        """Keep each trial of bcast, of the first launch: the paper draws them one by one."""
        record = super().details()
        path = planning.launch_folder(Path(self.stagedir), 0) / planning.OUTPUT
        with contextlib.suppress(OutputError, OSError):
            record["trials"] = single_trials(lines_of(path), "bcast")
        return record
