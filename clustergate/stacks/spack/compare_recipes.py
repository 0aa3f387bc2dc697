"""Tell which recipes are not those an environment's lock was made with.

Spack runs this file: ``spack -e ENV python FILE``. It prints a JSON list of packages. On the way
Spack indexes its recipes, if it has not yet. Of a lock, ``spack install`` builds what it pins under
the old hash, whatever the recipe says by now.
"""

import json
from typing import Any

import spack.environment
import spack.repo


def is_changed(spec: Any) -> bool:
    """Tell whether a recipe has another hash than a concrete spec has noted."""
    noted = spec.package_hash()
    if noted == spec.package.content_hash():
        return False
    # Spack hashes the recipe that is first in its repositories, and builds by the spec's own.
    own = spack.repo.PATH.repo_for_pkg(spec).filename_for_package_name(spec.name)
    with open(own, "rb") as file:
        return bool(noted != spec.package.content_hash(content=file.read()))


def changed_recipes() -> list[str]:
    changed = []
    for spec in spack.environment.active_environment().all_specs():
        try:
            if not spec.external and is_changed(spec):
                changed.append(spec.name)
        except Exception:
            # A recipe that is not there any more: Spack says so when it installs.
            continue
    return sorted(changed)


_ = spack.repo.PATH.provider_index
print(json.dumps(changed_recipes()))
