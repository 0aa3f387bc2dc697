"""The runs of this home in short: what they were, who made them, how they ended, what they take."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import Timeout

from clustergate.core import store
from clustergate.core.files.shared import locked
from clustergate.core.files.whole import read_json
from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Reason, Words
from clustergate.core.store import RUN_DAMAGED_CASE
from clustergate.judge.history import stored_runs
from clustergate.judge.history.stored_runs import (
    ASKED,
    in_order,
    is_named_as_run,
    is_trial,
    noted,
)
from clustergate.launch.plan import PLAN

ENDED, LOCK = "ended.json", "lock"
MADE, GATE = stored_runs.MADE, stored_runs.GATE
VERDICTS, AB = "verdicts.json", "ab.json"
OF_A_BEGUN_GATE = ("system", "mode", "by", "called", "trial")
"""What a gate without an answer says of itself."""
PRINTED = "reframe.out"
"""What ReFrame printed of the cases of a run."""
SUMMARY, JUNIT = "summary.txt", "junit.xml"
_PAGES = ("gate.html", "report.html", "ab.html", "screening/screening.html")
"""What a browser shows of a run, the page with the answer first."""
# Also of runs made before they noted it themselves.
_KINDS = {GATE: "gate", ASKED: "check", "screening": "screen", "tuning": "tune"}
RUNNING, UNFINISHED = "running", "unfinished"


@dataclass(frozen=True)
class StoredRun:
    """A run on disk.

    ``kind`` is the command that made it, ``verdict`` how it ended: a verdict, the word of a gate or
    of an A/B, ``running``, ``unfinished``, or nothing where a command has none. What is not known
    is empty. A ``trial`` is no standard of any other run.
    """

    run: str
    started: datetime.datetime
    kind: str
    system: str
    mode: str
    by: str
    verdict: str
    size_bytes: int
    trial: bool = False

    def plain(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "started": self.started.isoformat()}


def keep_made(
    run: str, kind: str, system: str, called: Sequence[Sequence[str]] = (), **more: Any
) -> None:
    """Note which command makes a run, on which system, who started it, and ``more`` of its own.

    ``called`` is the call of an :class:`~clustergate.core.commands.Invocation`.
    """
    made = {"kind": kind, "system": system, "by": store.user_name(), "called": called}
    store.write_json(store.run_folder(run) / MADE, {**made, **more})


def call_of(run: str) -> Sequence[Sequence[str]]:
    """Return the call that made such a run, nothing of one that did not note it."""
    called: Sequence[Sequence[str]] = noted(store.run_folder(run) / MADE).get("called", ())
    return called


def listed_runs(state: Path | None = None) -> list[StoredRun]:
    """Return the runs of a home, the newest first."""
    every = in_order(state=state, trials=True)
    return [stored_run(folder, state, started) for started, folder in reversed(every)]


def stored_run(
    folder: Path, state: Path | None = None, started: datetime.datetime | None = None
) -> StoredRun:
    """Return what the run in a folder was; ``started`` is as its name says, if not given."""
    made, asked, ended, gate = (noted(folder / n) for n in (MADE, ASKED, ENDED, GATE))
    asked = {**made, **asked, **gate}
    kind = kind_of(folder)
    verdict = verdict_of(folder)
    if not verdict and is_running(folder):
        verdict = RUNNING
    answered = {"check": ended, "screen": ended, "ab": (folder / AB).exists(), "gate": False}
    if not verdict and not answered.get(kind, True):
        verdict = UNFINISHED
    system = asked.get("system", Path(str(asked.get("site", ""))).stem)
    return StoredRun(
        folder.name,
        started or stored_runs.started_of(folder),
        kind,
        str(ended.get("system", system)),
        str(asked.get("mode", "")),
        str(asked.get("by", "")),
        verdict,
        sum(sizes_bytes(one)[0] for one in folders_of(folder.name, state)),
        is_trial(folder),
    )


def is_of_the_suite(folder: Path) -> bool:
    """Tell whether a folder is that of a run, by its name, or by what only a run leaves."""
    if folder.is_symlink():
        return False
    left = (*_KINDS, MADE, VERDICTS, AB, PRINTED, "cases/*.json", f"screening/{PLAN}")
    return is_named_as_run(folder.name) or any(any(folder.glob(name)) for name in left)


def verdict_of(folder: Path) -> str:
    """Return how a run ended: a verdict, the word of a gate or of an A/B; empty if not known."""
    if (folder / AB).exists():
        # Earlier versions kept the word in the summary alone.
        return str(noted(folder / AB).get("word") or _said_first(folder)).lower()
    name, key = (GATE, "word") if (folder / GATE).exists() else (ENDED, "verdict")
    return str(noted(folder / name).get(key, ""))


def _said_first(folder: Path) -> str:
    with contextlib.suppress(OSError):
        text = (folder / SUMMARY).read_text(encoding="utf-8", errors="replace")
        return text.strip().partition(":")[0]
    return ""


def kind_of(folder: Path) -> str:
    kinds = (kind for name, kind in _KINDS.items() if (folder / name).exists())
    return next(kinds, "") or str(noted(folder / MADE).get("kind", ""))


RUN_UNFINISHED = Words(
    "run.unfinished",
    "the run {run} has no {lacks}",
    cause="it was interrupted, or it failed",
    remedy="run `clustergate {command}`; its files are in {folder}",
)
NOT_BEGUN = Words(
    "run.not-begun",
    "the run {run} has no {lacks}",
    cause="none of its stacks could be set up, or it was interrupted before they were",
    remedy=(
        "fix what `clustergate doctor` reports, then run `clustergate {command}`; its files are "
        "in {folder}"
    ),
)
GOES_ON = Words(
    "run.goes-on",
    "the run {run} has no {lacks} yet",
    cause="it is still running",
    remedy="wait until it has ended; {folder}/reframe.out shows how far it has got",
)
NO_SUMMARY = Words(
    "run.no-summary",
    "the run {run} has no {lacks}",
    cause="`reframe` ran by itself, or what made it ended early",
    remedy="`clustergate history --all` has the figures of what ran; its files are in {folder}",
)


def lacking(folder: Path, lacks: str) -> BadRequest:
    """Return what to raise of a run without a summary, a page or an answer: how to get one."""
    facts = {"run": folder.name, "lacks": lacks, "folder": str(folder)}
    if is_running(folder):
        return BadRequest(GOES_ON(**facts))
    kind = kind_of(folder)
    if kind == "gate" or (kind in ("check", "screen") and not (folder / ENDED).is_file()):
        command = kind if kind == "gate" else f"{kind} --resume {folder.name}"
        begun = kind != "check" or (folder / PRINTED).is_file()
        error = BadRequest((RUN_UNFINISHED if begun else NOT_BEGUN)(command=command, **facts))
        if kind == "gate":
            # What comes next is that call again; of an answer that was taken back the screening
            # in the same folder has it.
            error.call = noted(folder / GATE).get("called") or call_of(folder.name)
        return error
    return BadRequest(NO_SUMMARY(**facts))


def require_answer(folder: Path) -> None:
    """Raise :class:`BadRequest` for a gate without one: what its benchmarks say is none."""
    if (folder / GATE).is_file() and not noted(folder / GATE).get("word"):
        raise lacking(folder, "answer")


def take_back(folder: Path) -> None:
    """Let a run that could not tell its answer have none, as one that did not end."""
    begun = noted(folder / GATE)
    # A check's table is all that is left of hours; of the others these say the answer.
    page = {"gate": _PAGES[0], "screen": _PAGES[-1]}.get(kind_of(folder))
    answers = (SUMMARY, page) if page else ()
    for name in (ENDED, VERDICTS, JUNIT, *answers):
        (folder / name).unlink(missing_ok=True)
    if begun:
        kept = {key: begun[key] for key in OF_A_BEGUN_GATE if key in begun}
        try:
            store.write_json(folder / GATE, {"status": None, **kept})
        except store.StoreError:
            (folder / GATE).unlink()


def page_of(folder: Path) -> Path | None:
    """Return the page of a run for a browser, None where there is none.

    Raises :class:`BadRequest` as :func:`require_answer` does.
    """
    require_answer(folder)
    return next((folder / name for name in _PAGES if (folder / name).is_file()), None)


def locks_of(folder: Path) -> list[Path]:
    """Return the locks of a run: its own, and those of what it measures in folders of their own.

    That are golden builds, and the nodes of further partitions.
    """
    return [folder / LOCK, *sorted(folder.glob(f"*/{LOCK}"))]


def is_running(folder: Path) -> bool:
    """Tell whether a process holds a lock of a run."""
    return any(lock.exists() and _is_held(lock) for lock in locks_of(folder))


def _is_held(lock: Path) -> bool:
    try:
        with locked(lock, wait=False):
            return False
    except (Timeout, OSError, ClustergateError):
        # It is held; or it is somebody else's, who does not share it, or nobody can tell.
        return True


def folders_of(run: str, state: Path | None = None) -> list[Path]:
    """Return all that a run left in this home: results, stage folders, ReFrame's copies."""
    home = state or state_dir()
    places = (store.run_folder(run, home), home / "stage" / run, home / "output" / run)
    return [place for place in places if place.is_dir()]


def sizes_bytes(folder: Path) -> tuple[int, int]:
    """Return the size of all files below a folder, and of those that are nowhere else as well.

    The latter is what it would free to remove the folder: a file with hard links elsewhere stays.
    """
    whole = freed = 0
    links: dict[tuple[int, int], tuple[int, int, int]] = {}
    # Of a run that goes on, files come and go.
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                continue
            state = path.lstat()
            key = state.st_dev, state.st_ino
            links[key] = state.st_size, state.st_nlink, links.get(key, (0, 0, 0))[2] + 1
    for size, all_links, here in links.values():
        whole += size
        freed += size if here >= all_links else 0
    return whole, freed


# --- what may go ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """A run with the reason why it stays, None where it may go."""

    run: StoredRun
    why: Reason | None


@contextlib.contextmanager
def writing_baseline() -> Iterator[None]:
    """Let nobody else of this home write references meanwhile.

    Raises :class:`ClustergateError` where that cannot be.
    """
    path = lock_of_baselines()
    store.make_folder(path.parent)
    try:
        with locked(path):
            yield
    except OSError as error:
        raise store.unwritable(path, error) from None


def lock_of_baselines() -> Path:
    return _baselines().with_suffix(".lock")


def keep_for_baseline(runs: Collection[str]) -> None:
    """Note in this home of which runs references were made, besides those noted before.

    References are a site's files: whoever shares the home may not have them, and prunes all the
    same. It is called within :func:`writing_baseline`; raises :class:`ClustergateError` where it
    cannot be noted.
    """
    store.write_json(_baselines(), sorted({*runs, *runs_of_baselines()}))


def runs_of_baselines() -> set[str]:
    """Return the runs that references were made of; raises BadRequest where nobody can tell."""
    try:
        return set(read_json(_baselines()))
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, TypeError) as error:
        raise BadRequest(RUN_DAMAGED_CASE(path=_baselines(), why=error)) from None


def _baselines() -> Path:
    return store.runs_folder().with_name("baselines.json")


PRUNE_RUNNING = Words("prune.running", "still running")
PRUNE_BASELINE = Words("prune.baseline", "from the days of the baseline of {system}")
LAST_OPEN = Words("prune.last-open", "the last gate of {system} that opened")
PRUNE_YOUNG = Words("prune.young", "started after {before}")
PRUNE_NEWEST = Words("prune.newest", "among the newest {newest} of their system and mode")


def what_stays(
    runs: Sequence[StoredRun],
    before: datetime.datetime,
    newest: int,
    of_baselines: Mapping[str, Collection[datetime.date]],
    noted: Collection[str] = (),
) -> list[Kept]:
    """Return which runs stay and why, the newest first as they come.

    Those that did not start ``before`` then, the ``newest`` so many of each system and mode, the
    last gate that opened on each system, those from the days that are ``of_baselines`` of a system
    or ``noted`` by :func:`keep_for_baseline`, and those that go on.
    """
    seen: dict[tuple[str, str, str], int] = {}
    opened: set[str] = set()
    kept = []
    for run in runs:
        alike = (run.kind, run.system, run.mode)
        seen[alike] = seen.get(alike, 0) + 1
        day = run.started.date()
        # Days are those of the place where a baseline was made.
        around = {day + datetime.timedelta(days=k) for k in (-1, 0, 1)}
        # Of a plain call of ReFrame nobody noted the system.
        days = [of for system, of in of_baselines.items() if run.system in ("", system)]
        of_baseline = run.run in noted or any(not around.isdisjoint(of) for of in days)
        opens, why = run.verdict == "OPEN" and not run.trial, None
        if run.verdict == RUNNING:
            why = PRUNE_RUNNING()
        elif of_baseline:
            why = PRUNE_BASELINE(system=run.system)
        elif opens and run.system not in opened:
            why = LAST_OPEN(system=run.system)
        elif run.started > before:
            why = PRUNE_YOUNG(before=f"{before:%Y-%m-%d %H:%M}")
        elif seen[alike] <= newest:
            why = PRUNE_NEWEST(newest=newest)
        if opens:
            opened.add(run.system)
        kept.append(Kept(run, why))
    return kept


def remove(run: str, state: Path | None = None) -> None:
    """Remove all that a run left in this home; raises OSError where that cannot be."""
    for folder in folders_of(run, state):
        shutil.rmtree(folder)


def places(state: Path | None = None) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the folders of a home beside its runs, with :func:`sizes_bytes` of them."""
    home = state or state_dir()
    for folder in sorted(home.glob("*")):
        if folder.is_dir() and folder.name not in ("results", "stage", "output"):
            yield folder.name, sizes_bytes(folder)
