"""What the page on machines without a network says to type, typed there: without a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.core.paths import checkout
from clustergate.stacks.manifest import read_manifest

TOP = checkout()
PAGE = (TOP / "docs" / "air-gap.md").read_text(encoding="utf-8")
PACK, USE, PACK_SPACK, USE_SPACK = re.findall(r"^```bash\n(.*?)^```", PAGE, re.M | re.S)
CARRIED = "/data/carried"
ONE = ".venv/bin/clustergate check --check HplCheck --stack {} --wait 0s -- -S HplCheck.n=1000"
# What runs a command with no network but a dead loopback.
CUT_OFF = ("unshare", "--map-root-user", "--net")


@pytest.mark.parametrize("command", [["pack", "folder"], ["unpack", "folder"], ["--help"], []])
def test_the_old_command_is_one_sentence_that_names_the_page(command, capsys):
    assert cli.main(["airgap", *command]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "docs/air-gap.md" in sentence
    ended = subprocess.run([TOP / "ci" / "airgap", *command], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    (sentence,) = ended.stderr.splitlines()
    assert "docs/air-gap.md" in sentence


@pytest.fixture(scope="module")
def cut_off() -> tuple[str, ...]:
    """Return what cuts a command off, once it has proven that nothing can be reached through it."""
    asked = (sys.executable, "-c", "import socket; print(socket.if_nameindex())")
    try:
        tried = subprocess.run([*CUT_OFF, *asked], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no unshare here to cut the network off with")
    if tried.returncode:
        pytest.skip(f"the network cannot be cut off here ({tried.stderr.strip()})")
    assert tried.stdout.strip() == "[(1, 'lo')]"
    return CUT_OFF


def typed(block: str, carried: Path, *prefix: str, cwd: Path) -> str:
    """Type a block of the page, with the folder of the test for the page's."""
    mine = re.compile(r"PIP_|UV_|SPACK_|CLUSTERGATE_")
    kept = {k: v for k, v in os.environ.items() if not prefix or not mine.match(k)}
    script = f"set -eu\n{block.replace(CARRIED, str(carried))}"
    ended = subprocess.run(
        [*prefix, "bash", "-c", script],
        env={**kept, "PYTHON": sys.executable},
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Pack as the page says, in this clone; return the folder."""
    asked = ("git", "-C", str(TOP), "rev-parse", "--is-shallow-repository")
    whole = subprocess.run(asked, capture_output=True, text=True).stdout.strip() == "false"
    if not whole:
        pytest.skip("this is no whole clone, so git has no bundle of it")
    folder = tmp_path_factory.mktemp("carried")
    typed(PACK, folder, cwd=TOP)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.mpi
@pytest.mark.long
def test_what_was_carried_is_measured_without_a_network(carried, cut_off, tmp_path):
    lines, check = USE.splitlines(keepends=True)[:-1], USE.splitlines()[-1]
    assert check == "make check"
    # As told, but of less; the second is measured without the folder and its variables.
    printed = typed("".join([*lines, "make setup\n"]), carried, *cut_off, cwd=tmp_path)
    assert re.search(r"^MPICH \S+ in ", printed, re.MULTILINE), printed
    away = carried.rename(carried.with_name("away"))
    try:
        check = ONE.format("mpich")
        printed = typed(check, away, *cut_off, cwd=tmp_path / "clustergate")
    finally:
        away.rename(carried)
    assert "NOTHING WRONG FOUND" in printed or "TOO BUSY TO JUDGE" in printed
    state = tmp_path / "clustergate" / ".clustergate"
    for name in ("xhpl", "IMB-MPI1", "node_peaks"):
        program = read_manifest(state, "mpich").program(name)
        assert Path(program.path).is_relative_to(state), program.unavailable


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.spack
def test_a_stack_is_built_by_spack_from_what_was_carried(carried, cut_off, tmp_path):
    tried = subprocess.run(["git", "ls-remote", *re.findall(r"https://\S+spack.git", PACK_SPACK)])
    if tried.returncode:
        pytest.skip("Spack's repository cannot be reached from here")
    typed(PACK_SPACK, carried, cwd=TOP)
    *lines, check = USE_SPACK.splitlines(keepends=True)
    assert check == "make check PROVIDER=spack\n"
    block = "".join([*USE.splitlines(keepends=True)[:-1], "make .venv/ready\n", *lines])
    check = f"CLUSTERGATE_PROVIDER=spack {ONE.format('spack-openmpi')}"
    typed(block + check, carried, *cut_off, cwd=tmp_path)
    manifest = read_manifest(tmp_path / "clustergate" / ".clustergate", "spack-openmpi")
    assert Path(manifest.program("xhpl").path).is_relative_to(tmp_path)
