"""Runs of HPL and of the node's own kernels outside ReFrame, for finding the best way to run HPL.

Every program is started in a session of its own. When it must not go on (an interruption, a time
limit), the launcher is asked to end it, and whatever is left of that session is killed: nothing
else on the machine is touched.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import psutil

from clustergate.benchmarks.hpl.output import parse_hpl
from clustergate.benchmarks.sizing import hpl_expectation, predict_hpl_seconds, render_hpl_dat
from clustergate.figures import samples_of
from clustergate.kernels.peaks import parse_peaks
from clustergate.launching.dialects import Layout, launch_options
from clustergate.launching.plan import preloading
from clustergate.machine.configuration import keep_personal_files_out
from clustergate.machine.environment import clean_environment
from clustergate.model import CaseRecord, ClustergateError, Row
from clustergate.proof import provenance
from clustergate.proof import ranks as proof
from clustergate.stacks.manifest import Manifest
from clustergate.tuning.search import Measured, Request
from clustergate.tuning.space import NB_FINE, Batch, Configuration, batches
from clustergate.verdicts.assembly import beyond_limits
from clustergate.verdicts.node_peaks import value_of

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
"""Times as long as foretold that a run may take, since other kernels may be that much slower."""

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

ENDING_SECONDS = 5.0
"""What a launcher gets for ending its ranks before they are killed."""


class RunFailure(ClustergateError):
    """A program did not run, or not as it was asked to; the sentence says why."""


class Ended(NamedTuple):
    """What a program left: its exit status (negative: by which signal it ended) and its texts."""

    status: int
    output: str
    errors: str


def run_program(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, seconds: float
) -> Ended:
    """Run a program to its end, in ``folder``.

    Raises :class:`RunFailure` when it cannot be started or takes longer than ``seconds``. However
    it ends, no process of it is left.
    """
    try:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise RunFailure(f"{command[0]} cannot be started: {error.strerror}") from None
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end_session(process)
        raise RunFailure(f"it did not end within {seconds:.0f} s") from None
    except BaseException:
        _end_session(process)
        raise
    return Ended(process.returncode, output, errors)


def _end_session(process: subprocess.Popen[str]) -> None:
    """End a program and all it started: its launcher first, which knows the ranks."""
    with _undisturbed():
        _signal_group(process.pid, signal.SIGTERM)
        end = time.monotonic() + ENDING_SECONDS
        while _session_members(process.pid) and time.monotonic() < end:
            process.poll()
            time.sleep(0.05)
        for member in _session_members(process.pid):
            _signal(member, signal.SIGKILL)
        process.communicate()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let a second Ctrl-C wait: it would leave processes behind."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _session_members(session: int) -> list[int]:
    return [pid for pid in psutil.pids() if _session_of(pid) == session and not _is_zombie(pid)]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _is_zombie(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Make a scheduler's SIGTERM and a lost terminal's SIGHUP end things as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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


def _environment(manifest: Manifest, threads: int) -> dict[str, str]:
    """Return a clean environment with what the stack exports, as a job of a check has it."""
    from clustergate.launching.launchers import exports  # only here: it loads ReFrame

    environment = dict(clean_environment(os.environ).environment)
    for name, value in exports(manifest, threads).items():
        before = environment.get(name, "") if name in ("PATH", "LD_LIBRARY_PATH") else ""
        environment[name] = f"{value}:{before}" if before else value
    return environment


# --- HPL --------------------------------------------------------------------------------------


class HplRunner:
    """Answers the requests of a search by running a stack's HPL on this node."""

    def __init__(self, manifest: Manifest, folder: Path, preload: str = "") -> None:
        """``preload`` are the libraries that the site loads into every program."""
        self.manifest = manifest
        self.folder = folder
        self.preload = preload
        self.launches = 0
        self.slowest_gflops = SLOWEST_GFLOPS
        program = manifest.program("xhpl")
        if program.unavailable:
            raise RunFailure(f"xhpl is not available here: {program.unavailable}")
        self.program = program.path

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
        self.launches += 1
        one = batch.configurations[0]
        hpl_input = batch.hpl_input(n, rounds)
        text = render_hpl_dat(hpl_input)
        for name in ("HPL.dat", "hpccinf.txt"):
            (self.folder / name).write_text(text, encoding="utf-8")
        proofs = self.folder / "proof"
        shutil.rmtree(proofs, ignore_errors=True)
        proofs.mkdir()
        nonce = secrets.token_hex(8)
        own = rank_environment(self.manifest, one)
        proving = []
        if self.manifest.proof_library:
            proving = preloading(self.manifest.proof_library, {"LD_PRELOAD": self.preload})
            own |= {"CLUSTERGATE_PROOF_DIR": str(proofs), "CLUSTERGATE_PROOF_NONCE": nonce}
        layout = Layout(one.ranks, one.ranks, one.cores_per_rank)
        options = launch_options(self.manifest.dialect, layout)
        variables = [*(f"{name}={value}" for name, value in own.items()), *proving]
        command = [self.manifest.launcher, *options, "env", *variables, self.program]
        environment = _environment(self.manifest, one.cores_per_rank)
        keep_personal_files_out(environment, self.folder / "home")
        solves = len(batch.configurations) * rounds
        ended = run_program(command, environment, self.folder, self._patience(n, solves))
        if ended.status:
            raise RunFailure(_ending(ended))
        lines, records = ended.output.splitlines(), proof.read_proofs(proofs)
        if self.manifest.proof_library:
            self._require_proof(records, one, nonce)
        rows = list(parse_hpl(lines, source="HPL", expect=hpl_expectation(hpl_input)))
        if self.manifest.proof_library:
            _refuse(provenance.complaints(records, nonce, rows, lines, source="HPL"))
        self._require_possible(one, rows)
        return self._rates(batch, rows)

    def _patience(self, n: int, solves: int) -> float:
        solving = predict_hpl_seconds(n, self.slowest_gflops) + SET_UP_SECONDS * n**2
        return START_SECONDS + PATIENCE * solves * solving

    def _require_proof(
        self, records: Sequence[proof.RankProof], one: Configuration, nonce: str
    ) -> None:
        expected = proof.ProofExpectation(
            nonce=nonce,
            ranks=one.ranks,
            nodes=1,
            ranks_per_node=one.ranks,
            mpi_library=self.manifest.mpi_library,
            library_pattern=self.manifest.library_pattern,
            cores_per_rank=one.cores_per_rank,
            threads_per_rank=one.cores_per_rank,
            blas_library=self.manifest.blas.library if self.manifest.blas else None,
            blas_kernel=one.kernel or None,
        )
        _refuse(proof.check_proofs(records, expected))

    def _require_possible(self, one: Configuration, rows: Sequence[Row]) -> None:
        conditions = {"nodes": 1, "ranks_per_node": one.ranks, "cores_per_rank": one.cores_per_rank}
        stack, samples = self.manifest.stack, samples_of(rows)
        record = CaseRecord("hpl", "HplCheck", stack, "", conditions, samples)
        if told := beyond_limits(record):
            raise RunFailure("; ".join(told))

    def _rates(self, batch: Batch, rows: Sequence[Row]) -> dict[Configuration, list[float]]:
        rates: dict[Configuration, list[float]] = {c: [] for c in batch.configurations}
        for configuration, row in zip(itertools.cycle(batch.configurations), rows, strict=False):
            rates[configuration].append(row.values["performance_gflops"])
        slowest = min(row.values["performance_gflops"] for row in rows)
        known = self.slowest_gflops if self.slowest_gflops != SLOWEST_GFLOPS else math.inf
        self.slowest_gflops = min(slowest, known)
        return rates


def _refuse(complaints: Iterable[str]) -> None:
    """Raise :class:`RunFailure` with what speaks against a run, if anything does."""
    if told := "; ".join(complaints):
        raise RunFailure(told)


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


def _ending(ended: Ended) -> str:
    """Return how a program ended that should have ended with status 0, and its last words."""
    status = ended.status
    number = -status if status < 0 else status - 128 if 128 < status < 128 + signal.NSIG else 0
    how = f"signal {number}, {signal.strsignal(number)}" if number else f"exit status {status}"
    words = [line.strip() for line in ended.errors.splitlines() if line.strip()]
    return f"it ended with {how}" + (f" ({words[-1][:120]})" if words else "")


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


def find_kernels(manifest: Manifest, folder: Path, cpu: int, seconds: float) -> Kernels:
    """Ask the BLAS of a stack for each kind of kernels it may have, by DGEMM on one core.

    ``seconds`` is the time of one trial. Kernels with instructions that this processor lacks end
    the program that tries them: a finding, not an error. Raises :class:`RunFailure` when DGEMM does
    not even run by default.
    """
    options = _trials(seconds, TRIALS, cpu)
    by_default = _dgemm(manifest, folder, options)
    own = str(by_default[0].conditions["kernel"])
    found = {own: _best(by_default)}
    refused = []
    blas = manifest.blas.name if manifest.blas is not None else ""
    for name in _KERNELS.get((blas, platform.machine()), ()):
        try:
            rows = _dgemm(manifest, folder, options, name)
        except ClustergateError as error:
            refused.append(f"{KERNEL_VARIABLES[blas]}={name}: {error}")
            continue
        # The name of other kernels: the library does not have those asked for.
        kernel = str(rows[0].conditions["kernel"])
        if kernel.casefold() == name.casefold() and kernel != own:
            found[name] = _best(rows)
    return Kernels(own, found, tuple(refused))


def dgemm_by_block(
    manifest: Manifest, folder: Path, cpu: int, kernels: Sequence[str], seconds: float
) -> dict[tuple[str, int], float]:
    """Return the rate of DGEMM on one core by kernels (empty: the BLAS's own) and by k."""
    options = _trials(seconds, TRIALS, cpu)
    return {
        (kernel, nb): _best(_dgemm(manifest, folder, ("--k", str(nb), *options), kernel))
        for kernel in kernels
        for nb in NB_FINE
    }


def dgemm_gflops(manifest: Manifest, folder: Path, best: Configuration, seconds: float) -> float:
    """Return the rate of DGEMM on all cores at once, with the block size of HPL's update as k.

    The best of several trials, since a disturbance can only lower them.
    """
    options = ("--k", str(best.nb), *_trials(seconds, CEILING_TRIALS))
    own = rank_environment(manifest, best)
    return _best(_on_all_cores(_rows_of_kernel(manifest, "dgemm", folder, options, own)))


def fma_gflops(manifest: Manifest, folder: Path, seconds: float) -> float:
    """Return the rate of fused multiply-adds on all cores at once: the peak of these cores."""
    # The memory bandwidth, which the program measures as well, is of no use here: a small array.
    options = (*_trials(seconds, CEILING_TRIALS), "--array-mib", "1")
    rows = _rows_of_kernel(manifest, "node_peaks", folder, options)
    return _best(_on_all_cores([row for row in rows if row.benchmark == "fma_peak"]))


def _trials(seconds: float, trials: int, cpu: int | None = None) -> tuple[str, ...]:
    cores = () if cpu is None else ("--cores", str(cpu))
    return ("--seconds", f"{seconds:.3f}", "--trials", str(trials), *cores)


def _dgemm(manifest: Manifest, folder: Path, options: Sequence[str], kernel: str = "") -> list[Row]:
    own = {}
    if kernel and manifest.blas is not None:
        own = {KERNEL_VARIABLES[manifest.blas.name]: kernel}
    return _rows_of_kernel(manifest, "dgemm", folder, options, own)


def _rows_of_kernel(
    manifest: Manifest,
    name: str,
    folder: Path,
    options: Sequence[str],
    own: Mapping[str, str] | None = None,
) -> list[Row]:
    program = manifest.program(name)
    if program.unavailable:
        raise RunFailure(f"{name} is not available here: {program.unavailable}")
    environment = _environment(manifest, 1) | dict(own or {})
    ended = run_program([program.path, *options], environment, folder, KERNEL_SECONDS)
    if ended.status:
        raise RunFailure(_ending(ended))
    return list(parse_peaks(ended.output.splitlines(), source=name))


def _on_all_cores(rows: Sequence[Row]) -> list[Row]:
    most = max(int(row.conditions["cores"]) for row in rows)
    return [row for row in rows if row.conditions["cores"] == most]


def _best(rows: Sequence[Row]) -> float:
    return max(value_of(row) for row in rows)
