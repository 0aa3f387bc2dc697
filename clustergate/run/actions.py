"""What is done about accused nodes, and undone: drain, issue, webhook, mail.

Each is noted in the ledger before it is done and after. Of one that was begun and not ended, or
that a server left unanswered, it is looked up whether it is done; where that cannot be, it is not
done again.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import subprocess
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clustergate.core.model import BadRequest, ClustergateError, Say
from clustergate.core.reasons import Words
from clustergate.core.web import NOT_GITLAB, NotTaken, Unsure, ask_gitlab, send
from clustergate.machine.processes import capture
from clustergate.sites.schedulers import Scheduler
from clustergate.studies.roll.state import Accusation, Action, Book, State

DRAIN, ISSUE, WEBHOOK, MAIL, HOLD = KINDS = ("drain", "issue", "webhook", "mail", "hold")
DONE, REFUSED, UNSURE, INTENT, UNDONE = "done", "refused", "unsure", "intent", "undone"
_HOUR_S = 3600.0
_MOST_TRIES = 5
# `sinfo -R` shows so many letters of a reason.
_REASON = 20
_COMMAND_S = 30.0

UNKNOWN = Words(
    "roll.unknown-action",
    "the ledger has nothing to undo that is named {name}",
    remedy="`clustergate roll --status` lists what was done",
)
NO_TARGET = Words(
    "roll.no-target", "--act {kind} needs {option}", remedy="name where it is to go by {option}"
)


@dataclass(frozen=True)
class Limits:
    """How much is done at most: on a ``share`` of the nodes, on so many nodes ``per_hour``."""

    share: float = 0.02
    per_hour: int = 1


@dataclass(frozen=True)
class Doer:
    """A kind of action: what it would do, does, undoes; ``find`` says whether it is done already.

    ``find`` is None where nobody can tell. All take the accusation and its key, which no other
    accusation of any ledger has; ``do`` and ``undo`` return what came of it and raise
    :class:`NotTaken` or :class:`Unsure`. ``target`` is where it goes.
    """

    kind: str
    target: str
    plan: Callable[[Accusation], str]
    do: Callable[[Accusation, str], str]
    undo: Callable[[Accusation, str], str]
    find: Callable[[Accusation, str], str | None] | None = None


def why_not(
    state: State, of: str, node: str, kind: str, nodes: int, limits: Limits, now: float
) -> str:
    """Return why an action may not be done now, empty where it may. Pure.

    ``nodes`` is how many the machine has.
    """
    known = state.actions.get((of, kind))
    if known and known.outcome in (DONE, UNDONE):
        return "it is done"
    if known:
        if known.tries >= _MOST_TRIES:
            return f"it was tried {known.tries} times"
        if 0 <= now - known.at < _HOUR_S:
            return "it is tried again after an hour"
    others = [one for one in state.actions.values() if one.node != node]
    in_an_hour = {one.node for one in others if 0 <= now - one.begun_at < _HOUR_S}
    if len(in_an_hour) >= limits.per_hour:
        return f"{len(in_an_hour)} of at most {limits.per_hour} nodes in an hour"
    standing = {one.node for one in others if _stands(state, one)}
    if len(standing) + 1 > max(int(limits.share * nodes), 1):
        return f"{len(standing)} nodes of at most {100 * limits.share:g} % of {nodes}"
    return ""


def _stands(state: State, action: Action) -> bool:
    if action.outcome in (REFUSED, UNDONE):
        return False
    accusation = state.accusations.get(action.of)
    return accusation is None or not accusation.closed


def key_of(state: State, of: str) -> str:
    """Return the word by which servers know an accusation of a ledger."""
    return f"clustergate-{state.identity}-{of}"


def act(
    book: Book,
    doers: Sequence[Doer],
    nodes: int,
    limits: Limits,
    bound: float,
    now: float,
    say: Say,
) -> None:
    """Do what the accusations that stand ask for, within the limits; note it, and say what it was.

    None is acted upon whose evidence is below ``bound``.
    """
    for accusation in [*book.state.accusations.values()]:
        if accusation.closed or accusation.log_evidence < max(bound, accusation.log_bound):
            continue
        for doer in doers:
            of = accusation.name, accusation.node, doer.kind
            known = book.state.actions.get((accusation.name, doer.kind))
            left_open = known is not None and known.outcome in (INTENT, UNSURE)
            waits = why_not(book.state, *of, nodes, limits, now)
            if not waits and (doer.find or not left_open):
                own = accusation.name, doer.kind, doer.target, accusation.node
                note(book, *own, INTENT, now)
                outcome, said = _done(doer, accusation, key_of(book.state, accusation.name))
                note(book, *own, outcome, now, said)
                say(f"{accusation.name} {doer.kind} {accusation.node}: {outcome}: {said}")


def _done(doer: Doer, accusation: Accusation, key: str) -> tuple[str, str]:
    try:
        if doer.find and (there := doer.find(accusation, key)) is not None:
            return DONE, there
    except (NotTaken, Unsure, ClustergateError) as error:
        # Nothing was sent.
        return REFUSED, str(error)
    return attempt(lambda: doer.do(accusation, key))


def attempt(does: Callable[[], str], good: str = DONE) -> tuple[str, str]:
    """Do something once, and return what came of it, and in words."""
    try:
        return good, does()
    except (NotTaken, ClustergateError) as error:
        return REFUSED, str(error)
    except Unsure as error:
        return UNSURE, f"{error}; it may have been done, see there"


def note(
    book: Book, of: str, kind: str, target: str, node: str, outcome: str, now: float, said: str = ""
) -> None:
    """Note in the ledger what came of an action; raises StoreError where that cannot be."""
    own = {"of": of, "kind": kind, "target": target, "node": node}
    book.note({"event": "acted", "at": now, **own, "outcome": outcome, "said": said})


def undo(
    book: Book, name: str, doer_of: Callable[[str, str], Doer], now: float, by: str
) -> list[str]:
    """Undo an action by its ``name`` (a3-drain), or an accusation with all of its actions (a3).

    Return a sentence for each. Raises BadRequest for what the ledger has not.
    """
    state = book.state
    of, _, kind = name.partition("-")
    accusation = state.accusations.get(of)
    if accusation is None or (kind and (of, kind) not in state.actions):
        raise BadRequest(UNKNOWN(name=name))
    said = []
    for action in [one for one in state.actions.values() if one.of == of]:
        if (kind and action.kind != kind) or action.outcome in (REFUSED, UNDONE):
            continue
        doer = doer_of(action.kind, action.target)
        undone = functools.partial(doer.undo, accusation, key_of(state, of))
        outcome, what = attempt(undone, UNDONE)
        if outcome == UNDONE:
            note(book, of, action.kind, action.target, action.node, UNDONE, now, what)
        said.append(f"{of} {action.kind} {action.node}: {outcome}: {what}")
    if not kind and not accusation.closed:
        book.note({"event": "closed", "at": now, "name": of, "why": f"undone by {by}"})
        said.append(f"{of} no longer accuses {accusation.node}")
    return said


# --- the kinds ------------------------------------------------------------------------------------


def reason_for(accusation: Accusation) -> str:
    """Return the reason of a drained node: as ``sinfo -R`` shows it whole."""
    return f"roll {accusation.name} {accusation.short}"[:_REASON].strip()


def ran(words: Sequence[str]) -> str:
    """Run a command of the scheduler's; raise :class:`NotTaken` where it fails."""
    try:
        ended = capture(words, timeout=_COMMAND_S)
    except subprocess.TimeoutExpired:
        raise Unsure(f"`{shlex.join(words)}` took more than {_COMMAND_S:g} s") from None
    except OSError as error:
        raise NotTaken(f"{words[0]}: {error.strerror}") from None
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or [f"{words[0]} failed"])[-1]
        raise NotTaken(last)
    return shlex.join(words)


def drain(scheduler: Scheduler) -> Doer:
    """Return how a node is given to no further job."""

    def words(one: Accusation) -> list[str]:
        return shlex.split(scheduler.drain_line([one.node], reason_for(one)))

    def find(one: Accusation, _: str) -> str | None:
        state = scheduler.node_states().get(one.node)
        if state is None:
            raise NotTaken(f"{scheduler.name} knows no node {one.node}")
        return f"it was drained already: {state.reason}" if state.drained else None

    def undone(one: Accusation, _: str) -> str:
        state = scheduler.node_states().get(one.node)
        if state is None or not state.drained:
            return "it was in use already"
        if state.reason.split()[:2] != reason_for(one).split()[:2]:
            raise NotTaken(f"another reason keeps it drained: {state.reason}")
        return ran(shlex.split(scheduler.resume_line(one.node)))

    return Doer(
        *(DRAIN, scheduler.name),
        plan=lambda one: shlex.join(words(one)),
        do=lambda one, _: ran(words(one)),
        undo=undone,
        find=find,
    )


def issue(url: str) -> Doer:
    """Return how an issue is made in GitLab, ``url`` being that of the project in its API."""
    issues = f"{url.rstrip('/')}/issues"

    def issue_with(key: str) -> Mapping[str, Any] | None:
        query = urllib.parse.urlencode({"search": key, "in": "title", "state": "all"})
        listed = ask_gitlab("GET", f"{issues}?{query}")
        if not isinstance(listed, list):
            raise Unsure(NOT_GITLAB)
        # A search may find more than what was asked for.
        return next((one for one in listed if key in str(one.get("title"))), None)

    def find(_: Accusation, key: str) -> str | None:
        known = issue_with(key)
        return None if known is None else str(known.get("web_url"))

    def do(one: Accusation, key: str) -> str:
        content = {"title": f"{one.node}: {one.short} [{key}]", "description": text_of(one, key)}
        made = ask_gitlab("POST", issues, content)
        if not isinstance(made, dict) or "iid" not in made:
            raise Unsure("its answer names no issue")
        return str(made.get("web_url", made["iid"]))

    def undone(one: Accusation, key: str) -> str:
        known = issue_with(key)
        if known is None:
            return "there is no such issue"
        words = {"body": f"{one.name} was undone: {one.node} is no longer accused."}
        ask_gitlab("POST", f"{issues}/{known['iid']}/notes", words)
        ask_gitlab("PUT", f"{issues}/{known['iid']}", {"state_event": "close"})
        return f"closed {known.get('web_url')}"

    return Doer(ISSUE, url, lambda one: f"POST {issues} ({one.node})", do, undone, find)


def webhook(url: str) -> Doer:
    """Return how a server is told by JSON; its ``Idempotency-Key`` is that of the accusation."""

    def post(one: Accusation, key: str, undone: bool) -> str:
        content = {"key": key, "undone": undone, **facts_of(one)}
        own = f"{key}-undone" if undone else key
        headers = {"Content-Type": "application/json", "Idempotency-Key": own}
        send(url, json.dumps(content).encode(), headers)
        return url

    return Doer(
        *(WEBHOOK, url),
        plan=lambda one: f"POST {url} ({one.node})",
        do=lambda one, key: post(one, key, False),
        undo=lambda one, key: post(one, key, True),
    )


def mail(to: str) -> Doer:
    """Return how somebody is written to by sendmail(8)."""

    def sent(one: Accusation, key: str, head: str) -> str:
        # By its id a reader's program knows a mail that comes twice.
        lines = [f"To: {to}", f"Subject: {head}", f"Message-ID: <{key}@clustergate>"]
        lines += ["Auto-Submitted: auto-generated", "", text_of(one, key)]
        program = shutil.which("sendmail", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            raise NotTaken("there is no sendmail on PATH or in /usr/sbin")
        try:
            ended = capture([program, "-oi", "-t"], "\n".join(lines) + "\n", timeout=_COMMAND_S)
        except subprocess.TimeoutExpired:
            raise Unsure(f"{program} took more than {_COMMAND_S:g} s") from None
        if ended.returncode:
            raise NotTaken(f"{program} ended with exit status {ended.returncode}")
        return to

    return Doer(
        *(MAIL, to),
        plan=lambda one: f"mail to {to} ({one.node})",
        do=lambda one, key: sent(one, key, f"{one.node}: {one.short}"),
        undo=lambda one, key: sent(one, f"{key}-undone", f"undone: {one.node}: {one.short}"),
    )


def facts_of(one: Accusation) -> dict[str, Any]:
    """Return what an accusation says, for programs."""
    own = ("name", "node", "kind", "at", "log_evidence", "log_bound", "why")
    return {key: getattr(one, key) for key in own}


def text_of(one: Accusation, key: str) -> str:
    """Return what an accusation says, for people."""
    return (
        f"{one.node} is slow: {one.why}.\n\nclustergate roll accused it as {one.name} ({key}).\n"
        f"`clustergate roll --status` shows all nodes, `clustergate roll --undo {one.name}` takes "
        "this back with all that was done about it.\n"
    )


def doer_of(kind: str, target: str, scheduler: Scheduler) -> Doer:
    """Return the action of a kind; ``target`` is its URL or address."""
    if kind == DRAIN:
        return drain(scheduler)
    return {ISSUE: issue, WEBHOOK: webhook, MAIL: mail}[kind](target)
