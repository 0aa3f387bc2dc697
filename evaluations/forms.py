"""What a study's file may say of criteria, drawings and derived quantities, and what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from math import inf
from typing import Any

from clustergate.benchmarks.registry import every_metric
from clustergate.core.notation import did_you_mean, nearest
from evaluations import criteria
from evaluations.criteria import Criterion
from evaluations.derived.scaling import MODELS
from evaluations.series import Figure

_LARGEST = sys.float_info.max
# Of settings with a bar between them it takes one.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "ahead": ("of", "along", "systems|than"),
    "trend": ("of", "along", "direction"),
    "ratio": ("of", "along", "systems|than"),
    "at least": ("of",),
    "at most": ("of",),
}
"""The kinds of tests of a study, with the settings that each needs."""
# What it may be told besides: whatever else would be passed over in silence.
_LIMITS = ("ranks", "processes", "placement")
_CURVE = ("from", "to", "over", "system", *_LIMITS)
_MAY: Mapping[str, tuple[str, ...]] = {
    "ahead": (*_CURVE, "growing"),
    "trend": _CURVE,
    "ratio": (*_CURVE, "low", "high"),
    **dict.fromkeys(("at least", "at most"), ("over", "as_much_as", "value", "system", *_LIMITS)),
}
# At least one of these it takes, too.
_ONE_OF: Mapping[str, tuple[str, ...]] = {
    "ratio": ("low", "high"),
    **dict.fromkeys(("at least", "at most"), ("value", "over", "as_much_as")),
}
_NOT_BOTH = (("over", "as_much_as"), ("system", "systems"))
_SIDES = ("of", "than", "over", "as_much_as")
# What earlier versions read from a file, and what to write in its place.
_NO_MORE: Mapping[str, str] = {
    **dict.fromkeys(("all", "count", "each"), "write each of its parts as a conclusion of its own"),
    "order": "write a conclusion of the kind ahead or ratio for each two neighbours",
    "level": "write the kind ratio, with low and high: 0.95 and 1.05 for 5 %",
    "step": "write the kind trend, from one of the places to the other",
    **dict.fromkeys(
        (
            *("exception", "open", "steady", "keeps", "best at", "dip", "linear", "beyond"),
            *("placement order", "widest", "smaller lead", "larger gain", "rank correlation"),
        ),
        "write another kind, or not_here with the reason in place of here",
    ),
}


def criterion_of(test: Mapping[str, Any]) -> Criterion:
    """Return what a study's test asks; :func:`test_complaints` must find nothing wrong with it."""
    limits = {name: test[name] for name in _LIMITS if name in test}
    kind, system = test["kind"], test.get("system", "")

    def figure(side: str) -> Figure | None:
        if not isinstance(test.get(side), Mapping):
            return None
        conditions = {**test[side], **limits}
        benchmark, metric = (conditions.pop(name) for name in ("benchmark", "metric"))
        found = Figure(benchmark, metric, test.get("along", "processes"), conditions)
        model = test.get("over", "")
        found = found.between(test.get("from"), test.get("to"))
        return found.per(model) if isinstance(model, str) else found

    of = figure("of")
    assert of is not None
    if kind == "trend":
        return criteria.trend(of, test["direction"], system)
    if kind in ("at least", "at most"):
        asked = criteria.at_least if kind == "at least" else criteria.at_most
        return asked(of, test.get("value", 1), figure("over") or figure("as_much_as"), system)
    than = figure("than")
    sides = (of, than, None) if than else (*test["systems"], of)
    if kind == "ahead":
        return criteria.ahead(*sides, growing=test.get("growing", False), system=system)
    bounds = {"low": test.get("low", 0.0), "high": test.get("high", inf)}
    return criteria.ratio(*sides, **bounds, system=system)


def test_complaints(test: Any, systems: Mapping[str, Any]) -> Iterator[str]:
    """Yield what keeps a test from deciding a conclusion."""
    kind = test.get("kind", "") if isinstance(test, Mapping) else None
    if not isinstance(kind, str):
        yield "a test says its kind"
    elif kind in _NO_MORE:
        yield f"a study's tests are of no kind {kind!r} any more: {_NO_MORE[kind]}"
    elif kind not in NEEDS:
        yield f"there is no kind of test {kind!r}; known are {', '.join(NEEDS)}"
    else:
        yield from _wrong_settings(test, kind)
        yield from _wrong_values(test)
        yield from _wrong_sides(test, kind)
        yield from _wrong_names(test, systems)


def _wrong_settings(test: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield what a test lacks, and what of it would be passed over in silence."""
    called = f"a test of the kind {kind!r}"
    for need in NEEDS[kind]:
        told = [name for name in need.split("|") if name in test]
        if not told:
            yield f"{called} needs {need.replace('|', ' or ')}"
        elif len(told) > 1:
            yield f"{called} takes one of {', '.join(told)}"
    takes = {name for need in NEEDS[kind] for name in need.split("|")} | {*_MAY[kind]}
    yield from _strange(test, frozenset({"kind", *takes}), called)
    for one, other in _NOT_BOTH:
        if one in test and other in test and {one, other} <= takes:
            yield f"{called} takes one of {one}, {other}"
    *several, last = _ONE_OF.get(kind, ("kind",))
    if not {*several, last} & test.keys():
        yield f"{called} needs {', '.join(several)} or {last}"


def _wrong_values(test: Mapping[str, Any]) -> Iterator[str]:
    """Yield what has not the form that its setting takes, or lies where it says nothing."""
    numbers = {"value", "low", "high", "from", "to"} & test.keys()
    wrong = {name for name in numbers if not is_number(test[name])}
    yield from (f"{name!r} is a number" for name in sorted(wrong))
    yield from (
        f"{name!r} is what something is compared with: above 0"
        for name in ("value", "low", "high")
        if name in numbers - wrong and test[name] <= 0
    )
    for low, high in (("from", "to"), ("low", "high")):
        if {low, high} <= numbers - wrong and test[low] > test[high]:
            yield f"{low!r} is above {high!r}"
    if test.get("direction", "rises") not in ("rises", "falls"):
        yield "'direction' is one of rises, falls"
    for name in ("along", "system"):
        if not isinstance(test.get(name, ""), str):
            yield f"{name!r} is one word"
    if not isinstance(test.get("growing", True), bool):
        yield "'growing' is true or false"


def _wrong_sides(test: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield what is wrong with the benchmarks and metrics that a test names."""
    for side in _SIDES:
        of = test.get(side)
        if side == "over" and not kind.startswith("at "):
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


def _wrong_names(test: Mapping[str, Any], systems: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the systems that a test names."""
    named = test.get("systems", ["", " "])
    for system in _flat([test.get("system", ()), test.get("systems", ())]):
        if system not in [*systems]:
            yield _unknown("system", str(system), systems)
    if not _are_words(named):
        yield "'systems' is a list of systems"
    elif len(named) != 2 or named[0] == named[1]:
        yield f"a test of the kind {test['kind']!r} compares two systems, each named once"


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


def drawing_complaints(draw: Mapping[str, Any], kind: str) -> Iterator[str]:
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


def derived_complaints(derived: Mapping[str, Any], systems: Mapping[str, Any]) -> Iterator[str]:
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


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _are_words(value: Any) -> bool:
    return _is_list(value) and all(isinstance(one, str) for one in value)


def _is_single(value: Any) -> bool:
    return isinstance(value, str | bool) or is_number(value)


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number that has room in a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _flat(named: Any) -> Iterator[Any]:
    if isinstance(named, list | tuple):
        for one in named:
            yield from _flat(one)
    else:
        yield named
