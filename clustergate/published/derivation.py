"""Figures that the papers derive from others, for what was measured here. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.derived import DerivedError, comparisons, curves, links
from clustergate.notation import number
from clustergate.published.evidence import Subject

_PINGPONG = {"benchmark": "PingPong", "ranks": 2}
# The tests of paper 004 of which it prints ratios to a baseline, with their sizes in bytes.
_TRIALS = {
    **dict.fromkeys(("bcast", "reduce", "allreduce", "scan"), (8, 1_000_000)),
    **dict.fromkeys(("scatter", "gather", "allgather", "alltoall"), (8, 10_000)),
    "barrier": (0,),
}


@dataclass(frozen=True)
class DerivedRow:
    """A derived quantity with its source in a paper, and what it is for each subject."""

    quantity: str
    source: str
    values: Mapping[str, str]


def derived_rows(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return what follows from the measurements, leaving out what nothing here allows."""
    rows = []
    for quantity, source, told in _QUANTITIES:
        values = {}
        for subject in subjects:
            try:
                values[subject.name] = told(subject)
            except DerivedError:
                continue
        if values:
            rows.append(DerivedRow(quantity, source, values))
    return [*rows, *_ratios(subjects)]


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


def _ratios(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return the times of collectives relative to the first subject, with the most processes."""
    if len(subjects) < 2:
        return []
    rows = []
    for test, sizes in _TRIALS.items():
        for size in sizes:
            of = {"benchmark": test, "metric": "time_us", "bytes": size}
            series = {subject.name: subject.series(of, "processes") for subject in subjects}
            common = set.intersection(*(set(found) for found in series.values()))
            if common:
                times = {name: found[max(common)] for name, found in series.items()}
                ratios = comparisons.ratios_to(subjects[0].name, times)
                rows.append(
                    DerivedRow(
                        f"{test} of {size} bytes, {max(common)} processes, relative",
                        "paper 004, tables 1 to 9",
                        {name: f"{ratio:.2g}" for name, ratio in ratios.items()},
                    )
                )
    return rows
