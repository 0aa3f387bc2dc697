"""Change points by Apache Otava (E-divisive), in an environment of its own.

Otava pins its numpy and scipy, and its command needs much that its analysis does not. So the
environment is made on demand under the state folder, of what ``otava.txt`` pins by hashes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from clustergate.core.model import ClustergateError
from tools.bench.field import SLOWER_TESTED

PINNED = Path(__file__).with_name("otava.txt")
_PATIENCE_S = 900.0
# Otava's own significance. The change may be put a launch beside its place.
_CHILD = """
import json, sys
from otava.analysis import compute_change_points
least, found = json.loads(sys.argv[1]), []
for series, place in json.load(sys.stdin):
    points, _ = compute_change_points(series, max_pvalue=0.001, min_magnitude=least - 1.0)
    found.append(any(
        p.index >= place - 1 and p.stats.mean_2 > least * p.stats.mean_1 for p in points
    ))
json.dump(found, sys.stdout)
"""


class NoOtava(ClustergateError):
    """Otava cannot be had on this machine."""


def environment(folder: Path) -> Path:
    """Return the interpreter that has Otava, which is fetched once; raises :class:`NoOtava`."""
    python = folder / "bin" / "python"
    done = folder / "ready"
    if not done.exists() or done.read_bytes() != PINNED.read_bytes():
        try:
            venv.create(folder, clear=True, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NoOtava(f"no environment for Otava can be made in {folder}: {error}") from None
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _ran([*pip, "--no-deps", "--require-hashes", "-r", str(PINNED)])
        done.write_bytes(PINNED.read_bytes())
    return python


def slower(python: Path, series: Sequence[tuple[Sequence[float], int]]) -> list[bool]:
    """Tell of each series whether it became slower where the second of the pair says, or later.

    Raises :class:`NoOtava`.
    """
    told = _ran([str(python), "-c", _CHILD, json.dumps(SLOWER_TESTED)], json.dumps(series))
    return [bool(one) for one in json.loads(told)]


def _ran(command: Sequence[str], given: str = "") -> str:
    try:
        ended = subprocess.run(
            command, input=given, capture_output=True, text=True, check=False, timeout=_PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        raise NoOtava(f"Otava took more than {_PATIENCE_S:.0f} s") from None
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise NoOtava(f"Otava cannot be used on Python {sys.version.split()[0]}: {last[:200]}")
    return ended.stdout
