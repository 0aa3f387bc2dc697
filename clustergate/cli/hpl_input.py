"""``clustergate hpl-input``: an HPL.dat or hpccinf.txt for given nodes, cores and memory."""

from __future__ import annotations

import argparse
import datetime
import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from clustergate.benchmarks.hpcc.input import render_hpccinf
from clustergate.benchmarks.hpl import dat_file, sizing
from clustergate.benchmarks.hpl.sizing import HplInput, SizingError
from clustergate.cli.passing_on import option
from clustergate.core.notation import counted
from clustergate.core.quantities import parse_bytes, parse_duration
from clustergate.core.reasons import Words
from clustergate.core.texts import duration
from clustergate.machine.node import read_node
from clustergate.machine.nominal import nominal_gflops_per_core

DESCRIPTION = """\
Print an HPL.dat (or hpccinf.txt) for a machine; remarks go to standard error. Of a FILE that is
there, say what it asks for on this machine, and what is odd in it. The defaults are this
node's: its physical cores and its free memory, within the limits of cgroups, NUMA binding and
ulimit. N is as large as a fraction of memory in bytes allows, or a fraction of N (the linear rule
of older papers: 0.92 of N is 85 % of the bytes), and no larger than a time budget permits.
Memory: GiB is 2^30 bytes, GB is 10^9 bytes, a bare G is refused. Time: 90s, 10m, 1h30m."""


class Memory(NamedTuple):
    """Bytes on one node, and where that number comes from."""

    bytes_per_node: int
    origin: str


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "file", "an HPL.dat or hpccinf.txt to look at", metavar="FILE", nargs="?")
    option(parser, "--format", "default: hpl.dat", default="hpl.dat", choices=_FORMATS)
    machine = parser.add_argument_group("the machine")
    option(machine, "--nodes NUMBER", "default: 1", type=_count, default=1)
    option(
        machine, "--cores-per-node NUMBER", "default: the physical cores usable here", type=_count
    )
    option(
        machine,
        "--memory-per-node SIZE",
        "such as 24GiB; default: what is usable here",
        type=parse_bytes,
    )
    option(machine, "--ranks-per-node NUMBER", "MPI processes; default: one per core", type=_count)
    size = parser.add_argument_group("the problem size")
    share = size.add_mutually_exclusive_group()
    option(
        share,
        "--memory-fraction FRACTION",
        "of memory in bytes for the matrix; default: %(default)s",
        type=float,
        default=sizing.DEFAULT_MEMORY_FRACTION,
    )
    option(share, "--n-fraction FRACTION", "of the N that would fill all memory", type=float)
    option(
        size,
        "--round",
        "N to a multiple of nb (default) or nb-lcm: NB*lcm(P,Q)",
        choices=["nb", "nb-lcm"],
    )
    option(
        size, "--time-budget TIME", "for all runs of the file; needs --gflops", type=parse_duration
    )
    option(size, "--gflops RATE", "expected rate; also predicts the run time", type=float)
    option(share, "-n N,...", "problem sizes (default: from the memory)", type=_counts)
    option(
        size,
        "--nb NB,...",
        f"default: {sizing.DEFAULT_NB}",
        type=_counts,
        default=(sizing.DEFAULT_NB,),
    )
    option(size, "--p NUMBER", "process rows; default: as square as possible", type=_count)
    option(size, "--q NUMBER", "process columns", type=_count)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(map(_count, text.split(",")))


def run(arguments: argparse.Namespace) -> int:
    """Print the file to standard output and the remarks to standard error, or look at a file."""
    if arguments.file is not None:
        return _look_at(Path(arguments.file), arguments)
    ranks_per_node = _ranks_per_node(arguments)
    memory = _memory(arguments, ranks_per_node)
    grid = _grid(arguments, arguments.nodes * ranks_per_node)
    hpl_input = _hpl_input(arguments, grid, arguments.nodes * memory.bytes_per_node)
    text = _FORMATS[arguments.format](hpl_input)
    # All of them before the first is printed: one may turn out to be an error.
    for remark in list(
        _remarks(hpl_input, arguments.nodes, ranks_per_node, memory, arguments.gflops)
    ):
        print(arguments.invocation.completed(remark), file=sys.stderr)
    sys.stdout.write(text)
    return 0


# Expected of HPL beside the nominal peak, before anybody has measured.
_EFFICIENCY = 0.7
_OF_THE_MACHINE = ("nodes", "cores_per_node", "memory_per_node", "gflops", "file", "run", "judges")


HPL_DAT_NO_EFFECT = Words(
    "hpl-dat.no-effect",
    "{option} has no effect on a FILE",
    remedy="leave it out",
)


def _look_at(path: Path, arguments: argparse.Namespace) -> int:
    """Say of a file what it asks for, on these nodes, and what is odd in it."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    for name, value in vars(parser.parse_args([])).items():
        if name not in _OF_THE_MACHINE and getattr(arguments, name) != value:
            raise SizingError(HPL_DAT_NO_EFFECT(option=f"--{name.replace('_', '-')}"))
    read = dat_file.read_file(path)
    asked, nodes = read.input, arguments.nodes
    cores = arguments.cores_per_node or read_node().usable_cores
    memory = _memory(arguments, max(1, read.ranks // nodes))
    here, needed = nodes * memory.bytes_per_node, sizing.matrix_bytes(max(asked.n_values))
    grids = ", ".join(f"{p} x {q}" for p, q in zip(asked.p_values, asked.q_values, strict=True))
    for name, values in (("N", asked.n_values), ("NB", asked.nb_values)):
        print(f"{name}: {', '.join(map(str, values))}")
    print(f"grid: {grids}, {counted(read.ranks, 'process')}")
    print(
        f"memory: {100 * needed / here:.1f} % of {here} bytes "
        f"({nodes} x {memory.bytes_per_node}, {memory.origin})"
    )
    gflops, of = arguments.gflops, "as given"
    if gflops is None and cores and (nominal := nominal_gflops_per_core()):
        gflops = nominal * min(cores * nodes, read.ranks) * _EFFICIENCY
        of = f"{100 * _EFFICIENCY:.0f} % of the nominal peak of its cores"
    solves = dat_file.count_solves(asked)
    if gflops is None:
        print(f"time: unknown for {solves}: give --gflops")
    else:
        seconds = sizing.predict_hpl_input_seconds(asked, gflops)
        print(f"time: {duration(seconds)} for {solves} at {gflops:.1f} Gflop/s ({of})")
    odd = [*read.wrong, *read.odd]
    if needed > here:
        odd.insert(0, "the matrix does not fit into the memory: with more nodes, give --nodes")
    if cores and read.ranks > cores * nodes:
        odd.append(f"{counted(read.ranks, 'process')} on {counted(cores * nodes, 'core')}")
    elif cores and read.ranks < cores * nodes:
        idle = cores * nodes - read.ranks
        odd.append(f"{idle} of {counted(cores * nodes, 'core')} stay idle")
    for sentence in odd:
        print(f"odd: {arguments.invocation.completed(sentence)}")
    return 0


_FORMATS = {"hpl.dat": sizing.render_hpl_dat, "hpccinf": render_hpccinf}


OPTION_NEEDS = Words("option.needs", "{option} needs {other}, {means}")
OPTION_NO_EFFECT = Words(
    "option.no-effect",
    "-n sets the problem sizes; {option} has no effect beside it",
)


def _hpl_input(arguments: argparse.Namespace, grid: tuple[int, int], memory_bytes: int) -> HplInput:
    p, q = grid
    draft = HplInput(n_values=(1,), nb_values=arguments.nb, p_values=(p,), q_values=(q,))
    if arguments.n is not None:
        for option in ("round", "time_budget"):
            if getattr(arguments, option) is not None:
                raise SizingError(OPTION_NO_EFFECT(option=f"--{option.replace('_', '-')}"))
        sizing.require_memory(max(arguments.n), memory_bytes)
        return replace(draft, n_values=arguments.n)
    seconds = arguments.time_budget
    if seconds is not None and arguments.gflops is None:
        facts = {"option": "--time-budget", "other": "--gflops"}
        raise SizingError(OPTION_NEEDS(means="the rate that you expect", **facts))
    n = sizing.choose_problem_size(
        memory_bytes,
        p,
        q,
        # Of several NB, N can be a multiple of one: the largest.
        nb=max(arguments.nb),
        memory_fraction=arguments.memory_fraction,
        n_fraction=arguments.n_fraction,
        rounding=arguments.round or "nb",
        seconds=None if seconds is None else seconds / draft.solves_per_n,
        gflops=arguments.gflops,
    )
    return replace(draft, n_values=(n,))


# --- the machine ------------------------------------------------------------------------------


NODE_UNKNOWN = Words("node.unknown", "the {what} of this node {is_are} unknown", remedy="{remedy}")


def _ranks_per_node(arguments: argparse.Namespace) -> int:
    usable = arguments.ranks_per_node or arguments.cores_per_node or read_node().usable_cores
    if usable is None:
        facts = {"what": "cores", "is_are": "are"}
        raise SizingError(NODE_UNKNOWN(remedy="give --cores-per-node", **facts))
    return int(usable)


def _memory(arguments: argparse.Namespace, ranks_per_node: int) -> Memory:
    if arguments.memory_per_node is not None:
        return Memory(arguments.memory_per_node, "as given")
    bound = read_node().memory_bound(ranks_per_node)
    if bound is None:
        facts = {"what": "memory", "is_are": "is"}
        raise SizingError(NODE_UNKNOWN(remedy="give --memory-per-node", **facts))
    return Memory(bound.available_bytes, f"this node's, by {bound.source}")


NO_DIVISOR = Words("sizing.no-divisor", "{option} {value} does not divide the {ranks} processes")
SIZING_GRID = Words(
    "sizing.grid",
    "a {p} x {q} grid needs {needed} processes, and there are {ranks}",
)


def _grid(arguments: argparse.Namespace, ranks: int) -> tuple[int, int]:
    p, q = arguments.p, arguments.q
    if p is None and q is None:
        return sizing.process_grid(ranks)
    for name, given in (("--p", p), ("--q", q)):
        if given is not None and (p is None or q is None) and ranks % given:
            raise SizingError(NO_DIVISOR(option=name, value=given, ranks=ranks))
    p, q = p or ranks // q, q or ranks // p
    if p * q > ranks:
        raise SizingError(SIZING_GRID(p=p, q=q, needed=p * q, ranks=ranks))
    return p, q


# --- remarks ----------------------------------------------------------------------------------


def _remarks(
    hpl_input: HplInput, nodes: int, ranks_per_node: int, memory: Memory, gflops: float | None
) -> Iterator[str]:
    ranks = nodes * ranks_per_node
    p, q = hpl_input.p_values[0], hpl_input.q_values[0]
    n = max(hpl_input.n_values)
    total = nodes * memory.bytes_per_node
    needed = sizing.matrix_bytes(n)
    yield f"{ranks} processes on {counted(nodes, 'node')}, {ranks_per_node} on each; grid {p} x {q}"
    yield (
        f"N={n}: the matrix takes {needed} bytes, {100 * needed / total:.1f} % of {total} "
        f"({nodes} x {memory.bytes_per_node}, {memory.origin})"
    )
    if p * q < ranks:
        yield f"{ranks - p * q} of {ranks} processes will be idle"
    grid_remark = sizing.grid_remark(p, q)
    if grid_remark is not None:
        yield grid_remark
    for size, nb in itertools.product(hpl_input.n_values, hpl_input.nb_values):
        if size % nb:
            yield f"N={size} is not a multiple of NB={nb}"
        if size < nb * max(p, q):
            yield f"with N={size} and NB={nb} some processes hold no part of the matrix"
    if gflops is not None:
        seconds = sizing.predict_hpl_input_seconds(hpl_input, gflops)
        solves = len(hpl_input.n_values) * hpl_input.solves_per_n
        readable = datetime.timedelta(seconds=round(seconds))
        yield (
            f"predicted run time at {gflops:g} Gflop/s: {seconds:.1f} s ({readable}) "
            f"for {counted(solves, 'solve')}, without set-up and check"
        )
