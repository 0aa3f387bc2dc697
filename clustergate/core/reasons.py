"""Reasons as data: a stable code with facts, and the one place where they become a sentence.

The words of a reason stand beside the code that says it, as :class:`Words`. A code is never given
another meaning: whoever greps for it finds what it was.
"""

from __future__ import annotations

import contextlib
import importlib.util
import pkgutil
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any, Generic, ParamSpec

from clustergate.core.notation import listed, number

Fact = str | int | float | bool | Sequence[str | int] | None
Facts = dict[str, Any]
"""Facts that several reasons have, by their names: they are given with ``**``."""
# Facts of every reason that is said of some launches of a case, of some figures of a run, of a
# contender, or of a place.
_ORDERS, _MADE, _CONTENDER, _AT = "in_launches", "launches_made", "contender", "at"
_FIGURES, _OF_ALL, _SUCH_AS = "in_figures", "figures_judged", "such_as"
P = ParamSpec("P")
_PLACES = (_ORDERS, _MADE, _CONTENDER, _AT, _FIGURES, _OF_ALL, _SUCH_AS)
# That it keeps the sentence with which another version stored it.
_AS_STORED = "as_stored"


@dataclass(frozen=True)
class Reason:
    """Why something is as it is: ``str()`` makes the sentence, which knows of no call.

    ``code`` is stable and has its :class:`Words`; it is empty for what has words alone, which the
    fact ``sentence`` holds: those of a run that was stored before there were codes.
    """

    code: str
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.code, str(self)))

    def __str__(self) -> str:
        return "; ".join(filter(None, [self.without_remedy, self.remedy]))

    @property
    def without_remedy(self) -> str:
        """What it says, and its cause; all of a sentence that has its remedy in it."""
        words = self._words
        if words is None or words.says == _SENTENCE:
            return f"{self._where()}{self.facts.get('sentence', self.code)}"
        return self._where() + self._written(words.statement)

    @property
    def remedy(self) -> str:
        """What to do about it, empty where nothing is, or where the sentence has it in it."""
        words = self._words
        return "" if words is None or words.says == _SENTENCE else self._written(words.remedy)

    @property
    def _words(self) -> Words[...] | None:
        return None if not self.code or _AS_STORED in self.facts else words_of(self.code)

    def _written(self, template: str) -> str:
        return _FORMATTER.vformat(template, (), self.facts)

    def of_launches(self, orders: Sequence[int], made: int) -> Reason:
        """Return it said of some of the launches that a case made, by their numbers from 0."""
        return Reason(self.code, {**self.facts, _ORDERS: list(orders), _MADE: made})

    def of_figures(self, count: int, judged: int, such_as: str) -> Reason:
        """Return it said of so many of a run's figures, with an example or where they are."""
        said: dict[str, Fact] = {_FIGURES: count, _OF_ALL: judged, _SUCH_AS: such_as}
        return Reason(self.code, {**self.facts, **said})

    def of_contender(self, name: str) -> Reason:
        """Return it said of one of the contenders that were launched in turn."""
        return Reason(self.code, {**self.facts, _CONTENDER: name})

    def at(self, where: str) -> Reason:
        """Return it said of a place, such as ``file:line``, and within it of its own place."""
        within = f": {self.facts[_AT]}" if _AT in self.facts else ""
        return Reason(self.code, {**self.facts, _AT: where + within})

    def within(self, folder: str) -> Reason:
        """Return it with the folder of its place before that."""
        return Reason(self.code, {**self.facts, _AT: f"{folder}/{self.facts[_AT]}"})

    def outside(self, folder: re.Pattern[str]) -> Reason:
        """Return it without the folder that its place begins with."""
        if not isinstance(at := self.facts.get(_AT), str):
            return self
        return Reason(self.code, {**self.facts, _AT: folder.sub("", at, count=1)})

    def _where(self) -> str:
        orders = self.facts.get(_ORDERS)
        launches = f"{{{_ORDERS}:launches}} of {{{_MADE}}}: " if orders else ""
        if isinstance(orders, list) and 1 < len(orders) == self.facts.get(_MADE):
            launches = f"in all {{{_MADE}}} launches: "
        figures = f"{{{_FIGURES}}} of {{{_OF_ALL}}} figures, {{{_SUCH_AS}}}: "
        figures = figures if _FIGURES in self.facts else ""
        contender = f"{{{_CONTENDER}}}: " if _CONTENDER in self.facts else ""
        place = f"{{{_AT}}}: " if _AT in self.facts else ""
        return self._written(figures + launches + contender + place)


@dataclass(frozen=True)
class Words(Generic[P]):
    """What a reason says, its cause and its remedy: called with the facts, it makes the reason.

    In braces stand facts, written as :data:`_SPECS` and :class:`_Formatter` say; ``make lint``
    checks that each call gives them, by ``tools/typed_reasons.py``. Raises ValueError where the
    code has other words already.
    """

    code: str
    says: str
    cause: str = ""
    remedy: str = ""

    def __post_init__(self) -> None:
        if _REGISTRY.setdefault(self.code, self) != self:
            raise ValueError(f"{self.code} has other words already")

    def __call__(self, *_: P.args, **facts: P.kwargs) -> Reason:
        return Reason(self.code, {name: _fact(given) for name, given in facts.items()})

    @property
    def statement(self) -> str:
        """What it says, and its cause."""
        return self.says + (f": {self.cause}" if self.cause else "")


_REGISTRY: dict[str, Words[...]] = {}
# Of a reason that has its whole sentence as its only fact.
_SENTENCE = "{sentence}"


def words_of(code: str) -> Words[...] | None:
    """Return the words of a code, None for one that no module of the suite says."""
    return _REGISTRY.get(code) or registry().get(code)


@lru_cache(maxsize=1)
def registry() -> Mapping[str, Words[...]]:
    """Import every module of the suite, and return the words of all, by their codes."""
    # The evaluations are not installed.
    packages = ("clustergate", "reframe_checks", "evaluations")
    for package in filter(importlib.util.find_spec, packages):
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    return _REGISTRY


def _fact(given: object) -> Fact:
    if isinstance(given, OSError):
        return given.strerror or str(given)
    if isinstance(given, LookupError | TypeError | AttributeError):
        return f"{type(given).__name__}: {given}"
    if given is None or isinstance(given, str | int | float | Sequence):
        return given
    return str(given)


def in_words(sentence: str) -> Reason:
    """Return a reason of which nothing but its sentence is known."""
    return Reason("", {"sentence": sentence})


def sentence_of(reasons: Iterable[Reason]) -> str:
    return "; ".join(map(str, reasons))


def reason_as_json(reason: Reason) -> dict[str, Any]:
    """Return a reason for JSON: its code, its facts, its sentence."""
    return {"code": reason.code, "facts": dict(reason.facts), "sentence": str(reason)}


def reason_from_json(content: str | Mapping[str, Any]) -> Reason:
    """Return what :func:`reason_as_json` made, or a sentence of before there were codes.

    One whose code this version does not know, or writes of other facts, keeps its sentence. Raises
    KeyError and TypeError for what is neither.
    """
    if isinstance(content, str):
        return in_words(content)
    stored = Reason(content["code"], dict(content["facts"]))
    with contextlib.suppress(KeyError, TypeError, ValueError):
        if (not stored.code or words_of(stored.code)) and str(stored):
            return stored
    # Its place is in the sentence.
    facts = {name: fact for name, fact in stored.facts.items() if name not in _PLACES}
    known = {_AS_STORED: True} if words_of(stored.code) else {}
    return Reason(stored.code, {**facts, **known, "sentence": content["sentence"]})


# --- how facts are written ----------------------------------------------------------------------


def numbers(singular: str, plural: str, values: Iterable[int]) -> str:
    """Write ``ranks 0-3, 7``."""
    runs: list[list[int]] = []
    for each in sorted(set(values)):
        if runs and each == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], each]
        else:
            runs.append([each])
    text = ", ".join("-".join(map(str, run)) for run in runs)
    return f"{singular if len(runs) == 1 and len(runs[0]) == 1 else plural} {text}"


def _compared(ratio: float | None) -> str:
    if ratio is None:
        return "against"
    percent = 100 * (ratio - 1)
    if abs(percent) < 0.05:
        return "equal to"
    return f"{abs(percent):.1f} % {'above' if percent > 0 else 'below'}"


def _cost(ratio: float) -> str:
    return f"{100 * (max(ratio, 1 / ratio) - 1):.1f} % {'slower' if ratio > 1 else 'faster'}"


_SPECS: Mapping[str, Callable[[Any], str]] = {
    "number": number,
    "percent": lambda fraction: f"{100 * fraction:.1f} %",
    "whole_percent": lambda fraction: f"{100 * fraction:.0f} %",
    "compared": _compared,
    "cost": _cost,
    "change": lambda ratio: f"{100 * (ratio - 1):.1f} %",
    "ranks": lambda ids: numbers("rank", "ranks", ids),
    "launches": lambda ids: numbers("launch", "launches", ids),
    "cores": lambda ids: f"{'core' if len(ids) == 1 else 'cores'} {', '.join(map(str, ids))}",
    "of": lambda count: f" of {count}" if count else "",
    "names": listed,
    "list": ", ".join,
    "and": " and ".join,
}


class _Formatter(string.Formatter):
    """Writes ``{n:launch|launches}`` as a count, ``{n:~was|were}`` as a word, and what is above."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec in _SPECS:
            return _SPECS[format_spec](value)
        one, counted, several = format_spec.partition("|")
        if not counted:
            return format(value, format_spec)
        word = one.removeprefix("~") if value == 1 else several
        return word if one.startswith("~") else f"{value} {word}"


_FORMATTER = _Formatter()
