"""What the gate holds for and against opening."""

_USUAL = "{measure} is typically {now:number} {unit}, and was {before:number} on {when}"

WORDS = {
    "screening.finding": (
        "{sentence}",
        "it is significantly slower than the others",
        "repair or exclude it",
    ),
    "screening.doubt": (
        *("{sentence}", "too noisy, or measured too seldom"),
        "give `clustergate gate` a larger --budget, with less running beside it",
    ),
    "screening.incomplete": "{sentence}",
    "screening.astray": (
        "{sentence}",
        "",
        "put that right, or exclude those nodes in the hostfile",
    ),
    "screening.unmeasured": "some {what}s were not measured: {names:list}",
    "screening.not-ended": (
        "it did not finish",
        "`clustergate gate` screens again; reframe.out in the run's folder says why it ended",
    ),
    "screening.no-faults": "{nodes} {what}s, no faults found",
    "screening.too-few": (
        "fewer than three {what}s (here {nodes}) do not show which is slow; the benchmarks are "
        "what counts"
    ),
    "screening.none-before": (
        "no earlier screening of these {what}s has {measures:and}",
        "what slowed all of them down alike shows in the benchmarks' references alone",
        "`clustergate screen` before the next maintenance gives its gate one to compare with",
    ),
    "screening.as-last": _USUAL,
    "screening.worse-than-last": (_USUAL + ": {worse_by:whole_percent} worse on all {what}s alike"),
    "screening.worse-in-noise": (
        _USUAL + ": {worse_by:whole_percent} worse on all {what}s alike",
        "that is much, and yet within what launches of a pair or {what} scatter by",
        "`clustergate gate` again while nothing else runs, with a larger `--budget`: more launches",
    ),
    "screening.worse-than-ever": (
        "{measure} is typically {now:number} {unit}: {worse_by:whole_percent} worse on all {what}s "
        "alike than on {days:earlier day|earlier days}, usually within {usual:percent}"
    ),
    "gate.another": (
        "the gate {run} of {system} is still running (by {by})",
        "two at once take the nodes from each other, and neither could judge",
        "wait until it has ended, and see its answer by `clustergate show {run}`; or interrupt it, "
        "and run this one again",
    ),
    "gate.not-resumed": (
        "a gate is not resumed",
        "what it found would be of another moment",
        "`clustergate gate` measures anew",
    ),
    "gate.expectations": "{met} of {of:expectation|expectations} met",
    "gate.slow-once": "{count:figure was|figures were} slow once, and not when launched again",
    "gate.inconclusive": (
        "{count} of {of} figures too noisy to tell, or slow in most launches ({where})",
        "give the gate more budget, for more launches, or free the nodes of other work",
    ),
    "gate.no-reference": (
        "{count} of {of} figures have nothing to compare with ({where})",
        "make references with `clustergate baseline`",
    ),
    "gate.as-expected": "{figures:figure is|figures are} as expected",
    "gate.by-control": (
        "{count} of {of} figures have no reference ({where}) and rest on {by}",
        "none of them was compared itself",
        "`clustergate baseline` makes references",
    ),
    "gate.all-judged": "{cases} of {cases:case|cases} {cases:~was|were} judged",
    "gate.left-out": ("{cases}", "{why}", "{remedy}"),
    "gate.not-judged": "{missing} of {cases:case|cases} {missing:~was|were} not judged",
    "gate.worse-than-last": (
        "{figure} is {worse_by:percent} slower, usually within {usual:percent}",
        "",
        "find what changed since then, or measure the node alone",
    ),
    "gate.more-worse": "{figures:more is|more are} worse",
    "gate.far-worse": (
        "{figures:figure|figures} may be far worse: {figure} is {times:number} times worse",
        "two runs do not tell by how much runs differ here",
        "`clustergate gate` again while nothing else runs, with more launches of that check "
        "(`-- -S CHECK.launches=10`)",
    ),
    "gate.none-in-both": (
        "no figure is in both; the references judge alone",
        "the run measured other figures than this gate",
        "name a run of the maintenance mode with `--before`, or leave it out for the last one",
    ),
    "gate.before-lacks": (
        "it has nothing of {cases:names}, so these were not compared with it",
        "",
        "`clustergate check --mode maintenance` makes a run that has everything",
    ),
    "gate.lacks-of-before": (
        "it has {cases:names}, of which this run has nothing",
        "a stack, a partition or a check is gone since",
        "bring it back, or see that nobody misses it",
    ),
    "gate.gone-since": (
        "the site config lacks {cases:names}, which the gate judged in run {run}",
        "bring it back, waive it in the site config with the reason, or accept it for good by "
        "`clustergate gate --before {this}`",
    ),
    "gate.as-last": "none of {figures:figure|figures} is slower than unchanged machines are",
    "gate.last-unjudged": (
        "{figures:figure|figures} not judged",
        "two runs of nodes that others use, too, do not tell how their days differ",
        "`clustergate baseline` makes references of five runs, which do",
    ),
    "gate.incomparable": (
        "it cannot be compared: {why}",
        "",
        "name another run with `--before`, or leave it out for the last one",
    ),
    "software.same": (
        "the same build as the golden one of {pinned} (sha256 {sha256}), in every file and setting"
    ),
    "software.system-changed": (
        "libraries of the operating system that its ranks map are not those of the golden build's "
        "day: {files:names}",
        "no golden build shows what that does; the references judge it",
    ),
    "software.mapped-otherwise": (
        "on the nodes its ranks map files that the golden build's ranks did not, or that were "
        "others where it was pinned: {files:names}",
        "no golden build shows what that does; the references judge it",
        "if they are as accepted, `clustergate golden unpin {stack}` and pin it on a node",
    ),
    "software.settings-changed": (
        "the site's launch settings have changed since the golden build was pinned: "
        "{settings:list}",
        "no golden build shows what that does; the references judge it",
    ),
    "software.slower": (
        "{figure} takes {ratio:.2f} x as long as with the golden build ({confidence:percent} "
        "interval: {low:.2f} to {high} x), after {rounds} rounds of both in turn "
        "({node_seconds:.0f} node-seconds)",
        "what differs between both builds: `clustergate golden list` names it",
        "go back to the golden build, or pin the new one when it is meant to be slower",
    ),
    "software.somewhat-slower": (
        "{figure} is surely slower than with the golden build ({confidence:percent} interval: "
        "{low:.2f} to {high} x), probably by less than {margin:whole_percent}",
        "that is decided, and too little to keep the gate closed; more rounds would not open it",
        "go back to the golden build or accept it: `clustergate golden unpin {stack}`, then `pin`",
    ),
    "software.undecided": (
        "{figure} takes {low:.2f} to {high:.2f} x as long as with the golden build "
        "({confidence:percent} interval), so a slowdown by {margin:whole_percent} is not ruled out",
        "{needs}",
    ),
    "software.maybe-faults": (
        "{figure} mostly takes as long as with the golden build ({ratio:.2f} x), but that a third "
        "of today's launches are slow is not ruled out",
        "some of them took longer, half as long again where rounds scatter, or they are too few",
        "{needs}",
    ),
    "software.more-undecided": (
        "of {figures:further figure|further figures} a slowdown is not ruled out either",
        "the same rounds would probably decide them",
    ),
    "software.now-and-then": (
        "{name}: {slow_b} of {rounds} launches took more than 3.5 x as long as usual, and {slow_a} "
        "of the golden build's",
        "today's build is slow, always or intermittently",
        "go back to the golden build; the samples of the gate's run name the launches",
    ),
    "software.untold": (
        *("{figures:names} could not be compared with the golden build", "{why}"),
        "{remedy}",
    ),
    "software.nothing-compared": (
        "nothing of the golden build and today's could be compared",
        "see that both have a benchmark that `clustergate ab` knows",
    ),
    "software.no-time": (
        "today's build is not the golden one ({differing:names}), and {left_s:.0f} s of the budget "
        "are too little to launch both in turn",
        "it takes up to {wanted_s:.0f} s",
        "give the gate more budget",
    ),
    "software.as-golden": (
        "nothing was found slower than with the golden build in {rounds} rounds of both in turn "
        "({node_seconds:.0f} node-seconds): ruled out are slowdowns by {ruled_out:whole_percent} "
        "of each of {wholes:benchmark|benchmarks}, and of each of "
        "{sizes:single size|single sizes}{absent}"
    ),
    "contest.capped": (
        "launches in the partition {partition} take {most_s:g} s a job instead of {asked_s:g} s",
        "{why}",
        "",
    ),
    "contest.jobs-missing": (
        "{absent} of {jobs:job|jobs} did not run",
        "ReFrame's output is in {log}",
        "",
    ),
    "gate.small-budget": ("the budget is too small for any of them", "give it more"),
}
