import json
import re
from pathlib import Path

import pytest

from clustergate.benchmarks import formats as outputs
from clustergate.benchmarks.stream5.output import Stream5Expectation, parse_stream5
from clustergate.core.model import OutputError, Row


@pytest.fixture
def text(data: Path) -> str:
    return (data / "stream5" / "mpich.txt").read_text(encoding="utf-8")


def rows_of(text: str, expect: Stream5Expectation | None = None) -> list[Row]:
    return list(parse_stream5(text.splitlines(keepends=True), expect=expect))


def in_domains(text: str, *domains: dict[str, object]) -> str:
    """Return the text of one rank as several would print it, each with what it had.

    Written: the captures are of machines with one NUMA domain.
    """
    of_rank = text.partition("\n")[2]
    first = {"stream5": "rank", "processes": len(domains)}
    lines = [json.dumps({**first, "rank": n, **of}) for n, of in enumerate(domains)]
    # As the program writes it, without blanks.
    return "".join(f"{line.replace(' ', '')}\n{of_rank}" for line in lines)


def had(domain: int, core: int, **kib: int) -> dict[str, object]:
    memory = {name.removeprefix("of_"): size for name, size in kib.items()}
    return {"cores": [[core], [core + 1]], "domains": [domain], "kib": memory}


def test_a_real_output(text: str) -> None:
    rows = rows_of(text, Stream5Expectation(1, 2, 80_000_000))
    assert [row.conditions["kernel"] for row in rows] == ["copy", "scale", "add", "triad"]
    assert {row.benchmark for row in rows} == {"STREAM5"}
    lines = text.splitlines()
    for row in rows:
        assert (row.conditions["threads"], row.conditions["trials"]) == (2, 10)
        assert f"{1000 * row.values['bandwidth_gb_s']:.1f}" in lines[row.line - 1]
    assert list(outputs.parse(text.splitlines(), source="x")) == rows


def test_each_rank_measures_its_numa_domain(text: str) -> None:
    several = in_domains(text, had(0, 0, of_0=99, of_1=1), had(1, 2, of_1=100))
    rows = rows_of(several, Stream5Expectation(2, 2))
    assert [row.conditions["domain"] for row in rows] == [0] * 4 + [1] * 4
    assert {row.conditions["processes"] for row in rows} == {2}


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        (had(0, 0), had(0, 2), "the NUMA domain of rank 1 is 0 and must be its own"),
        (had(0, 0), {**had(1, 2), "domains": []}, "the NUMA domain of rank 1 is not known"),
        (had(0, 0), {**had(1, 2), "domains": [1, 2]}, "the NUMA domain of rank 1 is 1, 2"),
        (had(0, 0), had(1, 1), "the number of cores of 4 threads is 3 and must be 4"),
        (had(0, 0), had(1, 2, of_0=10, of_1=90), "memory in NUMA domain 1 is 90% and must be 95%"),
    ],
)
def test_ranks_that_do_not_have_a_domain_each_are_refused(
    text: str, first: dict[str, object], second: dict[str, object], complaint: str
) -> None:
    with pytest.raises(OutputError, match=complaint):
        rows_of(in_domains(text, first, second))


@pytest.mark.parametrize(
    ("pattern", "changed", "complaint"),
    [
        (r'"cores":\[\[0\],\[1\]\]', '"cores":[[0,1],[0,1]]', "not the cores of a rank's bound"),
        (r'"cores":\[\[0\],\[1\]\]', '"cores":[[0],[0]]', "cores of 2 threads is 1 and must be 2"),
        (r'"cores":\[\[0\],\[1\]\]', '"cores":[[0]]', "threads 2, but 1 was requested"),
        (r'"processes":1', '"processes":2', "the text of one of 2 ranks"),
        (r"\A.*\n", "", "the text of one of 1 ranks, or its own first line, is missing"),
        ("Number of Threads counted.*\n", "", "'threads' is missing"),
        ("STREAM version.*\n", "", "'the title' is missing"),
        ("(STREAM version.*\n)", r"\1\1", "another run begins here"),
        ("Solution Validates.*\n", "", "'the validation' is missing"),
        ("Solution Validates.*", "Failed Validation on array b[], …", "reports a failure: Failed"),
        (r"(Triad: +)\d", r"\g<1>9", "contradicts .* MB in"),
        (r"(Triad: +)[\d.]+", r"\g<1>nan", "not a row as STREAM prints it"),
    ],
)
def test_damage_is_refused(text: str, pattern: str, changed: str, complaint: str) -> None:
    damaged, count = re.subn(pattern, changed, text, count=1)
    assert count == 1
    with pytest.raises(OutputError, match=complaint):
        rows_of(damaged, Stream5Expectation())


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        (Stream5Expectation(processes=4), "processes 1, but 4 was requested"),
        (Stream5Expectation(threads=4), "threads 2, but 4 was requested"),
        (Stream5Expectation(elements=10_000_000), "elements 80000000, but 10000000 was requested"),
    ],
)
def test_another_run_is_refused(text: str, expected: Stream5Expectation, complaint: str) -> None:
    with pytest.raises(OutputError, match=complaint):
        rows_of(text, expected)
