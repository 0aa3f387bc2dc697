"""What a site has already, as stacks of the provider ``modules``: its modules, a Spack's packages.

Pure but for :func:`scan`, which asks.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustergate.core.files.whole import parse_json
from clustergate.core.reasons import Words
from clustergate.machine.processes import capture
from clustergate.stacks.spack.libraries import MpiPackage, mpi_of_module

_TIME_LIMIT_S = 120
# Of a batch shell: where a site's modules are, as its login shells have them.
MODULE_COMMAND = """\
type module >/dev/null 2>&1 || . "${MODULESHOME:-/none}/init/bash" >/dev/null 2>&1 || \\
  . /etc/profile >/dev/null 2>&1
type module >/dev/null 2>&1 || exit 127
"""
MODULES_LATE = Words(
    "modules.late",
    "`{loading}` did not end within {limit_s:g} s",
    remedy="try it in a shell; its file system may be slow, or its cache of modules old",
)
_BEFORE = "You will need to load all module(s) on any one of the lines below"


@dataclass(frozen=True)
class ExistingLibrary:
    """An MPI library that can be loaded; ``spack`` is the root of the Spack that has it, if so."""

    mpi: MpiPackage
    load: Sequence[str]
    version: str
    spack: str = ""

    @property
    def settings(self) -> dict[str, str | list[str]]:
        return {"load": [*self.load], **({"spack": self.spack} if self.spack else {})}


def module_names(text: str) -> list[str]:
    """Return the modules that ``module -t`` listed, without folders, sections and remarks."""
    lines = (line.split("(")[0].strip() for line in text.splitlines())
    return [one for one in dict.fromkeys(lines) if re.fullmatch(r"[\w.+-][\w.+/@-]*[\w.+-]", one)]


def modules_before(text: str) -> list[str]:
    """Return what ``module spider`` says must be loaded before a module: its first way."""
    _, _, after = text.partition(_BEFORE)
    lines = (line.split() for line in after.splitlines()[1:] if line.strip())
    return next(lines, [])


def libraries_from_modules(
    names: Sequence[str], before: Callable[[str], Sequence[str]]
) -> list[ExistingLibrary]:
    """Return the MPI libraries among modules; ``before`` tells what each needs loaded first."""
    versioned = {name.partition("/")[0] for name in names if "/" in name}
    libraries = []
    for name in names:
        # Lmod lists a name without a version, too.
        if name not in versioned and (mpi := mpi_of_module(name)):
            libraries.append(ExistingLibrary(mpi, [*before(name), name], _version(name)))
    return libraries


def libraries_from_spack(text: str, root: str) -> list[ExistingLibrary]:
    """Return the MPI libraries among what ``spack find --json`` printed; none where it did not."""
    try:
        specs = parse_json(text)
        return [
            ExistingLibrary(
                mpi, [f"{one['name']}@{one['version']}/{one['hash'][:7]}"], one["version"], root
            )
            for one in specs
            if (mpi := mpi_of_module(one["name"])) and not one.get("external")
        ]
    except (ValueError, KeyError, TypeError):
        return []


def stack_lines(libraries: Sequence[ExistingLibrary]) -> list[str]:
    """Return the lines of a site config: of each library the newest, the others as remarks.

    A module is preferred to what a Spack has.
    """
    ranked = sorted(
        libraries,
        key=lambda one: (not one.spack, one.version[:1].isdigit(), _order(one.version)),
        reverse=True,
    )
    lines, taken = [], set()
    for one in sorted(ranked, key=lambda one: one.mpi.usual_name):
        name = one.mpi.usual_name
        mark = "" if name not in taken else "# "
        full = f"{name}-{re.sub(r'[^A-Za-z0-9]+', '-', one.version).strip('-')}" if mark else name
        taken.add(name)
        settings = json.dumps(one.settings)
        lines.append(f'{mark}stack("{full}", provider="modules", modules={settings}),')
    return lines


def _version(module: str) -> str:
    last = module.rpartition("/")[2]
    match = re.search(r"(?<![A-Za-z_\d])\d[\w.]*", last)
    return match[0] if match else last


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def scan(environ: Mapping[str, str] = os.environ) -> tuple[list[ExistingLibrary], list[str]]:
    """Return the MPI libraries of this machine's modules and Spack, and in lines what was asked."""
    late: list[str] = []

    def asked(command: str, script: str) -> str:
        """Return what a script printed; nothing where it cannot: most machines have no modules."""
        try:
            ended = capture(["bash", "-c", script], env=dict(environ), timeout=_TIME_LIMIT_S)
        except OSError:
            return ""
        except subprocess.TimeoutExpired:
            late.append(str(MODULES_LATE(loading=command, limit_s=_TIME_LIMIT_S)))
            return ""
        return ended.stdout if ended.returncode == 0 else ""

    def spider(name: str) -> str:
        command = f"module spider {shlex.quote(name)}"
        return asked(command, f"{MODULE_COMMAND}{command} 2>&1")

    every = "module -t spider"
    listed = asked(every, f"{MODULE_COMMAND}{every} 2>&1 || module -t avail 2>&1")

    names = module_names(listed)
    libraries = libraries_from_modules(names, lambda name: modules_before(spider(name)))
    number = (
        f"{len(names)}, of MPI libraries {len(libraries)}" if listed else "none could be listed"
    )
    remarks = [f"Modules: {number}."]
    program = shutil.which("spack", path=environ.get("PATH"))
    root = environ.get("SPACK_ROOT") or (program and str(Path(program).resolve().parents[1]))
    if root:
        find = f"{shlex.quote(root)}/bin/spack find --json"
        listed = asked(find, find)
        of_root = libraries_from_spack(listed, root)
        number = f"MPI libraries {len(of_root)}" if listed else "its packages could not be listed"
        remarks.append(f"Spack in {root}: {number}.")
        libraries += of_root
    return libraries, [*remarks, *late]


def site_lines_here() -> tuple[list[str], list[str]]:
    """Return the lines of a site config for all that :func:`scan` sees, and what it asked."""
    libraries, remarks = scan()
    return stack_lines(libraries), remarks
