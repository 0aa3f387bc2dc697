"""``clustergate hpl-input``: an HPL.dat or hpccinf.txt for given nodes, cores and memory."""

from __future__ import annotations

import argparse
import datetime
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from clustergate.benchmarks.hpcc.input import render_hpccinf
from clustergate.benchmarks.hpl import sizing
from clustergate.benchmarks.hpl.sizing import HplInput, SizingError
from clustergate.machine.node import read_node
from clustergate.wording.notation import counted
from clustergate.wording.quantities import QuantityError, parse_bytes, parse_duration

DESCRIPTION = """\
Print an HPL.dat (or hpccinf.txt) for a machine; remarks go to standard error. The defaults are this
node's: its physical cores and its free memory, within the limits of cgroups, NUMA binding and
ulimit. N is as large as a fraction of memory in bytes allows, or a fraction of N (the linear rule
of older papers: 0.92 of N is 85 % of the bytes), and no larger than a time budget permits.
Memory: GiB is 2^30 bytes, GB is 10^9 bytes, a bare G is refused. Time: 90s, 10m, 1h30m."""


class _Choice(NamedTuple):
    """An option that sets one field of HplInput; ``convert`` gets the option and its text."""

    option: str
    field: str
    metavar: str
    convert: Callable[[str, str], Any]
    help: str


class Memory(NamedTuple):
    """Bytes on one node, and where that number comes from."""

    bytes_per_node: int
    origin: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "--format", default="hpl.dat", metavar="FORMAT", help="hpl.dat (default) or hpccinf"
    )
    machine = parser.add_argument_group("the machine")
    add = machine.add_argument
    add("--nodes", default="1", metavar="NUMBER", help="default: 1")
    add("--cores-per-node", metavar="NUMBER", help="default: the physical cores usable here")
    add("--memory-per-node", metavar="SIZE", help="such as 24GiB; default: what is usable here")
    add("--ranks-per-node", metavar="NUMBER", help="MPI processes; default: one per core")
    size = parser.add_argument_group("the problem size")
    add = size.add_argument
    add(
        "--memory-fraction",
        metavar="FRACTION",
        help=f"of memory in bytes for the matrix; default: {sizing.DEFAULT_MEMORY_FRACTION}",
    )
    add("--n-fraction", metavar="FRACTION", help="of the N that would fill all memory")
    add("--round", metavar="RULE", help="N to a multiple of nb (default) or nb-lcm: NB*lcm(P,Q)")
    add("--time-budget", metavar="TIME", help="for all runs of the file; needs --gflops")
    add("--gflops", metavar="RATE", help="expected rate; also predicts the run time")
    add("-n", metavar="N,...", help="problem sizes (default: from the memory)")
    add("--nb", default=str(sizing.DEFAULT_NB), metavar="NB,...", help="default: %(default)s")
    add("--p", metavar="NUMBER", help="process rows; default: a grid as square as possible")
    add("--q", metavar="NUMBER", help="process columns")
    other = parser.add_argument_group("the rest of the file, in HPL's own code numbers")
    for choice in _CHOICES:
        other.add_argument(
            choice.option, dest=choice.field, metavar=choice.metavar, help=choice.help
        )


def run(arguments: argparse.Namespace) -> int:
    """Print the file to standard output and the remarks to standard error."""
    nodes = _count("--nodes", arguments.nodes)
    ranks_per_node = _ranks_per_node(arguments)
    memory = _memory(arguments, ranks_per_node)
    p, q = _grid(arguments, nodes * ranks_per_node)
    gflops = _given(arguments.gflops, "--gflops", _number)
    hpl_input = _hpl_input(arguments, (p, q), nodes * memory.bytes_per_node, gflops)
    if arguments.format not in _FORMATS:
        facts = {"option": "--format", "value": arguments.format}
        raise SizingError("option.choice", choices=" or ".join(_FORMATS), **facts)
    text = _FORMATS[arguments.format](hpl_input)
    # All of them before the first is printed: one may turn out to be an error.
    for remark in list(_remarks(hpl_input, nodes, ranks_per_node, memory, gflops)):
        print(remark, file=sys.stderr)
    sys.stdout.write(text)
    return 0


_FORMATS = {"hpl.dat": sizing.render_hpl_dat, "hpccinf": render_hpccinf}


def _hpl_input(
    arguments: argparse.Namespace, grid: tuple[int, int], memory_bytes: int, gflops: float | None
) -> HplInput:
    p, q = grid
    chosen = {
        choice.field: choice.convert(choice.option, getattr(arguments, choice.field))
        for choice in _CHOICES
        if getattr(arguments, choice.field) is not None
    }
    nb_values = _counts("--nb", arguments.nb)
    draft = HplInput(n_values=(1,), nb_values=nb_values, p_values=(p,), q_values=(q,), **chosen)
    if arguments.n is not None:
        return replace(draft, n_values=_explicit_sizes(arguments, memory_bytes))
    seconds = _given(arguments.time_budget, "--time-budget", _duration)
    memory_fraction = _given(arguments.memory_fraction, "--memory-fraction", _number)
    n_fraction = _given(arguments.n_fraction, "--n-fraction", _number)
    if memory_fraction is not None and n_fraction is not None:
        raise SizingError("option.not-both", one="--memory-fraction", other="--n-fraction")
    if seconds is not None and gflops is None:
        facts = {"option": "--time-budget", "other": "--gflops"}
        raise SizingError("option.needs", means="the rate that you expect", **facts)
    n = sizing.choose_problem_size(
        memory_bytes,
        p,
        q,
        # Of several NB, N can be a multiple of one: the largest.
        nb=max(nb_values),
        memory_fraction=(
            sizing.DEFAULT_MEMORY_FRACTION if memory_fraction is None else memory_fraction
        ),
        n_fraction=n_fraction,
        rounding=arguments.round or "nb",
        seconds=None if seconds is None else seconds / draft.solves_per_n,
        gflops=gflops,
    )
    return replace(draft, n_values=(n,))


def _explicit_sizes(arguments: argparse.Namespace, memory_bytes: int) -> tuple[int, ...]:
    for option in ("memory_fraction", "n_fraction", "round", "time_budget"):
        if getattr(arguments, option) is not None:
            name = "--" + option.replace("_", "-")
            raise SizingError("option.no-effect", option=name)
    n_values = _counts("-n", arguments.n)
    needed = sizing.matrix_bytes(max(n_values))
    if needed > memory_bytes:
        facts = {"n": max(n_values), "needed": needed, "available": memory_bytes}
        raise SizingError("sizing.memory", **facts)
    return n_values


# --- the machine ------------------------------------------------------------------------------


def _ranks_per_node(arguments: argparse.Namespace) -> int:
    cores = _given(arguments.cores_per_node, "--cores-per-node", _count)
    ranks = _given(arguments.ranks_per_node, "--ranks-per-node", _count)
    usable = ranks or cores or read_node().usable_cores
    if usable is None:
        facts = {"what": "cores", "is_are": "are"}
        raise SizingError("node.unknown", remedy="give --cores-per-node", **facts)
    return usable


def _memory(arguments: argparse.Namespace, ranks_per_node: int) -> Memory:
    if arguments.memory_per_node is not None:
        return Memory(parse_bytes(arguments.memory_per_node), "as given")
    bound = read_node().memory_bound(ranks_per_node)
    if bound is None:
        facts = {"what": "memory", "is_are": "is"}
        raise SizingError("node.unknown", remedy="give --memory-per-node", **facts)
    return Memory(bound.available_bytes, f"this node's, by {bound.source}")


def _grid(arguments: argparse.Namespace, ranks: int) -> tuple[int, int]:
    p = _given(arguments.p, "--p", _count)
    q = _given(arguments.q, "--q", _count)
    if p is None and q is None:
        return sizing.process_grid(ranks)
    for option, given in (("--p", p), ("--q", q)):
        if given is not None and (p is None or q is None) and ranks % given:
            raise SizingError("sizing.no-divisor", option=option, value=given, ranks=ranks)
    p, q = p or ranks // (q or 1), q or ranks // (p or 1)
    if p * q > ranks:
        raise SizingError("sizing.grid", p=p, q=q, needed=p * q, ranks=ranks)
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


# --- values of options ------------------------------------------------------------------------


def _given(text: str | None, option: str, convert: Callable[[str, str], Any]) -> Any:
    return None if text is None else convert(option, text)


def _whole(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        kind = "a whole number"
        raise SizingError("option.not-a-number", option=option, kind=kind, value=text) from None


def _count(option: str, text: str) -> int:
    value = _whole(option, text)
    if value < 1:
        raise SizingError("input.too-small", name=option, least=1, value=value)
    return value


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        kind = "a number"
        raise SizingError("option.not-a-number", option=option, kind=kind, value=text) from None


def _duration(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except QuantityError as error:
        raise error.at(option) from None


def _wholes(option: str, text: str) -> tuple[int, ...]:
    return tuple(_whole(option, part) for part in text.split(","))


def _counts(option: str, text: str) -> tuple[int, ...]:
    return tuple(_count(option, part) for part in text.split(","))


def _switch(option: str, text: str) -> bool:
    if text not in ("0", "1"):
        raise SizingError("option.choice", option=option, choices="0 or 1", value=text)
    return text == "1"


def _transposed(option: str, text: str) -> bool:
    return not _switch(option, text)


_CHOICES = (
    _Choice("--pmap", "process_mapping", "CODE", _whole, "0 row-major, 1 column-major"),
    _Choice("--threshold", "threshold", "NUMBER", _number, "largest residual that passes"),
    _Choice("--pfact", "pfacts", "CODES", _wholes, "panel: 0 left, 1 Crout, 2 right"),
    _Choice("--nbmin", "nbmins", "NUMBERS", _wholes, "columns at which recursion stops"),
    _Choice("--ndiv", "ndivs", "NUMBERS", _wholes, "panels in recursion"),
    _Choice("--rfact", "rfacts", "CODES", _wholes, "recursion: 0 left, 1 Crout, 2 right"),
    _Choice("--bcast", "bcasts", "CODES", _wholes, "0 1rg, 1 1rM, 2 2rg, 3 2rM, 4 Lng, 5 LnM"),
    _Choice("--depth", "depths", "NUMBERS", _wholes, "look-ahead"),
    _Choice("--swap", "swap", "CODE", _whole, "0 binary exchange, 1 long, 2 mix"),
    _Choice("--swap-threshold", "swapping_threshold", "NUMBER", _whole, "columns, for the mix"),
    _Choice("--l1", "l1_transposed", "CODE", _transposed, "0 transposed, 1 not"),
    _Choice("--u", "u_transposed", "CODE", _transposed, "0 transposed, 1 not"),
    _Choice("--equilibration", "equilibration", "CODE", _switch, "0 no, 1 yes"),
    _Choice("--alignment", "alignment", "NUMBER", _whole, "of buffers, in double words"),
)
