"""A call of ReFrame: run, followed, its output kept, and nothing of it left behind."""

from __future__ import annotations

import contextlib
import datetime
import os
import selectors
import statistics
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

from clustergate.benchmarks.registry import descriptor_of, every_headline, title_of
from clustergate.core import store
from clustergate.core.model import CaseRecord
from clustergate.core.notation import counted, printable, rounded
from clustergate.core.reasons import Words
from clustergate.core.texts import AT_LEAST, DOUBTFUL, ProgressLine, ResultLine
from clustergate.judge.assembly import PERFORMANCE_PHASE, Outcome
from clustergate.judge.history.stored_runs import seconds_of_case
from clustergate.launch.estimation import sampled_figures
from clustergate.machine.processes import terminated_with_parent
from clustergate.run.reframe import Call, Step, case_key, phase_of, read_outcomes, step_of
from clustergate.run.resuming import HASH, completed, end_processes_of, lock_run

GRACE_S = 30.0
# As if so much had taken as long as foreseen: one short case does not halve or double the rest.
_AS_FORESEEN_S = 30.0
_ASKED_EVERY_S = 5.0

# What ReFrame fails by its figures may pass when it is launched again.
_LOOKED_AT = "ran, and some figure looks slow or wrong"
_BEGINNINGS = ("RUN", "DRY")


@dataclass(frozen=True)
class UnderWay:
    """How ``far`` a case has come, such as ``round 5``, and in how many seconds it will end.

    Nothing and 0 where nobody can tell.
    """

    far: str = ""
    left_s: float = 0.0


def _failed() -> str:
    return "FAILED"


def execute(
    call: Call,
    say: Callable[[str], None],
    waiting_s: Mapping[tuple[str, str], Sequence[float]] = MappingProxyType({}),
    failure: Callable[[], str] = _failed,
    under_way: Callable[[], UnderWay] | None = None,
    side_by_side: float = 1.0,
    done: int = 0,
    to_come: int = 0,
) -> int:
    """Run ReFrame, keep its output, report which case runs and how many are left, until when.

    ``waiting_s`` are the seconds that each case takes by its check and stack, where they are known,
    ``failure`` says what a case came to that ReFrame calls failed, ``under_way`` how far the one
    that runs has come, where somebody can tell, ``side_by_side`` how many run at once, on average.
    Other calls have ``done`` so many cases of the run, or have them ``to_come``.
    Returns its exit status; raises ClustergateError when its output cannot be kept. Nothing that it
    started on this node outlives it, and it does not outlive this process.
    """

    def waits_for(step: Step) -> str | None:
        scheduler = call.schedulers.get(step.partition)
        why = scheduler.waits_for(store.stage_folder(call.run_id)) if scheduler else ""
        return f"in {scheduler.name}'s queue ({why})" if scheduler and why else why

    seen = {*store.case_names(call.run_id)}
    results: dict[str, tuple[str, float]] = {}

    def measured(step: Step) -> tuple[str, float]:
        for name in {*store.case_names(call.run_id)} - seen:
            seen.add(name)
            # What cannot be read is told with the run.
            with contextlib.suppress(store.StoreError):
                one = store.read_case(call.run_id, name)
                key = case_key(str(one.details.get(HASH)), one.partition, one.stack)
                results[key] = results_of(one), seconds_of_case(one)
        return results.get(step.key, ("", 0.0))

    pace = Pace(waiting_s, side_by_side)
    of_call = completed(call.run_id), pace, failure, waits_for, measured, under_way
    course = _Course(*of_call, done=done, to_come=to_come)
    try:
        return _run_reframe(call, say, course.sentences)
    finally:
        end_processes_of(call.run_id)


def measure(
    call: Call,
    say: Callable[[str], None],
    failure: Callable[[], str] = _failed,
    under_way: Callable[[], UnderWay] | None = None,
) -> list[Outcome]:
    """Let ReFrame run, :func:`execute`, what is no run of a mode; return the outcomes."""
    with lock_run(call.run_id) as beside:
        for sentence in beside:
            say(sentence)
        status = execute(call, say, failure=failure, under_way=under_way)
    return read_outcomes(call.report, status)


JOBS_LEFT = Words(
    "run.jobs-left",
    "ReFrame did not cancel its jobs within {seconds:.0f} s",
    remedy="look for them (squeue, qstat, bjobs), and cancel those still running",
)


def _run_reframe(
    call: Call, say: Callable[[str], None], progress_of: Callable[[Iterable[str]], Iterable[str]]
) -> int:
    with (
        _open_log(call.log) as kept,
        subprocess.Popen(
            call.command,
            env=call.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            preexec_fn=terminated_with_parent,
            # Else an interrupt at the terminal begins to cancel its jobs, and what is sent below
            # ends that halfway.
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for sentence in progress_of(_tee(_lines(process.stdout), kept)):
                say(sentence)
            return process.wait()
        except BaseException as stopped:
            # ReFrame cancels its jobs when it is terminated. It must have the time to, and a reader
            # for what it prints meanwhile.
            process.terminate()
            try:
                process.communicate(timeout=GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                say(str(JOBS_LEFT(seconds=GRACE_S)))
            if isinstance(stopped, OSError):
                raise store.unwritable(call.log, stopped) from None
            raise


def _lines(pipe: IO[bytes]) -> Iterator[str]:
    """Yield each line of a pipe, and an empty text whenever none came for some seconds."""
    rest = b""
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while True:
            if not ready.select(_ASKED_EVERY_S):
                yield ""
                continue
            # Not by the pipe's own buffer: what is in there would make nothing ready.
            read = os.read(pipe.fileno(), 1 << 16)
            *lines, rest = (rest + read).split(b"\n")
            yield from (line.decode(errors="replace") + "\n" for line in lines)
            if not read:
                if rest:
                    yield rest.decode(errors="replace")
                return


@contextlib.contextmanager
def _open_log(log: Path) -> Iterator[IO[str]]:
    """Open a log to append to, as a resumed run does; raises :class:`ClustergateError`."""
    try:
        # Line by line, because the run may be killed.
        kept = log.open("a", buffering=1, encoding="utf-8")
    except OSError as error:
        raise store.unwritable(log, error) from None
    try:
        yield kept
    finally:
        # A full disk was reported when it was noticed; closing would report it again.
        with contextlib.suppress(OSError):
            kept.close()


def _tee(lines: Iterable[str], kept: IO[str]) -> Iterator[str]:
    for line in lines:
        # The log is read in terminals.
        kept.write(printable(line))
        yield line


class _Course:
    """The cases of a call, of which ReFrame says line by line what begins and what ended.

    ``completed`` are those of before, of which nothing is said. ``waits_for`` says in which queue
    the job of a case waits, and why; nothing once it runs. ``measured`` returns the results of the
    case that ended, and the seconds that it took: when it began is not known where others run
    beside it.
    """

    def __init__(
        self,
        completed: Collection[str],
        pace: Pace,
        failure: Callable[[], str],
        waits_for: Callable[[Step], str | None],
        measured: Callable[[Step], tuple[str, float]],
        under_way: Callable[[], UnderWay] | None = None,
        *,
        done: int = 0,
        to_come: int = 0,
    ) -> None:
        self._completed, self._pace, self._failure = completed, pace, failure
        self._waits_for, self._measured, self._under_way = waits_for, measured, under_way
        # Contenders take turns in a case: it is with none of them alone.
        self._named = _benchmark if under_way else _what
        self._since_s = time.monotonic()
        self._done, self._left, self._to_come = done, 0, to_come
        self._begun: dict[str, Step] = {}
        self._submitted: Step | None = None
        self._running = self._said = ""
        self._failed: tuple[str, str] | None = None
        self._results: list[str] = []

    def sentences(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield what is to be said of the cases that run."""
        for line in lines:
            if self._failed and line:
                # This line says why.
                judged = self._failure is _failed and phase_of(line) == PERFORMANCE_PHASE
                yield from self._told_failed(_LOOKED_AT if judged else self._failure())
            step = step_of(line)
            if step and step.word not in _BEGINNINGS:
                self._left = step.left
            if step and (step.is_fixture or step.key in self._completed):
                continue
            if step:
                yield from self._taken(step)
                if self._failed:
                    continue
            # Those that begin at once are told once.
            is_news = step and (len(self._begun) == 1 or step.key not in self._begun)
            if self._submitted and (is_news or not line):
                yield from self._doing(self._submitted)
            elif self._running and self._under_way and (how := self._under_way()).far:
                doing = f"{how.far} of {self._running}"
                if doing != self._said:
                    yield ProgressLine(
                        doing, datetime.datetime.now(), how.left_s or None, how.left_s
                    )
                self._said = doing
        yield from self._told_failed(self._failure() if self._failed else "")

    def _told_failed(self, how: str) -> Iterator[str]:
        if self._failed:
            yield f"{self._failed[0]}: {how} {self._failed[1]}"
        self._failed = None

    def _taken(self, step: Step) -> Iterator[str]:
        """Take note that a case begins, or that it ended, and say that."""
        ended, beside_others = step.word not in _BEGINNINGS, len(self._begun) > 1
        self._begun.pop(step.key, None)
        if not ended:
            self._begun[step.key] = step
        self._submitted, self._running = next(iter(self._begun.values()), None), ""
        self._said = self._said if self._begun and ended else ""
        if not ended:
            return
        self._done += 1
        came_to, its_s = self._measured(step)
        took_s = its_s if beside_others else time.monotonic() - self._since_s
        self._pace.end(_pair(step), took_s)
        what = self._named(step)
        counts = f"({took_s:.0f} s; {self._done} of {self._cases})"
        if step.word == "FAIL":
            self._failed = what, counts
            return
        usual = "ran" if step.word == "OK" else "not measured"
        self._results.append(f"{what}: {came_to or usual}")
        yield ResultLine(f"{self._results[-1]} {counts}")

    @property
    def _cases(self) -> int:
        return self._done + self._left + self._to_come

    def _doing(self, submitted: Step) -> Iterator[str]:
        """Say of the first case that is submitted whether it waits, or runs."""
        why, what = self._waits_for(submitted), self._named(submitted)
        what += f" and {len(self._begun) - 1} more" * (len(self._begun) > 1)
        doing = f"waiting {why} for {what} to start" if why else f"running {what}"
        if why is None:
            doing = self._said or f"submitting {what}"
        if doing != self._said:
            self._since_s = time.monotonic()
            seconds = None if why != "" else self._pace.of(_pair(submitted), self._left)
            cases = self._cases if self._left else 0
            own_s, all_s = seconds or (None, 0.0)
            of = (*self._results,), self._done, cases
            yield ProgressLine(doing, datetime.datetime.now(), own_s, all_s, *of)
        if why != "":
            self._running, self._said = "", doing
        else:
            self._submitted, self._running, self._said = None, what, doing


class Pace:
    """How long the cases that wait will take: as foreseen, times what those that ended show.

    ``waiting_s`` are the seconds of each case by its check and stack, ``side_by_side`` is how many
    run at once, on average. Where nothing is foreseen, they will take as long as those that ended.
    """

    def __init__(
        self, waiting_s: Mapping[tuple[str, str], Sequence[float]], side_by_side: float = 1.0
    ) -> None:
        self._side_by_side = side_by_side
        self._waiting = {pair: [*seconds] for pair, seconds in waiting_s.items()}
        self._foreseen_s = self._took_s = _AS_FORESEEN_S
        self._ended_s: list[float] = []

    def end(self, pair: tuple[str, str], took_s: float) -> None:
        """Take note that a case ended, so many seconds after it began."""
        # What is skipped, or fails at once, foretells nothing.
        self._ended_s += [took_s] * (took_s >= 1.0)
        if seconds := self._waiting.get(pair):
            self._foreseen_s += seconds.pop()
            self._took_s += took_s

    def of(self, pair: tuple[str, str], left: int = 0) -> tuple[float, float] | None:
        """Return the seconds of the next case of a check and a stack, and of all that wait.

        ``left`` cases do. None where nothing is known of it.
        """
        seconds = self._waiting.get(pair)
        if not seconds:
            mean_s = statistics.fmean(self._ended_s) if self._ended_s and not self._waiting else 0.0
            return (mean_s, left * mean_s / self._side_by_side) if mean_s else None
        slower = self._took_s / self._foreseen_s
        all_s = max(seconds[-1], sum(map(sum, self._waiting.values())) / self._side_by_side)
        return slower * seconds[-1], slower * all_s


def results_of(record: CaseRecord) -> str:
    """Return what the first screen will show of a case, such as ``123 Gflop/s``.

    What others disturbed is a bound: noise makes a launch slower, never faster.
    """
    if record.unavailable:
        return "not launched" if record.not_launched else "not available here"
    known, results = descriptor_of(record.check), []
    headlines = [one for one in every_headline() if one.first and one.check == record.check]
    shown = [s for s in record.samples if any(headline.shows(s) for headline in headlines)]
    needed = record.launches_needed, record.check
    figures = sampled_figures(shown, record.launches, *needed)
    for headline in headlines:
        mine = {f.estimate.value: f for f in figures if headline.shows(f.sample)}
        if not mine:
            continue
        better = next(iter(mine.values())).sample.better
        value = headline.picked(mine, better)
        bound = AT_LEAST[better] if mine[value].excuse else ""
        doubt = DOUBTFUL if not bound and known.doubt(mine[value].sample, value) else ""
        name = f"{headline.first} " if headline.first != known.title else ""
        number = rounded(value * headline.scale)
        results.append(f"{name}{bound}{number}{doubt} {headline.unit}")
    return ", ".join(results)


def _pair(step: Step) -> tuple[str, str]:
    return step.name.split()[0], step.stack


def _what(step: Step) -> str:
    return f"{_benchmark(step)} with {step.stack}"


def _benchmark(step: Step) -> str:
    """Return what a case runs: the benchmark, where it is its first check, and its layout."""
    check = step.name.split()[0]
    return _readable(step.name).replace(check, title_of(check), 1)


def _readable(name: str) -> str:
    """Return ``C (2 processes, packed)`` of ReFrame's ``C %process_count=2 %node_usage=packed``."""
    check, *parameters = name.split(" %")
    said = []
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.startswith("."):
            value = f"{key[1:]}={value}"
        elif value.isdigit():
            value = counted(int(value), "process") if key == "process_count" else f"{key}={value}"
        said.append(value)
    return f"{check} ({', '.join(said)})" if said else check
