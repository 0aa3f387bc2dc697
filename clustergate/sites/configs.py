"""Site configs: which file describes this machine, and what all of them have in common.

A site config is a ReFrame configuration file with a literal ``site_configuration = ...``. It names
partitions, stacks and what they can do; :func:`configuration` adds what is the same everywhere.
"""

from __future__ import annotations

import ast
import contextlib
import datetime
import importlib.metadata
import math
import os
import re
import runpy
import shlex
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clustergate.benchmarks.registry import check_paths
from clustergate.core import store
from clustergate.core.model import ClustergateError, NodeFacts, is_name
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.paths import is_site_folder_named, site_folder, state_dir, suite_folder
from clustergate.core.reasons import Words
from clustergate.launch.allocation import BATCH_JOB
from clustergate.launch.hostfiles import (
    Exclusion,
    Hostfile,
    HostfileError,
    HostNode,
    expand,
    fold,
    hostfile_path,
    read_hostfile,
)
from clustergate.machine.environment import ON_COMMAND_LINE, cleaning_script
from clustergate.machine.node import read_node
from clustergate.sites.description import (
    DETECTED,
    EXTRAS,
    MPI_STACK,
    Partition,
    Site,
    Stack,
    settable,
)
from clustergate.sites.description import SiteError as SiteError
from clustergate.sites.modes import reframe_modes
from clustergate.sites.schedulers import scheduler_of
from clustergate.sites.schema import merge_other_tests, require_valid
from clustergate.sites.shape import Shape
from clustergate.stacks import DEFAULT
from clustergate.stacks.manifest import ManifestError, read_manifest
from clustergate.stacks.sources import FOLDER_MISSING

# ReFrame's own trap_job_errors breaks compile-only tests in 4.10.4 (it asks a job that a build does
# not have for its exit status), so the scripts themselves stop at the first command that fails.
STOP_AT_ERRORS = "set -e"
# The nodes that are to be left out, as `clustergate gate` found them bad.
WITHOUT_NODES = "CLUSTERGATE_WITHOUT_NODES"
# Where a job notes the inherited variables that it took away.
REMOVED_ENVIRONMENT = "removed-environment"
# How much of what it does ReFrame keeps in its log: each record costs it milliseconds.
LOG_LEVEL = "CLUSTERGATE_LOG_LEVEL"
FALLBACK = DETECTED


def stack(
    name: str,
    provider: str = DEFAULT,
    *,
    pmi: str = "",
    waived: Mapping[str, str] | str = "",
    **environment: Any,
) -> dict[str, Any]:
    """Return an MPI stack in ReFrame's form: an environment with the suite's extras.

    ``pmi`` is what srun is told by ``--mpi``; ``waived`` names the checks that a gate need not see
    judged with it, each with the reason, or is a reason that waives all. What stands under the
    provider's own name are its settings: ``spack={"blas": "amdblis"}``; what stands under that of a
    benchmark says how it is run with the stack. The rest are keys of ReFrame's.
    """
    stated = {key: environment.pop(key, None) for key in (provider, *settable())}
    stated |= {"pmi": pmi, "waived": waived}
    extras = {"provider": provider, **environment.pop("extras", {})}
    return {
        "name": name,
        "features": [MPI_STACK, *environment.pop("features", ())],
        "extras": {**extras, **{key: value for key, value in stated.items() if value}},
        **environment,
    }


SITE_PROVIDER = Words(
    "site.provider",
    "CLUSTERGATE_PROVIDER (make's PROVIDER) is {name!r}",
    remedy="known: {known:list}",
)


def requested_provider(known: Iterable[str], environ: Mapping[str, str] = os.environ) -> str:
    """Return who provides the stacks of this machine: ``CLUSTERGATE_PROVIDER``, or the default.

    Raises :class:`SiteError` for a provider that is not among the known ones.
    """
    named = environ.get("CLUSTERGATE_PROVIDER", "") or DEFAULT
    if named not in known:
        raise SiteError(SITE_PROVIDER(name=named, known=[*known]))
    return named


def configuration(
    systems: Sequence[Mapping[str, Any]], stacks: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Complete a site config with what every site has: modes, folders, logging.

    ``stacks`` are the environments, those of other tests too. Jobs of other tests than the suite's
    are what they were, and so is where ReFrame stores results: see :func:`reframe_variables`.

    Raises :class:`SiteError` with file and key of what the site config must not say.
    """
    path = calling_file()
    given = {"systems": _listed(systems), "environments": _listed(stacks)}
    _require_no_classes(given.values(), path)
    try:
        return _completed({**given, "systems": _listed(given["systems"], _stated)})
    except SiteError as error:
        raise as_reframe_tells(error.at(path)) from None
    except ClustergateError as error:
        raise as_reframe_tells(error) from None


def calling_file() -> str:
    """Return the site config that runs now: the nearest file that is not of the suite."""
    frame = sys._getframe(1)
    own = ("clustergate", "evaluations", "importlib", "_frozen_importlib")
    while frame.f_back and frame.f_globals["__name__"].partition(".")[0] in own:
        frame = frame.f_back
    return frame.f_code.co_filename


def as_reframe_tells(error: ClustergateError) -> Exception:
    """Return an error of a site config as one of ReFrame, where that reads it.

    Of this kind it prints no traceback.
    """
    if not _reframe_reads():
        return error
    from reframe.core.exceptions import ConfigError

    refused: Exception = ConfigError(str(error))
    return refused


SITE_CLASSES = Words(
    "site.classes",
    "the classes Site, Partition and Stack are gone",
    remedy="`clustergate site convert {path}` prints this site config in ReFrame's form",
)


def _listed(said: Any, as_stated: Callable[[Any], Any] = lambda one: one) -> Any:
    """Return a list of what has items; the schema refuses what has none, or names them."""
    has_items = isinstance(said, Iterable) and not isinstance(said, Mapping | str)
    return [as_stated(one) for one in said] if has_items else said


def _require_no_classes(said: Iterable[Any], path: str) -> None:
    """Refuse the classes by which site configs once said the same."""
    for one in said:
        if isinstance(one, Site | Partition | Stack):
            raise as_reframe_tells(SiteError(SITE_CLASSES(at=path, path=path)))
        within = one.get("partitions") if isinstance(one, Mapping) else one
        if isinstance(within, list | tuple):
            _require_no_classes(within, path)


def _stated(system: Any) -> Any:
    """Return a system with the cores of its hostfile's nodes, where it does not say how many.

    An extra of the suite's that is None is not stated.
    """
    if not isinstance(system, Mapping) or not isinstance(system.get("partitions"), list | tuple):
        return system
    name = system.get("name")
    nodes = hostfile_of(name) if isinstance(name, str) and is_name(name) else None
    slots = {"cores_per_node": min(node.slots for node in nodes.nodes)} if nodes else {}
    own = {one.name for one in EXTRAS}

    def with_extras(partition: Any) -> Any:
        said = partition.get("extras", {}) if isinstance(partition, Mapping) else None
        if not isinstance(said, Mapping):
            return partition
        said = {key: value for key, value in said.items() if value is not None or key not in own}
        return {**partition, "extras": {**slots, **said}}

    return {**system, "partitions": [*map(with_extras, system["partitions"])]}


NO_NODE_LEFT = Words("site.no-node-left", "{source} excludes {which}; no node is left to run on")


def _completed(said: Mapping[str, Any]) -> dict[str, Any]:
    require_valid(said)
    # What the checks would only stumble over when ReFrame loads them.
    Shape(1, 1).rank_counts(os.environ.get("CLUSTERGATE_PROCESS_COUNTS", ""))
    state = state_dir()
    store.make_folder(state / "results")
    named = [environment["name"] for environment in said["environments"]]
    completed = []
    for number, system in enumerate(said["systems"]):
        nodes = hostfile_of(system["name"])
        partitions = []
        for index, stated in enumerate(system["partitions"]):
            partition = {"environs": named, **stated}
            is_batch = scheduler_of(partition["scheduler"]).is_batch
            if not is_batch and _has_stacks(partition, said["environments"]):
                # ReFrame's eight at once would share the cores of this node.
                partition.setdefault("max_jobs", 1)
            at = f"systems[{number}].partitions[{index}]"
            partitions.append(merge_other_tests(_on_nodes(partition, nodes, at)))
        if named and left_out() and not any(one["environs"] for one in partitions):
            raise SiteError(NO_NODE_LEFT(source="this run", which="every node"))
        folders = {
            # Two runs at once would wipe each other's.
            "stagedir": str(store.stage_folder(os.environ.get(store.RUN_ID, ""))),
            "outputdir": str(state / "output" / os.environ.get(store.RUN_ID, "")),
            "prefix": str(state),
        }
        # ReFrame matches patterns with the beginning of a host's name: n1 would claim n10.
        hostnames = [whole_name(pattern) for pattern in system["hostnames"]]
        completed.append({**folders, **system, "hostnames": hostnames, "partitions": partitions})
    if "reframe" in sys.modules:
        _prepare_reframe()
    return {
        "systems": completed,
        "environments": [
            merge_other_tests(with_library(one, state) if _reframe_reads() else one)
            for one in said["environments"]
        ],
        "modes": reframe_modes(),
        "general": [
            {
                "check_search_path": check_paths(),
                "check_search_recursive": True,
                # Per second; by itself it asks ever more rarely, in the end every ten seconds.
                "poll_rate_min": 0.5,
                "perf_info_level": "debug",
                "resolve_module_conflicts": False,
                "save_log_files": False,
            }
        ],
        "logging": [_logging(state)],
    }


def _has_stacks(partition: Mapping[str, Any], environments: Sequence[Mapping[str, Any]]) -> bool:
    stacks = {one["name"] for one in environments if MPI_STACK in one.get("features", ())}
    return not stacks.isdisjoint(partition["environs"])


# What compiles by an MPI library, by the keys of ReFrame's environments.
_WRAPPERS = {
    "cc": ("mpicc",),
    "cxx": ("mpicxx", "mpic++"),
    "ftn": ("mpifort", "mpifc", "mpif90"),
}


def _reframe_reads() -> bool:
    """Tell whether it is ReFrame's command line that reads the site config, for all its tests."""
    return "reframe.frontend.cli" in sys.modules


def with_library(environment: Mapping[str, Any], state: Path) -> dict[str, Any]:
    """Return a stack's environment with its MPI library's compilers and launcher, for other tests.

    They are there once the stack is set up; one that its library lacks is not named. What the site
    config says itself stays.
    """
    if MPI_STACK not in environment.get("features", ()):
        return dict(environment)
    try:
        manifest = read_manifest(state, environment["name"])
    except ManifestError:
        return dict(environment)
    programs = Path(manifest.launcher).parent
    compilers = {
        key: next((name for name in names if (programs / name).exists()), "")
        for key, names in _WRAPPERS.items()
    }
    said = [*map(list, environment.get("env_vars", ()))]
    given = [
        # ReFrame writes it into a script as it stands.
        [name, shlex.quote(value) + (f":${name}" if name == "PATH" else "")]
        for name, value in manifest.environment.items()
        # The others' loader path is theirs: the wrappers note in a program where its library is.
        if name != "LD_LIBRARY_PATH" and name not in dict(said)
    ]
    there = {key: name for key, name in compilers.items() if name}
    return {**there, **environment, "env_vars": [*given, *said]}


def preparation(access: Iterable[str] = ()) -> list[str]:
    """Return the lines of shell with which each job of the suite's own begins.

    The options of ``access`` may not be in the script (ReFrame's :attr:`sched_access_in_submit`).
    """
    asked = [f"{ON_COMMAND_LINE} {option}" for option in access]
    return [STOP_AT_ERRORS, *asked, cleaning_script(REMOVED_ENVIRONMENT)]


# The oldest of each minor version that runs the suite. 4.8 has no `poll_rate_min`, by which it asks
# for jobs, and no RegressionTestPlugin, of which the sweeps are made; 4.10.0 to 4.10.3 name
# the wrong figure where one fails.
_REFRAMES = {(4, 9): 2, (4, 10): 4}


REFRAME_UNSUPPORTED = Words(
    "reframe.unsupported",
    "ReFrame {version} cannot run these checks",
    cause="{oldest} and later patches of these can",
    remedy="install clustergate into an environment of its own (docs/reframe.md)",
)


def require_reframe() -> None:
    """Raise :class:`ClustergateError` for a ReFrame that cannot run the suite.

    It may be a site's own, beside which the suite was installed.
    """
    version = _reframe_version()
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if not match or int(match[3]) < _REFRAMES.get((int(match[1]), int(match[2])), math.inf):
        oldest = ", ".join(f"{a}.{b}.{patch}" for (a, b), patch in _REFRAMES.items())
        raise ClustergateError(REFRAME_UNSUPPORTED(version=version or "none", oldest=oldest))


def _reframe_version() -> str:
    loaded = getattr(sys.modules.get("reframe"), "VERSION", "")
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        # One that was not installed by pip tells it once it is loaded.
        return str(loaded or importlib.metadata.version("reframe-hpc"))
    return ""


def _prepare_reframe() -> None:
    """Register launchers and the loader with ReFrame, where it is ReFrame that reads the config.

    Also remove the log that it keeps in the temporary folder until it knows a better place.
    """
    require_reframe()
    # Imported, they register themselves.
    from reframe.core import logging

    import clustergate.launch.launchers
    import clustergate.sites.loader  # noqa: F401

    with contextlib.suppress(AttributeError):
        # Outside of ReFrame there is none.
        for name in logging.log_files():
            if Path(name).parent == Path(tempfile.gettempdir()) and Path(name).match("rfm-*.log"):
                Path(name).unlink(missing_ok=True)


def hostfile_of(system: str) -> Hostfile | None:
    """Return the nodes of a system, None where it has no hostfile.

    Those of ``CLUSTERGATE_WITHOUT_NODES`` are excluded, too. Raises
    :class:`~clustergate.launch.hostfiles.HostfileError` that names the line when it cannot be
    used.
    """
    path = hostfile_path(system)
    if not os.path.lexists(path):
        return None
    hostfile = read_hostfile(path)
    now = dict.fromkeys(left_out(), Exclusion(datetime.date.today(), "left out of this run"))
    return replace(hostfile, excluded={**now, **hostfile.excluded})


def nodes_out(system: str) -> tuple[list[str], list[str]]:
    """Return the nodes that are left out by hand, and a line for each reason of the hostfile.

    Raises as :func:`hostfile_of` does.
    """
    path = hostfile_path(system)
    excluded = read_hostfile(path).excluded if os.path.lexists(path) else {}
    by_reason: dict[str, list[str]] = {}
    for name, why in excluded.items():
        by_reason.setdefault(str(why), []).append(name)
    lines = [f"not judged, excluded {why}: {fold(names)}" for why, names in by_reason.items()]
    return [name for name in left_out() if name not in excluded], lines


def left_out() -> list[str]:
    """Return the nodes that ``CLUSTERGATE_WITHOUT_NODES`` names."""
    named = os.environ.get(WITHOUT_NODES, "")
    return expand(named) if named else []


NO_HOSTFILE = Words(
    "site.no-hostfile",
    "the partition {partition} launches over ssh and its system has no hostfile",
    remedy="write one as hostfiles/template.txt explains",
)
NO_NODES = Words(
    "site.no-nodes",
    (
        "the partition {partition}, whose jobs go through {scheduler}, does not say how many "
        "nodes it has"
    ),
    remedy="add `nodes` to its extras (`clustergate site scan NAME` tells), or write a hostfile",
)
ACCESS_TWICE = Words(
    "site.access-twice",
    "`access` of partition {partition} has {option} with two values",
    cause="sbatch takes the last alone",
    remedy="give one that says all",
)
ACCESS_EXCLUDE = Words(
    "site.access-exclude",
    "`access` of partition {partition} excludes nodes beside those that are left out: {why}",
    cause="sbatch takes one --exclude alone",
    remedy="name the nodes there as a list such as n[1-4]",
)


def _on_nodes(said: Mapping[str, Any], nodes: Hostfile | None, at: str) -> dict[str, Any]:
    """Return a partition that keeps out what the hostfile excludes, whoever chooses the nodes.

    ``at`` is where it stands in the site config.
    """
    partition = Partition.of(said)
    scheduler = scheduler_of(partition.scheduler)
    if partition.launcher == "clustergate-ssh" and nodes is None:
        raise SiteError(NO_HOSTFILE(at=f"{at}.launcher", partition=partition.name))
    if scheduler.is_batch and partition.nodes is None and nodes is None:
        # One node of many would be measured, and all that must be judged would have been.
        facts = {"partition": partition.name, "scheduler": partition.scheduler}
        raise SiteError(NO_NODES(at=f"{at}.extras.nodes", **facts))
    if twice := scheduler.given_twice(partition.access):
        facts = {"partition": partition.name, "option": f"--{twice}"}
        raise SiteError(ACCESS_TWICE(at=f"{at}.access", **facts))
    access = scheduler.completed(partition.access)
    options = {**scheduler.reframe_options, **said.get("sched_options", {})}
    try:
        nodes_left = _nodes_left(said, nodes, at) if nodes or left_out() else {}
        access = scheduler.excluding(access, nodes.excluded if nodes else left_out())
    except HostfileError as why:
        facts = {"partition": partition.name, "why": str(why)}
        raise SiteError(ACCESS_EXCLUDE(at=f"{at}.access", **facts)) from None
    changed = {"access": access, "sched_options": options}
    changed = {key: value for key, value in changed.items() if value}
    return {**said, "environs": [*said["environs"]], **changed, **nodes_left}


UNLISTED_NODES = Words(
    "site.unlisted-nodes",
    (
        "the site config states {stated} nodes of the partition {partition}, and {source} lists "
        "{listed}"
    ),
    remedy=(
        "list the others too, broken ones by `exclude` with the reason, or correct the site config"
    ),
)


def _nodes_left(said: Mapping[str, Any], nodes: Hostfile | None, at: str) -> dict[str, Any]:
    """Return what changes of a partition without the nodes that are excluded, or left out now."""
    partition = Partition.of(said)
    stated = partition.nodes or (len(nodes.nodes) if nodes else 1)
    scheduler, ask = scheduler_of(partition.scheduler), not nodes and left_out()
    # Of those left out only the nodes of this partition are missing from it, as far as is known.
    own_names = {*scheduler.node_names(partition.access)} if ask else set()
    usable = stated - len([n for n in left_out() if n in own_names or not own_names])
    none_left = bool(own_names) and own_names <= {*left_out()}
    if nodes:
        name, listed = partition.name, len(nodes.nodes)
        own = _nodes_of_kind(nodes, partition.cores_per_node, stated)
        by_access = scheduler.excluded_by(partition.access) if nodes.excluded else ()
        out = {*nodes.excluded, *by_access}
        usable = sum(node.name not in out for node in own)
        if stated > listed:
            raise SiteError(
                UNLISTED_NODES(
                    at=f"{at}.extras.nodes",
                    partition=name,
                    stated=stated,
                    source=nodes.source,
                    listed=listed,
                )
            )
        none_left = not usable and any(node.name in left_out() for node in own)
        if not usable and not none_left:
            which = "every node" if len(own) == listed else f"every node like those of {name}"
            raise SiteError(NO_NODE_LEFT(source=nodes.source, which=which))
    left = min(stated, max(usable, 1))
    extras = {**said["extras"], "nodes": left}
    if left < stated:
        extras["excluded_nodes"] = stated - left
    # Of one without a node left no job could start in this run.
    return {"extras": extras, **({"environs": []} if none_left else {})}


def _nodes_of_kind(nodes: Hostfile, cores: int, count: int) -> Sequence[HostNode]:
    """Return the nodes of a hostfile that a partition of so many cores and nodes can have.

    Partitions of different nodes share the file: an excluded node of one is not lost to the other.
    """
    alike = [node for node in nodes.nodes if node.slots == cores]
    fitting = [node for node in nodes.nodes if node.slots >= cores]
    return next((kind for kind in (alike, fitting) if len(kind) >= count), nodes.nodes)


def _logging(state: Path) -> dict[str, Any]:
    level = os.environ.get(LOG_LEVEL, "debug")
    return {
        # Without it ReFrame makes every record, and with it all it knows of the test, for nothing.
        "level": level,
        "handlers": [
            {
                "type": "file",
                "name": str(state / "reframe.log"),
                "level": level,
                "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                "append": False,
            }
        ],
        "handlers$": [
            {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"}
        ],
    }


def site_files() -> list[Path]:
    """Return the site configs of the site, one per system, without the template.

    The suite's description of a machine that no site config knows is always among them, and its
    others where no folder is named. Raises :class:`SiteError` when the named one is not there.
    """
    named = is_site_folder_named()
    if named and not site_folder().is_dir():
        raise SiteError(FOLDER_MISSING(variable="CLUSTERGATE_SITE_FOLDER", folder=site_folder()))
    suites = suite_folder("site_configs").glob(f"{FALLBACK}.py" if named else "*.py")
    own = (site_folder() / "site_configs").glob("*.py")
    by_name = {path.stem: path for path in (*suites, *own) if path.stem != "template"}
    return sorted(by_name.values(), key=lambda path: path.name)


SITE_UNASSIGNED = Words("site.unassigned", "no site_configuration is assigned")
NOT_COMPLETED = Words(
    "site.not-completed",
    "its site_configuration is not what clustergate.sites.configuration returns",
    remedy=(
        "let it say `site_configuration = configuration(systems=[…], stacks=[…])`, or let "
        "`clustergate site scan NAME` write one"
    ),
)
NO_STACK = Words(
    "site.no-stack",
    "it names no MPI stack, so there is nothing to measure",
    remedy='add stacks=[stack("mpich")] to its configuration()',
)


def load(path: Path) -> Site:
    """Return what a site config says, completed.

    Raises :class:`SiteError` with file and line when it cannot be read.
    """
    configured = run(path).get("site_configuration")
    if not isinstance(configured, dict):
        raise SiteError(SITE_UNASSIGNED(at=str(path)))
    try:
        site = Site.of(configured)
    except (LookupError, TypeError):
        raise SiteError(NOT_COMPLETED(at=str(path))) from None
    if not site.stacks:
        raise SiteError(NO_STACK(at=str(path)))
    return site


SITE_MISSING = Words("site.missing", "no site config {path}")
SITE_BROKEN = Words("site.broken", "{why}")
SITE_FAILED = Words("site.failed", "{error}: {why}")


def run(path: Path) -> dict[str, Any]:
    """Return what a site config assigns; raises as :func:`load` does."""
    if not path.is_file():
        raise SiteError(SITE_MISSING(path=path))
    _source(path)
    try:
        return runpy.run_path(str(path))
    except ClustergateError:
        raise
    except SyntaxError as error:
        raise _not_python(path, error) from None
    except OSError as error:
        raise SiteError(SITE_BROKEN(at=str(path), why=str(error))) from None
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        (*_, line) = (0, *(one.lineno for one in frames if one.filename == str(path)))
        at = f"{path}{f':{line}' * bool(line)}"
        error_name = type(error).__name__
        raise SiteError(SITE_FAILED(at=at, error=error_name, why=str(error))) from None


def _source(path: Path) -> bytes:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise SiteError(SITE_BROKEN(at=str(path), why=error)) from None
    # Python 3.11.2 and older name no line, and call it another error.
    if b"\0" in source:
        why = "it contains null bytes; save it as UTF-8"
        raise SiteError(SITE_BROKEN(at=f"{path}:1", why=why))
    return source


def _not_python(path: Path, error: SyntaxError) -> SiteError:
    return SiteError(SITE_BROKEN(at=f"{path}:{error.lineno or 1}", why=error.msg))


def hostname_patterns(path: Path) -> list[str]:
    """Return the hostname patterns of a site config without running it.

    Only a literal list can be seen this way, which is what a site config should hold. Raises
    :class:`SiteError` that names file and line of what cannot be read: a machine must not be taken
    for an unknown one because its own file is damaged.
    """
    patterns: list[str] = []
    for node in ast.walk(_parsed(path)):
        for value in _values_of("hostnames", node):
            patterns += _literal_patterns(value, path)
    return patterns


def _values_of(key: str, node: ast.AST) -> list[ast.expr]:
    """Return what a dictionary, a call or an assignment to an item says of a key."""
    said: list[tuple[ast.expr | None, ast.expr]] = []
    if isinstance(node, ast.Dict):
        said = [*zip(node.keys, node.values, strict=True)]
    elif isinstance(node, ast.Call):
        return [word.value for word in node.keywords if word.arg == key]
    elif isinstance(node, ast.Assign):
        items = (target for target in node.targets if isinstance(target, ast.Subscript))
        said = [(item.slice, node.value) for item in items]
    return [value for name, value in said if isinstance(name, ast.Constant) and name.value == key]


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(_source(path), str(path))
    except SyntaxError as error:
        raise _not_python(path, error) from None
    except ValueError as error:
        raise SiteError(SITE_BROKEN(at=str(path), why=error)) from None


SITE_HOSTNAMES = Words(
    "site.hostnames",
    "hostnames must be a literal list of patterns",
    remedy='write them like ["alpha-login", "alpha[0-9]+"]',
)
HOSTNAME_PATTERN = Words("site.hostname-pattern", "hostnames: {pattern!r}: {why}")


def _literal_patterns(value: ast.expr, path: Path) -> list[str]:
    at = f"{path}:{value.lineno}"
    try:
        patterns = ast.literal_eval(value)
        for pattern in patterns:
            re.compile(pattern)
    except (ValueError, TypeError):
        raise SiteError(SITE_HOSTNAMES(at=at)) from None
    except re.error as error:
        raise SiteError(HOSTNAME_PATTERN(at=at, pattern=pattern, why=error)) from None
    return list(patterns)


def whole_name(pattern: str) -> str:
    """Return a pattern that holds of a host's whole name only, whoever matches it.

    The name may carry its domain.
    """
    flags = re.match(r"(\(\?[aiLmsux]+\))*", pattern)
    assert flags is not None
    return rf"{flags[0]}(?:{pattern[flags.end() :]})(?:\..*)?\Z"


@dataclass(frozen=True)
class Choice:
    """A site config, and why it was taken.

    ``fallback`` tells that nothing speaks for it but that no other one claims the machine,
    ``disputed`` that another one does, and it does not.
    """

    path: Path
    why: str
    fallback: bool = False
    disputed: bool = False

    def __str__(self) -> str:
        return f"site {self.path.stem}, {self.why} ({self.path})"


SITE_UNKNOWN = Words(
    "site.unknown",
    "unknown site config {name!r}{meant}",
    cause="known: {known:list}{more}",
    remedy="`clustergate site scan NAME` writes one on a cluster",
)
CLAIMED_TWICE = Words(
    "site.claimed-twice",
    "several site configs claim this machine, {hostname}",
    cause="{claims:list}",
    remedy="correct their hostnames, or name a site config by --site NAME",
)
SITE_UNCLAIMED = Words(
    "site.unclaimed",
    "no site config claims this machine, {hostname}{near}, and {guess}",
    remedy=(
        "name a site config by --site NAME, or add the machine's name to the hostnames of its "
        "site config; known: {known:list}"
    ),
)


def choose(
    name: str | None = None,
    hostname: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Choice:
    """Choose the site config: the named one, else the one whose hostnames match.

    ``name`` is a file's path or the name of a file in site_configs/. A machine that no file claims
    is described as detected, by ``local``. Raises :class:`SiteError` where that would be a
    guess, in a batch job or beside site configs of the site's own, and when several files claim
    the machine.
    """
    files = {path.stem: path for path in site_files()}
    hostname = hostname or socket.gethostname()
    if name is not None:
        path = files.get(name) or Path(name).resolve()
        if name not in files and not path.is_file():
            own = [stem for stem, path in files.items() if not is_by_name_alone(path)]
            more = f" and {len(files) - len(own)} of published systems" * (len(files) > len(own))
            if not (more or is_site_folder_named()):
                more = "; published systems: `pip install 'clustergate[evaluations]'`"
            of = {"name": name, "meant": did_you_mean(nearest(name, own) or nearest(name, files))}
            raise SiteError(SITE_UNKNOWN(known=own, more=more, **of))
        mismatch, disputed = _mismatch(path, files, hostname)
        return Choice(path, f"as named{mismatch}", disputed=disputed)
    claims = {
        path: pattern
        for stem, path in files.items()
        if stem != FALLBACK
        for pattern in reversed(hostname_patterns(path))
        if re.match(whole_name(pattern), hostname)
    }
    if len(claims) > 1:
        each = [f"{path} by {pattern!r}" for path, pattern in claims.items()]
        raise SiteError(CLAIMED_TWICE(hostname=hostname, claims=each))
    for path, pattern in claims.items():
        return Choice(path, f"whose hostnames {pattern!r} match {hostname}")
    unknown = f"no site config claims this machine, {hostname}"
    known = {stem: path for stem, path in files.items() if not is_by_name_alone(path)}
    if guess := _guess_reason(known, environ):
        near = [
            stem
            for stem, path in known.items()
            if stem != FALLBACK and any(re.match(p, hostname) for p in hostname_patterns(path))
        ]
        hint = f" (those of {', '.join(near)} match only the beginning of its name)" if near else ""
        raise SiteError(SITE_UNCLAIMED(hostname=hostname, near=hint, guess=guess, known=[*known]))
    return Choice(files[FALLBACK], f"as detected, since {unknown}", fallback=True)


def _guess_reason(known: Mapping[str, Path], environ: Mapping[str, str]) -> str:
    """Return why an unknown machine must not be taken for a workstation; else ""."""
    job = next((variable for variable in BATCH_JOB if environ.get(variable)), "")
    if job:
        return f"this is a batch job ({job} is set)"
    described = sorted({str(path.parent) for stem, path in known.items() if stem != FALLBACK})
    if described:
        return f"{', '.join(described)} describes systems of its own"
    if is_site_folder_named() and not known[FALLBACK].is_relative_to(site_folder()):
        return f"{site_folder()}, which CLUSTERGATE_SITE_FOLDER names, describes no system"
    return ""


def is_by_name_alone(path: Path) -> bool:
    """Tell whether a site config says ``by_name_alone = True``: it describes no machine of here."""
    return any(
        ast.unparse(node) == "by_name_alone = True"
        for node in _parsed(path).body
        if isinstance(node, ast.Assign)
    )


def _mismatch(path: Path, files: Mapping[str, Path], hostname: str) -> tuple[str, bool]:
    """Return how hostnames contradict the choice of a named site config, and whether all do."""

    def claimed(by: Path) -> bool | None:
        # One that is damaged must not stand in the way of another that is named.
        with contextlib.suppress(SiteError):
            patterns = hostname_patterns(by)
            return any(re.match(whole_name(p), hostname) for p in patterns) if patterns else None
        return None

    others = [stem for stem, by in files.items() if stem != FALLBACK and by != path and claimed(by)]
    unmatched = claimed(path) is False
    if others:
        return f", although {', '.join(others)} claims this machine, {hostname}", unmatched
    although = f", although its hostnames do not match {hostname}" if unmatched else ""
    return although, False


def find(name: str | None = None, hostname: str | None = None) -> Path:
    """Return the site config that :func:`choose` takes."""
    return choose(name, hostname).path


def nodes_of(partitions: Iterable[str]) -> dict[str, NodeFacts]:
    """Return what site configs state of the nodes of some partitions, ``system:partition``.

    Of a system that has no site config here nothing is known.
    """
    nodes: dict[str, NodeFacts] = {}
    for system in {one.partition(":")[0] for one in partitions}:
        for wanted in (system, None):
            with contextlib.suppress(ClustergateError):
                site = load(find(wanted))
                if site.name == system:
                    nodes |= {one.fullname: one.facts for one in site.partitions}
                    break
    return nodes


def reframe_variables(path: Path, site: Site) -> dict[str, str]:
    """Return what makes ReFrame use a site config: else it takes a system of its own, and no check.

    A machine may be named that its hostnames do not match. ReFrame stores its results beside the
    suite's: a site config alone leaves them where they are.
    """
    results = state_dir() / "results"
    return {
        "RFM_CONFIG_FILES": str(path),
        "RFM_SYSTEM": site.name,
        # ReFrame ends where nothing names the user, as in a container.
        "LOGNAME": store.user_name(),
        "RFM_ENABLE_RESULTS_STORAGE": "1",
        "RFM_SQLITE_DB_FILE": str(results / "results.db"),
        # Of a group's home the group writes it, too.
        "RFM_SQLITE_DB_FILE_MODE": f"{results.stat().st_mode & 0o666:o}",
        "RFM_REPORT_FILE": str(results / "reports" / "run-{sessionid}.json"),
    }


# What changes a launch, of what the site config says of a stack and of a partition.
_LAUNCHED_BY = ("launcher", "bind_to_cores", "pmi", "env_vars", "modules", "prepare_cmds")


def launch_settings(site: Site, stack: str) -> dict[str, str]:
    """Return as text, by name, what the site config sets of a stack's launches."""
    places = [(one.name, vars(one)) for one in site.stacks if one.name == stack]
    places += [(one.name, vars(one)) for one in site.partitions if stack in one.stacks]
    settings: dict[str, str] = {}
    for place, said in places:
        known = {**said, **said["reframe"]}
        settings |= {f"{k} of {place}": repr(known[k]) for k in _LAUNCHED_BY if known.get(k)}
    return settings


def partitions_with_own_nodes(site: Site) -> list[Partition]:
    """Return the partitions that have nodes which no partition before them has, as far as told.

    Those of a hostfile share its nodes; else what a scheduler is asked for tells them apart. What
    the site waives is left out.
    """
    shared = hostfile_of(site.name) is not None
    by_access: dict[tuple[str, ...], Partition] = {}
    for partition in site.partitions:
        apart = not shared and scheduler_of(partition.scheduler).is_batch
        if partition.stacks and not partition.waived:
            by_access.setdefault(tuple(partition.access if apart else ()), partition)
    return list(by_access.values())


def restriction_of(site: Site) -> str:
    """Return what keeps this process from cores or memory of this node, where jobs run here."""
    return read_node().restriction() if partitions_here(site) else ""


def partitions_here(site: Site) -> list[str]:
    """Return the partitions whose jobs run on this node, by their full names."""
    here = ("local", "clustergate")
    return [one.fullname for one in site.partitions if (one.scheduler, one.launcher) == here]
