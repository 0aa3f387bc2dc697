"""Runs: stored, resumed, screened, and what ReFrame leaves of them."""

_NEW_RUN = "start a new run"
_LEFT_OUT = "it is left out; where you know its date, name its folder by that"
_NO_NUMBER = (
    "it is left out; where its date is right, rename its folder so that it ends in -1 instead of "
    "its number"
)

_STATE = "state exclusive: True in the site config where jobs have their nodes for themselves"

WORDS = {
    "run.dated-ahead": ("{run} is dated after today", "a clock was wrong", _LEFT_OUT),
    "run.dated-early": (
        "{run} is dated before the suite was made",
        "a clock was wrong",
        _LEFT_OUT,
    ),
    "run.written-elsewhen": (
        "{run} is dated {named}, and its files {written}",
        "a clock was wrong, or a copy lost the times of its files",
        _LEFT_OUT,
    ),
    "run.launched-elsewhen": (
        "{run} is dated {named}, and its launches {launched}",
        "the clock of one of its nodes was wrong",
        _LEFT_OUT,
    ),
    "run.too-late": (
        "{run} is dated after {other}, whose number is higher",
        "a clock was wrong, or one was copied from another home",
        _NO_NUMBER,
    ),
    "run.too-early": (
        "{run} is dated before {other}, whose number is lower",
        "a clock was wrong, or one was copied from another home",
        _NO_NUMBER,
    ),
    "run.none-selected": (
        "no stored run has a figure of this selection",
        "the runs are in {folder}",
        "`clustergate list checks` and `list stacks` tell the names, --figure takes patterns",
    ),
    "run.unknown": ("no run {run} in {folder}", "`clustergate list runs` lists them"),
    "run.options-lost": (
        "the run {run} cannot be resumed",
        "its options were not recorded",
        _NEW_RUN,
    ),
    "run.gate": (
        "{run} is a run of `clustergate gate`, which is not resumed",
        "run `clustergate gate`, which measures anew",
    ),
    "run.screening": (
        "{run} is a screening, which `clustergate check` does not resume",
        "`clustergate screen --resume {run}` does",
    ),
    "run.options-damaged": ("{path} is damaged ({why})", _NEW_RUN),
    "run.complete": (
        "the run {run} is complete; its report is {report}",
        f"to measure again, {_NEW_RUN}",
    ),
    "run.still-running": (
        "the run {run} is still running",
        "wait until it has ended; `clustergate show {run}` then sums it up",
    ),
    "run.no-report": ("ReFrame {ended} and left no report", "{why}", "its output is in {log}"),
    "run.damaged-report": ("{path} is damaged", "{why}", ""),
    "run.full-disk": (
        "{path} cannot be written",
        "{why}",
        "free some space and run again; earlier results are intact",
    ),
    "run.unwritable": (
        "{path} cannot be written",
        "{why}",
        "name another folder in CLUSTERGATE_HOME and run again; earlier results are intact",
    ),
    "run.jobs-left": (
        "ReFrame did not cancel its jobs within {seconds:.0f} s",
        "see which of them still run (squeue, qstat, bjobs), and cancel these",
    ),
    "run.not-copied": ("the run cannot be copied to {folder}", "{why}", "it is in {kept}"),
    "run.other-version": (
        "{path}: another version of clustergate wrote it",
        "use that version, or move the run out of this home",
    ),
    "run.damaged-case": ("{path} is damaged ({why})", "remove it and run again"),
    "check.not-loaded": (
        "this check does not load ({error}: {why})",
        "fix or remove it, or the value after -S: a run without it is not the run requested",
    ),
    "check.no-setting": (
        "no check has a setting {names:list}",
        "correct the name after -S; known: {known:list}",
    ),
    "check.other-sweep": (
        "its descriptor says {sweep} of {check}, which inherits {inherits} of the sweeps' classes",
        "let it inherit {needs} (reframe_checks.sweeps), or correct the descriptor",
    ),
    "check.refused": ("{why}", "correct what follows `--`"),
    "check.no-list": ("ReFrame {ended} while it listed the checks", "run it again"),
    "check.by-the-site": (
        "{names:list} after -S would measure something else under the same name",
        "let the site config say it of a stack or a partition (env_vars, modules, prepare_cmds)",
    ),
    "check.left-out": ("{said}", "fix or remove it: a run without it is not the run requested"),
    "nodes.slow": (
        "{each} less {kernel} than the median of {nodes} nodes, each time",
        "",
        "`clustergate screen` measures it beside the others; drain {node} if that agrees",
    ),
    "nodes.looks-slow": (
        "{each} less {kernel} than the median of {nodes} nodes, of too few jobs to be sure",
        "",
        "`clustergate screen` measures {node} beside the others",
    ),
    "nodes.stated-exclusive": (
        "exclusive nodes: the site config or --exclusive says so of {partition}"
    ),
    "nodes.stated-shared": "shared machine: the site config says so of {partition}",
    "nodes.virtual": (
        "shared machine: {partition} is virtual, and does not show who else is on its hosts",
        "",
        _STATE,
    ),
    "nodes.unseen": (
        "shared machine: too little was seen of {partition} to call its nodes exclusive",
        "",
        _STATE,
    ),
    "nodes.with-others": (
        "shared machine: others used more than 2 % in {busy} of {launches:launch|launches} on "
        "{partition}",
        "",
        _STATE,
    ),
    "nodes.unsteady": (
        "shared machine: the kernels of {partition} differ by {scatter:percent}",
        "",
        _STATE,
    ),
    "nodes.alone": (
        "exclusive nodes: others used less than 2 % in {launches:launch|launches} on {partition}, "
        "and its kernels agree within {scatter:percent}",
        "",
        "state exclusive: False in the site config where other jobs may run beside",
    ),
    "nodes.silent": (
        "{count} of {nodes} nodes ({names:names}) did not report their state: changes there go "
        "unnoticed",
        "nodes.err in the job's folder says why",
    ),
    "nodes.unhashed": (
        "{count} of {nodes} nodes did not say what is in their files: another version of a library "
        "there goes unnoticed",
        "hashes-0.err in the job's folder says why",
    ),
    "machine.no-record": (
        "{path} does not hold the state of a node",
        "`clustergate machine --json` and `clustergate check` write such files",
    ),
    "machine.other-schema": (
        "{path} has schema {schema} and this version of clustergate reads schema {known}",
        "compare with the version that wrote it",
    ),
    "proof.damaged-record": (
        "{path} is not a record of this version's proof library ({why})",
        "compile the stack again with 'clustergate setup' and repeat the run",
    ),
    "screening.no-result": ("the screening left no result", "{why}", "its output is in {log}"),
    "screening.nothing-measured": (
        *("the screening measured nothing", "{why}"),
        "ReFrame's output is in {log}",
    ),
    "screening.no-fabric": (
        "{path} shows no node at a switch",
        "write it again by `ibnetdiscover`, or remove it",
    ),
    "screening.too-many-nodes": (
        "a screening is one job on all {nodes} nodes of the partition {partition}, which gives a "
        "job at most {most}",
        "screen {most} at a time by --nodes, or raise MaxNodes",
    ),
    "run.nodes-not-seen": (
        "this run says nothing of {nodes}: its ranks were on {seen}",
        "",
        "`clustergate screen --quick` looks at every node",
    ),
    "screening.one-partition": (
        "nothing is known of the nodes of {names:and}",
        "a screening is of one partition, the first one where none is named",
        "`clustergate screen --partition NAME` screens another",
    ),
    "screening.capped": (
        "the screening takes {most_s:g} s instead of {asked_s:g} s",
        "{why}",
        "",
    ),
    "screening.other-nodes": (
        "it does not go on: the job was not given {nodes:names}, with which it began",
        "start a new screening",
    ),
    "screening.stranger": "a result names {node}, which is not being screened",
    "screening.unlisted-node": (
        "{hostfile} lists no node {node}",
        "write it there with its slots, or leave it out of --nodes",
    ),
    "screening.excluded-node": (
        "{node} is excluded {why}",
        "leave it out of --nodes or, once it is mended, take its line out of the hostfile",
    ),
    "gate.all-waived": "the site config waives every case, so there is nothing to judge",
    "contender.no-stack": ("{text!r} names no stack", "write {syntax}"),
    "contender.no-variable": ("{text!r}: {rest!r} is not VARIABLE=VALUE", "write {syntax}"),
    "contender.set-twice": "{text!r} sets {name} twice",
    "contender.own-variable": "{text!r}: the suite itself sets {name}",
    "contender.unknown-variables": (
        "this {mpi} does not know {names:names}, which would change nothing",
        "correct the name, or leave it out",
    ),
    "contender.unused-variable": (
        "{name} had no effect: the MPI library does not know or use it",
        "correct its name, or leave it out",
    ),
    "contender.not-preloaded": (
        "{path} of LD_PRELOAD was not loaded",
        "{why}",
        "name a library that every node has",
    ),
    "contender.unknown-stack": (
        "the site config names no stack {name!r}",
        "known: {known:list}{meant}; or name the path of a manifest",
    ),
    "contender.no-manifest": (
        "{text!r} names no manifest: there is no file {path}",
        "`clustergate setup` writes them, into the folder `manifests`",
    ),
    "contender.unavailable": ("{what} is not available here", "{why}", ""),
    "compare.two": (
        "two sets are compared, and beside them there is {more:and}",
        "",
        "`clustergate compare --by node FILE…` compares the nodes of several outputs",
    ),
    "compare.few-nodes": (
        "the names of these outputs tell {nodes} nodes, and it takes {fewest} to compare them",
        "a node is looked for as letters with a number, such as n017, in their names and folders",
        "name the outputs of each node after it, such as hpl-n017.out",
    ),
    "compare.itself": (
        "A and B are both {name}",
        "what is compared with itself differs in nothing",
        "name another one: `clustergate list runs` lists them",
    ),
    "compare.copies": (
        "A and B hold the same values in the same order",
        "one is a copy of the other, so that equal figures show nothing",
        "see where both come from",
    ),
    "compare.other-processors": (
        "A ran on {a:list}, and B on {b:list}",
        "what differs is the machine",
        "for other causes, compare runs of one machine",
    ),
    "history.slower": (
        "{name}: {by:percent} slower in the last {runs:run|runs}, since {since}, usually within "
        "{usual:percent}",
        "",
        "find what changed since then, or measure the node alone",
    ),
    "history.was-slower": (
        "{name}: {by:percent} slower in {runs:run|runs}, from {since} to {until}, usually within "
        "{usual:percent}; not since then"
    ),
    "history.not-confirmed": (
        "{name}: {by:percent} slower in the run {until}, usually within {usual:percent}; not "
        "confirmed",
        "",
        "{left:more run|more runs} tell",
    ),
    "history.not-again": (
        "{count:set of figures was|sets of figures were} slower than before, and not in the next "
        "runs"
    ),
    "history.none-slower": "{runs:run|runs} judged by those before: none has anything slower",
    "history.unjudged": (
        "no run was judged by those before it",
        "they are of too few days to tell how days differ",
        "run on three days or more",
    ),
    "compare.slower": "{name}: {side} is {by:percent} slower, usually within {usual:percent}",
    "compare.not-confirmed": (
        "{name}: {side} may be {by:percent} slower, usually within {usual:percent}; not confirmed",
        "",
        "launch both in turn (`clustergate ab`), or run once more and see `clustergate history`",
    ),
    "compare.distance": (
        "not judged",
        "the nodes of both runs are not known to be as far from each other, which decides small "
        "messages",
        "tell it by Slurm's topology.conf, or by switch= and rack= in the hostfile",
    ),
    "compare.shared-nodes": (
        "not judged",
        "two runs of nodes that others use, too, do not tell how their days differ",
        "launch both in turn (`clustergate ab`), or take a baseline of five runs",
    ),
    "compare.few-launches": (
        "fewer than {fewest} undisturbed launches in one of both",
        "",
        "measure again when nothing else runs",
    ),
    "compare.mostly-slow": (
        "most launches of {side} take more than twice as long as its best",
        "",
        "see what else ran then, and measure again",
    ),
    "compare.other-nodes": (
        "A ran on {a:names}, and B on {b:names}",
        "what differs may be the nodes",
        "for other causes, compare runs of the same nodes (`--nodes`)",
    ),
    "compare.no-comparison": ("the run {run} holds no comparison", "{why}", ""),
    "compare.disturbed": (
        "the run {run} holds no figures{of} to compare",
        "every launch was disturbed",
        "measure again when nothing else runs",
    ),
    "compare.failed": ("the run {run} holds no figures{of} to compare", "{why}", ""),
    "compare.nothing": (
        "the run {run} holds no figures{of} to compare",
        "it holds {held}",
        "name another run of {folder}",
    ),
    "compare.other-method": (
        "{cases:names}: not compared, as the two runs did not measure them in the same way",
        "the benchmark, what its mode asks of it, or how figures follow from it has changed",
        "measure both with one version of clustergate",
    ),
    "compare.no-previous": (
        "no run before {last} was made by `clustergate {kind}` in {folder}",
        "`previous` is the one before the last of the same command",
        "`clustergate list runs` lists them: name two of one kind",
    ),
    "compare.direction": (
        "it is not known which way the metric {metric!r} improves",
        "say --better lower or --better higher",
    ),
    "golden.several": (
        "nothing was removed",
        "{stacks:list} are more than one",
        "`clustergate golden unpin --yes {words}` removes them",
    ),
    "golden.unavailable": ("{stack} is unavailable here", "{why}", ""),
    "golden.exists": (
        "{stack} has a golden build, of {by} on {pinned}{note}",
        "`clustergate golden unpin {stack}` removes it",
    ),
    "golden.not-pinned": ("{stack} cannot be pinned", "{why} ({path})", "no partial copy is left"),
    "golden.no-room": (
        "{stack} takes {size_mb:.0f} MB, and {folder} has {free_mb:.0f} MB",
        "nothing was copied: free some space, or link that folder to a larger file system that "
        "all nodes see",
    ),
    "golden.not-whole": ("{stack} is incomplete: {path} is missing", "run `clustergate setup`"),
    "golden.none": ("{stack} has no golden build", "`clustergate golden pin {stack}` makes one"),
    "golden.not-there": (
        "{stack} has no golden build, so there is none to remove",
        "`clustergate golden list` lists them",
    ),
    "golden.other-version": ("{path}: another version wrote it", "{again}"),
    "golden.damaged": ("{path} is damaged ({why})", "{again}"),
    "golden.no-launch": (
        "a launch of the golden build of {stack} proves nothing",
        "{why}",
        "`clustergate setup` builds the stack anew",
    ),
    "golden.changed": ("the golden build of {stack} was changed", "{changes}", "{again}"),
    "golden.loads-original": (
        "the copy of {stack} is not self-contained",
        "it still loads {path}",
        "a program with an RPATH does, link it with -Wl,--enable-new-dtags",
    ),
}
