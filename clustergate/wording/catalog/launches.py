"""What disturbed a launch, and launches that are too few or too slow."""

_CORES = "others used {lost_cores:.2f}{cores:of} cores of {host}"
_APART = "two cores were {times:.1f} times as far from each other"
_QUIETER = (
    "compare stacks with `clustergate ab`, pin a virtual machine's cores on its host, or measure "
    "when nothing else runs there"
)

WORDS = {
    "node.busy": ("others used {lost_cores:.2f} cores", "", ""),
    "node.shared": (_CORES, "", ""),
    "node.stolen": (_CORES + ", {stolen_cores:.2f} of them stolen by the hypervisor", "", ""),
    "node.waiting": (
        "waiting for this node to be quiet, at most {limit_s:.0f} s",
        "others use {lost_cores:.2f} cores, {by}",
        "",
    ),
    "node.not-quiet": (
        "this node is not quiet, and is measured all the same",
        "others use {lost_cores:.2f} cores, {by}",
        "",
    ),
    "node.beside": (
        "beside this run others used {lost_cores:.2f} cores of this node on average",
        "{by}",
        "",
    ),
    "node.moved-cores": (
        _APART + " as at other times",
        *("the hypervisor moved them, or they are others", ""),
    ),
    "node.other-cores": (
        _APART + " as in the baseline",
        *("the hypervisor moved them, or they are others", ""),
    ),
    "launches.too-few-undisturbed": (
        "{disturbed} of {launches:launch|launches} {disturbed:~was|were} disturbed ({worst}), so "
        "that {left:is|are} left where {needed:is|are} needed",
        "",
        "take more launches (-- -S {setting}), " + _QUIETER,
    ),
    "launches.too-few-undisturbed-in-cases": (
        "{disturbed} of {launches:launch|launches} {disturbed:~was|were} disturbed ({worst}), so "
        "that too few are left",
        "",
        "take more launches (-- {settings}), " + _QUIETER,
    ),
}
