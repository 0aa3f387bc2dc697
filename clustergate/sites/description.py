"""What a site config says: systems, partitions, stacks; typed, with units, checked by one schema.

A site config may say it by :class:`Site`, :class:`Partition` and :class:`Stack`, which an editor
completes, or in ReFrame's own form, dictionaries. Both are held to :func:`site_schema`, which is
ReFrame's own schema with what the suite reads of ``extras``. Pure but for reading these files.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from clustergate.benchmarks.registry import every_benchmark, every_check
from clustergate.files.whole import read_json
from clustergate.model import ClustergateError, NodeFacts
from clustergate.schedulers import SLURM
from clustergate.schedulers.slurm_limits import Limits, limits_of
from clustergate.schedulers.wishes import is_exclusive, partition_of_access, qos_of_access
from clustergate.sites.shape import Shape
from clustergate.stacks import PROVIDERS, StackRequest, suggestion, wheels
from clustergate.stacks.spack.settings import LISTS, SpackSettings
from clustergate.wording.notation import did_you_mean, nearest
from clustergate.wording.reasons import Reason, Words

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

# The extras of other people's tests, as the site config sets them apart.
OTHER_TESTS = "other_tests"
# How like a known name one is that was mistyped, as difflib counts: "gpus_per_node" is another.
ALMOST = 0.8
# The stack of ReFrame itself, which every system has.
BUILTIN = "builtin"
# The feature of environments that are MPI stacks.
MPI_STACK = "mpi-stack"
# What most site configs name; ReFrame takes a fifth of a second to say what else there is.
_OF_STACKS = ("clustergate", "clustergate-srun", "clustergate-ssh")
_USUAL = ("local", "slurm", *_OF_STACKS)
# Less memory for a core than this is memory in another unit: no benchmark fits into it.
_LEAST_BYTES_PER_CORE = 8 << 20


class SiteError(ClustergateError):
    """A site config is missing, damaged, or does not say what it must."""


class SiteWarning(UserWarning):
    """A site config says something that the suite does not read."""


def _extra(says: str, kind: str, *, default: Any = None, **schema: Any) -> Any:
    """Return the field of an extra: what it says, with its unit, and what values it can have."""
    return field(default=default, metadata={"type": kind, "description": says, **schema})


@dataclass(frozen=True, kw_only=True)
class Partition:
    """Nodes of one kind of a system, and how jobs get there.

    Those fields that say what they are are its extras. ``other_tests`` are extras that other
    people's tests read, ``reframe`` further keys of ReFrame's (``max_jobs``, ``env_vars``,
    ``modules`` …). ``environs`` names the stacks, by default all. ``system`` and
    ``excluded_nodes``, those that the hostfile or this run leaves out, are known once it is loaded.
    """

    name: str
    scheduler: str
    launcher: str = "clustergate"
    access: Sequence[str] = ()
    environs: Sequence[str] | None = None
    # Required of every partition; None until the site config has been checked.
    cores_per_node: int = _extra(
        "the physical cores of a node, not hardware threads", "integer", minimum=1, maximum=65536
    )
    memory_bytes_per_node: int = _extra(
        "what jobs may use of a node's memory, in bytes",
        "integer",
        minimum=1 << 26,
        maximum=1 << 50,
    )
    nominal_gflops_per_core: float = _extra(
        "the nominal peak of a core in Gflop/s: GHz times operations per cycle",
        "number",
        exclusiveMinimum=0,
        maximum=2000,
    )
    nodes: int | None = _extra("the number of its nodes", "integer", minimum=1, maximum=1_000_000)
    cache_bytes_per_node: int | None = _extra(
        "all data caches of a node together, in bytes", "integer", minimum=1 << 10, maximum=1 << 40
    )
    link_mb_s: float | None = _extra(
        "what a node can send, in 10**6 bytes/s (12500 for 100 Gbit/s)",
        "number",
        minimum=1,
        maximum=10_000_000,
    )
    fabric: Sequence[str] = _extra(
        "the devices that carry messages, as /sys/class/infiniband or /sys/class/net name them",
        "array",
        default=(),
        items={"type": "string", "minLength": 1},
    )
    exclusive: bool | None = _extra(
        "whether a job has its nodes for itself (default: by --exclusive in access, else as seen)",
        "boolean",
    )
    reserved_cores_per_node: int = _extra(
        "the physical cores of a node that no job gets, such as Slurm's CoreSpecCount, beside "
        "cores_per_node",
        "integer",
        default=0,
        minimum=0,
        maximum=65536,
    )
    waived: str = _extra(
        "why a gate need not see the partition judged", "string", default="", pattern=r"\S"
    )
    bind_to_cores: bool = _extra("whether ranks are bound to cores", "boolean", default=True)
    screen_at_once: int | None = _extra(
        "how many pairs of nodes are screened at once", "integer", minimum=1
    )
    process_counts: Sequence[int] = _extra(
        "the process counts to measure",
        "array",
        default=(),
        items={"type": "integer", "minimum": 1},
        minItems=1,
    )
    placements: Sequence[str] = _extra(
        "how ranks lie",
        "array",
        default=(),
        items={"enum": ["packed", "one-per-node"]},
        minItems=1,
    )
    flush_bytes: int | None = _extra(
        "what a rank writes to flush its caches, in bytes", "integer", minimum=0, maximum=1 << 40
    )
    watts_per_socket: float | None = _extra(
        "the power of a socket in watts", "number", exclusiveMinimum=0, maximum=20_000
    )
    cores_per_socket: int | None = _extra(
        "the physical cores of a socket", "integer", minimum=1, maximum=65536
    )
    power_of: str = _extra("what watts_per_socket is the power of", "string", default="socket")
    mode: str = _extra("the mode of its dry run: that of the study it is of", "string", default="")
    other_tests: Mapping[str, Any] = field(default_factory=dict)
    reframe: Mapping[str, Any] = field(default_factory=dict)
    system: str = ""
    excluded_nodes: int = 0

    @classmethod
    def of(cls, said: Mapping[str, Any], system: str = "") -> Partition:
        keys = dict(said)
        extras = dict(keys.pop("extras", {}))
        stated = {name: extras.pop(name) for name in _SCHEMA_OF if name in extras}
        for name, value in stated.items():
            if _SCHEMA_OF[name]["type"] == "integer":
                # The schema takes 2e9 for an integer.
                stated[name] = int(value)
        return cls(
            **{key: keys.pop(key) for key in _KEYS if key in keys},
            **stated,
            excluded_nodes=extras.pop("excluded_nodes", 0),
            other_tests={**extras.pop(OTHER_TESTS, {}), **extras},
            reframe=keys,
            system=system,
        )

    def as_reframe(self) -> dict[str, Any]:
        """Return the partition in ReFrame's form, the extras of other tests apart."""
        values = {f.name: getattr(self, f.name) for f in EXTRAS}
        stated = {f.name: values[f.name] for f in EXTRAS if values[f.name] != f.default}
        others = {OTHER_TESTS: dict(self.other_tests)} if self.other_tests else {}
        left_out = {"excluded_nodes": self.excluded_nodes} if self.excluded_nodes else {}
        return {
            **self.reframe,
            **{"name": self.name, "scheduler": self.scheduler, "launcher": self.launcher},
            **({"access": list(self.access)} if self.access else {}),
            **({"environs": list(self.environs)} if self.environs is not None else {}),
            "extras": {**self.reframe.get("extras", {}), **stated, **left_out, **others},
        }

    @property
    def fullname(self) -> str:
        """``system:partition``, as ReFrame calls it."""
        return f"{self.system}:{self.name}"

    @property
    def stacks(self) -> Sequence[str]:
        return self.environs or ()

    @property
    def physical_cores_per_node(self) -> int:
        """The cores of a node, those that no job gets included."""
        return (self.cores_per_node or 1) + self.reserved_cores_per_node

    @property
    def shape(self) -> Shape:
        """The size of the partition; of one node where nobody says how many."""
        return Shape(
            # Without a site config ReFrame has a system of its own, of which nothing is stated.
            self.cores_per_node or 1,
            self.nodes or 1,
            tuple(self.process_counts),
            tuple(self.placements),
            self.excluded_nodes,
        )

    @property
    def facts(self) -> NodeFacts:
        """What limits depend on, as far as it is stated."""
        return NodeFacts(
            self.cache_bytes_per_node, self.link_mb_s, exclusive=self.has_nodes_for_itself
        )

    @property
    def has_nodes_for_itself(self) -> bool | None:
        """Whether nobody else's job runs on a job's nodes: as stated, else as ``access`` says.

        None where neither says it: others may, where the scheduler lets them.
        """
        return (is_exclusive(self.access) or None) if self.exclusive is None else self.exclusive

    @property
    def limits(self) -> Limits:
        """What Slurm allows a job of the partition; another scheduler says nothing of it."""
        if self.scheduler not in SLURM:
            return Limits()
        names = partition_of_access(self.access), qos_of_access(self.access)
        return limits_of(*names).within_reservation()


EXTRAS = tuple(one for one in fields(Partition) if one.metadata)
"""The fields of a partition that are its extras."""
NEEDED = ("cores_per_node", "memory_bytes_per_node", "nominal_gflops_per_core")
_SCHEMA_OF = {one.name: one.metadata for one in EXTRAS}
# The keys of ReFrame's partitions that are fields.
_KEYS = ("name", "scheduler", "launcher", "access", "environs")


@dataclass(frozen=True)
class Stack:
    """An MPI stack that a provider puts on disk.

    ``settings`` are the provider's (Spack's, see ``template.py``), ``benchmarks`` say how single
    benchmarks are run with it, by their names, ``pmi`` is what srun is told by ``--mpi``.
    ``waived`` names the checks that a gate need not see judged with it, each with the reason; a
    reason alone waives all. ``reframe`` are further keys of a ReFrame environment.
    """

    name: str
    provider: str = "wheels"
    settings: Mapping[str, Any] = field(default_factory=dict)
    pmi: str = ""
    benchmarks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    waived: Mapping[str, str] | str = ""
    reframe: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Stack:
        extras, keys = dict(said["extras"]), dict(said)
        name, provider = keys.pop("name"), extras.pop("provider")
        settings, pmi = extras.pop(provider, {}), extras.pop("pmi", "")
        waived = extras.pop("waived", "")
        benchmarks = {one: extras.pop(one) for one in settable() if one in extras}
        further = {
            "features": [word for word in keys.pop("features") if word != MPI_STACK],
            "extras": extras,
        }
        return cls(name, provider, settings, pmi, benchmarks, waived, {**keys, **further})

    def as_reframe(self) -> dict[str, Any]:
        further = dict(self.reframe)
        extras = {"provider": self.provider, **further.pop("extras", {})}
        stated = {"pmi": self.pmi, "waived": self.waived, self.provider: self.settings}
        stated |= self.benchmarks
        return {
            "name": self.name,
            "features": [MPI_STACK, *further.pop("features", [])],
            "extras": {**extras, **{key: value for key, value in stated.items() if value}},
            **further,
        }

    @property
    def request(self) -> StackRequest:
        return StackRequest(self.name, self.provider, self.settings)

    @property
    def waivers(self) -> Mapping[str, str]:
        """The reasons why a gate need not see checks judged, by check."""
        if isinstance(self.waived, str):
            return dict.fromkeys(every_check(), self.waived) if self.waived else {}
        return self.waived


def settable() -> dict[str, Mapping[str, Any]]:
    """Return the schemas of what a site config may say of benchmarks with a stack, by name."""
    known = every_benchmark().items()
    return {name: one.of_stack for name, one in known if one.of_stack is not None}


DETECTED = "local"
"""The name of a machine that no site config claims, which is described as it is found."""


UNKNOWN_STACK = Words(
    "site.unknown-stack",
    "the site config names no stack {name!r}",
    remedy="known: {known:list}{meant}",
)


@dataclass(frozen=True, kw_only=True)
class Site:
    """A system: its name, the names of its machines as regular expressions, partitions, stacks.

    ``reframe`` are further keys of ReFrame's, such as ``modules_system``.
    """

    name: str
    hostnames: Sequence[str]
    partitions: Sequence[Partition]
    stacks: Sequence[Stack] = ()
    descr: str = ""
    reframe: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, configured: Mapping[str, Any]) -> Site:
        """Return the first system of a completed site config; its partitions have MPI stacks."""
        keys, environments = dict(configured["systems"][0]), configured["environments"]
        stacks = [Stack.of(e) for e in environments if MPI_STACK in e.get("features", ())]
        parts = [Partition.of(part, keys["name"]) for part in keys.pop("partitions")]
        return cls(
            **{key: keys.pop(key) for key in ("name", "hostnames", "descr") if key in keys},
            partitions=[replace(p, environs=_in_order(stacks, p.stacks)) for p in parts],
            stacks=stacks,
            reframe=keys,
        )

    def as_reframe(self) -> dict[str, Any]:
        """Return the system in ReFrame's form; its stacks are environments beside it."""
        return {
            **self.reframe,
            "name": self.name,
            "descr": self.descr or self.name,
            "hostnames": list(self.hostnames),
            "partitions": list(self.partitions),
        }

    def stacks_named(self, names: Sequence[str]) -> list[Stack]:
        """Return the named stacks, all of them where none is named.

        Raises :class:`SiteError` for a name that the site config does not know.
        """
        known = [stack.name for stack in self.stacks]
        for name in names:
            if name not in known:
                meant = suggestion(name, known, detected=self.name == DETECTED)
                raise SiteError(UNKNOWN_STACK(name=name, known=known, meant=meant))
        return [stack for stack in self.stacks if not names or stack.name in names]

    def partitions_with(self, stacks: Sequence[Stack]) -> list[Partition]:
        return [replace(p, environs=_in_order(stacks, p.stacks)) for p in self.partitions]


def _in_order(stacks: Iterable[Stack], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(stack.name for stack in stacks if stack.name in names)


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_SOME_WORD = r"\S"
_REASON = {
    **_TEXT,
    "description": "why a gate need not see it judged",
    "pattern": _SOME_WORD,
}


@functools.cache
def site_schema() -> dict[str, Any]:
    """Return the JSON schema of what a site config says: ``systems`` and ``environments``.

    It is ReFrame's own, with the extras that the suite reads.
    """
    spec = importlib.util.find_spec("reframe")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "schemas" / "config.json"
    known = read_json(path)
    systems, environments = (known["properties"][key] for key in ("systems", "environments"))
    foreign = {"type": "object", "description": "extras that other people's tests read"}
    systems["items"]["properties"]["partitions"]["items"]["properties"]["extras"] = {
        "type": "object",
        "description": "what the suite must know of a partition's nodes",
        "properties": {
            **{name: dict(schema) for name, schema in _SCHEMA_OF.items()},
            OTHER_TESTS: foreign,
        },
        "required": list(NEEDED),
        # One without the other would be left aside.
        "dependencies": {
            "watts_per_socket": ["cores_per_socket"],
            "power_of": ["watts_per_socket"],
        },
    }
    environments["items"]["properties"]["extras"] = {
        "type": "object",
        "properties": {
            "provider": {"enum": list(PROVIDERS), "description": "who puts the stack on disk"},
            "pmi": {"type": "string", "description": "what srun is told by --mpi"},
            "waived": {
                "type": ["object", "string"],
                "description": "checks that a gate need not see judged, with reasons",
                "pattern": _SOME_WORD,
                "properties": dict.fromkeys(every_check(), _REASON),
                "additionalProperties": False,
            },
            "spack": {
                "type": "object",
                "description": "the settings of Spack",
                "properties": {
                    one.name: _TEXTS if one.name in LISTS else _TEXT
                    for one in fields(SpackSettings)
                },
                "additionalProperties": False,
            },
            "wheels": {
                "type": "object",
                "description": "the settings of the wheels: none",
                "additionalProperties": False,
            },
            "modules": {
                "type": "object",
                "description": "what is loaded: modules, or specs of a Spack",
                "properties": {
                    "load": {**_TEXTS, "description": "names, in this order", "minItems": 1},
                    "use": {**_TEXTS, "description": "further folders of modules"},
                    "spack": {**_TEXT, "description": "the root of a Spack that has them"},
                },
                "required": ["load"],
                "additionalProperties": False,
            },
            **settable(),
            OTHER_TESTS: foreign,
        },
        "if": {"properties": {"provider": {"const": "modules"}}, "required": ["provider"]},
        "then": {"required": ["modules"]},
    }
    environments["items"] |= {
        "if": {
            "properties": {"features": {"contains": {"const": MPI_STACK}}},
            "required": ["features"],
        },
        "then": {
            "properties": {"extras": {"required": ["provider"]}},
            "required": ["extras"],
        },
    }
    return {
        "$schema": known["$schema"],
        "title": "A site config of clustergate, in ReFrame's form",
        "defs": known["defs"],
        "type": "object",
        "properties": {"systems": systems, "environments": environments},
        "required": ["systems", "environments"],
    }


def _violations(said: Mapping[str, Any]) -> Iterator[ValidationError]:
    # Slow to load, and most commands read no site config.
    from jsonschema import Draft7Validator
    from jsonschema.validators import extend

    # A site config is a program: its lists may be tuples, its dictionaries other mappings.
    types = Draft7Validator.TYPE_CHECKER.redefine_many(
        {
            "array": lambda checker, value: isinstance(value, list | tuple),
            "object": lambda checker, value: isinstance(value, Mapping),
            "string": lambda checker, value: isinstance(value, str | Path),
            # No bound holds of what is not a number.
            "number": lambda checker, value: (
                (isinstance(value, int) and not isinstance(value, bool))
                or (isinstance(value, float) and isfinite(value))
            ),
        }
    )
    validator = extend(Draft7Validator, type_checker=types)  # type: ignore[no-untyped-call]
    yield from validator(site_schema()).iter_errors(said)


def to_reframe(said: Site | Partition | Stack | Any) -> Any:
    """Return what somebody described, as dictionaries; what is None is not stated."""
    if isinstance(said, Site | Partition | Stack):
        said = said.as_reframe()
    if not isinstance(said, Mapping):
        return said
    form = dict(said)
    if isinstance(parts := form.get("partitions"), list | tuple):
        form["partitions"] = [
            {"extras": {}, **part} if isinstance(part, Mapping) else part
            for part in map(to_reframe, parts)
        ]
    if isinstance(extras := form.get("extras"), Mapping):
        unstated = {name for name in _SCHEMA_OF if extras.get(name, ...) is None}
        form["extras"] = {key: value for key, value in extras.items() if key not in unstated}
    return form


def merge_other_tests(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return a partition or an environment with the extras of other tests among the others."""
    extras = dict(one.get("extras", {}))
    others = extras.pop(OTHER_TESTS, {})
    return {**one, "extras": {**extras, **others}}


SEVERAL_SYSTEMS = Words(
    "site.several-systems",
    "{names:names} is described beside {name} and would be measured and judged as {name}",
    remedy="describe each system in a file of its own",
)


def require_valid(said: Mapping[str, Any], source: Source) -> None:
    """Refuse what a site config must not say, by file and line.

    Raises :class:`SiteError` for the first thing that is wrong, and warns of extras that nothing
    here reads.
    """
    wrong = sorted(_violations(said), key=lambda e: [*map(str, e.path)])
    for error in wrong:
        raise _error_for(error, said, source)
    _require_known_extras(said, source)
    if others := [system["name"] for system in said["systems"][1:]]:
        facts = {"names": others, "name": said["systems"][0]["name"]}
        raise SiteError(SEVERAL_SYSTEMS(at=source.at("name", others[0]), **facts))
    for system in said["systems"]:
        _require_once("partition", system["partitions"], source, system["name"])
        for partition in system["partitions"]:
            _require_consistent(partition, source)
            _require_backends(partition, source)
            _require_stacks(partition, said["environments"], source)
            _require_launcher(partition, said["environments"], source)
    _require_once("stack", said["environments"], source)
    _require_wheels(said["environments"], source)


@dataclass(frozen=True)
class Source:
    """The file of a site config, and the line at which it says all of it."""

    path: Path
    line: int

    def at(self, word: str, of: str = "") -> str:
        """Return ``file:line`` of a key, or else of a name, within what is called ``of``."""
        return f"{self.path}:{self.line_of(word, of)}"

    def line_of(self, word: str, of: str = "") -> int:
        """Return the line of a key of what is called ``of``; else where that one is named."""
        try:
            tree = ast.parse(self.path.read_bytes())
        except (OSError, ValueError, SyntaxError):
            return self.line
        keys, names = [], []
        for node in ast.walk(tree):
            for key, value, line in entries(node):
                span = (getattr(node, "lineno", line), max(line, getattr(node, "end_lineno", line)))
                if key == "name" and isinstance(value, ast.Constant):
                    names.append((span, str(value.value), line))
                if key == word:
                    keys.append(line)
        line_by_name: dict[str, int] = {}
        for line in keys:
            around = [
                (end - begin, name) for (begin, end), name, _ in names if begin <= line <= end
            ]
            line_by_name.setdefault(min(around, default=(0, ""))[1], line)
        # What several share stands outside of them, and has no name.
        named = next((line for _, name, line in names if name == of), self.line)
        return line_by_name.get(of, line_by_name.get("", named))


def entries(node: ast.AST) -> Iterator[tuple[str, ast.expr, int]]:
    """Yield the keys of a dictionary, a call or an assignment, with their values and lines.

    The first argument of ``stack`` is its name.
    """
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value, key.lineno
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id.lower() == "stack":
            yield from (("name", argument, argument.lineno) for argument in node.args[:1])
        for word in node.keywords:
            yield word.arg or "**", word.value, word.value.lineno
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                yield str(target.slice.value), node.value, target.lineno


def _extras_of(said: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any], set[str]]]:
    """Yield the extras of every partition and stack: its kind, its name, and what is known."""
    schema = site_schema()["properties"]
    partition = schema["systems"]["items"]["properties"]["partitions"]["items"]
    parts = (part for system in said["systems"] for part in system["partitions"])
    for kind, items, described in (
        ("partition", parts, partition),
        ("stack", said["environments"], schema["environments"]["items"]),
    ):
        known = {*described["properties"]["extras"]["properties"]}
        for one in items:
            yield kind, one["name"], one.get("extras", {}), known


OWN_EXTRA = Words(
    "site.own-extra",
    "{key!r} of the {kind} {name} is the suite's own",
    remedy="it does not belong in {other_tests!r}",
)
MISTYPED_EXTRA = Words(
    "site.mistyped-extra",
    "{key!r} of the {kind} {name} is no extra that the suite reads",
    remedy=(
        'did you mean {meant!r}? If another suite\'s tests read it, "{other_tests}": '
        '{{"{key}": …}} in its extras sets it apart'
    ),
)
UNREAD_EXTRA = Words(
    "site.unread-extra",
    "{key!r} of the {kind} {name} is an extra that the suite does not read",
    remedy='if it is of other tests, "{other_tests}": {{"{key}": …}} in its extras sets it apart',
)


def _require_known_extras(said: Mapping[str, Any], source: Source) -> None:
    """Refuse extras that were mistyped, and warn of others that are not set apart."""
    for kind, name, extras, known in _extras_of(said):
        if clash := sorted(extras.get(OTHER_TESTS, {}).keys() & known):
            facts = {"at": source.at(OTHER_TESTS, name), "kind": kind, "name": name}
            raise SiteError(OWN_EXTRA(key=clash[0], other_tests=OTHER_TESTS, **facts))
        for key in sorted(extras.keys() - known, key=str):
            at = source.line_of(str(key), name)
            facts = {"key": key, "kind": kind, "name": name, "other_tests": OTHER_TESTS}
            if meant := nearest(str(key), known, ALMOST):
                where = f"{source.path}:{at}"
                raise SiteError(MISTYPED_EXTRA(at=where, meant=meant, **facts))
            unread = str(UNREAD_EXTRA(**facts))
            warnings.warn_explicit(unread, SiteWarning, str(source.path), at)


def suggestion_for(error: str) -> str:
    """Return the field that Python's error of an argument meant, empty where none is near."""
    known = {one.name for kind in (Site, Partition, Stack) for one in fields(kind)}
    named = re.search(r"unexpected keyword argument '(\w+)'", error)
    return nearest(named[1], known) if named else ""


SITE_LACKS = Words("site.lacks", "{owner} lacks {key!r}{means}{effect}{meant}")
WRONG_VALUE = Words("site.wrong-value", "{key!r} of {owner} is {value}; {wanted}")


def _error_for(error: ValidationError, said: Mapping[str, Any], source: Source) -> SiteError:
    path, schema, instance = list(error.absolute_path), _mapping(error.schema), error.instance
    whose, name = _owner(path, said)
    known, stated = schema.get("properties", {}), _mapping(instance)
    if error.validator == "additionalProperties":
        key = sorted(map(str, stated.keys() - known.keys()))[0]
        within = f"{path[-1]!r} of " * (path[-1] in ("waived", *PROVIDERS))
        return SiteError(_meant(key, known, within + whose).at(source.at(key, name)))
    if error.validator in ("required", "dependencies"):
        needs = {None: schema["required"], **schema.get("dependencies", {})}
        missing = (
            (key, by)
            for by, keys in needs.items()
            for key in keys
            if key not in stated and (by is None or by in stated)
        )
        key, by = next(missing)
        says = known.get(key, {}).get("description", "")
        strange = nearest(key, (str(word) for word in stated if word not in known))
        facts = {
            "means": f" ({says})" * bool(says),
            "effect": f", without which {by!r} has no effect" * bool(by),
            "meant": f"; did you mean it by {strange!r}?" * bool(strange),
        }
        at = source.at(strange or by or "name", name)
        return SiteError(SITE_LACKS(at=at, owner=whose, key=key, **facts))
    key = next((step for step in reversed(path) if isinstance(step, str)), "")
    wanted = _wanted(_SCHEMA_OF.get(key, schema), error)
    facts = {"at": source.at(key, name), "owner": whose, "value": repr(instance)[:80]}
    return SiteError(WRONG_VALUE(key=key, wanted=wanted, **facts))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


UNKNOWN_KEY = Words("site.unknown-key", "{owner} has no key {key!r}", remedy="known: {known:list}")
MISTYPED_KEY = Words(
    "site.mistyped-key",
    "{owner} has no key {key!r}",
    remedy="did you mean {meant!r}?",
)
KEY_OF_EXTRAS = Words(
    "site.key-of-extras",
    "{owner} has no key {key!r}",
    remedy="it belongs in the extras: {{{key!r}: …}}",
)


def _meant(key: str, known: Mapping[str, Any], owner: str) -> Reason:
    # Extras are easily written one level too high.
    below = _mapping(known.get("extras")).get("properties", {})
    if key in below:
        return KEY_OF_EXTRAS(owner=owner, key=key)
    if meant := nearest(key, known) or nearest(key, below, ALMOST):
        return MISTYPED_KEY(owner=owner, key=key, meant=meant)
    return UNKNOWN_KEY(owner=owner, key=key, known=[*known] or ["none"])


def _owner(path: Sequence[Any], said: Mapping[str, Any]) -> tuple[str, str]:
    owner, name, value = "the site config", "", said
    kinds = {"systems": "the system", "partitions": "the partition", "environments": "the stack"}
    for before, step in zip([None, *path], path, strict=False):
        value = value[step]
        if isinstance(before, str) and before in kinds and isinstance(value, Mapping):
            name = str(value.get("name", ""))
            owner = f"{kinds[before]} {name}".rstrip()
    return owner, name


_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "True or False",
    "string": "a string",
    "array": "a list",
    "object": "a dictionary",
}


def _wanted(schema: Mapping[str, Any], error: ValidationError) -> str:
    if "description" not in schema and error.validator != "type":
        return str(error.message)[:200]
    kinds = schema.get("type", ())
    form = " or ".join(_KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))
    items = _mapping(schema.get("items"))
    if choices := items.get("enum", schema.get("enum")):
        form = f"{form}{' of ' * bool(form)}{', '.join(map(repr, choices))}"
    elif kind := items.get("type"):
        form += f" of {_KINDS[kind].removeprefix('a ')}s"
    bounds = [f"{word} {schema[key]:,}" for key, word in _BOUNDS.items() if key in schema]
    if isinstance(error.instance, int | float) and error.validator in _BOUNDS:
        unit = "; is it in another unit?" * (error.instance > 0)
    else:
        unit = ""
    says = f"it is {schema['description']}" if "description" in schema else "it must be"
    return f"{says}: {form}{', ' * bool(bounds)}{' and '.join(bounds)}{unit}"


_BOUNDS = {"exclusiveMinimum": "above", "minimum": "at least", "maximum": "at most"}


NAME_TWICE = Words(
    "site.name-twice",
    "{times} {kind}s{of} are named {name}",
    remedy="give each its own name",
)


def _require_once(
    kind: str, items: Sequence[Mapping[str, Any]], source: Source, of: str = ""
) -> None:
    """Refuse two of the same name: ReFrame would silently take one of them."""
    for name, times in Counter(item["name"] for item in items).items():
        if times > 1:
            facts = {"times": times, "kind": kind, "of": f" of {of}" * bool(of), "name": name}
            raise SiteError(NAME_TWICE(at=source.at("name", name), **facts))


NO_WHEELS = Words(
    "site.no-wheels",
    "the stack {stack!r} has no wheels",
    cause="stacks with wheels: {known:list}{meant}",
)


def _require_wheels(stacks: Sequence[Mapping[str, Any]], source: Source) -> None:
    """Refuse a stack of wheels that there are none of: ReFrame would only find it late."""
    of_wheels = (x for x in stacks if MPI_STACK in x.get("features", ()))
    for name in (x["name"] for x in of_wheels if x["extras"]["provider"] == "wheels"):
        if name not in (known := list(wheels.STACKS)):
            facts = {"stack": name, "known": known, "meant": suggestion(name, known)}
            raise SiteError(NO_WHEELS(at=source.at("name", name), **facts))


LITTLE_MEMORY = Words(
    "site.little-memory",
    (
        "{key!r} of the partition {partition} is {value:,}, {mib_per_core:.3g} MiB for each of "
        "{cores} cores"
    ),
    remedy="is it in another unit than bytes?",
)


def _require_consistent(partition: Mapping[str, Any], source: Source) -> None:
    """Refuse a memory that is too small for the cores, as it is in another unit."""
    key, name, extras = "memory_bytes_per_node", partition["name"], partition["extras"]
    share = extras[key] / extras["cores_per_node"]
    if share < _LEAST_BYTES_PER_CORE:
        raise SiteError(
            LITTLE_MEMORY(
                at=source.at(key, name),
                partition=name,
                key=key,
                value=extras[key],
                mib_per_core=share / 2**20,
                cores=extras["cores_per_node"],
            )
        )


UNDEFINED_STACK = Words(
    "site.undefined-stack",
    "the partition {partition} names the stack {name!r}, which the site config does not have",
    remedy="known: {known:list}{meant}",
)


def _require_stacks(
    partition: Mapping[str, Any], environments: Sequence[Mapping[str, Any]], source: Source
) -> None:
    """Refuse a partition's stack that is not defined: its cases would be lost."""
    known = [BUILTIN, *(environment["name"] for environment in environments)]
    for stack in partition.get("environs", ()):
        if stack not in known:
            _refuse(UNDEFINED_STACK, partition, "environs", stack, known[1:], source)


UNKNOWN_BACKEND = Words(
    "site.unknown-backend",
    "the partition {partition} has the {key} {name!r}, which neither ReFrame nor the suite has",
    remedy="known: {known:list}{meant}",
)


def _require_backends(partition: Mapping[str, Any], source: Source) -> None:
    """Refuse a scheduler and a launcher that nobody registered: ReFrame would only find it late."""
    for kind in ("scheduler", "launcher"):
        if (name := partition[kind]) not in _USUAL and name not in (known := _backends(kind)):
            _refuse(UNKNOWN_BACKEND, partition, kind, name, sorted(known), source)


OTHER_LAUNCHER = Words(
    "site.other-launcher",
    "the launcher {name!r} of the partition {partition} knows nothing of its MPI stacks",
    remedy=(
        "use 'clustergate', which calls a stack's own mpirun, or 'clustergate-srun', which calls "
        "srun"
    ),
)


def _require_launcher(
    partition: Mapping[str, Any], environments: Sequence[Mapping[str, Any]], source: Source
) -> None:
    """Refuse a launcher that knows nothing of the partition's stacks: each case would fail."""
    stacks = [one["name"] for one in environments if MPI_STACK in one.get("features", ())]
    name, owner = partition["launcher"], partition["name"]
    if name in _OF_STACKS or not {*partition.get("environs", stacks)}.intersection(stacks):
        return
    of_stacks = _backends("launcher")["clustergate"][0]
    if not issubclass(_backends("launcher")[name][0], of_stacks):
        at = source.at("launcher", owner)
        raise SiteError(OTHER_LAUNCHER(at=at, partition=owner, name=name))


def _backends(kind: str) -> Mapping[str, Any]:
    """Return what ReFrame, the suite or the site config itself registered of a kind."""
    from reframe.core import backends
    from reframe.core.exceptions import ConfigError

    import clustergate.launching.launchers  # noqa: F401

    with suppress(ConfigError):
        # It loads ReFrame's own before it looks.
        getattr(backends, f"get{kind}")("")
    registered: Mapping[str, Any] = getattr(backends, f"_{kind}s")
    return registered


def _refuse(
    words: Words[...],
    partition: Mapping[str, Any],
    key: str,
    name: str,
    known: Sequence[str],
    source: Source,
) -> NoReturn:
    owner, meant = partition["name"], did_you_mean(nearest(name, known))
    facts = {"partition": owner, "key": key, "name": name, "known": known, "meant": meant}
    raise SiteError(words(at=source.at(key, owner), **facts))
