"""A new provider is its file and its line: this file is it, in a copy of the tree.

It gives MPICH's ABI from a folder that the site config names, and nothing else of the suite knows.
"""

import dataclasses
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from clustergate.core.files.shared import locked
from clustergate.core.model import ClustergateError
from clustergate.core.words import FILE_UNREADABLE
from clustergate.stacks import builder
from clustergate.stacks.compilation import compiler_identity
from clustergate.stacks.lacking import Lack
from clustergate.stacks.manifest import Manifest, read_manifest
from clustergate.stacks.prefixes import install_prefix
from clustergate.stacks.provider import Provider
from clustergate.stacks.spack.libraries import MPI_PACKAGES

# --- the provider ---------------------------------------------------------------------------------


def provide(set_up: builder.SetUp) -> Manifest:
    """Compile the benchmarks beside the MPI library in the folder."""
    prefix = Path(set_up.settings["prefix"])
    with locked(set_up.state / "builds" / f"{set_up.stack}.lock", say=set_up.say):
        blas = install_prefix(builder.OPENBLAS, set_up.state, set_up.say)
        toolchain = builder.Toolchain(
            prefix=prefix,
            wrappers=prefix / "bin",
            blas=builder.openblas_linkage(blas),
            key=("folder", compiler_identity(), prefix.name),
            mpich_abi=True,
            no_fortran="nobody tried",
        )
        known = dataclasses.replace(
            planned(set_up.stack, set_up.settings),
            mpi_prefix=str(prefix),
            mpi_library=str((prefix / "lib" / "libmpi.so.12").resolve()),
            launcher=str(prefix / "bin" / "mpirun"),
            environment={"PATH": str(prefix / "bin"), "LD_LIBRARY_PATH": str(prefix / "lib")},
        )
        return builder.with_programs(known, builder.Builder(set_up, toolchain))


def planned(stack: str, settings: Mapping[str, Any]) -> Manifest:
    """Return what that would be."""
    known = Manifest(stack, "folder", mpi_library="lib/libmpi.so.12")
    return builder.planned_with(known, MPI_PACKAGES["mpich"], settings["version"])


def lacks(set_up: builder.SetUp) -> list[Lack]:
    """Return that the folder has no library."""
    there = Path(set_up.settings["prefix"], "lib", "libmpi.so.12").exists()
    return [] if there else [Lack("libmpi.so.12")]


def require_mpirun(settings: Mapping[str, Any], limit_s: float) -> None:
    """Refuse a folder that has lost its launcher."""
    if not (mpirun := Path(settings["prefix"], "bin", "mpirun")).exists():
        raise ClustergateError(FILE_UNREADABLE(path=mpirun, why="it is gone"))


PROVIDER = Provider(
    name="folder",
    provide=provide,
    planned=planned,
    lacks=lacks,
    settings={
        "type": "object",
        "properties": {"prefix": {"type": "string"}, "version": {"type": "string"}},
        "required": ["prefix", "version"],
        "additionalProperties": False,
    },
    require_source=require_mpirun,
    copied=True,
)

# --- what is shown of it --------------------------------------------------------------------------

SITE = """\
from clustergate.sites import configuration, stack

site_configuration = configuration(
    systems=[{{
        "name": "example",
        "hostnames": [".*"],
        "partitions": [{{
            "name": "node",
            "scheduler": "local",
            "launcher": "clustergate",
            "extras": {{
                "nodes": 1,
                "cores_per_node": 2,
                "memory_bytes_per_node": 2**31,
                "nominal_gflops_per_core": 40,
            }},
        }}],
    }}],
    stacks=[stack("mine", provider="folder", folder={settings})],
)
"""
Call = Callable[..., str]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, stacks: Path) -> Path:
    """Return a state folder that has MPICH, as the folder that the site config names."""
    home = tmp_path_factory.mktemp("home")
    (home / "cache").symlink_to(stacks / "cache")
    (home / "prefixes").mkdir()
    mine = Path(read_manifest(stacks, "mpich").mpi_prefix)
    for prefix in (stacks / "prefixes").iterdir():
        if prefix.name == mine.name:
            shutil.copytree(prefix, home / "prefixes" / prefix.name, symlinks=True)
        elif prefix.is_dir():
            (home / "prefixes" / prefix.name).symlink_to(prefix)
    return home


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory, home: Path, stacks: Path) -> Call:
    """Return what calls a copy of the suite that has this file among its providers."""
    # Not in the copy, of which this file is a part.
    from tests.own_provider import tree_with

    top = tmp_path_factory.mktemp("tree")
    clustergate = tree_with(Path(__file__), "folder", top)
    prefix = Path(read_manifest(stacks, "mpich").mpi_prefix)
    settings = {"prefix": str(home / "prefixes" / prefix.name), "version": "5.0.2"}
    (top / "example.py").write_text(SITE.format(settings=settings))

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [str(clustergate), *words]
        environment = {**os.environ, "CLUSTERGATE_HOME": str(home)}
        return subprocess.run(
            command, env=environment, cwd=top, capture_output=True, text=True, check=False
        )

    def call_on_site(*words: str, status: int = 0) -> str:
        ended = run(*words, "--site", str(top / "example.py"))
        assert ended.returncode == status, ended.stdout + ended.stderr
        return ended.stdout

    return call_on_site


@pytest.mark.long
def test_new_provider_sets_up_launches_and_is_pinned(call: Call, home: Path) -> None:
    (launcher,) = home.glob("prefixes/mpich-*/bin/mpirun")
    launcher.rename(launcher.with_name("gone"))
    said = call("doctor", status=2)
    assert "bin/mpirun" in said
    assert "cannot be read: it is gone" in said
    launcher.with_name("gone").rename(launcher)
    assert "is not set up yet" in call("doctor")
    assert "MPICH 5.0.2 in" in call("setup")
    manifest = read_manifest(home, "mine")
    assert (manifest.provider, manifest.program("xhpl").unavailable) == ("folder", "")
    assert "MPICH 5.0.2, set up" in call("doctor")
    (row,) = json.loads(call("list", "stacks", "--json"))
    assert (row["stack"], row["provider"], row["here"]) == ("mine", "folder", "MPICH 5.0.2")

    call("check", "--check", "StreamCheck", "--wait", "0s")
    (path,) = home.glob("results/runs/*/cases/StreamCheck-*.json")
    record = json.loads(path.read_text())
    assert (record["stack"], record["complaints"]) == ("mine", [])
    assert record["samples"]

    call("golden", "pin")
    assert [one.name for one in (home / "golden" / "mine" / "prefixes").iterdir()]
    (row,) = json.loads(call("list", "stacks", "--json"))
    assert row["golden_build"]
