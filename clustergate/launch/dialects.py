"""How each MPI's launcher wants to be told ranks, binding and nodes. Pure functions."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from clustergate.core.model import ClustergateError
from clustergate.core.words import INPUT_TOO_SMALL, INPUT_UNKNOWN_NAME

_Entry = TypeVar("_Entry")


@dataclass(frozen=True)
class Layout:
    """What a launch is to look like.

    ``ranks`` processes in all, ``ranks_per_node`` on each node but the last one, which has what is
    left, ``cores_per_rank`` cores bound to each. ``bind`` False leaves the placement on cores to
    the operating system.
    """

    ranks: int
    ranks_per_node: int
    cores_per_rank: int = 1
    bind: bool = True

    def __post_init__(self) -> None:
        for name in ("ranks", "ranks_per_node", "cores_per_rank"):
            if (value := getattr(self, name)) < 1:
                raise ClustergateError(INPUT_TOO_SMALL(name=name, least=1, value=value))

    @property
    def nodes(self) -> int:
        """Return the number of nodes that the ranks occupy."""
        return -(-self.ranks // self.ranks_per_node)

    @property
    def tasks_to_ask_for(self) -> int:
        """Return the tasks that a scheduler is asked for: those of whole nodes.

        ReFrame's backends divide the tasks by those per node and drop the remainder, and a
        scheduler spreads a remainder over the nodes as it likes. The launch itself starts no more
        than ``ranks``.
        """
        return self.nodes * self.ranks_per_node

    def ranks_on(self, hosts: Sequence[str]) -> dict[str, int]:
        """Return how many ranks each of the nodes has, in the order in which they are filled."""
        left = (self.ranks - i * self.ranks_per_node for i in range(self.nodes))
        return {host: min(self.ranks_per_node, n) for host, n in zip(hosts, left, strict=False)}


@dataclass(frozen=True)
class LaunchRoute:
    """How a launcher comes to the nodes.

    ``hostfile`` is the path of a file that names them, which are then reached over ssh; without one
    they are those of the scheduler's allocation, or this node alone. ``exports`` are variables
    that the ranks must see and that the launcher takes to no other node by itself.
    """

    hostfile: str = ""
    exports: Mapping[str, str] = field(default_factory=dict)


HERE = LaunchRoute()


def _hydra(layout: Layout, way: LaunchRoute) -> list[str]:
    options = ["-n", str(layout.ranks), "-ppn", str(layout.ranks_per_node)]
    if way.hostfile:
        options = ["-launcher", "ssh", "-f", way.hostfile, *options]
    if layout.bind:
        options += ["-bind-to", f"core:{layout.cores_per_rank}"]
    return options


def _intel_hydra(layout: Layout, way: LaunchRoute) -> list[str]:
    options = _hydra(dataclasses.replace(layout, bind=False), way)
    if layout.bind:
        # The domain counts cores, not hardware threads, once the cell is the core.
        options += ["-genv", "I_MPI_PIN", "1", "-genv", "I_MPI_PIN_CELL", "core"]
        options += ["-genv", "I_MPI_PIN_DOMAIN", f"{layout.cores_per_rank}:compact"]
    else:
        options += ["-genv", "I_MPI_PIN", "0"]
    return options


def _openmpi(layout: Layout, way: LaunchRoute) -> list[str]:
    options = ["-n", str(layout.ranks)]
    if way.hostfile:
        # In an allocation it would ask the scheduler, whatever the file says.
        options = ["--hostfile", way.hostfile, "--prtemca", "plm", "ssh", *options]
        for name in way.exports:
            options += ["-x", name]
    where = f"ppr:{layout.ranks_per_node}:node"
    if layout.bind:
        return [*options, "--map-by", f"{where}:PE={layout.cores_per_rank}", "--bind-to", "core"]
    return [*options, "--map-by", where, "--bind-to", "none"]


def _mvapich2(layout: Layout, way: LaunchRoute) -> list[str]:
    # The library binds its ranks itself when it starts, over what hydra did; only one of them may.
    return [*_hydra(layout, way), "-genv", "MV2_ENABLE_AFFINITY", "0"]


def _mpirun_rsh(layout: Layout, way: LaunchRoute) -> list[str]:
    """Return the options of MVAPICH2's own starter, which binds nothing: the library does.

    MVAPICH2 2.3.7 User Guide, sections 5.2.1 (mpirun_rsh) and 6.5 (binding).
    """
    # Over ssh, by default; 2.3.7 no longer knows an option -ssh.
    options = ["-np", str(layout.ranks), "-hostfile", way.hostfile]
    variables = {**way.exports, "MV2_ENABLE_AFFINITY": str(int(layout.bind))}
    if "PATH" in variables:
        # It takes the place of the node's own, and ranks begin with env.
        variables["PATH"] += ":/usr/local/bin:/usr/bin:/bin"
    if layout.bind and layout.cores_per_rank > 1:
        variables |= {
            "MV2_CPU_BINDING_POLICY": "hybrid",
            "MV2_HYBRID_BINDING_POLICY": "compact",
            "MV2_THREADS_PER_PROCESS": str(layout.cores_per_rank),
        }
    elif layout.bind:
        variables["MV2_CPU_BINDING_POLICY"] = "bunch"
    # It writes values into a line of shell as they are.
    return [*options, *(f"{name}={shlex.quote(value)}" for name, value in variables.items())]


_OPTIONS: Mapping[str, Callable[[Layout, LaunchRoute], list[str]]] = {
    "hydra": _hydra,
    "intel-hydra": _intel_hydra,
    "mpirun_rsh": _mpirun_rsh,
    "mvapich2": _mvapich2,
    "openmpi": _openmpi,
}
# The process manager interface by which a library's ranks find each other under srun. With another
# one each rank believes to be alone.
_PMI: Mapping[str, str] = {
    "hydra": "pmi2",
    "intel-hydra": "pmi2",
    "mvapich2": "pmi2",
    "openmpi": "pmix",
}
# What keeps a library from binding its ranks anew, where srun has.
_BOUND_BY_SRUN: Mapping[str, Mapping[str, str]] = {
    "intel-hydra": {"I_MPI_PIN": "0"},
    "mvapich2": {"MV2_ENABLE_AFFINITY": "0"},
}


def launch_options(dialect: str, layout: Layout, way: LaunchRoute = HERE) -> list[str]:
    """Return the options that make a launcher of this dialect start ``layout``.

    Raises :class:`ClustergateError` for a dialect nobody knows.
    """
    return _known(_OPTIONS, dialect)(layout, way)


def hostfile_dialect(dialect: str) -> str:
    """Return how a launcher of this dialect wants its hostfile written.

    The names are those of :data:`clustergate.launch.hostfiles.DIALECTS`. Raises
    :class:`ClustergateError` for a dialect nobody knows.
    """
    _known(_OPTIONS, dialect)
    return dialect if dialect in ("mpirun_rsh", "openmpi") else "hydra"


def srun_options(dialect: str, layout: Layout, pmi: str = "") -> list[str]:
    """Return the options that make Slurm's srun start ``layout`` in an allocation.

    ``pmi`` is the site's word for the process manager interface, where the usual one of the stack
    will not do. Raises :class:`ClustergateError` for a dialect nobody knows.
    """
    return [
        f"--mpi={pmi or _known(_PMI, dialect)}",
        f"--nodes={layout.nodes}",
        f"--ntasks={layout.ranks}",
        *_srun_placement(layout),
        # Since Slurm 22.05 srun does not take it from the job.
        f"--cpus-per-task={layout.cores_per_rank}",
        # Else it counts hardware threads, and puts two ranks on the threads of one core.
        "--threads-per-core=1",
        f"--cpu-bind={'cores' if layout.bind else 'none'}",
        # A site may submit jobs with --export=NONE, which srun would take for itself as well.
        "--export=ALL",
        # One rank that dies ends all: the others would wait until the time limit.
        "--kill-on-bad-exit=1",
    ]


def _srun_placement(layout: Layout) -> list[str]:
    """Return the options that put so many ranks on each node, and what is left on the last.

    Where they do not divide, srun ignores --ntasks-per-node, evens the nodes out by block, and
    fills every hardware thread with Pack; planes alone are of as many ranks as asked for. srun(1)
    says that nodes get as many as by cyclic distribution; Slurm 22.05 fills them.
    """
    if layout.ranks == layout.tasks_to_ask_for:
        return [f"--ntasks-per-node={layout.ranks_per_node}", "--distribution=block:block"]
    return [f"--distribution=plane={layout.ranks_per_node}"]


def srun_environment(dialect: str) -> dict[str, str]:
    """Return the variables by which a library leaves the binding to srun."""
    return dict(_BOUND_BY_SRUN.get(dialect, {}))


def env_words(variables: Mapping[str, str], further: Sequence[str] = ()) -> list[str]:
    """Return the words in front of a command that give it variables; ``further`` are as words."""
    words = [*(f"{name}={value}" for name, value in variables.items()), *further]
    return ["env", *words] if words else []


def launcher_environment(dialect: str, *, as_root: bool) -> dict[str, str]:
    """Return the variables that the launcher itself needs, beside those of the stack."""
    if dialect == "openmpi" and as_root:
        # Open MPI refuses root, which is all there is in many containers.
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {}


def _known(table: Mapping[str, _Entry], dialect: str) -> _Entry:
    try:
        return table[dialect]
    except KeyError:
        facts = {"kind": "launcher dialect", "name": dialect}
        raise ClustergateError(INPUT_UNKNOWN_NAME(**facts, known=sorted(table))) from None
