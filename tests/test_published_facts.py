import random
import re
from collections import Counter
from itertools import product
from typing import Any

import pytest

from clustergate.benchmarks.registry import every_metric
from clustergate.core.model import Better
from clustergate.core.paths import checkout
from evaluations import forms, predicates, quantities
from evaluations.evidence import Measured, Subject
from evaluations.facts import (
    CONTRADICTED,
    DOUBTFUL,
    PAPERS,
    STANDS,
    FactsError,
    Predicate,
    UnknownPaper,
    folder,
    load_paper,
    load_papers,
    parse_paper,
)
from evaluations.series import Cast

TEXT = (folder() / "001.yaml").read_text(encoding="utf-8")


def line_of(text: str, words: str) -> int:
    return max(k for k, line in enumerate(text.splitlines(), 1) if words in line)


def refused(old: str, new: str) -> str:
    text = TEXT.replace(old, new, 1)
    assert text != TEXT
    with pytest.raises(FactsError) as told:
        parse_paper(text, folder() / "001.yaml")
    return str(told.value)


def test_every_printed_value_parameter_conclusion_and_figure_is_there():
    papers = load_papers()
    assert [len(paper.values) for paper in papers] == [34, 37, 32, 141, 72]
    assert [len(paper.parameters) for paper in papers] == [9, 26, 16, 9, 15]
    assert [len(paper.predicates) for paper in papers] == [26, 14, 16, 22, 23]
    assert [len({f.number for f in paper.figures}) for paper in papers] == [15, 10, 24, 29, 30]
    assert sum(len(paper.remarks) for paper in papers) == 63


def test_figures_are_numbered_without_a_gap():
    for paper in load_papers():
        numbers = [f.number for f in paper.figures]
        assert sorted(set(numbers)) == list(range(1, numbers[-1] + 1))
        assert numbers == sorted(numbers)


def test_a_value_has_its_provenance():
    value = load_paper("003").values["r018"]
    assert (value.system, value.benchmark, value.metric) == (
        "e326-24-400-100",
        "PMB PingPong",
        "latency",
    )
    assert (value.value, value.unit, value.better) == (5.13, "us", Better.LOWER)
    assert value.source == "Section 6.1, Table 1"
    assert value.conditions["processes"] == 2


def test_what_the_paper_leaves_open_is_named():
    assert load_paper("003").values["r042"].not_stated == ["processes"]
    assert "memory" in load_paper("000").systems["nec-sx8"].not_stated


def test_a_range_and_a_qualifier_are_told_as_printed():
    values = load_paper("000").values
    assert values["r017"].text == "0.84 to 1.07"
    assert values["r014"].text == "above 2.67"


def test_what_cannot_be_is_carried_with_its_reason():
    standings = Counter(
        (paper.id, value.standing) for paper in load_papers() for value in paper.values.values()
    )
    assert standings["001", DOUBTFUL] == 5
    assert standings["004", CONTRADICTED] == 2
    for name in ("r022", "r025"):
        assert "on one node" in load_paper("001").values[name].because
    assert load_paper("002").values["r013"].standing == CONTRADICTED
    assert (
        sum(count for (_, standing), count in standings.items() if standing == STANDS) == 316 - 21
    )


def test_no_remark_quotes_a_paper():
    for paper in PAPERS:
        for remark in load_paper(paper).remarks.values():
            assert '"' not in remark.remark, (paper, remark.id)
        for value in load_paper(paper).values.values():
            assert '"' not in value.remark + value.because, (paper, value.id)


def test_a_variant_leads_to_its_system():
    paper = load_paper("000")
    assert paper.family("altix-bx2-numalink4-multibox") == [
        "altix-bx2-numalink4-multibox",
        "altix-bx2-numalink4",
        "altix-bx2",
    ]


def test_an_unknown_paper_lists_the_known_ones():
    with pytest.raises(UnknownPaper, match=r"'7'.*000, 001"):
        load_paper("7")


@pytest.mark.parametrize(
    ("old", "new", "place", "told"),
    [
        ("id: r023", "id: r022", "id: r022", "another value has this id"),
        ("better: lower", "better: smaller", "better: smaller", "lower, higher or neither"),
        ("value: 72007", "value: .nan", "value: .nan", "finite"),
        ("value: 72007\n", "low: 72007\n", "low: 72007", "a value, or low and high"),
        ("variant_of: westmere-m610-qdr", "variant_of: westmere", "-mvapich2:", "no system"),
        ("concerns: [r021]", "concerns: [r999]", "about: Rmax", "r999, which is nowhere"),
        ("kind: typo", "kind: slip", "kind: slip", "inconsistency, typo, note or checked"),
        ("figure: Ping", 'figure: "{size}" #', "id: r022", "do not fill the braces of"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old, new, place, told):
    sentence = refused(old, new)
    assert told in sentence
    text = TEXT.replace(old, new, 1)
    lines = {int(n) for n in re.findall(r"001\.yaml:(\d+): ", sentence)}
    assert any(abs(line - line_of(text, place)) <= 3 for line in lines)


def test_standing_and_reason_go_together():
    assert "standing and because go together" in refused("        standing: doubtful\n", "")


def test_a_damaged_text_is_one_sentence():
    assert "not YAML" in refused("systems:", "systems: [")
    with pytest.raises(FactsError, match="not YAML: nested too deeply"):
        parse_paper("[" * 5000 + "]" * 5000, folder() / "study.yaml")


STUDY = (checkout() / "docs" / "examples" / "two-stacks.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("      along: bytes\n      to: 1024\n", "", "a test of the kind 'ahead' needs along"),
        ("      systems: [intel-mpi, mpich]\n", "", "'ahead' needs systems or than"),
        ("[intel-mpi, mpich]", "[intel-mpi, mpch]", "no system 'mpch'; did you mean 'mpich'?"),
        ("[intel-mpi, mpich]", "[intel-mpi]", "'ahead' compares two systems"),
        (
            "kind: trend",
            "kind: trends",
            "no kind of test 'trends'; known are ahead, trend, ",
        ),
        ("PingPong, metric: latency_us}", "PingPong}", "'of' names a benchmark and a metric"),
        ("along: bytes, ranks: 2}", "ranks: 2}", "figure 1: its draw needs along"),
        (
            "along: bytes, ranks: 2}",
            "along: bytes, rank: 2}",
            "figure 1: a draw of the kind 'line' takes no 'rank'",
        ),
        (
            "along: bytes, ranks: 2}",
            "along: bytes, ranks: 2, over: nonsense}",
            "'over' is one of log2 p, p-1",
        ),
        ("along: bytes, ranks: 2}", "along: bytes, factor: x}", "figure 1: 'factor' is a number"),
        ("along: bytes, ranks: 2}", "along: bytes, only: 8}", "figure 1: 'only' is a list"),
        (
            "{benchmark: PingPong, metric: latency_us, along: bytes, ranks: 2}",
            "{metric: latency_us, along: bytes}",
            "figure 1: its draw needs benchmark or benchmarks",
        ),
        ("along: bytes, ranks: 2}", "along: trial}", "its draw needs bytes"),
        ("kind: line", "kind: bar", "figure 1: a draw of the kind 'bar' takes no 'along'"),
        ("to: 1024", "too: 1024", "p001: a test of the kind 'ahead' takes no 'too'"),
        ("to: 1024", "to: 1 kB", "p001: 'to' is a number"),
        ("to: 1024", "to: .inf", "p001: 'to' is a number"),
        ("to: 1024", "from: 2048\n      to: 1024", "p001: 'from' is above 'to'"),
        (
            "kind: ahead",
            "kind: level\n      within: 0.1",
            "no kind 'level' any more: write ",
        ),
        (
            "kind: ahead",
            "kind: dip\n      at: 8",
            "'dip' any more: write another kind, or",
        ),
        ("kind: ahead", "kind: order", "'order' any more: write a conclusion of the kind ahead"),
        ("kind: trend", "kind: all\n      parts: []", "write each of its parts as a conclusion"),
        ("kind: ahead", "kind: ratio", "p001: a test of the kind 'ratio' needs low or high"),
        ("kind: ahead", "kind: ratio\n      low: 2\n      high: 1", "p001: 'low' is above 'high'"),
        (
            "kind: ahead",
            "kind: ratio\n      low: 0",
            "'low' is what something is compared with",
        ),
        ("[intel-mpi, mpich]", "[mpich, mpich]", "compares two systems, each named once"),
        (
            "kind: ahead",
            "kind: ahead\n      factor: 2",
            "p001: a test of the kind 'ahead' takes no 'factor'",
        ),
        (
            "kind: ahead",
            "kind: ahead\n      than: {benchmark: Bcast, metric: t_avg_us}",
            "takes one of systems, than",
        ),
        (
            "kind: trend",
            "kind: trend\n      over: {benchmark: Bcast, metric: t_avg_us}",
            "p002: 'over' is one of log2 p",
        ),
        (
            "kind: trend",
            "kind: at least\n      over: p-1",
            "p002: 'over' names a benchmark and a metric",
        ),
        (
            "kind: trend\n      of: {benchmark: Allreduce, metric: t_avg_us}\n      along: bytes\n"
            "      direction: rises",
            "kind: at most\n      of: {benchmark: Allreduce, metric: t_avg_us}",
            "p002: a test of the kind 'at most' needs value, over or as_much_as",
        ),
        ("direction: rises", "direction: up", "p002: 'direction' is one of rises, falls"),
        ("metric: latency_us}", "metric: latency}", "'latency'; did you mean 'latency_us'?"),
        ("metric: latency_us}", "metric: speed}", "no metric 'speed'; known are "),
        ("mode: smoke", "mode: smok", "unknown mode 'smok'; known: quick, smoke"),
        ("[ImbMpi1Check]", "[ImbCheck]", "there is no check 'ImbCheck'; known are HplCheck"),
        ("{launches", "{HplCheck.seconds: 1, launches", "HplCheck.seconds: HplCheck is not run"),
        ("launches: 10", "lunches: 10", "lunches: no check of the study has a setting 'lunches'"),
        ("launches: 10", "ImbMpi1Check.launch: 10", "ImbMpi1Check.launch: no check of the study"),
        ("launches: 10", "launches: 0", "launches is a whole number from 1 to 10000, not 0"),
        ("launches: 10", "launches: ten", "from 1 to 10000, not 'ten'"),
        ("launches: 10", "launches: 100000000", "from 1 to 10000, not 100000000"),
        ("launches: 10", "benchmarks: [Bcast]", "one word or number, with commas between several"),
        ("launches: 10", "mode: full", "no check of the study has a setting 'mode'"),
        ("launches: 10", "largest_bytes: 1M", "largest_bytes"),
        ("launches: 10", "benchmarks: 'Bcast,Redcue'", "benchmarks has no 'Redcue'; known are Pi"),
        (
            "10}",
            "10}\n    parts: [{checks: [HpCheck]}]",
            "there is no check 'HpCheck'; known are HplCheck",
        ),
        (
            "10}",
            "10}\n    parts: [{checks: [HplCheck], mode: smok}]",
            "unknown mode 'smok'; known: quick, smoke",
        ),
        (
            "10}",
            "10}\n    parts: [{checks: [HplCheck], gate: true}]",
            "gates",
        ),
        (
            "10}",
            "10}\n    parts: [{mode: smoke}]",
            "checks",
        ),
        (
            "10}",
            "10}\n    parts: [{checks: [HplCheck], settings: {ImbMpi1Check.launches: 3}}]",
            "launches: ImbMpi1Check is not run",
        ),
        ("id: two-stacks", "id: ../two", "expected letters, digits and hyphens"),
        ("id: two-stacks", 'id: "001"', "a study of one's own has another id than the papers"),
        ("MPICH, kind", "MPICH, variant_of: mpich, kind", "mpich: it is a variant of itself"),
        ("[intel-mpi, mpich]", "[[intel-mpi], [mpich]]", "'systems' is a list of systems"),
        ("metric: latency_us}", "metric: [latency_us]}", "names are single words or numbers"),
        ("benchmark: Allreduce", "benchmark: [Bcast]", "names are single words or numbers"),
        ("[intel-mpi, mpich]", "[{a: 1}, mpich]", "'systems' is a list of systems"),
        (
            "benchmark: PingPong, metric: latency_us, along: bytes, ranks: 2}",
            "benchmarks: [8], metric: latency_us, along: bytes}",
            "figure 1: 'benchmarks' is a list of words",
        ),
        ("to: 1024", f"to: {10**400}", "p001: 'to' is a number"),
        ("along: bytes, ranks: 2}", "along: bytes, only: [[8]]}", "figure 1: 'only' is a list"),
    ],
)
def test_what_a_study_of_ones_own_leaves_out_is_told_with_its_line(old, new, told, tmp_path):
    path = tmp_path / "study.yaml"
    assert parse_paper(STUDY, path).id == "two-stacks"
    changed = STUDY.replace(old, new, 1)
    assert changed != STUDY
    with pytest.raises(FactsError, match=re.escape(told)) as found:
        parse_paper(changed, path)
    assert re.match(rf"{re.escape(str(path))}:\d+: ", str(found.value))


def test_tests_in_the_file_of_a_paper_are_refused_with_what_to_do():
    """As packages of earlier versions have them: the first line says it of all."""
    test = "    here: {kind: trend, of: {benchmark: Bcast, metric: t_avg_us}, along: bytes}\n"
    told = refused("    source: Section VI\n", f"    source: Section VI\n{test}")
    assert re.search(r"001\.yaml:\d+: p001: .*: give 001 in place of this file", told)
    assert len(told.splitlines()) == 1


def test_a_paper_without_a_number_that_a_conclusion_is_judged_by_is_one_sentence():
    path = folder() / "002.yaml"
    text = path.read_text(encoding="utf-8").replace("id: r029", "id: r929")
    with pytest.raises(FactsError, match=r"002.yaml:\d+: there is no value 'r029'"):
        parse_paper(text, path)


def test_a_conclusion_without_a_test_says_why(tmp_path):
    changed = STUDY[: STUDY.index("    here:\n      kind: trend")] + "figures: []\n"
    with pytest.raises(FactsError, match=r"study.yaml:\d+: p002: it takes what decides it"):
        parse_paper(changed, tmp_path / "study.yaml")


VALUES = """\
values:
  - {source: "Table 1", benchmark: PingPong, category: measured, metric: time, unit: us,
     better: lower, entries: [{id: r001, system: mpich, value: 1, %s}]}
"""
TWO = "benchmark: PingPong, metric: latency_us, bytes: 8"
SUITE = "suite: {check: ImbMpi1Check, figure: PingPong.2p.8B."


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("remark: so", "nothing would stand beside it: it takes a figure"),
        (f"low: {10**400}", "a printed value is a finite number"),
        (
            'suite: {check: ImbMpi1Check, figure: "PingPong.{bytes.b}.latency_us"}, '
            "conditions: {bytes: 8}",
            "do not fill the braces",
        ),
        (
            "derived: {kind: dip size, benchmark: [X], metric: latency_us}",
            "single words or numbers",
        ),
        ("derived: {kind: sum}", "there is no derived quantity 'sum'; known are "),
        (f"derived: {{kind: ratio, {TWO}}}", "the derived quantity 'ratio' needs of, over"),
        ("derived: {kind: dip size, benchmark: X, metric: time}", "there is no metric 'time'"),
        (f"derived: {{kind: gain, {TWO}, of: [mpch], over: [intel-mpi]}}", "mean 'mpich'?"),
        (f"derived: {{kind: gain, {TWO}, of: mpich, over: [intel-mpi]}}", "lists of systems"),
        (f"derived: {{kind: gain, {TWO}, of: [[mpich]], over: [intel-mpi]}}", "lists of systems"),
        (f"derived: {{kind: gain, {TWO}, of: [{{a: 1}}], over: [intel-mpi]}}", "lists of systems"),
        (f"derived: {{kind: gain, {TWO}, of: [mpich], over: [mpich]}}", "each system once"),
        (f"derived: {{kind: gain, {TWO}, of: [mpich], over: [intel-mpi], rank: 2}}", "no 'rank'"),
        (
            f"derived: {{kind: lead ends, {TWO}, of: [mpich, intel-mpi], over: [mpich]}}",
            "is of one system",
        ),
        (f"{SUITE}time}}", "its figure is of no known metric: 'time'"),
        (f"{SUITE}latency_us, relative: to baseline}}", "one of the systems as 'baseline'"),
    ],
)
def test_a_value_of_a_study_that_would_stop_its_page_is_refused(value, told, tmp_path):
    with pytest.raises(FactsError, match=r"study.yaml:\d+: r001: ") as found:
        parse_paper(STUDY + VALUES % value, tmp_path / "study.yaml")
    assert told in str(found.value)


def test_a_value_that_names_no_category_is_refused_or_taken_as_measured(tmp_path):
    values = VALUES.replace("category: measured, ", "")
    with pytest.raises(FactsError, match="nothing would stand beside it"):
        parse_paper(STUDY + values % "remark: so", tmp_path / "study.yaml")
    taken = parse_paper(STUDY + values % f"{SUITE}latency_us}}", tmp_path / "study.yaml")
    assert taken.values["r001"].category == "measured"


def test_the_derived_quantities_are_those_that_can_be_computed():
    assert {*forms.DERIVED} == {*quantities.KINDS}
    good = f"derived: {{kind: gain, {TWO}, of: [mpich], over: [intel-mpi]}}"
    assert parse_paper(STUDY + VALUES % good, folder() / "study.yaml").values["r001"].derived


def test_the_kinds_of_tests_are_those_of_the_page_with_what_they_need():
    page = (checkout() / "docs" / "your-evaluation.md").read_text(encoding="utf-8")
    rows = {line for line in page.splitlines() if line.startswith("| `")}
    for kind, needs in forms.NEEDS.items():
        [row] = [row for row in rows if f"`{kind}`" in row.split("|")[1]]
        assert all(f"`{name}`" in row for need in needs for name in need.split("|")), kind


OF: list[dict[str, Any]] = [
    {"benchmark": "Allreduce", "metric": "t_avg_us"},
    {"benchmark": "Allreduce", "metric": "t_avg_us", "bytes": 8},
    {"benchmark": "PingPong", "metric": "bandwidth_mb_s", "bytes": 16},
    {"benchmark": "Barrier", "metric": "t_avg_us"},
]
# What settings are told at random: what fits, and what does not.
TOLD: dict[str, list[Any]] = {
    name: values
    for names, values in (
        ("of than as_much_as", OF),
        ("over", [*OF, "p-1", "weak efficiency", "T(2)"]),
        ("value low high from to", [0, 1, 2, 8, 16, 0.5, 1.5, -1]),
        ("growing", [True, False, "no"]),
        ("system", ["a", "b", "z", 3]),
        ("systems", [["a", "b"], ["c"], [], "a", list("abca"), [["a"], ["b"]]]),
        ("placement", ["packed", "one-per-node"]),
        ("along", ["bytes", "processes", "ranks", "peer", 8]),
        ("direction", ["rises", "falls", ["rises"]]),
        ("ranks processes", [2, 4]),
    )
    for name in names.split()
}


def random_test(chance: random.Random, kind: str) -> dict[str, Any]:
    """Return a test with what it needs, and now and then something else."""
    names = [chance.choice(need.split("|")) for need in forms.NEEDS[kind]]
    names += [name for name in TOLD if chance.random() < 0.1]
    return {"kind": kind, **{name: chance.choice(TOLD[name]) for name in names}}


@pytest.mark.parametrize("kind", forms.NEEDS)
def test_a_test_that_is_not_refused_never_stops_the_report(kind):
    """Whatever it is told: it decides, or says what is missing."""
    chance, taken = random.Random(kind), 0
    while taken < 40:
        test = random_test(chance, kind)
        if list(forms.test_complaints(test, {"a": {}, "b": {}, "c": {}})):
            continue
        taken += 1
        subjects = []
        for name in "abc":
            figures = []
            for of, p, size in product(OF[1:], (1, 2, 4), (8, 16, 32)):
                placement = chance.choice(("packed", "one-per-node"))
                told = {"processes": p, "ranks": p, "placement": placement}
                told |= {"bytes": size} if "bytes" in of else {}
                value = chance.choice((0.0, 5.0, chance.uniform(1, 9)))
                better = every_metric()[of["metric"]].better
                launches = [
                    value * chance.choice((0, 1, 1.1)) for _ in range(chance.choice((1, 9)))
                ]
                figures.append(
                    Measured(of["benchmark"], of["metric"], "", better, value, told, f"{p} {size}",
                             "", of_launches=launches)
                )  # fmt: skip
            subjects.append(Subject(name, name, "here", figures))
        here = Cast(subjects, {one.name: one for one in subjects})
        conclusion = Predicate("p001", "", "", here=forms.criterion_of(test))
        assert all(one.sentence for one in predicates.decide(conclusion, here)), test
