"""What ``clustergate tune hpl`` found, as a file beside the site config that the checks read.

A YAML file with one entry per stack. It is read strictly: a mistyped entry is an error with its
line, never a silent default. An entry speaks for one build on one kind of node;
:meth:`HplTuning.mismatch` tells when it does not speak for the one at hand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from clustergate.benchmarks.hpl.sizing import HplInput, SizingError, process_grid
from clustergate.files.marked_yaml import Document, read_document
from clustergate.files.whole import write_whole
from clustergate.machine.node import Node
from clustergate.model import BadRequest
from clustergate.paths import state_dir
from clustergate.sites import configs as sites
from clustergate.tuning.space import HplOptions, input_of
from clustergate.wording.notation import counted
from clustergate.wording.reasons import Given

SCHEMA = 1
_HEAD = """\
# How HPL runs fastest here, by stack: written by `clustergate tune hpl`, read by the checks.
# Numbers of HPL's options are HPL's own. A stack without an entry runs as HPL does by default.
"""


@dataclass(frozen=True, kw_only=True)
class HplTuning(HplOptions):
    """The fastest way that was found to run HPL with one stack on one kind of node.

    ``ranks`` and the grid ``p`` x ``q`` fill the ``cores`` of one node, with ``cores_per_rank``
    cores and BLAS threads for each rank. ``environment`` is what the ranks need besides. The
    ``measured`` figures are HPL's Gflop/s at order ``n``, DGEMM's at k = NB and the FMA peak, each
    on all of the cores, None where there was no program to measure them.
    """

    date: str
    build_key: str
    node_model: str
    cores: int
    ranks: int
    cores_per_rank: int
    p: int
    q: int
    nb: int
    n: int
    gflops: float
    dgemm_gflops: float | None = None
    fma_peak_gflops: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def mismatch(self, build_key: str, node_model: str | None, cores: int) -> str | None:
        """Return why this does not speak for a build and a node, None when it does.

        ``node_model`` None stands for a node whose model is not known here.
        """
        again = "run `clustergate tune hpl` again"
        if build_key != self.build_key:
            return f"it was tuned with another build ({self.build_key}, now {build_key}): {again}"
        if node_model is not None and node_model != self.node_model:
            return f"it was tuned on another node ({self.node_model}, not {node_model}): {again}"
        if cores != self.cores:
            return f"it was tuned on {counted(self.cores, 'core')}, not {cores}: {again}"
        return None

    def grid(self, ranks: int) -> tuple[int, int]:
        """Return the process grid for a number of ranks: the tuned one for as many as tuned."""
        return (self.p, self.q) if ranks == self.ranks else process_grid(ranks)

    def hpl_input(self, n: int, ranks: int) -> HplInput:
        """Return the input for a problem of order ``n`` on ``ranks`` processes."""
        return input_of([self], n, [self.grid(ranks)])


def model_of(node: Node) -> str:
    """Return the name by which a tuning knows the model of a node."""
    return node.model_name or "unknown"


def tuning_file(site: Path) -> Path:
    """Return where the tuning of a site config's machine lies, whether it is there or not.

    The machine that is described as it is found has its file in the state folder, so that the
    clone stays as it was.
    """
    if site.stem == sites.FALLBACK:
        return state_dir() / "tuning" / f"hpl-{site.stem}.yaml"
    return site.with_name(f"{site.stem}.hpl.yaml")


def read_tuning(path: Path, stack: str) -> HplTuning | None:
    """Return the tuning of a stack, None where there is none.

    Raises :class:`BadRequest` for a file that is not as it should be, whatever the stack.
    """
    return read_tunings(path).get(stack)


def read_tunings(path: Path) -> dict[str, HplTuning]:
    """Return the tunings of all stacks; without the file there are none.

    Raises :class:`BadRequest`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest("file.unreadable", path=path, why=error) from None
    return _Reader(path, read_document(text)).tunings()


def write_tunings(path: Path, tunings: Mapping[str, HplTuning]) -> None:
    """Write the tunings of all stacks so that a reader sees the old file or the new one.

    Raises :class:`BadRequest` when the disk is full or the folder cannot be written.
    """
    content = {
        "schema": SCHEMA,
        "stacks": {name: _plain(tuning) for name, tuning in sorted(tunings.items())},
    }
    text = _HEAD + yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise BadRequest("file.unwritable", path=path, why=error) from None


def _plain(tuning: HplTuning) -> dict[str, Any]:
    """Return an entry of the file, what it is of first and HPL's options after it."""
    content = dataclasses.asdict(tuning)
    return {name: content[name] for name in (*HplTuning.__annotations__, *content)}


# Of each field: what it must be, in words and as types.
_WORDS = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
}


class _Reader:
    def __init__(self, path: Path, document: Document) -> None:
        self.path = path
        self.document = document

    def tunings(self) -> dict[str, HplTuning]:
        for complaint in self.document.complaints:
            raise BadRequest(complaint.reason.at(f"{self.path}:{complaint.line}"))
        content = self.document.data
        if not isinstance(content, dict) or set(content) != {"schema", "stacks"}:
            raise self.error("tuning.keys")
        if content["schema"] != SCHEMA:
            raise self.error("tuning.schema", "schema", schema=SCHEMA)
        stacks = content["stacks"]
        if not isinstance(stacks, dict):
            raise self.error("tuning.no-stacks", "stacks")
        return {stack: self.tuning(stack, entry) for stack, entry in stacks.items()}

    def tuning(self, stack: str, entry: Any) -> HplTuning:
        place = ("stacks", stack)
        if not isinstance(entry, dict):
            raise self.error("tuning.no-options", *place, stack=stack)
        known = {f.name: str(f.type) for f in fields(HplTuning)}
        for name in entry:
            if name not in known:
                raise self.error("tuning.unknown-option", *place, name, name=name)
        for name, wanted in known.items():
            if name not in entry:
                raise self.error("tuning.lacks", *place, stack=stack, name=name)
            self.require(entry[name], wanted, (*place, name))
        tuning = HplTuning(**entry)
        if tuning.p * tuning.q != tuning.ranks:
            facts = {"p": tuning.p, "q": tuning.q, "ranks": tuning.ranks}
            raise self.error("tuning.grid", *place, "p", **facts)
        try:
            tuning.hpl_input(tuning.n, tuning.ranks)
        except SizingError as error:
            raise self.error("tuning.input", *place, why=error) from None
        return tuning

    def require(self, value: Any, wanted: str, place: Sequence[str]) -> None:
        name = place[-1]
        if wanted.startswith("Mapping"):
            entries = value.items() if isinstance(value, dict) else [("", value)]
            if not all(isinstance(text, str) and key for key, text in entries):
                raise self.error("tuning.variables", *place, name=name)
            return
        kind, _, optional = wanted.partition(" | ")
        if optional and value is None:
            return
        is_kind = isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == "bool")
        if not is_kind or (kind in ("int", "float") and value < 0):
            wanted = _WORDS[kind]
            raise self.error("tuning.wrong-value", *place, name=name, wanted=wanted, value=value)

    def error(self, code: str, /, *place: str, **facts: Given) -> BadRequest:
        return BadRequest(code, at=f"{self.path}:{self.document.line(place)}", **facts)
