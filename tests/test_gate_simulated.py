"""The gate's whole path on simulated nodes: a real scheduler, real ranks and jobs, drawn figures.

The stand-ins of simulated_provider.py take the place of the benchmarks; what the virtual nodes say
of their load is what an idle node says. So how busy this machine is makes no figure worse, and the
gate must answer as ``make bench-gate`` counts.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from clustergate.core.paths import checkout
from tests.conftest import Suite, VirtualCluster
from tests.own_provider import tree_with
from tests.simulated_machine import CHECKS, Asked, SimulatedMachine, served
from tests.simulated_provider import PREFIX
from tools.bench.simulated_noise import BARE_METAL
from tools.bench.slowdowns import BENCHMARK, HPL, STACK, Change

pytestmark = [pytest.mark.cluster, pytest.mark.mpi]

SITE = """\
from clustergate.sites import configuration, stack

THEM = {{"machine": {machine!r}, "source": {source!r}}}

site_configuration = configuration(
    systems=[{{
        "name": "simulated",
        "descr": "nodes that are simulated: no figure is of a real machine",
        "hostnames": ["virtual-cluster$"],
        "partitions": [{{
            "name": "nodes",
            **{scheduler},
            "launcher": "clustergate",
            "max_jobs": 8,
            "extras": {{
                "nodes": {nodes},
                "cores_per_node": 1,
                "reserved_cores_per_node": 1,
                "memory_bytes_per_node": 2**26,
                "nominal_gflops_per_core": 140,
                "bind_to_cores": False,
            }},
        }}],
    }}],
    stacks=[
        stack(name, "simulated", simulated=THEM, env_vars=variables, waived={waived})
        for name, variables in {stacks}.items()
    ],
)
"""
SCHEDULERS = {
    "slurm": {"scheduler": "slurm", "access": ["--partition=main", "--exclusive"]},
    "pbs": {"scheduler": "pbs", "access": ["-q workq", "-l place=scatter:excl"]},
}
MPICH = {f"{PREFIX}mpich": [["MPIR_CVAR_CH4_NETMOD", "ofi"]]}
ALL = {f"{PREFIX}intel-mpi": [["FI_PROVIDER", "tcp"]], **MPICH, f"{PREFIX}openmpi": []}
WAIVED = dict.fromkeys(("HpccCheck", "ImbMpi1Check"), "one benchmark is enough here")
SEED, DAYS, SCREENED, LATER = 20261130, 5, 3, 60
# Of so many unchanged gates one may not open: 95 % do, by `make bench-gate`.
GATES = int(os.environ.get("CLUSTERGATE_TEST_GATES", "1"))
# What tells the same measurement in other words, and what is printed that follows from it.
ALIKE = {"HPL_Tflops": "HPL", "HPL_time": "HPL", "PTRANS_time": "PTRANS_GBs"}
FOLLOWS = ("efficiency_percent", "bandwidth_mb_s")
QUIET = {"loadavg": "0.00 0.00 0.00 1/200 1000\n", "stat": Path("/proc/stat").read_text()}


@dataclass
class Simulated:
    """The suite with the stand-ins, on the head of a virtual cluster."""

    virtual: VirtualCluster
    machine: SimulatedMachine
    clustergate: Path
    suite: Suite
    site: Path

    def call(self, *words: str) -> tuple[int, str]:
        """Run a command on the head; return its exit status and what it said."""
        ended = self.virtual(
            *("run", "head", str(self.clustergate), *words, "--site", "simulated"),
            CLUSTERGATE_HOME=str(self.suite.home),
            CLUSTERGATE_SITE_FOLDER=str(self.site),
        )
        return ended.returncode, ended.stdout + ended.stderr

    def gate(self, day: int, *changes: Change) -> tuple[int, str]:
        """Run the gate on a later day, with changes in the machine."""
        self.machine.begin_day(day)
        self.machine.change(*changes)
        # Launches are so short that a screening lacks the time for HPL on each node, and a busy
        # machine makes the next ones longer than the last.
        return self.call("gate", "--budget", "15m")


@contextlib.contextmanager
def brought_up(
    top: Path,
    suite_in: Callable[[Path], Suite],
    *,
    scheduler: str = "slurm",
    nodes: int,
    stacks: Mapping[str, object],
    waived: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Simulated]:
    """Bring so many nodes up, whose machine is simulated, and remove them."""
    virtual = VirtualCluster()
    virtual.bring_up(scheduler, "--nodes", str(nodes), "--hours", "4")
    try:
        for name, text in QUIET.items():
            (top / name).write_text(text)
            for node in ("head", *(f"n{k}" for k in range(1, nodes + 1))):
                bound = "mount", "--bind", str(top / name), f"/proc/{name}"
                assert virtual("run", node, *bound).returncode == 0
        for folder in ("home", "site/site_configs", "site/hostfiles"):
            (top / folder).mkdir(parents=True)
        machine = SimulatedMachine(BARE_METAL, SEED)
        socket = served(machine, top / "machine")
        site = SITE.format(
            machine=str(top / "machine"),
            source=str(checkout() / "tests" / "simulated" / "stand_in.c"),
            scheduler=SCHEDULERS[scheduler],
            nodes=nodes,
            stacks=dict(stacks),
            waived=dict(waived),
        )
        (top / "site" / "site_configs" / "simulated.py").write_text(site)
        listed = f"n[1-{nodes}] slots=1 switch=leaf\n"
        (top / "site" / "hostfiles" / "simulated.txt").write_text(listed)
        provider = checkout() / "tests" / "simulated_provider.py"
        clustergate = tree_with(provider, "simulated", top / "tree")
        yield Simulated(virtual, machine, clustergate, suite_in(top / "home"), top / "site")
        socket.shutdown()
    finally:
        virtual("down")


@pytest.fixture(params=[*SCHEDULERS])
def few(request: pytest.FixtureRequest, suite_in: Any, tmp_path: Path) -> Iterator[Simulated]:
    """Bring four nodes up with each scheduler, of which HPL with one stack is judged."""
    small = brought_up(
        tmp_path, suite_in, scheduler=request.param, nodes=4, stacks=MPICH, waived=WAIVED
    )
    with small as them:
        yield them


@pytest.fixture(scope="module")
def many(suite_in: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """Bring 16 nodes up with three stacks of which all is judged, and what the week before is for.

    Without golden builds and screenings a Barrier whose baseline promises nothing stays unjudged.
    """
    top = tmp_path_factory.mktemp("simulated")
    with brought_up(top, suite_in, nodes=16, stacks=ALL) as them:
        make_baseline(them)
        make_controls(them)
        yield them


def make_baseline(them: Simulated) -> None:
    """Measure one day by the whole path, draw its figures anew for the others, and accept them."""
    status, said = them.call("check", "--mode", "maintenance")
    assert status == 0, said
    (measured,) = them.suite.run_folders()
    assert not any(record["complaints"] for record in them.suite.records()), said
    for day in range(1, DAYS):
        them.machine.begin_day(day)
        drawn_anew(them.machine, measured, day)
    them.machine.begin_day(0)
    status, said = them.call("baseline", "--mode", "maintenance")
    # IMB prints 0.03 us with two decimals, which is too coarse for the reference of some figures.
    assert status in (0, 1), said
    assert (them.site / "references" / "simulated.yaml").is_file(), said


def make_controls(them: Simulated) -> None:
    """Pin golden builds and screen, as if it had been on days before."""
    status, said = them.call("golden", "pin")
    assert status == 0, said
    for path in (them.suite.home / "golden").glob("*/contents.json"):
        contents = json.loads(path.read_text())
        pinned = datetime.datetime.strptime(contents["pinned"], "%Y-%m-%dT%H:%M:%S%z")
        earlier = pinned - datetime.timedelta(days=SCREENED)
        contents["pinned"] = f"{earlier:%Y-%m-%dT%H:%M:%SZ}"
        path.write_text(json.dumps(contents))
    for day in range(1, SCREENED + 1):
        known = {*them.suite.run_folders()}
        them.machine.begin_day(day)
        status, said = them.call("screen", "--budget", "3m")
        assert status == 0, said
        (run,) = {*them.suite.run_folders()} - known
        name = name_before(run, day)
        for path in run.rglob("*.json*"):
            path.write_text(path.read_text().replace(run.name, name))
        run.rename(run.with_name(name))


def name_before(run: Path, days: int) -> str:
    """Return the name that a run had if it had been so many days before.

    By its number it is one of the first: what began before a run of a lower number is left out.
    """
    then = datetime.datetime.strptime(run.name[:16], "%Y%m%dT%H%M%SZ")
    return f"{then - datetime.timedelta(days=days):%Y%m%dT%H%M%SZ}-r1"


def drawn_anew(machine: SimulatedMachine, run: Path, days: int) -> None:
    """Store a run as one of so many days before, whose launches have the figures of today."""
    name = name_before(run, days)
    copy = run.with_name(name)
    shutil.copytree(run, copy)
    for path in copy.rglob("*.json"):
        text = path.read_text().replace(run.name, name)
        if path.parent.name == "cases":
            record = json.loads(text)
            for launch in record["launches"]:
                launch["started"] -= 86400.0 * days
                of_launch = [s for s in record["samples"] if s["order"] == launch["order"]]
                redraw(machine, record, of_launch)
            text = json.dumps(record)
        path.write_text(text)


def redraw(
    machine: SimulatedMachine, record: Mapping[str, Any], samples: Sequence[dict[str, Any]]
) -> None:
    """Give the samples of a launch the figures of the next one of its machine."""
    (program,) = (name for name, check in CHECKS.items() if check == record["check"])
    hosts = [rank["host"] for rank in record["details"]["proof"]["ranks"]]
    stack = record["stack"].removeprefix(PREFIX)
    figures = machine.figures(Asked(stack, program, (), hosts, (), ""))
    slower: dict[tuple[str, int], float] = {}
    for one in samples:
        new = figures.get((*_place(one), one["metric"]))
        if (
            new
            and one["value"] > 0
            and one["benchmark"] not in ALIKE
            and one["metric"] not in FOLLOWS
        ):
            # The rate of HPL is that of all ranks.
            ratio = new * (len(hosts) / 2 if one["benchmark"] == "HPL" else 1.0) / one["value"]
            slower[_place(one)] = ratio if one["better"] == "lower" else 1.0 / ratio
    for one in samples:
        by = slower.get(_place(one), 1.0)
        value = one["value"] * by if one["better"] == "lower" else one["value"] / by
        one["value"] = round(value, 2) if program == "IMB-MPI1" else float(f"{value:.6g}")


def _place(sample: Mapping[str, Any]) -> tuple[str, int]:
    benchmark = ALIKE.get(sample["benchmark"], sample["benchmark"])
    return benchmark, int(sample["conditions"].get("bytes", -1))


@dataclass(frozen=True)
class Ran:
    """On which nodes a case of a stack launched, from when until when."""

    stack: str
    hosts: frozenset[str]
    first_s: float
    last_s: float

    def is_beside(self, other: Ran) -> bool:
        """Tell whether both launched at the same time."""
        return self.first_s < other.last_s and other.first_s < self.last_s


def ran(records: Sequence[Mapping[str, Any]]) -> list[Ran]:
    """Return where and when cases ran."""
    return [
        Ran(
            one["stack"],
            frozenset(rank["host"] for rank in one["details"]["proof"]["ranks"]),
            min(launch["started"] for launch in one["launches"]),
            max(launch["started"] + launch["seconds"] for launch in one["launches"]),
        )
        for one in records
    ]


def because(them: Simulated) -> str:
    return "\n".join(them.suite.decision()["because"])


def test_with_each_scheduler_it_opens_stays_closed_and_cannot_judge(few: Simulated) -> None:
    # Without references nobody knows what to expect.
    status, said = few.gate(LATER)
    assert (status, few.suite.decision()["code"]) == (2, "nothing-to-compare"), said
    shutil.rmtree(few.suite.home / "results")
    few.machine.begin_day(0)
    make_baseline(few)
    status, said = few.gate(LATER)
    assert status == 0, said
    few.machine.slow_nodes["n3"] = 1.3
    status, said = few.gate(LATER + 1)
    assert status == 1, said
    assert "node n3" in because(few), said


def test_pairs_of_all_stacks_run_at_once_and_all_nodes_alone(many: Simulated) -> None:
    (first, *_) = sorted((many.suite.home / "results" / "runs").glob("*/cases"))
    cases = ran([json.loads(path.read_text()) for path in first.glob("*.json")])
    pairs = [one for one in cases if len(one.hosts) == 2]
    assert {one.stack for one in pairs} == set(ALL)
    beside = [(a, b) for a, b in itertools.combinations(pairs, 2) if a.is_beside(b)]
    assert beside
    assert all(a.hosts.isdisjoint(b.hosts) for a, b in beside)
    for one in cases:
        if one not in pairs:
            assert not any(one.is_beside(other) for other in cases if other is not one)


def test_an_unchanged_machine_opens(many: Simulated) -> None:
    opened = []
    for number in range(GATES):
        status, said = many.gate(LATER + number)
        opened.append(status == 0)
        assert status != 1 or GATES > 1, said
        assert "site simulated" in said.splitlines()[0], said
        pages = many.suite.home.glob("results/runs/*/gate.html")
        assert "simulated" in max(pages, key=lambda page: page.stat().st_mtime).read_text()
    assert sum(opened) >= GATES - (GATES > 1), because(many)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (Change(STACK, 1.2), PREFIX),
        (Change(HPL, 1.2), "HPL"),
        (Change(BENCHMARK, 1.2), "ImbMpi1Check"),
    ],
    ids=str,
)
def test_what_became_slower_keeps_it_closed(many: Simulated, change: Change, named: str) -> None:
    status, said = many.gate(LATER + 100, change)
    assert status == 1, said
    assert named in because(many), said


@pytest.mark.parametrize("kind", ["slow_nodes", "slow_links"])
def test_a_node_or_a_link_that_became_slow_is_named(many: Simulated, kind: str) -> None:
    getattr(many.machine, kind)["n5"] = 1.3
    try:
        status, said = many.gate(LATER + 200)
    finally:
        getattr(many.machine, kind).clear()
    assert status == 1, said
    assert "node n5" in because(many), said
