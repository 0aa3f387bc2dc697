"""How each MPI's launcher wants to be told ranks, ranks per node and binding. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clustergate.model import ClustergateError


class LayoutError(ClustergateError):
    """A launch was asked for that cannot be."""


@dataclass(frozen=True)
class Layout:
    """What a launch is to look like.

    ``ranks`` processes in all, ``ranks_per_node`` on each node, ``cores_per_rank`` cores bound to
    each. ``bind`` False leaves the placement on cores to the operating system.
    """

    ranks: int
    ranks_per_node: int
    cores_per_rank: int = 1
    bind: bool = True

    def __post_init__(self) -> None:
        for name in ("ranks", "ranks_per_node", "cores_per_rank"):
            if getattr(self, name) < 1:
                raise LayoutError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.ranks % self.ranks_per_node:
            raise LayoutError(
                f"{self.ranks} ranks do not fill nodes of {self.ranks_per_node} ranks each"
            )

    @property
    def nodes(self) -> int:
        """Return the number of nodes that the ranks occupy."""
        return self.ranks // self.ranks_per_node


def _hydra(layout: Layout) -> list[str]:
    options = ["-n", str(layout.ranks), "-ppn", str(layout.ranks_per_node)]
    if layout.bind:
        options += ["-bind-to", f"core:{layout.cores_per_rank}"]
    return options


def _intel_hydra(layout: Layout) -> list[str]:
    options = ["-n", str(layout.ranks), "-ppn", str(layout.ranks_per_node)]
    if layout.bind:
        # The domain counts cores, not hardware threads, once the cell is the core.
        options += ["-genv", "I_MPI_PIN", "1", "-genv", "I_MPI_PIN_CELL", "core"]
        options += ["-genv", "I_MPI_PIN_DOMAIN", f"{layout.cores_per_rank}:compact"]
    else:
        options += ["-genv", "I_MPI_PIN", "0"]
    return options


def _openmpi(layout: Layout) -> list[str]:
    options = ["-n", str(layout.ranks)]
    where = f"ppr:{layout.ranks_per_node}:node"
    if layout.bind:
        return [*options, "--map-by", f"{where}:PE={layout.cores_per_rank}", "--bind-to", "core"]
    return [*options, "--map-by", where, "--bind-to", "none"]


def _mvapich2(layout: Layout) -> list[str]:
    # The library binds its ranks itself when it starts, over what hydra did; only one of them may.
    return [*_hydra(layout), "-genv", "MV2_ENABLE_AFFINITY", "0"]


_OPTIONS: Mapping[str, Callable[[Layout], list[str]]] = {
    "hydra": _hydra,
    "intel-hydra": _intel_hydra,
    "mvapich2": _mvapich2,
    "openmpi": _openmpi,
}


def launch_options(dialect: str, layout: Layout) -> list[str]:
    """Return the options that make a launcher of this dialect start ``layout``.

    Raises :class:`LayoutError` for a dialect nobody knows.
    """
    try:
        return _OPTIONS[dialect](layout)
    except KeyError:
        known = ", ".join(sorted(_OPTIONS))
        raise LayoutError(f"no launcher speaks {dialect!r}; known: {known}") from None


def launcher_environment(dialect: str, *, as_root: bool) -> dict[str, str]:
    """Return the variables that the launcher itself needs, beside those of the stack."""
    if dialect == "openmpi" and as_root:
        # Open MPI refuses root, which is all there is in many containers.
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {}
