"""Figures that the papers derive from others, for what was measured here. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clustergate.benchmarks.npb.output import BENCHMARKS
from clustergate.wording.notation import number
from evaluations import relative
from evaluations.contrasts import contrast_rows, runs_of
from evaluations.derived import DerivedError, comparisons, curves, links, scaling
from evaluations.evidence import Subject
from evaluations.facts import TO_BASELINE, Suite
from evaluations.growth import (
    growth_rows,
)
from evaluations.rows import DerivedRow, rows_of

_PINGPONG = {"benchmark": "PingPong", "ranks": 2}
# The tests of paper 004 of which it prints ratios to this baseline, with their sizes in bytes.
_BASELINE = "cray-t3e600"
_TRIALS = {
    **dict.fromkeys(("bcast", "reduce", "allreduce", "scan"), (8, 1_000_000)),
    **dict.fromkeys(("scatter", "gather", "allgather", "alltoall"), (8, 10_000)),
    "barrier": (0,),
}


def derived_rows(
    subjects: Sequence[Subject],
    link_mb_s: Mapping[str, float] | None = None,
    roles: Mapping[str, Subject] | None = None,
) -> list[DerivedRow]:
    """Return what follows from the measurements, leaving out what nothing here allows.

    ``link_mb_s`` is what a link of a system carries in one direction, by the system's name;
    ``roles`` say who stands for which of the papers' systems.
    """
    single = [rows_of(quantity, source, subjects, told) for quantity, source, told in _QUANTITIES]
    return [
        *(row for rows in single for row in rows),
        *_link_efficiencies(subjects, link_mb_s or {}),
        *growth_rows(subjects),
        *contrast_rows(subjects),
        *_sensitivities(subjects),
        *_ratios(subjects, (roles or {}).get(_BASELINE)),
    ]


def _times(subject: Subject) -> dict[int, float]:
    return subject.series({**_PINGPONG, "metric": "latency_us"}, "bytes")


def _bandwidths(subject: Subject, benchmark: str = "PingPong") -> dict[int, float]:
    of = {"benchmark": benchmark, "metric": "bandwidth_mb_s", "ranks": 2}
    return subject.series(of, "bytes")


def _three(curve: dict[int, float]) -> dict[int, float]:
    if len(curve) < 3:
        raise DerivedError("fewer than three sizes have no neighbours")
    return curve


def _alpha(subject: Subject) -> str:
    fit = curves.latency_bandwidth(_times(subject))
    return f"{number(fit.alpha_us)} us (R squared {fit.r_squared:.3f})"


def _beta(subject: Subject) -> str:
    return f"{number(curves.latency_bandwidth(_times(subject)).bandwidth_mb_s)} MB/s"


def _half(subject: Subject) -> str:
    return f"{curves.size_of_half(_bandwidths(subject)):.0f} bytes"


def _most(subject: Subject) -> str:
    return f"{curves.size_of_most(_bandwidths(subject))} bytes"


def _dips(subject: Subject) -> str:
    found = curves.dips(_three(_bandwidths(subject)))
    return ", ".join(map(str, found)) or "none"


def _switches(subject: Subject) -> str:
    found = curves.switch_points(_three(_times(subject)))
    return ", ".join(map(str, found)) or "none"


def _duplex(subject: Subject) -> str:
    one_way, both = (max(_bandwidths(subject, b).values(), default=0.0) for b in _WAYS)
    return f"{one_way / both:.3g}: {links.duplex_of(one_way, both)}" if both else _nothing()


def _nothing() -> str:
    raise DerivedError("nothing was measured")


_WAYS = ("PingPong", "Exchange")
_QUANTITIES: Sequence[tuple[str, str, Callable[[Subject], str]]] = (
    ("PingPong alpha, latency of the fitted line", "paper 004, test 4", _alpha),
    ("PingPong 1/beta, bandwidth of the fitted line", "paper 004, test 4", _beta),
    ("PingPong n1/2, size of half the bandwidth", "paper 003, section 8.1", _half),
    ("PingPong n max, size of about all of it", "paper 003, section 8.1", _most),
    ("PingPong sizes at which the bandwidth dips", "paper 001, section V", _dips),
    ("PingPong sizes at which the time jumps", "paper 002, section 6.1", _switches),
    ("duplex factor, PingPong over Exchange", "paper 003, section 6.1", _duplex),
)


def _link_efficiencies(
    subjects: Sequence[Subject], link_mb_s: Mapping[str, float]
) -> list[DerivedRow]:
    """Return how much of its link each subject's messages between two nodes fill."""
    values = {}
    for subject in subjects:
        peak = link_mb_s.get(subject.system)
        of = {"benchmark": "PingPong", "metric": "bandwidth_mb_s", "ranks": 2, "nodes": 2}
        found = subject.series(of, "bytes")
        if peak and found:
            part = links.efficiency_percent(max(found.values()), peak)
            values[subject.name] = f"{number(part)} % of {number(peak)} MB/s"
    if not values:
        return []
    source = "paper 001, section V; paper 003, table 1"
    return [DerivedRow("PingPong between nodes, of what the link carries", source, values)]


# What tells how fast a component is: of them one must differ, and the others not.
_COMPONENTS: Mapping[str, Mapping[str, object]] = {
    "processor": {"benchmark": "HPL", "metric": "performance_gflops"},
    "memory": {"benchmark": "STREAM", "metric": "bandwidth_gb_s", "kernel": "triad"},
    "network": {"benchmark": "PingPong", "metric": "bandwidth_mb_s", "nodes": 2},
}
_ALIKE_PERCENT = 5.0


def _best(subject: Subject, of: Mapping[str, object]) -> float | None:
    return max((figure.value for figure in subject.values(of)), default=None)


def _has_network(subject: Subject) -> bool:
    return any(int(figure.conditions.get("nodes", 1)) > 1 for figure in subject.figures)


def changed_component(one: Subject, other: Subject) -> tuple[str, float]:
    """Return the only component in which two subjects differ, and its gain in percent.

    Each component is known by what was measured of it. Raises :class:`DerivedError` unless exactly
    one differs by more than 5 %, and when one was not measured; the network is no component of
    subjects that never left a node.
    """
    gains = {}
    for name, of in _COMPONENTS.items():
        if name == "network" and not (_has_network(one) or _has_network(other)):
            continue
        before, after = _best(one, of), _best(other, of)
        if not before or not after:
            raise DerivedError(f"what the {name} can do was not measured of both")
        gains[name] = scaling.relative_change_percent(before, after)
    changed = {name: gain for name, gain in gains.items() if abs(gain) > _ALIKE_PERCENT}
    if len(changed) != 1:
        told = ", ".join(changed) or "none"
        raise DerivedError(f"not one component alone is changed, but: {told}")
    return next(iter(changed.items()))


def _sensitivities(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return how NPB follows the one component in which a subject differs from the first."""
    rows: dict[str, dict[str, str]] = {}
    found: dict[str, dict[str, float]] = {}
    for other in subjects[1:]:
        try:
            component, gain = changed_component(subjects[0], other)
        except DerivedError:
            continue
        for benchmark in BENCHMARKS:
            of = {"benchmark": f"NPB-{benchmark}", "metric": "total_mop_per_s"}
            rates = [runs_of(subject, of) for subject in (subjects[0], other)]
            if common := rates[0].keys() & rates[1].keys():
                before, after = (rate[max(common)] for rate in rates)
                own = scaling.relative_change_percent(before, after)
                sensitivity = comparisons.elasticity(own, gain)
                found.setdefault(f"NPB-{benchmark}", {})[component] = sensitivity
                rows.setdefault(f"NPB-{benchmark}", {})[other.name] = (
                    f"{sensitivity:.2f} ({component} {gain:+.0f} %)"
                )
    told = [
        DerivedRow(f"{name}: gain over that of the changed component", _SENSITIVITY, row)
        for name, row in rows.items()
    ]
    for name, by_component in found.items():
        if len(by_component) > 1:
            most = comparisons.most_sensitive_to(by_component)
            row = {subjects[0].name: f"the {most}, of {', '.join(by_component)}"}
            told.append(DerivedRow(f"{name}: most sensitive to", _SENSITIVITY, row))
    return told


_SENSITIVITY = "paper 003, sections 7 and 8.2"


def _ratios(subjects: Sequence[Subject], baseline: Subject | None) -> list[DerivedRow]:
    """Return the times of collectives relative to the baseline, else to the first subject."""
    rows: list[DerivedRow] = []
    for test, sizes in _TRIALS.items() if subjects else ():
        for size in sizes:
            suite = Suite("MpiTrialsCheck", f"{test}.*p.{size}B.time_us", relative=TO_BASELINE)
            try:
                found = relative.ratios(suite, subjects, baseline or subjects[0])
            except DerivedError:
                continue
            rows.append(
                DerivedRow(
                    f"{test} of {size} bytes, {found.launch.processes} processes, relative to "
                    f"{found.baseline}",
                    "paper 004, tables 1 to 9",
                    {name: f"{ratio:.2g}" for name, ratio in found.values.items()},
                )
            )
    return rows
