"""Where the suite keeps what it makes: one folder, so that results survive and cleaning is safe."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def checkout() -> Path:
    """Return the folder of the clone, which holds reframe_checks/ and the suite's own files."""
    return Path(__file__).resolve().parents[1]


def site_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``$CLUSTERGATE_SITE_FOLDER``, by default the clone, as an absolute path.

    It holds what is a site's own: site_configs/, references/ and hostfiles/.
    """
    named = environ.get("CLUSTERGATE_SITE_FOLDER", "")
    return Path(named).expanduser().absolute() if named else checkout()


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``$CLUSTERGATE_HOME``, by default ``.clustergate`` in the clone, as an absolute path.

    On a cluster it must lie on a file system that the compute nodes share.
    """
    named = environ.get("CLUSTERGATE_HOME", "")
    return Path(named).expanduser().absolute() if named else checkout() / ".clustergate"
