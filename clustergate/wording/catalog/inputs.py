"""What was typed, named or read from a file and cannot be used."""

WORDS = {
    "run.unfinished": (
        "the run {run} has no {lacks}",
        "it was interrupted, or it failed",
        "run `clustergate {command}`; its files are in {folder}",
    ),
    "run.not-begun": (
        "the run {run} has no {lacks}",
        "none of its stacks could be set up, or it was interrupted before they were",
        "fix what `clustergate doctor` reports, then run `clustergate {command}`; its files are in "
        "{folder}",
    ),
    "run.goes-on": (
        "the run {run} has no {lacks} yet",
        "it is still running",
        "wait until it has ended; {folder}/reframe.out shows how far it has got",
    ),
    "run.no-summary": (
        "the run {run} has no {lacks}",
        "`reframe` ran by itself, or what made it ended early",
        "`clustergate history --all` has the figures of what ran; its files are in {folder}",
    ),
    "prune.running": "still running",
    "prune.baseline": "from the days of the baseline of {system}",
    "prune.last-open": "the last gate of {system} that opened",
    "prune.young": "started after {before}",
    "prune.not-removed": "could not be removed: {why}",
    "prune.newest": "among the newest {newest} of their system and mode",
    "input.no-name": (
        "{name!r} is no name of a {kind}",
        "a name is neither empty nor a path",
        "if a variable stands for it, see that it is set",
    ),
    "input.unknown-name": ("unknown {kind} {name!r}", "known: {known:list}"),
    "input.process-counts": ("process counts are a list such as 2,3,5", "this is not: {named!r}"),
    "input.too-small": "{name} must be at least {least}, not {value}",
    "input.too-large": "{name} must be at most {most}, not {value}",
    "input.not-positive": "{name} must be positive, not {value}",
    "input.no-share": "{name} must be above 0 and at most 1, not {value}",
    "input.no-power-of-two": "{name} must be a power of two, not {value}",
    "input.too-many": "{program} takes {least} to {most} {name}, not {count}",
    "input.not-taken": "{name} is {wanted}, not {value!r}",
    "input.no-option": (
        "{program} has no option for {name}",
        "leave it out, or name the check that should get it, as in -S {check}.{name}=…",
    ),
    "input.map": "a map of {map} needs {needed} processes and there are {ranks}",
    "input.process-rule": "{name} runs on {rule} of processes, and {asked} were asked for",
    "input.line-too-long": (
        "line {number} of the input has {characters} characters, and {program} reads {most}",
        "give fewer values",
    ),
    "hpl-dat.ends": ("{source} ends after line {lines}", "{program} reads {needed}"),
    "hpl-dat.no-number": (
        "{program} finds no {wanted} in `{line}`",
        "see that no line is missing above, and that all values of the count are there",
    ),
    "hpl-dat.wrong": (
        "the input is not run as it stands",
        "{why}",
        "correct it; `clustergate hpl-input FILE` says all of it",
    ),
    "hpl-dat.no-effect": ("{option} has no effect on a FILE", "leave it out"),
    "hpl-dat.settings": (
        "-S input and {names} contradict each other",
        "the file says them already",
        "leave one out",
    ),
    "hpl.ranks-and-cores": (
        "hpl={{…}} of the site config has {ranks} ranks for the {cores} cores of a node",
        "name a number that divides the cores",
    ),
    "hpl.tuned-gone": (
        "the setting tuned is gone",
        "what it was stands in the site config, as `stack(…, hpl={{…}})`",
        "docs/hpl-tuning.md",
    ),
    "sizing.other-ranks": (
        "a {grid} grid is of {needed} ranks, and {ranks} are launched",
        "set the ranks, too: -S ranks={needed}",
    ),
    "sizing.too-short": (
        "{seconds:g} s at {gflops:g} Gflop/s are too short for N={n}, the smallest problem",
        "allow more time",
    ),
    "sizing.no-rate": "a time budget needs the rate to expect, in Gflop/s",
    "sizing.idle-processes": (
        "N={n} is too small for a {p} x {q} grid with NB={nb}",
        "below N={smallest} some processes have nothing to do",
        "allow more memory or time, fewer processes or a smaller NB",
    ),
    "sizing.little-memory": (
        "{memory} bytes of memory hold no matrix of order N={n}, the smallest at {share:.3g} of "
        "the bytes",
        "allow more memory or a smaller NB",
    ),
    "sizing.unpaired": "an input needs as many values of P as of Q",
    "sizing.unchecked": (
        "with the residual threshold {threshold} {program} checks no result",
        "it must be positive",
    ),
    "sizing.caches-unknown": (
        "how many bytes flush the caches is not known",
        "state cache_bytes_per_node in the site config, or flush_bytes for each rank",
    ),
    "sizing.in-the-caches": (
        "{elements} elements for each of {ranks} ranks may not leave the caches",
        "take {fewest} at least",
    ),
    "sizing.beyond-memory": (
        "three arrays of {elements} elements for each of {ranks} ranks take {needed} bytes, more "
        "than {share:whole_percent} of the node's memory"
    ),
    "input.since": (
        "{text!r} is no date, time or run",
        "write a day (2026-11-03), a time (2026-11-03T14:00), a run (last, or its id), "
        "or an age (12h, 7d)",
    ),
    "file.unreadable": ("{path} cannot be read", "{why}", ""),
    "file.unwritable": (
        "{path} cannot be written",
        "{why}",
        "write elsewhere, or have it opened to you",
    ),
    "file.no-locks": (
        "{path} cannot be locked",
        "its file system ({kind}) has no locks",
        "name a folder of another one in CLUSTERGATE_HOME, or mount it with locks (Lustre: flock)",
    ),
    "file.not-text": ("{path} is not a text file", "byte {byte} is not UTF-8", ""),
    "yaml.damaged": ("not YAML", "{why}", ""),
    "yaml.alias": ("an alias repeats this value", "write the value out instead"),
    "yaml.tag": "the tag {tag!r} has no meaning here",
    "yaml.value": "{value!r} is not a value of YAML's {tag!r}",
    "yaml.number": ("YAML reads {value} as {read:number}", "write it without a leading 0 or colon"),
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
