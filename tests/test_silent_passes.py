"""The ways in which such a suite passes and is wrong, each provoked with real MPI programs.

A program of the stack is replaced by a script that runs the real one and does one thing wrong. The
launch-independent ones (references, exit codes) are provoked in test_references and test_judging.
"""

import contextlib
import functools
import json
import os
import platform
import re
import subprocess
import sys

import pytest

from clustergate.benchmarks.registry import descriptor_of
from clustergate.core import store
from clustergate.core.model import CaseRecord, Launch
from clustergate.judge.assembly import CASE_NO_FIGURES
from clustergate.stacks import wheels

pytestmark = pytest.mark.mpi

SMALL_HPL = ("-n", "HplCheck", "-p", "mpich", "-S", "n=1000")
SMALL_HPCC = ("-n", "HpccCheck", "-p", "mpich", "-S", "n=300")
NEEDS_INTEL_MPI = pytest.mark.skipif(
    platform.machine() not in wheels.STACKS["intel-mpi"].machines,
    reason=f"Intel MPI has no wheel for {platform.machine()}",
)
long = functools.partial(pytest.param, marks=pytest.mark.long)
FIRST_RANK = '[ "$PMI_RANK" = 0 ]'


def verdict_of(ended, check="HplCheck", stack="mpich"):
    """Return what the summary says is wrong with a case, empty when nothing is."""
    # Of several checks of a benchmark, one has its title on the screen.
    title = rf"(?:{descriptor_of(check).title}|{check})"
    of = re.compile(
        rf" ?(✗ [A-Z ]+: |! (invalid|impossible|regression): )[^:]*\b{title}\b[^:]* with {stack}\b"
    )
    return "\n".join(line for line in ended.stdout.splitlines() if of.match(line))


@pytest.mark.long
def test_without_a_fault_nothing_is_wrong(suite):
    suite.replace_program("mpich", "xhpl", 'exec "$real"')
    ended = suite.check(*SMALL_HPL)
    assert verdict_of(ended) == ""
    assert "HPL " in ended.stdout


TIGHTENED = "sed -i 's/^16.0 /1e-10 /' HPL.dat hpccinf.txt"
# What one launch does, and the reason why it does not count. None ends with an error: it would be
# the last.
LIES = {
    "11-two-ranks-on-one-core": ('exec taskset -c 0 "$real"', "proof.shared-cores"),
    "14-cut-off": ('"$real" | head -n 40', "output.cut-off"),
    "15-residual-failed": ('"$real" | sed "s/PASSED$/FAILED/"', "output.wrong-result"),
    "28-another-threshold": (
        f'{FIRST_RANK} && {TIGHTENED}; sleep 1; exec "$real"',
        "output.other-run",
    ),
    "18-decimal-comma": (
        '"$real" | sed -E "s/([0-9])\\.([0-9]+e[+-])/\\1,\\2/"',
        "output.decimal-comma",
    ),
    "18-interleaved": (
        '"$real" | sed "s/^W[RC].*/MPI warning: a line of another rank &/"',
        "output.damaged",
    ),
    "28-title-of-a-build-that-overrides": (
        'echo "HPL-NVIDIA 25.9.0  -- "; "$real" | sed "s/^WR1/WR0/"',
        "output.misplaced",
    ),
}


@pytest.fixture(scope="module")
def codes_of_lies(suite_in, tmp_path_factory):
    """Return the codes of what is said of each launch of a run, of which the first is honest."""
    suite = suite_in(tmp_path_factory.mktemp("lies"))
    cases = "".join(f"{k}) {script}; exit;;\n" for k, (script, _) in enumerate(LIES.values(), 1))
    choice = f"case ${{CLUSTERGATE_PROOF_NONCE##*-}} in\n{cases}esac\n"
    suite.replace_program("mpich", "xhpl", choice + 'exec "$real"')
    ended = suite.check(*SMALL_HPL, "-S", f"launches={len(LIES) + 1}")
    assert ended.returncode == 2
    assert verdict_of(ended)
    found: dict[str, set[str]] = {name: set() for name in ("honest", *LIES)}
    for why in suite.reasons():
        for k in why.facts["in_launches"]:
            found[list(found)[k]].add(why.code)
    return found


def test_the_honest_one_among_launches_that_lie_is_not_accused(codes_of_lies):
    assert codes_of_lies["honest"] == set()


@pytest.mark.parametrize("lie", LIES)
def test_hpl_that_lies_does_not_pass(codes_of_lies, lie):
    assert LIES[lie][1] in codes_of_lies[lie]


@pytest.mark.long
def test_7_an_exit_status_is_no_pass(suite):
    suite.replace_program("mpich", "xhpl", '"$real"; exit 3')
    ended = suite.check(*SMALL_HPL)
    assert ended.returncode == 2
    assert verdict_of(ended)
    assert "job.exit-status" in suite.codes()


def test_12_other_blas_kernels_than_dgemm_chose_beside_it(suite, old_kernel):
    asked, taken = old_kernel
    suite.replace_program("mpich", "xhpl", f'OPENBLAS_CORETYPE={asked} exec "$real"')
    ended = suite.check(*SMALL_HPL)
    assert ended.returncode == 2
    assert verdict_of(ended)
    assert suite.facts("proof.other-blas-kernels")["kernel"] == taken


SECOND = '[ "${CLUSTERGATE_PROOF_NONCE##*-}" = 1 ]'


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param(
            'unset PMI_RANK PMI_SIZE PMI_FD PMI_PORT PMI_ID; exec "$real"',
            "proof.singletons",
            id="9-singletons",
        ),
        pytest.param(
            'LD_LIBRARY_PATH=$(echo {home}/prefixes/intel-mpi-*/lib) exec "$real"',
            "proof.other-mpi",
            id="10-another-library",
            marks=NEEDS_INTEL_MPI,
        ),
        long('"$real" | head -n 40; exit', "output.cut-off", id="14-cut-off"),
        pytest.param(
            "cat ../launch-000/stdout; exit",
            "proof.no-record",
            id="19-output-of-an-earlier-launch",
        ),
    ],
)
def test_one_launch_of_three_that_lies_makes_the_case_invalid(suite, script, code):
    script = script.replace("{home}", str(suite.home))
    suite.replace_program("mpich", "xhpl", f'{SECOND} && {{ {script}; }}; exec "$real"')
    ended = suite.check(*SMALL_HPL, "-S", "launches=3")
    assert ended.returncode == 2
    assert verdict_of(ended)
    assert code in suite.codes()
    of_launches = [why.facts for why in suite.reasons() if "in_launches" in why.facts]
    assert {k for facts in of_launches for k in facts["in_launches"]} == {1}


@pytest.mark.long
def test_16_hpcc_without_success_is_invalid(suite):
    tighten = "sed -i 's/^16.0 /1e-10 /' hpccinf.txt"
    suite.replace_program("mpich", "hpcc", f'{FIRST_RANK} && {tighten}; sleep 1; exec "$real"')
    ended = suite.check(*SMALL_HPCC)
    assert ended.returncode == 2
    assert verdict_of(ended, "HpccCheck")
    threshold = suite.facts("output.other-run", "HpccCheck")
    assert threshold["source"] == "launch-000/hpccoutf.txt"
    assert threshold["actual"].startswith("residual threshold = 0.0")


@pytest.fixture
def another_program():
    """Keep one core busy with something else; it makes trials of the node's peaks slow."""
    core = str(min(os.sched_getaffinity(0)))
    spinning = ["taskset", "-c", core, sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(spinning) as other:
        yield
        other.kill()


# The rate follows from N and the printed time, which is rounded to nothing.
IN_NO_TIME = r"s/^(W[RC].*) +[0-9.]+ +[0-9.]+e[+-][0-9]+$/\1 0.00 9.999e+89/"


@pytest.mark.long
@pytest.mark.usefixtures("another_program")
def test_25_27_rate_of_no_machine_impossible_beside_a_program(suite):
    """A rate that no machine has is impossible beside another program."""
    suite.replace_program("mpich", "xhpl", f"\"$real\" | sed -E '{IN_NO_TIME}'")
    ended = suite.check(*SMALL_HPL)
    assert ended.returncode == 2
    assert verdict_of(ended).startswith(" ✗ IMPOSSIBLE: "), ended.stdout
    assert suite.facts("limit.exceeded")["value"] == pytest.approx(9.999e89)
    page = max(suite.home.glob("results/runs/*/report.html")).read_text(encoding="utf-8")
    assert "&gt; 100*" in page
    assert max(map(len, ended.stdout.split())) < 60 + len(str(suite.home))


@pytest.mark.long
def test_25_27_plain_reframe_fails_a_rate_that_no_machine_has(suite):
    suite.replace_program("mpich", "xhpl", f"\"$real\" | sed -E '{IN_NO_TIME}'")
    ended = suite.reframe(*SMALL_HPL, "-r")
    assert ended.returncode == 1
    assert "PASSED" not in ended.stdout
    assert "performance" in ended.stdout


@pytest.mark.long
def test_26_a_collective_call_in_no_time_is_impossible(suite):
    # The columns of a row are 13 characters wide each.
    nothing = r"s/^( +1048576 +[0-9]+)( +[0-9.]+){3}$/\1         0.00         0.00         0.00/"
    suite.replace_program("mpich", "IMB-MPI1", f'"$real" "$@" | sed -E \'{nothing}\'')
    options = ("-p", "mpich", "-S", "benchmarks=Allreduce", "-S", "launches=1")
    ended = suite.check(*options, selection=("--check", "ImbMpi1Check"))
    assert ended.returncode == 2
    assert verdict_of(ended, "ImbMpi1Check").startswith(" ✗ IMPOSSIBLE: "), ended.stdout
    assert suite.facts("limit.not-reached", "ImbMpi1Check")["value"] == 0


@pytest.mark.parametrize(
    ("check", "program", "options"),
    [("HplCheck", "xhpl", SMALL_HPL), long("HpccCheck", "hpcc", SMALL_HPCC)],
)
def test_28_another_problem_than_asked_for_is_invalid(suite, check, program, options):
    """A smaller problem on one process proves itself in everything but what was asked."""
    swap = "sed -i -E 's/^[0-9]+( +Ns)/200\\1/; s/^[0-9]+( +[PQ]s)/1\\1/' *.dat hpccinf.txt"
    script = f'{FIRST_RANK} && {swap}; sleep 1; exec "$real"'
    suite.replace_program("mpich", program, script)
    ended = suite.check(*options)
    assert ended.returncode == 2
    assert verdict_of(ended, check)
    asked = next(word.removeprefix("n=") for word in options if word.startswith("n="))
    other = suite.facts("output.other-run", check)
    assert other["actual"].startswith("N = 200")
    assert other["wanted"].startswith(f"N = {asked}")


@pytest.mark.parametrize(
    ("check", "options", "what"),
    [
        ("ImbMpi1Check", "-iter 1 -off_cache -1", "options"),
        long("ImbMtCheck", "-repeat 3", "repetitions"),
    ],
)
def test_28_options_of_a_wrapper_are_no_pass(suite, check, options, what):
    program = {"ImbMpi1Check": "IMB-MPI1", "ImbMtCheck": "IMB-MT"}[check]
    suite.replace_program("mpich", program, f'exec "$real" "$@" {options}')
    benchmarks = {"ImbMpi1Check": "PingPong,Allreduce", "ImbMtCheck": "PingPongMT"}[check]
    small = ("-p", "mpich", "-S", f"benchmarks={benchmarks}", "-S", "launches=1")
    ended = suite.check(*small, selection=("--check", check))
    assert ended.returncode == 2
    assert verdict_of(ended, check)
    assert suite.facts("output.other-run", check)["what"] == what


A_DATE = "# Date                  : Sat Nov 21 06:24:21 2026"
A_SECOND = "   1000000.00" * 3


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param(f"s/^# Date .*/{A_DATE}/", "proof.wrong-date", id="28-date"),
        long(
            rf"s/^( +100)( +[0-9]+[.][0-9]+){{3}}$/\1{A_SECOND}/",
            "proof.too-long",
            id="27-times-that-the-launch-does-not-hold",
        ),
    ],
)
def test_an_output_that_does_not_fit_its_launch_is_invalid(suite, script, code):
    suite.replace_program("mpich", "IMB-MPI1", f'"$real" "$@" | sed -E \'{script}\'')
    options = ("-p", "mpich", "-S", "benchmarks=Barrier", "-S", "launches=1")
    ended = suite.check(*options, selection=("--check", "ImbMpi1Check"))
    assert ended.returncode == 2
    assert verdict_of(ended, "ImbMpi1Check")
    assert code in suite.codes("ImbMpi1Check")


@pytest.mark.long
@pytest.mark.parametrize(
    ("check", "program", "options", "replay", "code"),
    [
        pytest.param(
            *("HplCheck", "xhpl", SMALL_HPL),
            f'"$real" > other.$PMI_RANK; {FIRST_RANK} && cat ../launch-000/stdout',
            "proof.output-of-another",
            id="HPL",
        ),
        pytest.param(
            *("HpccCheck", "hpcc", SMALL_HPCC),
            f'sleep 4; "$real"; {FIRST_RANK} && cp ../launch-000/hpccoutf.txt .',
            "proof.wrong-date",
            id="HPCC",
        ),
    ],
)
def test_28_output_replayed_from_an_earlier_launch(suite, check, program, options, replay, code):
    """Every rank ran as it was to, and what stands in the output was another's."""
    suite.replace_program("mpich", program, f'{SECOND} && {{ {replay}; exit 0; }}; exec "$real"')
    ended = suite.check(*options, "-S", "launches=2")
    assert ended.returncode == 2
    assert verdict_of(ended, check)
    assert suite.facts(code, check)["in_launches"] == [1]


@pytest.mark.long
def test_17_a_size_that_imb_gave_up_is_counted_and_no_pass(suite):
    options = ("-n", "ImbMpi1Check", "-p", "mpich", "-S", "benchmarks=Alltoall")
    ended = suite.check(*options, "-S", "time=0.000001")
    assert ended.returncode == 2
    assert verdict_of(ended, "ImbMpi1Check")
    assert "figure.timed-out" in suite.codes("ImbMpi1Check")


@pytest.mark.long
def test_17_plain_reframe_fails_for_a_size_without_figure(suite):
    options = ("-n", "ImbMpi1Check", "-p", "mpich", "-S", "benchmarks=Alltoall", "-S", "launches=1")
    ended = suite.reframe(*options, "-S", "time=0.000001", "-r")
    assert ended.returncode == 1
    assert "Alltoall.2p.0B.time-out=1.0" in ended.stdout


@pytest.mark.parametrize("setting", ["iter_policy=dynamical", long("launches=-1")])
def test_a_setting_that_would_do_nothing_is_no_pass(suite, setting):
    """IMB runs with its default policy and says nothing; and no launch has nothing to complain."""
    ended = suite.check("-n", "ImbMpi1Check", "-p", "mpich", "-S", setting)
    assert ended.returncode == 2
    assert verdict_of(ended, "ImbMpi1Check")
    assert setting.partition("=")[0] in suite.facts("case.failed-in-phase", "ImbMpi1Check")["why"]


def test_31_a_launch_that_does_not_fit_fails(suite):
    ended = suite.check(
        "-S", "HpccCheck.ranks=64", selection=["--check=HpccCheck", "--stack=mpich"]
    )
    assert ended.returncode == 2
    assert verdict_of(ended, "HpccCheck")
    assert "64 ranks" in suite.facts("case.failed-in-phase", "HpccCheck")["why"]


REFERENCES = """\
$provenance:
  HplCheck: {{origin: published, source: a run before}}
HplCheck:
  $index: [$partition, $environ, reference_layout, reference_effort]
  local:node:
    mpich:
      {layout}:
        {effort}:
          HPL.performance_gflops: [{value}, -0.3, null, Gflop/s]
"""


def references_with(layout, value, effort="smoke+n=1000"):
    return REFERENCES.format(layout=layout, effort=effort, value=value)


def rates_of(record):
    """Return the rates of HPL in a record, one for each launch."""
    return [s["value"] for s in record["samples"] if s["metric"] == "performance_gflops"]


def site_with_reference(folder, record, value):
    """Return the variables with which a run finds this reference for the case of a record."""
    conditions = record["conditions"]
    layout, effort = f"{conditions['ranks']}-ranks-packed", f"smoke+{conditions['settings']}"
    site = folder / "site"
    (site / "references").mkdir(parents=True)
    (site / "references" / "local.yaml").write_text(references_with(layout, value, effort))
    return {"CLUSTERGATE_SITE_FOLDER": str(site)}


@pytest.mark.long
@pytest.mark.parametrize("fewer", ["taskset", "setting"])
def test_31_fewer_ranks_than_the_references_foresee_are_no_pass(suite, tmp_path, fewer):
    """The references stop applying, and every figure is "no reference"."""
    selection = ["--check=HplCheck", "--stack=mpich"]
    assert suite.check("-S", "n=1000", selection=selection).returncode == 0
    (record,) = suite.records()
    ranks = record["conditions"]["ranks"]
    variables = site_with_reference(tmp_path, record, rates_of(record)[0])
    suite.check("-S", "n=1000", selection=selection, **variables)
    # Whatever the rate is this time: on a busy machine it was ten times less than on a quiet one.
    assert "coverage.fewer-cores" not in suite.codes()
    if fewer == "taskset":
        core = str(min(os.sched_getaffinity(0)))
        ended = suite.check("-S", "n=1000", selection=selection, under=["taskset", "-c", core],
                            **variables)  # fmt: skip
        assert f"1 of the node's {ranks} cores" in ended.stdout
    else:
        ended = suite.check("-S", "n=1000", "-S", "ranks=1", selection=selection, **variables)
    assert ended.returncode == 2, ended.stdout
    assert verdict_of(ended)
    assert suite.facts("coverage.fewer-cores")["foreseen"] == f"{ranks}-ranks-packed"


@contextlib.contextmanager
def neighbours():
    """Let a process compute beside each core's rank."""
    started = [
        subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in os.sched_getaffinity(0)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.long
def test_29_a_neighbour_does_not_excuse_more_than_it_can_explain(suite, tmp_path):
    # For more than a second, on the fastest cores too.
    options, selection = ("-S", "n=10000"), ["--check=HplCheck", "--stack=mpich"]
    assert suite.check(*options, "-S", "ranks=2", selection=selection).returncode == 0
    (record,) = suite.records()
    variables = site_with_reference(tmp_path, record, 60 * rates_of(record)[0])
    with neighbours():
        ended = suite.check(*options, "-S", "ranks=2", selection=selection, **variables)
    (launch,) = suite.records()[-1]["launches"]
    if launch["kept_off"] > 0.7:
        pytest.skip("others use the machine so much that they may explain it")
    assert ended.returncode == 1, ended.stdout
    assert verdict_of(ended).startswith(" ✗ SLOWER: ")
    assert "launches.unexcused" in suite.codes()
    junit = max(suite.home.glob("results/runs/*/junit.xml")).read_text()
    assert '<failure type="regression"' in junit


# Lets a rank run for a tenth of the time, as a node that throttles itself does.
THROTTLED = """\
import os, signal, time
rank = os.getppid()
while os.getppid() == rank:
    os.kill(rank, signal.SIGSTOP)
    time.sleep(0.27)
    os.kill(rank, signal.SIGCONT)
    time.sleep(0.03)
"""


@pytest.mark.long
def test_30_most_launches_far_worse_are_no_improvement(suite, tmp_path):
    script = tmp_path / "throttled.py"
    script.write_text(THROTTLED)
    quick = '[ "${CLUSTERGATE_PROOF_NONCE##*-}" -lt 2 ]'
    # The rank is this shell's own process. It stops until the throttle lets it go on: a fast
    # machine would end half of its work before that has started.
    throttled = f"env -u LD_PRELOAD {sys.executable} {script} >/dev/null 2>&1 & kill -STOP $$;"
    suite.replace_program("mpich", "xhpl", f'{quick} || {{ {throttled} }}\nexec "$real"')
    options = ("-S", "n=2500", "-S", "ranks=2", "-S", "launches=8")
    selection = ["--check=HplCheck", "--stack=mpich"]
    assert suite.check(*options, selection=selection).returncode == 0
    (record,) = suite.records()
    best = max(rates_of(record))
    variables = site_with_reference(tmp_path, record, 0.6 * best)
    ended = suite.check(*options, selection=selection, **variables)
    quiet = [x["order"] for x in suite.records()[-1]["launches"] if not x["disturbed"]]
    fast = [order for order in quiet if order < 2]
    changed = max(rates_of(suite.records()[-1])) / best
    if not fast or len(quiet) < 2 * len(fast) or not 0.5 < changed < 5:
        pytest.skip("others use the machine so much that too few of its launches count")
    assert ended.returncode == 0, ended.stdout
    assert " ✓ " not in ended.stdout
    assert "launches.slow-share" in suite.codes()


@pytest.mark.long
def test_24_a_gate_that_left_most_of_its_mode_out_does_not_open(suite):
    before = CaseRecord(
        *("HplCheck-node-mpich", "HplCheck", "mpich", "local:node"),
        conditions={"mode": "maintenance"},
        launches=[Launch(0, 0.0, 1.0)],
    )
    # So HPL fits into the budget, and nothing else does.
    setting = ["-S", "n=1500"]
    folder = store.write_case("20261101T000000Z-1", before, suite.home).parents[1]
    (folder / "asked.json").write_text(json.dumps({"options": setting}))
    ended = suite.call(
        *("gate", "--site", "local", "--budget", "30s", "--stack", "mpich"), "--", *setting
    )
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "\n ~ COULD NOT JUDGE: " in ended.stdout
    said = [one for part in suite.decision()["evidence"] for one in part["reasons"]]
    assert {"missing": 9, "cases": 9} in [
        x["facts"] for x in said if x["code"] == "gate.not-judged"
    ]
    left_out = [one["facts"] for one in said if one["code"] == "gate.left-out"]
    why = {one["cases"]: one["why"] for one in left_out}
    assert "n=1500" in why["HplCheck with mpich"]
    assert "30s" in why["HpccCheck, ImbMpi1Check with mpich"]
    (of_stacks,) = [why for cases, why in why.items() if "intel-mpi, openmpi" in cases]
    assert "--stack" in of_stacks
    assert {record["check"] for record in suite.records()} == {"HplCheck"}


@pytest.mark.long
def test_35_lost_tuning_and_other_unit_are_no_pass(suite, tmp_path):
    """The references of what was tuned hold for nothing else, and a thousandth bounds nothing."""
    selection = ["--check=HplCheck", "--stack=mpich"]
    path = tmp_path / "site" / "references" / "local.yaml"
    path.parent.mkdir(parents=True)
    variables = {"CLUSTERGATE_SITE_FOLDER": str(tmp_path / "site")}
    ranks = len(os.sched_getaffinity(0))
    path.write_text(references_with("1-ranks-packed", 100.0, "smoke+tuned=yes"))
    ended = suite.check("-S", "n=1000", selection=selection, **variables)
    assert ended.returncode == 0, ended.stdout
    above = ended.stdout.partition("figure ")[0]
    assert f"{path}:8" in above
    ended = suite.check(selection=selection, **variables)
    assert ended.returncode == 2, ended.stdout
    assert verdict_of(ended)
    lost = suite.facts("coverage.untuned")
    assert (lost["where"], lost["foreseen"]) == (f"{path}:8", "smoke+tuned=yes")
    rates = [s["value"] for r in suite.records() for s in r["samples"] if s["benchmark"] == "HPL"]
    path.write_text(references_with(f"{ranks}-ranks-packed", max(rates) / 1e6))
    ended = suite.check("-S", "n=1000", selection=selection, **variables)
    assert ended.returncode == 2, ended.stdout
    assert verdict_of(ended)
    assert suite.facts("reference.far-off")["where"] == f"{path}:9"
    ended = suite.reframe("-r", "-n", "HplCheck", "-p", "mpich", "-S", "n=1000", **variables)
    assert ended.returncode != 0, ended.stdout


@pytest.mark.long
def test_check_without_figures_fails_under_plain_reframe(suite, tmp_path):
    """ReFrame itself says PASSED of a test that extracts nothing."""
    folder = tmp_path / "checks"
    folder.mkdir()
    (folder / "silent.py").write_text(
        "import reframe as rfm\nfrom reframe_checks.stream import StreamCheck\n\n"
        "@rfm.simple_test\nclass SilentCheck(StreamCheck):\n"
        "    def rows(self, lines, source):\n        return iter(())\n"
    )
    ended = suite.reframe("-c", str(folder), "-n", "SilentCheck", "-p", "mpich", "-r")
    assert str(CASE_NO_FIGURES().without_remedy) in ended.stdout
    assert "PASSED" not in ended.stdout
    assert ended.returncode == 1


@pytest.mark.long
def test_17_a_benchmark_that_never_ran_is_missed(suite):
    ended = suite.check("-n", "ImbMpi1Check", "-p", "mpich", "-S", "benchmarks=PingPong,Nonsense")
    assert ended.returncode == 2
    assert verdict_of(ended, "ImbMpi1Check")
    assert "output.failure" in suite.codes("ImbMpi1Check")


@pytest.mark.long
def test_19_output_of_an_earlier_run_is_noticed(suite, data):
    earlier = data / "hpcc" / "hpcc-1.5.0-mpich.txt"
    suite.replace_program("mpich", "hpcc", f'{FIRST_RANK} && cp {earlier} hpccoutf.txt; "$real"')
    ended = suite.check(*SMALL_HPCC)
    assert ended.returncode == 2
    assert verdict_of(ended, "HpccCheck")
    earlier = suite.facts("output.other-run", "HpccCheck")
    assert earlier["source"] == "launch-000/hpccoutf.txt"
    assert earlier["actual"].startswith("N = 1000")


SLOW_CLOCK = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Each clock begins right in each process, and runs at a tenth of its speed from then on. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    static long long begun_ns[16];
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (failed || clock < 0 || clock >= 16)
        return failed;
    long long ns = now->tv_sec * 1000000000LL + now->tv_nsec;
    if (begun_ns[clock] == 0)
        begun_ns[clock] = ns;
    ns = begun_ns[clock] + (ns - begun_ns[clock]) / 10;
    now->tv_sec = ns / 1000000000LL;
    now->tv_nsec = ns % 1000000000LL;
    return 0;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}
"""


@pytest.fixture
def slow_clock(tmp_path):
    """Return a library that makes the C library's clocks slow where it is preloaded."""
    source, library = tmp_path / "slow.c", tmp_path / "libslowclock.so"
    source.write_text(SLOW_CLOCK)
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", library, source], check=True)
    return library


@pytest.mark.parametrize("stack", [long("intel-mpi"), "mpich", long("openmpi")])
def test_34_a_clock_that_runs_slow_is_found_out(suite, slow_clock, stack):
    """Declared as a site would, so that only the clock itself speaks against it."""
    asked = f'CLUSTERGATE_PRELOAD="$CLUSTERGATE_PRELOAD:{slow_clock}"'
    suite.replace_program(
        stack, "xhpl", f'{asked} LD_PRELOAD="$LD_PRELOAD:{slow_clock}" exec "$real"'
    )
    ended = suite.check("-n", "HplCheck", "-p", stack, "-S", "n=1000")
    assert ended.returncode == 2
    assert verdict_of(ended, stack=stack)
    assert suite.facts("proof.wrong-clocks", stack=stack)["clocks"].startswith("MPI_Wtime at 0.1")
    assert "proof.preloaded" not in suite.codes(stack=stack)


@pytest.mark.long
def test_33_a_library_that_nobody_asked_to_preload_is_named(suite, tmp_path):
    """One that does nothing at all, and might as well do anything."""
    source, library = tmp_path / "nothing.c", tmp_path / "libnothing.so"
    source.write_text("int nothing;\n")
    subprocess.run(["cc", "-fPIC", "-shared", "-o", library, source], check=True)
    suite.replace_program("mpich", "xhpl", f'LD_PRELOAD="$LD_PRELOAD:{library}" exec "$real"')
    ended = suite.check(*SMALL_HPL)
    assert ended.returncode == 2
    assert verdict_of(ended)
    assert suite.facts("proof.preloaded")["libraries"] == [str(library)]


IN_OWN_ETC = """
mount -t tmpfs tmpfs "$1" && cp -a /etc/. "$1" && echo "$2" > "$1/ld.so.preload" || exit 77
mount --bind "$1" /etc || exit 77
shift 2
exec "$@"
"""


@pytest.mark.long
def test_33_the_loaders_own_list_is_found_out(suite, slow_clock, tmp_path):
    """In a folder /etc that only this test sees, where that may be made."""
    etc = tmp_path / "etc"
    etc.mkdir()
    namespace = ["unshare", "--mount", "--propagation", "private"]
    command = [*namespace, "sh", "-c", IN_OWN_ETC, "sh", str(etc), str(slow_clock)]
    if subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("no mount namespace may be made here")
    ended = suite.check(*SMALL_HPL, under=command)
    assert ended.returncode == 2
    assert verdict_of(ended)
    assert suite.facts("proof.preloaded")["libraries"] == [str(slow_clock)]
    assert "proof.wrong-clocks" in suite.codes()
    (record,) = (suite.home / "results" / "runs").glob("*/machine.json")
    preloaded = json.loads(record.read_text())["fingerprint"]["software"]["preloaded_libraries"]
    assert preloaded == [str(slow_clock)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("stack", "name", "text"),
    [
        ("openmpi", ".openmpi/mca-params.conf", "btl = self,tcp\npml = ob1\n"),
        ("mpich", "ucx.conf", "UCX_LOG_LEVEL=info\nUCX_LOG_FILE={log}\n"),
        ("mpich", ".mpiexec.hydra.conf", "-genv OMP_SCHEDULE static\n"),
        ("intel-mpi", ".mpiexec.conf", "-genv OMP_SCHEDULE static\n"),
    ],
)
def test_33_a_users_configuration_file_has_no_effect_and_is_named(
    suite, tmp_path, stack, name, text
):
    home, log = tmp_path / "home-of-the-user", tmp_path / "ucx.log"
    (home / name).parent.mkdir(parents=True)
    (home / name).write_text(text.format(log=log))
    ended = suite.check(
        *("-n", "HplCheck", "-p", stack, "-S", "n=1000", "--keep-stage-files"), HOME=str(home)
    )
    assert verdict_of(ended, stack=stack) == "", ended.stdout
    assert f"~/{name}" in ended.stdout
    proofs = [json.loads(path.read_text()) for path in suite.home.rglob("rank-*.json")]
    seen = {variable for proof in proofs for variable in proof["environment"]}
    assert "LD_PRELOAD" in seen
    assert not seen & {"OMPI_MCA_btl", "OMPI_MCA_pml", "OMP_SCHEDULE"}
    assert not log.exists()
    (record,) = suite.records()
    assert [file["path"] for file in record["details"]["kept_out"]] == [f"~/{name}"]
