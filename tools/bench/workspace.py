"""A folder in which ReFrame and the suite run without touching the results of the clone."""

from __future__ import annotations

import contextlib
import datetime
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from clustergate.core import store
from clustergate.core.model import ClustergateError
from clustergate.core.paths import state_dir
from clustergate.machine.processes import end_processes_with
from clustergate.sites import choice

# What the stacks on disk consist of, beside their manifests.
STACK_FOLDERS = ("cache", "prefixes", "builds")
_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")


class BenchError(ClustergateError):
    """Something that was to be timed did not do its work."""


def turns(most: int, seconds: float) -> Iterator[int]:
    """Yield the numbers of ``most`` rounds, of fewer where the next would end too late.

    ``seconds`` are counted from the first round, which there always is.
    """
    ends = time.monotonic() + seconds
    longest = 0.0
    for number in range(most):
        begun = time.monotonic()
        if number and begun + longest > ends:
            return
        yield number
        longest = max(longest, time.monotonic() - begun)


def used_by_others_s() -> float:
    """Return the processor time since boot of all but this process and its ended children.

    What a hypervisor gave to other machines is part of it.
    """
    machine = psutil.cpu_times()
    own = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own_s: float = sum(used.ru_utime + used.ru_stime for used in own)
    return sum(getattr(machine, kind, 0.0) for kind in _BUSY) - own_s


@dataclass(frozen=True)
class Timed:
    """How long a command took: by the clock, and of the processors' time."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Workspace:
    """A state folder of its own, in which the stacks of the clone are found."""

    home: Path
    run_id: str

    def environment(self, variables: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment for a command in this workspace."""
        return {
            **os.environ,
            "CLUSTERGATE_HOME": str(self.home),
            "RFM_CONFIG_FILES": str(choice.find("local")),
            "RFM_SYSTEM": choice.FALLBACK,
            store.RUN_ID: self.run_id,
            **(variables or {}),
        }

    def timed(self, command: Sequence[str], *, variables: Mapping[str, str] | None = None) -> Timed:
        """Run a command to its end; its output is in ``last-output`` of the workspace.

        Raises :class:`BenchError` with its last line when it fails.
        """
        with self.last_output.open("wb") as output:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            begun = time.perf_counter()
            ended = subprocess.run(
                command,
                env=self.environment(variables),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
            seconds = time.perf_counter() - begun
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if ended.returncode:
            words = self.output().split("\n")
            last = ([word for word in words if word.strip()] or ["it printed nothing"])[-1]
            raise BenchError(f"{command[0]} ended with exit status {ended.returncode}: {last}")
        used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return Timed(seconds, used)

    @property
    def last_output(self) -> Path:
        """The file with the output of the command that ran last."""
        return self.home / "last-output"

    def output(self) -> str:
        """Return what the command that ran last has printed."""
        return self.last_output.read_text(encoding="utf-8", errors="replace")


def file_for(started: datetime.datetime, kind: str = "") -> Path:
    """Return where a run of the bench keeps what it measured: another one may begin at once."""
    name = f"{kind}{started:%Y%m%dT%H%M%S}-{os.getpid()}.json"
    return state_dir() / "bench" / name


@contextlib.contextmanager
def workspace() -> Iterator[Workspace]:
    """Make a workspace, end what it left running, and remove it."""
    with tempfile.TemporaryDirectory(prefix="clustergate-bench-") as name:
        made = Workspace(Path(name), f"bench-{os.getpid()}")
        for folder in STACK_FOLDERS:
            (made.home / folder).symlink_to(state_dir() / folder)
        if (state_dir() / "manifests").is_dir():
            shutil.copytree(state_dir() / "manifests", made.home / "manifests")
        try:
            yield made
        finally:
            end_processes_with(store.RUN_ID, made.run_id)
