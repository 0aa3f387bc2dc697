"""What is wrong with the output of a benchmark, and what follows from its figures.

``output.wrong`` is what the parser of an added package says in its own words.
"""

_LOST = "lines are lost or damaged"

WORDS = {
    "output.wrong": "{problem}",
    "output.unreachable": (
        "{figure} of {value:number} {unit} is beyond what any machine reaches: {why}",
        "the output is damaged, or a clock was wrong; run it again",
    ),
    "output.empty": "the text is empty",
    "output.cut-off": ("the text ends before {missing}", "it was cut off", ""),
    "output.lacks": ("{missing} is missing", "the output is cut off, or lines of it are lost", ""),
    "output.not-run": ("{name} was requested and did not run", "{why}", ""),
    "output.second-run": (
        "another run begins here",
        "it was left over from an earlier run, or every rank ran alone",
        "keep one run per file",
    ),
    "output.other-run": (
        "another run: {what} {actual}, but {wanted} was requested",
        "see whether the program is a wrapper that changes its options, input or folder",
    ),
    "output.failure": "{program} reports a failure: {words}",
    "output.wrong-result": (
        "the result is wrong: {what} is {value} and must be {wanted}",
        "do not trust the figures, look for a faulty node, compiler or library",
    ),
    "output.not-checked": (
        "the results were not checked, so none counts",
        "the input has a threshold of 0 or less, or lines are lost",
        "set a positive one",
    ),
    "output.decimal-comma": ("a number with a decimal comma", "run the program with LC_ALL=C"),
    "output.damaged": (
        "not {what} as {program} prints it: {printed!r}",
        "the line is damaged, or mixed with another one",
        "",
    ),
    "output.bad-value": "{name!r} must be {wanted}, not {value}",
    "output.contradiction": ("{one} contradicts {other}", _LOST, ""),
    "output.misplaced": ("{what} stands here instead of {due}", _LOST, ""),
    "output.stray": ("{what} stands where it does not belong", "lines before it are lost", ""),
    "output.twice": ("{what} stands here a second time", "lines are lost or mixed", ""),
    "output.rows-lost": (
        "the table of {table} ends without {missing}",
        "rows are lost, or the program gave up when its time was over for another process",
        "",
    ),
    "output.sizes-cut": (
        "a message length that was requested was cut",
        "give -msglog a larger maximum",
    ),
    "output.threads": (
        "another run: {actual} threads in each process, but {wanted} were requested",
        "OMP_NUM_THREADS did not reach the ranks, or the program is a wrapper that sets it",
        "",
    ),
    "output.unreadable-here": ("cannot be read", "{why}", ""),
    "output.closed": "is closed",
    "output.compressed": (
        "this is not a benchmark's output",
        "it is compressed",
        "unpack it first, or pipe it into `clustergate parse -`",
    ),
    "output.long-line": (
        *("this is not a benchmark's output", "a line of more than {most} bytes"),
        "",
    ),
    "output.zero-byte": (
        "this is not a benchmark's output",
        "a zero byte, as a crash or a full disk leaves behind",
        "",
    ),
    "output.other-encoding": (
        "this is text in UTF-16, as PowerShell writes it",
        "convert it first: `iconv -f UTF-16 -t UTF-8 FILE`",
    ),
    "output.other-program": "this is output of {program}, which clustergate does not read",
    "output.no-energy": (
        "its thermo output has no total energy, so nothing shows that the run is right",
        "add `etotal` to its `thermo_style custom`",
    ),
    "output.data-check": (
        "{program}'s own check of the data failed: {words}",
        "do not trust the figures, look for a faulty node, adapter or library",
    ),
    "output.prefix-removed": (
        "the prefix {prefix!r} was removed from each line ({origin})",
        "capture the output without it, if the figures look mixed",
    ),
    "output.ended-by-scheduler": (
        "the job was ended from outside: {words}",
        "give it what it lacked: time, memory or another node",
    ),
    "output.may-be-kept": (
        "results may be complete before the place where it was cut off",
        "--keep-complete prints those",
    ),
    "output.nothing-complete": (
        "no result was complete before the place where it was cut off",
        "run it again",
    ),
    "output.kept-complete": (
        "the results up to there are complete and were kept",
        "run again what is missing",
    ),
    "output.unknown": "this is not output of {titles}, or its first lines are missing",
    "output.two-programs": (
        "the output of {other} begins here, behind that of {first}",
        "split the file: one program each",
    ),
    "output.nothing-printed": ("nothing was printed", "look at the job's standard error"),
    "output.no-parser": "no installed benchmark printed this",
    "output.no-table": ("this is not a CSV table", "{why}", ""),
    "output.separator": "the separator must be a comma",
    "output.no-column": "there is no column {column!r}",
    "output.no-column-to-ignore": "there is no column {column!r} to ignore",
    "output.no-sample": "there are no samples",
    "output.no-metric": "no metric",
    "output.rows-twice": (
        "from here on {rows:row stands|rows stand} in the file before as well",
        "in the same order and with the same values, as if they had been pasted twice, and would "
        "count as further launches",
        "remove them",
    ),
    "output.no-number": "the value {text!r} is not a number",
    "output.no-direction": "{benchmark}: no benchmark's metrics say which way {metric} is better",
    "output.figure-twice": (
        "two figures have the name {name}",
        "{differ} is not a part of names, so let the names of their benchmarks differ",
        "",
    ),
}
