"""The words of every reason, by its code: what it says, its cause, its remedy.

In braces stand facts, written as :mod:`clustergate.wording.reasons` says. ``docs/reasons.md`` is
made of this. A code is never given another meaning: whoever greps for it finds what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clustergate.wording.catalog import (
    cases,
    commands,
    errors,
    gate,
    inputs,
    jobs,
    launches,
    outputs,
    proof,
    references,
    runs,
    sites,
    stacks,
    verdicts,
)

Words = tuple[str, str, str]
Short = Sequence[str]
"""What a reason says, as a text; with its remedy as two of them; else all three."""

IN_WORDS: Words = ("{sentence}", "", "")
"""Of a reason that has its whole sentence as its only fact."""


def _whole(words: Short) -> Words:
    if isinstance(words, str):
        return words, "", ""
    says, *cause, remedy = words
    return says, "".join(cause), remedy


TOPICS: Mapping[str, Mapping[str, Short]] = {
    "Verdicts of figures and groups": verdicts.WORDS,
    "Launches and what disturbs them": launches.WORDS,
    "Jobs and cases": cases.WORDS,
    "Proof of a launch": proof.WORDS,
    "Outputs of benchmarks": outputs.WORDS,
    "Screening and gate": gate.WORDS,
    "Input and files": inputs.WORDS,
    "Commands": commands.WORDS,
    "Site configs": sites.WORDS,
    "Hostfiles, layouts, plans": jobs.WORDS,
    "Stacks": stacks.WORDS,
    "Stored runs, comparisons, golden builds": runs.WORDS,
    "Reference files": references.WORDS,
    "Other errors": errors.WORDS,
}
CATALOG: Mapping[str, Words] = {
    code: _whole(words) for topic in TOPICS.values() for code, words in topic.items()
}
