"""What earlier versions left behind can still be read: tests/data/home is of a real run."""

import datetime
import shutil
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.benchmarks.registry import every_check
from clustergate.judge.history import listing, series
from clustergate.judge.history.stored_runs import stored_runs
from clustergate.judge.references.lookup import References, load_references
from clustergate.run.request import read_request
from clustergate.stacks.golden import builds
from clustergate.stacks.manifest import read_manifest_file

DATA = Path(__file__).resolve().parent / "data" / "home"
RUN = "20261122T212341Z-r1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    return tmp_path


def test_a_stored_run_is_part_of_the_history(home: Path) -> None:
    (run,) = stored_runs()
    assert run.run_id == RUN
    (record,) = run.records
    assert (record.check, record.stack, len(record.launches)) == ("HplCheck", "mpich", 1)
    names = {figure.name: figure for figure in series.collect([run])}
    (point,) = names["HPL.performance_gflops"].points
    assert point.estimate.value == pytest.approx(92.54)


def test_a_stored_run_is_listed_and_can_be_resumed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run,) = listing.listed_runs()
    assert (run.run, run.kind, run.system, run.mode) == (RUN, "check", "local", "smoke")
    request = read_request(RUN)
    assert (request.mode.name, request.site.stem, request.strict) == ("smoke", "local", False)
    assert cli.main(["machine", "--diff", RUN, "now"]) == 1
    assert "kernel" in capsys.readouterr().out


def test_a_golden_build_is_what_was_pinned(home: Path) -> None:
    golden = builds.read(home, "mpich")
    assert (golden.by, golden.note, golden.linked) == ("root", "acceptance", True)
    manifest = read_manifest_file(home / "golden" / "mpich" / "manifest.json")
    assert manifest.mpi_version == "5.0.2"
    assert manifest.programs["xhpl"].path


def hpl_of(known: References) -> float:
    case = ("HplCheck", "local:node", "mpich", "2-ranks-packed", "smoke")
    return known.at((*case, "HPL.performance_gflops")).value


def test_references_hold_what_they_held() -> None:
    known = load_references(DATA / "references" / "local.yaml", every_check())
    assert hpl_of(known) == 92.725
    assert known.blessed == "root, 2026-11-22"
    assert known.days_measured() == {datetime.date(2026, 11, 22)}
    assert known.notes == []


def test_old_statistics_judged_by_their_tolerances() -> None:
    """References with statistics of before are judged by their tolerances."""
    known = load_references(DATA / "references-before" / "local.yaml", every_check())
    assert hpl_of(known) == 92.54
    (note,) = known.notes
    assert "made by an earlier version" in note
    assert "`clustergate baseline`" in note
    (run,) = stored_runs(state=DATA)
    (record,) = run.records
    (sample,) = [one for one in record.samples if one.metric == "performance_gflops"]
    facts = (record.check, record.partition, record.stack, record.conditions)
    reference = known.find(*facts, sample)
    assert reference is not None
    assert (reference.lower, reference.baseline) == (-0.048, None)
