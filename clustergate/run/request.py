"""What a run is asked for, kept beside its results so that it can be taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

from clustergate.core import store
from clustergate.core.files.stored import decode, encode
from clustergate.core.files.whole import read_json
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.judge.history.listing import GATE, kind_of
from clustergate.judge.history.stored_runs import ASKED
from clustergate.sites import modes

WAIT_S = 30.0
CONFIRM_WAIT_S = 600.0
_LAUNCHED = "launched"


@dataclass(frozen=True)
class Request:
    """What is to be run: a mode on a site, with some of its stacks and checks or all of them.

    ``options`` are further ones for ReFrame, ``process_counts`` what
    :meth:`clustergate.sites.shape.Shape.rank_counts` takes. ``site_told`` says why this site, and
    ``fallback`` that no site config claims the machine and none was named. ``wait_s`` is for how
    many seconds at most it waits for this node to be quiet, ``strict`` that a case which was so
    disturbed that nothing of it can be judged fails the run. ``without_nodes`` are left out.
    ``called`` is the call of an :class:`~clustergate.core.commands.Invocation`. What looks slow
    is launched again if it is to ``confirm``: a job of that waits at most ``confirm_wait_s`` in a
    queue, and it must be done by ``confirm_until`` (seconds since the epoch, None for whenever).
    So is what keeps no promise that it could, where a gate asks for promises. On a busy node it
    ``stops_busy`` with bounds. A ``trial`` is no standard of any other run.
    """

    mode: modes.Mode
    site: Path
    stacks: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    process_counts: str = ""
    site_told: str = ""
    fallback: bool = False
    wait_s: float = WAIT_S
    strict: bool = False
    without_nodes: str = ""
    called: tuple[tuple[str, ...], ...] = ()
    confirm: bool = True
    confirm_wait_s: float = CONFIRM_WAIT_S
    confirm_until: float | None = None
    promises: bool = False
    stops_busy: bool = False
    trial: bool = False


Launched = Mapping[str, Mapping[str, str]]
"""What the site config sets of the launches of each stack."""


def write_request(request: Request, run_id: str, launched: Launched | None = None) -> None:
    content = {**encode(request), "mode": request.mode.name}
    content |= {"by": store.user_name(), _LAUNCHED: launched or {}}
    store.write_json(store.run_folder(run_id) / ASKED, content)


def launched_otherwise(run_id: str, launched: Launched) -> list[str]:
    """Return the stacks that the site config launches otherwise than when a run was asked for.

    Runs of earlier versions do not say.
    """
    try:
        before = read_json(store.run_folder(run_id) / ASKED)[_LAUNCHED]
        return [
            stack for stack in launched if before.get(stack, launched[stack]) != launched[stack]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


RUN_UNKNOWN = Words(
    "run.unknown",
    "no run {run} in {folder}",
    remedy="`clustergate list runs` lists them",
)
OPTIONS_LOST = Words(
    "run.options-lost",
    "the run {run} cannot be resumed",
    cause="its options were not recorded",
    remedy="start a new run",
)
RUN_GATE = Words(
    "run.gate",
    "{run} is a run of `clustergate gate`, which is not resumed",
    remedy="run `clustergate gate`, which measures anew",
)
RUN_SCREENING = Words(
    "run.screening",
    "{run} is a screening, which `clustergate check` does not resume",
    remedy="`clustergate screen --resume {run}` does",
)
RUN_OPTIONS_DAMAGED = Words(
    "run.options-damaged",
    "{path} is damaged ({why})",
    remedy="start a new run",
)


# What every version wrote of a request.
_ALWAYS = ("site", "stacks", "checks", "options", "process_counts")


def read_request(run_id: str) -> Request:
    """Return what an earlier run was asked for; raises :class:`ClustergateError`."""
    path = store.run_folder(run_id) / ASKED
    if not path.parent.is_dir():
        raise ClustergateError(RUN_UNKNOWN(run=run_id, folder=store.runs_folder()))
    if path.with_name(GATE).exists():
        raise ClustergateError(RUN_GATE(run=run_id))
    if kind_of(path.parent) == "screen":
        raise ClustergateError(RUN_SCREENING(run=run_id))
    try:
        asked = read_json(path)
        mode = modes.mode_named(decode(asked["mode"], str, "mode"))
        forms = get_type_hints(Request)
        of_all = [name for name in forms if name in asked or name in _ALWAYS]
        own = {k: decode(asked[k], forms[k], k) for k in of_all if k != "mode"}
        return Request(mode, **own)
    except FileNotFoundError:
        raise ClustergateError(OPTIONS_LOST(run=run_id)) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClustergateError(RUN_OPTIONS_DAMAGED(path=path, why=error)) from None
