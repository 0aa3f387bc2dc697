"""What HPCCG is run with, by Martin et al. (SiCortex SC072, section 7). Pure."""

from __future__ import annotations

from clustergate.benchmarks.descriptor import CannotRun

HPCCG_EDGE = 64


def hpccg_arguments(edge: int = HPCCG_EDGE) -> list[str]:
    """Return the arguments of HPCCG: the block of each process, so that it always scales weakly."""
    if edge < 2:
        raise CannotRun("input.too-small", name="the edge of a block", least=2, value=edge)
    return [str(edge)] * 3
