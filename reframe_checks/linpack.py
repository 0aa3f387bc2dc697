"""What HPL and HPCC share: a dense linear system sized for the machine, solved as the site says."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from reframe.core.builtins import run_after, variable
from reframe.core.runtime import runtime

from clustergate.benchmarks.hpl import settings, sizing
from clustergate.core.model import ClustergateError
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Words
from clustergate.sites.choice import FALLBACK
from reframe_checks.base import MpiBenchmark
from reframe_checks.system import partition_of, stack_of

# Of the nominal peak: what the problem is sized for before the machine has been measured.
EXPECTED_EFFICIENCY = 0.7
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError)


TUNED_GONE = Words(
    "hpl.tuned-gone",
    "the setting tuned was removed",
    cause="the site config has its values now, as `stack(…, hpl={{…}})`",
    remedy="see docs/hpl-tuning.md",
)


class LinpackBenchmark(MpiBenchmark):
    """Base of the checks whose input is that of HPL."""

    settings_that_matter = ("n", "seconds")
    #: Block size; 0 takes that of the site config, or the default.
    nb = variable(int, value=0, loggable=True)
    #: Process grid, such as ``1x2``; empty takes that of the site config, or the squarest.
    grid = variable(str, value="", loggable=True)
    #: Order of the matrix; 0 sizes it by the mode.
    n = variable(int, value=0, loggable=True)
    #: Seconds that one solve may take; 0 leaves it to the mode.
    seconds = variable(float, value=0.0, loggable=True)
    #: What it was is refused: whoever still types it must not measure something else.
    tuned = variable(str, value="")
    #: Cores for each rank; 0 takes the number of the site config, or one.
    cores_per_rank = 0
    #: Whether ranks and cores are what the benchmark is about, and not for a setting to choose.
    layout_is_fixed = False
    #: Whether what the site config says of HPL holds.
    as_site_says = True

    @run_after("init")
    @run_after("setup")
    def refuse_tuned(self) -> None:
        """Refuse a setting of earlier versions."""
        if self.tuned:
            raise ClustergateError(TUNED_GONE())

    def settle(self) -> None:
        """Settle how HPL is run: by hand, as the site config says, or by default."""
        asked = settings.HplRequest(
            cores_per_node=partition_of(self).cores_per_node,
            nb=self.nb,
            grid=self.grid,
            ranks=self.ranks,
            cores_per_rank=self.cores_per_rank,
            layout_is_fixed=self.layout_is_fixed,
        )
        # A published evaluation is run as it was printed.
        by_site = self.as_site_says and not self.asked_mode.as_published
        said = stack_of(self).benchmarks.get("hpl") if by_site else None
        self.hpl_plan = settings.plan_hpl(asked, said)
        self.cores_per_rank = self.hpl_plan.cores_per_rank
        self.earlier = tuning_left_over(self.current_environ.name) if by_site and not said else ""

    @abstractmethod
    def asked(self) -> sizing.HplInput:
        """Return the problem to solve; what the program repeats of it must be this."""

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
        """Return the settings that HPL's figures depend on, those of the site config among them."""
        return {**super().changed_settings(), **self.hpl_plan.changed(self.ranks)}

    def notes(self, samples: Sequence[Any]) -> Sequence[str]:
        """Tell how HPL was run where that is not by default, and what to do about it."""
        return [*filter(None, [self.hpl_plan.note, self.earlier])]

    def expected_gflops(self) -> float:
        """Return the rate of HPL to expect of these ranks, before it has been measured."""
        nominal = partition_of(self).nominal_gflops_per_core
        cores: int = self.layout.ranks * self.layout.cores_per_rank
        return nominal * cores * EXPECTED_EFFICIENCY


def tuning_left_over(stack: str) -> str:
    """Return what to write into the site config in place of an earlier version's tuning of a stack.

    Its file lay beside the site config, that of a machine without one in the state folder. Empty
    where there is none.
    """
    for site in reversed(runtime().site_config.sources):
        path = Path(site).with_name(f"{Path(site).stem}.hpl.yaml")
        if Path(site).stem == FALLBACK:
            path = state_dir() / "tuning" / f"hpl-{FALLBACK}.yaml"
        try:
            entry = yaml.safe_load(path.read_text(encoding="utf-8"))["stacks"].get(stack)
            line = entry and settings.site_line(entry)
        except FileNotFoundError:
            continue
        except (*_DAMAGED, yaml.YAMLError, ClustergateError) as error:
            return f"{path} is no longer read, and is damaged ({error}): remove it"
        if line:
            return (
                f'HPL ran untuned: {path} is no longer read; write `stack("{stack}", …, {line})` '
                "into the site config, and remove the file"
            )
    return ""
