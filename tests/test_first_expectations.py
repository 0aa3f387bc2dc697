"""`clustergate expect`: what a run reached becomes what the next one must reach."""

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.benchmarks.registry import every_check
from clustergate.core import store
from clustergate.core.model import Better, CaseRecord, Standing
from clustergate.core.paths import checkout
from clustergate.judge.assembly import assemble
from clustergate.judge.baselines.first import MOST_LINES, first_expectations, first_tolerances
from clustergate.judge.references.lookup import References, parse_references
from clustergate.judge.standings import standings
from clustergate.sites.modes import mode_named
from tests.builders import passed

CAPTURED = checkout() / "tests" / "data" / "runs" / "smoke"
RUN = "20261121T080000Z-r1"
STACKS = ("intel-mpi", "mpich", "openmpi")


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sequence[CaseRecord]:
    """Return the cases of a stored run of a site of its own."""
    shutil.copytree(CAPTURED, tmp_path / "home" / "results" / "runs" / RUN / "cases")
    (tmp_path / "site" / "site_configs").mkdir(parents=True)
    (tmp_path / "site" / "references").mkdir()
    shutil.copy(checkout() / "site_configs" / "local.py", tmp_path / "site" / "site_configs")
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path / "site"))
    return store.read_cases(RUN)


def times_slower(records: Sequence[CaseRecord], by: float) -> list[CaseRecord]:
    slow = []
    for record in records:
        samples = [
            dataclasses.replace(
                one, value=one.value * (by if one.better is Better.LOWER else 1 / by)
            )
            for one in record.samples
        ]
        slow.append(dataclasses.replace(record, samples=samples))
    return slow


def became(known: References, records: Sequence[CaseRecord]) -> set[Standing]:
    """Return what a run of these records makes of the expectations."""
    outcomes = list(map(passed, records))
    cases = assemble((), outcomes, records, known.find, expects=known.expects)
    account = standings(known.expects, cases, mode_named("smoke"), STACKS)
    return {one.standing for one in account}


def test_written_expectations_met_and_missed_by_a_slower_run(
    records: Sequence[CaseRecord],
) -> None:
    text = first_expectations(records, f"the run {RUN}") + first_tolerances()
    known = parse_references(text, Path("local.yaml"), every_check())
    assert len(known.expects) >= 5
    assert {one.expectation.check for one in known.expects} == {
        "HplCheck", "HpccCheck", "ImbMpi1Check"
    }  # fmt: skip
    assert became(known, records) == {Standing.MET}
    assert became(known, times_slower(records, 1.02)) == {Standing.MET}
    assert became(known, times_slower(records, 1.5)) == {Standing.MISSED}


def test_a_dozen_lines_are_enough_where_stacks_are_alike(records: Sequence[CaseRecord]) -> None:
    (stack,) = {one.stack for one in records if one.stack == "mpich"}
    alone = [one for one in records if one.stack == stack]
    expect = first_expectations(alone, "one").splitlines()
    assert len(expect) - 2 <= MOST_LINES
    assert all("stacks" not in line for line in expect)
    assert expect[1] == "expect:"
    # As alike as one.
    twice = [*alone, *(dataclasses.replace(one, stack="other") for one in alone)]
    assert first_expectations(twice, "one").splitlines() == expect


def test_a_stack_without_the_figure_is_not_expected_to_have_it(
    records: Sequence[CaseRecord],
) -> None:
    alone = [one for one in records if one.stack == "mpich"]
    lacking = [dataclasses.replace(one, stack="other", samples=()) for one in alone]
    lines = first_expectations([*alone, *lacking], "one").splitlines()[2:]
    assert lines
    assert all("stacks: mpich" in line for line in lines)


def test_nothing_is_overwritten_and_what_stays_is_told(
    records: Sequence[CaseRecord], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "site" / "references" / "local.yaml"
    assert cli.main(["expect", "--dry-run"]) == 0
    assert not path.exists()
    shown = capsys.readouterr().out
    path.write_text('# ours\nexpect:\n  HPL: ">= 1 Gflop/s"\n', encoding="utf-8")
    assert cli.main(["expect"]) == 0
    told = capsys.readouterr()
    assert "has expect already, which stays as it is" in told.err
    assert f"written to {path}" in told.err
    after = path.read_text(encoding="utf-8")
    assert after.startswith('# ours\nexpect:\n  HPL: ">= 1 Gflop/s"\n\n# How much worse')
    assert told.out in shown
    # Then there is nothing left to write.
    assert cli.main(["expect"]) != 0
    assert "nothing was written" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == after


def test_without_a_run_of_the_system_there_is_nothing_to_expect(
    records: Sequence[CaseRecord], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(store.runs_folder())
    assert cli.main(["expect"]) != 0
    assert "no stored run has a figure" in capsys.readouterr().err
