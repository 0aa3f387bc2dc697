"""How STREAM 5.10 is built: upstream's file as it is, once for each size of its arrays."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path

from clustergate.benchmarks.build import Build, Command, Compiled, Source, Workplace, mpicc

# Upstream's own file: Spack's recipe takes a copy of it from git, pins nothing and calls no MPI.
# Its licence lets nobody call results of changed source STREAM's, so none is shipped or changed.
STREAM = Source(
    "stream",
    "5.10",
    "stream.c",
    "a52bae5e175bea3f7832112af9c085adab47117f7d2ce219165379849231692b",
    "https://www.cs.virginia.edu/stream/FTP/Code/stream.c",
)
# Its arrays have the size that it is compiled for, in doubles: its own 10 million, doubled. The
# largest are of 41 GB, for nodes with 10 GB of caches.
SIZES = tuple(10_000_000 << k for k in range(10))
OWN = Path(__file__).with_name("stream5.c")
# Static arrays beyond 2 GiB.
_LARGE = {"x86_64": ["-mcmodel=medium"], "aarch64": ["-mcmodel=large", "-fno-pie", "-no-pie"]}


def program_of(elements: int) -> str:
    """Return the name of the program whose arrays have so many elements.

    >>> program_of(10_000_000)
    'stream5-10M'
    """
    return f"stream5-{elements // 1_000_000}M"


def commands(work: Workplace) -> Iterable[Command]:
    options = ["-fopenmp", "-Dmain=stream_main", *_LARGE.get(platform.machine(), ())]
    for elements in SIZES:
        files, size = (
            [str(OWN), str(work.top / STREAM.file_name)],
            f"-DSTREAM_ARRAY_SIZE={elements}",
        )
        yield mpicc(work.bin / program_of(elements), files, [*options, size])


BUILD = Build(
    programs=tuple(map(program_of, SIZES)),
    recipes=(Compiled(commands, STREAM, files=(OWN,)),),
    on_request=True,
)
