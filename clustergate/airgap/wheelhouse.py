"""Python packages for another machine: which wheels it will want, and their download."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from clustergate.airgap.folder import AirgapError
from clustergate.stacks import prefixes

OLDEST_PYTHON = (3, 10)


def running_python() -> str:
    """Return the version of this Python as wheels are labelled by it, such as ``3.11``."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def require_version(text: str) -> str:
    """Return a version such as ``3.11``; raises :class:`AirgapError` for anything else."""
    match = re.fullmatch(r"(\d+)\.(\d+)", text)
    if match is None:
        raise AirgapError("airgap.python", text=text)
    if (int(match[1]), int(match[2])) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise AirgapError("airgap.old-python", oldest=oldest, text=text)
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
            raise AirgapError("airgap.constraints", entry=entry, why=error) from None
        if requirement.marker is None or requirement.marker.evaluate(there):
            requirement.marker = None
            wanted.append(" ".join([str(requirement), *(f"--hash={hash}" for hash in hashes)]))
    return "".join(f"{line}\n" for line in wanted)


def download_for(constraints: str, python: str, target: Path) -> None:
    """Download the wheels of the suite's own packages for a Python such as ``3.12``."""
    options = ("--python-version", python, "--implementation", "cp")
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as pins:
        pins.write(requirements_for(constraints, python))
        pins.flush()
        what = f"the suite's packages for Python {python}"
        prefixes.download(Path(pins.name), target, what, options)
