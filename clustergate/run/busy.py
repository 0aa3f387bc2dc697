"""What a busy node still measures: one case of each kind, for bounds, and no more than minutes.

Noise makes a launch slower and never faster: what one stack reached beside others is a bound of the
machine, that of the next stack no other one. Stacks are compared by ``clustergate ab``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from clustergate.core import store
from clustergate.core.files.whole import read_json
from clustergate.core.model import CaseRecord
from clustergate.core.reasons import Reason, Words

BOUNDS_S = 80.0
"""For so long a busy node is measured, at most, and to the end of what was launched by then."""
# Half a core: of less, the next launch may see nothing.
_BUSY_CORES = 0.5
_UNTIL = "busy.json"

CASE_NOT_LAUNCHED = Words(
    "case.not-launched",
    "it was not launched: others kept this node busy, so that {why}",
    remedy="measure when nothing else runs, or compare stacks with `clustergate ab`",
)
_A_BOUND = "it would be no other bound than with {}"
_TOO_LATE = "nothing could be judged in the time left"


def note_busy(run_id: str, *, is_busy: bool) -> None:
    """Keep for the cases of a run until when they are launched, if others keep this node busy."""
    path = store.run_folder(run_id) / _UNTIL
    path.unlink(missing_ok=True)
    if is_busy:
        store.write_json(path, {"until": time.time() + BOUNDS_S})


def why_not_launched(run_id: str, check: str, partition: str) -> Reason | None:
    """Return why a case of a run is not launched, None where it is."""
    path = store.run_folder(run_id) / _UNTIL
    if not path.is_file():
        return None
    records = store.read_cases(run_id, samples=False)
    return not_launched(check, partition, records, float(read_json(path)["until"]), time.time())


def not_launched(
    check: str, partition: str, records: Sequence[CaseRecord], until: float, now: float
) -> Reason | None:
    """Return why the next case of a busy node is not launched, by the ``records`` before it.

    It is launched if it is the first of its check in its ``partition``, and would end before
    ``until`` (as ``now`` in seconds since the epoch) if it took as long as the longest so far; and
    whatever comes after a case that others left alone.
    """
    made = [one for one in records if one.launches]
    last = max(made, key=lambda one: one.launches[-1].started, default=None)
    if last is None or not all(one.disturbed for one in last.launches):
        return None
    if max(one.lost_cores or 0.0 for one in last.launches) < _BUSY_CORES:
        return None
    alike = [one.stack for one in made if (one.check, one.partition) == (check, partition)]
    longest_s = max(sum(launch.seconds for launch in one.launches) for one in made)
    if alike:
        return CASE_NOT_LAUNCHED(why=_A_BOUND.format(alike[0]))
    if now + longest_s > until:
        return CASE_NOT_LAUNCHED(why=_TOO_LATE)
    return None
