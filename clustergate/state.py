"""Where the suite keeps what it makes: one folder, so that results survive and cleaning is safe."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def checkout() -> Path:
    """Return the folder of the clone: it holds reframe_checks/, site_configs/ and references/."""
    return Path(__file__).resolve().parents[1]


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``$CLUSTERGATE_HOME``, by default ``.clustergate`` in the clone, as an absolute path.

    On a cluster it must lie on a file system that the compute nodes share.
    """
    named = environ.get("CLUSTERGATE_HOME", "")
    return Path(named).expanduser().absolute() if named else checkout() / ".clustergate"
