"""Tables that the bench writes into the docs, and aims beside the best test, on made answers."""

import json
from collections import Counter
from dataclasses import asdict

import pytest

from tools.bench import aims, measured
from tools.bench.aims import GATE, OPTIMUM, Aim, Answered, Openings
from tools.bench.field import RULES
from tools.bench.pairs import CLOSED, OPEN, Decided
from tools.bench.slowdowns import NOTHING, SIZE, Change
from tools.bench.verdicts import OURS, Replayed

TENTH = Change(SIZE, 1.10)


def answered(
    gate: Decided, optimum: Decided, field: str, *, put: Change = TENTH, recording: str = "one"
) -> Answered:
    by_the_field = {(rule, n): Decided(field, n) for rule in RULES for n in (0, 20)}
    return Answered(recording, True, put, {GATE: gate, OPTIMUM: optimum}, by_the_field)


def verdicts(all_of_them: list[Answered]) -> dict[str, tuple[str, ...]]:
    _, *rows = aims.rows_of_aims(all_of_them)
    return {row[0]: tuple(row) for row in rows}


@pytest.mark.parametrize(
    ("gate", "optimum", "said"),
    [
        (Decided(CLOSED, 20), Decided(CLOSED, 5), "reached"),
        (Decided(CLOSED, 21), Decided(CLOSED, 5), "missed"),
        (Decided(CLOSED, 21), Decided(CLOSED, 30), "out of reach"),
        (Decided(OPEN, 12), Decided(CLOSED, 5), "missed"),
    ],
)
def test_an_aim_is_reached_missed_or_out_of_reach(gate, optimum, said) -> None:
    unchanged = answered(Decided(OPEN, 20), Decided(OPEN, 9), OPEN, put=NOTHING)
    rows = verdicts([unchanged, answered(gate, optimum, CLOSED)])
    in_time = rows["one size 10 %, quiet: closed in 90 within 20 rounds"]
    assert in_time[-1] == said
    assert in_time[1] == "1"


def test_a_rule_with_false_alarms_is_nothing_to_be_held_against() -> None:
    alarm = answered(Decided(OPEN, 20), Decided(OPEN, 9), CLOSED, put=NOTHING)
    slower = answered(Decided(CLOSED, 10), Decided(CLOSED, 5), CLOSED)
    row = verdicts([alarm, slower])["one size 10 %, quiet: closed in 90 within 20 rounds"]
    assert row[4] == "each has false alarms"


def test_differences_are_of_pairs_and_their_bounds_of_recordings() -> None:
    aim = Aim(TENTH, True, [CLOSED], 0.9, 20)
    same = [
        answered(Decided(CLOSED, 9), Decided(CLOSED, 5), CLOSED, recording=str(k)) for k in range(4)
    ]
    late = answered(Decided(CLOSED, 30), Decided(CLOSED, 5), CLOSED, recording="late")
    assert aims.less(same, aim, OPTIMUM) == "0 (0 to 0)"
    assert aims.less([*same, late], aim, OPTIMUM).startswith("-20 (-60 to 0")


def test_what_is_kept_is_read_again() -> None:
    one = answered(Decided(CLOSED, 20, 3.5), Decided(CLOSED, 5), OPEN)
    assert Answered.read(json.loads(json.dumps(one.plain()))) == one


def test_a_page_holds_what_the_bench_kept_between_its_remarks() -> None:
    page = "before\n<!-- rounds -->\nold\n<!-- /rounds -->\nafter\n"
    assert measured.put_between(page, "rounds", "new") == page.replace("old", "new")
    assert measured.put_between(page, "others", "new") == page
    slower = answered(Decided(CLOSED, 10), Decided(CLOSED, 5), CLOSED)
    made = dict(measured.texts([{"aims": [slower.plain()]}]))
    assert (
        "| one size 10 % | quiet | 1 | 0 | 1 | 0 | 10, 10 | 5, 5 | 2.0 | 2.0 | 0 |"
        in made["rounds"]
    )
    assert "| one size 10 % | quiet | 100, 0 | 100, 0 | 100, 0 |" in made["rules"]


def test_what_is_opened_is_counted_within_rounds() -> None:
    opened = [answered(Decided(OPEN, n), Decided(OPEN, 9), OPEN, put=NOTHING) for n in (25, 26, 90)]
    _, quiet = aims.rows_of_opened(opened)
    assert quiet == ("quiet", "3", "1", "2", "3", "3", "3", "3", "3")


def test_openings_are_shares_of_recordings() -> None:
    kept = [Openings("one", False, TENTH, 40, 1, [30]), Openings("one", False, TENTH, 40, 1, [])]
    kept += [Openings("two", False, TENTH, 40, 0, [])]
    plain = [json.loads(json.dumps(asdict(one))) for one in kept]
    table = dict(measured.texts([{"openings": plain}]))["openings"]
    assert "| one size 10 % | busy | 2 | 120 | 2: 1.7 (0.0-2.5) | 1: 0.8 (0.0-1.2) |" in table


def test_summary_by_mode_and_baseline() -> None:
    answers = Counter({(OURS, TENTH, "one", "found"): 3, (OURS, TENTH, "two", "passed"): 1})
    kept = Replayed(
        "smoke", "many sessions", ["one", "two"], 4, 3.0, 416, 1.0, 0.5, {OURS: 4.0}, answers
    )
    table = measured.summary([kept])
    assert "smoke, many sessions: found" in table
    assert "| one size 10 % | 75 (0-100) | 25 (0-100) |" in table
