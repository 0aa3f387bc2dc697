"""Runs of HPL and of the node's own kernels outside ReFrame, for finding the best way to run HPL.

The :mod:`engine <clustergate.launching.engine>` starts every program in a session of its own: when
it must not go on (an interruption, a time limit), whatever is left of that session is killed, and
nothing else on the machine is touched.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clustergate.benchmarks.descriptor import Benchmark
from clustergate.benchmarks.hpl.output import parse_hpl
from clustergate.benchmarks.hpl.sizing import hpl_expectation, predict_hpl_seconds, render_hpl_dat
from clustergate.figures import samples_of
from clustergate.kernels.peaks import parse_peaks
from clustergate.launching.dialects import Layout, env_words, launch_options
from clustergate.launching.engine import Engine
from clustergate.launching.plan import ERRORS, OUTPUT, Contender, launch_folder
from clustergate.launching.reading import ending_of, expected_of, lines_of, read_planned
from clustergate.launching.watchdog import Patience
from clustergate.machine.environment import clean_environment
from clustergate.machine.peaks import value_of
from clustergate.model import CaseRecord, ClustergateError, Row
from clustergate.stacks.manifest import Manifest
from clustergate.tuning.search import Measured, Request
from clustergate.tuning.space import NB_FINE, Batch, Configuration, batches
from clustergate.verdicts.assembly import beyond_limits
from clustergate.wording.reasons import sentence_of

KERNEL_VARIABLES: Mapping[str, str] = {"OpenBLAS": "OPENBLAS_CORETYPE"}
"""How a BLAS is told whose kernels to use."""

# Names that OPENBLAS_CORETYPE takes (dynamic.c and dynamic_arm64.c of OpenBLAS), those of the last
# ten years. A library holds few of them and takes another for the rest.
_KERNELS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("OpenBLAS", "x86_64"): (
        *("Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"),
    ),
    ("OpenBLAS", "aarch64"): (
        *("ARMV8", "NEOVERSEN1", "NEOVERSEV1", "NEOVERSEN2", "NEOVERSEV2", "ARMV8SVE", "A64FX"),
    ),
}

HUGE_PAGES = "glibc.malloc.hugetlb=1"
"""Lets malloc ask for large pages (glibc 2.35 and later), where the kernel gives them on demand."""

KEEP_MEMORY = f"glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold={2**40}"
"""Lets free keep what HPL allocates for each panel: the kernel would have to clear its pages again
for the next one."""

_HUGE_PAGES_ON_DEMAND = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_HUGE_PAGES_SINCE = (2, 35)
_TUNABLES_SINCE = (2, 26)

PATIENCE = 6.0
"""Times as long as predicted that a run may take, since other kernels may be that much slower."""

START_SECONDS = 60.0
SET_UP_SECONDS = 1e-7
"""For an element of the matrix: to fill it, and to check the solution."""

SLOWEST_GFLOPS = 0.5
"""Of a machine whose rate is not known yet."""

KERNEL_SECONDS = 600.0
"""The suite's own kernels measure each core alone before all at once."""

TRIALS = 2
CEILING_TRIALS = 5

WORTHWHILE = 0.85
"""Kernels with a DGEMM below this fraction of the best make no faster HPL."""


# --- the environment --------------------------------------------------------------------------


def rank_environment(manifest: Manifest, configuration: Configuration) -> dict[str, str]:
    """Return the variables, beside those of the stack, that a configuration needs."""
    variables: dict[str, str] = {}
    if configuration.kernel and manifest.blas is not None:
        variables[KERNEL_VARIABLES[manifest.blas.name]] = configuration.kernel
    tunables = [HUGE_PAGES] if configuration.huge_pages else []
    tunables += [KEEP_MEMORY] if configuration.keep_memory else []
    return variables | ({"GLIBC_TUNABLES": ":".join(tunables)} if tunables else {})


def huge_pages_on_demand(setting: Path = _HUGE_PAGES_ON_DEMAND) -> bool:
    """Tell whether a program that asks for large pages gets some that it would not have else."""
    if _glibc_version() < _HUGE_PAGES_SINCE:
        return False
    try:
        return "[madvise]" in setting.read_text(encoding="utf-8")
    except OSError:
        return False


def memory_can_be_kept() -> bool:
    """Tell whether the C library takes what :data:`KEEP_MEMORY` says."""
    return _glibc_version() >= _TUNABLES_SINCE


def _glibc_version() -> tuple[int, ...]:
    """Return the version of glibc, nothing where the C library is another."""
    library, version = platform.libc_ver()
    return tuple(map(int, version.split(".")[:2])) if library == "glibc" else ()


def _exports(manifest: Manifest, threads: int) -> dict[str, str]:
    """Return what the stack exports, as in a job of a check."""
    from clustergate.launching.launchers import exports  # only here: it loads ReFrame

    return exports(manifest, threads)


# --- HPL --------------------------------------------------------------------------------------


class HplRunner:
    """Answers the requests of a search by running a stack's HPL on this node.

    It notes each launch in a folder of its own, as the job of a check does.
    """

    def __init__(self, manifest: Manifest, folder: Path, preload: str = "") -> None:
        """``preload`` are the libraries that the site loads into every program."""
        self.manifest = manifest
        environ = dict(clean_environment(os.environ).environment)
        environ |= {"LD_PRELOAD": preload} if preload else {}
        job = folder / manifest.stack
        job.mkdir()
        self.nonce = secrets.token_hex(8)
        self.engine = Engine(job, self.nonce, environ=environ, own_sessions=True)
        self.engine.begin_log()
        self.engine.keep_home_out()
        if distance := manifest.command("core_distance"):
            self.engine.watch_distance(distance, _exports(manifest, 1))
        self.launches = 0
        self._asides = itertools.count()
        self.slowest_gflops = SLOWEST_GFLOPS
        program = manifest.program("xhpl")
        if program.unavailable:
            raise ClustergateError("tuning.unavailable", program="xhpl", why=program.unavailable)
        self.program = program.path

    def kernel(
        self, name: str, options: Sequence[str], own: Mapping[str, str] | None = None
    ) -> list[Row]:
        """Run one of the node's own kernels and return its rows.

        Raises a :class:`ClustergateError` when it is not there, or did not run.
        """
        program = self.manifest.program(name)
        if program.unavailable:
            raise ClustergateError("tuning.unavailable", program=name, why=program.unavailable)
        environment = _exports(self.manifest, 1) | dict(own or {})
        output = f"{name}-{next(self._asides):03d}"
        words = [program.path, *options]
        if status := self.engine.run_aside(words, environment, output, KERNEL_SECONDS):
            how = ending_of(status, [self.engine.job / f"{output}.err"])
            raise ClustergateError("tuning.run-failed", how=how)
        return list(parse_peaks(lines_of(self.engine.job / output), source=name))

    def measure(self, request: Request) -> Measured:
        """Measure every configuration in every round, and tell of those that cannot run why."""
        begun, launches = time.monotonic(), self.launches
        gflops: dict[Configuration, list[float]] = {c: [] for c in request.configurations}
        refused: dict[Configuration, str] = {}
        for configurations, rounds in _schedule(request):
            running = [c for c in configurations if c not in refused]
            for configuration, answer in self._try(running, request.n, rounds):
                if isinstance(answer, str):
                    refused[configuration] = answer
                else:
                    gflops[configuration] += answer
        return Measured(
            gflops={c: tuple(rates) for c, rates in gflops.items() if c not in refused},
            seconds=time.monotonic() - begun,
            launches=self.launches - launches,
            refused={c: f"{c.summary()}: {reason}" for c, reason in refused.items()},
        )

    def _try(
        self, configurations: Sequence[Configuration], n: int, rounds: int
    ) -> Iterator[tuple[Configuration, list[float] | str]]:
        """Yield the rates of each configuration, or why it does not run."""
        for batch in batches(configurations):
            try:
                yield from self.run(batch, n, rounds).items()
            except ClustergateError as error:
                if len(batch.configurations) == 1:
                    yield batch.configurations[0], str(error)
                else:
                    # One of them spoils the text of all: which one shows when each runs alone.
                    for alone in batch.configurations:
                        yield from self._try([alone], n, rounds)

    def run(self, batch: Batch, n: int, rounds: int) -> dict[Configuration, list[float]]:
        """Start HPL once and return the rates in Gflop/s, one for each round.

        Raises a :class:`ClustergateError` when the run failed or was not the one asked for.
        """
        order, self.launches = self.launches, self.launches + 1
        one, hpl_input = batch.configurations[0], batch.hpl_input(n, rounds)
        layout = Layout(one.ranks, one.ranks, one.cores_per_rank)
        blas = self.manifest.blas
        limit_s = self._patience(n, len(batch.configurations) * rounds)
        call_s = Benchmark.longest_call_s
        watched = Patience.of(one.ranks, 1, call_s=call_s, computing_s=limit_s)
        contender = Contender(
            name=self.manifest.stack,
            launcher=[self.manifest.launcher, *launch_options(self.manifest.dialect, layout)],
            program=[*env_words(rank_environment(self.manifest, one)), self.program],
            proof_library=self.manifest.proof_library,
            environment=_exports(self.manifest, one.cores_per_rank),
            inputs=dict.fromkeys(("HPL.dat", "hpccinf.txt"), render_hpl_dat(hpl_input)),
            proves=bool(self.manifest.proof_library),
            seconds=limit_s,
            patience=watched if self.manifest.proof_library else None,
            expected=replace(
                expected_of(self.manifest, layout),
                threads_per_rank=one.cores_per_rank,
                blas_library=blas.library if blas else None,
                blas_kernel=one.kernel or None,
            ),
        )
        launched = self.engine.launch(contender, order)
        folder = launch_folder(self.engine.job, order)
        if launched.status:
            how = ending_of(launched.status, [folder / ERRORS])
            raise ClustergateError("tuning.run-failed", how=how)

        def parse(lines: Iterable[str], source: str) -> Iterator[Row]:
            return parse_hpl(lines, source=source, expect=hpl_expectation(hpl_input))

        if contender.proves:
            complaints, rows = read_planned(self.engine.job, self.nonce, contender, launched, parse)
            if complaints:
                raise ClustergateError("tuning.run-failed", how=sentence_of(complaints))
        else:
            rows = list(parse(lines_of(folder / OUTPUT), "HPL"))
        self._require_possible(one, rows)
        return self._rates(batch, rows)

    def _patience(self, n: int, solves: int) -> float:
        solving = predict_hpl_seconds(n, self.slowest_gflops) + SET_UP_SECONDS * n**2
        return START_SECONDS + PATIENCE * solves * solving

    def _require_possible(self, one: Configuration, rows: Sequence[Row]) -> None:
        conditions = {"nodes": 1, "ranks_per_node": one.ranks, "cores_per_rank": one.cores_per_rank}
        stack, samples = self.manifest.stack, samples_of(rows)
        record = CaseRecord("hpl", "HplCheck", stack, "", conditions, samples)
        if impossible := beyond_limits(record):
            raise ClustergateError("tuning.run-failed", how=sentence_of(impossible))

    def _rates(self, batch: Batch, rows: Sequence[Row]) -> dict[Configuration, list[float]]:
        rates: dict[Configuration, list[float]] = {c: [] for c in batch.configurations}
        for configuration, row in zip(itertools.cycle(batch.configurations), rows, strict=False):
            rates[configuration].append(row.values["performance_gflops"])
        slowest = min(row.values["performance_gflops"] for row in rows)
        known = self.slowest_gflops if self.slowest_gflops != SLOWEST_GFLOPS else math.inf
        self.slowest_gflops = min(slowest, known)
        return rates


def _schedule(request: Request) -> Iterator[tuple[tuple[Configuration, ...], int]]:
    """Yield what to measure one after the other, so that the rounds follow each other."""
    starts = batches(request.configurations)
    if len(starts) > 1:
        yield from ((b.configurations, 1) for _ in range(request.rounds) for b in starts)
        return
    left = request.rounds
    while left:
        rounds = min(left, starts[0].most_rounds)
        yield starts[0].configurations, rounds
        left -= rounds


# --- the node's own kernels -------------------------------------------------------------------


@dataclass(frozen=True)
class Kernels:
    """What a BLAS offers on this node.

    ``own`` is its own choice. ``gflops`` holds the rate of DGEMM on one core by the name of the
    processor whose kernels they are; ``refused`` says of the others why they do not run here.
    """

    own: str
    gflops: Mapping[str, float]
    refused: tuple[str, ...] = ()

    def worthwhile(self) -> tuple[str, ...]:
        """Return the kernels with which HPL may be faster than with the library's own choice."""
        best = max(self.gflops.values())
        return tuple(
            name
            for name, gflops in self.gflops.items()
            if name != self.own and gflops >= WORTHWHILE * best
        )


def find_kernels(runner: HplRunner, cpu: int, seconds: float) -> Kernels:
    """Ask the BLAS of a stack for each kind of kernels it may have, by DGEMM on one core.

    ``seconds`` is the time of one trial. Kernels with instructions that this processor lacks end
    the program that tries them: a finding, not an error. Raises ClustergateError when DGEMM does
    not even run by default.
    """
    options = _trials(seconds, TRIALS, cpu)
    by_default = _dgemm(runner, options)
    own = str(by_default[0].conditions["kernel"])
    rates = {own: _best(by_default)}
    refused = []
    blas = runner.manifest.blas.name if runner.manifest.blas is not None else ""
    for name in _KERNELS.get((blas, platform.machine()), ()):
        try:
            rows = _dgemm(runner, options, name)
        except ClustergateError as error:
            refused.append(f"{KERNEL_VARIABLES[blas]}={name}: {error}")
            continue
        # The name of other kernels: the library does not have those asked for.
        kernel = str(rows[0].conditions["kernel"])
        if kernel.casefold() == name.casefold() and kernel != own:
            rates[name] = _best(rows)
    return Kernels(own, rates, tuple(refused))


def dgemm_by_block(
    runner: HplRunner, cpu: int, kernels: Sequence[str], seconds: float
) -> dict[tuple[str, int], float]:
    """Return the rate of DGEMM on one core by kernels (empty: the BLAS's own) and by k."""
    options = _trials(seconds, TRIALS, cpu)
    return {
        (kernel, nb): _best(_dgemm(runner, ("--k", str(nb), *options), kernel))
        for kernel in kernels
        for nb in NB_FINE
    }


def dgemm_gflops(runner: HplRunner, best: Configuration, seconds: float) -> float:
    """Return the rate of DGEMM on all cores at once, with the block size of HPL's update as k.

    The best of several trials, since a disturbance can only lower them.
    """
    options = ("--k", str(best.nb), *_trials(seconds, CEILING_TRIALS))
    own = rank_environment(runner.manifest, best)
    return _best(_on_all_cores(runner.kernel("dgemm", options, own)))


def fma_gflops(runner: HplRunner, seconds: float) -> float:
    """Return the rate of fused multiply-adds on all cores at once: the peak of these cores."""
    # The memory bandwidth, which the program measures as well, is of no use here: a small array.
    options = (*_trials(seconds, CEILING_TRIALS), "--array-mib", "1")
    rows = runner.kernel("node_peaks", options)
    return _best(_on_all_cores([row for row in rows if row.benchmark == "fma_peak"]))


def _trials(seconds: float, trials: int, cpu: int | None = None) -> tuple[str, ...]:
    cores = () if cpu is None else ("--cores", str(cpu))
    return ("--seconds", f"{seconds:.3f}", "--trials", str(trials), *cores)


def _dgemm(runner: HplRunner, options: Sequence[str], kernel: str = "") -> list[Row]:
    blas = runner.manifest.blas
    own = {KERNEL_VARIABLES[blas.name]: kernel} if kernel and blas is not None else {}
    return runner.kernel("dgemm", options, own)


def _on_all_cores(rows: Sequence[Row]) -> list[Row]:
    most = max(int(row.conditions["cores"]) for row in rows)
    return [row for row in rows if row.conditions["cores"] == most]


def _best(rows: Sequence[Row]) -> float:
    return max(value_of(row) for row in rows)
