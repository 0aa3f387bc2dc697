"""What a test of a conclusion must be told, by its kind, and what a study does not say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
    for side in _SIDES:
        of = test.get(side, "")
        if isinstance(of, Mapping) and not {"benchmark", "metric"} <= of.keys():
            yield f"{side!r} names a benchmark and a metric"
    for name in _NAMING:
        for system in _flat(test.get(name, ())):
            if system not in systems:
                yield f"there is no system {system!r}"
    for part in [*test.get("parts", ()), *filter(None, map(test.get, ("part", "instead")))]:
        yield from wrong_with(part, systems)


def _flat(named: Any) -> Iterator[str]:
    if isinstance(named, str):
        yield named
        return
    for one in named:
        yield from _flat(one)
