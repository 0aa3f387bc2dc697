"""Put the programs of benchmarks beside an MPI library, by the recipes that they bring."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import re
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clustergate.benchmarks.build import (
    COMMON_UNIT,
    BlasLinkage,
    Build,
    Compiled,
    Recipe,
    Source,
    Wheel,
    Workplace,
)
from clustergate.benchmarks.registry import builds
from clustergate.core.files.whole import scratch_beside, write_whole
from clustergate.core.model import ClustergateError, Say
from clustergate.core.reasons import Words
from clustergate.core.texts import Step
from clustergate.machine.environment import clean_environment
from clustergate.stacks import compilation, integrity, prefixes, sources
from clustergate.stacks.compilation import Objects
from clustergate.stacks.kernels import NODE_KERNELS
from clustergate.stacks.lacking import STACK_LACKS, LackError, missing_tools, sentence_of
from clustergate.stacks.manifest import Manifest, Program
from clustergate.stacks.sources import SOURCE_KNOWN_UNAVAILABLE, SourceUnavailable
from clustergate.stacks.spack.libraries import MpiPackage, blas_of

# In a build: the state folder below which its programs look for their libraries.
STATE_FOLDER = ".state-folder"
# The BLAS that programs get beside an MPI library which is there: that of a wheel.
OPENBLAS = "openblas.txt"


@dataclass(frozen=True)
class SetUp:
    """A stack to be put on disk in the folder ``state``, by the settings of its provider.

    ``source_folders`` hold archives. ``refresh`` asks the network again for sources that were
    unavailable the last time, ``applications`` name the benchmarks that are wanted of those on
    request.
    """

    stack: str
    state: Path
    say: Say
    settings: Mapping[str, Any] = field(default_factory=dict)
    source_folders: Sequence[Path] = ()
    refresh: bool = False
    applications: Sequence[str] = ()

    def saying(self, title: str) -> SetUp:
        """Return it with what it says begun by a title."""
        say = self.say
        return dataclasses.replace(self, say=lambda said: say(type(said)(f"{title}: {said}")))


@dataclass(frozen=True)
class Toolchain:
    """What programs of a stack are compiled with.

    ``wrappers`` is the folder of the compiler wrappers of the MPI library in ``prefix``; ``key``
    is all of it that a build depends on. ``no_fortran`` says why there is no Fortran, if so;
    ``mpich_abi`` whether binaries made for MPICH's ABI run. ``environment`` is what loading a
    module sets, in which its wrappers find their own compiler; without it they take the system's.
    """

    prefix: Path
    wrappers: Path
    blas: BlasLinkage
    key: tuple[str, ...]
    mpich_abi: bool = False
    no_fortran: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def abi(self) -> str:
        """Return what tells libraries apart whose headers make other objects."""
        return "MPICH's ABI" if self.mpich_abi else " ".join(self.key)


@dataclass(frozen=True)
class _Choice:
    """The recipe that a stack can have: with its wheel's prefix, or what it is compiled from.

    ``reason`` says why there is none, or why it is not a better one.
    """

    build: Build
    recipe: Recipe | None = None
    prefix: Path | None = None
    archive: Path | None = None
    reason: str = ""

    def has(self, source: Source) -> bool:
        return isinstance(self.recipe, Compiled) and self.recipe.source == source


ON_REQUEST = Words(
    "program.on-request",
    "it is compiled on request",
    cause="run `clustergate setup --applications {application}`",
)
PROGRAM_WHEEL = Words(
    "program.wheel",
    "its wheel of {megabytes} MB is downloaded on request",
    cause="run `clustergate setup --applications {application}`",
)


@dataclass(frozen=True)
class Builder:
    """Makes what one stack lacks; the stack's lock is held by the caller."""

    set_up: SetUp
    toolchain: Toolchain

    def make(self, builds: Mapping[str, Build]) -> tuple[dict[str, Program], dict[str, Path]]:
        """Put the programs on disk, or say of each why it is not there.

        Return them, and the folders of the units they were compiled in.
        """
        members: dict[str, list[_Choice]] = {}
        with ThreadPoolExecutor() as pool:
            # Archives come side by side.
            choices = pool.map(self._choice, builds.keys(), builds.values())
            for name, choice in zip(builds, choices, strict=True):
                members.setdefault(choice.build.unit or name, []).append(choice)
        due = [
            one
            for unit, together in members.items()
            for one in together
            if isinstance(one.recipe, Compiled) and not self._is_made(unit, together)
        ]
        units = {unit: self._unit(unit, together, due) for unit, together in members.items()}
        programs: dict[str, Program] = {}
        for unit, together in members.items():
            for choice in together:
                programs |= _programs(choice, units[unit])
        return programs, units

    def _choice(self, name: str, build: Build) -> _Choice:
        """Return the first recipe that can be had here."""
        failed, unfit = "", ""
        for recipe in build.recipes:
            if why := self._misfit(build, recipe):
                unfit = why
                continue
            try:
                choice = self._take(name, build, recipe)
                return dataclasses.replace(choice, reason=failed)
            except (LackError, SourceUnavailable) as error:
                failed = failed or str(error)
        return _Choice(build, reason=failed or unfit)

    def _misfit(self, build: Build, recipe: Recipe) -> str:
        """Return why a recipe is not for such a stack; empty when it is."""
        if isinstance(recipe, Compiled):
            return self.toolchain.no_fortran if build.fortran else ""
        if self.toolchain.mpich_abi and platform.machine() in recipe.machines:
            return ""
        machines = " or ".join(sorted(recipe.machines))
        return f"its wheel needs an MPI library with MPICH's ABI, on {machines}"

    def _take(self, name: str, build: Build, recipe: Recipe) -> _Choice:
        """Bring what a recipe takes from elsewhere; raises LackError or SourceUnavailable."""
        choice = _Choice(build, recipe)
        asked = not build.on_request or name in self.set_up.applications
        if isinstance(recipe, Wheel):
            if not asked and not prefixes.prefix_of(recipe.pins, self.set_up.state).is_dir():
                raise LackError(PROGRAM_WHEEL(megabytes=recipe.megabytes, application=name))
            prefix = prefixes.install_prefix(recipe.pins, self.set_up.state, self.set_up.say)
            return dataclasses.replace(choice, prefix=prefix)
        if missing := missing_tools(recipe.tools):
            raise LackError(STACK_LACKS(lacks=sentence_of(missing)))
        source = recipe.source
        if build.on_request and self._folder(build.unit or name, [choice]).is_dir():
            return choice
        if not asked:
            if source and (why := sources.last_failure(source, self._cache)):
                raise SourceUnavailable(SOURCE_KNOWN_UNAVAILABLE(sentence=why))
            raise LackError(ON_REQUEST(application=name))
        archive = self._archive(source) if source else None
        return dataclasses.replace(choice, archive=archive)

    def _archive(self, source: Source) -> Path:
        """Return an archive; what could not be fetched the last time is not asked for again."""
        if there := sources.local_copy(source, self._cache, self.set_up.source_folders):
            return there
        if not self.set_up.refresh and (why := sources.last_failure(source, self._cache)):
            raise SourceUnavailable(SOURCE_KNOWN_UNAVAILABLE(sentence=why))
        return sources.obtain(source, self._cache, say=self.set_up.say)

    @property
    def _cache(self) -> Path:
        return self.set_up.state / "cache" / "sources"

    def _folder(self, unit: str, members: Sequence[_Choice]) -> Path:
        """Return where a build lies, or would lie; its key says all that it depends on."""
        archives = dict.fromkeys(s for one in members for s in one.build.sources())
        words = [source.key_word(any(one.has(source) for one in members)) for source in archives]
        recipes = [(one, recipe) for one in members for recipe in one.build.recipes]
        beside = []
        for one, recipe in recipes:
            if isinstance(recipe, Wheel) and recipe.libraries:
                beside.append(one.prefix.name if one.prefix else "")
            elif isinstance(recipe, Compiled) and recipe.compiler and one.recipe == recipe:
                beside.append(compilation.compiler_identity(recipe.compiler))
        own = [file for _, one in recipes if isinstance(one, Compiled) for file in one.files]
        ingredients = [
            self.set_up.stack,
            unit,
            *self.toolchain.key,
            *sorted(filter(None, words)),
            *beside,
        ]
        key = compilation.build_key(ingredients, list(dict.fromkeys(own)))
        return self.set_up.state / "builds" / f"{self.set_up.stack}-{unit}-{key}"

    def _is_made(self, unit: str, members: Sequence[_Choice]) -> bool:
        finished = self._folder(unit, members)
        return not any(_leaves_files(one.recipe) for one in members) or (
            finished.is_dir() and _looks_into(finished, self.set_up.state)
        )

    def _unit(self, unit: str, members: Sequence[_Choice], due: Sequence[_Choice]) -> Path:
        """Return the folder of a build, made if it is missing: whole, or not at all.

        ``due`` is all that is compiled for this stack, in order.
        """
        builds = self.set_up.state / "builds"
        finished = self._folder(unit, members)
        if self._is_made(unit, members):
            require_as_built(finished, self.set_up.state)
            return finished
        # Spack's stacks have no other.
        builds.mkdir(parents=True, exist_ok=True)
        log = builds / f"{self.set_up.stack}-{unit}.log"
        log.unlink(missing_ok=True)
        with scratch_beside(builds / f"{self.set_up.stack}-{unit}") as scratch:
            target = scratch / "build"
            for folder in ("bin", "lib"):
                (target / folder).mkdir(parents=True)
            for number, one in enumerate(members):
                self._fill(target, one, scratch / str(number), log, due)
            (target / STATE_FOLDER).write_text(f"{self.set_up.state}\n", encoding="utf-8")
            if finished.exists():
                os.rename(finished, scratch / "elsewhere")
            os.rename(target, finished)
        integrity.record_digests(finished, self.set_up.state, _made_in(finished))
        return finished

    def _fill(
        self, target: Path, choice: _Choice, scratch: Path, log: Path, due: Sequence[_Choice]
    ) -> None:
        """Compile the programs of a benchmark into a unit, or copy what its wheel needs beside."""
        if isinstance(choice.recipe, Wheel) and choice.prefix:
            for library in choice.recipe.libraries:
                shutil.copy2(choice.prefix / library, target / "lib")
        if not isinstance(choice.recipe, Compiled):
            return
        scratch.mkdir()
        top = unpack(choice.archive, scratch) if choice.archive else scratch
        place = f" ({due.index(choice) + 1} of {len(due)})" if len(due) > 1 else ""
        work = Workplace(top, target / "bin", target / "lib", self.toolchain.blas)
        for command in choice.recipe.commands(work):
            if command.what:
                self.set_up.say(Step(f"compiling {command.what}{place}"))
            for path, text in command.files.items():
                path.write_text(text, encoding="utf-8")
            words = list(command.words)
            if words[0].startswith("mpi"):
                # Another library's must not be found on PATH.
                words[0] = str(self.toolchain.wrappers / words[0])
            environment = _compiler_environment(self.toolchain)
            if command.sources:
                cache, abi = self.set_up.state / "cache" / "objects", self.toolchain.abi
                objects = Objects(Path(words[0]), environment, abi, cache, log)
                words += [*objects.of(command.sources, words[1:]), *command.link]
            compilation.run_compiler(words, environment, log)


def wrappers_of(stack: str, prefix: Path, state: Path) -> Path:
    """Return a folder of compiler wrappers for MPICH's prefix whose path has a space.

    MPICH's own take such a path apart.
    """
    folder = state / "builds" / f".{stack}-wrappers"
    folder.mkdir(exist_ok=True)
    for name, compiler in (("mpicc", "cc"), ("mpicxx", "c++")):
        write_whole(folder / name, compilation.plain_wrapper(compiler, prefix))
        (folder / name).chmod(0o755)
    return folder


BUILD_CHANGED = Words(
    "stack.build-changed",
    "{files:names} in {folder} is not what was compiled there",
    cause="something was put in its place",
    remedy="see what it is; `rm -r {folder}` and `clustergate setup` compile it anew",
)


def require_as_built(build: Path, state: Path) -> None:
    """Raise :class:`ClustergateError` where a file of a build is another than was compiled."""
    if build.is_dir() and (changed := integrity.changed_files(build, state, _made_in(build))):
        raise ClustergateError(BUILD_CHANGED(folder=build, files=changed))


def _made_in(build: Path) -> list[Path]:
    return [path for folder in ("bin", "lib") for path in (build / folder).rglob("*")]


def _looks_into(build: Path, state: Path) -> bool:
    """Tell whether a build's programs look for their libraries where they are now.

    They do not once the state folder was moved or copied: programs keep the path of libraries. What
    is a link to a build of another home stays there.
    """
    noted = build / STATE_FOLDER
    with contextlib.suppress(FileNotFoundError):
        made_for = Path(noted.read_text(encoding="utf-8").strip())
        if not made_for.exists():
            return False
        return made_for.samefile(state) or noted.resolve().is_relative_to(made_for.resolve())
    # An earlier version wrote none.
    return True


def _leaves_files(recipe: Recipe | None) -> bool:
    return isinstance(recipe, Compiled) or (isinstance(recipe, Wheel) and bool(recipe.libraries))


def _programs(choice: _Choice, unit: Path) -> dict[str, Program]:
    """Return the programs of a benchmark as its recipe has made them."""
    recipe, names = choice.recipe, choice.build.programs
    if isinstance(recipe, Wheel) and choice.prefix:
        (folder,) = choice.prefix.glob(recipe.folder)
        version = recipe.version or prefixes.pinned_version(recipe.pins, recipe.package)
    elif isinstance(recipe, Compiled):
        folder = unit / "bin"
        version = recipe.version or (recipe.source.version if recipe.source else "")
    else:
        return dict.fromkeys(names, Program(unavailable=choice.reason))
    return {
        name: Program(str(folder / name), version, recipe.origin, remark=choice.reason)
        for name in names
    }


def _compiler_environment(toolchain: Toolchain) -> dict[str, str]:
    clean = clean_environment(os.environ).environment
    if own := toolchain.environment:
        return {**clean, **own, "PATH": f"{own['PATH']}:{os.environ.get('PATH', os.defpath)}"}
    # The wrappers would take another compiler's name from the shell if these were set there.
    named = dict.fromkeys(("I_MPI_CC", "MPICH_CC", "OMPI_CC"), "cc")
    named |= dict.fromkeys(("I_MPI_CXX", "MPICH_CXX", "OMPI_CXX"), "c++")
    named |= dict.fromkeys(("I_MPI_FC", "MPICH_FC", "OMPI_FC"), "gfortran")
    folders = [str(toolchain.wrappers), str(toolchain.prefix / "bin")]
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    return {**clean, "PATH": path, "I_MPI_ROOT": str(toolchain.prefix), **named}


ARCHIVE_DAMAGED = Words("archive.damaged", "{path} is damaged or truncated ({why})")
ARCHIVE_TOPS = Words(
    "archive.tops",
    "{path} must contain a single top-level folder, but contains {named}",
)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a source archive into ``folder``, which is empty, and return its only top folder.

    A source that is a single file, and no archive, is copied there.

    Its SHA-256 is pinned and was compared, so it holds what upstream packed; where Python has a
    filter for members that lead elsewhere, that is used besides. Raises :class:`ClustergateError`.
    """
    if ".tar" not in archive.name:
        shutil.copy2(archive, folder)
        return folder
    filtered: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, **filtered)
    except (tarfile.TarError, EOFError) as error:
        raise ClustergateError(ARCHIVE_DAMAGED(path=archive, why=error)) from None
    tops = sorted(folder.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        named = ", ".join(path.name for path in tops[:3]) or "none"
        raise ClustergateError(ARCHIVE_TOPS(path=archive, named=named))
    return tops[0]


def planned_with(
    known: Manifest, mpi: MpiPackage, version: str, launcher: str = "mpirun"
) -> Manifest:
    """Return a manifest with all that an MPI library of this version fixes, and program names."""
    return dataclasses.replace(
        known,
        mpi_name=mpi.title,
        mpi_version=version,
        library_pattern=mpi.pattern(version),
        launcher=launcher,
        dialect=mpi.dialect,
        programs={name: Program(path=name) for one in _builds().values() for name in one.programs},
        proof_library="libproof.so",
    )


def with_programs(known: Manifest, builder: Builder) -> Manifest:
    """Return the manifest of a finished build, making what is missing first.

    ``known`` is all of it but the programs and what they are linked with.
    """
    programs, units = builder.make(_builds())
    blas = builder.toolchain.blas
    common, kernels = units[COMMON_UNIT], units["kernels"]
    libraries = f"{known.environment['LD_LIBRARY_PATH']}:{common / 'lib'}"
    if re.search(r"\s", str(kernels)):
        # From a path with a space, the proof library is preloaded by its name alone.
        libraries += f":{kernels / 'lib'}"
    return dataclasses.replace(
        known,
        environment={**known.environment, "LD_LIBRARY_PATH": libraries},
        blas=blas_of(
            "openblas", prefixes.pinned_version(OPENBLAS, "scipy-openblas32"), str(blas.library)
        ),
        programs=programs,
        proof_library=str(kernels / "lib" / "libproof.so"),
        build_key=common.name.rpartition("-")[2],
    )


def _builds() -> dict[str, Build]:
    return {"kernels": NODE_KERNELS, **builds()}


def openblas_linkage(prefix: Path) -> BlasLinkage:
    """Return how programs are compiled against the OpenBLAS of a prefix."""
    (package,) = prefix.glob("lib/python*/site-packages/scipy_openblas32")
    return BlasLinkage(
        include=package / "include",
        library=(package / "lib" / "libscipy_openblas.so").resolve(),
        symbol_prefix="scipy_",
    )
