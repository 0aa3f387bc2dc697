"""Site configs: which file describes this machine, and what all of them have in common.

A site config is a ReFrame configuration file with a literal ``site_configuration = ...``. It names
partitions, stacks and what they can do; :func:`configuration` adds what is the same everywhere.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import math
import os
import re
import runpy
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from clustergate.benchmarks.registry import check_paths
from clustergate.core import store
from clustergate.core.model import ClustergateError, NodeFacts, is_name
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Words
from clustergate.machine.environment import ON_COMMAND_LINE, cleaning_script
from clustergate.machine.node import read_node
from clustergate.sites import choice, exclusions
from clustergate.sites.description import (
    EXTRAS,
    MPI_STACK,
    Partition,
    Site,
    Stack,
    settable,
)
from clustergate.sites.description import SiteError as SiteError
from clustergate.sites.modes import checks_named, reframe_modes
from clustergate.sites.schedulers import scheduler_of
from clustergate.sites.schema import merge_other_tests, require_valid
from clustergate.sites.shape import Shape
from clustergate.stacks import DEFAULT
from clustergate.stacks.manifest import ManifestError, read_manifest

# ReFrame's own trap_job_errors breaks compile-only tests in 4.10.4 (it asks a job that a build does
# not have for its exit status), so the scripts themselves stop at the first command that fails.
STOP_AT_ERRORS = "set -e"
# Where a job notes the inherited variables that it took away.
REMOVED_ENVIRONMENT = "removed-environment"
# How much of what it does ReFrame keeps in its log: each record costs it milliseconds.
LOG_LEVEL = "CLUSTERGATE_LOG_LEVEL"


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
    systems: Sequence[Mapping[str, Any]],
    stacks: Sequence[Mapping[str, Any]] = (),
    checks: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Complete a site config with what every site has: modes, folders, logging.

    ``stacks`` are the environments, those of other tests too; ``checks`` are what modes run, by
    their names, where it is not their own choice. Jobs of other tests than the suite's
    are what they were, and so is where ReFrame stores results: see :func:`reframe_variables`.

    Raises :class:`SiteError` with file and key of what the site config must not say.
    """
    path = calling_file()
    given = {"systems": _listed(systems), "environments": _listed(stacks), "checks": checks}
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
    "the classes Site, Partition and Stack were removed",
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
    nodes = exclusions.hostfile_of(name) if isinstance(name, str) and is_name(name) else None
    slots = {"cores_per_node": min(node.slots for node in nodes.nodes)} if nodes else {}
    own = {one.name for one in EXTRAS}

    def with_extras(partition: Any) -> Any:
        said = partition.get("extras", {}) if isinstance(partition, Mapping) else None
        if not isinstance(said, Mapping):
            return partition
        said = {key: value for key, value in said.items() if value is not None or key not in own}
        return {**partition, "extras": {**slots, **said}}

    return {**system, "partitions": [*map(with_extras, system["partitions"])]}


def _completed(said: Mapping[str, Any]) -> dict[str, Any]:
    require_valid(said)
    chosen = {mode: checks_named(checks) for mode, checks in said["checks"].items()}
    # What the checks would only stumble over when ReFrame loads them.
    Shape(1, 1).rank_counts(os.environ.get("CLUSTERGATE_PROCESS_COUNTS", ""))
    state = state_dir()
    if _reframe_reads():
        store.make_folder(state / "results")
    named = [environment["name"] for environment in said["environments"]]
    completed = []
    for number, system in enumerate(said["systems"]):
        nodes = exclusions.hostfile_of(system["name"])
        partitions = []
        for index, stated in enumerate(system["partitions"]):
            partition = {"environs": named, **stated}
            is_batch = scheduler_of(partition["scheduler"]).is_batch
            if not is_batch and _has_stacks(partition, said["environments"]):
                # ReFrame's eight at once would share the cores of this node.
                partition.setdefault("max_jobs", 1)
            if chosen:
                partition["extras"] = {**partition["extras"], "checks": chosen}
            at = f"systems[{number}].partitions[{index}]"
            partitions.append(merge_other_tests(exclusions.exclude_nodes(partition, nodes, at)))
        if named and exclusions.nodes_left_out() and not any(one["environs"] for one in partitions):
            raise SiteError(exclusions.NO_NODE_LEFT(source="this run", which="every node"))
        folders = {
            # Two runs at once would wipe each other's.
            "stagedir": str(store.stage_folder(os.environ.get(store.RUN_ID, ""))),
            "outputdir": str(state / "output" / os.environ.get(store.RUN_ID, "")),
            "prefix": str(state),
        }
        # ReFrame matches patterns with the beginning of a host's name: n1 would claim n10.
        hostnames = [choice.whole_name(pattern) for pattern in system["hostnames"]]
        completed.append({**folders, **system, "hostnames": hostnames, "partitions": partitions})
    if "reframe" in sys.modules:
        _prepare_reframe()
    return {
        "systems": completed,
        "environments": [
            merge_other_tests(with_library(one, state) if _reframe_reads() else one)
            for one in said["environments"]
        ],
        "modes": reframe_modes(chosen),
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
SITE_FAILED = Words("site.failed", "{error}: {why}")


def run(path: Path) -> dict[str, Any]:
    """Return what a site config assigns; raises as :func:`load` does."""
    if not path.is_file():
        raise SiteError(SITE_MISSING(path=path))
    choice.read_source(path)
    try:
        return runpy.run_path(str(path))
    except ClustergateError:
        raise
    except SyntaxError as error:
        raise choice.not_python(path, error) from None
    except OSError as error:
        raise SiteError(choice.SITE_BROKEN(at=str(path), why=str(error))) from None
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        (*_, line) = (0, *(one.lineno for one in frames if one.filename == str(path)))
        at = f"{path}{f':{line}' * bool(line)}"
        error_name = type(error).__name__
        raise SiteError(SITE_FAILED(at=at, error=error_name, why=str(error))) from None


def nodes_of(partitions: Iterable[str]) -> dict[str, NodeFacts]:
    """Return what site configs state of the nodes of some partitions, ``system:partition``.

    Of a system that has no site config here nothing is known.
    """
    nodes: dict[str, NodeFacts] = {}
    for system in {one.partition(":")[0] for one in partitions}:
        for wanted in (system, None):
            with contextlib.suppress(ClustergateError):
                site = load(choice.find(wanted))
                if site.name == system:
                    nodes |= {one.fullname: one.facts for one in site.partitions}
                    break
    return nodes


def reframe_variables(path: Path, site: Site) -> dict[str, str]:
    """Return what makes ReFrame use a site config: else it takes a system of its own, and no check.

    A machine may be named that its hostnames do not match. ReFrame stores its results beside the
    suite's: a site config alone leaves them where they are.
    """
    store.make_folder(results := state_dir() / "results")
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
    shared = exclusions.hostfile_of(site.name) is not None
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
