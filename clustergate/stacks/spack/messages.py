"""What Spack prints: progress in words, and a failure as one sentence with the next step."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from clustergate.core.files.whole import full_disk
from clustergate.stacks.lacking import CXX, FORTRAN, C, install_line

LARGER_DISK = "name a larger disk in CLUSTERGATE_HOME or in the stack's setting 'store'"
_LONGEST_QUOTE = 300
_STAGE = re.compile(r"spack-stage-(?P<name>[\w-]+)-(?P<version>[\w.+-]+)-[a-z0-9]{32}")
_INSTALLING = re.compile(
    r"==> Installing (?P<name>[\w-]+)-(?P<version>[\w.+]+(?:-\d+)?)-[a-z0-9]{32} "
    r"\[(?P<done>\d+)/(?P<total>\d+)\]"
)
_PATCH_STAGE = re.compile(r"spack-stage-\S*-patch-[0-9a-f]{64}$")
_NO_COMPILER = re.compile(r"compilers are allowed for the (c|cxx|fortran) language")
_COMPILERS = {"c": C, "cxx": CXX, "fortran": FORTRAN}


def progress_of(line: str) -> str:
    """Return what a line of ``spack install`` says of its progress, empty for another line."""
    if match := _INSTALLING.match(line):
        return "building {name} {version} ({done} of {total})".format(**match.groupdict())
    return ""


def explain(text: str) -> str:
    """Return why Spack failed, and what to do about it, from all that it printed.

    The particular causes come first; what none of them explains is Spack's own first error.
    """
    for pattern, sentence in _CAUSES:
        if match := re.search(pattern, text, re.MULTILINE):
            return sentence(match)
    return f"{_first_error(text)}; fix that and run the command again"


def _full_disk(full: re.Match[str]) -> str:
    place = re.search(f"(?:{full.re.pattern}): (?:'[^']+' -> )?'([^']+)'", full.string)
    return str(full_disk(f"({place[1]})" if place else "while Spack works", LARGER_DISK))


def _checksum(failed: re.Match[str]) -> str:
    path, expected, actual, url = failed.groups()
    origin = f" from {url}" if url else ""
    return (
        f"the source of {_package_of(path) or PurePosixPath(path).name}{origin} has the checksum "
        f"{actual[:12]}… where {expected[:12]}… is pinned, so it is refused; remove it there, or "
        "ask who serves it"
    )


def _fetch(failed: re.Match[str]) -> str:
    stage, reasons = failed.groups()
    installing = list(_INSTALLING.finditer(failed.string[: failed.start()]))
    if _PATCH_STAGE.match(stage) and installing:
        what = "a patch for {name} {version}".format(**installing[-1].groupdict())
    else:
        what = f"the source of {_package_of(stage) or stage}"
    # The mirrors are asked first, upstream last.
    reason = f" ({_shorten(reasons.splitlines()[-1])})" if reasons else ""
    return (
        f"{what} cannot be fetched{reason}; check the network, or put the file in a "
        "folder and name the folder in CLUSTERGATE_SOURCES, or name a mirror in the site's scopes"
    )


def _permission(denied: re.Match[str]) -> str:
    return (
        f"{denied[1]} cannot be written; name another folder in the stack's setting 'store', or "
        "let its owner build the stack"
    )


def _locked(waited: re.Match[str]) -> str:
    which = f" {waited[2]}" if waited[2] else ""
    return (
        f"another Spack has held the lock{which} for {waited[1]} s; wait for it to end, or end it "
        "if it hangs, and run the command again: what is installed is kept"
    )


def _recipe(unknown: re.Match[str]) -> str:
    return (
        f"no package repository has a recipe {unknown[1]!r}; correct the name in the environment "
        "or the scope that asks for it, or add the repository that has it to the site's scopes"
    )


def _compiler(missing: re.Match[str]) -> str:
    tools = dict.fromkeys(_COMPILERS[name] for name in _NO_COMPILER.findall(missing.string))
    return (
        f"Spack finds no {', '.join(tools)} here (`{install_line(tools)}`); install it, or name a "
        "compiler that has it in a scope of the site"
    )


def _concretization(failed: re.Match[str]) -> str:
    reasons = re.findall(r"^\s*\d+\. (.+)$", failed.string, re.MULTILINE)
    reason = _shorten(reasons[0]) if reasons else _first_error(failed.string)
    return (
        f"it does not concretize ({reason}); correct the version, the variant or the external that "
        "asks for it, in the environment or in the site's scopes"
    )


def _build(failed: re.Match[str]) -> str:
    text = failed.string
    # The marked line is the compiler's complaint, or where a recipe gave up: then its error counts.
    complaints = re.findall(r"^\s*>> +\d+ +(.*)$", text, re.MULTILINE)
    process_failed = re.search(_PROCESS_ERROR, text, re.MULTILINE)
    why = _shorten(complaints[0]) if complaints and process_failed else _first_error(text)
    log = re.search(_BUILD_LOG, text)
    what = _package_of(log[1]) if log else ""
    where = f"; the whole log is {log[1]}" if log else ""
    return f"compiling {what or 'a package'} failed ({why}{where}); fix that and run again"


_PROCESS_ERROR = r"^==> Error: (?:\w+: )?ProcessError: .*$"
_BUILD_LOG = r"See build log for details:\s+(\S+)"
_CAUSES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (r"No space left on device|Disk quota exceeded", _full_disk),
    (
        r"\w+ checksum failed for (\S+)\s+Expected (\w+) but got (\w+)(?:.*? URL = (\S+))?",
        _checksum,
    ),
    (r"All fetchers failed for (\S+)((?:\n {4,}\S.*)*)", _fetch),
    (
        r"(?:Permission denied|Read-only file system|Operation not permitted):? '([^']+)'",
        _permission,
    ),
    (r"Timed out waiting for a \w+ lock after (\d+)\S*(?:\s.*?file: (\S+))?", _locked),
    (r"(?:since|Package) '([^']+)' (?:does not exist|not found)", _recipe),
    (_NO_COMPILER.pattern, _compiler),
    (
        r"failed to concretize|[Nn]o such variant|cannot concretize"
        r"|cannot match any known version",
        _concretization,
    ),
    (f"{_PROCESS_ERROR}|{_BUILD_LOG}", _build),
)


def _package_of(path: str) -> str:
    """Return the package and version that a path below Spack's stages is for, if it is one."""
    stage = _STAGE.search(path)
    return "{name} {version}".format(**stage.groupdict()) if stage else ""


def _first_error(text: str) -> str:
    errors = re.findall(r"^==> Error: (.*)$", text, re.MULTILINE)
    lines = [line for line in text.splitlines() if line.strip()]
    return _shorten(errors[0] if errors else lines[-1] if lines else "it printed nothing")


def _shorten(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 1] + "…"
