"""What became of a case as a whole."""

_AGAIN = (
    "run it as the references expect, or make references of this launch with `clustergate baseline`"
)
_BASELINE = "make references of this effort with `clustergate baseline`"
_EFFORT = "{where} is for {foreseen}, but this ran {ran}"

WORDS = {
    "coverage.fewer-cores": ("{where} expects {foreseen}, and {ran}", "{has}", _AGAIN),
    "coverage.less-memory": (
        "{where} is for N={foreseen}, but this run solved N={solved}",
        *("{partition} has memory for N={held} now{because}", _AGAIN),
    ),
    "coverage.one-node": (
        "the references expect {foreseen:names}, but the mode {mode} runs it on one node of "
        "{partition}",
        "`--mode maintenance` runs it on all of them",
    ),
    "coverage.excluded-nodes": (
        "the references expect {foreseen:names}, but {partition} has {nodes:node|nodes} besides "
        "{excluded:excluded one|excluded ones}"
    ),
    "coverage.no-figure": "{where} expects {foreseen}, but the run yielded no such figure",
    "coverage.lacks-case": (
        "{where} expects {what}, which the site config does not have",
        "bring back what is gone, or remove these references",
    ),
    "coverage.lacks-figures": (
        "{where} expects {figures:names}, which {what} did not yield",
        "see why the benchmark left them out, or remove these references",
    ),
    "coverage.set-by-hand": _EFFORT + ", as -S asked for",
    "coverage.other-effort": _EFFORT,
    "coverage.untuned": (
        _EFFORT,
        "its tuning is gone from the site config",
        f"write it back, as in docs/hpl-tuning.md, or {_BASELINE}",
    ),
    "coverage.tuned-since": (
        _EFFORT,
        f"{_BASELINE}, or take the tuning out of the site config",
        "",
    ),
    "output.unreadable": "the output {source} cannot be read: {why}",
    "job.exit-status": "the job ended with exit status {status}",
    "job.crashed": (
        "{program} ended with {how}{who}, in launch {launch}",
        "{last}",
        "the rest is in {folder}, in the files stdout and stderr",
    ),
    "job.ended": ("{sentence}", "the scheduler ended the job", "ask it why: sacct, qstat -x"),
    "job.in-the-peaks": (
        "after {launches:launch|launches} {host} was still measuring its peaks",
        "that takes seconds, on hundreds of cores minutes: other programs have them, or it is slow",
        "see what runs on {host}, or raise the time limit (`-S time_limit=…`)",
    ),
    "job.first-node": "the first node it complains of: {why}",
    "job.last-words": "its last line on standard error: {words}",
    "job.few-launches": (
        "the job launched {launches:time|times} instead of {expected} and reports no error",
        "look at its script and its output",
    ),
    "job.excluded-node": (
        "the job was given {host}, which {source} excludes {why}",
        "keep it out by an option of the scheduler",
    ),
    "job.other-files": (
        "{node} lacks, or has with other contents than the first node, what ranks loaded: "
        "{files:names}",
        "an update reached some of the nodes, or something was mounted or written there",
        "install the same on all nodes of the partition, or make two partitions of them",
    ),
    "job.beside-the-fabric": (
        "{sentence}",
        "the MPI library fell back to another network",
        "look for a driver that is not loaded, a port that is down, or a library built without "
        "that fabric",
    ),
    "run.empty": (
        "nothing was measured",
        "see that checks and stacks are there and selected",
    ),
    "case.missing": (
        "it should have run on {where} and did not",
        "see that the check files load, that the stack is in the site config, and that no option "
        "deselects it",
    ),
    "case.not-loaded": "{why}",
    "case.other-mode": (
        "it ran with the effort of the mode {ran}, and {asked} was asked for",
        "name the mode by --mode alone, not by -- -S mode=…",
    ),
    "case.unavailable": "{why}",
    "case.failed": "{why}",
    "case.failed-in-phase": "{why} (in ReFrame's phase {phase})",
    "case.full-disk": (
        "No space left on device for {folder}",
        *("the job could not write its output or its proof", "free some space and run again"),
    ),
    "case.nothing-judged": (
        "nothing of what it measured is judged ({names:names})",
        *("", "give its rows a rate or a time by another name, with a direction"),
    ),
    "case.no-figures": (
        "it ran and left no figure",
        "look at its settings, its script and its output",
    ),
}
