"""How the programs of a benchmark come to a stack, as data that its own folder fills in. Pure.

A provider of stacks takes the first recipe that the stack and the machine can have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Binaries are made on the machine they run on: what computes outside of the BLAS is as good as the
# compiler's vectors. Benchmarks are older than the warnings of today's compilers.
OPTIONS = ("-O3", "-march=native", "-w")
UPSTREAM = "upstream source, compiled here"
# Compiled together, and their key is the build's: tuned inputs and baselines hold for it.
COMMON_UNIT = "benchmarks"


@dataclass(frozen=True)
class Source:
    """An upstream archive, pinned by its SHA-256.

    ``debian`` names the Debian source package with the same archive. ``key`` is what stands in the
    key of a build where the archive is there, and where it is not; by default its checksum, and
    nothing.
    """

    name: str
    version: str
    file_name: str
    sha256: str
    url: str
    debian: str = ""
    key: tuple[str, str] | None = None

    def key_word(self, there: bool) -> str:
        """Return what stands in the key of a build that has the archive, or has it not."""
        present, absent = self.key or (self.sha256, "")
        return present if there else absent


@dataclass(frozen=True)
class BlasLinkage:
    """How programs are compiled against a BLAS: folders, the library's file and a name prefix."""

    include: Path
    library: Path
    symbol_prefix: str = ""

    def compile_options(self, routines: Iterable[str]) -> list[str]:
        """Return the options that rename the CBLAS routines to those of this library."""
        renames = [
            f"-Dcblas_{routine}={self.symbol_prefix}cblas_{routine}"
            for routine in routines
            if self.symbol_prefix
        ]
        return [*renames, f"-I{self.include}"]

    def link_options(self) -> list[str]:
        """Return the options that link this library and find it again at run time."""
        return [str(self.library), f"-Wl,-rpath,{self.library.parent}", "-lm"]


@dataclass(frozen=True)
class Workplace:
    """Where a recipe compiles: ``top`` of the unpacked source, ``bin`` and ``lib`` for its results.

    ``top`` is an empty folder for a recipe without a source.
    """

    top: Path
    bin: Path
    lib: Path
    blas: BlasLinkage


@dataclass(frozen=True)
class Command:
    """A call of a stack's compiler wrapper, of make or the like; ``files`` are written before it.

    ``what`` is said to be compiled; nothing is said where it is empty. Each of the ``sources`` is
    compiled with ``words``; these with ``link`` then link their objects.
    """

    words: Sequence[str]
    what: str = ""
    files: Mapping[Path, str] = field(default_factory=dict)
    sources: Sequence[str] = ()
    link: Sequence[str] = ()


@dataclass(frozen=True)
class Compiled:
    """Programs compiled with the stack's wrappers, all into :attr:`Workplace.bin`.

    ``files`` are sources that come with the benchmark; they and the ``source`` decide whether a
    build is still the one asked for. ``tools`` must be on PATH; ``compiler`` is that of them,
    beside the C compiler, whose version decides it too.
    """

    commands: Callable[[Workplace], Iterable[Command]]
    source: Source | None = None
    files: tuple[Path, ...] = ()
    tools: tuple[str, ...] = ()
    compiler: str = ""
    version: str = ""
    origin: str = UPSTREAM


@dataclass(frozen=True)
class Wheel:
    """Programs from a wheel, which run with every MPI library of MPICH's ABI.

    ``pins`` is a requirements file: a path, or the name of one of the stacks' own. ``folder`` is a
    pattern of the programs' folder in the prefix; ``libraries`` are the files of the prefix that
    they need, and nothing else of it. The version is ``version``, or what ``pins`` says of
    ``package``.
    """

    pins: str
    folder: str
    origin: str
    version: str = ""
    package: str = ""
    libraries: tuple[str, ...] = ()
    megabytes: int = 0
    machines: frozenset[str] = frozenset({"x86_64"})


Recipe = Compiled | Wheel


@dataclass(frozen=True)
class Build:
    """The programs of a benchmark and how they are had, the best way first.

    ``unit`` is what they are compiled in together with others, by default the benchmark alone.
    ``package`` is Spack's for them; without one, a stack of Spack's has them by ``recipes`` too.
    ``uses_blas`` tells whether they must be linked with the stack's BLAS, ``fortran`` whether some
    call MPI from Fortran. Those ``on_request`` most checks do without: they are put on disk where
    somebody asks for them.
    """

    programs: tuple[str, ...]
    recipes: tuple[Recipe, ...]
    package: str = ""
    unit: str = ""
    uses_blas: bool = False
    fortran: bool = False
    on_request: bool = False

    def sources(self) -> list[Source]:
        """Return the archives that its recipes take, the best first."""
        compiled = (one for one in self.recipes if isinstance(one, Compiled))
        return [one.source for one in compiled if one.source]


def mpicc(
    output: Path,
    sources: Sequence[str],
    options: Iterable[str] = (),
    libraries: Iterable[str] = (),
    *,
    description: str = "",
    wrapper: str = "mpicc",
) -> Command:
    """Return the command that compiles and links a program with a wrapper of the stack."""
    words, link = (wrapper, *OPTIONS, *options), ("-o", str(output), *libraries)
    return Command(words, description or output.name, sources=sources, link=link)


def c_files(top: Path, folders: Iterable[str]) -> list[str]:
    """Return every C file below the named folders, in a fixed order."""
    return [str(path) for folder in folders for path in sorted((top / folder).rglob("*.c"))]


def own_programs(
    folder: Path, programs: Sequence[str], headers: Sequence[str] = (), *, origin: str = "its own C"
) -> Compiled:
    """Return the recipe of MPI programs of one C file each, called as they are, in a folder."""
    files = [folder / name for name in (*headers, *(f"{name}.c" for name in programs))]

    def commands(work: Workplace) -> Iterable[Command]:
        for name in programs:
            yield mpicc(work.bin / name, [str(folder / f"{name}.c")], libraries=["-lm"])

    return Compiled(commands, files=tuple(files), origin=origin)
