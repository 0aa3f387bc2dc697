"""ReFrame's own words: its lines as ReFrame 4.10.4 prints them, and who may know them."""

import re
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from packaging.specifiers import SpecifierSet

from clustergate.core import store
from clustergate.core.model import BadRequest, ClustergateError, Launch
from clustergate.core.paths import checkout
from clustergate.core.texts import ProgressLine
from clustergate.launch.disturbance import NODE_SHARED
from clustergate.run import execute as execution
from clustergate.run import resuming
from clustergate.run.execute import Pace, UnderWay, execute
from clustergate.run.reframe import Call, call_for, command, listed_checks, step_of, with_stacks
from clustergate.sites import configs
from clustergate.sites.schedulers import scheduler_of
from clustergate.stacks import StackRequest
from clustergate.stacks.manifest import SET_UP
from reframe_checks import build
from tests import builders

IMB = "ImbMpi1Check %process_count=2 %node_usage=packed"
SKIPPED = f"[     SKIP ] ( 9/12) {IMB} /c9bf2ca1 @local:node+openmpi [no /1 @a:b+mpich is here]"


def test_a_line_names_a_case_and_what_became_of_it():
    skipped = step_of(SKIPPED)
    assert skipped is not None
    assert (skipped.word, skipped.left, skipped.name) == ("SKIP", 3, IMB)
    assert (skipped.hash, skipped.partition) == ("c9bf2ca1", "local:node")
    assert skipped.stack == "openmpi"
    begun = step_of("[ DRY      ] HplCheck /e9d5dbf2 @local:node+intel-mpi\n")
    assert begun is not None
    assert (begun.word, begun.name, begun.is_fixture) == ("DRY", "HplCheck", False)
    build = step_of("[ RUN      ] StackBuild ~a:b+mpich /a0 @a:b+mpich")
    assert build is not None
    assert build.is_fixture


@pytest.mark.parametrize("line", ["", "[  PASSED  ] Ran 2/2 test case(s)", "[ RUN      ] HplCheck"])
def test_other_lines_are_no_steps(line):
    assert step_of(line) is None


def told_by(call: Call, under_way: Callable[[], UnderWay] | None = None) -> list[str]:
    """Return what is said while a run succeeds, without how long cases took."""
    told: list[str] = []
    assert execute(call, told.append, under_way=under_way) == 0
    return [re.sub(r"\(\d+ s; ", "(", sentence) for sentence in told]


def test_one_process_is_told_in_the_singular(tmp_path):
    check = "LammpsCheck %model=lj %process_count=1 %launches=5"
    printed = f"[ RUN      ] {check} /c9bf2ca1 @local:node+mpich"
    words = [
        sys.executable,
        "-c",
        f"print({printed!r})",
    ]
    told = told_by(Call("x", words, {"CLUSTERGATE_RUN_ID": "x"}, tmp_path / "reframe.json"))
    assert told[0] == "running LAMMPS (lj, 1 process, launches=5) with mpich"


def test_a_run_is_told_case_by_case_without_its_builds(tmp_path):
    printed = [
        "[ RUN      ] StackBuild ~local:node+mpich /a0c50852 @local:node+mpich",
        "[       OK ] (1/3) StackBuild ~local:node+mpich /a0c50852 @local:node+mpich",
        "[ RUN      ] HplCheck /be2cd3ab @local:node+mpich",
        "[     FAIL ] (2/3) HplCheck /be2cd3ab @local:node+mpich",
        f"[ RUN      ] {IMB} /c9bf2ca1 @local:node+openmpi",
        SKIPPED.replace(" 9/12", "3/3"),
    ]
    words = [sys.executable, "-c", f"print({chr(10).join(printed)!r})"]
    call = Call("x", words, {"CLUSTERGATE_RUN_ID": "x"}, tmp_path / "reframe.json")
    assert told_by(call) == [
        "running HPL with mpich: 0 of 2 done",
        "HPL with mpich: FAILED (1 of 2)",
        "running IMB (2 processes, packed) with openmpi: 1 of 2 done",
        "IMB (2 processes, packed) with openmpi: not measured (2 of 2)",
    ]
    assert call.log.read_text().splitlines() == printed
    # What is foreseen of each goes on being told.
    told: list[str] = []
    execute(call, told.append, {("HplCheck", "mpich"): [60.0, 60.0]})
    assert isinstance(told[0], ProgressLine)
    assert ", all done by about " in told[0]
    # What a screening found is a result.
    told.clear()
    execute(call, told.append, failure=lambda: "faults found: node n2")
    assert told[1].startswith("HPL with mpich: faults found: node n2 (")


def test_cases_of_a_run_in_two_calls_are_counted_together(tmp_path):
    printed = [
        "[ RUN      ] HplCheck /be2cd3ab @local:node+mpich",
        "[       OK ] (1/1) HplCheck /be2cd3ab @local:node+mpich",
    ]
    words = [sys.executable, "-c", f"print({chr(10).join(printed)!r})"]
    call = Call("x", words, {"CLUSTERGATE_RUN_ID": "x"}, tmp_path / "reframe.json")
    for done, to_come, count in ((0, 3, "1 of 4)"), (3, 0, "4 of 4)")):
        told: list[str] = []
        execute(call, told.append, done=done, to_come=to_come)
        assert told[-1].endswith(count)


@pytest.mark.parametrize(
    ("phase", "result"),
    [("performance", "ran, and some figure looks slow or wrong"), ("sanity", "FAILED")],
)
def test_nothing_is_told_as_slower_before_it_was_launched_again(tmp_path, phase, result):
    printed = [
        "[ RUN      ] HplCheck /be2cd3ab @local:node+mpich",
        "[     FAIL ] (1/1) HplCheck /be2cd3ab @local:node+mpich",
        f"==> test failed during '{phase}': test staged in '/stage/HplCheck'",
    ]
    words = [sys.executable, "-c", f"print({chr(10).join(printed)!r})"]
    call = Call("x", words, {"CLUSTERGATE_RUN_ID": "x"}, tmp_path / "reframe.json")
    assert told_by(call)[1:] == [f"HPL with mpich: {result} (1 of 1)"]


SHARED = NODE_SHARED(host="n1", lost_cores=1.5, cores=2)


@pytest.mark.parametrize(
    ("record", "results"),
    [
        (builders.record(builders.hpl(91.44)), "91.4 Gflop/s"),
        # Of two launches the undisturbed one counts, where one is enough.
        (
            builders.record(
                *(builders.hpl(value, order) for order, value in enumerate((91.44, 80.0))),
                launches=[Launch(0, 0.0, 1.0, disturbed=SHARED), Launch(1, 0.0, 1.0)],
            ),
            "80 Gflop/s",
        ),
        (
            builders.record(
                *(builders.ping(value, order=order) for order, value in enumerate((1.5, 1.25))),
                builders.ping(5000.0, 1 << 20, metric="bandwidth_mb_s"),
                launches=builders.launches(2, disturbed=SHARED),
                launches_needed=1,
            ),
            "PingPong 8 B <= 1.25 us, PingPong best >= 5000 MB/s",
        ),
        (builders.record(builders.ping(1.5, 64)), ""),
    ],
)
def test_results_of_the_first_screen_and_bounds_where_disturbed(record, results):
    """Results are those of the first screen and bounds where others disturbed."""
    assert execution.results_of(record) == results


def test_what_a_case_came_to_has_its_results(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    store.write_case("came-to", builders.record(builders.hpl(50.0), stack="openmpi"))
    script = (
        "echo '[ RUN      ] HplCheck /be2cd3ab @local:node+mpich'\n"
        f"cp {tmp_path}/new.json {store.case_file('came-to', 'new')}\n"
        "echo '[       OK ] (1/1) HplCheck /be2cd3ab @local:node+mpich'"
    )
    own = builders.record(builders.hpl(91.4), details={resuming.HASH: "be2cd3ab"})
    written = store.write_case("came-to", own)
    written.rename(tmp_path / "new.json")
    words = ["/bin/sh", "-c", script]
    call = Call("came-to", words, {"CLUSTERGATE_RUN_ID": "came-to"}, tmp_path / "reframe.json")
    assert told_by(call)[-1] == "HPL with mpich: 91.4 Gflop/s (1 of 1)"


def test_cases_that_take_longer_than_foreseen_put_off_the_end():
    pace = Pace({("HplCheck", "mpich"): [60.0, 60.0, 60.0], ("HpccCheck", "mpich"): [120.0]})
    assert pace.of(("HplCheck", "mpich")) == (60.0, 300.0)
    pace.end(("HplCheck", "mpich"), 60.0)
    assert pace.of(("HplCheck", "mpich")) == (60.0, 240.0)
    pace.end(("HplCheck", "mpich"), 240.0)
    foreseen = pace.of(("HpccCheck", "mpich"))
    assert foreseen
    own_s, all_s = foreseen
    # 300 s where 120 were foreseen: what is left takes about twice as long.
    assert 1.8 * 120 < own_s < 2.5 * 120
    assert all_s == pytest.approx(1.5 * own_s)
    # Of what nobody foresaw, nothing is told.
    assert pace.of(("ImbMpi1Check", "mpich"), 2) is None
    pace.end(("ImbMpi1Check", "mpich"), 1000.0)
    assert pace.of(("HpccCheck", "mpich")) == (own_s, all_s)


def test_unforeseen_cases_take_as_long_as_those_that_ended():
    """Where nothing is foreseen the others take as long as those that ended."""
    pace = Pace({})
    assert pace.of(("HplCheck", "mpich"), 3) is None
    for took_s in (0.1, 20.0, 40.0):
        pace.end(("HplCheck", "mpich"), took_s)
    assert pace.of(("ImbMpi1Check", "mpich"), 3) == (30.0, 90.0)


def test_only_jobs_of_slurm_are_looked_for_in_its_queue():
    call = call_for("x", checkout() / "ci" / "virtual_cluster.py", [])
    of_slurm = [name for name, one in call.schedulers.items() if one is scheduler_of("slurm")]
    assert of_slurm == ["virtual-cluster:srun", "virtual-cluster:mpirun"]


def test_no_variable_sends_jobs_to_other_nodes(monkeypatch):
    """sbatch heeds SBATCH_PARTITION, and not the partition that a job script names."""
    for name in ("PARTITION", "CONSTRAINT", "ACCOUNT", "QOS"):
        monkeypatch.setenv(f"SBATCH_{name}", "other")
    options = ["--job-option=qos=high"]
    call = call_for("x", checkout() / "ci" / "virtual_cluster.py", options)
    assert [name for name in call.environment if name.startswith("SBATCH_")] == ["SBATCH_ACCOUNT"]


@pytest.mark.parametrize("options", [["--system", "virtual-cluster:ss"], ["--system=virtual:ssh"]])
def test_a_mistyped_partition_is_told_with_the_one_that_was_meant(options):
    """ReFrame said that it found no configuration entry, once the stacks were there."""
    site = checkout() / "ci" / "virtual_cluster.py"
    with pytest.raises(BadRequest, match=r"has no partition .* did you mean 'virtual-cluster:ssh'"):
        call_for("x", site, options)
    call_for("x", site, ["--system=virtual-cluster:ssh"])
    call_for("x", site, ["--system", "virtual-cluster"])


def test_a_job_in_the_queue_is_not_told_to_run(tmp_path, monkeypatch):
    """It was, for hours: how long a case takes was counted from its submission, too."""
    monkeypatch.setattr(execution, "_ASKED_EVERY_S", 0.01)
    answers = tmp_path / "answers"
    squeue = tmp_path / "squeue"
    job = store.stage_folder("x") / "local" / "node" / "mpich" / "HplCheck"
    states = ["", f"PENDING|Priority|{job}", f"PENDING|Priority|{job}", f"RUNNING|None|{job}"]
    answers.write_text("".join(f"{state}\n" for state in states))
    # Each call takes a line off the answers; ReFrame ends once there are none.
    squeue.write_text(f"#!/bin/sh\nhead -n1 {answers}; sed -i 1d {answers}\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    script = (
        "echo '[ RUN      ] HplCheck /be2cd3ab @local:node+mpich'\n"
        f"while [ -s {answers} ]; do sleep 0.01; done\n"
        "printf '[       OK ] (1/1) HplCheck /be2cd3ab @local:node+mpich'"
    )
    words, environment = ["/bin/sh", "-c", script], {"CLUSTERGATE_RUN_ID": "x"}
    queued = {"local:node": scheduler_of("slurm")}
    call = Call("x", words, environment, tmp_path / "reframe.json", queued)
    assert told_by(call) == [
        "submitting HPL with mpich",
        "waiting in Slurm's queue (Priority) for HPL with mpich to start",
        "running HPL with mpich",
        "HPL with mpich: ran (1 of 1)",
    ]
    assert [line[:12] for line in call.log.read_text().splitlines()] == [
        "[ RUN      ]",
        "[       OK ]",
    ]


def test_contenders_that_take_turns_show_their_rounds(tmp_path, monkeypatch):
    """ "0 of 1 done" stood there for five minutes, with the name of one of the contenders."""
    monkeypatch.setattr(execution, "_ASKED_EVERY_S", 0.01)
    rounds = iter([UnderWay(), UnderWay("round 1"), UnderWay("round 1"), UnderWay("round 2", 60.0)])
    last = tmp_path / "last"

    def far() -> UnderWay:
        one = next(rounds, UnderWay("round 2", 60.0))
        last.touch() if one.left_s else None
        return one

    script = (
        "echo '[ RUN      ] AbImbCheck %process_count=2 /be2cd3ab @local:node+mpich'\n"
        f"while [ ! -e {last} ]; do sleep 0.01; done; sleep 0.1\n"
        "echo '[       OK ] (1/1) AbImbCheck %process_count=2 /be2cd3ab @local:node+mpich'"
    )
    words = ["/bin/sh", "-c", script]
    call = Call("x", words, {"CLUSTERGATE_RUN_ID": "x"}, tmp_path / "reframe.json")
    said = told_by(call, far)
    assert said[:2] == ["running IMB (2 processes)", "round 1 of IMB (2 processes)"]
    assert said[2].startswith("round 2 of IMB (2 processes), all done by about ")
    assert said[3:] == ["IMB (2 processes): ran (1 of 1)"]


def test_a_stack_is_named_as_it_is():
    assert with_stacks(["intel-mpi", "a.b", "a.b"]) == [
        r"--prgenv=^intel\-mpi$",
        r"--prgenv=^a\.b$",
    ]


def test_its_list_tells_how_many_checks_it_found():
    assert listed_checks("- A\nFound 90 check(s)\n") == 90
    assert listed_checks("nothing") is None


# Options, lines, tables and files of ReFrame's own.
ITS_OWN = re.compile(
    r"--checkpath|--report-file|--prgenv|ReFrame Setup|testcases|fail_reason|FROM sessions|rfm_job"
)


def test_one_module_knows_reframes_call():
    assert ITS_OWN.search(" ".join(command([], report=checkout())))
    knows = [
        str(path.relative_to(checkout()))
        for room in ("clustergate", "evaluations")
        for path in sorted((checkout() / room).rglob("*.py"))
        if ITS_OWN.search(path.read_text(encoding="utf-8"))
    ]
    # What other suites' ReFrame left is read by a room of its own.
    assert [path for path in knows if not path.startswith("clustergate/suites/")] == [
        "clustergate/run/reframe.py"
    ]


@pytest.mark.parametrize(
    ("set_up", "wanted", "provides"),
    [
        ("", (), True),
        ("openmpi,mpich", (), False),
        ("openmpi", (), True),
        # The run put the stack on disk, and not what is built on request alone.
        ("openmpi,mpich", ("--applications", "npb"), True),
    ],
)
def test_what_a_run_put_on_disk_is_not_put_there_again(monkeypatch, set_up, wanted, provides):
    build_system = SimpleNamespace(commands=None)
    fixture = SimpleNamespace(build_system=build_system, wanted=wanted)
    asked = SimpleNamespace(request=StackRequest("mpich", "wheels"))
    monkeypatch.setattr(build, "stack_of", lambda test: asked)
    monkeypatch.setenv(SET_UP, set_up)
    build.StackBuild.call_the_provider(fixture)
    (command,) = build_system.commands
    assert (" setup --stack mpich " in command) == provides


def test_reframe_still_has_the_warning_that_the_suite_silences():
    """It walks the whole stack whenever ReFrame reads a deprecated variable of a case."""
    from reframe.core import fields

    assert callable(fields.user_deprecation_warning)


@pytest.mark.parametrize(
    ("version", "runs"),
    [
        ("4.9.2", True),
        ("4.10.4", True),
        ("4.10.5-dev.1", True),
        ("4.8.4", False),
        ("4.9.1", False),
        ("4.10.3", False),
        ("4.11.0", False),
        ("5.0.0", False),
        ("", False),
    ],
)
def test_reframe_unable_to_run_the_checks_refused(
    monkeypatch: pytest.MonkeyPatch, version: str, runs: bool
) -> None:
    """Pip put 4.10.4 in the place of a site's 4.8.4 without a word."""
    monkeypatch.setattr(configs, "_reframe_version", lambda: version)
    if runs:
        configs.require_reframe()
        return
    for ask in (configs.require_reframe, lambda: command(["--list"])):
        with pytest.raises(ClustergateError) as refused:
            ask()
        said = str(refused.value)
        assert said.startswith(f"ReFrame {version or 'none'} cannot run these checks")
        assert "4.9.2, 4.10.4" in said
        assert "environment of its own" in said


def test_pip_puts_no_other_reframe_in_the_place_of_a_sites_own() -> None:
    wanted = (checkout() / "pyproject.toml").read_text(encoding="utf-8")
    (bounds,) = re.findall(r'"reframe-hpc([^"]+)"', wanted)
    allowed = SpecifierSet(bounds)
    assert all(version in allowed for version in ("4.0.0", "4.8.4", "4.9.2", "4.10.4"))
    assert "4.11.0" not in allowed
