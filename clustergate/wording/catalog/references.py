"""The files of references, and the schema that they are held to."""

WORDS = {
    "references.none": (
        "there are no references of {system}",
        "figures are judged against physical limits alone, and the gate does not open",
        "`clustergate baseline`, after five runs over at least an hour, makes them",
    ),
    "references.expectations-alone": (
        "{system} has {expectations:expectation|expectations} and no references",
        "all other figures are judged against physical limits alone, and the gate does not open",
        "`clustergate baseline`, after five runs over at least an hour, makes them",
    ),
    "references.not-of-these": (
        "there are references of {figures:figure|figures}, but none of {of_mode} for {cases:names}",
        "these are judged against physical limits alone",
        "`clustergate baseline`, after five runs of this mode over at least an hour, makes them",
    ),
    "references.unsized": (
        "it is not known for what size and processor the references of {cases:names} hold",
        "their $provenance lacks {keys:and}; on fewer nodes, with a larger matrix or on a faster "
        "processor they would hide a slow-down",
        "add it to the entry of each case, or take a baseline",
    ),
    "references.invalid": "{complaints}",
    "references.dangling": (
        "{path} is a link to {to}, which is not there",
        "mend the link, or remove it to judge by physical limits alone",
    ),
    "references.twin": (
        "nothing reads this file beside {name}",
        "move what it says to {name}, and remove it",
    ),
    "references.empty": (
        "{path} holds no reference",
        "restore it, or remove it to judge by physical limits alone",
    ),
    "references.misnamed": ("nothing reads this file", "rename it to {name}"),
    "references.no-condition": "a case without the condition {name!r} cannot have references",
    "references.no-provenance": "no entry of $provenance covers it",
    "references.covers-none": (
        "it covers no reference",
        "write the keys as they stand, with / between them",
    ),
    "references.pattern": (
        "{key!r} is not a valid regular expression; ReFrame reads keys as such",
        "{why}",
        "",
    ),
    "references.other-system": "this file is read for the system {system} alone",
    "references.no-figure": ("this is not a figure", "its name does not end in a metric", ""),
    "references.never-judged": "{metric} is recorded but never judged",
    "references.unit": "the unit must be {expected!r}, not {unit!r}",
    "references.not-finite": "the numbers of a reference must be finite",
    "references.better-bound": (
        "the {bound} bound must be null",
        "{better} is better, and it would fail an improvement",
        "",
    ),
    "references.no-bound": "the {bound} bound is null, so nothing could fail",
    "references.lower-bound": (
        "the lower bound is a fraction between -1 and 0, -0.05 for 5 % less, not {value}"
    ),
    "references.upper-bound": (
        "the upper bound is a fraction from 0 on, 0.05 for 5 % more, not {value}"
    ),
    "references.too-wide": (
        "the {bound} bound {value} tolerates {tolerated:percent}",
        "a reference that tolerates more than {widest:whole_percent} passes what is broken",
        "narrow it, or take it out, so that the figure is counted as one without a reference",
    ),
    "references.not-compared": (
        "{name} of {check} with {stack} was not compared",
        "{why}",
        "correct {where}",
    ),
    "references.elsewhere": (
        "{count:reference|references} written by hand not of this run",
        "another mode, stack or layout, such as {first}",
        "",
    ),
    "expect.value": (
        "{value!r} is neither a floor nor a ceiling with its unit",
        "",
        'write ">= 87 %" for at least, "<= 1.2 us" for at most',
    ),
    "expect.no-headline": (
        "the run {run} has no headline figure of {system} that was measured undisturbed",
        "",
        "measure with `clustergate check`, when nothing else runs on the nodes",
    ),
    "expect.there": (
        "{path} has expectations and tolerances already, and nothing was written",
        "",
        "edit them there, or remove one of the two and try again",
    ),
    "tolerance.value": (
        "{value!r} is no tolerance",
        "",
        "write 3 % for 3 % worse; what is 50 % worse is broken",
    ),
    "expect.key": ("unknown key {key!r}{meant}", "", "the keys are {known:list}"),
    "expect.unit": ("{name} is in {units:names}, not in {unit!r}", "", "write it in such a unit"),
    "expect.direction": (
        "of {name} {better} is better, so {given} would fail what is good",
        "",
        "write {wanted}",
    ),
    "references.earlier": (
        "{source} was made by an earlier version",
        "its references are judged by their tolerances alone",
        "`clustergate baseline` makes new ones",
    ),
    "schema.lacks": "{why}",
    "schema.key": "this key is not valid here; expected {expected}",
    "schema.value": "{value} is not valid here; expected {expected}",
    "statistics.unmeasured": "$provenance has no measured entry with this path",
    "statistics.launches": "{launches} launches here, but {samples} samples in $provenance",
    "statistics.other-runs": (
        "{figure} has {values:value|values} of {runs:run|runs} with {days:day|days}",
        "",
        "give each run one day and one value",
    ),
    "anchors.other-runs": (
        "{figure} has {values:value|values} of {days:day|days}, of which {runs:is a run|are runs}",
        "",
        "give each day a value or null, and one of the runs a value",
    ),
    "statistics.few-launches": "fewer launches ({launches}) than runs ({runs})",
    "statistics.path": "the path must end at an effort or at a figure",
    "statistics.no-reference": "no reference {figure} at this path",
    "statistics.no-spread": "no figure of {group} has a spread",
    "statistics.one-of-two": "{name} must have both spread_percent and usual_percent",
    "statistics.nothing-slow": "slow_percent: no figure or benchmark {name} at this path",
    "statistics.beyond-bound": (
        "the runs of {figure} were {mean:.4g} {unit} in the mean, beyond its bound {bound:.4g}",
        "",
        "restore both, or take a new baseline",
    ),
    "statistics.far": (
        "{value:.4g} {unit} of {figure} is more than 100 times off its reference {reference:.4g}",
        "",
        "restore it, or take a new baseline",
    ),
    "statistics.not-finite": "statistics must be finite numbers",
}
