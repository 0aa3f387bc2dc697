"""Each conclusion of the papers can hold and can fail; no table of figures crashes it or a page."""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

import pytest

from clustergate.benchmarks.registry import every_metric
from clustergate.core.model import Better
from evaluations import sheet
from evaluations.derivation import derived_rows
from evaluations.evidence import Measured, Subject
from evaluations.facts import Paper, Predicate, load_papers
from evaluations.inference import Clause, Outcome
from evaluations.kinds import DRAWN_OF_A_RUN
from evaluations.page import render_page
from evaluations.plan import leaves_of
from evaluations.predicates import Cast, cast, clauses_of, decide
from evaluations.text import Findings, report

PROCESSES = (1, 2, 4)
BYTES = (0, 8, 1024, 1048576)
DECIDED = [
    pytest.param(paper, predicate, id=f"{paper.id}-{predicate.id}")
    for paper in load_papers()
    for predicate in paper.predicates.values()
    if predicate.here
]


def places_of(settings: Mapping[str, Any]) -> list[Any]:
    along = settings.get("along", "processes")
    if along not in ("bytes", "processes", "ranks"):
        return sorted({1, 2, 3, *([settings["at"]] if isinstance(settings.get("at"), int) else [])})
    named = [settings.get("from"), settings.get("to")]
    at = settings.get("at")
    named += at if isinstance(at, list) else [at]
    numbers = [n for n in [*named, *settings.get("between", [])] if isinstance(n, int)]
    near = {int(f * n) for n in numbers for f in (0.5, 1, 2)}
    return sorted({*BYTES, *near} if along == "bytes" else {*PROCESSES, *near} - {0})


def names_in(settings: Mapping[str, Any]) -> set[str]:
    named = {settings.get(key) for key in ("system", "first", "last")}
    for key in ("systems", "others", "playing"):
        named |= set(settings.get(key, ()))
    named |= {name for group in settings.get("groups", ()) for name in group}
    return {name for name in named if name}


def figures_of(settings: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield what a test reads: benchmark and metric, and the conditions of each figure."""
    for side in ("of", "than", "over", "as_much_as", "with"):
        of = settings.get(side)
        if not isinstance(of, Mapping):
            continue
        own = {k: v for k, v in of.items() if k not in ("benchmark", "metric")}
        for at in places_of(settings):
            along = settings.get("along", "processes")
            placed = {key: settings[key] for key in ("ranks", "placement") if key in settings}
            # Of two processes no grid is squarer than another.
            count = 4 if settings.get("at") == "squarest" else 2
            conditions = {
                "processes": count,
                "ranks": count,
                "nodes": 1,
                **placed,
                along: at,
                **own,
            }
            if along in ("processes", "ranks") and along not in own:
                conditions |= {"processes": at, "ranks": at}
            for placement in [settings.get("better"), settings.get("worse")]:
                if placement:
                    conditions["placement"] = placement
                    yield of["benchmark"], of["metric"], tuple(sorted(conditions.items()))
            yield of["benchmark"], of["metric"], tuple(sorted(conditions.items()))


def within(settings: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a test and all that it is made of."""
    yield settings
    for part in [*settings.get("parts", []), *filter(None, map(settings.get, ("part", "instead")))]:
        yield from within(part)


class Table:
    """Made figures of those who play the systems that a conclusion is about."""

    def __init__(self, paper: Paper, predicate: Predicate, chance: random.Random) -> None:
        self.predicate, self.chance = predicate, chance
        tests = list(leaves_of(predicate.here or {}))
        names = {name for one in within(predicate.here or {}) for name in names_in(one)}
        if any("with" in one for one in tests):
            names |= {name for name, of in paper.systems.items() if of.site}
        # What is said of all but one is asked of another, too.
        self.names = sorted(names)
        if not names or (predicate.here or {})["kind"] == "exception":
            self.names.append("mpich")
        self.cells: dict[tuple[Any, ...], float] = {
            (name, *figure): math.exp(chance.gauss(4, 1))
            for name in self.names
            for one in tests
            for figure in dict.fromkeys(figures_of(one))
        }

    def cast(self, launches: int, scatter: float = 0.0001) -> Cast:
        subjects = {
            name: Subject(f"run:{name}", name, name, [], {"HpccCheck": "1.5.0"})
            for name in self.names
        }
        figures: dict[str, list[Measured]] = {name: [] for name in self.names}
        for (name, benchmark, metric, conditions), value in self.cells.items():
            known = every_metric().get(metric)
            better = known.better if known else Better.HIGHER
            # Neighbouring launches do not resemble each other.
            of = [value * (1 + scatter * (7 * k % 10)) for k in range(launches)]
            told = dict(conditions)
            called = f"{benchmark}.{metric}.{conditions}"
            figures[name].append(
                Measured(benchmark, metric, "", better, value, told, called, "", "", of)
            )
        roles = {name: replace(one, figures=figures[name]) for name, one in subjects.items()}
        return Cast(list(roles.values()), roles)

    def outcomes(self, launches: int = 10, scatter: float = 0.0001) -> set[Outcome]:
        return {one.outcome for one in decide(self.predicate, self.cast(launches, scatter))}

    def lack(self) -> float:
        """Return how far the figures are from what is concluded, 0 where it holds with a margin."""
        here, total = self.cast(2, 0.0001), 0.0
        for subject in here.subjects:
            missing: list[str] = []
            clauses = clauses_of(self.predicate.here or {}, here, subject, missing)
            total += 100.0 * len(missing) + sum(map(self._lack_of, clauses))
        return total

    def _lack_of(self, clause: Clause) -> float:
        lacks = [sum(map(self._lack_of, part)) for part in clause.parts]
        for claim in clause.claims:
            ratio = math.log(max(median(claim.upper) / median(claim.lower), 1e-12))
            low = math.log(claim.low) + 0.1 * (claim.low >= 1) if claim.low > 0 else -math.inf
            high = math.log(claim.high)
            lacks.append(max(low - ratio, 0.0) + max(ratio - high + 0.005, 0.0))
        return sum(sorted(lacks)[: None if clause.none_against else clause.needed])

    def search(self, steps: int = 6000) -> None:
        """Change figures at random, keeping what brings them nearer to what is concluded."""
        lack, cells = self.lack(), list(self.cells)
        benchmarks = sorted({cell[1:3] for cell in cells})
        for _ in range(steps):
            if lack == 0.0:
                return
            before = dict(self.cells)
            twin: dict[tuple[Any, ...], float] = {}
            factor = float(math.exp(self.chance.gauss(0, self.chance.choice((0.05, 0.3, 1.5)))))
            if self.chance.random() < 0.3:
                # All of one system, as a faster machine has it.
                name, of = self.chance.choice(self.names), self.chance.choice(benchmarks)
                moved = [cell for cell in cells if cell[0] == name and cell[1:3] == of]
                other = self.chance.choice(self.names)
                if self.chance.random() < 0.5:
                    # As fast as another, or nearly so.
                    factor = factor**0.1
                    twin = {
                        c: before[same] if (same := (other, *c[1:])) in before else before[c]
                        for c in moved
                    }
            elif self.chance.random() < 0.2:
                # As another benchmark ranks the systems, or the other way about.
                of, ranking = (self.chance.choice(benchmarks) for _ in range(2))
                moved = [cell for cell in cells if cell[1:3] == of]
                sign = self.chance.choice((-1, 1))
                like = {cell[0]: before[cell] ** sign for cell in cells if cell[1:3] == ranking}
                twin = {cell: like[cell[0]] for cell in moved if cell[0] in like}
            elif self.chance.random() < 0.5:
                start = self.chance.choice(cells)
                moved = [cell for cell in cells if cell[:3] == start[:3] and cell[3] >= start[3]]
            else:
                moved = [self.chance.choice(cells)]
            for cell in moved:
                self.cells[cell] = factor * (twin[cell] if cell in twin else before[cell])
            now = self.lack()
            if now > lack:
                self.cells = before
            else:
                lack = now


def is_open(settings: Mapping[str, Any]) -> bool:
    return any(one["kind"] == "open" for one in leaves_of(settings))


@pytest.mark.parametrize(("paper", "predicate"), DECIDED)
def test_a_conclusion_fails_on_some_figures(paper, predicate):
    for seed in range(60):
        table = Table(paper, predicate, random.Random(seed))
        if Outcome.DOES_NOT in table.outcomes():
            return
    pytest.fail("no table of 60 contradicts it")


@pytest.mark.parametrize(("paper", "predicate"), DECIDED)
def test_a_conclusion_holds_on_some_figures(paper, predicate):
    table = Table(paper, predicate, random.Random(1))
    table.search()
    # What no measurement decides keeps a sentence open, and is never said to hold.
    held = Outcome.NOT_CHECKABLE if is_open(predicate.here) else Outcome.HOLDS
    assert table.outcomes() == {held}, decide(predicate, table.cast(10))
    # The same figures of one launch each decide nothing.
    assert table.outcomes(1) <= {Outcome.INCONCLUSIVE, Outcome.NOT_CHECKABLE}


@pytest.mark.parametrize(("paper", "predicate"), DECIDED)
def test_no_table_of_figures_crashes_a_conclusion(paper, predicate):
    chance = random.Random(2)
    for _ in range(12):
        table = Table(paper, predicate, chance)
        for cell in list(table.cells):
            fate = chance.random()
            if fate < 0.2:
                del table.cells[cell]
            elif fate < 0.3:
                table.cells[cell] = chance.choice((0.0, 1e-9, 1e15, table.cells[cell]))
        decisions = decide(predicate, table.cast(chance.choice((1, 2, 3, 7)), 0.3))
        assert all(one.sentence for one in decisions)


def drawn_figures(paper: Paper, chance: random.Random) -> Iterator[Measured]:
    """Yield made figures of what a paper draws and prints, of which some lack a condition."""
    asked = [
        (name, one.draw["metric"], one.draw)
        for one in paper.figures
        if one.draw and one.draw["metric"] not in DRAWN_OF_A_RUN
        for name in one.draw.get("benchmarks") or [one.draw["benchmark"]]
    ]
    asked += [
        (name, of["metric"], of)
        for value in paper.values.values()
        if (of := value.derived) and "metric" in of
        for name in [of["benchmark"]]
    ]
    for benchmark, metric, of in asked:
        along = of.get("along", "bytes")
        for at in (1, 2, 8, 1024, *([0] if along == "bytes" else [])):
            conditions = {
                **{"ranks": 2, "processes": 2, "nodes": 1, "placement": "packed", "bytes": 8},
                **{"call": "isend", "kernel": "triad", "problem_class": "A", "n": 100},
                along: at,
            }
            for name in list(conditions):
                if chance.random() < 0.2:
                    del conditions[name]
            value = chance.choice((0.0, 1e-9, 1.0, 1.0, 7.0, 1e15))
            known = every_metric().get(metric)
            better = known.better if known else Better.HIGHER
            doubt = chance.choice(("", "", "disturbed"))
            launches = [value * (1 + k % 3) for k in range(chance.choice((0, 1, 7)))]
            name = f"{benchmark}.{metric}.{sorted(conditions.items())}"
            yield Measured(
                benchmark, metric, "", better, value, conditions, name, "", doubt, launches
            )


@pytest.mark.parametrize("paper", load_papers(), ids=lambda paper: paper.id)
def test_no_table_of_figures_crashes_a_page(paper):
    chance = random.Random(3)
    for _ in range(3):
        subjects = [Subject(n, n, "here", list(drawn_figures(paper, chance))) for n in "ab"]
        roles = dict(zip(paper.systems, subjects, strict=False))
        here = cast(paper, subjects, roles)
        found = Findings(
            paper,
            subjects,
            sheet.beside(paper, here),
            sheet.conclusions(paper, here),
            sheet.drawings(paper, subjects),
            derived_rows(subjects, {"here": 100.0}),
            sheet.doubts(subjects),
        )
        assert len(found.rows) == len(paper.values)
        assert render_page(found).startswith("<!DOCTYPE html>")
        assert report(found, width=100)
