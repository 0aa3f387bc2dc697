"""What a set-up costs that has nothing to do: Spack has built its stacks, and nothing changed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from clustergate.core.files.whole import write_whole
from clustergate.stacks.manifest import Program, write_manifest
from clustergate.stacks.spack import lock_choice, locks, provider
from clustergate.stacks.spack.composition import read_spack_request
from tools.bench.spread import Aim, Figure
from tools.bench.workspace import Workspace

SECTION = "set-up"
STACKS = 12
_SETTINGS = {"environment": "openmpi"}
_AIM = Aim(at_most=2.0)


def measure(
    room: Workspace, *, rounds: Iterable[int], say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield the processor time of ``clustergate setup`` with stacks that are unchanged.

    Raises :class:`~tools.bench.workspace.BenchError` when one is to be built.
    """
    say(f"set-up: {STACKS} unchanged stacks of Spack")
    stacks = [f"spack-unchanged-{number}" for number in range(STACKS)]
    for stack in stacks:
        note_as_built(stack, room.home)
    command = [sys.executable, "-m", "clustergate", "setup", "--provider", "spack"]
    command += ["--settings", json.dumps(_SETTINGS)]
    command += [word for stack in stacks for word in ("--stack", stack)]
    # There is no Spack, so that nothing can be built.
    nowhere = {"SPACK_ROOT": str(room.home)}
    seconds = [room.timed(command, variables=nowhere).cpu_seconds for _ in rounds]
    what = "user and system time of `clustergate setup` from its start to its end"
    subject = f"{STACKS} stacks of Spack, unchanged"
    yield Figure(SECTION, subject, "processor time", "s", seconds, what, _AIM)


def note_as_built(stack: str, state: Path) -> None:
    """Write the lock and the manifest of a stack; of what is built only its presence is asked."""
    request = read_spack_request(stack, state, _SETTINGS)
    environment = request.repository / "environments" / _SETTINGS["environment"]
    text = next(environment.glob("locks/*.lock")).read_text(encoding="utf-8")
    kept = lock_choice.kept_lock(request, locks.host())
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_whole(kept, text)
    there = sys.executable
    planned = provider.planned(stack, _SETTINGS)
    programs = {
        name: one if one.unavailable else Program(there) for name, one in planned.programs.items()
    }
    built = replace(
        planned,
        programs=programs,
        launcher=there,
        mpi_library=there,
        proof_library=there,
        build_key=provider.key_of_build(request, locks.parse_lock(text, str(kept))),
    )
    write_manifest(state, built)
