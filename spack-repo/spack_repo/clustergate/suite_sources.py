"""The suite's own C sources, as the recipes of this repository see them.

They come with the suite this repository is part of, not as an archive with a checksum. So that a
changed source is another build, the recipes that compile them carry their digest in the variant
``sources``, and refuse to compile files with another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

# This repository lies at the top of the clone, or inside the installed package.
_ABOVE = Path(__file__).resolve().parents
_CLONE = _ABOVE[3] / "clustergate" / "machine" / "kernels" / "src"
FOLDER = _CLONE if _CLONE.is_dir() else _ABOVE[4] / "machine" / "kernels" / "src"


def digest(names: Iterable[str]) -> str:
    """Return 12 hexadecimal digits that stand for the named files and what is in them.

    Raises OSError when one of them cannot be read.
    """
    total = hashlib.sha256()
    for name in sorted(names):
        content = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
        total.update(f"{name} {content}\n".encode())
    return total.hexdigest()[:12]


def complaint(names: Iterable[str], expected: str) -> str:
    """Return why these sources may not be compiled for that digest; empty when they may."""
    try:
        found = digest(names)
    except OSError as error:
        return (
            f"{error.filename} cannot be read ({error.strerror}): this package repository is only "
            "complete in a clone of clustergate, or in its installed package; add it from there"
        )
    if found == expected:
        return ""
    return (
        f"the C sources in {FOLDER} have the digest {found}, but this build is for sources="
        f"{expected}; concretize again, after the recipe has got the new digest"
    )
