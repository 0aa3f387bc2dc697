"""The provider of what a site has already: an MPI library that a module, or a Spack, gives.

Its wrappers compile the benchmarks, as those of the wheels do, with OpenBLAS from its wheel. What
loading sets is read at each set-up and exported by each job, so that compute nodes need no module
command. The checksums of the wrapper and the library are part of the build's key: where a module
comes to mean another library, all is compiled anew, and a job that finds another is not proven.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustergate.core.files.shared import locked
from clustergate.core.files.whole import scratch_beside
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.machine.environment import clean_environment
from clustergate.machine.processes import capture
from clustergate.stacks.builder import (
    OPENBLAS,
    Builder,
    SetUp,
    Toolchain,
    openblas_linkage,
    planned_with,
    with_programs,
)
from clustergate.stacks.existing import MODULE_COMMAND, MODULES_LATE, site_lines_here
from clustergate.stacks.manifest import Manifest
from clustergate.stacks.prefixes import install_prefix
from clustergate.stacks.provider import Provider, TooSlow
from clustergate.stacks.spack.composition import UNPROVEN_FORTRAN
from clustergate.stacks.spack.libraries import (
    MPI_PACKAGES,
    MpiPackage,
    mpi_of_answer,
    mpi_of_module,
)

RECIPE = "1"  # part of every build's key: raise it when a program is compiled differently
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
# Where nothing is loaded; what a shell brought along would hide what loading adds.
_BARE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The accounts of those who load, and of the shell.
_BOOKKEEPING = re.compile(
    r"LOADEDMODULES|_LMFILES_.*|_ModuleTable.*|__LMOD.*|LMOD_.*|__MODULES.*|MODULE.*|SPACK_.*|"
    r"BASH_.*|SHLVL|OLDPWD|PWD|_"
)
_IN_FRONT = ("PATH", "LD_LIBRARY_PATH")
# A Spack reads all of its recipes when it is first asked: a minute of processor time.
_TIME_LIMIT_S = 600
_ASK = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  char said[MPI_MAX_LIBRARY_VERSION_STRING], *path;
  int length;
  Dl_info at;
  if (MPI_Get_library_version(said, &length) || !dladdr(dlsym(RTLD_DEFAULT, "MPI_Init"), &at) ||
      !(path = realpath(at.dli_fname, NULL)))
    return 1;
  printf("%s\\n%s\\n", path, said);
  return 0;
}
"""


@dataclass(frozen=True)
class Loading:
    """What a site config says: names to load, in this order.

    ``use`` are further folders of modules. With ``spack``, the root of a Spack, they are specs that
    it has installed instead of modules.
    """

    load: Sequence[str]
    use: Sequence[str] = ()
    spack: str = ""

    def __str__(self) -> str:
        return " ".join(["spack" if self.spack else "module", "load", *self.load])

    @property
    def script(self) -> str:
        """The lines of bash that print the environment before and after, by NUL."""
        setup = f". {shlex.quote(self.spack)}/share/spack/setup-env.sh || exit 127\n"
        lines = [setup if self.spack else MODULE_COMMAND, "env -0; printf '\\0'"]
        lines += [f"module use {shlex.quote(folder)} >&2 || exit" for folder in self.use]
        command = "spack" if self.spack else "module"
        lines += [f"{command} load {shlex.quote(name)} >&2 || exit" for name in self.load]
        return "\n".join([*lines, "env -0"])

    @property
    def mpi(self) -> MpiPackage:
        """The MPI library by the names alone; MPICH, where they do not tell."""
        known = (mpi_of_module(name) for name in reversed(self.load))
        return next(filter(None, known), MPI_PACKAGES["mpich"])


NO_WRAPPER = Words(
    "modules.no-wrapper",
    "`{loading}` puts no mpicc on PATH",
    remedy="load the module of an MPI library with its compiler wrappers",
)
NO_LAUNCHER = Words(
    "modules.no-launcher",
    "`{loading}` puts neither mpirun nor mpiexec on PATH",
    remedy="also load the module of the MPI library's launcher",
)


def provide(set_up: SetUp) -> Manifest:
    """Load what the settings name, compile the benchmarks with it and return the manifest.

    Raises :class:`~clustergate.core.model.ClustergateError` where that gives no known MPI library.
    """
    loading, stack, state = Loading(**set_up.settings), set_up.stack, set_up.state
    builds = state / "builds"
    set_up = set_up.saying(stack)
    with locked(builds / f"{stack}.lock", say=set_up.say):
        set_up.say(f"running `{loading}`")
        loaded = load(loading)
        wrapper = _program("mpicc", loaded)
        if wrapper is None:
            raise ClustergateError(NO_WRAPPER(loading=str(loading)))
        library, mpi, version = identify(loading, loaded, wrapper, builds / f"{stack}-ask")
        launcher = _program("mpirun", loaded) or _program("mpiexec", loaded)
        if launcher is None:
            raise ClustergateError(NO_LAUNCHER(loading=str(loading)))
        blas = install_prefix(OPENBLAS, state, set_up.say)
        toolchain = Toolchain(
            prefix=wrapper.parents[1],
            wrappers=wrapper.parent,
            blas=openblas_linkage(blas),
            key=(RECIPE, str(loading), str(wrapper), _sum(wrapper), _sum(library), blas.name),
            mpich_abi=(library.parent / "libmpi.so.12").exists(),
            no_fortran="" if mpi.proves_fortran else UNPROVEN_FORTRAN.format(mpi.title),
            environment=loaded,
        )
        libraries = dict.fromkeys([*_folders(loaded, "LD_LIBRARY_PATH"), str(library.parent)])
        known = Manifest(
            stack,
            "modules",
            mpi_prefix=str(toolchain.prefix),
            mpi_library=str(library),
            environment={**loaded, "LD_LIBRARY_PATH": ":".join(libraries)},
            lock=f"{loading}: mpicc {_sum(wrapper)[:12]}, {library.name} {_sum(library)[:12]}",
        )
        return with_programs(
            planned_with(known, mpi, version, launcher=str(launcher)),
            Builder(set_up, toolchain),
        )


def planned(stack: str, settings: Mapping[str, Any]) -> Manifest:
    """Return what :func:`provide` would write as far as names tell, of no version."""
    return planned_with(Manifest(stack, "modules"), Loading(**settings).mpi, "")


MODULES_NOBODY = Words(
    "modules.nobody",
    "`{loading}` cannot be tried: there is no such command here",
    remedy="install Lmod or Environment Modules, or correct the root of Spack in the site config",
)
NOT_LOADED = Words(
    "modules.not-loaded",
    "`{loading}` failed",
    cause="{why}",
    remedy=(
        "run `{search}`, which lists what there is and what must be loaded first, and correct "
        "`load` of the stack in the site config"
    ),
)
MODULES_PRELOAD = Words(
    "modules.preload",
    "`{loading}` preloads {preload} into every program",
    remedy="load another module, or declare it by LD_PRELOAD in the stack's env_vars",
)


def load(loading: Loading, limit_s: float = _TIME_LIMIT_S) -> dict[str, str]:
    """Return the variables that loading sets; of search paths what it puts in front.

    Raises :class:`~clustergate.core.model.ClustergateError` where it fails, or there is nobody to
    ask, :class:`TooSlow` where it does not end.
    """
    clean = {**clean_environment(os.environ).environment, "PATH": _BARE_PATH}
    try:
        ended = capture(["bash", "-c", loading.script], env=clean, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise TooSlow(MODULES_LATE(loading=str(loading), limit_s=limit_s)) from None
    if ended.returncode == 127 and not ended.stdout:
        raise ClustergateError(MODULES_NOBODY(loading=str(loading), spack=loading.spack))
    before, _, after = ended.stdout.partition("\0\0")
    if ended.returncode or not after:
        # Lmod's advice, which knows nothing of site configs, follows what is wrong.
        paragraphs = re.split(r"\n\s*\n", ended.stderr.strip())
        wrong = next((text for text in paragraphs if "error" in text.lower()), paragraphs[0])
        why = textwrap.shorten(wrong, 300, placeholder=" …") or "no reason given"
        named = next((name for name in loading.load if name in wrong), loading.load[-1])
        search = "spack find" if loading.spack else "module spider"
        search += f" {re.split('[/@]', named)[0]}"
        raise ClustergateError(NOT_LOADED(loading=str(loading), why=why, search=search))
    changed = changes(_variables(before), _variables(after))
    if "LD_PRELOAD" in changed:
        raise ClustergateError(MODULES_PRELOAD(loading=str(loading), preload=changed["LD_PRELOAD"]))
    return changed


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are new or other; of search paths the new folders alone."""
    changed = {
        name: value
        for name, value in after.items()
        if value != before.get(name) and not _BOOKKEEPING.fullmatch(name)
    }
    for name in _IN_FRONT:
        known = _folders(before, name)
        new = [one for one in dict.fromkeys(_folders(after, name)) if one not in known]
        changed.pop(name, None)
        if new or name == "PATH":
            changed[name] = ":".join(new)
    return changed


def _variables(text: str) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in text.split("\0") if entry)
    return {name: value for name, _, value in pairs if not name.startswith("BASH_FUNC_")}


def _folders(variables: Mapping[str, str], name: str) -> list[str]:
    return [folder for folder in variables.get(name, "").split(":") if folder]


def _program(name: str, loaded: Mapping[str, str]) -> Path | None:
    """Return a program that loading put on PATH; another one is of another library."""
    path = shutil.which(name, path=loaded["PATH"] or os.devnull)
    return Path(path) if path else None


NOT_ASKED = Words(
    "modules.not-asked",
    "a test program could not be built with {wrapper} (`{loading}`) or started here",
    cause="{why}",
    remedy="also load the compiler and the libraries that it needs",
)
UNKNOWN_LIBRARY = Words(
    "modules.unknown-library",
    "`{loading}` loads an MPI library that identifies itself as {answer!r}",
    remedy="known: {known:list}",
)


def identify(
    loading: Loading, loaded: Mapping[str, str], wrapper: Path, target: Path
) -> tuple[Path, MpiPackage, str]:
    """Return the library that programs of this wrapper map, what it is, and its version.

    A program is compiled and asks it. Raises :class:`~clustergate.core.model.ClustergateError` when
    that fails, or nobody knows the library.
    """
    clean = clean_environment(os.environ).environment
    environment = {**clean, **loaded, "PATH": f"{loaded['PATH']}:{_BARE_PATH}"}
    with scratch_beside(target) as scratch:
        (scratch / "ask.c").write_text(_ASK, encoding="utf-8")
        command = [str(wrapper), "ask.c", "-o", "ask", "-ldl"]
        for step in (command, [str(scratch / "ask")]):
            ended = capture(step, cwd=scratch, env=environment)
            if ended.returncode:
                said = ended.stderr.strip() or ended.stdout.strip()
                why = (said.splitlines() or [f"status {ended.returncode}"])[-1]
                facts = {"loading": str(loading), "wrapper": str(wrapper), "why": why[:200]}
                raise ClustergateError(NOT_ASKED(**facts))
    library, _, answer = ended.stdout.partition("\n")
    if (known := mpi_of_answer(answer)) is None:
        titles = [one.title for one in MPI_PACKAGES.values()]
        says = answer.strip()[:80]
        raise ClustergateError(UNKNOWN_LIBRARY(loading=str(loading), answer=says, known=titles))
    return Path(library), *known


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _require_loadable(settings: Mapping[str, Any], limit_s: float) -> None:
    # A Spack takes longer than this may to load anything.
    if "spack" not in settings:
        load(Loading(**settings), limit_s)


PROVIDER = Provider(
    name="modules",
    provide=provide,
    planned=planned,
    settings={
        "type": "object",
        "description": "what is loaded: modules, or specs of a Spack",
        "properties": {
            "load": {**_TEXTS, "description": "names, in this order", "minItems": 1},
            "use": {**_TEXTS, "description": "further folders of modules"},
            "spack": {**_TEXT, "description": "the root of a Spack that has them"},
        },
        "required": ["load"],
        "additionalProperties": False,
    },
    require_source=_require_loadable,
    sets_variables=True,
    lines_here=site_lines_here,
)
