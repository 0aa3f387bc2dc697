"""Prefixes of wheels: what a requirements file pins by version and checksum, a folder for each.

The stacks' own requirements lie in ``wheels/*.txt``; a benchmark may bring another by its path.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock

from clustergate.files.whole import full_disk, scratch_beside
from clustergate.model import ClustergateError, Say
from clustergate.stacks.compilation import capture
from clustergate.wording.reasons import Reason, reason

REQUIREMENTS = Path(__file__).resolve().parent / "wheels"


class ProvisionError(ClustergateError):
    """A stack could not be put on disk, or is not what its lock says; nothing of it is used."""


def pinned_version(requirements: str, package: str) -> str:
    """Return the version that a requirements file pins a package to."""
    text = (REQUIREMENTS / requirements).read_text(encoding="utf-8")
    match = re.search(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    if match is None:
        raise ProvisionError("wheels.unpinned", path=REQUIREMENTS / requirements, package=package)
    return match.group(1)


def prefix_of(requirements: str, state: Path) -> Path:
    """Return where :func:`install_prefix` installs one requirements file to."""
    pins = REQUIREMENTS / requirements
    key = hashlib.sha256(pins.read_bytes()).hexdigest()[:12]
    return state / "prefixes" / f"{pins.stem}-{key}"


def install_prefix(
    requirements: str, state: Path, say: Say, wheelhouse: Path | None = None
) -> Path:
    """Install one requirements file into a prefix of its own and return it.

    The prefix's name carries the checksum of the requirements, so a changed pin is another prefix
    and an unchanged one costs nothing. Downloads are kept, so an interrupted set-up resumes. A
    ``wheelhouse``, a folder of wheels, stands for the network.
    """
    pins = REQUIREMENTS / requirements
    prefix = prefix_of(requirements, state)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{prefix}.lock"):
        if prefix.is_dir():
            return prefix
        cache = state / "cache" / "wheels"
        say(f"downloading {pins.stem}")
        download(pins, cache, pins.stem, environment=_offline(wheelhouse) if wheelhouse else {})
        say(f"installing {pins.stem}")
        with scratch_beside(prefix) as scratch:
            target = scratch / "prefix"
            offline = ["--no-index", "--find-links", str(cache)]
            into = ["--no-deps", "--no-compile", "--ignore-installed", "--prefix", str(target)]
            _pip(["install", *offline, *into], pins, pins.stem)
            os.rename(target, prefix)
    return prefix


def download(
    pins: Path,
    target: Path,
    what: str,
    options: Sequence[str] = (),
    environment: Mapping[str, str] = {},
) -> None:
    """Download the wheels of pinned requirements; those that are there already are kept.

    Raises :class:`ProvisionError` in one sentence when they cannot be had as wheels.
    """
    target.mkdir(parents=True, exist_ok=True)
    wheels = ["--no-deps", "--only-binary", ":all:", "--dest", str(target)]
    _pip(["download", *wheels, *options], pins, what, environment)


def _offline(wheelhouse: Path) -> dict[str, str]:
    """Return the variables that let pip take from a folder and from nowhere else."""
    links = wheelhouse.absolute().as_uri()
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": links, "PIP_CONFIG_FILE": os.devnull}


def _pip(
    arguments: Sequence[str], pins: Path, what: str, environment: Mapping[str, str] = {}
) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    command += [*arguments, "--require-hashes", "-r", str(pins)]
    ended = capture(command, env={**os.environ, **environment})
    if ended.returncode:
        raise ProvisionError(pip_failure(ended.stdout + ended.stderr, what))


def pip_failure(output: str, what: str) -> Reason:
    """Turn what pip says when it fails into the reason, with the next step."""
    if "No space left" in output:
        return full_disk(f"while installing {what}")
    if "DO NOT MATCH THE HASHES" in output:
        return reason("wheels.other-checksum", what=what)
    errors = [line[6:].strip() for line in output.splitlines() if line.startswith("ERROR:")]
    # pip names the requirement that nothing fits in its last complaint.
    cause = errors[-1] if errors else "pip gives no reason"
    return reason("wheels.not-downloaded", what=what, why=cause)
