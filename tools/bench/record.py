"""``python -m tools.bench.record``: take launches on this machine, and keep them as a recording.

A job's own driver launches, and its log and its readers tell what came of it: what is said of error
rates holds for the very launches that a check makes. :mod:`tools.bench.verdicts` takes launches
that are slowed down on purpose, too.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import itertools
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clustergate.benchmarks.imb.command import SIZES_FILE, ImbSettings, imb_arguments, sizes_file
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.benchmarks.imb.plan import ImbExpectation
from clustergate.cli.progress import Progress
from clustergate.core.model import ClustergateError, Row
from clustergate.core.paths import state_dir
from clustergate.core.reasons import sentence_of
from clustergate.launch.dialects import Layout, launch_options
from clustergate.launch.launchers import exports
from clustergate.launch.plan import (
    PLAN,
    Contender,
    Launched,
    Plan,
    environment_with,
    read_log,
    write_plan,
)
from clustergate.launch.reading import expected_of, read_planned
from clustergate.launch.stopping import fixed_launches
from clustergate.machine.environment import clean_environment
from clustergate.machine.fingerprint import processor_of, read_fingerprint
from clustergate.machine.node import node_record
from clustergate.sites import choice
from clustergate.sites import configs as sites
from clustergate.stacks.manifest import Manifest, ManifestError, read_manifest
from clustergate.studies.ab.contenders import Named, in_ranks
from tools.bench.launches import (
    ASIDE,
    RECORDED,
    Launch,
    Window,
    every_recording,
    header,
    times_of,
    write_launches,
)

SIZES_BYTES = (8, 64, 512, 4096, 32768, 262144, 1048576)
BENCHMARKS = ("PingPong", "Sendrecv", "Allreduce")
FIGURES = len(SIZES_BYTES) * len(BENCHMARKS)
RANKS = 2
PROGRAM = "IMB-MPI1"
DELAY = Path(__file__).with_name("delay.c")
SETTINGS = ImbSettings(
    BENCHMARKS, RANKS, sizes=SIZES_BYTES, repetitions=1000, volume_mb=40, seconds=0.01
)
_LAYOUT = Layout(RANKS, RANKS)
_PATIENCE_S = 60.0
# So many rounds are a job of the recorder: the start of a job takes as long as a launch.
ROUNDS = 10
# Of the recordings each third waits, unread, until a design is final.
_ASIDE_OF = 3
# A benchmark may once print what no clock measured; a stack that does so again is not recorded.
_MOST_REFUSED = 3
_WORDS = {1: "one", 2: "two", 4: "four", 8: "eight"}
_TABLE = ("<!-- recordings -->\n", "<!-- /recordings -->\n")
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
    environment = environment_with(exports(manifest, 1))
    command = ["mpicc", "-O2", "-fPIC", "-shared", "-o", str(library), str(DELAY)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise LaunchFailed(f"{shlex.join(command)} failed: {ended.stderr.strip()[-200:]}")
    return library


class Recorder:
    """Takes launches of the stacks in turn, in another order each round, as a check's job does."""

    def __init__(self, manifests: Sequence[Manifest], folder: Path) -> None:
        self._manifests = {manifest.stack: manifest for manifest in manifests}
        self._folder = folder
        self.window = window_of(manifests)
        self.refused: list[str] = []
        self._jobs = itertools.count()
        self._turns = 0

    def rounds(self, count: int, provocation: Provocation = UNCHANGED) -> Iterator[Launch]:
        """Yield the launches of so many rounds of the stacks that the provocation works on.

        A launch in which the benchmark ran out of its time for a size lacks figures: see
        :func:`is_whole`. One whose output is refused is left out, and why is in ``refused``.
        Raises :class:`LaunchFailed` when a launch ends badly, or more than ``_MOST_REFUSED`` were
        refused; those before it are yielded first.
        """
        job = self._folder / f"job-{next(self._jobs)}"
        job.mkdir()
        on = provocation.stacks or list(self._manifests)
        wanted = [m for stack, m in self._manifests.items() if stack in on]
        with provocation.around() as wrapper:
            plan = plan_of(wanted, count, provocation, wrapper)
            ended = launched(job, plan)
        for made in read_log(job).launches:
            if made.status:
                continue
            try:
                yield self._recorded(job, plan, made, provocation)
            except LaunchFailed as error:
                self.refused.append(str(error))
                if len(self.refused) > _MOST_REFUSED:
                    raise
        if ended.returncode:
            last = (ended.stderr.strip() or ended.stdout.strip())[-200:]
            raise LaunchFailed(f"a launch ended badly: {last}")
        self._turns += count
        shutil.rmtree(job)

    def _recorded(self, job: Path, plan: Plan, made: Launched, provocation: Provocation) -> Launch:
        manifest = self._manifests[made.contender]
        (contender,) = (one for one in plan.contenders if one.name == made.contender)
        complaints, rows = read_planned(job, plan.nonce, contender, made, _parsed)
        if complaints:
            raise LaunchFailed(f"{manifest.stack}: {sentence_of(complaints)}")
        printed = printed_of(rows)
        (times,) = times_of([printed])
        if none := [name for name, time_us in times.items() if time_us <= 0.0]:
            raise LaunchFailed(f"{manifest.stack}: {none[0]} took no time")
        return Launch(
            window=self.window,
            stack=manifest.stack,
            noted=made.launch,
            microseconds=times,
            printed=printed,
            turn=self._turns + made.turn,
            distances_ns=made.distances_ns,
            provoked=provocation.name,
        )


def launched(job: Path, plan: Plan) -> subprocess.CompletedProcess[str]:
    """Launch a plan in the folder of a job, by its driver."""
    write_plan(job, plan)
    return subprocess.run(
        [sys.executable, "-I", "-m", "clustergate.launch", str(job / PLAN)],
        env=clean_environment(os.environ).environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def plan_of(
    manifests: Sequence[Manifest],
    rounds: int,
    provocation: Provocation = UNCHANGED,
    wrapper: Sequence[str] = (),
) -> Plan:
    """Return the plan of so many rounds, each with one launch of every stack."""
    own = dict(provocation.environment)
    return Plan(
        nonce=secrets.token_hex(8),
        contenders=[
            Contender(
                name=m.stack,
                launcher=[*wrapper, m.launcher, *launch_options(m.dialect, _LAYOUT)],
                # Only the ranks get what slows them down, not their launcher.
                program=[
                    *in_ranks(Named(m.stack, m.stack, own), m.proof_library),
                    m.program(PROGRAM).path,
                    *imb_arguments(SETTINGS),
                ],
                proof_library=m.proof_library,
                environment=exports(m, 1),
                inputs={SIZES_FILE: sizes_file(SIZES_BYTES)},
                seconds=_PATIENCE_S,
                expected=expected_of(m, _LAYOUT),
            )
            for m in manifests
        ],
        budget=fixed_launches(rounds),
        seed=secrets.randbits(32),
        core_distance=[manifests[0].program("core_distance").path],
    )


def window_of(manifests: Sequence[Manifest]) -> Window:
    """Return what is known of this node and of the stacks now."""
    fingerprint = read_fingerprint()
    software = fingerprint["software"]
    suite = [software.pop(name) for name in ("clustergate", "clustergate_checkout")]
    return Window(
        launcher="clustergate.launch",
        date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        engine=" ".join(str(version) for version in suite if version is not None),
        **{**node_record(), "processor": processor_of(fingerprint) or None},
        fingerprint={name: _digest(group) for name, group in fingerprint.items()},
        stacks={
            m.stack: {"mpi": f"{m.mpi_name} {m.mpi_version}".strip(), "build_key": m.build_key}
            for m in manifests
        },
        ranks=RANKS,
        command=[PROGRAM, *imb_arguments(SETTINGS)],
    )


def _digest(group: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(group, sort_keys=True).encode()).hexdigest()[:16]


def is_whole(launch: Launch) -> bool:
    """Tell whether a launch has all its figures: the benchmark had the time for every size."""
    return len(launch.microseconds) == FIGURES


def printed_of(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Return what a benchmark printed, by names such as ``PingPong/8`` and by metric."""
    return {
        f"{row.benchmark}/{row.conditions['bytes']}": dict(row.values)
        for row in rows
        if row.status == "ok"
    }


def _parsed(lines: Iterable[str], source: str) -> Iterator[Row]:
    call = ImbExpectation(
        benchmarks=BENCHMARKS,
        bytes=SIZES_BYTES,
        arguments=tuple(imb_arguments(SETTINGS)),
        ranks=RANKS,
    )
    return parse_imb(lines, source=source, expect=call)


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


def name_of_recording(window: Window, *, virtual: bool, recordings: int) -> str:
    """Return the file name of a recording that is made where there are ``recordings`` already."""
    cores = _WORDS.get(window.cores or 0, str(window.cores))
    machine = f"{cores}-core-{'vm' if virtual else 'node'}"
    began = datetime.datetime.fromisoformat(window.date)
    aside = ASIDE if (recordings + 1) % _ASIDE_OF == 0 else ""
    return f"{machine}-{began:%Y-%m-%d-%H%M%S}{aside}.jsonl.gz"


def recorded(
    minutes: float, manifests: Sequence[Manifest], folder: Path
) -> tuple[Path, int, int, list[str]]:
    """Record launches for so long; return the recording, its launches, those left out, complaints.

    Left out are launches that ran out of their time for a size; the complaints are of the launches
    whose output was refused.

    Raises :class:`LaunchFailed` when a launch ends badly; those before it are kept.
    """
    virtual = read_fingerprint()["hardware"].get("virtual_machine") is not False
    taken: list[Launch] = []
    made = 0
    end = time.monotonic() + 60.0 * minutes
    with tempfile.TemporaryDirectory(prefix="clustergate-bench-") as scratch:
        recorder = Recorder(manifests, Path(scratch))
        count = len(list(folder.glob("*.jsonl.gz")))
        path = folder / name_of_recording(recorder.window, virtual=virtual, recordings=count)
        while time.monotonic() < end:
            try:
                for launch in recorder.rounds(ROUNDS):
                    made += 1
                    taken += [launch] if is_whole(launch) else []
            finally:
                if taken:
                    write_launches(path, taken)
    return path, len(taken), made - len(taken), recorder.refused


def with_table(page: str, files: Sequence[Path]) -> str:
    """Return a page with its table of recordings as their first lines tell it."""
    lines = [
        "| recording | began (UTC) | machine | MPI libraries | launched by |",
        "|---|---|---|---|---|",
    ]
    for path in files:
        window = header(path)
        libraries = ", ".join(stack["mpi"] for stack in window.stacks.values())
        cores = f", {window.cores} cores" if window.cores else ""
        machine = f"{window.processor or 'not noted'}{cores}"
        began = datetime.datetime.fromisoformat(window.date)
        name = path.name.removesuffix(".jsonl.gz")
        launcher = f"{window.launcher} {window.engine or ''}".strip()
        lines.append(
            f"| `{name}` | {began:%Y-%m-%d %H:%M} | {machine} | {libraries or 'not noted'} | "
            f"{launcher} |"
        )
    before, _, rest = page.partition(_TABLE[0])
    _, _, after = rest.partition(_TABLE[1])
    table = "".join(f"{line}\n" for line in lines)
    return f"{before}{_TABLE[0]}{table}{_TABLE[1]}{after}"


def manifests_of(stacks: Sequence[str] = ()) -> list[Manifest]:
    """Return the stacks that can be recorded here, or those of them that are asked for.

    Raises :class:`~clustergate.stacks.manifest.ManifestError` when there are none.
    """
    found = []
    for name in [stack.name for stack in sites.load(choice.find("local")).stacks]:
        try:
            manifest = read_manifest(state_dir(), name)
        except ManifestError:
            continue
        needed = (PROGRAM, "core_distance")
        if not any(manifest.program(program).unavailable for program in needed):
            found.append(manifest)
    if not found:
        raise ManifestError("no MPI stack with IMB is set up; run `make setup`")
    there = [manifest.stack for manifest in found]
    if missing := [stack for stack in stacks if stack not in there]:
        raise ManifestError(f"{missing[0]} is not set up with IMB; there are {', '.join(there)}")
    return [manifest for manifest in found if not stacks or manifest.stack in stacks]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a recording and write the table of all; 2 when a launch failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.record",
        description="Record launches of this machine for `make bench-verdicts`.",
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="for so long (default: 3)")
    parser.add_argument(
        "--stacks", type=lambda text: text.split(","), default=("mpich", "intel-mpi"),
        metavar="STACK,…", help="of these stacks (default: mpich,intel-mpi, as the others are)",
    )  # fmt: skip
    asked = parser.parse_args(arguments)
    if asked.minutes <= 0:
        parser.error(f"--minutes {asked.minutes:g}: a recording takes some time")
    page = RECORDED / "README.md"
    status = 0
    try:
        Progress()(f"recording for {asked.minutes:g} minutes")
        path, launches, lacking, refused = recorded(
            asked.minutes, manifests_of(asked.stacks), RECORDED
        )
        left_out = (
            f"; {lacking} more ran out of time for a size and were left out" if lacking else ""
        )
        print(f"{launches} launches are in {path}{left_out}")
        for complaint in refused:
            print(f"left out: {complaint}", file=sys.stderr)
    except ClustergateError as error:
        print(error, file=sys.stderr)
        status = 2
    page.write_text(
        with_table(page.read_text(encoding="utf-8"), every_recording()), encoding="utf-8"
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
