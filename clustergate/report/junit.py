"""JUnit XML of a run for CI systems: a suite for each stack, a test case for each case.

A regression is a failure. What did not run, did not prove itself or cannot be is an error: the
measurement is at fault there and not what was measured. No reference and "inconclusive" are told in
the output of a test case that passes, as ``clustergate check`` counts them. The text of a
failure ends with the codes and facts of its reasons, a line each.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from clustergate.model import Case, CaseState, Figure, Group, Run, Verdict
from clustergate.verdicts.assembly import verdicts, wrong_in
from clustergate.verdicts.judging import exit_status
from clustergate.wording.notation import number, printable
from clustergate.wording.reasons import reason
from clustergate.wording.texts import DOUBTFUL, doubt_lines, figure_name, group_name, shape


def render_junit(run: Run) -> str:
    """Return a run as JUnit XML, in the shape that Jenkins and GitLab read.

    Times are in seconds; a suite's time is the sum of its cases'.
    """
    root = ElementTree.Element("testsuites", name=printable(f"clustergate {run.mode}"))
    suites = [
        _suite(run, stack, [case for case in run.cases if case.stack == stack])
        for stack in sorted({case.stack for case in run.cases})
    ]
    if not any(suite.get("failures") != "0" or suite.get("errors") != "0" for suite in suites):
        suites += _suite_of_the_run(run)
    root.extend(suites)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.set("time", f"{run.duration_s:.3f}")
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite_of_the_run(run: Run) -> list[ElementTree.Element]:
    """Return what is wrong with a run in which no case is wrong: nothing was measured at all."""
    if exit_status(verdicts(run.cases)) == 0:
        return []
    case = Case("clustergate", run.system, CaseState.MISSING, (reason("run.empty"),))
    return [_suite(run, "run", [case])]


def _suite(run: Run, stack: str, cases: Sequence[Case]) -> ElementTree.Element:
    taken: Counter[tuple[str, str]] = Counter()
    tests = []
    for case in cases:
        name = shape(case) or case.check
        taken[case.check, name] += 1
        # Readers take test cases of one name for one.
        place = taken[case.check, name]
        tests.append(_test(case, name if place == 1 else f"{name} ({place})"))
    suite = ElementTree.Element(
        "testsuite",
        name=printable(stack),
        hostname=printable(run.system),
        timestamp=_timestamp(run.started),
        tests=str(len(tests)),
        failures=_count(tests, "failure"),
        errors=_count(tests, "error"),
        skipped=_count(tests, "skipped"),
        time=f"{sum(case.duration_s for case in cases):.3f}",
    )
    suite.extend(tests)
    return suite


def _timestamp(started: str) -> str:
    """Return a time as JUnit's schema has it: in UTC and without a zone."""
    time = datetime.datetime.fromisoformat(started)
    return time.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def _count(tests: Sequence[ElementTree.Element], outcome: str) -> str:
    return str(sum(test.find(outcome) is not None for test in tests))


def _test(case: Case, name: str) -> ElementTree.Element:
    test = ElementTree.Element(
        "testcase",
        classname=printable(case.check),
        name=printable(name),
        time=f"{case.duration_s:.3f}",
    )
    if case.state is CaseState.NOT_AVAILABLE:
        ElementTree.SubElement(test, "skipped", message=printable(case.reason))
    else:
        _add_outcome(test, case)
    output = [*doubt_lines([case]), *(_group_line(group) for group in case.groups)]
    output += [_line(figure) for figure in case.figures] + list(case.notes)
    output += [f"by hand: {case.command}"] if case.command else []
    if output:
        ElementTree.SubElement(test, "system-out").text = printable("\n".join(output))
    return test


def _add_outcome(test: ElementTree.Element, case: Case) -> None:
    """Add what is wrong with a case as one element: readers want no more of them in a test case."""
    complaints = [
        (judgement.verdict, f"{called}: {judgement.sentence}", judgement.reasons)
        for called, judgement in wrong_in(case)
    ]
    if case.state.broken:
        complaints.append((Verdict.INVALID, f"{case.state.value}: {case.reason}", case.reasons))
    if not complaints:
        return
    complaints.sort(key=lambda complaint: -complaint[0].severity)
    verdict, message, _ = complaints[0]
    coded = [one for _, _, of_one in complaints for one in of_one if one.code]
    lines = [text for _, text, _ in complaints]
    lines += [f"{one.code} {json.dumps(one.facts)}" for one in coded]
    more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    ElementTree.SubElement(
        test,
        "failure" if verdict is Verdict.REGRESSION else "error",
        type=verdict.value,
        message=printable(message + more),
    ).text = printable("\n".join(lines))


def _group_line(group: Group) -> str:
    judgement = group.judgement
    return f"{group_name(group)}: {judgement.verdict.value}: {judgement.sentence}"


def _line(figure: Figure) -> str:
    value = ""
    if figure.estimate is not None:
        value = (
            f" = {number(figure.estimate.value)}{DOUBTFUL if figure.doubt else ''} {figure.unit}"
        )
    judgement = figure.judgement
    line = f"{figure_name(figure)}{value.rstrip()}: {judgement.verdict.value}: {judgement.sentence}"
    return f"{line}; {figure.remark}" if figure.remark else line
