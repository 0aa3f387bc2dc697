"""What should stay the same between two runs on a node.

A fingerprint is a plain mapping of groups to names to values that JSON can hold: text, numbers,
yes or no, lists of text, and None for what this machine does not show ("absent"). A small script,
``node_state.sh``, says it on any node, without Python; where a run is started, versions of the
suite's own software are added. What moves by itself is in :mod:`clustergate.machine.load`, what
changed between two fingerprints in :mod:`clustergate.machine.changes`.

It goes into reports and across sites. Therefore no serial numbers, hardware addresses, host or
user names and nothing of the environment is in it; what a kernel's command line and its mounts say
of these is hidden.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from clustergate.core.model import BadRequest
from clustergate.core.paths import checkout
from clustergate.core.reasons import Words
from clustergate.machine.environment import is_secret
from clustergate.machine.kernel_files import printable
from clustergate.machine.node import SCRIPT

Value = str | int | float | list[str] | None
Fingerprint = dict[str, dict[str, Value]]

SCHEMA = 1

# Sizes that are fractions.
_FRACTIONS = ("_gib", "_cpus")
# File systems that hold no files of anybody's, or come and go with sessions and containers.
_UNTOLD_FILE_SYSTEMS = (
    *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts"),
    *("devtmpfs", "efivarfs", "fusectl", "fuse.gvfsd-fuse", "fuse.portal", "hugetlbfs", "mqueue"),
    *("nfsd", "nsfs", "overlay", "proc", "pstore", "ramfs", "rpc_pipefs", "securityfs"),
    *("selinuxfs", "squashfs", "sysfs", "tracefs"),
)
# Of tmpfs only those that programs use by their names, and not how large a half of memory is.
_TOLD_TMPFS = ("/dev/shm", "/tmp")
_OPTION_OF_ONE_NODE = re.compile(r"(addr|clientaddr|mountaddr|size|nr_inodes)=")
# An attribute of sysfs fits a page, and so does a kernel's command line.
_LONGEST = 4096
_PROGRAM_TIMEOUT_S = 2.0
_SCRIPT_TIMEOUT_S = 20.0


# --- the whole --------------------------------------------------------------------------------


def read_fingerprint(root: Path = Path("/")) -> Fingerprint:
    """Return what should stay the same here, where ``/proc`` and ``/sys`` lie below ``root``.

    Raises nothing: what is missing, forbidden or damaged is None, or absent if all of it is.
    """
    fingerprint = parse_state(read_node_state(root))
    return {**fingerprint, "software": {**fingerprint.get("software", {}), **_own_software()}}


def read_node_state(root: Path = Path("/")) -> str:
    """Return what ``node_state.sh`` says here, empty where it cannot."""
    return _output(["sh", str(SCRIPT), str(root)], _SCRIPT_TIMEOUT_S) or ""


def parse_state(text: str) -> Fingerprint:
    """Return the fingerprint in what ``node_state.sh`` said; lines that it cannot say are left out.

    What identifies the node or its users is hidden.
    """
    fingerprint: Fingerprint = {}
    for line in text.splitlines():
        dotted, tab, said = line.partition("\t")
        group, dot, name = _without_address(dotted).partition(".")
        if not (tab and dot and dotted.isprintable()):
            continue
        values: dict[str, Value] = fingerprint.setdefault(group, {})
        value = printable(said) if len(said) <= _LONGEST else None
        if not name.endswith("[]"):
            values[name] = _typed(name, value)
        else:
            items = values.setdefault(name.removesuffix("[]"), [])
            if value is not None and isinstance(items, list):
                items.append(value)
    kernel: dict[str, Value] = fingerprint.get("kernel", {})
    if isinstance(given := kernel.get("command_line"), str):
        kernel["command_line"] = _command_line(given)
    if isinstance(mounts := kernel.get("mounts"), list):
        kernel["mounts"] = _mounts(mounts)
    return fingerprint


def _typed(name: str, value: str | None) -> Value:
    if value in ("true", "false"):
        return value == "true"
    if value is not None and name.endswith(_FRACTIONS):
        return float(value) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value) else None
    is_number = value is not None and re.fullmatch("-?[0-9]{1,18}", value)
    return int(value) if value is not None and is_number else value


def processor_of(fingerprint: Fingerprint) -> str:
    """Return the name of a node's processor with its model, empty where the node does not tell."""
    hardware = fingerprint.get("hardware", {})
    return ", ".join(str(hardware[k]) for k in ("processor", "processor_model") if hardware.get(k))


def to_record(fingerprint: Fingerprint) -> dict[str, Any]:
    """Return what is stored of a machine, to be written as JSON."""
    return {"schema": SCHEMA, "fingerprint": fingerprint}


MACHINE_NO_RECORD = Words(
    "machine.no-record",
    "{path} does not hold the state of a node",
    remedy="`clustergate machine --json` and `clustergate check` write such files",
)
OTHER_SCHEMA = Words(
    "machine.other-schema",
    "{path} has schema {schema} and this version of clustergate reads schema {known}",
    remedy="compare with the version that wrote it",
)


def from_record(content: Any, source: str) -> Fingerprint:
    """Return the fingerprint in what was stored; ``source`` names it in errors.

    Raises :class:`BadRequest` for anything that :func:`to_record` did not make.
    """
    if not isinstance(content, dict) or not _is_fingerprint(content.get("fingerprint")):
        raise BadRequest(MACHINE_NO_RECORD(path=source))
    schema = content.get("schema", SCHEMA)
    if schema != SCHEMA:
        facts = {"path": source, "schema": repr(schema)}
        raise BadRequest(OTHER_SCHEMA(known=SCHEMA, **facts))
    fingerprint: Fingerprint = content["fingerprint"]
    return fingerprint


def _is_fingerprint(content: Any) -> bool:
    return isinstance(content, dict) and all(
        _is_text(name)
        and isinstance(group, dict)
        and all(map(_is_text, group))
        and all(map(_is_value, group.values()))
        for name, group in content.items()
    )


def _is_value(content: Any) -> bool:
    if isinstance(content, list):
        return all(map(_is_text, content))
    return content is None or isinstance(content, int | float) or _is_text(content)


def _is_text(content: Any) -> bool:
    return isinstance(content, str) and content.isprintable()


# --- what identifies --------------------------------------------------------------------------

# The boot loader's own words, which change with every kernel and say no more than its release.
_OF_THE_BOOT_LOADER = ("BOOT_IMAGE", "initrd")
# In capitals are variables of the environment, which the kernel hands to init.
_PERSONAL_NAME = re.compile(
    r"(root|nfsroot|netroot|resume|ip|ifname|nameserver|ds|luks|user|[A-Z][A-Z0-9_]*)$"
    r"|(rd|inst|ignition|coreos|luks|cloud-init)\."
    r"|systemd\.(setenv|hostname|machine_id|run|set_credential)"
    # Whole words: "iommu.passthrough" and "spec_store_bypass_disable" are settings.
    r"|(.*[._-])?(pass|password|passwd|secret|token|key|credentials?|user(name|id)|serial|uuid|guid"
    r"|hostname|mac|url)([._-].*)?$"
)
_PERSONAL_VALUE = re.compile(
    r"([0-9a-f]{2}[:-]){5}[0-9a-f]{2}"  # hardware address
    r"|[0-9a-f]{8}-[0-9a-f]{4}-"  # UUID
    r"|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+"  # IPv4 address
    r"|([0-9a-f]*:){3}"  # IPv6 address
    r"|//|@",
    re.IGNORECASE,
)


def _command_line(line: str) -> list[str]:
    # What follows "--" is for init, and may hold anything.
    parameters = re.findall(r'(?:[^\s"]|"[^"]*")+', re.split(r"(?:^|\s)--(?:\s|$)", line)[0])
    return [
        _without_what_identifies(parameter)
        for parameter in parameters
        if parameter.partition("=")[0] not in _OF_THE_BOOT_LOADER
    ]


def _without_what_identifies(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    personal = _PERSONAL_NAME.match(name) or _PERSONAL_VALUE.search(value) or is_secret("", value)
    return f"{name}=(hidden)" if equals and personal else parameter


def _mounts(lines: Sequence[str]) -> list[str]:
    """Return where which file systems are mounted how, of lines of ``/proc/mounts``, fstab(5).

    Not from where: that names servers. What an automounter mounts comes and goes.
    """
    entries = [line.split(" ") for line in lines if line.count(" ") >= 3]
    automatic = {entry[1] for entry in entries if entry[2] == "autofs"}
    return sorted(
        {
            " ".join([_without_user(place), kind, ",".join(_lasting(options))])
            for _, place, kind, options, *_ in entries
            if kind not in _UNTOLD_FILE_SYSTEMS
            and (kind != "tmpfs" or place in _TOLD_TMPFS)
            and not any(f"{place}/".startswith(f"{above}/") for above in automatic)
        }
    )


def _without_user(place: str) -> str:
    return re.sub(r"^(/home|/users?)/.*", r"\1/(hidden)", place)


def _lasting(options: str) -> Iterator[str]:
    return (one for one in options.split(",") if not _OPTION_OF_ONE_NODE.match(one))


def _without_address(name: str) -> str:
    """Return a name such as "enx0123456789ab" without the hardware address in it."""
    return re.sub(r"(?<=x)[0-9a-f]{12,16}(?=[. ]|$)", "(address hidden)", name)


# --- the suite's own software -----------------------------------------------------------------


def _own_software() -> dict[str, Value]:
    return {
        "compiler": _first_line(["cc", "--version"]),
        "python": platform.python_version(),
        "reframe": _package_version("ReFrame-HPC"),
        "clustergate": _package_version("clustergate"),
        "clustergate_checkout": _describe_checkout(checkout()),
    }


def _package_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _describe_checkout(folder: Path) -> str | None:
    # An installed package may lie inside somebody else's repository.
    if not os.path.exists(folder / ".git"):
        return None
    return _first_line(["git", "-C", str(folder), "describe", "--tags", "--always", "--dirty"])


def _first_line(command: list[str]) -> str | None:
    """Return the first line that a program prints, None if it fails or takes its time."""
    output = _output(command, _PROGRAM_TIMEOUT_S)
    return None if output is None else printable(output.partition("\n")[0].strip())


def _output(command: list[str], timeout_s: float) -> str | None:
    """Return what a program prints, None if it fails or takes its time."""
    # A GIT_DIR from outside would answer for another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
            # A process group of its own: what a wrapper script started must end with it.
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None
    except OSError:
        return None
    return None if process.returncode else output.decode("utf-8", errors="replace")
