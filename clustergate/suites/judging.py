"""The newest session of a suite, judged by those before it, as a run of the suite's own checks.

The same judge, confirmation and report: what looks slow is confirmed by what ReFrame launched
again in the session (``--max-retries``, ``--repeat``), and by the sessions right before it.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clustergate.benchmarks.registry import describe
from clustergate.core.figures import name_of
from clustergate.core.model import (
    CHANGED,
    LAUNCHED_AGAIN,
    Anchor,
    Better,
    Case,
    CaseId,
    CaseRecord,
    CaseState,
    Conditions,
    Evidence,
    Figure,
    Judgement,
    NodeFacts,
    Reference,
    Run,
    Sample,
    Verdict,
)
from clustergate.core.notation import counted
from clustergate.core.reasons import Reason, Words
from clustergate.judge import assembly, confirmation
from clustergate.judge.assembly import Beside, Outcome, assemble
from clustergate.judge.baselines.proposals import (
    LEAST_TOLERANCE,
    Rule,
    measured_references,
    measured_runs,
)
from clustergate.judge.confirmation import SESSIONS_LEFT, TIMES, Launched
from clustergate.judge.disproof import (
    REFERENCE_BITS,
    REFERENCE_OUTGROWN,
    SLIPPED_POINT,
    SLIPPED_PREFIX,
)
from clustergate.judge.history.judged import judged_runs
from clustergate.judge.history.node_states import (
    NODES,
    describe_changes,
    states_by_digest,
)
from clustergate.judge.history.series import CaseKey, Point, Series, collect, key_of
from clustergate.judge.history.stored_runs import PastRun
from clustergate.judge.judging import NO_REFERENCE, tolerated_bound
from clustergate.judge.kinds import FigureId
from clustergate.judge.rules import BASELINE_UNKNOWN, CHANGE_CREPT
from clustergate.judge.runs import kind_in
from clustergate.judge.slow_nodes import slow_beside
from clustergate.suites import records
from clustergate.suites.records import MODE, Figures
from clustergate.suites.sessions import Result, Session, SuiteError
from clustergate.suites.settings import Settings
from clustergate.suites.usual import Coming, comings

RULE = Rule(shortest=datetime.timedelta(0))
"""As of a baseline, of any five sessions."""
_OUTDONE = {
    words.code for words in (REFERENCE_OUTGROWN, REFERENCE_BITS, SLIPPED_POINT, SLIPPED_PREFIX)
}
"""What is said of a typed reference, or one that was reviewed; sessions are neither."""
NEWEST, OLDEST = 1 + TIMES + RULE.most_runs, 10
"""So many sessions are read: the judged one, those that confirm, a baseline; and a first one."""

FIGURE_CHANGED = Words(
    "figure.changed",
    "{by} than before; which way is better is not known",
    remedy="tell it: --better {name}=lower or =higher, or in judge.yaml",
)
MAY_HAVE_CHANGED = Words(
    "figure.may-have-changed",
    "{by} than before, once; which way is better is not known",
    remedy="tell it: --better {name}=lower or =higher, or in judge.yaml",
)
SUITE_CREPT = Words(
    "suite.crept",
    "{by:percent} slower than in the first sessions, since {since}, usually within {usual:percent}",
    remedy="find out why; if it is to stay so, judge by later sessions alone: --since DAY",
)
SUITE_DAYS = Words(
    "suite.days",
    "sessions of {days:day|days} do not show how much such figures vary",
    remedy="run the suite on more days",
)
_OF_SUITES = {CHANGE_CREPT.code: SUITE_CREPT.code, BASELINE_UNKNOWN.code: SUITE_DAYS.code}
"""What is said of a baseline, in the words for sessions; the facts are the same."""
SUITE_BETTER = Words(
    "suite.better",
    "{times:.3g} times better than its sessions before",
    cause="the machine was changed, or the test does less than it did",
    remedy="see which; if it is to stay so, judge by later sessions alone: --since DAY",
)
SUITE_NO_REFERENCE = Words(
    "suite.no-reference",
    "fewer than {fewest} sessions before it have it",
    remedy="run the suite on more days",
)
SUITE_SCATTERS = Words(
    "suite.scatters",
    "its {sessions} sessions before are from {low} to {high}, too far apart to expect one",
    remedy="measure where nothing else runs, or launch more often (`--repeat 3`)",
)
SUITE_SHARED = Words(
    "suite.shared",
    "shared machine: nothing says that jobs of {partition} have their nodes for themselves",
    remedy="say so with --exclusive, by `exclusive: true` in judge.yaml, or `exclusive_access`",
)
SUITE_UNITS = Words(
    "suite.units",
    "{figure} was in {before} until {session} and is in {unit} now: those values are left out",
)
SUITE_NO_RATIO = Words(
    "suite.no-ratio",
    "{names:list} 0 or below, of which there is no ratio: not judged",
    remedy="let the test print more digits, or measure longer",
)
SUITE_RENAMED = Words(
    "suite.renamed",
    "{new} is new, and {old}, which has the same variables, did not run",
    remedy="if it was renamed, keep its history by `renamed: {{{old}: {new}}}` in judge.yaml",
)
SUITE_USUAL = Words(
    "suite.usual",
    "{by} slower, not confirmed",
    cause="as much came and went in {came} of {sessions} sessions",
    remedy="`{command}` launches it again",
)
SUITE_UNPROVEN = Words(
    "suite.unproven",
    "{tests:test|tests} proved nothing of their ranks: {names:list}",
    cause="{why}",
    remedy="their figures are judged all the same",
)
SUITE_NOT_RUN = Words(
    "suite.not-run",
    "{tests:test|tests} of the session before did not run: {names:list}",
)
SUITE_TWO = Words(
    "suite.two",
    "{tests:test|tests} called alike in two files, such as {test} in {file} and {other}: those are "
    "left out",
    remedy="give them different names, or keep the suites' reports apart",
)
SUITE_OTHERS = Words(
    "suite.others",
    "{sessions:session|sessions} of other suites left out: no test in common with {session}",
    remedy="name a session of theirs to see these",
)
SUITE_MOVED = Words(
    "suite.moved",
    "{tests:test|tests} moved to another file, such as {test} from {other} to {file}: kept as one",
    remedy="if it is another suite's, keep the suites' reports apart",
)


@dataclass(frozen=True)
class SuiteRun:
    """A judged session: the ``run`` as it is reported, and its figures ``over`` all sessions."""

    run: Run
    over: Sequence[Series] = ()


@dataclass
class _Suite:
    """Some sessions, the newest first, the first of which is judged, and what is known of them."""

    sessions: Sequence[Session]
    settings: Settings
    now: datetime.datetime
    notes: list[str] = field(default_factory=list)

    @property
    def session(self) -> Session:
        return self.sessions[0]

    @property
    def nodes(self) -> dict[str, NodeFacts]:
        stated: dict[str, bool] = {}
        for one in self.session.results:
            partition = f"{one.system}:{one.partition}"
            stated[partition] = stated.get(partition, False) or one.exclusive
        own = self.settings.exclusive
        return {
            name: NodeFacts(exclusive=seen if own is None else own) for name, seen in stated.items()
        }

    @property
    def exclusive(self) -> set[str]:
        return {name for name, one in self.nodes.items() if one.exclusive}


def judge_session(
    sessions: Sequence[Session],
    settings: Settings,
    run_id: str,
    now: datetime.datetime,
    *,
    strict: bool = False,
    place: str = "",
) -> SuiteRun:
    """Return the newest of some sessions, judged by the others.

    ``sessions`` are the newest first, and ``run_id`` is what its report is kept by; ``place`` is
    where they were read. Raises :class:`clustergate.suites.sessions.SuiteError` where none can be
    dated.
    """
    suite, figures = _suite_of(sessions, settings, now)
    directed = {key: one for key, one in figures.items() if one.better is not None}
    judged = _judged(suite, directed)
    changed: list[Case] = []
    if unknown := {key: one for key, one in figures.items() if one.better is None}:
        both = [
            _judged(
                suite, {key: dataclasses.replace(one, better=way) for key, one in unknown.items()}
            )
            for way in (Better.HIGHER, Better.LOWER)
        ]
        changed = [_two_sided(*pair) for pair in zip(both[0].cases, both[1].cases, strict=True)]
    cases = [_with_command(one, suite.session) for one in _together(judged.cases, changed)]
    evidence: list[Evidence] = []
    for one in cases:
        if why := confirmation.unconfirmed(one):
            of = _named_test(one)
            if usual := judged.usual.get(one.identity):
                each = why.facts.get("each")
                by = str(each[0]) if isinstance(each, list) else ""
                often = {"came": usual.came, "sessions": usual.sessions}
                why = SUITE_USUAL(by=by, command=one.command, **often)
            evidence.append(Evidence(LAUNCHED_AGAIN, Verdict.INCONCLUSIVE, (why,), of))
    evidence += _slow_nodes(judged.over, suite)
    moved = list(_changed_in(changed))
    if strict:
        evidence += moved
    suite.notes += [one.sentence for one in moved if not strict]
    suite.notes += _absent(suite) + _no_ratio(suite.session)
    newest = records.past_run(suite.session, figures, settings, now).records
    suite.notes += [*_unproven(suite.session), *assembly.disturbances(newest)]
    partitions = sorted({one.partition for one in cases})
    shared = [one for one in partitions if one not in suite.exclusive]
    suite.notes += [str(SUITE_SHARED(partition=one)) for one in shared]
    return SuiteRun(
        Run(
            run_id=run_id,
            system=suite.session.results[0].system if suite.session.results else "",
            mode=MODE,
            started=suite.session.started.isoformat(timespec="seconds"),
            duration_s=_duration_s(suite.session),
            cases=tuple(cases),
            notes=tuple(dict.fromkeys(suite.notes)),
            evidence=tuple(evidence),
            before=judged.before,
            sets=judged.beside.sets,
            sharing="shared machine" if shared else "exclusive nodes",
            finds=judged.beside.detectable,
            session=_told(suite, place),
            changes=tuple(_changed_nodes(suite, place)),
        ),
        judged.over,
    )


@dataclass(frozen=True)
class Past:
    """Sessions as stored runs, the oldest first.

    ``figures`` are those of a known direction, and ``unknown`` the names of the others; ``nodes``
    tell whether jobs have theirs for themselves. ``notes`` are on what is left out.
    """

    runs: Sequence[PastRun]
    figures: Figures
    unknown: Sequence[str]
    nodes: Mapping[str, NodeFacts]
    notes: Sequence[str]

    @property
    def exclusive(self) -> set[str]:
        """The partitions where a job has its nodes for itself."""
        return {name for name, one in self.nodes.items() if one.exclusive}


def past_of_suite(sessions: Sequence[Session], settings: Settings, now: datetime.datetime) -> Past:
    """Return sessions, the newest first, as runs that history, comparison and baseline take.

    They are those of the suite of the newest. Raises
    :class:`clustergate.suites.sessions.SuiteError` where none can be dated.
    """
    suite, figures = _suite_of(sessions, settings, now)
    directed = {key: one for key, one in figures.items() if one.better is not None}
    runs = [records.past_run(x, directed, settings, now) for x in reversed(suite.sessions)]
    unknown = [".".join(key) for key in figures if key not in directed]
    return Past(runs, directed, unknown, suite.nodes, suite.notes)


def references_of_suite(past: Past) -> dict[tuple[CaseKey, str], Reference]:
    """Return what the sessions of a suite expect of the next one, by case and figure."""
    return _references(collect(past.runs, past.nodes), "", past.exclusive)


def _named_test(case: Case) -> str:
    parameters = dict(case.parameters).get("parameters", "")
    return f"{' '.join(filter(None, [case.check, parameters]))} with {case.stack}"


def _told(suite: _Suite, place: str) -> str:
    earlier, started = len(suite.sessions) - 1, suite.session.started
    of = f"the session {suite.session.session_id} of {started:%Y-%m-%d %H:%M}"
    of += f" in {place}" if place else ""
    proofs = [one.proof for one in suite.session.results if one.proof]
    asked = [one for one in proofs if one.launches or one.unproven or one.complaints]
    proved = [one for one in asked if one.is_proven]
    ranks = f"; {len(proved)} of {counted(len(asked), 'test')} proved library, nodes and cores"
    return f"{of}, beside {counted(earlier, 'earlier session')}{ranks if asked else ''}"


def _duration_s(session: Session) -> float:
    return (session.ended - session.started).total_seconds() if session.ended else 0.0


# --- which sessions -------------------------------------------------------------------------------


def _suite_of(
    sessions: Sequence[Session], settings: Settings, now: datetime.datetime
) -> tuple[_Suite, Figures]:
    """Return the suite of the newest session that can be dated, and what its figures are.

    Left out, and told, are the sessions of other suites, and tests of other files that are called
    alike. Raises :class:`SuiteError`.
    """
    doubts = [records.doubt_of(one, now) for one in sessions]
    dated = [one for one, doubt in zip(sessions, doubts, strict=True) if doubt is None]
    if not dated and doubts[0]:
        raise SuiteError(doubts[0])
    apart, moved = _other_files(dated, settings)

    def is_of(session: Session) -> Session:
        own = [x for x in session.results if _file_of(x, settings) not in apart]
        return dataclasses.replace(session, results=own)

    own = [dated[0], *(one for one in map(is_of, dated[1:]) if one.results)]
    of_suite = _with_its_tests(own, settings)
    suite = _Suite(of_suite, settings, now)
    figures = records.figures_in(suite.sessions, settings)
    describe(records.descriptors(figures))
    suite.notes += [str(why) for why in doubts if why]
    suite.notes += [*_files_told(dated[0], settings, apart, moved), *_units(suite, figures)]
    if others := len(own) - len(of_suite):
        suite.notes.append(str(SUITE_OTHERS(sessions=others, session=suite.session.session_id)))
    return suite, figures


def _with_its_tests(sessions: Sequence[Session], settings: Settings) -> list[Session]:
    """Return the newest session, and those before it that are of its suite.

    They have a test of it, or one of another session that is. Several suites may leave their
    sessions in one place. Where none has, all its tests may be renamed, and all are returned.
    """
    tests = [{settings.name_now(one.test) for one in each.results} for each in sessions]
    own, known = {0}, set(tests[0])
    while more := {k for k, here in enumerate(tests) if k not in own and here & known}:
        own |= more
        known = known.union(*(tests[k] for k in more))
    return [one for k, one in enumerate(sessions) if k in own or len(own) == 1]


_File = tuple[str, str]
"""A test, and the file that it stands in: a clone lies elsewhere, its folder and name tell it."""
_Files = Mapping[_File, Result]
"""Of each, its newest result."""


def _file_of(result: Result, settings: Settings) -> _File:
    is_named = not result.file or result.test in settings.renamed
    tail = "" if is_named else "/".join(result.file.split("/")[-2:])
    return settings.name_now(result.test), tail


def _other_files(sessions: Sequence[Session], settings: Settings) -> tuple[_Files, _Files]:
    """Return the files of tests called as those of the newest session: of others, and as it was.

    Tests are known by their names. A file that was last seen before that of today was first is the
    same, which moved; where both were seen in turn, two suites stand in one place.
    """
    today = dict(_file_of(x, settings) for x in sessions[0].results)
    seen: dict[_File, list[int]] = {}
    of: dict[_File, Result] = {}
    for place, session in enumerate(sessions):
        for x in session.results:
            file = _file_of(x, settings)
            seen.setdefault(file, []).append(place)
            of.setdefault(file, x)
    others = [file for file in of if file[1] and today.get(file[0], file[1]) not in ("", file[1])]
    apart = [file for file in others if seen[file][0] < seen[file[0], today[file[0]]][-1]]
    return {x: of[x] for x in apart}, {x: of[x] for x in others if x not in apart}


def _files_told(newest: Session, settings: Settings, apart: _Files, moved: _Files) -> Iterator[str]:
    whole = {settings.name_now(x.test): x.file for x in newest.results}
    for words, some in ((SUITE_TWO, apart), (SUITE_MOVED, moved)):
        for (test, _), one in [*some.items()][:1]:
            tests = len({name for name, _ in some})
            yield str(words(tests=tests, test=test, file=whole[test], other=one.file))


def _units(suite: _Suite, figures: Figures) -> list[str]:
    notes: dict[tuple[str, str], str] = {}
    for session in suite.sessions:
        for result in session.results:
            for value in result.values:
                key = (suite.settings.name_now(result.test), value.name)
                if value.unit != figures[key].unit and key not in notes:
                    facts = {"figure": ".".join(key), "unit": figures[key].unit or "no unit"}
                    before = value.unit or "no unit"
                    said = SUITE_UNITS(before=before, session=session.session_id, **facts)
                    notes[key] = str(said)
    return [*notes.values()]


def _no_ratio(session: Session) -> list[str]:
    names = {f"{x.test}.{v.name}": None for x in session.results for v in x.values if v.value <= 0}
    return [str(SUITE_NO_RATIO(names=[*names][:3]))] if names else []


def _absent(suite: _Suite) -> list[str]:
    """Return which tests of the session before did not run, and which may be renamed."""
    if len(suite.sessions) < 2:
        return []

    def variables(session: Session) -> dict[str, frozenset[str]]:
        names_of: dict[str, set[str]] = {}
        for x in session.results:
            test = suite.settings.name_now(x.test)
            names_of.setdefault(test, set()).update(v.name for v in x.values)
        return {test: frozenset(names) for test, names in names_of.items()}

    here, before = variables(suite.session), variables(suite.sessions[1])
    ever = {test for one in suite.sessions[1:] for test in variables(one)}
    gone = {test: None for test in before if test not in here}
    new = {test: names for test, names in here.items() if test not in ever and names}
    said = []
    for old in [*gone]:
        alike = [test for test, names in new.items() if names == before[old]]
        if len(alike) == 1:
            said.append(str(SUITE_RENAMED(new=alike[0], old=old)))
            del gone[old]
    if gone:
        said.append(str(SUITE_NOT_RUN(tests=len(gone), names=[*gone][:3])))
    return said


# --- what ranks and nodes told --------------------------------------------------------------------


def _unproven(session: Session) -> list[str]:
    tests: dict[Reason, list[str]] = {}
    for one in session.results:
        for why in one.proof.unproven if one.proof else ():
            tests.setdefault(why, []).append(one.test)
    return [
        str(SUITE_UNPROVEN(tests=len(some), names=some[:3], why=str(why)))
        for why, some in tests.items()
    ]


def _changed_nodes(suite: _Suite, place: str) -> list[str]:
    """Return what changed on nodes since they told it last, of those that told it now."""
    now, before = (
        {node: digest for one in some for x in one.results for node, digest in _digests(x).items()}
        for some in (suite.sessions[:1], suite.sessions[:0:-1])
    )
    other = [node for node, digest in now.items() if before.get(node, digest) != digest]
    folder = Path(place)
    kept = states_by_digest(folder if folder.is_dir() else folder.parent) if other else {}
    known = [node for node in other if before[node] in kept and now[node] in kept]
    states = [{node: kept[of[node]] for node in known} for of in (before, now)]
    silent = [node for node in other if node not in known]
    return [
        *describe_changes(*states),
        *(f"{node}, and {NODES} beside the reports does not say how" for node in silent),
    ]


def _digests(result: Result) -> Mapping[str, str]:
    return result.proof.details.get("node_states", {}) if result.proof else {}


# --- the judge ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Judged:
    """What the judge says of a session's figures, with these ``over`` all sessions."""

    cases: tuple[Case, ...]
    over: Sequence[Series]
    beside: Beside
    before: Mapping[tuple[object, str], float]
    usual: Mapping[CaseId, Coming]


def _judged(suite: _Suite, figures: Figures) -> _Judged:
    settings, session = suite.settings, suite.session
    past = [records.past_run(one, figures, settings, suite.now) for one in reversed(suite.sessions)]
    over = collect(past, suite.nodes)
    references = _references(over, past[-1].run_id, suite.exclusive)

    def reference_of(
        check: str, partition: str, stack: str, conditions: Conditions, sample: Sample
    ) -> Reference | None:
        record = CaseRecord("", check, stack, partition, conditions)
        return references.get((key_of(record), name_of(sample)))

    def launched(
        run: Sequence[CaseRecord], of: Sequence[Outcome], watched: Collection[frozenset[FigureId]]
    ) -> tuple[Beside, dict[CaseId, Case]]:
        beside = assembly.compared(run, reference_of, suite.nodes, watched=watched)
        cases = assemble((), of, run, mode=MODE, beside=beside)
        return beside, {one.identity: one for one in cases}

    first = past[-1].records
    timed = {one.name for one in first if one.samples}
    ended = [
        one
        for one in records.outcomes(session, settings)
        if one.name in timed or one.result != "pass"
    ]
    # Those whose figures are of no known direction are judged by themselves.
    ended = [one for one in ended if one.name in timed or not _is_timed(one, session, settings)]
    beside, cases = launched(first, ended, ())
    slow = confirmation.suspicious([*cases.values()])
    hosts = {one.name: one.hosts for one in first}
    names = {one.identity: one.name for one in ended}
    looks: dict[CaseId, list[Launched]] = {}
    passed = [dataclasses.replace(one, result="pass", phase="", reason="") for one in ended]
    for again in records.again_in(session, figures, settings):
        own = {one.name: one for one in again if one.samples}
        wanted = [one for one in passed if one.name in own and one.identity in slow]
        if wanted:
            others = [one for one in first if one.name not in own]
            _, each = launched([*own.values(), *others], wanted, beside.suspected)
            for identity, case in each.items():
                looked = Launched(case, own[names[identity]].hosts)
                looks.setdefault(identity, []).append(looked)
    before = {identity: cases[identity] for identity in slow if identity not in looks}
    for run in reversed(past[:-1]):
        # Each test is confirmed by those sessions before that have it.
        before = {one: case for one, case in before.items() if len(looks.get(one, ())) < TIMES}
        own = {one.name: one for one in run.records if one.samples}
        wanted = [one for one in passed if one.name in own and one.identity in before]
        if not wanted:
            continue
        _, each = launched([*own.values()], wanted, beside.suspected)
        for identity, case in each.items():
            before[identity] = confirmation.only_slow(case, before[identity])
            looked = Launched(before[identity], own[names[identity]].hosts)
            looks.setdefault(identity, []).append(looked)
    keys = {one.name: key_of(one) for one in first}
    earlier: dict[CaseKey | None, dict[str, list[float]]] = {}
    for one in over:
        points = [x for x in one.points if x.counts and x.run_id != past[-1].run_id]
        earlier.setdefault(one.case, {})[one.name] = [x.estimate.value for x in points]
    decided = []
    for identity, case in cases.items():
        if identity in slow:
            case = _with_command(case, session)
            seen = looks.get(identity, [])
            count = sum(bool(one.case.figures or one.case.groups) for one in seen) + 1
            why = SESSIONS_LEFT(count=count)
            of = Launched(case, hosts.get(names[identity], ()))
            case = confirmation.decided(of, seen, MODE, why)
        decided.append(_reworded(case, earlier.get(keys.get(names[identity]), {})))
    values: dict[tuple[object, str], float] = {
        (one.case, one.name): one.points[-2].estimate.value
        for one in over
        if len(one.points) > 1 and one.points[-1].run_id == past[-1].run_id
    }
    usual = comings(over, [one.run_id for one in past])
    of_cases = {
        one.identity: coming
        for one in decided
        if (key := keys.get(names[one.identity])) and (coming := usual.get(key)) and coming.is_usual
    }
    return _Judged(tuple(decided), over, beside, values, of_cases)


def _is_timed(outcome: Outcome, session: Session, settings: Settings) -> bool:
    return outcome.result in ("pass", "fail") and any(
        one.values and records.record_name(one, settings) == outcome.name for one in session.results
    )


def _references(
    over: Sequence[Series], judged: str, exclusive: Collection[str]
) -> dict[tuple[CaseKey, str], Reference]:
    """Return what earlier sessions expect of the ``judged`` one, without what was slow in them."""
    earlier = [
        dataclasses.replace(one, points=tuple(p for p in one.points if p.run_id != judged))
        for one in over
    ]
    standards = _without_slow(earlier, judged_runs(earlier, exclusive).no_standard)
    standards = _without_slow(standards, _beyond_bounds(standards, exclusive))
    references = measured_references(standards, exclusive, RULE)
    every = sorted({(p.started, p.run_id) for one in earlier for p in one.points})
    if len(every) < OLDEST + RULE.most_runs:
        return references
    # What became slower for good is the standard once, and the first sessions stay it.
    later = {run for _, run in every[OLDEST:]}
    first = measured_runs([_without(one, later) for one in earlier], exclusive, RULE)
    return {
        key: dataclasses.replace(one, anchor=Anchor(known)) if (known := first.get(key)) else one
        for key, one in references.items()
    }


def _beyond_bounds(
    series: Sequence[Series], exclusive: Collection[str]
) -> dict[tuple[CaseKey, str], set[str]]:
    """Return the sessions in which a figure was beyond its bound while one day was known of it.

    From the second day on the judge of sets tells what was slow; until then bounds alone do, in
    those sessions as in the newest one.
    """
    slow: dict[tuple[CaseKey, str], set[str]] = {}
    of_run: dict[str, list[tuple[Series, Point]]] = {}
    pairs = [(one, point) for one in series for point in one.points if point.counts]
    for one, point in sorted(pairs, key=lambda pair: (pair[1].started, pair[1].run_id)):
        of_run.setdefault(point.run_id, []).append((one, point))
    standard: dict[tuple[CaseKey, str], list[Point]] = {}
    for run, measured in of_run.items():
        before = [
            dataclasses.replace(one, points=tuple(known))
            for one, point in measured
            if _is_worst_of_a_day(one, point, known := standard.get((one.case, one.name), []))
        ]
        references = measured_references(before, exclusive, RULE, compared=len(series))
        for one, point in measured:
            key = (one.case, one.name)
            bound = tolerated_bound(references[key], one.better) if key in references else None
            if bound is not None and one.better.worse_by(point.estimate.value, bound) > 0:
                slow.setdefault(key, set()).add(run)
            else:
                standard.setdefault(key, []).append(point)
    return slow


def _is_worst_of_a_day(one: Series, point: Point, before: Sequence[Point]) -> bool:
    values = [each.estimate.value for each in (point, *before)]
    if len(before) < RULE.fewest_runs or one.better is Better.NEITHER or min(values) <= 0:
        return False
    is_worst = all(one.better.worse_by(values[0], value) > LEAST_TOLERANCE for value in values[1:])
    return is_worst and len({each.started.date() for each in before}) == 1


def _without_slow(
    series: Iterable[Series], slow: Mapping[tuple[CaseKey, str], Collection[str]]
) -> list[Series]:
    return [_without(one, slow.get((one.case, one.name), ())) for one in series]


def _without(one: Series, runs: Collection[str]) -> Series:
    points = tuple(point for point in one.points if point.run_id not in runs)
    return dataclasses.replace(one, points=points)


def _reworded(case: Case, earlier: Mapping[str, Sequence[float]]) -> Case:
    """Return a case with reasons that hold for somebody's suite.

    ``earlier`` are the values of its figures in sessions before, by their names.
    """

    def said(judgement: Judgement, values: Sequence[float] = ()) -> Judgement:
        known = sorted(values)
        scatters = len(known) >= RULE.fewest_runs
        verdict, reasons = judgement.verdict, list(judgement.reasons)
        for place, why in enumerate(judgement.reasons):
            if why.code in _OF_SUITES:
                reasons[place] = Reason(_OF_SUITES[why.code], why.facts)
            elif why.code in _OUTDONE:
                times = float(str(why.facts.get("times") or why.facts["ratio"]))
                reasons[place] = SUITE_BETTER(times=max(times, 1 / times))
            elif why.code == NO_REFERENCE.code and scatters:
                low, high = (f"{one:.4g}" for one in (known[0], known[-1]))
                reasons[place] = SUITE_SCATTERS(sessions=len(known), low=low, high=high)
                verdict = Verdict.INCONCLUSIVE
            elif why.code == NO_REFERENCE.code:
                reasons[place] = SUITE_NO_REFERENCE(fewest=RULE.fewest_runs)
        return Judgement(verdict, tuple(reasons))

    figures = (
        dataclasses.replace(x, judgement=said(x.judgement, earlier.get(name_of(x), ())))
        for x in case.figures
    )
    groups = (dataclasses.replace(x, judgement=said(x.judgement)) for x in case.groups)
    return dataclasses.replace(case, figures=tuple(figures), groups=tuple(groups))


def _with_command(case: Case, session: Session) -> Case:
    if case.command and session.configs and " -C " not in case.command:
        configs = " ".join(f"-C {one}" for one in session.configs)
        return dataclasses.replace(
            case, command=case.command.replace("reframe", f"reframe {configs}", 1)
        )
    return case


# --- both ways ------------------------------------------------------------------------------------


def _two_sided(higher: Case, lower: Case) -> Case:
    """Return a case whose figures are judged as better higher, and as better lower, as changed."""
    figures = [_changed(*pair) for pair in zip(higher.figures, lower.figures, strict=True)]
    return dataclasses.replace(higher, figures=tuple(figures), groups=())


def _changed(higher: Figure, lower: Figure) -> Figure:
    for one, word in ((higher, "lower"), (lower, "higher")):
        of = one.judgement
        facts = {"name": f"{one.benchmark}.{one.metric}"}
        codes = {why.code for why in of.reasons}
        if of.verdict is Verdict.REGRESSION:
            said = FIGURE_CHANGED(by=_by(one, word), **facts)
            return _named(one, Judgement(Verdict.INCONCLUSIVE, (said, *of.reasons)))
        if confirmation.SESSION_NOT_CONFIRMED.code in codes:
            said = MAY_HAVE_CHANGED(by=_by(one, word), **facts)
            return _named(one, Judgement(Verdict.INCONCLUSIVE, (said,)))
    if Verdict.PASS in (higher.judgement.verdict, lower.judgement.verdict):
        both = {higher.judgement.verdict, lower.judgement.verdict}
        if both == {Verdict.PASS}:
            return _named(higher, higher.judgement)
    if higher.judgement.verdict is Verdict.NO_REFERENCE:
        return _named(higher, higher.judgement)
    worse = higher if higher.judgement.verdict is not Verdict.PASS else lower
    return _named(higher, Judgement(Verdict.INCONCLUSIVE, worse.judgement.reasons))


def _named(figure: Figure, judgement: Judgement) -> Figure:
    return dataclasses.replace(figure, better=Better.NEITHER, judgement=judgement)


def _by(figure: Figure, word: str) -> str:
    for why in figure.judgement.reasons:
        reference = why.facts.get("reference")
        if isinstance(reference, float) and reference and figure.estimate:
            return f"{abs(figure.estimate.value / reference - 1):.0%} {word}".replace("%", " %")
        by = why.facts.get("by")
        if isinstance(by, float):
            return f"{by:.0%} {word}".replace("%", " %")
    return word


def _changed_in(cases: Iterable[Case]) -> Iterator[Evidence]:
    for case in cases:
        for one in case.figures:
            first = one.judgement.reasons[0]
            if first.code == FIGURE_CHANGED.code:
                of = f"{one.benchmark}.{one.metric} with {case.stack}"
                yield Evidence(CHANGED, Verdict.REGRESSION, (first,), of)


def _together(cases: Sequence[Case], changed: Sequence[Case]) -> list[Case]:
    by_identity = {one.identity: one for one in cases}
    for one in changed:
        known = by_identity.get(one.identity)
        if known is None or (known.state is CaseState.FAILED and not known.figures):
            by_identity.setdefault(one.identity, one)
        else:
            figures = (*known.figures, *one.figures)
            by_identity[one.identity] = dataclasses.replace(known, figures=figures)
    return [*by_identity.values()]


# --- nodes ----------------------------------------------------------------------------------------


def _slow_nodes(over: Sequence[Series], suite: _Suite) -> list[Evidence]:
    """Return which nodes are slow beside the others of the newest session, test by test.

    That is of tests that ran on many nodes, one on each (``--distribute``).
    """
    newest = suite.session.session_id
    looks: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for one in over:
        recent = [p for p in one.points if p.counts and p.estimate.value > 0][-TIMES - 1 :]
        if not recent or recent[-1].run_id != newest or len(recent[-1].nodes) != 1:
            continue
        node = recent[-1].nodes[0]
        layout = one.case.layout.removesuffix(f"on {node}")
        if layout == one.case.layout:
            continue
        costs = [one.better.worse_by(p.estimate.value, 1.0) for p in reversed(recent)]
        test = (one.case.check, one.metric, one.case.partition, one.case.stack, layout)
        looks.setdefault(test, {})[node] = costs
    named: dict[str, Evidence] = {}
    for (check, metric, *_), of_nodes in looks.items():
        kind = kind_in(check, check, metric, None)
        # Slow in three in a row, to the last one, or in fewer.
        for times in range(TIMES + 1, 0, -1):
            newest_of = {node: costs[:times] for node, costs in of_nodes.items()}
            for evidence in slow_beside(f"{check} {metric}", newest_of, kind):
                known = named.get(evidence.of)
                if known is None or evidence.verdict.severity > known.verdict.severity:
                    named[evidence.of] = evidence
    return [*named.values()]
