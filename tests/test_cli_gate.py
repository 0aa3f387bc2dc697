"""The gate's command: what it compares with, and what it leaves."""

import dataclasses
import datetime
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from clustergate import cli
from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.hpl.sizing import HplInput, render_hpl_dat
from clustergate.cli import gate
from clustergate.cli import screen as cli_screen
from clustergate.core import store
from clustergate.core.files.stored import encode
from clustergate.core.model import (
    Case,
    CaseId,
    CaseRecord,
    ClustergateError,
    Evidence,
    Launch,
    NodeFacts,
    Promise,
    Run,
    Verdict,
)
from clustergate.core.reasons import Reason, in_words
from clustergate.judge.assembly import Beside
from clustergate.judge.history.listing import ENDED, GATE, keep_made
from clustergate.judge.history.node_states import keep_states
from clustergate.judge.history.stored_runs import (
    ASKED,
    last_time,
    seconds_taken,
)
from clustergate.judge.references.lookup import References, parse_references
from clustergate.launch.disturbance import MOVED_CORES
from clustergate.launch.plan import LOG, Contender, Launched, write_plan
from clustergate.report import publishing, verdicts
from clustergate.report.gate import first_screen, render_gate
from clustergate.report.screening import render_first, write_forms
from clustergate.run import prepare, screening, software
from clustergate.run.gate import controls, evidence, workflow
from clustergate.run.gate.before import earlier_screenings, last_run
from clustergate.run.gate.contract import LEFT_OUT, Control, Requirement, make_contract
from clustergate.run.gate.decision import NOT_ENDED, SCREENING_DOUBT, benchmark_evidence, decide
from clustergate.run.gate.evidence import Publisher
from clustergate.run.gate.workflow import SMALL_BUDGET
from clustergate.run.request import Request
from clustergate.run.software import NO_TIME
from clustergate.run.software_evidence import same_build
from clustergate.sites import choice, exclusions
from clustergate.sites import configs as sites
from clustergate.sites.description import Site
from clustergate.sites.modes import expected_cases, mode_named
from clustergate.sites.schedulers.local import Local
from clustergate.stacks import StackRequest
from clustergate.stacks.existing import MODULES_LATE
from clustergate.stacks.set_up import NotSetUp
from clustergate.studies.screen import wording
from clustergate.studies.screen.findings import Screening, analyse
from clustergate.studies.screen.measures import Result
from clustergate.studies.screen.plan import Log, Plan
from clustergate.studies.screen.planning import ScreenRequest
from tests import builders
from tests.builders import hpl

NAMES = ("n1", "n2", "n3", "n4")
MAINTENANCE = mode_named("maintenance")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    return tmp_path


def record(mode: str = "maintenance", value: float = 100.0) -> CaseRecord:
    samples = [hpl(value * (1 + (7 * k % 12) / 500), k) for k in range(12)]
    return builders.record(
        *samples, conditions={"mode": mode}, launches=builders.launches(12, 10.0)
    )


def judged(key: CaseId, verdict: Verdict = Verdict.PASS) -> Case:
    """Return a case with every figure that a gate must see judged."""
    return builders.complete_case(key, MAINTENANCE, verdict, placement="packed")


def kept(run_id: str, check: str = "HplCheck", **what: Any) -> str:
    name = f"{check}-node-mpich"
    store.write_case(run_id, dataclasses.replace(record(**what), name=name, check=check))
    return run_id


def keep_screening(
    run_id: str, system: str = "local", ended: bool = True, by: str = "node with intel-mpi"
) -> None:
    where = store.run_folder(run_id) / "screening"
    store.make_folder(where)
    write_plan(where, Plan(run_id, [], Budget(), 1, system=system, by=by, nodes=NAMES))
    values = {"pingpong_latency_us": 2.0}
    made = Launched("pingpong", 0, 0, Launch(0, 0.0, 1.0), nodes=("n1", "n2"), values=values)
    lines = [{"names": NAMES}, dataclasses.asdict(made), *([{"ended": True}] if ended else [])]
    (where / LOG).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_last_run_is_the_newest_of_this_mode_and_system() -> None:
    assert last_run("local") is None
    kept("20261101T000000Z-1")
    kept("20261103T000000Z-1", mode="smoke")
    kept("20261102T000000Z-1")
    assert last_run("local") == "20261102T000000Z-1"
    assert last_run("other") is None
    # What was slower than its reference is nobody's standard.
    store.write_json(
        store.run_folder(kept("20261104T000000Z-1")) / ENDED, {"verdict": "regression"}
    )
    assert last_run("local") == "20261102T000000Z-1"
    store.write_json(store.run_folder(kept("20261105T000000Z-1")) / ENDED, {"verdict": "pass"})
    assert last_run("local") == "20261105T000000Z-1"
    # Nor is what was interrupted before anybody judged it.
    interrupted = store.run_folder(kept("20261106T000000Z-1"))
    store.write_json(interrupted / ASKED, {"mode": "maintenance"})
    assert last_run("local") == "20261105T000000Z-1"
    store.write_json(interrupted / ENDED, {"verdict": "pass"})
    assert last_run("local") == "20261106T000000Z-1"


def test_the_last_run_is_one_that_has_what_is_compared() -> None:
    """A run of one check that somebody made since stood for the whole machine."""
    whole = kept(kept("20261101T000000Z-1"), check="HpccCheck")
    part = kept("20261102T000000Z-1")
    other = kept(kept("20261103T000000Z-1", mode="smoke"), mode="smoke", check="HpccCheck")
    hpcc, hpl = store.read_cases(whole)
    elsewhere = dataclasses.replace(hpl, name="HplCheck-node-openmpi")
    assert store.case_names(other) == [hpcc.name, hpl.name]
    assert last_run("local", [hpcc, hpl]) == whole
    assert last_run("local", [hpl]) == part
    assert last_run("local", [hpcc, hpl, elsewhere]) == whole
    assert last_run("local", [elsewhere]) is None
    # Of a case that failed there is nothing to compare with.
    failed = kept(kept("20261104T000000Z-1"), check="HpccCheck")
    store.write_case(failed, dataclasses.replace(hpcc, complaints=[in_words("it failed")]))
    assert last_run("local", [hpcc, hpl]) == whole
    assert last_run("local", [hpl]) == failed
    shutil.rmtree(store.run_folder(failed))
    # What was copied here from another machine is of other processors.
    xeon, epyc = (
        dataclasses.replace(hpl, details={"processors": [name]}) for name in ("Xeon", "EPYC")
    )
    assert last_run("local", [xeon]) == part
    store.write_case(part, epyc)
    assert last_run("local", [xeon]) == whole
    # Nor is another machine with the same processors this one.
    here, there = (
        dataclasses.replace(epyc, details={**epyc.details, "proof": {"hosts": [name]}})
        for name in ("n1", "m1")
    )
    store.write_case(part, there)
    assert last_run("local", [here]) == whole
    store.write_case(whole, there)
    assert last_run("local", [here]) is None
    assert last_run("local", [there]) == part
    # As earlier versions, which noted none.
    store.write_case(part, epyc)
    store.write_case(whole, hpl)
    assert last_run("local", [here]) == part
    # Nor does it cost the answer of the gate if nobody can read it.
    store.case_file(whole, hpcc.name).write_text("{")
    assert last_run("local", [hpcc, epyc]) == part


def on_exclusive_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "nodes_of", lambda _: {"local:node": NodeFacts(exclusive=True)})


def test_the_last_run_is_one_that_nothing_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the newest nothing could be compared, which passed, and the good one was not looked at."""
    good = kept("20261101T000000Z-1")
    (hpl,) = store.read_cases(good)
    noisy = kept("20261102T000000Z-1")
    busy = [dataclasses.replace(x, disturbed=in_words("another job")) for x in hpl.launches]
    store.write_case(noisy, dataclasses.replace(hpl, launches=busy))
    assert last_run("local", [hpl]) == good
    today = kept("20261103T000000Z-1", value=50.0)
    on_exclusive_nodes(monkeypatch)
    (told,) = evidence.compare_with(good, today)
    assert told.verdict is Verdict.REGRESSION
    # One launch that nothing disturbed is something to compare with.
    store.write_case(noisy, dataclasses.replace(hpl, launches=[*busy[:-1], hpl.launches[-1]]))
    assert last_run("local", [hpl]) == today
    shutil.rmtree(store.run_folder(today))
    assert last_run("local", [hpl]) == noisy


def test_a_finished_screening_is_shown_and_opened_and_not_resumed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    keep_screening("20261101T000000Z-1")
    where = store.run_folder("20261101T000000Z-1") / "screening"
    assert cli.main(["show", "last", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    (evidence,) = shown["evidence"]
    # Nothing of four nodes was measured alone.
    assert shown["exit_status"] == 2
    (why,) = evidence["reasons"]
    assert (evidence["verdict"], why["code"]) == ("invalid", "screening.unmeasured")
    (where / "screening.html").write_text("<p>")
    for command in ("show", "open"):
        assert cli.main([command, "last"]) == 0
        assert f"{where}/screening.html" in capsys.readouterr().out.splitlines()


# Of each case of a check with a stack, by its partition, ranks and placement.
TOOK = {("HplCheck", "mpich"): {("local:node", 1, "packed"): [125.0]}}


def test_how_long_it_took_is_known_of_a_gate_that_did_not_open_too() -> None:
    closed = kept("20261102T000000Z-1")
    (store.run_folder(closed) / "gate.json").write_text('{"status": 1}')
    assert last_run("local") is None
    assert last_time("local", "maintenance")[0] == TOOK
    assert last_time("local", "smoke")[0] == {}
    damaged = store.run_folder(kept("20261103T000000Z-1"))
    next(damaged.glob("cases/*.json")).write_text("{")
    assert last_time("local", "maintenance")[0] == TOOK
    assert last_time("other", "maintenance")[0] == {}


def test_duration_with_other_settings_says_nothing() -> None:
    kept("20261101T000000Z-1")
    with_n = store.run_folder(kept("20261102T000000Z-1", check="HpccCheck"))
    store.write_json(with_n / ASKED, {"options": ["-p", "mpich", "-S", "HpccCheck.n=500"]})
    assert last_time("local", "maintenance")[0] == TOOK
    as_then = ["--setvar=HpccCheck.n=500"]
    assert last_time("local", "maintenance", as_then)[0] == {
        ("HpccCheck", "mpich"): TOOK["HplCheck", "mpich"]
    }
    assert last_time("local", "maintenance", ["-S", "HpccCheck.n=501"])[0] == {}
    # Were only the newest runs looked at, none of them would be like this one.
    for day in range(3, 9):
        copy = store.run_folder(kept(f"2026110{day}T000000Z-1", check="HpccCheck"))
        shutil.copy(with_n / ASKED, copy)
    assert last_time("local", "maintenance")[0] == TOOK


def test_what_was_disturbed_for_the_most_part_last_time_is_told() -> None:
    kept("20261101T000000Z-1")
    assert last_time("local", "maintenance")[1] == set()
    moved = Launch(0, 0.0, 10.0, disturbed=MOVED_CORES(times=2.0))
    launches = [Launch(0, 0.0, 10.0), moved, moved]
    store.write_case("20261101T000000Z-1", dataclasses.replace(record(), launches=launches))
    assert last_time("local", "maintenance")[1] == {("HplCheck", "mpich")}


def test_duration_of_a_check_includes_start_and_peaks() -> None:
    """What a check took is its launches with their start and the peaks beside them."""
    measuring = dataclasses.replace(record(), details={"peaks_s": 7.5})
    (of_check,) = seconds_taken([record(), measuring]).values()
    assert [*of_check.values()] == [[125.0, 132.5]]


def test_earlier_screenings_are_finished_of_this_system_newest_first() -> None:
    """Earlier screenings are the finished ones of this system newest first."""
    by = "node with intel-mpi"
    assert not list(earlier_screenings("local", by, "node", "x"))
    keep_screening("20261101T000000Z-1")
    keep_screening("20261102T000000Z-1", system="other")
    keep_screening("20261103T000000Z-1", ended=False)
    keep_screening("20261104T000000Z-1")
    keep_screening("20261105T000000Z-1", by="node with mpich")
    both = [when.day for _, when, _ in earlier_screenings("local", by, "node", "x")]
    assert both == [4, 1]
    ((_, when, _),) = earlier_screenings("local", by, "node", without="20261104T000000Z-1")
    assert when.day == 1
    assert not list(earlier_screenings("local", by, "core", "x"))
    copy = store.run_folder("20261101T000000Z-1")
    shutil.copytree(copy, copy.with_name("before-the-update"))
    assert len(list(earlier_screenings("local", by, "node", "x"))) == 2
    shutil.rmtree(copy.with_name("before-the-update"))
    (copy / "screening" / "plan.json").write_text("{")
    assert not list(earlier_screenings("local", by, "node", without="20261104T000000Z-1"))


def test_screening_of_another_partition_alone_is_its_earlier_one() -> None:
    """`screen --partition fat`, as the gate advises, was never found by the next gate."""
    by = "fat with intel-mpi"
    keep_screening("20261101T000000Z-1")
    keep_screening("20261102T000000Z-1", by=by)
    found = [when.day for _, when, _ in earlier_screenings("local", by, "node", "x", None, "/fat")]
    assert found == [2]
    first = "node with intel-mpi"
    assert [when.day for _, when, _ in earlier_screenings("local", first, "node", "x")] == [1]


def test_a_screening_of_another_machine_is_no_earlier_one_of_this() -> None:
    """Laptops, and virtual machines, all go by the name of local."""

    def screened_on(day: int, processor: str, *nodes: str) -> str:
        run_id = f"2026110{day}T000000Z-1"
        keep_screening(run_id)
        said = store.run_folder(run_id) / "said"
        said.mkdir()
        for node in nodes:
            (said / node).write_text(f"hardware.processor\t{processor}\n")
        keep_states(said, store.run_folder(run_id))
        return run_id

    screened_on(1, "Xeon", "n1", "n2")
    screened_on(2, "EPYC", "n1", "n2")
    screened_on(3, "Xeon", "m1", "m2")
    screened_on(4, "Xeon", "n2", "n3")
    keep_screening("20261105T000000Z-1")
    today = screened_on(6, "Xeon", "n1", "n2", "n4")
    earlier = earlier_screenings("local", "node with intel-mpi", "node", today)
    # Of the fifth nobody knows on which nodes it was.
    assert [when.day for _, when, _ in earlier] == [5, 4, 1]


def test_hpl_of_a_smaller_matrix_says_nothing_of_a_larger_one() -> None:
    """Nightly screenings with `--hpl 10s` were slow enough to hide what a gate's own would show."""

    def with_hpl_of(day: int, order: int) -> str:
        run_id = f"2026110{day}T000000Z-1"
        where = store.run_folder(run_id) / "screening"
        keep_screening(run_id)
        text = render_hpl_dat(HplInput(n_values=(order,), p_values=(1,), q_values=(1,)))
        hpl = Contender("hpl", [], [], "", inputs={"HPL.dat": text})
        plan: dict[str, Any] = {"by": "node with intel-mpi", "system": "local", "nodes": NAMES}
        write_plan(where, Plan(run_id, [hpl], Budget(), 1, **plan))
        made = Launched("hpl", 0, 0, Launch(1, 0.0, 1.0), nodes=("n1",), values={"hpl_gflops": 1.0})
        with (where / LOG).open("a") as log:
            log.write(json.dumps(encode(made)) + "\n")
        return run_id

    with_hpl_of(1, 1000)
    with_hpl_of(2, 1950)
    today = with_hpl_of(3, 2000)
    earlier = earlier_screenings("local", "node with intel-mpi", "node", today)
    assert [(when.day, "hpl_gflops" in one.located) for _, when, one in earlier] == [
        (2, True),
        (1, False),
    ]


def screened(*args: object) -> tuple[Log, Screening]:
    results = tuple(Result((n,), "hpl", 0, {"hpl_gflops": 100.0}) for n in NAMES)
    return Log(NAMES, results, ended=True), analyse(NAMES, results)


def run_gate(
    monkeypatch: pytest.MonkeyPatch, value: float, *options: str, measured: Any = None
) -> int:
    """Run the gate on screenings and benchmarks that were not made, but kept like real ones."""

    def benchmarks(wanted: Any, run_id: str, *rest: object) -> Run:
        kept(run_id, value=value)
        site = sites.load(wanted.site)
        partitions = site.partitions_with(site.stacks_named(wanted.stacks))
        keys = expected_cases(wanted.checks, partitions, MAINTENANCE)
        return builders.run(*map(judged, keys), run_id=run_id, mode="maintenance")

    def nodes(site: Path, run_id: str, *rest: object) -> tuple[Log, Screening]:
        keep_screening(run_id)
        return screened()

    monkeypatch.setattr(evidence, "screen", nodes)
    monkeypatch.setattr(evidence, "run_session", measured or benchmarks)
    monkeypatch.setattr(publishing, "publish", lambda run, **_: run)
    return cli.main(["gate", "--site", "local", *options])


def because() -> str:
    """Return all that speaks against opening, of the newest gate."""
    newest = max(store.runs_folder().glob("*/gate.json"))
    return "\n".join(json.loads(newest.read_text())["because"])


@pytest.mark.parametrize(
    ("words", "site"),
    [
        ("--site alpha --budget 5m -- -S n=1", "alpha"),
        ("--budget 5m -- -S n=1", None),
    ],
)
def test_its_system_is_named_as_in_other_commands(words: str, site: str | None) -> None:
    parsed = cli.build_parser(["gate"]).parse_args(["gate", *words.split()])
    assert (parsed.site, parsed.budget, parsed.reframe_options) == (site, "5m", ["-S", "n=1"])


@pytest.mark.parametrize("command", ["gate", "check", "screen"])
def test_a_system_is_no_option_for_reframe(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.build_parser([command]).parse_args([command, "alpha", "--", "-S", "n=1"])
    assert "unrecognized arguments: alpha" in capsys.readouterr().err


def test_unknown_option_told_where_it_belongs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, told in (
        (["alpha"], "alpha (a value follows an option)"),
        (
            ["--chek", "HplCheck"],
            "--chek HplCheck (options for ReFrame go after --); did you mean ",
        ),
        (["-S", "n=1"], "-S n=1 (options for ReFrame go after --)"),
        (
            ["--dry-run"],
            "--dry-run (options for ReFrame go after --); did you mean `clustergate dry-run`?",
        ),
    ):
        with pytest.raises(SystemExit):
            cli.build_parser(["check"]).parse_args(["check", *words])
        assert f"unrecognized arguments: {told}" in capsys.readouterr().err


def test_second_gate_names_the_running_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second found no free node: "the screening measured nothing", and a log told why."""
    second = []

    def beside(wanted: Any, run_id: str, *rest: object) -> Run:
        capsys.readouterr()
        second.append((run_id, cli.main(["gate", "--site", "local"]), capsys.readouterr().err))
        raise ClustergateError(SMALL_BUDGET())

    run_gate(monkeypatch, 100.0, measured=beside)
    ((run_id, status, said),) = second
    assert status == 2
    (line,) = [line for line in said.splitlines() if line.startswith("clustergate: ")]
    assert line.startswith(f"clustergate: the gate {run_id} of local is still running (by ")
    assert f"`clustergate show {run_id}`" in line


def test_it_opens_when_all_is_as_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    kept("20261101T000000Z-1")
    assert run_gate(monkeypatch, value=100.0) == 0
    said = capsys.readouterr().out
    assert "\n ✓ OPEN: everything is as it was and as it should be\n" in said
    assert said.endswith("\nclustergate gate: exit status 0: OPEN\n")
    assert cli.main(["show", "last"]) == 0
    assert capsys.readouterr().out.startswith("clustergate gate   local   9 cases   ")
    (page,) = state.glob("results/runs/*/gate.html")
    assert "OPEN" in page.read_text()
    decision = json.loads((page.parent / "gate.json").read_text())
    codes = {why["code"] for one in decision["evidence"] for why in one["reasons"]}
    assert "gate.all-judged" in codes
    cases = decision["must_be_judged"]
    assert {(one["judged"], one["by"], one["why_not"]) for one in cases} == {
        (True, "its references", "")
    }
    assert {one["what"] for one in cases} >= {"HpccCheck with openmpi on local:node"}


def test_what_its_baseline_cannot_promise_is_told_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept("20261101T000000Z-1")

    def compared(records: Sequence[CaseRecord], *_: object) -> Beside:
        of = Promise("benchmark", "HPL.performance_gflops", ("mpich",), 0.3, 0.0, kept=False)
        other = dataclasses.replace(of, name="not judged here")
        names = [one.name for one in records if one.check == "HplCheck"]
        return Beside(promises={name: [of, other] for name in names})

    monkeypatch.setattr(workflow, "compared", compared)
    assert run_gate(monkeypatch, value=100.0) == 0
    before = capsys.readouterr().err
    told = "this baseline promises nothing of HPL with mpich (35%); tonight only a golden build"
    assert before.count(told) == 1
    assert "not judged here" not in before


def test_what_is_promised_passes_over_checks_of_a_package_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = builders.record(check="TokenRingCheck")
    monkeypatch.setattr(workflow, "last_run", lambda system: "run")
    monkeypatch.setattr(store, "read_cases", lambda run: [gone])
    site = sites.load(choice.find("local"))
    known = References(Path("none"))
    assert workflow.promised_before(site, known) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--stack", "mpich"),
            "with intel-mpi, openmpi: left out by --stack; "
            "run `clustergate gate --site local` without --stack",
        ),
        (
            ("--budget", "400s"),
            "with intel-mpi: left out, because the budget is 400s; a budget of 40m covers "
            "everything (`clustergate gate --budget 40m --site local`)",
        ),
        (("--budget", "400s", "--stack", "mpich"), "ImbMpi1Check with mpich: left out, because"),
    ],
)
def test_it_does_not_open_when_something_was_left_out(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    state: Path,
    options: tuple[str, ...],
    sentence: str,
) -> None:
    assert run_gate(monkeypatch, 100.0, *options) == 2
    said = capsys.readouterr()
    assert "\n ~ COULD NOT JUDGE: " in said.out
    assert sentence in because()
    # It says so before it begins, too.
    assert "the gate will not open, whatever the results: " in said.err
    (page,) = state.glob("results/runs/*/gate.html")
    assert "left out" in page.read_text()


def test_a_budget_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """It ended with a traceback, as a bug in the suite."""
    assert cli.main(["gate", "--site", "local", "--budget", "0s"]) == 2
    assert "clustergate: --budget must be positive" in capsys.readouterr().err


def test_script_reads_the_exit_status_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It read that of the benchmarks: 0 of a gate that stayed closed by its screening."""

    def benchmarks(wanted: Any, run_id: str, *rest: object) -> Run:
        keys = expected_cases(wanted.checks, sites.load(wanted.site).partitions, MAINTENANCE)
        made = builders.run(*map(judged, keys), run_id=run_id, mode="maintenance")
        store.write_json(store.run_folder(run_id) / verdicts.FILE, verdicts.as_json(made))
        return made

    for options, status in (((), 0), (("--stack", "mpich"), 2)):
        assert run_gate(monkeypatch, 100.0, "--json", *options, measured=benchmarks) == status
        assert json.loads(capsys.readouterr().out)["exit_status"] == status


def test_ci_is_told_why_it_did_not_open(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    assert run_gate(monkeypatch, 100.0, "--stack", "mpich") == 2
    (junit,) = state.glob("results/runs/*/junit.xml")
    root = ElementTree.fromstring(junit.read_text())
    wrong = [test.get("name") for test in root.iter("testcase") if test.find("error") is not None]
    assert wrong == ["what must be judged"]
    assert "left out by --stack" in str(root.findtext(".//error"))
    assert run_gate(monkeypatch, 100.0) == 0
    newest = max(state.glob("results/runs/*/junit.xml"), key=lambda path: path.parent.name)
    root = ElementTree.fromstring(newest.read_text())
    assert (root.get("failures"), root.get("errors")) == ("0", "0")


def test_it_does_not_open_on_some_of_the_nodes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(exclusions.WITHOUT_NODES, "n[3-4]")
    assert run_gate(monkeypatch, 100.0) == 2
    said = capsys.readouterr()
    told = (
        "n[3-4] left out by --nodes or --exclude; "
        "run `clustergate gate --site local` without --nodes and --exclude, or exclude"
    )
    assert told in because()
    assert told in said.err


def test_it_does_not_open_on_some_of_the_cores(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without references its controls let a run on one core stand for the node."""
    assert run_gate(monkeypatch, 100.0, "--", "-S", "HplCheck.ranks=1") == 2
    told = "ranks set by -S, instead of all cores and nodes; run the gate without that setting"
    assert told in because()
    assert run_gate(monkeypatch, 100.0, "--", "-S", "HplCheck.launches=9") == 0


@pytest.mark.parametrize(
    ("setting", "opens"),
    [("HplCheck.launches=1", False), ("launches=2", False), ("HplCheck.launches=2", True)],
)
def test_fewer_launches_than_a_gate_makes_open_nothing(
    monkeypatch: pytest.MonkeyPatch, setting: str, opens: bool
) -> None:
    assert run_gate(monkeypatch, 100.0, "--", "-S", setting) == (0 if opens else 2)
    assert opens or f"{setting} set by -S, fewer launches than a gate makes" in because()


def test_what_comes_next_is_what_can_change_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It named the budget again that was too small, or a larger one where references lacked."""
    none = References(Path("none"))

    def next_steps() -> list[str]:
        lines = capsys.readouterr().out.splitlines()
        at = next(k for k, line in enumerate(lines) if line.startswith(" Next  "))
        return [line[7:] for line in lines[at : at + 2]]

    larger = "a budget of 40m covers everything (`clustergate gate --budget 40m --site local`)"
    monkeypatch.setattr(workflow, "references_of", lambda system: none)
    assert run_gate(monkeypatch, 100.0, "--budget", "6m") == 2
    references, budget = next_steps()
    assert references.startswith("`clustergate baseline --site local`, after five runs ")
    assert budget == larger
    monkeypatch.setattr(evidence, "screen", lambda *rest: (screened()[0], screened()[1]))
    noise = Evidence("x", Verdict.INVALID, (NOT_ENDED(),))
    monkeypatch.setattr(workflow, "compare_with", lambda *rest, **how: [noise])
    assert run_gate(monkeypatch, 100.0, "--budget", "6m") == 2
    # HPL is known by now to take less.
    assert "`clustergate gate --site local --budget 38m` screens again" in because()


def test_an_interrupted_gate_names_the_call_that_would_open_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> Run:
        raise KeyboardInterrupt

    assert run_gate(monkeypatch, 100.0, "--budget", "6m", measured=interrupted) == 130
    anew = "a gate is not resumed: `clustergate gate --site local --budget 40m` measures anew"
    assert anew in capsys.readouterr().err
    (begun,) = store.runs_folder().glob("*/gate.json")
    assert json.loads(begun.read_text())["status"] is None


def test_a_gate_is_not_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--resume", "20261101T000000Z-r1"], ["--resume"]):
        assert cli.main(["gate", "--site", "local", *words]) == 2
        told = capsys.readouterr().err
        assert "a gate is not resumed" in told
        assert "`clustergate gate --site local` measures anew" in told


def test_it_names_the_nodes_that_the_hostfile_excludes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    hostfile = state / "local.txt"
    hostfile.write_text("n[1-4] slots=2\nexclude n[2-3] 2026-11-22 slow in screening\n")
    monkeypatch.setattr(exclusions, "hostfile_path", lambda system: hostfile)
    # Who excludes it in the hostfile may leave it out as well.
    monkeypatch.setenv(exclusions.WITHOUT_NODES, "n2")
    assert run_gate(monkeypatch, 100.0) == 0
    told = "not judged, excluded since 2026-11-22: slow in screening: n[2-3]"
    assert f"\n   {told}" in capsys.readouterr().out
    (page,) = state.glob("results/runs/*/gate.html")
    assert "n[2-3]" in page.read_text()
    assert json.loads((page.parent / "gate.json").read_text())["excluded"] == [told]


@pytest.mark.parametrize(
    ("known", "says"),
    [
        (References(Path("none")), "there are no references of local"),
        (
            parse_references('expect: {HPL: ">= 1 Gflop/s"}', Path("local.yaml"), ("HplCheck",)),
            "local has 1 expectation and no references",
        ),
    ],
)
def test_gate_stays_shut_where_nothing_is_compared(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    known: References,
    says: str,
) -> None:
    def benchmarks(wanted: Any, run_id: str, *rest: object) -> Run:
        partitions = sites.load(wanted.site).partitions
        keys = expected_cases(wanted.checks, partitions, MAINTENANCE)
        cases = [judged(key) for key in keys[1:]] + [judged(keys[0], Verdict.NO_REFERENCE)]
        begun.update(json.loads((store.run_folder(run_id) / GATE).read_text()))
        return builders.run(*cases, run_id=run_id, mode="maintenance")

    begun: dict[str, Any] = {}
    monkeypatch.setattr(workflow, "references_of", lambda system: known)
    assert run_gate(monkeypatch, 100.0, measured=benchmarks) == 2
    # Who looks for its answer before it is there is told how to call it again.
    assert begun["called"][:2] == [["gate"], ["--site", "local"]]
    said = capsys.readouterr()
    assert "\n ~ NO FAULT FOUND, NOTHING TO COMPARE WITH: you decide: " in said.out
    assert "   1 of 9 that must be judged have nothing to compare with\n" in said.out
    # It says so before it measures, too.
    assert says in said.err


@pytest.mark.parametrize(
    ("nodes", "pinned", "status"),
    [
        (Control("4 nodes as ever"), "2026-11-04", 0),
        (Control(why="two nodes"), "2026-11-04", 2),
        (Control("4 nodes as ever"), "2999-01-01", 2),
    ],
)
def test_it_opens_without_references_by_its_controls_alone(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    state: Path,
    nodes: Control,
    pinned: str,
    status: int,
) -> None:
    def benchmarks(wanted: Any, run_id: str, *rest: object) -> Run:
        keys = expected_cases(wanted.checks, sites.load(wanted.site).partitions, MAINTENANCE)
        cases = (judged(key, Verdict.NO_REFERENCE) for key in keys)
        return builders.run(*cases, run_id=run_id, mode="maintenance")

    def golden(path: Path, run_id: str, site: Site, stacks: Sequence[str], *rest: object) -> Any:
        return [one for stack in stacks for one in same_build(stack, "abc", [], pinned)], []

    monkeypatch.setattr(controls, "nodes_control", lambda *_, **how: ([], nodes))
    monkeypatch.setattr(software, "against_golden", golden)
    assert run_gate(monkeypatch, 100.0, measured=benchmarks) == status
    said = capsys.readouterr().out
    (page,) = state.glob("results/runs/*/gate.html")
    cases = json.loads((page.parent / "gate.json").read_text())["must_be_judged"]
    assert {one["by"] for one in cases} == {
        "the golden build of 2026-11-04, 4 nodes as ever" if status == 0 else ""
    }
    if status == 0:
        assert "were, by the golden build of 2026-11-04, 4 nodes as ever" in said
        assert "the golden build of 2026-11-04, 4 nodes as ever" in page.read_text()
    else:
        assert "have no reference, and no control: " in because()
        assert "\n ~ NO FAULT FOUND, NOTHING TO COMPARE WITH: you decide: " in said


def test_it_does_not_open_a_machine_whose_site_config_is_a_guess(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guess = choice.Choice(choice.find("local"), "as no site config claims it", fallback=True)
    monkeypatch.setattr(gate, "choose_site", lambda name: guess)
    assert run_gate(monkeypatch, 100.0) == 2
    assert (
        "the site config is a guess: as no site config claims it; if it describes this "
        "machine, run `clustergate gate --site local`" in because()
    )


def test_gate_stays_shut_on_a_machine_of_another_site_config(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "as named, although beta claims this machine, b1"
    monkeypatch.setattr(
        gate, "choose_site", lambda name: choice.Choice(choice.find("local"), why, disputed=True)
    )
    assert run_gate(monkeypatch, 100.0) == 2
    assert f"{why}; run `clustergate gate --site local` on its" in because()


def site_with(
    waived: Any, *partitions: dict[str, Any], checks: Mapping[str, Sequence[str]] | None = None
) -> Site:
    stacks = [sites.stack("mpich"), sites.stack("openmpi", waived=waived)]
    node = {"name": "a", "scheduler": "local", "launcher": "clustergate"}
    has = {"cores_per_node": 1, "memory_bytes_per_node": 2**30, "nominal_gflops_per_core": 1.0}
    described = [{**node, **p, "extras": {**has, **p.get("extras", {})}} for p in partitions]
    system = {"name": "s", "hostnames": ["s"], "partitions": described}
    return Site.of(sites.configuration([system], stacks, checks or {}))


def test_what_a_site_adds_must_be_judged_once_it_has_references() -> None:
    """References of before the site chose it are no reason to stay shut."""
    added = {"maintenance": ["HplCheck", "HpccCheck", "ImbMpi1Check", "HpcgCheck"]}
    site = site_with({}, {}, checks=added)
    before = make_contract(site, [], None, {}, referenced={"HplCheck", "HpccCheck", "ImbMpi1Check"})
    assert before.allotted.checks == tuple(added["maintenance"])
    assert {key.check for key in before.required} == {*MAINTENANCE.own_checks}
    (note,) = before.notes
    assert note.startswith("not judged until it has references: HpcgCheck (`clustergate baseline")
    after = make_contract(site, [], None, {}, referenced={"HplCheck", "HpcgCheck"})
    assert {key.check for key in after.required} == {*added["maintenance"]}
    assert after.notes == []


def test_golden_builds_are_launched_by_what_the_gate_runs() -> None:
    """What a site does not run in its windows takes no time of one."""
    chosen = {"maintenance": ["ImbMpi1Check", "HpcgCheck"]}
    for checks, names in (
        ({}, {"AbHplCheck", "AbImbCheck"}),
        (chosen, {"AbImbCheck", "AbHpcgCheck"}),
    ):
        launched = software._checks(site_with({}, {}, checks=checks))
        assert {one.name for one in launched} == names


def test_what_a_site_leaves_out_is_told_and_a_gate_never_opens_by_nothing() -> None:
    site = site_with({}, {}, checks={"maintenance": ["HpcgCheck"]})
    contract = make_contract(site, [], None, {}, referenced={"HplCheck"})
    assert {key.check for key in contract.required} == {"HpcgCheck"}
    assert contract.notes[0] == "left out by the site config: HplCheck"


def test_what_the_site_waives_need_not_be_judged_and_is_named() -> None:
    all_of_it = make_contract(site_with({}, {}), [], None, {})
    assert {key.stack for key in all_of_it.required} == {"mpich", "openmpi"}
    one = make_contract(site_with({"HpccCheck": "no wheel"}, {}), [], None, {})
    assert len(all_of_it.required) - len(one.required) == 1
    assert one.notes == ["waived by the site config: HpccCheck with openmpi: no wheel"]
    whole = make_contract(site_with("nobody uses it", {}), [], None, {})
    assert whole.allotted.stacks == ("mpich",)
    assert whole.left_out == {}
    assert len(whole.notes) == 3


def test_what_is_waived_with_every_stack_that_is_run_is_not_run() -> None:
    waived = {"HpccCheck": "it takes too long", "ImbMpi1Check": "it takes too long"}
    alone = site_with(waived, {"environs": ["openmpi"]})
    assert make_contract(alone, [], None, {}).allotted.checks == ("HplCheck",)
    beside = make_contract(site_with(waived, {}), [], None, {})
    assert set(beside.allotted.checks) == set(MAINTENANCE.checks)


@pytest.mark.parametrize("waived", [{"Hpcc": "x"}, {"HpccCheck": ""}, {"HpccCheck": None}])
def test_a_waiver_names_a_check_and_a_reason(waived: Any) -> None:
    with pytest.raises(sites.SiteError, match=r"of the stack openmpi .*(HpccCheck|why a gate)"):
        site_with(waived, {})


def test_a_site_that_waives_everything_is_not_judged() -> None:
    configured = site_with("x", {"environs": ["openmpi"]})
    with pytest.raises(ClustergateError, match="there is nothing to judge"):
        make_contract(configured, [], None, {})


def test_every_partition_judged_and_in_the_budget() -> None:
    one = make_contract(site_with({}, {"extras": {"cores_per_node": 8}}), [], None, {})
    both = [{"name": name, "extras": {"cores_per_node": 8}} for name in ("a", "b")]
    two = make_contract(site_with({}, *both), [], None, {})
    assert len(two.required) == 2 * len(one.required)
    assert two.seconds > 1.9 * (one.seconds - 120)
    pairs = ((c, s) for c in MAINTENANCE.checks for s in ("mpich", "openmpi"))
    took = {key: {("s:a", 2, "packed"): [1.0]} for key in pairs}
    assert make_contract(site_with({}, *both), [], None, took).seconds <= 120


def test_partitions_that_were_not_screened_are_told() -> None:
    """Of the first one it was said that no faults were found, and of the others nothing."""
    slurm = {"scheduler": "slurm", "launcher": "clustergate", "extras": {"nodes": 4}}
    a, b = ({**slurm, "name": name, "access": [f"-p {name}"]} for name in "ab")
    (told,) = screening.not_screened(ScreenRequest(), site_with({}, a, b))
    assert told.startswith("the nodes of b were not screened: ")
    assert screening.not_screened(ScreenRequest(partition="b"), site_with({}, a, b)) == []
    assert screening.not_screened(ScreenRequest(), site_with({}, a)) == []


def test_partitions_with_own_nodes_screened_separately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slurm = {"scheduler": "slurm", "launcher": "clustergate", "extras": {"nodes": 4}}
    partitions = [
        {**slurm, "name": "a", "access": ["-p thin"]},
        {**slurm, "name": "b", "access": ["-p fat"]},
        {**slurm, "name": "c", "access": ["-p thin"]},
    ]
    configured = site_with({}, *partitions)
    asked = []

    def screening(
        site: Path, run_id: str, wanted: Any, stack: str, *_: object
    ) -> tuple[Log, Screening]:
        asked.append((run_id, wanted.partition, wanted.seconds, stack))
        keep_screening(run_id)
        return screened()

    monkeypatch.setattr(evidence, "screen", screening)
    contract = make_contract(configured, ["openmpi"], "30m", {})
    told, _, _ = evidence.screen_partitions(
        *(Path("s.py"), "r", configured, contract, None, print),
        publisher=Publisher(publishing.publish, write_forms),
    )
    assert asked == [("r", "a", 480.0, "openmpi"), ("r/b", "b", 480.0, "openmpi")]
    parts = [f"screening of s:{name}" for name in "ab"]
    whole = [part for one in parts for part in (one, f"{one} against the last one")]
    assert [one.part for one in told] == whole


def test_one_budget_covers_checks_and_golden_builds() -> None:
    """It named 37m, which covers everything, beside 62m for golden builds."""
    site = site_with({}, {})
    alone = make_contract(site, [], None, {})
    contract = make_contract(site, [], "1m", {}, golden_s=1200.0)
    assert contract.needed_s == alone.needed_s + 1200.0
    longer = contract.deciding_software(1500.0, used_s=30.0)
    for one, needed_s in ((contract, contract.needed_s), (longer, contract.needed_s + 300.0)):
        assert one.needed_s == needed_s
        told = f"a budget of {needed_s / 60:.0f}m covers everything, golden builds included"
        assert {remedy.partition(" (")[0] for _, remedy in one.left_out.values()} == {told}
    (short,) = {remedy for _, remedy in longer.left_out.values()}
    undecided = NO_TIME(differing=["x"], left_s=1.0, wanted_s=1500.0)
    left_out = LEFT_OUT(cases="c", why="w", remedy=short)
    decision = decide(
        [
            Evidence("what must be judged", Verdict.INCONCLUSIVE, (left_out,)),
            Evidence("software: mpich", Verdict.INCONCLUSIVE, (undecided,)),
        ]
    )
    assert len(first_screen(decision, "r", software_s=longer.needed_s).next_steps) == 1


def test_gate_closed_by_a_figure_worse_than_last_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_exclusive_nodes(monkeypatch)
    kept("20261101T000000Z-1")
    assert run_gate(monkeypatch, value=50.0) == 1
    said = capsys.readouterr().out
    assert "STAY CLOSED" in said
    assert "HPL is 50.0 % slower, usually within" in said


def test_what_one_hour_may_differ_from_another_does_not_close_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept("20261101T000000Z-1")
    assert run_gate(monkeypatch, value=70.0) == 0
    assert "STAY CLOSED" not in capsys.readouterr().out


@pytest.mark.parametrize(("asked", "status"), [(False, 0), (True, 2)])
def test_what_the_run_before_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: bool,
    status: int,
) -> None:
    """Of one case of two it said that none of its figures is worse, and nothing of the other."""
    earlier = kept("20261101T000000Z-1")

    def benchmarks(wanted: Any, run_id: str, *rest: object) -> Run:
        kept(kept(run_id), check="HpccCheck")
        keys = expected_cases(wanted.checks, sites.load(wanted.site).partitions, MAINTENANCE)
        return builders.run(*map(judged, keys), run_id=run_id, mode="maintenance")

    options = ["--before", earlier] if asked else []
    assert run_gate(monkeypatch, 100.0, *options, measured=benchmarks) == status
    (page,) = store.runs_folder().glob("*/gate.html")
    assert "it has no figure of HpccCheck with mpich (local:node)" in page.read_text()


@pytest.mark.parametrize(
    ("code", "damage"),
    [
        ("gate.none-in-both", lambda case: {**case, "stack": "elsewhere"}),
        ("gate.incomparable", lambda case: {**case, "samples": []}),
    ],
)
def test_gate_stays_shut_without_the_asked_comparison(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: str,
    damage: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    earlier = kept("20261101T000000Z-1")
    (case,) = (store.run_folder(earlier) / "cases").glob("*.json")
    case.write_text(json.dumps(damage(json.loads(case.read_text()))))
    monkeypatch.setattr(store, "new_run_id", lambda now: "20261102T000000Z-1")
    assert run_gate(monkeypatch, 100.0, "--before", earlier) == 2
    decided = json.loads((store.run_folder("20261102T000000Z-1") / "gate.json").read_text())
    told = [r for one in decided["evidence"] for r in one["reasons"] if r["code"] == code]
    assert told, decided["evidence"]
    assert "--before" in capsys.readouterr().out


def test_a_second_call_does_not_open_what_stayed_closed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    on_exclusive_nodes(monkeypatch)
    good = kept("20261101T000000Z-1")
    assert run_gate(monkeypatch, 50.0, "--copy-to", str(tmp_path / "kept")) == 1
    (first,) = (tmp_path / "kept").iterdir()
    assert json.loads((first / "gate.json").read_text())["status"] == 1
    # It must not be compared with itself: a name of a run has whole seconds.
    again = "20261102T000000Z-1"
    monkeypatch.setattr(store, "new_run_id", lambda now: again)
    assert last_run("local") == good
    assert run_gate(monkeypatch, 50.0) == 1
    monkeypatch.setattr(store, "new_run_id", lambda now: "20261103T000000Z-1")
    assert run_gate(monkeypatch, 50.0, "--before", again[:8]) == 0
    assert last_run("local") == "20261103T000000Z-1"
    assert run_gate(monkeypatch, 50.0, "--before", "never") == 2
    assert "no run and no file is named never" in capsys.readouterr().err


def test_run_after_a_closed_gate_is_no_standard() -> None:
    """Whoever looked at the slow machine by another command opened the next gate by that."""

    def gate_of(day: int, status: int, system: str = "local") -> None:
        where = store.run_folder(f"202611{day:02}T120000Z-1") / GATE
        store.write_json(where, {"system": system, "status": status})

    def standards() -> tuple[str | None, list[int]]:
        screenings = earlier_screenings("local", "node with intel-mpi", "node", "today")
        return last_run("local"), [when.day for _, when, _ in screenings]

    good, looked_at, later = (f"202611{when}0000Z-1" for when in ("01T00", "02T13", "03T13"))
    for run_id in (good, looked_at, later):
        keep_screening(kept(run_id))
    gate_of(2, 1, system="other")
    assert standards() == (later, [3, 2, 1])
    gate_of(2, 1)
    assert standards() == (later, [3, 1])
    shutil.rmtree(store.run_folder(later))
    assert standards() == (good, [1])
    # That nobody could judge it says nothing against the machine.
    gate_of(2, 2)
    assert standards() == (looked_at, [2, 1])
    gate_of(2, 1)
    for minute, status in ((10, 1), (30, 0)):
        decided = {"system": "local", "status": status}
        store.write_json(store.run_folder(f"20261102T12{minute}00Z-1") / GATE, decided)
    assert standards() == (looked_at, [2, 1])


def test_gate_stays_shut_where_references_did_not_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "HplCheck with mpich: local.yaml:8 is for maintenance+tuned=yes, but this ran"

    def benchmarks(wanted: Any, run_id: str, *rest: object) -> Run:
        partitions = sites.load(wanted.site).partitions
        keys = expected_cases(wanted.checks, partitions, MAINTENANCE)
        cases = tuple(map(judged, keys))
        return Run(run_id, "local", "maintenance", "", 1.0, cases, unjudged=(in_words(told),))

    assert run_gate(monkeypatch, 100.0, measured=benchmarks) == 2
    assert f"references: {told}" in because()


def test_what_is_behind_two_dashes_is_for_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def benchmarks(wanted: Any, run_id: str, *rest: object) -> Run:
        asked.append(wanted.options)
        return builders.run(run_id=run_id, mode="maintenance")

    assert run_gate(monkeypatch, 100.0, "--", "-S", "n=1000", measured=benchmarks) == 2
    assert asked == [("-S", "n=1000")]


@pytest.mark.parametrize("of_gate", [True, False])
def test_reframe_lists_the_checks_of_a_gate_once(
    monkeypatch: pytest.MonkeyPatch, of_gate: bool
) -> None:
    """A gate asked whether ReFrame takes its options before it screened."""

    class Foreseen(Exception):
        pass

    def foresee(*_: object) -> None:
        raise Foreseen

    asked: list[object] = []
    monkeypatch.setattr(prepare, "require_options", lambda *words: asked.append(words))
    monkeypatch.setattr(prepare, "foresee", foresee)
    site = Path(cli.__file__).parents[2] / "site_configs" / "local.py"
    request = Request(MAINTENANCE, site, options=("-S", "n=1000"), promises=of_gate)
    with pytest.raises(Foreseen):
        prepare.prepare(request, "r", datetime.datetime.now(datetime.timezone.utc), print)
    assert len(asked) == (not of_gate)


def test_a_gate_that_was_killed_is_nothing_to_compare_with() -> None:
    good = kept("20261101T000000Z-1")
    killed = kept("20261102T000000Z-1")
    for text in ('{"status": null}', "{", "[]"):
        (store.run_folder(killed) / "gate.json").write_text(text)
        assert last_run("local") == good
    (store.run_folder(killed) / "gate.json").write_text('{"status": 0}')
    assert last_run("local") == killed


@pytest.mark.parametrize(
    ("exclusive", "value", "asked", "verdicts"),
    [
        (True, 20.0, False, [Verdict.REGRESSION]),
        (True, 85.0, False, [Verdict.REGRESSION]),
        (True, 99.0, False, [Verdict.PASS]),
        (False, 20.0, False, [Verdict.INCONCLUSIVE, Verdict.PASS]),
        (False, 45.0, False, [Verdict.PASS]),
        (False, 99.0, True, [Verdict.PASS]),
    ],
)
def test_last_run_judges_on_exclusive_nodes_alone(
    monkeypatch: pytest.MonkeyPatch,
    exclusive: bool,
    value: float,
    asked: bool,
    verdicts: list[Verdict],
) -> None:
    """15 % of HPL's rate was lost since the last run, which passed as a matter of hours."""
    nodes = {"local:node": NodeFacts(exclusive=exclusive)}
    monkeypatch.setattr(sites, "nodes_of", lambda _: nodes)
    for run_id, rate in (("20261101T000000Z-1", 100.0), ("20261102T000000Z-1", value)):
        store.write_case(run_id, record(value=rate))
    told = evidence.compare_with("20261101T000000Z-1", "20261102T000000Z-1", asked=asked)
    assert [one.verdict for one in told] == verdicts
    assert any("figure not judged" in one.sentence for one in told) is not exclusive
    assert any("times worse" in one.sentence for one in told) is (not exclusive and value < 33)


def test_a_run_of_other_processors_is_no_run_to_compare_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--before` with a run that was copied here passed, as the machine of then was slower."""
    runs = ("20261101T000000Z-1", "20261102T000000Z-1")
    for run_id, processor in zip(runs, ("Xeon", "EPYC"), strict=True):
        details = {"processors": [processor]}
        store.write_case(run_id, dataclasses.replace(record(), details=details))
    for asked, verdict in ((True, Verdict.INCONCLUSIVE), (False, Verdict.PASS)):
        (found,) = evidence.compare_with(*runs, asked=asked)
        assert found.verdict is verdict
        assert found.sentence.startswith("A ran on Xeon, and B on EPYC")
    assert cli.main(["compare", *runs]) == 0
    assert (
        "A ran on Xeon, and B on EPYC: the difference is the machine's" in capsys.readouterr().out
    )


def test_what_fails_is_a_reason_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*args: object) -> Run:
        raise ClustergateError("the disk is full")

    assert run_gate(monkeypatch, value=100.0, measured=fails) == 2
    assert "\n ~ COULD NOT JUDGE: benchmarks: the disk is full\n" in capsys.readouterr().out


def test_a_small_budget_is_blamed_where_more_would_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_gate(monkeypatch, 100.0, "--budget", "1m") == 2
    assert "benchmarks: the budget is too small for any of them" in capsys.readouterr().out

    def without(requests: Sequence[StackRequest], **how: object) -> list[NotSetUp]:
        error = ClustergateError(MODULES_LATE(loading="module load x", limit_s=3.0))
        return [NotSetUp(one.stack, error) for one in requests]

    monkeypatch.setattr(evidence, "screen", screening.screen)
    monkeypatch.setattr(screening, "provide_each", without)
    assert cli.main(["gate", "--site", "local", "--budget", "1m"]) == 2
    said = capsys.readouterr().out
    assert "screening: intel-mpi could not be set up: `module load x` did not end" in said
    assert "its stack could not be set up; see what `clustergate doctor" in because()
    assert "the budget" not in said


def run_of(evidence: Sequence[Evidence], *cases: Case) -> Run:
    started = "2026-11-21T00:00:00+00:00"
    return Run("r1", "example", "maintenance", started, 60.0, cases, evidence=tuple(evidence))


def test_the_page_says_why_and_shows_hostile_text_as_text(tmp_path: Path) -> None:
    evidence = [
        Evidence("screening", Verdict.REGRESSION, (in_words("node <b>n1</b> is slow"),)),
        Evidence("benchmarks", Verdict.PASS, (in_words("fine"),)),
    ]
    first = first_screen(decide(evidence), "r1")
    page = render_gate(first, run_of(evidence), tmp_path, ["left out"])
    assert "STAY CLOSED" in page
    assert "node &lt;b&gt;n1&lt;/b&gt; is slow" in page
    assert "exit status 1" in page


def test_after_noise_more_time_is_next() -> None:
    noise = Evidence("screening", Verdict.INCONCLUSIVE, (SCREENING_DOUBT(sentence="n"),))
    assert "larger `--budget`" in first_screen(decide([noise]), "r1").next_steps[0]
    why = LEFT_OUT(cases="HplCheck", why="left out", remedy="`gate --budget 37m`")
    late = Evidence("what must be judged", Verdict.INCONCLUSIVE, (why,))
    specific, general = first_screen(decide([noise, late, noise]), "r1").next_steps
    assert "37m" in specific
    assert "larger `--budget`" in general


def test_each_reason_has_its_next_step() -> None:
    """Each reason has its next step and what is in doubt waits for a repair."""
    slow = Evidence("screening", Verdict.REGRESSION, (in_words("node n4"),))
    software = Evidence("software: mpich", Verdict.REGRESSION, (in_words("slower"),))
    noise = Evidence("screening", Verdict.INCONCLUSIVE, (SCREENING_DOUBT(sentence="n"),))
    steps = first_screen(decide([noise, slow, software, slow]), "r1").next_steps
    assert [step.partition(" ")[0] for step in steps] == ["drain", "`clustergate"]
    assert "golden-mpich" in steps[1]
    lines = first_screen(decide([slow, software]), "r1").lines()
    assert lines[-2:] == [f" Next  {steps[0]}", f"       {steps[1]}"]


def test_a_page_tells_a_command_as_code_and_heads_nothing_twice(tmp_path: Path) -> None:
    evidence = [
        Evidence("benchmarks", Verdict.INCONCLUSIVE, (in_words("make it with `clustergate ab`"),)),
        Evidence("what must be judged", Verdict.INCONCLUSIVE, (in_words("1 of 1 cases was not"),)),
    ]
    item = Requirement("HplCheck", "mpich", "HplCheck with mpich", "", "run `clustergate gate`")
    first = first_screen(decide(evidence), "r1")
    page = render_gate(first, run_of(evidence), tmp_path, items=[item])
    assert "`" not in page.partition("<main>")[2].partition("<script")[0]
    headings = re.findall("<h2>(.*?)</h2>", page)
    assert len(set(headings)) == len(headings)


def worse_since(run: str) -> Reason:
    """Return that all nodes are slower than in a run, which need not be the previous one."""
    return Reason("", {"sentence": "slow", "run": run})


@pytest.mark.parametrize(
    ("evidence", "step"),
    [
        (
            Evidence("benchmarks", Verdict.PASS, (in_words("fine"),)),
            "delete the reservation, or resume",
        ),
        (Evidence("screening", Verdict.REGRESSION, (in_words("n4"),)), "drain and exclude"),
        (
            Evidence("screening against the last one", Verdict.REGRESSION, (worse_since("r0"),)),
            "`clustergate machine --diff r0 r2` shows",
        ),
        (
            # It said to drain what is slow, and no node is slower than the others.
            Evidence("screening against earlier days", Verdict.REGRESSION, (worse_since("r1"),)),
            "`clustergate machine --diff r1 r2` shows",
        ),
        (
            Evidence("software: mpich", Verdict.REGRESSION, (in_words("slow"),)),
            "`clustergate ab --stored r2/golden-mpich`",
        ),
        (
            Evidence("against the run r1", Verdict.REGRESSION, (in_words("slow"),)),
            "`clustergate compare r1 r2`",
        ),
        (
            Evidence("screening", Verdict.INVALID, (NOT_ENDED(),)),
            "`clustergate gate` screens again",
        ),
        (
            Evidence("benchmarks", Verdict.INVALID, (in_words("full"),)),
            "`clustergate gate` judges",
        ),
    ],
)
def test_the_first_cause_tells_the_next_command(evidence: Evidence, step: str) -> None:
    first = first_screen(decide([evidence]), "r2")
    (told,) = first.next_steps
    assert told.startswith(step)
    assert first.lines()[-1] == f" Next  {told}"


def test_a_slower_benchmark_leads_to_its_history() -> None:
    cases = [judged(CaseId("HplCheck", "local:node", "mpich"), Verdict.REGRESSION)]
    (told,) = first_screen(decide(benchmark_evidence(cases)), "r2", cases).next_steps
    assert told.startswith("`clustergate history --check HplCheck --stack mpich`")


def test_screening_status_from_findings_doubts_and_end() -> None:
    log, found = screened()
    assert wording.exit_status(log, found) == 0
    assert wording.exit_status(Log(NAMES, log.results, ended=False), found) == 2
    alone = analyse(NAMES[:2], [result for result in log.results if result.nodes[0] in NAMES[:2]])
    assert wording.exit_status(log, alone) == 2
    assert wording.word_for(2, alone) == "NOTHING TO COMPARE"
    slow = tuple(
        Result((name,), "hpl", k, {"hpl_gflops": 50.0 if name == "n1" else 100.0})
        for k in range(9)
        for name in NAMES
    )
    accused = analyse(NAMES, slow)
    assert wording.exit_status(log, accused) == 1
    of = (Path("/runs/x/screening"), "alpha", "slurm")
    lines = render_first(log, accused, *of, width=100).splitlines()
    assert lines[1] == "clustergate screen   alpha   run x"
    assert lines[2].startswith(" ✗ FAULTS FOUND: node n1 (confidence above 99.99 %): HPL 2")
    assert lines[3].startswith("   4 nodes alone, ")
    assert lines[-2:] == [
        " Page  `clustergate open x`",
        "clustergate screen: exit status 1: faults found",
    ]
    assert any(line.startswith("scontrol update NodeName=n1 State=DRAIN") for line in lines)
    assert any(line.startswith("exclude n1 ") for line in lines)
    assert len(lines) <= 21
    # On a terminal, too, and with whatever else is to be said.
    noted = Log(NAMES, log.results, ended=True, notes=("word " * 30,) * 40)
    others = [
        "only gpu is screened: others, such as cpu, have nodes of their own, which take no part"
    ]
    for width in (80, 100):
        told = render_first(noted, accused, *of, others, width=width, wraps=True).splitlines()
        assert max(len(line) for line in told if " State=DRAIN " not in line) <= width
        assert len(told) + sum(len(line) > width for line in told) <= 21
        assert told[-2:] == lines[-2:]
    unfinished = Log(NAMES, log.results, ended=False)
    told = render_first(unfinished, found, *of, width=100).splitlines()
    assert " Next  `clustergate screen --resume x` finishes it" in told


def test_a_screening_is_resumed_with_what_it_was_called_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It went on for 20 minutes, and then named neither its site nor its budget."""
    run_id = "20261101T000000Z-r1"
    keep_screening(run_id, ended=False)
    asked = ScreenRequest(seconds=90.0, hpl_seconds=10.0)
    called = (("screen",), ("--site", "local"), ("--budget", "90s"), ("--hpl", "10s"))
    site = choice.choose("local").path
    options = ("-x", "--job-option=qos=short")
    kept = screening.ScreenCall(site, asked, None, options, "n4", called)
    keep_made(run_id, "screen", "local", **encode(kept))
    given: list[object] = []
    seen: list[tuple[str, str]] = []

    def screen(*what: object) -> tuple[Log, Screening]:
        given.extend(what)
        # What fails here is reported by the command, and does not fail the test.
        seen.append((os.environ[exclusions.WITHOUT_NODES], os.environ["CLUSTERGATE_QOS"]))
        return screened()

    monkeypatch.setenv(exclusions.WITHOUT_NODES, "")
    monkeypatch.setenv("CLUSTERGATE_QOS", "")
    monkeypatch.setattr(cli_screen, "screen", screen)
    cli.main(["screen", "--resume", run_id])
    assert seen == [("n4", "short")]
    assert [*given[:4], given[5]] == [site, run_id, asked, None, tuple(options)]
    assert given[6] == called
    # As a command that was told before, or typed from memory.
    cli.main(["screen", "--resume", run_id, "--site", "local", "--budget", "90s"])
    assert given[9] == asked
    capsys.readouterr()
    assert cli.main(["screen", "--resume", run_id, "--budget", "20m"]) == 2
    assert "--resume keeps the options of the run" in capsys.readouterr().err
    assert cli.main(["check", "--resume", run_id]) == 2
    assert f"`clustergate screen --resume {run_id}` does" in capsys.readouterr().err


def test_empty_screening_names_nodes_slurm_does_not_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A screening that measured nothing names the nodes that Slurm does not use."""
    run_id = "20261101T000000Z-r1"
    where = store.run_folder(run_id) / "screening"
    store.make_folder(where)
    write_plan(where, Plan(run_id, [], Budget(), 1, system="local", nodes=NAMES))
    provided = [SimpleNamespace(programs={})]
    monkeypatch.setattr(screening, "provide_each", lambda *rest, **how: provided)
    monkeypatch.setattr(screening, "state_here", lambda stacks: {})
    monkeypatch.setattr(screening, "measure", lambda *rest, **how: [])
    notes = ["Slurm does not use n[1-4]: down"]
    monkeypatch.setattr(Local, "unused_notes", lambda scheduler: notes, raising=True)
    site = choice.choose("local").path
    with pytest.raises(ClustergateError, match=r"it; Slurm does not use n.1-4.: down; ReFrame's "):
        screening.screen(site, run_id, ScreenRequest(), None, lambda sentence: None)


def test_a_screening_that_is_not_there_cannot_be_resumed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["screen", "--site", "local", "--resume", "nonsense"]) == 2
    assert "no screening nonsense" in capsys.readouterr().err
    assert cli.main(["screen", "--site", "local", "--rounds", "-1"]) == 2
