"""What people say of their suite: ``judge.yaml`` beside it, and ``--better``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from clustergate.core.model import BadRequest, Better
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.reasons import Words
from clustergate.suites.sessions import Session, SuiteError

FILE = "judge.yaml"
_KEYS = ("better", "exclusive", "renamed")

BETTER_FORM = Words(
    "suite.better-form",
    "{text!r} tells no direction",
    remedy="write --better NAME=lower or NAME=higher, for a variable or test.variable",
)
JUDGE_YAML = Words("suite.judge-yaml", "{path}: {why}")


@dataclass(frozen=True)
class Settings:
    """What is known of a suite beside its files.

    ``better`` are patterns of variables, or of ``test.variable``, with their directions.
    ``exclusive`` tells whether jobs have their nodes for themselves, None where nobody says.
    ``renamed`` are the tests that had another name, by that.
    """

    better: Mapping[str, Better] = field(default_factory=dict)
    exclusive: bool | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)

    def name_now(self, test: str) -> str:
        """Return the name that a test has today."""
        return self.renamed.get(test, test)

    def direction(self, test: str, variable: str) -> Better | None:
        """Return the stated direction of a variable, None where nobody says."""
        for pattern, better in self.better.items():
            if any(fnmatch.fnmatchcase(x, pattern) for x in (f"{test}.{variable}", variable)):
                return better
        return None


def better_of(texts: Iterable[str]) -> dict[str, Better]:
    """Return the directions that options name, ``NAME=lower``; raises :class:`BadRequest`."""
    stated = {}
    for text in texts:
        name, _, way = text.rpartition("=")
        if not name or way not in (Better.LOWER.value, Better.HIGHER.value):
            raise BadRequest(BETTER_FORM(text=text))
        stated[name] = Better(way)
    return stated


def settings_beside(sessions: Sequence[Session], here: Path) -> tuple[Settings, Path | None]:
    """Return what ``judge.yaml`` says, and which one: of this folder, or of the newest tests'.

    Raises :class:`SuiteError` for one that cannot be read.
    """
    files = (one.file for session in sessions[:1] for one in session.results if one.file)
    folders = [here, *(parent for file in files for parent in [*Path(file).parents][:2])]
    for folder in dict.fromkeys(folders):
        path = folder / FILE
        if path.is_file():
            return read_settings(path), path
    return Settings(), None


def read_settings(path: Path) -> Settings:
    """Return what a file says; raises :class:`SuiteError` that names the file."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SuiteError(JUDGE_YAML(path=path, why=" ".join(str(error).split()))) from None
    if why := _wrong_with(content):
        raise SuiteError(JUDGE_YAML(path=path, why=why))
    better = better_of(f"{name}={way}" for name, way in content.get("better", {}).items())
    return Settings(better, content.get("exclusive"), content.get("renamed", {}))


def _wrong_with(content: object) -> str:
    if not isinstance(content, dict):
        return f"it holds no keys; it may have {', '.join(_KEYS)}"
    for key in content:
        if key not in _KEYS:
            return f"{key!r} is no key of it{did_you_mean(nearest(str(key), _KEYS))}"
    for key in ("better", "renamed"):
        texts = content.get(key, {})
        if not isinstance(texts, dict) or not all(
            isinstance(x, str) for pair in texts.items() for x in pair
        ):
            return f"{key} is to be NAME: {'lower' if key == 'better' else 'NEW_NAME'}"
    for name, way in content.get("better", {}).items():
        if way not in (Better.LOWER.value, Better.HIGHER.value):
            return f"better: {name} is {way!r}, and may be lower or higher"
    if not isinstance(content.get("exclusive", False), bool):
        return "exclusive is to be true or false"
    return ""
