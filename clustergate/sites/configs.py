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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clustergate import store
from clustergate.benchmarks.registry import check_paths
from clustergate.launching.hostfiles import (
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
from clustergate.model import ClustergateError, NodeFacts, is_name
from clustergate.paths import is_site_folder_named, site_folder, state_dir, suite_folder
from clustergate.schedulers import PBS, SLURM
from clustergate.schedulers.wishes import nodes_of_slurm, partition_of_access
from clustergate.sites.access import allowing, excluded_by, excluding, given_twice
from clustergate.sites.description import (
    DETECTED,
    MPI_STACK,
    Partition,
    Site,
    Source,
    Stack,
    entries,
    merge_other_tests,
    require_valid,
    settable,
    suggestion_for,
    to_reframe,
)
from clustergate.sites.description import SiteError as SiteError
from clustergate.sites.modes import reframe_modes
from clustergate.sites.shape import Shape
from clustergate.stacks.manifest import ManifestError, read_manifest
from clustergate.stacks.sources import FOLDER_MISSING
from clustergate.wording.notation import did_you_mean, nearest
from clustergate.wording.reasons import Words

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
# What tells that this is a job: Slurm, PBS, LSF, Flux, Cobalt, OAR, Fujitsu's, LoadLeveler, SGE.
BATCH_JOB = (
    *("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "OAR_JOB_ID"),
    *("PJM_JOBID", "LOADL_STEP_ID", "SGE_TASK_ID"),
)
# Why Slurm lets a job wait until somebody mends something; ReFrame knows the first only.
NEVER_STARTS = (
    *("ReqNodeNotAvail", "Nodes required for job are DOWN", "PartitionDown", "NodeDown"),
    *("PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints", "InvalidAccount", "InvalidQOS"),
    *("QOSMaxNodePerJobLimit", "QOSMaxWallDurationPerJobLimit", "AssocMaxNodePerJobLimit"),
    *("AssocMaxWallDurationPerJobLimit", "ReservationDeleted"),
)


def stack(
    name: str,
    provider: str = "wheels",
    *,
    pmi: str = "",
    waived: Mapping[str, str] | str = "",
    **environment: Any,
) -> dict[str, Any]:
    """Return a :class:`Stack` in ReFrame's form.

    What stands under the provider's own name are its settings: ``spack={"blas": "amdblis"}``; what
    stands under that of a benchmark says how it is run with the stack.
    """
    settings = environment.pop(provider, None) or {}
    benchmarks = {one: environment.pop(one) for one in settable() if one in environment}
    return Stack(name, provider, settings, pmi, benchmarks, waived, environment).as_reframe()


SITE_PROVIDER = Words(
    "site.provider",
    "CLUSTERGATE_PROVIDER (make's PROVIDER) is {name!r}",
    remedy="known: {known:list}",
)


def requested_provider(known: Iterable[str], environ: Mapping[str, str] = os.environ) -> str:
    """Return who provides the stacks of this machine: ``CLUSTERGATE_PROVIDER``, else the wheels.

    Raises :class:`SiteError` for a provider that is not among the known ones.
    """
    named = environ.get("CLUSTERGATE_PROVIDER", "") or "wheels"
    if named not in known:
        raise SiteError(SITE_PROVIDER(name=named, known=[*known]))
    return named


NO_NODE_LEFT = Words("site.no-node-left", "{source} excludes {which}; no node is left to run on")


def configuration(
    systems: Sequence[Site | Mapping[str, Any]],
    stacks: Sequence[Stack | Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Complete a site config with what every site has: modes, folders, logging.

    ``stacks`` are further ones beside those of a :class:`Site`. Jobs of other tests than the
    suite's are what they were, and so is where ReFrame stores results: see
    :func:`reframe_variables`.

    Raises :class:`SiteError` with file and line of what the site config must not say.
    """
    caller = sys._getframe(1)
    source = Source(Path(caller.f_code.co_filename), caller.f_lineno)
    described = _described(systems, stacks, source)
    # What the checks would only stumble over when ReFrame loads them.
    Shape(1, 1).rank_counts(os.environ.get("CLUSTERGATE_PROCESS_COUNTS", ""))
    state = state_dir()
    results = state / "results"
    results.mkdir(parents=True, exist_ok=True)
    named = [environment["name"] for environment in described["environments"]]
    completed = []
    for system in described["systems"]:
        nodes = hostfile_of(system["name"])
        partitions = []
        for said in system["partitions"]:
            keys = {"environs": named, **said}
            if keys["scheduler"] == "local" and _has_stacks(keys, described["environments"]):
                # ReFrame's eight at once would share the cores of this node.
                keys.setdefault("max_jobs", 1)
            partition = _on_nodes(Partition.of(keys), nodes, source)
            partitions.append(merge_other_tests(partition.as_reframe()))
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
            for one in described["environments"]
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

    The options of ``access`` may not be in the script (ReFrame's ``sched_access_in_submit``).
    """
    asked = [f"{ON_COMMAND_LINE} {option}" for option in access]
    return [STOP_AT_ERRORS, *asked, cleaning_script(REMOVED_ENVIRONMENT)]


def _described(
    systems: Sequence[Site | Mapping[str, Any]],
    stacks: Sequence[Stack | Mapping[str, Any]],
    source: Source,
) -> dict[str, Any]:
    own = [stack for system in systems if isinstance(system, Site) for stack in system.stacks]
    said = {
        "systems": [to_reframe(system) for system in systems],
        "environments": [to_reframe(stack) for stack in (*own, *stacks)],
    }
    for system in said["systems"]:
        if isinstance(system, dict):
            _with_slots(system)
    require_valid(said, source)
    return said


def _with_slots(system: dict[str, Any]) -> None:
    """Let the hostfile say how many cores nodes have where the partitions do not."""
    name, partitions = system.get("name"), system.get("partitions")
    if not isinstance(name, str) or not is_name(name) or not isinstance(partitions, list):
        return
    if (nodes := hostfile_of(name)) is None:
        return
    for partition in partitions:
        if isinstance(partition, Mapping) and isinstance(extras := partition["extras"], dict):
            extras.setdefault("cores_per_node", min(node.slots for node in nodes.nodes))


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
    try:
        require_reframe()
    except ClustergateError as error:
        from reframe.core.exceptions import ConfigError

        # Of this kind it prints no traceback.
        raise ConfigError(str(error)) from None
    # Imported, they register themselves.
    from reframe.core import logging

    import clustergate.launching.launchers
    import clustergate.sites.loader  # noqa: F401

    with contextlib.suppress(AttributeError):
        # Outside of ReFrame there is none.
        for name in logging.log_files():
            if Path(name).parent == Path(tempfile.gettempdir()) and Path(name).match("rfm-*.log"):
                Path(name).unlink(missing_ok=True)


def hostfile_of(system: str) -> Hostfile | None:
    """Return the nodes of a system, None where it has no hostfile.

    Those of ``CLUSTERGATE_WITHOUT_NODES`` are excluded, too. Raises
    :class:`~clustergate.launching.hostfiles.HostfileError` that names the line when it cannot be
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
NO_NODES = Words(
    "site.no-nodes",
    (
        "the partition {partition}, whose jobs go through {scheduler}, does not say how many "
        "nodes it has"
    ),
    remedy="add `nodes` to its extras (`clustergate site scan NAME` tells), or write a hostfile",
)


def _on_nodes(partition: Partition, nodes: Hostfile | None, source: Source) -> Partition:
    """Return a partition that keeps out what the hostfile excludes, whoever chooses the nodes."""
    if partition.launcher == "clustergate-ssh" and nodes is None:
        raise SiteError(NO_HOSTFILE(partition=partition.name))
    if partition.scheduler != "local" and partition.nodes is None and nodes is None:
        # One node of many would be measured, and all that must be judged would have been.
        facts = {"partition": partition.name, "scheduler": partition.scheduler}
        raise SiteError(NO_NODES(at=source.at("scheduler", partition.name), **facts))
    if partition.scheduler in SLURM:
        # A job that Slurm started again would find the folder of its first start.
        if twice := given_twice(partition.access):
            facts = {"partition": partition.name, "option": f"--{twice}"}
            raise SiteError(ACCESS_TWICE(at=source.at("access", partition.name), **facts))
        access = [*partition.access, "--no-requeue"]
        # Else Slurm is free to put ranks that should lie apart on one node.
        options = {"use_nodes_option": True, "slurm_job_cancel_reasons": list(NEVER_STARTS)}
        options |= partition.reframe.get("sched_options", {})
        reframe = {**partition.reframe, "sched_options": options}
        partition = replace(partition, access=access, reframe=reframe)
    if partition.scheduler in PBS and not any("place=" in option for option in partition.access):
        # Else PBS puts what should lie on several nodes on one.
        partition = replace(partition, access=[*partition.access, "-l place=scatter"])
    try:
        sized = _sized(partition, nodes) if nodes or left_out() else partition
        if partition.scheduler not in SLURM:
            return sized
        access = excluding(sized.access, nodes.excluded if nodes else left_out())
    except HostfileError as why:
        facts = {"partition": partition.name, "why": str(why)}
        at = source.at("access", partition.name)
        raise SiteError(ACCESS_EXCLUDE(at=at, **facts)) from None
    return replace(sized, access=access)


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


def _sized(partition: Partition, nodes: Hostfile | None) -> Partition:
    """Return a partition without the nodes that are excluded, or left out now."""
    stated = partition.nodes or (len(nodes.nodes) if nodes else 1)
    in_slurm = partition.scheduler in SLURM and not nodes and left_out()
    # Of those left out only the nodes of this partition are missing from it, as far as is known.
    there = partition_of_access(partition.access), allowing(partition.access)
    own_names = {*nodes_of_slurm(*there)} if in_slurm else set()
    usable = stated - len([n for n in left_out() if n in own_names or not own_names])
    none_left = bool(own_names) and own_names <= {*left_out()}
    if nodes:
        name, listed = partition.name, len(nodes.nodes)
        own = _nodes_of_kind(nodes, partition.cores_per_node, stated)
        by_access = partition.scheduler in SLURM and nodes.excluded
        out = {*nodes.excluded, *(excluded_by(partition.access) if by_access else ())}
        usable = sum(node.name not in out for node in own)
        if stated > listed:
            raise SiteError(
                UNLISTED_NODES(partition=name, stated=stated, source=nodes.source, listed=listed)
            )
        none_left = not usable and any(node.name in left_out() for node in own)
        if not usable and not none_left:
            which = "every node" if len(own) == listed else f"every node like those of {name}"
            raise SiteError(NO_NODE_LEFT(source=nodes.source, which=which))
    if none_left:
        # No job of it could start in this run.
        partition = replace(partition, environs=())
    left = min(stated, max(usable, 1))
    return replace(partition, nodes=left, excluded_nodes=stated - left)


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


SITE_MISSING = Words("site.missing", "no site config {path}")
SITE_BROKEN = Words("site.broken", "{why}")
SITE_FAILED = Words("site.failed", "{error}: {why}")
MISTYPED_ARGUMENT = Words(
    "site.mistyped-argument",
    "{error}: {why}",
    remedy="did you mean {meant!r}?",
)
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
    if not path.is_file():
        raise SiteError(SITE_MISSING(path=path))
    _source(path)
    try:
        configured = runpy.run_path(str(path)).get("site_configuration")
    except ClustergateError:
        raise
    except SyntaxError as error:
        raise _not_python(path, error) from None
    except OSError as error:
        if error.filename is None or not Path(error.filename).is_relative_to(state_dir()):
            raise SiteError(SITE_BROKEN(at=str(path), why=str(error))) from None
        raise SiteError(store.unwritable(Path(error.filename), error).reason) from None
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        (*_, line) = (0, *(one.lineno for one in frames if one.filename == str(path)))
        meant = suggestion_for(str(error)) if isinstance(error, TypeError) else ""
        facts = {
            "at": f"{path}{f':{line}' * bool(line)}",
            "error": type(error).__name__,
            "why": str(error),
            "meant": meant,
        }
        raise SiteError((MISTYPED_ARGUMENT if meant else SITE_FAILED)(**facts)) from None
    if not isinstance(configured, dict):
        raise SiteError(SITE_UNASSIGNED(at=str(path)))
    try:
        site = Site.of(configured)
    except (LookupError, TypeError):
        raise SiteError(NOT_COMPLETED(at=str(path))) from None
    if not site.stacks:
        raise SiteError(NO_STACK(at=str(path)))
    return site


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
        for key, value, _ in entries(node):
            if key == "hostnames":
                patterns += _literal_patterns(value, path)
    return patterns


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
        own = () if shared or partition.scheduler == "local" else partition.access
        if partition.stacks and not partition.waived:
            by_access.setdefault(tuple(own), partition)
    return list(by_access.values())


def restriction_of(site: Site) -> str:
    """Return what keeps this process from cores or memory of this node, where jobs run here."""
    return read_node().restriction() if partitions_here(site) else ""


def partitions_here(site: Site) -> list[str]:
    """Return the partitions whose jobs run on this node, by their full names."""
    here = ("local", "clustergate")
    return [one.fullname for one in site.partitions if (one.scheduler, one.launcher) == here]
