"""What of each paper the suite runs already, and the table of systems. Pure."""

from __future__ import annotations

from clustergate.benchmarks.registry import every_check
from evaluations import systems
from evaluations.facts import Paper, System

# What was run in a paper and cannot be had, with the reason.
GONE = {"002": {"phdMesh": "no maintained recipe exists"}}


def available(paper: Paper) -> dict[str, str]:
    """Return the paper's benchmarks that can be run, with their checks."""
    wanted = paper.checks.items()
    return {b: c for b, c in wanted if c in every_check() and b not in GONE.get(paper.id, {})}


def missing(paper: Paper) -> list[str]:
    """Return a phrase for each benchmark of the paper that cannot be run."""
    not_yet = [b for b, check in paper.checks.items() if check not in every_check()]
    gone = [f"not available: {name} ({why})" for name, why in GONE.get(paper.id, {}).items()]
    return [f"not available yet: {name}" for name in not_yet] + gone


def systems_table() -> str:
    """Return the table of the papers' systems as it stands in docs/published-systems.md."""
    lines = [
        "| system | paper | works: a dry run writes the jobs of | references | missing |",
        "|---|---|---|---|---|",
    ]
    lines += [_line(paper, system) for paper, system in systems.systems().values()]
    return "\n".join(lines) + "\n"


def _line(paper: Paper, system: System) -> str:
    count = len(systems.asserted_of(paper, system.id))
    referenced = str(count) if count else "none printed"
    runs = ", ".join(available(paper)) or "nothing"
    lacking = "; ".join(word.partition(": ")[2] for word in missing(paper)) or "-"
    return f"| {system.name}: `{system.id}` | {paper.id} | {runs} | {referenced} | {lacking} |"
