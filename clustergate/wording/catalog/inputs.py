"""What was typed, named or read from a file and cannot be used."""

_HOME = "free some space, or name another folder in CLUSTERGATE_HOME, and run the command again"

WORDS = {
    "input.unknown-name": ("unknown {kind} {name!r}", "", "known: {known:list}"),
    "input.process-counts": (
        *("process counts are a list such as 2,3,5", ""),
        "this is not: {named!r}",
    ),
    "input.too-small": ("{name} must be at least {least}, not {value}", "", ""),
    "input.since": (
        *("{text!r} is no date, time or run", ""),
        "write a day such as 2026-11-03, 2026-11-03T14:00, the name of a run, or 12h or 7d ago",
    ),
    "run.none-selected": (
        *("no stored run has a figure of this selection", ""),
        "the runs are in {folder}",
    ),
    "file.unreadable": ("{path} cannot be read", "{why}", ""),
    "file.not-created": ("{path} cannot be created", "{why}", _HOME),
    "file.not-text": ("{path} is not a text file", "byte {byte} is not UTF-8", ""),
    "folder.missing": (
        "{variable} names {folder}, which is not a folder",
        *("", "correct it, or unset it"),
    ),
}
