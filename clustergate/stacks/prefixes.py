"""Prefixes of wheels: what a requirements file pins by version and checksum, a folder for each.

The stacks' own requirements lie in ``wheels/*.txt``; a benchmark may bring another by its path.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from clustergate.core.files.shared import locked
from clustergate.core.files.whole import full_disk, scratch_beside
from clustergate.core.model import ClustergateError, Say
from clustergate.core.reasons import Reason, Words
from clustergate.core.texts import Step
from clustergate.machine.processes import capture

REQUIREMENTS = Path(__file__).resolve().parent / "wheels"


WHEELS_UNPINNED = Words("wheels.unpinned", "{path} does not pin {package}")


def pinned_version(requirements: str, package: str) -> str:
    """Return the version that a requirements file pins a package to."""
    text = (REQUIREMENTS / requirements).read_text(encoding="utf-8")
    match = re.search(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    if match is None:
        raise ClustergateError(WHEELS_UNPINNED(path=REQUIREMENTS / requirements, package=package))
    return match.group(1)


def prefix_of(requirements: str, state: Path) -> Path:
    """Return where :func:`install_prefix` installs one requirements file to."""
    pins = REQUIREMENTS / requirements
    key = hashlib.sha256(pins.read_bytes()).hexdigest()[:12]
    return state / "prefixes" / f"{pins.stem}-{key}"


def install_prefix(requirements: str, state: Path, say: Say) -> Path:
    """Install one requirements file into a prefix of its own and return it.

    The prefix's name carries the checksum of the requirements, so a changed pin is another prefix
    and an unchanged one costs nothing. uv installs where it is on PATH; what it cannot do pip
    tries, which says why it fails, and which alone obeys ``PIP_NO_INDEX``.
    """
    pins = REQUIREMENTS / requirements
    prefix = prefix_of(requirements, state)
    with locked(f"{prefix}.lock", say=say):
        if prefix.is_dir():
            return prefix
        say(Step(f"downloading {pins.stem}"))
        with scratch_beside(prefix) as scratch:
            target = scratch / "prefix"
            into = ["--no-deps", "--only-binary", ":all:", "--prefix", str(target)]
            if not _by_uv(into, pins):
                _pip(["install", "--no-compile", "--ignore-installed", *into], pins, pins.stem)
            os.rename(target, prefix)
    return prefix


# Golden builds take the files' write permission away, which must not reach uv's cache.
_UV = ("pip", "install", "--python", sys.executable, "--link-mode", "copy", "--quiet")


def _by_uv(arguments: Sequence[str], pins: Path) -> bool:
    uv = None if os.environ.get("PIP_NO_INDEX") else shutil.which("uv")
    command = [str(uv), *_UV, *arguments, "--require-hashes", "-r", str(pins)]
    return uv is not None and capture(command).returncode == 0


def _pip(arguments: Sequence[str], pins: Path, what: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    ended = capture([*command, *arguments, "--require-hashes", "-r", str(pins)])
    if ended.returncode:
        raise ClustergateError(pip_failure(ended.stdout + ended.stderr, what))


OTHER_CHECKSUM = Words(
    "wheels.other-checksum",
    "a download for {what} does not match its pinned checksum, so it is refused",
    remedy="ask who runs your package index what it serves",
)
NOT_DOWNLOADED = Words(
    "wheels.not-downloaded",
    "{what} could not be downloaded ({why})",
    remedy=(
        "check the network, or name a package index you reach in PIP_INDEX_URL, and run the "
        "command again: completed downloads are kept"
    ),
)


# pip retries, and ends by saying that no version fits.
_BROKEN = re.compile(r"connection broken by .*\[(?:Errno -?\d+|SSL: \w+)\] ([^'\"()]+)")


def pip_failure(output: str, package: str) -> Reason:
    """Turn what pip says when it fails into the reason, with the next step."""
    if "No space left" in output:
        return full_disk(f"while installing {package}")
    if "DO NOT MATCH THE HASHES" in output:
        return OTHER_CHECKSUM(what=package)
    errors = [line[6:].strip() for line in output.splitlines() if line.startswith("ERROR:")]
    # pip names the requirement that nothing fits in its last complaint.
    cause = errors[-1] if errors else "pip gives no reason"
    if broken := _BROKEN.findall(output):
        cause = f"no connection to the package index: {broken[-1].strip()}"
    return NOT_DOWNLOADED(what=package, why=cause)
