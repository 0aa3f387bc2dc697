"""The vocabulary: metrics, rows, samples, references, verdicts, cases and runs, as plain data.

Nothing here reads a file, starts a process or looks at a clock, and nothing here imports another
room but for the words of reasons. A number walks through these types in one direction::

    benchmark text -> Row -> Sample -> Estimate -> Judgement -> report
"""

from __future__ import annotations

import datetime
import enum
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clustergate.core.reasons import (
    Fact,
    Reason,
    Words,
    sentence_of,
)

ConditionValue = str | int | float | bool
Conditions = Mapping[str, ConditionValue]
# Where progress goes, a sentence at a time.
Say = Callable[[str], None]


ERROR_OTHER = Words("error.other", "{sentence}", remedy="do what the sentence says")


class ClustergateError(Exception):
    """An error the user can act on: one sentence, no traceback.

    ``exit_status`` is what the command line ends with: 1 for bad data, 2 for a machine or an
    installation that cannot do what was asked. ``call`` is what its sentence goes on with, where
    that is not the call that it ends (:class:`clustergate.core.commands.Invocation`).
    """

    exit_status = 2
    call: Sequence[Sequence[str]] = ()

    def __init__(self, problem: str | Reason, /) -> None:
        """Tell it as a reason, or in a sentence of its own."""
        if not isinstance(problem, Reason):
            problem = ERROR_OTHER(sentence=problem)
        self.reason = problem
        super().__init__(str(problem))

    def at(self, where: str) -> ClustergateError:
        """Return it said of a place, such as ``file:line``."""
        return type(self)(self.reason.at(where))


class BadRequest(ClustergateError):
    """What was asked for cannot be: a name, an option or the data must be another."""

    exit_status = 1


def is_name(text: str) -> bool:
    """Tell whether a text can name a stack, a run, a system …: something, and no path.

    What has a name lies in a folder of that name.
    """
    return bool(text.strip()) and text not in (".", "..") and not {"/", "\0"} & {*text}


INPUT_NO_NAME = Words(
    "input.no-name",
    "{name!r} is no name of a {kind}",
    cause="a name is neither empty nor a path",
    remedy="if a variable stands for it, see that it is set",
)


def require_name(kind: str, text: str) -> str:
    """Return a name; raises :class:`BadRequest` for what is none, see :func:`is_name`."""
    if not is_name(text):
        raise BadRequest(INPUT_NO_NAME(kind=kind, name=text))
    return text


OUTPUT_WRONG = Words("output.wrong", "{problem}")


class OutputError(ClustergateError):
    """A benchmark's text cannot be trusted: cut off, damaged, failed or incomplete.

    ``line`` is the 1-based line the complaint is about, None when it is about the whole text.
    """

    exit_status = 1

    def __init__(
        self,
        problem: str | Reason,
        *,
        line: int | None = None,
        source: str = "output",
    ) -> None:
        """Tell what is wrong as a reason, or in a parser's own words."""
        self.line = line
        self.source = source
        where = source if line is None else f"{source}:{line}"
        if not isinstance(problem, Reason):
            problem = OUTPUT_WRONG(problem=problem)
        place: dict[str, Fact] = {"at": where, "source": source, "line": line}
        super().__init__(Reason(problem.code, {**place, **problem.facts}))
        self.message = str(self).removeprefix(f"{where}: ")


class Better(enum.Enum):
    """Which way a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"

    def worse_by(self, value: float, than: float) -> float:
        """Return the logarithm of a ratio, positive where ``value`` is worse than another.

        Raises ValueError where one of the two is not positive: such figures have no ratio.
        """
        if value <= 0.0 or than <= 0.0:
            raise ValueError(f"{value:g} against {than:g} has no ratio")
        ratio = math.log(value / than)
        return -ratio if self is Better.HIGHER else ratio


COMPUTE, MEMORY, LATENCY, BANDWIDTH, COLLECTIVE = KINDS = (
    "compute", "memory", "latency", "bandwidth", "collectives",
)  # fmt: skip
"""What a figure measures: those of a kind scatter alike, and change together."""
MESSAGES = "messages"
"""Latency or bandwidth, as their size says."""


@dataclass(frozen=True)
class Metric:
    """A measurable quantity: its name carries the unit, ``unit`` is how it is printed."""

    name: str
    unit: str
    better: Better


def _metrics(*definitions: tuple[str, str, Better]) -> dict[str, Metric]:
    return {name: Metric(name, unit, better) for name, unit, better in definitions}


# Value names that the parsers use and everything after them understands. A summary line of HPCC
# keeps HPCC's own name; clustergate.benchmarks.hpcc.output knows the metrics of those.
METRICS: Mapping[str, Metric] = _metrics(
    ("latency_us", "us", Better.LOWER),
    ("t_min_us", "us", Better.LOWER),
    ("t_avg_us", "us", Better.LOWER),
    ("t_max_us", "us", Better.LOWER),
    ("t_overlapped_us", "us", Better.LOWER),
    ("t_pure_us", "us", Better.LOWER),
    ("t_cpu_us", "us", Better.NEITHER),
    ("overlap_percent", "%", Better.HIGHER),
    ("bandwidth_mb_s", "MB/s", Better.HIGHER),
    ("message_rate_per_s", "1/s", Better.HIGHER),
    ("performance_gflops", "Gflop/s", Better.HIGHER),
    ("time_s", "s", Better.LOWER),
    ("efficiency_percent", "%", Better.HIGHER),
    ("gflops_per_w", "Gflop/s/W", Better.HIGHER),
    ("mflops_per_w", "Mflop/s/W", Better.HIGHER),
    ("mop_per_j", "Mop/J", Better.HIGHER),
    ("atom_steps_per_j", "1/J", Better.HIGHER),
    ("bandwidth_gb_s", "GB/s", Better.HIGHER),
    ("scaled_residual", "", Better.NEITHER),
    ("time_us", "us", Better.LOWER),
    ("p95_time_us", "us", Better.LOWER),
    ("overhead_us", "us", Better.LOWER),
    ("availability_percent", "%", Better.HIGHER),
    ("transfer_us", "us", Better.NEITHER),
    ("total_mop_per_s", "Mop/s", Better.HIGHER),
    ("performance_mflops", "Mflop/s", Better.HIGHER),
    ("atom_steps_per_s", "1/s", Better.HIGHER),
)


# Not frozen: a parser would spend half of its time on making it so.
@dataclass(slots=True)
class Row:
    """One line of figures that a benchmark printed.

    ``suite`` is the program (``HPL``, ``HPCC``, ``IMB-MPI1`` …), ``benchmark`` what it timed
    (``PingPong``, ``HPL``, ``StarDGEMM_Gflops``). ``conditions`` hold what the line says of its
    circumstances (``bytes``, ``processes``, ``groups``, ``mode``, ``n``, ``nb`` …), ``values`` the
    figures by metric name, with the unit in the name. ``status`` is ``ok``, or the word that the
    benchmark printed instead of figures (``out-of-mem``, ``time-out``, ``int-overflow``): such a
    row has no values and never passes. ``line`` is where it stands in the text, from 1.
    """

    suite: str
    benchmark: str
    conditions: Conditions
    values: Mapping[str, float]
    status: str = "ok"
    line: int = 0


@dataclass(frozen=True)
class Sample:
    """One value of a metric from one launch: ``order`` counts the launches of its case from 0."""

    benchmark: str
    metric: str
    unit: str
    better: Better
    conditions: Conditions
    value: float
    order: int = 0


def derived_sample(sample: Sample, metric: str, value: float, **more: ConditionValue) -> Sample:
    """Return what follows from a sample of the same launch: a metric of :data:`METRICS`.

    ``more`` are conditions beside the sample's own.
    """
    of = METRICS[metric]
    conditions = {**sample.conditions, **more}
    return replace(
        sample, metric=of.name, unit=of.unit, better=of.better, conditions=conditions, value=value
    )


@dataclass(frozen=True)
class Estimate:
    """What several samples say: a value with an interval of the stated confidence (0 to 1).

    ``low`` and ``high`` are None where a single sample gives no interval.
    """

    value: float
    low: float | None
    high: float | None
    confidence: float
    samples: int


@dataclass(frozen=True)
class Excuse:
    """What disturbances explain of a figure whose launches suffice for no verdict.

    Without them it would have been better at most ``factor`` times: 1 for nothing, infinite where
    that is not known. ``cause`` names the worst of them, ``doubt`` says why too few launches are
    left, and what to do about it.
    """

    factor: float
    cause: Reason
    doubt: Reason


@dataclass(frozen=True)
class BaselineRuns:
    """What each run of a baseline said of a figure: ``values`` in its unit, by ``runs``, their ids.

    ``days`` tells the day of each (ISO 8601), ``launches`` how many a run had. ``slow`` is the
    share of launches that were far worse than the reference (0 to 1), ``slow_together`` that of
    launches whose benchmark was so in all of its figures. ``repeated`` tells whether its benchmark
    can be launched several times, ``compared`` how many figures a whole run compares.
    ``distances`` tell how far its nodes were from each other in each run, of several nodes; they
    are empty where nobody knows.
    """

    runs: tuple[str, ...]
    days: tuple[str, ...]
    values: tuple[float, ...]
    launches: int
    compared: int = 1
    slow: float = 0.0
    slow_together: float = 0.0
    repeated: bool = True
    distances: tuple[str, ...] = ()


DISTANCES = ("same node", "same switch", "same group", "another group")
"""How far the nodes of a case can be from each other, the nearest first."""
UNKNOWN_DISTANCE = "unknown distance"


@dataclass(frozen=True)
class Anchor:
    """The first accepted ``baseline`` of a figure, and those that were accepted ``later``.

    Of these there are the last day (ISO 8601) and the median of what was new in each, in the
    figure's unit, the newest last.
    """

    baseline: BaselineRuns
    later: tuple[tuple[str, float], ...] = ()


OF_MORE_RANKS = "of {ranks:,} ranks, for as many as there are"
"""How the origin of a reference ends that follows from one of more ranks."""
MEASURED = "measured"
"""How the origin of a reference begins that runs of the machine made."""


@dataclass(frozen=True)
class Reference:
    """What to expect of a metric, and where that expectation came from.

    ``lower`` and ``upper`` are fractions of ``value`` as ReFrame counts them (-0.05 allows 5 %
    less), None for no bound on that side. ``origin`` is free text for the reader of a verdict,
    ``where`` the file and line to correct.
    ``baseline`` is known of references that were made from runs, ``processors`` are
    those of the runs' nodes, of which each case had so many ``nodes``, ``order`` is that of the
    matrix that they solved, and ``method`` is theirs, empty or 0 where unknown. ``more_ranks`` is
    the count of ranks that it was measured with, 0 where that is the figure's own. With a ``doubt``
    it can accuse, and nothing passes by it. Its ``anchor`` is None where it is its own. One that a
    person wrote ``by_hand`` is a floor or a ceiling, which the best launch meets. Its bound is that
    of the ``tolerance`` that a person wrote for figures of its kind, a fraction, None for none.
    """

    value: float
    lower: float | None
    upper: float | None
    unit: str
    origin: str
    baseline: BaselineRuns | None = None
    processors: tuple[str, ...] = ()
    nodes: int = 0
    order: int = 0
    method: str = ""
    more_ranks: int = 0
    doubt: Reason | None = None
    where: str = ""
    anchor: Anchor | None = None
    by_hand: bool = False
    tolerance: float | None = None

    def side(self, better: Better) -> float | None:
        """Return the bound on the worse side, as a fraction; None for none."""
        return self.lower if better is Better.HIGHER else self.upper


@dataclass(frozen=True)
class Expectation:
    """A floor or a ceiling of a figure that a person wrote, for what is better to be above it.

    ``name`` is as it was written, and so is ``value`` in its ``unit``; a figure's own value times
    ``scale`` is in that unit. ``source`` says where it comes from, ``where`` the file and the line;
    it is of a figure of a ``check``. What is worse by no more than the ``tolerance``, a fraction,
    meets it; None is for none written.
    """

    name: str
    value: float
    unit: str
    scale: float
    source: str
    where: str
    check: str
    tolerance: float | None = field(default=None, compare=False)

    @property
    def floor(self) -> float:
        """The value in the figure's own unit."""
        return self.value / self.scale


@dataclass(frozen=True)
class Limit:
    """A physical bound of a metric: ``at_most`` or ``at_least``, with the reason in words.

    It is ``loose`` where it is what no processor does, whatever this node was measured to do.
    """

    at_most: float | None
    at_least: float | None
    reason: str
    loose: bool = False


@dataclass(frozen=True)
class NodeFacts:
    """What a node is, as far as limits depend on it.

    ``cache_bytes`` is the size of all its caches together, None where nobody knows: then memory
    limits nothing. ``link_mb_s`` is what a node can send into the network, in 10**6 bytes per
    second, None where the site config does not say. ``nearest_ns`` is how long a cache line takes
    to the nearest core and back, None where that was not measured or may change. ``exclusive``
    tells whether a job has its nodes for itself, None where nobody says.
    """

    cache_bytes: int | None = None
    link_mb_s: float | None = None
    nearest_ns: float | None = None
    exclusive: bool | None = None


class Verdict(enum.Enum):
    """The judgement of one figure or of a whole run, the worst last, and nothing between."""

    PASS = "pass"
    IMPROVEMENT = "improvement"
    NO_REFERENCE = "no reference"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    IMPOSSIBLE = "impossible"
    REGRESSION = "regression"

    @property
    def severity(self) -> int:
        """How bad it is: 0 is best. A summary names the worst; exit statuses have their own."""
        return list(Verdict).index(self)

    @property
    def meaning(self) -> str:
        """What it says, in ten words at most."""
        return _MEANINGS[self]


_MEANINGS = {
    Verdict.PASS: "as good as before, or as you expect",
    Verdict.IMPROVEMENT: "more than a tenth better than ever before",
    Verdict.NO_REFERENCE: "nothing is known to compare it with",
    Verdict.INCONCLUSIVE: "as good as before or slower: these launches cannot tell",
    Verdict.INVALID: "no proof that it was the run you asked for",
    Verdict.IMPOSSIBLE: "beyond what this hardware can do",
    Verdict.REGRESSION: "slower each time it was launched, beyond what chance explains",
}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that a whole run is known by: no verdict at all is invalid."""
    return max(verdicts, key=lambda verdict: verdict.severity, default=Verdict.INVALID)


@dataclass(frozen=True)
class Judgement:
    """A verdict with the reasons that explain it and say what to do next, the first one first."""

    verdict: Verdict
    reasons: tuple[Reason, ...]

    @property
    def sentence(self) -> str:
        return sentence_of(self.reasons)


@dataclass(frozen=True)
class Expected:
    """How a figure stands to an expectation: a pass where it is met, a regression where missed.

    It is ``better_by`` the natural logarithm of their ratio, negative where it is worse.
    """

    expectation: Expectation
    judgement: Judgement
    better_by: float


class Standing(enum.Enum):
    """What became of an expectation in a run."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "not decided"
    NOT_COMPARED = "not compared"
    ELSEWHERE = "of another run"


@dataclass(frozen=True)
class ExpectationStanding:
    """An expectation of a run's references: what became of it, why, and ``of`` which case."""

    name: str
    standing: Standing
    reason: Reason
    of: str = ""


@dataclass(frozen=True, order=True)
class CaseId:
    """What tells a case from all others of a run.

    ``partition`` is ReFrame's full name, such as ``local:node``; ``parameters`` are those of its
    ReFrame test that name it, as text.
    """

    check: str
    partition: str
    stack: str
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def where(self) -> str:
        """Return partition and parameters for a sentence."""
        parameters = ", ".join(f"{name}={value}" for name, value in self.parameters)
        return self.partition + (f" ({parameters})" if parameters else "")


class CaseState(enum.Enum):
    """What became of one case (one check, one stack, one set of parameters)."""

    RAN = "ran"
    FAILED = "failed"
    NOT_AVAILABLE = "not available here"
    MISSING = "missing"
    NOT_LAUNCHED = "not launched"

    @property
    def broken(self) -> bool:
        """Whether figures were due and there are none."""
        return self in (CaseState.FAILED, CaseState.MISSING)


@dataclass(frozen=True)
class Figure:
    """One judged figure of a case: what was measured and what is said of it.

    ``remark`` is what else its launches show, such as two modes; ``doubt`` is why the value is not
    to be trusted, where the judgement rests on nothing better. ``loosely_limited`` is a rate that
    may be anything below what no processor does. The judgement has in it how it stands to each
    expectation (``expected``).
    """

    benchmark: str
    metric: str
    unit: str
    better: Better
    conditions: Conditions
    estimate: Estimate | None
    judgement: Judgement
    remark: str = ""
    doubt: Reason | None = None
    loosely_limited: bool = False
    expected: tuple[Expected, ...] = ()


@dataclass(frozen=True)
class Group:
    """Figures of one case that are judged as one: a benchmark, or what else changed together.

    ``benchmark`` is what they are called, ``names`` are those of the figures where they are more
    than those of one benchmark. ``worse_by`` is the natural logarithm by which they are worse than
    the baseline and the rest of the run, None where it cannot be told. What is above ``threshold``
    is slower; it is infinite where nothing is known.
    """

    benchmark: str
    figures: int
    worse_by: float | None
    threshold: float
    judgement: Judgement
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComparedSet:
    """A set of ``figures`` against its baseline, less what its neighbours did.

    All but these are natural logarithms, positive is worse: what it changed ``by``, ``at_least``
    and ``at_most`` (99 % each), and from which ``bound`` on it is slower; infinite for unknown.
    """

    level: str
    name: str
    figures: int
    by: float
    at_least: float
    at_most: float
    bound: float
    is_slower: bool


@dataclass(frozen=True)
class Promise:
    """That no slow-down beyond a limit hides in a benchmark, a stack or a kind of figures.

    ``of`` are the stacks of the figures, ``figures`` their names in a case. The ``limit`` is known
    before the run, from its baseline, infinite where that is too short, and the run leaves room for
    a slow-down ``at_most``: natural logarithms both. It is ``kept`` where that is below the limit,
    or the best ever seen is near. Of a stack or a kind ``slow_in`` are the keys of the fewest cases
    without whose slow-down it would be; none are all that hold it.
    """

    level: str
    name: str
    of: tuple[str, ...]
    limit: float
    at_most: float
    kept: bool
    figures: tuple[str, ...] = ()
    slow_in: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Case:
    """One case of a run as it is reported.

    ``partition`` and ``parameters`` tell its identity, ``conditions`` hold what all its figures
    share (``ranks``, ``placement``, ``nodes`` …), ``groups`` are its benchmarks of several figures
    that have a baseline, ``command`` is the line to type to repeat the measurement by hand,
    ``library`` what the MPI library said of itself in its ranks,
    ``reasons`` say why a case did not run or did not count, ``peaks`` what the node could do in the
    same job (:func:`clustergate.machine.peaks.of_all_cores`). ``promises`` are those of its
    benchmarks, and of figures of which a benchmark has several.
    """

    check: str
    stack: str
    state: CaseState
    reasons: tuple[Reason, ...] = ()
    conditions: Conditions = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    groups: tuple[Group, ...] = ()
    duration_s: float = 0.0
    command: str = ""
    notes: tuple[str, ...] = ()
    partition: str = ""
    library: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    peaks: Mapping[str, float] = field(default_factory=dict)
    promises: tuple[Promise, ...] = ()

    @property
    def reason(self) -> str:
        """Return in one sentence why it did not run or did not count, empty where it did."""
        return sentence_of(self.reasons)

    @property
    def identity(self) -> CaseId:
        return CaseId(self.check, self.partition, self.stack, self.parameters)


@dataclass(frozen=True)
class Launch:
    """One launch of a case; ``order`` counts them from 0, as :class:`Sample` does.

    ``started`` is in seconds since the epoch. ``lost_cores`` is what other processes and other
    machines of the same host used meanwhile, in cores' worth, ``stolen_cores`` the latter alone,
    on the node ``host`` that lost most, ``own_cores`` what its ranks used there;
    ``core_distance_ns`` the longer of the round trips between two cores of the first node right
    before and right after it; each None where it is not known.
    ``kept_off`` is the largest share of the launch that others can have kept one rank off its core,
    ``any_kept_off`` the share in which one rank or another was; ``far`` by how many times two cores
    were farther from each other than at their nearest, 1 where they were not.
    ``disturbed`` is why its figures are kept but not used, None when they are.
    ``node`` is what the first node went through (:func:`clustergate.machine.load.load_between`,
    and the bytes that each of its network devices sent).
    """

    order: int
    started: float
    seconds: float
    host: str = ""
    lost_cores: float | None = None
    stolen_cores: float | None = None
    core_distance_ns: float | None = None
    disturbed: Reason | None = None
    node: Mapping[str, object] = field(default_factory=dict)
    kept_off: float | None = None
    any_kept_off: float | None = None
    far: float = 1.0
    own_cores: float | None = None

    @property
    def others_share(self) -> float | None:
        """What others used for each second of its own work, on the node that lost most."""
        if self.lost_cores is None or not self.own_cores:
            return None
        return self.lost_cores / self.own_cores


@dataclass(frozen=True)
class CaseRecord:
    """What one case left behind, as it is stored.

    ``name`` is unique in the run. ``samples`` are of all ``launches``, of which a verdict needs
    ``launches_needed`` undisturbed ones. ``unmeasured`` are rows with a word instead of figures,
    ``peaks`` what the node could do at most, measured in the same job,
    ``complaints`` are why its figures do not count, empty when they do.
    ``unavailable`` says why it could not run at all, ``not_launched`` that it could, and why a busy
    node launched nothing of it. ``removed_environment`` are the inherited
    variables that were taken away, ``command`` the line to type to get the figures by hand.
    """

    name: str
    check: str
    stack: str
    partition: str
    conditions: Conditions
    samples: Sequence[Sample] = ()
    launches: Sequence[Launch] = ()
    launches_needed: int = 1
    unmeasured: Sequence[Row] = ()
    peaks: Sequence[Row] = ()
    complaints: Sequence[Reason] = ()
    unavailable: str = ""
    not_launched: Reason | None = None
    command: str = ""
    removed_environment: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def processors(self) -> tuple[str, ...]:
        """Return the processors of the nodes it ran on, as far as these told them, sorted."""
        processors = self.details.get("processors")
        return tuple(map(str, processors)) if isinstance(processors, list) else ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the nodes that its ranks said they ran on, sorted, as far as they did."""
        proof = self.details.get("proof")
        hosts = proof.get("hosts", ()) if isinstance(proof, Mapping) else ()
        return tuple(sorted(map(str, hosts)))

    @property
    def distance(self) -> str:
        """How far its nodes were from each other: one of :data:`DISTANCES`, or unknown."""
        if self.conditions.get("nodes", 1) == 1:
            return DISTANCES[0]
        recorded = self.details.get("distance")
        return recorded if recorded in DISTANCES else UNKNOWN_DISTANCE

    def spent_s(self, *names: str) -> float:
        """Return the seconds that its details tell of these, such as "peaks_s"; 0 for none."""
        return sum(float(str(self.details.get(name, 0))) for name in names)

    @property
    def method(self) -> str:
        """Return how it was measured, as the benchmark's descriptor tells it; empty if unknown."""
        return str(self.details.get("method", ""))

    def method_of(self, sample: Sample) -> str:
        """Return how a figure was measured, where a size has several blocks in how many of them."""
        blocks = self.details.get("blocks")
        size = str(sample.conditions.get("bytes", ""))
        count = blocks.get(size) if isinstance(blocks, Mapping) else None
        return f"{self.method}-{count}-blocks" if count else self.method


@dataclass(frozen=True)
class Evidence:
    """One thing that was found: in which ``part`` of a run, its verdict, why, and ``of`` what."""

    part: str
    verdict: Verdict
    reasons: tuple[Reason, ...]
    of: str = ""

    @property
    def sentence(self) -> str:
        """Return of what it is, and why."""
        return (f"{self.of}: " if self.of else "") + sentence_of(self.reasons)


RESUMED = "resumed"
"""The part of a run that tells of cases from before it was resumed."""
LAUNCHED_AGAIN = "launched again"
"""The part of a run that tells what looks slow and is not confirmed."""
EXPECTATIONS = "expectations"
"""The part of a run that tells which of what people expect was not compared."""
REFERENCES = "references"
"""The part of a run that tells which references, written by hand, were not compared."""
CHANGED = "changed"
"""The part of a run that tells what changed of which nobody knows which way is better."""
NODES = "nodes"
"""The part of a run that tells which nodes are slow beside the others."""
A_DAY_S = 86400.0
"""What was measured further apart than this is of no one state of the nodes."""


@dataclass(frozen=True)
class Run:
    """One run of the suite: ``started`` is ISO 8601 with its zone.

    ``fallback`` tells that no site config claims the machine, and that none was named; ``unjudged``
    are the references that are there and did not hold for what ran, ``beside`` one on who
    else worked on this node meanwhile, ``changes`` on what is otherwise on it since the run before.
    ``strict``: a case that was too disturbed to be judged fails the run. ``evidence`` is what was
    found beside its cases, which fails it as it would keep a gate from opening. ``before`` are
    the values of figures, by case and name, in the newest earlier run that has them.
    ``expectations`` are those that people wrote for its system, each with what became of it.
    ``sets`` are what was compared with the baseline as a whole, ``promises`` by partition those of
    stacks and of kinds of figures.
    ``sharing`` tells whether its nodes were exclusive, and ``finds`` by level what change such a
    run finds in four of five, as a logarithm. ``session`` says which one it is of a ReFrame suite
    that is not of the suite's own checks, and against what it was judged; else it is empty. A
    ``trial`` is no standard of any other run.
    """

    run_id: str
    system: str
    mode: str
    started: str
    duration_s: float
    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()
    machine: Mapping[str, object] = field(default_factory=dict)
    fallback: bool = False
    unjudged: tuple[Reason, ...] = ()
    beside: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    strict: bool = False
    evidence: tuple[Evidence, ...] = ()
    before: Mapping[tuple[object, str], float] = field(default_factory=dict)
    expectations: tuple[ExpectationStanding, ...] = ()
    sets: tuple[ComparedSet, ...] = ()
    sharing: str = ""
    finds: Mapping[str, float] = field(default_factory=dict)
    promises: Mapping[str, tuple[Promise, ...]] = field(default_factory=dict)
    session: str = ""
    trial: bool = False

    @property
    def command(self) -> str:
        """The command that judged it."""
        return "clustergate judge" if self.session else "clustergate check"


_NUMBERED = re.compile(r"\d{8}T\d{6}Z-r(\d+)")


def number_of_run(run_id: str) -> int:
    """Return the number of a run among those of its home; 0 for one that was not given any."""
    match = _NUMBERED.fullmatch(run_id)
    return int(match[1]) if match else 0


def order_of_run(run_id: str, started: datetime.datetime) -> tuple[datetime.datetime, int, str]:
    """Return what sorts runs by their beginning, where their dates are to be believed."""
    return started, number_of_run(run_id), run_id
