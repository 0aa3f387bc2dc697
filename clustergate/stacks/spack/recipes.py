"""What the recipes of a stack ask for and this machine has not: known before Spack builds."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from clustergate.stacks.lacking import CXX, FORTRAN, C, Lack, missing_tools
from clustergate.stacks.sources import named_folders, sha256_of
from clustergate.stacks.spack.composition import SpackRequest, scope_files
from clustergate.stacks.spack.externals import ARCHIVE_MACRO, BUILD_TOOLS, MACROS, SYSTEM_FOLDERS
from clustergate.stacks.spack.program import SpackProgram
from clustergate.stacks.spack.sources import archive_ending, mirrored_name

SCRIPT = Path(__file__).with_name("ask_recipes.py")
COMPARISON = Path(__file__).with_name("compare_recipes.py")
# What Spack calls for whatever it builds, and the linkage proof afterwards.
TOOLS = ("make", "patch", "tar", "gzip", "bzip2", "xz", "nm", "ldd")
# Every package that is compiled is compiled through it.
WRAPPER = "compiler-wrapper"
LANGUAGES = {"c": C, "cxx": CXX, "fortran": FORTRAN}
_CONNECT_S, _ANSWER_S = 8, 20
_AT_ONCE = 16


def ask(
    spack: SpackProgram,
    request: SpackRequest,
    specs: Sequence[tuple[str, str]],
    *,
    follow: Collection[str],
) -> dict[str, Any]:
    """Let Spack tell what the recipes of (spec, hash) pairs ask for, as :data:`SCRIPT` prints it.

    Of the packages that they need, those in ``follow`` are asked, too: build tools that Spack would
    compile.
    """
    wanted = {"specs": list(specs), "tools": list(follow)}
    command = ["-e", str(request.folder), "python", str(SCRIPT), json.dumps(wanted)]
    printed = spack.run(command, request.log, doing="asking the recipes what they need")
    answer: dict[str, Any] = json.loads(_last_line(printed, "{") or "{}")
    return answer


def other_than_locked(spack: SpackProgram, request: SpackRequest) -> list[str]:
    """Return the packages of an environment's lock whose recipes are not those it was made with.

    Spack indexes its recipes for that, which takes minutes the first time.
    """
    command = ["-e", str(request.folder), "python", str(COMPARISON)]
    printed = spack.run(command, request.log, doing="indexing the recipes")
    changed: list[str] = json.loads(_last_line(printed, "[") or "[]")
    return changed


def _last_line(printed: str, begun: str) -> str:
    return next((line for line in reversed(printed.splitlines()) if line.startswith(begun)), "")


def tools_to_compile() -> list[str]:
    """Return the build tools that Spack would have to compile, as the system has them not."""
    absent = missing_tools(BUILD_TOOLS, os.pathsep.join(SYSTEM_FOLDERS))
    return [*(lack.package for lack in absent), *([] if ARCHIVE_MACRO.is_file() else [MACROS])]


def packaged_tools(request: SpackRequest) -> list[str]:
    """Return the absent tools that a stack would take from the operating system's packages."""
    return tools_to_compile() if request.settings.externals else []


def lacks(
    answer: Mapping[str, Any],
    request: SpackRequest,
    reachable: Callable[[str], bool] | None = None,
    *,
    locked: bool = False,
    packaged: Collection[str] = (),
) -> list[Lack]:
    """Return what the recipes of a stack ask for and cannot have here.

    ``reachable`` tells whether an address serves a file. ``locked`` recipes are those of a lock,
    which names its compilers; ``packaged`` tools Spack would take from the operating system. A
    compiler that a site's scope names need not be on PATH; what a build cache or an upstream store
    may hold needs no source.
    """
    built = [one for one in answer.get("recipes", []) if not one.get("here") and "error" not in one]
    needs = dict.fromkeys(need for one in built for need in one["needs"])
    looked_for = not locked and not _names_compilers(request)
    languages = [LANGUAGES[need] for need in needs if need in LANGUAGES and looked_for]
    missing = missing_tools([*languages, *TOOLS]) if built else []
    wanted = {source["sha256"]: source for one in built for source in one["sources"]}
    if answer.get("elsewhere", True):
        wanted = {}
    stores = [*answer.get("mirrors", []), (request.state / "spack" / "source-cache").as_uri()]
    had = functools.partial(_can_be_had, stores=stores, reachable=reachable or is_reachable)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        there = pool.map(had, wanted.values())
        absent = {key for key, is_there in zip(wanted, there, strict=True) if not is_there}
    for one in built:
        if any(source["sha256"] in absent for source in one["sources"]):
            name = one["name"]
            # Nobody wants to bring the source of what the operating system has as a package.
            missing.append(Lack(name, name) if name in packaged else _source(one, absent))
    return list(dict.fromkeys(missing))


def _source(recipe: Mapping[str, Any], absent: set[str]) -> Lack:
    files = [
        f"{_file_name(source) or 'its source'} (sha256 {source['sha256'][:12]}…{_unlike(source)})"
        for source in recipe["sources"]
        if source["sha256"] in absent
    ]
    return Lack(f"{recipe['name']} {recipe['version']}: {', '.join(files)}")


def _unlike(source: Mapping[str, Any]) -> str:
    """Tell of a file of that name in CLUSTERGATE_SOURCES that has another checksum."""
    name = _file_name(source)
    for path in (folder / name for folder in named_folders() if name):
        if path.is_file() and (actual := sha256_of(path)) != source["sha256"]:
            return f", but {path} has {actual[:12]}…"
    return ""


def _file_name(source: Mapping[str, Any]) -> str:
    # What its vendor gives away by hand has no address.
    return Path(urlsplit(next(iter(source["urls"]), "")).path).name


def _can_be_had(
    source: Mapping[str, Any], stores: Sequence[str], reachable: Callable[[str], bool]
) -> bool:
    ending = "" if source.get("patch") else archive_ending(_file_name(source))
    kept = mirrored_name(source["sha256"], ending)
    return any(
        reachable(url) for url in [*(f"{s.rstrip('/')}/{kept}" for s in stores), *source["urls"]]
    )


def is_reachable(url: str) -> bool:
    """Tell whether an address serves a file; of what cannot be told, that it does.

    A server may refuse this program what it gives Spack; of a mirror only a file counts, since some
    say "forbidden" of what they do not have.
    """
    parts = urlsplit(url)
    if parts.scheme in ("file", ""):
        return Path(unquote(parts.path)).exists()
    if parts.scheme not in ("http", "https"):
        return True
    status = _status(url)
    if "/_source-cache/" in parts.path:
        return status in (None, _FOUND)
    return status not in (_NOBODY, 404, 410)


_FOUND, _NOBODY = 200, 0
# Where packets are dropped, each attempt takes its whole time.
_silent: set[str] = set()


@functools.cache
def _status(url: str) -> int | None:
    """Return how a server answers, ``_NOBODY`` where there is none, None where nobody can tell."""
    import requests

    server = urlsplit(url).netloc
    if server in _silent:
        return _NOBODY
    try:
        with requests.get(url, stream=True, timeout=(_CONNECT_S, _ANSWER_S)) as answer:
            return answer.status_code
    except (requests.ReadTimeout, requests.exceptions.SSLError):
        # Spack may know the certificate of whoever looks into the traffic here.
        return None
    except requests.RequestException:
        _silent.add(server)
        return _NOBODY


def _names_compilers(request: SpackRequest) -> bool:
    """Tell whether a site's scopes say where compilers are, or may do so where nobody looks."""
    files = [path for scope in request.scopes for path in scope_files(Path(scope))]
    texts = [path.read_text(encoding="utf-8") for path in files]
    unknown = any("$" in scope for scope in request.scopes)
    return unknown or any("compilers" in text or "include" in text for text in texts)
