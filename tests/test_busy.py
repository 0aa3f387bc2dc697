"""What a busy node still measures, and what a case that was not launched is called."""

import dataclasses

import pytest

from clustergate.benchmarks.budget import Budget
from clustergate.core import store
from clustergate.core.model import CaseRecord, CaseState, Launch, Verdict
from clustergate.judge.assembly import Outcome, assemble, is_undecided, verdicts
from clustergate.judge.judging import exit_status
from clustergate.launch.disturbance import NODE_SHARED
from clustergate.launch.stopping import is_enough
from clustergate.report.junit import render_junit
from clustergate.report.summary import next_commands, status_of
from clustergate.run import busy
from tests import builders

NOW = 1000.0
SHARED = NODE_SHARED(host="n1", lost_cores=1.5, cores=2)


def ran(
    stack: str = "mpich", check: str = "HplCheck", lost: float = 1.5, **of: float
) -> CaseRecord:
    """Return a case that took 30 s, with others on its node."""
    launch = Launch(0, of.get("started", 900.0), 30.0, lost_cores=lost, disturbed=SHARED)
    return builders.record(builders.hpl(), launches=[launch], stack=stack, check=check)


def alone(one: CaseRecord) -> CaseRecord:
    """Return a case as nobody disturbed it."""
    return dataclasses.replace(
        one, launches=[dataclasses.replace(x, disturbed=None) for x in one.launches]
    )


@pytest.mark.parametrize(
    ("records", "until", "why"),
    [
        ([], NOW - 1, None),
        ([ran("openmpi")], NOW + 100, "it would be no other bound than with openmpi"),
        # The first of its kind tells something new, as long as it may end in time.
        ([ran(check="HpccCheck")], NOW + 31, None),
        ([ran(check="HpccCheck")], NOW + 29, "nothing could be judged in the time left"),
        # A tenth of a core is no reason, nor is what was there before.
        ([ran("openmpi", lost=0.2)], NOW - 1, None),
        ([alone(ran("openmpi"))], NOW - 1, None),
        ([ran("openmpi"), alone(ran("intel-mpi", started=950.0))], NOW - 1, None),
        ([alone(ran("openmpi")), ran("intel-mpi", started=950.0)], NOW + 100, "no other bound"),
    ],
)
def test_a_busy_node_measures_one_of_each_kind(
    records: list[CaseRecord], until: float, why: str | None
) -> None:
    said = busy.not_launched("HplCheck", "local:node", records, until, NOW)
    assert (said is None) == (why is None)
    assert why is None or why in str(said)


def test_only_a_node_that_was_noted_as_busy_is_spared(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    store.write_case("r", ran("openmpi"))
    of = ("r", "HplCheck", "local:node")
    assert busy.why_not_launched(*of) is None
    busy.note_busy("r", is_busy=True)
    assert busy.why_not_launched(*of) is not None
    # A run that is resumed looks anew.
    busy.note_busy("r", is_busy=False)
    assert busy.why_not_launched(*of) is None


def test_a_case_that_was_not_launched_is_not_judged_and_fails_a_strict_run() -> None:
    why = busy.not_launched("HplCheck", "local:node", [ran("openmpi")], NOW, NOW)
    spared = builders.record(unavailable=str(why), not_launched=why)
    outcomes = [
        Outcome(one.name, one.check, one.stack, result, partition=one.partition)
        for one, result in ((ran("openmpi"), "pass"), (spared, "skip"))
    ]
    cases = assemble((), outcomes, [ran("openmpi"), spared])
    case = next(one for one in cases if one.stack == "mpich")
    assert (case.state, case.reasons) == (CaseState.NOT_LAUNCHED, (why,))
    assert is_undecided(case)
    assert verdicts([case]) == [Verdict.INCONCLUSIVE]
    assert exit_status(verdicts([case])) == 0
    run = dataclasses.replace(builders.run(), cases=cases)
    strict = dataclasses.replace(run, strict=True)
    assert (status_of(run), status_of(strict)) == (0, 2)
    assert "<skipped message" in render_junit(run)
    assert "cannot be judged: it was not launched" in render_junit(strict)
    # Which library is faster is told on a busy node, too, of those that were spared.
    _, command = next_commands(cases, "r", "smoke")[0]
    assert command == "clustergate ab mpich openmpi --benchmarks PingPong --budget 2m"


@pytest.mark.parametrize(
    ("seconds", "undisturbed", "enough"),
    [([15.0], 0, True), ([5.0], 0, False), ([15.0], 1, False), ([15.0, 15.0, 15.0], 2, True)],
)
def test_no_more_is_launched_where_nothing_counts_and_the_time_is_spent(
    seconds: list[float], undisturbed: int, enough: bool
) -> None:
    budget = Budget(at_least=3, at_most=6, seconds=20.0)
    assert is_enough(budget, seconds, undisturbed, lambda: 0.0) is enough
    # Who asks for launches by their number has them all.
    assert not is_enough(Budget(3, 3), seconds[:1], 0, lambda: 0.0)
