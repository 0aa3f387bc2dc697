"""LAMMPS: Lennard-Jones melt and rhodopsin, at a fixed size and at one that grows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import fixture, parameter, run_after

from clustergate.benchmarks import application_rules as rules
from clustergate.benchmarks.lammps import BENCHMARK as LAMMPS
from clustergate.benchmarks.lammps.build import lammps_inputs
from clustergate.benchmarks.lammps.output import LammpsExpectation, parse_lammps
from clustergate.model import Row
from reframe_checks.application import Application
from reframe_checks.build import build_with
from reframe_checks.system import partitions_that_scale_to, rank_counts

NO_INPUTS = "{} came without its inputs, share/lammps/bench; take LAMMPS of August 2023 or later"


@rfm.simple_test
class LammpsCheck(Application):
    """LAMMPS's Lennard-Jones melt and rhodopsin, at a fixed size and at one that grows."""

    program = "lmp"
    descriptor = LAMMPS
    build = fixture(build_with("lammps"), scope="environment")
    model = parameter(LAMMPS.checks[0].parameters["model"], loggable=True)
    scaling = parameter(LAMMPS.checks[0].parameters["scaling"], loggable=True)
    # One process too: what others are told against.
    process_count = parameter(sorted({1, *rank_counts()}), loggable=True)

    @run_after("init")
    def take_parameters(self) -> None:
        """Let the parameters of this case decide the ranks and the problem."""
        self.ranks = self.process_count
        self.only_in(partitions_that_scale_to(self, self.ranks))
        self.problem = rules.lammps_problem(self.model, self.scaling, self.ranks, self.replicated)

    @run_after("setup")
    def need_inputs(self) -> None:
        """Leave a case out whose LAMMPS came without inputs."""
        if not lammps_inputs(Path(self.found.path)) and not self.is_dry_run():
            self.not_available(NO_INPUTS.format(self.found.path))

    def arguments(self) -> Sequence[str]:
        """Return LAMMPS's command line; its log says no more than its output."""
        return [*self.problem.arguments(), "-log", "none"]

    def inputs(self) -> Mapping[str, str]:
        """Return the input as LAMMPS has it, with its data where they lie."""
        folder = lammps_inputs(Path(self.found.path))
        if folder is None:
            # A dry run of what is not installed.
            return {}
        script = folder / self.problem.script
        data = str(folder / "data.rhodo")
        return {script.name: script.read_text().replace("data.rhodo", data)}

    def rows(self, lines: Iterable[str], source: str) -> Iterator[Row]:
        """Read LAMMPS's text; size, steps and energy must be those of the model."""
        expected = LammpsExpectation(
            rules.lammps_name(self.model, self.scaling),
            *(self.ranks, self.problem.atoms, rules.LAMMPS_STEPS, self.problem.energy),
        )
        return parse_lammps(lines, source=source, expect=expected)
