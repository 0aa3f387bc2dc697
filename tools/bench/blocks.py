"""``python -m tools.bench.blocks``: what many short blocks in a launch tell, instead of one mean.

IMB prints the mean of all repetitions of a size. Here a stack is launched in turn with each size
once, and in the short blocks in which ``clustergate ab`` and the gate launch A and B. The suite's
own kernel of MPI calls prints the time of each call. How much does what stands for a size scatter
between launches, and after how many rounds does the gate decide of a stack against itself?
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from clustergate.benchmarks.imb.blocks import bounded_mean
from clustergate.benchmarks.imb.command import SIZES_FILE, imb_arguments, in_blocks, sizes_file
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.benchmarks.imb.plan import ImbExpectation
from clustergate.core.model import ClustergateError, Row
from clustergate.core.reasons import sentence_of
from clustergate.launch.plan import read_log
from clustergate.launch.reading import read_planned
from clustergate.stacks.manifest import Manifest
from clustergate.stats.rounds import FEWEST
from tools.bench import pairs, record
from tools.bench.launches import times_of
from tools.bench.slowdowns import NOTHING, SIZE, STACK, Change
from tools.bench.verdicts import table_of

KERNEL = "mpi_trials"
# Those of the check that launches A and B in turn.
SETTINGS = dataclasses.replace(
    record.SETTINGS,
    benchmarks=("PingPong", "Sendrecv", "Bcast", "Allgather", "Allreduce", "Alltoall", "Barrier"),
    volume_mb=8,
    seconds=1.0,
)
KINDS = {"one mean": SETTINGS, "short blocks": in_blocks(SETTINGS)}
_CALLS = 200
_SMALLEST_SPREAD = 0.002
_AGAIN = 8

# A fault that meets so many of the blocks of a size, each by so many times.
_HIT, _BY = 0.3, 2.0

Blocks = Mapping[str, Sequence[float]]
"""The blocks of a launch in us, by figure."""


def middle(blocks: Sequence[float]) -> float:
    """Return the median, the lower of two."""
    return float(np.quantile(blocks, 0.5, method="lower"))


Statistic = Callable[[Sequence[float]], float]
STATISTICS: Mapping[str, Statistic] = {
    "mean": lambda blocks: float(np.mean(blocks)),
    "median": middle,
    "bounded mean": bounded_mean,
}
"""What stands for the blocks of a launch."""


def launches(
    manifest: Manifest, rounds: int, folder: Path
) -> dict[str, list[tuple[Blocks, float]]]:
    """Launch each kind in turn; return the blocks and the seconds of its launches.

    Raises :class:`~tools.bench.record.LaunchFailed` when one ends badly.
    """
    plan = record.plan_of([manifest], rounds)
    (plain,) = plan.contenders
    words = len(plain.program) - len(imb_arguments(record.SETTINGS))
    contenders = [
        dataclasses.replace(
            plain,
            name=name,
            program=[*plain.program[:words], *imb_arguments(settings)],
            inputs={SIZES_FILE: sizes_file(settings.sizes)},
        )
        for name, settings in KINDS.items()
    ]
    kernel = [manifest.program(KERNEL).path, "--flush-bytes", "0", "--trials", str(_CALLS)]
    contenders += [
        dataclasses.replace(plain, name=KERNEL, program=[*plain.program[: words - 1], *kernel])
    ]
    plan = dataclasses.replace(plan, contenders=contenders)
    ended = record.launched(folder, plan)
    if ended.returncode:
        raise record.LaunchFailed(f"a launch ended badly: {ended.stderr.strip()[-200:]}")
    found: dict[str, list[tuple[Blocks, float]]] = {one.name: [] for one in contenders}
    for made in read_log(folder).launches:
        (contender,) = (one for one in contenders if one.name == made.contender)
        held: list[Blocks] = []

        def parsed(
            lines: Iterable[str],
            source: str,
            name: str = made.contender,
            held: list[Blocks] = held,
        ) -> Iterator[Row]:
            if name == KERNEL:
                held.append(calls_of(lines))
                return
            call = ImbExpectation(
                benchmarks=tuple(SETTINGS.benchmarks),
                bytes=tuple(KINDS[name].sizes),
                ranks=record.RANKS,
            )
            rows = list(parse_imb(lines, source=source, expect=call))
            held.append(blocks_of(rows))
            yield from rows

        complaints, _ = read_planned(folder, plan.nonce, contender, made, parsed)
        if complaints:
            raise record.LaunchFailed(f"{manifest.stack}: {sentence_of(complaints)}")
        found[made.contender].append((held[0], made.launch.seconds))
    return found


def blocks_of(rows: Sequence[Row]) -> Blocks:
    """Return the time of each block by its figure, in the order of the text."""
    by_block: list[dict[str, Mapping[str, float]]] = []
    seen: Counter[str] = Counter()
    for row in rows:
        name = f"{row.benchmark}/{row.conditions.get('bytes', '')}"
        if seen[name] == len(by_block):
            by_block.append({})
        by_block[seen[name]][name] = row.values
        seen[name] += 1
    found: dict[str, list[float]] = {}
    for times in times_of(by_block):
        for name, time_us in times.items():
            found.setdefault(name, []).append(time_us)
    return found


def calls_of(lines: Iterable[str]) -> Blocks:
    """Return the time of each call but the first, which sets things up."""
    entries = [json.loads(line) for line in lines if line.startswith("{")]
    return {
        f"{one['test']}/{one['bytes']}": one["times_us"][1:]
        for one in entries
        if one.get("measurement") == "trials"
    }


def levels(held: Sequence[Blocks], statistic: Statistic) -> NDArray[np.float64]:
    """Return what stands for each figure in each launch: (launches, figures)."""
    names = sorted(set.intersection(*(set(one) for one in held)))
    return np.array([[statistic(one[name]) for name in names] for one in held])


def with_slow_blocks(held: Sequence[Blocks], lot: np.random.Generator) -> list[Blocks]:
    """Return launches in which a lot made three blocks of ten of each figure twice as slow."""

    def slowed(blocks: Sequence[float]) -> list[float]:
        hit = lot.permutation(len(blocks))[: round(_HIT * len(blocks))]
        factors = np.ones(len(blocks))
        factors[hit] = _BY
        found: list[float] = (factors * blocks).tolist()
        return found

    return [{name: slowed(blocks) for name, blocks in one.items()} for one in held]


def spreads(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each figure scatters by between launches: as of a normal one, by quartiles."""
    low, high = np.quantile(np.log(values), [0.25, 0.75], axis=0)
    return np.asarray(np.maximum((high - low) / 1.349, _SMALLEST_SPREAD))


def decided(
    names: Sequence[str], values: NDArray[np.float64], change: Change | NDArray[np.float64]
) -> tuple[str, float]:
    """Return what the gate says of launches against those before them, and the mean rounds.

    The change is put into one figure of B; as a table it holds what a faulty launch has there.
    """
    rounds, count = len(values) // 2, len(names)
    table = values if isinstance(change, Change) else np.concatenate([values, change], axis=1)
    held = table[: 2 * rounds].reshape(rounds, 2, -1)
    lot = np.random.default_rng(1)
    found = []
    for _ in range(_AGAIN):
        a, plain = pairs.drawn(held, rounds, lot)
        if isinstance(change, Change):
            b, _ = pairs.changed(plain, names, change, lot)
        else:
            # Large messages have one block, in which none of several can be slow.
            some = np.flatnonzero((change != values[: len(change)]).any(axis=0))
            hit, b = int(lot.choice(some)), plain[:, :count].copy()
            b[:, hit] = plain[:, count + hit]
        found.append(pairs.at_the_gate(names, a[:, :count], b))
    told = Counter(one.answer for one in found)
    return (
        ", ".join(f"{n} {answer}" for answer, n in told.items()),
        float(np.mean([one.rounds for one in found])),
    )


def rows_of(made: Mapping[str, Sequence[tuple[Blocks, float]]]) -> Iterator[list[str]]:
    """Yield a row of the table for each kind of launches and each statistic of its blocks."""
    for kind, of_kind in made.items():
        held = [blocks for blocks, _ in of_kind]
        names = sorted(set.intersection(*(set(one) for one in held)))
        single = all(len(one[name]) == 1 for one in held for name in names)
        baseline = made[next(iter(made))] if kind != KERNEL else of_kind
        against = spreads(levels([blocks for blocks, _ in baseline], STATISTICS["mean"]))
        faulty = with_slow_blocks(held, np.random.default_rng(2))
        for name, statistic in STATISTICS.items():
            if single and name != "mean":
                continue
            values = levels(held, statistic)
            own = spreads(values)
            changes = (NOTHING, Change(SIZE, 1.10), Change(STACK, pairs.FIVE_TIMES, 3))
            put: list[Change | NDArray[np.float64]] = [*changes]
            put += [] if single else [levels(faulty, statistic)]
            told = [decided(names, values, one) for one in put]
            yield [
                f"{kind}: {name}",
                f"{np.mean([seconds for _, seconds in of_kind]):.2f}",
                f"{100 * np.median(own):.1f} %",
                f"{np.exp(np.log(own / against).mean()):.2f}",
                *(word for answer, rounds in told for word in (answer, f"{rounds:.0f}")),
                *["", ""] * single,
            ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Launch, and print what each statistic scatters by; 2 when a launch failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.blocks", description="Short blocks in a launch against a mean."
    )
    parser.add_argument("--stack", default="intel-mpi")
    parser.add_argument("--rounds", type=int, default=50)
    asked = parser.parse_args(arguments)
    if asked.rounds < 2 * FEWEST:
        parser.error(f"--rounds {asked.rounds}: it takes {2 * FEWEST} for the gate to decide")
    try:
        (manifest,) = record.manifests_of([asked.stack])
        with tempfile.TemporaryDirectory(prefix="clustergate-bench-") as folder:
            made = launches(manifest, asked.rounds, Path(folder))
    except ClustergateError as error:
        print(error, file=sys.stderr)
        return 2
    columns = [
        *("", "s a launch", "scatter between launches", "to the mean's"),
        *("gate: nothing changed", "rounds", "gate: one size 10 %", "rounds"),
        *("gate: 5 x in 1 launch of 3", "rounds"),
        *("gate: one size, 3 of 10 blocks 2 x", "rounds"),
    ]
    title = f"{asked.stack}, {asked.rounds} launches of each kind in turn"
    console = Console(width=200, highlight=False, markup=False)
    console.print(table_of(title, columns, rows_of(made)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
