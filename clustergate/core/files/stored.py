"""Dataclasses as JSON on disk: what is written today, and what any version wrote.

A type says what is stored: there is no other list of its fields. Reasons are written with their
sentences, which stay where a later version has other words.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from clustergate.core.reasons import Reason, reason_as_json, reason_from_json

T = TypeVar("T")


class UnknownKey(ValueError):
    """A later version stored what this one does not know."""


def encode(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if isinstance(value, Reason):
        return reason_as_json(value)
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {one.name: encode(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: encode(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [encode(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def decode(content: Any, form: type[T], key: str = "", *, always: Iterable[str] = ()) -> T:
    """Return what :func:`encode` made of a value of that type; ``key`` is where it stood.

    ``always`` are keys that every version wrote although their fields have a default. Raises
    ValueError that names the key for what it did not make, as :class:`UnknownKey` where that is
    one more.
    """
    # It costs a start what few commands need.
    import msgspec

    if isinstance(content, dict) and (missing := {*always} - content.keys()):
        raise ValueError(f"{_at(key, min(missing))}: this key is missing")
    _require_finite(content, key)
    try:
        return msgspec.convert(_prepared(content, form, key), form, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        for name, part, kind in _parts(content, form):
            decode(part, kind, _at(key, name))
        what = str(error).partition(" - at ")[0].replace("`", "")
        raise ValueError(f"{key}: {what[:1].lower()}{what[1:]}" if key else what) from None


def _require_finite(content: Any, key: str) -> None:
    """Raise ValueError for a NaN or an infinity, which is never stored: it compares as nothing."""
    try:
        json.dumps(content, allow_nan=False)
    except ValueError:
        parts = content.items() if isinstance(content, dict) else ()
        for name, part in enumerate(content) if isinstance(content, list) else parts:
            _require_finite(part, _at(key, name))
        raise ValueError(f"{key}: {content!r:.80} is no number") from None


def _decoded(kind: type, value: Any) -> Any:
    """Return a value of a type that JSON has not."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is object:
        return value
    raise ValueError(f"expected {kind.__name__}, got {type(value).__name__}")


def _prepared(content: Any, form: Any, key: str) -> Any:
    """Return content with its reasons as their fields.

    Raises ValueError for one that is none, and for a key that no field has.
    """
    form = _structure(form)
    if form is Reason and content is not None:
        try:
            return dataclasses.asdict(reason_from_json(content))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise ValueError(f"{key}: expected a reason, got {content!r:.80}") from None
    known = _hints(form).keys() if _is_dataclass(form) else ()
    if known and isinstance(content, dict) and (unknown := content.keys() - known):
        raise UnknownKey(f"{_at(key, min(unknown))}: this key is not known")
    parts = [one for one in _parts(content, form) if _has_structure(one[2])]
    done = {name: _prepared(part, kind, _at(key, name)) for name, part, kind in parts}
    if not done:
        return content
    return {**content, **done} if isinstance(content, dict) else list(done.values())


def _parts(content: Any, form: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """Yield what a value consists of, by name or place, each with its type."""
    form = _structure(form)
    of = get_args(form)
    if _is_dataclass(form) and isinstance(content, dict):
        yield from ((k, content[k], kind) for k, kind in _hints(form).items() if k in content)
    elif isinstance(content, dict) and of:
        yield from ((name, part, of[-1]) for name, part in content.items())
    elif isinstance(content, list | tuple) and of:
        yield from ((k, part, of[0]) for k, part in enumerate(content))


def _at(key: str, name: str | int) -> str:
    if isinstance(name, int):
        return f"{key}[{name}]"
    return f"{key}.{name}" if key else name


_hints = functools.cache(get_type_hints)


def _is_dataclass(form: Any) -> bool:
    return isinstance(form, type) and dataclasses.is_dataclass(form)


def _structure(form: Any) -> Any:
    """Return the one of several types that holds a dataclass, any other type as it is."""
    of = get_args(form) if get_origin(form) in (Union, types.UnionType) else ()
    return next(filter(_has_structure, of), form)


@functools.cache
def _has_structure(form: Any) -> bool:
    """Tell whether a type is a dataclass, or holds one."""
    return _is_dataclass(form) or any(map(_has_structure, get_args(form)))
