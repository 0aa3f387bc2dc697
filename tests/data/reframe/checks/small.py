"""Three small tests: a timing in Python, twice, and a loop in C that copies memory."""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_before, sanity_function

SORT = (
    "import random, time; random.seed(1); x = [random.random() for _ in range({size})]; "
    "t = time.perf_counter(); sorted(x); print('seconds', time.perf_counter() - t)"
)


@rfm.simple_test
class sort_numbers(rfm.RunOnlyRegressionTest):  # type: ignore[misc]
    """How long Python sorts."""

    size = parameter([20000, 40000])
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "python3"

    @run_before("run")
    def program(self):
        self.executable_opts = ["-c", f'"{SORT.format(size=self.size)}"']

    @sanity_function
    def ran(self):
        return sn.assert_found("seconds", self.stdout)

    @performance_function("s")
    def elapsed(self):
        return sn.extractsingle(r"seconds (\S+)", self.stdout, 1, float)


@rfm.simple_test
class copy_loop(rfm.RegressionTest):  # type: ignore[misc]
    """How fast a loop copies, in GB/s and in something that has no unit of its own."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    build_system = "SingleSource"
    sourcepath = "copy.c"
    reference = {"*": {"Copy": (1.0, -0.9, None, "GB/s")}}

    @sanity_function
    def ran(self):
        return sn.assert_found("Copy", self.stdout)

    @performance_function("GB/s")
    def Copy(self):
        return sn.extractsingle(r"Copy (\S+)", self.stdout, 1, float)

    @performance_function("items/s", perf_key="Items")
    def items(self):
        return sn.extractsingle(r"Items (\S+)", self.stdout, 1, float)
