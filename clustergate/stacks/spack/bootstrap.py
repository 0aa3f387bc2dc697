"""Fetch the pinned Spack and spack-packages: verified and whole, or not at all.

Both are fetched by their tags, from upstream or from another git repository that the user names.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from clustergate.core.files.shared import locked
from clustergate.core.files.whole import full_disk, read_json, scratch_beside
from clustergate.core.model import ClustergateError, Say
from clustergate.core.paths import suite_folder
from clustergate.core.reasons import Facts, Words
from clustergate.core.store import unwritable
from clustergate.machine.processes import capture

STAMP = ".clustergate-pin.json"
# Spack's recipes, below a checkout of spack-packages.
BUILTIN = Path("repos") / "spack_repo" / "builtin"
FETCH_SECONDS = 3600
# Slower than this many bytes per second for so many seconds is no connection any more.
STALLED = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60")


@dataclass(frozen=True)
class Pin:
    """One upstream release: ``commit`` is git's id of it, and so the checksum of its files."""

    name: str
    version: str
    url: str
    tag: str
    commit: str

    def __str__(self) -> str:
        return f"{self.title} {self.version}"

    @property
    def title(self) -> str:
        return "Spack" if self.name == "spack" else "spack-packages"

    @property
    def variable(self) -> str:
        """Return the environment variable that names a repository to fetch it from."""
        return f"CLUSTERGATE_{self.name.upper()}_FROM"

    def folder(self, state: Path) -> Path:
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
        stamp = read_json(folder / STAMP)
    except (OSError, ValueError):
        return False
    return isinstance(stamp, dict) and stamp.get("commit") == pin.commit


def bring(
    state: Path,
    *,
    pins: Pins | None = None,
    environ: Mapping[str, str] = os.environ,
    only: Collection[str] = ("spack", "packages"),
    say: Say = lambda sentence: None,
) -> None:
    """Bring the releases into ``<state>/spack``; what is there already costs no word.

    ``environ`` names repositories to fetch from by variable; without one, upstream is asked.
    Raises :class:`ClustergateError` in one sentence.
    """
    for pin in pins or read_pins():
        if pin.name not in only:
            continue
        folder = pin.folder(state)
        place = environ.get(pin.variable, "") or pin.url
        try:
            with locked(f"{folder}.lock", say=say):
                if not _is_here(pin, folder):
                    _bring_one(pin, folder, place, say)
        except OSError as error:
            raise unwritable(folder, error) from None


def _bring_one(pin: Pin, folder: Path, place: str, say: Say) -> None:
    say(f"bringing {pin} from {redact(place)}")
    with scratch_beside(folder) as scratch:
        content, repository = scratch / "content", scratch / "fetched.git"
        content.mkdir()
        fetch(pin, place, repository)
        # An index of our own: the repository is only read.
        index = {"GIT_INDEX_FILE": str(scratch / "index")}
        git = (f"--git-dir={repository}", f"--work-tree={content}", "-c", "core.autocrlf=false")
        _git(pin, place, *git, "read-tree", pin.commit, environment=index)
        write = ("checkout-index", "--all", "--force", f"--prefix={content}/")
        _git(pin, place, *git, *write, environment=index)
        stamp = {**dataclasses.asdict(pin), "from": redact(place)}
        (content / STAMP).write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            say(f"replacing another version in {folder}")
            os.rename(folder, scratch / "replaced")
        os.rename(content, folder)


def redact(place: str) -> str:
    """Return a place as it may be shown: an address may carry a password, or a token."""
    return re.sub(r"(https?://)[^/@\s]+@", r"\1", place)


OTHER_COMMIT = Words(
    "release.other-commit",
    "the tag {tag} of {place} is commit {actual}… where {pinned}… is pinned, so it is refused",
    remedy="{path} holds the pins",
)


def fetch(pin: Pin, place: str, repository: Path) -> None:
    """Fetch the tag of a release from ``place`` into a new bare repository with nothing else.

    git compares the checksum of each object that arrives, and the commit's is pinned. Of a
    repository in a folder nothing but objects is taken: its configuration and attributes, which
    could name programs for git to run, stay there; so it may be anybody's.
    """
    _git(pin, place, "init", "--quiet", "--bare", "--template=", "--", str(repository))
    git_dir = f"--git-dir={repository}"
    tag = f"refs/tags/{pin.tag}"
    options = ["--quiet", "--depth=1", "--no-tags"]
    if Path(place).is_dir():
        place = str(Path(place).absolute())
        options.append("--upload-pack=git -c safe.directory=* upload-pack")
    _git(pin, place, git_dir, *STALLED, "fetch", *options, "--", place, f"{tag}:{tag}")
    arrived = _git(pin, place, git_dir, "rev-parse", f"{tag}^{{commit}}").strip()
    if arrived != pin.commit:
        facts = {"place": redact(place), "actual": arrived[:12], "pinned": pin.commit[:12]}
        raise ClustergateError(OTHER_COMMIT(**_said_of(pin), path=pins_path(), **facts))


NO_GIT = Words(
    "release.no-git",
    "git is not installed, so {pin} cannot be fetched from {place}",
    remedy="install it",
)
TIMED_OUT = Words(
    "release.timed-out",
    "fetching {pin} from {place} took over an hour",
    remedy=(
        "try again where there is a network, or name a git repository that has the tag {tag} in "
        "{variable}"
    ),
)


def _git(pin: Pin, place: str, *arguments: str, environment: Mapping[str, str] = {}) -> str:
    inherited = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE")}
    # A question for a password would wait for ever; messages are read, so they must be English.
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
    try:
        own = {**inherited, **quiet, **environment}
        ended = capture(["git", *arguments], env=own, timeout=FETCH_SECONDS)
    except FileNotFoundError:
        raise ClustergateError(NO_GIT(**_said_of(pin), place=redact(place))) from None
    except subprocess.TimeoutExpired:
        raise ClustergateError(TIMED_OUT(**_said_of(pin), place=redact(place))) from None
    if ended.returncode:
        raise git_failure(redact(ended.stderr), pin, redact(place))
    return ended.stdout


NOT_FETCHED = Words(
    "release.not-fetched",
    "{pin} cannot be fetched from {place} ({why})",
    remedy=(
        "try again where there is a network, or name a git repository that has the tag {tag} in "
        "{variable}"
    ),
)


def git_failure(stderr: str, pin: Pin, place: str) -> ClustergateError:
    """Turn what git says when it fails into the error, with the next step."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines[-1:]
    # git's first complaint is the cause; those after it are its consequences.
    cause = fatal[0].partition(": ")[2] or fatal[0] if fatal else "git gives no reason"
    if "No space left on device" in stderr:
        return ClustergateError(full_disk(f"while bringing {pin}"))
    return ClustergateError(NOT_FETCHED(**_said_of(pin), place=place, why=cause))


def _said_of(pin: Pin) -> Facts:
    return {"pin": str(pin), "tag": pin.tag, "variable": pin.variable}
