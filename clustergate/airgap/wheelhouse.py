"""Python packages for another machine: which wheels it will want, and their download."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from clustergate.airgap.folder import AirgapError

OLDEST_PYTHON = (3, 10)


def running_python() -> str:
    """Return the version of this Python as wheels are labelled by it, such as ``3.11``."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def require_version(text: str) -> str:
    """Return a version such as ``3.11``; raises :class:`AirgapError` for anything else."""
    match = re.fullmatch(r"(\d+)\.(\d+)", text)
    if match is None:
        raise AirgapError(f"{text!r} is no version of Python such as 3.11")
    if (int(match[1]), int(match[2])) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise AirgapError(f"the suite needs Python {oldest} or later, so no wheels for {text}")
    return text


def requirements_for(constraints: str, python: str) -> str:
    """Return the pins that a Python such as ``3.12`` would install, without their conditions.

    pip weighs the conditions of a requirements file by the Python it runs in, whatever Python it
    downloads for; so this does it. Raises :class:`AirgapError` for a text that holds no pins.
    """
    there = {"python_version": python, "python_full_version": f"{python}.0"}
    wanted = []
    for line in re.sub(r"\\\n", " ", constraints).splitlines():
        entry, *hashes = re.split(r"\s+--hash=", line.strip())
        if not entry or entry.startswith("#"):
            continue
        try:
            requirement = Requirement(entry)
        except InvalidRequirement as error:
            raise AirgapError(f"constraints.txt is damaged: {entry!r}: {error}") from None
        if requirement.marker is None or requirement.marker.evaluate(there):
            requirement.marker = None
            wanted.append(" ".join([str(requirement), *(f"--hash={hash}" for hash in hashes)]))
    return "".join(f"{line}\n" for line in wanted)


def download(requirements: str, target: Path, what: str, options: Sequence[str] = ()) -> None:
    """Download the wheels of pinned requirements; those that are there already are kept.

    Raises :class:`AirgapError` in one sentence when they cannot be had as wheels.
    """
    target.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download"]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:", *options]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as pins:
        pins.write(requirements)
        pins.flush()
        ended = subprocess.run(
            [*command, "--dest", str(target), "-r", pins.name],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    if ended.returncode:
        raise AirgapError(download_failure(ended.stdout + ended.stderr, what))


def download_for(constraints: str, python: str, target: Path) -> None:
    """Download the wheels of the suite's own packages for a Python such as ``3.12``."""
    what = f"the suite's packages for Python {python}"
    options = ("--python-version", python, "--implementation", "cp")
    download(requirements_for(constraints, python), target, what, options)


def download_failure(output: str, what: str) -> str:
    """Turn what pip says when a download fails into one sentence with the next step."""
    if "No space left" in output:
        return (
            f"the disk is full while downloading {what}; free some space and run the command "
            "again: it goes on where it stopped"
        )
    if "DO NOT MATCH THE HASHES" in output:
        return (
            f"a download among {what} has another checksum than is pinned, so it is refused; ask "
            "who runs your package index what it serves"
        )
    errors = [line[6:].strip() for line in output.splitlines() if line.startswith("ERROR:")]
    # pip names the requirement that nothing fits in its last complaint.
    cause = errors[-1] if errors else "pip gives no reason"
    return (
        f"{what} could not be downloaded ({cause}); check the network, or name a package index "
        "you reach in PIP_INDEX_URL, and run the command again: what has arrived is kept"
    )
