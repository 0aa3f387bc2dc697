"""What paper 001 concludes of MVAPICH2 and Intel MPI, and of HPL, on one cluster."""

from __future__ import annotations

from evaluations.criteria import (
    Criterion,
    ahead,
    at_least,
    best_at,
    best_at_squarest,
    dip,
    every,
    level,
    trend,
    undecided,
)
from evaluations.printed import Printed
from evaluations.series import Figure

MVAPICH2, INTEL = "westmere-m610-qdr-mvapich2", "westmere-m610-qdr-intelmpi"
KIB, MIB = 1 << 10, 1 << 20
COLLECTIVES = ("Allreduce", "Reduce", "Reduce_scatter", "Allgather", "Bcast")


def bandwidth(benchmark: str) -> Figure:
    """Return a bandwidth over message sizes; PingPong is launched with two ranks."""
    figure = Figure(benchmark, "bandwidth_mb_s", "bytes")
    return figure.where(ranks=2) if benchmark == "PingPong" else figure


def time_us(benchmark: str) -> Figure:
    """Return the time of a collective over message sizes."""
    return Figure(benchmark, "t_avg_us", "bytes")


def tilings(along: str) -> Figure:
    """Return HPL's rate over the block size or the grid, of a mode of their own."""
    mode = {"mode": "published-001-tilings"}
    return Figure("HPL", "performance_gflops", along, mode)


def p001() -> Criterion:
    """MVAPICH2 is ahead in single transfers, Intel MPI in collectives."""
    transfers = map(bandwidth, ("PingPong", "Sendrecv", "Exchange"))
    return every(
        *(ahead(MVAPICH2, INTEL, one) for one in transfers),
        *(ahead(INTEL, MVAPICH2, time_us(one)) for one in COLLECTIVES),
    )


def p002() -> Criterion:
    """PingPong: the same latency, asked of up to 64 bytes."""
    latency = Figure("PingPong", "latency_us", "bytes", {"ranks": 2})
    return level(MVAPICH2, INTEL, figure=latency.between(None, 64), within=0.1)


def p003() -> Criterion:
    """PingPong: MVAPICH2 is ahead up to 128 kB, above they are alike."""
    pingpong = bandwidth("PingPong")
    return every(
        ahead(MVAPICH2, INTEL, pingpong.between(1, 128 * KIB)),
        level(MVAPICH2, INTEL, figure=pingpong.between(256 * KIB), within=0.1),
    )


def p004() -> Criterion:
    """PingPong: Intel MPI dips at 64 kB."""
    return dip(bandwidth("PingPong"), 64 * KIB, INTEL)


def p005() -> Criterion:
    """Sendrecv: MVAPICH2 is ahead from 4 to 256 kB, above they are alike."""
    sendrecv = bandwidth("Sendrecv")
    return every(
        ahead(MVAPICH2, INTEL, sendrecv.between(4 * KIB, 256 * KIB)),
        level(MVAPICH2, INTEL, figure=sendrecv.between(512 * KIB), within=0.1),
    )


def p006() -> Criterion:
    """Exchange: MVAPICH2 is ahead below 16 MB, then they are alike; both dip at 16 kB."""
    exchange = bandwidth("Exchange")
    return every(
        ahead(MVAPICH2, INTEL, exchange.between(1, 8 * MIB)),
        level(MVAPICH2, INTEL, figure=exchange.between(16 * MIB), within=0.1),
        *(dip(exchange, 16 * KIB, system) for system in (MVAPICH2, INTEL)),
    )


def p007() -> Criterion:
    """Allreduce: Intel MPI is ahead above 256 kB."""
    return ahead(INTEL, MVAPICH2, time_us("Allreduce").between(512 * KIB))


def p008() -> Criterion:
    """Reduce: Intel MPI is ahead above 512 kB."""
    return ahead(INTEL, MVAPICH2, time_us("Reduce").between(MIB))


def p009() -> Criterion:
    """Reduce_scatter: as Reduce."""
    return ahead(INTEL, MVAPICH2, time_us("Reduce_scatter").between(MIB))


def p010() -> Criterion:
    """Bcast: Intel MPI is ahead at all sizes, by more time the larger the message."""
    return ahead(INTEL, MVAPICH2, time_us("Bcast").between(1), growing=True)


def p011() -> Criterion:
    """HPL reaches 87 % of the peak: of the N that fills the memory, and no setting of ours."""
    own = {"against": "nominal", "mode": "published-001", "settings": ""}
    return at_least(Figure("HPL", "efficiency_percent", conditions=own), 87)


def p012() -> Criterion:
    """The best grid of HPL is as square as possible."""
    return best_at_squarest(tilings("p").where(nb=192))


def p013() -> Criterion:
    """NB=192 is the best of the block sizes."""
    return best_at(tilings("nb"), 192)


def p014() -> Criterion:
    """A small N costs efficiency, and one beyond the memory swaps."""
    efficiency = Figure("HPL", "efficiency_percent", "n", {"against": "nominal"})
    return every(trend(efficiency, "rises"), undecided("no run goes beyond the memory"))


def printed(values: Printed) -> dict[str, bool]:
    """Return what the paper's own numbers say."""
    return {}
