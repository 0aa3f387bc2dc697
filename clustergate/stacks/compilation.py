"""Compile the benchmarks and the suite's own kernels with a stack's compiler wrapper.

An object is compiled once for all programs and stacks to which it is the same. Equal are those that
one compiler makes with the same options of the same preprocessed text. Of the text, the MPI
library's own headers do not count between libraries of one ABI: that fixes their types and
prototypes, and constants stand in the text as their values.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from clustergate.core.interrupts import raise_if_ending
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.machine.processes import capture

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# As a shell says of what it called, too.
_INTERRUPTED = {*(-one for one in _SIGNALS), *(128 + one for one in _SIGNALS)}


COMPILER_MISSING = Words(
    "compiler.missing",
    "there is no C compiler (cc or gcc) on PATH",
    remedy=(
        "install one (Debian: apt install gcc libc6-dev, Red Hat: dnf install gcc) and run the "
        "command again"
    ),
)


def compiler_identity(named: str = "cc") -> str:
    """Return the first line of ``cc --version``, or of another compiler's.

    Raises :class:`ClustergateError` when there is no C compiler.
    """
    compiler = shutil.which(named) or shutil.which("gcc")
    if compiler is None:
        raise ClustergateError(COMPILER_MISSING())
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


NOT_STARTED = Words(
    "compiler.not-started",
    "{command} cannot be started",
    cause="{why}",
    remedy="see {log}",
)
COMPILER_FAILED = Words(
    "compiler.failed",
    "{complaint}",
    remedy="the compiler's output is in {log}",
)


def run_compiler(command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Run a compiler in ``environment``, its output in ``log``; a failure's sentence names that."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        raise_if_ending()
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
            raise ClustergateError(NOT_STARTED(why=error, **facts)) from None
    raise_if_ending()
    if ended.returncode in _INTERRUPTED:
        # A terminal interrupts compilers, too, and this thread may hear of it first.
        raise KeyboardInterrupt
    if ended.returncode:
        raise ClustergateError(COMPILER_FAILED(complaint=_complaint(log), log=log))


def _complaint(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines:
        if "No space left on device" in line:
            return f"the disk is full ({line.strip()})"
    for line in lines:
        if "error:" in line or "cannot find" in line or "not found" in line:
            return f"compiling failed: {line.strip()}"
    return "compiling failed"


# --- objects that several programs and stacks share -------------------------------------------


# On a login node others work, too.
AT_ONCE = min(8, len(os.sched_getaffinity(0)))
_MARKER = re.compile(rb'# \d+ "(.*?)"')
# What has had its effect once a source is preprocessed.
_PREPROCESSED = ("-I", "-D")

_in_hand: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)
_slots = threading.BoundedSemaphore(AT_ONCE)


NO_SHOW = Words(
    "compiler.no-show",
    "the compiler wrapper {wrapper} does not say what it calls",
    cause="`{wrapper} -show` fails, so that nothing can be compiled with it",
    remedy="repair the MPI library, or compile with another one",
)


@dataclass(frozen=True)
class Objects:
    """Compiles for one stack into the folder ``cache``, which other stacks share.

    ``wrapper`` is the compiler wrapper, run in ``environment``; ``abi`` names that of the MPI
    library, or the library where it shares none. What compilers print goes to ``log``.
    """

    wrapper: Path
    environment: Mapping[str, str]
    abi: str
    cache: Path
    log: Path

    def of(self, sources: Sequence[str], options: Sequence[str]) -> list[str]:
        """Return the object files of sources, in their order, compiled if they are not there."""
        self.cache.mkdir(parents=True, exist_ok=True)
        compiler, *own = self._shown()
        kept = [word for word in options if not word.startswith(_PREPROCESSED)]
        built_in = capture([compiler, *kept, "-dM", "-E", "-x", "c", os.devnull]).stdout
        headers = tuple(os.fsencode(word[2:]) for word in own if word.startswith("-I"))
        # The compiler's version and the processor's instructions are among its own macros.
        ingredients = json.dumps([compiler, *kept, built_in]).encode()

        def compiled(source: str) -> str:
            name = Path(source)
            with tempfile.TemporaryDirectory(dir=self.cache) as folder:
                scratch = Path(folder)
                text = scratch / (f"{name.stem}.i" if name.suffix == ".c" else f"{name.stem}.ii")
                self._run(compiler, *options, *own, "-E", source, "-o", str(text))
                proper, has_mpi = without_headers(text.read_bytes(), headers)
                abi = self.abi.encode() if has_mpi else b""
                key = hashlib.sha256(b"\0".join([ingredients, abi, proper])).hexdigest()[:24]
                finished = self.cache / f"{key}.o"
                with _in_hand[finished]:
                    if not finished.is_file():
                        made = scratch / finished.name
                        self._run(compiler, *kept, "-c", str(text), "-o", str(made))
                        os.replace(made, finished)
                return str(finished)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(compiled, sources))

    def _run(self, *words: str) -> None:
        with _slots:
            run_compiler(words, self.environment, self.log)

    def _shown(self) -> list[str]:
        """Return the compiler that the wrapper calls, and what it adds to compile."""
        ended = capture([str(self.wrapper), "-show"], env=self.environment)
        words = shlex.split(ended.stdout)
        if ended.returncode or not words:
            raise ClustergateError(NO_SHOW(wrapper=self.wrapper))
        if not all(Path(word[2:]).is_dir() for word in words if word.startswith("-I")):
            # Open MPI's wrapper quotes no space of its prefix.
            words = re.split(r"\s+(?=-)", ended.stdout.strip())
        own = (word for word in words[1:] if word.startswith(("-I", "-D", "-f", "-m", "-pthread")))
        return [words[0], *own]


def without_headers(text: bytes, folders: tuple[bytes, ...]) -> tuple[bytes, bool]:
    """Return a preprocessed text without what comes from folders, and whether anything does.

    The compiler's remarks on where lines come from are left out, too.
    """
    lines = []
    is_header = any_header = False
    for line in text.splitlines():
        if marker := _MARKER.match(line):
            is_header = marker[1].startswith(folders)
            any_header = any_header or is_header
        elif not is_header and line:
            lines.append(line)
    return b"\n".join(lines), any_header
