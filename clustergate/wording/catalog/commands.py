"""Commands and their options."""

_ON_LOGIN_NODE = (
    "run this on a login node of the Slurm system, or pass files with the output from there "
    "(--nodes, --partitions, --lscpu); without Slurm, copy site_configs/template.py"
)

WORDS = {
    "command.extra": (
        "the {kind} {name} is not installed",
        "run `pip install 'clustergate[evaluations]'`, with --find-links and the folder of its "
        "wheel where no package index has it",
    ),
    "command.gone": ("the command {name} is gone", "{page} says what to type instead"),
    "sweep.no-check": (
        "-P {name} is a variable of no check that runs",
        "write it as CHECK.VARIABLE=VALUE,…; {known:names} run",
    ),
    "sweep.values": ("-P {name}={values:list} names no value, or one twice", "name each once"),
    "sweep.unknown": ("{why}", "`reframe --describe` lists them"),
    "option.range": "{option} {value:g}: must be between {low} and {high} {unit}",
    "option.not-positive": "{options} must be positive",
    "option.negative": "{option} must not be negative: {value}",
    "option.missing": ("{option} CONTENDER is missing", "name what to compare"),
    "option.size": ("{word!r} is not a message size", "give bytes such as 0,8,4K,1M"),
    "option.needs": "{option} needs {other}, {means}",
    "option.no-effect": "-n sets the problem sizes; {option} has no effect beside it",
    "input.memory": ("'{text}' is not an amount of memory", "write it like 24GiB or 24GB"),
    "input.two-ways": (
        "'{text}' can be read in two ways",
        "write {binary} (powers of 1024) or {decimal} (powers of 1000)",
    ),
    "input.unit": ("'{text}' has an unknown unit", "use KiB, MiB, GiB, TiB, kB, MB, GB or TB"),
    "input.no-unit": ("'{text}' has no unit", "is it {text}s or {text}m?"),
    "input.duration": ("'{text}' is not a length of time", "write it like 90s, 10m or 1h30m"),
    "baseline.no-figure": (
        "no stored run has a figure of this selection on the system {system}",
        "the runs are in {folder}; runs with variables set by hand (-S) do not count",
        "measure with `clustergate check`, or select otherwise",
    ),
    "baseline.lost": (
        "the site config no longer has {cases:names}",
        "what was measured of them is left out",
        "correct the site config if they are still there",
    ),
    "baseline.few-runs": (
        "--min-runs {runs}",
        "fewer than {fewest} runs do not show their spread",
        "",
    ),
    "baseline.fewer-runs": ("--runs {runs}", "a baseline needs at least {fewest} runs", ""),
    "baseline.because": (
        "--accept-worse and --because go together",
        "name the figures, and the reason",
    ),
    "baseline.changed-meanwhile": (
        "{path} changed while this baseline was made, as by somebody else's; nothing was written",
        "",
        "review that change (git diff), then run `clustergate baseline` again",
    ),
    "resume.launched-otherwise": (
        "since the run began, the site config changed how {stacks:list} is launched",
        "its cases are measured again",
        "for figures of before, start a new run with the site config of before",
    ),
    "resume.node-changed": (
        "since the run began, this node changed: {changes:list}",
        "its cases are measured again",
    ),
    "resume.old": (
        "{old} of {cases:case|cases} were measured on {when}, {days:day|days} before the others",
        "the run was resumed, and what changed meanwhile is not in all of its figures",
        "start a new run, `clustergate check`, for a verdict of one day",
    ),
    "resume.options": ("--resume keeps the options of the run", "name nothing but the run"),
    "home.percent": (
        "the path of the home holds a %, which schedulers read as a field: {folder}",
        "name another folder in CLUSTERGATE_HOME",
    ),
    "home.bytes": (
        "the path of the home is no UTF-8: {folder}",
        "name another folder in CLUSTERGATE_HOME",
    ),
    "home.open-to-all": (
        "all users may write to the home {folder}, and could replace what is measured",
        "close it: chmod o-w {folder}",
    ),
    "home.of-another": (
        "the home {folder} belongs to {owner}, who does not share it with a group of yours",
        "name a folder of your own in CLUSTERGATE_HOME, or have it shared (docs/housekeeping.md)",
    ),
    "doctor.not-writable": ("{folder} is not writable", "name another folder in CLUSTERGATE_HOME"),
    "doctor.new-home": (
        "new, empty home {folder} (made just now): no stack and no result is there",
        "CLUSTERGATE_HOME names it",
        "correct that if it is mistyped; else all is set up anew",
    ),
    "doctor.not-executable": (
        "no program can be started in {folder}",
        "its file system is mounted noexec",
        "name another folder in CLUSTERGATE_HOME",
    ),
    "doctor.local-locks": (
        "{folder} is on {kind}, mounted so that its locks may hold on this node alone",
        "two nodes could set a stack up at the same time, or take one number for two runs",
        "start clustergate on one node at a time, or mount it with locks that all nodes see",
    ),
    "doctor.little-room": (
        "{folder} has {free_mb:.0f} MB free",
        "three stacks of wheels and their downloads take {needed_mb:.0f} MB",
        "free some space, or name a folder on a larger disk in CLUSTERGATE_HOME",
    ),
    "doctor.locked": (
        "a rank may lock {limit} of memory (ulimit -l)",
        "InfiniBand needs its buffers locked",
        "set memlock to unlimited below /etc/security/limits.d, and for Slurm's jobs "
        "LimitMEMLOCK=infinity for slurmd",
    ),
    "doctor.stack-size": (
        "a process may have a stack of {limit} (ulimit -s), less than the usual {usual_kib} KiB",
        "`ulimit -s {usual_kib}`",
    ),
    "doctor.locale": (
        "standard output is {encoding}",
        "characters that it lacks are replaced, or printed as ?",
        "`export LC_ALL=C.UTF-8`",
    ),
    "doctor.not-set-up": (
        "{stack} is not set up yet",
        "`clustergate check`, `gate` and `ab` do so, and `clustergate setup` does it alone",
    ),
    "doctor.unavailable": ("{names:names}: not available here", "{why}", ""),
    "doctor.restricted": (
        "{restriction}",
        "figures will be of those alone",
        "start it where all of the node may be used, or restrict every run in the same way",
    ),
    "doctor.no-partition": (
        "Slurm has no partition {name!r}, which `access` of the partition {partition} names",
        "known: {known:list}{meant}",
    ),
    "doctor.fewer-cores": (
        "the site config states {used} of the {cores} cores that Slurm has of each node",
        "the others are not measured",
        "correct `cores_per_node`; what no job gets, such as the system's own cores, is "
        "`reserved_cores_per_node`: {others}",
    ),
    "doctor.no-stack": (
        "no stack belongs to the partition {name}: {nodes}",
        "nobody measures them",
        "name stacks in its environs, or let its extras say why a gate need not judge it: "
        '"waived": "the reason"',
    ),
    "doctor.astray": (
        "{says}",
        "",
        "put that right, or exclude those nodes in the hostfile; `clustergate screen --quick` then "
        "shows whether that was all",
    ),
    "doctor.not-looked-at": (
        "no recent run looked at {nodes}, of {known} nodes",
        "",
        "`clustergate screen --quick` looks at every node",
    ),
    "doctor.unreached-nodes": (
        "no partition of the site config reaches {nodes} of Slurm's partition {name}",
        "nobody measures them",
        'describe them in a partition (`clustergate site scan` writes it), with "waived": "the '
        'reason" in its extras if a gate need not judge it; or exclude them in the hostfile',
    ),
    "doctor.untold-nodes": (
        "`access` of the partition {partition} does not tell which of Slurm's {nodes} nodes it is "
        "for, and the site config states {stated}",
        "nodes that it does not count are not measured",
        "name them by --nodelist, --exclude, or a --constraint of features joined by & or |",
    ),
    "doctor.other-nodes": (
        "the site config says {stated}, and Slurm has {has}",
        "jobs on more nodes or cores than there are never start, and nodes that it does not count "
        "are not measured",
        "correct whichever is wrong: `sinfo --exact --format='%P %D %X %Y'` tells nodes, sockets, "
        "and cores of a socket",
    ),
    "doctor.unknown-nodes": (
        "{source} lists {nodes}, which Slurm does not have: it has {known}",
        "Slurm refuses jobs that name unknown nodes, and jobs on more nodes than it has never "
        "start",
        "correct the hostfile: `sinfo -N` lists the names",
    ),
    "doctor.other-slots": (
        "{source} says slots={slots} of {nodes}, and the site config {stated:list} cores per node",
        "cores without slots stay idle, and ranks beyond the cores share them",
        "correct whichever is wrong",
    ),
    "doctor.no-golden": (
        "no golden build of {stacks:list}",
        "slower software cannot be distinguished from slower hardware",
        "`clustergate golden pin STACK` keeps one, once it is accepted",
    ),
    "dry-run.failed": ("ReFrame's dry run {ended}", "{why}", ""),
    "dry-run.differs": ("the dry run differs from the site config", "{faults}", ""),
    "hostfile.unknown": (
        "no file and no system with a hostfile in {folder} is named {name}{meant}",
        "{template} explains how to write one",
    ),
    "hostfile.none": (
        "the system {name} has no hostfile {path}",
        "with a scheduler it needs one only to exclude nodes (`sinfo -N` lists Slurm's); "
        "{template} explains how to write it",
    ),
    "run.no-such": (
        "no run and no file is named {name}{near}",
        "`clustergate list runs` lists the runs, which are in {folder}",
    ),
    "run.several": (
        "{name} is the beginning of {runs:names}",
        "name one of them, by its id or its number as in r8",
    ),
    "run.none": ("there is no run in {folder} yet", "measure first: `clustergate check`"),
    "run.no-recent": (
        "no {name} run{of} in {folder}",
        "`clustergate list runs` lists them",
    ),
    "run.no-screening": (
        "no screening {run} in {folder}",
        "`clustergate list runs` lists them",
    ),
    "fleet.no-run": (
        "no run in {folder} recorded its nodes",
        "`clustergate screen` has all nodes of a partition say what they are like",
    ),
    "fleet.no-states": (
        "the run {run} recorded no nodes in {folder}",
        "`clustergate screen` has all nodes of a partition say what they are like",
    ),
    "fleet.silent": (
        "{nodes} ran and did not say what they are like",
        "",
        "nodes.err in the folder of their job says why; nothing is known of what is wrong there",
    ),
    "fleet.no-golden": (
        "{name} is neither a node of the run nor a file",
        "its nodes are {nodes}; `clustergate machine --json` prints what a file must hold",
    ),
    "machine.no-common-node": (
        "no node is in both {before} and {after}",
        "`clustergate fleet` compares nodes of one run with each other",
    ),
    "machine.cut-off": (
        "this line cannot be read, so states of nodes are missing from here on",
        "the disk was full, or the file was changed",
        "compare with another run",
    ),
    "machine.unrecorded": (
        "{folder} has no {file}",
        "this run did not record the state of its nodes",
        "",
    ),
    "node.unknown": ("the {what} of this node {is_are} unknown", "{remedy}"),
    "sizing.memory": (
        "N={n} needs {needed} bytes for its matrix, and {available} are available",
        "if the nodes have more, give --nodes and --memory-per-node",
    ),
    "sizing.no-divisor": "{option} {value} does not divide the {ranks} processes",
    "sizing.grid": "a {p} x {q} grid needs {needed} processes, and there are {ranks}",
    "rows.not-kept": (
        "the rows cannot be kept in a temporary file until their text is checked",
        "{why}",
        "set TMPDIR to a folder with more space",
    ),
    "rows.unwritable": ("the rows cannot be written", "{why}", ""),
    "site-scan.no-command": ("{command} not found", _ON_LOGIN_NODE),
    "site-scan.no-answer": ("{command} did not answer in {seconds} s", _ON_LOGIN_NODE),
    "site-scan.failed": ("{command} failed", "{why}", _ON_LOGIN_NODE),
    "site-scan.left-out": (
        "no partition has {names}: {why}",
        "nothing runs there; add what Slurm lacks, or a partition by hand",
    ),
    "site-scan.exists": ("{path} exists already", "remove it first, or choose another name"),
    "reframe.unsupported": (
        "ReFrame {version} cannot run these checks",
        "{oldest} and later patches of these can",
        "install clustergate into an environment of its own (docs/reframe.md)",
    ),
    "added.not-loaded": (
        "the package {package} adds {value} ({group}), which does not load ({error}: {why})",
        "fix, update or uninstall {package}",
    ),
    "added.no-tests": (
        "the benchmark {benchmark} has its ReFrame tests in {path}, which is not there",
        "correct `tests` of its descriptor, or install its package again with that file",
    ),
    "added.no-check": (
        "{path} defines no {name}; it has {known:list}",
        "call the class as `checks` or `ab` of the descriptor does, and install the package again",
    ),
    "added.no-metric": (
        "the check {check} wants {name!r} judged, and the benchmark {benchmark} has no such metric",
        "did you mean {meant}? `metrics` of its descriptor names its own",
    ),
    "added.name-twice": ("there are two of the {kind} {name}", "rename that of the added package"),
}
