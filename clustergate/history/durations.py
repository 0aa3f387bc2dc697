"""How long cases took before: what the plan of a run goes by."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

from clustergate import store
from clustergate.history.stored_runs import in_order
from clustergate.model import CaseRecord

_LAUNCHING_S = 5.0
# To read a run with a million samples takes seconds.
_NEWEST_RUNS = 3


def seconds_taken(records: Sequence[CaseRecord]) -> dict[tuple[str, str], float]:
    """Return the seconds that each check took with each stack.

    That is its launches, with their start and what measured the node's peaks beside them.
    """
    taken_s: dict[tuple[str, str], float] = defaultdict(float)
    for record in records:
        launches_s = sum(launch.seconds for launch in record.launches)
        peaks_s = float(str(record.details.get("peaks_s", 0)))
        taken_s[record.check, record.stack] += launches_s + peaks_s + _LAUNCHING_S
    return dict(taken_s)


def seconds_last_time(system: str, mode: str) -> Mapping[tuple[str, str], float]:
    """Return what each check took with each stack in the newest run of a mode that measured it."""
    taken_s: dict[tuple[str, str], float] = {}
    for _, folder in in_order("cases")[-_NEWEST_RUNS:]:
        # What is damaged there is no reason not to measure.
        with contextlib.suppress(store.StoreError):
            records = [
                record
                for record in store.read_cases(folder.name)
                if record.partition.startswith(f"{system}:")
                and record.conditions.get("mode") == mode
            ]
            taken_s |= seconds_taken(records)
    return taken_s
