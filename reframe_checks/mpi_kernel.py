"""What the checks of the suite's own MPI kernels share: their lines, and what these must hold."""

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence

from reframe.core.builtins import run_after, variable

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.mpi_kernel import KernelExpectation
from reframe_checks.base import MpiBenchmark
from reframe_checks.system import used_shape


class MpiKernel(MpiBenchmark):
    """Base of the kernels' checks: their lines, and what they must hold."""

    #: How often a measurement is repeated within a launch.
    trials = variable(int, value=0, loggable=True)

    @run_after("setup")
    def ask(self) -> None:
        """Work the input out; where the site config does not say enough, say so and skip."""
        try:
            self.asked, expected = self.question()
            self.expected = dataclasses.replace(expected, arguments=tuple(self.asked))
        except CannotRun as error:
            self.not_available(str(error))

    @abstractmethod
    def question(self) -> tuple[Sequence[str], KernelExpectation]:
        """Return the arguments, and what the output must then hold."""

    def arguments(self) -> Sequence[str]:
        return self.asked

    def expectation(self) -> KernelExpectation:
        """Return what the kernel's lines must hold."""
        return self.expected


class PairKernel(MpiKernel):
    """Base of the kernels that two processes run, on one node or on two."""

    settings_that_matter = ("trials", "largest_bytes", "seconds")
    ranks = 2
    #: The largest message; the sizes are 1, 2, 4, … bytes.
    largest_bytes = variable(int, value=8 << 20, loggable=True)
    #: Seconds that each measurement takes, about.
    seconds = variable(float, value=0.0, loggable=True)

    def settle(self) -> None:
        if not used_shape(self).holds(2, "packed"):
            self.not_available("two processes take two cores, and there is one")
