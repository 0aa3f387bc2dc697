"""The search for the fastest input, and the file that keeps it."""

WORDS = {
    "tuning.keys": "it must hold exactly 'schema' and 'stacks'",
    "tuning.schema": "'schema' must be {schema}",
    "tuning.no-stacks": "'stacks' must hold an entry for each stack",
    "tuning.no-options": "the entry of {stack} must map options to values",
    "tuning.unknown-option": "{name!r} is not an option of the tuning",
    "tuning.lacks": "the entry of {stack} lacks {name!r}",
    "tuning.grid": "a {p} x {q} grid does not hold {ranks} ranks",
    "tuning.input": "{why}",
    "tuning.variables": "{name!r} must map variables to text",
    "tuning.wrong-value": "{name!r} must be {wanted}, not {value!r}",
    "tuning.unavailable": ("{program} is not available here", "{why}", ""),
    "tuning.run-failed": "{how}",
    "tuning.defaults-fail": ("the benchmark does not run with its defaults", "{why}", ""),
    "tuning.fails-now": ("the benchmark ran before and fails now", "{why}", ""),
}
