"""How reports write texts, numbers, durations and the places of cases."""

from __future__ import annotations

import re

from clustergate.model import Case, Conditions, Figure, Group

# What XML 1.0 forbids (its production Char), what a terminal would obey, and what turns the order
# of a line around to make it read otherwise. Tab and newline stay.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_CONTROL_PICTURES = 0x2400
_DELETE = "\x7f"
# What tells figures of one benchmark and metric apart for a reader of one case, and how it is said.
_TELLING = {"mode": "{}", "bytes": "{} bytes", "against": "against {}"}
_LAYOUT = (
    *("ranks", "ranks_per_node", "nodes", "placement"),
    *("cores_per_rank", "bound", "settings"),
)


def printable(text: str) -> str:
    """Return a text that every reader can show and XML 1.0 allows.

    Control characters become their pictures (U+2400 on), whatever has none U+FFFD.
    """
    return _UNPRINTABLE.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    character = match[0]
    if character < " ":
        return chr(_CONTROL_PICTURES + ord(character))
    return "\N{SYMBOL FOR DELETE}" if character == _DELETE else "\N{REPLACEMENT CHARACTER}"


def shortened(text: str, at_most: int) -> str:
    """Return a text of at most so many characters, cut in its middle: both ends tell names apart.

    ``at_most`` is at least 3.
    """
    if len(text) <= at_most:
        return text
    tail = (at_most - 1) // 2
    return f"{text[: at_most - 1 - tail]}…{text[-tail:]}"


def duration(seconds: float) -> str:
    """Return a time span in the two units that matter."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole % 60} s"


def layout(case: Case) -> Conditions:
    """Return how the ranks of a case lay and were set: what cases must share to be compared."""
    return {key: case.conditions[key] for key in _LAYOUT if key in case.conditions}


def shape(case: Case) -> str:
    """Return ranks, placement and settings of a case, empty where it was never laid out."""
    conditions = case.conditions
    told = []
    if "ranks" in conditions:
        told.append(f"{conditions['ranks']} ranks")
    told += [str(conditions[key]) for key in ("placement", "settings") if conditions.get(key)]
    return ", ".join(told)


def figure_name(figure: Figure) -> str:
    """Return how a figure is called in a sentence, such as ``PingPong 8 bytes latency_us``."""
    told = [
        form.format(figure.conditions[key])
        for key, form in _TELLING.items()
        if key in figure.conditions
    ]
    metric = "" if figure.metric == figure.benchmark else figure.metric
    return " ".join(word for word in (figure.benchmark, *told, metric) if word)


def group_name(group: Group) -> str:
    """Return how a group is called in a sentence, such as ``all 14 figures of PingPong``."""
    return f"all {group.figures} figures of {group.benchmark}"
