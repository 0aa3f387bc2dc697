"""LAMMPS: Lennard-Jones melt and rhodopsin, at a fixed size and at one that grows."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from reframe.core.builtins import run_after, variable

from clustergate.benchmarks.lammps import problem
from clustergate.benchmarks.lammps.build import lammps_inputs
from clustergate.benchmarks.lammps.output import LammpsExpectation
from reframe_checks.application import Application
from reframe_checks.declaration import check

NO_INPUTS = "{} came without its inputs, share/lammps/bench; take LAMMPS of August 2023 or later"


@check("LammpsCheck")
class LammpsCheck(Application):
    """LAMMPS's Lennard-Jones melt and rhodopsin, at a fixed size and at one that grows."""

    program = "lmp"
    settings_that_matter = ("replicated",)
    #: Replicas of 32000 atoms along each edge at a fixed size; 0 takes the evaluation's.
    replicated = variable(int, value=0, loggable=True)

    @run_after("init")
    def take_problem(self) -> None:
        """Let the parameters of this case decide the problem."""
        self.problem = problem.lammps_problem(
            self.model, self.scaling, self.process_count, self.replicated
        )

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

    def expectation(self) -> LammpsExpectation:
        """Return the size, the steps and the energy of the model."""
        return LammpsExpectation(
            problem.lammps_name(self.model, self.scaling),
            *(self.ranks, self.problem.atoms, problem.LAMMPS_STEPS, self.problem.energy),
        )
