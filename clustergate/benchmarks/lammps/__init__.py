"""LAMMPS."""

from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.descriptor import Benchmark, Check, Effort, Format, Headline, Sweep
from clustergate.benchmarks.lammps.build import BUILD
from clustergate.benchmarks.lammps.output import TITLE, parse_lammps
from clustergate.benchmarks.limits import rate_limits

# Forces between an atom and its neighbours, some forty of them, with some twenty operations each.
_FLOPS_PER_ATOM_STEP = 100.0

BENCHMARK = Benchmark(
    "lammps",
    "LAMMPS",
    Format(TITLE, parse_lammps),
    checks=(
        Check(
            "LammpsCheck",
            "LAMMPS: Lennard-Jones melt and rhodopsin, at a fixed size and at one that grows",
            Sweep.PROCESS_COUNTS,
            parameters={"model": ("lj", "rhodo"), "scaling": ("strong", "weak")},
            tags=frozenset({"published", "published-002"}),
        ),
    ),
    # Martin et al. ran each application three times.
    efforts={"smoke": Effort(budget=Budget(at_least=3, at_most=3))},
    place=20,
    limits=rate_limits("atom_steps_per_s", 1e9 / _FLOPS_PER_ATOM_STEP),
    headlines=(
        *(
            Headline(
                *(f"LAMMPS {model}, {scaling}: atoms x steps", "1/s", "LammpsCheck"),
                *(f"LAMMPS-{model}-{scaling}", "atom_steps_per_s"),
            )
            for model in ("lj", "rhodo")
            for scaling in ("strong", "weak")
        ),
    ),
    build=BUILD,
)
