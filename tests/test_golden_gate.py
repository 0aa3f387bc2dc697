"""What golden builds say at the gate: from made rounds, and from real launches in turn."""

import dataclasses
import datetime
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clustergate.benchmarks.registry import every_benchmark
from clustergate.cli import running
from clustergate.core import store
from clustergate.core.commands import NO_CALL
from clustergate.core.model import (
    BadRequest,
    Better,
    CaseRecord,
    ClustergateError,
    Evidence,
    Verdict,
)
from clustergate.core.reasons import in_words, reason_as_json
from clustergate.report.gate import first_screen
from clustergate.run import run as session_run
from clustergate.run import software
from clustergate.run.collect import Collected, Relaunches
from clustergate.run.contest import Contest
from clustergate.run.gate import controls
from clustergate.run.gate.decision import CLOSED, OPEN, UNJUDGED, decide
from clustergate.run.request import Request
from clustergate.run.software import NO_TIME
from clustergate.run.software_evidence import (
    Builds,
    evidence_from_contest,
    same_build,
    seconds_to_decide,
)
from clustergate.sites import choice
from clustergate.sites import configs as sites
from clustergate.sites.modes import mode_named
from clustergate.stacks.golden import builds
from clustergate.stats.comparison import Comparison, Relation
from clustergate.stats.rounds import RATHER_SLOWER
from clustergate.studies.ab.contenders import parse_contender
from clustergate.studies.ab.gathering import Job
from clustergate.studies.ab.wholes import Cost, costs_and_faults
from tests.builders import case, figure, run, sample

SIZES = (8, 64, 512)
CONDITIONS = {"nodes": 1, "ranks": 2}


def job(rounds: int = 20, spread: float = 0.01, **slower: Any) -> Job:
    """Return rounds of PingPong in three sizes and of HPL; ``slower`` is what B takes, by name."""
    figures = [
        *(sample("PingPong", "latency_us", bytes=n) for n in SIZES),
        sample("HPL", "performance_gflops"),
    ]
    draw = np.random.default_rng(7)
    a, b = (np.exp(draw.normal(0.0, spread, (rounds, len(figures)))) for _ in range(2))
    for k, known in enumerate(figures):
        size = known.conditions.get("bytes")
        factor = slower.get(f"{known.benchmark}_{size}", slower.get(known.benchmark, 1.0))
        b[:, k] *= factor if known.better is Better.LOWER else 1 / factor
    return Job("AbCheck", "local:node", CONDITIONS, figures, a, b, rounds, 0)


def evidence(*jobs: Job) -> list[Any]:
    return evidence_from_contest("mpich", *costs_and_faults(jobs))


def test_a_benchmark_is_compared_as_a_whole_beside_its_sizes() -> None:
    found, _ = costs_and_faults([job(PingPong=1.2)])
    assert [(one.name.partition(" of ")[0], one.whole) for one in found] == [
        *[("PingPong", False)] * 3,
        ("HPL", True),
        ("PingPong", True),
    ]
    assert found[0].name == "PingPong of 2 processes on 1 node, 8 bytes"
    assert found[-1].comparison.ratio == pytest.approx(1.2, rel=0.01)
    assert found[-1].comparison.verdict is Relation.A_BETTER


def test_software_as_fast_passes_and_says_what_is_ruled_out() -> None:
    for made in (job(), job(PingPong=0.8, HPL=0.9)):
        (one,) = evidence(made)
        assert (one.part, one.verdict) == ("software: mpich", Verdict.PASS)
        assert (
            "no slowdown by 10 % against the golden build: 2 benchmarks and 3 single"
            in one.sentence
        )


@pytest.mark.parametrize("name", ["PingPong", "HPL", "PingPong_64"])
def test_slower_software_is_a_regression_by_name_with_its_interval(name: str) -> None:
    slower: dict[str, Any] = {name: 1.2}
    found = evidence(job(**slower))
    worst = found[0]
    assert worst.verdict is Verdict.REGRESSION
    assert worst.sentence.startswith(f"{name.partition('_')[0]} of 2 processes on 1 node")
    facts = reason_as_json(worst.reasons[0])["facts"]
    assert facts["low"] > 1.0
    assert decide(found).status == CLOSED
    if name == "PingPong_64":
        assert any("64 bytes takes 1.2" in one.sentence for one in found)


def test_a_size_that_is_undecided_keeps_the_gate_from_opening() -> None:
    made = job(PingPong_64=1.1)
    noise = np.random.default_rng(3).normal(0.0, 0.4, (2, 20))
    made.a[:, 1] *= np.exp(noise[0])
    made.b[:, 1] *= np.exp(noise[1])
    found = evidence(made)
    assert {one.verdict for one in found} == {Verdict.INCONCLUSIVE}
    (one,) = (one for one in found if "64 bytes" in one.sentence)
    assert "64 bytes takes" in one.sentence
    assert "a slowdown by 10 % is possible" in one.sentence
    assert "more rounds (0 node-seconds) would probably decide" in one.sentence


def test_a_single_size_must_be_shown_not_to_be_ten_percent_slower() -> None:
    """The noise rules out 20 %, and an estimate below 5 % is no proof against 10 %."""
    made = job(rounds=30)
    noise = np.random.default_rng(4).normal(0.0, 0.1, (2, 30))
    made.a[:, 1] *= np.exp(noise[0])
    made.b[:, 1] *= np.exp(noise[1])
    (one,) = evidence(made)
    assert one.verdict is Verdict.INCONCLUSIVE
    (why,) = one.reasons
    assert why.code == "software.undecided"
    assert "64 bytes" in str(why.facts["figure"])
    assert 1.10 < float(str(why.facts["high"])) < 1.20
    assert decide([one]).status == UNJUDGED


def test_what_is_not_shown_to_be_as_fast_opens_nothing() -> None:
    """Whatever else it is: a slowdown by 10 % is within this interval."""
    held = Comparison(Relation.B_BETTER, 0.97, 0.9, 1.2, 0.99, 12, 12, None, "")
    found = evidence_from_contest("mpich", [Cost("HPL of 2 processes on 1 node", held, True, 60.0)])
    assert decide(found).status == UNJUDGED


def test_launches_slow_at_times_close_the_gate_by_name() -> None:
    made = job(rounds=12)
    made.b[::3, :3] *= 5.0
    found = evidence(made)
    assert decide(found).status == CLOSED
    assert any("4 of 12 launches took more than 3.5 x" in one.sentence for one in found)
    made.a[::3, :3] *= 5.0
    assert "software.now-and-then" not in {one.reasons[0].code for one in evidence(made)}


def test_slower_within_the_margin_does_not_open() -> None:
    slower = Comparison(Relation.A_BETTER, 1.03, 1.01, 1.06, 0.995, 12, 12)
    found = evidence_from_contest("mpich", [Cost("HPL", slower, True, 60.0)])
    (one,) = found
    assert one.verdict is Verdict.INCONCLUSIVE
    assert "probably by less than 5 %" in one.sentence
    # More rounds do not change what is decided.
    assert "golden unpin mpich`, then `pin`" in one.sentence
    assert "budget" not in one.sentence
    assert decide(found).status == UNJUDGED


def test_noise_is_inconclusive_with_what_would_decide() -> None:
    found = evidence(job(spread=0.3))
    assert {one.verdict for one in found} == {Verdict.INCONCLUSIVE}
    assert any("would probably decide" in one.sentence for one in found)
    few = evidence(job(rounds=3))
    assert {one.verdict for one in few} == {Verdict.INCONCLUSIVE}


def test_slow_launches_not_ruled_out_named_with_rounds_needed() -> None:
    """Slow launches that are not ruled out are named with the rounds that would."""
    made = job(rounds=28)
    made.b[[3, 9, 15], 0] *= 1.8
    # Its size, and the benchmark of which it is a third.
    one, whole = evidence(dataclasses.replace(made, a=made.a[:24], b=made.b[:24]))
    assert {why.code for why in one.reasons + whole.reasons} == {"software.maybe-faults"}
    assert "8 bytes mostly takes as long as with the golden build" in one.sentence
    assert "about 4 more rounds" in one.sentence
    assert {x.verdict for x in evidence(made)} == {Verdict.PASS}


def test_the_rounds_that_would_decide_are_about_those_that_do() -> None:
    made = job(rounds=120, spread=0.15)
    decided = max(one.comparison.samples_a for one in costs_and_faults([made])[0])
    early, _ = costs_and_faults([dataclasses.replace(made, a=made.a[:20], b=made.b[:20])])
    told = max(one.comparison.further_launches or 0 for one in early)
    assert decided < 120
    assert (decided - 20) / 2 < told < 2 * (decided - 20)


def test_slightly_slower_not_said_to_be_much() -> None:
    ends = (1.06, 0.99, 1.09, 0.995, 30, 30, 92)
    held = Comparison(Relation.INCONCLUSIVE, *ends, remark=RATHER_SLOWER)
    (one,) = evidence_from_contest("mpich", [Cost("PingPong", held, True, 60.0)])
    assert "a slowdown by 5 % is possible; about 92 more rounds" in one.sentence
    endless = dataclasses.replace(held, further_launches=None, remark="the resolution is 9 %")
    (one,) = evidence_from_contest("mpich", [Cost("PingPong", endless, True, 60.0)])
    assert one.sentence.endswith("the resolution is 9 %: measure when less runs beside it")


def test_what_is_open_says_how_long_it_takes_to_decide() -> None:
    timed = dataclasses.replace(job(spread=0.3), node_seconds=[2.0] * 20)
    found = evidence(timed, job())
    further = [
        one.comparison.further_launches or 0
        for one in costs_and_faults([timed, job()])[0]
        if one.comparison.verdict is Relation.INCONCLUSIVE
    ]
    # Both jobs have the same share of the time, a round takes two seconds on the one node.
    wanted_s = 2 * (20 + max(further)) * 2.0
    assert seconds_to_decide(found) == pytest.approx(wanted_s)
    other = [dataclasses.replace(one, part="software: openmpi") for one in found]
    assert seconds_to_decide([*found, *other]) == pytest.approx(2 * wanted_s)
    first = first_screen(decide(found), "r1", software_s=1234.0)
    assert first.next_steps[0].startswith("`clustergate gate --budget 21m` would probably decide")
    late = Evidence(
        "software: x", Verdict.INCONCLUSIVE, (NO_TIME(wanted_s=9, differing=[], left_s=0),)
    )
    assert seconds_to_decide([late]) == 9.0
    assert seconds_to_decide(evidence(job())) == 0.0


def test_a_size_that_today_lacks_is_not_passed_by_its_whole() -> None:
    made = job()
    made.b[:, 1] = np.nan
    found = evidence(made)
    assert [one.verdict for one in found] == [Verdict.INCONCLUSIVE]
    assert "64 bytes could not be compared" in found[0].sentence
    assert "measured in A only" in found[0].sentence
    made.b[:, :] = np.nan
    assert all(one.verdict is Verdict.INCONCLUSIVE for one in evidence(made))


def test_nothing_compared_is_no_pass() -> None:
    assert [one.verdict for one in evidence()] == [Verdict.INVALID]


def test_equal_builds_open_and_say_what_changed_beside_them() -> None:
    found = same_build("mpich", "abc", ["/lib/libc.so.6"], "2026-11-04")
    assert decide(found).status == OPEN
    assert "the same build as the golden one of 2026-11-04 (sha256 abc)" in found[0].sentence
    assert "/lib/libc.so.6" in found[1].sentence


def test_files_only_todays_ranks_map_are_told() -> None:
    found = same_build("mpich", "abc", [], "2026-11-04", (), ["/usr/lib/libmlx5.so.1.25"])
    assert decide(found).status == OPEN
    assert (
        "did not map, or that differed where it was pinned: /usr/lib/libmlx5" in found[1].sentence
    )
    control = controls.software_control("mpich", found, "2026-11-26")
    assert (control.by, "are not the golden ones" in control.why) == ("", True)
    assert controls.software_control("mpich", found[:1], "2026-11-26").by


# --- whom it launches --------------------------------------------------------------------------


class Kept:
    """Golden builds that are not there; ``differing`` are what today's differ in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **differing: list[str] | str) -> None:
        self.launched: list[tuple[Contest, str]] = []
        self.differing = differing
        monkeypatch.setattr(builds, "pinned_stacks", lambda state: list(differing))
        monkeypatch.setattr(builds, "differences", self.differences)
        golden = builds.Golden("mpich", "2026-11-04T10:00:00Z", "", "", "", "", 0, True)
        monkeypatch.setattr(builds, "read", lambda state, stack: golden)
        monkeypatch.setattr(builds, "setting_changes", lambda *today: [])
        monkeypatch.setattr(
            builds,
            "mapped_otherwise",
            lambda state, stack, mapped: [path for path, sha256 in mapped if sha256 != "as pinned"],
        )
        monkeypatch.setattr(software, "launched_in_turn", self.launch)

    def differences(self, state: Path, stack: str) -> list[str]:
        found = self.differing[stack]
        if isinstance(found, str):
            raise BadRequest(found)
        return found

    def launch(self, contest: Contest, path: Path, run_id: str, say: object) -> list[Any]:
        self.launched.append((contest, run_id))
        return []


def ask(left_s: float | None = None) -> tuple[list[Any], list[str]]:
    path = choice.find("local")
    stacks = ["mpich", "openmpi", "intel-mpi"]
    return software.against_golden(path, "r", sites.load(path), stacks, left_s, ["-x"], print)


def test_only_what_differs_from_its_golden_build_is_launched(monkeypatch) -> None:
    kept = Kept(monkeypatch, mpich=["lib/libmpi.so"], openmpi=[])
    found, notes = ask()
    ((contest, run_id),) = kept.launched
    assert [one.text for one in contest.contenders] == ["golden:mpich", "mpich"]
    assert run_id == "r/golden-mpich"
    assert list(contest.options) == ["-x"]
    assert [(one.part, one.verdict) for one in found] == [("software: openmpi", Verdict.PASS)]
    assert notes == [
        "software: no golden build of intel-mpi to compare with; "
        "`clustergate golden pin intel-mpi` keeps today's, once it is accepted"
    ]


def test_files_ranks_mapped_held_against_golden_build(monkeypatch, tmp_path) -> None:
    """Its own libraries were looked at where the gate was called, and not where ranks ran."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    # The jobs of the second check were on other nodes.
    for check, sha256 in (("HplCheck", "ab"), ("ImbMpi1Check", "as pinned")):
        details = {"mapped": {"/usr/lib/libmlx5.so.1.25": sha256}}
        case = CaseRecord(check, check, "mpich", "local:node", {}, details=details)
        store.write_case("r", case)
    Kept(monkeypatch, mpich=[], openmpi=[])
    found, _ = ask()
    codes = [(one.part, one.reasons[0].code) for one in found]
    assert ("software: mpich", "software.mapped-otherwise") in codes
    assert ("software: openmpi", "software.mapped-otherwise") not in codes


def test_the_plan_knows_whether_golden_builds_need_time(monkeypatch) -> None:
    stacks = ["mpich", "openmpi"]
    for differing, builds_are in (
        ({"mpich": ["lib/libmpi.so"], "openmpi": []}, Builds.OTHER),
        ({"mpich": "the golden build of mpich was changed: x"}, Builds.OTHER),
        ({"intel-mpi": ["lib/libmpi.so"]}, Builds.UNPINNED),
        ({"mpich": [], "intel-mpi": ["lib/libmpi.so"]}, Builds.EQUAL),
    ):
        Kept(monkeypatch, **differing)
        which, most_s, notes = software.builds_of(sites.load(choice.find("local")), stacks)
        assert which is builds_are
        assert bool(most_s) == (differing.get("mpich") == ["lib/libmpi.so"])
        assert bool(notes) == (which is Builds.EQUAL)
    assert notes[0].startswith("software: mpich as pinned, so")


def test_a_golden_build_that_was_changed_opens_nothing(monkeypatch) -> None:
    kept = Kept(monkeypatch, mpich="the golden build of mpich was changed: lib/libmpi.so")
    found, _ = ask()
    assert not kept.launched
    assert [one.verdict for one in found] == [Verdict.INVALID]
    assert "was changed: lib/libmpi.so" in found[0].sentence


def test_a_budget_that_is_spent_is_told_with_what_it_would_take(monkeypatch) -> None:
    kept = Kept(monkeypatch, mpich=["lib/libmpi.so"])
    found, _ = ask(20.0)
    assert not kept.launched
    assert [one.verdict for one in found] == [Verdict.INCONCLUSIVE]
    assert "(lib/libmpi.so), and 20 s of the budget are too little" in found[0].sentence
    ((late,), _) = ask(-5.0)
    assert "and 0 s of the budget are too little" in late.sentence


def test_what_a_budget_has_left_is_there_for_the_launches(monkeypatch) -> None:
    kept = Kept(monkeypatch, mpich=["lib/libmpi.so"])
    ask(36000.0)
    ((contest, _),) = kept.launched
    assert contest.seconds == 36000.0


def test_launches_that_fail_are_no_pass(monkeypatch) -> None:
    def fails(*_: object) -> list[str]:
        raise ClustergateError("no node is free")

    both = parse_contender("golden:mpich"), parse_contender("mpich")
    contest = Contest(both, [], (), (), 1.0, 9)
    monkeypatch.setattr(software, "measure_contest", fails)
    (one,) = software.launched_in_turn(contest, Path("s.py"), "r", print)
    assert (one.verdict, one.sentence) == (Verdict.INVALID, "no node is free")
    monkeypatch.setattr(
        software, "measure_contest", lambda *_: [in_words("rank 1 ran another library")]
    )
    monkeypatch.setattr(store, "read_cases", lambda run_id: [])
    found = software.launched_in_turn(contest, Path("s.py"), "r", print)
    assert {one.verdict for one in found} == {Verdict.INVALID}
    assert "rank 1 ran another library" in [one.sentence for one in found]


def test_maintenance_check_never_passes_slower_software(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A check of maintenance is no pass anywhere where software is slower."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    request = Request(mode_named("maintenance"), choice.find("local"))
    folder = store.run_folder("20261104T000000Z-r1")
    rate = figure("HPL", "performance_gflops", None)
    measured = run(case(figures=(rate,)), run_id=folder.name, mode="maintenance")
    prepared = SimpleNamespace(
        site=sites.load(request.site),
        partitions=[],
        measures=False,
        earlier={},
        expected=[],
        jobs=[],
        not_set_up={},
        begun=0.0,
        request=request,
        call_alone=None,
        call=SimpleNamespace(report=folder / "reframe.json"),
    )
    slower = Evidence("software: mpich", Verdict.REGRESSION, (in_words("PingPong takes 1.2 x"),))
    monkeypatch.setattr(session_run, "prepare", lambda *_, **__: prepared)
    monkeypatch.setattr(session_run, "execute", lambda *_: 0)
    left = Collected([], [], {}, [], [], {}, 1.0)
    monkeypatch.setattr(session_run, "collect", lambda *_: left)
    monkeypatch.setattr(session_run, "confirm", lambda *_: Relaunches(measured.cases))
    monkeypatch.setattr(session_run, "judge", lambda *_: measured)
    monkeypatch.setattr(software, "against_golden", lambda *_: ([slower], ["no golden openmpi"]))
    now = datetime.datetime.now().astimezone()
    assert running.run_and_tell(request, folder.name, now, NO_CALL, resumes=True) == 1
    said = capsys.readouterr().out
    assert (folder / "summary.txt").read_text().splitlines()[2].startswith(" ✗ SLOWER: ")
    for text in (said, (folder / "report.html").read_text()):
        assert "PingPong takes 1.2 x" in text
    assert "no golden openmpi" in said
    assert (
        "exit status 1: something is worse than its reference, an expectation or its golden build"
        in said
    )
    assert json.loads((folder / "verdicts.json").read_text())["exit_status"] == 1
    assert json.loads((folder / "ended.json").read_text())["verdict"] == "regression"
    assert 'failures="1"' in (folder / "junit.xml").read_text()


# --- with real ranks --------------------------------------------------------------------------

# Whoever receives waits another 200 us, more than others that use the cores hold a message up as a
# rule. Handles of MPICH are integers.
SLOWER = """\
#include <time.h>
int PMPI_Recv(void *, int, int, int, int, int, void *);
int MPI_Recv(void *at, int n, int type, int from, int tag, int with, void *status) {
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1e9 + (now.tv_nsec - begun.tv_nsec) < 2e5);
    return PMPI_Recv(at, n, type, from, tag, with, status);
}
"""


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ("golden:mpich", "mpich:LD_PRELOAD={}", Verdict.REGRESSION),
        ("golden:mpich:LD_PRELOAD={}", "mpich", Verdict.PASS),
    ],
)
def test_slower_software_is_found_by_launches_in_turn(
    home_with_mpich: Path, tmp_path: Path, a: str, b: str, verdict: Verdict
) -> None:
    from clustergate.run.golden import proven

    (tmp_path / "slower.c").write_text(SLOWER)
    library = tmp_path / "slower.so"
    command = ["cc", "-shared", "-fPIC", "-Wl,--allow-shlib-undefined", "-o", str(library)]
    subprocess.run([*command, str(tmp_path / "slower.c")], check=True)
    builds.pin(home_with_mpich, "mpich", "", print, proven)
    (check,) = (x.ab for x in every_benchmark().values() if x.ab and "PingPong" in x.ab.parts)
    contest = Contest(
        [parse_contender(one.format(library)) for one in (a, b)],
        checks=[check],
        parts=["PingPong"],
        sizes=[8, 4096, 16384],
        seconds=90.0,
        rounds=60,
        margin_percent=0.0,
    )
    run_id = store.new_run_id(datetime.datetime.now().astimezone())
    found = software.launched_in_turn(contest, choice.find("local"), f"{run_id}/golden", print)
    assert {one.verdict for one in found} == {verdict}, [one.sentence for one in found]
    assert found[0].sentence.startswith(
        "PingPong of 2 processes on 1 node" if verdict is Verdict.REGRESSION else "no slowdown by "
    )
    (record, *_) = store.read_cases(f"{run_id}/golden")
    assert "golden" in json.dumps(record.details, default=str)
