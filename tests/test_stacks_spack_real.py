"""What only a real Spack shows; the first test to run builds a stack, which takes minutes."""

import os
from pathlib import Path

import pytest

from clustergate.model import ClustergateError
from clustergate.stacks import provide
from clustergate.stacks.manifest import Manifest
from clustergate.stacks.spack import provider
from clustergate.stacks.spack.composition import read_order
from clustergate.stacks.spack.locks import host, parse_lock
from clustergate.stacks.spack.program import SpackMissing, find_spack
from clustergate.state import state_dir

pytestmark = pytest.mark.spack

STACK = "spack-openmpi"
SETTINGS = {"externals": "wheels"}


@pytest.fixture(scope="module")
def built() -> Manifest:
    """Return a stack that Spack has built on the wheels, in the clone's own state."""
    try:
        find_spack(state_dir())
    except SpackMissing as missing:
        pytest.skip(str(missing))
    try:
        return provide("spack", STACK, state_dir(), say=print, settings=SETTINGS)
    except ClustergateError as error:
        if "cannot be fetched" in str(error):
            pytest.skip(str(error))
        raise


def test_every_program_is_there_and_tells_which_lock_made_it(built: Manifest) -> None:
    assert set(built.programs) == set(provider.PACKAGE_OF)
    assert [p.path for p in built.programs.values() if not Path(p.path).is_file()] == []
    assert "concretized for this site" in built.lock
    assert Path(built.proof_library).is_file()


def kept_lock() -> Path:
    return provider.kept_lock(read_order(STACK, state_dir(), SETTINGS), host())


def test_what_the_loader_takes_is_held_to_the_lock(built: Manifest) -> None:
    lock = parse_lock(kept_lock().read_text())
    assert provider.linkage_complaints(built, lock) == []
    elsewhere = Manifest(**{**vars(built), "mpi_prefix": "/opt/another-mpi"})
    assert any(
        "should take its MPI" in told for told in provider.linkage_complaints(elsewhere, lock)
    )


def test_an_unchanged_stack_needs_no_spack(built: Manifest, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPACK_ROOT", str(tmp_path))
    assert provide("spack", STACK, state_dir(), settings=SETTINGS) == built


def test_a_changed_lock_is_installed_anew(built: Manifest) -> None:
    lock = kept_lock()
    text, times = lock.read_text(), lock.stat()
    lock.write_text(text + "\n")
    try:
        again = provide("spack", STACK, state_dir(), settings=SETTINGS)
    finally:
        lock.write_text(text)
        os.utime(lock, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert again.build_key != built.build_key
    assert again.programs == built.programs
    restored = provide("spack", STACK, state_dir(), settings=SETTINGS)
    assert restored.build_key == built.build_key
