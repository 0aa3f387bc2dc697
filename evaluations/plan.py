"""What is launched so that a paper's tables, figures and conclusions can be had. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clustergate.sites import modes
from clustergate.sites.shape import Shape
from evaluations.modes import PAPER_CHECKS

# What a run that is scaled to the machine at hand spends: seconds for each solve of HPL and of
# HPCC, the class of NPB, LAMMPS's own size where the paper's takes minutes, launches of each case.
SCALED: Mapping[str, object] = {
    "HplCheck.seconds": 60,
    "HpccCheck.seconds": 30,
    "NpbCheck.problem_class": "A",
    "LammpsCheck.replicated": 1,
    "launches": 1,
}
# Of the smaller problems of a figure over the size of the problem, which grows as the cubic root.
SMALLER_HPL_SECONDS = (1, 4, 16)


@dataclass(frozen=True)
class Part:
    """Checks that run with settings of their own: all of the paper's where none is named."""

    checks: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)


def parts_of(paper: str, shape: Shape, *, full: bool) -> list[Part]:
    """Return the parts of a run; that of the paper's whole mode is the last.

    A mode runs HPCC on all cores and HPL with one problem alone; paper 000 drew HPCC over the
    number of processes, and paper 003 HPL over the size of the problem.
    """
    scaled = {} if full else SCALED
    parts = []
    if full and "HPCC" in PAPER_CHECKS[paper]:
        whole = shape.cores_per_node * shape.nodes
        for ranks in shape.rank_counts():
            if ranks != whole:
                parts.append(Part(("HpccCheck",), {"HpccCheck.ranks": ranks}))
    if modes.mode_named(f"published-{paper}").is_on_one_node("HplCheck"):
        for seconds in SMALLER_HPL_SECONDS:
            parts.append(Part(("HplCheck",), {**scaled, "HplCheck.seconds": seconds}))
    return [*parts, Part((), scaled)]
