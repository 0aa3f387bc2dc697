"""YAML as ReFrame reads it (PyYAML, YAML 1.1), with the line of every key and value.

What PyYAML passes over in silence is a complaint here: a key that stands twice, a key that is no
text, numbers of another base than ten, and values that stand somewhere else than where they are
read (aliases, merges).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from clustergate.core.reasons import Reason, Words

Path = tuple[str | int, ...]
# Ten times as fast where PyYAML was built with it; the marks are the same.
_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")

# How PyYAML, with libyaml or without, complains of ``name: >= 87 %``.
_BLOCK = "block scalar"
# Of other bases: 0750 is octal, and 1:30 are one and a half sixties.
_NO_DECIMAL = re.compile(r"[-+]?0[0-9_bx]|[^.]*:")


@dataclass(frozen=True)
class Complaint:
    """What is wrong in a text, and in which line, from 1."""

    line: int
    reason: Reason


@dataclass
class Document:
    """A text as plain data; ``lines`` holds where each value stands, by the keys that lead to it.

    Days become text such as ``2026-11-01``. With complaints, ``data`` is incomplete.
    """

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    complaints: list[Complaint] = field(default_factory=list)

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of a value; the first one of an empty text."""
        return self.lines.get(tuple(path), 1)


YAML_DAMAGED = Words("yaml.damaged", "not YAML", cause="{why}")


def read_document(text: str) -> Document:
    """Read a YAML text; whatever is wrong with it is among the complaints."""
    document = Document()
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is not None:
            document.data = _Reader(loader, document).value(root, (), _line(root))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        sentence = " ".join(part for part in (error.context, error.problem) if part)
        if _BLOCK in sentence:
            sentence += "; a value that begins with > needs quotation marks"
        line = mark.line + 1 if mark else 1
        document.complaints.append(Complaint(line, YAML_DAMAGED(why=sentence)))
    except yaml.YAMLError as error:
        document.complaints.append(Complaint(1, YAML_DAMAGED(why=error)))
    except RecursionError:
        document.complaints.append(Complaint(1, YAML_DAMAGED(why="nested too deeply")))
    finally:
        loader.dispose()
    return document


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


YAML_ALIAS = Words(
    "yaml.alias",
    "an alias repeats this value",
    remedy="write the value out instead",
)
YAML_TAG = Words("yaml.tag", "the tag {tag!r} has no meaning here")
YAML_VALUE = Words("yaml.value", "{value!r} is not a value of YAML's {tag!r}")
YAML_NUMBER = Words(
    "yaml.number",
    "YAML reads {value} as {read:number}",
    remedy="write it without a leading 0 or colon",
)
YAML_MERGE = Words(
    "yaml.merge",
    "a merge (<<) hides the keys that it adds",
    remedy="write them out",
)
YAML_KEY = Words(
    "yaml.key",
    "the key {key!r} is not a string in YAML, so ReFrame never matches it",
    remedy="put it in quotation marks",
)
KEY_TWICE = Words("yaml.key-twice", "the key {key!r} is in line {line} already")


class _Reader:
    def __init__(self, loader: Any, document: Document) -> None:
        self.loader = loader
        self.document = document
        self.seen: set[int] = set()

    def complain(self, node: yaml.Node, problem: Reason) -> None:
        self.document.complaints.append(Complaint(_line(node), problem))

    def value(self, node: yaml.Node, path: Path, line: int) -> Any:
        """Return the plain data of a node that is read at ``line``."""
        self.document.lines[path] = line
        if id(node) in self.seen:
            self.complain(node, YAML_ALIAS())
            return None
        self.seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if node.tag not in _PLAIN_TAGS:
            self.complain(node, YAML_TAG(tag=node.tag))
            return None
        if isinstance(node, yaml.SequenceNode):
            return [self.value(n, (*path, i), _line(n)) for i, n in enumerate(node.value)]
        return self.mapping(node, path)

    def scalar(self, node: yaml.Node) -> Any:
        try:
            value = self.loader.construct_object(node)
        except (ValueError, yaml.constructor.ConstructorError):
            self.complain(node, YAML_VALUE(value=node.value, tag=node.tag))
            return None
        if isinstance(value, (int, float)) and _NO_DECIMAL.match(node.value):
            self.complain(node, YAML_NUMBER(value=node.value, read=value))
        return value.isoformat() if isinstance(value, datetime.date) else value

    def mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                self.complain(key_node, YAML_MERGE())
                continue
            if key_node.tag != "tag:yaml.org,2002:str":
                self.complain(key_node, YAML_KEY(key=str(key_node.value)))
                continue
            key = key_node.value
            place = (*path, key)
            if key in mapping:
                first = self.document.lines[place]
                self.complain(key_node, KEY_TWICE(key=key, line=first))
                continue
            mapping[key] = self.value(value_node, place, _line(key_node))
        return mapping
