"""Which variables a stack's MPI library knows, by what it lists and what its files hold.

Asked before anything is launched: a misspelt variable changes nothing, and no launch fails by it.
What cannot be told of a variable counts as known.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from clustergate.launch.plan import IN_FRONT
from clustergate.machine.processes import capture
from clustergate.stacks.manifest import Manifest

_OMPI = "OMPI_MCA_"
# Open MPI hands these to its launcher, which says of its own what it does not know.
_OF_LAUNCHER = frozenset(
    (
        *("errmgr", "ess", "filem", "grpcomm", "hwloc", "iof", "odls", "oob", "orte", "plm"),
        *("pmix", "prte", "prtebacktrace", "prtedl", "prteif", "prtereachable", "ras", "rmaps"),
        *("rml", "routed", "rtc", "schizo", "state"),
    )
)
# Whole names stand in the library, or in the programs that start ranks.
_BY_NAME = ("I_MPI_", "MPICH_", "MPIR_CVAR_", "MPIR_PARAM_")
# Of a library beside MPI's, which a stack may be without.
_BESIDE = {"UCX_": b"libucp.so", "FI_": b"libfabric.so"}
# An operating system's folders hold libraries of others, too.
_SHARED = frozenset(map(Path, ("/", "/usr", "/usr/local")))
_ASKING_S = 30.0
_PARAMETER = re.compile(r"^mca:([^:]*):[^:]*:param:([^:]*):", re.MULTILINE)


def unknown_to(manifest: Manifest, names: Iterable[str]) -> list[str]:
    """Return those of some variables' names that a stack does not know."""
    return [name for name in names if not _is_known(manifest, name)]


def _is_known(manifest: Manifest, name: str) -> bool:
    if name.startswith(_OMPI):
        return manifest.dialect == "openmpi" and _is_parameter(manifest, name.removeprefix(_OMPI))
    if name.startswith(_BY_NAME):
        return any(_holds(one, name.encode()) for one in _contents(_of_mpi(manifest)))
    for beginning, library in _BESIDE.items():
        prefix = Path(manifest.mpi_prefix)
        if name.startswith(beginning) and manifest.mpi_prefix and prefix not in _SHARED:
            libraries = (path for path in prefix.glob("lib*/**/*.so*"))
            held = _contents([Path(manifest.mpi_library), *libraries])
            return any(library in one for one in held)
    return True


def _of_mpi(manifest: Manifest) -> list[Path]:
    folder = Path(manifest.launcher).parent
    beside = [] if folder.parent in _SHARED else sorted(folder.glob("*"))
    return [Path(manifest.mpi_library), Path(manifest.launcher), *beside]


def _holds(content: bytes, name: bytes) -> bool:
    """Tell whether a name stands there, and not as a part of another."""
    at = content.find(name)
    while at >= 0:
        around = content[max(at - 1, 0) : at] + content[at + len(name) : at + len(name) + 1]
        if not re.search(rb"\w", around):
            return True
        at = content.find(name, at + 1)
    return False


def _contents(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in dict.fromkeys(path.resolve() for path in paths):
        if path.is_file():
            yield path.read_bytes()


def _is_parameter(manifest: Manifest, name: str) -> bool:
    """Tell whether Open MPI lists a parameter, or the framework is one that it does not list."""
    said = _said_by_ompi_info(manifest)
    listed = {match[2] for match in _PARAMETER.finditer(said)}
    framework = name.partition("_")[0]
    return not listed or name in listed or framework in _OF_LAUNCHER


def _said_by_ompi_info(manifest: Manifest) -> str:
    """Return what it prints of all parameters; nothing where it does not run."""
    program = Path(manifest.launcher).with_name("ompi_info")
    command = [str(program), "--all", "--parsable"]
    try:
        ended = capture(command, env=_environment(manifest), timeout=_ASKING_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout if ended.returncode == 0 else ""


def _environment(manifest: Manifest) -> Mapping[str, str]:
    own = dict(manifest.environment)
    for name in IN_FRONT:
        if name in own:
            own[name] = ":".join(filter(None, (own[name], os.environ.get(name, ""))))
    return {**os.environ, **own}
