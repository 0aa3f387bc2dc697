"""What a site config says of a system, as the suite reads it: typed, with units. Pure.

A site config says it in ReFrame's own form, dictionaries; :mod:`clustergate.sites.schema` refuses
what it must not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from clustergate.benchmarks.registry import every_benchmark, every_check
from clustergate.core.model import ClustergateError, NodeFacts
from clustergate.core.reasons import Words
from clustergate.sites.schedulers import scheduler_of
from clustergate.sites.schedulers.scheduler import Limits, Scheduler
from clustergate.sites.shape import Shape
from clustergate.stacks import DEFAULT, StackRequest, suggestion

MAX_JOBS = 8
"""How many jobs ReFrame submits at once to a partition that does not say it."""
# The feature of environments that are MPI stacks.
MPI_STACK = "mpi-stack"


class SiteError(ClustergateError):
    """A site config is missing, damaged, or does not say what it must."""


def _extra(says: str, kind: str, *, default: Any = None, **schema: Any) -> Any:
    """Return the field of an extra: what it says, with its unit, and what values it can have."""
    return field(default=default, metadata={"type": kind, "description": says, **schema})


@dataclass(frozen=True, kw_only=True)
class Partition:
    """Nodes of one kind of a system, and how jobs get there.

    Those fields that say what they are are its extras, ``reframe`` further keys of ReFrame's
    (``max_jobs``, ``env_vars``, ``modules`` …). ``environs`` names the stacks, by default all.
    ``system``, ``excluded_nodes`` (those that the hostfile or this run leaves out) and the
    ``checks`` that the site config chose, by mode, are known once it is loaded.
    """

    name: str
    scheduler: str
    launcher: str = "clustergate"
    access: Sequence[str] = ()
    environs: Sequence[str] | None = None
    # Required of every partition; None until the site config has been checked.
    cores_per_node: int = _extra(
        "the physical cores of a node, not hardware threads", "integer", minimum=1, maximum=65536
    )
    memory_bytes_per_node: int = _extra(
        "what jobs may use of a node's memory, in bytes (256 * 2**30 for 256 GiB)",
        "integer",
        minimum=1 << 26,
        maximum=1 << 50,
    )
    nominal_gflops_per_core: float = _extra(
        "the nominal peak of a core in Gflop/s: GHz times operations per cycle (2.5 * 16)",
        "number",
        exclusiveMinimum=0,
        maximum=2000,
    )
    nodes: int | None = _extra("the number of its nodes", "integer", minimum=1, maximum=1_000_000)
    cache_bytes_per_node: int | None = _extra(
        "all data caches of a node together, in bytes", "integer", minimum=1 << 10, maximum=1 << 40
    )
    numa_domains_per_node: int | None = _extra(
        "the NUMA domains of a node that have cores, alike", "integer", minimum=1, maximum=1024
    )
    link_mb_s: float | None = _extra(
        "what a node can send, in 10**6 bytes/s (12500 for 100 Gbit/s)",
        "number",
        minimum=1,
        maximum=10_000_000,
    )
    fabric: Sequence[str] = _extra(
        "the devices that carry messages, as /sys/class/infiniband or /sys/class/net name them",
        "array",
        default=(),
        items={"type": "string", "minLength": 1},
    )
    exclusive: bool | None = _extra(
        "whether a job has its nodes for itself (default: by --exclusive in access, else as seen)",
        "boolean",
    )
    reserved_cores_per_node: int = _extra(
        "the physical cores of a node that no job gets, such as Slurm's CoreSpecCount, beside "
        "cores_per_node",
        "integer",
        default=0,
        minimum=0,
        maximum=65536,
    )
    waived: str = _extra(
        "why a gate need not see the partition judged", "string", default="", pattern=r"\S"
    )
    bind_to_cores: bool = _extra("whether ranks are bound to cores", "boolean", default=True)
    screen_at_once: int | None = _extra(
        "how many pairs of nodes are screened at once", "integer", minimum=1
    )
    process_counts: Sequence[int] = _extra(
        "the process counts to measure",
        "array",
        default=(),
        items={"type": "integer", "minimum": 1},
        minItems=1,
    )
    placements: Sequence[str] = _extra(
        "how ranks lie",
        "array",
        default=(),
        items={"enum": ["packed", "one-per-node"]},
        minItems=1,
    )
    flush_bytes: int | None = _extra(
        "what a rank writes to flush its caches, in bytes", "integer", minimum=0, maximum=1 << 40
    )
    watts_per_socket: float | None = _extra(
        "the power of a socket in watts", "number", exclusiveMinimum=0, maximum=20_000
    )
    cores_per_socket: int | None = _extra(
        "the physical cores of a socket", "integer", minimum=1, maximum=65536
    )
    power_of: str = _extra("what watts_per_socket is the power of", "string", default="socket")
    mode: str = _extra("the mode of its dry run: that of the study it is of", "string", default="")
    reframe: Mapping[str, Any] = field(default_factory=dict)
    system: str = ""
    excluded_nodes: int = 0
    checks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, declared: Mapping[str, Any], system: str = "") -> Partition:
        """Return a partition in ReFrame's form, which the schema has taken."""
        keys = dict(declared)
        extras = keys.pop("extras", {})
        stated = {one.name: extras[one.name] for one in EXTRAS if one.name in extras}
        for one in EXTRAS:
            if one.name in stated and one.metadata["type"] == "integer":
                # The schema takes 2e9 for an integer.
                stated[one.name] = int(stated[one.name])
        return cls(
            **{key: keys.pop(key) for key in _KEYS if key in keys},
            **stated,
            **{name: extras[name] for name in ("excluded_nodes", "checks") if name in extras},
            reframe=keys,
            system=system,
        )

    @property
    def fullname(self) -> str:
        """``system:partition``, as ReFrame calls it."""
        return f"{self.system}:{self.name}"

    @property
    def stacks(self) -> Sequence[str]:
        return self.environs or ()

    @property
    def physical_cores_per_node(self) -> int:
        """The cores of a node, those that no job gets included."""
        return (self.cores_per_node or 1) + self.reserved_cores_per_node

    @property
    def shape(self) -> Shape:
        """The size of the partition; of one node where nobody says how many."""
        return Shape(
            # Without a site config ReFrame has a system of its own, of which nothing is stated.
            self.cores_per_node or 1,
            self.nodes or 1,
            tuple(self.process_counts),
            tuple(self.placements),
            self.excluded_nodes,
            self.numa_domains_per_node or 1,
        )

    @property
    def facts(self) -> NodeFacts:
        """What limits depend on, as far as it is stated."""
        return NodeFacts(
            self.cache_bytes_per_node, self.link_mb_s, exclusive=self.has_nodes_for_itself
        )

    @property
    def has_nodes_for_itself(self) -> bool | None:
        """Whether nobody else's job runs on a job's nodes: as stated, else as ``access`` says.

        None where neither says it: others may, where the scheduler lets them.
        """
        if self.exclusive is not None:
            return self.exclusive
        return scheduler_of(self.scheduler).is_exclusive(self.access) or None

    @property
    def limits(self) -> Limits:
        """What the scheduler allows a job of the partition, as far as it says."""
        return scheduler_of(self.scheduler).limits(self.access)


EXTRAS = tuple(one for one in fields(Partition) if one.metadata)
"""The fields of a partition that are its extras."""
NEEDED = ("cores_per_node", "memory_bytes_per_node", "nominal_gflops_per_core")
# The keys of ReFrame's partitions that are fields.
_KEYS = ("name", "scheduler", "launcher", "access", "environs")


@dataclass(frozen=True)
class Stack:
    """An MPI stack that a provider puts on disk.

    ``settings`` are the provider's (see ``template.py``), ``benchmarks`` say how single
    benchmarks are run with it, by their names, ``pmi`` is what srun is told by ``--mpi``.
    ``waived`` names the checks that a gate need not see judged with it, each with the reason; a
    reason alone waives all. ``reframe`` are further keys of a ReFrame environment.
    """

    name: str
    provider: str = DEFAULT
    settings: Mapping[str, Any] = field(default_factory=dict)
    pmi: str = ""
    benchmarks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    waived: Mapping[str, str] | str = ""
    reframe: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, declared: Mapping[str, Any]) -> Stack:
        """Return a stack of :func:`~clustergate.sites.configs.stack`."""
        extras = declared["extras"]
        return cls(
            declared["name"],
            extras["provider"],
            extras.get(extras["provider"], {}),
            extras.get("pmi", ""),
            {name: extras[name] for name in settable() if name in extras},
            extras.get("waived", ""),
            {key: declared[key] for key in declared if key not in ("name", "features", "extras")},
        )

    @property
    def request(self) -> StackRequest:
        return StackRequest(self.name, self.provider, self.settings)

    @property
    def waivers(self) -> Mapping[str, str]:
        """The reasons why a gate need not see checks judged, by check."""
        if isinstance(self.waived, str):
            return dict.fromkeys(every_check(), self.waived) if self.waived else {}
        return self.waived


def settable() -> dict[str, Mapping[str, Any]]:
    """Return the schemas of what a site config may say of benchmarks with a stack, by name."""
    known = every_benchmark().items()
    return {name: one.of_stack for name, one in known if one.of_stack is not None}


DETECTED = "local"
"""The name of a machine that no site config claims, which is described as it is found."""


UNKNOWN_STACK = Words(
    "site.unknown-stack",
    "the site config names no stack {name!r}",
    remedy="known: {known:list}{meant}",
)


@dataclass(frozen=True, kw_only=True)
class Site:
    """A system: its name, the names of its machines as regular expressions, partitions, stacks."""

    name: str
    hostnames: Sequence[str]
    partitions: Sequence[Partition]
    stacks: Sequence[Stack] = ()

    @classmethod
    def of(cls, configured: Mapping[str, Any]) -> Site:
        """Return the first system of a completed site config; its partitions have MPI stacks."""
        system, environments = configured["systems"][0], configured["environments"]
        stacks = [Stack.of(e) for e in environments if MPI_STACK in e.get("features", ())]
        parts = [Partition.of(part, system["name"]) for part in system["partitions"]]
        return cls(
            name=system["name"],
            hostnames=system["hostnames"],
            partitions=[replace(p, environs=_in_order(stacks, p.stacks)) for p in parts],
            stacks=stacks,
        )

    @property
    def checks(self) -> Mapping[str, Sequence[str]]:
        """The checks that the site config chose, by mode, where it is not the modes' own choice."""
        return self.partitions[0].checks if self.partitions else {}

    def stacks_named(self, names: Sequence[str]) -> list[Stack]:
        """Return the named stacks, all of them where none is named.

        Raises :class:`SiteError` for a name that the site config does not know.
        """
        known = [stack.name for stack in self.stacks]
        for name in names:
            if name not in known:
                meant = suggestion(name, known, detected=self.name == DETECTED)
                raise SiteError(UNKNOWN_STACK(name=name, known=known, meant=meant))
        return [stack for stack in self.stacks if not names or stack.name in names]

    @property
    def schedulers(self) -> Sequence[Scheduler]:
        """The schedulers of its partitions, each once."""
        by_name = {one.name: one for one in (scheduler_of(p.scheduler) for p in self.partitions)}
        return [*by_name.values()]

    def partitions_with(self, stacks: Sequence[Stack]) -> list[Partition]:
        return [replace(p, environs=_in_order(stacks, p.stacks)) for p in self.partitions]


def _in_order(stacks: Iterable[Stack], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(stack.name for stack in stacks if stack.name in names)
