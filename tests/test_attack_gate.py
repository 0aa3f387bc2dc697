"""Attacks on the gate as a command: what Slurm, site config and references say, or do not say.

What is attacked is real: the site folder, the references, ``sinfo`` on PATH. Only the two steps
that measure are replaced, by results that would open any gate.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clustergate import cli
from clustergate.benchmarks.budget import TWO_LAUNCHES
from clustergate.benchmarks.registry import every_check
from clustergate.core import store
from clustergate.core.figures import name_of
from clustergate.core.files.stored import encode
from clustergate.core.model import (
    Case,
    CaseId,
    CaseRecord,
    CaseState,
    Conditions,
    Judgement,
    Launch,
    Promise,
    Run,
    Verdict,
)
from clustergate.core.reasons import in_words
from clustergate.judge.history.node_states import keep_states
from clustergate.judge.promises import to_launch_again
from clustergate.launch.dialects import Layout
from clustergate.launch.plan import LOG, Launched
from clustergate.report import publishing
from clustergate.run.case import Job
from clustergate.run.gate import evidence
from clustergate.run.gate.contract import case_requirements, promise_requirements
from clustergate.run.gate.decision import OPEN, benchmark_evidence, coverage_evidence, decide
from clustergate.sites import configs as sites
from clustergate.sites.modes import expected_cases, judged_figures, mode_named
from clustergate.sites.shape import Shape
from tests.builders import complete_case
from tests.described_partitions import described
from tests.test_cli_gate import judged, keep_screening, record, screened

MAINTENANCE = mode_named("maintenance")
SITE = """\
from clustergate.sites import configuration, stack

def partition(name, stacks, scheduler="slurm", **more):
    extras = {"nodes": 4, "cores_per_node": 2, "memory_bytes_per_node": 2**30}
    extras |= {"nominal_gflops_per_core": 10.0, **more}
    return {"name": name, "scheduler": scheduler, "launcher": "clustergate", "environs": stacks,
            "access": [f"--partition={name}"] if scheduler == "slurm" else [], "extras": extras}

site_configuration = configuration(
    [{"name": "alpha", "hostnames": ["a"], "partitions": [%s]}],
    [%s],
)
"""
STACKS = 'stack("mpich"), stack("openmpi")'
CPU = 'partition("cpu", ["mpich"])'
IDLE = "echo 'cpu*|4|1|2|n[1-4]|(null)|idle|none'"
DRAINED = """\
echo 'cpu*|1|1|2|n1|(null)|idle|none'
echo 'cpu*|3|1|2|n[2-4]|(null)|drained|broken fan'"""
REFUSED = "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1"
# What it did the first time it does not do again.
ONCE = 'if [ -e "$0.asked" ]; then {later}\nelse touch "$0.asked"; {first}\nfi'

Gate = Callable[..., tuple[int, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a site of its own, below it a home and a folder on PATH."""
    for name in ("site_configs", "references", "bin"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return tmp_path


@pytest.fixture
def gate(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gate:
    """Return what runs a gate on what was measured, and returns its status and its sentences."""

    def run(
        *options: str,
        partitions: str = CPU,
        sinfo: str = IDLE,
        cores: int = 2,
        system: str = "alpha",
        stacks: str = STACKS,
    ) -> tuple[int, str]:
        (folder / "site_configs" / "alpha.py").write_text(SITE % (partitions, stacks))
        for name, script in (("sinfo", sinfo), ("scontrol", "exit 1")):
            program = folder / "bin" / name
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)

        def benchmarks(wanted: Any, run_id: str, *rest: object) -> Run:
            site = sites.load(wanted.site)
            keys = expected_cases(wanted.checks, site.partitions_with(site.stacks), MAINTENANCE)
            cases = tuple(map(judged, keys))
            for key in {(one.check, one.stack, one.partition) for one in keys}:
                (shape,) = (one.shape for one in site.partitions if one.fullname == key[2])
                store.write_case(run_id, of_case(*key, shape))
            said = store.run_folder(run_id) / "said"
            said.mkdir()
            (said / "n1").write_text(f"hardware.cores\t{cores}\n")
            keep_states(said, store.run_folder(run_id))
            return Run(run_id, site.name, "maintenance", "", 1.0, cases)

        def nodes(site: Path, run_id: str, *rest: object) -> Any:
            keep_screening(run_id, system=system)
            return screened()

        monkeypatch.setattr(evidence, "screen", nodes)
        monkeypatch.setattr(evidence, "run_session", benchmarks)
        monkeypatch.setattr(publishing, "publish", lambda run, **_: run)
        status = cli.main(["gate", "--site", system, *options])
        said = capsys.readouterr().out
        newest = max((folder / "home").glob("results/runs/*/gate.json"))
        decided = json.loads(newest.read_text())
        assert decided["status"] == status
        assert (decided["word"] == "OPEN") is (status == 0)
        return status, said

    return run


def of_case(check: str, stack: str, partition: str, shape: Shape) -> CaseRecord:
    placement = shape.placements()[0]
    ranks = max(n for n in shape.rank_counts() if shape.holds(n, placement))
    conditions: Conditions = {"mode": "maintenance", "ranks": ranks, "placement": placement}
    made = dataclasses.replace(record(), check=check, stack=stack, partition=partition)
    made = dataclasses.replace(made, conditions=conditions)
    name = store.case_name(check, partition.partition(":")[2], stack)
    return dataclasses.replace(made, name=name, details={"proof": {"hosts": ["n1"]}})


# --- Slurm that answers late, otherwise, or not at all ------------------------------------------


@pytest.mark.parametrize(
    ("sinfo", "status", "told"),
    [
        pytest.param(IDLE, 0, "OPEN", id="answers"),
        pytest.param(DRAINED, 2, "Slurm does not use n[2-4]: drained, broken fan", id="drained"),
        pytest.param(f"sleep 4; {DRAINED}", 2, "n[2-4]: drained", id="late"),
        pytest.param(f"sleep 4; {IDLE}", 0, "OPEN", id="late-and-well"),
        pytest.param(REFUSED, 2, "Unable to contact slurm controller", id="refuses"),
        pytest.param("true", 2, "Slurm has no partition 'cpu'", id="says-nothing"),
        pytest.param("echo '<html>502 Bad Gateway</html>'", 2, "502 Bad Gateway", id="garbage"),
        pytest.param(f"{IDLE}; echo 'cpu*|4|1'", 2, "cpu*|4|1", id="cut-off"),
        pytest.param(
            ONCE.format(first=REFUSED, later=IDLE), 0, "OPEN", id="refuses-at-first-and-is-well"
        ),
        pytest.param(
            ONCE.format(first=REFUSED, later=DRAINED), 2, "n[2-4]: drained", id="refuses-at-first"
        ),
        pytest.param(
            ONCE.format(first=IDLE, later=DRAINED), 2, "n[2-4]: drained", id="drained-meanwhile"
        ),
        pytest.param(
            ONCE.format(first=DRAINED, later=IDLE), 2, "n[2-4]: drained", id="drained-at-first"
        ),
        pytest.param(
            ONCE.format(first=IDLE, later=REFUSED), 2, "Unable to contact", id="refuses-in-the-end"
        ),
        pytest.param(
            "echo 'cpu*|4|1|2|n[1-4]|(null)|idle*|none'", 2, "does not respond", id="silent-nodes"
        ),
    ],
)
def test_slurm_without_word_on_used_nodes_opens_no_gate(
    gate: Gate, sinfo: str, status: int, told: str
) -> None:
    found, said = gate(sinfo=sinfo)
    assert found == status, said
    assert told in said


def test_slurm_is_asked_again_within_the_budget_alone(gate: Gate, folder: Path) -> None:
    status, said = gate("--budget", "1s", sinfo=f'echo "$*" >> $0.log; {REFUSED}')
    assert status == 2
    assert "Unable to contact slurm controller" in said
    # For the nodes of all partitions before and after, and for why a case did not run.
    asked = (folder / "bin" / "sinfo.log").read_text().splitlines()
    assert sum("--exact" in line for line in asked) == 3


# --- what nobody measures -----------------------------------------------------------------------

FAT = 'partition("fat", [], nodes=100{more})'
BOTH = f"{IDLE}; echo 'fat|100|1|2|f[001-100]|(null)|idle|none'"


@pytest.mark.parametrize(
    ("partitions", "sinfo", "cores", "status", "told"),
    [
        pytest.param(
            f"{CPU}, {FAT.format(more='')}",
            *(BOTH, 2, 2, "the partition fat has no stack: 100 nodes of 2 cores"),
            id="a-partition-without-a-stack",
        ),
        pytest.param(
            f"{CPU}, {FAT.format(more=', waived=chr(66) * 3')}",
            *(BOTH, 2, 0, "waived by the site config: partition fat: BBB"),
            id="a-partition-that-is-waived",
        ),
        pytest.param(
            *(CPU, BOTH, 2, 2),
            "no partition of the site config contains f[001-100] of Slurm's partition fat",
            id="a-partition-of-slurm-that-is-not-described",
        ),
        pytest.param(
            'partition("cpu", ["mpich"], cores_per_node=1)',
            *(IDLE, 2, 2, "the site config states 1 of the 2 cores"),
            id="fewer-cores-than-slurm-has",
        ),
        pytest.param(
            'partition("cpu", ["mpich"], cores_per_node=1, reserved_cores_per_node=1)',
            *(IDLE, 2, 0, "not judged: 1 core of each node of cpu, which no job gets"),
            id="cores-that-no-job-gets",
        ),
        pytest.param(
            *(CPU, IDLE, 4, 2, "n1 has 4 cores, and the site config states 2"),
            id="fewer-cores-than-a-node-has",
        ),
        pytest.param(
            'partition("cpu", ["mpich"], nodes=2)',
            *(IDLE, 2, 2, "the site config says 2 nodes of 2 cores, and Slurm has 4 nodes"),
            id="fewer-nodes-than-slurm-has",
        ),
        pytest.param(
            CPU.replace('["mpich"]', '["mpich"], process_counts=[1]'),
            *(IDLE, 2, 0, "partition cpu is judged with 1 processes alone"),
            id="process-counts-of-the-site",
        ),
    ],
)
def test_what_nobody_measures_opens_no_gate_or_is_told(
    gate: Gate, partitions: str, sinfo: str, cores: int, status: int, told: str
) -> None:
    found, said = gate(partitions=partitions, sinfo=sinfo, cores=cores)
    assert found == status, said
    assert told in said


# --- what the references foresee and the run lacks ----------------------------------------------

FIGURE = "HPL.performance_gflops"


def references(partition: str = "alpha:cpu", stack: str = "mpich", *more: str) -> str:
    """Return references of HPL as the gate runs it there, with further figures."""
    names = (FIGURE, *more)
    figures = "\n".join(f"          {one}: [1.0, -0.5, null, Gflop/s]" for one in names)
    return (
        "$provenance:\n  HplCheck: {origin: published, source: a test}\n"
        "HplCheck:\n  $index: [$partition, $environ, reference_layout, reference_effort]\n"
        f"  {partition}:\n    {stack}:\n      2-ranks-packed:\n        maintenance:\n{figures}\n"
    )


@pytest.mark.parametrize(
    ("of", "status", "told"),
    [
        pytest.param([], 0, "OPEN", id="all-of-it"),
        pytest.param(
            ["alpha:cpu", "mvapich2"], 2, "HplCheck with mvapich2 on alpha:cpu", id="a-stack"
        ),
        pytest.param(["alpha:gpu"], 2, "HplCheck with mpich on alpha:gpu", id="a-partition"),
        pytest.param(
            ["alpha:cpu", "mpich", "DGEMM.performance_gflops"],
            2,
            "DGEMM.performance_gflops",
            id="a-figure",
        ),
    ],
)
def test_foreseen_reference_without_a_case_opens_no_gate(
    gate: Gate, folder: Path, of: Sequence[str], status: int, told: str
) -> None:
    (folder / "references" / "alpha.yaml").write_text(references(*of))
    found, said = gate()
    assert found == status, said
    assert told in said


WITH_TWO = 'partition("cpu", ["mpich", "openmpi"])'


@pytest.mark.parametrize(
    ("was", "partitions", "stacks", "told"),
    [
        pytest.param(WITH_TWO, CPU, STACKS, "openmpi on alpha:cpu", id="a-stack"),
        pytest.param(
            WITH_TWO, CPU, STACKS.replace('"openmpi"', '"openmpi", waived="XYZ"'), "", id="waived"
        ),
        pytest.param(CPU, CPU.replace('"cpu"', '"cpu2"'), STACKS, "mpich on", id="a-partition"),
        pytest.param(
            CPU,
            'partition("cpu", ["mpich"], process_counts=[2])',
            STACKS,
            "as 8-ranks-packed",
            id="process-counts",
        ),
        pytest.param(
            *(CPU, 'partition("cpu", ["mpich"], placements=["one-per-node"])', STACKS),
            "as 8-ranks-packed",
            id="placements",
        ),
    ],
)
def test_what_is_gone_since_the_last_gate_must_be_accepted(
    gate: Gate, was: str, partitions: str, stacks: str, told: str
) -> None:
    sinfo = f"{IDLE}; {IDLE.replace('cpu*', 'cpu2')}"
    assert gate(partitions=was, sinfo=sinfo)[0] == 0
    status, said = gate(partitions=partitions, stacks=stacks, sinfo=sinfo)
    assert status == (2 if told else 0), said
    assert told in said
    if told:
        assert gate(partitions=partitions, stacks=stacks, sinfo=sinfo)[0] == 2
        accepted = gate("--before", "last", partitions=partitions, stacks=stacks, sinfo=sinfo)
        assert accepted[0] == 0, accepted[1]
    # That one is what later ones are held against.
    assert gate(partitions=partitions, sinfo=sinfo)[0] == 0


def test_a_gate_answers_beside_a_run_that_was_edited(gate: Gate) -> None:
    assert gate()[0] == 0
    (case, *_) = sorted(store.runs_folder().glob("*/cases/HplCheck*.json"))
    content = json.loads(case.read_text())
    for name, wrong in {"launches": [{"order": "x"}], "details": 5, "notes": {"x": 1}}.items():
        case.write_text(json.dumps({**content, name: wrong}))
        assert gate()[0] == 0


# --- what drops out of the contract -------------------------------------------------------------

KEYS = [CaseId(c, "a:b", s) for c in ("HplCheck", "HpccCheck", "ImbMpi1Check") for s in ("x", "y")]
WHOLES = {"a:b": [Promise("stack", s, (s,), 0.1, 0.0, kept=True) for s in ("x", "y")]}
UNDECIDED = Judgement(Verdict.INCONCLUSIVE, (in_words("it may be slower"),))


def opens(cases: Sequence[Case], wholes: Any = WHOLES, left_out: Any = None) -> bool:
    """Tell whether what was measured opens, by references alone."""
    items = [
        *case_requirements(MAINTENANCE, KEYS, cases, left_out or {}),
        *promise_requirements(wholes),
    ]
    status = decide([*benchmark_evidence(cases, items), *coverage_evidence(items)]).status
    return status == OPEN


def whole_run() -> list[Case]:
    """Return what opens: every figure undecided by itself, and every benchmark's promise kept."""
    cases = []
    for key in KEYS:
        one = complete_case(key, MAINTENANCE, Verdict.INCONCLUSIVE)
        figures = [dataclasses.replace(f, judgement=UNDECIDED) for f in one.figures]
        promises = tuple(
            Promise("benchmark", name, (key.stack,), 0.12, 0.05, kept=True, figures=(name_of(f),))
            for name in judged_figures(MAINTENANCE, every_check()[key.check])
            for f in figures
            if (f.benchmark, name.partition(".")[2] or f.metric)
            == (name.partition(".")[0], f.metric)
        )
        cases.append(dataclasses.replace(one, figures=tuple(figures), promises=promises))
    return cases


def without(case: Case, place: int, **changes: Any) -> Case:
    """Return a case with one figure changed, or without it."""
    figures = list(case.figures)
    figures[place : place + 1] = [dataclasses.replace(figures[place], **changes)] if changes else []
    return dataclasses.replace(case, figures=tuple(figures))


def with_promise(case: Case, place: int, **changes: Any) -> Case:
    promises = list(case.promises)
    new = [dataclasses.replace(promises[place], **changes)] if changes else []
    promises[place : place + 1] = new
    return dataclasses.replace(case, promises=tuple(promises))


def called(verdict: Verdict) -> Judgement:
    return Judgement(verdict, (in_words("as attacked"),))


OF_FIGURES: dict[str, Callable[[Case, int], Case]] = {
    "lost": without,
    "no-reference": lambda c, k: without(c, k, judgement=called(Verdict.NO_REFERENCE)),
    "impossible": lambda c, k: without(c, k, judgement=called(Verdict.IMPOSSIBLE)),
    "invalid": lambda c, k: without(c, k, judgement=called(Verdict.INVALID)),
    "slower": lambda c, k: without(c, k, judgement=called(Verdict.REGRESSION)),
    "another-name": lambda c, k: without(c, k, benchmark="Another"),
    "another-metric": lambda c, k: without(c, k, metric="another"),
    "doubtful": lambda c, k: without(c, k, doubt=in_words("a clock is wrong")),
}
OF_PROMISES: dict[str, Callable[[Case, int], Case]] = {
    "lost": with_promise,
    "broken": lambda c, k: with_promise(c, k, kept=False),
    "cannot-be-made": lambda c, k: with_promise(c, k, kept=False, limit=math.inf),
    "of-another-name": lambda c, k: with_promise(c, k, name="Another"),
    "of-no-figures": lambda c, k: with_promise(c, k, figures=()),
    "of-other-figures": lambda c, k: with_promise(c, k, figures=("another",)),
}
OF_CASES: dict[str, Callable[[Case], Case]] = {
    **{f"state-{x.name}": lambda c, x=x: dataclasses.replace(c, state=x)  # type: ignore[misc]
       for x in CaseState if x is not CaseState.RAN},
    "another-partition": lambda c: dataclasses.replace(c, partition="a:c"),
    "another-stack": lambda c: dataclasses.replace(c, stack="z"),
    "another-layout": lambda c: dataclasses.replace(c, parameters=(("process_count", "1"),)),
    "another-setting": lambda c: dataclasses.replace(
        c, conditions={**c.conditions, "settings": "n=1"}
    ),
    "no-figure": lambda c: dataclasses.replace(c, figures=()),
    "no-promise": lambda c: dataclasses.replace(c, promises=()),
}  # fmt: skip


def test_whole_contract_opens() -> None:
    assert opens(whole_run())


@pytest.mark.parametrize("attack", OF_FIGURES)
def test_figure_that_drops_out_of_the_contract_opens_nothing(attack: str) -> None:
    for k, case in enumerate(whole_run()):
        for place in range(len(case.figures)):
            cases = whole_run()
            cases[k] = OF_FIGURES[attack](case, place)
            assert not opens(cases), (case.check, case.figures[place].benchmark)


@pytest.mark.parametrize("attack", OF_PROMISES)
def test_promise_that_drops_out_of_the_contract_opens_nothing(attack: str) -> None:
    for k, case in enumerate(whole_run()):
        for place in range(len(case.promises)):
            cases = whole_run()
            cases[k] = OF_PROMISES[attack](case, place)
            assert not opens(cases), (case.check, case.promises[place].name)


@pytest.mark.parametrize("attack", OF_CASES)
def test_case_that_drops_out_of_the_contract_opens_nothing(attack: str) -> None:
    for k in range(len(KEYS)):
        cases = whole_run()
        cases[k] = OF_CASES[attack](cases[k])
        assert not opens(cases), KEYS[k]
        assert not opens(whole_run()[:k] + whole_run()[k + 1 :])


def test_job_that_launched_once_of_twice_fails(tmp_path: Path) -> None:
    """The better of two launches is judged: a job that makes one of them has to say why."""
    plan: Any = SimpleNamespace(budget=TWO_LAUNCHES)
    (tmp_path / LOG).write_text(
        json.dumps(encode(Launched("xhpl", 0, 0, Launch(0, 0.0, 9.0)))) + "\n"
    )
    job = Job(tmp_path, plan, Layout(2, 1), plan, ("n1", "n2"), None, "COMPLETED", 0, "none")
    (why,) = job.complaints(1, ("n1", "n2"))
    assert str(why).startswith("the job launched 1 time instead of 2")
    assert job.complaints(2, ("n1", "n2")) == []


@pytest.mark.parametrize("shape", [Shape(64, 16), Shape(2, 4), Shape(64, 1000)])
def test_layout_that_is_not_run_opens_nothing(shape: Shape) -> None:
    """A gate runs few of them, and each of these must be judged."""
    partition = described("a:b", shape, "x", "y")
    keys = expected_cases(MAINTENANCE.checks, [partition], MAINTENANCE)
    cases = [complete_case(key, MAINTENANCE) for key in keys]

    def opens_with(some: Sequence[Case]) -> bool:
        items = case_requirements(MAINTENANCE, keys, some, {})
        return decide([*benchmark_evidence(some, items), *coverage_evidence(items)]).status == OPEN

    assert opens_with(cases)
    for place in range(len(cases)):
        assert not opens_with([*cases[:place], *cases[place + 1 :]]), keys[place]


def test_whole_that_drops_out_of_the_contract_opens_nothing() -> None:
    for place in range(2):
        some = list(WHOLES["a:b"])
        for change in ({"kept": False}, {"kept": False, "limit": math.inf}):
            some[place] = dataclasses.replace(some[place], **change)
            assert not opens(whole_run(), {"a:b": some})
            # Nobody is launched again for it, and it is as broken as before.
            nobody = dataclasses.replace(some[place], kept=False, slow_in=(("another",),))
            laid_out: Conditions = {"mode": "maintenance", "ranks": 2, "placement": "packed"}
            cases = [dataclasses.replace(one, conditions=laid_out) for one in whole_run()]
            assert to_launch_again(cases, {"a:b": [nobody]}) == {}
            assert not opens(whole_run(), {"a:b": [*some[:place], nobody, *some[place + 1 :]]})
    pair = (KEYS[0].check, KEYS[0].stack)
    assert not opens(whole_run(), left_out={pair: ("left out, because the budget is 5m", "more")})
