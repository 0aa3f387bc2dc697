"""Figures that the papers derive from others, for what was measured here. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from clustergate.benchmarks.npb.output import BENCHMARKS
from clustergate.core.notation import number
from evaluations.contrasts import contrast_rows, runs_of
from evaluations.derived import DerivedError, comparisons, curves, links, scaling
from evaluations.evidence import Subject
from evaluations.growth import growth_rows
from evaluations.rows import DerivedRow, LaunchValue, rows_of, separately

_PINGPONG = {"benchmark": "PingPong", "ranks": 2}


def derived_rows(
    subjects: Sequence[Subject],
    link_mb_s: Mapping[str, float] | None = None,
) -> list[DerivedRow]:
    """Return what follows from the measurements, leaving out what nothing here allows.

    ``link_mb_s`` is what a link of a system carries in one direction, by the system's name.
    """
    # What disturbs a round disturbs all who are compared in it, and tells nothing of one alone.
    alone = [one.undisturbed for one in subjects]
    groups = separately(alone)
    return [
        *(
            row
            for quantity, source, told in _QUANTITIES
            for row in rows_of(quantity, source, groups, told)
        ),
        *_link_efficiencies(alone, link_mb_s or {}),
        *growth_rows(alone),
        *contrast_rows(subjects),
        *_sensitivities(subjects),
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


def _alpha(subject: Subject) -> LaunchValue:
    fit = curves.latency_bandwidth(_times(subject))
    return LaunchValue(f"{{}} us (R squared {fit.r_squared:.3f})", fit.alpha_us)


def _beta(subject: Subject) -> LaunchValue:
    return LaunchValue("{} MB/s", curves.latency_bandwidth(_times(subject)).bandwidth_mb_s)


def _half(subject: Subject) -> LaunchValue:
    return LaunchValue("{} bytes", curves.size_of_half(_bandwidths(subject)))


def _most(subject: Subject) -> LaunchValue:
    return LaunchValue("{} bytes", curves.size_of_most(_bandwidths(subject)))


def _dips(subject: Subject) -> LaunchValue:
    return _places(curves.dips(_three(_bandwidths(subject))))


def _switches(subject: Subject) -> LaunchValue:
    return _places(curves.switch_points(_three(_times(subject))))


def _places(sizes: Sequence[int]) -> LaunchValue:
    return LaunchValue(", ".join(map(str, sizes)) or "none")


def _duplex(subject: Subject) -> LaunchValue:
    one_way, both = (max(_bandwidths(subject, b).values(), default=0.0) for b in _WAYS)
    if not both:
        raise DerivedError("nothing was measured")
    return LaunchValue(f"{{}}: {links.duplex_of(one_way, both)}", one_way / both)


_WAYS = ("PingPong", "Exchange")
_QUANTITIES: Sequence[tuple[str, str, Callable[[Subject], LaunchValue]]] = (
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

    def part_of_link(subject: Subject) -> LaunchValue:
        of = {"benchmark": "PingPong", "metric": "bandwidth_mb_s", "ranks": 2, "nodes": 2}
        found = subject.series(of, "bytes")
        if not found:
            raise DerivedError("nothing was measured between nodes")
        peak = link_mb_s[subject.system]
        part = links.efficiency_percent(max(found.values()), peak)
        return LaunchValue(f"{{}} % of {number(peak)} MB/s", part)

    linked = separately([one for one in subjects if link_mb_s.get(one.system)])
    source = "paper 001, section V; paper 003, table 1"
    return rows_of("PingPong between nodes, of what the link carries", source, linked, part_of_link)


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


def _gain_percent(component: str, one: Subject, other: Subject) -> float:
    before, after = (_best(subject, _COMPONENTS[component]) for subject in (one, other))
    if not before or not after:
        raise DerivedError(f"what the {component} can do was not measured of both")
    return scaling.relative_change_percent(before, after)


def changed_component(before: Subject, after: Subject) -> tuple[str, float]:
    """Return the only component in which two subjects differ, and its gain in percent.

    Each component is known by what was measured of it. Raises :class:`DerivedError` unless exactly
    one differs by more than 5 %, and when one was not measured; the network is no component of
    subjects that never left a node.
    """
    gains = {
        name: _gain_percent(name, before, after)
        for name in _COMPONENTS
        if name != "network" or _has_network(before) or _has_network(after)
    }
    changed = {name: gain for name, gain in gains.items() if abs(gain) > _ALIKE_PERCENT}
    if len(changed) != 1:
        told = ", ".join(changed) or "none"
        raise DerivedError(f"not one component alone is changed, but: {told}")
    return next(iter(changed.items()))


def _sensitivity(benchmark: str, component: str, one: Subject, other: Subject) -> float:
    """Return the gain of a benchmark over that of the component in which two subjects differ."""
    of = {"benchmark": f"NPB-{benchmark}", "metric": "total_mop_per_s"}
    rates = [runs_of(subject, of) for subject in (one, other)]
    if not (common := rates[0].keys() & rates[1].keys()):
        raise DerivedError(f"{benchmark} was not measured of both")
    own = scaling.relative_change_percent(*(rate[max(common)] for rate in rates))
    return comparisons.elasticity(own, _gain_percent(component, one, other))


def _sensitivities(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return how NPB follows the one component in which a subject differs from the first."""
    changed: dict[str, dict[str, Sequence[Subject]]] = {}
    rows = []
    for other in subjects[1:]:
        with contextlib.suppress(DerivedError):
            component, _ = changed_component(subjects[0], other)
            changed.setdefault(component, {})[other.name] = (subjects[0], other)
    for name in BENCHMARKS:
        for component, pairs in changed.items():

            def sensitivity_of(
                one: Subject, other: Subject, name: str = name, component: str = component
            ) -> LaunchValue:
                gain = _gain_percent(component, one, other)
                found = _sensitivity(name, component, one, other)
                return LaunchValue(f"{{}} ({component} {gain:+.0f} %)", found)

            quantity = f"NPB-{name}: gain over that of the {component}"
            rows += rows_of(quantity, _SENSITIVITY, pairs, sensitivity_of)

        def most_of(*launch: Subject, name: str = name) -> LaunchValue:
            found = {}
            for k, component in enumerate(changed):
                with contextlib.suppress(DerivedError):
                    pair = launch[2 * k : 2 * k + 2]
                    found[component] = _sensitivity(name, component, *pair)
            if len(found) < 2:
                raise DerivedError("one component alone was changed")
            most = comparisons.most_sensitive_to(found)
            return LaunchValue(f"the {most}, of {', '.join(found)}")

        group = [one for pairs in changed.values() for one in list(pairs.values())[-1]]
        column = {subjects[0].name: group} if group else {}
        rows += rows_of(f"NPB-{name}: most sensitive to", _SENSITIVITY, column, most_of)
    return rows


_SENSITIVITY = "paper 003, sections 7 and 8.2"
