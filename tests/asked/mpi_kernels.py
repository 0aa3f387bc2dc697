"""The suite's own MPI kernels."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clustergate.benchmarks.mpi_kernel import KernelExpectation, doubling_bytes
from clustergate.benchmarks.mpi_trials.input import trials_measured
from clustergate.benchmarks.mpi_trials.output import TEST_BYTES
from clustergate.benchmarks.registry import every_benchmark
from clustergate.benchmarks.stream.input import stream_measured
from clustergate.core.model import Row

ECHO = r'\{"measurement":"begin"'


@dataclass(frozen=True)
class _Kernel(KernelExpectation):
    program: str = ""


def read(lines: Iterable[str], *, source: str = "output", expect: _Kernel) -> Iterator[Row]:
    parse = every_benchmark()[expect.program].format.parse
    return parse(lines, source=source, expect=expect)


def asked(text: str) -> _Kernel:
    program = re.search(r'"program":"(\w+)"', text)
    assert program
    trials = {"mpi_trials": 51, "host_overhead": 3, "stream": 10}.get(program.group(1))
    settings = {"mpi_trials": {"flush_bytes": 35651584}, "stream": {"elements": 8912896}}
    measured = {
        "mpi_trials": trials_measured(list(TEST_BYTES)),
        "stream": stream_measured(),
        "bidirectional_stream": frozenset(
            ("bidirectional_stream", n) for n in doubling_bytes(1 << 24)
        ),
        "host_overhead": frozenset(
            (call, n) for call in ("isend", "irecv") for n in doubling_bytes(1 << 16)
        ),
    }
    name = program.group(1)
    kernel = _Kernel(2, trials, settings.get(name), measured[name], program=name)
    begun = json.loads(text[text.index('{"measurement":"begin"') :].partition("\n")[0])
    # Builds of before did not repeat them.
    asked = tuple(begun["arguments"]) if "arguments" in begun else None
    return dataclasses.replace(kernel, arguments=asked)
