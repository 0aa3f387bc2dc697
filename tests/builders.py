"""What tests are given: samples, records, cases, runs and baselines. What is not named is usual.

A record is of two ranks on one node; a baseline is of the runs of one day after another.
"""

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from clustergate.benchmarks.registry import every_check, every_metric
from clustergate.core.model import (
    BaselineRuns,
    Case,
    CaseId,
    CaseRecord,
    CaseState,
    ConditionValue,
    Estimate,
    Figure,
    Judgement,
    Launch,
    Run,
    Sample,
    Verdict,
)
from clustergate.core.reasons import in_words
from clustergate.judge.assembly import Outcome
from clustergate.judge.history.stored_runs import PastRun
from clustergate.sites.modes import Mode, judged_figures

START = datetime.datetime(2026, 11, 1, 8, tzinfo=datetime.timezone.utc)
CONDITIONS: dict[str, ConditionValue] = {
    "mode": "smoke",
    "ranks": 2,
    "ranks_per_node": 2,
    "nodes": 1,
    "cores_per_rank": 1,
    "placement": "packed",
    "bound": True,
    "settings": "",
}
CHECKS = {"HPL": "HplCheck", "HPCC": "HpccCheck"}


def sample(
    benchmark: str, metric: str, value: float = 1.0, order: int = 0, **conditions: ConditionValue
) -> Sample:
    """Return one value of a metric that the suite knows, with its unit."""
    known = every_metric()[metric]
    return Sample(benchmark, metric, known.unit, known.better, conditions, value, order)


def hpl(value: float = 91.4, order: int = 0, **conditions: ConditionValue) -> Sample:
    """Return a rate of HPL in Gflop/s."""
    return sample("HPL", "performance_gflops", value, order, **{"n": 8832, "nb": 192, **conditions})


def ping(
    value: float = 1.5,
    size: int = 8,
    order: int = 0,
    benchmark: str = "PingPong",
    metric: str = "latency_us",
) -> Sample:
    """Return a latency in microseconds, or another metric of IMB."""
    return sample(benchmark, metric, value, order, processes=2, groups=1, bytes=size)


def launches(count: int, seconds: float = 1.0, **changes: Any) -> list[Launch]:
    """Return launches of so many seconds each."""
    return [Launch(order, 0.0, seconds, **changes) for order in range(count)]


def record(*samples: Sample, partition: str = "local:node", **changes: Any) -> CaseRecord:
    """Return the record of a case with these samples, of the check that measures the first."""
    check = CHECKS.get(samples[0].benchmark, "ImbMpi1Check") if samples else "HplCheck"
    fields: dict[str, Any] = {"check": check, "stack": "mpich", "conditions": CONDITIONS}
    fields |= {"samples": samples, **changes}
    named = f"{fields['check']}-{partition.partition(':')[2]}-{fields['stack']}"
    return CaseRecord(**{"name": named, "partition": partition, **fields})


def built(build: str = "b1", nodes: Iterable[str] = ("n1",), **details: Any) -> dict[str, Any]:
    """Return the details of a record that a baseline can be made of."""
    return {"build_key": build, "proof": {"hosts": list(nodes)}, **details}


def outcome(check: str = "HplCheck", stack: str = "mpich", **changes: Any) -> Outcome:
    """Return what ReFrame says of a case: that it passed."""
    fields: dict[str, Any] = {"partition": "local:node", "result": "pass", **changes}
    return Outcome(check=check, stack=stack, **{"name": f"{check}-node-{stack}", **fields})


def passed(kept: CaseRecord, **changes: Any) -> Outcome:
    """Return what ReFrame says of a recorded case: that it passed."""
    of = {"name": kept.name, "partition": kept.partition}
    return outcome(kept.check, kept.stack, **{**of, **changes})


def past_runs(
    records: Iterable[CaseRecord], hours: float = 2.0, start: datetime.datetime = START
) -> list[PastRun]:
    """Return stored runs of one record each, so many hours apart."""
    return [
        PastRun(f"run{k:02}", start + datetime.timedelta(hours=k * hours), [kept])
        for k, kept in enumerate(records)
    ]


def baseline(values: Sequence[float], days: int = 99, **changes: Any) -> BaselineRuns:
    """Return a baseline whose runs said these values, on so many days in turn."""
    fields: dict[str, Any] = {
        "runs": tuple(f"run{k:02}" for k in range(len(values))),
        "days": tuple(str(START.date() + datetime.timedelta(k % days)) for k in range(len(values))),
        "values": tuple(values),
        "launches": 5,
    }
    return BaselineRuns(**{**fields, **changes})


def judgement(verdict: Verdict = Verdict.PASS, sentence: str = "because of that") -> Judgement:
    """Return a verdict with its sentence."""
    return Judgement(verdict, (in_words(sentence),))


def estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    """Return what five launches say, or one if nobody knows an interval."""
    if low is None:
        return Estimate(value, None, None, confidence=0.0, samples=1)
    return Estimate(value, low, high, confidence=0.99, samples=5)


def figure(
    benchmark: str = "PingPong",
    metric: str = "latency_us",
    value: float | None = 1.5,
    # Any, so that a test can unpack what it changes.
    verdict: Any = Verdict.PASS,
    sentence: Any = "because of that",
    **changes: Any,
) -> Figure:
    """Return a judged figure; of another metric than the suite's the unit is a change."""
    known = every_metric().get(metric, every_metric()["latency_us"])
    fields: dict[str, Any] = {
        "unit": known.unit,
        "better": known.better,
        "conditions": {"bytes": 8},
        "estimate": None if value is None else estimate(value),
        "judgement": judgement(verdict, sentence),
    }
    return Figure(benchmark, metric, **{**fields, **changes})


def case(
    check: str = "HplCheck",
    stack: str = "mpich",
    state: Any = CaseState.RAN,
    reason: Any = "",
    **changes: Any,
) -> Case:
    """Return a case as it is reported, and why it did not run or count."""
    fields: dict[str, Any] = {"reasons": (in_words(reason),) if reason else ()}
    return Case(check, stack, state, **{**fields, **changes})


def run(*cases: Case, **changes: Any) -> Run:
    """Return a run of these cases as it is reported."""
    fields: dict[str, Any] = {"run_id": "20261121T065003Z-1", "system": "local", "mode": "smoke"}
    fields |= {"started": "2026-11-21T06:50:03+00:00", "duration_s": 175.0, "cases": cases}
    return Run(**{**fields, **changes})


def complete_case(
    key: CaseId, mode: Mode, *verdicts: Verdict, **conditions: ConditionValue
) -> Case:
    """Return a case with every figure that the gate must see judged, by each of the verdicts."""
    names = [name.partition(".") for name in judged_figures(mode, every_check()[key.check])]
    return case(
        key.check,
        key.stack,
        conditions={"mode": mode.name, "ranks": 2, "settings": "", **conditions},
        figures=tuple(
            figure(benchmark, metric or "x", None, verdict, conditions={})
            for verdict in verdicts or (Verdict.PASS,)
            for benchmark, _, metric in names
        ),
        partition=key.partition,
        parameters=key.parameters,
    )
