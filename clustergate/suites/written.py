"""References of a suite in ReFrame's own forms: a file for ``$ref``, or tuples to type. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from clustergate.core.model import Reference
from clustergate.judge.history.series import CaseKey

References = Mapping[tuple[CaseKey, str], Reference]
_RANKS = re.compile(r"\d+-ranks-?")
_PAIR = re.compile(r" (?=[\w.$]+=)")
_HEADER = """\
# By clustergate baseline --reframe, in the form that ReFrame 4.10 reads: write in each test
#   reference = {{"$ref": "{name}"}}
# Each is the best of its sessions, and the bound what unchanged sessions are beyond it, or 5 %.
"""


def parameters_of(case: CaseKey) -> dict[str, Any]:
    """Return the parameters of a case by their names, numbers as such, as ReFrame compares them."""
    text = _RANKS.sub("", case.layout, count=1).partition(", on ")[0]
    pairs = (one.partition("=") for one in _PAIR.split(text) if "=" in one)
    return {name: _typed(value) for name, _, value in pairs}


def _typed(text: str) -> int | float | bool | str:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def is_indexed(case: CaseKey) -> bool:
    """Tell whether ReFrame can find a case's references: by attributes of its test alone.

    Parameters of fixtures and pinned nodes are none.
    """
    return " on " not in f" {case.layout}" and all(map(str.isidentifier, parameters_of(case)))


def as_yaml(references: References, name: str) -> str:
    """Return references as the file that ``$ref`` names, which is to be called ``name``."""
    content: dict[str, Any] = {}
    for (case, figure), one in references.items():
        index = ["$partition", "$environ", *parameters_of(case)]
        level = content.setdefault(case.check, {"$index": index})
        for key in (case.partition, case.stack, *parameters_of(case).values()):
            level = level.setdefault(key, {})
        level[_variable(case, figure)] = _tuple(one)
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=100)
    return _HEADER.format(name=name) + text


def as_tuples(references: References) -> Iterator[str]:
    """Yield lines with a tuple for each variable, below where it holds."""
    last: CaseKey | None = None
    for (case, figure), one in sorted(references.items(), key=lambda pair: pair[0]):
        if case != last:
            of = [f"{name}={value}" for name, value in parameters_of(case).items()]
            yield f"# {' '.join([case.check, *of])}, {case.partition}, {case.stack}"
            last = case
        yield f'"{_variable(case, figure)}": {tuple(_tuple(one))!r},'


def _variable(case: CaseKey, figure: str) -> str:
    return figure.removeprefix(f"{case.check}.")


def _tuple(one: Reference) -> list[float | str | None]:
    return [one.value, one.lower, one.upper, one.unit]


def unindexed(references: Iterable[tuple[CaseKey, str]]) -> list[str]:
    """Return the tests of which some case cannot stand in a file for ``$ref``."""
    return sorted({case.check for case, _ in references if not is_indexed(case)})
