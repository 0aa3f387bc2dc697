"""What follows from figures; ``error.other`` is what an added package says in its own words."""

WORDS = {
    "error.other": ("{sentence}", "do what the sentence says"),
    "compare.chances": "the margin and the chance of error must lie between 0 and 1",
    "compare.not-finite": ("a value is not finite", "leave that launch out or measure it again"),
    "compare.shapes": "A and B need a table of rounds and figures each, of one shape",
    "derived.not-positive": "{name} must be greater than 0, not {value}",
    "derived.same-component": (
        "the component is the same in both",
        "nothing is sensitive to it",
        "",
    ),
    "derived.no-component": "no component was changed",
    "derived.few-pairs": "a correlation takes three pairs of values or more",
    "derived.constant": "a constant correlates with nothing",
    "derived.few-sizes": "a line takes the times of two message sizes or more",
    "derived.few-values": "whether values lie on a line takes three of them or more",
    "derived.no-half": "the smallest size, {bytes} bytes, is beyond half the bandwidth",
    "derived.no-bandwidth": "there is no bandwidth to reach a part of",
    "derived.link": (
        "there is no {lanes}x {rate} link with 8B/10B encoding",
        "known are {known:list} of {widths} lanes",
    ),
    "derived.no-figure": "there is no {name}, to which the others relate",
    "derived.other-definition": (
        "{name} is not the same benchmark in these runs: {runs}",
        "compare those of one version",
    ),
    "derived.no-version": "{version!r} is no version of {program}, such as 1.5.0",
    "derived.switch": "the stages of a switch of {ports} ports are not known, only of {known}",
    "derived.no-single": ("what scaling is relative to is missing", "the run of one process", ""),
    "derived.no-time": "there is no time of {processes} processes",
    "derived.no-values": "there are no values to compare",
}
