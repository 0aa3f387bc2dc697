import datetime
import difflib
from pathlib import Path

import pytest
import yaml

from clustergate.core.model import Anchor, BaselineRuns, Better, ConditionValue, Sample
from clustergate.judge.baselines.writer import Measured, updated
from clustergate.judge.history.series import CaseKey
from clustergate.judge.references.lookup import parse_references

CHECKS = ("HplCheck", "HpccCheck", "ImbMpi1Check")
HPL = CaseKey("HplCheck", "alpha:node", "mpich", "2-ranks-packed", "smoke")
IMB = CaseKey("ImbMpi1Check", "alpha:node", "mpich", "2-ranks-packed", "smoke")
TEXT = """\
# the machine in the second hall
$provenance:
  HplCheck/alpha:node/mpich:
    origin: measured
    dates: [2026-11-01, 2026-11-08]  # two Sundays
    samples: 12
    rule: by eye
    build: 3fa9c2
    nodes: [n1, n2]
  ImbMpi1Check:
    origin: published
    source: A paper, table 3

# ---- the first check
HplCheck:   # linpack
  $index: [$partition, $environ, reference_layout, reference_effort]
  alpha:node:
    mpich:
      2-ranks-packed:
        smoke:
          HPL.performance_gflops: [100.0, -0.05, null, Gflop/s]  # first day

# ---- the second check
ImbMpi1Check:
  # keys as in ReFrame
  $index: [$partition, $environ, reference_layout, reference_effort]
  alpha:node:
    mpich:
      2-ranks-packed:
        smoke:
          PingPong.2p.8B.latency_us: [0.75, null, 0.2, us]
        # all other modes
        .*:
          PingPong.2p.8B.latency_us: [0.8, null, 0.2, us]
# the end
"""


def time(size):
    return f"PingPong.2p.{size}B.latency_us"


def measured(case=IMB, names=("PingPong.2p.8B.latency_us",), value=1.25, **changes):
    entry = (value, -0.05, None, "Gflop/s") if case is HPL else (value, None, 0.05, "us")
    worse = [1.04, 1.0, 1.016, 1.008, 1.024]
    values = [round(value / by if case is HPL else value * by, 3) for by in worse]
    fields = {
        "entries": dict.fromkeys(names, entry),
        "days": 5 * [datetime.date(2026, 11, 21)],
        "runs": [f"run{k}" for k in range(5)],
        "launches": 10,
        "rule": "median",
        "build": "f80",
        "nodes": ("n1",),
        "values": dict.fromkeys(names, tuple(values)),
        "slow_percent": {name.partition(".")[0]: 2.0 for name in names},
        "core_distance_ns": 48.5,
    }
    return Measured(case, **{**fields, **changes})


def test_the_order_of_the_matrix_is_kept_where_there_is_one():
    batch = measured(HPL, ["HPL.performance_gflops"], 101.0, matrix_order=20000)
    text = updated("", [batch])
    assert yaml.safe_load(text)["$provenance"]["/".join(HPL.parts)]["n"] == 20000
    found = parse_references(text, Path("alpha.yaml"), CHECKS)
    conditions: dict[str, ConditionValue] = {"mode": "smoke", "ranks": 2, "placement": "packed"}
    where = ("HplCheck", "alpha:node", "mpich")
    assert found.matrix_order_of(*where, conditions) == 20000
    assert found.matrix_order_of(*where, {**conditions, "ranks": 4}) is None
    without = updated("", [measured(HPL, ["HPL.performance_gflops"], 101.0)])
    found = parse_references(without, Path("alpha.yaml"), CHECKS)
    assert found.matrix_order_of(*where, conditions) is None


def parsed(text):
    return parse_references(text, Path("alpha.yaml"), CHECKS)


def changed(before, after):
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[0] in "+-"]


def origin(text, *path):
    return parsed(text).at((*path,)).origin


def test_an_empty_text_becomes_a_file():
    text = updated("", [measured(HPL, ["HPL.performance_gflops"], 91.5)])
    assert text.splitlines() == [
        "# What this system should reach; references/README.md explains it.",
        "$provenance:",
        "  HplCheck/alpha:node/mpich/2-ranks-packed/smoke:",
        "    origin: measured",
        "    dates: [2026-11-21]",
        "    samples: 10",
        "    rule: median",
        "    build: f80",
        "    nodes: [n1]",
        "$statistics:",
        "  HplCheck/alpha:node/mpich/2-ranks-packed/smoke:",
        "    launches: 10",
        "    core_distance_ns: 48.5",
        "    runs: [run0, run1, run2, run3, run4]",
        "    days: [2026-11-21, 2026-11-21, 2026-11-21, 2026-11-21, 2026-11-21]",
        "    values:",
        "      HPL.performance_gflops: [87.981, 91.5, 90.059, 90.774, 89.355]",
        "    slow_percent:",
        "      HPL: 2.0",
        "HplCheck:",
        "  $index: [$partition, $environ, reference_layout, reference_effort]",
        "  alpha:node:",
        "    mpich:",
        "      2-ranks-packed:",
        "        smoke:",
        "          HPL.performance_gflops: [91.5, -0.05, null, Gflop/s]",
    ]
    assert parsed(text).at((*HPL.parts, "HPL.performance_gflops")).value == 91.5


def test_nothing_new_changes_nothing():
    assert updated(TEXT, []) == TEXT


def test_a_new_value_changes_its_line_and_keeps_its_comment():
    text = updated(TEXT, [measured(HPL, ["HPL.performance_gflops"], 91.5)])
    assert parsed(text)
    lines = [line for line in changed(TEXT, text) if "null, Gflop/s]" in line]
    column = lines[0].index("#")
    assert [(line[:column].split(), line[column:]) for line in lines] == [
        (f"{sign} HPL.performance_gflops: [{value}, -0.05, null, Gflop/s]".split(), "# first day")
        for sign, value in (("-", "100.0"), ("+", "91.5"))
    ]


@pytest.mark.parametrize(
    "batch",
    [
        measured(names=[time(16), time(32)]),
        measured(names=[time(8)]),
        measured(HPL, ["HPL.performance_gflops"], 91.5),
        measured(CaseKey("HpccCheck", "alpha:node", "openmpi", "4-ranks-packed", "smoke")),
        measured(CaseKey("ImbMpi1Check", "alpha:node", "openmpi", "4-ranks-packed", "smoke")),
    ],
)
def test_every_comment_stays_above_what_it_stood_above(batch):
    text = updated(TEXT, [batch])
    parsed(text)
    lines = text.splitlines()

    def above(words):
        return lines[lines.index(next(line for line in lines if line.startswith(words))) - 1]

    assert lines[0] == "# the machine in the second hall"
    assert lines[-1] == "# the end"
    assert above("HplCheck:   # linpack") == "# ---- the first check"
    assert above("ImbMpi1Check:") == "# ---- the second check"
    assert above("        .*:") == "        # all other modes"
    assert "  # keys as in ReFrame" in lines
    assert lines.index("  # keys as in ReFrame") == lines.index("ImbMpi1Check:") + 1


def test_what_stays_is_said_to_come_from_where_it_came_from():
    text = updated(TEXT, [measured(names=[time(16), time(32)])])
    assert origin(text, *IMB.parts, time(8)) == "published: A paper, table 3"
    assert origin(text, *IMB.parts, time(16)).startswith("measured 2026-11-21, 10 launches")
    # The few are told apart from the many, whichever of the two is new.
    again = updated(text, [measured(names=[time(16)], launches=21)])
    assert "21 launches" in origin(again, *IMB.parts, time(16))
    assert "10 launches" in origin(again, *IMB.parts, time(32))
    assert origin(again, *IMB.parts, time(8)) == "published: A paper, table 3"


def test_statistics_follow_the_references_they_are_of():
    def runs(text, size):
        references = parsed(text)
        keys = {"mode": "smoke", "ranks": 2, "placement": "packed"}
        conditions = {"processes": 2, "bytes": size}
        sample = Sample("PingPong", "latency_us", "us", Better.LOWER, conditions, 1.0)
        found = references.find("ImbMpi1Check", "alpha:node", "mpich", keys, sample).baseline
        return found and (len(found.runs), found.launches)

    bcast = time(16).replace("PingPong", "Bcast")
    text = updated(TEXT, [measured(names=[time(16), time(32), time(64), bcast])])
    assert runs(text, 8) is None
    assert runs(text, 16) == (5, 2)
    of_seven = {"runs": [f"later{k}" for k in range(7)], "launches": 21}
    of_seven |= {"days": 7 * [datetime.date(2026, 11, 28)], "values": {time(16): 7 * (1.25,)}}
    again = updated(text, [measured(names=[time(16)], **of_seven)])
    assert runs(again, 16) == (7, 3)
    assert runs(again, 32) == (5, 2)
    # What is of all figures together is no longer so when one of them has gone elsewhere.
    entry = yaml.safe_load(again)["$statistics"][IMB.path()]
    assert set(entry["slow_percent"]) == {"Bcast"}
    assert time(16) not in entry["values"]


def test_taking_all_of_them_again_leaves_no_trace_of_exceptions():
    once = updated("", [measured(names=[time(8), time(16)])])
    exception = updated(once, [measured(names=[time(16)], launches=21)])
    assert exception != once
    assert updated(exception, [measured(names=[time(8), time(16)])]) == once


def test_two_batches_of_a_case_each_have_their_origin():
    text = updated(
        "", [measured(names=[time(8), time(16)]), measured(names=[time(32)], remark="a new kernel")]
    )
    assert origin(text, *IMB.parts, time(32)).endswith("a new kernel")
    assert "kernel" not in origin(text, *IMB.parts, time(16))


def test_an_origin_that_no_longer_speaks_of_anything_goes():
    text = updated(TEXT, [measured(HPL, ["HPL.performance_gflops"], 91.5)])
    assert "HplCheck/alpha:node/mpich:" not in text
    assert "two Sundays" not in text


@pytest.mark.parametrize(
    ("value", "told"),
    [(8.5e-07, "8.5e-07"), (1e-07, "1.0e-07"), (1e22, "1.0e+22"), (3.0, "3.0"), (1.25, "1.25")],
)
def test_a_number_is_a_number_for_the_yaml_that_reframe_reads(value, told):
    text = updated("", [measured(value=value)])
    assert f"[{told}, null, 0.05, us]" in text
    node = yaml.safe_load(text)
    for key in IMB.parts:
        node = node[key]
    assert node[time(8)] == [value, None, 0.05, "us"]


@pytest.mark.parametrize("word", ["no", "1_2", "012", "12:30:00", "1e5", "null", "n1", "a: b", ""])
def test_a_text_is_a_text_for_the_yaml_that_reframe_reads(word):
    stack = word or "x"
    case = CaseKey("ImbMpi1Check", "alpha:node", stack, "2-ranks-packed", "smoke")
    text = updated("", [measured(case, build=word, nodes=(word,), rule=word)])
    read = yaml.safe_load(text)
    assert read["$provenance"][case.path()]["build"] == word
    assert read["$provenance"][case.path()]["nodes"] == [word]
    assert read["$provenance"][case.path()]["rule"] == word
    assert list(read["ImbMpi1Check"]["alpha:node"]) == [stack]


def test_a_file_that_indents_otherwise_keeps_its_way():
    text = "".join(
        f"{' ' * (len(line) - len(line.lstrip(' ')))}{line}" for line in TEXT.splitlines(True)
    )
    assert "        origin: measured\n" in text
    after = updated(text, [measured(names=[time(16)])])
    assert not [line for line in changed(text, after) if line.startswith("- ")]
    assert parsed(after)


def test_a_day_of_several_figures_is_no_alias():
    """What reads the file refuses those, and so nothing was written."""
    names = [time(size) for size in (1, 2, 4, 8, 16)]
    days = [datetime.date(2026, 11, 21), datetime.date(2026, 11, 22)]
    days = [days[0], *4 * [days[1]]]
    many = measured(names=names[:3], days=days)
    few = measured(names=names[3:], days=days, remark="otherwise")
    text = updated("", [many, few])
    assert "&" not in text
    assert parse_references(text, Path("alpha.yaml"), CHECKS).paths()


def first_runs(values, start=1):
    runs = tuple(f"run{start + k}" for k in range(len(values)))
    days = tuple(f"2026-11-{start + k:02}" for k in range(len(values)))
    return BaselineRuns(runs, days, tuple(values), launches=1)


def test_anchors_come_and_go_and_leave_the_rest_as_it_is():
    names = [time(8), time(16)]
    before = updated(TEXT, [measured(names=names)])
    first = Anchor(first_runs([0.75, 0.76]), (("2026-11-20", 0.77),))
    text = updated(before, [], {IMB: {names[0]: first}})
    assert f"      {names[0]}: [0.75, 0.76, 0.77]\n" in text
    # Another figure has another one: still a row for each.
    second = Anchor(first_runs([0.5, 0.6], start=2))
    both = updated(text, [], {IMB: {names[1]: second}})
    assert f"      {names[0]}: [0.75, 0.76, null, 0.77]\n" in both
    assert f"      {names[1]}: [null, 0.5, 0.6, null]\n" in both
    known = parse_references(both, Path("alpha.yaml"), CHECKS)
    for name, one in zip(names, (first, second), strict=True):
        read = known.at((*IMB.parts, name)).anchor
        assert read is not None
        assert (read.baseline.runs, read.later) == (one.baseline.runs, one.later)
        assert (read.baseline.days, read.baseline.values) == (
            one.baseline.days,
            one.baseline.values,
        )
    assert updated(both, [], {IMB: {names[1]: None}}) == text
    assert updated(text, [], {IMB: {names[0]: None}}) == before


def test_an_anchor_of_before_bounds_its_reference_and_stays():
    (name,) = measured().entries
    bound = "{usual: 0.70, bound: 0.8, spread_percent: 1.2, days: 5, since: 2026-11-01}"
    text = (
        updated(TEXT, [measured(value=0.78)]) + f"$anchors:\n  {IMB.path()}:\n    {name}: {bound}\n"
    )
    known = parse_references(text, Path("alpha.yaml"), CHECKS).at((*IMB.parts, name))
    assert known.anchor is None
    assert known.upper == pytest.approx(0.8 / 0.78 - 1)
    crept = text.replace("since: 2026-11-01}", "since: 2026-11-01, drift_percent: 7.3}")
    known = parse_references(crept, Path("alpha.yaml"), CHECKS).at((*IMB.parts, name))
    assert known.upper == 0.0
    later = updated(text, [], {IMB: {name: Anchor(first_runs([0.75, 0.76]))}})
    assert f"{name}: {bound}" in later
    assert bound not in updated(text, [], {IMB: {name: None}})
