import subprocess

from clustergate.launch.by_hand import script


def test_the_lines_run_as_they_stand_with_inputs_and_exports(tmp_path):
    text = "a line with 'quotes' and $dollars\nand another\n"
    lines = script(
        {"HPL.dat": text},
        {"MARK": "it is set"},
        ["sh", "-c", 'cat HPL.dat; echo "$MARK" > out.txt'],
        output="out.txt",
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
