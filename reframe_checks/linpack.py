"""What HPL and HPCC share: a dense linear system sized for the machine, solved as it was tuned."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import reframe.utility.typecheck as typ
from reframe.core.builtins import variable
from reframe.core.runtime import runtime

from clustergate.benchmarks.hpl import sizing
from clustergate.machine.node import read_node
from clustergate.tuning.file import model_of
from clustergate.tuning.plan import HplRequest, find_tuning, plan_hpl
from reframe_checks.base import MpiBenchmark
from reframe_checks.system import partition_of

# Of the nominal peak: what the problem is sized for before the machine has been measured.
EXPECTED_EFFICIENCY = 0.7


class LinpackBenchmark(MpiBenchmark):
    """Base of the checks whose input is that of HPL."""

    settings_that_matter = ("n", "seconds")
    #: Block size; 0 takes the tuned one, or the default.
    nb = variable(int, value=0, loggable=True)
    #: Order of the matrix; 0 sizes it by the mode.
    n = variable(int, value=0, loggable=True)
    #: Seconds that one solve may take; 0 leaves it to the mode.
    seconds = variable(float, value=0.0, loggable=True)
    #: Whether to run as ``clustergate tune hpl`` found best, where it did.
    tuned = variable(typ.Bool, value=True, loggable=True)
    #: Cores for each rank; 0 takes the tuned number, or one.
    cores_per_rank = 0
    #: Whether ranks and cores are what the benchmark is about, and not for a tuning to choose.
    layout_is_fixed = False

    def settle(self) -> None:
        """Settle how HPL is run: by hand, as tuned, or by default."""
        partition = partition_of(self)
        is_here = partition.scheduler == "local"
        asked = HplRequest(
            build_key=self.manifest.build_key,
            node_model=model_of(read_node()) if is_here else None,
            cores_per_node=partition.cores_per_node,
            nb=self.nb,
            ranks=self.ranks,
            cores_per_rank=self.cores_per_rank,
            layout_is_fixed=self.layout_is_fixed,
        )
        site_configs = [Path(name) for name in runtime().site_config.sources]
        # A published evaluation is run as it was printed.
        by_tuning = self.tuned and not self.asked_mode.as_published
        tuned = find_tuning(site_configs, self.current_environ.name) if by_tuning else None
        self.hpl_plan = plan_hpl(asked, tuned)
        self.cores_per_rank = self.hpl_plan.cores_per_rank

    def asked(self) -> sizing.HplInput:
        """Return the problem to solve; what the program repeats of it must be this."""
        raise NotImplementedError

    def problem(self, seconds: float | None, memory_fraction: float) -> sizing.HplInput:
        """Return the problem for a time, capped by a fraction of the memory, or of N."""
        n_fraction = self.effort.n_fraction
        n = self.n or sizing.choose_problem_size(
            partition_of(self).memory_bytes_per_node * self.layout.nodes,
            *self.hpl_plan.grid(self.ranks),
            nb=self.hpl_plan.nb,
            memory_fraction=memory_fraction,
            n_fraction=n_fraction,
            rounding="nb-lcm" if n_fraction else "nb",
            seconds=self.seconds or seconds,
            gflops=self.expected_gflops(),
        )
        inputs = dict(self.effort.inputs)
        if self.effort.every_grid:
            p_values = tuple(p for p in range(1, self.ranks + 1) if self.ranks % p == 0)
            inputs |= {"p_values": p_values, "q_values": p_values[::-1]}
        return replace(self.hpl_plan.hpl_input(n, self.ranks), **inputs)

    def expected_s(self) -> float:
        """Return what its solve takes, if that is longer than usual."""
        solve_s = sizing.predict_hpl_seconds(max(self.asked().n_values), self.expected_gflops())
        return max(super().expected_s(), solve_s)

    def peak_programs(self) -> Mapping[str, Sequence[str]]:
        """Return the kernels: HPL can be no faster than DGEMM with its block size."""
        return {**super().peak_programs(), "dgemm": ["--k", str(self.hpl_plan.nb)]}

    def changed_settings(self) -> dict[str, Any]:
        """Return the settings that HPL's figures depend on, the tuning among them."""
        return {**super().changed_settings(), **self.hpl_plan.settings}

    def notes(self, samples: Sequence[Any]) -> Sequence[str]:
        """Tell whether HPL was tuned, and what to do about it."""
        return [self.hpl_plan.note] if self.hpl_plan.note else []

    def expected_gflops(self) -> float:
        """Return the rate of HPL to expect of these ranks, before it has been measured."""
        nominal = partition_of(self).nominal_gflops_per_core
        cores: int = self.layout.ranks * self.layout.cores_per_rank
        return nominal * cores * EXPECTED_EFFICIENCY
