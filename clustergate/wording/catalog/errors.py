"""Outputs, figures and what follows from them; errors that have words of their own.

``output.wrong`` is what the parser of a benchmark says in its folder, ``error.other`` what an added
package does.
"""

WORDS = {
    "error.other": ("{sentence}", "do what the sentence says"),
    "output.wrong": "{problem}",
    "output.empty": "the text is empty",
    "output.cut-off": ("the text ends before {missing}", "it was cut off", ""),
    "output.unreadable-here": ("cannot be read", "{why}", ""),
    "output.closed": "is closed",
    "output.no-benchmark": ("this is not a benchmark's output", "{problem}", ""),
    "output.unknown": "this is not output of {titles}, or its first lines are missing",
    "output.kernel": ("{problem}", "look at the job's standard error"),
    "output.no-table": ("this is not a CSV table", "{why}", ""),
    "output.no-column": "there is no column {column!r}",
    "output.no-column-to-ignore": "there is no column {column!r} to ignore",
    "output.no-sample": "there are no samples",
    "output.no-metric": "no metric",
    "output.no-number": "the value {text!r} is not a number",
    "output.no-direction": "{benchmark}: no benchmark's metrics say which way {metric} is better",
    "output.figure-twice": (
        "two figures have the name {name}",
        "{differ} is not a part of names, so let the names of their benchmarks differ",
        "",
    ),
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
    "derived.no-baseline": "the baseline {baseline} was not measured",
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
    "derived.switch": "the stages of a switch of {ports} ports are not known, only of {known}",
    "derived.no-single": ("what scaling is relative to is missing", "the run of one process", ""),
    "derived.no-time": "there is no time of {processes} processes",
    "derived.no-values": "there are no values to compare",
}
