"""The page "You have a ReFrame suite": its commands, on three small tests."""

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from clustergate.suites.settings import read_settings
from tests.conftest import PATIENCE_S
from tests.test_docs import TOP, blocks

BIN = Path(sys.executable).parent
PAGE = (TOP / "docs" / "reframe-suite.md").read_text(encoding="utf-8")
CHECKS = Path(__file__).parent / "data" / "reframe" / "checks"


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Return a folder with the tests and six sessions, and how to type there."""
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(CHECKS, folder / "checks")
    own = {k: v for k, v in os.environ.items() if not k.startswith(("RFM_", "CLUSTERGATE"))}
    environment = {
        **own,
        "HOME": str(folder),
        "PATH": f"{BIN}:{own['PATH']}",
        "CLUSTERGATE_HOME": str(folder / "home"),
        "RFM_ENABLE_RESULTS_STORAGE": "1",
    }

    def typed(command, status=0):
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert ended.returncode == status, (command, ended.stdout[-2000:], ended.stderr[-2000:])
        return ended.stdout

    loop = next(line for _, line in blocks(PAGE) if line.startswith("for k in"))
    # The page's own line for the path: it leaves ReFrame's variables alone.
    typed(f"{of_page('export PATH=')} && ! env | grep ^RFM_ | grep -v RESULTS_STORAGE && {loop}")
    shutil.copy(folder / ".reframe" / "reports" / "results.db", folder)
    calm(folder / "results.db")
    return folder, typed


def calm(path):
    """Let the copy loop scatter as it does where nothing else runs: else it has no reference."""
    with sqlite3.connect(path) as database:
        every = database.execute("SELECT uuid, json_blob FROM sessions").fetchall()
        for k, (uuid, blob) in enumerate(every):
            report = json.loads(blob)
            for case in report["runs"][0]["testcases"]:
                for name, value in case["perfvalues"].items():
                    value[0] = 10.0 + 0.01 * k if name.endswith(":Copy") else value[0]
            written = json.dumps(report), uuid
            database.execute("UPDATE sessions SET json_blob = ? WHERE uuid = ?", written)
    database.close()


def of_page(beginning):
    return next(line for _, line in blocks(PAGE) if line.startswith(beginning))


def test_the_first_verdict(desk):
    folder, typed = desk
    printed = typed(f"{of_page('clustergate judge --last')}; test $? -le 2")
    assert re.search(r"4 results of the session \S+ of .* beside 5 earlier sessions", printed)
    assert str(folder / ".reframe" / "reports") in printed
    # On three tests on a busy machine anything may be too scattered, and nothing is slow.
    assert "clustergate judge: exit status" in printed


def test_the_pipeline_leaves_its_files(desk):
    folder, typed = desk
    typed(f"{of_page('clustergate judge --last --copy-to')}; test $? -le 2")
    (report,) = (folder / "report").rglob("junit.xml")
    assert report.with_name("report.html").exists()


def test_history_and_comparison(desk):
    _, typed = desk
    assert "copy_loop.Copy" in typed(of_page("clustergate history"))
    assert "A: " in typed(of_page("clustergate compare previous last"))


def test_reframe_takes_the_references(desk):
    folder, typed = desk
    line = of_page("clustergate baseline")
    # A figure that scatters too much has no reference.
    typed(f"{line}; test $? -le 1")
    path = folder / shlex.split(line)[-1]
    written = yaml.safe_load(path.read_text())
    assert set(written) <= {"copy_loop", "sort_numbers"}
    value, lower, upper, unit = written["copy_loop"]["generic:default"]["builtin"]["Copy"]
    assert (upper, unit) == (None, "GB/s")
    assert lower < 0 < value
    test = (folder / "checks" / "small.py").read_text()
    tuples = 'reference = {"*": {"Copy": (1.0, -0.9, None, "GB/s")}}'
    (with_ref,) = re.findall(r'reference = \{"\$ref": "refs.yaml"\}', PAGE)
    python = '    executable = "python3"\n'
    test = test.replace(tuples, with_ref).replace(python, f"{python}    {with_ref}\n")
    (folder / "checks" / "by_ref.py").write_text(test)
    # As much faster as no memory is: ReFrame fails by the file what is slower.
    text = path.read_text().replace(f"{value}", f"{1000 * value}")
    path.write_text(text)
    printed = typed("reframe -c checks/by_ref.py -r; test $? -eq 1")
    assert "failed to meet reference(s): Copy=" in printed
    for size, of in (
        written.get("sort_numbers", {}).get("generic:default", {"builtin": {}})["builtin"].items()
    ):
        assert f"(r:{of['elapsed'][0]}," in printed, size
    # What is there is not overwritten.
    typed(line, status=1)
    assert path.read_text() == text


def test_tuples_are_printed_for_older_versions(desk):
    _, typed = desk
    printed = typed("clustergate baseline --reframe results.db; test $? -le 1")
    assert "# copy_loop, generic:default, builtin" in printed
    assert re.search(r'^"Copy": \([\d.]+, -0\.\d+, None, \'GB/s\'\),$', printed, re.MULTILINE)


def test_judge_yaml_of_the_page_is_read(tmp_path):
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "judge.yaml"
    file.write_text(text)
    assert read_settings(file).renamed == {"old_test": "new_test"}
