"""What paper 004 concludes of collectives on five machines."""

from __future__ import annotations

from collections.abc import Iterator

from evaluations.criteria import (
    Criterion,
    ahead,
    all_but,
    count_at_least,
    every,
    order,
    steady,
)
from evaluations.printed import Printed
from evaluations.series import Figure

T3E, ORIGIN, NT = "cray-t3e600", "sgi-origin2000", "ncsa-nt-myrinet"
MYRINET, ETHERNET = "ahpcc-linux-myrinet", "ahpcc-linux-ethernet"
OTHERS = (ORIGIN, NT, MYRINET, ETHERNET)
SMALL, LARGE = 10_000, 1_000_000

BARRIER = Figure("barrier", "time_us")
# The larger message of each test beside that of 8 bytes.
LARGER = {
    **dict.fromkeys(("bcast", "reduce", "allreduce", "scan"), LARGE),
    **dict.fromkeys(("scatter", "gather", "allgather", "alltoall"), SMALL),
}


def trial(test: str, size: int, along: str = "processes") -> Figure:
    """Return the time of a test with one message size."""
    return Figure(test, "time_us", along, {"bytes": size})


def per_partner(test: str, size: int) -> Figure:
    """Return the time over the partners of each process, p-1."""
    return trial(test, size).per("p-1")


def both_sizes() -> Iterator[Figure]:
    """Yield the collectives of two message sizes."""
    return (trial(test, size) for test, large in LARGER.items() for size in (8, large))


def first(figure: Figure, *behind: str, factor: float = 1) -> Criterion:
    """The T3E is ahead of others, at the most processes."""
    return order(figure, T3E, behind or OTHERS, factor=[factor], at="largest")


def p001() -> Criterion:
    """Ping-pong: the T3E is best, and the Origin varies most over the partners with 8 bytes."""
    eight, large = (trial("ping_pong", size, "peer") for size in (8, LARGE))
    return every(
        order(eight, T3E, OTHERS),
        order(large, T3E, OTHERS),
        order(eight, (T3E, NT, MYRINET, ETHERNET), ORIGIN, spread=True),
    )


def p002() -> Criterion:
    """Ping-pong of 8 bytes: Myrinet Linux is steadier and faster than NT."""
    eight = trial("ping_pong", 8, "peer")
    return every(order(eight, MYRINET, NT), order(eight, MYRINET, NT, spread=True))


def p003() -> Criterion:
    """Right shift: the T3E is best and scales best; Myrinet Linux scales well."""
    sizes = [trial("right_shift", size) for size in (8, SMALL)]
    return every(
        *map(first, sizes),
        *(order(one, T3E, MYRINET, (ORIGIN, NT, ETHERNET), spread=True) for one in sizes),
    )


def p004() -> Criterion:
    """Barrier: T3E and Origin are far ahead of NT and Myrinet, and Myrinet of Ethernet."""
    best = (T3E, ORIGIN)
    return every(
        order(BARRIER, best, MYRINET, ETHERNET, factor=[2, 2], at="largest"),
        order(BARRIER, best, NT, factor=[2], at="largest"),
    )


def p005() -> Criterion:
    """Bcast: T/log2(p) is nearly constant from 8 processes on."""
    sizes = (trial("bcast", size).between(8).per("log2 p") for size in (8, LARGE))
    return every(*(steady(one, within=1.5) for one in sizes))


def p006() -> Criterion:
    """Bcast: the Origin is last with 8 bytes; with 1 MB Origin and T3E are far ahead."""
    return every(
        order(trial("bcast", 8), (NT, T3E, MYRINET), ORIGIN, at="largest"),
        order(trial("bcast", LARGE), (ORIGIN, T3E), (NT, MYRINET), factor=[2], at="largest"),
    )


def p007() -> Criterion:
    """Scatter: the T3E is best; with 8 bytes NT ties, so that 5 % behind is no loss."""
    return every(first(trial("scatter", 8), factor=0.95), first(trial("scatter", SMALL)))


def p008() -> Criterion:
    """Scatter of 10 kB: T/(p-1) is nearly constant."""
    return steady(per_partner("scatter", SMALL), within=1.5)


def p009() -> Criterion:
    """Gather of 10 kB: an order; T/(p-1) is constant but on Ethernet."""
    gather = per_partner("gather", SMALL)
    return every(
        order(trial("gather", SMALL), T3E, (ORIGIN, NT), MYRINET, at="largest"),
        all_but(ETHERNET, steady(gather, within=2), instead=steady(gather, beyond=2)),
    )


def p010() -> Criterion:
    """Allgather: T/(p-1) is constant but on NT, which is asked of 10 kB."""
    eight, ten_kb = (per_partner("allgather", size) for size in (8, SMALL))
    constant = every(steady(eight, within=2), steady(ten_kb, within=2))
    return all_but(NT, constant, instead=steady(ten_kb, beyond=2))


def p011() -> Criterion:
    """Allgather on Ethernet: above 8 processes 8 bytes take longer than 10 kB."""
    ten_kb, eight = (trial("allgather", size).between(9) for size in (SMALL, 8))
    return ahead(ten_kb, eight, system=ETHERNET)


def p012() -> Criterion:
    """Alltoall of 8 bytes: T3E and NT are ahead of Origin and Myrinet."""
    return order(trial("alltoall", 8), (T3E, NT), (ORIGIN, MYRINET), at="largest")


def p013() -> Criterion:
    """Alltoall: T/(p-1) is constant on T3E and Myrinet; NT and Ethernet are poor at one size."""
    eight, ten_kb = (per_partner("alltoall", size) for size in (8, SMALL))
    level = (T3E, MYRINET)
    return every(
        *(steady(one, within=1.5, system=who) for who in level for one in (eight, ten_kb)),
        order(ten_kb, level, NT, spread=True),
        order(eight, level, ETHERNET, spread=True),
    )


def p014() -> Criterion:
    """Reduce: the Origin is last with 8 bytes, and first with 1 MB."""
    others = (T3E, NT, MYRINET)
    return every(
        order(trial("reduce", 8), others, ORIGIN, at="largest"),
        order(trial("reduce", LARGE), ORIGIN, others, at="largest"),
    )


def p015() -> Criterion:
    """Allreduce: the T3E is best with 8 bytes; T3E and NT are good with 1 MB."""
    large = order(trial("allreduce", LARGE), (T3E, NT), (ORIGIN, MYRINET), at="largest")
    return every(first(trial("allreduce", 8)), large)


def p016() -> Criterion:
    """Scan: the T3E is far ahead."""
    return every(*(first(trial("scan", size), factor=2) for size in (8, LARGE)))


def p018() -> Criterion:
    """Bcast, allgather and alltoall: Myrinet is ahead of NT; in all others NT is."""
    myrinet_first = ("bcast", "allgather", "alltoall")
    orders = []
    for figure in (BARRIER, *both_sizes()):
        pair = (MYRINET, NT) if figure.benchmark in myrinet_first else (NT, MYRINET)
        orders.append(order(figure, *pair, at="largest"))
    return every(*orders)


def p019() -> Criterion:
    """Myrinet is far ahead of Ethernet in all collectives."""
    collectives = (BARRIER, *both_sizes())
    return every(*(order(one, MYRINET, ETHERNET, factor=[2], at="largest") for one in collectives))


def p020() -> Criterion:
    """The T3E is best in most of 20 tests; of gather the table has 10 kB alone."""
    pingpong = [order(trial("ping_pong", size, "peer"), T3E, OTHERS) for size in (8, LARGE)]
    shifts = [trial("right_shift", size) for size in (8, SMALL)]
    others = [one for one in both_sizes() if one != trial("gather", 8)]
    return count_at_least(11, *pingpong, *map(first, (*shifts, BARRIER, *others)))


def p021() -> Criterion:
    """The gap between Myrinet and Ethernet grows with the processes, but in scan."""
    tests = ("bcast", "scatter", "gather", "allgather", "alltoall", "reduce", "allreduce")
    larger = (trial(test, LARGER[test]) for test in tests)
    return every(*(ahead(MYRINET, ETHERNET, one, growing=True) for one in larger))


def p022() -> Criterion:
    """Allgather: an order with 8 bytes, and one with 10 kB."""
    ten_kb = (T3E, MYRINET, ORIGIN, (ETHERNET, NT))
    return every(
        order(trial("allgather", 8), NT, T3E, ORIGIN, MYRINET, ETHERNET, at="largest"),
        order(trial("allgather", SMALL), *ten_kb, at="largest"),
    )


def p023() -> Criterion:
    """Gather of 8 bytes: T/(p-1) is not constant."""
    return steady(per_partner("gather", 8), beyond=2)


def printed(values: Printed) -> dict[str, bool]:
    """Return what the paper's own numbers say; that of the T3E is 1."""
    ascending, ratio = values.ascending, values.ratio
    ratios = [values.values[f"r{k:03}"] for k in range(1, 65)]
    scatter, scan = ratios[12:20], ratios[56:64]
    faster = ("r009 r007", "r010 r008", "r029 r027", "r037 r035", "r002 r003")
    slower = ("r004 r003", "r011 r009", "r012 r010", "r063 r061", "r064 r062")
    return {
        "p004": ascending("1 r001", "r002 r003", "r004"),
        "p006": ascending("r007 1 r009", "r005") and ascending("1 r006", "r008 r010"),
        "p007": min(scatter) >= 1,
        "p009": ascending(1, "r021 r022", "r023", "r024"),
        "p012": ascending("1 r035", "r033 r037"),
        "p014": ascending("1 r043 r045", "r041") and ascending("r042", "1 r044 r046"),
        "p015": ascending(1, "r049 r051 r053 r055"),
        "p016": min(scan) >= 9.5,
        "p018": all(ascending(*pair.split()) for pair in faster),
        "p019": all(ratio(*pair.split()) >= 2 for pair in slower),
        "p020": sum(one >= 1 for one in ratios) > len(ratios) / 2,
        "p022": ascending("r027", 1, "r025", "r029", "r031")
        and ascending(1, "r030", "r026", "r032 r028"),
    }
