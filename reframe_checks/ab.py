"""A against B: stacks, builds or settings launched in turn, in random order, in one job.

It runs only where two are named: ``-S a=mpich -S b=intel-mpi:I_MPI_FABRICS=shm``;
``clustergate ab --help`` tells how a contender is written.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import reframe.utility.typecheck as typ
from reframe.core.builtins import variable

from clustergate.benchmarks.hpl import sizing
from clustergate.benchmarks.imb.blocks import merge_blocks, read_blocks
from clustergate.benchmarks.imb.command import ImbSettings, blocks_of, in_blocks
from clustergate.core.model import Row, Sample
from clustergate.core.reasons import Reason
from reframe_checks.contenders import TwoContenders
from reframe_checks.declaration import check
from reframe_checks.hpl import HplCheck
from reframe_checks.imb import ImbBenchmark
from reframe_checks.osu import OsuPt2PtCheck


@check("AbImbCheck")
class AbImbCheck(TwoContenders, ImbBenchmark):
    """IMB-MPI1 of A against that of B."""

    program = "IMB-MPI1"
    benchmarks = ["PingPong", "Sendrecv", "Bcast", "Allgather", "Allreduce", "Alltoall", "Barrier"]
    #: Message sizes in bytes; empty for every power of two up to ``largest_bytes``.
    sizes = variable(typ.List[int], value=[])
    largest_bytes = 1 << 22

    def wanted(self) -> Sequence[str]:
        """Return the benchmarks, without those that a launch left out as decided."""
        return [name for name in self.benchmarks if name not in self.without]

    def parts(self) -> Sequence[str]:
        return list(self.benchmarks)

    def settings(self) -> ImbSettings:
        """Return what to ask of IMB: many short launches tell more than a few long ones.

        So do many short blocks in a launch.
        """
        asked = dataclasses.replace(
            super().settings(),
            sizes=tuple(self.sizes),
            repetitions=1000,
            volume_mb=8,
            seconds=self.time or 1.0,
        )
        return in_blocks(asked)

    def details(self) -> dict[str, Any]:
        """Tell figures of blocks apart from the means of whole launches, as they once were."""
        return {**super().details(), "blocks": blocks_of(self.settings())}

    def reader(self) -> Any:
        return read_blocks

    def prove_launch(self, *what: Any, **of: Any) -> tuple[list[Reason], list[Row]]:
        """Return one row for each figure; all blocks of it prove the launch."""
        complaints, rows = super().prove_launch(*what, **of)
        return complaints, list(merge_blocks(rows))


@check("AbHplCheck")
class AbHplCheck(TwoContenders, HplCheck):
    """HPL of A against that of B: the same problem, as both run it by default."""

    as_site_says = False
    #: What a launch takes, at the rate that the suite expects, in seconds.
    launch_seconds = variable(float, value=3.0, loggable=True)

    def asked(self) -> sizing.HplInput:
        return self.problem(self.launch_seconds, 0.5)

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return nothing: what differs is said by the comparison."""
        return ()


@check("AbOsuCheck")
class AbOsuCheck(TwoContenders, OsuPt2PtCheck):
    """OSU between two processes of A against B."""
