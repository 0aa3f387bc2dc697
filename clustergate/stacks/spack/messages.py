"""What Spack prints: progress in words, and a failure as one sentence with the next step."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from clustergate.files.whole import full_disk
from clustergate.stacks.lacking import CXX, FORTRAN, C, install_line

LARGER_DISK = "name a larger disk in CLUSTERGATE_HOME or in the stack's setting 'store'"
_LONGEST_QUOTE = 300
_STAGE = re.compile(r"spack-stage-(?P<name>[\w-]+)-(?P<version>[\w.+-]+)-[a-z0-9]{32}")
_INSTALLING = re.compile(
    r"==> Installing (?P<name>[\w-]+)-(?P<version>[\w.+]+(?:-\d+)?)-[a-z0-9]{32} "
    r"\[(?P<done>\d+)/(?P<total>\d+)\]"
)
_PATCH_STAGE = re.compile(r"spack-stage-\S*-patch-[0-9a-f]{64}$")
_UNSATISFIABLE = re.compile(
    r"failed to concretize|[Nn]o such variant|cannot concretize|cannot match any known version"
)
_NO_COMPILER = re.compile(r"compilers are allowed for the (c|cxx|fortran) language")
_COMPILERS = {"c": C, "cxx": CXX, "fortran": FORTRAN}
_ERROR = re.compile(r"^==> Error: (.*)$", re.MULTILINE)


def progress_of(line: str) -> str:
    """Return what a line of ``spack install`` says of its progress, empty for another line."""
    if match := _INSTALLING.match(line):
        return "building {name} {version} ({done} of {total})".format(**match.groupdict())
    return ""


def explain(text: str) -> str:
    """Return why Spack failed, and what to do about it, from all that it printed.

    The particular causes come first; what none of them explains is Spack's own first error.
    """
    for cause in (
        _full_disk,
        _checksum,
        _fetch,
        _permission,
        _locked,
        _recipe,
        _compiler,
        _concretization,
        _build,
    ):
        if found := cause(text):
            return found
    return f"{_first_error(text)}; mend that and run the command again"


def _full_disk(text: str) -> str:
    if "No space left on device" not in text and "Disk quota exceeded" not in text:
        return ""
    place = re.search(
        r"(?:No space left on device|Disk quota exceeded): (?:'[^']+' -> )?'([^']+)'", text
    )
    where = f"({place.group(1)})" if place else "while Spack works"
    return full_disk(where, LARGER_DISK)


def _checksum(text: str) -> str:
    failed = re.search(
        r"\w+ checksum failed for (\S+)\s+Expected (\w+) but got (\w+)(?:.*? URL = (\S+))?", text
    )
    if not failed:
        return ""
    path, expected, found, url = failed.groups()
    origin = f" from {url}" if url else ""
    stage = _STAGE.search(path)
    what = "{name} {version}".format(**stage.groupdict()) if stage else PurePosixPath(path).name
    return (
        f"the source of {what}{origin} has the checksum {found[:12]}… where {expected[:12]}… is "
        "pinned, so it is refused; remove it there, or ask who serves it"
    )


def _fetch(text: str) -> str:
    failed = re.search(r"All fetchers failed for (\S+)(?P<reasons>(?:\n {4,}\S.*)*)", text)
    if not failed:
        return ""
    what = _fetched(failed.group(1), text[: failed.start()])
    reasons = [line.strip() for line in failed["reasons"].splitlines() if line.strip()]
    # The mirrors are asked first, upstream last.
    told = f" ({_shortened(reasons[-1])})" if reasons else ""
    return (
        f"{what} cannot be fetched{told}; check the network, or put the file in a "
        "folder and name the folder in CLUSTERGATE_SOURCES, or name a mirror in the site's scopes"
    )


def _fetched(stage: str, before: str) -> str:
    """Return what a stage is for, from its name and what Spack printed before."""
    if _PATCH_STAGE.match(stage) and (packages := list(_INSTALLING.finditer(before))):
        return "a patch for {name} {version}".format(**packages[-1].groupdict())
    package = _STAGE.search(stage)
    named = "{name} {version}".format(**package.groupdict()) if package else stage
    return f"the source of {named}"


def _permission(text: str) -> str:
    denied = re.search(
        r"(?:Permission denied|Read-only file system|Operation not permitted):? '([^']+)'", text
    )
    if not denied:
        return ""
    return (
        f"{denied.group(1)} cannot be written; name another folder in the stack's setting 'store', "
        "or let its owner build the stack"
    )


def _locked(text: str) -> str:
    waited = re.search(
        r"Timed out waiting for a \w+ lock after (\d+)\S*(?:\s.*?file: (\S+))?", text
    )
    if not waited:
        return ""
    seconds, path = waited.groups()
    which = f" {path}" if path else ""
    return (
        f"another Spack has held the lock{which} for {seconds} s; wait for it to end, or end it if "
        "it hangs, and run the command again: what is installed stays"
    )


def _recipe(text: str) -> str:
    unknown = re.search(r"(?:since|Package) '([^']+)' (?:does not exist|not found)", text)
    if not unknown:
        return ""
    return (
        f"no package repository has a recipe {unknown.group(1)!r}; correct the name in the "
        "environment or the scope that asks for it, or add the repository that has it to the "
        "site's scopes"
    )


def _compiler(text: str) -> str:
    missing = dict.fromkeys(_COMPILERS[name] for name in _NO_COMPILER.findall(text))
    if not missing:
        return ""
    return (
        f"Spack finds no {', '.join(missing)} here (`{install_line(missing)}`); install it, or "
        "name a compiler that has it in a scope of the site"
    )


def _concretization(text: str) -> str:
    if not _UNSATISFIABLE.search(text):
        return ""
    reasons = re.findall(r"^\s*\d+\. (.+)$", text, re.MULTILINE)
    reason = reasons[0] if reasons else _first_error(text)
    return (
        f"it does not concretize ({_shortened(reason)}); correct the version, the variant or the "
        "external that asks for it, in the environment or in the site's scopes"
    )


def _build(text: str) -> str:
    failed = re.search(r"^==> Error: (?:\w+: )?(?P<why>ProcessError: .*)$", text, re.MULTILINE)
    log = re.search(r"See build log for details:\s+(\S+)", text)
    if not failed and not log:
        return ""
    # The marked line is the compiler's complaint, or where a recipe gave up: then its error tells.
    complaints = re.findall(r"^\s*>> +\d+ +(.*)$", text, re.MULTILINE)
    why = complaints[0] if complaints and failed else _first_error(text)
    stage = _STAGE.search(log.group(1)) if log else None
    what = "{name} {version}".format(**stage.groupdict()) if stage else "a package"
    where = f", all of it is in {log.group(1)}" if log else ""
    return f"compiling {what} failed ({_shortened(why)}{where}); mend that and run again"


def _first_error(text: str) -> str:
    errors = _ERROR.findall(text)
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return _shortened(errors[0] if errors else said[-1] if said else "it printed nothing")


def _shortened(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 1] + "…"
