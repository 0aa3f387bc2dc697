"""What checks of A against B share: both are launched in turn, in random order, in one job."""

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import run_after, variable

from clustergate.benchmarks.budget import Budget
from clustergate.core import figures, store
from clustergate.core.model import CaseRecord, ClustergateError, Launch, Row, Sample
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Reason
from clustergate.launch import plan as planning
from clustergate.launch.estimation import Sampled, sampled_figures
from clustergate.launch.proof import ranks as proof
from clustergate.launch.reading import lines_of
from clustergate.run.case import Hosts
from clustergate.stacks.manifest import Manifest
from clustergate.studies.ab import contenders
from clustergate.studies.ab.gathering import A, B, side_of, unspent_s
from reframe_checks.system import stack_names


def _limit(seconds: float) -> str:
    """Return the time limit of a job whose launches may take so long."""
    return f"{int(2 * seconds) + 600}s"


class TwoContenders(rfm.RegressionTestPlugin):
    """Makes of a check one that launches two contenders; each leaves a record of its own."""

    #: Who is compared, as ``clustergate ab --help`` writes it.
    a = variable(str, value="", loggable=True)
    b = variable(str, value="", loggable=True)
    #: Rounds, each with a launch of A and one of B, and what they may take in seconds.
    rounds = variable(int, value=30, loggable=True)
    max_seconds = variable(float, value=120.0, loggable=True)
    #: Of how many jobs the comparison consists, and within how many percent A and B are equivalent;
    #: 0: it is asked whether B may take the place of A.
    jobs = variable(int, value=1)
    margin_percent = variable(float, value=5.0)

    #: The parts that the launch that is read left out.
    without: Sequence[str] = ()

    @run_after("init")
    def name_contenders(self) -> None:
        """Choose the one environment that this case stands for; without a pair there is none."""
        if not (self.a and self.b):
            self.valid_systems: list[str] = []
            return
        self.named = {A: contenders.parse_contender(self.a), B: contenders.parse_contender(self.b)}
        known = stack_names()
        for named in self.named.values():
            contenders.require_known(named, known)
        mine = [named.stack for named in self.named.values() if named.stack in known]
        self.valid_prog_environs = [*mine, *known][:1]
        self.time_limit = _limit(self.max_seconds)

    def read_or_plan_manifest(self) -> Manifest:
        """Return the manifest of A, once that of B is there, too."""
        manifests = {
            k: contenders.manifest_of(named, state_dir()) for k, named in self.named.items()
        }
        self.manifests = manifests
        return manifests[A]

    @run_after("setup")
    def find_program_of_b(self) -> None:
        """Say so where B lacks the program; of A the check itself does."""
        if missing := self.manifests[B].program(self.program).unavailable:
            absent = f"{self.program} is not available with {self.b}: {missing}"
            self.keep(unavailable=absent)
            self.skip(absent)

    def contenders(self) -> list[planning.Contender]:
        """Return both, with their own variables."""
        return [self.with_variables(name) for name in (A, B)]

    def with_variables(self, side: str) -> planning.Contender:
        named, one = self.named[side], self.contender(side, self.manifests[side])
        changed: planning.Contender = dataclasses.replace(
            one,
            program=[*contenders.in_ranks(named, one.proof_library), *one.program],
            environment=contenders.in_environment(named, one.environment),
        )
        return changed

    def deciding(self) -> Mapping[str, Any]:
        """Return that what is decided stops, and all is spent as long as anything is not."""
        from clustergate.stats.rounds import FEWEST  # only here: it takes long to load

        # What earlier jobs needed no longer, decided, goes on here.
        earlier = store.read_cases(store.current_run_id())
        seconds = self.max_seconds + unspent_s(earlier, self.max_seconds)
        if not self.capped:
            self.time_limit = _limit(seconds)
        budget = Budget(
            at_most=self.rounds,
            seconds=seconds,
            spend_all=True,
            worth_half_more=FEWEST,
        )
        margin = self.margin_percent / 100 or None
        return {
            "budget": budget,
            "decider": "clustergate.studies.ab.deciding:Decider",
            "deciding": {"check": type(self).__name__, "jobs": self.jobs, "margin": margin},
            "parts": self.parts(),
        }

    def parts(self) -> Sequence[str]:
        """Return the words of the program that are left out of it once they are decided."""
        return ()

    def peak_programs(self) -> Mapping[str, Sequence[str]]:
        """Measure no peaks: the figures are held against each other."""
        return {}

    def changed_settings(self) -> dict[str, Any]:
        """Return nothing: whatever is set is set for both."""
        return {}

    def launches_by_order(self) -> dict[int, planning.Launched]:
        log = planning.read_log(Path(self.stagedir))
        return {made.launch.order: made for made in log.launches}

    def prove_launch(
        self, launch: Launch, hosts: Hosts, peaks: Sequence[Row], of: Manifest | None = None
    ) -> tuple[list[Reason], list[Row]]:
        """Tell whose launch a complaint is about."""
        made = self.launches_by_order()[launch.order]
        self.without, side = made.without, made.contender
        complaints, rows = super().prove_launch(launch, hosts, peaks, of or self.manifests[side])
        # UCX writes to either.
        folder = planning.launch_folder(Path(self.stagedir), launch.order)
        for name in (planning.OUTPUT, planning.ERRORS):
            if (path := folder / name).is_file():
                unused = contenders.without_effect(self.named[side], lines_of(path))
                complaints = [*complaints, *unused]
        return [one.of_contender(f"{side} ({self.named[side].text})") for one in complaints], rows

    def keep(self, **what: Any) -> CaseRecord:
        """Store a record for each contender, with its launches alone, and return that of B."""
        made = self.launches_by_order()
        self.sampled_by_side: dict[str, list[Sampled]] = {}
        for side, named in self.named.items():
            part = side_of(side, named.text, self.manifests[side], made, what)
            if hasattr(self, "plan"):
                mine = next(one for one in self.plan.contenders if one.name == side)
                part["command"] = self.by_hand(mine)
            with contextlib.suppress(ClustergateError):
                first = min((launch.order for launch in part["launches"]), default=-1)
                proofs = proof.read_proofs(planning.proof_folder(Path(self.stagedir), first))
                part["details"]["proof"] = proof.summary(proofs)
            program = self.manifests[side].program(self.program)
            part["details"]["program"] = dataclasses.asdict(program)
            part["name"] = f"{self.unique_name}-{self.current_partition.name}-{side}"
            self.sampled_by_side[side] = sampled_figures(
                part.get("samples", ()), part.get("launches", ()), 1
            )
            record: CaseRecord = super().keep(stack=named.text, **part)
        return record

    def named_figures(self) -> list[Any]:
        """Return the best launch of each contender; none has a reference."""
        return [
            (f"{side}.{figures.name_of(one.sample)}", one.estimate.value, one.sample.unit, None)
            for side, sampled in self.sampled_by_side.items()
            for one in sampled
        ]

    def derived_samples(
        self, samples: Sequence[Sample], peaks: Sequence[Row]
    ) -> tuple[Sample, ...]:
        """Return nothing: what follows from the figures compares as they do."""
        return ()
