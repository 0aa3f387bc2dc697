"""How reports write texts, numbers, durations and the places of cases."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence

from clustergate.core.model import (
    Better,
    Case,
    CaseRecord,
    Conditions,
    Figure,
    Group,
)
from clustergate.core.notation import counted, listed
from clustergate.core.reasons import Reason, Words

# What tells figures of one benchmark and metric apart for a reader of one case, and how it is said.
_TELLING: dict[str, Callable[[object], str]] = {
    "mode": str,
    "bytes": lambda size: f"{size} bytes",
    "against": lambda peak: f"of {peak_title(str(peak))}",
}
SHARE = "efficiency_percent"
_LIST = re.compile(r"\[('[^]]*')\]")
_PEAKS = {"fma peak": "measured FMA peak", "nominal": "nominal peak"}
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


def clock(now: datetime.datetime, in_s: float) -> str:
    """Return the local time in so many seconds, with the day where it is another one."""
    then = now + datetime.timedelta(seconds=in_s)
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%H:%M on} {then.day} {then:%B}"


_BAR, _BETWEEN = 6, " | "
# Of a line that narrow, a bar would leave nothing.
_ROOM_FOR_A_BAR = 45


class Step(str):
    """What goes on as a part of more: told in place on a terminal, in a log only where it lasts."""


class ProgressLine(Step):
    """What runs, and when all will be done.

    Of ``cases`` so many are ``done``, with these ``results``, the last one last. It began at
    ``now`` and takes ``own_s``, all that is left with it ``all_s``, if nothing changed; None where
    nobody knows.
    """

    _what: str
    _due: datetime.datetime | None
    _after_s: float
    _counts: tuple[int, int]
    _results: Sequence[str]

    def __new__(
        cls,
        what: str,
        now: datetime.datetime,
        own_s: float | None = None,
        all_s: float = 0.0,
        results: Sequence[str] = (),
        done: int = 0,
        cases: int = 0,
    ) -> ProgressLine:
        """Return the sentence as it is to be told first."""
        counts = f": {done} of {cases} done" if cases else ""
        by = "" if own_s is None else f", all done by about {clock(now, all_s)}"
        one = super().__new__(cls, f"{what}{counts}{by}")
        one._what, one._counts, one._results = what, (done, cases), results
        one._due = None if own_s is None else now + datetime.timedelta(seconds=own_s)
        one._after_s = all_s - (own_s or 0.0)
        return one

    def followed_by(self, seconds: float) -> ProgressLine:
        """Return the sentence where so many seconds of other work come after all that it counts."""
        if self._due is None:
            return self
        now = datetime.datetime.now()
        own_s = (self._due - now).total_seconds()
        times = own_s, own_s + self._after_s + seconds
        return ProgressLine(self._what, now, *times, self._results, *self._counts)

    def at(self, now: datetime.datetime) -> str:
        """Return the sentence as it is to be told now: from what runs, once that is overdue."""
        late_s = self._late_s(now)
        if late_s <= 0:
            return str(self)
        return f"{self._what}, {duration(late_s)} late, all done after {clock(now, self._after_s)}"

    def in_place(self, now: datetime.datetime, room: int) -> str:
        """Return a line of a terminal with ``room`` letters: bar, case, end, the last results."""
        done, cases = self._counts
        filled = _BAR * done // max(cases, 1)
        bar = f"{'━' * filled}{'─' * (_BAR - filled)} " * (room >= _ROOM_FOR_A_BAR)
        head = f"{bar}{done}/{cases} " if cases else ""
        ends = ""
        if self._due is not None:
            late_s = self._late_s(now)
            ends = f", by {clock(self._due, self._after_s)}"
            if late_s > 0:
                ends = f", {duration(late_s)} late, after {clock(now, self._after_s)}"
        what = _briefly(self._what).removeprefix("running ")
        line = f"{head}{shortened(what, max(room - len(head) - len(ends), 3))}{ends}"
        for result in map(_briefly, reversed(self._results)):
            left = room - len(line) - len(_BETWEEN)
            result = result if len(result) <= left else result.partition(", ")[0]
            if len(result) > left:
                break
            line += _BETWEEN + result
        return line

    def _late_s(self, now: datetime.datetime) -> float:
        return (now - self._due).total_seconds() if self._due else 0.0


def _briefly(case: str) -> str:
    """Return what is said of a case without its ranks, ``HPL mpich 123 Gflop/s``."""
    return re.sub(r" \([^)]*\)", "", case).replace(" with ", " ").replace(": ", " ", 1)


class ResultLine(str):
    """What a case came to: a line of a log, which on a terminal the last line shows."""


VARIANT = "variant"
"""The condition that says what a sweep gave a case: ``nb=128``, or several, with commas."""


def column_of(case: Case | CaseRecord) -> str:
    """Return where the figures of a case stand in tables: its stack, with what a sweep gave it."""
    return " ".join(filter(None, [case.stack, str(case.conditions.get(VARIANT, ""))]))


def layout(case: Case) -> Conditions:
    """Return how the ranks of a case lay and were set: what cases must share to be compared."""
    return {key: case.conditions[key] for key in _LAYOUT if key in case.conditions}


def shape(case: Case) -> str:
    """Return ranks, placement and settings of a case, empty where it was never laid out."""
    conditions = case.conditions
    parts = []
    if "ranks" in conditions:
        parts.append(counted(int(conditions["ranks"]), "rank"))
    parts += [
        condition_text(conditions[key]) for key in ("placement", "settings") if conditions.get(key)
    ]
    said = str(conditions.get("settings", "")).split(",")
    parts += [one for one in str(conditions.get(VARIANT, "")).split(",") if one not in said]
    return ", ".join(filter(None, parts))


def condition_text(condition: object) -> str:
    """Return a condition with lists as one types them."""
    return _LIST.sub(lambda match: re.sub("[' ]", "", match[1]), str(condition))


def peak_title(against: str) -> str:
    """Return how a reader knows what a share is a share of; routines of a BLAS are in capitals."""
    return _PEAKS.get(against, against.upper())


def figure_name(figure: Figure) -> str:
    """Return how a figure is called in a sentence, such as ``PingPong 8 bytes latency_us``."""
    conditions = [
        said(figure.conditions[key]) for key, said in _TELLING.items() if key in figure.conditions
    ]
    is_share = figure.metric == SHARE and "against" in figure.conditions
    metric = "" if is_share or figure.metric == figure.benchmark else figure.metric
    return " ".join(word for word in (figure.benchmark, *conditions, metric) if word)


def telling(conditions: Conditions) -> list[str] | None:
    """Return how conditions stand in :func:`figure_name`, None where one does not."""
    if not conditions.keys() <= _TELLING.keys():
        return None
    return [_TELLING[key](value) for key, value in conditions.items()]


def group_name(group: Group) -> str:
    """Return how a group is called in a sentence, such as ``all 14 figures of PingPong``."""
    return f"all {group.figures} figures of {group.benchmark}"


DOUBTFUL = "*"
AT_LEAST = {Better.HIGHER: ">= ", Better.LOWER: "<= ", Better.NEITHER: "~ "}
"""What stands before a bound, such as of a launch that others disturbed."""
"""Stands at each value that is not to be trusted."""
DOUBT = f"doubtful ({DOUBTFUL})"
_DOUBTS_TOLD = 4
UNEXCUSED = Words(
    "launches.unexcused",
    "{cause}, which explains at most {explained:.1f} x; this is {times:.1f} x",
    remedy="find what changed since then, or measure the node alone",
)
DISTURBED = Words(
    "launches.too-few-undisturbed",
    (
        "{disturbed} of {launches:launch|launches} {disturbed:~was|were} disturbed (at worst "
        "{worst}), so that {left:is|are} left where {needed:is|are} needed"
    ),
    remedy=(
        "{by_programs:~measure when nothing else runs there, |}take more launches (with -- -S "
        "{setting}), {by_programs:~or |}compare stacks with `clustergate ab`{by_programs:~|, pin "
        "a virtual machine's cores, or wait until nothing else runs there}"
    ),
)
MORE_DOUBTFUL = Words("figures.more-doubtful", "{figures} more")


def doubts(cases: Sequence[Case], called: Callable[[str], str] = str) -> list[Reason]:
    """Return how many figures are not to be trusted, why, and what to do about it.

    A check is told as it is ``called``.

    Each reason once, with the first figure that it holds for: the commonest ones, which
    are noise, and the rarest, which may be more. Cases that were disturbed are one reason together.
    Empty where every figure is beyond doubt.
    """
    figures = [(case, figure) for case in cases for figure in case.figures]
    by_reason: dict[Reason | str, list[tuple[Case, Figure]]] = {}
    for case, figure in figures:
        if figure.doubt:
            alike = DISTURBED.code if figure.doubt.code == DISTURBED.code else figure.doubt
            by_reason.setdefault(alike, []).append((case, figure))
    ranked = sorted(by_reason.values(), key=len, reverse=True)
    half = _DOUBTS_TOLD // 2
    shown = [*ranked[:half], *ranked[half:][-half:]]
    reasons = [_doubt(alike, len(figures), called) for alike in shown]
    if others := sum(map(len, ranked)) - sum(map(len, shown)):
        reasons.append(MORE_DOUBTFUL(figures=others))
    return reasons


def doubt_lines(cases: Sequence[Case]) -> list[str]:
    """Return :func:`doubts` as they stand among other sentences."""
    return [f"{DOUBT}: {doubt}" for doubt in doubts(cases)]


def _doubt(
    alike: Sequence[tuple[Case, Figure]], judged: int, called: Callable[[str], str]
) -> Reason:
    """Return for what reason some of the ``judged`` figures are doubtful, and where."""
    reasons = {case.identity: figure.doubt for case, figure in alike if figure.doubt}
    if len(set(reasons.values())) > 1:
        # A stack may run in several partitions, or with several process counts.
        stacks: dict[str, dict[str, None]] = {}
        for one in reasons:
            stacks.setdefault(one.check, {})[one.stack] = None
        where = "; ".join(f"{called(check)} with {listed([*of])}" for check, of in stacks.items())
        return _together([*reasons.values()]).of_figures(len(alike), judged, where)
    (case, figure), (doubt, *_) = alike[0], reasons.values()
    what = f"{called(case.check)} with {case.stack}: {figure_name(figure)}"
    where = "such as " * (len(alike) > 1) + what
    return doubt.of_figures(len(alike), judged, where)


TOO_FEW_UNDISTURBED_IN_CASES = Words(
    "launches.too-few-undisturbed-in-cases",
    (
        "{disturbed} of {launches:launch|launches} {disturbed:~was|were} disturbed (at worst "
        "{worst}), so that too few are left"
    ),
    remedy=(
        "{by_programs:~measure when nothing else runs there, |}take more launches (with -- "
        "{settings}), {by_programs:~or |}compare stacks with `clustergate ab`{by_programs:~|, "
        "pin a virtual machine's cores, or wait until nothing else runs there}"
    ),
)


def _together(reasons: Sequence[Reason]) -> Reason:
    """Return in one what was said of the disturbed launches of several cases."""

    def count(one: Reason, fact: str) -> int:
        return int(str(one.facts[fact]))

    # Of several cases of one check, the setting that suffices for all.
    settings: dict[str, int] = {}
    for one in reasons:
        name, _, launches = str(one.facts["setting"]).partition("=")
        settings[name] = max(int(launches), settings.get(name, 0))
    worst = max(reasons, key=lambda one: count(one, "disturbed"))
    return TOO_FEW_UNDISTURBED_IN_CASES(
        disturbed=sum(count(one, "disturbed") for one in reasons),
        launches=sum(count(one, "launches") for one in reasons),
        worst=worst.facts["worst"],
        by_programs=int(str(worst.facts.get("by_programs", 0))),
        settings=" ".join(f"-S {name}={launches}" for name, launches in settings.items()),
    )


def on_partitions(partitions: Sequence[str]) -> str:
    """Return in which partitions something was, nothing where none is to be told."""
    return f" on {', '.join(partitions)}" if partitions else ""
