"""A golden build proves itself: two ranks of it, and what the loader says of all its files."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from clustergate.benchmarks.descriptor import Benchmark
from clustergate.benchmarks.registry import trial_launch
from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Words, sentence_of
from clustergate.launch.dialects import Layout, launch_options
from clustergate.launch.engine import Engine
from clustergate.launch.launchers import exports
from clustergate.launch.plan import ERRORS, Contender, launch_folder, proof_folder
from clustergate.launch.proof.ranks import read_proofs
from clustergate.launch.reading import ending_of, expected_of, read_planned
from clustergate.launch.watchdog import Patience
from clustergate.machine.environment import clean_environment
from clustergate.stacks.manifest import Manifest

_RANKS = 2
_LAUNCH_S = 120.0
_LOADER_S = 60.0


LOADS_ORIGINAL = Words(
    "golden.loads-original",
    "the copy of {stack} is not self-contained",
    cause="it still loads {path}",
    remedy="a program with an RPATH does, link it with -Wl,--enable-new-dtags",
)


def proven(manifest: Manifest, elsewhere: Iterable[Path], objects: Iterable[Path]) -> set[str]:
    """Launch a small problem on two cores of this node; return the files its ranks had mapped.

    With them come those that the loader gives the other programs, and ``objects``, the stack's
    shared objects: what ranks load while they run, they may load in a job of several nodes alone.
    It needs both the MPI library and the BLAS; the library that watches it is not counted. Raises
    what the launch raises, and :class:`BadRequest` where a rank mapped,
    or the loader would give anything of the stack, a file of a folder in ``elsewhere``.
    """
    scratch = state_dir() / "stage"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="golden-") as folder:
        engine = _launched(manifest, Path(folder))
        mapped = {
            name
            for proof in read_proofs(proof_folder(engine.job, 0))
            for name in (*proof.objects, *proof.mpi_library, *filter(None, [proof.executable]))
            if name.startswith("/") and name != manifest.proof_library
        }
        programs = [one.path for one in manifest.programs.values() if not one.unavailable]
        listing = engine.job / "ldd"
        asked = ["ldd", *programs, *map(str, objects)]
        engine.run_aside(asked, exports(manifest, 1), listing.name, _LOADER_S)
        loaded = listing.read_text(encoding="utf-8", errors="replace")
    for place in (text for one in elsewhere for text in {f"{one}/", f"{one.resolve()}/"}):
        if original := sorted(
            {*(name for name in mapped if name.startswith(place)), *_at(place, loaded)}
        ):
            raise BadRequest(LOADS_ORIGINAL(stack=manifest.stack, path=original[0]))
    # A launch on one node needs less than the other programs, and a job of several nodes, do.
    return {name for name in {*mapped, *_at("/", loaded)} if Path(name).is_file()}


NO_LAUNCH = Words(
    "golden.no-launch",
    "the launch of the golden build of {stack} failed its proof",
    cause="{why}",
    remedy="`clustergate setup` builds the stack anew",
)


def _launched(manifest: Manifest, folder: Path) -> Engine:
    """Launch a stack once, in the folder of a job; raises for what is not proven."""
    trial = trial_launch(_RANKS)
    program = manifest.program(trial.program)
    if program.unavailable:
        raise ClustergateError(NO_LAUNCH(stack=manifest.stack, why=program.unavailable))
    nonce = secrets.token_hex(8)
    environ = dict(clean_environment(os.environ).environment)
    engine = Engine(folder, nonce, environ=environ, own_sessions=True)
    engine.begin_log()
    engine.keep_home_out()
    layout, blas = Layout(_RANKS, _RANKS, 1), manifest.blas
    contender = Contender(
        name=manifest.stack,
        launcher=[manifest.launcher, *launch_options(manifest.dialect, layout)],
        program=[program.path],
        proof_library=manifest.proof_library,
        environment=exports(manifest, 1),
        inputs=trial.inputs,
        seconds=_LAUNCH_S,
        patience=Patience.of(_RANKS, 1, call_s=Benchmark.longest_call_s, computing_s=_LAUNCH_S),
        expected=replace(
            expected_of(manifest, layout),
            threads_per_rank=1,
            blas_library=blas.library if blas else None,
        ),
    )
    launched = engine.launch(contender, 0)
    why = ending_of(launched.status, [launch_folder(engine.job, 0) / ERRORS])
    if not launched.status:
        complaints, _ = read_planned(engine.job, nonce, contender, launched, trial.parse)
        why = sentence_of(complaints) if complaints else ""
    if why:
        raise ClustergateError(NO_LAUNCH(stack=manifest.stack, why=why))
    return engine


def _at(place: str, loaded: str) -> list[str]:
    words = (line.strip().partition(" => ") for line in loaded.splitlines() if line[:1].isspace())
    files = ((path or name).partition(" (0x")[0] for name, _, path in words)
    return [file for file in files if file.startswith(place)]
