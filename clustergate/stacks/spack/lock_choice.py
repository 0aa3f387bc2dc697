"""Which lock a stack is built from: the committed one where it fits, else one of this site's own.

A committed lock fits if its specs are those of the environment, what it takes from this machine is
here, and the recipes are those it was made with.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustergate.core.files.whole import read_json, write_whole
from clustergate.core.model import Say
from clustergate.core.notation import listed
from clustergate.stacks.lacking import Lack, install_line
from clustergate.stacks.spack import locks, recipes
from clustergate.stacks.spack.composition import SpackRequest
from clustergate.stacks.spack.externals import SYSTEM_FOLDERS, specs_of_wheels
from clustergate.stacks.spack.libraries import package_name
from clustergate.stacks.spack.locks import Lock
from clustergate.stacks.spack.settings import environment_file

# Stands for the state folder in a committed lock: there the wheels are that it takes.
STATE = "@state@"
# The prefix under which a lock has what comes from the operating system's packages.
SYSTEM_PREFIX = "/usr"


@dataclass(frozen=True)
class ChosenLock:
    """A lock with its text, and in words where it came from."""

    lock: Lock
    text: str
    origin: str
    committed: bool = False

    @property
    def name(self) -> str:
        return Path(self.lock.source).name


def choose(request: SpackRequest, say: Say) -> ChosenLock | None:
    """Return the lock to build a stack from; None where Spack has to concretize."""
    committed, own = committed_lock(request), own_lock(request)
    why = why_unfit(request, committed.lock) if committed else ""
    if committed and not why:
        if own:
            say(f"taking the committed lock {committed.name}, which fits, not {own.lock.source}")
        return committed
    if own and (came := tools_since(request)):
        say(f"concretizing again, to use the operating system's {', '.join(came)}")
        return None
    if not (own and committed):
        return own
    say(f"taking {own.lock.source}: {unused(request)}")
    origin = f"{own.origin.removesuffix(')')}, since the committed {committed.name} {why})"
    return ChosenLock(own.lock, own.text, origin)


def unused(request: SpackRequest) -> str:
    """Return in words why the committed lock is not taken, and what changes that; or nothing."""
    committed = committed_lock(request)
    why = why_unfit(request, committed.lock) if committed else ""
    if not committed or not why:
        return ""
    tools = [lack.package for lack in missing_tools(committed.lock)]
    remedy = f"; to use it, `{install_line(tools)}` and set up again" if tools else ""
    return f"the committed lock {committed.name} {why}{remedy}"


def committed_lock(request: SpackRequest) -> ChosenLock | None:
    """Return the committed lock of this machine's kind, whether it fits or not."""
    if not request.may_use_committed_lock():
        return None
    settings = request.settings
    folder = environment_file(settings, request.repository).parent / "locks" / settings.externals
    machine = locks.host()
    path = locks.committed_lock(folder, machine, blas=settings.blas, target=settings.target)
    if path is None:
        return None
    text = path.read_text(encoding="utf-8").replace(STATE, json.dumps(str(request.state))[1:-1])
    return ChosenLock(locks.parse_lock(text, str(path)), text, f"{path} (committed)", True)


def own_lock(request: SpackRequest) -> ChosenLock | None:
    """Return the lock that was concretized for this site, if one was."""
    kept = kept_lock(request, locks.host())
    if not kept.is_file():
        return None
    day = datetime.date.fromtimestamp(kept.stat().st_mtime).isoformat()
    text = kept.read_text(encoding="utf-8")
    origin = f"{kept} (concretized for this site on {day})"
    return ChosenLock(locks.parse_lock(text, str(kept)), text, origin)


def kept_lock(request: SpackRequest, machine: locks.Host) -> Path:
    """Return where the lock that was concretized for a site is kept.

    Its name holds all that it depends on, so that an unchanged stack finds it again.
    """
    where = f"{machine.system}-{request.settings.target or machine.targets[0]}"
    return request.state / "spack" / "locks" / f"{request.stack}-{where}-{request.inputs}.lock"


def keep(request: SpackRequest, text: str, without: Sequence[str]) -> None:
    """Keep a lock that Spack has concretized for this site, and which tools it could not have."""
    kept = kept_lock(request, locks.host())
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_whole(tools_beside(kept), json.dumps(list(without)) + "\n")
    write_whole(kept, text)


def why_unfit(request: SpackRequest, lock: Lock) -> str:
    """Return why a committed lock does not fit this stack and machine; empty when it does."""
    if why := _objection(request, lock):
        return why
    if tools := [lack.what for lack in missing_tools(lock)]:
        return f"needs the operating system's {', '.join(tools)} (not installed)"
    return ""


def committed_but_for_tools(request: SpackRequest) -> ChosenLock | None:
    """Return the committed lock that would fit once the operating system has its tools."""
    committed = committed_lock(request)
    return committed if committed and not _objection(request, committed.lock) else None


def _objection(request: SpackRequest, lock: Lock) -> str:
    """Return what speaks against a committed lock that no package of the system's mends."""
    of_the_system = {path for path in lock.compilers().values() if _in_system(path)}
    files = [file for file in lock.needed_files() if file not in of_the_system]
    if absent := [file for file in files if not Path(file).exists()]:
        return f"needs {', '.join(absent)}, missing on this machine"
    given = (
        specs_of_wheels(request.mpi, request.settings.blas) if request.settings.externals else {}
    )
    specs = [given.get(package_name(spec), spec) for spec in request.specs]
    if more := locks.disagreement(lock, specs):
        return more
    if changed := _other_recipes(request, lock):
        return f"is of another recipe of {listed(changed, 3)}"
    return ""


def missing_tools(lock: Lock) -> list[Lack]:
    """Return what a lock takes from the operating system's packages and is not installed."""
    absent = {
        language: path
        for language, path in lock.compilers().items()
        if _in_system(path) and not Path(path).exists()
    }
    compilers = [recipes.LANGUAGES[language] for language in absent]
    taken = {spec.name for spec in lock.specs.values() if spec.external == SYSTEM_PREFIX}
    tools = [name for name in recipes.tools_to_compile() if name in taken]
    return [Lack(name, name) for name in (*compilers, *tools)]


def _in_system(path: str) -> bool:
    return str(Path(path).parent) in SYSTEM_FOLDERS


def tools_beside(kept: Path) -> Path:
    """Return the file that keeps which build tools a lock made for a site could not have."""
    return kept.with_suffix(".tools")


def tools_since(request: SpackRequest) -> list[str]:
    """Return the build tools that the operating system had not when the site's lock was made."""
    if not request.settings.externals:
        return []
    # Without the file the lock came from another machine, or nobody kept that then.
    then = _read(tools_beside(kept_lock(request, locks.host())), [])
    return sorted({*then} - {*recipes.tools_to_compile()})


def note_other_recipes(request: SpackRequest, lock: Lock, changed: Sequence[str]) -> None:
    """Keep that recipes are not those a committed lock was made with: only Spack can tell."""
    note = _recipes_beside(request)
    note.parent.mkdir(parents=True, exist_ok=True)
    write_whole(note, json.dumps({lock.digest: list(changed)}) + "\n")


def _other_recipes(request: SpackRequest, lock: Lock) -> list[str]:
    changed: list[str] = _read(_recipes_beside(request), {}).get(lock.digest, [])
    return changed


def _recipes_beside(request: SpackRequest) -> Path:
    # Its name holds the recipes, too: for others nothing is noted.
    return kept_lock(request, locks.host()).with_suffix(".other-recipes")


def _read(path: Path, otherwise: Any) -> Any:
    try:
        read = read_json(path)
    except (OSError, ValueError):
        return otherwise
    return read if isinstance(read, type(otherwise)) else otherwise
