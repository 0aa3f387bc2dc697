"""McCalpin's STREAM 5.10 with OpenMP: what the memory of a node, and of its NUMA domains, moves."""

from clustergate.benchmarks.descriptor import (
    AbCheck,
    Benchmark,
    CannotRun,
    Check,
    Format,
    Headline,
    Sweep,
)
from clustergate.benchmarks.mpi_kernel import EFFORTS
from clustergate.benchmarks.stream import limits
from clustergate.benchmarks.stream.input import IN_THE_CACHES, stream_elements
from clustergate.benchmarks.stream.output import STREAM_KERNELS
from clustergate.benchmarks.stream5.build import BUILD, SIZES
from clustergate.benchmarks.stream5.output import TITLE, parse_stream5
from clustergate.core.model import MEMORY
from clustergate.core.reasons import Words

_TITLES = {kernel: f"STREAM 5.10 {kernel}" for kernel in STREAM_KERNELS}


def stream5_elements(
    asked: int, cache_bytes_per_node: int | None, memory_bytes_per_node: int, ranks_per_node: int
) -> int:
    """Return the length of each rank's three arrays, in doubles: the smallest that is compiled.

    It is one that :func:`~clustergate.benchmarks.stream.input.stream_elements` takes, and not
    shorter than is ``asked`` for (0: no matter). Raises :class:`CannotRun` as that does.
    """
    of_node = (cache_bytes_per_node, memory_bytes_per_node, ranks_per_node)
    fewest = stream_elements(asked, *of_node)
    elements = next((size for size in SIZES if size >= fewest), 0)
    if not elements:
        facts = {"elements": SIZES[-1], "ranks": ranks_per_node, "fewest": fewest}
        raise CannotRun(IN_THE_CACHES(**facts))
    return stream_elements(elements, *of_node)


UNEVEN_DOMAINS = Words(
    "sizing.uneven-domains",
    "a node's {cores} cores cannot be shared equally by its {domains} NUMA domains",
    remedy="correct cores_per_node or numa_domains_per_node in the site config",
)


def threads_of_rank(cores_per_node: int, ranks_per_node: int) -> int:
    """Return the threads of each rank: one on each core of the node, or of its NUMA domain.

    Launchers bind the first rank to the first so many cores in the order of the hardware, where
    those of a domain lie side by side. Raises :class:`CannotRun` where a rank would straddle two.
    """
    if cores_per_node % ranks_per_node:
        raise CannotRun(UNEVEN_DOMAINS(cores=cores_per_node, domains=ranks_per_node))
    return cores_per_node // ranks_per_node


BENCHMARK = Benchmark(
    "stream5",
    "STREAM 5.10",
    Format(TITLE, parse_stream5),
    checks=(
        Check(
            "Stream5Check",
            "STREAM 5.10: memory bandwidth of one node, and of each NUMA domain, with OpenMP",
            Sweep.DOMAINS,
            judged={"smoke": ("STREAM5.bandwidth_gb_s",)},
            tags=frozenset({"stream5"}),
        ),
    ),
    efforts=EFFORTS,
    place=6,
    limits=limits,
    headlines=tuple(
        Headline(
            *(title, "GB/s", "Stream5Check", "STREAM5", "bandwidth_gb_s"),
            {"kernel": kernel},
            # Of several NUMA domains the slowest.
            min,
        )
        for kernel, title in _TITLES.items()
    ),
    build=BUILD,
    kinds={"STREAM5": MEMORY},
    ab=AbCheck("AbStream5Check", sweep=Sweep.DOMAINS),
)
