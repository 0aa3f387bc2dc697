"""What stand-ins of HPL, HPCC, IMB-MPI1 and a node's kernels print: other figures, the right form.

Captured outputs are filled with the figures of a machine that is simulated, and with what was asked
for, as each program repeats it. Pure, but for the dates in them. Figures are by benchmark, bytes
(-1: none) and metric. Each text comes with the seconds that it tells of.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence

from clustergate.benchmarks.hpcc.output import SECTIONS, _section_lines
from clustergate.benchmarks.hpl import dat_file
from clustergate.benchmarks.hpl.output import hpl_flops
from clustergate.benchmarks.hpl.sizing import HplInput, hpl_expectation
from clustergate.benchmarks.imb.command import COUNTED
from tests.conftest import DATA

Figures = Mapping[tuple[str, int, str], float]

# The captured run had so many ranks, of which HPL's rate is.
_CAPTURED_RANKS = 2
# What HPCC's other parts took when they were captured, and more.
_HPCC_S = 2.0
# A size is repeated so often at most. It is a condition of the figure: no launch has another.
_REPEATED = 4
_MPI = {"intel-mpi": "4.1", "mpich": "5.0", "openmpi": "3.1"}
_CAPTURED = {"intel-mpi": "impi"}


# --- HPL and HPCC ---------------------------------------------------------------------------------


def hpl_text(given: str, ranks: int, figures: Figures) -> tuple[float, str]:
    """Return what HPL prints of the only problem of an HPL.dat."""
    rate = figures["HPL", -1, "performance_gflops"] * ranks / _CAPTURED_RANKS
    return _solved(dat_file.parse(given).input, rate)


def _solved(asked: HplInput, gflops: float) -> tuple[float, str]:
    text = (DATA / "hpl" / "hpl-2.0-mpich-failed.txt").read_text()
    words = {name: " ".join(each) for name, each in hpl_expectation(asked).declared.items()}
    for name, value in words.items():
        text = re.sub(rf"^({re.escape(name)} *: ).*$", rf"\g<1>{value}", text, flags=re.MULTILINE)
    least = r"(residuals are less than +)\S+"
    text = re.sub(least, rf"\g<1>{asked.threshold:.1f}", text)
    (n,), (nb,), (p,), (q,) = asked.n_values, asked.nb_values, asked.p_values, asked.q_values
    seconds = hpl_flops(n) / gflops / 1e9
    coded = f"WR{words['DEPTH']}{asked.bcasts[0]}{words['RFACT'][0]}{words['NDIV']}"
    coded += f"{words['PFACT'][0]}{words['NBMIN']}"
    row = f"{coded}{n:12d}{nb:6d}{p:6d}{q:6d}{seconds:19.2f}{gflops:23.3e}"
    text = re.sub(r"^WR.*$", row, text, flags=re.MULTILINE).replace("FAILED", "PASSED")
    text = text.replace("0 tests completed and passed", "1 tests completed and passed")
    return seconds, text.replace("1 tests completed and failed", "0 tests completed and failed")


def hpcc_text(stack: str, given: str, ranks: int, figures: Figures) -> tuple[float, str]:
    """Return what HPCC writes into its file for an hpccinf.txt."""
    problem = dat_file.parse(given).input
    captured = DATA / "hpcc" / f"hpcc-1.5.0-{_CAPTURED.get(stack, stack)}.txt"
    head, begin, rest = captured.read_text().partition("Begin of Summary section.\n")
    pairs, end, rest = rest.partition("End of Summary section.\n")
    lines = (line.partition("=") for line in pairs.splitlines() if "=" in line)
    summary = {name: value for name, _, value in lines}
    numbers: dict[str, float] = {m: value for (_, _, m), value in figures.items() if m in summary}
    numbers |= _sizes(problem, ranks)
    numbers["HPL_Tflops"] = figures["HPL", -1, "performance_gflops"] * ranks / _CAPTURED_RANKS / 1e3
    numbers["HPL_time"], solved = _solved(problem, 1e3 * numbers["HPL_Tflops"])
    numbers["PTRANS_time"] = 8e-9 * numbers["PTRANS_n"] ** 2 / numbers["PTRANS_GBs"]
    updating = ("MPIRandomAccess", "MPIRandomAccess_LCG")
    for name in updating:
        updates = float(summary[f"{name}_ExeUpdates"])
        numbers[f"{name}_time"] = 1e-9 * updates / numbers[f"{name}_GUPs"]
    summary |= {name: f"{value:.6g}" for name, value in numbers.items()}
    summary |= {name: str(value) for name, value in _sizes(problem, ranks).items()}
    parameters = solved[: solved.index(f"{'=' * 80}\nT/V")]
    above = re.compile(r"={80}\nHPLinpack.*?(?=Begin of)", re.DOTALL)
    head = above.sub(lambda _: f"{parameters}\n", head, count=1)
    for name in SECTIONS:
        bounds = rf"(?<=Begin of {name} section\.\n).*?(?=End of {name} section\.)"
        body = re.search(bounds, head, re.DOTALL)
        assert body, name
        new = solved if name == "HPL" else _section(name, body[0], summary)
        if name == "PTRANS":
            new = _transposed(new, summary)
        head = f"{head[: body.start()]}{new}{head[body.end() :]}"
    told = "".join(f"{name}={value}\n" for name, value in summary.items())
    now = f"Current time ({int(time.time())}) is {time.asctime()}"
    text = re.sub(r"Current time \(\d+\) is .*", now, f"{head}{begin}{told}{end}{rest}")
    seconds = [numbers["HPL_time"], *(numbers[f"{name}_time"] for name in updating)]
    return sum(seconds) + 5 * numbers["PTRANS_time"] + _HPCC_S, text


def _section(name: str, body: str, summary: Mapping[str, str]) -> str:
    """Return the lines of a section with the numbers that the summary repeats."""
    lines = []
    for line in body.splitlines():
        for form in _section_lines().get(name, ()):
            match = form.pattern.fullmatch(line)
            if match is None:
                continue
            for place, (key, factor) in reversed([*enumerate(form.keys, 1)]):
                first, last = match.span(place)
                if "e" not in match[place]:
                    digits = len(match[place].partition(".")[2])
                    number = f"{float(summary[key]) / factor:.{digits}f}"
                    line = f"{line[:first]}{number}{line[last:]}"
        lines.append(f"{line}\n")
    return "".join(lines)


def _transposed(body: str, summary: Mapping[str, str]) -> str:
    n, nb, p, q = (summary[f"PTRANS_{name}"] for name in ("n", "nb", "nprow", "npcol"))
    rate, seconds = float(summary["PTRANS_GBs"]), float(summary["PTRANS_time"])
    row = f"{n:>5} {n:>5} {nb:>3} {nb:>3} {p:>3} {q:>3} {seconds:8.2f} PASSED {rate:8.3f}  0.00"
    body = re.sub(r"^(WALL|CPU ) .*$", rf"\1 {row}", body, flags=re.MULTILINE)
    for name, value in (("M", n), ("N", n), ("MB", nb), ("NB", nb), ("P", p), ("Q", q)):
        body = re.sub(rf"^{name}: \d+$", f"{name}: {value}", body, flags=re.MULTILINE)
    return body


def _sizes(problem: HplInput, ranks: int) -> dict[str, int]:
    """Return the sizes that HPCC makes of HPL's input, as HPCC_Init (io.c) and tstdgemm.c do."""
    (n,), (nb,), (p,), (q,) = (
        *(problem.n_values, problem.nb_values),
        problem.p_values,
        problem.q_values,
    )
    memory, computing = 8 * n * n // (p * q), _power_of_two(ranks)
    return {
        **{"HPL_N": n, "HPL_NB": nb, "HPL_nprow": p, "HPL_npcol": q, "CommWorldProcs": ranks},
        **{"PTRANS_n": n // 2, "PTRANS_nb": nb, "PTRANS_nprow": p, "PTRANS_npcol": q},
        "STREAM_VectorSize": memory // 24,
        "DGEMM_N": int(math.sqrt(memory // 8 // 3 + 0.25) - 0.5),
        "FFT_N": _power_of_two(memory // 32),
        "MPIFFT_N": _power_of_two(memory // (64 * computing)) * computing**2,
        "MPIFFT_Procs": computing,
        **{f"RandomAccess{of}_N": _power_of_two(memory // 8) for of in ("", "_LCG")},
        **{f"MPIRandomAccess{of}_N": _power_of_two(memory * ranks // 8) for of in ("", "_LCG")},
    }


def _power_of_two(most: int) -> int:
    return 1 << max(most.bit_length() - 1, 0)


# --- IMB-MPI1 -------------------------------------------------------------------------------------

_RULE = f"#{'-' * 64}"
_OF_FLOATS = re.compile("(all)?reduce", re.IGNORECASE)
_OF_PAIRS = re.compile("pingp[io]ng", re.IGNORECASE)
_RATES, _TRANSFERS = ("Uniband", "Biband"), ("Sendrecv", "Exchange")
_SPREAD = ("t_min[usec]", "t_max[usec]", "t_avg[usec]")
_HEADER = """\
{rule}
#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
{rule}
# Date                  : {date}
# Machine               : simulated
# System                : simulated
# Release               : simulated
# Version               : simulated
# MPI Version           : {version}
# MPI Thread Environment:{blank}


# Calling sequence was:{blank}

# IMB-MPI1 {words}{blank}

{lengths}
#
# MPI_Datatype                   :   MPI_BYTE{blank}
# MPI_Datatype for reductions    :   MPI_FLOAT{blank}
# MPI_Op                         :   MPI_SUM{blank}

# List of Benchmarks to run:

{named}
"""


def imb_text(
    stack: str, words: Sequence[str], given: str, ranks: int, figures: Figures
) -> tuple[float, str]:
    """Return what IMB-MPI1 prints for a command line, and for the file of message lengths."""
    count = next((k for k, word in enumerate(words) if word.startswith("-")), len(words))
    options = dict(zip(words[count::2], words[count + 1 :: 2], strict=True))
    most, _, volume_mb = options.get("-iter", "1000,40").partition(",")
    lengths, sizes = "# Message lengths were user defined", [*map(int, given.split())]
    if is_log := "-msglog" in options:
        largest = 1 << int(options["-msglog"].partition(":")[2])
        sizes = [0, *(1 << k for k in range(largest.bit_length()))]
        lengths = "# Minimum message length in bytes:   0\n"
        lengths += f"# Maximum message length in bytes:   {largest}"
    said = {"rule": _RULE, "date": time.asctime(), "version": _MPI[stack], "blank": " "}
    said |= {"words": " ".join(words), "lengths": lengths}
    text = _HEADER.format(**said, named="\n".join(f"# {name}" for name in words[:count]))
    seconds = 0.0
    for name in words[:count]:
        of_floats = [size + -size % 4 for size in sizes]
        own = (of_floats if _OF_FLOATS.match(name) else sizes) if name != "Barrier" else [-1]
        own = [*dict.fromkeys(own)] if is_log else own
        head, rows, taken_s = _table(name, own, figures, int(most), int(volume_mb or 40) << 20)
        processes = 2 if _OF_PAIRS.match(name) else ranks - ranks % 2 * (name in _RATES)
        idle = ranks - processes
        waiting = f"# ( {idle} additional process{'es' * (idle > 1)} waiting in MPI_Barrier)\n"
        text += f"\n{_RULE}\n# Benchmarking {name} \n# #processes = {processes} \n"
        text += f"{waiting * bool(idle)}{_RULE}\n"
        text += "".join(f"{''.join(f'{word:>13}' for word in row)}\n" for row in (head, *rows))
        seconds += taken_s
    return seconds, f"{text}\n\n# All processes entering MPI_Finalize\n\n"


def _table(
    name: str, sizes: Iterable[int], figures: Figures, most: int, volume: int
) -> tuple[Sequence[str], Sequence[Sequence[str]], float]:
    """Return the names of a table's columns, its rows, and how many seconds it took."""
    moved = COUNTED.get(re.sub("(Specific|Any)Source$", "", name), 0)
    columns, metric = (*_SPREAD, *(["Mbytes/sec"] if name in _TRANSFERS else [])), "t_avg_us"
    if name in _RATES:
        columns, metric = ("Mbytes/sec", "Msg/sec"), "message_rate_per_s"
    elif _OF_PAIRS.match(name):
        columns, metric = ("t[usec]", "Mbytes/sec"), "latency_us"
    rows, seconds = [], 0.0
    for size in sizes:
        value = figures[name, size, metric]
        time_us = 1e6 / value if name in _RATES else value
        # IMB repeats no size more often than the one before.
        most = max(1, min(most, volume // max(size, 1), _REPEATED))
        spread = [time_us * 0.99, time_us * 1.01, time_us]
        told = [*spread, moved * size / spread[1]][: len(columns)]
        if name in _RATES:
            told = [size * value / 1e6]
        elif metric == "latency_us":
            told = [time_us, moved * size / time_us]
        of_row = [*([str(size)] if size >= 0 else []), str(most), *(f"{one:.2f}" for one in told)]
        rows.append([*of_row, *([f"{value:.0f}"] if name in _RATES else [])])
        seconds += most * spread[1] * 1e-6
    first = ("#repetitions",) if name == "Barrier" else ("#bytes", "#repetitions")
    return (*first, *columns), rows, seconds


# --- the kernels of a node ------------------------------------------------------------------------


def kernel_text(trials: Iterable[Mapping[str, object]]) -> str:
    """Return the lines of a kernel, one for each trial."""
    lines = [json.dumps(one) for one in trials]
    return "\n".join([*lines, json.dumps({"measurement": "end", "count": len(lines)}), ""])
