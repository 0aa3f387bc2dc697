"""What a test of a conclusion and a drawing take, and what is wrong with those of a study."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import inf, isfinite
from typing import Any

from clustergate.benchmarks.registry import every_metric
from clustergate.wording.notation import did_you_mean, nearest
from evaluations.derived.scaling import MODELS

# Of settings with a bar between them it takes one.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "all": ("parts",),
    "exception": ("playing", "part", "instead"),
    "each": ("by", "part"),
    "count": ("parts", "at_least"),
    "open": ("because",),
    "trend": ("of", "along", "direction"),
    "steady": ("of", "along", "within|beyond"),
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
# How many systems it compares, where their number is given.
_SYSTEMS = {"ahead": 2, "widest": 2, "larger gain": 4}
_SIDES = ("of", "than", "with", "over", "as_much_as")
_NAMING = ("system", "systems", "groups", "others", "first", "last", "playing")
_NUMBERS = ("within", "beyond", "r_squared", "at_least", "value", "from", "to")
_NUMERIC_LISTS = ("between", "factor")
_WORDS: Mapping[str, tuple[str, ...]] = {
    "direction": ("rises", "falls"),
    "over": tuple(MODELS),
    "at": ("largest", "smallest", "squarest"),
}
# Where a number lies, by its kind of test where that matters: beyond, a test could never fail, or
# never hold.
_RANGES: Mapping[str, tuple[float, float, str]] = {
    "level within": (0, 1, "a fraction of the larger, 0.05 for 5 %"),
    "steady within": (1, inf, "the largest over the smallest, 1.05 for 5 %"),
    "steady beyond": (1, inf, "the largest over the smallest, 1.05 for 5 %"),
    "linear r_squared": (0, 1, "a share of the variance, such as 0.99"),
    "rank correlation at_least": (0, 1, "a correlation, such as 0.9"),
    "factor": (0, inf, "a ratio"),
    "value": (0, inf, "what a best value is compared with"),
}
# Whatever another setting is called, it would be passed over in silence.
_SETTINGS = frozenset(
    {"kind", "ranks", "processes", "placement", "growing", "spread"}
    | {name for needs in NEEDS.values() for need in needs for name in need.split("|")}
    | {*_SIDES, *_NAMING, *_NUMBERS, *_NUMERIC_LISTS, *_WORDS}
)
_DRAWN = frozenset(
    {"benchmark", "benchmarks", "metric", "along", "series", "only", "bytes", "problem_class"}
    | {"ranks", "placement", "over", "factor", "mean", "linear", "trials"}
)
# What is drawn of a run beside single figures.
DRAWN_OF_A_RUN = ("ratios", "per watt")


def wrong_with(test: Mapping[str, Any], systems: Mapping[str, Any]) -> Iterator[str]:
    """Yield what keeps a test, and those that it is made of, from deciding a conclusion."""
    kind = test.get("kind", "")
    if kind not in NEEDS:
        yield f"there is no kind of test {kind!r}; known are {', '.join(NEEDS)}"
        return
    for need in NEEDS[kind]:
        if not any(name in test for name in need.split("|")):
            yield f"a test of the kind {kind!r} needs {need.replace('|', ' or ')}"
    wanted = _SYSTEMS.get(kind, 0)
    if wanted and len(test.get("systems", [""] * wanted)) != wanted:
        yield f"a test of the kind {kind!r} compares {wanted} systems"
    yield from _strange(test, _SETTINGS, f"a test of the kind {kind!r}")
    yield from _wrong_values(test)
    yield from _wrong_ranges(test, kind)
    for side in _SIDES:
        of = test.get(side, "")
        if isinstance(of, Mapping) and not {"benchmark", "metric"} <= of.keys():
            yield f"{side!r} names a benchmark and a metric"
        elif isinstance(of, Mapping) and of["metric"] not in every_metric():
            yield _unknown("metric", of["metric"], every_metric())
    for name in _NAMING:
        for system in _flat(test.get(name, ())):
            if system not in systems:
                yield _unknown("system", system, systems)
    for part in [*test.get("parts", ()), *filter(None, map(test.get, ("part", "instead")))]:
        yield from wrong_with(part, systems)


def wrong_with_drawing(draw: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield what keeps a drawing of a kind of figure from being made of a run."""
    needs = ["metric", *(["along"] if kind == "line" else [])]
    if lacking := [name for name in needs if name not in draw]:
        yield f"its draw needs {', '.join(lacking)}"
    elif draw["metric"] not in (*every_metric(), *DRAWN_OF_A_RUN):
        yield _unknown("metric", draw["metric"], [*every_metric(), *DRAWN_OF_A_RUN])
    yield from _strange(draw, _DRAWN, "a draw")


def _unknown(what: str, name: str, known: Collection[str]) -> str:
    """Return that there is none of this name, and what was meant or, for lack of it, is known."""
    meant = did_you_mean(nearest(name, known)) or f"; known are {', '.join(known)}"
    return f"there is no {what} {name!r}{meant}"


def _strange(told: Mapping[str, Any], known: frozenset[str], what: str) -> Iterator[str]:
    for name in told:
        if name not in known:
            yield f"{what} takes no {name!r}; known are {', '.join(sorted(known))}"


def _wrong_values(test: Mapping[str, Any]) -> Iterator[str]:
    """Yield what has not the form that its setting takes, of which most have one alone."""
    for name in _NUMBERS:
        if name in test and not _is_number(test[name]):
            yield f"{name!r} is a number"
    for name in _NUMERIC_LISTS:
        if not all(map(_is_number, _each(test.get(name, 1)))):
            yield f"{name!r} takes numbers"
    for name, words in _WORDS.items():
        if isinstance(test.get(name), str) and test[name] not in words:
            yield f"{name!r} is one of {', '.join(words)}"


def _wrong_ranges(test: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield what is so small, large or empty that the test says nothing."""
    for name, value in test.items():
        low, high, means = _RANGES.get(f"{kind} {name}", _RANGES.get(name, (-inf, inf, "")))
        if not all(low < one < high for one in _each(value) if _is_number(one)):
            bounds = f"above {low}" + f" and below {high}" * (high < inf)
            yield f"{name!r} is {means}: {bounds}"
    if kind == "count" and _is_number(test.get("at_least")) and test["at_least"] < 1:
        yield "'at_least' is how many claims hold: 1 or more"
    if test.get("parts", ["one"]) == []:
        yield f"a test of the kind {kind!r} has no parts"
    if _is_number(test.get("from")) and _is_number(test.get("to")) and test["from"] > test["to"]:
        yield "'from' is above 'to'"
    systems = [*_flat(test.get("systems", ()))]
    compares = kind in ("ahead", "widest", "level", "order") and "systems" in test
    if compares and len({*systems}) < max(len(systems), 2):
        yield f"a test of the kind {kind!r} compares two systems or more, each named once"


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _flat(named: Any) -> Iterator[str]:
    if isinstance(named, str):
        yield named
        return
    for one in named:
        yield from _flat(one)
