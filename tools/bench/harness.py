"""What a case costs beyond the bare ``mpirun`` of the same binary with the same inputs."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustergate.core import store
from clustergate.core.model import CaseRecord
from clustergate.core.paths import state_dir
from clustergate.run import reframe
from clustergate.sites import choice
from clustergate.sites import configs as sites
from clustergate.stacks.manifest import Manifest, ManifestError, read_manifest
from tools.bench.spread import Aim, Figure
from tools.bench.workspace import BenchError, Workspace, turns

SECTION = "harness"
AIM_S = Aim(at_most=0.3)
AIM_SESSION_S = Aim(at_most=1.5)


@dataclass(frozen=True)
class Program:
    """A short run: the check, the program and the check's settings."""

    name: str
    check: str
    program: str
    settings: tuple[str, ...]


PROGRAMS = (
    Program("HPL", "HplCheck", "xhpl", ("n=2048",)),
    Program(
        "PingPong",
        "ImbMpi1Check",
        "IMB-MPI1",
        ("benchmarks=PingPong", "mode=maintenance", "launches=1"),
    ),
)


@dataclass(frozen=True)
class CaseTimes:
    """Where the seconds of a case went.

    ``total`` is ReFrame's time of the case, ``run`` the part of it from the start of the job's
    script to the moment ReFrame notices its end; ``launch`` and ``peaks`` the script's own times of
    the launch and of measuring the node's peaks. ``session`` is the whole ReFrame command.
    """

    session: float
    total: float
    run: float
    launch: float
    peaks: float


@dataclass(frozen=True)
class Round:
    """One turn of what is compared, in seconds."""

    bare: float
    preloaded: float
    case: CaseTimes

    @property
    def harness(self) -> float:
        """The seconds of the case beyond the bare run, without the declared ones of the peaks."""
        return self.case.total - self.case.peaks - self.bare


class Scenario:
    """One program with one stack: the case, and the same launch by hand."""

    def __init__(self, room: Workspace, program: Program, stack: str) -> None:
        """Run the case once, unmeasured, to learn its inputs and its launch from it."""
        self._room = room
        self._program = program
        self._stack = stack
        self.run_case()
        # The build fixture has written it anew, with the paths of this workspace.
        self._manifest = read_manifest(room.home, stack)
        self._folder = room.home / "by-hand"
        self._folder.mkdir(exist_ok=True)
        self.script = self._record().command.replace(
            'cd "$(mktemp -d)"', f"cd {shlex.quote(str(self._folder))}", 1
        )

    def run_case(self) -> CaseTimes:
        """Run the case through ReFrame."""
        options = [f"--setvar={self._program.check}.{s}" for s in self._program.settings]
        options += reframe.with_checks([self._program.check])
        options += reframe.with_stacks([self._stack])
        session = self._room.timed(
            reframe.command(options, report=self._report), variables={reframe.PROCESS_COUNTS: "2"}
        )
        case = self._testcase()
        if case["result"] != "pass":
            raise BenchError(f"{self}: {case['fail_reason'] or case['result']}")
        details = self._record().details
        return CaseTimes(
            session=session.seconds,
            total=float(case["time_total"]),
            run=float(case["time_run"]),
            launch=float(str(details["launch_s"])),
            peaks=float(str(details["peaks_s"])),
        )

    def run_bare(self) -> float:
        """Return the seconds of the launch by hand."""
        return self._by_hand(self.script)

    def run_preloaded(self) -> float:
        """Return the seconds of the launch by hand with the proof library, as the case has it."""
        proofs = self._folder / "proof"
        shutil.rmtree(proofs, ignore_errors=True)
        proofs.mkdir()
        words = [
            "env",
            f"LD_PRELOAD={self._manifest.proof_library}",
            f"CLUSTERGATE_PROOF_DIR={proofs}",
            "CLUSTERGATE_PROOF_NONCE=bench",
        ]
        program = f" {shlex.quote(self._manifest.program(self._program.program).path)}"
        start, program, arguments = self.script.rpartition(program)
        seconds = self._by_hand(f"{start} {shlex.join(words)}{program}{arguments}")
        if not any(proofs.iterdir()):
            raise BenchError(f"{self}: the proof library was not loaded")
        return seconds

    def _by_hand(self, script: str) -> float:
        return self._room.timed(["bash", "-e", "-c", script]).seconds

    @property
    def _report(self) -> Path:
        return self._room.home / "report.json"

    def _testcase(self) -> dict[str, Any]:
        mine = [case for case in reframe.reported_cases(self._report) if not case["fixture"]]
        if len(mine) != 1:
            raise BenchError(f"{self}: ReFrame ran {len(mine)} cases instead of one")
        return mine[0]

    def _record(self) -> CaseRecord:
        wanted = self._program.check, self._stack
        for record in store.read_cases(self._room.run_id, self._room.home):
            if (record.check, record.stack) == wanted:
                return record
        raise BenchError(f"{self}: the case left no record")

    def __str__(self) -> str:
        return f"{self._program.name}, {self._stack}"


def measure(
    room: Workspace,
    *,
    rounds: int,
    seconds: float,
    stacks: int | None,
    say: Callable[[str], None],
) -> Iterator[Figure]:
    """Yield the cost of each program's case with the first ``stacks`` on disk, None for all.

    Bare run, run with the proof library and case take turns, each round in another order; there
    are fewer ``rounds`` where they would take more ``seconds``. Raises :class:`BenchError` when no
    stack is on disk, or a run fails.
    """
    manifests = list(stacks_on_disk())[:stacks]
    if not manifests:
        raise BenchError("no MPI stack is set up; run `make setup`")
    for program in PROGRAMS:
        for manifest in manifests:
            if manifest.program(program.program).unavailable:
                continue
            say(f"harness: {program.name} with {manifest.stack}")
            scenario = Scenario(room, program, manifest.stack)
            numbers = turns(rounds, seconds / len(PROGRAMS) / len(manifests))
            yield from figures(str(scenario), [_one_round(scenario, order) for order in numbers])


def _one_round(scenario: Scenario, order: int) -> Round:
    turns: list[tuple[str, Callable[[], Any]]] = [
        ("bare", scenario.run_bare),
        ("preloaded", scenario.run_preloaded),
        ("case", scenario.run_case),
    ]
    first = order % len(turns)
    return Round(**{name: run() for name, run in [*turns[first:], *turns[:first]]})


def stacks_on_disk() -> Iterator[Manifest]:
    """Yield the stacks of this machine that are set up."""
    for name in [stack.name for stack in sites.load(choice.find("local")).stacks]:
        try:
            manifest = read_manifest(state_dir(), name)
        except ManifestError:
            continue
        if not manifest.unavailable:
            yield manifest


def figures(subject: str, rounds: list[Round]) -> list[Figure]:
    """Return what the rounds of one scenario say."""
    quantities: Mapping[str, tuple[str, list[float]]] = {
        "bare": ("mpirun of the binary, without ReFrame", [r.bare for r in rounds]),
        "case": ("ReFrame's time of the whole case", [r.case.total for r in rounds]),
        "peaks": ("measuring the node's peaks in the same job", [r.case.peaks for r in rounds]),
        "harness": ("case - peaks - bare", [r.harness for r in rounds]),
        "proof": ("mpirun with the proof library - bare", [r.preloaded - r.bare for r in rounds]),
        "around launch": (
            "case - peaks - its own launch: script, polling and ReFrame's phases",
            [r.case.total - r.case.launch - r.case.peaks for r in rounds],
        ),
        "phases": (
            "the part of it that is ReFrame's phases but the run: set-up, reading, judging",
            [r.case.total - r.case.run for r in rounds],
        ),
        "session": (
            "the ReFrame command beyond its one case: start, loading, the build fixture",
            [r.case.session - r.case.total for r in rounds],
        ),
    }
    aims = {"harness": AIM_S, "around launch": AIM_S, "session": AIM_SESSION_S}
    return [
        Figure(SECTION, subject, name, "s", values, what, aims.get(name))
        for name, (what, values) in quantities.items()
    ]
