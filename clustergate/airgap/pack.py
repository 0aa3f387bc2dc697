"""Pack what a machine without a network needs: one folder with everything in it."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clustergate import version
from clustergate.airgap.folder import (
    UNFINISHED,
    Contents,
    Layout,
    PackedStack,
    as_text,
    checksums,
    failure,
    packed_files,
    releases_of,
    require_clone,
    running_python,
)
from clustergate.benchmarks.build import Wheel
from clustergate.benchmarks.registry import builds, every_source
from clustergate.files.shared import locked
from clustergate.files.whole import scratch_beside, write_whole
from clustergate.machine.processes import capture
from clustergate.model import ClustergateError, Say
from clustergate.paths import checkout
from clustergate.stacks import prefixes, sources, wheels
from clustergate.stacks.kernels import NODE_KERNELS
from clustergate.stacks.sources import SourceUnavailable
from clustergate.stacks.spack import bootstrap, locks
from clustergate.stacks.spack.composition import SpackRequest, read_spack_request
from clustergate.stacks.spack.lock_choice import kept_lock
from clustergate.stacks.spack.provider import prepare

# Not part of a clone, whatever tool made it.
NOT_CLONE = (".git", ".venv", ".venv.log", ".clustergate", "__pycache__", "*.egg-info", ".*_cache")
# Intel's packages may not be handed on to others, which a folder of one's own does not do.
PRIVATE = "--private"
README = """\
The suite clustergate with all it needs on a machine without a network. There:

    cp -r {clone} TARGET
    cd TARGET
    bash ci/airgap unpack FOLDER

where FOLDER is this folder. docs/air-gap.md in the clone tells the rest.
"""


@dataclass(frozen=True)
class Wanted:
    """What is to be packed: Spack's stacks with their settings, and folders of source archives."""

    stacks: Mapping[str, Mapping[str, Any]]
    source_folders: tuple[Path, ...] = ()


def pack(folder: Path, wanted: Wanted, state: Path, *, say: Say) -> Contents:
    """Pack a folder and return what is in it.

    A folder of an interrupted run is continued; until packing ends it is marked as unfinished.
    """
    require_clone()
    layout = Layout(folder)
    try:
        _claim(layout)
        with locked(folder / ".lock"):
            (folder / UNFINISHED).touch()
            layout.description.unlink(missing_ok=True)
            shutil.rmtree(layout.locks, ignore_errors=True)
            return _Packer(layout, wanted, state, say).pack()
    except OSError as error:
        raise failure(f"packing {folder}", error, "name a folder on a larger disk") from None


def _claim(layout: Layout) -> None:
    """Make the folder; one that holds something else is left alone."""
    folder = layout.folder
    clone = checkout()
    if folder.is_relative_to(clone):
        raise ClustergateError("airgap.inside-clone", folder=folder, clone=clone)
    ours = layout.description.exists() or (folder / UNFINISHED).exists()
    if folder.is_dir() and any(folder.iterdir()) and not ours:
        raise ClustergateError("airgap.not-empty", folder=folder)
    folder.mkdir(parents=True, exist_ok=True)


@dataclass
class _Packer:
    """One folder on its way; the lock is held by the caller."""

    layout: Layout
    wanted: Wanted
    state: Path
    say: Say
    absent: list[str] = field(default_factory=list)

    def pack(self) -> Contents:
        """Pack everything, the description last."""
        layout, say = self.layout, self.say
        if self.wanted.stacks:
            self._releases()
        stacks = tuple(self._stack(name, dict(s)) for name, s in self.wanted.stacks.items())
        suite = copy_clone(checkout(), layout.clone, say)
        what = f"the suite's packages for Python {running_python()}"
        say(f"downloading {what}")
        prefixes.download(checkout() / "requirements.txt", layout.python_wheels, what)
        self._stack_wheels()
        self._sources()
        (layout.folder / "README").write_text(
            README.format(clone=layout.clone.name), encoding="utf-8"
        )
        say("computing checksums")
        for path in (*packed_files(layout.folder), *layout.folder.glob("*")):
            # Whoever unpacks is somebody else.
            path.chmod(path.stat().st_mode | 0o444)
        contents = Contents(
            suite=suite,
            machine=platform.machine(),
            stacks=stacks,
            absent=tuple(self.absent),
            files=checksums(layout.folder),
        )
        write_whole(layout.description, as_text(contents))
        layout.description.chmod(0o644)
        (layout.folder / UNFINISHED).unlink()
        return contents

    def _releases(self) -> None:
        """Fetch Spack and its packages into the folder, and take them from there."""
        pins = bootstrap.read_pins()
        self.layout.releases.mkdir(exist_ok=True)
        for pin in pins:
            repository = self.layout.release(pin)
            if not repository.exists():
                self.say(f"fetching {pin}")
                with scratch_beside(repository) as scratch:
                    bootstrap.fetch(pin, bootstrap.place_of(pin), scratch / "fetched")
                    os.rename(scratch / "fetched", repository)
        places = releases_of(self.layout, pins)
        bootstrap.bring(self.state, pins=pins, places=places, say=self.say)

    def _stack(self, name: str, settings: dict[str, Any]) -> PackedStack:
        request = read_spack_request(name, self.state, settings)

        def tell(sentence: str) -> None:
            self.say(f"{name}: {sentence}")

        request.folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(f"{request.folder}.lock"):
            prepared = prepare(request, self.wanted.source_folders, say=tell)
            lock = self._lock(request)
            tell("collecting its sources")
            command = ["-e", str(request.folder), "mirror", "create", "--all", PRIVATE]
            prepared.spack.run(
                [*command, "--directory", str(self.layout.mirror)],
                request.log,
                doing=f"collecting the sources of {name}",
            )
        tidy_mirror(self.layout.mirror)
        kernels = prepared.lock.root(NODE_KERNELS.package)
        return PackedStack(name, lock, kernels.system, kernels.target)

    def _lock(self, request: SpackRequest) -> str:
        """Pack the lock that was concretized here, if it names nothing that is only here."""
        kept = kept_lock(request, locks.host())
        if not kept.is_file():
            return ""
        lock = locks.parse_lock(kept.read_text(encoding="utf-8"), str(kept))
        if any(Path(file).is_relative_to(self.state) for file in lock.needed_files()):
            return ""
        self.layout.locks.mkdir(exist_ok=True)
        shutil.copyfile(kept, self.layout.locks / kept.name)
        return kept.name

    def _stack_wheels(self) -> None:
        for requirements in requirements_of(platform.machine()):
            pins = prefixes.REQUIREMENTS / requirements
            self.say(f"downloading {pins.stem}")
            prefixes.download(pins, self.layout.stack_wheels, pins.stem)

    def _sources(self) -> None:
        """Pack the benchmarks' archives; a missing one is reported, and no error."""
        self.layout.sources.mkdir(exist_ok=True)
        cache = self.state / "cache" / "sources"
        for source in every_source():
            target = self.layout.sources / source.file_name
            try:
                archive = sources.obtain(source, cache, self.wanted.source_folders, say=self.say)
                shutil.copyfile(archive, target)
            except SourceUnavailable as missing:
                self.absent.append(str(missing))


def requirements_of(machine: str) -> list[str]:
    """Return the requirements files of what comes as wheels for a kind of machine."""
    stacks = [s.requirements for s in wheels.STACKS.values() if machine in s.machines]
    recipes = (recipe for build in builds().values() for recipe in build.recipes)
    own = [r.pins for r in recipes if isinstance(r, Wheel) and machine in r.machines]
    return list(dict.fromkeys([*stacks, wheels.OPENBLAS, *own]))


def tidy_mirror(mirror: Path) -> None:
    """Leave only what Spack looks archives up by.

    The links by package beside it serve people, and a folder may travel on a disk without links.
    """
    for entry in mirror.iterdir():
        if entry.is_dir() and not entry.name.startswith("_"):
            shutil.rmtree(entry)


def copy_clone(clone: Path, target: Path, say: Say) -> str:
    """Copy the suite with its history and with what is not committed yet; return its version.

    What a user keeps in ``.git/config`` stays where it is. A clone without git is copied as files.
    """
    say(f"copying {clone}")
    if target.exists():
        shutil.rmtree(target)
    if not (clone / ".git").exists() or shutil.which("git") is None:
        shutil.copytree(clone, target, symlinks=True, ignore=shutil.ignore_patterns(*NOT_CLONE))
        return version()
    _git("clone", "--quiet", "--no-hardlinks", "--no-checkout", str(clone), str(target))
    _git("-C", str(target), "remote", "remove", "origin")
    _git("-C", str(target), "reset", "--quiet")
    listed = ("ls-files", "--cached", "--others", "--exclude-standard", "-z")
    for name in filter(None, _git("-C", str(clone), *listed).split("\0")):
        if os.path.lexists(clone / name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(clone / name, target / name, follow_symlinks=False)
    if changed := _git("-C", str(target), "status", "--porcelain", "--untracked-files=all"):
        say(f"uncommitted files, packed as they are: {len(changed.splitlines())}")
    return _git("-C", str(target), "describe", "--tags", "--always", "--dirty").strip()


def _git(*arguments: str) -> str:
    ended = capture(["git", *arguments])
    if ended.returncode:
        why = ended.stderr.strip().partition("\n")[0] or "git gives no reason"
        raise ClustergateError("airgap.clone", why=why)
    return ended.stdout
