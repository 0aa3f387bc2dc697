"""The index of all runs, `clustergate open --all`."""

import datetime
import os
import re
import shutil
from pathlib import Path

import pytest

from clustergate.cli import main
from clustergate.core import store
from clustergate.judge.history.listing import StoredRun
from clustergate.judge.history.series import collect
from clustergate.judge.history.trends import trends
from clustergate.report import index
from clustergate.report.publishing import write_explanations
from clustergate.stacks.golden.builds import Golden
from tests.test_history import pings
from tests.test_report_html import Page

WHEN = datetime.datetime(2026, 5, 3, 14, 5, tzinfo=datetime.timezone.utc)


def stored(run, verdict, kind="check", **more):
    of = {"system": "alpha", "mode": "smoke", "by": "eva", "size_bytes": 1, **more}
    return StoredRun(run, WHEN, kind, verdict=verdict, **of)


def page_of(runs, accepted=(), found=()):
    return index.render(runs, found, accepted, Path("/home"))


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
    first, second, third = (store.runs_folder() / name / "reasons.html" for name in "abc")
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
