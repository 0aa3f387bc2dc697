"""Two sets of samples side by side, of files or of stored runs, compared metric by metric.

A set is a table in the order of launching: metric, value, conditions as text, disturbed.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clustergate.benchmarks.registry import descriptor_of, every_metric
from clustergate.core import store
from clustergate.core.figures import name_of, reported, same_measurement
from clustergate.core.model import (
    COLLECTIVE,
    UNKNOWN_DISTANCE,
    BadRequest,
    Better,
    CaseRecord,
    Metric,
    OutputError,
)
from clustergate.core.outputs import OUTPUT_UNREADABLE_HERE
from clustergate.core.reasons import Words
from clustergate.studies.ab.comparisons import FIGURE, METHOD, METRIC

if TYPE_CHECKING:
    import polars as pl

    from clustergate.judge.kinds import FigureId
    from clustergate.judge.two_runs import Moved, TwoRuns
    from clustergate.stats.comparison import Comparison

VALUE = "value"
# The first columns of what `clustergate parse` writes, and those of them that are no conditions.
_OF_PARSE = ("file", "suite", "benchmark", "status", "line")
_NO_CONDITION = ("file", "status", "line")
# No column of a file can have such a name.
_DISTURBED = "\0disturbed"
_RUN = "\0run"
_METHOD = "\0method"
_CASE = ("check", "partition", "stack")
# What else tells a case from others of its check.
_LAID_OUT = ("ranks", "nodes", "placement", "cores_per_rank", "bound", "mode", "settings")
# What else a figure is named by.
_IN_NAME = ("benchmark", "bytes", METRIC, FIGURE)
# Rows that stand twice by chance are fewer than one in so many.
_NO_CHANCE = 1e6
_FEWEST_VALUES = 5
_ODD = 0x9E3779B97F4A7C15
_NAT = 2.0**-20


def compare_sets(
    a: pl.DataFrame,
    b: pl.DataFrame,
    margin: float,
    better: str | None = None,
    suite: Sequence[Sequence[CaseRecord]] = (),
    exclusive: Collection[str] = (),
) -> tuple[list[dict[str, str]], TwoRuns]:
    """Return the metrics with their conditions of two sets, and what the judge says of them.

    ``better`` is the direction of metrics that nobody knows. One measurement of stored runs is
    compared once. Where A and B are sessions of a ``suite`` these are their records, and
    ``exclusive`` the partitions where a job has its nodes for itself. Raises :class:`BadRequest`.
    """
    # SciPy and Polars take longer to import than all other commands need.
    from clustergate.stats.comparison import unless_contradicted

    keys, undisturbed, everything = _side_by_side(a, b)
    if suite:
        of = {name_of(x): x.better for records in suite for one in records for x in one.samples}
        better_of = [of[key[FIGURE]] for key in keys]
    else:
        directions = _directions([key[METRIC] for key in keys], better)
        better_of = [directions[key[METRIC]].better for key in keys]
    runs = [table[_RUN][0] for table in (a, b) if _RUN in table.columns]
    records = suite or [store.read_cases(run) for run in dict.fromkeys(runs)]
    both = _judged(keys, undisturbed, better_of, margin, runs, records, exclusive)
    comparisons = [
        unless_contradicted(one, every, margin)
        for one, every in zip(both.comparisons, everything, strict=True)
    ]
    return keys, dataclasses.replace(both, comparisons=comparisons)


def _judged(
    keys: Sequence[Mapping[str, str]],
    launches: Sequence[tuple[Any, Any]],
    better: Sequence[Better],
    margin: float,
    runs: Sequence[str],
    records: Sequence[Sequence[CaseRecord]],
    of_suite: Collection[str],
) -> TwoRuns:
    """Return what the judge says of launches of A and B, by the partitions of their figures.

    ``runs`` are those that they are of, with these ``records``; a file is of none. The partitions
    ``of_suite`` are known to be exclusive.
    """
    import numpy as np

    from clustergate.judge.sharing import exclusive_partitions
    from clustergate.judge.two_runs import Both, Known, TwoRuns, of_two_runs
    from clustergate.sites.configs import nodes_of

    of_runs, of_one_run = len(runs) == 2, len({*runs}) == 1
    by_partition: dict[str, dict[int, Both]] = {}
    for place, (key, sides) in enumerate(zip(keys, launches, strict=True)):
        a, b = (np.asarray(side, dtype=float).tolist() for side in sides)
        of = by_partition.setdefault(key.get("partition", ""), {})
        placed = not of_runs or _placed_alike(key, records)
        of[place] = Both(_figure_of(key), a, b, better[place], placed)
    exclusive = set(of_suite)
    if of_runs and not of_one_run and not exclusive:
        nodes = nodes_of(by_partition)
        exclusive = set.intersection(*(exclusive_partitions(of, nodes) for of in records))
    by_place: dict[int, Comparison] = {}
    moved: list[Moved] = []
    for partition, of in by_partition.items():
        known = Known.EXCLUSIVE if partition in exclusive else Known.SHARED
        if not of_runs or of_one_run:
            known = Known.ONE_RUN if of_runs else Known.NOTHING
        said = of_two_runs([*of.values()], margin, known)
        by_place |= dict(zip(of, said.comparisons, strict=True))
        moved += said.moved
    return TwoRuns([by_place[place] for place in range(len(keys))], moved)


def _figure_of(key: Mapping[str, str]) -> FigureId:
    """Return what the judge knows a figure by; of a metric that nobody knows the widest kind."""
    from clustergate.judge.runs import figure_id
    from clustergate.judge.two_runs import EVERYTHING

    other = {k: v for k, v in key.items() if k not in (*_CASE, *_IN_NAME)}
    laid_out = [key.get(k, "") for k in _LAID_OUT] if FIGURE in key else [*other.values()]
    check, partition, stack = (key.get(name, "") for name in _CASE)
    case = (check, partition, stack or EVERYTHING, " ".join(laid_out))
    size = int(key["bytes"]) if key.get("bytes", "").isdigit() else None
    benchmark = key.get("benchmark", "")
    parts = benchmark, "" if size is None else f"{size}B", key[METRIC]
    name = key.get(FIGURE) or ".".join(filter(None, parts))
    figure = figure_id(case, name, benchmark, key[METRIC], size)
    if key[METRIC] in every_metric() or descriptor_of(check).kinds:
        return figure
    return dataclasses.replace(figure, kind=COLLECTIVE)


def _placed_alike(key: Mapping[str, str], records: Sequence[Sequence[CaseRecord]]) -> bool:
    """Tell whether the nodes of a case are known to be as far from each other in all its runs."""
    wanted = key["check"], key["partition"]
    of_runs = [
        {
            one.distance
            for one in of_run
            if (one.check, one.partition) == wanted and key.get("stack", one.stack) == one.stack
        }
        for of_run in records
    ]
    distances = set.union(*of_runs)
    return len(distances) == 1 and all(of_runs) and UNKNOWN_DISTANCE not in distances


NO_TABLE = Words("output.no-table", "this is not a CSV table", cause="{why}")
OUTPUT_SEPARATOR = Words("output.separator", "the separator must be a comma")
NO_COLUMN = Words("output.no-column", "there is no column {column!r}")
NO_COLUMN_TO_IGNORE = Words("output.no-column-to-ignore", "there is no column {column!r} to ignore")
NO_SAMPLE = Words("output.no-sample", "there are no samples")
NO_METRIC = Words("output.no-metric", "no metric")
ROWS_TWICE = Words(
    "output.rows-twice",
    "from here on {rows:row stands|rows stand} in the file before as well",
    cause=(
        "in the same order and with the same values, as if they had been pasted twice, and would "
        "count as further launches"
    ),
    remedy="remove them",
)
NO_NUMBER = Words("output.no-number", "the value {text!r} is not a number")


def from_csv(name: str, ignored: Sequence[str] = ()) -> pl.DataFrame:
    """Return the samples of a file without some of its columns.

    It is a CSV table with a metric and a value in each row, or what ``clustergate parse`` writes.

    Raises :class:`~clustergate.core.model.OutputError` that names the line.
    """
    import polars as pl

    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            head = file.readline()
        table = _of_parse(name, head)
        if table is not None:
            pass
        elif "," not in head and any(separator in head for separator in ";\t"):
            raise OutputError(OUTPUT_SEPARATOR(), line=1, source=name)
        else:
            table = pl.read_csv(name, infer_schema=False, truncate_ragged_lines=False)
    except (pl.exceptions.PolarsError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise OutputError(NO_TABLE(why=why), source=name) from None
    except OSError as error:
        raise OutputError(OUTPUT_UNREADABLE_HERE(why=error), source=name) from None
    table = table.rename({column: column.strip() for column in table.columns})
    # An empty line is no sample.
    table = table.filter(~pl.all_horizontal(pl.all().is_null()))
    for column in (METRIC, VALUE):
        if column not in table.columns:
            raise OutputError(NO_COLUMN(column=column), line=1, source=name)
    if absent := [column for column in ignored if column not in table.columns]:
        raise OutputError(NO_COLUMN_TO_IGNORE(column=absent[0]), line=1, source=name)
    if table.is_empty():
        raise OutputError(NO_SAMPLE(), line=1, source=name)
    number = pl.col(VALUE).str.strip_chars().cast(pl.Float64, strict=False)
    table = table.with_columns(number.alias(VALUE), pl.col(VALUE).alias("\0text"))
    usable = pl.col(VALUE).is_finite() & pl.col(METRIC).is_not_null()
    bad = table.with_row_index("\0row").filter(usable.fill_null(False).not_())
    if len(bad):
        row = bad.row(0, named=True)
        text = row["\0text"] or ""
        problem = (NO_METRIC if row[METRIC] is None else NO_NUMBER)(text=text)
        raise OutputError(problem, line=_line_of(name, row["\0row"]), source=name)
    table = table.drop("\0text")
    first, twice = _standing_twice(table, ignored)
    if twice:
        line = _line_of(name, first)
        raise OutputError(ROWS_TWICE(rows=twice), line=line, source=name)
    return table.drop(ignored).with_columns(pl.lit(False).alias(_DISTURBED))


def _of_parse(name: str, head: str) -> pl.DataFrame | None:
    """Return the samples of a file that ``clustergate parse`` wrote, None where it did not.

    Where a row stands, in which file and line, is no condition.
    """
    import polars as pl

    if head.startswith("PAR1"):
        rows = list(pl.read_parquet(name).iter_rows(named=True))
    elif head.startswith('{"file"'):
        with open(name, encoding="utf-8") as file:
            said = [json.loads(line) for line in file if line.strip()]
        rows = [{**one, **one.pop("conditions"), **one.pop("values")} for one in said]
    elif head.rstrip().split(",")[: len(_OF_PARSE)] == list(_OF_PARSE):
        rows = list(pl.read_csv(name, infer_schema=False).iter_rows(named=True))
    else:
        return None
    if not {*_OF_PARSE} <= {*(rows[0] if rows else _OF_PARSE)}:
        return None
    metrics = every_metric()
    samples = []
    for row in rows:
        labels = {
            key: str(value)
            for key, value in row.items()
            if key not in (*metrics, *_NO_CONDITION) and value not in (None, "")
        }
        samples += [
            {**labels, METRIC: key, VALUE: str(value)}
            for key, value in row.items()
            if key in metrics
            and metrics[key].better is not Better.NEITHER
            and value not in (None, "")
        ]
    columns = dict.fromkeys(key for one in samples for key in one) or (METRIC, VALUE)
    return pl.DataFrame(samples, schema=dict.fromkeys(columns, pl.String))


def are_copies(a: pl.DataFrame, b: pl.DataFrame) -> bool:
    """Tell whether two sets are one: no machine measures each of several values again."""
    a, b = (table.drop(_RUN, strict=False) for table in (a, b))
    return a[VALUE].n_unique() >= _FEWEST_VALUES and a.equals(b)


def _standing_twice(table: pl.DataFrame, ignored: Sequence[str]) -> tuple[int, int]:
    """Return from which row on how many rows of a table stand before as well, in the same order.

    0 of them where chance may have made them equal: by how often each value stands among those of
    the same metric and conditions.
    """
    import numpy as np
    import polars as pl

    same = [column for column in table.columns if column not in (VALUE, *ignored)]
    conditions = [column for column in same if column != METRIC] or [METRIC]
    share = pl.len().over(table.columns) / pl.len().over(same)
    nats = table.select(share.log().neg()).to_series().to_numpy(writable=True)
    # Of a measurement one metric follows from another.
    of, metric = (table.select(one).hash_rows().to_numpy() for one in (conditions, [METRIC]))
    nats[1:] *= (of[1:] != of[:-1]) | (metric[1:] == metric[:-1])
    # What rows tell by values that are so seldom, in whole parts of a nat, as sums must be equal.
    rows = table.hash_rows().to_numpy()
    known = np.concatenate([[0], np.rint(nats / _NAT).astype(np.int64).cumsum()])
    fewest = math.ceil(math.log(_NO_CHANCE * len(rows) ** 2) / _NAT)
    starts = np.arange(len(rows))
    ends = np.searchsorted(known, known[:-1] + fewest)
    starts = starts[ends <= len(rows)]
    lengths = ends[starts] - starts
    # Parts of the table are compared by their hashes (Karp and Rabin, Efficient randomized
    # pattern-matching algorithms, 1987), which wrap around.
    powers = np.full(len(rows) + 1, _ODD, dtype=np.uint64)
    powers[0] = 1
    powers = powers.cumprod()
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), (rows * powers[:-1]).cumsum()])
    hashes = (sums[starts + lengths] - sums[starts]) * powers[len(rows) - starts]
    _, firsts, numbers = np.unique(hashes, return_index=True, return_inverse=True)
    first = firsts[numbers]
    (again,) = np.nonzero((starts - first >= lengths) & (lengths == lengths[first]))
    if not len(again):
        return 0, 0
    row, before = int(again[0]), int(first[again[0]])
    alike = rows[before:row][: len(rows) - row] == rows[row:][: row - before]
    return row, len(alike) if alike.all() else int(alike.argmin())


def _line_of(name: str, row: int) -> int:
    """Return the line of a data row: quoted fields and empty lines count, too."""
    with open(name, encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        for k, _ in enumerate(fields for fields in reader if fields):
            if k == row + 1:
                break
        return reader.line_num


def from_run(run_id: str, stack: str = "") -> pl.DataFrame:
    """Return the samples of a stored run, or of one of its stacks; raises :class:`BadRequest`."""
    return of_records(run_id, store.read_cases(run_id), stack)


def of_records(run_id: str, records: Sequence[CaseRecord], stack: str = "") -> pl.DataFrame:
    """Return the samples of some records of a run, as :func:`from_run` does."""
    import polars as pl

    from clustergate.judge.assembly import beyond_limits

    rows: list[dict[str, Any]] = []
    for record in records:
        if record.complaints or (stack and record.stack != stack) or beyond_limits(record):
            continue
        disturbed = {launch.order for launch in record.launches if launch.disturbed}
        shared = {"check": record.check, "partition": record.partition}
        shared |= {} if stack else {"stack": record.stack}
        for sample in sorted(reported(record.samples), key=lambda sample: sample.order):
            conditions = {**record.conditions, **sample.conditions}
            labels = {key: str(value) for key, value in conditions.items()}
            rows.append(
                {**labels, **shared, "benchmark": sample.benchmark, FIGURE: name_of(sample),
                 METRIC: sample.metric, VALUE: sample.value, _DISTURBED: sample.order in disturbed,
                 _RUN: run_id, _METHOD: record.method_of(sample)}
            )  # fmt: skip
    if all(row[_DISTURBED] for row in rows):
        raise _nothing(run_id, stack, records, disturbed=bool(rows))
    return pl.DataFrame(rows, infer_schema_length=None)


COMPARE_DISTURBED = Words(
    "compare.disturbed",
    "the run {run} holds no figures{of} to compare",
    cause="every launch was disturbed",
    remedy="measure again when nothing else runs",
)
COMPARE_FAILED = Words(
    "compare.failed",
    "the run {run} holds no figures{of} to compare",
    cause="{why}",
)
COMPARE_NOTHING = Words(
    "compare.nothing",
    "the run {run} holds no figures{of} to compare",
    cause="it holds {held}",
    remedy="name another run of {folder}",
)


def _nothing(
    run_id: str, stack: str, records: Sequence[CaseRecord], *, disturbed: bool
) -> BadRequest:
    facts = {"run": run_id, "of": f" of {stack}" if stack else ""}
    if disturbed:
        return BadRequest(COMPARE_DISTURBED(**facts))
    own = (record for record in records if not stack or record.stack == stack)
    if complaint := next((one for record in own for one in record.complaints), None):
        return BadRequest(COMPARE_FAILED(why=str(complaint), **facts))
    held = ", ".join(dict.fromkeys(f"{x.check} with {x.stack}" for x in records)) or "no case"
    return BadRequest(COMPARE_NOTHING(held=held, folder=store.runs_folder(), **facts))


def _side_by_side(
    a: pl.DataFrame, b: pl.DataFrame
) -> tuple[list[dict[str, str]], list[tuple[Any, Any]], list[tuple[Any, Any]]]:
    """Return the metrics with their conditions, in the order of A then B, and both's values.

    First those of undisturbed launches, then all.
    """
    import polars as pl

    a, b = _by_method(a, b)
    columns = list(dict.fromkeys([*a.columns, *b.columns]))
    columns = [name for name in columns if name not in (VALUE, _DISTURBED, _RUN)]
    wanted = {"": pl.col(VALUE).filter(~pl.col(_DISTURBED))}
    if a[_DISTURBED].any() or b[_DISTURBED].any():
        wanted["all"] = pl.col(VALUE)
    grouped = []
    for side, table in (("\0a", a), ("\0b", b)):
        missing = [pl.lit(None, pl.String).alias(c) for c in columns if c not in table.columns]
        groups = table.with_columns(missing).group_by(columns, maintain_order=True)
        grouped.append(groups.agg(values.alias(side + of) for of, values in wanted.items()))
    joined = grouped[0].join(
        grouped[1],
        on=columns,
        how="full",
        nulls_equal=True,
        coalesce=True,
        maintain_order="left_right",
    )
    keys = [
        {column: value for column, value in row.items() if value is not None}
        for row in joined.select(columns).iter_rows(named=True)
    ]
    sets = [
        [
            tuple([] if values is None else values.to_numpy() for values in row)
            for row in zip(joined[f"\0a{of}"], joined[f"\0b{of}"], strict=True)
        ]
        for of in wanted
    ]
    once = _measured_once(keys, sets[-1])
    chosen = [[of[k] for k in once] for of in sets]
    return [keys[k] for k in once], chosen[0], chosen[-1]


def _by_method(a: pl.DataFrame, b: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the samples of figures that two runs measured otherwise a condition that tells it."""
    import polars as pl

    if not (_METHOD in a.columns and _METHOD in b.columns):
        return a.drop(_METHOD, strict=False), b.drop(_METHOD, strict=False)
    case = [name for name in (*_CASE, FIGURE) if name in a.columns and name in b.columns]
    of_a, of_b = (
        {tuple(row): method for *row, method in table.select(*case, _METHOD).unique().iter_rows()}
        for table in (a, b)
    )
    # Earlier versions did not note it.
    otherwise = {
        key for key, method in of_a.items() if method and of_b.get(key) not in (None, "", method)
    }
    sides = []
    for table in (a, b):
        rows = table.select(*case, _METHOD).iter_rows()
        methods = [method if tuple(row) in otherwise else None for *row, method in rows]
        column = pl.Series(METHOD, methods, dtype=pl.String)
        sides.append(table.drop(_METHOD).with_columns([column] if otherwise else []))
    return sides[0], sides[1]


def _measured_once(keys: Sequence[dict[str, str]], sets: Sequence[tuple[Any, Any]]) -> list[int]:
    """Return the places of the figures that no other one of both sides measures as well."""
    both = {_figure(key) for key, (x, y) in zip(keys, sets, strict=True) if len(x) and len(y)}
    others = ([key | {FIGURE: n} for n in same_measurement(key.get(FIGURE, ""))] for key in keys)
    # A rate against a peak is that rate once more.
    return [
        k
        for k, of_key in enumerate(others)
        if both.isdisjoint(map(_figure, of_key)) and "against" not in keys[k]
    ]


def _figure(key: dict[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in key.items() if name != METRIC)


COMPARE_DIRECTION = Words(
    "compare.direction",
    "it is not known which way the metric {metric!r} improves",
    remedy="say --better lower or --better higher",
)


def _directions(names: Sequence[str], better: str | None) -> dict[str, Metric]:
    known = every_metric()
    if better is None and (unknown := [name for name in names if name not in known]):
        raise BadRequest(COMPARE_DIRECTION(metric=unknown[0]))
    return {n: known[n] if n in known else Metric(n, "", Better(better)) for n in names}
