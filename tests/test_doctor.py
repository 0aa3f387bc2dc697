"""What stands in the way of a run, told before one is started."""

import datetime
import json
import math
from pathlib import Path
from typing import Any

import pytest

from clustergate import cli
from clustergate.core.model import CaseId
from clustergate.core.reasons import Reason
from clustergate.judge.references.lookup import References
from clustergate.launch.hostfiles import parse_hostfile
from clustergate.run import readiness as doctor
from clustergate.run.forecast import beyond_forecast, plan_of, seconds_of, usual_seconds, waiting_s
from clustergate.run.readiness import FAIL, OK, WARN, Finding, check_node_states, say_in_the_way
from clustergate.run.timetable import jobs_of
from clustergate.sites.description import Partition, Site
from clustergate.sites.modes import mode_named
from clustergate.sites.schedulers import scheduler_of
from clustergate.sites.schedulers.slurm.nodes import nodes_in
from clustergate.sites.shape import Shape
from clustergate.stacks.manifest import Manifest, Program, write_manifest
from tests.described_partitions import described
from tests.test_dead_references import known

ROOT = Path(__file__).resolve().parent.parent
HOME = Path("/home/operator/.clustergate")


OTHERS = "references.not-of-these"


def code(of: Finding) -> str:
    return of.says.code if isinstance(of.says, Reason) else ""


@pytest.mark.parametrize(
    ("free_mb", "writable", "executable", "status", "why"),
    [
        (5000.0, True, True, OK, ""),
        (999.0, True, True, WARN, "doctor.little-room"),
        (19.0, True, True, FAIL, "doctor.little-room"),
        (5000.0, False, True, FAIL, "doctor.not-writable"),
        (5000.0, True, False, FAIL, "doctor.not-executable"),
    ],
)
def test_a_home_needs_room_and_programs_that_may_start(
    free_mb: float, writable: bool, executable: bool, status: str, why: str
) -> None:
    found = doctor.check_home(HOME, free_mb, writable=writable, executable=executable)
    assert (found.status, code(found)) == (status, why)
    assert str(HOME) in str(found.says)


@pytest.mark.parametrize("there", ["", "manifests", "results/runs"])
def test_a_home_that_nobody_made_before_is_told(
    home: Path, capsys: pytest.CaptureFixture[str], there: str
) -> None:
    """With a slip in its name all was downloaded again, and no reference was found."""
    (home / there).mkdir(parents=True)
    _, found = asked(capsys, "--site", "local")
    status = found["home"]["status"]
    if there:
        assert status == OK or "new" not in found["home"]["says"]
    else:
        assert status == WARN
        assert found["home"]["says"].startswith(f"new, empty home {home} (made just now): ")
        told = list[str]()
        say_in_the_way(told.append, ROOT / "site_configs" / "local.py")
        assert told[0].startswith("warn: home: new, empty home ")


def test_locked_memory_matters_where_there_is_infiniband() -> None:
    assert [one.status for one in doctor.check_limits(64, 8192, fabric=False)] == [OK, OK]
    locked, stack = doctor.check_limits(64, 4096, fabric=True)
    assert (locked.status, code(locked)) == (WARN, "doctor.locked")
    assert "64 KiB" in str(locked.says)
    assert (stack.status, code(stack)) == (WARN, "doctor.stack-size")
    unlimited = doctor.check_limits(math.inf, math.inf, fabric=True)
    assert [(one.status, one.says) for one in unlimited] == [(OK, "unlimited")] * 2


@pytest.mark.parametrize(
    ("encoding", "status"), [("utf-8", OK), ("UTF8", OK), ("ISO-8859-1", WARN), ("ascii", WARN)]
)
def test_a_locale_without_all_signs_is_named(encoding: str, status: str) -> None:
    found = doctor.check_locale(encoding)
    assert found.status == status
    assert encoding in str(found.says)


def test_a_stack_that_is_there_tells_what_it_lacks(tmp_path: Path) -> None:
    launcher = tmp_path / "mpirun"
    programs = {
        "xhpl": Program(path="/xhpl"),
        "IMB-MPI1": Program(unavailable="no source"),
        "IMB-RMA": Program(unavailable="no source"),
        "lmp": Program(unavailable="on request"),
    }
    manifest = Manifest(
        *("mpich", "wheels", "MPICH", "5.0.2"), launcher=str(launcher), programs=programs
    )
    (gone,) = doctor.check_stack("mpich", manifest, {"lmp"})
    assert (gone.status, code(gone)) == (FAIL, "golden.not-whole")
    launcher.touch(mode=0o755)
    whole, lacking = doctor.check_stack("mpich", manifest, {"lmp"})
    assert (whole.status, whole.says) == (OK, "MPICH 5.0.2, set up by wheels")
    assert lacking.status == WARN
    assert str(lacking.says) == "IMB-MPI1, IMB-RMA: not available here: no source"


def test_a_stack_that_cannot_be_had_is_no_failure_of_the_others() -> None:
    manifest = Manifest("intel-mpi", "wheels", unavailable="x86-64 alone")
    (found,) = doctor.check_stack("intel-mpi", manifest, ())
    assert found.status == WARN
    assert str(found.says) == "intel-mpi: not available here: x86-64 alone"


def test_what_later_runs_are_held_against_is_looked_for() -> None:
    found = doctor.check_references("alpha", References(Path("alpha.yaml")))
    assert (found.status, code(found)) == (WARN, "references.none")
    # Of another mode, partition or stack they are as good as none.
    smoke = known(("8-ranks-packed", "smoke"))
    hpl = CaseId("HplCheck", "alpha:node", "mpich")
    assert doctor.check_references("alpha", smoke, [hpl], "smoke").status == OK
    assert code(doctor.check_references("alpha", smoke, [hpl], "maintenance")) == OTHERS
    for other in (
        CaseId("HplCheck", "alpha:node", "openmpi"),
        CaseId("HplCheck", "alpha:gpu", "mpich"),
        CaseId("HpccCheck", "alpha:node", "mpich"),
    ):
        of_other = doctor.check_references("alpha", smoke, [hpl, other], "smoke")
        assert (of_other.status, code(of_other)) == (WARN, OTHERS)
        assert f"for {other.check} with {other.stack} on {other.partition}:" in str(of_other.says)
    found = doctor.check_golden(["mpich", "openmpi"], ["mpich"])
    assert found.status == WARN
    assert "openmpi" in str(found.says)
    assert "mpich" not in str(found.says)
    assert doctor.check_golden(["mpich"], ["mpich"]).status == OK


AT_1430 = datetime.datetime(2026, 11, 23, 14, 30)
TWO = [CaseId("HplCheck", "alpha:node", stack, ()) for stack in ("mpich", "openmpi")]
ALONE = ("alpha:node", 1, "packed")
TAKEN = {("HplCheck", "mpich"): {ALONE: [60.0]}, ("HplCheck", "openmpi"): {ALONE: [90.0]}}


def test_run_says_until_when_and_that_nothing_is_known() -> None:
    planned = plan_of(mode_named("smoke"), TWO, TAKEN, AT_1430, referenced=True)
    assert planned == (
        "done by about 14:32 (2 min 30 s, as last time): HPL with mpich, openmpi, mode smoke"
    )
    planned = plan_of(mode_named("smoke"), TWO, {}, AT_1430, ["openmpi"], referenced=False)
    assert planned == (
        "at most 3 minutes on two idle cores, once built, plus the set-up of openmpi: HPL "
        "with mpich, openmpi, mode smoke; no references yet: judged against physical limits only"
    )
    planned = plan_of(mode_named("smoke"), TWO, {}, AT_1430, referenced=False, expectations=3)
    assert planned.endswith(
        "no references yet: judged against 3 expectations and physical limits only"
    )
    # As the gate reckons: nothing is said of two cores where there are more.
    planned = plan_of(mode_named("maintenance"), TWO, {}, AT_1430, referenced=True)
    assert planned == (
        "done by about 14:39 (9 min 20 s, as such cases usually take, not all of which ran here "
        "before): HPL with mpich, openmpi, mode maintenance"
    )
    planned = plan_of(mode_named("acceptance"), TWO, {}, AT_1430, referenced=True)
    assert planned.startswith("how long it takes here is not known yet (no limit): HPL with ")
    planned = plan_of(
        *(mode_named("smoke"), TWO, {}, AT_1430), referenced=True, settings=["n=500", "launches=90"]
    )
    assert planned.startswith("how long it takes with n=500, launches=90 is not known yet: HPL")


def test_run_may_wait_for_a_quiet_node() -> None:
    """A run may wait for a quiet node and the last one was not undisturbed."""
    planned = plan_of(
        *(mode_named("smoke"), TWO, TAKEN, AT_1430, ["openmpi"]),
        referenced=True,
        disturbed={("HplCheck", "mpich")},
        wait_s=30.0,
    )
    assert planned == (
        "2 min 30 s, as last time, beside other programs, plus the set-up of openmpi, plus up to "
        "30 s of waiting for an idle node: HPL with mpich, openmpi, mode smoke"
    )


def test_a_run_past_midnight_says_the_day() -> None:
    late = datetime.datetime(2026, 11, 23, 23, 59)
    assert plan_of(mode_named("smoke"), TWO, TAKEN, late, referenced=True).startswith(
        "done by about 00:01 on 24 November (2 min 30 s, as last time): "
    )


def test_cases_of_which_one_never_ran_have_no_end() -> None:
    mpich = {("HplCheck", "mpich"): TAKEN["HplCheck", "mpich"]}
    assert seconds_of(TWO, TAKEN) == [60.0, 90.0]
    assert seconds_of(TWO, mpich) == []
    # A gate knows what such cases usually take.
    assert usual_seconds(TWO, mpich) == [60.0, 280.0]


def test_each_layout_takes_as_long_as_it_did() -> None:
    """Half of what both took is the time of neither, and what never ran is like the others."""

    def imb(count: str) -> CaseId:
        layout = ("node_usage", "packed"), ("process_count", count)
        return CaseId("ImbMpi1Check", "alpha:node", "mpich", layout)

    places = {("alpha:node", 2, "packed"): [30.0, 50.0], ("alpha:node", 64, "packed"): [340.0]}
    taken = {("ImbMpi1Check", "mpich"): places}
    cases = [imb("2"), imb("64"), imb("8")]
    known = seconds_of(cases, taken)
    assert known == [40.0, 340.0, 140.0]
    jobs = jobs_of(mode_named("maintenance"), cases, known, ())
    assert waiting_s(jobs) == {("ImbMpi1Check", "mpich"): [140.0, 340.0, 40.0]}


def test_which_nodes_no_run_looked_at_is_told() -> None:
    three = ["n1", "n2.cluster", "n3"]
    (one,) = check_node_states(three, {"n1": "r1", "n2": "r2"})
    assert (one.status, code(one)) == (WARN, "doctor.not-looked-at")
    assert str(one.says).startswith("no recent run covered n3, of 3 nodes; ")
    (one,) = check_node_states(three, {"n1": "r1", "n2": "r2", "n3": "r2"})
    assert (one.status, one.says) == (OK, "3 nodes, last seen by r2")
    astray, _ = check_node_states(three, {}, ["n1 is unlike the rest of its kind: mounts"])
    assert (astray.status, code(astray)) == (WARN, "doctor.astray")
    assert check_node_states([], {}) == []


def test_what_a_gate_foresees_says_what_it_leaves_out(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    local = Site(
        name="alpha", hostnames=[], partitions=[described("alpha:node", Shape(4, 1), "mpich")]
    )
    assert beyond_forecast(local, ["mpich"]) == ", plus the set-up of mpich"
    in_slurm = Site(name="alpha", hostnames=[], partitions=[slurm()])
    assert beyond_forecast(in_slurm, []) == ", plus waiting in Slurm's queue"
    both = ", plus the set-up of mpich and waiting in Slurm's queue"
    assert beyond_forecast(in_slurm, ["mpich"]) == both
    assert beyond_forecast(local, []) == ""


def slurm(*access: str, nodes: int = 4, cores: int = 64, excluded: int = 0) -> Partition:
    partition = described("alpha:node", Shape(cores, nodes), "mpich")
    return Partition(
        **{**vars(partition), "scheduler": "slurm", "access": access, "excluded_nodes": excluded}
    )


# `sinfo --noheader --all --exact --format='%P|%D|%X|%Y|%N|%f|%T|%E'`: partition, nodes, sockets,
# their cores, names, features, state, reason.
SINFO = """\
cpu*|2|2|32|n[1,4]|new,ib|idle|none
cpu*|1|2|32|n2|new|drained|broken fan | ticket 7
cpu*|1|2|32|n3|(null)|idle*|none
fat|8|2|48|n[11-18]|(null)|mixed|none
fat|2|2|64|n[19-20]|(null)|allocated|none
"""


@pytest.mark.parametrize(
    ("partition", "status", "why"),
    [
        (slurm("--partition=cpu", "--exclusive"), OK, ""),
        (slurm("-p cpu"), OK, ""),
        (slurm("--exclusive"), OK, ""),
        (slurm("--partition=cpuu"), FAIL, "doctor.no-partition"),
        (slurm("--partition=cpu", nodes=5), WARN, "doctor.other-nodes"),
        (slurm("--partition=cpu", nodes=3), WARN, "doctor.other-nodes"),
        (slurm("--partition=cpu", cores=63), WARN, "doctor.fewer-cores"),
        (slurm("--partition=cpu", cores=65), WARN, "doctor.other-nodes"),
        (slurm("--partition=cpu", "--constraint=new", nodes=3), OK, ""),
        (slurm("--partition=cpu", "--constraint=new", nodes=5), WARN, "doctor.other-nodes"),
        (slurm("--partition=fat", nodes=10), WARN, "doctor.other-nodes"),
        (slurm("--partition=fat", nodes=8, cores=96), WARN, "doctor.other-nodes"),
        (slurm("--partition=fat", "--exclude=n[19-20]", nodes=8, cores=96), OK, ""),
        (slurm("--partition=fat", "-w n[11-14]", nodes=4, cores=96), OK, ""),
        # Nodes that nobody measured were no fault as soon as `access` named any.
        (slurm("--partition=cpu", "--constraint=new", nodes=2), WARN, "doctor.other-nodes"),
        (slurm("--partition=cpu", '-C "new&ib"', nodes=2), OK, ""),
        (slurm("--partition=cpu", "--constraint=new|old", nodes=3), OK, ""),
        (slurm("--partition=cpu", "--constraint=nwe", nodes=3), FAIL, "doctor.other-nodes"),
        (
            slurm("--partition=fat", "--exclude=n[9-10]", nodes=8, cores=96),
            WARN,
            "doctor.other-nodes",
        ),
        # As a hostfile has it that excludes a node.
        (slurm("--partition=cpu", "--exclude=n2", nodes=3, excluded=1), OK, ""),
        (
            slurm("--partition=cpu", "--exclude=n2", nodes=3, cores=60, excluded=1),
            WARN,
            "doctor.fewer-cores",
        ),
        (slurm("--partition=cpu", "--exclude=n2", nodes=4, excluded=1), WARN, "doctor.other-nodes"),
        # What this asks for Slurm alone can tell.
        (slurm("--partition=cpu", "--constraint=[new*2&ib*1]", nodes=2), OK, ""),
        (slurm("--partition=cpu", "--exclude=./list", nodes=2), OK, ""),
    ],
)
def test_a_partition_is_what_slurm_says_of_it(partition: Partition, status: str, why: str) -> None:
    found = doctor.check_nodes(partition, nodes_in(SINFO))
    assert (found.status, code(found)) == (status, why)


def test_what_slurm_says_otherwise_is_told() -> None:
    assert str(doctor.check_nodes(slurm("--partition=fat"), nodes_in(SINFO)).says).startswith(
        "the site config says 4 nodes of 64 cores, and Slurm has 8 nodes of 96 cores and 2 nodes "
        "of 128 cores: "
    )
    narrowed = doctor.check_nodes(slurm("-p cpu", "-C new", nodes=2), nodes_in(SINFO))
    assert "Slurm has 3 nodes of 64 cores for what `access` asks: " in str(narrowed.says)
    misspelt = doctor.check_nodes(slurm("--partition=cpuu"), nodes_in(SINFO))
    assert str(misspelt.says).endswith("known: cpu, fat; did you mean 'cpu'?")


def test_nodes_unused_by_slurm_listed_with_its_reason() -> None:
    found = doctor.check_unused_nodes(slurm("-p cpu"), nodes_in(SINFO))
    assert [(one.what, one.status) for one in found] == [("partition node", WARN)] * 2
    drained, silent = (str(one.says) for one in found)
    assert drained.startswith(
        "Slurm does not use n2: drained, broken fan | ticket 7; repair n2 and "
    )
    assert silent.startswith("Slurm does not use n3: idle, does not respond; ")
    # Who excluded it knows why.
    (left,) = doctor.check_unused_nodes(slurm("-p cpu"), nodes_in(SINFO), {"n2"})
    assert str(left.says) == silent
    assert doctor.check_unused_nodes(slurm("-p fat"), nodes_in(SINFO)) == []
    # No job of it would get the silent one.
    (broken,) = doctor.check_unused_nodes(slurm("-p cpu", "-C new"), nodes_in(SINFO))
    assert str(broken.says).startswith("Slurm does not use n2: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n[1-4] slots=64\n", [(OK, "4 nodes, alpha.txt")]),
        ("n[1-4].site slots=64\n", [(OK, "4 nodes, alpha.txt")]),
        ("m[1-4] slots=64\n", [(FAIL, "alpha.txt lists m[1-4], which Slurm does not have: it ")]),
        (
            "n[1-5] slots=64\n",
            [(WARN, "alpha.txt lists n5, which Slurm does not have: it has n[1")],
        ),
        (
            "n[1-3] slots=64\nn4 slots=32\n",
            [(WARN, "alpha.txt says slots=32 of n4, and the site config 64, 96 cores per node: ")],
        ),
    ],
)
def test_a_hostfile_names_the_nodes_of_slurm_with_all_their_cores(
    text: str, expected: list[tuple[str, str]]
) -> None:
    found = doctor.check_hostfile(
        parse_hostfile(text, "alpha.txt"), [96, 64], {scheduler_of("slurm"): nodes_in(SINFO)}
    )
    assert [one.status for one in found] == [status for status, _ in expected]
    for one, (_, begun) in zip(found, expected, strict=True):
        assert str(one.says).startswith(begun)


def test_the_excluded_nodes_are_those_of_the_partition() -> None:
    fewer = Partition(**{**vars(slurm("-p cpu", "-x n1", nodes=3)), "excluded_nodes": 1})
    found = doctor.check_nodes(fewer, nodes_in(SINFO))
    assert (found.status, found.says) == (OK, "3 nodes of 64 cores, by slurm, 1 more excluded")
    # Of four nodes that are left it counts three: one would be measured by nobody.
    other = Partition(**{**vars(fewer), "access": ["-p cpu"]})
    assert doctor.check_nodes(other, nodes_in(SINFO)).status == WARN
    none = slurm("-p cpu", "-x n[1-4]", nodes=1)
    unused = Partition(**{**vars(none), "environs": (), "excluded_nodes": 3})
    assert doctor.check_nodes(unused, nodes_in(SINFO)).status == OK
    assert doctor.check_nodes(slurm("-p cpu")).says == "4 nodes of 64 cores, by slurm"


ALPHA = """\
from clustergate.sites import configuration, stack
site_configuration = configuration(
    systems=[{"name": "alpha", "descr": "alpha", "hostnames": ["alpha$"], "partitions": [{
        "name": "cpu", "scheduler": "slurm", "launcher": "clustergate-srun",
        "access": ["--partition=cpu"],
        "extras": {"nodes": 4, "cores_per_node": 64, "memory_bytes_per_node": 2**38,
                   "nominal_gflops_per_core": 40.0},
    }]}],
    stacks=[
        stack("openmpi", provider="modules", modules={"load": ["gcc/12", "openmpi/4.9"]}),
    ],
)
"""
LMOD = """
Lmod has detected the following error:  The following module(s) are unknown:
"openmpi/4.9"

Please check the spelling or version number. Also try "module spider ..."
It is also possible your cache file is out-of-date; it may help to try:
"""


@pytest.mark.usefixtures("home")
def test_slurm_and_modules_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, programs, init = tmp_path / "alpha.py", tmp_path / "bin", tmp_path / "modules" / "init"
    programs.mkdir()
    init.mkdir(parents=True)
    site.write_text(ALPHA, encoding="utf-8")
    sinfo = programs / "sinfo"
    sinfo.write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    sinfo.chmod(0o755)
    lmod = f"module() {{ case $2 in openmpi*) echo '{LMOD}' >&2; return 1;; esac; }}\n"
    (init / "bash").write_text(lmod, encoding="utf-8")
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("MODULESHOME", str(init.parent))
    status, found = asked(capsys, "--site", str(site))
    assert status == 2
    assert found["partition cpu"]["reason"]["code"] == "slurm.no-answer"
    assert (
        "Unable to contact slurm controller; run this on a login" in found["partition cpu"]["says"]
    )
    assert found["stack openmpi"]["status"] == FAIL
    assert found["stack openmpi"]["says"] == (
        f"{site}: stack openmpi: `module load gcc/12 openmpi/4.9` failed: Lmod has detected the "
        'following error: The following module(s) are unknown: "openmpi/4.9"; run `module spider '
        "openmpi`, which lists what there is and what must be loaded first, and correct `load` of "
        "the stack in the site config"
    )
    # A run loads them itself, and says then what fails.
    told = list[str]()
    say_in_the_way(told.append, site)
    assert [one for one in told if "module load" in one] == []
    assert [one for one in told if one.startswith("fail: partition cpu: ")]


@pytest.mark.usefixtures("home")
def test_who_does_not_answer_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, init = tmp_path / "alpha.py", tmp_path / "modules" / "init"
    init.mkdir(parents=True)
    site.write_text(ALPHA, encoding="utf-8")
    (init / "bash").write_text("module() { sleep infinity; }\n", encoding="utf-8")
    monkeypatch.setattr(doctor, "_ASKING_S", 0.3)
    monkeypatch.setenv("MODULESHOME", str(init.parent))
    _, found = asked(capsys, "--site", str(site))
    late = found["stack openmpi"]
    assert (late["status"], late["reason"]["code"]) == (WARN, "modules.late")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLUSTERGATE_PROVIDER", "wheels")
    return tmp_path / "home"


def asked(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any]]:
    status = cli.main(["doctor", *options, "--json"])
    return status, {one["what"]: one for one in json.loads(capsys.readouterr().out)}


def test_it_looks_at_all_of_this_machine_and_sets_nothing_up(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = asked(capsys, "--site", "local")
    assert {"home", "compiler", "locked memory", "stack size", "locale", "site"} < {*found}
    assert {"partition node", "stack mpich", "references", "golden builds"} < {*found}
    assert status == (2 if FAIL in {one["status"] for one in found.values()} else 0)
    if found["compiler"]["status"] == OK:
        assert found["stack mpich"]["status"] == WARN
        assert found["stack mpich"]["reason"]["code"] == "doctor.not-set-up"
    assert not (home / "manifests").exists()
    planned = found["plan"]["says"]
    more = "plus the set-up of intel-mpi, mpich, openmpi, plus up to 30 s of waiting for an idle"
    assert f"{more} node: HPL, HPCC, IMB" in planned
    assert "mode smoke" in planned
    _, found = asked(capsys, "--site", "local", "--mode", "maintenance")
    assert "mode maintenance" in found["plan"]["says"]


def test_every_finding_is_a_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, found = asked(capsys, "--site", "local")
    cli.main(["doctor", "--site", "local"])
    lines = capsys.readouterr().out.splitlines()
    begun = [f"{one['status']:<4}  {one['what']} " for one in found.values()]
    assert [begin for begin in begun if not any(one.startswith(begin) for one in lines)] == []


@pytest.mark.usefixtures("home")
def test_missing_site_fails_and_the_machine_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A site that does not exist fails and the machine is told all the same."""
    status, found = asked(capsys, "--site", "nowhere")
    assert status == 2
    assert found["site"]["status"] == FAIL
    assert "unknown site config 'nowhere'" in found["site"]["says"]
    assert "home" in found
    _, found = asked(capsys, "--site", "locla")
    says = found["site"]["says"]
    assert says.startswith("unknown site config 'locla'; did you mean 'local'?: known: ")
    # Its own first; the names of those that others published fill a screen.
    assert "sicortex" not in says
    assert " of published systems; `clustergate site scan NAME` writes one" in says


def test_a_damaged_golden_build_fails(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "golden" / "mpich"
    folder.mkdir(parents=True)
    for name in ("manifest.json", "contents.json"):
        (folder / name).write_text("{", encoding="utf-8")
    status, found = asked(capsys, "--site", "local")
    assert status == 2
    assert found["golden builds"]["reason"]["code"] == "golden.damaged"


def test_a_damaged_manifest_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_manifest(home, Manifest("mpich", "wheels"))
    path = next(home.rglob("mpich.json"))
    path.write_text("{", encoding="utf-8")
    _, found = asked(capsys, "--site", "local")
    damaged = found["stack mpich"]
    if found["compiler"]["status"] == OK:
        assert (damaged["status"], damaged["reason"]["code"]) == (WARN, "manifest.damaged")


def test_a_run_tells_first_what_stands_in_its_way(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest(home, Manifest("mpich", "wheels", unavailable="its wheel is for aarch64"))
    local, told = ROOT / "site_configs" / "local.py", list[str]()
    (found, *_) = say_in_the_way(told.append, local)
    assert f": {found.says}" in told[0]
    assert "warn: stack mpich: mpich: not available here: its wheel is for aarch64" in told
    assert [one for one in told if "golden" in one or "no references" in one] == []
    other = list[str]()
    say_in_the_way(other.append, local, ["openmpi"], software=True)
    assert [one for one in other if "mpich:" in one] == []
    assert any(one.startswith("warn: golden builds: ") for one in other)


def test_what_several_stacks_lack_is_said_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("SPACK_ROOT", raising=False)
    monkeypatch.setenv("CLUSTERGATE_PROVIDER", "spack")
    said = list[str]()
    say_in_the_way(said.append, ROOT / "site_configs" / "local.py")
    (lacking,) = [one for one in said if "there is no Spack here" in one]
    assert lacking.startswith("fail: stack spack-")
    assert lacking.count("stack spack-") > 1
