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
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from clustergate.report import export, node_states
from clustergate.report.verdicts import as_json
from clustergate.studies.roll.ledger import Ledger, roll_folder
from clustergate.studies.roll.state import State
from clustergate.studies.screen.findings import analyse
from clustergate.studies.screen.measures import Result
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
    keys = ("run", "partition", "stack", "check", "layout", "figure")
    once, again = (list(export.bulk(rows, "c", keys, "started")) for _ in range(2))
    assert once == again
    ids = [json.loads(line)["index"]["_id"] for line in once[::2]]
    assert len(set(ids)) == len(rows)


def looked(node: str, *slow: str, counts: Sequence[str] = ()) -> dict[str, Any]:
    """Return a look at a node alone, as a ledger has it."""
    of_look = {"event": "look", "at": 1000.0, "job": "j1", "kind": "alone", "nodes": [node]}
    more = {"values": {}, "slow": [*slow], "short": "mem -21%", "usual": 0.02}
    return {**of_look, **more, "counts": [*counts]}


LEDGER = (
    {"event": "begun", "at": 1000.0, "ledger": "abc"},
    *(looked("n1"), looked("n2", "mem", counts=["n2"]), looked("n3", "mem", counts=["n3"])),
    {
        **{"event": "accused", "at": 1001.0, "name": "a1", "node": "n3", "kind": "alone"},
        **{"log_evidence": 12.0, "log_bound": 11.0, "short": "mem -21%", "why": "memory -21%"},
    },
    {
        **{"event": "acted", "at": 1002.0, "of": "a1", "kind": "drain", "target": "Slurm"},
        **{"node": "n3", "outcome": "done", "said": ""},
    },
)


def states() -> list[node_states.NodeState]:
    """Return what a ledger says of a good node, a suspect, an accused one, and one never seen."""
    state = State()
    for event in LEDGER:
        state.apply(event)
    state.of("n4")
    return node_states.rolled("alpha", state)


def test_only_a_node_that_is_decided_is_good_or_bad():
    found = samples_in(export.openmetrics(node_states.gauges_of_nodes(states())))
    node = 'system="alpha",source="roll",node="{}"'
    ok = {labels: v for (name, labels), v in found.items() if name == "clustergate_node_ok"}
    assert ok == {node.format("n1"): 1.0, node.format("n3"): 0.0}
    looked_at = [v for (name, _), v in found.items() if name.startswith("clustergate_node_looked")]
    assert looked_at == [1000.0] * 3
    counts = {k: v for (name, k), v in found.items() if name == "clustergate_nodes"}
    assert [*counts.values()] == [1.0] * 4
    (action,) = [labels for name, labels in found if name == "clustergate_node_action"]
    assert action == f'{node.format("n3")},accusation="a1",action="drain",outcome="done"'


def test_a_screening_in_doubt_calls_no_node_good():
    results = [Result((f"n{n}",), "peaks", 0, {"triad_gb_s": 100.0}) for n in range(6)]
    names = tuple(f"n{n}" for n in range(7))
    screening = analyse(names, results)
    for decided, known in ((True, "good"), (False, "unknown")):
        of_nodes = node_states.screened("alpha", screening, 5.0, decided=decided)
        # The last one was not measured.
        assert [one.state for one in of_nodes] == [known] * 6 + ["unknown"]
        assert bool(of_nodes[0].good_at) is decided


def test_every_point_of_opentelemetry_has_its_time_in_nanoseconds():
    said = export.otlp(export.gauges_of(answer()), export.began_s(answer()), RUN, "0.1")
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


def test_a_table_asks_nothing_of_the_time_that_metrics_need(stored, capsys):
    damaged = {**answer(), "started": "yesterday"}
    store.write_json(store.run_folder(RUN) / listing.VERDICTS, damaged)
    rows = csv.DictReader(io.StringIO(printed(capsys, RUN, "--format", "csv")))
    assert {row["started"] for row in rows} == {"yesterday"}


def test_nodes_are_exported_from_ledgers_and_screenings(stored, capsys):
    assert "no nodes in" in printed(capsys, "--nodes", status=1)
    Ledger(roll_folder("alpha")).append(*LEDGER)
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "--nodes", "--format", "csv"))))
    assert [(row["node"], row["state"]) for row in rows] == [
        *(("n1", "good"), ("n2", "suspect"), ("n3", "bad"))
    ]
    assert rows[2]["looked_at"] == "1970-01-01T00:16:40+00:00"
    assert (rows[2]["accusation"], rows[2]["actions"]) == ("a1", "drain done")
    assert printed(capsys, "--nodes") == printed(capsys, "--nodes", "alpha")
    documents = printed(capsys, "--nodes", "--format", "bulk").splitlines()
    assert json.loads(documents[1])["@timestamp"] == rows[0]["looked_at"]
    assert "no run with a screening" in printed(capsys, "--nodes", RUN, status=1)
    # What a full disk cut off is told.
    with Ledger(roll_folder("alpha")).path.open("a") as file:
        file.write('{"event": "look", "a')
    assert cli.main(["export", "--nodes"]) == 0
    assert "was cut off" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--nodes", "--format", "markdown"), "markdown is of runs, and has no nodes"),
        ((RUN, "last"), "openmetrics is of one run, and 2 were named"),
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


@pytest.mark.parametrize(
    ("answered", "said"),
    [
        ("{}", ""),
        ('{"partialSuccess": {"errorMessage": "use another label"}}', ""),
        (
            '{"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "too old"}}',
            "3 points refused: too old",
        ),
    ],
)
def test_a_collector_that_takes_a_part_is_no_success(stored, capsys, answered, said):
    with serving(says(200, answered)) as url:
        words = ["export", RUN, "--format", "otlp", "--push", f"{url}/v1/metrics"]
        assert cli.main(words) == (2 if said else 0)
    assert (said or "took 4 figures") in capsys.readouterr().err


def test_a_server_that_is_late_or_hangs_up_is_named(stored, capsys, monkeypatch):
    monkeypatch.setattr("clustergate.core.web._WAITS_S", 0.2)
    with serving(lambda to, _: time.sleep(1.0)) as url:
        assert "timed out" in printed(capsys, "--push", url, status=2)
    with serving(lambda to, _: to.connection.shutdown(socket.SHUT_RDWR)) as url:
        assert f"{url} did not take it: " in printed(capsys, "--push", url, status=2)


class Notes:
    """What GitLab keeps of a merge request, two notes a page."""

    def __init__(self, *bodies: str) -> None:
        self.bodies = dict(enumerate(bodies, 1))
        self.calls: list[str] = []

    def __call__(self, to: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        path, _, query = to.path.partition("?")
        self.calls.append(to.command)
        good = to.headers["PRIVATE-TOKEN"] == "secret" and path.startswith("/notes")
        to.send_response(200 if good else 401)
        said: Any = {}
        if good and to.command == "GET":
            page = int(dict(pair.split("=") for pair in query.split("&"))["page"])
            shown = list(self.bodies.items())[2 * page - 2 : 2 * page]
            said = [{"id": number, "body": text} for number, text in shown]
        elif good:
            number = int(path.split("/")[2]) if to.command == "PUT" else len(self.bodies) + 1
            self.bodies[number] = json.loads(body)["body"]
        to.end_headers()
        to.wfile.write(json.dumps(said).encode())


def as_before() -> dict[str, Any]:
    """Return what a run says that found nothing but what was there before."""
    good = answer()
    good["exit_status"] = 0
    for one in good["cases"][0]["figures"]:
        one["verdict"] = "pass"
    return good


def test_a_merge_request_has_one_comment_of_each_kind_of_run(stored, capsys, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_GITLAB_TOKEN", "secret")
    (store.run_folder(RUN) / listing.SUMMARY).write_text("✗ SLOWER: 1 of 4 results\n")
    notes = Notes("looks good", "please rebase", "done")
    with serving(notes) as url:
        words = [RUN, "--format", "markdown", "--push", f"{url}/notes"]
        store.write_json(store.run_folder(RUN) / listing.VERDICTS, as_before())
        printed(capsys, *words)
        assert len(notes.bodies) == 3
        store.write_json(store.run_folder(RUN) / listing.VERDICTS, answer())
        printed(capsys, *words)
        assert "✗ SLOWER: 1 of 4 results" in notes.bodies[4]
        assert "| 90.5 Gflop/s | regression | 14 % slower |" in notes.bodies[4]
        # What was said does not stay once it is true no longer.
        store.write_json(store.run_folder(RUN) / listing.VERDICTS, as_before())
        printed(capsys, *words)
    assert len(notes.bodies) == 4
    assert "regression" not in notes.bodies[4]
    assert list(notes.bodies.values())[:3] == ["looks good", "please rebase", "done"]
    assert notes.calls == ["GET"] * 6 + ["POST"] + ["GET"] * 2 + ["PUT"]


def test_a_token_goes_to_no_other_server_and_not_unencrypted(stored, capsys, monkeypatch):
    words = [RUN, "--format", "markdown", "--push"]
    assert "is sent no token" in printed(capsys, *words, "https://gitlab/notes", status=2)
    monkeypatch.setenv("CLUSTERGATE_GITLAB_TOKEN", "secret")
    assert "is sent no token" in printed(capsys, *words, "http://gitlab/notes", status=2)
    seen: list[str] = []

    def elsewhere(to: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
        seen.append(to.path)
        to.send_response(302)
        to.send_header("Location", "/caught")
        to.end_headers()

    with serving(elsewhere) as url:
        assert "did not take it: 302" in printed(capsys, *words, f"{url}/notes", status=2)
    assert [path.partition("?")[0] for path in seen] == ["/notes"]


def test_a_table_of_a_comment_holds_whatever_a_figure_is_called():
    odd = answer()
    odd["cases"][0]["figures"][0]["name"] = "a|b\n<script>@all `x`"
    rows = [line for line in export.comment(odd, "```\nnote").splitlines() if "regression" in line]
    assert rows == [
        "| a\\|b \\<script\\>\\@all \\`x\\` | mpich | 90.5 Gflop/s | regression | 14 % slower |"
    ]


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
    Ledger(roll_folder("alpha")).append(*LEDGER)
    for text in (printed(capsys), printed(capsys, "--nodes")):
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=text, text=True, capture_output=True
        )
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_node_exporter_reads_the_textfile(stored, capsys):
    folder = stored / "textfiles"
    folder.mkdir()
    printed(capsys, "--output", str(folder / "clustergate.prom"))
    # Beside what a node says of itself, and what is known of all.
    Ledger(roll_folder("alpha")).append(*LEDGER)
    printed(capsys, "--nodes", "--output", str(folder / "nodes.prom"))
    assert cli.main(["node", "--state", "--hook", "--textfile", str(folder / "node.prom")]) == 0
    port = free_port()
    words = ["--collector.disable-defaults", "--collector.textfile"]
    words += [f"--collector.textfile.directory={folder}", f"--web.listen-address=127.0.0.1:{port}"]
    at = f"http://127.0.0.1:{port}/metrics"
    with running("prometheus-node-exporter", *words, at=at):
        text = fetched(at)
    assert "node_textfile_scrape_error 0" in text
    assert text.count("clustergate_schema_version") == 5
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


@contextmanager
def scraped(folder: Path, text: str) -> Iterator[str]:
    """Let a Prometheus scrape a text, by its own parser; yield the address that it answers at."""

    def answered(to: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
        to.send_response(200)
        kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
        to.send_header("Content-Type", kind)
        to.end_headers()
        to.wfile.write(text.encode())

    config = folder / "prometheus.yml"
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    words = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    words += [f"--web.listen-address=127.0.0.1:{port}"]
    with serving(answered) as served:
        target = served.removeprefix("http://")
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: c, static_configs: [{{targets: ['{target}']}}]}}]\n"
        )
        with running("prometheus", *words, at=f"{base}/-/ready"):
            yield base


def test_prometheus_scrapes_what_was_exported(stored, capsys):
    with scraped(stored, printed(capsys)) as base:
        assert values_of(base) == [1.25, 2.5, 90.5]


# --- the dashboard --------------------------------------------------------------------------------

DASHBOARD = checkout() / "docs" / "examples" / "grafana-dashboard.json"


def holds(whole: Any, part: Any) -> bool:
    """Return whether a document has all that another one has; it may have defaults beside it."""
    if isinstance(part, dict):
        return all(key in whole and holds(whole[key], value) for key, value in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(holds, whole, part))
    return bool(whole == part)


def test_the_dashboard_has_what_grafana_knows_and_nothing_else():
    """Each panel, query and variable, by the types that Grafana publishes for Python 3.11 on."""
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    plugins = pytest.importorskip("grafana_foundation_sdk.cog.plugins")
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder").JSONEncoder(sort_keys=True)
    plugins.register_default_plugins()

    def as_read(document: Mapping[str, Any]) -> Any:
        return json.loads(encoder.encode(models.Dashboard.from_json(document)))

    written = json.loads(DASHBOARD.read_text())
    assert holds(as_read(written), written)
    for place in (written["panels"][0], written["panels"][0]["targets"][0]):
        place["misspelt"] = 1
        assert not holds(as_read(written), written)
        del place["misspelt"]


def queries_in(written: Mapping[str, Any]) -> Iterator[str]:
    """Yield what panels and variables ask Prometheus, with all systems, modes and figures."""
    for panel in written["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    for variable in written["templating"]["list"]:
        if variable["type"] == "query":
            series, _, label = variable["query"]["query"][13:-1].rpartition(", ")
            yield f"count by ({label}) ({series})"


def test_prometheus_has_an_answer_to_each_query_of_the_dashboard(tmp_path):
    said = answer() | {"gate": {"code": "stay-closed"}}
    queries = list(queries_in(json.loads(DASHBOARD.read_text())))
    assert len(queries) == 13
    of_nodes = node_states.gauges_of_nodes(states())[1:]
    with scraped(tmp_path, export.openmetrics([*export.gauges_of(said), *of_nodes])) as base:
        assert values_of(base)
        for query in [re.sub(r"\$\w+", ".*", query) for query in queries]:
            asked = urllib.parse.urlencode({"query": query})
            found = json.loads(fetched(f"{base}/api/v1/query?{asked}"))
            assert found["data"]["result"], query
