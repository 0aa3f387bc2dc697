"""Rolling: its turns with a scheduler that is a fake, and what is done about accused nodes."""

import json
import os
import socket
import time
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from clustergate.core.files.stored import encode
from clustergate.core.model import BadRequest, ClustergateError, Launch
from clustergate.core.store import StoreError
from clustergate.core.web import GITLAB_TOKEN, NotTaken, Unsure
from clustergate.launch.plan import LOG, PLAN, Launched
from clustergate.run import actions
from clustergate.run.actions import DONE, INTENT, REFUSED, UNDONE, UNSURE, Doer, Limits
from clustergate.run.rolling import Roller, Rolling
from clustergate.sites.description import Partition
from clustergate.sites.schedulers import scheduler_of
from clustergate.sites.schedulers.scheduler import NodeState, PinnedJob, QueuedJob, Scheduler
from clustergate.sites.schedulers.slurm import jobs as slurm_jobs
from clustergate.sites.schedulers.slurm.commands import NO_ANSWER
from clustergate.stats.sequential import DAY_S
from clustergate.studies.roll.ledger import Ledger
from clustergate.studies.roll.planner import Bounds
from clustergate.studies.roll.state import APART_S, Book
from tests.conftest import serving

NOW = 700 * DAY_S
NODES = [f"n{k:02}" for k in range(8)]
PLANNED = {"nonce": "1", "contenders": [], "asides": [], "budget": {"seconds": 60.0}, "seed": 1}


class FakeScheduler(Scheduler):
    """A scheduler with nodes that are idle, jobs that wait or run, and commands that are noted."""

    pins_jobs = True
    hold_is_gone = "gone"

    def __init__(self) -> None:
        super().__init__("fake")
        self.states = {node: NodeState(True, False, False, "") for node in NODES}
        self.queue: dict[str, QueuedJob] = {}
        self.submitted: list[PinnedJob] = []
        self.cancelled: list[str] = []
        self.silent = ""

    def _ask(self) -> None:
        if self.silent:
            raise ClustergateError(NO_ANSWER(why=self.silent))

    def node_states(self) -> dict[str, NodeState]:
        self._ask()
        return self.states

    def node_names(self, access: Sequence[str] = ()) -> list[str]:
        return NODES

    def submit(self, job: PinnedJob, access: Sequence[str], words: Iterable[str]) -> str:
        self._ask()
        self.submitted.append(job)
        number = str(100 + len(self.submitted))
        self.queue[job.name] = QueuedJob(number, job.name, "")
        return number

    def queued_jobs(self) -> list[QueuedJob]:
        self._ask()
        return [*self.queue.values()]

    def cancel(self, numbers: Sequence[str]) -> None:
        self.cancelled += numbers

    def drain_line(self, nodes: Sequence[str], reason: str) -> str:
        return f"false {nodes[0]} '{reason}'"


class Site:
    """A ledger in a folder, a fake scheduler, and a clock that a test sets."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.scheduler, self.at = folder, FakeScheduler(), NOW
        self.said: list[str] = []

    def roller(self, **asked: Any) -> Roller:
        """Return one that goes on with the ledger, as the next start would."""

        def write(where: Path, nodes: Sequence[str]) -> None:
            (where / PLAN).write_text(json.dumps({**PLANNED, "nodes": [*nodes]}))

        rolling = Rolling(**{"bounds": Bounds(share=1.0, jobs=4), **asked})
        partition = Partition(name="main", scheduler="fake", cores_per_node=2)
        of = Book(Ledger(self.folder)), self.scheduler, partition, rolling, write
        return Roller(*of, self.said.append, now=lambda: self.at)

    def end(self, slow: str = "", failed: str = "") -> None:
        """Let all jobs that run end, with what they measured; one node is slow."""
        for job in self.scheduler.submitted:
            if job.name in self.scheduler.queue and not self.scheduler.queue[job.name].waits:
                lines: list[Any] = [{"names": [*job.nodes]}]
                for k, node in enumerate(job.nodes):
                    rate = 100.0 if node == slow else 200.0
                    values = {"fma_peak_gflops": 1000.0, "triad_gb_s": rate} if not failed else {}
                    launch = Launch(k, self.at, 20.0)
                    made = Launched("peaks", 0, 0, launch, (), (node,), values, failed)
                    lines.append(encode(made))
                text = "".join(json.dumps(line) + "\n" for line in lines)
                (job.folder / LOG).write_text(text)
                del self.scheduler.queue[job.name]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    return Site(tmp_path / "roll")


def roll_until_accused(site: Site, **asked: Any) -> Roller:
    """Let n03 be slow until it is accused."""
    for _ in range(40):
        roller = site.roller(**asked)
        roller.turn()
        if roller.state.accusations:
            return roller
        site.at += APART_S + 1
        site.end(slow="n03")
    raise AssertionError(site.said[-3:])


# --- turns ----------------------------------------------------------------------------------------


def test_idle_nodes_are_screened_and_seen_good(site: Site) -> None:
    roller = site.roller()
    roller.turn()
    assert sorted(n for job in site.scheduler.submitted for n in job.nodes) == NODES
    site.at += 60
    site.end()
    roller.turn()
    assert all(roller.state.of(node).good_at == {"alone": NOW + 60} for node in NODES)
    assert "8 of 8 nodes seen good" in roller.summary()
    # What accuses nobody is not kept.
    assert [*(site.folder / "jobs").iterdir()] == []


def test_a_slow_node_is_accused_by_jobs_hours_apart(site: Site) -> None:
    roller = roll_until_accused(site)
    (accusation,) = roller.state.accusations.values()
    assert (accusation.node, accusation.short) == ("n03", "mem -50%")
    assert any("n03 is accused (a1): memory bandwidth -50%" in said for said in site.said)
    assert "a1: --act drain would run `false n03 'roll a1 mem -50%'`" in site.said
    assert not roller.state.actions


def test_a_job_has_the_account_of_its_user_and_nothing_else_of_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(f"#!/bin/sh\nenv > {tmp_path}/env\necho 7\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    shell = {"SBATCH_ACCOUNT": "hpc", "SBATCH_QOS": "high", "SBATCH_EXCLUSIVE": "user"}
    shell |= {"SLURM_CONF": "/site/slurm.conf", "SLURM_NTASKS": "9"}
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    job = PinnedJob("roll", ("n1",), tmp_path / "job.sh", tmp_path, 2, 300.0, 10_000)
    slurm = scheduler_of("slurm")
    for words, kept in (
        ([], {"SBATCH_ACCOUNT", "SBATCH_QOS", "SLURM_CONF"}),
        (["qos=low"], {"SBATCH_ACCOUNT", "SLURM_CONF"}),
    ):
        assert slurm.submit(job, ["--partition=main"], words) == "7"
        lines = (tmp_path / "env").read_text().splitlines()
        assert {line.partition("=")[0] for line in lines} & shell.keys() == kept


def test_another_start_goes_on_with_jobs_that_run(site: Site) -> None:
    site.roller().turn()
    site.at += 60
    site.end()
    again = site.roller()
    again.turn()
    assert again.state.jobs == {}
    assert len(again.state.nodes) == len(NODES)


def test_a_job_whose_number_was_not_noted_is_found_by_its_name(site: Site) -> None:
    site.roller().turn()
    ledger = Ledger(site.folder)
    kept = [line for line in ledger.path.read_text().splitlines() if "submitted" not in line]
    ledger.path.write_text("\n".join(kept) + "\n")
    again = site.roller()
    again.turn()
    assert {job.number for job in again.state.jobs.values()} == {"101", "102", "103", "104"}
    assert len(site.scheduler.submitted) == 4


def test_a_job_that_never_was_is_given_up(site: Site) -> None:
    site.roller().turn()
    site.scheduler.queue.clear()
    site.at += 60
    again = site.roller()
    again.turn()
    assert "could not be screened: the job left nothing" in site.said[0]
    assert all(one.lost == 1 and not one.evidence for one in again.state.nodes.values())


def test_a_scheduler_that_is_silent_ends_no_job(site: Site) -> None:
    roller = site.roller()
    roller.turn()
    site.scheduler.silent = "slurmctld is down"
    with pytest.raises(ClustergateError, match="slurmctld is down"):
        roller.turn()
    assert len(roller.state.jobs) == 4
    assert {one.lost for one in roller.state.nodes.values()} <= {0}


def test_stopping_cancels_by_number_what_waits_alone(site: Site) -> None:
    roller = site.roller()
    roller.turn()
    (first, *_) = site.scheduler.queue.values()
    site.scheduler.queue[first.name] = first._replace(waits="Priority")
    site.scheduler.queue["theirs"] = QueuedJob("7", "theirs", "Priority")
    roller.stop()
    assert site.scheduler.cancelled == [first.number]
    assert len(site.roller().state.jobs) == 3


def test_a_full_disk_loses_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    roller = site.roller()
    roller.turn()
    site.end()
    real = Ledger.append

    def full(*_: object) -> None:
        raise StoreError(NO_ANSWER(why="full"))

    monkeypatch.setattr(Ledger, "append", full)
    with pytest.raises(StoreError):
        roller.turn()
    monkeypatch.setattr(Ledger, "append", real)
    site.at += 60
    again = site.roller()
    again.turn()
    assert len([one for one in again.state.nodes.values() if one.good_at]) == len(NODES)


def test_a_scheduler_without_jobs_on_named_nodes_is_refused(site: Site) -> None:
    site.scheduler.pins_jobs = False
    with pytest.raises(ClustergateError, match="no jobs on named nodes"):
        site.roller()


# --- what is done ---------------------------------------------------------------------------------


def noting(done: list[str], fails: Sequence[Exception] = (), **more: Any) -> Doer:
    """Return an action that notes keys, and fails first with these errors."""
    left = [*fails]

    def do(_: object, key: str) -> str:
        done.append(key)
        if left:
            raise left.pop(0)
        return "there"

    return Doer("webhook", "here", lambda _: "would", do, do, **more)


def test_an_action_is_done_once_whoever_starts_again(site: Site) -> None:
    done: list[str] = []
    for _ in range(3):
        roller = roll_until_accused(site, doers=[noting(done)])
        site.at += 7200
    assert len(done) == 1
    assert roller.state.actions["a1", "webhook"].outcome == DONE
    assert done[0] == f"clustergate-{roller.state.identity}-a1"


def test_what_was_refused_is_tried_again_after_an_hour_and_not_for_ever(site: Site) -> None:
    done: list[str] = []
    doers = [noting(done, [NotTaken("down")] * 99)]
    for _ in range(30):
        roll_until_accused(site, doers=doers)
        site.at += 1200
    assert len(done) == 5
    assert site.roller().state.actions["a1", "webhook"].outcome == REFUSED


def test_what_may_have_arrived_is_not_sent_again(site: Site) -> None:
    done: list[str] = []
    for _ in range(4):
        roll_until_accused(site, doers=[noting(done, [Unsure("no answer")])])
        site.at += 7200
    assert len(done) == 1
    assert site.roller().state.actions["a1", "webhook"].outcome == UNSURE
    assert any("it may have been done" in said for said in site.said)


def test_what_was_begun_when_it_was_killed_is_looked_up_or_left(site: Site) -> None:
    roller = roll_until_accused(site)
    own = {"of": "a1", "kind": "webhook", "target": "here", "node": "n03"}
    roller._note({"event": "acted", **own, "outcome": INTENT, "said": ""})
    site.at += 7200
    done: list[str] = []
    site.roller(doers=[noting(done)]).turn()
    assert done == []
    site.roller(doers=[noting(done, find=lambda *_: "there already")]).turn()
    assert done == []
    assert site.roller().state.actions["a1", "webhook"].outcome == DONE


def accused(book: Book, *nodes: str, log: float = 99.0) -> None:
    """Accuse nodes, whatever was seen of them."""
    for node in nodes:
        number = len(book.state.accusations) + 1
        own = {"name": f"a{number}", "node": node, "kind": "alone", "short": "mem -20%"}
        why = {"why": "slow", "log_evidence": log, "log_bound": 11.0}
        book.note({"event": "accused", "at": NOW, **own, **why})


def test_one_node_an_hour_and_two_percent_at_most(tmp_path: Path) -> None:
    book = Book(Ledger(tmp_path))
    done: list[str] = []
    accused(book, "n01", "n02", "n03", "n04")
    for hours in range(10):
        at = NOW + hours * 1800
        actions.act(book, [noting(done)], 120, Limits(), 11.0, at, print)
        assert len(done) <= 1 + hours // 2
    # 2 % of 120.
    assert len(done) == 2
    actions.undo(book, "a1", lambda *_: noting([]), NOW, "me")
    actions.act(book, [noting(done)], 120, Limits(), 11.0, NOW + 9 * 1800, print)
    assert len(done) == 3


def test_nothing_is_done_below_the_error_rate(tmp_path: Path) -> None:
    book = Book(Ledger(tmp_path))
    done: list[str] = []
    accused(book, "n01", log=11.5)
    actions.act(book, [noting(done)], 1000, Limits(), 12.0, NOW, print)
    assert done == []


def test_undo_takes_back_what_was_done_and_names_what_is_not_there(tmp_path: Path) -> None:
    book = Book(Ledger(tmp_path))
    done: list[str] = []
    accused(book, "n01")
    actions.act(book, [noting(done)], 100, Limits(), 11.0, NOW, print)
    undone: list[str] = []
    for _ in range(2):
        actions.undo(book, "a1-webhook", lambda *_: noting(undone), NOW, "me")
    assert undone == done
    assert book.state.actions["a1", "webhook"].outcome == UNDONE
    actions.act(book, [noting(done)], 100, Limits(), 11.0, NOW + 7200, print)
    assert len(done) == 1
    for name in ("a2", "a1-mail", "x"):
        with pytest.raises(BadRequest, match="nothing to undo"):
            actions.undo(book, name, lambda *_: noting([]), NOW, "me")


def test_a_reason_is_as_short_as_sinfo_shows() -> None:
    lines = slurm_jobs.states_in("n1|drained|roll a123 lat +100%\nn2|idle|none\nn3|down*|x|y\n")
    assert lines["n1"] == NodeState(False, False, True, "roll a123 lat +100%")
    assert lines["n2"].idle
    assert lines["n3"] == NodeState(False, False, False, "x|y")


# --- GitLab, a webhook, mail ----------------------------------------------------------------------

Answer = tuple[int, Any]


class GitLab:
    """GitLab's issues of a project, as far as they are asked for; ``fault`` spoils answers."""

    def __init__(self) -> None:
        self.issues: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.fault: Callable[[BaseHTTPRequestHandler], Answer | None] | None = None

    def __call__(self, to: BaseHTTPRequestHandler, body: bytes) -> None:
        self.asked.append(f"{to.command} {to.path}")
        answer = self._answer(to, json.loads(body or b"{}"))
        spoilt = self.fault(to) if self.fault and to.command == "POST" else answer
        if spoilt is not None:
            to.send_response(spoilt[0])
            to.end_headers()
            to.wfile.write(json.dumps(spoilt[1]).encode())

    def _answer(self, to: BaseHTTPRequestHandler, content: dict[str, Any]) -> Answer:
        url = urllib.parse.urlsplit(to.path)
        if to.headers["PRIVATE-TOKEN"] != "secret":
            return 401, {"message": "401 Unauthorized"}
        if to.command == "GET":
            wanted = urllib.parse.parse_qs(url.query)["search"][0]
            return 200, [one for one in self.issues if wanted in one["title"]]
        if url.path.endswith("/issues"):
            iid = len(self.issues) + 1
            self.issues.append({**content, "iid": iid, "web_url": f"https://gl/issues/{iid}"})
            return 201, self.issues[-1]
        self.issues[0].update(content)
        return 200, {}


def hang_up(to: BaseHTTPRequestHandler) -> None:
    to.connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (None, DONE),
        (lambda _: (502, "bad gateway"), UNSURE),
        (lambda _: (200, "<html>sign in</html>"), UNSURE),
        (lambda _: (201, {}), UNSURE),
        (hang_up, UNSURE),
        (lambda _: (403, "forbidden"), REFUSED),
        (lambda _: (302, "elsewhere"), REFUSED),
    ],
)
def test_an_issue_is_made_once_whatever_the_server_answers(
    fault: Any, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GITLAB_TOKEN, "secret")
    book, server = Book(Ledger(tmp_path)), GitLab()
    accused(book, "n01")
    with serving(server) as url:
        server.fault = fault
        doer = actions.issue(f"{url}/api/v4/projects/1")
        actions.act(book, [doer], 100, Limits(), 11.0, NOW, print)
        assert book.state.actions["a1", "issue"].outcome == outcome
        server.fault = None
        for hours in range(1, 4):
            actions.act(book, [doer], 100, Limits(), 11.0, NOW + hours * 3601, print)
        assert book.state.actions["a1", "issue"].outcome == DONE
        assert len(server.issues) == 1
        actions.undo(book, "a1", lambda *_: doer, NOW, "me")
    assert server.issues[0]["state_event"] == "close"
    assert server.issues[0]["title"].startswith("n01: mem -20% [clustergate-")


def test_a_wrong_token_and_a_server_that_is_down_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GITLAB_TOKEN, "wrong")
    book = Book(Ledger(tmp_path))
    said: list[str] = []
    accused(book, "n01")
    with serving(GitLab()) as url:
        doer = actions.issue(url)
        actions.act(book, [doer], 100, Limits(), 11.0, NOW, said.append)
    actions.act(book, [doer], 100, Limits(), 11.0, NOW + 3601, said.append)
    assert "401 Unauthorized" in said[0]
    assert "Connection refused" in said[1]


def test_a_webhook_that_is_late_is_not_told_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clustergate.core.web._WAITS_S", 0.2)
    book = Book(Ledger(tmp_path))
    told: list[tuple[str, str]] = []
    accused(book, "n01")

    def late(to: BaseHTTPRequestHandler, body: bytes) -> None:
        told.append((to.headers["Idempotency-Key"], json.loads(body)["node"]))
        time.sleep(1.0)

    with serving(late) as url:
        for hours in range(3):
            doers = [actions.webhook(url)]
            actions.act(book, doers, 100, Limits(), 11.0, NOW + hours * 3601, print)
    assert told == [(f"clustergate-{book.state.identity}-a1", "n01")]
    assert book.state.actions["a1", "webhook"].outcome == UNSURE


def test_mail_goes_through_sendmail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sendmail"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\ncat > {tmp_path}/mail\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    book = Book(Ledger(tmp_path))
    accused(book, "n01")
    actions.act(book, [actions.mail("ops@site")], 100, Limits(), 11.0, NOW, print)
    text = (tmp_path / "mail").read_text()
    assert text.startswith("To: ops@site\nSubject: n01: mem -20%\nMessage-ID: <clustergate-")
    assert "clustergate roll --undo a1" in text
    assert (tmp_path / "words").read_text() == "-oi -t\n"
