"""What was typed, named or read from a file and cannot be used."""

_HOME = "free some space, or name another folder in CLUSTERGATE_HOME, and run the command again"

WORDS = {
    "run.no-summary": (
        "the run {run} has no summary",
        "it is not finished, or another version made it",
        "`clustergate check --resume {run}` goes on with it; its files are in {folder}",
    ),
    "run.no-page": (
        "the run {run} has no page",
        "it is not finished, or it failed",
        "its files are in {folder}",
    ),
    "prune.running": "it is running",
    "prune.baseline": "from the days of the baseline of {system}",
    "prune.last-open": "the last gate of {system} that opened",
    "prune.young": "it started after {before}",
    "prune.newest": "among the newest {newest} of their system and mode",
    "input.unknown-name": ("unknown {kind} {name!r}", "known: {known:list}"),
    "input.process-counts": ("process counts are a list such as 2,3,5", "this is not: {named!r}"),
    "input.too-small": "{name} must be at least {least}, not {value}",
    "input.since": (
        "{text!r} is no date, time or run",
        "write a day such as 2026-11-03, 2026-11-03T14:00, the name of a run, or 12h or 7d ago",
    ),
    "file.unreadable": ("{path} cannot be read", "{why}", ""),
    "file.unwritable": ("{path} cannot be written", "{why}", ""),
    "file.not-created": ("{path} cannot be created", "{why}", _HOME),
    "file.not-text": ("{path} is not a text file", "byte {byte} is not UTF-8", ""),
    "yaml.damaged": ("not YAML", "{why}", ""),
    "yaml.alias": ("an alias repeats this value", "write the value out instead"),
    "yaml.tag": "the tag {tag!r} has no meaning here",
    "yaml.value": "{value!r} is not a value of YAML's {tag!r}",
    "yaml.merge": ("a merge (<<) hides the keys that it adds", "write them out"),
    "yaml.key": (
        "the key {key!r} is not a string in YAML, so ReFrame never matches it",
        "put it in quotation marks",
    ),
    "yaml.key-twice": "the key {key!r} is in line {line} already",
    "folder.missing": (
        "{variable} names {folder}, which is not a folder",
        "correct it, or unset it",
    ),
}
