"""Verdicts of figures and groups."""

_AGAINST = "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin})"
_FIND = "find what changed since then, or measure the node alone"
_OTHER_UNIT = "is it of another unit, as Tflop/s under Gflop/s, of another machine or problem?"
_GROUP = "{ratio:cost} than the best of the {runs:run|runs} of the baseline"

WORDS = {
    "figure.no-number": ("the value is {value}", "", "look at the output"),
    "figure.unmeasured": ("the benchmark printed {word!r} instead of figures", "", ""),
    "figure.out-of-memory": (
        *("the benchmark printed {word!r} instead of figures", ""),
        "it may take more by -- -S memory_gb=…, or leave the size out by -- -S largest_bytes=…",
    ),
    "figure.timed-out": (
        *("the benchmark printed {word!r} instead of figures", ""),
        "give each size more by -- -S time=…, or leave this one out by -- -S largest_bytes=…",
    ),
    "figure.integer-overflow": (
        *("the benchmark printed {word!r} instead of figures", ""),
        "leave the size out by -- -S largest_bytes=…",
    ),
    "limit.exceeded": (
        "{value:number} {unit} exceeds the physical limit of {limit:number}; {why}",
        *("", "do not trust this figure, look at clocks, timers and what else ran on the node"),
    ),
    "limit.not-reached": (
        "{value:number} {unit} is below the physical limit of {limit:number}; {why}",
        *("", ""),
    ),
    "reference.none": ("nothing to compare with; its limits hold", "", ""),
    "reference.unbounded": (
        _AGAINST + ", which bounds nothing",
        *("", "give it a bound on the worse side"),
    ),
    "reference.wrong-unit": (
        "the figure is in {unit!r} and its reference in {reference_unit!r} ({origin})",
        *("", "correct the reference"),
    ),
    "reference.far-off": (
        "{value:number} {unit} is {times:number} times better than the reference "
        "{reference:number} {unit} ({origin})",
        *(_OTHER_UNIT, "correct {where}"),
    ),
    "reference.beyond-limit": (
        "the reference itself exceeds the physical limit of {limit:number} ({why})",
        *(_OTHER_UNIT, "see {where}"),
    ),
    "reference.doubtful": (
        "so far off, look at the reference too",
        *(_OTHER_UNIT, "see {where}"),
    ),
    "figure.as-expected": (_AGAINST, "", ""),
    "figure.regression": (_AGAINST + ", beyond the tolerated {bound:number}", "", _FIND),
    "figure.improvement": (_AGAINST, "", "if it stays, take a new baseline"),
    "figure.inconclusive": (
        _AGAINST + ", with {bound:number} inside its interval",
        *("", "take more launches"),
    ),
    "figure.unclear": (
        _AGAINST + ": worse than what passes, and within what unchanged runs do",
        *("", ""),
    ),
    "figure.same-measurement": ("the same measurement as {other}, which is compared", "", ""),
    "figure.too-few-launches": (_AGAINST, "", ""),
    "figure.excused": (_AGAINST, "", ""),
    "figures.more-doubtful": "{figures} more",
    "figure.above-peak": (
        "{benchmark} was faster than the {peak} measured right before and after it",
        "others on the node or on its host slowed that down, or a clock is wrong",
        "rely on the Gflop/s, and see what else runs there",
    ),
    "group.as-expected": (_GROUP, "", ""),
    "group.regression": (_GROUP + ", and unchanged runs {usual:cost} at most", "", _FIND),
    "group.slow-launches": (_GROUP, "", ""),
    "group.improvement": (_GROUP, "", "if it stays, take a new baseline"),
    "group.excused": (_GROUP, "", ""),
    "group.inconclusive": (_GROUP, "", ""),
    "group.incomplete": (
        "{figure} is missing, of which its baseline is made",
        *("", "see why"),
    ),
    "change.detectable": (
        "{launches:launch|launches} find a slowdown of {often:percent} in 80 % of runs, of "
        "{surely:percent} in 99 %",
        *("", ""),
    ),
    "change.undetectable": (
        "too few launches to detect a change ({launches:launch|launches})",
        *("", "take {needed} or more"),
    ),
    "baseline.days": ("provisional: its baseline is of {days:day|days}", "", ""),
    "baseline.provisional": (
        "provisional: a baseline of {days:day|days} does not know how days differ",
        "",
        "launch a golden build in turn with it (`clustergate golden pin`, `gate`), or run on "
        "{more:more day|more days} and take a new baseline",
    ),
    "baseline.unsteady": (
        "the {runs} runs of the baseline differ by {spread:percent}",
        *("", "find what disturbs them, or launch a golden build in turn with it"),
    ),
    "launches.slow-share": (
        "{slow} of {launches:launch|launches} {slow:~is|are} {times:.1f} x worse than the "
        "reference, and {others:is|are} not",
        "something slows launches now and then, and the best is not to be trusted",
        "see in the raw samples which are slow, and what differs: the cores and memory they were "
        "bound to, nodes, links, clocks",
    ),
    "launches.unexcused": (
        "{cause}, which explains at most {explained:.1f} x; this is {times:.1f} x",
        *("", _FIND),
    ),
}
