"""The schema of site configs, and what of a site config is refused by it: key, meaning, unit.

It is ReFrame's own schema with the extras that the suite reads; those of a partition are declared
by the fields of :class:`~clustergate.sites.description.Partition`. Pure but for reading ReFrame's.
"""

from __future__ import annotations

import functools
import importlib.util
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustergate.benchmarks.registry import every_check
from clustergate.core.files.whole import read_json
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.reasons import Words
from clustergate.sites.description import (
    EXTRAS,
    MPI_STACK,
    NEEDED,
    SiteError,
    settable,
)
from clustergate.sites.modes import MODES
from clustergate.stacks import PROVIDERS, suggestion

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

# The extras of other people's tests, as the site config sets them apart.
OTHER_TESTS = "other_tests"
# How like a known name one is that was mistyped, as difflib counts: "gpus_per_node" is another.
_ALMOST = 0.8
# The stack of ReFrame itself, which every system has.
_BUILTIN = "builtin"
# What most site configs name; ReFrame takes a fifth of a second to say what else there is.
_OF_STACKS = ("clustergate", "clustergate-srun", "clustergate-ssh")
_USUAL = ("local", "slurm", *_OF_STACKS)
# Less memory for a core than this is memory in another unit: no benchmark fits into it.
_LEAST_BYTES_PER_CORE = 8 << 20

_TEXT = {"type": "string"}
_SOME_WORD = r"\S"
_REASON = {
    **_TEXT,
    "description": "why a gate need not see it judged",
    "pattern": _SOME_WORD,
}
_FOREIGN = {"type": "object", "description": "extras that other people's tests read"}


def site_schema() -> dict[str, Any]:
    """Return the JSON schema of what a site config says: ``systems`` and ``environments``."""
    spec = importlib.util.find_spec("reframe")
    assert spec is not None
    assert spec.origin is not None
    known = read_json(Path(spec.origin).parent / "schemas" / "config.json")
    systems, environments = (known["properties"][key] for key in ("systems", "environments"))
    partition = systems["items"]["properties"]["partitions"]["items"]
    partition["properties"]["extras"] = _extras_of("partitions")
    # The extras of environments that are no MPI stacks are other people's.
    environments["items"] |= {
        "if": {
            "properties": {"features": {"contains": {"const": MPI_STACK}}},
            "required": ["features"],
        },
        "then": {
            "properties": {"extras": _extras_of("environments")},
            "required": ["extras"],
        },
    }
    return {
        "$schema": known["$schema"],
        "title": "A site config of clustergate, in ReFrame's form",
        "defs": known["defs"],
        "type": "object",
        "properties": {
            "systems": systems,
            "environments": environments,
            "checks": {
                "type": "object",
                "description": "by mode, the checks that it runs instead of its own",
                "properties": dict.fromkeys(MODES, _CHECKS_OF_A_MODE),
                "additionalProperties": False,
            },
        },
        "required": ["systems", "environments"],
    }


_CHECKS_OF_A_MODE = {
    "type": "array",
    "items": {"enum": list(every_check())},
    "minItems": 1,
    "uniqueItems": True,
}


@functools.cache
def _extras_of(kind: str) -> dict[str, Any]:
    """Return the schema of the extras of ``partitions``, or of ``environments``, the stacks."""
    if kind == "partitions":
        return {
            "type": "object",
            "description": "what the suite must know of a partition's nodes",
            "properties": {
                **{one.name: dict(one.metadata) for one in EXTRAS},
                OTHER_TESTS: _FOREIGN,
            },
            "required": list(NEEDED),
            # One without the other would be left aside.
            "dependencies": {
                "watts_per_socket": ["cores_per_socket"],
                "power_of": ["watts_per_socket"],
            },
            "additionalProperties": False,
        }
    return {
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
            **{name: dict(one.settings) for name, one in PROVIDERS.items()},
            **settable(),
            OTHER_TESTS: _FOREIGN,
        },
        "required": ["provider"],
        "allOf": [
            {
                "if": {"properties": {"provider": {"const": name}}, "required": ["provider"]},
                "then": {"required": [name]},
            }
            for name, one in PROVIDERS.items()
            if "required" in one.settings
        ],
        "additionalProperties": False,
    }


def key_path(steps: Sequence[Any]) -> str:
    """Return where a key is, such as ``systems[0].partitions[0].extras.nodes``.

    ReFrame's environments are what :func:`~clustergate.sites.configuration` calls ``stacks``.
    """
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    path = "".join(parts).removeprefix(".")
    return f"stacks{path.removeprefix('environments')}" if steps[:1] == ["environments"] else path


def merge_other_tests(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return a partition or an environment with the extras of other tests among the others."""
    extras = dict(described.get("extras", {}))
    others = extras.pop(OTHER_TESTS, {})
    return {**described, "extras": {**extras, **others}}


SEVERAL_SYSTEMS = Words(
    "site.several-systems",
    "{names:names} is described beside {name} and would be measured and judged as {name}",
    remedy="describe each system in a file of its own",
)


def require_valid(declared: Mapping[str, Any]) -> None:
    """Refuse what a site config must not say of its ``systems`` and ``environments``.

    Raises :class:`SiteError` for the first thing that is wrong, by the path of its key.
    """
    for error in sorted(_violations(declared), key=_order)[:1]:
        raise _error_for(error, declared)
    if others := [system["name"] for system in declared["systems"][1:]]:
        facts = {"names": others, "name": declared["systems"][0]["name"]}
        raise SiteError(SEVERAL_SYSTEMS(at="systems[1]", **facts))
    stacks = declared["environments"]
    for number, system in enumerate(declared["systems"]):
        path = f"systems[{number}].partitions"
        _require_once("partition", system["partitions"], path, system["name"])
        _require_apart("partition", system["partitions"], path)
        for index, partition in enumerate(system["partitions"]):
            _require_consistent(partition, f"{path}[{index}]")
            _require_backends(partition, f"{path}[{index}]")
            _require_stacks(partition, stacks, f"{path}[{index}]")
            _require_launcher(partition, stacks, f"{path}[{index}]")
    _require_once("stack", stacks, "stacks")
    of_mpi = [one if MPI_STACK in one.get("features", ()) else {} for one in stacks]
    _require_apart("stack", of_mpi, "stacks")
    _require_provided(of_mpi)


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


def _order(error: ValidationError) -> tuple[list[str], int]:
    """Order by place; there a mistyped key stands before one that lacks, others behind."""
    unknown = error.validator == "additionalProperties"
    order = (0 if _unknown_keys(error)[0][1] else 2) if unknown else 1
    return [str(step).zfill(4) for step in error.absolute_path], order


def _unknown_keys(error: ValidationError) -> list[tuple[str, str]]:
    """Return the keys that are not known where they stand, each with the one meant, if any is near.

    Those that mean one stand first. Names of extras with the same first word say the same in
    another unit, such as "memory_gib".
    """
    known, stated = _mapping(error.schema).get("properties", {}), _mapping(error.instance)
    is_extras = OTHER_TESTS in known

    def meant(key: str) -> str:
        alike = [n for n in known if is_extras and n.split("_")[0] == key.split("_")[0]]
        return nearest(key, known, _ALMOST if is_extras else 0.6) or nearest(key, alike, 0.0)

    unknown = ((key, meant(key)) for key in sorted(map(str, stated.keys() - known.keys())))
    return sorted(unknown, key=lambda one: not one[1])


SITE_LACKS = Words("site.lacks", "{owner} lacks {keys:list}{effect}")
WRONG_VALUE = Words("site.wrong-value", "{key!r} of {owner} is {value}; {wanted}")


def _error_for(error: ValidationError, said: Mapping[str, Any]) -> SiteError:
    path, schema, instance = list(error.absolute_path), _mapping(error.schema), error.instance
    owner = _owner(path, said)
    known, stated = schema.get("properties", {}), _mapping(instance)
    if error.validator == "additionalProperties":
        return _unknown(_unknown_keys(error), known, path, owner)
    if error.validator in ("required", "dependencies"):
        needs = {None: schema["required"], **schema.get("dependencies", {})}
        by, lacks = next(
            (by, missing)
            for by, keys in needs.items()
            if by is None or by in stated
            if (missing := [key for key in keys if key not in stated])
        )
        at, keys = key_path([*path, lacks[0]]), [f"{key!r}{_means(key, known)}" for key in lacks]
        effect = f", without which {by!r} has no effect" * bool(by)
        return SiteError(SITE_LACKS(at=at, owner=owner, keys=keys, effect=effect))
    key = next((step for step in reversed(path) if isinstance(step, str)), "")
    extra = next((one.metadata for one in EXTRAS if one.name == key), schema)
    place = key_path(path).rpartition(".")[2]
    facts = {"owner": owner, "value": repr(instance)[:80], "wanted": _wanted(extra, error)}
    return SiteError(WRONG_VALUE(at=key_path(path), key=place, **facts))


def _means(key: str, known: Mapping[str, Any]) -> str:
    says = known.get(key, {}).get("description", "")
    return f" ({says})" * bool(says)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


MISTYPED_EXTRA = Words(
    "site.mistyped-extra",
    "{owner} has no extra {key!r}",
    remedy="did you mean {meant!r}{means}? What other tests read stands in {other_tests!r}",
)
UNREAD_EXTRA = Words(
    "site.unread-extra",
    "{owner} has no extra {keys:list}",
    remedy='put settings of other tests into "{other_tests}": {{…}} in its extras',
)
KEY_OF_EXTRAS = Words(
    "site.key-of-extras",
    "{owner} has no key {key!r}",
    remedy="it belongs in the extras: {{{key!r}: …}}",
)
MISTYPED_KEY = Words(
    "site.mistyped-key",
    "{owner} has no key {key!r}",
    remedy="did you mean {meant!r}{means}?",
)
UNKNOWN_KEY = Words("site.unknown-key", "{owner} has no key {key!r}", remedy="known: {known:list}")


def _unknown(
    keys: Sequence[tuple[str, str]], known: Mapping[str, Any], path: Sequence[Any], owner: str
) -> SiteError:
    key, meant = keys[0]
    at, means = key_path([*path, key]), _means(meant, known)
    if OTHER_TESTS in known:
        facts = {"owner": owner, "other_tests": OTHER_TESTS}
        if meant:
            facts |= {"key": key, "meant": meant, "means": means}
            return SiteError(MISTYPED_EXTRA(at=at, **facts))
        unread = [repr(key) for key, _ in keys]
        return SiteError(UNREAD_EXTRA(at=at, keys=unread, **facts))
    *_, place, last = ("", "", *path)
    # Extras are easily written one level too high.
    below = _extras_of(place)["properties"] if place in ("partitions", "environments") else {}
    if isinstance(last, str) and last:
        owner = f"{last!r} of {owner}"
    if key in below:
        return SiteError(KEY_OF_EXTRAS(at=at, owner=owner, key=key))
    if meant := meant or nearest(key, below):
        return SiteError(MISTYPED_KEY(at=at, owner=owner, key=key, meant=meant, means=means))
    return SiteError(UNKNOWN_KEY(at=at, owner=owner, key=key, known=[*known] or ["none"]))


def _owner(path: Sequence[Any], said: Mapping[str, Any]) -> str:
    """Return what a path leads to, such as ``the partition compute``."""
    kinds = {"systems": "system", "partitions": "partition", "environments": "stack"}
    kind, name, value = "site config", "", said
    for before, step in zip([None, *path], path, strict=False):
        value = value[step]
        if isinstance(before, str) and before in kinds and isinstance(value, Mapping):
            kind, name = kinds[before], str(value.get("name", ""))
    return f"the {kind} {name}".rstrip()


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


def _require_once(kind: str, items: Sequence[Mapping[str, Any]], path: str, of: str = "") -> None:
    """Refuse two of the same name: ReFrame would silently take one of them."""
    names = [item["name"] for item in items]
    for name, times in Counter(names).items():
        if times > 1:
            again = names.index(name, names.index(name) + 1)
            facts = {"times": times, "kind": kind, "of": f" of {of}" * bool(of), "name": name}
            raise SiteError(NAME_TWICE(at=f"{path}[{again}].name", **facts))


OWN_EXTRA = Words(
    "site.own-extra",
    "{key!r} of the {kind} {name} is the suite's own",
    remedy="it does not belong in {other_tests!r}",
)


def _require_apart(kind: str, items: Sequence[Mapping[str, Any]], path: str) -> None:
    """Refuse extras of the suite's own among those of other tests."""
    own = {*_extras_of("partitions" if kind == "partition" else "environments")["properties"]}
    for number, one in enumerate(items):
        for key in sorted({*one.get("extras", {}).get(OTHER_TESTS, ())} & own):
            at = f"{path}[{number}].extras.{OTHER_TESTS}.{key}"
            facts = {"at": at, "kind": kind, "name": one["name"], "key": key}
            raise SiteError(OWN_EXTRA(other_tests=OTHER_TESTS, **facts))


NOT_PROVIDED = Words(
    "site.no-wheels",
    "the provider {provider} has no stack {stack!r}",
    cause="its stacks: {known:list}{meant}",
)


def _require_provided(stacks: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a stack that its provider does not have: ReFrame would only find it late."""
    for number, one in enumerate(stacks):
        known = PROVIDERS[one["extras"]["provider"]].names if one else None
        if known is not None and (name := one["name"]) not in known:
            facts = {"provider": one["extras"]["provider"], "meant": suggestion(name, known)}
            at = f"stacks[{number}].name"
            raise SiteError(NOT_PROVIDED(at=at, stack=name, known=[*known], **facts))


LITTLE_MEMORY = Words(
    "site.little-memory",
    (
        "{key!r} of the partition {partition} is {value:,}, {mib_per_core:.3g} MiB for each of "
        "{cores} cores"
    ),
    remedy="is it in another unit than bytes?",
)


def _require_consistent(partition: Mapping[str, Any], path: str) -> None:
    """Refuse a memory that is too small for the cores, as it is in another unit."""
    key, extras = "memory_bytes_per_node", partition["extras"]
    share = extras[key] / extras["cores_per_node"]
    if share < _LEAST_BYTES_PER_CORE:
        raise SiteError(
            LITTLE_MEMORY(
                at=f"{path}.extras.{key}",
                partition=partition["name"],
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
    partition: Mapping[str, Any], environments: Sequence[Mapping[str, Any]], path: str
) -> None:
    """Refuse a partition's stack that is not defined: its cases would be lost."""
    known = [environment["name"] for environment in environments]
    for number, stack in enumerate(partition.get("environs", ())):
        if stack not in (_BUILTIN, *known):
            at = f"{path}.environs[{number}]"
            raise _undefined(UNDEFINED_STACK, partition, "environs", stack, known, at)


UNKNOWN_BACKEND = Words(
    "site.unknown-backend",
    "the partition {partition} has the {key} {name!r}, which neither ReFrame nor the suite has",
    remedy="known: {known:list}{meant}",
)


def _require_backends(partition: Mapping[str, Any], path: str) -> None:
    """Refuse a scheduler and a launcher that nobody registered: ReFrame would only find it late."""
    for kind in ("scheduler", "launcher"):
        if (name := partition[kind]) not in _USUAL and name not in (known := _backends(kind)):
            at = f"{path}.{kind}"
            raise _undefined(UNKNOWN_BACKEND, partition, kind, name, sorted(known), at)


OTHER_LAUNCHER = Words(
    "site.other-launcher",
    "the launcher {name!r} of the partition {partition} knows nothing of its MPI stacks",
    remedy=(
        "use 'clustergate', which calls a stack's own mpirun, or 'clustergate-srun', which calls "
        "srun"
    ),
)


def _require_launcher(
    partition: Mapping[str, Any], environments: Sequence[Mapping[str, Any]], path: str
) -> None:
    """Refuse a launcher that knows nothing of the partition's stacks: each case would fail."""
    stacks = [one["name"] for one in environments if MPI_STACK in one.get("features", ())]
    name = partition["launcher"]
    if name in _OF_STACKS or not {*partition.get("environs", stacks)}.intersection(stacks):
        return
    of_stacks = _backends("launcher")["clustergate"][0]
    if not issubclass(_backends("launcher")[name][0], of_stacks):
        owner = partition["name"]
        raise SiteError(OTHER_LAUNCHER(at=f"{path}.launcher", partition=owner, name=name))


def _backends(kind: str) -> Mapping[str, Any]:
    """Return what ReFrame, the suite or the site config itself registered of a kind."""
    from reframe.core import backends
    from reframe.core.exceptions import ConfigError

    import clustergate.launch.launchers  # noqa: F401

    with suppress(ConfigError):
        # It loads ReFrame's own before it looks.
        getattr(backends, f"get{kind}")("")
    registered: Mapping[str, Any] = getattr(backends, f"_{kind}s")
    return registered


def _undefined(
    words: Words[...],
    partition: Mapping[str, Any],
    key: str,
    name: str,
    known: Sequence[str],
    at: str,
) -> SiteError:
    owner, meant = partition["name"], did_you_mean(nearest(name, known))
    facts = {"partition": owner, "key": key, "name": name, "known": known, "meant": meant}
    return SiteError(words(at=at, **facts))
