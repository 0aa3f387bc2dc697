"""The check of the papers themselves: what follows from what else they printed, and if it does.

Each entry computes a printed value, or a parameter, from the paper's other numbers by the functions
of :mod:`evaluations.derived` and :mod:`clustergate.benchmarks.hpl.sizing`. Those that do not agree
are the contradictions; the facts must carry them as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clustergate.benchmarks.hpl import sizing
from clustergate.machine.power import Power
from evaluations.derived import comparisons, links, power, ratios, scaling
from evaluations.facts import Paper, PrintedValue, load_papers

_ABOUT = 0.15
"""What a number printed as ``about`` may be off, as a part of it."""

_UP_TO = 0.0025
"""What a bound printed as ``up to`` may be off: the payload bounds of paper 003 are 0.2 % low."""

_GIBIBYTE = 2**30
_PCI_LANE_MB_S = 250.0


@dataclass(frozen=True)
class Recomputed:
    """A printed number beside what follows from others: ``how`` is the computation in words."""

    paper: str
    id: str
    printed: str
    computed: float
    unit: str
    how: str
    agrees: bool


def recompute(papers: Mapping[str, Paper] | None = None) -> list[Recomputed]:
    """Return all that can be recomputed, paper by paper."""
    papers = papers or {paper.id: paper for paper in load_papers()}
    steps = {"000": _000, "001": _001, "002": _002, "003": _003, "004": _004}
    return [
        _compared(papers[paper], name, computed, how)
        for paper, computations in steps.items()
        for name, computed, how in computations(papers[paper])
    ]


def agrees(printed: PrintedValue, computed: float) -> bool:
    """Tell whether a computed value is what was printed, as its digits and qualifier have it."""
    if printed.value is None:
        assert printed.low is not None
        assert printed.high is not None
        return printed.low <= computed <= printed.high
    value = printed.value
    if printed.qualifier in ("about", "a little above", "a little below"):
        return abs(computed - value) <= _ABOUT * value
    if printed.qualifier == "below":
        return computed < value
    if printed.qualifier in ("above", "at least"):
        return computed >= value
    if printed.qualifier == "up to":
        return abs(computed - value) <= max(_UP_TO * value, 0.5 * _last_digit(value))
    # Rounded, or cut: Rpeak is 72007.68 and printed 72007.
    return abs(computed - value) < _last_digit(value)


def _last_digit(value: float) -> float:
    text = f"{value:.12g}"
    return 10.0 ** -len(text.partition(".")[2])


def _compared(paper: Paper, name: str, computed: float, how: str) -> Recomputed:
    if name in paper.values:
        value = paper.values[name]
        return Recomputed(
            paper.id, name, value.text, computed, value.unit, how, agrees(value, computed)
        )
    parameter = paper.parameters[name]
    same = computed == parameter.value
    return Recomputed(paper.id, name, str(parameter.value), computed, parameter.unit, how, same)


_Steps = Iterator[tuple[str, float, str]]


def _number(paper: Paper, name: str) -> float:
    value = paper.values[name].value
    assert value is not None
    return value


def _parameter(paper: Paper, name: str) -> float:
    value = paper.parameters[name].value
    assert not isinstance(value, str)
    return value


def _000(paper: Paper) -> _Steps:
    peaks = {"r001": "altix-bx2-numalink4", "r002": "cray-x1-msp", "r003": "cray-opteron"}
    for name, system in {**peaks, "r004": "dell-xeon", "r005": "nec-sx8"}.items():
        site = paper.systems[system].site
        assert site is not None
        per_core, cores = site["nominal_gflops_per_core"], site["cores_per_node"]
        yield name, per_core * cores, f"{cores} CPUs of {per_core:g} Gflop/s"
    yield (
        "r018",
        -scaling.relative_change_percent(1.07, 0.84),
        "1 - 0.84/1.07, the ends of the range of STREAM over HPL",
    )
    ring = ratios.balance_b_per_flop(_number(paper, "r009"), 1.0)
    yield "r024", ring, "93.81 B/kFlop of NUMALINK3 in B/F"


def _001(paper: Paper) -> _Steps:
    rates = [(lanes, rate) for lanes in links.WIDTHS for rate in links.LANE_GBIT_S]
    for k, (lanes, rate) in enumerate(rates, 1):
        how = f"{lanes} lanes of {rate}, 8 of 10 bits are data"
        yield f"r{k:03}", links.infiniband_gbit_s(rate, lanes), how
    yield "r013", 4 * links.LANE_GBIT_S["DDR"], "4 lanes of 5 Gbit/s"
    yield "r014", links.infiniband_gbit_s("DDR", 4), "4 lanes of DDR, 8 of 10 bits are data"
    yield "r018", scaling.rpeak_gflops(2.93, 512 * 12, 4), "2.93 GHz * 6144 cores * 4"
    yield "r019", links.infiniband_gbit_s("QDR", 4), "4 lanes of QDR, 8 of 10 bits are data"
    yield "r020", 2 * 3.2, "two transfers in each cycle of 3.2 GHz"
    p, q = sizing.process_grid(6144)
    yield "c006", float(p), "the squarest grid of 6144 processes"
    yield "c007", float(q), "the squarest grid of 6144 processes"
    n = sizing.choose_problem_size(
        512 * 24 * _GIBIBYTE, p, q, nb=192, n_fraction=0.92, rounding="nb-lcm"
    )
    yield "c001", float(n), "92 % of the N that fills 512*24 GiB, rounded to 192*lcm(64, 96)"
    of_bytes = 100 * sizing.matrix_bytes(n) / (512 * 24 * _GIBIBYTE)
    yield "c021", of_bytes, "8 N**2 over 512*24 GiB, in percent of the bytes"


def _002(paper: Paper) -> _Steps:
    yield "r001", scaling.rpeak_gflops(0.5, 1, 2), "0.5 GHz * 2"
    yield "r002", scaling.rpeak_gflops(2.2, 1, 2), "2.2 GHz * 2"
    yield "r003", scaling.rpeak_gflops(0.5, 72, 2), "72 cores of 0.5 GHz * 2"
    yield "r005", 3 * _number(paper, "r004"), "three exit links"
    whole = Power(_number(paper, "r006"), "the system")
    yield "r013", power.per_watt(1000 * _number(paper, "r003"), whole), "72 GFLOPS over 300 W"
    yield "r015", float(power.sockets(64, 6)), "64 cores on sockets of 6"
    yield "r016", float(power.sockets(64, 1)), "64 cores on sockets of 1"
    yield "r028", max(_number(paper, "r026"), _number(paper, "r027")), "the larger of the two"


_SLOTS = {"100": (800.0, False), "133": (1067.0, False), "pcie": (1000.0, True)}


def _003(paper: Paper) -> _Steps:
    lane = links.mb_s_of_gbit_s(links.infiniband_gbit_s("SDR", 1))
    for name, lanes in {"r001": 1, "r002": 4, "r003": 12}.items():
        yield name, lanes * lane, f"{lanes} lanes of 2.5 Gbit/s, 8 of 10 bits are data"
    yield "r004", links.bus_mb_s(100, 64), "64 bits at 100 MHz"
    yield "r005", links.bus_mb_s(400 / 3, 64), "64 bits at 133.3 MHz"
    yield "r006", 8 * _PCI_LANE_MB_S, "eight lanes of 250 MB/s"
    payload = links.payload_fraction(1500)
    yield "r007", 100 * payload, "1500 of 1526 bytes"
    for name, peak in {"r008": 800.0, "r009": 3200 / 3, "r010": 2000.0}.items():
        yield name, peak * payload, f"1500/1526 of {peak:.0f} MB/s"
    yield "r012", links.switch_latency_ns(288) / 1000, "7 stages of 144 ns"
    yield "r013", links.switch_latency_ns(24) / 1000, "3 stages of 144 ns"
    yield "r014", links.STAGE_LATENCY_NS / 1000, "a stage"
    yield "r015", 5 * links.STAGE_LATENCY_NS / 1000, "5 stages of 144 ns"
    yield "r017", 5 * _number(paper, "r016"), "5 hops of 10 us"
    yield from _slot_efficiencies(paper)
    table = {
        (value.benchmark, value.metric, value.system): value.value or 0.0
        for value in paper.values.values()
        if value.source.endswith(("Table 1", "Table 2"))
    }
    pcie = [s for s in paper.systems if s.endswith("pcie")]
    latencies = [table["PMB PingPong", "latency", s] for s in pcie]
    fast = {name: table["PMB PingPong", "latency", name] for name in _E326_133}
    yield "r091", max(latencies), "the slowest configuration with PCI-Express"
    yield "r094", max(latencies), "the slowest configuration with PCI-Express"
    yield "r092", max(fast.values()), "the slower e326 with 133 MHz"
    yield "r097", max(fast.values()), "the slower e326 with 133 MHz"
    for name in ("r090", "r096"):
        best = max(table["PMB Sendrecv", "throughput", s] for s in pcie)
        yield name, best, "the largest Sendrecv throughput with PCI-Express"
    best = max(table["PMB Sendrecv", "throughput", s] for s in _E326_133)
    yield "r093", best, "the larger Sendrecv throughput of an e326 with 133 MHz"
    yield "r098", best, "the larger Sendrecv throughput of an e326 with 133 MHz"
    yield "r095", max(table["PMB PingPong", "throughput", s] for s in pcie), "the largest with it"
    least = min(fast.values()) - max(latencies)
    yield "r104", least, "the smallest difference of e326 133 MHz and PCI-Express in the table"
    stream = {name: _number(paper, name) for name in ("r114", "r115", "r116")}
    yield "r117", stream["r114"] / stream["r116"], "8.9 over 4.0 GB/s"
    slower = -scaling.relative_change_percent(stream["r114"], stream["r115"])
    yield "r118", slower, "7.3 against 8.9 GB/s"
    yield "r122", scaling.relative_change_percent(3.6 / 2, 2.4), "2.4 GHz against 3.6/2 GHz"
    gain = scaling.relative_change_percent(_number(paper, "r120"), _number(paper, "r119"))
    yield "r131", gain, "10171 against 8153 Mop/s"
    memory = scaling.relative_change_percent(333, 400)
    for name in ("r123", "r125", "r130"):
        of_clock = comparisons.elasticity(_number(paper, name), memory)
        yield name, 33 * of_clock, "it came of 20.1 % more clock; so much 33 % would give"
    network = comparisons.elasticity(_number(paper, "r128"), 100)
    yield "r139", network, "33 % for twice the network"


_E326_133 = ("e326-24-333-133", "e326-24-400-133")


def _slot_efficiencies(paper: Paper) -> _Steps:
    throughputs = {
        (value.benchmark, value.system): value.value or 0.0
        for value in paper.values.values()
        if value.metric == "throughput"
    }
    for value in paper.values.values():
        if value.metric == "slot efficiency":
            one_way, full_duplex = _SLOTS[value.system.rpartition("-")[2]]
            both_ways = value.benchmark != "PMB PingPong"
            peak = links.slot_peak_mb_s(one_way, both_ways=both_ways, full_duplex=full_duplex)
            moved = throughputs[value.benchmark, value.system]
            yield value.id, links.efficiency_percent(moved, peak), f"{moved:g} of {peak:g} MB/s"


def _004(paper: Paper) -> _Steps:
    # The largest label of the axis of 1-MB times, of the slowest machine, bounds the others.
    largest_ms = 1600 / _number(paper, "r012") * _number(paper, "r006")
    for name in ("r066", "r067"):
        yield name, largest_ms / 100, "a hundredth of what 1 MB takes at most, by the ratios"
    yield "c007", 4.0 * 2**20, "the cache of 4 MiB that another section gives"
    yield "c004", 100 * 5 / (_parameter(paper, "c001") - 1), "5 of the 50 trials that remain"
