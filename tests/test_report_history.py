import dataclasses
import datetime
import shutil
from xml.etree import ElementTree

import pytest

from clustergate.core.model import Better, Case, CaseState, Run
from clustergate.core.paths import checkout
from clustergate.judge.history.series import CaseKey
from clustergate.judge.history.trends import Moment, Shift, Trend
from clustergate.report import console
from clustergate.report.html import render_html
from clustergate.report.trends import History, history_of

START = datetime.datetime(2026, 5, 1, 8, tzinfo=datetime.timezone.utc)
RUN = Run("20261121T065003Z-1", "alpha", "smoke", "2026-11-21T06:50:03+00:00", 9.0, ())


def moment(number, level):
    started = START + datetime.timedelta(days=number)
    return Moment(f"run{number}", started, level, None, "b1", ("n1",), (0.21, 812.0))


def trend(stack="mpich", levels=(0.0, 0.01, 0.08, 0.07), shifted_at=2):
    moments = tuple(moment(i, level) for i, level in enumerate(levels))
    shifts: tuple[Shift, ...] = ()
    if shifted_at:
        before, since = moments[shifted_at - 1], moments[shifted_at]
        shifts = (Shift(since, before, 0.07, 0.05, 0.09, ("n1",), ("n1",), ("b1",), ("b1",)),)
    return Trend(
        case=CaseKey("ImbMpi1Check", "alpha:node", stack, "2-ranks-packed", "smoke"),
        benchmark="PingPong",
        metric="latency_us",
        unit="us",
        better=Better.LOWER,
        figures=("PingPong.2p.8B.latency_us", "PingPong.2p.64B.latency_us"),
        nodes=(),
        moments=moments,
        shifts=shifts,
    )


def section(page):
    start = page.index('<section id="history">')
    return page[start : page.index("</section>", start) + len("</section>")]


def test_without_earlier_runs_there_is_no_history():
    assert 'id="history"' not in render_html(RUN)
    assert render_html(RUN, History()) == render_html(RUN)


def test_a_trend_is_a_line_with_its_numbers_below_its_case():
    found = section(render_html(RUN, History([trend(), trend("openmpi")], ["it became slower"])))
    root = ElementTree.fromstring(found.replace(" open>", ">"))
    assert ["".join(summary.itertext()) for summary in root.iter("summary")] == [
        f"ImbMpi1Check with {stack} (alpha:node, 2-ranks-packed, smoke)"
        for stack in ("mpich", "openmpi")
    ]
    assert [(item.text or "").strip() for item in root.iter("li")] == ["it became slower"]
    row = next(root.iter("tbody"))[0]
    assert row[0].text == "PingPong latency_us"
    assert [cell.text for cell in row[2:]] == [
        *("2", "4", "4.1 %", "7.3 % slower"),
        "0.2100 … 812.0 us",
    ]
    assert row[1][0].get("aria-label") == "PingPong latency_us over 4 runs, higher is faster"


def test_a_change_is_a_bar_in_the_line():
    def strokes(shifted_at):
        return section(render_html(RUN, History([trend(shifted_at=shifted_at)]))).count('"s1"')

    assert (strokes(None), strokes(2)) == (0, 1)


def test_a_page_has_so_many_lines_at_most():
    found = section(render_html(RUN, History([trend(f"stack{i:03}") for i in range(100)])))
    assert found.count("<svg") == 60
    assert "40 more trends are not drawn" in found


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "\x1b[31m"])
def test_what_comes_from_a_host_or_a_setting_is_text(text):
    page = render_html(RUN, History([trend(text)], [text]))
    assert text not in page


def test_what_cannot_be_shown_is_said():
    found = section(render_html(RUN, History(changes=["earlier runs are not shown: damaged"])))
    assert "earlier runs are not shown: damaged" in found
    assert "<table" not in found


def test_a_run_of_one_check_shows_no_history_of_others(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    for day in (20, 21):
        folder = tmp_path / "results" / "runs" / f"202611{day}T080000Z-r1"
        shutil.copytree(checkout() / "tests" / "data" / "runs" / "smoke", folder / "cases")
    cases = (Case("HplCheck", "mpich", CaseState.RAN),)
    history, before = history_of(dataclasses.replace(RUN, system="local", cases=cases))
    assert {(one.case.check, one.case.stack) for one in history.trends} == {("HplCheck", "mpich")}
    assert {str(case).partition(" (")[0] for case, _ in before} == {"HplCheck with mpich"}


def test_long_name_breaks_between_its_parts():
    """A figure was found under half of its name: `…GBytes.1threa` and `ds`."""
    name, value = "MaxPingPongBandwidth_GBytes.1threads", "0.3381 GB/s"
    for width in range(20, 60):
        out = console.new_console(width)
        with out.capture() as captured:
            out.print(console.table(("figure", "value"), [(name, value)], [1]))
        first = [line.split()[0] for line in captured.get().splitlines()[2:] if line[0] != " "]
        assert "".join(first) == name
        if width >= 40:
            assert {part.strip("._") for part in first} <= {
                *("MaxPingPongBandwidth", "GBytes", "1threads"),
                *("MaxPingPongBandwidth_GBytes", "GBytes.1threads", name),
            }
            assert "0.3381" in captured.get().split()
