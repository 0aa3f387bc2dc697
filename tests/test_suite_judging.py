"""Sessions of other people's suites, judged by those before them."""

import dataclasses
import datetime
import math
import random
import re

import pytest

from clustergate.core.model import Better, CaseState, Verdict
from clustergate.judge.confirmation import SESSION_NOT_CONFIRMED
from clustergate.report.summary import status_of
from clustergate.report.terminal import render
from clustergate.suites.judging import FIGURE_CHANGED, NEWEST, judge_session
from clustergate.suites.sessions import Result, Session, SuiteError, Value
from clustergate.suites.settings import Settings

START = datetime.datetime(2026, 3, 1, 3, tzinfo=datetime.timezone.utc)
NOW = START + datetime.timedelta(days=1000)
EXCLUSIVE = Settings(exclusive=True)


def result(test, values, day=0, **of):
    of = {"parameters": "", "result": "pass", "nodes": ("n1",), "file": "/s/checks/a.py", **of}
    at = (START + datetime.timedelta(days=day)).timestamp()
    return Result(
        test=test,
        system="sys",
        partition="cpu",
        environ="gnu",
        values=tuple(Value(name, value, unit) for name, value, unit in values),
        hash=f"{abs(hash(test)) % 16**8:08x}",
        completed=at + 60,
        seconds=30.0,
        **of,
    )


def session(day, results, **of):
    started = START + datetime.timedelta(days=day)
    of = {"ended": started + datetime.timedelta(hours=1), **of}
    return Session(f"s{day}", started, tuple(results), **of)


def sessions(count=20, slow=None, tests=8, unit="GB/s", missing=0.0, seed=3):
    """Return sessions of some tests, the newest first; ``slow`` is a factor by day and test."""
    rng = random.Random(seed)
    made = []
    for day in range(count):
        of_day, results = rng.gauss(0, 0.002), []
        for test in range(tests):
            rate = 100 * math.exp(of_day + rng.gauss(0, 0.005))
            if rng.random() >= missing:
                factor = slow(day, test) if slow else 1.0
                results.append(result(f"test{test}", [("rate", rate / factor, unit)], day))
        made.append(session(day, results))
    return made[::-1]


def judged(of, settings=EXCLUSIVE, **options):
    return judge_session(of, settings, "run", NOW, **options).run


def figure(run, test="test3"):
    (case,) = [one for one in run.cases if one.check == test]
    return case.figures[0]


def test_sessions_of_one_day_ask_for_more_days_not_for_a_golden_build() -> None:
    slower = sessions(8, slow_on(7, by=1.12, test=0), tests=1)
    of_a_day = [
        dataclasses.replace(one, started=START + datetime.timedelta(hours=hour), ended=None)
        for hour, one in zip(range(8, 0, -1), slower, strict=True)
    ]
    said = figure(judged(of_a_day, Settings()), "test0").judgement.sentence
    assert "sessions of 1 day do not show how much such figures vary; run the suite on" in said
    assert "golden" not in said


@pytest.mark.parametrize(("count", "status"), [(8, 2), (9, 2), (10, 1), (12, 1)])
def test_what_stays_slow_on_the_first_day_is_told_until_it_is_a_regression(count, status):
    """What was beyond its bound is no standard of the next, though one day tells no scatter."""
    of_a_day = [
        dataclasses.replace(one, started=START + datetime.timedelta(hours=hour), ended=None)
        for hour, one in zip(
            range(count, 0, -1),
            sessions(count, slow_on(*range(7, count), by=8, test=0), tests=3),
            strict=True,
        )
    ]
    assert status_of(judged(of_a_day, Settings())) == status


def slow_on(*days, by=1.1, test=3):
    return lambda day, which: by if day in days and which == test else 1.0


# ------------------------------------------------------------------------------------ the verdict


def test_unchanged_sessions_are_as_before():
    run = judged(sessions())
    assert status_of(run) == 0
    assert {x.judgement.verdict for case in run.cases for x in case.figures} == {Verdict.PASS}
    first = render(run, width=200)
    assert "AS BEFORE" in first
    assert "8 results of the session s19 of 2026-03-20 03:00, beside 19 earlier sessions" in first
    # Nothing is claimed that a test of somebody's cannot prove.
    assert "every rank proved" not in first
    assert "clustergate check" not in first
    assert "clustergate judge: exit status 0" in first


def test_slow_once_is_not_confirmed_and_told_with_the_line_that_runs_it_again():
    run = judged(sessions(slow=slow_on(19)))
    assert status_of(run) == 2
    assert figure(run).judgement.verdict is Verdict.INCONCLUSIVE
    assert SESSION_NOT_CONFIRMED.code in {why.code for why in figure(run).judgement.reasons}
    (found,) = run.evidence
    assert found.of == "test3 with gnu"
    assert "slower (9 %), not confirmed" in found.sentence
    command = next(one.command for one in run.cases if one.check == "test3")
    assert f"`{command}` launches it again, then `clustergate judge --last`" in found.sentence
    assert command.startswith("reframe -c /s/checks/a.py -n /")
    assert command.endswith("--system sys:cpu -p gnu -r")


@pytest.mark.parametrize(("days", "status"), [((18, 19), 2), ((17, 18, 19), 1), ((17, 19), 2)])
def test_slow_in_three_sessions_in_a_row_is_a_regression(days, status):
    run = judged(sessions(slow=slow_on(*days)))
    assert status_of(run) == status
    worst = Verdict.REGRESSION if status == 1 else Verdict.INCONCLUSIVE
    assert figure(run).judgement.verdict is worst
    assert figure(run, "test2").judgement.verdict is Verdict.PASS


def test_what_stays_slow_stays_a_regression():
    # What was slow in a session is no standard of the next, and the first sessions stay one.
    run = judged(sessions(count=16, slow=slow_on(*range(8, 16))))
    assert status_of(run) == 1
    long = sessions(count=70, slow=slow_on(*range(20, 70)))
    run = judged(long[:NEWEST] + long[-10:])
    assert status_of(run) == 1
    assert "than in the first sessions" in figure(run).judgement.sentence


def test_retries_of_the_same_session_confirm():
    every = sessions()
    slow = sessions(slow=slow_on(19))[0]
    again = [
        result("test3", [("rate", rate, "GB/s")], 19, attempt=attempt)
        for attempt, rate in ((1, 90.5), (2, 90.0))
    ]
    newest = session(19, [*slow.results, *again])
    run = judged([newest, *every[1:]])
    assert status_of(run) == 1
    assert figure(run).judgement.verdict is Verdict.REGRESSION
    fast = session(19, [*slow.results, result("test3", [("rate", 100.0, "GB/s")], 19, attempt=1)])
    run = judged([fast, *every[1:]])
    assert status_of(run) == 0
    assert "slow once, and not when launched again" in figure(run).judgement.sentence


def test_repetitions_are_launches_of_which_the_best_counts():
    every = sessions()
    others = [one for one in every[0].results if one.test != "test3"]

    def repeated(*rates):
        results = [
            result("test3", [("rate", rate, "GB/s")], 19, repeat=k) for k, rate in enumerate(rates)
        ]
        return judged([session(19, [*others, *results]), *every[1:]])

    run = repeated(90.0, 100.0, 89.0)
    assert figure(run).estimate.value == 100.0
    assert status_of(run) == 0
    assert status_of(repeated(90.0, 90.4, 90.2)) == 1


def test_a_faster_session_is_no_fault():
    assert status_of(judged(sessions(slow=slow_on(17, 18, 19, by=0.8)))) == 0


@pytest.mark.parametrize("times", [1.6, 10.0])
def test_what_is_far_faster_than_ever_is_told_as_such(times):
    run = judged(sessions(slow=slow_on(19, by=1 / times)))
    assert status_of(run) == 2
    assert figure(run).judgement.verdict is Verdict.INVALID
    said = figure(run).judgement.sentence
    assert re.search(r"(1\.[56]\d?|9\.\d+|10) times better than its sessions before: ", said)
    assert "--since DAY" in said
    assert "reference" not in said


def test_sessions_that_lack_tests_are_judged_all_the_same():
    run = judged(sessions(count=25, tests=30, missing=0.05, slow=slow_on(22, 23, 24)))
    by = {case.check: case.figures[0].judgement.verdict for case in run.cases}
    by.pop("test3", None)
    assert status_of(run) == 1
    assert set(by.values()) == {Verdict.PASS}


def test_a_few_sessions_judge_nothing():
    run = judged(sessions(count=4))
    assert status_of(run) == 0
    assert figure(run).judgement.verdict is Verdict.NO_REFERENCE
    assert "fewer than 5 sessions before it have it" in figure(run).judgement.sentence
    assert "physical" not in figure(run).judgement.sentence


def test_who_shares_nodes_is_told_how_to_say_otherwise():
    run = judged(sessions(), Settings())
    assert any("--exclusive" in note for note in run.notes)
    assert not any("--exclusive" in note for note in judged(sessions()).notes)


# -------------------------------------------------------------------------------------- failures


def test_a_failed_test_is_no_pass():
    newest, *before = sessions()
    others = [one for one in newest.results if one.test != "test3"]
    failed = result("test3", [], 19, result="fail", phase="sanity", reason="pattern not found")
    run = judged([session(19, [*others, failed]), *before])
    assert status_of(run) == 2
    assert "pattern not found" in next(x.reason for x in run.cases if x.check == "test3")
    assert "7 results of the session s19" in render(run, width=200)


def test_what_fails_by_its_own_reference_is_told_and_judged_by_the_past():
    def failing(days):
        made = sessions(slow=slow_on(*days))
        reason = "failed to meet reference"
        of = {"result": "fail", "phase": "performance", "reason": reason}
        return [
            session(
                int(one.session_id[1:]),
                [
                    result(x.test, [(v.name, v.value, v.unit) for v in x.values], **of)
                    if x.test == "test3" and int(one.session_id[1:]) in days
                    else x
                    for x in one.results
                ],
            )
            for one in made
        ]

    run = judged(failing((17, 18, 19)))
    assert figure(run).judgement.verdict is Verdict.REGRESSION
    assert status_of(run) == 1
    # The judge finds nothing slow, and ReFrame failed it all the same: that is no pass.
    newest, *before = sessions()
    of = {"result": "fail", "phase": "performance", "reason": "failed to meet reference"}
    results = [
        result(x.test, [(v.name, v.value, v.unit) for v in x.values], **of)
        if x.test == "test3"
        else x
        for x in newest.results
    ]
    run = judged([session(19, results), *before])
    assert status_of(run) == 2


def test_what_has_no_figures_is_not_judged_and_what_was_skipped_is_none():
    newest, *before = sessions()
    results = [*newest.results, result("links", []), result("skipped", [], result="skip")]
    run = judged([session(19, results), *before])
    assert status_of(run) == 0
    assert {"links", "skipped"}.isdisjoint(one.check for one in run.cases)


def test_what_did_not_run_is_named():
    newest, *before = sessions()
    run = judged([session(19, [x for x in newest.results if x.test != "test3"]), *before])
    assert any("1 test of the session before did not run: test3" in note for note in run.notes)


# ----------------------------------------------------------------------------------- directions


def test_a_figure_of_unknown_direction_is_judged_both_ways():
    for by, word in ((1.2, "lower"), (1 / 1.2, "higher")):
        made = sessions(slow=slow_on(17, 18, 19, by=by), unit="widgets")
        run = judged(made)
        assert status_of(run) == 0
        assert figure(run).better is Better.NEITHER
        assert figure(run).judgement.reasons[0].code == FIGURE_CHANGED.code
        assert word in figure(run).judgement.sentence
        assert any("test3.rate" in note and word in note for note in run.notes)
        strict = judged(made, strict=True)
        assert status_of(strict) == 1
        assert "CHANGED" in render(strict, width=200)
        assert figure(run, "test2").judgement.verdict is Verdict.PASS


def test_once_changed_is_no_change_and_a_stated_direction_is_judged_by():
    made = sessions(slow=slow_on(19, by=1.2), unit="widgets")
    assert status_of(judged(made, strict=True)) == 0
    stated = Settings(exclusive=True, better={"rate": Better.HIGHER})
    assert status_of(judged(made, stated)) == 2
    three = sessions(slow=slow_on(17, 18, 19, by=1.2), unit="widgets")
    assert status_of(judged(three, stated)) == 1
    lower = Settings(exclusive=True, better={"test*.rate": Better.LOWER})
    assert status_of(judged(three, lower)) == 0


# ------------------------------------------------------------------------------------- bad input


def test_another_unit_is_another_figure():
    before = sessions(unit="MB/s")[1:]
    run = judged([sessions()[0], *before])
    assert figure(run).judgement.verdict is Verdict.NO_REFERENCE
    assert any("was in MB/s until s18 and is in GB/s now" in note for note in run.notes)


def test_a_renamed_test_is_told_and_keeps_its_history_if_said_so():
    newest, *before = sessions(slow=slow_on(17, 18, 19))
    named = [
        result("new3", [("rate", x.values[0].value, "GB/s")], 19) if x.test == "test3" else x
        for x in newest.results
    ]
    made = [session(19, named), *before]
    run = judged(made)
    (note,) = [one for one in run.notes if "test3" in one]
    assert note.startswith("new3 is new, and test3")
    assert figure(run, "new3").judgement.verdict is Verdict.NO_REFERENCE
    run = judged(made, Settings(exclusive=True, renamed={"test3": "new3"}))
    assert figure(run, "new3").judgement.verdict is Verdict.REGRESSION


def test_a_time_that_is_rounded_to_nothing_is_told():
    made = [session(day, [result("t", [("solve", 0.0, "s")], day)]) for day in range(8)]
    run = judged(made[::-1])
    assert any(
        note.startswith("t.solve 0 or below, of which there is no ratio") for note in run.notes
    )


def test_sessions_that_are_too_far_apart_are_no_lack_of_sessions():
    rates = (1.0, 40.0, 3.0, 100.0, 2.0, 70.0, 5.0)
    made = [session(day, [result("t", [("r", x, "GB/s")], day)]) for day, x in enumerate(rates)]
    run = judged(made[::-1])
    assert figure(run, "t").judgement.verdict is Verdict.INCONCLUSIVE
    said = figure(run, "t").judgement.sentence
    assert said.startswith("its 6 sessions before are from 1 to 100, too far apart to expect one")
    first = render(run, width=300)
    assert "No baseline yet" not in first
    assert "too far apart to expect one" in first


def test_sessions_dated_wrongly_are_left_out_and_told():
    newest, *before = sessions()
    future = session(5000, newest.results)
    run = judged([future, newest, *before])
    assert "the session s19" in run.session
    assert any("s5000 is left out" in note and "to come" in note for note in run.notes)
    back = session(18, before[0].results, ended=START)
    run = judged([newest, back, *before[1:]])
    assert any("s18 is left out" in note for note in run.notes)
    with pytest.raises(SuiteError, match="s5000 is left out"):
        judged([future])


def test_two_suites_with_tests_of_one_name_are_kept_apart():
    newest, *before = sessions()
    other = [
        session(
            day,
            [result("test3", [("rate", 20.0, "GB/s")], day, file="/s/others/b.py")],
        )
        for day in range(100, 103)
    ]
    late = session(104, newest.results)
    run = judged([late, *other[::-1], *before])
    assert figure(run).judgement.verdict is Verdict.PASS
    (note,) = [one for one in run.notes if "called alike in two files" in one]
    assert "such as test3 in /s/checks/a.py and /s/others/b.py" in note


def test_sessions_of_another_suite_in_one_place_are_none_of_this_one():
    newest, *before = sessions()
    others = [
        session(one + 0.5, [result("stream", [("rate", 20.0, "GB/s")], one)]) for one in range(19)
    ]
    run = judged([newest, *sorted([*before, *others], key=lambda x: x.started, reverse=True)])
    assert "beside 19 earlier sessions" in run.session
    assert any("19 sessions of other suites left out" in note for note in run.notes)
    assert not any("did not run" in note for note in run.notes)
    assert figure(run).judgement.verdict is Verdict.PASS


@pytest.mark.parametrize(("days", "status"), [((18, 20), 2), ((17, 18, 20), 1)])
def test_a_session_of_other_tests_alone_is_of_the_suite_and_confirms_none(days, status):
    newest, another, *before = sessions(21, slow=slow_on(*days))
    alone = [x for x in another.results if x.test == "test5"]
    run = judged([newest, dataclasses.replace(another, results=alone), *before])
    assert "beside 20 earlier sessions" in run.session
    assert status_of(run) == status


def test_tests_whose_files_move_keep_their_history():
    newest, *before = sessions(slow=slow_on(17, 18, 19))
    moved = [dataclasses.replace(x, file="/s/checks/mpi/b.py") for x in newest.results]
    run = judged([session(19, moved), *before])
    assert figure(run).judgement.verdict is Verdict.REGRESSION
    (note,) = [one for one in run.notes if "moved" in one]
    assert note.startswith("8 tests moved to another file, such as test0 from /s/checks/a.py to ")
    # Another clone is no other file.
    clone = [dataclasses.replace(x, file="/home/b/checks/a.py") for x in newest.results]
    assert not any("moved" in one for one in judged([session(19, clone), *before]).notes)


# ----------------------------------------------------------------------------------------- nodes


def on_nodes(days, slow):
    rng = random.Random(5)
    made = []
    for day in range(days):
        results = []
        for node in range(8):
            rate = 100 * math.exp(rng.gauss(0, 0.004)) / slow(day, node)
            of = {"nodes": (f"n{node}",), "node": f"n{node}"}
            results.append(result("stream", [("triad", rate, "GB/s")], day, **of))
        made.append(session(day, results))
    return made[::-1]


@pytest.mark.parametrize(("since", "status"), [(11, 2), (9, 1), (0, 1)])
def test_a_slow_node_is_named_over_time_and_against_the_others(since, status):
    run = judged(on_nodes(12, lambda day, node: 1.12 if node == 5 and day >= since else 1.0))
    found = [one for one in run.evidence if one.part == "nodes"]
    assert [one.of for one in found] == ["n5"]
    assert status_of(run) == status
    assert "the median of 8 nodes" in found[0].sentence
    assert not judged(on_nodes(12, lambda day, node: 1.0)).evidence


def test_a_case_is_of_a_node_where_the_test_was_distributed():
    run = judged(on_nodes(6, lambda day, node: 1.0))
    assert len(run.cases) == 8
    assert all(one.state is CaseState.RAN for one in run.cases)


# ------------------------------------------------------------------------------ what comes and goes


def spiky(day, test):
    """Return by how much a test is slower: in each session another one has a spike of a session."""
    return 1.1 if day % 12 == test else 1.0


def test_a_test_that_is_slow_once_as_another_is_in_each_session_is_told_with_how_often():
    made = sessions(count=30, tests=12, slow=spiky)
    run = judged(made)
    assert figure(run, "test5").judgement.verdict is Verdict.INCONCLUSIVE
    assert status_of(run) == 2
    (one,) = run.evidence
    often = (
        r"as much came and went in \d+ of 29 sessions; `reframe -c \S+ -n /\w+ .* launches it again"
    )
    assert re.fullmatch(rf"test5 with gnu: [89] % slower, not confirmed: {often}", one.sentence)
    # Slow in two sessions in a row, as no other ever was; and far slower than any.
    twice = sessions(
        count=30, tests=12, slow=lambda d, t: 1.1 if (d, t) == (28, 5) else spiky(d, t)
    )
    far = sessions(count=30, tests=12, slow=lambda d, t: 1.3 if (d, t) == (29, 5) else spiky(d, t))
    for unusual in (twice, far):
        (one,) = judged(unusual).evidence
        assert "came and went" not in one.sentence
    # Slow for good is found as ever.
    good = sessions(count=30, tests=12, slow=lambda d, t: 1.1 if d > 26 and t == 5 else spiky(d, t))
    assert status_of(judged(good)) == 1


def test_a_test_is_named_with_its_parameters():
    made = [
        session(
            int(one.session_id[1:]),
            [dataclasses.replace(x, parameters="size=16") for x in one.results],
        )
        for one in sessions(slow=slow_on(19))
    ]
    assert [one.of for one in judged(made).evidence] == ["test3 size=16 with gnu"]


def test_few_sessions_do_not_tell_what_is_usual():
    (one,) = judged(sessions(count=9, tests=12, slow=spiky)).evidence
    assert "came and went" not in one.sentence
