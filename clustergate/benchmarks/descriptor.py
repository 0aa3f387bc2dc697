"""What the suite knows of a benchmark, as data that the benchmark's own folder fills in. Pure."""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from clustergate.benchmarks.budget import ONE_LAUNCH, TWO_LAUNCHES, Budget
from clustergate.benchmarks.build import Build
from clustergate.benchmarks.limits import Measurement, limits_of_any
from clustergate.core.model import (
    Better,
    ClustergateError,
    Conditions,
    Figure,
    Limit,
    Metric,
    Row,
    Sample,
)
from clustergate.core.reasons import Reason

Seconds = Callable[[Sample], float]
"""How many seconds a figure took to measure."""
Limits = Callable[[Measurement], tuple[Limit, ...]]
"""The physical limits of a figure, in its own unit."""
Measures = Callable[[str, str, Conditions, Any], bool]
"""Whether a check measures a row with these conditions by an effort, or by any settings at all."""


class CannotRun(ClustergateError):
    """A benchmark cannot run as asked: its own rules do not allow it, or a size is not known."""


class Parser(Protocol):
    """What every format offers."""

    def __call__(self, lines: Iterable[str], *, source: str, expect: Any = None) -> Iterator[Row]:
        """Yield the rows of the text, or raise :class:`clustergate.core.model.OutputError`.

        ``expect`` is what the run was asked for, each format's own way; None for anything.
        """


@dataclass(frozen=True)
class Format:
    """A program's text: the pattern that a line of its title matches, and how to read it.

    ``holds`` are the formats whose titles stand in it as well.
    """

    title: re.Pattern[str]
    parse: Parser
    holds: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What a mode spends on a benchmark, whose folder may add fields of its own.

    What it solves fills at most ``memory_fraction`` of the memory, in bytes. ``saves_time_by`` says
    what more effort would measure.
    """

    budget: Budget = ONE_LAUNCH
    memory_fraction: float = 1.0
    saves_time_by: str = ""


class Sweep(enum.Enum):
    """What a check has one case for, beside the values of its own parameters."""

    NOTHING = "nothing"
    PLACEMENTS = "placements"
    PROCESS_COUNTS = "process counts, one process too"
    DOMAINS = "one process on a node, and one in each of its NUMA domains"
    LAYOUTS = "process counts and placements"


# Every mode for operators runs the checks with this tag.
BENCHMARK_TAG = "benchmark"


@dataclass(frozen=True)
class Check:
    """A ReFrame test of a benchmark: ``name`` is its class in a file of ``reframe_checks``.

    It has a case for each process count or placement that ``sweep`` says, times each value of its
    own ``parameters``. ``tags`` are ReFrame's. ``judged`` are, by the mode from which on they hold,
    the figures that each case must have before a gate opens by it: a benchmark, or one with a
    metric behind a point; ``between_processes`` those of them that one process alone lacks.
    ``rows`` are what its rows are of, as far as these are known: by them people name figures that
    no headline shows.
    """

    name: str
    description: str
    sweep: Sweep = Sweep.NOTHING
    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tags: frozenset[str] = frozenset({BENCHMARK_TAG})
    judged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    between_processes: frozenset[str] = frozenset()
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Share:
    """A headline's figure against what the node could do in the same job, a line of its own.

    ``peak`` is one of :func:`clustergate.machine.peaks.of_all_cores`; a ``rate`` is told in percent
    of it, with all ranks of the node together if it is that of a rank (``per_rank``), a time of one
    node as so many of it.
    """

    title: str
    peak: str
    rate: bool = True
    per_rank: bool = True


@dataclass(frozen=True)
class Headline:
    """A line of the summary's table: which figures it shows, and which of several it picks.

    Without a ``pick`` that is the best of them, whether more or less is better.
    ``scale`` turns the figure's unit into ``unit``; ``above_whole`` says how it can exceed 100 %.
    It stands on the first screen if it has a name there (``first``), beside what the node can do:
    its ``share``, or its ``peak`` where the share is told by other headlines.
    """

    title: str
    unit: str
    check: str
    benchmark: str
    metric: str
    conditions: Conditions = field(default_factory=dict)
    pick: Callable[[Iterable[float]], float] | None = None
    scale: float = 1.0
    share: Share | None = None
    above_whole: str = ""
    first: str = ""
    peak: Share | None = None

    def shows(self, figure: Figure | Sample) -> bool:
        """Tell whether a figure of the check belongs on this line."""
        return (
            figure.benchmark == self.benchmark
            and figure.metric == self.metric
            and all(figure.conditions.get(key) == value for key, value in self.conditions.items())
        )

    def picked(self, values: Iterable[float], better: Better) -> float:
        """Return which of several values stands on this line."""
        return (self.pick or (min if better is Better.LOWER else max))(values)


@dataclass(frozen=True)
class AbCheck:
    """The ReFrame test ``name`` by which ``clustergate ab`` compares two contenders.

    Of a benchmark with ``parts`` these are chosen by their names, else all of it by its title;
    ``point_to_point`` are how names of those between pairs begin. A time and a bandwidth of one
    line are one measurement: ``counted`` is what parts count of a message as moved in MB/s. There
    is a job for each value of its own ``parameters``.
    """

    name: str
    parts: tuple[str, ...] = ()
    sweep: Sweep = Sweep.NOTHING
    point_to_point: tuple[str, ...] = ()
    counted: Mapping[str, int] = field(default_factory=dict, hash=False)
    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)


# As ctime() writes a date.
CTIME = r"([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})"


@dataclass(frozen=True)
class Clocks:
    """How a text tells when and how long its program ran: patterns of lines, each of one group.

    A line is ``dated`` in seconds since 1970, or ``dated_here``, in the process's own time zone as
    ctime() does; ``lasted`` has the seconds of what no row tells. ``stamped`` stands around what
    the time of each row is of: ``start`` or ``end``, and a date. ``repeated`` rows are of a time
    that another row has told.
    """

    dated: str = ""
    dated_here: str = ""
    lasted: str = ""
    stamped: str = ""
    repeated: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Trial:
    """A launch of a second that needs the MPI library and the BLAS.

    ``parse`` turns the lines of its output, and their name, into rows; raises OutputError.
    """

    program: str
    inputs: Mapping[str, str]
    parse: Callable[[Iterable[str], str], Iterable[Row]]


@dataclass(frozen=True)
class Benchmark:
    """All that is known of one benchmark.

    ``name`` is that of its folder and of its format in ``clustergate parse``, ``title`` what people
    call it. ``efforts`` are by the names of modes, the least first, which holds where a mode has no
    other (:func:`clustergate.sites.modes.effort_of`). ``metrics`` are those of its value names that
    :data:`clustergate.core.model.METRICS` lacks; ``limits`` are made of the parts in
    :mod:`clustergate.benchmarks.limits`. ``doubt`` says why a figure of so much is not to be
    trusted, nothing where it may be. ``kinds`` tells of its rows by name, or by that and a metric
    behind a point, what they measure, where their metrics do not
    (:data:`clustergate.core.model.KINDS`, or ``MESSAGES``). What ranks compute ``apart`` from each
    other, but for messages now and then, is named with how long it took, or nothing where
    ``time_s`` says so. The rows ``matrix`` have the order of the matrix that it solved as ``n``;
    printed values go in steps of ``step``, 0 for fine ones; a case of the gate takes ``usual_s`` as
    long as it never ran. A launch is ended in which all ranks wait in MPI calls for
    ``longest_call_s``. The ``headlines`` are what a summary shows; a report draws as bars the
    figures of a benchmark that has ``families``: parts of their metrics' names by what they are a
    measure of, none for what fits nowhere else; what only repeats another figure is of the family
    without a name. Its checks stand in tables by their ``place``. ``build`` says how its programs
    come to a stack; None where nobody puts them there. A benchmark of a site's own names the file
    of its ReFrame ``tests``; those of the suite's are in ``reframe_checks``. ``measures`` tells
    which rows and sizes an effort leaves out, ``options`` with which of ReFrame's a check measures
    those that every mode leaves out. Its ``revision`` counts up whenever its figures are measured
    another way: nothing passes by references of an earlier one. What a site config may say of it
    with a stack, under its name, has the JSON schema ``of_stack``; None for nothing. ``trial``
    makes the launch by which a build is tried on so many ranks. ``of_fewer_ranks`` tells by what
    factor a metric of some ranks differs from that of a few more, None where that does not follow.
    """

    name: str
    title: str
    format: Format
    checks: tuple[Check, ...] = ()
    efforts: Mapping[str, Effort] = field(default_factory=lambda: {"smoke": Effort()})
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    limits: Limits = limits_of_any
    doubt: Callable[[Sample, float], Reason | None] = lambda sample, value: None
    clocks: Clocks = Clocks()
    kinds: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, Seconds | None] = field(default_factory=dict)
    ab: AbCheck | None = None
    matrix: str = ""
    step: float = 0.0
    usual_s: float = 200.0
    longest_call_s: float = 90.0
    headlines: tuple[Headline, ...] = ()
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    place: int = 100
    build: Build | None = None
    tests: str = ""
    revision: int = 1
    measures: Measures = lambda check, row, conditions, effort: True
    options: Callable[[str, str, Conditions], str] = lambda check, row, conditions: ""
    of_stack: Mapping[str, Any] | None = None
    trial: Callable[[int], Trial] | None = None
    of_fewer_ranks: Callable[[str, int, int], float | None] = lambda metric, fewer, more: None

    def method(self, effort: Effort) -> str:
        """Return what tells figures apart that were not measured in the same way: a digest."""
        # A field that a later version adds leaves the digest as it is where nobody states it.
        asked = [
            (f.name, value)
            for f in fields(effort)
            if (value := getattr(effort, f.name)) != f.default and f.name != "saves_time_by"
        ]
        return hashlib.sha256(repr((self.revision, sorted(asked))).encode()).hexdigest()[:12]

    @property
    def tests_declared(self) -> tuple[Check, ...]:
        """Its checks, and that of A against B as one."""
        if self.ab is None:
            return self.checks
        title, own = f"A against B: {self.title}", self.ab.parameters
        return (*self.checks, Check(self.ab.name, title, self.ab.sweep, own, frozenset({"ab"})))

    @property
    def repeated(self) -> bool:
        """Tell whether a job launches it so often that its launches show how they scatter."""
        return any(e.budget.at_most > TWO_LAUNCHES.at_most for e in self.efforts.values())
