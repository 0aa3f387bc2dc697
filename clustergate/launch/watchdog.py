"""Whether a launch hangs: it prints nothing, and none of its ranks comes any further.

The proof library counts the MPI calls of every rank. That they take time of processors proves
nothing, since ranks that wait poll; nor does silence, since HPL prints when it is done. A rank that
computes makes no call either: where one may, the launch is waited for longer.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clustergate.core.notation import counted, listed
from clustergate.core.reasons import Reason, Words, numbers
from clustergate.launch.proof.progress import Rank, Report, read_progress
from clustergate.machine.traffic import read_sent, sent_between

# How often it is looked at within the time that no call takes, and in how many reports of a node
# nothing may have changed: one may come late.
_LOOKS, _REPORTS = 9, 4
# Who polls more often than that in a second, and finds nothing, does nothing else.
_POLLING = 1000.0
# Of a core: who takes less, and is in no call, is stopped or waits for a disk.
_IDLE = 0.01
# Bytes that a node sends in a second beside messages: ssh, the scheduler, shared files.
_BESIDE = 100e3
_SILENT_ALONE = 3.0
# MPI_Init of many ranks is the longest of their calls.
_START_OF_A_RANK_S = 0.05
# After the last call a rank may come to its end.
_FIRST, _LAST = "MPI_Init", "MPI_Finalize"
_NAMED = 2
HUNG = Words(
    "launch.no-progress",
    "no progress for {seconds:.0f} s",
    cause="{who}",
    remedy=(
        "it was ended: see whether these nodes reach each other; where an MPI call takes as "
        "long, raise it by `-S longest_call_s=SECONDS`"
    ),
)


@dataclass(frozen=True)
class Patience:
    """For how many seconds nothing may happen in a launch before it hangs.

    ``waiting_s`` where all of its ``ranks`` wait in MPI calls: no call takes longer.
    ``computing_s`` where some rank may compute, and a multiple of that where nothing is known of
    any. On ``several_nodes`` it also counts that the first
    of them sends.
    """

    waiting_s: float
    computing_s: float
    ranks: int
    several_nodes: bool = False

    @staticmethod
    def of(ranks: int, nodes: int, *, call_s: float, computing_s: float) -> Patience | None:
        """Return that with ranks of which no call takes longer, nor a part of the work without one.

        None for one rank alone, which waits for nobody.
        """
        waiting_s = call_s + _START_OF_A_RANK_S * ranks
        return Patience(waiting_s, computing_s, ranks, nodes > 1) if ranks > 1 else None

    @property
    def every_s(self) -> float:
        """How often the ranks tell how far they are, and are looked at."""
        return self.waiting_s / _LOOKS


@dataclass
class _Stand:
    """A rank since its last call: how it was first and last told, and when."""

    host: str
    first: Rank
    first_s: float
    last: Rank
    last_s: float
    unheard: bool = False

    @property
    def _seconds(self) -> float:
        return self.last_s - self.first_s

    @property
    def _polls(self) -> int:
        return self.last.polls - self.first.polls

    @property
    def how(self) -> str:
        """How it stands, a key of the words."""
        if self.last.state in "tT":
            return "stopped"
        if self.last.state in "-XZ" and self.last.call != _LAST:
            return "ended"
        if self.unheard and self.last.call != _LAST:
            return "unheard"
        if self._polls > _POLLING * self._seconds > 0:
            return "polls"
        if self.last.inside and not self._polls:
            return "waits"
        before_s, now_s = self.first.cpu_s, self.last.cpu_s
        if before_s is None or now_s is None or now_s - before_s >= _IDLE * self._seconds:
            return "computes"
        return "idle"


# The most telling first.
_WORDS = {
    "ended": ("has ended", "have ended"),
    "stopped": ("is stopped", "are stopped"),
    "unheard": ("is not heard of any more", "are not heard of any more"),
    "idle": ("does nothing since", "do nothing since"),
    "computes": ("is outside of MPI since", "are outside of MPI since"),
    "polls": ("polls", "poll"),
    "waits": ("waits in", "wait in"),
}
_WITHOUT_A_CALL = ("ended", "stopped", "unheard")


class Watch:
    """What was seen of a launch. Pure: times and counts are told in seconds and bytes.

    ``hung`` is why it was ended, None where it was not.
    """

    hung: Reason | None = None

    def __init__(self, patience: Patience, begun_s: float) -> None:
        self._patience = patience
        self._moved_s = self._looked_s = begun_s
        self._printed: object = None
        self._heard: dict[str, tuple[Report, float]] = {}
        self._stands: dict[tuple[str, int], _Stand] = {}

    def look(
        self, at_s: float, printed: object, reports: Mapping[str, Report], sent_bytes: float = 0.0
    ) -> Reason | None:
        """Return that the launch hangs, and where; None while it may be healthy.

        ``printed`` changes with whatever the launch writes, ``sent_bytes`` left the first node
        since the last look.
        """
        passed_s, self._looked_s = at_s - self._looked_s, at_s
        moved = [printed != self._printed, *(self._hear(at_s, reports))]
        # Who was stopped itself, with the machine or by the scheduler, has seen nothing.
        moved.append(passed_s > 3 * self._patience.every_s)
        moved.append(self._patience.several_nodes and sent_bytes > _BESIDE * passed_s)
        self._printed = printed
        if any(moved):
            self._moved_s = at_s
        stood_s = at_s - self._moved_s
        if stood_s < self._limit_s(at_s):
            return None
        return HUNG(seconds=stood_s, who=self.who())

    def _hear(self, at_s: float, reports: Mapping[str, Report]) -> Iterator[bool]:
        """Take what nodes told anew, and yield for each rank whether it moved."""
        for name, report in reports.items():
            if name in self._heard and self._heard[name][0].number == report.number:
                continue
            self._heard[name] = report, at_s
            for rank in report.ranks:
                key = name, rank.pid
                stand = self._stands.get(key)
                moved = stand is None or stand.last.calls != rank.calls
                # What it took of the processor is told from the second time on.
                if stand is None or moved or stand.first.cpu_s is None:
                    stand = self._stands[key] = _Stand(report.host, rank, at_s, rank, at_s)
                stand.last, stand.last_s = rank, at_s
                yield moved

    def _limit_s(self, at_s: float) -> float:
        slowest_s = max((report.every_s for report, _ in self._heard.values()), default=0.0)
        waiting_s = max(self._patience.waiting_s, _REPORTS * slowest_s)
        for (name, _), stand in self._stands.items():
            stand.unheard = at_s - self._heard[name][1] >= waiting_s
        computing_s = max(self._patience.computing_s, waiting_s)
        stands = self._stands.values()
        if not stands:
            # Silence alone proves little: how long the work takes was only estimated.
            return _SILENT_ALONE * computing_s
        if any(stand.how == "computes" for stand in stands):
            return computing_s
        # With a node that is silent the others of its ranks may not have been told of.
        if len(stands) >= self._patience.ranks or any(stand.unheard for stand in stands):
            return waiting_s
        # Who is missing may still be starting.
        starting = all(stand.last.call == _FIRST for stand in stands)
        return 2 * waiting_s if starting else computing_s

    def who(self) -> str:
        """Return how the ranks stand, in words."""
        alike: dict[tuple[str, str], list[_Stand]] = defaultdict(list)
        for stand in self._stands.values():
            call = "" if stand.how in _WITHOUT_A_CALL else stand.last.call
            alike[stand.how, call].append(stand)
        order = [*_WORDS]
        groups = sorted(alike.items(), key=lambda group: (order.index(group[0][0]), len(group[1])))
        said = [_sentence(how, call, stands) for (how, call), stands in groups[:_NAMED]]
        if others := sum(len(stands) for _, stands in groups[_NAMED:]):
            said.append(f"{counted(others, 'other rank')} elsewhere")
        if (silent := self._patience.ranks - len(self._stands)) > 0:
            said.append(f"{silent} of {counted(self._patience.ranks, 'rank')} told nothing")
        return ", ".join(said)


def _sentence(how: str, call: str, stands: Iterable[_Stand]) -> str:
    ranks = sorted({stand.last.rank for stand in stands})
    hosts = list(dict.fromkeys(stand.host for stand in stands))
    count = sum(1 for _ in stands)
    named = numbers("rank", "ranks", ranks)
    if -1 in ranks or named.count(",") > 3:
        named = counted(count, "rank")
    on = f" on {listed(hosts, 3)}" if hosts else ""
    return f"{named}{on} {_WORDS[how][count > 1]} {call}".rstrip()


def printed_in(folder: Path) -> object:
    """Return what changes when a launch writes anything into its folder."""
    files = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                status = path.stat()
                files.append((path.name, status.st_size, status.st_mtime_ns))
    return sorted(files)


@contextlib.contextmanager
def watching(
    patience: Patience, folder: Path, proofs: Path, end: Callable[[], None]
) -> Iterator[Watch]:
    """Look at a launch meanwhile, and ``end`` it when it hangs.

    ``folder`` is where it writes, ``proofs`` where its ranks tell how far they are.
    """
    over = threading.Event()
    watch = Watch(patience, time.monotonic())

    def look() -> None:
        before = read_sent()
        while not over.wait(patience.every_s):
            now = read_sent()
            sent = sum(sent_between(before, now).values())
            before = now
            now_s = time.monotonic()
            watch.hung = watch.look(now_s, printed_in(folder), read_progress(proofs), sent)
            if watch.hung:
                end()
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()
