"""After a run: what ReFrame reports, what the cases left behind, and what its nodes are like."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clustergate.benchmarks.registry import lost_tests
from clustergate.core import store
from clustergate.core.files.stored import decode
from clustergate.core.model import Case, CaseRecord, ComparedSet, Promise
from clustergate.core.reasons import Reason
from clustergate.judge.assembly import Outcome
from clustergate.judge.history.node_states import (
    HERE,
    NODE_STATE,
    changed_meanwhile,
    changed_since_the_last_good_run,
    read_states,
    typical_state,
)
from clustergate.launch.disturbance import overlapping
from clustergate.machine.configuration import ConfigurationFile
from clustergate.run import resuming
from clustergate.run.prepare import Prepared
from clustergate.run.reframe import (
    CASE_NOT_LOADED,
    left_out,
    read_log,
    read_outcomes,
    stopped_early,
)


@dataclass(frozen=True)
class Collected:
    """What there is of a run when ReFrame has ended.

    ``fingerprint`` is the state that most of its nodes have, with the software that it runs with,
    ``changes`` say what changed on them since the last good run, or since this one began,
    ``notes`` what ReFrame left out, ``not_loaded`` why checks of added packages did not load.
    """

    outcomes: Sequence[Outcome]
    records: Sequence[CaseRecord]
    fingerprint: dict[str, Any]
    changes: Sequence[str]
    notes: Sequence[str]
    not_loaded: Mapping[str, Reason]
    duration_s: float


@dataclass(frozen=True)
class Relaunches:
    """What launching again left.

    ``cases`` are those of the run, with what looked slow decided, ``records`` those of each further
    time. ``detectable`` is what the run would have found, by level, as a logarithm, ``sets`` what
    was compared as a whole, ``promises`` are those of stacks and kinds by partitions.
    """

    cases: tuple[Case, ...]
    records: Sequence[Sequence[CaseRecord]] = ()
    detectable: Mapping[str, float] = field(default_factory=dict)
    sets: tuple[ComparedSet, ...] = ()
    promises: Mapping[str, tuple[Promise, ...]] = field(default_factory=dict)

    @property
    def launched(self) -> list[CaseRecord]:
        return [record for of_one in self.records for record in of_one]


def collect(prepared: Prepared, status: int) -> Collected:
    """Read what a run left, and keep with it what its nodes are like.

    Raises :class:`ClustergateError` where ReFrame, which ended with
    ``status``, left no report.
    """
    call, run_id = prepared.call, prepared.run_id
    outcomes = resuming.merge_outcomes(prepared.earlier, read_outcomes(call.report, status))
    records = without_overlaps(store.read_cases(run_id))
    folder = call.report.parent
    printed = read_log(call.log)
    begun = read_states(folder).get(HERE)
    here, there = prepared.fingerprint["fingerprint"], typical_state(folder)
    software = {**here["software"], **there.get("software", {}), **configuration_of(records)}
    state = {**here, **there, "software": software}
    fingerprint = {**prepared.fingerprint, "fingerprint": state}
    store.write_json(folder / NODE_STATE, fingerprint)
    return Collected(
        outcomes,
        records,
        fingerprint,
        [
            *changed_meanwhile(run_id, {HERE: begun} if begun else {}),
            *changed_since_the_last_good_run(run_id),
        ],
        stopped_early(printed),
        {**left_out(printed), **_without_tests()},
        time.monotonic() - prepared.begun,
    )


def _without_tests() -> dict[str, Reason]:
    """Return why checks of added packages have no tests, by their names."""
    whys = lost_tests().items()
    return {check: CASE_NOT_LOADED(why=str(why)) for check, why in whys}


def without_overlaps(records: Sequence[CaseRecord]) -> list[CaseRecord]:
    """Return the records, launches that ran beside one of another case marked as disturbed."""
    marked = overlapping({record.name: record.launches for record in records})
    return [dataclasses.replace(one, launches=tuple(marked[one.name])) for one in records]


def configuration_of(records: Sequence[CaseRecord]) -> dict[str, list[str]]:
    """Return the site's configuration files that each stack could see, for the fingerprint."""
    texts_of: dict[str, set[str]] = {}
    for record in records:
        files: Any = record.details.get("site_files")
        if files is not None:
            texts = {f"{one} {one.digest}" for one in decode(files, tuple[ConfigurationFile, ...])}
            texts_of.setdefault(f"configuration_of_{record.stack}", set()).update(texts)
    return {name: sorted(texts) for name, texts in texts_of.items()}
