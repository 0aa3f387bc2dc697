"""A round of a large system, in a process of its own: the memory is that of the suite alone.

Made are the log of a screening's job and the cases of a run, on a system of NODES nodes; planned,
read, judged and drawn are they as ever. On standard output stands what that took.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from clustergate.benchmarks.registry import every_check
from clustergate.core import store
from clustergate.core.files.stored import encode
from clustergate.core.model import Better, CaseRecord, Conditions, Launch, Reference, Run, Sample
from clustergate.core.paths import checkout
from clustergate.judge.assembly import Outcome, assemble
from clustergate.judge.history.node_states import NODES, digest_of, read_states
from clustergate.launch.plan import LOG, Launched, write_plan
from clustergate.launch.stopping import fixed_launches
from clustergate.machine.fingerprint import Fingerprint
from clustergate.machine.fleet import deviations, kinds_of
from clustergate.report.html import render_html
from clustergate.report.screening import first_screen, render_screening
from clustergate.report.terminal import render
from clustergate.run.judge import notes_of_stacks
from clustergate.sites import modes
from clustergate.sites.description import Partition
from clustergate.studies.screen.folder import read_screening
from clustergate.studies.screen.measures import MEASURES
from clustergate.studies.screen.plan import Plan
from clustergate.studies.screen.rounds import rounds as rounds_of_pairs
from tools.bench.parse_child import peak_bytes
from tools.bench.workspace import BenchError

RUN_ID = "20261123T000000Z-r1"
LATENCY, BANDWIDTH = "pingpong_latency_us", "pingpong_bandwidth_mb_s"
ROUNDS = 8
# Stacks times benchmarks: 66 cases on all nodes.
STACKS, LAUNCHES = 22, 8
_CAPTURED = checkout() / "tests" / "data" / "runs" / "smoke"
_OF = ("HplCheck", "HpccCheck", "ImbMpi1Check")
CASES = STACKS * len(_OF)
_CORES = 64
# Latency in us, bandwidth in MB/s, and their spread; one node is slower by half.
_SOUND, _SPREAD, _SLOWER = (1.5, 12000.0), 0.03, 1.5
_CULPRIT = 77


def write_log(folder: Path, names: list[str]) -> None:
    """Write what the engine leaves of a screening: some rounds of pairs, one node slow."""
    folder.mkdir(parents=True)
    write_plan(folder, Plan("nonce", [], fixed_launches(1), 1, nodes=names, foreseen=len(names)))
    random = np.random.default_rng(1)
    with (folder / LOG).open("w", encoding="utf-8") as log:
        log.write(json.dumps({"names": names}) + "\n")
        order = itertools.count()
        for turn, pairs in enumerate(itertools.islice(rounds_of_pairs(len(names), seed=1), ROUNDS)):
            noise = np.exp(random.normal(0.0, _SPREAD, (len(pairs), 2)))
            for pair, (latency, bandwidth) in zip(pairs, noise, strict=True):
                slower = _SLOWER if _CULPRIT in pair else 1.0
                values = {
                    LATENCY: _SOUND[0] * latency * slower,
                    BANDWIDTH: _SOUND[1] * bandwidth / slower,
                }
                launch = Launch(next(order), 1.7e9 + turn, 2.0, lost_cores=0.0)
                nodes = names[pair[0]], names[pair[1]]
                made = Launched(MEASURES[LATENCY].kind, turn, 0, launch, nodes=nodes, values=values)
                log.write(json.dumps(encode(made)) + "\n")
        log.write('{"ended": true}\n')


def write_run(names: list[str]) -> None:
    """Write the cases of a run on all nodes, and what the nodes are: one has another kernel."""
    usual: Fingerprint = {"hardware": {"processor": "one", "cores": _CORES}, "kernel": {}}
    other: Fingerprint = {**usual, "kernel": {"release": "6.0"}}
    usual["kernel"]["release"] = "6.1"
    culprit = names[_CULPRIT]
    alike = [(usual, [name for name in names if name != culprit]), (other, [culprit])]
    lines: list[dict[str, Any]] = [
        {"digest": digest_of(state), "fingerprint": state, "nodes": nodes} for state, nodes in alike
    ]
    store.make_folder(store.run_folder(RUN_ID))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (store.run_folder(RUN_ID) / NODES).write_text(text, encoding="utf-8")
    ranks = [{"rank": k, "host": name, "cores": ["0"]} for k, name in enumerate(names)]
    details = {
        "node_states": {name: line["digest"] for line in lines for name in line["nodes"]},
        "proof": {"hosts": names, "library_version": "MPI", "ranks": ranks},
    }
    random = np.random.default_rng(1)
    for check, number in itertools.product(_OF, range(STACKS)):
        content = json.loads((_CAPTURED / f"{check}-node-mpich.json").read_text(encoding="utf-8"))
        once = [Sample(**{**s, "better": Better(s["better"])}) for s in content["samples"]]
        noise = np.exp(random.normal(0.0, _SPREAD, (LAUNCHES, len(once))))
        samples = [
            dataclasses.replace(sample, value=sample.value * by, order=order)
            for order, of_launch in enumerate(noise)
            for sample, by in zip(once, of_launch, strict=True)
        ]
        launches = [Launch(k, 1.7e9 + k, 2.0, lost_cores=0.0) for k in range(LAUNCHES)]
        record = CaseRecord(
            f"{check}-{number}", check, f"mpi-{number}", content["partition"],
            {**content["conditions"], "nodes": len(names), "ranks": len(names)},
            samples, launches, LAUNCHES, details=details,
        )  # fmt: skip
        store.write_case(RUN_ID, record)


def expected_value(
    check: str, partition: str, stack: str, conditions: Conditions, sample: Sample
) -> Reference:
    """Return a reference for every figure: what the first launch had, within a tenth."""
    return Reference(sample.value, -0.1, 0.1, sample.unit, "made")


def page_of_run(records: list[CaseRecord]) -> Iterator[str]:
    """Judge the cases and yield what is drawn of them: the page and the terminal's summary."""
    outcomes = [Outcome(r.name, r.check, r.stack, "pass", partition=r.partition) for r in records]
    cases = assemble([], outcomes, records, expected_value, mode="smoke")
    run = Run(RUN_ID, "large", "smoke", "", 60.0, cases, notes=tuple(notes_of_stacks(records)))
    yield ""
    yield render_html(run)
    yield render(run, width=100)


def main(nodes: int) -> dict[str, float]:
    """Plan, judge and draw once; return seconds of processor time, megabytes of page and memory.

    Raises :class:`~tools.bench.workspace.BenchError` when what is wrong is not found.
    """
    names = [f"n{k:05d}" for k in range(nodes)]
    folder = store.run_folder(RUN_ID) / "screening"
    write_log(folder, names)
    write_run(names)
    marks = [time.process_time()]
    for _pairs in rounds_of_pairs(nodes, seed=1):
        pass
    stacks = [f"mpi-{number}" for number in range(STACKS)]
    partition = Partition(
        name="all", scheduler="slurm", environs=stacks, cores_per_node=_CORES, system="large",
        memory_bytes_per_node=2**38, nominal_gflops_per_core=40.0, nodes=nodes,
    )  # fmt: skip
    mode = modes.mode_named("acceptance")
    modes.expected_cases([*every_check()], [partition], mode)
    marks.append(time.process_time())
    _, log, screening = read_screening(folder)
    states = read_states(store.run_folder(RUN_ID))
    odd = deviations(kinds_of(states), states)
    drawing = page_of_run(store.read_cases(RUN_ID))
    next(drawing)
    marks.append(time.process_time())
    culprit = (names[_CULPRIT],)
    if [one.nodes for one in screening.findings] != [culprit] or [o.nodes for o in odd] != [
        culprit
    ]:
        raise BenchError("the slow node was not found")
    first = first_screen(log, screening, RUN_ID)
    screened = render_screening(first, screening, log.results, system="large", started="")
    run_page, _ = drawing
    marks.append(time.process_time())
    planning_s, judging_s, drawing_s = (
        after - before for before, after in itertools.pairwise(marks)
    )
    return {
        "planned": planning_s,
        "judged": judging_s,
        "drawn": drawing_s,
        "page of the screening": len(screened) / 1e6,
        "page of the run": len(run_page) / 1e6,
        "peak memory": peak_bytes() / 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
