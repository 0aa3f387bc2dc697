"""What there is to choose for HPL, and what of it one start of the program can measure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

from clustergate.benchmarks.hpl.sizing import DEFAULT_NB, HPL_MAX_VALUES, HplInput, process_grid

KERNELS = "BLAS kernels"
HUGE_PAGES = "huge pages"
FREED_MEMORY = "freed memory"
LAYOUT = "ranks x threads"
NB = "NB"

NB_COARSE = (96, 128, 192, 256, 384, 512)
NB_FINE = (64, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640)
"""Multiples of the cache line, denser where the best usually is; 32 to 256 by the HPL guide, beyond
it for threads and for wide vectors."""


@dataclass(frozen=True, kw_only=True)
class HplOptions:
    """HPL's own options in HPL's code numbers, with the defaults of HplInput."""

    nb: int = DEFAULT_NB
    depth: int = 1
    bcast: int = 1
    pfact: int = 1
    nbmin: int = 4
    ndiv: int = 2
    rfact: int = 2
    swap: int = 2
    swapping_threshold: int = 64
    l1_transposed: bool = True
    u_transposed: bool = True
    equilibration: bool = True

    def options(self) -> dict[str, Any]:
        """Return the options alone, by name."""
        return {f.name: getattr(self, f.name) for f in fields(HplOptions)}


# Of these, one input of HPL holds lists, and HPL runs all combinations in the order of its loops,
# the last of them the innermost. All else needs another start of the program.
_LISTED = {
    "nb": "nb_values",
    "depth": "depths",
    "bcast": "bcasts",
    "rfact": "rfacts",
    "pfact": "pfacts",
    "nbmin": "nbmins",
    "ndiv": "ndivs",
}
_GRID = ("p", "q")


def input_of(options: Sequence[HplOptions], n: int, grids: Iterable[tuple[int, int]]) -> HplInput:
    """Return the input that solves order ``n`` with all combinations of options on each grid."""
    lists: dict[str, Any] = {
        name: tuple(dict.fromkeys(getattr(one, field) for one in options))
        for field, name in _LISTED.items()
    }
    shared = {k: v for k, v in options[0].options().items() if k not in _LISTED}
    p_values, q_values = zip(*grids, strict=True)
    return HplInput(n_values=(n,), p_values=p_values, q_values=q_values, **shared, **lists)


@dataclass(frozen=True)
class Configuration(HplOptions):
    """One way to run HPL on the cores at hand.

    ``ranks`` of ``cores_per_rank`` cores, and as many BLAS threads, on a ``p`` x ``q`` grid.
    ``kernel`` names the processor whose kernels the BLAS is to use, empty for its own choice.
    ``huge_pages`` asks for large memory pages, ``keep_memory`` keeps what HPL frees after each
    panel for the next one.
    """

    ranks: int
    cores_per_rank: int
    p: int
    q: int
    kernel: str = ""
    huge_pages: bool = False
    keep_memory: bool = False

    def summary(self) -> str:
        """Return the configuration in one line: what is not a default of HPL's is named."""
        changed = [
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)
            if f.default is not MISSING and getattr(self, f.name) != f.default
        ]
        layout = _name_layout(self.ranks, self.cores_per_rank, self.p, self.q)
        return ", ".join([f"ranks x threads {layout}", *changed])


def default_configuration(cores: int) -> Configuration:
    """Return how HPL runs before anyone has tuned it: a rank on each core."""
    p, q = process_grid(cores)
    return Configuration(ranks=cores, cores_per_rank=1, p=p, q=q)


@dataclass(frozen=True)
class Choice:
    """Something to choose: the fields of a configuration that it sets, and the values to try.

    ``name_value`` writes a value for a reader. ``matters`` tells whether it makes a difference in a
    configuration at all.
    """

    name: str
    fields: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    name_value: Callable[..., str] = str
    matters: Callable[[Configuration], bool] = lambda _: True

    def value(self, configuration: Configuration) -> tuple[Any, ...]:
        return tuple(getattr(configuration, name) for name in self.fields)

    def label(self, configuration: Configuration) -> str:
        """Return what a configuration has chosen, for a reader."""
        return self.name_value(*self.value(configuration))

    def with_value(self, configuration: Configuration, value: Sequence[Any]) -> Configuration:
        return replace(configuration, **dict(zip(self.fields, value, strict=True)))

    def variants(self, configuration: Configuration) -> list[Configuration]:
        """Return the configuration with each value, its own first."""
        others = [self.with_value(configuration, value) for value in self.values]
        return list(dict.fromkeys([configuration, *others]))


@dataclass(frozen=True)
class Space:
    """All choices of one machine, in the order in which they are made, and where it starts.

    ``dgemm_gflops`` is what HPL comes to as N grows: the rate of DGEMM on all cores by the kernels
    of the BLAS and by k. It may be empty.
    """

    start: Configuration
    choices: tuple[Choice, ...]
    dgemm_gflops: Mapping[tuple[str, int], float] = field(default_factory=dict)


def layouts(cores: int) -> tuple[tuple[int, int, int, int], ...]:
    """Return the ways to share cores: ranks, cores per rank and grid, those of one thread first.

    The grids are the two squarest with P <= Q, and for one row its transpose, whose panels are
    split while its rows are not.
    """
    layouts = []
    for threads in _divisors(cores):
        ranks = cores // threads
        grids = sorted(
            ((p, ranks // p) for p in _divisors(ranks) if p * p <= ranks), key=lambda g: -g[0]
        )[:2]
        if grids[0][0] == 1 < grids[0][1]:
            grids.append((ranks, 1))
        layouts += [(ranks, threads, p, q) for p, q in grids]
    return tuple(layouts)


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _threads_worth_trying(cores: int) -> set[int]:
    """Return few of the possible numbers of threads, where a node has many cores."""
    divisors = _divisors(cores)
    if len(divisors) <= 4:
        return set(divisors)
    small = [d for d in divisors if d in (1, 2, 4, 8)]
    return {*small, divisors[-1]}


def _name_layout(ranks: int, threads: int, p: int, q: int) -> str:
    return f"{ranks} x {threads}, grid {p} x {q}"


def _named(*names: str) -> Callable[[int], str]:
    return lambda code: names[code]


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _kept(value: bool) -> str:
    return "kept for the next panel" if value else "left to the C library"


def _form(transposed: bool) -> str:
    return "transposed" if transposed else "not transposed"


def _name_swap(algorithm: int, threshold: int) -> str:
    return ("binary exchange", "long", f"mix at {threshold}")[algorithm]


def _several_columns(configuration: Configuration) -> bool:
    return configuration.q > 1


def _several_rows(configuration: Configuration) -> bool:
    return configuration.p > 1


def _single(values: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    return tuple((value,) for value in values)


_FACTORISATION = _named("left", "Crout", "right")
_HPL_OPTIONS = (
    Choice("DEPTH", ("depth",), _single((0, 1, 2)), matters=_several_columns),
    Choice("PFACT", ("pfact",), _single((0, 1, 2)), _FACTORISATION),
    Choice("NBMIN", ("nbmin",), _single((1, 2, 4, 8, 16))),
    Choice("RFACT", ("rfact",), _single((0, 1, 2)), _FACTORISATION),
    Choice("NDIV", ("ndiv",), _single((2, 3, 4))),
    Choice(
        "BCAST",
        ("bcast",),
        _single(range(6)),
        _named("1rg", "1rM", "2rg", "2rM", "Lng", "LnM"),
        _several_columns,
    ),
    Choice(
        "SWAP",
        ("swap", "swapping_threshold"),
        ((0, 64), (1, 64), (2, 64), (2, 256)),
        _name_swap,
        _several_rows,
    ),
    Choice("L1", ("l1_transposed",), _single((True, False)), _form),
    Choice("U", ("u_transposed",), _single((True, False)), _form, _several_rows),
    Choice("equilibration", ("equilibration",), _single((True, False)), _yes_or_no, _several_rows),
)


def space_of(
    cores: int,
    kernels: Sequence[str] = (),
    *,
    huge_pages: bool = False,
    keep_memory: bool = False,
    dgemm_gflops: Mapping[tuple[str, int], float] | None = None,
) -> Space:
    """Return what there is to choose on a number of cores.

    ``kernels`` are those that the BLAS offers besides its own choice and that run here;
    ``huge_pages`` and ``keep_memory`` tell whether a program can be made to ask for the former and
    to do the latter; ``dgemm_gflops`` as in Space.
    """
    worthwhile = _threads_worth_trying(cores)
    choices = [
        Choice(
            KERNELS,
            ("kernel",),
            _single(("", *kernels)),
            lambda kernel: kernel or "the library's choice",
        ),
        Choice(
            HUGE_PAGES, ("huge_pages",), _single((False, True) if huge_pages else ()), _yes_or_no
        ),
        Choice(
            LAYOUT,
            ("ranks", "cores_per_rank", "p", "q"),
            tuple(layout for layout in layouts(cores) if layout[1] in worthwhile),
            _name_layout,
        ),
        Choice(NB, ("nb",), _single(NB_COARSE)),
        Choice(
            FREED_MEMORY, ("keep_memory",), _single((False, True) if keep_memory else ()), _kept
        ),
        *_HPL_OPTIONS,
    ]
    several = tuple(choice for choice in choices if len(choice.values) > 1)
    return Space(default_configuration(cores), several, dgemm_gflops or {})


@dataclass(frozen=True)
class Batch:
    """Configurations that one start of HPL measures, in its order: all combinations of lists."""

    configurations: tuple[Configuration, ...]

    @property
    def grids(self) -> tuple[tuple[int, int], ...]:
        """The process grids, each once."""
        return tuple(dict.fromkeys((c.p, c.q) for c in self.configurations))

    @property
    def most_rounds(self) -> int:
        return HPL_MAX_VALUES // len(self.grids)

    def hpl_input(self, n: int, rounds: int) -> HplInput:
        """Return the input that measures every configuration in every round.

        The grids are HPL's outermost loop, so it is they that are repeated.
        """
        return input_of(self.configurations, n, self.grids * rounds)


def batches(configurations: Iterable[Configuration]) -> list[Batch]:
    """Return the starts of HPL that measure some configurations and no other."""
    apart = [f.name for f in fields(Configuration) if f.name not in (*_LISTED, *_GRID)]
    groups: dict[tuple[Any, ...], list[Configuration]] = {}
    for configuration in configurations:
        key = tuple(getattr(configuration, name) for name in apart)
        groups.setdefault(key, []).append(configuration)
    starts = []
    for group in groups.values():
        combinations = _combinations(group)
        if len(combinations) == len(group):
            starts.append(Batch(combinations))
        else:
            starts += [Batch((configuration,)) for configuration in group]
    return starts


def _combinations(group: Sequence[Configuration]) -> tuple[Configuration, ...]:
    grids = dict.fromkeys((c.p, c.q) for c in group)
    lists = [dict.fromkeys(getattr(c, field) for c in group) for field in _LISTED]
    return tuple(
        replace(group[0], p=p, q=q, **dict(zip(_LISTED, values, strict=True)))
        for (p, q), *values in itertools.product(grids, *lists)
    )
