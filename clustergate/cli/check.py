"""``clustergate check``: set up, run a mode, judge, and say it in ten seconds of reading."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from clustergate import store
from clustergate.cli.selection import taken
from clustergate.cli.streams import progress
from clustergate.history.node_states import NODE_STATE, changed_since, changed_since_the_run_before
from clustergate.history.stored_runs import started_of
from clustergate.machine.configuration import ConfigurationFile
from clustergate.machine.environment import describe_removed
from clustergate.machine.fingerprint import read_fingerprint, to_record
from clustergate.machine.processes import end_processes_with, terminated_with_parent
from clustergate.model import Case, CaseRecord, CaseState, ClustergateError, Run
from clustergate.paths import checkout, state_dir
from clustergate.references import lookup as references
from clustergate.report import terminal
from clustergate.schedulers.slurm_nodes import notes_of_slurm
from clustergate.session import resuming
from clustergate.sites import configs as sites
from clustergate.sites import modes
from clustergate.stacks.set_up import NotSetUp, error_of, provide_each
from clustergate.stacks.spack.program import availability
from clustergate.verdicts import assembly, coverage, judging
from clustergate.wording.notation import printable

if TYPE_CHECKING:
    from clustergate.report.trends import History

GRACE_S = 30.0


class RunError(ClustergateError):
    """ReFrame did not come to an end, or left no report."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "check",
        help="measure this machine and judge it",
        description="Measure this machine under every MPI stack of its site config and judge "
        "each figure. Exit status 0: nothing wrong was found; 1: something is slower than its "
        "reference; 2: something did not run, did not prove itself, or is impossible.",
    )
    parser.add_argument("--mode", default="smoke", help="smoke, maintenance or acceptance")
    parser.add_argument("--site", metavar="NAME", help="site config (default: the one that fits)")
    parser.add_argument(
        "--stack", action="append", default=[], metavar="NAME", help="only this stack (repeatable)"
    )
    parser.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="NAME",
        help="only this check, whether the mode runs it or not (repeatable)",
    )
    parser.add_argument(
        "--copy-to", type=Path, metavar="FOLDER", help="copy the run's folder into this one, too"
    )
    parser.add_argument(
        "--resume",
        metavar="RUN",
        help="go on with a run that was stopped, as it was asked for: what came to its end is "
        "kept, the rest is run",
    )
    parser.add_argument(
        "reframe_options",
        nargs="*",
        default=[],
        metavar="-- OPTION",
        help="further options for ReFrame",
    )
    parser.set_defaults(run=run, judges=True)


def run(arguments: argparse.Namespace) -> int:
    """Run a mode on this machine and return the exit status of the verdict table."""
    now = datetime.datetime.now().astimezone()
    run_id = arguments.resume or store.new_run_id(now)
    try:
        if arguments.resume:
            if arguments.stack or arguments.check or arguments.site or arguments.reframe_options:
                raise resuming.ResumeError("--resume goes on with a run as it was asked for; name "
                                           "nothing but the run")  # fmt: skip
            wanted = asked_for(run_id)
            resuming.require_unfinished(run_id)
            started = started_of(store.run_folder(run_id)).astimezone()
            print(wanted.site_told or f"site {wanted.site.stem} ({wanted.site})", flush=True)
        else:
            wanted, started = _wanted(arguments), now
        finished = measured(wanted, run_id, started, resumes=bool(arguments.resume))
    except KeyboardInterrupt:
        if (store.run_folder(run_id) / resuming.ASKED).is_file():
            print(f"go on with: {_own_name()} check --resume {run_id}", file=sys.stderr)
        raise
    finally:
        if arguments.copy_to is not None:
            store.copy_run(run_id, arguments.copy_to)
    print(terminal.render(finished, width=terminal.width()), end="")
    return judging.exit_status(assembly.verdicts(finished.cases))


def _own_name() -> str:
    """Return how this program is called here: `make check` does so without it on PATH."""
    own = Path(sys.executable).parent / "clustergate"
    found = shutil.which("clustergate")
    return "clustergate" if found and Path(found) == own else os.path.relpath(own)


@dataclass(frozen=True)
class Wanted:
    """What is to be run: a mode on a site, with some of its stacks and checks or all of them.

    ``options`` are further ones for ReFrame, ``process_counts`` what
    :meth:`clustergate.sites.modes.Shape.rank_counts` takes. ``site_told`` says why this site, and
    ``fallback`` that no site config claims the machine and none was named.
    """

    mode: modes.Mode
    site: Path
    stacks: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    process_counts: str = ""
    site_told: str = ""
    fallback: bool = False


PROCESS_COUNTS = "CLUSTERGATE_PROCESS_COUNTS"


def _wanted(arguments: argparse.Namespace) -> Wanted:
    mode, checks = modes.mode_named(arguments.mode), modes.checks_named(arguments.check)
    site = taken(arguments.site)
    return Wanted(
        mode,
        site.path,
        tuple(arguments.stack),
        checks,
        tuple(arguments.reframe_options),
        os.environ.get(PROCESS_COUNTS, ""),
        str(site),
        site.fallback,
    )


def asked_for(run_id: str) -> Wanted:
    """Return what an earlier run was asked for; raises :class:`resuming.ResumeError`."""
    asked = resuming.read_asked(run_id)
    try:
        return Wanted(
            modes.mode_named(str(asked["mode"])),
            Path(str(asked["site"])),
            tuple(asked["stacks"]),
            tuple(asked["checks"]),
            tuple(asked["options"]),
            str(asked["process_counts"]),
            str(asked.get("site_told", "")),
            bool(asked.get("fallback")),
        )
    except (KeyError, TypeError) as error:
        raise resuming.ResumeError(
            f"what the run {run_id} was asked for is damaged ({error!r}); run again"
        ) from None


def measured(
    wanted: Wanted, run_id: str, started: datetime.datetime, *, resumes: bool = False
) -> Run:
    """Set up, run, judge and write the reports; return the run.

    ``resumes`` goes on with a run that is there. Raises :class:`RunError` and what sites,
    references and stacks raise.
    """
    with resuming.under_way(run_id) as beside:
        return _measured(wanted, run_id, started, beside, resumes=resumes)


def _measured(
    wanted: Wanted,
    run_id: str,
    started: datetime.datetime,
    beside: Sequence[str],
    *,
    resumes: bool,
) -> Run:
    mode, site, checks = wanted.mode, wanted.site, wanted.checks
    configured = sites.load(site)
    orders = sites.orders_named(configured, wanted.stacks)
    begun = time.monotonic()
    say = progress()
    for sentence in beside:
        say(sentence)
    known = references.references_of(configured["systems"][0]["name"])
    if all(order.provider == "wheels" for order in orders):
        say(availability(state_dir()))
    failed = [one for one in provide_each(orders, say=say) if isinstance(one, NotSetUp)]
    if failed and len(failed) == len(orders):
        raise error_of(failed)
    not_set_up = {one.stack: str(one) for one in failed}
    folder = store.run_folder(run_id)
    store.make_folder(folder)
    report, log = folder / "reframe.json", folder / "reframe.out"
    fingerprint = to_record(read_fingerprint())
    earlier: Mapping[str, assembly.Outcome] = {}
    resumed = []
    if resumes:
        end_processes_with(store.RUN_ID, run_id)
        earlier = resuming.begin_again(run_id, log)
        resuming.keep_reports(run_id)
        report.unlink(missing_ok=True)
        resumed = [
            f"resumed: {len(earlier)} cases had come to their end before",
            *changed_since(run_id, fingerprint, "the run began"),
        ]
    else:
        resuming.write_asked(run_id, {**dataclasses.asdict(wanted), "mode": mode.name,
                                      "site": str(site)})  # fmt: skip
    store.write_json(folder / NODE_STATE, fingerprint)
    # What an earlier set-up left of a stack that failed now must not be measured in its place.
    run_with = [order.stack for order in orders if order.stack not in not_set_up]
    named = [f"--prgenv=^{re.escape(name)}$" for name in run_with if wanted.stacks or failed]
    options = [*modes.reframe_options(mode, checks), *named, *wanted.options]
    command = reframe_command(report, options)
    environment = {**os.environ, **sites.reframe_variables(site, configured), store.RUN_ID: run_id}
    environment[PROCESS_COUNTS] = wanted.process_counts
    status = follow(command, environment, log, say)
    partitions = sites.partitions_of(configured, [order.stack for order in orders])
    expected = modes.expected_cases(checks or mode.checks, partitions, wanted.process_counts)
    outcomes = resuming.together(earlier, read_outcomes(report, status))
    records = store.read_cases(run_id)
    fingerprint["fingerprint"]["software"] |= configuration_of(records)
    store.write_json(folder / NODE_STATE, fingerprint)
    cases = assembly.assemble(
        expected,
        outcomes,
        records,
        known.find,
        sites.node_facts_of(configured),
        mode.name,
        not_set_up,
    )
    restriction = sites.restriction_of(configured)
    named_counts = f"{PROCESS_COUNTS} names {wanted.process_counts}" * bool(wanted.process_counts)
    because = " and ".join(filter(None, [restriction, named_counts]))
    set_up = [key for key in expected if key.stack not in not_set_up]
    lost, smaller = coverage.not_as_foreseen(set_up, cases, known, mode, partitions, because)
    dead, others = coverage.dead_references(
        cases,
        known,
        mode,
        coverage.settings_by_hand(wanted.options),
        {(case.check, case.partition, case.stack) for case in lost},
    )
    cases = (*cases, *lost, *dead)
    removed = {k: v for record in records for k, v in record.removed_environment.items()}
    notes = [f"{record.stack}: {note}" for record in records for note in record.notes]
    finished = Run(
        run_id=run_id,
        system=configured["systems"][0]["name"],
        mode=mode.name,
        started=started.isoformat(timespec="seconds"),
        duration_s=time.monotonic() - begun,
        cases=cases,
        machine=fingerprint,
        fallback=wanted.fallback,
        unjudged=(*smaller, *others),
        notes=tuple(
            dict.fromkeys(
                [
                    *filter(None, [wanted.site_told]),
                    *beside,
                    *resumed,
                    *([f"{restriction}: the figures are of those alone"] if restriction else []),
                    *changed_since_the_run_before(run_id, fingerprint),
                    *stopped_early(log),
                    *assembly.unexpected(expected, outcomes),
                    *notes_of_the_scheduler(configured, cases),
                    *describe_removed(removed),
                    *notes,
                    *cost_of_the_peaks(records),
                    *assembly.disturbances(records),
                    *assembly.wide_limits(records),
                    *assembly.modes_seen(cases),
                    *known.unused(records),
                    f"report: {folder / 'report.html'}",
                ]
            )
        ),
    )
    resuming.write_ended(run_id, cases)
    from clustergate.report.trends import history_of

    return with_reports(finished, folder, history_of(finished.system))


def configuration_of(records: Sequence[CaseRecord]) -> dict[str, list[str]]:
    """Return the site's configuration files that each stack could see, for the fingerprint."""
    found: dict[str, set[str]] = {}
    for record in records:
        files: Any = record.details.get("site_files")
        if files is not None:
            texts = {f"{one} {one.digest}" for one in map(ConfigurationFile.of, files)}
            found.setdefault(f"configuration_of_{record.stack}", set()).update(texts)
    return {name: sorted(texts) for name, texts in found.items()}


def with_reports(finished: Run, folder: Path, history: History) -> Run:
    """Write the report of a run for the browser and for CI beside its records.

    What was measured is stored and judged by then, and is told whether they can be written or not.
    """
    # matplotlib takes as long to import as everything else together.
    from clustergate.report.html import render_html
    from clustergate.report.junit import render_junit

    try:
        store.write_text(folder / "report.html", render_html(finished, history))
        store.write_text(folder / "junit.xml", render_junit(finished))
    except store.StoreError as error:
        return dataclasses.replace(finished, notes=(*finished.notes, f"no report: {error}"))
    return finished


_SESSION = "[ReFrame Setup]"


def stopped_early(log: Path) -> list[str]:
    """Return why ReFrame left cases out, if it says so: it does, and ends with PASSED.

    Of a run that was resumed only the last session counts.
    """
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    begun = [k for k, line in enumerate(lines) if line == _SESSION]
    lines = lines[begun[-1] if begun else 0 :]
    at = next((k for k, line in enumerate(lines) if "run session stopped" in line), None)
    if at is None:
        return []
    said = [line.strip() for line in lines[at + 1 :] if line.strip() and "---" not in line]
    last = [line for line in said if not line.startswith("Log file")][-1:]
    why = lines[at].removeprefix("ERROR: ").rstrip(":")
    return [f"ReFrame stopped early, {': '.join([why, *last])}"]


def notes_of_the_scheduler(configured: Mapping[str, Any], cases: Sequence[Case]) -> list[str]:
    """Return what the scheduler says of its nodes when a case failed, nothing when none did."""
    schedulers = {part["scheduler"] for part in configured["systems"][0]["partitions"]}
    failed = any(case.state in (CaseState.FAILED, CaseState.MISSING) for case in cases)
    return notes_of_slurm() if failed and schedulers & {*sites.SLURM} else []


def cost_of_the_peaks(records: Sequence[CaseRecord]) -> list[str]:
    """Return how long the peaks took beside the launches that they bound, in one sentence."""
    peaks = sum(float(str(record.details.get("peaks_s", 0))) for record in records)
    launches = sum(float(str(record.details.get("launch_s", 0))) for record in records)
    if not peaks:
        return []
    return [f"measuring the node's peaks took {peaks:.0f} s beside {launches:.0f} s of launches"]


def reframe_program() -> str:
    """Return the ReFrame that is installed beside this Python."""
    return str(Path(sys.executable).parent / "reframe")


def reframe_command(report: Path, options: Sequence[str]) -> list[str]:
    """Return ReFrame's command line; one case at a time, or the figures disturb each other.

    The options spell a mode out: beside ``--mode``, ReFrame 4.10.4 forgets ``-p``.
    """
    return [
        reframe_program(),
        f"--checkpath={checkout() / 'reframe_checks'}",
        "--recursive",
        "--exec-policy=serial",
        "--nocolor",
        f"--report-file={report}",
        *options,
        "--run",
    ]


def follow(
    command: Sequence[str], environment: dict[str, str], log: Path, say: Callable[[str], None]
) -> int:
    """Run ReFrame, keep its output, tell which case runs and how many are left.

    Returns its exit status; raises :class:`RunError` when its output cannot be kept. Nothing that
    it started on this node outlives it, and it does not outlive this process.
    """
    try:
        return _followed(command, environment, log, say)
    finally:
        end_processes_with(store.RUN_ID, environment[store.RUN_ID])


def _followed(
    command: Sequence[str], environment: dict[str, str], log: Path, say: Callable[[str], None]
) -> int:
    with (
        _opened(log) as kept,
        subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            preexec_fn=terminated_with_parent,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for sentence in _steps(_tee(process.stdout, kept)):
                say(sentence)
            return process.wait()
        except BaseException as stopped:
            # ReFrame cancels its jobs when it is terminated (an interrupt may be ignored, as of all
            # that a shell started in the background). It must have the time to, and a reader for
            # what it prints meanwhile.
            process.terminate()
            try:
                process.communicate(timeout=GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
            if isinstance(stopped, OSError):
                raise _unwritable(log, stopped) from None
            raise


@contextlib.contextmanager
def _opened(log: Path) -> Iterator[IO[str]]:
    """Open a log to go on in it, as a run does that is resumed; raises :class:`RunError`."""
    try:
        # Line by line, because the run may be killed.
        kept = log.open("a", buffering=1, encoding="utf-8")
    except OSError as error:
        raise _unwritable(log, error) from None
    try:
        yield kept
    finally:
        # A full disk was told when it was noticed; closing would tell it again, without its name.
        with contextlib.suppress(OSError):
            kept.close()


def _unwritable(log: Path, error: OSError) -> RunError:
    return RunError(
        f"{log} cannot be written: {error.strerror}; free some space, or name another folder in "
        "CLUSTERGATE_HOME, and run again; earlier results are intact"
    )


def _tee(lines: Iterator[str] | Any, kept: Any) -> Iterator[str]:
    for line in lines:
        # It is a log to look into, in a terminal.
        kept.write(printable(line))
        yield line


def _steps(lines: Iterator[str]) -> Iterator[str]:
    begun = time.monotonic()
    for line in lines:
        if match := re.match(r"\[ RUN +\] (\S+.*) /\w+ @\S+\+(\S+)", line):
            begun = time.monotonic()
            if not _of_a_fixture(match.group(1)):
                yield f"running {match.group(1)} with {match.group(2)}"
        elif match := re.match(r"\[ +(OK|FAIL|SKIP) +\] \( *(\d+)/(\d+)\) (.+)", line):
            result, done, total, name = match.groups()
            if not _of_a_fixture(name):
                seconds = time.monotonic() - begun
                left = int(total) - int(done)
                yield f"  {_RESULTS[result]} after {seconds:.0f} s; {left} more to run"


def _of_a_fixture(named: str) -> bool:
    """Tell whether what ReFrame names so is a fixture: it names one by its scope, ``~…``."""
    return " ~" in named


_RESULTS = {"OK": "ran", "FAIL": "FAILED", "SKIP": "not available here, or skipped"}


def read_outcomes(report: Path, status: int) -> list[assembly.Outcome]:
    """Read what ReFrame says of each case.

    Raises :class:`RunError` when there is no report, or one that cannot be read.
    """
    try:
        session = json.loads(report.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if status == 0:
            # ReFrame found nothing to run, which is no error of its own.
            return []
        log = report.with_suffix(".out")
        raise RunError(
            f"ReFrame ended with exit status {status} and left no report: {_last_error(log)}; its "
            f"output is in {log}"
        ) from None
    except ValueError as error:
        raise RunError(f"{report} is damaged: {error}") from None
    cases = [case for run in session["runs"] for case in run["testcases"]]
    builds = {
        (case["unique_name"], case["environ"]): _build_failure(case)
        for case in cases
        if case["fixture"] and case["result"] != "pass"
    }
    return [_outcome(case, builds) for case in cases if not case["fixture"]]


def _build_failure(case: dict[str, Any]) -> str:
    """Return why a build failed: what its own command said last, else what ReFrame says."""
    log = Path(case["stagedir"] or "", case["build_stderr"] or "")
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    told = [line.removeprefix(_OWN_ERROR) for line in lines if line.startswith(_OWN_ERROR)]
    return told[-1] if told else case["fail_reason"] or "ReFrame gives no reason"


# How each command of the suite begins the sentence with which it ends.
_OWN_ERROR = "clustergate: "


_AFTER_A_TIMEOUT = (
    "a rank hangs, or the machine is far slower than foreseen: look at the end of the output in "
    "{}, and give it longer by -- -S time_limit=1h if that is all it needs"
)


def _outcome(
    case: dict[str, Any], failed_builds: Mapping[tuple[str, str], str]
) -> assembly.Outcome:
    reason = case["fail_reason"] or ""
    for name, _, environ in case["dependencies_actual"]:
        if failed := failed_builds.get((name, environ)):
            reason = f"what it runs could not be set up: {failed}"
    if "job timed out" in reason:
        reason += f"; {_AFTER_A_TIMEOUT.format(case['stagedir'])}"
    partition = f"{case['system']}:{case['partition']}"
    return assembly.Outcome(
        name=store.case_name(case["unique_name"], case["partition"], case["environ"]),
        check=case["name"].split()[0],
        stack=case["environ"],
        result=case["result"],
        phase=case["fail_phase"] or "",
        reason=reason,
        duration_s=float(case["time_total"] or 0.0),
        key=resuming.case_key(case["hashcode"], partition, case["environ"]),
        partition=partition,
        parameters=modes.parameters_of(case["name"]),
    )


def _last_error(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it printed nothing"])[-1].strip()
