"""Who else works on a node: waiting for them, and naming them."""

import multiprocessing
import os

import pytest

from clustergate.machine.others import Busy, Watch, look, used_by_others, wait_for_quiet

NOISY = Busy(1.3, {"make of alice": 0.9, "cron of root": 0.01, "python3 of bob": 0.4})
QUIET = Busy(0.02)


@pytest.fixture
def said() -> list[str]:
    return []


def test_a_quiet_node_is_measured_at_once(said: list[str]) -> None:
    wait_for_quiet(30, said.append, iter([QUIET]).__next__)
    assert said == []


def test_a_run_waits_until_the_others_are_gone_and_names_them(said: list[str]) -> None:
    looks = iter([NOISY, NOISY, QUIET])
    wait_for_quiet(30, said.append, looks.__next__)
    assert said == [
        "waiting up to 30 s for this node to be idle: others use 1.30 cores, "
        "make of alice 0.90, python3 of bob 0.40"
    ]
    assert list(looks) == []


def test_who_does_not_go_is_named_when_the_time_is_over(said: list[str]) -> None:
    looks = iter([NOISY] * 4)
    wait_for_quiet(3, said.append, looks.__next__)
    assert len(said) == 2
    assert said[1].startswith("this node is busy; measuring anyway: others use")
    assert len(list(looks)) == 1


def test_without_a_time_to_wait_nobody_looks(said: list[str]) -> None:
    wait_for_quiet(0, said.append, iter([]).__next__)
    assert said == []


def test_who_cannot_be_seen_is_no_name(said: list[str]) -> None:
    wait_for_quiet(1, said.append, iter([Busy(0.5, {"cron of root": 0.01})]).__next__)
    assert said[-1].endswith("others use 0.50 cores, no process that can be seen here")


def _spin(stop: "multiprocessing.synchronize.Event") -> None:
    while not stop.is_set():
        pass


def _names_seen(pipe: "multiprocessing.connection.Connection") -> None:
    """Look from a child: its parent's other child is somebody else there."""
    watch = Watch(lambda sentence: None)
    by_name, sentences = look(0.5).by_name, watch.sentences()
    itself = os.getpid() in {p for p, _ in used_by_others()}
    pipe.send((by_name, sentences, watch.sentences(more_than_cores=1e6), itself))


def test_a_process_that_works_is_seen_by_its_name_and_own_children_are_not() -> None:
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    busy = context.Process(target=_spin, args=(stop,))
    busy.start()
    ours, theirs = context.Pipe()
    looker = context.Process(target=_names_seen, args=(theirs,))
    try:
        assert busy.pid not in {pid for pid, _ in used_by_others()}
        looker.start()
        by_name, sentences, understating, sees_itself = ours.recv()
    finally:
        stop.set()
        busy.join()
        looker.join()
    assert sum(by_name.values()) > 0
    assert not sees_itself
    assert any("during this run others used" in sentence for sentence in sentences)
    assert understating == []
