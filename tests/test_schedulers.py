"""Schedulers: each in a file of its own, and nobody else asks which it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clustergate.core.paths import checkout
from clustergate.run.forecast import beyond_forecast
from clustergate.sites.description import Partition, Site
from clustergate.sites.schedulers import SCHEDULERS, scheduler_of
from clustergate.sites.schedulers.job_options import JobOptions
from clustergate.sites.schedulers.scheduler import Limits, Queue

ASKS_WHICH = re.compile(
    r"\bin (?:SLURM|PBS)\b|\bscheduler\b[\"'\]]* *(?:[=!]=|(?:not )?in) *[\"'(\[{]"
)


def elsewhere() -> list[Path]:
    folders = (checkout() / name for name in ("clustergate", "reframe_checks"))
    own = checkout() / "clustergate" / "sites" / "schedulers"
    return [path for one in folders for path in one.rglob("*.py") if own not in path.parents]


@pytest.mark.parametrize(
    "line",
    [
        "if partition.scheduler in SLURM:",
        'if partition.scheduler == "local":',
        'if partition["scheduler"] != "slurm":',
        'if scheduler in ("pbs", "pbspro"):',
    ],
)
def test_question_which_scheduler_it_is_noticed(line: str) -> None:
    assert ASKS_WHICH.search(line)


def test_nobody_asks_which_scheduler_it_is() -> None:
    assert len(elsewhere()) > 100
    asking = {
        f"{path.relative_to(checkout())}:{number}"
        for path in elsewhere()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if ASKS_WHICH.search(line)
    }
    assert asking == set()


def test_no_scheduler_imported_by_name() -> None:
    imports = re.compile(
        r"clustergate\.sites\.schedulers\.(?!scheduler\b|scanned\b|job_options\b)[\w.]+ import"
    )
    named = {
        str(path.relative_to(checkout()))
        for path in elsewhere()
        if imports.search(path.read_text())
    }
    assert named == set()


def test_names_of_reframe_lead_to_one_scheduler_each() -> None:
    names = [name for one in SCHEDULERS for name in one.reframe_names]
    assert len(names) == len({*names})
    assert scheduler_of("slurm") is scheduler_of("squeue")
    assert all(scheduler_of(name) in SCHEDULERS for name in names)


def test_unknown_scheduler_is_a_batch_system_that_tells_nothing() -> None:
    unknown = scheduler_of("sge")
    assert (unknown.name, unknown.is_batch, unknown.lists_nodes) == ("sge", True, False)
    assert unknown.limits(["-q all"]) == Limits()
    assert (unknown.node_names(), unknown.unused_notes(), unknown.queues()) == ([], [], {})
    assert unknown.words(JobOptions(account="a")) == []
    assert unknown.waits_for(Path("/")) == ""
    assert unknown.allowed_in(Queue(), ["-q all"]) == Queue()


def test_jobs_of_every_batch_system_wait() -> None:
    def site(*names: str) -> Site:
        parts = [Partition(name=name, scheduler=name) for name in names]
        return Site(name="alpha", hostnames=[], partitions=parts)

    assert beyond_forecast(site("local"), []) == ""
    assert (
        beyond_forecast(site("local", "slurm", "squeue"), []) == ", plus waiting in Slurm's queue"
    )
    assert beyond_forecast(site("sge"), []) == ", plus waiting in sge's queue"
