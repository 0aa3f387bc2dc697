"""A cluster that is simulated: it tells the stand-ins of benchmarks what they would have printed.

What figures usually are, how they scatter, and what faults do to them is as in ``make bench-gate``
(tools/bench); the texts are those of simulated_texts.py. The stand-ins (simulated/stand_in.c) are
MPI programs that ask by a socket. No figure of theirs says anything of any machine.
"""

from __future__ import annotations

import collections
import math
import socketserver
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.simulated_texts import Figures, hpcc_text, hpl_text, imb_text, kernel_text
from tools.bench.gate import SETTING, machine_of
from tools.bench.simulated_noise import (
    BANDWIDTH,
    COLLECTIVE,
    COMPUTE,
    MEMORY,
    Array,
    Machine,
    day_of,
    launches_of,
)
from tools.bench.simulated_runs import HPCC_CHECK, HPL_CHECK, IMB_CHECK, affected_by, form_of
from tools.bench.slowdowns import Change

CHECKS = {"xhpl": HPL_CHECK, "hpcc": HPCC_CHECK, "IMB-MPI1": IMB_CHECK}
# What a core and a node do at most: more than any figure of the captured runs.
_CLOCK_GHZ, _ROUND_TRIP_NS = 4.4, 80.0
_FMA = {"vector": "avx512", "flops_per_cycle": 32, "clock_ghz": _CLOCK_GHZ, "virtual": 0}
_TRIP = {"round_trip_ns": {"best": _ROUND_TRIP_NS, "mean": _ROUND_TRIP_NS}}
# Of a program the measurements: what they depend on, name, unit, of each core, and what else.
_KERNELS: Mapping[str, Sequence[tuple[str, str, str, float, Mapping[str, object]]]] = {
    "node_peaks": (
        (COMPUTE, "fma_peak", "gflops", 140.0, _FMA),
        (MEMORY, "triad", "bandwidth_gb_s", 110.0, {"array_mib": 128}),
    ),
    "dgemm": ((COMPUTE, "dgemm", "gflops", 110.0, {"m": 2000}),),
    "core_distance": ((MEMORY, "core_distance", "", 0.0, {}),),
}
# Sound nodes of a kind differ by so much, as a standard deviation.
_APART = 0.003
# So that the tick of a clock does not tell more time than passed.
_MARGIN = 1.02, 0.1


@dataclass(frozen=True)
class Asked:
    """What a stand-in was called with: on which host each rank is, and with which cores.

    ``kernel`` is what its BLAS calls the kernels that it chose, ``input`` the file that it reads.
    """

    stack: str
    program: str
    arguments: Sequence[str]
    hosts: Sequence[str]
    cores: Sequence[int]
    input: str
    kernel: str = "none"


@dataclass
class SimulatedMachine:
    """A machine whose figures are drawn, by a seed.

    ``slow_nodes`` compute so many times slower, what crosses the link of ``slow_links`` has so many
    times less bandwidth.
    """

    noise: Machine
    seed: int
    slow_nodes: dict[str, float] = field(default_factory=dict)
    slow_links: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.noise = machine_of(self.noise)
        self._form = form_of(SETTING)
        self._mine = threading.Lock()
        self._slower: list[tuple[Array, int]] = []
        self.begin_day(0)

    def begin_day(self, number: int) -> None:
        """Let a day begin: all that it has in common is drawn anew."""
        of_day = np.random.default_rng([self.seed, 1, number])
        self._number = number
        self._day = day_of(self.noise, self._form.kinds, of_day)
        self._spikes: dict[object, Array] = {}
        self._launches: collections.Counter[object] = collections.Counter()

    def change(self, *changes: Change) -> None:
        """Put these changes into all launches from now on, and no others."""
        self._slower = []
        for number, one in enumerate(changes):
            lot = np.random.default_rng([self.seed, 2, number])
            hit = affected_by(one, self._form, lot).astype(float)
            self._slower.append((math.log(one.factor) * hit, one.every))

    def answer(self, asked: Asked) -> tuple[float, str]:
        """Return for how many seconds a stand-in would have run, and what it prints."""
        with self._mine:
            if asked.program in _KERNELS:
                return 0.0, kernel_text(self._trials(asked))
            figures, ranks = self.figures(asked), len(asked.hosts)
        if asked.program == "xhpl":
            seconds, text = hpl_text(asked.input, ranks, figures)
        elif asked.program == "hpcc":
            seconds, text = hpcc_text(asked.stack, asked.input, ranks, figures)
        else:
            given = asked.stack, asked.arguments, asked.input
            seconds, text = imb_text(*given, ranks, figures)
        return seconds * _MARGIN[0] + _MARGIN[1], text

    def _lot_of(self, *who: object) -> np.random.Generator:
        """Return what is drawn of the next launch of somebody, whatever others launch meanwhile."""
        self._launches[who] += 1
        of_them = zlib.crc32(repr(who).encode())
        return np.random.default_rng([self.seed, 3, self._number, of_them, self._launches[who]])

    def figures(self, asked: Asked) -> Figures:
        """Return the figures of a launch."""
        wanted = CHECKS[asked.program], asked.stack
        case = next(c for c in self._form.cases if (c.key.check, c.key.stack) == wanted)
        first, end = int(case.places.min()), int(case.places.max()) + 1
        kinds = self._form.kinds[first:end]
        who = asked.program, asked.stack, *asked.hosts
        lot = self._lot_of(*who)
        noise, self._spikes[who] = launches_of(self.noise, kinds, 1, lot, self._spikes.get(who))
        logs = noise[0] + self._day[first:end] + self._of_nodes(kinds, {*asked.hosts})
        for slower, every in self._slower:
            logs = logs + slower[first:end] * (lot.random() < 1.0 / every)
        values = case.usual * np.exp(case.sign * logs[case.places - first])
        names = ((s.benchmark, int(s.conditions.get("bytes", -1)), s.metric) for s in case.samples)
        return dict(zip(names, values.tolist(), strict=True))

    def _of_nodes(self, kinds: Sequence[str], hosts: set[str]) -> Array:
        """Return by how much each figure is slower for its nodes: as for the slowest of them."""
        slow = max(math.log(self.slow_nodes.get(host, 1.0)) for host in hosts)
        far = max(math.log(self.slow_links.get(host, 1.0)) for host in hosts) * (len(hosts) > 1)
        by_kind = {COMPUTE: slow, MEMORY: slow, BANDWIDTH: far, COLLECTIVE: far}
        return np.array([by_kind.get(kind, 0.0) for kind in kinds])

    def _trials(self, asked: Asked) -> Iterator[Mapping[str, object]]:
        """Yield what a kernel of a node says of each trial."""
        words = dict(zip(asked.arguments[::2], asked.arguments[1::2], strict=False))
        (host,), lot = asked.hosts, self._lot_of(asked.program, *asked.hosts)
        own = np.random.default_rng([self.seed, 4, zlib.crc32(host.encode())]).normal(size=2)
        blas = {"k": int(words.get("--k", "0")), "kernel": asked.kernel}
        for kind, name, unit, each, more in _KERNELS[asked.program]:
            sd = self.noise.noise[kind].launch / 100
            slow = math.log(self.slow_nodes.get(host, 1.0)) + _APART * own[int(kind == MEMORY)]
            job = slow + sd * lot.normal()
            is_glance = "--glance" in words
            named = f"{name}_glance" if is_glance and name == "triad" else name
            for cores in _groups(asked.program, named, asked.cores, words):
                for trial in range(int(words.get("--trials", "5")) if unit else 1):
                    rate = round(len(cores) * each / math.exp(job + sd / 2 * lot.normal()), 3)
                    told: dict[str, object] = {unit: rate, "undisturbed": rate, "cpu_share": 1.0}
                    told = told if unit else {}
                    told |= blas if name == "dgemm" else {}
                    told |= _TRIP if not unit and len(cores) > 1 else {}
                    line = {"measurement": named, "cores": cores, "trial": trial, "seconds": 0.001}
                    yield {**line, **more, **told}


def _groups(
    program: str, name: str, cores: Sequence[int], words: Mapping[str, str]
) -> list[list[int]]:
    """Return on which cores at once a kernel measures, as the real ones do."""
    each, whole = [[core] for core in cores], [[*cores]] if len(cores) > 1 else []
    if program == "core_distance":
        return [[cores[0], other] for other in cores[1:]] or each
    if "--together" in words or ("--glance" in words and name != "fma_peak"):
        return whole or each
    return [*(each[:1] if "--glance" in words else each), *whole]


# --- the socket -----------------------------------------------------------------------------------


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        called, hosts, cores, given = self.rfile.read().decode().split("\n\n", 3)
        stack, kernel, program, *arguments = called.split("\n")
        where = hosts.split(), [*map(int, cores.split())]
        seconds, text = self.server.machine.answer(
            Asked(stack, program, arguments, *where, given, kernel)
        )
        self.wfile.write(f"{seconds:.6f}\n{text}".encode())


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    # All nodes of a cluster may ask at once.
    request_queue_size = 256

    def __init__(self, machine: SimulatedMachine, path: Path) -> None:
        self.machine = machine
        super().__init__(str(path), _Handler)


def served(machine: SimulatedMachine, path: Path) -> socketserver.BaseServer:
    """Let a machine answer at a socket, until ``shutdown`` or until this process ends."""
    server = _Server(machine, path)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
