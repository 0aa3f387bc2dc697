"""The operator's interface: what each mode runs, how long it may take and how it saves time.

A mode is a ReFrame mode of the same name; what it spends on a benchmark says that one's folder.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from clustergate.benchmarks.descriptor import BENCHMARK_TAG, Benchmark, Check, Effort, Sweep
from clustergate.benchmarks.registry import (
    MODES_GROUP,
    every_benchmark,
    every_check,
    load_added,
    not_loaded,
    require_unique_names,
)
from clustergate.core.model import METRICS, CaseId, ClustergateError, Conditions, NodeFacts, Sample
from clustergate.core.notation import nearest
from clustergate.core.reasons import Words
from clustergate.core.words import COMMAND_EXTRA, INPUT_UNKNOWN_NAME
from clustergate.launch.dialects import Layout
from clustergate.sites.description import Partition
from clustergate.sites.shape import Shape

# How the names of those begin that the suite's own extra adds.
OF_EXTRA = "published-"
QUICK = "quick"
MAINTENANCE = "maintenance"
"""The mode in which the gate measures."""
Derive = Callable[[Sequence[Sample], Layout, NodeFacts], tuple[Sample, ...]]


@dataclass(frozen=True, kw_only=True)
class Mode:
    """One level of effort, which the folders of the benchmarks know by its name.

    ``like`` is the mode whose effort a benchmark spends that has none for this one; ``efforts`` are
    by benchmarks, and go before what their folders say. ``only`` are the checks that it runs, where
    it does not run all that are for operators. Those ``on_one_node`` run on one node of each
    partition, unless process counts are named or ranks set by hand; True stands for all.
    ``time_limit`` is that of one job, in ReFrame's form; ``duration`` says how long all take,
    ``minutes`` at most where that is known of any machine. Its own checks sweep over the ``ends``
    of :class:`~clustergate.sites.shape.Shape` alone. What a site config ``chosen`` for modes, by
    their names, are the checks of these instead. A mode that repeats a study is
    ``as_published``: nothing is tuned, and it runs as large as the machine allows. What is
    ``derived`` of the samples of a check, launch by launch, are figures of its cases; an entry
    point of ``clustergate.metrics`` has their metrics.
    """

    name: str
    purpose: str
    duration: str
    nodes: str
    time_limit: str
    minutes: float | None = None
    like: str = ""
    only: tuple[str, ...] = ()
    on_one_node: bool | frozenset[str] = False
    ends: bool = False
    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    efforts: Mapping[str, Effort] = field(default_factory=dict)
    as_published: bool = False
    derived: Mapping[str, Derive] = field(default_factory=dict)

    @property
    def checks(self) -> tuple[str, ...]:
        """Those that the site config chose, else its own."""
        return tuple(self.chosen.get(self.name, ())) or self.own_checks

    @property
    def own_checks(self) -> tuple[str, ...]:
        """What it runs where no site config chooses."""
        for_operators = (c.name for c in every_check().values() if BENCHMARK_TAG in c.tags)
        return self.only or tuple(for_operators)

    @property
    def saves_time_by(self) -> str:
        """What it makes smaller of its benchmarks, or leaves out, by their order."""
        own = (
            b for b in every_benchmark().values() if any(c.name in self.checks for c in b.checks)
        )
        efforts = (effort_of(self, benchmark) for benchmark in own)
        return (
            ", ".join(effort.saves_time_by for effort in efforts if effort.saves_time_by)
            or "nothing"
        )

    def is_on_one_node(self, check: str) -> bool:
        """Tell whether a check runs on one node of each partition."""
        if isinstance(self.on_one_node, bool):
            return self.on_one_node and check in every_check()
        return check in self.on_one_node


MODES: Mapping[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode(
            name=QUICK,
            purpose="is anything there, and roughly how fast? (`--quick`)",
            duration="under a minute on two idle cores, once built",
            nodes="one of each partition",
            time_limit="10m",
            minutes=1,
            like="smoke",
            on_one_node=True,
        ),
        Mode(
            name="smoke",
            purpose="does everything run and look sane? (the default)",
            duration="at most 3 minutes on two idle cores, once built",
            nodes="one of each partition",
            time_limit="10m",
            minutes=3,
            on_one_node=True,
        ),
        Mode(
            name=MAINTENANCE,
            purpose="may the machine go back to its users?",
            duration="at most 45 minutes on two idle cores",
            nodes="all of each partition",
            time_limit="30m",
            like="smoke",
            ends=True,
        ),
        Mode(
            name="acceptance",
            purpose="is the machine what was ordered?",
            duration="no limit",
            nodes="all of each partition",
            time_limit="24h",
            like=MAINTENANCE,
        ),
    )
}


@functools.cache
def every_mode() -> Mapping[str, Mode]:
    """Return all modes by their names, those for operators first, those of added packages last.

    An entry point of the group :data:`MODES_GROUP` names several, in any order.
    """
    added = itertools.chain.from_iterable(load_added(MODES_GROUP))
    modes = require_unique_names("mode", ((mode.name, mode) for mode in (*MODES.values(), *added)))
    for one in every_benchmark().values():
        # A misspelt one would leave a mode with the effort, or the judged figures, of another.
        for name in itertools.chain(one.efforts, *(check.judged for check in one.checks)):
            _must_be_known(f"mode of the benchmark {one.name}", name, modes)
        for check in one.checks:
            _require_metrics(one, check)
    return modes


NO_METRIC = Words(
    "added.no-metric",
    "the check {check} wants {name!r} judged, and the benchmark {benchmark} has no such metric",
    remedy="did you mean {meant}? `metrics` of its descriptor names its own",
)


def _require_metrics(benchmark: Benchmark, check: Check) -> None:
    """Raise :class:`ClustergateError` where a figure that is to be judged has an unknown metric."""
    known = {*METRICS, *benchmark.metrics}
    for name in itertools.chain(*check.judged.values()):
        _, _, metric = name.partition(".")
        if metric and metric not in known:
            meant = nearest(metric, known)
            near = [meant] if meant else sorted(benchmark.metrics)
            raise ClustergateError(
                NO_METRIC(
                    at=_line_with(name, benchmark),
                    check=check.name,
                    name=name,
                    benchmark=benchmark.name,
                    meant=" or ".join(map(repr, near)) or "one of clustergate.core.model.METRICS",
                )
            )


def _line_with(name: str, benchmark: Benchmark) -> str:
    """Return the file and the line of a benchmark's folder that name something."""
    folder = Path(inspect.getfile(benchmark.format.parse)).parent
    lines = (
        f"{path}:{number}"
        for path in sorted(folder.glob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if name in line
    )
    return next(lines, str(folder))


def _must_be_known(kind: str, name: str, known: Iterable[str]) -> None:
    """Raise :class:`ClustergateError` that lists the known names for one that is none of them.

    Where a package does not load, it may be of that one.
    """
    if name not in (names := list(known)):
        for why in not_loaded().values():
            raise ClustergateError(why)
        raise ClustergateError(INPUT_UNKNOWN_NAME(kind=kind, name=name, known=names))


# Screening judges nodes by each other and not by references; `clustergate screen` runs it.
SCREEN = "screen"
SCREEN_CHECK = "ScreenCheck"
# ReFrame counts as free what is idle and nothing else, and would see no node of a reservation.
_FREE = ("idle", "idle+reserved", "idle+maintenance", "idle+maintenance+reserved")
SCREEN_OPTIONS = [
    *("--tag=^screen$", f"--setvar=mode={SCREEN}"),
    f"--flex-alloc-nodes={'|'.join(_FREE)}",
]


def mode_named(name: str, chosen: Mapping[str, Sequence[str]] = MappingProxyType({})) -> Mode:
    """Return a mode; raises :class:`ClustergateError` that lists the known ones.

    ``chosen`` are the checks that a site config chose, by mode
    (:attr:`~clustergate.sites.description.Site.checks`). Of one that the suite's own extra adds it
    says how to install that.
    """
    if name.startswith(OF_EXTRA) and not any(one.startswith(OF_EXTRA) for one in every_mode()):
        raise ClustergateError(COMMAND_EXTRA(kind="mode", name=name))
    _must_be_known("mode", name, every_mode())
    mode = every_mode()[name]
    return replace(mode, chosen=chosen) if chosen else mode


def effort_of(mode: Mode, benchmark: Benchmark) -> Effort:
    """Return what a mode spends on a benchmark: its own effort, else that of the mode it is like.

    The least that the benchmark knows, where it knows neither.
    """
    if effort := mode.efforts.get(benchmark.name) or benchmark.efforts.get(mode.name):
        return effort
    if mode.like:
        return effort_of(mode_named(mode.like), benchmark)
    return next(iter(benchmark.efforts.values()))


def judged_figures(mode: Mode, check: Check) -> tuple[str, ...]:
    """Return the figures of a check that a mode must see judged."""
    if mode.name in check.judged or not mode.like:
        return check.judged.get(mode.name, ())
    return judged_figures(mode_named(mode.like), check)


def checks_named(names: Iterable[str]) -> tuple[str, ...]:
    """Return checks by their names, each once; raises :class:`ClustergateError`."""
    wanted = tuple(dict.fromkeys(names))
    for name in wanted:
        _must_be_known("check", name, every_check())
    return wanted


def reframe_options(mode: Mode, checks: Sequence[str] = ()) -> list[str]:
    """Return the options that make ReFrame run a mode, or some checks with its effort."""
    chosen = checks or mode.chosen.get(mode.name) or mode.only
    wanted = [rf"--name=^{name}\b" for name in chosen]
    wanted = wanted or [f"--tag=^{BENCHMARK_TAG}$"]
    return [*wanted, f"--setvar=mode={mode.name}"]


def reframe_modes(chosen: Mapping[str, Sequence[str]]) -> list[dict[str, object]]:
    """Return the modes in the form of ReFrame's configuration, with what a site config chose."""
    options = {name: reframe_options(mode_named(name, chosen)) for name in every_mode()}
    options[SCREEN] = SCREEN_OPTIONS
    return [{"name": name, "options": words} for name, words in options.items()]


def used_shape(mode: str, check: str, partition: Partition, named: str = "") -> Shape:
    """Return how much of a partition a check uses in a mode, where ``named`` names no counts.

    What is no mode for operators uses all of it.
    """
    if mode not in every_mode() or named:
        return partition.shape
    known = mode_named(mode, partition.checks)
    if known.is_on_one_node(check):
        return partition.shape.one_node
    return replace(partition.shape, ends=known.ends and check in known.checks)


# The names of the parameters of ReFrame's tests by which the cases of a check are told apart.
PROCESS_COUNT, NODE_USAGE = "process_count", "node_usage"
_PARAMETER = re.compile(r"%([\w.$]+)=(\S+)")
# What ReFrame itself adds: --repeat and --distribute.
_OF_REFRAME = (".repeat_no", ".nid", ".part")


def parameters_of(name: str) -> tuple[tuple[str, str], ...]:
    """Return the parameters that tell a case from others of its check, from ReFrame's test name.

    Those of a sweep (``-P``) begin with a dot there. Others, such as the count of ``--repeat``,
    make no case of its own.
    """
    own = {name for check in every_check().values() for name in check.parameters}
    naming = {PROCESS_COUNT, NODE_USAGE, *own}
    return tuple(
        sorted(
            (key.removeprefix("."), value)
            for key, value in _PARAMETER.findall(name)
            if key in naming or (key.startswith(".") and key not in _OF_REFRAME)
        )
    )


def variant_of(check: str, parameters: Iterable[tuple[str, str]]) -> str:
    """Return what a sweep (``-P``) gave one of the cases that it made, such as ``nb=128``."""
    known = every_check().get(check, Check(check, ""))
    own = {PROCESS_COUNT, NODE_USAGE, *known.parameters}
    return ",".join(f"{name}={value}" for name, value in parameters if name not in own)


def sweep(shape: Shape, shapes: Sequence[Shape], named: str = "") -> list[tuple[int, str]]:
    """Return the process counts with the placements to measure in one of a system's partitions.

    They are those that fit. A count that somebody asked for and that fits nowhere stays, with the
    first placement, so that it fails there instead of vanishing: one that ``named`` lists and no
    partition holds, one that the site config states of the partition itself.
    """
    layouts: list[tuple[int, str]] = []
    for count in shape.rank_counts(named):
        fitting = [(count, how) for how in shape.layouts(count, named)]
        held = any(other.holds(count, "packed") for other in shapes) if named else not shape.counts
        layouts += fitting if fitting or held else [(count, shape.placements()[0])]
    return layouts


def expected_cases(
    checks: Sequence[str],
    partitions: Sequence[Partition],
    mode: Mode,
    named_counts: str = "",
    sweeps: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[CaseId]:
    """Return the cases that there must be when these checks run in a mode, each once.

    ``sweeps`` are values by variable, such as ``HplCheck.nb``. It is worked out from the site
    config alone, not from what ReFrame selected: a case that ReFrame lost is missed.
    """
    shapes = [partition.shape for partition in partitions]
    return [
        CaseId(check, partition.fullname, stack, tuple(sorted([*parameters, *variant])))
        for partition in partitions
        for check in checks
        for used in [used_shape(mode.name, check, partition, named_counts)]
        for parameters in _parameters(check, used, shapes, named_counts)
        for variant in _variants(check, sweeps)
        for stack in partition.stacks
    ]


def _variants(check: str, sweeps: Mapping[str, Sequence[str]]) -> Iterator[list[tuple[str, str]]]:
    """Yield what a sweep over variables makes of a check: one case, or one for each combination."""
    own = {n.partition(".")[2]: v for n, v in sweeps.items() if n.partition(".")[0] == check}
    for values in itertools.product(*own.values()):
        yield list(zip(own, values, strict=True))


NO_CHECK = Words(
    "sweep.no-check",
    "-P {name} is a variable of no check that runs",
    remedy="write it as CHECK.VARIABLE=VALUE,…; {known:names} run",
)
SWEEP_VALUES = Words(
    "sweep.values",
    "-P {name}={values:list} names no value, or one twice",
    remedy="name each once",
)


def require_sweeps(sweeps: Mapping[str, Sequence[str]], checks: Sequence[str]) -> None:
    """Raise :class:`ClustergateError` for a sweep over a variable of no check that runs."""
    for name, values in sweeps.items():
        check, _, variable = name.partition(".")
        if not variable or check not in checks:
            raise ClustergateError(NO_CHECK(name=name, known=[*checks]))
        if len({*values}) < len(values) or "" in values:
            raise ClustergateError(SWEEP_VALUES(name=name, values=[*values]))


def _parameters(
    name: str, shape: Shape, shapes: Sequence[Shape], named: str
) -> Iterator[list[tuple[str, str]]]:
    check = every_check().get(name, Check(name, ""))
    swept: list[list[tuple[str, str]]] = [[]]
    if check.sweep is Sweep.LAYOUTS:
        layouts = sweep(shape, shapes, named)
        swept = [[(PROCESS_COUNT, str(count)), (NODE_USAGE, how)] for count, how in layouts]
    elif check.sweep is Sweep.PLACEMENTS:
        swept = [[(NODE_USAGE, how)] for how in shape.placements()]
    elif check.sweep is Sweep.PROCESS_COUNTS:
        swept = [[(PROCESS_COUNT, str(count))] for count in scaling_counts(shape, shapes, named)]
    elif check.sweep is Sweep.DOMAINS:
        swept = [[(PROCESS_COUNT, str(count))] for count in shape.domain_counts]
    for values in itertools.product(*check.parameters.values()):
        own = list(zip(check.parameters, values, strict=True))
        yield from ([*own, *layout] for layout in swept)


def has_layout(
    partitions: Sequence[Partition], check: str, partition: str, conditions: Conditions
) -> bool:
    """Tell whether a site config has the layout of a case that ran: a partition where it fits.

    Where that states counts and placements itself, it is one of them. Nodes that are left out for
    a while, such as in the hostfile, count.
    """
    shape = next((one.shape.whole for one in partitions if one.fullname == partition), None)
    ranks, how = int(conditions.get("ranks", 1)), str(conditions.get("placement", "packed"))
    sweep = every_check().get(check, Check(check, "")).sweep
    placed = sweep in (Sweep.LAYOUTS, Sweep.PLACEMENTS)
    if shape is None or (placed and how not in shape.placements()):
        return False
    counted = sweep in (Sweep.LAYOUTS, Sweep.PROCESS_COUNTS) and shape.counts
    stated = not counted or ranks in (1, *shape.counts)
    if sweep is Sweep.DOMAINS:
        stated = ranks in shape.domain_counts
    return stated and shape.holds(ranks, how, int(conditions.get("cores_per_rank", 1)))


def scaling_counts(shape: Shape, shapes: Sequence[Shape], named: str = "") -> list[int]:
    """Return the process counts of an application in a partition: one, and those of the sweep."""
    return sorted({1, *(count for count, _ in sweep(shape, shapes, named))})
