"""What several parsers say is wrong with an output."""

from __future__ import annotations

from clustergate.core.reasons import Words

OUTPUT_EMPTY = Words("output.empty", "the text is empty")
OUTPUT_CUT_OFF = Words("output.cut-off", "the text ends before {missing}", cause="it was cut off")
OUTPUT_LACKS = Words(
    "output.lacks",
    "{missing} is missing",
    cause="the output is cut off, or lines of it are lost",
)
OUTPUT_NOT_RUN = Words("output.not-run", "{name} was requested and did not run", cause="{why}")
OUTPUT_OTHER_PROGRAM = Words(
    "output.other-program",
    "this is output of {program}, which clustergate does not read",
)
OUTPUT_SECOND_RUN = Words(
    "output.second-run",
    "another run begins here",
    cause="it was left over from an earlier run, or every rank ran alone",
    remedy="keep one run per file",
)
OUTPUT_FAILURE = Words("output.failure", "{program} reports a failure: {words}")
OUTPUT_WRONG_RESULT = Words(
    "output.wrong-result",
    "the result is wrong: {what} is {value} and must be {wanted}",
    remedy="do not trust the figures, look for a faulty node, compiler or library",
)
OUTPUT_DECIMAL_COMMA = Words(
    "output.decimal-comma",
    "a number with a decimal comma",
    remedy="run the program with LC_ALL=C",
)
OUTPUT_DAMAGED = Words(
    "output.damaged",
    "not {what} as {program} prints it: {printed!r}",
    cause="the line is damaged, or mixed with another one",
)
OUTPUT_BAD_VALUE = Words("output.bad-value", "{name!r} must be {wanted}, not {value}")
OUTPUT_CONTRADICTION = Words(
    "output.contradiction",
    "{one} contradicts {other}",
    cause="lines are lost or damaged",
)
OUTPUT_MISPLACED = Words(
    "output.misplaced",
    "{what} stands here instead of {due}",
    cause="lines are lost or damaged",
)
OUTPUT_STRAY = Words(
    "output.stray",
    "{what} stands where it does not belong",
    cause="lines before it are lost",
)
OUTPUT_TWICE = Words(
    "output.twice",
    "{what} stands here a second time",
    cause="lines are lost or mixed",
)
OUTPUT_UNREADABLE_HERE = Words("output.unreadable-here", "cannot be read", cause="{why}")
OUTPUT_UNKNOWN = Words(
    "output.unknown",
    "this is not output of {titles}, or its first lines are missing",
)
