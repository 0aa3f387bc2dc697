"""What the papers derive from two libraries, or several configurations, beside each other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clustergate.benchmarks.npb.output import BENCHMARKS
from evaluations.derived import DerivedError, comparisons, curves, require_positive
from evaluations.evidence import Subject
from evaluations.rows import DerivedRow, LaunchValue, rows_of

_ALIKE = 0.05
_BANDWIDTHS = ("PingPong", "Sendrecv", "Exchange")
_TIMES = ("Allreduce", "Reduce", "Reduce_scatter", "Allgather", "Bcast")
# What the rates of NPB are compared with (paper 003, section 8.2).
_COMPONENTS: Mapping[str, Mapping[str, object]] = {
    "HPL": {"benchmark": "HPL", "metric": "performance_gflops"},
    "STREAM triad": {"benchmark": "STREAM", "metric": "bandwidth_gb_s", "kernel": "triad"},
    "PingPong": {"benchmark": "PingPong", "metric": "bandwidth_mb_s", "ranks": 2},
}


def contrast_rows(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return where curves cross that of the first subject, and what correlates over all."""
    if not subjects:
        return []
    return [*_crossings(subjects), *_time_ratios(subjects), *_correlations(subjects)]


def _curves(
    one: Subject, other: Subject, of: Mapping[str, Any]
) -> tuple[curves.Curve, curves.Curve]:
    """Return two curves over message sizes, of the most processes that both measured."""
    common = one.shapes(of, "bytes") & other.shapes(of, "bytes")
    if not common:
        return {}, {}
    shape = max(common)
    found = (one.series(of, "bytes", shape), other.series(of, "bytes", shape))
    return (
        {size: value for size, value in found[0].items() if size > 0},
        {size: value for size, value in found[1].items() if size > 0},
    )


def _beside_first(
    subjects: Sequence[Subject],
    of: Mapping[str, Any],
    quantity: str,
    of_pair: Callable[[curves.Curve, curves.Curve], LaunchValue],
) -> list[DerivedRow]:
    """Return what ``of_pair`` says of each other curve and that of the first subject."""

    def of_one(one: Subject, other: Subject) -> LaunchValue:
        first, mine = _curves(one, other, of)
        if not first.keys() & mine.keys():
            raise DerivedError("they have no size in common")
        return of_pair(mine, first)

    pairs = {other.name: (subjects[0], other) for other in subjects[1:]}
    return rows_of(quantity, "paper 001, section V", pairs, of_one)


def _crossings(subjects: Sequence[Subject]) -> list[DerivedRow]:
    rows = []
    named = [(name, "bandwidth_mb_s", False) for name in _BANDWIDTHS]
    named += [(name, "t_avg_us", True) for name in _TIMES]
    for benchmark, metric, lower in named:

        def lead_of(mine: curves.Curve, first: curves.Curve, lower: bool = lower) -> LaunchValue:
            places = {
                "alike": curves.from_where_alike(mine, first, _ALIKE),
                "ahead": curves.from_where_ahead(mine, first, lower_is_better=lower),
                "behind": curves.from_where_ahead(first, mine, lower_is_better=lower),
            }
            return next(
                LaunchValue(f"{words} from {{}} bytes", size, words)
                for words, size in places.items()
                if size is not None
            )

        of = {"benchmark": benchmark, "metric": metric}
        quantity = f"{benchmark} beside {subjects[0].name}, up to the largest size"
        rows += _beside_first(subjects, of, quantity, lead_of)
    return rows


def _time_ratios(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return the times of collectives of the largest message relative to the first subject."""

    def ratio_at_largest(mine: curves.Curve, first: curves.Curve) -> LaunchValue:
        size = max(first.keys() & mine.keys())
        require_positive(**{f"the first time of {size} bytes": first[size]})
        return LaunchValue(f"{{}} with {size} bytes", mine[size] / first[size])

    rows = []
    for benchmark in _TIMES:
        of = {"benchmark": benchmark, "metric": "t_avg_us"}
        quantity = f"{benchmark} time relative to {subjects[0].name}"
        rows += _beside_first(subjects, of, quantity, ratio_at_largest)
    return rows


def _correlations(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return how the rates of NPB correlate with what tells of a component, over the subjects."""
    rows = []
    for name in BENCHMARKS:
        for component, of_component in _COMPONENTS.items():

            def correlation_of(
                *launch: Subject, name: str = name, asked: Mapping[str, object] = of_component
            ) -> LaunchValue:
                of = {"benchmark": f"NPB-{name}", "metric": "total_mop_per_s"}
                rates = [runs_of(one, of) for one in launch]
                common = set.intersection(*map(set, rates))
                best = [max((f.value for f in one.values(asked)), default=0.0) for one in launch]
                if not (common and all(best)):
                    raise DerivedError("not measured of all")
                mine = [one[max(common)] for one in rates]
                return LaunchValue("{}", comparisons.correlation(mine, best))

            quantity = f"NPB-{name}: correlation with {component}"
            over = f"{quantity} over {len(subjects)} configurations"
            groups = {subjects[0].name: subjects}
            rows += rows_of(over, "paper 003, section 8.2", groups, correlation_of)
    return rows


def runs_of(subject: Subject, conditions: Mapping[str, Any]) -> dict[tuple[int, str], float]:
    """Return the rates of a benchmark of NPB by processes and class."""
    found: dict[tuple[int, str], float] = {}
    for figure in subject.values(conditions):
        run = (figure.shape.processes, str(figure.conditions.get("problem_class", "")))
        found[run] = max(figure.value, found.get(run, 0.0))
    return found
