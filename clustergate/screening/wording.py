"""What is told of a screening in a terminal, and its exit status. Pure."""

from __future__ import annotations

import datetime
from pathlib import Path

from clustergate.screening.findings import FEWEST, Screening, hostfile_lines, scontrol_lines
from clustergate.screening.measures import MEASURES
from clustergate.screening.plan import Log
from clustergate.wording.notation import counted, number


def summary(log: Log, screening: Screening, where: Path) -> list[str]:
    """Return what is printed of a screening."""
    status = exit_status(log, screening)
    pairs = len({frozenset(r.nodes) for r in log.results if len(r.nodes) == 2})
    lines = [
        "",
        f"{word_for(status, screening)}: {counted(len(screening.names), screening.what)} alone, "
        f"{counted(pairs, 'pair')}, {counted(len(log.results) + len(log.whole), 'launch')}",
        *(f"  {finding.sentence}" for finding in screening.findings),
        *(f"    to do: {advice}" for advice in dict.fromkeys(f.advice for f in screening.findings)),
        *(f"  in doubt: {doubt}" for doubt in screening.doubts),
        *whole_notes(log),
        *screening.notes,
        *log.notes,
    ]
    if not log.ended:
        lines.append(
            "the screening did not finish; resume it with: clustergate screen --resume "
            f"{where.parent.name}"
        )
    if screening.keeps_out and screening.what == "node":
        today = datetime.date.today()
        lines += ["to drain them in Slurm:", *scontrol_lines(screening, today)]
        lines += ["to exclude them in the hostfile:", *hostfile_lines(screening, today)]
    lines.append(f"heat map, ticket and other forms: {where}")
    lines.append(f"clustergate screen: exit status {status}: {MEANINGS[status]}")
    return lines


_VERDICTS = {0: "NO FAULTS FOUND", 1: "FAULTS FOUND", 2: "INCONCLUSIVE"}


def word_for(status: int, screening: Screening) -> str:
    """Return the screening in a word or two."""
    if status == 0 and len(screening.names) < FEWEST:
        return "NOTHING TO COMPARE"
    return _VERDICTS[status]


MEANINGS = {
    0: "no faults found",
    1: "faults found",
    2: "not everything was measured, or a doubt is left",
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


def exit_status(log: Log, screening: Screening) -> int:
    """Return 1 when a fault was found, 2 when that cannot be said, else 0."""
    if screening.findings:
        return 1
    failed = any(result.failed for result in log.whole)
    unmeasured = any(located.unmeasured for located in screening.located.values())
    return 2 if screening.doubts or failed or unmeasured or not log.ended else 0
