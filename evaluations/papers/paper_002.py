"""What paper 002 concludes of a low-power machine beside a commodity cluster."""

from __future__ import annotations

from evaluations.criteria import (
    Criterion,
    at_least,
    at_most,
    better_placed,
    each,
    every,
    gains_beyond,
    keeps,
    level,
    linear,
    order,
    step,
    trend,
)
from evaluations.printed import Printed
from evaluations.series import Figure

SC072, OPTERON = "sicortex-sc072", "opteron-myri10g"
MIB = 1 << 20

HPCCG = Figure("HPCCG", "performance_mflops")
LJ_STRONG = Figure("LAMMPS-lj-strong", "time_s", conditions={"atoms": 4194304})
LJ_WEAK = Figure("LAMMPS-lj-weak", "time_s")
RHODO_STRONG = Figure("LAMMPS-rhodo-strong", "time_s")
RHODO_WEAK = Figure("LAMMPS-rhodo-weak", "time_s")
STRONG, WEAK, WEAK_TIMES = "strong efficiency", "weak efficiency", "weak efficiency of times"


def host(call: str, metric: str) -> Figure:
    """Return a figure of the host processor's part in a call over message sizes."""
    return Figure("host_overhead", metric, "bytes", {"call": call})


def p001() -> Criterion:
    """PingPong: a lower bandwidth on one node than between two."""
    pingpong = Figure("PingPong", "bandwidth_mb_s", conditions={"bytes": 4 * MIB, "ranks": 2})
    return better_placed(pingpong, "one-per-node", "packed")


def p002() -> Criterion:
    """PingPong: the latency steps down at 1024 bytes."""
    between_nodes = {"ranks": 2, "placement": "one-per-node"}
    return step(Figure("PingPong", "latency_us", "bytes", between_nodes), 1024, 512)


def p003() -> Criterion:
    """Sendrecv between nodes: a steeper rise above 64 kB, for all node counts."""
    sendrecv = Figure("Sendrecv", "bandwidth_mb_s", "bytes", {"placement": "one-per-node"})
    return each("processes", sendrecv, lambda figure: gains_beyond(figure, 65536))


def p004() -> Criterion:
    """Sendrecv on one node: the bandwidth falls with the cores."""
    own = {"bytes": 4 * MIB, "nodes": 1, "placement": "packed"}
    return trend(Figure("Sendrecv", "bandwidth_mb_s", conditions=own).between(None, 6), "falls")


def p005() -> Criterion:
    """Allreduce of 16 MB: 40 processes are slower than 64."""
    return step(Figure("Allreduce", "t_avg_us", conditions={"bytes": 16 * MIB}), 64, 40)


def p006() -> Criterion:
    """Overhead is linear in the message size."""
    calls = ("isend", "irecv")
    return every(*(linear(host(call, "overhead_us"), r_squared=0.99) for call in calls))


def p007() -> Criterion:
    """During MPI_Irecv little time is left for work; a half is taken for little."""
    return at_most(host("irecv", "availability_percent"), 50)


def p008() -> Criterion:
    """The stream in both directions reaches at least the bandwidth of Sendrecv."""
    stream, sendrecv = (
        Figure(name, "bandwidth_mb_s", conditions={"processes": 2})
        for name in ("bidirectional_stream", "Sendrecv")
    )
    return at_least(stream, over=sendrecv)


def p009() -> Criterion:
    """HPCCG: the Opteron is faster, the SC072 scales better."""
    return every(
        order(HPCCG, OPTERON, SC072, at="largest"),
        order(HPCCG.per(WEAK), SC072, OPTERON, at="largest"),
    )


def p011() -> Criterion:
    """LAMMPS, Lennard-Jones: the SC072 scales better."""
    scaling = (LJ_STRONG.per(STRONG), LJ_WEAK.per(WEAK_TIMES))
    return every(*(order(one, SC072, OPTERON, at="largest") for one in scaling))


def p012() -> Criterion:
    """LAMMPS, Rhodopsin: the Opteron is ahead with few processes, and its scaling falls."""
    return every(
        order(RHODO_STRONG, OPTERON, SC072, at="smallest"),
        trend(RHODO_STRONG.per(STRONG), "falls", OPTERON),
    )


def p013() -> Criterion:
    """The SC072 computes far more per watt, twice as much at least, and takes longer."""
    per_watt = Figure("HPCCG", "mflops_per_w")
    return every(
        order(per_watt, SC072, OPTERON, factor=[2], at="largest"),
        order(LJ_STRONG, OPTERON, SC072, at="largest"),
    )


def p015() -> Criterion:
    """LAMMPS, Rhodopsin: with 64 processes the SC072 nearly catches the Opteron."""
    return level(SC072, OPTERON, figure=RHODO_STRONG.between(64, 64), within=0.25)


def p016() -> Criterion:
    """The SC072 keeps 87 % of its efficiency in any application."""
    efficiencies = [RHODO_WEAK.per(WEAK_TIMES), LJ_WEAK.per(WEAK_TIMES), HPCCG.per(WEAK)]
    efficiencies += [LJ_STRONG.per(STRONG), RHODO_STRONG.per(STRONG)]
    return every(*(keeps(one, 0.87, SC072) for one in efficiencies))


def printed(values: Printed) -> dict[str, bool]:
    """Return what the paper's own numbers say."""
    return {"p008": values.ascending("r027", "r026"), "p009": values.ascending("r030", "r029")}
