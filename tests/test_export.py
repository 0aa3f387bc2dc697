"""Runs in the forms of dashboards, and servers that take, refuse or delay them."""

from __future__ import annotations

import csv
import http.server
import io
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars
import pytest

from clustergate import cli
from clustergate.core import store
from clustergate.core.model import ExpectationStanding, Standing
from clustergate.core.model import Verdict as V
from clustergate.core.paths import checkout
from clustergate.core.reasons import in_words
from clustergate.judge.history import listing
from clustergate.launch.disturbance import NODE_SHARED
from clustergate.report import export
from clustergate.report.verdicts import as_json
from tests.builders import case, figure, run
from tests.conftest import PATIENCE_S, serving

RUN = "20261122T212341Z-r1"
SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)')


def answer() -> dict[str, Any]:
    """Return what ``show --json`` says of a run with a figure of each kind of verdict."""
    busy = NODE_SHARED(lost_cores=0.5, cores=2, host="vm")
    figures = [
        figure("HPL", "performance_gflops", 90.5, verdict=V.REGRESSION, sentence="14 % slower"),
        figure("PingPong", "latency_us", 1.25, verdict=V.PASS, sentence="as before"),
        figure("Exchange", "latency_us", 2.5, verdict=V.INCONCLUSIVE, sentence="open", doubt=busy),
        figure("Bcast", "latency_us", None, verdict=V.INVALID, sentence='it said "no"\\\n'),
    ]
    expectations = [
        ExpectationStanding("HPL", Standing.MISSED, in_words("90.5 of 100"), "HplCheck"),
        ExpectationStanding("PingPong 8 B", Standing.NOT_COMPARED, in_words("not run")),
    ]
    told = run(case(figures=tuple(figures)), run_id=RUN, expectations=tuple(expectations))
    return as_json(told)


def test_a_row_has_all_that_names_a_figure_and_whether_it_is_a_bound():
    rows = export.rows_of(answer())
    assert [row["verdict"] for row in rows] == ["regression", "pass", "inconclusive", "invalid"]
    assert [row["undisturbed"] for row in rows] == [True, True, False, True]
    assert rows[0]["reason"] == "14 % slower"
    assert len({tuple(row[key] for key in ("check", "stack", "figure")) for row in rows}) == 4
    # A screening has none.
    assert export.rows_of({"evidence": [], "exit_status": 0}) == []


def samples_in(text: str) -> dict[tuple[str, str], float]:
    """Return the values of a text by name and labels; each line but comments has to be one."""
    found: dict[tuple[str, str], float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            key = sample[1], sample[2] or ""
            assert key not in found, line
            found[key] = float(sample[3])
    return found


def test_only_what_was_decided_is_good_or_wrong():
    text = export.openmetrics(export.gauges_of(answer()))
    assert text.endswith("\n# EOF\n")
    found = samples_in(text)
    named = re.compile('figure="([^"]*)"')
    ok = {
        named.findall(labels)[0]: value
        for (name, labels), value in found.items()
        if name == "clustergate_figure_ok"
    }
    assert ok == {
        "HPL 8 bytes performance_gflops": 0.0,
        "PingPong 8 bytes latency_us": 1.0,
        "Bcast 8 bytes latency_us": 0.0,
    }
    values = [v for (name, _), v in found.items() if name == "clustergate_figure"]
    assert values == [90.5, 1.25, 2.5]
    counts = {k: v for (name, k), v in found.items() if name == "clustergate_run_figures"}
    # What no figure is has a 0, or yesterday's count would stay.
    assert len(counts) == len(V)
    assert sum(counts.values()) == 4
    (met,) = [v for (name, _), v in found.items() if name == "clustergate_expectation_met"]
    assert met == 0.0


def test_a_label_may_hold_quotes_and_ends_of_lines():
    odd = [export.Gauge("x", "X.", [({"a": 'one "two"\\\nthree'}, 1.0)])]
    assert 'x{a="one \\"two\\"\\\\\\nthree"} 1.0\n' in export.openmetrics(odd)


def test_a_document_that_is_sent_twice_is_there_once():
    rows = export.rows_of(answer())
    once, again = list(export.bulk(rows, "c")), list(export.bulk(rows, "c"))
    assert once == again
    ids = [json.loads(line)["index"]["_id"] for line in once[::2]]
    assert len(set(ids)) == len(rows)


def test_every_point_of_opentelemetry_has_its_time_in_nanoseconds():
    said = export.otlp(answer(), "0.1")
    (resource,) = said["resourceMetrics"]
    (scope,) = resource["scopeMetrics"]
    points = [p for m in scope["metrics"] for p in m["gauge"]["dataPoints"]]
    (at,) = {point["timeUnixNano"] for point in points}
    assert len(at) == 19
    assert {m["name"] for m in scope["metrics"]} >= {"clustergate_figure", "clustergate_figure_ok"}


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a stored run that ended, in a home of its own."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    shutil.copytree(checkout() / "tests" / "data" / "home", tmp_path / "home")
    store.write_json(store.run_folder(RUN) / listing.VERDICTS, answer())
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert cli.main(["export", *words]) == status
    told = capsys.readouterr()
    return told.err if status else told.out


def test_a_table_has_the_rows_of_all_runs_named(stored, capsys):
    rows = list(csv.DictReader(io.StringIO(printed(capsys, RUN, "last", "--format", "csv"))))
    lines = printed(capsys, RUN, "last", "--format", "jsonl").splitlines()
    assert len(rows) == len(lines) == 8
    assert [row["figure"] for row in rows] == [json.loads(line)["figure"] for line in lines]
    path = stored / "runs.parquet"
    printed(capsys, RUN, "--format", "parquet", "--output", str(path))
    assert polars.read_parquet(path)["value"].to_list() == [90.5, 1.25, 2.5, None]
    assert list(stored.glob(".runs.parquet*")) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((RUN, "last"), "openmetrics has one value of each figure, and 2 runs were named"),
        (("--push", "ftp://x"), "ftp://x is no http or https URL"),
        (("--format", "parquet", "--push", "http://x"), "Parquet cannot be pushed"),
        (("nothing",), "nothing"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence(stored, capsys, words, said):
    told = printed(capsys, *words, status=1)
    assert said in told
    assert told.count("\n") == 1


def test_a_full_disk_leaves_the_textfile_as_it_was(stored, capsys):
    there = stored / "a.prom"
    printed(capsys, "--output", str(there))
    before = there.read_text()
    folder = stored / "nothing" / "a.prom"
    assert "a.prom" in printed(capsys, "--output", str(folder), status=2)
    assert there.read_text() == before


def says(status: int, text: str) -> Callable[[http.server.BaseHTTPRequestHandler, bytes], None]:
    def answered(to: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
        to.send_response(status)
        to.end_headers()
        to.wfile.write(text.encode())

    return answered


def accepted(count: int, refused: int = 0) -> str:
    taken = {"index": {"status": 201}}
    wrong = {"index": {"status": 400, "error": {"reason": "mapping of value"}}}
    return json.dumps({"items": [taken] * (count - refused) + [wrong] * refused})


@pytest.mark.parametrize(
    ("answered", "said"),
    [
        (says(200, accepted(4)), ""),
        (says(200, accepted(4, 1)), "1 of 4 documents refused: mapping of value"),
        (says(200, "<html>a proxy</html>"), "its answer is not that of OpenSearch"),
        (says(200, "{}"), "its answer is not that of OpenSearch"),
        (says(503, "try later"), "503 try later"),
    ],
)
def test_documents_that_were_refused_are_no_success(stored, capsys, answered, said):
    with serving(answered) as url:
        words = ["export", RUN, "--format", "bulk", "--push", f"{url}/_bulk"]
        assert cli.main(words) == (2 if said else 0)
    assert (said or "took 4 figures") in capsys.readouterr().err


def test_a_server_that_is_late_or_hangs_up_is_named(stored, capsys, monkeypatch):
    monkeypatch.setattr("clustergate.cli.export._WAITS_S", 0.2)
    with serving(lambda to, _: time.sleep(1.0)) as url:
        assert "timed out" in printed(capsys, "--push", url, status=2)
    with serving(lambda to, _: to.connection.shutdown(socket.SHUT_RDWR)) as url:
        assert f"{url} did not take it: " in printed(capsys, "--push", url, status=2)


# --- the servers themselves -----------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def running(program: str, *words: str, at: str) -> Iterator[None]:
    """Run a server until the block ends, once it answers ``at`` an address."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: apt-get install {program}")
    with subprocess.Popen(
        [program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            for _ in range(600):
                try:
                    fetched(at)
                    break
                except OSError:
                    assert server.poll() is None, f"{program} ended with {server.returncode}"
                    time.sleep(0.1)
            else:
                pytest.fail(f"{program} did not answer")
            yield
        finally:
            server.terminate()
            server.wait()


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return str(answer.read().decode())


def values_of(base: str) -> list[float]:
    """Ask a server for all figures, until it has some."""
    for _ in range(600):
        said: Mapping[str, Any] = json.loads(
            fetched(f"{base}/api/v1/query?query=clustergate_figure")
        )
        if result := said["data"]["result"]:
            return sorted(float(one["value"][1]) for one in result)
        time.sleep(0.1)
    return []


def figures_in(text: str) -> list[float]:
    return [v for (name, _), v in samples_in(text).items() if name == "clustergate_figure"]


def test_promtool_finds_nothing_wrong_with_the_names(stored, capsys):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    text = printed(capsys)
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_node_exporter_reads_the_textfile(stored, capsys):
    folder = stored / "textfiles"
    folder.mkdir()
    printed(capsys, "--output", str(folder / "clustergate.prom"))
    port = free_port()
    words = ["--collector.disable-defaults", "--collector.textfile"]
    words += [f"--collector.textfile.directory={folder}", f"--web.listen-address=127.0.0.1:{port}"]
    at = f"http://127.0.0.1:{port}/metrics"
    with running("prometheus-node-exporter", *words, at=at):
        text = fetched(at)
    assert "node_textfile_scrape_error 0" in text
    ours = "\n".join(line for line in text.splitlines() if line.startswith("clustergate_"))
    assert sorted(figures_in(ours)) == [1.25, 2.5, 90.5]


def test_a_pushgateway_holds_the_last_run_alone(stored, capsys):
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    with running(
        "prometheus-pushgateway", f"--web.listen-address=127.0.0.1:{port}", at=f"{base}/-/ready"
    ):
        for value in (80.0, 90.5):
            again = answer()
            again["cases"][0]["figures"][0]["value"] = value
            store.write_json(store.run_folder(RUN) / listing.VERDICTS, again)
            printed(capsys, "--push", f"{base}/metrics/job/clustergate")
        text = fetched(f"{base}/metrics")
    ours = [line for line in text.splitlines() if line.startswith("clustergate_figure{")]
    assert len(ours) == 3
    assert any(line.endswith(" 90.5") for line in ours)
    assert not any(line.endswith(" 80") for line in ours)


def test_victoria_metrics_answers_queries_for_what_was_pushed(stored, capsys):
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    words = [f"-httpListenAddr=127.0.0.1:{port}", f"-storageDataPath={stored / 'vm'}"]
    words += ["-search.latencyOffset=0s"]
    with running("victoria-metrics", *words, at=f"{base}/health"):
        printed(capsys, "--push", f"{base}/api/v1/import/prometheus")
        fetched(f"{base}/internal/force_flush")
        assert values_of(base) == [1.25, 2.5, 90.5]


def test_prometheus_scrapes_what_was_exported(stored, capsys):
    """By its own scraper, which refuses a text that is not of the format."""
    text = printed(capsys)

    def answered(to: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
        to.send_response(200)
        kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
        to.send_header("Content-Type", kind)
        to.end_headers()
        to.wfile.write(text.encode())

    config = stored / "prometheus.yml"
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    words = [f"--config.file={config}", f"--storage.tsdb.path={stored / 'tsdb'}"]
    words += [f"--web.listen-address=127.0.0.1:{port}"]
    with serving(answered) as served:
        target = served.removeprefix("http://")
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: c, static_configs: [{{targets: ['{target}']}}]}}]\n"
        )
        with running("prometheus", *words, at=f"{base}/-/ready"):
            assert values_of(base) == [1.25, 2.5, 90.5]
