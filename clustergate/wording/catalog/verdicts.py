"""Verdicts of figures and groups."""

_AGAINST = "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin})"
_EXPECTED = "{name} {value:number} {unit} is {ratio:compared} {expected:number} ({source})"
_FIND = "find what changed since then, or measure the node alone"
_OTHER_UNIT = "is it in another unit, Tflop/s for Gflop/s, or from another machine or problem size?"
_SLIPPED = (
    "{benchmark} is about {times:.0f} times {how} than {figures:~its reference|all its references}"
)
_GROUP = "{ratio:cost} than before, less what its neighbours are"
_SLOWER = "{by:percent} slower than {than}, usually within {usual:percent}"

_TELL_DISTANCES = "tell it by Slurm's topology.conf, or by switch= and rack= in the hostfile"

WORDS = {
    "figure.no-number": ("the value is {value}", "look at the output"),
    "figure.nothing": (
        "{value:number} {unit} has no ratio to the reference {reference:number} {unit} ({origin})",
        "look at the output: did the benchmark do its work, and does its clock resolve it?",
    ),
    "figure.unmeasured": "the benchmark printed {word!r} instead of a result",
    "figure.out-of-memory": (
        "the benchmark printed {word!r} instead of a result",
        "allow more with -- -S memory_gb=…, or leave the size out with -- -S largest_bytes=…",
    ),
    "figure.timed-out": (
        "the benchmark printed {word!r} instead of a result",
        "give each size more time with -- -S time=…, or leave this one out with "
        "-- -S largest_bytes=…",
    ),
    "figure.integer-overflow": (
        "the benchmark printed {word!r} instead of a result",
        "leave the size out with -- -S largest_bytes=…",
    ),
    "limit.exceeded": (
        "{value:number} {unit} exceeds the physical limit of {limit:number}; {why}",
        "do not trust this figure; check clocks, timers and what else ran on the node",
    ),
    "limit.not-reached": (
        "{value:number} {unit} is below the physical limit of {limit:number}; {why}"
    ),
    "reference.none": "no reference; checked against physical limits only",
    "reference.unbounded": (
        _AGAINST + ", which sets no bound on the worse side",
        "add one",
    ),
    "reference.wrong-unit": (
        "the figure is in {unit!r} and its reference in {reference_unit!r} ({origin})",
        "correct the reference",
    ),
    "reference.far-off": (
        "{value:number} {unit} is {times:number} times better than the reference "
        "{reference:number} {unit} ({origin})",
        *(_OTHER_UNIT, "correct {where}"),
    ),
    "reference.outgrown": (
        _AGAINST + ": an unchanged machine gains {most:.2f} x at most",
        "the reference is wrong, or the machine was changed",
        "accept it: `clustergate baseline --accept-better '{figure}'`, after five new runs",
    ),
    "reference.bits": (
        _SLIPPED,
        "that looks like bits for bytes",
        "correct {where}",
    ),
    "reference.slipped-point": (
        _SLIPPED,
        "that looks like a slipped decimal point",
        "correct {where}",
    ),
    "reference.slipped-prefix": (
        _SLIPPED,
        "that looks like a slipped prefix, Tflop/s for Gflop/s",
        "correct {where}",
    ),
    "reference.beyond-limit": (
        "the reference itself exceeds the physical limit of {limit:number} ({why})",
        *(_OTHER_UNIT, "see {where}"),
    ),
    "reference.other-processor": (
        "the reference was measured on another processor",
        "{there} then, {here} now; a faster one would hide a slow-down",
        "take a baseline on this processor, or judge it as a system of its own; see {where}",
    ),
    "reference.unknown-processor": (
        "the reference was measured on {there}, and the nodes did not tell their processors",
        *("", "see why the job's node states are missing; see {where}"),
    ),
    "reference.other-nodes": (
        "the reference was measured on {there:node|nodes} and this on {here:node|nodes}",
        "the site config had other cores in a node, so that as many ranks lay otherwise",
        "take a new baseline; see {where}",
    ),
    "reference.smaller-matrix": (
        "the reference is of a matrix of order {there}, and this of one of {here}",
        "a larger one has a higher rate, and would hide a slow-down",
        "take a new baseline; see {where}",
    ),
    "reference.other-method": (
        "the reference was not measured in the way of this run",
        "the benchmark, or what its mode asks of it, was changed since",
        "take a new baseline; see {where}",
    ),
    "reference.doubtful": (
        "this far off, suspect the reference too",
        *(_OTHER_UNIT, "see {where}"),
    ),
    "figure.as-expected": _AGAINST,
    "figure.regression": (_AGAINST + ", beyond the tolerated {bound:number}", "", _FIND),
    "distance.unknown": (
        "nobody says how far the nodes of {cases:case|cases} are from each other: small messages "
        "are judged beside other stacks alone, from three days on",
        "",
        _TELL_DISTANCES,
    ),
    "distance.untold": (
        "nobody says how far its nodes are from each other",
        "far nodes and a slow network look alike",
        _TELL_DISTANCES,
    ),
    "distance.unseen": (
        "its nodes are of {distance}, and those of the baseline of {known:names}",
        "how far nodes are from each other decides small messages",
        "take a baseline of runs on such nodes, too",
    ),
    "figure.beyond-tolerance": (
        _AGAINST + ", beyond {bound:number}: {tolerance:percent} are tolerated",
        "",
        _FIND,
    ),
    "figure.improvement": (_AGAINST, "", "if it stays, take a new baseline"),
    "figure.inconclusive": (
        _AGAINST + ", with {bound:number} inside its {confidence:percent} interval",
        "take more launches",
    ),
    "figure.unclear": (
        _AGAINST + "; it may be {at_most:percent} slower than before",
        "",
        "more days in the baseline show smaller changes",
    ),
    "figure.outdone": (
        _AGAINST + ": {by:percent} slower than its neighbours, which became faster",
        "",
        "take a new baseline of those, or find what this one lacks",
    ),
    "figure.between": (
        _AGAINST + ": worse than what passes, and within what it tolerates",
        "",
        "see the reasons beside it: it could not be judged with the rest of the run",
    ),
    "figure.part": "part of {name}, which is {by:percent} slower",
    "figure.average-alone": (
        "the only reference is that of {other}, the average over the ranks",
        "one slow rank of many hardly moves the average",
        "take a new baseline: it has the slowest rank's time",
    ),
    "figure.same-measurement": "the same measurement as {other}, which is compared",
    "figure.too-few-launches": (
        _AGAINST + ", of too few launches",
        "",
        "take more launches",
    ),
    "figure.excused": _AGAINST,
    "expectation.met": _EXPECTED,
    "expectation.tolerated": _EXPECTED + ", and {tolerance:percent} are tolerated",
    "expectation.missed": (
        _EXPECTED,
        "",
        "measure the node alone; `clustergate history --check {check}` shows whether it ever was",
    ),
    "expectation.undecided": (
        _EXPECTED + ", less than its launches differ by ({interval:percent})",
        "",
        "more launches decide, with -- -S {check}.launches={launches}",
    ),
    "expectation.excused": _EXPECTED,
    "expectation.far-off": (
        "every {name} beats {expected:number} {unit} by {times:.0f} times or more",
        "a unit or a decimal point slipped, or it is of other launches",
        "correct {where}, or say of which it is, such as nodes: 2",
    ),
    "expectation.no-figure": (
        "no check measures {name!r}{meant}",
        "",
        "names are those of the table, or a benchmark and a size; correct {where}",
    ),
    "expectation.no-stack": (
        "{name} is of the stack {stack!r}{meant}",
        "the site config has {known:names}",
        "correct {where}",
    ),
    "expectation.not-compared": (
        "{name} was not compared for {check} with {stacks:and}",
        "{why}",
        "see why, or narrow {where}",
    ),
    "expectation.by-settings": (
        "no mode measures {name}",
        "",
        "{check} does, with -- {options}",
    ),
    "expectation.elsewhere": "{name} is of another {by}: {what:names}",
    "figures.more-doubtful": "{figures} more",
    "figure.above-peak": (
        "{benchmark} was faster than the {peak} measured right before and after it",
        "other load slowed the peak's own measurement, or a clock is wrong",
        "rely on the Gflop/s, and check what else runs there",
    ),
    "group.as-expected": _GROUP,
    "group.improvement": (_GROUP, "", "if it stays, take a new baseline"),
    "group.inconclusive": _GROUP + "; it may be {at_most:percent} slower",
    "change.slower": (_SLOWER.replace("{than}", "the rest of this run"), "", _FIND),
    "change.slower-than-before": (_SLOWER.replace("{than}", "in its baseline"), "", _FIND),
    "change.crept": (
        _SLOWER.replace("{than}", "in the first accepted baseline, since {since}"),
        "it became slower little by little",
        "find out why, or accept it: "
        "`clustergate baseline --accept-worse PATTERN --because REASON`",
    ),
    "change.again": "slow three times in a row ({each:list})",
    "change.not-again": "slow once, and not when launched again ({each:list})",
    "change.on-nodes": (
        "slow on {nodes:names} each time, and not on {others:names} ({each:list})",
        "",
        "`clustergate screen` compares the nodes",
    ),
    "change.not-confirmed": (
        "looks slow ({each:list}), which is not confirmed",
        "{why}",
        "`clustergate check --mode {mode} --check {check} --stack {stack}` launches it again",
    ),
    "again.not-asked": "--no-confirm was given",
    "again.no-time": (
        "launching it again takes about {needed_s:.0f} s, and {left_s:.0f} s are left"
    ),
    "again.no-wait": "--confirm-wait 0s lets no job wait in a queue",
    "again.queued": "its job did not start within --confirm-wait {wait_s:.0f}s",
    "again.failed": "launched again, it failed: {why}",
    "again.left-out": "ReFrame did not launch it again; its output is in {log}",
    "again.untold": "launched again {times}, it was too disturbed to tell",
    "baseline.unknown": (
        "a baseline of {days:day|days} does not tell how such figures scatter",
        "",
        "launch a golden build in turn with it (`clustergate golden pin`, `gate`), or run on "
        "more days and take a new baseline",
    ),
    "launches.slow-share": (
        "{slow} of {launches:launch|launches} {slow:~is|are} {times:.1f} x worse than the "
        "reference, and {others:is|are} not",
        "something slows launches intermittently, so the best is not representative",
        "find in the raw samples which are slow and what sets them apart: the cores and memory "
        "they were bound to, nodes, links, clocks",
    ),
    "launches.all-slow": (
        "all {launches:launch|launches} are {times:.1f} x worse than the reference",
        "",
        _FIND,
    ),
    "launches.unexcused": (
        "{cause}, which explains at most {explained:.1f} x; this is {times:.1f} x",
        _FIND,
    ),
}
