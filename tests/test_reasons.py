"""Reasons as data: every code has its words, every fact that these write is given."""

import ast
import dataclasses
import fnmatch
import importlib
import json
import math
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clustergate
import evaluations
from clustergate.cli import main
from clustergate.core.model import (
    Better,
    Case,
    CaseState,
    ClustergateError,
    Estimate,
    Figure,
    Judgement,
    OutputError,
    Reference,
    Run,
    Verdict,
)
from clustergate.core.reasons import (
    Reason,
    in_words,
    reason_as_json,
    reason_from_json,
    registry,
)
from clustergate.core.words import FILE_UNREADABLE, INPUT_UNKNOWN_NAME
from clustergate.judge.coverage import OTHER_EFFORT
from clustergate.judge.judging import NO_NUMBER, WRONG_UNIT, judge
from clustergate.judge.rules import CHANGE_SLOWER
from clustergate.launch.plan import OTHER_VERSION
from clustergate.launch.proof.ranks import STARTED_TWICE
from clustergate.report.verdicts import as_json
from tools import reasons as reasons_page
from tools.reasons import GENERAL, TOPICS, page, readable

ROOT = Path(__file__).parent.parent
FOLDERS = ("clustergate", "evaluations", "reframe_checks", "tools")


def errors(cls: type[ClustergateError] = ClustergateError) -> set[str]:
    """Return the names of the classes of errors of the installed packages."""
    return {cls.__name__}.union(*map(errors, cls.__subclasses__()))


CODE = re.compile(r"[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*")

# What is argparse's, for those who work on the suite, or of an added package.
OWN_WORDS = ("clustergate/cli/passing_on.py", "evaluations/", "tools/")
# Methods that make an error of a line, of a text or of a file.
MADE_BY = ("error", "wrong", "_error", "_about")


def test_no_error_of_the_suite_is_told_in_a_sentence_of_its_own() -> None:
    for package in (clustergate, evaluations):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    known = {*errors(), *MADE_BY}
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    calls = [
        (str(path.relative_to(ROOT)), node)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]
    sentences = [
        f"{path}:{node.lineno}"
        for path, node in calls
        if not path.startswith(OWN_WORDS)
        and str(getattr(node.func, "id", getattr(node.func, "attr", ""))) in known
        and node.args
        and isinstance(node.args[0], ast.JoinedStr | ast.Constant)
    ]
    assert sentences == []


def test_the_type_checker_knows_each_fact(tmp_path: Path) -> None:
    missing_of = {
        "EMPTY()": 'Missing named argument "path"',
        "EMPTY(path=1, ranks=2)": 'Argument "ranks" to "__call__" of "Words"',
        "EMPTY(path=1, ranks=[2, 3])": "",
        "(EMPTY if path else FULL)(path=path, ranks=[])": "",
    }
    module = tmp_path / "says.py"
    head = [
        "from clustergate.core.reasons import Words",
        "EMPTY = Words('x.empty', '{ranks:ranks} in {path}')",
        "FULL = Words('x.full', '{path}', remedy='see {ranks:ranks}')",
        "path = '/tmp'",
    ]
    module.write_text("\n".join([*head, *missing_of, ""]))
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(module)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    for number, missing in enumerate(missing_of.values(), start=len(head) + 1):
        at = f"says.py:{number}: error: "
        messages = [line for line in ended.stdout.splitlines() if at in line]
        assert bool(messages) is bool(missing), ended.stdout
        assert missing in "\n".join(messages)


def test_an_error_of_an_added_package_has_a_sentence_of_its_own() -> None:
    told = ClustergateError("the licence server is down; start it")
    assert reason_as_json(told.reason) == {
        "code": "error.other",
        "facts": {"sentence": str(told)},
        "sentence": "the licence server is down; start it",
    }


def test_what_is_wrong_in_an_output_is_a_reason_with_its_line() -> None:
    error = OutputError("this line is cut off", line=7, source="imb.out")
    assert str(error) == "imb.out:7: this line is cut off"
    assert reason_as_json(error.reason) == {
        "code": "output.wrong",
        "facts": {
            "at": "imb.out:7",
            "source": "imb.out",
            "line": 7,
            "problem": "this line is cut off",
        },
        "sentence": str(error),
    }


def test_an_error_is_made_of_a_code_and_facts() -> None:
    known = ["smoke", "maintenance"]
    error = ClustergateError(INPUT_UNKNOWN_NAME(kind="mode", name="fast", known=known))
    assert str(error) == "unknown mode 'fast'; known: smoke, maintenance"
    assert error.reason.facts["name"] == "fast"
    assert str(error.at("gate.py:7")) == f"gate.py:7: {error}"


def test_an_exception_among_the_facts_tells_why(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as absent:
        tmp_path.joinpath("absent").read_text(encoding="utf-8")
    told = FILE_UNREADABLE(path=tmp_path / "absent", why=absent.value)
    assert str(told) == f"{tmp_path}/absent cannot be read: No such file or directory"
    lost = OTHER_VERSION(path=tmp_path, why=KeyError("budget"))
    assert lost.facts["why"] == "KeyError: 'budget'"


def test_a_command_that_prints_json_tells_an_error_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    assert main(["history", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["error"]
    assert (told["code"], told["facts"]["folder"][:1]) == ("run.none", "/")


def test_the_page_of_reasons_is_that_of_the_words() -> None:
    """`python -m tools.reasons > docs/reasons.md` makes it."""
    assert (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{nodes:node|nodes} {nodes:~is|are} left", r"\<nodes> nodes are left"),
        ("{unit!r} of {ratio:compared}, {lost_cores:.2f}{cores:of}",
         r"'\<unit>' of \<ratio> % above or below, \<lost_cores> of \<cores>"),
        ("run `check {name}` on {host}", r"run `check <name>` on \<host>"),
        ('{{"{key}": …}}', r'{"\<key>": …}'),
    ],
)  # fmt: skip
def test_the_page_of_reasons_names_facts_instead_of_their_format(template: str, shown: str) -> None:
    assert readable(template) == shown


def test_each_reason_on_its_page_has_a_cause_and_a_remedy() -> None:
    rows = [row for row in page().splitlines() if row.startswith("| `")]
    assert len(rows) == len(registry())
    for row in rows:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        assert len(cells) == 4
        assert all(cells), row
    silent = [code for code, words in registry().items() if not words.remedy]
    held = {next(one for one in GENERAL if fnmatch.fnmatchcase(code, one)) for code in silent}
    assert held == set(GENERAL)


def test_no_sentence_has_more_than_25_words() -> None:
    """A fact counts as a word, whatever it is."""
    lines = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("|").split(" | ")[1:] for line in lines if line.startswith("| `")]
    cells = [re.sub(r"\\<.*?>", "X", cell) for row in rows for cell in row]
    assert len(cells) > 1500
    assert [cell for cell in cells if len(cell.split()) > 25] == []


def test_what_is_said_of_some_launches_names_them() -> None:
    told = STARTED_TWICE(ranks=[0, 1, 2, 5]).of_launches([0, 1, 3], 5)
    assert str(told).startswith("launches 0-1, 3 of 5: ranks 0-2, 5 left more than one record: ")
    assert str(reason_from_json(reason_as_json(told))) == str(told)


def test_no_code_stands_in_two_topics() -> None:
    topics = " ".join(TOPICS.values()).split()
    assert len(topics) == len(set(topics))
    assert all(map(CODE.fullmatch, registry()))


def test_code_of_unknown_topic_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasons_page, "TOPICS", {"All but jobs": "launch node"})
    with pytest.raises(ValueError, match=r"add the topic of .*job\.crashed.* to TOPICS"):
        page()


def test_a_reason_becomes_its_words_with_cause_and_remedy() -> None:
    told = WRONG_UNIT(unit="us", reference_unit="ms", origin="5 runs")
    assert str(told) == (
        "the figure is in 'us' and its reference in 'ms' (5 runs); correct the reference"
    )


@pytest.mark.parametrize(
    "one",
    [
        in_words("as it was told before"),
        CHANGE_SLOWER(by=0.1, usual=0.02),
        Reason("of.another-version", {"sentence": "its own words", "rank": 3}),
    ],
)
def test_a_reason_comes_back_from_json_as_it_was(one: Reason) -> None:
    assert reason_from_json(json.loads(json.dumps(reason_as_json(one)))) == one


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        # As it was stored before its sentence named the library.
        ("proof.other-version", {"ranks": [0, 1], "hosts": ["vm"], "version": "Intel MPI"}),
        ("proof.other-version", {"ranks": 7, "hosts": ["vm"], "version": "", "library": ""}),
        ("a.code-of-later", {"at": "HplCheck"}),
    ],
)
def test_stored_reason_of_another_version_keeps_its_sentence(
    code: str, facts: dict[str, Any]
) -> None:
    stored = {"code": code, "facts": facts, "sentence": "ranks 0-1 on {vm} ran Intel MPI"}
    read = reason_from_json(stored)
    assert (read.code, str(read), read.remedy) == (code, stored["sentence"], "")
    assert reason_from_json(json.loads(json.dumps(reason_as_json(read)))) == read
    assert str(read.at("HplCheck")) == f"HplCheck: {stored['sentence']}"


def test_a_sentence_with_braces_stays_as_it_is() -> None:
    assert str(in_words("{value} of {}")) == "{value} of {}"


def test_the_verdicts_of_a_run_are_data() -> None:
    estimate = Estimate(120.0, 119.0, 121.0, 0.99, 5)
    expected = Reference(100.0, None, 0.1, "us", "5 runs")
    slow = Figure(
        *("PingPong", "latency_us", "us", Better.LOWER, {"bytes": 8}, estimate),
        judge(estimate, Better.LOWER, "us", expected),
    )
    nothing = dataclasses.replace(
        slow,
        estimate=dataclasses.replace(estimate, value=math.nan),
        judgement=Judgement(Verdict.INVALID, (NO_NUMBER(value="nan"),)),
    )
    case = Case("ImbMpi1Check", "mpich", CaseState.RAN, figures=(slow, nothing))
    dead = OTHER_EFFORT(where="alpha.yaml:8", foreseen="full", ran="smoke")
    run = Run("r", "alpha", "smoke", "2026-11-22T18:00:00+00:00", 1.0, (case,), unjudged=(dead,))
    told = as_json(run)
    assert [one["code"] for one in told["unjudged"]] == ["coverage.other-effort"]
    first, second = json.loads(json.dumps(told, allow_nan=False))["cases"][0]["figures"]
    assert (first["verdict"], first["value"], second["value"]) == ("regression", 120.0, None)
    of_verdict = first["reasons"][0]
    assert of_verdict["code"] == "figure.regression"
    assert of_verdict["facts"]["reference"] == 100.0
    assert of_verdict["sentence"].startswith("120.0 us, 20.0 % above the reference 100.0 (5 runs)")
