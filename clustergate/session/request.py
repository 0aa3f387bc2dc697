"""What a run is asked for, kept beside its results so that it can be taken up again."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from clustergate.session.resuming import ResumeError, read_asked, write_asked
from clustergate.sites import modes


@dataclass(frozen=True)
class Request:
    """What is to be run: a mode on a site, with some of its stacks and checks or all of them.

    ``options`` are further ones for ReFrame, ``process_counts`` what
    :meth:`clustergate.sites.modes.Shape.rank_counts` takes. ``site_told`` says why this site, and
    ``fallback`` that no site config claims the machine and none was named.
    """

    mode: modes.Mode
    site: Path
    stacks: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    process_counts: str = ""
    site_told: str = ""
    fallback: bool = False


def keep(request: Request, run_id: str) -> None:
    """Keep what a run is asked for."""
    content = {**dataclasses.asdict(request), "mode": request.mode.name, "site": str(request.site)}
    write_asked(run_id, content)


def asked_for(run_id: str) -> Request:
    """Return what an earlier run was asked for; raises :class:`~resuming.ResumeError`."""
    asked = read_asked(run_id)
    try:
        return Request(
            modes.mode_named(str(asked["mode"])),
            Path(str(asked["site"])),
            tuple(asked["stacks"]),
            tuple(asked["checks"]),
            tuple(asked["options"]),
            str(asked["process_counts"]),
            str(asked.get("site_told", "")),
            bool(asked.get("fallback")),
        )
    except (KeyError, TypeError) as error:
        raise ResumeError(
            f"what the run {run_id} was asked for is damaged ({error!r}); run again"
        ) from None
