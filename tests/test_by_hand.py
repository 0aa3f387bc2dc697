import subprocess

import pytest

from clustergate.launch.by_hand import script
from clustergate.launch.plan import output_in


@pytest.mark.parametrize("output", ["out.2026-11-30.txt", "out.*.txt"])
def test_the_lines_run_as_they_stand_with_inputs_and_exports(tmp_path, output):
    text = "a line with 'quotes' and $dollars\nand another\n"
    lines = script(
        {"HPL.dat": text},
        {"MARK": "it is set"},
        ["sh", "-c", 'cat HPL.dat; echo "$MARK" > out.2026-11-30.txt'],
        output=output,
    )
    ended = subprocess.run(
        ["bash", "-c", lines],
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == f"{text}it is set\n"


def test_sizes_are_written_in_one_line(tmp_path):
    lines = script({"sizes.txt": "0\n8\n4096\n"}, {}, ["cat", "sizes.txt"])
    assert len(lines.splitlines()) == 3
    ended = subprocess.run(
        ["bash", "-c", lines], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert ended.stdout == "0\n8\n4096\n"


def test_a_file_with_a_date_in_its_name_is_found_if_it_is_the_only_one(tmp_path):
    pattern = "HPCG-Benchmark_*.txt"
    assert output_in(tmp_path, "") == tmp_path / "stdout"
    assert output_in(tmp_path, "hpccoutf.txt") == tmp_path / "hpccoutf.txt"
    assert not output_in(tmp_path, pattern).exists()
    (first := tmp_path / "HPCG-Benchmark_3.1_2026-11-30_19-45-04.txt").touch()
    assert output_in(tmp_path, pattern) == first
    (tmp_path / "HPCG-Benchmark_3.1_2026-11-30_19-45-05.txt").touch()
    assert not output_in(tmp_path, pattern).exists()
