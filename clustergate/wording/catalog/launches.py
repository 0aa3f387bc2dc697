"""What disturbed a launch, and launches that are too few or too slow."""

_CORES = "others used {lost_cores:.2f}{cores:of} cores of {host}"
_APART = "core-to-core latency was {times:.1f} x"
# Programs on the node can be ended; of the host's other virtual machines an operator has no say.
_QUIETER = "{by_programs:~measure when nothing else runs there, |}take more launches (with -- "
_OR_ELSE = (
    "), {by_programs:~or |}compare stacks with `clustergate ab`{by_programs:~|, pin a virtual "
    "machine's cores on its host, or measure when nothing else runs there}"
)

WORDS = {
    "node.shared": _CORES,
    "node.stolen": _CORES + ", {stolen_cores:.2f} of them stolen by the hypervisor",
    "node.waiting": (
        "waiting up to {limit_s:.0f} s for this node to be idle",
        "others use {lost_cores:.2f} cores, {by}",
        "",
    ),
    "node.not-quiet": (
        "this node is busy; measuring anyway, which takes longer than announced",
        "others use {lost_cores:.2f} cores, {by}",
        "",
    ),
    "node.beside": (
        "during this run others used {lost_cores:.2f} cores of this node on average",
        "{by}",
        "",
    ),
    "launch.overlapped": (
        "{other} was launched on {host} at the same time",
        *("", "set `max_jobs` of the partition to 1 in the site config"),
    ),
    "node.moved-cores": (
        _APART + " its minimum",
        *("the hypervisor moved the cores, or the job was given others", ""),
    ),
    "node.other-cores": (
        _APART + " the baseline's",
        *("the hypervisor moved the cores, or the job was given others", ""),
    ),
    "launches.too-few-undisturbed": (
        "{disturbed} of {launches:launch|launches} {disturbed:~was|were} disturbed (at worst "
        "{worst}), so that {left:is|are} left where {needed:is|are} needed",
        _QUIETER + "-S {setting}" + _OR_ELSE,
    ),
    "launches.too-few-undisturbed-in-cases": (
        "{disturbed} of {launches:launch|launches} {disturbed:~was|were} disturbed (at worst "
        "{worst}), so that too few are left",
        _QUIETER + "{settings}" + _OR_ELSE,
    ),
}
