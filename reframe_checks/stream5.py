"""McCalpin's STREAM 5.10: what the memory of a node, and of each of its NUMA domains, moves."""

from collections.abc import Mapping

from reframe.core.builtins import variable

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.stream5 import stream5_elements, threads_of_rank
from clustergate.benchmarks.stream5.build import SIZES, program_of
from clustergate.benchmarks.stream5.output import Stream5Expectation
from reframe_checks.base import MpiBenchmark
from reframe_checks.contenders import TwoContenders
from reframe_checks.declaration import check
from reframe_checks.system import partition_of


@check("Stream5Check")
class Stream5Check(MpiBenchmark):
    """STREAM 5.10 by one process with a thread on each core, or by one in each NUMA domain."""

    program = program_of(SIZES[0])
    settings_that_matter = ("elements",)
    #: Elements of each rank's arrays, at least; 0 takes what STREAM demands.
    elements = variable(int, value=0, loggable=True)

    def choose_program(self) -> None:
        """Take the one whose arrays no cache holds."""
        said = partition_of(self)
        memory = said.cache_bytes_per_node, said.memory_bytes_per_node
        try:
            self.cores_per_rank = threads_of_rank(said.cores_per_node, self.ranks)
            self.length = stream5_elements(self.elements, *memory, self.ranks)
        except CannotRun as error:
            self.not_available(str(error))
        self.program = program_of(self.length)

    def rank_environment(self) -> Mapping[str, str]:
        """Return the threads of each rank, which the program binds itself."""
        return {"OMP_NUM_THREADS": str(self.cores_per_rank), "OMP_PROC_BIND": "false"}

    def expectation(self) -> Stream5Expectation:
        """Return what STREAM's text must hold."""
        return Stream5Expectation(self.ranks, self.cores_per_rank, self.length)


@check("AbStream5Check")
class AbStream5Check(TwoContenders, Stream5Check):
    """STREAM 5.10 of A against that of B, as each MPI library lets its threads be bound."""
