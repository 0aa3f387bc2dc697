"""How a program ended that did not come to its end, by what launchers say of its ranks. Pure."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Words of Hydra and Intel MPI, PRRTE and Open MPI, srun, and of both families' MPI_Abort.
_RANKS = (
    re.compile(r"RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<host>\S+)"),
    re.compile(r"process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited"),
    re.compile(r"Process name: \[[^\]]*,(?P<rank>\d+)\]"),
    re.compile(r"error: (?P<host>\S+): task (?P<rank>\d+): "),
    re.compile(r"called MPI_Abort\(.*\) - process (?P<rank>\d+)"),
    re.compile(r"MPI_ABORT was invoked on rank (?P<rank>\d+)"),
)
_SIGNAL = re.compile(r"KILLED BY SIGNAL: (\d+)|exited on\s+signal (\d+)|\(signal (\d+)\)")
_STATUS = re.compile(r"Exit code:\s+(\d+)|[Ee]xit(?:ed with exit)? code (\d+)|EXIT CODE: (\d+)")
_BY_NAME = {
    name.partition(" (")[0]: number
    for number in signal.valid_signals()
    if (name := signal.strsignal(number))
}
_OF_SRUN = re.compile(
    r"error: \S+: tasks? \d[\d,-]*: (?P<name>[A-Z][a-z ]+?)(?: \(core dumped\))?$"
)
# What launchers print beside the program's own lines.
_OF_LAUNCHERS = re.compile(
    r"=|-{10}|\*{3}|YOUR APPLICATION TERMINATED|This typically refers|Please see the FAQ|"
    r"\[(?:mpiexec|proxy)\b|srun: |slurmstepd|(?:prterun|mpirun) (?:noticed|detected)|"
    r"(?:signal \d+ \(|thus causing the job|Process name: |Exit code: )"
)


@dataclass(frozen=True)
class Crash:
    """``status`` is that of a shell, ``signal`` 0 for none; ``rank`` None where nobody tells."""

    status: int
    signal: int = 0
    rank: int | None = None
    host: str = ""

    @property
    def how(self) -> str:
        """Return how it ended, in words."""
        if self.signal:
            return f"signal {self.signal}, {signal.strsignal(self.signal)}"
        return f"exit status {self.status}"

    @property
    def who(self) -> str:
        """Return whose end it was, in words to add; empty where nobody tells."""
        on = f" on {self.host}" if self.host else ""
        return "" if self.rank is None else f" on rank {self.rank}{on}"


def crash_of(status: int, lines: Iterable[str]) -> Crash:
    """Return how a launch ended with a status other than 0; ``lines`` are all that it printed."""
    text = "\n".join(line.rstrip() for line in lines)
    number = -status if status < 0 else status - 128 if 128 < status < 128 + signal.NSIG else 0
    if match := _SIGNAL.search(text):
        number = int(next(filter(None, match.groups())))
    elif of_srun := [m for line in text.splitlines() if (m := _OF_SRUN.search(line))]:
        number = _BY_NAME.get(of_srun[0]["name"], number)
    elif match := _STATUS.search(text):
        own = int(next(filter(None, match.groups())))
        number = own - 128 if 128 < own < 128 + signal.NSIG else 0
        status = own
    ranked = next((match for one in _RANKS if (match := one.search(text))), None)
    if ranked is None:
        return Crash(status, number)
    host = ranked.groupdict().get("host") or ""
    return Crash(status, number, int(ranked["rank"]), host)


def last_line(lines: Iterable[str]) -> str:
    """Return the last line that is not a launcher's, empty where there is none."""
    own = [line.strip() for line in lines if line.strip() and not _OF_LAUNCHERS.match(line.strip())]
    return own[-1][:200] if own else ""


def rank_of(unfinished: Sequence[int], aborted: Sequence[int]) -> int | None:
    """Return whose end it was by what the ranks noted, None where several may be."""
    for ranks in (aborted, unfinished):
        if len(ranks) == 1:
            return ranks[0]
    return None
