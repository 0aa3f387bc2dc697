"""What ``-S`` sets of the checks that a study runs, as ReFrame sees it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe.utility as rfm_util
from reframe.core.fields import make_convertible
from reframe.core.pipeline import RegressionTest

from clustergate.benchmarks.registry import check_paths
from clustergate.session.loading import of_reframe


def wrong_with(settings: Mapping[str, Any], checks: Sequence[str]) -> Iterator[tuple[str, str]]:
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
        elif name == "launches" and not (str(value).isdecimal() and int(str(value))):
            yield setting, f"launches is a whole number from 1, not {value!r}"
        else:
            try:
                # As ReFrame takes what stands behind -S, on nothing that is kept.
                known[having[0]][name].field.__set__(None, make_convertible(str(value)))
            except (TypeError, ValueError) as error:
                yield setting, str(error)


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
