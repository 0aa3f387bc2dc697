"""Make docs/reasons.md of all words: ``python -m tools.reasons > docs/reasons.md``."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from string import Formatter

from clustergate.core.reasons import registry
from clustergate.judge.rules import FIGURE_REGRESSION

_HEAD = """# Reasons: codes, causes, remedies

Every verdict, complaint, disturbance and error has a code, which never changes its meaning. The
terminal prints the sentence alone; the code stands beside it and its facts in what `--json`
prints, in `verdicts.json` and `cases/*.json` of a run, and at the end of a failure in
`junit.xml`. To look a sentence up, search this page for a few of its words.

A name in angle brackets stands for a fact of that name. So `figure.regression`,

> {template}

becomes

> {sentence}

Where a cause or a remedy is in *italics*, the message leaves it out: its sentence tells it
already, or names the file, line or option to correct, or stands beside another reason that has
the remedy. A sentence without a code is of a run that was stored before there were codes.

This page is made by `python -m tools.reasons > docs/reasons.md`.
"""
_EXAMPLE = FIGURE_REGRESSION(
    value=0.83,
    unit="us",
    ratio=2.441,
    reference=0.34,
    origin="measured on 5 days",
    bound=0.68,
)
TOPICS: Mapping[str, str] = {
    "Verdicts of figures and groups": (
        "again baseline change distance expectation figure figures group launches limit reference"
    ),
    "Launches and what disturbs them": "launch node",
    "Jobs and cases": "case coverage job",
    "Proof of a launch": "proof",
    "Outputs of benchmarks": "output",
    "Screening and gate": "contest gate promise roll screening software",
    "Input and files": "file folder hpl hpl-dat input prune sizing yaml",
    "Commands": (
        "added command doctor dry-run fleet home machine open option reframe resume rows site-scan "
        "sweep web"
    ),
    "Site configs and schedulers": "flux lscpu pbs pipeline site slurm wish",
    "Hostfiles, layouts, plans": "allocation hostfile layout plan",
    "Stacks": (
        "apt archive compiler disk lock manifest modules path program release source spack stack "
        "wheels"
    ),
    "Stored runs, comparisons, golden builds": (
        "check compare contender export golden history nodes package run store"
    ),
    "Sessions of ReFrame suites": "judge suite",
    "Reference files": "anchors expect references schema statistics tolerance",
    "Other errors": "derived error",
}
"""The sections of the page: what the codes in each begin with."""
# How facts of a form are shown that is more than their name; of others it is `<name>`.
_SHOWN = {
    "percent": "<{}> %",
    "whole_percent": "<{}> %",
    "change": "<{}> %",
    "compared": "<{}> % above or below",
    "cost": "<{}> % slower or faster",
    "ranks": "ranks <{}>",
    "launches": "launches <{}>",
    "cores": "cores <{}>",
    "of": " of <{}>",
}


def readable(template: str) -> str:
    """Return words with ``<name>`` for each fact, in Markdown."""
    shown = ""
    for text, name, form, quoted in Formatter().parse(template):
        shown += text
        if name is None:
            continue
        _, counted, several = (form or "").partition("|")
        if counted:
            shown += several if str(form).startswith("~") else f"<{name}> {several}"
        else:
            one = _SHOWN.get(form or "", "<{}>").format(name)
            shown += f"'{one}'" if quoted else one
    # Outside of code spans a bracket would begin an HTML tag.
    parts = shown.split("`")
    return "`".join(p if k % 2 else p.replace("<", r"\<") for k, p in enumerate(parts))


_STATED = "nothing: a statement, not a fault"
_CORRECT = "correct the line that the message names"
_LAUNCHED_AGAIN = "free the node of other work, and run again; `doctor` shows who uses it"
_ASK_OTHERWISE = (
    "give the option a value that the message allows; `--help` of the command tells which"
)
_CONFIG = (
    "correct the site config at the place that the message names "
    "(`site_configs/template.py` names each key)"
)
_REFERENCES = (
    "correct the reference file at the line that the message names (`references/README.md`)"
)
_RERUN = (
    "run it again; where it stays, look at that line: another writer, a full disk, "
    "or an unknown version of the program"
)
GENERAL: Mapping[str, str] = {
    "suite.judge-yaml": "correct the file",
    "suite.units": "nothing: it is compared again once five sessions have the new unit",
    "suite.not-run": "see that the session was to run them: -n, -t and -x of ReFrame choose",
    "*.capped*": "raise the limit that the message names, or ask for less",
    "job.no-time": "raise the limit that the message names",
    "*.as-expected": _STATED,
    "*.as-last": _STATED,
    "software.*": _STATED,
    "gate.all-judged": _STATED,
    "gate.all-waived": "take a waiver out of the site config: something must be judged",
    "gate.not-judged": "see each of these cases' own reasons",
    "gate.nothing-known": "you decide; `clustergate baseline` makes references for the next time",
    "gate.inconclusive": _STATED,
    "promise.hides": "nothing: a statement; more days in the baseline make it smaller",
    "gate.no-reference": _STATED,
    "gate.*worse*": "see which figures: the report has them, worst first",
    "contest.jobs-missing": "read the end of that log, mend the cause, and run the gate again",
    "baseline.few*": _ASK_OTHERWISE,
    "figure.same-measurement": _STATED,
    "group.inconclusive": "run on more days, and take a new baseline: it shows smaller changes",
    "figure.part": "see that set, which is told as a whole",
    "figure.unmeasured": _RERUN,
    "*.excused": _LAUNCHED_AGAIN,
    "figures.more-doubtful": "`show RUN --json` lists them all",
    "change.again*": "find what changed since then, or measure the node alone",
    "change.not-again": "nothing: it is counted; `clustergate history` shows how often",
    "history.was-slower": _STATED,
    "history.n*": _STATED,
    "compare.slower": "find what changed between the two runs",
    "again.*": "nothing: a part of a sentence, which has the command that confirms",
    "gate.slow-once": "nothing: a statement, not a fault",
    "reference.none": "after five runs over an hour, `clustergate baseline` makes references",
    "limit.not-reached": "do not trust this figure: look at what the message names",
    "pipeline.*": "correct the pipeline's file, or write the site config",
    "coverage.set-by-hand": "nothing, as it was asked for: without `-S` the references hold",
    "coverage.*": (
        "have the case run as the references expect, or make new ones with `clustergate baseline`"
    ),
    "node.waiting": "wait, or free the node; `--wait 0s` does not wait",
    "node.*cores": (
        "nothing on a virtual machine; elsewhere bind the job to the same cores as the baseline's"
    ),
    "node.*": _LAUNCHED_AGAIN,
    "case.unavailable": "what it names is to be set up, where the case is wanted",
    "case.*": "read `reframe.out` and the case's own output in the run's folder",
    "job.*": "see the reason beside it, and the job's output in the run's folder",
    "launch.job-ending": (
        "raise the time limit (`-S time_limit=…`) where the job was ended for its time"
    ),
    "launch.too-long": "look for a hung rank; raise the time limit where the work was too much",
    "launch.*": "run the command by hand, as the case's record has it",
    "proof.*cpus": "look at the launcher's binding, and at what set its affinity (cgroup, taskset)",
    "proof.*blas*": "unset the variable in the site's environment, or export it to all ranks",
    "proof.*threads": "export OMP_NUM_THREADS to all ranks, and see that the program is threaded",
    "proof.*ranks": (
        "see on that node what the rank waits for (`cat /proc/PID/stack`), and drain the node"
    ),
    "proof.*node*": "see that the scheduler's node list or the hostfile reaches the launcher",
    "proof.strange-hosts": (
        "see that the scheduler's node list or the hostfile reaches the launcher"
    ),
    "proof.shared-cores*": "ask for fewer ranks a node, or mend the launcher's binding",
    "proof.stuck-in-init": (
        "see whether the nodes reach each other by the interface that the MPI library chose"
    ),
    "proof.no-date": _RERUN,
    "output.no-column*": _ASK_OTHERWISE,
    "output.bad-value": _ASK_OTHERWISE,
    "output.no-direction": (
        "state the metric in the benchmark's descriptor ([how](adding-a-benchmark.md))"
    ),
    "output.figure-twice": (
        "give the rows conditions that stand in names ([how](adding-a-benchmark.md))"
    ),
    "output.closed": "nothing: the reader of the pipe has ended",
    "output.*": _RERUN,
    "screening.no-faults": _STATED,
    "screening.too-few": "judge these few by `check` and references",
    "screening.worse-than-last": (
        "screen again; where it stays, compare the nodes' states (`fleet`)"
    ),
    "screening.stranger": "remove that result, or screen the node, too",
    "screening.*": "screen again, with the nodes that were not measured",
    "allocation.*": "start it in an allocation that holds these nodes, or name a hostfile",
    "slurm.*": "see what `scontrol` prints there; name the nodes in a hostfile meanwhile",
    "wish.*": (
        "name one that there is: `sinfo`, `sacctmgr show` and `scontrol show reservation` list them"
    ),
    "hostfile.too-few-nodes": "ask for fewer ranks a node, or list more nodes",
    "hostfile.*": _CORRECT,
    "layout.*": "write `hostfiles/SYSTEM`",
    "plan.*": "run the case again: its log was damaged",
    "file.*": "see that the file is there, is text, and may be read or written by you",
    "rows.unwritable": "free some space, or name another file",
    "yaml.*": _CORRECT,
    "schema.*": _CORRECT,
    "site.missing": (
        "`clustergate site scan NAME` makes one; `clustergate list systems` names those there are"
    ),
    "site.no-node-left": "take a node back in, or name other ones",
    "site.*": _CONFIG,
    "dry-run.*": _CONFIG,
    "references.*": _REFERENCES,
    "statistics.*": _REFERENCES,
    "derived.*": (
        "measure what it lacks (more sizes, process counts or stacks), or ask for another quantity"
    ),
    "sizing.*": _ASK_OTHERWISE,
    "input.*": _ASK_OTHERWISE,
    "option.*": _ASK_OTHERWISE,
    "compare.*": "name another run (`clustergate list runs`), or another margin",
    "contender.unavailable": "set that stack up (`clustergate setup`)",
    "nodes.stated-*": "nothing: correct the site config where it is not so",
    "expectation.met": "nothing: it is met",
    "expectation.tolerated": "nothing: it is met",
    "expectation.elsewhere": "nothing: run that mode, that stack or as many nodes to compare it",
    "gate.expectations": "nothing: a statement, not a fault",
    "contender.*": "leave that variable out",
    "golden.unavailable": "set that stack up (`clustergate setup`)",
    "prune.not-removed": "remove that folder by hand",
    "prune.*": "nothing: it is kept",
    "run.*": "restore the file from a copy of the run, or run again",
    "machine.unrecorded": "compare runs that recorded it",
    "program.*": "`clustergate setup --applications npb` (or another) provides it",
    "doctor.unavailable": "set up what is missing, as the line says",
    "stack.*": "mend what the sentence names, and run `clustergate setup` again",
    "source.other-checksum": (
        "get the file from its publisher anew: this one is not what was pinned"
    ),
    "source.*": "put the file into a folder, and name that in CLUSTERGATE_SOURCES",
    "archive.*": "remove the file, and get it anew",
    "apt.*": "have an administrator install the packages that `doctor` names",
    "spack.*": "correct the stack's settings in the site config ([how](spack.md))",
    "lock.*": "lock anew (`spack-repo/README.md`)",
    "wheels.unpinned": "restore the requirements file from the release",
}
"""What to do about reasons whose messages do not say it: by patterns of codes, the first holds."""


def _in_general(code: str) -> str:
    return next(f"*{said}*" for one, said in GENERAL.items() if fnmatch.fnmatchcase(code, one))


def page() -> str:
    """Return the page; raises ValueError for codes that no section of it would show."""
    words = registry()
    shown = {topic for topics in TOPICS.values() for topic in topics.split()}
    if untold := sorted(code for code in words if code.partition(".")[0] not in shown):
        raise ValueError(f"add the topic of {', '.join(untold)} to TOPICS in tools/reasons.py")
    template = readable(FIGURE_REGRESSION.statement)
    lines = [_HEAD.format(template=template, sentence=_EXAMPLE.without_remedy)]
    for title, topics in TOPICS.items():
        lines += [
            f"## {title}\n",
            "| code | what it says | cause | what to do |",
            "|---|---|---|---|",
        ]
        for code in sorted(one for one in words if one.partition(".")[0] in topics.split()):
            of = words[code]
            says, cause, remedy = map(readable, (of.says, of.cause, of.remedy))
            cells = (f"`{code}`", says, cause or "*as it says*", remedy or _in_general(code))
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
