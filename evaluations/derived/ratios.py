"""The table of ratios of HPC Challenge to HPL over several runs, as paper 000 compares systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustergate.core.figures import DerivedError, require_positive
from clustergate.core.reasons import Words
from evaluations.derived.balance import COLUMNS

RATIO_THRESHOLD_TFLOPS = 1.0
"""Below this HPL no system enters the comparison of ratios (section 4.1.2): a small one has an
undue advantage in whatever all processes share."""

FEWEST_NODES_OF_A_NETWORK = 8
"""On fewer nodes the random ring stays inside of them too often to be one of the network
(section 4.1.1)."""


def balance_b_per_flop(gb_s: float, hpl_tflops: float) -> float:
    """Return bytes moved per operation of HPL: GB/s over 1000 Gflop/s for each Tflop/s."""
    require_positive(hpl_tflops=hpl_tflops)
    return gb_s / (1000 * hpl_tflops)


@dataclass(frozen=True)
class RatioTable:
    """Ratios of several runs, each column divided by its largest value: the best is 1.

    ``maxima`` are these largest values, ``left_out`` the runs below the threshold.
    """

    parts: Mapping[str, Mapping[str, float]]
    maxima: Mapping[str, float]
    left_out: Sequence[str]


OTHER_DEFINITION = Words(
    "derived.other-definition",
    "{name} is not the same benchmark in these runs: {runs}",
    remedy="compare those of one version",
)


def ratio_table(
    rows: Mapping[str, Mapping[str, float]],
    versions: Mapping[str, str] | None = None,
    threshold_tflops: float = RATIO_THRESHOLD_TFLOPS,
) -> RatioTable:
    """Return the table of the rows whose HPL is above the threshold, by the name of their run.

    ``versions`` are the HPCC versions of the runs: raises :class:`DerivedError` when their
    RandomAccess differs, see :func:`random_access_of`.
    """
    shown = {name: row for name, row in rows.items() if row["HPL_Tflops"] > threshold_tflops}
    kinds = {name: random_access_of(v) for name, v in (versions or {}).items() if name in shown}
    if len(set(kinds.values())) > 1:
        runs = ", ".join(f"{name} ({versions[name]})" for name in kinds) if versions else ""
        raise DerivedError(OTHER_DEFINITION(name="RandomAccess", runs=runs))
    maxima = {
        column: max(row[column] for row in shown.values() if column in row)
        for column in COLUMNS
        if any(column in row for row in shown.values())
    }
    parts = {
        name: {column: value / maxima[column] for column, value in row.items() if maxima[column]}
        for name, row in shown.items()
    }
    return RatioTable(parts, maxima, [name for name in rows if name not in shown])


NO_VERSION = Words("derived.no-version", "{version!r} is no version of {program}, such as 1.5.0")


def random_access_of(version: str) -> str:
    """Return which RandomAccess an HPCC version has, ``0`` or ``1``: they do not compare.

    The benchmark was defined anew with version 1.0 (section 4.1.2 has results of 1.0 alone). Raises
    :class:`DerivedError` for what is no version.
    """
    major, _, rest = version.partition(".")
    if not (major.isdigit() and rest):
        raise DerivedError(NO_VERSION(version=version, program="HPCC"))
    return "0" if int(major) == 0 else "1"


def is_of_the_network(nodes: int) -> bool:
    """Tell whether the random ring on so many nodes says something of the network."""
    return nodes >= FEWEST_NODES_OF_A_NETWORK
