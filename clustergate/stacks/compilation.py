"""Compile the benchmarks and the suite's own kernels with a stack's compiler wrapper."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from clustergate.machine.processes import capture
from clustergate.model import ClustergateError


def compiler_identity(named: str = "cc") -> str:
    """Return the first line of ``cc --version``, or of another compiler's.

    Raises :class:`ClustergateError` when there is no C compiler.
    """
    compiler = shutil.which(named) or shutil.which("gcc")
    if compiler is None:
        raise ClustergateError("compiler.missing")
    return capture([compiler, "--version"]).stdout.partition("\n")[0].strip()


def build_key(ingredients: Sequence[str], files: Sequence[Path]) -> str:
    """Return a short key of all that a build depends on: equal keys, equal builds."""
    digest = hashlib.sha256()
    digest.update(json.dumps([platform.machine(), *ingredients]).encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def plain_wrapper(compiler: str, prefix: Path) -> str:
    """Return a script that compiles as MPICH's own wrapper does, whatever its prefix is called."""
    include, libraries = shlex.quote(str(prefix / "include")), shlex.quote(str(prefix / "lib"))
    compile = f"{compiler} -DMPICH_SKIP_MPICXX -I{include}"
    find = f"-L{libraries} -Wl,-rpath,{libraries} -Wl,--enable-new-dtags -lmpi"
    show = f'[ "$1" != -show ] || exec echo {shlex.quote(compile)}'
    return f'#!/bin/sh\n{show}\nexec {compile} "$@" {find}\n'


def run_compiler(command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Run a compiler in ``environment``, its output in ``log``; a failure's sentence names that."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        try:
            ended = subprocess.run(
                command,
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except OSError as error:
            facts = {"command": command[0], "log": str(log)}
            raise ClustergateError("compiler.not-started", why=error, **facts) from None
    if ended.returncode:
        raise ClustergateError("compiler.failed", complaint=_complaint(log), log=log)


def _complaint(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines:
        if "No space left on device" in line:
            return f"the disk is full ({line.strip()})"
    for line in lines:
        if "error:" in line or "cannot find" in line or "not found" in line:
            return f"compiling failed: {line.strip()}"
    return "compiling failed"
