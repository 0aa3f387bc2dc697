"""Sessions as stored runs: the form in which the judge takes them. Pure.

What differs from a run of the suite's own checks is the descriptor alone, which
:func:`descriptors` makes of what the tests' own files tell.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clustergate.benchmarks.descriptor import Benchmark, Check
from clustergate.benchmarks.registry import NO_FORMAT
from clustergate.core.model import Better, CaseRecord, Launch, Sample
from clustergate.core.reasons import Reason, Words
from clustergate.judge.assembly import Outcome
from clustergate.judge.history.stored_runs import PastRun
from clustergate.suites.sessions import Proven, Result, Session
from clustergate.suites.settings import Settings
from clustergate.suites.units import better_by_bounds, better_by_unit, kind_by_unit

MODE = "suite"
"""The effort of all tests of a suite: they are judged beside each other."""
_SKEW = datetime.timedelta(hours=1)
_TIMED = ("pass", "fail")

SUITE_FUTURE = Words(
    "suite.future",
    "the session {session} is left out: it began at {started}, which is to come",
    remedy="correct the clock, and remove that session (`reframe --delete-stored-sessions`)",
)
SUITE_BACKWARDS = Words(
    "suite.backwards",
    "the session {session} is left out: it ended at {ended}, before it began at {started}",
    remedy="see whether the clock was set back meanwhile",
)


@dataclass(frozen=True)
class Known:
    """What a figure is: its unit, which way is better, None for unknown, and of which kind."""

    unit: str
    better: Better | None
    kind: str


Figures = Mapping[tuple[str, str], Known]
"""What is known of variables, by test and name."""


def figures_in(sessions: Iterable[Session], settings: Settings) -> dict[tuple[str, str], Known]:
    """Return what is known of the variables of some sessions, the newest first.

    Where the newest session with it tells no direction by its reference, an older one may.
    """
    known: dict[tuple[str, str], Known] = {}
    for session in sessions:
        for result in session.results:
            test = settings.name_now(result.test)
            for value in result.values:
                key = (test, value.name)
                if key not in known or known[key].better is None:
                    better = (
                        settings.direction(*key)
                        or better_by_unit(value.unit)
                        or better_by_bounds(value.lower, value.upper)
                    )
                    unit = known[key].unit if key in known else value.unit
                    known[key] = Known(unit, better, kind_by_unit(unit))
    return known


def descriptors(figures: Figures) -> list[Benchmark]:
    """Return what the judge is to know of tests: of which kind their figures are, and no limit."""
    kinds: dict[str, dict[str, str]] = {}
    for (test, variable), known in figures.items():
        kinds.setdefault(test, {})[f"{test}.{variable}"] = known.kind
    return [
        Benchmark(
            name=test,
            title=test,
            format=NO_FORMAT,
            checks=(Check(test, test),),
            limits=lambda one: (),
            kinds=own,
        )
        for test, own in kinds.items()
    ]


def past_run(
    session: Session,
    figures: Figures,
    settings: Settings,
    now: datetime.datetime,
    counts: Callable[[Result], bool] = lambda result: True,
) -> PastRun:
    """Return a session as a stored run.

    Retries are no launches of their own: what ReFrame launched again confirms, see
    :func:`again_in`.
    """
    first = [one for one in _attempts(session.results, settings)[0].values() if counts(one[0])]
    records = [_record(some, figures, settings) for some in first]
    return PastRun(session.session_id, session.started, records, doubt_of(session, now))


def again_in(session: Session, figures: Figures, settings: Settings) -> list[list[CaseRecord]]:
    """Return what ReFrame launched again in a session, retry by retry.

    Repetitions (``--repeat``) count as well, each by itself.
    """
    first, *more = _attempts(session.results, settings)
    most = max((len(some) for some in first.values()), default=1)
    repeats = [
        [_record([some[k]], figures, settings) for some in first.values() if k < len(some)]
        for k in range(1, most)
    ]
    return repeats + [[_record(x, figures, settings) for x in one.values()] for one in more]


def doubt_of(session: Session, now: datetime.datetime) -> Reason | None:
    """Return why the date of a session is not to be believed, None where it is."""
    started = f"{session.started:%Y-%m-%d %H:%M}"
    if session.started > now + _SKEW:
        return SUITE_FUTURE(session=session.session_id, started=started)
    if session.ended and session.ended < session.started:
        ended = f"{session.ended:%Y-%m-%d %H:%M}"
        return SUITE_BACKWARDS(session=session.session_id, started=started, ended=ended)
    return None


def record_name(result: Result, settings: Settings) -> str:
    """Return what tells a test from all others of its session."""
    test = settings.name_now(result.test)
    where = f"{result.system}:{result.partition}+{result.environ}"
    return " ".join(filter(None, [test, result.parameters, where, result.node, f"{result.tasks}"]))


def outcomes(session: Session, settings: Settings) -> list[Outcome]:
    """Return what ReFrame says of each test of a session, by its last attempt."""
    last = {record_name(one, settings): one for one in session.results if one.result != "skip"}
    return [
        Outcome(
            name,
            settings.name_now(one.test),
            one.environ,
            one.result,
            one.phase,
            one.reason,
            duration_s=one.seconds,
            key=one.hash,
            partition=f"{one.system}:{one.partition}",
            parameters=tuple(_parameters(one)),
        )
        for name, one in last.items()
    ]


def _parameters(result: Result) -> Iterator[tuple[str, str]]:
    yield "tasks", str(result.tasks)
    if result.parameters:
        yield "parameters", result.parameters
    if result.node:
        yield "node", result.node


def _attempts(results: Sequence[Result], settings: Settings) -> list[dict[str, list[Result]]]:
    """Return what was timed by attempts, by the names of records.

    The first attempt of a test is the first one that left figures.
    """
    by_name: dict[str, dict[int, list[Result]]] = {}
    for one in results:
        if one.values and one.result in _TIMED:
            of = by_name.setdefault(record_name(one, settings), {})
            of.setdefault(one.attempt, []).append(one)
    attempts: list[dict[str, list[Result]]] = [{}]
    for name, each in by_name.items():
        for place, attempt in enumerate(sorted(each)):
            if place == len(attempts):
                attempts.append({})
            attempts[place][name] = each[attempt]
    return attempts


def _record(launches: Sequence[Result], figures: Figures, settings: Settings) -> CaseRecord:
    first = launches[0]
    test = settings.name_now(first.test)
    nodes = max(len(one.nodes) for one in launches) or 1
    placement = ", ".join(filter(None, [first.parameters, first.node and f"on {first.node}"]))
    hosts = sorted({node for one in launches for node in one.nodes})
    made = [*_launches(launches)]
    proven = first.proof or Proven()
    # Where nobody proved them, the nodes are those that ReFrame names.
    proof = {**({"hosts": hosts} if hosts else {}), **proven.details.get("proof", {})}
    return CaseRecord(
        name=record_name(first, settings),
        check=test,
        stack=first.environ,
        partition=f"{first.system}:{first.partition}",
        conditions={
            "ranks": first.tasks,
            "placement": placement,
            "nodes": nodes,
            "mode": MODE,
        },
        samples=[
            Sample(test, name, known.unit, known.better or Better.NEITHER, {}, value, order)
            for order, (_, values) in enumerate(made)
            for (name, unit), value in values.items()
            if (known := figures.get((test, name))) and unit == known.unit
        ],
        launches=[replace(launch, order=order) for order, (launch, _) in enumerate(made)],
        command=command_of(first),
        complaints=proven.complaints,
        details={**proven.details, **({"proof": proof} if proof else {})},
    )


def _launches(results: Sequence[Result]) -> Iterator[tuple[Launch, dict[tuple[str, str], float]]]:
    """Yield the launches of a test's repetitions, each with its values by their names and units."""
    for one in results:
        proven = one.proof or Proven()
        values = {(x.name, x.unit): proven.values.get(x.name, (x.value,)) for x in one.values}
        node = one.nodes[0] if one.nodes else ""
        untold = Launch(0, one.completed - one.seconds, one.seconds, node)
        for place in range(max(map(len, values.values()))):
            launch = [*proven.launches[place : place + 1], untold][0]
            yield launch, {key: each[place] for key, each in values.items() if place < len(each)}


def command_of(result: Result, configs: Iterable[str] = ()) -> str:
    """Return the line that runs a test again."""
    which = f"-n /{result.hash}" if result.hash else f"-n '^{result.test}$'"
    file = [f"-c {result.file}"] if result.file else []
    config = [f"-C {one}" for one in configs]
    where = f"--system {result.system}:{result.partition} -p {result.environ}"
    return " ".join(["reframe", *config, *file, which, where, "-r"])
