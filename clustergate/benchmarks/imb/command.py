"""The command lines of the Intel MPI Benchmarks, from settings. Pure functions."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.descriptor import CannotRun, Effort
from clustergate.core.reasons import Words
from clustergate.core.words import INPUT_NOT_POSITIVE, INPUT_NOT_TAKEN

MPI1_BENCHMARKS = (
    *("PingPong", "PingPongSpecificSource", "PingPongAnySource"),
    *("PingPing", "PingPingSpecificSource", "PingPingAnySource"),
    *("Sendrecv", "Exchange", "Uniband", "Biband"),
    *("Bcast", "Scatter", "Scatterv", "Gather", "Gatherv", "Allgather", "Allgatherv"),
    *("Alltoall", "Alltoallv", "Reduce", "Reduce_local", "Reduce_scatter"),
    *("Reduce_scatter_block", "Allreduce", "Barrier"),
)
"""All that IMB-MPI1 measures."""
# What IMB measures between two ranks only, and drops without a word where there are more.
OF_TWO_RANKS = ("Fetch_and_op", "Compare_and_swap")
# What the others run where none is named.
BY_DEFAULT: Mapping[str, tuple[str, ...]] = {
    "IMB-MT": (
        *("PingPongMT", "PingPingMT", "SendRecvMT", "ExchangeMT", "UniBandMT", "BiBandMT"),
        *("BcastMT", "ReduceMT", "AllReduceMT", "BarrierMT"),
    ),
    "IMB-RMA": (
        *("Unidir_put", "Bidir_put", "Unidir_get", "Bidir_get", "Put_local", "Put_all_local"),
        *("One_put_all", "All_put_all", "One_get_all", "All_get_all"),
        *("Exchange_put", "Exchange_get", "Accumulate", "Get_accumulate"),
        *(*OF_TWO_RANKS, "Truly_passive_put"),
    ),
    "IMB-NBC": (
        *("Ibcast", "Iallgather", "Iallgatherv", "Igather", "Igatherv", "Iscatter", "Iscatterv"),
        *("Ialltoall", "Ialltoallv", "Ireduce", "Ireduce_scatter", "Iallreduce", "Ibarrier"),
    ),
    "IMB-P2P": (
        *("PingPong", "PingPing", "Unirandom", "Birandom", "Corandom"),
        *("Stencil2D", "Stencil3D", "SendRecv_Replace"),
    ),
}

# -msglen reads sizes from this file, in the folder of the job.
# What these count of a message as moved, in their MB/s.
COUNTED = {"PingPong": 1, "PingPing": 1, "Sendrecv": 2, "Exchange": 4}
SIZES_FILE = "message-sizes.txt"
# IMB counts them in the integers of C.
_LARGEST_BYTES = 1 << 30

# What an option takes, and in words. IMB itself takes no notice of a policy that it does not know,
# or of what stands behind a number, and the figures would carry a setting that did nothing.
_SWITCH = ("on|off", "on or off")
_FORMS: Mapping[str, tuple[str, str]] = {
    "off_cache": (
        r"-1|\d*[1-9]\d*(\.\d+)?(,\d+)?|\d+\.\d*[1-9]\d*(,\d+)?",
        "-1, a size of the last cache in MB, or that and the bytes of its lines, such as 2.5,64",
    ),
    "root_shift": _SWITCH,
    "sync": _SWITCH,
    "map": (r"[1-9]\d{0,8}x[1-9]\d{0,8}", "a grid of processes, such as 2x4"),
    "iter_policy": ("dynamic|multiple_np|auto|off", "dynamic, multiple_np, auto or off"),
}
# Of a node's memory for the message buffers of all its ranks: MPI libraries have their own besides.
_BUFFER_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class ImbEffort(Effort):
    """What a mode asks of IMB: fields of :class:`ImbSettings`, which explains them.

    ``benchmarks`` replace those of IMB-MPI1's check, where there are any.
    """

    sizes: tuple[int, ...] = ()
    largest_bytes: int = 1 << 22
    repetitions: int
    volume_mb: int
    seconds: float
    benchmarks: tuple[str, ...] = ()
    root_shift: str = ""


@dataclass(frozen=True)
class ImbSettings:
    """What to ask of an IMB program; an empty string leaves IMB's own default.

    ``sizes`` are message sizes in bytes; without them every power of two up to ``largest_bytes``
    is measured, and 0. Each size is repeated ``repetitions`` times, or as often as moves
    ``volume_mb``, and given up after ``seconds``. ``smallest_group`` is the
    smallest group of ranks that measures (``-npmin``): the number of ranks for the full
    communicator only, ``ranks`` all of the job. ``memory_gb`` is what the buffers of one rank may
    take, in 2^30 bytes.
    """

    benchmarks: Sequence[str]
    smallest_group: int
    ranks: int | None = None
    sizes: Sequence[int] = ()
    largest_bytes: int = 1 << 22
    repetitions: int | None = None
    volume_mb: int | None = None
    seconds: float | None = None
    off_cache: str = ""
    root_shift: str = ""
    sync: str = ""
    map: str = ""
    iter_policy: str = ""
    memory_gb: float | None = None


def measures_size(row: str, size: object, effort: ImbEffort | None) -> bool:
    """Tell whether an effort measures a row with messages of so many bytes, None for no messages.

    Without an effort, whether any setting does: every power of two is the size of one.
    """
    if not isinstance(size, int) or "barrier" in row.lower():
        return size is None and "barrier" in row.lower()
    if effort is not None and effort.sizes:
        return size in effort.sizes
    is_power = size & (size - 1) == 0
    return is_power and size <= (effort.largest_bytes if effort else _LARGEST_BYTES)


BLOCKS = 8
"""In so many blocks short messages are measured where two stacks are launched in turn."""
# IMB gives a benchmark up after the time of a size (`-time`) for each line of its file but one, and
# as if there were so many where they are fewer: the powers of two of ``-msglog``.
_LINES = 22
# What has no message sizes, and comes once however many of them are listed.
_WITHOUT_SIZES = ("Barrier",)


def in_blocks(settings: ImbSettings) -> ImbSettings:
    """Return settings that repeat as much in many short blocks, of which IMB prints a mean each.

    A block has an eighth of the repetitions that are asked for. A size has as many blocks as its
    repetitions fill: large messages, which the volume lets be sent seldom, have one, as before.
    Blocks of one size are not successive, so that what disturbs a moment does not meet them all.
    The time of all blocks together is limited as that of all sizes was. Raises :class:`CannotRun`
    as :func:`imb_arguments` does.
    """
    sizes, repetitions, volume_mb = settings.sizes, settings.repetitions, settings.volume_mb
    if repetitions is None or volume_mb is None or repetitions < BLOCKS:
        return settings
    if not sizes:
        _size_arguments(settings)
        sizes = (0, *(1 << k for k in range(settings.largest_bytes.bit_length())))
    each = repetitions // BLOCKS
    blocks = {size: BLOCKS if not size else (volume_mb << 20) // size // each for size in sizes}
    blocks = {size: max(1, min(count, BLOCKS)) for size, count in blocks.items()}
    several = [n for turn in range(BLOCKS) for n, count in blocks.items() if turn < count > 1]
    listed = (*several, *(size for size, count in blocks.items() if count == 1))
    names = [
        name for name in settings.benchmarks for _ in range(BLOCKS if name in _WITHOUT_SIZES else 1)
    ]
    time_of_one = (max(len(blocks), _LINES) - 1) / (max(len(listed), _LINES) - 1)
    seconds = settings.seconds and settings.seconds * time_of_one
    return dataclasses.replace(
        settings, benchmarks=names, sizes=listed, repetitions=each, seconds=seconds
    )


def blocks_of(settings: ImbSettings) -> dict[str, int]:
    """Return how many blocks a launch has of each size in bytes that has several.

    What has no sizes stands at an empty one.
    """
    without = (name for name in settings.benchmarks if name in _WITHOUT_SIZES)
    counts = Counter([*map(str, settings.sizes), *("" for _ in without)])
    return {size: count for size, count in counts.items() if count > 1}


NO_POWER_OF_TWO = Words("input.no-power-of-two", "{name} must be a power of two, not {value}")


def _size_arguments(settings: ImbSettings) -> list[str]:
    if settings.sizes:
        return ["-msglen", SIZES_FILE]
    exponent = settings.largest_bytes.bit_length() - 1
    if settings.largest_bytes != 1 << exponent:
        name = "the largest message in bytes"
        raise CannotRun(NO_POWER_OF_TWO(name=name, value=settings.largest_bytes))
    return ["-msglog", f"0:{exponent}"]


def imb_arguments(settings: ImbSettings) -> list[str]:
    """Return the arguments of IMB-MPI1, IMB-RMA or IMB-NBC.

    Raises :class:`CannotRun` for a largest size that is no power of two, which ``-msglog``
    cannot express, and for what an option does not take.
    """
    _refuse_bad_values(settings)
    arguments = [*settings.benchmarks, "-npmin", str(settings.smallest_group)]
    arguments += _size_arguments(settings)
    if settings.repetitions is not None:
        volume = [] if settings.volume_mb is None else [str(settings.volume_mb)]
        arguments += ["-iter", ",".join([str(settings.repetitions), *volume])]
    if settings.seconds is not None:
        arguments += ["-time", f"{settings.seconds:g}"]
    for name in _FORMS:
        if value := getattr(settings, name):
            arguments += [f"-{name}", value]
    if settings.memory_gb is not None:
        arguments += ["-mem", f"{settings.memory_gb:g}"]
    return arguments


INPUT_MAP = Words("input.map", "a map of {map} needs {needed} processes and there are {ranks}")


def _refuse_bad_values(settings: ImbSettings) -> None:
    for name, (pattern, words) in _FORMS.items():
        value = getattr(settings, name)
        if value and not re.fullmatch(pattern, value):
            raise CannotRun(INPUT_NOT_TAKEN(name=name, wanted=words, value=value))
    if settings.map and settings.ranks is not None:
        columns, rows = (int(word) for word in settings.map.split("x"))
        if columns * rows > settings.ranks:
            facts = {"needed": columns * rows, "ranks": settings.ranks}
            raise CannotRun(INPUT_MAP(map=settings.map, **facts))
    for name, what in (("seconds", "time"), ("memory_gb", "memory_gb")):
        number = getattr(settings, name)
        if number is not None and not (number > 0 and math.isfinite(number)):
            raise CannotRun(INPUT_NOT_POSITIVE(name=what, value=number))


NO_OPTION = Words(
    "input.no-option",
    "{program} has no option for {name}",
    remedy="leave it out, or name the check that should get it, as in -S {check}.{name}=…",
)


def refuse_unknown(program: str, known: Iterable[str], asked: Iterable[str]) -> None:
    """Raise :class:`CannotRun` for a setting that a program has no option for.

    IMB-P2P and IMB-MT know few: a figure must not carry a setting that did nothing.
    """
    for name in asked:
        if name not in known:
            facts = {"program": program, "name": name, "check": "ImbMpi1Check"}
            raise CannotRun(NO_OPTION(**facts))


def buffer_memory_gb(memory_bytes_per_node: int, ranks_per_node: int) -> float:
    """Return what the buffers of one rank may take of its node: a power of two of 2^30 bytes.

    The ranks of a node may take half of its memory together. Rounded down, so that the memory that
    happens to be free changes no command line.
    """
    share = _BUFFER_SHARE * memory_bytes_per_node / ranks_per_node / 2**30
    return 2.0 ** math.floor(math.log2(share))


def p2p_arguments(settings: ImbSettings) -> list[str]:
    """Return the arguments of IMB-P2P, which knows few of the others' options."""
    arguments = list(settings.benchmarks)
    if settings.repetitions is not None:
        arguments += ["-iter", str(settings.repetitions)]
    return [*arguments, *_size_arguments(settings)]


def mt_sizes(settings: ImbSettings) -> tuple[int, ...]:
    """Return the message sizes of IMB-MT in bytes: it knows none of 0."""
    sizes = settings.sizes or [1 << k for k in range(settings.largest_bytes.bit_length())]
    return tuple(size for size in sizes if size)


def mt_arguments(settings: ImbSettings) -> list[str]:
    """Return the arguments of IMB-MT, which counts elements, of one byte here."""
    counts = ",".join(map(str, mt_sizes(settings)))
    arguments = ["-thread_level", "multiple", "-datatype", "char", "-count", counts]
    if settings.repetitions is not None:
        arguments += ["-repeat", str(settings.repetitions)]
    return [*arguments, *settings.benchmarks]


def sizes_file(sizes: Sequence[int]) -> str:
    """Return the text of the file that ``-msglen`` reads: one size in bytes per line."""
    return "".join(f"{size}\n" for size in sizes)
