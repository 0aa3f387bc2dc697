"""Bring the pinned Spack and the pinned spack-packages here: verified and whole, or not at all.

Both come from upstream, or from a copy that the user names: a git repository, an archive or a
folder. Whatever the way, what arrived is compared with git's own checksum of the pinned content
before it takes its place, so no way is trusted more than another.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from clustergate.marked_yaml import read_document
from clustergate.model import ClustergateError
from clustergate.stacks.compilation import unpack
from clustergate.state import checkout

Say = Callable[[str], None]

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

    title: str
    version: str
    url: str
    tag: str
    commit: str
    tree: str

    def __str__(self) -> str:
        return f"{self.title} {self.version}"


@dataclass(frozen=True)
class Pins:
    """The releases that the suite works with."""

    spack: Pin
    packages: Pin


@dataclass(frozen=True)
class Part:
    """A release on its way into ``folder``; ``name`` is its key in the pins."""

    name: str
    pin: Pin
    folder: Path

    @property
    def option(self) -> str:
        """Return the option of the command line that names a copy."""
        return f"--{self.name}-from"

    @property
    def variable(self) -> str:
        """Return the environment variable that names a copy."""
        return f"CLUSTERGATE_{self.name.upper()}_FROM"


def pins_path() -> Path:
    """Return the file of the clone that pins Spack and its packages."""
    return checkout() / "spack-repo" / "pins.yaml"


def read_pins(path: Path | None = None) -> Pins:
    """Read the pins; raises :class:`BootstrapError` with file and line where they are no pins."""
    path = path or pins_path()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BootstrapError(
            f"{path} cannot be read ({error.strerror}); it is a part of the clone, so fetch the "
            "clone again"
        ) from None
    return parse_pins(text, str(path))


def parse_pins(text: str, source: str = "pins.yaml") -> Pins:
    """Turn the text of ``pins.yaml`` into pins."""
    document = read_document(text)
    for complaint in document.complaints:
        raise BootstrapError(f"{source}:{complaint.line}: {complaint.sentence}")
    entries = document.data if isinstance(document.data, dict) else {}
    read = {}
    for name, title in (("spack", "Spack"), ("packages", "spack-packages")):
        entry = entries.get(name)
        if not isinstance(entry, dict):
            raise BootstrapError(f"{source}:1: there is no entry {name!r}")
        for key in ("version", "url", "tag", "commit", "tree"):
            line = document.line((name, key) if key in entry else (name,))
            value = entry.get(key)
            if not isinstance(value, str) or not value:
                raise BootstrapError(f"{source}:{line}: {name} needs {key!r}, as text")
            if key in ("commit", "tree") and not re.fullmatch(r"[0-9a-f]{40}", value):
                raise BootstrapError(f"{source}:{line}: {key} is no full git id of 40 digits")
        read[name] = Pin(title=title, **{field: entry[field] for field in _pinned()})
    return Pins(**read)


def _pinned() -> list[str]:
    return [field.name for field in dataclasses.fields(Pin) if field.name != "title"]


def parts(pins: Pins, state: Path) -> tuple[Part, Part]:
    """Return what is to be brought into a state folder, and where it goes."""
    return (
        Part("spack", pins.spack, state / "spack" / "root"),
        Part("packages", pins.packages, state / "spack" / "packages"),
    )


def is_here(part: Part) -> bool:
    """Tell whether the release stands in its place; only a finished one carries the stamp."""
    try:
        stamp = json.loads((part.folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(stamp, dict) and stamp.get("commit") == part.pin.commit


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
    for part in parts(pins or read_pins(), state):
        if part.name not in only:
            continue
        place = (places or {}).get(part.name) or environ.get(part.variable, "")
        try:
            part.folder.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{part.folder}.lock"):
                if not is_here(part):
                    _bring_part(part, place, say)
        except OSError as error:
            raise BootstrapError(_told(part, error)) from None


def _told(part: Part, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"the disk is full while bringing {part.pin} into {part.folder}; free some space, or "
            "set CLUSTERGATE_HOME to a folder on a larger disk, and run the command again"
        )
    return (
        f"{part.pin} cannot be brought into {part.folder} ({error.strerror}: {error.filename}); "
        "set CLUSTERGATE_HOME to a folder you may write to, and run the command again"
    )


def _bring_part(part: Part, place: str, say: Say) -> None:
    beside = part.folder.parent
    # The lock is held, so these belong to a run that was killed.
    for abandoned in beside.glob(f".{part.folder.name}-*"):
        shutil.rmtree(abandoned)
    scratch = Path(tempfile.mkdtemp(dir=beside, prefix=f".{part.folder.name}-"))
    try:
        content = _arrived(part, place, scratch, say)
        _verify(part, content, place or part.pin.url)
        stamp = {**dataclasses.asdict(part.pin), "from": place or part.pin.url}
        (content / STAMP).write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")
        if part.folder.exists():
            say(f"replacing another version in {part.folder}")
            os.rename(part.folder, scratch / "replaced")
        os.rename(content, part.folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _arrived(part: Part, place: str, scratch: Path, say: Say) -> Path:
    """Put the content of a release into a folder below ``scratch`` and return it."""
    content = scratch / "content"
    kind = kind_of(place) if place else "remote"
    say(f"bringing {part.pin} from {place or part.pin.url}")
    if kind == "repository":
        content.mkdir()
        _check_out(part, _git_folder(Path(place)), content, scratch)
    elif kind == "remote":
        content.mkdir()
        _check_out(part, _fetched(part, place or part.pin.url, scratch), content, scratch)
    elif kind == "archive":
        content = _unpacked(part, Path(place), scratch / "archive")
    elif kind == "folder":
        ignored = shutil.ignore_patterns(*NOT_CONTENT)
        shutil.copytree(place, content, symlinks=True, ignore=ignored)
    else:
        raise BootstrapError(
            f"{place} is no folder, no archive and no address, so {part.pin} cannot come from it; "
            f"{_elsewhere(part)}"
        )
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


def _fetched(part: Part, url: str, scratch: Path) -> Path:
    """Fetch the tag of a release into a repository of its own and return it."""
    repository = scratch / "fetched.git"
    _git(part, url, "init", "--quiet", "--bare", str(repository))
    git_dir = f"--git-dir={repository}"
    options = ("--quiet", "--depth=1", "--no-tags")
    _git(part, url, git_dir, *STALLED, "fetch", *options, "--", url, f"refs/tags/{part.pin.tag}")
    arrived = _git(part, url, git_dir, "rev-parse", "FETCH_HEAD^{commit}").strip()
    if arrived != part.pin.commit:
        raise BootstrapError(
            f"the tag {part.pin.tag} of {url} is the commit {arrived[:12]}… where "
            f"{part.pin.commit[:12]}… is pinned, so it is refused; {pins_path()} holds the pins"
        )
    return repository


def _check_out(part: Part, git_dir: Path | None, content: Path, scratch: Path) -> None:
    """Write the pinned commit's files into ``content``; the repository is only read."""
    # An index of our own: the repository may be somebody else's, and in use.
    index = {"GIT_INDEX_FILE": str(scratch / "index")}
    git = (f"--git-dir={git_dir}", f"--work-tree={content}", "-c", "core.autocrlf=false")
    _git(part, str(git_dir), *git, "read-tree", part.pin.commit, environment=index)
    write = ("checkout-index", "--all", "--force", f"--prefix={content}/")
    _git(part, str(git_dir), *git, *write, environment=index)


def _git(
    part: Part, place: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> str:
    inherited = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE")}
    # A question for a password would wait for ever; messages are read, so they must be English.
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
    try:
        ended = subprocess.run(
            ["git", *arguments],
            env={**inherited, **quiet, **(environment or {})},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise BootstrapError(
            f"there is no git, so {part.pin} cannot be brought from {place}; install git, or name "
            f"an archive or an unpacked release by `ci/bootstrap {part.option} PLACE`"
        ) from None
    except subprocess.TimeoutExpired:
        raise BootstrapError(
            f"{place} does not deliver {part.pin} within an hour; {_elsewhere(part)}"
        ) from None
    if ended.returncode:
        raise BootstrapError(git_failure(ended.stderr, part, place))
    return ended.stdout


def git_failure(stderr: str, part: Part, place: str) -> str:
    """Turn what git says when it fails into one sentence with the next step."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines[-1:]
    # git's first complaint is the cause; those after it are its consequences.
    cause = fatal[0].partition(": ")[2] or fatal[0] if fatal else "git gives no reason"
    if "No space left on device" in stderr:
        return (
            f"the disk is full while bringing {part.pin}; free some space, or set CLUSTERGATE_HOME "
            "to a folder on a larger disk, and run the command again"
        )
    if part.pin.commit in stderr:
        return (
            f"{place} does not hold {part.pin} (commit {part.pin.commit[:12]}…, tag "
            f"{part.pin.tag}); fetch that tag into it, or {_elsewhere(part)}"
        )
    return f"{part.pin} cannot be fetched from {place} ({cause}); {_elsewhere(part)}"


def _elsewhere(part: Part) -> str:
    return (
        "try again where there is a network, or name a copy (a git repository, an archive or an "
        f"unpacked release): `ci/bootstrap {part.option} PLACE`, or the variable {part.variable}"
    )


def _unpacked(part: Part, archive: Path, folder: Path) -> Path:
    folder.mkdir()
    try:
        return unpack(archive, folder)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise BootstrapError(
            f"{archive} is no whole archive of {part.pin} ({error}); fetch it again, or "
            f"{_elsewhere(part)}"
        ) from None


def git_tree(folder: Path) -> str:
    """Return git's id of a folder's content: equal ids, equal files.

    It is git's own checksum (SHA-1 over names, modes and contents), so a release that came without
    git is as well proven as one that came with it. Batch files are hashed with the line ends that
    git keeps them with, whatever those on disk are.
    """
    entries: list[tuple[str, bytes]] = []
    for path in folder.iterdir():
        name = path.name
        if name in NOT_CONTENT:
            continue
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            tree = git_tree(path)
            if tree != _EMPTY_TREE:  # git knows no empty folder
                # git sorts a folder as if its name ended in a slash.
                entries.append((f"{name}/", _entry("40000", name, tree)))
            continue
        if stat.S_ISLNK(mode):
            kind, content = "120000", os.fsencode(os.readlink(path))
        else:
            kind = "100755" if mode & stat.S_IXUSR else "100644"
            content = path.read_bytes()
            if name.endswith(".bat"):
                content = content.replace(b"\r\n", b"\n")
        entries.append((name, _entry(kind, name, _git_id("blob", content))))
    ordered = sorted(entries, key=lambda entry: os.fsencode(entry[0]))
    return _git_id("tree", b"".join(content for _, content in ordered))


def _entry(mode: str, name: str, identity: str) -> bytes:
    return mode.encode() + b" " + os.fsencode(name) + b"\0" + bytes.fromhex(identity)


def _git_id(kind: str, content: bytes) -> str:
    header = f"{kind} {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


_EMPTY_TREE = _git_id("tree", b"")


def _verify(part: Part, content: Path, place: str) -> None:
    found = git_tree(content)
    if found != part.pin.tree:
        raise BootstrapError(
            f"{place} is not {part.pin} as it was released (its content has the checksum "
            f"{found[:12]}… where {part.pin.tree[:12]}… is pinned), so it is refused; "
            f"{_elsewhere(part)}"
        )
    if part.name == "spack":
        says = spack_version(content)
        if says.split(" ")[0] != part.pin.version:
            raise BootstrapError(
                f"{part.pin} does not start with {sys.executable}: `spack --version` says "
                f"{says or 'nothing'}; make the Python environment anew (rm -rf .venv) and run the "
                "command again"
            )


def spack_version(root: Path) -> str:
    """Return what the Spack of a folder says of its version, or the last line of its complaint."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("SPACK_")}
    own = {"SPACK_PYTHON": sys.executable, "SPACK_DISABLE_LOCAL_CONFIG": "1"}
    # Bytecode would stay in the release's folder, made by whoever came first.
    own |= {"PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [str(root / "bin" / "spack"), "--version"],
        env={**inherited, **own},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    lines: Sequence[str] = (ended.stdout if ended.returncode == 0 else ended.stderr).splitlines()
    return lines[-1].strip() if lines else ""
