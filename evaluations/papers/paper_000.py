"""What paper 000 concludes of HPCC and IMB on five supercomputers."""

from __future__ import annotations

from evaluations.criteria import (
    Criterion,
    all_but,
    best_at,
    every,
    level,
    order,
    ranks_alike,
    smaller_lead,
    steady,
    step,
    trend,
)
from evaluations.printed import Printed
from evaluations.series import Figure

SX8, X1, OPTERON, XEON = "nec-sx8", "cray-x1-msp", "cray-opteron", "dell-xeon"
ALTIX, ALTIX_3 = "altix-bx2-numalink4", "altix-bx2-numalink3"
SCALAR = (ALTIX, XEON, OPTERON)
GROUPS = (SX8, X1, (ALTIX, XEON), OPTERON)

BARRIER = Figure("Barrier", "t_avg_us")
TIMES = ("Allreduce", "Reduce", "Reduce_scatter", "Allgather", "Allgatherv", "Alltoall", "Bcast")


def of_1_mb(benchmark: str) -> Figure:
    """Return the time, or the bandwidth, of IMB with 1 MB over the number of processes."""
    metric = "t_avg_us" if benchmark in TIMES else "bandwidth_mb_s"
    return Figure(benchmark, metric, conditions={"bytes": 1 << 20})


def hpcc(metric: str) -> Figure:
    """Return a figure of HPCC: one that is derived of it, or one by its own name."""
    return Figure(metric if metric[0].isupper() else "HPCC", metric, "ranks")


def altix_and_xeon_alike(figure: Figure) -> Criterion:
    """Altix and Xeon are alike, of which the text speaks as one."""
    return level(ALTIX, XEON, figure=figure, within=0.2)


def p001() -> Criterion:
    """Barrier of many processes: the SX-8 is first."""
    return order(BARRIER.between(16), SX8, (ALTIX, X1, OPTERON, XEON), at="largest")


def p002() -> Criterion:
    """Barrier of fewer than 16 processes: the Altix is first."""
    return order(BARRIER.between(None, 15), ALTIX, (SX8, X1, OPTERON, XEON))


def p003() -> Criterion:
    """Barrier up to 64 processes: it rises, but on the X1."""
    few = BARRIER.between(None, 64)
    return all_but(X1, trend(few, "rises"), instead=steady(few, within=1.5))


def p004() -> Criterion:
    """Allreduce: SX-8, X1, Altix, Xeon, Opteron."""
    return order(of_1_mb("Allreduce"), SX8, X1, *SCALAR, at="largest")


def p005() -> Criterion:
    """Allreduce up to 16 processes: Opteron and Xeon are nearly alike."""
    few = of_1_mb("Allreduce").between(None, 16)
    return level(OPTERON, XEON, figure=few, within=0.2)


def p006() -> Criterion:
    """Reduce: vector systems are about ten times as fast; about ten is taken as 8 or more."""
    reduce = of_1_mb("Reduce")
    ten_times = order(reduce, (SX8, X1), (ALTIX, XEON), OPTERON, factor=[8, 1], at="largest")
    return every(order(reduce, SX8, X1, at="largest"), ten_times, altix_and_xeon_alike(reduce))


def p007() -> Criterion:
    """Reduce_scatter: as Reduce, with a much smaller lead of the X1."""
    scatter = of_1_mb("Reduce_scatter")
    return every(
        order(scatter, *GROUPS, at="largest"),
        smaller_lead(scatter, of_1_mb("Reduce"), X1, SCALAR, factor=2),
        altix_and_xeon_alike(scatter),
    )


def p008() -> Criterion:
    """Allgather: the SX-8 far ahead of the X1, then Altix and Xeon; the Opteron is last."""
    gather = of_1_mb("Allgather")
    return every(
        order(gather, *GROUPS, factor=[5, 1, 1], at="largest"), altix_and_xeon_alike(gather)
    )


def p009() -> Criterion:
    """Allgatherv: as Allgather, with a step of the SX-8 where a node ends."""
    gather = of_1_mb("Allgatherv")
    return every(
        step(gather.per("p-1"), 8, 16, factor=1.5, system=SX8),
        order(gather, *GROUPS, factor=[5, 1, 1], at="largest"),
        altix_and_xeon_alike(gather),
    )


def p010() -> Criterion:
    """Alltoall: one order of many processes, another of up to 8."""
    few = of_1_mb("Alltoall").between(None, 8)
    return every(
        order(of_1_mb("Alltoall").between(9), SX8, X1, *SCALAR, at="largest"),
        order(few, ALTIX, X1),
        level(XEON, OPTERON, figure=few, within=0.2),
    )


def p011() -> Criterion:
    """Alltoall, the random ring and G-FFT rank the systems alike."""
    others = map(hpcc, ("RandomlyOrderedRingBandwidth_GBytes", "MPIFFT_Gflops"))
    systems = (SX8, X1, *SCALAR)
    return every(*(ranks_alike(of_1_mb("Alltoall"), one, systems) for one in others))


def p012() -> Criterion:
    """Sendrecv: best with 2 processes, constant above 16; SX-8, Altix, then Xeon and Opteron."""
    sendrecv = of_1_mb("Sendrecv")
    return every(
        best_at(sendrecv, 2),
        steady(sendrecv.between(16), within=1.5),
        order(sendrecv, SX8, ALTIX, (XEON, OPTERON), at="largest"),
        level(XEON, OPTERON, figure=sendrecv, within=0.2),
    )


def p013() -> Criterion:
    """Exchange: SX-8, the constant Xeon, X1 and Altix alike, the Opteron."""
    exchange = of_1_mb("Exchange")
    return every(
        level(X1, ALTIX, figure=exchange.between(4), within=0.2),
        steady(exchange.between(2, 512), within=1.5, system=XEON),
        order(exchange, SX8, XEON, (X1, ALTIX), OPTERON, at="largest"),
    )


def p014() -> Criterion:
    """Bcast: SX-8, Altix, X1, Xeon, Opteron."""
    return order(of_1_mb("Bcast"), SX8, ALTIX, X1, XEON, OPTERON, at="largest")


def p015() -> Criterion:
    """Bcast on the Altix: longer with 256 processes than with 128, and with 512."""
    bcast = of_1_mb("Bcast")
    return every(*(step(bcast, beside, 256, system=ALTIX) for beside in (128, 512)))


def p016() -> Criterion:
    """Bcast on the SX-8: longer up to 512 CPUs, and less with 576."""
    bcast = of_1_mb("Bcast")
    rises = trend(bcast.between(None, 512), "rises", SX8)
    return every(rises, step(bcast, 576, 512, system=SX8))


def p018() -> Criterion:
    """Vector systems are ahead of scalar ones in nine benchmarks of IMB."""
    names = (*TIMES[:6], "Sendrecv", "Exchange", "Bcast")
    return every(*(order(of_1_mb(one), (SX8, X1), SCALAR, at="largest") for one in names))


def p019() -> Criterion:
    """The random ring: the Altix has the lowest latency."""
    return order(hpcc("RandomlyOrderedRingLatency_usec"), ALTIX, (SX8, OPTERON), at="largest")


def p020() -> Criterion:
    """Balance of the SX-8: the same from 128 to 576 CPUs."""
    balance = hpcc("ring_balance_b_per_kflop").between(128, 576)
    return steady(balance, within=1.25, system=SX8)


def p021() -> Criterion:
    """Balance of the Altix: it falls steeply above 512 CPUs."""
    return step(hpcc("ring_balance_b_per_kflop"), 2024, 506, factor=2, system=ALTIX)


def p022() -> Criterion:
    """Balance of the Opteron: it falls steeply from 32 to 64 CPUs."""
    return step(hpcc("ring_balance_b_per_kflop"), 64, 32, factor=1.25, system=OPTERON)


def p023() -> Criterion:
    """STREAM over HPL rises since the efficiency of HPL falls."""
    stream, hpl = hpcc("stream_balance_b_per_flop"), hpcc("HPL_Tflops").per("p")
    return every(trend(stream, "rises"), trend(hpl, "falls"))


def p024() -> Criterion:
    """Over HPL each of three systems is the best in some columns."""
    columns = {
        OPTERON: ("dgemm_over_hpl", "updates_per_flop"),
        SX8: ("ptrans_balance_b_per_flop", "fft_over_hpl", "stream_balance_b_per_flop"),
        ALTIX_3: ("ring_balance_b_per_kflop", "inverse_ring_latency_per_us"),
    }
    return every(
        *(
            order(hpcc(column), best, [name for name in columns if name != best], at="largest")
            for best, of in columns.items()
            for column in of
        )
    )


def p025() -> Criterion:
    """The random ring: the SX-8 has a high latency."""
    return order(hpcc("RandomlyOrderedRingLatency_usec"), (ALTIX, OPTERON), SX8, at="largest")


def p026() -> Criterion:
    """G-FFT on the Altix: a lower rate of each process beyond one box."""
    return step(hpcc("MPIFFT_Gflops").per("p"), 2024, 506, system=ALTIX)


def printed(values: Printed) -> dict[str, bool]:
    """Return what the paper's own numbers say."""
    return {"p021": values.ascending("r008", "r007")}
