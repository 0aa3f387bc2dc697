"""What a test of a conclusion and a drawing take, and what is wrong with those of a study."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from math import inf
from typing import Any

from clustergate.benchmarks.registry import every_metric
from clustergate.core.notation import did_you_mean, nearest
from evaluations.derived.scaling import MODELS

_LARGEST = sys.float_info.max
# Of settings with a bar between them it takes one.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "all": ("parts",),
    "exception": ("playing", "part", "instead"),
    "each": ("by", "part"),
    "count": ("parts", "at_least"),
    "open": ("because",),
    "trend": ("of", "along", "direction"),
    "steady": ("of", "along", "within|beyond"),
    "keeps": ("of", "along", "at_least"),
    "step": ("of", "along", "at", "factor"),
    "best at": ("of", "along", "at"),
    "dip": ("of", "along", "at"),
    "linear": ("of", "along", "r_squared"),
    "beyond": ("of", "along", "at"),
    "at least": ("of",),
    "at most": ("of",),
    "placement order": ("of", "better", "worse", "ranks"),
    "ahead": ("of", "along", "systems|than"),
    "widest": ("of", "along", "between", "systems|than"),
    "level": ("of", "along", "within", "systems|than"),
    "order": ("of", "along", "systems|groups|others"),
    "smaller lead": ("of", "along", "than", "system", "others", "factor"),
    "larger gain": ("of", "along", "systems"),
    "rank correlation": ("of", "with", "at_least"),
}
# What it may be told besides: whatever else would be passed over in silence.
_CURVE = ("from", "to", "over", "ranks", "processes", "placement")
_BEST = ("over", "as_much_as", "value", "system", "ranks", "processes", "placement")
_MAY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("trend", "steady", "step", "best at", "dip"), (*_CURVE, "system")),
    **dict.fromkeys(("keeps", "linear", "beyond"), (*_CURVE, "system")),
    **dict.fromkeys(("at least", "at most"), _BEST),
    "placement order": ("system",),
    "ahead": (*_CURVE, "growing", "system"),
    **dict.fromkeys(("widest", "level"), (*_CURVE, "system")),
    "order": (*_CURVE, "first", "last", "at", "factor", "spread"),
    "smaller lead": _CURVE,
    "larger gain": _CURVE,
    "rank correlation": ("systems",),
}
# How many systems it compares, where their number is given.
_SYSTEMS = {"ahead": 2, "widest": 2, "larger gain": 4}
_SIDES = ("of", "than", "with", "over", "as_much_as")
_NAMING = ("system", "systems", "groups", "others", "first", "last", "playing")
_NUMBERS = ("within", "beyond", "r_squared", "at_least", "value", "from", "to")
# Of these a test looks at single figures, whose best may be set over that of others.
_OF_FIGURES = ("at least", "at most")
_OF_PARTS = ("all", "exception", "each", "count", "open")
_NOT_BOTH = (("over", "as_much_as"), ("first", "last"), ("spread", "at"), ("system", "systems"))
# What stands at "at" is a place, or another thing.
_PLACES: Mapping[str, str] = {
    "step": "two places",
    "dip": "a place",
    "beyond": "a place",
    "best at": "a place, or squarest",
    "order": "largest or smallest",
}
# Where a number lies, by its kind of test where that matters: beyond, a test could never fail, or
# never hold.
_RANGES: Mapping[str, tuple[float, float, str]] = {
    "level within": (0, 1, "a fraction of the larger, 0.05 for 5 %"),
    "steady within": (1, inf, "the largest over the smallest, 1.05 for 5 %"),
    "steady beyond": (1, inf, "the largest over the smallest, 1.05 for 5 %"),
    "linear r_squared": (0, 1, "a share of the variance, such as 0.99"),
    "rank correlation at_least": (0, 1, "a correlation, such as 0.9"),
    "keeps at_least": (0, 1, "a part of the first value, such as 0.9"),
    "factor": (0, inf, "a ratio"),
    "value": (0, inf, "what a best value is compared with"),
}
# What a drawing takes, by the kind of the figure.
_BARS = ("benchmark", "benchmarks", "metric", "series", "bytes", "problem_class")
_DRAWN: Mapping[str, tuple[str, ...]] = {
    "bar": _BARS,
    "line": (*_BARS, "along", "only", "ranks", "nodes", "placement", "over", "factor", "mean",
             "linear", "trials"),
    "Kiviat": ("benchmark", "metric"),
}  # fmt: skip
# What is drawn of a run beside single figures.
DRAWN_OF_A_RUN = ("ratios", "per watt")

_OF_TWO = ("benchmark", "metric", "of", "over")
DERIVED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("HPCCG weak efficiency", "smallest efficiency"), ()),
    **dict.fromkeys(("penalty of no power of two", "fall of HPL efficiency"), ()),
    **dict.fromkeys(("dip size", "switch size", "plunge size"), ("benchmark", "metric")),
    **dict.fromkeys(("ratio", "gain", "loss", "difference"), _OF_TWO),
    **dict.fromkeys(("alike from", "ahead from", "lead begins", "lead ends"), _OF_TWO),
}
"""What quantities that are derived of several figures need (:mod:`evaluations.quantities`)."""
_OF_SEVERAL = ("ratio", "gain", "loss")
_OF_DERIVED = ("kind", "bytes", "ranks", "problem_class", "kernel", "call", "along")


def wrong_with(test: Any, systems: Mapping[str, Any]) -> Iterator[str]:
    """Yield what keeps a test, and those that it is made of, from deciding a conclusion."""
    kind = test.get("kind", "") if isinstance(test, Mapping) else None
    if not isinstance(kind, str):
        yield "a test says its kind"
    elif kind not in NEEDS:
        yield f"there is no kind of test {kind!r}; known are {', '.join(NEEDS)}"
    else:
        yield from _wrong_settings(test, kind)
        yield from _wrong_values(test, kind)
        yield from _wrong_ranges(test, kind)
        yield from _wrong_names(test, kind, systems)
        parts = [test[one] for one in ("part", "instead") if one in test]
        for part in [*_each(test.get("parts", [])), *parts]:
            yield from wrong_with(part, systems)


def _wrong_settings(test: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield what a test lacks, and what of it would be passed over in silence."""
    called = f"a test of the kind {kind!r}"
    for need in NEEDS[kind]:
        told = [name for name in need.split("|") if name in test]
        if not told:
            yield f"{called} needs {need.replace('|', ' or ')}"
        elif len(told) > 1:
            yield f"{called} takes one of {', '.join(told)}"
    takes = {name for need in NEEDS[kind] for name in need.split("|")} | {*_MAY.get(kind, ())}
    yield from _strange(test, frozenset({"kind", *takes}), called)
    for one, other in _NOT_BOTH:
        if one in test and other in test and {one, other} <= takes:
            yield f"{called} takes one of {one}, {other}"
    if kind in _OF_FIGURES and not {"value", "over", "as_much_as"} & test.keys():
        yield f"{called} needs value, over or as_much_as"
    if kind == "order" and ("others" in test) != bool({"first", "last"} & test.keys()):
        yield "'others' and 'first' or 'last' go together"


def wrong_with_drawing(draw: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield what keeps a drawing of a kind of figure from being made of a run."""
    needs = ["benchmark|benchmarks", "metric", *(["along"] if kind == "line" else [])]
    told = {need: [name for name in need.split("|") if name in draw] for need in needs}
    if lacking := [need.replace("|", " or ") for need, names in told.items() if not names]:
        yield f"its draw needs {', '.join(lacking)}"
    elif draw["metric"] not in [*every_metric(), *DRAWN_OF_A_RUN]:
        yield _unknown("metric", str(draw["metric"]), [*every_metric(), *DRAWN_OF_A_RUN])
    yield from _strange(draw, frozenset(_DRAWN.get(kind, ())), f"a draw of the kind {kind!r}")
    if not isinstance(draw.get("benchmark", ""), str):
        yield "'benchmark' is one word; several are 'benchmarks'"
    if not _are_words(draw.get("benchmarks", [""])):
        yield "'benchmarks' is a list of words"
    only = draw.get("only", [""])
    if not (_is_list(only) and all(map(_is_single, only))):
        yield "'only' is a list of words or numbers"
    for name in ("along", "series"):
        if not isinstance(draw.get(name, ""), str):
            yield f"{name!r} is one word"
    for name in ("factor", "bytes", "trials", "ranks", "nodes"):
        if not is_number(draw.get(name, 1)):
            yield f"{name!r} is a number"
    if draw.get("along") == "trial" and "bytes" not in draw:
        yield "single trials are of one message size: its draw needs bytes"
    if "over" in draw and draw["over"] not in [*MODELS]:
        yield f"'over' is one of {', '.join(MODELS)}"


def wrong_with_derived(derived: Mapping[str, Any], systems: Mapping[str, Any]) -> Iterator[str]:
    """Yield what keeps a quantity from being derived of several figures."""
    kind = derived.get("kind")
    if not isinstance(kind, str) or kind not in DERIVED:
        yield f"there is no derived quantity {kind!r}; known are {', '.join(DERIVED)}"
        return
    called = f"the derived quantity {kind!r}"
    if lacking := [name for name in DERIVED[kind] if name not in derived]:
        yield f"{called} needs {', '.join(lacking)}"
    yield from _strange(derived, frozenset({*DERIVED[kind], *_OF_DERIVED}), called)
    names = [derived[name] for name in (*_OF_DERIVED, "benchmark", "metric") if name in derived]
    if not (isinstance(derived.get("benchmark", ""), str) and all(map(_is_single, names))):
        yield f"what {called} names are single words or numbers"
    if "metric" in DERIVED[kind] and derived.get("metric", "") not in ["", *every_metric()]:
        yield _unknown("metric", str(derived["metric"]), every_metric())
    sides = [derived[side] for side in ("of", "over") if side in derived]
    for system in _flat(sides):
        if system not in [*systems]:
            yield _unknown("system", str(system), systems)
    if not all(map(_are_words, sides)):
        yield "'of' and 'over' are lists of systems"
    elif sides and kind not in _OF_SEVERAL and any(len(side) > 1 for side in sides):
        yield f"{called} is of one system, over one"
    if len({*map(str, _flat(sides))}) < len([*_flat(sides)]):
        yield f"{called} names each system once"


def _unknown(what: str, name: str, known: Collection[str]) -> str:
    """Return that there is none of this name, and what was meant or, for lack of it, is known."""
    meant = did_you_mean(nearest(name, known)) or f"; known are {', '.join(known)}"
    return f"there is no {what} {name!r}{meant}"


def _strange(told: Mapping[str, Any], known: frozenset[str], what: str) -> Iterator[str]:
    for name in told:
        if name not in known:
            yield f"{what} takes no {name!r}; known are {', '.join(sorted(known))}"


def _wrong_values(test: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield what has not the form that its setting takes."""
    for name in _NUMBERS:
        if name in test and not is_number(test[name]):
            yield f"{name!r} is a number"
    if test.get("direction", "rises") not in ("rises", "falls"):
        yield "'direction' is one of rises, falls"
    for name in ("along", "by", "because", "system", "first", "last"):
        if not isinstance(test.get(name, ""), str):
            yield f"{name!r} is one word"
    for name in ("growing", "spread"):
        if not isinstance(test.get(name, True), bool):
            yield f"{name!r} is true or false"
    if "at" in test and kind in _PLACES and not _is_place(test["at"], kind):
        yield f"'at' is {_PLACES[kind]}"
    between = test.get("between", [0, 1])
    if not _is_numbers(between, 2) or between[0] > between[1]:
        yield "'between' is two numbers, the smaller first"
    if "factor" in test:
        steps = len(_groups_of(test)) - 1
        if kind == "order" and not _is_numbers(test["factor"], steps):
            yield f"'factor' is a list of numbers, one for each step of the order: {steps}"
        elif kind != "order" and not is_number(test["factor"]):
            yield "'factor' is a number"
    for side in _SIDES:
        of = test.get(side)
        if side == "over" and kind not in _OF_FIGURES:
            if of is not None and of not in [*MODELS]:
                yield f"'over' is one of {', '.join(MODELS)}"
        elif side in test and not (
            isinstance(of, Mapping) and {"benchmark", "metric"} <= of.keys()
        ):
            yield f"{side!r} names a benchmark and a metric"
        elif isinstance(of, Mapping):
            if not (isinstance(of["benchmark"], str) and all(map(_is_single, of.values()))):
                yield f"what {side!r} names are single words or numbers"
            elif of["metric"] not in every_metric():
                yield _unknown("metric", str(of["metric"]), every_metric())
    part = test.get("part")
    if kind == "each" and isinstance(part, Mapping) and part.get("kind") in _OF_PARTS:
        yield "the 'part' of 'each' is a test of figures"


def _is_place(at: Any, kind: str) -> bool:
    if kind == "step":
        return _is_numbers(at, 2) and at[0] != at[1]
    if kind == "order":
        return at in ("largest", "smallest")
    return is_number(at) or (kind == "best at" and at == "squarest")


def _groups_of(test: Mapping[str, Any]) -> list[Any]:
    """Return the groups of an order, of which the first and the last may stand beside others."""
    alone = ["first or last", "others"] if "others" in test else []
    return _each(test.get("groups", test.get("systems", alone)))


def _wrong_ranges(test: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield what is so small, large or empty that the test says nothing."""
    for name, value in test.items():
        low, high, means = _RANGES.get(f"{kind} {name}", _RANGES.get(name, (-inf, inf, "")))
        if not all(low < one < high for one in _each(value) if is_number(one)):
            bounds = f"above {low}" + f" and below {high}" * (high < inf)
            yield f"{name!r} is {means}: {bounds}"
    least = test.get("at_least", 1)
    if kind == "count" and not (isinstance(least, int) and least >= 1):
        yield "'at_least' is how many parts hold: 1 or more"
    elif kind == "count" and least > len(_each(test.get("parts", []))):
        yield f"'at_least' is {least}, and there are fewer parts"
    if not _is_list(test.get("parts", [""])):
        yield f"a test of the kind {kind!r} has no parts"
    if is_number(test.get("from")) and is_number(test.get("to")) and test["from"] > test["to"]:
        yield "'from' is above 'to'"
    if "better" in test and test["better"] == test.get("worse"):
        yield "'better' and 'worse' are two placements"


def _wrong_names(test: Mapping[str, Any], kind: str, systems: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the systems that a test names."""
    for name in _NAMING:
        for system in _flat(test.get(name, ())):
            if system not in [*systems]:
                yield _unknown("system", str(system), systems)
    for name in ("systems", "others", "playing"):
        if not _are_words(test.get(name, [""])):
            yield f"{name!r} is a list of systems"
    wanted = _SYSTEMS.get(kind, 0)
    if wanted and len(_each(test.get("systems", [""] * wanted))) != wanted:
        yield f"a test of the kind {kind!r} compares {wanted} systems"
    groups = test.get("groups", [[""], [""]])
    if not (isinstance(groups, list) and len(groups) > 1 and all(map(_are_words, groups))):
        yield "'groups' is two lists of systems or more"
    named = [test.get(name, ()) for name in ("system", "first", "last", "systems", "others")]
    named = [*map(str, _flat([*named, test.get("groups", ())]))]
    apart = kind in ("ahead", "widest", "level", "order") and "than" not in test
    if (apart or kind == "smaller lead") and named and len({*named}) < max(len(named), 2):
        yield f"a test of the kind {kind!r} compares two systems or more, each named once"


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _are_words(value: Any) -> bool:
    return _is_list(value) and all(isinstance(one, str) for one in value)


def _is_single(value: Any) -> bool:
    return isinstance(value, str | bool) or is_number(value)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_numbers(value: Any, count: int) -> bool:
    return isinstance(value, list) and len(value) == count and all(map(is_number, value))


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number that has room in a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _flat(named: Any) -> Iterator[Any]:
    if isinstance(named, list | tuple):
        for one in named:
            yield from _flat(one)
    else:
        yield named
