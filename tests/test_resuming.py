"""A run that was stopped and is taken up again: what counts as done, from what ReFrame printed."""

import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.core import store
from clustergate.core.model import (
    RESUMED,
    Case,
    CaseId,
    CaseRecord,
    CaseState,
    ClustergateError,
    Evidence,
    Launch,
    Run,
    Verdict,
)
from clustergate.core.reasons import in_words
from clustergate.judge.assembly import Outcome
from clustergate.judge.history import listing, node_states, stored_runs
from clustergate.machine.fingerprint import Fingerprint, Value, to_record
from clustergate.report import summary
from clustergate.run import resuming
from clustergate.run.execute import execute
from clustergate.run.placing import WISH_NOTHING_LEFT
from clustergate.run.reframe import Call, ended_cases
from clustergate.run.request import Request, launched_otherwise, write_request
from clustergate.sites.modes import mode_named
from clustergate.stacks.manifest import Manifest, Program, write_manifest
from tests import builders

# As ReFrame 4.10.4 printed it: after a build, a case that passed and one that failed.
PRINTED = """\
[ReFrame Setup]
[ RUN      ] StackBuild ~local:node+mpich /a0c50852 @local:node+mpich
[       OK ] (1/4) StackBuild ~local:node+mpich /a0c50852 @local:node+mpich
[ RUN      ] HplCheck /be2cd3ab @local:node+mpich
[       OK ] (2/4) HplCheck /be2cd3ab @local:node+mpich
[ RUN      ] HpccCheck /55c8e99d @local:node+mpich
[     FAIL ] (3/4) HpccCheck /55c8e99d @local:node+mpich
==> test failed during 'sanity': test staged in '/stage/local/node/mpich/HpccCheck'
[ RUN      ] ImbMpi1Check %count=2 %placement=packed /3e9c4b1d @local:node+mpich
"""
HPL, HPCC = "/be2cd3ab @local:node+mpich", "/55c8e99d @local:node+mpich"
RUN = "20261101T000000Z-1"


def record(check: str, hash: str, complaint: str = "") -> CaseRecord:
    return builders.record(
        builders.hpl(100.0),
        check=check,
        complaints=[in_words(complaint)] if complaint else [],
        details={resuming.HASH: hash},
    )


def ended_run(case: Case) -> Run:
    return builders.run(case, run_id=RUN, duration_s=9.0)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    return tmp_path


def test_what_reframe_printed_tells_what_came_to_its_end() -> None:
    hpl, hpcc = ended_cases(PRINTED.splitlines())
    assert (hpl.key, hpl.result, hpl.check) == (HPL, "pass", "HplCheck")
    assert (hpcc.key, hpcc.result, hpcc.phase) == (HPCC, "fail", "sanity")


def test_a_case_is_told_from_others_of_its_check() -> None:
    line = "[       OK ] (1/4) ImbMpi1Check %process_count=4 %node_usage=packed /1f @a:b+mpich"
    (ended,) = ended_cases([line])
    (found,) = resuming.earlier_outcomes([dataclasses.replace(ended, result="fail")], []).values()
    parameters = (("node_usage", "packed"), ("process_count", "4"))
    assert found.identity == CaseId("ImbMpi1Check", "a:b", "mpich", parameters)


def test_a_build_is_no_case_whatever_its_name() -> None:
    built = PRINTED.replace("StackBuild", "LammpsBuild").replace(
        "[       OK ] (1", "[     FAIL ] (1"
    )
    assert {one.check for one in ended_cases(built.splitlines())} == {*("HplCheck", "HpccCheck")}


@pytest.mark.parametrize("cut", [0, 40, 200, len(PRINTED) - 300])
def test_a_cut_line_is_no_end_of_a_case(cut: int) -> None:
    whole = {one.key for one in ended_cases(PRINTED.splitlines())}
    assert {one.key for one in ended_cases(PRINTED[:cut].splitlines())} <= whole


def test_a_case_that_ran_twice_counts_as_it_ended_last() -> None:
    again = PRINTED.replace("[     FAIL ] (3/4)", "[       OK ] (1/2)").split("==>")[0]
    _, hpcc = ended_cases([*PRINTED.splitlines(), *again.splitlines()])
    assert (hpcc.result, hpcc.phase) == ("pass", "")


def test_failed_case_stays_failed_and_passed_without_figures_repeats() -> None:
    """A failed case stays failed and a passed one without its figures runs again."""
    ended = ended_cases(PRINTED.splitlines())
    kept = resuming.earlier_outcomes(ended, [record("HplCheck", "be2cd3ab")])
    assert kept[HPL] == Outcome(
        *("HplCheck-node-mpich", "HplCheck", "mpich", "pass"), key=HPL, partition="local:node"
    )
    assert kept[HPCC].result == "fail"
    assert kept[HPCC].phase == "sanity"
    assert set(resuming.earlier_outcomes(ended, [])) == {HPCC}


def test_what_was_left_out_counts_as_it_ended_before() -> None:
    before = {HPL: Outcome("a", "HplCheck", "mpich", "pass")}
    skipped = Outcome("a", "HplCheck", "mpich", "skip", key=HPL)
    ran = Outcome("b", "HpccCheck", "mpich", "fail", key=HPCC)
    assert resuming.merge_outcomes(before, [skipped, ran]) == [before[HPL], ran]


@pytest.mark.parametrize(
    ("details", "kept"),
    [
        ({"build_key": "b2", "proof": {"hosts": [os.uname().nodename]}}, {HPL, HPCC}),
        ({"build_key": "b1"}, {HPCC}),
        ({"build_key": "b2", "program": {"path": "/builds/mpich-hpl-k1/bin/xhpl"}}, {HPL, HPCC}),
        ({"build_key": "b2", "program": {"path": "/builds/mpich-hpl-k0/bin/xhpl"}}, {HPCC}),
        ({"proof": {"hosts": ["another"]}}, {HPCC}),
        ({"build_key": "b2", "processors": ["Xeon"]}, {HPL, HPCC}),
        ({"build_key": "b2", "processors": ["EPYC"]}, {HPCC}),
    ],
)
def test_what_another_build_or_another_node_measured_runs_again(
    state: Path, monkeypatch: pytest.MonkeyPatch, details: dict[str, object], kept: set[str]
) -> None:
    monkeypatch.setattr(resuming, "read_node_state", lambda: "hardware.processor\tXeon\n")
    programs = {"hpl": Program("/builds/mpich-hpl-k1/bin/xhpl")}
    write_manifest(state, Manifest("mpich", "wheels", build_key="b2", programs=programs))
    before = record("HplCheck", "be2cd3ab")
    store.write_case(RUN, dataclasses.replace(before, details={**before.details, **details}))
    call = Call(RUN, [], {}, store.run_folder(RUN) / "reframe.json")
    call.log.write_text(PRINTED)
    assert set(resuming.restart(RUN, call, ["local:node"])) == kept
    assert len(store.read_cases(RUN)) == (HPL in kept)


def test_what_the_site_config_launches_otherwise_since_runs_again(state: Path) -> None:
    """Figures of a variable that was changed meanwhile would stand beside those of today."""
    asked = Request(mode_named("smoke"), Path("local.py"))
    launched = {"mpich": {"env_vars of mpich": "[['UCX_TLS', 'tcp']]"}, "openmpi": {}}
    write_request(asked, RUN, launched)
    assert launched_otherwise(RUN, launched) == []
    changed = {**launched, "mpich": {}, "of no earlier run": {}}
    assert launched_otherwise(RUN, changed) == ["mpich"]
    store.write_case(RUN, record("HplCheck", "be2cd3ab"))
    call = Call(RUN, [], {}, store.run_folder(RUN) / "reframe.json")
    call.log.write_text(PRINTED)
    assert set(resuming.restart(RUN, call, (), ["openmpi"])) == {HPL, HPCC}
    assert set(resuming.restart(RUN, call, (), ["mpich"])) == {HPCC}
    write_request(asked, RUN)
    assert launched_otherwise(RUN, changed) == []


def test_what_this_node_measured_before_it_changed_runs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resuming, "read_node_state", lambda: "")
    store.write_case(RUN, record("HplCheck", "be2cd3ab"))
    call = Call(RUN, [], {}, store.run_folder(RUN) / "reframe.json")
    call.log.write_text(PRINTED)
    state: Fingerprint = {
        "kernel": {"release": "5.14"},
        "limits": {"open_files": "1024"},
        "software": {"programs_of_mpich": "a", "clustergate": "0.2"},
    }
    store.write_json(store.run_folder(RUN) / node_states.NODE_STATE, to_record(state))
    software: dict[str, Value] = {"programs_of_mpich": "b", "clustergate": "0.3"}
    another: Fingerprint = {"limits": {"open_files": "9"}, "software": software}
    assert node_states.changed_here(RUN, {**state, **another}) == []
    (change,) = node_states.changed_here(RUN, {**state, "kernel": {"release": "6.1"}})
    assert "5.14" in change
    assert set(resuming.restart(RUN, call, ["other:node"], changed=True)) == {HPL, HPCC}
    assert set(resuming.restart(RUN, call, ["local:node"], changed=True)) == {HPCC}


def test_cases_of_another_day_are_no_pass_of_today() -> None:
    """A run resumed days later passed with what it had measured then, and did not say so."""

    def at(check: str, *days: float) -> CaseRecord:
        launches = [Launch(0, 1.79e9 + 86400.0 * day, 1.0) for day in days]
        return dataclasses.replace(record(check, "1f"), name=check, launches=launches)

    assert resuming.measured_long_before([]) is None
    assert resuming.measured_long_before([at("a", 0.0, 0.9), at("b", 1.8), at("c")]) is None
    why = resuming.measured_long_before([at("a", 0.0, 0.5), at("b", 8.0), at("c", 8.5)])
    assert str(why).startswith("1 of 3 cases were measured on ")
    assert "8 days before the others" in str(why)
    run = dataclasses.replace(
        ended_run(builders.case(state=CaseState.NOT_AVAILABLE)),
        evidence=(Evidence(RESUMED, Verdict.INCONCLUSIVE, (why,)),) if why else (),
    )
    assert summary.status_of(run) == 2
    assert "results are of another day" in summary.exit_meaning(run)
    assert str(why) in {cause.sentence for cause in summary.causes(run)}


def test_what_nobody_judged_is_put_away(state: Path) -> None:
    store.write_case(RUN, record("HplCheck", "be2cd3ab"))
    store.write_case(RUN, record("ImbMpi1Check", "3e9c4b1d"))
    call = Call(RUN, [], {}, store.run_folder(RUN) / "reframe.json")
    call.log.write_text(PRINTED)
    call.report.write_text("{}")
    (call.report.parent / "report.html").write_text("as it was")
    assert set(resuming.restart(RUN, call)) == {HPL, HPCC}
    assert [found.check for found in store.read_cases(RUN)] == ["HplCheck"]
    assert resuming.is_completed(RUN, HPL)
    assert not call.report.exists()
    assert (call.report.parent / "report.1.html").read_text() == "as it was"
    assert not resuming.is_completed(RUN, "/3e9c4b1d @local:node+mpich")
    assert not resuming.is_completed("another", HPL)


def test_run_kept_whole_where_every_case_ended() -> None:
    whole = PRINTED.replace("(3/4)", "(4/4)").splitlines()
    earlier = resuming.earlier_outcomes(ended_cases(whole), [record("HplCheck", "be2cd3ab")])
    assert resuming.is_all_kept(whole, earlier, ["mpich"])
    assert not resuming.is_all_kept(PRINTED.splitlines(), earlier, ["mpich"])
    # What passed and left no figures runs again, and so does a stack that was not set up then.
    lost = resuming.earlier_outcomes(ended_cases(whole), [])
    assert not resuming.is_all_kept(whole, lost, ["mpich"])
    assert not resuming.is_all_kept(whole, earlier, ["mpich", "openmpi"])
    assert not resuming.is_all_kept([], {}, [])
    # Killed between its two calls of ReFrame, of which the first had come to its end.
    (kept, *_) = [one.identity for one in earlier.values()]
    assert resuming.is_all_kept(whole, earlier, ["mpich"], [kept])
    behind = dataclasses.replace(kept, parameters=(("process_count", "2"),))
    assert not resuming.is_all_kept(whole, earlier, ["mpich"], [kept, behind])


def test_what_is_kept_is_not_told_as_skipped(tmp_path: Path) -> None:
    store.write_json(store.run_folder(RUN) / resuming.DONE, [HPL])
    printed = PRINTED.replace("[       OK ] (2", "[     SKIP ] (2")
    words = [sys.executable, "-c", f"print({printed!r}, end='')"]
    call = Call(RUN, words, {store.RUN_ID: RUN}, store.run_folder(RUN) / "reframe.json")
    told: list[str] = []
    assert execute(call, told.append) == 0
    assert [sentence.partition(" (0 s")[0] for sentence in told] == [
        "running HPCC with mpich: 0 of 2 done",
        "HPCC with mpich: FAILED",
        "running IMB (count=2, packed) with mpich: 1 of 2 done",
    ]


def test_two_do_not_work_on_one_run() -> None:
    with (
        resuming.lock_run(RUN),
        pytest.raises(ClustergateError, match="still running"),
        resuming.lock_run(RUN),
    ):
        pass


def test_what_is_refused_before_it_begins_leaves_no_run() -> None:
    refused = ClustergateError(WISH_NOTHING_LEFT())
    with pytest.raises(ClustergateError), resuming.lock_run(RUN):
        raise refused
    assert not store.run_folder(RUN).exists()
    store.write_json(store.run_folder(RUN) / "asked.json", {})
    with pytest.raises(ClustergateError), resuming.lock_run(RUN):
        raise refused
    assert store.run_folder(RUN).exists()


def test_run_beside_left_alone_and_leftovers_removed() -> None:
    """A run beside is named and left alone and what ended runs left is removed."""
    other, gone = "20261121T101500Z-r1", "20261121T101600Z-r2"
    plain = store.stage_folder("") / "local"
    store.make_folder(plain)
    with resuming.lock_run(other):
        for run in (RUN, other, gone):
            store.make_folder(store.run_folder(run))
            store.make_folder(store.stage_folder(run) / "local")
        with resuming.lock_run(RUN) as beside:
            assert len(beside) == 1
            assert beside[0].startswith(f"{other} is running in this home, too")
    assert store.stage_folder(other).is_dir()
    assert store.stage_folder(RUN).is_dir()
    assert plain.is_dir()
    assert not store.stage_folder(gone).exists()
    with resuming.lock_run(RUN) as beside:
        assert beside == []


def test_what_a_gate_launches_in_a_folder_of_its_own_is_left_alone() -> None:
    """A check that began meanwhile removed the folder of the golden build's job."""
    other = "20261121T101500Z-r1"
    for golden in (f"{other}/golden-mpich", f"{RUN}/golden-mpich"):
        store.make_folder(store.stage_folder(golden))
    with resuming.lock_run(f"{other}/golden-mpich") as beside:
        # It is no other run than that which it is a part of.
        assert beside == []
        assert listing.is_running(store.run_folder(other))
        with resuming.lock_run(RUN) as beside:
            assert beside[0].startswith(f"{other} is running in this home, too")
    assert store.stage_folder(f"{other}/golden-mpich").is_dir()
    with resuming.lock_run(RUN) as beside:
        assert beside == []
    assert not store.stage_folder(other).exists()


def test_a_run_that_came_to_its_end_is_not_measured_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = {"mode": "smoke", "site": "x", "stacks": [], "checks": [], "options": []}
    store.write_json(store.run_folder(RUN) / stored_runs.ASKED, {**asked, "process_counts": ""})
    report = store.run_folder(RUN) / "report.html"
    report.write_text("as it was")
    resuming.write_ended(ended_run(builders.case(state=CaseState.FAILED)))
    # Killed while it wrote its reports, it goes on with them.
    resuming.require_unfinished(RUN)
    store.write_json(store.run_folder(RUN) / listing.VERDICTS, {"cases": []})
    assert cli.main(["check", "--resume", RUN]) == 2
    assert "is complete; its report is" in capsys.readouterr().err
    assert report.read_text() == "as it was"
    resuming.write_ended(ended_run(builders.case(state=CaseState.MISSING)))
    resuming.require_unfinished(RUN)
    resuming.set_reports_aside(RUN)
    report.write_text("as it was the second time")
    resuming.set_reports_aside(RUN)
    assert [path.read_text() for path in sorted(report.parent.glob("report*"))] == [
        "as it was",
        "as it was the second time",
    ]


def test_a_gate_is_not_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    store.write_json(store.run_folder(RUN) / listing.GATE, {"status": None})
    assert cli.main(["check", "--resume", RUN]) == 2
    assert f"{RUN} is a run of `clustergate gate`, which is not res" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (None, "its options were not recorded"),
        ("{", "is damaged (Expecting property name"),
        ("[]", "is damaged"),
        (json.dumps({"mode": "smoke"}), "is damaged (KeyError: 'site')"),
        (json.dumps({"mode": "nonsense"}), "unknown mode 'nonsense'"),
    ],
)
def test_a_run_that_cannot_be_resumed_says_why(
    asked: str | None, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check", "--resume", RUN]) == 2
    assert f"no run and no file is named {RUN}" in capsys.readouterr().err
    store.make_folder(store.run_folder(RUN))
    if asked is not None:
        (store.run_folder(RUN) / stored_runs.ASKED).write_text(asked)
    assert cli.main(["check", "--resume", RUN]) == 2
    assert complaint in capsys.readouterr().err
    assert cli.main(["check", "--resume", RUN, "--stack", "mpich"]) == 2
    assert "name nothing but the run" in capsys.readouterr().err
