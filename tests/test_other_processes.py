"""Who else works on a node: waiting for them, and naming them."""

import multiprocessing
import os
import subprocess
import sys

import pytest

from clustergate.machine.other_processes import (
    OtherLoad,
    ProcessUsage,
    Watch,
    sample_other_load,
    used_between,
    used_by_others,
    wait_for_quiet,
)

NOISY = OtherLoad(1.3, {"make of alice": 0.9, "cron of root": 0.01, "python3 of bob": 0.4})
QUIET = OtherLoad(0.02)


@pytest.fixture
def said() -> list[str]:
    return []


def test_a_quiet_node_is_measured_at_once(said: list[str]) -> None:
    wait_for_quiet(30, said.append, iter([QUIET]).__next__, cores=2)
    assert said == []


def test_a_run_waits_until_the_others_are_gone_and_names_them(said: list[str]) -> None:
    looks = iter([NOISY, NOISY, QUIET])
    wait_for_quiet(30, said.append, looks.__next__, cores=2)
    assert said == [
        "waiting up to 30 s for this node to be idle: others use 1.30 cores, "
        "make of alice 0.90, python3 of bob 0.40"
    ]
    assert list(looks) == []


def test_who_does_not_go_is_named_when_the_time_is_over(said: list[str]) -> None:
    looks = iter([NOISY] * 4)
    wait_for_quiet(3, said.append, looks.__next__, cores=2)
    assert len(said) == 2
    assert said[1].startswith(
        "this node is busy; measuring anyway, which takes longer than announced: "
    )
    assert len(list(looks)) == 1


def test_the_daemons_of_a_large_node_keep_nobody_waiting(said: list[str]) -> None:
    wait_for_quiet(30, said.append, iter([NOISY]).__next__, cores=128)
    assert said == []


def test_without_a_time_to_wait_nobody_looks(said: list[str]) -> None:
    wait_for_quiet(0, said.append, iter([]).__next__, cores=2)
    assert said == []


def test_who_cannot_be_seen_is_no_name(said: list[str]) -> None:
    wait_for_quiet(1, said.append, iter([OtherLoad(0.5, {"cron of root": 0.01})]).__next__, cores=2)
    assert said[-1].endswith("others use 0.50 cores, no process that can be seen here")


MAKE, CC = (10, 1.0), (11, 2.0)


def test_who_came_and_who_went_on_is_told_what_it_used_since() -> None:
    before = {MAKE: ProcessUsage("make of alice", 5.0, 100.0)}
    after = {
        MAKE: ProcessUsage("make of alice", 6.0, 100.0),
        CC: ProcessUsage("cc1 of alice", 2.0, parent=10),
    }
    assert used_between(before, after) == {"make of alice": 1.0, "cc1 of alice": 2.0}
    # The same id, of another process.
    assert used_between(before, {(10, 9.0): ProcessUsage("sh of bob", 0.5)}) == {"sh of bob": 0.5}


def test_who_changed_its_name_is_not_told_its_whole_life() -> None:
    """As the workers of the kernel do, which are called after what they work on."""
    before = {MAKE: ProcessUsage("kworker/0:2-virtio of root", 800.0)}
    after = {MAKE: ProcessUsage("kworker/0:2-ext4 of root", 800.5)}
    assert used_between(before, after) == {"kworker/0:2-ext4 of root": pytest.approx(0.5)}


def test_who_ended_between_two_looks_is_told_by_its_parent() -> None:
    before = {
        MAKE: ProcessUsage("make of alice", 5.0, 100.0),
        CC: ProcessUsage("cc1 of alice", 30.0, 1.0, parent=10),
        (12, 2.0): ProcessUsage("as of alice", 4.0, parent=11),
    }
    # Its parent waited for all of them, and for one of 3 s that nobody saw.
    after = {MAKE: ProcessUsage("make of alice", 5.0, 100.0 + 30.5 + 1.0 + 4.0 + 3.0)}
    assert used_between(before, after) == {"make of alice": pytest.approx(3.5)}
    # Nobody waited for it.
    assert used_between(before, {MAKE: before[MAKE]}) == {"make of alice": 0.0}


def test_init_is_not_told_what_others_left_to_it() -> None:
    before = {(1, 0.0): ProcessUsage("systemd of root", 1.0, 50.0)}
    after = {(1, 0.0): ProcessUsage("systemd of root", 1.5, 950.0)}
    assert used_between(before, after) == {"systemd of root": 0.5}


SPAWNING = """
import subprocess, sys
for _ in sys.stdin:
    subprocess.run([sys.executable, "-c", "for _ in range(5_000_000): pass"])
    print("ended", flush=True)
"""


def _told_of_short_ones(pipe: "multiprocessing.connection.Connection") -> None:
    watch = Watch(lambda sentence: None)
    pipe.send("looked")
    pipe.recv()
    watch.say("next")
    pipe.send(dict(watch._used))


def test_a_process_that_ends_between_two_looks_is_seen() -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", SPAWNING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    watcher = context.Process(target=_told_of_short_ones, args=(theirs,))
    with parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        watcher.start()
        assert ours.recv() == "looked"
        parent.stdin.write("go\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == "ended\n"
        ours.send("ended")
        used = ours.recv()
        watcher.join()
        parent.stdin.close()
    assert sum(seconds for name, seconds in used.items() if name.startswith("python")) > 0.02


def _spin(stop: "multiprocessing.synchronize.Event") -> None:
    while not stop.is_set():
        pass


def _names_seen(pipe: "multiprocessing.connection.Connection") -> None:
    """Look from a child: its parent's other child is somebody else there."""
    watch = Watch(lambda sentence: None)
    by_name, sentences = sample_other_load(0.5).by_name, watch.sentences()
    itself = os.getpid() in {p for p, _ in used_by_others()}
    pipe.send((by_name, sentences, itself))


def test_working_process_seen_by_name_own_children_not() -> None:
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    busy = context.Process(target=_spin, args=(stop,))
    busy.start()
    ours, theirs = context.Pipe()
    looker = context.Process(target=_names_seen, args=(theirs,))
    try:
        assert busy.pid not in {pid for pid, _ in used_by_others()}
        looker.start()
        by_name, sentences, sees_itself = ours.recv()
    finally:
        stop.set()
        busy.join()
        looker.join()
    assert sum(by_name.values()) > 0
    assert not sees_itself
    assert any("other programs used" in sentence for sentence in sentences)
