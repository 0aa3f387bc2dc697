"""The page of a screening and its heat map."""

import dataclasses
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from clustergate.report.screening import (
    CELLS_AT_MOST,
    classes,
    first_screen,
    heat_map,
    render_screening,
)
from clustergate.studies.screen.findings import Screening, analyse
from clustergate.studies.screen.measures import Result
from clustergate.studies.screen.plan import Log
from clustergate.studies.screen.rounds import rounds


def test_each_pair_is_a_cell_by_how_slow_it_is() -> None:
    pairs = [(0, 1), (2, 0), (1, 2), (3, 0), (3, 1)]
    beyond = [0.05, math.log(1.3), math.log(1.7), math.log(3.0), math.inf]
    grid = classes(4, pairs, beyond, threshold=0.1)
    assert grid.tolist() == [[-1, 0, 1, 3], [0, -1, 2, 5], [1, 2, -1, -1], [3, 5, -1, -1]]


def test_of_repeated_measurements_the_median_counts() -> None:
    grid = classes(2, [(0, 1), (1, 0), (0, 1)], [0.0, 2.0, 0.0], threshold=0.1)
    assert grid.tolist() == [[-1, 0], [0, -1]]


def test_drawing_of_many_nodes_stays_small() -> None:
    """Of many nodes a cell shows the worst of a block and the drawing stays small."""
    nodes = 10_000
    pairs = np.concatenate(list(rounds(nodes, 6, seed=1)))
    beyond = np.random.default_rng(1).normal(0, 0.02, len(pairs))
    beyond[77] = math.log(8.0)
    grid = classes(nodes, pairs, beyond, threshold=0.2)
    assert grid.shape == (CELLS_AT_MOST, CELLS_AT_MOST)
    assert (grid == 4).sum() == 2 - (np.ptp(pairs[77] * CELLS_AT_MOST // nodes) == 0)
    drawn = heat_map(grid, [f"n{k}" for k in range(nodes)], description="many")
    assert len(drawn) < 2_000_000


def test_nothing_measured_is_nothing_drawn() -> None:
    drawn = heat_map(classes(2, [], [], 0.1), ["a", "b"], description="none")
    assert "<rect" not in drawn
    with pytest.raises(ValueError, match="needs a cell"):
        classes(2, [], [], 0.1, at_most=0)


def test_a_run_of_cells_of_one_class_is_one_rectangle() -> None:
    drawn = ElementTree.fromstring(
        heat_map(np.zeros((8, 8), dtype=np.int64), ["n"] * 8, description="<&>")
    )
    rectangles = drawn.findall("rect")
    assert len(rectangles) == 8
    assert {r.get("class") for r in rectangles} == {"level0"}


def page_of(names: list[str]) -> str:
    random = np.random.default_rng(1)
    results = []
    for turn, members in enumerate(rounds(len(names))):
        for a, b in members.tolist():
            slow = 2.0 if 3 in (a, b) else 1.0
            value = 12000 / slow * math.exp(random.normal(0, 0.01))
            values = {"pingpong_latency_us": 2 * slow, "pingpong_bandwidth_mb_s": value}
            results.append(Result((names[a], names[b]), "pingpong", turn, values))
    found = analyse(names, results)
    log = Log(tuple(names), tuple(results), ended=True)
    return render_screening(
        first_screen(log, found, "r1"),
        found,
        results,
        system="example",
        started="2026-11-21",
        forms=[("For Slurm", "drain <it>")],
    )


def test_the_page_says_who_is_to_blame_and_shows_it() -> None:
    page = page_of([f"n{k}" for k in range(12)])
    assert "node n3" in page
    assert "FAULTS FOUND" in page
    assert "<strong>Next:</strong> drain and exclude n3 with the lines below; <code>" in page
    assert "confidence above 99.99" in page
    assert page.count('<figure class="screen"><svg') == 2
    assert "drain &lt;it&gt;" in page
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!\.\./(reasons|glossary)\.html)', page)


def test_a_hostile_name_stays_text() -> None:
    names = [f"n{k}" for k in range(11)] + ["<script>alert(1)</script>\x1b[2J"]
    page = page_of(names)
    assert "<script" not in page
    assert "\x1b" not in page


def alone(names: list[str], measured: list[str]) -> tuple[Log, Screening]:
    results = [Result((n,), "peaks", 0, {"fma_peak_gflops": 100.0}) for n in measured]
    return Log(tuple(names), tuple(results), ended=True), analyse(names, results)


def test_what_is_inconclusive_without_a_doubt_says_what_to_do() -> None:
    few = first_screen(*alone(["a", "b"], ["a", "b"]), "r1")
    assert few.word == "NOTHING TO COMPARE"
    (step,) = few.next_steps
    assert step.startswith("`clustergate check --mode maintenance` judges them by references")
    some = first_screen(*alone(["a", "b", "c", "d"], ["a", "b", "c"]), "r1")
    assert (some.word, [cause.sentence for cause in some.causes]) == (
        "INCONCLUSIVE",
        ["FMA peak: not measured: d"],
    )
    (step,) = some.next_steps
    assert step.startswith("`clustergate screen` again with a larger --budget")


def test_nodes_not_given_need_more_than_budget() -> None:
    log, all_measured = alone(["a", "b", "c"], ["a", "b", "c"])
    fewer = dataclasses.replace(all_measured, more_doubts=("only 3 of 4 nodes",), absent=1)
    (step,) = first_screen(log, fewer, "r1").next_steps
    assert "exclude them in the hostfile" in step
    assert "--budget" not in step
