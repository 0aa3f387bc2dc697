"""The Spack of a machine: found, its version checked, and called apart from its user's settings.

A call sees the configuration that the suite composed and nothing of ``~/.spack``, ``/etc/spack`` or
the shell's ``SPACK_*``; its Python is the suite's own, which has clingo, so that Spack bootstraps
nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustergate.core.interrupts import raise_if_ending
from clustergate.core.model import ClustergateError, Say
from clustergate.core.reasons import Words
from clustergate.machine.environment import clean_environment
from clustergate.stacks.spack.messages import explain, progress_of

# Environments that leave the user's configuration out by `include::` came with it.
MINIMUM = (1, 1)
_GUARDED = (sys.executable, "-I", "-m", "clustergate.stacks.spack.guard")
_VERSION_FILE = Path("lib") / "spack" / "spack" / "__init__.py"


SPACK_FAILED = Words(
    "spack.failed",
    "{doing} failed",
    cause="{why}",
    remedy="Spack's output is in {log}",
)


@dataclass(frozen=True)
class SpackProgram:
    """A Spack on disk and the folder that its calls keep their caches in."""

    root: Path
    version: str
    state: Path

    def environment(self, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
        clean = clean_environment(inherited).environment
        kept = {name: value for name, value in clean.items() if not name.startswith("SPACK_")}
        cache = self.state / "spack" / "user-cache"
        return {
            **kept,
            "SPACK_PYTHON": sys.executable,
            "SPACK_DISABLE_LOCAL_CONFIG": "1",
            "SPACK_USER_CACHE_PATH": str(cache),
            # A site's Spack is somebody else's folder; nothing is left behind in it.
            "PYTHONPYCACHEPREFIX": str(cache / "bytecode"),
        }

    def run(
        self,
        arguments: Sequence[str],
        log: Path,
        *,
        doing: str,
        say: Say = lambda sentence: None,
    ) -> str:
        """Run one Spack command, append its output to ``log`` and return what it printed.

        ``doing`` says in words what it is for. Raises ClustergateError in one sentence with the
        cause, the next step and the log.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [str(self.root / "bin" / "spack"), "--color=never", *arguments]
        printed: list[str] = []
        raise_if_ending()
        with log.open("a", encoding="utf-8") as kept:
            kept.write(f"$ {' '.join(command)}\n")
            kept.flush()
            with subprocess.Popen(
                [*_GUARDED, *command],
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                # Nothing is written into it: it closes when this process is gone.
                stdin=subprocess.PIPE,
                text=True,
                errors="replace",
            ) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    kept.write(line)
                    kept.flush()
                    printed.append(line)
                    if step := progress_of(line):
                        say(step)
        raise_if_ending()
        text = "".join(printed)
        if process.returncode:
            raise ClustergateError(SPACK_FAILED(doing=doing, why=explain(text), log=log))
        return text


SPACK_MISSING = Words(
    "spack.missing",
    "there is no Spack here (looked for SPACK_ROOT, `spack` on PATH and {root})",
    remedy=(
        "`clustergate bootstrap` fetches the pinned one, or take the stacks from wheels "
        "(CLUSTERGATE_PROVIDER=wheels), which need none"
    ),
)
NO_SPACK = Words(
    "spack.no-spack",
    "{root}, named by {named_by}, is not a Spack installation",
    remedy="correct it, or unset it and let `clustergate bootstrap` fetch the pinned one",
)
TOO_OLD = Words(
    "spack.too-old",
    "the Spack in {root}, named by {named_by}, is {version}; {needed} or later is needed",
    cause=(
        "name another one in SPACK_ROOT, or take it off PATH and let `clustergate bootstrap` "
        "fetch the pinned one"
    ),
)


def find_spack(
    state: Path, named: str = "", environ: Mapping[str, str] = os.environ
) -> SpackProgram:
    """Return the Spack to use: the site's, ``SPACK_ROOT``, that of PATH, or the bootstrapped one.

    Raises :class:`ClustergateError` when there is none, or when the first of them is unusable.
    """
    for named_by, root in _candidates(state, named, environ):
        version = version_of(root)
        if not version:
            raise ClustergateError(NO_SPACK(root=root, named_by=named_by))
        if tuple(int(number) for number in version.split(".")[:2]) < MINIMUM:
            needed = ".".join(map(str, MINIMUM))
            facts = {"named_by": named_by, "version": version, "needed": needed}
            raise ClustergateError(TOO_OLD(root=root, **facts))
        return SpackProgram(root, version, state)
    raise ClustergateError(SPACK_MISSING(root=bootstrapped_root(state)))


def bootstrapped_root(state: Path) -> Path:
    """Return where ``clustergate bootstrap`` puts Spack."""
    return state / "spack" / "root"


def _candidates(state: Path, named: str, environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    candidates = []
    if named:
        candidates.append(("the site config", Path(named).expanduser()))
    if environ.get("SPACK_ROOT"):
        candidates.append(("SPACK_ROOT", Path(environ["SPACK_ROOT"])))
    if on_path := shutil.which("spack", path=environ.get("PATH", os.defpath)):
        candidates.append(("PATH", Path(on_path).resolve().parents[1]))
    if bootstrapped_root(state).is_dir():
        candidates.append(("clustergate bootstrap", bootstrapped_root(state)))
    return candidates


def version_of(root: Path) -> str:
    """Return the version of the Spack in a folder without starting it; empty when it is none."""
    try:
        text = (root / _VERSION_FILE).read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(r'^__version__ = "(\d+\.\d+[^"]*)"', text, re.MULTILINE)
    return match.group(1) if match and (root / "bin" / "spack").is_file() else ""
