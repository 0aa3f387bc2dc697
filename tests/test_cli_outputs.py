"""What commands print for scripts, held to the published schema, and for terminals of any kind."""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from clustergate import cli
from clustergate.core import store
from clustergate.core.model import CaseState, Group, Run
from clustergate.core.model import Verdict as V
from clustergate.judge.history import listing
from clustergate.judge.history.node_states import keep_states
from clustergate.launch.disturbance import NODE_SHARED
from clustergate.launch.plan import write_plan
from clustergate.report.terminal import render
from clustergate.report.verdicts import as_json
from clustergate.studies.screen.driver import carry_out
from tests.builders import case, estimate, figure, run
from tests.test_ab import CROSSING, records
from tests.test_screening_driver import PEAKS, plan_of, script

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((Path(cli.__file__).parent / "outputs.schema.json").read_text())
RUN = "20261122T212341Z-r1"
Print = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a real run, whose verdicts are made here."""
    home = tmp_path / "home"
    shutil.copytree(ROOT / "tests" / "data" / "home", home)
    monkeypatch.setenv("CLUSTERGATE_HOME", str(home))
    said = tmp_path / "said"
    said.mkdir()
    for node, release in (("n1", "6.1"), ("n2", "6.1")):
        (said / node).write_text(f"kernel.release\t{release}\n")
    keep_states(said, store.run_folder(RUN))
    store.write_json(store.run_folder(RUN) / listing.VERDICTS, as_json(judged_run()))
    return home


def judged_run() -> Run:
    slow: dict[str, Any] = {"verdict": V.REGRESSION, "sentence": "slower"}
    busy = NODE_SHARED(lost_cores=0.5, cores=2, host="vm")
    of: dict[str, Any] = {
        "estimate": estimate(90.0, 89.0, 91.0),
        "conditions": {"n": 1000},
        "doubt": busy,
    }
    rate = figure("HPL", "performance_gflops", 90.0, **slow, **of)
    groups = (Group("PingPong", 14, 0.12, 0.05, rate.judgement),)
    ran = case(figures=(rate, figure(value=None, **slow)), groups=groups)
    lost = case("HpccCheck", state=CaseState.MISSING, reason="it should have run")
    return run(ran, lost, run_id=RUN, duration_s=9.0)


def samples(path: Path, factor: float) -> Path:
    rows = [f"latency_us,8,{factor * (1 + k / 1000)}" for k in range(20)]
    path.write_text("\n".join(["metric,bytes,value", *rows, ""]))
    return path


FOR_SCRIPTS = [
    *((f"list {what}", "list") for what in ("runs", "stacks", "systems", "modes", "checks")),
    ("show last", "show"),
    ("show nothing", "error"),
    ("compare a.csv b.csv", "compare"),
    ("compare previous last", "error"),
    (f"compare last {RUN}", "error"),
    ("compare a.csv nothing", "error"),
    ("history", "history"),
    ("history --stack nothing", "error"),
    ("machine", "machine"),
    ("machine --diff last now", "machine_diff"),
    ("fleet", "fleet"),
    ("fleet nothing", "error"),
    ("node --state", "node"),
    ("machine --diff previous now", "error"),
    ("prune", "prune"),
    ("doctor --site local", "doctor"),
    ("doctor --site nowhere", "doctor"),
    ("golden list", "golden"),
    ("golden verify nothing", "verified"),
    ("baseline --site local --dry-run", "baseline"),
    ("baseline --site local --stack nothing", "error"),
    ("evaluation report 001 last", "evaluation"),
    ("evaluation report 001 nothing", "error"),
    ("ab --stored last", "compare"),
    ("ab --stored nothing", "error"),
    ("check --stack nothing", "error"),
    ("judge --reframe nothing", "error"),
    ("gate --budget 5", "error"),
    ("screen --budget 5", "error"),
]


@pytest.mark.parametrize(("words", "of"), FOR_SCRIPTS)
def test_what_scripts_read_is_as_the_schema_says(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    of: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    samples(tmp_path / "a.csv", 1.0)
    samples(tmp_path / "b.csv", 1.2)
    if words.startswith("ab "):
        for record in records(CROSSING):
            store.write_case("20271122T120000Z-1", record)
    failed = cli.main([*words.split(), "--json"])
    # The node that the run's cases name did not say what it is like.
    fails = (
        of in ("error", "verified", "baseline", "fleet", "machine_diff", "node")
        or words == "doctor --site nowhere"
    )
    assert bool(failed) == fails
    told = capsys.readouterr().out
    found = [json.loads(line) for line in told.splitlines()] if of in ("compare", "history") else []
    found = found or [json.loads(told)]
    assert found[0]
    held_to = Draft202012Validator({"$ref": f"#/$defs/{of}", "$defs": SCHEMA["$defs"]})
    assert [error.message for one in found for error in held_to.iter_errors(one)] == []


def test_run_ends_with_verdicts_and_summary(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run ends with its verdicts for a script and a summary for a person."""

    def run_and_tell(request: object, run_id: str, *_: object) -> int:
        store.write_json(store.run_folder(run_id) / listing.VERDICTS, as_json(judged_run()))
        print("REGRESSION: local")
        return 1

    monkeypatch.setattr("clustergate.cli.check.run_and_tell", run_and_tell)
    assert cli.main(["check", "--site", "local", "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out) == as_json(judged_run())
    assert "REGRESSION: local" in said.err
    assert cli.main(["check", "--site", "local"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "REGRESSION: local"


def test_the_decision_of_a_gate_is_shown_with_its_run(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decision = {"status": 2, "word": "COULD NOT JUDGE", "evidence": [], "must_be_judged": []}
    store.write_json(store.run_folder(RUN) / listing.GATE, decision)
    assert cli.main(["show", "last", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["gate"] == decision
    assert shown["cases"]
    assert Draft202012Validator(SCHEMA).is_valid(shown)
    shown["gate"]["status"] = 3
    assert not Draft202012Validator(SCHEMA).is_valid(shown)


def test_a_comparison_and_a_screening_are_shown_as_the_schema_says(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compared, screened = "20271122T120000Z-1", "20271122T130000Z-1"
    for record in records(CROSSING):
        store.write_case(compared, record)
    assert cli.main(["ab", "--stored", compared]) == 0
    folder = store.run_folder(screened) / "screening"
    folder.mkdir(parents=True)
    plan = plan_of([script("exit 1")])
    write_plan(folder, plan)
    carry_out(plan, folder)
    capsys.readouterr()
    for run_id, has in ((compared, "paragraph"), (screened, "evidence")):
        assert cli.main(["show", run_id, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown[has]
        assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(shown)] == []


def test_a_screening_of_too_few_nodes_is_no_pass_for_a_script(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = store.run_folder("20271122T130000Z-1") / "screening"
    folder.mkdir(parents=True)
    plan = plan_of([script(f"uname -n; cat {PEAKS}")])
    write_plan(folder, plan)
    carry_out(plan, folder)
    capsys.readouterr()
    assert cli.main(["show", folder.parent.name, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["exit_status"] == 2
    assert [one["verdict"] for one in shown["evidence"]] == ["inconclusive"]
    assert shown["evidence"][0]["reasons"][0]["code"] == "screening.too-few"


def options_of(parser: argparse.ArgumentParser, words: str = "") -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        yield from ((words, option) for option in action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                yield from options_of(one, f"{words} {name}".strip())


def test_every_command_that_prints_json_is_held_to_the_schema() -> None:
    printing = {words for words, option in options_of(cli.build_parser()) if option == "--json"}
    held = {words for words, _ in FOR_SCRIPTS}
    assert {one for one in printing if not any(words.startswith(one) for words in held)} == set()


def test_the_schema_is_one_and_refuses_what_it_does_not_know() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["$defs"]) >= {one["$ref"].rpartition("/")[2] for one in SCHEMA["anyOf"]}
    whole = Draft202012Validator(SCHEMA)
    document = as_json(judged_run())
    assert whole.is_valid(document)
    assert not whole.is_valid({**document, "further": 1})
    assert not whole.is_valid([{"mode": "smoke"}])


TERMINALS = [
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "utf-8"},
]


@pytest.mark.parametrize("terminal", TERMINALS, ids=["C", "latin-1", "utf-8"])
@pytest.mark.parametrize("words", ["list runs", "list checks", "compare a.csv b.csv --all"])
def test_tables_are_legible_on_every_terminal(
    home: Path, tmp_path: Path, terminal: dict[str, str], words: str
) -> None:
    samples(tmp_path / "a.csv", 1.0)
    samples(tmp_path / "b.csv", 1.2)
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHON"))}
    ended = subprocess.run(
        [sys.executable, "-m", "clustergate", *words.split()],
        cwd=tmp_path,
        env={**plain, "COLUMNS": "70", "NO_COLOR": "1", **terminal},
        capture_output=True,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    told = ended.stdout.decode(terminal.get("PYTHONIOENCODING", "ascii"))
    assert "?" not in told
    assert "\x1b" not in told
    # A sentence stays on one line in a pipe; what is a table's fits.
    table = [line for line in told.splitlines() if "  " in line.strip()]
    assert table
    assert max(map(len, table)) <= 72


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_summary_is_legible_in_every_encoding(encoding: str) -> None:
    told = render(judged_run(), width=70)
    assert "?" not in told
    assert b"?" not in told.encode(encoding, "clustergate-legible")
