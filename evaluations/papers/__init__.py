"""The five papers' conclusions, each a function beside the facts of ``references/published``.

A module has a function for each conclusion that measurements can decide, named by its id, and
``printed``, which says what the paper's own numbers say of some of them.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from evaluations.criteria import Criterion
from evaluations.printed import Printed

_CONCLUSION = re.compile(r"p\d{3}")


def _module(paper: str) -> ModuleType:
    return importlib.import_module(f"evaluations.papers.paper_{paper}")


def criteria_of(paper: str) -> dict[str, Criterion]:
    """Return what decides the conclusions of a paper, by their ids."""
    functions = vars(_module(paper)).items()
    return {name: function() for name, function in functions if _CONCLUSION.fullmatch(name)}


def printed_of(paper: str, values: Mapping[str, float]) -> dict[str, bool]:
    """Return which conclusions the numbers of a paper bear out, of those that they say any of."""
    says: Callable[[Printed], dict[str, bool]] = _module(paper).printed
    return says(Printed(values))


def source_of(paper: str) -> Path:
    """Return the file of a paper's conclusions."""
    return Path(inspect.getfile(_module(paper)))
