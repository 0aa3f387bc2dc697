"""A screening in a word, and its exit status."""

from __future__ import annotations

from pathlib import Path

from clustergate.core.model import ClustergateError
from clustergate.core.notation import listed
from clustergate.studies.screen.findings import FEWEST, Screening
from clustergate.studies.screen.folder import read_screening
from clustergate.studies.screen.plan import Log

_VERDICTS = {0: "NO FAULTS FOUND", 1: "FAULTS FOUND", 2: "INCONCLUSIVE"}


def word_for(status: int, screening: Screening) -> str:
    """Return the screening in a word or two."""
    few = status == 2 and len(screening.names) < FEWEST and not screening.doubts
    return "NOTHING TO COMPARE" if few else _VERDICTS[status]


MEANINGS = {
    0: "no faults found",
    1: "faults found",
    2: "not everything was measured or can be compared, or a doubt is left",
}


def exit_status(log: Log, screening: Screening) -> int:
    """Return 1 when a fault was found, 2 when that cannot be said, else 0."""
    if screening.findings or screening.astray:
        return 1
    unmeasured = any(located.unmeasured for located in screening.located.values())
    return 2 if unmeasured or not calls_good(log, screening) else 0


def calls_good(log: Log, screening: Screening) -> bool:
    """Tell whether those that are measured and not to blame are good: nothing is in doubt."""
    few = len(screening.names) < FEWEST and not screening.quick
    return not (few or screening.doubts or screening.astray) and log.ended


def summarise_folder(where: Path) -> str:
    """Return what the screening in a folder found, in a few words, once its job has ended."""
    try:
        _, log, screening = read_screening(where)
    except ClustergateError:
        return "FAILED"
    word = word_for(exit_status(log, screening), screening).lower()
    return ": ".join(filter(None, [word, listed([f.suspect for f in screening.findings], 2)]))
