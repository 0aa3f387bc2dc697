"""What ``clustergate tune hpl`` found, as a file beside the site config that the checks read.

A YAML file with one entry per stack. It is read strictly: a mistyped entry is an error with its
line, never a silent default. An entry speaks for one build on one kind of node;
:meth:`HplTuning.mismatch` tells when it does not speak for the one at hand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from clustergate import store
from clustergate.benchmarks.hpl.sizing import HplInput, SizingError, process_grid
from clustergate.files.marked_yaml import Complaint, Document, read_document
from clustergate.machine.node import Node
from clustergate.model import BadRequest
from clustergate.paths import state_dir
from clustergate.references.rules import of_schema
from clustergate.sites import configs as sites
from clustergate.tuning.space import HplOptions, input_of
from clustergate.wording.notation import counted

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
    return _parse(path, read_document(text))


def write_tunings(path: Path, tunings: Mapping[str, HplTuning]) -> None:
    """Write the tunings of all stacks so that a reader sees the old file or the new one.

    Raises :class:`~clustergate.store.StoreError` when it cannot be written.
    """
    content = {
        "schema": SCHEMA,
        "stacks": {name: _plain(tuning) for name, tuning in sorted(tunings.items())},
    }
    store.write_text(path, _HEAD + yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def _plain(tuning: HplTuning) -> dict[str, Any]:
    """Return an entry of the file, what it is of first and HPL's options after it."""
    content = dataclasses.asdict(tuning)
    return {name: content[name] for name in (*HplTuning.__annotations__, *content)}


# Of each field, by its type: what a JSON schema says of it.
_TYPES: Mapping[str, Mapping[str, Any]] = {
    "int": {"type": "integer", "minimum": 0, "description": "a whole number"},
    "float": {"type": "number", "minimum": 0, "description": "a number"},
    "float | None": {"type": ["number", "null"], "minimum": 0, "description": "a number"},
    "str": {"type": "string", "description": "text"},
    "bool": {"type": "boolean", "description": "true or false"},
    "Mapping[str, str]": {
        "type": "object",
        "additionalProperties": {"type": "string", "description": "text"},
        "description": "text by the names of variables",
    },
}


def _exactly(properties: Mapping[str, Any]) -> dict[str, Any]:
    closed = {"additionalProperties": False, "required": list(properties)}
    return {"type": "object", "properties": properties, **closed}


def _schema() -> dict[str, Any]:
    entry = _exactly({f.name: _TYPES[str(f.type)] for f in fields(HplTuning)})
    stacks = {"type": "object", "additionalProperties": entry}
    return _exactly({"schema": {"const": SCHEMA, "description": str(SCHEMA)}, "stacks": stacks})


def _parse(path: Path, document: Document) -> dict[str, HplTuning]:
    # Slow to load, and most machines are not tuned.
    from jsonschema import Draft202012Validator

    complaints = document.complaints or [
        Complaint(document.line(list(error.absolute_path)), of_schema(error))
        for error in Draft202012Validator(_schema()).iter_errors(document.data)
    ]
    if complaints:
        raise BadRequest(complaints[0].reason.at(f"{path}:{complaints[0].line}"))
    tunings = {stack: HplTuning(**entry) for stack, entry in document.data["stacks"].items()}
    for stack, tuning in tunings.items():
        at = f"{path}:{document.line(('stacks', stack))}"
        if tuning.p * tuning.q != tuning.ranks:
            facts = {"p": tuning.p, "q": tuning.q, "ranks": tuning.ranks}
            raise BadRequest("tuning.grid", at=at, **facts)
        try:
            tuning.hpl_input(tuning.n, tuning.ranks)
        except SizingError as error:
            raise BadRequest(error.reason.at(at)) from None
    return tunings
