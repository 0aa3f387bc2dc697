"""What the gate holds for and against opening."""

_USUAL = "{measure} is usually {now:number} {unit}, {before:number} on {when}"

WORDS = {
    "screening.finding": (
        "{sentence}",
        "it is slower than the others, surely",
        "repair or exclude it",
    ),
    "screening.doubt": (
        *("{sentence}", "too noisy, or measured too seldom"),
        "screen again for longer, with nothing else running",
    ),
    "screening.unmeasured": ("some {what}s were not measured: {names:list}", "", ""),
    "screening.not-ended": (
        *("it did not come to its end", ""),
        "resume it with `clustergate screen --resume`",
    ),
    "screening.no-faults": ("{nodes} {what}s, no faults found", "", ""),
    "screening.too-few": (
        "{nodes} {what}s are too few to tell which is slow; the benchmarks are what counts",
        *("", ""),
    ),
    "screening.as-last": (_USUAL, "", ""),
    "screening.worse-than-last": (
        _USUAL + ": {worse_by:whole_percent} worse on all {what}s alike",
        *("", ""),
    ),
    "gate.inconclusive": (
        "{count} of {of} figures too noisy to tell, or slow in most launches ({where})",
        *("", "give the gate more budget, for more launches, or free the nodes of other work"),
    ),
    "gate.no-reference": (
        "{count} of {of} figures have nothing to compare with ({where})",
        *("", "make references with `clustergate baseline`"),
    ),
    "gate.as-expected": ("{figures} figures are as expected", "", ""),
    "gate.all-judged": ("all of its {cases} cases were", "", ""),
    "gate.not-judged": ("{missing} of {cases} cases were not", "", ""),
    "gate.worse-than-last": ("{figure} is {worse_by:whole_percent} worse", "", ""),
    "gate.more-worse": ("{figures} more figures are worse", "", ""),
    "gate.none-in-both": ("no figure is in both; the references judge alone", "", ""),
    "gate.as-last": ("none of {figures} figures is surely worse", "", ""),
    "gate.incomparable": ("it cannot be compared: {why}", "", ""),
    "gate.small-budget": ("the budget is too small for any of them", "", "give it more"),
}
