from xml.etree import ElementTree

import pytest

from clustergate.cli import main
from clustergate.core.model import (
    CaseState,
    Evidence,
    Verdict,
)
from clustergate.core.reasons import in_words
from clustergate.judge.judging import WRONG_UNIT
from clustergate.launch.disturbance import NODE_SHARED
from clustergate.report.junit import render_junit
from clustergate.report.summary import status_of
from clustergate.report.verdicts import as_json
from tests import builders
from tests.builders import run

# Attributes and order of children as in the schemas of Jenkins' xUnit plugin and of Ant.
ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "testsuite": {
        "name",
        "hostname",
        "timestamp",
        "tests",
        "failures",
        "errors",
        "skipped",
        "time",
    },
    "testcase": {"classname", "name", "time"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"message"},
    "system-out": set(),
}
CHILDREN = {
    "testsuites": [["testsuite"]],
    "testsuite": [["testcase"]],
    "testcase": [["failure", "error", "skipped"], ["system-out"]],
}


def figure(verdict=Verdict.PASS, sentence="as expected", **changes):
    return builders.figure(verdict=verdict, sentence=sentence, **changes)


def case(check="ImbMpi1Check", **changes):
    fields = {"conditions": {"ranks": 2, "placement": "packed"}, "duration_s": 12.5}
    return builders.case(check, **{**fields, **changes})


def checked(element):
    """Return an element after it was compared with the schema, with everything in it."""
    assert set(element.attrib) == ATTRIBUTES[element.tag]
    places = [
        [place for place, tags in enumerate(CHILDREN.get(element.tag, [])) if child.tag in tags]
        for child in element
    ]
    assert all(len(place) == 1 for place in places)
    assert places == sorted(places)
    for child in element:
        checked(child)
    return element


def rendered(*cases, **changes):
    root = checked(ElementTree.fromstring(render_junit(run(*cases, **changes)).encode()))
    for parent in (root, *root.iter("testsuite")):
        tests = list(parent.iter("testcase"))
        assert parent.get("tests") == str(len(tests))
        for tag in ("failure", "error", "skipped"):
            count = parent.get({"failure": "failures", "error": "errors"}.get(tag, tag))
            if count is not None:
                assert count == str(sum(len(test.findall(tag)) for test in tests))
        names = [(test.get("classname"), test.get("name")) for test in tests]
        if parent is not root:
            assert len(names) == len(set(names))
    return root


def test_a_suite_for_each_stack_and_a_test_for_each_case():
    root = rendered(case(figures=(figure(),)), case("HplCheck"), case(stack="openmpi"))
    assert [suite.get("name") for suite in root] == ["mpich", "openmpi"]
    suite = root[0]
    assert suite.get("timestamp") == "2026-11-21T06:50:03"
    assert suite.get("time") == "25.000"
    test = suite[0]
    assert test.attrib == {"classname": "ImbMpi1Check", "name": "2 ranks, packed", "time": "12.500"}


def test_figures_notes_and_command_are_the_output():
    absent = figure(Verdict.INVALID, "give it more memory", value=None, metric="")
    (test,) = rendered(
        case(figures=(figure(), absent), notes=("a note",), command="mpirun -n 2 IMB-MPI1")
    ).iter("testcase")
    assert test.findtext("system-out").splitlines() == [
        "PingPong 8 bytes latency_us = 1.500 us: pass: as expected",
        "PingPong 8 bytes: invalid: give it more memory",
        "a note",
        "by hand: mpirun -n 2 IMB-MPI1",
    ]


def test_a_regression_is_a_failure_with_its_sentence():
    slow = figure(Verdict.REGRESSION, "1.5 us, 50 % above the reference")
    (test,) = rendered(case(figures=(figure(), slow))).iter("testcase")
    failure = test.find("failure")
    assert failure.get("type") == "regression"
    assert failure.get("message") == "PingPong 8 bytes latency_us: 1.5 us, 50 % above the reference"


@pytest.mark.parametrize("verdict", [Verdict.INVALID, Verdict.IMPOSSIBLE])
def test_what_cannot_be_is_an_error(verdict):
    (test,) = rendered(case(figures=(figure(verdict, "no"),))).iter("testcase")
    assert test.find("error").get("type") == verdict.value


@pytest.mark.parametrize("state", [CaseState.FAILED, CaseState.MISSING])
def test_what_did_not_run_is_an_error(state):
    (test,) = rendered(case(state=state, reasons=(in_words("no proof"),))).iter("testcase")
    assert test.find("error").get("message") == f"{state.value}: no proof"


@pytest.mark.parametrize(
    "verdict", [Verdict.PASS, Verdict.IMPROVEMENT, Verdict.NO_REFERENCE, Verdict.INCONCLUSIVE]
)
def test_what_check_accepts_passes(verdict):
    (test,) = rendered(case(figures=(figure(verdict, "told"),))).iter("testcase")
    assert [child.tag for child in test] == ["system-out"]
    assert f"{verdict.value}: told" in test.findtext("system-out")


def test_what_is_not_available_is_skipped_with_its_reason():
    absent = case(state=CaseState.NOT_AVAILABLE, reasons=(in_words("no source"),), conditions={})
    test = next(rendered(absent, case(stack="openmpi", figures=(figure(),))).iter("testcase"))
    assert test.find("skipped").get("message") == "no source"
    assert test.get("name") == "ImbMpi1Check"


def test_a_failure_has_the_codes_and_facts_of_its_reasons():
    told = WRONG_UNIT(unit="us", reference_unit="ms", origin="x")
    (test,) = rendered(case(state=CaseState.FAILED, reasons=(told,))).iter("testcase")
    error = test.find("error")
    assert error.get("type") == "invalid"
    facts = '{"unit": "us", "reference_unit": "ms", "origin": "x"}'
    assert error.text.endswith(f"correct the reference\nreference.wrong-unit {facts}")


def test_several_complaints_are_one_outcome_with_the_worst_first():
    figures = (
        figure(Verdict.INVALID, "not measured"),
        figure(Verdict.REGRESSION, "slower"),
        figure(Verdict.IMPOSSIBLE, "too fast"),
    )
    (test,) = rendered(case(figures=figures)).iter("testcase")
    failure = test.find("failure")
    assert failure.get("message") == "PingPong 8 bytes latency_us: slower (and 2 more)"
    assert [line.rsplit(": ")[-1] for line in failure.text.splitlines()] == [
        "slower",
        "too fast",
        "not measured",
    ]


def test_cases_of_one_name_are_told_apart():
    lost = case(state=CaseState.MISSING, reasons=(in_words("lost"),), conditions={})
    names = [test.get("name") for test in rendered(lost, lost, lost).iter("testcase")]
    assert names == ["ImbMpi1Check", "ImbMpi1Check (2)", "ImbMpi1Check (3)"]


@pytest.mark.parametrize(
    "cases",
    [
        (),
        (case(state=CaseState.NOT_AVAILABLE, reasons=(in_words("no source"),)),),
        (case(figures=()),),
        (case(figures=(figure(),)),),
        (case(figures=(figure(Verdict.INCONCLUSIVE),)),),
        (case(figures=(figure(Verdict.REGRESSION),)),),
        (case(figures=(figure(Verdict.IMPOSSIBLE),)), case(stack="openmpi", figures=(figure(),))),
    ],
)
@pytest.mark.parametrize(
    "beside",
    [
        {},
        {"strict": True},
        *({"evidence": (Evidence("software: mpich", v, (in_words("x"),)),)} for v in Verdict),
    ],
)
def test_ci_and_the_exit_status_agree(cases, beside):
    root = rendered(*cases, **beside)
    wrong = int(root.get("failures")) + int(root.get("errors"))
    status = status_of(run(*cases, **beside))
    assert (wrong > 0) == (status > 0) == (as_json(run(*cases, **beside))["exit_status"] > 0)


def test_what_a_strict_run_cannot_judge_is_an_error_that_says_why():
    doubt = NODE_SHARED(host="n1", lost_cores=0.9, stolen_cores=0.0, cores=2)
    noisy = case(figures=(figure(Verdict.INCONCLUSIVE, "maybe slower", doubt=doubt),))
    (test,) = rendered(noisy, strict=True).iter("testcase")
    error = test.find("error")
    assert error.get("type") == "inconclusive"
    assert error.get("message").startswith("cannot be judged: 1 of 1 figures")
    assert next(rendered(noisy).iter("testcase")).find("error") is None


def test_findings_beside_cases_are_a_suite():
    """What was found beside the cases is a suite with a test for each part."""
    found = [
        Evidence("software: mpich", Verdict.PASS, (in_words("the same build"),)),
        Evidence("software: openmpi", Verdict.INCONCLUSIVE, (in_words("too noisy"),)),
        Evidence("software: openmpi", Verdict.REGRESSION, (in_words("PingPong is slower"),)),
    ]
    root = rendered(case(figures=(figure(),)), evidence=tuple(found))
    same, slower = root[1]
    assert [child.tag for child in same] == ["system-out"]
    assert slower.get("name") == "software: openmpi"
    assert slower.find("failure").get("message") == "PingPong is slower (and 1 more)"
    assert slower.findtext("system-out").splitlines()[0] == "inconclusive: too noisy"


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "\"'><failure/>",
        "]]></system-out>",
        "&amp; &#0;",
        "größe 大きさ 🙂",
        "two\nlines",
        "x" * 10_000,
    ],
)
def test_no_text_becomes_markup(text):
    slow = figure(Verdict.REGRESSION, text, benchmark=text, metric=text, unit=text)
    conditions = {"ranks": 2, "placement": text}
    shared = {"stack": text, "conditions": conditions, "notes": (text,), "command": text}
    root = rendered(
        case(text, figures=(slow,), **shared),
        case("b", state=CaseState.NOT_AVAILABLE, reasons=(in_words(text),), **shared),
        case("c", state=CaseState.FAILED, reasons=(in_words(text),), **shared),
        system=text,
        mode=text,
    )
    (suite,) = root
    assert suite.get("name") == suite.get("hostname") == text
    skipped, failed, ran = suite.find("*/skipped"), suite.find("*/error"), suite[0]
    assert skipped.get("message") == text
    assert failed.get("message") == f"failed: {text}"
    assert ran.get("classname") == text
    assert ran.get("name") == f"2 ranks, {text}"
    assert ran.find("failure").get("message").endswith(f": {text}")
    assert ran.findtext("system-out").endswith(f"{text}\nby hand: {text}")


def test_characters_that_xml_forbids_are_shown_by_others():
    told = "\x00\x1b[31mred\x0c\x7f\ud800\ufffe\u202e"
    root = rendered(
        case(stack=told, reasons=(in_words(told),), state=CaseState.FAILED, notes=(told,))
    )
    shown = "␀␛[31mred␌␡\ufffd\ufffd\ufffd"
    assert root[0].get("name") == shown
    assert root.find(".//error").get("message") == f"failed: {shown}"
    assert root.findtext(".//system-out") == shown


def test_the_same_run_gives_the_same_text():
    cases = [case(stack=stack, figures=(figure(),)) for stack in ("b", "a", "c")]
    assert render_junit(run(*cases)) == render_junit(run(*cases))


def test_a_check_that_could_set_up_no_stack_fails_in_it_too(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    selection = ["--site=local", "--stack=mpich", "--wait=0s"]
    assert main(["check", *selection, "--copy-to", str(tmp_path / "copy")]) == 2
    (file,) = tmp_path.glob("copy/*/junit.xml")
    suites = ElementTree.parse(file).getroot()
    assert (suites.get("tests"), suites.get("errors")) == ("1", "1")
    (error,) = suites.iter("error")
    assert "mpich could not be downloaded" in error.get("message", "")
