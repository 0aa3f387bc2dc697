"""Reasons as data: every code has its words, every fact that these write is given."""

import ast
import dataclasses
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustergate.cli import main
from clustergate.model import (
    Better,
    Case,
    CaseState,
    Estimate,
    Figure,
    Judgement,
    OutputError,
    Reference,
    Run,
    Verdict,
)
from clustergate.report.verdicts import as_json
from clustergate.sites.modes import UnknownMode
from clustergate.verdicts.judging import judge
from clustergate.wording.catalog import CATALOG, TOPICS
from clustergate.wording.reasons import Reason, facts_of, from_plain, in_words, plain, reason
from tools.reasons import error_classes, page

ROOT = Path(__file__).parent.parent
FOLDERS = ("clustergate", "evaluations", "reframe_checks", "tools")
SOURCES = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
# Errors of which a sentence is made of facts.
ERRORS = {cls.__name__: code for code, cls in error_classes().items()}


def given() -> Iterator[tuple[str, str, set[str] | None]]:
    """Yield where a reason is made, its code, and its facts' names where all of them are seen."""
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            if node.func.id in ERRORS and node.keywords and not node.args:
                yield where, ERRORS[node.func.id], {str(word.arg) for word in node.keywords}
            code = node.args[0] if node.args else None
            if node.func.id == "reason" and isinstance(code, ast.Constant):
                names = {word.arg for word in node.keywords if word.arg}
                whole = len(names) == len(node.keywords)
                yield where, str(code.value), names if whole else None


def test_every_reason_that_is_made_has_words_and_all_the_facts_that_they_write() -> None:
    wrong = []
    for where, code, names in given():
        if code not in CATALOG:
            wrong.append(f"{where}: {code} is not in the catalog")
        elif names is not None and (lacking := facts_of("".join(CATALOG[code])) - names):
            wrong.append(f"{where}: {code} lacks {sorted(lacking)}")
    assert wrong == []


def test_every_code_of_the_catalog_stands_somewhere_in_the_suite() -> None:
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in SOURCES if "catalog" not in path.parts
    )
    # Those that are made of two parts.
    made = set(re.findall(r'f"([a-z]+\.[a-z-]*)\{', text))
    unused = [
        code
        for code in CATALOG
        if not code.startswith("error.")
        and f'"{code}"' not in text
        and not any(code.startswith(start) for start in made)
    ]
    assert unused == []


def test_every_error_has_a_code_of_the_catalog_and_every_code_an_error() -> None:
    listed = {code for code in CATALOG if code.startswith("error.")}
    what = "list it in wording/catalog/errors.py, then python -m tools.reasons > docs/reasons.md"
    assert set(error_classes()) == listed, what


def test_an_error_is_a_reason_in_a_sentence_of_its_own() -> None:
    error = OutputError("this line is cut off", line=7, source="imb.out")
    assert str(error) == "imb.out:7: this line is cut off"
    assert plain(error.reason) == {
        "code": "error.output",
        "facts": {"sentence": str(error), "source": "imb.out", "line": 7},
        "sentence": str(error),
    }


def test_an_error_is_made_of_facts_by_the_code_of_its_class() -> None:
    error = UnknownMode(mode="fast", known=["smoke", "maintenance"])
    assert str(error) == "there is no mode 'fast'; the modes are smoke, maintenance"
    assert error.reason.facts["mode"] == "fast"


def test_a_command_that_prints_json_tells_an_error_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    assert main(["history", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["error"]
    assert (told["code"], told["facts"]["folder"][:1]) == ("error.history", "/")


def test_the_page_of_reasons_is_that_of_the_catalog() -> None:
    """`python -m tools.reasons > docs/reasons.md` makes it."""
    assert (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8") == page()


def test_what_is_said_of_some_launches_names_them() -> None:
    told = reason("proof.started-twice", ranks=[0, 1, 2, 5]).of_launches([0, 1, 3], 5)
    assert str(told).startswith("launches 0-1, 3 of 5: ranks 0-2, 5 left more than one record: ")
    assert str(from_plain(plain(told))) == str(told)


def test_no_code_stands_in_two_topics() -> None:
    codes = [code for topic in TOPICS.values() for code in topic]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*", code) for code in codes)


def test_a_reason_becomes_its_words_with_cause_and_remedy() -> None:
    told = reason("reference.wrong-unit", unit="us", reference_unit="ms", origin="5 runs")
    assert str(told) == (
        "the figure is in 'us' and its reference in 'ms' (5 runs); correct the reference"
    )


@pytest.mark.parametrize(
    "one",
    [
        in_words("as it was told before"),
        reason("change.detectable", change=0.1, launches=1),
        Reason("of.another-version", {"sentence": "its own words", "rank": 3}),
    ],
)
def test_a_reason_comes_back_from_json_as_it_was(one: Reason) -> None:
    assert from_plain(json.loads(json.dumps(plain(one)))) == one


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
        judgement=Judgement(Verdict.INVALID, (reason("figure.no-number", value="nan"),)),
    )
    case = Case("ImbMpi1Check", "mpich", CaseState.RAN, figures=(slow, nothing))
    told = as_json(Run("r", "alpha", "smoke", "2026-11-22T18:00:00+00:00", 1.0, (case,)))
    first, second = json.loads(json.dumps(told, allow_nan=False))["cases"][0]["figures"]
    assert (first["verdict"], first["value"], second["value"]) == ("regression", 120.0, None)
    of_verdict = first["reasons"][0]
    assert of_verdict["code"] == "figure.regression"
    assert of_verdict["facts"]["reference"] == 100.0
    assert of_verdict["sentence"].startswith("120.0 us, 20.0 % above the reference 100.0 (5 runs)")
