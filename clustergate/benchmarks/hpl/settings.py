"""How a check runs HPL: as set by hand, else as the site config says, else as HPL does by default.

A site config says it of a stack: ``stack("mpich", hpl={"nb": 192, "ranks_per_node": 1, "grid":
"1x1"})``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from clustergate.benchmarks.descriptor import Trial
from clustergate.benchmarks.hpl.output import parse_hpl
from clustergate.benchmarks.hpl.sizing import (
    DEFAULT_NB,
    HplInput,
    SizingError,
    hpl_expectation,
    limits_of,
    process_grid,
    render_hpl_dat,
)
from clustergate.core.model import Row
from clustergate.core.notation import counted
from clustergate.core.reasons import Words
from clustergate.core.words import INPUT_NOT_TAKEN

# Fields of an HplInput that hold lists, by the names that one of their values has here.
_LISTED = {
    "nb": "nb_values",
    "depth": "depths",
    "bcast": "bcasts",
    "pfact": "pfacts",
    "nbmin": "nbmins",
    "ndiv": "ndivs",
    "rfact": "rfacts",
}
_N_OF_A_TRIAL = 500
# What is no field of an HplInput.
_LAID_OUT = ("ranks_per_node", "grid", "environment")


@dataclass(frozen=True, kw_only=True)
class HplSettings:
    """What is set of HPL: its options in HPL's own code numbers, and how ranks are laid out.

    ``ranks_per_node`` 0 is one on each core; each has as many BLAS threads as cores. The ``grid``,
    such as ``1x2``, is of that many ranks; empty is the squarest. ``environment`` is what the ranks
    need besides.
    """

    nb: int = DEFAULT_NB
    ranks_per_node: int = 0
    grid: str = ""
    depth: int = 1
    bcast: int = 1
    pfact: int = 1
    nbmin: int = 4
    ndiv: int = 2
    rfact: int = 2
    swap: int = 2
    swapping_threshold: int = 64
    l1_transposed: bool = True
    u_transposed: bool = True
    equilibration: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)

    def hpl_input(self, n: int, grid: tuple[int, int]) -> HplInput:
        """Return the input for a problem of order ``n`` on a grid of processes."""
        said: dict[str, Any] = {
            f.name: getattr(self, f.name) for f in fields(self) if f.name not in _LAID_OUT
        }
        listed: dict[str, Any] = {name: (said.pop(one),) for one, name in _LISTED.items()}
        p, q = grid
        return HplInput(n_values=(n,), p_values=(p,), q_values=(q,), **listed, **said)


def settings_schema() -> dict[str, Any]:
    """Return the JSON schema of ``hpl={…}`` in a site config."""
    known: dict[str, Any] = {
        f.name: {"type": "boolean", "description": "true or false"}
        if f.type == "bool"
        else {"type": "integer", "description": "a code number of HPL's own", **_bounds(f.name)}
        for f in fields(HplSettings)
        if f.name not in _LAID_OUT
    }
    known["nb"]["description"] = "the block size NB"
    known["ranks_per_node"] = {
        **{"type": "integer", "minimum": 1},
        "description": "MPI processes of a node; the cores are shared out among them",
    }
    known["grid"] = {
        "type": "string",
        "pattern": r"^[1-9]\d*x[1-9]\d*$",
        "description": "the process grid P x Q of one node's ranks, such as 1x2",
    }
    known["environment"] = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "variables of the ranks",
    }
    return {
        "type": "object",
        "description": "how HPL and HPCC are run with the stack",
        "properties": known,
        "additionalProperties": False,
    }


def _bounds(name: str) -> dict[str, int]:
    smallest, largest = limits_of(_LISTED.get(name, name))
    return {"minimum": smallest, "maximum": largest}


OTHER_RANKS = Words(
    "sizing.other-ranks",
    "a {grid} grid needs {needed} ranks, and {ranks} are launched",
    remedy="set the ranks, too: -S ranks={needed}",
)


def grid_of(text: str, ranks: int) -> tuple[int, int]:
    """Return P and Q of a grid such as ``1x2``; raises SizingError unless it holds the ranks."""
    p, _, q = text.partition("x")
    if not (p.isdecimal() and q.isdecimal()) or int(p) * int(q) == 0:
        facts = {"name": "the grid", "wanted": "P x Q, such as 1x2"}
        raise SizingError(INPUT_NOT_TAKEN(value=text, **facts))
    if int(p) * int(q) != ranks:
        raise SizingError(OTHER_RANKS(grid=text, needed=int(p) * int(q), ranks=ranks))
    return int(p), int(q)


@dataclass(frozen=True)
class HplRequest:
    """What a check is asked to run; 0 and empty are what nobody set by hand.

    Where ``layout_is_fixed`` ranks and cores belong to the benchmark, and no setting decides them.
    """

    cores_per_node: int
    nb: int = 0
    grid: str = ""
    ranks: int = 0
    cores_per_rank: int = 0
    layout_is_fixed: bool = False


@dataclass(frozen=True)
class HplPlan:
    """How HPL is run, and why so.

    ``of_site`` is what the site config says, where that is taken. ``note`` is a sentence for the
    report, empty where there is nothing to say.
    """

    settings: HplSettings
    cores_per_rank: int
    asked: HplRequest
    of_site: HplSettings | None = None
    note: str = ""

    @property
    def nb(self) -> int:
        return self.settings.nb

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that the ranks need."""
        return self.settings.environment

    def grid(self, ranks: int) -> tuple[int, int]:
        """Return the process grid: by hand, the site's for its own ranks, else the squarest."""
        return grid_of(self.asked.grid, ranks) if self.asked.grid else self._grid_left_open(ranks)

    def _grid_left_open(self, ranks: int) -> tuple[int, int]:
        own = self.settings
        as_stated = self.asked.cores_per_node // self.cores_per_rank == own.ranks_per_node
        if own.grid and (as_stated or not own.ranks_per_node):
            p, q = map(int, own.grid.split("x"))
            return (p, q) if p * q == ranks else process_grid(ranks)
        return process_grid(ranks)

    def hpl_input(self, n: int, ranks: int) -> HplInput:
        """Return the input for a problem of order ``n`` on ``ranks`` processes."""
        return self.settings.hpl_input(n, self.grid(ranks))

    def changed(self, ranks: int) -> dict[str, str | int]:
        """Return what HPL's figures depend on besides, by name.

        Figures as the site config says have references of their own, under ``tuned=yes``.
        """
        usual = self.of_site.nb if self.of_site else DEFAULT_NB
        by_hand: dict[str, str | int] = {"nb": self.nb} if self.nb != usual else {}
        if self.asked.grid and self.grid(ranks) != self._grid_left_open(ranks):
            by_hand["grid"] = self.asked.grid
        return {"tuned": "yes", **by_hand} if self.of_site else by_hand


RANKS_AND_CORES = Words(
    "hpl.ranks-and-cores",
    "hpl={{…}} of the site config has {ranks} ranks for the {cores} cores of a node",
    remedy="name a number that divides the cores",
)


def plan_hpl(asked: HplRequest, declared: Mapping[str, Any] | None = None) -> HplPlan:
    """Return how to run HPL by what the site config ``declared`` of it, empty for nothing.

    Raises SizingError for ranks that do not share out the cores of a node.
    """
    cores_per_rank = asked.cores_per_rank or 1
    by_hand: dict[str, Any] = {"nb": asked.nb} if asked.nb else {}
    if not declared:
        return HplPlan(HplSettings(**by_hand), cores_per_rank, asked)
    of_site = HplSettings(**declared)
    ranks = of_site.ranks_per_node or asked.cores_per_node
    stated, rest = divmod(asked.cores_per_node, ranks)
    if rest or not stated:
        facts = {"ranks": ranks, "cores": asked.cores_per_node}
        raise SizingError(RANKS_AND_CORES(**facts))
    if asked.layout_is_fixed and stated != cores_per_rank:
        note = (
            f"HPL ran untuned: the site config has {counted(stated, 'core')} per rank for it, and "
            f"the other parts of this benchmark run with {cores_per_rank}"
        )
        return HplPlan(HplSettings(**by_hand), cores_per_rank, asked, None, note)
    if not (asked.ranks or asked.cores_per_rank or asked.layout_is_fixed):
        cores_per_rank = stated
    settings = dataclasses.replace(of_site, **by_hand)
    named = f"NB={settings.nb}{', set by hand' if settings.nb != of_site.nb else ''}"
    note = f"HPL ran as the site config says ({named}, {counted(cores_per_rank, 'core')} per rank)"
    return HplPlan(settings, cores_per_rank, asked, of_site, note)


def site_line(entry: Mapping[str, Any]) -> str:
    """Return what a site config says in place of an entry of a tuning file of earlier versions.

    Raises KeyError, TypeError or ValueError for what is no such entry.
    """
    kept = {f.name: entry[f.name] for f in fields(HplSettings) if f.name in entry}
    kept |= {"ranks_per_node": int(entry["ranks"]), "grid": f"{entry['p']}x{entry['q']}"}
    HplSettings(**kept).hpl_input(int(entry["n"]), (int(entry["p"]), int(entry["q"])))
    always = ("nb", "ranks_per_node", "grid")
    usual = vars(HplSettings())
    shown = {name: kept[name] for name in always}
    shown |= {k: v for k, v in kept.items() if k not in always and v != usual[k]}
    words = ", ".join(f'"{k}": {_as_python(v)}' for k, v in shown.items())
    return f"hpl={{{words}}}"


def _as_python(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{k}": "{v}"' for k, v in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def trial(ranks: int) -> Trial:
    """Return the launch of a small problem by which a build is tried."""
    asked = HplSettings().hpl_input(_N_OF_A_TRIAL, process_grid(ranks))
    text = render_hpl_dat(asked)

    def parse(lines: Iterable[str], source: str) -> Iterator[Row]:
        return parse_hpl(lines, source=source, expect=hpl_expectation(asked))

    return Trial("xhpl", {"HPL.dat": text, "hpccinf.txt": text}, parse)
