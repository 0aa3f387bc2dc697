"""What makes a class the check that its benchmark's descriptor declares under a name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import reframe as rfm
from reframe.core.builtins import fixture, parameter
from reframe.core.meta import make_test

from clustergate.benchmarks.registry import declared, every_check
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from reframe_checks.build import build_with
from reframe_checks.sweeps import BASES

UNDECLARED = Words(
    "check.undeclared",
    "no descriptor of a benchmark declares the check {name}",
    remedy="add Check({name!r}, …) to its `checks`, or correct the name; known: {known:list}",
)


def check(name: str) -> Callable[[type], Any]:
    """Make a class the ReFrame test of this name.

    The descriptor says the rest: its description and tags, and a case for each value of its sweep
    and of its own parameters. Programs on request are built for it. Raises ClustergateError for a
    name that no descriptor declares.
    """

    def made_of(test: type) -> Any:
        if (known := declared(name)) is None:
            _, line = inspect.getsourcelines(test)
            reason = UNDECLARED(name=name, known=[*every_check()])
            raise ClustergateError(reason.at(f"{inspect.getfile(test)}:{line}"))
        benchmark, own = known
        body: dict[str, Any] = {"__doc__": test.__doc__, "descriptor": benchmark}
        if benchmark.build and benchmark.build.on_request:
            body["build"] = fixture(build_with(benchmark.name), scope="environment")
        body |= {key: parameter(values, loggable=True) for key, values in own.parameters.items()}
        sweep = BASES.get(own.sweep)
        last = (sweep,) if sweep and not issubclass(test, sweep) else ()
        return rfm.simple_test(make_test(name, (test, *last), body, module=test.__module__))

    return made_of
