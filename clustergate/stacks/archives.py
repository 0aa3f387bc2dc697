"""Unpack source archives."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

from clustergate.model import ClustergateError


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a source archive into ``folder``, which is empty, and return its only top folder.

    Its SHA-256 is pinned and was compared, so it holds what upstream packed; where Python has a
    filter for members that lead elsewhere, that is used besides. Raises :class:`ClustergateError`.
    """
    filtered: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, **filtered)
    except (tarfile.TarError, EOFError) as error:
        raise ClustergateError("archive.damaged", path=archive, why=error) from None
    tops = sorted(folder.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        named = ", ".join(path.name for path in tops[:3]) or "none"
        raise ClustergateError("archive.tops", path=archive, named=named)
    return tops[0]
