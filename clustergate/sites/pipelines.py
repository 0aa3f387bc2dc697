"""What a GitLab pipeline measures: the systems and stacks in its ``.clustergate-systems``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import yaml

from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.sites import choice, configs
from clustergate.sites.description import SiteError
from clustergate.stacks import suggestion

JOBS = ".clustergate-systems"
_SYSTEM, _STACK = "CLUSTERGATE_SYSTEM", "CLUSTERGATE_STACK"


@dataclass(frozen=True)
class Listed:
    """A system and a stack that jobs are for, and the file and line that say so."""

    system: str
    stack: str
    at: str


def listed_in(path: Path) -> list[Listed]:
    """Return what a pipeline's file lists, or the last of its local includes that lists any.

    Names that are variables are left out. Raises :class:`SiteError` for a file that cannot be read
    and for a list that is none.
    """
    return _listed_in(path, path.parent, set())


def _listed_in(path: Path, top: Path, seen: set[Path]) -> list[Listed]:
    seen.add(path)
    root = _composed(path)
    of_include = _value(root, "include")
    includes = of_include.value if isinstance(of_include, yaml.SequenceNode) else [of_include]
    listed: list[Listed] = []
    for include in includes:
        local = _value(include, "local") if isinstance(include, yaml.MappingNode) else include
        for name in _texts(local):
            file = top / name.value.lstrip("/")
            if file.is_file() and file not in seen:
                listed = _listed_in(file, top, seen) or listed
    own = _value(root, JOBS)
    return listed if own is None else list(_entries(own, path))


NO_YAML = Words("pipeline.no-yaml", "{path} is no YAML", cause="{why}")


def _composed(path: Path) -> yaml.Node | None:
    try:
        # Not constructed: GitLab's own tags mean nothing here.
        return yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
    except (OSError, ValueError) as error:
        raise SiteError(FILE_UNREADABLE(path=path, why=error)) from None
    except yaml.YAMLError as error:
        raise SiteError(NO_YAML(path=path, why=" ".join(str(error).split()))) from None


NO_MATRIX = Words(
    "pipeline.no-matrix",
    "{job} has no list of systems and stacks",
    remedy="write one below `parallel: matrix:`, as in ci/gitlab/example/.gitlab-ci.yml",
)
PIPELINE_INCOMPLETE = Words(
    "pipeline.incomplete",
    "an entry must name both {names:and}",
    remedy="add what it lacks, as in ci/gitlab/example/.gitlab-ci.yml",
)


def _entries(job: yaml.Node, path: Path) -> Iterator[Listed]:
    matrix = _value(_value(job, "parallel"), "matrix")
    at = f"{path}:{job.start_mark.line + 1}"
    if not isinstance(matrix, yaml.SequenceNode):
        raise SiteError(NO_MATRIX(at=at, job=JOBS))
    for entry in matrix.value:
        systems, stacks = _texts(_value(entry, _SYSTEM)), _texts(_value(entry, _STACK))
        if not (systems and stacks):
            at = f"{path}:{entry.start_mark.line + 1}"
            raise SiteError(PIPELINE_INCOMPLETE(at=at, names=[_SYSTEM, _STACK]))
        for system, stack in product(systems, stacks):
            if "$" not in system.value + stack.value:
                at = f"{path}:{stack.start_mark.line + 1}"
                yield Listed(system.value, stack.value, at)


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _texts(node: yaml.Node | None) -> list[yaml.ScalarNode]:
    several = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return [one for one in several if isinstance(one, yaml.ScalarNode)]


PIPELINE_SYSTEM = Words("pipeline.system", "{why}")
UNKNOWN_STACK = Words(
    "pipeline.unknown-stack",
    "the site config of {system} names no stack {name!r}",
    remedy="known: {known:list}{meant}",
)


def faults(listed: Sequence[Listed]) -> list[SiteError]:
    """Return what of a pipeline's list no site config has, an error each."""
    errors = []
    for system in dict.fromkeys(one.system for one in listed):
        of_system = [one for one in listed if one.system == system]
        try:
            known = [stack.name for stack in configs.load(choice.find(system)).stacks]
        except SiteError as error:
            errors.append(SiteError(PIPELINE_SYSTEM(at=of_system[0].at, why=error)))
            continue
        for one in of_system:
            if one.stack not in known:
                of = {"system": system, "name": one.stack, "known": known}
                meant = suggestion(one.stack, known)
                errors.append(SiteError(UNKNOWN_STACK(at=one.at, **of, meant=meant)))
    return errors


def without_job(listed: Sequence[Listed]) -> list[tuple[str, str]]:
    """Return the systems of a pipeline, each with a stack of its site config that no job is for."""
    pairs = {(one.system, one.stack) for one in listed}
    return [
        (system, stack.name)
        for system in dict.fromkeys(one.system for one in listed)
        for stack in configs.load(choice.find(system)).stacks
        if (system, stack.name) not in pairs
    ]
