import dataclasses
import json
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import archspec.cpu
import pytest

from clustergate.files.marked_yaml import read_document
from clustergate.model import ClustergateError
from clustergate.stacks.spack import provider, recipes
from clustergate.stacks.spack.composition import read_spack_request
from clustergate.stacks.spack.locks import (
    Host,
    committed_lock,
    disagreement,
    host,
    parse_lock,
    system_name,
)
from clustergate.stacks.spack.program import SpackProgram
from clustergate.stacks.spack.settings import spack_repo

LOCKS = sorted(spack_repo().glob("environments/*/locks/*.lock"))
HOST = Host("debian12", ("zen4", "x86_64_v4"))


@pytest.fixture
def text(data):
    return (data / "spack" / "openmpi-externals.lock").read_text()


def test_a_lock_tells_roots_and_who_provides_what(text):
    lock = parse_lock(text)
    assert [spec for spec, _ in lock.roots] == [
        "hpl@2.3",
        "openmpi@5.0.11",
        "intel-mpi-benchmarks@2021.7",
        "hpcc@1.5.0",
    ]
    mpi = lock.provider("hpl", "mpi")
    assert (mpi.name, mpi.version) == ("openmpi", "5.0.11")
    assert mpi == lock.root("openmpi") == lock.provider("hpcc", "mpi")
    assert lock.provider("hpl", "blas").name == "openblas"
    assert str(lock.root("hpl")) == "hpl@2.3/37uivvu"
    assert (lock.root("hpl").system, lock.root("hpl").target) == ("debian12", "x86_64_v4")


def test_a_lock_tells_what_it_takes_for_granted(text):
    needed = parse_lock(text).needed_files()
    assert "/usr/bin/gfortran" in needed
    assert "/home/user/clustergate/.clustergate/prefixes/openmpi-ccbdee38d9b9" in needed


def test_a_lock_says_what_is_compiled_and_how_long_and_what_is_taken(text):
    made, taken = parse_lock(text).work().split("; ")
    assert re.match(r"compiles in about \d+ min on two cores ", made)
    assert "hpl 2.3" in made
    assert "openmpi" not in made
    assert taken.startswith("takes as it is ")
    assert "openmpi 5.0.11" in taken
    assert "hpl" not in taken
    made, stored, again = parse_lock(text).work(["hpl", "hpcc"]).split("; ")
    assert "hpl" not in made
    assert {"hpcc 1.5.0", "hpl 2.3"} == {*stored.removeprefix("has in the store ").split(", ")}
    assert again == taken


def test_an_mpi_library_that_is_compiled_takes_most_of_the_time(text):
    record = json.loads(text)
    for entry in record["concrete_specs"].values():
        entry.pop("external", None)
    alone = parse_lock(json.dumps(record)).work()
    assert int(re.findall(r"about (\d+) min", alone)[0]) > 19
    assert "takes as it is" not in alone


def test_a_missing_root_says_what_to_do(text):
    with pytest.raises(ClustergateError, match=r"spack\.lock holds no mpich.*concretized again"):
        parse_lock(text).root("mpich")


def test_a_changed_lock_has_another_digest(text):
    assert parse_lock(text).digest != parse_lock(text + "\n").digest


@pytest.mark.parametrize("damaged", ["", "[]", "{}", '{"roots": [], "concrete_specs": 3}'])
def test_a_damaged_lock_is_named(damaged):
    with pytest.raises(ClustergateError, match=r"kept\.lock is not a Spack lock"):
        parse_lock(damaged, "kept.lock")


def test_a_lock_that_was_cut_is_refused(text):
    record = json.loads(text)
    del record["concrete_specs"][parse_lock(text).provider("hpl", "mpi").hash]
    with pytest.raises(ClustergateError, match="not a Spack lock"):
        parse_lock(json.dumps(record))


def test_specs_that_the_lock_does_not_hold_are_told(text):
    lock = parse_lock(text)
    specs = [spec for spec, _ in lock.roots]
    assert disagreement(lock, specs[::-1]) == ""
    changed = ["hpl@2.2" if spec == "hpl@2.3" else spec for spec in specs]
    assert disagreement(lock, changed) == "lacks 'hpl@2.2', holds 'hpl@2.3' beside"


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ({"ID": "debian", "VERSION_ID": "12"}, "debian12"),
        ({"ID": "ubuntu", "VERSION_ID": "24.04"}, "ubuntu24.04"),
        ({"ID": "rhel", "VERSION_ID": "9.4"}, "rhel9"),
        ({"ID": "arch"}, "arch"),
    ],
)
def test_systems_are_called_as_spack_calls_them(release, name):
    assert system_name(release) == name


def test_the_host_has_its_own_name_and_that_of_its_family():
    assert len(host().targets) == 2


def test_a_committed_lock_belongs_to_system_processor_and_blas(tmp_path):
    for name in ("debian12-x86_64_v4", "debian12-x86_64_v4-amdblis", "debian12-zen5", "rhel9-zen4"):
        (tmp_path / f"{name}.lock").touch()

    def chosen(machine=HOST, **wishes):
        path = committed_lock(tmp_path, machine, **wishes)
        return path and path.stem

    assert chosen() == "debian12-x86_64_v4"
    assert chosen(blas="amdblis") == "debian12-x86_64_v4-amdblis"
    assert chosen(blas="mkl") is None
    assert chosen(target="zen5") == "debian12-zen5"
    assert chosen(target="x86_64_v3") is None
    assert chosen(Host("rhel9", HOST.targets)) == "rhel9-zen4"
    assert chosen(Host("rhel8", HOST.targets)) is None


X86_64 = sorted(name for name, one in archspec.cpu.TARGETS.items() if one.family.name == "x86_64")


COMPILED = ["mpich", "mvapich2", "openmpi"]
# Intel's own download is no source, so its library is taken as a wheel alone.
KINDS = [*((mpi, "wheels") for mpi in ("intel-mpi", *COMPILED)), *((mpi, "") for mpi in COMPILED)]


@pytest.mark.parametrize(("mpi", "externals"), KINDS)
@pytest.mark.parametrize("name", X86_64)
def test_a_processor_of_x86_64_finds_a_lock_that_it_can_run(mpi, externals, name):
    processor = archspec.cpu.TARGETS[name]
    machine = Host("debian12", (name, processor.generic.name))
    path = committed_lock(spack_repo() / "environments" / mpi / "locks" / externals, machine)
    without = ["x86_64"] if externals else ["x86_64", "x86_64_v2"]
    assert (path is None) == (processor.generic.name in without)
    if path is not None:
        built = {spec.target for spec in parse_lock(path.read_text()).specs.values()}
        assert built <= {one.name for one in (processor, *processor.ancestors)}


@pytest.mark.parametrize("path", LOCKS, ids=str)
def test_committed_locks_are_of_the_environments_beside_them(path):
    committed = read_document((path.parents[1] / "spack.yaml").read_text()).data
    lock = parse_lock(path.read_text(), str(path))
    assert disagreement(lock, committed["spack"]["specs"]) == ""


@pytest.fixture
def kept(tmp_path, text, monkeypatch):
    """Return the lock that was made for a site, on a machine without libtool and bison."""
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: ["libtool", "bison"])
    request = read_spack_request("spack-openmpi", tmp_path, {"externals": "wheels"})

    class Spack(SpackProgram):
        def run(self, *arguments: object, **options: object) -> str:
            (request.folder / "spack.lock").write_text(text)
            return ""

    request.folder.mkdir(parents=True)
    provider._concretize(request, Spack(tmp_path, "1.1.0", tmp_path), lambda sentence: None)
    return request


def test_a_kept_lock_is_made_anew_when_build_tools_were_installed_since(kept, monkeypatch):
    said: list[str] = []
    assert provider._choose_lock(kept, said.append) is not None
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: ["bison"])
    assert provider._choose_lock(kept, said.append) is None
    assert said[0] == "concretizing again, to use the operating system's libtool"
    # What is built already stays as it is.
    assert provider._choose_lock(kept, said.append, to_build=False) is not None


def test_a_kept_lock_holds_when_build_tools_are_gone(kept, monkeypatch):
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: ["libtool", "bison", "m4"])
    assert provider._choose_lock(kept, lambda sentence: None) is not None


def test_a_lock_that_came_from_another_machine_holds(kept, monkeypatch):
    provider._tools_beside(provider.kept_lock(kept, host())).unlink()
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: [])
    assert provider._choose_lock(kept, lambda sentence: None) is not None


def test_recipes_are_indexed_by_one_call_alone_before_anything_is_installed(kept):
    """While one call makes the index, another that needs it fails after two minutes."""
    at_once, indexing = [], threading.Semaphore(1)
    calls: list[tuple[str, ...]] = []

    class Spack(SpackProgram):
        def run(self, arguments: Sequence[str], *others: object, **options: object) -> str:
            calls.append((*arguments[2:], ""))
            if "provider_index" in arguments[-1]:
                at_once.append(indexing.acquire(blocking=False))
                time.sleep(0.05)
                indexing.release()
            if "install" in arguments:
                raise ClustergateError("spack.no-specs", at="here")
            return '{"recipes": []}'

    lock, _, origin = provider._choose_lock(kept, print) or pytest.fail("no lock")
    spack = Spack(kept.state, "1.1.0", kept.state)

    def install(number: int) -> None:
        request = dataclasses.replace(kept, stack=f"{kept.stack}-{number}")
        with pytest.raises(ClustergateError):
            provider._install(provider.Prepared(request, spack, lock, origin), print)

    with ThreadPoolExecutor() as pool:
        list(pool.map(install, range(4)))
    assert at_once == [True] * 4
    order = ["index" if "provider_index" in str(one) else one[0] for one in calls]
    assert order.index("index") < order.index("install")
    assert order.count("index") == order.count("install")
