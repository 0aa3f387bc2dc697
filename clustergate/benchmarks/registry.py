"""Every benchmark that is there: the suite's own folders, and those that a site adds.

A site's package names its :class:`Benchmark` in the entry point group ``clustergate.benchmarks``.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import pkgutil
from collections.abc import Mapping

from clustergate import benchmarks
from clustergate.benchmarks.descriptor import Benchmark, Check
from clustergate.benchmarks.limits import Measurement, limits_of_any
from clustergate.model import Limit

GROUP = "clustergate.benchmarks"


@functools.cache
def every_benchmark() -> Mapping[str, Benchmark]:
    """Return all benchmarks by their names: the suite's own by the alphabet, then added ones.

    A folder of :mod:`clustergate.benchmarks` is one, and its package has it as ``BENCHMARK``.
    """
    own = [
        importlib.import_module(f"{benchmarks.__name__}.{module.name}").BENCHMARK
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if module.ispkg
    ]
    points = sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: point.name)
    return {one.name: one for one in [*own, *(point.load() for point in points)]}


@functools.cache
def every_check() -> Mapping[str, Check]:
    """Return the checks of all benchmarks by their names, in the order of tables."""
    by_place = sorted(every_benchmark().values(), key=lambda one: one.place)
    return {check.name: check for one in by_place for check in one.checks}


@functools.cache
def benchmark_of(check: str) -> Benchmark:
    """Return the benchmark that a check runs; KeyError for a check that is not there."""
    return next(one for one in every_benchmark().values() if every_check()[check] in one.checks)


def limits_of(one: Measurement) -> tuple[Limit, ...]:
    """Return the physical limits of a figure, in its own unit: those of any, of unknown checks."""
    known = one.check in every_check()
    return benchmark_of(one.check).limits(one) if known else limits_of_any(one)
