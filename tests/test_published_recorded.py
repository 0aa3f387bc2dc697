"""What each conclusion of the papers comes to on many made runs, as it was recorded once.

``tests/data/published/conclusions.json`` has for each conclusion the figures that it reads, values
of which it holds, and what was decided of run sets that follow from these by chance or by loss. A
change of how conclusions are written changes none of it.
"""

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pytest

from clustergate.benchmarks.registry import every_metric
from clustergate.core.model import Better
from clustergate.core.paths import checkout
from clustergate.sites.shape import Shape
from evaluations.evidence import Measured, Subject
from evaluations.facts import PAPERS, load_paper
from evaluations.inference import Outcome
from evaluations.plan import undecidable
from evaluations.predicates import decide
from evaluations.series import Cast

FILE = checkout() / "tests" / "data" / "published" / "conclusions.json"
RECORDED: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
LETTERS = {
    Outcome.HOLDS: "H",
    Outcome.DOES_NOT: "D",
    Outcome.INCONCLUSIVE: "I",
    Outcome.NOT_CHECKABLE: "N",
}

Values = Mapping[tuple[str, int], float]
"""By the subject's name and the place of a figure among those of the entry."""


def launched(entry: Mapping[str, Any], values: Values, launches: Sequence[float]) -> Cast:
    """Return who measured these values, each launch with its own factor."""
    subjects = {}
    for name in entry["names"]:
        figures = []
        for k, (benchmark, metric, conditions) in enumerate(entry["figures"]):
            if (name, k) in values:
                known = every_metric().get(metric)
                better = known.better if known else Better.HIGHER
                of = [values[name, k] * factor for factor in launches]
                figures.append(
                    Measured(benchmark, metric, "", better, of[0], conditions, f"{k}", "", "", of)
                )
        subjects[name] = Subject(f"run:{name}", name, name, figures, {"HpccCheck": "1.5.0"})
    return Cast(list(subjects.values()), subjects)


def in_rounds(entry: Mapping[str, Any], values: Values, ratio: float) -> Cast:
    """Return the same of twelve rounds, each as slow as it likes; every third was disturbed."""
    here = launched(entry, values, [1.0])
    disturbed = frozenset(f"r{k:02}" for k in range(0, 12, 3))
    subjects = {}
    for k, (name, one) in enumerate(here.roles.items()):
        figures = []
        for figure in one.figures:
            level = {Better.LOWER: 1.0}.get(figure.better, -1.0)
            rounds = {
                f"r{n:02}": figure.value * (1 + n * 5 % 12 * 0.3) ** level * ratio ** (k * (n % 2))
                * (1 + (n + k) % 3 / 500)
                for n in range(12)
            }  # fmt: skip
            figures.append(
                Measured(
                    *(figure.benchmark, figure.metric, "", figure.better, figure.value),
                    *(figure.conditions, figure.name, "", ""),
                    of_launches=list(rounds.values()),
                    rounds=rounds,
                    disturbed=disturbed,
                    runs=frozenset(rounds),
                )
            )
        subjects[name] = Subject(
            *(one.name, one.stack, "local", figures, one.version_of), runs=frozenset(rounds)
        )
    return Cast(list(subjects.values()), subjects)


def run_sets(entry: Mapping[str, Any]) -> Iterator[Cast]:
    """Yield who measured what: where the conclusion holds, then with losses, then by chance."""
    steady = [1 + k * 7 % 10 / 10000 for k in range(10)]
    numbered = range(len(entry["figures"]))
    holds = {
        (name, k): value
        for name, row in zip(entry["names"], entry["holds"], strict=True)
        for k, value in zip(numbered, row, strict=True)
    }
    for launches in (steady, steady[:3], steady[:1]):
        yield launched(entry, holds, launches)
    yield in_rounds(entry, holds, 1.0)
    yield in_rounds(entry, holds, 1.1)
    for name in entry["names"]:
        yield launched(entry, {at: v for at, v in holds.items() if at[0] != name}, steady)
        # Who is not here at all, and not only without figures.
        fewer = launched(entry, holds, steady)
        roles = {other: one for other, one in fewer.roles.items() if other != name}
        yield Cast(list(roles.values()), roles)
    for seed in range(4):
        lot = random.Random(seed)
        left = {at: v for at, v in holds.items() if lot.random() < 0.8}
        yield launched(entry, left, steady)
    for seed in range(8):
        lot = random.Random(seed)
        near = {at: v * math.exp(lot.gauss(0, 0.02 * 2**seed)) for at, v in holds.items()}
        yield launched(entry, near, [math.exp(lot.gauss(0, 0.02)) for _ in range(7)])
        drawn = {at: math.exp(lot.gauss(4, 1)) for at in holds}
        yield launched(entry, drawn, steady)
        for at in drawn:
            if lot.random() < 0.1:
                drawn[at] = lot.choice((0.0, 1e-9, 1e15))
        yield launched(entry, drawn, [1 + k * 7 % 10 * 0.3 for k in range(lot.choice((1, 2, 7)))])


def said(name: str, entry: Mapping[str, Any], step: int = 1) -> list[str]:
    """Return for every so many run sets a letter for each subject, small where it cannot hold.

    The number behind it is how many more launches would probably decide.
    """
    paper, predicate = name.split()
    asked = load_paper(paper).predicates[predicate]
    found = []
    for here in islice(run_sets(entry), 0, None, step):
        told = ""
        for one in decide(asked, here):
            letter = LETTERS[one.outcome]
            told += f"{letter.lower() if one.lacking else letter}{one.further or ''}"
        found.append(told)
    return found


def plans(paper: str) -> dict[str, str]:
    """Return what no run on some machines can decide; ``~`` marks what it may still contradict."""
    known = load_paper(paper)
    systems = [*known.systems][:6]
    found = {}
    for nodes, cores in ((1, 2), (2, 4), (4, 16)):
        for stacks in (["mpich", "intel-mpi"], ["mpich"]):
            roles = dict(zip(systems[1:], stacks, strict=False))
            for full in (False, True):
                refused = undecidable(known, Shape(cores, nodes), stacks, roles, full=full)
                told = {name: "~" if one.can_fail else "-" for name, one in refused.items()}
                found[f"{nodes}x{cores} {len(stacks)} {full}"] = "".join(
                    told.get(name, "+") for name in known.predicates
                )
    return found


@pytest.mark.parametrize("name", RECORDED["conclusions"])
def test_conclusion_is_decided_as_recorded(name):
    entry = RECORDED["conclusions"][name]
    assert said(name, entry, 6) == entry["said"].split()[::6]


# It launches nothing, and takes two minutes: with long launches it is left to `make test-all`.
@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("name", RECORDED["conclusions"])
def test_conclusion_is_decided_as_recorded_on_every_run_set(name):
    entry = RECORDED["conclusions"][name]
    assert said(name, entry) == entry["said"].split()


@pytest.mark.parametrize("name", RECORDED["conclusions"])
def test_conclusion_can_hold_and_can_fail(name):
    holding, few, one, *others = RECORDED["conclusions"][name]["said"].split()
    # What no measurement decides keeps a sentence open, and is never said to hold.
    assert holding[0] == ("n" if name == "001 p014" else "H")
    assert "D" in "".join([few, *others]) or name == "001 p014"
    assert {*one} & {"H", "D"} == set(), "one launch decides nothing"


@pytest.mark.parametrize("paper", PAPERS)
def test_plan_counts_on_the_recorded_conclusions(paper):
    assert plans(paper) == RECORDED["plans"][paper]


def test_every_conclusion_with_a_criterion_is_recorded():
    asked = {
        f"{paper} {predicate.id}"
        for paper in PAPERS
        for predicate in load_paper(paper).predicates.values()
        if predicate.here
    }
    assert asked == {*RECORDED["conclusions"]}
