"""Attacks on what is stored: cases edited by hand, folders of other people, outputs in one file."""

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clustergate import cli
from clustergate.core import store

DATA = Path(__file__).resolve().parent / "data"
SMOKE = DATA / "runs" / "smoke"
RUN, LATER = "20261101T000000Z-r1", "20261102T000000Z-r2"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with two runs of one case."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    for run_id in (RUN, LATER):
        cases = store.run_folder(run_id) / "cases"
        cases.mkdir(parents=True)
        shutil.copy(SMOKE / "HplCheck-node-mpich.json", cases)
    return tmp_path


# --- a stored case of wrong JSON types ----------------------------------------------------------

CASE = json.loads((SMOKE / "HplCheck-node-mpich.json").read_text())
WRONG: tuple[Any, ...] = (None, True, 5, "x", [], {}, [["x"]], {"x": [1]})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where something stands in a case, of lists in the first element."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def edited(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    content: dict[str, Any] = copy.deepcopy(CASE)
    place: Any = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


@pytest.mark.parametrize("field", [name for name in CASE if name != "schema"])
def test_a_case_of_wrong_types_is_one_sentence_or_does_no_harm(
    home: Path, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    """Every later check of the system ended with a traceback."""
    case = store.run_folder(RUN) / "cases" / "HplCheck-node-mpich.json"
    told = 0
    for path in (one for one in places(CASE) if one[0] == field):
        for wrong in WRONG:
            content = edited(path, wrong)
            if content == CASE:
                continue
            case.write_text(json.dumps(content))
            for words in (["history", "--json"], ["compare", RUN, LATER]):
                status = cli.main(words)
                said = capsys.readouterr().err
                assert "bug" not in said, (path, wrong, said)
                assert "Traceback" not in said, (path, wrong, said)
                named = f"{case}" in said
                assert status in ((1, 2) if named else (0, 1, 2)), (path, wrong, said)
                told += named
    assert told or field in ("command", "unavailable")


# --- folders that are no runs -------------------------------------------------------------------


def test_prune_leaves_what_is_no_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    thesis = home / "results" / "runs" / "thesis"
    thesis.mkdir()
    (thesis / "chapter-1.txt").write_text("months of work")
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "notes").write_text("kept")
    (home / "results" / "runs" / "link").symlink_to(elsewhere)
    (home / "stage" / "thesis").mkdir(parents=True)
    options = ["prune", "--older-than", "0d", "--keep", "0"]
    assert cli.main(options) == 0
    assert f"not touched: {thesis}" in capsys.readouterr().out
    assert cli.main([*options, "--yes"]) == 0
    assert (thesis / "chapter-1.txt").read_text() == "months of work"
    assert (elsewhere / "notes").exists()
    assert (home / "stage" / "thesis").is_dir()
    # Those that are runs went.
    assert not store.run_folder(RUN).exists()


# --- two programs in one file -------------------------------------------------------------------

OUTPUTS = {
    "HPL": "hpl/hpl-2.3-mpich-grids.txt",
    "HPCC": "hpcc/hpcc-1.5.0-impi.txt",
    "IMB": "imb/impi-2021.11-mpi1-default.txt",
    "NPB": "npb/cg.S.2.txt",
    "LAMMPS": "lammps/lj.2.txt",
    "HPCCG": "hpccg/2-ranks.txt",
    "kernel": "mpi-kernels/bidirectional_stream.txt",
}
Parse = Callable[[str], tuple[int, str, str]]


@pytest.mark.parametrize("second", OUTPUTS)
@pytest.mark.parametrize("first", OUTPUTS)
def test_of_two_programs_in_one_file_none_is_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: str, second: str
) -> None:
    both = tmp_path / "both.txt"
    texts = [(DATA / OUTPUTS[one]).read_text() for one in (first, second)]
    both.write_text("".join(texts))
    assert cli.main(["parse", *(str(DATA / OUTPUTS[one]) for one in (first, second))]) == 0
    rows = len(capsys.readouterr().out.splitlines())
    status = cli.main(["parse", str(both)])
    said = capsys.readouterr()
    if status == 0:
        # Of one program that appends its output, both runs are read.
        assert first == second
        assert len(said.out.splitlines()) == rows
    else:
        assert (status, said.out) == (1, "")
        assert f"{both}:" in said.err
