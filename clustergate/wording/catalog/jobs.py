"""Hostfiles, layouts, plans of launches and their logs."""

_FORM = (
    'a line is "NODES slots=NUMBER [switch=NAME] [rack=NAME]", "exclude NODES YYYY-MM-DD REASON", '
    "or a comment behind #"
)
_NAMES = "letters, digits, '.', '_' and '-'"
_NO_SCHEDULER = "no scheduler names the nodes of this job (Slurm, PBS and LSF do)"

WORDS = {
    "hostfile.too-few-nodes": (
        "{count:node|nodes} with {slots:slot|slots} each requested, but only {fitting} of {nodes} "
        "are usable and large enough ({excluded} excluded)"
    ),
    "hostfile.empty": ("it lists no node", _FORM),
    "hostfile.excluded-unlisted": "{name} is excluded, but no line lists it",
    "hostfile.all-excluded": "every node is excluded, so none is left to run on",
    "hostfile.node-name": ("{word} is not a node name", f"use {_NAMES} and ranges n[001-512]", ""),
    "hostfile.node-range": ("{word} is not a node name", "{why}", ""),
    "hostfile.too-many-nodes": "{word} names more than {most} nodes",
    "hostfile.not-understood": ("{word} is not understood", _FORM),
    "hostfile.mistyped": ("{word} is not understood{meant}", _FORM),
    "hostfile.setting-twice": "{name}= is given twice",
    "hostfile.slots": "slots= must be a number from 1 to 999999, not {word}",
    "hostfile.no-slots": (
        "nothing says how many ranks fit on {name}",
        "write `{name} slots=CORES`, with the physical cores of the node",
    ),
    "hostfile.label": f"{{name}}= must be a name of {_NAMES}, not {{word}}",
    "hostfile.exclusion": ("an exclusion needs nodes, a date and a reason", _FORM),
    "hostfile.date": ("{word} is not a date", "write it as 2026-11-21"),
    "hostfile.reason": (
        "the reason {word} may hold letters, digits, spaces and .,:/#+_@- only, at most 200 of them"
    ),
    "hostfile.two-names": (
        "{name} is {short} of line {line} by its whole name",
        "it would count as two nodes, and be excluded under one name only",
        "list each node once",
    ),
    "hostfile.node-twice": "{name} is already {done} in line {line}",
    "allocation.no-hostfile": (
        f"the launcher needs a hostfile, but {_NO_SCHEDULER}",
        "use the launcher clustergate-ssh and a hostfile of the system",
    ),
    "allocation.unknown": _NO_SCHEDULER,
    "allocation.none-to-screen": "none of the nodes to screen is in the allocation ({nodes})",
    "layout.mvapich-only": (
        "mpirun_rsh starts MVAPICH2 only, not {mpi}",
        "give this stack another partition, by the partition's environs",
    ),
    "layout.does-not-fit": (
        "{ranks} ranks, {placement}, with {cores_per_rank:core|cores} each, do not fit on "
        "{partition}, which has {nodes:node|nodes} of {cores_per_node:core|cores}",
        "ask for fewer, or check which nodes or cores are missing",
    ),
    "layout.no-hostfile": "a launch over ssh needs the hostfile of the system",
    "launch.failed": "{sentence}",
    "launch.job-ending": "it was not started, since the job is ending",
    "launch.too-long": "it took longer than {seconds:g} s",
    "launch.not-on-each-node": (
        "{count} of {nodes} nodes started no process within {seconds:.0f} s",
        "the launcher waits for them; {told:names} did",
        "see nodes.err, and whether each node has the folders of the stack",
    ),
    "launch.too-long-at": (
        "it took longer than {seconds:g} s",
        "{who}",
        "it was ended: see what these ranks wait for",
    ),
    "launch.no-progress": (
        "no progress for {seconds:.0f} s",
        "{who}",
        "it was ended: see whether these nodes reach each other; where an MPI call takes as long, "
        "raise it by `-S longest_call_s=SECONDS`",
    ),
    "launch.not-started": ("{command} cannot be started", "{why}", ""),
    "job.capped-time": (
        "its jobs asked for {most_s:g} s instead of {asked_s:g} s",
        "{why}",
        "",
    ),
    "job.no-time": ("there is no time left for a job", "{why}", ""),
    "limit.partition": (
        "the partition gives no job more than {seconds:g} s",
        "raise its MaxTime if that is too little",
    ),
    "limit.qos": (
        "the QOS {name} gives no job more than {seconds:g} s",
        "raise its MaxWall or name another one by --qos if that is too little",
    ),
    "limit.reservation": (
        "the reservation {name} ends at {ends_at}",
        "extend it by `scontrol update ReservationName={name} duration=MINUTES` if that is too "
        "little",
    ),
    "job.too-many-nodes": (
        "it needs {nodes} nodes, and the partition gives a job at most {most}",
        "state `nodes` of the partition in the site config as {most}, or raise MaxNodes, its or "
        "its QOS's",
    ),
    "job.blocked": (
        "Slurm would never start its job",
        "{why}",
        "`sinfo -R` lists nodes that are not used; where a limit is too low, ask for less time (-- "
        "-S time_limit=30m), for fewer nodes, or for another --qos",
    ),
    "job.folder-in-use": (
        "{path} exists already, so this folder belongs to another run",
        "use an empty folder",
    ),
    "job.too-few-launches": (
        "launches must be at least 1, not {launches}",
        "0 leaves it to the mode",
    ),
    "plan.other-version": ("{path} is not a plan of this version ({why})", "run again"),
    "plan.damaged-log": "not an entry of a launch log ({why})",
}
