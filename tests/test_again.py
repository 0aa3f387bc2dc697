"""What looks slow is launched again, twice, before anybody is told that it is slower."""

import dataclasses
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clustergate.core import store
from clustergate.core.model import (
    ERROR_OTHER,
    BaselineRuns,
    Better,
    Case,
    CaseRecord,
    ConditionValue,
    Launch,
    NodeFacts,
    Reference,
    Run,
    Sample,
    Verdict,
)
from clustergate.judge.assembly import Outcome
from clustergate.judge.confirmation import Answer, Look, answer_of
from clustergate.judge.history import listing, stored_runs
from clustergate.report.summary import exit_meaning, first_screen, status_of
from clustergate.run import again, resuming
from clustergate.run.collect import Collected, Relaunches
from clustergate.run.gate import evidence
from clustergate.run.gate.decision import OPEN, UNJUDGED, benchmark_evidence, decide
from clustergate.run.judge import launched_again, unconfirmed
from clustergate.run.reframe import Call
from clustergate.run.request import Request, read_request, write_request
from clustergate.sites.exclusions import WITHOUT_NODES
from clustergate.sites.modes import mode_named
from clustergate.sites.shape import Shape

RUN = "20261101T000000Z-r1"
AS_IT_IS = evidence.Publisher(lambda run: run, lambda *_: None)
PARTITION = "local:node"
USUAL = 100.0


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    return tmp_path


# --- what the launches come to --------------------------------------------------------------------

SLOW, FAST, UNTOLD = Look(0.14, True), Look(0.01, False), Look(None, None)


def on(node: str, look: Look) -> Look:
    return dataclasses.replace(look, nodes=(node,))


@pytest.mark.parametrize(
    ("looks", "answer"),
    [
        ([SLOW, SLOW, SLOW], Answer.SLOW),
        ([SLOW, FAST], Answer.FAST),
        ([SLOW, SLOW, FAST], Answer.FAST),
        ([SLOW, UNTOLD, FAST], Answer.FAST),
        ([SLOW], Answer.OPEN),
        ([SLOW, SLOW], Answer.OPEN),
        ([SLOW, SLOW, UNTOLD], Answer.OPEN),
        ([on("n1", SLOW), on("n1", SLOW), on("n2", FAST)], Answer.ON_NODES),
        ([on("n1", SLOW), on("n1", SLOW), on("n1", FAST)], Answer.FAST),
        # Each was there once.
        ([on("n1", SLOW), on("n2", FAST)], Answer.FAST),
        ([on("n1", SLOW), on("n1", SLOW), on("n2", SLOW)], Answer.SLOW),
    ],
)
def test_slow_every_time_alone_is_slower(looks: Sequence[Look], answer: Answer) -> None:
    assert answer_of(looks) is answer


# --- a run, with a ReFrame that leaves what it is told to -----------------------------------------


LAYOUT: Mapping[str, ConditionValue] = {
    "mode": "smoke",
    "nodes": 1,
    "ranks": 2,
    "placement": "packed",
}


def record(
    value: float,
    host: str = "n1",
    started: float = 1.79e9,
    complaint: str = "",
    check: str = "",
    launches: int = 1,
) -> CaseRecord:
    check = check or "HplCheck"
    orders = range(launches)
    samples = [
        Sample("HPL", "performance_gflops", "Gflop/s", Better.HIGHER, {}, value - order, order)
        for order in orders
    ]
    return CaseRecord(
        *(f"{check}-node-mpich", check, "mpich", PARTITION),
        {**LAYOUT, "ranks_per_node": 2, "cores_per_rank": 1},
        samples=samples,
        launches=[Launch(order, started + 20 * order, 10.0) for order in orders],
        complaints=[ERROR_OTHER(sentence=complaint)] if complaint else [],
        details={"proof": {"hosts": [host]}, "launch_s": 10.0, resuming.HASH: check},
    )


def key(check: str) -> str:
    return f"/{check} @{PARTITION}+mpich"


def outcome(check: str = "HplCheck", *, passes: bool = False) -> Outcome:
    ended = ("pass", "") if passes else ("fail", "performance")
    return Outcome(
        *(f"{check}-node-mpich", check, "mpich", *ended),
        key=key(check),
        partition=PARTITION,
    )


def reference(*_: object) -> Reference:
    runs = BaselineRuns(
        runs=tuple(f"run{k:02}" for k in range(20)),
        days=tuple(f"2026-10-{1 + k:02}" for k in range(20)),
        values=tuple(USUAL * (1 + (k % 5 - 2) / 500) for k in range(20)),
        launches=1,
        compared=10,
        repeated=False,
    )
    return Reference(USUAL, -0.05, None, "Gflop/s", "measured, 20 runs", runs)


class Machine:
    """A run of HplCheck of some value, and what each further time leaves: a value or a record."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: float = 86.0, **of: Any) -> None:
        self.scheduler, self.nodes = of.pop("scheduler", "local"), of.pop("nodes", 1)
        self.request = Request(mode_named("smoke"), Path("local.py"), **of)
        self.first = [record(first), record(USUAL, check="HpccCheck")]
        self.times: dict[int, Any] = {}
        self.said: list[str] = []
        self.calls: list[tuple[str, list[str], dict[str, str]]] = []
        self.status = 0
        monkeypatch.setattr(again, "call_for", self._call_for)
        monkeypatch.setattr(again, "execute", self._execute)
        monkeypatch.setattr(resuming, "end_processes_of", lambda run_id: None)

    def _call_for(self, run_id: str, site: Path, options: Sequence[str], **_: Any) -> Call:
        report = store.run_folder(run_id) / "reframe.json"
        return Call(run_id, list(options), {}, report)

    def _execute(self, call: Call, say: Any, waiting: Any) -> int:
        self.calls.append((call.run_id, list(call.command), dict(call.environment)))
        left = self.times[int(call.run_id[-1])]
        if isinstance(left, BaseException):
            raise left
        one = left if isinstance(left, CaseRecord) else record(left, started=time.time())
        store.write_case(call.run_id, one)
        with call.log.open("a") as log:
            log.write(f"[ RUN      ] HplCheck {key('HplCheck')}\n")
            log.write(f"[     FAIL ] (1/1) HplCheck {key('HplCheck')}\n")
        call.report.write_text(json.dumps({"runs": [{"testcases": []}]}))
        return self.status

    def confirm(self, times: Sequence[Any]) -> Relaunches:
        self.times = dict(enumerate(times, 1))
        partition = SimpleNamespace(
            fullname=PARTITION,
            scheduler=self.scheduler,
            shape=Shape(2, self.nodes),
            checks={},
            facts=NodeFacts(),
        )
        prepared: Any = SimpleNamespace(
            request=self.request,
            run_id=RUN,
            references=SimpleNamespace(find=reference, expects=()),
            site=SimpleNamespace(partitions=[partition]),
            partitions=[partition],
            expected=[],
            not_set_up={},
        )
        # ReFrame fails what is beyond its reference.
        slow = self.first[0].samples[0].value < 0.95 * USUAL
        outcomes = [outcome(passes=not slow), outcome("HpccCheck", passes=True)]
        for one in self.first:
            store.write_case(RUN, one)
        collected = Collected(outcomes, self.first, {}, [], [], {}, 60.0)
        return again.confirm(prepared, collected, self.said.append)

    @property
    def of_attempts(self) -> list[int]:
        return [int(run_id[-1]) for run_id, *_ in self.calls]


def judged(of: Relaunches) -> Case:
    (case,) = [one for one in of.cases if one.check == "HplCheck"]
    return case


def run_of(of: Relaunches) -> Run:
    started = "2026-11-01T00:00:00+00:00"
    beside = tuple(unconfirmed(of.cases))
    return Run(RUN, "local", "smoke", started, 60.0, of.cases, evidence=beside)


def first_said(case: Case) -> str:
    (figure,) = case.figures
    return str(figure.judgement.reasons[0])


def test_benchmark_launched_once_is_slower_after_three_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """HPL with a spike in its only launch failed a run, and nobody launched it again."""
    machine = Machine(monkeypatch)
    of = machine.confirm([85.0, 86.0])
    (figure,) = judged(of).figures
    assert figure.judgement.verdict is Verdict.REGRESSION
    assert "slow three times in a row (14 %, 15 %, 14 %)" in figure.judgement.sentence
    assert status_of(run_of(of)) == 1
    assert machine.of_attempts == [1, 2]
    assert machine.said[0].startswith("launching HPL with mpich again (1 of 2): HPL 14 % slow")
    assert "; done by about " in machine.said[0]
    (line,) = launched_again(of)
    assert line == "launched again: 1 case in 2 launches, 20 node-seconds"


@pytest.mark.parametrize(
    ("again_so", "verdict", "said"),
    [
        (85.0, Verdict.REGRESSION, "slow in each of 3 launches (14 %, 15 %)"),
        (99.0, Verdict.INCONCLUSIVE, "slow once, and not when launched again (14 %, 1 %)"),
    ],
)
def test_what_was_slow_in_both_launches_of_its_job_is_launched_again_once(
    monkeypatch: pytest.MonkeyPatch, again_so: float, verdict: Verdict, said: str
) -> None:
    machine = Machine(monkeypatch)
    machine.first[0] = record(86.0, launches=2)
    of = machine.confirm([again_so])
    (figure,) = judged(of).figures
    assert figure.judgement.verdict is verdict
    assert said in figure.judgement.sentence
    assert machine.of_attempts == [1]
    assert "again (1 of 1): HPL 14 % slow" in machine.said[0]


def test_however_often_a_job_launched_another_has_to_confirm_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch)
    machine.first[0] = record(86.0, launches=5)
    of = machine.confirm([99.0])
    assert judged(of).figures[0].judgement.verdict is Verdict.INCONCLUSIVE
    assert machine.of_attempts == [1]


def test_a_disturbed_launch_of_two_confirms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    both = record(86.0, launches=2)
    disturbed = dataclasses.replace(both.launches[1], disturbed=ERROR_OTHER(sentence="busy"))
    machine.first[0] = dataclasses.replace(both, launches=[both.launches[0], disturbed])
    of = machine.confirm([85.0, 85.0])
    assert judged(of).figures[0].judgement.verdict is Verdict.REGRESSION
    assert machine.of_attempts == [1, 2]


@pytest.mark.parametrize(
    ("times", "each"), [([100.0], "14 %, 0 %"), ([86.0, 99.0], "14 %, 14 %, 1 %")]
)
def test_what_is_slow_once_is_counted_and_no_fault(
    monkeypatch: pytest.MonkeyPatch, times: list[float], each: str
) -> None:
    machine = Machine(monkeypatch)
    of = machine.confirm(times)
    assert first_said(judged(of)) == f"slow once, and not when launched again ({each})"
    assert judged(of).figures[0].judgement.verdict is Verdict.INCONCLUSIVE
    assert status_of(run_of(of)) == 0
    assert machine.of_attempts == [*range(1, len(times) + 1)]
    assert launched_again(of)[0].endswith("; 1 figure slow once and not again")


def test_the_gate_keeps_a_promise_that_is_kept_the_second_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = Machine(monkeypatch).confirm([100.0])
    monkeypatch.setattr(evidence, "run_session", lambda *_: run_of(of))
    request = Request(mode_named("maintenance"), Path("local.py"), checks=("HplCheck",))
    beside, ran = evidence.run_benchmarks(request, RUN, Any, print, AS_IT_IS)  # type: ignore[arg-type]
    assert ran
    assert decide([*beside, *benchmark_evidence(ran.cases)]).status == OPEN
    assert "1 figure was slow once" in " ".join(one.sentence for one in beside)
    # The run's own pages show it as it was.
    assert judged(of).figures[0].judgement.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("of", "times", "why"),
    [
        ({"confirm": False}, [], "--no-confirm was given"),
        ({"confirm_until": 1.0}, [], "launching it again takes about 15 s, and 0 s are left"),
        ({"confirm_wait_s": 0.0, "scheduler": "slurm"}, [], "--confirm-wait 0s lets no job wait"),
        ({}, [record(86.0, complaint="a rank died")], "launched again, it failed: a rank died"),
        ({}, [86.0, record(86.0, complaint="a rank died")], "it failed: a rank died"),
    ],
)
def test_what_cannot_be_launched_again_is_not_confirmed(
    monkeypatch: pytest.MonkeyPatch, of: dict[str, Any], times: list[Any], why: str
) -> None:
    machine = Machine(monkeypatch, **of)
    left = machine.confirm(times)
    said = first_said(judged(left))
    assert "which is not confirmed" in said
    assert why in said
    assert "`clustergate check --mode smoke --check HplCheck --stack mpich` launches" in said
    run = run_of(left)
    assert status_of(run) == 2
    assert "what looks slow is not confirmed" in exit_meaning(run)
    assert why in "\n".join(first_screen(run).lines())
    monkeypatch.setattr(evidence, "run_session", lambda *_: run)
    request = Request(mode_named("maintenance"), Path("local.py"), checks=("HplCheck",))
    beside, ran = evidence.run_benchmarks(request, RUN, Any, print, AS_IT_IS)  # type: ignore[arg-type]
    assert ran
    decision = decide([*beside, *benchmark_evidence(ran.cases)])
    assert decision.status == UNJUDGED
    assert any(why in one for one in decision.because)


def test_the_end_of_the_job_ends_launching_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_END_TIME", "1793491200")
    machine = Machine(monkeypatch)
    assert "s are left" in first_said(judged(machine.confirm([])))
    assert machine.calls == []


def test_nothing_is_launched_again_where_nothing_looks_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, first=100.0)
    of = machine.confirm([])
    assert (machine.calls, machine.said, launched_again(of)) == ([], [], [])
    assert status_of(run_of(of)) == 0


def test_only_the_suspicious_case_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, options=("-S", "n=1000"))
    machine.confirm([100.0])
    ((run_id, options, _),) = machine.calls
    assert run_id == f"{RUN}/again-1"
    assert options[0] == "--name=/HplCheck"
    assert options[-2:] == ["-S", "n=1000"]
    assert not any("pending" in option for option in options)
    # Whatever else the options name: a name that somebody gave is another one to ReFrame.
    assert resuming.is_completed(run_id, key("HpccCheck"))
    assert not resuming.is_completed(run_id, key("HplCheck"))


def test_a_failed_session_of_reframe_is_none_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    machine.status = 1
    assert status_of(run_of(machine.confirm([100.0]))) == 0


def test_a_job_waits_no_longer_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, scheduler="slurm", confirm_wait_s=120.0)
    machine.confirm([100.0])
    assert "--setvar=max_pending_time=120s" in machine.calls[0][1]


def test_the_second_time_is_on_other_nodes_where_there_are_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, scheduler="slurm", nodes=4)
    of = machine.confirm([record(86.0, "n1", time.time()), record(100.0, "n2", time.time())])
    left_out = [environment.get(WITHOUT_NODES) for *_, environment in machine.calls]
    assert left_out == [None, "n1"]
    said = first_said(judged(of))
    assert said.startswith("slow on n1 each time, and not on n2 (14 % on n1, 14 % on n1, 0 % on n2")
    assert status_of(run_of(of)) == 2


def test_a_run_that_was_killed_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        machine.confirm([86.0, KeyboardInterrupt()])
    assert machine.of_attempts == [1, 2]
    machine.calls.clear()
    of = machine.confirm([100.0, 86.0])
    assert machine.of_attempts == [2]
    assert status_of(run_of(of)) == 1
    # What was measured anew since is launched again as well.
    machine.first = [record(86.0, started=4e9), *machine.first[1:]]
    machine.calls.clear()
    machine.confirm([100.0])
    assert machine.of_attempts == [1]


def test_nobody_takes_what_was_launched_again_for_cases_or_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Machine(monkeypatch).confirm([86.0, 86.0])
    assert [one.check for one in store.read_cases(RUN)] == ["HpccCheck", "HplCheck"]
    assert [one.run_id for one in stored_runs.stored_runs()] == [RUN]
    (listed,) = listing.listed_runs()
    # What it takes on disk is the run's.
    inner = store.run_folder(RUN) / "again-2"
    assert listed.size_bytes > sum(one.stat().st_size for one in inner.rglob("*.json")) > 0
    listing.remove(RUN)
    assert not inner.exists()


def test_the_wishes_are_those_of_the_run_that_is_resumed() -> None:
    asked = Request(mode_named("smoke"), Path("local.py"), confirm=False, confirm_wait_s=60.0)
    write_request(asked, RUN)
    assert (read_request(RUN).confirm, read_request(RUN).confirm_wait_s) == (False, 60.0)


def test_what_was_launched_again_a_day_later_is_of_another_day() -> None:
    first, later = record(86.0), record(86.0, started=1.79e9 + 2 * 86400.0)
    assert resuming.measured_long_before([first, record(86.0, started=1.79e9 + 60.0)]) is None
    assert resuming.measured_long_before([first, later]) is not None


def test_variants_of_a_sweep_launched_again_by_check_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ReFrame chooses by hash before it makes them; what is not slow is skipped as completed."""
    machine = Machine(monkeypatch, options=("-P", "HplCheck.nb=96,192"))
    of = machine.confirm([86.0, 86.0])
    assert judged(of).figures[0].judgement.verdict is Verdict.REGRESSION
    (_, command, _), *_ = machine.calls
    assert r"--name=^HplCheck\b" in command
    assert not any(word.startswith("--name=/") for word in command)
    assert command[-2:] == ["-P", "HplCheck.nb=96,192"]


@pytest.mark.parametrize(("promises", "attempts"), [(False, []), (True, [1])])
def test_broken_promise_is_launched_again_by_a_gate(
    monkeypatch: pytest.MonkeyPatch, promises: bool, attempts: list[int]
) -> None:
    """What is not slow enough to be suspicious may be too slow to promise anything of it."""
    from clustergate.judge import promises as of_judge

    monkeypatch.setattr(of_judge, "HIDDEN", 0.001)
    monkeypatch.setattr(of_judge, "is_near_the_best", lambda of, places: False)
    machine = Machine(monkeypatch, first=98.5, promises=promises)
    of = machine.confirm([100.0])
    assert machine.of_attempts == attempts
    kept = {one.kept for one in judged(of).promises}
    assert kept == {promises}
    assert {one.kept for some in of.promises.values() for one in some} == {promises}
