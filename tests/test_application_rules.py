import math

import pytest

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.hpccg import hpccg_arguments
from clustergate.benchmarks.lammps import problem
from clustergate.benchmarks.npb import rules


@pytest.mark.parametrize(
    ("benchmarks", "allowed"),
    [
        (("bt", "sp"), {1, 4, 9, 16, 25, 36, 49, 64}),
        (("cg", "ft", "is", "lu", "mg"), {1, 2, 4, 8, 16, 32, 64}),
        (("ep",), set(range(1, 65))),
    ],
)
def test_process_counts_of_npb(benchmarks, allowed):
    for name in benchmarks:
        assert {n for n in range(-4, 65) if rules.is_allowed(name, n)} == allowed


def test_eight_nodes_of_two_run_every_benchmark_on_sixteen():
    # Pase, section 3.4: class C on 8 nodes of 2 processors.
    assert {rules.npb_processes(name, 0, 16) for name in rules.NPB_PROCESSES} == {16}


def test_without_a_count_the_most_that_may_run():
    assert [rules.npb_processes(name, 0, 12) for name in ("bt", "cg", "ep")] == [9, 8, 12]
    assert rules.npb_processes("sp", 0, 2) == 1


@pytest.mark.parametrize(("name", "count", "rule"), [("bt", 8, "square"), ("lu", 9, "power of")])
def test_a_count_that_a_benchmark_does_not_run_on_is_refused(name, count, rule):
    with pytest.raises(CannotRun, match=f"{name.upper()} of .* {rule}.* and {count} were"):
        rules.npb_processes(name, count, 64)


def test_classes_are_s_to_c():
    assert [rules.npb_class(name) for name in "SWABC"] == list("SWABC")
    with pytest.raises(CannotRun, match="known: S, W, A, B, C"):
        rules.npb_class("D")


@pytest.mark.parametrize(
    ("processes", "factors"),
    [(1, (1, 1, 1)), (2, (2, 1, 1)), (12, (3, 2, 2)), (64, (4, 4, 4)), (7, (7, 1, 1))],
)
def test_replicas_multiply_to_the_processes(processes, factors):
    assert problem.replicas(processes) == factors


def test_replicas_of_every_count():
    for count in range(1, 130):
        found = problem.replicas(count)
        assert math.prod(found) == count
        assert list(found) == sorted(found, reverse=True)


def test_lammps_has_the_sizes_of_the_evaluation():
    strong = problem.lammps_problem("lj", "strong", 64)
    assert strong.atoms == 4194304
    assert strong.arguments() == [
        "-in",
        "in.lj",
        "-var",
        "x",
        "3.2",
        "-var",
        "y",
        "6.4",
        "-var",
        "z",
        "6.4",
    ]
    assert problem.lammps_problem("rhodo", "strong", 64).atoms == 32000
    assert problem.lammps_problem("rhodo", "weak", 64).atoms == 64 * 32000
    assert problem.lammps_problem("rhodo", "weak", 4).energy == 4 * problem.RHODO_ENERGY
    small = problem.lammps_problem("lj", "strong", 2, replicated=1)
    assert (small.edges, small.atoms) == ((1, 1, 1), 32000)
    assert problem.lammps_problem("lj", "weak", 12).atoms == 12 * 32000


@pytest.mark.parametrize(("model", "scaling"), [("eam", "weak"), ("lj", "linear")])
def test_what_lammps_is_not_run_with(model, scaling):
    with pytest.raises(CannotRun, match="known: "):
        problem.lammps_problem(model, scaling, 2)


def test_each_process_of_hpccg_has_a_block():
    assert hpccg_arguments() == ["64", "64", "64"]
    with pytest.raises(CannotRun, match="the edge of a block must be at least 2, not 1"):
        hpccg_arguments(1)
