"""A golden build proves itself: two ranks of it, and what the loader says of all its files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from clustergate.launching.launchers import exports
from clustergate.launching.plan import proof_folder
from clustergate.model import BadRequest
from clustergate.paths import state_dir
from clustergate.proof.ranks import read_proofs
from clustergate.stacks.manifest import Manifest
from clustergate.tuning.runs import HplRunner
from clustergate.tuning.space import Batch, default_configuration

_RANKS = 2
_N = 500
_LOADER_S = 60.0


def proven(manifest: Manifest, elsewhere: Iterable[Path], objects: Iterable[Path]) -> set[str]:
    """Launch HPL on two cores of this node, and return the files that its ranks had mapped.

    With them come those that the loader gives the other programs, and ``objects``, the stack's
    shared objects: what ranks load while they run, they may load in a job of several nodes alone.
    HPL needs both the MPI library and the BLAS; the library that watches it is not counted. Raises
    what the launch raises, and :class:`BadRequest` where a rank mapped,
    or the loader would give anything of the stack, a file of a folder in ``elsewhere``.
    """
    scratch = state_dir() / "stage"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="golden-") as folder:
        runner = HplRunner(manifest, Path(folder))
        runner.run(Batch((default_configuration(_RANKS),)), _N, 1)
        mapped = {
            name
            for proof in read_proofs(proof_folder(runner.engine.job, 0))
            for name in (*proof.objects, *proof.mpi_library, *filter(None, [proof.executable]))
            if name.startswith("/") and name != manifest.proof_library
        }
        programs = [one.path for one in manifest.programs.values() if not one.unavailable]
        listing = runner.engine.job / "ldd"
        asked = ["ldd", *programs, *map(str, objects)]
        runner.engine.run_aside(asked, exports(manifest, 1), listing.name, _LOADER_S)
        loaded = listing.read_text(encoding="utf-8", errors="replace")
    for place in (text for one in elsewhere for text in {f"{one}/", f"{one.resolve()}/"}):
        if original := sorted(
            {*(name for name in mapped if name.startswith(place)), *_at(place, loaded)}
        ):
            raise BadRequest("golden.loads-original", stack=manifest.stack, path=original[0])
    # HPL on one node needs less than the other programs, and a job of several nodes, do.
    return {name for name in {*mapped, *_at("/", loaded)} if Path(name).is_file()}


def _at(place: str, loaded: str) -> list[str]:
    words = (line.strip().partition(" => ") for line in loaded.splitlines() if line[:1].isspace())
    files = ((path or name).partition(" (0x")[0] for name, _, path in words)
    return [file for file in files if file.startswith(place)]
