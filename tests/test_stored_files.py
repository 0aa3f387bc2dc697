"""What an earlier version stored is read for ever, and what is stored is read as it was.

The files of ``tests/data/stored`` were written by the version that made this test, from the values
below.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks.budget import Budget
from clustergate.core import store
from clustergate.core.files.stored import UnknownKey, decode, encode
from clustergate.core.model import Better, CaseRecord, ClustergateError, Launch, Row, Sample
from clustergate.core.outputs import OUTPUT_LACKS
from clustergate.core.reasons import in_words
from clustergate.launch.plan import (
    LOG,
    PLAN,
    Aside,
    Contender,
    JobLog,
    Launched,
    Plan,
    Round,
    read_log,
    read_plan,
)
from clustergate.launch.proof.ranks import ProofExpectation
from clustergate.launch.watchdog import Patience
from clustergate.machine.configuration import ConfigurationFile
from clustergate.run.request import Request, read_request
from clustergate.run.screening import ScreenCall, call_to_resume
from clustergate.sites import modes
from clustergate.stacks.golden import builds
from clustergate.stacks.manifest import Blas, Manifest, Program, read_manifest
from clustergate.studies.screen.plan import Plan as ScreeningPlan
from clustergate.studies.screen.planning import ScreenRequest
from evaluations import study
from evaluations.plan import Part

DATA = Path(__file__).parent / "data" / "stored"
RUN = "20261129T160000Z-r1"
LACKS = OUTPUT_LACKS(missing="the table of Bcast", at="stdout:12")
LAUNCH = Launch(
    order=0,
    started=1795968000.5,
    seconds=3.25,
    host="n01",
    lost_cores=0.5,
    core_distance_ns=61.0,
    disturbed=in_words("others used half a core"),
    node={"steal": 0.1, "devices": {"eth0": [1, 2]}},
    kept_off=0.25,
    far=1.5,
    own_cores=2.0,
)
CASE = CaseRecord(
    name="ImbMpi1Check-node-mpich",
    check="ImbMpi1Check",
    stack="mpich",
    partition="local:node",
    conditions={"ranks": 2, "ranks_per_node": 2, "nodes": 1, "bound": True, "placement": "packed"},
    samples=[
        Sample("PingPong", "latency_us", "us", Better.LOWER, {"bytes": 8, "processes": 2}, 0.25),
        Sample("PingPong", "latency_us", "us", Better.LOWER, {"bytes": 8, "processes": 2}, 1.0, 1),
    ],
    launches=[LAUNCH, Launch(1, 1795968010.0, 3.0)],
    launches_needed=2,
    unmeasured=[Row("IMB-MPI1", "Bcast", {"bytes": 4}, {}, "out-of-mem", 7)],
    peaks=[Row("peaks", "dgemm", {"core_ids": "0,1", "k": 8}, {"performance_gflops": 52.5})],
    complaints=[LACKS, in_words("it ended with exit status 1")],
    command="mpirun -n 2 IMB-MPI1",
    removed_environment={"I_MPI_PIN": "0"},
    notes=["a note"],
    details={"launch_s": 6.25, "proof": {"hosts": ["n01"]}, "processors": ["AMD EPYC"]},
)
GOLDEN = builds.Golden(
    *("mpich", "2026-11-29T16:00:00Z", "ada", "0.1", "as accepted", "a lock", 4096, True),
    roots=["prefixes/mpich"],
    tree={"prefixes/mpich/lib/libmpi.so": "aa"},
    held={"/opt/site/libucp.so": "bb"},
    system={"/lib/libc.so.6": "cc"},
    settings={"/etc/ucx.conf": "dd"},
    manifest="ee",
)
MANIFEST = Manifest(
    *("mpich", "wheels", "MPICH", "5.0.2", r"MPICH Version:\s*5", "/opt/mpich", "/opt/libmpi.so"),
    launcher="/opt/mpich/bin/mpirun",
    dialect="hydra",
    environment={"PATH": "/opt/mpich/bin"},
    blas=Blas("OpenBLAS", "0.3.33", "/opt/libopenblas.so", {"OPENBLAS_NUM_THREADS": "1"}),
    programs={"xhpl": Program("/opt/bin/xhpl", "2.3", "compiled"), "IMB-MT": Program(remark="x")},
    proof_library="/opt/libproof.so",
    build_key="k1",
    lock="pins.txt",
)
CONTENDER = Contender(
    name="mpich",
    launcher=["mpirun", "-n", "2"],
    program=["IMB-MPI1", "PingPong"],
    proof_library="/opt/libproof.so",
    environment={"PATH": "/opt/mpich/bin"},
    inputs={"sizes": "0\n8\n"},
    seconds=60.0,
    expected=ProofExpectation("w-0", 2, "/opt", "MPICH", nodes=1, hosts=("n01",)),
    without=("Bcast",),
    patience=Patience(90.0, 300.0, 2),
)
JOB = Plan(
    nonce="w",
    contenders=[CONTENDER, Contender("bare", [], ["true"], "", proves=False, on="each")],
    budget=Budget(3, 6, 20.0, 0.02),
    seed=7,
    asides=[Aside("node_peaks", ["peaks"], ["peaks", "--quick"], "x")],
    kept_in="/runs/kept",
    core_distance=["distance"],
    reader="clustergate.benchmarks.imb.output:parse_imb",
    deciding={"alpha": 0.01, "names": ["a", "b"]},
    parts=("PingPong", "Bcast"),
)
SCREENING = ScreeningPlan(
    nonce="w",
    contenders=[Contender("peaks", [], ["peaks"], "", on="each")],
    budget=Budget(1, 1, 1200.0),
    seed=1,
    system="alpha",
    by="node with mpich",
    nodes=["n01", "n02"],
    scheduled=True,
    foreseen=2,
    rounds=3,
    switches={"n01": "s1"},
    excluded={"n03": "it is down"},
)
FILE = ConfigurationFile("/etc/ucx.conf", "dd", ("UCX_TLS",))
JOB_LOG = JobLog(
    launches=[
        Launched("mpich", 0, 0, LAUNCH, [60.0, 61.0], ("n01", "n02"), {"gflops": 52.5}, "", ("x",)),
        Launched("mpich", 1, -9, Launch(1, 1795968010.0, 3.0), failed="it was killed"),
    ],
    aside_s=2.5,
    hosts=("n01", "n02"),
    kept_out=(FILE,),
    site_files={"mpich": (FILE,)},
    mapped={"mpich": {"/lib/libc.so.6": "cc"}},
    unlike={"n02": ("/lib/libc.so.6",)},
    machine={"boot": "b", "cpus": [0, 1]},
    rounds=(Round(0, {"steal": 0.1}, [60.0]),),
    names=("n01", "n02"),
    notes=("a note",),
    ended=True,
    near_ns=55.0,
)
REQUEST = Request(
    modes.mode_named("smoke"),
    Path("/etc/site.py"),
    stacks=("mpich",),
    checks=("ImbMpi1Check",),
    options=("-S", "ImbMpi1Check.launches=3"),
    process_counts="2,4",
    site_told="alpha",
    fallback=True,
    wait_s=30.0,
    strict=True,
    without_nodes="n07",
    called=(
        (
            "check",
            "--mode",
            "smoke",
        ),
    ),
    confirm=False,
    confirm_wait_s=60.0,
)
CALL = ScreenCall(
    Path("/etc/site.py"),
    ScreenRequest("n[01-04]", 3, 600.0, 0.0, "node", 2, quick=True),
    "mpich",
    ("-v",),
    "n07",
    (["screen", "--nodes", "n[01-04]"],),
)
STUDY = study.Study(
    "001",
    ("mpich", "openmpi"),
    {"mpich": "mvapich2"},
    full=True,
    steps=(
        study.Step(Part(("HplCheck",), {"launches": 3}, "acceptance", gates=True), RUN, True, 7.5),
        study.Step(Part(is_round=True)),
    ),
)


def _place(home: Path, name: str, at: Path) -> Path:
    """Put a stored file where it is looked for."""
    path = home / at
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(DATA / name, path)
    return path


def _in_json(value: object) -> str:
    """Return a value in which lists and tuples are the same, and nothing else is."""

    def of_fields(one: Any) -> Any:
        if dataclasses.is_dataclass(one):
            return {type(one).__name__: {f.name: getattr(one, f.name) for f in fields(one)}}
        return str(one)

    return json.dumps(value, default=of_fields, indent=1)


_IN_RUN = Path("results", "runs", RUN)
# For each file: where it is looked for, how it is read, what it holds.
KINDS: Mapping[str, tuple[Path, Callable[[Path], object], object]] = {
    "case.json": (
        _IN_RUN / "cases" / "ImbMpi1Check-node-mpich.json",
        lambda home: store.read_cases(RUN)[0],
        CASE,
    ),
    "golden.json": (
        Path("golden", "mpich", "contents.json"),
        lambda home: builds.read(home, "mpich"),
        GOLDEN,
    ),
    "manifest.json": (
        Path("manifests", "mpich.json"),
        lambda home: read_manifest(home, "mpich"),
        MANIFEST,
    ),
    "plan.json": (Path(PLAN), lambda home: read_plan(home / PLAN, Plan), JOB),
    "screening-plan.json": (
        Path(PLAN),
        lambda home: read_plan(home / PLAN, ScreeningPlan),
        SCREENING,
    ),
    "launches.jsonl": (Path(LOG), read_log, JOB_LOG),
    "asked.json": (_IN_RUN / "asked.json", lambda home: read_request(RUN), REQUEST),
    "made.json": (_IN_RUN / "made.json", lambda home: call_to_resume(RUN), CALL),
    "evaluation-001.json": (
        Path("results", "evaluation-001.json"),
        lambda home: study.load_state("001"),
        STUDY,
    ),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", KINDS)
def test_what_was_stored_is_read_as_it_was(home: Path, name: str) -> None:
    at, read, value = KINDS[name]
    path = _place(home, name, at)
    if name == "golden.json":
        (path.parent / "manifest.json").touch()
    assert _in_json(read(home)) == _in_json(value)


# What is written beside what these files hold.
SINCE_THEN = {
    "screening-plan.json": ["scheduler"],
    "asked.json": ["promises", "stops_busy", "trial"],
    "case.json": ["not_launched"],
}


@pytest.mark.parametrize("name", [name for name in KINDS if name.endswith(".json")])
def test_what_is_written_today_is_what_was_stored(name: str) -> None:
    stored = json.loads((DATA / name).read_text(encoding="utf-8"))
    written = encode(KINDS[name][2])
    for key in SINCE_THEN.get(name, ()):
        del written[key]
    assert written.keys() <= stored.keys()
    same = {key: stored[key] for key in written if (name, key) != ("asked.json", "mode")}
    assert {key: written[key] for key in same} == same


@pytest.mark.parametrize(
    ("name", "old", "new", "key"),
    [
        ("case.json", '"seconds": 3.25', '"seconds": "3"', "launches[0].seconds: expected float"),
        ("case.json", '"lost_cores": 0.5', '"lost_cores": NaN', "launches[0].lost_cores: nan"),
        ("case.json", '"launch_s": 6.25', '"launch_s": 1e999', "details.launch_s: inf"),
        ("case.json", '"order": 1,', '"order": 1.5,', "launches[1].order: expected int"),
        ("case.json", '"lower"', '"low"', "samples[0].better: invalid enum value 'low'"),
        ("case.json", '"code": "output.lacks"', '"word": 1', "complaints[0]: expected a reason"),
        ("golden.json", '"size": 4096', '"size": "4 KiB"', "size: expected int, got str"),
        ("golden.json", '"aa"', "1", "tree.prefixes/mpich/lib/libmpi.so: expected str, got int"),
        ("manifest.json", '"version": "2.3"', '"version": 2.3', "programs.xhpl.version: expected"),
        ("plan.json", '"seed": 7', '"seed": "seven"', "seed: expected int, got str"),
        ("plan.json", '"ranks": 2,', '"ranks": [],', "contenders[0].expected.ranks: expected int"),
        ("screening-plan.json", '"n01": "s1"', '"n01": 1', "switches.n01: expected str, got int"),
        ("launches.jsonl", '"seconds": 3.25', '"seconds": null', "launch.seconds: expected float"),
        ("asked.json", '"strict": true', '"strict": "yes"', "strict: expected bool, got str"),
        ("made.json", '"rounds": 3', '"rounds": "3"', "asked.rounds: expected int, got str"),
    ],
)
def test_of_a_damaged_file_its_name_and_the_key_are_told(
    home: Path, name: str, old: str, new: str, key: str
) -> None:
    at, read, _ = KINDS[name]
    path = _place(home, name, at)
    if name == "golden.json":
        (path.parent / "manifest.json").touch()
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ClustergateError) as error:
        read(home)
    assert str(path) in str(error.value)
    assert key in str(error.value)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *(("case.json", key) for key in ("samples", "complaints", "unmeasured", "peaks", "stack")),
        *(("manifest.json", key) for key in ("programs", "blas", "provider")),
        *(("golden.json", "size"), ("plan.json", "asides"), ("plan.json", "contenders")),
        *(("asked.json", key) for key in ("mode", "site", "stacks", "checks", "options")),
        ("made.json", "options"),
    ],
)
def test_a_file_without_what_every_version_wrote_is_damaged(
    home: Path, name: str, key: str
) -> None:
    at, read, _ = KINDS[name]
    path = _place(home, name, at)
    if name == "golden.json":
        (path.parent / "manifest.json").touch()
    content = json.loads(path.read_text(encoding="utf-8"))
    del content[key]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ClustergateError, match=f"{key}") as error:
        read(home)
    assert str(path) in str(error.value)


def test_an_evaluation_whose_file_is_damaged_has_none(home: Path) -> None:
    path = _place(home, "evaluation-001.json", KINDS["evaluation-001.json"][0])
    path.write_text(path.read_text().replace('"full": true', '"full": 1'))
    assert study.load_state("001") is None


def test_a_key_of_a_later_version_is_told_from_damage() -> None:
    content = {
        **encode(CONTENDER),
        "expected": {**encode(CONTENDER.expected), "cooled_by": "water"},
    }
    with pytest.raises(UnknownKey, match=r"expected\.cooled_by: this key is not known"):
        decode(content, Contender)


def test_a_sentence_of_before_there_were_codes_is_a_reason() -> None:
    read = decode({**encode(LAUNCH), "disturbed": "others used half a core"}, Launch)
    assert read == LAUNCH
