"""A name is a name wherever one is taken, and what deletes says what, and asks where it is much."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.core.paths import checkout

COMMAND = str(Path(sys.executable).with_name("clustergate"))
RUN = "20260101T000000Z-r1"
# What stands behind each is a name. None of them may launch anything, whatever that is.
TAKING = {
    **{f"golden {part}": ["golden", part] for part in ("unpin", "verify")},
    "golden pin": ["golden", "pin", "--site", "local"],
    **{word: [word] for word in ("show", "open", "fleet", "hostfile")},
    "compare": ["compare", RUN],
    "machine --diff": ["machine", "--diff", RUN],
    **{f"{word} --resume": [word, "--resume"] for word in ("check", "screen")},
    "gate --before": ["gate", "--site", "local", "--before"],
    "ab --stored": ["ab", "--stored"],
    "screen --partition": ["screen", "--site", "local", "--budget", "1s", "--partition"],
    **{f"{word} --site": [word, "--site"] for word in ("check", "gate", "doctor", "history")},
    **{
        f"{word} --{option}": [word, "--site", "local", f"--{option}"]
        for word, options in {
            "check": ("mode", "stack", "check"),
            "gate": ("stack",),
            "screen": ("stack",),
            "setup": ("stack",),
            "baseline": ("mode", "stack", "check"),
            "doctor": ("mode",),
        }.items()
        for option in options
    },
    "site scan": ["site", "scan"],
    "evaluation run": ["evaluation", "run"],
}
NO_NAMES = ("", " ", ".", "..", "../..", "/", "results/../..", f"{RUN}/../..")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with two golden builds and a run, beside something else."""
    home = tmp_path / "home"
    for stack in ("mpich", "openmpi"):
        (home / "golden" / stack).mkdir(parents=True)
        (home / "golden" / stack / "manifest.json").write_text("{}")
    (home / "results" / "runs" / RUN / "cases").mkdir(parents=True)
    # What a path would take for a run.
    for folder in ("results", "results/runs", ".", ".."):
        (home / folder / "cases").mkdir(exist_ok=True)
        (home / folder / "request.json").write_text("{}")
        (home / folder / "summary.txt").write_text("a summary\n")
    return home


def listed(folder: Path) -> Iterator[str]:
    return (str(path.relative_to(folder)) for path in folder.rglob("*"))


def call(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CLUSTERGATE_HOME": str(home)}
    return subprocess.run(
        [COMMAND, *words], env=environment, cwd=home, capture_output=True, text=True
    )


@pytest.mark.parametrize("words", TAKING.values(), ids=TAKING)
def test_what_is_no_name_is_refused_and_nothing_is_lost(
    home: Path,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``golden unpin "$STACK"`` removed all golden builds, ``golden unpin ..`` the home."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(home))
    monkeypatch.chdir(home)
    before = set(listed(home.parent))
    for name in NO_NAMES:
        try:
            status: object = cli.main([*words, name])
        except SystemExit as ended:
            status = ended.code
        told = capsys.readouterr()
        assert status in (1, 2), (name, told.out)
        assert "Traceback" not in told.err, name
        # doctor reports what it finds.
        assert told.err or words[0] == "doctor", name
        assert before <= set(listed(home.parent)), name
        assert "a summary" not in told.out, name


@pytest.mark.parametrize("name", ["", "..", "../..", "/"])
def test_no_contender_leaves_the_folder_of_golden_builds(home: Path, name: str) -> None:
    ended = call(home, "ab", "--site", "local", "--a", f"golden:{name}", "--b", "mpich")
    assert ended.returncode in (1, 2)
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["..", "../x", "/tmp/x"])
def test_a_site_config_names_no_path(tmp_path: Path, name: str) -> None:
    """Its references, its hostfile and its lock are files of that name."""
    path = tmp_path / "odd.py"
    for odd in ("system", "partition", "stack"):
        system, partition, stack = (
            name if odd == one else one for one in ("system", "partition", "stack")
        )
        path.write_text(
            "from clustergate.sites import configuration, stack\n"
            "site_configuration = configuration([{\n"
            f"    'name': {system!r}, 'hostnames': ['n.*'], 'partitions': [{{\n"
            f"        'name': {partition!r}, 'scheduler': 'local', 'launcher': 'clustergate',\n"
            "        'extras': {'cores_per_node': 2, 'memory_bytes_per_node': 2**30,\n"
            "                   'nominal_gflops_per_core': 10},\n"
            "    }]}],\n"
            f"    [stack({stack!r}, 'modules', modules={{'load': ['m']}}, cc='cc')],\n"
            ")\n"
        )
        ended = call(tmp_path, "list", "stacks", "--site", str(path))
        assert ended.returncode == 2
        assert f"{path}: {'stacks' if odd == 'stack' else 'systems'}[0]." in ended.stderr
        assert f"is {name!r}" in ended.stderr, odd


def test_several_golden_builds_go_only_when_that_is_confirmed(home: Path) -> None:
    ended = call(home, "golden", "unpin", "mpich", "openmpi")
    assert ended.returncode == 1
    for stack in ("mpich", "openmpi"):
        assert (
            f"would be removed: the golden build of {stack}, {home}/golden/{stack}" in ended.stdout
        )
        assert (home / "golden" / stack).is_dir()
    assert "unpin --yes mpich openmpi` removes them" in ended.stderr
    ended = call(home, "golden", "unpin", "mpich")
    assert ended.returncode == 0
    assert ended.stdout == f"removed the golden build of mpich, {home}/golden/mpich\n"
    (home / "golden" / "mpich").mkdir()
    assert call(home, "golden", "unpin", "mpich", "openmpi", "--yes").returncode == 0
    assert not [*(home / "golden").glob("[!.]*")]


def test_make_clean_says_what_it_removes_and_asks(tmp_path: Path) -> None:
    makefile = checkout() / "Makefile"
    kept, gone = tmp_path / ".clustergate/results/x", tmp_path / ".clustergate/builds/x"

    def clean(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["make", "-s", "-f", str(makefile), "clean", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    for path in (kept, gone):
        path.mkdir(parents=True)
    ended = clean()
    assert ended.returncode
    assert ".clustergate/builds" in ended.stdout
    assert "make clean YES=1" in ended.stderr
    assert gone.is_dir()
    ended = clean("YES=1")
    assert ended.returncode == 0
    assert "removed: .clustergate/builds" in ended.stdout
    assert not gone.exists()
    assert kept.is_dir()
    assert "nothing to remove" in clean().stdout


def test_a_folder_that_is_no_environment_is_not_replaced_by_one(tmp_path: Path) -> None:
    """``ci/make-venv "$HOME"`` would have removed it."""
    (tmp_path / "thesis.txt").write_text("")
    program = str(checkout() / "ci" / "make-venv")
    environment = {**os.environ, "PYTHON": sys.executable}
    ended = subprocess.run(
        [program, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert f"{tmp_path} is no virtual environment" in ended.stderr
    assert (tmp_path / "thesis.txt").exists()
