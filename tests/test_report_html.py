import base64
import dataclasses
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from clustergate.core.figures import name_of, reported
from clustergate.core.model import (
    Better,
    Case,
    CaseState,
    ComparedSet,
    Estimate,
    Judgement,
    Reference,
    Sample,
    Verdict,
)
from clustergate.core.notation import number
from clustergate.core.reasons import in_words, registry
from clustergate.core.texts import duration, shortened
from clustergate.judge.history.series import key_of
from clustergate.judge.judging import judge
from clustergate.judge.rules import FIGURE_PART
from clustergate.report import explained, html, plots
from clustergate.report.html import render_html
from clustergate.report.page import explanation
from clustergate.report.summary import compared, next_commands, status_of
from clustergate.report.terminal import render
from tests import builders
from tests.builders import estimate, figure, run

CELLS = {"td", "th"}
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """What a browser would make of a page: its elements, their texts, and what is visible."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.open: list[Any] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "attributes": dict(attributes), "text": ""}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag
        if tag in CELLS:
            self.handle_data(" ")

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag):
        return [element for element in self.elements if element["tag"] == tag]

    def with_id(self, name):
        (found,) = [e for e in self.elements if e["attributes"].get("id") == name]
        return " ".join(found["text"].split())

    def text(self):
        (body,) = self.all("body")
        return " ".join(body["text"].split())


def case(check="ImbMpi1Check", *of, **changes):
    fields = {"conditions": {"ranks": 2, "placement": "packed"}, "command": "mpirun -n 2 a.out"}
    return builders.case(check, *of, **{**fields, **changes})


def captured_case(path):
    record = json.loads(path.read_text())
    samples = [Sample(**{**s, "better": Better(s["better"])}) for s in record["samples"]]
    figures = []
    for sample in reported(samples):
        said = judge(estimate(sample.value), sample.better, sample.unit)
        changes = {"conditions": sample.conditions, "judgement": said}
        figures.append(figure(sample.benchmark, sample.metric, sample.value, **changes))
    return Case(
        check=record["check"],
        stack=record["stack"],
        state=CaseState.NOT_AVAILABLE if record["unavailable"] else CaseState.RAN,
        reasons=(in_words(record["unavailable"]),) if record["unavailable"] else (),
        conditions=record["conditions"],
        figures=tuple(figures),
        command=record["command"],
        notes=tuple(record["notes"]),
    )


@pytest.fixture(scope="module")
def captured():
    """Return the run of three stacks in tests/data/runs/smoke, without references."""
    folder = Path(__file__).resolve().parent / "data" / "runs" / "smoke"
    return run(*[captured_case(path) for path in sorted(folder.glob("*.json"))])


@pytest.fixture(scope="module")
def captured_html(captured):
    return render_html(captured)


@pytest.fixture(scope="module")
def page(captured_html):
    return Page(captured_html)


def below(text):
    """Return a page without the curve of its first screen, which is drawn again below it."""
    return re.sub(r'<section id="curve".*?</section>', "", text, flags=re.DOTALL)


def test_the_first_screen_has_the_curve_of_what_is_wrong():
    def sizes(name, **of):
        return [figure(name, conditions={"bytes": size}, **of) for size in (8, 64)]

    good, bad = sizes("PingPong"), sizes("Exchange", verdict=Verdict.REGRESSION)
    text = render_html(run(case(figures=tuple(good))))
    assert "PingPong" in Page(text).with_id("curve")
    text = render_html(run(case(figures=(*good, *bad))))
    assert "Exchange" in Page(text).with_id("curve")
    assert 'id="curve"' not in render_html(run(case(figures=(figure(conditions={}),))))


def test_every_message_leads_to_its_explanation():
    why = FIGURE_PART(name="PingPong", by=0.1)
    slow = figure(verdict=Verdict.REGRESSION)
    slow = dataclasses.replace(slow, judgement=Judgement(Verdict.REGRESSION, (why,)))
    text = render_html(run(case(figures=(slow,))))
    # On the first screen, below what is wrong, and in the table.
    assert text.count(f'href="reasons.html#{why.code}"') == 3
    assert 'href="glossary.html#regression"' in text


def test_the_pages_that_explain_have_every_code_and_escape_what_they_quote():
    glossary = set(re.findall(r'<tr id="([^"]+)">', explanation("glossary.html")))
    assert {explained.anchor(word) for word in explained.words()} == glossary
    text = explanation("reasons.html")
    assert all(f'<tr id="{code}">' in text for code in registry())
    assert not re.search(
        r"<(?!/?(tr|td|th|table|thead|tbody|div|p|h1|h2|code|em|strong|a|main|header"
        r"|body|html|head|meta|title|style|blockquote)\b|!DOCTYPE|!-- \w+ -->\n\Z)",
        text,
    )
    html = explained.as_html("| word | means |\n|---|---|\n| `a.b` | \\<x> `*` *c* \\| d |")
    assert (
        '<tr id="a.b"><td><code>a.b</code></td><td>&lt;x&gt; <code>*</code> <em>c</em> | d</td>'
        in html
    )


def test_a_captured_run_is_told_in_the_order_an_operator_asks(page):
    sections = [section["attributes"]["id"] for section in page.all("section")]
    told = ["verdict", "machine", "curve", "counts", "curves", "hpcc", "figures"]
    assert sections == told
    verdict = page.with_id("verdict")
    assert verdict.startswith(
        "NOTHING WRONG FOUND No earlier run: nothing to compare with. local, "
    )
    assert "clustergate check: exit status 0" in verdict
    assert "clustergate gate" not in verdict
    absent = "not available IMB with openmpi: imb 2021.7 could not be fetched"
    assert absent in page.with_id("verdict")


def test_every_command_can_be_copied_unchanged(captured, page):
    commands = [element["text"] for element in page.all("pre")]
    assert commands == [c.command for c in captured.cases if c.command]


def test_every_figure_stands_in_a_table(captured, page):
    rows = [row["text"] for row in page.all("tr")]
    for one in captured.cases:
        for each in one.figures:
            size = each.conditions.get("bytes", "")
            wanted = [each.benchmark, str(size), number(each.estimate.value), each.unit]
            assert any(all(word in row for word in wanted) for row in rows)


def test_the_page_asks_for_nothing_from_elsewhere(page):
    linked = [
        value
        for element in page.elements
        for name, value in element["attributes"].items()
        if name in ("href", "src", "srcset", "data", "action", "poster", "background")
    ]
    assert linked
    beside = (*explained.PAGES, *(f"{name}#" for name in explained.PAGES))
    assert all(link.startswith(("#", *beside)) for link in linked)
    styles = [e["text"] for e in page.all("style")]
    styles += [e["attributes"]["style"] for e in page.elements if "style" in e["attributes"]]
    assert not any("@import" in style or re.search(r"url\((?!#)", style) for style in styles)
    assert {"link", "img", "iframe", "object", "base"}.isdisjoint(e["tag"] for e in page.elements)


def test_what_is_linked_to_is_there_once(page):
    ids = [e["attributes"]["id"] for e in page.elements if "id" in e["attributes"]]
    assert len(ids) == len(set(ids))
    links = {e["attributes"]["href"] for e in page.elements if "href" in e["attributes"]}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    # As messages and verdicts to what explains them, on the pages beside this one.
    beside = [link.partition("#") for link in links if not link.startswith("#")]
    assert {"glossary.html"} <= {name for name, _, _ in beside}
    for name, _, anchor in beside:
        assert not anchor or f'id="{anchor}"' in explanation(name)


def test_policy_of_the_page_lets_only_its_script_run(page):
    (script,) = page.all("script")
    policy = next(
        meta["attributes"]["content"]
        for meta in page.all("meta")
        if "http-equiv" in meta["attributes"]
    )
    digest = base64.b64encode(hashlib.sha256(script["text"].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_there_is_a_curve_for_each_stack_that_ran(page):
    captions = [" ".join(e["text"].split()) for e in page.all("figcaption")]
    assert captions.count("PingPong latency_us") == 1
    assert captions.count("PingPong bandwidth_mb_s") == 1
    curves = page.with_id("curves")
    assert "Time over message size, in us; lower is better" in curves
    assert "Bandwidth over message size, in MB/s; higher is better" in curves
    assert "intel-mpi" in curves
    assert "openmpi" not in curves


def test_efficiency_of_hpl_stands_against_its_three_peaks(page):
    told = page.with_id("machine")
    for peak in ("measured FMA peak", "DGEMM", "nominal peak"):
        assert f"HPL of {peak} %" in told
    assert "85.7" in told


def test_efficiency_above_its_peak_no_percentage_on_the_page():
    higher = {"unit": "%", "better": Better.HIGHER, "conditions": {"against": "dgemm"}}
    share = dataclasses.replace(
        figure("HPL", "efficiency_percent", 126.5, **higher), doubt=in_words("DGEMM was slowed")
    )
    told = Page(render_html(run(case("HplCheck", figures=(share,))))).with_id("machine")
    assert "> 100*" in told
    assert "126.5" not in told


def test_of_several_results_of_hpl_the_best_is_shown():
    higher = {"unit": "%", "better": Better.HIGHER, "conditions": {"against": "nominal"}}
    shares = [figure("HPL", "efficiency_percent", value, **higher) for value in (50.0, 66.0, 60.0)]
    told = Page(render_html(run(case("HplCheck", figures=tuple(shares))))).with_id("machine")
    assert "nominal peak % 66 " in told
    assert "50" not in told


def test_what_is_wrong_comes_before_the_counts_with_its_next_step():
    slow = figure(
        verdict=Verdict.REGRESSION,
        judgement=Judgement(Verdict.REGRESSION, (in_words("30 % above"),)),
    )
    page = Page(render_html(run(case(figures=(figure(), slow)))))
    wrong = page.with_id("wrong")
    assert wrong.endswith(
        "regression IMB with mpich, 2 ranks, packed PingPong 8 bytes latency_us: "
        "30 % above Next: the command to repeat it by hand."
    )
    assert page.text().index("What is wrong") < page.text().index("Verdicts")
    assert "2 results measured: 1 pass, 1 regression" in page.with_id("verdict")
    assert "exit status 1" in page.with_id("verdict")


def test_a_regression_does_not_hide_what_did_not_run():
    slow = figure(verdict=Verdict.REGRESSION)
    broken = case(
        stack="openmpi", state=CaseState.FAILED, reasons=(in_words("2 of 4 ranks wrote no proof"),)
    )
    page = Page(render_html(run(case(figures=(slow,)), broken)))
    verdict = page.with_id("verdict")
    assert verdict.startswith("FAILED 1 of 2 benchmarks. ")
    assert "1 of 2 benchmarks ran" in verdict
    assert "regression IMB with mpich" in verdict
    assert "invalid IMB with openmpi" in verdict
    assert "failed: 2 of 4 ranks wrote no proof" in page.with_id("wrong")


def test_the_worst_comes_first():
    invalid = case(stack="a", state=CaseState.FAILED, reasons=(in_words("no proof"),))
    slow = case(stack="b", figures=(figure(verdict=Verdict.REGRESSION),))
    wrong = Page(render_html(run(invalid, slow))).with_id("wrong")
    assert wrong.index("with b") < wrong.index("with a")


def test_the_same_complaint_is_told_once():
    lost = case(
        state=CaseState.MISSING,
        reasons=(in_words("it should have run"),),
        command="",
        conditions={},
    )
    page = Page(render_html(run(lost, lost, lost)))
    assert page.with_id("wrong").count("it should have run") == 1
    assert "IMB (3 times) with mpich" in page.with_id("wrong")
    assert "0 of 3 benchmarks ran" in page.with_id("verdict")
    assert "reframe.out in the folder of run 20261121T065003Z-1" in page.with_id("wrong")


def test_many_troubles_fold_and_none_is_lost():
    slow = [figure(f"Bench{n}", verdict=Verdict.REGRESSION) for n in range(9)]
    cases = [case(f"Check{n}", figures=tuple(slow)) for n in range(20)]
    wrong = Page(render_html(run(*cases))).with_id("wrong")
    assert "5 more figures of this case" in wrong
    assert "8 more" in wrong
    assert all(wrong.count(f"Bench{n} 8 bytes latency_us") == 20 for n in range(9))


@pytest.mark.parametrize("verdict", Verdict)
def test_a_page_says_its_verdict_as_the_terminal_does(verdict):
    one = run(case(figures=(figure(verdict=verdict),)))
    page = Page(render_html(one))
    first = render(one, width=200).splitlines()[2]
    answer = re.sub(r"(?<=[A-Z])[:.]", "", first[3:], count=1)
    assert page.with_id("verdict").startswith(answer)
    assert f"1 result measured: 1 {verdict.value}" in page.with_id("verdict")
    assert (first[1] == "✓") == (
        verdict in (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.NO_REFERENCE)
    )
    assert first[1] == "✓" or status_of(one) or verdict is Verdict.INCONCLUSIVE


def test_an_empty_run_is_no_success():
    page = Page(render_html(run()))
    verdict = page.with_id("verdict")
    assert verdict.startswith("NOTHING MEASURED No benchmark of this run has a result. local")
    assert "nothing measured" in page.with_id("verdict")
    assert "exit status 2" in verdict
    assert "no cases" in page.with_id("counts")


def test_a_run_in_which_nothing_is_available_is_no_success():
    absent = case(
        state=CaseState.NOT_AVAILABLE, reasons=(in_words("no source"),), conditions={}, command=""
    )
    page = Page(render_html(run(absent, dataclasses.replace(absent, stack="openmpi"))))
    said = "NOTHING MEASURED No benchmark of this run has a result. "
    assert page.with_id("verdict").startswith(said)
    assert "nothing measured" in page.with_id("verdict")
    assert "IMB with mpich, openmpi: no source" in page.with_id("verdict")


def test_a_figure_without_a_value_says_none_and_draws_nothing():
    sizes = [figure(conditions={"bytes": size}) for size in (8, 16)]
    lost = figure(value=None, metric="", verdict=Verdict.INVALID, conditions={"bytes": 32})
    page = Page(below(render_html(run(case(figures=(*sizes, lost))))))
    (row,) = [tr["text"].split() for tr in page.all("tr") if "none" in tr["text"].split()]
    assert row[:4] == ["PingPong", "32", "none", "us"]
    assert len(page.all("figcaption")) == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 0.0, -1.0, 1e307])
def test_a_value_that_no_axis_can_show_is_left_out_of_the_curve(value):
    odd = figure(value=value, conditions={"bytes": 32})
    figures = [figure(conditions={"bytes": size}) for size in (8, 16)]
    page = Page(render_html(run(case(figures=(*figures, odd)))))
    curve = next(e for e in page.all("svg") if e["attributes"].get("aria-label"))
    assert "32" not in curve["text"].split()
    assert any(number(value) in row["text"] for row in page.all("tr"))


def test_in_the_gate_s_mode_the_page_says_what_the_gate_would(captured):
    verdict = Page(render_html(dataclasses.replace(captured, mode="maintenance")))
    assert "clustergate gate: exit status 2" in verdict.with_id("verdict")


def test_a_doubtful_value_is_hollow_and_never_the_best():
    higher: dict[str, Any] = {"unit": "GB/s", "better": Better.HIGHER, "conditions": {}}
    triad = ("StarSTREAM_Triad", "StarSTREAM_Triad")
    disturbed = in_words("it was disturbed")
    cases = (
        case("HpccCheck", "a", figures=(figure(*triad, 10.0, doubt=disturbed, **higher),)),
        case("HpccCheck", "b", figures=(figure(*triad, 5.0, **higher),)),
        case("HpccCheck", "c", figures=(figure(*triad, 4.0, **higher),)),
    )
    page = Page(render_html(run(*cases)))
    bars = [e["attributes"].get("class", "").split() for e in page.all("span")]
    assert ["hollow" in one for one in bars if "bar" in one] == [True, False, False]
    assert [e["text"] for e in page.all("strong")] == ["Next:", "5.000"]


def test_odd_values_do_not_stop_the_bars():
    figures = [
        figure(f"F{n}", f"F{n}", value, unit="GB/s", better=better, conditions={})
        for better in (Better.HIGHER, Better.LOWER)
        for n, value in enumerate((0.0, -1.0, float("nan"), float("inf"), 2.0))
    ]
    page = Page(render_html(run(case("HpccCheck", figures=tuple(figures)))))
    assert "-1.000" in page.with_id("hpcc")


def test_bars_are_as_long_as_values_are_large_and_the_best_is_bold():
    def bandwidth_and_latency(stack, bandwidth, latency):
        higher = {"unit": "GB/s", "better": Better.HIGHER, "conditions": {}}
        return case(
            "HpccCheck",
            stack,
            figures=(
                figure("StarSTREAM_Triad", "StarSTREAM_Triad", bandwidth, **higher),
                figure("PingPongLatency", "PingPongLatency", latency, conditions={}),
            ),
        )

    cases = (bandwidth_and_latency("a", 10.0, 1.0), bandwidth_and_latency("b", 5.0, 4.0))
    page = Page(render_html(run(*cases)))
    parts = [
        float(e["attributes"]["style"].removeprefix("--part: "))
        for e in page.all("span")
        if e["attributes"].get("class", "").startswith("bar ")
    ]
    assert parts == [1.0, 0.5, 0.25, 1.0]
    assert [e["text"] for e in page.all("strong")] == ["10.00", "1.000"]


def test_compared_set_is_a_row_with_interval_and_bound():
    slow = ComparedSet("benchmark", "HPL", 2, 0.10, 0.08, 0.12, 0.05, is_slower=True)
    kind = ComparedSet("kind", "latency", 90, -0.01, -0.03, 0.01, 0.04, is_slower=False)
    text = render_html(run(case(figures=(figure(),)), sets=(slow, kind)))
    rows = re.findall(r"<tr><td>(benchmark|kind)</td>(.*?)</tr>", text)
    (level, of_slow), (_, of_kind) = rows
    assert level == "benchmark"
    assert re.findall(r"[+-][0-9.]+ %", of_slow) == ["+10.5 %", "+8.3 %", "+12.7 %", "+5.1 %"]
    assert "slower" in of_slow
    assert "slower" not in of_kind
    assert "Against the baseline" not in render_html(run(case(figures=(figure(),))))


def test_state_of_the_node_shows_what_is_absent():
    machine = {
        "fingerprint": {
            "hardware": {"board": None, "vector_instructions": ["avx2", "fma"], "smt": True},
            "network": {},
        },
        "peaks": {"fma_peak_gflops": 276.1, "modules": []},
    }
    page = Page(render_html(run(machine=machine)))
    told = page.with_id("node")
    for line in ("board absent", "vector_instructions avx2 fma", "smt yes", "network none"):
        assert line in told
    assert told.endswith("peaks fma_peak_gflops 276.1 modules none")


def test_notes_stand_at_the_end():
    page = Page(render_html(run(notes=("OPENBLAS_CORETYPE=Haswell was removed",))))
    assert page.with_id("notes").endswith("OPENBLAS_CORETYPE=Haswell was removed")
    assert page.all("section")[-1]["attributes"]["id"] == "notes"


# --- hostile texts ----------------------------------------------------------------------------

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</pre></details></svg>]]>--><style>",
    "{{ 7 * 7 }}{% raw %}&lt;&amp;",
    "$x$ \\frac{1}{2} $\\alpha$",
    "größe 大きさ 🙂",
)


def everywhere(text):
    """Return a run that has a text wherever a run can have one."""
    named = {"benchmark": text, "metric": text, "unit": text}
    figures = [
        figure(
            **named,
            value=float(size),
            conditions={"bytes": size, text: text},
            judgement=Judgement(Verdict.REGRESSION, (in_words(text),)),
        )
        for size in (8, 16, 32)
    ]
    bars = [
        figure(**named, value=1.0, conditions={}),
        figure("HPL", "performance_gflops", 90.0, unit=text, better=Better.HIGHER),
        figure("HPL", "efficiency_percent", 50.0, unit="%", conditions={"against": text}),
    ]
    conditions = {"ranks": 2, "placement": text, "settings": text, text: text}
    shared = {"stack": text, "conditions": conditions, "command": text, "notes": (text,)}
    return run(
        case(text, **shared, figures=(*figures, *bars)),
        case("HpccCheck", **shared, figures=tuple(bars)),
        case("HplCheck", **shared, figures=tuple(bars)),
        case("Failed", **shared, state=CaseState.FAILED, reasons=(in_words(text),)),
        case("Absent", **shared, state=CaseState.NOT_AVAILABLE, reasons=(in_words(text),)),
        run_id=text,
        system=text,
        mode=text,
        started=text,
        notes=(text,),
        machine={text: {text: [text, None], "none": None}},
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_markup(text):
    tame = Page(render_html(everywhere("a" * len(text))))
    page = Page(render_html(everywhere(text)))
    assert [e["tag"] for e in page.elements] == [e["tag"] for e in tame.elements]
    assert [set(e["attributes"]) for e in page.elements] == [
        set(e["attributes"]) for e in tame.elements
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_every_text_is_shown_as_it_is(text):
    page = Page(render_html(everywhere(text)))
    assert {e["text"] for e in page.all("pre")} == {text}
    for section in (
        "wrong",
        "machine",
        "counts",
        "curves",
        "hpcc",
        "figures",
        "node",
    ):
        (found,) = [e for e in page.elements if e["attributes"].get("id") == section]
        assert text in found["text"]


def test_mathematics_is_not_set_in_plots():
    page = Page(render_html(everywhere("a$x_1$b")))
    labels = [e["text"] for e in page.all("text")]
    assert "a$x_1$b" in labels


def test_control_characters_are_shown_and_not_sent():
    told = "\x00\x1b[31mred\x07\r\x7f\x85\u202eevil\ud800\ufffe"
    page = render_html(everywhere(told))
    page.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert "␀␛[31mred␇␍␡�\ufffdevil\ufffd\ufffd" in page


def test_long_texts_leave_the_page_usable():
    page = render_html(everywhere("x" * 10_000))
    assert len(page) < 3_000_000
    parsed = Page(page)
    assert max(len(e["text"]) for e in parsed.all("text")) < 100
    assert "all 10000 characters" in parsed.with_id("wrong")


def test_the_same_run_gives_the_same_page(captured, captured_html):
    assert render_html(captured) == captured_html


def test_the_page_does_not_depend_on_the_order_of_sets():
    program = (
        "import sys, hashlib\n"
        "from clustergate.core.model import *\n"
        "from clustergate.report.html import render_html\n"
        "judgement = Judgement(Verdict.PASS, ())\n"
        "def figure(stack, mode, size):\n"
        "    return Figure('Put', 'latency_us', 'us', Better.LOWER, {'bytes': size, 'mode': mode,"
        " 'a': 1, 'b': mode}, Estimate(size, None, None, 0, 1), judgement)\n"
        "cases = tuple(Case('Check', stack, CaseState.RAN, figures=tuple(figure(stack, mode, size)"
        " for mode in ('AGGREGATE', 'NON-AGGREGATE') for size in (1, 2)))"
        " for stack in ('a', 'b', 'c'))\n"
        "page = render_html(Run('1', 's', 'm', '2026', 1.0, cases))\n"
        "print(hashlib.sha256(page.encode()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_large_run_stays_a_small_page():
    def figures(factor):
        return tuple(
            figure(f"Bench{bench}", metric, factor * (1 + size), conditions={"bytes": size})
            for bench in range(10)
            for metric in ("latency_us", "t_avg_us")
            for size in (0, *(1 << power for power in range(24)))
        )

    page = render_html(run(*[case(stack=f"stack{n}", figures=figures(n + 1)) for n in range(3)]))
    assert len(page) < 3_000_000
    assert len(Page(below(page)).all("figcaption")) == 20


def test_curves_beyond_a_page_are_counted(monkeypatch):
    monkeypatch.setattr(html, "PLOTS_AT_MOST", 3)
    figures = tuple(
        figure(f"Bench{n}", conditions={"bytes": size}) for n in range(2) for size in (1, 2)
    )
    cases = [
        case(figures=figures, conditions={"ranks": ranks, "placement": "packed"})
        for ranks in (2, 64, 4)
    ]
    page = Page(below(render_html(run(*cases))))
    curves = page.with_id("curves")
    assert len(page.all("figcaption")) == 3
    assert "1 more curves are not drawn" in curves
    assert "2 more curves are not drawn" in curves
    order = [curves.index(f"ImbMpi1Check: {ranks} ranks") for ranks in (64, 4, 2)]
    assert order == sorted(order)


def test_cases_of_different_layouts_are_not_compared():
    def sizes(factor):
        return tuple(figure(value=factor, conditions={"bytes": size}) for size in (1, 2))

    one = case(figures=sizes(1.0), conditions={"ranks": 2, "settings": "nb=256"})
    two = case(figures=sizes(2.0), conditions={"ranks": 2, "settings": ""}, stack="openmpi")
    page = Page(below(render_html(run(one, two))))
    assert len(page.all("figcaption")) == 2


def test_panels_are_told_apart_by_what_differs():
    figures = tuple(
        figure("Put", conditions={"bytes": size, "mode": mode, "processes": 2})
        for mode in ("AGGREGATE", "NON-AGGREGATE")
        for size in (1, 2)
    )
    page = Page(below(render_html(run(case("ImbRmaCheck", figures=figures)))))
    captions = [" ".join(e["text"].split()) for e in page.all("figcaption")]
    assert captions == ["Put latency_us, mode AGGREGATE", "Put latency_us, mode NON-AGGREGATE"]


def test_intervals_are_shown_where_there_are_some():
    estimate = Estimate(1.0, 0.9, 1.1, 0.95, 5)
    page = Page(render_html(run(case(figures=(figure(estimate=estimate), figure())))))
    assert "0.9000 to 1.100 95%, launches: 5" in page.with_id("figures")
    page = Page(render_html(run(case(figures=(figure(),)))))
    assert "interval" not in page.with_id("figures")


def test_a_judged_reference_is_quoted():
    reference = Reference(1.0, None, 0.1, "us", "measured 2026-11-02")
    estimate = Estimate(1.5, None, None, 0.0, 1)
    judged = figure(judgement=judge(estimate, Better.LOWER, "us", reference))
    page = Page(render_html(run(case(figures=(judged,)))))
    assert "50.0 % above the reference 1.000 (measured 2026-11-02)" in page.with_id("wrong")


# --- the first screen ---------------------------------------------------------------------------


def test_first_screen_sentence_not_repeated_below():
    """What stands whole on the first screen is not repeated below and what was cut is."""
    absent = [
        case(f"Check{n}", state=CaseState.NOT_AVAILABLE, reasons=(in_words(f"without {n}"),))
        for n in range(7)
    ]
    page = Page(render_html(run(case(figures=(figure(),)), *absent)))
    assert [f"Check{n} " in page.with_id("causes") for n in range(7)] == [False] * 5 + [True] * 2
    page = Page(render_html(run(case(figures=(figure(),)), *absent[:5])))
    assert "What else stands behind" not in page.text()


def test_first_screen_has_machine_and_stacks():
    """The first screen has the machine and the stacks with what they say of themselves."""
    hardware = {"processor": "AMD EPYC 9654", "cores": 192, "memory_total_gib": 755.2}
    machine = {"fingerprint": {"hardware": hardware, "kernel": {"release": "6.1.0"}}}
    cases = [
        case(library="MPICH 5.0.2", figures=(figure(),)),
        case(stack="openmpi", state=CaseState.MISSING, reasons=(in_words("it is lost"),)),
    ]
    told = Page(render_html(run(*cases, machine=machine))).with_id("machine")
    assert told.startswith("AMD EPYC 9654, 192 cores, 755 GiB, kernel 6.1.0")
    assert "mpich MPICH 5.0.2" in told.replace("mpichMPICH", "mpich MPICH")
    assert "openmpinot launched" in told


def test_headline_figure_beside_reference_and_last_run():
    estimate = Estimate(1.5, None, None, 0.0, 1)
    reference = Reference(1.0, None, 0.1, "us", "measured 2026-11-02")
    judged = figure(judgement=judge(estimate, Better.LOWER, "us", reference))
    here = case(
        figures=(judged,),
        partition="local:node",
        conditions={"ranks": 2, "placement": "packed", "mode": "smoke"},
    )
    before = {(key_of(here), name_of(judged)): 2.0}
    told = Page(render_html(run(here, before=before))).with_id("machine")
    assert "PingPong 8 B us 1.550 % worse" in told
    assert told.index("50 % worse") < told.index("25 % better")
    assert "no reference" not in told
    assert "No earlier run" not in told
    assert "No earlier run" in Page(render_html(run(here))).with_id("machine")


@pytest.mark.parametrize(
    ("value", "other", "better", "told"),
    [
        (90.0, 100.0, Better.HIGHER, "10 % worse"),
        (110.0, 100.0, Better.HIGHER, "10 % better"),
        (110.0, 100.0, Better.LOWER, "10 % worse"),
        (104.7, 100.0, Better.LOWER, "4.7 % worse"),
        (100.04, 100.0, Better.LOWER, "equal"),
        (290.0, 100.0, Better.LOWER, "2.9 x worse"),
        (30.0, 100.0, Better.HIGHER, "3.3 x worse"),
        (1200.0, 100.0, Better.HIGHER, "12 x better"),
        (0.0, 100.0, Better.HIGHER, "100 % worse"),
        (110.0, 100.0, Better.NEITHER, "+10.0 %"),
    ],
)
def test_a_change_says_which_way_it_goes(value, other, better, told):
    assert compared(value, other, better) == told


def test_at_most_five_causes_on_the_first_screen():
    cases = [
        case(f"Check{n}", figures=(figure(verdict=Verdict.REGRESSION),), command="")
        for n in range(9)
    ]
    page = Page(render_html(run(*cases)))
    first = page.with_id("verdict")
    assert [f"Check{n} with" in first for n in range(9)] == [True] * 5 + [False] * 4
    assert "4 more" in first
    assert all(f"Check{n} with" in page.with_id("wrong") for n in range(9))


@pytest.mark.parametrize(
    ("finished", "command"),
    [
        (case(figures=(figure(verdict=Verdict.REGRESSION),)), "history --check ImbMpi1Check"),
        (
            case(state=CaseState.FAILED, reasons=(in_words("why"),)),
            "check --mode smoke --check Imb",
        ),
        (case(state=CaseState.MISSING, reasons=(in_words("why"),)), "check --resume 20261121"),
        (case(figures=(figure(verdict=Verdict.INCONCLUSIVE),)), "check --mode smoke"),
        (case(figures=(figure(verdict=Verdict.NO_REFERENCE),)), "baseline"),
        (
            case(
                figures=(
                    figure(verdict=Verdict.NO_REFERENCE),
                    *[figure(verdict=Verdict.NO_REFERENCE, doubt=in_words("noise"))] * 2,
                )
            ),
            "check --mode smoke",
        ),
        (
            case(
                figures=(
                    *[figure(verdict=Verdict.NO_REFERENCE)] * 2,
                    figure(verdict=Verdict.NO_REFERENCE, doubt=in_words("noise")),
                )
            ),
            "baseline",
        ),
    ],
)
def test_the_first_screen_says_what_the_terminal_says_next(finished, command):
    (_, step), *_ = next_commands([finished], run().run_id, "smoke")
    page = Page(render_html(run(finished)))
    assert step.replace("`", "") in page.with_id("verdict")
    assert any(one["text"].startswith(f"clustergate {command}") for one in page.all("code"))


def test_after_a_pass_nothing_is_left_to_do():
    assert "Next:" not in Page(render_html(run(case(figures=(figure(),))))).with_id("verdict")


# --- one way to say a thing ---------------------------------------------------------------------


def test_a_sentence_that_figures_share_stands_once():
    figures = [figure(conditions={"bytes": size}) for size in range(1, 30)]
    told = Page(render_html(run(case(figures=tuple(figures))))).with_id("figures")
    assert told.count("because of that") == 1
    assert "all figures: because of that" in told


def test_origin_of_references_stands_once():
    reference = Reference(1.0, None, 0.1, "us", "measured 2026-11-02")
    figures = [
        figure(
            value=1.04,
            conditions={"bytes": size},
            judgement=judge(Estimate(1.04, None, None, 0.0, 1), Better.LOWER, "us", reference),
        )
        for size in range(1, 30)
    ]
    told = Page(render_html(run(case(figures=tuple(figures))))).with_id("figures")
    assert told.count("references: measured 2026-11-02") == told.count("2026-11-02") == 1
    assert told.count("1.040 us 1.000 4.0 % worse pass") == 29


def test_what_repeats_another_figure_is_drawn_once():
    higher = {"better": Better.HIGHER, "conditions": {}}
    figures = (
        figure("HPL", "performance_gflops", 85.0, unit="Gflop/s", **higher),
        figure("HPL_Tflops", "HPL_Tflops", 0.085, unit="Tflop/s", **higher),
        figure("HPL_time", "HPL_time", 2.0, unit="s", conditions={}),
    )
    told = Page(render_html(run(case("HpccCheck", figures=figures)))).with_id("hpcc")
    assert "HPL_Tflops" in told
    assert "performance_gflops" not in told
    assert "HPL_time" not in told


def test_plots_of_one_unit_share_their_axes():
    def sizes(name, factor, largest):
        return [
            figure(name, value=factor * size, conditions={"bytes": size})
            for size in (1, 8, largest)
        ]

    figures = (*sizes("PingPong", 1.0, 64), *sizes("Allreduce", 50.0, 1024))
    page = Page(below(render_html(run(case(figures=figures)))))
    grids = [e["attributes"]["d"] for e in page.all("path") if e["attributes"]["class"] == "grid"]
    assert len(grids) == 2
    assert grids[0] == grids[1]


def test_untrusted_point_hollow_and_marked():
    doubtful = figure(conditions={"bytes": 16}, doubt=in_words("it was disturbed"))
    text = below(render_html(run(case(figures=(figure(), doubtful)))))
    paths = [e["attributes"]["class"] for e in Page(text).all("path")]
    assert paths.count("mark hollow") == 1
    titles = re.findall(r'class="at"><title>([^<]*)', text)
    assert [title.endswith("*") for title in titles] == [False, True]


def test_a_mouse_reads_the_values_of_all_lines_at_a_size():
    points = [plots.Point(1024, 2.5), plots.Point(4096, 12345.6)]
    first, second = plots.styles(2)
    lines = [
        plots.Curve("<a>", first, points),
        plots.Curve("b", second, points[:1]),
        plots.Curve("1", plots.LEVEL, points),
    ]
    axes = plots.axes_of(lines, unit="us", logarithmic=True)
    drawn = plots.curves(lines, axes, description="")
    assert re.findall("<title>([^<]*)</title>", drawn) == [
        "us at 1 Ki (message size in bytes)\n&lt;a&gt;: 2.5\nb: 2.5",
        "us at 4 Ki (message size in bytes)\n&lt;a&gt;: 12.35 k",
    ]
    strips = re.findall(r'<rect x="([\d.]+)" y="18" width="([\d.]+)"', drawn)
    ends = [(float(x), float(x) + float(width)) for x, width in strips]
    assert ends[0][1] == pytest.approx(ends[1][0], abs=0.1)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.83, 1.21, [0.9, 1.0, 1.1, 1.2]),
        (0.77, 1.3, [0.8, 0.9, 1.0, 1.1, 1.2, 1.3]),
        (0.4, 2.6, [0.5, 1.0, 2.0]),
        (0.03, 3000.0, [0.1, 1.0, 10.0, 100.0, 1000.0]),
    ],
)
def test_ratios_have_ticks_at_round_numbers(low, high, ticks):
    points = [plots.Point(1, low * 1.15), plots.Point(2, high / 1.15)]
    line = plots.Curve("B/A", plots.styles(1)[0], points)
    axes = plots.axes_of([line], unit="B/A", logarithmic=True)
    assert list(axes.value_ticks) == pytest.approx(ticks)


def test_an_axis_of_what_was_measured_has_round_numbers():
    line = plots.Curve("HPL", plots.styles(1)[0], [plots.Point(x, 1.0) for x in (7.395, 25.2, 124)])
    axes = plots.axes_of([line], unit="GB/s", logarithmic=False, along="HPL [Tflop/s]")
    assert [label for _, label in axes.size_ticks] == ["10", "20", "50", "100"]


# --- texts and plots --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0"),
        (1.0, "1.000"),
        (0.99999, "1.000"),
        (123.456, "123.5"),
        (12345.6, "12346"),
        (0.00123456, "0.001235"),
        (1e-7, "1.000e-07"),
        (-3.25, "-3.250"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_have_four_digits_and_rarely_an_exponent(value, told):
    assert number(value) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.4, "0 s"), (69.2, "1 min 9 s"), (59.9, "1 min 0 s"), (7260, "2 h 1 min")],
)
def test_durations(seconds, told):
    assert duration(seconds) == told


def test_a_shortened_text_keeps_both_ends():
    assert shortened("openmpi-5.0.11-gcc", 17) == "openmpi-…0.11-gcc"
    assert len(shortened("x" * 40, 17)) == 17
    assert shortened("mpich", 17) == "mpich"


def test_stacks_differ_in_colour_marker_and_dashes():
    seven = plots.styles(7)
    assert {style.colour for style in seven} == set(range(plots.COLOURS))
    assert len({(s.marker, s.dashes) for s in plots.styles(20)}) == 20
    assert len(set(plots.styles(40))) == 40


def test_a_band_does_not_go_over_a_point_without_an_interval():
    points = [plots.Point(8**k, 2.0, 1.5, 2.5) for k in range(5)]
    points[2] = plots.Point(64, 9.0)
    line = plots.Curve("B/A", plots.styles(1)[0], points, band=True)
    axes = plots.axes_of([line], unit="us", logarithmic=True)
    (path,) = re.findall(r'class="band" d="([^"]*)"', plots.curves([line], axes, description=""))
    assert path.count("M") == 2
    assert path.count("L") == 6


def test_a_setting_that_is_a_list_is_written_as_it_is_typed():
    changed = {"ranks": 2, "settings": "benchmarks=['PingPong', 'Allreduce'],n=1"}
    told = Page(render_html(run(case(conditions=changed)))).text()
    assert "2 ranks, benchmarks=PingPong,Allreduce,n=1" in told
    assert "'PingPong'" not in told
