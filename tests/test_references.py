import dataclasses
import functools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate.core.model import (
    METRICS,
    BadRequest,
    Better,
    ClustergateError,
    ConditionValue,
    Reference,
    Sample,
    Verdict,
)
from clustergate.judge.judging import exit_status, judge, reframe_reference, tolerated_bound
from clustergate.judge.references.lookup import References, effort_key, layout_key, load_references
from clustergate.judge.references.validation import unlike, within_anchor
from tests import builders
from tests.builders import hpl, ping

CHECKS = ("HplCheck", "ImbMpi1Check")
CONDITIONS: dict[str, ConditionValue] = {"mode": "smoke", "ranks": 2, "placement": "packed"}
TEXT = """\
$provenance:
  HplCheck/alpha:node/mpich:
    origin: measured
    dates: [2026-11-01, 2026-11-08]
    samples: 12
    rule: median, less three times its spread
    build: 3fa9c2
    nodes: [n1, n2]
  ImbMpi1Check:
    origin: published
    source: A paper, table 3
  ImbMpi1Check/alpha:node/mpich/2-ranks-packed/smoke:
    origin: measured
    dates: [2026-11-08]
    samples: 1
    rule: by eye
    build: 3fa9c2
    nodes: [n1]
    remark: second hall
HplCheck:
  $index: [$partition, $environ, reference_layout, reference_effort]
  alpha:node:
    mpich:
      2-ranks-packed:
        smoke:
          HPL.performance_gflops: [100.0, -0.05, null, Gflop/s]
ImbMpi1Check:
  $index: [$partition, $environ, reference_layout, reference_effort]
  alpha:node:
    mpich:
      2-ranks-packed:
        smoke:
          PingPong.2p.8B.latency_us: [0.75, null, 0.2, us]
        .*:
          PingPong.2p.1024B.latency_us: [1.5, null, 0.2, us]
          PingPing.2p.1024B.latency_us: [1.5, null, 0.2, us]
    openmpi.*:
      2-ranks-packed:
        .*:
          PingPong.2p.8B.latency_us: [0.1, null, 0.2, us]
"""


def line_of(text, words):
    return 1 + next(i for i, line in enumerate(text.splitlines()) if words in line)


record = functools.partial(builders.record, partition="alpha:node", conditions=CONDITIONS)
HPL = record(hpl())


@pytest.fixture
def load(tmp_path):
    def load_text(text=TEXT, name="alpha.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return load_references(path, CHECKS)

    return load_text


def verdict_of(references, sample, conditions=CONDITIONS, check="HplCheck", stack="mpich"):
    found = references.find(check, "alpha:node", stack, conditions, sample)
    return judge(builders.estimate(sample.value), sample.better, sample.unit, found).verdict


# ------------------------------------------------------------------------------ looking up


def test_a_reference_is_found_with_its_origin(load):
    found = load().find("HplCheck", "alpha:node", "mpich", CONDITIONS, hpl())
    assert (found.value, found.lower, found.upper, found.unit) == (100.0, -0.05, None, "Gflop/s")
    assert found.origin == (
        "measured 2026-11-01 to 2026-11-08, 12 launches, build 3fa9c2, on n1, n2, "
        "rule: median, less three times its spread"
    )


def test_the_closest_provenance_speaks(load):
    references = load()
    close = references.find("ImbMpi1Check", "alpha:node", "mpich", CONDITIONS, ping(0.7))
    assert close.origin == "measured 2026-11-08, 1 launch, build 3fa9c2, on n1, rule: by eye, " + (
        "second hall"
    )
    far = references.find("ImbMpi1Check", "alpha:node", "openmpi", CONDITIONS, ping(0.7))
    assert far.origin == "published: A paper, table 3"


def test_keys_match_as_they_do_in_reframe(load):
    references = load()

    def found(stack, mode, size):
        conditions = {**CONDITIONS, "mode": mode}
        reference = references.find(
            "ImbMpi1Check", "alpha:node", stack, conditions, ping(0.7, size)
        )
        return reference and reference.value

    assert found("openmpi5", "maintenance", 8) == 0.1
    assert found("my-openmpi", "smoke", 8) is None
    assert found("mpich", "maintenance", 1024) == 1.5
    # The same key hides the patterns beside it, whatever they hold.
    assert found("mpich", "smoke", 1024) is None


def test_each_of_several_keys_in_one_is_the_whole_key(load):
    references = load(
        swap("        smoke:\n          HPL", "        smoke|maintenance:\n          HPL")
    )

    def found(**conditions):
        of = {**CONDITIONS, **conditions}
        return references.find("HplCheck", "alpha:node", "mpich", of, hpl())

    assert found()
    assert found(mode="maintenance")
    # ReFrame would take the reference of a problem for that of a smaller one.
    assert found(settings="n=1000") is None


def test_the_same_key_wins_over_a_pattern_that_stands_before_it(load):
    text = swap("        smoke:\n          Ping", "        later:\n          Ping")
    text = text.replace("        .*:\n", "        smoke:\n").replace(
        "        later:", "        .*:"
    )
    references = load(text)
    assert references.find("ImbMpi1Check", "alpha:node", "mpich", CONDITIONS, ping(0.7)) is None
    found = references.find("ImbMpi1Check", "alpha:node", "mpich", CONDITIONS, ping(0.7, 1024))
    assert found.value == 1.5


def test_what_a_value_depends_on_is_in_the_keys():
    assert layout_key(CONDITIONS) == "2-ranks-packed"
    assert layout_key({**CONDITIONS, "cores_per_rank": 1, "bound": True}) == "2-ranks-packed"
    spread: dict[str, ConditionValue] = {
        "ranks": 4,
        "placement": "one-per-node",
        "cores_per_rank": 8,
        "bound": False,
    }
    assert layout_key(spread) == "4-ranks-one-per-node-8-cores-each-unbound"
    assert effort_key(CONDITIONS) == "smoke"
    assert effort_key({**CONDITIONS, "settings": "nb=384"}) == "smoke+nb=384"


# ------------------------------------------- a missing reference is no pass (silent pass 5)


@pytest.mark.parametrize(
    "changed",
    [
        {"ranks": 4},
        {"placement": "one-per-node"},
        {"mode": "maintenance"},
        {"settings": "n=16384"},
        {"cores_per_rank": 2},
        {"bound": False},
    ],
)
def test_a_reference_for_other_conditions_is_no_reference(load, changed):
    found = verdict_of(load(), hpl(100.0), {**CONDITIONS, **changed})
    assert found is Verdict.NO_REFERENCE
    assert exit_status([found], "gate") == 2


def test_a_figure_without_an_entry_is_no_pass(load):
    references = load()
    assert verdict_of(references, ping(0.7, 64), check="ImbMpi1Check") is Verdict.NO_REFERENCE
    assert verdict_of(references, hpl(), check="HpccCheck") is Verdict.NO_REFERENCE
    assert verdict_of(references, hpl(), stack="openmpi") is Verdict.NO_REFERENCE


@pytest.mark.parametrize("missing", sorted(CONDITIONS))
def test_incomplete_question_is_an_error(load, missing):
    conditions = {key: value for key, value in CONDITIONS.items() if key != missing}
    with pytest.raises(ClustergateError, match=missing):
        load().find("HplCheck", "alpha:node", "mpich", conditions, hpl())


def swap(before, after):
    """Return the valid text with the first of some words changed."""
    assert before in TEXT
    return TEXT.replace(before, after, 1)


def refused(load, text, words, sentence):
    """Assert that a text is refused with a sentence for a line that holds these words."""
    with pytest.raises(BadRequest) as raised:
        load(text)
    told = [line.partition("alpha.yaml:")[2] for line in str(raised.value).splitlines()]
    lines = [i for i, line in enumerate(text.splitlines(), 1) if words in line]
    assert [line for line in told if sentence in line], told
    assert [line for line in told if int(line.partition(":")[0]) in lines and sentence in line]


@pytest.mark.parametrize(
    ("before", "after", "words", "sentence"),
    [
        ("      2-ranks-packed:", "      2:", "      2:", "is not a string"),
        ("        smoke:", "        true:", "true:", "'true' is not a string"),
        ("        smoke:\n", "", "HPL.performance_gflops", "expected figures"),
        ("        smoke:\n", "        smoke:\n         x:\n", " x:", "[value, lower, upper, unit]"),
        ("        smoke:", "        smoek:", "smoek:", "unknown mode 'smoek'"),
        (
            "        smoke:",
            "        2-ranks-packed:",
            "        2-ranks",
            "unknown mode '2-ranks-packed'",
        ),
        ("      2-ranks-packed:", "      smoke:", "      smoke:", "expected a layout"),
        ("  alpha:node:", "  mpich:", "  mpich:", "expected a partition"),
        ("    mpich:", "    mpich(:", "mpich(:", "not a valid regular expression"),
        ("reference_layout, reference_effort]", "num_tasks]", "num_tasks", "HplCheck/$index: "),
        (
            "HPL.performance_gflops:",
            "HPL.performance_gf:",
            "performance_gf:",
            "not end in a metric",
        ),
        (
            "HPL.performance_gflops:",
            "performance_gflops:",
            "  performance_gflops:",
            "not end in a metric",
        ),
        ("HPL.performance_gflops:", "HPL.time_s:", "HPL.time_s:", "never judged"),
        ("HPL.performance_gflops:", "HPL.scaled_residual:", "HPL.scaled", "never judged"),
        ("null, Gflop/s", "null, Tflop/s", "Tflop/s", "must be 'Gflop/s', not 'Tflop/s'"),
    ],
)
def test_a_key_that_reframe_would_never_match_is_refused(load, before, after, words, sentence):
    refused(load, swap(before, after), words, sentence)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("[100.0, null, null, Gflop/s]", "nothing could fail"),
        ("[100.0, 0.05, null, Gflop/s]", "between -1 and 0"),
        ("[100.0, -1.0, null, Gflop/s]", "between -1 and 0"),
        ("[100.0, -5, null, Gflop/s]", "between -1 and 0"),
        ("[100.0, -0.999, null, Gflop/s]", "bound -0.999 tolerates 99.9 %: a reference that"),
        ("[100.0, -0.51, null, Gflop/s]", "more than 50 % passes what is broken"),
        ("[.nan, -0.05, null, Gflop/s]", "finite"),
        ("[100.0, -.inf, null, Gflop/s]", "finite"),
        ("[.inf, -0.05, null, Gflop/s]", "finite"),
        ("[0, -0.05, null, Gflop/s]", "greater than 0"),
        ("[true, -0.05, null, Gflop/s]", "greater than 0"),
        ("[1e3, -0.05, null, Gflop/s]", "write 1.0e+3"),
        ("[100.0, -0.05, null]", "[value, lower, upper, unit]"),
        ("[$xfail, known, [100.0, -0.05, null, Gflop/s]]", "[value, lower, upper, unit]"),
        ("100.0", "[value, lower, upper, unit]"),
    ],
)
def test_entry_that_can_never_fail_or_match_refused(load, entry, sentence):
    text = swap("[100.0, -0.05, null, Gflop/s]", entry)
    refused(load, text, "HPL.performance_gflops", sentence)


@pytest.mark.parametrize("upper", ["-0.2", "5.0", "20", "null"])
def test_a_bound_of_the_wrong_sign_or_in_percent_is_refused(load, upper):
    text = swap("[0.75, null, 0.2, us]", f"[0.75, null, {upper}, us]")
    refused(load, text, "PingPong.2p.8B", "upper bound")


def test_hpccs_own_names_are_metrics(tmp_path):
    path = tmp_path / "alpha.yaml"
    text = swap("HPL.performance_gflops:", "StarDGEMM_Gflops.1threads:")
    path.write_text(text, encoding="utf-8")
    metric = "StarDGEMM_Gflops"
    rate = builders.sample(metric, metric, 100.0, threads=1, n=500)
    assert verdict_of(load_references(path, CHECKS), rate) is Verdict.PASS


# ----------------------------------------------- a file that is not read (silent pass 6)


def test_without_a_file_there_are_no_references(tmp_path):
    references = load_references(tmp_path / "alpha.yaml", CHECKS)
    assert references == References(tmp_path / "alpha.yaml")
    assert verdict_of(references, hpl()) is Verdict.NO_REFERENCE
    assert references.unused([HPL]) == []


@pytest.mark.parametrize("name", ["alpha.yml", "Alpha.yaml", "alpha.json"])
def test_a_file_under_a_name_that_nothing_reads_is_an_error(tmp_path, name):
    (tmp_path / name).write_text(TEXT, encoding="utf-8")
    with pytest.raises(BadRequest, match=rf"{name}:1: nothing reads this file"):
        load_references(tmp_path / "alpha.yaml", CHECKS)


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n", "- a list\n"])
def test_a_file_that_holds_nothing_is_an_error(load, text):
    with pytest.raises(BadRequest, match=r"alpha\.yaml(:1: the file: | holds no reference)"):
        load(text)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    path = tmp_path / "alpha.yaml"
    path.mkdir()
    with pytest.raises(BadRequest, match="cannot be read"):
        load_references(path, CHECKS)
    path.rmdir()
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(BadRequest, match="cannot be read"):
        load_references(path, CHECKS)


def test_a_renamed_check_is_an_error(load):
    text = TEXT.replace("HplCheck", "LinpackCheck")
    refused(load, text, "LinpackCheck:", "unknown check 'LinpackCheck'; known: HplCheck, ")


def test_the_partition_of_another_system_is_an_error(load):
    text = TEXT.replace("alpha:node", "beta:node")
    refused(load, text, "  beta:node:", "read for the system alpha alone")


def test_a_run_that_asked_for_everything_leaves_nothing_unused(load):
    assert load().unused([HPL]) == []


def test_what_a_run_of_one_stack_did_not_use_is_not_to_be_removed(load):
    other = record(hpl(), stack="mpich5")
    assert len(load().unused([other])) == 1
    assert load().unused([other], whole=False) == []


@pytest.mark.parametrize(
    ("changed", "words", "reason"),
    [
        ({"partition": "alpha:gpu"}, "  alpha:node:", "has this partition; the run has alpha:gpu"),
        ({"stack": "mpich5"}, "    mpich:", "no case of it has this stack; the run has mpich5"),
        ({"samples": [ping(0.7)]}, "HPL.performance_gflops:", "the case has no such figure"),
    ],
)
def test_a_reference_that_a_run_should_have_used_is_named(load, tmp_path, changed, words, reason):
    (sentence,) = load().unused([dataclasses.replace(HPL, **changed)])
    assert sentence.startswith(f"{tmp_path}/alpha.yaml:{line_of(TEXT, words)}: HplCheck/alpha:node")
    assert reason in sentence


@pytest.mark.parametrize(
    "changed",
    [
        {"conditions": {**CONDITIONS, "mode": "maintenance"}},
        {"conditions": {**CONDITIONS, "settings": "nb=384"}},
        {"samples": (), "complaints": ["the residual failed"]},
        {"samples": (), "conditions": {"mode": "smoke"}, "unavailable": "no such program"},
    ],
)
def test_other_mode_and_failed_case_say_nothing_of_the_file(load, changed):
    assert load().unused([dataclasses.replace(HPL, **changed)]) == []


def test_mode_measures_all_benchmarks_of_a_pattern_not_all_sizes(load):
    """A mode need not measure all sizes of a pattern but all its benchmarks."""
    measured = "origin: measured, dates: [2026-11-08], samples: 1, rule: r, build: b, nodes: [n1]"
    text = TEXT.replace(
        "  ImbMpi1Check:\n    origin: published\n    source: A paper, table 3\n",
        f"  ImbMpi1Check: {{{measured}}}\n",
    )
    maintenance = {**CONDITIONS, "mode": "maintenance"}
    cases = [
        record(ping(0.7), conditions=maintenance, stack=stack) for stack in ("mpich", "openmpi")
    ]
    (sentence,) = load(text).unused(cases)
    assert "PingPing.2p.1024B.latency_us was not used" in sentence


def test_all_figures_of_the_very_mode_must_be_measured(load):
    before = "          PingPong.2p.8B.latency_us: [0.75"
    text = swap(before, f"          PingPong.2p.16B.latency_us: [0.8, null, 0.2, us]\n{before}")
    cases = [record(ping(0.7), stack=stack) for stack in ("mpich", "openmpi")]
    (sentence,) = load(text).unused(cases)
    assert "PingPong.2p.16B.latency_us was not used" in sentence


def test_many_lost_figures_of_a_case_are_one_sentence(load):
    entries = [f"PingPong.2p.{2**i}B.bandwidth_mb_s: [9.0, -0.1, null, MB/s]" for i in range(10)]
    before = "          PingPong.2p.8B.latency_us: [0.75"
    text = swap(before, "".join(f"          {entry}\n" for entry in entries) + before)
    cases = [record(ping(0.7), stack=stack) for stack in ("mpich", "openmpi")]
    (sentence,) = load(text).unused(cases)
    assert "PingPong.2p.1B.bandwidth_mb_s was not used" in sentence
    assert "nor 9 other references here" in sentence


# --------------------------------------------- an improvement that fails (silent pass 8)


@pytest.mark.parametrize(
    ("before", "after", "words", "side"),
    [
        ("[100.0, -0.05, null, G", "[100.0, -0.05, 0.05, G", "HPL.perf", "upper"),
        ("[0.75, null, 0.2, us]", "[0.75, -0.2, 0.2, us]", "PingPong.2p.8B", "lower"),
    ],
)
def test_a_bound_on_the_better_side_is_refused(load, before, after, words, side):
    refused(load, swap(before, after), words, f"the {side} bound must be null")


def test_much_better_than_its_reference_is_an_improvement(load):
    references = load()
    assert verdict_of(references, hpl(200.0)) is Verdict.IMPROVEMENT
    fast = ping(0.1)
    assert verdict_of(references, fast, check="ImbMpi1Check") is Verdict.IMPROVEMENT


# ------------------------------------------------------------------------- YAML and schema


@pytest.mark.parametrize(
    ("before", "after", "words", "sentence"),
    [
        ("    openmpi.*:", "    mpich:", "    mpich:", "the key 'mpich' is in line 30 already"),
        ("          HPL", "          <<: {}\n          HPL", "<<", "a merge (<<)"),
        ("source: A", "source: !!python/name:os.system A", "source", "is not a value"),
        ("[n1, n2]", "!!set {n1, n2}", "!!set", "has no meaning here"),
        ("[2026-11-01", "[2026-13-01", "2026-13-01", "is not a value"),
        ("[2026-11-01", "['2026-13-01'", "2026-13-01", "expected a day"),
        ("samples: 12", "samples: 0", "samples: 0", "number of launches"),
        ("    samples: 12\n", "", "alpha:node/mpich:", "'samples' is a required property"),
        ("origin: published", "origin: guessed", "origin: guessed", "measured or published"),
        ("    source: A paper, table 3\n", "", "  ImbMpi1Check:", "'source' is a required"),
        ("samples: 12", "launches: 12", "launches", "this key is not valid here"),
        ("build: 3fa9c2", "build: 31415", "31415", "quotation marks"),
        ("node/mpich:", "node/mvapich:", "mvapich", "covers no reference"),
        ("node/mpich:", "node/mpi:", "node/mpi:", "covers no reference"),
        ("node/mpich:", "node/mvapich:", "HPL.perf", "no entry of $provenance covers it"),
        ("$provenance:", "provenance:", "provenance:", "'$provenance' is a required property"),
        ("build: 3fa9c2", "build: a: b", "a: b", "not YAML: "),
    ],
)
def test_a_damaged_file_is_an_error_with_its_line(load, before, after, words, sentence):
    refused(load, swap(before, after), words, sentence)


STATISTICS = """\
$statistics:
  HplCheck/alpha:node/mpich:
    runs: 6
    launches: 12
    core_distance_ns: 48.5
    usual_percent: {HPL.performance_gflops: 2.0}
    spread_percent: {HPL.performance_gflops: 1.5}
    group_spread_percent: {HPL: 1.5}
    slow_percent: {HPL.performance_gflops: 4.0}
HplCheck:
"""


def with_statistics(before="", after=""):
    """Return the valid text with statistics, of which some words are changed."""
    path = "HplCheck/alpha:node/mpich/2-ranks-packed/smoke"
    text = TEXT.replace("HplCheck/alpha:node/mpich", path, 1).replace("HplCheck:\n", STATISTICS, 1)
    text = text.replace("  HplCheck/alpha:node/mpich:\n    runs", f"  {path}:\n    runs", 1)
    assert before in text
    return text.replace(before, after, 1)


def test_statistics_are_found_beside_their_references(load):
    references = load(with_statistics())
    found = references.find("HplCheck", "alpha:node", "mpich", CONDITIONS, hpl())
    # Those of before do not say what the runs were: its bound judges it.
    assert (found.value, found.lower, found.baseline) == (100.0, -0.05, None)
    references = load(with_values())
    known = references.find("HplCheck", "alpha:node", "mpich", CONDITIONS, hpl()).baseline
    assert known.runs == ("r1", "r2", "r3")
    assert known.days == ("2026-11-01", "2026-11-01", "2026-11-08")
    assert (known.values, known.launches, known.slow) == ((99.0, 100.0, 98.5), 4, 0.04)
    # HPL is not launched again and again.
    assert not known.repeated
    assert known.compared == len(references.paths())
    imb = references.find("ImbMpi1Check", "alpha:node", "mpich", CONDITIONS, ping(0.7))
    assert imb.baseline is None
    assert load().find("HplCheck", "alpha:node", "mpich", CONDITIONS, hpl()).baseline is None
    assert references.nearest_ns("HplCheck", "alpha:node", "mpich", CONDITIONS) == 48.5
    assert references.nearest_ns("ImbMpi1Check", "alpha:node", "mpich", CONDITIONS) is None
    assert References(Path("none")).nearest_ns("HplCheck", "a:b", "c", CONDITIONS) is None


def with_values(before="", after=""):
    """Return the same with what the runs were, as it is written today."""
    text = with_statistics()
    start, end = text.index("    runs: 6"), text.index("HplCheck:\n")
    text = text[:start] + VALUES + text[end:]
    assert before in text
    return text.replace(before, after, 1)


VALUES = """\
    launches: 12
    core_distance_ns: 48.5
    runs: [r1, r2, r3]
    days: [2026-11-01, 2026-11-01, 2026-11-08]
    values:
      HPL.performance_gflops: [99.0, 100.0, 98.5]
    slow_percent: {HPL.performance_gflops: 4.0}
"""


@pytest.mark.parametrize(
    ("before", "after", "words", "sentence"),
    [
        ("99.0, ", "", "smoke:", "HPL.performance_gflops has 2 values of 3 runs"),
        ("[r1, ", "[", "smoke:", "has 3 values of 2 runs"),
        ("days: [2026-11-01, ", "days: [", "smoke:", "has 3 values of 3 runs with 2 days"),
        ("    days: [2026-11-01, 2026-11-01, 2026-11-08]\n", "", "smoke:", "'days' is a required"),
        ("99.0", "0", "[0, ", "a number above 0"),
        ("99.0", ".inf", "smoke:", "statistics must be finite numbers"),
        ("      HPL.perf", "      HPL.x.perf", "smoke:", "no reference HPL.x.performance_gflops"),
        ("[r1, r2,", "[r1, r1,", "runs: [r1", "two or more runs, each once"),
        ("[99.0, 100.0, 98.5]", "[49.5, 50.0, 49.2]", "49.5", "49.57 Gflop/s in the mean, beyond"),
        ("99.0", "1.0e+308", "e+308", "more than 100 times off its reference 100"),
        ("gflops: 4.0}", "gflops: 101}", "gflops: 101}", "a number in percent from 0 to 100"),
    ],
)
def test_values_that_are_not_of_the_references_are_refused(load, before, after, words, sentence):
    refused(load, with_values(before, after), words, sentence)


LATENCY, RATE = (0.75, None, 0.2, "us"), (100.0, -0.05, None, "Gflop/s")


@pytest.mark.parametrize(
    ("row", "entry", "code"),
    [
        ((0.7, 0.8), LATENCY, ""),
        ((0.89, 0.9), LATENCY, ""),
        ((0.9, 0.92), LATENCY, "statistics.beyond-bound"),
        ((0.0076, 0.8), LATENCY, ""),
        ((0.0074, 0.8), LATENCY, "statistics.far"),
        ((99.0, 104.0), RATE, ""),
        ((95.0, 95.1), RATE, ""),
        ((94.0, 95.9), RATE, "statistics.beyond-bound"),
        ((9900.0, 90.0), RATE, ""),
        ((10100.0, 90.0), RATE, "statistics.far"),
    ],
)
def test_runs_that_were_beyond_the_bound_or_far_off_are_not_of_a_reference(row, entry, code):
    said = unlike(row, entry, "figure")
    assert (said.code if said else "") == code


@pytest.mark.parametrize(
    ("sides", "anchor", "tolerated"),
    [
        # Of a rate, and of a time: the anchor's bound, unless the reference's own is narrower.
        ((-0.30, None), {"bound": 85.0, "usual": 95.0}, -0.15),
        ((-0.05, None), {"bound": 85.0, "usual": 95.0}, -0.05),
        ((-0.30, None), {"bound": 110.0, "usual": 120.0}, 0.0),
        ((None, 0.50), {"bound": 120.0, "usual": 110.0}, 0.20),
        ((None, 0.05), {"bound": 120.0, "usual": 110.0}, 0.05),
        ((None, 0.50), {"bound": 90.0, "usual": 80.0}, 0.0),
        # What crept beyond it by then is told from 5 % on.
        ((-0.30, None), {"bound": 85.0, "usual": 94.5, "drift_percent": 6.0}, -0.10),
        ((-0.30, None), {"bound": 95.0, "usual": 94.5, "drift_percent": 6.0}, -0.05),
        ((None, 0.50), {"bound": 120.0, "usual": 110.0, "drift_percent": 6.0}, 0.155),
        ((None, 0.50), {"bound": 112.0, "usual": 110.0, "drift_percent": 6.0}, 0.12),
    ],
)
def test_an_anchor_of_before_narrows_what_a_reference_tolerates(sides, anchor, tolerated):
    lower, upper = sides
    known = Reference(100.0, lower, upper, "unit", "measured")
    within = within_anchor(known, anchor)
    assert (within.lower is None, within.upper is None) == (lower is None, upper is None)
    assert (within.upper if lower is None else within.lower) == pytest.approx(tolerated)
    assert within_anchor(known, None) is known


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("99.0, .nan", "nan Gflop/s of HPL.performance_gflops is more than 100 times off"),
        ("1.0e+300, 99.0", "1e+300 Gflop/s of HPL.performance_gflops is more than 100 times off"),
        ("1.0e-300, 1.0e-300", "is more than 100 times off its reference 100"),
        ("49.5, 49", "the runs of HPL.performance_gflops were 49.25 Gflop/s in the mean, beyond"),
        ("null, null", "has 2 values for 2 days and 2 runs; give each day a value"),
        ("99.0", "has 1 value for 2 days"),
    ],
)
def test_an_anchor_that_nothing_could_creep_away_from_is_refused(load, row, sentence):
    path = "HplCheck/alpha:node/mpich/2-ranks-packed/smoke"
    text = f"""{with_values()}$anchors:
  {path}:
    runs: [a, b]
    days: [2026-10-01, 2026-10-02]
    values:
      HPL.performance_gflops: [ROW]
"""
    load(text.replace("ROW", "99.0, 98.0"))
    refused(load, text.replace("ROW", row), f"[{row}]", sentence)


def test_an_anchor_of_more_runs_than_days_is_refused(load):
    path = "HplCheck/alpha:node/mpich/2-ranks-packed/smoke"
    text = f"""{with_values()}$anchors:
  {path}:
    runs: [a, b, c]
    days: [2026-10-01, 2026-10-02]
    values:
      HPL.performance_gflops: [99.0, 98.0]
"""
    refused(load, text, "[99.0, 98.0]", "has 2 values for 2 days and 3 runs")


@pytest.mark.parametrize(
    ("before", "after", "words", "sentence"),
    [
        ("runs: 6", "runs: 1", "runs: 1", "without values their number"),
        ("    runs: 6\n", "", "smoke:", "'runs' is a required property"),
        ("launches: 12", "launches: 5", "smoke:", "5 launches here, but 12 samples in $provenance"),
        ("runs: 6", "runs: 13", "smoke:", "fewer launches (12) than runs (13)"),
        (
            "spread_percent: {HPL",
            "spread_percent: {HPL.x",
            "smoke:",
            "no reference HPL.x.performance_gflops",
        ),
        (
            "group_spread_percent: {HPL:",
            "group_spread_percent: {HPCC:",
            "smoke:",
            "no figure of HPCC has a spread",
        ),
        ("gflops: 1.5}", "gflops: -1.5}", "gflops: -1.5", "a number in percent, 0 or more"),
        ("gflops: 1.5}", "gflops: .inf}", "smoke:", "statistics must be finite numbers"),
        ("gflops: 1.5}", "gflops: .nan}", "smoke:", "statistics must be finite numbers"),
        ("gflops: 2.0}", "gflops: .nan}", "smoke:", "statistics must be finite numbers"),
        ("usual_percent: {HPL.p", "usual_percent: {HPL.q", "smoke:", "must have both"),
        ("slow_percent: {HPL.", "slow_percent: {HPCC.", "smoke:", "no figure or benchmark HPCC."),
        ("distance_ns: 48.5", "distance_ns: 0", "ns: 0", "in ns, more than 0"),
        ("spread_percent", "spread", "spread:", "this key is not valid here"),
        (": measured", ": guessed", "origin: guessed", "measured or published"),
    ],
)
def test_statistics_that_are_not_of_the_references_are_refused(
    load, before, after, words, sentence
):
    refused(load, with_statistics(before, after), words, sentence)


def test_a_bound_may_be_wide_where_it_is_known_how_runs_scatter(load):
    tight, loose = "[100.0, -0.05, null, Gflop/s]", "[100.0, -0.7, null, Gflop/s]"
    wide = with_statistics(tight, loose)
    assert load(wide).find("HplCheck", "alpha:node", "mpich", CONDITIONS, hpl()).lower == -0.7
    refused(load, swap(tight, loose), "-0.7", "tolerates 70.0 %")
    endless = "[100.0, -1.0, null, Gflop/s]"
    refused(load, with_statistics(tight, endless), "-1.0", "between -1 and 0")


def test_statistics_of_what_was_not_measured_are_refused(load):
    text = TEXT.replace("HplCheck:\n", STATISTICS, 1)
    refused(load, text, "  HplCheck/alpha:node/mpich:", "must end at an effort")
    published = STATISTICS.replace("HplCheck/alpha:node/mpich:", "ImbMpi1Check:")
    text = TEXT.replace("HplCheck:\n", published, 1)
    refused(load, text, "  ImbMpi1Check:", "has no measured entry with this path")


@pytest.mark.parametrize(("number", "read"), [("0750", 488), ("1:30", 90), ("0x1F", 31)])
def test_a_number_of_another_base_is_refused(load, number, read):
    """A bound or a value that is lower than what stands there lets a slowdown pass."""
    text = TEXT.replace("[0.1, null, 0.2, us]", f"[{number}, null, 0.2, us]")
    refused(load, text, number, f"YAML reads {number} as {read}")


def test_an_alias_is_refused(load):
    text = swap("[0.75, null, 0.2, us]", "&short [0.75, null, 0.2, us]")
    refused(load, text.replace("[0.1, null, 0.2, us]", "*short"), "&short", "an alias")
    refused(load, "$provenance: &all {a: *all}\n", "&all", "an alias")


def test_the_example_in_the_readme_is_a_valid_file(tmp_path):
    readme = Path(__file__).resolve().parents[1] / "references" / "README.md"
    text = readme.read_text(encoding="utf-8").split("```")[1].removeprefix("yaml\n")
    path = tmp_path / "example.yaml"
    path.write_text(text, encoding="utf-8")
    conditions: dict[str, ConditionValue] = {
        "mode": "maintenance",
        "ranks": 128,
        "placement": "packed",
    }
    references = load_references(path, CHECKS)
    found = references.find("HplCheck", "example:compute", "mpich", conditions, hpl())
    assert found is not None
    assert found.value == 4100.0


# ------------------------------------------------- what ReFrame itself makes of the files

TOY = """\
import json
import pathlib

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function

HERE = pathlib.Path(__file__).parent


class Toy(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo"

    @run_after("setup")
    def find_references(self):
        self.reference_layout = "2-ranks-packed"
        self.reference_effort = "smoke"
        self.reference = {"$ref": str(HERE / self.references)}

    @sanity_function
    def always(self):
        return True

    @run_before("performance")
    def name_figures(self):
        figures = json.loads((HERE / "figures.json").read_text())
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(value), unit)
            for name, value, unit in figures
        }


@rfm.simple_test
class GoodCheck(Toy):
    references = "alpha.yaml"


@rfm.simple_test
class NumberForAKeyCheck(Toy):
    references = "numbers.yaml"
"""
SITE = """\
site_configuration = {
    "systems": [
        {
            "name": "alpha",
            "hostnames": [".*"],
            "partitions": [
                {"name": "node", "scheduler": "local", "launcher": "local", "environs": ["mpich"]}
            ],
        }
    ],
    "environments": [{"name": "mpich"}],
}
"""


def around(reference, better):
    """Return values at the bound, one step beside it, at the reference and much better."""
    bound = tolerated_bound(reference, better)
    assert bound is not None
    best = 3 * reference.value if better is Better.HIGHER else reference.value / 3
    beside = [math.nextafter(bound, towards) for towards in (0.0, math.inf)]
    return [bound, *beside, reference.value, best]


def toy_samples():
    """Return (sample, reference), None for the one figure without an entry."""
    cases = [
        (metric, Reference(value, lower, upper, METRICS[metric].unit, "a test"))
        for metric, (lower, upper) in (
            ("bandwidth_mb_s", (-0.1, None)),
            ("latency_us", (None, 0.1)),
        )
        for value in (0.7, 17.3, 1234.56)
    ]
    cases += [("overlap_percent", Reference(60.0, -0.25, None, "%", "a test"))]
    found: list[tuple[Sample, Reference | None]] = []
    for metric, reference in cases:
        better = METRICS[metric].better
        for value in around(reference, better):
            made = ping(value, len(found), benchmark="Toy", metric=metric)
            found.append((made, reference))
    return [*found, (ping(99.0), None)]


def toy_file(cases, check, layout):
    entries = [
        f"          {name(sample)}: {json.dumps(list(reframe_reference(r, sample.better)))}\n"
        for sample, r in cases
        if r
    ]
    path = f"{check}/alpha:node/mpich/{layout}/smoke"
    spread = f"{{{name(cases[0][0])}: 1.5}}"
    return (
        f"$provenance:\n  {path}: {{origin: measured, dates: [2026-11-01], samples: 9, "
        "rule: a test, build: b1, nodes: [n1]}\n"
        f"$statistics:\n  {path}: {{runs: 3, launches: 9, usual_percent: {spread}, "
        f"spread_percent: {spread}}}\n"
        f"{check}:\n  $index: [$partition, $environ, reference_layout, reference_effort]\n"
        f"  alpha:node:\n    mpich:\n      {layout}:\n        smoke:\n{''.join(entries)}"
    )


def name(sample):
    return f"{sample.benchmark}.2p.{sample.conditions['bytes']}B.{sample.metric}"


@pytest.fixture(scope="module")
def reframe_says(tmp_path_factory):
    """Run ReFrame once; return its pass or fail by check and figure, and the folder."""
    folder = tmp_path_factory.mktemp("toy")
    cases = toy_samples()
    figures = [(name(sample), sample.value, sample.unit) for sample, _ in cases]
    (folder / "figures.json").write_text(json.dumps(figures), encoding="utf-8")
    (folder / "toy.py").write_text(TOY, encoding="utf-8")
    (folder / "site.py").write_text(SITE, encoding="utf-8")
    good = toy_file(cases, "GoodCheck", "2-ranks-packed")
    (folder / "alpha.yaml").write_text(good, encoding="utf-8")
    numbers = toy_file(cases, "NumberForAKeyCheck", "2")
    (folder / "numbers.yaml").write_text(numbers, encoding="utf-8")
    command = [str(Path(sys.executable).parent / "reframe"), "--config-file=site.py"]
    command += ["--checkpath=toy.py", "--report-file=report.json", "--prefix=.", "--run"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)}
    subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    said = {
        (case["name"], figure.rpartition(":")[2]): values[-1]
        for case in report["runs"][0]["testcases"]
        for figure, values in case["perfvalues"].items()
    }
    return said, folder


def test_reframes_pass_and_fail_are_the_judges(reframe_says):
    said, folder = reframe_says
    references = load_references(folder / "alpha.yaml", {"GoodCheck"})
    assert "$statistics" in references.document.data
    cases = toy_samples()
    judged = {
        name(sample): verdict_of(references, sample, check="GoodCheck") for sample, _ in cases
    }
    assert list(judged.values()).count(Verdict.REGRESSION) == 7
    assert list(judged.values()).count(Verdict.IMPROVEMENT) == 7
    assert list(judged.values()).count(Verdict.NO_REFERENCE) == 1
    for figure, verdict in judged.items():
        assert said["GoodCheck", figure] == ("fail" if verdict is Verdict.REGRESSION else "pass")


def test_number_for_a_key_passes_in_reframe_and_is_refused_here(reframe_says):
    """ReFrame passes everything under a number for a key and the loader refuses."""
    said, folder = reframe_says
    results = {result for (check, _), result in said.items() if check == "NumberForAKeyCheck"}
    assert results == {"pass"}
    text = (folder / "numbers.yaml").read_text(encoding="utf-8")
    with pytest.raises(BadRequest, match=rf"yaml:{line_of(text, ' 2:')}: the key '2' is"):
        load_references(folder / "numbers.yaml", {"NumberForAKeyCheck"})
