"""Configuration files that change how an MPI library starts, binds or communicates.

Those in a user's home folder are kept out of a launch; those of the site, or of the stack's own
folders, are the site's choice and are recorded. Of each only the names of what it sets are told: a
value may be a credential.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from clustergate.core.notation import printable
from clustergate.machine.environment import HIDDEN, is_secret
from clustergate.machine.node import END

# What libraries look for in $HOME, each as it says itself: Open MPI with PMIx and PRRTE, UCX, UCC,
# Hydra (MPICH, MVAPICH), Intel MPI, MVAPICH2, FlexiBLAS. Folders hold plug-ins.
PERSONAL = (
    *(".openmpi/mca-params.conf", ".pmix/mca-params.conf", ".prte/mca-params.conf"),
    *(".openmpi/components", ".pmix/components", ".prte/components"),
    *("ucx.conf", "ucc.conf", ".mpiexec.hydra.conf", ".mpiexec.conf", ".mvapich2.conf"),
    *(".flexiblasrc", ".flexiblasrc64"),
)
# What launchers and libraries look for in folders of the system and of their own.
_OPEN_MPI = (
    *("openmpi-mca-params.conf", "openmpi-mca-params-override.conf"),
    *("pmix-mca-params.conf", "pmix-mca-params-override.conf"),
    *("prte-mca-params.conf", "prte.conf", "prte-default-hostfile"),
)
_SOUGHT_BY = {
    r"(mpirun|mpiexec(\.hydra)?)$": ("mpiexec.hydra.conf", "mpiexec.conf", *_OPEN_MPI),
    r"lib(open-pal|open-rte|pmix|prrte)\.so": _OPEN_MPI,
    r"libmpi(ch)?\.so": ("mpich.conf", "mvapich2.conf"),
    r"libucs\.so": ("ucx.conf", "ucx/ucx.conf"),
    r"libucc\.so": ("ucc.conf",),
    r"libfabric\.so": ("libfabric.conf",),
    r"libpsm3-fi\.so": ("psm3.conf", "libfabric.conf"),
    r"libflexiblas(64)?\.so": ("flexiblasrc", "flexiblasrc64"),
}
_FOLDERS = ("../etc", "../share", "../intel64/etc")
# Intel's libmpi is by far the largest of them, and names no such file.
_SYSTEM = ("/lib", "/usr", "/etc")
_OF_A_NODE = (*_SYSTEM, "/opt")
# What starts ranks and looks up names: no message and no sum passes through it, and the node that
# starts a launch may have others than the rest.
_BESIDE = re.compile(r"lib(pmi\w*|slurm\w*|munge|nss_\w+|resolv)(\.|-)")
_LARGEST_SEARCHED = 32 * 2**20
_LONGEST_PATH = 4096
_LONGEST_FILE = 2**20
_DIGITS = 12
_LONGEST_NAME = 48
_SETTINGS_TOLD = 6


@dataclass(frozen=True)
class ConfigurationFile:
    """A file that sets something: the first digits of its settings' SHA-256, and their names."""

    path: str
    digest: str
    settings: tuple[str, ...]

    def __str__(self) -> str:
        settings = ", ".join(self.settings[:_SETTINGS_TOLD])
        more = len(self.settings) - _SETTINGS_TOLD
        return f"{self.path} ({settings}{f' and {more} more' if more > 0 else ''})"


def keep_personal_files_out(
    environment: MutableMapping[str, str], instead: Path
) -> tuple[ConfigurationFile, ...]:
    """Let no personal file be found in an environment, and return those that there are.

    Only where there is one, the empty folder ``instead`` is made and stands for the home folder:
    not all of them can be switched off one by one (UCX's cannot).
    """
    home = environment.get("HOME", "")
    files = tuple(personal_files(Path(home))) if home else ()
    if files:
        instead.mkdir(exist_ok=True)
        environment["HOME"] = str(instead)
    return files


def personal_files(home: Path) -> Iterator[ConfigurationFile]:
    """Yield what is set in a home folder."""
    for name in PERSONAL:
        if file := _read(home / name, f"~/{name}"):
            yield file


def site_files(programs: Iterable[str]) -> list[ConfigurationFile]:
    """Return what is set in the files that launchers and mapped libraries look for on this node.

    They lie beside the library, below its prefix, or where its binary says that it was installed.
    """
    files = {}
    for program in programs:
        for candidate in _candidates(program):
            if known := _read(Path(candidate), candidate):
                files[os.path.realpath(candidate)] = known
    return sorted(files.values(), key=lambda one: one.path)


def is_of_system(path: str) -> bool:
    """Tell whether a file is the operating system's."""
    return path.startswith(_SYSTEM)


def is_of_a_node(path: str) -> bool:
    """Tell whether a file is a node's own, and something that messages or sums pass through."""
    return path.startswith(_OF_A_NODE) and not is_beside(path)


def is_beside(path: str) -> bool:
    """Tell whether a library starts ranks or looks up names, and does nothing else for them."""
    return _BESIDE.match(os.path.basename(path)) is not None


def mapped_files(mapped: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of those files that a rank has mapped which are this node's own.

    Others, which nodes share, have none, nor what cannot be read. Names are those without links.
    """
    files = {os.path.realpath(path): "" for path in mapped if path.startswith("/")}
    for path in files:
        if path.startswith(_OF_A_NODE):
            with contextlib.suppress(OSError):
                files[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return files


def linked_files(program: str, environment: Mapping[str, str]) -> list[str]:
    """Return a program and the libraries that it would load, as far as ldd(1) finds them."""
    try:
        printed = subprocess.run(
            ["ldd", program], env=environment, capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        printed = ""
    return [program, *re.findall(r"(/\S+) \(0x", printed)]


def ends_of(path: str) -> str:
    """Return the SHA-256 of a file's size and ends, nothing of one that cannot be read.

    In these stand an ELF file's build ID and symbols, which any other build has otherwise.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(END)
            file.seek(max(0, size - END))
            return hashlib.sha256(b"%d\n%b%b" % (size, head, file.read(END))).hexdigest()
    except OSError:
        return ""


def described(
    kept_out: Iterable[ConfigurationFile], site: Iterable[ConfigurationFile] = ()
) -> list[str]:
    """Return a sentence for each file."""
    return [
        *(
            f"{one} is ignored in launches; put what the site needs of it into the env_vars of "
            "its site config"
            for one in kept_out
        ),
        *(f"{one} of the site applies" for one in site),
    ]


def _candidates(program: str) -> Iterator[str]:
    base = os.path.basename(program)
    names = next((n for pattern, n in _SOUGHT_BY.items() if re.match(pattern, base)), ())
    if names:
        folders = {os.path.dirname(path) for path in (program, os.path.realpath(program))}
        own = (os.path.join(one, other) for one in sorted(folders) for other in _FOLDERS)
        for place in (*own, *_named_within(Path(program))):
            if os.path.basename(place) in map(os.path.basename, names):
                yield place
            else:
                yield from (os.path.normpath(os.path.join(place, name)) for name in names)


def _read(path: Path, shown: str) -> ConfigurationFile | None:
    """Return what a file sets, None where there is none, or nothing but comments in it."""
    try:
        if path.is_dir():
            lines = sorted(entry.name for entry in path.iterdir())
        else:
            with path.open("rb") as file:
                text = file.read(_LONGEST_FILE).decode("utf-8", errors="replace")
            lines = [line.strip() for line in text.splitlines()]
    except OSError:
        return None
    lines = [line for line in lines if line and line[0] not in "#;["]
    if not lines:
        return None
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:_DIGITS]
    return ConfigurationFile(shown, digest, tuple(dict.fromkeys(map(_name_of, lines))))


def _name_of(line: str) -> str:
    name = re.split(r"[\s=]", line, maxsplit=1)[0]
    return HIDDEN if len(name) > _LONGEST_NAME or is_secret("", name) else printable(name)


def _named_within(program: Path) -> list[str]:
    """Return the paths in ``etc`` that stand in a binary: where it was to be installed."""
    try:
        if program.stat().st_size > _LARGEST_SEARCHED:
            return []
        content = program.read_bytes()
    except OSError:
        return []
    paths = set()
    at = content.find(b"/etc")
    while at >= 0:
        begin = content.rfind(b"\0", max(0, at - _LONGEST_PATH), at) + 1
        path = content[begin : content.find(b"\0", at, at + _LONGEST_PATH)]
        if re.fullmatch(rb"/[\x21-\x7e]+", path):
            paths.add(path.decode("ascii"))
        at = content.find(b"/etc", at + 1)
    return sorted(paths)
