"""Words that several rooms say."""

from __future__ import annotations

from clustergate.core.reasons import Words

RUN_EMPTY = Words(
    "run.empty",
    "nothing was measured",
    remedy="see that checks and stacks are there and selected",
)
INPUT_UNKNOWN_NAME = Words(
    "input.unknown-name",
    "unknown {kind} {name!r}",
    remedy="known: {known:list}",
)
INPUT_TOO_SMALL = Words("input.too-small", "{name} must be at least {least}, not {value}")
INPUT_NOT_POSITIVE = Words("input.not-positive", "{name} must be positive, not {value}")
INPUT_NOT_TAKEN = Words("input.not-taken", "{name} must be {wanted}, not {value!r}")
FILE_UNREADABLE = Words("file.unreadable", "{path} cannot be read", cause="{why}")
COMMAND_EXTRA = Words(
    "command.extra",
    "the {kind} {name} is not installed",
    remedy=(
        "run `pip install 'clustergate[evaluations]'`, with --find-links and the folder of its "
        "wheel where no package index has it"
    ),
)
OPTION_RANGE = Words("option.range", "{option} {value:g}: must be between {low} and {high} {unit}")
OPTION_NOT_POSITIVE = Words("option.not-positive", "{options} must be positive")
OPTION_NEGATIVE = Words("option.negative", "{option} must not be negative: {value}")
BASELINE_NO_FIGURE = Words(
    "baseline.no-figure",
    "no stored run has a figure of this selection on the system {system}",
    cause="the runs are in {folder}; runs with variables set by hand (-S) do not count",
    remedy="measure with `clustergate check`, or select otherwise",
)
RESUME_OPTIONS = Words(
    "resume.options",
    "--resume keeps the options of the run",
    remedy="name nothing but the run",
)
COMPARE_ITSELF = Words(
    "compare.itself",
    "A and B are both {name}",
    cause="what is compared with itself differs in nothing",
    remedy="name another one: `clustergate list runs` lists them",
)
