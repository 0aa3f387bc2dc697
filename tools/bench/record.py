"""Take launches on this machine: unchanged, and slowed down on purpose. Used by the bench only."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clustergate.benchmarks.imb.command import SIZES_FILE, ImbSettings, imb_arguments, sizes_file
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.launching.dialects import Layout, launch_options
from clustergate.launching.launchers import exports
from clustergate.model import ClustergateError, OutputError
from clustergate.stacks.manifest import Manifest
from clustergate.stacks.wheels import KERNELS
from tools.bench.launches import Launch

SIZES_BYTES = (8, 64, 512, 4096, 32768, 262144, 1048576)
BENCHMARKS = ("PingPong", "Sendrecv", "Allreduce")
FIGURES = len(SIZES_BYTES) * len(BENCHMARKS)
# What each benchmark counts of a message as moved, in its MB/s.
_COUNTED = {"PingPong": 1, "Sendrecv": 2}
_PATIENCE_S = 60.0
_IN_FRONT = ("PATH", "LD_LIBRARY_PATH")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_QUOTA_GROUP = Path("/sys/fs/cgroup/cpu/clustergate-bench")


class LaunchFailed(ClustergateError):
    """A launch that was to be recorded did not do its work."""


@dataclass(frozen=True)
class Provocation:
    """Something that slows launches down.

    ``environment`` is what the ranks get besides; ``around`` holds while a launch runs. ``stacks``
    are those that it works on, empty for all.
    """

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    around: Callable[[], contextlib.AbstractContextManager[Sequence[str]]] = field(
        default=lambda: contextlib.nullcontext(())
    )
    stacks: Sequence[str] = ()


UNCHANGED = Provocation("")


@contextlib.contextmanager
def competing_process() -> Iterator[Sequence[str]]:
    """Let another process compute on the first core meanwhile."""
    first = min(os.sched_getaffinity(0))
    with subprocess.Popen(
        ["/bin/sh", "-c", "while :; do :; done"],
        preexec_fn=lambda: os.sched_setaffinity(0, {first}),
    ) as process:
        try:
            yield ()
        finally:
            process.kill()


@contextlib.contextmanager
def cpu_quota(share: float) -> Iterator[Sequence[str]]:
    """Let the launch use only a share of the cores' time; needs root and cgroups of version 1."""
    cores = len(os.sched_getaffinity(0))
    period_us = 10000
    try:
        _QUOTA_GROUP.mkdir(exist_ok=True)
        (_QUOTA_GROUP / "cpu.cfs_period_us").write_text(str(period_us))
        (_QUOTA_GROUP / "cpu.cfs_quota_us").write_text(str(int(share * cores * period_us)))
    except OSError as error:
        raise LaunchFailed(f"no CPU quota can be set here: {error.strerror}") from None
    try:
        yield ["sh", "-c", f'echo $$ > {_QUOTA_GROUP}/cgroup.procs; exec "$@"', "sh"]
    finally:
        with contextlib.suppress(OSError):
            _QUOTA_GROUP.rmdir()


def delay_library(manifest: Manifest, folder: Path) -> Path:
    """Compile the library that delays MPI calls, with the stack's own compiler wrapper."""
    library = folder / f"delay-{manifest.stack}.so"
    environment = {**os.environ, **_environment(manifest, {})}
    command = ["mpicc", "-O2", "-fPIC", "-shared", "-o", str(library), str(KERNELS / "delay.c")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise LaunchFailed(f"{shlex.join(command)} failed: {ended.stderr.strip()[-200:]}")
    return library


class Recorder:
    """Takes launches of the stacks in turn, in another order each round."""

    def __init__(self, manifests: Sequence[Manifest], folder: Path) -> None:
        self._manifests = manifests
        self._folder = folder
        (folder / SIZES_FILE).write_text(sizes_file(SIZES_BYTES), encoding="ascii")

    def round(self, provocation: Provocation = UNCHANGED, *, bound: bool = True) -> list[Launch]:
        """Return one launch of each stack that the provocation works on.

        A launch in which the benchmark ran out of its time for a size lacks figures: see
        :func:`is_whole`. Raises :class:`LaunchFailed` when a launch ends badly.
        """
        on = provocation.stacks or [m.stack for m in self._manifests]
        wanted = [m for m in self._manifests if m.stack in on]
        return [
            self.launch(m, provocation, bound=bound) for m in random.sample(wanted, len(wanted))
        ]

    def launch(self, manifest: Manifest, provocation: Provocation, *, bound: bool) -> Launch:
        """Return one launch."""
        settings = ImbSettings(
            BENCHMARKS, 2, sizes=SIZES_BYTES, repetitions=1000, volume_mb=40, seconds=0.01
        )
        program = [manifest.program("IMB-MPI1").path, *imb_arguments(settings)]
        # Only the ranks get what slows them down, not their launcher.
        ranks = [f"{name}={value}" for name, value in provocation.environment.items()]
        layout = Layout(2, 2, 1, bound)
        launch = [manifest.launcher, *launch_options(manifest.dialect, layout)]
        before_ns = self._core_distance_ns(manifest)
        with provocation.around() as wrapper:
            begun_s, counters, began = time.time(), _counters(), time.perf_counter()
            ended = subprocess.run(
                [*wrapper, *launch, *(["env", *ranks] if ranks else []), *program],
                cwd=self._folder,
                env=_environment(manifest, {}),
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
                check=False,
            )
            seconds = time.perf_counter() - began
            own_s, busy_s, steal_s = (b - a for a, b in zip(counters, _counters(), strict=True))
        if ended.returncode:
            last = (ended.stderr.strip() or ended.stdout.strip())[-200:]
            raise LaunchFailed(f"{manifest.stack}: a launch ended badly: {last}")
        return Launch(
            time_s=begun_s,
            stack=manifest.stack,
            bound=bound,
            provoked=provocation.name,
            seconds=seconds,
            own_s=own_s,
            busy_s=busy_s,
            steal_s=steal_s,
            core_distance_ns=max(before_ns, self._core_distance_ns(manifest)),
            microseconds=microseconds(ended.stdout),
        )

    def _core_distance_ns(self, manifest: Manifest) -> float:
        program = [manifest.program("core_distance").path]
        text = subprocess.run(program, capture_output=True, text=True, check=True).stdout
        told = json.loads(text.splitlines()[0])
        return float(told.get("round_trip_ns", {"best": 1.0})["best"])


def is_whole(launch: Launch) -> bool:
    """Tell whether a launch has all its figures: the benchmark had the time for every size."""
    return len(launch.microseconds) == FIGURES


def microseconds(text: str) -> dict[str, float]:
    """Return the time of each figure in an output of IMB-MPI1, by names such as ``PingPong/8``.

    IMB prints times to 0.01 us; where a bandwidth stands beside it, the time follows from that to
    four digits. Raises :class:`~clustergate.model.OutputError` for a damaged output.
    """
    found = {}
    for row in parse_imb(text.splitlines(keepends=True)):
        if row.status != "ok":
            continue
        size = int(row.conditions["bytes"])
        rate_mb_s = row.values.get("bandwidth_mb_s", 0.0)
        if rate_mb_s > 0.0 and size:
            time_us = _COUNTED[row.benchmark] * size / rate_mb_s
        else:
            time_us = row.values.get("t_avg_us", row.values.get("latency_us", 0.0))
        if time_us <= 0.0:
            raise OutputError(f"{row.benchmark} of {size} bytes took no time", line=row.line)
        found[f"{row.benchmark}/{size}"] = time_us
    return found


def _environment(manifest: Manifest, own: Mapping[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k in ("HOME", "LANG", "PATH", "TMPDIR")}
    for name, value in exports(manifest, 1).items():
        behind = kept.get(name) if name in _IN_FRONT else None
        kept[name] = f"{value}:{behind}" if behind else value
    return {**kept, **own}


def _counters() -> tuple[float, float, float]:
    """Return the seconds that our ended processes, all processes and the hypervisor used."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    user, nice, system, _, _, irq, softirq, steal = (int(word) for word in words[1:9])
    busy = user + nice + system + irq + softirq
    return (
        own.ru_utime + own.ru_stime,
        busy / _TICKS_PER_SECOND,
        steal / _TICKS_PER_SECOND,
    )


def provocations(delays: Mapping[str, Path], delay_ns: Sequence[int]) -> list[Provocation]:
    """Return what can be done to slow launches down; ``delays`` are the libraries by stack."""
    found = [Provocation("competing process", around=competing_process)]
    if os.geteuid() == 0 and _QUOTA_GROUP.parent.is_dir() and shutil.which("sh"):
        found.append(Provocation("CPU quota 80 %", around=lambda: cpu_quota(0.8)))
    found += [
        Provocation("rendezvous from 1 KB", {"UCX_RNDV_THRESH": "1k"}, stacks=("mpich",)),
        Provocation(
            "rendezvous from 1 KB", {"OMPI_MCA_btl_sm_eager_limit": "1024"}, stacks=("openmpi",)
        ),
        Provocation(
            "rendezvous from 1 KB", {"I_MPI_SHM_EAGER_THRESHOLD": "1024"}, stacks=("intel-mpi",)
        ),
    ]
    for stack, library in delays.items():
        for delay in delay_ns:
            environment = {"LD_PRELOAD": str(library), "CLUSTERGATE_DELAY_NS": str(delay)}
            found.append(Provocation(f"{delay} ns in each call", environment, stacks=(stack,)))
    return found
