"""Rolling: the ledger, what its events amount to, who is accused, what is screened next. Pure."""

import errno
import itertools
import json
import math
import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustergate.core.store import StoreError
from clustergate.stats.sequential import DAY_S, Evidence, log_bound
from clustergate.studies.roll.decision import accusations, looks
from clustergate.studies.roll.ledger import Event, Ledger
from clustergate.studies.roll.planner import Bounds, next_jobs
from clustergate.studies.roll.state import ALONE, APART_S, PAIR, USUAL, Book, State
from clustergate.studies.screen.measures import Result

NODES = [f"n{k:02}" for k in range(16)]
START = 700 * DAY_S
SOUND = {"fma_peak_gflops": 1000.0, "triad_gb_s": 200.0}
PINGPONG = {"pingpong_latency_us": 1.5, "pingpong_bandwidth_mb_s": 12_000.0}


@pytest.mark.parametrize("more", ['"kind": "alone"', '"kind": "alone", "nodes": 7'])
def test_an_event_that_lacks_what_it_should_have_is_named_by_its_line(
    tmp_path: Path, more: str
) -> None:
    ledger = Ledger(tmp_path)
    ledger.append({"event": "begun", "at": 1.0, "ledger": "abc"})
    with ledger.path.open("a") as file:
        file.write(f'cut o\n{{"event": "look", "at": 2, {more}}}\n')
    with pytest.raises(StoreError, match="jsonl:3 is no event"):
        Book(Ledger(tmp_path))


# --- evidence -------------------------------------------------------------------------------------


def test_capital_is_a_fair_bet_against_a_sound_place() -> None:
    for usual in (0.02, 0.1):
        slow, sound = (
            math.exp(Evidence().after(is_slow, usual, START).log) for is_slow in (True, False)
        )
        assert usual * slow + (1 - usual) * sound == pytest.approx(1)


def test_error_holds_at_every_look() -> None:
    bound, lot = -math.log(0.05), np.random.default_rng(3)
    accused = 0
    for _ in range(1000):
        evidence = Evidence()
        for slow in lot.random(60) < USUAL:
            evidence = evidence.after(bool(slow), USUAL, START)
            if evidence.log >= bound:
                accused += 1
                break
    # Of 1000 draws with a chance of at most 0.05: beyond 80 with 1e-5.
    assert accused <= 80


def test_a_new_day_forgets_what_sound_looks_have_spent() -> None:
    old = Evidence()
    for _ in range(50):
        old = old.after(False, USUAL, START)
    anew = old
    for k in range(3):
        old = old.after(True, USUAL, START)
        anew = anew.after(True, USUAL, START + DAY_S + k)
    assert anew.log > log_bound(1, 2) > old.log


def test_a_look_that_is_usual_tells_nothing() -> None:
    assert Evidence().after(True, 1.0, START).log == pytest.approx(0)


# --- the ledger -----------------------------------------------------------------------------------


def events_of(folder: Path) -> list[Event]:
    return Ledger(folder).read_new()[0]


def note(number: int) -> dict[str, Any]:
    return {"event": "note", "at": float(number)}


def test_a_line_that_was_cut_off_is_told_and_left_out_wherever_it_was_cut(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.append(note(1), note(2))
    whole = ledger.path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first + 1, len(whole) - 1):
        ledger.path.write_bytes(whole[:end])
        cut = Ledger(tmp_path)
        assert cut.read_new() == ([note(1)], True)
        assert "ledger.jsonl:2 was cut off" in str(cut.torn)
        cut.append(note(3))
        assert cut.read_new() == ([note(3)], False)
        assert events_of(tmp_path) == [note(1), note(3)]


def test_a_line_that_is_no_event_is_named_and_nothing_lost(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.path.write_text('{"event": "note", "at": 1}\n[1]\n')
    with pytest.raises(StoreError, match=r"ledger\.jsonl:2 is no event"):
        ledger.read_new()
    assert len(ledger.path.read_text().splitlines()) == 2


def test_a_full_disk_leaves_the_ledger_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path)
    ledger.append(note(1))
    before = ledger.path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="free some space"):
        ledger.append(note(2), note(3))
    assert ledger.path.read_bytes() == before


def _append_many(folder: Path, writer: int, count: int) -> None:
    for k in range(count):
        Ledger(folder).append({**note(k), "writer": writer, "filled": "x" * 5000})


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_many, args=(tmp_path, k, 40)) for k in range(2)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    events = events_of(tmp_path)
    for k in range(2):
        assert [e["at"] for e in events if e["writer"] == k] == [*map(float, range(40))]


def test_a_writer_killed_at_any_time_leaves_whole_events(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writer = context.Process(target=_append_many, args=(tmp_path, 0, 10**6))
    writer.start()
    while len(events_of(tmp_path)) < 5:
        pass
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    before = events_of(tmp_path)
    Ledger(tmp_path).append(note(-1))
    assert events_of(tmp_path) == [*before, note(-1)]
    assert [event["at"] for event in before] == [*map(float, range(len(before)))]


# --- looks and accusations ------------------------------------------------------------------------


def alone(node: str, **times: float) -> Result:
    values = {key: value * times.get(key, 1.0) for key, value in SOUND.items()}
    return Result((node,), "peaks", 0, values, seconds=20.0)


def pair(first: str, second: str, **times: float) -> Result:
    values = {key: value * times.get(key, 1.0) for key, value in PINGPONG.items()}
    return Result((first, second), "pingpong", 1, values, seconds=5.0)


def see(state: State, results: Iterable[Result], at: float) -> list[Event]:
    """Let a state take the looks of a job, and what follows from them; return the latter."""
    for event in looks(state, "j1", results, at):
        state.apply(json.loads(json.dumps(event)))
    decided = [*accusations(state, at, 1.0)]
    for event in decided:
        state.apply(event)
    return decided


def rolled(
    days: int, slow: Mapping[str, Mapping[str, float]], since: float = 0, skip: int = 0
) -> Iterator[tuple[float, list[Event], State]]:
    """Yield each day of nodes that are all seen alone, and in pairs that change; some are slow."""
    state = State()
    for day in range(days):
        at = START + day * 86_400.0
        now = slow if day >= since else {}
        decided = []
        for k, first in enumerate(NODES[:8]):
            second = NODES[8 + (k + day) % 8]
            times = {**now.get(first, {}), **now.get(second, {})}
            job = [alone(first, **now.get(first, {})), alone(second, **now.get(second, {}))]
            decided += see(state, [*job, pair(first, second, **times)], at + 60 * k)
        yield at, decided, state


def accused_in(days: Iterable[tuple[float, list[Event], State]]) -> list[tuple[str, str]]:
    return [(e["node"], e["short"]) for _, decided, _ in days for e in decided]


def test_sound_nodes_are_never_accused() -> None:
    assert accused_in(rolled(20, {})) == []


@pytest.mark.parametrize(
    ("times", "short"),
    [
        ({"triad_gb_s": 0.8}, "mem -20%"),
        ({"fma_peak_gflops": 0.7}, "FMA -30%"),
        ({"pingpong_bandwidth_mb_s": 0.5}, "bw -50%"),
        ({"pingpong_latency_us": 2.0}, "lat +100%"),
    ],
)
def test_a_slow_node_is_accused_alone_and_in_words(times: dict[str, float], short: str) -> None:
    assert accused_in(rolled(12, {"n03": times}, since=4)) == [("n03", short)]


def test_three_slow_looks_accuse_and_two_do_not() -> None:
    days = [*rolled(8, {"n03": {"triad_gb_s": 0.8}}, since=4)]
    assert [day for day, (_, decided, _) in enumerate(days) if decided] == [6]


def test_a_node_that_fails_is_accused() -> None:
    state = State()
    failed = Result(("n00",), "peaks", 0, failed="it ended with exit status 1")
    for day in range(3):
        decided = see(state, [failed], START + day * 86_400.0)
    assert [event["short"] for event in decided] == ["fails"]


def test_looks_within_hours_are_one() -> None:
    state, decided = State(), []
    for k in range(30):
        failed = Result(("n00",), "peaks", 0, failed="no answer")
        decided += see(state, [failed], START + k * APART_S / 40)
    assert decided == []
    assert state.of("n00").slow == {ALONE: "fails"}


def test_what_slows_all_nodes_accuses_nobody() -> None:
    all_slow = {node: {"triad_gb_s": 0.8, "pingpong_latency_us": 1.6} for node in NODES}
    assert accused_in(rolled(20, all_slow, since=8)) == []


def test_a_sound_node_is_not_accused_for_its_partner() -> None:
    state = State()
    for at, _, state in rolled(5, {}):  # noqa: B007
        pass
    times = {"pingpong_bandwidth_mb_s": 0.5}
    for k in range(12):
        see(state, [pair("n00", "n01", **times)], at + (k + 1) * 86_400.0)
    assert not state.accusations
    assert state.of("n00").log_evidence < log_bound(1, 2) / 2


def test_an_accused_node_that_is_good_three_times_is_cleared() -> None:
    state = State()
    for at, _, state in rolled(8, {"n03": {"triad_gb_s": 0.8}}, since=3):  # noqa: B007
        pass
    assert state.of("n03").accused == "a1"
    for day in range(1, 4):
        see(state, [alone("n03")], at + day * 86_400.0)
    assert state.of("n03").accused == ""
    assert state.accusations["a1"].closed == "good again, three times"


def test_replaying_the_ledger_gives_the_same_state(tmp_path: Path) -> None:
    ledger, state = Ledger(tmp_path), State()
    for day, node in itertools.product(range(6), NODES):
        times = {"triad_gb_s": 0.8} if node == "n05" else {}
        at = START + day * 86_400.0
        for event in looks(state, "j1", [alone(node, **times)], at):
            ledger.append(event)
            state.apply(event)
        for event in [*accusations(state, at, 1.0)]:
            ledger.append(event)
            state.apply(event)
    assert Book(Ledger(tmp_path)).state == state
    assert state.of("n05").accused


# --- what is screened next ------------------------------------------------------------------------


def planned(state: State, key: str, *nodes: str, waits: bool = False) -> None:
    own = {"event": "planned", "at": START, "job": key, "nodes": nodes, "waits": waits}
    state.apply(own)


def test_idle_nodes_are_screened_in_pairs_within_the_share() -> None:
    state, bounds = State(), Bounds(share=0.25, jobs=4)
    jobs = next_jobs(state, NODES, NODES, bounds, START)
    assert [len(job.nodes) for job in jobs] == [2, 2]
    assert not any(job.waits for job in jobs)


def test_jobs_that_go_on_count() -> None:
    state, bounds = State(), Bounds(share=0.25, jobs=4)
    planned(state, "j1", "n00", "n01")
    (job,) = next_jobs(state, NODES, NODES, bounds, START)
    assert {"n00", "n01"}.isdisjoint(job.nodes)
    planned(state, "j2", *job.nodes)
    assert next_jobs(state, NODES, NODES, bounds, START) == []


def test_a_single_idle_node_is_screened_by_itself() -> None:
    jobs = next_jobs(State(), ["n07"], NODES, Bounds(jobs=1), START)
    assert [job.nodes for job in jobs] == [("n07",)]


def test_what_was_seen_within_the_time_is_left_alone() -> None:
    state = State()
    for at, _, state in rolled(1, {}):  # noqa: B007
        pass
    soon, later = (at + hours * 3600 for hours in (12, 25))
    assert next_jobs(state, NODES, NODES, Bounds(), soon) == []
    assert next_jobs(state, NODES, NODES, Bounds(), later)


def test_a_look_by_a_clock_that_was_ahead_keeps_no_node_from_the_next() -> None:
    state = State()
    for at, _, state in rolled(1, {}):  # noqa: B007
        pass
    before = START - 2 * DAY_S
    assert {
        n for job in next_jobs(state, NODES, NODES, Bounds(share=1.0), before) for n in job.nodes
    }


def test_a_suspect_comes_first_and_soon_with_a_partner_that_was_good() -> None:
    state = State()
    for at, _, state in rolled(4, {"n03": {"pingpong_bandwidth_mb_s": 0.5}}, since=3):  # noqa: B007
        pass
    job = next_jobs(state, NODES, NODES, Bounds(), at + APART_S + 3600)[0]
    assert state.of(job.nodes[0]).slow
    assert not state.of(job.nodes[1]).slow
    assert state.of(job.nodes[1]).good_at[PAIR]


def test_busy_nodes_that_are_overdue_are_waited_for_by_half_of_the_jobs() -> None:
    jobs = next_jobs(State(), [], NODES, Bounds(share=0.5, jobs=4), START)
    assert [(len(job.nodes), job.waits) for job in jobs] == [(1, True)] * 2


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_whatever_is_idle(seed: int) -> None:
    lot = np.random.default_rng(seed)
    bounds = Bounds(share=float(lot.uniform(0.01, 1)), jobs=int(lot.integers(1, 9)))
    state = State()
    for k in range(60):
        idle = [node for node in NODES if lot.random() < 0.4]
        for job in next_jobs(state, idle, NODES, bounds, START + k * 3600):
            planned(state, f"j{state.jobs_planned}", *job.nodes, waits=job.waits)
        taken = [node for job in state.jobs.values() for node in job.nodes]
        assert len(taken) == len({*taken}) <= bounds.nodes(len(NODES))
        assert len(state.jobs) <= bounds.jobs
        for key in [key for key in state.jobs if lot.random() < 0.5]:
            for event in looks(state, key, map(alone, state.jobs[key].nodes), START + k * 3600):
                state.apply(event)
            del state.jobs[key]
