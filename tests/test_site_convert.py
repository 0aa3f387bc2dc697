"""Site configs of the old form, by classes: each is printed in ReFrame's, and says the same."""

from __future__ import annotations

import dataclasses
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clustergate import cli, sites
from clustergate.sites import choice, configs, convert, description
from clustergate.sites.description import EXTRAS, SiteError

DOCUMENTED = """\
from clustergate.sites import configuration, Partition, Site, Stack

site_configuration = configuration(
    [
        Site(
            name="alpha",
            hostnames=[r"alpha-login\\d+", r"n\\d{3}"],
            partitions=[
                Partition(
                    name="compute",
                    scheduler="slurm",
                    access=["--partition=compute", "--exclusive"],
                    nodes=4,
                    cores_per_node=64,
                    memory_bytes_per_node=256 * 2**30,
                    nominal_gflops_per_core=2.5 * 16,
                    link_mb_s=12500,
                    reframe={"max_jobs": 1},
                ),
            ],
            stacks=[Stack("mpich"), Stack("openmpi", pmi="pmix_v4")],
        )
    ]
)
"""
DOCUMENTED_NOW = r"""
site_configuration = configuration(
    systems=[
        {
            "name": "alpha",
            "descr": "alpha",
            "hostnames": [r"alpha-login\d+", r"n\d{3}"],
            "partitions": [
                {
                    "name": "compute",
                    "scheduler": "slurm",
                    "launcher": "clustergate",
                    "access": ["--partition=compute", "--exclusive"],
                    "extras": {
                        "cores_per_node": 64,
                        "memory_bytes_per_node": 256 * 2**30,
                        "nominal_gflops_per_core": 40.0,
                        "nodes": 4,
                        "link_mb_s": 12500,
                    },
                    "max_jobs": 1,
                },
            ],
        },
    ],
    stacks=[
        stack("mpich"),
        stack("openmpi", pmi="pmix_v4"),
    ],
)
"""

# Partitions that share what they say, one of them by what was changed before.
SHARED = """\
from clustergate.sites import configuration, Partition, Site, Stack

NODE = {"scheduler": "local", "cores_per_node": 8, "memory_bytes_per_node": 2**34}
OTHER = {**NODE, "cores_per_node": 64, "memory_bytes_per_node": 2**38, "link_mb_s": 50000}
OTHER["environs"] = ["mpich"]
site_configuration = configuration(
    [
        Site(
            name="alpha",
            hostnames=["alpha"],
            partitions=[
                Partition(name="thin", nodes=4, nominal_gflops_per_core=40, **NODE),
                Partition(name="fat", nodes=2, nominal_gflops_per_core=96, **OTHER),
            ],
            stacks=[Stack("mpich"), Stack("openmpi", pmi="pmix")],
        )
    ]
)
"""
SHARED_NOW = """
HERE = {"scheduler": "local", "launcher": "clustergate"}
THIN = {"cores_per_node": 8, "memory_bytes_per_node": 2**34, "nominal_gflops_per_core": 40}
FAT = {"cores_per_node": 64, "memory_bytes_per_node": 2**38, "nominal_gflops_per_core": 96}
site_configuration = configuration(
    [{"name": "alpha", "descr": "alpha", "hostnames": ["alpha"], "partitions": [
        {"name": "thin", **HERE, "extras": {"nodes": 4, **THIN}},
        {"name": "fat", **HERE, "environs": ["mpich"],
         "extras": {"nodes": 2, "link_mb_s": 50000, **FAT}},
    ]}],
    [stack("mpich"), stack("openmpi", pmi="pmix")],
)
"""

# The classes from where they were defined, and a stack by the function beside them.
INNER = """\
from clustergate.sites.configs import configuration, stack
from clustergate.sites.description import Partition, Site
site_configuration = configuration([Site(
    name='beta', hostnames=['n.*'],
    partitions=[Partition(name='p', scheduler='local', cores_per_node=2,
        memory_bytes_per_node=2**30, nominal_gflops_per_core=10)],
    stacks=[stack('a', 'modules', modules={'load': ['m']}, cc='cc')],
)])
"""
INNER_NOW = """
site_configuration = configuration(
    [{"name": "beta", "descr": "beta", "hostnames": ["n.*"], "partitions": [
        {"name": "p", "scheduler": "local", "launcher": "clustergate", "extras": {
            "cores_per_node": 2, "memory_bytes_per_node": 2**30, "nominal_gflops_per_core": 10}},
    ]}],
    [stack("a", "modules", modules={"load": ["m"]}, cc="cc")],
)
"""

# Everything that the classes could say, dictionaries beside them, and what a program can do.
WHOLE = '''\
"""Gamma, whose "docstring" stays."""
import dataclasses
import os
from pathlib import Path

import clustergate.sites as s
from clustergate.sites import Partition as Part, configuration, stack

by_name_alone = True
# The nodes of the first delivery.
first = Part(
    name="first", scheduler="slurm", launcher="clustergate-srun",
    access=("--partition=a", "--exclusive", "--constraint='x'"), environs=("mpich", "gnu"),
    cores_per_node=64, memory_bytes_per_node=3 * 2**29, nominal_gflops_per_core=2.5 * 16,
    nodes=4, cache_bytes_per_node=2**27, link_mb_s=12500, fabric=("mlx5_0",), exclusive=False,
    reserved_cores_per_node=0, waived='its vendor says "no"', bind_to_cores=False,
    screen_at_once=1, process_counts=(2, 4), placements=["packed"], flush_bytes=0,
    watts_per_socket=225, cores_per_socket=32, power_of="socket", mode="smoke",
    other_tests={"mem": 1, "path": Path("/x")},  # other people's
    reframe={"max_jobs": 2, "env_vars": [["LD_PRELOAD", r"/opt/a\\\\b"]], "extras": {}},
)
second = dataclasses.replace(first, name="second", waived="", environs=None, exclusive=None)
parts = [first, second] + [
    Part(name=f"p{n}", scheduler="local", cores_per_node=n, memory_bytes_per_node=2**30,
         nominal_gflops_per_core=1) for n in (1, 2)
]
third = {"name": "third", "scheduler": "local", "launcher": "clustergate", "extras": {
    "cores_per_node": 2, "memory_bytes_per_node": 2**30, "nominal_gflops_per_core": 10}}
site_configuration = configuration(
    systems=[s.Site(name="gamma", descr="it's \\"gamma\\"", hostnames=(r"g\\d", "h"),
                    partitions=(*parts, third), reframe={"modules_system": "lmod"},
                    stacks=[s.Stack("mpich", waived={"HpccCheck": "no build"},
                                    benchmarks={"hpl": {"nb": 192, "grid": "1x1"}},
                                    reframe={"env_vars": [["A", "1"]], "features": ["x"],
                                             "extras": {"other_tests": {"a": None}}})])],
    stacks=[
        s.Stack("spack-mpich", "spack", {"blas": "openblas", "applications": ["npb", "lammps"],
                "scopes": ["/shared/a-long-folder/spack-config", "/shared/another-long-folder/x"]}),
        s.Stack("vendor", provider="modules", settings={"load": ["a", "b"]}, waived="not ours"),
        stack("openmpi", pmi="pmix"),
        {"name": "gnu", "cc": "gcc", "extras": {"arch": True}},
    ],
)
'''
WHOLE_NOW = r"""
SIZE = {"cores_per_node": 64, "memory_bytes_per_node": 1536 * 2**20, "nodes": 4,
        "nominal_gflops_per_core": 40.0, "cache_bytes_per_node": 128 * 2**20, "link_mb_s": 12500,
        "fabric": ["mlx5_0"], "reserved_cores_per_node": 0, "bind_to_cores": False,
        "screen_at_once": 1, "process_counts": [2, 4], "placements": ["packed"], "flush_bytes": 0,
        "watts_per_socket": 225, "cores_per_socket": 32, "power_of": "socket", "mode": "smoke",
        "other_tests": {"mem": 1, "path": "/x"}}
SLURM = {"scheduler": "slurm", "launcher": "clustergate-srun", "max_jobs": 2,
         "access": ["--partition=a", "--exclusive", "--constraint='x'"],
         "env_vars": [["LD_PRELOAD", r"/opt/a\\b"]]}
HERE = {"scheduler": "local", "launcher": "clustergate"}
SMALL = {"memory_bytes_per_node": 2**30, "nominal_gflops_per_core": 1}
site_configuration = configuration(
    [{"name": "gamma", "descr": "it's \"gamma\"", "hostnames": [r"g\d", "h"],
      "modules_system": "lmod", "partitions": [
        {"name": "first", **SLURM, "environs": ["mpich", "gnu"], "extras": {
            **SIZE, "exclusive": False, "waived": 'its vendor says "no"'}},
        {"name": "second", **SLURM, "extras": SIZE},
        {"name": "p1", **HERE, "extras": {**SMALL, "cores_per_node": 1}},
        {"name": "p2", **HERE, "extras": {**SMALL, "cores_per_node": 2}},
        {"name": "third", **HERE, "extras": {**SMALL, "cores_per_node": 2,
            "nominal_gflops_per_core": 10}},
    ]}],
    [
        stack("mpich", waived={"HpccCheck": "no build"}, hpl={"nb": 192, "grid": "1x1"},
              env_vars=[["A", "1"]], features=["x"], extras={"other_tests": {"a": None}}),
        stack("spack-mpich", "spack", spack={
            "blas": "openblas", "applications": ["npb", "lammps"],
            "scopes": ["/shared/a-long-folder/spack-config", "/shared/another-long-folder/x"]}),
        stack("vendor", "modules", modules={"load": ["a", "b"]}, waived="not ours"),
        stack("openmpi", pmi="pmix"),
        {"name": "gnu", "cc": "gcc", "extras": {"arch": True}},
    ],
)
"""
OLD = {
    "documented": (DOCUMENTED, DOCUMENTED_NOW),
    "shared": (SHARED, SHARED_NOW),
    "inner": (INNER, INNER_NOW),
    "whole": (WHOLE, WHOLE_NOW),
}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    return tmp_path / "old.py"


def converted(path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return the file with what the command prints of a site config."""
    path.write_text(text, encoding="utf-8")
    assert cli.main(["site", "convert", str(path)]) == 0
    new = path.with_name("new.py")
    new.write_text(capsys.readouterr().out, encoding="utf-8")
    return new


def said_in(path: Path) -> Any:
    """Return what ReFrame and the suite read of a site config."""
    said = runpy.run_path(str(path))["site_configuration"]
    return json.loads(json.dumps(said)), dataclasses.asdict(configs.load(path))


@pytest.mark.parametrize(("old", "now"), OLD.values(), ids=OLD)
def test_each_says_the_same_in_reframes_form(
    path: Path, old: str, now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Systems, partitions, stacks, modes and extras are those that somebody wrote by hand."""
    new = converted(path, old, capsys)
    by_hand = path.with_name("by_hand.py")
    by_hand.write_text(f"from clustergate.sites import configuration, stack\n{now}")
    assert said_in(new) == said_in(by_hand)


@pytest.mark.parametrize("old", [old for old, _ in OLD.values()], ids=OLD)
def test_it_is_formatted(path: Path, old: str, capsys: pytest.CaptureFixture[str]) -> None:
    new = converted(path, old, capsys)
    ruff = Path(sys.executable).with_name("ruff")
    command = [str(ruff), "format", "--isolated", "--line-length=100", "--diff", str(new)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


def test_the_documented_one_is_printed_as_somebody_would_write_it(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = converted(path, DOCUMENTED, capsys).read_text(encoding="utf-8")
    assert text.endswith(DOCUMENTED_NOW)


def test_its_docstring_stays_and_its_comments_are_listed(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = converted(path, WHOLE, capsys)
    lines = new.read_text(encoding="utf-8").splitlines()
    assert lines[0] == '"""Gamma, whose "docstring" stays."""'
    assert "# 10: The nodes of the first delivery." in lines
    assert "# 19: other people's" in lines
    assert choice.is_by_name_alone(new)
    assert choice.hostname_patterns(new) == choice.hostname_patterns(path) == [r"g\d", "h"]


@pytest.mark.parametrize("old", [old for old, _ in OLD.values()], ids=OLD)
def test_loaded_it_is_refused_with_the_command(path: Path, old: str) -> None:
    path.write_text(old, encoding="utf-8")
    with pytest.raises(SiteError) as refused:
        configs.load(path)
    says = str(refused.value)
    assert says.startswith(f"{path}: the classes Site, Partition and Stack were removed; `")
    assert f"clustergate site convert {path}` prints this site config in ReFrame's form" in says


def test_reframe_refuses_it_in_one_sentence(path: Path) -> None:
    path.write_text(SHARED)
    program = Path(sys.executable).with_name("reframe")
    command = [str(program), "-C", str(path), "-c", str(path.parent), "-l"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=path.parent)
    assert ended.returncode == 1
    assert (
        f"{path}: the classes Site, Partition and Stack were removed; "
        in ended.stdout + ended.stderr
    )
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_file_in_another_encoding_that_prints_is_converted(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"# coding: latin-1\n# für uns\nprint('here')\n{SHARED}"
    path.write_bytes(text.replace("\n", "\r\n").encode("latin-1"))
    assert cli.main(["site", "convert", str(path)]) == 0
    printed = capsys.readouterr()
    assert "# 2: für uns\n" in printed.out
    assert "here" in printed.err
    assert "\nhere" not in printed.out


def test_what_reads_site_configs_is_as_before(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = (sites, configs, description)
    before = [dict(vars(module)) for module in modules]
    converted(path, SHARED, capsys)
    path.write_text(SHARED.replace("nodes=4", "nodes=undefined"))
    with pytest.raises(SiteError, match=r"old\.py:12: NameError"):
        convert.converted(path)
    assert [dict(vars(module)) for module in modules] == before


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        ("x = (", 2, r"old.py:1: '\(' was never closed"),
        (DOCUMENTED.replace("nodes=4", "node=4"), 2, r"old.py:9: TypeError: .*argument 'node'"),
        (DOCUMENTED.replace("nodes=4", "nodes={1}"), 2, r"old.py: \{1\} is not a literal; "),
        (DOCUMENTED.replace("12500", "float('nan')"), 2, r"old.py: nan is not a literal; "),
        ("x = 1", 1, "old.py: it uses none of the classes"),
        (INNER_NOW, 2, "old.py:2: NameError"),
        (f"from clustergate.sites import *\n{INNER_NOW}", 1, "old.py: it uses none of the classes"),
    ],
)
def test_what_is_not_converted_is_told(
    path: Path, text: str, status: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(text)
    assert cli.main(["site", "convert", str(path)]) == status
    printed = capsys.readouterr()
    assert not printed.out
    assert len(printed.err.splitlines()) == 1
    assert re.search(why, printed.err), printed.err


def test_no_file_is_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["site", "convert", str(path)]) == 2
    assert f"no site config {path}" in capsys.readouterr().err


def test_every_extra_of_the_classes_is_one_of_today() -> None:
    """What they could say must not vanish from what may be said."""
    assert {*convert._EXTRAS} <= {one.name for one in EXTRAS}
