"""Tables of real machines, judged by the way of a check: on tables whose truth is known."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from tools.bench import measured, realdata
from tools.bench.launches import RecordingError

HEADS = (
    *("dataset", "machine", "kind", "nodes", "benchmark", "metric", "bytes", "unit", "better"),
    *("node_or_nodeset", "job_or_session", "day", "launch", "value"),
)


def write(folder: Path, *, days: int = 24, slower: float = 1.0, lower: bool = False) -> None:
    """Write what four nodes did in HPL; on the last three days one was so many times slower."""
    lot = np.random.default_rng(1)
    with gzip.open(folder / "t.csv.gz", "wt", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(HEADS)
        for day in range(1, days + 1):
            for node in range(4):
                value = 5e4 * float(np.exp(lot.normal(0.0, 0.004)))
                value /= slower if day > days - 3 and node == 2 else 1.0
                better, value = ("lower", 1e6 / value) if lower else ("higher", value)
                where = (f"n{node}", f"202601{day:02}", f"202601{day:02}", 1, value)
                what = ("hpl", "gflops", "", "Gflop/s", better)
                lines.writerow(["made", "m", "bare-metal", 1, *what, *where])


@pytest.mark.parametrize("lower", [False, True])
def test_node_slow_on_three_days_alone_is_called_slower(tmp_path: Path, lower: bool) -> None:
    """A node that is slow on three days is called slower and nothing else."""
    # The days after a day are what confirms it: of the last two it cannot be.
    for slower, called in ((1.0, 0), (1.3, 1)):
        write(tmp_path, slower=slower, lower=lower)
        (system,) = realdata.systems(realdata.read_values(tmp_path))
        (told,) = realdata.told_of(system)
        assert (told.kind, told.baseline_days, told.days) == ("compute", 6, 18)
        assert told.figures == 4 * 18
        assert (told.alarms, told.regressions) == (called, called)
        assert told.without == 0
    heads_and_row = dict(measured.texts([{"realdata": [vars(told)]}]))["realdata"]
    assert "| bare-metal | compute | 1 | 18 | 1 | 72 | 1.4 % |" in heads_and_row


def test_what_was_measured_on_two_days_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, days=2)
    assert not realdata.systems(realdata.read_values(tmp_path))


def test_a_known_change_is_left_out() -> None:
    one = realdata.Value(
        "mghpcc-aicr", "aicr-gpu2", "bare-metal", 2, "osu_bibw", "bandwidth", 8, "higher",
        "a--b", "20260401", 1.0,
    )  # fmt: skip
    assert realdata._is_changed(one)
    assert one.figure_kind == "latency"


def test_a_folder_without_tables_and_a_damaged_line_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="holds no tables"):
        list(realdata.read_values(tmp_path))
    with gzip.open(tmp_path / "t.csv.gz", "wt", encoding="utf-8") as file:
        file.write(",".join(HEADS) + "\nmade,m,bare-metal,1,hpl,g,,G,higher,n,s,20260101,1,fast\n")
    with pytest.raises(RecordingError, match=r"t.csv.gz:2: no figure stands here"):
        list(realdata.read_values(tmp_path))
