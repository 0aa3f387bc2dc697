"""What the papers derive from how figures change with the number of processes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluations.derived import DerivedError, scaling
from evaluations.evidence import Subject
from evaluations.rows import DerivedRow, LaunchValue, rows_of, separately

# Collectives of paper 004 with their sizes in bytes, by the model that makes them constant.
_MODELS: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "log2 p": {"bcast": (8, 1_000_000)},
    "p-1": {
        "scatter": (10_000,),
        "gather": (10_000,),
        "allgather": (8, 10_000),
        "alltoall": (8, 10_000),
    },
}
# How paper 002 relates its applications to one process.
_EFFICIENCIES = {
    "HPCCG": ("performance_mflops", "weak efficiency"),
    "LAMMPS-lj-weak": ("time_s", "weak efficiency of times"),
    "LAMMPS-rhodo-weak": ("time_s", "weak efficiency of times"),
    "LAMMPS-lj-strong": ("time_s", "strong efficiency"),
    "LAMMPS-rhodo-strong": ("time_s", "strong efficiency"),
}


def growth_rows(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return what follows from figures of several numbers of processes, and of several partners."""
    return [
        *_hpl_efficiency(subjects),
        *_efficiencies(subjects),
        *_penalty(subjects),
        *_constancies(subjects),
        *_partners(subjects),
    ]


def _several(values: Mapping[Any, float]) -> Mapping[Any, float]:
    if len(values) < 2:
        raise DerivedError("one value does not change")
    return values


def _hpl_efficiency(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return the change of HPL's efficiency: the peak of a process is the same, and cancels."""

    def change_of(subject: Subject) -> LaunchValue:
        of = {"benchmark": "HPL_Tflops", "metric": "HPL_Tflops"}
        rates = _several(scaling.scaled(subject.series(of, "ranks"), "p"))
        fewest, most = min(rates), max(rates)
        change = scaling.relative_change_percent(rates[fewest], rates[most])
        return LaunchValue(f"{{}} % from {fewest} to {most} processes", change)

    quantity = "efficiency of HPL in HPCC, relative change"
    return rows_of(quantity, "paper 000, section 4.1.1", separately(subjects), change_of)


def efficiencies_of(subject: Subject, benchmark: str) -> Mapping[int, float]:
    """Return the efficiency of an application of paper 002 by processes, in percent.

    Raises :class:`DerivedError` unless it ran on one process and on others.
    """
    metric, model = _EFFICIENCIES[benchmark]
    found = subject.series({"benchmark": benchmark, "metric": metric}, "processes")
    return _several(scaling.scaled(found, model))


def hpccg_efficiency_percent(subject: Subject) -> float:
    """Return the weak efficiency of HPCCG on the most processes."""
    parts = efficiencies_of(subject, "HPCCG")
    return parts[max(parts)]


def smallest_efficiency_percent(subject: Subject) -> float:
    """Return the smallest efficiency of all applications that ran on several processes."""
    found: list[float] = []
    for benchmark in _EFFICIENCIES:
        try:
            found += efficiencies_of(subject, benchmark).values()
        except DerivedError:
            continue
    if not found:
        raise DerivedError("no application was measured on one and on more processes")
    return min(found)


def _efficiencies(subjects: Sequence[Subject]) -> list[DerivedRow]:
    rows = []
    for benchmark, (_, model) in _EFFICIENCIES.items():
        for which, chosen in (("most processes", max), ("least", _least)):

            def efficiency_of(
                subject: Subject, name: str = benchmark, chosen: Callable[..., int] = chosen
            ) -> LaunchValue:
                parts = efficiencies_of(subject, name)
                at = chosen(parts)
                return LaunchValue(f"{{}} % with {at} processes", parts[at])

            quantity = f"{benchmark}: {model.removesuffix(' of times')}, {which}"
            rows += rows_of(quantity, "paper 002, section 7", separately(subjects), efficiency_of)
    return rows


def _least(parts: Mapping[int, float]) -> int:
    return min(parts, key=lambda p: parts[p])


@dataclass(frozen=True)
class Penalty:
    """What Allreduce of ``size`` bytes takes longer on ``odd`` than on ``even`` processes."""

    us: float
    odd: int
    even: int
    size: int


def penalty_of(subject: Subject) -> Penalty:
    """Return what Allreduce costs more with fewer processes that are no power of two.

    Of the largest message, and of the most of such processes beside the next power of two. Raises
    :class:`DerivedError` where no two such numbers were measured.
    """
    of = {"benchmark": "Allreduce", "metric": "t_avg_us"}
    size = max((one.conditions.get("bytes", 0) for one in subject.values(of)), default=0)
    times = subject.series({**of, "bytes": size}, "processes")
    odd = [p for p in times if p & (p - 1) and 1 << p.bit_length() in times]
    if not odd:
        raise DerivedError("no number of processes between two powers of two was measured")
    even = 1 << max(odd).bit_length()
    return Penalty(scaling.penalty_of(max(odd), even, times), max(odd), even, size)


def _penalty(subjects: Sequence[Subject]) -> list[DerivedRow]:
    def penalty_in_words(subject: Subject) -> LaunchValue:
        found = penalty_of(subject)
        of = f"{found.odd} beside {found.even} processes, {found.size} bytes"
        return LaunchValue(f"{{}} us: {of}", found.us)

    quantity = "Allreduce, penalty of no power of two"
    return rows_of(quantity, "paper 002, section 6.3", separately(subjects), penalty_in_words)


def _constancies(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return the largest over the smallest of times that a model makes constant."""
    rows = []
    tests = [(model, *test) for model, tests in _MODELS.items() for test in tests.items()]
    for model, test, size in ((model, test, n) for model, test, sizes in tests for n in sizes):
        asked = {"benchmark": test, "metric": "time_us", "bytes": size}

        def spread(subject: Subject, of: Any = asked, model: str = model) -> LaunchValue:
            times = _several(scaling.scaled(subject.series(of, "processes"), model))
            words = f"{{}} from {min(times)} to {max(times)} processes"
            return LaunchValue(words, scaling.spread([*times.values()]))

        def exponent(subject: Subject, of: Any = asked) -> LaunchValue:
            times = subject.series(of, "processes")
            words = f"{{}} from {min(times, default=0)} to {max(times, default=0)} processes"
            return LaunchValue(words, scaling.growth_exponent(times))

        for quantity, value in (
            (f"T/({model}): largest over smallest", spread),
            ("T over p: growth exponent", exponent),
        ):
            called = f"{test} of {size} bytes, {quantity}"
            rows += rows_of(called, "paper 004, tests 4 to 8", separately(subjects), value)
    return rows


def _partners(subjects: Sequence[Subject]) -> list[DerivedRow]:
    """Return how the ping-pong of rank 0 varies over its partners."""
    rows = []
    for size in (8, 1_000_000):
        asked = {"benchmark": "ping_pong", "metric": "time_us", "bytes": size}

        def spread(subject: Subject, of: Any = asked) -> LaunchValue:
            times = _several(subject.series(of, "peer"))
            return LaunchValue(
                f"{{}} over {len(times)} partners", scaling.spread([*times.values()])
            )

        quantity = f"ping-pong of {size} bytes with each rank: largest over smallest"
        rows += rows_of(quantity, "paper 004, test 1", separately(subjects), spread)
    return rows
