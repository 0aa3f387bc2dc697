"""What disturbed a launch, and launches that are too few or too slow."""

_CORES = "others used {lost_cores:.2f}{cores:of} cores of {host}"
_APART = "core-to-core latency was {times:.1f} x"
_QUIETER = (
    "compare stacks with `clustergate ab`, pin a virtual machine's cores on its host, or measure "
    "when nothing else runs there"
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
        "take more launches (with -- -S {setting}), " + _QUIETER,
    ),
    "launches.too-few-undisturbed-in-cases": (
        "{disturbed} of {launches:launch|launches} {disturbed:~was|were} disturbed (at worst "
        "{worst}), so that too few are left",
        "take more launches (with -- {settings}), " + _QUIETER,
    ),
}
