"""Fetch the pinned Spack and spack-packages: verified and whole, or not at all.

Both come from upstream, or from a copy that the user names: a git repository, an archive or a
folder. What arrived is compared with git's own checksum of the pinned content before it takes its
place.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml
from filelock import FileLock

from clustergate.files.whole import full_disk, is_full, scratch_beside
from clustergate.model import ClustergateError, Say
from clustergate.paths import suite_folder
from clustergate.stacks.archives import ArchiveError, unpack
from clustergate.stacks.compilation import capture
from clustergate.wording.reasons import Given, Reason, reason

STAMP = ".clustergate-pin.json"
# Spack's recipes, below a checkout of spack-packages.
BUILTIN = Path("repos") / "spack_repo" / "builtin"
# What a copy may hold beyond the release: it is left behind.
NOT_CONTENT = (".git", "__pycache__", STAMP)
FETCH_SECONDS = 3600
# Slower than this many bytes per second for so many seconds is no connection any more.
STALLED = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60")


class BootstrapError(ClustergateError):
    """Spack or its packages could not be brought here; what was here before is as it was."""


@dataclass(frozen=True)
class Pin:
    """One upstream release: ``commit`` is git's id of it, ``tree`` git's checksum of its files."""

    name: str
    version: str
    url: str
    tag: str
    commit: str
    tree: str

    def __str__(self) -> str:
        return f"{self.title} {self.version}"

    @property
    def title(self) -> str:
        """Return upstream's name of it."""
        return "Spack" if self.name == "spack" else "spack-packages"

    @property
    def variable(self) -> str:
        """Return the environment variable that names a copy."""
        return f"CLUSTERGATE_{self.name.upper()}_FROM"

    def folder(self, state: Path) -> Path:
        """Return where it lies in a state folder."""
        return state / "spack" / ("root" if self.name == "spack" else "packages")


class Pins(NamedTuple):
    """The releases that the suite works with."""

    spack: Pin
    packages: Pin


def pins_path() -> Path:
    """Return the file of the suite that pins Spack and its packages."""
    return suite_folder("spack-repo") / "pins.yaml"


def read_pins(path: Path | None = None) -> Pins:
    """Read the pins, by default the suite's own."""
    text = (path or pins_path()).read_text(encoding="utf-8")
    return Pins(**{name: Pin(name, **entry) for name, entry in yaml.safe_load(text).items()})


def _is_here(pin: Pin, folder: Path) -> bool:
    """Tell whether the release stands in its place; only a finished one carries the stamp."""
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(stamp, dict) and stamp.get("commit") == pin.commit


def bring(
    state: Path,
    *,
    pins: Pins | None = None,
    places: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
    only: Collection[str] = ("spack", "packages"),
    say: Say = lambda sentence: None,
) -> None:
    """Bring the releases into ``<state>/spack``; what is there already costs no word.

    ``places`` names copies of ``spack`` and ``packages``, ``environ`` does by variable; without
    either, upstream is asked. Raises :class:`BootstrapError` in one sentence.
    """
    for pin in pins or read_pins():
        if pin.name not in only:
            continue
        folder = pin.folder(state)
        place = (places or {}).get(pin.name) or environ.get(pin.variable, "")
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{folder}.lock"):
                if not _is_here(pin, folder):
                    _bring_one(pin, folder, place, say)
        except OSError as error:
            raise BootstrapError(_failure(pin, folder, error)) from None


def _failure(pin: Pin, folder: Path, error: OSError) -> Reason:
    if is_full(error):
        return full_disk(f"while bringing {pin} into {folder}")
    facts = {"pin": str(pin), "folder": str(folder), "path": error.filename}
    return reason("release.not-brought", why=error, **facts)


def _bring_one(pin: Pin, folder: Path, place: str, say: Say) -> None:
    origin = redact(place or pin.url)
    with scratch_beside(folder) as scratch:
        content = _get_content(pin, place, scratch, say)
        _require_pinned(pin, git_tree(content), origin)
        stamp = {**dataclasses.asdict(pin), "from": origin}
        (content / STAMP).write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            say(f"replacing another version in {folder}")
            os.rename(folder, scratch / "replaced")
        os.rename(content, folder)


def _get_content(pin: Pin, place: str, scratch: Path, say: Say) -> Path:
    """Put the content of a release into a folder below ``scratch`` and return it."""
    content = scratch / "content"
    kind = kind_of(place) if place else "remote"
    say(f"bringing {pin} from {redact(place or pin.url)}")
    if kind == "repository":
        content.mkdir()
        _check_out(pin, _borrow(pin, Path(place), scratch), content, scratch, place)
    elif kind == "remote":
        content.mkdir()
        fetched = _fetch_tag(pin, place or pin.url, scratch)
        _check_out(pin, fetched, content, scratch, place or pin.url)
    elif kind == "archive":
        try:
            content.mkdir()
            content = unpack(Path(place), content, without=NOT_CONTENT)
        except ArchiveError as error:
            raise _error("release.archive", pin, why=error) from None
    elif kind == "folder":
        ignored = shutil.ignore_patterns(*NOT_CONTENT)
        shutil.copytree(place, content, symlinks=True, ignore=ignored)
    else:
        raise _error("release.no-place", pin, place=place)
    return content


def kind_of(place: str) -> str:
    """Tell what a place is: ``repository``, ``folder``, ``archive``, ``remote``; else ""."""
    path = Path(place)
    if path.is_dir():
        return "repository" if _git_folder(path) is not None else "folder"
    if path.is_file():
        with path.open("rb") as file:
            is_bundle = file.read(16).endswith(b" git bundle\n")
        return "remote" if is_bundle else "archive"
    return "remote" if re.match(r"\w[\w+.-]*://|[^/\s]+:", place) else ""


def _git_folder(path: Path) -> Path | None:
    """Return the git directory of a checkout or of a bare repository."""
    if (path / ".git").exists():
        return path / ".git"
    bare = all((path / name).exists() for name in ("HEAD", "objects", "refs"))
    return path if bare else None


def redact(place: str) -> str:
    """Return a place as it may be shown: an address may carry a password, or a token."""
    return re.sub(r"(https?://)[^/@\s]+@", r"\1", place)


def _borrow(pin: Pin, place: Path, scratch: Path) -> Path:
    """Return a repository of our own with the objects of another one.

    Somebody else's configuration and attributes could name programs for git to run.
    """
    git_dir = f"--git-dir={_git_folder(place.resolve())}"
    objects = _git(pin, str(place), git_dir, "rev-parse", "--git-path", "objects").rstrip("\n")
    repository = scratch / "borrowed.git"
    _git(pin, str(place), "init", "--quiet", "--bare", "--", str(repository))
    alternates = repository / "objects" / "info" / "alternates"
    alternates.write_text(f"{objects}\n", encoding="utf-8")
    return repository


def _fetch_tag(pin: Pin, url: str, scratch: Path) -> Path:
    """Fetch the tag of a release into a repository of its own and return it."""
    repository = scratch / "fetched.git"
    _git(pin, url, "init", "--quiet", "--bare", "--", str(repository))
    git_dir = f"--git-dir={repository}"
    options = ("--quiet", "--depth=1", "--no-tags")
    _git(pin, url, git_dir, *STALLED, "fetch", *options, "--", url, f"refs/tags/{pin.tag}")
    arrived = _git(pin, url, git_dir, "rev-parse", "FETCH_HEAD^{commit}").strip()
    if arrived != pin.commit:
        facts = {"place": redact(url), "actual": arrived[:12], "pinned": pin.commit[:12]}
        raise _error("release.other-commit", pin, path=pins_path(), **facts)
    return repository


def _check_out(pin: Pin, git_dir: Path, content: Path, scratch: Path, place: str) -> None:
    """Write the pinned commit's files into ``content``; the repository is only read.

    ``place`` is where its content came from.
    """
    index = {"GIT_INDEX_FILE": str(scratch / "index")}
    git = (f"--git-dir={git_dir}", f"--work-tree={content}", "-c", "core.autocrlf=false")
    _git(pin, place, *git, "read-tree", pin.commit, environment=index)
    write = ("checkout-index", "--all", "--force", f"--prefix={content}/")
    _git(pin, place, *git, *write, environment=index)


def _git(pin: Pin, place: str, *arguments: str, environment: Mapping[str, str] = {}) -> str:
    inherited = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE")}
    # A question for a password would wait for ever; messages are read, so they must be English.
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
    try:
        own = {**inherited, **quiet, **environment}
        ended = capture(["git", *arguments], env=own, timeout=FETCH_SECONDS)
    except FileNotFoundError:
        raise _error("release.no-git", pin, place=redact(place)) from None
    except subprocess.TimeoutExpired:
        raise _error("release.timed-out", pin, place=redact(place)) from None
    if ended.returncode:
        raise git_failure(redact(ended.stderr), pin, redact(place))
    return ended.stdout


def git_failure(stderr: str, pin: Pin, place: str) -> BootstrapError:
    """Turn what git says when it fails into the error, with the next step."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines[-1:]
    # git's first complaint is the cause; those after it are its consequences.
    cause = fatal[0].partition(": ")[2] or fatal[0] if fatal else "git gives no reason"
    if "No space left on device" in stderr:
        return BootstrapError(full_disk(f"while bringing {pin}"))
    if pin.commit in stderr:
        return _error("release.not-held", pin, place=place, commit=pin.commit[:12])
    return _error("release.not-fetched", pin, place=place, why=cause)


def _error(code: str, pin: Pin, **facts: Given) -> BootstrapError:
    """Return an error with what is to be said of a release in most of them."""
    known = {"pin": str(pin), "tag": pin.tag, "variable": pin.variable}
    return BootstrapError(code, **known, **facts)


# What git's checksum of a folder is made of: modes and ids of its files, by their paths.
Files = dict[tuple[str, ...], tuple[str, str]]


def git_tree(folder: Path) -> str:
    """Return git's id of a folder's content: equal ids, equal files.

    It is git's own checksum (SHA-1 over names, modes and contents), so a release needs no git to
    be proven. Batch files are hashed with the line ends that git keeps.
    """
    return _tree_id(_files(folder, ()))


def _files(folder: Path, above: tuple[str, ...]) -> Files:
    files: Files = {}
    for path in folder.iterdir():
        here = (*above, path.name)
        if path.name in NOT_CONTENT:
            continue
        if path.is_symlink():
            files[here] = _link(os.readlink(path))
        elif path.is_dir():
            files |= _files(path, here)
        else:
            files[here] = _plain_file(path.name, path.stat().st_mode, path.read_bytes())
    return files


def _link(target: str) -> tuple[str, str]:
    return ("120000", _git_id("blob", os.fsencode(target)))


def _plain_file(name: str, mode: int, content: bytes) -> tuple[str, str]:
    if name.endswith(".bat"):
        content = content.replace(b"\r\n", b"\n")
    return ("100755" if mode & stat.S_IXUSR else "100644", _git_id("blob", content))


def _tree_id(files: Files) -> str:
    entries: list[tuple[bytes, bytes]] = []
    below: dict[str, Files] = {}
    for (name, *rest), (mode, identity) in files.items():
        if rest:
            below.setdefault(name, {})[tuple(rest)] = (mode, identity)
        else:
            entries.append((os.fsencode(name), _entry(mode, name, identity)))
    for name, within in below.items():
        # git sorts a folder as if its name ended in a slash.
        entries.append((os.fsencode(f"{name}/"), _entry("40000", name, _tree_id(within))))
    return _git_id("tree", b"".join(content for _, content in sorted(entries)))


def _entry(mode: str, name: str, identity: str) -> bytes:
    return mode.encode() + b" " + os.fsencode(name) + b"\0" + bytes.fromhex(identity)


def _git_id(kind: str, content: bytes) -> str:
    header = f"{kind} {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def _require_pinned(pin: Pin, tree: str, place: str) -> None:
    if tree != pin.tree:
        facts = {"place": place, "actual": tree[:12], "pinned": pin.tree[:12]}
        raise _error("release.other-content", pin, **facts)
