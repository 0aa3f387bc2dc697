"""How a check runs HPL: as it was set by hand, else as it was tuned, else as HPL does by default.

Pure, but for :func:`find_tuning`, which reads the tuning files of site configs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clustergate.benchmarks.hpl.sizing import DEFAULT_NB, HplInput, process_grid
from clustergate.tuning.file import HplTuning, read_tuning, tuning_file
from clustergate.tuning.space import HplOptions, input_of
from clustergate.wording.notation import counted


@dataclass(frozen=True)
class HplRequest:
    """What a check is asked to run, as far as a tuning has a say in it.

    ``node_model`` None stands for a node whose model is not known here. ``nb``, ``ranks`` and
    ``cores_per_rank`` are what was set by hand, 0 for what was left open. Where ``layout_is_fixed``
    ranks and cores belong to the benchmark and are not for a tuning to choose.
    """

    build_key: str
    node_model: str | None
    cores_per_node: int
    nb: int = 0
    ranks: int = 0
    cores_per_rank: int = 0
    layout_is_fixed: bool = False


@dataclass(frozen=True)
class HplPlan:
    """How HPL is run, and why so.

    ``settings`` are those that its figures depend on besides, by name: figures of tuned runs are
    not to be judged by references of others. ``note`` is a sentence for the report, empty where
    there is nothing to say.
    """

    nb: int
    cores_per_rank: int
    tuning: HplTuning | None = None
    settings: Mapping[str, str | int] = field(default_factory=dict)
    note: str = ""

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that the ranks need."""
        return self.tuning.environment if self.tuning else {}

    def grid(self, ranks: int) -> tuple[int, int]:
        """Return the process grid: the tuned one for the tuned layout, else the squarest."""
        if self.tuning and self.cores_per_rank == self.tuning.cores_per_rank:
            return self.tuning.grid(ranks)
        return process_grid(ranks)

    def hpl_input(self, n: int, ranks: int) -> HplInput:
        """Return the input for a problem of order ``n`` on ``ranks`` processes."""
        options = self.tuning.options() if self.tuning else {}
        return input_of([HplOptions(**options | {"nb": self.nb})], n, [self.grid(ranks)])


def find_tuning(site_configs: Sequence[Path], stack: str) -> tuple[HplTuning, Path] | None:
    """Return the tuning of a stack and the file it is in, None where no site config has one.

    The last of several site configs wins, as in ReFrame. Raises
    :class:`BadRequest`.
    """
    for path in map(tuning_file, reversed(site_configs)):
        if tuning := read_tuning(path, stack):
            return tuning, path
    return None


def plan_hpl(asked: HplRequest, tuned: tuple[HplTuning, Path] | None = None) -> HplPlan:
    """Return how to run HPL, with the tuning that was ``found`` and its file.

    A tuning for another build, node or layout is not used, and the note says what to do.
    """
    cores_per_rank = asked.cores_per_rank or 1
    tuning, path = tuned or (None, None)
    why_not = _why_not(tuning, asked, cores_per_rank) if tuning else ""
    if tuning is None or why_not:
        nb = asked.nb or DEFAULT_NB
        settings = {"nb": nb} if nb != DEFAULT_NB else {}
        note = f"HPL ran untuned: {path}: {why_not}" if why_not else ""
        return HplPlan(nb, cores_per_rank, None, settings, note)
    nb = asked.nb or tuning.nb
    if not (asked.ranks or asked.cores_per_rank or asked.layout_is_fixed):
        cores_per_rank = tuning.cores_per_rank
    by_hand = {"nb": nb} if nb != tuning.nb else {}
    note = (
        f"HPL ran as tuned on {tuning.date} (NB={nb}{', set by hand' if by_hand else ''}, "
        f"{counted(cores_per_rank, 'core')} per rank): {path}"
    )
    return HplPlan(nb, cores_per_rank, tuning, {"tuned": "yes", **by_hand}, note)


def _why_not(tuning: HplTuning, asked: HplRequest, cores_per_rank: int) -> str:
    mismatch = tuning.mismatch(asked.build_key, asked.node_model, asked.cores_per_node)
    if mismatch:
        return mismatch
    if asked.layout_is_fixed and tuning.cores_per_rank != cores_per_rank:
        return (
            f"HPL was tuned with {counted(tuning.cores_per_rank, 'core')} per rank, and the other "
            f"parts of this benchmark run with {cores_per_rank}"
        )
    return ""
