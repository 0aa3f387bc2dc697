"""The Intel MPI Benchmarks: time and bandwidth of MPI calls over message sizes and ranks."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import reframe.utility.typecheck as typ
from reframe.core.builtins import variable

from clustergate.benchmarks.imb import command as imb_command
from clustergate.benchmarks.imb.blocks import merge_blocks, read_blocks
from clustergate.benchmarks.imb.command import (
    BY_DEFAULT,
    MPI1_BENCHMARKS,
    OF_TWO_RANKS,
    SIZES_FILE,
    ImbSettings,
    blocks_of,
    in_blocks,
)
from clustergate.benchmarks.imb.plan import ImbExpectation
from clustergate.core.model import Row
from clustergate.core.reasons import Reason
from reframe_checks.base import MpiBenchmark
from reframe_checks.contenders import TwoContenders
from reframe_checks.declaration import check
from reframe_checks.system import partition_of


class ImbBenchmark(MpiBenchmark):
    """Base of the IMB suites: every process count is a job of its own."""

    settings_that_matter = (
        *("benchmarks", "subgroups", "largest_bytes", "off_cache", "root_shift", "sync"),
        *("map", "iter_policy", "time", "memory_gb"),
    )
    #: Those that the suite has an option for.
    known_settings: Sequence[str] = settings_that_matter
    # Runs first and does not count. With Intel MPI each of the first few hundred messages of a
    # launch takes 3 us instead of 0.25, each of the first puts, gets and barriers 2 to 20 times as
    # long as later. IMB sends as many before it measures a size as it then measures, IMB-P2P none:
    # with 100 or 200 repetitions these were what the first sizes showed. IMB-MT has the same in its
    # first table, and runs no benchmark twice.
    warm_up: Sequence[str] = ()
    #: The benchmarks to run, empty for those that the suite runs by default.
    benchmarks = variable(typ.List[str], value=[])
    #: Let IMB measure groups of 2, 4, … ranks in one job, instead of the full communicator only.
    subgroups = variable(typ.Bool, value=False, loggable=True)
    #: Largest message in bytes, a power of two; 0 leaves it to the mode.
    largest_bytes = variable(int, value=0, loggable=True)
    #: IMB's options of the same names; empty leaves IMB's default.
    off_cache = variable(str, value="", loggable=True)
    root_shift = variable(str, value="", loggable=True)
    sync = variable(str, value="", loggable=True)
    map = variable(str, value="", loggable=True)
    iter_policy = variable(str, value="", loggable=True)
    #: Seconds after which IMB gives up one size of one benchmark; 0 leaves it to the mode.
    time = variable(float, value=0.0, loggable=True)
    #: What the buffers of one rank may take, in 2^30 bytes; 0 leaves it to the node's memory.
    memory_gb = variable(float, value=0.0, loggable=True)

    def settle(self) -> None:
        """Refuse what would do nothing, and one process, which has nobody to talk to."""
        if self.ranks == 1:
            self.not_available("IMB measures between processes, and one alone was asked for")
        imb_command.refuse_unknown(self.program, self.known_settings, self.changed_settings())

    def settings(self) -> ImbSettings:
        memory = partition_of(self).memory_bytes_per_node
        return ImbSettings(
            benchmarks=[*self.warm_up, *(self.wanted() or self.by_default())],
            smallest_group=2 if self.subgroups else self.ranks,
            ranks=self.ranks,
            sizes=() if self.largest_bytes else self.effort.sizes,
            largest_bytes=self.largest_bytes or self.effort.largest_bytes,
            repetitions=self.effort.repetitions,
            volume_mb=self.effort.volume_mb,
            seconds=self.time or self.effort.seconds,
            off_cache=self.off_cache,
            root_shift=self.root_shift or self.effort.root_shift,
            sync=self.sync,
            map=self.map,
            iter_policy=self.iter_policy,
            memory_gb=self.memory_gb
            or imb_command.buffer_memory_gb(memory, self.layout.ranks_per_node),
        )

    def wanted(self) -> Sequence[str]:
        """Return the benchmarks to run, empty for those that the suite runs by default."""
        return list(self.benchmarks)

    def by_default(self) -> Sequence[str]:
        """Return the benchmarks that the suite runs by default with these ranks."""
        without = () if self.subgroups or self.ranks == 2 else OF_TWO_RANKS
        return [name for name in BY_DEFAULT.get(self.program, ()) if name not in without]

    def arguments(self) -> Sequence[str]:
        return imb_command.imb_arguments(self.settings())

    def inputs(self) -> Mapping[str, str]:
        """Return the file of message sizes, where sizes are named."""
        sizes = self.settings().sizes
        return {SIZES_FILE: imb_command.sizes_file(sizes)} if sizes else {}

    def expectation(self) -> ImbExpectation:
        """Return what IMB's text must hold."""
        return ImbExpectation(
            suite=self.program,
            benchmarks=tuple(self.wanted()),
            bytes=tuple(self.settings().sizes),
            arguments=tuple(self.arguments()),
            ranks=self.ranks,
            warm_up=bool(self.warm_up),
        )


@check("ImbMpi1Check")
class ImbMpi1Check(ImbBenchmark):
    """IMB-MPI1: point-to-point and collective calls."""

    program = "IMB-MPI1"
    warm_up = ("Sendrecv",)
    benchmarks = list(MPI1_BENCHMARKS)

    def wanted(self) -> Sequence[str]:
        """Return what was set by hand, else what the mode runs of the suite."""
        by_hand = self.benchmarks != list(MPI1_BENCHMARKS)
        of_mode: Sequence[str] = self.effort.benchmarks
        return super().wanted() if by_hand or not of_mode else of_mode


@check("ImbRmaCheck")
class ImbRmaCheck(ImbBenchmark):
    """IMB-RMA: one-sided calls."""

    program = "IMB-RMA"
    warm_up = ("Exchange_put",)


@check("ImbNbcCheck")
class ImbNbcCheck(ImbBenchmark):
    """IMB-NBC: non-blocking collective calls and how much of them is hidden behind work."""

    program = "IMB-NBC"
    warm_up = ("Iallreduce",)


@check("ImbP2pCheck")
class ImbP2pCheck(ImbBenchmark):
    """IMB-P2P: point-to-point patterns of all ranks at once."""

    program = "IMB-P2P"
    warm_up = ("SendRecv_Replace",)
    known_settings = ("benchmarks", "largest_bytes")

    def arguments(self) -> Sequence[str]:
        return imb_command.p2p_arguments(self.settings())


@check("ImbMtCheck")
class ImbMtCheck(ImbBenchmark):
    """IMB-MT: several threads of each rank in MPI at once, as many as ``cores_per_rank``."""

    program = "IMB-MT"
    known_settings = ("benchmarks", "largest_bytes")
    # IMB-MT does not list what it will run, so a lost benchmark is noticed by this list alone.
    benchmarks = list(BY_DEFAULT["IMB-MT"])

    def arguments(self) -> Sequence[str]:
        return imb_command.mt_arguments(self.settings())

    def expectation(self) -> ImbExpectation:
        """Return what must stand in its tables, since IMB-MT does not repeat its call."""
        settings = self.settings()
        return dataclasses.replace(
            super().expectation(),
            bytes=imb_command.mt_sizes(settings),
            repetitions=settings.repetitions,
            threads=self.cores_per_rank,
        )


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
