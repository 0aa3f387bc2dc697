"""What checks of A against B share: all are launched in turn, in random order, in one job."""

import contextlib
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import run_after, variable

from clustergate.benchmarks.budget import Budget
from clustergate.core import store
from clustergate.core.model import CaseRecord, ClustergateError, Launch, Row, Sample
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Reason
from clustergate.launch import plan as planning
from clustergate.launch.estimation import Sampled, sampled_figures
from clustergate.launch.proof import ranks as proof
from clustergate.launch.reading import lines_of
from clustergate.run.case import EXIT_STATUS, JOB_CRASHED, LAST_WORDS, Hosts
from clustergate.run.contest import FEWEST
from clustergate.stacks.manifest import Manifest
from clustergate.studies.ab import contenders
from clustergate.studies.ab.gathering import side_of, unspent_s
from reframe_checks.system import stack_names

# What speaks against the job because one of its launches failed.
OF_A_LAUNCH = (JOB_CRASHED.code, EXIT_STATUS.code, LAST_WORDS.code)


def _limit(seconds: float) -> str:
    """Return the time limit of a job whose launches may take so long."""
    return f"{int(2 * seconds) + 600}s"


class TwoContenders(rfm.RegressionTestPlugin):
    """Makes of a check one that launches two contenders or more; each leaves its own record."""

    #: Who is compared, as ``clustergate ab --help`` writes it; further ones as a list in JSON.
    a = variable(str, value="", loggable=True)
    b = variable(str, value="", loggable=True)
    others = variable(str, value="[]", loggable=True)
    #: Rounds, each with a launch of each contender, and what they may take in seconds.
    rounds = variable(int, value=30, loggable=True)
    max_seconds = variable(float, value=120.0, loggable=True)
    #: Of how many jobs the comparison consists, and within how many percent two are equivalent;
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
        texts = [self.a, self.b, *json.loads(self.others)]
        parsed = [contenders.parse_contender(text) for text in texts]
        self.named = dict(zip(contenders.SIDES, parsed, strict=False))
        known = stack_names()
        for named in self.named.values():
            contenders.require_known(named, known)
        mine = [named.stack for named in self.named.values() if named.stack in known]
        self.valid_prog_environs = [*mine, *known][:1]
        self.time_limit = _limit(self.max_seconds)

    def read_or_plan_manifest(self) -> Manifest:
        """Return the manifest of the first contender, once those of all are there.

        Of three or more, those that lack the program are left out.
        """
        manifests = {
            k: contenders.manifest_of(named, state_dir()) for k, named in self.named.items()
        }
        absent = {k: one.program(self.program).unavailable for k, one in manifests.items()}
        self.lacking = {k: why for k, why in absent.items() if why}
        if len(manifests) - len(self.lacking) < FEWEST:
            self.lacking = {}
        self.manifests = {k: one for k, one in manifests.items() if k not in self.lacking}
        return next(iter(self.manifests.values()))

    @run_after("setup")
    def find_other_programs(self) -> None:
        """Say so where another contender lacks the program; of the first the check itself does."""
        for side, manifest in self.manifests.items():
            if missing := manifest.program(self.program).unavailable:
                self.keep(unavailable=self._without(side, missing))
                self.skip(self._without(side, missing))

    def _without(self, side: str, why: str) -> str:
        return f"{self.program} is not available with {self.named[side].text}: {why}"

    def contenders(self) -> list[planning.Contender]:
        """Return those that are launched, with their own variables."""
        return [self.with_variables(name) for name in self.manifests]

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
        from clustergate.stats import rounds  # only here: it takes long to load

        # What earlier jobs needed no longer, decided, goes on here.
        earlier = store.read_cases(store.current_run_id())
        seconds = self.max_seconds + unspent_s(earlier, self.max_seconds)
        if not self.capped:
            self.time_limit = _limit(seconds)
        budget = Budget(
            at_most=self.rounds,
            seconds=seconds,
            spend_all=True,
            worth_half_more=rounds.FEWEST,
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
        self,
        launch: Launch,
        hosts: Hosts,
        peaks: Sequence[Row],
        stack_manifest: Manifest | None = None,
    ) -> tuple[list[Reason], list[Row]]:
        """Tell whose launch a complaint is about."""
        made = self.launches_by_order()[launch.order]
        self.without, side = made.without, made.contender
        complaints, rows = super().prove_launch(
            launch, hosts, peaks, stack_manifest or self.manifests[side]
        )
        # UCX writes to either.
        folder = planning.launch_folder(Path(self.stagedir), launch.order)
        for name in (planning.OUTPUT, planning.ERRORS):
            if (path := folder / name).is_file():
                unused = contenders.without_effect(self.named[side], lines_of(path))
                complaints = [*complaints, *unused]
        return [one.of_contender(self.named[side].text) for one in complaints], rows

    def keep(self, **what: Any) -> CaseRecord:
        """Store a record for each contender, with its launches alone, and return the last one."""
        made = self.launches_by_order()
        self.sampled_by_side: dict[str, list[Sampled]] = {}
        if dead := next((one.contender for one in made.values() if one.status), ""):
            # It ended the job; the others did nothing wrong.
            what["complaints"] = [
                one.of_contender(self.named[dead].text) if one.code in OF_A_LAUNCH else one
                for one in what.get("complaints", ())
            ]
        left_out = [self._without(*one) for one in self.lacking.items()]
        what["notes"] = [*what.get("notes", ()), *left_out]
        for side, named in ((side, self.named[side]) for side in self.manifests):
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
            (f"{side}.{one.name}", one.estimate.value, one.sample.unit, None)
            for side, sampled in self.sampled_by_side.items()
            for one in sampled
        ]

    def derived_samples(
        self, samples: Sequence[Sample], peaks: Sequence[Row]
    ) -> tuple[Sample, ...]:
        """Return nothing: what follows from the figures compares as they do."""
        return ()
