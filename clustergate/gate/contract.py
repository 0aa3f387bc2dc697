"""What must be judged before the gate opens, and what of it fits into a budget."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.registry import known_of
from clustergate.gate import decision as gating
from clustergate.history.stored_runs import Taken
from clustergate.model import BadRequest, Case, CaseId, ClustergateError
from clustergate.sites import modes
from clustergate.sites.description import Site
from clustergate.verdicts import coverage
from clustergate.wording.notation import counted
from clustergate.wording.quantities import parse_duration

MODE = "maintenance"
"""The mode in which the gate measures."""


@dataclass(frozen=True)
class Contract:
    """What must be judged before the gate opens, and what of it is run.

    ``stacks`` are those of which something may be run. ``left_out`` says of a check and a stack why
    it is not run, and what would run it; ``seconds`` is about how long the rest takes, and
    ``needed_s`` all of it, with ``golden_s`` for golden builds.
    """

    required: Sequence[CaseId]
    stacks: Sequence[str]
    left_out: Mapping[tuple[str, str], tuple[str, str]]
    allotted: gating.Allotment
    seconds: float
    needed_s: float
    golden_s: float
    notes: Sequence[str]

    def left_after_screening_s(self) -> float:
        """Return how long what comes after the screening takes, if all of it is as foreseen."""
        return max(0.0, self.seconds - self.allotted.screening_s)

    def judged_by(
        self,
        cases: Sequence[Case],
        control_of: Callable[[str], coverage.Control] = lambda stack: coverage.NO_CONTROL,
    ) -> list[coverage.Item]:
        """Return what became of all that must be judged."""
        mode = modes.mode_named(MODE)
        return coverage.items(mode, self.required, cases, self.left_out, control_of)

    def with_nothing_judged(self, why: str, remedy: str) -> Contract:
        """Return a contract that finds faults, but by which the gate does not open, and why."""
        pairs = {(key.check, key.stack) for key in self.required}
        return dataclasses.replace(self, left_out=dict.fromkeys(pairs, (why, remedy)))

    def deciding_software(self, seconds: float, used_s: float) -> Contract:
        """Return a contract in whose budget golden builds are launched for so many seconds.

        ``used_s`` passed before they were.
        """
        others_s = max(self.needed_s - self.golden_s, used_s)
        needed_s = max(self.needed_s, 60.0 * math.ceil((others_s + seconds) / 60.0))
        was, now = _covers(self.needed_s, self.golden_s), _covers(needed_s, seconds)
        left_out = {
            pair: (why, now if to == was else to) for pair, (why, to) in self.left_out.items()
        }
        return dataclasses.replace(self, left_out=left_out, needed_s=needed_s, golden_s=seconds)


def _notes_on_partitions(site: Site) -> Iterator[str]:
    """Yield what the site config leaves out of the partitions, in words for the answer."""
    for one in site.partitions:
        if one.waived:
            yield f"waived by the site config: partition {one.name}: {one.waived}"
        elif not one.stacks and one.scheduler == "local":
            yield f"not judged: partition {one.name}, to which no stack belongs"
        elif one.reserved_cores_per_node:
            cores = counted(one.reserved_cores_per_node, "core")
            yield f"not judged: {cores} of each node of {one.name}, which no job gets"
        if one.process_counts:
            counts = ", ".join(map(str, one.process_counts))
            yield f"partition {one.name} is judged with {counts} processes alone (`process_counts`)"
        if one.placements:
            how = ", ".join(one.placements)
            yield f"partition {one.name} is judged with ranks {how} alone (`placements`)"


def _covers(needed_s: float, golden_s: float) -> str:
    budget = f"{needed_s / 60:.0f}m"
    also = ", golden builds included" if golden_s else ""
    return f"a budget of {budget} covers everything{also} (`clustergate gate --budget {budget}`)"


_NOT_NAMED = ("left out by --stack", "run `clustergate gate` without --stack")


def usual_seconds(cases: Iterable[CaseId], taken_s: Taken) -> dict[tuple[str, str], float]:
    """Return what each check takes with each stack in the gate's mode: as long as last time.

    What never ran is expected to take what its benchmark says a case usually does.
    """
    counts = Counter((case.check, case.stack) for case in cases)
    return {pair: taken_s.get(pair, known_of(pair[0]).usual_s * n) for pair, n in counts.items()}


def contract_of(
    site: Site,
    named: Sequence[str],
    budget: str | None,
    took_before: Taken,
    builds: gating.Builds = gating.Builds.OTHER,
    golden_s: float = 0.0,
) -> Contract:
    """Return what must be judged: every case of the mode that the site config does not waive.

    ``named`` stacks alone are run, where there are some, and what fits into a ``budget``, beside
    golden builds, which take ``golden_s`` at most. Raises :class:`ClustergateError` where nothing
    of it must be judged.
    """
    mode = modes.mode_named(MODE)
    checks = mode.checks
    waived = {(check, s.name): why for s in site.stacks for check, why in s.waivers.items()}
    judged = [one for one in site.partitions if not one.waived]
    required = [
        key
        for key in modes.expected_cases(checks, judged, mode)
        if (key.check, key.stack) not in waived
    ]
    stacks = [
        stack.name
        for stack in site.stacks_named(named)
        if any(key.stack == stack.name for key in required)
    ]
    if not stacks:
        raise ClustergateError("gate.all-waived")
    seconds = {**took_before, **usual_seconds(required, took_before)}
    # What is waived with every stack is not run; with some of them it runs beside the others.
    run = [check for check in checks if any(key.check == check for key in required)]
    pairs = {pair: seconds.get(pair, 0.0) for pair in itertools.product(run, stacks)}
    nodes = max(partition.shape.nodes for partition in site.partitions)
    needed_s = gating.budget_for(pairs.values(), nodes, golden_s)
    budget_s = parse_duration(budget) if budget else needed_s
    if budget and not budget_s:
        raise BadRequest("option.not-positive", options="--budget")
    allotted = gating.allot(budget_s, nodes, run, stacks, pairs, builds, golden_s)
    too_little = (f"left out, because the budget is {budget}", _covers(needed_s, golden_s))
    left_out = {
        **{(key.check, key.stack): _NOT_NAMED for key in required if key.stack not in stacks},
        **dict.fromkeys(allotted.left_out, too_little),
    }
    notes = [
        f"waived by the site config: {check} with {stack}: {reason}"
        for (check, stack), reason in waived.items()
        if check in checks
    ]
    notes += _notes_on_partitions(site)
    granted_s = min(budget_s, needed_s)
    return Contract(required, stacks, left_out, allotted, granted_s, needed_s, golden_s, notes)
