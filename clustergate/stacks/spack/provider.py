"""The provider that builds stacks with Spack: one environment and one lock for each of them.

What a lock pins is installed once into a store that all checks share; afterwards nothing needs
Spack: the manifest says where everything is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustergate.benchmarks.build import BlasLinkage, Build, Source
from clustergate.benchmarks.registry import builds, builds_on_request
from clustergate.core.files.shared import locked
from clustergate.core.files.whole import full_disk, is_full, write_whole
from clustergate.core.model import ClustergateError, Say
from clustergate.core.notation import listed
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Reason, Words
from clustergate.machine.environment import clean_environment
from clustergate.machine.processes import capture
from clustergate.stacks import wheels
from clustergate.stacks.builder import Builder, SetUp, Toolchain
from clustergate.stacks.compilation import build_key, compiler_identity
from clustergate.stacks.kernels import DGEMM, NODE_KERNELS
from clustergate.stacks.lacking import Lack, LackError
from clustergate.stacks.manifest import Manifest, Program, read_manifest
from clustergate.stacks.provider import Provider
from clustergate.stacks.sources import SourceUnavailable, obtain
from clustergate.stacks.spack import bootstrap, linkage, lock_choice, locks, recipes
from clustergate.stacks.spack.composition import (
    UNPROVEN_FORTRAN,
    SpackRequest,
    builtin,
    compose,
    obstacle,
    read_spack_request,
)
from clustergate.stacks.spack.externals import External, build_tools, from_wheels
from clustergate.stacks.spack.libraries import (
    MpiPackage,
    blas_of,
    package_name,
    pinned_version,
)
from clustergate.stacks.spack.lock_choice import ChosenLock, kept_lock
from clustergate.stacks.spack.locks import Lock, LockedSpec
from clustergate.stacks.spack.messages import LARGER_DISK
from clustergate.stacks.spack.program import SpackProgram, find_spack
from clustergate.stacks.spack.settings import LISTS, SpackSettings, applications_of
from clustergate.stacks.spack.sources import mirror_of

RECIPE = "1"  # part of every build's key: raise it when a manifest is made in another way
KERNELS = NODE_KERNELS.package

# Spack starts scripts by `<store>/bin/sbang`, which it allows the 127 characters of a first line.
LONGEST_STORE = 127 - len("/bin/sbang")


@dataclass(frozen=True)
class Prepared:
    """An environment that is composed, with the lock that was chosen.

    ``absent`` is what it needs and this machine lacks, ``installed`` are the packages of the lock
    that the store has.
    """

    request: SpackRequest
    spack: SpackProgram
    lock: Lock
    origin: str
    absent: Sequence[Lack] = ()
    installed: Sequence[str] = ()


def provide(set_up: SetUp) -> Manifest:
    """Build a stack and its benchmarks with Spack and return the manifest.

    What is installed already from an unchanged lock costs no call of Spack's, unless that is asked
    again (``refresh``). Applications are wanted of what has no package.
    """
    request = read_spack_request(set_up.stack, set_up.state, set_up.settings)
    set_up = set_up.saying(set_up.stack)
    try:
        with locked(f"{request.folder}.lock", say=set_up.say):
            manifest = None if set_up.refresh else _read_finished(request)
            if manifest is None:
                prepared = prepare(request, set_up.source_folders, say=set_up.say)
                manifest = _install(prepared, set_up.say)
            elif fitting := _committed_lock_that_fits(request, manifest):
                kept = kept_lock(request, locks.host())
                said = f"built from this site's own lock {kept}; the committed {fitting} fits now"
                set_up.say(
                    f"{said}: `clustergate setup --stack {request.stack} --refresh` takes it"
                )
            # What earlier versions built did not note its BLAS.
            if manifest.blas is None or not (own := _without_package(manifest, set_up)):
                return manifest
            added, _ = Builder(set_up, _toolchain(request, manifest)).make(own)
            return dataclasses.replace(manifest, programs={**manifest.programs, **added})
    except OSError as error:
        raise ClustergateError(_failure(request, error)) from None


def planned(stack: str, settings: Mapping[str, Any] | None = None) -> Manifest:
    """Return what :func:`provide` would write, with names where paths would be."""
    request = read_spack_request(stack, state_dir(), settings or {})
    version = pinned_version(request.mpi_root)
    own = [name for one in builds().values() if not one.package for name in one.programs]
    return Manifest(
        stack=stack,
        provider="spack",
        mpi_name=request.mpi.title,
        mpi_version=version,
        library_pattern=request.mpi.pattern(version),
        launcher="mpirun",
        dialect=request.mpi.dialect,
        programs={
            **_absent_programs(request),
            **{name: Program(path=name) for name in (*packages_of(request), *own)},
        },
        proof_library="libproof.so",
    )


def packages_of(request: SpackRequest) -> dict[str, str]:
    """Return the package that each program of a stack comes from, its applications among them."""
    return {program: one.package for one in _builds(request) for program in one.programs}


def _builds(request: SpackRequest) -> list[Build]:
    named = builds().items()
    wanted = [one for name, one in named if not one.on_request or name in request.applications]
    return [NODE_KERNELS, *(one for one in wanted if one.package)]


def _without_package(manifest: Manifest, set_up: SetUp) -> dict[str, Build]:
    """Return what is compiled beside what Spack builds, by the benchmark's own recipe.

    What a manifest says is compiled on request, and nobody asks for, stays as it says.
    """
    lacked = {name for name, program in manifest.programs.items() if program.unavailable}
    return {
        name: one
        for name, one in builds().items()
        if not one.package
        and not (one.on_request and name not in set_up.applications and lacked >= {*one.programs})
    }


def _toolchain(request: SpackRequest, manifest: Manifest) -> Toolchain:
    assert manifest.blas is not None
    home, blas = Path(manifest.launcher).parents[1], Path(manifest.blas.library)
    return Toolchain(
        prefix=home,
        wrappers=home / "bin",
        blas=BlasLinkage(blas.parents[1] / "include", blas),
        key=(RECIPE, compiler_identity(), manifest.build_key),
        mpich_abi=bool(request.mpi.wheel) and wheels.STACKS[request.mpi.wheel].mpich_abi,
        no_fortran="" if request.mpi.proves_fortran else UNPROVEN_FORTRAN.format(request.mpi.title),
    )


def _absent_programs(request: SpackRequest) -> dict[str, Program]:
    """Return the programs of the applications that a stack does not have, and why."""
    return {
        program: Program(unavailable=reason)
        for name in applications_of(request.repository)
        if (reason := obstacle(name, request.mpi, request.settings))
        for program in builds_on_request()[name].programs
    }


def lacks(set_up: SetUp) -> list[Lack]:
    """Return what a stack is built with and is not here; nothing of a stack that is built.

    Recipes are read and sources fetched, in seconds. Where no lock fits, Spack concretizes first,
    in a minute or two: only a lock names all that is built. Nothing is compiled.
    """
    request = read_spack_request(set_up.stack, set_up.state, set_up.settings)
    set_up = set_up.saying(set_up.stack)
    with locked(f"{request.folder}.lock", say=set_up.say):
        if not set_up.refresh and _read_finished(request):
            return []
        try:
            return list(prepare(request, set_up.source_folders, say=set_up.say).absent)
        except LackError as error:
            return list(error.lacks)


def _compose_environment(
    request: SpackRequest, source_folders: Sequence[Path], say: Say
) -> tuple[SpackProgram, list[External], Path | None]:
    """Compose the environment of a stack; return Spack, the stack's externals and its mirror."""
    _require_usable(request)
    spack = find_spack(request.state, request.settings.spack_root)
    request.log.parent.mkdir(parents=True, exist_ok=True)
    request.log.unlink(missing_ok=True)
    bootstrap.bring(request.state, only=("packages",), say=say)
    blas, wanted = request.settings.blas, bool(request.settings.externals)
    externals = from_wheels(request.mpi, blas, request.state, say) if wanted else []
    _bring_known(request, source_folders, say)
    sources = mirror_of(request.state, source_folders)
    compose(request, externals, sources=sources)
    return spack, externals, sources


def _bring_known(request: SpackRequest, source_folders: Sequence[Path], say: Say) -> None:
    """Bring what the suite knows to find: Debian has some archives that upstream no longer has."""
    cache = request.state / "cache" / "sources"
    pinned = {package_name(spec): pinned_version(spec) for spec in request.specs}
    sources = [(source, one.package) for one in builds().values() for source in one.sources()]
    for source, package in sources:
        if pinned.get(package) == source.version and (source, cache) not in _tried:
            # Spack may know a mirror that has it.
            with contextlib.suppress(SourceUnavailable):
                obtain(source, cache, source_folders, say=say)
            _tried.add((source, cache))


# What this process has tried for another stack already.
_tried: set[tuple[Source, Path]] = set()


def prepare(request: SpackRequest, source_folders: Sequence[Path] = (), *, say: Say) -> Prepared:
    """Compose the environment of a stack and get its lock, without installing anything.

    Raises :class:`LackError` where there is no lock, and what is missing keeps Spack from making
    one.
    """
    spack, externals, sources = _compose_environment(request, source_folders, say)
    while chosen := lock_choice.choose(request, say):
        prepared = _ask(request, spack, chosen, say)
        if prepared.absent or not (changed := _other_recipes(request, spack, say)):
            return prepared
        names = listed(changed, 3)
        say(
            f"{chosen.name} is of another recipe of {names}: concretizing makes a lock of this one "
            "for this site; spack-repo/README.md says how to commit it"
        )
        if not chosen.committed:
            break
        lock_choice.note_other_recipes(request, chosen.lock, changed)
    # With the system's tools the committed lock would fit: then all that it needs is told.
    if wanted := lock_choice.committed_but_for_tools(request):
        but_for_tools = _ask(request, spack, wanted, say)
        if not all(map(_can_be_compiled, but_for_tools.absent)):
            return but_for_tools
    else:
        but_for_tools = None
    absent = _ask_roots(request, spack, externals, say)
    if any(lack.package in recipes.LANGUAGES.values() for lack in absent):
        say("without a compiler Spack cannot concretize: what else is missing shows afterwards")
        raise LackError.of(absent)
    if why := lock_choice.unused(request):
        say(f"concretizing: {why}")
    try:
        chosen = _concretize(request, spack, externals, sources, say)
    except ClustergateError:
        if absent:
            raise LackError.of(absent) from None
        raise
    prepared = _ask(request, spack, chosen, say)
    return but_for_tools if prepared.absent and but_for_tools else prepared


def _can_be_compiled(lack: Lack) -> bool:
    """Tell whether Spack can do without something: a tool that it compiles itself then."""
    return bool(lack.package) and lack.package not in (*recipes.LANGUAGES.values(), *recipes.TOOLS)


def _ask(request: SpackRequest, spack: SpackProgram, chosen: ChosenLock, say: Say) -> Prepared:
    """Put a lock into the environment, and ask the recipes that it pins what they need."""
    write_whole(request.folder / "spack.lock", chosen.text)
    say("asking Spack's recipes what they need")
    lock = chosen.lock
    pinned = [(f"{s.name}@={s.version}", s.hash) for s in lock.specs.values() if not s.external]
    answer = recipes.ask(spack, request, pinned, follow=())
    entries = answer.get("recipes", [])
    installed = [one["name"] for one in entries if one.get("here")]
    tools = lock_choice.missing_tools(lock) if len(installed) < len(entries) else []
    # A lock of the site's own is made anew when they come.
    packaged = recipes.packaged_tools(request) if not chosen.committed else []
    lacked = recipes.lacks(answer, request, locked=True, packaged=packaged)
    absent = list(dict.fromkeys([*tools, *lacked]))
    return Prepared(request, spack, lock, chosen.origin, absent, installed)


def _ask_roots(
    request: SpackRequest, spack: SpackProgram, externals: Sequence[External], say: Say
) -> list[Lack]:
    """Return what the roots of an environment without a lock need and this machine lacks."""
    (request.folder / "spack.lock").unlink(missing_ok=True)
    say("asking Spack's recipes what they need")
    given = {external.package for external in externals}
    roots = [spec for spec in request.specs if package_name(spec) not in given]
    blas = [request.settings.blas] if request.settings.blas not in given else []
    specs = [(" ".join(spec.split()), "") for spec in (*roots, *blas, recipes.WRAPPER)]
    packaged = recipes.packaged_tools(request)
    answer = recipes.ask(spack, request, specs, follow=packaged)
    return recipes.lacks(answer, request, packaged=packaged)


def _other_recipes(request: SpackRequest, spack: SpackProgram, say: Say) -> list[str]:
    """Have Spack index its recipes, and return those that are not the ones of the lock."""
    # A call that needs the index while another makes it waits two minutes for it, and fails; an
    # installation then hides why.
    with locked(request.state / "spack" / "index.lock", say=say):
        say("having Spack index its recipes (the first time takes minutes)")
        return recipes.other_than_locked(spack, request)


PATH_WITH_SPACE = Words(
    "spack.path-with-space",
    "Spack cannot build below a path with a space ({path})",
    remedy=(
        "put the suite into another folder, or name one in CLUSTERGATE_HOME, or take the stacks "
        "from wheels (CLUSTERGATE_PROVIDER=wheels)"
    ),
)
LONG_STORE = Words(
    "spack.long-store",
    (
        "the path of the store {store} has {length} characters, and Spack cannot install into "
        "one of more than {longest}"
    ),
    remedy="name a shorter one in the stack's setting 'store' or in CLUSTERGATE_HOME",
)
STORE_NOT_WRITABLE = Words(
    "spack.store-not-writable",
    "the store {store} is not writable, so nothing is built",
    remedy=(
        "name another folder in the stack's setting 'store', or let the owner of this one build "
        "the stack"
    ),
)


def _require_usable(request: SpackRequest) -> None:
    """Raise :class:`ClustergateError` for paths that Spack cannot work below."""
    for path in (request.store, request.state, request.repository, Path(sys.executable)):
        if re.search(r"\s", str(path)):
            raise ClustergateError(PATH_WITH_SPACE(path=path))
    length = len(str(request.store))
    if length > LONGEST_STORE:
        facts = {"length": length, "longest": LONGEST_STORE}
        raise ClustergateError(LONG_STORE(store=request.store, **facts))
    there = next(path for path in (request.store, *request.store.parents) if path.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise ClustergateError(STORE_NOT_WRITABLE(store=request.store))


def _concretize(
    request: SpackRequest,
    spack: SpackProgram,
    externals: Sequence[External],
    sources: Path | None,
    say: Say,
) -> ChosenLock:
    """Let Spack concretize the composed environment, and keep the lock with the site."""
    made = request.folder / "spack.lock"
    made.unlink(missing_ok=True)
    # What is installed meanwhile, Spack may see or not.
    without = recipes.tools_to_compile()
    _other_recipes(request, spack, say)
    if request.settings.externals:
        say("looking for the operating system's build tools")
        tools = build_tools(spack, builtin(request.state), request.log)
        compose(request, externals, tools, sources)
    say(f"concretizing with Spack {spack.version} for this machine, which takes minutes")
    doing = f"concretizing the environment {request.settings.environment!r}"
    spack.run(["-e", str(request.folder), "concretize"], request.log, doing=doing, say=say)
    text = made.read_text(encoding="utf-8")
    locks.parse_lock(text, str(made))
    lock_choice.keep(request, text, without)
    own = lock_choice.own_lock(request)
    assert own is not None
    return own


SPACK_LINKAGE = Words(
    "spack.linkage",
    "{mpi} was built but does not match its lock",
    cause="{complaints}",
    remedy="remove {store} or correct the site's scopes, and run `clustergate setup` again",
)


def _install(prepared: Prepared, say: Say) -> Manifest:
    """Install what the lock pins, and describe it once it is proven to be what the lock says."""
    request, spack, lock = prepared.request, prepared.spack, prepared.lock
    environment = ["-e", str(request.folder)]
    if prepared.absent:
        raise LackError.of(prepared.absent)
    say(f"installing from the lock {prepared.origin}: {lock.work(prepared.installed)}")
    spack.run(
        [*environment, "install", "--only-concrete", "--no-add", "--fail-fast"],
        request.log,
        doing=f"building the environment {request.settings.environment!r}",
        say=say,
    )
    listing = spack.run(
        [*environment, "find", "--no-groups", "--format", "{hash} {prefix}"],
        request.log,
        doing="asking where the packages are",
    )
    entries = (line.partition(" ") for line in listing.splitlines())
    prefixes = {key: Path(prefix) for key, _, prefix in entries if prefix.startswith("/")}
    manifest = describe(prepared, prefixes)
    if complaints := linkage_complaints(manifest):
        facts = {"mpi": request.mpi.title, "complaints": "; ".join(complaints)}
        raise ClustergateError(SPACK_LINKAGE(store=request.store, **facts))
    return manifest


OTHER_MPI = Words("spack.other-mpi", "{package} is not built with the root {mpi}")


def describe(prepared: Prepared, prefixes: Mapping[str, Path]) -> Manifest:
    """Return the manifest of what was installed, from its lock and the prefixes of its packages.

    Raises :class:`ClustergateError` when a package of the lock is not among the installed ones.
    """
    request, lock = prepared.request, prepared.lock
    mpi = lock.root(request.mpi.package)
    for package in dict.fromkeys(packages_of(request).values()):
        if lock.provider(package, "mpi") != mpi:
            facts = {"at": lock.source, "package": package, "mpi": str(mpi)}
            raise ClustergateError(OTHER_MPI(**facts))
    blas = lock.provider(KERNELS, "blas")
    mpi_prefix, blas_prefix = (str(_prefix_of(spec, prefixes)) for spec in (mpi, blas))
    home = request.mpi.root(Path(mpi_prefix), mpi.version)
    kernels = _prefix_of(lock.root(KERNELS), prefixes)
    variables, proof = _variables(request.mpi, home), kernels / "lib" / "libproof.so"
    dgemm, proof_needs = (_ldd(file, variables) for file in (kernels / "bin" / DGEMM, proof))
    blas_file = linkage.library_file(dgemm, linkage.BLAS_LIBRARY, blas_prefix)
    mpi_file = linkage.library_file(proof_needs, linkage.MPI_LIBRARY, mpi_prefix)
    return Manifest(
        stack=request.stack,
        provider="spack",
        mpi_name=request.mpi.title,
        mpi_version=mpi.version,
        library_pattern=request.mpi.pattern(mpi.version),
        mpi_prefix=mpi_prefix,
        mpi_library=mpi_file,
        launcher=str(home / "bin" / "mpirun"),
        dialect=request.mpi.dialect,
        environment=variables,
        blas=blas_of(blas.name, blas.version, blas_file),
        programs={
            **{
                name: _program(lock.root(package), prefixes, name)
                for name, package in packages_of(request).items()
            },
            **_absent_programs(request),
        },
        proof_library=str(proof),
        build_key=key_of_build(request, lock),
        lock=prepared.origin,
    )


NOT_INSTALLED = Words(
    "spack.not-installed",
    "the lock pins {spec}, which Spack has not installed",
    remedy="run `clustergate setup --refresh` to build it again",
)


def _prefix_of(spec: LockedSpec, prefixes: Mapping[str, Path]) -> Path:
    """Return where a package is; an external one where the lock says."""
    if spec.external:
        return Path(spec.external)
    if spec.hash not in prefixes:
        raise ClustergateError(NOT_INSTALLED(spec=str(spec)))
    return prefixes[spec.hash]


def _program(spec: LockedSpec, prefixes: Mapping[str, Path], name: str) -> Program:
    prefix = _prefix_of(spec, prefixes)
    # What is launched by other programs, or by nobody's PATH, lies below libexec.
    below = (path for path in sorted(prefix.glob(f"libexec/**/{name}")) if path.is_file())
    path = next(below, prefix / "bin" / name)
    if not path.is_file():
        return Program(unavailable=f"{spec} installs no {name}")
    return Program(str(path), spec.version, f"built by Spack as {spec}")


def _variables(mpi: MpiPackage, home: Path) -> dict[str, str]:
    """Return what a job exports before it launches this MPI library."""
    variables = {"PATH": str(home / "bin")}
    for name, folders in mpi.environment.items():
        if there := [home / folder for folder in folders if (home / folder).is_dir()]:
            variables[name] = str(there[0])
    return variables


def linkage_complaints(manifest: Manifest) -> list[str]:
    """Return what speaks against the binaries being linked as their lock says."""
    assert manifest.blas is not None
    mpi, blas = manifest.mpi_prefix, manifest.blas.library
    calling_blas = {name for one in builds().values() if one.uses_blas for name in one.programs}
    needs: dict[str, tuple[str | None, str | None]] = {
        program.path: (
            None if name in NODE_KERNELS.programs else mpi,
            blas if name in {DGEMM, *calling_blas} else None,
        )
        for name, program in manifest.programs.items()
        if not program.unavailable
    }
    needs[manifest.proof_library] = (mpi, None)
    complaints = []
    for path, (needed_mpi, needed_blas) in needs.items():
        text = _ldd(Path(path), manifest.environment)
        complaints += linkage.complaints(path, text, mpi=needed_mpi, blas=needed_blas)
    return complaints


NO_LDD = Words(
    "spack.no-ldd",
    "ldd cannot be started ({why}), so that what {program} is linked with cannot be proven",
    remedy="it belongs to the C library's tools (Debian: libc-bin)",
)


def _ldd(program: Path, variables: Mapping[str, str]) -> str:
    """Return what ``ldd`` says of a program in the environment that a job has."""
    environment = {**clean_environment(os.environ).environment, **variables}
    environment["PATH"] = f"{variables['PATH']}:{os.environ.get('PATH', os.defpath)}"
    try:
        ended = capture(["ldd", str(program)], env=environment)
    except OSError as error:
        raise ClustergateError(NO_LDD(program=program, why=error)) from None
    return ended.stdout + ended.stderr


def _read_finished(request: SpackRequest) -> Manifest | None:
    """Return the manifest of the last build if it is what would be built now and is still there.

    What is built already stays as it is, whichever of the stack's locks it was built from.
    """
    try:
        manifest = read_manifest(request.state, request.stack)
        chosen = [lock_choice.committed_lock(request), lock_choice.own_lock(request)]
    except ClustergateError:
        return None
    keys = [key_of_build(request, one.lock) for one in chosen if one]
    if manifest.build_key not in keys:
        return None
    files = [manifest.launcher, manifest.mpi_library, manifest.proof_library]
    files += [program.path for program in manifest.programs.values() if not program.unavailable]
    files += [manifest.blas.library] if manifest.blas else []
    return manifest if all(Path(file).exists() for file in files) else None


def _committed_lock_that_fits(request: SpackRequest, manifest: Manifest) -> str:
    """Return the name of a committed lock that fits and that a build is not from, or nothing."""
    committed = lock_choice.committed_lock(request)
    if committed is None or manifest.build_key == key_of_build(request, committed.lock):
        return ""
    return "" if lock_choice.why_unfit(request, committed.lock) else committed.name


def key_of_build(request: SpackRequest, lock: Lock) -> str:
    words = ["spack", RECIPE, request.stack, request.inputs, lock.digest, str(request.store)]
    return build_key(words, [])


STACK_FAILED = Words(
    "spack.stack-failed",
    "setting {stack} up failed: {why} ({path})",
    remedy=(
        "name a folder that you may write to in CLUSTERGATE_HOME or in the stack's setting 'store'"
    ),
)


def _failure(request: SpackRequest, error: OSError) -> Reason:
    if is_full(error):
        return full_disk(f"({error.filename}) while setting {request.stack} up", LARGER_DISK)
    return STACK_FAILED(stack=request.stack, why=error, path=error.filename)


def _seen_lacking(set_up: SetUp) -> Sequence[Lack]:
    # What its recipes need is known to Spack alone, which takes longer than this may.
    find_spack(set_up.state, set_up.settings.get("spack_root", ""))
    return ()


_TEXT = {"type": "string"}
PROVIDER = Provider(
    name="spack",
    provide=provide,
    planned=planned,
    lacks=lacks,
    # Each build takes many cores.
    at_once=2,
    settings={
        "type": "object",
        "description": "the settings of Spack",
        "properties": {
            one.name: {"type": "array", "items": _TEXT} if one.name in LISTS else _TEXT
            for one in dataclasses.fields(SpackSettings)
        },
        "additionalProperties": False,
    },
    seen_lacking=_seen_lacking,
)
