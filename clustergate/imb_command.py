"""The command lines of the Intel MPI Benchmarks, from settings. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clustergate.model import ClustergateError

MPI1_BENCHMARKS = (
    *("PingPong", "PingPongSpecificSource", "PingPongAnySource"),
    *("PingPing", "PingPingSpecificSource", "PingPingAnySource"),
    *("Sendrecv", "Exchange", "Uniband", "Biband"),
    *("Bcast", "Scatter", "Scatterv", "Gather", "Gatherv", "Allgather", "Allgatherv"),
    *("Alltoall", "Alltoallv", "Reduce", "Reduce_local", "Reduce_scatter"),
    *("Reduce_scatter_block", "Allreduce", "Barrier"),
)
"""All that IMB-MPI1 measures."""

# -msglen reads sizes from this file, in the folder of the job.
SIZES_FILE = "message-sizes.txt"


class ImbSettingError(ClustergateError):
    """A setting that the Intel MPI Benchmarks do not know."""


@dataclass(frozen=True)
class ImbSettings:
    """What to ask of an IMB program; an empty string leaves IMB's own default.

    ``without`` are benchmarks that the suite would run by itself and is not to.
    ``sizes`` are message sizes in bytes; without them every power of two up to ``largest_bytes``
    is measured, and 0. Each size is repeated ``repetitions`` times, or as often as moves
    ``volume_mb``, and given up after ``seconds``. ``smallest_group`` is the
    smallest group of ranks that measures (``-npmin``): the number of ranks for the full
    communicator only. ``memory_gb`` is what the buffers of one rank may take.
    """

    benchmarks: Sequence[str]
    smallest_group: int
    without: Sequence[str] = ()
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


def _size_arguments(settings: ImbSettings) -> list[str]:
    if settings.sizes:
        return ["-msglen", SIZES_FILE]
    exponent = settings.largest_bytes.bit_length() - 1
    if settings.largest_bytes != 1 << exponent:
        raise ImbSettingError(
            f"the largest message must be a power of two, not {settings.largest_bytes} bytes"
        )
    return ["-msglog", f"0:{exponent}"]


def imb_arguments(settings: ImbSettings) -> list[str]:
    """Return the arguments of IMB-MPI1, IMB-RMA or IMB-NBC.

    Raises :class:`ImbSettingError` for a largest size that is no power of two, which ``-msglog``
    cannot express.
    """
    arguments = [*settings.benchmarks, "-npmin", str(settings.smallest_group)]
    if settings.without:
        arguments += ["-exclude", ",".join(settings.without)]
    arguments += _size_arguments(settings)
    if settings.repetitions is not None:
        volume = [] if settings.volume_mb is None else [str(settings.volume_mb)]
        arguments += ["-iter", ",".join([str(settings.repetitions), *volume])]
    if settings.seconds is not None:
        arguments += ["-time", f"{settings.seconds:g}"]
    for name in ("off_cache", "root_shift", "sync", "map", "iter_policy"):
        if value := getattr(settings, name):
            arguments += [f"-{name}", value]
    if settings.memory_gb is not None:
        arguments += ["-mem", f"{settings.memory_gb:g}"]
    return arguments


def p2p_arguments(settings: ImbSettings) -> list[str]:
    """Return the arguments of IMB-P2P, which knows few of the others' options."""
    arguments = list(settings.benchmarks)
    if settings.repetitions is not None:
        arguments += ["-iter", str(settings.repetitions)]
    return [*arguments, *_size_arguments(settings)]


def mt_arguments(settings: ImbSettings) -> list[str]:
    """Return the arguments of IMB-MT, which counts elements, of one byte here, and no byte 0."""
    sizes = settings.sizes or [1 << k for k in range(settings.largest_bytes.bit_length())]
    counts = ",".join(str(size) for size in sizes if size)
    arguments = ["-thread_level", "multiple", "-datatype", "char", "-count", counts]
    if settings.repetitions is not None:
        arguments += ["-repeat", str(settings.repetitions)]
    return [*arguments, *settings.benchmarks]


def sizes_file(sizes: Sequence[int]) -> str:
    """Return the text of the file that ``-msglen`` reads: one size in bytes per line."""
    return "".join(f"{size}\n" for size in sizes)
