"""The Intel MPI Benchmarks: time and bandwidth of MPI calls over message sizes and ranks."""

import dataclasses
from collections.abc import Mapping, Sequence

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import variable

from clustergate.benchmarks.imb import BENCHMARK as IMB
from clustergate.benchmarks.imb import command as imb_command
from clustergate.benchmarks.imb.command import MPI1_BENCHMARKS, SIZES_FILE, WARM_UP, ImbSettings
from clustergate.benchmarks.imb.plan import ImbExpectation
from reframe_checks.base import MpiBenchmark
from reframe_checks.sweeps import OverLayouts
from reframe_checks.system import partition_of


class ImbBenchmark(OverLayouts, MpiBenchmark):
    """Base of the IMB suites: every process count is a job of its own."""

    descriptor = IMB
    settings_that_matter = (
        *("benchmarks", "subgroups", "largest_bytes", "off_cache", "root_shift", "sync"),
        *("map", "iter_policy", "time", "memory_gb"),
    )
    #: Those that the suite has an option for.
    known_settings: Sequence[str] = settings_that_matter
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
            benchmarks=self.wanted(),
            smallest_group=2 if self.subgroups else self.ranks,
            ranks=self.ranks,
            without=self.left_out(),
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

    def left_out(self) -> Sequence[str]:
        """Return benchmarks of the suite that cannot run with these ranks."""
        return ()

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
        )


@rfm.simple_test
class ImbMpi1Check(ImbBenchmark):
    """IMB-MPI1: point-to-point and collective calls."""

    program = "IMB-MPI1"
    benchmarks = list(MPI1_BENCHMARKS)

    def arguments(self) -> Sequence[str]:
        """Return IMB's command line, with a first benchmark that warms up and does not count."""
        return [WARM_UP, *super().arguments()]

    def expectation(self) -> ImbExpectation:
        """Return what IMB's text must hold, but for the figures of the warm-up."""
        return dataclasses.replace(super().expectation(), warm_up=True)

    def wanted(self) -> Sequence[str]:
        """Return what was set by hand, else what the mode runs of the suite."""
        by_hand = self.benchmarks != list(MPI1_BENCHMARKS)
        of_mode: Sequence[str] = self.effort.benchmarks
        return super().wanted() if by_hand or not of_mode else of_mode


@rfm.simple_test
class ImbRmaCheck(ImbBenchmark):
    """IMB-RMA: one-sided calls."""

    program = "IMB-RMA"

    def left_out(self) -> Sequence[str]:
        """Leave out what IMB measures between two ranks only and else drops without a word."""
        return () if self.subgroups or self.ranks == 2 else ("Fetch_and_op", "Compare_and_swap")


@rfm.simple_test
class ImbNbcCheck(ImbBenchmark):
    """IMB-NBC: non-blocking collective calls and how much of them is hidden behind work."""

    program = "IMB-NBC"


@rfm.simple_test
class ImbP2pCheck(ImbBenchmark):
    """IMB-P2P: point-to-point patterns of all ranks at once."""

    program = "IMB-P2P"
    known_settings = ("benchmarks", "largest_bytes")

    def arguments(self) -> Sequence[str]:
        return imb_command.p2p_arguments(self.settings())


@rfm.simple_test
class ImbMtCheck(ImbBenchmark):
    """IMB-MT: several threads of each rank in MPI at once, as many as ``cores_per_rank``."""

    program = "IMB-MT"
    known_settings = ("benchmarks", "largest_bytes")
    # IMB-MT does not list what it will run, so a lost benchmark is noticed by this list alone.
    benchmarks = [
        *("PingPongMT", "PingPingMT", "SendRecvMT", "ExchangeMT", "UniBandMT", "BiBandMT"),
        *("BcastMT", "ReduceMT", "AllReduceMT", "BarrierMT"),
    ]

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
