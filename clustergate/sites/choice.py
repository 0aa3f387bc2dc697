"""Which site config describes this machine: chosen by name or hostnames, without running any."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.paths import is_site_folder_named, site_folder, suite_folder
from clustergate.core.reasons import Words
from clustergate.launch.allocation import BATCH_JOB
from clustergate.sites.description import DETECTED, SiteError
from clustergate.stacks.sources import FOLDER_MISSING

FALLBACK = DETECTED


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


SITE_BROKEN = Words("site.broken", "{why}")


def read_source(path: Path) -> bytes:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise SiteError(SITE_BROKEN(at=str(path), why=error)) from None
    # Python 3.11.2 and older name no line, and call it another error.
    if b"\0" in source:
        why = "it contains null bytes; save it as UTF-8"
        raise SiteError(SITE_BROKEN(at=f"{path}:1", why=why))
    return source


def not_python(path: Path, error: SyntaxError) -> SiteError:
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
        return ast.parse(read_source(path), str(path))
    except SyntaxError as error:
        raise not_python(path, error) from None
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
    is described as detected, by local. Raises :class:`SiteError` where that would be a
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
