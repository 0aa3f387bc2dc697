"""What is told of a screening in a terminal, and its exit status. Pure."""

from __future__ import annotations

import datetime
from pathlib import Path

from clustergate.screening.findings import FEWEST, Screening, hostfile_lines, scontrol_lines
from clustergate.screening.measures import MEASURES
from clustergate.screening.plan import Log
from clustergate.wording.notation import number


def told(log: Log, found: Screening, where: Path) -> list[str]:
    """Return what is printed of a screening."""
    status = exit_status(log, found)
    count = len({frozenset(r.nodes) for r in log.results if len(r.nodes) == 2})
    lines = [
        "",
        f"{word_for(status, found)}: {len(found.names)} {found.what}s alone, {count} pairs, "
        f"{len(log.results) + len(log.whole)} launches",
        *(f"  {finding.sentence}" for finding in found.findings),
        *(f"    to do: {advice}" for advice in dict.fromkeys(f.advice for f in found.findings)),
        *(f"  in doubt: {doubt}" for doubt in found.doubts),
        *whole_notes(log),
        *found.notes,
        *log.notes,
    ]
    if not log.ended:
        lines.append(
            f"the screening did not come to its end; go on with: clustergate screen --resume "
            f"{where.parent.name}"
        )
    if found.keeps_out and found.what == "node":
        today = datetime.date.today()
        lines += ["to take them out of Slurm:", *scontrol_lines(found, today)]
        lines += ["to exclude them in the hostfile:", *hostfile_lines(found, today)]
    lines.append(f"heat map, ticket and other forms: {where}")
    lines.append(f"clustergate screen: exit status {status}: {MEANINGS[status]}")
    return lines


_VERDICTS = {0: "NOBODY TO BLAME", 1: "FOUND", 2: "CANNOT TELL"}


def word_for(status: int, found: Screening) -> str:
    """Return the screening in a word or two."""
    if status == 0 and len(found.names) < FEWEST:
        return "NOTHING TO COMPARE"
    return _VERDICTS[status]


MEANINGS = {
    0: "nobody is to blame",
    1: "somebody is to blame",
    2: "not everything was measured, or something is in doubt",
}


def whole_notes(log: Log) -> list[str]:
    """Return what the node reached whose cores were screened."""
    lines = []
    for result in log.whole:
        figures = [
            f"{MEASURES[key].title} {number(value)} {MEASURES[key].unit}"
            for key, value in result.values.items()
        ]
        lines.append(f"{result.nodes[0]} by itself: {', '.join(figures) or result.failed}")
    return lines


def exit_status(log: Log, found: Screening) -> int:
    """Return 1 when somebody is to blame, 2 when that cannot be said, else 0."""
    if found.findings:
        return 1
    failed = any(result.failed for result in log.whole)
    unmeasured = any(located.unmeasured for located in found.located.values())
    return 2 if found.doubts or failed or unmeasured or not log.ended else 0
