"""The state of the node that each stored run recorded, and what changed between two of them."""

from __future__ import annotations

import json
from typing import Any

from clustergate import store
from clustergate.history.stored_runs import in_order
from clustergate.machine.changes import Difference, describe, differences
from clustergate.machine.fingerprint import Fingerprint, from_record
from clustergate.model import ClustergateError

NODE_STATE = "machine.json"
"""In the folder of a run."""


def recorded_runs() -> list[str]:
    """Return the runs that recorded their machine, the oldest first."""
    return [folder.name for _, folder in in_order(NODE_STATE)]


def changed_between(before: str, after: str) -> list[Difference]:
    """Return what changed on the node between two runs, nothing where one did not record it."""
    old, new = _recorded(before), _recorded(after)
    return differences(old, new) if old and new else []


def changed_since(run_id: str, fingerprint: dict[str, Any], when: str) -> list[str]:
    """Return in a sentence what changed on this node since a run recorded it, if anything did."""
    before = _recorded(run_id)
    if before is None:
        path = store.run_folder(run_id) / NODE_STATE
        return [f"changes since {when} are unknown: {path} cannot be read"]
    changed = differences(before, from_record(fingerprint, "this node"))
    return [describe(changed, since=when)] if changed else []


def changed_since_the_run_before(run_id: str, fingerprint: dict[str, Any]) -> list[str]:
    """Return what changed on this node since the run before this one; nothing when nothing did."""
    runs = recorded_runs()
    earlier = runs[: runs.index(run_id)] if run_id in runs else runs
    return changed_since(earlier[-1], fingerprint, f"the run {earlier[-1]}") if earlier else []


def _recorded(run_id: str) -> Fingerprint | None:
    path = store.run_folder(run_id) / NODE_STATE
    try:
        return from_record(json.loads(path.read_text(encoding="utf-8")), str(path))
    except (OSError, ValueError, ClustergateError):
        return None
