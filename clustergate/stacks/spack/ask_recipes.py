"""Tell what recipes ask for. Spack runs this file: ``spack -e ENV python FILE ASKED``.

ASKED is JSON: ``specs``, pairs of a spec and its hash in a lock or an empty one, and ``tools``, the
build tools that are followed further. Nothing is concretized: what is told is what holds of a
package and its version alone.
"""

import json
import sys
from typing import Any

import spack.config
import spack.mirrors.mirror
import spack.repo
import spack.spec
import spack.store


def is_here(name: str, key: str) -> bool:
    """Tell whether a package is the system's, or is installed from a lock already."""
    if spack.config.get("packages").get(name, {}).get("buildable") is False:
        return True
    _, record = spack.store.STORE.db.query_by_spec_hash(key) if key else (False, None)
    return record is not None and record.installed


def ask_recipe(text: str, key: str) -> dict[str, Any]:
    spec = spack.spec.Spec(text)
    answer: dict[str, Any] = {"name": spec.name, "version": "", "needs": [], "sources": []}
    if is_here(spec.name, key):
        return {**answer, "here": True}
    recipe = spack.repo.PATH.get_pkg_class(spec.name)
    matching = [version for version in recipe.versions if version.satisfies(spec.versions)]
    released = [v for v in matching if not v.isdevelop() and "sha256" in recipe.versions[v]]
    likely = spec
    if released:
        version = max(preferred(released, spec.name))
        likely = by_default(recipe, spec, version)
        answer["version"] = str(version)
        urls = recipe(spack.spec.Spec(spec.name)).all_urls_for_version(version)
        answer["sources"].append({"sha256": recipe.versions[version]["sha256"], "urls": urls})
    for when, dependencies in recipe.dependencies.items():
        if likely.satisfies(when):
            answer["needs"] += list(dependencies)
    for when, patches in recipe.patches.items():
        for patch in patches:
            if getattr(patch, "url", None) and likely.satisfies(when):
                digest = getattr(patch, "archive_sha256", None) or patch.sha256
                answer["sources"].append({"sha256": digest, "urls": [patch.url], "patch": True})
    for when, resources in recipe.resources.items():
        for fetcher in (resource.fetcher for resource in resources):
            # Of a repository, whose fetcher has no checksum of a file, nothing can be asked.
            url, digest = getattr(fetcher, "url", None), getattr(fetcher, "digest", None)
            if url and digest and likely.satisfies(when):
                answer["sources"].append({"sha256": digest, "urls": [url]})
    return answer


def preferred(versions: list[Any], name: str) -> list[Any]:
    """Return those of a package's versions that the configuration requires, or else prefers."""
    said = spack.config.get("packages").get(name, {})
    for kind in ("require", "prefer"):
        entries = said.get(kind, [])
        for entry in [entries] if isinstance(entries, str) else entries:
            text = entry.get("spec", "") if isinstance(entry, dict) else entry
            wanted = spack.spec.Spec(text).versions
            versions = [v for v in versions if v.satisfies(wanted)] or versions
    return versions


def by_default(recipe: Any, spec: Any, version: Any) -> Any:
    """Return a spec with the variants that it would have if nobody says otherwise."""
    exact = spack.spec.Spec(f"{spec.name}@={version}")
    configured = spack.config.get("packages").get(spec.name, {}).get("variants", "")
    said = configured if isinstance(configured, str) else " ".join(configured)
    given = spack.spec.Spec(f"{spec.name} {said}")
    given.constrain(spec)
    for when, variants in recipe.variants.items():
        if not exact.satisfies(when):
            continue
        for name, variant in variants.items():
            default = variant.default
            if name in given.variants or default is None:
                continue
            if isinstance(default, bool):
                word = f"{'+' if default else '~'}{name}"
            else:
                word = f"{name}={default if isinstance(default, str) else ','.join(default)}"
            given.constrain(spack.spec.Spec(f"{spec.name} {word}"))
    given.constrain(exact)
    return given


def ask_all(wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what all recipes ask for; of one that cannot be read only that."""
    answer: list[dict[str, Any]] = []
    seen = set()
    pending = [(text, key) for text, key in wanted["specs"]]
    for text, key in pending:
        if text in seen:
            continue
        seen.add(text)
        try:
            one = ask_recipe(text, key)
        except Exception as error:
            one = {"name": text, "error": f"{type(error).__name__}: {error}"}
        answer.append(one)
        pending += [(need, "") for need in one.get("needs", []) if need in wanted["tools"]]
    return answer


def mirrors(**kind: bool) -> list[str]:
    return [m.fetch_url for m in spack.mirrors.mirror.MirrorCollection(**kind).values()]


print(
    json.dumps(
        {
            "recipes": ask_all(json.loads(sys.argv[1])),
            "mirrors": mirrors(source=True),
            "elsewhere": bool(mirrors(binary=True) or spack.config.get("upstreams")),
        }
    )
)
