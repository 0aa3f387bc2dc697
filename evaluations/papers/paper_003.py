"""What paper 003 concludes of eight configurations of two servers with InfiniBand."""

from __future__ import annotations

from evaluations.criteria import (
    Criterion,
    ahead,
    at_least,
    at_most,
    dip,
    every,
    larger_gain,
    level,
    order,
    ranks_alike,
    smaller_lead,
    widest,
)
from evaluations.printed import Printed
from evaluations.series import Figure

# Server, clock in 0.1 GHz (i: the larger cache), memory clock, and the clock of a PCI-X slot.
E_100, E_133, E_SLOW_133 = "e326-24-400-100", "e326-24-400-133", "e326-24-333-133"
X_34_133, X_36I_133 = "x336-34-400-133", "x336-36i-400-133"
X_34_PCIE, X_36_PCIE, X_36I_PCIE = "x336-34-400-pcie", "x336-36-400-pcie", "x336-36i-400-pcie"
PCIE = (X_34_PCIE, X_36_PCIE, X_36I_PCIE)
X_PCIX = (X_34_133, X_36I_133)
OPTERONS, XEONS = (E_SLOW_133, E_133, E_100), (*PCIE, *X_PCIX)
BY_SLOT = (PCIE, (E_SLOW_133, E_133), E_100, X_PCIX)
EVERY = (E_100, E_SLOW_133, E_133, *X_PCIX, *PCIE)
# Printed differences are 2 to 5 %, which A/B calls equivalent: more than 1 % is asked.
SOME = 1.01

LATENCY = Figure("PingPong", "latency_us", "bytes", {"ranks": 2})
PINGPONG, SENDRECV, EXCHANGE = (
    Figure(name, "bandwidth_mb_s", "bytes") for name in ("PingPong", "Sendrecv", "Exchange")
)
BARRIER = Figure("Barrier", "t_avg_us")


def time_us(benchmark: str, size: int) -> Figure:
    """Return a time of IMB over the number of processes."""
    return Figure(benchmark, "t_avg_us", conditions={"bytes": size})


def npb(name: str) -> Figure:
    """Return the rate of a benchmark of NPB, class C, over the number of processes."""
    return Figure(f"NPB-{name}", "total_mop_per_s", "ranks", {"problem_class": "C"})


def from_to(figure: Figure, over: Figure, low: float, high: float, system: str = "") -> Criterion:
    """The best of one benchmark over that of another lies between two numbers."""
    return every(at_least(figure, low, over, system), at_most(figure, high, over, system))


def p001() -> Criterion:
    """PingPong latency: PCI-Express, e326 with 133 MHz and with 100 MHz, x336 with PCI-X."""
    return order(LATENCY.between(None, 0), *BY_SLOT, factor=[SOME] * 3)


def p002() -> Criterion:
    """PingPong: faster memory hardly matters."""
    of_4_mb = PINGPONG.where(ranks=2, bytes=4 << 20)
    asked = (LATENCY.between(None, 64), of_4_mb)
    return every(*(level(E_SLOW_133, E_133, figure=one, within=0.05) for one in asked))


def p003() -> Criterion:
    """PingPong: the clock does not matter; a larger cache slows it slightly."""
    return every(
        level(X_34_PCIE, X_36_PCIE, figure=LATENCY.between(None, 64), within=0.05),
        order(LATENCY.between(None, 0), *X_PCIX, factor=[SOME]),
    )


def p004() -> Criterion:
    """PingPong over Sendrecv: about 1 of half-duplex PCI-X, half of PCI-Express."""
    half_duplex = (E_100, E_133, X_36I_133)
    return every(
        *(from_to(PINGPONG, SENDRECV, 0.85, 1.15, system) for system in half_duplex),
        from_to(PINGPONG, SENDRECV, 0.4, 0.6, X_36_PCIE),
    )


def p005() -> Criterion:
    """Sendrecv over Exchange: a lower latency, the same largest throughput."""
    return every(
        at_most(time_us("Sendrecv", 0), over=time_us("Exchange", 0)),
        from_to(SENDRECV, EXCHANGE, 0.95, 1.05),
    )


def p006() -> Criterion:
    """Below 1 MB Exchange is ahead of Sendrecv, most clearly from 1 to 100 kB."""
    exchange, sendrecv = (one.between(1, 524288) for one in (EXCHANGE, SENDRECV))
    return every(ahead(exchange, sendrecv), widest(exchange, sendrecv, between=(1024, 102400)))


def p007() -> Criterion:
    """Sendrecv: 100 MHz has a lower latency than 133 MHz."""
    return order(time_us("Sendrecv", 0), E_100, E_133, factor=[SOME], at="largest")


def p008() -> Criterion:
    """Bcast, Reduce and Allreduce: as the latency of PingPong; asked of 8 bytes."""
    collectives = ("Bcast", "Reduce", "Allreduce")
    return every(*(order(time_us(one, 8), *BY_SLOT, at="largest") for one in collectives))


def p009() -> Criterion:
    """Barrier: nothing matters but whether it is PCI-Express or PCI-X."""
    pcix = (*OPTERONS, *X_PCIX)
    return every(
        order(BARRIER, PCIE, pcix, factor=[1.2], at="largest"),
        *(level(*systems, figure=BARRIER, within=0.1) for systems in (PCIE, pcix)),
    )


def p010() -> Criterion:
    """Barrier: as long as an Allreduce of 0 bytes."""
    return level(BARRIER, time_us("Allreduce", 0), within=0.25)


def p011() -> Criterion:
    """The x336 with PCI-X is behind the e326 with 100 MHz in all but two experiments."""
    times = [time_us(name, 0) for name in ("Exchange", "Sendrecv")]
    times += [time_us(name, 8) for name in ("Bcast", "Reduce", "Allreduce")]
    largest = [PINGPONG.where(ranks=2), *times, BARRIER]
    return every(
        order(LATENCY.between(None, 0), E_100, X_PCIX, factor=[SOME]),
        *(order(one, E_100, X_PCIX, factor=[SOME], at="largest") for one in largest),
    )


def p012() -> Criterion:
    """CG: PCI-Express, then the other Xeons, then Opterons with 133 MHz and with 100 MHz."""
    return order(npb("CG"), PCIE, X_PCIX, (E_SLOW_133, E_133), E_100, at="largest")


def p013() -> Criterion:
    """EP: every Opteron is ahead of every Xeon."""
    return order(npb("EP"), OPTERONS, XEONS, at="largest")


def p014() -> Criterion:
    """FT: every e326 is ahead of every x336."""
    return order(npb("FT"), OPTERONS, XEONS, at="largest")


def p016() -> Criterion:
    """BT, LU, MG and SP rank the configurations as STREAM does."""
    stream = Figure("STREAM", "bandwidth_gb_s", conditions={"kernel": "triad"})
    return every(*(ranks_alike(npb(name), stream, EVERY) for name in ("BT", "LU", "MG", "SP")))


def p017() -> Criterion:
    """Only CG and IS depend on the network; 5 % are taken for no dependence."""
    others = ("BT", "EP", "FT", "LU", "MG", "SP")
    return every(
        *(level(E_100, E_133, figure=npb(name), within=0.05) for name in others),
        *(order(npb(name), E_133, E_100, at="largest") for name in ("CG", "IS")),
    )


def p018() -> Criterion:
    """FT: memory of 333 MHz with 133 MHz is as fast as 400 MHz with 100 MHz."""
    return level(E_SLOW_133, E_100, figure=npb("FT"), within=0.05)


def p019() -> Criterion:
    """FT gains more of faster memory, and of a faster slot, than of a larger cache."""
    slower = (E_SLOW_133, E_100)
    return every(*(larger_gain(npb("FT"), one, E_133, X_36_PCIE, X_36I_PCIE) for one in slower))


def p020() -> Criterion:
    """IS gains more of a faster slot than of faster memory."""
    return larger_gain(npb("IS"), E_100, E_133, E_SLOW_133, E_133)


def p021() -> Criterion:
    """PingPong between nodes: it dips just above 1500 bytes."""
    return dip(PINGPONG.where(ranks=2, placement="one-per-node"), 1536)


def p022() -> Criterion:
    """With 2 kB faster memory gains in PingPong, and more in Bcast."""
    bcast = time_us("Bcast", 2048)
    pingpong = Figure("PingPong", "latency_us", conditions={"bytes": 2048})
    return every(
        order(LATENCY.between(2048, 2048), E_133, E_SLOW_133, factor=[SOME]),
        order(bcast, E_133, E_SLOW_133, factor=[SOME], at="largest"),
        smaller_lead(pingpong, bcast, E_133, [E_SLOW_133], SOME),
    )


def printed(values: Printed) -> dict[str, bool]:
    """Return what the paper's own numbers say."""
    near, ascending, ratio = values.near, values.ascending, values.ratio
    sendrecv = "r045 r051 r057 r063 r069 r075 r081 r087"
    exchange = "r042 r048 r054 r060 r066 r072 r078 r084"
    alike = ("r043 r046", "r049 r052", "r055 r058", "r061 r064", "r067 r070")
    behind = {
        **{"r018": "r027 r030", "r028 r031": "r019", "r042": "r060 r066"},
        **{"r045": "r063 r069", "r043": "r061 r067", "r046": "r064 r070"},
    }
    return {
        "p001": ascending("r033 r036 r039", "r021 r024", "r018", "r027 r030"),
        "p002": near("r021 r024") and near("r022 r025"),
        "p003": ascending("r027", "r030") and near("r033 r036 r039"),
        "p004": 0.45 <= ratio("r034", "r073") <= 0.55
        and all(0.8 <= ratio(*one) <= 1.0 for one in (("r025", "r055"), ("r028", "r061"))),
        "p005": ascending(sendrecv, exchange)
        and all(map(near, (*alike, "r073 r076 r079 r082 r085 r088"))),
        "p007": ascending("r045", "r057"),
        "p011": all(ascending(*one) for one in behind.items()),
        "p017": values.values["r123"] <= 5,
        "p019": ascending("r124", "r123"),
        "p020": ascending("r125", "r127"),
        "p022": ascending(0, "r105", "r106"),
    }
