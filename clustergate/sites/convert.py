"""Print a site config that uses the classes Site, Partition and Stack in ReFrame's form.

Site configs could once say by these classes what they now say in dictionaries and by ``stack``;
they are read here alone. The site config is run, as it is whenever it is loaded: what it computed
is printed as values, and its comments stand above them, for somebody to put where they belong.
"""

from __future__ import annotations

import ast
import io
import json
import math
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any

from clustergate import sites
from clustergate.core.model import BadRequest
from clustergate.core.reasons import Words
from clustergate.sites import choice, configs, description
from clustergate.sites.description import MPI_STACK, SiteError
from clustergate.stacks import DEFAULT

_WIDTH = 100
_EXTRAS = (
    *("cores_per_node", "memory_bytes_per_node", "nominal_gflops_per_core", "nodes"),
    *("cache_bytes_per_node", "link_mb_s", "fabric", "exclusive", "reserved_cores_per_node"),
    *("waived", "bind_to_cores", "screen_at_once", "process_counts", "placements", "flush_bytes"),
    *("watts_per_socket", "cores_per_socket", "power_of", "mode"),
)
_Partition: Any = make_dataclass(
    "Partition",
    [
        *("name", "scheduler"),
        ("launcher", str, "clustergate"),
        ("access", Sequence[str], ()),
        ("environs", Any, None),
        *((name, Any, None) for name in _EXTRAS),
        *((name, Any, field(default_factory=dict)) for name in ("other_tests", "reframe")),
    ],
    kw_only=True,
    frozen=True,
)


@dataclass(frozen=True)
class _Stack:
    name: str
    provider: str = DEFAULT
    settings: Mapping[str, Any] = field(default_factory=dict)
    pmi: str = ""
    benchmarks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    waived: Mapping[str, str] | str = ""
    reframe: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Site:
    name: str
    hostnames: Sequence[str]
    partitions: Sequence[Any]
    stacks: Sequence[Any] = ()
    descr: str = ""
    reframe: Mapping[str, Any] = field(default_factory=dict)


_CLASSES = {"Site": _Site, "Partition": _Partition, "Stack": _Stack}


NO_CLASSES = Words(
    "site.no-classes",
    "it uses none of the classes Site, Partition and Stack: nothing to convert",
    remedy="it is in ReFrame's form already; `clustergate doctor --site FILE` tells what it lacks",
)
NO_LITERAL = Words(
    "site.no-literal",
    "{value} is not a literal",
    remedy="write this part of it in ReFrame's form by hand, as site_configs/template.py does",
)


def converted(path: Path) -> str:
    """Return the text of a site config in ReFrame's form.

    Raises :class:`SiteError` for one that cannot be run, or says what no literal says, and
    :class:`BadRequest` for one that uses none of the classes.
    """
    # What it prints is no part of the text.
    with _classes_there(), redirect_stdout(sys.stderr):
        said = configs.run(path).get("site_configuration")
    if not isinstance(said, _Call):
        raise BadRequest(NO_CLASSES(at=str(path)))
    try:
        text = _text(said, 0, len("site_configuration = "))
    except ValueError as error:
        raise SiteError(NO_LITERAL(at=str(path), value=str(error))) from None
    with tokenize.open(path) as file:
        head = _head(file.read(), path)
    stack = ", stack" if any(isinstance(one, _Call) for one in said.named["stacks"]) else ""
    alone = "by_name_alone = True\n" if choice.is_by_name_alone(path) else ""
    return (
        f"{head}from clustergate.sites import configuration{stack}\n\n"
        f"{alone}site_configuration = {text}\n"
    )


@dataclass(frozen=True)
class _Call:
    """A call as it is written: a function, what stands in front, and arguments by their names."""

    function: str
    first: Sequence[Any]
    named: Mapping[str, Any]


def _configuration(systems: Sequence[Any], stacks: Sequence[Any] = ()) -> _Call | None:
    """Return the call that says the same in ReFrame's form, None where no class is used."""
    own = [stack for one in systems if isinstance(one, _Site) for stack in one.stacks]
    parts = [part for one in systems if isinstance(one, Mapping) for part in one["partitions"]]
    if not any(isinstance(one, (*_CLASSES.values(),)) for one in (*systems, *parts, *stacks)):
        return None
    calls = [_call_of(_stack(one)) for one in (*own, *stacks)]
    return _Call("configuration", (), {"systems": [*map(_system, systems)], "stacks": calls})


def _system(said: Any) -> Any:
    if isinstance(said, _Site):
        keys = {"name": said.name, "descr": said.descr or said.name, **said.reframe}
        said = {**keys, "hostnames": said.hostnames, "partitions": said.partitions}
    return {**said, "partitions": [*map(_partition, said["partitions"])]}


def _partition(said: Any) -> Any:
    if not isinstance(said, _Partition):
        return said
    further = dict(said.reframe)
    stated = {"access": said.access, "environs": said.environs, "other_tests": said.other_tests}
    stated |= {name: getattr(said, name) for name in _EXTRAS}
    # What is empty was not stated; 0 and False were.
    stated = {k: v for k, v in stated.items() if v is not None and v not in ("", (), [], {})}
    keys = {key: stated.pop(key) for key in ("access", "environs") if key in stated}
    named = {"name": said.name, "scheduler": said.scheduler, "launcher": said.launcher}
    return {**named, **keys, "extras": {**further.pop("extras", {}), **stated}, **further}


def _stack(said: Any) -> Any:
    if not isinstance(said, _Stack):
        return said
    settings = {said.provider: said.settings, **said.benchmarks, **said.reframe}
    return configs.stack(said.name, said.provider, pmi=said.pmi, waived=said.waived, **settings)


@contextmanager
def _classes_there() -> Iterator[None]:
    """Let a site config import the classes, and a ``configuration`` that takes them."""
    names = {**_CLASSES, "configuration": _configuration}
    before = [(module, dict(vars(module))) for module in (sites, configs, description)]
    for module, _ in before:
        vars(module).update(names)
    try:
        yield
    finally:
        for module, known in before:
            for name in names:
                vars(module).pop(name)
            vars(module).update({name: known[name] for name in names if name in known})


def _call_of(stack: Any) -> Any:
    """Return the call of ``stack`` that returns an environment, or that of other tests itself."""
    extras = dict(stack.get("extras", {}))
    provider = extras.pop("provider", None)
    if MPI_STACK not in stack.get("features", ()) or provider is None:
        return stack
    own = {"pmi", "waived", provider, *description.settable()}
    named = {} if provider == DEFAULT else {"provider": provider}
    named |= {key: extras.pop(key) for key in [*extras] if key in own}
    named |= {"extras": extras} if extras else {}
    features = [word for word in stack["features"] if word != MPI_STACK]
    named |= {"features": features} if features else {}
    rest = {key: stack[key] for key in stack if key not in ("name", "features", "extras")}
    return _Call("stack", [stack["name"]], {**named, **rest})


def _head(source: str, path: Path) -> str:
    """Return the docstring of a site config, and its comments by their lines."""
    tree = ast.parse(source)
    has_docstring = ast.get_docstring(tree) is not None
    docstring = ast.get_source_segment(source, tree.body[0]) if has_docstring else None
    lines = [f"# Printed by `clustergate site convert` from {path.name}: what it computed there."]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [one for one in tokens if one.type == tokenize.COMMENT]
    if comments:
        lines.append("# Its comments by their lines, to be put where they belong:")
    lines += (f"# {one.start[0]}: {one.string.lstrip('# ')}" for one in comments)
    return (f"{docstring}\n\n" if docstring else "") + "\n".join(lines) + "\n\n"


def _text(value: Any, indent: int, used: int) -> str:
    """Return a value as it is written, in lines of 100 columns.

    ``indent`` is that of its line, of which ``used`` columns are taken. Raises ValueError for a
    value that is no literal.
    """
    flat = _flat(value)
    if used + len(flat) <= _WIDTH and not _is_spread(value):
        return flat
    inner = indent + 4
    opening, closing, items = _parts(value)
    lines = (
        f"{' ' * inner}{key}{_text(item, inner, inner + len(key) + 1)},\n" for key, item in items
    )
    body = "".join(lines)
    return f"{opening}\n{body}{' ' * indent}{closing}" if items else flat


def _is_spread(value: Any) -> bool:
    """Tell whether each item has a line, though one would do for all."""
    if isinstance(value, _Call):
        return value.function == "configuration"
    holds = (item for _, item in _parts(value)[2])
    return any(isinstance(item, Mapping | _Call) for item in holds)


def _parts(value: Any) -> tuple[str, str, list[tuple[str, Any]]]:
    """Return how something with items begins and ends, and these with what stands before each."""
    if isinstance(value, _Call):
        named = [(f"{name}=", item) for name, item in value.named.items()]
        return f"{value.function}(", ")", [*(("", one) for one in value.first), *named]
    if isinstance(value, Mapping):
        return "{", "}", [(f"{_flat(key)}: ", item) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return "[", "]", [("", item) for item in value]
    return "", "", []


def _flat(value: Any) -> str:
    opening, closing, items = _parts(value)
    if opening:
        return opening + ", ".join(key + _flat(item) for key, item in items) + closing
    if isinstance(value, str | Path):
        return _quoted(str(value))
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, int):
        power = next((n for n in (30, 20) if value >= 1 << n and value % (1 << n) == 0), 0)
        count = value >> power
        return str(value) if not power else f"2**{power}" if count == 1 else f"{count} * 2**{power}"
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    raise ValueError(repr(value)[:80])


def _quoted(text: str) -> str:
    if "\\" in text and '"' not in text and text.isprintable() and not text.endswith("\\"):
        return f'r"{text}"'
    quoted = json.dumps(text, ensure_ascii=False)
    if text.count('"') <= text.count("'"):
        return quoted
    return "'" + quoted[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"
