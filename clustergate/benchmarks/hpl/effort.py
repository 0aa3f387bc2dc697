"""What a mode spends on a dense linear system: HPL, and HPCC, which begins with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clustergate.benchmarks.descriptor import Effort


@dataclass(frozen=True, kw_only=True)
class LinpackEffort(Effort):
    """How large the matrix is.

    One solve may take ``seconds`` on the machine at hand, None for no such bound; the matrix fills
    at most ``memory_fraction`` of the memory, in bytes. ``n_fraction`` is a fraction of the N that
    fills all memory, and goes before that. ``inputs`` are fields of
    :class:`clustergate.benchmarks.hpl.sizing.HplInput`, as a published evaluation set them;
    ``every_grid`` solves it on each grid of the ranks in turn.
    """

    seconds: float | None
    memory_fraction: float = 0.8
    n_fraction: float | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    every_grid: bool = False
