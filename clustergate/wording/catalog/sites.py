"""Site configs, and what scontrol and lscpu print."""

_EXTRA = "{key!r} of the {kind} {name}"
_APART = '"{other_tests}": {{"{key}": …}} in its extras sets it apart'
_NAME_ONE = "name a site config by --site NAME"

WORDS = {
    "wish.no-word": "{option} takes the name of one, not {value!r}",
    "wish.no-slurm": (
        "{option} is for Slurm, which no partition of {site} has",
        "for another scheduler, set `access` in the site config",
    ),
    "wish.job-option": (
        "-J {option} behind `--` would replace what the site config says of the nodes",
        "use --nodes or --exclude, or change `access` of the partition",
    ),
    "wish.no-node": ("there is no node {name}", "known: {known}", ""),
    "wish.unknown-nodes": (
        "neither a hostfile nor sinfo says which nodes there are",
        "write a hostfile: `clustergate hostfile --help`",
    ),
    "wish.no-reservation": (
        "Slurm has no reservation {name}",
        "`scontrol show reservation` lists those that there are",
    ),
    "wish.refused": (
        "Slurm refuses jobs in the partition {name} with {options:and}",
        "{why}",
        "`sacctmgr show associations user=$USER format=account,qos%60` lists what you may name, "
        "and without the option your default applies",
    ),
    "wish.reservation-refused": (
        "Slurm gives you no job in the reservation {name}",
        "{why}",
        "`scontrol show reservation {name}` lists its Users and Accounts; an operator adds you by "
        "`scontrol update ReservationName={name} users+=$USER`",
    ),
    "wish.nothing-left": ("no node is left to measure", "name fewer in --exclude"),
    "site.unknown": (
        "unknown site config {name!r}{meant}",
        "known: {known:list}{more}",
        "`clustergate site scan NAME` writes one on a cluster",
    ),
    "site.no-wheels": (
        "the stack {stack!r} has no wheels",
        "stacks with wheels: {known:list}{meant}",
        "",
    ),
    "site.missing": "no site config {path}",
    "site.broken": "{why}",
    "site.failed": "{error}: {why}",
    "site.no-partition": (
        "{site} has no partition {name!r}",
        "known: {known:list}{meant}",
    ),
    "site.mistyped-argument": ("{error}: {why}", "did you mean {meant!r}?"),
    "site.unassigned": "no site_configuration is assigned",
    "site.not-completed": (
        "its site_configuration is not what clustergate.sites.configuration returns",
        "let it say `site_configuration = configuration(systems=[…], stacks=[…])`, or let "
        "`clustergate site scan NAME` write one",
    ),
    "site.no-stack": (
        "it names no MPI stack, so there is nothing to measure",
        'add stacks=[stack("mpich")] to its configuration()',
    ),
    "site.hostnames": (
        "hostnames must be a literal list of patterns",
        'write them like ["alpha-login", "alpha[0-9]+"]',
    ),
    "site.hostname-pattern": "hostnames: {pattern!r}: {why}",
    "site.claimed-twice": (
        "several site configs claim this machine, {hostname}",
        "{claims:list}",
        f"correct their hostnames, or {_NAME_ONE}",
    ),
    "site.unclaimed": (
        "no site config claims this machine, {hostname}{near}, and {guess}",
        f"{_NAME_ONE}, or add the machine's name to the hostnames of its site config; known: "
        "{known:list}",
    ),
    "site.provider": ("CLUSTERGATE_PROVIDER (make's PROVIDER) is {name!r}", "known: {known:list}"),
    "site.no-hostfile": (
        "the partition {partition} launches over ssh and its system has no hostfile",
        "write one as hostfiles/template.txt explains",
    ),
    "site.idle-cores": (
        "{node} has {has:core|cores}, and the site config states {stated} for each node of "
        "{partition}: the others were idle",
        "correct `cores_per_node`; what no job gets is `reserved_cores_per_node`: {others}",
    ),
    "site.access-twice": (
        "`access` of partition {partition} has {option} with two values",
        "sbatch takes the last alone",
        "give one that says all",
    ),
    "site.access-exclude": (
        "`access` of partition {partition} excludes nodes beside those that are left out: {why}",
        "sbatch takes one --exclude alone",
        "name the nodes there as a list such as n[1-4]",
    ),
    "site.no-nodes": (
        "the partition {partition}, whose jobs go through {scheduler}, does not say how many nodes "
        "it has",
        "add `nodes` to its extras (`clustergate site scan NAME` tells), or write a hostfile",
    ),
    "site.unlisted-nodes": (
        "the site config states {stated} nodes of the partition {partition}, and {source} lists "
        "{listed}",
        "list the others too, broken ones by `exclude` with the reason, or correct the site config",
    ),
    "site.no-node-left": "{source} excludes {which}; no node is left to run on",
    "site.unknown-key": ("{owner} has no key {key!r}", "known: {known:list}"),
    "site.mistyped-key": ("{owner} has no key {key!r}", "did you mean {meant!r}?"),
    "site.key-of-extras": (
        "{owner} has no key {key!r}",
        "it belongs in the extras: {{{key!r}: …}}",
    ),
    "site.lacks": "{owner} lacks {key!r}{means}{effect}{meant}",
    "site.wrong-value": "{key!r} of {owner} is {value}; {wanted}",
    "site.own-extra": (_EXTRA + " is the suite's own", "it does not belong in {other_tests!r}"),
    "site.mistyped-extra": (
        _EXTRA + " is no extra that the suite reads",
        f"did you mean {{meant!r}}? If another suite's tests read it, {_APART}",
    ),
    "site.unread-extra": (
        _EXTRA + " is an extra that the suite does not read",
        f"if it is of other tests, {_APART}",
    ),
    "site.several-systems": (
        "{names:names} is described beside {name} and would be measured and judged as {name}",
        "describe each system in a file of its own",
    ),
    "site.name-twice": ("{times} {kind}s{of} are named {name}", "give each its own name"),
    "site.little-memory": (
        "{key!r} of the partition {partition} is {value:,}, {mib_per_core:.3g} MiB for each of "
        "{cores} cores",
        "is it in another unit than bytes?",
    ),
    "site.undefined-stack": (
        "the partition {partition} names the stack {name!r}, which the site config does not have",
        "known: {known:list}{meant}",
    ),
    "site.unknown-backend": (
        "the partition {partition} has the {key} {name!r}, which neither ReFrame nor the suite has",
        "known: {known:list}{meant}",
    ),
    "site.other-launcher": (
        "the launcher {name!r} of the partition {partition} knows nothing of its MPI stacks",
        "use 'clustergate', which calls a stack's own mpirun, or 'clustergate-srun', which calls "
        "srun",
    ),
    "site.unknown-stack": (
        "the site config names no stack {name!r}",
        "known: {known:list}{meant}",
    ),
    "pipeline.no-yaml": ("{path} is no YAML", "{why}", ""),
    "pipeline.no-matrix": (
        "{job} has no list of systems and stacks",
        "write one below `parallel: matrix:`, as in ci/gitlab/example/.gitlab-ci.yml",
    ),
    "pipeline.incomplete": (
        "an entry must name both {names:and}",
        "add what it lacks, as in ci/gitlab/example/.gitlab-ci.yml",
    ),
    "pipeline.system": "{why}",
    "pipeline.unknown-stack": (
        "the site config of {system} names no stack {name!r}",
        "known: {known:list}{meant}",
    ),
    "slurm.no-answer": (
        "Slurm could not be asked for its nodes: {why}",
        "run this on a login node of the Slurm system; there `scontrol ping` shows whether its "
        "controller answers",
    ),
    "slurm.no-topology": (
        "Slurm did not tell which switch a node is on ({why})",
        "run this again, or name the switches by switch= in the hostfile",
    ),
    "slurm.not-used": ("Slurm does not use {nodes}: {causes}", "{remedy}"),
    "slurm.node": "scontrol show node: {name!r} is not usable ({why})",
    "slurm.no-node": "scontrol show node printed no node",
    "slurm.no-cores": (
        "scontrol show node tells the cores of no node",
        "it has neither Sockets and CoresPerSocket nor CPUTot",
        "is this its whole output?",
    ),
    "slurm.json": (
        "the output of scontrol --json is cut off or damaged: {why}",
        "write it again",
    ),
    "slurm.old-json": (
        "the JSON of this Slurm does not say which cores no job gets",
        "give the text of `scontrol show node`, without --json",
    ),
    "slurm.variables": (
        "{names:and} would replace what jobs ask Slurm for",
        "left out of this run",
        "what all jobs need belongs in `access` of the partition",
    ),
    "slurm.partition-name": "scontrol show partition: {name!r} is not a valid name",
    "slurm.partition-nodes": "scontrol show partition: {name}: {why}",
    "slurm.no-partition": "scontrol show partition printed no partition with nodes",
    "lscpu.no-cores": ("no cores and sockets in the output of lscpu", "is this its output?"),
    "site.reserved-name": ("the site config {name} is the suite's own", "choose another name"),
    "site.system-name": (
        "{name!r} is not a valid name of a system",
        "use letters, digits, '_' and '-', beginning with a letter",
    ),
}
