"""A provider of stand-ins: the MPI libraries of wheels, with benchmarks that measure nothing.

Its file lies among the providers of a copy of the tree (see test_new_provider.py). All that a stack
of its says of itself says "simulated".
"""

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clustergate.stacks import wheels
from clustergate.stacks.builder import SetUp
from clustergate.stacks.compilation import build_key, run_compiler
from clustergate.stacks.manifest import Manifest, Program
from clustergate.stacks.provider import Provider

PREFIX = "simulated-"
_COMPUTING, _ALONE = ("xhpl", "hpcc", "dgemm"), ("node_peaks", "dgemm", "core_distance")
PROGRAMS = ("xhpl", "hpcc", "IMB-MPI1", *_ALONE)


def provide(set_up: SetUp) -> Manifest:
    """Compile the stand-ins beside the library of a wheel."""
    named = set_up.stack.removeprefix(PREFIX)
    real = wheels.provide(dataclasses.replace(set_up, stack=named, settings={}))
    source, machine = Path(set_up.settings["source"]), set_up.settings["machine"]
    assert real.blas is not None
    said = json.dumps([named, machine, real.build_key])
    folder = set_up.state / "builds" / f"{set_up.stack}-{build_key([said], [source])}"
    blas = Path(real.blas.library)
    told = ["-O2", f'-DMACHINE="{machine}"', f'-DSTACK="{named}"', str(source)]
    linked = ["-DCORENAME=scipy_openblas_get_corename", str(blas), f"-Wl,-rpath,{blas.parent}"]
    wrapper = [str(Path(real.mpi_prefix) / "bin" / "mpicc")]
    if not folder.is_dir():
        made = folder.with_name(f".{folder.name}")
        shutil.rmtree(made, ignore_errors=True)
        (made / "bin").mkdir(parents=True)
        environment = {**os.environ, "I_MPI_ROOT": real.mpi_prefix}
        for name in PROGRAMS:
            words = ["cc", "-DALONE"] if name in _ALONE else wrapper
            words = [*words, *told, "-o", str(made / "bin" / name)]
            words += linked if name in _COMPUTING else []
            run_compiler(words, environment, folder.with_suffix(".log"))
        made.rename(folder)
    simulated = {
        name: Program(str(folder / "bin" / name), "0", "simulated: it measures nothing")
        for name in PROGRAMS
    }
    return dataclasses.replace(
        real,
        stack=set_up.stack,
        provider=PROVIDER.name,
        mpi_name=f"simulated {real.mpi_name}",
        programs=simulated,
        build_key=folder.name.rpartition("-")[2],
    )


def planned(stack: str, settings: Mapping[str, Any]) -> Manifest:
    """Return what that would be."""
    known = wheels.planned(stack.removeprefix(PREFIX))
    return dataclasses.replace(known, stack=stack, provider=PROVIDER.name)


PROVIDER = Provider(
    name="simulated",
    provide=provide,
    planned=planned,
    settings={
        "type": "object",
        "properties": {"machine": {"type": "string"}, "source": {"type": "string"}},
        "required": ["machine", "source"],
        "additionalProperties": False,
    },
    names=tuple(f"{PREFIX}{name}" for name in wheels.STACKS),
    copied=True,
)
