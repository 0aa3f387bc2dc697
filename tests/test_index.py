"""The index of all runs, `clustergate open --all`."""

import datetime
import math
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from clustergate.cli import main
from clustergate.core import store
from clustergate.core.model import Verdict
from clustergate.judge.history.by_system import (
    FigureSaid,
    Line,
    LineKey,
    Overview,
    Stands,
    levels_of,
    overview,
)
from clustergate.judge.history.listing import StoredRun
from clustergate.judge.history.series import collect
from clustergate.judge.history.trends import trends
from clustergate.report import index, page
from clustergate.report.publishing import write_explanations
from clustergate.stacks.golden.builds import Golden
from tests.test_history import pings
from tests.test_report_html import Page

WHEN = datetime.datetime(2026, 5, 3, 14, 5, tzinfo=datetime.timezone.utc)


def stored(run, verdict, kind="check", **more):
    of = {"system": "alpha", "mode": "smoke", "by": "eva", "size_bytes": 1, **more}
    return StoredRun(run, WHEN, kind, verdict=verdict, **of)


NO_SYSTEMS = Overview((), (), ())


def page_of(runs, accepted=(), found=()):
    return index.render(runs, found, accepted, Path("/home"), NO_SYSTEMS)


def test_runs_are_listed_with_their_verdicts_and_pages():
    runs = [
        index.Listed(stored("r3", "OPEN", "gate"), "r3/gate.html"),
        index.Listed(stored("r2", "regression"), "r2/report.html"),
        index.Listed(stored("r1", "unfinished", by="<b>"), ""),
    ]
    text = page_of(runs)
    rows = [row["text"].split() for row in Page(text).all("tr")][1:]
    assert [row[0] for row in rows] == ["r3", "r2", "r1"]
    assert rows[0][1:] == ["OPEN", "2026-05-03", "14:05", "gate", "alpha", "smoke", "eva"]
    assert re.findall(r'href="(r\d[^"]*)"', text) == ["r3/gate.html", "r2/report.html"]
    assert [one.look for one in runs] == ["pass", "regression", "inconclusive"]
    assert "<b>" not in text


def test_it_has_the_trends_of_headlines_and_who_accepted_what():
    golden = Golden(
        "mpich", "2026-05-01T08:00:00+0000", "eva", "1", "after the update", "", 1, True
    )
    told = [
        *index.pinned([golden]),
        *index.accepted("alpha", [("jo 2026-05-02", "accepted as <x>")]),
    ]
    text = page_of([], told, trends(collect(pings(count=6))))
    told = Page(text).with_id("accepted")
    assert "golden build of mpich eva 2026-05-01 after the update" in told
    assert "baseline of alpha jo 2026-05-02 accepted as <x>" in told
    assert "PingPong latency_us" in Page(text).with_id("history")


def test_runs_share_a_copy_of_what_explains_their_messages(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    shared, elsewhere = store.runs_folder() / "reasons.html", tmp_path / "elsewhere"
    folders = (store.runs_folder() / name for name in "abcd")
    first, second, third, fourth = (folder / "reasons.html" for folder in folders)
    write_explanations(first.parent)
    assert first.samefile(shared)
    text = shared.read_text()
    # Of another version: whoever has it keeps it.
    store.write_text(shared, "older")
    write_explanations(second.parent)
    write_explanations(first.parent)
    assert second.samefile(shared)
    assert not first.samefile(shared)
    assert first.read_text() == second.read_text() == text
    # Of this version: it is not rendered to know that.
    with monkeypatch.context() as patched:
        patched.delattr(page, "explanation")
        write_explanations(fourth.parent)
    assert fourth.samefile(shared)
    # A report that is moved takes it along.
    shutil.move(first.parent, elsewhere)
    shutil.rmtree(store.runs_folder())
    assert (elsewhere / "reasons.html").read_text() == text

    def not_here(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", not_here)
    write_explanations(third.parent)
    assert not third.samefile(shared)
    assert third.read_text() == shared.read_text() == text


def test_it_is_written_anew_beside_the_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert main(["open", "--all"]) == 1
    assert "`clustergate check`" in capsys.readouterr().err
    folder = store.run_folder("20261101T080000Z-r1")
    store.write_text(folder / "report.html", "x")
    store.write_json(folder / "made.json", {"kind": "ab", "system": "alpha", "by": "eva"})
    (folder / "cases").mkdir()
    assert main(["open", "--all"]) == 0
    path = store.runs_folder() / index.FILE
    assert capsys.readouterr().out == f"{path}\n"
    assert 'href="20261101T080000Z-r1/report.html"' in path.read_text()
    assert {one.name for one in path.parent.iterdir() if one.is_file()} >= {
        "glossary.html",
        "reasons.html",
    }
    with pytest.raises(SystemExit):
        main(["open", "previous", "--all"])


def judged(run, value, verdict="pass", expectations=(), **case):
    """Return a run of one benchmark, whose verdicts are stored."""
    figures = [
        {"name": "PingPong 8 bytes latency_us", "value": value, "unit": "us", "verdict": verdict},
        {"name": "PingPong 1024 bytes bandwidth_mb_s", "value": 900 / value, "verdict": "pass"},
        {"name": "PingPong 8 bytes t_cpu_us", "value": None, "verdict": "no reference"},
    ]
    of = {"check": "ImbMpi1Check", "stack": "mpich", "partition": "alpha:node"}
    answer = {
        "cases": [{**of, "parameters": {"ranks": "2"}, "figures": figures, **case}],
        "expectations": [{"name": name, "standing": word} for name, word in expectations],
    }
    store.write_json(store.run_folder(run) / "verdicts.json", answer)
    return stored(run, verdict)


def systems():
    """Return two systems of a benchmark each, one of them slower in its last run."""
    keys = [
        LineKey(system, "IMB-MPI1", "mpich", f"{system}:node", "ranks=2", "smoke")
        for system in ("alpha", "beta")
    ]
    lines = [
        Line(
            key,
            "ImbMpi1Check",
            ["20261101T080000Z-r0", "20261101T080000Z-r1"],
            [WHEN, WHEN],
            levels=[0.0, level],
            figures=[FigureSaid("PingPong 8 bytes latency_us", verdict, 1.5)],
            headlines=["PingPong 8 B 1.5 us"],
        )
        for key, level, verdict in zip(
            keys, (0.0, -0.3), (Verdict.PASS, Verdict.REGRESSION), strict=True
        )
    ]
    stands = Stands("alpha", "20261101T080000Z-r1", 3, ("HPL, mpich",), 1)
    return Overview(lines, [stands], ["20261101T080000Z-r9"])


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))


def test_systems_are_read_from_their_verdicts(home):
    runs = [judged(f"r{k}", value) for k, value in enumerate((1.0, 1.0, 2.0), 1)]
    runs[2] = judged("r3", 2.0, "regression", [("HPL", "missed"), ("x", "of another run")])
    trial = judged("r4", 9.0)
    (store.run_folder("r5") / "verdicts.json").parent.mkdir()
    (store.run_folder("r5") / "verdicts.json").write_text('{"cases": [{"check": 1}]}')
    listed = [stored("r5", ""), replace(trial, trial=True), *runs[::-1]]
    seen = overview(listed)
    (line,) = seen.lines
    assert line.runs == ["r1", "r2", "r3"]
    # Twice as slow in both figures that have a better side.
    assert line.levels == pytest.approx([0.0, 0.0, -math.log(2)])
    assert line.counts == {Verdict.REGRESSION: 1, Verdict.PASS: 1, Verdict.NO_REFERENCE: 1}
    assert line.verdict is Verdict.REGRESSION
    assert line.headlines == ["PingPong 8 B 2.000 us", "PingPong best 450.0 MB/s"]
    assert seen.expected == [Stands("alpha", "r3", 0, ("HPL",), 0)]
    assert seen.unread == ["r5"]


def test_a_run_without_a_known_figure_is_as_usual():
    known = {"PingPong 8 bytes latency_us": 1.0}
    assert levels_of([known, {}, {"x unheard_of": 3.0}]) == [0.0, 0.0, 0.0]
    assert levels_of([{}, {}]) == [0.0, 0.0]


def test_the_page_shows_how_each_system_stands():
    text = index.render([], [], [], Path("/home"), systems())
    told = Page(text).with_id("systems")
    assert "beta IMB-MPI1 mpich beta:node ranks=2 smoke 2" in " ".join(told.split())
    assert "1 regression" in told
    assert "HPL, mpich" in told
    assert "The verdicts of 20261101T080000Z-r9 are damaged" in told


def test_who_merged_which_runs_is_told():
    mark = {"from": "/shared/beta", "by": "jo", "at": "2026-11-03T08:00:00+00:00"}
    (one,) = index.merged([mark, mark])
    assert (one.what, one.by, one.why) == (
        "2 runs merged",
        "jo 2026-11-03",
        "from /shared/beta",
    )
