import re
from collections import Counter

import pytest

from clustergate.model import Better
from evaluations.facts import (
    CONTRADICTED,
    DOUBTFUL,
    PAPERS,
    STANDS,
    FactsError,
    UnknownPaper,
    folder,
    load_paper,
    load_papers,
    parse_paper,
)

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
