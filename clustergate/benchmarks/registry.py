"""Every benchmark that is there: the suite's own folders, and those that a site adds.

A site's package names its :class:`Benchmark` in the entry point group ``clustergate.benchmarks``.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from clustergate import benchmarks
from clustergate.benchmarks.build import Build
from clustergate.benchmarks.descriptor import Benchmark, Check, Format, Headline, Trial
from clustergate.core.model import METRICS, ClustergateError, Metric, OutputError, Row
from clustergate.core.paths import entry_points, suite_folder
from clustergate.core.reasons import Reason, Words

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clustergate.benchmarks"
# Of what modes derive, each by its name.
METRICS_GROUP = "clustergate.metrics"
MODES_GROUP = "clustergate.modes"


Named = TypeVar("Named")


def load_added(group: str) -> Iterator[Any]:
    """Yield what packages beside this one add by entry points of a group, by their names.

    One that does not load adds nothing, and :func:`not_loaded` says why: all else goes on.
    """
    yield from _added(group)[0]


def not_loaded() -> dict[str, Reason]:
    """Return why packages beside this one do not load, by their names."""
    whys: dict[str, Reason] = {}
    for group in (GROUP, METRICS_GROUP, MODES_GROUP):
        for package, why in _added(group)[1].items():
            whys.setdefault(package, why)
    return whys


@functools.cache
def _added(group: str) -> tuple[tuple[Any, ...], Mapping[str, Reason]]:
    loaded: list[Any] = []
    failed: dict[str, Reason] = {}
    for point in entry_points(group):
        try:
            loaded.append(load_point(point))
        except ClustergateError as error:
            failed.setdefault(point.dist.name if point.dist else point.value, error.reason)
    return tuple(loaded), failed


NOT_LOADED = Words(
    "added.not-loaded",
    "the package {package} adds {value} ({group}), which does not load ({error}: {why})",
    remedy="fix, update or uninstall {package}",
)


def load_point(point: EntryPoint) -> Any:
    """Return what an entry point names; raises :class:`ClustergateError` if it does not load."""
    try:
        return point.load()
    # Whatever a package of somebody else's raises while it is imported: it ends no run as passed.
    except (Exception, SystemExit) as error:
        raise ClustergateError(
            NOT_LOADED(
                package=point.dist.name if point.dist else point.value,
                value=point.value,
                group=point.group,
                error=type(error).__name__,
                why=str(error),
            )
        ) from None


NAME_TWICE = Words(
    "added.name-twice",
    "there are two of the {kind} {name}",
    remedy="rename that of the added package",
)


def require_unique_names(kind: str, named: Iterable[tuple[str, Named]]) -> dict[str, Named]:
    """Return what is found by its name; raises ClustergateError for two that are called alike."""
    once: dict[str, Named] = {}
    for name, one in named:
        if once.setdefault(name, one) != one:
            raise ClustergateError(NAME_TWICE(kind=kind, name=name))
    return once


@functools.cache
def every_benchmark() -> Mapping[str, Benchmark]:
    """Return all benchmarks by their names, in the order of tables.

    A folder of :mod:`clustergate.benchmarks` is one, and its package has it as ``BENCHMARK``.
    """
    own = [
        importlib.import_module(f"{benchmarks.__name__}.{module.name}").BENCHMARK
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if module.ispkg
    ]
    ordered = sorted([*own, *load_added(GROUP)], key=lambda one: one.place)
    return require_unique_names("benchmark", ((one.name, one) for one in ordered))


def check_paths() -> list[str]:
    """Return the folder and the files in which ReFrame finds the checks.

    Those of :func:`lost_tests` are left out.
    """
    own = (one for one in every_benchmark().values() if one.tests)
    files = [one.tests for one in own if not _lost(one)]
    return [str(suite_folder("reframe_checks")), *dict.fromkeys(files)]


def lost_tests() -> dict[str, Reason]:
    """Return why checks of added benchmarks have no tests, by the names of the checks.

    Their file is not there, or has no test that is called so.
    """
    own = [one for one in every_benchmark().values() if one.tests]
    return {check.name: why for one in own if (why := _lost(one)) for check in one.checks}


NO_TESTS = Words(
    "added.no-tests",
    "the benchmark {benchmark} has its ReFrame tests in {path}, which is not there",
    remedy="correct `tests` of its descriptor, or install its package again with that file",
)
NO_CHECK = Words(
    "added.no-check",
    "{path} defines no {name}; it has {known:list}",
    remedy=(
        "call the class as `checks` or `ab` of the descriptor does, and install the package again"
    ),
)


def _lost(benchmark: Benchmark) -> Reason | None:
    if not Path(benchmark.tests).is_file():
        return NO_TESTS(benchmark=benchmark.name, path=benchmark.tests)
    # One that does not parse, ReFrame refuses.
    text = Path(benchmark.tests).read_text(encoding="utf-8", errors="replace")
    for name in (one.name for one in benchmark.tests_declared):
        if not re.search(rf"\b{re.escape(name)}\b", text):
            known = re.findall(r"^class (\w+)", text, re.MULTILINE) or ["no class"]
            facts = {"path": benchmark.tests, "name": name, "known": known}
            return NO_CHECK(**facts)
    return None


@functools.cache
def every_check() -> Mapping[str, Check]:
    """Return the checks of all benchmarks by their names, in the order of tables."""
    checks = (check for one in every_benchmark().values() for check in one.checks)
    return require_unique_names("check", ((check.name, check) for check in checks))


@functools.cache
def every_metric() -> Mapping[str, Metric]:
    """Return the metrics of all values in rows of any format, by their names, and of modes."""
    own = (one.metrics for one in every_benchmark().values())
    every = itertools.chain([METRICS], own, load_added(METRICS_GROUP))
    return require_unique_names("metric", itertools.chain.from_iterable(of.items() for of in every))


def every_headline() -> Iterator[Headline]:
    """Yield the headlines of all benchmarks, in the order of tables."""
    for one in every_benchmark().values():
        yield from one.headlines


def title_of(check: str) -> str:
    """Return what people call a check: its benchmark, where it is its first or its A against B."""
    benchmark = descriptor_of(check)
    names = [one.name for one in (*benchmark.checks[:1], benchmark.ab) if one]
    return benchmark.title if check in names else check


@functools.cache
def benchmark_of(check: str) -> Benchmark:
    """Return the benchmark that a check runs; KeyError for a check that is not there."""
    return next(one for one in every_benchmark().values() if every_check()[check] in one.checks)


def declared(test: str) -> tuple[Benchmark, Check] | None:
    """Return the benchmark that declares a ReFrame test, and what it says of it; None for none."""
    if (benchmark := _by_check().get(test)) is None:
        return None
    return benchmark, next(one for one in benchmark.tests_declared if one.name == test)


def descriptor_of(check: str) -> Benchmark:
    """Return the benchmark of a check, `ab`'s too, or of a test that was described.

    It is one of which nothing is known for any other.
    """
    return _by_check().get(check) or _DESCRIBED.get(check, _UNKNOWN)


def describe(benchmarks: Iterable[Benchmark]) -> None:
    """Let tests that no package declares be known by what their suite's own files tell."""
    _DESCRIBED.update({test.name: one for one in benchmarks for test in one.checks})


_DESCRIBED: dict[str, Benchmark] = {}


@functools.cache
def _by_check() -> Mapping[str, Benchmark]:
    benchmarks = every_benchmark().values()
    return {test.name: one for one in benchmarks for test in one.tests_declared}


def builds() -> Mapping[str, Build]:
    """Return how the programs of benchmarks come to a stack, by the benchmarks' names.

    Raises :class:`ClustergateError` when a site's own brings a program that is another's.
    """
    by_name = {name: one.build for name, one in every_benchmark().items() if one.build}
    programs = ((program, name) for name, one in by_name.items() for program in one.programs)
    require_unique_names("program", programs)
    return by_name


def builds_on_request() -> Mapping[str, Build]:
    """Return those of :func:`builds` that are put on disk where somebody asks for them."""
    return {name: build for name, build in builds().items() if build.on_request}


NO_PARSER = Words("output.no-parser", "no installed benchmark printed this")


def _unreadable(lines: Iterable[str], *, source: str, expect: Any = None) -> Iterator[Row]:
    raise OutputError(NO_PARSER(), source=source)


NO_FORMAT = Format(re.compile(r"(?!)"), _unreadable)
"""Of a program whose text nobody reads."""
_UNKNOWN = Benchmark("unknown", "an unknown benchmark", NO_FORMAT)


def trial_launch(ranks: int) -> Trial:
    """Return the launch by which a build is tried: that of the first benchmark that has one."""
    return next(one.trial(ranks) for one in every_benchmark().values() if one.trial)
