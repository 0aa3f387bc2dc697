"""What a stack launches is what was installed: wheels, and what Spack builds."""

import os
import shutil
from pathlib import Path

import pytest

from clustergate import stacks
from clustergate.core.model import ClustergateError
from clustergate.stacks import StackRequest, integrity, provide
from clustergate.stacks.manifest import Manifest, Program

REQUEST = StackRequest("mpich", "wheels")
PROGRAMS = ("bin/mpirun", "bin/hydra_pmi_proxy", "lib/libmpi.so.12", "share/xhpl")


def installed_in(prefix: Path) -> None:
    """Install programs and a library, which are never the same bytes twice."""
    for name in PROGRAMS:
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).write_text(f"{os.urandom(8).hex()}\n")


def manifest_of(prefix: Path) -> Manifest:
    return Manifest(
        *("mpich", "wheels"),
        mpi_library=str(prefix / "lib" / "libmpi.so.12"),
        launcher=str(prefix / "bin" / "mpirun"),
        programs={
            "xhpl": Program(str(prefix / "share" / "xhpl")),
            "hpcc": Program(unavailable="x"),
        },
    )


@pytest.fixture(params=["wheels", "spack"])
def prefix(request, tmp_path, monkeypatch):
    """Return the prefix that a stack is provided in."""
    folder = tmp_path / "prefixes" / "mpich-abc"
    if request.param == "spack":
        folder = tmp_path / "spack" / "store" / "linux" / "mpich-5.0.2-abcdefg"
        (folder / ".spack").mkdir(parents=True)
    installed_in(folder)
    provider = type("Provider", (), {"provide": staticmethod(lambda _: manifest_of(folder))})
    monkeypatch.setitem(stacks.PROVIDERS, "wheels", provider)
    return folder


def put_in_its_place(path: Path) -> None:
    """Put a wrapper in the place of a program, of the same size and time."""
    before = path.stat()
    path.write_text("wrapper".ljust(before.st_size, "\n"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("name", PROGRAMS)
def test_wrapper_in_place_of_a_program_refused(prefix, tmp_path, name):
    provide(REQUEST, tmp_path)
    provide(REQUEST, tmp_path)
    put_in_its_place(prefix / name)
    for _ in range(2):
        with pytest.raises(ClustergateError, match=f"{name} in .* is not what was installed"):
            provide(REQUEST, tmp_path)


def test_a_program_that_is_gone_is_told(prefix, tmp_path):
    provide(REQUEST, tmp_path)
    (prefix / "bin" / "hydra_pmi_proxy").unlink()
    with pytest.raises(ClustergateError, match=r"hydra_pmi_proxy in .* is not what was installed"):
        provide(REQUEST, tmp_path)


def test_what_is_installed_anew_is_held_from_then_on(prefix, tmp_path):
    provide(REQUEST, tmp_path)
    put_in_its_place(prefix / "bin" / "mpirun")
    # Beside it: else the folder may get the same inode again.
    (prefix.parent / "new").mkdir()
    shutil.copytree(prefix, prefix.parent / "new", dirs_exist_ok=True)
    shutil.rmtree(prefix)
    (prefix.parent / "new").rename(prefix)
    installed_in(prefix)
    provide(REQUEST, tmp_path)
    put_in_its_place(prefix / "bin" / "mpirun")
    with pytest.raises(ClustergateError, match="is not what was installed"):
        provide(REQUEST, tmp_path)


def test_what_spack_installed_anew_is_held_whatever_its_inode(prefix, tmp_path):
    record = prefix / ".spack" / "spec.json"
    if not record.parent.is_dir():
        pytest.skip("of Spack alone")
    record.write_text("{}")
    provide(REQUEST, tmp_path)
    put_in_its_place(prefix / "bin" / "mpirun")
    os.utime(record, ns=(0, 0))
    provide(REQUEST, tmp_path)


def test_what_was_not_touched_is_read_once(prefix, tmp_path, monkeypatch):
    provide(REQUEST, tmp_path)
    monkeypatch.setattr(integrity, "sha256_of", lambda path: pytest.fail(f"{path} was read again"))
    provide(REQUEST, tmp_path)


def test_an_mpi_library_of_the_machines_own_may_be_updated(tmp_path, monkeypatch):
    own = tmp_path / "opt" / "mpich"
    installed_in(own)
    provider = type("Provider", (), {"provide": staticmethod(lambda _: manifest_of(own))})
    monkeypatch.setitem(stacks.PROVIDERS, "wheels", provider)
    provide(REQUEST, tmp_path / "home")
    put_in_its_place(own / "bin" / "mpirun")
    provide(REQUEST, tmp_path / "home")
