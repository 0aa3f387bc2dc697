"""The NAS Parallel Benchmarks, each on as many processes as its rules allow."""

from reframe.core.builtins import run_after, variable

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.npb import rules
from clustergate.benchmarks.npb.build import npb_program
from clustergate.benchmarks.npb.output import NpbExpectation
from reframe_checks.application import Application
from reframe_checks.declaration import check
from reframe_checks.system import used_shape


@check("NpbCheck")
class NpbCheck(Application):
    """One of the NAS Parallel Benchmarks, on as many processes as its rules allow."""

    settings_that_matter = ("problem_class",)
    #: The problem's size, S to C; Pase ran C.
    problem_class = variable(str, value="C", loggable=True)

    @run_after("init")
    def take_parameters(self) -> None:
        """Let the parameter of this case decide the program."""
        self.program = npb_program(self.benchmark, self.problem_class)

    def settle(self) -> None:
        """Take the processes asked for, or the most that the benchmark may run on."""
        shape = used_shape(self)
        available = shape.cores_per_node * shape.nodes
        try:
            rules.npb_class(self.problem_class)
            self.ranks = rules.npb_processes(self.benchmark, self.ranks, available)
        except CannotRun as error:
            self.not_available(str(error))

    def expectation(self) -> NpbExpectation:
        """Return what the benchmark's text must hold."""
        return NpbExpectation(self.benchmark.upper(), self.problem_class, self.ranks)
