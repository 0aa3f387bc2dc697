"""ReFrame as the suite sees it: how it is called, what it prints, and what it leaves on disk.

Nothing else knows its options, its lines, its report and its tables. The report tells how each case
ended; ReFrame writes it at its very end. While a session goes on, and of one that was killed, there
are only the lines that it prints.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clustergate.benchmarks.registry import check_paths, every_benchmark
from clustergate.core import store
from clustergate.core.commands import systems_given
from clustergate.core.files.whole import read_json
from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.paths import HOME, state_dir
from clustergate.core.reasons import Reason, Words
from clustergate.judge.assembly import CASE_FULL_DISK, Outcome
from clustergate.judge.history.stored_runs import started_of
from clustergate.machine.environment import clean_call
from clustergate.sites import configs as sites
from clustergate.sites.description import Site
from clustergate.sites.modes import parameters_of
from clustergate.sites.schedulers import SCHEDULERS, scheduler_of
from clustergate.sites.schedulers.job_options import words_in
from clustergate.sites.schedulers.scheduler import Scheduler
from clustergate.stacks.manifest import SET_UP

PROCESS_COUNTS = "CLUSTERGATE_PROCESS_COUNTS"
"""The variable that tells the checks which process counts to measure."""


# --- how it is called -------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A call of ReFrame for a run; it writes ``report``, and what it prints is kept beside that.

    ``schedulers`` are those of the partitions, by their full names.
    """

    run_id: str
    command: Sequence[str]
    environment: Mapping[str, str]
    report: Path
    schedulers: Mapping[str, Scheduler] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return self.report.with_suffix(".out")


def call_for(
    run_id: str,
    site: Path,
    options: Sequence[str],
    *,
    process_counts: str | None = None,
    report: str = "reframe.json",
    set_up: Iterable[str] = (),
    side_by_side: bool = False,
) -> Call:
    """Return the call that runs checks for a run on a site.

    ``process_counts`` replace those of the environment; ``report`` is a file in the run's folder;
    ``set_up`` are stacks that are on disk as the site config asks for them. Cases run
    ``side_by_side`` or one after the other. Raises what :func:`require_partitions` does.
    """
    loaded = sites.load(site)
    require_partitions(options, loaded)
    environment = environment_for(site, loaded, words_in(options))
    environment |= {store.RUN_ID: run_id, HOME: str(state_dir())}
    environment[SET_UP] = ",".join(set_up)
    if process_counts is not None:
        environment[PROCESS_COUNTS] = process_counts
    path = store.run_folder(run_id) / report
    schedulers = {one.fullname: scheduler_of(one.scheduler) for one in loaded.partitions}
    words = command(options, report=path, side_by_side=side_by_side)
    return Call(run_id, words, environment, path, schedulers)


def environment_for(path: Path, site: Site, words: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment in which ReFrame is called: the shell's, without options in disguise.

    ``words`` are options of the scheduler. What is installed beside this Python stands in front of
    what PYTHONPATH adds.
    """
    variables, words = sites.reframe_variables(path, site), [*words]
    overriding = [name for one in SCHEDULERS for name in one.overriding(os.environ, words)]
    environment = clean_call(os.environ, variables, overriding)
    if "PYTHONPATH" in environment:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    return environment


NO_PARTITION = Words(
    "site.no-partition",
    "{site} has no partition {name!r}",
    remedy="known: {known:list}{meant}",
)


def require_partitions(options: Sequence[str], site: Site) -> None:
    """Raise :class:`BadRequest` for a partition behind ``--system`` that a site has not."""
    known = [site.name, *(partition.fullname for partition in site.partitions)]
    for name in systems_given(options):
        if name not in known:
            facts = {"site": site.name, "known": known, "meant": did_you_mean(nearest(name, known))}
            raise BadRequest(NO_PARTITION(name=name, **facts))


def command(
    options: Sequence[str],
    *,
    report: Path | None = None,
    checks: Path | None = None,
    action: str = "--run",
    side_by_side: bool = False,
) -> list[str]:
    """Return ReFrame's command line for the suite's checks, or for those in another folder.

    One case runs at a time unless they are to run ``side_by_side``, as many as max_jobs of
    their partition: else the figures disturb each other, and a dry run asks all that wait at each
    step of another. The options spell a mode out: beside
    ``--mode``, ReFrame 4.10.4 forgets ``-p``. Raises :class:`ClustergateError` for a ReFrame that
    cannot run them.
    """
    sites.require_reframe()
    return [
        # It is installed beside this Python.
        str(Path(sys.executable).parent / "reframe"),
        *(f"--checkpath={path}" for path in ([checks] if checks else _in_order(check_paths()))),
        "--recursive",
        f"--exec-policy={'async' if side_by_side else 'serial'}",
        "--nocolor",
        *([f"--report-file={report}"] if report else []),
        *options,
        action,
    ]


def _in_order(paths: Iterable[str]) -> Iterator[Path]:
    """Yield the files of checks in the order of tables: ReFrame runs them as it finds them.

    Of a folder it finds them as the file system happens to list them.
    """
    order = {name: place for place, name in enumerate(every_benchmark())}
    for path in map(Path, paths):
        files = path.glob("*.py") if path.is_dir() else [path]
        yield from sorted(files, key=lambda file: (order.get(file.stem, len(order)), file.name))


def with_stacks(stacks: Iterable[str]) -> list[str]:
    """Return the options that leave out all stacks but these; none leave out nothing."""
    return [f"--prgenv=^{re.escape(name)}$" for name in dict.fromkeys(stacks)]


def with_checks(names: Iterable[str]) -> list[str]:
    return [rf"--name=^{name}\b" for name in names]


ON_FEW_NODES, ON_MANY_NODES = "on-few-nodes", "on-many-nodes"
"""The tags of tests whose cases may run beside others, and of those that run alone."""


def with_tag(tag: str) -> list[str]:
    return [f"--tag=^{tag}$"]


def with_cases(keys: Iterable[str]) -> list[str]:
    """Return the options that run the tests of some cases alone, see :func:`case_key`.

    A test has a case with each stack in each partition.
    """
    return [f"--name={hash}" for hash in dict.fromkeys(key.split()[0] for key in keys)]


def with_settings(settings: Mapping[str, object]) -> list[str]:
    """Return the options that set variables of all checks, or of one: ``Check.variable``."""
    return [f"--setvar={name}={value}" for name, value in settings.items()]


# --- what it prints ---------------------------------------------------------------------------

_STEP = re.compile(
    r"\[ +(RUN|DRY|OK|FAIL|SKIP) +\] (?:\( *(\d+)/(\d+)\) )?(\S.*?) /(\w+) @(\S+)\+(\S+)(?: .*)?$"
)
_PHASE = re.compile(r"==> test failed during '(\w+)'")
_SESSION = "[ReFrame Setup]"
STOPPED = "run session stopped"
_LEFT_OUT = "left out"


@dataclass(frozen=True)
class Step:
    """A line that says that a case begins (``RUN`` or ``DRY``) or ended (``OK``, ``FAIL``,
    ``SKIP``).

    ``name`` is that of the check with its parameters, ``left`` how many cases come after it.
    """

    word: str
    left: int
    name: str
    hash: str
    partition: str
    stack: str

    @property
    def is_fixture(self) -> bool:
        """Tell whether it is a fixture's: ReFrame names one by its scope, ``~…``."""
        return " ~" in self.name

    @property
    def key(self) -> str:
        """Return what names its case among all cases of the run."""
        return case_key(self.hash, self.partition, self.stack)


def step_of(line: str) -> Step | None:
    """Return what a line says of a case, None where it says nothing of one."""
    match = _STEP.match(line.rstrip())
    if match is None:
        return None
    word, done, total, name, hash_, partition, stack = match.groups()
    return Step(word, int(total or 0) - int(done or 0), name, hash_, partition, stack)


def case_key(hash: str, partition: str, stack: str) -> str:
    """Return what names a case: the hash of its ReFrame test, the partition with its system."""
    return f"/{hash} @{partition}+{stack}"


def phase_of(line: str) -> str:
    """Return the phase in which the case failed of which ReFrame spoke before; empty for none."""
    match = _PHASE.match(line)
    return match[1] if match else ""


def ended_cases(lines: Iterable[str]) -> list[Outcome]:
    """Return the cases that ReFrame's output says came to their end, each as it ended last.

    They are named by their keys there, and why they failed it does not say.
    """
    cases: dict[str, Outcome] = {}
    last = ""
    for line in lines:
        if step := step_of(line):
            if step.word in ("OK", "FAIL") and not step.is_fixture:
                last = step.key
                cases[last] = Outcome(
                    *(last, step.name.split()[0], step.stack),
                    result="pass" if step.word == "OK" else "fail",
                    key=last,
                    partition=step.partition,
                    parameters=parameters_of(step.name),
                )
        elif (phase := phase_of(line)) and last and cases[last].result == "fail":
            cases[last] = dataclasses.replace(cases[last], phase=phase)
            last = ""
    return list(cases.values())


def stopped_early(lines: Sequence[str]) -> list[str]:
    """Return why ReFrame left cases out, if it says so: it does, and ends with PASSED.

    Of a run that was resumed only the last session counts.
    """
    lines = _of_last_session(lines)
    at = next((k for k, line in enumerate(lines) if STOPPED in line), None)
    if at is None:
        return []
    rest = [line.strip() for line in lines[at + 1 :] if line.strip() and "---" not in line]
    last = [line for line in rest if not line.startswith("Log file")][-1:]
    why = lines[at].removeprefix("ERROR: ").rstrip(":")
    return [f"ReFrame stopped early, {': '.join([why, *last])}"]


def _of_last_session(lines: Sequence[str]) -> Sequence[str]:
    begun = [k for k, line in enumerate(lines) if line == _SESSION]
    return lines[begun[-1] if begun else 0 :]


def left_out_as(checks: Iterable[str], why: str) -> str:
    """Return the line by which a run is told that checks of an added package do not load."""
    return f"{_LEFT_OUT} {','.join(checks)}: {why}"


CASE_NOT_LOADED = Words("case.not-loaded", "{why}")


def left_out(lines: Sequence[str]) -> dict[str, Reason]:
    """Return why checks of added packages did not load, by their names.

    Of a run that was resumed only the last session counts.
    """
    last = _of_last_session(lines)
    matches = (re.search(rf"\b{_LEFT_OUT} ([\w,]+): (.*)", line) for line in last)
    said = [(match[1].split(","), match[2]) for match in matches if match]
    return {check: CASE_NOT_LOADED(why=why) for checks, why in said for check in checks}


def unknown_variable(text: str) -> str:
    """Return what ReFrame says of a variable that it was to sweep over and does not know."""
    match = re.search(r"'.*' is neither a variable nor a parameter of test '[^']*'", text)
    return match[0] if match else ""


def listed_checks(text: str) -> int | None:
    """Return how many checks ``--list`` says that it found."""
    match = re.search(r"^Found (\d+) check", text, re.MULTILINE)
    return int(match[1]) if match else None


def read_log(path: Path) -> list[str]:
    """Return the lines of what ReFrame printed, none where it printed nothing yet."""
    if not path.is_file():
        return []
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


# --- its report -------------------------------------------------------------------------------

# How each command of the suite begins the sentence with which it ends.
_OWN_ERROR = "clustergate: "
# ReFrame cancels what waits for one of the reasons that a site config lists.
_BLOCKED = re.compile(r"job cancelled because it was blocked due to reason: (.+)")
_AFTER_A_TIMEOUT = (
    "a rank hangs, or the machine is far slower than expected: check the end of the output in {}, "
    "and raise the limit by -- -S time_limit=1h if that is all it needs"
)
_ENDED = ("pass", "fail", "skip")
# What a job writes besides its outputs does not fit into less.
_FULL_BYTES = 1 << 20


NO_REPORT = Words(
    "run.no-report",
    "ReFrame {ended} and left no report",
    cause="{why}",
    remedy="its output is in {log}",
)
DAMAGED_REPORT = Words("run.damaged-report", "{path} is damaged", cause="{why}")


def read_outcomes(report: Path, status: int) -> list[Outcome]:
    """Read what ReFrame says of each case.

    Raises :class:`ClustergateError` when there is no report, or one that cannot be read.
    """
    try:
        cases = [*reported_cases(report)]
    except FileNotFoundError:
        if status == 0:
            # ReFrame found nothing to run, which is no error of its own.
            return []
        log = report.with_suffix(".out")
        facts = {"ended": how_it_ended(status), "why": last_error(read_log(log)), "log": str(log)}
        raise ClustergateError(NO_REPORT(**facts)) from None
    except ValueError as error:
        raise ClustergateError(DAMAGED_REPORT(path=report, why=error)) from None
    builds = {
        (case["unique_name"], case["environ"]): _build_failure(case)
        for case in cases
        if case["fixture"] and case["result"] != "pass"
    }
    outcomes = [_outcome(case, builds) for case in cases if not case["fixture"]]
    stopped = "; ".join(stopped_early(read_log(report.with_suffix(".out"))))
    return [
        # Of the case that ran when it stopped, ReFrame says nothing.
        dataclasses.replace(one, reason=one.reason or stopped) if one.result not in _ENDED else one
        for one in outcomes
    ]


def how_it_ended(status: int) -> str:
    """Return how a process ended with an exit status, or by a signal where that is negative."""
    if status >= 0:
        return f"ended with exit status {status}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name} (by hand, or out of memory)"
    return f"was killed by signal {-status}"


def reported_cases(report: Path) -> Iterator[dict[str, Any]]:
    """Yield the cases of a report as ReFrame describes them, fixtures among them."""
    for run in read_json(report)["runs"]:
        yield from run["testcases"]


def job_script(case: Mapping[str, Any]) -> Path:
    """Return the script of the job of a case that a report describes."""
    return Path(case["stagedir"] or "", "rfm_job.sh")


def _build_failure(case: dict[str, Any]) -> str:
    """Return why a build failed: what its own command said last, else what ReFrame says."""
    log = Path(case["stagedir"] or "", case["build_stderr"] or "")
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    errors = [line.removeprefix(_OWN_ERROR) for line in lines if line.startswith(_OWN_ERROR)]
    failed = errors[-1] if errors else case["fail_reason"] or "ReFrame gives no reason"
    full = _full_disk(case["stagedir"])
    return f"{failed}; {CASE_FULL_DISK(folder=full)}" if full else failed


def _full_disk(folder: str | None) -> str:
    try:
        free = shutil.disk_usage(folder or "").free
    except OSError:
        return ""
    return folder or "" if free < _FULL_BYTES else ""


JOB_BLOCKED = Words(
    "job.blocked",
    "Slurm would never start its job",
    cause="{why}",
    remedy=(
        "`sinfo -R` lists unused nodes; where a limit is too low, ask for less time "
        "(-- -S time_limit=30m), fewer nodes, or another --qos"
    ),
)


def _outcome(case: dict[str, Any], failed_builds: Mapping[tuple[str, str], str]) -> Outcome:
    why = case["fail_reason"] or ""
    for name, _, environ in case["dependencies_actual"]:
        if failed := failed_builds.get((name, environ)):
            why = f"its program could not be set up: {failed}"
    # Each of a number of its own would be another cause.
    if blocked := _BLOCKED.search(why):
        why = str(JOB_BLOCKED(why=blocked[1]))
    if "job timed out" in why:
        why += f"; {_AFTER_A_TIMEOUT.format(case['stagedir'])}"
    partition = f"{case['system']}:{case['partition']}"
    return Outcome(
        name=store.case_name(case["unique_name"], case["partition"], case["environ"]),
        check=case["name"].split()[0],
        stack=case["environ"],
        result=case["result"],
        phase=case["fail_phase"] or "",
        reason=why,
        full_disk=_full_disk(case["stagedir"]) if case["result"] == "fail" else "",
        duration_s=float(case["time_total"] or 0.0),
        key=case_key(case["hashcode"], partition, case["environ"]),
        partition=partition,
        # Its name leaves out what a sweep gave it.
        parameters=parameters_of(case.get("display_name") or case["name"]),
    )


def last_error(lines: Sequence[str]) -> str:
    """Return the line of what ReFrame printed that tells best why it failed."""
    stopped = [line for line in lines if STOPPED in line]
    errors = stopped or [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it printed nothing"])[-1].strip()


# --- its tables -------------------------------------------------------------------------------

_UUID = re.compile(r"[0-9a-f]{8}[0-9a-f-]*")


def run_of_session(uuid: str, state: Path | None = None) -> str | None:
    """Return the run of a session in ReFrame's storage, None where there is none.

    ``uuid`` may be its first eight characters or more. A session of ours wrote its report into the
    folder of its run; one of plain ReFrame has the run that began while it lasted.
    """
    database = (state or state_dir()) / "results" / "results.db"
    if not _UUID.fullmatch(uuid) or not database.is_file():
        return None
    try:
        with contextlib.closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as db:
            rows = db.execute(
                "SELECT report_file, session_start_unix, session_end_unix FROM sessions "
                "WHERE uuid LIKE ? || '%'",
                (uuid,),
            ).fetchall()
    except sqlite3.Error:
        return None
    if len(rows) != 1:
        return None
    report, first, last = rows[0]
    # What a run launches again has a folder within that of the run.
    folder = Path(report or "")
    for within in folder.parents:
        if within.parent == store.runs_folder(state):
            return within.name
    # The name of a run is cut to whole seconds.
    during = [
        path.parent.name
        for path in store.runs_folder(state).glob("*/cases")
        if first - 1 <= started_of(path.parent).timestamp() <= last
    ]
    return during[0] if len(during) == 1 else None
