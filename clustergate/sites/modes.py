"""The operator's interface: what each mode runs, how long it may take and what it leaves out.

A mode is a ReFrame mode of the same name; the checks read their effort from here. Pure data.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clustergate.benchmarks.application_rules import NPB_PROCESSES
from clustergate.benchmarks.imb.command import MPI1_BENCHMARKS
from clustergate.benchmarks.sizing import process_counts
from clustergate.launching.stopping import Budget
from clustergate.model import CaseId, ClustergateError

MEBIBYTE = 1 << 20
FEW_SIZES = (0, 8, 1024, 8192, 65536, 1048576, 4194304)


class UnknownMode(ClustergateError):
    """A mode was named that does not exist."""


class UnknownCheck(ClustergateError):
    """A check was named that does not exist."""


class BadCount(ClustergateError):
    """Process counts were named that are none."""


@dataclass(frozen=True)
class Mode:
    """One level of effort.

    ``hpl_target_s`` sizes HPL for a time on the machine at hand; without it HPL fills
    ``hpl_memory_fraction`` of the memory, in bytes. ``imb_sizes`` are the message sizes in bytes,
    empty for every power of two up to ``imb_largest_bytes``; a size is repeated
    ``imb_repetitions`` times, or as often as moves ``imb_volume_mb``, and IMB gives it up after
    ``imb_seconds``. ``imb_budget`` says how often IMB is launched. ``hpcc_target_s`` sizes HPCC's
    matrices by the time of its HPL. ``time_limit`` is that of one job, in ReFrame's form.

    ``on_one_node`` are the checks that run on one node of each partition, unless process counts are
    named or ranks set by hand.

    ``judged`` are figures that each case of a check must have before a gate opens by this mode: a
    benchmark, or one with a metric behind a point. All else that is measured must be judged too.

    The rest is for the modes of published evaluations, whose ``paper`` is named: ``hpl_n_fraction``
    is a fraction of the N that fills all memory and goes before the other rules, ``hpl_values`` are
    fields of :class:`clustergate.benchmarks.sizing.HplInput`. ``imb_benchmarks`` replace those of
    the check, ``imb_root_shift`` is IMB's option.
    """

    name: str
    purpose: str
    duration: str
    nodes: str
    leaves_out: str
    checks: tuple[str, ...]
    hpl_target_s: float | None
    hpl_memory_fraction: float
    hpcc_target_s: float
    hpcc_memory_fraction: float
    hpcc_random_access: bool
    imb_sizes: tuple[int, ...]
    imb_largest_bytes: int
    imb_repetitions: int
    imb_volume_mb: int
    imb_seconds: float
    imb_budget: Budget
    time_limit: str
    judged: Mapping[str, tuple[str, ...]]
    paper: str = ""
    hpl_n_fraction: float | None = None
    hpl_values: Mapping[str, Any] = field(default_factory=dict)
    on_one_node: frozenset[str] = frozenset()
    imb_benchmarks: tuple[str, ...] = ()
    imb_root_shift: str = ""


CHECKS = ("HplCheck", "HpccCheck", "ImbMpi1Check")
# A reference may be of any check, whether a mode runs it or not.
ALL_CHECKS = (
    *(*CHECKS, "ImbRmaCheck", "ImbNbcCheck", "ImbP2pCheck", "ImbMtCheck"),
    *("MpiTrialsCheck", "HostOverheadCheck", "BidirectionalStreamCheck", "StreamCheck"),
    *("LammpsCheck", "HpccgCheck", "NpbCheck"),
)
# These have one case per process count and placement, and these one per placement.
SWEEPING_CHECKS = frozenset(
    name for name in ALL_CHECKS if name.startswith("Imb") or name == "MpiTrialsCheck"
)
PLACED_CHECKS = frozenset({"HostOverheadCheck", "BidirectionalStreamCheck"})
# These are launched several times in a job.
REPEATED_CHECKS = (
    SWEEPING_CHECKS | PLACED_CHECKS | {"StreamCheck", "LammpsCheck", "HpccgCheck", "NpbCheck"}
)

# One process alone sends nothing, and HPCC leaves these out.
BETWEEN_PROCESSES = (
    *("MaxPingPongLatency_usec", "MinPingPongBandwidth_GBytes"),
    *("RandomlyOrderedRingLatency_usec", "RandomlyOrderedRingBandwidth_GBytes"),
)
_JUDGED: Mapping[str, tuple[str, ...]] = {
    "HplCheck": ("HPL.performance_gflops",),
    "HpccCheck": (
        *("HPL_Tflops", "SingleDGEMM_Gflops", "StarDGEMM_Gflops", "PTRANS_GBs", "MPIFFT_Gflops"),
        *("SingleSTREAM_Triad", "StarSTREAM_Triad", *BETWEEN_PROCESSES),
    ),
    "ImbMpi1Check": MPI1_BENCHMARKS,
}
_JUDGED_WITH_RANDOM_ACCESS = {
    **_JUDGED,
    "HpccCheck": (*_JUDGED["HpccCheck"], "StarRandomAccess_GUPs", "MPIRandomAccess_GUPs"),
}

MODES: Mapping[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode(
            name="smoke",
            purpose="does everything run and look sane? (`make check`)",
            duration="at most 3 minutes on two cores, once built",
            nodes="one of each partition",
            leaves_out="few message sizes, short samples, small HPL, no time-bounded RandomAccess",
            checks=CHECKS,
            hpl_target_s=8.0,
            hpl_memory_fraction=0.5,
            hpcc_target_s=3.0,
            hpcc_memory_fraction=0.2,
            hpcc_random_access=False,
            imb_sizes=FEW_SIZES,
            imb_largest_bytes=4 * MEBIBYTE,
            imb_repetitions=100,
            imb_volume_mb=8,
            imb_seconds=5.0,
            imb_budget=Budget(at_least=3, at_most=6, seconds=20.0),
            time_limit="10m",
            judged=_JUDGED,
            on_one_node=frozenset(ALL_CHECKS),
        ),
        Mode(
            name="maintenance",
            purpose="may the machine go back to its users?",
            duration="at most 30 minutes on two cores",
            nodes="all of each partition",
            leaves_out="HPL of two minutes instead of full memory, HPCC on a fifth of the memory",
            checks=CHECKS,
            hpl_target_s=120.0,
            hpl_memory_fraction=0.8,
            hpcc_target_s=40.0,
            hpcc_memory_fraction=0.2,
            hpcc_random_access=True,
            imb_sizes=(),
            imb_largest_bytes=4 * MEBIBYTE,
            imb_repetitions=200,
            imb_volume_mb=8,
            imb_seconds=10.0,
            imb_budget=Budget(at_least=10, at_most=20, seconds=180.0, precision=0.02),
            time_limit="30m",
            judged=_JUDGED_WITH_RANDOM_ACCESS,
        ),
        Mode(
            name="acceptance",
            purpose="is the machine what was ordered?",
            duration="no limit",
            nodes="all of each partition",
            leaves_out="nothing",
            checks=CHECKS,
            hpl_target_s=None,
            hpl_memory_fraction=0.8,
            hpcc_target_s=600.0,
            hpcc_memory_fraction=0.5,
            hpcc_random_access=True,
            imb_sizes=(),
            imb_largest_bytes=4 * MEBIBYTE,
            imb_repetitions=10000,
            imb_volume_mb=400,
            imb_seconds=60.0,
            imb_budget=Budget(at_least=10, at_most=50, seconds=3600.0, precision=0.01),
            time_limit="24h",
            judged=_JUDGED_WITH_RANDOM_ACCESS,
        ),
    )
}


PAPER_CHECKS: Mapping[str, Mapping[str, str]] = {
    "000": {"HPCC": "HpccCheck", "IMB": "ImbMpi1Check"},
    "001": {"HPL": "HplCheck", "IMB": "ImbMpi1Check"},
    "002": {
        "PMB": "ImbMpi1Check",
        "host processor overhead": "HostOverheadCheck",
        "stream in both directions": "BidirectionalStreamCheck",
        "HPCCG": "HpccgCheck",
        "LAMMPS": "LammpsCheck",
    },
    "003": {
        "HPL": "HplCheck",
        "PMB": "ImbMpi1Check",
        "STREAM": "StreamCheck",
        "NAS Parallel Benchmarks": "NpbCheck",
    },
    "004": {"trials of collectives": "MpiTrialsCheck"},
}
"""The benchmarks of each published evaluation, with the checks that run them."""


def _published(paper: str, purpose: str, **settings: Any) -> Mode:
    """Return the mode of a paper: the efforts of IMB's own defaults, and what the paper set."""
    return replace(
        MODES["acceptance"],
        name=f"published-{paper}",
        purpose=purpose,
        paper=paper,
        judged={},
        checks=tuple(c for c in PAPER_CHECKS[paper].values() if c in ALL_CHECKS),
        imb_repetitions=1000,
        imb_volume_mb=40,
        imb_seconds=10.0,
        imb_budget=Budget(at_least=3, at_most=6, seconds=120.0),
        **settings,
    )


PUBLISHED_MODES: Mapping[str, Mode] = {
    mode.name: mode
    for mode in (
        _published(
            "000",
            "HPCC and IMB on five supercomputers",
            imb_benchmarks=(
                *("Barrier", "Allreduce", "Reduce", "Reduce_scatter", "Allgather", "Allgatherv"),
                *("Alltoall", "Sendrecv", "Exchange", "Bcast", "PingPong"),
            ),
        ),
        _published(
            "001",
            "MVAPICH2 against Intel MPI",
            hpl_n_fraction=0.92,
            hpl_values={"nbmins": (8,), "rfacts": (1,), "depths": (0,), "equilibration": False},
            imb_benchmarks=(
                *("PingPong", "PingPing", "Sendrecv", "Exchange", "Reduce", "Allreduce"),
                *("Reduce_scatter", "Scatter", "Gather", "Allgather", "Alltoall", "Bcast"),
            ),
            imb_largest_bytes=16 * MEBIBYTE,
            imb_root_shift="on",
        ),
        _published(
            "002",
            "a low-power machine beside a commodity cluster",
            imb_benchmarks=("PingPong", "Sendrecv", "Allreduce"),
            imb_largest_bytes=16 * MEBIBYTE,
        ),
        _published(
            "003",
            "eight configurations of two servers",
            on_one_node=frozenset({"HplCheck"}),
            imb_benchmarks=(
                *("PingPong", "Exchange", "Sendrecv", "Bcast", "Reduce", "Allreduce", "Barrier"),
            ),
        ),
        _published("004", "collectives with flushed caches"),
    )
}
"""The modes of ``clustergate published``: each runs what a paper ran, with its parameters."""

EVERY_MODE: Mapping[str, Mode] = {**MODES, **PUBLISHED_MODES}

# Screening judges nodes by each other and not by references; `clustergate screen` runs it.
SCREEN = "screen"
SCREEN_CHECK = "ScreenCheck"
# Whatever ReFrame finds in reframe_checks, but comparisons, which it has where contenders are
# named.
EVERY_CHECK = (*ALL_CHECKS, SCREEN_CHECK)
SCREEN_OPTIONS = ["--tag=^screen$", f"--setvar=mode={SCREEN}"]


def mode_named(name: str) -> Mode:
    """Return a mode; raises :class:`UnknownMode` that lists the known ones."""
    try:
        return EVERY_MODE[name]
    except KeyError:
        known = ", ".join(EVERY_MODE)
        raise UnknownMode(f"there is no mode {name!r}; the modes are {known}") from None


def checks_named(names: Iterable[str]) -> tuple[str, ...]:
    """Return checks by their names, each once; raises :class:`UnknownCheck`."""
    wanted = tuple(dict.fromkeys(names))
    for name in wanted:
        if name not in ALL_CHECKS:
            raise UnknownCheck(
                f"there is no check {name!r}; the checks are {', '.join(ALL_CHECKS)}"
            )
    return wanted


def reframe_options(mode: Mode, checks: Sequence[str] = ()) -> list[str]:
    """Return the options that make ReFrame run a mode, or some checks with its effort.

    The mode of a paper that needs checks which do not exist yet selects nothing.
    """
    if mode.paper and not checks:
        checks = mode.checks or ("nothing",)
    wanted = [rf"--name=^{name}\b" for name in checks] or ["--tag=^benchmark$"]
    return [*wanted, f"--setvar=mode={mode.name}"]


def reframe_modes() -> list[dict[str, object]]:
    """Return the modes in the form of ReFrame's configuration."""
    options = {mode.name: reframe_options(mode) for mode in EVERY_MODE.values()}
    options[SCREEN] = SCREEN_OPTIONS
    return [{"name": name, "options": words} for name, words in options.items()]


@dataclass(frozen=True)
class Shape:
    """The size of a partition, as its site config states it.

    ``counts`` and ``placed`` replace the process counts and placements that follow from the size.
    ``excluded`` nodes are left out, by the hostfile or for this run, and not among ``nodes``.
    """

    cores_per_node: int
    nodes: int
    counts: tuple[int, ...] = ()
    placed: tuple[str, ...] = ()
    excluded: int = 0

    @classmethod
    def of(cls, extras: Mapping[str, Any]) -> Shape:
        """Return what the extras of a partition say."""
        return cls(
            int(extras.get("cores_per_node", 1)),
            int(extras.get("nodes", 1)),
            tuple(extras.get("process_counts", ())),
            tuple(extras.get("placements", ())),
            int(extras.get("excluded_nodes", 0)),
        )

    def rank_counts(self, named: str = "") -> tuple[int, ...]:
        """Return the process counts to measure: 2, 4, … up to every core, or the named ones.

        ``named`` is a list such as ``3,5,7``; raises :class:`BadCount` when it is not.
        """
        if not named:
            return self.counts or process_counts(self.cores_per_node * self.nodes)
        if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", named):
            raise BadCount(f"process counts are a list such as 2,3,5; this is not: {named!r}")
        return tuple(sorted({int(count) for count in named.split(",")}))

    def placements(self) -> tuple[str, ...]:
        """Return how ranks can lie: packed on as few nodes as hold them, or one on each node."""
        return self.placed or (("packed", "one-per-node") if self.nodes > 1 else ("packed",))

    def holds(self, ranks: int, placement: str, cores_per_rank: int = 1) -> bool:
        """Tell whether so many ranks, with so many cores for each, fit so."""
        fitting = self.cores_per_node // cores_per_rank
        return ranks <= (fitting if placement == "packed" else min(fitting, 1)) * self.nodes

    @property
    def one_node(self) -> Shape:
        """One node of the partition: of the stated counts those that fit on it, if any does.

        What fits nowhere stays among them, so that it fails.
        """
        here = [n for n in self.counts if n <= self.cores_per_node]
        nowhere = [n for n in self.counts if not self.holds(n, "packed")]
        return Shape(self.cores_per_node, 1, (*here, *nowhere), ("packed",))

    @property
    def whole(self) -> Shape:
        """The partition with the nodes that are excluded."""
        return replace(self, nodes=self.nodes + self.excluded, excluded=0)


def used_shape(mode: str, check: str, partition: Shape, named: str = "") -> Shape:
    """Return how much of a partition a check uses in a mode, where ``named`` names no counts.

    What is no mode for operators uses all of it.
    """
    known = EVERY_MODE.get(mode)
    stays = known is not None and check in known.on_one_node and not named
    return partition.one_node if stays else partition


@dataclass(frozen=True)
class Partition:
    """A partition as its site config states it: ReFrame's full name, its stacks, its size.

    ``memory_bytes`` are those of a node, None where nobody says.
    """

    name: str
    stacks: tuple[str, ...]
    shape: Shape
    memory_bytes: int | None = None


# The names of the parameters of ReFrame's tests by which the cases of a check are told apart.
PROCESS_COUNT, NODE_USAGE = "process_count", "node_usage"
_NAMING = (PROCESS_COUNT, NODE_USAGE, "model", "scaling", "benchmark")
_PARAMETER = re.compile(r"%([\w.$]+)=(\S+)")
LAMMPS_MODELS, LAMMPS_SCALINGS = ("lj", "rhodo"), ("strong", "weak")


def parameters_of(name: str) -> tuple[tuple[str, str], ...]:
    """Return the parameters that tell a case from others of its check, from ReFrame's test name.

    Others, such as the count of ``--repeat``, make no case of its own.
    """
    return tuple(sorted(pair for pair in _PARAMETER.findall(name) if pair[0] in _NAMING))


def sweep(shape: Shape, shapes: Sequence[Shape], named: str = "") -> list[tuple[int, str]]:
    """Return the process counts with the placements to measure in one of a system's partitions.

    They are those that fit. A count that somebody asked for and that fits nowhere stays, with the
    first placement, so that it fails there instead of vanishing: one that ``named`` lists and no
    partition holds, one that the site config states of the partition itself.
    """
    found: list[tuple[int, str]] = []
    for count in shape.rank_counts(named):
        fitting = [(count, how) for how in shape.placements() if shape.holds(count, how)]
        held = any(other.holds(count, "packed") for other in shapes) if named else not shape.counts
        found += fitting if fitting or held else [(count, shape.placements()[0])]
    return found


def expected_cases(
    checks: Sequence[str], partitions: Sequence[Partition], mode: Mode, named_counts: str = ""
) -> list[CaseId]:
    """Return the cases that there must be when these checks run in a mode, each once.

    It is worked out from the site config alone, not from what ReFrame selected: a case that
    ReFrame lost is missed.
    """
    shapes = [partition.shape for partition in partitions]
    return [
        CaseId(check, partition.name, stack, tuple(sorted(parameters)))
        for partition in partitions
        for check in checks
        for used in [used_shape(mode.name, check, partition.shape, named_counts)]
        for parameters in _parameters(check, used, shapes, named_counts)
        for stack in partition.stacks
    ]


def _parameters(
    check: str, shape: Shape, shapes: Sequence[Shape], named: str
) -> list[list[tuple[str, str]]]:
    """Return the parameters of each case of a check in a partition."""
    if check in SWEEPING_CHECKS:
        swept = sweep(shape, shapes, named)
        return [[(PROCESS_COUNT, str(count)), (NODE_USAGE, how)] for count, how in swept]
    if check in PLACED_CHECKS:
        return [[(NODE_USAGE, how)] for how in shape.placements()]
    if check == "NpbCheck":
        return [[("benchmark", name)] for name in NPB_PROCESSES]
    counts = [[(PROCESS_COUNT, str(count))] for count in scaling_counts(shape, shapes, named)]
    if check == "HpccgCheck":
        return counts
    if check == "LammpsCheck":
        problems = itertools.product(LAMMPS_MODELS, LAMMPS_SCALINGS, counts)
        return [[("model", model), ("scaling", how), *count] for model, how, count in problems]
    return [[]]


def scaling_counts(shape: Shape, shapes: Sequence[Shape], named: str = "") -> list[int]:
    """Return the process counts of an application in a partition: one, and those of the sweep."""
    return sorted({1, *(count for count, _ in sweep(shape, shapes, named))})


def modes_table(modes: Sequence[Mode] = tuple(MODES.values())) -> str:
    """Return the table of modes as it stands in the README."""
    lines = ["| mode | purpose | duration | nodes | leaves out |", "|---|---|---|---|---|"]
    lines += [
        f"| `{m.name}` | {m.purpose} | {m.duration} | {m.nodes} | {m.leaves_out} |" for m in modes
    ]
    return "\n".join(lines) + "\n"
