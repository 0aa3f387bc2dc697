"""What the facts of the papers ask of this suite is called there as the suite calls it."""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks import formats as outputs
from clustergate.benchmarks.hpcc import output as hpcc
from clustergate.benchmarks.hpl.efficiency import NOMINAL, efficiencies
from clustergate.benchmarks.lammps.output import LammpsExpectation, parse_lammps
from clustergate.benchmarks.lammps.problem import lammps_name
from clustergate.benchmarks.npb.output import BENCHMARKS
from clustergate.core.figures import name_of, samples_of
from clustergate.core.model import METRICS, Sample
from clustergate.machine.power import Power, performance_per_watt
from clustergate.stacks.manifest import read_manifest
from evaluations.derived.balance import balance_samples
from evaluations.derived.curves import curve_samples
from evaluations.facts import load_papers

# Each was captured from a real run of its program.
CAPTURED = (
    *(f"mpi-kernels/{name}.txt" for name in ("mpi_trials", "host_overhead", "stream")),
    *("mpi-kernels/bidirectional_stream.txt", "hpccg/2-ranks.txt", "hpl/hpl-2.3-mpich-grids.txt"),
    *("hpcc/hpcc-1.5.0-mpich.txt", "imb/impi-2021.11-mpi1-default.txt", "npb/cg.S.2.txt"),
)
# Conditions of a launch, which stand in its record, and figures that stand beside a figure.
ALONG = {"ranks", "nodes", "placement", "trial", "HPL_Tflops"}
NO_SINGLE_FIGURE = ("per watt", "ratios")


def printed_by_programs(data: Path) -> Iterator[Sample]:
    for name in CAPTURED:
        lines = (data / name).read_text(encoding="utf-8").splitlines()
        for sample in samples_of(outputs.parse(lines, source=name), {**METRICS, **hpcc.METRICS}):
            # The eight of NPB print alike.
            names = BENCHMARKS if sample.benchmark == "NPB-CG" else ()
            yield from (replace(sample, benchmark=f"NPB-{one}") for one in names)
            if not names:
                yield sample
    lines = (data / "lammps" / "lj.2.txt").read_text(encoding="utf-8").splitlines()
    for model, scaling in (
        ("lj", "strong"),
        ("lj", "weak"),
        ("rhodo", "strong"),
        ("rhodo", "weak"),
    ):
        expected = LammpsExpectation(lammps_name(model, scaling))
        yield from samples_of(parse_lammps(lines, expect=expected))


@pytest.fixture(scope="module")
def known() -> list[Sample]:
    found = list(printed_by_programs(Path(__file__).parent / "data"))
    return [
        *found,
        *balance_samples(found, processes=2),
        *curve_samples(found, ranks=2, nodes=2, link_mb_s=1e5),
        *efficiencies(found, {NOMINAL: 100.0}, nodes=1),
        *performance_per_watt(found, {0: Power(100.0, "node")}),
    ]


def without_counts(name: str) -> str:
    """Return a figure's name for any number of processes and any message size."""
    return re.sub(r"\.[\d*]+(p|B)(?=\.)", r".N\1", name)


def is_known(asked: Mapping[str, Any], known: list[Sample]) -> bool:
    split = {asked[name] for name in ("along", "series") if name in asked} - ALONG
    return any(
        sample.benchmark == asked["benchmark"]
        and sample.metric == asked["metric"]
        and split <= sample.conditions.keys()
        and all(
            sample.conditions.get(key) == asked[key] for key in ("call", "kernel") if key in asked
        )
        for sample in known
    )


@pytest.mark.parametrize("paper", load_papers(), ids=lambda paper: paper.id)
def test_figures_beside_printed_values_have_names_that_programs_give_them(paper, known):
    names = {without_counts(name_of(sample)) for sample in known}
    for value in paper.values.values():
        if value.suite:
            wanted = without_counts(value.suite.figure)
            assert fnmatch.filter(names, wanted), (value.id, value.suite.figure)


@pytest.mark.parametrize("paper", load_papers(), ids=lambda paper: paper.id)
def test_conclusions_are_decided_by_figures_that_programs_give(paper, known):
    for predicate in paper.predicates.values():
        leaves = predicate.here.leaves if predicate.here else ()
        for figure in (one for leaf in leaves for one in leaf.figures):
            assert is_known(figure.asked, known), (predicate.id, figure)


@pytest.mark.parametrize("paper", load_papers(), ids=lambda paper: paper.id)
def test_drawings_are_of_figures_that_programs_give(paper, known):
    benchmarks = {sample.benchmark for sample in known}
    for figure in paper.figures:
        draw = figure.draw or {}
        for name in draw.get("benchmarks") or [draw["benchmark"]] if draw else []:
            if draw["metric"] in NO_SINGLE_FIGURE:
                assert name in benchmarks, (figure.number, name)
            else:
                assert is_known({**draw, "benchmark": name}, known), (figure.number, draw)


def test_a_name_that_no_program_gives_is_noticed(known):
    assert is_known({"benchmark": "NPB-BT", "metric": "total_mop_per_s"}, known)
    assert not is_known({"benchmark": "BT", "metric": "mops"}, known)
    assert not is_known({"benchmark": "STREAM", "metric": "bandwidth_gb_s", "kernel": "x"}, known)


@pytest.mark.mpi
@pytest.mark.parametrize("stack", ["intel-mpi", "mpich"])
def test_imb_takes_its_buffers_from_mpi_alloc_mem(stacks, stack):
    """As the benchmarks of paper 000 did on the SX-8."""
    program = Path(read_manifest(stacks, stack).program("IMB-MPI1").path)
    assert b"\0MPI_Alloc_mem\0" in program.read_bytes()
