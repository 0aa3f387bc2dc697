"""What only a real Spack shows; the first test to run builds a stack, which takes minutes."""

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clustergate.benchmarks.hpl.build import HPL
from clustergate.core.model import ClustergateError
from clustergate.core.paths import state_dir
from clustergate.stacks import StackRequest, provide
from clustergate.stacks.lacking import LackError
from clustergate.stacks.manifest import Manifest, manifest_path
from clustergate.stacks.spack import lock_choice, provider, recipes
from clustergate.stacks.spack.composition import builtin, compose, read_spack_request
from clustergate.stacks.spack.locks import host
from clustergate.stacks.spack.program import find_spack

pytestmark = pytest.mark.spack

STACK = "spack-openmpi"
SETTINGS = {"externals": "wheels"}


@pytest.fixture(scope="module")
def built() -> Manifest:
    """Return a stack that Spack has built on the wheels, in the clone's own state."""
    try:
        find_spack(state_dir())
    except ClustergateError as missing:
        pytest.skip(str(missing))
    try:
        return provide(StackRequest(STACK, "spack", SETTINGS), state_dir(), say=print)
    except ClustergateError as error:
        if isinstance(error, LackError) or "cannot be fetched" in str(error):
            pytest.skip(str(error))
        raise


def test_every_program_is_there_and_tells_which_lock_made_it(built: Manifest) -> None:
    there = {name: p.path for name, p in built.programs.items() if not p.unavailable}
    assert set(there) == set(provider.packages_of(read_spack_request(STACK, state_dir(), SETTINGS)))
    assert [path for path in there.values() if not Path(path).is_file()] == []
    assert "concretized for this site" in built.lock
    assert Path(built.proof_library).is_file()


def kept_lock() -> Path:
    return lock_choice.kept_lock(read_spack_request(STACK, state_dir(), SETTINGS), host())


def test_what_the_loader_takes_is_held_to_the_lock(built: Manifest) -> None:
    assert provider.linkage_complaints(built) == []
    elsewhere = Manifest(**{**vars(built), "mpi_prefix": "/opt/another-mpi"})
    assert any("should take its MPI" in told for told in provider.linkage_complaints(elsewhere))


def test_an_unchanged_stack_needs_no_spack(built: Manifest, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPACK_ROOT", str(tmp_path))
    assert provide(StackRequest(STACK, "spack", SETTINGS), state_dir()) == built


def test_a_changed_lock_is_installed_anew(built: Manifest) -> None:
    lock = kept_lock()
    text, times = lock.read_text(), lock.stat()
    lock.write_text(text + "\n")
    try:
        again = provide(StackRequest(STACK, "spack", SETTINGS), state_dir())
    finally:
        lock.write_text(text)
        os.utime(lock, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert again.build_key != built.build_key
    assert again.programs == built.programs
    restored = provide(StackRequest(STACK, "spack", SETTINGS), state_dir())
    assert restored.build_key == built.build_key


OTHER = f"{STACK}-elsewhere"


@pytest.fixture
def elsewhere(built: Manifest) -> Iterator[Path]:
    """Return a folder for another store, on a path no longer than the first one's."""
    folder = Path(tempfile.mkdtemp(prefix="s"))
    yield folder
    request = read_spack_request(OTHER, state_dir(), {**SETTINGS, "environment": "openmpi"})
    manifest_path(state_dir(), OTHER).unlink(missing_ok=True)
    for kept in lock_choice.kept_lock(request, host()).parent.glob(f"{OTHER}-*"):
        kept.unlink()
    for left in (folder, request.folder):
        shutil.rmtree(left, ignore_errors=True)


def provided_with(scope: Path, store: Path, **configuration: object) -> tuple[Manifest, str]:
    """Build the stack once more into another store; return its manifest and what Spack printed."""
    scope.mkdir()
    for name, section in configuration.items():
        (scope / f"{name}.yaml").write_text(yaml.safe_dump({name: section}))
    settings = {
        **SETTINGS,
        "environment": "openmpi",
        "store": str(store),
        "scopes": [str(scope)],
    }
    manifest = provide(StackRequest(OTHER, "spack", settings), state_dir(), say=print)
    return manifest, read_spack_request(OTHER, state_dir(), settings).log.read_text()


def test_what_an_upstream_store_has_is_not_built_again(built: Manifest, elsewhere: Path) -> None:
    shared = read_spack_request(STACK, state_dir(), SETTINGS).store
    upstreams = {"shared": {"install_tree": str(shared)}}
    found, said = provided_with(elsewhere / "scope", elsewhere / "store", upstreams=upstreams)
    assert "==> Installing" not in said
    assert found.programs == built.programs


def test_what_a_build_cache_in_a_folder_has_is_not_compiled(
    built: Manifest, elsewhere: Path
) -> None:
    request = read_spack_request(STACK, state_dir(), SETTINGS)
    cache = elsewhere / "cache"
    push = ["buildcache", "push", "--unsigned", "--update-index", str(cache)]
    find_spack(state_dir()).run(
        ["-e", str(request.folder), *push], elsewhere / "push.log", doing="filling the build cache"
    )
    store = elsewhere / "store"
    mirror = {"url": cache.as_uri(), "binary": True, "source": False, "signed": False}
    found, said = provided_with(elsewhere / "scope", store, mirrors={"cache": mirror})
    assert "installing from source" not in said
    assert "from binary cache" in said
    assert [p.path for p in found.programs.values() if not Path(p.path).is_relative_to(store)] == []
    assert provider.linkage_complaints(found) == []


def test_recipes_tell_needs_before_concretizing() -> None:
    try:
        spack = find_spack(state_dir())
    except ClustergateError as missing:
        pytest.skip(str(missing))
    if not builtin(state_dir()).is_dir():
        pytest.skip("the recipes are not here; `ci/bootstrap` brings them")
    request = read_spack_request("spack-mvapich2", state_dir(), {"blas": "amdblis"})
    request = dataclasses.replace(request, stack=f"{STACK}-asked")
    try:
        compose(request)
        specs = ["mvapich2@2.3.7-1", "hpl@2.3", "amdblis", "amdblis@5.1"]
        answer = recipes.ask(spack, request, [(spec, "") for spec in specs], follow=())
    finally:
        request.log.unlink(missing_ok=True)
        shutil.rmtree(request.folder, ignore_errors=True)
    mvapich2, hpl, blis, older = answer["recipes"]
    assert {"c", "cxx", "fortran"} <= set(mvapich2["needs"])
    assert {"autoconf-archive", "libtool"} <= set(hpl["needs"])
    assert hpl["sources"] == [{"sha256": HPL.sha256, "urls": [HPL.url]}]
    # The choice prefers it to the recipe's newest, which is what would be built without it.
    assert (blis["version"], older["version"]) == ("5.2", "5.1")
