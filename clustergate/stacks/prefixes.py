"""Prefixes of wheels: what a requirements file pins by version and checksum, a folder for each.

The stacks' own requirements lie in ``wheels/*.txt``; a benchmark may bring another by its path.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

from clustergate.model import ClustergateError

Say = Callable[[str], None]

REQUIREMENTS = Path(__file__).resolve().parent / "wheels"


class ProvisionError(ClustergateError):
    """A stack could not be put on disk; nothing half-made is left to be used later."""


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
