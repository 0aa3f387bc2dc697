"""How reports write texts, numbers, durations and the places of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from clustergate.model import Case, Conditions, Figure, Group, Verdict

# What tells figures of one benchmark and metric apart for a reader of one case, and how it is said.
_TELLING = {"mode": "{}", "bytes": "{} bytes", "against": "against {}"}
_LAYOUT = (
    *("ranks", "ranks_per_node", "nodes", "placement"),
    *("cores_per_rank", "bound", "settings"),
)


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


# Stands at each value that is not to be trusted.
DOUBTFUL = "*"
_DOUBTS_TOLD = 4


def doubts(cases: Sequence[Case]) -> list[str]:
    """Return how many figures are not to be trusted, why, and what to do about it.

    One sentence for each reason, with the first figure that it holds for: the commonest ones, which
    are noise, and the rarest, which may be more. Empty where every figure is beyond doubt.
    """
    figures = [(case, figure) for case in cases for figure in case.figures]
    found = Counter(figure.doubt for _, figure in figures if figure.doubt)
    ranked = [doubt for doubt, _ in found.most_common()]
    half = _DOUBTS_TOLD // 2
    told = [*ranked[:half], *ranked[half:][-half:]]
    lines = []
    for doubt in told:
        case, figure = next(pair for pair in figures if pair[1].doubt == doubt)
        count = f"{found[doubt]} of {len(figures)} figures"
        such = f"such as {case.check} with {case.stack}: {figure_name(figure)}"
        lines.append(f"doubtful ({DOUBTFUL}): {count}, {such}: {doubt}")
    others = sum(count for doubt, count in found.items() if doubt not in told)
    return lines + ([f"doubtful ({DOUBTFUL}): {others} more"] if others else [])


def nothing_to_compare_with(cases: Sequence[Case]) -> list[str]:
    """Return what to do where no figure of a run has a reference; empty where one has."""
    found = {figure.judgement.verdict for case in cases for figure in case.figures}
    if found != {Verdict.NO_REFERENCE}:
        return []
    return [
        "measured, and compared with nothing yet: five such runs over at least an hour, then "
        "`clustergate baseline`, make references"
    ]
