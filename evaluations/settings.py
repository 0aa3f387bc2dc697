"""What ``-S`` sets of the checks that a study runs, as ReFrame sees it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe.utility as rfm_util
from reframe.core.fields import make_convertible
from reframe.core.pipeline import RegressionTest

from clustergate.benchmarks.registry import benchmark_of, check_paths, every_check
from clustergate.core.notation import nearest
from clustergate.run.loading import of_reframe
from evaluations.facts import Paper

# Of each a step of the plan is kept.
_MOST_LAUNCHES = 10_000


def setting_complaints(
    settings: Mapping[str, Any], checks: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield each setting that no check of a study takes, or not with that value, and why."""
    known = {check: _settings_of(_classes()[check]) for check in checks}
    for setting, value in settings.items():
        check, _, name = setting.rpartition(".")
        asked = [check] if check else checks
        having = [of for of in asked if name in known[of]]
        if not having:
            takes = sorted(set().union(*(known[of] for of in ([check] if check else checks))))
            yield (
                setting,
                f"no check of the study has a setting {name!r}; known are {', '.join(takes)}",
            )
        elif isinstance(value, list | dict) or value is None:
            yield setting, f"{name} is one word or number, with commas between several"
        elif name == "launches" and not (
            str(value).isdecimal() and 1 <= int(str(value)) <= _MOST_LAUNCHES
        ):
            yield setting, f"launches is a whole number from 1 to {_MOST_LAUNCHES}, not {value!r}"
        else:
            try:
                # As ReFrame takes what stands behind -S, on nothing that is kept.
                known[having[0]][name].field.__set__(None, make_convertible(str(value)))
            except (TypeError, ValueError) as error:
                yield setting, str(error)
                continue
            offered = _offered(known[having[0]][name])
            if offered and (
                strange := [one for one in str(value).split(",") if one not in offered]
            ):
                yield setting, f"{name} has no {strange[0]!r}; known are {', '.join(offered)}"


def misspelt_benchmarks(paper: Paper) -> Iterator[str]:
    """Yield a sentence for each benchmark of a study that is probably misspelt."""
    asked = [
        (predicate.id, figure.benchmark)
        for predicate in paper.predicates.values()
        for leaf in (predicate.here.leaves if predicate.here else ())
        for figure in leaf.figures
    ]
    asked += [
        (f"figure {figure.number}", name)
        for figure in paper.figures
        for draw in [figure.draw or {}]
        for name in draw.get("benchmarks") or filter(None, [draw.get("benchmark")])
    ]
    asked += [
        (value.id, value.suite.figure.partition(".")[0])
        for value in paper.values.values()
        if value.suite
    ]
    for where, benchmark in dict.fromkeys(asked):
        if meant := _not_named(benchmark, list(paper.checks)):
            yield f"{where}: no check of the study names {benchmark!r}; {meant!r} is near to it"


def _not_named(benchmark: str, checks: Sequence[str]) -> str:
    """Return what a benchmark that no check of a study names was probably meant to be.

    Nothing where one names it, or where nothing is near to it: not all that a program prints is
    named beforehand.
    """
    known: dict[str, None] = {}
    for check in checks:
        of = benchmark_of(check)
        known |= dict.fromkeys([of.title, *of.metrics])
        known |= dict.fromkeys(one.benchmark for one in of.headlines if one.check == check)
        judged = [one for names in every_check()[check].judged.values() for one in names]
        known |= dict.fromkeys(one.partition(".")[0] for one in judged)
        for setting in _settings_of(_classes()[check]).values():
            known |= dict.fromkeys(map(str, _offered(setting)))
    return "" if benchmark in known else nearest(benchmark, known, 0.8)


def _offered(setting: Any) -> list[str]:
    """Return what a setting chooses from: of a list, all that it has where nothing is set."""
    default = setting.default_value if setting.is_defined() else None
    return default if isinstance(default, list) else []


def _settings_of(check: type[RegressionTest]) -> dict[str, Any]:
    """Return the suite's own settings of a check; of ReFrame's the time limit, which alone is left.

    The mode is the study's own.
    """
    others = of_reframe() | {"mode"}
    return {name: one for name, one in check.var_space.items() if name not in others}


@functools.cache
def _classes() -> Mapping[str, type[RegressionTest]]:
    """Return the classes of all checks by their names; this loads their files."""
    paths = [Path(path) for path in check_paths()]
    files = [one for path in paths for one in (sorted(path.glob("*.py")) or [path])]
    modules = [rfm_util.import_module_from_file(str(file)) for file in files]
    return {
        name: one
        for module in modules
        for name, one in vars(module).items()
        if isinstance(one, type) and issubclass(one, RegressionTest)
    }
