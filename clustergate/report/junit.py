"""JUnit XML of a run for CI systems: a suite for each stack, a test case for each case.

A regression is a failure. What did not run, did not prove itself or cannot be is an error: the
measurement is at fault there and not what was measured. No reference and "inconclusive" are told in
the output of a test case that passes, as ``clustergate check`` counts them; of a strict run a case
that cannot be judged is an error. What was found beside the cases is a suite, in which fails what
fails a gate. The text of a failure ends with the codes and facts of its reasons, a line each.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.model import Case, CaseState, Evidence, Figure, Run, Verdict
from clustergate.core.notation import number, printable
from clustergate.core.reasons import Reason, sentence_of
from clustergate.core.texts import (
    DOUBTFUL,
    doubt_lines,
    doubts,
    figure_name,
    group_name,
    shape,
)
from clustergate.core.words import RUN_EMPTY
from clustergate.judge.assembly import is_undecided, wrong_in
from clustergate.judge.judging import exit_status


def render_junit(run: Run, invocation: Invocation = NO_CALL) -> str:
    """Return a run as JUnit XML, in the shape that Jenkins and GitLab read.

    Times are in seconds; a suite's time is the sum of its cases'.
    """
    root = ElementTree.Element("testsuites", name=printable(f"clustergate {run.mode}"))
    suites = [
        _suite_of(run, stack, [case for case in run.cases if case.stack == stack], invocation)
        for stack in sorted({case.stack for case in run.cases})
    ]
    evidence = list(run.evidence)
    of_run = any(one.part == "run" for one in evidence)
    if not (of_run or any(c.figures or c.groups or c.state.broken for c in run.cases)):
        evidence.append(Evidence("run", Verdict.INVALID, (RUN_EMPTY(),)))
    if evidence:
        suites.append(_suite(run, "run", list(_tests_of(evidence, invocation))))
    root.extend(suites)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.set("time", f"{run.duration_s:.3f}")
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite_of(
    run: Run, stack: str, cases: Sequence[Case], invocation: Invocation
) -> ElementTree.Element:
    taken: Counter[tuple[str, str]] = Counter()
    tests = []
    for case in cases:
        name = shape(case) or case.check
        taken[case.check, name] += 1
        # Readers take test cases of one name for one.
        place = taken[case.check, name]
        unique_name = name if place == 1 else f"{name} ({place})"
        tests.append(_test(case, unique_name, invocation, strict=run.strict))
    return _suite(run, stack, tests, sum(case.duration_s for case in cases))


def _tests_of(
    evidence: Sequence[Evidence], invocation: Invocation
) -> Iterator[ElementTree.Element]:
    for part in dict.fromkeys(one.part for one in evidence):
        of_part, name = [one for one in evidence if one.part == part], printable(part)
        test = ElementTree.Element("testcase", classname=name, name=name, time="0.000")
        against = [one for one in of_part if exit_status([one.verdict], "gate")]
        complaints: list[_Complaint] = [(one.verdict, one.sentence, one.reasons) for one in against]
        _add_outcome(test, complaints, invocation)
        _add_output(test, [f"{one.verdict.value}: {one.sentence}" for one in of_part], invocation)
        yield test


def _suite(
    run: Run, name: str, tests: Sequence[ElementTree.Element], seconds: float = 0.0
) -> ElementTree.Element:
    suite = ElementTree.Element(
        "testsuite",
        name=printable(name),
        hostname=printable(run.system),
        timestamp=_timestamp(run.started),
        tests=str(len(tests)),
        failures=_count(tests, "failure"),
        errors=_count(tests, "error"),
        skipped=_count(tests, "skipped"),
        time=f"{seconds:.3f}",
    )
    suite.extend(tests)
    return suite


def _timestamp(started: str) -> str:
    """Return a time as JUnit's schema has it: in UTC and without a zone."""
    time = datetime.datetime.fromisoformat(started)
    return time.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def _count(tests: Sequence[ElementTree.Element], outcome: str) -> str:
    return str(sum(test.find(outcome) is not None for test in tests))


def _test(case: Case, name: str, invocation: Invocation, *, strict: bool) -> ElementTree.Element:
    test = ElementTree.Element(
        "testcase",
        classname=printable(case.check),
        name=printable(name),
        time=f"{case.duration_s:.3f}",
    )
    if case.state is CaseState.NOT_AVAILABLE or (
        case.state is CaseState.NOT_LAUNCHED and not strict
    ):
        why_not = invocation.completed(case.reason)
        ElementTree.SubElement(test, "skipped", message=printable(why_not))
    else:
        _add_outcome(test, _complaints(case, strict=strict), invocation)
    output = doubt_lines([case])
    for group, judged in ((group, group.judgement) for group in case.groups):
        output.append(f"{group_name(group)}: {judged.verdict.value}: {judged.sentence}")
    output += [_line(figure) for figure in case.figures] + list(case.notes)
    output += [f"by hand: {case.command}"] if case.command else []
    if output:
        _add_output(test, output, invocation)
    return test


def _add_output(test: ElementTree.Element, lines: Sequence[str], invocation: Invocation) -> None:
    text = "\n".join(map(invocation.completed, lines))
    ElementTree.SubElement(test, "system-out").text = printable(text)


_Complaint = tuple[Verdict, str, Sequence[Reason]]


def _complaints(case: Case, *, strict: bool) -> list[_Complaint]:
    complaints: list[_Complaint] = [
        (judgement.verdict, f"{called}: {judgement.sentence}", judgement.reasons)
        for called, judgement in wrong_in(case)
    ]
    if case.state.broken:
        complaints.append((Verdict.INVALID, f"{case.state.value}: {case.reason}", case.reasons))
    if strict and not complaints and is_undecided(case):
        judged = [why for figure in case.figures[:1] for why in figure.judgement.reasons]
        why = doubts([case]) or [*case.reasons, *judged]
        complaints.append((Verdict.INCONCLUSIVE, f"cannot be judged: {sentence_of(why)}", why))
    return complaints


def _add_outcome(
    test: ElementTree.Element, complaints: list[_Complaint], invocation: Invocation
) -> None:
    """Add what is wrong as one element: readers want no more of them in a test case."""
    if not complaints:
        return
    complaints.sort(key=lambda complaint: -complaint[0].severity)
    verdict, message, _ = complaints[0]
    coded = [one for _, _, of_one in complaints for one in of_one if one.code]
    lines = [invocation.completed(text) for _, text, _ in complaints]
    lines += [f"{one.code} {json.dumps(one.facts)}" for one in coded]
    more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    ElementTree.SubElement(
        test,
        "failure" if verdict is Verdict.REGRESSION else "error",
        type=verdict.value,
        message=printable(invocation.completed(message) + more),
    ).text = printable("\n".join(lines))


def _line(figure: Figure) -> str:
    value = ""
    if figure.estimate is not None:
        value = (
            f" = {number(figure.estimate.value)}{DOUBTFUL if figure.doubt else ''} {figure.unit}"
        )
    judgement = figure.judgement
    line = f"{figure_name(figure)}{value.rstrip()}: {judgement.verdict.value}: {judgement.sentence}"
    return f"{line}; {figure.remark}" if figure.remark else line
