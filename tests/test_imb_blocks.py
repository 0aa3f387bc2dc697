"""Many short blocks of a size in a launch, and the one figure of each that is compared."""

import math
import random
from collections import Counter
from pathlib import Path

import pytest

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.imb.blocks import bounded_mean, merge_blocks, read_blocks
from clustergate.benchmarks.imb.command import (
    BLOCKS,
    COUNTED,
    ImbSettings,
    blocks_of,
    imb_arguments,
    in_blocks,
)
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.benchmarks.imb.plan import ImbExpectation
from clustergate.core.figures import samples_of
from clustergate.core.model import OutputError, Row
from clustergate.studies.ab.gathering import comparable_samples

CAPTURED = Path(__file__).parent / "data" / "imb" / "impi-2021.11-mpi1-blocks.txt"
BENCHMARKS = ("PingPong", "Sendrecv", "Allreduce", "Barrier")
ASKED = ImbSettings(
    BENCHMARKS, 2, sizes=(2, 8, 32768, 1048576), repetitions=1000, volume_mb=8, seconds=1.0
)
LINES = CAPTURED.read_text().splitlines(keepends=True)


def parsed(lines: list[str]) -> list[Row]:
    settings = in_blocks(ASKED)
    call = ImbExpectation(
        "IMB-MPI1",
        BENCHMARKS,
        bytes=tuple(settings.sizes),
        arguments=tuple(imb_arguments(settings)),
        ranks=2,
    )
    return list(parse_imb(lines, expect=call))


def test_size_in_blocks_sent_as_often_as_in_one() -> None:
    """A size is sent as often as in one block and blocks are not successive."""
    settings = in_blocks(ImbSettings(["PingPong"], 2, repetitions=1000, volume_mb=8, seconds=1.0))
    counts = Counter(settings.sizes)
    assert list(dict.fromkeys(settings.sizes)) == [0, *(1 << k for k in range(23))]
    assert (counts[0], counts[8192], counts[16384], counts[32768], counts[65536]) == (8, 8, 4, 2, 1)
    for size, count in counts.items():
        each = min(settings.repetitions or 0, (8 << 20) // max(size, 1))
        as_one = min(1000, (8 << 20) // max(size, 1))
        assert count * each == pytest.approx(as_one, rel=0.03)
    pairs = zip(settings.sizes, settings.sizes[1:], strict=False)
    assert all(one != other for one, other in pairs)


@pytest.mark.parametrize("sizes", [(8,), (8, 4096, 16384), (8, 64, 512, 4096, 32768), ()])
def test_benchmark_in_blocks_given_up_after_the_same_time(
    sizes: tuple[int, ...],
) -> None:
    """IMB counts so many lines of the file, less one, and 22 where they are fewer."""
    asked = ImbSettings(["PingPong"], 2, sizes=sizes, repetitions=1000, volume_mb=8, seconds=1.0)
    settings = in_blocks(asked)
    lines = [max(count, 22) - 1 for count in (len(sizes) or 24, len(settings.sizes))]
    assert (settings.seconds or 0) * lines[1] == pytest.approx(lines[0])


def test_benchmark_without_sizes_listed_per_block() -> None:
    """A benchmark without sizes is listed as often as others have blocks."""
    assert Counter(in_blocks(ASKED).benchmarks) == {**dict.fromkeys(BENCHMARKS, 1), "Barrier": 8}


def test_it_is_told_which_sizes_have_several_blocks() -> None:
    settings = in_blocks(ASKED)
    of_sizes = {str(size): count for size, count in Counter(settings.sizes).items() if count > 1}
    assert blocks_of(settings) == {**of_sizes, "": 8}
    assert blocks_of(settings).keys() < {"", *map(str, settings.sizes)}
    assert blocks_of(ASKED) == {}


def test_what_cannot_be_asked_of_imb_cannot_be_asked_for_in_blocks() -> None:
    with pytest.raises(CannotRun, match="power of two"):
        in_blocks(ImbSettings([], 2, largest_bytes=1000, repetitions=1000, volume_mb=8))
    few = ImbSettings([], 2, repetitions=4, volume_mb=8)
    assert in_blocks(few) == few


def test_figure_of_a_real_launch_is_of_all_its_blocks() -> None:
    rows = parsed(LINES)
    one = {(row.benchmark, row.conditions.get("bytes")): row for row in merge_blocks(rows)}
    assert set(one) == {
        *((name, size) for name in BENCHMARKS[:2] for size in ASKED.sizes),
        *(("Allreduce", max(size, 4)) for size in ASKED.sizes),
        ("Barrier", None),
    }
    blocks = [
        row for row in rows if (row.benchmark, row.conditions.get("bytes")) == ("PingPong", 8)
    ]
    assert len(blocks) == BLOCKS
    merged = one["PingPong", 8]
    assert merged.conditions["repetitions"] == 1000
    rates = [row.values["bandwidth_mb_s"] for row in blocks]
    assert min(rates) < merged.values["bandwidth_mb_s"] < max(rates)
    assert merged.values["bandwidth_mb_s"] == round(bounded_mean(rates), 2)
    assert one["Barrier", None].conditions["repetitions"] == 1000
    # Messages of a megabyte have one block, which is what IMB printed.
    assert one["PingPong", 1 << 20] in rows
    assert list(read_blocks(LINES)) == list(one.values())


def test_digits_of_the_bandwidth_tell_the_time_of_blocks() -> None:
    samples = samples_of(merge_blocks(parsed(LINES)))
    for one in comparable_samples(samples, COUNTED):
        size = one.conditions.get("bytes")
        if (one.benchmark, size) == ("PingPong", 8):
            rate = next(
                other.value
                for other in samples
                if (other.benchmark, other.metric) == ("PingPong", "bandwidth_mb_s")
                and other.conditions["bytes"] == 8
            )
            assert one.value == pytest.approx(8 / rate, rel=1e-12)
        if one.benchmark == "Allreduce" and size == 8:
            # As printed: two decimals, so that their resolution is seen.
            assert one.value == round(one.value, 2)


@pytest.mark.parametrize("how", ["lost", "twice", "exchanged"])
def test_a_launch_without_all_its_blocks_in_their_order_is_refused(how: str) -> None:
    first = next(k for k, line in enumerate(LINES) if line.split()[:2] == ["8", "125"])
    changed = list(LINES)
    if how == "lost":
        del changed[first]
    elif how == "twice":
        changed.insert(first, changed[first])
    else:
        changed[first : first + 2] = changed[first + 1], changed[first]
    with pytest.raises(OutputError):
        parsed(changed)


def test_a_barrier_fewer_is_refused() -> None:
    text = "".join(LINES)
    head = text.rindex(
        "#---------------------------------------------------\n# Benchmarking Barrier"
    )
    end = text.index("\n\n", head)
    with pytest.raises(OutputError):
        parsed((text[:head] + text[end:].lstrip("\n")).splitlines(keepends=True))


def test_a_size_that_ran_out_of_time_in_a_block_has_no_figure() -> None:
    rows = parsed(LINES)
    hit = next(row for row in rows if row.conditions.get("bytes") == 8)
    late = Row(hit.suite, hit.benchmark, {**hit.conditions}, {}, "time-out", hit.line)
    del late.conditions["repetitions"]  # type: ignore[attr-defined]
    made = list(merge_blocks([*rows, late]))
    mine = [r for r in made if (r.benchmark, r.conditions.get("bytes")) == (hit.benchmark, 8)]
    assert mine == [late]


def test_bounded_mean_moved_by_a_share_not_a_single_block() -> None:
    """The bounded mean is moved by a share of slow blocks and by no single one."""
    assert bounded_mean([0.15] * 8) == 0.15
    assert bounded_mean([3.0]) == 3.0
    assert bounded_mean([0.0, 1.0, 1.0]) == 0.0
    once = bounded_mean([1.0] * 7 + [1e6])
    assert once == pytest.approx(2 ** (1 / 8))
    assert bounded_mean([1.0] * 5 + [2.0] * 3) == pytest.approx(2 ** (3 / 8))
    lot = random.Random(1)
    blocks = [math.exp(lot.gauss(0.0, 1.0)) for _ in range(8)]
    assert 1 / bounded_mean([1 / x for x in blocks]) == pytest.approx(bounded_mean(blocks))
