"""The search for the fastest input, and the file that keeps it."""

WORDS = {
    "tuning.grid": "a {p} x {q} grid does not hold {ranks} ranks",
    "tuning.unavailable": ("{program} is not available here", "{why}", ""),
    "tuning.run-failed": "{how}",
    "tuning.defaults-fail": ("the benchmark does not run with its defaults", "{why}", ""),
    "tuning.fails-now": ("the benchmark ran before and fails now", "{why}", ""),
}
